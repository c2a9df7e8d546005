# Tests over several nodes: the conductor, and what a process of such a test does.
troupe_sources += cluster/multinode/barrier.c cluster/multinode/conductor.c cluster/multinode/life.c \
	cluster/multinode/multinode.c cluster/multinode/place.c cluster/multinode/player.c cluster/multinode/settings.c
pkginclude_HEADERS += include/troupe/multinode.h

# Its programs, which `troupe multinode` starts: of the kit itself, and of remoting.
test_programs += tests/multinode/kit_program
tests_multinode_kit_program_SOURCES = tests/multinode/kit_program.c
tests_multinode_kit_program_LDADD = libtroupe.la
test_programs += tests/multinode/watch_program
tests_multinode_watch_program_SOURCES = tests/multinode/watch_program.c
tests_multinode_watch_program_LDADD = libtroupe.la
test_programs += tests/multinode/remoting_program
tests_multinode_remoting_program_SOURCES = tests/multinode/remoting_program.c
tests_multinode_remoting_program_LDADD = libtroupe.la
test_programs += examples/multinode
examples_multinode_SOURCES = examples/multinode.c
examples_multinode_LDADD = libtroupe.la

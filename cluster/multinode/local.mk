# Tests over several nodes: the conductor, and what a process of such a test does.
troupe_sources += cluster/multinode/barrier.c cluster/multinode/conductor.c cluster/multinode/life.c \
	cluster/multinode/multinode.c cluster/multinode/place.c cluster/multinode/player.c cluster/multinode/settings.c
pkginclude_HEADERS += include/troupe/multinode.h

check_PROGRAMS += tests/unit/multinode/barrier_test tests/unit/multinode/place_test
tests_unit_multinode_barrier_test_SOURCES = tests/unit/multinode/barrier_test.c
tests_unit_multinode_barrier_test_LDADD = $(TEST_LDADD)
tests_unit_multinode_place_test_SOURCES = tests/unit/multinode/place_test.c
tests_unit_multinode_place_test_LDADD = $(TEST_LDADD)

# Its programs, which `troupe multinode` starts: of the kit itself, and of remoting.
noinst_PROGRAMS += tests/multinode/kit_program
tests_multinode_kit_program_SOURCES = tests/multinode/kit_program.c
tests_multinode_kit_program_LDADD = libtroupe.la
noinst_PROGRAMS += tests/multinode/watch_program
tests_multinode_watch_program_SOURCES = tests/multinode/watch_program.c
tests_multinode_watch_program_LDADD = libtroupe.la
noinst_PROGRAMS += tests/multinode/remoting_program
tests_multinode_remoting_program_SOURCES = tests/multinode/remoting_program.c
tests_multinode_remoting_program_LDADD = libtroupe.la
noinst_PROGRAMS += examples/multinode
examples_multinode_SOURCES = examples/multinode.c
examples_multinode_LDADD = libtroupe.la

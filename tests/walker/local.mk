# What tests/walk runs: the ways of a remote tell and of a gossip frame, call by call. Built on demand.
EXTRA_PROGRAMS += tests/walker/walk
tests_walker_walk_SOURCES = tests/walker/walk.c
tests_walker_walk_LDADD = $(TEST_LDADD)

# tests/system: what its scripts start besides the program troupe.
noinst_PROGRAMS += tests/system/crowd
tests_system_crowd_SOURCES = tests/system/crowd.c
tests_system_crowd_LDADD = $(TEST_LDADD)

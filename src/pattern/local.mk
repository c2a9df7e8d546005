# src/pattern: on the actor API
troupe_sources += src/pattern/testkit.c src/pattern/testkit_expect.c src/pattern/testkit_filter.c \
	src/pattern/testkit_probe.c
check_PROGRAMS += tests/unit/pattern/testkit_test
tests_unit_pattern_testkit_test_SOURCES = tests/unit/pattern/testkit_test.c
tests_unit_pattern_testkit_test_LDADD = $(TEST_LDADD)

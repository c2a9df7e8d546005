# src/base
check_PROGRAMS += tests/unit/base/err_test
tests_unit_base_err_test_SOURCES = tests/unit/base/err_test.c
tests_unit_base_err_test_LDADD = $(TEST_LDADD)

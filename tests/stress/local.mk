# tests/stress
noinst_PROGRAMS += tests/stress/churn_test
tests_stress_churn_test_SOURCES = tests/stress/churn_test.c
tests_stress_churn_test_LDADD = libtroupe.la

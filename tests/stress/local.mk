# tests/stress
test_programs += tests/stress/churn_test
tests_stress_churn_test_SOURCES = tests/stress/churn_test.c
tests_stress_churn_test_LDADD = libtroupe.la
# The random programs of tests/sim on real threads.
test_programs += tests/stress/local_stress
tests_stress_local_stress_SOURCES = tests/stress/local_stress.c tests/sim/local_program.c tests/sim/local_laws.c
tests_stress_local_stress_LDADD = $(unit_ldadd)

# Whole clusters in virtual time; TROUPE_SIM_SEEDS says how many seeds.
noinst_PROGRAMS += tests/sim/sim_test
tests_sim_sim_test_SOURCES = tests/sim/sim_test.c
tests_sim_sim_test_LDADD = $(TEST_LDADD)

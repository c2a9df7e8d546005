# Whole clusters in virtual time; TROUPE_SIM_SEEDS says how many seeds.
noinst_PROGRAMS += tests/sim/sim_test
tests_sim_sim_test_SOURCES = tests/sim/sim_test.c
tests_sim_sim_test_LDADD = $(TEST_LDADD)
# Random actor programs under seeds.
noinst_PROGRAMS += tests/sim/local_test
tests_sim_local_test_SOURCES = tests/sim/local_test.c tests/sim/local_program.c tests/sim/local_laws.c
tests_sim_local_test_LDADD = $(TEST_LDADD)
# Complete nodes: systems with actors, remoting and membership in one thread; troupe/sim.h.
noinst_PROGRAMS += tests/sim/complete_test
tests_sim_complete_test_SOURCES = tests/sim/complete_test.c
tests_sim_complete_test_LDADD = $(TEST_LDADD)
# Cluster-aware routers on complete nodes.
noinst_PROGRAMS += tests/sim/router_test
tests_sim_router_test_SOURCES = tests/sim/router_test.c
tests_sim_router_test_LDADD = $(TEST_LDADD)
# Two systems and the network between them, from watches to quarantine.
noinst_PROGRAMS += tests/sim/remote_test
tests_sim_remote_test_SOURCES = tests/sim/remote_test.c
tests_sim_remote_test_LDADD = $(TEST_LDADD)
# Akka's specs of membership and of splits, played by simulated nodes.
noinst_PROGRAMS += tests/sim/membership_test tests/sim/split_test
tests_sim_membership_test_SOURCES = tests/sim/membership_test.c
tests_sim_membership_test_LDADD = $(TEST_LDADD)
tests_sim_split_test_SOURCES = tests/sim/split_test.c
tests_sim_split_test_LDADD = $(TEST_LDADD)
# Associations that nobody uses: what they cost, and that dead ones are found.
noinst_PROGRAMS += tests/sim/idle_test
tests_sim_idle_test_SOURCES = tests/sim/idle_test.c
tests_sim_idle_test_LDADD = $(TEST_LDADD)

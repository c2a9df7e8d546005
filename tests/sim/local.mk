# Whole clusters in virtual time; TROUPE_SIM_SEEDS says how many seeds.
test_programs += tests/sim/sim_test
tests_sim_sim_test_SOURCES = tests/sim/sim_test.c
tests_sim_sim_test_LDADD = $(TEST_LDADD)
# Random actor programs under seeds.
test_programs += tests/sim/local_test
tests_sim_local_test_SOURCES = tests/sim/local_test.c tests/sim/local_program.c tests/sim/local_laws.c
tests_sim_local_test_LDADD = $(TEST_LDADD)
# Complete nodes: systems with actors, remoting and membership in one thread; troupe/sim.h.
test_programs += tests/sim/complete_test
tests_sim_complete_test_SOURCES = tests/sim/complete_test.c
tests_sim_complete_test_LDADD = $(unit_ldadd)
# The simulated sockets of complete nodes.
test_programs += tests/sim/socket_test
tests_sim_socket_test_SOURCES = tests/sim/socket_test.c
tests_sim_socket_test_LDADD = $(unit_ldadd)
# Systems that talk by the driver on the poller, over simulated sockets.
test_programs += tests/sim/poll_test
tests_sim_poll_test_SOURCES = tests/sim/poll_test.c
tests_sim_poll_test_LDADD = $(unit_ldadd)
# Actors that own simulated sockets.
test_programs += tests/sim/tcp_test
tests_sim_tcp_test_SOURCES = tests/sim/tcp_test.c
tests_sim_tcp_test_LDADD = $(unit_ldadd)
# A program's server with sockets, and its good and bad peers.
test_programs += tests/sim/server_test
tests_sim_server_test_SOURCES = tests/sim/server_test.c
tests_sim_server_test_LDADD = $(unit_ldadd)
# Singletons and their proxies on complete nodes.
test_programs += tests/sim/singleton_test
tests_sim_singleton_test_SOURCES = tests/sim/singleton_test.c
tests_sim_singleton_test_LDADD = $(unit_ldadd)
# Entities on complete nodes.
test_programs += tests/sim/entities_test
tests_sim_entities_test_SOURCES = tests/sim/entities_test.c
tests_sim_entities_test_LDADD = $(unit_ldadd)
# Singletons and entities of roles, on complete nodes.
test_programs += tests/sim/roles_test
tests_sim_roles_test_SOURCES = tests/sim/roles_test.c
tests_sim_roles_test_LDADD = $(unit_ldadd)
# Entities that keep their state, and are remembered, on complete nodes.
test_programs += tests/sim/kept_test
tests_sim_kept_test_SOURCES = tests/sim/kept_test.c
tests_sim_kept_test_LDADD = $(unit_ldadd)
# A singleton, entities and their journal, together.
test_programs += tests/sim/state_test
tests_sim_state_test_SOURCES = tests/sim/state_test.c tests/sim/state_cast.h
tests_sim_state_test_LDADD = $(unit_ldadd)
# The journal of complete nodes.
test_programs += tests/sim/journal_test
tests_sim_journal_test_SOURCES = tests/sim/journal_test.c
tests_sim_journal_test_LDADD = $(unit_ldadd)
# Reliable delivery between complete nodes.
test_programs += tests/sim/delivery_test
tests_sim_delivery_test_SOURCES = tests/sim/delivery_test.c
tests_sim_delivery_test_LDADD = $(unit_ldadd)
# Cluster-aware routers on complete nodes.
test_programs += tests/sim/router_test
tests_sim_router_test_SOURCES = tests/sim/router_test.c
tests_sim_router_test_LDADD = $(unit_ldadd)
# Two systems and the network between them, from watches to quarantine.
test_programs += tests/sim/remote_test
tests_sim_remote_test_SOURCES = tests/sim/remote_test.c
tests_sim_remote_test_LDADD = $(unit_ldadd)
# Akka's specs of membership and of splits, played by simulated nodes.
test_programs += tests/sim/membership_test tests/sim/split_test
tests_sim_membership_test_SOURCES = tests/sim/membership_test.c
tests_sim_membership_test_LDADD = $(unit_ldadd)
tests_sim_split_test_SOURCES = tests/sim/split_test.c
tests_sim_split_test_LDADD = $(unit_ldadd)
# What must not live twice in a cluster.
test_programs += tests/sim/exclusive_test
tests_sim_exclusive_test_SOURCES = tests/sim/exclusive_test.c
tests_sim_exclusive_test_LDADD = $(unit_ldadd)
# Nodes that were removed and do not know it, and many crashes at once.
test_programs += tests/sim/removed_test
tests_sim_removed_test_SOURCES = tests/sim/removed_test.c
tests_sim_removed_test_LDADD = $(unit_ldadd)
# A large cluster in which somebody is always unreachable.
test_programs += tests/sim/churn_test
tests_sim_churn_test_SOURCES = tests/sim/churn_test.c
tests_sim_churn_test_LDADD = $(unit_ldadd)
# Associations that nobody uses: what they cost, and that dead ones are found.
test_programs += tests/sim/idle_test
tests_sim_idle_test_SOURCES = tests/sim/idle_test.c
tests_sim_idle_test_LDADD = $(unit_ldadd)
# Associations that heartbeats go over: they need no PING.
test_programs += tests/sim/beats_test
tests_sim_beats_test_SOURCES = tests/sim/beats_test.c
tests_sim_beats_test_LDADD = $(unit_ldadd)
# Those who are no members: what they make a node remember.
test_programs += tests/sim/strangers_test
tests_sim_strangers_test_SOURCES = tests/sim/strangers_test.c
tests_sim_strangers_test_LDADD = $(unit_ldadd)
# Numbers of nodes that ended while their nodes live.
test_programs += tests/sim/forgotten_test
tests_sim_forgotten_test_SOURCES = tests/sim/forgotten_test.c
tests_sim_forgotten_test_LDADD = $(unit_ldadd)
# Clusters that are started and restarted node by node, a crash and a cut meanwhile.
test_programs += tests/sim/restart_test
tests_sim_restart_test_SOURCES = tests/sim/restart_test.c
tests_sim_restart_test_LDADD = $(unit_ldadd)
# Schedules in which the simulator found something wrong once.
test_programs += tests/sim/found_test
tests_sim_found_test_SOURCES = tests/sim/found_test.c
tests_sim_found_test_LDADD = $(unit_ldadd)
# Complete nodes with an operator: what they say of themselves is true.
test_programs += tests/sim/operated_test
tests_sim_operated_test_SOURCES = tests/sim/operated_test.c
tests_sim_operated_test_LDADD = $(unit_ldadd)
# The engines of sharding, under seeds and faults.
test_programs += tests/sim/sharding_test
tests_sim_sharding_test_SOURCES = tests/sim/sharding_test.c
tests_sim_sharding_test_LDADD = $(TEST_LDADD)
# The registries of publish and subscribe, under seeds and faults.
test_programs += tests/sim/pubsub_test
tests_sim_pubsub_test_SOURCES = tests/sim/pubsub_test.c
tests_sim_pubsub_test_LDADD = $(TEST_LDADD)
# The registry by typed key on complete nodes.
test_programs += tests/sim/registry_test
tests_sim_registry_test_SOURCES = tests/sim/registry_test.c
tests_sim_registry_test_LDADD = $(unit_ldadd)

# The simulated world: implementations of base's interfaces.
troupe_sources += src/sim/mem_transport.c
check_PROGRAMS += tests/unit/sim/mem_transport_test
tests_unit_sim_mem_transport_test_SOURCES = tests/unit/sim/mem_transport_test.c
tests_unit_sim_mem_transport_test_LDADD = $(TEST_LDADD)

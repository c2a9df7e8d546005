# tests/bench. The workload `remote` starts remoting through its door, so the program links the inner library.
test_programs += tests/bench/bench
tests_bench_bench_SOURCES = tests/bench/bench.c tests/bench/client.c tests/bench/create.c tests/bench/endpoint.c tests/bench/entity.c tests/bench/entity_nodes.c tests/bench/flood.c tests/bench/flow.c tests/bench/handoff.c tests/bench/machine.c \
	tests/bench/journal.c tests/bench/journal_bare.c tests/bench/journal_bare_postgres.c tests/bench/many.c tests/bench/nodes.c tests/bench/observe.c \
	tests/bench/pairs.c tests/bench/pubsub.c tests/bench/raw.c tests/bench/remote.c tests/bench/slow.c tests/bench/sockets.c \
	tests/bench/sockets_servers.c tests/bench/strangers.c tests/bench/strangers_http.c tests/bench/text.c tests/bench/transfer.c tests/bench/two.c
tests_bench_bench_LDADD = $(TEST_LDADD)
# Figures of membership at sizes that no test bed has, in virtual time.
test_programs += tests/bench/sim
tests_bench_sim_SOURCES = tests/bench/sim.c
tests_bench_sim_LDADD = $(TEST_LDADD)

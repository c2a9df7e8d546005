# tests/multinode: what its scripts start besides the program troupe.
noinst_PROGRAMS += tests/multinode/exchange
tests_multinode_exchange_SOURCES = tests/multinode/exchange.c
tests_multinode_exchange_LDADD = $(TEST_LDADD)

# tests/multinode: what its scripts start besides the program troupe.
test_programs += tests/multinode/exchange
tests_multinode_exchange_SOURCES = tests/multinode/exchange.c
tests_multinode_exchange_LDADD = $(TEST_LDADD)
# Preloaded: moves the wall clock of one process.
noinst_LTLIBRARIES += tests/multinode/wall_clock.la
tests_multinode_wall_clock_la_SOURCES = tests/multinode/wall_clock.c
tests_multinode_wall_clock_la_LDFLAGS = $(PLUGIN_LDFLAGS) -Wl,--version-script=$(top_srcdir)/tests/multinode/wall_clock.map
# Metrics and adaptive routing: metrics.sh.
test_programs += tests/multinode/metrics_program
tests_multinode_metrics_program_SOURCES = tests/multinode/metrics_program.c
tests_multinode_metrics_program_LDADD = libtroupe.la

noinst_LTLIBRARIES += tests/multinode/routers.la
tests_multinode_routers_la_SOURCES = tests/multinode/routers.c
tests_multinode_routers_la_LDFLAGS = $(PLUGIN_LDFLAGS)
tests_multinode_routers_la_LIBADD = libtroupe.la

# The nodes of tests/chaos.
test_programs += tests/multinode/witness
tests_multinode_witness_SOURCES = tests/multinode/witness.c
tests_multinode_witness_LDADD = libtroupe.la

# Bad links: bad_links.sh.
test_programs += tests/multinode/relay
tests_multinode_relay_SOURCES = tests/multinode/relay.c
noinst_LTLIBRARIES += tests/multinode/mail.la
tests_multinode_mail_la_SOURCES = tests/multinode/mail.c
tests_multinode_mail_la_LDFLAGS = $(PLUGIN_LDFLAGS)
tests_multinode_mail_la_LIBADD = libtroupe.la


# What lives once: once.sh.
noinst_LTLIBRARIES += tests/multinode/once.la
tests_multinode_once_la_SOURCES = tests/multinode/once.c
tests_multinode_once_la_LDFLAGS = $(PLUGIN_LDFLAGS)
tests_multinode_once_la_LIBADD = libtroupe.la

# Mediators: topics_path.sh.
noinst_LTLIBRARIES += tests/multinode/topics.la
tests_multinode_topics_la_SOURCES = tests/multinode/topics.c
tests_multinode_topics_la_LDFLAGS = $(PLUGIN_LDFLAGS)
tests_multinode_topics_la_LIBADD = libtroupe.la

# Traces: trace.sh.
noinst_LTLIBRARIES += tests/multinode/traced.la
tests_multinode_traced_la_SOURCES = tests/multinode/traced.c
tests_multinode_traced_la_LDFLAGS = $(PLUGIN_LDFLAGS)
tests_multinode_traced_la_LIBADD = libtroupe.la

# The cluster room: engine, detector, gossip, downing, shell.
troupe_sources += src/base/phi.c cluster/ident.c cluster/vclock.c cluster/gossip.c \
	cluster/gossip_cache.c cluster/gossip_index.c cluster/gossip_merge.c cluster/gossip_view.c cluster/gossip_word.c src/base/pack.c cluster/gossip_codec.c \
	cluster/frame_codec.c cluster/downing.c cluster/downing_forecast.c cluster/downing_split.c cluster/downing_sides.c cluster/downing_votes.c cluster/votes.c cluster/membership.c cluster/membership_seed.c cluster/membership_contact.c cluster/membership_foreign.c cluster/membership_prove.c cluster/compat.c \
	cluster/membership_gossip.c cluster/membership_leader.c cluster/membership_downing.c cluster/membership_events.c cluster/membership_removed.c \
	cluster/heartbeat.c cluster/lease.c cluster/lease_file.c cluster/shell.c cluster/shell_reach.c cluster/shell_events.c cluster/cluster.c cluster/cluster_look.c \
	cluster/role_guard.c \
	cluster/metrics.c cluster/metrics_table.c cluster/metrics_core.c cluster/metrics_codec.c \
	cluster/metrics_proc.c cluster/metrics_shell.c cluster/adaptive.c
pkginclude_HEADERS += include/troupe/cluster.h include/troupe/lease.h include/troupe/metrics.h

test_programs += tests/fuzz/gossip_fuzz
tests_fuzz_gossip_fuzz_SOURCES = tests/fuzz/gossip_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_gossip_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_gossip_fuzz_LDFLAGS = $(FUZZ_LINK)

# Cluster-aware routers.
troupe_sources += cluster/router_core.c cluster/router_shell.c cluster/router_spread.c

# Metrics.

test_programs += tests/fuzz/metrics_fuzz
tests_fuzz_metrics_fuzz_SOURCES = tests/fuzz/metrics_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_metrics_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_metrics_fuzz_LDFLAGS = $(FUZZ_LINK)

# Failure detectors: phi accrual (above), a deadline, and those that a program brings.
troupe_sources += src/base/detector.c
pkginclude_HEADERS += include/troupe/failure_detector.h

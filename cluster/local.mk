# The cluster room: engine, detector, gossip, downing, shell.
troupe_sources += src/base/phi.c cluster/ident.c cluster/vclock.c cluster/gossip.c \
	cluster/gossip_cache.c cluster/gossip_index.c cluster/gossip_merge.c cluster/gossip_view.c src/base/pack.c cluster/gossip_codec.c \
	cluster/frame_codec.c cluster/downing.c cluster/downing_split.c cluster/downing_sides.c cluster/membership.c cluster/membership_seed.c cluster/membership_contact.c cluster/compat.c \
	cluster/membership_gossip.c cluster/membership_leader.c cluster/membership_downing.c cluster/membership_events.c \
	cluster/heartbeat.c cluster/lease.c cluster/lease_file.c cluster/shell.c cluster/shell_events.c cluster/cluster.c cluster/cluster_look.c \
	cluster/role_guard.c \
	cluster/metrics.c cluster/metrics_table.c cluster/metrics_core.c cluster/metrics_codec.c \
	cluster/metrics_proc.c cluster/metrics_shell.c cluster/adaptive.c
pkginclude_HEADERS += include/troupe/cluster.h include/troupe/lease.h include/troupe/metrics.h

check_PROGRAMS += tests/unit/cluster/phi_test tests/unit/cluster/gossip_test tests/unit/cluster/join_test \
	tests/unit/cluster/leader_test tests/unit/cluster/downing_test tests/unit/cluster/heartbeat_test \
	tests/unit/cluster/shell_test tests/unit/cluster/downing_strategies_test \
	tests/unit/cluster/gossip_codec_test tests/unit/cluster/weakly_up_test tests/unit/cluster/replay_test tests/unit/cluster/rounds_test \
	tests/unit/cluster/schedule_test tests/unit/cluster/compat_test \
	tests/unit/cluster/seek_test tests/unit/cluster/role_guard_test tests/unit/cluster/starved_test
tests_unit_cluster_starved_test_SOURCES = tests/unit/cluster/starved_test.c
tests_unit_cluster_starved_test_LDADD = $(TEST_LDADD)
tests_unit_cluster_role_guard_test_SOURCES = tests/unit/cluster/role_guard_test.c
tests_unit_cluster_role_guard_test_LDADD = $(TEST_LDADD)
tests_unit_cluster_seek_test_SOURCES = tests/unit/cluster/seek_test.c
tests_unit_cluster_seek_test_LDADD = $(TEST_LDADD)
tests_unit_cluster_compat_test_SOURCES = tests/unit/cluster/compat_test.c
tests_unit_cluster_compat_test_LDADD = $(TEST_LDADD)
tests_unit_cluster_schedule_test_SOURCES = tests/unit/cluster/schedule_test.c
tests_unit_cluster_schedule_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/cluster/lease_test tests/unit/cluster/downing_lease_test tests/unit/cluster/survivors_test
tests_unit_cluster_lease_test_SOURCES = tests/unit/cluster/lease_test.c
tests_unit_cluster_lease_test_LDADD = $(TEST_LDADD)
tests_unit_cluster_downing_lease_test_SOURCES = tests/unit/cluster/downing_lease_test.c
tests_unit_cluster_downing_lease_test_LDADD = $(TEST_LDADD)
tests_unit_cluster_survivors_test_SOURCES = tests/unit/cluster/survivors_test.c
tests_unit_cluster_survivors_test_CPPFLAGS = $(AM_CPPFLAGS) -DTESTS_SRCDIR=\"$(abs_top_srcdir)\"
tests_unit_cluster_survivors_test_LDADD = $(TEST_LDADD)
tests_unit_cluster_shell_test_SOURCES = tests/unit/cluster/shell_test.c
tests_unit_cluster_shell_test_LDADD = $(TEST_LDADD)
tests_unit_cluster_phi_test_SOURCES = tests/unit/cluster/phi_test.c
tests_unit_cluster_phi_test_LDADD = $(TEST_LDADD)
tests_unit_cluster_weakly_up_test_SOURCES = tests/unit/cluster/weakly_up_test.c
tests_unit_cluster_weakly_up_test_LDADD = $(TEST_LDADD)
tests_unit_cluster_replay_test_SOURCES = tests/unit/cluster/replay_test.c
tests_unit_cluster_replay_test_LDADD = $(TEST_LDADD)
tests_unit_cluster_rounds_test_SOURCES = tests/unit/cluster/rounds_test.c
tests_unit_cluster_rounds_test_LDADD = $(TEST_LDADD)
tests_unit_cluster_gossip_test_SOURCES = tests/unit/cluster/gossip_test.c
tests_unit_cluster_gossip_test_LDADD = $(TEST_LDADD)
tests_unit_cluster_gossip_codec_test_SOURCES = tests/unit/cluster/gossip_codec_test.c
tests_unit_cluster_gossip_codec_test_CPPFLAGS = $(AM_CPPFLAGS) -DTESTS_SRCDIR=\"$(abs_top_srcdir)\"
tests_unit_cluster_gossip_codec_test_LDADD = $(TEST_LDADD)
tests_unit_cluster_join_test_SOURCES = tests/unit/cluster/join_test.c
tests_unit_cluster_join_test_LDADD = $(TEST_LDADD)
tests_unit_cluster_leader_test_SOURCES = tests/unit/cluster/leader_test.c
tests_unit_cluster_leader_test_LDADD = $(TEST_LDADD)
tests_unit_cluster_downing_test_SOURCES = tests/unit/cluster/downing_test.c
tests_unit_cluster_downing_test_LDADD = $(TEST_LDADD)
tests_unit_cluster_downing_strategies_test_SOURCES = tests/unit/cluster/downing_strategies_test.c
tests_unit_cluster_downing_strategies_test_LDADD = $(TEST_LDADD)
tests_unit_cluster_heartbeat_test_SOURCES = tests/unit/cluster/heartbeat_test.c
tests_unit_cluster_heartbeat_test_LDADD = $(TEST_LDADD)

noinst_PROGRAMS += tests/fuzz/gossip_fuzz
tests_fuzz_gossip_fuzz_SOURCES = tests/fuzz/gossip_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_gossip_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_gossip_fuzz_LDFLAGS = $(FUZZ_LINK)

# Cluster-aware routers.
troupe_sources += cluster/router_core.c cluster/router_shell.c cluster/router_spread.c
check_PROGRAMS += tests/unit/cluster/router_core_test tests/unit/cluster/cluster_router_test
tests_unit_cluster_cluster_router_test_SOURCES = tests/unit/cluster/cluster_router_test.c
tests_unit_cluster_cluster_router_test_LDADD = $(TEST_LDADD)
tests_unit_cluster_router_core_test_SOURCES = tests/unit/cluster/router_core_test.c
tests_unit_cluster_router_core_test_LDADD = $(TEST_LDADD)

# Metrics.
check_PROGRAMS += tests/unit/cluster/metrics_test tests/unit/cluster/metrics_gossip_test \
	tests/unit/cluster/adaptive_test tests/unit/cluster/metrics_proc_test
tests_unit_cluster_metrics_proc_test_SOURCES = tests/unit/cluster/metrics_proc_test.c
tests_unit_cluster_metrics_proc_test_LDADD = $(TEST_LDADD)
tests_unit_cluster_adaptive_test_SOURCES = tests/unit/cluster/adaptive_test.c
tests_unit_cluster_adaptive_test_LDADD = $(TEST_LDADD)
tests_unit_cluster_metrics_test_SOURCES = tests/unit/cluster/metrics_test.c
tests_unit_cluster_metrics_test_LDADD = $(TEST_LDADD)
tests_unit_cluster_metrics_gossip_test_SOURCES = tests/unit/cluster/metrics_gossip_test.c
tests_unit_cluster_metrics_gossip_test_CPPFLAGS = $(AM_CPPFLAGS) -DTESTS_SRCDIR=\"$(abs_top_srcdir)\"
tests_unit_cluster_metrics_gossip_test_LDADD = $(TEST_LDADD)

noinst_PROGRAMS += tests/fuzz/metrics_fuzz
tests_fuzz_metrics_fuzz_SOURCES = tests/fuzz/metrics_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_metrics_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_metrics_fuzz_LDFLAGS = $(FUZZ_LINK)

# Failure detectors: phi accrual (above), a deadline, and those that a program brings.
troupe_sources += src/base/detector.c
pkginclude_HEADERS += include/troupe/failure_detector.h
check_PROGRAMS += tests/unit/cluster/detector_test
tests_unit_cluster_detector_test_SOURCES = tests/unit/cluster/detector_test.c
tests_unit_cluster_detector_test_LDADD = $(TEST_LDADD)

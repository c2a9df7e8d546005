# The cluster room. Arrows between its folders: tests/tidy.

# engine: membership, gossip, downing, heartbeats, codecs; pure.
troupe_sources += src/base/phi.c src/base/pack.c \
	cluster/engine/age.c \
	cluster/engine/compat.c \
	cluster/engine/downing.c \
	cluster/engine/downing_check.c \
	cluster/engine/downing_forecast.c \
	cluster/engine/downing_sides.c \
	cluster/engine/downing_split.c \
	cluster/engine/downing_votes.c \
	cluster/engine/exclusive.c \
	cluster/engine/frame_codec.c \
	cluster/engine/gossip.c \
	cluster/engine/gossip_cache.c \
	cluster/engine/gossip_check.c \
	cluster/engine/gossip_codec.c \
	cluster/engine/gossip_index.c \
	cluster/engine/gossip_merge.c \
	cluster/engine/gossip_view.c \
	cluster/engine/gossip_reachability.c \
	cluster/engine/heartbeat.c \
	cluster/engine/heartbeat_check.c \
	cluster/engine/ident.c \
	cluster/engine/membership.c \
	cluster/engine/membership_check.c \
	cluster/engine/membership_contact.c \
	cluster/engine/membership_core.c \
	cluster/engine/membership_downing.c \
	cluster/engine/membership_downing_check.c \
	cluster/engine/membership_events.c \
	cluster/engine/membership_foreign.c \
	cluster/engine/membership_gossip.c \
	cluster/engine/membership_leader.c \
	cluster/engine/membership_prove.c \
	cluster/engine/marks.c \
	cluster/engine/membership_marks.c \
	cluster/engine/membership_removed.c \
	cluster/engine/membership_seed.c \
	cluster/engine/vclock.c \
	cluster/engine/votes.c

# metrics: figures of nodes, their gossip and weights; pure but for the collector.
troupe_sources += \
	cluster/metrics/metrics.c \
	cluster/metrics/metrics_codec.c \
	cluster/metrics/metrics_core.c \
	cluster/metrics/metrics_proc.c \
	cluster/metrics/metrics_table.c

# sharding: what a shard keeps in the journal; pure.
troupe_sources += \
	cluster/sharding/shard_memory.c \
	cluster/sharding/shard_store.c

# sharding: coordinator, regions, allocation, frames; pure.
troupe_sources += \
	cluster/sharding/allocation.c \
	cluster/sharding/coordinator.c \
	cluster/sharding/coordinator_check.c \
	cluster/sharding/coordinator_grants.c \
	cluster/sharding/coordinator_nodes.c \
	cluster/sharding/coordinator_shards.c \
	cluster/sharding/region_check.c \
	cluster/sharding/region_core.c \
	cluster/sharding/region_frames.c \
	cluster/sharding/shard_frame.c \
	cluster/sharding/shard_nodes.c

# pubsub: the registry of publish and subscribe, routes, waits; pure.
troupe_sources += \
	cluster/pubsub/gaps.c \
	cluster/pubsub/index.c \
	cluster/pubsub/registry.c \
	cluster/pubsub/registry_check.c \
	cluster/pubsub/registry_frame.c \
	cluster/pubsub/registry_peers.c \
	cluster/pubsub/route.c \
	cluster/pubsub/waits.c

# shell: the actors that run the engine and the metrics, and the lease's thread.
troupe_sources += \
	cluster/shell/commands.c \
	cluster/shell/exclusive.c \
	cluster/shell/lease.c \
	cluster/shell/lease_file.c \
	cluster/shell/metrics_shell.c \
	cluster/shell/role_guard.c \
	cluster/shell/shell.c \
	cluster/shell/shell_events.c \
	cluster/shell/shell_messages.c \
	cluster/shell/shell_reach.c \
	cluster/shell/snapshot.c

# singleton: the manager of what lives once, its proxy.
troupe_sources += \
	cluster/singleton/frame.c \
	cluster/singleton/manager.c \
	cluster/singleton/manager_engine.c \
	cluster/singleton/manager_others.c \
	cluster/singleton/manager_start.c \
	cluster/singleton/manager_states.c \
	cluster/singleton/proxy.c \
	cluster/singleton/registry.c

# client: the receptionist of clients from outside.
troupe_sources += \
	cluster/client/door.c \
	cluster/client/receptionist.c \
	cluster/client/searches.c \
	cluster/client/services.c \
	cluster/client/sessions.c

# routing: cluster-aware routers, adaptive routing.
troupe_sources += \
	cluster/routing/adaptive.c \
	cluster/routing/router_core.c \
	cluster/routing/router_shell.c \
	cluster/routing/router_spread.c

# sharding: entities.
troupe_sources += \
	cluster/sharding/keeper.c \
	cluster/sharding/keeper_look.c \
	cluster/sharding/keeper_peers.c \
	cluster/sharding/keeper_program.c \
	cluster/sharding/keeper_step.c \
	cluster/sharding/drains.c \
	cluster/sharding/entity_name.c \
	cluster/sharding/fold.c \
	cluster/sharding/entity_path.c \
	cluster/sharding/entity_cache.c \
	cluster/sharding/entity_table.c \
	cluster/sharding/gate.c \
	cluster/sharding/reminder.c \
	cluster/sharding/request.c \
	cluster/sharding/region.c \
	cluster/sharding/region_entry.c \
	cluster/sharding/region_keep.c \
	cluster/sharding/region_move.c \
	cluster/sharding/region_remember.c \
	cluster/sharding/region_shard.c \
	cluster/sharding/region_sweep.c \
	cluster/sharding/sharding.c \
	cluster/sharding/tell.c
pkginclude_HEADERS += include/troupe/sharding.h

# pubsub: the mediator, which steps the registry and delivers.
troupe_sources += \
	cluster/pubsub/audience.c \
	cluster/pubsub/mediator.c \
	cluster/pubsub/mediator_calls.c \
	cluster/pubsub/mediator_cluster.c \
	cluster/pubsub/mediator_deliver.c \
	cluster/pubsub/mediator_keys.c \
	cluster/pubsub/mediator_start.c \
	cluster/pubsub/registry_calls.c
pkginclude_HEADERS += include/troupe/pubsub.h include/troupe/registry.h

# The door.
troupe_sources += cluster/cluster.c cluster/keys.c
pkginclude_HEADERS += include/troupe/cluster.h include/troupe/lease.h include/troupe/metrics.h \
	include/troupe/singleton.h

test_programs += tests/fuzz/gossip_fuzz
tests_fuzz_gossip_fuzz_SOURCES = tests/fuzz/gossip_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_gossip_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_gossip_fuzz_LDFLAGS = $(FUZZ_LINK)

test_programs += tests/fuzz/sharding_fuzz
tests_fuzz_sharding_fuzz_SOURCES = tests/fuzz/sharding_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_sharding_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_sharding_fuzz_LDFLAGS = $(FUZZ_LINK)

test_programs += tests/fuzz/client_fuzz
tests_fuzz_client_fuzz_SOURCES = tests/fuzz/client_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_client_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_client_fuzz_LDFLAGS = $(FUZZ_LINK)
test_programs += tests/fuzz/pubsub_fuzz
tests_fuzz_pubsub_fuzz_SOURCES = tests/fuzz/pubsub_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_pubsub_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_pubsub_fuzz_LDFLAGS = $(FUZZ_LINK)

test_programs += tests/fuzz/metrics_fuzz
tests_fuzz_metrics_fuzz_SOURCES = tests/fuzz/metrics_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_metrics_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_metrics_fuzz_LDFLAGS = $(FUZZ_LINK)

# Failure detectors: phi accrual (above), a deadline, and those that a program brings.
troupe_sources += src/base/detector.c
pkginclude_HEADERS += include/troupe/failure_detector.h

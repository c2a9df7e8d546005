# src/pattern: on the actor API
troupe_sources += src/pattern/testkit.c src/pattern/testkit_expect.c src/pattern/testkit_filter.c \
	src/pattern/testkit_probe.c src/pattern/testkit_seeded.c
check_PROGRAMS += tests/unit/pattern/testkit_test
tests_unit_pattern_testkit_test_SOURCES = tests/unit/pattern/testkit_test.c
tests_unit_pattern_testkit_test_LDADD = $(TEST_LDADD)
# The pattern room: what is built from actors.
pkginclude_HEADERS += include/troupe/router.h
troupe_sources += src/pattern/drain.c
check_PROGRAMS += tests/unit/pattern/drain_test
tests_unit_pattern_drain_test_SOURCES = tests/unit/pattern/drain_test.c
tests_unit_pattern_drain_test_LDADD = $(TEST_LDADD)
troupe_sources += src/pattern/routing.c src/pattern/routing_cluster.c src/pattern/routing_envelope.c src/pattern/routing_gather.c \
	src/pattern/routing_hash.c src/pattern/routing_head.c src/pattern/routing_load.c \
	src/pattern/routing_logic.c src/pattern/routing_plan.c src/pattern/routing_pool.c \
	src/pattern/routing_deploy.c src/pattern/routing_spawn.c src/pattern/routing_table.c

check_PROGRAMS += tests/unit/pattern/router_config_test tests/unit/pattern/router_test
tests_unit_pattern_router_config_test_SOURCES = tests/unit/pattern/router_config_test.c
tests_unit_pattern_router_config_test_LDADD = $(TEST_LDADD)
tests_unit_pattern_router_test_SOURCES = tests/unit/pattern/router_test.c
tests_unit_pattern_router_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/pattern/seeded_test
tests_unit_pattern_seeded_test_SOURCES = tests/unit/pattern/seeded_test.c
tests_unit_pattern_seeded_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/pattern/gather_test
tests_unit_pattern_gather_test_SOURCES = tests/unit/pattern/gather_test.c
tests_unit_pattern_gather_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/pattern/supervision_test
tests_unit_pattern_supervision_test_SOURCES = tests/unit/pattern/supervision_test.c
tests_unit_pattern_supervision_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/pattern/ring_test
tests_unit_pattern_ring_test_SOURCES = tests/unit/pattern/ring_test.c
tests_unit_pattern_ring_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/pattern/resizer_test
tests_unit_pattern_resizer_test_SOURCES = tests/unit/pattern/resizer_test.c
tests_unit_pattern_resizer_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/pattern/balancing_test
tests_unit_pattern_balancing_test_SOURCES = tests/unit/pattern/balancing_test.c
tests_unit_pattern_balancing_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/pattern/pool_test
tests_unit_pattern_pool_test_SOURCES = tests/unit/pattern/pool_test.c
tests_unit_pattern_pool_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/pattern/custom_test
tests_unit_pattern_custom_test_SOURCES = tests/unit/pattern/custom_test.c
tests_unit_pattern_custom_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/pattern/plan_test
tests_unit_pattern_plan_test_SOURCES = tests/unit/pattern/plan_test.c
tests_unit_pattern_plan_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/pattern/remote_pool_test
tests_unit_pattern_remote_pool_test_SOURCES = tests/unit/pattern/remote_pool_test.c
tests_unit_pattern_remote_pool_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/pattern/remote_routee_test
tests_unit_pattern_remote_routee_test_SOURCES = tests/unit/pattern/remote_routee_test.c
tests_unit_pattern_remote_routee_test_LDADD = $(TEST_LDADD)
pkginclude_HEADERS += include/troupe/bus.h
troupe_sources += src/pattern/bus.c
check_PROGRAMS += tests/unit/pattern/bus_test
tests_unit_pattern_bus_test_SOURCES = tests/unit/pattern/bus_test.c
tests_unit_pattern_bus_test_LDADD = $(TEST_LDADD)
troupe_sources += src/pattern/breaker.c src/pattern/executor.c src/pattern/future.c \
	src/pattern/future_list.c src/pattern/future_outcome.c src/pattern/future_step.c src/pattern/inbox.c
pkginclude_HEADERS += include/troupe/breaker.h include/troupe/future.h include/troupe/inbox.h
check_PROGRAMS += tests/unit/pattern/breaker_test tests/unit/pattern/future_test \
	tests/unit/pattern/future_list_test tests/unit/pattern/inbox_test
tests_unit_pattern_breaker_test_SOURCES = tests/unit/pattern/breaker_test.c
tests_unit_pattern_breaker_test_LDADD = $(TEST_LDADD)
tests_unit_pattern_future_test_SOURCES = tests/unit/pattern/future_test.c
tests_unit_pattern_future_test_LDADD = $(TEST_LDADD)
tests_unit_pattern_future_list_test_SOURCES = tests/unit/pattern/future_list_test.c
tests_unit_pattern_future_list_test_LDADD = $(TEST_LDADD)
tests_unit_pattern_inbox_test_SOURCES = tests/unit/pattern/inbox_test.c
tests_unit_pattern_inbox_test_LDADD = $(TEST_LDADD)
# aliases, categories and what else an actor may be given besides a path
pkginclude_HEADERS += include/troupe/alias.h include/troupe/category.h include/troupe/interaction.h \
	include/troupe/embedded.h include/troupe/live.h include/troupe/pending.h include/troupe/resource.h \
	include/troupe/subject.h
troupe_sources += src/pattern/category.c src/pattern/embedded.c src/pattern/resource.c src/pattern/subject.c
check_PROGRAMS += tests/unit/pattern/category_test tests/unit/pattern/embedded_test tests/unit/pattern/subject_test
tests_unit_pattern_subject_test_SOURCES = tests/unit/pattern/subject_test.c
tests_unit_pattern_subject_test_LDADD = $(TEST_LDADD)
tests_unit_pattern_embedded_test_SOURCES = tests/unit/pattern/embedded_test.c
tests_unit_pattern_embedded_test_LDADD = $(TEST_LDADD)
tests_unit_pattern_category_test_SOURCES = tests/unit/pattern/category_test.c
tests_unit_pattern_category_test_LDADD = $(TEST_LDADD)
pkginclude_HEADERS += include/troupe/durable.h
troupe_sources += src/pattern/durable.c src/pattern/durable_lmdb.c src/pattern/durable_record.c \
	src/pattern/durable_store.c
check_PROGRAMS += tests/unit/pattern/durable_test
tests_unit_pattern_durable_test_SOURCES = tests/unit/pattern/durable_test.c tests/unit/pattern/post.h tests/unit/pattern/clerk.h
tests_unit_pattern_durable_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/pattern/durable_limits_test tests/unit/pattern/storage_test
tests_unit_pattern_durable_limits_test_SOURCES = tests/unit/pattern/durable_limits_test.c tests/unit/pattern/post.h tests/unit/pattern/clerk.h
tests_unit_pattern_durable_limits_test_LDADD = $(TEST_LDADD)
tests_unit_pattern_storage_test_SOURCES = tests/unit/pattern/storage_test.c
tests_unit_pattern_storage_test_LDADD = $(TEST_LDADD)
pkginclude_HEADERS += include/troupe/throttler.h
troupe_sources += src/pattern/throttler.c
check_PROGRAMS += tests/unit/pattern/throttler_test
tests_unit_pattern_throttler_test_SOURCES = tests/unit/pattern/throttler_test.c
tests_unit_pattern_throttler_test_LDADD = $(TEST_LDADD)
pkginclude_HEADERS += include/troupe/reliable_proxy.h
troupe_sources += src/pattern/reliable_end.c src/pattern/reliable_proxy.c
check_PROGRAMS += tests/unit/pattern/reliable_proxy_test
tests_unit_pattern_reliable_proxy_test_SOURCES = tests/unit/pattern/reliable_proxy_test.c
tests_unit_pattern_reliable_proxy_test_LDADD = $(TEST_LDADD)
pkginclude_HEADERS += include/troupe/shutdown.h
troupe_sources += src/pattern/shutdown.c src/pattern/shutdown_plan.c src/pattern/shutdown_settings.c
check_PROGRAMS += tests/unit/pattern/shutdown_test tests/unit/pattern/shutdown_plan_test
tests_unit_pattern_shutdown_test_SOURCES = tests/unit/pattern/shutdown_test.c
tests_unit_pattern_shutdown_test_LDADD = $(TEST_LDADD)
tests_unit_pattern_shutdown_plan_test_SOURCES = tests/unit/pattern/shutdown_plan_test.c
tests_unit_pattern_shutdown_plan_test_LDADD = $(TEST_LDADD)

# src/pattern: on the actor API
troupe_sources += src/pattern/testkit.c src/pattern/testkit_expect.c src/pattern/testkit_filter.c \
	src/pattern/testkit_probe.c src/pattern/testkit_seeded.c
# The pattern room: what is built from actors.
pkginclude_HEADERS += include/troupe/router.h
troupe_sources += src/pattern/drain.c src/pattern/keys.c
troupe_sources += src/pattern/routing.c src/pattern/routing_cluster.c src/pattern/routing_envelope.c src/pattern/routing_gather.c \
	src/pattern/routing_hash.c src/pattern/routing_head.c src/pattern/routing_load.c \
	src/pattern/routing_logic.c src/pattern/routing_plan.c src/pattern/routing_pool.c \
	src/pattern/routing_deploy.c src/pattern/routing_spawn.c src/pattern/routing_table.c src/pattern/routing_types.c

pkginclude_HEADERS += include/troupe/bus.h
troupe_sources += src/pattern/bus.c
troupe_sources += src/pattern/breaker.c src/pattern/executor.c src/pattern/future.c \
	src/pattern/future_list.c src/pattern/future_outcome.c src/pattern/future_step.c src/pattern/inbox.c
pkginclude_HEADERS += include/troupe/aggregator.h include/troupe/backoff.h include/troupe/breaker.h include/troupe/future.h include/troupe/inbox.h
# aliases, categories and what else an actor may be given besides a path
pkginclude_HEADERS += include/troupe/alias.h include/troupe/category.h include/troupe/interaction.h include/troupe/trace.h \
	include/troupe/embedded.h include/troupe/live.h include/troupe/pending.h include/troupe/resource.h \
	include/troupe/subject.h
troupe_sources += src/pattern/category.c src/pattern/embedded.c src/pattern/resource.c src/pattern/subject.c
pkginclude_HEADERS += include/troupe/durable.h
troupe_sources += src/pattern/durable.c src/pattern/durable_lmdb.c src/pattern/durable_record.c \
	src/pattern/durable_store.c
pkginclude_HEADERS += include/troupe/throttler.h
troupe_sources += src/pattern/throttler.c
pkginclude_HEADERS += include/troupe/reliable_proxy.h
troupe_sources += src/pattern/entity_envelope.c src/pattern/topic_envelope.c src/pattern/reliable_end.c src/pattern/reliable_proxy.c
pkginclude_HEADERS += include/troupe/shutdown.h
troupe_sources += src/pattern/shutdown.c src/pattern/shutdown_plan.c src/pattern/shutdown_settings.c
troupe_sources += src/pattern/aggregator.c src/pattern/backoff.c
pkginclude_HEADERS += include/troupe/fsm.h
troupe_sources += src/pattern/fsm.c src/pattern/fsm_change.c src/pattern/fsm_definition.c src/pattern/fsm_timer.c
pkginclude_HEADERS += include/troupe/stm.h
troupe_sources += src/pattern/stm.c
pkginclude_HEADERS += include/troupe/agent.h
troupe_sources += src/pattern/agent.c
pkginclude_HEADERS += include/troupe/coordination.h
troupe_sources += src/pattern/coordination.c
pkginclude_HEADERS += include/troupe/typed.h
pkginclude_HEADERS += include/troupe/dataflow.h
troupe_sources += src/pattern/coroutine.c src/pattern/dataflow.c src/pattern/dataflow_wait.c

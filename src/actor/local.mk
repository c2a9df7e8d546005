# src/actor: its rooms, from the lowest to the highest
troupe_sources += $(actor_sources)
actor_sources =

# what a message passes: cells, mailboxes, telling, turns
actor_sources += src/actor/kernel/bounded_mailbox.c src/actor/kernel/mailbox_order.c src/actor/kernel/mailbox_type.c \
	src/actor/kernel/cell.c src/actor/kernel/throttle.c src/actor/kernel/send_budget.c src/actor/kernel/ctx.c src/actor/kernel/dispatcher.c src/actor/kernel/dispatcher_table.c \
	src/actor/kernel/dead.c src/actor/kernel/entity.c src/actor/kernel/tell_entity.c src/actor/kernel/extra.c src/actor/kernel/failure.c src/actor/kernel/fault.c src/actor/kernel/guard.c src/actor/kernel/guard_open.c src/actor/kernel/held.c src/actor/kernel/nested_turn.c src/actor/kernel/in_place.c src/actor/kernel/trace.c src/actor/kernel/trail.c src/actor/kernel/trailer.c src/actor/kernel/kernel_types.c \
	src/actor/kernel/mailbox_check.c src/actor/kernel/misuse.c src/actor/kernel/msg.c src/actor/kernel/msg_owned.c src/actor/kernel/peek.c src/actor/kernel/ref_map.c \
	src/actor/kernel/receive.c src/actor/kernel/run.c src/actor/kernel/run_ended.c src/actor/kernel/run_thread.c src/actor/kernel/sysmsg.c src/actor/kernel/timed.c \
	src/actor/kernel/shared_mailbox.c src/actor/kernel/tell.c src/actor/kernel/tell_carrying.c src/actor/kernel/tell_run.c src/actor/kernel/tell_forms.c src/actor/kernel/type.c

# numbers of nodes, and the cells that carry messages to them
actor_sources += src/actor/nodes/remote_ops.c src/actor/nodes/node_numbers.c src/actor/nodes/nodes.c

# names, paths, aliases
actor_sources += src/actor/naming/directory.c src/actor/naming/name.c src/actor/naming/path.c \
	src/actor/naming/path_text.c src/actor/naming/ref_text.c src/actor/naming/registry.c

# log lines and the event stream
actor_sources += src/actor/log/event_stream.c src/actor/log/log.c src/actor/log/log_context.c src/actor/log/log_format.c src/actor/log/log_types.c src/actor/log/loggers.c

# what the configuration says
actor_sources += src/actor/settings/keys.c src/actor/settings/options.c src/actor/settings/settings.c src/actor/settings/settings_dispatch.c

# what an actor is besides its messages: start to end, children, supervision, watch, ask, timers
actor_sources += src/actor/life/ahead.c src/actor/life/ask.c src/actor/life/ask_system.c src/actor/life/children.c \
	src/actor/life/dead_letter.c src/actor/life/receive_filter.c src/actor/life/guardian.c src/actor/life/life.c src/actor/life/life_types.c \
	src/actor/life/live.c src/actor/life/look.c src/actor/life/marks.c src/actor/life/memory.c src/actor/life/observed_names.c src/actor/life/orders.c \
	src/actor/life/pending.c src/actor/life/restart.c src/actor/life/round_trip.c src/actor/life/routed.c src/actor/life/scheduler.c \
	src/actor/life/select.c src/actor/life/service.c src/actor/life/spawn.c src/actor/life/stash.c \
	src/actor/life/restart_later.c src/actor/life/sample.c src/actor/life/supervise.c src/actor/life/timers.c src/actor/life/tree.c src/actor/life/upgrade.c src/actor/life/versions.c src/actor/life/waiting_asks.c src/actor/life/watch.c

# children on other nodes, and what comes from there
actor_sources += src/actor/distribution/deployed.c src/actor/distribution/child_proxy.c \
	src/actor/distribution/child_proxy_step.c src/actor/distribution/inbound.c

# a system: its birth and end, extensions, loggers
actor_sources += src/actor/system/after.c src/actor/system/extension.c src/actor/system/logger.c \
	src/actor/system/observe.c src/actor/system/observe_rows.c src/actor/system/observe_walk.c src/actor/system/held_turn.c src/actor/system/stall.c src/actor/system/stop.c \
	src/actor/system/system.c src/actor/system/tables.c src/actor/system/test_actor.c

pkginclude_HEADERS += include/troupe/path.h include/troupe/log.h include/troupe/scheduler.h include/troupe/dispatcher.h \
	include/troupe/mailbox.h include/troupe/extension.h

noinst_LTLIBRARIES += tests/unit/actor/plain_extension.la
tests_unit_actor_plain_extension_la_SOURCES = tests/unit/actor/plain_extension.c
tests_unit_actor_plain_extension_la_LDFLAGS = $(PLUGIN_LDFLAGS)

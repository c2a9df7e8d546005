# src/actor, the hot half
troupe_sources += src/actor/cell.c src/actor/credit.c src/actor/ctx.c src/actor/msg.c src/actor/nodes.c src/actor/node_numbers.c src/actor/routed.c src/actor/run.c src/actor/run_thread.c \
	src/actor/options.c src/actor/service.c src/actor/settings.c src/actor/settings_dispatch.c src/actor/spawn.c src/actor/system.c src/actor/sysmsg.c src/actor/tell.c src/actor/tell_text.c src/actor/type.c

troupe_sources += src/actor/team.c
troupe_sources += src/actor/fault.c src/actor/path_text.c src/actor/ref_text.c
pkginclude_HEADERS += include/troupe/path.h

pkginclude_HEADERS += include/troupe/log.h include/troupe/scheduler.h

# src/actor, the semantic half
troupe_sources += src/actor/ask.c src/actor/ask_system.c src/actor/misuse.c src/actor/children.c src/actor/dead_letter.c \
	src/actor/deployed.c src/actor/deputy.c src/actor/deputy_step.c src/actor/event_stream.c \
	src/actor/failure.c src/actor/guardian.c src/actor/inbound.c src/actor/life.c src/actor/log.c \
	src/actor/log_context.c src/actor/log_format.c src/actor/logger.c src/actor/memory.c \
	src/actor/name.c src/actor/orders.c src/actor/path.c src/actor/ref_map.c src/actor/registry.c \
	src/actor/restart.c src/actor/scheduler.c src/actor/select.c src/actor/stash.c src/actor/supervise.c \
	src/actor/timers.c src/actor/tree.c src/actor/watch.c

# dispatchers and mailboxes
pkginclude_HEADERS += include/troupe/dispatcher.h
troupe_sources += src/actor/dispatcher.c src/actor/here.c

# mailboxes
pkginclude_HEADERS += include/troupe/mailbox.h
troupe_sources += src/actor/box.c src/actor/box_order.c src/actor/box_type.c src/actor/peek.c
troupe_sources += src/actor/stall.c
# for tests of behaviours
troupe_sources += src/actor/test_actor.c
# extensions
troupe_sources += src/actor/extension.c
pkginclude_HEADERS += include/troupe/extension.h
noinst_LTLIBRARIES += tests/unit/actor/plain_extension.la
tests_unit_actor_plain_extension_la_SOURCES = tests/unit/actor/plain_extension.c
tests_unit_actor_plain_extension_la_LDFLAGS = $(PLUGIN_LDFLAGS)
troupe_sources += src/actor/directory.c src/actor/gate.c src/actor/interaction.c src/actor/live.c src/actor/pending.c src/actor/marks.c \
	src/actor/round_trip.c

# src/actor, the hot half
troupe_sources += src/actor/cell.c src/actor/credit.c src/actor/ctx.c src/actor/msg.c src/actor/nodes.c src/actor/routed.c src/actor/run.c src/actor/run_thread.c \
	src/actor/options.c src/actor/service.c src/actor/settings.c src/actor/settings_dispatch.c src/actor/spawn.c src/actor/system.c src/actor/sysmsg.c src/actor/tell.c src/actor/type.c

troupe_sources += src/actor/team.c
troupe_sources += src/actor/fault.c src/actor/path_text.c src/actor/ref_text.c
pkginclude_HEADERS += include/troupe/path.h

pkginclude_HEADERS += include/troupe/log.h include/troupe/scheduler.h

# src/actor, the semantic half
troupe_sources += src/actor/ask.c src/actor/children.c src/actor/dead_letter.c \
	src/actor/deployed.c src/actor/deputy.c src/actor/deputy_step.c src/actor/event_stream.c \
	src/actor/failure.c src/actor/guardian.c src/actor/inbound.c src/actor/life.c src/actor/log.c \
	src/actor/log_context.c src/actor/log_format.c src/actor/logger.c src/actor/memory.c \
	src/actor/name.c src/actor/orders.c src/actor/path.c src/actor/ref_map.c src/actor/registry.c \
	src/actor/restart.c src/actor/scheduler.c src/actor/select.c src/actor/stash.c src/actor/supervise.c \
	src/actor/timers.c src/actor/tree.c src/actor/watch.c

check_PROGRAMS += \
	tests/unit/actor/ask_test \
	tests/unit/actor/behaviour_test \
	tests/unit/actor/children_test \
	tests/unit/actor/dead_letter_test \
	tests/unit/actor/lost_test \
	tests/unit/actor/delivery_test \
	tests/unit/actor/fault_test \
	tests/unit/actor/guardian_test \
	tests/unit/actor/inbound_test \
	tests/unit/actor/life_test \
	tests/unit/actor/log_test \
	tests/unit/actor/memory_test \
	tests/unit/actor/name_test \
	tests/unit/actor/path_test \
	tests/unit/actor/ref_map_test \
	tests/unit/actor/ref_test \
	tests/unit/actor/restart_test \
	tests/unit/actor/sample_test \
	tests/unit/actor/scheduler_test \
	tests/unit/actor/stash_test \
	tests/unit/actor/strategy_test \
	tests/unit/actor/supervise_test \
	tests/unit/actor/test_actor_test \
	tests/unit/actor/timers_test \
	tests/unit/actor/tree_test \
	tests/unit/actor/turmoil_test \
	tests/unit/actor/watch_test
tests_unit_actor_ask_test_SOURCES = tests/unit/actor/ask_test.c
tests_unit_actor_ask_test_LDADD = $(TEST_LDADD)
tests_unit_actor_behaviour_test_SOURCES = tests/unit/actor/behaviour_test.c
tests_unit_actor_behaviour_test_LDADD = $(TEST_LDADD)
tests_unit_actor_strategy_test_SOURCES = tests/unit/actor/strategy_test.c
tests_unit_actor_strategy_test_LDADD = $(TEST_LDADD)
tests_unit_actor_children_test_SOURCES = tests/unit/actor/children_test.c
tests_unit_actor_children_test_LDADD = $(TEST_LDADD)
tests_unit_actor_dead_letter_test_SOURCES = tests/unit/actor/dead_letter_test.c
tests_unit_actor_dead_letter_test_LDADD = $(TEST_LDADD)
tests_unit_actor_lost_test_SOURCES = tests/unit/actor/lost_test.c
tests_unit_actor_lost_test_LDADD = $(TEST_LDADD)
# a program as users have them: the shared library, the public API
tests_unit_actor_fault_test_SOURCES = tests/unit/actor/fault_test.c
tests_unit_actor_fault_test_LDADD = libtroupe.la $(CUNIT_LIBS)
tests_unit_actor_delivery_test_SOURCES = tests/unit/actor/delivery_test.c
tests_unit_actor_delivery_test_LDADD = $(TEST_LDADD)
tests_unit_actor_sample_test_SOURCES = tests/unit/actor/sample_test.c
tests_unit_actor_sample_test_LDADD = $(TEST_LDADD)
tests_unit_actor_ref_test_SOURCES = tests/unit/actor/ref_test.c
tests_unit_actor_ref_test_LDADD = $(TEST_LDADD)
tests_unit_actor_guardian_test_SOURCES = tests/unit/actor/guardian_test.c
tests_unit_actor_guardian_test_LDADD = $(TEST_LDADD)
tests_unit_actor_inbound_test_SOURCES = tests/unit/actor/inbound_test.c
tests_unit_actor_inbound_test_LDADD = $(TEST_LDADD)
tests_unit_actor_life_test_SOURCES = tests/unit/actor/life_test.c
tests_unit_actor_life_test_LDADD = $(TEST_LDADD)
tests_unit_actor_memory_test_SOURCES = tests/unit/actor/memory_test.c
tests_unit_actor_memory_test_LDADD = $(TEST_LDADD)
tests_unit_actor_name_test_SOURCES = tests/unit/actor/name_test.c
tests_unit_actor_name_test_LDADD = $(TEST_LDADD)
tests_unit_actor_path_test_SOURCES = tests/unit/actor/path_test.c
tests_unit_actor_path_test_LDADD = $(TEST_LDADD)
tests_unit_actor_ref_map_test_SOURCES = tests/unit/actor/ref_map_test.c
tests_unit_actor_ref_map_test_LDADD = $(TEST_LDADD)
tests_unit_actor_restart_test_SOURCES = tests/unit/actor/restart_test.c
tests_unit_actor_restart_test_LDADD = $(TEST_LDADD)
tests_unit_actor_stash_test_SOURCES = tests/unit/actor/stash_test.c
tests_unit_actor_stash_test_LDADD = $(TEST_LDADD)
tests_unit_actor_supervise_test_SOURCES = tests/unit/actor/supervise_test.c
tests_unit_actor_supervise_test_LDADD = $(TEST_LDADD)
tests_unit_actor_test_actor_test_SOURCES = tests/unit/actor/test_actor_test.c
tests_unit_actor_test_actor_test_LDADD = $(TEST_LDADD)
tests_unit_actor_timers_test_SOURCES = tests/unit/actor/timers_test.c
tests_unit_actor_timers_test_LDADD = $(TEST_LDADD)
tests_unit_actor_tree_test_SOURCES = tests/unit/actor/tree_test.c
tests_unit_actor_tree_test_LDADD = $(TEST_LDADD)
tests_unit_actor_turmoil_test_SOURCES = tests/unit/actor/turmoil_test.c
tests_unit_actor_turmoil_test_LDADD = $(TEST_LDADD)
tests_unit_actor_watch_test_SOURCES = tests/unit/actor/watch_test.c
tests_unit_actor_watch_test_LDADD = $(TEST_LDADD)

# unit tests of the hot half
check_PROGRAMS += tests/unit/actor/cell_test tests/unit/actor/handed_test tests/unit/actor/mailbox_test tests/unit/actor/msg_test \
	tests/unit/actor/settings_test tests/unit/actor/spawn_test tests/unit/actor/system_test tests/unit/actor/overload_test tests/unit/actor/tell_test tests/unit/actor/type_test
tests_unit_actor_cell_test_SOURCES = tests/unit/actor/cell_test.c
tests_unit_actor_cell_test_LDADD = $(TEST_LDADD)
tests_unit_actor_handed_test_SOURCES = tests/unit/actor/handed_test.c
tests_unit_actor_handed_test_LDADD = $(TEST_LDADD)
tests_unit_actor_mailbox_test_SOURCES = tests/unit/actor/mailbox_test.c
tests_unit_actor_mailbox_test_LDADD = $(TEST_LDADD)
tests_unit_actor_msg_test_SOURCES = tests/unit/actor/msg_test.c
tests_unit_actor_msg_test_LDADD = $(TEST_LDADD)
tests_unit_actor_settings_test_SOURCES = tests/unit/actor/settings_test.c
tests_unit_actor_settings_test_LDADD = $(TEST_LDADD)
tests_unit_actor_spawn_test_SOURCES = tests/unit/actor/spawn_test.c
tests_unit_actor_spawn_test_LDADD = $(TEST_LDADD)
tests_unit_actor_system_test_SOURCES = tests/unit/actor/system_test.c
tests_unit_actor_system_test_LDADD = $(TEST_LDADD)
tests_unit_actor_overload_test_SOURCES = tests/unit/actor/overload_test.c
tests_unit_actor_overload_test_LDADD = $(TEST_LDADD)
tests_unit_actor_tell_test_SOURCES = tests/unit/actor/tell_test.c
tests_unit_actor_tell_test_LDADD = $(TEST_LDADD)
tests_unit_actor_type_test_SOURCES = tests/unit/actor/type_test.c
tests_unit_actor_type_test_LDADD = $(TEST_LDADD)

# dispatchers and mailboxes
pkginclude_HEADERS += include/troupe/dispatcher.h
troupe_sources += src/actor/dispatcher.c src/actor/here.c
check_PROGRAMS += tests/unit/actor/affinity_test tests/unit/actor/calling_test tests/unit/actor/dispatcher_test
tests_unit_actor_affinity_test_SOURCES = tests/unit/actor/affinity_test.c
tests_unit_actor_affinity_test_LDADD = $(TEST_LDADD)
tests_unit_actor_calling_test_SOURCES = tests/unit/actor/calling_test.c
tests_unit_actor_calling_test_LDADD = $(TEST_LDADD)
tests_unit_actor_dispatcher_test_SOURCES = tests/unit/actor/dispatcher_test.c
tests_unit_actor_dispatcher_test_LDADD = $(TEST_LDADD)

# mailboxes
pkginclude_HEADERS += include/troupe/mailbox.h
troupe_sources += src/actor/box.c src/actor/box_order.c src/actor/box_type.c src/actor/peek.c
check_PROGRAMS += tests/unit/actor/box_test tests/unit/actor/peek_test tests/unit/actor/team_test
tests_unit_actor_peek_test_SOURCES = tests/unit/actor/peek_test.c
tests_unit_actor_peek_test_LDADD = $(TEST_LDADD)
tests_unit_actor_team_test_SOURCES = tests/unit/actor/team_test.c
tests_unit_actor_team_test_LDADD = $(TEST_LDADD)
tests_unit_actor_box_test_SOURCES = tests/unit/actor/box_test.c
tests_unit_actor_box_test_LDADD = $(TEST_LDADD)
tests_unit_actor_log_test_SOURCES = tests/unit/actor/log_test.c
tests_unit_actor_log_test_LDADD = $(TEST_LDADD)
tests_unit_actor_scheduler_test_SOURCES = tests/unit/actor/scheduler_test.c
tests_unit_actor_scheduler_test_LDADD = $(TEST_LDADD)
troupe_sources += src/actor/stall.c
check_PROGRAMS += tests/unit/actor/stall_test
tests_unit_actor_stall_test_SOURCES = tests/unit/actor/stall_test.c
tests_unit_actor_stall_test_LDADD = $(TEST_LDADD)
# for tests of behaviours
troupe_sources += src/actor/test_actor.c
# extensions
troupe_sources += src/actor/extension.c
pkginclude_HEADERS += include/troupe/extension.h
check_PROGRAMS += tests/unit/actor/extension_test
tests_unit_actor_extension_test_SOURCES = tests/unit/actor/extension_test.c
tests_unit_actor_extension_test_LDADD = $(TEST_LDADD)
noinst_LTLIBRARIES += tests/unit/actor/plain_extension.la
tests_unit_actor_plain_extension_la_SOURCES = tests/unit/actor/plain_extension.c
tests_unit_actor_plain_extension_la_LDFLAGS = $(PLUGIN_LDFLAGS)
troupe_sources += src/actor/directory.c src/actor/gate.c src/actor/interaction.c src/actor/live.c src/actor/pending.c \
	src/actor/round_trip.c
check_PROGRAMS += tests/unit/actor/alias_test tests/unit/actor/gate_test tests/unit/actor/interaction_test tests/unit/actor/live_test tests/unit/actor/pending_test
tests_unit_actor_live_test_SOURCES = tests/unit/actor/live_test.c
tests_unit_actor_live_test_LDADD = $(TEST_LDADD)
tests_unit_actor_pending_test_SOURCES = tests/unit/actor/pending_test.c
tests_unit_actor_pending_test_LDADD = $(TEST_LDADD)
tests_unit_actor_interaction_test_SOURCES = tests/unit/actor/interaction_test.c
tests_unit_actor_interaction_test_LDADD = $(TEST_LDADD)
tests_unit_actor_alias_test_SOURCES = tests/unit/actor/alias_test.c
tests_unit_actor_alias_test_LDADD = $(TEST_LDADD)
tests_unit_actor_gate_test_SOURCES = tests/unit/actor/gate_test.c
tests_unit_actor_gate_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/actor/switches_test tests/unit/actor/loggers_test tests/unit/actor/limits_test
tests_unit_actor_limits_test_SOURCES = tests/unit/actor/limits_test.c
tests_unit_actor_limits_test_LDADD = $(TEST_LDADD)
tests_unit_actor_switches_test_SOURCES = tests/unit/actor/switches_test.c
tests_unit_actor_switches_test_LDADD = $(TEST_LDADD)
tests_unit_actor_loggers_test_SOURCES = tests/unit/actor/loggers_test.c
tests_unit_actor_loggers_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/actor/deputy_test
tests_unit_actor_deputy_test_SOURCES = tests/unit/actor/deputy_test.c
tests_unit_actor_deputy_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/actor/ref_text_test
tests_unit_actor_ref_text_test_SOURCES = tests/unit/actor/ref_text_test.c
tests_unit_actor_ref_text_test_LDADD = $(TEST_LDADD)

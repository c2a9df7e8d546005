troupe_sources += \
	cluster/node/apps.c \
	cluster/node/bridge.c \
	cluster/node/bridge_actor.c \
	cluster/node/bridge_asks.c \
	cluster/node/bridge_child.c \
	cluster/node/bridge_request.c \
	cluster/node/bridge_session.c \
	cluster/node/bridge_voice.c \
	cluster/node/built_in_types.c \
	cluster/node/carry.c \
	cluster/node/cert_main.c \
	cluster/node/cert_openssl.c \
	cluster/node/config_main.c \
	cluster/node/alive.c \
	cluster/node/control_health.c \
	cluster/node/health.c \
	cluster/node/cookie_file.c \
	cluster/node/fsm_main.c \
	cluster/node/keys.c \
	cluster/node/control.c \
	cluster/node/control_actors.c \
	cluster/node/control_audit.c \
	cluster/node/control_call.c \
	cluster/node/control_change.c \
	cluster/node/control_drain.c \
	cluster/node/control_commands.c \
	cluster/node/control_events.c \
	cluster/node/control_deadletters.c \
	cluster/node/control_logs.c \
	cluster/node/record_ring.c \
	cluster/node/control_doctor.c \
	cluster/node/doctor.c \
	cluster/node/doctor_asks.c \
	cluster/node/doctor_waiting.c \
	cluster/node/doctor_cluster.c \
	cluster/node/doctor_host.c \
	cluster/node/doctor_look.c \
	cluster/node/doctor_others.c \
	cluster/node/control_fault.c \
	cluster/node/control_join.c \
	cluster/node/control_member.c \
	cluster/node/control_members.c \
	cluster/node/control_metrics.c \
	cluster/node/control_metrics_actors.c \
	cluster/node/control_metrics_parts.c \
	cluster/node/figures.c \
	cluster/node/control_peers.c \
	cluster/node/control_reach.c \
	cluster/node/control_reload.c \
	cluster/node/control_request.c \
	cluster/node/control_senders.c \
	cluster/node/control_serve.c \
	cluster/node/control_shards.c \
	cluster/node/control_singleton.c \
	cluster/node/control_dashboard.c \
	cluster/node/control_top.c \
	cluster/node/control_topics.c \
	cluster/node/control_trace.c \
	cluster/node/ask_members.c \
	cluster/node/control_all.c \
	cluster/node/control_shutdown.c \
	cluster/node/control_socket.c \
	cluster/node/control_view.c \
	cluster/node/control_why.c \
	cluster/node/node.c \
	cluster/node/node_again.c \
	cluster/node/node_check.c \
	cluster/node/node_dump.c \
	cluster/node/node_limits.c \
	cluster/node/node_log.c \
	cluster/node/node_main.c \
	cluster/node/node_management.c \
	cluster/node/node_membership.c \
	cluster/node/node_notify.c \
	cluster/node/node_options.c \
	cluster/node/otlp.c \
	cluster/node/journal_carry.c \
	cluster/node/journal_main.c \
	cluster/node/node_persistence.c \
	cluster/node/node_plugin.c \
	cluster/node/node_spawn.c cluster/node/node_upgrade.c \
	cluster/node/plugin_file.c \
	cluster/node/node_shutdown.c \
	cluster/node/node_start.c \
	cluster/node/start_pages.c \
	cluster/node/payload_json.c \
	cluster/node/via.c
pkginclude_HEADERS += include/troupe/bootable.h include/troupe/node.h include/troupe/plugin.h

test_programs += tests/fuzz/control_fuzz tests/fuzz/config_fuzz tests/fuzz/bridge_fuzz
tests_fuzz_bridge_fuzz_SOURCES = tests/fuzz/bridge_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_bridge_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_bridge_fuzz_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_control_fuzz_SOURCES = tests/fuzz/control_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_control_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_control_fuzz_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_config_fuzz_SOURCES = tests/fuzz/config_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_config_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_config_fuzz_LDFLAGS = $(FUZZ_LINK)

# Contact points by DNS.
troupe_sources += cluster/node/seed_dns.c
if HAVE_CARES
endif

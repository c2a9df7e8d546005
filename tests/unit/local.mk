# Unit tests: a program for each room, which holds a suite for each file (tests/unit/unit.h). A new suite is one line here.
check_LTLIBRARIES = tests/unit/libunit.la
tests_unit_libunit_la_SOURCES = tests/unit/unit.c tests/unit/unit_main.c
tests_unit_libunit_la_CPPFLAGS = $(AM_CPPFLAGS) -DTESTS_SRCDIR=\"$(abs_top_srcdir)\"
unit_ldadd = tests/unit/libunit.la $(TEST_LDADD)
# What tests/run gives the tests alone (UNIT_CFLAGS=-O0): to optimise them takes longer than to run them does.
tests/unit/%.o tests/sim/%.o tests/multinode/%.o tests/system/%.o: CFLAGS += $(UNIT_CFLAGS)

check_PROGRAMS += tests/unit/base/base_tests
tests_unit_base_base_tests_LDADD = $(unit_ldadd)
tests_unit_base_base_tests_SOURCES = \
	tests/unit/base/address_test.c \
	tests/unit/base/alloc_test.c \
	tests/unit/base/array_test.c \
	tests/unit/base/buffer_test.c \
	tests/unit/base/bytes_codec_test.c \
	tests/unit/base/bytes_test.c \
	tests/unit/base/config_tree_test.c \
	tests/unit/base/err_test.c \
	tests/unit/base/hash_test.c \
	tests/unit/base/json_test.c \
	tests/unit/base/loaded_library_test.c \
	tests/unit/base/net_test.c \
	tests/unit/base/payload_test.c \
	tests/unit/base/sized_test.c \
	tests/unit/base/table_test.c \
	tests/unit/base/units_test.c \
	tests/unit/base/world_test.c

check_PROGRAMS += tests/unit/sched/sched_tests
tests_unit_sched_sched_tests_LDADD = $(unit_ldadd)
tests_unit_sched_sched_tests_SOURCES = \
	tests/unit/sched/driven_test.c \
	tests/unit/sched/parallelism_test.c \
	tests/unit/sched/parallelism_trial_test.c \
	tests/unit/sched/queue_test.c \
	tests/unit/sched/sched_test.c \
	tests/unit/sched/timer_test.c \
	tests/unit/sched/timer_wheel_test.c

check_PROGRAMS += tests/unit/actor/actor_tests
tests_unit_actor_actor_tests_LDADD = $(unit_ldadd)
tests_unit_actor_actor_tests_SOURCES = \
	tests/unit/actor/affinity_test.c \
	tests/unit/actor/ahead_test.c \
	tests/unit/actor/alias_test.c \
	tests/unit/actor/ask_test.c \
	tests/unit/actor/behaviour_test.c \
	tests/unit/actor/bounded_mailbox_test.c \
	tests/unit/actor/calling_test.c \
	tests/unit/actor/cell_test.c \
	tests/unit/actor/children_test.c \
	tests/unit/actor/dead_letter_test.c \
	tests/unit/actor/delivery_test.c \
	tests/unit/actor/child_proxy_test.c \
	tests/unit/actor/dispatcher_test.c \
	tests/unit/actor/extension_test.c \
	tests/unit/actor/guard_test.c \
	tests/unit/actor/held_test.c \
	tests/unit/actor/receive_filter_test.c \
	tests/unit/actor/upgrade_test.c \
	tests/unit/actor/gather_test.c \
	tests/unit/actor/guardian_test.c \
	tests/unit/actor/direct_delivery_test.c \
	tests/unit/actor/in_place_test.c \
	tests/unit/actor/inbound_test.c \
	tests/unit/actor/interaction_test.c \
	tests/unit/actor/trace_test.c \
	tests/unit/actor/life_test.c \
	tests/unit/actor/limits_test.c \
	tests/unit/actor/live_test.c \
	tests/unit/actor/log_test.c \
	tests/unit/actor/loggers_test.c \
	tests/unit/actor/lost_test.c \
	tests/unit/actor/mailbox_test.c \
	tests/unit/actor/marks_test.c \
	tests/unit/actor/memory_test.c \
	tests/unit/actor/misuse_test.c \
	tests/unit/actor/msg_test.c \
	tests/unit/actor/name_test.c \
	tests/unit/actor/held_turn_test.c \
	tests/unit/actor/observe_test.c \
	tests/unit/actor/waiting_asks_test.c \
	tests/unit/actor/overload_test.c \
	tests/unit/actor/path_test.c \
	tests/unit/actor/peek_test.c \
	tests/unit/actor/pending_test.c \
	tests/unit/actor/ref_map_test.c \
	tests/unit/actor/ref_test.c \
	tests/unit/actor/ref_text_test.c \
	tests/unit/actor/restart_test.c \
	tests/unit/actor/sample_test.c \
	tests/unit/actor/scheduler_test.c \
	tests/unit/actor/settings_test.c \
	tests/unit/actor/spawn_test.c \
	tests/unit/actor/stall_test.c \
	tests/unit/actor/stash_test.c \
	tests/unit/actor/strategy_test.c \
	tests/unit/actor/supervise_test.c \
	tests/unit/actor/switches_test.c \
	tests/unit/actor/system_test.c \
	tests/unit/actor/shared_mailbox_test.c \
	tests/unit/actor/tell_test.c \
	tests/unit/actor/test_actor_test.c \
	tests/unit/actor/threads_test.c \
	tests/unit/actor/timers_test.c \
	tests/unit/actor/tree_test.c \
	tests/unit/actor/turmoil_test.c \
	tests/unit/actor/type_test.c \
	tests/unit/actor/watch_test.c

check_PROGRAMS += tests/unit/pattern/pattern_tests
tests_unit_pattern_pattern_tests_LDADD = $(unit_ldadd)
tests_unit_pattern_pattern_tests_SOURCES = \
	tests/unit/pattern/agent_test.c \
	tests/unit/pattern/aggregator_test.c \
	tests/unit/pattern/balancing_test.c \
	tests/unit/pattern/backoff_test.c \
	tests/unit/pattern/breaker_test.c \
	tests/unit/pattern/bus_test.c \
	tests/unit/pattern/category_test.c \
	tests/unit/pattern/coordination_test.c \
	tests/unit/pattern/coroutine_portable_test.c \
	tests/unit/pattern/coroutine_test.c \
	tests/unit/pattern/custom_test.c \
	tests/unit/pattern/dataflow_schedules_test.c \
	tests/unit/pattern/dataflow_test.c \
	tests/unit/pattern/drain_test.c \
	tests/unit/pattern/described_test.c \
	tests/unit/pattern/durable_limits_test.c \
	tests/unit/pattern/durable_test.c \
	tests/unit/pattern/embedded_test.c \
	tests/unit/pattern/fsm_change_test.c \
	tests/unit/pattern/fsm_definition_test.c \
	tests/unit/pattern/fsm_samples_test.c \
	tests/unit/pattern/fsm_test.c \
	tests/unit/pattern/fsm_timer_test.c \
	tests/unit/pattern/future_list_test.c \
	tests/unit/pattern/future_test.c \
	tests/unit/pattern/future_trace_test.c \
	tests/unit/pattern/gather_test.c \
	tests/unit/pattern/inbox_test.c \
	tests/unit/pattern/plan_test.c \
	tests/unit/pattern/pool_test.c \
	tests/unit/pattern/reliable_proxy_test.c \
	tests/unit/pattern/remote_pool_test.c \
	tests/unit/pattern/remote_routee_test.c \
	tests/unit/pattern/resizer_test.c \
	tests/unit/pattern/ring_test.c \
	tests/unit/pattern/router_config_test.c \
	tests/unit/pattern/router_test.c \
	tests/unit/pattern/seeded_test.c \
	tests/unit/pattern/shutdown_plan_test.c \
	tests/unit/pattern/shutdown_test.c \
	tests/unit/pattern/stm_history_test.c \
	tests/unit/pattern/stm_test.c \
	tests/unit/pattern/storage_test.c \
	tests/unit/pattern/subject_test.c \
	tests/unit/pattern/supervision_test.c \
	tests/unit/pattern/testkit_test.c \
	tests/unit/pattern/typed_test.c \
	tests/unit/pattern/throttler_test.c

check_PROGRAMS += tests/unit/io/io_tests
tests_unit_io_io_tests_LDADD = $(unit_ldadd)
tests_unit_io_io_tests_SOURCES = \
	tests/unit/io/address_test.c \
	tests/unit/io/bad_peers_test.c \
	tests/unit/io/poller_test.c \
	tests/unit/io/poller_wake_test.c \
	tests/unit/io/frames_test.c \
	tests/unit/io/lookup_test.c \
	tests/unit/io/pipeline_actor_test.c \
	tests/unit/io/pipeline_test.c \
	tests/unit/io/settings_test.c \
	tests/unit/io/stage_tls_test.c \
	tests/unit/io/stages_test.c \
	tests/unit/io/tcp_conn_test.c \
	tests/unit/io/tcp_pipeline_test.c \
	tests/unit/io/tcp_test.c \
	tests/unit/io/tcp_tls_test.c \
	tests/unit/io/udp_test.c

check_PROGRAMS += tests/unit/endpoint/endpoint_tests
tests_unit_endpoint_endpoint_tests_LDADD = $(unit_ldadd)
tests_unit_endpoint_endpoint_tests_SOURCES = \
	tests/unit/endpoint/actor_test.c \
	tests/unit/endpoint/consumer_test.c \
	tests/unit/endpoint/http_client_test.c \
	tests/unit/endpoint/nng_address_test.c \
	tests/unit/endpoint/nng_closing_test.c \
	tests/unit/endpoint/nng_device_test.c \
	tests/unit/endpoint/nng_exchange_test.c \
	tests/unit/endpoint/nng_socket_test.c \
	tests/unit/endpoint/producer_test.c \
	tests/unit/endpoint/tcp_test.c \
	tests/unit/endpoint/udp_test.c \
	tests/unit/endpoint/uri_test.c \
	tests/unit/endpoint/web_secure_test.c \
	tests/unit/endpoint/web_server_test.c \
	tests/unit/endpoint/web_socket_test.c \
	tests/unit/endpoint/web_text_test.c

EXTRA_tests_unit_endpoint_endpoint_tests_DEPENDENCIES = tests/unit/endpoint/nng_peer$(EXEEXT)
test_programs += tests/unit/endpoint/nng_peer
tests_unit_endpoint_nng_peer_SOURCES = tests/unit/endpoint/nng_peer.c
tests_unit_endpoint_nng_peer_LDADD = $(NNG_LIBS)

check_PROGRAMS += tests/unit/sim/sim_tests
tests_unit_sim_sim_tests_LDADD = $(unit_ldadd)
tests_unit_sim_sim_tests_SOURCES = \
	tests/unit/sim/mem_transport_test.c \
	tests/unit/sim/sim_net_test.c \
	tests/unit/sim/sim_twin_option_test.c \
	tests/unit/sim/sim_twin_test.c

check_PROGRAMS += tests/unit/persistence/persistence_tests
tests_unit_persistence_persistence_tests_LDADD = $(unit_ldadd)
tests_unit_persistence_persistence_tests_SOURCES = \
	tests/unit/persistence/deletion_loss_test.c \
	tests/unit/persistence/delivery_durable_test.c \
	tests/unit/persistence/delivery_engine_test.c \
	tests/unit/persistence/delivery_test.c \
	tests/unit/persistence/journal_kit_test.c \
	tests/unit/persistence/journal_lmdb_test.c \
	tests/unit/persistence/journal_memory_test.c \
	tests/unit/persistence/journal_postgres_test.c \
	tests/unit/persistence/journal_op_test.c \
	tests/unit/persistence/journal_query_test.c \
	tests/unit/persistence/persistence_test.c \
	tests/unit/persistence/persistent_keep_test.c \
	tests/unit/persistence/persistent_random_test.c \
	tests/unit/persistence/persistent_recover_test.c \
	tests/unit/persistence/persistent_test.c \
	tests/unit/persistence/persistent_trace_test.c \
	tests/unit/persistence/power_loss_test.c \
	tests/unit/persistence/power_record.c \
	tests/unit/persistence/projection_test.c \
	tests/unit/persistence/unconfirmed_test.c

check_PROGRAMS += tests/unit/tls/tls_tests
tests_unit_tls_tls_tests_LDADD = $(unit_ldadd)
tests_unit_tls_tls_tests_SOURCES = \
	tests/unit/tls/hello_test.c \
	tests/unit/tls/memory_test.c \
	tests/unit/tls/session_test.c \
	tests/unit/tls/source_test.c \
	tests/unit/tls/stream_test.c

check_PROGRAMS += tests/unit/remote/remote_tests
tests_unit_remote_remote_tests_LDADD = $(unit_ldadd)
tests_unit_remote_remote_tests_SOURCES = \
	tests/unit/remote/activity_test.c \
	tests/unit/remote/association_test.c \
	tests/unit/remote/block_test.c \
	tests/unit/remote/check_test.c \
	tests/unit/remote/clients_test.c \
	tests/unit/remote/codec_test.c \
	tests/unit/remote/compress_test.c \
	tests/unit/remote/control_scan_test.c \
	tests/unit/remote/cookie_test.c \
	tests/unit/remote/credit_test.c \
	tests/unit/remote/deployment_codec_test.c \
	tests/unit/remote/deployment_refusal_test.c \
	tests/unit/remote/deployment_test.c \
	tests/unit/remote/done_test.c \
	tests/unit/remote/earlier_peer_test.c \
	tests/unit/remote/envelope_test.c \
	tests/unit/remote/topic_envelope_test.c \
	tests/unit/remote/events_test.c \
	tests/unit/remote/evolution_test.c \
	tests/unit/remote/fault_text_test.c \
	tests/unit/remote/faults_test.c \
	tests/unit/remote/flush_test.c \
	tests/unit/remote/frame_test.c \
	tests/unit/remote/full_lane_test.c \
	tests/unit/remote/garbage_test.c \
	tests/unit/remote/incarnation_test.c \
	tests/unit/remote/lanes_test.c \
	tests/unit/remote/codec_trace_test.c \
	tests/unit/remote/traced_test.c \
	tests/unit/remote/bottleneck_test.c \
	tests/unit/remote/link_test.c \
	tests/unit/remote/location_test.c \
	tests/unit/remote/lookup_test.c \
	tests/unit/remote/lost_test.c \
	tests/unit/remote/parcel_test.c \
	tests/unit/remote/poll_test.c \
	tests/unit/remote/pressure_test.c \
	tests/unit/remote/reach_test.c \
	tests/unit/remote/redelivery_test.c \
	tests/unit/remote/reliable_test.c \
	tests/unit/remote/reload_test.c \
	tests/unit/remote/renew_test.c \
	tests/unit/remote/remote_test.c \
	tests/unit/remote/secure_test.c \
	tests/unit/remote/serialization_test.c \
	tests/unit/remote/serialize_test.c \
	tests/unit/remote/trouble_test.c \
	tests/unit/remote/untrusted_test.c \
	tests/unit/remote/waiting_test.c
if TEST_PROTOBUF_C
tests_unit_remote_remote_tests_SOURCES += tests/unit/remote/protobuf_test.c
nodist_tests_unit_remote_remote_tests_SOURCES = tests/unit/remote/order.pb-c.c
tests/unit/remote/order.pb-c.c: tests/unit/remote/order.proto
	$(AM_V_GEN)$(MKDIR_P) tests/unit/remote && $(PROTOC_C) --proto_path=$(srcdir)/tests/unit/remote \
		--c_out=tests/unit/remote $(srcdir)/tests/unit/remote/order.proto
tests/unit/remote/protobuf_test.$(OBJEXT): tests/unit/remote/order.pb-c.c
CLEANFILES += tests/unit/remote/order.pb-c.c tests/unit/remote/order.pb-c.h
endif

check_PROGRAMS += tests/unit/cluster/cluster_tests
tests_unit_cluster_cluster_tests_LDADD = $(unit_ldadd)
tests_unit_cluster_cluster_tests_SOURCES = \
	tests/unit/cluster/adaptive_test.c \
	tests/unit/cluster/age_test.c \
	tests/unit/cluster/check_test.c \
	tests/unit/cluster/cluster_router_test.c \
	tests/unit/cluster/compat_test.c \
	tests/unit/cluster/detector_test.c \
	tests/unit/cluster/downing_lease_test.c \
	tests/unit/cluster/downing_strategies_test.c \
	tests/unit/cluster/downing_test.c \
	tests/unit/cluster/exclusive_test.c \
	tests/unit/cluster/forecast_test.c \
	tests/unit/cluster/drained_test.c \
	tests/unit/cluster/entity_cache_test.c \
	tests/unit/cluster/entity_keep_test.c \
	tests/unit/cluster/entity_remember_test.c \
	tests/unit/cluster/entity_reminder_test.c \
	tests/unit/cluster/entity_test.c \
	tests/unit/cluster/foreign_test.c \
	tests/unit/cluster/gossip_codec_test.c \
	tests/unit/cluster/gossip_test.c \
	tests/unit/cluster/heartbeat_test.c \
	tests/unit/cluster/join_test.c \
	tests/unit/cluster/registry_test.c \
	tests/unit/cluster/leader_test.c \
	tests/unit/cluster/marks_test.c \
	tests/unit/cluster/lease_test.c \
	tests/unit/cluster/member_facts_test.c \
	tests/unit/cluster/metrics_gossip_test.c \
	tests/unit/cluster/metrics_proc_test.c \
	tests/unit/cluster/metrics_test.c \
	tests/unit/cluster/own_end_test.c \
	tests/unit/cluster/phi_test.c \
	tests/unit/cluster/audience_test.c \
	tests/unit/cluster/pubsub_envelope_test.c \
	tests/unit/cluster/pubsub_frame_test.c \
	tests/unit/cluster/pubsub_nodes_test.c \
	tests/unit/cluster/pubsub_registry_test.c \
	tests/unit/cluster/pubsub_route_test.c \
	tests/unit/cluster/pubsub_test.c \
	tests/unit/cluster/removed_test.c \
	tests/unit/cluster/replay_test.c \
	tests/unit/cluster/role_guard_test.c \
	tests/unit/cluster/rounds_test.c \
	tests/unit/cluster/router_core_test.c \
	tests/unit/cluster/schedule_test.c \
	tests/unit/cluster/seek_test.c \
	tests/unit/cluster/shard_store_test.c \
	tests/unit/cluster/sharding_test.c \
	tests/unit/cluster/shell_test.c \
	tests/unit/cluster/singleton_clusters_test.c \
	tests/unit/cluster/singleton_engine_test.c \
	tests/unit/cluster/singleton_test.c \
	tests/unit/cluster/starved_test.c \
	tests/unit/cluster/survivors_test.c \
	tests/unit/cluster/traced_test.c \
	tests/unit/cluster/votes_test.c \
	tests/unit/cluster/weakly_up_test.c

check_PROGRAMS += tests/unit/client/client_tests
tests_unit_client_client_tests_LDADD = $(unit_ldadd)
tests_unit_client_client_tests_SOURCES = \
	tests/unit/client/client_test.c \
	tests/unit/client/cluster_test.c \
	tests/unit/client/engine_test.c \
	tests/unit/client/frame_test.c \
	tests/unit/client/keys_test.c \
	tests/unit/client/sessions_test.c \
	tests/unit/client/topic_test.c

check_PROGRAMS += tests/unit/node/node_tests
tests_unit_node_node_tests_LDADD = $(unit_ldadd)
tests_unit_node_node_tests_SOURCES = \
	tests/unit/node/alive_test.c \
	tests/unit/node/bridge_request_test.c \
	tests/unit/node/cert_test.c \
	tests/unit/node/config_test.c \
	tests/unit/node/control_change_test.c \
	tests/unit/node/control_member_test.c \
	tests/unit/node/control_request_test.c \
	tests/unit/node/control_test.c \
	tests/unit/node/cookie_file_test.c \
	tests/unit/node/deadletters_test.c \
	tests/unit/node/doctor_asks_test.c tests/unit/node/doctor_causes_test.c \
	tests/unit/node/doctor_cycles_test.c tests/unit/node/doctor_hangs_test.c \
	tests/unit/node/doctor_node_test.c \
	tests/unit/node/doctor_test.c \
	tests/unit/node/fault_test.c \
	tests/unit/node/health_test.c \
	tests/unit/node/figures_test.c \
	tests/unit/node/logs_test.c \
	tests/unit/node/node_end_test.c \
	tests/unit/node/node_limits_test.c \
	tests/unit/node/node_log_test.c \
	tests/unit/node/node_options_test.c \
	tests/unit/node/node_remote_test.c \
	tests/unit/node/node_test.c \
	tests/unit/node/otlp_test.c \
	tests/unit/node/payload_json_test.c \
	tests/unit/node/record_ring_test.c \
	tests/unit/node/seed_dns_test.c \
	tests/unit/node/start_pages_test.c \
	tests/unit/node/why_test.c

check_PROGRAMS += tests/unit/management/management_tests
tests_unit_management_management_tests_LDADD = $(unit_ldadd)
tests_unit_management_management_tests_SOURCES = \
	tests/unit/management/access_test.c \
	tests/unit/management/answers_test.c \
	tests/unit/management/events_test.c \
	tests/unit/management/exposition_test.c \
	tests/unit/management/form_test.c \
	tests/unit/management/forward_test.c \
	tests/unit/management/routes_test.c \
	tests/unit/management/sessions_test.c \
	tests/unit/management/tell_test.c \
	tests/unit/management/stream_test.c

check_PROGRAMS += tests/unit/demo/demo_tests
tests_unit_demo_demo_tests_LDADD = $(unit_ldadd)
tests_unit_demo_demo_tests_SOURCES = \
	tests/unit/demo/http_test.c \
	tests/unit/demo/run_test.c \
	tests/unit/demo/stage_test.c \
	tests/unit/demo/threads_test.c

check_PROGRAMS += tests/unit/multinode/multinode_tests
tests_unit_multinode_multinode_tests_LDADD = $(unit_ldadd)
tests_unit_multinode_multinode_tests_SOURCES = \
	tests/unit/multinode/barrier_test.c \
	tests/unit/multinode/place_test.c

# What the program troupe has without libtroupe: the options, and the protocol that it speaks with a node.
check_PROGRAMS += tests/unit/cli/cli_tests
tests_unit_cli_cli_tests_LDADD = tests/unit/libunit.la libtroupe_base.la $(CJSON_LIBS) $(CUNIT_LIBS)
tests_unit_cli_cli_tests_SOURCES = $(cli_sources) \
	tests/unit/cli/archive_test.c \
	tests/unit/cli/sse_test.c tests/unit/cli/options_test.c \
	tests/unit/node/ctl_proto_test.c

# Its malloc() and pthread_mutex_lock() are its own.
check_PROGRAMS += tests/unit/remote/control_tests
tests_unit_remote_control_tests_LDADD = $(unit_ldadd)
tests_unit_remote_control_tests_SOURCES = tests/unit/remote/control_lane_test.c tests/unit/remote/control_cluster.c

# A program as users have them: the shared library, the public API.
check_PROGRAMS += tests/unit/actor/fault_tests
tests_unit_actor_fault_tests_LDADD = tests/unit/libunit.la libtroupe.la $(CUNIT_LIBS)
tests_unit_actor_fault_tests_SOURCES = tests/unit/actor/fault_test.c tests/unit/pattern/dataflow_fault_test.c

# Programs and plugins that need nothing but the public headers and libtroupe.
example_programs += examples/hello examples/ping examples/cluster examples/router examples/crash
examples_crash_SOURCES = examples/crash.c
examples_crash_LDADD = libtroupe.la
examples_hello_SOURCES = examples/hello.c
examples_hello_LDADD = libtroupe.la
examples_ping_SOURCES = examples/ping.c
examples_ping_LDADD = libtroupe.la
examples_cluster_SOURCES = examples/cluster.c
examples_cluster_LDADD = libtroupe.la
examples_router_SOURCES = examples/router.c
examples_router_LDADD = libtroupe.la

# Installed, so that `troupe node --load echo.so` works out of the box.
plugindir = $(pkglibdir)
plugin_LTLIBRARIES = examples/echo.la examples/counter.la
noinst_LTLIBRARIES += examples/deployed.la
examples_deployed_la_SOURCES = examples/deployed.c
examples_deployed_la_LDFLAGS = $(PLUGIN_LDFLAGS)
examples_deployed_la_LIBADD = libtroupe.la
examples_echo_la_SOURCES = examples/echo.c
examples_echo_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared
examples_echo_la_LIBADD = libtroupe.la
examples_counter_la_SOURCES = examples/counter.c
examples_counter_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared
examples_counter_la_LIBADD = libtroupe.la

# Timers and logging.
example_programs += examples/timers examples/logging
examples_timers_SOURCES = examples/timers.c
examples_timers_LDADD = libtroupe.la
examples_logging_SOURCES = examples/logging.c
examples_logging_LDADD = libtroupe.la
example_programs += examples/codec
examples_codec_SOURCES = examples/codec.c examples/codec.h examples/codec_stage.h
examples_codec_LDADD = libtroupe.la
example_programs += examples/test_actor
examples_test_actor_SOURCES = examples/test_actor.c
examples_test_actor_LDADD = libtroupe.la

# One feature each.
example_programs += examples/ask examples/breaker examples/bus examples/config examples/dispatcher examples/events \
	examples/extension examples/future examples/inbox examples/mailbox examples/seeded examples/stash examples/supervise \
	examples/watch
examples_ask_SOURCES = examples/ask.c
examples_ask_LDADD = libtroupe.la
examples_breaker_SOURCES = examples/breaker.c
examples_breaker_LDADD = libtroupe.la
examples_bus_SOURCES = examples/bus.c
examples_bus_LDADD = libtroupe.la
examples_config_SOURCES = examples/config.c
examples_config_LDADD = libtroupe.la
examples_dispatcher_SOURCES = examples/dispatcher.c
examples_dispatcher_LDADD = libtroupe.la
examples_events_SOURCES = examples/events.c
examples_events_LDADD = libtroupe.la
examples_extension_SOURCES = examples/extension.c
examples_extension_LDADD = libtroupe.la
examples_future_SOURCES = examples/future.c
examples_future_LDADD = libtroupe.la
examples_inbox_SOURCES = examples/inbox.c
examples_inbox_LDADD = libtroupe.la
examples_mailbox_SOURCES = examples/mailbox.c
examples_mailbox_LDADD = libtroupe.la
examples_seeded_SOURCES = examples/seeded.c
examples_seeded_LDADD = libtroupe.la
examples_stash_SOURCES = examples/stash.c
examples_stash_LDADD = libtroupe.la
examples_supervise_SOURCES = examples/supervise.c
examples_supervise_LDADD = libtroupe.la
examples_watch_SOURCES = examples/watch.c
examples_watch_LDADD = libtroupe.la
example_programs += examples/alias examples/balancing examples/category examples/custom_mailbox examples/deactivate examples/deployment \
	examples/durable examples/embedded examples/interaction examples/lifecycle examples/live examples/peek examples/pending \
	examples/pool examples/resource examples/routing examples/select
examples_alias_SOURCES = examples/alias.c
examples_alias_LDADD = libtroupe.la
examples_balancing_SOURCES = examples/balancing.c
examples_balancing_LDADD = libtroupe.la
examples_category_SOURCES = examples/category.c
examples_category_LDADD = libtroupe.la
examples_custom_mailbox_SOURCES = examples/custom_mailbox.c examples/lifo.h
examples_custom_mailbox_LDADD = libtroupe.la
examples_deactivate_SOURCES = examples/deactivate.c
examples_deactivate_LDADD = libtroupe.la
examples_deployment_SOURCES = examples/deployment.c
examples_deployment_LDADD = libtroupe.la
examples_durable_SOURCES = examples/durable.c
examples_durable_LDADD = libtroupe.la
examples_embedded_SOURCES = examples/embedded.c
examples_embedded_LDADD = libtroupe.la
examples_interaction_SOURCES = examples/interaction.c
examples_interaction_LDADD = libtroupe.la
examples_lifecycle_SOURCES = examples/lifecycle.c
examples_lifecycle_LDADD = libtroupe.la
examples_live_SOURCES = examples/live.c
examples_live_LDADD = libtroupe.la
examples_peek_SOURCES = examples/peek.c
examples_peek_LDADD = libtroupe.la
examples_pending_SOURCES = examples/pending.c
examples_pending_LDADD = libtroupe.la
examples_pool_SOURCES = examples/pool.c
examples_pool_LDADD = libtroupe.la
examples_resource_SOURCES = examples/resource.c
examples_resource_LDADD = libtroupe.la
examples_routing_SOURCES = examples/routing.c
examples_routing_LDADD = libtroupe.la
examples_select_SOURCES = examples/select.c
examples_select_LDADD = libtroupe.la

example_programs += examples/aggregator
examples_aggregator_SOURCES = examples/aggregator.c
examples_aggregator_LDADD = libtroupe.la
example_programs += examples/transfer
examples_transfer_SOURCES = examples/transfer.c examples/account.h
examples_transfer_LDADD = libtroupe.la

# The examples of the µJavaActors article; each checks its own figures.
example_programs += examples/command examples/countdown examples/map_reduce examples/producer_consumer examples/virus_scan
examples_command_SOURCES = examples/command.c examples/article.h
examples_command_LDADD = libtroupe.la
examples_countdown_SOURCES = examples/countdown.c examples/article.h examples/storm.h
examples_countdown_LDADD = libtroupe.la
examples_map_reduce_SOURCES = examples/map_reduce.c examples/article.h examples/map_reduce.h
examples_map_reduce_LDADD = libtroupe.la
examples_producer_consumer_SOURCES = examples/producer_consumer.c examples/article.h examples/shop.h examples/shop_times.h
examples_producer_consumer_LDADD = libtroupe.la
examples_virus_scan_SOURCES = examples/virus_scan.c examples/article.h examples/scan.h
examples_virus_scan_LDADD = libtroupe.la
example_programs += examples/reliable
examples_reliable_SOURCES = examples/reliable.c
examples_reliable_LDADD = libtroupe.la
example_programs += examples/remote_child
examples_remote_child_SOURCES = examples/remote_child.c
examples_remote_child_LDADD = libtroupe.la

# Samples of a cluster, for `troupe node --load`: worker dial-in, and word statistics.
noinst_LTLIBRARIES += examples/backend.la examples/frontend.la examples/stats.la examples/stats_master.la
examples_backend_la_SOURCES = examples/backend.c examples/transformation.h
examples_backend_la_LDFLAGS = $(PLUGIN_LDFLAGS)
examples_backend_la_LIBADD = libtroupe.la
examples_frontend_la_SOURCES = examples/frontend.c examples/transformation.h
examples_frontend_la_LDFLAGS = $(PLUGIN_LDFLAGS)
examples_frontend_la_LIBADD = libtroupe.la
examples_stats_la_SOURCES = examples/stats.c examples/stats.h examples/stats_service.h
examples_stats_la_LDFLAGS = $(PLUGIN_LDFLAGS)
examples_stats_la_LIBADD = libtroupe.la
examples_stats_master_la_SOURCES = examples/stats_master.c examples/oldest.h examples/stats.h examples/stats_service.h
examples_stats_master_la_LDFLAGS = $(PLUGIN_LDFLAGS)
examples_stats_master_la_LIBADD = libtroupe.la

# Work through a broker; a graph over two nodes.
example_programs += examples/broker examples/graph
examples_broker_SOURCES = examples/broker.c
examples_broker_LDADD = libtroupe.la
examples_graph_SOURCES = examples/graph.c
examples_graph_LDADD = libtroupe.la
# An application, in two versions for tests/system/apps.sh.
noinst_LTLIBRARIES += examples/hello_app.la examples/hello_app_two.la
examples_hello_app_la_SOURCES = examples/hello_app.c
examples_hello_app_la_LDFLAGS = $(PLUGIN_LDFLAGS)
examples_hello_app_la_LIBADD = libtroupe.la
examples_hello_app_two_la_SOURCES = examples/hello_app.c
examples_hello_app_two_la_CPPFLAGS = $(AM_CPPFLAGS) -DWORLD='"new world"'
examples_hello_app_two_la_LDFLAGS = $(PLUGIN_LDFLAGS)
examples_hello_app_two_la_LIBADD = libtroupe.la
# Work that is pulled.
noinst_LTLIBRARIES += examples/pulling.la
examples_pulling_la_SOURCES = examples/pulling.c
examples_pulling_la_LDFLAGS = $(PLUGIN_LDFLAGS)
examples_pulling_la_LIBADD = libtroupe.la

# The factorial sample: two plugins.
noinst_LTLIBRARIES += examples/factorial_backend.la examples/factorial_frontend.la
examples_factorial_backend_la_SOURCES = examples/factorial_backend.c
examples_factorial_backend_la_LDFLAGS = $(PLUGIN_LDFLAGS)
examples_factorial_backend_la_LIBADD = libtroupe.la
examples_factorial_frontend_la_SOURCES = examples/factorial_frontend.c
examples_factorial_frontend_la_LDFLAGS = $(PLUGIN_LDFLAGS)
examples_factorial_frontend_la_LIBADD = libtroupe.la
noinst_PROGRAMS += examples/chat
examples_chat_SOURCES = examples/chat.c examples/chat.h
examples_chat_LDADD = libtroupe.la
noinst_PROGRAMS += examples/member
examples_member_SOURCES = examples/member.c
examples_member_LDADD = libtroupe.la

# Sockets.
example_programs += examples/echo_ack examples/echo_nack examples/frames_tls examples/udp
examples_echo_ack_SOURCES = examples/echo_ack.c examples/echo_peer.h examples/echo_server.h
examples_echo_ack_LDADD = libtroupe.la
examples_echo_nack_SOURCES = examples/echo_nack.c examples/echo_peer.h examples/echo_server.h
examples_echo_nack_LDADD = libtroupe.la
examples_frames_tls_SOURCES = examples/frames_tls.c
examples_frames_tls_LDADD = libtroupe.la
examples_udp_SOURCES = examples/udp.c
examples_udp_LDADD = libtroupe.la

# State that outlives its actor.
example_programs += examples/persistent
examples_persistent_SOURCES = examples/persistent.c
examples_persistent_LDADD = libtroupe.la

# An order service: entities, reminders, a projection, a singleton.
noinst_PROGRAMS += examples/room
examples_room_SOURCES = examples/room.c
examples_room_LDADD = libtroupe.la
noinst_PROGRAMS += examples/room_caller
examples_room_caller_SOURCES = examples/room_caller.c
examples_room_caller_LDADD = libtroupe.la
example_programs += examples/registry
examples_registry_SOURCES = examples/registry.c
examples_registry_LDADD = libtroupe.la
noinst_PROGRAMS += examples/orders
examples_orders_SOURCES = examples/orders.c
examples_orders_LDADD = libtroupe.la
example_programs += examples/health examples/spool
examples_health_SOURCES = examples/health.c
examples_health_LDADD = libtroupe.la
examples_spool_SOURCES = examples/spool.c
examples_spool_LDADD = libtroupe.la
# State machines; the first one as a shared object, too, which `troupe fsm dot` reads.
example_programs += examples/buncher examples/philosophers
examples_buncher_SOURCES = examples/buncher.c
examples_buncher_LDADD = libtroupe.la
examples_philosophers_SOURCES = examples/philosophers.c
examples_philosophers_LDADD = libtroupe.la
noinst_LTLIBRARIES += examples/buncher_drawing.la
examples_buncher_drawing_la_SOURCES = examples/buncher.c
examples_buncher_drawing_la_CFLAGS = $(AM_CFLAGS)
examples_buncher_drawing_la_LDFLAGS = $(PLUGIN_LDFLAGS)
examples_buncher_drawing_la_LIBADD = libtroupe.la
example_programs += examples/flow examples/cache examples/ending examples/periodic
examples_cache_SOURCES = examples/cache.c
examples_cache_LDADD = libtroupe.la
examples_ending_SOURCES = examples/ending.c
examples_ending_LDADD = libtroupe.la
examples_periodic_SOURCES = examples/periodic.c
examples_periodic_LDADD = libtroupe.la
examples_flow_SOURCES = examples/flow.c
examples_flow_LDADD = libtroupe.la
example_programs += examples/throttle
examples_throttle_SOURCES = examples/throttle.c
examples_throttle_LDADD = libtroupe.la
example_programs += examples/name_reuse
examples_name_reuse_SOURCES = examples/name_reuse.c
examples_name_reuse_LDADD = libtroupe.la
example_programs += examples/agent
examples_agent_SOURCES = examples/agent.c
examples_agent_LDADD = libtroupe.la
example_programs += examples/coordinated
examples_coordinated_SOURCES = examples/coordinated.c
examples_coordinated_LDADD = libtroupe.la
example_programs += examples/proxy
examples_proxy_SOURCES = examples/proxy.c
examples_proxy_LDADD = libtroupe.la

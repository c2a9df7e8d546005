# ctl_proto.c is compiled into the library (the node's side) and into the program: the base list is both.
troupe_base_sources += cluster/node/ctl_proto.c

cli_sources = \
	cluster/cli/cli.h \
	cluster/cli/suggest.c \
	cluster/cli/options.c \
	cluster/cli/commands.c \
	cluster/cli/client.c \
	cluster/cli/print.c \
	cluster/cli/table.c \
	cluster/cli/library.c \
	cluster/cli/help.c \
	cluster/cli/completion.c \
	cluster/cli/dev.c \
	cluster/cli/cmd_run.c \
	cluster/cli/cmd_members.c \
	cluster/cli/cmd_all.c \
	cluster/cli/cmd_status.c \
	cluster/cli/cmd_why.c \
	cluster/cli/cmd_change.c \
	cluster/cli/cmd_drain.c \
	cluster/cli/cmd_bridge.c \
	cluster/cli/cmd_events.c \
	cluster/cli/cmd_actors.c \
	cluster/cli/cmd_peers.c \
	cluster/cli/cmd_reach.c \
	cluster/cli/cmd_shards.c \
	cluster/cli/cmd_singleton.c \
	cluster/cli/cmd_top.c \
	cluster/cli/cmd_topics.c \
	cluster/cli/cmd_trace.c \
	cluster/cli/cmd_spawn.c \
	cluster/cli/cmd_upgrade.c \
	cluster/cli/cmd_fault.c \
	cluster/cli/cmd_graph.c \
	cluster/cli/cmd_metrics.c \
	cluster/cli/cmd_multinode.c \
	cluster/cli/cmd_new.c \
	cluster/cli/new_files.c \
	cluster/cli/archive.c \
	cluster/cli/archive.h \
	cluster/cli/cmd_check.c \
	cluster/cli/cmd_report.c \
	cluster/cli/cmd_dashboard.c \
	cluster/cli/cmd_doctor.c \
	cluster/cli/stack.c \
	cluster/cli/stack.h \
	cluster/cli/cmd_member.c \
	cluster/cli/cmd_observe.c \
	cluster/cli/cmd_pack.c \
	cluster/cli/via.c \
	cluster/cli/endpoint.c \
	cluster/cli/endpoint.h \
	cluster/cli/endpoint_events.c \
	cluster/cli/loopback_token.c \
	cluster/cli/loopback_token.h \
	cluster/cli/sse.c \
	cluster/cli/sse.h
troupe_SOURCES += cluster/cli/main.c $(cli_sources)
cluster/cli/new_files.$(OBJEXT): $(wildcard $(top_srcdir)/cluster/cli/new/*.in) # included by the assembler

test_programs += tests/system/ctl_fake
tests_system_ctl_fake_SOURCES = tests/system/ctl_fake.c
tests_system_ctl_fake_LDADD = libtroupe_base.la $(CJSON_LIBS)


# ctl_proto.c is compiled into the library (the node's side) and into the program: the base list is both.
troupe_base_sources += cluster/node/ctl_proto.c

cli_sources = cluster/cli/cli.h cluster/cli/suggest.c cluster/cli/options.c cluster/cli/commands.c \
	cluster/cli/client.c cluster/cli/print.c cluster/cli/table.c cluster/cli/library.c cluster/cli/help.c \
	cluster/cli/completion.c cluster/cli/dev.c cluster/cli/cmd_run.c cluster/cli/cmd_members.c \
	cluster/cli/cmd_status.c cluster/cli/cmd_why.c cluster/cli/cmd_change.c cluster/cli/cmd_events.c cluster/cli/cmd_actors.c cluster/cli/cmd_peers.c cluster/cli/cmd_fault.c \
	cluster/cli/cmd_multinode.c
troupe_SOURCES += cluster/cli/main.c $(cli_sources)

noinst_PROGRAMS += tests/system/ctl_fake
tests_system_ctl_fake_SOURCES = tests/system/ctl_fake.c
tests_system_ctl_fake_LDADD = libtroupe_base.la $(CJSON_LIBS)

check_PROGRAMS += tests/unit/node/ctl_proto_test tests/unit/cli/options_test
tests_unit_node_ctl_proto_test_SOURCES = tests/unit/node/ctl_proto_test.c
tests_unit_node_ctl_proto_test_LDADD = libtroupe_base.la $(CJSON_LIBS) $(CUNIT_LIBS)
tests_unit_cli_options_test_SOURCES = tests/unit/cli/options_test.c $(cli_sources)
tests_unit_cli_options_test_LDADD = libtroupe_base.la $(CJSON_LIBS) $(CUNIT_LIBS)

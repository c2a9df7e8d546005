troupe_sources += cluster/node/base64.c cluster/node/carry.c cluster/node/cert_main.c cluster/node/cert_openssl.c \
	cluster/node/config_main.c \
	cluster/node/control.c cluster/node/control_actors.c cluster/node/control_call.c \
	cluster/node/control_change.c cluster/node/control_commands.c cluster/node/control_events.c \
	cluster/node/control_fault.c cluster/node/control_join.c \
	cluster/node/control_member.c cluster/node/control_members.c cluster/node/control_peers.c cluster/node/control_request.c \
	cluster/node/control_shutdown.c cluster/node/control_socket.c cluster/node/control_view.c cluster/node/control_why.c cluster/node/node.c \
	cluster/node/node_check.c cluster/node/node_log.c cluster/node/node_main.c cluster/node/node_membership.c cluster/node/node_options.c \
	cluster/node/node_plugin.c cluster/node/node_shutdown.c cluster/node/node_start.c cluster/node/payload_json.c
pkginclude_HEADERS += include/troupe/node.h include/troupe/plugin.h

check_PROGRAMS += tests/unit/node/config_test
tests_unit_node_config_test_SOURCES = tests/unit/node/config_test.c
tests_unit_node_config_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/node/control_test
tests_unit_node_control_test_SOURCES = tests/unit/node/control_test.c
tests_unit_node_control_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/node/control_member_test tests/unit/node/why_test
tests_unit_node_why_test_SOURCES = tests/unit/node/why_test.c
tests_unit_node_why_test_LDADD = $(TEST_LDADD)
tests_unit_node_control_member_test_SOURCES = tests/unit/node/control_member_test.c
tests_unit_node_control_member_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/node/control_change_test
tests_unit_node_control_change_test_SOURCES = tests/unit/node/control_change_test.c
tests_unit_node_control_change_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/node/control_request_test
tests_unit_node_control_request_test_SOURCES = tests/unit/node/control_request_test.c
tests_unit_node_control_request_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/node/node_options_test
tests_unit_node_node_options_test_SOURCES = tests/unit/node/node_options_test.c
tests_unit_node_node_options_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/node/payload_json_test
tests_unit_node_payload_json_test_SOURCES = tests/unit/node/payload_json_test.c
tests_unit_node_payload_json_test_LDADD = $(TEST_LDADD)

noinst_PROGRAMS += tests/fuzz/control_fuzz tests/fuzz/config_fuzz
tests_fuzz_control_fuzz_SOURCES = tests/fuzz/control_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_control_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_control_fuzz_LDFLAGS = $(FUZZ_LINK)
tests_fuzz_config_fuzz_SOURCES = tests/fuzz/config_fuzz.c $(FUZZ_DRIVER)
tests_fuzz_config_fuzz_LDADD = $(TEST_LDADD)
tests_fuzz_config_fuzz_LDFLAGS = $(FUZZ_LINK)
check_PROGRAMS += tests/unit/node/fault_test
tests_unit_node_fault_test_SOURCES = tests/unit/node/fault_test.c
tests_unit_node_fault_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/node/node_test
tests_unit_node_node_test_SOURCES = tests/unit/node/node_test.c
tests_unit_node_node_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/node/cert_test
tests_unit_node_cert_test_SOURCES = tests/unit/node/cert_test.c
tests_unit_node_cert_test_LDADD = $(TEST_LDADD)
check_PROGRAMS += tests/unit/node/node_end_test
tests_unit_node_node_end_test_SOURCES = tests/unit/node/node_end_test.c
tests_unit_node_node_end_test_LDADD = $(TEST_LDADD)

# Contact points by DNS.
troupe_sources += cluster/node/seed_dns.c
if HAVE_CARES
check_PROGRAMS += tests/unit/node/seed_dns_test
tests_unit_node_seed_dns_test_SOURCES = tests/unit/node/seed_dns_test.c
tests_unit_node_seed_dns_test_LDADD = $(TEST_LDADD)
endif

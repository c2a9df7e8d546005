# tests/system: what its scripts start besides the program troupe.
test_programs += tests/system/crowd
tests_system_crowd_SOURCES = tests/system/crowd.c
tests_system_crowd_LDADD = $(TEST_LDADD)
noinst_LTLIBRARIES += tests/system/late.la
tests_system_late_la_SOURCES = tests/system/late.c
tests_system_late_la_LDFLAGS = $(PLUGIN_LDFLAGS)
tests_system_late_la_LIBADD = libtroupe.la
noinst_LTLIBRARIES += tests/system/stuck.la
tests_system_stuck_la_SOURCES = tests/system/stuck.c
tests_system_stuck_la_LDFLAGS = $(PLUGIN_LDFLAGS)
tests_system_stuck_la_LIBADD = libtroupe.la
test_programs += tests/system/node_run_program
tests_system_node_run_program_SOURCES = tests/system/node_run_program.c
tests_system_node_run_program_LDADD = libtroupe.la
test_programs += tests/system/tls_lines
tests_system_tls_lines_SOURCES = tests/system/tls_lines.c
tests_system_tls_lines_LDADD = $(TEST_LDADD)
test_programs += tests/system/web
tests_system_web_SOURCES = tests/system/web.c
tests_system_web_LDADD = $(TEST_LDADD)
test_programs += tests/system/journal_postgres
tests_system_journal_postgres_SOURCES = tests/system/journal_postgres.c \
	tests/system/journal_postgres_delete.c
tests_system_journal_postgres_LDADD = $(TEST_LDADD)
noinst_LTLIBRARIES += tests/system/many.la
tests_system_many_la_SOURCES = tests/system/many.c
tests_system_many_la_LDFLAGS = $(PLUGIN_LDFLAGS)
tests_system_many_la_LIBADD = libtroupe.la
noinst_LTLIBRARIES += tests/system/spawned_1.la
tests_system_spawned_1_la_SOURCES = tests/system/spawned.c
tests_system_spawned_1_la_CPPFLAGS = $(AM_CPPFLAGS) -DSPAWNED_VERSION='"1"'
tests_system_spawned_1_la_LDFLAGS = $(PLUGIN_LDFLAGS)
tests_system_spawned_1_la_LIBADD = libtroupe.la
noinst_LTLIBRARIES += tests/system/spawned_2.la
tests_system_spawned_2_la_SOURCES = tests/system/spawned.c
tests_system_spawned_2_la_CPPFLAGS = $(AM_CPPFLAGS) -DSPAWNED_VERSION='"2"' -DSPAWNED_LATER
tests_system_spawned_2_la_LDFLAGS = $(PLUGIN_LDFLAGS)
tests_system_spawned_2_la_LIBADD = libtroupe.la
noinst_LTLIBRARIES += tests/system/upgraded_1.la
tests_system_upgraded_1_la_SOURCES = tests/system/upgraded.c
tests_system_upgraded_1_la_CPPFLAGS = $(AM_CPPFLAGS) -DUP_VERSION=1
tests_system_upgraded_1_la_LDFLAGS = $(PLUGIN_LDFLAGS)
tests_system_upgraded_1_la_LIBADD = libtroupe.la
noinst_LTLIBRARIES += tests/system/upgraded_2.la
tests_system_upgraded_2_la_SOURCES = tests/system/upgraded.c
tests_system_upgraded_2_la_CPPFLAGS = $(AM_CPPFLAGS) -DUP_VERSION=2
tests_system_upgraded_2_la_LDFLAGS = $(PLUGIN_LDFLAGS)
tests_system_upgraded_2_la_LIBADD = libtroupe.la
noinst_LTLIBRARIES += tests/system/upgraded_3.la
tests_system_upgraded_3_la_SOURCES = tests/system/upgraded.c
tests_system_upgraded_3_la_CPPFLAGS = $(AM_CPPFLAGS) -DUP_VERSION=3
tests_system_upgraded_3_la_LDFLAGS = $(PLUGIN_LDFLAGS)
tests_system_upgraded_3_la_LIBADD = libtroupe.la
noinst_LTLIBRARIES += tests/system/upgraded_4.la
tests_system_upgraded_4_la_SOURCES = tests/system/upgraded.c
tests_system_upgraded_4_la_CPPFLAGS = $(AM_CPPFLAGS) -DUP_VERSION=4
tests_system_upgraded_4_la_LDFLAGS = $(PLUGIN_LDFLAGS)
tests_system_upgraded_4_la_LIBADD = libtroupe.la
noinst_LTLIBRARIES += tests/system/upgraded_5.la
tests_system_upgraded_5_la_SOURCES = tests/system/upgraded.c
tests_system_upgraded_5_la_CPPFLAGS = $(AM_CPPFLAGS) -DUP_VERSION=5
tests_system_upgraded_5_la_LDFLAGS = $(PLUGIN_LDFLAGS)
tests_system_upgraded_5_la_LIBADD = libtroupe.la
noinst_LTLIBRARIES += tests/system/upgraded_6.la
tests_system_upgraded_6_la_SOURCES = tests/system/upgraded.c
tests_system_upgraded_6_la_CPPFLAGS = $(AM_CPPFLAGS) -DUP_VERSION=6
tests_system_upgraded_6_la_LDFLAGS = $(PLUGIN_LDFLAGS)
tests_system_upgraded_6_la_LIBADD = libtroupe.la

# Programs and plugins that need nothing but the public headers and libtroupe.
noinst_PROGRAMS += examples/hello examples/ping examples/cluster examples/router
noinst_PROGRAMS += examples/hello examples/ping examples/cluster examples/crash
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
examples_echo_la_SOURCES = examples/echo.c
examples_echo_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared
examples_echo_la_LIBADD = libtroupe.la
examples_counter_la_SOURCES = examples/counter.c
examples_counter_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared
examples_counter_la_LIBADD = libtroupe.la

# Timers and logging.
noinst_PROGRAMS += examples/timers examples/logging
examples_timers_SOURCES = examples/timers.c
examples_timers_LDADD = libtroupe.la
examples_logging_SOURCES = examples/logging.c
examples_logging_LDADD = libtroupe.la
noinst_PROGRAMS += examples/test_actor
examples_test_actor_SOURCES = examples/test_actor.c
examples_test_actor_LDADD = libtroupe.la

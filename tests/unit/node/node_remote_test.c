/* node_remote_test.c - keys of a node reach its remoting. */
#include "actor/kernel/system.h"
#include "remote/association/context.h"
#include "tests/unit/node/inside.h"

/* FD-21, CONF-20, WATCH-8: the detector of remote watches has its own keys, not those of the
 * cluster. */
static void
keys_of_the_watch_detector_reach_remoting(void)
{
#define WATCH "remote.watch-failure-detector."
    static const char *const extra[] = { WATCH "implementation-class=deadline",
                                         WATCH "threshold=9.5",
                                         WATCH "heartbeat-interval=1100ms",
                                         WATCH "acceptable-heartbeat-pause=2200ms",
                                         WATCH "max-sample-size=330",
                                         WATCH "min-std-deviation=440ms",
                                         WATCH "expected-response-after=5500ms",
                                         "cluster.failure-detector.threshold=7.5",
                                         "cluster.failure-detector.acceptable-heartbeat-pause=6s",
                                         NULL };
#undef WATCH
    trp_node *node = NULL;
    trp_node_error error = { "" };
    UNIT_REQUIRE(node_open(extra, &node, &error) == TRP_OK);
    const trpi_remote *remote = trp_node_system(node)->remote_arg;
    const trpi_remote_options *o = &remote->options;
    UNIT_TEXT(o->watch_detector->name, "deadline");
    UNIT_TRUE(o->watch_threshold == 9.5);
    UNIT_EQUAL(o->watch_heartbeat_ms, 1100);
    UNIT_EQUAL(o->watch_pause_ms, 2200);
    UNIT_EQUAL(o->watch_samples_max, 330);
    UNIT_EQUAL(o->watch_deviation_ms, 440);
    UNIT_EQUAL(o->watch_expected_ms, 5500);
    trp_node_close(node);
}

/* CONF-16, CONF-17, CONF-18: trust, the log and the detector of links */
static void
keys_of_trust_log_and_links_reach_remoting(void)
{
#define LINK "remote.transport-failure-detector."
    static const char *const extra[] = { LINK "implementation-class=deadline",
                                         LINK "threshold=6.5",
                                         LINK "heartbeat-interval=1200ms",
                                         LINK "acceptable-heartbeat-pause=2300ms",
                                         LINK "max-sample-size=340",
                                         LINK "min-std-deviation=450ms",
                                         "remote.untrusted-mode=on",
                                         "remote.log-sent-messages=on",
                                         "remote.log-received-messages=on",
                                         "remote.log-frame-size-exceeding=1234B",
                                         "remote.log-remote-lifecycle-events=warning",
                                         NULL };
#undef LINK
    trp_node *node = NULL;
    trp_node_error error = { "" };
    for (int given = 0; given < 2; given++) {
        UNIT_REQUIRE(node_open(given ? extra : NULL, &node, &error) == TRP_OK);
        const trpi_remote *remote = trp_node_system(node)->remote_arg;
        const trpi_remote_options *o = &remote->options;
        UNIT_EQUAL(strcmp(o->link_detector->name, "deadline") == 0, given);
        UNIT_TRUE(o->link_threshold == (given ? 6.5 : 7.0));
        UNIT_EQUAL(o->link_heartbeat_ms, given ? 1200 : 1000);
        UNIT_EQUAL(o->link_pause_ms, given ? 2300 : 3000);
        UNIT_EQUAL(o->link_samples_max, given ? 340 : 100);
        UNIT_EQUAL(o->link_deviation_ms, given ? 450 : 100);
        UNIT_EQUAL(o->untrusted, given);
        UNIT_EQUAL(o->log_sent, given);
        UNIT_EQUAL(o->log_received, given);
        UNIT_EQUAL(o->log_size_exceeding, given ? 1234 : 0);
        UNIT_EQUAL(o->lifecycle_log == TRP_LOG_WARNING, given);
        trp_node_close(node);
    }
}

UNIT_BEGIN("node_remote")
UNIT(keys_of_trust_log_and_links_reach_remoting)
UNIT(keys_of_the_watch_detector_reach_remoting)
UNIT_END

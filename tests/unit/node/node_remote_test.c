/* node_remote_test.c - keys of a node reach its remoting. */
#include "actor/system.h"
#include "remote/internal.h"
#include "tests/unit/node/inside.h"

/* FD-21, CONF-20: the detector of remote watches has its own keys, not those of the cluster. */
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

UNIT_BEGIN("node_remote")
UNIT(keys_of_the_watch_detector_reach_remoting)
UNIT_END

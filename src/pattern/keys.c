/* keys.c - the keys of routers, of the coordinated shutdown, of flows and of the test kit. */
#include "pattern/pattern.h"

#include <troupe/dataflow.h>
#include <troupe/router.h>
#include <troupe/testkit.h>

#include "base/config_keys.h"

/* clang-format off */
/* Of a router in deployment. */
static const trpi_config_row router_rows[] = {
    { "deployment.*.router", TEXT, "from-code", 0, 0,
      "from-code|round-robin|random|smallest-mailbox|broadcast|scatter-gather|tail-chopping|"
      "balancing|consistent-hashing|adaptive",
      "Routing logic of a router that the code makes at this path, or the name of a registered "
      "logic; -pool or -group may be appended. from-code: the code decides, also about the keys "
      "below." },
    { "deployment.*.nr-of-instances", INT, "1", 1, TRP_ROUTEES_MAX, NULL,
      "Number of routees that the router starts as its children; unused when routees.paths is "
      "set." },
    { "deployment.*.target.nodes", LIST, "", 0, 0, NULL,
      "Nodes on which a router starts its routees, in turn: { \"troupe.tcp://system@host:port\" "
      "}." },
    { "deployment.*.routees.paths", LIST, "", 0, 0, NULL,
      "Paths of existing actors to route to; the router then starts no routees of its own." },
    { "deployment.*.within", DURATION, MS_OF(TRP_ROUTER_WITHIN_MS_DEFAULT), 1, HOURS, NULL,
      "scatter-gather, tail-chopping: how long the router waits for a reply." },
    { "deployment.*.tail-chopping-router.interval", DURATION,
      MS_OF(TRP_ROUTER_INTERVAL_MS_DEFAULT), 1, HOURS, NULL,
      "tail-chopping: pause before the next routee is asked." },
    { "deployment.*.virtual-nodes-factor", INT,
      TEXT_OF(TRP_ROUTER_VIRTUAL_NODES_DEFAULT), 1, TRP_ROUTER_VIRTUAL_NODES_MAX, NULL,
      "consistent-hashing: virtual nodes of each routee on the hash ring." },
    { "deployment.*.router-dispatcher", TEXT, "", 0, 0, NULL,
      "Dispatcher of the router's own actor, which manages the routees; empty: the code decides." },
    { "deployment.*.logic-settings", LIST, "", 0, 0, NULL,
      "Settings of a routing logic that the program registered, each \"KEY=VALUE\"; they override "
      "those of the code." },
    { "deployment.*.resizer.lower-bound", INT,
      TEXT_OF(TRP_RESIZER_LOWER_BOUND_DEFAULT), 1, TRP_ROUTEES_MAX, NULL,
      "Smallest number of routees. Setting any key of this section makes the pool grow and "
      "shrink." },
    { "deployment.*.resizer.upper-bound", INT,
      TEXT_OF(TRP_RESIZER_UPPER_BOUND_DEFAULT), 1, TRP_ROUTEES_MAX, NULL, "Largest number of "
                                                                          "routees." },
    { "deployment.*.resizer.pressure-threshold", INT,
      TEXT_OF(TRP_RESIZER_PRESSURE_THRESHOLD_DEFAULT), 0, 1000000000, NULL,
      "When a routee counts as busy. 0: it is handling a message; 1: and has at least one more in "
      "its mailbox; 2 and more: it has at least this many in its mailbox." },
    { "deployment.*.resizer.rampup-rate", FLOAT,
      TEXT_OF(TRP_RESIZER_RAMPUP_RATE_DEFAULT), 0, 65536, NULL,
      "When all routees are busy, their number grows by this fraction, rounded up." },
    { "deployment.*.resizer.backoff-threshold", FLOAT,
      TEXT_OF(TRP_RESIZER_BACKOFF_THRESHOLD_DEFAULT), -1, 1, NULL,
      "When a smaller fraction than this of the routees is busy, their number shrinks; 0 or less: "
      "never." },
    { "deployment.*.resizer.backoff-rate", FLOAT,
      TEXT_OF(TRP_RESIZER_BACKOFF_RATE_DEFAULT), 0, 1, NULL,
      "Fraction by which the number of routees shrinks, rounded up." },
    { "deployment.*.resizer.stop-delay", DURATION,
      MS_OF(TRP_RESIZER_STOP_DELAY_MS_DEFAULT), 0, HOURS, NULL,
      "Delay between the removal of a routee from the router and the poison pill that stops it." },
    { "deployment.*.resizer.messages-per-resize", INT,
      TEXT_OF(TRP_RESIZER_MESSAGES_PER_RESIZE_DEFAULT), 1, 1000000000, NULL,
      "Number of messages after which the load is checked again." },
    { NULL, TEXT, NULL, 0, 0, NULL, NULL, false },
};

const trpi_config_part trpi_router_keys = KEYS_OF(router_rows, NULL);

/* Of the coordinated shutdown. */
static const trpi_config_row shutdown_rows[] = {
    { "coordinated-shutdown.default-phase-timeout", DURATION, "5s", 1, DAYS, NULL,
      "Timeout of each phase of coordinated shutdown that has no timeout of its own." },
    { "coordinated-shutdown.phases.*.timeout", DURATION, "5s", 1, DAYS, NULL,
      "Timeout of this phase: phases \"service-stop\" { timeout = 10s }. If not set: "
      "cluster.leave-timeout for cluster-leave to cluster-shutdown, 10s for "
      "cluster-sharding-shutdown-region and actor-system-terminate." },
    { "coordinated-shutdown.phases.*.depends-on", LIST, "", 0, 0, NULL,
      "Phases that must be complete before this one begins; a section whose title is not a phase "
      "yet adds a phase." },
    { "coordinated-shutdown.phases.*.recover", BOOL, "on", 0, 0, NULL,
      "off: when the phase fails or times out, the phases that follow it are skipped." },
    { "coordinated-shutdown.phases.*.enabled", BOOL, "on", 0, 0, NULL,
      "off: the tasks of the phase are not run." },
    { NULL, TEXT, NULL, 0, 0, NULL, NULL, false },
};

const trpi_config_part trpi_shutdown_keys = KEYS_OF(shutdown_rows, NULL);

/* Of flows. */
static const trpi_config_row flow_rows[] = {
    { "flows.max", INT, TEXT_OF(TRP_FLOWS_MAX_DEFAULT), 1, TRP_FLOWS_MAX, NULL,
      "Number of flows (troupe/dataflow.h) that may be started and not finished; another one is "
      "refused." },
    { "flows.stack-size", SIZE, KIB_OF(TRPI_FLOW_STACK_KIB_DEFAULT), TRP_FLOW_STACK_BYTES_MIN,
      TRP_FLOW_STACK_BYTES_MAX, NULL,
      "Address space of the stack of a flow; it takes memory as far as it is used. A flow that "
      "needs more fails." },
    { "flows.idle-stacks", INT, TEXT_OF(TRPI_FLOW_IDLE_STACKS_DEFAULT), 0, TRP_FLOWS_MAX, NULL,
      "Number of stacks of flows that have finished which are kept for the next ones, with the "
      "memory that they have used, 8 KiB each as a rule." },
    { NULL, TEXT, NULL, 0, 0, NULL, NULL, false },
};

const trpi_config_part trpi_flow_keys = KEYS_OF(flow_rows, NULL);

/* Of the test kit. */
static const trpi_config_row testkit_rows[] = {
    { "test.timefactor", FLOAT, "1.0", 0.001, 1000000, NULL,
      "Factor for all time limits of the test kit, for slow machines." },
    { "test.single-expect-default", DURATION, MS_OF(TRP_TEST_EXPECT_MS_DEFAULT), 1, HOURS, NULL,
      "How long a probe waits for an expected message when the test names no time." },
    { "test.filter-leeway", DURATION, MS_OF(TRP_TEST_LEEWAY_MS_DEFAULT), 1, HOURS, NULL,
      "How long an event filter waits for events that are still missing." },
    { "test.default-timeout", DURATION, MS_OF(TRP_TEST_TIMEOUT_MS_DEFAULT), 1, HOURS, NULL,
      "Timeout of asks and stops of the test kit." },
    { NULL, TEXT, NULL, 0, 0, NULL, NULL, false },
};

const trpi_config_part trpi_testkit_keys = KEYS_OF(testkit_rows, NULL);
/* clang-format on */

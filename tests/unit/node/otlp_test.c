/* otlp_test.c - the export of traces where no collector answers: what waits, what is dropped. */
#include <troupe/trace.h>

#include "cluster/node/otlp.h"
#include "tests/unit/node/inside.h"

/* Leave hops, each at once: of messages to nobody. */
static void
hops_leave(trp_node *node, uint32_t count)
{
    static const trp_trace outside = { 1, 2, 3, 0, 0 };
    trp_ref nobody = TRP_REF_NONE;
    for (uint32_t i = 0; i < count; i++) {
        trp_system_tell_traced(trp_node_system(node), nobody, nobody, &outside, &trp_string_type,
                               "gone", 4);
    }
}

/* Wait until a request that began later has failed. */
static void
failure_wait(trp_node *node)
{
    uint64_t before = trpi_otlp_count(node->otlp).failures;
    UNIT_WAIT(trpi_otlp_count(node->otlp).failures >= before + 2, 120000);
}

/* TRP_TRACE_HOPS_MAX, and one more. */
static void
so_many_messages_wait_for_a_collector_and_the_oldest_is_dropped(void)
{
    const char *extra[] = { "cluster.seed-nodes=self",
                            "trace.otlp-endpoint=http://127.0.0.1:1/v1/traces",
                            "trace.otlp-interval=1s", NULL };
    trp_node *node = up(extra);
    UNIT_REQUIRE(node->otlp != NULL);
    hops_leave(node, TRP_TRACE_HOPS_MAX);
    failure_wait(node);
    UNIT_EQUAL(trpi_otlp_count(node->otlp).dropped, 0);
    hops_leave(node, 1);
    failure_wait(node);
    UNIT_EQUAL(trpi_otlp_count(node->otlp).dropped, 1);
    hops_leave(node, 10);
    failure_wait(node);
    UNIT_EQUAL(trpi_otlp_count(node->otlp).dropped, 11);
    UNIT_EQUAL(trpi_otlp_count(node->otlp).sent, 0);
    trp_node_close(node); /* it does not wait for the collector */
}

static void
without_an_endpoint_nothing_is_sent(void)
{
    trp_node *node = up(alone);
    UNIT_TRUE(node->otlp == NULL);
    hops_leave(node, 1);
    UNIT_EQUAL(trpi_otlp_count(node->otlp).sent, 0);
    trp_node_close(node);
}

UNIT_BEGIN("otlp")
UNIT(so_many_messages_wait_for_a_collector_and_the_oldest_is_dropped)
UNIT(without_an_endpoint_nothing_is_sent)
UNIT_END

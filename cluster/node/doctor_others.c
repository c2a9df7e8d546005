/* doctor_others.c - what the other members tell the doctor of one node, and which links work.
 *
 * Shape.   All reachable members are asked at one time (`doctor` with `local`, carried). Each
 *          answers with its version, clock, digest of its view, the keys that decide together, and
 *          the members that it cannot dial. The asking node dials meanwhile.
 * Limits.  ASK_MS for ASKED_MAX members at a time; DIAL_MS for the dials of one member.
 * Tests.   tests/unit/node/doctor_node_test.c
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cluster/node/doctor_look.h"

#define ASK_MS 4000u
#define ASKED_MAX 32u /* of the 64 questions that a node carries at a time */

/* Keys that all members should have equal: each decides something that members decide together.
 * Keys that make members incompatible are refused when one joins; these are not. */
static const char *const keys[] = { "cluster.downing.active-strategy",
                                    "cluster.downing.stable-after",
                                    "cluster.downing.down-all-when-unstable",
                                    "cluster.downing.auto-down-after",
                                    "cluster.downing.static-quorum.quorum-size",
                                    "cluster.downing.lease.name",
                                    "cluster.down-removal-margin",
                                    "cluster.failure-detector.threshold",
                                    "cluster.failure-detector.heartbeat-interval",
                                    "cluster.failure-detector.acceptable-heartbeat-pause",
                                    "cluster.gossip-interval",
                                    "cluster.leader-actions-interval",
                                    "cluster.min-nr-of-members",
                                    "cluster.leave-timeout",
                                    "remote.maximum-frame-size",
                                    "persistence.journal" };
#define KEYS_COUNT (sizeof keys / sizeof keys[0])

bool
trpi_doctor_keys_add(trp_node *node, cJSON *reply)
{
    cJSON *values = cJSON_AddObjectToObject(reply, "config");
    bool ok = values != NULL;
    for (size_t i = 0; ok && i < KEYS_COUNT; i++) {
        trpi_config_entry entry;
        if (trpi_config_find(node->config, keys[i], &entry)) {
            ok = trpi_json_add_text(values, keys[i], trpi_config_shown(&entry, 0));
        }
    }
    return ok;
}

/* Take what a member told. sent_ms, got_ms: this node's clock around its answer. */
static void
told_take(trp_node *node, const cJSON *reply, int64_t sent_ms, int64_t got_ms,
          trpi_doctor_member *m, trpi_doctor_facts *facts)
{
    const cJSON *values = cJSON_GetObjectItemCaseSensitive(reply, "config"), *way;
    const char *version = trpi_json_get_text(reply, "version");
    uint64_t received_ms = 0, answered_ms = 0;
    m->answered = true;
    (void)snprintf(m->version, sizeof m->version, "%s", version != NULL ? version : "");
    (void)trpi_json_get_u64(reply, "view", &m->view); /* absent: not told */
    if (trpi_json_get_u64(reply, "receivedMs", &received_ms) && received_ms < INT64_MAX / 4 &&
        trpi_json_get_u64(reply, "answeredMs", &answered_ms) && answered_ms < INT64_MAX / 4) {
        /* as NTP does it: the way there and the way back are taken as equally long */
        int64_t there_ms = (int64_t)received_ms - sent_ms, back_ms = got_ms - (int64_t)answered_ms;
        int64_t trip_ms = there_ms + back_ms;
        m->clock_ms = (there_ms - back_ms) / 2;
        m->clock_sure_ms = (uint32_t)(trip_ms > 0 && trip_ms < 2 * ASK_MS ? trip_ms / 2 + 1 : 1);
    }
    for (size_t i = 0; i < KEYS_COUNT; i++) {
        trpi_config_entry entry;
        const char *there = trpi_json_get_text(values, keys[i]);
        if (there != NULL && trpi_config_find(node->config, keys[i], &entry)) {
            trpi_doctor_differ(m, keys[i], trpi_config_shown(&entry, 0), there);
        }
    }
    cJSON_ArrayForEach(way, cJSON_GetObjectItemCaseSensitive(reply, "ways"))
    {
        const char *to = trpi_json_get_text(way, "to"), *why = trpi_json_get_text(way, "reason");
        facts->ways++;
        if (to != NULL && !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(way, "ok"))) {
            facts->ways--;
            trpi_doctor_case(&facts->ways_failed, "%s cannot dial %s: %s", m->address, to,
                             why != NULL ? why : "?");
        }
    }
}

/* The ways from this node; false: no memory. */
static bool
own_ways_take(trp_node *node, trpi_call *call, const trpi_view *view, trpi_doctor_facts *facts)
{
    cJSON *reply = cJSON_CreateObject(), *ways = cJSON_AddArrayToObject(reply, "ways");
    const cJSON *way;
    bool ok = ways != NULL && trpi_node_own_ways_add(node, call, view, ways);
    cJSON_ArrayForEach(way, ways)
    {
        const char *to = trpi_json_get_text(way, "to"), *why = trpi_json_get_text(way, "reason");
        bool is = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(way, "ok"));
        facts->ways += is;
        if (!is) {
            trpi_doctor_case(&facts->ways_failed, "this node cannot dial %s: %s",
                             to != NULL ? to : "?", why != NULL ? why : "?");
        }
    }
    cJSON_Delete(reply);
    return ok;
}

typedef struct asking {
    trpi_doctor_member *m;
    uint64_t id; /* 0: it was not asked */
    int64_t sent_ms;
} asking;

static void
member_ask(trp_node *node, trpi_doctor_member *m, asking *a)
{
    char request[96];
    trpi_address address;
    *a = (asking){ m, 0, node->probes->wall_ms(node) };
    if (m->reachable && trpi_address_parse(m->address, &address, NULL, NULL) == TRP_OK) {
        (void)snprintf(request, sizeof request,
                       "{\"v\":1,\"cmd\":\"doctor\",\"local\":true,\"timeoutMs\":%u}", ASK_MS);
        (void)!trpi_carry_begin(node->carry, &address, request, &a->id); /* id 0: it is silent */
    }
}

bool
trpi_doctor_ask_others(trp_node *node, trpi_call *call, const trpi_view *view,
                       trpi_doctor_facts *facts, trpi_doctor_member *members)
{
    asking asked[ASKED_MAX];
    for (size_t i = 0; i < facts->members_count;) {
        size_t count = 0;
        uint64_t until_ns = trpi_world_mono_ns(call->world) + ASK_MS * UINT64_C(1000000);
        for (; i < facts->members_count && count < ASKED_MAX; i++) {
            member_ask(node, &members[i], &asked[count++]);
        }
        for (size_t n = 0; n < count; n++) { /* all of them, so that each releases its place */
            cJSON *reply = NULL;
            if (asked[n].id != 0 &&
                trpi_carry_end(node->carry, asked[n].id, until_ns, call, &reply) == TRP_OK &&
                cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(reply, "ok"))) {
                told_take(node, reply, asked[n].sent_ms, node->probes->wall_ms(node), asked[n].m,
                          facts);
                trpi_doctor_asks_told(reply, asked[n].m->address,
                                      trpi_call_elapsed_ns(call) / 1000000u, &facts->asks,
                                      &facts->asks_cut);
            }
            cJSON_Delete(reply);
        }
    }
    return own_ways_take(node, call, view, facts);
}

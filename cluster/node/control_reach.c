/* control_reach.c - reach: which member can dial which other one.
 *
 * Why.     Heartbeats flow on any connection, so a member that some others cannot dial looks
 *          healthy. Only a dial shows it.
 * Shape.   this node dials all others; then it asks all of them to do the same (`local`, carried)
 * Limits.  DIAL_MS for the dials of one member, which go on at the same time; ASK_MS for ASKED_MAX
 *          members, which are asked at the same time.
 * Tests.   tests/system/reach.sh
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cluster/node/control_member.h"
#include "cluster/node/node_private.h"

#define DIAL_MS 2000u
#define ASK_MS 4000u
#define LOOK_MS 5u
#define ASKED_MAX 32u /* of the 64 questions that a node carries at a time */

typedef struct dial {
    trpi_node_id id;
    trpi_reach reach;
    trp_err err; /* TRP_EAGAIN: goes on */
    char why[TRPI_REACH_WHY_BYTES];
} dial;

/* ok: 1, 0, or -1: not known. */
static bool
way_add(cJSON *ways, const char *from, const char *to, int ok, const char *reason)
{
    cJSON *way = cJSON_CreateObject();
    bool done = trpi_json_add_text(way, "from", from) && trpi_json_add_text(way, "to", to) &&
                (ok < 0 ? cJSON_AddNullToObject(way, "ok") != NULL
                        : trpi_json_add_bool(way, "ok", ok == 1)) &&
                trpi_json_add_text(way, "reason", reason);
    return trpi_json_append(ways, way, done);
}

/* Dial all at once, and wait for the results. */
static void
dial_all(trp_node *node, trpi_call *call, dial *dials, size_t count)
{
    double end_ms = trpi_call_elapsed_ms(call) + DIAL_MS;
    for (size_t waiting = count; waiting > 0;) {
        waiting = 0;
        for (size_t i = 0; i < count; i++) {
            dial *d = &dials[i];
            if (d->err == TRP_EAGAIN) {
                d->err = trpi_remote_reach(node->remote, &d->id, &d->reach, d->why, sizeof d->why);
                waiting += d->err == TRP_EAGAIN;
            }
        }
        if (waiting > 0 &&
            (trpi_call_elapsed_ms(call) >= end_ms || !trpi_call_pause(call, LOOK_MS))) {
            return;
        }
    }
}

bool
trpi_node_own_ways_add(trp_node *node, trpi_call *call, const trpi_view *view, cJSON *ways)
{
    size_t count = 0;
    dial *dials = trpi_alloc((view->count + 1) * sizeof *dials);
    bool ok = dials != NULL;
    for (size_t i = 0; ok && i < view->count; i++) {
        dial *d = &dials[count];
        if (&view->members[i] != view->self &&
            trpi_address_parse(view->members[i].m.address, &d->id.address, NULL, NULL) == TRP_OK) {
            d->id.uid = view->members[i].m.uid;
            d->err = TRP_EAGAIN;
            count++;
        }
    }
    if (ok) {
        dial_all(node, call, dials, count);
    }
    for (size_t i = 0; ok && i < count; i++) {
        char address[TRPI_ADDRESS_TEXT_BYTES], late[40];
        const dial *d = &dials[i];
        (void)snprintf(late, sizeof late, "no answer in %u s", DIAL_MS / 1000);
        ok = way_add(ways, node->address,
                     trpi_address_format(&d->id.address, address, sizeof address), d->err == TRP_OK,
                     d->err == TRP_OK       ? NULL
                     : d->err == TRP_EAGAIN ? late
                                            : d->why);
    }
    trpi_free(dials);
    return ok;
}

/* Add the ways from another member, from its reply. Only known fields of the reply are used. */
static bool
their_ways_add(const cJSON *reply, const char *member, cJSON *ways)
{
    const cJSON *way;
    bool ok = true;
    cJSON_ArrayForEach(way, cJSON_GetObjectItemCaseSensitive(reply, "ways"))
    {
        const char *to = trpi_json_get_text(way, "to");
        bool is = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(way, "ok"));
        ok = ok && (to == NULL || way_add(ways, member, to, is, trpi_json_get_text(way, "reason")));
    }
    return ok;
}

typedef struct asking {
    const trpi_view_member *v;
    uint64_t id; /* of the question; 0: it was not asked */
    trp_err err;
} asking;

static void
member_ask(trp_node *node, const trpi_view_member *v, asking *a)
{
    char request[96];
    trpi_address address;
    *a = (asking){ v, 0, TRP_EINVAL };
    if (v->m.reachable && trpi_address_parse(v->m.address, &address, NULL, NULL) == TRP_OK) {
        (void)snprintf(request, sizeof request,
                       "{\"v\":1,\"cmd\":\"reach\",\"local\":true,\"timeoutMs\":%u}", ASK_MS);
        a->err = trpi_carry_begin(node->carry, &address, request, &a->id);
    }
}

/* Wait for the reply of a member until the deadline, and add its ways. */
static bool
member_ways_add(trp_node *node, trpi_call *call, const asking *a, uint64_t until_ns, cJSON *ways)
{
    char why[200] = "it is unreachable";
    cJSON *reply = NULL;
    trp_err err = a->id != 0 ? trpi_carry_end(node->carry, a->id, until_ns, call, &reply) : a->err;
    if (a->v->m.reachable) {
        (void)snprintf(why, sizeof why, "it was asked: %s", trp_strerror(err));
    }
    bool known = err == TRP_OK && cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(reply, "ok"));
    if (err == TRP_OK && !known) {
        const char *error = trpi_json_get_text(reply, "error");
        (void)snprintf(why, sizeof why, "%s", error != NULL ? error : "it refuses");
    }
    bool ok = known ? their_ways_add(reply, a->v->m.address, ways)
                    : way_add(ways, a->v->m.address, NULL, -1, why);
    cJSON_Delete(reply);
    return ok;
}

/* ASKED_MAX at a time, with one deadline. */
static bool
others_ways_add(trp_node *node, trpi_call *call, const trpi_view *view, cJSON *ways)
{
    asking asked[ASKED_MAX];
    bool ok = true;
    for (size_t i = 0; ok && i < view->count;) {
        uint64_t until_ns = trpi_world_mono_ns(call->world) + ASK_MS * UINT64_C(1000000);
        size_t count = 0;
        for (; i < view->count && count < ASKED_MAX; i++) {
            if (&view->members[i] != view->self) {
                member_ask(node, &view->members[i], &asked[count++]);
            }
        }
        for (size_t n = 0; n < count; n++) { /* all of them, so that each releases its place */
            ok = member_ways_add(node, call, &asked[n], until_ns, ways) && ok;
        }
    }
    return ok;
}

void
trpi_node_serve_reach(trp_node *node, trpi_call *call)
{
    trpi_view view;
    if (!trpi_view_take_for(node, call, &view)) {
        return;
    }
    cJSON *reply = trpi_call_reply();
    bool ok = trpi_json_add_text(reply, "selfNode", node->address);
    cJSON *ways = ok ? cJSON_AddArrayToObject(reply, "ways") : NULL;
    ok = ways != NULL && trpi_node_own_ways_add(node, call, &view, ways);
    ok = ok && (call->request.local || others_ways_add(node, call, &view, ways));
    int64_t failed = 0;
    const cJSON *way;
    cJSON_ArrayForEach(way, ways)
    {
        failed += !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(way, "ok"));
    }
    trpi_view_fini(&view);
    ok = ok && trpi_json_add_i64(reply, "failed", failed) && trpi_call_add_elapsed(call, reply);
    trpi_call_answer_if(call, ok, reply);
}

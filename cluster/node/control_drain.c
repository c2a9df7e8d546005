/* control_drain.c - drain and undrain: mark a member, and wait until its shards are elsewhere.
 *
 * Shape.   find the member -> all members take marks? -> order -> ask the member which shards it
 *          has, until it has none, or none that another node can take
 * Why.     The member's own answer counts, not the coordinator's: a shard whose hand-over was
 *          ordered still runs there. The coordinator is asked only who could take it.
 * Tests.   tests/multinode/drain.sh, tests/system/cli_fake.sh, control_request_test.c
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cluster/node/control_change.h"
#include "cluster/node/node_private.h"

#define PROGRESS_MS 5000u
#define MEET_MS 2000u /* for a member that this node has not talked to yet */
#define ASK_MS 2000u
#define PAUSE_MS 100u
#define NAMES_BYTES 600

typedef struct drain {
    trp_node *node;
    trpi_call *call;
    char address[TRP_ADDRESS_BYTES];
    uint64_t uid;
    uint32_t status;
    bool self, drains;
    uint32_t before, left, stuck;  /* shards: at first; now; of those, nobody can take */
    char waits[TRP_ADDRESS_BYTES]; /* a type that has some left; "" */
    cJSON *stays, *singletons;     /* lists of the reply; owned until then */
} drain;

/* ---- who takes marks ------------------------------------------------------------------------- */

static void
name_add(char names[NAMES_BYTES], uint32_t *count, const char *address)
{
    size_t used = strlen(names);
    if (*count < 5) {
        (void)snprintf(names + used, NAMES_BYTES - used, "%s%s", *count > 0 ? ", " : "", address);
    }
    ++*count;
}

static trpi_takes
takes_of(const drain *d, const trp_member *m)
{
    trpi_node_id id;
    cJSON *reply = NULL;
    memset(&id, 0, sizeof id);
    if (trpi_address_parse(m->address, &id.address, NULL, NULL) != TRP_OK) {
        return TRPI_TAKES_NO;
    }
    id.uid = m->uid;
    trpi_takes takes = trpi_remote_takes_marks(d->node->remote, &id);
    if (takes == TRPI_TAKES_UNKNOWN && m->reachable != 0) { /* any question makes them meet */
        uint32_t left_ms = trpi_call_left_ms(d->call);
        (void)trpi_carry_ask(d->node->carry, &id.address, "{\"cmd\":\"version\"}",
                             left_ms < MEET_MS ? left_ms : MEET_MS, d->call, &reply);
        cJSON_Delete(reply);
        takes = trpi_remote_takes_marks(d->node->remote, &id);
    }
    return takes;
}

/* false: answered, since some do not. */
static bool
members_check(drain *d, const trpi_view *view)
{
    char names[NAMES_BYTES] = "", strange[NAMES_BYTES] = "";
    uint32_t lacking = 0, unknown = 0;
    if (!trpi_remote_offers_marks(d->node->remote) && view->count > 1) {
        name_add(names, &lacking, d->node->address);
    }
    for (size_t i = 0; lacking == 0 && i < view->count; i++) {
        const trp_member *m = &view->members[i].m;
        if (m->self != 0 || m->status == TRP_MEMBER_DOWN || m->status == TRP_MEMBER_EXITING) {
            continue;
        }
        trpi_takes takes = takes_of(d, m);
        if (takes == TRPI_TAKES_UNKNOWN) {
            name_add(strange, &unknown, m->address);
        }
        for (size_t k = i; takes == TRPI_TAKES_NO && k < view->count;
             k++) { /* and all the others */
            const trp_member *other = &view->members[k].m;
            bool counts = other->self == 0 && other->status < TRP_MEMBER_EXITING;
            if (counts && takes_of(d, other) == TRPI_TAKES_NO) {
                name_add(names, &lacking, other->address);
            }
        }
    }
    if (lacking > 0) {
        trpi_call_refuse_text(
            d->call, TRPI_CTL_EXIT_NO, "upgrade them, or let the node leave: troupe leave",
            "nothing was changed: %" PRIu32 " members do not know drain (an earlier version, or "
            "remote.wire-minor below 5): %s%s",
            lacking, names, lacking > 5 ? ", ..." : "");
    } else if (unknown > 0) {
        trpi_call_refuse_text(d->call, TRPI_CTL_EXIT_TIMEOUT, "troupe peers",
                              "nothing was changed: this node has no association with %s%s, and "
                              "cannot tell whether it knows drain",
                              strange, unknown > 5 ? ", ..." : "");
    }
    return lacking + unknown == 0;
}

/* ---- what is there --------------------------------------------------------------------------- */

/* Ask a node what `troupe cmd` prints there. NULL: no answer. */
static cJSON *
node_ask(const drain *d, const char *address, const char *cmd)
{
    trpi_address to;
    cJSON *reply = NULL;
    char request[64];
    uint32_t left_ms = trpi_call_left_ms(d->call);
    if (strcmp(address, d->node->address) == 0) {
        reply = cJSON_CreateObject();
        bool ok = strcmp(cmd, "shards") == 0 ? trpi_node_shards_list(d->node, reply)
                                             : trpi_node_singletons_list(d->node, reply);
        if (!ok) {
            cJSON_Delete(reply);
            reply = NULL;
        }
        return reply;
    }
    (void)snprintf(request, sizeof request, "{\"cmd\":\"%s\",\"timeoutMs\":%u}", cmd, ASK_MS);
    if (left_ms == 0 || trpi_address_parse(address, &to, NULL, NULL) != TRP_OK ||
        trpi_carry_ask(d->node->carry, &to, request, left_ms < ASK_MS ? left_ms : ASK_MS, d->call,
                       &reply) != TRP_OK) {
        return NULL;
    }
    return reply;
}

static double
number_of(const cJSON *row, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(row, key);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

/* Does the coordinator know that this node is drained, and no region that could take its shards? */
static bool
nobody_takes(const drain *d, const cJSON *type)
{
    const cJSON *node;
    bool known = false, taker = false;
    cJSON_ArrayForEach(node, cJSON_GetObjectItemCaseSensitive(type, "nodes"))
    {
        const char *address = trpi_json_get_text(node, "node");
        const char *state = trpi_json_get_text(node, "state");
        if (address == NULL || state == NULL) {
            continue;
        }
        bool drained = strcmp(state, "drained") == 0;
        known = known || (drained && strcmp(address, d->address) == 0);
        /* one that has not answered may turn out to be one */
        taker = taker || strcmp(state, "hosts") == 0 || strcmp(state, "no answer") == 0;
    }
    return known && !taker && cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(type, "ready"));
}

static const cJSON *
type_find(const cJSON *reply, const char *name)
{
    const cJSON *type;
    cJSON_ArrayForEach(type, cJSON_GetObjectItemCaseSensitive(reply, "types"))
    {
        const char *is = trpi_json_get_text(type, "type");
        if (is != NULL && strcmp(is, name) == 0) {
            return type;
        }
    }
    return NULL;
}

/* Do the shards of this type stay, for want of another node? */
static bool
type_stays(const drain *d, const cJSON *type, const char *name)
{
    const char *coordinator = trpi_json_get_text(type, "coordinator");
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(type, "coordinates"))) {
        return nobody_takes(d, type);
    }
    cJSON *reply = coordinator == NULL ? NULL : node_ask(d, coordinator, "shards");
    bool stays = nobody_takes(d, type_find(reply, name));
    cJSON_Delete(reply);
    return stays;
}

/* Count the shards of the drained node. false: it did not answer. */
static bool
shards_look(drain *d)
{
    cJSON *reply = node_ask(d, d->address, "shards");
    const cJSON *type, *types = cJSON_GetObjectItemCaseSensitive(reply, "types");
    bool answered = cJSON_IsArray(types);
    d->left = d->stuck = 0;
    d->waits[0] = '\0';
    cJSON_Delete(d->stays);
    d->stays = cJSON_CreateArray();
    cJSON_ArrayForEach(type, types)
    {
        const char *name = trpi_json_get_text(type, "type");
        uint32_t here = (uint32_t)number_of(type, "here");
        if (here == 0 || name == NULL) {
            continue;
        }
        d->left += here;
        if (type_stays(d, type, name)) {
            char text[160];
            (void)snprintf(text, sizeof text, "%s: %" PRIu32, name, here);
            d->stuck += here;
            (void)cJSON_AddItemToArray(d->stays, cJSON_CreateString(text));
        } else {
            (void)snprintf(d->waits, sizeof d->waits, "%s", name);
        }
    }
    cJSON_Delete(reply);
    return answered;
}

/* List the singletons that run there: they stay. */
static void
singletons_look(drain *d)
{
    cJSON *reply = node_ask(d, d->address, "singleton");
    const cJSON *row;
    d->singletons = cJSON_CreateArray();
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(reply, "singletons"))
    {
        const char *name = trpi_json_get_text(row, "name");
        if (name != NULL && cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(row, "runsHere"))) {
            (void)cJSON_AddItemToArray(d->singletons, cJSON_CreateString(name));
        }
    }
    cJSON_Delete(reply);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* true: it still is that incarnation's. false: answered. */
static bool
still_member(drain *d)
{
    trpi_view view;
    bool found = false;
    if (!trpi_view_take_for(d->node, d->call, &view)) {
        return false;
    }
    for (size_t i = 0; i < view.count; i++) {
        found = found || view.members[i].m.uid == d->uid;
    }
    trpi_view_fini(&view);
    if (!found) {
        trpi_call_refuse_text(d->call, TRPI_CTL_EXIT_NO, "troupe members",
                              "%s (uid %016" PRIx64 ") is no member any more", d->address, d->uid);
    }
    return found;
}

/* true: nothing is left that could move. false: answered. */
static bool
shards_wait(drain *d)
{
    uint64_t told_ms = 0;
    for (;;) {
        bool answered = shards_look(d);
        if (answered && d->left == d->stuck) {
            return true;
        }
        if (!still_member(d)) {
            return false;
        }
        if (trpi_call_left_ms(d->call) == 0) {
            if (answered) {
                trpi_call_refuse_text(d->call, TRPI_CTL_EXIT_TIMEOUT, "troupe shards",
                                      "%s is drained, and %" PRIu32 " shards are still there after "
                                      "%.0f s, of type %s: they go on moving",
                                      d->address, d->left, trpi_call_elapsed_ms(d->call) / 1000,
                                      d->waits);
            } else {
                trpi_call_refuse_text(d->call, TRPI_CTL_EXIT_TIMEOUT, "troupe shards",
                                      "%s is drained, and has not said which shards are left",
                                      d->address);
            }
            return false;
        }
        uint64_t now_ms = trpi_call_elapsed_ns(d->call) / 1000000;
        if (answered && now_ms - told_ms >= PROGRESS_MS) {
            told_ms = now_ms;
            trpi_call_progress(d->call, "%" PRIu32 " shards are still there", d->left);
        }
        if (!trpi_call_pause(d->call, PAUSE_MS) && !trpi_call_look_again(d->call)) {
            return false;
        }
    }
}

/* ---- the commands ---------------------------------------------------------------------------- */

/* Find the member that the request names, and check the others. false: answered. */
static bool
target_find(drain *d)
{
    trpi_view view;
    const trpi_view_member *found = NULL;
    trpi_control_refusal refusal;
    const char *name = d->call->request.member;
    if (!trpi_view_take_for(d->node, d->call, &view)) {
        return false;
    }
    trp_err err = TRP_OK;
    if (name != NULL) {
        err = trpi_view_find(&view, name, &found, &refusal);
    } else {
        found = view.self;
    }
    bool ok = err == TRP_OK && found != NULL;
    if (err != TRP_OK) {
        trpi_call_refuse(d->call, &refusal);
    } else if (found == NULL) {
        trpi_call_refuse_text(d->call, TRPI_CTL_EXIT_NO, "troupe join ADDRESS",
                              "this node is no member of a cluster");
    } else {
        d->uid = found->m.uid;
        d->self = found->m.self != 0;
        d->status = found->m.status;
        memcpy(d->address, found->m.address, sizeof d->address);
        ok = !d->drains || members_check(d, &view);
    }
    trpi_view_fini(&view);
    return ok;
}

static void
drain_answer(drain *d)
{
    cJSON *reply = trpi_call_reply();
    bool ok = trpi_json_add_text(reply, "node", d->address) &&
              trpi_json_add_u64_string(reply, "nodeUid", d->uid) &&
              trpi_json_add_text(reply, "status", trp_member_status_name(d->status)) &&
              trpi_json_add_bool(reply, "drained", d->drains) &&
              trpi_json_add_i64(reply, "shardsBefore", d->before) &&
              trpi_json_add_i64(reply, "shards", d->left);
    if (ok && d->stays != NULL && cJSON_AddItemToObject(reply, "stays", d->stays)) {
        d->stays = NULL;
    }
    if (ok && d->singletons != NULL && cJSON_AddItemToObject(reply, "singletons", d->singletons)) {
        d->singletons = NULL;
    }
    trpi_call_answer_if(d->call, ok && trpi_call_add_elapsed(d->call, reply), reply);
}

static bool
drain_order(drain *d)
{
    trpi_cluster_patience patience = trpi_call_patience(d->call);
    trp_err err =
        trpi_cluster_drain_and_wait(d->node->cluster, d->address, d->uid, d->drains, &patience);
    if (err == TRP_ESTATE && trpi_node_fate(d->node) == 0) {
        trpi_call_refuse_text(d->call, TRPI_CTL_EXIT_NO, "troupe members",
                              "nothing was changed: %s is on its way out of the cluster",
                              d->address);
    } else if (err != TRP_OK) {
        trpi_call_refuse_order(d->call, err, d->drains ? "drain" : "undrain");
    }
    return err == TRP_OK;
}

static void
drain_serve(trp_node *node, trpi_call *call, bool drains)
{
    drain d = { .node = node, .call = call, .drains = drains };
    bool waits = call->request.wait && drains;
    if (target_find(&d)) {
        (void)shards_look(&d);
        d.before = d.left;
        if (drain_order(&d)) {
            trpi_call_confirm(call);
            if (waits) {
                singletons_look(&d);
            }
            if (!waits || shards_wait(&d)) {
                drain_answer(&d);
            }
        }
    }
    cJSON_Delete(d.stays);
    cJSON_Delete(d.singletons);
}

void
trpi_node_serve_drain(trp_node *node, trpi_call *call)
{
    drain_serve(node, call, true);
}

void
trpi_node_serve_undrain(trp_node *node, trpi_call *call)
{
    drain_serve(node, call, false);
}

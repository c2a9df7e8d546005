/* control_shards.c - shards and entity: where the shards of each type live, what a coordinator
 * waits for, and where an entity lives; the same for status and why.
 *
 * Key order and names are CONTROL.md's.
 * Must hold.
 *   control-shards-P1  Only members are asked: anybody on the host may read shards over HTTP, and
 *       must not choose the addresses that this node dials.                       (is_carried_on)
 * Tests. tests/system/cli_fake.sh, tests/system/reach.sh
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cluster/node/control_member.h"
#include "cluster/node/node_private.h"

#define HANGS_MS 5000u /* what a coordinator waits for longer is a problem */

struct listing {
    cJSON *list;
    bool ok;
};

/* ---- shards ---------------------------------------------------------------------------------- */

static bool
homes_add(cJSON *row, const trpi_sharding_status *status)
{
    cJSON *homes = cJSON_AddArrayToObject(row, "nodes");
    bool ok = homes != NULL;
    for (uint32_t i = 0; ok && i < status->homes_count; i++) {
        const trpi_sharding_home *home = &status->homes[i];
        cJSON *entry = cJSON_CreateObject();
        ok = entry != NULL && trpi_json_add_text(entry, "node", home->node) &&
             trpi_json_add_i64(entry, "shards", (int64_t)home->shards) &&
             trpi_json_add_text(entry, "state", home->state);
        ok = trpi_json_append(homes, entry, ok);
    }
    return ok;
}

static const char *
text_or_null(const char *text)
{
    return text[0] == '\0' ? NULL : text;
}

static void
row_add(void *arg, const trpi_sharding_status *status)
{
    struct listing *listing = arg;
    cJSON *row = listing->ok ? cJSON_CreateObject() : NULL;
    const char *state = !status->started         ? "not started"
                        : status->why[0] != '\0' ? "refused"
                        : !status->registered    ? "not registered"
                        : status->hosts          ? "hosts"
                                                 : "tells only";
    bool ok = row != NULL && trpi_json_add_text(row, "type", status->type) &&
              trpi_json_add_text(row, "role", text_or_null(status->role)) &&
              trpi_json_add_text(row, "state", state) &&
              trpi_json_add_text(row, "why", text_or_null(status->why)) &&
              trpi_json_add_i64(row, "shards", (int64_t)status->shards) &&
              trpi_json_add_i64(row, "here", (int64_t)status->here) &&
              trpi_json_add_i64(row, "entities", (int64_t)status->entities) &&
              trpi_json_add_i64(row, "kept", (int64_t)status->kept) &&
              trpi_json_add_text(row, "coordinator", text_or_null(status->coordinator)) &&
              trpi_json_add_bool(row, "coordinates", status->coordinates) &&
              trpi_json_add_bool(row, "ready", status->ready) &&
              trpi_json_add_i64(row, "coordinatorMs", (int64_t)status->coordinator_ms) &&
              homes_add(row, status) &&
              trpi_json_add_i64(row, "waitsCount", (int64_t)status->waits_count) &&
              trpi_json_add_i64(row, "waitsMs", (int64_t)status->waits_ms) &&
              trpi_json_add_text(row, "waits", text_or_null(status->waits));
    listing->ok = trpi_json_append(listing->list, row, ok);
}

/* Is the question for another member? Then it is asked, and its answer is this one's. */
static bool
is_carried_on(trp_node *node, trpi_call *call, const char *command)
{
    const trpi_control_request *asked = &call->request;
    trpi_control_refusal refusal;
    trpi_address address;
    trp_member member;
    if (asked->member == NULL || strcmp(asked->member, node->address) == 0) {
        return false;
    }
    if (!trpi_member_find(node, asked->member, &member, &refusal)) { /* control-shards-P1 */
        trpi_call_refuse(call, &refusal);
        return true;
    }
    if (member.self) {
        return false;
    }
    cJSON *request = cJSON_CreateObject(), *reply = NULL;
    bool ok = trpi_json_add_text(request, "cmd", command) &&
              (asked->type == NULL || trpi_json_add_text(request, "type", asked->type)) &&
              (asked->text == NULL || trpi_json_add_text(request, "text", asked->text)) &&
              trpi_json_add_i64(request, "timeoutMs", trpi_call_left_ms(call));
    char *text = ok ? trpi_json_print(request) : NULL;
    trp_err err = trpi_address_parse(member.address, &address, NULL, NULL);
    if (err == TRP_OK) {
        err = text == NULL ? TRP_ENOMEM
                           : trpi_carry_ask(node->carry, &address, text, trpi_call_left_ms(call),
                                            call, &reply);
    }
    cJSON_free(text);
    cJSON_Delete(request);
    if (err == TRP_OK) {
        trpi_call_answer(call, reply);
    } else {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_TIMEOUT, NULL, "%s does not answer: %s",
                              asked->member, trp_strerror(err));
    }
    return true;
}

bool
trpi_node_shards_list(trp_node *node, cJSON *reply)
{
    struct listing listing = { cJSON_AddArrayToObject(reply, "types"), true };
    listing.ok = listing.list != NULL;
    if (listing.ok) {
        trpi_sharding_each(node->system, row_add, &listing);
    }
    return listing.ok;
}

static void
count_add(void *arg, uint32_t shard, uint32_t entities)
{
    struct listing *listing = arg;
    char id[16];
    cJSON *row = listing->ok ? cJSON_CreateObject() : NULL;
    (void)snprintf(id, sizeof id, "%" PRIu32, shard);
    bool ok = row != NULL && trpi_json_add_text(row, "shardId", id) &&
              trpi_json_add_i64(row, "numEntities", (int64_t)entities);
    listing->ok = trpi_json_append(listing->list, row, ok);
}

/* The shards of one type that this node has, as Akka Management tells them. */
static void
serve_counts(trp_node *node, trpi_call *call)
{
    const char *type = call->request.type;
    cJSON *reply = trpi_call_reply();
    bool ok = trpi_json_add_text(reply, "selfNode", node->address) &&
              trpi_json_add_text(reply, "type", type);
    struct listing listing = { ok ? cJSON_AddArrayToObject(reply, "regions") : NULL, true };
    trp_err err = listing.list == NULL
                      ? TRP_ENOMEM
                      : trpi_sharding_counts(node->system, type, count_add, &listing);
    if (err == TRP_ENOENT) {
        cJSON_Delete(reply);
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_NOT_FOUND, "troupe shards lists the types",
                              "type %s is not started on this node", type);
        return;
    }
    trpi_call_answer_if(call, err == TRP_OK && listing.ok, reply);
}

void
trpi_node_serve_shards(trp_node *node, trpi_call *call)
{
    const trpi_control_request *request = &call->request;
    if (is_carried_on(node, call, "shards")) {
        return;
    }
    if (request->local) {
        serve_counts(node, call);
        return;
    }
    if (request->rebalance) {
        trp_err err = trpi_sharding_rebalance(node->system, request->type);
        if (err != TRP_OK) {
            trpi_call_refuse_text(
                call, err == TRP_ENOENT ? TRPI_CTL_EXIT_NOT_FOUND : TRPI_CTL_EXIT_NO, NULL,
                "type %s cannot be rebalanced from this node: %s", request->type,
                err == TRP_ENOENT ? "it is not started here" : trp_strerror(err));
            return;
        }
    }
    cJSON *reply = trpi_call_reply();
    bool ok = trpi_json_add_text(reply, "selfNode", node->address);
    trpi_call_answer_if(call, ok && trpi_node_shards_list(node, reply), reply);
}

/* ---- entity ---------------------------------------------------------------------------------- */

void
trpi_node_serve_entity(trp_node *node, trpi_call *call)
{
    const char *type = call->request.type, *id = call->request.text;
    trpi_sharding_place place;
    if (is_carried_on(node, call, "entity")) {
        return;
    }
    trp_err err = trpi_sharding_find(node->system, type, id, strlen(id), &place);
    if (err != TRP_OK) {
        trpi_call_refuse_text(
            call, err == TRP_ENOENT ? TRPI_CTL_EXIT_NOT_FOUND : TRPI_CTL_EXIT_USAGE, NULL,
            err == TRP_ENOENT ? "type %s is not started on this node"
                              : "an id of type %s is 1 to 119 bytes",
            type);
        return;
    }
    cJSON *reply = trpi_call_reply();
    const char *state = !place.known  ? "no home is known: nothing was told to its shard from here"
                        : place.moves ? "its shard moves"
                        : !place.here ? "on another node"
                        : place.alive ? "alive"
                                      : "it starts at its first message";
    bool ok = trpi_json_add_text(reply, "type", type) && trpi_json_add_text(reply, "id", id) &&
              trpi_json_add_i64(reply, "shard", (int64_t)place.shard) &&
              trpi_json_add_text(reply, "node", place.known ? place.node : NULL) &&
              trpi_json_add_bool(reply, "here", place.here) &&
              trpi_json_add_text(reply, "state", state);
    trpi_call_answer_if(call, ok, reply);
}

/* ---- status, why ----------------------------------------------------------------------------- */

static void
problem_add(void *arg, const trpi_sharding_status *status)
{
    struct listing *listing = arg;
    char text[TRPI_SHARDING_WAITS_BYTES + 160];
    if (listing->ok && trpi_sharding_problem(status, HANGS_MS, text, sizeof text)) {
        listing->ok = cJSON_AddItemToArray(listing->list, cJSON_CreateString(text));
    }
}

bool
trpi_node_shards_problems(trp_node *node, cJSON *problems)
{
    struct listing listing = { problems, true };
    trpi_sharding_each(node->system, problem_add, &listing);
    return listing.ok;
}

static void
reason_add(void *arg, const trpi_sharding_status *status)
{
    struct listing *listing = arg;
    if (listing->ok && status->waits_count > 0 && status->waits_ms >= HANGS_MS) {
        cJSON *row = cJSON_CreateObject();
        char text[TRPI_SHARDING_WAITS_BYTES + 96];
        (void)snprintf(text, sizeof text, "%s: %s", status->type, status->waits);
        bool ok = row != NULL && trpi_json_add_text(row, "kind", "shards") &&
                  trpi_json_add_text(row, "node", text_or_null(status->coordinator)) &&
                  trpi_json_add_text(row, "status", status->ready ? "ready" : "not ready") &&
                  trpi_json_add_i64(row, "sinceMs", (int64_t)status->waits_ms) &&
                  trpi_json_add_text(row, "help", text);
        listing->ok = trpi_json_append(listing->list, row, ok);
    }
}

bool
trpi_node_shards_why(trp_node *node, cJSON *reply)
{
    struct listing listing = { cJSON_GetObjectItemCaseSensitive(reply, "reasons"), true };
    if (listing.list != NULL) {
        trpi_sharding_each(node->system, reason_add, &listing);
    }
    return listing.ok;
}

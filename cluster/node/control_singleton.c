/* control_singleton.c - singleton: where each singleton runs, since when, and what a hand-over
 * waits for; the same for status and why.
 *
 * Key order and names are CONTROL.md's.
 * Tests. tests/system/cli_fake.sh, tests/unit/node/control_request_test.c
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cluster/node/control_member.h"
#include "cluster/node/node_private.h"

#define HANGS_MS 5000u /* a hand-over that takes longer is a problem */

struct listing {
    cJSON *list;
    bool ok;
};

static void
row_add(void *arg, const trpi_singleton_status *status)
{
    struct listing *listing = arg;
    cJSON *row = listing->ok ? cJSON_CreateObject() : NULL;
    bool ok = row != NULL && trpi_json_add_text(row, "name", status->name) &&
              trpi_json_add_text(row, "role", status->role[0] == '\0' ? NULL : status->role) &&
              trpi_json_add_text(row, "state", status->state) &&
              trpi_json_add_i64(row, "stateMs", (int64_t)status->state_ms) &&
              trpi_json_add_text(row, "host", status->host[0] == '\0' ? NULL : status->host) &&
              trpi_json_add_i64(row, "hostMs", (int64_t)status->host_ms) &&
              trpi_json_add_bool(row, "runsHere", status->runs) &&
              trpi_json_add_text(row, "waits", status->waits[0] == '\0' ? NULL : status->waits) &&
              trpi_json_add_i64(row, "kept", (int64_t)status->kept);
    listing->ok = trpi_json_append(listing->list, row, ok);
}

bool
trpi_node_singletons_list(trp_node *node, cJSON *reply)
{
    struct listing listing = { cJSON_AddArrayToObject(reply, "singletons"), true };
    listing.ok = listing.list != NULL;
    if (listing.ok) {
        trpi_singletons_each(node->system, row_add, &listing);
    }
    return listing.ok;
}

void
trpi_node_serve_singleton(trp_node *node, trpi_call *call)
{
    cJSON *reply = trpi_call_reply();
    bool ok = trpi_json_add_text(reply, "selfNode", node->address);
    trpi_call_answer_if(call, ok && trpi_node_singletons_list(node, reply), reply);
}

static bool
handover_hangs(const trpi_singleton_status *status)
{
    return status->waits[0] != '\0' && status->state_ms >= HANGS_MS;
}

static void
problem_add(void *arg, const trpi_singleton_status *status)
{
    struct listing *listing = arg;
    char text[TRPI_SINGLETON_WAITS_BYTES + 160];
    if (listing->ok && handover_hangs(status)) {
        (void)snprintf(text, sizeof text, "singleton %s is %s for %" PRIu64 " s: %s", status->name,
                       status->state, status->state_ms / 1000, status->waits);
        listing->ok = cJSON_AddItemToArray(listing->list, cJSON_CreateString(text));
    }
}

bool
trpi_node_singletons_problems(trp_node *node, cJSON *problems)
{
    struct listing listing = { problems, true };
    trpi_singletons_each(node->system, problem_add, &listing);
    return listing.ok;
}

static void
reason_add(void *arg, const trpi_singleton_status *status)
{
    struct listing *listing = arg;
    if (listing->ok && handover_hangs(status)) {
        cJSON *row = cJSON_CreateObject();
        char text[TRPI_SINGLETON_WAITS_BYTES + 96];
        (void)snprintf(text, sizeof text, "%s: %s", status->name, status->waits);
        bool ok = row != NULL && trpi_json_add_text(row, "kind", "singleton") &&
                  trpi_json_add_text(row, "node", status->host[0] == '\0' ? NULL : status->host) &&
                  trpi_json_add_text(row, "status", status->state) &&
                  trpi_json_add_i64(row, "sinceMs", (int64_t)status->state_ms) &&
                  trpi_json_add_text(row, "help", text);
        listing->ok = trpi_json_append(listing->list, row, ok);
    }
}

bool
trpi_node_singletons_why(trp_node *node, cJSON *reply)
{
    struct listing listing = { cJSON_GetObjectItemCaseSensitive(reply, "reasons"), true };
    if (listing.list != NULL) {
        trpi_singletons_each(node->system, reason_add, &listing);
    }
    return listing.ok;
}

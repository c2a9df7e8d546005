/* control_top.c - top: the actors that want attention, as the last walk over them saw them.
 *
 * Key order and names are CONTROL.md's.
 * Must hold.
 *   control-top-T1  No actor is asked: a node whose actors are stuck answers, and names them.
 * Tests.   tests/system/top.sh, tests/system/cli_fake.sh
 */
#include <inttypes.h>
#include <stdio.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "cluster/node/node_private.h"

static bool
text_of_number_add(cJSON *json, const char *key, uint64_t number)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    return trpi_json_add_text(json, key, text);
}

static bool
time_add(cJSON *row, const char *key, uint64_t ns)
{
    return ns != 0 ? cJSON_AddNumberToObject(row, key, (double)ns / 1e6) != NULL
                   : cJSON_AddNullToObject(row, key) != NULL;
}

static bool
row_fill(trp_node *node, cJSON *row, const trpi_observed_actor *actor)
{
    char path[TRP_PATH_BYTES_MAX + 1] = "";
    (void)trp_path(node->system, actor->ref, path, sizeof path);
    return trpi_json_add_text(row, "path", path) &&
           trpi_json_add_text(row, "behaviour", actor->behaviour) &&
           trpi_json_add_text(row, "dispatcher", actor->dispatcher) &&
           cJSON_AddNumberToObject(row, "messagesPerS", actor->per_s) != NULL &&
           (actor->depth_known ? trpi_json_add_i64(row, "mailbox", (int64_t)actor->depth)
                               : cJSON_AddNullToObject(row, "mailbox") != NULL) &&
           time_add(row, "ageMs", actor->age_ns) && time_add(row, "waitMs", actor->wait_ns) &&
           time_add(row, "runMs", actor->run_ns) && time_add(row, "heldMs", actor->held_ns) &&
           trpi_json_add_bool(row, "suspended", actor->suspended) &&
           text_of_number_add(row, "handled", actor->handled);
}

static bool
rows_add(trp_node *node, cJSON *list, const trpi_observed *seen)
{
    bool ok = list != NULL;
    for (uint32_t i = 0; ok && i < seen->rows_count; i++) {
        cJSON *row = cJSON_CreateObject();
        ok = trpi_json_append(list, row, row != NULL && row_fill(node, row, &seen->rows[i]));
    }
    return ok;
}

void
trpi_node_serve_top(trp_node *node, trpi_call *call)
{
    trp_system_stats stats;
    trpi_observed *seen = trpi_alloc(sizeof *seen);
    if (seen == NULL || trpi_system_observe(node->system, seen) != TRP_OK) {
        trpi_free(seen);
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_UNREACHABLE, NULL,
                              "the node is stopping, or out of memory");
        return;
    }
    cJSON *reply = trpi_call_reply();
    uint64_t dead = trpi_node_stats(node, &stats);
    bool ok =
        trpi_json_add_text(reply, "selfNode", node->address) &&
        trpi_json_add_text(reply, "system", trp_system_name(node->system)) &&
        trpi_json_add_i64(reply, "actors", (int64_t)stats.actors) &&
        text_of_number_add(reply, "handled", stats.messages_processed) &&
        text_of_number_add(reply, "deadLetters", dead) &&
        (seen->complete ? cJSON_AddNumberToObject(reply, "walkAgeMs", (double)seen->age_ns / 1e6)
                        : cJSON_AddNullToObject(reply, "walkAgeMs")) != NULL &&
        trpi_json_add_i64(reply, "active", (int64_t)seen->active) &&
        trpi_json_add_i64(reply, "suspended", (int64_t)seen->suspended) &&
        trpi_json_add_i64(reply, "overloaded", (int64_t)seen->overloaded) &&
        rows_add(node, cJSON_AddArrayToObject(reply, "rows"), seen);
    trpi_free(seen);
    trpi_call_answer_if(call, ok, reply);
}

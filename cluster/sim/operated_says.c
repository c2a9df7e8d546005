/* operated_says.c - the answers of complete nodes to `troupe status` and `troupe peers`, by the
 * code of the daemon without its socket.
 *
 * Tests. tests/sim/operated_test.c
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cluster/sim/operated.h"

static void
take_text(trpi_call *call, const char *text, bool final)
{
    cJSON **reply = call->emit_arg;
    if (final) {
        (void)trpi_json_parse(text, strlen(text), reply, NULL);
    }
}

/* Gives the reply (cJSON_Delete); NULL: no memory. */
static cJSON *
call_command(struct sim_operated *o, const struct sim_whole *n,
             void (*serve)(trp_node *node, trpi_call *call))
{
    cJSON *reply = NULL;
    trpi_call call;
    memset(&call, 0, sizeof(call));
    call.emit = take_text;
    call.emit_arg = &reply;
    call.world = trpi_system_world(n->system);
    o->node.config = o->config;
    o->node.system = n->system;
    o->node.remote = n->remote;
    o->node.cluster = n->cluster;
    (void)snprintf(o->node.address, sizeof o->node.address, "%s", n->address);
    serve(&o->node, &call);
    return reply;
}

static bool
is_true(const cJSON *object, const char *key)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static void
outlook_take(const cJSON *reply, struct sim_said *said)
{
    const cJSON *outlook = cJSON_GetObjectItemCaseSensitive(reply, "outlook");
    const cJSON *in = cJSON_GetObjectItemCaseSensitive(outlook, "inMs");
    const char *verdict = trpi_json_get_text(outlook, "verdict");
    said->foresees = cJSON_IsObject(outlook) && verdict != NULL && in != NULL;
    if (said->foresees) {
        (void)snprintf(said->verdict, sizeof said->verdict, "%s", verdict);
        said->in_ms = (uint64_t)in->valuedouble;
    }
}

bool
sim_node_says(struct sim_operated *o, const struct sim_whole *n, struct sim_said *ret_said)
{
    cJSON *reply = call_command(o, n, trpi_node_serve_status);
    if (reply == NULL) {
        return false;
    }
    const cJSON *problems = cJSON_GetObjectItemCaseSensitive(reply, "problems");
    const cJSON *reasons = cJSON_GetObjectItemCaseSensitive(reply, "reasons");
    *ret_said = (struct sim_said){ .at_ns = sim_complete_now_ns(o->sim) };
    ret_said->healthy = is_true(reply, "healthy");
    ret_said->converged = is_true(reply, "converged");
    ret_said->problems = (uint32_t)cJSON_GetArraySize(problems);
    ret_said->reasons = (uint32_t)cJSON_GetArraySize(reasons);
    const char *first = cJSON_GetStringValue(cJSON_GetArrayItem(problems, 0));
    if (first == NULL) {
        first = trpi_json_get_text(cJSON_GetArrayItem(reasons, 0), "kind");
    }
    (void)snprintf(ret_said->first, sizeof ret_said->first, "%s", first != NULL ? first : "");
    outlook_take(reply, ret_said);
    cJSON_Delete(reply);
    return true;
}

void
sim_node_says_of(struct sim_operated *o, const struct sim_whole *n, const char *address,
                 char *ret_next, size_t bytes)
{
    cJSON *reply = call_command(o, n, trpi_node_serve_peers);
    const cJSON *row;
    ret_next[0] = '\0';
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(reply, "peers"))
    {
        const char *node = trpi_json_get_text(row, "node");
        if (node != NULL && strcmp(node, address) == 0) {
            (void)snprintf(ret_next, bytes, "%s", trpi_json_get_text(row, "next"));
        }
    }
    cJSON_Delete(reply);
}

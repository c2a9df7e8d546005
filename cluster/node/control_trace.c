/* control_trace.c - trace: which actors are sampled, and the hops of one trace from all members.
 *
 * Shape.   start, stop, list: this node alone. show: its own hops, and those that each other member
 *          has kept (`local`, carried). Key order and names are CONTROL.md's.
 * Limits.  HOPS_MAX hops of one member in an answer; "cut" says that there are more.
 * Tests.   tests/system/cli_fake.sh, tests/multinode/trace.sh
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <troupe/trace.h>

#include "cluster/node/control_member.h"
#include "cluster/node/node_private.h"

#define HOPS_MAX 400u /* of about 400 bytes: an answer that is carried has 192 KiB */
#define ASK_MS 2000u
#define ID_DIGITS 32

/* ---- one member's hops ----------------------------------------------------------------------- */

typedef struct collecting {
    trp_node *node;
    trp_trace wanted;
    uint64_t last_wall_ns; /* last_find() */
    cJSON *hops;
    uint32_t count;
    bool cut, ok;
} collecting;

static trp_err
last_find(void *arg, const trp_trace_hop *hop)
{
    collecting *c = arg;
    c->wanted = hop->trace; /* they come in their order */
    c->count++;
    return TRP_OK;
}

static const char *
end_word(trp_hop_end end)
{
    static const char *const words[] = { "handled", "failed", "unhandled", "dead" };
    return words[end];
}

static bool
hex_add(cJSON *row, const char *key, uint64_t number)
{
    char text[20];
    (void)snprintf(text, sizeof text, "%016" PRIx64, number);
    return trpi_json_add_text(row, key, number == 0 ? NULL : text);
}

/* The reason of what was not handled; NULL: there is none. */
static const char *
reason_of(const trp_trace_hop *hop)
{
    return hop->end == TRP_HOP_DEAD     ? trpi_dead_reason_text((trp_dead_reason)hop->dead_reason)
           : hop->end == TRP_HOP_FAILED ? trp_strerror(hop->err)
                                        : NULL;
}

static trp_err
hop_add(void *arg, const trp_trace_hop *hop)
{
    collecting *c = arg;
    char path[TRP_PATH_BYTES_MAX + 1] = "";
    if (hop->trace.id_high != c->wanted.id_high || hop->trace.id_low != c->wanted.id_low) {
        return TRP_OK;
    }
    if (c->count++ == HOPS_MAX) {
        c->cut = true;
        return TRP_ELIMIT;
    }
    if (!trp_ref_is_none(hop->actor)) {
        trp_path(c->node->system, hop->actor, path, sizeof path);
    }
    cJSON *row = cJSON_CreateObject();
    bool ok = trpi_json_add_text(row, "member", c->node->address) &&
              hex_add(row, "span", hop->trace.span) && hex_add(row, "parent", hop->parent) &&
              trpi_json_add_text(row, "actor", path[0] != '\0' ? path : NULL) &&
              trpi_json_add_text(row, "type", hop->type != NULL ? hop->type->name : NULL) &&
              trpi_json_add_text(row, "end", end_word(hop->end)) &&
              trpi_json_add_text(row, "reason", reason_of(hop)) &&
              trpi_json_add_u64_string(row, "timeNs", hop->wall_ns) &&
              trpi_json_add_i64(row, "netNs", (int64_t)hop->net_ns) &&
              trpi_json_add_i64(row, "waitNs", (int64_t)hop->wait_ns) &&
              trpi_json_add_i64(row, "runNs", (int64_t)hop->run_ns) &&
              (hop->trace.attempt == 0 || trpi_json_add_i64(row, "attempt", hop->trace.attempt));
    c->ok = trpi_json_append(c->hops, row, ok);
    return c->ok ? TRP_OK : TRP_ENOMEM;
}

/* ---- the others' ----------------------------------------------------------------------------- */

typedef struct gathering {
    cJSON *hops, *silent;
    bool cut, ok;
} gathering;

/* A trpi_member_reply_fn. */
static void
hops_take(void *arg, const trpi_view_member *v, trp_err err, const cJSON *reply)
{
    gathering *g = arg;
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(reply, "hops"), *hop;
    if (err != TRP_OK || !cJSON_IsArray(list)) {
        g->ok = g->ok && cJSON_AddItemToArray(g->silent, cJSON_CreateString(v->m.address));
        return;
    }
    g->cut = g->cut || cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(reply, "cut"));
    cJSON_ArrayForEach(hop, list)
    {
        cJSON *copy = cJSON_Duplicate(hop, true);
        g->ok = trpi_json_append(g->hops, copy, g->ok && copy != NULL);
    }
}

static bool
others_add(trp_node *node, trpi_call *call, const char *id, gathering *g)
{
    char request[160];
    trpi_view view;
    if (trpi_view_take(node, &view) != TRP_OK) {
        return false;
    }
    (void)snprintf(request, sizeof request,
                   "{\"v\":1,\"cmd\":\"trace\",\"action\":\"show\",\"text\":\"%s\",\"local\":true,"
                   "\"timeoutMs\":%u}",
                   id, ASK_MS);
    trpi_node_ask_members(node, call, &view, request, TRPI_ASKED_MAX, ASK_MS, hops_take, g);
    trpi_view_fini(&view);
    return g->ok;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Read the 32 digits of a trace id; false: it is none. */
static bool
id_parse(const char *text, trp_trace *ret_trace)
{
    char parent[TRP_TRACE_TEXT_BYTES];
    return strlen(text) == ID_DIGITS &&
           snprintf(parent, sizeof parent, "00-%s-0000000000000001-01", text) > 0 &&
           trp_trace_parse(parent, ret_trace) == TRP_OK;
}

static void
trace_answer(trp_node *node, trpi_call *call)
{
    const trpi_control_request *request = &call->request;
    collecting c = { .node = node, .ok = true };
    char id[ID_DIGITS + 1];
    if (request->text != NULL && !id_parse(request->text, &c.wanted)) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_USAGE, "",
                              "'%.64s' is no trace id: 32 digits of 0-9a-f", request->text);
        return;
    }
    if (request->text == NULL) {
        (void)!trp_trace_hops(node->system, 0, last_find, &c); /* none: said below */
        if (c.count == 0) {
            trpi_call_refuse_text(call, TRPI_CTL_EXIT_NOT_FOUND,
                                  "troupe trace start --path PATH begins some",
                                  "this node has kept no trace");
            return;
        }
        c.count = 0;
    }
    (void)snprintf(id, sizeof id, "%016" PRIx64 "%016" PRIx64, c.wanted.id_high, c.wanted.id_low);
    cJSON *reply = trpi_call_reply();
    c.ok = trpi_json_add_text(reply, "selfNode", node->address) &&
           trpi_json_add_text(reply, "traceId", id);
    c.hops = c.ok ? cJSON_AddArrayToObject(reply, "hops") : NULL;
    gathering g = { c.hops, c.hops != NULL ? cJSON_AddArrayToObject(reply, "silent") : NULL, false,
                    true };
    c.ok = g.silent != NULL;
    if (c.ok) {
        (void)!trp_trace_hops(node->system, 0, hop_add, &c); /* c.ok says it */
    }
    g.cut = c.cut;
    c.ok = c.ok && (request->local || others_add(node, call, id, &g)) &&
           trpi_json_add_bool(reply, "cut", g.cut);
    trpi_call_answer_if(call, c.ok, reply);
}

static trp_err
sample_add(void *arg, const char *path, uint32_t one_in)
{
    cJSON *row = cJSON_CreateObject();
    bool ok = trpi_json_add_text(row, "path", path) && trpi_json_add_i64(row, "oneIn", one_in);
    return trpi_json_append(arg, row, ok) ? TRP_OK : TRP_ENOMEM;
}

static void
samples_answer(trp_node *node, trpi_call *call)
{
    cJSON *reply = trpi_call_reply();
    bool ok = trpi_json_add_text(reply, "selfNode", node->address);
    cJSON *list = ok ? cJSON_AddArrayToObject(reply, "sampled") : NULL;
    ok = list != NULL && trp_trace_samples(node->system, sample_add, list) == TRP_OK;
    trpi_call_answer_if(call, ok, reply);
}

static void
sample_refuse(trpi_call *call, trp_err err)
{
    const char *path = call->request.path;
    if (err == TRP_ENOENT) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_NOT_FOUND, "troupe trace list shows which are",
                              "%s is not sampled on this node", path);
    } else if (err == TRP_ELIMIT) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_NO, "troupe trace stop --path PATH ends one",
                              "%d paths are sampled on this node already", TRP_TRACE_SAMPLES_MAX);
    } else if (err == TRP_EINVAL) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_USAGE, "",
                              "%s is no path of actors: /user/NAME, with * and ? as wildcards",
                              path);
    } else {
        trpi_call_refuse_order(call, err, path);
    }
}

void
trpi_node_serve_trace(trp_node *node, trpi_call *call)
{
    const trpi_control_request *request = &call->request;
    bool starts = strcmp(request->action, "start") == 0;
    trp_err err = TRP_OK;
    if (strcmp(request->action, "show") == 0) {
        trace_answer(node, call);
        return;
    }
    if (starts || strcmp(request->action, "stop") == 0) {
        uint32_t one_in = request->count == 0 ? 1 : request->count;
        err = trp_trace_sample(node->system, request->path, starts ? one_in : 0);
    }
    if (err == TRP_OK) {
        samples_answer(node, call);
    } else {
        sample_refuse(call, err);
    }
}

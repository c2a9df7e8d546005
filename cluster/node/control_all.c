/* control_all.c - status, why, peers and doctor with `allMembers`: the answer of each member.
 *
 * Why.     Each member has a view of its own. Which of them sees a fault says where it is, so an
 *          operator asks all of them through one.
 * Shape.   This node answers first, to here; then the others, several at a time (ask_members.c).
 *          Each answer is the one that the member gives by itself.
 * Must hold.
 *   control-all-A1  Each member of the view has one row: its answer, or why there is none. A member
 *       that is silent has no verdict.                                             (row_add)
 * Limits.  DOCTORS members examine themselves at a time, since each of them asks all others.
 * Tests.   tests/multinode/all_members.sh, tests/unit/node/control_request_test.c
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cluster/node/control_member.h"
#include "cluster/node/node_private.h"

#define DOCTORS 4u /* of the TRPI_CONTROL_CARRIED_MAX calls that a member runs for others */
#define ASK_MS 2000u
#define DOCTOR_MS 15000u /* a doctor waits for silent members, too */

typedef struct gathering {
    cJSON *members, *silent;
    bool ok;
} gathering;

/* ---- rows ------------------------------------------------------------------------------------ */

/* Is the answer a yes? That of peers always is. */
static bool
says_yes(const cJSON *answer)
{
    const cJSON *healthy = cJSON_GetObjectItemCaseSensitive(answer, "healthy");
    const cJSON *reasons = cJSON_GetObjectItemCaseSensitive(answer, "reasons");
    return cJSON_IsBool(healthy) ? cJSON_IsTrue(healthy) : cJSON_GetArraySize(reasons) == 0;
}

/* Add a row; reply NULL: none has come, and error says why. */
static void
row_add(gathering *g, const char *address, const cJSON *reply, const char *error)
{
    cJSON *row = cJSON_CreateObject(), *answer = NULL;
    bool answers = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(reply, "ok"));
    bool ok = g->ok && trpi_json_add_text(row, "node", address);
    if (ok && answers) {
        ok = trpi_json_add_bool(row, "yes", says_yes(reply)) &&
             (answer = cJSON_Duplicate(reply, true)) != NULL;
        cJSON_DeleteItemFromObjectCaseSensitive(answer, "ok");
        ok = ok && cJSON_AddItemToObject(row, "answer", answer);
    } else if (ok) {
        const char *text = trpi_json_get_text(reply, "error");
        ok = cJSON_AddNullToObject(row, "yes") != NULL &&
             cJSON_AddNullToObject(row, "answer") != NULL &&
             trpi_json_add_text(row, "error", text != NULL ? text : error) &&
             cJSON_AddItemToArray(g->silent, cJSON_CreateString(address));
    }
    g->ok = trpi_json_append(g->members, row, ok);
}

/* A trpi_member_reply_fn. */
static void
reply_take(void *arg, const trpi_view_member *v, trp_err err, const cJSON *reply)
{
    row_add(arg, v->m.address, err == TRP_OK ? reply : NULL,
            !v->m.reachable        ? "it is unreachable, and was not asked"
            : err == TRP_ETIMEDOUT ? "it has not answered in time"
            : err == TRP_EAGAIN    ? "this node carries too many questions"
                                   : trp_strerror(err));
}

/* ---- this node's own answer ------------------------------------------------------------------ */

static void
own_emit(trpi_call *call, const char *text, bool final)
{
    cJSON **answer = call->emit_arg;
    if (final) {
        /* no memory: as no answer */
        (void)!trpi_json_parse(text, strlen(text), answer, NULL);
    }
}

/* Let the command answer to here, as if it had not been asked for all. */
static cJSON *
own_answer(trp_node *node, trpi_call *call, void (*serve)(trp_node *node, trpi_call *call))
{
    cJSON *answer = NULL;
    void (*emit)(trpi_call * of, const char *text, bool final) = call->emit;
    void *emit_arg = call->emit_arg;
    call->emit = own_emit;
    call->emit_arg = &answer;
    call->request.all_members = false;
    serve(node, call);
    call->emit = emit;
    call->emit_arg = emit_arg;
    call->request.all_members = true;
    call->answered = false;
    return answer;
}

/* ---- the command ----------------------------------------------------------------------------- */

static const char *
name_of(trpi_control_command command)
{
    return command == TRPI_CONTROL_STATUS  ? "status"
           : command == TRPI_CONTROL_WHY   ? "why"
           : command == TRPI_CONTROL_PEERS ? "peers"
                                           : "doctor";
}

static bool
members_gather(trp_node *node, trpi_call *call, const trpi_view *view, const cJSON *own,
               gathering *g)
{
    char request[96];
    bool examines = call->request.command == TRPI_CONTROL_DOCTOR;
    uint32_t ask_ms = examines ? DOCTOR_MS : ASK_MS;
    (void)snprintf(request, sizeof request, "{\"v\":1,\"cmd\":\"%s\",\"timeoutMs\":%u}",
                   name_of(call->request.command), ask_ms);
    row_add(g, node->address, own, "out of memory");
    trpi_node_ask_members(node, call, view, request, examines ? DOCTORS : TRPI_ASKED_MAX, ask_ms,
                          reply_take, g);
    return g->ok;
}

void
trpi_node_serve_all(trp_node *node, trpi_call *call, void (*serve)(trp_node *node, trpi_call *call))
{
    trpi_view view;
    if (!trpi_view_take_for(node, call, &view)) {
        return;
    }
    cJSON *own = own_answer(node, call, serve);
    cJSON *reply = trpi_call_reply();
    gathering g = { NULL, NULL, true };
    bool ok = trpi_json_add_text(reply, "selfNode", node->address) &&
              (g.members = cJSON_AddArrayToObject(reply, "members")) != NULL &&
              (g.silent = cJSON_AddArrayToObject(reply, "silent")) != NULL &&
              members_gather(node, call, &view, own, &g) && trpi_call_add_elapsed(call, reply);
    trpi_call_answer_if(call, ok, reply);
    cJSON_Delete(own);
    trpi_view_fini(&view);
}

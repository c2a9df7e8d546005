/* control_doctor.c - doctor: gathers facts here and from the other members, and answers with the
 * findings.
 *
 * Shape.   Threads and mailboxes are sampled first and last; what takes time lies between, so that
 *          the two samples are at least LIVE_MS apart. With `local` only this node's facts for the
 *          doctor of another one.
 * Limits.  The members of the view; see doctor_others.c for the times.
 * Tests.   tests/unit/node/doctor_node_test.c, tests/system/observe.sh
 */
#include <stdio.h>
#include <string.h>

#include <troupe/live.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "cluster/node/doctor_look.h"

#define LIVE_MS 1000u /* a message that is handled for less is not called stuck */
#define ASKS_MS 500u  /* an ask that waits for less is not told to the doctor of another node */

/* Cancelled: nobody reads the answer. */
static void
pause_until(trpi_call *call, double until_ms)
{
    double left_ms = until_ms - trpi_call_elapsed_ms(call);
    if (left_ms > 0) {
        (void)trpi_call_pause(call, (uint32_t)left_ms);
    }
}

/* ---- for the doctor of another node ---------------------------------------------------------- */

static void
local_serve(trp_node *node, trpi_call *call, const trpi_view *view)
{
    int64_t received_ms = node->probes->wall_ms(node);
    struct trpi_doctor_waits *begun = trpi_doctor_waits_begin(node);
    trpi_doctor_asks asks = { NULL, 0, 0 };
    bool cut = !trpi_waiting_asks_seen();
    double until_ms = trpi_call_elapsed_ms(call) + ASKS_MS;
    cJSON *reply = trpi_call_reply();
    bool ok = trpi_json_add_text(reply, "selfNode", node->address) &&
              trpi_json_add_text(reply, "version", node->probes->version()) &&
              trpi_json_add_u64_string(reply, "view", view->version) &&
              trpi_doctor_keys_add(node, reply);
    cJSON *ways = ok ? cJSON_AddArrayToObject(reply, "ways") : NULL;
    ok = ways != NULL && trpi_node_own_ways_add(node, call, view, ways);
    if (begun != NULL) {
        pause_until(call, until_ms);
    }
    trpi_doctor_waits_end(begun, node, &asks, &cut);
    ok = trpi_doctor_asks_tell(node->address, &asks, cut, reply) && ok &&
         trpi_json_add_u64_string(reply, "receivedMs", (uint64_t)received_ms) &&
         trpi_json_add_u64_string(reply, "answeredMs", (uint64_t)node->probes->wall_ms(node));
    trpi_call_answer_if(call, ok, reply);
}

/* ---- findings -------------------------------------------------------------------------------- */

/* The threads that one message holds, for the tool to take their stacks. */
static bool
held_add(cJSON *row, const trpi_doctor_facts *facts)
{
    cJSON *threads = cJSON_AddArrayToObject(row, "threads");
    bool ok = threads != NULL;
    for (uint32_t i = 0; ok && i < facts->held_count; i++) {
        cJSON *thread = cJSON_CreateObject();
        ok = trpi_json_append(threads, thread,
                              trpi_json_add_text(thread, "actor", facts->held[i].actor) &&
                                  trpi_json_add_i64(thread, "thread", facts->held[i].thread));
    }
    return ok;
}

static bool
finding_add(cJSON *list, const trpi_doctor_facts *facts, const trpi_doctor_finding *f)
{
    cJSON *row = cJSON_CreateObject();
    char advice[TRPI_DOCTOR_ADVICE_BYTES], page[64];
    trpi_doctor_advice(f, advice, sizeof advice);
    (void)snprintf(page, sizeof page, "docs/doctor.md#%s", f->id);
    bool ok = trpi_json_add_text(row, "id", f->id) &&
              trpi_json_add_text(row, "level", trpi_doctor_level_name(f->level)) &&
              trpi_json_add_text(row, "evidence", f->evidence) &&
              trpi_json_add_text(row, "advice", advice[0] != '\0' ? advice : NULL) &&
              trpi_json_add_text(row, "page", page) &&
              (strcmp(f->id, "stuck") != 0 || facts->held_count == 0 || held_add(row, facts));
    return trpi_json_append(list, row, ok);
}

/* Gather the facts. false: no memory. */
static bool
facts_gather(trp_node *node, trpi_call *call, trpi_view *view, trpi_doctor_facts *facts,
             trpi_doctor_member *members)
{
    trp_live *live = trpi_doctor_live_begin(node);
    struct trpi_doctor_waits *begun = trpi_doctor_waits_begin(node);
    double until_ms = trpi_call_elapsed_ms(call) + LIVE_MS;
    trpi_view_foresee(node, view);
    trpi_view_look_at_links(node, view);
    trpi_view_look_at_certificates(node, view);
    trpi_view_look_at_files(node, view);
    bool ok = trpi_doctor_look(node, view, facts, members) &&
              trpi_doctor_ask_others(node, call, view, facts, members);
    pause_until(call, until_ms);
    trpi_doctor_live_end(live, node, facts);
    trpi_doctor_waits_end(begun, node, &facts->asks, &facts->asks_cut);
    facts->asks_unseen = !trpi_waiting_asks_seen();
    facts->ask_cycles = trpi_doctor_asks_cycles(&facts->asks, node->address, facts->ask_cycle,
                                                sizeof facts->ask_cycle);
    return ok;
}

static void
findings_answer(trp_node *node, trpi_call *call, const trpi_doctor_facts *facts)
{
    trpi_doctor_finding findings[TRPI_DOCTOR_FINDINGS_MAX];
    size_t count = trpi_doctor_judge(facts, findings);
    int64_t failures = 0, warnings = 0;
    cJSON *reply = trpi_call_reply(), *list = NULL;
    for (size_t i = 0; i < count; i++) {
        failures += findings[i].level == TRPI_DOCTOR_FAIL;
        warnings += findings[i].level == TRPI_DOCTOR_WARN;
    }
    bool ok = trpi_json_add_text(reply, "selfNode", node->address) &&
              trpi_json_add_bool(reply, "healthy", failures == 0) &&
              trpi_json_add_i64(reply, "failures", failures) &&
              trpi_json_add_i64(reply, "warnings", warnings) &&
              (list = cJSON_AddArrayToObject(reply, "findings")) != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        ok = finding_add(list, facts, &findings[i]);
    }
    ok = ok && trpi_call_add_elapsed(call, reply);
    trpi_call_answer_if(call, ok, reply);
}

void
trpi_node_serve_doctor(trp_node *node, trpi_call *call)
{
    trpi_view view;
    if (!trpi_view_take_for(node, call, &view)) {
        return;
    }
    if (call->request.local) {
        local_serve(node, call, &view);
        trpi_view_fini(&view);
        return;
    }
    trpi_doctor_facts *facts = trpi_alloc(sizeof *facts);
    trpi_doctor_member *members = trpi_alloc((view.count + 1) * sizeof *members);
    if (facts == NULL || members == NULL || !facts_gather(node, call, &view, facts, members)) {
        trpi_call_answer(call, NULL);
    } else {
        findings_answer(node, call, facts);
    }
    trpi_free(members);
    trpi_free(facts);
    trpi_view_fini(&view);
}

/* control_call.c - the operations of a command on its call: answer, refuse, report, wait.
 *
 * Must hold.
 *   control-call-I1  exactly one final object for each call (emit_final, asserted)
 * Tests.     tests/unit/node/control_test.c
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/json.h"
#include "cluster/node/control.h"
#include "cluster/node/ctl_proto.h"

#define PAUSE_STEP_MS 20u     /* how soon a cancelled call notices */
#define LOOK_MS 50u           /* how often the view is looked at */
#define ANSWER_MARGIN_MS 100u /* the client should get the reason, not just time out */

const char trpi_call_no_memory[] = "{\"ok\":false,\"exit\":70,\"error\":\"out of memory\"}";

static void
emit_final(trpi_call *call, const char *text)
{
    trpi_assert(!call->answered); /* control-call-I1 */
    call->answered = true;
    call->emit(call, text, true);
}

cJSON *
trpi_call_reply(void)
{
    cJSON *reply = cJSON_CreateObject();
    if (!trpi_json_add_bool(reply, "ok", true)) {
        cJSON_Delete(reply);
        return NULL;
    }
    return reply;
}

void
trpi_call_answer(trpi_call *call, cJSON *reply)
{
    char *text = reply ? trpi_json_print(reply) : NULL;
    if (text && strlen(text) > TRPI_CTL_RESPONSE_BYTES_MAX) {
        cJSON_free(text);
        cJSON_Delete(reply);
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_INTERNAL, NULL,
                              "the reply is larger than %u bytes", TRPI_CTL_RESPONSE_BYTES_MAX);
        return;
    }
    emit_final(call, text ? text : trpi_call_no_memory);
    cJSON_free(text);
    cJSON_Delete(reply);
}

void
trpi_call_answer_if(trpi_call *call, bool ok, cJSON *reply)
{
    if (!ok) {
        cJSON_Delete(reply);
        reply = NULL;
    }
    trpi_call_answer(call, reply);
}

cJSON *
trpi_call_plan(const trpi_call *call, cJSON *reply)
{
    return trpi_json_add_bool(reply, "dryRun", call->request.dry_run)
               ? cJSON_AddArrayToObject(reply, "nodes")
               : NULL;
}

void
trpi_call_refuse(trpi_call *call, const trpi_control_refusal *refusal)
{
    cJSON *reply = cJSON_CreateObject();
    bool ok = trpi_json_add_bool(reply, "ok", false) &&
              cJSON_AddNumberToObject(reply, "exit", refusal->exit) != NULL &&
              trpi_json_add_text(reply, "error", refusal->error) &&
              (!refusal->hint[0] || trpi_json_add_text(reply, "hint", refusal->hint));
    char *text = ok ? trpi_json_print(reply) : NULL;
    emit_final(call, text ? text : trpi_call_no_memory);
    cJSON_free(text);
    cJSON_Delete(reply);
}

void
trpi_call_refuse_text(trpi_call *call, int exit_code, const char *hint, const char *format, ...)
{
    trpi_control_refusal refusal = { exit_code, "", "" };
    va_list list;
    va_start(list, format);
    (void)vsnprintf(refusal.error, sizeof refusal.error, format, list); /* cut is fine */
    va_end(list);
    if (hint) {
        (void)snprintf(refusal.hint, sizeof refusal.hint, "%s", hint);
    }
    trpi_call_refuse(call, &refusal);
}

void
trpi_call_refuse_order(trpi_call *call, trp_err err, const char *what)
{
    if (err == TRP_ETIMEDOUT || err == TRP_ECANCELED) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_TIMEOUT, NULL,
                              "%s: the node was too busy to begin it in time; the order is dropped",
                              what);
    } else if (err == TRP_ECLOSED) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_UNREACHABLE, NULL, "the node is stopping");
    } else {
        trpi_call_refuse_text(call, trpi_ctl_exit_of(err), NULL, "%s: %s", what, trp_strerror(err));
    }
}

void
trpi_call_progress(trpi_call *call, const char *format, ...)
{
    char line[512];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(line, sizeof line, format, list); /* cut is fine */
    va_end(list);
    cJSON *object = cJSON_CreateObject();
    char *text = trpi_json_add_text(object, "progress", line) ? trpi_json_print(object) : NULL;
    if (text) {
        call->emit(call, text, false); /* without memory the line is left out */
    }
    cJSON_free(text);
    cJSON_Delete(object);
}

trp_err
trpi_call_wanted(trpi_call *call)
{
    return trpi_call_is_wanted(call) ? TRP_OK : TRP_ECANCELED;
}

void
trpi_call_confirm(trpi_call *call)
{
    call->emit(call, "{\"ordered\":true}", false);
}

void
trpi_call_go_on(trpi_call *call)
{
    atomic_store_explicit(&call->goes_on, true, memory_order_relaxed);
}

bool
trpi_call_pause(trpi_call *call, uint32_t ms)
{
    while (ms > 0 && !atomic_load_explicit(&call->cancelled, memory_order_relaxed)) {
        uint32_t step = ms < PAUSE_STEP_MS ? ms : PAUSE_STEP_MS;
        struct timespec pause = { 0, (long)step * 1000000 };
        (void)nanosleep(&pause, NULL); /* an early end is a shorter pause */
        ms -= step;
    }
    return !atomic_load_explicit(&call->cancelled, memory_order_relaxed);
}

bool
trpi_call_look_again(trpi_call *call)
{
    bool go_on = trpi_call_pause(call, LOOK_MS);
    if (!go_on) {
        trpi_call_refuse_order(call, TRP_ECLOSED, "");
    }
    return go_on;
}

uint64_t
trpi_call_elapsed_ns(const trpi_call *call)
{
    return trpi_world_mono_ns(call->world) - call->start_ns;
}

double
trpi_call_elapsed_ms(const trpi_call *call)
{
    return (double)(trpi_call_elapsed_ns(call) / 1000000u);
}

bool
trpi_call_add_elapsed(const trpi_call *call, cJSON *reply)
{
    return cJSON_AddNumberToObject(reply, "elapsedMs", trpi_call_elapsed_ms(call)) != NULL;
}

uint32_t
trpi_call_left_ms(const trpi_call *call)
{
    uint64_t now = trpi_world_mono_ns(call->world);
    if (now >= call->deadline_ns) {
        return 0;
    }
    uint64_t left = (call->deadline_ns - now) / 1000000;
    uint64_t margin = call->request.timeout_ms / 10 < ANSWER_MARGIN_MS
                          ? call->request.timeout_ms / 10
                          : ANSWER_MARGIN_MS;
    return left > margin ? (uint32_t)(left - margin) : 0;
}

/* ask_system.c - the asks by a thread, of which ask.c has the wait, and the answer that reports a
 * failure.
 *
 * Tests.   tests/unit/actor/ask_test.c
 * Sources. MSG-4, SYS-25.
 */
#include "actor/life/life.h"
#include "actor/life/promise.h"

#include <stdio.h>
#include <string.h>

trp_err
trpi_system_ask_whole(trp_system *system, trp_ref to, const trp_type *type, const void *payload,
                      size_t bytes, const trp_trace *trace, const trpi_patience *patience,
                      trp_msg **ret_reply)
{
    trpi_question q = { TRPI_FOR_REPLY, to, NULL, type, payload, bytes, trace, patience };

    if (type == NULL || ret_reply == NULL) {
        return TRP_EINVAL;
    }
    *ret_reply = NULL;
    return trp_ref_is_none(to) ? TRP_ENOENT : trpi_thread_ask(system, &q, ret_reply);
}

trp_err
trp_system_graceful_stop(trp_system *system, trp_ref ref, uint32_t timeout_ms)
{
    const trpi_patience patience = { .timeout_ms = timeout_ms };
    trpi_question q = { .purpose = TRPI_FOR_END, .to = ref, .patience = &patience };
    return trp_ref_is_none(ref) ? TRP_EINVAL : trpi_thread_ask(system, &q, NULL);
}

trp_err
trpi_system_resolve_whole(trp_system *system, const char *path, const trpi_patience *patience,
                          trp_ref *ret_ref)
{
    trpi_question q = { .purpose = TRPI_FOR_REF, .path = path, .patience = patience };
    trp_msg *reply = NULL;
    if (path == NULL || ret_ref == NULL) {
        return TRP_EINVAL;
    }
    trp_err err = trpi_thread_ask(system, &q, &reply);
    if (err == TRP_OK) {
        *ret_ref = ((const trp_actor_identity *)trp_msg_payload(reply))->ref;
    }
    trpi_msg_drop(reply);
    return err;
}

trp_err
trp_system_resolve(trp_system *system, const char *path, uint32_t timeout_ms, trp_ref *ret_ref)
{
    const trpi_patience patience = { .timeout_ms = timeout_ms };
    return trpi_system_resolve_whole(system, path, &patience, ret_ref);
}

trp_err
trp_system_ask(trp_system *system, trp_ref to, const trp_type *type, const void *payload,
               size_t bytes, uint32_t timeout_ms, trp_msg **ret_reply)
{
    const trpi_patience patience = { .timeout_ms = timeout_ms };
    trp_msg *reply = NULL;
    trp_err err;

    if (ret_reply == NULL) {
        return TRP_EINVAL;
    }
    err = trpi_system_ask_whole(system, to, type, payload, bytes, NULL, &patience, &reply);
    if (err == TRP_OK) {
        *ret_reply = reply;
    } else {
        trpi_msg_drop(reply);
    }
    return err;
}

trp_err
trp_system_ask_path(trp_system *system, const char *path, const trp_type *type, const void *payload,
                    size_t bytes, uint32_t timeout_ms, trp_msg **ret_reply)
{
    uint64_t start_ns, spent_ms;
    trp_ref to;
    trp_err err;

    if (!trpi_system_is_valid(system) || type == NULL || ret_reply == NULL) {
        return TRP_EINVAL;
    }
    start_ns = trpi_world_mono_ns(system->world);
    err = trp_system_resolve(system, path, timeout_ms, &to);
    if (err != TRP_OK) {
        return err;
    }
    spent_ms = (trpi_world_mono_ns(system->world) - start_ns) / 1000000u;
    if (spent_ms >= timeout_ms) {
        return TRP_ETIMEDOUT;
    }
    return trp_system_ask(system, to, type, payload, bytes, timeout_ms - (uint32_t)spent_ms,
                          ret_reply);
}

void
trp_reply_failure(trp_ctx *ctx, trp_err err, const char *reason)
{
    trp_status_failure failure;

    memset(&failure, 0, sizeof failure);
    failure.err = (int32_t)err;
    (void)snprintf(failure.reason, sizeof failure.reason, "%s",
                   reason != NULL ? reason : trp_strerror(err));
    trpi_tell(ctx, trp_sender(ctx), ctx->self, &trp_status_failure_type, &failure, sizeof failure);
}

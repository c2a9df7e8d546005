/* bridge_voice.c - what a session and the actors of its program have in common: messages become
 * lines, and requests become tells, asks and watches of the actor that they name.
 *
 * Shape.   message -> line -> connection, whose ack says that the kernel has it
 *          request -> tell, ask, watch, ...; its answer -> line
 * Must hold.
 *   bridge-voice-V1  bridge.unwritten is the sum of the lines whose ack has not come; an ack counts
 *       only from the connection.
 *   bridge-voice-V2  A message is written when the voice has nothing unwritten, or the bridge less
 *       than TRPI_BRIDGE_HIGH_BYTES; else it waits in the stash, and the voice's next ack looks
 *       again: so none waits for ever, and what waits is bounded.
 *   bridge-voice-V3  A message that finds TRPI_BRIDGE_WAITING_MAX others waiting is a dead letter
 *       (mailbox-full), and an ask fails at once.
 *   bridge-voice-V4  An ask of this node that the program has not answered fails when the actor
 *       ends, at once, not at its timeout.
 * Limits.  bridge.h
 * Tests.   tests/system/bridge.sh
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <troupe/io.h>
#include <troupe/pubsub.h>
#include <troupe/sharding.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/node/bridge_voice.h"
#include "cluster/node/ctl_proto.h"
#include "cluster/node/payload_json.h"

#define PATH_TEXT_BYTES (TRP_PATH_BYTES_MAX + 1)

struct trpi_bridge_sender {
    uint64_t number; /* 0: answered */
    trp_ref ref;
};

/* ---- writing --------------------------------------------------------------------------------- */

void
trpi_bridge_voice_write(trp_ctx *ctx, trpi_bridge_voice *v, char *line)
{
    size_t bytes = line == NULL ? 0 : strlen(line);
    trp_err err = line == NULL ? TRP_ENOMEM
                  : trp_ref_is_none(v->connection)
                      ? TRP_OK /* the program has gone */
                      : trp_tcp_write_copy(ctx, v->connection, line, bytes, bytes);
    cJSON_free(line);
    if (err != TRP_OK) {
        trpi_fail_as(ctx, err, "a line for the program cannot be written");
    }
    if (!trp_ref_is_none(v->connection)) { /* bridge-voice-V1 */
        v->unwritten += bytes;
        (void)atomic_fetch_add(&v->bridge->unwritten, bytes);
    }
}

void
trpi_bridge_voice_refuse(trp_ctx *ctx, trpi_bridge_voice *v, const trpi_bridge_request *request,
                         int exit_code, const char *hint, const char *format, ...)
{
    trpi_control_refusal refusal = { .exit = exit_code };
    va_list list;
    va_start(list, format);
    (void)vsnprintf(refusal.error, sizeof refusal.error, format, list); /* cut is fine */
    va_end(list);
    (void)snprintf(refusal.hint, sizeof refusal.hint, "%s", hint == NULL ? "" : hint);
    trpi_bridge_voice_write(ctx, v, trpi_bridge_refuse(request, 0, &refusal));
}

/* Refuse for an error of the library. */
void
trpi_bridge_refuse_err(trp_ctx *ctx, trpi_bridge_voice *v, const trpi_bridge_request *request,
                       trp_err err, const char *what)
{
    const char *hint = err == TRP_ENOENT      ? "troupe tree /user"
                       : err == TRP_ETIMEDOUT ? "troupe peers; a longer timeoutMs"
                                              : NULL;
    trpi_bridge_voice_refuse(ctx, v, request, trpi_ctl_exit_of(err), hint, "%.600s: %s", what,
                             err == TRP_ENOENT ? "no actor is there" : trp_strerror(err));
}

void
trpi_bridge_voice_ok(trp_ctx *ctx, trpi_bridge_voice *v, const trpi_bridge_request *request)
{
    if (request->has_id) {
        trpi_bridge_voice_write(ctx, v, trpi_bridge_print(trpi_bridge_answer(request->id), true));
    }
}

static bool
may_write(const trpi_bridge_voice *v) /* bridge-voice-V2 */
{
    return !trp_ref_is_none(v->connection) && !v->ending &&
           (v->unwritten == 0 || atomic_load(&v->bridge->unwritten) < TRPI_BRIDGE_HIGH_BYTES);
}

void
trpi_bridge_voice_go_on(trp_ctx *ctx, trpi_bridge_voice *v)
{
    /* not at each ack: all that wait are handled again, and most of them would wait again */
    bool worth = v->unwritten == 0 || atomic_load(&v->bridge->unwritten) < TRPI_BRIDGE_LOW_BYTES;
    if (v->stashed && worth && may_write(v)) {
        v->stashed = false;
        trp_unstash_all(ctx);
    }
}

static void
on_ack(trp_ctx *ctx, trpi_bridge_voice *v, uint64_t bytes)
{
    uint64_t left = atomic_fetch_sub(&v->bridge->unwritten, bytes) - bytes;
    trpi_assert(v->unwritten >= bytes);
    v->unwritten -= bytes;
    if (left < TRPI_BRIDGE_LOW_BYTES && atomic_exchange(&v->bridge->waits, false)) {
        trp_tell(ctx, v->bridge->session, &trpi_bridge_go_on_type, NULL, 0);
    }
    trpi_bridge_voice_go_on(ctx, v);
}

/* ---- messages for the program ---------------------------------------------------------------- */

/* Remember a sender, so that the program can reply. Returns its number. */
static uint64_t
sender_keep(trp_ctx *ctx, trpi_bridge_voice *v, trp_ref sender)
{
    if (v->senders == NULL) {
        v->senders = trp_alloc(ctx, TRPI_BRIDGE_REPLIES_MAX * sizeof *v->senders);
    }
    struct trpi_bridge_sender *place = &v->senders[++v->replies % TRPI_BRIDGE_REPLIES_MAX];
    place->number = v->replies;
    place->ref = sender;
    return v->replies;
}

/* Take a sender out; none: it was replied to, or others have come since. */
static trp_ref
sender_take(trpi_bridge_voice *v, uint64_t number)
{
    trp_ref nobody = TRP_REF_NONE;
    struct trpi_bridge_sender *place =
        v->senders == NULL ? NULL : &v->senders[number % TRPI_BRIDGE_REPLIES_MAX];
    if (place == NULL || place->number != number) {
        return nobody;
    }
    place->number = 0;
    return place->ref;
}

/* Lose a message for the program; an ask fails at once. */
static void
message_lose(trp_ctx *ctx, const trp_msg *msg, trp_dead_reason reason, trp_err err, const char *why)
{
    trpi_dead(ctx, trp_self(ctx), msg, reason);
    if (trpi_ref_is_ask(trp_ctx_system(ctx), trp_sender(ctx))) {
        trp_reply_failure(ctx, err, why);
    }
}

static char *
message_line(trp_ctx *ctx, trpi_bridge_voice *v, const trp_msg *msg)
{
    char text[PATH_TEXT_BYTES];
    trp_ref sender = trp_sender(ctx);
    trp_system *system = v->bridge->system;
    trp_trace trace;
    cJSON *event = trpi_bridge_event("message");
    bool ok = trpi_json_add_text(event, "actor", v->actor) &&
              trpi_bridge_move(event, trpi_payload_to_json(system, msg));
    if (ok && !trp_ref_is_none(sender)) {
        if (!trpi_ref_is_ask(system, sender)) {
            ok = trpi_json_add_text(event, "from", trp_path(system, sender, text, sizeof text));
        }
        ok = ok && trpi_json_add_i64(event, "reply", (int64_t)sender_keep(ctx, v, sender));
    }
    if (ok && trp_msg_trace(msg, &trace)) {
        trp_trace_format(&trace, text);
        ok = trpi_json_add_text(event, "traceparent", text);
    }
    return trpi_bridge_print(event, ok);
}

static void
message_give(trp_ctx *ctx, trpi_bridge_voice *v, const trp_msg *msg)
{
    if (!may_write(v)) { /* bridge-voice-V2 */
        trp_err err = trp_stash(ctx, msg);
        v->stashed = v->stashed || err == TRP_OK;
        if (err != TRP_OK) { /* bridge-voice-V3 */
            message_lose(ctx, msg, err == TRP_ENOMEM ? TRP_DEAD_NO_MEMORY : TRP_DEAD_MAILBOX_FULL,
                         err == TRP_ENOMEM ? TRP_ENOMEM : TRP_EAGAIN,
                         "the program behind the bridge does not read");
        }
        return;
    }
    char *line = message_line(ctx, v, msg);
    if (line != NULL && strlen(line) > TRPI_BRIDGE_LINE_BYTES_MAX + 1) {
        cJSON_free(line);
        message_lose(ctx, msg, TRP_DEAD_TOO_LARGE, TRP_EMSGSIZE,
                     "the message is longer than a line of the bridge");
        return;
    }
    trpi_bridge_voice_write(ctx, v, line);
}

void
trpi_bridge_voice_end(trp_ctx *ctx, trpi_bridge_voice *v)
{
    trp_status_failure failure = { .err = TRP_ECLOSED,
                                   .reason = "the program behind the bridge has ended" };
    for (uint32_t i = 0; v->senders != NULL && i < TRPI_BRIDGE_REPLIES_MAX; i++) {
        if (v->senders[i].number != 0 && trpi_ref_is_ask(v->bridge->system, v->senders[i].ref)) {
            trp_tell(ctx, v->senders[i].ref, &trp_status_failure_type, &failure, sizeof failure);
        }
        v->senders[i].number = 0; /* bridge-voice-V4 */
    }
    trpi_bridge_waitings_refuse(ctx, v);
    (void)atomic_fetch_sub(&v->bridge->unwritten, v->unwritten);
    v->unwritten = 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void
tell_do(trp_ctx *ctx, trpi_bridge_voice *v, const trpi_bridge_request *request,
        const trpi_bridge_message *m)
{
    trp_entity entity;
    trp_err err = TRP_OK;
    if (trpi_bridge_is_entity(request->to)) {
        if (!trpi_bridge_entity_parse(ctx, v, request, &entity)) {
            return;
        }
        trp_entity_tell(ctx, &entity, m->type, m->payload, m->bytes);
    } else {
        err = trp_select_tell(ctx, request->to, m->type, m->payload, m->bytes);
    }
    if (err == TRP_OK) {
        trpi_bridge_voice_ok(ctx, v, request);
    } else if (err == TRP_EINVAL) {
        trpi_bridge_voice_refuse(ctx, v, request, TRPI_CTL_EXIT_USAGE,
                                 "write /user/NAME or troupe.tcp://system@host:port/user/NAME",
                                 "'%.600s' is no path", request->to);
    } else {
        trpi_bridge_refuse_err(ctx, v, request, err, request->to);
    }
}

static void
reply_do(trp_ctx *ctx, trpi_bridge_voice *v, const trpi_bridge_request *request,
         const trpi_bridge_message *m)
{
    trp_ref to = sender_take(v, request->reply);
    if (trp_ref_is_none(to)) {
        trpi_bridge_voice_refuse(ctx, v, request, TRPI_CTL_EXIT_NOT_FOUND,
                                 "a message is replied to once, by the actor that got it",
                                 "no message %llu of actor '%.255s' waits for a reply",
                                 (unsigned long long)request->reply, v->actor);
        return;
    }
    if (m != NULL) {
        trp_tell(ctx, to, m->type, m->payload, m->bytes);
    } else {
        trp_status_failure failure = { .err = TRP_EFAILED };
        (void)snprintf(failure.reason, sizeof failure.reason, "%s", request->error);
        trp_tell(ctx, to, &trp_status_failure_type, &failure, sizeof failure);
    }
    trpi_bridge_voice_ok(ctx, v, request);
}

static void
message_do(trp_ctx *ctx, trpi_bridge_voice *v, const trpi_bridge_request *request,
           const trpi_bridge_message *m)
{
    switch (request->op) {
    case TRPI_BRIDGE_TELL:
        tell_do(ctx, v, request, m);
        return;
    case TRPI_BRIDGE_ASK:
        trpi_bridge_ask_do(ctx, v, request, m);
        return;
    case TRPI_BRIDGE_REPLY:
        reply_do(ctx, v, request, m);
        return;
    default:
        trpi_assert(request->op == TRPI_BRIDGE_PUBLISH);
        trpi_bridge_publish_do(ctx, v, request, m);
        return;
    }
}

struct doing {
    trpi_bridge_voice *v;
    const trpi_bridge_request *request;
};

static trp_err
request_do(trp_ctx *ctx, void *arg)
{
    trpi_bridge_voice *v = ((struct doing *)arg)->v;
    const trpi_bridge_request *request = ((struct doing *)arg)->request;
    trpi_control_refusal refusal;
    trpi_bridge_message message;
    switch (request->op) {
    case TRPI_BRIDGE_WATCH:
        trpi_bridge_watch_do(ctx, v, request);
        return TRP_OK;
    case TRPI_BRIDGE_UNWATCH:
        trpi_bridge_unwatch_do(ctx, v, request);
        return TRP_OK;
    case TRPI_BRIDGE_SUBSCRIBE:
    case TRPI_BRIDGE_UNSUBSCRIBE:
        trpi_bridge_subscribe_do(ctx, v, request, request->op == TRPI_BRIDGE_UNSUBSCRIBE);
        return TRP_OK;
    case TRPI_BRIDGE_FAIL:
        reply_do(ctx, v, request, NULL);
        return TRP_OK;
    default:
        break;
    }
    if (trpi_bridge_message_make(request, &message, &refusal) != TRP_OK) {
        trpi_bridge_voice_write(ctx, v, trpi_bridge_refuse(request, 0, &refusal));
        return TRP_OK;
    }
    message_do(ctx, v, request, &message);
    trpi_free(message.owned);
    return TRP_OK;
}

trp_err
trpi_bridge_voice_do(trp_ctx *ctx, trpi_bridge_voice *v, const trpi_bridge_request *request)
{
    struct doing doing = { v, request };
    return trpi_bridge_in_trace(ctx, request, request_do, &doing);
}

/* ---- messages -------------------------------------------------------------------------------- */

trp_err
trpi_bridge_voice_receive(trp_ctx *ctx, trpi_bridge_voice *v, const trp_msg *msg)
{
    bool of_connection =
        !trp_ref_is_none(v->connection) && trp_ref_equal(trp_sender(ctx), v->connection);
    const trp_tcp_ack *ack = trp_msg_as(msg, &trp_tcp_ack_type);
    const trp_terminated *terminated = trp_msg_as(msg, &trp_terminated_type);
    if (terminated != NULL) {
        trpi_bridge_on_terminated(ctx, v, terminated);
    } else if (ack != NULL) {
        if (of_connection) {
            on_ack(ctx, v, ack->ack);
        }
    } else if (trp_msg_is(msg, &trp_tcp_command_failed_type)) {
        return TRP_OK; /* a line that the program did not live to see: its end follows */
    } else if (trp_msg_is(msg, &trp_subscribe_ack_type) ||
               trp_msg_is(msg, &trp_unsubscribe_ack_type)) {
        trpi_bridge_on_subscribe_ack(ctx, v, trp_msg_payload(msg),
                                     trp_msg_is(msg, &trp_unsubscribe_ack_type));
    } else {
        message_give(ctx, v, msg);
    }
    return TRP_OK;
}

/* dead_letter.c - messages that reached no actor, and messages that were not handled.
 *
 * Why.     At-most-once delivery loses messages. Each loss that a node can see is counted by its
 *          reason and published; the first few are logged.
 * Must hold.
 *   dead-letter-D1  A lost event about a loss is only counted: no loss makes more than one event.
 *   dead-letter-D2  Messages that no longer matter are not reported: Terminated, timers, a second
 *       poison pill (LIFE-17).
 *   dead-letter-D3  An ask whose message was lost ends at once, if the asker itself sent it.
 *   dead-letter-D5  An ask that is not handled ends at once, also one from another node. An ask
 *       that a router gave to several routees may be handled by another one, so it goes on.
 *   dead-letter-D4  An event holds a copy of the message, made once for all subscribers and only
 *       if there is one: a subscriber keeps, copies or forwards it after the lost message was
 *       freed.
 *   dead-letter-D6  A message that an upper room carries in one of its own is shown as itself.
 * Limits.  log_dead_letters lines, then one line that says so; TRP_DEAD_LETTER_PAYLOAD_MAX bytes
 *          of payload: the event of a larger message has none, so that a flood of large lost
 *          messages does not fill the memory with copies.
 * Tests.   tests/unit/actor/dead_letter_test.c
 * Sources. LIFE-11, -15, -16, -17; ES-03; MSG-15; SYS-25 for Identify.
 */
#include "actor/kernel/stats.h"
#include "actor/life/life.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

const char *
trpi_dead_reason_text(trp_dead_reason reason)
{
    static const char *const texts[TRP_DEAD_REASON_COUNT] = { "unknown",
                                                              "no such actor",
                                                              "actor has ended",
                                                              "left when the actor stopped",
                                                              "mailbox full",
                                                              "lane full",
                                                              "node quarantined",
                                                              "message too large",
                                                              "not encodable",
                                                              "out of memory",
                                                              "node not connected",
                                                              "told to nobody",
                                                              "left in the stash",
                                                              "actor is deactivated",
                                                              "refused by the actor",
                                                              "storage failed",
                                                              "too old",
                                                              "receiver full",
                                                              "stash full",
                                                              "recovery failed",
                                                              "too much waits for entities",
                                                              "its shard moves",
                                                              "nobody subscribes" };

    return texts[(unsigned)reason < TRP_DEAD_REASON_COUNT ? reason : 0];
}

/* The error of an ask whose message is lost for this reason. */
static trp_err
reason_err(trp_dead_reason reason)
{
    switch (reason) {
    case TRP_DEAD_NOT_CONNECTED:
        return TRP_ECONN;
    case TRP_DEAD_QUARANTINED:
        return TRP_EQUARANTINED;
    case TRP_DEAD_MAILBOX_FULL:
    case TRP_DEAD_LANE_FULL:
    case TRP_DEAD_RECEIVER_FULL:
    case TRP_DEAD_STASH_FULL:
    case TRP_DEAD_ENTITY_BUFFER:
    case TRP_DEAD_SHARD_MOVES:
        return TRP_EAGAIN;
    case TRP_DEAD_TOO_LARGE:
        return TRP_EMSGSIZE;
    case TRP_DEAD_NOT_ENCODABLE:
        return TRP_ENOTYPE;
    case TRP_DEAD_NO_MEMORY:
        return TRP_ENOMEM;
    case TRP_DEAD_RECOVERY:
        return TRP_EJOURNAL;
    case TRP_DEAD_STORAGE:
        return TRP_EIO;
    default:
        return TRP_ENOENT;
    }
}

/* May one more be logged? *ret_last: it is the last one. */
static bool
may_log(trp_system *system, bool *ret_last)
{
    uint32_t limit = system->options.log_dead_letters;
    uint32_t before;

    if (limit == TRP_OFF || !trpi_log_wanted(system, TRP_LOG_INFO) ||
        (system->logging.no_dead_letters_at_end != 0 &&
         atomic_load_explicit(&system->life->shutdown, memory_order_relaxed))) {
        return false;
    }
    if (limit == TRP_FOREVER) {
        return true;
    }
    /* relaxed: a counter that guards nothing. Read it first, so that it cannot overflow. */
    before = atomic_load_explicit(&system->life->dead_logged, memory_order_relaxed);
    if (before < limit) {
        before = atomic_fetch_add_explicit(&system->life->dead_logged, 1, memory_order_relaxed);
    }
    *ret_last = before + 1 == limit;
    return before < limit;
}

static void
log_letter(trp_ctx *ctx, const trp_dead_letter *what, const trp_type *type, bool last)
{
    char sender[TRP_PATH_BYTES_MAX + 1];

    trp_path(ctx->system, what->sender, sender, sizeof sender);
    trpi_log(ctx->system, TRP_LOG_INFO, "deadLetters", "dead letter of type %s from %s to %s: %s%s",
             type == NULL ? "unknown" : type->name, sender[0] == 0 ? "nobody" : sender,
             what->path[0] == 0 ? "nobody" : what->path,
             type != NULL && type->number == 0
                 ? "its type is not registered (trp_protocol_register, or accepts)"
                 : trpi_dead_reason_text((trp_dead_reason)what->reason),
             last ? "; no more dead letters will be logged" : "");
}

/* dead-letter-D1: an event of the system about a message, or a log event. */
static bool
is_event(uint32_t number)
{
    return number == TRPI_TYPE_DEAD_LETTER || number == TRPI_TYPE_UNHANDLED ||
           number == TRPI_TYPE_SUPPRESSED || trpi_type_is_log(number);
}

static bool
is_silent(const trp_type *type)
{
    return type != NULL && type->number != 0 &&
           (type->number < TRPI_TYPE_AUTO_END || is_event(type->number) ||
            (type->flags & TRPI_TYPE_FLAG_SILENT) != 0); /* dead-letter-D2 */
}

/* Is a lost message of this type published as a suppressed dead letter? The user sent or asked for
 * it, but its loss is expected. */
static bool
is_suppressed(uint32_t number)
{
    return number == TRPI_TYPE_TERMINATED || number == TRPI_TYPE_POISON_PILL ||
           number == TRPI_TYPE_KILL || number == TRPI_TYPE_RECEIVE_TIMEOUT;
}

/* ---- the message, in the event --------------------------------------------------------------- */

/* Behind the event's own struct stands the lost message, in line and with its header:
 * dead-letter-D4. */
#define KEPT_AT ((sizeof(trp_dead_letter) + 15u) & ~(size_t)15u)
_Static_assert(TRP_DEAD_LETTER_PAYLOAD_MAX <= UINT16_MAX, "priv_bytes says how long it is");

static bool
is_kept(const trpi_loss *loss)
{
    return loss->type != NULL && loss->type->number != 0 &&
           (loss->payload != NULL || loss->bytes == 0) &&
           loss->bytes <= TRP_DEAD_LETTER_PAYLOAD_MAX && loss->reason != TRP_DEAD_NO_MEMORY;
}

static size_t
kept_bytes(const trpi_loss *loss)
{
    size_t bytes = TRPI_MSG_HEADER_BYTES + ((loss->bytes + 15u) & ~(size_t)15u);

    return loss->interaction == NULL ? bytes : bytes + TRPI_TRAILER_BYTES;
}

static void
loss_keep(const trpi_loss *loss, trp_msg *kept)
{
    memset(kept, 0, TRPI_MSG_HEADER_BYTES);
    kept->priv_to_slot = loss->recipient.slot;
    kept->priv_to_generation = loss->recipient.generation;
    trpi_msg_sender_set(kept, loss->sender);
    kept->priv_type = (uint16_t)loss->type->number;
    kept->priv_bytes = (uint16_t)loss->bytes;
    if (loss->bytes > 0) {
        memcpy((char *)kept + TRPI_MSG_HEADER_BYTES, loss->payload, loss->bytes);
    }
    if (loss->interaction != NULL) {
        kept->priv_from_node_flags |= TRPI_MSG_TRAILER;
        memcpy((char *)kept + trpi_msg_trailer_at(kept), loss->interaction, TRPI_TRAILER_BYTES);
    }
}

const trp_msg *
trp_dead_letter_msg(const trp_msg *event)
{
    size_t bytes = event != NULL ? trp_msg_bytes(event) : 0;

    if (bytes < KEPT_AT + TRPI_MSG_HEADER_BYTES ||
        (event->priv_type != TRPI_TYPE_DEAD_LETTER && event->priv_type != TRPI_TYPE_SUPPRESSED)) {
        return NULL;
    }
    return (const void *)((const char *)trp_msg_payload(event) + KEPT_AT);
}

static void
loss_publish(trp_ctx *ctx, const trp_type *event, const trp_dead_letter *what,
             const trpi_loss *loss)
{
    size_t bytes = is_kept(loss) ? KEPT_AT + kept_bytes(loss) : sizeof *what;
    void *place = NULL;
    trp_msg *draft =
        bytes > sizeof *what ? trpi_msg_make_empty(ctx->cache, event, bytes, &place) : NULL;

    /* nothing to keep, or out of memory: publish the event without the message */
    if (draft == NULL) {
        (void)trpi_event_publish(ctx, event, what, sizeof *what);
        return;
    }
    memset(place, 0, bytes); /* subscribers get no uninitialized bytes */
    memcpy(place, what, sizeof *what);
    loss_keep(loss, (trp_msg *)(void *)((char *)place + KEPT_AT));
    (void)trpi_event_publish(ctx, event, place, bytes);
    trpi_msg_free(ctx->cache, draft);
}

trpi_loss
trpi_loss_of(trp_ref recipient, const trp_msg *msg, trp_dead_reason reason)
{
    /* its header speaks of a payload that is not there */
    bool header_only = reason == TRP_DEAD_NO_MEMORY;
    trpi_loss loss = { trpi_msg_sender(msg),
                       recipient,
                       reason,
                       trpi_type_get(msg->priv_type),
                       header_only ? NULL : trp_msg_payload(msg),
                       header_only ? 0 : trp_msg_bytes(msg),
                       header_only ? NULL : trp_msg_interaction(msg),
                       header_only ? NULL : trpi_msg_traced(msg),
                       NULL };

    return loss;
}

void
trpi_dead_letters_show(trp_system *system, trpi_carried_fn fn)
{
    /* release: its pair is in loss_shown() */
    atomic_store_explicit(&system->life->carried, fn, memory_order_release);
}

/* Show what the program had sent, where the lost message is one of the library's that carries
 * it. */
static trpi_loss
loss_shown(const trp_system *system, const trpi_loss *loss)
{
    trpi_carried_fn fn = atomic_load_explicit(&system->life->carried, memory_order_acquire);
    trpi_loss shown = *loss;

    if (fn != NULL && loss->type != NULL && loss->payload != NULL) {
        fn(&shown.type, &shown.payload, &shown.bytes);
    }
    return shown;
}

void
trpi_dead_announce(trp_ctx *ctx, const trpi_loss *lost)
{
    const trp_type *event = &trp_dead_letter_type;
    const trpi_loss shown = loss_shown(ctx->system, lost), *loss = &shown;
    trp_dead_letter what;
    bool log = false, last = false;

    if (lost->traced != NULL) {
        trpi_trace_dead(ctx->system, lost->traced, lost->recipient,
                        lost->type == NULL ? 0 : lost->type->number, lost->reason);
    }
    /* dead-letter-D3 */
    trpi_ask_dead(ctx, loss->sender, loss->recipient, reason_err(loss->reason));
    if (!is_silent(loss->type)) {
        log = may_log(ctx->system, &last);
    } else if (is_suppressed(loss->type->number)) {
        event = &trp_suppressed_dead_letter_type;
    } else {
        return;
    }
    /* acquire, with trpi_dead_watch(): its argument is there */
    trpi_dead_fn watch =
        event == &trp_dead_letter_type
            ? atomic_load_explicit(&ctx->system->life->dead_watch, memory_order_acquire)
            : NULL;
    if (!log && watch == NULL && !trpi_event_is_wanted(ctx, event)) {
        return;
    }
    memset(&what, 0, sizeof what);
    what.sender = loss->sender;
    what.recipient = loss->recipient;
    what.reason = (uint32_t)loss->reason;
    what.type = loss->type == NULL ? 0 : loss->type->number;
    what.bytes = loss->bytes;
    if (loss->path != NULL) {
        snprintf(what.path, sizeof what.path, "%s", loss->path);
    } else {
        trp_path(ctx->system, loss->recipient, what.path, sizeof what.path);
    }
    if (log) {
        log_letter(ctx, &what, loss->type, last);
    }
    if (watch != NULL) {
        watch(ctx->system->life->dead_watch_arg, ctx->system, &what);
    }
    if (trpi_event_is_wanted(ctx, event)) {
        loss_publish(ctx, event, &what, loss);
    }
}

void
trpi_dead_watch(trp_system *system, trpi_dead_fn fn, void *arg)
{
    trpi_life *life = system->life;

    trpi_assert(fn != NULL);
    trpi_assert(atomic_load_explicit(&life->dead_watch, memory_order_relaxed) == NULL);
    life->dead_watch_arg = arg;
    atomic_store_explicit(&life->dead_watch, fn, memory_order_release);
}

/* Answer an Identify: there is no such actor. */
static void
identify_nobody(trp_ctx *ctx, const trp_msg *msg)
{
    trp_identify question = { 0 };
    trp_actor_identity answer = { 0, TRP_REF_NONE };

    if (trp_msg_bytes(msg) == sizeof question) {
        memcpy(&question, trp_msg_payload(msg), sizeof question);
    }
    answer.id = question.id;
    if (!trp_ref_is_none(trpi_msg_sender(msg))) {
        trpi_tell(ctx, trpi_msg_sender(msg), answer.ref, &trp_actor_identity_type, &answer,
                  sizeof answer);
    }
}

void
trpi_life_dead(trp_ctx *ctx, trp_ref to, const trp_msg *msg, trp_dead_reason reason)
{
    switch (msg->priv_type) {
    case TRPI_TYPE_CONTINUE:
        trpi_ask_late(ctx, msg);
        break;
    case TRPI_TYPE_IDENTIFY:
        identify_nobody(ctx, msg);
        break;
    case TRPI_TYPE_LOG_ERROR:
    case TRPI_TYPE_LOG_WARNING:
    case TRPI_TYPE_LOG_INFO:
    case TRPI_TYPE_LOG_DEBUG:
    case TRPI_TYPE_LOGGER_END:
    case TRPI_TYPE_LOGGER_FLUSH:
        trpi_count(ctx, &ctx->stats->dead[reason], (uint64_t)-1); /* internal: not counted */
        trpi_logger_late(ctx->system, to, msg);
        break;
    case TRPI_TYPE_MARK:
        trpi_count(ctx, &ctx->stats->dead[reason], (uint64_t)-1);
        trpi_mark_reached(msg);
        break;
    default: {
        trpi_loss loss = trpi_loss_of(to, msg, reason);

        trpi_dead_announce(ctx, &loss);
        break;
    }
    }
}

static void
announce_from_outside(trp_system *system, const trpi_loss *loss)
{
    trp_ctx *ctx = trpi_enter(system);

    trpi_assert((unsigned)loss->reason < TRP_DEAD_REASON_COUNT);
    trpi_count(ctx, &ctx->stats->dead[loss->reason], 1);
    trpi_dead_announce(ctx, loss);
    trpi_leave(ctx);
}

void
trpi_dead_letter(trp_system *system, trp_ref sender, trp_ref recipient, trp_dead_reason reason,
                 const trp_type *type, size_t bytes)
{
    trpi_loss loss = { sender, recipient, reason, type, NULL, bytes, NULL, NULL };

    announce_from_outside(system, &loss);
}

void
trpi_dead_letter_of(trp_system *system, trp_ref sender, trp_ref recipient, trp_dead_reason reason,
                    const trp_type *type, const void *payload, size_t bytes)
{
    trpi_loss loss = { sender, recipient, reason, type, payload, bytes, NULL, NULL };

    announce_from_outside(system, &loss);
}

void
trpi_dead_letter_msg(trp_system *system, trp_ref recipient, const trp_msg *msg,
                     trp_dead_reason reason)
{
    trpi_loss loss = trpi_loss_of(recipient, msg, reason);

    announce_from_outside(system, &loss);
}

/* ---- unhandled ------------------------------------------------------------------------------- */

/* Answer an ask that was not handled, before its timeout: dead-letter-D5. */
static void
ask_unhandled(trp_ctx *ctx, trp_ref asked, const trp_msg *msg)
{
    trp_ref sender = trpi_msg_sender(msg);

    if (trp_ref_is_none(sender) || (msg->priv_from_node_flags & TRPI_MSG_MANY) != 0) {
        return;
    }
    if (sender.node == TRPI_NODE_SELF) {
        trpi_ask_dead_of(ctx, sender, asked, TRP_EUNHANDLED, true);
    } else { /* an actor on that node does not see it */
        trpi_tell(ctx, sender, asked, &trpi_ask_unhandled_type, NULL, 0);
    }
}

void
trpi_life_unhandled(trp_ctx *ctx, trpi_cell *cell, const trp_msg *msg)
{
    trp_unhandled what = { trpi_msg_sender(msg), trpi_cell_ref(cell), msg->priv_type, 0 };

    if (is_event(msg->priv_type)) {
        return; /* dead-letter-D1: a subscriber that does not handle what it subscribed to */
    }
    if (trpi_log_debugs(ctx->system, TRP_DEBUG_UNHANDLED)) {
        char sender[TRP_PATH_BYTES_MAX + 1];

        trp_path(ctx->system, what.sender, sender, sizeof sender);
        trpi_log_about(ctx, what.recipient, TRP_LOG_DEBUG, TRP_OK,
                       "unhandled message of type %s from %s", trp_msg_type(msg)->name,
                       sender[0] == 0 ? "nobody" : sender);
    }
    (void)trpi_event_publish(ctx, &trp_unhandled_type, &what, sizeof what);
    ask_unhandled(ctx, what.recipient, msg);
}

void
trp_unhandled_msg(trp_ctx *ctx, const trp_msg *msg)
{
    if (msg == NULL) {
        return;
    }
    if (msg->priv_type == TRPI_TYPE_TERMINATED) { /* WATCH-5 */
        char path[TRP_FAILURE_REASON_BYTES / 2];

        trp_path(ctx->system, trpi_msg_sender(msg), path, sizeof path);
        trpi_life_throw(ctx, TRP_EDEATHPACT, "death pact: %s has ended", path);
    }
    trpi_life_unhandled(ctx, ctx->cell, msg);
}

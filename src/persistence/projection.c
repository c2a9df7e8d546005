/* projection.c - an actor that handles the events of a journal, one after the other.
 *
 * Shape. query --events, by demand--> handler --every save_events--> the offset --> demand
 * States. Those of trp_projection_phase. While the handler is to be called again, events that
 *         arrive are stashed: no more than were asked for.
 * Must hold.
 *   projection-P1  Each event is handled, or left out by on_failure, before the next one.
 *   projection-P2  What a failed call has emitted is forgotten.
 *   projection-P3  Events of an earlier query of this projection are not handled.
 * Limits. Those of troupe/projection.h; save_events are asked for at most.
 * Tests. tests/unit/persistence/projection_test.c
 */
#include "persistence/projection.h"

#include <stdio.h>
#include <string.h>

#include <troupe/journal_query.h>
#include <troupe/log.h>
#include <troupe/system.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/sized.h"
#include "persistence/persistence.h"

#define FIELD(kind_, member)                                                                       \
    {                                                                                              \
        .name = #member, .kind = TRP_FIELD_##kind_,                                                \
        .offset = offsetof(trp_projection_status, member)                                          \
    }
static const trp_field status_fields[] = { FIELD(u32, phase),    FIELD(i32, err),
                                           FIELD(u64, position), FIELD(u64, saved),
                                           FIELD(u64, handled),  FIELD(u64, skipped),
                                           FIELD(u64, failures) };
enum { ask_status_tag, status_tag, again_tag, save_tag };
trp_type trp_projection_ask_status_type = { .name = "projection.ask-status",
                                            .tag = ask_status_tag,
                                            .flags = TRP_TYPE_VARIABLE };
trp_type trp_projection_status_type = { .name = "projection.status",
                                        .bytes = sizeof(trp_projection_status),
                                        .tag = status_tag,
                                        .fields = status_fields,
                                        .fields_count = 7 };
trp_type trpi_projection_again_type = { .name = "projection.priv-again",
                                        .tag = again_tag,
                                        .flags = TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL };
trp_type trpi_projection_save_type = { .name = "projection.priv-save",
                                       .tag = save_tag,
                                       .flags = TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL };
static trp_type *const types[] = { &trp_projection_ask_status_type, &trp_projection_status_type,
                                   &trpi_projection_again_type, &trpi_projection_save_type };
const trp_protocol trp_projection_protocol = { "projection", types, 4, 0 };

/* ---- handling -------------------------------------------------------------------------------- */

trp_err
trp_projection_emit(trp_projection *projection, const trp_journal_event *event)
{
    trp_projection *p = projection;

    if (p == NULL || event == NULL || event->type == NULL || event->type[0] == '\0' ||
        (event->bytes != 0 && event->data == NULL) ||
        (event->tags_count != 0 && event->tags == NULL)) {
        return TRP_EINVAL;
    }
    if (!p->args.exactly_once || !p->in_handler) {
        return TRP_ESTATE;
    }
    if (p->emitted_count - p->emitted_before >= TRP_PROJECTION_EMITTED_MAX ||
        event->tags_count > TRP_JOURNAL_TAGS_MAX) {
        return TRP_ELIMIT;
    }
    if (event->bytes > TRP_PROJECTION_EMITTED_BYTES_MAX ||
        p->emitted_bytes + event->bytes > 2 * (uint64_t)TRP_PROJECTION_EMITTED_BYTES_MAX) {
        return TRP_EMSGSIZE;
    }
    trpi_journal_item *item = trpi_journal_item_new(event);
    if (item == NULL) {
        return TRP_ENOMEM;
    }
    *p->emitted_last = item;
    p->emitted_last = &item->next;
    p->emitted_count++;
    p->emitted_bytes += event->bytes;
    return TRP_OK;
}

/* The event is over: save, now or soon. */
static trp_err
event_over(trp_ctx *ctx, trp_projection *p, uint64_t at)
{
    p->position = at;
    p->tries = 0;
    p->phase = TRP_PROJECTION_RUNS;
    p->unsaved++;
    p->granted--;
    if (p->unsaved >= p->args.save_events || p->emitted_count >= TRP_PROJECTION_EMITTED_MAX ||
        p->emitted_bytes >= TRP_PROJECTION_EMITTED_BYTES_MAX || p->at_end) {
        return trpi_projection_save(ctx, p);
    }
    if (p->save_is_due) {
        return TRP_OK;
    }
    p->save_is_due = true;
    return trp_timer_once(ctx, TRPI_PROJECTION_SAVE_KEY, p->args.save_ms,
                          &trpi_projection_save_type, NULL, 0);
}

static trp_err
event_failed(trp_ctx *ctx, trp_projection *p, const trp_msg *msg, uint64_t at, trp_err err)
{
    bool again = p->args.on_failure == TRP_PROJECTION_RETRY_THEN_STOP ||
                 p->args.on_failure == TRP_PROJECTION_RETRY_THEN_SKIP;
    bool skip = p->args.on_failure == TRP_PROJECTION_RETRY_THEN_SKIP ||
                p->args.on_failure == TRP_PROJECTION_SKIP;

    p->failures++;
    p->err = err;
    trpi_projection_emitted_cut(p, p->emitted_before); /* projection-P2 */
    if (again && (p->args.retries == TRP_FOREVER || p->tries < p->args.retries)) {
        p->tries++;
        p->phase = TRP_PROJECTION_RETRIES;
        err = trp_stash(ctx, msg);
        return err != TRP_OK
                   ? err
                   : trp_timer_once(ctx, TRPI_PROJECTION_AGAIN_KEY, trpi_projection_pause_ms(p),
                                    &trpi_projection_again_type, NULL, 0);
    }
    trp_log(ctx, skip ? TRP_LOG_WARNING : TRP_LOG_ERROR,
            "a projection could not handle an event, %s projection=%s at=%llu err=%s",
            skip ? "which is left out" : "and stops", p->args.key, (unsigned long long)at,
            trp_err_name(err));
    if (skip) {
        p->skipped++;
        return event_over(ctx, p, at);
    }
    trp_stop(ctx, trp_self(ctx));
    return TRP_OK;
}

/* Is the group of the next save full, while another one is stored? */
static bool
is_crowded(const trp_projection *p)
{
    return p->ask != NULL && (p->emitted_count >= TRP_PROJECTION_EMITTED_MAX ||
                              p->emitted_bytes >= TRP_PROJECTION_EMITTED_BYTES_MAX);
}

static trp_err
event_take(trp_ctx *ctx, trp_projection *p, const trp_msg *msg)
{
    const trp_journal_event *event = trp_journal_query_event_of(msg);

    if (!trp_ref_equal(trp_sender(ctx), p->query) || event == NULL) { /* projection-P3 */
        return TRP_OK;
    }
    if (p->phase == TRP_PROJECTION_RETRIES || is_crowded(p)) { /* projection-P1 */
        return trp_stash(ctx, msg);
    }
    uint64_t at = p->args.has_id ? event->number : event->offset;
    p->emitted_before = p->emitted_count;
    p->in_handler = true;
    trp_err err = p->args.handler(p, ctx, p->args.arg, event);
    p->in_handler = false;
    if (err != TRP_OK) {
        return event_failed(ctx, p, msg, at, err);
    }
    p->handled++;
    return event_over(ctx, p, at);
}

/* ---- the actor ------------------------------------------------------------------------------- */

static trp_err
query_ended(trp_ctx *ctx, trp_projection *p, const trp_journal_query_state *state)
{
    if (state->status == TRP_JOURNAL_QUERY_ENDED) {
        trp_log(ctx, TRP_LOG_ERROR,
                "the journal refuses the events of a projection, which stops "
                "projection=%s why=%s",
                p->args.key, state->why);
        trp_stop(ctx, trp_self(ctx));
    } else if (state->status == TRP_JOURNAL_QUERY_RETRIES) {
        p->err = (trp_err)state->err;
        if (state->failures == 1) {
            trp_log(ctx, TRP_LOG_WARNING,
                    "a projection cannot read, it tries again projection=%s in_ms=%u why=%s",
                    p->args.key, state->retry_ms, state->why);
        }
    } else if (state->status == TRP_JOURNAL_QUERY_AT_END) {
        p->at_end = true; /* events may be stashed yet: then the last one saves */
        if (p->phase == TRP_PROJECTION_RUNS && p->ask == NULL && p->unsaved == 0) {
            trp_stop(ctx, trp_self(ctx));
        }
        return p->phase == TRP_PROJECTION_RUNS ? trpi_projection_save(ctx, p) : TRP_OK;
    }
    return TRP_OK;
}

static void
status_reply(trp_ctx *ctx, const trp_projection *p)
{
    trp_projection_status status = { (uint32_t)p->phase, (int32_t)p->err, p->position, p->saved,
                                     p->handled,         p->skipped,      p->failures };

    trp_reply(ctx, &trp_projection_status_type, &status, sizeof status);
}

/* The timer: call the handler again, or begin again. */
static trp_err
timer_rang(trp_ctx *ctx, trp_projection *p)
{
    if (p->phase == TRP_PROJECTION_WAITS) {
        return trpi_projection_begin(ctx, p);
    }
    p->phase = TRP_PROJECTION_RUNS;
    trp_unstash_all(ctx);
    return TRP_OK;
}

static trp_err
projection_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_projection *p = state;
    const trp_terminated *ended = trp_msg_as(msg, &trp_terminated_type);

    if (trp_msg_is(msg, &trp_journal_query_event_type)) {
        return event_take(ctx, p, msg);
    }
    if (trp_msg_is(msg, &trp_journal_query_state_type)) {
        if (!trp_ref_equal(trp_sender(ctx), p->query)) {
            return TRP_OK;
        }
        return p->phase == TRP_PROJECTION_RETRIES ? trp_stash(ctx, msg)
                                                  : query_ended(ctx, p, trp_msg_payload(msg));
    }
    if (trp_msg_is(msg, &trpi_journal_answer_type)) {
        bool crowded = is_crowded(p);
        trp_err err = trpi_journal_ask_is(p->ask, msg) ? trpi_projection_answered(ctx, p) : TRP_OK;

        if (crowded && p->ask == NULL && p->phase == TRP_PROJECTION_RUNS) {
            err = err == TRP_OK ? trpi_projection_save(ctx, p) : err;
            trp_unstash_all(ctx);
        }
        return err;
    }
    if (trp_msg_is(msg, &trpi_projection_again_type)) {
        return timer_rang(ctx, p);
    }
    if (trp_msg_is(msg, &trpi_projection_save_type)) {
        p->save_is_due = false;
        return trpi_projection_save(ctx, p);
    }
    if (trp_msg_is(msg, &trp_projection_ask_status_type)) {
        status_reply(ctx, p);
        return TRP_OK;
    }
    if (ended != NULL && trp_ref_equal(ended->ref, p->query) && !p->at_end) {
        return p->phase == TRP_PROJECTION_RETRIES /* it may have said that it is at the end */
                   ? trp_stash(ctx, msg)
                   : trpi_projection_begin_later(ctx, p, TRP_EFAILED, "its query has ended");
    }
    if (ended != NULL) {
        return TRP_OK;
    }
    return TRP_EUNHANDLED;
}

static trp_err
projection_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trp_projection *p = state;

    memcpy(&p->args, trp_msg_payload(args), sizeof p->args);
    p->emitted_last = &p->emitted;
    p->journal = trpi_persistence_journal(trp_ctx_system(ctx));
    return p->journal == NULL ? TRP_ESTATE : trpi_projection_begin(ctx, p);
}

/* Store how far it has come, without waiting for the answer: what is late is refused by its epoch,
 * or is true. */
static void
projection_post_stop(trp_ctx *ctx, void *state)
{
    trp_projection *p = state;

    if (p->in_handler) { /* it has failed by trp_fail(): projection-P2 */
        trpi_projection_emitted_cut(p, p->emitted_before);
    }
    trpi_journal_ask_drop(p->ask);
    if (p->ask == NULL && p->unsaved != 0) {
        p->query = (trp_ref)TRP_REF_NONE;
        p->ends = true;
        (void)trpi_projection_save(ctx, p); /* a failure repeats these events */
        trpi_journal_ask_drop(p->ask);
    }
    p->ask = NULL;
    trpi_projection_emitted_cut(p, 0);
}

/* A query that has failed ends; the projection begins again. */
static const trp_strategy stopping = { .size = sizeof(trp_strategy),
                                       .decider = trp_stopping_decider,
                                       .retries_max = TRP_FOREVER };
static const trp_behaviour projection_behaviour = { .size = sizeof(trp_behaviour),
                                                    .name = "projection",
                                                    .version = 1,
                                                    .state_bytes = sizeof(trp_projection),
                                                    .receive = projection_receive,
                                                    .pre_start = projection_pre_start,
                                                    .post_stop = projection_post_stop,
                                                    .strategy = &stopping };

/* ---- spawning -------------------------------------------------------------------------------- */

static uint32_t
or_default(uint32_t given, uint32_t otherwise)
{
    return given != 0 ? given : otherwise;
}

static bool
options_fit(const trp_projection_options *o)
{
    return o->name != NULL && o->name[0] != '\0' && o->handler != NULL &&
           (o->id == NULL || (o->tag == NULL && o->id[0] != '\0')) &&
           (o->tag == NULL || o->tag[0] != '\0') && o->exactly_once <= 1 && o->ends <= 1 &&
           o->save_events <= TRP_PROJECTION_SAVE_EVENTS_MAX &&
           o->save_ms <= TRP_PROJECTION_DELAY_MS_MAX && o->poll_ms <= TRP_PROJECTION_DELAY_MS_MAX &&
           (uint32_t)o->on_failure <= TRP_PROJECTION_STOP &&
           o->retry_ms <= TRP_PROJECTION_DELAY_MS_MAX &&
           o->retry_ms_max <= TRP_PROJECTION_DELAY_MS_MAX;
}

static trp_err
args_fill(const trp_projection_options *o, trpi_projection_args *args)
{
    if (!options_fit(o)) {
        return TRP_EINVAL;
    }
    if (strlen(o->name) > TRP_PROJECTION_NAME_BYTES_MAX ||
        (o->id != NULL && strlen(o->id) > TRP_JOURNAL_ID_BYTES_MAX) ||
        (o->tag != NULL && strlen(o->tag) > TRP_JOURNAL_TAG_BYTES_MAX)) {
        return TRP_EMSGSIZE;
    }
    memset(args, 0, sizeof *args);
    args->handler = o->handler;
    args->arg = o->arg;
    args->exactly_once = o->exactly_once != 0;
    args->ends = o->ends != 0;
    args->has_id = o->id != NULL;
    args->has_tag = o->tag != NULL;
    args->save_events = or_default(o->save_events, TRP_PROJECTION_SAVE_EVENTS_DEFAULT);
    args->save_ms = or_default(o->save_ms, TRP_PROJECTION_SAVE_MS_DEFAULT);
    args->poll_ms = o->poll_ms;
    args->on_failure = (uint32_t)o->on_failure;
    args->retries = or_default(o->retries, TRP_PROJECTION_RETRIES_DEFAULT);
    args->retry_ms = or_default(o->retry_ms, TRP_PROJECTION_RETRY_MS_DEFAULT);
    args->retry_ms_max = or_default(o->retry_ms_max, TRP_PROJECTION_RETRY_MS_MAX_DEFAULT);
    if (args->retry_ms_max < args->retry_ms) {
        args->retry_ms_max = args->retry_ms;
    }
    (void)snprintf(args->key, sizeof args->key, TRPI_PROJECTION_PREFIX "%s", o->name);
    (void)snprintf(args->id, sizeof args->id, "%s", o->id != NULL ? o->id : "");
    (void)snprintf(args->tag, sizeof args->tag, "%s", o->tag != NULL ? o->tag : "");
    return TRP_OK;
}

/* May it be started over this journal? */
static trp_err
journal_check(trp_system *system, const char *key)
{
    char what[sizeof "projection ''" + TRPI_PROJECTION_ID_BYTES];
    char why[TRPI_PERSISTENCE_WHY_BYTES] = "";

    (void)snprintf(what, sizeof what, "projection '%s'", key + sizeof TRPI_PROJECTION_PREFIX - 1);
    trp_err err = trpi_persistence_require_shared(system, what, why, sizeof why);
    if (err != TRP_OK) {
        trp_system_log(system, TRP_LOG_ERROR, "projection", "%s", why);
    }
    return err;
}

static trp_err
projection_spawn(trp_ctx *ctx, trp_system *system, const trp_projection_options *options,
                 trp_ref *ret_ref)
{
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_projection_options given;
    trpi_projection_args args;
    char name[TRP_PROJECTION_NAME_BYTES_MAX + 1];
    trp_err err;

    if (options == NULL || !TRPI_SIZED_TAKE(options, &given, zero)) {
        return TRP_EINVAL;
    }
    err = args_fill(options, &args);
    err = err == TRP_OK ? journal_check(system, args.key) : err;
    err = err == TRP_OK ? trp_protocol_register(&trp_projection_protocol) : err;
    err = err == TRP_OK ? trp_protocol_register(&trp_journal_query_protocol) : err;
    if (err != TRP_OK) {
        return err;
    }
    (void)snprintf(name, sizeof name, "%s", options->name);
    for (char *at = name; *at != '\0'; at++) {
        *at = *at == '/' ? '-' : *at;
    }
    spawn.name = name;
    spawn.dispatcher = options->dispatcher;
    spawn.args_type = &trp_bytes_type;
    spawn.args = &args;
    spawn.args_bytes = sizeof args;
    spawn.node = TRP_NODE_HERE;
    return ctx != NULL ? trp_spawn(ctx, &projection_behaviour, &spawn, ret_ref)
                       : trp_system_spawn(system, &projection_behaviour, &spawn, ret_ref);
}

trp_err
trp_projection_spawn(trp_ctx *ctx, const trp_projection_options *options, trp_ref *ret_ref)
{
    return ctx == NULL ? TRP_EINVAL : projection_spawn(ctx, trp_ctx_system(ctx), options, ret_ref);
}

trp_err
trp_system_projection_spawn(trp_system *system, const trp_projection_options *options,
                            trp_ref *ret_ref)
{
    return system == NULL ? TRP_EINVAL : projection_spawn(NULL, system, options, ret_ref);
}

/* journal_query.c - an actor that reads a journal for another one.
 *
 * States.  no demand: nothing happens. reading: one operation is under way. at the end (live):
 *          armed for commits of this node, and the timer runs. failed: the timer runs.
 * Must hold.
 *   journal-query-Q1  No more events are told than were asked for; one batch is in memory at most.
 *   journal-query-Q2  Each event is told once, in order: the position moves with what was told.
 *   journal-query-Q3  A live query is armed before it reads, so that no commit is missed.
 * Limits.  Those of troupe/journal_query.h.
 * Tests.   tests/unit/persistence/journal_query_test.c
 */
#include <troupe/journal_query.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <troupe/log.h>
#include <troupe/system.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/sized.h"
#include "persistence/journal_ask.h"
#include "persistence/journal_watch.h"
#include "persistence/persistence.h"

typedef struct query_args {
    trp_ref receiver;
    uint64_t after, to;
    bool live, has_id, has_tag;
    uint32_t demand, batch_events, batch_bytes, poll_ms, retry_ms, retry_ms_max, timeout_ms;
    char id[TRP_JOURNAL_ID_BYTES_MAX + 1];
    char tag[TRP_JOURNAL_TAG_BYTES_MAX + 1];
} query_args;

typedef struct query {
    query_args args;
    const trp_journal_driver *journal;
    trpi_journal_ask *ask; /* under way; NULL: none */
    trpi_journal_watch watch;
    uint64_t position;
    uint32_t demand;
    uint32_t failures; /* in a row */
    bool sleeps;       /* until the timer or a commit */
    bool woken;        /* a commit came while reading */
} query;

/* The struct that an event message holds; the event is first. */
typedef struct held_event {
    trp_journal_event event;
    trpi_journal_item *item;
} held_event;

enum { TIMER_KEY = 1 };

static const trp_field request_fields[] = { { .name = "events",
                                              .kind = TRP_FIELD_u32,
                                              .offset =
                                                  offsetof(trp_journal_query_request, events) } };
#define STATE_FIELD(kind_, member)                                                                 \
    {                                                                                              \
        .name = #member, .kind = TRP_FIELD_##kind_,                                                \
        .offset = offsetof(trp_journal_query_state, member)                                        \
    }
static const trp_field state_fields[] = { STATE_FIELD(u32, status),   STATE_FIELD(i32, err),
                                          STATE_FIELD(u32, failures), STATE_FIELD(u32, retry_ms),
                                          STATE_FIELD(u64, position), STATE_FIELD(text512, why) };
enum { request_tag, event_tag, state_tag, timer_tag };
trp_type trp_journal_query_request_type = { .name = "journal-query.request",
                                            .bytes = sizeof(trp_journal_query_request),
                                            .tag = request_tag,
                                            .fields = request_fields,
                                            .fields_count = 1 };
trp_type trp_journal_query_event_type = TRP_HELD_TYPE("journal-query.event", event_tag);
trp_type trp_journal_query_state_type = { .name = "journal-query.state",
                                          .bytes = sizeof(trp_journal_query_state),
                                          .tag = state_tag,
                                          .fields = state_fields,
                                          .fields_count = 6 };
static trp_type timer_type = { .name = "journal-query.priv-timer",
                               .tag = timer_tag,
                               .flags = TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL };
static trp_type *const types[] = { &trp_journal_query_request_type, &trp_journal_query_event_type,
                                   &trp_journal_query_state_type, &timer_type,
                                   &trpi_journal_wake_type };
const trp_protocol trp_journal_query_protocol = { "journal-query", types, 5, 0 };

/* ---- telling --------------------------------------------------------------------------------- */

static void
event_drop(void *held)
{
    trpi_free(((held_event *)held)->item);
}

/* Tell one event; the message takes the item on success. */
static trp_err
event_tell(trp_ctx *ctx, const query *q, trpi_journal_item *item)
{
    trp_msg *msg;
    void *held;
    trp_err err = trp_msg_new_held(&trp_journal_query_event_type, sizeof(held_event), event_drop,
                                   &msg, &held);

    if (err == TRP_OK) {
        ((held_event *)held)->event = item->event;
        ((held_event *)held)->item = item;
        trp_send(ctx, q->args.receiver, msg);
    }
    return err;
}

static void
state_tell(trp_ctx *ctx, const query *q, trp_journal_query_status status, trp_err err,
           uint32_t retry_ms, const char *why)
{
    trp_journal_query_state state = {
        status, (int32_t)err, q->failures, retry_ms, q->position, ""
    };

    (void)snprintf(state.why, sizeof state.why, "%s", why);
    trp_tell(ctx, q->args.receiver, &trp_journal_query_state_type, &state, sizeof state);
}

static trp_err
sleep_for(trp_ctx *ctx, query *q, uint32_t ms)
{
    q->sleeps = true;
    return trp_timer_once(ctx, TIMER_KEY, ms, &timer_type, NULL, 0);
}

/* ---- reading --------------------------------------------------------------------------------- */

static trp_err
read_failed(trp_ctx *ctx, query *q, trp_err err, const char *why)
{
    uint64_t ms = q->args.retry_ms;

    q->failures++;
    for (uint32_t i = 1; i < q->failures && ms < q->args.retry_ms_max; i++) {
        ms *= 2;
    }
    ms = ms > q->args.retry_ms_max ? q->args.retry_ms_max : ms;
    state_tell(ctx, q, TRP_JOURNAL_QUERY_RETRIES, err, (uint32_t)ms, why);
    return sleep_for(ctx, q, (uint32_t)ms);
}

/* Begin to read, unless there is a reason not to. */
static trp_err
read_on(trp_ctx *ctx, query *q)
{
    trp_err err = TRP_OK;

    if (q->ask != NULL || q->sleeps || q->demand == 0) {
        return TRP_OK;
    }
    q->woken = false;
    if (q->args.live) { /* journal-query-Q3 */
        err = trpi_journal_watch_arm(trp_ctx_system(ctx), &q->watch);
    }
    if (err == TRP_OK) {
        err = trpi_journal_ask_new(ctx, q->args.has_id ? TRP_JOURNAL_EVENTS : TRP_JOURNAL_TAGGED,
                                   &q->ask);
    }
    if (err != TRP_OK) {
        return read_failed(ctx, q, err, trp_strerror(err));
    }
    trp_journal_op *op = &q->ask->op;
    trpi_journal_ask_texts(q->ask, q->args.has_id ? q->args.id : NULL, NULL, NULL,
                           q->args.has_tag ? q->args.tag : NULL);
    op->from = q->args.has_id ? q->position + 1 : q->position;
    op->to = q->args.to;
    op->max_events = q->demand < q->args.batch_events ? q->demand : q->args.batch_events;
    op->max_bytes = q->args.batch_bytes;
    op->timeout_ms = q->args.timeout_ms;
    trpi_journal_ask_submit(q->journal, q->ask);
    return TRP_OK;
}

/* Tell what was read (journal-query-Q1, -Q2). */
static trp_err
items_tell(trp_ctx *ctx, query *q)
{
    trp_err err = TRP_OK;

    while (q->ask->items != NULL && err == TRP_OK) {
        trpi_journal_item *item = q->ask->items;
        trpi_journal_item *next = item->next;
        uint64_t at = q->args.has_id ? item->event.number : item->event.offset;

        err = event_tell(ctx, q, item);
        if (err == TRP_OK) {
            q->ask->items = next;
            q->position = at;
            q->demand--;
        }
    }
    return err;
}

/* The end of what is there. */
static trp_err
end_reached(trp_ctx *ctx, query *q)
{
    if (!q->args.live || (q->args.to != 0 && q->position >= q->args.to)) {
        state_tell(ctx, q, TRP_JOURNAL_QUERY_AT_END, TRP_OK, 0, "");
        trp_stop(ctx, trp_self(ctx));
        return TRP_OK;
    }
    return sleep_for(ctx, q,
                     q->woken && q->args.poll_ms > TRP_JOURNAL_QUERY_PAUSE_MS
                         ? TRP_JOURNAL_QUERY_PAUSE_MS
                         : q->args.poll_ms);
}

static bool
is_final(const trp_journal_op *op)
{
    return op->outcome == TRP_JOURNAL_REFUSED &&
           (op->err == TRP_EINVAL || op->err == TRP_EMSGSIZE || op->err == TRP_EUNSUPPORTED);
}

static trp_err
read_answered(trp_ctx *ctx, query *q)
{
    const trp_journal_op *op = &q->ask->op;
    bool is_done = op->outcome == TRP_JOURNAL_DONE;
    bool is_end = is_done && op->ret_more == 0;
    uint64_t next = op->ret_offset;
    trp_err err = op->err, told = TRP_OK;
    char why[TRP_JOURNAL_WHY_BYTES];

    (void)snprintf(why, sizeof why, "%s", op->why);
    if (is_final(op)) {
        state_tell(ctx, q, TRP_JOURNAL_QUERY_ENDED, err, 0, why);
        trp_stop(ctx, trp_self(ctx));
        return TRP_OK;
    }
    if (is_done) {
        if (q->failures != 0) {
            q->failures = 0;
            state_tell(ctx, q, TRP_JOURNAL_QUERY_RUNS, TRP_OK, 0, "");
        }
        told = items_tell(ctx, q);
    }
    trpi_journal_ask_drop(q->ask);
    q->ask = NULL;
    if (!is_done || told != TRP_OK) {
        return read_failed(ctx, q, is_done ? told : err, is_done ? trp_strerror(told) : why);
    }
    if (!q->args.has_id && next > q->position) {
        q->position = next; /* also past offsets that hold no such event */
    }
    return is_end ? end_reached(ctx, q) : read_on(ctx, q);
}

/* ---- the actor ------------------------------------------------------------------------------- */

static trp_err
demand_add(trp_ctx *ctx, query *q, uint32_t events)
{
    if (events == 0) {
        return TRP_EUNHANDLED;
    }
    events = events > TRP_JOURNAL_QUERY_DEMAND_MAX ? TRP_JOURNAL_QUERY_DEMAND_MAX : events;
    q->demand += events;
    if (q->demand > TRP_JOURNAL_QUERY_DEMAND_MAX) {
        q->demand = TRP_JOURNAL_QUERY_DEMAND_MAX;
    }
    return read_on(ctx, q);
}

/* A commit of this node. Asleep after a failure it keeps its pause. */
static trp_err
commit_came(trp_ctx *ctx, query *q)
{
    if (q->ask != NULL) {
        q->woken = true;
    } else if (q->sleeps && q->failures == 0 && q->args.poll_ms > TRP_JOURNAL_QUERY_PAUSE_MS) {
        return sleep_for(ctx, q, TRP_JOURNAL_QUERY_PAUSE_MS);
    }
    return TRP_OK;
}

static trp_err
query_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    query *q = state;
    const trp_journal_query_request *request = trp_msg_as(msg, &trp_journal_query_request_type);
    const trp_terminated *ended = trp_msg_as(msg, &trp_terminated_type);

    if (request != NULL) {
        return demand_add(ctx, q, request->events);
    }
    if (trp_msg_is(msg, &timer_type)) {
        q->sleeps = false;
        return read_on(ctx, q);
    }
    if (trp_msg_is(msg, &trpi_journal_wake_type)) {
        return commit_came(ctx, q);
    }
    if (trp_msg_is(msg, &trpi_journal_answer_type)) {
        return trpi_journal_ask_is(q->ask, msg) ? read_answered(ctx, q) : TRP_OK;
    }
    if (ended != NULL) {
        trp_stop(ctx, trp_self(ctx));
        return TRP_OK;
    }
    return TRP_EUNHANDLED;
}

static trp_err
query_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    query *q = state;
    trp_err err;

    memcpy(&q->args, trp_msg_payload(args), sizeof q->args);
    q->journal = trpi_persistence_journal(trp_ctx_system(ctx));
    q->position = q->args.after;
    q->watch.watcher = trp_self(ctx);
    q->watch.id = q->args.has_id ? q->args.id : NULL;
    q->watch.tag = q->args.has_tag ? q->args.tag : NULL;
    err = q->journal == NULL ? TRP_ESTATE : trp_watch(ctx, q->args.receiver);
    if (err != TRP_OK) {
        return err;
    }
    return q->args.demand != 0 ? demand_add(ctx, q, q->args.demand) : TRP_OK;
}

static void
query_post_stop(trp_ctx *ctx, void *state)
{
    query *q = state;

    trpi_journal_watch_end(trp_ctx_system(ctx), &q->watch);
    trpi_journal_ask_drop(q->ask);
    q->ask = NULL;
}

static const trp_behaviour query_behaviour = { .size = sizeof(trp_behaviour),
                                               .name = "journal-query",
                                               .version = 1,
                                               .state_bytes = sizeof(query),
                                               .receive = query_receive,
                                               .pre_start = query_pre_start,
                                               .post_stop = query_post_stop };

/* ---- spawning -------------------------------------------------------------------------------- */

static uint32_t
or_default(uint32_t given, uint32_t otherwise)
{
    return given != 0 ? given : otherwise;
}

static trp_err
args_fill(const trp_journal_query_options *o, query_args *args)
{
    if (trp_ref_is_none(o->receiver) || o->receiver.node != TRPI_NODE_SELF ||
        (o->id != NULL && (o->tag != NULL || o->id[0] == '\0')) ||
        (o->tag != NULL && o->tag[0] == '\0') || (o->to != 0 && o->id == NULL) || o->live > 1 ||
        o->demand > TRP_JOURNAL_QUERY_DEMAND_MAX || o->batch_events > TRP_JOURNAL_QUERY_BATCH_MAX ||
        o->batch_bytes > TRP_JOURNAL_QUERY_BATCH_BYTES_MAX ||
        o->poll_ms > TRP_JOURNAL_QUERY_DELAY_MS_MAX ||
        o->retry_ms > TRP_JOURNAL_QUERY_DELAY_MS_MAX ||
        o->retry_ms_max > TRP_JOURNAL_QUERY_DELAY_MS_MAX) {
        return TRP_EINVAL;
    }
    if ((o->id != NULL && strlen(o->id) > TRP_JOURNAL_ID_BYTES_MAX) ||
        (o->tag != NULL && strlen(o->tag) > TRP_JOURNAL_TAG_BYTES_MAX)) {
        return TRP_EMSGSIZE;
    }
    memset(args, 0, sizeof *args);
    args->receiver = o->receiver;
    args->after = o->after;
    args->to = o->to;
    args->live = o->live != 0;
    args->has_id = o->id != NULL;
    args->has_tag = o->tag != NULL;
    args->demand = o->demand;
    args->batch_events = or_default(o->batch_events, TRP_JOURNAL_QUERY_BATCH_DEFAULT);
    args->batch_bytes = or_default(o->batch_bytes, TRP_JOURNAL_QUERY_BATCH_BYTES_DEFAULT);
    args->poll_ms = or_default(o->poll_ms, TRP_JOURNAL_QUERY_POLL_MS_DEFAULT);
    args->retry_ms = or_default(o->retry_ms, TRP_JOURNAL_QUERY_RETRY_MS_DEFAULT);
    args->retry_ms_max = or_default(o->retry_ms_max, TRP_JOURNAL_QUERY_RETRY_MS_MAX_DEFAULT);
    if (args->retry_ms_max < args->retry_ms) {
        args->retry_ms_max = args->retry_ms;
    }
    args->timeout_ms = o->timeout_ms;
    (void)snprintf(args->id, sizeof args->id, "%s", o->id != NULL ? o->id : "");
    (void)snprintf(args->tag, sizeof args->tag, "%s", o->tag != NULL ? o->tag : "");
    return TRP_OK;
}

static trp_err
query_spawn(trp_ctx *ctx, trp_system *system, const trp_journal_query_options *options,
            trp_ref *ret_ref)
{
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_journal_query_options given;
    query_args args;
    trp_err err;

    if (options == NULL || !TRPI_SIZED_TAKE(options, &given, timeout_ms)) {
        return TRP_EINVAL;
    }
    err = args_fill(options, &args);
    if (err == TRP_OK && trpi_persistence_journal(system) == NULL) {
        err = TRP_ESTATE;
    }
    if (err == TRP_OK) {
        err = trp_protocol_register(&trp_journal_query_protocol);
    }
    if (err != TRP_OK) {
        return err;
    }
    spawn.name = options->name;
    spawn.dispatcher = options->dispatcher;
    spawn.args_type = &trp_bytes_type;
    spawn.args = &args;
    spawn.args_bytes = sizeof args;
    spawn.node = TRP_NODE_HERE;
    return ctx != NULL ? trp_spawn(ctx, &query_behaviour, &spawn, ret_ref)
                       : trp_system_spawn(system, &query_behaviour, &spawn, ret_ref);
}

trp_err
trp_journal_query_spawn(trp_ctx *ctx, const trp_journal_query_options *options, trp_ref *ret_ref)
{
    return ctx == NULL ? TRP_EINVAL : query_spawn(ctx, trp_ctx_system(ctx), options, ret_ref);
}

trp_err
trp_system_journal_query_spawn(trp_system *system, const trp_journal_query_options *options,
                               trp_ref *ret_ref)
{
    return system == NULL ? TRP_EINVAL : query_spawn(NULL, system, options, ret_ref);
}

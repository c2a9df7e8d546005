/* projection_store.c - the place of a projection in the journal.
 *
 * Shape. start: CLAIM -> SNAPSHOT_LOAD -> (exactly once: EVENTS, twice) -> the query
 *        save: SNAPSHOT_SAVE, replaced each time; exactly once: APPEND {emitted ..., offset}
 * Must hold.
 *   projection-S1  An offset is stored only behind the handling of all events up to it.
 *   projection-S2  An exactly-once projection whose append has no certain answer begins again from
 *       what the journal has; nothing that it emitted since is stored.
 *   projection-S3  A fenced projection stops.
 * Tests. tests/unit/persistence/projection_test.c
 */
#include "persistence/projection.h"

#include <stdio.h>
#include <string.h>

#include <troupe/journal_query.h>
#include <troupe/log.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/wire.h"
#include "persistence/persistence.h"

uint32_t
trpi_projection_pause_ms(const trp_projection *p)
{
    uint64_t ms = p->args.retry_ms;

    for (uint32_t i = 1; i < p->tries && ms < p->args.retry_ms_max; i++) {
        ms *= 2;
    }
    return ms > p->args.retry_ms_max ? p->args.retry_ms_max : (uint32_t)ms;
}

void
trpi_projection_emitted_cut(trp_projection *p, uint32_t keep)
{
    trpi_journal_item **at = &p->emitted;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < keep; i++) {
        bytes += (*at)->event.bytes;
        at = &(*at)->next;
    }
    trpi_journal_items_free(*at);
    *at = NULL;
    p->emitted_last = at;
    p->emitted_count = keep;
    p->emitted_bytes = bytes;
}

/* Leave everything that belongs to the present run. */
static void
run_end(trp_ctx *ctx, trp_projection *p)
{
    trp_timer_cancel(ctx, TRPI_PROJECTION_AGAIN_KEY);
    trp_timer_cancel(ctx, TRPI_PROJECTION_SAVE_KEY);
    if (!trp_ref_is_none(p->query)) {
        trp_unwatch(ctx, p->query);
        trp_stop(ctx, p->query);
        p->query = (trp_ref)TRP_REF_NONE;
    }
    trpi_journal_ask_drop(p->ask);
    p->ask = NULL;
    trpi_projection_emitted_cut(p, 0);
    p->unsaved = 0;
    p->save_is_due = p->at_end = false;
}

trp_err
trpi_projection_begin_later(trp_ctx *ctx, trp_projection *p, trp_err err, const char *why)
{
    run_end(ctx, p);
    trp_unstash_all(ctx); /* events of the query that has ended: they are dropped */
    p->err = err;
    p->tries++;
    p->phase = TRP_PROJECTION_WAITS;
    trp_log(ctx, TRP_LOG_WARNING,
            "the journal has failed a projection, it begins again from its stored offset "
            "projection=%s in_ms=%u err=%s why=%s",
            p->args.key, trpi_projection_pause_ms(p), trp_err_name(err), why);
    return trp_timer_once(ctx, TRPI_PROJECTION_AGAIN_KEY, trpi_projection_pause_ms(p),
                          &trpi_projection_again_type, NULL, 0);
}

/* ---- start ----------------------------------------------------------------------------------- */

static trp_err
step_submit(trp_ctx *ctx, trp_projection *p, trp_journal_kind kind, uint64_t from)
{
    char writer[TRP_JOURNAL_WRITER_BYTES_MAX + 1];
    trp_err err = trpi_journal_ask_new(ctx, kind, &p->ask);

    if (err != TRP_OK) {
        return trpi_projection_begin_later(ctx, p, err, trp_strerror(err));
    }
    (void)trp_path(trp_ctx_system(ctx), trp_self(ctx), writer, sizeof writer);
    trpi_journal_ask_texts(p->ask, kind == TRP_JOURNAL_CLAIM ? NULL : p->args.key, p->args.key,
                           writer, NULL);
    p->ask->op.from = from;
    p->ask->op.epoch = p->epoch;
    trpi_journal_ask_submit(p->journal, p->ask);
    return TRP_OK;
}

trp_err
trpi_projection_begin(trp_ctx *ctx, trp_projection *p)
{
    p->phase = TRP_PROJECTION_STARTS;
    p->position = p->own_number = 0;
    return step_submit(ctx, p, TRP_JOURNAL_CLAIM, 0);
}

/* Take the offset of the item that a read gave, if it is one. */
static void
offset_take(trp_projection *p)
{
    const trpi_journal_item *item = p->ask->items;

    if (item != NULL && strcmp(item->event.type, TRPI_PROJECTION_OFFSET_TYPE) == 0 &&
        item->event.bytes == 8) {
        uint64_t offset = trpi_get_u64(item->event.data);

        p->position = offset > p->position ? offset : p->position;
    }
}

static trp_err
query_start(trp_ctx *ctx, trp_projection *p)
{
    trp_journal_query_options options = TRP_JOURNAL_QUERY_OPTIONS_INIT;

    options.receiver = trp_self(ctx);
    options.id = p->args.has_id ? p->args.id : NULL;
    options.tag = p->args.has_tag ? p->args.tag : NULL;
    options.after = p->saved = p->position;
    options.live = p->args.ends ? 0 : 1;
    options.demand = p->args.save_events;
    options.poll_ms = p->args.poll_ms;
    trp_err err = trp_journal_query_spawn(ctx, &options, &p->query);
    if (err == TRP_OK) {
        err = trp_watch(ctx, p->query);
    }
    if (err != TRP_OK) {
        return trpi_projection_begin_later(ctx, p, err, trp_strerror(err));
    }
    p->phase = TRP_PROJECTION_RUNS;
    p->granted = p->args.save_events;
    p->tries = 0;
    return TRP_OK;
}

static trp_err
step_answered(trp_ctx *ctx, trp_projection *p, const trp_journal_op *op)
{
    trp_journal_kind kind = op->kind;
    uint64_t from = op->from, number = op->ret_number;

    if (kind == TRP_JOURNAL_CLAIM) {
        p->epoch = op->ret_epoch;
    } else {
        offset_take(p);
    }
    trpi_journal_ask_drop(p->ask);
    p->ask = NULL;
    if (kind == TRP_JOURNAL_CLAIM) {
        return step_submit(ctx, p, TRP_JOURNAL_SNAPSHOT_LOAD, 0);
    }
    if (kind == TRP_JOURNAL_SNAPSHOT_LOAD && p->args.exactly_once) {
        return step_submit(ctx, p, TRP_JOURNAL_EVENTS, UINT64_MAX); /* the highest number */
    }
    if (kind == TRP_JOURNAL_EVENTS && from == UINT64_MAX) {
        p->own_number = number;
        if (number != 0) {
            return step_submit(ctx, p, TRP_JOURNAL_EVENTS, number); /* the last event */
        }
    }
    return query_start(ctx, p);
}

/* ---- save ------------------------------------------------------------------------------------ */

static void
offset_event(trp_projection *p, trp_ctx *ctx, trp_journal_event *event, uint8_t *data)
{
    memset(event, 0, sizeof *event);
    event->type = TRPI_PROJECTION_OFFSET_TYPE;
    event->version = 1;
    event->time_ms = (uint64_t)trpi_world_wall_ms(trpi_system_world(trp_ctx_system(ctx)));
    trpi_put_u64(data, p->position);
    event->data = data;
    event->bytes = 8;
}

/* Fill the operation: the events, then 8 bytes, in one block. */
static trp_err
save_fill(trp_ctx *ctx, trp_projection *p)
{
    trp_journal_op *op = &p->ask->op;
    uint32_t count = p->emitted_count + 1;
    trp_journal_event *events = trpi_alloc(count * sizeof *events + 8);

    if (events == NULL) {
        return TRP_ENOMEM;
    }
    p->ask->keep = events;
    count = 0;
    for (const trpi_journal_item *item = p->emitted; item != NULL; item = item->next) {
        events[count++] = item->event;
    }
    trpi_assert(count == p->emitted_count);
    offset_event(p, ctx, &events[count], (uint8_t *)(events + count + 1));
    op->epoch = p->epoch;
    op->events = events;
    op->events_count = count + 1;
    if (op->kind == TRP_JOURNAL_APPEND) {
        op->from = p->own_number + 1;
        p->ask->items = p->emitted; /* freed with the ask */
        p->emitted = NULL;
        p->emitted_last = &p->emitted;
        p->emitted_count = 0;
        p->emitted_bytes = 0;
    } else {
        events[0].number = 1; /* always the same one: it is replaced */
    }
    return TRP_OK;
}

/* Ask for events again, up to save_events. */
static void
demand_tell(trp_ctx *ctx, trp_projection *p)
{
    trp_journal_query_request request = { p->args.save_events - p->granted };

    if (request.events != 0 && !trp_ref_is_none(p->query) && !p->at_end) {
        p->granted = p->args.save_events;
        trp_tell(ctx, p->query, &trp_journal_query_request_type, &request, sizeof request);
    }
}

trp_err
trpi_projection_save(trp_ctx *ctx, trp_projection *p)
{
    if (p->ask != NULL || p->unsaved == 0) {
        return TRP_OK;
    }
    trp_err err = trpi_journal_ask_new(
        ctx, p->emitted_count != 0 ? TRP_JOURNAL_APPEND : TRP_JOURNAL_SNAPSHOT_SAVE, &p->ask);
    if (err == TRP_OK) {
        trpi_journal_ask_texts(p->ask, p->args.key, p->args.key, NULL, NULL);
        err = save_fill(ctx, p);
    }
    if (err != TRP_OK) {
        return trpi_projection_begin_later(ctx, p, err, trp_strerror(err));
    }
    p->saving = p->position; /* projection-S1 */
    p->unsaved = 0;
    if (p->ends) {
        trpi_journal_ask_quiet(p->ask);
    }
    trpi_journal_ask_submit(p->journal, p->ask);
    demand_tell(ctx, p);
    return TRP_OK;
}

static trp_err
save_answered(trp_ctx *ctx, trp_projection *p, const trp_journal_op *op)
{
    p->saved = p->saving;
    p->tries = 0;
    if (op->kind == TRP_JOURNAL_APPEND) {
        p->own_number += op->events_count;
        trpi_journal_committed(trp_ctx_system(ctx), op);
    }
    trpi_journal_ask_drop(p->ask);
    p->ask = NULL;
    if (p->at_end) {
        if (p->unsaved != 0) {
            return trpi_projection_save(ctx, p);
        }
        trp_stop(ctx, trp_self(ctx));
        return TRP_OK;
    }
    return p->unsaved >= p->args.save_events ? trpi_projection_save(ctx, p) : TRP_OK;
}

trp_err
trpi_projection_answered(trp_ctx *ctx, trp_projection *p)
{
    const trp_journal_op *op = &p->ask->op;

    if (op->outcome == TRP_JOURNAL_DONE) {
        return op->kind == TRP_JOURNAL_APPEND || op->kind == TRP_JOURNAL_SNAPSHOT_SAVE
                   ? save_answered(ctx, p, op)
                   : step_answered(ctx, p, op);
    }
    if (op->outcome == TRP_JOURNAL_REFUSED && op->err == TRP_EFENCED) { /* projection-S3 */
        trp_log(ctx, TRP_LOG_ERROR,
                "another projection of this name has taken over, this one stops projection=%s "
                "why=%s",
                p->args.key, op->why);
        p->unsaved = 0;
        trp_stop(ctx, trp_self(ctx));
        return TRP_OK;
    }
    char why[TRP_JOURNAL_WHY_BYTES];
    (void)snprintf(why, sizeof why, "%s", op->why);
    return trpi_projection_begin_later(ctx, p, op->err, why); /* projection-S2 */
}

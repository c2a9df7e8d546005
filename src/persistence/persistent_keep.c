/* persistent_keep.c - snapshots and deletions.
 *
 * Must hold.
 *   persistent-keep-K1  A snapshot never replaces the truth: one that fails costs nothing, and
 *       events are deleted only below the oldest of the snapshots that are kept, each of which the
 *       journal has confirmed. (snapshot_saved)
 * Limits.  One snapshot is stored at a time; TRP_PERSISTENT_SNAPSHOTS_MAX are kept.
 * Tests.   tests/unit/persistence/persistent_keep_test.c
 * Sources. A4J-28.
 */
#include <string.h>

#include "base/alloc.h"
#include "persistence/persistent.h"

typedef struct trpi_snapshots {
    bool is_saving;
    uint32_t count;                                   /* of confirmed */
    uint64_t confirmed[TRP_PERSISTENT_SNAPSHOTS_MAX]; /* of this incarnation, the newest last */
} trpi_snapshots;

static trp_err
may_change(const trpi_persistent *p)
{
    return p == NULL                                       ? TRP_EINVAL
           : p->phase != TRPI_PHASE_READY || p->reads_only ? TRP_ESTATE
                                                           : TRP_OK;
}

/* Fill the operation with the state. Errors: those of `snapshot` and of the serializer. */
static trp_err
snapshot_write(trp_ctx *ctx, trpi_persistent *p, trpi_flight *flight)
{
    trp_msg *msg = NULL;
    trp_err err = p->what->snapshot(ctx, p->state, &msg);

    flight->events = err == TRP_OK ? trpi_alloc(sizeof flight->events[0]) : NULL;
    if (flight->events == NULL) {
        trp_msg_free(msg);
        return err != TRP_OK ? err : TRP_ENOMEM;
    }
    const trp_type *type = trp_msg_type(msg);
    err = trpi_stored_write(p->system, type, trp_msg_payload(msg), trp_msg_bytes(msg),
                            &flight->bytes);
    flight->events[0] = (trp_journal_event){
        .number = p->number,
        .time_ms = (uint64_t)trpi_world_wall_ms(trpi_system_world(p->system)),
        .type = type->name,
        .version = p->what->event_version != 0 ? p->what->event_version : 1,
        .data = flight->bytes.data,
        .bytes = flight->bytes.count,
    };
    flight->op.events = flight->events;
    flight->op.events_count = 1;
    trp_msg_free(msg);
    return err;
}

trp_err
trp_snapshot_save(trp_ctx *ctx)
{
    trpi_persistent *p = trpi_persistent_get(ctx);
    trp_err err = may_change(p);

    if (err != TRP_OK || p->what->snapshot == NULL || p->what->restore == NULL) {
        return err != TRP_OK ? err : TRP_EINVAL;
    }
    if (p->snapshots == NULL && (p->snapshots = trpi_alloc(sizeof *p->snapshots)) == NULL) {
        return TRP_ENOMEM;
    }
    if (p->snapshots->is_saving) {
        return TRP_EAGAIN;
    }
    trpi_flight *flight = trpi_flight_new(ctx, p, TRP_JOURNAL_SNAPSHOT_SAVE);
    if (flight == NULL) {
        return TRP_ENOMEM;
    }
    err = snapshot_write(ctx, p, flight);
    if (err != TRP_OK) {
        trpi_flight_drop(flight);
        return err;
    }
    p->snapshots->is_saving = true;
    trpi_flight_submit(p, flight);
    return TRP_OK;
}

static trp_err
delete_send(trp_ctx *ctx, trpi_persistent *p, trp_journal_kind kind, uint64_t to, uint32_t keep)
{
    trpi_flight *flight = trpi_flight_new(ctx, p, kind);

    if (flight == NULL) {
        return TRP_ENOMEM;
    }
    flight->op.to = to;
    flight->op.keep = keep;
    trpi_flight_submit(p, flight);
    return TRP_OK;
}

trp_err
trp_snapshots_delete(trp_ctx *ctx, uint64_t to, uint32_t keep)
{
    trpi_persistent *p = trpi_persistent_get(ctx);
    trp_err err = may_change(p);

    return err != TRP_OK ? err : delete_send(ctx, p, TRP_JOURNAL_SNAPSHOT_DELETE, to, keep);
}

trp_err
trp_events_delete(trp_ctx *ctx, uint64_t to)
{
    trpi_persistent *p = trpi_persistent_get(ctx);
    trp_err err = may_change(p);

    return err != TRP_OK ? err : delete_send(ctx, p, TRP_JOURNAL_DELETE, to, 0);
}

void
trpi_snapshot_due(trp_ctx *ctx, trpi_persistent *p, uint64_t before)
{
    uint32_t every = p->what->snapshot_every;

    if (every == 0 || p->number / every == before / every) {
        return;
    }
    trp_err err = trp_snapshot_save(ctx);
    if (err != TRP_OK && err != TRP_EAGAIN) {
        trpi_log(p->system, TRP_LOG_WARNING, "persistence",
                 "no snapshot is stored; the next one is tried after as many events id=%s "
                 "number=%llu error=%s",
                 p->names, (unsigned long long)p->number, trp_err_name(err));
    }
}

/* persistent-keep-K1 */
static void
snapshot_saved(trp_ctx *ctx, trpi_persistent *p, uint64_t number)
{
    trpi_snapshots *own = p->snapshots;
    uint32_t keep = p->what->snapshots_keep;

    if (keep == 0) {
        return;
    }
    if (own->count == keep) {
        memmove(own->confirmed, own->confirmed + 1, (keep - 1) * sizeof own->confirmed[0]);
        own->count--;
    }
    own->confirmed[own->count++] = number;
    /* no memory for either: what is too much is deleted after the next snapshot */
    (void)delete_send(ctx, p, TRP_JOURNAL_SNAPSHOT_DELETE, number, keep);
    if (p->what->events_forget != 0 && own->count == keep) {
        (void)delete_send(ctx, p, TRP_JOURNAL_DELETE, own->confirmed[0], 0);
    }
}

void
trpi_keep_answer(trp_ctx *ctx, trpi_persistent *p, const trpi_flight *flight)
{
    const trp_journal_op *op = &flight->op;
    bool is_snapshot = op->kind == TRP_JOURNAL_SNAPSHOT_SAVE;
    uint64_t number = is_snapshot ? op->events[0].number : op->to;

    if (is_snapshot) {
        p->snapshots->is_saving = false;
    }
    if (op->err == TRP_EFENCED) {
        trpi_persistent_end(ctx, p, NULL, TRP_EFENCED, "%s", op->why);
    }
    if (op->outcome != TRP_JOURNAL_DONE) {
        trpi_log(p->system, TRP_LOG_WARNING, "persistence",
                 "%s; nothing is lost by that id=%s number=%llu error=%s why=\"%s\"",
                 is_snapshot ? "a snapshot was not stored" : "a deletion was not carried out",
                 p->names, (unsigned long long)number, trp_err_name(op->err), op->why);
    } else if (is_snapshot) {
        snapshot_saved(ctx, p, number);
    }
    if (p->what->kept != NULL) {
        p->what->kept(ctx, p->state, op->kind, number, op->err, op->why);
    }
}

/* persistent_recover.c - from the journal to the state.
 *
 * Shape.   claim the epoch -> load the latest snapshot that can be read -> read the events behind
 *          it, a batch at a time: the next one is asked for when the last one was applied.
 * Must hold.
 *   persistent-recover-R1  The epoch is claimed before anything is read: what an earlier writer
 *       still sends is refused, and changes nothing that was read.
 *   persistent-recover-R2  Events are applied without a gap behind the snapshot. Where a snapshot
 *       could not be read, there is none from number 1 on.
 *   persistent-recover-R3  What nobody understands stops the recovery: nothing is skipped.
 * Limits.  recovery_ms between two answers; TRP_JOURNAL_READ_EVENTS_DEFAULT events and
 *          TRP_JOURNAL_READ_BYTES_DEFAULT bytes in memory.
 * Tests.   tests/unit/persistence/persistent_recover_test.c
 * Sources. A4J-18, A4J-28.
 */
#include <stdio.h>
#include <string.h>

#include "base/payload.h"
#include "persistence/persistent.h"

#define TIMER_KEY UINT64_MAX

static uint32_t
patience_ms(const trpi_persistent *p)
{
    return p->what->recovery_ms != 0 ? p->what->recovery_ms : TRP_PERSISTENT_RECOVERY_MS_DEFAULT;
}

/* Submit the next step; the journal has recovery_ms to answer. */
static void
step_submit(trp_ctx *ctx, trpi_persistent *p, trpi_phase phase, trpi_flight *flight)
{
    if (flight == NULL ||
        trp_timer_once(ctx, TIMER_KEY, patience_ms(p), &trpi_persistent_type, NULL, 0) != TRP_OK) {
        if (flight != NULL) {
            trpi_flight_drop(flight);
        }
        trpi_persistent_end(ctx, p, NULL, TRP_ENOMEM, "out of memory in the recovery of '%s'",
                            p->names);
    }
    p->phase = (uint8_t)phase;
    p->until_ms = trp_now_ms(ctx) + patience_ms(p);
    flight->op.timeout_ms = patience_ms(p);
    trpi_flight_submit(p, flight);
}

static void
events_read(trp_ctx *ctx, trpi_persistent *p)
{
    trpi_flight *flight = trpi_flight_new(ctx, p, TRP_JOURNAL_EVENTS);

    if (flight != NULL) {
        flight->op.from = p->number + 1;
        flight->op.to = p->to;
    }
    step_submit(ctx, p, TRPI_PHASE_REPLAYS, flight);
}

static void
snapshot_load(trp_ctx *ctx, trpi_persistent *p)
{
    if (p->no_snapshot) {
        events_read(ctx, p);
        return;
    }
    trpi_flight *flight = trpi_flight_new(ctx, p, TRP_JOURNAL_SNAPSHOT_LOAD);
    if (flight != NULL) {
        flight->op.to = p->load_to != 0 ? p->load_to : p->to;
    }
    step_submit(ctx, p, TRPI_PHASE_LOADS, flight);
}

/* Write who writes: the path of the actor, with the address of its node. */
static void
writer_write(trp_ctx *ctx, trpi_persistent *p, trpi_buffer *out)
{
    char address[TRPI_ADDRESS_TEXT_BYTES], path[TRP_PATH_BYTES_MAX + 1];
    char whole[TRP_JOURNAL_WRITER_BYTES_MAX + 1];

    (void)trpi_address_format(&trpi_system_self(p->system)->address, address, sizeof address);
    (void)trp_path(p->system, trp_self(ctx), path, sizeof path);
    (void)snprintf(whole, sizeof whole, "%s%.*s", address, TRP_JOURNAL_WRITER_BYTES_MAX, path);
    (void)trpi_buffer_append(out, whole, strlen(whole) + 1, sizeof whole);
}

void
trpi_recover_begin(trp_ctx *ctx, trpi_persistent *p)
{
    if (p->epoch != 0 || p->reads_only) { /* another one has claimed it, or nothing is written */
        snapshot_load(ctx, p);
        return;
    }
    trpi_flight *flight = trpi_flight_new(ctx, p, TRP_JOURNAL_CLAIM);
    if (flight != NULL) {
        writer_write(ctx, p, &flight->bytes);
        flight->op.writer = flight->bytes.data == NULL ? "?" : (const char *)flight->bytes.data;
    }
    step_submit(ctx, p, TRPI_PHASE_CLAIMS, flight); /* persistent-recover-R1 */
}

/* A function of the program reads an item of a flight, and may jump: that is a failure of the
 * recovery, and no reason to restart at once (persistent-recover-R3). */
typedef struct reading {
    trpi_persistent *p;
    const trp_journal_event *stored;
} reading;

/* ---- snapshots ------------------------------------------------------------------------------- */

static trp_err
snapshot_restore(trp_ctx *ctx, void *arg)
{
    trpi_persistent *p = ((reading *)arg)->p;
    const trp_journal_event *stored = ((reading *)arg)->stored;
    trp_err err = trpi_stored_read(p->system, stored->data, stored->bytes, &p->replayed);

    if (err != TRP_OK) {
        return err == TRP_ENOMEM ? err : TRP_EDATA;
    }
    err = p->what->restore(ctx, p->state, p->replayed);
    trpi_msg_drop(p->replayed);
    p->replayed = NULL;
    if (err != TRP_OK) {
        trpi_unconfirmed_fini(&p->deliveries);
    }
    return err == TRP_EUNHANDLED ? TRP_EDATA : err;
}

static trp_err
snapshot_loaded(trp_ctx *ctx, trpi_persistent *p, const trpi_flight *flight)
{
    trp_journal_event stored;
    size_t at = 0;

    if (!trpi_flight_next(flight, &at, &stored)) {
        events_read(ctx, p);
        return TRP_OK;
    }
    char why[TRP_FAILURE_REASON_BYTES];
    reading read = { p, &stored };
    trp_err err = trpi_guarded(ctx, snapshot_restore, &read, why, sizeof why);
    if (err == TRP_OK) {
        p->number = stored.number;
        p->load_to = 0;
        events_read(ctx, p);
        return TRP_OK;
    }
    if (err != TRP_EDATA) {
        trpi_persistent_end(ctx, p, NULL, TRP_EJOURNAL,
                            "snapshot %llu of '%s' (type %s) cannot be restored: %s",
                            (unsigned long long)stored.number, p->names, stored.type, why);
    }
    trpi_log(p->system, TRP_LOG_WARNING, "persistence",
             "a snapshot cannot be read; an older one is tried, then the events id=%s number=%llu "
             "type=%s version=%u bytes=%zu",
             p->names, (unsigned long long)stored.number, stored.type, stored.version,
             stored.bytes);
    p->load_to = stored.number > 1 ? stored.number - 1 : 0;
    p->no_snapshot = p->no_snapshot || p->load_to == 0;
    p->is_incomplete = true;
    snapshot_load(ctx, p);
    return TRP_OK;
}

/* ---- events ---------------------------------------------------------------------------------- */

static const trp_event_adapter *
adapter_find(const trp_persistent *what, const trp_journal_event *stored)
{
    for (uint32_t i = 0; i < what->adapters_count; i++) {
        const trp_event_adapter *adapter = &what->adapters[i];

        if (strcmp(adapter->type, stored->type) == 0 &&
            (adapter->version_max == 0 || stored->version <= adapter->version_max)) {
            return adapter;
        }
    }
    return NULL;
}

trp_err
trp_event_put(trp_ctx *ctx, const trp_type *type, const void *payload, size_t bytes)
{
    trpi_persistent *p = trpi_persistent_get(ctx);
    trp_msg *msg = NULL;
    void *place;

    if (p == NULL || !p->is_reading || type == NULL) {
        return TRP_EINVAL;
    }
    bytes = trpi_payload_bytes(type, bytes);
    if (payload == NULL && bytes > 0) {
        return TRP_EINVAL;
    }
    trp_err err = trp_msg_new(type, bytes, &msg, &place);
    if (err != TRP_OK) {
        return err;
    }
    if (bytes > 0) {
        memcpy(place, payload, bytes);
    }
    err = trpi_persistent_apply(ctx, p, msg);
    trp_msg_free(msg);
    return err;
}

static trp_err
event_replay(trp_ctx *ctx, void *arg)
{
    trpi_persistent *p = ((reading *)arg)->p;
    const trp_journal_event *stored = ((reading *)arg)->stored;
    const trp_event_adapter *adapter = adapter_find(p->what, stored);
    trp_err err = trpi_stored_read(p->system, stored->data, stored->bytes, &p->replayed);

    if (err == TRP_ENOMEM || (err != TRP_OK && adapter == NULL)) {
        return err;
    }
    if (adapter == NULL) {
        err = trpi_persistent_apply(ctx, p, p->replayed);
    } else {
        p->is_reading = true;
        err = adapter->read(ctx, p->state, stored, p->replayed);
        p->is_reading = false;
    }
    trpi_msg_drop(p->replayed);
    p->replayed = NULL;
    return err == TRP_EUNHANDLED ? TRP_ENOTYPE : err;
}

/* Return why the event cannot be the next one; NULL: it is (persistent-recover-R2). */
static const char *
gap_text(const trpi_persistent *p, const trp_journal_event *stored)
{
    if (stored->number == p->number + 1) {
        return NULL;
    }
    if (p->number > 0) {
        return "events between are missing";
    }
    return p->is_incomplete ? "events before it are deleted, and no snapshot could be read" : NULL;
}

static trp_err
recovery_end(trp_ctx *ctx, trpi_persistent *p)
{
    trp_timer_cancel(ctx, TIMER_KEY);
    trpi_recovery_leave(p->persistence, p->system, p->recovery);
    p->recovery = NULL;
    p->phase = TRPI_PHASE_READY;
    if (p->what->recovered != NULL) {
        p->at = TRPI_AT_EVENT;
        trp_err err = p->what->recovered(ctx, p->state);
        if (err != TRP_OK) {
            return err == TRP_EUNHANDLED ? TRP_EFAILED : err;
        }
        p->at = TRPI_AT_NONE;
        trpi_kept_unref(p->current);
        p->current = NULL;
    }
    trpi_deliveries_tell(ctx, p);
    trpi_fresh_commit(p);
    return TRP_OK;
}

static trp_err
events_replayed(trp_ctx *ctx, trpi_persistent *p, const trpi_flight *flight)
{
    char why[TRP_FAILURE_REASON_BYTES];
    trp_journal_event stored;
    size_t at = 0;

    if (p->to == 0 && flight->op.ret_number < p->number) {
        trpi_persistent_end(ctx, p, NULL, TRP_EJOURNAL,
                            "the snapshot of '%s' has number %llu, its last event %llu: the "
                            "journal has lost events, or is another one",
                            p->names, (unsigned long long)p->number,
                            (unsigned long long)flight->op.ret_number);
    }
    while (trpi_flight_next(flight, &at, &stored)) {
        const char *gap = gap_text(p, &stored);

        if (gap != NULL) {
            trpi_persistent_end(ctx, p, NULL, TRP_EJOURNAL,
                                "'%s' cannot be recovered: behind number %llu comes event %llu: %s",
                                p->names, (unsigned long long)p->number,
                                (unsigned long long)stored.number, gap);
        }
        p->number = stored.number;
        reading read = { p, &stored };
        if (trpi_guarded(ctx, event_replay, &read, why, sizeof why) != TRP_OK) {
            trpi_persistent_end(ctx, p, NULL, TRP_EJOURNAL,
                                "event %llu of '%s' (type %s, version %u, %zu bytes) cannot be "
                                "read: %s; an adapter for this type may",
                                (unsigned long long)stored.number, p->names, stored.type,
                                stored.version, stored.bytes, why);
        }
    }
    if (flight->op.ret_more != 0) {
        events_read(ctx, p);
        return TRP_OK;
    }
    if (p->to == 0 && flight->op.ret_number > p->number) {
        p->number = flight->op.ret_number; /* the last ones are deleted */
    }
    return recovery_end(ctx, p);
}

trp_err
trpi_recover_answer(trp_ctx *ctx, trpi_persistent *p, const trpi_flight *flight)
{
    static const char *const steps[] = { [TRP_JOURNAL_CLAIM] = "the epoch was not given",
                                         [TRP_JOURNAL_EVENTS] = "the events were not read",
                                         [TRP_JOURNAL_SNAPSHOT_LOAD] = "no snapshot was read" };

    if (flight->op.outcome != TRP_JOURNAL_DONE) {
        trpi_persistent_end(ctx, p, NULL, TRP_EJOURNAL, "'%s' cannot be recovered: %s (%s): %s",
                            p->names, steps[flight->op.kind], trp_err_name(flight->op.err),
                            flight->op.why);
    }
    switch (flight->op.kind) {
    case TRP_JOURNAL_CLAIM:
        p->epoch = flight->op.ret_epoch;
        snapshot_load(ctx, p);
        return TRP_OK;
    case TRP_JOURNAL_SNAPSHOT_LOAD:
        return snapshot_loaded(ctx, p, flight);
    default:
        return events_replayed(ctx, p, flight);
    }
}

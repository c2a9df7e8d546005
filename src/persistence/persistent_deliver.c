/* persistent_deliver.c - at-least-once delivery: what the engine says, told by the actor.
 *
 * Shape.  event: trp_deliver() -> engine; behind the event, or at the end of the recovery: deliver
 *         hook; again by a timer; event: trp_deliver_confirm().
 * Must hold.
 *   persistent-V1  Nothing is told while the actor recovers: a later event may confirm it.
 *   persistent-V3  Each attempt is below the command whose event delivers, in its trace. A journal
 *       keeps no traces: what is told after a recovery is in none.
 *   persistent-V2  Numbers follow from the events alone: the same after each recovery.
 * Tests.  tests/unit/persistence/unconfirmed_test.c
 */
#include <string.h>

#include <troupe/log.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/wire.h"
#include "persistence/persistent.h"

/* persistent-V1 is due to the phase: UINT64_MAX is the recovery's timer. */
#define TIMER_KEY (UINT64_MAX - 1)
#define SAVED_VERSION 1u
#define SAVED_HEAD_BYTES 16u  /* version u32, count u32, last number u64 */
#define SAVED_ENTRY_BYTES 12u /* number u64, bytes u32 */

static uint32_t
or_default(uint32_t given, uint32_t otherwise)
{
    return given != 0 ? given : otherwise;
}

typedef struct telling {
    trpi_persistent *p;
    const trpi_unconfirmed_entry *e;
} telling;

static trp_err
one_tell(trp_ctx *ctx, void *arg)
{
    const telling *t = arg;
    trpi_persistent *p = t->p;
    const trpi_unconfirmed_entry *e = t->e;
    uint32_t warn = or_default(p->what->redeliver_warn, TRP_PERSISTENT_REDELIVER_WARN_DEFAULT);

    if (e->attempts == warn + 1) {
        if (p->what->unconfirmed != NULL) {
            p->what->unconfirmed(ctx, p->state, e->number, e->msg);
        } else {
            trp_log(ctx, TRP_LOG_WARNING,
                    "a delivery is not confirmed, and is told again id=%s delivery=%llu type=%s "
                    "attempts=%u",
                    p->names, (unsigned long long)e->number, trp_msg_type(e->msg)->name, warn);
        }
    }
    p->what->deliver(ctx, p->state, e->number, e->msg);
    return TRP_OK;
}

void
trpi_deliveries_tell(trp_ctx *ctx, trpi_persistent *p)
{
    uint32_t interval_ms = or_default(p->what->redeliver_ms, TRP_PERSISTENT_REDELIVER_MS_DEFAULT);
    uint32_t burst = or_default(p->what->redeliver_burst, TRP_PERSISTENT_REDELIVER_BURST_DEFAULT);
    const trpi_unconfirmed_entry *e;

    if (p->deliveries.count == 0 || p->reads_only) {
        return;
    }
    trpi_assert(p->phase == TRPI_PHASE_READY); /* persistent-V1 */
    trpi_assert(p->what->deliver != NULL);
    p->at = TRPI_AT_EVENT; /* a hook that jumps ends it */
    while (burst > 0 &&
           (e = trpi_unconfirmed_due(&p->deliveries, trp_now_ms(ctx), interval_ms)) != NULL) {
        telling t = { p, e };

        trpi_in_attempt(ctx, &e->trace, e->attempts, one_tell, &t); /* persistent-V3 */
        burst--;
    }
    p->at = TRPI_AT_NONE;
    if (!p->redelivers) {
        uint32_t wait_ms = trpi_unconfirmed_wait_ms(&p->deliveries, trp_now_ms(ctx));
        uint32_t least_ms = interval_ms / 10 + 1; /* between two bursts */

        p->redelivers = trp_timer_once(ctx, TIMER_KEY, wait_ms > least_ms ? wait_ms : least_ms,
                                       &trpi_persistent_type, NULL, 0) == TRP_OK;
    }
}

trp_err
trp_deliver(trp_ctx *ctx, const trp_type *type, const void *payload, size_t bytes,
            uint64_t *ret_delivery)
{
    trpi_persistent *p = ctx == NULL ? NULL : trpi_persistent_get(ctx);
    trp_msg *msg = NULL;
    trp_trace trace;
    void *place;

    if (p == NULL || type == NULL || p->what->deliver == NULL) {
        return TRP_EINVAL;
    }
    if (!p->is_applying) {
        return TRP_ESTATE;
    }
    trp_err err = trp_msg_new(type, bytes, &msg, &place);
    if (err != TRP_OK) {
        return err;
    }
    if (trp_msg_bytes(msg) != 0 && payload != NULL) {
        memcpy(place, payload, trp_msg_bytes(msg));
    }
    uint64_t number = p->deliveries.number_last + 1; /* persistent-V2 */
    trpi_persistent_trace(p, &trace);
    err = trpi_unconfirmed_put(&p->deliveries, number, msg, &trace);
    if (err != TRP_OK) {
        trpi_msg_drop(msg);
    } else if (ret_delivery != NULL) {
        *ret_delivery = number;
    }
    return err;
}

int
trp_deliver_confirm(trp_ctx *ctx, uint64_t delivery)
{
    trpi_persistent *p = ctx == NULL ? NULL : trpi_persistent_get(ctx);

    return p != NULL && p->is_applying && trpi_unconfirmed_confirm(&p->deliveries, delivery);
}

uint32_t
trp_deliveries_count(const trp_ctx *ctx)
{
    const trpi_persistent *p = ctx == NULL ? NULL : trpi_persistent_get(ctx);

    return p == NULL ? 0 : p->deliveries.count;
}

uint32_t
trp_deliveries_room(const trp_ctx *ctx)
{
    const trpi_persistent *p = ctx == NULL ? NULL : trpi_persistent_get(ctx);

    if (p == NULL || p->what->deliver == NULL) {
        return 0;
    }
    uint32_t max = or_default(p->what->deliveries_max, TRP_PERSISTENT_DELIVERIES_DEFAULT);
    return p->deliveries.count < max ? max - p->deliveries.count : 0;
}

/* ---- in snapshots ---------------------------------------------------------------------------- */

static trp_err
entry_save(const trpi_persistent *p, const trpi_unconfirmed_entry *e, trpi_buffer *out)
{
    uint8_t head[SAVED_ENTRY_BYTES] = { 0 };
    size_t at = out->count;
    trp_err err = trpi_buffer_append(out, head, sizeof head, TRPI_BUFFER_NO_LIMIT);

    err = err != TRP_OK ? err
                        : trpi_stored_write(p->system, trp_msg_type(e->msg),
                                            trp_msg_payload(e->msg), trp_msg_bytes(e->msg), out);
    if (err != TRP_OK || out->count - at - sizeof head > UINT32_MAX) {
        return err != TRP_OK ? err : TRP_EMSGSIZE;
    }
    trpi_put_u64((uint8_t *)out->data + at, e->number);
    trpi_put_u32((uint8_t *)out->data + at + 8, (uint32_t)(out->count - at - sizeof head));
    return TRP_OK;
}

trp_err
trp_deliveries_save(trp_ctx *ctx, trp_msg **ret_data)
{
    trpi_persistent *p = ctx == NULL ? NULL : trpi_persistent_get(ctx);
    const trpi_unconfirmed_entry *e;
    uint8_t head[SAVED_HEAD_BYTES];
    trpi_buffer out = { 0 };
    void *place;

    if (p == NULL || ret_data == NULL) {
        return TRP_EINVAL;
    }
    trpi_put_u32(head, SAVED_VERSION);
    trpi_put_u32(head + 4, p->deliveries.count);
    trpi_put_u64(head + 8, p->deliveries.number_last);
    trp_err err = trpi_buffer_append(&out, head, sizeof head, TRPI_BUFFER_NO_LIMIT);
    for (uint64_t from = 0;
         err == TRP_OK && (e = trpi_unconfirmed_from(&p->deliveries, from)) != NULL;
         from = e->number + 1) {
        err = entry_save(p, e, &out);
    }
    err = err != TRP_OK ? err : trp_msg_new(&trp_bytes_type, out.count, ret_data, &place);
    if (err == TRP_OK) {
        memcpy(place, out.data, out.count);
    }
    trpi_buffer_fini(&out);
    return err;
}

static trp_err
entries_load(trpi_persistent *p, const uint8_t *data, size_t bytes, trpi_unconfirmed *r)
{
    uint32_t count = trpi_get_u32(data + 4);
    uint64_t last = trpi_get_u64(data + 8);
    size_t at = SAVED_HEAD_BYTES;

    for (; count > 0; count--) {
        trp_msg *msg = NULL;

        if (bytes - at < SAVED_ENTRY_BYTES) {
            return TRP_EDATA;
        }
        uint64_t number = trpi_get_u64(data + at);
        uint32_t size = trpi_get_u32(data + at + 8);
        at += SAVED_ENTRY_BYTES;
        if (bytes - at < size || number <= r->number_last || number > last) {
            return TRP_EDATA;
        }
        trp_err err = trpi_stored_read(p->system, data + at, size, &msg);
        if (err != TRP_OK) {
            return err == TRP_ENOMEM ? err : TRP_EDATA;
        }
        err = trpi_unconfirmed_put(r, number, msg, NULL);
        if (err != TRP_OK) {
            trpi_msg_drop(msg);
            return err;
        }
        at += size;
    }
    r->number_last = last;
    return at == bytes ? TRP_OK : TRP_EDATA;
}

trp_err
trp_deliveries_restore(trp_ctx *ctx, const void *data, size_t bytes)
{
    trpi_persistent *p = ctx == NULL ? NULL : trpi_persistent_get(ctx);
    trpi_unconfirmed loaded = { 0 };

    if (p == NULL || data == NULL || p->what->deliver == NULL) {
        return TRP_EINVAL;
    }
    if (p->phase != TRPI_PHASE_LOADS) {
        return TRP_ESTATE;
    }
    trp_err err = bytes < SAVED_HEAD_BYTES || trpi_get_u32(data) != SAVED_VERSION
                      ? TRP_EDATA
                      : entries_load(p, data, bytes, &loaded);
    if (err != TRP_OK) {
        trpi_unconfirmed_fini(&loaded);
        return err;
    }
    trpi_unconfirmed_fini(&p->deliveries);
    p->deliveries = loaded;
    return TRP_OK;
}

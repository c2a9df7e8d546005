/* redelivery.c - see the header.
 *
 * Shape.  acked <= sent <= pushed; the ring holds (acked, pushed].
 *           acked          sent            pushed
 *             |--- in flight --|--- to send ---|
 *         A nack, a reconnect or silence moves `sent` back to `acked`; the lane then sends on.
 * Must hold.
 *   redelivery-R1  pushed - acked <= max. (push)
 *   redelivery-R2  What the receiver delivers is 1, 2, 3, ... without a hole, each once. (receive)
 *   redelivery-R3  An ack beyond `pushed` is the peer's mistake and changes nothing. An ack between
 *       `sent` and `pushed` is not: `sent` may have moved back.
 *   redelivery-R4  tails_bytes is the sum of all tails in the ring, at most
 *       TRPI_SYSTEM_TAILS_BYTES_MAX.
 * Tests.  tests/unit/remote/redelivery_test.c (loss, duplication, reordering, reconnects by seed)
 */
#include "remote/association/redelivery.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

enum { RING_FIRST = 16 };

void
trpi_redelivery_init(trpi_redelivery *r, uint32_t max, uint32_t resend_ms, uint32_t give_up_ms)
{
    memset(r, 0, sizeof *r);
    r->max = max != 0 ? max : TRPI_SYSTEM_MESSAGES_DEFAULT;
    r->resend_ms = resend_ms != 0 ? resend_ms : TRPI_RESEND_MS;
    r->give_up_ms = give_up_ms != 0 ? give_up_ms : TRPI_GIVE_UP_MS;
}

/* Forget all up to seq. */
static void
drop_until(trpi_redelivery *r, uint64_t seq)
{
    for (; r->acked < seq; r->acked++) {
        trpi_redelivery_entry *entry = &r->ring[(r->acked + 1) & (r->capacity - 1)];
        r->tails_bytes -= entry->tail_bytes; /* redelivery-R4 */
        trpi_free(entry->tail);
        entry->tail = NULL;
        entry->tail_bytes = 0;
    }
}

void
trpi_redelivery_fini(trpi_redelivery *r)
{
    drop_until(r, r->pushed);
    trpi_free(r->ring);
    r->ring = NULL;
    r->capacity = 0;
}

uint32_t
trpi_redelivery_reset(trpi_redelivery *r)
{
    uint32_t unacked = trpi_redelivery_unacked(r);
    drop_until(r, r->pushed);
    r->acked = r->sent = r->pushed = r->expected = 0;
    return unacked;
}

static trp_err
ring_grow(trpi_redelivery *r)
{
    uint32_t capacity = r->capacity != 0 ? r->capacity * 2 : RING_FIRST;
    trpi_redelivery_entry *ring = trpi_alloc(capacity * sizeof *ring);
    if (ring == NULL) {
        return TRP_ENOMEM;
    }
    for (uint64_t seq = r->acked + 1; seq <= r->pushed; seq++) {
        ring[seq & (capacity - 1)] = r->ring[seq & (r->capacity - 1)];
    }
    trpi_free(r->ring);
    r->ring = ring;
    r->capacity = capacity;
    return TRP_OK;
}

trp_err
trpi_redelivery_push_tail(trpi_redelivery *r, uint64_t now_ms,
                          const uint8_t body[TRPI_SYSTEM_BODY_BYTES], const uint8_t *tail,
                          uint32_t tail_bytes)
{
    uint32_t unacked = trpi_redelivery_unacked(r);
    if (unacked >= r->max ||                                         /* redelivery-R1 */
        r->tails_bytes + tail_bytes > TRPI_SYSTEM_TAILS_BYTES_MAX) { /* redelivery-R4 */
        return TRP_ELIMIT;
    }
    if (unacked == r->capacity) {
        trp_err err = ring_grow(r);
        if (err != TRP_OK) {
            return err;
        }
    }
    trpi_redelivery_entry *entry = &r->ring[(r->pushed + 1) & (r->capacity - 1)];
    entry->tail = NULL;
    entry->tail_bytes = tail_bytes;
    if (tail_bytes != 0) {
        entry->tail = trpi_alloc(tail_bytes);
        if (entry->tail == NULL) {
            return TRP_ENOMEM;
        }
        memcpy(entry->tail, tail, tail_bytes);
    }
    r->pushed++;
    r->tails_bytes += tail_bytes;
    entry->pushed_ms = now_ms;
    memcpy(entry->body, body, TRPI_SYSTEM_BODY_BYTES);
    return TRP_OK;
}

const uint8_t *
trpi_redelivery_next(trpi_redelivery *r, uint64_t now_ms, uint64_t *ret_seq)
{
    trpi_assert(r->acked <= r->sent && r->sent <= r->pushed);
    if (r->sent == r->pushed) {
        return NULL;
    }
    r->sent++;
    r->sent_ms = now_ms;
    *ret_seq = r->sent;
    return r->ring[r->sent & (r->capacity - 1)].body;
}

const uint8_t *
trpi_redelivery_tail(const trpi_redelivery *r, uint64_t seq, uint32_t *ret_bytes)
{
    trpi_assert(seq > r->acked && seq <= r->pushed);
    *ret_bytes = r->ring[seq & (r->capacity - 1)].tail_bytes;
    return r->ring[seq & (r->capacity - 1)].tail;
}

bool
trpi_redelivery_ack(trpi_redelivery *r, uint64_t now_ms, uint64_t seq)
{
    if (seq > r->pushed) { /* redelivery-R3 */
        return false;
    }
    if (seq > r->acked) {
        drop_until(r, seq);
        r->sent = r->sent > seq ? r->sent : seq;
        r->sent_ms = now_ms;
    }
    return true;
}

bool
trpi_redelivery_nack(trpi_redelivery *r, uint64_t now_ms, uint64_t seq)
{
    if (!trpi_redelivery_ack(r, now_ms, seq)) {
        return false;
    }
    /* A late nack, for what was acknowledged since, asks for nothing. */
    if (seq == r->acked && r->sent > r->acked) {
        r->resent += r->sent - r->acked;
        r->sent = r->acked;
    }
    return true;
}

void
trpi_redelivery_reconnected(trpi_redelivery *r)
{
    r->resent += r->sent - r->acked;
    r->sent = r->acked;
}

/* Callers' clocks may have been read before another thread's push: an age is never negative. */
static bool
is_older(uint64_t since_ms, uint64_t now_ms, uint64_t age_ms)
{
    return now_ms >= since_ms && now_ms - since_ms >= age_ms;
}

bool
trpi_redelivery_oldest(const trpi_redelivery *r, uint64_t *ret_pushed_ms)
{
    if (r->acked == r->pushed) {
        return false;
    }
    *ret_pushed_ms = r->ring[(r->acked + 1) & (r->capacity - 1)].pushed_ms;
    return true;
}

trp_err
trpi_redelivery_tick(trpi_redelivery *r, uint64_t now_ms)
{
    uint64_t pushed_ms = 0;
    if (!trpi_redelivery_oldest(r, &pushed_ms)) {
        return TRP_OK;
    }
    if (is_older(pushed_ms, now_ms, r->give_up_ms)) {
        return TRP_ETIMEDOUT;
    }
    if (r->sent > r->acked && is_older(r->sent_ms, now_ms, r->resend_ms)) {
        trpi_redelivery_reconnected(r);
    }
    return TRP_OK;
}

enum trpi_redelivery_verdict
trpi_redelivery_receive(trpi_redelivery *r, uint64_t seq)
{
    if (seq <= r->expected) {
        return TRPI_REDELIVERY_DUPLICATE;
    }
    if (seq != r->expected + 1) {
        return TRPI_REDELIVERY_GAP;
    }
    r->expected = seq; /* redelivery-R2 */
    return TRPI_REDELIVERY_DELIVER;
}

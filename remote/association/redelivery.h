/* redelivery.h - system messages exactly once and in order, per association. Pure: no clock, no
 * socket.
 *
 * The sender keeps what is not acknowledged; the receiver takes what it expects next and nothing
 * else (go back n: a lane is one TCP stream, gaps come only from reconnects and are rare).
 */
#ifndef TRPI_REMOTE_REDELIVERY_H
#define TRPI_REMOTE_REDELIVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>

#include "base/check.h"
#include "remote/wire/frame.h"

#define TRPI_SYSTEM_MESSAGES_DEFAULT 20000
#define TRPI_SYSTEM_TAILS_BYTES_MAX (16u << 20) /* of all that are not acknowledged */
#define TRPI_RESEND_MS 1000
#define TRPI_GIVE_UP_MS (6u * 3600u * 1000u)

typedef struct trpi_redelivery_entry {
    uint64_t pushed_ms;
    uint8_t *tail; /* owned; NULL: none */
    uint32_t tail_bytes;
    uint8_t body[TRPI_SYSTEM_BODY_BYTES];
} trpi_redelivery_entry;

/* Zero is a valid, empty state but for the limits (trpi_redelivery_init). Sequence numbers begin at
 * 1. */
typedef struct trpi_redelivery {
    /* capacity is a power of two; entry of seq s is ring[s & (capacity - 1)] */
    trpi_redelivery_entry *ring;
    uint32_t capacity, max;
    uint32_t resend_ms, give_up_ms;
    uint64_t acked;       /* all up to here are done with */
    uint64_t sent;        /* all up to here were sent on the present connection */
    uint64_t pushed;      /* the newest */
    uint64_t sent_ms;     /* when something was sent last, or an ack moved */
    uint64_t expected;    /* receiver: delivered up to here */
    uint64_t resent;      /* counter */
    uint64_t tails_bytes; /* of all in the ring */
} trpi_redelivery;

/* 0: the default of each. */
void trpi_redelivery_init(trpi_redelivery *r, uint32_t max, uint32_t resend_ms,
                          uint32_t give_up_ms);
void trpi_redelivery_fini(trpi_redelivery *r);
/* A new incarnation: forget everything in both directions; the limits stay. Returns how many were
 * unacked. */
uint32_t trpi_redelivery_reset(trpi_redelivery *r);

/* Copies tail (NULL: none). Errors: TRP_ELIMIT (max unacknowledged, or too many bytes of tails: the
 * association is lost), TRP_ENOMEM (the same). */
trp_err trpi_redelivery_push_tail(trpi_redelivery *r, uint64_t now_ms,
                                  const uint8_t body[TRPI_SYSTEM_BODY_BYTES], const uint8_t *tail,
                                  uint32_t tail_bytes);
static inline trp_err
trpi_redelivery_push(trpi_redelivery *r, uint64_t now_ms,
                     const uint8_t body[TRPI_SYSTEM_BODY_BYTES])
{
    return trpi_redelivery_push_tail(r, now_ms, body, NULL, 0);
}
/* The next one to put on the wire, NULL when all are; marks it sent. */
const uint8_t *trpi_redelivery_next(trpi_redelivery *r, uint64_t now_ms, uint64_t *ret_seq);
static inline bool
trpi_redelivery_has_unsent(const trpi_redelivery *r)
{
    return r->sent != r->pushed;
}
/* The tail of one that next() has just returned; NULL: none. */
const uint8_t *trpi_redelivery_tail(const trpi_redelivery *r, uint64_t seq, uint32_t *ret_bytes);
/* All up to seq arrived. false: seq was never sent, the peer is broken. */
bool trpi_redelivery_ack(trpi_redelivery *r, uint64_t now_ms, uint64_t seq);
/* The peer has everything up to seq and saw a gap behind it: send the rest again. */
bool trpi_redelivery_nack(trpi_redelivery *r, uint64_t now_ms, uint64_t seq);
/* A new connection of the same incarnation: send all unacknowledged again. */
void trpi_redelivery_reconnected(trpi_redelivery *r);
/* When the oldest unacknowledged one was pushed; false: all are acknowledged. */
bool trpi_redelivery_oldest(const trpi_redelivery *r, uint64_t *ret_pushed_ms);
/* Call it now and then: after resend_ms without an ack everything is to be sent again.
 * Errors: TRP_ETIMEDOUT  the oldest waits for give_up_ms: the association is lost. */
trp_err trpi_redelivery_tick(trpi_redelivery *r, uint64_t now_ms);
static inline uint32_t
trpi_redelivery_unacked(const trpi_redelivery *r)
{
    return (uint32_t)(r->pushed - r->acked);
}
/* Are so many messages, with so many bytes of tails, at most half of what may be unacknowledged? */
static inline bool
trpi_redelivery_is_half_free(const trpi_redelivery *r, uint64_t count, uint64_t bytes)
{
    return 2 * count < r->max && 2 * bytes <= TRPI_SYSTEM_TAILS_BYTES_MAX;
}
/* Bytes of the tails that are not acknowledged. */
static inline uint64_t
trpi_redelivery_tails_bytes(const trpi_redelivery *r)
{
    return r->tails_bytes;
}
/* All up to this one were delivered here. */
static inline uint64_t
trpi_redelivery_expected(const trpi_redelivery *r)
{
    return r->expected;
}
/* Messages that were sent again. */
static inline uint64_t
trpi_redelivery_resent(const trpi_redelivery *r)
{
    return r->resent;
}
/* Was anything numbered, in either direction? */
static inline bool
trpi_redelivery_is_numbered(const trpi_redelivery *r)
{
    return r->pushed > 0 || r->expected > 0;
}

enum trpi_redelivery_verdict {
    TRPI_REDELIVERY_DELIVER = 1,   /* handle it; acknowledge up to it */
    TRPI_REDELIVERY_DUPLICATE = 2, /* drop it; acknowledge again */
    TRPI_REDELIVERY_GAP = 3        /* drop it; nack with `expected` */
};
enum trpi_redelivery_verdict trpi_redelivery_receive(trpi_redelivery *r, uint64_t seq);

/* Return NULL, or the invariant that is broken: redelivery-R1, -R4, -R5 (peer_check.c). */
const char *trpi_redelivery_check(const trpi_redelivery *r, trpi_check *check);

#endif

/* waiting.h - system messages for incarnations that nobody has proved yet. Pure.
 *
 * One address has one living incarnation. While another one is connected, or has unacknowledged
 * messages, messages for a third wait here until it is known which of them lives: the handshake
 * proves one, and an answer to a request that was sent later disproves all others.
 */
#ifndef TRPI_REMOTE_WAITING_H
#define TRPI_REMOTE_WAITING_H

#include <stdbool.h>
#include <stdint.h>

#include <troupe/base.h>

#include "remote/association/redelivery.h"

typedef struct trpi_waiting_entry {
    uint64_t uid;
    uint64_t since_ms;
    uint8_t *tail; /* owned; NULL: none */
    uint32_t tail_bytes;
    uint8_t body[TRPI_SYSTEM_BODY_BYTES];
} trpi_waiting_entry;

typedef struct trpi_waiting {    /* zero: empty */
    trpi_waiting_entry *entries; /* oldest first */
    uint32_t count, room;
    uint64_t tails_bytes; /* of all */
} trpi_waiting;

static inline uint32_t
trpi_waiting_count(const trpi_waiting *waiting)
{
    return waiting->count;
}
/* Of the tails of all. */
static inline uint64_t
trpi_waiting_tails_bytes(const trpi_waiting *waiting)
{
    return waiting->tails_bytes;
}
void trpi_waiting_fini(trpi_waiting *waiting);
/* Copies tail (NULL: none). Errors: TRP_ELIMIT (max of them wait, or too many bytes of tails),
 * TRP_ENOMEM; nothing changed. */
trp_err trpi_waiting_add_tail(trpi_waiting *waiting, uint32_t max, uint64_t uid, uint64_t now_ms,
                              const uint8_t body[TRPI_SYSTEM_BODY_BYTES], const uint8_t *tail,
                              uint32_t tail_bytes);
static inline trp_err
trpi_waiting_add(trpi_waiting *waiting, uint32_t max, uint64_t uid, uint64_t now_ms,
                 const uint8_t body[TRPI_SYSTEM_BODY_BYTES])
{
    return trpi_waiting_add_tail(waiting, max, uid, now_ms, body, NULL, 0);
}
/* Give all for uid to redelivery, in order. Errors: as trpi_redelivery_push, of the first that it
 * refused; none is left here all the same. */
trp_err trpi_waiting_move(trpi_waiting *waiting, uint64_t uid, uint64_t now_ms,
                          trpi_redelivery *to);
/* The oldest entry that began to wait before before_ms and is not for uid; NULL: there is none. */
const trpi_waiting_entry *trpi_waiting_oldest(const trpi_waiting *waiting, uint64_t before_ms,
                                              uint64_t uid);
/* Forget all for uid. */
void trpi_waiting_drop(trpi_waiting *waiting, uint64_t uid);

#endif

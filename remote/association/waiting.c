/* waiting.c - see the header.
 *
 * Must hold.
 *   waiting-G1  The messages for one uid leave in the order in which they were added.
 * Limits. The caller's max (system-message-buffer-size) for all uids together. Cost is linear:
 *         there are entries only between the restart of a peer and its next handshake.
 * Tests.  tests/unit/remote/waiting_test.c
 */
#include "remote/association/waiting.h"

#include <string.h>

#include "base/alloc.h"
#include "base/array.h"

void
trpi_waiting_fini(trpi_waiting *waiting)
{
    for (uint32_t i = 0; i < waiting->count; i++) {
        trpi_free(waiting->entries[i].tail);
    }
    trpi_free(waiting->entries);
    memset(waiting, 0, sizeof *waiting);
}

static trp_err
tail_copy(const uint8_t *tail, uint32_t bytes, uint8_t **ret_tail)
{
    *ret_tail = bytes == 0 ? NULL : trpi_alloc(bytes);
    if (bytes != 0 && *ret_tail == NULL) {
        return TRP_ENOMEM;
    }
    if (bytes != 0) {
        memcpy(*ret_tail, tail, bytes);
    }
    return TRP_OK;
}

trp_err
trpi_waiting_add_tail(trpi_waiting *waiting, uint32_t max, uint64_t uid, uint64_t now_ms,
                      const uint8_t body[TRPI_SYSTEM_BODY_BYTES], const uint8_t *tail,
                      uint32_t tail_bytes)
{
    uint8_t *copy;
    if (waiting->count >= max || waiting->tails_bytes + tail_bytes > TRPI_SYSTEM_TAILS_BYTES_MAX) {
        return TRP_ELIMIT;
    }
    if (trpi_array_reserve(&waiting->entries, waiting->count, &waiting->room,
                           sizeof *waiting->entries, 1, max) != TRP_OK ||
        tail_copy(tail, tail_bytes, &copy) != TRP_OK) {
        return TRP_ENOMEM;
    }
    trpi_waiting_entry *entry = &waiting->entries[waiting->count++];
    entry->tail = copy;
    entry->tail_bytes = tail_bytes;
    waiting->tails_bytes += tail_bytes;
    entry->uid = uid;
    entry->since_ms = now_ms;
    memcpy(entry->body, body, sizeof entry->body);
    return TRP_OK;
}

const trpi_waiting_entry *
trpi_waiting_oldest(const trpi_waiting *waiting, uint64_t before_ms, uint64_t uid)
{
    for (uint32_t i = 0; i < waiting->count; i++) {
        if (waiting->entries[i].uid != uid && waiting->entries[i].since_ms < before_ms) {
            return &waiting->entries[i];
        }
    }
    return NULL;
}

trp_err
trpi_waiting_move(trpi_waiting *waiting, uint64_t uid, uint64_t now_ms, trpi_redelivery *to)
{
    trp_err err = TRP_OK;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < waiting->count; i++) {
        const trpi_waiting_entry *entry = &waiting->entries[i];
        if (entry->uid != uid) {
            waiting->entries[kept++] = *entry;
            continue;
        }
        if (err == TRP_OK && to != NULL) { /* waiting-G1 */
            err =
                trpi_redelivery_push_tail(to, now_ms, entry->body, entry->tail, entry->tail_bytes);
        }
        waiting->tails_bytes -= entry->tail_bytes;
        trpi_free(entry->tail);
    }
    waiting->count = kept;
    return err;
}

void
trpi_waiting_drop(trpi_waiting *waiting, uint64_t uid)
{
    (void)trpi_waiting_move(waiting, uid, 0, NULL); /* to no redelivery: cannot fail */
}

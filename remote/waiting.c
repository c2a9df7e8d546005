/* waiting.c - see the header.
 *
 * Must hold.
 *   G1  The messages for one uid leave in the order in which they came.
 * Limits. The caller's max (system-message-buffer-size) for all uids together. Cost is linear:
 *         there are entries only between the restart of a peer and its next handshake.
 * Tests.  tests/unit/remote/waiting_test.c
 */
#include "remote/waiting.h"

#include <string.h>

#include "base/alloc.h"

enum { ENTRIES_FIRST = 8 };

void
trpi_waiting_fini(trpi_waiting *waiting)
{
    trpi_free(waiting->entries);
    memset(waiting, 0, sizeof *waiting);
}

trp_err
trpi_waiting_add(trpi_waiting *waiting, uint32_t max, uint64_t uid, uint64_t now_ms,
                 const uint8_t body[TRPI_SYSTEM_BODY_BYTES])
{
    if (waiting->count >= max) {
        return TRP_ELIMIT;
    }
    if (waiting->count == waiting->capacity) {
        uint32_t capacity = waiting->capacity != 0 ? waiting->capacity * 2 : ENTRIES_FIRST;
        trpi_waiting_entry *grown =
            trpi_realloc(waiting->entries, capacity * sizeof *waiting->entries);
        if (grown == NULL) {
            return TRP_ENOMEM;
        }
        waiting->entries = grown;
        waiting->capacity = capacity;
    }
    trpi_waiting_entry *entry = &waiting->entries[waiting->count++];
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
        } else if (err == TRP_OK && to != NULL) { /* G1 */
            err = trpi_redelivery_push(to, now_ms, entry->body);
        }
    }
    waiting->count = kept;
    return err;
}

void
trpi_waiting_drop(trpi_waiting *waiting, uint64_t uid)
{
    (void)trpi_waiting_move(waiting, uid, 0, NULL); /* to nobody: cannot fail */
}

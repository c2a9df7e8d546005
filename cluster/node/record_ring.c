/* record_ring.c - the last records of a node, for commands that look back and then follow.
 *
 * Why.     `deadletters` and `logs` show what has happened before anybody looked, and what happens
 *          next. A queue for each reader would make a slow reader cost memory; here a reader has
 *          only a number, and learns how many records were overwritten before it read them.
 * Shape.   |--- free ---|[length record][length record]...[length record]|--- free ---|
 *                        oldest_at                                        end_at
 *          Places count bytes since the start, so that a stale place is known as such; modulo room
 *          they are indexes. A record may wrap around the end of the array.
 * Must hold.
 *   record-ring-R1  end_at - oldest_at <= room, and between the two stand the records oldest ..
 *       next - 1, whole.
 *   record-ring-R2  For each reader: records read + missed = records written since its place.
 * Limits.  The bytes of the ring; a record of at most a quarter of them.
 * Cost.    Nothing before the first record; then a lock and a copy for each.
 * Tests.   tests/unit/node/record_ring_test.c
 */
#include "cluster/node/record_ring.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"

#define LENGTH_BYTES ((size_t)sizeof(uint32_t))

void
trpi_record_ring_init(trpi_record_ring *ring, size_t room_bytes)
{
    trpi_assert(room_bytes >= 4 * LENGTH_BYTES);
    memset(ring, 0, sizeof *ring);
    pthread_mutex_init(&ring->lock, NULL);
    ring->room = room_bytes;
    ring->oldest = ring->next = 1;
}

void
trpi_record_ring_fini(trpi_record_ring *ring)
{
    trpi_free(ring->data);
    ring->data = NULL;
    trpi_mutex_destroy(&ring->lock);
}

/* ---- with the lock --------------------------------------------------------------------------- */

static void
bytes_write(trpi_record_ring *ring, const void *bytes, size_t count)
{
    size_t index = (size_t)(ring->end_at % ring->room);
    size_t first = count < ring->room - index ? count : ring->room - index;
    memcpy(ring->data + index, bytes, first);
    memcpy(ring->data, (const uint8_t *)bytes + first, count - first);
    ring->end_at += count;
}

static void
bytes_read(const trpi_record_ring *ring, uint64_t at, void *bytes, size_t count)
{
    size_t index = (size_t)(at % ring->room);
    size_t first = count < ring->room - index ? count : ring->room - index;
    memcpy(bytes, ring->data + index, first);
    memcpy((uint8_t *)bytes + first, ring->data, count - first);
}

static uint32_t
length_at(const trpi_record_ring *ring, uint64_t at)
{
    uint32_t length;
    bytes_read(ring, at, &length, LENGTH_BYTES);
    return length;
}

static void
oldest_drop(trpi_record_ring *ring)
{
    ring->oldest_at += LENGTH_BYTES + length_at(ring, ring->oldest_at);
    ring->oldest++;
    trpi_assert(ring->oldest <= ring->next);
    trpi_assert(ring->oldest_at <= ring->end_at); /* record-ring-R1 */
}

static bool
room_make(trpi_record_ring *ring, size_t bytes)
{
    if (bytes > ring->room / 4) {
        return false;
    }
    if (ring->data == NULL) {
        ring->data = trpi_alloc(ring->room);
    }
    while (ring->data != NULL && ring->end_at - ring->oldest_at + bytes > ring->room) {
        oldest_drop(ring);
    }
    return ring->data != NULL;
}

/* A place that was overwritten moves to the oldest record. */
static void
place_mend(const trpi_record_ring *ring, trpi_record_place *place)
{
    if (place->number < ring->oldest) {
        place->missed += ring->oldest - place->number; /* record-ring-R2 */
        place->number = ring->oldest;
        place->at = ring->oldest_at;
    }
}

/* ---- for writers and readers ----------------------------------------------------------------- */

void
trpi_record_ring_put(trpi_record_ring *ring, const void *record, size_t bytes)
{
    uint32_t length = (uint32_t)bytes;
    pthread_mutex_lock(&ring->lock);
    if (room_make(ring, LENGTH_BYTES + bytes)) {
        bytes_write(ring, &length, LENGTH_BYTES);
        bytes_write(ring, record, bytes);
        ring->next++;
    } else {
        ring->lost++;
    }
    pthread_mutex_unlock(&ring->lock);
}

trpi_record_place
trpi_record_ring_find(trpi_record_ring *ring, uint64_t after)
{
    pthread_mutex_lock(&ring->lock);
    trpi_record_place place = { ring->oldest, ring->oldest_at, 0 };
    if (after >= ring->next) {
        after = 0; /* a number of an earlier run of the node */
    }
    if (after != 0 && after < ring->oldest) {
        place.missed = ring->oldest - after - 1;
    }
    while (place.number <= after && place.number < ring->next) {
        place.at += LENGTH_BYTES + length_at(ring, place.at);
        place.number++;
    }
    pthread_mutex_unlock(&ring->lock);
    return place;
}

bool
trpi_record_ring_read(trpi_record_ring *ring, trpi_record_place *place, void *buffer,
                      size_t *ret_bytes)
{
    pthread_mutex_lock(&ring->lock);
    place_mend(ring, place);
    bool is_there = place->number < ring->next;
    if (is_there) {
        size_t bytes = length_at(ring, place->at);
        bytes_read(ring, place->at + LENGTH_BYTES, buffer, bytes);
        place->at += LENGTH_BYTES + bytes;
        place->number++;
        *ret_bytes = bytes;
    }
    pthread_mutex_unlock(&ring->lock);
    return is_there;
}

uint64_t
trpi_record_ring_newest(trpi_record_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    uint64_t newest = ring->next - 1;
    pthread_mutex_unlock(&ring->lock);
    return newest;
}

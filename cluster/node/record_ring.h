/* record_ring.h - the last records of a node: a ring of a fixed number of bytes, whose readers keep
 * their own place. */
#ifndef TRPI_NODE_RECORD_RING_H
#define TRPI_NODE_RECORD_RING_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct trpi_record_ring {
    pthread_mutex_t lock; /* innermost; the fields below */
    uint8_t *data;        /* NULL: nothing was written yet */
    size_t room;          /* bytes of data; constant */
    uint64_t oldest_at;   /* of the oldest record; bytes written before it since the start */
    uint64_t end_at;      /* behind the newest record */
    uint64_t oldest;      /* number of the oldest record; the first one ever has 1 */
    uint64_t next;        /* number of the record that comes next */
    uint64_t lost;        /* records for which there was no memory, or which were too large */
} trpi_record_ring;

/* The place of a reader: the record that it reads next. */
typedef struct trpi_record_place {
    uint64_t number, at;
    uint64_t missed; /* records that were overwritten before they were read */
} trpi_record_place;

/* Allocates nothing: the first record does. */
void trpi_record_ring_init(trpi_record_ring *ring, size_t room_bytes);
void trpi_record_ring_fini(trpi_record_ring *ring); /* nobody writes or reads any more */
/* Write a record; the oldest ones make room. One larger than a quarter of the ring is lost. Any
 * thread; a lock for the time of a copy. */
void trpi_record_ring_put(trpi_record_ring *ring, const void *record, size_t bytes);
/* The place behind record `after`; 0, or a number that has not been yet: the oldest record that is
 * kept. */
trpi_record_place trpi_record_ring_find(trpi_record_ring *ring, uint64_t after);
/* Copy the record at place into buffer, set *ret_bytes and move on. false: there is none yet.
 * buffer has room for the largest record that is written. */
bool trpi_record_ring_read(trpi_record_ring *ring, trpi_record_place *place, void *buffer,
                           size_t *ret_bytes);
/* Number of the newest record; 0: none yet. */
uint64_t trpi_record_ring_newest(trpi_record_ring *ring);

#endif

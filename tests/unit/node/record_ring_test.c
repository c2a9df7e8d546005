/* record_ring_test.c - the ring of the last records: order, wrap, what was missed, its limits. */
#include <pthread.h>
#include <stdlib.h>

#include "cluster/node/record_ring.h"
#include "tests/unit/draw.h"
#include "tests/unit/unit.h"

enum { ROOM = 256, LARGEST = ROOM / 4 - 4 };

/* Read the next record as a number; 0: there is none. */
static uint64_t
number_read(trpi_record_ring *ring, trpi_record_place *place)
{
    uint8_t record[ROOM];
    size_t bytes = 0;
    uint64_t number = 0;
    if (!trpi_record_ring_read(ring, place, record, &bytes)) {
        return 0;
    }
    UNIT_TRUE(bytes >= sizeof number);
    memcpy(&number, record, sizeof number);
    for (size_t i = sizeof number; i < bytes; i++) {
        UNIT_EQUAL(record[i], (uint8_t)number);
    }
    return number;
}

static void
number_put(trpi_record_ring *ring, uint64_t number, size_t bytes)
{
    uint8_t record[ROOM];
    memset(record, (uint8_t)number, sizeof record);
    memcpy(record, &number, sizeof number);
    trpi_record_ring_put(ring, record, bytes);
}

static void
nothing_is_allocated_before_the_first_record(void)
{
    trpi_record_ring ring;
    trpi_record_ring_init(&ring, ROOM);
    trpi_record_place place = trpi_record_ring_find(&ring, 0);
    UNIT_EQUAL(number_read(&ring, &place), 0);
    UNIT_EQUAL(trpi_record_ring_newest(&ring), 0);
    UNIT_TRUE(ring.data == NULL);
    number_put(&ring, 1, 8);
    UNIT_TRUE(ring.data != NULL);
    UNIT_EQUAL(number_read(&ring, &place), 1);
    UNIT_EQUAL(place.missed, 0);
    trpi_record_ring_fini(&ring);
}

static void
a_record_is_at_most_a_quarter_of_the_ring(void)
{
    trpi_record_ring ring;
    trpi_record_ring_init(&ring, ROOM);
    number_put(&ring, 1, LARGEST);
    number_put(&ring, 2, LARGEST + 1); /* one past */
    number_put(&ring, 3, LARGEST);
    trpi_record_place place = trpi_record_ring_find(&ring, 0);
    UNIT_EQUAL(number_read(&ring, &place), 1);
    UNIT_EQUAL(number_read(&ring, &place), 3);
    UNIT_EQUAL(number_read(&ring, &place), 0);
    UNIT_EQUAL(ring.lost, 1);
    trpi_record_ring_fini(&ring);
}

static void
a_reader_begins_behind_the_number_it_has(void)
{
    trpi_record_ring ring;
    trpi_record_ring_init(&ring, ROOM);
    for (uint64_t i = 1; i <= 40; i++) {
        number_put(&ring, i, 12); /* 16 bytes each: 16 fit */
    }
    UNIT_EQUAL(ring.oldest, 25);
    trpi_record_place place = trpi_record_ring_find(&ring, 38);
    UNIT_EQUAL(number_read(&ring, &place), 39);
    UNIT_EQUAL(number_read(&ring, &place), 40);
    UNIT_EQUAL(place.missed, 0);
    place = trpi_record_ring_find(&ring, 40);
    UNIT_EQUAL(number_read(&ring, &place), 0);
    place = trpi_record_ring_find(&ring, 24);
    UNIT_EQUAL(place.missed, 0);
    UNIT_EQUAL(number_read(&ring, &place), 25);
    place = trpi_record_ring_find(&ring, 23);
    UNIT_EQUAL(place.missed, 1);
    UNIT_EQUAL(number_read(&ring, &place), 25);
    place = trpi_record_ring_find(&ring, 41); /* of an earlier run of the node */
    UNIT_EQUAL(place.missed, 0);
    UNIT_EQUAL(number_read(&ring, &place), 25);
    trpi_record_ring_fini(&ring);
}

static void
steps_play(uint64_t seed)
{
    unit_draw draw = { seed * 0x9e3779b97f4a7c15u };
    trpi_record_ring ring;
    trpi_record_ring_init(&ring, ROOM);
    trpi_record_place place = trpi_record_ring_find(&ring, 0);
    uint64_t written = 0, read = 0, last = 0, number;
    for (unsigned step = 0; step < 400; step++) {
        if (unit_drawn(&draw, 3) > 0) {
            number_put(&ring, ++written, 8 + unit_drawn(&draw, LARGEST - 7));
        } else if ((number = number_read(&ring, &place)) != 0) {
            read++;
            UNIT_TRUE(number > last);
            last = number;
        }
        UNIT_TRUE(ring.end_at - ring.oldest_at <= ROOM); /* record-ring-R1 */
    }
    while (number_read(&ring, &place) != 0) {
        read++;
    }
    UNIT_EQUAL(read + place.missed, written);
    trpi_record_ring_fini(&ring);
}

/* record-ring-R2, with a reader that stops for a while */
static void
what_is_read_and_missed_is_what_was_written(void)
{
    unit_seeds_play(steps_play, 50, "tests/unit/node/node_tests", "record_ring_test");
}

enum { WRITERS = 4, EACH = 2000 };

static void *
writer_main(void *arg)
{
    for (uint64_t i = 1; i <= EACH; i++) {
        number_put(arg, i, 16);
    }
    return NULL;
}

static void
threads_write_while_one_reads(void)
{
    trpi_record_ring ring;
    pthread_t writers[WRITERS];
    uint64_t read = 0;
    trpi_record_ring_init(&ring, ROOM);
    trpi_record_place place = trpi_record_ring_find(&ring, 0);
    for (size_t i = 0; i < WRITERS; i++) {
        UNIT_EQUAL(pthread_create(&writers[i], NULL, writer_main, &ring), 0);
    }
    while (read + place.missed < (uint64_t)WRITERS * EACH) {
        read += number_read(&ring, &place) != 0;
    }
    for (size_t i = 0; i < WRITERS; i++) {
        UNIT_EQUAL(pthread_join(writers[i], NULL), 0);
    }
    UNIT_EQUAL(trpi_record_ring_newest(&ring), (uint64_t)WRITERS * EACH);
    trpi_record_ring_fini(&ring);
}

UNIT_BEGIN("record_ring")
UNIT(nothing_is_allocated_before_the_first_record)
UNIT(a_record_is_at_most_a_quarter_of_the_ring)
UNIT(a_reader_begins_behind_the_number_it_has)
UNIT(what_is_read_and_missed_is_what_was_written)
UNIT(threads_write_while_one_reads)
UNIT_END

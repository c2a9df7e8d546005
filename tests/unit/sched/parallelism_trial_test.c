/* parallelism_trial_test.c - decisions of trials, for workers whose work is a formula and with a
 * clock that the test moves: on a real machine they depend on its load. */
#include "tests/unit/sched/still.h"

#define LOOK_NS 20000u
#define RATE 10u /* work of one worker in a microsecond */

typedef struct room {
    still still;
    const uint32_t *percent; /* [limit - 1]: what so many do together, of what one does */
    uint32_t lost;           /* each so many looks, nobody has a core for a millisecond; 0: never */
    uint64_t looks;
} room;

static void
room_open(room *r, uint32_t workers, const uint32_t *percent)
{
    *r = (room){ .percent = percent };
    still_open(&r->still, workers);
}

static uint32_t
limit(const room *r)
{
    return atomic_load(&r->still.sched->limit);
}

/* So many milliseconds pass; in how many looks at them the limit was `wanted`. */
static uint64_t
looks_of(room *r, uint32_t ms, uint32_t wanted)
{
    uint64_t looks = (uint64_t)ms * MS / LOOK_NS, held = 0;

    for (uint64_t i = 0; i < looks; i++) {
        uint64_t work = (uint64_t)RATE * r->percent[limit(r) - 1] * (LOOK_NS / 1000u) / 100u;

        held += limit(r) == wanted;
        r->still.now_ns += LOOK_NS;
        if (r->lost != 0 && ++r->looks % r->lost == 0) {
            r->still.now_ns += MS;
        }
        *(uint64_t *)trpi_worker_data(trpi_sched_worker(r->still.sched, 0)) += work;
        trpi_parallelism_adjust(trpi_sched_worker(r->still.sched, 0));
    }
    return held;
}

/* ... in how many percent of them. */
static uint32_t
pass(room *r, uint32_t ms, uint32_t wanted)
{
    return (uint32_t)(looks_of(r, ms, wanted) * 100u / ((uint64_t)ms * MS / LOOK_NS));
}

/* Until the limit is `wanted` and a trial has ended with it: at most so many milliseconds. */
static bool
comes_to(room *r, uint32_t wanted, uint32_t ms)
{
    for (uint32_t i = 0; i < ms; i++) {
        if (pass(r, 8, wanted) == 100) { /* longer than a measure, so it rests there */
            return true;
        }
    }
    return false;
}

static const uint32_t hindered[] = { 100, 50 };
static const uint32_t free_of_others[] = { 100, 195 };

static void
workers_that_hinder_each_other_become_one_and_more_again(void)
{
    room r;

    room_open(&r, 2, hindered);
    UNIT_EQUAL(limit(&r), 2);
    UNIT_TRUE(comes_to(&r, 1, 10));
    UNIT_TRUE(pass(&r, 10000, 1) >= 97); /* the rest are trials */
    r.percent = free_of_others;
    UNIT_TRUE(comes_to(&r, 2, 100)); /* the longest time between trials is half a second */
    UNIT_TRUE(pass(&r, 10000, 2) >= 97);
    r.percent = hindered;
    UNIT_TRUE(comes_to(&r, 1, 100));
    trpi_sched_free(r.still.sched);
}

/* The first trial begins with fewer workers, and finds that they do not suffice. */
static void
workers_that_do_not_hinder_each_other_are_all_wanted(void)
{
    room r;

    room_open(&r, 2, free_of_others);
    UNIT_TRUE(comes_to(&r, 2, 10));
    UNIT_TRUE(pass(&r, 10000, 2) >= 97);
    trpi_sched_free(r.still.sched);
}

/* A tenth more is worth a core, less is not. */
static void
a_worker_that_adds_little_sits_out(void)
{
    static const uint32_t little[] = { 100, 104 }, enough[] = { 100, 112 };
    room r;

    room_open(&r, 2, little);
    (void)pass(&r, 1000, 1);
    UNIT_TRUE(pass(&r, 10000, 1) >= 95);
    trpi_sched_free(r.still.sched);
    room_open(&r, 2, enough);
    (void)pass(&r, 1000, 2);
    UNIT_TRUE(pass(&r, 10000, 2) >= 95);
    trpi_sched_free(r.still.sched);
}

static void
the_best_of_many_limits_is_found(void)
{
    static const uint32_t best_is_four[] = { 100, 180, 250, 300, 290, 270, 250, 220 };
    static const uint32_t best_is_one[] = { 100, 80, 70, 60, 55, 50, 45, 40 };
    static const uint32_t best_is_all[] = { 100, 195, 290, 385, 480, 575, 670, 760 };
    room r;

    room_open(&r, 8, best_is_four);
    (void)pass(&r, 1000, 4);
    UNIT_TRUE(pass(&r, 10000, 4) >= 95);
    r.percent = best_is_one;
    (void)pass(&r, 2000, 1);
    UNIT_TRUE(pass(&r, 10000, 1) >= 95);
    r.percent = best_is_all;
    (void)pass(&r, 2000, 8);
    UNIT_TRUE(pass(&r, 10000, 8) >= 95);
    trpi_sched_free(r.still.sched);
}

/* On a busy machine one measure of many is of a time without a core. */
static void
a_lost_core_misleads_nobody_for_long(void)
{
    room r;

    room_open(&r, 2, hindered);
    r.lost = 1009; /* looks: 21 ms; a trial takes 7 */
    (void)pass(&r, 1000, 1);
    UNIT_TRUE(pass(&r, 20000, 1) >= 90);
    r.percent = free_of_others;
    (void)pass(&r, 1000, 2);
    UNIT_TRUE(pass(&r, 20000, 2) >= 90);
    trpi_sched_free(r.still.sched);
}

/* Where a message takes two microseconds and more there is nothing to gain. */
static void
long_messages_are_never_tried(void)
{
    static const uint32_t few[] = { 4, 2 }; /* 0.4 of them in a microsecond alone */
    room r;

    room_open(&r, 2, few);
    UNIT_EQUAL(pass(&r, 5000, 2), 100);
    trpi_sched_free(r.still.sched);
}

/* A trial in which more workers do far less than fewer did ends before the time of its measurement
 * is over. */
static void
a_trial_without_hope_ends_early(void)
{
    static const uint32_t less[] = { 100, 80 }, far_less[] = { 100, 10 };
    const uint32_t *both[] = { less, far_less };
    uint64_t looks[2];
    room r;

    for (int i = 0; i < 2; i++) {
        room_open(&r, 2, both[i]);
        UNIT_TRUE(comes_to(&r, 1, 100));
        looks[i] = looks_of(&r, 10000, 2);
        trpi_sched_free(r.still.sched);
    }
    UNIT_TRUE(looks[1] > 0 && looks[1] * 4 < looks[0]);
}

/* A single worker is never parked, and watches no other one. */
static void
a_single_worker_looks_once(void)
{
    room r;

    room_open(&r, 1, hindered);
    UNIT_EQUAL(pass(&r, 100, 1), 100);
    UNIT_EQUAL(trpi_sched_worker(r.still.sched, 0)->parallelism_stride, UINT32_MAX);
    trpi_sched_free(r.still.sched);
}

UNIT_BEGIN("parallelism_trial")
UNIT(workers_that_hinder_each_other_become_one_and_more_again)
UNIT(workers_that_do_not_hinder_each_other_are_all_wanted)
UNIT(a_worker_that_adds_little_sits_out)
UNIT(the_best_of_many_limits_is_found)
UNIT(a_lost_core_misleads_nobody_for_long)
UNIT(long_messages_are_never_tried)
UNIT(a_trial_without_hope_ends_early)
UNIT(a_single_worker_looks_once)
UNIT_END

/* bottleneck_test.c - the limit of bytes in flight on a narrow link, against a model: a queue that
 * is served at a rate, and a propagation delay. */
#include "remote/wire/bottleneck.h"
#include "tests/unit/unit.h"

#define STEP_US 1000u
#define STEPS_MAX 512u /* of the propagation delay, at most */
#define SEGMENT 1448.0

typedef struct way {
    uint64_t bytes_a_second, base_us;
    uint64_t now_us;
    double queue, in_kernel, acked, srtt_us;
    double flies[STEPS_MAX]; /* through the queue, and not acknowledged yet; by the step */
    trpi_bottleneck_state state;
    double worst_us; /* the longest queue, in time */
} way;

static void
way_begin(way *w, uint64_t bytes_a_second, uint64_t base_us)
{
    memset(w, 0, sizeof *w);
    w->bytes_a_second = bytes_a_second;
    w->base_us = base_us;
    w->srtt_us = (double)base_us;
    trpi_bottleneck_begin(&w->state, (uint32_t)base_us);
}

/* A step of the network. */
static void
way_serve(way *w)
{
    double served = (double)w->bytes_a_second * STEP_US / 1e6;
    double *slot = &w->flies[w->now_us / STEP_US % STEPS_MAX];
    double acked = *slot;
    *slot = 0;
    served = served < w->queue ? served : w->queue;
    double queue_us = w->queue / (double)w->bytes_a_second * 1e6;
    w->flies[(w->now_us + w->base_us) / STEP_US % STEPS_MAX] += served;
    w->queue -= served;
    w->in_kernel -= acked;
    w->acked += acked;
    w->worst_us = queue_us > w->worst_us ? queue_us : w->worst_us;
    double part = acked / SEGMENT / 8 < 1 ? acked / SEGMENT / 8 : 1;
    w->srtt_us += ((double)w->base_us + queue_us - w->srtt_us) * part;
}

/* The sender always has more to send, 64 KiB at once without a limit. */
static void
way_run(way *w, uint64_t ms)
{
    for (uint64_t end_us = w->now_us + ms * 1000; w->now_us < end_us; w->now_us += STEP_US) {
        way_serve(w);
        trpi_bottleneck look = { .in_kernel = w->in_kernel < 0 ? 0 : (uint32_t)w->in_kernel,
                                 .rtt_us = (uint32_t)w->srtt_us,
                                 .min_rtt_us = (uint32_t)w->base_us };
        uint64_t now_ns = w->now_us * 1000;
        bool asked = trpi_bottleneck_is_asked(&w->state, now_ns);
        size_t room = asked ? trpi_bottleneck_allow(&w->state, &look, now_ns) : SIZE_MAX;
        double more = room == SIZE_MAX ? (w->in_kernel < 65536 ? 65536 : 0) : (double)room;
        w->state.handed += (uint64_t)more;
        w->in_kernel += more;
        w->queue += more;
    }
}

/* 64 kbit/s: the queue in front of it never holds more than a second of traffic, and the link is
 * used. */
static void
a_narrow_link_has_a_short_queue_and_is_used(void)
{
    for (uint64_t base_us = 20000; base_us <= 320000; base_us *= 2) {
        way w;
        way_begin(&w, 8000, base_us);
        way_run(&w, 60000);
        UNIT_TRUE(w.worst_us < 1000000);
        UNIT_TRUE(w.acked > 0.9 * 60 * 8000);
        UNIT_TRUE(w.state.limit >= TRPI_BOTTLENECK_BYTES_MIN && w.state.limit < 16384);
    }
}

static void
where_round_trips_are_short_nothing_is_bounded(void)
{
    trpi_bottleneck look = { .in_kernel = 4000000,
                             .rtt_us = TRPI_BOTTLENECK_RTT_US - 1,
                             .rate = 1 };
    UNIT_EQUAL(trpi_bottleneck_first(TRPI_BOTTLENECK_RTT_US - 1), 0);
    UNIT_EQUAL(trpi_bottleneck_first(TRPI_BOTTLENECK_RTT_US), TRPI_BOTTLENECK_BYTES_MIN);
    UNIT_EQUAL(trpi_bottleneck_limit(&look, 0), 0);
    UNIT_EQUAL(trpi_bottleneck_limit(&look, 5000), 0); /* bottleneck-B1 */
    UNIT_TRUE(trpi_bottleneck_room(&look, 0) == SIZE_MAX);
    UNIT_EQUAL(trpi_bottleneck_wait_us(&look, 0), TRPI_BOTTLENECK_LOOK_US);
}

/* 100 Mbit/s to the other side of a continent, and of the world. */
static void
a_long_way_that_is_wide_is_soon_unbounded(void)
{
    for (uint64_t base_us = 50000; base_us <= 300000; base_us += 250000) {
        way w;
        way_begin(&w, 12500000, base_us);
        UNIT_EQUAL(w.state.limit, TRPI_BOTTLENECK_BYTES_MIN);
        way_run(&w, base_us / 1000 * 30); /* so many round trips */
        UNIT_EQUAL(w.state.limit, 0);
    }
}

static void
a_link_that_becomes_wide_is_used_and_one_that_becomes_narrow_is_bounded(void)
{
    way w;
    way_begin(&w, 8000, 30000);
    way_run(&w, 10000);
    w.bytes_a_second = 12500000;
    way_run(&w, 5000);
    UNIT_EQUAL(w.state.limit, 0);
    w.bytes_a_second = 8000; /* with 64 KiB in the kernel: 8 s */
    way_run(&w, 15000);
    w.worst_us = 0;
    way_run(&w, 30000);
    UNIT_TRUE(w.state.limit > 0 && w.worst_us < 1000000);
}

static void
a_bound_that_held_nothing_back_does_not_grow(void)
{
    trpi_bottleneck look = {
        .in_kernel = 5000, .rtt_us = 100000, .min_rtt_us = 50000, .rate = 1000000
    };
    UNIT_EQUAL(trpi_bottleneck_limit(&look, 10000), 10000);
    look.held = true;
    UNIT_EQUAL(trpi_bottleneck_limit(&look, 10000), 40000); /* four times at most */
    look.rate = 0;
    UNIT_EQUAL(trpi_bottleneck_limit(&look, 10000), 10000);
    look.rtt_us = 0; /* bottleneck-B5 */
    UNIT_EQUAL(trpi_bottleneck_limit(&look, 10000), 10000);
    UNIT_EQUAL(trpi_bottleneck_first(0), TRPI_BOTTLENECK_BYTES_MIN);
}

static void
the_bounds_have_a_least_and_a_most(void)
{
    trpi_bottleneck look = { .in_kernel = 8192, .rtt_us = 60000000, .rate = 1 };
    UNIT_EQUAL(trpi_bottleneck_limit(&look, 8192), TRPI_BOTTLENECK_BYTES_MIN);
    look = (trpi_bottleneck){ .in_kernel = TRPI_BOTTLENECK_BYTES_MAX,
                              .rtt_us = 500001,
                              .rate = UINT64_MAX };
    UNIT_TRUE(trpi_bottleneck_limit(&look, 0) < TRPI_BOTTLENECK_BYTES_MAX);
    look.rtt_us = 499999;
    look.held = true;
    UNIT_EQUAL(trpi_bottleneck_limit(&look, TRPI_BOTTLENECK_BYTES_MAX), 0);
    look = (trpi_bottleneck){ .in_kernel = 100000, .rtt_us = 1600000, .min_rtt_us = 800000 };
    UNIT_EQUAL(trpi_bottleneck_limit(&look, 0), 93750); /* bottleneck-B3: 1.5 s, not 1.6 s */
    look = (trpi_bottleneck){ .in_kernel = 3072 };
    UNIT_EQUAL(trpi_bottleneck_room(&look, 4096), 1024);
    look.in_kernel = 3073; /* bottleneck-B4 */
    UNIT_EQUAL(trpi_bottleneck_room(&look, 4096), 0);
}

/* bottleneck-B6 */
static void
the_rate_of_an_idle_connection_is_not_known(void)
{
    trpi_bottleneck_state state;
    trpi_bottleneck look = { .rtt_us = 400000, .min_rtt_us = 400000 };
    trpi_bottleneck_begin(&state, look.rtt_us);
    UNIT_EQUAL(trpi_bottleneck_allow(&state, &look, 0), TRPI_BOTTLENECK_BYTES_MIN);
    state.handed = look.in_kernel = TRPI_BOTTLENECK_BYTES_MIN;
    UNIT_EQUAL(trpi_bottleneck_allow(&state, &look, 1), 0); /* held back */
    look.in_kernel = 0;
    trpi_bottleneck_state late = state;
    UNIT_EQUAL(trpi_bottleneck_allow(&late, &look, 400000000u * 4), TRPI_BOTTLENECK_BYTES_MIN);
    UNIT_TRUE(trpi_bottleneck_allow(&state, &look, 500000000u) > TRPI_BOTTLENECK_BYTES_MIN);
}

UNIT_BEGIN("bottleneck")
UNIT(a_narrow_link_has_a_short_queue_and_is_used)
UNIT(where_round_trips_are_short_nothing_is_bounded)
UNIT(a_long_way_that_is_wide_is_soon_unbounded)
UNIT(a_link_that_becomes_wide_is_used_and_one_that_becomes_narrow_is_bounded)
UNIT(a_bound_that_held_nothing_back_does_not_grow)
UNIT(the_rate_of_an_idle_connection_is_not_known)
UNIT(the_bounds_have_a_least_and_a_most)
UNIT_END

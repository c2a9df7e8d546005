/* bottleneck.c - see the header.
 *
 * Shape.   next bound = bound * target / delay, where delay is the round trip, or what the kernel
 *          holds by the rate at which it is acknowledged, if that is more: the bound grows while
 *          the delay is shorter than the target, shrinks while it is longer, and rests where they
 *          are equal.
 * Must hold.
 *   bottleneck-B1  Where round trips are short nothing is bounded.
 *   bottleneck-B2  A bound that held nothing back does not grow, for its delay says nothing about a
 *       larger one; nor does a bound grow while no rate is known.
 *   bottleneck-B3  The target of a long way is twice the time that it takes itself, up to a maximum
 *       that heartbeats bear.
 *   bottleneck-B4  Less than most of a packet is not worth a write.
 *   bottleneck-B5  A connection whose round trip is not known yet (its SYN was sent more than once)
 *       is bounded as one through a narrow link.
 *   bottleneck-B6  The rate of a connection that had nothing to send for a while, or that was not
 *       looked at for long, is not known.
 * Tests.   tests/unit/remote/bottleneck_test.c, tests/multinode/bad_links.sh
 * Sources. C. Jin, D. Wei, S. Low, "FAST TCP: motivation, architecture, algorithms, performance",
 *          2004.
 */
#include "remote/wire/bottleneck.h"

#define GROWTH_MAX 4u /* in one step */
#define PACKET_BYTES 1024u
#define STALE_WAITS 3u

static uint64_t
target_us(const trpi_bottleneck *look) /* bottleneck-B3 */
{
    uint64_t us = 2 * (uint64_t)look->min_rtt_us;
    us = us > TRPI_BOTTLENECK_TARGET_US ? us : TRPI_BOTTLENECK_TARGET_US;
    return us < TRPI_BOTTLENECK_TARGET_US_MAX ? us : TRPI_BOTTLENECK_TARGET_US_MAX;
}

uint32_t
trpi_bottleneck_first(uint32_t rtt_us)
{
    return rtt_us == 0 || rtt_us >= TRPI_BOTTLENECK_RTT_US ? TRPI_BOTTLENECK_BYTES_MIN : 0;
}

/* The delay of bytes that are handed over now; the smoothed round trip is behind it. */
static uint64_t
delay_us(const trpi_bottleneck *look)
{
    uint64_t us = look->rate == 0 ? 0 : (uint64_t)look->in_kernel * 1000000u / look->rate;
    return us > look->rtt_us ? us : look->rtt_us;
}

uint32_t
trpi_bottleneck_limit(const trpi_bottleneck *look, uint32_t limit)
{
    uint64_t target = target_us(look), delay = delay_us(look);
    if (look->rtt_us == 0) {
        return limit; /* bottleneck-B5 */
    }
    if (look->rtt_us < TRPI_BOTTLENECK_RTT_US) {
        return 0; /* bottleneck-B1 */
    }
    if (delay <= target && (limit == 0 || look->rate == 0 || !look->held)) {
        return limit; /* bottleneck-B2 */
    }
    uint64_t used = limit != 0 ? limit : look->in_kernel;
    uint64_t bytes = used * target / delay;
    bytes = bytes < used * GROWTH_MAX ? bytes : used * GROWTH_MAX;
    if (bytes >= TRPI_BOTTLENECK_BYTES_MAX) {
        return 0;
    }
    return bytes > TRPI_BOTTLENECK_BYTES_MIN ? (uint32_t)bytes : TRPI_BOTTLENECK_BYTES_MIN;
}

uint32_t
trpi_bottleneck_wait_us(const trpi_bottleneck *look, uint32_t limit)
{
    return limit != 0 && look->rtt_us > TRPI_BOTTLENECK_LOOK_US ? look->rtt_us
                                                                : TRPI_BOTTLENECK_LOOK_US;
}

/* bottleneck-B4. */
size_t
trpi_bottleneck_room(const trpi_bottleneck *look, uint32_t limit)
{
    if (limit == 0) {
        return SIZE_MAX;
    }
    uint32_t room = look->in_kernel < limit ? limit - look->in_kernel : 0;
    return room >= PACKET_BYTES ? room : 0;
}

/* ---- the state of a connection --------------------------------------------------------------- */

void
trpi_bottleneck_begin(trpi_bottleneck_state *way, uint32_t rtt_us)
{
    *way = (trpi_bottleneck_state){ .limit = trpi_bottleneck_first(rtt_us) };
}

bool
trpi_bottleneck_is_asked(const trpi_bottleneck_state *way, uint64_t now_ns)
{
    return way->limit != 0 || now_ns >= way->look_ns;
}

/* Between two looks; bottleneck-B6: 0. */
static uint64_t
rate_of(trpi_bottleneck_state *way, const trpi_bottleneck *look, uint64_t now_ns)
{
    uint64_t acked = way->handed - look->in_kernel, rate = 0;
    uint64_t wait_ns = (uint64_t)trpi_bottleneck_wait_us(look, way->limit) * 1000u;
    uint64_t elapsed_ns = now_ns - way->looked_ns;
    if ((way->was_held || way->was_busy) && elapsed_ns < STALE_WAITS * wait_ns) {
        rate = (acked - way->acked) * 1000u / (elapsed_ns / 1000000u + 1);
    }
    way->acked = acked;
    way->looked_ns = now_ns;
    way->was_busy = look->in_kernel > 0;
    return rate;
}

size_t
trpi_bottleneck_allow(trpi_bottleneck_state *way, const trpi_bottleneck *look, uint64_t now_ns)
{
    if (now_ns >= way->look_ns) {
        trpi_bottleneck now = *look;
        now.rate = rate_of(way, look, now_ns);
        now.held = way->was_held;
        way->was_held = false;
        way->limit = trpi_bottleneck_limit(&now, way->limit);
        way->look_ns = now_ns + (uint64_t)trpi_bottleneck_wait_us(look, way->limit) * 1000u;
    }
    size_t room = trpi_bottleneck_room(look, way->limit);
    way->was_held = way->was_held || room == 0;
    return room;
}

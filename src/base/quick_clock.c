/* quick_clock.c - the clock that a guard reads before each message.
 *
 * Why.     A node that was stopped must notice it before it handles the next message of an actor
 *          that must not live twice. CLOCK_MONOTONIC costs 20 to 60 ns; this clock costs a few.
 * Shape.   x86: the time stamp counter, if the processor says that it neither stops nor changes its
 *          rate; arm64: the virtual counter; else CLOCK_MONOTONIC_COARSE (1 to 10 ms apart).
 *          Its rate is measured once against CLOCK_MONOTONIC.
 * Must hold.
 *   quick-clock-Q1  It goes on while the process is stopped (SIGSTOP, a debugger, no processor
 *       time), and while a virtual machine is paused, where the hypervisor does not turn the
 *       counter back. A counter that was turned back shows nothing of the pause; no clock of a
 *       guest does (docs/operating.md).
 *   quick-clock-Q2  Processors of one machine may differ a little: a difference below zero is a
 *       caller's zero.
 * Tests.   tests/unit/actor/guard_test.c
 */
#include "base/quick_clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define RATE_SHIFT 24u
#define MEASURED_NS 200000u /* an error of 0.1 us at its ends makes 0.1 % */

/* The rate of this machine's counter: a constant, measured once. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf; of the measurement */
static _Atomic uint64_t rate; /* ns of a step << RATE_SHIFT; 0: there is no counter */

#if defined(__x86_64__)
static inline uint64_t
counter_read(void)
{
    return __builtin_ia32_rdtsc();
}

static bool
counter_is_steady(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
}
#define COUNTER_NAME "tsc"
#elif defined(__aarch64__)
static inline uint64_t
counter_read(void)
{
    uint64_t value;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
}

static bool
counter_is_steady(void)
{
    return true; /* by the architecture */
}
#define COUNTER_NAME "cntvct"
#else
static inline uint64_t
counter_read(void)
{
    return 0;
}

static bool
counter_is_steady(void)
{
    return false;
}
#define COUNTER_NAME "none"
#endif

/* Read both clocks at about the same time: the pair with the shortest way between. */
static void
pair_read(trpi_world *world, uint64_t *ret_counter, uint64_t *ret_ns)
{
    uint64_t best = UINT64_MAX;

    for (int i = 0; i < 8; i++) {
        uint64_t before = counter_read(), ns = trpi_world_mono_ns(world), after = counter_read();

        if (after - before < best) {
            best = after - before;
            *ret_counter = before + best / 2;
            *ret_ns = ns;
        }
    }
}

/* With the lock. */
static void
rate_measure(trpi_world *world)
{
    uint64_t counter_from = 0, counter_to = 0, from_ns = 0, to_ns = 0;

    pair_read(world, &counter_from, &from_ns);
    do {
        pair_read(world, &counter_to, &to_ns);
    } while (to_ns - from_ns < MEASURED_NS);
    if (counter_to > counter_from) {
        atomic_store_explicit(&rate,
                              ((to_ns - from_ns) << RATE_SHIFT) / (counter_to - counter_from),
                              memory_order_relaxed); /* a constant that guards nothing */
    }
}

void
trpi_quick_clock_open(trpi_world *world)
{
    pthread_mutex_lock(&lock);
    if (atomic_load_explicit(&rate, memory_order_relaxed) == 0 && counter_is_steady()) {
        rate_measure(world);
    }
    pthread_mutex_unlock(&lock);
}

uint64_t
trpi_quick_clock_ns(trpi_world *world)
{
    uint64_t known = atomic_load_explicit(&rate, memory_order_relaxed);

    if (__builtin_expect(known == 0, 0)) {
        return trpi_world_coarse_ns(world);
    }
    return (uint64_t)((unsigned __int128)counter_read() * known >> RATE_SHIFT);
}

const char *
trpi_quick_clock_source(void)
{
    return atomic_load_explicit(&rate, memory_order_relaxed) == 0 ? "monotonic-coarse"
                                                                  : COUNTER_NAME;
}

/* after.c - timers for the rooms above src/actor: on the timer's thread, short.
 *
 * Tests.   tests/unit/actor/timers_test.c
 */
#include <time.h>

#include "actor/kernel/system.h"
#include "actor/system/open.h"

static void
after_fired(void *arg, uint64_t a, uint64_t b)
{
    void (*fn)(void *) = (void (*)(void *))(uintptr_t)a;

    (void)b;
    fn(arg);
}

trp_err
trpi_system_after(trp_system *system, uint64_t delay_ms, void (*fn)(void *arg), void *arg,
                  uint64_t *ret_id)
{
    return trpi_timer_add(system->sched, delay_ms, after_fired, arg, (uint64_t)(uintptr_t)fn, 0,
                          ret_id);
}

static bool
every_fired(void *arg, uint64_t a, uint64_t b)
{
    bool (*again)(void *) = (bool (*)(void *))(uintptr_t)a;

    (void)b;
    return again(arg);
}

static void
every_over(void *arg, uint64_t a, uint64_t b)
{
    void (*over)(void *) = (void (*)(void *))(uintptr_t)b;

    (void)a;
    over(arg);
}

trp_err
trpi_system_every(trp_system *system, uint64_t interval_ms, bool (*again)(void *arg),
                  void (*over)(void *arg), void *arg, uint64_t *ret_id)
{
    trpi_timer what = { 0 };

    what.interval_ns = interval_ms * 1000000u;
    what.due_ns = trpi_world_mono_ns(system->world) + what.interval_ns;
    if (what.interval_ns % TRPI_GRID_NS == 0) { /* shares wake-ups with others */
        what.due_ns = trpi_timer_on_grid(system->sched, what.due_ns);
    }
    what.again = every_fired;
    what.arg = arg;
    what.a = (uint64_t)(uintptr_t)again;
    what.drop = over != NULL ? every_over : NULL;
    what.b = (uint64_t)(uintptr_t)over;
    return trpi_timer_start(system->sched, &what, ret_id);
}

void
trpi_system_pass(trp_system *system, uint32_t ms)
{
    const struct timespec pause = { ms / 1000, (long)(ms % 1000) * 1000000l };

    if (trpi_sched_is_driven(system->sched)) {
        (void)trpi_sched_pump(system->sched, NULL, NULL,
                              trpi_world_mono_ns(system->world) + ms * UINT64_C(1000000),
                              TRPI_MOVE_OF_WORLD);
    } else {
        (void)nanosleep(&pause, NULL);
    }
}

bool
trpi_system_after_cancel(trp_system *system, uint64_t id)
{
    return trpi_timer_cancel(system->sched, id);
}

/* loggers.c - the loggers of a system, and the levels that each of them is subscribed to.
 *
 * Not here. The actors that write (system/logger.c).
 * Tests.   tests/unit/actor/log_test.c, loggers_test.c
 */
#include "actor/log/loggers.h"

#include "actor/log/event_stream.h"
#include "base/alloc.h"
#include "base/mutex.h"

static trp_type *const level_types[] = { NULL, &trp_log_error_type, &trp_log_warning_type,
                                         &trp_log_info_type, &trp_log_debug_type };

/* acquire: pairs with trpi_loggers_start(), which runs while the guardians may already log. */
trpi_loggers *
trpi_loggers_of(const trp_system *system)
{
    return __atomic_load_n(&system->loggers, __ATOMIC_ACQUIRE);
}

bool
trpi_logger_is(const trp_system *system, trp_ref ref)
{
    trpi_loggers *loggers = trpi_loggers_of(system);
    uint32_t count = loggers == NULL ? 0
                                     : atomic_load_explicit(&loggers->count,
                                                            /* logger-K3 */
                                                            memory_order_acquire);

    for (uint32_t i = 0; i < count; i++) {
        if (trp_ref_equal(loggers->items[i].ref, ref)) {
            return true;
        }
    }
    return false;
}

void
trpi_logger_late(trp_system *system, trp_ref to, const trp_msg *msg)
{
    trpi_loggers *loggers = trpi_loggers_of(system);
    trp_log_line line;

    if (loggers != NULL && atomic_load_explicit(&loggers->count, memory_order_acquire) > 0 &&
        trp_ref_equal(loggers->items[0].ref, to) && trp_log_event_line(msg, &line) != 0) {
        trpi_log_sink(system, &line); /* logger-K1 */
    }
}

trp_err
trpi_logger_follow(trp_system *system, trpi_logger *l, uint32_t level)
{
    trp_err err = TRP_OK;

    while (err == TRP_OK && l->levels < level) {
        err = trpi_event_subscribe(system, l->ref, level_types[l->levels + 1], &l->limit);
        l->levels += err == TRP_OK;
    }
    while (l->levels > level) {
        trpi_event_unsubscribe(system, l->ref, level_types[l->levels]);
        l->levels--;
    }
    return err;
}

void
trpi_loggers_follow(trp_system *system)
{
    trpi_loggers *loggers = trpi_loggers_of(system);
    uint32_t level;

    if (loggers == NULL) {
        return;
    }
    pthread_mutex_lock(&loggers->lock);
    level = __atomic_load_n(&system->log_gate.level, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < atomic_load_explicit(&loggers->count, memory_order_relaxed); i++) {
        if (loggers->items[i].levels != UINT32_MAX) {
            (void)trpi_logger_follow(system, &loggers->items[i],
                                     level); /* out of memory: as before */
        }
    }
    pthread_mutex_unlock(&loggers->lock);
}

void
trpi_loggers_free(trp_system *system)
{
    if (system->loggers != NULL) {
        trpi_mutex_destroy(&system->loggers->lock);
        trpi_free(system->loggers);
        system->loggers = NULL;
    }
}

uint64_t
trp_log_dropped(const trp_system *system)
{
    trpi_loggers *loggers = trpi_system_is_valid(system) ? trpi_loggers_of(system) : NULL;
    uint64_t dropped = 0;

    for (uint32_t i = 0;
         loggers != NULL && i < atomic_load_explicit(&loggers->count, memory_order_acquire); i++) {
        dropped += atomic_load_explicit(&loggers->items[i].limit.dropped, memory_order_relaxed);
    }
    return dropped;
}

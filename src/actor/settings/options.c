/* options.c - the options of a system: checked, and completed with the defaults.
 *
 * Tests.   tests/unit/actor/system_test.c, log_test.c, scheduler_test.c
 */
#include "actor/kernel/misuse.h"
#include "actor/kernel/run.h"
#include "actor/kernel/system.h"
#include "actor/settings/options.h"
#include "base/assert.h"
#include "base/sized.h"

static bool
level_is_valid(uint32_t level)
{
    return level <= TRP_LOG_DEBUG || level == TRP_LOG_OFF;
}

static bool
loggers_are_valid(const trp_behaviour *const *loggers)
{
    uint32_t count = 0;

    while (loggers != NULL && count <= TRP_LOGGERS_MAX && loggers[count] != NULL) {
        count++;
    }
    return count <= TRP_LOGGERS_MAX;
}

static bool
logging_is_valid(const trp_log_options *logging)
{
    trp_log_options own;

    return TRPI_SIZED_TAKE(logging, &own, offered) &&
           (logging == NULL ||
            (level_is_valid(logging->stdout_level) && loggers_are_valid(logging->loggers) &&
             loggers_are_valid(logging->offered)));
}

static bool
scheduling_is_valid(const trp_scheduler_options *scheduling)
{
    trp_scheduler_options own;
    uint32_t slots;

    if (scheduling == NULL) {
        return true;
    }
    if (!TRPI_SIZED_TAKE(scheduling, &own, schedules_max)) {
        return false;
    }
    slots = scheduling->ticks_per_wheel;
    return scheduling->tick_ms <= TRP_TICK_MS_MAX &&
           scheduling->schedules_max <= TRP_SCHEDULES_MAX &&
           (slots == 0 || (slots >= TRP_WHEEL_TICKS_MIN && slots <= TRP_WHEEL_TICKS_MAX &&
                           (slots & (slots - 1)) == 0));
}

_Static_assert(TRP_THROUGHPUT_MAX <= INT32_MAX / TRPI_OVERLOAD_TURNS, "turns are added up");

bool
trpi_options_are_valid(const trp_system_options *options)
{
    trp_system_options own;

    if (options == NULL) {
        return true;
    }
    if (!TRPI_SIZED_TAKE(options, &own, serialize_creators) || options->workers > TRP_WORKERS_MAX ||
        options->throughput > TRP_THROUGHPUT_MAX || options->actors_max > TRPI_CELLS_MAX ||
        !level_is_valid(options->log_level) || options->fault_trap > TRP_FAULT_TRAP_ON) {
        return false;
    }
    return (options->guardian_strategy == NULL ||
            TRPI_SIZED_FITS(options->guardian_strategy, log)) &&
           logging_is_valid(options->logging) && scheduling_is_valid(options->scheduler);
}

void
trpi_options_copy(const trp_system_options *given, trp_system_options *ret_options)
{
    static const trp_system_options none = TRP_SYSTEM_OPTIONS_INIT;
    bool fits;

    *ret_options = none;
    fits = TRPI_SIZED_COPY(given, ret_options, serialize_creators);
    trpi_assert(fits);
}

void
trpi_options_parts(trp_system *system)
{
    const trp_log_options log_none = TRP_LOG_OPTIONS_INIT;
    const trp_scheduler_options none = TRP_SCHEDULER_OPTIONS_INIT;
    trp_log_options *logging = &system->logging;
    trp_scheduler_options *scheduling = &system->scheduling;
    bool fit;

    *logging = log_none;
    *scheduling = none;
    fit = TRPI_SIZED_COPY(system->options.logging, logging, offered) &&
          TRPI_SIZED_COPY(system->options.scheduler, scheduling, schedules_max);
    trpi_assert(fit);               /* trpi_options_are_valid() */
    system->options.logging = NULL; /* borrowed */
    system->options.scheduler = NULL;
    trpi_settings_logging(system->options.config, logging);
    trpi_settings_scheduling(system->options.config, scheduling);
    logging->stdout_level = logging->stdout_level == TRP_LOG_OFF ? 0 : logging->stdout_level;
    system->log_gate.level =
        system->options.log_level == TRP_LOG_OFF ? 0 : system->options.log_level;
    system->log_gate.debug = logging->debug;
    if ((logging->debug & TRP_DEBUG_MISUSE) != 0) {
        __atomic_store_n(&trpi_misuse_on, true, __ATOMIC_RELAXED);
    }
}

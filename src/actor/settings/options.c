/* options.c - what a program may ask of a system: checked, and completed with the defaults.
 *
 * Tests.   tests/unit/actor/system_test.c, log_test.c, scheduler_test.c
 */
#include "actor/kernel/misuse.h"
#include "actor/kernel/run.h"
#include "actor/kernel/system.h"

/* Of a newer caller: zero, or we cannot obey. */
static bool
rest_is_zero(const void *options, size_t known, size_t size)
{
    const unsigned char *bytes = options;

    for (size_t i = known; i < size; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

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
    if (logging == NULL) {
        return true;
    }
    if (logging->size < sizeof *logging || !level_is_valid(logging->stdout_level) ||
        !rest_is_zero(logging, sizeof *logging, logging->size)) {
        return false;
    }
    return loggers_are_valid(logging->loggers) && loggers_are_valid(logging->offered);
}

static bool
scheduling_is_valid(const trp_scheduler_options *scheduling)
{
    uint32_t slots = scheduling == NULL ? 0 : scheduling->ticks_per_wheel;

    return scheduling == NULL ||
           (scheduling->size >= sizeof *scheduling && scheduling->tick_ms <= TRP_TICK_MS_MAX &&
            scheduling->schedules_max <= TRP_SCHEDULES_MAX &&
            (slots == 0 || (slots >= TRP_WHEEL_TICKS_MIN && slots <= TRP_WHEEL_TICKS_MAX &&
                            (slots & (slots - 1)) == 0)) &&
            rest_is_zero(scheduling, sizeof *scheduling, scheduling->size));
}

_Static_assert(TRP_THROUGHPUT_MAX <= INT32_MAX / TRPI_OVERLOAD_TURNS, "turns are added up");

bool
trpi_options_are_valid(const trp_system_options *options)
{
    if (options == NULL) {
        return true;
    }
    if (options->size < sizeof *options || options->workers > TRP_WORKERS_MAX ||
        options->throughput > TRP_THROUGHPUT_MAX || options->actors_max > TRPI_CELLS_MAX ||
        !level_is_valid(options->log_level) || options->fault_trap > TRP_FAULT_TRAP_ON) {
        return false;
    }
    if (options->guardian_strategy != NULL &&
        options->guardian_strategy->size < sizeof *options->guardian_strategy) {
        return false;
    }
    return rest_is_zero(options, sizeof *options, options->size) &&
           logging_is_valid(options->logging) && scheduling_is_valid(options->scheduler);
}

void
trpi_options_parts(trp_system *system)
{
    const trp_log_options log_none = TRP_LOG_OPTIONS_INIT;
    const trp_scheduler_options none = TRP_SCHEDULER_OPTIONS_INIT;
    trp_log_options *logging = &system->logging;
    trp_scheduler_options *scheduling = &system->scheduling;

    *logging = system->options.logging == NULL ? log_none : *system->options.logging;
    *scheduling = system->options.scheduler == NULL ? none : *system->options.scheduler;
    system->options.logging = NULL; /* borrowed */
    system->options.scheduler = NULL;
    trpi_settings_logging(system->options.config, logging);
    trpi_settings_scheduling(system->options.config, scheduling);
    logging->stdout_level = logging->stdout_level == TRP_LOG_OFF ? 0 : logging->stdout_level;
    system->log_gate.level = system->options.log_level == TRP_LOG_OFF ? 0
                                                                      : system->options.log_level;
    system->log_gate.debug = logging->debug;
    if ((logging->debug & TRP_DEBUG_MISUSE) != 0) {
        __atomic_store_n(&trpi_misuse_on, true, __ATOMIC_RELAXED);
    }
}

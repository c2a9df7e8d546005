/* log_types.c - built-in types of the room log: log events by level, and messages to loggers.
 *
 * Tests.   tests/unit/actor/type_test.c
 */
#include "actor/kernel/type.h"
#include "actor/log/log.h"

#include "base/built_in_types.h"

#define LOG_EVENT(symbol, text, number)                                                            \
    BUILT_IN(symbol, text, 0, trp_log_event_tag, TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL, number)

LOG_EVENT(trp_log_event_type, "troupe.log", TRPI_TYPE_LOG_EVENT);
LOG_EVENT(trp_log_error_type, "troupe.log-error", TRPI_TYPE_LOG_ERROR);
LOG_EVENT(trp_log_warning_type, "troupe.log-warning", TRPI_TYPE_LOG_WARNING);
LOG_EVENT(trp_log_info_type, "troupe.log-info", TRPI_TYPE_LOG_INFO);
LOG_EVENT(trp_log_debug_type, "troupe.log-debug", TRPI_TYPE_LOG_DEBUG);
BUILT_IN(trp_logger_init_type, "troupe.logger-init", 0, trp_logger_init_tag, TRP_TYPE_LOCAL,
         TRPI_TYPE_LOGGER_INIT);
BUILT_IN(trp_logger_ready_type, "troupe.logger-ready", 0, trp_logger_ready_tag, TRP_TYPE_LOCAL,
         TRPI_TYPE_LOGGER_READY);
INTERNAL(trpi_logger_end_type, "troupe.priv-logger-end", TRPI_TYPE_LOGGER_END);
INTERNAL(trpi_logger_flush_type, "troupe.priv-logger-flush", TRPI_TYPE_LOGGER_FLUSH);

static const trpi_built_in_type rows[] = {
    { &trp_log_event_type, 0 },
    { &trp_log_error_type, TRPI_TYPE_LOG_EVENT },
    { &trp_log_warning_type, TRPI_TYPE_LOG_EVENT },
    { &trp_log_info_type, TRPI_TYPE_LOG_EVENT },
    { &trp_log_debug_type, TRPI_TYPE_LOG_EVENT },
    { &trp_logger_init_type, 0 },
    { &trp_logger_ready_type, 0 },
    { &trpi_logger_end_type, 0 },
    { &trpi_logger_flush_type, 0 },
};

const trpi_type_part trpi_log_types = TYPES_OF(rows);

/* loggers.h - the loggers of a system, and the levels that each of them is subscribed to. */
#ifndef TRPI_ACTOR_LOG_LOGGERS_H
#define TRPI_ACTOR_LOG_LOGGERS_H

#include <pthread.h>

#include "actor/kernel/run.h"
#include "actor/log/log.h"

typedef struct trpi_logger {
    /* first: the cell's; a copy of the program's, whose receive is the wrapper of logger.c */
    trp_behaviour behaviour;
    trp_receive_fn receive; /* the program's, as the next one */
    trp_err (*pre_start)(trp_ctx *ctx, void *state, const trp_msg *args);
    trp_ref ref;
    trpi_event_limit limit;
    uint32_t levels; /* subscribed to, up to this one; loggers->lock */
} trpi_logger;

struct trpi_loggers {
    pthread_mutex_t lock; /* serialises subscribing */
    _Atomic uint32_t count;
    trpi_logger items[TRP_LOGGERS_MAX + 1];
};

/* NULL until they are started. */
trpi_loggers *trpi_loggers_of(const trp_system *system);
/* Subscribe to the levels up to this one. Caller holds the lock. On an error nothing has
 * changed. */
trp_err trpi_logger_follow(trp_system *system, trpi_logger *logger, uint32_t level);

#endif

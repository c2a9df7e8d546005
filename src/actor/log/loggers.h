/* loggers.h - the loggers of a system: who they are, and which levels each one is told. */
#ifndef TRPI_ACTOR_LOG_LOGGERS_H
#define TRPI_ACTOR_LOG_LOGGERS_H

#include <pthread.h>

#include "actor/kernel/run.h"
#include "actor/log/log.h"

typedef struct trpi_logger {
    trp_behaviour behaviour; /* first: the cell's; a copy of the program's with our receive */
    trp_receive_fn receive;  /* the program's, and the one below */
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
/* Subscribe to the levels up to this one. Under the lock. With an error nothing has changed. */
trp_err trpi_logger_follow(trp_system *system, trpi_logger *logger, uint32_t level);

#endif

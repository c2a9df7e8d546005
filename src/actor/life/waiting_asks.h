/* waiting_asks.h - the asks of actors that wait for their answer: part of actor/actor.h. */
#ifndef TRPI_ACTOR_LIFE_WAITING_ASKS_H
#define TRPI_ACTOR_LIFE_WAITING_ASKS_H

#include <stdbool.h>

#include <troupe/system.h>

/* asker waits until asked answers, or ends. The same ask has the same promise in a later look. */
typedef struct trpi_waiting_ask {
    trp_ref promise, asker, asked;
    uint64_t waited_ns;
} trpi_waiting_ask;

/* List asks that wait now, at most max, in the order of their promises; returns their number. Each
 * may be over when this returns. Nothing is done to the actors. Thread: any, not a worker. */
uint32_t trpi_system_waiting_asks(trp_system *system, trpi_waiting_ask *ret, uint32_t max);
/* false: the kernel does not let the process read itself (seccomp), so none is ever listed. */
bool trpi_waiting_asks_seen(void);

#endif

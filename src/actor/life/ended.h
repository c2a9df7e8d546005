/* ended.h - private to the room: has the tree of a system ended? */
#ifndef TRPI_ACTOR_LIFE_ENDED_H
#define TRPI_ACTOR_LIFE_ENDED_H

#include "actor/life/life.h"

static inline bool
trpi_system_has_ended(const trp_system *system)
{
    /* acquire: everything that happened in the tree is visible after it */
    return atomic_load_explicit(&system->life->terminated, memory_order_acquire);
}

#endif

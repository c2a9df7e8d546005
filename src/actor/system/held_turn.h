/* held_turn.h - the message of an actor that holds its thread: part of actor/actor.h. */
#ifndef TRPI_ACTOR_SYSTEM_HELD_TURN_H
#define TRPI_ACTOR_SYSTEM_HELD_TURN_H

#include <stdbool.h>

#include <troupe/system.h>

#define TRPI_HELD_TYPE_BYTES 64u /* with its end; a longer name is cut */

typedef struct trpi_held_turn {
    char type[TRPI_HELD_TYPE_BYTES]; /* of the message; "": not known */
    int thread;                      /* the kernel's id of the thread; 0: not known */
} trpi_held_turn;

/* Say what an actor handles now, and on which thread. false: it handles nothing on a thread of the
 * scheduler. It may have ended its turn when this returns. Nothing is done to the actor or its
 * thread. Thread: any, not a worker. */
bool trpi_system_held(trp_system *system, trp_ref actor, trpi_held_turn *ret_turn);

#endif

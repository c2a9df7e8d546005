/* held_turn.h - the message of an actor that holds its thread: part of actor/actor.h. */
#ifndef TRPI_ACTOR_SYSTEM_HELD_TURN_H
#define TRPI_ACTOR_SYSTEM_HELD_TURN_H

#include <stdbool.h>

#include <troupe/system.h>

#define TRPI_HELD_TYPE_BYTES 64u /* with its end; a longer name is cut */

/* Give the type of the message that an actor handles now; "": not known. false: it handles none on
 * a thread of the scheduler. It may have ended its turn when this returns. Nothing is done to the
 * actor or its thread. Thread: any, not a worker. */
bool trpi_system_held_type(trp_system *system, trp_ref actor, char ret_type[TRPI_HELD_TYPE_BYTES]);

#endif

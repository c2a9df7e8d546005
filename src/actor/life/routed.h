/* routed.h - private to the actor room: actors whose tellers are asked first (see actor.h). */
#ifndef TRPI_ACTOR_LIFE_ROUTED_H
#define TRPI_ACTOR_LIFE_ROUTED_H

#include <stdbool.h>

#include "actor/kernel/cell.h"

/* Let the router that `to` names have msg. true: taken. false: msg is for the actor itself, or the
 * incarnation is gone: deliver it to the mailbox. Any thread, inside a run or a bracket. */
bool trpi_routed_take(trp_ctx *ctx, trpi_cell *cell, trp_ref to, trp_msg *msg);
/* ops were taken off a cell that has ended; those of other kinds are left alone. The cell's
 * thread. */
void trpi_routed_ended(trp_ctx *ctx, const trpi_kind_ops *ops);

#endif

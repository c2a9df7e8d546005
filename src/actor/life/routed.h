/* routed.h - private to the actor room: routed actors (see life/open.h). */
#ifndef TRPI_ACTOR_LIFE_ROUTED_H
#define TRPI_ACTOR_LIFE_ROUTED_H

#include <stdbool.h>

#include "actor/kernel/cell.h"

/* Offer msg to the router that `to` names. true: it took msg. false: msg is for the actor itself,
 * or the incarnation has ended: deliver it to the mailbox. Thread: any, inside a run, or
 * entered. */
bool trpi_routed_take(trp_ctx *ctx, trpi_cell *cell, trp_ref to, trp_msg *msg);
/* Retire the ops of a cell that has ended; ops of other kinds are left alone. Thread: the
 * cell's. */
void trpi_routed_ended(trp_ctx *ctx, const trpi_kind_ops *ops);

#endif

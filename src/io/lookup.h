/* lookup.h - addresses of the names that commands have, from the resolver. */
#ifndef TRPI_IO_LOOKUP_H
#define TRPI_IO_LOOKUP_H

#include "actor/actor.h"
#include "io/io.h"
#include "io/resolver.h"

typedef struct trpi_io_lookups trpi_io_lookups;

/* Errors: TRP_ENOMEM. */
trp_err trpi_io_lookups_new(trp_system *system, trpi_world *world, trpi_resolve_fn resolve,
                            trpi_io_lookups **ret_lookups);
/* After the threads of the system have ended. Waits for no name server. NULL is fine. */
void trpi_io_lookups_end(trpi_io_lookups *lookups);
/* Find addresses for the name of a target, and send msg, which holds it, to an actor in the name of
 * its sender: now, or later from another thread. Then target has addresses, or an error. Takes msg,
 * on success only. Errors: TRP_ENOMEM, TRP_ECLOSED. Thread: actor. */
trp_err trpi_io_lookup(trpi_io_lookups *lookups, trp_ctx *ctx, trpi_io_target *target, trp_ref to,
                       trp_ref sender, trp_msg *msg);
/* No address of this target answered: ask anew next time, if it is a name. Thread: any. */
void trpi_io_lookup_forget(trpi_io_lookups *lookups, const trpi_io_target *target);

#endif

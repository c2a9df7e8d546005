/* troupe/coordination.h - a transaction of several actors: all of them take part, or it does not
 * happen.
 *
 *     // the actor that begins, and takes part itself:
 *     trp_ref parties[2] = { trp_self(ctx), friend };
 *     trp_coordination_start(ctx, stm, parties, 2, 5000, &c);
 *     trp_tell(ctx, friend, &counter_increment_type, &(counter_increment){ c }, 0);
 *     trp_coordination_join(ctx, c, increment, &cell, sizeof cell, 6000, on_outcome, NULL);
 *
 *     // the other one, when it gets counter_increment:
 *     trp_coordination_join(ctx, m->coordination, increment, &cell, sizeof cell, 6000, ...);
 *
 * A coordination is an actor, whose ref the parties pass on in messages of their own. Each party
 * joins it with a function over cells (troupe/stm.h) and goes on with its other messages. When all
 * have joined, the functions are run as one transaction, in the order of joining. All parties get
 * the same outcome: TRP_OK, the error of a function, TRP_ETIMEDOUT when one has not joined in time,
 * or TRP_ENOENT when one has ended before. In all cases but the first nothing is written.
 *
 * A party joins once. Before it joins it may include others, so that a chain of actors is one
 * coordination. Nobody blocks, and the state of an actor is not touched by the function, which runs
 * elsewhere: what shall change together is in cells. All parties are actors of this node.
 */
#ifndef TROUPE_COORDINATION_H
#define TROUPE_COORDINATION_H

#include <troupe/actor.h>
#include <troupe/base.h>
#include <troupe/stm.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_COORDINATION_TIMEOUT_MS_DEFAULT 5000u
#define TRP_COORDINATION_PARTIES_MAX 1024u
#define TRP_COORDINATION_ARG_BYTES_MAX 4096u

/* Begin a coordination of these parties, which decides within timeout_ms (0:
 * TRP_COORDINATION_TIMEOUT_MS_DEFAULT). A party that has ended is found at once.
 *
 * Ownership: borrows parties; borrows stm until the outcome.
 * Errors:    TRP_EINVAL   stm, parties or ret_coordination is NULL, or count is 0
 *            TRP_ELIMIT   more than TRP_COORDINATION_PARTIES_MAX
 *            TRP_EEXIST   a party is there twice
 *            TRP_EUNSUPPORTED  a party lives on another node, or is nobody
 *            and those of trp_system_spawn
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    TRANSACT-1, -2, -3.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_coordination_start(trp_ctx *ctx, trp_stm *stm,
                                                      const trp_ref *parties, uint32_t count,
                                                      uint32_t timeout_ms,
                                                      trp_ref *ret_coordination);

/* Do as trp_coordination_start, from a thread that is no actor, and no party.
 *
 * Ownership: borrows parties; borrows stm until the outcome.
 * Errors:    as trp_coordination_start
 * Thread:    any; takes a lock for a moment.
 * Source:    TRANSACT-1.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_system_coordination_start(trp_system *system, trp_stm *stm,
                                                             const trp_ref *parties, uint32_t count,
                                                             uint32_t timeout_ms,
                                                             trp_ref *ret_coordination);

/* Make another actor a party, which must join, too. Called by a party before it joins itself. One
 * that is a party already stays one; more than TRP_COORDINATION_PARTIES_MAX end the coordination
 * with TRP_ELIMIT.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    TRANSACT-1.  Since: 0.2 */
TRP_API void trp_coordination_include(trp_ctx *ctx, trp_ref coordination, trp_ref party);

/* Join with a function of the transaction, which gets a copy of *arg, 16-aligned, and may run
 * several times on another thread; NULL: agree only. Then run done, as part of this actor: err is
 * TRP_OK (all of it is written) or why nothing is; reply is not yours. timeout_ms is how long this
 * actor waits for the outcome: if it is less than that of the coordination and err is
 * TRP_ETIMEDOUT, the outcome is not known.
 *
 * Joining twice: the second gets TRP_EEXIST. A stranger gets TRP_EPERM. When the coordination is
 * over: TRP_ENOENT.
 *
 * Ownership: borrows arg (copied); done_arg is passed through.
 * Errors:    TRP_EINVAL   done is NULL, timeout_ms is 0, or arg is NULL and arg_bytes is not 0
 *            TRP_EMSGSIZE arg_bytes is above TRP_COORDINATION_ARG_BYTES_MAX
 *            and those of trp_ask
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    TRANSACT-1, -2, -3.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_coordination_join(trp_ctx *ctx, trp_ref coordination,
                                                     trp_txn_fn fn, const void *arg,
                                                     size_t arg_bytes, uint32_t timeout_ms,
                                                     trp_reply_fn done, void *done_arg);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_COORDINATION_H */

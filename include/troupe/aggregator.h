/* troupe/aggregator.h - an actor that collects several answers: its expectations change from
 * message to message.
 *
 *     static trp_err
 *     receive(trp_ctx *ctx, void *state, const trp_msg *msg)
 *     {
 *         struct retriever *r = state;
 *         return trp_aggregator_receive(ctx, &r->aggregator, msg);
 *     }
 *
 * An expectation is a function that looks at a message and takes it, or returns TRP_EUNHANDLED and
 * leaves it to the next one. They are asked in the order in which they were made; who sent the
 * message does not matter, unless the function asks (trp_sender(): of this message, so that of the
 * first request must be kept for the final answer). All run in the actor, so they may change its
 * state, ask other actors, and expect more. An actor that answers one request and then stops is the
 * usual one.
 *
 * An expectation that is made while a message is handled counts from the next message on; one that
 * is ended counts no more at once.
 */
#ifndef TROUPE_AGGREGATOR_H
#define TROUPE_AGGREGATOR_H

#include <troupe/actor.h>
#include <troupe/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_AGGREGATOR_EXPECTATIONS_MAX 65536u /* of one aggregator */

/* The expectations of an actor; zero it (it stands in the actor's state). Its memory is the
 * actor's: after a restart nothing is expected. */
typedef struct trp_aggregator {
    void *priv_expectations;
    uint32_t priv_count, priv_room;
    uint64_t priv_last;
} trp_aggregator;

/* Take the message, or return TRP_EUNHANDLED without having done anything. Another error is that of
 * the actor's receive. */
typedef trp_err (*trp_expect_fn)(trp_ctx *ctx, void *arg, const trp_msg *msg);

/* Expect messages from the next one on, until trp_aggregator_unexpect() or the end of the actor.
 *
 * Ownership: arg is passed through.
 * Errors:    TRP_EINVAL  an argument is NULL (arg and ret_handle may be)
 *            TRP_ELIMIT  TRP_AGGREGATOR_EXPECTATIONS_MAX are there
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    CONTRIB-42.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_aggregator_expect(trp_ctx *ctx, trp_aggregator *aggregator,
                                                     trp_expect_fn fn, void *arg,
                                                     uint64_t *ret_handle);

/* Expect one message: the expectation ends when its function has returned and has taken it.
 *
 * Ownership: arg is passed through.
 * Errors:    as trp_aggregator_expect
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    CONTRIB-42.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_aggregator_expect_once(trp_ctx *ctx, trp_aggregator *aggregator,
                                                          trp_expect_fn fn, void *arg,
                                                          uint64_t *ret_handle);

/* End an expectation, also that whose function is running; return non-zero if it was there, which
 * is so once.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    CONTRIB-42, -44.  Since: 0.2 */
TRP_API int trp_aggregator_unexpect(trp_aggregator *aggregator, uint64_t handle);

/* Give a message to the first expectation that takes it. A receive with messages of its own calls
 * this first, or last, or as a part of trp_or_else().
 *
 * Ownership: borrows msg.
 * Errors:    TRP_EUNHANDLED  nothing expects it; and those of the function that took it
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    CONTRIB-43.  Since: 0.2 */
TRP_API trp_err trp_aggregator_receive(trp_ctx *ctx, trp_aggregator *aggregator,
                                       const trp_msg *msg);

/* Return how many expectations there are.
 *
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    CONTRIB-42.  Since: 0.2 */
TRP_API uint32_t trp_aggregator_count(const trp_aggregator *aggregator);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_AGGREGATOR_H */

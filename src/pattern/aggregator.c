/* aggregator.c - expectations of an actor, which come and go while it handles messages.
 *
 * Why.     An actor that collects answers handles each of them by other code; a future for each
 *          would run on other threads than the actor's.
 * Shape.   An array of expectations in the order of their handles, in memory of the actor. A
 *          message goes along it. Functions may add and remove while it does: so the walk keeps
 *          handles, no places.
 * Must hold.
 *   aggregator-A1  A message is offered to those only that were there when it came and still are,
 *       each once, in the order of their handles.                       (trp_aggregator_receive)
 *   aggregator-A2  A handle is not used again: it ends once.
 * Limits.  TRP_AGGREGATOR_EXPECTATIONS_MAX.
 * Tests.   tests/unit/pattern/aggregator_test.c
 * Sources. CONTRIB-42 to -45
 */
#include <troupe/aggregator.h>

#include <stdbool.h>
#include <string.h>

typedef struct expectation {
    uint64_t handle;
    trp_expect_fn fn;
    void *arg;
    bool once;
} expectation;

/* Return the place of the first one with this handle or a later one. */
static uint32_t
place_of(const trp_aggregator *aggregator, uint64_t handle)
{
    const expectation *all = aggregator->priv_expectations;
    uint32_t low = 0, high = aggregator->priv_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (all[middle].handle < handle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static trp_err
add_expectation(trp_ctx *ctx, trp_aggregator *aggregator, trp_expect_fn fn, void *arg, bool once,
                uint64_t *ret_handle)
{
    if (ctx == NULL || aggregator == NULL || fn == NULL) {
        return TRP_EINVAL;
    }
    if (aggregator->priv_count >= TRP_AGGREGATOR_EXPECTATIONS_MAX) {
        return TRP_ELIMIT;
    }
    if (aggregator->priv_count == aggregator->priv_room) {
        uint32_t room = aggregator->priv_room == 0 ? 8 : aggregator->priv_room * 2;
        expectation *more = trp_alloc(ctx, room * sizeof *more); /* or the actor fails */
        if (aggregator->priv_count > 0) {
            memcpy(more, aggregator->priv_expectations, aggregator->priv_count * sizeof *more);
        }
        trp_alloc_free(ctx, aggregator->priv_expectations);
        aggregator->priv_expectations = more;
        aggregator->priv_room = room;
    }
    expectation *all = aggregator->priv_expectations;
    all[aggregator->priv_count++] = (expectation){ ++aggregator->priv_last, fn, arg, once };
    if (ret_handle != NULL) {
        *ret_handle = aggregator->priv_last;
    }
    return TRP_OK;
}

trp_err
trp_aggregator_expect(trp_ctx *ctx, trp_aggregator *aggregator, trp_expect_fn fn, void *arg,
                      uint64_t *ret_handle)
{
    return add_expectation(ctx, aggregator, fn, arg, false, ret_handle);
}

trp_err
trp_aggregator_expect_once(trp_ctx *ctx, trp_aggregator *aggregator, trp_expect_fn fn, void *arg,
                           uint64_t *ret_handle)
{
    return add_expectation(ctx, aggregator, fn, arg, true, ret_handle);
}

int
trp_aggregator_unexpect(trp_aggregator *aggregator, uint64_t handle)
{
    uint32_t at = aggregator == NULL ? 0 : place_of(aggregator, handle);
    if (aggregator == NULL || at == aggregator->priv_count) {
        return 0;
    }
    expectation *all = aggregator->priv_expectations;
    if (all[at].handle != handle) {
        return 0;
    }
    aggregator->priv_count--;
    memmove(&all[at], &all[at + 1], (aggregator->priv_count - at) * sizeof *all);
    return 1;
}

trp_err
trp_aggregator_receive(trp_ctx *ctx, trp_aggregator *aggregator, const trp_msg *msg)
{
    if (ctx == NULL || aggregator == NULL || msg == NULL) {
        return TRP_EINVAL;
    }
    uint64_t last = aggregator->priv_last;
    uint32_t at = 0;
    while (at < aggregator->priv_count) {
        expectation one = ((const expectation *)aggregator->priv_expectations)[at];
        if (one.handle > last) {
            break;
        }
        trp_err err = one.fn(ctx, one.arg, msg);
        if (err != TRP_EUNHANDLED) {
            if (one.once) {
                (void)trp_aggregator_unexpect(aggregator, one.handle);
            }
            return err;
        }
        at = place_of(aggregator, one.handle + 1);
    }
    return TRP_EUNHANDLED;
}

uint32_t
trp_aggregator_count(const trp_aggregator *aggregator)
{
    return aggregator == NULL ? 0 : aggregator->priv_count;
}

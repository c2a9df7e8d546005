/* future_outcome.c - outcomes of futures: counted, immutable, and shared by the futures made of
 * them.
 *
 * Must hold.
 *   future-outcome-O1  The values of an outcome live as long as it does: it owns its message, or
 *       counts its parts.
 * Tests.   tests/unit/pattern/future_list_test.c
 */
#include <string.h>

#include <troupe/actor.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "pattern/future.h"

trpi_outcome *
trpi_outcome_ref(trpi_outcome *outcome)
{
    (void)atomic_fetch_add_explicit(&outcome->refs, 1, memory_order_relaxed);
    return outcome;
}

void
trpi_outcome_unref(trpi_outcome *outcome)
{
    if (outcome == NULL ||
        atomic_fetch_sub_explicit(&outcome->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (uint32_t i = 0; i < outcome->parts_count; i++) {
        trpi_outcome_unref(outcome->parts[i]); /* one level: a part's values are flat already */
    }
    trpi_msg_drop(outcome->own);
    trpi_free(outcome);
}

trpi_outcome *
trpi_outcome_value(trp_msg *msg)
{
    trpi_outcome *outcome = trpi_alloc(sizeof *outcome + sizeof(const trp_msg *));
    const trp_msg **values;

    if (outcome == NULL) {
        return NULL;
    }
    values = (const trp_msg **)(void *)(outcome + 1);
    values[0] = msg;
    atomic_init(&outcome->refs, 1);
    outcome->own = msg;
    outcome->seen = (trp_outcome){ TRP_OK, 0, "", msg, values, 1 };
    return outcome;
}

trpi_outcome *
trpi_outcome_failure(trp_err err, const char *reason)
{
    const char *text = reason != NULL ? reason : trp_strerror(err);
    size_t bytes = strnlen(text, TRP_FAILURE_REASON_BYTES - 1);
    trpi_outcome *outcome = trpi_alloc(sizeof *outcome + bytes + 1);
    char *copy;

    if (outcome == NULL) {
        return NULL;
    }
    copy = (char *)(outcome + 1);
    memcpy(copy, text, bytes);
    atomic_init(&outcome->refs, 1);
    outcome->seen = (trp_outcome){ err, 0, copy, NULL, NULL, 0 };
    return outcome;
}

void
trpi_outcome_give_up(trpi_outcome *outcome)
{
    outcome->own = NULL;
    trpi_outcome_unref(outcome);
}

trpi_outcome *
trpi_outcome_joined(trpi_outcome *const *parts, size_t count)
{
    trpi_outcome *outcome;
    const trp_msg **values;
    size_t values_count = 0;

    for (size_t i = 0; i < count; i++) {
        values_count += parts[i]->seen.count;
    }
    outcome = trpi_alloc(sizeof *outcome + (count + values_count) * sizeof(void *));
    if (outcome == NULL) {
        return NULL;
    }
    outcome->parts = (trpi_outcome **)(void *)(outcome + 1);
    values = (const trp_msg **)(void *)(outcome->parts + count);
    values_count = 0;
    for (size_t i = 0; i < count; i++) {
        outcome->parts[i] = trpi_outcome_ref(parts[i]);
        for (size_t k = 0; k < parts[i]->seen.count; k++) {
            values[values_count++] = parts[i]->seen.values[k];
        }
    }
    atomic_init(&outcome->refs, 1);
    outcome->parts_count = (uint32_t)count;
    outcome->seen =
        (trp_outcome){ TRP_OK, 0, "", values_count > 0 ? values[0] : NULL, values, values_count };
    return outcome;
}

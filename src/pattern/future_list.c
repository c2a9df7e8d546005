/* future_list.c - one future made of many.
 *
 * Shape.   gather = {next promise, one entry for each source}; each entry is a callback of its
 *          source. The last one joins the outcomes; the first failure settles next at once, and the
 *          others only count down. fold, reduce: a gather, and one step on a dispatcher over the
 *          joined values.
 * Limits.  TRP_FUTURE_LIST_MAX (TRP_ELIMIT).
 * Tests.   tests/unit/pattern/future_test.c
 * Sources. FUT-4, -7
 */
#include "actor/actor.h"
#include "base/alloc.h"
#include "pattern/future.h"

typedef struct gather gather;

typedef struct entry {
    trpi_callback callback;
    gather *all;
    trpi_outcome *outcome; /* counted; by the order of the list */
} entry;

struct gather {
    _Atomic size_t left;    /* sources without outcome, and one while the entries are being hung */
    _Atomic size_t arrived; /* places taken in in_order */
    size_t count;
    bool race;               /* the first outcome is next's */
    trp_promise *next;       /* counted */
    trpi_outcome **in_order; /* NULL, or the outcomes as they came (borrowed from the entries) */
    entry entries[];
};

static void
gather_join(gather *g)
{
    trpi_outcome *joined, **parts = g->in_order;

    if (parts == NULL) {
        parts = trpi_alloc(g->count * sizeof *parts + 1);
        for (size_t i = 0; parts != NULL && i < g->count; i++) {
            parts[i] = g->entries[i].outcome;
        }
    }
    joined = parts == NULL ? NULL : trpi_outcome_joined(parts, g->count);
    (void)trpi_promise_settle(g->next, joined); /* NULL: a failure, or no memory */
    if (parts != g->in_order) {
        trpi_free(parts);
    }
}

static void
gather_unref(gather *g)
{
    bool all_there;

    if (atomic_fetch_sub_explicit(&g->left, 1, memory_order_acq_rel) != 1) {
        return;
    }
    all_there = trp_future_outcome(trp_promise_future(g->next)) == NULL;
    if (all_there) {
        gather_join(g);
    }
    for (size_t i = 0; i < g->count; i++) {
        trpi_outcome_unref(g->entries[i].outcome);
    }
    trp_promise_unref(g->next);
    trpi_free(g->in_order);
    trpi_free(g);
}

static void
entry_run(trpi_callback *callback, trpi_outcome *outcome)
{
    entry *e = (entry *)callback;
    gather *g = e->all;

    e->outcome = trpi_outcome_ref(outcome);
    if (g->in_order != NULL) {
        g->in_order[atomic_fetch_add_explicit(&g->arrived, 1, memory_order_relaxed)] = outcome;
    }
    if (g->race || outcome->seen.err != TRP_OK) {
        (void)trpi_promise_settle(g->next, trpi_outcome_ref(outcome));
    }
    gather_unref(g);
}

/* Make the promise of a list: its callbacks run where those of the first future do, or on the
 * default dispatcher. */
static trp_err
next_new(trp_system *system, trp_future *const *futures, size_t count, trp_promise **ret_next)
{
    return count > 0 ? trpi_promise_like(futures[0], ret_next)
                     : trp_promise_new(system, NULL, ret_next);
}

enum { IN_LIST = 0, AS_THEY_COME = 1, FIRST_ONLY = 2 };

static trp_err
gather_begin(trp_system *system, trp_future *const *futures, size_t count, int how,
             trp_future **ret_future)
{
    trp_promise *next = NULL;
    gather *g;
    trp_err err;

    if (ret_future == NULL || (futures == NULL && count > 0)) {
        return TRP_EINVAL;
    }
    if (count > TRP_FUTURE_LIST_MAX) {
        return TRP_ELIMIT;
    }
    for (size_t i = 0; i < count; i++) {
        if (futures[i] == NULL) {
            return TRP_EINVAL;
        }
    }
    err = next_new(system, futures, count, &next);
    if (err != TRP_OK) {
        return err;
    }
    g = trpi_alloc(sizeof *g + count * sizeof g->entries[0]);
    if (g != NULL && how == AS_THEY_COME) {
        g->in_order = trpi_alloc(count * sizeof(trpi_outcome *) + 1);
    }
    if (g == NULL || (how == AS_THEY_COME && g->in_order == NULL)) {
        trpi_free(g);
        trp_promise_unref(next);
        return TRP_ENOMEM;
    }
    atomic_init(&g->left, count + 1);
    g->count = count;
    g->race = how == FIRST_ONLY;
    g->next = next;
    trpi_promise_give(next, ret_future);
    for (size_t i = 0; i < count; i++) {
        g->entries[i].all = g;
        g->entries[i].callback.run = entry_run;
        g->entries[i].callback.at_once = true;
        trpi_future_then(futures[i], &g->entries[i].callback);
    }
    gather_unref(g);
    return TRP_OK;
}

trp_err
trp_future_sequence(trp_system *system, trp_future *const *futures, size_t count,
                    trp_future **ret_future)
{
    return gather_begin(system, futures, count, IN_LIST, ret_future);
}

trp_err
trp_future_zip(trp_future *first, trp_future *second, trp_future **ret_future)
{
    trp_future *both[2] = { first, second };

    return gather_begin(NULL, both, 2, IN_LIST, ret_future);
}

trp_err
trp_future_first_completed(trp_system *system, trp_future *const *futures, size_t count,
                           trp_future **ret_future)
{
    return count == 0 ? TRP_EINVAL : gather_begin(system, futures, count, FIRST_ONLY, ret_future);
}

trp_err
trp_future_traverse(trp_system *system, size_t count, trp_traverse_fn fn, void *arg,
                    trp_future **ret_future)
{
    trp_future **made;
    size_t made_count = 0;
    trp_err err = TRP_OK;

    if (fn == NULL || ret_future == NULL) {
        return TRP_EINVAL;
    }
    if (count > TRP_FUTURE_LIST_MAX) {
        return TRP_ELIMIT;
    }
    made = trpi_alloc(count * sizeof *made + 1);
    if (made == NULL) {
        return TRP_ENOMEM;
    }
    while (err == TRP_OK && made_count < count) {
        err = fn(arg, made_count, &made[made_count]);
        made_count += err == TRP_OK;
    }
    if (err == TRP_OK) {
        err = trp_future_sequence(system, made, count, ret_future);
    }
    for (size_t i = 0; i < made_count; i++) {
        trp_future_unref(made[i]);
    }
    trpi_free(made);
    return err;
}

/* ---- fold and reduce ------------------------------------------------------------------------- */

typedef struct folding {
    trp_msg *zero; /* NULL: the first value */
    trp_fold_fn fn;
    void *arg;
    trp_release_fn release;
} folding;

static void
folding_release(void *arg)
{
    folding *f = arg;

    if (f->release != NULL) {
        f->release(f->arg);
    }
    trpi_msg_drop(f->zero);
    trpi_free(f);
}

static trp_err
folding_run(void *arg, const trp_outcome *in, trp_promise *out)
{
    folding *f = arg;
    const trp_msg *sum = f->zero != NULL ? f->zero : in->value;
    trp_msg *owned = NULL;
    trp_err err = sum == NULL ? TRP_ENOENT : TRP_OK; /* nothing to reduce */

    for (size_t i = f->zero != NULL ? 0 : 1; err == TRP_OK && i < in->count; i++) {
        trp_msg *next = NULL;

        err = f->fn(f->arg, sum, in->values[i], &next);
        err = err == TRP_OK && next == NULL ? TRP_EINVAL : err;
        trpi_msg_drop(owned);
        owned = err == TRP_OK ? next : NULL;
        sum = owned;
    }
    if (err == TRP_OK && owned == NULL) {
        err = trp_msg_dup(sum, &owned);
    }
    if (err == TRP_OK) {
        err = trp_promise_succeed_msg(out, owned);
    }
    if (err != TRP_OK) {
        trpi_msg_drop(owned);
    }
    return err;
}

/* Takes zero; on failure arg is still the caller's. */
static trp_err
fold_begin(trp_system *system, trp_future *const *futures, size_t count, int how, trp_msg *zero,
           trp_fold_fn fn, void *arg, trp_release_fn release, trp_future **ret_future)
{
    folding *f = trpi_alloc(sizeof *f);
    trp_future *gathered = NULL;
    trp_err err = f == NULL ? TRP_ENOMEM : gather_begin(system, futures, count, how, &gathered);

    if (err == TRP_OK) {
        *f = (folding){ zero, fn, arg, release };
        err = trp_future_map(gathered, folding_run, f, folding_release, ret_future);
        trp_future_unref(gathered);
    }
    if (err != TRP_OK) {
        trpi_msg_drop(zero);
        trpi_free(f);
    }
    return err;
}

trp_err
trp_future_fold(trp_system *system, trp_future *const *futures, size_t count,
                const trp_type *zero_type, const void *zero, size_t zero_bytes, trp_fold_fn fn,
                void *arg, trp_release_fn release, trp_future **ret_future)
{
    trp_msg *msg;
    trp_err err;

    if (fn == NULL || zero_type == NULL || zero == NULL || ret_future == NULL) {
        return TRP_EINVAL;
    }
    err = trpi_msg_copied(zero_type, zero, zero_bytes, &msg);
    return err != TRP_OK
               ? err
               : fold_begin(system, futures, count, IN_LIST, msg, fn, arg, release, ret_future);
}

trp_err
trp_future_reduce(trp_system *system, trp_future *const *futures, size_t count, trp_fold_fn fn,
                  void *arg, trp_release_fn release, trp_future **ret_future)
{
    if (fn == NULL || ret_future == NULL) {
        return TRP_EINVAL;
    }
    return fold_begin(system, futures, count, AS_THEY_COME, NULL, fn, arg, release, ret_future);
}

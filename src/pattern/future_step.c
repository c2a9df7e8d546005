/* future_step.c - operations on one future: callbacks, and a future made of another.
 *
 * Shape.   step = {callback, fn, arg, release, next promise}; step_run() checks whether the outcome
 *          concerns it, calls fn, settles next, and releases arg, in this order.
 * Tests.   tests/unit/pattern/future_test.c
 * Sources. FUT-4, -5, -7, MSG-4, MSG-5
 */
#include <string.h>

#include <troupe/system.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "pattern/future.h"

enum kind { LOOK, MAP, FLAT, FILTER, TYPED, AND_THEN, FOLLOW, FALLBACK, PIPE };
enum when { ON_SUCCESS = 1, ON_FAILURE = 2, ON_BOTH = 3 };

typedef struct step {
    trpi_callback callback;
    enum kind kind;
    enum when when;
    union {
        trp_outcome_fn look;
        trp_outcome_map_fn map;
        trp_outcome_flat_fn flat;
        trp_outcome_test_fn test;
        const trp_type *type;
        trp_future *other; /* counted */
        struct {
            trp_ref to, sender;
        } pipe;
    } does;
    void *arg;
    trp_release_fn release;
    trp_promise *next; /* counted; NULL: not wanted */
} step;

/* ---- what a step does ------------------------------------------------------------------------ */

/* Settle the next promise with the outcome of `from`, once it is there. Takes the count of from. */
static trp_err
promise_follow(trp_future *from, trp_promise *next)
{
    trp_err err = from == NULL ? TRP_EINVAL : trp_promise_follow(next, from);

    trp_future_unref(from);
    return err;
}

static void
pipe_tell(trp_system *system, const step *s, const trp_outcome *seen)
{
    trp_ref to = s->does.pipe.to, sender = s->does.pipe.sender;
    trp_err err = seen->err == TRP_OK && seen->count == 0 ? TRP_ENOENT : seen->err;

    if (err != TRP_OK) {
        trp_status_failure failure;

        memset(&failure, 0, sizeof failure);
        failure.err = (int32_t)err;
        (void)strncpy(failure.reason,
                      seen->err == TRP_OK ? "a success without a value" : seen->reason,
                      sizeof failure.reason - 1);
        trp_system_tell_as(system, to, sender, &trp_status_failure_type, &failure, sizeof failure);
        return;
    }
    for (size_t i = 0; i < seen->count; i++) {
        trp_system_tell_as(system, to, sender, trp_msg_type(seen->values[i]),
                           trp_msg_payload(seen->values[i]), trp_msg_bytes(seen->values[i]));
    }
}

/* Call the user's function. TRP_OK: next is settled, or will be; or it gets the same outcome
 * (*ret_same). */
static trp_err
step_do(step *s, const trp_outcome *seen, bool *ret_same)
{
    trp_future *given = NULL;
    trp_system *system;
    trp_err err;

    *ret_same = false;
    switch (s->kind) {
    case LOOK:
        s->does.look(s->arg, seen);
        return TRP_OK;
    case MAP:
        return s->does.map(s->arg, seen, s->next);
    case FLAT:
        err = s->does.flat(s->arg, seen, &given);
        return err == TRP_OK ? promise_follow(given, s->next) : err;
    case FILTER:
        *ret_same = s->does.test(s->arg, seen) != 0;
        return *ret_same ? TRP_OK : TRP_ENOENT;
    case TYPED:
        *ret_same = seen->value != NULL && trp_msg_is(seen->value, s->does.type);
        return *ret_same ? TRP_OK : TRP_EDATA;
    case AND_THEN:
        s->does.look(s->arg, seen);
        *ret_same = true;
        return TRP_OK;
    case FOLLOW:
        *ret_same = true;
        return TRP_OK;
    case PIPE:
        system = trpi_future_enter(s->callback.source);
        if (system != NULL) { /* NULL: the receiver has ended, too */
            pipe_tell(system, s, seen);
            trpi_future_leave(s->callback.source);
        }
        return TRP_OK;
    case FALLBACK:
        break; /* fallback_run() */
    }
    trpi_assert(false);
    return TRP_EINTERNAL;
}

static void
step_free(step *s)
{
    if (s->release != NULL) {
        s->release(s->arg);
    }
    trp_promise_unref(s->next);
    trpi_free(s);
}

static void
step_run(trpi_callback *callback, trpi_outcome *outcome)
{
    step *s = (step *)callback;
    enum when is = outcome->seen.err == TRP_OK ? ON_SUCCESS : ON_FAILURE;
    bool same = true;
    trp_err err = TRP_OK;

    if ((s->when & is) != 0) {
        err = step_do(s, &outcome->seen, &same);
    }
    if (s->next != NULL && (err != TRP_OK || same)) {
        (void)trpi_promise_settle(s->next, err != TRP_OK ? trpi_outcome_failure(err, NULL)
                                                         : trpi_outcome_ref(outcome));
    }
    step_free(s);
}

static step *
step_new(enum kind kind, enum when when, void *arg, trp_release_fn release)
{
    step *s = trpi_alloc(sizeof *s);

    if (s != NULL) {
        s->callback.run = step_run;
        s->callback.at_once = kind == TYPED || kind == FOLLOW || kind == PIPE;
        s->kind = kind;
        s->when = when;
        s->arg = arg;
        s->release = release;
    }
    return s;
}

/* Hang s (NULL: out of memory) on future, with a new promise for its result. Takes s; on failure
 * arg is still the caller's. */
static trp_err
step_hang(trp_future *future, step *s, trp_future **ret_future)
{
    trp_err err = s == NULL ? TRP_ENOMEM : trpi_promise_like(future, &s->next);

    if (err != TRP_OK) {
        trpi_free(s);
        return err;
    }
    trpi_promise_give(s->next, ret_future);
    trpi_future_then(future, &s->callback);
    return TRP_OK;
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static trp_err
step_observe(trp_future *future, enum when when, trp_outcome_fn fn, void *arg,
             trp_release_fn release)
{
    step *s;

    if (future == NULL || fn == NULL) {
        return TRP_EINVAL;
    }
    s = step_new(LOOK, when, arg, release);
    if (s == NULL) {
        return TRP_ENOMEM;
    }
    s->does.look = fn;
    trpi_future_then(future, &s->callback);
    return TRP_OK;
}

trp_err
trp_future_on_complete(trp_future *future, trp_outcome_fn fn, void *arg, trp_release_fn release)
{
    return step_observe(future, ON_BOTH, fn, arg, release);
}

trp_err
trp_future_on_success(trp_future *future, trp_outcome_fn fn, void *arg, trp_release_fn release)
{
    return step_observe(future, ON_SUCCESS, fn, arg, release);
}

trp_err
trp_future_on_failure(trp_future *future, trp_outcome_fn fn, void *arg, trp_release_fn release)
{
    return step_observe(future, ON_FAILURE, fn, arg, release);
}

trp_err
trp_future_pipe(trp_future *future, trp_ref to, trp_ref sender)
{
    step *s;

    if (future == NULL) {
        return TRP_EINVAL;
    }
    s = step_new(PIPE, ON_BOTH, NULL, NULL);
    if (s == NULL) {
        return TRP_ENOMEM;
    }
    s->does.pipe.to = to;
    s->does.pipe.sender = sender;
    trpi_future_then(future, &s->callback);
    return TRP_OK;
}

trp_err
trp_promise_follow(trp_promise *promise, trp_future *future)
{
    step *s;

    if (promise == NULL || future == NULL || future == trp_promise_future(promise)) {
        return TRP_EINVAL;
    }
    s = step_new(FOLLOW, ON_BOTH, NULL, NULL);
    if (s == NULL) {
        return TRP_ENOMEM;
    }
    s->next = trp_promise_ref(promise);
    trpi_future_then(future, &s->callback);
    return TRP_OK;
}

/* ---- one future made of another -------------------------------------------------------------- */

static trp_err
step_map(trp_future *future, enum when when, trp_outcome_map_fn fn, void *arg,
         trp_release_fn release, trp_future **ret_future)
{
    step *s;

    if (future == NULL || fn == NULL || ret_future == NULL) {
        return TRP_EINVAL;
    }
    s = step_new(MAP, when, arg, release);
    if (s != NULL) {
        s->does.map = fn;
    }
    return step_hang(future, s, ret_future);
}

trp_err
trp_future_map(trp_future *future, trp_outcome_map_fn fn, void *arg, trp_release_fn release,
               trp_future **ret_future)
{
    return step_map(future, ON_SUCCESS, fn, arg, release, ret_future);
}

trp_err
trp_future_recover(trp_future *future, trp_outcome_map_fn fn, void *arg, trp_release_fn release,
                   trp_future **ret_future)
{
    return step_map(future, ON_FAILURE, fn, arg, release, ret_future);
}

static trp_err
step_flat(trp_future *future, enum when when, trp_outcome_flat_fn fn, void *arg,
          trp_release_fn release, trp_future **ret_future)
{
    step *s;

    if (future == NULL || fn == NULL || ret_future == NULL) {
        return TRP_EINVAL;
    }
    s = step_new(FLAT, when, arg, release);
    if (s != NULL) {
        s->does.flat = fn;
    }
    return step_hang(future, s, ret_future);
}

trp_err
trp_future_flat_map(trp_future *future, trp_outcome_flat_fn fn, void *arg, trp_release_fn release,
                    trp_future **ret_future)
{
    return step_flat(future, ON_SUCCESS, fn, arg, release, ret_future);
}

trp_err
trp_future_recover_with(trp_future *future, trp_outcome_flat_fn fn, void *arg,
                        trp_release_fn release, trp_future **ret_future)
{
    return step_flat(future, ON_FAILURE, fn, arg, release, ret_future);
}

trp_err
trp_future_filter(trp_future *future, trp_outcome_test_fn test, void *arg, trp_release_fn release,
                  trp_future **ret_future)
{
    step *s;

    if (future == NULL || test == NULL || ret_future == NULL) {
        return TRP_EINVAL;
    }
    s = step_new(FILTER, ON_SUCCESS, arg, release);
    if (s != NULL) {
        s->does.test = test;
    }
    return step_hang(future, s, ret_future);
}

trp_err
trp_future_map_to(trp_future *future, const trp_type *type, trp_future **ret_future)
{
    step *s;

    if (future == NULL || type == NULL || ret_future == NULL) {
        return TRP_EINVAL;
    }
    s = step_new(TYPED, ON_SUCCESS, NULL, NULL);
    if (s != NULL) {
        s->does.type = type;
    }
    return step_hang(future, s, ret_future);
}

trp_err
trp_future_and_then(trp_future *future, trp_outcome_fn fn, void *arg, trp_release_fn release,
                    trp_future **ret_future)
{
    step *s;

    if (future == NULL || fn == NULL || ret_future == NULL) {
        return TRP_EINVAL;
    }
    s = step_new(AND_THEN, ON_BOTH, arg, release);
    if (s != NULL) {
        s->does.look = fn;
    }
    return step_hang(future, s, ret_future);
}

/* ---- fallback: two outcomes meet ------------------------------------------------------------- */

/* The other future has its outcome, too: take a success, else keep the first failure (arg). */
static void
fallback_end(trpi_callback *callback, trpi_outcome *outcome)
{
    step *s = (step *)callback;
    trpi_outcome *first = s->arg;

    (void)trpi_promise_settle(s->next,
                              trpi_outcome_ref(outcome->seen.err == TRP_OK ? outcome : first));
    trpi_outcome_unref(first);
    step_free(s);
}

static void
fallback_run(trpi_callback *callback, trpi_outcome *outcome)
{
    step *s = (step *)callback;
    trp_future *other = s->does.other;

    if (outcome->seen.err == TRP_OK) {
        (void)trpi_promise_settle(s->next, trpi_outcome_ref(outcome));
        step_free(s);
    } else {
        s->arg = trpi_outcome_ref(outcome);
        s->callback.run = fallback_end;
        trpi_future_then(other, &s->callback);
    }
    trp_future_unref(other);
}

trp_err
trp_future_fallback_to(trp_future *future, trp_future *other, trp_future **ret_future)
{
    step *s;
    trp_err err;

    if (future == NULL || other == NULL || ret_future == NULL) {
        return TRP_EINVAL;
    }
    s = step_new(FALLBACK, ON_BOTH, NULL, NULL);
    if (s == NULL) {
        return TRP_ENOMEM;
    }
    s->callback.run = fallback_run;
    s->callback.at_once = true;
    s->does.other = trp_future_ref(other);
    err = step_hang(future, s, ret_future);
    if (err != TRP_OK) {
        trp_future_unref(other);
    }
    return err;
}

/* ---- futures from values, timers and calls --------------------------------------------------- */

trp_err
trp_future_succeeded(trp_system *system, const trp_type *type, const void *payload, size_t bytes,
                     trp_future **ret_future)
{
    trp_promise *promise;
    trp_err err;

    if (ret_future == NULL) {
        return TRP_EINVAL;
    }
    err = trp_promise_new(system, NULL, &promise);
    if (err != TRP_OK) {
        return err;
    }
    err = trp_promise_succeed(promise, type, payload, bytes);
    if (err == TRP_OK) {
        trpi_promise_give(promise, ret_future);
    }
    trp_promise_unref(promise);
    return err;
}

trp_err
trp_future_failed(trp_system *system, trp_err why, const char *reason, trp_future **ret_future)
{
    trp_promise *promise;
    trp_err err;

    if (ret_future == NULL || why == TRP_OK) {
        return TRP_EINVAL;
    }
    err = trp_promise_new(system, NULL, &promise);
    if (err != TRP_OK) {
        return err;
    }
    (void)trp_promise_fail(promise, why, reason); /* it is new, and not shared */
    trpi_promise_give(promise, ret_future);
    trp_promise_unref(promise);
    return TRP_OK;
}

trp_err
trp_future_run(trp_system *system, const char *dispatcher, trp_outcome_map_fn fn, void *arg,
               trp_release_fn release, trp_future **ret_future)
{
    trp_promise *begin;
    trp_err err = fn == NULL ? TRP_EINVAL : trp_promise_new(system, dispatcher, &begin);

    if (err != TRP_OK) {
        return err;
    }
    err = trp_future_map(trp_promise_future(begin), fn, arg, release, ret_future);
    if (err == TRP_OK) {
        (void)trpi_promise_settle(begin, trpi_outcome_joined(NULL, 0));
    }
    trp_promise_unref(begin);
    return err;
}

trp_err
trp_future_after(trp_system *system, uint64_t delay_ms, trp_outcome_map_fn fn, void *arg,
                 trp_release_fn release, trp_future **ret_future)
{
    trp_promise *begin;
    trp_err err = fn == NULL ? TRP_EINVAL : trp_promise_new(system, NULL, &begin);

    if (err != TRP_OK) {
        return err;
    }
    err = trpi_promise_alarm(begin, delay_ms, TRP_OK, NULL);
    if (err == TRP_OK) { /* on failure the alarm rings without effect */
        err = trp_future_map(trp_promise_future(begin), fn, arg, release, ret_future);
    }
    trp_promise_unref(begin);
    return err;
}

/* ---- ask: a service waits for the reply ------------------------------------------------------ */

static bool
asked_deliver(void *arg, trp_ctx *ctx, trp_ref self, const trp_msg *msg)
{
    trp_msg *copy = NULL;

    (void)ctx;
    (void)self;
    if (trp_msg_is(msg, &trp_status_failure_type) &&
        trp_msg_bytes(msg) == sizeof(trp_status_failure)) {
        trp_status_failure failure;

        memcpy(&failure, trp_msg_payload(msg), sizeof failure);
        failure.reason[sizeof failure.reason - 1] = '\0';
        (void)trp_promise_fail(arg, failure.err == TRP_OK ? TRP_EFAILED : (trp_err)failure.err,
                               failure.reason);
    } else if (trp_msg_dup(msg, &copy) != TRP_OK || trp_promise_succeed_msg(arg, copy) != TRP_OK) {
        trpi_msg_drop(copy);
        (void)trp_promise_fail(arg, TRP_ENOMEM, NULL);
    }
    return false;
}

static bool
asked_alarm(void *arg, trp_ctx *ctx, trp_ref self, uint32_t *ret_again_ms)
{
    (void)ctx;
    (void)self;
    (void)ret_again_ms;
    (void)trp_promise_fail(arg, TRP_ETIMEDOUT, "no reply in time");
    return false;
}

static bool
asked_dead(void *arg, trp_ctx *ctx, trp_ref asked, trp_err err)
{
    (void)ctx;
    (void)asked;
    (void)trp_promise_fail(arg, err, NULL);
    return false;
}

static void
asked_release(void *arg)
{
    (void)trp_promise_fail(arg, TRP_ECLOSED, "the system ended before the reply came");
    trp_promise_unref(arg);
}

static const trpi_service_ops asked_ops = { "ask", asked_deliver, asked_alarm, asked_release,
                                            asked_dead };

trp_err
trp_future_ask(trp_system *system, trp_ref to, const trp_type *type, const void *payload,
               size_t bytes, uint32_t timeout_ms, trp_future **ret_future)
{
    trp_promise *promise;
    trp_ref ref;
    trp_err err;

    if (type == NULL || timeout_ms == 0 || ret_future == NULL) {
        return TRP_EINVAL;
    }
    err = trp_promise_new(system, NULL, &promise);
    if (err != TRP_OK) {
        return err;
    }
    if (trp_ref_is_none(to)) {
        (void)trp_promise_fail(promise, TRP_ENOENT, NULL);
    } else {
        err =
            trpi_system_service_new(system, &asked_ops, trp_promise_ref(promise), timeout_ms, &ref);
        if (err == TRP_OK) {
            trp_system_tell_as(system, to, ref, type, payload, bytes);
        } else {
            trp_promise_unref(promise); /* the service's */
        }
    }
    if (err == TRP_OK) {
        trpi_promise_give(promise, ret_future);
    }
    trp_promise_unref(promise);
    return err;
}

/* testkit_probe.c - probes: actors with a queue that a test thread empties.
 *
 * Shape.   sender -> probe's actor: pilot, ignore -> copy -> queue -> trpi_probe_take() on the
 *          test's thread. Watching is the actor's: the test orders it and waits until it is done.
 * Must hold.
 *   testkit-probe-B1  The pilot runs before the message is queued (TEST-9), and without the lock of
 *       `cond`: it may tell any actor, or set another pilot.
 *   testkit-probe-B2  Orders of the test (watch, unwatch) are types of our own: no user's message
 *       is taken for one.
 * Tests.   tests/unit/pattern/testkit_test.c
 * Sources. TEST-3, -5, -8, -9, -16.
 */
#include "pattern/testkit.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"

typedef struct probe_state {
    trp_probe *probe;
} probe_state;

typedef struct probe_args {
    uint64_t probe; /* a pointer: the message never leaves the process */
} probe_args;

static trp_type args_type = { "testkit.args", sizeof(probe_args), 1, TRP_TYPE_LOCAL, NULL, 0, 0 };
static trp_type watch_type = { "testkit.watch", sizeof(trp_ref), 2, TRP_TYPE_LOCAL, NULL, 0, 0 };
static trp_type unwatch_type = {
    "testkit.unwatch", sizeof(trp_ref), 3, TRP_TYPE_LOCAL, NULL, 0, 0
};
static trp_type *const types[] = { &args_type, &watch_type, &unwatch_type };
static const trp_protocol protocol = { "testkit", types, 3 };

/* ---- the actor ------------------------------------------------------------------------------- */

static trp_err
probe_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    probe_state *self = state;

    (void)ctx;
    self->probe = (trp_probe *)(uintptr_t)((const probe_args *)trp_msg_payload(args))->probe;
    return TRP_OK;
}

/* testkit-probe-B2 */
static void
probe_order(trp_ctx *ctx, trp_probe *probe, const trp_msg *msg)
{
    trp_ref ref = *(const trp_ref *)trp_msg_payload(msg);
    trp_err err = TRP_OK;

    if (trp_msg_is(msg, &watch_type)) {
        err = trp_watch(ctx, ref);
    } else {
        trp_unwatch(ctx, ref);
    }
    pthread_mutex_lock(&probe->cond.lock);
    probe->orders++;
    probe->order_err = err;
    trpi_cond_broadcast(&probe->cond);
    pthread_mutex_unlock(&probe->cond.lock);
}

/* testkit-probe-B1 */
static void
probe_fly(trp_ctx *ctx, trp_probe *probe, const trp_msg *msg)
{
    trp_pilot pilot, next;

    pthread_mutex_lock(&probe->cond.lock);
    pilot = probe->pilot;
    pthread_mutex_unlock(&probe->cond.lock);
    if (pilot.fn == NULL) {
        return;
    }
    next = pilot.fn(ctx, pilot.arg, msg);
    if (!next.keep) {
        pthread_mutex_lock(&probe->cond.lock);
        probe->pilot = next;
        pthread_mutex_unlock(&probe->cond.lock);
    }
}

static trp_err
probe_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_probe *probe = ((probe_state *)state)->probe;
    trp_match_fn ignore;
    void *ignore_arg;
    trp_msg *copy = NULL;

    if (trp_msg_is(msg, &watch_type) || trp_msg_is(msg, &unwatch_type)) {
        probe_order(ctx, probe, msg);
        return TRP_OK;
    }
    probe_fly(ctx, probe, msg);
    pthread_mutex_lock(&probe->cond.lock);
    ignore = probe->ignore;
    ignore_arg = probe->ignore_arg;
    pthread_mutex_unlock(&probe->cond.lock);
    if (ignore != NULL && ignore(ignore_arg, msg) != 0) {
        return TRP_OK;
    }
    if (trp_msg_dup(msg, &copy) != TRP_OK) {
        trp_log(ctx, TRP_LOG_ERROR, "out of memory: a message of a probe is lost");
        return TRP_OK;
    }
    copy->priv_next = NULL;
    pthread_mutex_lock(&probe->cond.lock);
    if (probe->last != NULL) {
        probe->last->priv_next = copy;
    } else {
        probe->first = copy;
    }
    probe->last = copy;
    trpi_cond_broadcast(&probe->cond);
    pthread_mutex_unlock(&probe->cond.lock);
    return TRP_OK;
}

static const trp_behaviour probe_behaviour = { .size = sizeof(trp_behaviour),
                                               .name = "test probe",
                                               .version = 1,
                                               .state_bytes = sizeof(probe_state),
                                               .receive = probe_receive,
                                               .pre_start = probe_start };

/* ---- birth and end --------------------------------------------------------------------------- */

trp_err
trp_probe_open(trp_testkit *kit, trp_probe **ret_probe)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_probe *probe = trpi_alloc(sizeof *probe);
    probe_args args = { (uint64_t)(uintptr_t)probe };
    char name[32];
    trp_err err;

    if (probe == NULL) {
        return TRP_ENOMEM;
    }
    trpi_cond_init(&probe->cond);
    probe->kit = kit;
    (void)snprintf(name, sizeof name, "testProbe-%u", ++kit->probes_made);
    options.name = name;
    options.args_type = &args_type;
    options.args = &args;
    options.args_bytes = sizeof(args);
    err = trp_protocol_register(&protocol);
    if (err == TRP_OK) {
        do { /* two kits may share a system */
            err = trpi_system_spawn_internal(kit->system, &probe_behaviour, &options, &probe->ref);
            (void)snprintf(name, sizeof name, "testProbe-%u", ++kit->probes_made);
        } while (err == TRP_EEXIST);
    }
    if (err != TRP_OK) {
        trpi_probe_free(probe);
        return err;
    }
    probe->next = kit->probes;
    kit->probes = probe;
    *ret_probe = probe;
    return TRP_OK;
}

void
trpi_probe_forget(trp_probe *probe)
{
    for (uint32_t i = 0; i < probe->received_count; i++) {
        trpi_msg_drop(probe->received[i]);
    }
    probe->received_count = 0;
}

void
trpi_probe_free(trp_probe *probe)
{
    trpi_probe_forget(probe);
    while (probe->first != NULL) {
        trp_msg *msg = probe->first;

        probe->first = msg->priv_next;
        trpi_msg_drop(msg);
    }
    trpi_free(probe->received);
    trpi_cond_fini(&probe->cond);
    trpi_free(probe);
}

void
trp_probe_close(trp_probe *probe)
{
    trp_testkit *kit;
    trp_probe **link;
    trp_err err;

    if (probe == NULL) {
        return;
    }
    kit = probe->kit;
    err = trp_system_graceful_stop(kit->system, probe->ref, trp_testkit_timeout_ms(kit));
    for (link = &kit->probes; *link != probe; link = &(*link)->next) {
        trpi_assert(*link != NULL);
    }
    *link = probe->next;
    if (kit->main == probe) {
        kit->main = NULL;
    }
    if (err == TRP_OK || err == TRP_ENOENT || err == TRP_ECLOSED) {
        trpi_probe_free(probe);
    } /* else its actor still uses it: leaked */
}

trp_ref
trp_probe_ref(const trp_probe *probe)
{
    return probe->ref;
}

/* ---- telling --------------------------------------------------------------------------------- */

void
trp_probe_tell(trp_probe *probe, trp_ref to, const trp_type *type, const void *payload,
               size_t bytes)
{
    trp_system_tell_as(probe->kit->system, to, probe->ref, type, payload, bytes);
}

const trp_msg *
trp_probe_last(const trp_probe *probe)
{
    return probe->received_count == 0 ? NULL : probe->received[probe->received_count - 1];
}

trp_ref
trp_probe_sender(const trp_probe *probe)
{
    const trp_msg *last = trp_probe_last(probe);
    trp_ref none = TRP_REF_NONE;

    return last == NULL ? none : trpi_msg_sender_get(last);
}

void
trp_probe_reply(trp_probe *probe, const trp_type *type, const void *payload, size_t bytes)
{
    trp_probe_tell(probe, trp_probe_sender(probe), type, payload, bytes);
}

trp_err
trp_probe_forward(trp_probe *probe, trp_ref to)
{
    const trp_msg *last = trp_probe_last(probe);

    if (last == NULL) {
        return TRP_ESTATE;
    }
    trp_system_tell_as(probe->kit->system, to, trp_probe_sender(probe), trp_msg_type(last),
                       trp_msg_payload(last), trp_msg_bytes(last));
    return TRP_OK;
}

/* ---- watching -------------------------------------------------------------------------------- */

typedef struct ordered {
    const trp_probe *probe;
    uint32_t orders;
} ordered;

static bool
order_is_done(void *arg)
{
    const ordered *order = arg;

    return order->probe->orders != order->orders;
}

static trp_err
order_send(trp_probe *probe, const trp_type *type, trp_ref ref)
{
    uint64_t deadline =
        trpi_testkit_now_ns(probe->kit) + trpi_testkit_ns(probe->kit, TRP_TEST_TIMEOUT_MS_DEFAULT);
    ordered given = { probe, 0 };
    bool done;
    trp_err err;

    if (trp_ref_is_none(ref)) {
        return TRP_EINVAL;
    }
    pthread_mutex_lock(&probe->cond.lock);
    given.orders = probe->orders;
    pthread_mutex_unlock(&probe->cond.lock);
    trp_system_tell(probe->kit->system, probe->ref, type, &ref, sizeof ref);
    pthread_mutex_lock(&probe->cond.lock);
    done = trpi_cond_wait(&probe->cond, trpi_testkit_sched(probe->kit), order_is_done, &given,
                          deadline);
    err = done ? probe->order_err : TRP_ETIMEDOUT;
    pthread_mutex_unlock(&probe->cond.lock);
    return err;
}

trp_err
trp_probe_watch(trp_probe *probe, trp_ref ref)
{
    return order_send(probe, &watch_type, ref);
}

trp_err
trp_probe_unwatch(trp_probe *probe, trp_ref ref)
{
    return order_send(probe, &unwatch_type, ref);
}

/* ---- ignoring and piloting ------------------------------------------------------------------- */

void
trp_probe_ignore(trp_probe *probe, trp_match_fn fn, void *arg)
{
    pthread_mutex_lock(&probe->cond.lock);
    probe->ignore = fn;
    probe->ignore_arg = arg;
    pthread_mutex_unlock(&probe->cond.lock);
}

void
trp_probe_pilot(trp_probe *probe, trp_pilot pilot)
{
    pthread_mutex_lock(&probe->cond.lock);
    if (!pilot.keep) {
        probe->pilot = pilot;
    }
    pthread_mutex_unlock(&probe->cond.lock);
}

/* ---- taking ---------------------------------------------------------------------------------- */

static bool
has_message(void *arg)
{
    const trp_probe *probe = arg;

    return probe->first != NULL;
}

const trp_msg *
trpi_probe_take(trp_probe *probe, uint64_t deadline_ns, bool fresh)
{
    trp_msg *msg = NULL;

    if (fresh) {
        trpi_probe_forget(probe);
    }
    if (!TRPI_ARRAY_HAS_ROOM(probe, received)) {
        return NULL; /* no memory for the test itself: as if none had come */
    }
    pthread_mutex_lock(&probe->cond.lock);
    if (has_message(probe) || trpi_cond_wait(&probe->cond, trpi_testkit_sched(probe->kit),
                                             has_message, probe, deadline_ns)) {
        msg = probe->first;
        probe->first = msg->priv_next;
        if (probe->first == NULL) {
            probe->last = NULL;
        }
        msg->priv_next = NULL;
        probe->received[probe->received_count++] = msg;
    }
    pthread_mutex_unlock(&probe->cond.lock);
    return msg;
}

void
trpi_probe_give_back(trp_probe *probe)
{
    trp_msg *msg = probe->received[--probe->received_count];

    pthread_mutex_lock(&probe->cond.lock);
    msg->priv_next = probe->first;
    probe->first = msg;
    if (probe->last == NULL) {
        probe->last = msg;
    }
    pthread_mutex_unlock(&probe->cond.lock);
}

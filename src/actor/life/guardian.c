/* guardian.c - the top of the tree, and how a system ends.
 *
 * Why.     Every actor but the root has a supervisor. The guardians are ordinary actors that
 *          discard messages, so that the top of the tree needs no rules of its own.
 * Shape.   / (stops what fails; decision 19)
 *            user          trp_system_spawn(); strategy by option
 *            system        rooms above; ends after user, so that logging and remoting outlive it
 *            deadLetters   each message to it is a dead letter
 *            temp          empty; promises are named below it
 *            remote        actors that other nodes deployed here (deployed.c)
 *          Order of the end: user and remote, system, the rest, root (SYS-7). When user or system
 *          ends for any reason, the system ends.
 * Must hold.
 *   guardian-U1  A guardian's ref is known before it runs.
 *   guardian-U2  The root stops when user, remote and system have ended. (root_go_on)
 *   guardian-U3  No guardian needs a thread that the program's actors may block: a stop reaches
 *       all actors with a free thread at once, and the others as soon as theirs is free.
 * Tests.   tests/unit/actor/guardian_test.c
 * Sources. SYS-5..9, SYS-41.
 */
#include "actor/life/ended.h"
#include "actor/life/life.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "base/sized.h"

static const trp_ref nobody = TRP_REF_NONE;

static trp_err
message_discard(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_unhandled_msg(ctx, msg);
    return TRP_OK;
}

static trp_err
dead_letters_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trpi_dead(ctx, ctx->self, msg, TRP_DEAD_NO_SENDER);
    return TRP_OK;
}

/* Decision 19: a guardian that fails is stopped; a failure that no restart repairs ends the root
 * itself, and so the system. */
static trp_directive
root_decider(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    (void)ctx;
    (void)state;
    return failure->err == TRP_EINTERNAL ? TRP_ESCALATE : TRP_STOP;
}

static const trp_strategy stopping = {
    sizeof(trp_strategy), 0, 0, trp_stopping_decider, 0, 0, NULL
};
static const trp_strategy root_strategy = { sizeof(trp_strategy), 0, 0, root_decider, 0, 0, NULL };

#define GUARDIAN(name_, receive_, strategy_)                                                       \
    {                                                                                              \
        .size = sizeof(trp_behaviour), .name = name_, .version = 1, .receive = receive_,           \
        .strategy = strategy_                                                                      \
    }
static const trp_behaviour root_behaviour =
    GUARDIAN("root guardian", message_discard, &root_strategy);
static const trp_behaviour user_behaviour = GUARDIAN("user guardian", message_discard, NULL);
static const trp_behaviour system_behaviour = GUARDIAN("system guardian", message_discard, NULL);
static const trp_behaviour dead_letters_behaviour =
    GUARDIAN("dead letters", dead_letters_receive, NULL);
static const trp_behaviour temp_behaviour = GUARDIAN("temp guardian", message_discard, NULL);

bool
trpi_guardian_is_root(const trpi_cell *cell)
{
    return cell->behaviour == &root_behaviour;
}

trpi_guardian *
trpi_guardian_of(trp_system *system, const trpi_cell *cell)
{
    uint32_t slot = trpi_cell_slot(cell);

    if (slot == system->life->user.ref.slot) {
        return &system->life->user;
    }
    return slot == system->life->system.ref.slot ? &system->life->system : NULL;
}

/* ---- start ----------------------------------------------------------------------------------- */

enum { ROOT, USER, SYSTEM, DEAD_LETTERS, TEMP, REMOTE, GUARDIANS };

static trp_err
guardian_acquire(trp_ctx *ctx, trpi_cell *parent, const char *name, const trp_behaviour *behaviour,
                 const char *dispatcher, trpi_cell **ret_cell, trp_ref *ret_ref)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trpi_cell *cell;
    trp_err err = trpi_slot_acquire(ctx, &cell);

    if (err != TRP_OK) {
        return err;
    }
    cell->behaviour = behaviour;
    options.name = name;
    err = trpi_spawn_dispatcher(ctx, cell, NULL, dispatcher);
    if (err == TRP_OK && parent != NULL) {
        err = trpi_life_prepare(ctx, parent, cell, &options);
    } else if (err == TRP_OK) {
        cell->depth = 0;
    }
    if (err != TRP_OK) {
        trpi_slot_abandon(ctx, cell);
        return err;
    }
    *ret_ref = trpi_slot_ref(cell);
    *ret_cell = cell;
    return TRP_OK;
}

/* The behaviour of the user guardian with the strategy of the options, kept in the system. */
static const trp_behaviour *
user_guardian(trp_system *system)
{
    trpi_life *life = system->life;

    life->user_behaviour = user_behaviour;
    if (system->options.guardian_strategy != NULL) {
        bool fits = TRPI_SIZED_COPY(system->options.guardian_strategy, &life->user_strategy, log);

        trpi_assert(fits); /* trpi_options_are_valid() */
        life->user_behaviour.strategy = &life->user_strategy;
    } else if (system->options.guardian_stops != 0) {
        life->user_behaviour.strategy = &stopping;
    }
    return &life->user_behaviour;
}

trp_err
trpi_guardians_new(trp_system *system)
{
    static const char own[] = "troupe.internal"; /* guardian-U3 */
    trpi_life *life = system->life;
    const struct {
        const char *name;
        const trp_behaviour *behaviour;
        const char *dispatcher;
        trp_ref *ref;
    } rows[GUARDIANS] = {
        { NULL, &root_behaviour, "system", &system->top.root },
        { "user", user_guardian(system), own, &life->user.ref },
        { "system", &system_behaviour, "system", &life->system.ref },
        { "deadLetters", &dead_letters_behaviour, own, &life->dead_letters },
        { "temp", &temp_behaviour, own, &system->top.temp },
        { "remote", system->life_hooks->remote_guardian, own, &life->remote },
    };
    trpi_cell *cells[GUARDIANS] = { NULL };
    trp_ctx *ctx = trpi_enter(system);
    trp_err err = TRP_OK;

    for (int i = 0; i < GUARDIANS && err == TRP_OK; i++) {
        err = guardian_acquire(ctx, cells[ROOT], rows[i].name, rows[i].behaviour,
                               rows[i].dispatcher, &cells[i], rows[i].ref); /* guardian-U1 */
    }
    system->top.user = life->user.ref;
    for (int i = 0; i < GUARDIANS && cells[i] != NULL; i++) {
        if (err == TRP_OK) {
            trpi_slot_publish(ctx, cells[i], TRPI_KIND_ACTOR);
        } else {
            trpi_slot_abandon(ctx, cells[i]); /* their names are freed with the registry */
        }
    }
    trpi_leave(ctx);
    return err;
}

/* ---- the system's fields --------------------------------------------------------------------- */

static void
life_free(trp_system *system)
{
    trpi_life *life = system->life;

    if (life == NULL) {
        return;
    }
    trpi_registry_free(system->registry);
    system->registry = NULL;
    trpi_loggers_free(system);
    trpi_event_stream_free(system->events);
    system->events = NULL;
    trpi_paths_free(system);
    trpi_remote_watches_free(life->watches);
    trpi_mutex_destroy(&life->user.lock);
    trpi_mutex_destroy(&life->system.lock);
    trpi_cond_fini(&life->cond);
    trpi_mutex_destroy(&life->restarts_lock);
    trpi_free(life->restarts);
    trpi_free(life);
    system->life = NULL;
}

trp_err
trpi_life_system_new(trp_system *system)
{
    trpi_life *life = trpi_alloc(sizeof *life);
    trp_err err;

    if (life == NULL) {
        return TRP_ENOMEM;
    }
    system->life = life;
    pthread_mutex_init(&life->user.lock, NULL);
    pthread_mutex_init(&life->system.lock, NULL);
    trpi_cond_init(&life->cond);
    pthread_mutex_init(&life->restarts_lock, NULL);
    err = trpi_registry_new(trpi_world_random(system->world), &system->registry);
    if (err == TRP_OK) {
        err = trpi_event_stream_new(&system->events);
    }
    if (err == TRP_OK) {
        err = trpi_paths_new(system);
    }
    if (err == TRP_OK) {
        err = trpi_remote_watches_new(&life->watches);
    }
    if (err == TRP_OK) {
        err = trpi_guardians_new(system);
    }
    if (err != TRP_OK) {
        life_free(system);
    }
    return err;
}

void
trpi_life_system_free(trp_system *system)
{
    life_free(system);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* guardian-U2. runner of the root. */
static void
root_go_on(trp_ctx *ctx, trpi_cell *root)
{
    trpi_life *life = ctx->system->life;
    trpi_cell *next;

    if (life->user_ended && life->remote_ended && life->system_ended) {
        trpi_life_stop(ctx, root);
        return;
    }
    next = trpi_child_find(ctx, root, life->remote);
    if (next != NULL) {
        trpi_child_stop(ctx, root, next);
    }
    next = trpi_child_find(
        ctx, root, life->user_ended && life->remote_ended ? life->system.ref : life->user.ref);
    if (next != NULL) {
        trpi_child_stop(ctx, root, next);
    }
}

void
trpi_root_child_ended(trp_ctx *ctx, trpi_cell *root, trp_ref child)
{
    trpi_life *life = ctx->system->life;

    if (trp_ref_equal(child, life->user.ref)) {
        life->user_ended = true;
    } else if (trp_ref_equal(child, life->remote)) {
        life->remote_ended = true;
    } else if (trp_ref_equal(child, life->system.ref)) {
        life->system_ended = true;
    } else {
        return;
    }
    atomic_store_explicit(&life->shutdown, true, memory_order_relaxed);
    root_go_on(ctx, root);
}

void
trpi_root_stop(trp_ctx *ctx, trpi_cell *root)
{
    atomic_store_explicit(&ctx->system->life->shutdown, true, memory_order_relaxed);
    root_go_on(ctx, root);
}

void
trpi_root_ended(trp_system *system)
{
    trpi_life *life = system->life;

    trpi_schedules_close(system);
    pthread_mutex_lock(&life->cond.lock);
    atomic_store_explicit(&life->terminated, true, memory_order_release);
    trpi_cond_broadcast(&life->cond);
    pthread_mutex_unlock(&life->cond.lock);
}

trp_ref
trp_system_dead_letters(const trp_system *system)
{
    return trpi_system_is_valid(system) ? system->life->dead_letters : nobody;
}

bool
trpi_system_is_ending(const trp_system *system)
{
    return atomic_load_explicit(&system->life->shutdown, memory_order_relaxed);
}

void
trp_system_shutdown(trp_system *system)
{
    trp_ctx *ctx;

    /* relaxed: only one of several callers needs to begin the shutdown */
    if (!trpi_system_is_valid(system) ||
        atomic_exchange_explicit(&system->life->shutdown, true, memory_order_relaxed)) {
        return;
    }
    (void)trpi_guardian_close(&system->life->user);
    ctx = trpi_enter(system);
    trpi_sys_to(ctx, system->top.root, TRPI_SYS_STOP, 0, nobody, 0, NULL);
    trpi_leave(ctx);
}

int
trp_system_is_terminated(const trp_system *system)
{
    return !trpi_system_is_valid(system) || trpi_system_has_ended(system);
}

static bool
is_terminated(void *arg)
{
    const trpi_life *life = arg;

    return atomic_load_explicit(&life->terminated, memory_order_acquire);
}

trp_err
trp_system_await(trp_system *system, uint32_t timeout_ms)
{
    uint64_t deadline_ns = UINT64_MAX;
    trpi_life *life;
    bool ended;

    if (!trpi_system_is_valid(system)) {
        return TRP_EINVAL;
    }
    if (trpi_in_behaviour(system)) {
        return TRP_ESTATE;
    }
    life = system->life;
    if (timeout_ms != 0) {
        deadline_ns = trpi_world_mono_ns(system->world) + (uint64_t)timeout_ms * 1000000u;
    }
    pthread_mutex_lock(&life->cond.lock);
    ended = trpi_cond_wait(&life->cond, system->sched, is_terminated, life, deadline_ns);
    pthread_mutex_unlock(&life->cond.lock);
    return ended ? TRP_OK : TRP_ETIMEDOUT;
}

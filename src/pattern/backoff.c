/* backoff.c - a supervisor that starts its child again after a pause, which grows.
 *
 * Shape.   child fails -> STOP -> trp_terminated -> pause (min * 2^n, jitter) -> a new child.
 * Must hold.
 *   backoff-B1  There is one child at most: the next one starts when the end of the last was told.
 *   backoff-B2  The recipe of the child is the supervisor's argument, so that a restart of the
 *       supervisor has it, too.
 * Limits.  A pause is at most max_ms and its jitter; arguments of ARGS_BYTES_MAX bytes.
 * Tests.   tests/unit/pattern/backoff_test.c
 * Sources. Akka, BackoffSupervisor.
 */
#include <troupe/backoff.h>

#include <stdio.h>
#include <string.h>

#include <troupe/system.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/payload.h"
#include "base/sized.h"

#define ARGS_BYTES_MAX 1048576u
#define TIMER_KEY 1u

/* The argument of the supervisor (backoff-B2); texts and arguments of the child follow. */
typedef struct recipe {
    const trp_behaviour *behaviour;
    trp_spawn_options child; /* its pointers are set when it is read */
    trp_backoff_options options;
    uint32_t name_at, dispatcher_at, mailbox_at, args_at; /* 0: none */
} recipe;

typedef struct supervisor {
    const recipe *recipe; /* of the arguments */
    trp_ref child;        /* TRP_REF_NONE: it is away */
    uint64_t started_ms;
    uint32_t attempts; /* in a row */
    bool has_failed;   /* the child that ends */
} supervisor;

static trp_type start_type = { "backoff.start", 0, 1, TRP_TYPE_LOCAL, NULL, 0, 0 };
static trp_type *const types[] = { &start_type };
static const trp_protocol protocol = { "backoff", types, 1, 0 };

/* ---- starting the child ---------------------------------------------------------------------- */

static const char *
text_at(const recipe *own, uint32_t at)
{
    return at == 0 ? NULL : (const char *)own + at;
}

static trp_err
child_start(trp_ctx *ctx, supervisor *own)
{
    const recipe *from = own->recipe;
    trp_spawn_options options = from->child;

    options.name = text_at(from, from->name_at);
    options.dispatcher = text_at(from, from->dispatcher_at);
    options.mailbox = text_at(from, from->mailbox_at);
    options.args = text_at(from, from->args_at);
    trp_err err = trp_spawn(ctx, from->behaviour, &options, &own->child);
    if (err == TRP_OK) {
        own->has_failed = false;
        own->started_ms = trp_now_ms(ctx);
        err = trp_watch(ctx, own->child);
    }
    return err;
}

static uint32_t
or_default(uint32_t given, uint32_t otherwise)
{
    return given != 0 ? given : otherwise;
}

/* Return the next pause. */
static uint32_t
pause_ms(trp_ctx *ctx, const supervisor *own)
{
    const trp_backoff_options *options = &own->recipe->options;
    uint64_t most = or_default(options->max_ms, TRP_BACKOFF_MAX_MS_DEFAULT);
    uint64_t pause = or_default(options->min_ms, TRP_BACKOFF_MIN_MS_DEFAULT);
    uint32_t jitter = options->jitter_percent == TRP_OFF
                          ? 0
                          : or_default(options->jitter_percent, TRP_BACKOFF_JITTER_DEFAULT);

    for (uint32_t i = 0; i < own->attempts && pause < most; i++) {
        pause *= 2;
    }
    pause = pause < most ? pause : most;
    uint64_t spread = pause * jitter / 100;
    uint64_t random = trpi_world_random(trpi_system_world(trp_ctx_system(ctx)));
    return (uint32_t)(pause + (spread == 0 ? 0 : random % (spread + 1)));
}

static trp_err
child_ended(trp_ctx *ctx, supervisor *own)
{
    const trp_backoff_options *options = &own->recipe->options;
    uint32_t reset_ms =
        or_default(options->reset_ms, or_default(options->max_ms, TRP_BACKOFF_MAX_MS_DEFAULT));

    own->child = (trp_ref)TRP_REF_NONE;
    if (!own->has_failed && options->on_stop == 0) {
        trp_stop(ctx, trp_self(ctx));
        return TRP_OK;
    }
    if (trp_now_ms(ctx) - own->started_ms >= reset_ms) {
        own->attempts = 0;
    }
    if (options->retries_max != 0 && own->attempts >= options->retries_max) {
        trp_log(ctx, TRP_LOG_ERROR,
                "the child has ended %u times in a row, each within %u ms of its start; its "
                "supervisor stops",
                own->attempts + 1, reset_ms);
        trp_stop(ctx, trp_self(ctx));
        return TRP_OK;
    }
    uint32_t pause = pause_ms(ctx, own);
    own->attempts++;
    trp_log(ctx, TRP_LOG_WARNING, "the child has %s; it is started again in %u ms",
            own->has_failed ? "failed" : "stopped", pause);
    return trp_timer_once(ctx, TIMER_KEY, pause, &start_type, NULL, 0);
}

/* ---- the actor ------------------------------------------------------------------------------- */

static trp_err
supervisor_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    supervisor *own = state;

    own->recipe = trp_msg_payload(args);
    return child_start(ctx, own);
}

static trp_err
supervisor_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    supervisor *own = state;
    const trp_terminated *ended = trp_msg_as(msg, &trp_terminated_type);

    if (ended != NULL && trp_ref_equal(ended->ref, own->child)) {
        return child_ended(ctx, own);
    }
    if (trp_msg_is(msg, &start_type)) {
        return child_start(ctx, own); /* backoff-B1 */
    }
    if (!trp_ref_is_none(own->child)) {
        bool is_own = trp_ref_equal(trp_sender(ctx), own->child);

        trp_forward(ctx, is_own ? trp_parent(ctx) : own->child, msg);
        return TRP_OK;
    }
    if (!trp_ref_is_none(trp_sender(ctx))) {
        trp_reply_failure(ctx, TRP_EAGAIN, "the actor has failed, and is started again soon");
    }
    trpi_dead(ctx, trp_self(ctx), msg, TRP_DEAD_STOPPED);
    return TRP_OK;
}

/* A failure is the end of the instance, the pause comes behind it. */
static trp_directive
supervisor_decide(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    supervisor *own = state;

    (void)ctx;
    (void)failure;
    own->has_failed = true;
    return TRP_STOP;
}

static const trp_strategy supervisor_strategy = { .size = sizeof(trp_strategy),
                                                  .decider = supervisor_decide };
static const trp_behaviour supervisor_behaviour = { .size = sizeof(trp_behaviour),
                                                    .name = "backoff",
                                                    .version = 1,
                                                    .state_bytes = sizeof(supervisor),
                                                    .receive = supervisor_receive,
                                                    .pre_start = supervisor_start,
                                                    .strategy = &supervisor_strategy };

/* ---- spawning -------------------------------------------------------------------------------- */

/* Append text with its NUL behind the recipe, and return where; 0: there is none. */
static uint32_t
text_put(char *block, size_t *at, const char *text)
{
    if (text == NULL) {
        return 0;
    }
    size_t bytes = strlen(text) + 1, place = *at;
    memcpy(block + place, text, bytes);
    *at = place + bytes;
    return (uint32_t)place;
}

static size_t
text_bytes(const char *text)
{
    return text == NULL ? 0 : strlen(text) + 1;
}

static bool
is_valid(const trp_behaviour *behaviour, const trp_spawn_options *child,
         const trp_backoff_options *options)
{
    uint32_t least = or_default(options->min_ms, TRP_BACKOFF_MIN_MS_DEFAULT);

    return behaviour != NULL && child->node == NULL &&
           (options->jitter_percent <= 100 || options->jitter_percent == TRP_OFF) &&
           least <= or_default(options->max_ms, TRP_BACKOFF_MAX_MS_DEFAULT) &&
           (child->args_type != NULL || child->args_bytes == 0);
}

/* Make the argument of the supervisor. Gives *ret_block (trpi_free()). */
static trp_err
recipe_make(const trp_behaviour *behaviour, const trp_spawn_options *child,
            const trp_backoff_options *options, void **ret_block, size_t *ret_bytes)
{
    size_t args_bytes = child->args_type == NULL || child->args == NULL
                            ? 0
                            : trpi_payload_bytes(child->args_type, child->args_bytes);
    size_t at = (sizeof(recipe) + 15) / 16 * 16;
    if (args_bytes > ARGS_BYTES_MAX) {
        return TRP_EMSGSIZE;
    }
    size_t bytes = at + args_bytes + text_bytes(child->name) + text_bytes(child->dispatcher) +
                   text_bytes(child->mailbox);
    char *block = trpi_alloc(bytes);
    if (block == NULL) {
        return TRP_ENOMEM;
    }
    recipe *own = (recipe *)(void *)block;
    own->behaviour = behaviour;
    own->child = *child;
    own->options = *options;
    own->options.name = NULL;
    if (args_bytes > 0) { /* first: it is aligned */
        memcpy(block + at, child->args, args_bytes);
        own->args_at = (uint32_t)at;
        own->child.args_bytes = args_bytes;
        at += args_bytes;
    }
    own->name_at = text_put(block, &at, child->name);
    own->dispatcher_at = text_put(block, &at, child->dispatcher);
    own->mailbox_at = text_put(block, &at, child->mailbox);
    *ret_block = block;
    *ret_bytes = bytes;
    return TRP_OK;
}

/* ctx NULL: below /user of system. */
static trp_err
backoff_spawn(trp_ctx *ctx, trp_system *system, const trp_behaviour *behaviour,
              const trp_spawn_options *child_options, const trp_backoff_options *options,
              trp_ref *ret_ref)
{
    trp_spawn_options child = TRP_SPAWN_OPTIONS_INIT, spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_backoff_options given = TRP_BACKOFF_OPTIONS_INIT;
    void *block = NULL;
    size_t bytes = 0;

    if (!TRPI_SIZED_COPY(child_options, &child, node) ||
        !TRPI_SIZED_COPY(options, &given, on_stop) || !is_valid(behaviour, &child, &given)) {
        return TRP_EINVAL;
    }
    trp_err err = trp_protocol_register(&protocol);
    err = err != TRP_OK ? err : recipe_make(behaviour, &child, &given, &block, &bytes);
    if (err != TRP_OK) {
        return err;
    }
    spawn.name = given.name;
    spawn.node = TRP_NODE_HERE;
    spawn.args_type = &trp_bytes_type;
    spawn.args = block;
    spawn.args_bytes = bytes;
    err = ctx != NULL ? trp_spawn(ctx, &supervisor_behaviour, &spawn, ret_ref)
                      : trp_system_spawn(system, &supervisor_behaviour, &spawn, ret_ref);
    trpi_free(block);
    return err;
}

trp_err
trp_backoff_spawn(trp_ctx *ctx, const trp_behaviour *behaviour,
                  const trp_spawn_options *child_options, const trp_backoff_options *options,
                  trp_ref *ret_ref)
{
    return ctx == NULL ? TRP_EINVAL
                       : backoff_spawn(ctx, NULL, behaviour, child_options, options, ret_ref);
}

trp_err
trp_system_backoff_spawn(trp_system *system, const trp_behaviour *behaviour,
                         const trp_spawn_options *child_options, const trp_backoff_options *options,
                         trp_ref *ret_ref)
{
    return system == NULL ? TRP_EINVAL
                          : backoff_spawn(NULL, system, behaviour, child_options, options, ret_ref);
}

/* turmoil_test.c - everything at once: spawn, watch, stop, kill, fail, ask, select, stash and
 * timers race with one another on two workers. Laws: the system ends, nobody is left, each
 * Terminated is shown once per watch. For the sanitizers more than for the eye.
 */
#include "tests/unit/actor/stage.h"

#define REFS 128
#define ACTORS 24

static struct {
    pthread_mutex_t lock;
    trp_ref refs[REFS];
} board = { .lock = PTHREAD_MUTEX_INITIALIZER };
static _Atomic long budget;
static _Atomic uint64_t watched, unwatched, terminated, asked, answered;

typedef struct wild {
    uint64_t seed;
    trp_ref watching; /* one at a time, so that it can be counted */
    bool has_watch;
} wild;

static uint64_t
draw(wild *w)
{
    w->seed ^= w->seed << 13;
    w->seed ^= w->seed >> 7;
    w->seed ^= w->seed << 17;
    return w->seed;
}

static trp_ref
board_get(uint64_t i)
{
    trp_ref ref;

    pthread_mutex_lock(&board.lock);
    ref = board.refs[i % REFS];
    pthread_mutex_unlock(&board.lock);
    return ref;
}
static void
board_put(uint64_t i, trp_ref ref)
{
    pthread_mutex_lock(&board.lock);
    board.refs[i % REFS] = ref;
    pthread_mutex_unlock(&board.lock);
}

static trp_err
wild_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    wild *w = state;

    (void)args;
    w->seed = (uint64_t)trp_self(ctx).slot << 32 | trp_self(ctx).generation | 1;
    w->seed *= 0x9e3779b97f4a7c15u;
    if (draw(w) % 50 == 0) {
        return TRP_EIO;
    }
    return TRP_OK;
}
static void
wild_post_stop(trp_ctx *ctx, void *state)
{
    wild *w = state;

    /* ends with the actor, or stays with its ref over a restart: not counted on */
    if (w->has_watch) {
        trp_unwatch(ctx, w->watching);
        atomic_fetch_add(&unwatched, 1);
    }
}
static trp_err
wild_reply(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    wild *w = state;

    (void)ctx;
    (void)arg;
    (void)reply;
    atomic_fetch_add(&answered, 1);
    return err == TRP_OK && draw(w) % 40 == 0 ? TRP_EIO : TRP_OK;
}

static const trp_behaviour wild_behaviour;

static void
spawn_one(trp_ctx *ctx, wild *w)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    char name[24];
    trp_ref kid;

    snprintf(name, sizeof name, "n%u", (unsigned)(draw(w) % 4));
    options.name = draw(w) % 2 == 0 ? name : NULL;
    if (trp_children_count(ctx) < 4 && trp_spawn(ctx, &wild_behaviour, &options, &kid) == TRP_OK) {
        board_put(draw(w), kid);
        trp_tell_text(ctx, kid, "go");
    }
}

static void
watch_one(trp_ctx *ctx, wild *w)
{
    trp_ref ref = board_get(draw(w));

    if (w->has_watch) {
        trp_unwatch(ctx, w->watching);
        w->has_watch = false;
        atomic_fetch_add(&unwatched, 1);
    } else if (!trp_ref_is_none(ref) && !trp_ref_equal(ref, trp_self(ctx))) {
        UNIT_EQUAL(trp_watch(ctx, ref), TRP_OK);
        w->watching = ref;
        w->has_watch = true;
        atomic_fetch_add(&watched, 1);
    }
}

static trp_err
act(trp_ctx *ctx, wild *w, const trp_msg *msg)
{
    trp_ref ref = board_get(draw(w));
    char path[256];

    switch (draw(w) % 16) {
    case 0:
    case 1:
        spawn_one(ctx, w);
        break;
    case 2:
    case 3:
        watch_one(ctx, w);
        break;
    case 4:
        if (draw(w) % 4 == 0) {
            trp_stop(ctx, ref);
        }
        break;
    case 5:
        if (draw(w) % 4 == 0) {
            trp_tell(ctx, ref, draw(w) % 2 == 0 ? &trp_kill_type : &trp_poison_pill_type, NULL, 0);
        }
        break;
    case 6:
        if (draw(w) % 8 == 0) {
            trp_fail(ctx, 1, "wild");
        }
        break;
    case 7:
        UNIT_EQUAL(trp_ask(ctx, ref, &trp_string_type, "go", 2, 1 + (uint32_t)(draw(w) % 20),
                           wild_reply, NULL),
                   TRP_OK);
        atomic_fetch_add(&asked, 1);
        break;
    case 8:
        if (draw(w) % 16 == 0) {
            UNIT_EQUAL(trp_select_tell(ctx, draw(w) % 2 == 0 ? "/user/*/n?" : "../*",
                                       &trp_string_type, "x", 1),
                       TRP_OK);
        }
        break;
    case 9:
        if (ctx != NULL && trp_stash(ctx, msg) == TRP_OK && draw(w) % 2 == 0) {
            trp_unstash_all(ctx);
        }
        break;
    case 10:
        trp_unstash_all(ctx);
        break;
    case 11:
        UNIT_EQUAL(
            trp_timer_once(ctx, draw(w) % 3, (uint32_t)(draw(w) % 5), &trp_string_type, "x", 1),
            TRP_OK);
        break;
    case 12:
        (void)trp_path(trp_ctx_system(ctx), ref, path, sizeof path);
        break;
    case 13:
        (void)trp_alloc(ctx, draw(w) % 100);
        /* Ten thousand actors with a timeout of 1 ms are more work than a sanitized core can do. */
        trp_receive_timeout_set(ctx, (uint32_t)(draw(w) % 3 * 25));
        break;
    case 14:
        UNIT_EQUAL(trp_resolve(ctx, "/user/w1/n1", 20, wild_reply, NULL), TRP_OK);
        atomic_fetch_add(&asked, 1);
        break;
    default:
        trp_tell_text(ctx, ref, "x");
        break;
    }
    return TRP_OK;
}

static trp_err
wild_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    wild *w = state;

    if (trp_msg_is(msg, &trp_terminated_type)) {
        const trp_terminated *what = trp_msg_payload(msg);

        UNIT_TRUE(w->has_watch &&
                  trp_ref_equal(what->ref, w->watching)); /* once, and only what is watched */
        w->has_watch = false;
        atomic_fetch_add(&terminated, 1);
        return TRP_OK;
    }
    trp_reply_text(ctx, "ok");
    if (!stage_said(msg, "go") || atomic_fetch_sub(&budget, 1) <= 0) {
        return TRP_OK;
    }
    trp_tell_text(ctx, trp_self(ctx), "go");
    return act(ctx, w, msg);
}

/* The default decider, but now and then another one's mind. */
static trp_directive
wild_decider(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    wild *w = state;

    (void)ctx;
    (void)failure;
    return (trp_directive)(1 + draw(w) % (draw(w) % 8 == 0 ? 4 : 3));
}
static const trp_strategy one = { sizeof(trp_strategy), 0, 1, wild_decider, 5, 1000 };
static const trp_behaviour wild_behaviour = { .size = sizeof(trp_behaviour),
                                              .name = "wild",
                                              .version = 1,
                                              .state_bytes = sizeof(wild),
                                              .receive = wild_receive,
                                              .pre_start = wild_pre_start,
                                              .post_stop = wild_post_stop,
                                              .strategy = &one };

/* Has each of the things that the laws count happened? */
static bool
all_seen(trp_system *system)
{
    trp_system_stats stats = { .size = sizeof stats };

    trp_system_stats_get(system, &stats);
    return atomic_load(&terminated) > 0 && atomic_load(&answered) > 0 && stats.restarts > 0;
}

static void
turmoil_ends(void)
{
    trp_system *system = stage_open();
    trp_system_stats stats = { .size = sizeof stats };
    uint64_t start = unit_now_ms();

    atomic_store(&budget, 60000);
    for (unsigned round = 0; unit_now_ms() - start < 8000 * UNIT_STRETCH; round++) {
        trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
        char name[24];
        trp_ref ref;

        snprintf(name, sizeof name, "w%u", round % ACTORS);
        options.name = name;
        if (trp_system_spawn(system, &wild_behaviour, &options, &ref) == TRP_OK) {
            board_put(round, ref);
        } else {
            ref = board_get(round);
        }
        stage_tell(system, ref, "go");
        if (round % 64 == 0) {
            unit_pause();
        }
        if (atomic_load(&budget) <= 0) {
            if (all_seen(system)) {
                break;
            }
            atomic_store(&budget, 1000); /* a slow machine: most of it went to waste */
        }
        if (unit_now_ms() - start > 8000 && all_seen(system)) {
            break;
        }
    }
    UNIT_EQUAL(trp_system_stop(system, 20000 * UNIT_STRETCH), TRP_OK);
    trp_system_stats_get(system, &stats);
    UNIT_EQUAL(stats.actors, 0);
    UNIT_EQUAL(stats.spawned, stats.stopped);
    UNIT_TRUE(atomic_load(&terminated) + atomic_load(&unwatched) <= atomic_load(&watched));
    UNIT_TRUE(atomic_load(&answered) <= atomic_load(&asked));
    UNIT_TRUE(atomic_load(&terminated) > 0 && atomic_load(&answered) > 0 && stats.restarts > 0);
    trp_system_free(system);
}

UNIT_BEGIN("turmoil")
UNIT(turmoil_ends)
UNIT_END

/* lookup_test.c - paths and refs across nodes: top-level paths, looking up until the actor is
 * there, refs that come back, unwatch. */
#include "tests/unit/remote/pair.h"

static pair p;

static trp_ref
side_resolve(int from, int to, const char *path, trp_err expected)
{
    char buffer[TRP_PATH_BYTES_MAX];
    trp_ref ref = TRP_REF_NONE;
    UNIT_EQUAL(trp_system_resolve(p.system[from], pair_path(&p, to, path, buffer, sizeof buffer),
                                  60000, &ref),
               expected);
    return ref;
}

/* REMOTE-12 REMOTE-06 */
static void
every_top_of_the_tree_is_found_from_afar(void)
{
    static const char *const tops[] = { "/user", "/system", "/deadLetters", "/temp", "/remote" };
    pair_start(&p, false, NULL);
    for (size_t i = 0; i < sizeof tops / sizeof tops[0]; i++) {
        trp_ref ref = side_resolve(0, 1, tops[i], TRP_OK);
        UNIT_TRUE(ref.node != TRPI_NODE_SELF);
    }
    (void)side_resolve(0, 1, "/nobody", TRP_ENOENT);
    pair_end(&p);
}

/* ---- the lookup sample ----------------------------------------------------------------------- */

static char sought[TRP_PATH_BYTES_MAX];
static _Atomic uint32_t tries, found, answers;

static trp_err
found_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    if (trp_msg_is(msg, &trp_i64_type)) {
        atomic_fetch_add(&answers, 1);
    }
    return TRP_OK;
}

static trp_err
path_identify(trp_ctx *ctx)
{
    trp_identify what = { 7 };
    atomic_fetch_add(&tries, 1);
    return trp_select_tell(ctx, sought, &trp_identify_type, &what, sizeof what);
}

static trp_err
lookup_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_actor_identity_type)) {
        const trp_actor_identity *identity = trp_msg_payload(msg);
        if (identity->id == 7 && !trp_ref_is_none(identity->ref)) {
            int64_t question = 42;
            atomic_fetch_add(&found, 1);
            trp_receive_timeout_set(ctx, 0);
            trp_err err = trp_become(ctx, found_receive, 0);
            trp_tell(ctx, identity->ref, &trp_i64_type, &question, sizeof question);
            return err;
        }
        return TRP_OK; /* not there: the receive timeout asks again */
    }
    return trp_msg_is(msg, &trp_receive_timeout_type) ? path_identify(ctx) : TRP_OK;
}
static trp_err
lookup_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    trp_receive_timeout_set(ctx, 50);
    return path_identify(ctx);
}
static const trp_behaviour lookup = { .size = sizeof(trp_behaviour),
                                      .name = "lookup",
                                      .version = 1,
                                      .state_bytes = 1,
                                      .receive = lookup_receive,
                                      .pre_start = lookup_start };

/* REMOTE-13 REMOTE-07, SERIAL-03 */
static void
looking_up_goes_on_until_somebody_is_there(void)
{
    pair_start(&p, false, NULL);
    atomic_store(&tries, 0);
    atomic_store(&found, 0);
    atomic_store(&answers, 0);
    pair_path(&p, 1, "/user/late", sought, sizeof sought);
    pair_spawn(p.system[0], &lookup, "lookup", NULL, NULL, 0);
    UNIT_WAIT(atomic_load(&tries) >= 3, 60000);
    UNIT_EQUAL(atomic_load(&found), 0);
    pair_spawn(p.system[1], &pair_echo, "late", NULL, NULL, 0);
    UNIT_WAIT(atomic_load(&answers) == 1, 60000);
    UNIT_EQUAL(atomic_load(&found), 1);
    pair_end(&p);
}

/* ---- refs that come home --------------------------------------------------------------------- */

/* SYS-28 REMOTE-11 SERIAL-12: as a payload there and back, and as a path with our own address */
static void
a_ref_that_comes_home_is_local_again(void)
{
    pair_start(&p, false, NULL);
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    trp_ref mine = pair_spawn(p.system[0], &pair_echo, "mine", NULL, NULL, 0);
    trp_actor_identity sent = { 9, mine };
    char path[TRP_PATH_BYTES_MAX];
    trp_msg *reply = NULL;
    UNIT_EQUAL(trp_system_ask_path(p.system[0], pair_path(&p, 1, "/user/echo", path, sizeof path),
                                   &trp_actor_identity_type, &sent, sizeof sent, 60000, &reply),
               TRP_OK);
    UNIT_REQUIRE(reply != NULL && trp_msg_is(reply, &trp_actor_identity_type));
    const trp_actor_identity *back = trp_msg_payload(reply);
    UNIT_TRUE(trp_ref_equal(back->ref, mine));
    UNIT_EQUAL(back->ref.node, TRPI_NODE_SELF);
    trp_msg_free(reply);
    UNIT_TRUE(trp_ref_equal(side_resolve(0, 0, "/user/mine", TRP_OK), mine));
    /* The other side has it with our address, and it reaches the same actor from there. */
    trp_ref abroad = side_resolve(1, 0, "/user/mine", TRP_OK);
    UNIT_TRUE(abroad.node != TRPI_NODE_SELF);
    UNIT_EQUAL(abroad.slot, mine.slot);
    UNIT_EQUAL(abroad.generation, mine.generation);
    pair_end(&p);
}

/* ---- unwatching ------------------------------------------------------------------------------ */

static trp_ref first, second;
static _Atomic uint32_t ended_first, ended_second, step;

static trp_err
watcher_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_terminated_type)) {
        const trp_terminated *what = trp_msg_payload(msg);
        atomic_fetch_add(trp_ref_equal(what->ref, first) ? &ended_first : &ended_second, 1);
        return TRP_OK;
    }
    trp_err err = trp_watch(ctx, first);
    trp_unwatch(ctx, first);
    err = err == TRP_OK ? trp_watch(ctx, second) : err;
    atomic_fetch_add(&step, 1);
    return err;
}
static const trp_behaviour watcher = TRP_BEHAVIOUR_INIT("watcher", char, watcher_receive);

/* A watcher on one side, the watched on the other. */
static void
unwatch_between(int from, int to)
{
    atomic_store(&ended_first, 0);
    atomic_store(&ended_second, 0);
    atomic_store(&step, 0);
    trp_ref a = pair_spawn(p.system[to], &pair_echo, "first", NULL, NULL, 0);
    trp_ref b = pair_spawn(p.system[to], &pair_echo, "second", NULL, NULL, 0);
    first = side_resolve(from, to, "/user/first", TRP_OK);
    second = side_resolve(from, to, "/user/second", TRP_OK);
    trp_ref who = pair_spawn(p.system[from], &watcher, NULL, NULL, NULL, 0);
    trp_system_tell(p.system[from], who, &trp_bytes_type, "", 0);
    UNIT_WAIT(atomic_load(&step) == 1, 60000);
    UNIT_WAIT(trpi_node_is_watched(p.system[from], second.node), 60000);
    UNIT_EQUAL(trp_system_graceful_stop(p.system[to], a, 60000), TRP_OK);
    UNIT_EQUAL(trp_system_graceful_stop(p.system[to], b, 60000), TRP_OK);
    UNIT_WAIT(atomic_load(&ended_second) == 1, 60000);
    UNIT_EQUAL(atomic_load(&ended_first), 0);
}

/* REMOTE-27, RemoteNodeDeathWatchSpec: in both directions; the second's end is sent after the
 * first's, so that nothing of the first can follow */
static void
after_unwatching_nothing_comes_from_the_other_node(void)
{
    pair_start(&p, false, NULL);
    unwatch_between(0, 1);
    unwatch_between(1, 0);
    pair_end(&p);
}

UNIT_BEGIN("lookup")
UNIT(every_top_of_the_tree_is_found_from_afar)
UNIT(looking_up_goes_on_until_somebody_is_there)
UNIT(a_ref_that_comes_home_is_local_again)
UNIT(after_unwatching_nothing_comes_from_the_other_node)
UNIT_END

/* supervision_test.c - routees that fail, and routers that do. */
#include "tests/unit/pattern/crew.h"

/* ROUTE-16, ROUTE-17: without a strategy of its own a router escalates, its parent restarts it, and
 * that restarts all routees, the same ones; what is on its way goes on. */
static void
a_failure_of_a_routee_restarts_the_router_and_its_pool(void)
{
    trp_system *system = crew_open();
    trp_ref router = crew_router(system, "pool", NULL, 4), refs[CREW_MAX], after[CREW_MAX];

    UNIT_EQUAL(crew_of(system, router, refs), 4);
    stage_tell(system, refs[2], "fail");
    UNIT_WAIT(atomic_load(&crew_restarted) == 4, 5000);
    UNIT_EQUAL(crew_of(system, router, after), 4);
    UNIT_TRUE(memcmp(refs, after, 4 * sizeof refs[0]) == 0);
    for (int i = 0; i < 8; i++) {
        stage_tell(system, router, "on");
    }
    UNIT_WAIT(stage_count(":on") == 8, 5000);
    UNIT_EQUAL(atomic_load(&crew_started), 4); /* none was made anew */
    UNIT_EQUAL(atomic_load(&crew_stopped), 4); /* post_stop of the old instances */
    stage_tell(system, refs[0], "fail");       /* and once more: it watches and supervises still */
    UNIT_WAIT(atomic_load(&crew_restarted) == 8, 5000);
    stage_close(system);
}

/* ROUTE-16: a strategy of the router's own concerns the one that failed. */
static void
a_router_may_have_a_strategy_of_its_own(void)
{
    static const trp_strategy stops = { sizeof(trp_strategy), 0, 0, trp_stopping_decider, 0, 0 };
    static const trp_strategy restarts = TRP_STRATEGY_INIT;
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_system *system = crew_open();
    trp_ref router, refs[CREW_MAX];

    options.instances = 3;
    options.strategy = &restarts;
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, NULL, "a", &options, &router),
               TRP_OK);
    UNIT_EQUAL(crew_of(system, router, refs), 3);
    stage_tell(system, refs[1], "fail");
    UNIT_WAIT(atomic_load(&crew_restarted) == 1, 5000);
    stage_tell(system, refs[1], "done");
    UNIT_WAIT(stage_has(":done"), 5000);
    UNIT_EQUAL(atomic_load(&crew_restarted), 1);
    options.strategy = &stops;
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, NULL, "b", &options, &router),
               TRP_OK);
    UNIT_EQUAL(crew_of(system, router, refs), 3);
    stage_tell(system, refs[1], "fail");
    UNIT_WAIT(crew_count(system, router) == 2, 5000); /* ROUTE-18: and is not replaced */
    UNIT_EQUAL(atomic_load(&crew_restarted), 1);
    stage_close(system);
}

/* The parent of a router that is killed, and its decision. */
static _Atomic int verdict;
static trp_directive
failure_decide(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    (void)ctx;
    (void)state;
    stage_note("decide(%s)", trp_err_name(failure->err));
    while (atomic_load(&verdict) == 0) {
        unit_pause();
    }
    return (trp_directive)atomic_load(&verdict);
}
static const trp_strategy decides = { sizeof(trp_strategy), 0, 1, failure_decide, 0, 0 };

static trp_ref outside[1];

static trp_err
parent_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref ref;

    (void)state;
    (void)args;
    options.instances = 2;
    UNIT_EQUAL(trp_router_spawn(ctx, &crew_behaviour, NULL, "pool", &options, &ref), TRP_OK);
    options.routees = outside;
    options.routees_count = 1;
    UNIT_EQUAL(trp_router_spawn(ctx, NULL, NULL, "group", &options, &ref), TRP_OK);
    return TRP_OK;
}

/* ROUTE-15: a killed router fails; its children are suspended and share what is decided, routees
 * that are not its children go on. */
static void
a_killed_router_takes_its_children_along_and_nobody_else(void)
{
    trp_behaviour parent = { .size = sizeof(trp_behaviour),
                             .name = "parent",
                             .version = 1,
                             .receive = crew_receive,
                             .pre_start = parent_start,
                             .strategy = &decides };
    trp_system *system = crew_open();
    trp_ref pool, group, refs[CREW_MAX];
    trp_msg *reply = NULL;

    atomic_store(&verdict, 0);
    outside[0] = stage_spawn(system, &crew_behaviour, "outside");
    stage_spawn(system, &parent, "parent");
    UNIT_WAIT(trp_system_resolve(system, "/user/parent/group", 60000, &group) == TRP_OK, 5000);
    UNIT_EQUAL(trp_system_resolve(system, "/user/parent/pool", 60000, &pool), TRP_OK);
    UNIT_EQUAL(crew_of(system, pool, refs), 2);
    trp_system_tell(system, pool, &trp_kill_type, NULL, 0);
    UNIT_WAIT(stage_has("decide(TRP_EKILLED)"), 5000);
    stage_tell(system, refs[0], "waits");
    UNIT_EQUAL(trp_system_ask(system, refs[0], &trp_string_type, "who", 3, 50, &reply),
               TRP_ETIMEDOUT); /* suspended */
    UNIT_FALSE(stage_has(":waits"));
    stage_tell(system, group, "goes on");
    UNIT_WAIT(stage_has("outside:goes on"), 5000);
    atomic_store(&verdict, TRP_RESTART);
    UNIT_WAIT(atomic_load(&crew_restarted) == 2, 5000);
    UNIT_WAIT(stage_has(":waits"), 5000);
    trp_system_tell(system, group, &trp_kill_type, NULL, 0);
    stage_tell(system, group, "goes on after");
    UNIT_WAIT(stage_has("outside:goes on after"), 5000);
    UNIT_EQUAL(atomic_load(&crew_restarted), 2);
    UNIT_EQUAL(crew_count(system, group), 1);
    stage_close(system);
}

UNIT_BEGIN("supervision")
UNIT(a_failure_of_a_routee_restarts_the_router_and_its_pool)
UNIT(a_router_may_have_a_strategy_of_its_own)
UNIT(a_killed_router_takes_its_children_along_and_nobody_else)
UNIT_END

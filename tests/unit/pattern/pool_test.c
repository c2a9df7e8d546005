/* pool_test.c - orders to a router, and routees that come and go. */
#include "tests/unit/pattern/crew.h"

#include <troupe/dispatcher.h>

/* ROUTE-24: an asker gets the present routees. */
static void
a_router_tells_its_routees(void)
{
    trp_system *system = crew_open();
    trp_ref router = crew_router(system, "pool", "random", 3), refs[CREW_MAX];
    trp_msg *reply = NULL;

    UNIT_EQUAL(crew_of(system, router, refs), 3);
    UNIT_EQUAL(trp_system_ask(system, router, &trp_get_routees_type, NULL, 0, 60000, &reply),
               TRP_OK);
    UNIT_TRUE(trp_msg_is(reply, &trp_routees_type));
    UNIT_EQUAL(trp_msg_bytes(reply), 3 * sizeof refs[0]);
    UNIT_EQUAL(memcmp(trp_msg_payload(reply), refs, 3 * sizeof refs[0]), 0);
    trp_msg_free(reply);
    UNIT_EQUAL(trp_router_routees(system, refs[0], refs, 1, &(uint32_t){ 0 }), TRP_ENOENT);
    stage_close(system);
}

/* ROUTE-18, -24 (orders of Akka 2.3): an order is done when the answer to a later question comes.
 */
static void
routees_are_added_and_removed_by_order(void)
{
    trp_system *system = crew_open();
    trp_ref router = crew_router(system, "pool", NULL, 2), refs[CREW_MAX];
    trp_ref guest = stage_spawn(system, &crew_behaviour, "guest");
    trp_add_routee add = { guest };
    trp_remove_routee remove = { TRP_REF_NONE };
    trp_adjust_pool_size adjust = { 3 };
    trp_msg *reply = NULL;
    char name[64];

    trp_system_tell(system, router, &trp_add_routee_type, &add, sizeof add);
    trp_system_tell(system, router, &trp_add_routee_type, &add, sizeof add); /* twice is once */
    add.routee = router;
    trp_system_tell(system, router, &trp_add_routee_type, &add, sizeof add); /* refused */
    trp_system_tell(system, router, &trp_adjust_pool_size_type, &adjust, sizeof adjust);
    UNIT_EQUAL(trp_system_ask(system, router, &trp_get_routees_type, NULL, 0, 60000, &reply),
               TRP_OK);
    UNIT_EQUAL(trp_msg_bytes(reply), 6 * sizeof refs[0]);
    trp_msg_free(reply);
    UNIT_EQUAL(crew_of(system, router, refs), 6);
    UNIT_TRUE(trp_ref_equal(refs[2], guest));
    UNIT_WAIT(atomic_load(&crew_started) == 6, 5000); /* they start in their own time */
    adjust.change = -2;                               /* the last ones */
    trp_system_tell(system, router, &trp_adjust_pool_size_type, &adjust, sizeof adjust);
    UNIT_WAIT(atomic_load(&crew_stopped) == 2, 5000);
    stage_tell(system, refs[0], "hold");
    stage_tell(system, refs[0], "last");
    remove.routee = refs[0]; /* a child: it does what it was told, then it is stopped */
    trp_system_tell(system, router, &trp_remove_routee_type, &remove, sizeof remove);
    UNIT_WAIT(crew_count(system, router) == 3, 5000);
    UNIT_EQUAL(atomic_load(&crew_stopped), 2);
    atomic_store(&crew_gate, 1);
    UNIT_WAIT(atomic_load(&crew_stopped) == 3, 5000);
    UNIT_TRUE(stage_has(":last"));
    remove.routee = guest; /* no child: it lives on */
    trp_system_tell(system, router, &trp_remove_routee_type, &remove, sizeof remove);
    UNIT_WAIT(crew_count(system, router) == 2, 5000);
    UNIT_EQUAL(stage_ask(system, guest, "who", name, sizeof name), TRP_OK);
    UNIT_EQUAL(atomic_load(&crew_stopped), 3);
    stage_close(system);
}

/* ROUTE-18: a routee that has ended is not routed to and not replaced; with the last one the router
 * ends, and later messages are dead letters. */
static void
a_router_ends_with_its_last_routee(void)
{
    trp_system *system = crew_open();
    trp_ref router = crew_router(system, "pool", NULL, 2), refs[CREW_MAX];
    trp_system_stats stats = { .size = sizeof stats };
    char name[64], path[128];

    UNIT_EQUAL(crew_of(system, router, refs), 2);
    trp_system_stop_actor(system, refs[0]);
    UNIT_WAIT(crew_count(system, router) == 1, 5000);
    for (int i = 0; i < 4; i++) {
        UNIT_EQUAL(stage_ask(system, router, "who", name, sizeof name), TRP_OK);
        UNIT_TEXT(name, stage_name(system, refs[1], path, sizeof path));
    }
    UNIT_EQUAL(trp_system_graceful_stop(system, refs[1], 60000), TRP_OK);
    UNIT_WAIT(crew_count(system, router) == UINT32_MAX, 5000);
    UNIT_EQUAL(atomic_load(&crew_started), 2);
    stage_tell(system, router, "late");
    trp_system_stats_get(system, &stats);
    UNIT_EQUAL(stats.dead_letters[TRP_DEAD_STALE], 1);
    stage_close(system);
}

static trp_err
where_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    uint64_t thread = (uint64_t)(uintptr_t)pthread_self();

    (void)state;
    if (trp_msg_is(msg, &trp_string_type)) {
        trp_reply(ctx, &trp_bytes_type, &thread, sizeof thread);
    }
    return TRP_OK;
}

static uint64_t
ask_where(trp_system *system, trp_ref ref)
{
    trp_msg *reply = NULL;
    uint64_t thread = 0;

    if (UNIT_EQUAL(trp_system_ask(system, ref, &trp_string_type, "where", 5, 60000, &reply),
                   TRP_OK)) {
        memcpy(&thread, trp_msg_payload(reply), sizeof thread);
    }
    trp_msg_free(reply);
    return thread;
}

static void
route_to_itself(void *state, trp_route *route, trp_ref sender, const trp_msg *msg)
{
    (void)state;
    (void)route;
    (void)sender;
    (void)msg;
}

/* ROUTE-23: routees run where their options say, the router where its own say: here each on a
 * thread of its own. */
static void
router_and_routees_have_dispatchers_of_their_own(void)
{
    static const trp_behaviour where = TRP_BEHAVIOUR_INIT("where", char, where_receive);
    trp_routing_logic own = TRP_ROUTING_LOGIC_INIT("own", route_to_itself);
    trp_system_options system_options = TRP_SYSTEM_OPTIONS_INIT;
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_dispatcher_options balancing = TRP_DISPATCHER_OPTIONS_INIT;
    trp_spawn_options routee = TRP_SPAWN_OPTIONS_INIT;
    trp_system *system;
    trp_ref router, refs[CREW_MAX];
    uint64_t pool, head, one, two;

    system_options.workers = 1;
    system = stage_open_with(system_options);
    pool = ask_where(system, stage_spawn(system, &where, "pool-thread"));
    own.receive = where_receive;
    options.custom = &own;
    options.instances = 2;
    options.dispatcher = "pinned";
    UNIT_EQUAL(trp_system_router_spawn(system, &where, NULL, "a", &options, &router), TRP_OK);
    UNIT_EQUAL(crew_of(system, router, refs), 2);
    head = ask_where(system, router);
    one = ask_where(system, refs[0]);
    UNIT_TRUE(head != pool);
    UNIT_EQUAL(one, pool);
    options.dispatcher = NULL;
    routee.dispatcher = "pinned";
    UNIT_EQUAL(trp_system_router_spawn(system, &where, &routee, "b", &options, &router), TRP_OK);
    UNIT_EQUAL(crew_of(system, router, refs), 2);
    one = ask_where(system, refs[0]);
    two = ask_where(system, refs[1]);
    UNIT_EQUAL(ask_where(system, router), pool);
    UNIT_TRUE(one != pool && two != pool && one != two);
    balancing.kind = TRP_DISPATCHER_BALANCING;
    UNIT_EQUAL(trp_dispatcher_register(system, "shared", &balancing), TRP_OK);
    options.dispatcher = "shared"; /* only the router itself can handle its messages */
    UNIT_EQUAL(trp_system_router_spawn(system, &where, NULL, "c", &options, &router), TRP_EINVAL);
    stage_close(system);
}

static trp_err
sum_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    *(int64_t *)state = *(const int64_t *)trp_msg_payload(args);
    return TRP_OK;
}

/* ROUTE-5: arguments of routees are kept by the router, also for those that are made later. */
static void
routees_get_their_arguments_at_any_time(void)
{
    static const trp_behaviour summer = { .size = sizeof(trp_behaviour),
                                          .name = "summer",
                                          .version = 1,
                                          .state_bytes = 8,
                                          .receive = crew_receive,
                                          .pre_start = sum_start };
    trp_system *system = crew_open();
    trp_spawn_options routee = TRP_SPAWN_OPTIONS_INIT;
    trp_adjust_pool_size adjust = { 1 };
    int64_t start = 40;
    trp_ref router, refs[CREW_MAX];

    routee.args_type = &trp_i64_type;
    routee.args = &start;
    routee.args_bytes = sizeof(start);
    UNIT_EQUAL(trp_system_router_spawn(system, &summer, &routee, "pool", NULL, &router), TRP_OK);
    start = 0;
    trp_system_tell(system, router, &trp_adjust_pool_size_type, &adjust, sizeof adjust);
    UNIT_WAIT(crew_of(system, router, refs) == 2, 5000);
    UNIT_EQUAL(crew_sum(system, refs[0]), 40);
    UNIT_EQUAL(crew_sum(system, refs[1]), 40);
    stage_close(system);
}

/* Many threads tell while the pool changes: nothing is lost but what a leaving routee leaves. */
enum { CHURN_EACH = 10000 }; /* told for each swap: what waits is bounded, however slow they are */
static _Atomic bool churn_on;
static _Atomic int64_t churn_budget;
typedef struct churn {
    trp_system *system;
    trp_ref router;
    uint64_t told;
} churn;

static void *
churn_tell(void *arg)
{
    churn *c = arg;
    int64_t one = 1;

    while (atomic_load(&churn_on)) {
        if (atomic_load(&churn_budget) <= 0) {
            unit_pause();
            continue;
        }
        atomic_fetch_sub(&churn_budget, 1);
        trp_system_tell(c->system, c->router, &trp_i64_type, &one, sizeof one);
        c->told++;
    }
    return NULL;
}

static uint64_t
dead_since(trp_system *system, const trp_system_stats *before)
{
    trp_system_stats now = { .size = sizeof now };
    uint64_t dead = 0;

    trp_system_stats_get(system, &now);
    for (size_t i = 0; i < TRP_DEAD_REASON_COUNT; i++) {
        dead += now.dead_letters[i] - before->dead_letters[i];
    }
    return dead;
}

/* ROUTE-1, ROUTE-21: told by several threads while the table is swapped again and again: each
 * message is handled or a dead letter. */
static void
tables_are_swapped_under_telling_threads(void)
{
    trp_system *system = crew_open();
    churn tellers[3] = { { 0 } };
    pthread_t threads[3];
    trp_ref router = crew_router(system, "pool", NULL, 4), refs[CREW_MAX];
    trp_system_stats before = { .size = sizeof before };
    uint64_t told = 0;
    int64_t handled;

    trp_system_stats_get(system, &before);
    atomic_store(&churn_on, true);
    atomic_store(&churn_budget, 0);
    for (int i = 0; i < 3; i++) {
        tellers[i].system = system;
        tellers[i].router = router;
        UNIT_REQUIRE(pthread_create(&threads[i], NULL, churn_tell, &tellers[i]) == 0);
    }
    for (int i = 0; i < 60; i++) {
        trp_adjust_pool_size adjust = { i % 2 == 0 ? 2 : -2 };

        atomic_fetch_add(&churn_budget, CHURN_EACH);
        trp_system_tell(system, router, &trp_adjust_pool_size_type, &adjust, sizeof adjust);
        UNIT_WAIT(crew_count(system, router) == (i % 2 == 0 ? 6u : 4u), 5000);
    }
    atomic_store(&churn_on, false);
    for (int i = 0; i < 3; i++) {
        (void)pthread_join(threads[i], NULL);
        told += tellers[i].told;
    }
    UNIT_WAIT(atomic_load(&crew_stopped) == 60, 10000);
    UNIT_EQUAL(crew_of(system, router, refs), 4);
    handled = atomic_load(&crew_total); /* of those that have ended */
    for (int i = 0; i < 4; i++) {
        handled += crew_sum(system, refs[i]);
    }
    UNIT_WAIT((uint64_t)handled + dead_since(system, &before) == told, 5000);
    stage_close(system);
}

UNIT_BEGIN("pool")
UNIT(a_router_tells_its_routees)
UNIT(routees_are_added_and_removed_by_order)
UNIT(a_router_ends_with_its_last_routee)
UNIT(router_and_routees_have_dispatchers_of_their_own)
UNIT(routees_get_their_arguments_at_any_time)
UNIT(tables_are_swapped_under_telling_threads)
UNIT_END

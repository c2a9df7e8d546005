/* balancing_test.c - the balancing router: routees that take from one mailbox. */
#include "tests/unit/pattern/crew.h"

#include <troupe/config.h>
#include <troupe/dispatcher.h>

enum { ROUTEES = 3, TOLD = 50, ROUTERS_IN_TURN = TRP_DISPATCHERS_MAX + 20 };

static void
gate_reset(void)
{
    atomic_store(&crew_gate, 0);
    atomic_store(&crew_held, 0);
    atomic_store(&crew_stopped, 0);
    atomic_store(&crew_total, 0);
}

/* All but one routee are held: what the router routes to any of them, this one does. */
static void
one_does_the_work_of_all(trp_system *system, trp_ref router)
{
    int64_t one = 1;

    for (int i = 1; i < ROUTEES; i++) {
        stage_tell(system, router, "hold");
    }
    UNIT_WAIT(atomic_load(&crew_held) == ROUTEES - 1, 5000);
    for (int i = 0; i < TOLD; i++) {
        trp_system_tell(system, router, &trp_i64_type, &one, sizeof one);
    }
    stage_tell(system, router, "hold"); /* comes when all of it is done */
    UNIT_WAIT(atomic_load(&crew_held) == ROUTEES, 5000);
    atomic_store(&crew_gate, 1);
    trp_system_stop_actor(system, router);
    UNIT_WAIT(atomic_load(&crew_stopped) == ROUTEES, 5000);
    UNIT_EQUAL(atomic_load(&crew_total), TOLD);
}

/* ROUTE-4, DISP-5: from code, with a dispatcher of its own; and with one that the code names. */
static void
routees_of_a_balancing_router_share_their_mailbox(void)
{
    trp_dispatcher_options options = TRP_DISPATCHER_OPTIONS_INIT;
    trp_spawn_options routee = TRP_SPAWN_OPTIONS_INIT;
    trp_router_options router = TRP_ROUTER_OPTIONS_INIT;
    trp_system *system = crew_open();
    trp_dispatcher_info info = { .size = sizeof info };
    trp_ref ref;

    gate_reset();
    one_does_the_work_of_all(system, crew_router(system, "a", "balancing", ROUTEES));
    gate_reset();
    options.kind = TRP_DISPATCHER_BALANCING;
    UNIT_EQUAL(trp_dispatcher_register(system, "ours", &options), TRP_OK);
    routee.dispatcher = "ours";
    router.logic = "balancing";
    router.instances = ROUTEES;
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, &routee, "b", &router, &ref),
               TRP_OK);
    UNIT_EQUAL(trp_dispatcher_find(system, "ours", &info), TRP_OK);
    UNIT_EQUAL(info.actors, ROUTEES);
    one_does_the_work_of_all(system, ref);
    stage_close(system);
}

/* ROUTE-4, DISP-5: all of it from the configuration. */
static void
configuration_makes_a_router_balance(void)
{
    static const char text[] =
        "dispatcher \"team\" { type = BalancingDispatcher attempt-teamwork = off }\n"
        "dispatcher \"other\" { type = balancing }\n"
        "deployment \"/a\" { router = balancing-pool nr-of-instances = 3 }\n"
        "deployment \"/b\" { router = balancing nr-of-instances = 3 dispatcher = other }\n";
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_dispatcher_info info = { .size = sizeof info };
    trp_config *config = NULL;
    trp_config_error error = { "" };
    trp_system *system;

    UNIT_EQUAL(trp_config_parse_text("t.conf", text, &config, &error), TRP_OK);
    UNIT_TEXT(error.text, "");
    UNIT_REQUIRE(config != NULL);
    options.config = config;
    system = stage_open_with(options);
    trp_config_unref(config);
    UNIT_EQUAL(trp_dispatcher_find(system, "team", &info), TRP_OK);
    UNIT_EQUAL(info.kind, TRP_DISPATCHER_BALANCING);
    gate_reset();
    one_does_the_work_of_all(system, crew_router(system, "a", "random", 1));
    gate_reset();
    one_does_the_work_of_all(system, crew_router(system, "b", "random", 1));
    stage_close(system);
}

/* A group cannot balance, nor can routees of another dispatcher; nothing is left behind. */
static void
a_router_that_cannot_balance_is_refused(void)
{
    trp_spawn_options routee = TRP_SPAWN_OPTIONS_INIT;
    trp_router_options router = TRP_ROUTER_OPTIONS_INIT;
    trp_system *system = crew_open();
    trp_ref guest = stage_spawn(system, &crew_behaviour, "guest"), ref;

    router.logic = "balancing";
    router.instances = ROUTEES;
    routee.dispatcher = "pinned";
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, &routee, "a", &router, &ref),
               TRP_EINVAL);
    router.routees = &guest;
    router.routees_count = 1;
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, NULL, "a", &router, &ref),
               TRP_EINVAL);
    stage_close(system);
}

/* More routers than there are dispatchers, one after the other: they are lent, and come back. */
static void
dispatchers_of_routers_that_ended_serve_others(void)
{
    trp_system *system = crew_open();

    for (int i = 0; i < ROUTERS_IN_TURN; i++) {
        trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
        trp_err err = TRP_ELIMIT;
        trp_ref ref;

        gate_reset();
        options.logic = "balancing";
        options.instances = ROUTEES;
        err = trp_system_router_spawn(system, &crew_behaviour, NULL, NULL, &options, &ref);
        if (!UNIT_EQUAL(err, TRP_OK)) {
            break;
        }
        trp_system_stop_actor(system, ref);
        UNIT_WAIT(atomic_load(&crew_stopped) == ROUTEES, 5000);
    }
    stage_close(system);
}

UNIT_BEGIN("balancing")
UNIT(routees_of_a_balancing_router_share_their_mailbox)
UNIT(configuration_makes_a_router_balance)
UNIT(a_router_that_cannot_balance_is_refused)
UNIT(dispatchers_of_routers_that_ended_serve_others)
UNIT_END

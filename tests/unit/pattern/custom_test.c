/* custom_test.c - routing logic of one's own, and looking at where a message would go. */
#include "pattern/routing.h"
#include "tests/unit/pattern/crew.h"

/* ---- the vote counter of Akka's document ----------------------------------------------------- */

typedef struct votes {
    trp_ref democrat, republican;
} votes;
static _Atomic int votes_alive;
static pthread_t votes_routed_by; /* who tells routes */

static trp_err
votes_create(void *arg, trp_routee_provider *provider, void **ret_state)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    votes *v = calloc(1, sizeof *v);
    trp_ref both[2];
    trp_err err;

    options.name = "d";
    err = trp_routee_spawn(provider, &crew_behaviour, &options, &both[0]);
    options.name = "r";
    if (err == TRP_OK) {
        err = trp_routee_spawn(provider, &crew_behaviour, &options, &both[1]);
    }
    if (err == TRP_OK && arg == NULL) { /* as it must be */
        err = trp_routees_register(provider, both, 2);
    }
    if (err == TRP_OK && trp_routee_setting(provider, "party") != NULL) {
        stage_note("party=%s", trp_routee_setting(provider, "party"));
    }
    UNIT_TRUE(trp_routee_setting(provider, "no-such") == NULL);
    v->democrat = both[0];
    v->republican = both[1];
    *ret_state = v;
    atomic_fetch_add(&votes_alive, 1);
    return err;
}

static void
votes_route(void *state, trp_route *route, trp_ref sender, const trp_msg *msg)
{
    const votes *v = state;

    votes_routed_by = pthread_self();
    if (trp_msg_bytes(msg) > 0 && *(const char *)trp_msg_payload(msg) == 'd') {
        trp_route_to(route, v->democrat, sender);
    } else if (trp_msg_bytes(msg) > 0 && *(const char *)trp_msg_payload(msg) == 'r') {
        trp_route_to(route, v->republican, v->democrat); /* a sender of the logic's choice */
    } else if (stage_said(msg, "all")) {
        trp_route_to_all(route, sender);
    }
}

static void
votes_destroy(void *state)
{
    free(state);
    atomic_fetch_sub(&votes_alive, 1);
}

static trp_err
votes_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    UNIT_TRUE(((votes *)state)->democrat.slot != 0);
    stage_note("head:%.*s", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
    trp_reply_text(ctx, "head");
    return TRP_OK;
}

static const trp_routing_logic votes_logic = { sizeof(trp_routing_logic),
                                               "vote-count",
                                               votes_create,
                                               votes_route,
                                               votes_destroy,
                                               votes_receive,
                                               NULL };
static int unregistered;
static const trp_routing_logic careless_logic = { sizeof(trp_routing_logic),
                                                  "careless",
                                                  votes_create,
                                                  votes_route,
                                                  votes_destroy,
                                                  NULL,
                                                  &unregistered };

/* ROUTE-21, ROUTE-25, ROUTE-1: named children of any behaviour, a choice by the content of the
 * message, a sender of the logic's choice; a message without a destination goes to the router's own
 * mailbox. */
static void
logic_of_ones_own_routes_by_what_it_reads(void)
{
    static const char *const settings[] = { "party=three", NULL };
    trp_system *system = crew_open();
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref router, refs[CREW_MAX];
    char name[64];

    options.custom = &votes_logic;
    options.settings = settings;
    UNIT_EQUAL(trp_system_router_spawn(system, NULL, NULL, "votes", &options, &router), TRP_OK);
    UNIT_TRUE(stage_has("party=three"));
    UNIT_EQUAL(crew_of(system, router, refs), 2);
    stage_tell(system, router, "democrat");
    UNIT_TRUE(pthread_equal(votes_routed_by, pthread_self())); /* ROUTE-1: on the teller's thread */
    stage_tell(system, router, "republican");
    UNIT_WAIT(stage_has("d:democrat") && stage_has("r:republican"), 5000);
    UNIT_EQUAL(stage_ask(system, router, "what is that?", name, sizeof name), TRP_OK);
    UNIT_TEXT(name, "head");
    stage_tell(system, router, "all");
    UNIT_WAIT(stage_has("d:all") && stage_has("r:all"), 5000);
    stage_close(system);
    UNIT_EQUAL(atomic_load(&votes_alive), 0);
}

/* TEST-15: the choice without sending; ROUTE-25: the sender that the routee would see. */
static void
a_choice_can_be_looked_at_without_sending(void)
{
    trp_system *system = crew_open();
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref router, pool = crew_router(system, "pool", "broadcast", 3), refs[CREW_MAX];
    trp_ref me = stage_spawn(system, &crew_behaviour, "me");
    trp_destination to[4];
    uint32_t count = 99;

    options.custom = &votes_logic;
    UNIT_EQUAL(trp_system_router_spawn(system, NULL, NULL, "votes", &options, &router), TRP_OK);
    UNIT_EQUAL(crew_of(system, router, refs), 2);
    UNIT_EQUAL(trp_router_route(system, router, me, &trp_string_type, "dem", 3, to, 4, &count),
               TRP_OK);
    UNIT_TRUE(count == 1 && trp_ref_equal(to[0].to, refs[0]) && trp_ref_equal(to[0].sender, me));
    UNIT_EQUAL(trp_router_route(system, router, me, &trp_string_type, "rep", 3, to, 4, &count),
               TRP_OK);
    UNIT_TRUE(count == 1 && trp_ref_equal(to[0].to, refs[1]) &&
              trp_ref_equal(to[0].sender, refs[0]));
    UNIT_EQUAL(trp_router_route(system, router, me, &trp_string_type, "x", 1, to, 4, &count),
               TRP_OK);
    UNIT_EQUAL(count, 0);
    UNIT_EQUAL(crew_of(system, pool, refs), 3);
    UNIT_EQUAL(trp_router_route(system, pool, me, &trp_i64_type, &(int64_t){ 1 }, 8, to, 2, &count),
               TRP_OK);
    UNIT_EQUAL(count, 3); /* more than there was room for */
    UNIT_TRUE(trp_ref_equal(to[1].to, refs[1]));
    for (int i = 0; i < 3; i++) {
        UNIT_EQUAL(crew_sum(system, refs[i]), 0); /* nothing was sent */
    }
    UNIT_EQUAL(trp_router_route(system, me, me, &trp_string_type, "x", 1, to, 4, &count),
               TRP_ENOENT);
    UNIT_EQUAL(trp_router_route(system, pool, me, NULL, "x", 1, to, 4, &count), TRP_EINVAL);
    stage_close(system);
    UNIT_EQUAL(atomic_load(&votes_alive), 0);
}

/* ROUTE-21: a logic that registers no routees gets no router; the children that it made never
 * start. */
static void
logic_that_registers_nobody_is_refused(void)
{
    trp_system *system = crew_open();
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref router;

    options.custom = &careless_logic;
    UNIT_EQUAL(trp_system_router_spawn(system, NULL, NULL, "careless", &options, &router),
               TRP_EINIT);
    UNIT_EQUAL(atomic_load(&votes_alive), 0);
    options.custom = &votes_logic; /* name and children's names are free */
    UNIT_EQUAL(trp_system_router_spawn(system, NULL, NULL, "careless", &options, &router), TRP_OK);
    stage_close(system);
    UNIT_EQUAL(atomic_load(&crew_started), 2);
}

static void
route_mod(void *state, trp_route *route, trp_ref sender, const trp_msg *msg)
{
    (void)msg;
    UNIT_TRUE(state == &unregistered);
    UNIT_TRUE(trp_ref_is_none(trp_route_routee(route, trp_route_count(route))));
    trp_route_to(
        route,
        trp_route_routee(route, (uint32_t)(trp_route_number(route) / 2 % trp_route_count(route))),
        sender);
}

static const trp_routing_logic twice = {
    sizeof(trp_routing_logic), "two-each", NULL, route_mod, NULL, NULL, &unregistered
};

/* ROUTE-4, ROUTE-21: registered logic has a name like the built-in ones, once. */
static void
logic_is_found_by_its_name(void)
{
    static const trp_routing_logic same_name = TRP_ROUTING_LOGIC_INIT("two-each", route_mod);
    static const trp_routing_logic taken = TRP_ROUTING_LOGIC_INIT("random", route_mod);
    static const trp_routing_logic reserved = TRP_ROUTING_LOGIC_INIT("from-code", route_mod);
    trp_system *system = crew_open();
    trp_ref router, refs[CREW_MAX];

    UNIT_EQUAL(trp_routing_logic_register(&twice), TRP_OK);
    UNIT_EQUAL(trp_routing_logic_register(&twice), TRP_OK);
    UNIT_EQUAL(trp_routing_logic_register(&same_name), TRP_EEXIST);
    UNIT_EQUAL(trp_routing_logic_register(&taken), TRP_EEXIST);
    UNIT_EQUAL(trp_routing_logic_register(&reserved), TRP_EINVAL);
    router = crew_router(system, "pool", "two-each", 3);
    UNIT_EQUAL(crew_of(system, router, refs), 3);
    for (int i = 0; i < 12; i++) {
        trp_ref to = crew_route(system, router, &trp_string_type, "x", 1);

        UNIT_EQUAL(crew_index(refs, 3, to), i / 2 % 3);
    }
    stage_close(system);
}

/* TRPI_ROUTING_LOGICS_MAX in a process, and one more; the last test here, for none can be taken
 * back. */
static void
so_many_logics_are_registered_and_not_one_more(void)
{
    static trp_routing_logic many[TRPI_ROUTING_LOGICS_MAX];
    static char names[TRPI_ROUTING_LOGICS_MAX][16];
    trp_err err = TRP_OK;
    uint32_t made = 1, needs; /* "two-each" is there */

    UNIT_EQUAL(trp_routing_logic_register(&twice), TRP_OK);
    UNIT_TRUE(trpi_logic_find("two-each", &needs) == &twice);
    while (err == TRP_OK && made <= TRPI_ROUTING_LOGICS_MAX) {
        trp_routing_logic *logic = &many[made - 1];

        snprintf(names[made - 1], sizeof names[0], "logic%u", made);
        *logic = (trp_routing_logic)TRP_ROUTING_LOGIC_INIT(names[made - 1], route_mod);
        err = trp_routing_logic_register(logic);
        made += err == TRP_OK;
    }
    UNIT_EQUAL(err, TRP_ELIMIT);
    UNIT_EQUAL(made, TRPI_ROUTING_LOGICS_MAX);
    UNIT_EQUAL(trp_routing_logic_register(&many[0]), TRP_OK); /* it is there */
    UNIT_TRUE(trpi_logic_find("logic255", &needs) == &many[254]);
}

UNIT_BEGIN("custom")
UNIT(logic_of_ones_own_routes_by_what_it_reads)
UNIT(a_choice_can_be_looked_at_without_sending)
UNIT(logic_that_registers_nobody_is_refused)
UNIT(logic_is_found_by_its_name)
UNIT(so_many_logics_are_registered_and_not_one_more)
UNIT_END

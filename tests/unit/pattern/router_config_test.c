/* router_config_test.c - routers whose routing, size and bounds the configuration decides. */
#include "tests/unit/pattern/crew.h"

#include <troupe/config.h>

static trp_system *
open_with(const char *text)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_config *config = NULL;
    trp_config_error error = { "" };
    UNIT_EQUAL(trp_config_parse_text("t.conf", text, &config, &error), TRP_OK);
    UNIT_TEXT(error.text, "");
    UNIT_REQUIRE(config != NULL);
    options.config = config;
    trp_system *system = stage_open_with(options);
    trp_config_unref(config);
    return system;
}

/* How many routees one broadcast-like message would reach. */
static uint32_t
reach(trp_system *system, trp_ref router)
{
    trp_ref none = TRP_REF_NONE;
    trp_destination destinations[CREW_MAX];
    uint32_t count = 0;
    UNIT_EQUAL(trp_router_route(system, router, none, &trp_string_type, "x", 1, destinations,
                                CREW_MAX, &count),
               TRP_OK);
    return count;
}

/* ROUTE-3, -4, -5, CONF-9: the configuration wins over the code, by path and by "*" */
static void
configuration_decides_how_a_router_routes_and_over_whom(void)
{
    trp_system *system =
        open_with("deployment \"/front\" { router = broadcast nr-of-instances = 3 }\n"
                  "deployment \"/groups\" { router = broadcast-group\n"
                  "  routees { paths = { \"/user/one\", \"/user/two\" } } }\n"
                  "deployment \"/pool\" { router = random-pool nr-of-instances = 4 }\n"
                  "deployment \"/coded\" { nr-of-instances = 7 }\n"
                  "deployment \"/*\" { router = broadcast nr-of-instances = 2 }\n");
    stage_spawn(system, &crew_behaviour, "one");
    stage_spawn(system, &crew_behaviour, "two");
    trp_ref front = crew_router(system, "front", "round-robin", 9);
    UNIT_EQUAL(crew_count(system, front), 3);
    UNIT_EQUAL(reach(system, front), 3); /* to all: broadcast, not round-robin */
    trp_ref groups = crew_router(system, "groups", "round-robin", 9);
    UNIT_WAIT(crew_count(system, groups) == 2, 5000);
    trp_ref pool = crew_router(system, "pool", "broadcast", 1);
    UNIT_EQUAL(crew_count(system, pool), 4);
    UNIT_EQUAL(reach(system, pool), 1);
    /* from-code, which is what a section without `router` says: all as in the code */
    trp_ref coded = crew_router(system, "coded", "broadcast", 5);
    UNIT_EQUAL(crew_count(system, coded), 5);
    trp_ref other = crew_router(system, "other", "round-robin", 9);
    UNIT_EQUAL(crew_count(system, other), 2);
    stage_close(system);
}

/* ROUTE-24: on demand it is said that a section means a router and the code a plain actor. */
static void
a_router_section_of_a_plain_actor_is_warned_of(void)
{
    static const char section[] = "deployment \"/plain\" { router = random }\n"
                                  "deployment \"/coded\" { router = from-code }\n%s";
    for (int on = 0; on < 2; on++) {
        char text[256];
        snprintf(text, sizeof text, section,
                 on ? "actor { debug { router-misconfiguration = on } }\n" : "");
        trp_system *system = open_with(text);
        stage_spawn(system, &crew_behaviour, "plain");
        stage_spawn(system, &crew_behaviour, "coded");
        crew_router(system, "pool", NULL, 1);
        trp_system_log(system, TRP_LOG_WARNING, "test", "behind it");
        UNIT_WAIT(stage_book_has(&stage_lines, "behind it"), 5000);
        UNIT_EQUAL(stage_book_has(&stage_lines, "deployment \"/plain\" says router = random"), on);
        UNIT_FALSE(stage_book_has(&stage_lines, "/coded"));
        stage_close(system);
    }
}

/* ROUTE-3: a router that is to come from the configuration does, whatever the code says of it. */
static void
a_router_from_config_is_all_configured(void)
{
    trp_system *system = open_with("deployment \"/r\" { router = random nr-of-instances = 4 }\n");
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref ref;
    options.from_config = 1;
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, NULL, "r", &options, &ref), TRP_OK);
    UNIT_EQUAL(crew_count(system, ref), 4);
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, NULL, "s", &options, &ref),
               TRP_ECONFIG);
    stage_close(system);
}

/* ROUTE-19, CONF-9 */
static void
one_key_of_the_resizer_makes_a_pool_that_resizes(void)
{
    trp_system *system =
        open_with("deployment \"/elastic\" { router = round-robin resizer { lower-bound = 6 } }");
    trp_ref elastic = crew_router(system, "elastic", NULL, 1);
    UNIT_EQUAL(crew_count(system, elastic), 6); /* within its bounds from the start */
    stage_close(system);
}

/* A name that nobody registered is an error where the router is made, a slip one in the file. */
static void
wrong_router_names_are_refused(void)
{
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    trp_config *config = NULL;
    trp_config_error error = { "" };
    trp_system *system = open_with("deployment \"/a\" { router = our-own }");
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, NULL, "a", &options, &ref),
               TRP_ECONFIG);
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, NULL, "b", &options, &ref), TRP_OK);
    stage_close(system);
    UNIT_EQUAL(trp_config_parse_text("t.conf", "deployment \"/a\" {\n router = rond-robin }",
                                     &config, &error),
               TRP_ECONFIG);
    UNIT_TEXT(error.text, "t.conf:2: deployment./a.router: 'rond-robin' is unknown; did you mean "
                          "'round-robin'?");
    UNIT_EQUAL(trp_config_parse_text("t.conf", "deployment \"/a\" { nr-of-instance = 2 }", &config,
                                     &error),
               TRP_ECONFIG);
    UNIT_TEXT(error.text, "t.conf:1: no such option 'nr-of-instance' in deployment./a; did you "
                          "mean 'deployment.*.nr-of-instances'?");
    UNIT_EQUAL(trp_config_parse_text("t.conf", "deployment \"/a\" { resizer { backoff-rate = 2 } }",
                                     &config, &error),
               TRP_ECONFIG);
    UNIT_TEXT(error.text,
              "t.conf:1: deployment./a.resizer.backoff-rate: 2 is out of range: 0 to 1");
}

UNIT_BEGIN("router_config")
UNIT(configuration_decides_how_a_router_routes_and_over_whom)
UNIT(a_router_section_of_a_plain_actor_is_warned_of)
UNIT(a_router_from_config_is_all_configured)
UNIT(one_key_of_the_resizer_makes_a_pool_that_resizes)
UNIT(wrong_router_names_are_refused)
UNIT_END

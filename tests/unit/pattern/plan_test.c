/* plan_test.c - the settings of a router: code, overridden by configuration. */
#include "pattern/routing.h"
#include "tests/unit/pattern/crew.h"

static char error[256];

static trp_err
plan_set(trpi_router_plan *plan, const char *key, const char *value)
{
    error[0] = 0;
    return trpi_router_plan_set(plan, key, value, error, sizeof error);
}

/* ROUTE-3, -4, -5, -19: each key of a deployment section wins over the code. */
static void
every_key_of_a_section_beats_the_code(void)
{
    static const char *const code_paths[] = { "/user/x", NULL };
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref one = { 1, 2, 3, 0 };
    trpi_router_plan plan;

    options.logic = "random";
    options.instances = 3;
    options.routees = &one;
    options.routees_count = 1;
    options.routee_paths = code_paths;
    UNIT_EQUAL(trpi_router_plan_init(&plan, &options), TRP_OK);
    UNIT_EQUAL(plan_set(&plan, "router", "from-code"), TRP_OK);
    UNIT_TEXT(plan.logic, "random");
    static const char *const ready[] = { "round-robin",        "random",    "smallest-mailbox",
                                         "scatter-gather",     "broadcast", "tail-chopping",
                                         "consistent-hashing", "balancing" };
    for (size_t i = 0; i < sizeof ready / sizeof ready[0]; i++) { /* ROUTE-4 */
        UNIT_EQUAL(plan_set(&plan, "router", ready[i]), TRP_OK);
        UNIT_TEXT(plan.logic, ready[i]);
    }
    UNIT_EQUAL(plan_set(&plan, "router", "scatter-gather"), TRP_OK);
    UNIT_TEXT(plan.logic, "scatter-gather");
    UNIT_EQUAL(plan_set(&plan, "nr-of-instances", "17"), TRP_OK);
    UNIT_EQUAL(plan.instances, 17);
    UNIT_EQUAL(plan.routees_count, 1);
    UNIT_EQUAL(plan_set(&plan, "routees.paths", "/user/a, /user/b"), TRP_OK);
    UNIT_EQUAL(plan_set(&plan, "routees.paths+", "/user/c"), TRP_OK);
    UNIT_EQUAL(plan.routees_count, 0);
    UNIT_EQUAL(plan.paths.texts_count, 3);
    UNIT_TEXT(plan.paths.texts[0], "/user/a");
    UNIT_TEXT(plan.paths.texts[1], "/user/b");
    UNIT_TEXT(plan.paths.texts[2], "/user/c");
    UNIT_EQUAL(plan_set(&plan, "within", "10 seconds"), TRP_OK);
    UNIT_EQUAL(plan.within_ms, 10000);
    UNIT_EQUAL(plan_set(&plan, "within", "1500"), TRP_OK);
    UNIT_EQUAL(plan.within_ms, 1500);
    UNIT_EQUAL(plan_set(&plan, "tail-chopping-router.interval", "2m"), TRP_OK);
    UNIT_EQUAL(plan.interval_ms, 120000);
    UNIT_EQUAL(plan_set(&plan, "virtual-nodes-factor", "20"), TRP_OK);
    UNIT_EQUAL(plan.virtual_nodes, 20);
    UNIT_EQUAL(plan_set(&plan, "router-dispatcher", "pinned"), TRP_OK);
    UNIT_TEXT(plan.dispatcher, "pinned");
    UNIT_FALSE(plan.resizes);
    UNIT_EQUAL(plan_set(&plan, "resizer.lower-bound", "2"), TRP_OK); /* a part of it enables it */
    UNIT_TRUE(plan.resizes && plan.resizer.upper_bound == 10);
    UNIT_EQUAL(plan_set(&plan, "resizer.upper-bound", "15"), TRP_OK);
    UNIT_EQUAL(plan_set(&plan, "resizer.pressure-threshold", "0"), TRP_OK);
    UNIT_EQUAL(plan_set(&plan, "resizer.rampup-rate", "0.5"), TRP_OK);
    UNIT_EQUAL(plan_set(&plan, "resizer.backoff-threshold", "-1"), TRP_OK);
    UNIT_EQUAL(plan_set(&plan, "resizer.backoff-rate", "0.25"), TRP_OK);
    UNIT_EQUAL(plan_set(&plan, "resizer.stop-delay", "0s"), TRP_OK);
    UNIT_EQUAL(plan_set(&plan, "resizer.messages-per-resize", "1"), TRP_OK);
    UNIT_TRUE(plan.resizer.lower_bound == 2 && plan.resizer.upper_bound == 15 &&
              plan.resizer.pressure_threshold == 0 && plan.resizer.rampup_rate == 0.5 &&
              plan.resizer.backoff_threshold == -1 && plan.resizer.backoff_rate == 0.25 &&
              plan.resizer.stop_delay_ms == 0 && plan.resizer.messages_per_resize == 1);
    UNIT_EQUAL(plan_set(&plan, "colour", "green"), TRP_OK); /* for logic of one's own */
    UNIT_TEXT(trpi_router_plan_setting(&plan, "colour"), "green");
    UNIT_EQUAL(trpi_router_plan_check(&plan, error, sizeof error), TRP_OK);
    trpi_router_plan_fini(&plan);
}

/* ROUTE-3: a wrong value is refused with its reason. */
static void
wrong_values_are_refused_by_name(void)
{
    static const char *const wrong[][2] = {
        { "router", "robin" },
        { "nr-of-instances", "0" },
        { "nr-of-instances", "-1" },
        { "nr-of-instances", "5 x" },
        { "within", "soon" },
        { "within", "5 fortnights" },
        { "within", "0s" },
        { "virtual-nodes-factor", "0" },
        { "resizer.lower-bound", "two" },
        { "resizer.rampup-rate", "much" },
        { "resizer.rampup-rate", "nan" },
        { "resizer.rampup-rate", "0x1" },
        { "resizer.stop-delay", "-1s" },
        { "resizer.colour", "green" },
    };
    trpi_router_plan plan;

    UNIT_EQUAL(trpi_router_plan_init(&plan, NULL), TRP_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (!UNIT_EQUAL(plan_set(&plan, wrong[i][0], wrong[i][1]), TRP_ECONFIG) ||
            !UNIT_TRUE(strstr(error, wrong[i][0]) != NULL)) {
            printf("  %s = %s: %s\n", wrong[i][0], wrong[i][1], error);
        }
    }
    trpi_router_plan_fini(&plan);
}

/* ROUTE-19: bounds at and one past the limit. */
static void
a_plan_is_checked_as_a_whole(void)
{
    static const struct {
        const char *key, *value, *key2, *value2;
        trp_err want;
    } rows[] = {
        { "resizer.lower-bound", "1", "resizer.upper-bound", "1", TRP_OK },
        { "resizer.lower-bound", "2", "resizer.upper-bound", "1", TRP_EINVAL },
        { "resizer.lower-bound", "0", "resizer.upper-bound", "1", TRP_EINVAL },
        { "resizer.upper-bound", "65536", NULL, NULL, TRP_OK },
        { "resizer.upper-bound", "65537", NULL, NULL, TRP_EINVAL },
        { "resizer.messages-per-resize", "0", NULL, NULL, TRP_EINVAL },
        { "resizer.rampup-rate", "-0.1", NULL, NULL, TRP_EINVAL },
        { "resizer.backoff-rate", "1.0", NULL, NULL, TRP_OK },
        { "resizer.backoff-rate", "1.1", NULL, NULL, TRP_EINVAL },
        { "virtual-nodes-factor", "1000", NULL, NULL, TRP_OK },
        { "virtual-nodes-factor", "1001", NULL, NULL, TRP_EINVAL },
        { "nr-of-instances", "65536", NULL, NULL, TRP_OK },
        { "nr-of-instances", "65537", NULL, NULL, TRP_ELIMIT },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        trpi_router_plan plan;

        UNIT_EQUAL(trpi_router_plan_init(&plan, NULL), TRP_OK);
        UNIT_EQUAL(plan_set(&plan, rows[i].key, rows[i].value), TRP_OK);
        if (rows[i].key2 != NULL) {
            UNIT_EQUAL(plan_set(&plan, rows[i].key2, rows[i].value2), TRP_OK);
        }
        if (!UNIT_EQUAL(trpi_router_plan_check(&plan, error, sizeof error), rows[i].want)) {
            printf("  row %zu\n", i);
        }
        trpi_router_plan_fini(&plan);
    }
}

/* ROUTE-3: a router that is to come from the configuration needs a section. */
static void
from_config_without_a_section_is_an_error(void)
{
    trp_system *system = crew_open();
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref ref;

    options.from_config = 1;
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, NULL, "r", &options, &ref),
               TRP_ECONFIG);
    UNIT_WAIT(stage_book_has(&stage_lines, "/user/r: no router: "), 5000);
    stage_close(system);
}

UNIT_BEGIN("plan")
UNIT(every_key_of_a_section_beats_the_code)
UNIT(wrong_values_are_refused_by_name)
UNIT(a_plan_is_checked_as_a_whole)
UNIT(from_config_without_a_section_is_an_error)
UNIT_END

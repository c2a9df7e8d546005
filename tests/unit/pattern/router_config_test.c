/* router_config_test.c - routers whose routing, size and bounds the configuration decides. */
#include "tests/unit/pattern/crew.h"

#include <troupe/config.h>
#include <troupe/mailbox.h>

/* How many routees one broadcast-like message would reach. */
static uint32_t
routees_reached(trp_system *system, trp_ref router)
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
        stage_open_config("deployment \"/front\" { router = broadcast nr-of-instances = 3 }\n"
                          "deployment \"/groups\" { router = broadcast-group\n"
                          "  routees { paths = { \"/user/one\", \"/user/two\" } } }\n"
                          "deployment \"/pool\" { router = random-pool nr-of-instances = 4 }\n"
                          "deployment \"/coded\" { nr-of-instances = 7 }\n"
                          "deployment \"/*\" { router = broadcast nr-of-instances = 2 }\n");
    stage_spawn(system, &crew_behaviour, "one");
    stage_spawn(system, &crew_behaviour, "two");
    trp_ref front = crew_router(system, "front", "round-robin", 9);
    UNIT_EQUAL(crew_count(system, front), 3);
    UNIT_EQUAL(routees_reached(system, front), 3); /* to all: broadcast, not round-robin */
    trp_ref groups = crew_router(system, "groups", "round-robin", 9);
    UNIT_WAIT(crew_count(system, groups) == 2, 5000);
    trp_ref pool = crew_router(system, "pool", "broadcast", 1);
    UNIT_EQUAL(crew_count(system, pool), 4);
    UNIT_EQUAL(routees_reached(system, pool), 1);
    /* from-code, which is what a section without `router` says: all as in the code */
    trp_ref coded = crew_router(system, "coded", "broadcast", 5);
    UNIT_EQUAL(crew_count(system, coded), 5);
    trp_ref other = crew_router(system, "other", "round-robin", 9);
    UNIT_EQUAL(crew_count(system, other), 2);
    stage_close(system);
}

/* ROUTE-24, TEST-14, LOG-13: on demand it is said that a section means a router and the code a
 * plain actor. */
static void
a_router_section_of_a_plain_actor_is_warned_of(void)
{
    static const char section[] = "deployment \"/plain\" { router = random }\n"
                                  "deployment \"/coded\" { router = from-code }\n%s";
    for (int on = 0; on < 2; on++) {
        char text[256];
        snprintf(text, sizeof text, section,
                 on ? "actor { debug { router-misconfiguration = on } }\n" : "");
        trp_system *system = stage_open_config(text);
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
    trp_system *system =
        stage_open_config("deployment \"/r\" { router = random nr-of-instances = 4 }\n");
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref ref;
    options.from_config = 1;
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, NULL, "r", &options, &ref), TRP_OK);
    UNIT_EQUAL(crew_count(system, ref), 4);
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, NULL, "s", &options, &ref),
               TRP_ECONFIG);
    stage_close(system);
}

/* Logic of one's own that notes its settings. */
static trp_err
tuned_create(void *arg, trp_routee_provider *provider, void **ret_state)
{
    static const char *const keys[] = { "radius", "unit", "empty", "of" };

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *value = trp_routee_setting(provider, keys[i]);

        stage_note("%s=%s", keys[i], value == NULL ? "(none)" : value);
    }
    *ret_state = arg;
    return trp_routees_create(provider, 1);
}
static void
tuned_route(void *state, trp_route *route, trp_ref sender, const trp_msg *msg)
{
    (void)state;
    (void)msg;
    trp_route_to_all(route, sender);
}

/* ROUTE-21: a section has keys of the logic's own, stronger than those of the code */
static void
logic_of_ones_own_has_settings_in_its_section(void)
{
    static const trp_routing_logic tuned = {
        sizeof(trp_routing_logic), "tuned", tuned_create, tuned_route, NULL, NULL, NULL
    };
    static const char *const coded[] = { "radius=1", "unit=m", NULL };
    trp_system *system =
        stage_open_config("deployment \"/r\" { router = tuned\n"
                          "  logic-settings = { \"radius=3\", \"empty=\", \"of=a=b\" } }\n");
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_config_error error = { "" };
    trp_config *config = NULL;
    trp_ref ref;

    UNIT_EQUAL(trp_routing_logic_register(&tuned), TRP_OK);
    options.settings = coded;
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, NULL, "r", &options, &ref), TRP_OK);
    STAGE_EXPECT("radius=3 unit=m empty= of=a=b");
    stage_close(system);

    UNIT_EQUAL(trp_config_parse_text("t.conf", "deployment \"/r\" { logic-settings = { radius } }",
                                     &config, &error),
               TRP_ECONFIG);
    UNIT_TEXT(error.text, "t.conf:1: deployment./r.logic-settings: 'radius' is no setting: write "
                          "KEY=VALUE");
}

/* ---- a router among mailboxes ---------------------------------------------------------------- */

static _Atomic int mailboxes_made, mailboxes_freed;

typedef struct shelf {
    trp_msg *msgs[64];
    uint32_t count;
} shelf;
static trp_err
shelf_create(void *arg, trp_system *system, trp_ref owner, void **ret_mailbox)
{
    (void)arg;
    (void)system;
    (void)owner;
    *ret_mailbox = calloc(1, sizeof(shelf));
    atomic_fetch_add(&mailboxes_made, 1);
    return *ret_mailbox == NULL ? TRP_ENOMEM : TRP_OK;
}
static trp_err
shelf_enqueue(void *mailbox, trp_ref receiver, trp_msg *msg)
{
    shelf *s = mailbox;

    (void)receiver;
    if (s->count == 64) {
        return TRP_EAGAIN;
    }
    s->msgs[s->count++] = msg;
    return TRP_OK;
}
static trp_msg *
shelf_dequeue(void *mailbox)
{
    shelf *s = mailbox;
    trp_msg *first = s->count == 0 ? NULL : s->msgs[0];

    if (first != NULL) {
        memmove(s->msgs, s->msgs + 1, --s->count * sizeof s->msgs[0]);
    }
    return first;
}
static uint32_t
shelf_count(void *mailbox)
{
    return ((const shelf *)mailbox)->count;
}
static int
shelf_has(void *mailbox)
{
    return ((const shelf *)mailbox)->count > 0;
}
static void
shelf_clean_up(void *mailbox, void (*dead)(void *arg, trp_msg *msg), void *arg)
{
    trp_msg *msg;

    while ((msg = shelf_dequeue(mailbox)) != NULL) {
        dead(arg, msg);
    }
}
static void
shelf_destroy(void *mailbox)
{
    free(mailbox);
    atomic_fetch_add(&mailboxes_freed, 1);
}

/* MBOX-6, ROUTE-1: a router has the plain mailbox whatever the default is, its routees have the
 * default; none is lost on the way */
static void
a_router_under_another_default_mailbox_works_and_loses_none(void)
{
    static const trp_mailbox_ops ops = { sizeof(trp_mailbox_ops), shelf_create,  shelf_enqueue,
                                         shelf_dequeue,           shelf_count,   shelf_has,
                                         shelf_clean_up,          shelf_destroy, NULL };
    trp_mailbox_options options = TRP_MAILBOX_OPTIONS_INIT;
    trp_mailbox_view view;
    trp_ref router, refs[CREW_MAX];
    trp_system *system = crew_open();

    atomic_store(&mailboxes_made, 0);
    atomic_store(&mailboxes_freed, 0);
    options.kind = TRP_MAILBOX_KIND_CUSTOM;
    options.ops = &ops;
    UNIT_EQUAL(trp_mailbox_register(system, "default-mailbox", &options), TRP_OK);
    router = crew_router(system, "pool", "broadcast", 3);
    UNIT_EQUAL(crew_of(system, router, refs), 3);
    UNIT_EQUAL(trp_mailbox_look(system, router, &view), TRP_OK);
    UNIT_EQUAL(view.exact, 0); /* it has the plain mailbox */
    UNIT_EQUAL(trp_mailbox_look(system, refs[0], &view), TRP_OK);
    UNIT_EQUAL(view.exact, 1);
    stage_tell(system, router, "x");
    UNIT_WAIT(stage_count(":x") == 3, 30000);
    UNIT_EQUAL(trp_system_graceful_stop(system, router, 30000), TRP_OK);
    stage_close(system); /* mailboxes are retired: freed with the system at the latest */
    UNIT_TRUE(atomic_load(&mailboxes_made) >= 3);
    UNIT_EQUAL(atomic_load(&mailboxes_freed), atomic_load(&mailboxes_made));
}

/* ROUTE-19, CONF-9 */
static void
one_key_of_the_resizer_makes_a_pool_that_resizes(void)
{
    trp_system *system = stage_open_config(
        "deployment \"/elastic\" { router = round-robin resizer { lower-bound = 6 } }");
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
    trp_system *system = stage_open_config("deployment \"/a\" { router = our-own }");
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
UNIT(logic_of_ones_own_has_settings_in_its_section)
UNIT(a_router_under_another_default_mailbox_works_and_loses_none)
UNIT_END

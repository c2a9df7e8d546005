/* resizer_test.c - the arithmetic of the default resizer, and pools that follow it. */
#include "tests/unit/pattern/crew.h"

typedef struct row {
    uint32_t lower, upper;
    double rampup, threshold, backoff;
    uint32_t routees, busy;
    int32_t change;
} row;

/* ROUTE-19: the examples of the reference configuration, each bound, and one past it. */
static void
the_arithmetic_of_the_default_resizer(void)
{
    static const row rows[] = {
        /* all are busy: grow by the rate, rounded up; one idle: no */
        { 1, 100, 0.2, 0.3, 0.1, 6, 6, 2 },
        { 1, 100, 0.2, 0.3, 0.1, 6, 5, 0 },
        { 1, 100, 0.2, 0.3, 0.1, 5, 5, 1 },
        { 1, 100, 0.2, 0.3, 0.1, 10, 10, 2 },
        { 1, 100, 0.2, 0.3, 0.1, 11, 11, 3 },
        { 1, 100, 0.0, 0.3, 0.1, 11, 11, 0 },
        { 1, 100, 1.0, 0.3, 0.1, 11, 11, 11 },
        /* the upper bound */
        { 1, 7, 0.2, 0.3, 0.1, 6, 6, 1 },
        { 1, 6, 0.2, 0.3, 0.1, 6, 6, 0 },
        { 1, 5, 0.2, 0.3, 0.1, 6, 6, -1 },
        /* fewer than the threshold are busy: shrink by the rate, rounded up */
        { 1, 100, 0.2, 0.3, 0.1, 10, 3, 0 },
        { 1, 100, 0.2, 0.3, 0.1, 10, 2, -1 },
        { 1, 100, 0.2, 0.3, 0.1, 9, 0, -1 },
        { 1, 100, 0.2, 0.3, 0.1, 10, 0, -1 },
        { 1, 100, 0.2, 0.3, 0.1, 11, 0, -2 },
        { 1, 100, 0.2, 0.3, 0.5, 7, 1, -4 },
        { 1, 100, 0.2, 0.0, 0.1, 10, 0, 0 },
        { 1, 100, 0.2, -1.0, 0.1, 10, 0, 0 },
        { 1, 100, 0.2, 0.3, 0.0, 10, 0, 0 },
        /* the lower bound */
        { 9, 100, 0.2, 0.3, 0.5, 10, 0, -1 },
        { 10, 100, 0.2, 0.3, 0.5, 10, 0, 0 },
        { 11, 100, 0.2, 0.3, 0.5, 10, 0, 1 },
        { 2, 15, 0.2, 0.3, 0.1, 0, 0, 2 },
        { 1, 10, 0.2, 0.3, 0.1, 1, 0, 0 },
        { 1, 10, 0.2, 0.3, 0.1, 1, 1, 1 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const row *r = &rows[i];
        trp_resizer_options options = TRP_RESIZER_OPTIONS_INIT;
        int32_t change;

        options.lower_bound = r->lower;
        options.upper_bound = r->upper;
        options.rampup_rate = r->rampup;
        options.backoff_threshold = r->threshold;
        options.backoff_rate = r->backoff;
        change = trp_resizer_capacity(&options, r->routees, r->busy);
        if (!UNIT_EQUAL(change, r->change)) {
            printf("  row %zu\n", i);
        }
    }
    UNIT_EQUAL(trp_resizer_capacity(NULL, 5, 5), 1); /* the defaults: 1 to 10, 0.2 */
    UNIT_EQUAL(trp_resizer_capacity(NULL, 10, 10), 0);
    UNIT_EQUAL(trp_resizer_capacity(NULL, 10, 2), -1);
}

static trp_ref
open_pool(trp_system *system, const trp_resizer_options *resizer)
{
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;

    options.resizer = resizer;
    options.instances = 7; /* a resizer decides */
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, NULL, "pool", &options, &ref),
               TRP_OK);
    return ref;
}

/* Make all routees busy, and each have `more` messages behind that. */
static void
routees_press(trp_system *system, trp_ref router, uint32_t count, int more)
{
    trp_ref refs[CREW_MAX];

    UNIT_EQUAL(crew_of(system, router, refs), count);
    for (uint32_t i = 0; i < count; i++) {
        stage_tell(system, router, "hold");
        UNIT_WAIT(atomic_load(&crew_held) == (int)i + 1, 5000); /* or it counts as waiting */
    }
    for (uint32_t i = 0; i < count * (uint32_t)more; i++) {
        stage_tell(system, router, "queued");
    }
}

/* Tell the pool a message that only triggers a check of the load, and wait until it is handled, so
 * that these do not accumulate. Returns how many routees there are then. */
static uint32_t
look_when_idle(trp_system *system, trp_ref router, size_t *told)
{
    stage_tell(system, router, "idle");
    ++*told;
    UNIT_WAIT(stage_count(":idle") == *told, 5000);
    return crew_count(system, router);
}

/* ROUTE-19, ROUTE-20: pressure 0 (at a message), a check every second message, growth one step a
 * check up to the upper bound; then idle, down to the lower bound; routees that are removed have
 * handled all their messages. */
static void
a_pool_grows_under_pressure_and_shrinks_when_idle(void)
{
    trp_resizer_options resizer = TRP_RESIZER_OPTIONS_INIT;
    trp_system *system = crew_open();
    size_t told = 0;
    trp_ref router;

    resizer.lower_bound = 2;
    resizer.upper_bound = 4;
    resizer.pressure_threshold = 0;
    resizer.messages_per_resize = 1;
    resizer.stop_delay_ms = 20;
    resizer.backoff_threshold = 0.5; /* of three, the one that is told may be busy at the look */
    router = open_pool(system, &resizer);
    UNIT_EQUAL(crew_count(system, router), 2); /* from the start */
    stage_tell(system, router, "hold");
    stage_tell(system, router, "hold");
    UNIT_WAIT(atomic_load(&crew_held) == 2, 5000);
    /* goes to one that is busy: resizing comes later */
    UNIT_WAIT((stage_tell(system, router, "more"), crew_count(system, router) >= 3), 5000);
    UNIT_WAIT((stage_tell(system, router, "hold"), crew_count(system, router) == 4), 5000);
    for (int i = 0; i < 20; i++) {
        stage_tell(system, router, "hold");
    }
    UNIT_EQUAL(crew_count(system, router), 4);
    atomic_store(&crew_gate, 1);
    UNIT_WAIT(look_when_idle(system, router, &told) == 2, 5000);
    UNIT_WAIT(atomic_load(&crew_stopped) >= 2, 5000); /* by a poison pill, after the delay */
    stage_close(system);
}

/* ROUTE-19: pressure 1 counts those with mail behind the present message, 2 those with two. */
static void
pressure_counts_what_the_threshold_says(void)
{
    for (uint32_t threshold = 1; threshold <= 2; threshold++) {
        trp_resizer_options resizer = TRP_RESIZER_OPTIONS_INIT;
        trp_system *system = crew_open();
        trp_add_routee nobody = { TRP_REF_NONE };
        trp_ref router;

        resizer.lower_bound = 2;
        resizer.upper_bound = 3;
        resizer.pressure_threshold = threshold;
        resizer.backoff_threshold = 0;
        resizer.messages_per_resize = 1;
        router = open_pool(system, &resizer);
        routees_press(system, router, 2, (int)threshold - 1);
        /* so far nobody has been pressed; an order that is refused shows that the head is through
         */
        UNIT_EQUAL(crew_count(system, router), 2);
        trp_system_tell(system, router, &trp_add_routee_type, &nobody, sizeof nobody);
        UNIT_WAIT(stage_book_has(&stage_lines, "a routee was not added"), 5000);
        UNIT_EQUAL(crew_count(system, router), 2);
        stage_tell(system, router, "one more");
        stage_tell(system, router, "one more"); /* each has `threshold` messages now */
        /* again and again: none is ordered while one is under way, which may have come too early */
        UNIT_WAIT((stage_tell(system, router, "look"), crew_count(system, router) == 3), 5000);
        atomic_store(&crew_gate, 1);
        stage_close(system);
    }
}

/* ROUTE-19, ROUTE-20: every tenth message. */
static void
messages_between_two_looks_are_counted(void)
{
    trp_resizer_options resizer = TRP_RESIZER_OPTIONS_INIT;
    trp_system *system = crew_open();
    trp_ref router;

    resizer.pressure_threshold = 0;
    resizer.backoff_threshold = 0;
    router = open_pool(system, &resizer); /* number 0 was the look at its birth */
    stage_tell(system, router, "hold");
    UNIT_WAIT(atomic_load(&crew_held) == 1, 5000);
    UNIT_EQUAL(crew_count(system, router), 1);
    for (int i = 0; i < 8; i++) {
        stage_tell(system, router, "x");
    }
    UNIT_EQUAL(crew_count(system, router), 1);
    stage_tell(system, router, "the tenth");
    UNIT_WAIT(crew_count(system, router) == 2, 5000);
    atomic_store(&crew_gate, 1);
    stage_close(system);
}

static int
own_is_time(void *arg, uint64_t number)
{
    (void)arg;
    return number == 3;
}
static int32_t
own_capacity(void *arg, const trp_routee_load *routees, uint32_t count)
{
    *(_Atomic uint32_t *)arg += count;
    return count == 0 ? 1 : count == 1 && trp_ref_is_none(routees[0].ref) ? -1 : 4;
}

/* ROUTE-22 */
static void
a_resizer_of_ones_own_decides(void)
{
    static _Atomic uint32_t seen;
    trp_resizer resizer = { sizeof resizer, own_is_time, own_capacity, 0, 0, &seen };
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_system *system = crew_open();
    trp_ref router;

    atomic_store(&seen, 0);
    options.own_resizer = &resizer;
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, NULL, "pool", &options, &router),
               TRP_OK);
    UNIT_EQUAL(crew_count(system, router), 1);
    for (int i = 0; i < 2; i++) {
        stage_tell(system, router, "x");
    }
    UNIT_WAIT(stage_count(":x") == 2, 5000);
    UNIT_EQUAL(crew_count(system, router), 1);
    stage_tell(system, router, "x");
    UNIT_WAIT(crew_count(system, router) == 5, 5000);
    UNIT_EQUAL(atomic_load(&seen), 1);
    resizer.capacity = NULL;
    UNIT_EQUAL(trp_system_router_spawn(system, &crew_behaviour, NULL, "no", &options, &router),
               TRP_EINVAL);
    stage_close(system);
}

/* ROUTE-18: a pool that resizes does not end with its last routee. */
static void
a_pool_that_resizes_survives_its_routees(void)
{
    trp_resizer_options resizer = TRP_RESIZER_OPTIONS_INIT;
    trp_system *system = crew_open();
    trp_ref none = TRP_REF_NONE, router;

    resizer.messages_per_resize = 1;
    router = open_pool(system, &resizer);
    trp_system_router_broadcast(system, router, none, &trp_poison_pill_type, NULL, 0);
    UNIT_WAIT(crew_count(system, router) == 0, 5000);
    stage_tell(system, router, "lost, but it has a look");
    UNIT_WAIT(crew_count(system, router) == 1, 5000);
    stage_tell(system, router, "back");
    UNIT_WAIT(stage_has(":back"), 5000);
    stage_close(system);
}

UNIT_BEGIN("resizer")
UNIT(the_arithmetic_of_the_default_resizer)
UNIT(a_pool_grows_under_pressure_and_shrinks_when_idle)
UNIT(pressure_counts_what_the_threshold_says)
UNIT(messages_between_two_looks_are_counted)
UNIT(a_resizer_of_ones_own_decides)
UNIT(a_pool_that_resizes_survives_its_routees)
UNIT_END

/* fsm_samples_test.c - the samples of state machines: the buncher as the document tests it, and the
 * philosophers under seeds. */
#include <troupe/seeded.h>
#include <troupe/troupe.h>

int buncher_main(void);
int philosophers_main(void);
#define main buncher_main
#include "examples/buncher.c"
#undef main
#define main philosophers_main
#undef printf                 /* with a fortified clang it is a macro */
#define printf(...) ((void)0) /* it is run a hundred times */
#include "examples/philosophers.c"
#undef main
#undef printf

#include "tests/unit/pattern/door.h"

static void
is_batch(trp_testkit *kit, const int64_t *items, size_t count)
{
    UNIT_TRUE(trp_probe_expect(trp_testkit_probe(kit), TRP_TEST_TIME, &trp_bytes_type, items,
                               count * sizeof *items) != NULL);
}

static void
queue(trp_testkit *kit, trp_ref ref, int64_t item)
{
    trp_system_tell(trp_testkit_system(kit), ref, &bunch_queue_type, &(bunch_queue){ item }, 0);
    (void)trp_testkit_advance(kit, 0);
}

/* FSM-17: as the document's test: by a pause, by a flush, and nothing without a target. */
static void
the_buncher_passes_a_burst_on(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_probe *probe = trp_testkit_probe(kit);
    trp_ref ref = TRP_REF_NONE;
    UNIT_EQUAL(trp_protocol_register(&bunch_protocol), TRP_OK);
    UNIT_EQUAL(trp_system_spawn(trp_testkit_system(kit), &buncher, NULL, &ref), TRP_OK);
    queue(kit, ref, 42); /* no target yet: it is not kept */
    UNIT_EQUAL(trp_testkit_advance(kit, 10 * BUNCH_PAUSE_MS), TRP_OK);
    DOOR_QUIET(kit);
    trp_system_tell(trp_testkit_system(kit), ref, &bunch_set_target_type,
                    &(bunch_set_target){ trp_probe_ref(probe) }, 0);
    queue(kit, ref, 42);
    UNIT_EQUAL(trp_testkit_advance(kit, BUNCH_PAUSE_MS - 1), TRP_OK);
    queue(kit, ref, 43); /* the pause begins anew */
    UNIT_EQUAL(trp_testkit_advance(kit, BUNCH_PAUSE_MS - 1), TRP_OK);
    DOOR_QUIET(kit);
    UNIT_EQUAL(trp_testkit_advance(kit, 1), TRP_OK);
    is_batch(kit, (int64_t[]){ 42, 43 }, 2);
    queue(kit, ref, 44);
    trp_system_tell(trp_testkit_system(kit), ref, &bunch_flush_type, &(bunch_flush){ 0 }, 0);
    queue(kit, ref, 45);
    is_batch(kit, (int64_t[]){ 44 }, 1);
    UNIT_EQUAL(trp_testkit_advance(kit, BUNCH_PAUSE_MS), TRP_OK);
    is_batch(kit, (int64_t[]){ 45 }, 1);
    DOOR_QUIET(kit);
    door_kit_close(kit);
}

/* FSM-17: one more than it has room for is not kept, and the rest is. */
static void
the_buncher_has_a_limit(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_ref ref = TRP_REF_NONE;
    int64_t all[BUNCH_MAX];
    UNIT_EQUAL(trp_protocol_register(&bunch_protocol), TRP_OK);
    UNIT_EQUAL(trp_system_spawn(trp_testkit_system(kit), &buncher, NULL, &ref), TRP_OK);
    trp_system_tell(trp_testkit_system(kit), ref, &bunch_set_target_type,
                    &(bunch_set_target){ trp_probe_ref(trp_testkit_probe(kit)) }, 0);
    for (int64_t i = 0; i <= BUNCH_MAX; i++) {
        queue(kit, ref, i);
        all[i % BUNCH_MAX] = i == BUNCH_MAX ? 0 : i;
    }
    UNIT_EQUAL(trp_testkit_advance(kit, BUNCH_PAUSE_MS), TRP_OK);
    is_batch(kit, all, BUNCH_MAX);
    door_kit_close(kit);
}

static trp_ref seated[PHILOSOPHERS];

/* Whether two neighbours eat is asked of the machines themselves, between two turns. */
static bool
neighbours_eat(trp_testkit *kit)
{
    bool eats[PHILOSOPHERS];
    for (int i = 0; i < PHILOSOPHERS; i++) {
        const struct philosopher *p = trp_testkit_state(kit, seated[i]);
        eats[i] = p != NULL && trp_fsm_now(&p->fsm) == EATING;
    }
    for (int i = 0; i < PHILOSOPHERS; i++) {
        if (eats[i] && eats[(i + 1) % PHILOSOPHERS]) {
            return true;
        }
    }
    return false;
}

static int
all_are_full(void *arg)
{
    TRP_TESTKIT_CHECK(arg, !neighbours_eat(arg));
    return atomic_load(&meals_eaten) == PHILOSOPHERS * MEALS;
}

static void
dinner(trp_testkit *kit, void *arg)
{
    (void)arg;
    atomic_store(&meals_eaten, 0);
    TRP_TESTKIT_CHECK(kit, lay_table(trp_testkit_system(kit), seated) == TRP_OK);
    trp_probe_await(trp_testkit_probe(kit), 60000, 1, all_are_full, kit);
}

/* FSM-1: nobody starves and neighbours never eat together, in whatever order things happen. */
static void
philosophers_eat_and_never_beside_each_other(void)
{
    trp_seeded_options options = TRP_SEEDED_OPTIONS_INIT;
    options.seeds = 100;
    UNIT_EQUAL(trp_seeded_run(dinner, NULL, &options, NULL), TRP_OK);
}

UNIT_BEGIN("fsm-samples")
UNIT(the_buncher_passes_a_burst_on)
UNIT(the_buncher_has_a_limit)
UNIT(philosophers_eat_and_never_beside_each_other)
UNIT_END

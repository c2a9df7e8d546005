/* observe_test.c - figures of actors that are made only while somebody looks. */
#include <stdlib.h>

#include <troupe/dispatcher.h>

#include "actor/actor.h"
#include "base/world_virtual.h"
#include "tests/unit/actor/stage.h"

static _Atomic bool let_go;

static trp_err
box_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    if (stage_said(msg, "hold")) {
        stage_hold("held", &let_go);
    } else if (stage_said(msg, "work")) {
        unit_pause();
    } else if (stage_said(msg, "fail")) {
        return TRP_EIO;
    }
    return TRP_OK;
}
static const trp_behaviour box = {
    .size = sizeof(trp_behaviour), .name = "box", .version = 1, .receive = box_receive
};

static trpi_observed *
look(trp_system *system)
{
    static trpi_observed seen;

    UNIT_EQUAL(trpi_system_observe(system, &seen), TRP_OK);
    return &seen;
}

static const trpi_observed_name *
named(const trpi_observed_names *names, const char *name)
{
    static const trpi_observed_name none;

    for (uint32_t i = 0; i < names->count; i++) {
        if (strcmp(names->entries[i].name, name) == 0) {
            return &names->entries[i];
        }
    }
    return &none;
}

static const trpi_observed_actor *
row_of(const trpi_observed *seen, trp_ref ref)
{
    static const trpi_observed_actor none;

    for (uint32_t i = 0; i < seen->rows_count; i++) {
        if (trp_ref_equal(seen->rows[i].ref, ref)) {
            return &seen->rows[i];
        }
    }
    return &none;
}

static uint64_t
times_count(const trpi_observed_times *times)
{
    uint64_t all = 0;

    for (uint32_t i = 0; i <= TRPI_OBSERVED_BOUNDS; i++) {
        all += times->buckets[i];
    }
    return all;
}

/* Metrics: actors by behaviour and dispatcher, after a walk and not before */
static void
actors_are_counted_by_behaviour_and_dispatcher(void)
{
    trp_system *system = stage_open();

    UNIT_TRUE(!look(system)->complete);
    for (int i = 0; i < 30; i++) {
        char name[16];

        snprintf(name, sizeof name, "b%d", i);
        (void)stage_spawn(system, &box, name);
    }
    UNIT_WAIT(named(&look(system)->behaviours, "box")->actors == 30, 60000);
    UNIT_TRUE(look(system)->complete);
    UNIT_TRUE(look(system)->actors >= 30);
    UNIT_TRUE(named(&look(system)->dispatchers, "default")->actors >= 30);
    /* a walk may have met some at their start */
    UNIT_WAIT(named(&look(system)->behaviours, "box")->active == 0, 60000);
    stage_close(system);
}

/* An actor that holds its thread is the first row; the age of its mail grows, and its depth and
 * waiting time are known when it goes on */
static void
a_held_actor_and_the_age_and_depth_of_its_mailbox_are_seen(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &box, "a"), quiet = stage_spawn(system, &box, "quiet");
    uint64_t waits;

    atomic_store(&let_go, false);
    stage_tell(system, a, "hold");
    STAGE_EXPECT("held");
    for (int i = 0; i < 40; i++) { /* before the first look: its mark stands behind them all */
        stage_tell(system, a, "work");
    }
    UNIT_WAIT(row_of(look(system), a)->held_ns > 300000000u, 60000);
    UNIT_WAIT(row_of(look(system), a)->age_ns > 300000000u, 60000);
    UNIT_TRUE(trp_ref_equal(look(system)->rows[0].ref, a));
    UNIT_TRUE(!row_of(look(system), a)->depth_known);
    UNIT_TEXT(row_of(look(system), a)->behaviour, "box");
    UNIT_TRUE(look(system)->age_ns_max > 300000000u);
    UNIT_TRUE(trp_ref_is_none(row_of(look(system), quiet)->ref)); /* nothing waits for it */
    waits = times_count(&look(system)->wait);
    atomic_store(&let_go, true);
    UNIT_WAIT(times_count(&look(system)->wait) > waits, 60000);
    UNIT_WAIT(row_of(look(system), a)->depth == 40, 60000);
    UNIT_TRUE(row_of(look(system), a)->wait_ns > 300000000u);
    UNIT_WAIT(look(system)->rows_count == 0, 60000); /* nothing is left to see */
    stage_close(system);
}

/* The message behind a mark is timed. So that there is one, more messages wait than a turn takes */
static void
the_run_times_of_messages_are_sampled(void)
{
    enum { TOLD_MAX = 200000, WAITING = 300 };
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &box, "a");
    trp_system_stats stats = { .size = sizeof stats };
    uint64_t told = 0;

    while (times_count(&look(system)->run) == 0 && told < TOLD_MAX) {
        stage_tell(system, a, "work");
        told++;
        UNIT_WAIT((trp_system_stats_get(system, &stats), stats.messages_processed + WAITING > told),
                  60000);
    }
    UNIT_TRUE(times_count(&look(system)->run) > 0);
    UNIT_TRUE(look(system)->run.sum_ns > 0);
    UNIT_TRUE(times_count(&look(system)->wait) > 0);
    UNIT_WAIT((trp_system_stats_get(system, &stats), stats.messages_processed >= told), 60000);
    stage_close(system);
}

/* Marks that wait when the system ends, or their actor, are no leak and no later call */
static void
probes_survive_the_end_of_their_actors(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &box, "a");

    atomic_store(&let_go, false);
    stage_tell(system, a, "hold");
    STAGE_EXPECT("held");
    stage_tell(system, a, "work");
    UNIT_WAIT(row_of(look(system), a)->age_ns > 0, 60000);
    trp_system_stop_actor(system, a);
    atomic_store(&let_go, true);
    stage_close(system);
}

static bool
virtual_pass(trp_system *system, uint32_t ms)
{
    trpi_system_pass(system, ms);
    return true;
}

/* observe-O1: figures are made for a minute after the last look */
static void
figures_are_made_for_a_minute_after_the_last_look(void)
{
    trpi_virtual_options world_options = { .seed = 1 };
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trpi_virtual *virt;
    trp_system *system;
    uint64_t last;

    options.workers = 1;
    UNIT_REQUIRE(trpi_virtual_new(&world_options, &virt) == TRP_OK);
    UNIT_REQUIRE(trpi_system_new_in(trpi_virtual_world(virt), "seen", &options, &system) == TRP_OK);
    (void)look(system);
    UNIT_TRUE(virtual_pass(system, 3000));
    UNIT_TRUE(look(system)->complete);
    UNIT_TRUE(look(system)->age_ns < UINT64_C(2000000000));
    UNIT_TRUE(virtual_pass(system, 300000));
    last = look(system)->age_ns; /* it was made in the first minute, and starts the next */
    UNIT_TRUE(last > UINT64_C(238000000000) && last < UINT64_C(245000000000));
    UNIT_TRUE(virtual_pass(system, 3000));
    UNIT_TRUE(look(system)->age_ns < UINT64_C(2000000000));
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trp_system_free(system);
    trpi_world_free(trpi_virtual_world(virt));
}

/* Names up to the limit are kept apart, one more is one of the others, as is "other" */
static void
names_beyond_the_limit_are_one(void)
{
    trpi_observed_names *names = calloc(1, sizeof *names);
    char name[96];

    UNIT_REQUIRE(names != NULL);
    for (uint32_t i = 0; i < TRPI_OBSERVED_NAMES_MAX; i++) {
        snprintf(name, sizeof name, "name-%u", i);
        trpi_observed_name_get(names, name)->count++;
    }
    UNIT_EQUAL(names->count, TRPI_OBSERVED_NAMES_MAX);
    UNIT_TRUE(!names->has_others);
    trpi_observed_name_get(names, "one too many")->count++;
    trpi_observed_name_get(names, "other")->count++;
    trpi_observed_name_get(names, "name-99")->count++;
    UNIT_TRUE(names->has_others);
    UNIT_EQUAL(names->others.count, 2);
    UNIT_EQUAL(named(names, "name-99")->count, 2);
    memset(names, 0, sizeof *names);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    UNIT_EQUAL(strlen(trpi_observed_name_get(names, name)->name), TRPI_OBSERVED_NAME_BYTES - 1);
    UNIT_TRUE(trpi_observed_name_get(names, name) == &names->entries[0]);
    free(names);
}

/* Restarts are counted by the first two elements of the path */
static void
restarts_are_counted_by_group(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &box, "a"), b = stage_spawn(system, &box, NULL);
    trpi_observed_names *names = calloc(1, sizeof *names);

    UNIT_REQUIRE(names != NULL);
    trpi_system_restarts(system, names);
    UNIT_EQUAL(names->count, 0);
    stage_tell(system, a, "fail");
    stage_tell(system, a, "fail");
    stage_tell(system, b, "fail");
    UNIT_WAIT((trpi_system_restarts(system, names), named(names, "/user/a")->count == 2), 60000);
    UNIT_WAIT((trpi_system_restarts(system, names), named(names, "/user")->count == 1), 60000);
    free(names);
    stage_close(system);
}

/* observe-O2: 100,000 actors in slices */
static void
a_walk_over_many_actors_goes_in_short_slices(void)
{
    enum { MANY = 100000 };
    trp_system *system = stage_open();
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;

    for (int i = 0; i < MANY; i++) {
        UNIT_REQUIRE(trp_system_spawn(system, &box, &options, &ref) == TRP_OK);
    }
    UNIT_WAIT(named(&look(system)->behaviours, "box")->actors == MANY, 120000);
    UNIT_TRUE(look(system)->walk_ns >= 2000000u); /* more than one slice */
#ifndef UNIT_SANITIZED
    /* of some 100 slices the machine interrupts one or another, for a time slice of its own */
    UNIT_WAIT(look(system)->slice_ns_max < 15000000u, 60000);
#endif
    stage_close(system);
}

UNIT_BEGIN("observe")
UNIT(actors_are_counted_by_behaviour_and_dispatcher)
UNIT(a_held_actor_and_the_age_and_depth_of_its_mailbox_are_seen)
UNIT(the_run_times_of_messages_are_sampled)
UNIT(probes_survive_the_end_of_their_actors)
UNIT(figures_are_made_for_a_minute_after_the_last_look)
UNIT(names_beyond_the_limit_are_one)
UNIT(restarts_are_counted_by_group)
UNIT(a_walk_over_many_actors_goes_in_short_slices)
UNIT_END

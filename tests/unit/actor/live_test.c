/* live_test.c - samples of threads and actors: what runs, what waits, how fast. */
#include <troupe/live.h>

#include "tests/unit/actor/stage.h"

static _Atomic bool let_go;

static trp_err
worker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    if (stage_said(msg, "hold")) {
        stage_hold("held", &let_go);
    }
    return TRP_OK;
}
static const trp_behaviour worker = {
    .size = sizeof(trp_behaviour), .name = "worker", .version = 1, .receive = worker_receive
};

static trp_live_actor
find(const trp_live *live, trp_ref ref)
{
    trp_live_actor all[16], none = { 0 };
    uint32_t count = trp_live_actors(live, all, 16);

    for (uint32_t i = 0; i < count && i < 16; i++) {
        if (trp_ref_equal(all[i].ref, ref)) {
            return all[i];
        }
    }
    return none;
}

/* UJ-26, and the data that UJ-45 and UJ-46 show: threads with what they run, completions, accepts
 * and the busy share; actors with their backlog */
static void
live_data_tell_who_runs_what_waits_and_how_fast(void)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &worker, "a"), b;
    trp_live_thread threads[64];
    const trp_live_thread *held = NULL;
    trp_live_actor seen;
    uint32_t count, sum = 0, of_system = 0, internal = 0;
    trp_live *live;

    atomic_store(&let_go, false);
    options.name = "b";
    options.dispatcher = "pinned";
    UNIT_EQUAL(trp_system_spawn(system, &worker, &options, &b), TRP_OK);
    UNIT_EQUAL(trp_live_open(system, &live), TRP_OK);
    UNIT_EQUAL(trp_live_open(system, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_live_sample(live, 60000), TRP_OK);
    UNIT_EQUAL(find(live, a).accepted, 0);
    UNIT_EQUAL(find(live, a).active, 1);
    for (int i = 0; i < 100; i++) {
        stage_tell(system, a, "work");
    }
    UNIT_WAIT(trp_live_sample(live, 60000) == TRP_OK && find(live, a).completed == 100, 5000);
    UNIT_EQUAL(trp_system_deactivate(system, a), TRP_OK);
    for (int i = 0; i < 10; i++) {
        stage_tell(system, b, i == 0 ? "hold" : "work");
    }
    UNIT_WAIT(stage_has("held"), 5000);
    /* a stuck actor does not answer, but its thread shows it, with all the time since the sample
     * before */
    UNIT_EQUAL(trp_live_sample(live, 50), TRP_ETIMEDOUT);
    UNIT_EQUAL(trp_live_sample(live, 50), TRP_ETIMEDOUT);
    count = trp_live_threads(live, threads, 64);
    for (uint32_t i = 0; i < count && i < 64; i++) {
        held = trp_ref_equal(threads[i].actor, b) ? &threads[i] : held;
        sum += (uint32_t)threads[i].completed;
        UNIT_TRUE(threads[i].busy >= 0.0 && threads[i].busy <= 1.0);
        of_system += strcmp(threads[i].dispatcher, "system") == 0;
        internal += strcmp(threads[i].dispatcher, "troupe.internal") == 0;
    }
    UNIT_EQUAL(of_system, 1);
    UNIT_EQUAL(internal, 1);
    UNIT_REQUIRE(held != NULL);
    UNIT_TRUE(held->busy == 1.0);
    UNIT_TEXT(held->dispatcher, "pinned");
    UNIT_TRUE(sum >= 100);
    atomic_store(&let_go, true);
    UNIT_WAIT(trp_live_sample(live, 60000) == TRP_OK && find(live, b).completed == 10, 5000);
    seen = find(live, b);
    UNIT_EQUAL(seen.pending, 0);
    UNIT_EQUAL(seen.accepted, 10);
    UNIT_EQUAL(seen.thread, held->index);
    UNIT_EQUAL(find(live, a).active, 0);
    trp_live_close(live);
    trp_live_close(NULL);
    stage_close(system);
}

UNIT_BEGIN("live")
UNIT(live_data_tell_who_runs_what_waits_and_how_fast)
UNIT_END

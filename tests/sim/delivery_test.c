/* delivery_test.c - reliable delivery between whole nodes that are killed, stand still, are cut off
 * and lose their connections: each message is confirmed once, none is lost, and with one consumer
 * they are confirmed in order. TROUPE_SIM_SEEDS says how many seeds. */
#include <stdlib.h>

#include <troupe/actor.h>
#include <troupe/delivery.h>
#include <troupe/sim.h>

#include "persistence/delivery_producer.h"
#include "tests/unit/unit.h"

enum { NODES = 4, MESSAGES = 200, LARGE = 90000 };

/* The producer's node is 0, which is never killed; consumers are on the others. */
static struct scene {
    trp_sim *sim;
    bool workers;
    uint32_t granted, told, confirmed_count;
    uint64_t confirmed_last;
    uint8_t confirmed[MESSAGES + 1], handled[MESSAGES + 1];
} scene;

/* ---- the producer ---------------------------------------------------------------------------- */

static uint8_t large[LARGE];

static void
tell_on(trp_ctx *ctx, trp_ref controller)
{
    while (scene.granted > 0 && scene.told < MESSAGES) {
        int64_t n = ++scene.told;

        scene.granted--;
        memcpy(large, &n, sizeof n); /* each tenth travels in parts */
        trp_tell(ctx, controller, &trp_bytes_type, large, n % 10 == 0 ? LARGE : sizeof n);
    }
}

static trp_err
producer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_delivery_request_next *next = trp_msg_as(msg, &trp_delivery_request_next_type);
    const trp_delivery_confirmed *confirmed = trp_msg_as(msg, &trp_delivery_confirmed_type);

    (void)state;
    if (next != NULL) {
        scene.granted += next->messages;
        tell_on(ctx, trp_sender(ctx));
    } else if (confirmed != NULL) {
        uint64_t n = confirmed->number;

        TRP_SIM_CHECK(scene.sim, n >= 1 && n <= MESSAGES);
        TRP_SIM_CHECK(scene.sim, scene.handled[n % (MESSAGES + 1)] != 0);
        TRP_SIM_CHECK(scene.sim, scene.confirmed[n % (MESSAGES + 1)]++ == 0);
        TRP_SIM_CHECK(scene.sim, scene.workers || n == scene.confirmed_last + 1);
        scene.confirmed_last = n;
        scene.confirmed_count++;
    }
    return TRP_OK;
}
static const trp_behaviour producer = {
    .size = sizeof(trp_behaviour), .name = "producer", .version = 1, .receive = producer_receive
};

static void
producer_spawn(trp_system *system)
{
    trp_delivery_producer_options options = TRP_DELIVERY_PRODUCER_OPTIONS_INIT;
    trp_ref ref;

    UNIT_EQUAL(trp_system_spawn(system, &producer, NULL, &options.producer), TRP_OK);
    options.name = "jobs";
    options.workers = scene.workers;
    options.confirms = 1;
    options.messages_max = 50;
    UNIT_EQUAL(trp_system_delivery_producer_spawn(system, &options, &ref), TRP_OK);
}

/* ---- consumers ------------------------------------------------------------------------------- */

static trp_err
consumer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_ref *controller = state;
    int64_t n = 0;

    if (trp_msg_is(msg, &trp_string_type)) { /* it has done with it */
        trp_tell(ctx, *controller, &trp_delivery_confirm_type, NULL, 0);
    } else if (trp_msg_is(msg, &trp_bytes_type)) {
        memcpy(&n, trp_msg_payload(msg), sizeof n);
        TRP_SIM_CHECK(scene.sim, n >= 1 && n <= MESSAGES);
        TRP_SIM_CHECK(scene.sim, trp_msg_bytes(msg) == (n % 10 == 0 ? LARGE : sizeof n));
        scene.handled[(uint64_t)n % (MESSAGES + 1)] = 1;
        trp_sim_note(scene.sim, (uint64_t)n);
        *controller = trp_sender(ctx);
        return trp_timer_once(ctx, 1, scene.workers ? 250 : 80, &trp_string_type, "", 0);
    }
    return TRP_OK;
}
static const trp_behaviour consumer = { .size = sizeof(trp_behaviour),
                                        .name = "consumer",
                                        .version = 1,
                                        .state_bytes = sizeof(trp_ref),
                                        .receive = consumer_receive };

static void
consumer_spawn(trp_sim *sim, trp_system *system)
{
    trp_delivery_consumer_options options = TRP_DELIVERY_CONSUMER_OPTIONS_INIT;
    char path[256];
    trp_ref ref;

    (void)snprintf(path, sizeof path, "%s/user/jobs", trp_sim_address(sim, 0));
    UNIT_EQUAL(trp_system_spawn(system, &consumer, NULL, &options.consumer), TRP_OK);
    options.producer_path = path;
    options.window = 8;
    UNIT_EQUAL(trp_system_delivery_consumer_spawn(system, &options, &ref), TRP_OK);
}

/* ---- the program ----------------------------------------------------------------------------- */

static void
start_actors(trp_sim *sim, uint32_t node, void *arg)
{
    if (node == 0) {
        memset(&scene, 0, sizeof scene);
        scene.sim = sim;
        scene.workers = *(const bool *)arg;
        producer_spawn(trp_sim_system(sim, node));
    } else if (scene.workers || node == NODES - 1) {
        consumer_spawn(sim, trp_sim_system(sim, node));
    }
}

static int
all_are_confirmed(void *arg)
{
    (void)arg;
    return scene.confirmed_count == MESSAGES;
}

static void
messages_meet_faults(trp_sim *sim, void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < 40; i++) { /* more often than trp_sim_faults() breaks connections */
        trp_sim_reset(sim, 1 + (uint32_t)(trp_sim_random(sim) % (NODES - 1)));
        trp_sim_pass(sim, (uint32_t)(trp_sim_random(sim) % 200));
    }
    trp_sim_faults(sim, 20000);
    trp_sim_calm(sim, 120000);
    trp_sim_await(sim, all_are_confirmed, NULL, 60000);
    for (uint32_t n = 1; n <= MESSAGES; n++) {
        TRP_SIM_CHECK(sim, scene.confirmed[n] == 1);
    }
}

static trp_err
run_seeds(bool workers, uint32_t seeds)
{
    trp_sim_options options = TRP_SIM_OPTIONS_INIT;

    options.nodes = NODES;
    options.seeds = seeds;
    options.started = start_actors;
    options.replay = "tests/sim/delivery_test";
    return trp_sim_run(messages_meet_faults, &workers, &options, NULL);
}

static uint32_t
seeds_asked(void)
{
    const char *text = getenv("TROUPE_SIM_SEEDS");
    uint32_t seeds = text != NULL ? (uint32_t)strtoul(text, NULL, 10) : 0;

    return seeds != 0 ? (seeds + 9) / 10 : 20;
}

static void
one_consumer_confirms_all_in_order(void)
{
    UNIT_EQUAL(run_seeds(false, seeds_asked()), TRP_OK);
}

static void
workers_confirm_each_once(void)
{
    UNIT_EQUAL(run_seeds(true, seeds_asked()), TRP_OK);
}

/* The laws find each of these. */
static void
a_deliberate_fault_is_found(void)
{
    static const int faults[] = { 1, 2, 5 };

    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        trpi_delivery_break = faults[i];
        UNIT_EQUAL(run_seeds(faults[i] == 2, 30), TRP_EFAILED);
        trpi_delivery_break = 0;
    }
}

UNIT_BEGIN("delivery_sim")
UNIT(one_consumer_confirms_all_in_order)
UNIT(workers_confirm_each_once)
UNIT(a_deliberate_fault_is_found)
UNIT_END

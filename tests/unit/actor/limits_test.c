/* limits_test.c - named limits of the local system, at the limit and one past it; hierarchies of
 * event types. */
#include "tests/unit/actor/stage.h"

#include "actor/kernel/cell.h"
#include "actor/nodes/nodes.h"

#include <troupe/mailbox.h>
#include <troupe/scheduler.h>

/* ---- hierarchies of types -------------------------------------------------------------------- */

#define NO(F, S) F(S, u32, number)
#define ZOO_MESSAGES(M, P) M(P, animal, NO) M(P, bird, NO) M(P, owl, NO) M(P, stone, NO)
TRP_PROTOCOL(zoo, ZOO_MESSAGES)

static trp_err
keeper_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_string_type)) {
        trp_reply_text(ctx, "ok");
    } else {
        stage_note("%s", trp_msg_type(msg)->name);
    }
    return TRP_OK;
}
static const trp_behaviour keeper = TRP_BEHAVIOUR_INIT("keeper", char, keeper_receive);

static void
publish(trp_system *system, const trp_type *type)
{
    uint32_t number = 1;

    trp_system_publish(system, type, &number, sizeof number);
}

/* EB-04, ES-01: a subscriber to a type of the program gets the types below it, each event once */
static void
events_of_a_type_reach_who_subscribed_to_a_parent(void)
{
    static trp_type stray = { "zoo.stray", 4, 9, 0, NULL, 0, 0 };
    trp_system *system = stage_open();
    trp_ref all, birds;
    char answer[8];

    UNIT_REQUIRE(trp_protocol_register(&zoo_protocol) == TRP_OK);
    UNIT_EQUAL(trp_type_extend(&zoo_owl_type, &zoo_bird_type), TRP_OK);
    UNIT_EQUAL(trp_type_extend(&zoo_bird_type, &zoo_animal_type), TRP_OK);
    UNIT_EQUAL(trp_type_extend(&zoo_bird_type, &zoo_animal_type), TRP_OK); /* said again */
    UNIT_EQUAL(trp_type_extend(&zoo_bird_type, &zoo_stone_type), TRP_EEXIST);
    UNIT_EQUAL(trp_type_extend(&zoo_animal_type, &zoo_owl_type), TRP_EINVAL); /* a circle */
    UNIT_EQUAL(trp_type_extend(&zoo_animal_type, &zoo_animal_type), TRP_EINVAL);
    UNIT_EQUAL(trp_type_extend(NULL, &zoo_animal_type), TRP_EINVAL);
    UNIT_EQUAL(trp_type_extend(&stray, &zoo_animal_type), TRP_ENOTYPE);

    all = stage_spawn(system, &keeper, "all");
    birds = stage_spawn(system, &keeper, "birds");
    UNIT_EQUAL(trp_system_subscribe(system, all, &zoo_animal_type), TRP_OK);
    UNIT_EQUAL(trp_system_subscribe(system, all, &zoo_owl_type), TRP_OK);
    publish(system, &zoo_owl_type);   /* once, although it is subscribed twice */
    publish(system, &zoo_stone_type); /* not below */
    publish(system, &zoo_animal_type);
    STAGE_EXPECT("zoo.owl zoo.animal");
    stage_clear(&stage_events);
    UNIT_EQUAL(trp_system_unsubscribe(system, all, NULL), TRP_OK);
    UNIT_EQUAL(trp_system_subscribe(system, birds, &zoo_bird_type), TRP_OK);
    publish(system, &zoo_animal_type); /* above */
    publish(system, &zoo_owl_type);
    publish(system, &zoo_bird_type);
    STAGE_EXPECT("zoo.owl zoo.bird");
    UNIT_EQUAL(stage_ask(system, all, "?", answer, sizeof answer), TRP_OK);
    STAGE_EXPECT("zoo.owl zoo.bird");
    stage_close(system);
}

#define LEVELS (TRP_TYPE_DEPTH_MAX + 2)
static char level_names[2][LEVELS][24];
static trp_type levels[2][LEVELS];
static trp_type *level_pointers[2][LEVELS];

static void
levels_register(int of)
{
    trp_protocol protocol = { of == 0 ? "down" : "up", level_pointers[of], LEVELS };

    for (int i = 0; i < LEVELS; i++) {
        snprintf(level_names[of][i], sizeof level_names[of][i], "%s.l%d", protocol.name, i);
        levels[of][i] = (trp_type){ level_names[of][i], 4, (uint16_t)i, 0, NULL, 0, 0 };
        level_pointers[of][i] = &levels[of][i];
    }
    UNIT_REQUIRE(trp_protocol_register(&protocol) == TRP_OK);
}

/* TRP_TYPE_DEPTH_MAX: whether a hierarchy is built from its top or from its bottom */
static void
a_hierarchy_has_so_many_levels_and_not_one_more(void)
{
    levels_register(0);
    for (int i = 1; i < TRP_TYPE_DEPTH_MAX; i++) { /* l0 is the first level */
        UNIT_EQUAL(trp_type_extend(&levels[0][i], &levels[0][i - 1]), TRP_OK);
    }
    UNIT_EQUAL(trp_type_extend(&levels[0][TRP_TYPE_DEPTH_MAX], &levels[0][TRP_TYPE_DEPTH_MAX - 1]),
               TRP_ELIMIT);
    UNIT_EQUAL(trp_type_extend(&levels[0][0], &levels[0][TRP_TYPE_DEPTH_MAX]), TRP_ELIMIT);

    levels_register(1);
    for (int i = 1; i < TRP_TYPE_DEPTH_MAX; i++) {
        UNIT_EQUAL(trp_type_extend(&levels[1][i - 1], &levels[1][i]), TRP_OK);
    }
    UNIT_EQUAL(trp_type_extend(&levels[1][TRP_TYPE_DEPTH_MAX - 1], &levels[1][TRP_TYPE_DEPTH_MAX]),
               TRP_ELIMIT);
    UNIT_EQUAL(trp_type_extend(&levels[1][TRP_TYPE_DEPTH_MAX], &levels[1][0]), TRP_ELIMIT);
    UNIT_EQUAL(trp_type_extend(&levels[1][TRP_TYPE_DEPTH_MAX], &levels[1][1]), TRP_OK);
}

/* ---- messages that wait for room ------------------------------------------------------------- */

#define CAPACITY 3

static _Atomic bool let_go;
static _Atomic uint32_t handled, told;
static trp_ref full_ref;

static trp_err
slow_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    if (stage_said(msg, "hold")) {
        stage_hold("held", &let_go);
    } else {
        atomic_fetch_add(&handled, 1);
    }
    return TRP_OK;
}
static const trp_behaviour slow = TRP_BEHAVIOUR_INIT("slow", char, slow_receive);

/* Sends as many messages as it is told to, in one turn. */
static trp_err
flood_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t count = *(const int64_t *)trp_msg_payload(msg);

    (void)state;
    for (int64_t i = 0; i < count; i++) {
        trp_tell(ctx, full_ref, &trp_i64_type, &i, sizeof i);
    }
    atomic_store(&told, (uint32_t)count);
    return TRP_OK;
}
static const trp_behaviour flood = TRP_BEHAVIOUR_INIT("flood", char, flood_receive);

/* MBOX-4, TRP_MAILBOX_PENDING_MAX: so many wait for room, and the next one is a dead letter */
static void
so_many_messages_wait_for_room_and_the_next_one_is_lost(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_mailbox_options mailbox = TRP_MAILBOX_OPTIONS_INIT;
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_system_stats stats = { .size = sizeof stats };
    trp_system *system;

    options.log_dead_letters = TRP_OFF;
    for (int past = 0; past < 2; past++) {
        int64_t count = CAPACITY + TRP_MAILBOX_PENDING_MAX + past;

        system = stage_open_with(options);
        atomic_store(&let_go, false);
        atomic_store(&handled, 0);
        atomic_store(&told, 0);
        mailbox.kind = TRP_MAILBOX_KIND_BOUNDED;
        mailbox.capacity = CAPACITY;
        mailbox.push_timeout_ms = 3600000;
        UNIT_EQUAL(trp_mailbox_register(system, "small", &mailbox), TRP_OK);
        spawn.mailbox = "small";
        UNIT_REQUIRE(trp_system_spawn(system, &slow, &spawn, &full_ref) == TRP_OK);
        stage_tell(system, full_ref, "hold");
        UNIT_WAIT(stage_has("held"), 30000);
        trp_system_tell(system, stage_spawn(system, &flood, "flood"), &trp_i64_type, &count,
                        sizeof count);
        UNIT_WAIT(atomic_load(&told) == (uint32_t)count, 30000);
        trp_system_stats_get(system, &stats);
        UNIT_EQUAL(stats.dead_letters[TRP_DEAD_MAILBOX_FULL], past);
        atomic_store(&let_go, true);
        UNIT_WAIT(atomic_load(&handled) == CAPACITY + TRP_MAILBOX_PENDING_MAX, 60000);
        stage_close(system);
    }
}

/* ---- schedules ------------------------------------------------------------------------------- */

/* TRP_SCHEDULES_MAX is the default of an option, at which it can be seen */
static void
so_many_are_scheduled_and_not_one_more(void)
{
    enum { MAX = 1000 };
    static trp_schedule schedules[MAX + 1];
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_scheduler_options scheduling = TRP_SCHEDULER_OPTIONS_INIT;
    trp_schedule one_more = TRP_SCHEDULE_NONE;
    int count = 0;
    trp_system *system;
    trp_ref to;

    scheduling.schedules_max = MAX;
    options.scheduler = &scheduling;
    options.stall_warning_ms = TRP_OFF; /* else the system has a timer of its own */
    system = stage_open_with(options);
    to = stage_spawn(system, &keeper, "k");
    while (count <= MAX &&
           trp_schedule_once(system, 3600000, to, (trp_ref)TRP_REF_NONE, &trp_string_type, "t", 1,
                             &schedules[count]) == TRP_OK) {
        count++;
    }
    UNIT_EQUAL(count, MAX);
    UNIT_EQUAL(trp_schedule_once(system, 3600000, to, (trp_ref)TRP_REF_NONE, &trp_string_type, "t",
                                 1, &one_more),
               TRP_ENOMEM);
    UNIT_EQUAL(one_more.priv_id, 0);
    UNIT_TRUE(trp_schedule_cancel(system, &schedules[MAX / 2]) != 0); /* one goes, one may come */
    UNIT_EQUAL(trp_schedule_once(system, 3600000, to, (trp_ref)TRP_REF_NONE, &trp_string_type, "t",
                                 1, &one_more),
               TRP_OK);
    UNIT_EQUAL(trp_schedule_once(system, 3600000, to, (trp_ref)TRP_REF_NONE, &trp_string_type, "t",
                                 1, NULL),
               TRP_ENOMEM);
    stage_close(system);
    scheduling.schedules_max = TRP_SCHEDULES_MAX + 1;
    UNIT_EQUAL(trp_system_new("x", &options, &system), TRP_EINVAL);
}

/* TRPI_CELLS_MAX is the largest value of the option; spawn_test.c tests a smaller limit */
static void
so_many_actors_may_be_wanted_and_not_one_more(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system;

    options.actors_max = TRPI_CELLS_MAX;
    stage_close(stage_open_with(options));
    options.actors_max = TRPI_CELLS_MAX + 1;
    UNIT_EQUAL(trp_system_new("x", &options, &system), TRP_EINVAL);
}

/* TRP_THROUGHPUT_MAX, TRP_STATE_BYTES_MAX */
static void
so_much_a_turn_and_a_state_may_be_and_not_one_more(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_behaviour large = keeper, larger = keeper;
    trp_system *system;

    options.throughput = TRP_THROUGHPUT_MAX;
    system = stage_open_with(options);
    large.name = "large";
    large.state_bytes = TRP_STATE_BYTES_MAX;
    UNIT_EQUAL(trp_behaviour_register(system, &large), TRP_OK);
    larger.name = "larger";
    larger.state_bytes = TRP_STATE_BYTES_MAX + 1;
    UNIT_EQUAL(trp_behaviour_register(system, &larger), TRP_EINVAL);
    stage_close(system);
    options.throughput++;
    UNIT_EQUAL(trp_system_new("x", &options, &system), TRP_EINVAL);
}

/* TRPI_NODES_LIMIT: other nodes during the life of a system; known nodes stay known */
static void
so_many_nodes_are_known_and_not_one_more(void)
{
    trp_system *system = stage_open();
    trpi_node_id id = { .uid = 1 };
    uint32_t node, first = stage_far(system).node, failed = 0;

    UNIT_EQUAL(trpi_address_parse("troupe.tcp://far@192.0.2.1:2552", &id.address, NULL, NULL),
               TRP_OK);
    for (id.uid = 1; first + (uint32_t)id.uid - 1 <= TRPI_NODES_LIMIT; id.uid++) {
        failed += trpi_node_intern(system, &id, &node) != TRP_OK;
    }
    UNIT_EQUAL(failed, 0);
    UNIT_EQUAL(node, TRPI_NODES_LIMIT);
    UNIT_EQUAL(trpi_node_intern(system, &id, &node), TRP_ELIMIT);
    UNIT_EQUAL(node, TRPI_NODES_LIMIT);
    id.uid = 1;
    UNIT_EQUAL(trpi_node_intern(system, &id, &node), TRP_OK);
    UNIT_EQUAL(node, first);
    stage_close(system);
}

UNIT_BEGIN("limits")
UNIT(events_of_a_type_reach_who_subscribed_to_a_parent)
UNIT(a_hierarchy_has_so_many_levels_and_not_one_more)
UNIT(so_many_messages_wait_for_room_and_the_next_one_is_lost)
UNIT(so_many_are_scheduled_and_not_one_more)
UNIT(so_many_actors_may_be_wanted_and_not_one_more)
UNIT(so_much_a_turn_and_a_state_may_be_and_not_one_more)
UNIT(so_many_nodes_are_known_and_not_one_more)
UNIT_END

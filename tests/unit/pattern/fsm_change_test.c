/* fsm_change_test.c - state machines whose code is upgraded: the newer table has the states in
 * another order, one of them with another name, and lacks one. */
#include <troupe/fsm.h>

#include "actor/life/upgrade.h"
#include "base/world.h"
#include "tests/unit/actor/stage.h"

enum { SHUT_1, AJAR_1, OPEN_1 }; /* of the older table */
enum { OPEN_2, LOCKED_2, SHUT_2 };
enum { SOON_MS = 300 };

typedef struct data_1 {
    uint32_t opened;
} data_1;
typedef struct data_2 {
    uint64_t opened, from;
} data_2;
typedef struct door_1 {
    trp_fsm fsm; /* first */
    uint32_t knocks;
} door_1;
typedef struct door_2 {
    trp_fsm fsm; /* first */
    uint64_t zero, knocks;
} door_2;

static _Atomic int fails; /* code_change: 1 behind the machine's change */

/* The limit that runs goes on, although the newer table has none; so does the named timer. */
static trp_err
door_common(trp_ctx *ctx, trp_fsm *fsm, const trp_msg *msg, unsigned version)
{
    if (trp_msg_is(msg, &trp_fsm_state_timeout_type)) {
        stage_note("limit:%u", version);
    } else if (stage_said(msg, "bell")) {
        stage_note("bell:%u", version);
    } else if (stage_said(msg, "set")) {
        stage_note("begun");
        return trp_fsm_timer_once(ctx, "bell", SOON_MS, &trp_string_type, "bell", 4);
    } else if (stage_said(msg, "wait")) {
        stage_note("begun");
        return trp_fsm_for_max(fsm, SOON_MS);
    } else if (stage_said(msg, "limit")) {
        return trp_fsm_state_timeout_set(ctx, fsm, version == 1 ? OPEN_1 : OPEN_2, SOON_MS);
    } else if (stage_said(msg, "where")) {
        trp_reply_text(ctx, trp_fsm_name(fsm));
    } else {
        return TRP_EUNHANDLED;
    }
    return trp_fsm_stay(fsm);
}

static trp_err
on_1(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    door_1 *door = state;
    if (stage_said(msg, "open")) {
        ((data_1 *)trp_fsm_using(&door->fsm))->opened++;
        return trp_fsm_goto(&door->fsm, OPEN_1);
    }
    if (stage_said(msg, "ajar")) {
        return trp_fsm_goto(&door->fsm, AJAR_1);
    }
    door->knocks++;
    return door_common(ctx, &door->fsm, msg, 1);
}

static trp_err
on_2(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    door_2 *door = state;
    const data_2 *data = trp_fsm_data(&door->fsm);
    if (stage_said(msg, "open")) {
        return trp_fsm_goto(&door->fsm, OPEN_2);
    }
    if (stage_said(msg, "shut")) {
        return trp_fsm_goto(&door->fsm, SHUT_2);
    }
    if (stage_said(msg, "data")) {
        stage_note("data:%llu,%llu,%llu", (unsigned long long)data->opened,
                   (unsigned long long)data->from, (unsigned long long)door->knocks);
        return trp_fsm_stay(&door->fsm);
    }
    return door_common(ctx, &door->fsm, msg, 2);
}

static const trp_fsm_state states_1[] = { { "SHUT", SHUT_1, 0, on_1 },
                                          { "AJAR", AJAR_1, 0, on_1 },
                                          { "OPEN", OPEN_1, 0, on_1 } };
static const trp_fsm_state states_2[] = { { "OPEN", OPEN_2, 0, on_2 },
                                          { "LOCKED", LOCKED_2, 0, on_2 },
                                          { "SHUT", SHUT_2, 0, on_2 } };
static const trp_fsm_state states_bad[] = { { "OPEN", 1, 0, on_2 } };
static const data_2 first_2 = { 0, 42 };
static const trp_fsm_definition machine_1 = { .size = sizeof machine_1,
                                              .name = "door",
                                              .states = states_1,
                                              .states_count = 3,
                                              .data_bytes = sizeof(data_1),
                                              .history = 4 };
static const trp_fsm_definition machine_2 = { .size = sizeof machine_2,
                                              .name = "door",
                                              .states = states_2,
                                              .states_count = 3,
                                              .first = SHUT_2,
                                              .data_bytes = sizeof(data_2),
                                              .data = &first_2 };
static const trp_fsm_definition machine_bad = { .size = sizeof machine_bad,
                                                .name = "door",
                                                .states = states_bad,
                                                .states_count = 1,
                                                .data_bytes = sizeof(data_2) };

static trp_err
data_change(trp_ctx *ctx, void *data, const void *old_data)
{
    data_2 *d = data;
    (void)ctx;
    d->opened = ((const data_1 *)old_data)->opened;
    return atomic_load(&fails) == 2 ? TRP_EDATA : TRP_OK;
}

static const trp_fsm_rename renames[] = { { "AJAR", "OPEN" } };
static const trp_fsm_definition *to;
static trp_fsm_change how;

static trp_err
door_change(trp_ctx *ctx, void *state, void *old_state, uint32_t old_version)
{
    const trp_fsm unstarted = { 0 };
    door_2 *door = state;
    const door_1 *old = old_state;
    UNIT_EQUAL(old_version, 1);
    UNIT_EQUAL(trp_fsm_code_change(ctx, &door->fsm, NULL, to, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_fsm_code_change(ctx, NULL, &old->fsm, to, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_fsm_code_change(ctx, &door->fsm, &unstarted, to, NULL), TRP_ESTATE);
    trp_fsm_change half = how;
    half.renames = NULL;
    half.renames_count = 1;
    UNIT_EQUAL(trp_fsm_code_change(ctx, &door->fsm, &old->fsm, to, &half), TRP_EINVAL);
    door->knocks = old->knocks;
    trp_err err = trp_fsm_code_change(ctx, &door->fsm, &old->fsm, to, &how);
    return err == TRP_OK && atomic_load(&fails) == 1 ? TRP_EIO : err;
}

static trp_err
start_1(trp_ctx *ctx, void *state, const trp_msg *args)
{
    return trp_fsm_start(ctx, state, &machine_1, args);
}
static trp_err
start_2(trp_ctx *ctx, void *state, const trp_msg *args)
{
    return trp_fsm_start(ctx, state, &machine_2, args);
}

static trp_behaviour door_v1 = { .size = sizeof(trp_behaviour),
                                 .name = "door",
                                 .version = 1,
                                 .state_bytes = sizeof(door_1),
                                 .receive = trp_fsm_receive,
                                 .pre_start = start_1,
                                 .post_stop = trp_fsm_post_stop };
static const trp_behaviour door_v2 = { .size = sizeof(trp_behaviour),
                                       .name = "door",
                                       .version = 2,
                                       .state_bytes = sizeof(door_2),
                                       .receive = trp_fsm_receive,
                                       .pre_start = start_2,
                                       .post_stop = trp_fsm_post_stop };

/* ---- the stage ------------------------------------------------------------------------------- */

static trp_ref door;

static trp_err
watcher_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx, (void)state;
    if (trp_msg_is(msg, &trp_fsm_transition_type)) {
        const trp_fsm_transition *told = trp_msg_payload(msg);
        stage_note("told:%s(%u)>%s(%u)", told->from_name, told->from, told->to_name, told->to);
    } else if (trp_msg_is(msg, &trp_fsm_current_type)) {
        stage_note("subscribed");
    }
    return TRP_OK;
}
static const trp_behaviour watcher = {
    .size = sizeof(trp_behaviour), .name = "watcher", .version = 1, .receive = watcher_receive
};

static trp_system *
door_open(void)
{
    trp_system *system = stage_open();
    UNIT_EQUAL(trp_protocol_register(&trp_fsm_protocol), TRP_OK);
    door = stage_spawn(system, &door_v1, "door");
    atomic_store(&fails, 0);
    to = &machine_2;
    how = (trp_fsm_change)TRP_FSM_CHANGE_INIT;
    how.data = data_change;
    return system;
}

static void
kept(void *arg, const char *path, const char *why)
{
    (void)arg;
    stage_note("[%s: %s]", path, why);
}

/* Upgrade all doors; return how many have changed. */
static uint64_t
door_upgrade(trp_system *system)
{
    trpi_code code = { (uintptr_t)&door_v1, (uintptr_t)(&door_v1 + 1) };
    trpi_upgrade_row row = { .change = { &door_v2, door_change } };
    trpi_upgrade upgrade = { &row, 1, &code, 1 };
    trpi_upgraded sum = { 77, 77 };
    uint64_t now_ns = trpi_world_mono_ns(trpi_system_world(system));
    UNIT_EQUAL(
        trpi_upgrade_run(system, &upgrade, now_ns + UINT64_C(60000000000), kept, NULL, NULL, &sum),
        TRP_OK);
    UNIT_EQUAL(sum.changed + sum.kept, 1);
    return sum.changed;
}

static void
door_is(trp_system *system, const char *name)
{
    char answer[32];
    UNIT_EQUAL(stage_ask(system, door, "where", answer, sizeof answer), TRP_OK);
    UNIT_TEXT(answer, name);
}

/* ---- what goes on ---------------------------------------------------------------------------- */

/* FSM-1 */
static void
a_machine_goes_on_in_the_state_of_that_name(void)
{
    trp_system *system = door_open();
    trp_fsm_subscribe subscribe = { stage_spawn(system, &watcher, "watcher") };

    trp_system_tell(system, door, &trp_fsm_subscribe_type, &subscribe, sizeof subscribe);
    stage_tell(system, door, "open");
    UNIT_WAIT(stage_has("told:SHUT(0)>OPEN(2)"), 60000);
    door_is(system, "OPEN");
    UNIT_EQUAL(door_upgrade(system), 1);
    stage_clear(&stage_events);
    door_is(system, "OPEN"); /* no hook, and nobody was told */
    stage_tell(system, door, "data");
    UNIT_WAIT(stage_has("data:1,42,1"), 60000); /* its knock was the first door_is() */
    stage_tell(system, door, "shut");
    UNIT_WAIT(stage_has("told:OPEN(0)>SHUT(2)"), 60000); /* by the numbers of the newer table */
    UNIT_EQUAL(stage_count("told:SHUT(0)>OPEN(2)"), 0);
    stage_close(system);
}

/* Begin something that rings soon, and upgrade before it does: again, if this was too slow. */
static trp_system *
door_upgrade_before(const char *begins, const char *too_late)
{
    for (int i = 0; i < 100; i++) {
        trp_system *system = door_open();

        stage_tell(system, door, "limit");
        stage_tell(system, door, begins);
        UNIT_WAIT(stage_has("begun"), 60000);
        UNIT_EQUAL(door_upgrade(system), 1);
        if (!stage_has(too_late)) {
            return system;
        }
        stage_close(system);
    }
    UNIT_REQUIRE(false);
    return NULL;
}

/* FSM-1, fsm-change-C2 */
static void
a_time_limit_that_runs_goes_on(void)
{
    trp_system *system = door_upgrade_before("wait", "limit:1");

    UNIT_WAIT(stage_has("limit:2"), 60000);
    door_is(system, "SHUT"); /* the newer table has no limit for it: it rang once */
    UNIT_EQUAL(stage_count("limit:2"), 1);
    stage_tell(system, door, "open"); /* its limit was set before the upgrade */
    UNIT_WAIT(stage_count("limit:2") == 2, 60000);
    stage_close(system);
}

static void
a_named_timer_goes_on(void)
{
    trp_system *system = door_upgrade_before("set", "bell:1");

    UNIT_WAIT(stage_has("bell:2"), 60000);
    door_is(system, "SHUT");
    UNIT_EQUAL(stage_count("bell:2"), 1);
    stage_close(system);
}

static void
a_state_with_another_name_is_found_by_the_older_one(void)
{
    trp_system *system = door_open();

    how.renames = renames;
    how.renames_count = 1;
    stage_tell(system, door, "ajar");
    door_is(system, "AJAR");
    UNIT_EQUAL(door_upgrade(system), 1);
    door_is(system, "OPEN");
    stage_close(system);
}

/* ---- what does not --------------------------------------------------------------------------- */

/* FSM-1. The older code goes on, and once it is in another state it can change. */
static void
a_state_that_the_newer_table_lacks_keeps_the_older_code(void)
{
    trp_system *system = door_open();

    stage_tell(system, door, "ajar");
    door_is(system, "AJAR");
    UNIT_EQUAL(door_upgrade(system), 0);
    STAGE_EXPECT("[/user/door: code_change from version 1 to 2 failed: state machine door is in "
                 "state AJAR, which the new table lacks]");
    door_is(system, "AJAR");
    stage_tell(system, door, "open");
    door_is(system, "OPEN");
    UNIT_EQUAL(door_upgrade(system), 1);
    door_is(system, "OPEN");
    stage_close(system);
}

/* fsm-change-C1: whatever fails, and wherever. */
static void
a_change_that_fails_leaves_the_machine_as_it_was(void)
{
    static const struct {
        int fails;
        bool plain, bad;
        const char *why;
    } rows[] = {
        { 1, false, false, "input or output failed" },
        { 2, false, false, "state machine door: its data could not be taken over" },
        { 0, true, false, "data of 4 bytes does not become data of 16 bytes without a function" },
        { 0, false, true, "state machine door: " },
    };
    trp_system *system = door_open();
    trp_fsm_subscribe subscribe = { stage_spawn(system, &watcher, "watcher") };

    trp_system_tell(system, door, &trp_fsm_subscribe_type, &subscribe, sizeof subscribe);
    stage_tell(system, door, "limit");
    door_is(system, "SHUT"); /* one that has not started has no machine yet */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        atomic_store(&fails, rows[i].fails);
        how.data = rows[i].plain ? NULL : data_change;
        to = rows[i].bad ? &machine_bad : &machine_2;
        stage_clear(&stage_events);
        UNIT_EQUAL(door_upgrade(system), 0);
        if (!stage_has(rows[i].why)) {
            printf("  was: %s\n", stage_events.text);
        }
        UNIT_TRUE(stage_has(rows[i].why));
        stage_tell(system, door, "ajar");
        stage_tell(system, door, "open");
        UNIT_WAIT(stage_has(">AJAR(1)") && stage_has("AJAR(1)>OPEN(2)"), 60000);
        door_is(system, "OPEN");
    }
    atomic_store(&fails, 0);
    how.data = data_change;
    to = &machine_2;
    stage_tell(system, door, "open");
    door_is(system, "OPEN");
    UNIT_EQUAL(door_upgrade(system), 1);
    stage_tell(system, door, "data");
    UNIT_WAIT(stage_has("data:5,42,"), 60000);
    stage_close(system);
}

UNIT_BEGIN("fsm_change")
UNIT(a_machine_goes_on_in_the_state_of_that_name)
UNIT(a_time_limit_that_runs_goes_on)
UNIT(a_named_timer_goes_on)
UNIT(a_state_with_another_name_is_found_by_the_older_one)
UNIT(a_state_that_the_newer_table_lacks_keeps_the_older_code)
UNIT(a_change_that_fails_leaves_the_machine_as_it_was)
UNIT_END

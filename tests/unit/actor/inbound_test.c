/* inbound_test.c - the door for remoting: messages, selections and signals from other nodes,
 * refusals, timers for upper rooms. */
#include "tests/unit/actor/stage.h"

#include "base/wire.h"

#include "actor/life/life.h"

static trp_err
target_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_string_type)) {
        int bytes = trp_msg_bytes(msg) < 16 ? (int)trp_msg_bytes(msg) : 16;

        stage_note("%.*s<%u", bytes, (const char *)trp_msg_payload(msg), trp_sender(ctx).node);
    } else if (trp_msg_is(msg, &trp_i64_type)) {
        int64_t *next = state, got;

        memcpy(&got, trp_msg_payload(msg), sizeof got);
        UNIT_EQUAL(got, *next);
        (*next)++;
    } else {
        stage_note("?");
    }
    return TRP_OK;
}
static const trp_behaviour target = { .size = sizeof(trp_behaviour),
                                      .name = "target",
                                      .version = 1,
                                      .state_bytes = 8,
                                      .receive = target_receive };

/* A batch of one message. */
static void
tell(trp_system *system, uint32_t slot, uint32_t generation, trp_ref sender, const trp_type *type,
     const void *payload, size_t bytes)
{
    trp_ctx *ctx = trpi_inbound_begin(system);

    trpi_inbound_tell(ctx, slot, generation, sender, type, payload, bytes);
    trpi_inbound_end(ctx);
}

/* REMOTE: a message reaches the incarnation it was sent to, and no other */
static void
a_message_from_the_wire_reaches_its_incarnation_or_nobody(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &target, "a"), far = stage_far(system);
    char script[32];

    tell(system, a.slot, a.generation, far, &trp_string_type, "hello", 5);
    snprintf(script, sizeof script, "hello<%u", far.node);
    STAGE_EXPECT(script);
    tell(system, a.slot, a.generation + 2, far, &trp_string_type, "hello", 5);
    UNIT_EQUAL(stage_dead(system, TRP_DEAD_STALE), 1);
    tell(system, 90000000, 1, far, &trp_string_type, "hello", 5);
    UNIT_EQUAL(stage_dead(system, TRP_DEAD_NO_SUCH_ACTOR), 1);
    tell(system, 0, 0, far, &trp_string_type, "hello", 5);
    tell(system, UINT32_MAX, UINT32_MAX, far, &trp_string_type, "hello", 5);
    UNIT_EQUAL(stage_dead(system, TRP_DEAD_NO_SUCH_ACTOR) + stage_dead(system, TRP_DEAD_STALE), 4);
    STAGE_EXPECT(script);
    stage_close(system);
}

/* A peer cannot send a type that is not registered, of the wrong size, or internal. */
static void
types_that_do_not_travel_are_refused(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &target, "a"), far = stage_far(system);
    trp_terminated lie = { { TRPI_NODE_SELF, a.slot, a.generation, 0 }, 1, 0, { 0 } };
    char bytes[64] = { 0 };

    tell(system, a.slot, a.generation, far, NULL, bytes, 3);
    tell(system, a.slot, a.generation, far, &trp_i64_type, bytes, 7);
    tell(system, a.slot, a.generation, far, &trp_i64_type, bytes, 9);
    tell(system, a.slot, a.generation, far, &trpi_continue_type, bytes, 64);
    tell(system, a.slot, a.generation, far, &trpi_timer_type, bytes, 16);
    tell(system, a.slot, a.generation, far, &trp_terminated_type, &lie, sizeof lie);
    trpi_inbound_select(system, "/user/a", far, &trpi_continue_type, bytes, 64);
    UNIT_EQUAL(stage_dead(system, TRP_DEAD_NOT_ENCODABLE), 7);
    trpi_inbound_signal(system, (enum trpi_remote_signal)99, a, far, 0);
    trpi_inbound_signal(system, TRPI_SIGNAL_TERMINATED, a, far, 1); /* there is no watch */
    STAGE_EXPECT("");
    stage_close(system);
}

static void
chained_messages_keep_their_order(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &target, "a"), b = stage_spawn(system, &target, "b");
    trp_ref far = stage_far(system);

    for (int64_t i = 0; i < 1000;) {
        trp_ctx *ctx = trpi_inbound_begin(system);

        for (int k = 0; k < 10; k++, i++) {
            trpi_inbound_tell(ctx, a.slot, a.generation, far, &trp_i64_type, &i, sizeof i);
            trpi_inbound_tell(ctx, b.slot, b.generation, far, &trp_i64_type, &i, sizeof i);
        }
        trpi_inbound_end(ctx);
    }
    tell(system, a.slot, a.generation, far, &trp_string_type, "a", 1);
    UNIT_WAIT(stage_has("a<"), 5000);
    tell(system, b.slot, b.generation, far, &trp_string_type, "b", 1);
    UNIT_WAIT(stage_has("b<"), 5000);
    stage_close(system);
}

/* Write a record; give the place behind it. */
static uint8_t *
record_put(uint8_t *at, const void *payload, size_t bytes)
{
    trpi_put_u32(at, (uint32_t)bytes);
    memcpy(at + TRPI_RECORD_BYTES, payload, bytes);
    return at + TRPI_RECORD_BYTES + bytes;
}

/* Tell count numbers from *next on as one run. */
static void
run_of_numbers(trp_ctx *ctx, trp_ref to, trp_ref from, int64_t *next, uint32_t count)
{
    uint8_t records[100 * (TRPI_RECORD_BYTES + sizeof *next)], *at = records;

    for (uint32_t i = 0; i < count; i++, (*next)++) {
        at = record_put(at, next, sizeof *next);
    }
    trpi_inbound_tell_run(ctx, to.slot, to.generation, from, &trp_i64_type, records, count);
}

/* Runs and single messages to two actors, one of them with a bounded mailbox, keep their order. */
static void
a_run_keeps_its_order_with_other_messages(void)
{
    trp_system *system = stage_open();
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref to[2], far = stage_far(system);
    int64_t next[2] = { 0, 0 };

    to[0] = stage_spawn(system, &target, "a");
    options.name = "b";
    options.mailbox = "bounded";
    UNIT_EQUAL(trp_system_spawn(system, &target, &options, &to[1]), TRP_OK);
    for (uint32_t round = 0; round < 200; round++) {
        trp_ctx *ctx = trpi_inbound_begin(system);

        for (uint32_t k = 0; k < 8; k++) {
            int which = (int)(k & 1u);

            if ((round + k) % 3 == 0) {
                run_of_numbers(ctx, to[which], far, &next[which], round % 100);
            } else {
                trpi_inbound_tell(ctx, to[which].slot, to[which].generation, far, &trp_i64_type,
                                  &next[which], sizeof next[which]);
                next[which]++;
            }
        }
        trpi_inbound_end(ctx);
    }
    tell(system, to[0].slot, to[0].generation, far, &trp_string_type, "a", 1);
    UNIT_WAIT(stage_has("a<"), 30000);
    tell(system, to[1].slot, to[1].generation, far, &trp_string_type, "b", 1);
    UNIT_WAIT(stage_has("b<"), 30000);
    stage_close(system);
}

/* Each message of a run to nobody is a dead letter, and so is each of a type that does not travel;
 * payloads that a message cannot hold itself arrive. */
static void
a_run_reaches_its_incarnation_or_nobody(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &target, "a"), far = stage_far(system), stale = a;
    trp_ctx *ctx = trpi_inbound_begin(system);
    int64_t number = 0;
    size_t bytes = 100000;
    char *text = malloc(bytes);
    uint8_t *records = malloc(2 * bytes), *at = records;

    UNIT_REQUIRE(text != NULL && records != NULL);
    memset(text, 'x', bytes);
    stale.generation += 2;
    run_of_numbers(ctx, stale, far, &number, 5);
    UNIT_EQUAL(stage_dead(system, TRP_DEAD_STALE), 5);
    number = 0;
    run_of_numbers(ctx, (trp_ref){ TRPI_NODE_SELF, 90000000, 1, 0 }, far, &number, 4);
    UNIT_EQUAL(stage_dead(system, TRP_DEAD_NO_SUCH_ACTOR), 4);
    (void)record_put(record_put(at, text, 64), text, 64);
    trpi_inbound_tell_run(ctx, a.slot, a.generation, far, &trpi_continue_type, records, 2);
    UNIT_EQUAL(stage_dead(system, TRP_DEAD_NOT_ENCODABLE), 2);
    at = record_put(at, "one", 3);
    at = record_put(at, text, bytes);
    (void)record_put(at, "two", 3);
    trpi_inbound_tell_run(ctx, a.slot, a.generation, far, &trp_string_type, records, 3);
    trpi_inbound_end(ctx);
    UNIT_WAIT(stage_has("two<"), 5000);
    UNIT_TRUE(stage_has("one<"));
    UNIT_TRUE(stage_has("xxxxxxxx"));
    free(text);
    free(records);
    stage_close(system);
}

/* REMOTE-08, SYS-24: a peer selects; only local paths */
static void
a_selection_from_the_wire_is_delivered_or_a_dead_letter(void)
{
    trp_system *system = stage_open();
    trp_ref far = stage_far(system);

    stage_spawn(system, &target, "a");
    trpi_inbound_select(system, "/user/a", far, &trp_string_type, "one", 3);
    UNIT_WAIT(stage_has("one<"), 5000);
    trpi_inbound_select(system, "/user/*", far, &trp_string_type, "two", 3);
    UNIT_WAIT(stage_has("two<"), 5000);
    trpi_inbound_select(system, "/user/none", far, &trp_string_type, "x", 1);
    trpi_inbound_select(system, "user/a", far, &trp_string_type, "x", 1);
    trpi_inbound_select(system, "troupe.tcp://other@127.0.0.1:1/user/a", far, &trp_string_type, "x",
                        1);
    trpi_inbound_select(system, "/user//a", far, &trp_string_type, "x", 1);
    trpi_inbound_select(system, "", far, &trp_string_type, "x", 1);
    UNIT_EQUAL(stage_dead(system, TRP_DEAD_NO_SUCH_ACTOR), 5);
    UNIT_FALSE(stage_book_has(&stage_lines, "no selection")); /* a peer could fill the log */
    UNIT_FALSE(stage_book_has(&stage_lines, "no address"));
    stage_close(system);
}

/* A line of the log stays one line, and a terminal that shows it is not at a peer's mercy. */
static void
control_characters_do_not_reach_the_log(void)
{
    trp_system *system = stage_open();

    trp_system_log(system, TRP_LOG_WARNING, "peer", "%s", "a\nforged \x1b[2J\x7f\tline \xc3\xa9");
    UNIT_EQUAL(trp_log_flush(system, 60000), TRP_OK);
    STAGE_LOGGED("a?forged ?[2J??line \xc3\xa9");
    stage_close(system);
}

static _Atomic int fired;
static void
fire(void *arg)
{
    atomic_fetch_add((_Atomic int *)arg, 1);
}

static void
a_timer_of_an_upper_room_fires_or_is_cancelled(void)
{
    trp_system *system = stage_open();
    uint64_t id;

    atomic_store(&fired, 0);
    UNIT_EQUAL(trpi_system_after(system, 5, fire, &fired, &id), TRP_OK);
    UNIT_WAIT(atomic_load(&fired) == 1, 5000);
    UNIT_FALSE(trpi_system_after_cancel(system, id));
    UNIT_EQUAL(trpi_system_after(system, 60000, fire, &fired, &id), TRP_OK);
    UNIT_TRUE(trpi_system_after_cancel(system, id));
    UNIT_FALSE(trpi_system_after_cancel(system, id));
    UNIT_EQUAL(atomic_load(&fired), 1);
    stage_close(system);
}

UNIT_BEGIN("inbound")
UNIT(a_message_from_the_wire_reaches_its_incarnation_or_nobody)
UNIT(types_that_do_not_travel_are_refused)
UNIT(chained_messages_keep_their_order)
UNIT(a_run_keeps_its_order_with_other_messages)
UNIT(a_run_reaches_its_incarnation_or_nobody)
UNIT(a_selection_from_the_wire_is_delivered_or_a_dead_letter)
UNIT(control_characters_do_not_reach_the_log)
UNIT(a_timer_of_an_upper_room_fires_or_is_cancelled)
UNIT_END

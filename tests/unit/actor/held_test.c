/* held_test.c - messages that hold slices: read where they arrive, given back once wherever they
 * end. */
#include "tests/unit/actor/stage.h"

#include <troupe/bytes.h>
#include <troupe/inbox.h>
#include <troupe/mailbox.h>

typedef struct chunk {
    trp_bytes data;
    uint64_t id;
} chunk;
static trp_type chunk_type = TRP_HELD_TYPE("held.chunk", 1);
static trp_type other_type = { "held.other", 8, 2, TRP_TYPE_LOCAL, NULL, 0, 0 };
static trp_type *const held_types[] = { &chunk_type, &other_type };
static const trp_protocol held_protocol = { "held", held_types, 2, 0 };

static _Atomic unsigned made, dropped, released, handled, letters;
static _Atomic bool gate;
static trp_ref to_forward[2];

static void
count_release(void *data, void *arg)
{
    (void)data;
    (void)arg;
    atomic_fetch_add(&released, 1);
}

static void
chunk_drop(void *held)
{
    trp_bytes_unref(&((chunk *)held)->data);
    atomic_fetch_add(&dropped, 1);
}

static trp_msg *
chunk_new(const char *text)
{
    trp_msg *msg = NULL;
    void *place;
    chunk *c;

    UNIT_REQUIRE(trp_msg_new_held(&chunk_type, sizeof *c, chunk_drop, &msg, &place) == TRP_OK);
    c = place;
    UNIT_TRUE(c->data.priv_owner == NULL && c->id == 0); /* zeroed */
    UNIT_REQUIRE(trp_bytes_wrap(text, strlen(text), count_release, NULL, &c->data) == TRP_OK);
    c->id = 7;
    atomic_fetch_add(&made, 1);
    return msg;
}

static void
chunk_send(trp_system *system, trp_ref to, const char *text)
{
    trp_ctx *ctx = trpi_enter(system);

    trpi_send(ctx, to, chunk_new(text));
    trpi_leave(ctx);
}

static trp_err
taker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const chunk *c = trp_msg_held(msg, &chunk_type);
    _Atomic bool *stashes = state;

    if (trp_msg_is(msg, &trp_dead_letter_type)) {
        const trp_msg *lost = trp_dead_letter_msg(msg);

        UNIT_TRUE(lost != NULL && trp_msg_is(lost, &chunk_type));
        UNIT_TRUE(lost == NULL || trp_msg_held(lost, &chunk_type) == NULL);
        atomic_fetch_add(&letters, 1);
    } else if (c != NULL && *stashes) {
        UNIT_EQUAL(trp_stash(ctx, msg), TRP_OK);
        stage_note("stashed");
    } else if (c != NULL) {
        char text[32] = "";

        UNIT_EQUAL(c->id, 7);
        (void)trp_bytes_copy_out(c->data, 0, text, sizeof text - 1);
        stage_note("got:%s", text);
        atomic_fetch_add(&handled, 1);
    } else if (trp_msg_is(msg, &chunk_type)) {
        stage_note("nothing");
    } else if (stage_said(msg, "stash")) {
        *stashes = true;
    } else if (stage_said(msg, "unstash")) {
        *stashes = false;
        trp_unstash_all(ctx);
    } else if (stage_said(msg, "hold")) {
        stage_hold("held", &gate);
    } else if (stage_said(msg, "stop")) {
        trp_stop(ctx, trp_self(ctx));
    }
    return TRP_OK;
}
static const trp_behaviour taker = { .size = sizeof(trp_behaviour),
                                     .name = "taker",
                                     .version = 1,
                                     .state_bytes = 8,
                                     .receive = taker_receive };

static trp_err
forwarder_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_forward(ctx, to_forward[0], msg);
    trp_forward(ctx, to_forward[1], msg);
    return TRP_OK;
}
static const trp_behaviour forwarder = {
    .size = sizeof(trp_behaviour), .name = "forwarder", .version = 1, .receive = forwarder_receive
};

static trp_system *
held_open(void)
{
    UNIT_REQUIRE(trp_protocol_register(&held_protocol) == TRP_OK);
    atomic_store(&made, 0);
    atomic_store(&dropped, 0);
    atomic_store(&released, 0);
    atomic_store(&handled, 0);
    atomic_store(&letters, 0);
    atomic_store(&gate, false);
    return stage_open();
}

/* Each message that was made has given back its slice, once. */
static void
held_close(trp_system *system)
{
    stage_close(system);
    UNIT_EQUAL(atomic_load(&dropped), atomic_load(&made));
    UNIT_EQUAL(atomic_load(&released), atomic_load(&made));
}

static void
a_receiver_reads_what_a_message_holds_and_it_is_dropped_once(void)
{
    trp_system *system = held_open();
    trp_ref t = stage_spawn(system, &taker, "t");

    chunk_send(system, t, "one");
    chunk_send(system, t, "two");
    STAGE_EXPECT("got:one got:two");
    stage_tell(system, t, "next"); /* a message is freed at the latest when the next one comes */
    UNIT_WAIT(atomic_load(&dropped) == 2, 5000);
    held_close(system);
}

static void
copies_of_a_message_share_what_it_holds(void)
{
    trp_system *system = held_open();
    trp_ref f = stage_spawn(system, &forwarder, "f");
    trp_msg *unsent = chunk_new("never sent"), *copy = NULL;

    to_forward[0] = stage_spawn(system, &taker, "a");
    to_forward[1] = stage_spawn(system, &taker, "b");
    chunk_send(system, f, "shared");
    UNIT_WAIT(atomic_load(&handled) == 2, 5000);
    UNIT_REQUIRE(trp_msg_dup(unsent, &copy) == TRP_OK);
    UNIT_TRUE(trp_msg_held(copy, &chunk_type) == trp_msg_held(unsent, &chunk_type));
    trp_msg_free(unsent);
    UNIT_EQUAL(trp_bytes_length(((const chunk *)trp_msg_held(copy, &chunk_type))->data), 10);
    trp_msg_free(copy);
    held_close(system);
}

static void
an_inbox_keeps_what_a_message_holds(void)
{
    trp_system *system = held_open();
    trp_inbox *inbox = NULL;
    trp_msg *msg = NULL;
    trp_ref sender;

    UNIT_REQUIRE(trp_inbox_open(system, NULL, &inbox) == TRP_OK);
    chunk_send(system, trp_inbox_ref(inbox), "kept");
    UNIT_REQUIRE(trp_inbox_receive(inbox, 60000, &msg, &sender) == TRP_OK);
    UNIT_TRUE(trp_msg_held(msg, &chunk_type) != NULL);
    UNIT_TRUE(trp_msg_held(msg, &other_type) == NULL);
    trp_inbox_close(inbox);
    trp_msg_free(msg);
    held_close(system);
}

static void
a_dead_letter_gives_it_back_and_its_event_holds_nothing(void)
{
    trp_system *system = held_open();
    trp_ref t = stage_spawn(system, &taker, "t"), ended = stage_spawn(system, &taker, "ended");
    trp_ref nobody = TRP_REF_NONE;

    UNIT_EQUAL(trp_system_subscribe(system, t, &trp_dead_letter_type), TRP_OK);
    stage_tell(system, ended, "hold");
    STAGE_EXPECT("held");
    stage_tell(system, ended, "stop");
    chunk_send(system, ended, "left");
    atomic_store(&gate, true);
    UNIT_WAIT(atomic_load(&letters) == 1, 5000); /* left when the actor stopped */
    chunk_send(system, ended, "late");
    chunk_send(system, nobody, "nobody");
    UNIT_WAIT(atomic_load(&letters) == 3, 5000);
    UNIT_WAIT(atomic_load(&dropped) == 3, 5000);
    held_close(system);
}

static void
a_bounded_mailbox_refuses_it_whole(void)
{
    trp_mailbox_options box = TRP_MAILBOX_OPTIONS_INIT;
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_system *system = held_open();
    trp_ref t = TRP_REF_NONE;

    box.kind = TRP_MAILBOX_KIND_BOUNDED;
    box.capacity = 2;
    box.push_timeout_ms = TRP_OFF;
    UNIT_REQUIRE(trp_mailbox_register(system, "two", &box) == TRP_OK);
    spawn.mailbox = "two";
    UNIT_REQUIRE(trp_system_spawn(system, &taker, &spawn, &t) == TRP_OK);
    stage_tell(system, t, "hold");
    STAGE_EXPECT("held");
    for (unsigned i = 0; i < 5; i++) {
        chunk_send(system, t, "x");
    }
    UNIT_EQUAL(stage_dead(system, TRP_DEAD_MAILBOX_FULL), 3);
    UNIT_EQUAL(atomic_load(&dropped), 3);
    atomic_store(&gate, true);
    UNIT_WAIT(atomic_load(&handled) == 2, 5000);
    held_close(system);
}

static void
the_stash_keeps_it_until_it_is_read_or_lost(void)
{
    trp_system *system = held_open();
    trp_ref t = stage_spawn(system, &taker, "t");

    stage_tell(system, t, "stash");
    chunk_send(system, t, "one");
    chunk_send(system, t, "two");
    STAGE_EXPECT("stashed stashed");
    stage_tell(system, t, "unstash");
    UNIT_WAIT(atomic_load(&handled) == 2, 5000);
    stage_tell(system, t, "stash");
    chunk_send(system, t, "three");
    stage_tell(system, t, "stop");
    UNIT_WAIT(stage_dead(system, TRP_DEAD_STASH) == 1, 5000);
    held_close(system);
}

static void
the_end_of_the_system_gives_back_what_waits(void)
{
    trp_system *system = held_open();
    trp_ref t = stage_spawn(system, &taker, "t"), s = stage_spawn(system, &taker, "s");

    stage_tell(system, s, "stash");
    chunk_send(system, s, "stashed");
    stage_tell(system, t, "hold");
    UNIT_WAIT(stage_has("held") && stage_has("stashed"), 5000);
    for (unsigned i = 0; i < 100; i++) {
        chunk_send(system, t, "waits");
    }
    trp_system_shutdown(system);
    atomic_store(&gate, true);
    held_close(system);
}

static void
telling_the_type_tells_a_message_that_holds_nothing(void)
{
    trp_system *system = held_open();
    trp_ref t = stage_spawn(system, &taker, "t");
    chunk c = { TRP_BYTES_LITERAL("not counted"), 7 };

    trp_system_tell(system, t, &chunk_type, &c, sizeof c);
    STAGE_EXPECT("nothing");
    held_close(system);
}

static void
only_a_held_type_within_the_limit_makes_one(void)
{
    static trp_type strange = TRP_HELD_TYPE("held.strange", 9);
    trp_msg *msg = NULL;
    void *place;

    UNIT_REQUIRE(trp_protocol_register(&held_protocol) == TRP_OK);
    UNIT_EQUAL(trp_msg_new_held(&other_type, 8, NULL, &msg, &place), TRP_EINVAL);
    UNIT_EQUAL(trp_msg_new_held(&trp_bytes_type, 8, NULL, &msg, &place), TRP_EINVAL);
    UNIT_EQUAL(trp_msg_new_held(&strange, 8, NULL, &msg, &place), TRP_ENOTYPE);
    UNIT_EQUAL(trp_msg_new_held(&chunk_type, TRP_HELD_BYTES_MAX + 1, NULL, &msg, &place),
               TRP_EINVAL);
    UNIT_EQUAL(trp_msg_new_held(&chunk_type, TRP_HELD_BYTES_MAX, NULL, &msg, &place), TRP_OK);
    trp_msg_free(msg); /* without a drop */
    msg = NULL;
    trpi_alloc_fail_here_after(0);
    UNIT_EQUAL(trp_msg_new_held(&chunk_type, 8, chunk_drop, &msg, &place), TRP_ENOMEM);
    trpi_alloc_fail_here_after(-1);
    UNIT_TRUE(msg == NULL);
}

UNIT_BEGIN("held")
UNIT(a_receiver_reads_what_a_message_holds_and_it_is_dropped_once)
UNIT(copies_of_a_message_share_what_it_holds)
UNIT(an_inbox_keeps_what_a_message_holds)
UNIT(a_dead_letter_gives_it_back_and_its_event_holds_nothing)
UNIT(a_bounded_mailbox_refuses_it_whole)
UNIT(the_stash_keeps_it_until_it_is_read_or_lost)
UNIT(the_end_of_the_system_gives_back_what_waits)
UNIT(telling_the_type_tells_a_message_that_holds_nothing)
UNIT(only_a_held_type_within_the_limit_makes_one)
UNIT_END

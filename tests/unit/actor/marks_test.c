/* marks_test.c - marks in an actor's mail: reached in order, once, also when the actor ends. */
#include <troupe/mailbox.h>

#include "actor/actor.h"
#include "tests/unit/actor/stage.h"

static _Atomic bool let_go;
static _Atomic uint64_t reached, handled_then;
static _Atomic uint64_t handled;

static void
reach(void *arg, uint64_t number)
{
    (void)arg;
    atomic_fetch_add(&reached, number);
    atomic_store(&handled_then, atomic_load(&handled));
}

static trp_err
box_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    if (stage_said(msg, "hold")) {
        stage_hold("held", &let_go);
        return TRP_OK;
    }
    atomic_fetch_add(&handled, 1);
    return TRP_OK;
}
static const trp_behaviour box = {
    .size = sizeof(trp_behaviour), .name = "box", .version = 1, .receive = box_receive
};

static void
begin(void)
{
    atomic_store(&let_go, false);
    atomic_store(&reached, 0);
    atomic_store(&handled, 0);
    atomic_store(&handled_then, 0);
}

static enum trpi_mail
mail_of(trp_system *system, trp_ref ref)
{
    trp_ctx *ctx = trpi_enter(system);
    enum trpi_mail mail = trpi_inbound_mail(ctx, ref.slot, ref.generation);

    trpi_leave(ctx);
    return mail;
}

static void
mark(trp_system *system, trp_ref ref, uint64_t number)
{
    trp_ctx *ctx = trpi_enter(system);

    trpi_inbound_mark(ctx, ref.slot, ref.generation, reach, NULL, number);
    trpi_leave(ctx);
}

static void
a_mark_is_reached_when_all_before_it_is_handled(void)
{
    trp_system *system = stage_open();
    trp_system_stats stats = { .size = sizeof stats };
    trp_ref a = stage_spawn(system, &box, "a");

    begin();
    UNIT_WAIT(mail_of(system, a) == TRPI_MAIL_NONE, 5000);
    stage_tell(system, a, "hold");
    STAGE_EXPECT("held");
    UNIT_EQUAL(mail_of(system, a), TRPI_MAIL_WAITS);
    stage_tell(system, a, "x");
    stage_tell(system, a, "x");
    mark(system, a, 5);
    stage_tell(system, a, "x");
    UNIT_EQUAL(atomic_load(&reached), 0);
    atomic_store(&let_go, true);
    UNIT_WAIT(atomic_load(&handled) == 3, 5000);
    UNIT_EQUAL(atomic_load(&reached), 5);
    UNIT_EQUAL(atomic_load(&handled_then), 2);
    UNIT_WAIT(mail_of(system, a) == TRPI_MAIL_NONE, 5000);
    /* a mark is no user message */
    UNIT_WAIT((trp_system_stats_get(system, &stats), stats.messages_processed == 4), 5000);
    stage_close(system);
}

/* Marks to an actor that ends, has ended, or never existed */
static void
a_mark_is_reached_once_whatever_becomes_of_its_actor(void)
{
    trp_system *system = stage_open();
    trp_system_stats stats = { .size = sizeof stats };
    trp_ref a = stage_spawn(system, &box, "a"), never = { TRPI_NODE_SELF, 5000000, 1, 0 };

    begin();
    stage_tell(system, a, "hold");
    STAGE_EXPECT("held");
    mark(system, a, 1);
    trp_system_stop_actor(system, a);
    atomic_store(&let_go, true);
    UNIT_WAIT(atomic_load(&reached) == 1, 5000);
    UNIT_WAIT(mail_of(system, a) == TRPI_MAIL_NONE, 5000);
    mark(system, a, 10);
    mark(system, never, 100);
    UNIT_WAIT(atomic_load(&reached) == 111, 5000);
    trp_system_stats_get(system, &stats);
    for (int i = 0; i < TRP_DEAD_REASON_COUNT; i++) {
        UNIT_EQUAL(stats.dead_letters[i], 0);
    }
    stage_close(system);
    UNIT_EQUAL(atomic_load(&reached), 111);
}

static int
marks_come_first(void *arg, const trp_msg *msg)
{
    (void)arg;
    UNIT_TRUE(trp_msg_type(msg) != NULL && trp_msg_is(msg, &trp_string_type)); /* no mark */
    return 0;
}

/* An ordered mailbox puts no mark before earlier messages; a bounded one has its own bound */
static void
a_mark_stands_behind_all_in_a_mailbox_with_an_order(void)
{
    trp_system *system = stage_open();
    trp_mailbox_options order = TRP_MAILBOX_OPTIONS_INIT, bound = TRP_MAILBOX_OPTIONS_INIT;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref a, b;

    begin();
    order.kind = TRP_MAILBOX_KIND_PRIORITY;
    order.priority = marks_come_first;
    bound.kind = TRP_MAILBOX_KIND_BOUNDED;
    bound.capacity = 10;
    UNIT_REQUIRE(trp_mailbox_register(system, "order", &order) == TRP_OK);
    UNIT_REQUIRE(trp_mailbox_register(system, "bound", &bound) == TRP_OK);
    options.mailbox = "order";
    UNIT_REQUIRE(trp_system_spawn(system, &box, &options, &a) == TRP_OK);
    options.mailbox = "bound";
    UNIT_REQUIRE(trp_system_spawn(system, &box, &options, &b) == TRP_OK);
    UNIT_EQUAL(mail_of(system, b), TRPI_MAIL_OF_OTHERS);
    stage_tell(system, a, "hold");
    STAGE_EXPECT("held");
    stage_tell(system, a, "x");
    UNIT_EQUAL(mail_of(system, a), TRPI_MAIL_WAITS);
    mark(system, a, 7);
    stage_tell(system, a, "x");
    atomic_store(&let_go, true);
    UNIT_WAIT(atomic_load(&reached) == 7, 5000);
    UNIT_EQUAL(atomic_load(&handled_then), 2);
    UNIT_WAIT(mail_of(system, a) == TRPI_MAIL_NONE, 5000);
    stage_close(system);
}

UNIT_BEGIN("marks")
UNIT(a_mark_is_reached_when_all_before_it_is_handled)
UNIT(a_mark_is_reached_once_whatever_becomes_of_its_actor)
UNIT(a_mark_stands_behind_all_in_a_mailbox_with_an_order)
UNIT_END

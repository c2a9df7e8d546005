/* inbox_test.c - an address for a thread: replies, selection, watch, the limit, the end. */
#include <troupe/inbox.h>

#include "tests/unit/actor/stage.h"

static trp_err
parrot_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "end")) {
        trp_stop(ctx, trp_self(ctx));
        return TRP_OK;
    }
    trp_tell(ctx, trp_sender(ctx), trp_msg_type(msg), trp_msg_payload(msg), trp_msg_bytes(msg));
    trp_tell_text(ctx, trp_sender(ctx), "again");
    return TRP_OK;
}
static const trp_behaviour parrot = TRP_BEHAVIOUR_INIT("parrot", int, parrot_receive);

static trp_system *stage;
static trp_inbox *inbox;

static void
open_inbox(uint32_t msgs_max)
{
    trp_inbox_options options = TRP_INBOX_OPTIONS_INIT;

    stage = stage_open();
    options.msgs_max = msgs_max;
    UNIT_REQUIRE(trp_inbox_open(stage, &options, &inbox) == TRP_OK);
}

static void
expect_text(const char *text, trp_ref *ret_sender)
{
    trp_msg *msg = NULL;

    UNIT_EQUAL(trp_inbox_receive(inbox, 60000, &msg, ret_sender), TRP_OK);
    UNIT_TRUE(msg != NULL && stage_said(msg, text));
    trp_msg_free(msg);
}

static int
is_text(void *arg, const trp_msg *msg, trp_ref sender)
{
    (void)sender;
    return stage_said(msg, arg);
}

/* SYS-36, A4J-13 */
static void
several_replies_come_and_can_be_selected(void)
{
    trp_ref to, from;
    trp_msg *msg = NULL;

    open_inbox(0);
    to = stage_spawn(stage, &parrot, "parrot");
    trp_inbox_tell(inbox, to, &trp_string_type, "one", 3);
    expect_text("one", &from);
    UNIT_TRUE(trp_ref_equal(from, to));
    expect_text("again", NULL);
    UNIT_EQUAL(trp_inbox_receive(inbox, 0, &msg, NULL), TRP_ETIMEDOUT);
    UNIT_EQUAL(trp_inbox_receive(inbox, 20, &msg, NULL), TRP_ETIMEDOUT);

    trp_inbox_tell(inbox, to, &trp_string_type, "two", 3);
    trp_inbox_tell(inbox, to, &trp_string_type, "three", 5);
    UNIT_EQUAL(trp_inbox_select(inbox, 60000, is_text, "three", &msg, NULL), TRP_OK);
    trp_msg_free(msg);
    expect_text("two", NULL); /* the others kept their places */
    expect_text("again", NULL);
    expect_text("again", NULL);
    UNIT_EQUAL(trp_inbox_select(inbox, 0, is_text, "four", &msg, NULL), TRP_ETIMEDOUT);
    trp_inbox_close(inbox);
    stage_close(stage);
}

/* SYS-36, WATCH-1 */
static void
an_inbox_watches(void)
{
    trp_ref to, none = TRP_REF_NONE;
    trp_msg *msg = NULL;

    open_inbox(0);
    to = stage_spawn(stage, &parrot, "parrot");
    UNIT_EQUAL(trp_inbox_watch(inbox, none), TRP_EINVAL);
    UNIT_EQUAL(trp_inbox_watch(inbox, to), TRP_OK);
    trp_inbox_tell(inbox, to, &trp_string_type, "one", 3);
    expect_text("one", NULL);
    expect_text("again", NULL);
    stage_tell(stage, to, "end");
    UNIT_EQUAL(trp_inbox_receive(inbox, 60000, &msg, NULL), TRP_OK);
    UNIT_REQUIRE(msg != NULL && trp_msg_is(msg, &trp_terminated_type));
    UNIT_TRUE(trp_ref_equal(((const trp_terminated *)trp_msg_payload(msg))->ref, to));
    trp_msg_free(msg);
    trp_inbox_close(inbox);
    stage_close(stage);
}

/* SYS-36: inbox-size, and one past it */
static void
a_full_inbox_warns_once_and_the_rest_are_dead_letters(void)
{
    open_inbox(3);
    for (int i = 0; i < 3; i++) {
        stage_tell(stage, trp_inbox_ref(inbox), "x");
    }
    stage_tell(stage, trp_inbox_ref(inbox), "past");
    stage_tell(stage, trp_inbox_ref(inbox), "past");
    UNIT_WAIT(stage_dead(stage, TRP_DEAD_MAILBOX_FULL) == 2, 5000);
    UNIT_WAIT(stage_book_has(&stage_lines, "msgs-max=3"), 5000);
    for (int i = 0; i < 3; i++) {
        expect_text("x", NULL);
    }
    stage_tell(stage, trp_inbox_ref(inbox), "room");
    expect_text("room", NULL);
    trp_inbox_close(inbox);
    stage_close(stage);
}

/* SYS-36 */
static void
a_closed_inbox_is_a_dead_letter_and_drops_what_it_held(void)
{
    trp_ref ref;

    open_inbox(0);
    ref = trp_inbox_ref(inbox);
    stage_tell(stage, ref, "unread");
    trp_inbox_close(inbox);
    UNIT_EQUAL(trp_system_graceful_stop(stage, ref, 60000), TRP_OK);
    stage_tell(stage, ref, "late");
    UNIT_WAIT(stage_dead(stage, TRP_DEAD_STALE) + stage_dead(stage, TRP_DEAD_STOPPED) >= 1, 5000);
    trp_inbox_close(NULL);
    stage_close(stage);
}

UNIT_BEGIN("inbox")
UNIT(several_replies_come_and_can_be_selected)
UNIT(an_inbox_watches)
UNIT(a_full_inbox_warns_once_and_the_rest_are_dead_letters)
UNIT(a_closed_inbox_is_a_dead_letter_and_drops_what_it_held)
UNIT_END

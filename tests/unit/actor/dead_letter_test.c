/* dead_letter_test.c - the event stream, lost and unhandled messages. */
#include "tests/unit/actor/stage.h"

#define NEWS_FLASH(F, S) F(S, u32, number)
#define NEWS_OTHER(F, S) F(S, u32, number)
#define NEWS_MESSAGES(M, P) M(P, flash, NEWS_FLASH) M(P, other, NEWS_OTHER)
TRP_PROTOCOL(news, NEWS_MESSAGES)

static trp_ref watched;
static _Atomic bool let_go;

static trp_err
listener_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &news_flash_type)) {
        stage_note("flash%u%s", ((const news_flash *)trp_msg_payload(msg))->number,
                   trp_ref_is_none(trp_sender(ctx)) ? "" : "(sender)");
    } else if (trp_msg_is(msg, &news_other_type)) {
        stage_note("other%u", ((const news_other *)trp_msg_payload(msg))->number);
    } else if (trp_msg_is(msg, &trp_dead_letter_type)) {
        const trp_dead_letter *what = trp_msg_payload(msg);

        stage_note("dead(%u,%s,%llu)", what->reason, what->path, (unsigned long long)what->bytes);
    } else if (trp_msg_is(msg, &trp_suppressed_dead_letter_type)) {
        stage_note("quiet(%s)", ((const trp_dead_letter *)trp_msg_payload(msg))->path);
    } else if (trp_msg_is(msg, &trp_unhandled_type)) {
        stage_note("unhandled");
    } else if (stage_said(msg, "flash")) {
        UNIT_EQUAL(trp_subscribe(ctx, &news_flash_type), TRP_OK);
        trp_reply_text(ctx, "ok");
    } else if (stage_said(msg, "all")) {
        UNIT_EQUAL(trp_subscribe(ctx, NULL), TRP_OK);
        trp_reply_text(ctx, "ok");
    } else if (stage_said(msg, "losses")) {
        UNIT_EQUAL(trp_subscribe(ctx, &trp_dead_letter_type), TRP_OK);
        UNIT_EQUAL(trp_subscribe(ctx, &trp_unhandled_type), TRP_OK);
        trp_reply_text(ctx, "ok");
    } else if (stage_said(msg, "quiet ones")) {
        UNIT_EQUAL(trp_subscribe(ctx, &trp_suppressed_dead_letter_type), TRP_OK);
        trp_reply_text(ctx, "ok");
    } else if (stage_said(msg, "watch")) {
        UNIT_EQUAL(trp_watch(ctx, watched), TRP_OK);
        trp_reply_text(ctx, "ok");
    } else if (stage_said(msg, "hold")) {
        stage_hold("held", &let_go);
    } else if (stage_said(msg, "no flash")) {
        trp_unsubscribe(ctx, &news_flash_type);
        trp_reply_text(ctx, "ok");
    } else if (stage_said(msg, "publish")) {
        news_flash flash = { 9 };

        trp_publish(ctx, &news_flash_type, &flash, sizeof flash);
    } else if (stage_said(msg, "unknown")) {
        trp_unhandled_msg(ctx, msg);
    }
    return TRP_OK;
}
static const trp_behaviour listener = {
    .size = sizeof(trp_behaviour), .name = "listener", .version = 1, .receive = listener_receive
};
static const trp_protocol *const only_news[] = { &news_protocol, NULL };
static const trp_behaviour picky = { .size = sizeof(trp_behaviour),
                                     .name = "picky",
                                     .version = 1,
                                     .receive = listener_receive,
                                     .accepts = only_news };
static char answer[32];

static void
publish(trp_system *system, const trp_type *type, uint32_t number)
{
    news_flash flash = { number };

    trp_system_publish(system, type, &flash, sizeof flash);
}

static trp_system *
open_news(trp_ref *ret_listener)
{
    trp_system *system = stage_open();

    UNIT_EQUAL(trp_protocol_register(&news_protocol), TRP_OK);
    *ret_listener = stage_spawn(system, &listener, "l");
    return system;
}

/* ES-01, EB-01, EB-02, MSG-21 */
static void
a_subscriber_gets_the_type_it_subscribed_to_without_a_sender(void)
{
    trp_ref l;
    trp_system *system = open_news(&l);

    publish(system, &news_flash_type, 0);
    UNIT_EQUAL(stage_ask(system, l, "flash", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(stage_ask(system, l, "flash", answer, sizeof answer), TRP_OK); /* twice is once */
    publish(system, &news_flash_type, 1);
    publish(system, &news_other_type, 2);
    stage_tell(system, l, "publish");
    STAGE_EXPECT("flash1 flash9");
    UNIT_EQUAL(stage_ask(system, l, "no flash", answer, sizeof answer), TRP_OK);
    publish(system, &news_flash_type, 3);
    UNIT_EQUAL(stage_ask(system, l, "no flash", answer, sizeof answer), TRP_OK);
    STAGE_EXPECT("flash1 flash9");
    stage_close(system);
}

/* ES-01 */
static void
a_subscriber_to_all_gets_each_event_once(void)
{
    trp_ref l;
    trp_system *system = open_news(&l);

    UNIT_EQUAL(stage_ask(system, l, "all", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(stage_ask(system, l, "flash", answer, sizeof answer), TRP_OK);
    publish(system, &news_flash_type, 1);
    publish(system, &news_other_type, 2);
    STAGE_EXPECT("flash1 other2");
    stage_close(system);
}

static void
subscriptions_end_with_the_actor(void)
{
    trp_ref l, m;
    trp_system *system = open_news(&l);
    trp_system_stats stats = { .size = sizeof stats };

    UNIT_EQUAL(stage_ask(system, l, "flash", answer, sizeof answer), TRP_OK);
    m = stage_spawn(system, &listener, "m");
    UNIT_EQUAL(trp_system_subscribe(system, m, &news_flash_type), TRP_OK);
    UNIT_EQUAL(trp_system_subscribe(system, (trp_ref)TRP_REF_NONE, NULL), TRP_EINVAL);
    publish(system, &news_flash_type, 1);
    UNIT_WAIT(stage_is("flash1 flash1"), 5000);
    UNIT_EQUAL(trp_system_graceful_stop(system, l, 60000), TRP_OK);
    UNIT_EQUAL(trp_system_graceful_stop(system, m, 60000), TRP_OK);
    publish(system, &news_flash_type, 2);
    trp_system_stats_get(system, &stats);
    for (int i = 0; i < TRP_DEAD_REASON_COUNT; i++) {
        UNIT_EQUAL(stats.dead_letters[i], 0);
    }
    stage_close(system);
}

/* LIFE-11, LIFE-15, ES-03, MSG-21 */
static void
dead_letters_are_counted_and_published_with_reason_and_path(void)
{
    trp_ref l, a;
    trp_system *system = open_news(&l);
    trp_system_stats stats = { .size = sizeof stats };

    UNIT_EQUAL(stage_ask(system, l, "losses", answer, sizeof answer), TRP_OK);
    a = stage_spawn(system, &listener, "a");
    UNIT_EQUAL(trp_system_graceful_stop(system, a, 60000), TRP_OK);
    stage_tell(system, a, "hello");
    STAGE_EXPECT("dead(2,/user/a,5)");
    stage_tell(system, (trp_ref)TRP_REF_NONE, "hey");
    STAGE_EXPECT("dead(2,/user/a,5) dead(11,,3)");
    trp_system_stats_get(system, &stats);
    UNIT_EQUAL(stats.dead_letters[TRP_DEAD_STALE], 1);
    UNIT_EQUAL(stats.dead_letters[TRP_DEAD_NO_SENDER], 1);
    trpi_dead_letter(system, l, a, TRP_DEAD_LANE_FULL, &news_flash_type, 4);
    UNIT_WAIT(stage_has("dead(5,/user/a,4)"), 5000);
    stage_close(system);
}

/* LIFE-16: the first n are logged; at the limit and one past it */
static void
the_first_dead_letters_are_logged(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system;
    trp_ref a;

    options.log_dead_letters = 2;
    system = stage_open_with(options);
    a = stage_spawn(system, &listener, "a");
    UNIT_EQUAL(trp_system_graceful_stop(system, a, 60000), TRP_OK);
    stage_tell(system, a, "1");
    UNIT_EQUAL(trp_log_flush(system, 60000), TRP_OK);
    STAGE_LOGGED("from nobody to /user/a: actor has ended");
    UNIT_FALSE(stage_book_has(&stage_lines, "no more dead letters"));
    stage_tell(system, a, "2");
    UNIT_EQUAL(trp_log_flush(system, 60000), TRP_OK);
    STAGE_LOGGED("no more dead letters will be logged");
    stage_clear(&stage_lines);
    stage_tell(system, a, "3");
    UNIT_EQUAL(trp_log_flush(system, 60000), TRP_OK);
    UNIT_FALSE(stage_book_has(&stage_lines, "dead letter"));
    stage_close(system);

    options.log_dead_letters = TRP_OFF;
    system = stage_open_with(options);
    stage_tell(system, (trp_ref)TRP_REF_NONE, "1");
    UNIT_EQUAL(trp_log_flush(system, 60000), TRP_OK);
    UNIT_FALSE(stage_book_has(&stage_lines, "dead letter"));
    stage_close(system);
}

/* LIFE-17: a Terminated to an actor that has ended is no dead letter */
static void
a_terminated_to_the_dead_is_suppressed(void)
{
    trp_ref l, a;
    trp_system *system = open_news(&l);

    atomic_store(&let_go, false);
    UNIT_EQUAL(stage_ask(system, l, "losses", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(stage_ask(system, l, "quiet ones", answer, sizeof answer), TRP_OK);
    a = stage_spawn(system, &listener, "a");
    watched = stage_spawn(system, &listener, "b");
    UNIT_EQUAL(stage_ask(system, a, "watch", answer, sizeof answer), TRP_OK);
    stage_tell(system, a, "hold");
    STAGE_EXPECT("held");
    UNIT_EQUAL(trp_system_graceful_stop(system, watched, 60000), TRP_OK);
    trp_system_stop_actor(system, a); /* before the messages in its mailbox */
    atomic_store(&let_go, true);
    STAGE_EXPECT("held quiet(/user/a)");
    UNIT_EQUAL(stage_ask(system, l, "losses", answer, sizeof answer), TRP_OK);
    STAGE_EXPECT("held quiet(/user/a)");
    stage_close(system);
}

/* LIFE-17 */
static void
orders_to_the_dead_are_no_dead_letters(void)
{
    trp_ref l, a;
    trp_system *system = open_news(&l);

    UNIT_EQUAL(stage_ask(system, l, "losses", answer, sizeof answer), TRP_OK);
    a = stage_spawn(system, &listener, "a");
    UNIT_EQUAL(trp_system_graceful_stop(system, a, 60000), TRP_OK);
    trp_system_stop_actor(system, a);
    trp_system_tell(system, a, &trp_poison_pill_type, NULL, 0);
    stage_tell(system, a, "x");
    STAGE_EXPECT("dead(2,/user/a,1)");
    stage_close(system);
}

/* A subscriber to dead letters that dies does not make the stream feed on itself. */
static void
a_lost_event_makes_no_event(void)
{
    trp_ref l, a;
    trp_system *system = open_news(&l);

    UNIT_EQUAL(stage_ask(system, l, "all", answer, sizeof answer), TRP_OK);
    a = stage_spawn(system, &listener, "a");
    UNIT_EQUAL(trp_system_graceful_stop(system, a, 60000), TRP_OK);
    {
        trp_dead_letter fake;

        memset(&fake, 0, sizeof fake);
        trp_system_tell(system, a, &trp_dead_letter_type, &fake, sizeof fake);
    }
    stage_tell(system, a, "x");
    STAGE_EXPECT("dead(2,/user/a,1)");
    stage_close(system);
}

/* MSG-15, ES-05, MSG-21 */
static void
unhandled_messages_are_published(void)
{
    trp_ref l, p;
    trp_system *system = open_news(&l);

    UNIT_EQUAL(stage_ask(system, l, "losses", answer, sizeof answer), TRP_OK);
    stage_tell(system, l, "unknown");
    STAGE_EXPECT("unhandled");
    p = stage_spawn(system, &picky, "p");
    stage_tell(system, p, "not news"); /* not among the protocols that it accepts */
    publish(system, &news_flash_type, 1);
    STAGE_EXPECT("unhandled unhandled");
    {
        news_flash flash = { 3 };

        trp_system_tell(system, p, &news_flash_type, &flash, sizeof flash);
    }
    STAGE_EXPECT("unhandled unhandled flash3");
    stage_close(system);
}

UNIT_BEGIN("dead_letter")
UNIT(a_subscriber_gets_the_type_it_subscribed_to_without_a_sender)
UNIT(a_subscriber_to_all_gets_each_event_once)
UNIT(subscriptions_end_with_the_actor)
UNIT(dead_letters_are_counted_and_published_with_reason_and_path)
UNIT(the_first_dead_letters_are_logged)
UNIT(orders_to_the_dead_are_no_dead_letters)
UNIT(a_terminated_to_the_dead_is_suppressed)
UNIT(a_lost_event_makes_no_event)
UNIT(unhandled_messages_are_published)
UNIT_END

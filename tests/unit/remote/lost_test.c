/* lost_test.c - dead letters of two nodes: each node publishes its own, and none goes over the
 * network. */
#include "tests/unit/remote/pair.h"

static _Atomic int letters[2]; /* seen by a subscriber on this side */
static _Atomic int seen_far;   /* told to the right side's subscriber of the left side's stream */
static char text[2][32];
static trp_system *home[2];

static trp_err
keeper_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    return trp_subscribe(ctx, &trp_all_dead_letters_type);
}

static trp_err
keeper_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int side = trp_ctx_system(ctx) == home[0] ? 0 : 1;

    (void)state;
    if (trp_msg_is(msg, &trp_dead_letter_type)) {
        const trp_msg *lost = trp_dead_letter_msg(msg);

        if (lost != NULL) {
            snprintf(text[side], sizeof text[side], "%.*s", (int)trp_msg_bytes(lost),
                     (const char *)trp_msg_payload(lost));
        }
        atomic_fetch_add(&letters[side], 1);
    } else {
        trp_reply(ctx, trp_msg_type(msg), trp_msg_payload(msg), trp_msg_bytes(msg));
    }
    return TRP_OK;
}
static const trp_behaviour keeper = { .size = sizeof(trp_behaviour),
                                      .name = "keeper",
                                      .version = 1,
                                      .receive = keeper_receive,
                                      .pre_start = keeper_start };

/* Answers texts and counts everything else. */
static trp_err
far_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_string_type)) {
        trp_reply_text(ctx, "ok");
    } else {
        atomic_fetch_add(&seen_far, 1);
    }
    return TRP_OK;
}
static const trp_behaviour far_away = TRP_BEHAVIOUR_INIT("far", char, far_receive);

/* Wait until all earlier messages were handled, by an answer from the right side. */
static void
wait_through(pair *p, trp_ref to)
{
    trp_msg *reply = NULL;

    UNIT_EQUAL(trp_system_ask(p->system[0], to, &trp_string_type, "?", 1, 60000, &reply), TRP_OK);
    trp_msg_free(reply);
}

/* ES-04, ES-03, REMOTE-15 */
static void
a_dead_letter_stays_on_the_node_that_found_it_out(void)
{
    pair p;

    pair_start(&p, false, NULL);
    for (int i = 0; i < 2; i++) {
        trp_msg *reply = NULL;

        home[i] = p.system[i];
        atomic_store(&letters[i], 0);
        trp_ref k = pair_spawn(p.system[i], &keeper, "keeper", NULL, NULL, 0);
        UNIT_EQUAL(trp_system_ask(p.system[i], k, &trp_string_type, "?", 1, 60000, &reply),
                   TRP_OK); /* it has subscribed */
        trp_msg_free(reply);
    }
    atomic_store(&seen_far, 0);
    trp_ref f = pair_spawn(p.system[1], &far_away, "far", NULL, NULL, 0);
    trp_ref dead = pair_spawn(p.system[1], &far_away, "dead", NULL, NULL, 0);
    trp_ref far_ref = pair_abroad(&p, f), dead_ref = pair_abroad(&p, dead);
    UNIT_EQUAL(trp_system_graceful_stop(p.system[1], dead, 60000), TRP_OK);
    /* an actor of the right side listens to the left side's stream */
    UNIT_EQUAL(trp_system_subscribe(p.system[0], far_ref, &trp_all_dead_letters_type), TRP_OK);

    /* lost on the right: its node tells, the sender's node does not */
    trp_system_tell(p.system[0], dead_ref, &trp_string_type, "far", 3);
    UNIT_WAIT(atomic_load(&letters[1]) == 1, 60000);
    wait_through(&p, far_ref);
    UNIT_EQUAL(atomic_load(&letters[0]), 0);
    UNIT_TEXT(text[1], "far");

    /* lost on the left: the same the other way round, and no event is sent */
    trp_system_tell(p.system[0], (trp_ref)TRP_REF_NONE, &trp_string_type, "near", 4);
    UNIT_WAIT(atomic_load(&letters[0]) == 1, 60000);
    wait_through(&p, far_ref);
    UNIT_EQUAL(atomic_load(&letters[1]), 1);
    UNIT_TEXT(text[0], "near");
    UNIT_EQUAL(atomic_load(&seen_far), 0);
    pair_end(&p);
}

static trp_type home_type = { "lost.home", 0, 1, TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL, NULL, 0, 0 };
static trp_type *const lost_types[] = { &home_type };
static const trp_protocol lost_protocol = { "lost", lost_types, 1 };

/* ES-03, ES-04: a message that cannot be encoded is a dead letter at the sender's node, whose event
 * has it */
static void
what_cannot_leave_is_a_dead_letter_at_home_with_its_message(void)
{
    pair p;
    trp_msg *reply = NULL;

    UNIT_REQUIRE(trp_protocol_register(&lost_protocol) == TRP_OK);
    pair_start(&p, false, NULL);
    home[0] = p.system[0];
    home[1] = p.system[1];
    atomic_store(&letters[0], 0);
    text[0][0] = 0;
    trp_ref k = pair_spawn(p.system[0], &keeper, "keeper", NULL, NULL, 0);
    UNIT_EQUAL(trp_system_ask(p.system[0], k, &trp_string_type, "?", 1, 60000, &reply), TRP_OK);
    trp_msg_free(reply);
    trp_ref far_ref = pair_abroad(&p, pair_spawn(p.system[1], &far_away, "far", NULL, NULL, 0));
    trp_system_tell(p.system[0], far_ref, &home_type, "stays", 5);
    UNIT_WAIT(atomic_load(&letters[0]) == 1, 60000);
    UNIT_TEXT(text[0], "stays");
    pair_end(&p);
}

UNIT_BEGIN("remote_lost")
UNIT(a_dead_letter_stays_on_the_node_that_found_it_out)
UNIT(what_cannot_leave_is_a_dead_letter_at_home_with_its_message)
UNIT_END

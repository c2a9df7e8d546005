/* category_test.c - tell one member of a category, or all of them; and the results. */
#include <troupe/category.h>
#include <troupe/mailbox.h>

#include "tests/unit/actor/stage.h"

static _Atomic bool let_go;
static _Atomic int handled[4];

static trp_err
member_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    char name[64];
    int me = stage_name(trp_ctx_system(ctx), trp_self(ctx), name, sizeof name)[1] - '0';

    (void)state;
    if (stage_said(msg, "hold")) {
        stage_hold("held", &let_go);
        return TRP_OK;
    }
    atomic_fetch_add(&handled[me], 1);
    return TRP_OK;
}
static int
no_junk(const trp_msg *msg)
{
    return !stage_said(msg, "junk");
}
static const trp_behaviour member = {
    .size = sizeof(trp_behaviour), .name = "member", .version = 1, .receive = member_receive
};
static const trp_behaviour picky = { .size = sizeof(trp_behaviour),
                                     .name = "picky",
                                     .version = 1,
                                     .receive = member_receive,
                                     .will_receive = no_junk };

static trp_err
text_send(trp_system *system, const char *text, trp_delivery *delivery)
{
    return trp_system_category_send(system, "crew", &trp_string_type, text, strlen(text), delivery);
}

/* UJ-04, UJ-17: the one with the fewest that wait; of equals the one that came first */
static void
a_message_goes_to_the_least_loaded_member(void)
{
    trp_system *system = stage_open();
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref m[3];
    char name[8];

    atomic_store(&let_go, false);
    options.dispatcher = "pinned";
    for (int i = 0; i < 3; i++) {
        atomic_store(&handled[i], 0);
        snprintf(name, sizeof name, "m%d", i);
        options.name = name;
        UNIT_EQUAL(trp_system_spawn(system, &member, &options, &m[i]), TRP_OK);
        UNIT_EQUAL(trp_category_join(system, "crew", m[i]), TRP_OK);
        UNIT_EQUAL(trp_category_join(system, "crew", m[i]), TRP_OK); /* twice is once */
    }
    UNIT_EQUAL(trp_category_size(system, "crew"), 3);
    for (int i = 0; i < 3; i++) { /* one that starts looks as busy as one that is held */
        trp_mailbox_view view;

        UNIT_WAIT(trp_mailbox_look(system, m[i], &view) == TRP_OK && view.idle, 5000);
    }
    for (int i = 0; i < 3; i++) { /* each gets one: the others are busy */
        UNIT_EQUAL(text_send(system, "hold", NULL), TRP_OK);
        UNIT_WAIT(stage_count("held") == (size_t)i + 1, 5000);
    }
    UNIT_EQUAL(trp_category_leave(system, "crew", m[2]), TRP_OK);
    UNIT_EQUAL(trp_category_leave(system, "crew", m[2]), TRP_ENOENT);
    for (int i = 0; i < 10; i++) {
        UNIT_EQUAL(text_send(system, "work", NULL), TRP_OK);
    }
    atomic_store(&let_go, true);
    UNIT_WAIT(atomic_load(&handled[0]) + atomic_load(&handled[1]) == 10, 5000);
    UNIT_EQUAL(atomic_load(&handled[0]), 5); /* not all to one, though nobody could run */
    UNIT_EQUAL(atomic_load(&handled[1]), 5);
    UNIT_EQUAL(atomic_load(&handled[2]), 0);
    stage_close(system);
}

/* UJ-16, UJ-18, TRP-03, UJ-04, UJ-06: a count and an error for each target, the same for one, some
 * and all */
static void
what_becomes_of_a_tell_to_several_is_told(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &member, "m0"), b = stage_spawn(system, &picky, "m1"),
            c = stage_spawn(system, &member, "m2");
    trp_delivery_error errors[4];
    trp_delivery delivery = TRP_DELIVERY_INIT;

    delivery.errors = errors;
    delivery.errors_max = 4;
    for (int i = 0; i < 3; i++) {
        atomic_store(&handled[i], 0);
    }
    for (int i = 0; i < 3; i++) { /* one that starts looks busy, and another one is taken first */
        trp_mailbox_view view;
        trp_ref each = i == 0 ? a : i == 1 ? b : c;

        UNIT_WAIT(trp_mailbox_look(system, each, &view) == TRP_OK && view.idle, 5000);
    }
    UNIT_EQUAL(text_send(system, "work", &delivery), TRP_ENOENT);
    UNIT_EQUAL(delivery.targets, 0);
    UNIT_EQUAL(trp_category_join(system, "crew", b), TRP_OK);
    UNIT_EQUAL(text_send(system, "junk", &delivery), TRP_EAGAIN); /* the only one refuses */
    UNIT_EQUAL(delivery.targets, 1);
    UNIT_EQUAL(delivery.errors_count, 1);
    UNIT_EQUAL(errors[0].err, TRP_EUNHANDLED);
    UNIT_TRUE(trp_ref_equal(errors[0].target, b));
    UNIT_EQUAL(trp_category_join(system, "crew", a), TRP_OK);
    UNIT_EQUAL(trp_category_join(system, "night", a), TRP_OK);
    UNIT_EQUAL(trp_category_join(system, "night", c), TRP_OK);
    UNIT_EQUAL(text_send(system, "junk", &delivery), TRP_OK); /* the next takes it */
    UNIT_EQUAL(delivery.targets, 2);
    UNIT_EQUAL(delivery.accepted, 1);
    UNIT_WAIT(atomic_load(&handled[0]) == 1, 5000);

    /* all of all categories: a is in two of them and is told once */
    UNIT_EQUAL(trp_system_category_broadcast(system, NULL, &trp_string_type, "junk", 4, &delivery),
               TRP_OK);
    UNIT_EQUAL(delivery.targets, 3);
    UNIT_EQUAL(delivery.accepted, 2);
    UNIT_EQUAL(delivery.errors_count, 1);
    UNIT_WAIT(atomic_load(&handled[0]) == 2 && atomic_load(&handled[2]) == 1, 5000);
    UNIT_EQUAL(atomic_load(&handled[1]), 0);

    UNIT_EQUAL(trp_system_graceful_stop(system, a, 60000), TRP_OK);
    UNIT_EQUAL(trp_category_size(system, "night"), 1); /* left with its end */
    UNIT_EQUAL(trp_category_join(system, "night", a), TRP_ENOENT);
    UNIT_EQUAL(trp_category_join(system, "no/name", b), TRP_EINVAL);
    stage_close(system);
}

/* UJ-09, UJ-17, TRP-03: a full mailbox is not chosen; when all are full, the result says so for
 * each */
static void
a_full_member_refuses(void)
{
    trp_mailbox_options bound = TRP_MAILBOX_OPTIONS_INIT;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_system *system = stage_open();
    trp_delivery_error errors[4];
    trp_delivery delivery = TRP_DELIVERY_INIT;
    trp_ref m[2];

    atomic_store(&let_go, false);
    bound.kind = TRP_MAILBOX_KIND_BOUNDED;
    bound.capacity = 2;
    bound.push_timeout_ms = TRP_OFF;
    UNIT_EQUAL(trp_mailbox_register(system, "two", &bound), TRP_OK);
    options.mailbox = "two";
    options.dispatcher = "pinned";
    options.name = "m0";
    UNIT_EQUAL(trp_system_spawn(system, &member, &options, &m[0]), TRP_OK);
    options.name = "m1";
    UNIT_EQUAL(trp_system_spawn(system, &member, &options, &m[1]), TRP_OK);
    for (int i = 0; i < 2; i++) {
        atomic_store(&handled[i], 0);
        stage_tell(system, m[i], "hold");
        UNIT_WAIT(stage_count("held") == (size_t)i + 1, 5000);
        UNIT_EQUAL(trp_category_join(system, "crew", m[i]), TRP_OK);
    }
    delivery.errors = errors;
    delivery.errors_max = 4;
    stage_tell(system, m[0], "work"); /* the number is exact, whoever told */
    for (int i = 0; i < 3; i++) {
        UNIT_EQUAL(text_send(system, "work", &delivery), TRP_OK);
        UNIT_EQUAL(delivery.targets, 1);
    }
    UNIT_EQUAL(text_send(system, "work", &delivery), TRP_EAGAIN);
    UNIT_EQUAL(delivery.targets, 2);
    UNIT_EQUAL(delivery.errors_count, 2);
    UNIT_EQUAL(errors[0].err, TRP_EAGAIN);
    UNIT_EQUAL(errors[1].err, TRP_EAGAIN);
    /* TRP-03: to each of them, or to one by name, it is the same error */
    UNIT_EQUAL(
        trp_system_category_broadcast(system, "crew", &trp_string_type, "work", 4, &delivery),
        TRP_EAGAIN);
    UNIT_EQUAL(delivery.targets, 2);
    UNIT_EQUAL(delivery.accepted, 0);
    UNIT_EQUAL(delivery.errors_count, 2);
    UNIT_EQUAL(errors[0].err, TRP_EAGAIN);
    UNIT_EQUAL(errors[1].err, TRP_EAGAIN);
    UNIT_EQUAL(trp_system_try_tell(system, m[0], &trp_string_type, "work", 4), TRP_EAGAIN);
    atomic_store(&let_go, true);
    UNIT_WAIT(atomic_load(&handled[0]) == 2 && atomic_load(&handled[1]) == 2, 5000);
    stage_close(system);
}

static trp_err
teller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_ref refs[3] = { trp_self(ctx), trp_sender(ctx), TRP_REF_NONE };
    trp_delivery_error errors[1];
    trp_delivery delivery = TRP_DELIVERY_INIT;

    (void)state;
    if (trp_ref_equal(trp_sender(ctx), trp_self(ctx))) {
        stage_note("self");
        return TRP_OK;
    }
    delivery.errors = errors;
    delivery.errors_max = 1;
    UNIT_EQUAL(trp_tell_each(ctx, refs, 3, &trp_string_type, trp_msg_payload(msg),
                             trp_msg_bytes(msg), &delivery),
               TRP_OK);
    UNIT_EQUAL(delivery.accepted, 2);
    UNIT_EQUAL(delivery.errors_count, 1);
    UNIT_EQUAL(errors[0].err, TRP_ENOENT);
    UNIT_EQUAL(trp_tell_each(ctx, refs, 0, &trp_string_type, "", 0, NULL), TRP_ENOENT);
    UNIT_EQUAL(trp_category_send(ctx, "nobody", &trp_string_type, "", 0, NULL), TRP_ENOENT);
    UNIT_EQUAL(trp_category_broadcast(ctx, "nobody", &trp_string_type, "", 0, NULL), TRP_ENOENT);
    UNIT_EQUAL(trp_category_broadcast(ctx, "tellers", &trp_string_type, "", 0, &delivery), TRP_OK);
    UNIT_EQUAL(delivery.accepted, 1); /* it is told with itself as the sender */
    return TRP_OK;
}
static const trp_behaviour teller = {
    .size = sizeof(trp_behaviour), .name = "teller", .version = 1, .receive = teller_receive
};

/* UJ-03, UJ-16: each gets a copy of its own with the sender in it */
static void
one_message_is_told_to_several(void)
{
    trp_system *system = stage_open();
    trp_ref t = stage_spawn(system, &teller, "t");
    char answer[16] = "";

    UNIT_EQUAL(trp_category_join(system, "tellers", t), TRP_OK);
    UNIT_EQUAL(stage_ask(system, t, "copy", answer, sizeof answer), TRP_OK);
    UNIT_TEXT(answer, "copy");
    UNIT_WAIT(stage_count("self") == 2, 5000);
    stage_close(system);
}

/* UJ-04: TRP_CATEGORY_MEMBERS_MAX. Members may live elsewhere; one that has ended makes room. */
static void
a_category_has_a_limit_and_joining_is_cheap_up_to_it(void)
{
    trp_system *system = stage_open();
    trp_ref here = stage_spawn(system, &member, "m0"), far = stage_far(system);
    int failed = 0;

    UNIT_EQUAL(trp_category_join(system, "crowd", here), TRP_OK);
    for (far.slot = 1; far.slot < TRP_CATEGORY_MEMBERS_MAX; far.slot++) {
        failed += trp_category_join(system, "crowd", far) != TRP_OK;
    }
    UNIT_EQUAL(failed, 0);
    UNIT_EQUAL(trp_category_size(system, "crowd"), TRP_CATEGORY_MEMBERS_MAX);
    UNIT_EQUAL(trp_category_join(system, "crowd", far), TRP_ELIMIT);
    UNIT_EQUAL(trp_category_join(system, "crowd", here), TRP_OK); /* there already */
    UNIT_EQUAL(trp_category_join(system, "other", far), TRP_OK);
    UNIT_EQUAL(trp_system_graceful_stop(system, here, 60000), TRP_OK);
    UNIT_EQUAL(trp_category_join(system, "crowd", far), TRP_OK);
    far.slot++;
    UNIT_EQUAL(trp_category_join(system, "crowd", far), TRP_ELIMIT);
    far.slot = 7;
    UNIT_EQUAL(trp_category_leave(system, "crowd", far), TRP_OK);
    UNIT_EQUAL(trp_category_leave(system, "crowd", far), TRP_ENOENT);
    UNIT_EQUAL(trp_category_join(system, "crowd", far), TRP_OK);
    UNIT_EQUAL(trp_category_size(system, "crowd"), TRP_CATEGORY_MEMBERS_MAX);
    stage_close(system);
}

UNIT_BEGIN("category")
UNIT(a_message_goes_to_the_least_loaded_member)
UNIT(what_becomes_of_a_tell_to_several_is_told)
UNIT(a_full_member_refuses)
UNIT(one_message_is_told_to_several)
UNIT(a_category_has_a_limit_and_joining_is_cheap_up_to_it)
UNIT_END

/* behaviour_test.c - behaviours as values: composed of parts, described once, checked at spawn,
 * initialised in each of the usual ways. */
#include "tests/unit/actor/stage.h"

/* ---- composition ----------------------------------------------------------------------------- */

static trp_err
specific(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    ++*(int *)state;
    if (stage_said(msg, "one")) {
        stage_note("specific:one");
    } else if (stage_said(msg, "fail")) {
        return TRP_EIO;
    } else if (stage_said(msg, "watch")) {
        trp_ref kid = trp_child(ctx, "kid");

        UNIT_EQUAL(trp_watch(ctx, kid), TRP_OK);
        trp_stop(ctx, kid);
    } else {
        return TRP_EUNHANDLED;
    }
    return TRP_OK;
}

static trp_err
general(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "two") || stage_said(msg, "one")) {
        stage_note("general:%.*s", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
        trp_reply_text(ctx, "ok");
        return TRP_OK;
    }
    return TRP_EUNHANDLED;
}

static trp_err
last(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    if (stage_said(msg, "three")) {
        stage_note("last:three after %d", *(int *)state);
        return TRP_OK;
    }
    return TRP_EUNHANDLED;
}

TRP_OR_ELSE(first_two, specific, general)
TRP_OR_ELSE(composed, first_two, last)

static const trp_behaviour idler;

static trp_err
composed_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    stage_child(ctx, &idler, "kid");
    return TRP_OK;
}
static const trp_behaviour composed_behaviour = { .size = sizeof(trp_behaviour),
                                                  .name = "composed",
                                                  .state_bytes = sizeof(int),
                                                  .receive = composed,
                                                  .pre_start = composed_pre_start };

static trp_err
listen_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    return trp_subscribe(ctx, &trp_unhandled_type);
}
static trp_err
listen_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_unhandled_type)) {
        const trp_unhandled *what = trp_msg_payload(msg);
        char path[128];

        stage_note("unhandled(%s)",
                   trp_path(trp_ctx_system(ctx), what->recipient, path, sizeof path));
    } else {
        trp_reply_text(ctx, "here");
    }
    return TRP_OK;
}
static const trp_behaviour listener = { .size = sizeof(trp_behaviour),
                                        .name = "listener",
                                        .receive = listen_receive,
                                        .pre_start = listen_pre_start };
static const trp_behaviour idler = { .size = sizeof(trp_behaviour),
                                     .name = "idler",
                                     .receive = listen_receive };
static char answer[64];

static trp_system *
open_composed(trp_ref *ret_ref)
{
    trp_system *system = stage_open();
    trp_ref l = stage_spawn(system, &listener, "l");

    UNIT_EQUAL(stage_ask(system, l, "?", answer, sizeof answer), TRP_OK); /* it has subscribed */
    *ret_ref = stage_spawn(system, &composed_behaviour, "c");
    return system;
}

/* BEH-5, MSG-15: the first part that handles a message gets it, the others do not see it; a
 * message that no part handles is published, and an error of a part is a failure */
static void
parts_of_a_behaviour_are_tried_in_their_order(void)
{
    trp_ref c;
    trp_system *system = open_composed(&c);

    stage_tell(system, c, "one");
    stage_tell(system, c, "two");
    stage_tell(system, c, "three");
    STAGE_EXPECT("specific:one general:two last:three after 3");
    stage_clear(&stage_events);
    stage_tell(system, c, "four");
    STAGE_EXPECT("unhandled(/user/c)");
    UNIT_FALSE(stage_book_has(&stage_lines, "failed"));
    stage_tell(system, c, "fail");
    UNIT_WAIT(stage_book_has(&stage_lines, "/user/c: failed: input or output failed (TRP_EIO)"),
              5000);
    stage_close(system);
}

/* BEH-5, WATCH-5, MSG-15: Terminated that no part handles is a death pact, not an event */
static void
a_terminated_that_no_part_handles_is_a_death_pact(void)
{
    trp_ref c;
    trp_system *system = open_composed(&c);

    stage_tell(system, c, "watch");
    UNIT_WAIT(stage_book_has(&stage_lines, "/user/c: failed: death pact: /user/c/kid has ended"),
              5000);
    UNIT_WAIT(stage_ask(system, c, "two", answer, sizeof answer) == TRP_ENOENT, 5000);
    UNIT_FALSE(stage_has("unhandled"));
    stage_close(system);
}

/* MSG-15: an unhandled message alone does not reset the receive timeout, and is no failure, also
 * when it came from the stash */
static trp_err
put_aside(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int *stashed = state;

    if (trp_msg_is(msg, &trp_receive_timeout_type)) {
        trp_receive_timeout_set(ctx, 0);
        stage_note("idle");
    } else if (stage_said(msg, "open")) {
        trp_unstash_all(ctx);
        trp_receive_timeout_set(ctx, 20);
    } else if (*stashed == 0) {
        *stashed = 1;
        return trp_stash(ctx, msg);
    } else {
        return TRP_EUNHANDLED;
    }
    return TRP_OK;
}
static const trp_behaviour stasher = { .size = sizeof(trp_behaviour),
                                       .name = "stasher",
                                       .state_bytes = sizeof(int),
                                       .receive = put_aside };

/* MSG-15, BEH-7 */
static void
an_unhandled_message_out_of_the_stash_is_published_too(void)
{
    trp_ref c, s;
    trp_system *system = open_composed(&c);

    s = stage_spawn(system, &stasher, "s");
    stage_tell(system, s, "later");
    stage_tell(system, s, "open");
    STAGE_EXPECT("unhandled(/user/s) idle");
    UNIT_FALSE(stage_book_has(&stage_lines, "failed"));
    stage_close(system);
}

/* ---- the recipe ------------------------------------------------------------------------------ */

typedef struct recipe_args {
    int64_t number;
    void (*make)(void *state, int64_t number); /* SYS-31: who builds the actor */
} recipe_args;
static trp_type recipe_type = { "recipe.args", sizeof(recipe_args), 1, TRP_TYPE_LOCAL, NULL, 0, 0 };
static trp_type *const recipe_types[] = { &recipe_type };
static const trp_protocol recipe_protocol = { "recipe", recipe_types, 1 };

static void
make_twice(void *state, int64_t number)
{
    *(int64_t *)state = 2 * number;
}

static trp_err
recipe_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    const recipe_args *a = trp_msg_payload(args);

    (void)ctx;
    a->make(state, a->number);
    return TRP_OK;
}
static trp_err
recipe_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t *number = state;

    if (stage_said(msg, "fail")) {
        *number = -1;
        return TRP_EIO;
    }
    trp_reply(ctx, &trp_i64_type, number, sizeof *number);
    return TRP_OK;
}
static const trp_behaviour recipe = { .size = sizeof(trp_behaviour),
                                      .name = "recipe",
                                      .state_bytes = sizeof(int64_t),
                                      .receive = recipe_receive,
                                      .pre_start = recipe_pre_start,
                                      .args_type = &recipe_type };

static int64_t
number_of(trp_system *system, trp_ref ref)
{
    trp_msg *reply = NULL;
    int64_t number = 0;

    if (UNIT_EQUAL(trp_system_ask(system, ref, &trp_string_type, "?", 1, 60000, &reply), TRP_OK)) {
        memcpy(&number, trp_msg_payload(reply), sizeof number);
        trp_msg_free(reply);
    }
    return number;
}

/* SYS-29: a recipe that cannot work is refused by the spawn, not by the first start */
static void
arguments_that_do_not_fit_are_refused_at_spawn(void)
{
    trp_system *system = stage_open();
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    int64_t number = 4;
    trp_ref ref = TRP_REF_NONE;

    UNIT_EQUAL(trp_protocol_register(&recipe_protocol), TRP_OK);
    UNIT_EQUAL(trp_system_spawn(system, &recipe, NULL, &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_system_spawn(system, &recipe, &options, &ref), TRP_EINVAL);
    options.args_type = &trp_i64_type;
    options.args = &number;
    options.args_bytes = sizeof number;
    UNIT_EQUAL(trp_system_spawn(system, &recipe, &options, &ref), TRP_EINVAL);
    options.args_type = &recipe_type; /* right type, wrong size */
    UNIT_EQUAL(trp_system_spawn(system, &recipe, &options, &ref), TRP_EINVAL);
    UNIT_TRUE(trp_ref_is_none(ref));
    UNIT_FALSE(stage_book_has(&stage_lines, "failed"));
    stage_close(system);
}

/* SYS-29, SYS-30, SYS-31: one recipe makes many actors; its arguments are a copy, so nothing of
 * their maker is seen later, and a restart builds from them again, through the factory they name
 */
static void
a_recipe_is_a_value_that_outlives_its_maker(void)
{
    trp_system *system = stage_open();
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    recipe_args args = { 21, make_twice };
    trp_ref a, b;

    UNIT_EQUAL(trp_protocol_register(&recipe_protocol), TRP_OK);
    options.args_type = &recipe_type;
    options.args = &args;
    options.args_bytes = sizeof(args);
    UNIT_EQUAL(trp_system_spawn(system, &recipe, &options, &a), TRP_OK);
    memset(&args, 0xff, sizeof(args));
    UNIT_EQUAL(number_of(system, a), 42);
    stage_tell(system, a, "fail");
    UNIT_EQUAL(number_of(system, a), 42);
    args = (recipe_args){ 5, make_twice };
    UNIT_EQUAL(trp_system_spawn(system, &recipe, &options, &b), TRP_OK);
    UNIT_EQUAL(number_of(system, b), 10);
    UNIT_EQUAL(number_of(system, a), 42);
    stage_close(system);
}

/* ---- ways to initialise ---------------------------------------------------------------------- */

static trp_err
each_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    (void)state;
    (void)args;
    stage_note("init");
    return TRP_OK;
}
static trp_err
no_post_restart(trp_ctx *ctx, void *state, const trp_failure *why, const trp_msg *args)
{
    (void)ctx;
    (void)state;
    (void)why;
    (void)args;
    return TRP_OK;
}
static trp_err
work(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    if (stage_said(msg, "fail")) {
        return TRP_EIO;
    }
    stage_note("%.*s", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
    return TRP_OK;
}
/* Until it is told "init", it puts everything aside. */
static trp_err
wait_for_init(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (!stage_said(msg, "init")) {
        return trp_stash(ctx, msg);
    }
    stage_note("init");
    trp_unstash_all(ctx);
    return trp_become(ctx, work, 0);
}
static const trp_behaviour at_each_start = {
    .size = sizeof(trp_behaviour), .name = "each", .receive = work, .pre_start = each_pre_start
};
static const trp_behaviour once = { .size = sizeof(trp_behaviour),
                                    .name = "once",
                                    .receive = work,
                                    .pre_start = each_pre_start,
                                    .post_restart = no_post_restart };
static const trp_behaviour by_message = { .size = sizeof(trp_behaviour),
                                          .name = "by message",
                                          .receive = wait_for_init };

/* LIFE-19 */
static void
an_actor_is_initialised_at_each_start_or_once_or_by_a_message(void)
{
    trp_system *system = stage_open();
    trp_ref a = stage_spawn(system, &at_each_start, "a");

    stage_tell(system, a, "fail");
    stage_tell(system, a, "x");
    STAGE_EXPECT("init init x");
    stage_clear(&stage_events);
    a = stage_spawn(system, &once, "b");
    stage_tell(system, a, "fail");
    stage_tell(system, a, "x");
    STAGE_EXPECT("init x");
    stage_clear(&stage_events);
    a = stage_spawn(system, &by_message, "c");
    stage_tell(system, a, "x");
    stage_tell(system, a, "y");
    stage_tell(system, a, "init");
    stage_tell(system, a, "z");
    STAGE_EXPECT("init x y z");
    stage_close(system);
}

UNIT_BEGIN("behaviour")
UNIT(parts_of_a_behaviour_are_tried_in_their_order)
UNIT(a_terminated_that_no_part_handles_is_a_death_pact)
UNIT(an_unhandled_message_out_of_the_stash_is_published_too)
UNIT(arguments_that_do_not_fit_are_refused_at_spawn)
UNIT(a_recipe_is_a_value_that_outlives_its_maker)
UNIT(an_actor_is_initialised_at_each_start_or_once_or_by_a_message)
UNIT_END

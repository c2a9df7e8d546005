/* interaction_test.c - interactions: a conversation that the runtime passes on with messages. */
#include <troupe/category.h>
#include <troupe/dispatcher.h>
#include <troupe/interaction.h>

#include "tests/unit/actor/stage.h"

static const trp_interaction order = { 7, 42, "sale", "books" };
static trp_ref next_of[3];
static _Atomic int rounds;

static void
note(trp_ctx *ctx, const trp_msg *msg)
{
    const trp_interaction *in = trp_msg_interaction(msg);
    char name[64];

    stage_note("%s:%.*s(%s)", stage_name(trp_ctx_system(ctx), trp_self(ctx), name, sizeof name),
               (int)(trp_msg_bytes(msg) < 8 ? trp_msg_bytes(msg) : 8),
               (const char *)trp_msg_payload(msg),
               in == NULL                             ? "-"
               : in->id_high == 7 && in->id_low == 42 ? in->protocol
                                                      : "?");
}

/* Called with the answer, or when none will come; arg: the expected result. */
static trp_err
went_on(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    (void)state;
    UNIT_TRUE(err == TRP_OK || reply == NULL);
    trp_tell_text(ctx, next_of[2], "x");
    return *(const trp_err *)arg;
}

/* Ways of telling that do not go through trp_tell(). true: text was one of them. */
static bool
tell_otherwise(trp_ctx *ctx, const trp_msg *msg)
{
    static trp_err well = TRP_OK, ill = TRP_EIO;
    trp_ref none = TRP_REF_NONE;

    if (stage_said(msg, "ask") || stage_said(msg, "ask ill")) {
        UNIT_EQUAL(trp_ask(ctx, next_of[1], &trp_string_type, "asked", 5, 60000, went_on,
                           stage_said(msg, "ask") ? &well : &ill),
                   TRP_OK);
    } else if (stage_said(msg, "ask none")) {
        UNIT_EQUAL(trp_ask(ctx, none, &trp_string_type, "asked", 5, 60000, went_on, &well), TRP_OK);
    } else if (stage_said(msg, "ask mute")) {
        UNIT_EQUAL(trp_ask(ctx, next_of[1], &trp_string_type, "stash", 5, 1, went_on, &well),
                   TRP_OK);
    } else if (stage_said(msg, "resolve")) {
        UNIT_EQUAL(trp_resolve(ctx, "../r1", 60000, went_on, &well), TRP_OK);
    } else if (stage_said(msg, "graceful")) {
        UNIT_EQUAL(trp_graceful_stop(ctx, next_of[1], 60000, went_on, &well), TRP_OK);
    } else if (stage_said(msg, "category")) {
        UNIT_EQUAL(trp_category_send(ctx, "books", &trp_string_type, "sent", 4, NULL), TRP_OK);
    } else if (stage_said(msg, "select")) {
        UNIT_EQUAL(trp_select_tell(ctx, "../r*", &trp_string_type, "reply", 5), TRP_OK);
    } else {
        return false;
    }
    return true;
}

/* Forwards its messages, and has no code for interactions. */
static trp_err
relay_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int *index = state;

    note(ctx, msg);
    if (stage_said(msg, "reply") || tell_otherwise(ctx, msg)) {
        return TRP_OK;
    }
    if (stage_said(msg, "fail")) {
        trp_tell_text(ctx, next_of[1], "before");
        return TRP_EIO;
    }
    if (stage_said(msg, "end")) {
        trp_tell_in(ctx, next_of[1], NULL, &trp_string_type, "ended", 5);
    } else if (stage_said(msg, "stash")) {
        UNIT_EQUAL(trp_stash(ctx, msg), TRP_OK);
        return TRP_OK;
    } else if (stage_said(msg, "unstash")) {
        trp_unstash_all(ctx);
    } else if (*index == 0) {
        trp_tell(ctx, next_of[1], trp_msg_type(msg), trp_msg_payload(msg), trp_msg_bytes(msg));
        trp_forward(ctx, next_of[2], msg);
    }
    if (!trp_ref_is_none(trp_sender(ctx))) {
        trp_reply_text(ctx, "reply");
    }
    return TRP_OK;
}
static trp_err
relay_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    char name[64];

    (void)args;
    *(int *)state = stage_name(trp_ctx_system(ctx), trp_self(ctx), name, sizeof name)[1] - '0';
    return TRP_OK;
}
static const trp_behaviour relay = { .size = sizeof(trp_behaviour),
                                     .name = "relay",
                                     .version = 1,
                                     .state_bytes = sizeof(int),
                                     .receive = relay_receive,
                                     .pre_start = relay_start };

/* Handles one thing at a time. */
static trp_system *
open_relays(const char *dispatcher)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_system *system = stage_open();
    char name[8];

    options.dispatcher = dispatcher;
    for (int i = 2; i >= 0; i--) {
        snprintf(name, sizeof name, "r%d", i);
        options.name = name;
        UNIT_EQUAL(trp_system_spawn(system, &relay, &options, &next_of[i]), TRP_OK);
    }
    return system;
}

static void
begin(trp_system *system, const char *text, const trp_interaction *interaction)
{
    trp_system_tell_in(system, next_of[0], (trp_ref)TRP_REF_NONE, interaction, &trp_string_type,
                       text, strlen(text));
}

/* A4J-10: the seven parts of a message; the last three are passed on by tell, forward and reply,
 * and are gone with the message that carried them. The calling-thread dispatcher nests turns. */
static void
what_is_told_while_handling_a_message_is_part_of_its_interaction(void)
{
    trp_system *system = open_relays("calling-thread");

    begin(system, "x", &order);
    STAGE_EXPECT("r0:x(sale) r1:x(sale) r2:x(sale) r0:reply(sale)");
    stage_close(system);

    system = open_relays("default");
    begin(system, "x", &order);
    UNIT_WAIT(stage_has("r1:x(sale)") && stage_has("r2:x(sale)"), 5000);
    UNIT_WAIT(stage_has("r0:reply(sale)"), 5000);
    stage_clear(&stage_events);
    begin(system, "plain", NULL);
    UNIT_WAIT(stage_has("r1:plain(-)") && stage_has("r2:plain(-)"), 5000);
    UNIT_TRUE(!stage_has("sale"));
    stage_clear(&stage_events);
    begin(system, "end", &order); /* a tell outside of the interaction is possible */
    UNIT_WAIT(stage_has("r1:ended(-)"), 5000);
    stage_close(system);
}

/* A failure inside ends the carrying, too; the stash keeps it. */
static void
an_interaction_survives_the_stash_and_ends_with_a_failure(void)
{
    trp_system *system = open_relays("default");

    begin(system, "fail", &order);
    begin(system, "plain", NULL);
    UNIT_WAIT(stage_has("r1:before(sale)") && stage_has("r1:plain(-)"), 5000);
    begin(system, "stash", &order);
    begin(system, "unstash", NULL);
    UNIT_WAIT(stage_count("r0:stash(sale)") == 2, 5000);
    stage_close(system);
}

/* A4J-10: the answer to a question is part of the conversation in which it was asked, and so are
 * messages that are sent on its arrival. */
static void
an_answer_goes_on_with_the_interaction_of_its_question(void)
{
    trp_system *system = open_relays("calling-thread");

    begin(system, "ask", &order);
    STAGE_EXPECT("r0:ask(sale) r1:asked(sale) r2:x(sale) r0:reply(sale)");
    stage_clear(&stage_events);
    begin(system, "ask", NULL);
    STAGE_EXPECT("r0:ask(-) r1:asked(-) r2:x(-) r0:reply(-)");
    stage_clear(&stage_events);
    begin(system, "ask ill", &order);
    UNIT_WAIT(stage_has("r2:x(sale)"), 60000);
    begin(system, "plain", NULL); /* to the next instance */
    UNIT_WAIT(stage_has("r1:plain(-)") && stage_has("r2:plain(-)"), 60000);
    stage_close(system);
}

/* A4J-10: the same without an actor's answer: no such actor, a timeout, the ref of a path, the end
 * of an actor. */
static void
an_ask_that_nobody_answers_goes_on_with_it_too(void)
{
    static const char *const ways[] = { "ask none", "ask mute", "resolve", "graceful" };

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        for (int inside = 0; inside <= 1; inside++) {
            trp_system *system = open_relays(NULL);

            begin(system, ways[i], inside ? &order : NULL);
            UNIT_WAIT(stage_has(inside ? "r2:x(sale)" : "r2:x(-)"), 60000);
            UNIT_EQUAL(stage_count("r2:x"), 1);
            stage_close(system);
        }
    }
}

/* A4J-10 */
static void
a_category_and_a_selection_are_told_as_part_of_it_too(void)
{
    trp_system *system = open_relays("calling-thread");

    UNIT_EQUAL(trp_category_join(system, "books", next_of[2]), TRP_OK);
    begin(system, "category", &order);
    STAGE_EXPECT("r0:category(sale) r2:sent(sale) r0:reply(sale)");
    stage_clear(&stage_events);
    begin(system, "select", &order);
    UNIT_WAIT(stage_count(":reply(sale)") == 3, 60000);
    stage_clear(&stage_events);
    begin(system, "category", NULL);
    STAGE_EXPECT("r0:category(-) r2:sent(-) r0:reply(-)");
    stage_close(system);
}

static trp_err
echo_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_interaction *in = trp_msg_interaction(msg);
    const char *bytes = trp_msg_payload(msg);
    size_t bytes_count = trp_msg_bytes(msg);

    (void)state;
    UNIT_TRUE(in != NULL && strcmp(in->domain, "books") == 0 && in->id_low == 42);
    if (bytes_count > 0) {
        UNIT_EQUAL(bytes[0], 'a');
        UNIT_EQUAL(bytes[bytes_count - 1], bytes_count > 1 ? 'z' : 'a');
    }
    if (trp_ref_is_none(trp_sender(ctx))) {
        trp_tell(ctx, trp_self(ctx), trp_msg_type(msg), bytes, trp_msg_bytes(msg));
    } else {
        atomic_fetch_add(&rounds, 1);
    }
    return TRP_OK;
}
static const trp_behaviour echo = {
    .size = sizeof(trp_behaviour), .name = "echo", .version = 1, .receive = echo_receive
};

/* A4J-10: The trailer stands behind payloads of every size, in line and out of line. */
static void
a_payload_of_any_size_carries_it(void)
{
    static const size_t sizes[] = { 0,
                                    1,
                                    15,
                                    16,
                                    17,
                                    32,
                                    33,
                                    1000,
                                    TRP_INLINE_PAYLOAD_MAX - 1,
                                    TRP_INLINE_PAYLOAD_MAX,
                                    TRP_INLINE_PAYLOAD_MAX + 1,
                                    200000 };
    trp_system *system = stage_open();
    trp_ref e = stage_spawn(system, &echo, "e");
    char *bytes = trpi_alloc(200000);
    const int count = (int)(sizeof sizes / sizeof sizes[0]);

    atomic_store(&rounds, 0);
    for (int i = 0; i < count; i++) {
        memset(bytes, 'm', 200000);
        bytes[sizes[i] > 0 ? sizes[i] - 1 : 0] = 'z';
        bytes[0] = 'a';
        trp_system_tell_in(system, e, (trp_ref)TRP_REF_NONE, &order, &trp_bytes_type, bytes,
                           sizes[i]);
    }
    UNIT_WAIT(atomic_load(&rounds) == count, 5000);
    trpi_free(bytes);
    stage_close(system);
}

UNIT_BEGIN("interaction")
UNIT(what_is_told_while_handling_a_message_is_part_of_its_interaction)
UNIT(an_interaction_survives_the_stash_and_ends_with_a_failure)
UNIT(an_answer_goes_on_with_the_interaction_of_its_question)
UNIT(an_ask_that_nobody_answers_goes_on_with_it_too)
UNIT(a_category_and_a_selection_are_told_as_part_of_it_too)
UNIT(a_payload_of_any_size_carries_it)
UNIT_END

/* subject_test.c - messages selected by their subject. */
#include <troupe/pending.h>
#include <troupe/subject.h>

#include "tests/unit/actor/stage.h"

static int
matches(const char *pattern, int regular, const trp_type *type, const char *text)
{
    trp_subject *subject;
    trp_msg *msg;
    void *payload;
    int answer;

    UNIT_REQUIRE(trp_subject_new(pattern, regular, &subject) == TRP_OK);
    UNIT_REQUIRE(trp_msg_new(type, strlen(text), &msg, &payload) == TRP_OK);
    memcpy(payload, text, strlen(text));
    answer = trp_subject_matches(subject, msg);
    trp_msg_free(msg);
    trp_subject_free(subject);
    return answer;
}

/* UJ-01: equality with a string, or a regular expression for the whole subject */
static void
a_subject_is_matched_by_text_or_expression(void)
{
    UNIT_TRUE(matches("repeat", 0, &trp_string_type, "repeat"));
    UNIT_TRUE(!matches("repeat", 0, &trp_string_type, "repeat1"));
    UNIT_TRUE(!matches("rep.*", 0, &trp_string_type, "repeat"));
    UNIT_TRUE(matches("rep.*", 1, &trp_string_type, "repeat"));
    UNIT_TRUE(!matches("rep", 1, &trp_string_type, "repeat")); /* all of it */
    UNIT_TRUE(matches("a|bc", 1, &trp_string_type, "bc"));
    UNIT_TRUE(matches(NULL, 0, &trp_string_type, "anything"));
    UNIT_TRUE(matches("", 1, &trp_string_type, ""));
    UNIT_TRUE(matches("troupe\\.(json|i64)", 1, &trp_json_type, "{}")); /* by type */
}

static void
a_wrong_expression_is_refused_and_lengths_have_a_limit(void)
{
    char text[TRP_SUBJECT_BYTES_MAX + 2];
    trp_subject *subject = NULL;

    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 0;
    UNIT_EQUAL(trp_subject_new("(", 1, &subject), TRP_EINVAL);
    UNIT_EQUAL(trp_subject_new("a", 1, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_subject_new(text, 0, &subject), TRP_EINVAL);
    UNIT_TRUE(!matches("a+", 1, &trp_string_type, text)); /* one past the limit */
    text[TRP_SUBJECT_BYTES_MAX] = 0;
    UNIT_TRUE(matches(text, 0, &trp_string_type, text));
    UNIT_TRUE(matches("a+", 1, &trp_string_type, text));
    trp_subject_free(NULL);
}

static int
first_match(void *arg, const trp_msg *msg, trp_ref sender)
{
    (void)sender;
    return trp_subject_matches(arg, msg) ? TRP_PENDING_REMOVE | TRP_PENDING_STOP : TRP_PENDING_NEXT;
}

static trp_err
picker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_subject *urgent;

    (void)state;
    if (!stage_said(msg, "go")) {
        stage_note("%.*s", (int)trp_msg_bytes(msg), (const char *)trp_msg_payload(msg));
        return TRP_OK;
    }
    trp_tell_text(ctx, trp_self(ctx), "slow 1");
    trp_tell_text(ctx, trp_self(ctx), "urgent 1");
    trp_tell_text(ctx, trp_self(ctx), "urgent 2");
    UNIT_EQUAL(trp_subject_new("urgent .*", 1, &urgent), TRP_OK);
    UNIT_EQUAL(trp_pending_visit(ctx, first_match, urgent), 2);
    trp_subject_free(urgent);
    return TRP_OK;
}
static const trp_behaviour picker = {
    .size = sizeof(trp_behaviour), .name = "picker", .version = 1, .receive = picker_receive
};

/* UJ-07: the first one of a subject, out of its turn */
static void
the_first_message_of_a_subject_is_found_in_the_mailbox(void)
{
    trp_system *system = stage_open();

    stage_tell(system, stage_spawn(system, &picker, "p"), "go");
    STAGE_EXPECT("slow 1 urgent 2");
    stage_close(system);
}

UNIT_BEGIN("subject")
UNIT(a_subject_is_matched_by_text_or_expression)
UNIT(a_wrong_expression_is_refused_and_lengths_have_a_limit)
UNIT(the_first_message_of_a_subject_is_found_in_the_mailbox)
UNIT_END

/* children_test.c - an actor's view of its parent and children. */
#include "tests/unit/actor/stage.h"

static const trp_behaviour kid;

static trp_err
kid_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    char path[64];

    (void)state;
    if (stage_said(msg, "parent")) {
        trp_reply_text(ctx, trp_path(trp_ctx_system(ctx), trp_parent(ctx), path, sizeof path));
    }
    return TRP_OK;
}
static const trp_behaviour kid = {
    .size = sizeof(trp_behaviour), .name = "kid", .version = 1, .receive = kid_receive
};

static trp_err
mother_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    static const char *const names[] = { "a", "b", "c", "d" };
    trp_ref refs[4], none = TRP_REF_NONE;
    unsigned seen = 0;

    (void)state;
    if (stage_said(msg, "make")) {
        UNIT_EQUAL(trp_children_count(ctx), 0);
        UNIT_TRUE(trp_ref_is_none(trp_child_next(ctx, none)));
        for (int i = 0; i < 4; i++) {
            refs[i] = stage_child(ctx, &kid, names[i]);
        }
        UNIT_EQUAL(trp_children_count(ctx), 4); /* at once (SYS-23) */
        for (int i = 0; i < 4; i++) {
            UNIT_TRUE(trp_ref_equal(trp_child(ctx, names[i]), refs[i]));
        }
        for (trp_ref c = trp_child_next(ctx, none); !trp_ref_is_none(c);
             c = trp_child_next(ctx, c)) {
            for (int i = 0; i < 4; i++) {
                seen += trp_ref_equal(c, refs[i]) ? 1u << (4 * i) : 0;
            }
        }
        UNIT_EQUAL(seen, 0x1111); /* each once */
        UNIT_TRUE(trp_ref_is_none(trp_child(ctx, "e")));
        UNIT_TRUE(trp_ref_is_none(trp_child(ctx, NULL)));
        UNIT_TRUE(trp_ref_is_none(trp_child_next(ctx, trp_self(ctx)))); /* not a child */
        trp_reply_text(ctx, "ok");
    } else if (stage_said(msg, "stop all")) { /* children may be stopped during the iteration */
        for (trp_ref c = trp_child_next(ctx, none); !trp_ref_is_none(c);
             c = trp_child_next(ctx, c)) {
            trp_stop(ctx, c);
            seen++;
        }
        UNIT_EQUAL(seen, 4);
        trp_reply_text(ctx, "ok");
    } else if (stage_said(msg, "count")) {
        char text[16];

        snprintf(text, sizeof text, "%u", trp_children_count(ctx));
        trp_reply_text(ctx, text);
    }
    return TRP_OK;
}
static const trp_behaviour mother = {
    .size = sizeof(trp_behaviour), .name = "mother", .version = 1, .receive = mother_receive
};
static char answer[64];

/* SUP-18, SYS-23, SUP-1, A4J-04, A4J-09 */
static void
an_actor_knows_its_children_and_its_parent(void)
{
    trp_system *system = stage_open();
    trp_ref m = stage_spawn(system, &mother, "m"), a;

    UNIT_EQUAL(stage_ask(system, m, "make", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(trp_system_resolve(system, "/user/m/a", 60000, &a), TRP_OK);
    UNIT_EQUAL(stage_ask(system, a, "parent", answer, sizeof answer), TRP_OK);
    UNIT_TEXT(answer, "/user/m");
    stage_close(system);
}

/* SUP-18 */
static void
children_that_are_stopped_leave_the_list(void)
{
    trp_system *system = stage_open();
    trp_ref m = stage_spawn(system, &mother, "m");

    UNIT_EQUAL(stage_ask(system, m, "make", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(stage_ask(system, m, "stop all", answer, sizeof answer), TRP_OK);
    UNIT_WAIT(stage_ask(system, m, "count", answer, sizeof answer) == TRP_OK && answer[0] == '0',
              5000);
    UNIT_EQUAL(stage_ask(system, m, "make", answer, sizeof answer), TRP_OK); /* names are free */
    stage_close(system);
}

UNIT_BEGIN("children")
UNIT(an_actor_knows_its_children_and_its_parent)
UNIT(children_that_are_stopped_leave_the_list)
UNIT_END

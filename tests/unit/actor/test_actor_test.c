/* test_actor_test.c - messages of an actor to itself while a test calls its behaviour. */
#include <troupe/testkit.h>

#include "tests/unit/unit.h"

enum { SWITCH = 1, STASH = 2, END = 3 };

/* Acts by the number; its state counts the messages. */
static trp_err
selfish_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int *given = state;

    switch (*(const int64_t *)trp_msg_payload(msg)) {
    case SWITCH:
        UNIT_EQUAL(trp_deactivate(ctx, trp_self(ctx)), TRP_OK);
        UNIT_EQUAL(trp_activate(ctx, trp_self(ctx)), TRP_OK);
        break;
    case STASH:
        if (*given == 0) {
            UNIT_EQUAL(trp_stash(ctx, msg), TRP_OK);
            trp_unstash_all(ctx);
        }
        break;
    case END:
        trp_stop(ctx, trp_self(ctx));
        break;
    default:
        break;
    }
    ++*given;
    return TRP_OK;
}

static const trp_behaviour selfish = { .size = sizeof(trp_behaviour),
                                       .name = "selfish",
                                       .version = 1,
                                       .state_bytes = sizeof(int),
                                       .receive = selfish_receive };

static trp_testkit *
open_kit(uint32_t clock)
{
    trp_testkit_options options = TRP_TESTKIT_OPTIONS_INIT;
    trp_testkit *kit = NULL;

    options.clock = clock;
    options.on_fail = TRP_FAIL_RETURN;
    options.timefactor = UNIT_STRETCH;
    UNIT_REQUIRE(trp_testkit_open(&options, &kit) == TRP_OK);
    return kit;
}

static int *
open_selfish(trp_testkit *kit, trp_ref *ret_ref)
{
    UNIT_REQUIRE(trp_testkit_spawn(kit, &selfish, NULL, ret_ref) == TRP_OK);
    return trp_testkit_state(kit, *ret_ref);
}

static void
give(trp_testkit *kit, trp_ref ref, int64_t what)
{
    const trp_ref nobody = TRP_REF_NONE;

    UNIT_EQUAL(trp_testkit_receive(kit, ref, nobody, &trp_i64_type, &what, sizeof what, NULL),
               TRP_OK);
    (void)trp_testkit_advance(kit, 0); /* run what is ready; with a real clock it has run */
}

/* TEST-2: its own system messages are handled when the call returns, in order. */
static void
what_a_test_actor_orders_from_itself_is_done(void)
{
    for (uint32_t clock = TRP_CLOCK_REAL; clock <= TRP_CLOCK_MANUAL; clock++) {
        trp_testkit *kit = open_kit(clock);
        trp_probe *probe = trp_testkit_probe(kit);
        const int64_t nothing = 0;
        trp_ref ref;
        const int *given;

        (void)open_selfish(kit, &ref);
        UNIT_EQUAL(trp_probe_watch(probe, ref), TRP_OK);
        give(kit, ref, END);
        UNIT_TRUE(trp_probe_expect_terminated(probe, TRP_TEST_TIME, ref) != NULL);
        given = open_selfish(kit, &ref);
        give(kit, ref, SWITCH);
        trp_probe_tell(probe, ref, &trp_i64_type, &nothing, sizeof nothing);
        (void)trp_testkit_advance(kit, 0);
        UNIT_EQUAL(*given, 2); /* it is active */
        UNIT_EQUAL(trp_testkit_failures(kit), 0);
        UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
    }
}

/* TEST-2, BEH-7 */
static void
what_a_test_actor_takes_out_of_its_stash_is_handled(void)
{
    for (uint32_t clock = TRP_CLOCK_REAL; clock <= TRP_CLOCK_MANUAL; clock++) {
        trp_testkit *kit = open_kit(clock);
        trp_ref ref;
        const int *given = open_selfish(kit, &ref);

        give(kit, ref, STASH);
        UNIT_EQUAL(*given, 2);
        UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
    }
}

static void
wrong_options_are_refused(void)
{
    const trp_testkit_options plain = TRP_TESTKIT_OPTIONS_INIT;
    trp_testkit_options options = plain;
    trp_testkit *kit = NULL;

    options.clock = TRP_CLOCK_MANUAL + 1;
    UNIT_EQUAL(trp_testkit_open(&options, &kit), TRP_EINVAL);
    options = plain;
    options.timefactor = -1.0;
    UNIT_EQUAL(trp_testkit_open(&options, &kit), TRP_EINVAL);
    options = plain;
    options.name = "not a name";
    UNIT_EQUAL(trp_testkit_open(&options, &kit), TRP_EINVAL);
    options = plain;
    options.size = 1;
    UNIT_EQUAL(trp_testkit_open(&options, &kit), TRP_EINVAL);
    UNIT_TRUE(kit == NULL);
    UNIT_EQUAL(trp_testkit_close(NULL), TRP_OK);
}

UNIT_BEGIN("test_actor")
UNIT(what_a_test_actor_orders_from_itself_is_done)
UNIT(what_a_test_actor_takes_out_of_its_stash_is_handled)
UNIT(wrong_options_are_refused)
UNIT_END

/* ref_text_test.c - refs as text: with and without uids, of this node and of others; nonsense. */
#include <troupe/path.h>

#include "actor/actor.h"
#include "tests/unit/actor/stage.h"

static trp_err
receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return TRP_OK;
}
static const trp_behaviour plain = TRP_BEHAVIOUR_INIT("plain", char, receive);

static trp_system *
open_system(trp_ref *ret_ref)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_system *system = NULL;

    UNIT_REQUIRE(trp_system_new("text", NULL, &system) == TRP_OK);
    options.name = "a";
    UNIT_REQUIRE(trp_system_spawn(system, &plain, &options, ret_ref) == TRP_OK);
    return system;
}

/* SERIAL-13, SERIAL-14: also before there is an address, and by that text afterwards */
static void
a_ref_of_this_node_is_read_as_what_it_was(void)
{
    char before[TRP_REF_TEXT_BYTES], after[TRP_REF_TEXT_BYTES], without[TRP_REF_TEXT_BYTES];
    trpi_address address;
    trp_ref ref, back = TRP_REF_NONE;
    trp_system *system = open_system(&ref);

    UNIT_EQUAL(trp_ref_format(system, ref, TRP_REF_WITH_UID, before, sizeof before), TRP_OK);
    UNIT_EQUAL(strncmp(before, "troupe://text/user/a#", 21), 0);
    UNIT_EQUAL(trp_ref_parse(system, before, &back), TRP_OK);
    UNIT_TRUE(trp_ref_equal(back, ref));
    UNIT_REQUIRE(trpi_address_parse("troupe.tcp://text@10.0.0.1:2552", &address, NULL, NULL) ==
                 TRP_OK);
    trpi_system_advertise(system, &address);
    UNIT_EQUAL(trp_ref_format(system, ref, TRP_REF_WITH_UID, after, sizeof after), TRP_OK);
    UNIT_EQUAL(strncmp(after, "troupe.tcp://text@10.0.0.1:2552/user/a#", 39), 0);
    back = (trp_ref)TRP_REF_NONE;
    UNIT_EQUAL(trp_ref_parse(system, after, &back), TRP_OK);
    UNIT_TRUE(trp_ref_equal(back, ref));
    back = (trp_ref)TRP_REF_NONE;
    UNIT_EQUAL(trp_ref_parse(system, before, &back), TRP_OK); /* its uid says so */
    UNIT_TRUE(trp_ref_equal(back, ref));

    UNIT_EQUAL(trp_ref_format(system, ref, TRP_REF_WITHOUT_UID, without, sizeof without), TRP_OK);
    UNIT_TEXT(without, "troupe.tcp://text@10.0.0.1:2552/user/a");
    back = (trp_ref)TRP_REF_NONE;
    UNIT_EQUAL(trp_ref_parse(system, without, &back), TRP_OK);
    UNIT_TRUE(trp_ref_equal(back, ref));
    UNIT_EQUAL(trp_ref_parse(system, "/user/a", &back), TRP_OK);
    UNIT_EQUAL(trp_ref_parse(system, "/user/b", &back), TRP_ENOENT);

    UNIT_EQUAL(trp_system_graceful_stop(system, ref, 60000), TRP_OK);
    UNIT_EQUAL(trp_ref_parse(system, after, &back), TRP_OK); /* that life, which is over */
    UNIT_TRUE(trp_ref_equal(back, ref));
    UNIT_EQUAL(trp_ref_parse(system, without, &back), TRP_ENOENT);
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trp_system_free(system);
}

/* SERIAL-11, SERIAL-13: with the uid of its node, so that a restarted one is not meant */
static void
a_ref_of_another_node_keeps_its_path_and_both_uids(void)
{
    static const char text[] = "troupe.tcp://far@10.0.0.9:2552/user/b#30064771077@77";
    char back_text[TRP_REF_TEXT_BYTES];
    trp_ref ref, far = TRP_REF_NONE, again = TRP_REF_NONE, mine;
    trp_system *system = open_system(&mine);

    UNIT_EQUAL(trp_ref_parse(system, text, &far), TRP_OK);
    UNIT_EQUAL(far.slot, 5);
    UNIT_EQUAL(far.generation, 7);
    UNIT_EQUAL(trpi_node_id_get(system, far.node)->uid, 77);
    UNIT_EQUAL(trp_ref_format(system, far, TRP_REF_WITH_UID, back_text, sizeof back_text), TRP_OK);
    UNIT_TEXT(back_text, text);
    UNIT_EQUAL(trp_ref_format(system, far, TRP_REF_WITHOUT_UID, back_text, sizeof back_text),
               TRP_OK);
    UNIT_TEXT(back_text, "troupe.tcp://far@10.0.0.9:2552/user/b");
    UNIT_EQUAL(trp_ref_parse(system, back_text, &ref), TRP_ESTATE); /* to be resolved */
    UNIT_EQUAL(trp_ref_parse(system, "troupe.tcp://far@10.0.0.9:2552/user/b#5", &ref), TRP_ESTATE);
    UNIT_EQUAL(trp_ref_parse(system, "troupe.tcp://far@10.0.0.9:2552/#30064771078@77", &again),
               TRP_OK);
    UNIT_EQUAL(trp_ref_format(system, again, TRP_REF_WITHOUT_UID, back_text, sizeof back_text),
               TRP_ENOENT);
    UNIT_EQUAL(trp_ref_format(system, again, TRP_REF_WITH_UID, back_text, sizeof back_text),
               TRP_OK);
    UNIT_TEXT(back_text, "troupe.tcp://far@10.0.0.9:2552/#30064771078@77");
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trp_system_free(system);
}

static void
what_is_no_ref_is_refused(void)
{
    static const char *const wrong[] = {
        "",
        "a",
        "/user/a#",
        "/user/a#x",
        "/user/a#0",
        "/user/a#1@",
        "/user/a#1@0",
        "/user/a#1@x",
        "/user/a#1@2@3",
        "/user/a#18446744073709551616",
        "/user/*",
        "troupe.tcp://far/user/a#1@2",
        "/user/a#1@2", /* of another node, without its address */
    };
    char text[TRP_REF_TEXT_BYTES], exact[64];
    trp_ref ref, nobody = TRP_REF_NONE, made_up = { 4711, 1, 1, 0 };
    trp_system *system = open_system(&ref);

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        UNIT_EQUAL(trp_ref_parse(system, wrong[i], &ref), TRP_EINVAL);
    }
    UNIT_EQUAL(trp_ref_parse(system, NULL, &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_ref_format(system, nobody, TRP_REF_WITH_UID, text, sizeof text), TRP_EINVAL);
    UNIT_EQUAL(trp_ref_format(system, made_up, TRP_REF_WITH_UID, text, sizeof text), TRP_EINVAL);
    UNIT_EQUAL(trp_ref_format(system, ref, TRP_REF_WITH_UID, text, sizeof text), TRP_OK);
    size_t bytes = strlen(text) + 1;
    UNIT_REQUIRE(bytes <= sizeof exact);
    UNIT_EQUAL(trp_ref_format(system, ref, TRP_REF_WITH_UID, exact, bytes), TRP_OK);
    UNIT_EQUAL(trp_ref_format(system, ref, TRP_REF_WITH_UID, exact, bytes - 1), TRP_EMSGSIZE);
    UNIT_EQUAL(trp_ref_format(system, ref, TRP_REF_WITHOUT_UID, exact, 20), TRP_EMSGSIZE);
    UNIT_EQUAL(trp_ref_format(system, ref, TRP_REF_WITHOUT_UID, exact, 21), TRP_OK);
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trp_system_free(system);
}

UNIT_BEGIN("ref_text")
UNIT(a_ref_of_this_node_is_read_as_what_it_was)
UNIT(a_ref_of_another_node_keeps_its_path_and_both_uids)
UNIT(what_is_no_ref_is_refused)
UNIT_END

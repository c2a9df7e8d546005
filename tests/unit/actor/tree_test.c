/* tree_test.c - listing the tree, and its numbers. */
#include "tests/unit/actor/stage.h"

static const trp_behaviour twig;
static _Atomic bool let_go;

static trp_err
twig_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "kids")) {
        stage_child(ctx, &twig, "k1");
        stage_child(ctx, &twig, "k2");
        trp_reply_text(ctx, "ok");
    } else if (stage_said(msg, "calling kid")) {
        trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
        trp_ref ref;

        options.name = "k";
        options.dispatcher = "calling-thread";
        UNIT_EQUAL(trp_spawn(ctx, &twig, &options, &ref), TRP_OK);
    } else if (stage_said(msg, "fail")) {
        return TRP_EIO;
    } else if (stage_said(msg, "stick")) {
        stage_hold("stuck", &let_go);
    } else if (stage_said(msg, "ping")) {
        trp_reply_text(ctx, "pong");
    }
    return TRP_OK;
}
static const trp_behaviour twig = {
    .size = sizeof(trp_behaviour), .name = "twig", .version = 1, .receive = twig_receive
};
static char answer[32];

static int
visit(void *arg, const trp_tree_entry *entry)
{
    stage_note("%u:%s(%s,%u,%llu,%u)", entry->depth, entry->path, entry->behaviour, entry->children,
               (unsigned long long)entry->processed, entry->restarts);
    return arg != NULL;
}

static trp_system *
open_tree(trp_ref *ret_a)
{
    trp_system *system = stage_open();

    *ret_a = stage_spawn(system, &twig, "a");
    UNIT_EQUAL(stage_ask(system, *ret_a, "kids", answer, sizeof answer), TRP_OK);
    stage_clear(&stage_events);
    return system;
}

static void
the_tree_is_listed_in_its_order(void)
{
    trp_ref a, k1;
    trp_system *system = open_tree(&a);

    UNIT_EQUAL(trp_system_resolve(system, "/user/a/k1", 60000, &k1), TRP_OK);
    UNIT_EQUAL(stage_ask(system, k1, "kids", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(trp_system_tree(system, "/user/a", 9, 60000, visit, NULL), TRP_OK);
    STAGE_EXPECT("0:/user/a(twig,2,1,0) 1:/user/a/k1(twig,2,2,0) 2:/user/a/k1/k1(twig,0,0,0) "
                 "2:/user/a/k1/k2(twig,0,0,0) 1:/user/a/k2(twig,0,0,0)");
    stage_close(system);
}

static void
depth_and_the_visitor_end_the_listing(void)
{
    trp_ref a;
    trp_system *system = open_tree(&a);

    UNIT_EQUAL(trp_system_tree(system, "/user/a", 0, 60000, visit, NULL), TRP_OK);
    STAGE_EXPECT("0:/user/a(twig,2,1,0)");
    stage_clear(&stage_events);
    UNIT_EQUAL(trp_system_tree(system, "/user/a", 9, 60000, visit, system), TRP_OK);
    STAGE_EXPECT("0:/user/a(twig,2,1,0)");
    stage_clear(&stage_events);
    stage_tell(system, a, "fail");
    UNIT_EQUAL(stage_ask(system, a, "ping", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(trp_system_tree(system, "/user/a", 9, 60000, visit, NULL), TRP_OK);
    STAGE_EXPECT("0:/user/a(twig,0,3,1)");
    stage_close(system);
}

static void
the_whole_tree_has_the_guardians(void)
{
    trp_ref a;
    trp_system *system = open_tree(&a);

    UNIT_EQUAL(trp_system_tree(system, "/", 1, 60000, visit, NULL), TRP_OK);
    UNIT_TRUE(stage_has("0:/(root guardian,5,"));
    UNIT_TRUE(stage_has("1:/user(") && stage_has("1:/system(") && stage_has("1:/deadLetters(") &&
              stage_has("1:/temp(") && stage_has("1:/remote("));
    stage_close(system);
}

static void
what_cannot_be_listed_is_an_error(void)
{
    trp_ref a;
    trp_system *system = open_tree(&a);

    UNIT_EQUAL(trp_system_tree(system, "/user/none", 9, 60000, visit, NULL), TRP_ENOENT);
    UNIT_EQUAL(trp_system_tree(system, "user", 9, 60000, visit, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_system_tree(system, "/user/*", 9, 60000, visit, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_system_tree(system, "/user", 9, 60000, NULL, NULL), TRP_EINVAL);
    atomic_store(&let_go, false);
    stage_tell(system, a, "stick");
    UNIT_WAIT(stage_has("stuck"), 5000);
    UNIT_EQUAL(trp_system_tree(system, "/user", 9, 30, visit, NULL), TRP_ETIMEDOUT);
    atomic_store(&let_go, true);
    UNIT_EQUAL(trp_system_tree(system, "/user", 9, 60000, visit, NULL), TRP_OK);
    stage_close(system);
}

static void
numbers_add_up(void)
{
    trp_ref a;
    trp_system *system = open_tree(&a);
    trp_system_stats stats = { .size = sizeof stats };

    stage_tell(system, a, "fail");
    UNIT_EQUAL(stage_ask(system, a, "ping", answer, sizeof answer), TRP_OK);
    UNIT_WAIT((trp_system_stats_get(system, &stats), stats.stopped == 2), 5000);
    UNIT_EQUAL(stats.restarts, 1);
    UNIT_EQUAL(stats.actors, 8); /* six guardians, the logger and a */
    UNIT_EQUAL(stats.spawned, 10);
    UNIT_TRUE(stats.messages_processed >= 3);
    stage_close(system);
}

/* TEST-12: a child that is asked runs inside its parent's turn, and asks its own child there. */
static void
actors_of_the_calling_thread_are_listed(void)
{
    trp_system *system = stage_open();
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;

    options.name = "c";
    options.dispatcher = "calling-thread";
    UNIT_EQUAL(trp_system_spawn(system, &twig, &options, &ref), TRP_OK);
    stage_tell(system, ref, "calling kid");
    UNIT_EQUAL(trp_system_tree(system, "/user", 9, 60000, visit, NULL), TRP_OK);
    UNIT_TRUE(stage_has("1:/user/c(twig,1,1,0) 2:/user/c/k(twig,0,0,0)"));
    stage_close(system);
}

UNIT_BEGIN("tree")
UNIT(the_tree_is_listed_in_its_order)
UNIT(depth_and_the_visitor_end_the_listing)
UNIT(the_whole_tree_has_the_guardians)
UNIT(what_cannot_be_listed_is_an_error)
UNIT(numbers_add_up)
UNIT(actors_of_the_calling_thread_are_listed)
UNIT_END

/* kit_program.c - the multi-node kit, tested by itself: `troupe multinode kit_program -- CASE`.
 *
 * The cases `all`, `cluster`, `released`, `ends` and `late` pass, the others fail on purpose;
 * tests/multinode/kit.sh looks at what they say. MNT-02 to -10, -16.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <troupe/troupe.h>

#include "tests/multinode/program.h"

#define BOTH TRP_MULTINODE_BOTH
#define LATE "nobody waits longer at 'here' for "

enum { PAUSE_MS = 500 };

/* ---- an actor that answers ------------------------------------------------------------------- */

static trp_err
echo_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_reply(ctx, trp_msg_type(msg), trp_msg_payload(msg), trp_msg_bytes(msg));
    return TRP_OK;
}

static void
echo_spawn(trp_multinode *test)
{
    static const trp_behaviour echo = TRP_BEHAVIOUR_INIT("echo", char, echo_receive);
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    options.name = "echo";
    MUST(trp_system_spawn(trp_multinode_system(test), &echo, &options, &ref));
}

static bool
answers(trp_multinode *test, trp_ref to, uint32_t timeout_ms)
{
    static char payload[2000];
    trp_msg *reply = NULL;
    trp_err err = trp_system_ask(trp_multinode_system(test), to, &trp_string_type, payload,
                                 sizeof payload, timeout_ms, &reply);
    trp_msg_free(reply);
    return err == TRP_OK;
}

static uint64_t
now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void
pause_ms(long ms)
{
    struct timespec pause = { 0, ms * 1000000 };
    (void)nanosleep(&pause, NULL);
}

/* ---- case all -------------------------------------------------------------------------------- */

/* MNT-05, MNT-06, MNT-14 */
static void
each_role_has_its_own_settings(trp_multinode *test)
{
    char first[TRP_ADDRESS_BYTES], own[TRP_ADDRESS_BYTES];
    const char *peer = trp_node_config_get(trp_multinode_node(test), "app.peer", 0);
    const char *word = trp_node_config_get(trp_multinode_node(test), "app.word", 0);
    const char *given = trp_node_config_get(trp_multinode_node(test), "app.given", 0);
    MUST(trp_multinode_address(test, "first", first));
    MUST(trp_multinode_address(test, trp_multinode_role_name(test), own));
    CHECK(strcmp(own, trp_node_address(trp_multinode_node(test))) == 0);
    CHECK(trp_multinode_address(test, "nobody", first) == TRP_EINVAL);
    CHECK(strstr(trp_multinode_reason(test), "no role 'nobody'") != NULL);
    CHECK(word != NULL && strcmp(word, trp_multinode_is(test, "second") ? "own" : "common") == 0);
    CHECK(given != NULL && strcmp(given, "by-argument") == 0);
    CHECK(trp_multinode_is(test, "first second third fourth"));
    CHECK(!trp_multinode_is(test, "fir") && !trp_multinode_is(test, ""));
    if (trp_multinode_is(test, "second")) {
        CHECK(peer != NULL && strcmp(peer, first) == 0);
    }
}

/* MNT-03, MNT-10 */
static void
only_the_first_orders(trp_multinode *test)
{
    char names[128];
    if (!trp_multinode_is(test, "first")) {
        CHECK(trp_multinode_exit(test, "second", 0) == TRP_EPERM);
        CHECK(trp_multinode_blackhole(test, "second", "third", BOTH) == TRP_EPERM);
        return;
    }
    MUST(trp_multinode_nodes(test, names, sizeof names));
    CHECK(strcmp(names, "first second third fourth ") == 0);
    CHECK(trp_multinode_nodes(test, names, 26) == TRP_EMSGSIZE);
    CHECK(trp_multinode_exit(test, "first", 0) == TRP_EPERM);
    CHECK(trp_multinode_shutdown(test, "first") == TRP_EPERM);
    CHECK(trp_multinode_fault(test, "first", "second", BOTH, "explode") == TRP_EINVAL);
    CHECK(strstr(trp_multinode_reason(test), "'explode'") != NULL);
    CHECK(trp_multinode_fault(test, "first", "nobody", BOTH, "pass") == TRP_EINVAL);
    CHECK(trp_multinode_fault(test, "first", NULL, BOTH, "pass") == TRP_EINVAL);
}

/* MNT-02, MNT-07: on the first node; 2,000 bytes at 0.08 Mbit/s take 0.2 s, less what passes at
 * once */
static void
links_are_cut_slowed_and_healed(trp_multinode *test)
{
    trp_ref second;
    MUST(trp_multinode_resolve(test, "second", "/user/echo", 10000, &second));
    MUST(trp_multinode_blackhole(test, "first", "second", BOTH));
    CHECK(!answers(test, second, 100));
    MUST(trp_multinode_pass_through(test, "first", "second", BOTH));
    TRP_MULTINODE_AWAIT(test, answers(test, second, 1000), 30000);
    MUST(trp_multinode_blackhole(test, "second", "first", TRP_MULTINODE_SEND)); /* by its order */
    CHECK(!answers(test, second, 100));
    MUST(trp_multinode_pass_through(test, "second", "first", TRP_MULTINODE_SEND));
    TRP_MULTINODE_AWAIT(test, answers(test, second, 1000), 30000);
    MUST(trp_multinode_throttle(test, "first", "second", TRP_MULTINODE_SEND, 0.08));
    uint64_t begun_ms = now_ms();
    for (int i = 0; i < 3; i++) {
        CHECK(answers(test, second, 30000));
    }
    CHECK(now_ms() - begun_ms >= 400);
    MUST(trp_multinode_throttle(test, "first", "second", BOTH, -1));
    MUST(trp_multinode_disconnect(test, "first", "second"));
    TRP_MULTINODE_AWAIT(test, answers(test, second, 1000), 30000);
}

/* MNT-07, MNT-08: no node waits for one that was ended by order */
static void
a_node_ends_by_order(trp_multinode *test)
{
    char address[TRP_ADDRESS_BYTES];
    MUST(trp_multinode_barrier(test, "before-the-end", 0));
    if (trp_multinode_is(test, "third")) {
        TRP_MULTINODE_AWAIT(test, false, 60000); /* until it is ended */
    }
    if (trp_multinode_is(test, "first")) {
        MUST(trp_multinode_exit(test, "third", 0));
        CHECK(trp_multinode_address(test, "third", address) == TRP_ENOENT);
        CHECK(trp_multinode_disconnect(test, "third", "first") == TRP_ENOENT);
    }
    MUST(trp_multinode_barrier(test, "third-is-gone", 0));
}

static bool
is_known(trp_multinode *test, const char *role)
{
    char names[128];
    MUST(trp_multinode_nodes(test, names, sizeof names));
    return strstr(names, role) != NULL;
}

/* MNT-07 */
static void
a_node_is_shut_down_and_begins_again(trp_multinode *test)
{
    char before[TRP_ADDRESS_BYTES], after[TRP_ADDRESS_BYTES];
    trp_ref fourth;
    MUST(trp_multinode_address(test, "fourth", before));
    MUST(trp_multinode_barrier(test, "before-the-shutdown", 0));
    if (trp_multinode_is(test, "fourth")) {
        MUST(trp_multinode_await_end(test, 30000));
        CHECK(trp_multinode_system(test) == NULL);
        CHECK(trp_multinode_await_end(test, 1) == TRP_ESTATE);
        MUST(trp_multinode_restart(test, 1));
        CHECK(trp_multinode_restart(test, 1) == TRP_ESTATE);
        echo_spawn(test);
    } else if (trp_multinode_is(test, "first")) {
        MUST(trp_multinode_shutdown(test, "fourth"));
        TRP_MULTINODE_AWAIT(test, is_known(test, "fourth"), 30000);
    }
    MUST(trp_multinode_barrier(test, "fourth-is-back", 0));
    MUST(trp_multinode_address(test, "fourth", after));
    CHECK(strcmp(before, after) == 0);
    if (trp_multinode_is(test, "first")) {
        MUST(trp_multinode_resolve(test, "fourth", "/user/echo", 30000, &fourth));
        CHECK(answers(test, fourth, 10000));
    }
}

static void
all(trp_multinode *test)
{
    char longest[TRP_MULTINODE_BARRIER_BYTES_MAX + 2];
    memset(longest, 'b', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    each_role_has_its_own_settings(test);
    only_the_first_orders(test);
    echo_spawn(test);
    CHECK(trp_multinode_barrier(test, longest, 0) == TRP_EINVAL);
    CHECK(trp_multinode_barrier(test, "", 0) == TRP_EINVAL);
    longest[sizeof longest - 2] = '\0';
    MUST(trp_multinode_barrier(test, longest, 0));
    if (trp_multinode_is(test, "first")) {
        links_are_cut_slowed_and_healed(test);
    }
    a_node_ends_by_order(test);
    a_node_is_shut_down_and_begins_again(test);
    MUST(trp_multinode_barrier(test, "finished", 0));
    printf("done\n");
}

/* MNT-15: subscribe, the state comes first, join, all addresses come Up, in any order */
static void
a_cluster_is_tested_by_its_events(trp_multinode *test)
{
    trp_system *system = trp_multinode_system(test);
    char first[TRP_ADDRESS_BYTES], expected[4][TRP_ADDRESS_BYTES];
    const char *const seeds[] = { first };
    unsigned seen = 0;
    trp_inbox *inbox;
    trp_msg *msg;
    trp_ref sender;
    for (size_t i = 0; i < 4; i++) {
        static const char *const names[] = { "first", "second", "third", "fourth" };
        MUST(trp_multinode_address(test, names[i], expected[i]));
    }
    memcpy(first, expected[0], sizeof first);
    MUST(trp_inbox_open(system, NULL, &inbox));
    MUST(trp_cluster_subscribe(system, trp_inbox_ref(inbox), TRP_CLUSTER_MEMBER_UP));
    MUST(trp_inbox_receive(inbox, 10000, &msg, &sender));
    CHECK(trp_msg_is(msg, &trp_current_cluster_state_type));
    trp_msg_free(msg);
    MUST(trp_cluster_join(system, seeds, 1));
    while (seen != 0xf) {
        MUST(trp_inbox_receive(inbox, 60000, &msg, &sender));
        CHECK(trp_msg_is(msg, &trp_member_up_type));
        for (unsigned i = 0; i < 4; i++) {
            const trp_member_event *event = trp_msg_payload(msg);
            seen |= (unsigned)(strcmp(event->member.address, expected[i]) == 0) << i;
        }
        trp_msg_free(msg);
    }
    trp_cluster_unsubscribe(system, trp_inbox_ref(inbox), TRP_CLUSTER_MEMBER_UP);
    trp_inbox_close(inbox);
    MUST(trp_multinode_barrier(test, "all-up", 0));
}

/* MNT-07: no node waits for one that is removed or shut down by order, and its own later end is no
 * failure */
static void
released_nodes_outlive_the_first(trp_multinode *test)
{
    MUST(trp_multinode_barrier(test, "all-there", 0));
    if (trp_multinode_is(test, "first")) {
        MUST(trp_multinode_remove(test, "second"));
        MUST(trp_multinode_shutdown(test, "fourth"));
    } else if (trp_multinode_is(test, "second")) {
        CHECK(trp_multinode_barrier(test, "too-late", 0) == TRP_ECANCELED);
    } else if (trp_multinode_is(test, "fourth")) {
        MUST(trp_multinode_await_end(test, 30000));
    }
}

/* MNT-16: `third` comes late, and `fourth` stays longer than all the others; what is printed is
 * compared by the script. */
static void
beginning_and_end_are_barriers(trp_multinode *test)
{
    printf("begins at %" PRIu64 "\n", now_ms());
    if (trp_multinode_is(test, "fourth")) {
        pause_ms(PAUSE_MS);
    }
    if (!trp_multinode_is(test, "first")) {
        printf("leaves at %" PRIu64 "\n", now_ms());
    }
}

/* MNT-08: a timeout fails a barrier, and with it all later ones */
static void
late(trp_multinode *test)
{
    if (trp_multinode_is(test, "third")) {
        TRP_MULTINODE_AWAIT(test, false, 60000); /* until it is ended */
    }
    CHECK(trp_multinode_barrier(test, "here", 200) == TRP_ECANCELED);
    CHECK(strncmp(trp_multinode_reason(test), LATE, strlen(LATE)) == 0);
    /* and the other nodes that were so slow */
    CHECK(strstr(trp_multinode_reason(test), " third") != NULL);
    CHECK(trp_multinode_barrier(test, "there", 0) == TRP_ECANCELED);
    if (trp_multinode_is(test, "first")) {
        MUST(trp_multinode_exit(test, "third", 0));
    }
}

/* ---- cases that fail on purpose -------------------------------------------------------------- */

static void
run(trp_multinode *test, void *arg)
{
    const char *name = arg;
    if (strcmp(name, "all") == 0) {
        all(test);
    } else if (strcmp(name, "cluster") == 0) {
        a_cluster_is_tested_by_its_events(test);
    } else if (strcmp(name, "released") == 0) {
        released_nodes_outlive_the_first(test);
    } else if (strcmp(name, "wrong") == 0) {
        MUST(trp_multinode_barrier(test, trp_multinode_is(test, "second") ? "there" : "here", 0));
    } else if (strcmp(name, "fails") == 0) {
        CHECK(!trp_multinode_is(test, "second"));
        MUST(trp_multinode_barrier(test, "here", 0));
    } else if (strcmp(name, "first-fails") == 0) {
        CHECK(!trp_multinode_is(test, "first"));
        MUST(trp_multinode_barrier(test, "here", 0));
    } else if (strcmp(name, "ends") == 0) {
        beginning_and_end_are_barriers(test);
    } else if (strcmp(name, "lost") == 0) {
        MUST(trp_multinode_barrier(test, "met", 0)); /* the others are at the next one in no time */
        if (trp_multinode_is(test, "third")) {
            _exit(0);
        }
        MUST(trp_multinode_barrier(test, "here", 0));
    } else if (strcmp(name, "late") == 0) {
        late(test);
    } else if (strcmp(name, "first-lost") == 0) {
        if (trp_multinode_is(test, "first")) {
            _exit(3);
        }
        TRP_MULTINODE_AWAIT(test, false, 120000);
    } else {
        CHECK(name == NULL); /* none of the cases */
    }
}

int
main(int argc, char **argv)
{
    static const char *const own[] = { "app.word=own", "app.peer=@first@", NULL };
    static const char *const common[] = { "app.word=common", "app.mail=a@b", NULL };
    static const trp_multinode_role roles[] = {
        { "first", NULL }, { "second", own }, { "third", NULL }, { "fourth", NULL }
    };
    trp_multinode_options options = TRP_MULTINODE_OPTIONS_INIT;
    options.roles = roles;
    options.roles_count = 4;
    options.settings = common;
    options.test_transport = 1;
    options.argc = argc;
    options.argv = argv;
    const char *name = argc > 1 ? argv[1] : "", *index = getenv("MULTINODE_INDEX");
    bool ends = strcmp(name, "ends") == 0 && index && strcmp(index, "roles") != 0;
    if (ends && strcmp(index, "2") == 0) {
        pause_ms(PAUSE_MS);
        printf("starts at %" PRIu64 "\n", now_ms());
    }
    int code = trp_multinode_main(&options, run, argc > 1 ? argv[1] : "");
    if (ends && strcmp(index, "0") == 0) {
        printf("is over at %" PRIu64 "\n", now_ms());
    }
    return code;
}

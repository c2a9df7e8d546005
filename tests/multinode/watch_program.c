/* watch_program.c - how watches end with members of a cluster: `troupe multinode watch_program`.
 *
 * ClusterDeathWatchSpec. The detector of plain remoting is set so that it never fires: each
 * notification here comes from the cluster. tests/multinode/remoting.sh looks for what the first
 * node prints. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <troupe/troupe.h>

#include "tests/multinode/program.h"

enum { NODES = 4, PATIENCE_MS = 60000 };

static trp_err
target_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return TRP_OK;
}

static const trp_behaviour target = TRP_BEHAVIOUR_INIT("target", char, target_receive);

static bool
is_told(trp_inbox *inbox, trp_ref ref, uint32_t within_ms)
{
    trp_msg *msg = NULL;
    trp_ref sender;
    bool told = trp_inbox_receive(inbox, within_ms, &msg, &sender) == TRP_OK &&
                trp_msg_is(msg, &trp_terminated_type) &&
                trp_ref_equal(((const trp_terminated *)trp_msg_payload(msg))->ref, ref);
    trp_msg_free(msg);
    return told;
}

static size_t
members(trp_multinode *test, uint32_t status)
{
    trp_member all[NODES * 2];
    size_t count = 0, fit = 0;
    if (trp_cluster_members(trp_multinode_system(test), all, NODES * 2, &count) != TRP_OK) {
        return 0;
    }
    for (size_t i = 0; i < count && i < NODES * 2; i++) {
        fit += status == 0 || all[i].status == status;
    }
    return fit;
}

static bool
is_up(trp_multinode *test)
{
    trp_member self;
    return trp_cluster_self(trp_multinode_system(test), &self) == TRP_OK &&
           self.status == TRP_MEMBER_UP;
}

static void
join(trp_multinode *test)
{
    char first[TRP_ADDRESS_BYTES];
    const char *const seeds[] = { first };
    MUST(trp_multinode_address(test, "first", first));
    MUST(trp_cluster_join(trp_multinode_system(test), seeds, 1));
    TRP_MULTINODE_AWAIT(test, members(test, TRP_MEMBER_UP) == NODES, PATIENCE_MS);
    MUST(trp_multinode_barrier(test, "up", 0));
}

static void
say(trp_multinode *test, const char *what)
{
    if (trp_multinode_is(test, "first")) {
        printf("%s\n", what);
        (void)fflush(stdout);
    }
}

/* `third` crashes, and the cluster removes it; `fourth` is healthy, and an operator downs it. */
static void
watches_end_with_members(trp_multinode *test, void *arg)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref own;
    (void)arg;
    options.name = "target";
    MUST(trp_system_spawn(trp_multinode_system(test), &target, &options, &own));
    bool watches = trp_multinode_is(test, "first") || trp_multinode_is(test, "second");
    trp_ref crashing = found(test, "third", "/user/target");
    trp_ref downed = found(test, "fourth", "/user/target");
    trp_inbox *of_crash = NULL, *of_down = NULL;
    if (watches) {
        of_crash = watching(test, crashing); /* before anybody has joined */
    }
    MUST(trp_multinode_barrier(test, "watched", 0));
    join(test);
    if (trp_multinode_is(test, "third")) {
        TRP_MULTINODE_AWAIT(test, false, 4 * PATIENCE_MS); /* until it is ended */
    }
    if (trp_multinode_is(test, "fourth")) {
        MUST(trp_multinode_barrier(test, "third-is-gone", 0));
        /* The others end when they have been notified, perhaps before this node is: then none is
         * left to notify it. The others check that it is no member. */
        uint64_t enough = trp_multinode_until(test, 2000);
        while (is_up(test) && trp_multinode_pause(test, enough)) {
        }
        return;
    }
    of_down = watching(test, downed);
    CHECK(!is_told(of_crash, crashing, 200));
    if (trp_multinode_is(test, "first")) {
        MUST(trp_multinode_exit(test, "third", 0));
    }
    CHECK(is_told(of_crash, crashing, PATIENCE_MS));
    CHECK(!is_told(of_crash, crashing, 200)); /* once */
    TRP_MULTINODE_AWAIT(test, members(test, 0) == NODES - 1, PATIENCE_MS);
    say(test, "a_watch_from_before_joining_ends_with_the_member");

    trp_inbox *late = watching(test, crashing);
    CHECK(is_told(late, crashing, 5000));
    trp_inbox_close(late);
    say(test, "a_watch_of_who_is_gone_ends_at_once");

    CHECK(!is_told(of_down, downed, 200));
    MUST(trp_multinode_barrier(test, "third-is-gone", 0));
    if (trp_multinode_is(test, "first")) {
        char address[TRP_ADDRESS_BYTES];
        MUST(trp_multinode_address(test, "fourth", address));
        MUST(trp_multinode_remove(test, "fourth"));
        MUST(trp_cluster_down(trp_multinode_system(test), address));
    }
    CHECK(is_told(of_down, downed, PATIENCE_MS));
    MUST(trp_multinode_barrier(test, "fourth-is-gone", 0));
    say(test, "a_watch_ends_when_an_operator_downs_the_member");
    trp_inbox_close(of_crash);
    trp_inbox_close(of_down);
}

int
main(int argc, char **argv)
{
    static const char *const common[] = {
        "remote.watch-failure-detector.acceptable-heartbeat-pause=1h",
        "remote.watch-failure-detector.expected-response-after=1h",
        "cluster.failure-detector.heartbeat-interval=200ms",
        "cluster.failure-detector.acceptable-heartbeat-pause=2s",
        "cluster.downing.stable-after=1s",
        "log.level=error",
        NULL
    };
    static const trp_multinode_role roles[] = {
        { "first", NULL }, { "second", NULL }, { "third", NULL }, { "fourth", NULL }
    };
    trp_multinode_options options = TRP_MULTINODE_OPTIONS_INIT;
    options.roles = roles;
    options.roles_count = NODES;
    options.settings = common;
    options.barrier_timeout_ms = 2 * PATIENCE_MS;
    options.argc = argc;
    options.argv = argv;
    return trp_multinode_main(&options, watches_end_with_members, NULL);
}

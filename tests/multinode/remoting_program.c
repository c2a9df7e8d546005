/* remoting_program.c - remoting between processes: `troupe multinode remoting_program`.
 *
 * The scenarios are those of Akka's multi-jvm tests, whose names stand at them; each prints its own
 * name on the first node when it has passed. tests/multinode/remoting.sh looks for the names.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <troupe/troupe.h>

#include "tests/multinode/program.h"

#define AWAIT(condition) TRP_MULTINODE_AWAIT(test, condition, 30000)

enum { NUMBERS = 20000, RELIABLE_EACH = 500, LOST_MS = 30000 };

#define HOP_NUMBER(F, S) F(S, u64, number)
#define HOP_REPORT(F, S) F(S, u64, arrived) F(S, u64, wrong)
#define HOP_MESSAGES(M, P)                                                                         \
    M(P, number, HOP_NUMBER) M(P, ask, TRP_NO_FIELDS) M(P, report, HOP_REPORT)
TRP_PROTOCOL(hop, HOP_MESSAGES)

/* ---- actors ---------------------------------------------------------------------------------- */

static trp_err
echo_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_string_type)) {
        trp_reply(ctx, trp_msg_type(msg), trp_msg_payload(msg), trp_msg_bytes(msg));
    }
    return TRP_OK;
}

/* Passes on what it is told to the ref that it was given at first. */
static trp_err
relay_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_forward(ctx, *(trp_ref *)state, msg);
    return TRP_OK;
}

static trp_err
relay_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    memcpy(state, trp_msg_payload(args), sizeof(trp_ref));
    return TRP_OK;
}

/* Counts numbers that come in their order, and those that do not. */
static trp_err
counter_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    hop_report *seen = state;
    if (trp_msg_is(msg, &hop_number_type)) {
        seen->wrong += ((const hop_number *)trp_msg_payload(msg))->number != seen->arrived;
        seen->arrived++;
    } else if (trp_msg_is(msg, &hop_ask_type)) {
        trp_reply(ctx, &hop_report_type, seen, sizeof *seen);
    }
    return TRP_OK;
}

static const trp_behaviour echo = TRP_BEHAVIOUR_INIT("echo", char, echo_receive);
static const trp_behaviour counter = TRP_BEHAVIOUR_INIT("counter", hop_report, counter_receive);
static const trp_behaviour relay = { .size = sizeof(trp_behaviour),
                                     .name = "relay",
                                     .version = 1,
                                     .state_bytes = sizeof(trp_ref),
                                     .receive = relay_receive,
                                     .pre_start = relay_start };

static trp_ref
spawn(trp_multinode *test, const trp_behaviour *behaviour, const char *name, const trp_ref *next)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    options.name = name;
    if (next != NULL) {
        options.args_type = &trp_bytes_type;
        options.args = next;
        options.args_bytes = sizeof *next;
    }
    MUST(trp_system_spawn(trp_multinode_system(test), behaviour, &options, &ref));
    return ref;
}

static bool
answers(trp_multinode *test, trp_ref to, uint32_t timeout_ms)
{
    trp_msg *reply = NULL;
    trp_err err = trp_system_ask(trp_multinode_system(test), to, &trp_string_type, "x", 1,
                                 timeout_ms, &reply);
    trp_msg_free(reply);
    return err == TRP_OK;
}

/* ---- watching -------------------------------------------------------------------------------- */

/* Told once that ref has ended, and whether its node has. */
static void
expect_terminated(trp_multinode *test, trp_inbox *inbox, trp_ref ref, int with_its_node)
{
    trp_msg *msg;
    trp_ref sender;
    MUST(trp_inbox_receive(inbox, LOST_MS, &msg, &sender));
    CHECK(trp_msg_is(msg, &trp_terminated_type));
    const trp_terminated *terminated = trp_msg_payload(msg);
    CHECK(trp_ref_equal(terminated->ref, ref));
    CHECK(terminated->address_terminated == with_its_node);
    trp_msg_free(msg);
    CHECK(trp_inbox_receive(inbox, 100, &msg, &sender) == TRP_ETIMEDOUT);
    trp_inbox_close(inbox);
}

static void
stop(trp_multinode *test, trp_ref ref)
{
    trp_system_tell(trp_multinode_system(test), ref, &trp_poison_pill_type, NULL, 0);
}

/* ---- the scenarios: each is run by all nodes ------------------------------------------------- */

static void
passed(trp_multinode *test, const char *name)
{
    MUST(trp_multinode_barrier(test, name, 0));
    if (trp_multinode_is(test, "first")) {
        printf("%s\n", name);
        (void)fflush(stdout);
    }
}

/* LookupRemoteActorSpec */
static void
an_actor_is_looked_up_by_its_path(trp_multinode *test)
{
    char nobody[TRP_ADDRESS_BYTES + 32], address[TRP_ADDRESS_BYTES];
    trp_ref ref;
    if (trp_multinode_is(test, "first")) {
        CHECK(answers(test, found(test, "second", "/user/echo"), LOST_MS));
        CHECK(answers(test, found(test, "third", "/user/echo"), LOST_MS));
        MUST(trp_multinode_address(test, "second", address));
        (void)snprintf(nobody, sizeof nobody, "%s/user/nobody", address);
        CHECK(trp_system_resolve(trp_multinode_system(test), nobody, LOST_MS, &ref) == TRP_ENOENT);
    }
    passed(test, "an_actor_is_looked_up_by_its_path");
}

static bool
have_arrived(trp_multinode *test, trp_ref to, uint64_t count, uint64_t *ret_wrong)
{
    trp_msg *reply = NULL;
    uint64_t arrived = 0;
    hop_ask ask = { 0 };
    if (trp_system_ask(trp_multinode_system(test), to, &hop_ask_type, &ask, sizeof ask, 1000,
                       &reply) == TRP_OK) {
        arrived = ((const hop_report *)trp_msg_payload(reply))->arrived;
        *ret_wrong = ((const hop_report *)trp_msg_payload(reply))->wrong;
    }
    trp_msg_free(reply);
    return arrived == count;
}

/* RemoteDeliverySpec */
static void
numbers_over_two_hops_keep_their_order(trp_multinode *test)
{
    uint64_t wrong = NUMBERS;
    if (trp_multinode_is(test, "third")) {
        (void)spawn(test, &counter, "counter", NULL);
    } else if (trp_multinode_is(test, "second")) {
        trp_ref next = found(test, "third", "/user/counter");
        (void)spawn(test, &relay, "relay", &next);
    } else {
        trp_ref via = found(test, "second", "/user/relay");
        trp_ref end = found(test, "third", "/user/counter");
        for (hop_number n = { 0 }; n.number < NUMBERS; n.number++) {
            trp_system_tell(trp_multinode_system(test), via, &hop_number_type, &n, sizeof n);
        }
        AWAIT(have_arrived(test, end, NUMBERS, &wrong));
        CHECK(wrong == 0);
    }
    passed(test, "numbers_over_two_hops_keep_their_order");
}

/* ReliableProxySpec: loss on either direction, and a slow link */
static void
a_reliable_proxy_delivers_over_links_that_lose(trp_multinode *test)
{
    static const struct {
        trp_multinode_direction direction;
        const char *rule;
    } faults[] = { { TRP_MULTINODE_SEND, "lose=20%" },
                   { TRP_MULTINODE_RECEIVE, "lose=20%" },
                   { TRP_MULTINODE_BOTH, "lose=10% repeat=10% reorder=10% jitter=2ms" },
                   { TRP_MULTINODE_BOTH, "rate=500kB delay=5ms" } };
    if (trp_multinode_is(test, "second")) {
        (void)spawn(test, &counter, "reliable", NULL);
    } else if (trp_multinode_is(test, "first")) {
        trp_reliable_proxy_options options = TRP_RELIABLE_PROXY_OPTIONS_INIT;
        hop_number n = { 0 };
        uint64_t wrong = 1;
        trp_ref proxy;
        options.target = found(test, "second", "/user/reliable");
        options.retry_after_ms = 200;
        MUST(trp_system_reliable_proxy_spawn(trp_multinode_system(test), &options, &proxy));
        for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
            MUST(trp_multinode_fault(test, "first", "second", faults[i].direction, faults[i].rule));
            for (int told = 0; told < RELIABLE_EACH; told++, n.number++) {
                trp_system_tell(trp_multinode_system(test), proxy, &hop_number_type, &n, sizeof n);
            }
            AWAIT(have_arrived(test, options.target, n.number, &wrong));
            CHECK(wrong == 0);
            MUST(trp_multinode_pass_through(test, "first", "second", TRP_MULTINODE_BOTH));
        }
    }
    passed(test, "a_reliable_proxy_delivers_over_links_that_lose");
}

/* RemoteNodeDeathWatchSpec: both directions, what stops while all nodes live */
static void
watchers_on_both_sides_are_told_of_a_stop(trp_multinode *test)
{
    bool first = trp_multinode_is(test, "first");
    if (!trp_multinode_is(test, "third")) {
        trp_ref own = spawn(test, &echo, "stops", NULL);
        trp_ref other = found(test, first ? "second" : "first", "/user/stops");
        trp_inbox *inbox = watching(test, other);
        CHECK(answers(test, other, LOST_MS)); /* behind the watch: it is there */
        MUST(trp_multinode_barrier(test, "watched", 0));
        stop(test, own);
        expect_terminated(test, inbox, other, 0);
        expect_terminated(test, watching(test, other), other, 0); /* one that has ended already */
    } else {
        MUST(trp_multinode_barrier(test, "watched", 0));
    }
    passed(test, "watchers_on_both_sides_are_told_of_a_stop");
}

static void
come_back(trp_multinode *test)
{
    MUST(trp_multinode_await_end(test, LOST_MS));
    MUST(trp_multinode_restart(test, 1));
    (void)spawn(test, &echo, "echo", NULL);
    (void)spawn(test, &echo, "stops", NULL);
}

static bool
is_known(trp_multinode *test, const char *role)
{
    char names[128];
    MUST(trp_multinode_nodes(test, names, sizeof names));
    return strstr(names, role) != NULL;
}

/* RemoteQuarantinePiercingSpec: silence quarantines, healing does not lift it, a new uid does */
static void
a_new_incarnation_pierces_a_quarantine(trp_multinode *test)
{
    if (trp_multinode_is(test, "first")) {
        trp_ref old = found(test, "second", "/user/echo");
        trp_inbox *inbox = watching(test, old);
        CHECK(answers(test, old, LOST_MS));
        MUST(trp_multinode_blackhole(test, "first", "second", TRP_MULTINODE_BOTH));
        expect_terminated(test, inbox, old, 1);
        MUST(trp_multinode_pass_through(test, "first", "second", TRP_MULTINODE_BOTH));
        CHECK(!answers(test, old, 300));
        MUST(trp_multinode_shutdown(test, "second"));
        AWAIT(is_known(test, "second"));
        trp_ref again = found(test, "second", "/user/echo");
        CHECK(!trp_ref_equal(old, again));
        AWAIT(answers(test, again, 1000));
        CHECK(!answers(test, old, 100));
    } else if (trp_multinode_is(test, "second")) {
        come_back(test);
    }
    passed(test, "a_new_incarnation_pierces_a_quarantine");
}

/* RemoteNodeRestartDeathWatchSpec, RemoteNodeShutdownAndComesBackSpec: the watcher of the old
 * system is told of the actor there, the new one has its address; signals for it are counted anew,
 * and arrive */
static void
a_system_that_comes_back_is_watched_anew(trp_multinode *test)
{
    if (trp_multinode_is(test, "first")) {
        char before[TRP_ADDRESS_BYTES], after[TRP_ADDRESS_BYTES];
        MUST(trp_multinode_address(test, "second", before));
        for (int round = 0; round < 2; round++) {
            trp_ref old = found(test, "second", "/user/stops");
            trp_inbox *inbox = watching(test, old);
            CHECK(answers(test, old, LOST_MS));
            MUST(trp_multinode_shutdown(test, "second"));
            trp_msg *msg;
            trp_ref sender;
            MUST(trp_inbox_receive(inbox, LOST_MS, &msg, &sender));
            CHECK(trp_msg_is(msg, &trp_terminated_type));
            CHECK(trp_ref_equal(((const trp_terminated *)trp_msg_payload(msg))->ref, old));
            trp_msg_free(msg);
            trp_inbox_close(inbox);
            AWAIT(is_known(test, "second"));
            MUST(trp_multinode_address(test, "second", after));
            CHECK(strcmp(before, after) == 0);
        }
        trp_ref stops = found(test, "second", "/user/stops");
        trp_inbox *inbox = watching(test, stops);
        CHECK(answers(test, stops, LOST_MS));
        stop(test, stops);
        expect_terminated(test, inbox, stops, 0);
    } else if (trp_multinode_is(test, "second")) {
        come_back(test);
        come_back(test);
    }
    passed(test, "a_system_that_comes_back_is_watched_anew");
}

/* TransportFailSpec, AttemptSysMsgRedeliverySpec: what was sent into a silent link is sent again,
 * and connections that break lose no signal */
static void
a_watch_made_in_silence_holds_after_it(trp_multinode *test)
{
    if (trp_multinode_is(test, "first")) {
        trp_ref ref = found(test, "third", "/user/fragile");
        CHECK(answers(test, ref, LOST_MS));
        MUST(trp_multinode_blackhole(test, "first", "third", TRP_MULTINODE_BOTH));
        trp_inbox *inbox = watching(test, ref);
        CHECK(!answers(test, ref, 300));
        MUST(trp_multinode_pass_through(test, "first", "third", TRP_MULTINODE_BOTH));
        MUST(trp_multinode_disconnect(test, "first", "third"));
        AWAIT(answers(test, ref, 1000));
        stop(test, ref);
        expect_terminated(test, inbox, ref, 0);
    } else if (trp_multinode_is(test, "third")) {
        (void)spawn(test, &echo, "fragile", NULL);
    }
    passed(test, "a_watch_made_in_silence_holds_after_it");
}

/* RemoteNodeDeathWatchSpec: the crash of a node that is watched, and watches */
static void
watchers_are_told_of_a_crash(trp_multinode *test)
{
    bool third = trp_multinode_is(test, "third");
    trp_inbox *inbox = NULL;
    trp_ref ref = found(test, third ? "first" : "third", "/user/echo");
    inbox = watching(test, ref);
    CHECK(answers(test, ref, LOST_MS));
    MUST(trp_multinode_barrier(test, "all-watch", 0));
    if (third) {
        TRP_MULTINODE_AWAIT(test, false, 2 * LOST_MS); /* until it is ended */
    }
    if (trp_multinode_is(test, "first")) {
        MUST(trp_multinode_exit(test, "third", 0));
    }
    expect_terminated(test, inbox, ref, 1);
    if (trp_multinode_is(test, "second")) {
        CHECK(answers(test, found(test, "first", "/user/echo"), LOST_MS)); /* it lives on */
    }
    passed(test, "watchers_are_told_of_a_crash");
}

static void
all(trp_multinode *test, void *arg)
{
    (void)arg;
    MUST(trp_protocol_register(&hop_protocol));
    (void)spawn(test, &echo, "echo", NULL);
    an_actor_is_looked_up_by_its_path(test);
    numbers_over_two_hops_keep_their_order(test);
    a_reliable_proxy_delivers_over_links_that_lose(test);
    watchers_on_both_sides_are_told_of_a_stop(test);
    a_watch_made_in_silence_holds_after_it(test);
    a_new_incarnation_pierces_a_quarantine(test);
    a_system_that_comes_back_is_watched_anew(test);
    watchers_are_told_of_a_crash(test);
}

int
main(int argc, char **argv)
{
    static const char *const common[] = {
        "remote.retry-backoff-max=100ms",
        "remote.watch-failure-detector.heartbeat-interval=100ms",
        "remote.watch-failure-detector.acceptable-heartbeat-pause=5s",
        "remote.watch-failure-detector.expected-response-after=1s",
        "log.level=error",
        NULL
    };
    static const trp_multinode_role roles[] = { { "first", NULL },
                                                { "second", NULL },
                                                { "third", NULL } };
    trp_multinode_options options = TRP_MULTINODE_OPTIONS_INIT;
    options.roles = roles;
    options.roles_count = 3;
    options.settings = common;
    options.test_transport = 1;
    options.barrier_timeout_ms = 3 * LOST_MS; /* others wait while one awaits something */
    options.argc = argc;
    options.argv = argv;
    return trp_multinode_main(&options, all, NULL);
}

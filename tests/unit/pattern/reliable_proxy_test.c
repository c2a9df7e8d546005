/* reliable_proxy_test.c - both ends on one node, under a clock that the test holds. */
#include <troupe/reliable_proxy.h>
#include <troupe/testkit.h>

#include "pattern/reliable.h"
#include "tests/unit/actor/stage.h"

static trp_testkit *kit;
static trp_system *stage;
static trp_probe *target;

static void
open_kit(void)
{
    trp_testkit_options options = TRP_TESTKIT_OPTIONS_INIT;

    options.clock = TRP_CLOCK_MANUAL;
    UNIT_REQUIRE(trp_testkit_open(&options, &kit) == TRP_OK);
    stage = trp_testkit_system(kit);
    target = trp_testkit_probe(kit);
}

static void
close_kit(void)
{
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
}

static trp_probe *
open_probe(void)
{
    trp_probe *probe = NULL;

    UNIT_REQUIRE(trp_probe_open(kit, &probe) == TRP_OK);
    return probe;
}

static trp_ref
open_proxy(trp_reliable_proxy_options options)
{
    trp_ref ref = TRP_REF_NONE;

    options.retry_after_ms = 100;
    if (options.target_path == NULL) {
        options.target = trp_probe_ref(target);
    }
    UNIT_REQUIRE(trp_system_reliable_proxy_spawn(stage, &options, &ref) == TRP_OK);
    UNIT_EQUAL(trp_testkit_advance(kit, 0), TRP_OK);
    return ref;
}

static trp_ref
open_plain(void)
{
    trp_reliable_proxy_options options = TRP_RELIABLE_PROXY_OPTIONS_INIT;

    return open_proxy(options);
}

static void
tell_numbers(trp_ref to, trp_ref teller, int64_t first, int64_t last)
{
    for (int64_t n = first; n <= last; n++) {
        trp_system_tell_as(stage, to, teller, &trp_i64_type, &n, sizeof n);
    }
    UNIT_EQUAL(trp_testkit_advance(kit, 0), TRP_OK);
}

static void
expect_numbers(trp_probe *probe, trp_ref teller, int64_t first, int64_t last)
{
    for (int64_t n = first; n <= last; n++) {
        UNIT_TRUE(trp_probe_expect(probe, TRP_TEST_TIME, &trp_i64_type, &n, sizeof n) != NULL);
        UNIT_TRUE(trp_ref_equal(trp_probe_sender(probe), teller));
    }
    UNIT_TRUE(trp_probe_expect_none(probe, 0) != 0);
}

static void
proxy_subscribe(trp_ref proxy, trp_ref who)
{
    trp_reliable_proxy_subscribe subscribe = { who };

    trp_system_tell(stage, proxy, &trp_reliable_proxy_subscribe_type, &subscribe, sizeof subscribe);
    UNIT_EQUAL(trp_testkit_advance(kit, 0), TRP_OK);
}

/* CONTRIB-31, CONTRIB-32: with the sender of the original message */
static void
what_it_is_told_arrives_in_order_from_its_sender(void)
{
    trp_probe *teller;
    trp_ref proxy;

    open_kit();
    teller = open_probe();
    proxy = open_plain();
    tell_numbers(proxy, trp_probe_ref(teller), 1, 300);
    expect_numbers(target, trp_probe_ref(teller), 1, 300);
    tell_numbers(proxy, (trp_ref)TRP_REF_NONE, 301, 301);
    expect_numbers(target, (trp_ref)TRP_REF_NONE, 301, 301);
    UNIT_EQUAL(stage_dead_sum(stage), 0);
    close_kit();
}

/* CONTRIB-35 */
static void
who_subscribes_is_told_the_state_and_each_change(void)
{
    trp_reliable_proxy_transition up = { .from = TRP_RELIABLE_PROXY_IDLE,
                                         .to = TRP_RELIABLE_PROXY_ACTIVE };
    trp_reliable_proxy_transition down = { .from = TRP_RELIABLE_PROXY_ACTIVE,
                                           .to = TRP_RELIABLE_PROXY_IDLE };
    trp_reliable_proxy_unsubscribe unsubscribe;
    trp_reliable_proxy_current current;
    trp_probe *watcher;
    trp_ref proxy;

    open_kit();
    watcher = open_probe();
    proxy = up.proxy = down.proxy = open_plain();
    for (int i = 0; i < 2; i++) { /* twice is once */
        proxy_subscribe(proxy, trp_probe_ref(watcher));
        current = (trp_reliable_proxy_current){ proxy, TRP_RELIABLE_PROXY_IDLE };
        UNIT_TRUE(trp_probe_expect(watcher, TRP_TEST_TIME, &trp_reliable_proxy_current_type,
                                   &current, sizeof current) != NULL);
    }
    tell_numbers(proxy, (trp_ref)TRP_REF_NONE, 1, 1);
    UNIT_TRUE(trp_probe_expect(watcher, TRP_TEST_TIME, &trp_reliable_proxy_transition_type, &up,
                               sizeof up) != NULL);
    UNIT_TRUE(trp_probe_expect(watcher, TRP_TEST_TIME, &trp_reliable_proxy_transition_type, &down,
                               sizeof down) != NULL);
    unsubscribe.subscriber = trp_probe_ref(watcher);
    trp_system_tell(stage, proxy, &trp_reliable_proxy_unsubscribe_type, &unsubscribe,
                    sizeof unsubscribe);
    tell_numbers(proxy, (trp_ref)TRP_REF_NONE, 2, 2);
    UNIT_TRUE(trp_probe_expect_none(watcher, 0) != 0);
    close_kit();
}

/* As many as there may be, and one more. */
static void
subscribers_have_a_limit(void)
{
    trp_ref proxy, who;

    open_kit();
    proxy = open_plain();
    who = trp_probe_ref(open_probe());
    for (uint32_t i = 0; i < TRP_RELIABLE_PROXY_SUBSCRIBERS_MAX; i++) {
        who.generation += 2; /* refs of no actor, all different */
        proxy_subscribe(proxy, who);
    }
    UNIT_EQUAL(stage_dead_sum(stage), TRP_RELIABLE_PROXY_SUBSCRIBERS_MAX); /* each was told */
    who.generation += 2;
    proxy_subscribe(proxy, who);
    UNIT_EQUAL(stage_dead_sum(stage), TRP_RELIABLE_PROXY_SUBSCRIBERS_MAX);
    close_kit();
}

/* ---- the far end ----------------------------------------------------------------------------- */

static void
tell_parcel_of(trp_ref to, uint64_t instance, uint64_t number, size_t bytes)
{
    struct {
        trpi_parcel head;
        int64_t payload;
    } parcel = { { .instance = instance, .number = number, .type = trp_i64_type.number },
                 (int64_t)number };

    trp_system_tell(stage, to, &trpi_parcel_type, &parcel, sizeof parcel.head + bytes);
    UNIT_EQUAL(trp_testkit_advance(kit, 0), TRP_OK);
}

static void
tell_parcel(trp_ref to, uint64_t instance, uint64_t number)
{
    tell_parcel_of(to, instance, number, sizeof(int64_t));
}

static void
expect_ack(trp_probe *proxy, uint64_t instance, uint64_t next)
{
    trpi_reliable_ack ack = { instance, next };

    UNIT_TRUE(trp_probe_expect(proxy, TRP_TEST_TIME, &trpi_reliable_ack_type, &ack, sizeof ack) !=
              NULL);
}

static void
open_end(trp_probe *proxy, uint64_t instance, uint64_t next)
{
    trpi_reliable_open open = { trp_probe_ref(proxy), trp_probe_ref(target), instance, next };

    UNIT_EQUAL(trp_system_select_tell(stage, "/system/" TRPI_RELIABLE_RECEPTIONIST,
                                      &trpi_reliable_open_type, &open, sizeof open),
               TRP_OK);
    UNIT_EQUAL(trp_testkit_advance(kit, 0), TRP_OK);
}

/* CONTRIB-31, CONTRIB-34: the test is the proxy, and loses, repeats and reorders parcels */
static void
the_far_end_takes_only_the_number_that_is_next(void)
{
    trp_ref nobody = TRP_REF_NONE, end;
    trp_probe *proxy;

    open_kit();
    UNIT_EQUAL(trpi_reliable_receive(stage), TRP_OK);
    proxy = open_probe();
    open_end(proxy, 7, 1);
    expect_ack(proxy, 7, 1);
    end = trp_probe_sender(proxy);
    tell_parcel(end, 7, 1);
    expect_ack(proxy, 7, 2);
    tell_parcel(end, 7, 3); /* 2 was lost */
    tell_parcel(end, 6, 2); /* of an earlier life */
    UNIT_TRUE(trp_probe_expect_none(proxy, 0) != 0);
    tell_parcel(end, 7, 1); /* its acknowledgement was lost */
    expect_ack(proxy, 7, 2);
    tell_parcel(end, 7, 2);
    expect_ack(proxy, 7, 3);
    expect_numbers(target, nobody, 1, 2);
    open_end(proxy, 7, 1); /* asked again: it goes on where it was */
    expect_ack(proxy, 7, 3);
    UNIT_TRUE(trp_ref_equal(trp_probe_sender(proxy), end));
    open_end(proxy, 8, 1); /* the proxy has started again */
    expect_ack(proxy, 8, 1);
    open_end(proxy, 7, 9); /* late */
    expect_ack(proxy, 8, 1);
    tell_parcel(end, 8, 1);
    expect_ack(proxy, 8, 2);
    expect_numbers(target, nobody, 1, 1);
    UNIT_EQUAL(stage_dead(stage, TRP_DEAD_NOT_ENCODABLE), 0);
    tell_parcel_of(end, 8, 2, sizeof(int64_t) - 1); /* not as long as its type: it counts alone */
    expect_ack(proxy, 8, 3);
    UNIT_EQUAL(stage_dead(stage, TRP_DEAD_NOT_ENCODABLE), 1);
    tell_parcel(end, 8, 3);
    expect_numbers(target, nobody, 3, 3);
    trp_system_tell(stage, end, &trp_bytes_type, "", 0);
    UNIT_EQUAL(trp_testkit_advance(kit, 0), TRP_OK);
    close_kit();
}

/* As many as there may be on one node, and one more. */
static void
far_ends_have_a_limit(void)
{
    static trp_ref proxies[TRP_RELIABLE_PROXY_ENDS_MAX];
    trp_reliable_proxy_options options = TRP_RELIABLE_PROXY_OPTIONS_INIT;
    trp_ref nobody = TRP_REF_NONE, more;
    int64_t n = 1;

    open_kit();
    options.target = trp_probe_ref(target);
    options.retry_after_ms = 100;
    for (uint32_t i = 0; i < TRP_RELIABLE_PROXY_ENDS_MAX; i++) {
        UNIT_REQUIRE(trp_system_reliable_proxy_spawn(stage, &options, &proxies[i]) == TRP_OK);
        trp_system_tell(stage, proxies[i], &trp_i64_type, &n, sizeof n);
    }
    UNIT_EQUAL(trp_testkit_advance(kit, 0), TRP_OK);
    for (uint32_t i = 0; i < TRP_RELIABLE_PROXY_ENDS_MAX; i++) {
        UNIT_TRUE(trp_probe_expect(target, TRP_TEST_TIME, &trp_i64_type, &n, sizeof n) != NULL);
    }
    more = open_plain();
    tell_numbers(more, nobody, 5, 5);
    UNIT_EQUAL(trp_testkit_advance(kit, 250), TRP_OK);
    expect_numbers(target, nobody, 1, 0);
    UNIT_EQUAL(trp_system_graceful_stop(stage, proxies[0], 60000), TRP_OK); /* its far end, too */
    UNIT_EQUAL(trp_testkit_advance(kit, 250), TRP_OK);
    expect_numbers(target, nobody, 5, 5);
    close_kit();
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* CONTRIB-33 */
static void
it_ends_with_its_target(void)
{
    trp_probe *watcher;
    trp_ref proxy;

    open_kit();
    watcher = open_probe();
    proxy = open_plain();
    tell_numbers(proxy, (trp_ref)TRP_REF_NONE, 1, 1);
    UNIT_EQUAL(trp_probe_watch(watcher, proxy), TRP_OK);
    trp_system_stop_actor(stage, trp_probe_ref(target));
    UNIT_EQUAL(trp_testkit_advance(kit, 0), TRP_OK);
    UNIT_TRUE(trp_probe_expect_terminated(watcher, TRP_TEST_TIME, proxy) != NULL);
    close_kit();
}

static uint32_t failures;

static trp_directive
failure_decide(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    (void)ctx;
    (void)state;
    (void)failure;
    failures++;
    return TRP_RESTART;
}
static const trp_strategy restarting = { .size = sizeof(trp_strategy),
                                         .decider = failure_decide,
                                         .retries_max = TRP_FOREVER };
static trp_ref child;

static trp_err
parent_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trp_reliable_proxy_options options = TRP_RELIABLE_PROXY_OPTIONS_INIT;

    (void)state;
    (void)args;
    options.target = trp_probe_ref(target);
    options.retry_after_ms = 100;
    return trp_reliable_proxy_spawn(ctx, &options, &child);
}

static trp_err
parent_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return TRP_OK;
}
static const trp_behaviour parent = { .size = sizeof(trp_behaviour),
                                      .name = "parent",
                                      .version = 1,
                                      .state_bytes = 1,
                                      .receive = parent_receive,
                                      .pre_start = parent_start,
                                      .strategy = &restarting };

/* CONTRIB-36: its supervisor decides; after a restart it goes on, with a far end of its own */
static void
a_failure_of_the_far_end_is_its_own(void)
{
    trp_ref ref, nobody = TRP_REF_NONE;

    open_kit();
    failures = 0;
    UNIT_REQUIRE(trp_system_spawn(stage, &parent, NULL, &ref) == TRP_OK);
    UNIT_EQUAL(trp_testkit_advance(kit, 0), TRP_OK);
    tell_numbers(child, nobody, 1, 1);
    expect_numbers(target, nobody, 1, 1);
    UNIT_EQUAL(trp_system_select_tell(stage, "/system/" TRPI_RELIABLE_RECEPTIONIST "/*",
                                      &trp_kill_type, NULL, 0),
               TRP_OK);
    UNIT_EQUAL(trp_testkit_advance(kit, 0), TRP_OK);
    UNIT_EQUAL(failures, 1);
    tell_numbers(child, nobody, 2, 3);
    UNIT_EQUAL(trp_testkit_advance(kit, 200), TRP_OK);
    expect_numbers(target, nobody, 2, 3);
    close_kit();
}

/* ---- kept messages, and the lookup of targets ------------------------------------------------ */

static trp_ref
open_looking(uint32_t looks, uint32_t msgs_max)
{
    trp_reliable_proxy_options options = TRP_RELIABLE_PROXY_OPTIONS_INIT;

    options.target_path = "/user/late";
    options.reconnect_after_ms = 1000;
    options.reconnects_max = looks;
    options.msgs_max = msgs_max;
    return open_proxy(options);
}

/* As many as it may keep, and one more; a target that comes late gets the kept messages. */
static void
it_keeps_so_many_until_somebody_is_there(void)
{
    static const trp_behaviour late = TRP_BEHAVIOUR_INIT("late", char, parent_receive);
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref nobody = TRP_REF_NONE, proxy, there;
    trp_probe *watcher;

    open_kit();
    watcher = open_probe();
    proxy = open_looking(0, 3);
    tell_numbers(proxy, nobody, 1, 3);
    UNIT_EQUAL(stage_dead(stage, TRP_DEAD_MAILBOX_FULL), 0);
    tell_numbers(proxy, nobody, 4, 4);
    UNIT_EQUAL(stage_dead(stage, TRP_DEAD_MAILBOX_FULL), 1);
    UNIT_EQUAL(trp_testkit_advance(kit, 5000), TRP_OK);
    proxy_subscribe(proxy, trp_probe_ref(watcher));
    options.name = "late";
    UNIT_REQUIRE(trp_system_spawn(stage, &late, &options, &there) == TRP_OK);
    UNIT_EQUAL(trp_testkit_advance(kit, 1000), TRP_OK);
    trp_reliable_proxy_current current = { proxy, TRP_RELIABLE_PROXY_ACTIVE };
    UNIT_TRUE(trp_probe_expect(watcher, TRP_TEST_TIME, &trp_reliable_proxy_current_type, &current,
                               sizeof current) != NULL);
    trp_reliable_proxy_transition idle = { proxy, TRP_RELIABLE_PROXY_ACTIVE,
                                           TRP_RELIABLE_PROXY_IDLE };
    UNIT_TRUE(trp_probe_expect(watcher, TRP_TEST_TIME, &trp_reliable_proxy_transition_type, &idle,
                               sizeof idle) != NULL);
    trp_system_stop_actor(stage, there); /* and it looks again, and keeps */
    UNIT_EQUAL(trp_testkit_advance(kit, 0), TRP_OK);
    tell_numbers(proxy, nobody, 5, 6);
    UNIT_EQUAL(trp_system_graceful_stop(stage, proxy, 60000), TRP_OK);
    UNIT_EQUAL(stage_dead(stage, TRP_DEAD_STOPPED), 2);
    close_kit();
}

static trp_probe *heirs_probe;

static trp_err
heir_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_forward(ctx, trp_probe_ref(heirs_probe), msg);
    return TRP_OK;
}
static const trp_behaviour heir = TRP_BEHAVIOUR_INIT("heir", char, heir_receive);

static trp_ref
only_end(trp_ref proxy)
{
    char path[TRP_PATH_BYTES_MAX];
    trp_ref end = TRP_REF_NONE;

    (void)snprintf(path, sizeof path, "/system/" TRPI_RELIABLE_RECEPTIONIST "/%x-%x-%x", proxy.node,
                   proxy.slot, proxy.generation);
    UNIT_EQUAL(trp_system_resolve(stage, path, 60000, &end), TRP_OK);
    return end;
}

/* CONTRIB-33: on the same node the far end goes on, and is not stopped behind its back */
static void
a_next_target_on_the_node_has_the_same_far_end(void)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref nobody = TRP_REF_NONE, proxy, there, end;

    open_kit();
    heirs_probe = open_probe();
    options.name = "late";
    UNIT_REQUIRE(trp_system_spawn(stage, &heir, &options, &there) == TRP_OK);
    proxy = open_looking(0, 0);
    tell_numbers(proxy, nobody, 1, 2);
    expect_numbers(heirs_probe, nobody, 1, 2);
    end = only_end(proxy);
    for (int64_t n = 3; n <= 5; n++) {
        trp_system_stop_actor(stage, there);
        UNIT_EQUAL(trp_testkit_advance(kit, 0), TRP_OK);
        tell_numbers(proxy, nobody, n, n);
        UNIT_REQUIRE(trp_system_spawn(stage, &heir, &options, &there) == TRP_OK);
        UNIT_EQUAL(trp_testkit_advance(kit, 1000), TRP_OK);
        expect_numbers(heirs_probe, nobody, n, n);
        UNIT_TRUE(trp_ref_equal(only_end(proxy), end));
    }
    close_kit();
}

static void
it_looks_so_often_and_ends(void)
{
    trp_probe *watcher;
    trp_ref proxy;

    open_kit();
    watcher = open_probe();
    proxy = open_looking(3, 0);
    UNIT_EQUAL(trp_probe_watch(watcher, proxy), TRP_OK);
    UNIT_EQUAL(trp_testkit_advance(kit, 2999), TRP_OK);
    UNIT_TRUE(trp_probe_expect_none(watcher, 0) != 0);
    UNIT_EQUAL(trp_testkit_advance(kit, 1), TRP_OK);
    UNIT_TRUE(trp_probe_expect_terminated(watcher, TRP_TEST_TIME, proxy) != NULL);
    close_kit();
}

/* CONTRIB-34 */
static void
options_have_bounds(void)
{
    static char path[TRP_PATH_BYTES_MAX + 2];
    trp_ref ref = TRP_REF_NONE;

    open_kit();
    memset(path, 'a', sizeof path - 1);
    path[0] = '/';
    trp_ref to = trp_probe_ref(target);
    trp_ref nobody = TRP_REF_NONE;
    const trp_reliable_proxy_options wrong[] = {
        { sizeof wrong[0], NULL, NULL, nobody, NULL, 100, 0, 0, 0 },
        { sizeof wrong[0], NULL, NULL, to, "/user/a", 100, 0, 0, 0 },
        { sizeof wrong[0], NULL, NULL, nobody, "", 100, 0, 0, 0 },
        { sizeof wrong[0], NULL, NULL, nobody, path, 100, 0, 0, 0 },
        { sizeof wrong[0], NULL, NULL, to, NULL, 0, 0, 0, 0 },
        { sizeof wrong[0], NULL, NULL, to, NULL, TRP_RELIABLE_PROXY_DELAY_MS_MAX + 1, 0, 0, 0 },
        { sizeof wrong[0], NULL, NULL, to, NULL, 100, 100, 0, 0 },
        { sizeof wrong[0], NULL, NULL, nobody, "/user/a", 100, TRP_RELIABLE_PROXY_DELAY_MS_MAX + 1,
          0, 0 },
        { sizeof wrong[0], NULL, NULL, nobody, "/user/a", 100, 0, 1, 0 },
        { 8, NULL, NULL, to, NULL, 100, 0, 0, 0 },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        UNIT_EQUAL(trp_system_reliable_proxy_spawn(stage, &wrong[i], &ref), TRP_EINVAL);
    }
    UNIT_EQUAL(trp_system_reliable_proxy_spawn(stage, NULL, &ref), TRP_EINVAL);
    trp_reliable_proxy_options most = TRP_RELIABLE_PROXY_OPTIONS_INIT;
    path[TRP_PATH_BYTES_MAX] = '\0';
    most.target_path = path;
    most.retry_after_ms = most.reconnect_after_ms = TRP_RELIABLE_PROXY_DELAY_MS_MAX;
    UNIT_EQUAL(trp_system_reliable_proxy_spawn(stage, &most, &ref), TRP_OK);
    close_kit();
}

UNIT_BEGIN("reliable_proxy")
UNIT(what_it_is_told_arrives_in_order_from_its_sender)
UNIT(who_subscribes_is_told_the_state_and_each_change)
UNIT(subscribers_have_a_limit)
UNIT(the_far_end_takes_only_the_number_that_is_next)
UNIT(far_ends_have_a_limit)
UNIT(it_ends_with_its_target)
UNIT(a_failure_of_the_far_end_is_its_own)
UNIT(it_keeps_so_many_until_somebody_is_there)
UNIT(a_next_target_on_the_node_has_the_same_far_end)
UNIT(it_looks_so_often_and_ends)
UNIT(options_have_bounds)
UNIT_END

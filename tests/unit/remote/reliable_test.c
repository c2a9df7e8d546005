/* reliable_test.c - reliable proxies over a network that breaks, is full, or loses a node. */
#include <troupe/reliable_proxy.h>
#include <troupe/serialization.h>

#include "pattern/reliable.h"
#include "tests/unit/remote/pair.h"

static pair p;
static trp_ref teller;
static _Atomic int64_t expected, wrong, text_bytes;

/* Numbers from 1 on, all from the teller; it has no state, so that a successor continues. */
static trp_err
taker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t number;

    (void)state;
    if (trp_msg_is(msg, &trp_i64_type)) {
        memcpy(&number, trp_msg_payload(msg), sizeof number);
        if (number != atomic_load(&expected)) {
            atomic_fetch_add(&wrong, 1);
        }
        atomic_store(&expected, number + 1);
        trp_reply(ctx, &trp_i64_type, &number, sizeof number); /* to the proxy's sender */
    } else {
        atomic_store(&text_bytes, (int64_t)trp_msg_bytes(msg));
    }
    return TRP_OK;
}
static const trp_behaviour taker = TRP_BEHAVIOUR_INIT("taker", char, taker_receive);

static _Atomic int64_t answered, idles, ended;

/* The teller hears answers; the same actor hears the proxy's states and its end. */
static trp_err
teller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_i64_type)) {
        atomic_fetch_add(&answered, 1);
    } else if (trp_msg_is(msg, &trp_reliable_proxy_transition_type)) {
        const trp_reliable_proxy_transition *t = trp_msg_payload(msg);
        if (t->from == TRP_RELIABLE_PROXY_ACTIVE && t->to == TRP_RELIABLE_PROXY_IDLE) {
            atomic_fetch_add(&idles, 1); /* all that it was told is acknowledged */
        }
    } else if (trp_msg_is(msg, &trp_terminated_type)) {
        atomic_fetch_add(&ended, 1);
    } else if (trp_msg_is(msg, &trp_actor_identity_type)) {
        return trp_watch(ctx, ((const trp_actor_identity *)trp_msg_payload(msg))->ref);
    }
    return TRP_OK;
}
static const trp_behaviour hearer = TRP_BEHAVIOUR_INIT("hearer", char, teller_receive);

static trp_ref
proxy_begin(const trpi_remote_options *options, bool by_path)
{
    trp_reliable_proxy_options given = TRP_RELIABLE_PROXY_OPTIONS_INIT;
    trp_reliable_proxy_subscribe subscribe;
    char path[TRP_PATH_BYTES_MAX];
    trp_ref proxy = TRP_REF_NONE;

    pair_start(&p, true, options);
    atomic_store(&expected, 1);
    atomic_store(&wrong, 0);
    atomic_store(&text_bytes, -1);
    atomic_store(&answered, 0);
    atomic_store(&idles, 0);
    atomic_store(&ended, 0);
    pair_spawn(p.system[1], &taker, "taker", NULL, NULL, 0);
    teller = pair_spawn(p.system[0], &hearer, "teller", NULL, NULL, 0);
    pair_path(&p, 1, "/user/taker", path, sizeof path);
    given.retry_after_ms = 20;
    if (by_path) {
        given.target_path = path;
        given.reconnect_after_ms = 20;
    } else {
        UNIT_REQUIRE(trp_system_resolve(p.system[0], path, 60000, &given.target) == TRP_OK);
    }
    UNIT_REQUIRE(trp_system_reliable_proxy_spawn(p.system[0], &given, &proxy) == TRP_OK);
    subscribe.subscriber = teller;
    trp_system_tell(p.system[0], proxy, &trp_reliable_proxy_subscribe_type, &subscribe,
                    sizeof subscribe);
    return proxy;
}

static void
tell_number(trp_ref proxy, int64_t number)
{
    trp_system_tell_as(p.system[0], proxy, teller, &trp_i64_type, &number, sizeof number);
}

static uint64_t
dead_count(trp_dead_reason reason)
{
    trp_system_stats stats = { .size = sizeof stats };

    trp_system_stats_get(p.system[0], &stats);
    return stats.dead_letters[reason];
}

enum { LOST_MAX = 20 };
static _Atomic uint32_t writes, lost;

/* Every fifth write, of either side, breaks its connection and is lost with it; at most so many. */
static trpi_mem_verdict
lose_some(void *arg, trpi_mem_event *event)
{
    (void)arg;
    if (event->connect || (atomic_fetch_add(&writes, 1) + 1) % 5 != 0 ||
        atomic_load(&lost) == LOST_MAX) {
        return TRPI_MEM_PASS;
    }
    atomic_fetch_add(&lost, 1);
    return TRPI_MEM_CUT;
}

/* CONTRIB-31 CONTRIB-32 CONTRIB-34 CONTRIB-35, ReliableProxySpec: order, once each, whatever the
 * connections do; a lane with little room refuses, and nothing of it is lost */
static void
nothing_is_lost_when_connections_break_and_are_full(void)
{
    enum { COUNT = 20000, EACH = 2000 };
    trpi_remote_options options = {
        .backoff_min_ms = 1, .backoff_max_ms = 10, .frame_bytes_max = 32768, .lane_bytes_max = 65536
    };
    trp_ref proxy = proxy_begin(&options, false);

    atomic_store(&writes, 0);
    atomic_store(&lost, 0);
    trpi_mem_network_fault_set(p.network, lose_some, NULL);
    bool goes_on = true;
    for (int64_t n = 1; n <= COUNT && goes_on; n++) {
        tell_number(proxy, n);
        if (n % EACH == 0) { /* while messages are in flight */
            goes_on = UNIT_WAIT(atomic_load(&expected) > n - EACH / 2, 60000);
            trpi_mem_network_cut(p.network, "left", "right");
        }
    }
    UNIT_WAIT(atomic_load(&expected) == COUNT + 1, 60000);
    UNIT_EQUAL(atomic_load(&wrong), 0);
    UNIT_WAIT(atomic_load(&idles) >= 1, 60000);
    UNIT_TRUE(atomic_load(&lost) > 0);
    UNIT_EQUAL(dead_count(TRP_DEAD_LANE_FULL), 0);
    pair_end(&p);
}

static trp_type stay_type = { .name = "reliable-test.stay",
                              .flags = TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL };
static trp_type bound_type = { .name = "reliable-test.bound",
                               .tag = 1,
                               .flags = TRP_TYPE_VARIABLE };
static trp_type *const test_types[] = { &stay_type, &bound_type };
static const trp_protocol test_protocol = { "reliable-test", test_types, 2 };

/* CONTRIB-32, CONTRIB-33: a message that cannot be sent is a dead letter, and later ones arrive */
static void
it_passes_over_what_cannot_travel_and_ends_with_its_target(void)
{
    enum { FRAME = 32768, HEAD = 24 + 35 }; /* of a frame's body: USER, parcel */
    static char bytes[FRAME];
    trpi_remote_options options = { .frame_bytes_max = FRAME };
    trp_ref proxy = proxy_begin(&options, false);

    UNIT_REQUIRE(trp_protocol_register(&test_protocol) == TRP_OK);
    UNIT_REQUIRE(trp_serializer_bind(p.system[0], "reliable-test.bound", "none") == TRP_OK);
    tell_number(proxy, 1);
    trp_system_tell(p.system[0], proxy, &stay_type, bytes, 1);
    trp_system_tell(p.system[0], proxy, &bound_type, bytes, 1);
    tell_number(proxy, 2);
    trp_system_tell(p.system[0], proxy, &trp_bytes_type, bytes, FRAME - HEAD + 1);
    trp_ref made_up = { 99999, 1, 1, 0 };
    trp_actor_identity identity = { 1, made_up }; /* an unknown node */
    trp_system_tell(p.system[0], proxy, &trp_actor_identity_type, &identity, sizeof identity);
    trp_system_tell_as(p.system[0], proxy, made_up, &trp_bytes_type, bytes, 1);
    tell_number(proxy, 3);
    UNIT_WAIT(atomic_load(&expected) == 4, 60000);
    UNIT_EQUAL(atomic_load(&text_bytes), -1);
    UNIT_WAIT(dead_count(TRP_DEAD_TOO_LARGE) >= 1, 60000);
    UNIT_WAIT(dead_count(TRP_DEAD_NOT_ENCODABLE) >= 4, 60000);
    trp_system_tell(p.system[0], proxy, &trp_bytes_type, bytes, FRAME - HEAD); /* just fits */
    UNIT_WAIT(atomic_load(&text_bytes) == FRAME - HEAD, 60000);
    UNIT_EQUAL(atomic_load(&wrong), 0);
    UNIT_WAIT(atomic_load(&answered) == 3, 60000); /* by the teller's own ref */

    trp_actor_identity watch_this = { 0, proxy };
    trp_ref target = TRP_REF_NONE;
    trp_system_tell(p.system[0], teller, &trp_actor_identity_type, &watch_this, sizeof watch_this);
    UNIT_REQUIRE(trp_system_resolve(p.system[1], "/user/taker", 60000, &target) == TRP_OK);
    trp_system_stop_actor(p.system[1], target);
    UNIT_WAIT(atomic_load(&ended) == 1, 60000);
    pair_end(&p);
}

/* CONTRIB-33: The target's node ends, and another incarnation has one of that name: it gets what
 * was kept. */
static void
a_new_target_gets_what_was_kept(void)
{
    trpi_remote_options options = { .backoff_min_ms = 1, .backoff_max_ms = 10 };
    trp_ref proxy = proxy_begin(&options, true);

    tell_number(proxy, 1);
    UNIT_WAIT(atomic_load(&idles) == 1, 60000);
    uint16_t port = trpi_remote_address(p.remote[1])->port;
    pair_end_side(&p, 1);
    tell_number(proxy, 2);
    p.system[1] = pair_system("right");
    pair_remote(&p, 1, &options, port);
    pair_spawn(p.system[1], &taker, "taker", NULL, NULL, 0);
    tell_number(proxy, 3);
    UNIT_WAIT(atomic_load(&expected) == 4, 60000);
    UNIT_WAIT(atomic_load(&idles) >= 2, 60000);
    UNIT_EQUAL(atomic_load(&wrong), 0);
    pair_end(&p);
}

UNIT_BEGIN("reliable")
UNIT(nothing_is_lost_when_connections_break_and_are_full)
UNIT(it_passes_over_what_cannot_travel_and_ends_with_its_target)
UNIT(a_new_target_gets_what_was_kept)
UNIT_END

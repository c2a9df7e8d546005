/* flush_test.c - remoting stops: messages that were told before arrive, or become dead letters in
 * time. */
#include "remote/association/context.h"
#include "tests/unit/remote/pair.h"

enum { TELLS = 5000, BURST = 20000, LONG_MS = 60000, SHORT_MS = 200 };

static _Atomic int64_t counted, disorder;
static atomic_bool burst_over;
static pair p;

static trp_err
count_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t *last = state, value;
    (void)ctx;
    memcpy(&value, trp_msg_payload(msg), sizeof value);
    atomic_fetch_add(&disorder, value <= *last ? 1 : 0);
    *last = value;
    atomic_fetch_add(&counted, 1);
    return TRP_OK;
}
static const trp_behaviour counter = TRP_BEHAVIOUR_INIT("counter", int64_t, count_receive);

/* Tells all at once: far more than the lane has below its high-water mark. */
static trp_err
burst_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_ref to;
    (void)state;
    memcpy(&to, trp_msg_payload(msg), sizeof to);
    for (int64_t i = 1; i <= BURST; i++) {
        trp_tell(ctx, to, &trp_i64_type, &i, sizeof i);
    }
    atomic_store(&burst_over, true);
    return TRP_OK;
}
static const trp_behaviour burst = TRP_BEHAVIOUR_INIT("burst", char, burst_receive);

/* A counter on the right as the left names it, without a handshake. */
static trp_ref
systems_start(bool mem, const trpi_remote_options *options)
{
    atomic_store(&counted, 0);
    atomic_store(&disorder, 0);
    pair_start(&p, mem, options);
    return pair_abroad(&p, pair_spawn(p.system[1], &counter, "counter", NULL, NULL, 0));
}

static void
tell_all(trp_ref to)
{
    for (int64_t i = 1; i <= TELLS; i++) {
        trp_system_tell(p.system[0], to, &trp_i64_type, &i, sizeof i);
    }
}

static uint64_t
now_ms(void)
{
    return trpi_remote_now_ms(p.remote[1]);
}

/* Stop as a node does. Returns how many messages were dead letters; all had this reason. */
static uint64_t
stop_left(trp_dead_reason reason)
{
    trp_system_stats stats = { .size = sizeof stats };
    uint64_t dead = 0;
    UNIT_EQUAL(trp_system_stop(p.system[0], 60000), TRP_OK);
    trpi_remote_stop(p.remote[0]);
    p.remote[0] = NULL;
    trp_system_stats_get(p.system[0], &stats);
    for (int i = 0; i < TRP_DEAD_REASON_COUNT; i++) {
        dead += stats.dead_letters[i];
    }
    UNIT_EQUAL(dead, stats.dead_letters[reason]);
    return dead;
}

/* The right has all but those that were dead, in order, and has seen an end and no error. */
static void
expect_all(int64_t count, uint64_t dead)
{
    UNIT_WAIT(atomic_load(&counted) == count - (int64_t)dead, 60000);
    UNIT_EQUAL(atomic_load(&disorder), 0);
    UNIT_WAIT(pair_logged("association ended peer="), 60000);
    UNIT_WAIT(pair_logged("peer said goodbye"), 60000);
    UNIT_TRUE(dead > 0 || !pair_logged("messages were not sent before remoting stopped"));
}

static void
stop_at_once(bool mem)
{
    trp_msg *reply = NULL;
    trpi_remote_options options = { .flush_on_shutdown_ms = LONG_MS };
    trp_ref to = systems_start(mem, &options);
    trp_ref echo = pair_abroad(&p, pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0));
    UNIT_EQUAL(trp_system_ask(p.system[0], echo, &trp_string_type, "?", 1, 60000, &reply), TRP_OK);
    trp_msg_free(reply);
    UNIT_TEXT(pair_state(&p, 0), "active");
    tell_all(to);
    UNIT_EQUAL(stop_left(TRP_DEAD_NOT_CONNECTED), 0);
    expect_all(TELLS, 0);
    UNIT_FALSE(pair_logged("association gated"));
    pair_end(&p);
}

/* REMOTE-45 REMOTE-46 */
static void
what_was_told_before_the_stop_arrives_over_tcp(void)
{
    stop_at_once(false);
}

/* REMOTE-46 */
static void
what_was_told_before_the_stop_arrives_over_memory(void)
{
    stop_at_once(true);
}

/* REMOTE-46: A proxy that is held, because its lane is above the mark, has mail of its own. */
static void
what_a_held_proxy_has_goes_before_the_goodbye(void)
{
    trpi_remote_options options = { .flush_on_shutdown_ms = LONG_MS, .lane_bytes_max = 262144 };
    trp_ref to = systems_start(false, &options);
    trp_ref from = pair_spawn(p.system[0], &burst, "burst", NULL, NULL, 0);
    trp_system_tell(p.system[0], from, &trp_bytes_type, &to, sizeof to);
    UNIT_WAIT(atomic_load(&burst_over), 60000);
    uint64_t dead = stop_left(TRP_DEAD_LANE_FULL);
    UNIT_TRUE(dead < BURST);
    expect_all(BURST, dead);
    pair_end(&p);
}

static void *
stop_thread(void *arg)
{
    (void)arg;
    UNIT_EQUAL(stop_left(TRP_DEAD_NOT_CONNECTED), 0);
    return NULL;
}

/* REMOTE-46: The peer shakes hands only when remoting stops already. */
static void
a_peer_that_still_shakes_hands_gets_what_was_told(void)
{
    trpi_remote_options options = { .flush_on_shutdown_ms = LONG_MS };
    trp_ref to = systems_start(true, &options);
    trpi_remote *left = p.remote[0];
    pthread_t thread;
    trpi_mem_network_thread_stop(p.network); /* nothing is delivered now */
    tell_all(to);
    UNIT_WAIT(strcmp(pair_state(&p, 0), "handshaking") == 0, 60000);
    UNIT_REQUIRE(pthread_create(&thread, NULL, stop_thread, NULL) == 0);
    UNIT_WAIT(atomic_load(&left->stopping), 60000);
    UNIT_REQUIRE(trpi_mem_network_thread_start(p.network) == TRP_OK);
    pthread_join(thread, NULL);
    expect_all(TELLS, 0);
    pair_end(&p);
}

static void
a_peer_not_met_before_gets_what_was_told_over_tcp(void)
{
    trpi_remote_options options = { .flush_on_shutdown_ms = LONG_MS };
    tell_all(systems_start(false, &options));
    UNIT_EQUAL(stop_left(TRP_DEAD_NOT_CONNECTED), 0);
    expect_all(TELLS, 0);
    pair_end(&p);
}

static void
gate_left(trp_ref to)
{
    trpi_mem_network_fault_set(p.network, pair_cut_all, NULL);
    tell_all(to);
    UNIT_WAIT(strcmp(pair_state(&p, 0), "gated") == 0, 60000);
}

/* REMOTE-46 */
static void
a_gated_peer_that_is_back_gets_what_was_told(void)
{
    trpi_remote_options options = { .flush_on_shutdown_ms = LONG_MS, .backoff_min_ms = 200 };
    gate_left(systems_start(true, &options));
    trpi_mem_network_fault_set(p.network, NULL, NULL);
    /* an attempt that began before does not count as the stop's one attempt */
    UNIT_WAIT(strcmp(pair_state(&p, 0), "handshaking") != 0, 60000);
    UNIT_EQUAL(stop_left(TRP_DEAD_NOT_CONNECTED), 0);
    expect_all(TELLS, 0);
    pair_end(&p);
}

static void
expect_dead(uint64_t before_ms, uint64_t most_ms)
{
    char line[64];
    UNIT_EQUAL(stop_left(TRP_DEAD_NOT_CONNECTED), TELLS);
    UNIT_TRUE(now_ms() - before_ms < most_ms);
    UNIT_EQUAL(atomic_load(&counted), 0);
    (void)snprintf(line, sizeof line, "before remoting stopped messages=%d ", TELLS);
    UNIT_WAIT(pair_logged(line), 60000);
    trpi_mem_network_fault_set(p.network, NULL, NULL);
    pair_end(&p);
}

/* One more attempt, then the stop does not wait for it any more. */
static void
a_gated_peer_that_is_not_back_costs_dead_letters_at_once(void)
{
    trpi_remote_options options = { .flush_on_shutdown_ms = 2 * LONG_MS, .backoff_min_ms = 50 };
    gate_left(systems_start(true, &options));
    expect_dead(now_ms(), LONG_MS);
}

/* It never answers: the wait ends with flush-wait-on-shutdown. */
static void
an_unreachable_peer_costs_dead_letters_within_the_flush_wait(void)
{
    trpi_remote_options options = { .flush_on_shutdown_ms = SHORT_MS,
                                    .handshake_timeout_ms = 2 * LONG_MS };
    trp_ref to = systems_start(true, &options);
    trpi_mem_network_fault_set(p.network, pair_drop_all, NULL);
    tell_all(to);
    uint64_t before_ms = now_ms();
    expect_dead(before_ms, LONG_MS);
}

UNIT_BEGIN("remote_flush")
UNIT(what_was_told_before_the_stop_arrives_over_tcp)
UNIT(what_was_told_before_the_stop_arrives_over_memory)
UNIT(what_a_held_proxy_has_goes_before_the_goodbye)
UNIT(a_peer_that_still_shakes_hands_gets_what_was_told)
UNIT(a_peer_not_met_before_gets_what_was_told_over_tcp)
UNIT(a_gated_peer_that_is_back_gets_what_was_told)
UNIT(a_gated_peer_that_is_not_back_costs_dead_letters_at_once)
UNIT(an_unreachable_peer_costs_dead_letters_within_the_flush_wait)
UNIT_END

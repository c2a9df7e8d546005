/* Singletons on one node: options and refusals, frames, work through a proxy, hand-over data. */
#include "tests/unit/cluster/host.h"

#include <troupe/singleton.h>

#include "base/pack.h"
#include "cluster/singleton/registry.h"

static _Atomic int handled;

static trp_err
echo_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    atomic_fetch_add(&handled, 1);
    trp_reply(ctx, trp_msg_type(msg), trp_msg_payload(msg), trp_msg_bytes(msg));
    return TRP_OK;
}

static const trp_behaviour echo = {
    .size = sizeof(trp_behaviour), .name = "echo", .version = 1, .receive = echo_receive
};

static trp_err
start_named(trp_system *system, const char *name, uint32_t take_over_retries)
{
    trp_singleton_options options = TRP_SINGLETON_OPTIONS_INIT;
    trp_ref manager;
    options.name = name;
    options.behaviour = &echo;
    options.take_over_retries = take_over_retries;
    return trp_singleton_start(system, &options, &manager);
}

/* CONTRIB-03, ROLES-05; each limit at it and one past it */
static void
options_out_of_range_and_nodes_without_the_role_are_refused(void)
{
    static struct host h;
    char name[TRP_SINGLETON_NAME_BYTES_MAX + 2];
    trp_singleton_options options = TRP_SINGLETON_OPTIONS_INIT;
    trp_singleton_proxy_options proxy = TRP_SINGLETON_PROXY_OPTIONS_INIT;
    trp_ref ref;
    host_start(&h, NULL);
    memset(name, 'a', sizeof name);
    name[TRP_SINGLETON_NAME_BYTES_MAX + 1] = '\0';
    UNIT_EQUAL(start_named(h.system, name, 0), TRP_EINVAL);
    name[TRP_SINGLETON_NAME_BYTES_MAX] = '\0';
    UNIT_EQUAL(start_named(h.system, name, 0), TRP_OK);
    UNIT_EQUAL(start_named(h.system, name, 0), TRP_EEXIST);
    UNIT_EQUAL(start_named(h.system, "", 0), TRP_EINVAL);
    UNIT_EQUAL(start_named(h.system, NULL, 0), TRP_EINVAL);
    UNIT_EQUAL(start_named(h.system, "b", TRP_SINGLETON_HAND_OVER_RETRIES_DEFAULT), TRP_EINVAL);
    UNIT_EQUAL(start_named(h.system, "b", TRP_SINGLETON_HAND_OVER_RETRIES_DEFAULT - 1), TRP_OK);
    UNIT_EQUAL(trp_singleton_start(h.system, NULL, &ref), TRP_EINVAL);
    options.name = "c";
    UNIT_EQUAL(trp_singleton_start(h.system, &options, &ref), TRP_EINVAL);
    options.behaviour = &echo;
    options.role = "work";
    UNIT_EQUAL(trp_singleton_start(h.system, &options, &ref), TRP_EROLE);
    options.role = "worker";
    options.persistent = 1;
    UNIT_EQUAL(trp_singleton_start(h.system, &options, &ref), TRP_ESTATE);
    options.persistent = 0;
    options.backoff_min_ms = TRP_SINGLETON_DELAY_MS_MAX + 1;
    UNIT_EQUAL(trp_singleton_start(h.system, &options, &ref), TRP_EINVAL);
    options.backoff_min_ms = TRP_SINGLETON_DELAY_MS_MAX;
    options.backoff_max_ms = TRP_SINGLETON_DELAY_MS_MAX - 1;
    UNIT_EQUAL(trp_singleton_start(h.system, &options, &ref), TRP_EINVAL);
    options.backoff_max_ms = TRP_SINGLETON_DELAY_MS_MAX;
    UNIT_EQUAL(trp_singleton_start(h.system, &options, &ref), TRP_OK);
    proxy.name = "c";
    proxy.msgs_max = TRP_SINGLETON_PROXY_MSGS_MAX + 1;
    UNIT_EQUAL(trp_singleton_proxy(h.system, &proxy, &ref), TRP_EINVAL);
    proxy.msgs_max = TRP_SINGLETON_PROXY_MSGS_MAX;
    UNIT_EQUAL(trp_singleton_proxy(h.system, &proxy, &ref), TRP_OK);
    host_end(&h);
}

/* CONTRIB-09: what waits is bounded; what falls out is a dead letter with its reason */
static void
a_proxy_keeps_a_bounded_number_until_the_singleton_runs(void)
{
    static struct host h;
    trp_singleton_proxy_options options = TRP_SINGLETON_PROXY_OPTIONS_INIT;
    trp_system_stats stats = { .size = sizeof stats };
    trp_member self = { .status = 0 };
    trp_msg *reply = NULL;
    trp_ref proxy;
    atomic_store(&handled, 0);
    host_start(&h, NULL);
    options.name = "echo";
    options.msgs_max = 3;
    UNIT_EQUAL(trp_singleton_proxy(h.system, &options, &proxy), TRP_OK);
    for (int i = 0; i < 4; i++) {
        trp_system_tell(h.system, proxy, &trp_string_type, "x", 1);
    }
    UNIT_WAIT(
        (trp_system_stats_get(h.system, &stats), stats.dead_letters[TRP_DEAD_MAILBOX_FULL] == 1),
        60000);
    UNIT_EQUAL(start_named(h.system, "echo", 0), TRP_OK);
    const char *own = h.address;
    UNIT_EQUAL(trp_cluster_join(h.system, &own, 1), TRP_OK);
    UNIT_WAIT(trp_cluster_self(h.system, &self) == TRP_OK && self.status == TRP_MEMBER_UP, 60000);
    UNIT_WAIT(atomic_load(&handled) == 3, 60000);
    UNIT_EQUAL(trp_system_ask(h.system, proxy, &trp_string_type, "y", 1, 60000, &reply), TRP_OK);
    trp_msg_free(reply);
    UNIT_EQUAL(atomic_load(&handled), 4);
    host_end(&h);
}

/* ---- a singleton that fails ------------------------------------------------------------------ */

static _Atomic int ends;
static _Atomic uint64_t first_ms, last_ms;

static trp_err
failing_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_i64_type)) { /* the end message */
        atomic_fetch_add(&ends, 1);
        trp_stop(ctx, trp_self(ctx));
        return TRP_OK;
    }
    if (atomic_fetch_add(&handled, 1) == 0) {
        atomic_store(&first_ms, trp_now_ms(ctx));
    }
    atomic_store(&last_ms, trp_now_ms(ctx));
    trp_fail(ctx, 1, "at each message");
}

static const trp_behaviour failing = {
    .size = sizeof(trp_behaviour), .name = "failing", .version = 1, .receive = failing_receive
};

static void
failing_start(struct host *h, const char *seed, uint32_t backoff_min_ms, uint32_t msgs)
{
    trp_singleton_options options = TRP_SINGLETON_OPTIONS_INIT;
    trp_singleton_proxy_options to = TRP_SINGLETON_PROXY_OPTIONS_INIT;
    static const int64_t end = 1;
    trp_member self = { .status = 0 };
    /* Exiting lasts until it has stopped, as in a node */
    trpi_cluster_options cluster = { .member.exiting_waits = true };
    trp_ref manager, proxy;
    host_open(h);
    host_join(h, NULL, cluster);
    options.name = to.name = "failing";
    options.behaviour = &failing;
    options.end_type = &trp_i64_type;
    options.end = &end;
    options.backoff_min_ms = backoff_min_ms;
    UNIT_EQUAL(trp_singleton_start(h->system, &options, &manager), TRP_OK);
    UNIT_EQUAL(trp_singleton_proxy(h->system, &to, &proxy), TRP_OK);
    seed = seed == NULL ? h->address : seed;
    UNIT_EQUAL(trp_cluster_join(h->system, &seed, 1), TRP_OK);
    UNIT_WAIT(trp_cluster_self(h->system, &self) == TRP_OK && self.status == TRP_MEMBER_UP, 60000);
    for (uint32_t i = 0; i < msgs; i++) {
        trp_system_tell(h->system, proxy, &trp_string_type, "x", 1);
    }
}

/* CONTRIB-01, SUP-7: pauses of 200 and 400 ms between three messages, and none is lost */
static void
a_singleton_that_fails_at_each_message_is_restarted_with_a_back_off(void)
{
    static struct host h;
    trp_system_stats stats = { .size = sizeof stats };
    atomic_store(&handled, 0);
    failing_start(&h, NULL, 0, 3);
    UNIT_WAIT(atomic_load(&handled) == 3, 60000);
    UNIT_TRUE(atomic_load(&last_ms) - atomic_load(&first_ms) >= 600);
    trp_system_stats_get(h.system, &stats);
    UNIT_EQUAL(stats.dead_letters[TRP_DEAD_STOPPED], 0);
    host_end(&h);
}

/* CONTRIB-01, -05: the end message does not wait for the end of a pause of an hour */
static void
a_hand_over_does_not_wait_for_a_failed_singleton(void)
{
    static struct host a, b;
    atomic_store(&handled, 0);
    atomic_store(&ends, 0);
    failing_start(&a, NULL, 3600000, 1);
    UNIT_WAIT(atomic_load(&handled) == 1, 60000);
    failing_start(&b, a.address, 3600000, 0);
    UNIT_EQUAL(trp_cluster_leave(a.system, a.address), TRP_OK);
    UNIT_WAIT(atomic_load(&ends) == 1, 60000);
    host_end(&a);
    host_end(&b);
}

static void
a_frame_is_read_as_it_was_written_and_no_other_is(void)
{
    uint8_t data[] = { 1, 2, 3 };
    singleton_frame frame = { .word = SINGLETON_HERE,
                              .name = "consumer",
                              .round = UINT64_MAX,
                              .slot = 7,
                              .generation = UINT32_MAX,
                              .data = data,
                              .data_bytes = sizeof data };
    singleton_frame read = { .word = 0 };
    trpi_buffer bytes = { NULL, 0, 0 };
    trpi_pack_doc *doc = NULL;
    UNIT_REQUIRE(singleton_frame_encode(&frame, &bytes) == TRP_OK);
    UNIT_REQUIRE(singleton_frame_decode(bytes.data, bytes.count, &read, &doc) == TRP_OK);
    UNIT_EQUAL(read.word, SINGLETON_HERE);
    UNIT_TEXT(read.name, "consumer");
    UNIT_TRUE(read.round == UINT64_MAX && read.slot == 7 && read.generation == UINT32_MAX);
    UNIT_TRUE(read.data_bytes == sizeof data && memcmp(read.data, data, sizeof data) == 0);
    trpi_pack_doc_free(doc);
    for (size_t i = 0; i < bytes.count; i++) {
        UNIT_TRUE(singleton_frame_decode(bytes.data, i, &read, &doc) != TRP_OK);
    }
    trpi_buffer_fini(&bytes);
}

UNIT_BEGIN("singleton")
UNIT(options_out_of_range_and_nodes_without_the_role_are_refused)
UNIT(a_proxy_keeps_a_bounded_number_until_the_singleton_runs)
UNIT(a_singleton_that_fails_at_each_message_is_restarted_with_a_back_off)
UNIT(a_hand_over_does_not_wait_for_a_failed_singleton)
UNIT(a_frame_is_read_as_it_was_written_and_no_other_is)
UNIT_END

/* remote_test.c - two systems talk: tell, ask, Identify, selections, watch, loss, reconnect,
 * quarantine. */
#include "remote/wire/frame.h"
#include "remote/association/context.h"
#include "remote/nng/link_nng.h"
#include "tests/unit/remote/answers.h"
#include "tests/unit/remote/pair.h"

static pair p;
static char path_buffer[TRP_PATH_BYTES_MAX];

#define RIGHT(path) pair_path(&p, 1, (path), path_buffer, sizeof path_buffer)

static void
ask_echo(void)
{
    trp_msg *reply = NULL;
    trp_err err = trp_system_ask_path(p.system[0], RIGHT("/user/echo"), &trp_string_type, "hello",
                                      5, 60000, &reply);
    UNIT_EQUAL(err, TRP_OK);
    if (err == TRP_OK) {
        UNIT_EQUAL(trp_msg_bytes(reply), 5);
        UNIT_TRUE(memcmp(trp_msg_payload(reply), "hello", 5) == 0);
        UNIT_TRUE(trp_msg_is(reply, &trp_string_type));
    }
    trp_msg_free(reply);
}

/* REMOTE-07 REMOTE-11 SYS-25 SYS-26, REMOTE-01, REMOTE-04, REMOTE-06, REMOTE-31,
 * LookupRemoteActorSpec */
static void
a_path_on_another_system_answers_over_tcp(void)
{
    pair_start(&p, false, NULL);
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    ask_echo();
    ask_echo();
    UNIT_TEXT(pair_state(&p, 0), "active");
    /* REMOTE-31: the other side's answers come on connections that this one has dialled */
    trpi_remote_stats stats;
    trpi_remote_stats_get(p.remote[1], &stats);
    UNIT_TRUE(stats.accepted >= 1);
    trpi_remote_stats_get(p.remote[0], &stats);
    UNIT_EQUAL(stats.accepted, 0);
    UNIT_WAIT(pair_logged("association active"), 60000);
    pair_end(&p);
}

static void
a_path_on_another_system_answers_over_memory(void)
{
    pair_start(&p, true, NULL);
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    ask_echo();
    pair_end(&p);
}

/* REMOTE-07 */
static void
a_path_that_names_nobody_is_found_missing(void)
{
    pair_start(&p, false, NULL);
    trp_ref ref = TRP_REF_NONE;
    UNIT_EQUAL(trp_system_resolve(p.system[0], RIGHT("/user/nobody"), 60000, &ref), TRP_ENOENT);
    pair_end(&p);
}

/* ---- counting -------------------------------------------------------------------------------- */

static _Atomic uint64_t counted;
static _Atomic uint64_t disorder;
static trp_ref counted_first; /* sender of the first; read after counted */

static trp_err
count_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t *last = state;
    int64_t value;
    if (atomic_load(&counted) == 0) {
        counted_first = trp_sender(ctx);
    }
    if (trp_msg_is(msg, &trp_i64_type)) {
        memcpy(&value, trp_msg_payload(msg), sizeof value);
        if (value <= *last && *last != 0) {
            atomic_fetch_add(&disorder, 1);
        }
        *last = value;
    }
    atomic_fetch_add(&counted, 1);
    return TRP_OK;
}
static const trp_behaviour counter = TRP_BEHAVIOUR_INIT("counter", int64_t, count_receive);

/* Tells its argument's number of messages to the sender of "go". */
typedef struct burst_state {
    trp_ref to;
} burst_state;
static _Atomic int64_t burst_next;
static trp_err
burst_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_ref to;
    memcpy(&to, trp_msg_payload(msg), sizeof to);
    for (int i = 0; i < 500; i++) {
        int64_t value = atomic_fetch_add(&burst_next, 1) + 1;
        trp_tell(ctx, to, &trp_i64_type, &value, sizeof value);
    }
    return TRP_OK;
}
static const trp_behaviour burst = TRP_BEHAVIOUR_INIT("burst", burst_state, burst_receive);

static trp_ref
resolve_right(const char *path)
{
    trp_ref ref = TRP_REF_NONE;
    UNIT_EQUAL(trp_system_resolve(p.system[0], RIGHT(path), 60000, &ref), TRP_OK);
    return ref;
}

/* REMOTE-14, MSG-11, HEADLINE-12 */
static void
messages_keep_their_order_and_none_is_lost(void)
{
    enum { BURSTS = 100 };
    pair_start(&p, false, NULL);
    atomic_store(&counted, 0);
    atomic_store(&disorder, 0);
    atomic_store(&burst_next, 0);
    pair_spawn(p.system[1], &counter, "counter", NULL, NULL, 0);
    trp_ref to = resolve_right("/user/counter");
    trp_ref from = pair_spawn(p.system[0], &burst, "burst", NULL, NULL, 0);
    for (int i = 0; i < BURSTS; i++) {
        trp_system_tell(p.system[0], from, &trp_bytes_type, &to, sizeof to);
    }
    UNIT_WAIT(atomic_load(&counted) == 500 * BURSTS, 60000);
    UNIT_EQUAL(atomic_load(&disorder), 0);
    pair_end(&p);
}

/* REMOTE-08 */
static void
a_selection_with_wildcards_reaches_all_that_match(void)
{
    pair_start(&p, false, NULL);
    atomic_store(&counted, 0);
    pair_spawn(p.system[1], &counter, "c-1", NULL, NULL, 0);
    pair_spawn(p.system[1], &counter, "c-2", NULL, NULL, 0);
    pair_spawn(p.system[1], &counter, "other", NULL, NULL, 0);
    UNIT_EQUAL(trp_system_select_tell(p.system[0], RIGHT("/user/c-*"), &trp_string_type, "x", 1),
               TRP_OK);
    UNIT_WAIT(atomic_load(&counted) == 2, 60000);
    pair_end(&p);
}

/* ---- watching -------------------------------------------------------------------------------- */

static _Atomic uint32_t ended;
static _Atomic uint32_t ended_address;
static _Atomic uint32_t ended_confirmed;

static _Atomic int watching; /* watches that were sent */
static trp_err
watcher_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_terminated_type)) {
        const trp_terminated *what = trp_msg_payload(msg);
        atomic_fetch_add(&ended_address, what->address_terminated);
        atomic_fetch_add(&ended_confirmed, what->existence_confirmed);
        atomic_fetch_add(&ended, 1);
        return TRP_OK;
    }
    trp_ref ref;
    memcpy(&ref, trp_msg_payload(msg), sizeof ref);
    trp_err err = trp_watch(ctx, ref);
    atomic_fetch_add(&watching, 1);
    return err;
}
static const trp_behaviour watcher = TRP_BEHAVIOUR_INIT("watcher", char, watcher_receive);

static void
watch_right(trp_ref ref)
{
    atomic_store(&ended, 0);
    atomic_store(&ended_address, 0);
    atomic_store(&ended_confirmed, 0);
    atomic_store(&watching, 0);
    trp_ref who = pair_spawn(p.system[0], &watcher, NULL, NULL, NULL, 0);
    trp_system_tell(p.system[0], who, &trp_bytes_type, &ref, sizeof ref);
}

/* REMOTE-25 WATCH-1 */
static void
a_watcher_is_told_once_when_a_remote_actor_stops(void)
{
    pair_start(&p, false, NULL);
    (void)pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    trp_ref echo = resolve_right("/user/echo");
    watch_right(echo);
    UNIT_WAIT(atomic_load(&watching) == 1, 60000);
    UNIT_TRUE(trpi_node_is_watched(p.system[0], echo.node));
    trp_system_stop_actor(p.system[0], echo); /* a signal, too: behind the watch */
    UNIT_WAIT(atomic_load(&ended) == 1, 60000);
    UNIT_EQUAL(atomic_load(&ended_address), 0);
    UNIT_EQUAL(atomic_load(&ended_confirmed), 1);
    pair_end(&p);
    UNIT_EQUAL(atomic_load(&ended), 1);
}

/* REMOTE-26 */
static void
watching_a_remote_actor_that_has_ended_is_answered(void)
{
    pair_start(&p, false, NULL);
    trp_ref echo = pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    trp_ref ref = resolve_right("/user/echo");
    UNIT_EQUAL(trp_system_graceful_stop(p.system[1], echo, 60000), TRP_OK);
    watch_right(ref);
    UNIT_WAIT(atomic_load(&ended) == 1, 60000);
    UNIT_EQUAL(atomic_load(&ended_confirmed), 0);
    pair_end(&p);
}

/* Watches all of the refs in one message. */
static trp_err
watcher_of_many_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    if (trp_msg_is(msg, &trp_terminated_type)) {
        return watcher_receive(ctx, state, msg);
    }
    for (size_t at = 0; at + sizeof(trp_ref) <= trp_msg_bytes(msg); at += sizeof(trp_ref)) {
        trp_ref ref;
        memcpy(&ref, (const char *)trp_msg_payload(msg) + at, sizeof ref);
        trp_err err = trp_watch(ctx, ref);
        if (err != TRP_OK) {
            return err;
        }
    }
    return TRP_OK;
}
static const trp_behaviour watcher_of_many =
    TRP_BEHAVIOUR_INIT("watcher-of-many", char, watcher_of_many_receive);

/* REMOTE-26, FD-22: another incarnation has the address now, and several had it before */
static void
watches_of_several_earlier_incarnations_are_all_answered(void)
{
    enum { EARLIER = 5 };
    trp_ref refs[EARLIER];
    pair_start(&p, false, NULL);
    atomic_store(&ended, 0);
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    trp_ref now = resolve_right("/user/echo");
    for (uint32_t i = 0; i < EARLIER; i++) {
        trpi_node_id id = { *trpi_remote_address(p.remote[1]), 1000 + i };
        refs[i] = now;
        UNIT_REQUIRE(trpi_node_intern(p.system[0], &id, &refs[i].node) == TRP_OK);
    }
    trp_ref who = pair_spawn(p.system[0], &watcher_of_many, NULL, NULL, NULL, 0);
    trp_system_tell(p.system[0], who, &trp_bytes_type, refs, sizeof refs);
    UNIT_WAIT(atomic_load(&ended) == EARLIER, 60000);
    ask_echo();
    pair_end(&p);
}

/* Tells the counter, whose ref it is told, in the names of actors of so many third nodes. */
static trp_err
introducer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_ref to, third = { 0, 7, 1, 0 };
    (void)state;
    memcpy(&to, trp_msg_payload(msg), sizeof to);
    for (uint32_t i = 0; i <= TRPI_HOST_NODES_MAX; i++) {
        trpi_node_id id = { *trpi_remote_address(p.remote[1]), 1000 + i };
        int64_t value = (int64_t)i + 1;
        UNIT_REQUIRE(trpi_node_intern(trp_ctx_system(ctx), &id, &third.node) == TRP_OK);
        trp_tell_as(ctx, to, third, &trp_i64_type, &value, sizeof value);
    }
    trp_tell_as(ctx, to, third, &trp_string_type, "end", 3); /* unknown as before */
    trp_tell(ctx, to, &trp_string_type, "end", 3);
    return TRP_OK;
}
static const trp_behaviour introducer = TRP_BEHAVIOUR_INIT("introducer", char, introducer_receive);

/* TRPI_HOST_NODES_MAX third nodes may be named by one peer; with one more the first one that it
 * named is forgotten */
static void
a_peer_introduces_so_many_nodes_and_with_one_more_the_first_is_over(void)
{
    trp_ref to = TRP_REF_NONE;
    char path[TRP_PATH_BYTES_MAX];
    pair_start(&p, true, NULL);
    atomic_store(&counted, 0);
    atomic_store(&disorder, 0);
    pair_spawn(p.system[0], &counter, "counter", NULL, NULL, 0);
    UNIT_EQUAL(trp_system_resolve(p.system[1], pair_path(&p, 0, "/user/counter", path, sizeof path),
                                  60000, &to),
               TRP_OK);
    trp_ref who = pair_spawn(p.system[1], &introducer, NULL, NULL, NULL, 0);
    trp_system_tell(p.system[1], who, &trp_bytes_type, &to, sizeof to);
    UNIT_WAIT(atomic_load(&counted) == TRPI_HOST_NODES_MAX + 3, 60000); /* and the last words */
    UNIT_EQUAL(atomic_load(&disorder), 0);
    UNIT_FALSE(pair_logged("cannot be read"));
    trpi_node_id id = { *trpi_remote_address(p.remote[1]), 1000 };
    trp_ref first = counted_first;
    UNIT_EQUAL(first.slot, 7);
    UNIT_EQUAL(trpi_node_find(p.system[0], &id), 0);
    id.uid++;
    UNIT_TRUE(trpi_node_find(p.system[0], &id) != 0);
    trp_system_stats stats = { .size = sizeof stats };
    trp_system_stats_get(p.system[0], &stats);
    uint64_t before = stats.dead_letters[TRP_DEAD_STALE];
    trp_system_tell(p.system[0], first, &trp_string_type, "x", 1); /* at once, and it is not sent */
    trp_system_stats_get(p.system[0], &stats);
    UNIT_EQUAL(stats.dead_letters[TRP_DEAD_STALE], before + 1);
    pair_end(&p);
    UNIT_EQUAL(atomic_load(&counted), TRPI_HOST_NODES_MAX + 3);
}

/* REMOTE-25 REMOTE-46 */
static void
a_watcher_is_told_when_the_other_system_says_goodbye(void)
{
    trpi_remote_options options = { .flush_on_shutdown_ms = 60000 }; /* as long as that takes */
    pair_start(&p, false, &options);
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    trp_ref ref = resolve_right("/user/echo");
    watch_right(ref);
    UNIT_WAIT(trpi_node_is_watched(p.system[0], ref.node), 60000);
    trpi_remote_stop(p.remote[1]);
    UNIT_WAIT(atomic_load(&ended) == 1, 60000);
    UNIT_EQUAL(atomic_load(&ended_address), 1);
    UNIT_WAIT(pair_logged("peer said goodbye"), 60000);
    UNIT_EQUAL(trp_system_stop(p.system[1], 60000), TRP_OK);
    trp_system_free(p.system[1]);
    p.system[1] = NULL;
    pair_end(&p);
}

/* FD-21 FD-22 REMOTE-25, WATCH-8, CONF-20, REMOTE-26: a peer that falls silent, without a goodbye
 */
static void
a_watcher_is_told_when_the_other_node_falls_silent(void)
{
    trpi_remote_options options = { 0 };
    options.watch_heartbeat_ms = 50;
    options.watch_pause_ms = 300;
    pair_start(&p, true, &options);
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    trp_ref ref = resolve_right("/user/echo");
    watch_right(ref);
    /* a machine that stands still may be as silent */
    UNIT_WAIT(trpi_node_is_watched(p.system[0], ref.node) || atomic_load(&ended) == 1, 60000);
    trpi_mem_network_fault_set(p.network, pair_drop_all, NULL);
    UNIT_WAIT(atomic_load(&ended) == 1, 60000);
    UNIT_EQUAL(atomic_load(&ended_address), 1);
    /* while messages wait there is an attempt now and then: another node may live there */
    UNIT_WAIT(strcmp(pair_state(&p, 0), "quarantined") == 0, 60000);
    trpi_mem_network_fault_set(p.network, NULL, NULL);
    pair_end(&p);
}

/* ---- loss and return ------------------------------------------------------------------------- */

/* REMOTE-33 REMOTE-41 */
static void
an_association_that_was_cut_comes_back_by_itself(void)
{
    pair_start(&p, true, NULL);
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    ask_echo();
    trpi_mem_network_cut(p.network, NULL, NULL);
    /* by the left, too: what it tells before it knows is lost */
    UNIT_WAIT(pair_logged("association gated peer=troupe.mem://right@"), 60000);
    ask_echo();
    UNIT_TEXT(pair_state(&p, 0), "active");
    pair_end(&p);
}

/* REMOTE-37 REMOTE-41, TransportFailSpec: a watch survives a cut; its answer too */
static void
system_messages_survive_a_cut(void)
{
    pair_start(&p, true, NULL);
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    trp_ref ref = resolve_right("/user/echo");
    watch_right(ref);
    UNIT_WAIT(trpi_node_is_watched(p.system[0], ref.node), 60000);
    for (int i = 0; i < 5; i++) {
        trpi_mem_network_cut(p.network, NULL, NULL);
    }
    /* from here, so that it stays behind the watch: one that comes too late is not confirmed */
    trp_system_stop_actor(p.system[0], ref);
    trpi_mem_network_cut(p.network, NULL, NULL);
    UNIT_WAIT(atomic_load(&ended) == 1, 60000);
    UNIT_EQUAL(atomic_load(&ended_confirmed), 1);
    pair_end(&p);
    UNIT_EQUAL(atomic_load(&ended), 1);
}

/* REMOTE-36, REMOTE-09, RemoteNodeRestartDeathWatchSpec, HandshakeRestartReceiverSpec: another
 * incarnation on the same address takes the place of the first */
static void
a_restart_on_the_same_address_is_a_new_incarnation(void)
{
    enum { RESTARTS = 8 }; /* what is told while the old connections still end must not be lost */
    trpi_remote_options options = { .flush_on_shutdown_ms = 60000 }; /* the left hears goodbye */
    pair_start(&p, false, &options);
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    trp_ref old = resolve_right("/user/echo");
    uint16_t port = trpi_remote_address(p.remote[1])->port;
    for (int i = 0; i < RESTARTS; i++) {
        uint64_t old_uid = pair_uid(&p, 1);
        pair_end_side(&p, 1);
        p.system[1] = pair_system("right");
        pair_remote(&p, 1, &options, port);
        pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
        UNIT_TRUE(pair_uid(&p, 1) != old_uid);
        trp_ref fresh = resolve_right("/user/echo");
        UNIT_FALSE(trp_ref_equal(old, fresh));
        trp_msg *reply = NULL;
        UNIT_EQUAL(trp_system_ask(p.system[0], fresh, &trp_string_type, "x", 1, 60000, &reply),
                   TRP_OK);
        trp_msg_free(reply);
        reply = NULL;
        trp_err err = trp_system_ask(p.system[0], old, &trp_string_type, "x", 1, 300, &reply);
        UNIT_TRUE(err == TRP_ENOENT || err == TRP_ETIMEDOUT);
        trp_msg_free(reply);
        old = fresh;
    }
    pair_end(&p);
}

static trp_err
unhandled_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return TRP_EUNHANDLED;
}
static const trp_behaviour unhandling = TRP_BEHAVIOUR_INIT("unhandling", char, unhandled_receive);

/* MSG-15, MSG-4: an ask that an actor elsewhere does not handle fails at once; who only told it
 * something hears nothing of it */
static void
an_ask_that_nobody_handles_elsewhere_fails_at_once(void)
{
    trpi_remote_options options = { 0 };
    pair_start(&p, false, &options);
    pair_spawn(p.system[1], &unhandling, "deaf", NULL, NULL, 0);
    trp_ref deaf = resolve_right("/user/deaf");
    trp_ref teller = pair_spawn(p.system[0], &counter, "teller", NULL, NULL, 0);
    uint64_t before = atomic_load(&counted);
    trp_msg *reply = NULL;
    trp_system_tell_as(p.system[0], deaf, teller, &trp_string_type, "x", 1);
    UNIT_EQUAL(trp_system_ask(p.system[0], deaf, &trp_string_type, "x", 1, 600000, &reply),
               TRP_EUNHANDLED);
    UNIT_TRUE(reply == NULL);
    UNIT_EQUAL(atomic_load(&counted), before);
    pair_end(&p);
}

static trp_err
ask_once(uint32_t timeout_ms)
{
    trp_msg *reply = NULL;
    trp_err err = trp_system_ask_path(p.system[0], RIGHT("/user/echo"), &trp_string_type, "x", 1,
                                      timeout_ms, &reply);
    trp_msg_free(reply);
    return err;
}

/* REMOTE-36, RemoteQuarantinePiercingSpec */
static void
a_quarantined_incarnation_is_not_talked_to_any_more(void)
{
    pair_start(&p, false, NULL);
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    trp_ref ref = resolve_right("/user/echo");
    watch_right(ref);
    UNIT_WAIT(trpi_node_is_watched(p.system[0], ref.node), 60000);
    trpi_remote_quarantine(p.remote[0], trpi_system_self(p.system[1]), "test");
    UNIT_WAIT(atomic_load(&ended) == 1, 60000);
    UNIT_EQUAL(atomic_load(&ended_address), 1);
    /* while messages wait there is an attempt now and then: another node may live there */
    UNIT_WAIT(strcmp(pair_state(&p, 0), "quarantined") == 0, 60000);
    UNIT_TRUE(ask_once(300) != TRP_OK);
    char buffer[TRP_PATH_BYTES_MAX]; /* the other direction is refused by name */
    pair_path(&p, 0, "/user/x", buffer, sizeof buffer);
    /* as among members of a cluster, which goes on asking (without one: events_test) */
    trpi_remote_watch_delegate(p.remote[1], trpi_remote_address(p.remote[0]), true);
    /* what it tells before it knows that its connection is closed is lost with that */
    UNIT_WAIT(trp_system_select_tell(p.system[1], buffer, &trp_string_type, "x", 1) == TRP_OK &&
                  pair_logged("is quarantined here"),
              60000);
    /* and knows it, of that very incarnation: membership reads it */
    trpi_node_id by = { *trpi_remote_address(p.remote[0]), pair_uid(&p, 0) };
    UNIT_WAIT(trpi_remote_is_barred_by(p.remote[1], &by), 60000);
    UNIT_TRUE(trpi_remote_barred_count(p.remote[1]) >= 1);
    UNIT_EQUAL(trpi_remote_barred_count(p.remote[0]), 0);
    by.uid++;
    UNIT_FALSE(trpi_remote_is_barred_by(p.remote[1], &by));
    by.address.port++;
    UNIT_FALSE(trpi_remote_is_barred_by(p.remote[1], &by));
    trpi_remote_hurry(p.remote[1], &by.address); /* nobody: nothing */
    by.address.port--;
    uint64_t barred = trpi_remote_barred_count(p.remote[1]);
    trpi_remote_hurry(p.remote[1], &by.address);
    UNIT_WAIT(trpi_remote_barred_count(p.remote[1]) > barred, 60000); /* without a word to say */
    pair_end(&p);
}

/* ---- control channels ------------------------------------------------------------------------ */

static _Atomic uint32_t heard;
static void
on_control(void *arg, const trpi_node_id *from, const uint8_t *bytes, size_t count,
           uint64_t arrived_ns)
{
    (void)arrived_ns;
    const trp_system *expected = arg;
    if (count == 4 && memcmp(bytes, "ping", 4) == 0 &&
        from->uid == trpi_system_self((trp_system *)(uintptr_t)expected)->uid) {
        atomic_fetch_add(&heard, 1);
    }
}

static void
control_frames_arrive_with_the_proved_identity(void)
{
    pair_start(&p, false, NULL);
    atomic_store(&heard, 0);
    trpi_remote_control_bind(p.remote[1], TRPI_CHANNEL_GOSSIP, on_control, p.system[0]);
    trpi_node_id to = { *trpi_remote_address(p.remote[1]), 0 };
    UNIT_EQUAL(trpi_remote_control_send(p.remote[0], &to, TRPI_CHANNEL_GOSSIP, "ping", 4), TRP_OK);
    UNIT_WAIT(atomic_load(&heard) == 1, 60000);
    to.uid = pair_uid(&p, 1);
    UNIT_EQUAL(trpi_remote_control_send(p.remote[0], &to, TRPI_CHANNEL_GOSSIP, "ping", 4), TRP_OK);
    UNIT_WAIT(atomic_load(&heard) == 2, 60000);
    to.uid++;
    UNIT_EQUAL(trpi_remote_control_send(p.remote[0], &to, TRPI_CHANNEL_GOSSIP, "ping", 4),
               TRP_ECLOSED);
    trpi_remote_control_bind(p.remote[1], TRPI_CHANNEL_GOSSIP, NULL, NULL);
    pair_end(&p);
    UNIT_EQUAL(atomic_load(&heard), 2);
}

static void
on_long_control(void *arg, const trpi_node_id *from, const uint8_t *bytes, size_t count,
                uint64_t arrived_ns)
{
    (void)arrived_ns;
    (void)from;
    (void)arg;
    if (bytes[0] == 1 && bytes[count - 1] == (count > 1 ? 2 : 1)) {
        atomic_fetch_add(&heard, (unsigned)count);
    }
}

/* The view of a large cluster is longer than a message; who does not take that is not sent it */
static void
a_control_frame_may_be_as_long_as_the_view_of_a_large_cluster(void)
{
    static uint8_t view[TRPI_CONTROL_FRAME_BYTES_MAX + 1] = { 1 };
    for (uint32_t minor = 2; minor <= 3; minor++) {
        size_t max = minor == 2 ? TRPI_FRAME_BYTES_DEFAULT : TRPI_CONTROL_FRAME_BYTES_MAX;
        trpi_remote_options options = { .wire_minor = minor };
        pair_start(&p, false, &options);
        atomic_store(&heard, 0);
        trpi_remote_control_bind(p.remote[1], TRPI_CHANNEL_GOSSIP, on_long_control, NULL);
        trpi_node_id to = { *trpi_remote_address(p.remote[1]), pair_uid(&p, 1) };
        UNIT_EQUAL(trpi_remote_control_send(p.remote[0], &to, TRPI_CHANNEL_GOSSIP, view, 1),
                   TRP_OK);
        UNIT_WAIT(atomic_load(&heard) == 1, 60000); /* now it is known what the peer takes */
        trpi_remote_watch_delegate(p.remote[1], trpi_remote_address(p.remote[0]), true);
        UNIT_EQUAL(trpi_remote_control_send(p.remote[0], &to, TRPI_CHANNEL_GOSSIP, view, max + 1),
                   TRP_EMSGSIZE);
        view[max - 1] = 2;
        UNIT_EQUAL(trpi_remote_control_send(p.remote[0], &to, TRPI_CHANNEL_GOSSIP, view, max),
                   TRP_OK);
        view[max - 1] = 0;
        UNIT_WAIT(atomic_load(&heard) == max + 1, 60000);
        trpi_remote_control_bind(p.remote[1], TRPI_CHANNEL_GOSSIP, NULL, NULL);
        pair_end(&p);
    }
}

/* REMOTE-32: Two dials at once end in one association that works both ways. */
static void
two_systems_that_dial_each_other_at_once_both_work(void)
{
    for (int round = 0; round < 5; round++) {
        char left[TRP_PATH_BYTES_MAX];
        pair_start(&p, false, NULL);
        pair_spawn(p.system[0], &pair_echo, "echo", NULL, NULL, 0);
        pair_spawn(p.system[1], &counter, "counter", NULL, NULL, 0);
        atomic_store(&counted, 0);
        pair_path(&p, 0, "/user/echo", left, sizeof left);
        UNIT_EQUAL(
            trp_system_select_tell(p.system[0], RIGHT("/user/counter"), &trp_string_type, "x", 1),
            TRP_OK);
        trp_msg *reply = NULL;
        UNIT_EQUAL(trp_system_ask_path(p.system[1], left, &trp_string_type, "y", 1, 60000, &reply),
                   TRP_OK);
        trp_msg_free(reply);
        UNIT_WAIT(atomic_load(&counted) == 1, 60000);
        pair_end(&p);
    }
}

/* ---- three systems ------------------------------------------------------------------------- */

static trp_ref forward_to;
static trp_err
forward_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_forward(ctx, forward_to, msg);
    return TRP_OK;
}
static const trp_behaviour forwarder = TRP_BEHAVIOUR_INIT("forwarder", char, forward_receive);

/* MSG-3 SERIAL-12: left asks right, right forwards to the third, the third answers left itself */
static void
a_third_node_answers_the_sender_of_a_forwarded_message(void)
{
    pair_start(&p, false, NULL);
    trp_system *third = pair_system("third");
    trpi_remote *remote = NULL;
    trpi_remote_options options = { .bind_port = -1, .driver = pair_drives() };
    char path[TRP_PATH_BYTES_MAX], address[TRPI_ADDRESS_TEXT_BYTES];
    UNIT_REQUIRE(trpi_remote_start(third, &options, &remote) == TRP_OK);
    (void)snprintf(path, sizeof path, "%s/user/echo",
                   trpi_address_format(trpi_remote_address(remote), address, sizeof address));
    pair_spawn(third, &pair_echo, "echo", NULL, NULL, 0);
    pair_spawn(p.system[1], &forwarder, "echo", NULL, NULL, 0);
    UNIT_EQUAL(trp_system_resolve(p.system[1], path, 60000, &forward_to), TRP_OK);
    ask_echo();
    trpi_peer_info info[4];
    size_t count = 0;
    trpi_remote_peers(p.remote[0], info, 4, &count);
    UNIT_EQUAL(count, 2); /* right, and the third, which it was never told of */
    UNIT_EQUAL(trp_system_stop(third, 60000), TRP_OK);
    trpi_remote_stop(remote);
    trp_system_free(third);
    pair_end(&p);
}

/* REMOTE-02 REMOTE-03 */
static void
a_wildcard_cannot_be_advertised_and_port_0_is_filled_in(void)
{
    trp_system *system = pair_system("one");
    trpi_remote *remote = NULL;
    trpi_remote_options options = { .driver = pair_drives(), .host = "0.0.0.0", .bind_port = -1 };
    UNIT_EQUAL(trpi_remote_start(system, &options, &remote), TRP_EINVAL);
    options.host = "::";
    UNIT_EQUAL(trpi_remote_start(system, &options, &remote), TRP_EINVAL);
    options.host = "127.0.0.1";
    options.bind_host = "0.0.0.0";
    UNIT_EQUAL(trpi_remote_start(system, &options, &remote), TRP_OK);
    UNIT_TRUE(trpi_remote_address(remote)->port != 0);
    UNIT_WAIT(pair_logged("neither encrypted nor authenticated, so any host can send messages "
                          "to actors, stop and start them, join, and end members"),
              60000);
    trp_system *second = pair_system("two");
    trpi_remote *refused = NULL;
    trpi_remote_options same = { .driver = pair_drives(),
                                 .host = "127.0.0.1",
                                 .port = trpi_remote_address(remote)->port,
                                 .bind_port = -1 };
    UNIT_EQUAL(trpi_remote_start(second, &same, &refused), TRP_EADDRINUSE);
    UNIT_EQUAL(trp_system_stop(second, 60000), TRP_OK);
    trp_system_free(second);
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trpi_remote_stop(remote);
    trp_system_free(system);
}

ANSWERS_TESTS(messages_keep_their_order_and_none_is_lost, pair_driver)
ANSWERS_TESTS(a_watcher_is_told_when_the_other_system_says_goodbye, pair_driver)
ANSWERS_TESTS(a_restart_on_the_same_address_is_a_new_incarnation, pair_driver)
ANSWERS_TESTS(a_quarantined_incarnation_is_not_talked_to_any_more, pair_driver)
ANSWERS_TESTS(two_systems_that_dial_each_other_at_once_both_work, pair_driver)

PAIR_OTHER_TEST(messages_keep_their_order_and_none_is_lost)
PAIR_OTHER_TEST(a_restart_on_the_same_address_is_a_new_incarnation)
PAIR_OTHER_TEST(a_quarantined_incarnation_is_not_talked_to_any_more)
PAIR_OTHER_TEST(two_systems_that_dial_each_other_at_once_both_work)
PAIR_OTHER_TEST(a_watcher_is_told_when_the_other_system_says_goodbye)

UNIT_BEGIN("remote")
UNIT(a_path_on_another_system_answers_over_tcp)
UNIT(a_path_on_another_system_answers_over_memory)
UNIT(a_path_that_names_nobody_is_found_missing)
UNIT(messages_keep_their_order_and_none_is_lost)
UNIT(a_selection_with_wildcards_reaches_all_that_match)
UNIT(a_watcher_is_told_once_when_a_remote_actor_stops)
UNIT(watching_a_remote_actor_that_has_ended_is_answered)
UNIT(watches_of_several_earlier_incarnations_are_all_answered)
UNIT(a_peer_introduces_so_many_nodes_and_with_one_more_the_first_is_over)
UNIT(a_watcher_is_told_when_the_other_system_says_goodbye)
UNIT(a_watcher_is_told_when_the_other_node_falls_silent)
UNIT(an_association_that_was_cut_comes_back_by_itself)
UNIT(system_messages_survive_a_cut)
UNIT(a_restart_on_the_same_address_is_a_new_incarnation)
UNIT(a_quarantined_incarnation_is_not_talked_to_any_more)
UNIT(control_frames_arrive_with_the_proved_identity)
UNIT(a_control_frame_may_be_as_long_as_the_view_of_a_large_cluster)
UNIT(an_ask_that_nobody_handles_elsewhere_fails_at_once)
UNIT(two_systems_that_dial_each_other_at_once_both_work)
UNIT(a_third_node_answers_the_sender_of_a_forwarded_message)
UNIT(a_wildcard_cannot_be_advertised_and_port_0_is_filled_in)
UNIT_ANSWERS(messages_keep_their_order_and_none_is_lost)
UNIT_ANSWERS(a_watcher_is_told_when_the_other_system_says_goodbye)
UNIT_ANSWERS(a_restart_on_the_same_address_is_a_new_incarnation)
UNIT_ANSWERS(a_quarantined_incarnation_is_not_talked_to_any_more)
UNIT_ANSWERS(two_systems_that_dial_each_other_at_once_both_work)
UNIT_PAIR_OTHER(messages_keep_their_order_and_none_is_lost)
UNIT_PAIR_OTHER(a_restart_on_the_same_address_is_a_new_incarnation)
UNIT_PAIR_OTHER(a_quarantined_incarnation_is_not_talked_to_any_more)
UNIT_PAIR_OTHER(two_systems_that_dial_each_other_at_once_both_work)
UNIT_PAIR_OTHER(a_watcher_is_told_when_the_other_system_says_goodbye)
UNIT_END

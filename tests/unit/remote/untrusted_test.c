/* untrusted_test.c - a node in untrusted mode: messages that it still takes from peers, and those
 * that it drops. */
#include "tests/unit/remote/pair.h"

static pair p;
static _Atomic uint64_t told, ended;

static trp_err
count_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    atomic_fetch_add(&told, 1);
    return TRP_OK;
}
static const trp_behaviour counter = TRP_BEHAVIOUR_INIT("counter", char, count_receive);

/* Watches the ref that it is told of. */
static trp_err
watcher_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_ref ref;
    if (trp_msg_is(msg, &trp_terminated_type)) {
        atomic_fetch_add(&ended, 1);
        return TRP_OK;
    }
    memcpy(&ref, trp_msg_payload(msg), sizeof ref);
    return trp_watch(ctx, ref);
}
static const trp_behaviour watcher = TRP_BEHAVIOUR_INIT("watcher", char, watcher_receive);

/* A user's own type, marked as possibly harmful (REMOTE-54) */
static trp_type harmful_type = { .name = "untrusted.harmful",
                                 .tag = 1,
                                 .flags = TRP_TYPE_VARIABLE | TRP_TYPE_TEXT |
                                          TRP_TYPE_POSSIBLY_HARMFUL };
static trp_type *const own_types[] = { &harmful_type };
static const trp_protocol own = { "untrusted", own_types, 1 };

/* The right node is in untrusted mode, with trusted paths. */
static trp_ref
start_with(bool untrusted, size_t paths_count)
{
    static const char *const paths[] = { "/user/open", "/system/cluster" };
    trpi_remote_options options = { .untrusted = untrusted,
                                    .trusted_paths = paths,
                                    .trusted_paths_count = paths_count };
    atomic_store(&told, 0);
    atomic_store(&ended, 0);
    memset(&p, 0, sizeof p);
    pair_log_clear();
    for (int i = 0; i < 2; i++) {
        p.system[i] = pair_system(i == 0 ? "left" : "right");
        pair_remote(&p, i, i == 0 ? NULL : &options, 0);
    }
    pair_spawn(p.system[1], &pair_echo, "open", NULL, NULL, 0);
    return pair_spawn(p.system[1], &counter, "counter", NULL, NULL, 0);
}

static trp_ref
systems_start(bool untrusted)
{
    return start_with(untrusted, 1);
}

static uint64_t
untrusted_dropped(void)
{
    trpi_remote_stats stats;
    trpi_remote_stats_get(p.remote[1], &stats);
    return stats.untrusted_dropped;
}

/* REMOTE-53 REMOTE-54 REMOTE-55, CONF-16: any other message reaches any actor whose ref is known */
static void
harmful_messages_are_dropped_and_others_arrive(void)
{
    trp_ref to = pair_abroad(&p, systems_start(true));
    UNIT_EQUAL(trp_protocol_register(&own), TRP_OK);
    trp_system_tell(p.system[0], to, &trp_poison_pill_type, NULL, 0);
    trp_system_tell(p.system[0], to, &trp_kill_type, NULL, 0);
    trp_system_tell(p.system[0], to, &harmful_type, "x", 1);
    trp_system_tell(p.system[0], to, &trp_string_type, "hello", 5); /* in order: comes last */
    UNIT_WAIT(atomic_load(&told) == 1, 60000);
    UNIT_EQUAL(untrusted_dropped(), 3);
    UNIT_WAIT(pair_logged("dropped in untrusted mode"), 60000);
    UNIT_TEXT(pair_state(&p, 0), "active"); /* the association stays */
    pair_end(&p);
}

/* REMOTE-53 */
static void
a_watch_is_dropped_and_acknowledged(void)
{
    trp_ref local = systems_start(true);
    trp_ref to = pair_abroad(&p, local);
    trp_ref eye = pair_spawn(p.system[0], &watcher, "watcher", NULL, NULL, 0);
    trp_system_tell(p.system[0], eye, &trp_bytes_type, &to, sizeof to);
    UNIT_WAIT(untrusted_dropped() == 1, 60000);
    trp_system_tell(p.system[1], local, &trp_poison_pill_type, NULL, 0); /* its own may */
    trp_system_tell(p.system[0], to, &trp_string_type, "hello", 5);
    UNIT_EQUAL(atomic_load(&ended), 0);
    UNIT_EQUAL(untrusted_dropped(), 1);
    pair_end(&p);
}

/* Many at once share frames; the check stands before they are taken apart. */
static trp_err
burst_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_ref to;
    memcpy(&to, trp_msg_payload(msg), sizeof to);
    for (int i = 0; i < 200; i++) {
        trp_tell(ctx, to, &harmful_type, "x", 1);
    }
    trp_tell(ctx, to, &trp_poison_pill_type, NULL, 0);
    trp_tell(ctx, to, &trp_string_type, "hello", 5);
    return TRP_OK;
}
static const trp_behaviour burst = TRP_BEHAVIOUR_INIT("burst", char, burst_receive);

static void
harmful_messages_that_share_a_frame_are_dropped(void)
{
    UNIT_EQUAL(trp_protocol_register(&own), TRP_OK);
    trp_ref to = pair_abroad(&p, systems_start(true));
    trp_ref teller = pair_spawn(p.system[0], &burst, "burst", NULL, NULL, 0);
    trp_system_tell(p.system[0], teller, &trp_bytes_type, &to, sizeof to);
    UNIT_WAIT(atomic_load(&told) == 1, 60000);
    UNIT_TRUE(untrusted_dropped() >= 2); /* frames */
    pair_end(&p);
}

/* REMOTE-55, trusted-selection-paths */
static void
only_trusted_paths_may_be_selected(void)
{
    char path[TRP_PATH_BYTES_MAX];
    trp_msg *reply = NULL;
    (void)systems_start(true);
    UNIT_EQUAL(trp_system_ask_path(p.system[0], pair_path(&p, 1, "/user/open", path, sizeof path),
                                   &trp_string_type, "hello", 5, 30000, &reply),
               TRP_OK);
    trp_msg_free(reply);
    uint64_t before = untrusted_dropped();
    trp_ref ref = TRP_REF_NONE;
    UNIT_EQUAL(trp_system_resolve(p.system[0], pair_path(&p, 1, "/user/counter", path, sizeof path),
                                  500, &ref),
               TRP_ETIMEDOUT);
    UNIT_WAIT(untrusted_dropped() == before + 1, 60000);
    pair_end(&p);
}

static void
a_node_that_trusts_drops_nothing(void)
{
    char path[TRP_PATH_BYTES_MAX];
    trp_ref ref = TRP_REF_NONE, to = pair_abroad(&p, systems_start(false));
    UNIT_EQUAL(trp_system_resolve(p.system[0], pair_path(&p, 1, "/user/counter", path, sizeof path),
                                  30000, &ref),
               TRP_OK);
    trp_ref eye = pair_spawn(p.system[0], &watcher, "watcher", NULL, NULL, 0);
    trp_system_tell(p.system[0], eye, &trp_bytes_type, &to, sizeof to);
    trp_system_tell(p.system[0], to, &trp_poison_pill_type, NULL, 0);
    UNIT_WAIT(atomic_load(&ended) == 1, 60000);
    UNIT_EQUAL(untrusted_dropped(), 0);
    pair_end(&p);
}

static void
frame_arrived(void *arg, const trpi_node_id *from, const uint8_t *bytes, size_t count,
              uint64_t arrived_ns)
{
    (void)arrived_ns;
    (void)arg;
    (void)from;
    (void)bytes;
    (void)count;
    atomic_fetch_add(&told, 1);
}

/* A frame to each room: joining, heartbeats, commands. */
static void
frames_send(void)
{
    trpi_node_id to = { *trpi_remote_address(p.remote[1]), 0 };
    for (int channel = 0; channel < TRPI_CHANNEL_COUNT; channel++) {
        trpi_remote_control_bind(p.remote[1], (enum trpi_control_channel)channel, frame_arrived,
                                 NULL);
        UNIT_EQUAL(
            trpi_remote_control_send(p.remote[0], &to, (enum trpi_control_channel)channel, "x", 1),
            TRP_OK);
    }
}

static void
frames_end(void)
{
    for (int channel = 0; channel < TRPI_CHANNEL_COUNT; channel++) {
        trpi_remote_control_bind(p.remote[1], (enum trpi_control_channel)channel, NULL, NULL);
    }
    pair_end(&p);
}

/* REMOTE-53: A node that may join may declare others down. */
static void
a_cluster_is_joined_only_where_its_path_is_trusted(void)
{
    (void)systems_start(true);
    UNIT_WAIT(pair_logged("no other node can be in a cluster with this one"), 60000);
    frames_send();
    UNIT_WAIT(untrusted_dropped() == TRPI_CHANNEL_COUNT, 60000);
    UNIT_EQUAL(atomic_load(&told), 0);
    frames_end();
    (void)start_with(true, 2);
    frames_send();
    UNIT_WAIT(atomic_load(&told) == TRPI_CHANNEL_COUNT - 1, 60000);
    UNIT_WAIT(untrusted_dropped() == 1, 60000); /* commands, always */
    UNIT_FALSE(pair_logged("no other node can be in a cluster with this one"));
    frames_end();
}

UNIT_BEGIN("untrusted")
UNIT(harmful_messages_are_dropped_and_others_arrive)
UNIT(harmful_messages_that_share_a_frame_are_dropped)
UNIT(a_watch_is_dropped_and_acknowledged)
UNIT(only_trusted_paths_may_be_selected)
UNIT(a_node_that_trusts_drops_nothing)
UNIT(a_cluster_is_joined_only_where_its_path_is_trusted)
UNIT_END

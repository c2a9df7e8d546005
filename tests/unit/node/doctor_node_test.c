/* doctor_node_test.c - the doctor of real nodes: each cause is made, named, mended and gone.
 * Causes that a test cannot make are faked at their source: file systems, limits, clocks, names. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "cluster/node/doctor_look.h"
#include "cluster/node/health.h"
#include "tests/unit/node/doctor_ask.h"

/* ---- the lowest figures ---------------------------------------------------------------------- */

static uint64_t disk_free; /* of 1000 bytes */
static int64_t descriptors_limit, clock_ahead_ms;
static const char *meminfo, *pressure;
static bool names_resolve;

static bool
disk_fake(trpi_doctor_disk *ret)
{
    ret->bytes = 1000;
    ret->bytes_free = disk_free;
    ret->inodes = 0;
    return true;
}

static bool
file_fake(const char *path, char *buffer, size_t bytes)
{
    const char *text = strcmp(path, "/proc/meminfo") == 0        ? meminfo
                       : strcmp(path, "/proc/pressure/cpu") == 0 ? pressure
                       : strcmp(path, "/proc/self/status") == 0  ? "Name:\tx\nVmRSS:\t  10240 kB\n"
                                                                 : NULL;
    if (text != NULL) {
        snprintf(buffer, bytes, "%s", text);
    }
    return text != NULL;
}

static int64_t
limit_fake(void)
{
    return descriptors_limit;
}

static bool
resolves_fake(const char *host)
{
    return names_resolve || strcmp(host, "localhost") != 0;
}

static int64_t
wall_ahead(trp_node *node)
{
    return trpi_doctor_probes_real.wall_ms(node) + clock_ahead_ms;
}

static trpi_doctor_probes fake;

static void
calm(void)
{
    fake = trpi_doctor_probes_real;
    fake.disk = disk_fake;
    fake.file = file_fake;
    fake.descriptors_limit = limit_fake;
    fake.resolves = resolves_fake;
    disk_free = 500;
    descriptors_limit = 65536;
    clock_ahead_ms = 0;
    meminfo = "MemTotal:  4000000 kB\nMemFree: 1 kB\nMemAvailable:  2000000 kB\n";
    pressure = "some avg10=0.50 avg60=0.00 avg300=0.00 total=1\n";
    names_resolve = true;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static trp_node *
node_with(const char *const *more)
{
    char path[128];
    const char *extra[12] = { "cluster.control-socket=on", path };
    trp_node *node = NULL;
    trp_node_error error = { "" };
    snprintf(path, sizeof path, "control.socket=/tmp/troupe-doctor-test-%d.sock", (int)getpid());
    for (size_t i = 2; more != NULL && *more != NULL; i++) {
        extra[i] = *more++;
    }
    calm();
    UNIT_EQUAL(node_open(extra, &node, &error), TRP_OK);
    UNIT_TEXT(error.text, "");
    UNIT_REQUIRE(node != NULL);
    node->probes = &fake;
    return node;
}

static trp_node *
up_with(const char *setting)
{
    const char *more[] = { "cluster.seed-nodes=self", setting, NULL };
    trp_node *node = node_with(more);
    UNIT_WAIT(own_status(node) == TRP_MEMBER_UP, 60000);
    return node;
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void
figures_of_the_host_are_judged(void)
{
    trp_node *node = up_with("log.level=info");
    UNIT_TRUE(says(node, "disk", "ok", "1 file system has room"));
    disk_free = 15;
    UNIT_TRUE(says(node, "disk", "fail", "space of the control socket"));
    disk_free = 500;
    UNIT_TRUE(says(node, "disk", "ok", ""));
    UNIT_TRUE(says(node, "descriptors", "ok", "of 65536 open"));
    descriptors_limit = trpi_doctor_probes_real.descriptors() + 1;
    UNIT_TRUE(says(node, "descriptors", "fail", "open"));
    descriptors_limit = 65536;
    UNIT_TRUE(says(node, "memory", "ok", "10 MiB resident; the host has 1953 of 3906 MiB"));
    meminfo = "MemTotal:  4000000 kB\nMemAvailable:  100000 kB\n";
    UNIT_TRUE(says(node, "memory", "fail", "98 of 3906 MiB"));
    meminfo = "MemTotal:  none\n";
    UNIT_TRUE(says(node, "memory", "ok", "10 MiB resident"));
    pressure = "some avg10=55.10 avg60=0.00\n";
    UNIT_TRUE(says(node, "processor", "warn", "55 %"));
    pressure = NULL;
    UNIT_TRUE(says(node, "processor", "ok", "not known"));
    trp_node_close(node);
}

static void
a_configuration_that_is_risky_is_named(void)
{
    static const struct {
        const char *setting, *id, *level, *evidence;
    } rows[] = {
        { "cluster.downing.active-strategy=manual", "downing", "warn", "manual" },
        { "cluster.leave-timeout=1s", "leave-timeout", "warn", "cluster.leave-timeout is 1 s" },
        { "remote.test-adapters=on", "test-adapters", "warn", "is on" },
        { "cluster.unreachable-nodes-reaper-interval=2s", "idle-keys", "warn", "has no effect" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        trp_node *node = up_with(rows[i].setting);
        UNIT_TRUE(says(node, rows[i].id, rows[i].level, rows[i].evidence));
        trp_node_close(node);
        node = up_with("log.level=info"); /* mended */
        UNIT_TRUE(says(node, rows[i].id, "ok", ""));
        trp_node_close(node);
    }
    trp_node *node = up_with("log.level=debug");
    UNIT_TRUE(says(node, "log-level", "warn", "debug"));
    trp_log_level_set(trp_node_system(node), TRP_LOG_INFO);
    UNIT_TRUE(says(node, "log-level", "ok", ""));
    trp_node_close(node);
}

static void
a_drained_member_is_named(void)
{
    trp_node *node = up_with("log.level=info");
    UNIT_TRUE(says(node, "drained", "ok", "no member is drained"));
    cJSON *reply = control_ask(trp_node_control_path(node), "{\"cmd\":\"drain\"}");
    UNIT_TRUE(trpi_json_get_text(reply, "node") != NULL);
    cJSON_Delete(reply);
    UNIT_TRUE(trpi_cluster_is_drained(node->cluster));
    const char *why = "";
    UNIT_FALSE(trpi_node_takes_work(node, &why));
    UNIT_TEXT(why, "this node is drained (troupe undrain)");
    UNIT_TRUE(says(node, "drained", "warn", "is drained: it is given no shard and no routee"));
    cJSON_Delete(control_ask(trp_node_control_path(node), "{\"cmd\":\"undrain\"}"));
    UNIT_FALSE(trpi_cluster_is_drained(node->cluster));
    UNIT_TRUE(says(node, "drained", "ok", ""));
    trp_node_close(node);
}

static void
a_quorum_that_does_not_fit_is_named(void)
{
    const char *more[] = { "cluster.seed-nodes=self",
                           "cluster.downing.active-strategy=static-quorum",
                           "cluster.downing.static-quorum.quorum-size=2", NULL };
    trp_node *node = node_with(more);
    UNIT_WAIT(own_status(node) == TRP_MEMBER_UP, 60000);
    UNIT_TRUE(says(node, "downing", "fail", "static-quorum needs 2 members, and 1 are Up"));
    trp_node_close(node);
}

static void
a_node_that_has_not_joined_and_a_seed_without_address_are_named(void)
{
    const char *more[] = { "cluster.seed-nodes=troupe.tcp://demo@127.0.0.1:1,"
                           "troupe.tcp://demo@localhost:2",
                           NULL };
    trp_node *node = node_with(more);
    UNIT_TRUE(says(node, "joined", "fail", "has not joined"));
    UNIT_TRUE(says(node, "seeds", "ok", "2 seed nodes"));
    names_resolve = false;
    UNIT_TRUE(says(node, "seeds", "warn", "the name localhost has no address"));
    trp_node_close(node);
}

static void
dead_letters_are_a_warning_and_a_storm_is_a_failure(void)
{
    trp_node *node = up_with("log.dead-letters=off");
    UNIT_TRUE(says(node, "dead-letters", "ok", "0 dead letters"));
    for (int i = 0; i < 400; i++) {
        UNIT_EQUAL(
            trp_system_select_tell(trp_node_system(node), "/user/nobody", &trp_string_type, "x", 1),
            TRP_OK);
    }
    UNIT_WAIT(says(node, "dead-letters", "warn", "no-such-actor to /user/nobody"), 60000);
    for (int i = 0; i < 3000; i++) {
        UNIT_EQUAL(
            trp_system_select_tell(trp_node_system(node), "/user/nobody", &trp_string_type, "x", 1),
            TRP_OK);
    }
    UNIT_WAIT(says(node, "dead-letters", "fail", "no-such-actor to /user/nobody"), 60000);
    trp_node_close(node);
}

static atomic_bool let_go;

static trp_err
slow_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx, (void)state;
    bool holds = trp_msg_bytes(msg) == 4; /* "hold" */
    for (int i = 0; holds ? !atomic_load(&let_go) : i < 5; i++) {
        unit_pause();
    }
    return TRP_OK;
}
static const trp_behaviour slow = {
    .size = sizeof(trp_behaviour), .name = "slow", .version = 1, .receive = slow_receive
};

static trp_ref
slow_spawn(trp_node *node)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    options.name = "slow";
    atomic_store(&let_go, false);
    UNIT_EQUAL(trp_system_spawn(trp_node_system(node), &slow, &options, &ref), TRP_OK);
    return ref;
}

static void
an_actor_that_holds_its_thread_is_named(void)
{
    trp_node *node = up_with("log.level=info");
    trp_ref ref = slow_spawn(node);
    UNIT_TRUE(says(node, "stuck", "ok", ""));
    trp_system_tell(trp_node_system(node), ref, &trp_string_type, "hold", 4);
    UNIT_WAIT(says(node, "stuck", "fail", "/user/slow (behaviour slow) has held a thread"), 60000);
    UNIT_WAIT(says(node, "stuck", "fail", "with one message of type troupe.string for"), 60000);
    atomic_store(&let_go, true);
    UNIT_WAIT(says(node, "stuck", "ok", ""), 60000);
    trp_node_close(node);
}

typedef struct flood {
    trp_node *node;
    trp_ref to;
    atomic_bool over;
} flood;

static void *
flood_main(void *arg)
{
    flood *f = arg;
    while (!atomic_load(&f->over)) {
        for (int i = 0; i < 20; i++) {
            trp_system_tell(trp_node_system(f->node), f->to, &trp_string_type, "x", 1);
        }
        unit_pause();
    }
    return NULL;
}

static void
a_long_mailbox_that_grows_is_named(void)
{
    trp_node *node = up_with("log.level=info");
    flood f = { .node = node, .to = slow_spawn(node) };
    pthread_t thread;
    for (int i = 0; i < 2000; i++) {
        trp_system_tell(trp_node_system(node), f.to, &trp_string_type, "x", 1);
    }
    UNIT_EQUAL(pthread_create(&thread, NULL, flood_main, &f), 0);
    UNIT_WAIT(says(node, "mailboxes", "warn", "messages wait for /user/slow"), 60000);
    atomic_store(&f.over, true);
    UNIT_EQUAL(pthread_join(thread, NULL), 0);
    trp_system_stop_actor(trp_node_system(node), f.to);
    UNIT_WAIT(says(node, "mailboxes", "ok", ""), 60000);
    trp_node_close(node);
}

/* Two nodes, the second with settings of its own: what differs, what each sees of the other. */
static void
members_that_differ_or_are_lost_are_named(void)
{
    static trpi_doctor_probes ahead;
    const char *other[] = { "cluster.control-socket=on", NULL, "cluster.leave-timeout=50s", NULL };
    char path[128];
    snprintf(path, sizeof path, "control.socket=/tmp/troupe-doctor-other-%d.sock", (int)getpid());
    other[1] = path;
    trp_node *node = up_with("cluster.downing.active-strategy=keep-oldest");
    const char *strategy = "cluster.downing.active-strategy=keep-oldest";
    const char *with[] = { other[0], other[1], other[2], strategy, NULL };
    trp_node *second = up_beside(node, with);
    ahead = trpi_doctor_probes_real;
    ahead.wall_ms = wall_ahead;
    second->probes = &ahead;
    UNIT_WAIT(says(node, "members", "ok", "each reachable member has answered"), 60000);
    UNIT_TRUE(
        says(node, "configuration", "warn", "cluster.leave-timeout is 45s here and 50s there"));
    UNIT_TRUE(says(node, "versions", "ok", "on 1 of 1 other members"));
    UNIT_TRUE(says(node, "links", "ok", "2 dials"));
    UNIT_WAIT(says(node, "clock", "ok", ""), 60000);
    clock_ahead_ms = 90000;
    UNIT_WAIT(says(node, "clock", "fail", "s ahead of this node"), 60000);
    clock_ahead_ms = -20000;
    UNIT_WAIT(says(node, "clock", "warn", "s behind this node"), 60000);
    clock_ahead_ms = 0;
    UNIT_WAIT(says(node, "clock", "ok", ""), 60000);
    trp_node_close(second); /* without leaving: a crash, for the first */
    UNIT_WAIT(says(node, "unreachable", "fail", "is unreachable"), 60000);
    trp_node_close(node);
}

UNIT_BEGIN("doctor_node")
UNIT(figures_of_the_host_are_judged)
UNIT(a_configuration_that_is_risky_is_named)
UNIT(a_drained_member_is_named)
UNIT(a_quorum_that_does_not_fit_is_named)
UNIT(a_node_that_has_not_joined_and_a_seed_without_address_are_named)
UNIT(dead_letters_are_a_warning_and_a_storm_is_a_failure)
UNIT(an_actor_that_holds_its_thread_is_named)
UNIT(a_long_mailbox_that_grows_is_named)
UNIT(members_that_differ_or_are_lost_are_named)
UNIT_END

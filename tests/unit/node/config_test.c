/* config_test.c - the configuration: layers, origins, and each mistake with its sentence. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/config.h"
#include "base/phi.h"
#include "cluster/engine/membership_core.h"
#include "tests/unit/unit.h"

static trpi_config *
config_new(void)
{
    trpi_config *config = NULL;
    UNIT_REQUIRE(trpi_config_new(&config) == TRP_OK);
    return config;
}

/* Load text and compare the complaint; want NULL: it must be right. */
static void
text_gives(const char *text, const char *want)
{
    trpi_config *config = config_new();
    trpi_config_error error = { "" };
    trp_err err = trpi_config_load_text(config, "t.conf", text, &error);
    UNIT_EQUAL(err, want ? TRP_ECONFIG : TRP_OK);
    UNIT_TEXT(error.text, want ? want : "");
    trpi_config_free(config);
}

static void
set_gives(const char *assignment, const char *want)
{
    trpi_config *config = config_new();
    trpi_config_error error = { "" };
    trp_err err = trpi_config_set(config, assignment, "--set", &error);
    UNIT_EQUAL(err, want ? TRP_ECONFIG : TRP_OK);
    UNIT_TEXT(error.text, want ? want : "");
    trpi_config_free(config);
}

static void
env_gives(const char *variable, const char *want)
{
    trpi_config *config = config_new();
    trpi_config_error error = { "" };
    char copy[256];
    snprintf(copy, sizeof copy, "%s", variable);
    char *environment[] = { copy, NULL };
    trp_err err = trpi_config_load_env(config, environment, &error);
    UNIT_EQUAL(err, want ? TRP_ECONFIG : TRP_OK);
    UNIT_TEXT(error.text, want ? want : "");
    trpi_config_free(config);
}

/* CONF-17, CONF-26 */
static void
every_default_passes_its_own_check(void)
{
    trpi_config *config = config_new();
    for (const trpi_config_row *row = NULL; (row = trpi_config_row_next(row)) != NULL;) {
        char assignment[512];
        trpi_config_error error = { "" };
        const char *star = strchr(row->key, '*');
        int before = star ? (int)(star - row->key) : (int)strlen(row->key);
        snprintf(assignment, sizeof assignment, "%.*s%s%s=%s", before, row->key,
                 !star                                      ? ""
                 : strncmp(row->key, "deployment", 10) == 0 ? "/a"
                                                            : "a",
                 star ? star + 1 : "", row->initial);
        UNIT_EQUAL(trpi_config_set(config, assignment, "--set", &error), TRP_OK);
        UNIT_TEXT(error.text, "");
        UNIT_TRUE(strlen(row->doc) > 10);
    }
    trpi_config_free(config);
}

/* CONF-26, GAP-12: engines of the cluster are made by the thousand, and do not read the table for
 * that */
static void
engines_have_the_defaults_of_the_table(void)
{
    trpi_node_id id = { .uid = 1 };
    trpi_member_options none = { .seed = 1 };
    trpi_member_core *core = NULL;
    trpi_phi phi;
    UNIT_EQUAL(trpi_address_parse("troupe.tcp://s@127.0.0.1:1", &id.address, NULL, NULL), TRP_OK);
    UNIT_REQUIRE(trpi_member_new(&id, NULL, 0, "0.0.0", &none, &core) == TRP_OK);
    const trpi_member_options *o = &core->options;
    UNIT_EQUAL(o->gossip_interval_ms, trpi_config_int(NULL, "cluster.gossip-interval"));
    UNIT_EQUAL(o->leader_actions_interval_ms,
               trpi_config_int(NULL, "cluster.leader-actions-interval"));
    UNIT_EQUAL(o->seed_node_timeout_ms, trpi_config_int(NULL, "cluster.seed-node-timeout"));
    UNIT_EQUAL(o->retry_unsuccessful_join_after_ms,
               trpi_config_int(NULL, "cluster.retry-unsuccessful-join-after"));
    UNIT_EQUAL(o->gossip_ttl_ms, trpi_config_int(NULL, "cluster.gossip-time-to-live"));
    UNIT_EQUAL(o->prune_tombstones_after_ms,
               trpi_config_int(NULL, "cluster.prune-gossip-tombstones-after"));
    UNIT_EQUAL(o->weakly_up_after_ms, trpi_config_int(NULL, "cluster.allow-weakly-up-members"));
    UNIT_EQUAL(o->min_nr_of_members, trpi_config_int(NULL, "cluster.min-nr-of-members"));
    UNIT_EQUAL(o->downing.stable_after_ms, trpi_config_int(NULL, "cluster.downing.stable-after"));
    UNIT_EQUAL(o->downing.auto_down_after_ms,
               trpi_config_int(NULL, "cluster.downing.auto-down-after"));
    UNIT_EQUAL(o->downing.quorum_size,
               trpi_config_int(NULL, "cluster.downing.static-quorum.quorum-size"));
    UNIT_EQUAL(o->downing.least_nodes,
               trpi_config_int(NULL, "cluster.downing.keep-referee.down-all-if-less-than-nodes"));
    UNIT_EQUAL(o->downing.keep_lone_oldest,
               !trpi_config_bool(NULL, "cluster.downing.keep-oldest.down-if-alone"));
    UNIT_TRUE(o->gossip_different_view_probability ==
              trpi_config_float(NULL, "cluster.gossip-different-view-probability"));
    trpi_member_free(core);
    UNIT_EQUAL(trpi_phi_init(&phi, NULL), TRP_OK);
    UNIT_TRUE(phi.options.threshold ==
              trpi_config_float(NULL, "cluster.failure-detector.threshold"));
    UNIT_EQUAL(phi.options.max_samples,
               trpi_config_int(NULL, "cluster.failure-detector.max-sample-size"));
    UNIT_EQUAL(phi.options.min_std_deviation_ms,
               trpi_config_int(NULL, "cluster.failure-detector.min-std-deviation"));
    UNIT_EQUAL(phi.options.heartbeat_interval_ms,
               trpi_config_int(NULL, "cluster.failure-detector.heartbeat-interval"));
    UNIT_EQUAL(phi.options.acceptable_pause_ms,
               trpi_config_int(NULL, "cluster.failure-detector.acceptable-heartbeat-pause"));
    trpi_phi_fini(&phi);
}

/* CONF-1 */
static void
file_values_are_read_with_their_types_and_origin(void)
{
    trpi_config *config = config_new();
    trpi_config_error error = { "" };
    static const char text[] = "system = bank\n"
                               "remote { port = 0 maximum-frame-size = 1MiB }\n"
                               "cluster { seed-nodes = { \"troupe.tcp://bank@a:1\", self }\n"
                               "  role \"db\" { min-nr-of-members = 2 }\n"
                               "  gossip-interval = \"200 ms\" may-create-cluster = no\n"
                               "  failure-detector { threshold = 9.5 } }\n";
    UNIT_EQUAL(trpi_config_load_text(config, "t.conf", text, &error), TRP_OK);
    UNIT_TEXT(error.text, "");
    UNIT_TEXT(trpi_config_text(config, "system"), "bank");
    UNIT_EQUAL(trpi_config_int(config, "remote.port"), 0);
    UNIT_EQUAL(trpi_config_int(config, "remote.bind-port"), -1);
    UNIT_EQUAL(trpi_config_int(config, "remote.maximum-frame-size"), 1024 * 1024);
    UNIT_EQUAL(trpi_config_int(config, "cluster.gossip-interval"), 200);
    UNIT_EQUAL(trpi_config_int(config, "cluster.leave-timeout"), 45000);
    UNIT_TRUE(trpi_config_float(config, "cluster.failure-detector.threshold") > 9.4);
    UNIT_FALSE(trpi_config_bool(config, "cluster.may-create-cluster"));
    UNIT_EQUAL(trpi_config_list_count(config, "cluster.seed-nodes"), 2);
    UNIT_TEXT(trpi_config_list_at(config, "cluster.seed-nodes", 1), "self");
    trpi_config_entry entry;
    UNIT_REQUIRE(trpi_config_find(config, "cluster.role.db.min-nr-of-members", &entry));
    UNIT_TEXT(entry.values[0], "2");
    UNIT_TEXT(entry.origin, "t.conf:4");
    UNIT_REQUIRE(trpi_config_find(config, "cluster.leave-timeout", &entry));
    UNIT_TEXT(entry.origin, "default");
    trpi_config_free(config);
}

/* CONF-2, CONF-5, REMOTE-69 */
static void
flags_beat_environment_beats_file_beats_default_in_any_order(void)
{
    trpi_config *config = config_new();
    trpi_config_error error = { "" };
    trpi_config_entry entry;
    char v1[] = "TROUPE_CLUSTER_GOSSIP_INTERVAL=3s", v2[] = "TROUPE_SYSTEM=env", v3[] = "HOME=/";
    char *environment[] = { v1, v2, v3, NULL };
    UNIT_EQUAL(trpi_config_set(config, "system=flag", "--set", &error), TRP_OK);
    UNIT_EQUAL(trpi_config_load_env(config, environment, &error), TRP_OK);
    UNIT_EQUAL(trpi_config_load_text(
                   config, "t.conf",
                   "system = file\ncluster { gossip-interval = 2s leave-timeout = 9s }", &error),
               TRP_OK);
    UNIT_TEXT(trpi_config_text(config, "system"), "flag");
    UNIT_EQUAL(trpi_config_int(config, "cluster.gossip-interval"), 3000);
    UNIT_EQUAL(trpi_config_int(config, "cluster.leave-timeout"), 9000);
    UNIT_EQUAL(trpi_config_int(config, "cluster.seed-node-timeout"), 5000);
    UNIT_REQUIRE(trpi_config_find(config, "system", &entry));
    UNIT_TEXT(entry.origin, "--set");
    UNIT_REQUIRE(trpi_config_find(config, "cluster.gossip-interval", &entry));
    UNIT_TEXT(entry.origin, "environment TROUPE_CLUSTER_GOSSIP_INTERVAL");
    UNIT_REQUIRE(trpi_config_find(config, "cluster.leave-timeout", &entry));
    UNIT_TEXT(entry.origin, "t.conf:2");
    trpi_config_free(config);
}

/* CONF-25 */
static void
app_takes_any_key_at_any_depth(void)
{
    trpi_config *config = config_new();
    trpi_config_error error = { "" };
    trpi_config_entry entry;
    char v[] = "TROUPE_APP_LIMITS_RETRIES=7";
    char *environment[] = { v, NULL };
    static const char text[] =
        "app { greeting = \"hello there\"\n limits { retries = 3 deep { a = {1, 2} e = {} } } }";
    UNIT_EQUAL(trpi_config_load_text(config, "t.conf", text, &error), TRP_OK);
    UNIT_TEXT(error.text, "");
    UNIT_REQUIRE(trpi_config_find(config, "app.greeting", &entry));
    UNIT_TEXT(entry.values[0], "hello there");
    UNIT_REQUIRE(trpi_config_find(config, "app.limits.deep.a", &entry));
    UNIT_EQUAL(entry.count, 2);
    UNIT_TEXT(entry.values[1], "2");
    UNIT_REQUIRE(trpi_config_find(config, "app.limits.deep.e", &entry));
    UNIT_EQUAL(entry.count, 0);
    UNIT_EQUAL(trpi_config_load_env(config, environment, &error), TRP_OK);
    UNIT_REQUIRE(trpi_config_find(config, "app.limits.retries", &entry));
    UNIT_TEXT(entry.values[0], "7");
    UNIT_FALSE(trpi_config_find(config, "app.other", &entry));
    trpi_config_free(config);
}

static void
lines_are_counted_right_behind_comments(void)
{
    trpi_config *config = config_new();
    trpi_config_error error = { "" };
    trpi_config_entry entry;
    static const char text[] =
        "# one\n# two \"\nsystem = a # three\n// four\n/* five\n six */ remote {\n"
        " bind-hostname = \"#\\\"//x\" # seven\n port = 1 }\n"
        "plugins = { a//b, ${TROUPE_TEST_NONE:-#x}, '#' }\n#";
    UNIT_EQUAL(trpi_config_load_text(config, "t", text, &error), TRP_OK);
    UNIT_TEXT(error.text, "");
    UNIT_REQUIRE(trpi_config_find(config, "system", &entry));
    UNIT_TEXT(entry.origin, "t:3");
    UNIT_REQUIRE(trpi_config_find(config, "remote.bind-hostname", &entry));
    UNIT_TEXT(entry.origin, "t:7");
    UNIT_TEXT(entry.values[0], "#\"//x");
    UNIT_REQUIRE(trpi_config_find(config, "remote.port", &entry));
    UNIT_TEXT(entry.origin, "t:8");
    UNIT_REQUIRE(trpi_config_find(config, "plugins", &entry));
    UNIT_TEXT(entry.origin, "t:9");
    UNIT_TEXT(entry.values[0], "a//b");
    UNIT_TEXT(entry.values[1], "#x");
    UNIT_TEXT(entry.values[2], "#");
    trpi_config_free(config);
}

/* CONF-1 */
static void
variables_are_replaced_in_the_file(void)
{
    trpi_config *config = config_new();
    trpi_config_error error = { "" };
    unsetenv("TROUPE_TEST_NAME");
    UNIT_EQUAL(trpi_config_load_text(config, "t", "system = \"${TROUPE_TEST_NAME:-demo}\"", &error),
               TRP_OK);
    UNIT_TEXT(trpi_config_text(config, "system"), "demo");
    setenv("TROUPE_TEST_NAME", "other", 1);
    UNIT_EQUAL(trpi_config_load_text(config, "t", "system = ${TROUPE_TEST_NAME}", &error), TRP_OK);
    UNIT_TEXT(trpi_config_text(config, "system"), "other");
    unsetenv("TROUPE_TEST_NAME");
    trpi_config_free(config);
}

static bool
reads_as(trpi_config_type type, const char *text, double want)
{
    const char *what = NULL;
    double number = -1;
    trp_err err = trpi_config_parse_number(type, text, &number, &what);
    return want < 0 ? err == TRP_ECONFIG && what != NULL : err == TRP_OK && number == want;
}

/* In integers: no fraction of a millisecond or a byte appears or is lost. */
static void
durations_and_sizes_are_exact(void)
{
    UNIT_TRUE(reads_as(TRPI_CONFIG_DURATION, "1.1h", 3960000));
    UNIT_TRUE(reads_as(TRPI_CONFIG_DURATION, "0.3s", 300));
    UNIT_TRUE(reads_as(TRPI_CONFIG_DURATION, "1.0015s", -1));
    UNIT_TRUE(reads_as(TRPI_CONFIG_DURATION, "2.5000 m", 150000));
    UNIT_TRUE(reads_as(TRPI_CONFIG_SIZE, "4.1MB", 4100000));
    UNIT_TRUE(reads_as(TRPI_CONFIG_SIZE, "0.5KiB", 512));
    UNIT_TRUE(reads_as(TRPI_CONFIG_SIZE, "0.3KiB", -1));
    UNIT_TRUE(reads_as(TRPI_CONFIG_INT, "9007199254740992", 9007199254740992.0));
    UNIT_TRUE(reads_as(TRPI_CONFIG_INT, "9007199254740993", -1));
    UNIT_TRUE(reads_as(TRPI_CONFIG_SIZE, "9007199254740993", -1));
    UNIT_TRUE(reads_as(TRPI_CONFIG_INT, "18446744073709551616", -1));
    UNIT_TRUE(reads_as(TRPI_CONFIG_INT, "1.5", -1));
    UNIT_TRUE(reads_as(TRPI_CONFIG_INT, "2.0", 2));
    UNIT_TRUE(reads_as(TRPI_CONFIG_FLOAT, "0.1", 0.1));
    UNIT_TRUE(reads_as(TRPI_CONFIG_FLOAT, "8.25", 8.25));
    UNIT_TRUE(reads_as(TRPI_CONFIG_FLOAT, "1.", -1));
}

/* As editors elsewhere write it. */
static void
a_byte_order_mark_is_no_part_of_a_file(void)
{
    trpi_config *config = config_new();
    trpi_config_error error = { "" };
    char path[] = "/tmp/troupe-config-XXXXXX";
    int fd = mkstemp(path);
    static const char text[] = "\xef\xbb\xbfsystem = marked\n";
    UNIT_REQUIRE(fd >= 0 && write(fd, text, sizeof text - 1) == (ssize_t)sizeof text - 1);
    UNIT_EQUAL(trpi_config_load_file(config, path, &error), TRP_OK);
    UNIT_TEXT(trpi_config_text(config, "system"), "marked");
    (void)close(fd);
    (void)unlink(path);
    trpi_config_free(config);
}

/* off, where 0 means never */
static void
a_duration_that_may_be_0_may_be_off(void)
{
    trpi_config *config = config_new();
    trpi_config_error error = { "" };
    UNIT_EQUAL(trpi_config_int(config, "cluster.allow-weakly-up-members"), 0);
    UNIT_EQUAL(
        trpi_config_load_text(config, "t", "cluster { allow-weakly-up-members = 7s }", &error),
        TRP_OK);
    UNIT_EQUAL(trpi_config_int(config, "cluster.allow-weakly-up-members"), 7000);
    UNIT_EQUAL(trpi_config_set(config, "cluster.allow-weakly-up-members=Off", "--set", &error),
               TRP_OK);
    UNIT_EQUAL(trpi_config_int(config, "cluster.allow-weakly-up-members"), 0);
    UNIT_TRUE(trpi_config_set(config, "cluster.gossip-interval=off", "--set", &error) != TRP_OK);
    trpi_config_free(config);
}

/* GAP-02 */
static void
mistakes_in_a_file_are_refused_with_place_and_right_name(void)
{
    text_gives("\ncluster {\n gosip-interval = 1s }",
               "t.conf:3: no such option 'gosip-interval' in cluster; did you mean "
               "'cluster.gossip-interval'?");
    text_gives(
        "gossip-interval = 1s",
        "t.conf:1: no such option 'gossip-interval'; did you mean 'cluster.gossip-interval'?");
    text_gives("clutser { }",
               "t.conf:1: no such option 'clutser'; did you mean the section 'cluster'?");
    text_gives("xyzzy = 1", "t.conf:1: no such option 'xyzzy'");
    text_gives(
        "cluster { gossip-interval = 1 s }",
        "t.conf:1: cluster.gossip-interval = 1: a duration needs a unit: write 1s or \"1 s\"");
    text_gives("remote { maximum-frame-size = 100000 KiB }",
               "t.conf:1: remote.maximum-frame-size: a space splits the value: write 100000KiB or "
               "\"100000 KiB\"");
    text_gives("system = a\nsystem = b",
               "t.conf:2: system is given twice; the first stands at t.conf:1");
    text_gives("cluster { roles = {a} }\ncluster { roles = {b} }",
               "t.conf:2: cluster.roles is given twice; the first stands at t.conf:1");
    text_gives("cluster.gossip-interval = 1s",
               "t.conf:1: 'cluster.gossip-interval': a file has no dotted "
               "keys; write cluster { gossip-interval = ... }");
    text_gives("remote { port = many }", "t.conf:1: remote.port: 'many': expected a whole number");
    text_gives("remote { port = {1, 2} }",
               "t.conf:1: a list or section stands where one value is expected");
    text_gives("cluster { may-create-cluster = maybe }",
               "t.conf:1: cluster.may-create-cluster: 'maybe': expected on or off (or yes, no, "
               "true, false)");
    text_gives(
        "cluster { gossip-interval = 1parsec }",
        "t.conf:1: cluster.gossip-interval: '1parsec': no such unit of time; use ms, s, m, h or d");
    text_gives("log { level = inof }",
               "t.conf:1: log.level: 'inof' is not one of error|warning|info|debug|off; "
               "did you mean 'info'?");
    text_gives(
        "cluster { seed-nodes = { \"akka.tcp://a@b:1\" } }",
        "t.conf:1: cluster.seed-nodes: 'akka.tcp://a@b:1' is no address: akka.tcp: did you mean "
        "troupe.tcp?");
    text_gives(
        "remote { hostname = 0.0.0.0 }",
        "t.conf:1: remote.hostname: '0.0.0.0' cannot be advertised: the others must be able to "
        "reach "
        "it; set remote.hostname to this host's address, and remote.bind-hostname to '0.0.0.0'");
    text_gives("system = \"a b\"",
               "t.conf:1: system: 'a b' is no system name: 1 to 63 letters, digits, '-' and '_'");
    text_gives("system = abc\n/* all\nlog { level = info }\n",
               "t.conf:2: a comment is not closed: */ is missing");
    text_gives("system = abc /*/", "t.conf:1: a comment is not closed: */ is missing");
    text_gives("system = abc /**/\n/* b */", NULL);
    text_gives("system = \"abc", "t.conf:1: premature end of file");
    text_gives("cluster {\n", "t.conf:1: the file ends inside cluster: a closing brace is missing");
    text_gives("app { a {", "t.conf:1: the file ends inside app.a: a closing brace is missing");
    text_gives("}", "t.conf:1: unexpected closing brace");
    text_gives("cluster { role \"a\" { min-nr-of-members = 1 }\n role \"a\" { "
               "min-nr-of-members = 1 } }",
               "t.conf:2: cluster.role.a.min-nr-of-members is given twice; the first stands at "
               "t.conf:1");
    text_gives("app { a = 1 a { } }", "t.conf:1: missing equal sign after option 'a'");
    text_gives("cluster { role { db { min-nr-of-members = 2 } } }",
               "t.conf:1: role needs a title: write role \"NAME\" { ... }");
}

/* CONF-22 */
static void
keys_of_akka_that_are_not_here_say_what_to_write(void)
{
    text_gives("cluster { auto-down-unreachable-after = 10s }",
               "t.conf:1: no such option 'auto-down-unreachable-after' in cluster; write cluster { "
               "downing { active-strategy = auto-down-after  auto-down-after = 5s } }");
    text_gives("cluster { scheduler { tick-duration = 33ms } }",
               "t.conf:1: no such option 'scheduler' in cluster; leave it out, the system's timer "
               "is precise enough");
    text_gives("cluster { failure-detector { heartbeat-request { grace-period = 10s } } }",
               "t.conf:1: no such option 'heartbeat-request' in cluster.failure-detector; write "
               "cluster { failure-detector { expected-response-after = 3s } }");
    set_gives("cluster.periodic-tasks-initial-delay=1s",
              "--set: no such key 'cluster.periodic-tasks-initial-delay'; leave it out, gossip "
              "begins an interval after the join");
    text_gives("cluster { jmx { enabled = on } }",
               "t.conf:1: no such option 'jmx' in cluster; leave it out, a node has a control "
               "socket for troupe; a program that embeds the library gets one by cluster { "
               "control-socket = on }");
    set_gives("cluster.scheduler.ticks-per-wheel=512",
              "--set: no such key 'cluster.scheduler.ticks-per-wheel'; leave it out, the system's "
              "timer is precise enough");
    set_gives("cluster.use-dispatchers=on", "--set: no such key 'cluster.use-dispatchers'");
}

/* CONF-11, CONF-12, CONF-13, CONF-14 */
static void
keys_of_akkas_sockets_that_are_not_here_say_what_to_write(void)
{
    text_gives("io { tcp { nr-of-selectors = 1 } }",
               "t.conf:1: no such option 'nr-of-selectors' in io.tcp; leave it out, the workers "
               "themselves wait for sockets");
    text_gives("io { pinned-dispatcher { type = pinned } }",
               "t.conf:1: no such option 'pinned-dispatcher' in io; leave it out, the workers "
               "themselves wait for sockets");
    set_gives("io.udp.select-timeout=1s", "--set: no such key 'io.udp.select-timeout'; leave it "
                                          "out, the workers themselves wait for sockets");
    text_gives("io { read-buffer-size = 8KiB }",
               "t.conf:1: no such option 'read-buffer-size' in io; write io { tcp { "
               "direct-buffer-size = 8KiB } }");
    text_gives("io { select-interval = 100 }",
               "t.conf:1: no such option 'select-interval' in io; leave it out, the workers "
               "themselves wait for sockets");
    text_gives("io { default-backlog = 1000 }",
               "t.conf:1: no such option 'default-backlog' in io; set the option backlog of "
               "trp_tcp_bind()");
    set_gives("io.tcp.max-channel=5",
              "--set: no such key 'io.tcp.max-channel'; did you mean 'io.tcp.max-channels'?");
    set_gives("io.tcp.max-channels=many",
              "--set: io.tcp.max-channels: 'many': expected a whole number, or one of unlimited");
}

/* MEMB-19, REMOTE-03 */
static void
ranges_hold_at_the_limit_and_not_one_past_it(void)
{
    UNIT_EQUAL(trpi_config_int(NULL, "remote.port"), 2552);
    set_gives("remote.port=65535", NULL);
    set_gives("remote.port=65536", "--set: remote.port: 65536 is out of range: 0 to 65535");
    set_gives("remote.port=-1", "--set: remote.port: -1 is out of range: 0 to 65535");
    set_gives("remote.ordinary-lanes=8", NULL);
    set_gives("remote.ordinary-lanes=9", "--set: remote.ordinary-lanes: 9 is out of range: 1 to 8");
    set_gives("cluster.gossip-interval=10ms", NULL);
    set_gives("cluster.gossip-interval=9ms",
              "--set: cluster.gossip-interval: 9ms is out of range: 10ms to 3600s");
    set_gives("cluster.min-nr-of-members=10000", NULL); /* TRP_CLUSTER_MEMBERS_MAX */
    set_gives("cluster.min-nr-of-members=10001",
              "--set: cluster.min-nr-of-members: 10001 is out of range: 1 to 10000");
    set_gives("cluster.role.db.min-nr-of-members=10000", NULL);
    set_gives("cluster.role.db.min-nr-of-members=10001",
              "--set: cluster.role.db.min-nr-of-members: 10001 is out of range: 1 to 10000");
    set_gives("remote.maximum-frame-size=64MiB", NULL);
    set_gives("remote.maximum-frame-size=67108865",
              "--set: remote.maximum-frame-size: 67108865 is out of range: 32000B to 65536KiB");
}

/* TRPI_CONFIG_TEXT_BYTES_MAX, and one past it */
static void
values_have_so_many_bytes_and_not_one_more(void)
{
    char assignment[TRPI_CONFIG_TEXT_BYTES_MAX + 32];
    size_t before = (size_t)snprintf(assignment, sizeof assignment, "app.k=");
    memset(assignment + before, 'v', TRPI_CONFIG_TEXT_BYTES_MAX + 1);
    assignment[before + TRPI_CONFIG_TEXT_BYTES_MAX + 1] = '\0';
    set_gives(assignment, "--set: app.k: the value is longer than 4095 bytes");
    assignment[before + TRPI_CONFIG_TEXT_BYTES_MAX] = '\0';
    set_gives(assignment, NULL);
}

static void
mistakes_in_flags_and_environment_are_refused(void)
{
    set_gives("log.level", "--set log.level: expected KEY=VALUE, like log.level=debug");
    set_gives(
        "cluster.gosip-interval=1s",
        "--set: no such key 'cluster.gosip-interval'; did you mean 'cluster.gossip-interval'?");
    set_gives("cluster.seed-nodes=troupe.tcp://a@b:1,self", NULL);
    set_gives("app.greeting=hi", NULL);
    env_gives("TROUPE_CLUSTER_GOSIP_INTERVAL=1s",
              "environment TROUPE_CLUSTER_GOSIP_INTERVAL: no such key; "
              "did you mean TROUPE_CLUSTER_GOSSIP_INTERVAL?");
    env_gives("TROUPE_LOG_LEVEL=loud",
              "environment TROUPE_LOG_LEVEL: log.level: 'loud' is not one of "
              "error|warning|info|debug|off");
    env_gives("TROUPE_CLUSTER_DOWNING_STABLE_AFTER=5s", NULL);
    env_gives("TROUPE_SOCKET=/tmp/x", NULL); /* the client's */
}

static void
lists_are_limited(void)
{
    char text[TRPI_CONFIG_LIST_MAX * 4 + 64];
    for (int extra = 0; extra < 2; extra++) {
        size_t count = (size_t)snprintf(text, sizeof text, "cluster { roles = { r");
        for (int i = 1; i < TRPI_CONFIG_LIST_MAX + extra; i++) {
            count += (size_t)snprintf(text + count, sizeof text - count, ",r");
        }
        snprintf(text + count, sizeof text - count, " } }");
        text_gives(text, extra ? "t.conf:1: cluster.roles has more than 256 values" : NULL);
    }
}

static void
app_is_limited_in_keys_and_depth(void)
{
    char *text = malloc(64 * 1024);
    UNIT_REQUIRE(text != NULL);
    for (int extra = 0; extra < 2; extra++) {
        size_t count = (size_t)snprintf(text, 64 * 1024, "app {");
        for (int i = 0; i < TRPI_CONFIG_APP_KEYS_MAX + extra; i++) {
            count += (size_t)snprintf(text + count, 64 * 1024 - count, " k%d = 1", i);
        }
        snprintf(text + count, 64 * 1024 - count, " }");
        text_gives(text, extra ? "t.conf:1: app has more than 256 keys" : NULL);
    }
    free(text);
    text_gives("app { a { b { c { d { e { f { g { h = 1 } } } } } } } }", NULL);
    text_gives("app { a { b { c { d { e { f { g { h { i = 1 } } } } } } } } }",
               "t.conf:1: app has more than 8 sections inside one another");
}

static void
missing_file_is_an_error_of_its_own(void)
{
    trpi_config *config = config_new();
    trpi_config_error error = { "" };
    UNIT_EQUAL(trpi_config_load_file(config, "/nonexistent/t.conf", &error), TRP_ENOENT);
    UNIT_TEXT(error.text, "/nonexistent/t.conf: No such file or directory");
    trpi_config_free(config);
}

static void *
load_often(void *arg)
{
    long *failures = arg;
    for (int i = 0; i < 50; i++) {
        trpi_config *config = NULL;
        trpi_config_error error = { "" };
        if (trpi_config_new(&config) != TRP_OK ||
            trpi_config_load_text(config, "t", "system = x app { a { b = 1 } }", &error) !=
                TRP_OK) {
            (*failures)++;
        }
        trpi_config_free(config);
    }
    return NULL;
}

static void
two_threads_may_load_at_one_time(void)
{
    pthread_t threads[2];
    long failures[2] = { 0, 0 };
    for (int i = 0; i < 2; i++) {
        UNIT_REQUIRE(pthread_create(&threads[i], NULL, load_often, &failures[i]) == 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        UNIT_EQUAL(failures[i], 0);
    }
}

UNIT_BEGIN("config")
UNIT(every_default_passes_its_own_check)
UNIT(engines_have_the_defaults_of_the_table)
UNIT(file_values_are_read_with_their_types_and_origin)
UNIT(flags_beat_environment_beats_file_beats_default_in_any_order)
UNIT(app_takes_any_key_at_any_depth)
UNIT(a_duration_that_may_be_0_may_be_off)
UNIT(durations_and_sizes_are_exact)
UNIT(a_byte_order_mark_is_no_part_of_a_file)
UNIT(lines_are_counted_right_behind_comments)
UNIT(variables_are_replaced_in_the_file)
UNIT(mistakes_in_a_file_are_refused_with_place_and_right_name)
UNIT(keys_of_akka_that_are_not_here_say_what_to_write)
UNIT(keys_of_akkas_sockets_that_are_not_here_say_what_to_write)
UNIT(ranges_hold_at_the_limit_and_not_one_past_it)
UNIT(values_have_so_many_bytes_and_not_one_more)
UNIT(mistakes_in_flags_and_environment_are_refused)
UNIT(lists_are_limited)
UNIT(app_is_limited_in_keys_and_depth)
UNIT(missing_file_is_an_error_of_its_own)
UNIT(two_threads_may_load_at_one_time)
UNIT_END

/* node_options_test.c - flags of `troupe node`, keys against each other, and log lines. */
#include <stdlib.h>

#include <troupe/lease.h>

#include "cluster/node/node_log.h"
#include "cluster/node/node_options.h"
#include "cluster/node/seed_dns.h"
#include "tests/unit/unit.h"

static int
parse(trpi_node_options *options, int argc, const char *const *argv)
{
    char *copy[TRPI_NODE_SETTINGS_MAX + 2];
    for (int i = 0; i < argc; i++) {
        copy[i] = (char *)(uintptr_t)argv[i];
    }
    return trpi_node_options_parse(argc, copy, 0, options);
}
#define PARSE(options, ...)                                                                        \
    parse((options), (int)(sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *)),              \
          (const char *[]){ __VA_ARGS__ })

/* CONF-2 */
static void
flags_are_keys_and_lists_gather(void)
{
    static trpi_node_options options;
    trpi_config *config = NULL;
    trpi_config_error error = { "" };
    trpi_config_entry entry;
    UNIT_EQUAL(PARSE(&options, "node", "--port=0", "--seed", "self", "--role", "a", "--seed",
                     "troupe.tcp://demo@h:1", "--set", "log.level=debug", "--host", "h"),
               0);
    UNIT_REQUIRE(trpi_node_config_build(&options, NULL, &config, &error) == TRP_OK);
    UNIT_EQUAL(trpi_config_int(config, "remote.port"), 0);
    UNIT_TEXT(trpi_config_text(config, "remote.hostname"), "h");
    UNIT_TEXT(trpi_config_text(config, "log.level"), "debug");
    UNIT_EQUAL(trpi_config_list_count(config, "cluster.seed-nodes"), 2);
    UNIT_TEXT(trpi_config_list_at(config, "cluster.seed-nodes", 1), "troupe.tcp://demo@h:1");
    UNIT_EQUAL(trpi_config_list_count(config, "cluster.roles"), 1);
    UNIT_REQUIRE(trpi_config_find(config, "remote.port", &entry));
    UNIT_TEXT(entry.origin, "--port");
    trpi_config_free(config);
}

static void
wrong_flags_are_usage_errors(void)
{
    static trpi_node_options options;
    UNIT_EQUAL(PARSE(&options, "node", "--prot", "1"), 64);
    UNIT_EQUAL(PARSE(&options, "node", "--port"), 64);
    UNIT_EQUAL(PARSE(&options, "node", "--help=1"), 64);
    UNIT_EQUAL(PARSE(&options, "node", "stray"), 64);
    UNIT_EQUAL(PARSE(&options, "node", "-o", "json"), 64); /* of config show */
    UNIT_EQUAL(PARSE(&options, "node", "--origin"), 64);
    UNIT_EQUAL(PARSE(&options, "node", "-h"), 0);
    UNIT_TRUE(options.help);
}

static void
wrong_values_name_the_flag(void)
{
    static trpi_node_options options;
    trpi_config *config = NULL;
    trpi_config_error error = { "" };
    UNIT_EQUAL(PARSE(&options, "node", "--port", "70000"), 0);
    UNIT_EQUAL(trpi_node_config_build(&options, NULL, &config, &error), TRP_ECONFIG);
    UNIT_TEXT(error.text, "--port: remote.port: 70000 is out of range: 0 to 65535");
}

/* TRPI_NODE_SETTINGS_MAX, and one past it */
static void
so_many_flags_are_taken_and_not_one_more(void)
{
    static trpi_node_options options;
    const char *argv[TRPI_NODE_SETTINGS_MAX + 2] = { "node" };
    for (int i = 1; i < TRPI_NODE_SETTINGS_MAX + 2; i++) {
        argv[i] = "--role=a";
    }
    UNIT_EQUAL(parse(&options, TRPI_NODE_SETTINGS_MAX + 1, argv), 0);
    UNIT_EQUAL(options.settings_count, TRPI_NODE_SETTINGS_MAX);
    UNIT_EQUAL(parse(&options, TRPI_NODE_SETTINGS_MAX + 2, argv), 64);
}

static void
log_lines_are_one_line_each(void)
{
    char buffer[512];
    trp_log_line line = { .level = TRP_LOG_WARNING,
                          .source = "clu\"ster",
                          .text = "a\nb\x01 \"c\"",
                          .wall_ms = 1763640181204 };
    size_t bytes = trp_log_format(&line, false, buffer, sizeof buffer);
    buffer[bytes] = '\0';
    UNIT_TEXT(buffer, "2025-11-20T12:03:01.204Z warning clu\"ster a\\x0ab\\x01 \"c\"\n");
    bytes = trp_log_format(&line, true, buffer, sizeof buffer);
    buffer[bytes] = '\0';
    UNIT_TEXT(
        buffer,
        "{\"time\":\"2025-11-20T12:03:01.204Z\",\"level\":\"warning\",\"source\":\"clu\\\"ster\","
        "\"message\":\"a\\u000ab\\u0001 \\\"c\\\"\"}\n");
}

static void
long_log_lines_are_cut_and_stay_whole_lines(void)
{
    char text[8192], buffer[TRPI_LOG_LINE_BYTES_MAX];
    memset(text, '"', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    trp_log_line line = { .level = TRP_LOG_INFO, .source = "s", .text = text };
    for (int json = 0; json < 2; json++) {
        size_t bytes = trp_log_format(&line, json, buffer, sizeof buffer);
        UNIT_TRUE(bytes <= sizeof buffer);
        UNIT_TRUE(buffer[bytes - 1] == '\n');
        UNIT_TRUE(!json || memcmp(buffer + bytes - 3, "\"}\n", 3) == 0);
    }
}

/* ---- keys against each other ----------------------------------------------------------------- */

/* Text of a file, and what its check says; NULL: nothing. */
static void
checked(const char *text, const char *want)
{
    trpi_config *config = NULL;
    trpi_config_error error = { "" };
    UNIT_REQUIRE(trpi_config_new(&config) == TRP_OK);
    UNIT_EQUAL(trpi_config_load_text(config, "t.conf", text, &error), TRP_OK);
    UNIT_TEXT(error.text, "");
    UNIT_EQUAL(trpi_node_config_check(config, &error), want == NULL ? TRP_OK : TRP_ECONFIG);
    UNIT_TEXT(error.text, want == NULL ? "" : want);
    trpi_config_free(config);
}

/* At the limit, and one past it: with the line, and what to do */
static void
keys_that_contradict_each_other_are_refused(void)
{
    checked("", NULL);
    checked("remote { retry-backoff-min = 10s }", NULL);
    checked("remote { retry-backoff-min = 10001ms }",
            "t.conf:1: remote.retry-backoff-min: remote.retry-backoff-min = 10001ms is more than "
            "remote.retry-backoff-max = 10s; lower the one or raise the other");
    checked("\nremote { retry-backoff-max = 49ms }",
            "t.conf:2: remote.retry-backoff-max: remote.retry-backoff-min = 50ms is more than "
            "remote.retry-backoff-max = 49ms; lower the one or raise the other");
    checked("remote { maximum-frame-size = 2MiB lane-buffer-size = 2MiB }", NULL);
    checked("remote { maximum-frame-size = 2097153B lane-buffer-size = 2MiB }",
            "t.conf:1: remote.maximum-frame-size: remote.maximum-frame-size = 2097153B is more "
            "than remote.lane-buffer-size = 2MiB: no message of that size would fit; lower the one "
            "or raise the other");
    checked("remote { resend-interval = 30s give-up-system-message-after = 20s }",
            "t.conf:1: remote.resend-interval: remote.resend-interval = 30s is more than "
            "remote.give-up-system-message-after = 20s: nothing would be sent again; lower the "
            "one or raise the other");
    checked("dispatcher \"d\" { fork-join-executor { parallelism-min = 4 parallelism-max = 4 } }",
            NULL);
    checked("dispatcher \"d\" { fork-join-executor { parallelism-min = 5 parallelism-max = 4 } }",
            "t.conf:1: dispatcher.d.fork-join-executor.parallelism-min: "
            "dispatcher.d.fork-join-executor.parallelism-min = 5 is more than "
            "dispatcher.d.fork-join-executor.parallelism-max = 4; lower the one or raise the "
            "other");
    checked("deployment \"/a\" { resizer { lower-bound = 3 upper-bound = 2 } }",
            "t.conf:1: deployment./a.resizer.lower-bound: deployment./a.resizer.lower-bound = 3 is "
            "more than deployment./a.resizer.upper-bound = 2; lower the one or raise the other");
}

static void
security_without_its_means_is_refused(void)
{
    checked("remote { require-cookie = on secure-cookie = abc }", NULL);
    checked("remote { require-cookie = on }",
            "t.conf:1: remote.require-cookie: it is on, and remote.secure-cookie is empty; "
            "`troupe cookie gen` makes one");
    checked("remote { transport = tls tls { ca = \"/dev/null\" cert = \"/dev/null\" key = "
            "\"/dev/null\" } }",
            NULL);
    checked("remote { transport = tls tls { ca = \"/dev/null\" cert = \"/dev/null\" } }",
            "t.conf:1: remote.transport: TLS needs the files remote.tls.ca, .cert and .key, and "
            "remote.tls.key is empty; `troupe cert` makes them");
    checked("remote { transport = tls tls { ca = \"/dev/null\" cert = \"/nonexistent/a.pem\" "
            "key = \"/dev/null\" } }",
            "t.conf:1: remote.tls.cert: /nonexistent/a.pem: No such file or directory");
}

static void
nodes_that_cannot_be_members_are_refused(void)
{
    checked("remote { hostname = g }\ncluster { seed-nodes = { self, \"troupe.tcp://demo@h:1\" } }",
            NULL);
    checked("cluster { seed-nodes = { self, \"troupe.tcp://demo@127.0.0.9:1\" } }", NULL);
    checked("cluster { seed-nodes = { self, \"troupe.tcp://demo@h:1\" } }",
            "remote.hostname: 127.0.0.1, and the seed node is troupe.tcp://demo@h:1: an address on "
            "loopback can be dialled from its own host only; give every node the address by which "
            "the others reach it (remote.hostname, --host), or all of them one on loopback");
    checked(
        "remote { hostname = g }\ncluster { seed-nodes = { \"troupe.tcp://demo@localhost:1\" } }",
        "t.conf:1: remote.hostname: g, and the seed node is troupe.tcp://demo@localhost:1: an "
        "address on loopback can be dialled from its own host only; give every node the "
        "address by which the others reach it (remote.hostname, --host), or all of them one "
        "on loopback");
    checked("system = bank\ncluster { seed-nodes = { \"troupe.tcp://demo@h:1\" } }",
            "t.conf:2: cluster.seed-nodes: troupe.tcp://demo@h:1: this node is troupe.tcp://bank "
            "(--system); members have the same system name and protocol");
    checked("cluster { may-create-cluster = off seed-nodes = { self, "
            "\"troupe.tcp://demo@127.0.0.1:2553\" } }",
            NULL);
    checked("cluster { may-create-cluster = off seed-nodes = { self, "
            "\"troupe.tcp://demo@127.0.0.1:2552\" } }",
            "t.conf:1: cluster.seed-nodes: it names only this node, and cluster.may-create-cluster "
            "is off, so this node could never join; name another seed node, or set that key to on");
    checked("cluster { downing { active-strategy = keep-referee } }",
            "t.conf:1: cluster.downing.active-strategy: keep-referee needs "
            "cluster.downing.keep-referee.address, the node whose side stays, as in "
            "troupe.tcp://demo@10.0.0.1:2552");
    checked("cluster { downing { keep-referee { address = \"troupe.tcp://bank@h:1\" } } }",
            "t.conf:1: cluster.downing.keep-referee.address: troupe.tcp://bank@h:1: this node is "
            "troupe.tcp://demo (--system); members have the same system name and protocol");
}

static const char letters[] = /* 260 */
    "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklm"
    "nopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"
    "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklm"
    "nopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";

static void
seeds_by_dns_stand_alone_and_have_a_name(void)
{
    if (!trpi_seed_dns_is_built()) {
        checked("cluster { seed-dns { name = seeds.example } }",
                "t.conf:1: cluster.seed-dns.name: this build has no c-ares; apt-get install "
                "libc-ares-dev, configure again");
        return;
    }
    checked("cluster { seed-dns { name = seeds.example } }", NULL);
    checked(
        "cluster { seed-nodes = { self } seed-dns { name = seeds.example } }",
        "t.conf:1: cluster.seed-dns.name: cluster.seed-nodes is given, too; leave one of them out");
    checked(
        "cluster { seed-dns { name = \"troupe.tcp://demo@seeds.example:1\" } }",
        "t.conf:1: cluster.seed-dns.name: 'troupe.tcp://demo@seeds.example:1' is no name; write "
        "seeds.example.org, or _troupe._tcp.example.org for SRV records");
    char text[TRPI_SEED_DNS_NAME_BYTES_MAX + 64], want[256];
    (void)snprintf(want, sizeof want,
                   "t.conf:1: cluster.seed-dns.name: '%.*s' is no name; write seeds.example.org, "
                   "or _troupe._tcp.example.org for SRV records",
                   64, letters);
    for (int bytes = TRPI_SEED_DNS_NAME_BYTES_MAX; bytes <= TRPI_SEED_DNS_NAME_BYTES_MAX + 1;
         bytes++) {
        (void)snprintf(text, sizeof text, "cluster { seed-dns { name = %.*s } }", bytes, letters);
        checked(text, bytes == TRPI_SEED_DNS_NAME_BYTES_MAX ? NULL : want);
    }
}

static void
the_name_of_a_lease_has_a_length(void)
{
    char text[TRP_LEASE_NAME_BYTES_MAX + 64];
    for (int bytes = TRP_LEASE_NAME_BYTES_MAX; bytes <= TRP_LEASE_NAME_BYTES_MAX + 1; bytes++) {
        (void)snprintf(text, sizeof text, "cluster { downing { lease { name = %.*s } } }", bytes,
                       letters);
        checked(text, bytes == TRP_LEASE_NAME_BYTES_MAX
                          ? NULL
                          : "t.conf:1: cluster.downing.lease.name: longer than 127 bytes");
    }
}

/* CROUTE-05, -07, -13: before there is a router; what a program may still bring is no mistake */
static void
sections_of_which_no_router_can_be_made_are_refused(void)
{
    checked("deployment \"/a\" { cluster { enabled = on max-total-nr-of-instances = 4 } }\n"
            "deployment \"/b\" { dispatcher = pinned remote = \"troupe.tcp://demo@h:1\" }\n"
            "deployment \"/c\" { router = my-own-logic nr-of-instances = 3 }\n"
            "deployment \"/d\" { cluster { max-nr-of-instances-per-node = 3 } }\n"
            "deployment \"/e\" { router = adaptive-group cluster { enabled = on use-role = db\n"
            "  routees-path = /user/worker } }\n"
            "deployment \"/f\" { router = round-robin resizer { lower-bound = 2 } }\n",
            NULL);
    checked("\ndeployment \"/a\" { nr-of-instances = 3 cluster { enabled = on "
            "max-total-nr-of-instances = 4 } }",
            "t.conf:2: deployment \"/a\": nr-of-instances 3 and "
            "cluster.max-total-nr-of-instances 4 both say how many routees there are in all: "
            "keep one");
    checked("deployment \"/a\" { cluster { enabled = on routees-path = /user/worker "
            "max-nr-of-instances-per-node = 2 } }",
            "t.conf:1: deployment \"/a\": cluster.max-nr-of-instances-per-node 2 with "
            "cluster.routees-path: one routee is found on each node");
    checked("deployment \"/a\" { cluster { use-role = db }\n"
            "  target { nodes = { \"troupe.tcp://demo@h:1\" } } }",
            "t.conf:1: deployment \"/a\": a cluster-aware router cannot have target.nodes, or a "
            "node of the code: the cluster says on which nodes they are made");
    checked("deployment \"/a\" { router = balancing-pool cluster { enabled = on } }",
            "t.conf:1: deployment \"/a\": a cluster-aware router cannot have balancing, whose "
            "routees share a mailbox of one node");
    checked("deployment \"/a\" { router = random remote = \"troupe.tcp://demo@h:1\" }",
            "t.conf:1: deployment \"/a\": remote: a router stays where it is made; target.nodes "
            "says where its routees live");
    checked("deployment \"/a\" { cluster { enabled = on routees-path = worker } }",
            "t.conf:1: deployment \"/a\": cluster.routees-path: \"worker\" is no path on any node: "
            "write /user/worker");
}

static void
notes_are(const char *text, const char *notes_expected)
{
    char *notes = NULL;
    size_t bytes = 0;
    trpi_config *config = NULL;
    trpi_config_error error = { "" };
    FILE *out = open_memstream(&notes, &bytes);
    UNIT_REQUIRE(out != NULL && trpi_config_new(&config) == TRP_OK);
    UNIT_EQUAL(trpi_config_load_text(config, "t.conf", text, &error), TRP_OK);
    trpi_node_config_notes(config, out);
    (void)fclose(out);
    UNIT_TEXT(notes, notes_expected);
    free(notes);
    trpi_config_free(config);
}

/* A name that nothing here defines may come from a plugin: a note, with the nearest name */
static void
names_that_nothing_defines_are_noted(void)
{
    static const char text[] = "dispatcher \"my-pool\" { type = pool mailbox-type = bounded }\n"
                               "deployment \"/a\" { dispatcher = my-pool }\n"
                               "deployment \"/b\" { dispatcher = pinned mailbox = counted }\n"
                               "deployment \"/c\" { dispatcher = my-pol }\n"
                               "deployment \"/d\" { mailbox = other }\n"
                               "deployment \"/e\" { router = broadcast-group }\n"
                               "deployment \"/f\" { router = sticky-pool }\n";
    notes_are(text,
              "note: t.conf:4: deployment./c.dispatcher: no dispatcher \"my-pol\" stands here; "
              "define it, or see that a plugin does; did you mean 'my-pool'?\n"
              "note: t.conf:5: deployment./d.mailbox: no mailbox \"other\" stands here; define "
              "it, or see that a plugin does\n"
              "note: t.conf:7: deployment./f.router: no routing logic is called \"sticky-pool\" "
              "here; see that a plugin registers it\n");
}

/* 5 * 20 s, 15 s, 2 s and 5 s: to the millisecond; or release-after, when it is longer. */
static void
a_leave_timeout_below_the_time_that_a_lease_is_kept_is_warned_of(void)
{
#define LEASE(more) "cluster { leave-timeout = " more " } }"
    notes_are(LEASE("122s downing { active-strategy = lease"), "");
    notes_are(
        LEASE("121999ms downing { active-strategy = lease"),
        "warning: cluster.leave-timeout = 121999ms: a node that owns the lease and is told to "
        "leave after a partition keeps the lease for up to 122 s; it gives up before, ends, "
        "and the other side may acquire the lease; make cluster.leave-timeout 122 s at least, "
        "or leave so long after the last partition\n");
    notes_are(LEASE("121999ms downing { active-strategy = keep-oldest"), "");
    notes_are(LEASE("200s downing { active-strategy = lease lease { release-after = 200s }"), "");
    notes_are(
        LEASE("199s downing { active-strategy = lease lease { release-after = 200s }"),
        "warning: cluster.leave-timeout = 199s: a node that owns the lease and is told to "
        "leave after a partition keeps the lease for up to 200 s; it gives up before, ends, "
        "and the other side may acquire the lease; make cluster.leave-timeout 200 s at least, "
        "or leave so long after the last partition\n");
#undef LEASE
}

/* 20 s, half as long again, 3 s and 7 s; to the millisecond */
static void
a_leave_timeout_that_ends_before_the_strategy_decides_is_warned_of(void)
{
    notes_are("", "");
    notes_are("cluster { leave-timeout = 40s }", "");
    notes_are("cluster { leave-timeout = 39999ms }",
              "warning: cluster.leave-timeout = 39999ms and cluster.downing.stable-after = 20s: a "
              "node that is told to leave when another one has just crashed gives up before "
              "keep-majority decides, and counts as a second crash; make cluster.leave-timeout 40 "
              "s at least\n");
    notes_are("cluster { downing { stable-after = 30s } }",
              "warning: cluster.leave-timeout = 45s and cluster.downing.stable-after = 30s: a "
              "node that is told to leave when another one has just crashed gives up before "
              "keep-majority decides, and counts as a second crash; make cluster.leave-timeout 55 "
              "s at least\n");
    notes_are("cluster { downing { stable-after = 30s active-strategy = manual } }", "");
    notes_are("cluster { leave-timeout = 15s downing { active-strategy = auto-down-after } }", "");
}

UNIT_BEGIN("node_options")
UNIT(flags_are_keys_and_lists_gather)
UNIT(wrong_flags_are_usage_errors)
UNIT(wrong_values_name_the_flag)
UNIT(so_many_flags_are_taken_and_not_one_more)
UNIT(log_lines_are_one_line_each)
UNIT(long_log_lines_are_cut_and_stay_whole_lines)
UNIT(keys_that_contradict_each_other_are_refused)
UNIT(security_without_its_means_is_refused)
UNIT(nodes_that_cannot_be_members_are_refused)
UNIT(seeds_by_dns_stand_alone_and_have_a_name)
UNIT(a_leave_timeout_below_the_time_that_a_lease_is_kept_is_warned_of)
UNIT(the_name_of_a_lease_has_a_length)
UNIT(sections_of_which_no_router_can_be_made_are_refused)
UNIT(names_that_nothing_defines_are_noted)
UNIT(a_leave_timeout_that_ends_before_the_strategy_decides_is_warned_of)
UNIT_END

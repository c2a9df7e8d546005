/* node_test.c - a node inside a program: opened from settings, seen through its control socket,
 * ended. */
#include <stdatomic.h>
#include <stdlib.h>

#include <troupe/metrics.h>

#include "cluster/engine/membership_core.h"
#include "cluster/engine/ident.h"
#include "cluster/node/node_plugin.h"
#include "cluster/node/node_private.h"
#include "cluster/shell/shell.h"
#include "remote/security/cookie.h"
#include "tests/unit/node/inside.h"

static bool
self_is_up(trp_node *node)
{
    trp_member self;
    return trp_cluster_self(trp_node_system(node), &self) == TRP_OK && self.status == TRP_MEMBER_UP;
}

/* REMOTE-01 */
static void
wrong_settings_are_refused_with_a_sentence(void)
{
    static const struct {
        const char *setting;
        trp_err err;
        const char *text;
    } cases[] = {
        { "cluster.seed-nodes=self,troupe.tls://demo@127.0.0.1:1", TRP_ECONFIG,
          "settings: cluster.seed-nodes: troupe.tls://demo@127.0.0.1:1: this node is "
          "troupe.tcp://demo (--system); members have the same system name and protocol" },
        { "cluster.gosip-interval=1s", TRP_ECONFIG,
          "settings: no such key 'cluster.gosip-interval'; did you mean "
          "'cluster.gossip-interval'?" },
        { "plugins=/nonexistent.so", TRP_ECONFIG,
          "plugin /nonexistent.so: /nonexistent.so: cannot open shared object file: No such file "
          "or directory" },
        { "cluster.seed-nodes=troupe.tcp://other@127.0.0.1:1", TRP_ECONFIG,
          "settings: cluster.seed-nodes: troupe.tcp://other@127.0.0.1:1: this node is "
          "troupe.tcp://demo "
          "(--system); members "
          "have the same system name and protocol" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *extra[] = { cases[i].setting, NULL };
        trp_node *node = NULL;
        trp_node_error error = { "" };
        UNIT_EQUAL(node_open(extra, &node, &error), cases[i].err);
        UNIT_TEXT(error.text, cases[i].text);
        UNIT_TRUE(node == NULL);
    }
}

/* A list of so many, each the same, and another setting (NULL: none); what opening a node says. */
static trp_err
open_with_many(const char *key, size_t count, const char *each, const char *also,
               trp_node_error *ret_error)
{
    char setting[8192];
    const char *extra[] = { setting, also, NULL };
    size_t used = (size_t)snprintf(setting, sizeof setting, "%s=%s", key, each);
    trp_node *node = NULL;
    for (size_t i = 1; i < count; i++) {
        used += (size_t)snprintf(setting + used, sizeof setting - used, ",%s", each);
    }
    trp_err err = node_open(extra, &node, ret_error);
    trp_node_close(node);
    return err;
}

/* TRPI_PLUGINS_MAX, TRPI_ROLES_MAX, TRP_CLUSTER_SEEDS_MAX, TRPI_SECRET_BYTES_MAX: at them, and one
 * past */
static void
settings_are_limited(void)
{
    char cookie[TRPI_SECRET_BYTES_MAX + 2];
    trp_node_error error = { "" };
    UNIT_EQUAL(open_with_many("plugins", TRPI_PLUGINS_MAX, "/n.so", NULL, &error), TRP_ECONFIG);
    UNIT_TRUE(strncmp(error.text, "plugin /n.so: ", 14) == 0); /* the first one is not there */
    UNIT_EQUAL(open_with_many("plugins", TRPI_PLUGINS_MAX + 1, "/n.so", NULL, &error), TRP_ECONFIG);
    UNIT_TEXT(error.text, "plugins: more than 64");
    UNIT_EQUAL(open_with_many("cluster.roles", TRPI_ROLES_MAX, "r", NULL, &error), TRP_OK);
    UNIT_EQUAL(open_with_many("cluster.roles", TRPI_ROLES_MAX + 1, "r", NULL, &error), TRP_ECONFIG);
    UNIT_TEXT(error.text, "cluster.roles: more than 32");
    UNIT_EQUAL(open_with_many("cluster.seed-nodes", TRP_CLUSTER_SEEDS_MAX, "self", NULL, &error),
               TRP_OK);
    UNIT_EQUAL(
        open_with_many("cluster.seed-nodes", TRP_CLUSTER_SEEDS_MAX + 1, "self", NULL, &error),
        TRP_ECONFIG);
    UNIT_TEXT(error.text, "cluster.seed-nodes: more than 32");
    memset(cookie, 'c', sizeof cookie);
    cookie[TRPI_SECRET_BYTES_MAX + 1] = '\0';
    UNIT_EQUAL(
        open_with_many("remote.secure-cookie", 1, cookie, "remote.require-cookie=on", &error),
        TRP_ECONFIG);
    UNIT_TEXT(error.text, "settings: remote.secure-cookie: longer than 255 bytes");
    cookie[TRPI_SECRET_BYTES_MAX] = '\0';
    UNIT_EQUAL(
        open_with_many("remote.secure-cookie", 1, cookie, "remote.require-cookie=on", &error),
        TRP_OK);
}

static void
taken_port_is_refused(void)
{
    trp_node *first = NULL, *second = NULL;
    trp_node_error error = { "" };
    char port[64];
    UNIT_REQUIRE(node_open(NULL, &first, &error) == TRP_OK);
    snprintf(port, sizeof port, "remote.port=%s", strrchr(trp_node_address(first), ':') + 1);
    const char *extra[] = { port, NULL };
    UNIT_EQUAL(node_open(extra, &second, &error), TRP_EADDRINUSE);
    UNIT_TRUE(strstr(error.text, "another program has the port") != NULL);
    trp_node_close(first);
}

static void
leaving_what_was_never_joined_ends_at_once(void)
{
    trp_node *node = NULL;
    trp_node_error error = { "" };
    trp_node_end end = (trp_node_end)0;
    UNIT_REQUIRE(node_open(NULL, &node, &error) == TRP_OK);
    UNIT_EQUAL(trp_node_await(node, 1, &end), TRP_ETIMEDOUT);
    trp_node_leave(node);
    trp_node_leave(node);
    UNIT_EQUAL(trp_node_await(node, 60000, &end), TRP_OK);
    UNIT_EQUAL(end, TRP_NODE_LEFT);
    trp_node_close(node);
}

static void
node_tells_when_its_system_has_ended(void)
{
    trp_node *node = NULL;
    trp_node_error error = { "" };
    trp_node_end end = (trp_node_end)0;
    UNIT_REQUIRE(node_open(NULL, &node, &error) == TRP_OK);
    trp_system_shutdown(trp_node_system(node));
    UNIT_EQUAL(trp_node_await(node, 60000, &end), TRP_OK);
    UNIT_EQUAL(end, TRP_NODE_TERMINATED);
    trp_node_close(node);
}

/* CONF-25 */
static void
configuration_is_there_for_the_program(void)
{
    const char *extra[] = { "app.greeting=hello", "cluster.roles=a,b", NULL };
    trp_node *node = NULL;
    trp_node_error error = { "" };
    UNIT_REQUIRE(node_open(extra, &node, &error) == TRP_OK);
    UNIT_TEXT(trp_node_config_get(node, "app.greeting", 0), "hello");
    UNIT_TEXT(trp_node_config_get(node, "cluster.roles", 1), "b");
    UNIT_TRUE(trp_node_config_get(node, "cluster.roles", 2) == NULL);
    UNIT_TRUE(trp_node_config_get(node, "app.other", 0) == NULL);
    UNIT_TRUE(trp_node_control_path(node) == NULL);
    trp_node_close(node);
}

/* CLI-05, CLI-06, CLI-09 */
static void
lone_node_forms_a_cluster_answers_and_leaves(void)
{
    char path[128];
    socket_setting(path, sizeof path);
    const char *extra[] = { "cluster.seed-nodes=self", "cluster.roles=backend",
                            "cluster.control-socket=on", path, NULL };
    trp_node *node = NULL;
    trp_node_error error = { "" };
    trp_node_end end = (trp_node_end)0;
    UNIT_REQUIRE(node_open(extra, &node, &error) == TRP_OK);
    UNIT_WAIT(self_is_up(node), 60000);
    const char *socket_path = trp_node_control_path(node);
    UNIT_REQUIRE(socket_path != NULL);
    cJSON *reply = control_ask(socket_path, "{\"cmd\":\"members\"}");
    UNIT_REQUIRE(reply != NULL);
    UNIT_TEXT(trpi_json_get_text(reply, "selfNode"), trp_node_address(node));
    UNIT_TEXT(trpi_json_get_text(reply, "selfStatus"), "Up");
    UNIT_TEXT(trpi_json_get_text(reply, "leader"), trp_node_address(node));
    UNIT_TEXT(trpi_json_get_text(cJSON_GetObjectItem(reply, "oldestPerRole"), "backend"),
              trp_node_address(node));
    cJSON *member = cJSON_GetArrayItem(cJSON_GetObjectItem(reply, "members"), 0);
    UNIT_TEXT(trpi_json_get_text(member, "status"), "Up");
    UNIT_TRUE(cJSON_IsString(cJSON_GetObjectItem(member, "nodeUid")));
    cJSON_Delete(reply);
    reply = control_ask(socket_path,
                        "{\"cmd\":\"join\",\"addresses\":[\"troupe.tcp://demo@127.0.0.1:9\"]}");
    UNIT_EQUAL(cJSON_GetNumberValue(cJSON_GetObjectItem(reply, "exit")), TRPI_CTL_EXIT_NO);
    cJSON_Delete(reply);
    reply = control_ask(socket_path, "{\"cmd\":\"leave\"}");
    UNIT_TEXT(trpi_json_get_text(reply, "status"), "Removed");
    cJSON_Delete(reply);
    UNIT_EQUAL(trp_node_await(node, 60000, &end), TRP_OK);
    UNIT_EQUAL(end, TRP_NODE_LEFT);
    trp_node_close(node);
    UNIT_TRUE(access(path + strlen("control.socket="), F_OK) != 0);
}

static trp_err
echo_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (!trp_msg_is(msg, &trp_string_type)) {
        return TRP_EUNHANDLED;
    }
    trp_entity self;
    char text[64];
    UNIT_EQUAL(trp_entity_self(ctx, &self), TRP_OK);
    (void)snprintf(text, sizeof text, "%.*s: %.*s", self.id_bytes, self.id, (int)trp_msg_bytes(msg),
                   (const char *)trp_msg_payload(msg));
    trp_reply_text(ctx, text);
    return TRP_OK;
}

static double
exit_of(const char *socket_path, const char *request)
{
    cJSON *reply = control_ask(socket_path, request);
    UNIT_REQUIRE(reply != NULL);
    double code = cJSON_GetNumberValue(cJSON_GetObjectItem(reply, "exit"));
    cJSON_Delete(reply);
    return code;
}

/* FUTURE-20 */
static void
an_entity_is_told_and_asked_by_a_path_without_a_host(void)
{
    static const trp_behaviour echo = TRP_BEHAVIOUR_INIT("echo", char, echo_receive);
    char path[128], why[256] = "";
    socket_setting(path, sizeof path);
    const char *extra[] = { "cluster.seed-nodes=self", "cluster.control-socket=on", path, NULL };
    trp_sharding_options options = TRP_SHARDING_OPTIONS_INIT;
    trp_node *node = NULL;
    trp_node_error error = { "" };
    options.type = "echo";
    options.behaviour = &echo;
    UNIT_REQUIRE(node_open(extra, &node, &error) == TRP_OK);
    UNIT_WAIT(self_is_up(node), 60000);
    UNIT_EQUAL(trp_sharding_start(trp_node_system(node), &options, why, sizeof why), TRP_OK);
    const char *socket_path = trp_node_control_path(node);
    cJSON *reply =
        control_ask(socket_path, "{\"cmd\":\"ask\",\"path\":\"/cluster/echo/a%2Fb\",\"type\":"
                                 "\"string\",\"text\":\"hello\",\"timeoutMs\":30000}");
    UNIT_TEXT(trpi_json_get_text(reply, "from"), "/cluster/echo/a%2Fb");
    UNIT_TEXT(trpi_json_get_text(cJSON_GetObjectItem(reply, "reply"), "text"), "a/b: hello");
    cJSON_Delete(reply);
    reply = control_ask(socket_path, "{\"cmd\":\"send\",\"path\":\"/cluster/echo/c\",\"type\":"
                                     "\"string\",\"text\":\"hello\"}");
    UNIT_TEXT(trpi_json_get_text(reply, "path"), "/cluster/echo/c");
    cJSON_Delete(reply);
    UNIT_EQUAL(exit_of(socket_path, "{\"cmd\":\"ask\",\"path\":\"/cluster/echo/a\",\"type\":"
                                    "\"json\",\"text\":\"[1]\",\"timeoutMs\":30000}"),
               TRPI_CTL_EXIT_NO);
    UNIT_EQUAL(exit_of(socket_path, "{\"cmd\":\"ask\",\"path\":\"/cluster/none/a\",\"type\":"
                                    "\"string\",\"text\":\"hello\"}"),
               TRPI_CTL_EXIT_NOT_FOUND);
    UNIT_EQUAL(exit_of(socket_path, "{\"cmd\":\"send\",\"path\":\"/cluster/echo/\",\"type\":"
                                    "\"string\",\"text\":\"hello\"}"),
               TRPI_CTL_EXIT_USAGE);
    trp_node_close(node);
}

/* Lines take their time; counts those that speak of actors which did not end. */
static void
slow_log(void *arg, const trp_log_line *line)
{
    atomic_int *unended = arg;
    (void)nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    atomic_fetch_add(unended, strstr(line->text, "does not stop") != NULL);
}

/* A start that fails before the phases of shutdown are known gives its actors time to end too. */
static void
failed_start_lets_its_actors_end(void)
{
    atomic_int unended = 0;
    const char *settings[] = { "remote.port=0", "log.level=debug", "actor.debug.lifecycle=on",
                               "cluster.failure-detector.implementation-class=nobody", NULL };
    trp_node_options options = TRP_NODE_OPTIONS_INIT;
    trp_node *node = NULL;
    trp_node_error error = { "" };
    options.settings = settings;
    options.environment_ignored = 1;
    options.log = slow_log;
    options.log_arg = &unended;
    UNIT_EQUAL(trp_node_open(&options, &node, &error), TRP_ECONFIG);
    UNIT_TRUE(strstr(error.text, "no failure detector 'nobody'") != NULL);
    UNIT_EQUAL(atomic_load(&unended), 0);
}

/* CLI-05: a peer that cannot be reached, with the reason and what comes next */
static void
peers_tells_the_state_the_reason_and_what_comes_next(void)
{
    char path[128];
    socket_setting(path, sizeof path);
    const char *extra[] = { "cluster.seed-nodes=troupe.tcp://demo@127.0.0.1:1",
                            "cluster.control-socket=on", path, NULL };
    trp_node *node = NULL;
    trp_node_error error = { "" };
    UNIT_REQUIRE(node_open(extra, &node, &error) == TRP_OK);
    cJSON *reply = NULL;
    const cJSON *peer = NULL;
    UNIT_WAIT((cJSON_Delete(reply),
               reply = control_ask(trp_node_control_path(node), "{\"cmd\":\"peers\"}"),
               peer = cJSON_GetArrayItem(cJSON_GetObjectItem(reply, "peers"), 0),
               peer != NULL && strcmp(trpi_json_get_text(peer, "state"), "gated") == 0),
              60000);
    UNIT_TEXT(trpi_json_get_text(reply, "selfNode"), trp_node_address(node));
    UNIT_TEXT(trpi_json_get_text(peer, "node"), "troupe.tcp://demo@127.0.0.1:1");
    UNIT_TRUE(cJSON_IsNull(cJSON_GetObjectItem(peer, "nodeUid")));
    UNIT_TRUE(strlen(trpi_json_get_text(peer, "reason")) > 0);
    UNIT_TRUE(strstr(trpi_json_get_text(peer, "next"), "dial") != NULL);
    cJSON_Delete(reply);
    trp_node_close(node);
}

/* CONF-22, MEMB-32, SEED-04: each key arrives where it belongs; no two have one value */
static void
keys_of_the_membership_reach_the_engine(void)
{
#define KEY(key, field)                                                                            \
    {                                                                                              \
        key, offsetof(trpi_member_options, field)                                                  \
    }
    static const struct {
        const char *key;
        size_t offset; /* of its milliseconds, or number */
    } keys[] = {
        KEY("gossip-interval", gossip_interval_ms),
        KEY("leader-actions-interval", leader_actions_interval_ms),
        KEY("gossip-time-to-live", gossip_ttl_ms),
        KEY("prune-gossip-tombstones-after", prune_tombstones_after_ms),
        KEY("seed-node-timeout", seed_node_timeout_ms),
        KEY("retry-unsuccessful-join-after", retry_unsuccessful_join_after_ms),
        KEY("allow-weakly-up-members", weakly_up_after_ms),
        KEY("downing.stable-after", downing.stable_after_ms),
        KEY("downing.down-all-when-unstable", downing.unstable_after_ms),
        KEY("downing.auto-down-after", downing.auto_down_after_ms),
        KEY("downing.lease.acquire-lease-delay-for-minority", downing.lease_minority_delay_ms),
        KEY("downing.lease.operation-timeout", downing.lease_timeout_ms),
        KEY("min-nr-of-members", min_nr_of_members),
        KEY("seed-dns.required-contact-point-nr", required_contact_points),
        KEY("downing.static-quorum.quorum-size", downing.quorum_size),
        KEY("downing.keep-referee.down-all-if-less-than-nodes", downing.least_nodes),
    };
#undef KEY
    enum { KEYS = sizeof keys / sizeof keys[0], TIMES = 12, EACH = 8 };
    for (size_t from = 0; from < KEYS; from += EACH) {
        char text[EACH][96];
        const char *extra[EACH + 1] = { NULL };
        trp_node *node = NULL;
        trp_node_error error = { "" };
        for (size_t i = from; i < from + EACH; i++) {
            bool time = i < TIMES;
            snprintf(text[i - from], sizeof text[0], "cluster.%s=%zu%s", keys[i].key,
                     time ? 1100 + i : 2 + i - TIMES, time ? "ms" : "");
            extra[i - from] = text[i - from];
        }
        UNIT_REQUIRE(node_open(extra, &node, &error) == TRP_OK);
        const char *options = (const char *)&node->cluster->engine.core->options;
        for (size_t i = from; i < from + EACH; i++) {
            uint32_t is;
            memcpy(&is, options + keys[i].offset, sizeof is);
            UNIT_EQUAL(is, i < TIMES ? 1100 + i : 2 + i - TIMES);
        }
        trp_node_close(node);
    }
    static const struct { /* MEMB-32 */
        const char *text;
        uint32_t ms;
    } stats[] = { { "off", 0 }, { "0s", TRPI_STATS_ALWAYS }, { "2s", 2000 } };
    for (size_t i = 0; i < sizeof stats / sizeof stats[0]; i++) {
        char text[64];
        const char *extra[] = { text, NULL };
        trp_node *node = NULL;
        trp_node_error error = { "" };
        snprintf(text, sizeof text, "cluster.publish-stats-interval=%s", stats[i].text);
        UNIT_REQUIRE(node_open(extra, &node, &error) == TRP_OK);
        UNIT_EQUAL(node->cluster->settings.stats_interval_ms, stats[i].ms);
        trp_node_close(node);
    }
}

static uint64_t
measured(trp_node *node)
{
    trp_node_metrics own;
    size_t count = 0;
    trp_err err = trp_cluster_metrics(trp_node_system(node), &own, 1, &count);
    return err == TRP_OK && count == 1 ? own.number : 0;
}

/* CMETRIC-02: whether a node measures itself, and how often. With the default of 3 s ten
 * measurements would take 27 s. */
static void
keys_of_the_metrics_are_obeyed(void)
{
    const char *extra[] = { "cluster.seed-nodes=self", "cluster.metrics.enabled=off", NULL };
    trp_member self = { .status = 0 };
    trp_node *node = NULL;
    trp_node_error error = { "" };
    UNIT_REQUIRE(node_open(extra, &node, &error) == TRP_OK);
    UNIT_WAIT(trp_cluster_self(trp_node_system(node), &self) == TRP_OK &&
                  self.status == TRP_MEMBER_UP,
              60000);
    UNIT_TRUE(node->cluster->metrics == NULL);
    UNIT_EQUAL(measured(node), 0);
    trp_node_close(node);
    extra[1] = "cluster.metrics.collect-interval=10ms";
    UNIT_REQUIRE(node_open(extra, &node, &error) == TRP_OK);
    UNIT_WAIT(measured(node) > 0, 60000);
    uint64_t first = measured(node), began_ms = unit_now_ms();
    UNIT_WAIT(measured(node) >= first + 10, 60000);
    UNIT_TRUE(unit_now_ms() - began_ms < 27000);
    trp_node_close(node);
}

UNIT_BEGIN("node")
UNIT(keys_of_the_metrics_are_obeyed)
UNIT(keys_of_the_membership_reach_the_engine)
UNIT(wrong_settings_are_refused_with_a_sentence)
UNIT(settings_are_limited)
UNIT(taken_port_is_refused)
UNIT(failed_start_lets_its_actors_end)
UNIT(peers_tells_the_state_the_reason_and_what_comes_next)
UNIT(leaving_what_was_never_joined_ends_at_once)
UNIT(node_tells_when_its_system_has_ended)
UNIT(configuration_is_there_for_the_program)
UNIT(an_entity_is_told_and_asked_by_a_path_without_a_host)
UNIT(lone_node_forms_a_cluster_answers_and_leaves)
UNIT_END

/* fault_test.c - the test adapters of a running node, switched through its control socket. */
#include <stdatomic.h>

#include "remote/faults/fault_shaper.h"
#include "tests/unit/node/inside.h"

/* The answer to a `fault` request; the caller frees it. */
static cJSON *
fault(trp_node *node, const char *fields)
{
    char request[256];
    (void)snprintf(request, sizeof request, "{\"cmd\":\"fault\"%s}", fields);
    cJSON *reply = control_ask(trp_node_control_path(node), request);
    UNIT_TRUE(reply != NULL);
    return reply;
}

static void
refused(trp_node *node, const char *fields, int code, const char *reason)
{
    cJSON *reply = fault(node, fields);
    UNIT_TRUE(cJSON_IsFalse(cJSON_GetObjectItem(reply, "ok")));
    UNIT_EQUAL((int)cJSON_GetNumberValue(cJSON_GetObjectItem(reply, "exit")), code);
    UNIT_TRUE(strstr(trpi_json_get_text(reply, "error"), reason) != NULL);
    cJSON_Delete(reply);
}

/* The rules after this request, as "peer send/receive; ...". */
static void
rules_are(trp_node *node, const char *fields, const char *want)
{
    char text[512] = "";
    const cJSON *row;
    cJSON *reply = fault(node, fields);
    UNIT_TRUE(cJSON_IsTrue(cJSON_GetObjectItem(reply, "ok")));
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(reply, "rules"))
    {
        size_t at = strlen(text);
        (void)snprintf(text + at, sizeof text - at, "%s%s %s/%s", at ? "; " : "",
                       trpi_json_get_text(row, "peer"), trpi_json_get_text(row, "send"),
                       trpi_json_get_text(row, "receive"));
    }
    UNIT_TEXT(text, want);
    cJSON_Delete(reply);
}

static trp_node *
opened(const char *adapters)
{
    char path[128];
    socket_setting(path, sizeof path);
    const char *extra[] = { "cluster.control-socket=on", path, adapters, NULL };
    trp_node *node = NULL;
    trp_node_error error = { "" };
    UNIT_REQUIRE(node_open(extra, &node, &error) == TRP_OK);
    return node;
}

static _Atomic int warned;

static void
find_warning(void *arg, const trp_log_line *line)
{
    (void)arg;
    if (line->level == TRP_LOG_WARNING &&
        strstr(line->text, "remote.test-adapters is on") != NULL) {
        atomic_fetch_add(&warned, 1);
    }
}

/* REMOTE-63: an operator who has forgotten the adapters sees them in the log of each start */
static void
a_start_with_adapters_is_warned_of(void)
{
    for (int on = 0; on < 2; on++) {
        atomic_store(&warned, 0);
        node_log = find_warning;
        trp_node *node = opened(on ? "remote.test-adapters=on" : "remote.test-adapters=off");
        node_log = quiet;
        UNIT_EQUAL(trp_log_flush(trp_node_system(node), 60000), TRP_OK);
        UNIT_EQUAL(atomic_load(&warned), on);
        trp_node_close(node);
    }
}

/* MNT-10, REMOTE-61: no network can be disturbed where the adapters are off */
static void
without_the_key_every_action_is_refused(void)
{
    trp_node *node = opened("remote.test-adapters=off");
    static const char *const requests[] = {
        "", ",\"action\":\"set\",\"peer\":\"all\",\"rule\":\"blackhole\"", ",\"action\":\"clear\"",
        ",\"action\":\"disconnect\",\"peer\":\"all\""
    };
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        refused(node, requests[i], TRPI_CTL_EXIT_PERMISSION, "remote.test-adapters is off");
    }
    trp_node_close(node);
}

/* REMOTE-61 */
static void
rules_are_set_replaced_listed_and_cleared(void)
{
    trp_node *node = opened("remote.test-adapters=on");
    rules_are(node, "", "");
    rules_are(node, ",\"action\":\"set\",\"peer\":\"10.0.0.2:2552\",\"rule\":\"blackhole\"",
              "10.0.0.2:2552 blackhole/blackhole");
    rules_are(node,
              ",\"action\":\"set\",\"peer\":\"troupe.tcp://demo@10.0.0.2:2552\","
              "\"direction\":\"receive\",\"rule\":\"delay=5ms lose=0.5\"",
              "10.0.0.2:2552 blackhole/lose=0.5 delay=5ms");
    rules_are(node,
              ",\"action\":\"set\",\"peer\":\"all\",\"direction\":\"send\",\"rule\":\"rate=9\"",
              "* rate=9/pass; 10.0.0.2:2552 blackhole/lose=0.5 delay=5ms");
    rules_are(node, ",\"action\":\"set\",\"peer\":\"demo@[::1]:1\",\"rule\":\"repeat=1\"",
              "* rate=9/pass; 10.0.0.2:2552 blackhole/lose=0.5 delay=5ms; ::1:1 repeat=1/repeat=1");
    rules_are(node, ",\"action\":\"clear\",\"peer\":\"*\"",
              "10.0.0.2:2552 blackhole/lose=0.5 delay=5ms; ::1:1 repeat=1/repeat=1");
    rules_are(node, ",\"action\":\"clear\"", "");
    refused(node, ",\"action\":\"set\",\"peer\":\"all\",\"rule\":\"lose=2\"", TRPI_CTL_EXIT_USAGE,
            "'lose=2'");
    refused(node, ",\"action\":\"clear\",\"peer\":\"nowhere\"", TRPI_CTL_EXIT_USAGE,
            "'nowhere' is not the name of a peer");
    refused(node, ",\"action\":\"clear\",\"peer\":\"host:99999\"", TRPI_CTL_EXIT_USAGE,
            "'host:99999' is not the name of a peer");
    trp_node_close(node);
}

static bool
answers(trp_node *node, const char *target, uint32_t timeout_ms)
{
    char request[512];
    (void)snprintf(request, sizeof request,
                   "{\"cmd\":\"ping\",\"target\":\"%s/user\",\"timeoutMs\":%u}", target,
                   timeout_ms);
    cJSON *reply = control_ask(trp_node_control_path(node), request);
    bool ok = cJSON_IsTrue(cJSON_GetObjectItem(reply, "ok"));
    cJSON_Delete(reply);
    return ok;
}

static double
lost(trp_node *node)
{
    cJSON *reply = fault(node, ",\"action\":\"list\"");
    double frames = cJSON_GetNumberValue(cJSON_GetObjectItem(reply, "lost"));
    cJSON_Delete(reply);
    return frames;
}

/* MNT-02, MNT-07, REMOTE-62: unplugged in one direction, shown, plugged back, disconnected */
static void
a_link_is_cut_in_one_direction_and_heals(void)
{
    trp_node *near = opened("remote.test-adapters=on"), *far = NULL;
    trp_node_error error = { "" };
    const cJSON *peer = NULL;
    char set[256];
    UNIT_REQUIRE(node_open(NULL, &far, &error) == TRP_OK);
    UNIT_WAIT(answers(near, trp_node_address(far), 5000), 60000);
    (void)snprintf(set, sizeof set,
                   ",\"action\":\"set\",\"peer\":\"%s\",\"direction\":\"receive\","
                   "\"rule\":\"blackhole\"",
                   trp_node_address(far));
    cJSON_Delete(fault(near, set));
    UNIT_FALSE(answers(near, trp_node_address(far), 200));
    cJSON *reply = control_ask(trp_node_control_path(near), "{\"cmd\":\"peers\"}");
    peer = cJSON_GetArrayItem(cJSON_GetObjectItem(reply, "peers"), 0);
    UNIT_TEXT(trpi_json_get_text(peer, "faults"), "send pass, receive blackhole");
    cJSON_Delete(reply);
    UNIT_WAIT(lost(near) >= 1, 60000); /* the answer to the ping, whenever it comes */
    cJSON_Delete(fault(near, ",\"action\":\"clear\""));
    UNIT_WAIT(answers(near, trp_node_address(far), 5000), 60000);
    reply = fault(near, ",\"action\":\"disconnect\",\"peer\":\"all\"");
    UNIT_TRUE(cJSON_GetNumberValue(cJSON_GetObjectItem(reply, "cut")) >= 1);
    cJSON_Delete(reply);
    UNIT_WAIT(answers(near, trp_node_address(far), 5000), 60000);
    trp_node_close(far);
    trp_node_close(near);
}

static bool
begins(const trp_node *node, const char *scheme)
{
    return strncmp(trp_node_address(node), scheme, strlen(scheme)) == 0;
}

/* REMOTE-64: nodes whose addresses show the adapters are a cluster, and no others are of it */
static void
adapters_show_in_the_address_where_that_is_wanted(void)
{
    static const char *const shown[] = { "remote.test-adapters=on", "remote.adapters-in-address=on",
                                         "cluster.seed-nodes=self", NULL };
    static const char *const beside[] = { "remote.test-adapters=on",
                                          "remote.adapters-in-address=on", NULL };
    static const char *const without[] = { "remote.adapters-in-address=on", NULL };
    trp_node_error error = { "" };
    trp_node *none = NULL, *plain = opened("remote.test-adapters=on"), *a = up(shown);
    trp_node *b = up_beside(a, beside);
    size_t members = 0;
    UNIT_TRUE(begins(plain, "troupe.tcp://"));
    UNIT_TRUE(begins(a, "troupe.trttl.gremlin.tcp://"));
    UNIT_TRUE(begins(b, "troupe.trttl.gremlin.tcp://"));
    UNIT_EQUAL(trp_cluster_members(trp_node_system(a), NULL, 0, &members), TRP_OK);
    UNIT_EQUAL(members, 2);
    char seed[512];
    (void)snprintf(seed, sizeof seed, "{\"cmd\":\"ping\",\"target\":\"%s/user\"}",
                   trp_node_address(a));
    cJSON *reply = control_ask(trp_node_control_path(plain), seed);
    UNIT_TRUE(strstr(trpi_json_get_text(reply, "error"), "this node is troupe.tcp://") != NULL);
    cJSON_Delete(reply);
    (void)snprintf(seed, sizeof seed, "cluster.seed-nodes=%s", trp_node_address(a));
    const char *const other[] = { seed, NULL };
    UNIT_TRUE(node_open(other, &none, &error) != TRP_OK);
    UNIT_TRUE(strstr(error.text, "members have the same system name and protocol") != NULL);
    trp_node_close(b);
    trp_node_close(a);
    trp_node_close(plain);
    UNIT_REQUIRE(node_open(without, &plain, &error) == TRP_OK); /* there is nothing to show */
    UNIT_TRUE(begins(plain, "troupe.tcp://"));
    trp_node_close(plain);
}

UNIT_BEGIN("fault")
UNIT(a_start_with_adapters_is_warned_of)
UNIT(without_the_key_every_action_is_refused)
UNIT(rules_are_set_replaced_listed_and_cleared)
UNIT(a_link_is_cut_in_one_direction_and_heals)
UNIT(adapters_show_in_the_address_where_that_is_wanted)
UNIT_END

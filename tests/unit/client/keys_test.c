/* keys_test.c - each key of cluster.client.receptionist, on one node that is opened with it. The
 * role is in cluster_test.c. */
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/client.h>
#include <troupe/cluster.h>
#include <troupe/node.h>

#include "cluster/client/receptionist.h"
#include "tests/unit/remote/pair.h"

#define KEY "cluster.client.receptionist."

static trp_node *node;
static trp_system *inside, *outside;
static trp_client *client;

static void
log_line(void *arg, const trp_log_line *line)
{
    (void)arg;
    pair_log_line(NULL, line);
}

static trp_err
node_open(const char *one, const char *other)
{
    const char *settings[] = { "system=shop",
                               "remote.hostname=127.0.0.1",
                               "remote.port=0",
                               "remote.cookie=off",
                               "cluster.seed-nodes=self",
                               "cluster.control-socket=off",
                               one,
                               other,
                               NULL };
    trp_node_options options = TRP_NODE_OPTIONS_INIT;
    trp_node_error error = { "" };
    options.settings = settings;
    options.environment_ignored = 1;
    options.log = log_line;
    pair_log_clear();
    return trp_node_open(&options, &node, &error);
}

static void
client_start(void)
{
    trp_client_options options = TRP_CLIENT_OPTIONS_INIT;
    const char *contact = trp_node_address(node);
    options.contacts = &contact;
    options.contacts_count = 1;
    outside = pair_system("outside");
    UNIT_REQUIRE(trp_client_open(outside, &options, &client) == TRP_OK);
}

static void
both_start(const char *key)
{
    UNIT_REQUIRE(node_open(KEY "enabled=on", key) == TRP_OK);
    inside = trp_node_system(node);
    trp_ref echo = pair_spawn(inside, &pair_echo, NULL, NULL, NULL, 0);
    UNIT_EQUAL(trp_receptionist_register(inside, "echo", echo), TRP_OK);
    client_start();
}

static void
client_end(void)
{
    trp_client_close(client);
    UNIT_EQUAL(trp_system_stop(outside, 60000), TRP_OK);
    trp_system_free(outside);
}

static void
both_end(void)
{
    client_end();
    trp_node_close(node);
}

static trp_err
ask(const char *name, uint32_t timeout_ms)
{
    trp_ref to;
    trp_msg *reply = NULL;
    trp_err err = trp_client_service(client, name, &to);
    err = err != TRP_OK
              ? err
              : trp_system_ask(outside, to, &trp_string_type, "hello", 5, timeout_ms, &reply);
    trp_msg_free(reply);
    return err;
}

/* CONTRIB-26 */
static void
a_node_takes_clients_only_when_it_is_told_to(void)
{
    UNIT_REQUIRE(node_open(KEY "enabled=off", NULL) == TRP_OK);
    inside = trp_node_system(node);
    trp_ref echo = pair_spawn(inside, &pair_echo, NULL, NULL, NULL, 0);
    UNIT_EQUAL(trp_receptionist_register(inside, "echo", echo), TRP_ESTATE);
    client_start();
    UNIT_WAIT(pair_logged("no contact takes this client"), 60000);
    UNIT_EQUAL(ask("echo", 100), TRP_ETIMEDOUT);
    both_end();
    both_start(NULL);
    UNIT_EQUAL(ask("echo", 60000), TRP_OK);
    both_end();
}

static trp_err
silent_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return TRP_OK;
}
static const trp_behaviour silent = TRP_BEHAVIOUR_INIT("silent", char, silent_receive);

/* CONTRIB-26 */
static void
a_tunnel_and_an_ask_end_after_their_timeout(void)
{
    both_start(KEY "response-tunnel-receive-timeout=100ms");
    trp_ref ref = pair_spawn(inside, &silent, NULL, NULL, NULL, 0);
    UNIT_EQUAL(trp_receptionist_register(inside, "silent", ref), TRP_OK);
    UNIT_EQUAL(ask("echo", 60000), TRP_OK);
    uint64_t before = unit_now_ms();
    UNIT_EQUAL(ask("silent", 600000), TRP_ETIMEDOUT); /* the door's timeout */
    UNIT_TRUE(unit_now_ms() - before < 300000);
    both_end();
}

/* CONTRIB-26 */
static void
contacts_clients_and_silence_have_keys(void)
{
    both_start(KEY "silence-timeout=150ms"); /* the client says something each 2 s */
    UNIT_WAIT(pair_logged("it has said nothing for silence-timeout"), 60000);
    both_end();
    both_start(KEY "clients-max=1");
    UNIT_EQUAL(ask("echo", 60000), TRP_OK);
    trp_system *first_system = outside;
    trp_client *first = client;
    client_start();
    UNIT_WAIT(pair_logged(KEY "clients-max clients"), 60000);
    client_end();
    outside = first_system;
    client = first;
    both_end();
    UNIT_EQUAL(node_open(KEY "enabled=on", KEY "number-of-contacts=0"), TRP_ECONFIG);
    UNIT_EQUAL(node_open(KEY "enabled=on", KEY "number-of-contacts=9"), TRP_ECONFIG);
}

/* CONTRIB-26 */
static void
a_permission_without_a_certificate_permits_nobody(void)
{
    both_start(KEY "permissions=echo=buyer");
    UNIT_WAIT(ask("echo", 100) == TRP_ETIMEDOUT &&
                  pair_logged("does not permit it to your certificate"),
              60000);
    both_end();
    UNIT_EQUAL(node_open(KEY "enabled=on", KEY "permissions=echo"), TRP_ECONFIG);
}

/* A file of the cookie is read as that of a node: by its owner alone, one line. */
static void
a_cookie_can_come_from_a_file(void)
{
    char file[] = "/tmp/troupe-cookie-XXXXXX";
    trp_client_options options = TRP_CLIENT_OPTIONS_INIT;
    const char *contact = "127.0.0.1:1";
    int fd = mkstemp(file);
    UNIT_REQUIRE(fd >= 0 && write(fd, "secret\n", 7) == 7);
    pair_log_clear();
    outside = pair_system("outside");
    options.contacts = &contact;
    options.contacts_count = 1;
    options.cookie_file = file;
    options.cookie = "both";
    UNIT_EQUAL(trp_client_open(outside, &options, &client), TRP_EINVAL);
    options.cookie = NULL;
    UNIT_REQUIRE(fchmod(fd, 0644) == 0);
    UNIT_EQUAL(trp_client_open(outside, &options, &client), TRP_ECONFIG);
    UNIT_WAIT(pair_logged("others may read it"), 60000);
    UNIT_REQUIRE(fchmod(fd, 0600) == 0);
    UNIT_REQUIRE(trp_client_open(outside, &options, &client) == TRP_OK);
    client_end();
    (void)unlink(file);
    (void)close(fd);
    outside = pair_system("outside");
    UNIT_EQUAL(trp_client_open(outside, &options, &client), TRP_ECONFIG); /* it is gone */
    UNIT_EQUAL(trp_system_stop(outside, 60000), TRP_OK);
    trp_system_free(outside);
}

UNIT_BEGIN("keys")
UNIT(a_node_takes_clients_only_when_it_is_told_to)
UNIT(a_tunnel_and_an_ask_end_after_their_timeout)
UNIT(contacts_clients_and_silence_have_keys)
UNIT(a_permission_without_a_certificate_permits_nobody)
UNIT(a_cookie_can_come_from_a_file)
UNIT_END

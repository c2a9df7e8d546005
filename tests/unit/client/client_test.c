/* client_test.c - clients and receptionists over tcp, without a cluster: services, asks, tunnels,
 * buffers, permissions. */
#include <stdatomic.h>

#include <troupe/actor.h>
#include <troupe/client.h>

#include "cluster/client/receptionist.h"
#include "tests/unit/remote/pair.h"

static trp_system *node, *outside;
static trpi_remote *remote;
static trp_client *client;
static char contact[64];

static void
node_start(const trpi_receptionist_options *options, const trpi_remote_options *remoting,
           uint16_t port)
{
    pair p = { 0 };
    p.system[1] = node = pair_system("shop");
    pair_remote(&p, 1, remoting, port);
    remote = p.remote[1];
    (void)snprintf(contact, sizeof contact, "127.0.0.1:%u", trpi_remote_address(remote)->port);
    UNIT_REQUIRE(trpi_receptionist_open(node, remote, options) == TRP_OK);
}

static void
node_end(void)
{
    trpi_receptionist_close(node);
    UNIT_EQUAL(trp_system_stop(node, 60000), TRP_OK);
    trpi_remote_stop(remote);
    trp_system_free(node);
}

static void
client_start(const trp_client_options *more)
{
    trp_client_options options = TRP_CLIENT_OPTIONS_INIT;
    const char *contacts[] = { contact };
    if (more != NULL) {
        options = *more;
    }
    options.contacts = contacts;
    options.contacts_count = 1;
    outside = pair_system("outside"); /* another name: the contact says how its system is called */
    UNIT_REQUIRE(trp_client_open(outside, &options, &client) == TRP_OK);
}

static void
client_end(void)
{
    trp_client_close(client);
    UNIT_EQUAL(trp_system_stop(outside, 60000), TRP_OK);
    trp_system_free(outside);
}

static void
both_start(void)
{
    const trpi_receptionist_options options = { .contacts = 3 };
    pair_log_clear();
    node_start(&options, NULL, 0);
    client_start(NULL);
}
static void
both_end(void)
{
    client_end();
    node_end();
}

static void
echo_register(const char *name)
{
    trp_ref echo = pair_spawn(node, &pair_echo, NULL, NULL, NULL, 0);
    UNIT_EQUAL(trp_receptionist_register(node, name, echo), TRP_OK);
}

static trp_ref
service(const char *name)
{
    trp_ref ref = TRP_REF_NONE;
    UNIT_REQUIRE(trp_client_service(client, name, &ref) == TRP_OK);
    return ref;
}

static trp_err
ask(trp_ref to, const char *text, uint32_t timeout_ms)
{
    trp_msg *reply = NULL;
    trp_err err =
        trp_system_ask(outside, to, &trp_string_type, text, strlen(text), timeout_ms, &reply);
    if (err == TRP_OK) {
        UNIT_TRUE(trp_msg_bytes(reply) == strlen(text) &&
                  memcmp(trp_msg_payload(reply), text, strlen(text)) == 0);
    }
    trp_msg_free(reply);
    return err;
}

/* CONTRIB-22 CONTRIB-23 CONTRIB-24:
 * ClusterClientSpec "be able to ask", and "communicate to actor on any node": of the contact */
static void
a_service_answers_an_ask(void)
{
    both_start();
    echo_register("echo");
    trp_ref echo = service("echo");
    for (int i = 0; i < 100; i++) {
        UNIT_EQUAL(ask(echo, "hello", 60000), TRP_OK);
    }
    UNIT_TRUE(trp_ref_equal(service("echo"), echo)); /* the same name, the same actor */
    both_end();
}

static _Atomic uint64_t got, missed;
static trp_ref last_sender;

/* Counts messages; numbers come in their order. */
static trp_err
counter_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    uint64_t *next = state, number;
    (void)ctx;
    if (trp_msg_is(msg, &trp_bytes_type)) {
        memcpy(&number, trp_msg_payload(msg), sizeof number);
        atomic_fetch_add(&missed, number != *next);
        *next = number + 1;
    }
    last_sender = trpi_msg_sender_get(msg);
    atomic_fetch_add(&got, 1);
    return TRP_OK;
}
static const trp_behaviour counter = TRP_BEHAVIOUR_INIT("counter", uint64_t, counter_receive);

static void
numbers_tell(trp_ref to, uint64_t from, uint64_t count)
{
    for (uint64_t i = from; i < from + count; i++) {
        trp_system_tell(outside, to, &trp_bytes_type, &i, sizeof i);
    }
}

/* client-stub-B1: what waited for the contact comes first, all of it, in its order */
static void
messages_wait_until_there_is_a_contact_and_a_service(void)
{
    both_start();
    atomic_store(&got, 0);
    atomic_store(&missed, 0);
    trp_ref to = service("counter");
    numbers_tell(to, 0, 500);
    trp_ref here = pair_spawn(node, &counter, "counter", NULL, NULL, 0);
    UNIT_EQUAL(trp_receptionist_register(node, "counter", here), TRP_OK);
    numbers_tell(to, 500, 500);
    UNIT_WAIT(atomic_load(&got) == 1000, 60000);
    UNIT_EQUAL(atomic_load(&missed), 0);
    both_end();
}

static uint64_t
full_dead_letters(void)
{
    trp_system_stats stats = { sizeof stats };
    trp_system_stats_get(outside, &stats);
    return stats.dead_letters[TRP_DEAD_MAILBOX_FULL];
}

/* CONTRIB-28:
 * At the limit none is lost; one past it the oldest falls out, as a dead letter with a reason. */
static void
the_oldest_message_falls_out_of_a_full_buffer(void)
{
    const trpi_receptionist_options options = { .contacts = 3 };
    trp_client_options small = TRP_CLIENT_OPTIONS_INIT;
    small.buffer_msgs_max = 10;
    pair_log_clear();
    node_start(&options, NULL, 0);
    client_start(&small);
    atomic_store(&got, 0);
    atomic_store(&missed, 0);
    trp_ref to = service("counter");
    numbers_tell(to, 0, 10);

    UNIT_EQUAL(full_dead_letters(), 0);
    numbers_tell(to, 10, 1);
    UNIT_WAIT(full_dead_letters() == 1, 60000);
    trp_ref here = pair_spawn(node, &counter, "counter", NULL, NULL, 0);
    UNIT_EQUAL(trp_receptionist_register(node, "counter", here), TRP_OK);
    UNIT_WAIT(atomic_load(&got) == 10, 60000);
    UNIT_EQUAL(atomic_load(&missed), 1); /* number 0, the oldest */
    both_end();
}

/* Tells its service, and counts what comes back; then talks to the one that has answered. */
typedef struct talker_state {
    trp_ref service;
    uint32_t came;
} talker_state;
static _Atomic uint64_t talks;
static trp_err
talker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    talker_state *t = state;
    if (trp_msg_is(msg, &trp_bytes_type)) {
        memcpy(&t->service, trp_msg_payload(msg), sizeof t->service);
        trp_tell_text(ctx, t->service, "first");
    } else {
        t->came++;
        atomic_fetch_add(&talks, 1);
        if (t->came < 10) {
            trp_reply_text(ctx, "again"); /* to the tunnel: it reaches the answerer */
        }
    }
    return TRP_OK;
}
static const trp_behaviour talker = TRP_BEHAVIOUR_INIT("talker", talker_state, talker_receive);

/* CONTRIB-25: the destination sees the tunnel as the sender, and it works in both directions */
static void
a_tunnel_carries_a_conversation_and_ends_with_its_asker(void)
{
    both_start();
    atomic_store(&talks, 0);
    atomic_store(&got, 0);
    echo_register("echo");
    trp_ref here = pair_spawn(node, &counter, "counter", NULL, NULL, 0);
    UNIT_EQUAL(trp_receptionist_register(node, "counter", here), TRP_OK);
    trp_ref echo = service("echo"), count = service("counter");
    trp_ref one = pair_spawn(outside, &talker, "talker", NULL, NULL, 0);
    trp_system_tell(outside, one, &trp_bytes_type, &echo, sizeof echo);
    UNIT_WAIT(atomic_load(&talks) == 10, 60000);
    trp_system_tell_as(outside, count, one, &trp_string_type, "x", 1);
    UNIT_WAIT(atomic_load(&got) == 1, 60000);
    trp_ref tunnel = last_sender;
    UNIT_EQUAL(tunnel.node, TRPI_NODE_SELF); /* an actor of the contact's node */
    UNIT_TRUE(trpi_inbound_is_there(node, tunnel.slot, tunnel.generation));
    trp_system_tell(outside, one, &trp_poison_pill_type, NULL, 0);
    UNIT_WAIT(!trpi_inbound_is_there(node, tunnel.slot, tunnel.generation), 60000);
    both_end();
}

/* CONTRIB-27:
 * An ask fails when its service is not there any more, and the next ones wait for a new one. */
static void
a_service_that_ends_is_found_again(void)
{
    both_start();
    trp_ref first = pair_spawn(node, &pair_echo, "first", NULL, NULL, 0);
    UNIT_EQUAL(trp_receptionist_register(node, "echo", first), TRP_OK);
    trp_ref echo = service("echo");
    UNIT_EQUAL(ask(echo, "hello", 60000), TRP_OK);
    trp_system_tell(node, first, &trp_poison_pill_type, NULL, 0);
    trp_ref second = pair_spawn(node, &pair_echo, "second", NULL, NULL, 0);
    UNIT_WAIT(trp_receptionist_register(node, "echo", second) == TRP_OK, 60000);
    UNIT_WAIT(ask(echo, "hello", 5000) == TRP_OK, 60000);
    UNIT_EQUAL(trp_receptionist_unregister(node, "echo"), TRP_OK);
    UNIT_EQUAL(trp_receptionist_unregister(node, "echo"), TRP_ENOENT);
    UNIT_WAIT(ask(echo, "hello", 100) == TRP_ETIMEDOUT, 60000); /* it waits at the client */
    UNIT_EQUAL(trp_receptionist_register(node, "echo", second), TRP_OK);
    UNIT_WAIT(ask(echo, "hello", 5000) == TRP_OK, 60000);
    both_end();
}

/* CONTRIB-27 */
static void
a_name_that_is_not_registered_is_not_reached(void)
{
    both_start();
    (void)pair_spawn(node, &pair_echo, "echo", NULL, NULL, 0); /* but not registered */
    UNIT_EQUAL(ask(service("echo"), "hello", 300), TRP_ETIMEDOUT);
    UNIT_WAIT(pair_logged("no service of that name is registered"), 60000);
    both_end();
}

/* CONTRIB-22 CONTRIB-28:
 * ClusterClientSpec "re-establish connection to another receptionist", here the same one again */
static void
after_a_restart_of_the_contact_the_client_finds_it_again(void)
{
    const trpi_receptionist_options options = { .contacts = 3 };
    both_start();
    echo_register("echo");
    trp_ref echo = service("echo");
    UNIT_EQUAL(ask(echo, "hello", 60000), TRP_OK);
    uint16_t port = trpi_remote_address(remote)->port;
    node_end();
    UNIT_WAIT(pair_logged("contact lost"), 60000);
    node_start(&options, NULL, port);
    echo_register("echo");
    UNIT_WAIT(ask(echo, "hello", 5000) == TRP_OK, 60000);
    both_end();
}

/* ClusterClientStopSpec */
static void
a_client_stops_when_it_finds_no_contact_for_long(void)
{
    trp_client_options options = TRP_CLIENT_OPTIONS_INIT;
    options.reconnect_timeout_ms = 300;
    trp_ref ref;
    (void)snprintf(contact, sizeof contact, "127.0.0.1:1");
    pair_log_clear();
    client_start(&options);
    trp_ref to = service("echo");
    UNIT_WAIT(pair_logged("no contact in time, the client stops"), 60000);
    UNIT_WAIT(trp_client_service(client, "other", &ref) == TRP_ECLOSED, 60000);
    UNIT_WAIT(!trpi_inbound_is_there(outside, to.slot, to.generation), 60000);
    client_end();
}

static void
one_client_more_than_the_limit_is_refused(void)
{
    const trpi_receptionist_options options = { .clients_max = 1 };
    pair_log_clear();
    node_start(&options, NULL, 0);
    client_start(NULL);
    echo_register("echo");
    UNIT_EQUAL(ask(service("echo"), "hello", 60000), TRP_OK);
    trp_client *first = client;
    trp_system *first_system = outside;
    client_start(NULL);
    trp_ref echo = service("echo");
    UNIT_WAIT(pair_logged("cluster.client.receptionist.clients-max clients"), 60000);
    trp_client_close(first);
    UNIT_EQUAL(trp_system_stop(first_system, 60000), TRP_OK);
    trp_system_free(first_system);
    UNIT_WAIT(ask(echo, "hello", 5000) == TRP_OK, 60000);
    both_end();
}

static void
options_and_names_have_limits(void)
{
    trp_client_options options = TRP_CLIENT_OPTIONS_INIT;
    const char *contacts[TRP_CLIENT_CONTACTS_MAX + 1];
    char name[TRP_CLIENT_SERVICE_NAME_BYTES_MAX + 2];
    trp_client *other = NULL;
    trp_ref ref = TRP_REF_NONE, echo;
    for (size_t i = 0; i <= TRP_CLIENT_CONTACTS_MAX; i++) {
        contacts[i] = "127.0.0.1:1";
    }
    both_start();
    UNIT_EQUAL(trp_client_open(outside, &options, &other), TRP_EINVAL);
    options.contacts = contacts;
    options.contacts_count = TRP_CLIENT_CONTACTS_MAX + 1;
    UNIT_EQUAL(trp_client_open(outside, &options, &other), TRP_EINVAL);
    options.contacts_count = TRP_CLIENT_CONTACTS_MAX;
    UNIT_EQUAL(trp_client_open(outside, &options, &other), TRP_EEXIST); /* it has a client */
    contacts[0] = "troupe.tcp://shop@~0000000000001267";
    UNIT_EQUAL(trp_client_open(outside, &options, &other), TRP_EINVAL);
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    UNIT_EQUAL(trp_client_service(client, name, &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_client_service(client, name + 1, &ref), TRP_OK);
    for (uint32_t i = 1; i < TRP_CLIENT_SERVICES_MAX; i++) {
        (void)snprintf(name, sizeof name, "%u", i);
        UNIT_EQUAL(trp_client_service(client, name, &ref), TRP_OK);
    }
    UNIT_EQUAL(trp_client_service(client, "one more", &ref), TRP_ELIMIT);
    echo = pair_spawn(node, &pair_echo, NULL, NULL, NULL, 0);
    UNIT_EQUAL(trp_receptionist_register(node, "", echo), TRP_EINVAL);
    UNIT_EQUAL(trp_receptionist_register(node, "a", (trp_ref)TRP_REF_NONE), TRP_EINVAL);
    UNIT_EQUAL(trp_receptionist_register(outside, "a", echo), TRP_ESTATE);
    for (uint32_t i = 0; i < TRP_RECEPTIONIST_SERVICES_MAX; i++) {
        (void)snprintf(name, sizeof name, "s%u", i);
        UNIT_REQUIRE(trp_receptionist_register(node, name, echo) == TRP_OK);
    }
    UNIT_EQUAL(trp_receptionist_register(node, "one more", echo), TRP_ELIMIT);
    UNIT_EQUAL(
        trp_receptionist_register(node, "s0", pair_spawn(node, &pair_echo, NULL, NULL, NULL, 0)),
        TRP_EEXIST);
    both_end();
}

UNIT_BEGIN("client")
UNIT(a_service_answers_an_ask)
UNIT(messages_wait_until_there_is_a_contact_and_a_service)
UNIT(the_oldest_message_falls_out_of_a_full_buffer)
UNIT(a_tunnel_carries_a_conversation_and_ends_with_its_asker)
UNIT(a_service_that_ends_is_found_again)
UNIT(a_name_that_is_not_registered_is_not_reached)
UNIT(after_a_restart_of_the_contact_the_client_finds_it_again)
UNIT(a_client_stops_when_it_finds_no_contact_for_long)
UNIT(one_client_more_than_the_limit_is_refused)
UNIT(options_and_names_have_limits)
UNIT_END

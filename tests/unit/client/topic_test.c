/* topic_test.c - clients and the mediators of nodes: topics that are opened, and all services of a
 * name. Without a cluster. */
#include <stdatomic.h>

#include <troupe/actor.h>
#include <troupe/client.h>

#include "cluster/client/door.h"
#include "cluster/client/receptionist.h"
#include "tests/unit/remote/pair.h"

static trp_system *node, *outside;
static trpi_remote *remote;
static trp_client *client;

static void
both_start(bool untrusted)
{
    const trpi_receptionist_options options = { .contacts = 3 };
    const trpi_remote_options remoting = { .untrusted = untrusted };
    trp_client_options how = TRP_CLIENT_OPTIONS_INIT;
    char contact[64];
    const char *contacts[] = { contact };
    pair p = { 0 };
    pair_log_clear();
    p.system[1] = node = pair_system("shop");
    pair_remote(&p, 1, &remoting, 0);
    remote = p.remote[1];
    (void)snprintf(contact, sizeof contact, "127.0.0.1:%u", trpi_remote_address(remote)->port);
    UNIT_REQUIRE(trpi_receptionist_open(node, remote, &options) == TRP_OK);
    how.contacts = contacts;
    how.contacts_count = 1;
    outside = pair_system("outside");
    UNIT_REQUIRE(trp_client_open(outside, &how, &client) == TRP_OK);
}

static void
both_end(void)
{
    trp_client_close(client);
    UNIT_EQUAL(trp_system_stop(outside, 60000), TRP_OK);
    trp_system_free(outside);
    trpi_receptionist_close(node);
    UNIT_EQUAL(trp_system_stop(node, 60000), TRP_OK);
    trpi_remote_stop(remote);
    trp_system_free(node);
}

static trp_ref
topic(const char *name)
{
    trp_ref ref = TRP_REF_NONE;
    UNIT_REQUIRE(trp_client_topic(client, name, &ref) == TRP_OK);
    return ref;
}

/* How many got it; UINT64_MAX: the ask had no such answer in time. */
static uint64_t
delivered(trp_ref to, uint32_t timeout_ms)
{
    trp_msg *reply = NULL;
    uint64_t count = UINT64_MAX;
    if (trp_system_ask(outside, to, &trp_string_type, "news", 4, timeout_ms, &reply) == TRP_OK) {
        const trp_client_delivery *delivery = trp_msg_as(reply, &trp_client_delivery_type);
        UNIT_TRUE(delivery != NULL && delivery->nodes <= 1 && delivery->silent == 0);
        count = delivery != NULL ? delivery->delivered : UINT64_MAX;
    }
    trp_msg_free(reply);
    return count;
}

/* Counts texts, and answers each. */
static _Atomic uint64_t heard, acks;
static trp_err
listener_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_string_type)) {
        atomic_fetch_add(&heard, 1);
        trp_reply_text(ctx, "heard");
    } else if (trp_msg_is(msg, &trp_subscribe_ack_type)) {
        atomic_fetch_add(&acks, 1);
    }
    return TRP_OK;
}
static const trp_behaviour listener = TRP_BEHAVIOUR_INIT("listener", uint64_t, listener_receive);

static trp_ref
listener_new(void)
{
    return pair_spawn(node, &listener, NULL, NULL, NULL, 0);
}

/* Publishes once, and counts what comes back. */
static _Atomic uint64_t answers;
static trp_err
teller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_bytes_type)) {
        trp_ref to;
        memcpy(&to, trp_msg_payload(msg), sizeof to);
        trp_tell_text(ctx, to, "news");
    } else {
        atomic_fetch_add(&answers, 1);
    }
    return TRP_OK;
}
static const trp_behaviour teller = TRP_BEHAVIOUR_INIT("teller", uint64_t, teller_receive);

static void
publishes(bool untrusted)
{
    both_start(untrusted);
    atomic_store(&heard, 0);
    atomic_store(&answers, 0);
    trp_ref news = topic("news"); /* before it is open: the publication waits */
    trp_ref one = pair_spawn(outside, &teller, NULL, NULL, NULL, 0);
    trp_system_tell(outside, one, &trp_bytes_type, &news, sizeof news);
    UNIT_EQUAL(trp_receptionist_subscribe(node, "news", listener_new(), NULL), TRP_OK);
    UNIT_EQUAL(trp_receptionist_subscribe(node, "news", listener_new(), NULL), TRP_OK);
    UNIT_WAIT(atomic_load(&heard) == 2, 60000);
    UNIT_WAIT(atomic_load(&answers) == 2, 60000); /* through the tunnel */
    UNIT_EQUAL(delivered(news, 60000), 2);
    UNIT_EQUAL(atomic_load(&answers), 2);
    both_end();
}

/* CONTRIB-24 CONTRIB-27 CONTRIB-30: a topic is published to, and its subscribers see the tunnel */
static void
a_client_publishes_to_a_topic_that_was_opened(void)
{
    publishes(false);
}

/* CONTRIB-24: the node's mode changes nothing for a client */
static void
a_client_publishes_in_untrusted_mode(void)
{
    publishes(true);
}

static uint64_t
refused_count(void)
{
    trp_system_stats stats = { sizeof stats };
    trp_system_stats_get(node, &stats);
    return stats.dead_letters[TRP_DEAD_REFUSED];
}

/* The answer of a subscriber to a publication that was asked is not published. client-door-D4 */
static void
an_answer_to_a_door_is_not_published(void)
{
    both_start(false);
    atomic_store(&heard, 0);
    UNIT_EQUAL(trp_receptionist_subscribe(node, "news", listener_new(), NULL), TRP_OK);
    trp_ref news = topic("news");
    UNIT_WAIT(delivered(news, 5000) == 1, 60000);
    UNIT_WAIT(refused_count() > 0, 60000); /* the listener's answer */
    UNIT_EQUAL(delivered(news, 60000), 1);
    UNIT_EQUAL(atomic_load(&heard), 2);
    both_end();
}

/* CONTRIB-27: a subscriber of the mediator alone does not open its topic to clients */
static void
a_topic_that_was_not_opened_is_not_reached(void)
{
    trp_mediator *mediator;
    both_start(false);
    atomic_store(&heard, 0);
    atomic_store(&acks, 0);
    UNIT_REQUIRE(trp_mediator_of(node, NULL, &mediator) == TRP_OK);
    UNIT_EQUAL(trp_mediator_subscribe(mediator, "news", listener_new(), NULL), TRP_OK);
    UNIT_WAIT(atomic_load(&acks) == 1, 60000);
    trp_ref news = topic("news");
    trp_system_tell(outside, news, &trp_string_type, "news", 4);
    UNIT_WAIT(pair_logged("no topic of that name is open to clients"), 60000);
    UNIT_EQUAL(atomic_load(&heard), 0);
    trp_ref second = listener_new(), third = listener_new();
    UNIT_EQUAL(trp_receptionist_subscribe(node, "news", second, NULL), TRP_OK);
    UNIT_EQUAL(trp_receptionist_subscribe(node, "news", third, NULL), TRP_OK);
    UNIT_WAIT(atomic_load(&heard) == 3, 60000); /* what waited reaches all subscribers */
    UNIT_EQUAL(trp_receptionist_unsubscribe(node, "news", second, NULL), TRP_OK);
    UNIT_EQUAL(trp_receptionist_unsubscribe(node, "news", second, NULL), TRP_ENOENT);
    UNIT_WAIT(delivered(news, 5000) == 2, 60000); /* the third one keeps it open */
    trp_system_tell(node, third, &trp_poison_pill_type, NULL, 0);
    UNIT_WAIT(delivered(news, 100) == UINT64_MAX, 60000); /* it waits at the client */
    both_end();
}

/* CONTRIB-24: the mediator of receptionists knows all services of a name */
static void
all_services_of_a_name_are_told(void)
{
    trp_ref all = TRP_REF_NONE;
    both_start(false);
    atomic_store(&heard, 0);
    atomic_store(&answers, 0);
    UNIT_EQUAL(trp_client_service_all(client, "echo", &all), TRP_OK);
    UNIT_EQUAL(delivered(all, 60000), 0);
    UNIT_EQUAL(trp_receptionist_register(node, "echo", listener_new()), TRP_OK);
    UNIT_WAIT(delivered(all, 5000) == 1, 60000);
    trp_ref one = pair_spawn(outside, &teller, NULL, NULL, NULL, 0);
    trp_system_tell(outside, one, &trp_bytes_type, &all, sizeof all);
    UNIT_WAIT(atomic_load(&answers) == 1, 60000);
    UNIT_EQUAL(trp_receptionist_unregister(node, "echo"), TRP_OK);
    UNIT_WAIT(delivered(all, 5000) == 0, 60000);
    both_end();
}

/* client-door-D1: one sender more than the limit is refused, as a dead letter. */
static void
a_door_has_so_many_tunnels(void)
{
    trp_ref echo;
    both_start(false);
    atomic_store(&heard, 0);
    UNIT_EQUAL(trp_receptionist_register(node, "echo", listener_new()), TRP_OK);
    UNIT_EQUAL(trp_client_service(client, "echo", &echo), TRP_OK);
    trp_msg *reply = NULL; /* then nothing waits at the client, which keeps fewer */
    UNIT_EQUAL(trp_system_ask(outside, echo, &trp_string_type, "news", 4, 60000, &reply), TRP_OK);
    trp_msg_free(reply);
    atomic_store(&heard, 0);
    for (uint32_t i = 0; i < TRPI_CLIENT_TUNNELS_MAX; i++) {
        trp_ref one = pair_spawn(outside, &teller, NULL, NULL, NULL, 0);
        trp_system_tell_as(outside, echo, one, &trp_string_type, "news", 4);
    }
    UNIT_WAIT(atomic_load(&heard) == TRPI_CLIENT_TUNNELS_MAX, 60000);
    UNIT_EQUAL(refused_count(), 0);
    trp_ref one = pair_spawn(outside, &teller, NULL, NULL, NULL, 0);
    trp_system_tell_as(outside, echo, one, &trp_string_type, "news", 4);
    UNIT_WAIT(refused_count() == 1, 60000);
    UNIT_EQUAL(atomic_load(&heard), TRPI_CLIENT_TUNNELS_MAX);
    both_end();
}

/* Tells what events say of one service. */
typedef struct seen {
    _Atomic int32_t err;
    _Atomic uint32_t events;
} seen;
static seen reach;
static trp_err
watcher_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const trp_client_reach *event = trp_msg_as(msg, &trp_client_reach_type);
    (void)ctx;
    (void)state;
    if (event != NULL) {
        UNIT_EQUAL(event->reachable, event->err == TRP_OK);
        UNIT_EQUAL(event->reason[0] == '\0', event->err == TRP_OK);
        atomic_store(&reach.err, event->err);
        atomic_fetch_add(&reach.events, 1);
    }
    return TRP_OK;
}
static const trp_behaviour watcher = TRP_BEHAVIOUR_INIT("watcher", uint64_t, watcher_receive);

/* CONTRIB-22 CONTRIB-27 */
static void
events_say_whether_a_service_can_be_reached(void)
{
    trp_ref echo;
    both_start(false);
    atomic_store(&reach.err, -1);
    atomic_store(&reach.events, 0);
    trp_ref own = pair_spawn(outside, &watcher, NULL, NULL, NULL, 0);
    UNIT_EQUAL(trp_system_subscribe(outside, own, &trp_client_reach_type), TRP_OK);
    UNIT_EQUAL(trp_client_service(client, "echo", &echo), TRP_OK);
    UNIT_WAIT(atomic_load(&reach.err) == TRP_ENOENT, 60000);
    UNIT_EQUAL(trp_receptionist_register(node, "echo", listener_new()), TRP_OK);
    UNIT_WAIT(atomic_load(&reach.err) == TRP_OK, 60000);
    UNIT_EQUAL(trp_receptionist_unregister(node, "echo"), TRP_OK);
    UNIT_WAIT(atomic_load(&reach.err) == TRP_ENOENT, 60000);
    UNIT_EQUAL(atomic_load(&reach.events), 3);
    both_end();
}

static void
names_of_topics_have_limits(void)
{
    static char name[TRP_TOPIC_BYTES_MAX + 2];
    trp_ref ref, one;
    both_start(false);
    one = listener_new();
    memset(name, 't', TRP_TOPIC_BYTES_MAX + 1);
    UNIT_EQUAL(trp_client_topic(client, name, &ref), TRP_ELIMIT);
    UNIT_EQUAL(trp_receptionist_subscribe(node, name, one, NULL), TRP_ELIMIT);
    name[TRP_TOPIC_BYTES_MAX] = '\0';
    UNIT_EQUAL(trp_receptionist_subscribe(node, name, one, NULL), TRP_OK);
    UNIT_WAIT(delivered(topic(name), 5000) == 1, 60000); /* the whole name arrives */
    UNIT_EQUAL(trp_client_topic(client, "", &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_client_topic(client, NULL, &ref), TRP_EINVAL);
    name[TRP_CLIENT_SERVICE_NAME_BYTES_MAX + 1] = '\0';
    UNIT_EQUAL(trp_client_service_all(client, name, &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_receptionist_subscribe(node, "", one, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_receptionist_subscribe(node, "a", (trp_ref)TRP_REF_NONE, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_receptionist_unsubscribe(node, "a", one, NULL), TRP_ENOENT);
    UNIT_EQUAL(trp_receptionist_subscribe(outside, "a", one, NULL), TRP_ESTATE);
    both_end();
}

/* A program may register at each message: a node without a receptionist says so once. */
static void
a_missing_receptionist_is_told_once(void)
{
    both_start(false);
    trp_ref one = pair_spawn(outside, &listener, NULL, NULL, NULL, 0);
    for (int i = 0; i < 10; i++) {
        UNIT_EQUAL(trp_receptionist_register(outside, "a", one), TRP_ESTATE);
        UNIT_EQUAL(trp_receptionist_unregister(outside, "a"), TRP_ESTATE);
    }
    UNIT_WAIT(pair_logged("this node has no receptionist"), 60000); /* the log has a thread */
    both_end();
    UNIT_EQUAL(pair_log_count("this node has no receptionist"), 1);
}

UNIT_BEGIN("topic")
UNIT(a_client_publishes_to_a_topic_that_was_opened)
UNIT(a_client_publishes_in_untrusted_mode)
UNIT(an_answer_to_a_door_is_not_published)
UNIT(a_topic_that_was_not_opened_is_not_reached)
UNIT(all_services_of_a_name_are_told)
UNIT(a_door_has_so_many_tunnels)
UNIT(events_say_whether_a_service_can_be_reached)
UNIT(names_of_topics_have_limits)
UNIT(a_missing_receptionist_is_told_once)
UNIT_END

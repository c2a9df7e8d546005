/* Publish and subscribe between the nodes of a cluster, in one process. */
#include "tests/unit/cluster/host.h"
#include "tests/unit/cluster/mediators.h"

enum { NODES = 3 };
static struct host hosts[NODES];
static trp_mediator *mediators[NODES];
static const trp_ref nobody = TRP_REF_NONE;

static bool
is_up(const struct host *h, uint32_t count)
{
    trp_member members[NODES + 1];
    size_t all = 0, up = 0;
    if (trp_cluster_members(h->system, members, NODES + 1, &all) != TRP_OK || all > NODES + 1) {
        return false;
    }
    for (size_t i = 0; i < all; i++) {
        up += members[i].status == TRP_MEMBER_UP;
    }
    return up == count && all == count;
}

static void
cluster_begin(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        host_start(&hosts[i], i == 0 ? "self" : hosts[0].address);
        mediators[i] = mediator_of(hosts[i].system);
    }
    for (uint32_t i = 0; i < count; i++) {
        UNIT_WAIT(is_up(&hosts[i], count), TAKE_MS);
    }
}

static void
cluster_end(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        host_end(&hosts[i]);
    }
}

/* Subscribe, and wait until all nodes know. */
static void
subscribe_everywhere(uint32_t node, const char *topic, const char *group, trp_inbox *inbox)
{
    subscribe(mediators[node], topic, group, inbox, TRP_SUBSCRIBE_ACK_EVERYWHERE);
}

/* CONTRIB-12 CONTRIB-15 CONTRIB-17 CONTRIB-21: right after such an acknowledgement, from any
 * node. */
static void
a_publication_reaches_the_subscribers_of_all_nodes_with_its_sender(void)
{
    cluster_begin(NODES);
    trp_inbox *in[NODES][2], *from = inbox_of(hosts[0].system);
    for (uint32_t i = 0; i < NODES; i++) {
        in[i][0] = inbox_of(hosts[i].system);
        in[i][1] = inbox_of(hosts[i].system);
        subscribe_everywhere(i, "all", NULL, in[i][0]);
        subscribe_everywhere(i, "all", NULL, in[i][1]);
    }
    publish(mediators[0], trp_inbox_ref(from), "all", "hello");
    for (uint32_t i = 0; i < NODES; i++) {
        for (uint32_t k = 0; k < 2; k++) {
            trp_ref sender;
            trp_msg *msg = take(in[i][k], &trp_string_type, &sender);
            trp_msg_free(msg);
            trp_system_tell(hosts[i].system, sender, &trp_string_type, "back", 4);
            msg = take(from, &trp_string_type, NULL); /* the sender is who it was */
            trp_msg_free(msg);
        }
    }
    trp_publish_report report;
    UNIT_EQUAL(publish_counted(mediators[1], "all", "counted", 0, 0, &report), 2 * NODES);
    UNIT_EQUAL(report.nodes, NODES);
    UNIT_EQUAL(report.silent, 0);
    for (uint32_t i = 0; i < NODES; i++) {
        for (uint32_t k = 0; k < 2; k++) {
            take_text(in[i][k], "counted", nobody);
            trp_inbox_close(in[i][k]);
        }
    }
    trp_inbox_close(from);
    UNIT_WAIT(trp_mediator_topics_count(mediators[2]) == 0, TAKE_MS);
    cluster_end(NODES);
}

static uint32_t
drain(trp_inbox *inbox)
{
    uint32_t count = 0;
    trp_msg *msg;
    while (trp_inbox_receive(inbox, 0, &msg, NULL) == TRP_OK) {
        count++;
        trp_msg_free(msg);
    }
    return count;
}

/* CONTRIB-15 */
static void
one_of_a_group_gets_it_wherever_it_lives(void)
{
    enum { ROUNDS = 12 };
    cluster_begin(NODES);
    trp_inbox *in[NODES];
    trp_publish_report report;
    uint32_t all = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        in[i] = inbox_of(hosts[i].system);
        subscribe_everywhere(i, "jobs", "workers", in[i]);
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        UNIT_EQUAL(publish_counted(mediators[0], "jobs", "do", 0, 0, &report), 1);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        uint32_t got = drain(in[i]);
        UNIT_EQUAL(got, ROUNDS / NODES); /* in turn */
        all += got;
        trp_inbox_close(in[i]);
    }
    UNIT_EQUAL(all, ROUNDS);
    cluster_end(NODES);
}

/* ---- put ------------------------------------------------------------------------------------- */

static _Atomic uint32_t served[NODES];

static trp_err
service_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    for (uint32_t i = 0; i < NODES; i++) {
        if (trp_ctx_system(ctx) == hosts[i].system) {
            atomic_fetch_add(&served[i], 1);
        }
    }
    trp_reply(ctx, trp_msg_type(msg), trp_msg_payload(msg), trp_msg_bytes(msg));
    return TRP_OK;
}

static const trp_behaviour service = {
    .size = sizeof(trp_behaviour), .name = "service", .version = 1, .receive = service_receive
};

static void
send_some(uint32_t node, trp_inbox *from, uint32_t flags, uint32_t count)
{
    for (uint32_t i = 0; i < NODES; i++) {
        atomic_store(&served[i], 0);
    }
    for (uint32_t i = 0; i < count; i++) {
        UNIT_EQUAL(trp_mediator_send(mediators[node], trp_inbox_ref(from), "/user/service", flags,
                                     &trp_string_type, "hi", 2),
                   TRP_OK);
    }
    for (uint32_t i = 0; i < count; i++) {
        trp_msg_free(take(from, &trp_string_type, NULL));
    }
}

static void
send_to_all(uint32_t node, trp_inbox *from, uint32_t flags, uint32_t count)
{
    UNIT_EQUAL(trp_mediator_send_to_all(mediators[node], trp_inbox_ref(from), "/user/service",
                                        flags, &trp_string_type, "hi", 2),
               TRP_OK);
    for (uint32_t i = 0; i < count; i++) {
        trp_msg_free(take(from, &trp_string_type, NULL));
    }
    is_empty(from);
}

/* Does node 0 reach so many at /user/service? */
static bool
reaches(trp_inbox *from, uint32_t count)
{
    trp_err err = trp_mediator_send_to_all(mediators[0], trp_inbox_ref(from), "/user/service", 0,
                                           &trp_string_type, "hi", 2);
    uint32_t got = 0;
    trp_msg *msg;
    while (err == TRP_OK && got < count && trp_inbox_receive(from, 500, &msg, NULL) == TRP_OK) {
        got++;
        trp_msg_free(msg);
    }
    return got == count && drain(from) == 0;
}

/* CONTRIB-13 CONTRIB-14 */
static void
a_path_is_reached_on_any_node_and_at_home_with_affinity(void)
{
    cluster_begin(NODES);
    trp_inbox *from = inbox_of(hosts[0].system);
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    spawn.name = "service";
    for (uint32_t i = 0; i < NODES; i++) {
        trp_ref ref;
        UNIT_REQUIRE(trp_system_spawn(hosts[i].system, &service, &spawn, &ref) == TRP_OK);
        UNIT_EQUAL(trp_mediator_put(mediators[i], ref), TRP_OK);
    }
    UNIT_WAIT(reaches(from, NODES), TAKE_MS);
    send_some(0, from, TRP_SEND_LOCAL_AFFINITY, 20);
    UNIT_EQUAL(atomic_load(&served[0]), 20);
    send_some(0, from, 0, 200); /* 1 in 3^200: one node gets none */
    for (uint32_t i = 0; i < NODES; i++) {
        UNIT_TRUE(atomic_load(&served[i]) > 0);
    }
    send_to_all(0, from, 0, NODES);
    send_to_all(0, from, TRP_SEND_ALL_BUT_SELF, NODES - 1);
    UNIT_EQUAL(trp_mediator_remove(mediators[0], "/user/service"), TRP_OK);
    send_some(0, from, TRP_SEND_LOCAL_AFFINITY, 20); /* none is left at home */
    UNIT_EQUAL(atomic_load(&served[0]), 0);
    trp_inbox_close(from);
    cluster_end(NODES);
}

/* ---- nothing is lost in silence -------------------------------------------------------------- */

static void
what_does_not_travel_is_a_dead_letter(void)
{
    trp_publish_options options = TRP_PUBLISH_OPTIONS_INIT;
    trp_publish_report report;
    cluster_begin(2);
    trp_inbox *in = inbox_of(hosts[1].system);
    subscribe_everywhere(1, "local", NULL, in);
    trp_subscribe_ack ack = { .topic_bytes = 0 }; /* any type that stays here */
    UNIT_EQUAL(trp_mediator_publish_wait(mediators[0], "local", &options, &trp_subscribe_ack_type,
                                         &ack, sizeof ack, &report),
               TRP_OK);
    UNIT_EQUAL(report.delivered, 0);
    UNIT_EQUAL(dead_letters(hosts[0].system, TRP_DEAD_NOT_ENCODABLE), 1);
    is_empty(in);
    trp_inbox_close(in);
    cluster_end(2);
}

static void
a_publication_waits_for_a_subscriber_of_another_node(void)
{
    cluster_begin(2);
    trp_inbox *in = inbox_of(hosts[1].system);
    trp_publish_report report;
    UNIT_EQUAL(trp_mediator_subscribe(mediators[1], "soon", trp_inbox_ref(in), NULL), TRP_OK);
    /* its node does not know yet */
    UNIT_EQUAL(publish_counted(mediators[0], "soon", "now", 1, TAKE_MS, &report), 1);
    UNIT_EQUAL(report.late, 0);
    take_ack(in, true, "soon", TRP_OK);
    take_text(in, "now", nobody);
    trp_inbox_close(in);
    cluster_end(2);
}

/* From Leaving on; then the node is gone, and no dead letter of a lost connection comes. */
static void
a_node_that_leaves_gets_nothing_more(void)
{
    cluster_begin(2);
    trp_inbox *in = inbox_of(hosts[1].system);
    trp_publish_report report;
    subscribe_everywhere(1, "stay", NULL, in);
    UNIT_EQUAL(publish_counted(mediators[0], "stay", "1", 0, 0, &report), 1);
    UNIT_EQUAL(trp_cluster_leave(hosts[1].system, hosts[1].address), TRP_OK);
    UNIT_WAIT(trp_mediator_topics_count(mediators[0]) == 0, TAKE_MS);
    UNIT_EQUAL(publish_counted(mediators[0], "stay", "2", 0, 0, &report), 0);
    UNIT_EQUAL(report.silent, 0);
    UNIT_EQUAL(dead_letters(hosts[0].system, TRP_DEAD_NO_SUBSCRIBER), 1);
    take_text(in, "1", nobody);
    is_empty(in);
    trp_inbox_close(in);
    cluster_end(2);
}

/* CONTRIB-12 ROLES-03, -05 */
static void
a_mediator_of_a_role_starts_only_there(void)
{
    trp_mediator_options options = TRP_MEDIATOR_OPTIONS_INIT;
    trp_mediator *m;
    cluster_begin(1);
    options.name = "front";
    options.role = "frontend";
    UNIT_EQUAL(trp_mediator_start(hosts[0].system, &options, &m), TRP_EROLE);
    options.role = "worker"; /* that of all hosts here */
    UNIT_EQUAL(trp_mediator_start(hosts[0].system, &options, &m), TRP_OK);
    cluster_end(1);
}

UNIT_BEGIN("pubsub_nodes")
UNIT(a_publication_reaches_the_subscribers_of_all_nodes_with_its_sender)
UNIT(one_of_a_group_gets_it_wherever_it_lives)
UNIT(a_path_is_reached_on_any_node_and_at_home_with_affinity)
UNIT(what_does_not_travel_is_a_dead_letter)
UNIT(a_publication_waits_for_a_subscriber_of_another_node)
UNIT(a_node_that_leaves_gets_nothing_more)
UNIT(a_mediator_of_a_role_starts_only_there)
UNIT_END

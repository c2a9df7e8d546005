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
    UNIT_EQUAL(report.nodes, 0);
    UNIT_EQUAL(report.silent, 1); /* the node that could not be told has not answered */
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

/* ---- a mediator that does not answer --------------------------------------------------------- */

static _Atomic int gate_open, gate_held;

/* Holds the only worker of its node. */
static trp_err
gate_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    atomic_store(&gate_held, 1);
    while (atomic_load(&gate_open) == 0) {
        unit_pause();
    }
    return TRP_OK;
}

static void
gate_close(uint32_t node)
{
    static const trp_behaviour behaviour = {
        .size = sizeof behaviour, .name = "gate", .version = 1, .receive = gate_receive
    };
    trp_ref gate;
    atomic_store(&gate_open, 0);
    atomic_store(&gate_held, 0);
    UNIT_REQUIRE(trp_system_spawn(hosts[node].system, &behaviour, NULL, &gate) == TRP_OK);
    trp_system_tell(hosts[node].system, gate, &trp_string_type, "", 0);
    UNIT_WAIT(atomic_load(&gate_held) == 1, TAKE_MS);
}

static _Atomic uint32_t asks_delivered, asks_refused;

static trp_err
ask_ended(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    const trp_publish_report *report =
        err == TRP_OK ? trp_msg_as(reply, &trp_publish_report_type) : NULL;
    (void)ctx;
    (void)state;
    (void)arg;
    if (report != NULL && report->delivered == 1 && report->nodes == 1 && report->silent == 0) {
        atomic_fetch_add(&asks_delivered, 1);
    } else if (err == TRP_ELIMIT) {
        atomic_fetch_add(&asks_refused, 1);
    }
    return TRP_OK;
}

static trp_err
asker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_publish_options options = TRP_PUBLISH_OPTIONS_INIT;
    (void)state;
    options.timeout_ms = 10 * TAKE_MS;
    for (uint32_t i = 0; i <= TRP_MEDIATOR_ASKS_MAX; i++) {
        UNIT_EQUAL(trp_mediator_publish_ask(ctx, mediators[0], "far", &options, trp_msg_type(msg),
                                            trp_msg_payload(msg), trp_msg_bytes(msg), ask_ended,
                                            NULL),
                   TRP_OK);
    }
    return TRP_OK;
}

/* CONTRIB-15: TRP_MEDIATOR_ASKS_MAX; what is above is not published, and its asker is told. */
static void
so_many_publications_await_answers_and_one_more_is_refused(void)
{
    static const trp_behaviour behaviour = {
        .size = sizeof behaviour, .name = "asker", .version = 1, .receive = asker_receive
    };
    cluster_begin(2);
    trp_publish_options options = TRP_PUBLISH_OPTIONS_INIT;
    trp_inbox *in = large_inbox_of(hosts[1].system, TRP_MEDIATOR_ASKS_MAX + 2);
    trp_publish_report report = { 0 };
    trp_ref asker;
    subscribe_everywhere(1, "far", NULL, in);
    gate_close(1);
    options.timeout_ms = 50;
    UNIT_EQUAL(trp_mediator_publish_wait(mediators[0], "far", &options, &trp_string_type, "first",
                                         5, &report),
               TRP_OK);
    UNIT_EQUAL(report.silent, 1); /* its answer will be late */
    UNIT_EQUAL(report.delivered, 0);
    UNIT_REQUIRE(trp_system_spawn(hosts[0].system, &behaviour, NULL, &asker) == TRP_OK);
    trp_system_tell(hosts[0].system, asker, &trp_string_type, "hi", 2);
    UNIT_WAIT(atomic_load(&asks_refused) == 1, TAKE_MS);
    UNIT_EQUAL(atomic_load(&asks_delivered), 0);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&asks_delivered) == TRP_MEDIATOR_ASKS_MAX, TAKE_MS);
    UNIT_EQUAL(atomic_load(&asks_refused), 1);
    UNIT_EQUAL(drain(in), TRP_MEDIATOR_ASKS_MAX + 1);
    trp_inbox_close(in);
    cluster_end(2);
}

/* CONTRIB-16: TRP_MEDIATOR_ACKS_MAX */
static void
so_many_acknowledgements_wait_for_other_nodes(void)
{
    cluster_begin(2);
    trp_inbox *in = large_inbox_of(hosts[0].system, TRP_MEDIATOR_ACKS_MAX + 1);
    trp_subscribe_options options = TRP_SUBSCRIBE_OPTIONS_INIT;
    uint32_t refused = 0, everywhere = 0;
    options.flags = TRP_SUBSCRIBE_ACK_EVERYWHERE;
    gate_close(1);
    for (uint32_t i = 0; i < TRP_MEDIATOR_ACKS_MAX; i++) {
        refused += trp_mediator_subscribe(mediators[0], "a", trp_inbox_ref(in), &options) != TRP_OK;
    }
    UNIT_EQUAL(refused, 0);
    UNIT_EQUAL(trp_mediator_subscribe(mediators[0], "b", trp_inbox_ref(in), &options), TRP_OK);
    take_ack(in, true, "b", TRP_ELIMIT); /* before the others */
    UNIT_EQUAL(trp_mediator_topics_count(mediators[0]), 1);
    atomic_store(&gate_open, 1);
    for (uint32_t i = 0; i < TRP_MEDIATOR_ACKS_MAX; i++) {
        trp_msg *msg = take(in, &trp_subscribe_ack_type, NULL);
        everywhere += ((const trp_subscribe_ack *)trp_msg_payload(msg))->everywhere;
        trp_msg_free(msg);
    }
    UNIT_EQUAL(everywhere, TRP_MEDIATOR_ACKS_MAX);
    is_empty(in);
    trp_inbox_close(in);
    cluster_end(2);
}

/* ---- a mediator that has stopped ------------------------------------------------------------- */

static void
mediator_stop(uint32_t node)
{
    trp_ref actor;
    UNIT_REQUIRE(trp_system_resolve(hosts[node].system, "/system/pubsub", TAKE_MS, &actor) ==
                 TRP_OK);
    UNIT_EQUAL(trp_system_graceful_stop(hosts[node].system, actor, TAKE_MS), TRP_OK);
}

/* CONTRIB-18, mediator-M4, dead-letter-D6: what comes for it is a dead letter that shows what was
 * published; the other nodes forget its subscribers, and one that starts in its place is known
 * again. */
static void
a_mediator_that_has_stopped_is_forgotten_and_starts_again(void)
{
    cluster_begin(2);
    trp_inbox *in = inbox_of(hosts[1].system), *dead = inbox_of(hosts[1].system);
    trp_inbox *here = inbox_of(hosts[0].system);
    subscribe_everywhere(1, "t", NULL, in);
    UNIT_EQUAL(trp_system_subscribe(hosts[1].system, trp_inbox_ref(dead), &trp_dead_letter_type),
               TRP_OK);
    mediator_stop(1);
    publish(mediators[0], trp_inbox_ref(here), "t", "lost");
    trp_msg *msg = take(dead, &trp_dead_letter_type, NULL);
    const trp_dead_letter *letter = trp_msg_payload(msg);
    UNIT_EQUAL(letter->type, trp_string_type.number);
    UNIT_EQUAL(letter->bytes, 4);
    const trp_msg *kept = trp_dead_letter_msg(msg);
    UNIT_REQUIRE(kept != NULL && trp_msg_is(kept, &trp_string_type));
    UNIT_EQUAL(memcmp(trp_msg_payload(kept), "lost", 4), 0);
    trp_msg_free(msg);
    trp_inbox_close(dead);
    subscribe(mediators[0], "other", NULL, here, 0); /* a change that it does not acknowledge */
    UNIT_WAIT(trp_mediator_topics_count(mediators[0]) == 1, TAKE_MS);
    UNIT_WAIT(trp_mediator_of(hosts[1].system, NULL, &mediators[1]) == TRP_OK, TAKE_MS);
    subscribe_everywhere(1, "t", NULL, in);
    publish(mediators[0], nobody, "t", "back");
    take_text(in, "back", nobody);
    UNIT_WAIT(trp_mediator_topics_count(mediators[1]) == 2, TAKE_MS);
    trp_inbox_close(in);
    trp_inbox_close(here);
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
UNIT(so_many_publications_await_answers_and_one_more_is_refused)
UNIT(so_many_acknowledgements_wait_for_other_nodes)
UNIT(a_mediator_that_has_stopped_is_forgotten_and_starts_again)
UNIT(a_mediator_of_a_role_starts_only_there)
UNIT_END

/* Subscribers learn that their own node is out of the cluster (EVENTS-14), over sockets. */
#include <string.h>

#include "tests/unit/cluster/host.h"

#define TOLD_MAX 64u

/* ---- an actor that writes down what it is told ----------------------------------------------- */

static struct told {
    pthread_mutex_t lock;
    uint16_t tags[TOLD_MAX];
    trp_member_event members[TOLD_MAX];
    uint32_t count;
    trp_leader_event leader;
    uint32_t state_members; /* of the last state */
} told = { .lock = PTHREAD_MUTEX_INITIALIZER };

static trp_err
subscriber_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    pthread_mutex_lock(&told.lock);
    uint32_t at = told.count < TOLD_MAX ? told.count++ : TOLD_MAX - 1;
    told.tags[at] = trp_msg_tag(msg);
    memset(&told.members[at], 0, sizeof told.members[at]);
    if (trp_msg_is(msg, &trp_current_cluster_state_type)) {
        told.state_members =
            ((const trp_current_cluster_state *)trp_msg_payload(msg))->members_count;
    } else if (trp_msg_is(msg, &trp_leader_changed_type)) {
        memcpy(&told.leader, trp_msg_payload(msg), sizeof told.leader);
    } else if (trp_msg_bytes(msg) == sizeof told.members[0]) {
        memcpy(&told.members[at], trp_msg_payload(msg), sizeof told.members[at]);
    }
    pthread_mutex_unlock(&told.lock);
    return TRP_OK;
}

static trp_err
watch_actor(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trp_ref watched;
    (void)state;
    memcpy(&watched, trp_msg_payload(args), sizeof watched);
    return trp_watch(ctx, watched);
}

static const trp_behaviour subscriber = { .size = sizeof(trp_behaviour),
                                          .name = "subscriber",
                                          .version = 1,
                                          .state_bytes = 8,
                                          .receive = subscriber_receive,
                                          .pre_start = watch_actor };

static trp_err
ignore_message(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return TRP_OK;
}

static const trp_behaviour watched_behaviour = {
    .size = sizeof(trp_behaviour), .name = "watched", .version = 1, .receive = ignore_message
};

/* Index behind the last one of this tag; 0: none. */
static uint32_t
last_of(uint16_t tag)
{
    uint32_t last = 0;
    pthread_mutex_lock(&told.lock);
    for (uint32_t i = 0; i < told.count; i++) {
        last = told.tags[i] == tag ? i + 1 : last;
    }
    pthread_mutex_unlock(&told.lock);
    return last;
}

static uint32_t
count_of(uint16_t tag)
{
    uint32_t count = 0;
    pthread_mutex_lock(&told.lock);
    for (uint32_t i = 0; i < told.count; i++) {
        count += told.tags[i] == tag ? 1 : 0;
    }
    pthread_mutex_unlock(&told.lock);
    return count;
}

static bool
nobody_leads(void)
{
    pthread_mutex_lock(&told.lock);
    bool nobody = told.leader.uid == 0;
    pthread_mutex_unlock(&told.lock);
    return nobody;
}

static uint32_t
state_members(void)
{
    pthread_mutex_lock(&told.lock);
    uint32_t count = told.state_members;
    pthread_mutex_unlock(&told.lock);
    return count;
}

static size_t
members_up(struct host *h)
{
    trp_member members[4];
    size_t count, up = 0;
    UNIT_EQUAL(trp_cluster_members(h->system, members, 4, &count), TRP_OK);
    for (size_t i = 0; i < count && i < 4; i++) {
        up += members[i].status == TRP_MEMBER_UP ? 1 : 0;
    }
    return up;
}

/* ---- the tests ------------------------------------------------------------------------------- */

/* Two hosts; an actor of the second is told everything, and watches an actor of the first. */
static trp_ref
two_hosts(struct host *a, struct host *b)
{
    trp_ref watched = TRP_REF_NONE, seen_from_b = TRP_REF_NONE, ref = TRP_REF_NONE;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    char path[sizeof a->address + 32];
    told.count = 0;
    memset(&told.leader, 0xff, sizeof told.leader);
    host_start(a, "self");
    UNIT_WAIT(members_up(a) == 1, 60000);
    host_start(b, a->address);
    UNIT_WAIT(members_up(a) == 2 && members_up(b) == 2, 60000);
    options.name = "watched";
    UNIT_REQUIRE(trp_system_spawn(a->system, &watched_behaviour, &options, &watched) == TRP_OK);
    (void)snprintf(path, sizeof path, "%s/user/watched", a->address);
    UNIT_REQUIRE(trp_system_resolve(b->system, path, 60000, &seen_from_b) == TRP_OK);
    options.name = "subscriber";
    options.args_type = &trp_bytes_type;
    options.args = &seen_from_b;
    options.args_bytes = sizeof seen_from_b;
    UNIT_REQUIRE(trp_system_spawn(b->system, &subscriber, &options, &ref) == TRP_OK);
    UNIT_EQUAL(trp_cluster_subscribe(b->system, ref, TRP_CLUSTER_DOMAIN_EVENTS), TRP_OK);
    UNIT_WAIT(count_of(trp_cluster_state_tag) == 1, 60000);
    UNIT_EQUAL(state_members(), 2);
    return ref;
}

/* Each member was removed once, the own node last; there is no leader; no watcher heard anything.
 */
static void
check_end(const struct host *a, const struct host *b, uint32_t own_previous)
{
    UNIT_WAIT(count_of(trp_member_removed_tag) == 2 && nobody_leads(), 60000);
    uint32_t last = last_of(trp_member_removed_tag);
    UNIT_REQUIRE(last >= 2);
    pthread_mutex_lock(&told.lock);
    const trp_member_event *own = &told.members[last - 1], *other = NULL;
    for (uint32_t i = 0; i + 1 < last; i++) {
        other = told.tags[i] == trp_member_removed_tag ? &told.members[i] : other;
    }
    UNIT_REQUIRE(other != NULL);
    UNIT_TEXT(other->member.address, a->address);
    UNIT_EQUAL(other->member.self, 0);
    UNIT_EQUAL(other->member.status, TRP_MEMBER_REMOVED);
    UNIT_EQUAL(other->previous_status, TRP_MEMBER_UP); /* it is in the cluster still */
    UNIT_TEXT(own->member.address, b->address);
    UNIT_EQUAL(own->member.self, 1);
    UNIT_EQUAL(own->member.status, TRP_MEMBER_REMOVED);
    UNIT_EQUAL(own->previous_status, own_previous);
    UNIT_TEXT(told.leader.address, "");
    for (uint32_t i = last; i < told.count; i++) { /* nothing behind it, but the leader */
        UNIT_TRUE(told.tags[i] == trp_leader_changed_tag ||
                  told.tags[i] == trp_role_leader_changed_tag);
    }
    pthread_mutex_unlock(&told.lock);
    UNIT_EQUAL(count_of(trp_terminated_tag), 0);
}

/* EVENTS-14 */
static void
a_subscriber_learns_that_its_node_has_left(void)
{
    static struct host a, b;
    uint32_t at;
    trp_ref ref = two_hosts(&a, &b);
    UNIT_EQUAL(trp_cluster_leave(b.system, b.address), TRP_OK);
    UNIT_WAIT(atomic_load(&b.stopped) == TRPI_STOP_LEFT, 60000);
    check_end(&a, &b, TRP_MEMBER_EXITING);
    UNIT_EQUAL(trp_cluster_send_state(b.system, ref), TRP_OK); /* a new one knows as much */
    UNIT_WAIT(count_of(trp_cluster_state_tag) == 2, 60000);
    UNIT_EQUAL(state_members(), 0);
    char text[sizeof a.address + 32];
    (void)snprintf(text, sizeof text, "member %s is Removed", a.address);
    UNIT_WAIT(lines_with(&b, "has left the cluster", "", &at) == 1, 60000);
    UNIT_EQUAL(lines_with(&b, text, "", &at), 0); /* it was not removed, and no log says so */
    host_end(&b);
    host_end(&a);
}

/* EVENTS-14 */
static void
a_subscriber_learns_that_its_node_was_downed(void)
{
    static struct host a, b;
    (void)two_hosts(&a, &b);
    UNIT_EQUAL(trp_cluster_down(a.system, b.address), TRP_OK);
    UNIT_WAIT(atomic_load(&b.stopped) == TRPI_STOP_DOWNED, 60000);
    check_end(&a, &b, TRP_MEMBER_DOWN);
    host_end(&b);
    host_end(&a);
}

/* EVENTS-14 */
static void
a_subscriber_learns_that_its_system_stops_without_leaving(void)
{
    static struct host a, b;
    (void)two_hosts(&a, &b);
    b.silent = true;
    trpi_cluster_stop(b.cluster);
    check_end(&a, &b, TRP_MEMBER_UP);
    host_end(&b);
    host_end(&a);
}

/* membership-seed-J16: it would ask for ever */
static void
a_node_that_its_seed_has_quarantined_does_not_ask_for_ever(void)
{
    struct host a, b;
    trpi_cluster_options options = { .quiet = false };
    trpi_node_id id = { .uid = 0 };
    uint32_t first;
    host_start(&a, "self");
    host_open(&b);
    UNIT_WAIT(members_up(&a) == 1, 60000);
    id.address = *trpi_remote_address(b.remote);
    id.uid = trpi_system_self(b.system)->uid;
    trpi_remote_quarantine(a.remote, &id, "removed from the cluster");
    host_join(&b, a.address, options);
    UNIT_WAIT(atomic_load(&b.stopped) == TRPI_STOP_DOWNED, 60000);
    UNIT_WAIT(lines_with(&b, "cannot join", "restart the process", &first) == 1, 60000);
    host_end(&b);
    host_end(&a);
}

UNIT_BEGIN("own-end")
UNIT(a_subscriber_learns_that_its_node_has_left)
UNIT(a_subscriber_learns_that_its_node_was_downed)
UNIT(a_subscriber_learns_that_its_system_stops_without_leaving)
UNIT(a_node_that_its_seed_has_quarantined_does_not_ask_for_ever)
UNIT_END

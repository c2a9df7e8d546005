/* The actor, the door and the public API, on real systems over loopback (EVENTS, MEMB-12, MEMB-21,
 * SEED-09). */
#include "base/alloc.h"
#include "cluster/shell/shell.h"
#include "tests/unit/cluster/host.h"

static _Atomic int up_calls;

static void
on_up(void *arg)
{
    (void)arg;
    atomic_fetch_add(&up_calls, 1);
}

static size_t
members_up(struct host *h)
{
    trp_member members[8];
    size_t count = 0;
    size_t up = 0;
    if (trp_cluster_members(h->system, members, 8, &count) != TRP_OK) {
        return 0;
    }
    for (size_t i = 0; i < count && i < 8; i++) {
        up += members[i].status == TRP_MEMBER_UP ? 1 : 0;
    }
    return up;
}

static size_t
members_all(struct host *h)
{
    size_t count = 0;
    UNIT_EQUAL(trp_cluster_members(h->system, NULL, 0, &count), TRP_OK);
    return count;
}

/* ---- an actor that writes down what it is told ----------------------------------------------- */

static pthread_mutex_t heard_lock = PTHREAD_MUTEX_INITIALIZER;
static uint16_t heard[1024];
static uint32_t heard_count;
static struct {
    trp_current_cluster_state state;
    trp_member members[8];
} heard_state; /* the last */
static trp_member_event heard_unreachable;

static trp_err
listener_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    pthread_mutex_lock(&heard_lock);
    size_t bytes = trp_msg_bytes(msg);
    if (trp_msg_is(msg, &trp_current_cluster_state_type) && bytes <= sizeof heard_state) {
        memcpy(&heard_state, trp_msg_payload(msg), bytes);
    } else if (trp_msg_is(msg, &trp_member_unreachable_type)) {
        memcpy(&heard_unreachable, trp_msg_payload(msg), sizeof heard_unreachable);
    }
    if (heard_count < 1024) {
        heard[heard_count++] = trp_msg_tag(msg);
    }
    pthread_mutex_unlock(&heard_lock);
    return TRP_OK;
}

static const trp_behaviour listener = { .size = sizeof(trp_behaviour),
                                        .name = "listener",
                                        .version = 1,
                                        .state_bytes = 8,
                                        .receive = listener_receive };

static uint32_t
heard_of(uint16_t tag)
{
    uint32_t count = 0;
    pthread_mutex_lock(&heard_lock);
    for (uint32_t i = 0; i < heard_count; i++) {
        count += heard[i] == tag ? 1 : 0;
    }
    pthread_mutex_unlock(&heard_lock);
    return count;
}

/* EVENTS-01, -03, -04, -05, -11, MEMB-25, SEED-03, MinMembersBeforeUpSpec; MEMB-12, -21; SEED-09,
 * -12 */
static void
a_subscriber_hears_the_state_first_and_then_every_change(void)
{
    struct host a;
    struct host b;
    trp_ref ref = TRP_REF_NONE;
    heard_count = 0;
    atomic_store(&up_calls, 0);
    host_start(&a, "self");
    UNIT_WAIT(members_up(&a) == 1, 60000);
    UNIT_EQUAL(trp_system_spawn(a.system, &listener, NULL, &ref), TRP_OK);
    UNIT_EQUAL(trp_cluster_subscribe(a.system, ref, TRP_CLUSTER_MEMBER_EVENTS), TRP_OK);
    UNIT_WAIT(heard_of(trp_cluster_state_tag) == 1, 60000);
    host_start(&b, NULL);
    UNIT_EQUAL(trp_cluster_on_member_up(b.system, on_up, NULL), TRP_OK);
    char nobody[TRPI_ADDRESS_TEXT_BYTES];
    (void)snprintf(nobody, sizeof nobody, "troupe.tcp://%s@127.0.0.1:1", trp_system_name(b.system));
    const char *contacts[] = { nobody, a.address };
    UNIT_EQUAL(trp_cluster_join(b.system, contacts, 2), TRP_OK);
    UNIT_WAIT(members_up(&a) == 2 && members_up(&b) == 2, 60000);
    UNIT_WAIT(atomic_load(&up_calls) == 1, 60000);
    UNIT_WAIT(heard_of(trp_member_up_tag) == 1, 60000);
    UNIT_EQUAL(heard_of(trp_member_joined_tag), 1);
    UNIT_EQUAL(heard[0], trp_cluster_state_tag);
    UNIT_EQUAL(trp_cluster_send_state(a.system, ref), TRP_OK); /* EVENTS-12 */
    UNIT_WAIT(heard_of(trp_cluster_state_tag) == 2, 60000);
    pthread_mutex_lock(&heard_lock);
    const trp_member *known = trp_current_cluster_state_members(&heard_state.state);
    UNIT_EQUAL(heard_state.state.members_count, 2);
    UNIT_EQUAL(heard_state.state.unreachable_count, 0);
    bool first = strcmp(known[0].address, a.address) == 0; /* by the address: the leader */
    UNIT_TEXT(known[first ? 1 : 0].address, b.address);
    UNIT_TEXT(heard_state.state.leader.address, known[0].address);
    UNIT_EQUAL(heard_state.state.leader.uid, known[0].uid);
    UNIT_TRUE(trp_member_is_older_than(&known[first ? 0 : 1], &known[first ? 1 : 0])); /* MEMB-25 */
    UNIT_FALSE(trp_member_is_older_than(&known[first ? 1 : 0], &known[first ? 0 : 1]));
    pthread_mutex_unlock(&heard_lock);
    UNIT_EQUAL(trp_cluster_join(b.system, contacts, 2), TRP_ESTATE); /* MEMB-05 */
    UNIT_EQUAL(trp_cluster_leave(a.system, b.address), TRP_OK);
    UNIT_WAIT(members_all(&a) == 1, 60000);
    UNIT_WAIT(atomic_load(&b.stopped) == TRPI_STOP_LEFT, 60000);
    UNIT_WAIT(heard_of(trp_member_removed_tag) == 1, 60000);
    UNIT_EQUAL(heard_of(trp_member_left_tag), 1);
    UNIT_EQUAL(heard_of(trp_member_exited_tag), 1);
    UNIT_EQUAL(atomic_load(&a.stopped), 0);
    host_end(&b);
    host_end(&a);
}

/* EVENTS-02, -10, EVENTS-15 */
static void
before_joining_the_state_is_empty_and_an_ended_subscription_is_silent(void)
{
    struct host a;
    trp_ref ref = TRP_REF_NONE;
    trp_member self;
    heard_count = 0;
    host_start(&a, NULL);
    UNIT_EQUAL(trp_system_spawn(a.system, &listener, NULL, &ref), TRP_OK);
    UNIT_EQUAL(trp_cluster_subscribe(a.system, ref, TRP_CLUSTER_DOMAIN_EVENTS), TRP_OK);
    UNIT_WAIT(heard_of(trp_cluster_state_tag) == 1, 60000);
    UNIT_EQUAL(trp_cluster_self(a.system, &self), TRP_OK);
    UNIT_EQUAL(self.status, 0);
    UNIT_TEXT(self.address, a.address);
    UNIT_EQUAL(trp_cluster_leader(a.system, NULL, &self), TRP_ENOENT);
    trp_cluster_unsubscribe(a.system, ref, TRP_CLUSTER_DOMAIN_EVENTS);
    const char *own = a.address;
    UNIT_EQUAL(trp_cluster_join(a.system, &own, 1), TRP_OK);
    UNIT_WAIT(members_up(&a) == 1, 60000);
    UNIT_EQUAL(trp_cluster_leader(a.system, "worker", &self), TRP_OK);
    UNIT_EQUAL(self.self, 1);
    /* EVENTS-15; behind whatever came before */
    UNIT_EQUAL(trp_cluster_send_state(a.system, ref), TRP_OK);
    UNIT_WAIT(heard_of(trp_cluster_state_tag) == 2, 60000);
    UNIT_EQUAL(heard_of(trp_member_up_tag), 0);
    host_end(&a);
}

static void
misuse_is_an_error(void)
{
    trp_system *system = NULL;
    trp_member member;
    trp_ref none = TRP_REF_NONE;
    size_t count;
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    options.workers = 1;
    options.log_level = TRP_LOG_ERROR;
    UNIT_REQUIRE(trp_system_new("plain", &options, &system) == TRP_OK);
    UNIT_EQUAL(trp_cluster_members(system, NULL, 0, &count), TRP_ESTATE);
    UNIT_EQUAL(trp_cluster_self(system, &member), TRP_ESTATE);
    UNIT_EQUAL(trp_cluster_leave(system, NULL), TRP_ESTATE);
    UNIT_EQUAL(trp_cluster_down(system, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_cluster_subscribe(system, none, 1), TRP_EINVAL);
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trp_system_free(system);
}

/* ---- the death of a member ------------------------------------------------------------------- */

static trp_ref watched;
static _Atomic int terminated, watching;

static trp_err
watcher_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_terminated_type)) {
        const trp_terminated *what = trp_msg_payload(msg);
        UNIT_TRUE(trp_ref_equal(what->ref, watched));
        atomic_fetch_add(&terminated, 1);
        return TRP_OK;
    }
    UNIT_EQUAL(trp_watch(ctx, watched), TRP_OK);
    atomic_fetch_add(&watching, 1);
    return TRP_OK;
}

static const trp_behaviour watcher = {
    .size = sizeof(trp_behaviour), .name = "watcher", .version = 1, .receive = watcher_receive
};

/* An actor of `from` watches one of `to`. */
static void
watch_across(struct host *from, struct host *to)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    char path[sizeof to->address + 32];
    atomic_store(&terminated, 0);
    atomic_store(&watching, 0);
    options.name = "target";
    UNIT_EQUAL(trp_system_spawn(to->system, &listener, &options, &ref), TRP_OK);
    (void)snprintf(path, sizeof path, "%s/user/target", to->address);
    UNIT_REQUIRE(trp_system_resolve(from->system, path, 60000, &watched) == TRP_OK);
    UNIT_EQUAL(trp_system_spawn(from->system, &watcher, NULL, &ref), TRP_OK);
    trp_system_tell(from->system, ref, &trp_string_type, "watch", 5);
    UNIT_WAIT(atomic_load(&watching) == 1, 60000);
}

static bool
is_quarantined(struct host *h, const char *address)
{
    trpi_peer_info peers[8];
    char text[TRPI_ADDRESS_TEXT_BYTES];
    size_t count = 0;
    trpi_remote_peers(h->remote, peers, 8, &count);
    for (size_t i = 0; i < count && i < 8; i++) {
        (void)trpi_address_format(&peers[i].id.address, text, sizeof text);
        if (strcmp(text, address) == 0) {
            return strcmp(peers[i].state, "quarantined") == 0;
        }
    }
    return false;
}

/* Each change of this member stands in the log of h once, and in the order in which it happened. */
static void
check_story(struct host *h, const char *member)
{
    static const char *const story[] = { " is Joining", " is Up", " is unreachable", " is Down",
                                         " is Removed" };
    uint32_t before = 0;
    for (size_t i = 0; i < sizeof story / sizeof story[0]; i++) {
        char text[sizeof h->lines[0]];
        uint32_t at = 0;
        (void)snprintf(text, sizeof text, "member %s%s", member, story[i]);
        UNIT_EQUAL(lines_with(h, text, "", &at), 1);
        UNIT_TRUE(i == 0 || at > before);
        before = at;
    }
}

static uint32_t
lines_of_leader(struct host *h, const char *what, const char *address)
{
    char text[sizeof h->lines[0]];
    uint32_t at;
    (void)snprintf(text, sizeof text, "%s is %s", what, address);
    return lines_with(h, text, "", &at);
}

/* Three hosts in the order of their ports, so that the leader is known. */
static void
hosts_open(struct host hosts[3], struct host *ret_order[3])
{
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t at = i;
        host_open(&hosts[i]);
        while (at > 0 && trpi_remote_address(ret_order[at - 1]->remote)->port >
                             trpi_remote_address(hosts[i].remote)->port) {
            ret_order[at] = ret_order[at - 1];
            at--;
        }
        ret_order[at] = &hosts[i];
    }
}

/* EVENTS-06 */
static void
check_told_unreachable(const struct host *h)
{
    UNIT_EQUAL(heard_of(trp_member_unreachable_tag), 1);
    pthread_mutex_lock(&heard_lock);
    UNIT_TEXT(heard_unreachable.member.address, h->address);
    UNIT_EQUAL(heard_unreachable.member.reachable, 0);
    pthread_mutex_unlock(&heard_lock);
}

static _Atomic uint32_t looks;

/* When a member is found silent, and when it is marked Down. On the cluster's thread: that it is
 * removed is published behind this. So it may still come back, and its watchers know nothing. */
static void
look_before_the_removal(void *arg, const trpi_cluster_event *event)
{
    UNIT_EQUAL(atomic_load(&terminated), 0);
    UNIT_FALSE(is_quarantined(arg, event->member->member.address));
    atomic_fetch_add(&looks, 1);
}

/* EVENTS-08, -16, EVENTS-06, GAP-08; FD-19, -20; MEMB-21, -28: the leader crashes, and every node
 * is told once */
static void
a_leader_that_dies_is_downed_quarantined_and_told_of_once(void)
{
    static struct host hosts[3];
    struct host *h[3];
    trp_ref ref = TRP_REF_NONE;
    uint32_t at = 0;
    uint64_t look = 0;
    trpi_cluster_options options = { .quarantine_removed_after_ms = 300 };
    options.member.downing.stable_after_ms = 2000;
    options.heartbeat.phi.heartbeat_interval_ms = 250;
    heard_count = 0;
    atomic_store(&up_calls, 0);
    hosts_open(hosts, h);
    host_join(h[1], "self", options);
    UNIT_WAIT(members_up(h[1]) == 1, 60000);
    UNIT_EQUAL(trp_system_spawn(h[1]->system, &listener, NULL, &ref), TRP_OK);
    UNIT_EQUAL(trp_cluster_subscribe(h[1]->system, ref,
                                     TRP_CLUSTER_LEADER_CHANGED | TRP_CLUSTER_ROLE_LEADER_CHANGED |
                                         TRP_CLUSTER_DOWNING_DECISION | TRP_CLUSTER_SEEN_CHANGED |
                                         TRP_CLUSTER_UNREACHABLE),
               TRP_OK);
    UNIT_WAIT(heard_of(trp_cluster_state_tag) == 1, 60000);
    host_join(h[2], h[1]->address, options);
    UNIT_WAIT(members_up(h[1]) == 2 && members_up(h[2]) == 2, 60000);
    host_join(h[0], h[1]->address, options);
    UNIT_EQUAL(trp_cluster_on_member_up(h[0]->system, on_up, NULL), TRP_OK);
    UNIT_WAIT(members_up(h[0]) == 3 && members_up(h[1]) == 3 && members_up(h[2]) == 3, 60000);
    UNIT_WAIT(atomic_load(&up_calls) == 1, 60000);
    UNIT_EQUAL(trp_cluster_on_member_up(h[0]->system, on_up, NULL), TRP_OK); /* is Up: at once */
    UNIT_WAIT(atomic_load(&up_calls) == 2, 60000);
    UNIT_WAIT(heard_of(trp_leader_changed_tag) == 1, 60000);
    UNIT_WAIT(heard_of(trp_role_leader_changed_tag) == 2, 60000);
    UNIT_EQUAL(heard[0], trp_cluster_state_tag); /* EVENTS-12: the leaders of roles come behind */
    UNIT_EQUAL(heard[1], trp_role_leader_changed_tag);
    watch_across(h[1], h[0]);

    UNIT_EQUAL(trpi_cluster_listen(h[1]->cluster,
                                   TRP_CLUSTER_UNREACHABLE | TRP_CLUSTER_MEMBER_DOWNED,
                                   look_before_the_removal, h[1], &look),
               TRP_OK);
    h[0]->silent = true; /* its process stays: no connection is closed */
    trpi_cluster_stop(h[0]->cluster);
    UNIT_WAIT(atomic_load(&looks) == 2, 60000);
    UNIT_WAIT(members_all(h[1]) == 2 && members_all(h[2]) == 2, 60000);
    UNIT_WAIT(is_quarantined(h[1], h[0]->address) && is_quarantined(h[2], h[0]->address), 60000);
    UNIT_WAIT(atomic_load(&terminated) == 1, 60000);

    UNIT_WAIT(heard_of(trp_leader_changed_tag) == 2, 60000);
    UNIT_WAIT(heard_of(trp_role_leader_changed_tag) == 3, 60000);
    UNIT_EQUAL(trp_log_flush(h[1]->system, 60000), TRP_OK);
    UNIT_EQUAL(trp_log_flush(h[2]->system, 60000), TRP_OK);
    UNIT_WAIT(heard_of(trp_downing_decision_tag) == lines_with(h[1], "downing ", "", &at), 60000);
    UNIT_TRUE(heard_of(trp_seen_changed_tag) > 0);
    check_told_unreachable(h[0]);
    check_story(h[1], h[0]->address);
    check_story(h[2], h[0]->address);
    for (uint32_t i = 1; i < 3; i++) { /* alone, or joining; and after the death of h[0] */
        UNIT_EQUAL(lines_of_leader(h[i], "leader", h[1]->address), 2);
        UNIT_EQUAL(lines_of_leader(h[i], "leader", h[0]->address), 1);
        UNIT_EQUAL(lines_of_leader(h[i], "leader of role worker", h[1]->address), 2);
        UNIT_EQUAL(lines_of_leader(h[i], "leader of role worker", h[0]->address), 1);
    }
    UNIT_EQUAL(lines_with(h[1], "downing keep-majority: down-unreachable (",
                          "; members 3, on this side 2, unreachable 1, indirectly 0)", &at) +
                   lines_with(h[2], "downing keep-majority: down-unreachable (",
                              "; members 3, on this side 2, unreachable 1, indirectly 0)", &at),
               1);
    for (uint32_t i = 0; i < 3; i++) {
        host_end(h[i]);
    }
}

/* FD-20: long before it is quarantined, and also when it has left and its system goes on */
static void
watchers_are_told_with_the_removal_of_the_member(void)
{
    struct host hosts[3];
    trpi_cluster_options options = { .quarantine_removed_after_ms = 3600000 };
    options.member.downing_strategy = "manual";
    options.heartbeat.phi.heartbeat_interval_ms = 250;
    for (uint32_t i = 0; i < 3; i++) {
        host_open(&hosts[i]);
        host_join(&hosts[i], i == 0 ? "self" : hosts[0].address, options);
        UNIT_WAIT(members_up(&hosts[0]) == i + 1 && members_up(&hosts[i]) == i + 1, 60000);
    }
    watch_across(&hosts[0], &hosts[1]);
    UNIT_EQUAL(trp_cluster_leave(hosts[0].system, hosts[1].address), TRP_OK);
    UNIT_WAIT(members_all(&hosts[0]) == 2, 60000);
    UNIT_WAIT(atomic_load(&terminated) == 1, 60000);
    watch_across(&hosts[0], &hosts[2]);
    hosts[2].silent = true;
    trpi_cluster_stop(hosts[2].cluster);
    UNIT_EQUAL(trp_cluster_down(hosts[0].system, hosts[2].address), TRP_OK);
    UNIT_WAIT(members_all(&hosts[0]) == 1, 60000);
    UNIT_WAIT(atomic_load(&terminated) == 1, 60000);
    UNIT_FALSE(is_quarantined(&hosts[0], hosts[2].address));
    for (uint32_t i = 3; i-- > 0;) { /* their goodbyes tell no node anything */
        host_end(&hosts[i]);
    }
    UNIT_EQUAL(atomic_load(&terminated), 1);
}

/* The state that a callback finds when it is called. */
struct at_up {
    struct host *host;
    _Atomic uint32_t calls, members, status;
};

static void
look_at_up(void *arg)
{
    struct at_up *at = arg;
    trp_member self = { 0 };
    size_t count = 0;
    UNIT_EQUAL(trp_cluster_self(at->host->system, &self), TRP_OK);
    UNIT_EQUAL(trp_cluster_members(at->host->system, NULL, 0, &count), TRP_OK);
    atomic_store(&at->status, self.status);
    atomic_store(&at->members, (uint32_t)count);
    atomic_fetch_add(&at->calls, 1);
}

/* MinMembersBeforeUpSpec, MEMB-21: the callback waits for the minimum, and comes once, to one that
 * is Up */
static void
the_callback_of_up_comes_when_as_many_are_there_as_are_asked_for(void)
{
    struct host a, b;
    struct at_up at = { .host = &a };
    trpi_cluster_options options = { .quiet = true };
    options.member.min_nr_of_members = 2;
    options.member.gossip_interval_ms = 20;
    options.member.leader_actions_interval_ms = 20;
    host_open(&a);
    host_open(&b);
    host_join(&a, "self", options);
    UNIT_EQUAL(trp_cluster_on_member_up(a.system, look_at_up, &at), TRP_OK);
    UNIT_WAIT(members_all(&a) == 1, 60000);
    UNIT_EQUAL(members_up(&a), 0);
    UNIT_EQUAL(atomic_load(&at.calls), 0);
    host_join(&b, a.address, options);
    UNIT_WAIT(atomic_load(&at.calls) == 1, 60000);
    UNIT_EQUAL(atomic_load(&at.status), TRP_MEMBER_UP);
    UNIT_EQUAL(atomic_load(&at.members), 2);
    UNIT_WAIT(members_up(&a) == 2 && members_up(&b) == 2, 60000);
    host_end(&b);
    host_end(&a);
    UNIT_EQUAL(atomic_load(&at.calls), 1);
}

/* Since when: the shell notes it when it publishes the event, a moment after the view has it. */
static bool
knows_since_when(struct host *h)
{
    trpi_cluster_snapshot *s = NULL;
    bool known = trpi_cluster_snapshot_get(h->cluster, &s) == TRP_OK && s->members_count > 0;
    for (uint32_t i = 0; known && i < s->members_count; i++) {
        known = s->members[i].up_since_wall_ms > 0;
    }
    trpi_cluster_snapshot_free(s);
    return known;
}

/* MEMB-01, SEED-13, MBeanSpec: the snapshot behind `troupe members` and `status` */
static void
a_snapshot_says_what_the_command_line_shows(void)
{
    struct host a;
    struct host b;
    trpi_cluster_snapshot *s = NULL;
    host_start(&a, "self");
    UNIT_WAIT(members_up(&a) == 1, 60000);
    host_start(&b, a.address);
    UNIT_WAIT(members_up(&a) == 2 && members_up(&b) == 2, 60000);
    UNIT_WAIT(knows_since_when(&b), 60000);
    UNIT_REQUIRE(trpi_cluster_snapshot_get(b.cluster, &s) == TRP_OK);
    UNIT_EQUAL(s->phase, TRPI_PHASE_MEMBER);
    UNIT_EQUAL(s->members_count, 2);
    /* MEMB-01: of one machine, each with a uid of its own, and neither has an actor */
    UNIT_TRUE(strcmp(s->members[0].member.address, s->members[1].member.address) != 0);
    UNIT_TRUE(s->members[0].member.uid != s->members[1].member.uid);
    UNIT_TRUE(s->members[0].member.uid != 0 && s->members[1].member.uid != 0);
    UNIT_TRUE(s->self != TRPI_CLUSTER_NONE && s->members[s->self].member.self);
    UNIT_TRUE(s->oldest != TRPI_CLUSTER_NONE);
    UNIT_TEXT(s->members[s->oldest].member.address, a.address);
    UNIT_EQUAL(trpi_cluster_snapshot_oldest(s, "worker"), s->oldest);
    UNIT_EQUAL(trpi_cluster_snapshot_oldest(s, "none"), TRPI_CLUSTER_NONE);
    UNIT_EQUAL(trpi_cluster_snapshot_leader(s, NULL), s->leader);
    UNIT_TEXT(s->members[0].build, trp_version());
    UNIT_TEXT(s->members[1].build, trp_version());
    UNIT_TEXT(s->strategy, "keep-majority");
    UNIT_EQUAL(s->stable_after_ms, 20000);
    trpi_cluster_snapshot_free(s);
    host_end(&b);
    host_end(&a);
}

/* ---- what is said, and what is not ----------------------------------------------------------- */

/* MEMB-33: no line for each change; MEMB-32: the figures, when they are asked for */
static void
changes_are_logged_or_not_and_the_figures_of_gossip_when_asked_for(void)
{
    uint32_t first;
    for (uint32_t quiet = 0; quiet < 2; quiet++) {
        struct host a;
        trpi_cluster_options options = { .quiet = quiet != 0, .publish_stats_interval_ms = quiet };
        host_open(&a);
        host_join(&a, "self", options);
        UNIT_WAIT(members_up(&a) == 1, 60000);
        if (quiet != 0) {
            UNIT_WAIT(lines_with(&a, "gossip: in ", "members 1, seen by 1", &first) > 0, 60000);
            UNIT_EQUAL(lines_with(&a, "member ", "is Up", &first), 0);
        } else {
            UNIT_WAIT(lines_with(&a, "member ", "is Up", &first) == 1, 60000);
            UNIT_EQUAL(lines_with(&a, "gossip: in ", "", &first), 0);
        }
        host_end(&a);
    }
    struct host a, b; /* whenever they change: not while nothing is sent */
    trpi_cluster_options always = { .publish_stats_interval_ms = TRPI_STATS_ALWAYS };
    host_open(&a);
    host_join(&a, "self", always);
    UNIT_WAIT(members_up(&a) == 1, 60000);
    UNIT_EQUAL(lines_with(&a, "gossip: in ", "", &first), 0);
    host_start(&b, a.address);
    UNIT_WAIT(lines_with(&a, "gossip: in ", "members 2, seen by 2", &first) > 0, 60000);
    UNIT_TRUE(lines_with(&a, "gossip: in ", "", &first) > 1); /* one question was not all */
    UNIT_EQUAL(lines_with(&b, "gossip: in ", "", &first), 0);
    host_end(&b);
    host_end(&a);
}

/* MEMB-36: whatever ends the actor ends the membership, and it is not started again */
static void
a_node_whose_cluster_actor_ends_is_no_member_any_more(void)
{
    for (uint32_t killed = 0; killed < 2; killed++) {
        struct host a;
        trp_ref actor = TRP_REF_NONE;
        char path[sizeof a.address + 32];
        uint32_t first;
        host_start(&a, "self");
        UNIT_WAIT(members_up(&a) == 1, 60000);
        (void)snprintf(path, sizeof path, "%s/system/cluster", a.address);
        UNIT_REQUIRE(trp_system_resolve(a.system, path, 60000, &actor) == TRP_OK);
        if (killed != 0) {
            trp_system_tell(a.system, actor, &trp_kill_type, NULL, 0);
        } else {
            trp_system_stop_actor(a.system, actor);
        }
        UNIT_WAIT(atomic_load(&a.stopped) == TRPI_STOP_DOWNED, 60000);
        UNIT_WAIT(lines_with(&a, "the cluster actor has ended", "leaving", &first) == 1, 60000);
        UNIT_WAIT(trp_system_resolve(a.system, path, 100, &actor) != TRP_OK, 60000);
        host_end(&a);
        UNIT_EQUAL(lines_with(&a, "the cluster actor has ended", "leaving", &first), 1);
    }
}

struct held {
    _Atomic bool begun, let_go;
};

static void
wait_until_let_go(void *arg, trp_err err)
{
    struct held *held = arg;
    (void)err;
    atomic_store(&held->begun, true);
    while (!atomic_load(&held->let_go)) {
        sched_yield();
    }
}

static bool
let_the_next_allocation_fail(void *arg)
{
    (void)arg;
    trpi_alloc_fail_here_after(0); /* on the cluster's thread, just before the engine begins */
    return true;
}

/* The end of the membership is one action more, and there may be no memory for it. */
static void
the_end_of_the_membership_is_told_without_memory(void)
{
    struct host a;
    uint32_t first;
    trpi_cluster_options options = { .member = { .quiet = true } };
    trpi_cluster_patience patience = { .is_wanted = let_the_next_allocation_fail };
    host_open(&a);
    host_join(&a, NULL, options);
    UNIT_EQUAL(trpi_cluster_leave_and_wait(a.cluster, NULL, 0, &patience), TRP_OK);
    UNIT_WAIT(atomic_load(&a.stopped) == TRPI_STOP_LEFT, 60000);
    trpi_alloc_fail_after(-1);
    UNIT_WAIT(lines_with(&a, "this node has left", "", &first) == 1, 60000);
    host_end(&a);
}

/* ---- the mailbox ----------------------------------------------------------------------------- */

static const char nobodys[] = "troupe.tcp://test@other:1"; /* no member has it */

/* Give the actor of h something to do until held->let_go. */
static void
hold_shell(struct host *h, struct held *held)
{
    atomic_store(&held->begun, false);
    atomic_store(&held->let_go, false);
    UNIT_EQUAL(trpi_cluster_leave(h->cluster, nobodys, 0, wait_until_let_go, held), TRP_OK);
    UNIT_WAIT(atomic_load(&held->begun), 60000);
}

static uint64_t
frames_in(struct host *h)
{
    trpi_cluster_snapshot *snapshot = NULL;
    UNIT_REQUIRE(trpi_cluster_snapshot_get(h->cluster, &snapshot) == TRP_OK);
    uint64_t frames = snapshot->stats.frames_in;
    trpi_cluster_snapshot_free(snapshot);
    return frames;
}

/* shell-messages-Q1 */
static void
frames_beyond_the_bounds_are_dropped_and_the_others_are_handled(void)
{
    enum { LARGE_BYTES = 64 * 1024, LARGE_MAX = SHELL_FRAME_BYTES_MAX / LARGE_BYTES };
    static const uint8_t bytes[LARGE_BYTES]; /* no frame of the engine: counted and dropped there */
    struct host a;
    struct held held;
    host_start(&a, "self");
    UNIT_WAIT(members_up(&a) == 1, 60000);
    trpi_node_id from = *trpi_system_self(a.system);
    uint64_t before = frames_in(&a);
    hold_shell(&a, &held);
    for (uint32_t i = 0; i < SHELL_FRAMES_MAX + 3; i++) {
        shell_frame_arrived(a.cluster, &from, bytes, 1, 0);
    }
    UNIT_EQUAL(atomic_load(&a.cluster->mailbox.frames_dropped), 3);
    atomic_store(&held.let_go, true);
    UNIT_WAIT(frames_in(&a) == before + SHELL_FRAMES_MAX, 60000);
    hold_shell(&a, &held);
    for (uint32_t i = 0; i < LARGE_MAX; i++) {
        shell_frame_arrived(a.cluster, &from, bytes, LARGE_BYTES, 0);
    }
    UNIT_EQUAL(atomic_load(&a.cluster->mailbox.frames_dropped), 3);
    shell_frame_arrived(a.cluster, &from, bytes, 1, 0); /* one byte too many */
    UNIT_EQUAL(atomic_load(&a.cluster->mailbox.frames_dropped), 4);
    atomic_store(&held.let_go, true);
    UNIT_WAIT(frames_in(&a) == before + SHELL_FRAMES_MAX + LARGE_MAX, 60000);
    shell_frame_arrived(a.cluster, &from, bytes, LARGE_BYTES, 0); /* there is room again */
    UNIT_WAIT(frames_in(&a) == before + SHELL_FRAMES_MAX + LARGE_MAX + 1, 60000);
    host_end(&a);
}

static void
count_closed(void *arg, trp_err err)
{
    UNIT_EQUAL(err, TRP_ECLOSED);
    atomic_fetch_add((_Atomic uint32_t *)arg, 1);
}

static void *
stop_cluster(void *arg)
{
    struct host *h = arg;
    h->silent = true;
    trpi_cluster_stop(h->cluster);
    return NULL;
}

/* shell-messages-Q2: whether the cluster is stopped, or its actor ends by itself. */
static void
commands_that_wait_when_the_cluster_ends_are_answered_closed_once(void)
{
    enum { COMMANDS = 5 };
    for (uint32_t killed = 0; killed < 2; killed++) {
        struct host a;
        struct held held;
        pthread_t stopper;
        _Atomic uint32_t closed = 0;
        host_start(&a, "self");
        UNIT_WAIT(members_up(&a) == 1, 60000);
        hold_shell(&a, &held);
        for (uint32_t i = 0; i < COMMANDS; i++) {
            UNIT_EQUAL(trpi_cluster_leave(a.cluster, nobodys, 0, count_closed, (void *)&closed),
                       TRP_OK);
        }
        if (killed != 0) {
            trp_system_stop_actor(a.system, a.cluster->actor);
        } else {
            UNIT_REQUIRE(pthread_create(&stopper, NULL, stop_cluster, &a) == 0);
            UNIT_WAIT(atomic_load(&a.cluster->mailbox.closed), 60000);
            UNIT_EQUAL(trpi_cluster_leave(a.cluster, nobodys, 0, count_closed, (void *)&closed),
                       TRP_ECLOSED);
        }
        atomic_store(&held.let_go, true);
        UNIT_WAIT(atomic_load(&closed) == COMMANDS, 60000);
        if (killed == 0) {
            UNIT_EQUAL(pthread_join(stopper, NULL), 0);
        }
        host_end(&a);
        UNIT_EQUAL(atomic_load(&closed), COMMANDS);
    }
}

/* ---- a subscriber that restarts -------------------------------------------------------------- */

static trp_err
renewed_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    return trp_cluster_subscribe(trp_ctx_system(ctx), trp_self(ctx), TRP_CLUSTER_MEMBER_EVENTS);
}

static void
renewed_post_stop(trp_ctx *ctx, void *state)
{
    (void)state;
    trp_cluster_unsubscribe(trp_ctx_system(ctx), trp_self(ctx), TRP_CLUSTER_MEMBER_EVENTS);
}

static trp_err
renewed_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    return trp_msg_is(msg, &trp_string_type) ? TRP_EDATA : listener_receive(ctx, state, msg);
}

static const trp_behaviour renewed = { .size = sizeof(trp_behaviour),
                                       .name = "renewed",
                                       .version = 1,
                                       .state_bytes = 8,
                                       .receive = renewed_receive,
                                       .pre_start = renewed_pre_start,
                                       .post_stop = renewed_post_stop };

/* EVENTS-11: subscribe in pre_start, unsubscribe in post_stop; a restart begins with the state */
static void
a_subscriber_that_restarts_hears_the_state_again_and_each_change_once(void)
{
    struct host a, b;
    trp_ref ref = TRP_REF_NONE;
    heard_count = 0;
    host_start(&a, "self");
    UNIT_WAIT(members_up(&a) == 1, 60000);
    UNIT_EQUAL(trp_system_spawn(a.system, &renewed, NULL, &ref), TRP_OK);
    UNIT_WAIT(heard_of(trp_cluster_state_tag) == 1, 60000);
    trp_system_tell(a.system, ref, &trp_string_type, "fail", 4);
    UNIT_WAIT(heard_of(trp_cluster_state_tag) == 2, 60000);
    host_start(&b, a.address);
    UNIT_WAIT(heard_of(trp_member_up_tag) == 1, 60000);
    trp_system_stop_actor(a.system, ref); /* its post_stop ends the subscription */
    host_end(&b);
    UNIT_EQUAL(heard_of(trp_member_joined_tag), 1);
    UNIT_EQUAL(heard_of(trp_member_up_tag), 1);
    UNIT_EQUAL(heard_of(trp_cluster_state_tag), 2);
    host_end(&a);
}

UNIT_BEGIN("shell")
UNIT(a_subscriber_hears_the_state_first_and_then_every_change)
UNIT(before_joining_the_state_is_empty_and_an_ended_subscription_is_silent)
UNIT(misuse_is_an_error)
UNIT(a_leader_that_dies_is_downed_quarantined_and_told_of_once)
UNIT(watchers_are_told_with_the_removal_of_the_member)
UNIT(the_callback_of_up_comes_when_as_many_are_there_as_are_asked_for)
UNIT(a_snapshot_says_what_the_command_line_shows)
UNIT(changes_are_logged_or_not_and_the_figures_of_gossip_when_asked_for)
UNIT(a_node_whose_cluster_actor_ends_is_no_member_any_more)
UNIT(the_end_of_the_membership_is_told_without_memory)
UNIT(frames_beyond_the_bounds_are_dropped_and_the_others_are_handled)
UNIT(commands_that_wait_when_the_cluster_ends_are_answered_closed_once)
UNIT(a_subscriber_that_restarts_hears_the_state_again_and_each_change_once)
UNIT_END

/* The events of a node, replayed from a snapshot at any moment, give what it knows (EVENTS-01, -12,
 * -13). A failure prints its seed. */
#include "base/hash.h"
#include "tests/unit/cluster/mesh.h"

#define SEEDS 60u
#define ROUNDS 80u
#define NODES 5u

struct mirror_member {
    uint64_t uid;
    uint32_t status;
    bool reachable;
};

static struct mirror {
    bool begun;
    struct mirror_member members[MESH_NODES_MAX];
    uint32_t count;
    uint64_t leader, role_leader[2]; /* uids; of roles "a" and "b" */
    trp_seen_event seen;
} mirrors[MESH_NODES_MAX];

static uint64_t dice;
static bool broken;
static uint32_t kinds; /* of events that were told */
static uint32_t ends;  /* of nodes to whose events a mirror listened */

static uint32_t
draw_below(uint32_t bound)
{
    dice = trpi_hash_u64(dice + 1);
    return (uint32_t)((dice >> 32) * bound >> 32);
}

static uint64_t
leader_in(const struct mesh *m, uint32_t node, const char *role)
{
    const trpi_gossip *g = trpi_member_view(m->cores[node]);
    uint32_t index = trpi_gossip_leader(g, trpi_member_self(m->cores[node])->key, role);
    return index == TRPI_GOSSIP_NONE ? 0 : g->members[index].ident->id.uid;
}

static struct mirror
snapshot_of(const struct mesh *m, uint32_t node)
{
    const trpi_gossip *g = trpi_member_view(m->cores[node]);
    struct mirror now = { .begun = true, .leader = leader_in(m, node, NULL) };
    now.role_leader[0] = leader_in(m, node, "a");
    now.role_leader[1] = leader_in(m, node, "b");
    for (uint32_t i = 0; i < g->members_count; i++) {
        now.members[now.count++] =
            (struct mirror_member){ g->members[i].ident->id.uid, trpi_member_status(&g->members[i]),
                                    g->members[i].unreachable == 0 };
    }
    now.seen = (trp_seen_event){ .members = g->members_count,
                                 .seen_by = trpi_seen_count(trpi_member_seen(m->cores[node])),
                                 .converged = trpi_member_is_converged(m->cores[node]) };
    return now;
}

static struct mirror_member *
find_member(struct mirror *mirror, uint64_t uid)
{
    for (uint32_t i = 0; i < mirror->count; i++) {
        if (mirror->members[i].uid == uid) {
            return &mirror->members[i];
        }
    }
    return NULL;
}

/* Each event must be a step that is possible from what was told before. */
static void
take_member_event(struct mirror *mirror, uint32_t event, const trp_member_event *told)
{
    struct mirror_member *known = find_member(mirror, told->member.uid);
    if (event == TRP_CLUSTER_MEMBER_JOINED) {
        broken = broken || known != NULL || mirror->count == MESH_NODES_MAX;
        if (!broken) {
            mirror->members[mirror->count++] =
                (struct mirror_member){ told->member.uid, TRP_MEMBER_JOINING, true };
        }
    } else if (known == NULL) {
        broken = true;
    } else if (event == TRP_CLUSTER_UNREACHABLE || event == TRP_CLUSTER_REACHABLE) {
        broken = broken || known->reachable != (event == TRP_CLUSTER_UNREACHABLE);
        known->reachable = !known->reachable;
    } else if (event == TRP_CLUSTER_MEMBER_REMOVED) {
        broken = broken || known->status != told->previous_status;
        *known = mirror->members[--mirror->count];
    } else {
        bool leaves_early = known->status == TRP_MEMBER_UP && told->member.status == TRP_MEMBER_UP;
        broken = broken || leaves_early ||
                 !trpi_member_transition_is_legal(known->status, told->member.status);
        known->status = told->member.status;
    }
}

/* The events of one change (troupe/cluster.h), in this order; SeenChanged ends it. */
enum part { NEW_CHANGE, KNOWN_REACHABILITY, REMOVED, MEMBERS, LEADER, ROLE_LEADERS };

static struct {
    enum part part, before; /* of the last event; of the last one about another member */
    uint64_t uid;           /* of the last event, unless it named a leader */
    bool ending;            /* it has told of its own removal */
} telling[MESH_NODES_MAX];

static bool
member_is_in_order(uint32_t node, uint32_t event, const trp_member *member)
{
    bool same = telling[node].uid == member->uid && telling[node].part == MEMBERS;
    enum part before = same ? telling[node].before : telling[node].part;
    enum part part = MEMBERS;
    if (event == TRP_CLUSTER_MEMBER_REMOVED) { /* and what came before it */
        part = REMOVED;
        telling[node].ending = telling[node].ending || member->self != 0;
    } else if ((event & TRP_CLUSTER_REACHABILITY_EVENTS) != 0 && !same) {
        part = KNOWN_REACHABILITY; /* that of a new member comes right behind the rest of it */
    }
    telling[node].part = part;
    telling[node].before = before;
    telling[node].uid = member->uid;
    return part >= before;
}

static bool
is_in_order(uint32_t node, const trpi_member_action *action)
{
    enum part before = telling[node].part;
    if (telling[node].ending &&
        (action->event & (TRP_CLUSTER_LEADER_CHANGED | TRP_CLUSTER_ROLE_LEADER_CHANGED)) == 0) {
        return false;
    }
    if ((action->event & (TRP_CLUSTER_MEMBER_EVENTS | TRP_CLUSTER_REACHABILITY_EVENTS)) != 0) {
        return member_is_in_order(node, action->event, &action->published.member.member);
    }
    telling[node].part = action->event == TRP_CLUSTER_LEADER_CHANGED        ? LEADER
                         : action->event == TRP_CLUSTER_ROLE_LEADER_CHANGED ? ROLE_LEADERS
                                                                            : NEW_CHANGE;
    return action->event == TRP_CLUSTER_SEEN_CHANGED || telling[node].part >= before;
}

static void
on_event(struct mesh *m, uint32_t node, const trpi_member_action *action)
{
    struct mirror *mirror = &mirrors[node];
    const trp_leader_event *leader = &action->published.leader;
    (void)m;
    kinds |= action->event;
    broken = broken || !is_in_order(node, action);
    if (!mirror->begun) {
        return;
    }
    if ((action->event & (TRP_CLUSTER_MEMBER_EVENTS | TRP_CLUSTER_REACHABILITY_EVENTS)) != 0) {
        take_member_event(mirror, action->event, &action->published.member);
    } else if (action->event == TRP_CLUSTER_LEADER_CHANGED) {
        broken = broken || mirror->leader == leader->uid;
        mirror->leader = leader->uid;
    } else if (action->event == TRP_CLUSTER_ROLE_LEADER_CHANGED) {
        mirror->role_leader[leader->role[0] == 'b'] = leader->uid;
    } else if (action->event == TRP_CLUSTER_SEEN_CHANGED) {
        mirror->seen = action->published.seen;
    }
}

static bool
is_equal(struct mirror *told, const struct mirror *is)
{
    bool equal = told->count == is->count && told->leader == is->leader &&
                 memcmp(told->role_leader, is->role_leader, sizeof is->role_leader) == 0 &&
                 told->seen.members == is->seen.members && told->seen.seen_by == is->seen.seen_by &&
                 told->seen.converged == is->seen.converged;
    for (uint32_t i = 0; i < is->count && equal; i++) {
        const struct mirror_member *member = find_member(told, is->members[i].uid);
        equal = member != NULL && member->status == is->members[i].status &&
                member->reachable == is->members[i].reachable;
    }
    return equal;
}

/* EVENTS-14: to subscribers of a node that is out there is no member, and no leader */
static bool
knows_nobody(const struct mirror *told)
{
    return told->count == 0 && told->leader == 0 && told->role_leader[0] == 0 &&
           told->role_leader[1] == 0;
}

static void
compare_all(const struct mesh *m)
{
    for (uint32_t i = 0; i < m->count && !broken; i++) {
        bool is_member = trpi_member_phase_get(m->cores[i]) == TRPI_PHASE_MEMBER;
        struct mirror now = { .begun = false };
        if (is_member) {
            now = snapshot_of(m, i);
        }
        if (m->stopped[i] != 0 && mirrors[i].begun) {
            broken = !knows_nobody(&mirrors[i]);
            ends++;
        } else if (is_member && mirrors[i].begun) {
            broken = !is_equal(&mirrors[i], &now);
        } else if (is_member && draw_below(8) == 0) {
            mirrors[i] = now; /* a subscriber comes */
        }
    }
}

static void
do_action(struct mesh *m, const trpi_member_options *options)
{
    uint32_t at = draw_below(m->count);
    uint32_t of = draw_below(m->count);
    switch (draw_below(8)) {
    case 0:
        m->cut[at] = !m->cut[at];
        break;
    case 1:
    case 2:
        mesh_observe(m, at, 1u << of);
        break;
    case 3:
        mesh_observe(m, at, 0);
        break;
    case 4:
        (void)mesh_order(m, at, TRPI_MEMBER_LEAVE, of);
        break;
    case 5:
        (void)mesh_order(m, at, TRPI_MEMBER_DOWN_CMD, of);
        break;
    case 6: /* a new incarnation of one of them */
        if (m->count < MESH_NODES_MAX && at != 0) {
            trpi_node_id id = m->ids[at];
            id.uid += 100;
            uint32_t again = mesh_add_as(m, id, at % 2 == 0 ? "a" : "b", options);
            (void)mesh_join(m, again, 0);
        }
        break;
    default:
        break;
    }
}

static bool
check_replay(uint64_t seed)
{
    trpi_member_options options = { .seed = seed,
                                    .weakly_up_after_ms = seed % 2 == 0 ? 1000 : 0,
                                    .downing.stable_after_ms = 3000,
                                    .buggify = seed % 3 == 0 };
    struct mesh *m = mesh_new();
    memset(mirrors, 0, sizeof mirrors);
    memset(telling, 0, sizeof telling);
    broken = false;
    dice = seed;
    m->on_event = on_event;
    for (uint32_t i = 0; i < NODES; i++) {
        (void)mesh_add_as(m, mesh_id(i, 1000 + i), i % 2 == 0 ? "a" : "b", &options);
        (void)mesh_join(m, i, 0);
    }
    for (uint32_t round = 0; round < ROUNDS && !broken; round++) {
        do_action(m, &options);
        mesh_run(m, 10u + draw_below(400));
        compare_all(m);
    }
    mesh_free(m);
    return !broken;
}

/* EVENTS-01, EVENTS-13, EVENTS-14; and in the order that troupe/cluster.h promises */
static void
events_from_any_snapshot_on_give_what_the_node_knows(void)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        if (!check_replay(seed)) {
            printf("  seed %llu\n", (unsigned long long)seed);
            UNIT_FAIL("the events do not give the view");
            return;
        }
    }
    UNIT_TRUE(ends > 100);
    UNIT_EQUAL(kinds, TRP_CLUSTER_DOMAIN_EVENTS | TRP_CLUSTER_SEEN_CHANGED); /* all have come */
}

#define ALLOCATIONS 160u /* of those after the order to join */

/* EVENTS-13: membership-events-V3: whichever allocation fails while a member comes, its events come
 * whole, and once
 */
static void
without_memory_no_event_is_lost(void)
{
    /* without lines of log, so that it is an event that finds no room */
    const trpi_member_options quiet = { .seed = 7, .quiet = true };
    for (uint32_t n = 0; n < ALLOCATIONS; n++) {
        struct mesh *m = mesh_cluster(5, &quiet);
        uint32_t sixth = mesh_add(m, &quiet);
        memset(mirrors, 0, sizeof mirrors);
        memset(telling, 0, sizeof telling);
        mirrors[sixth].begun = true; /* it knows nothing, and was told nothing */
        broken = false;
        m->on_event = on_event;
        trpi_alloc_fail_here_after((long)n);
        (void)mesh_join(m, sixth, 0);
        mesh_run(m, 100);
        trpi_alloc_fail_after(-1);
        mesh_run(m, 12000); /* a lost frame is sent again */
        UNIT_EQUAL(mesh_status(m, sixth, sixth), TRP_MEMBER_UP);
        compare_all(m);
        if (broken) {
            printf("  allocation %u\n", n);
        }
        UNIT_FALSE(broken);
        mesh_free(m);
    }
}

UNIT_BEGIN("replay")
UNIT(events_from_any_snapshot_on_give_what_the_node_knows)
UNIT(without_memory_no_event_is_lost)
UNIT_END

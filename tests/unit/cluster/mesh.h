/* mesh.h - a few engines that talk at once and in order, under a clock that the test moves. */
#ifndef TESTS_UNIT_CLUSTER_MESH_H
#define TESTS_UNIT_CLUSTER_MESH_H

#include <stdlib.h>

#include "base/alloc.h"
#include "cluster/engine/membership.h"
#include "tests/unit/unit.h"

#define MESH_NODES_MAX 8
#define MESH_EVENTS_MAX 512

struct mesh_frame {
    uint32_t from, to;
    trpi_buffer bytes;
};

struct mesh {
    uint64_t now_ms;
    uint32_t count;
    trpi_node_id ids[MESH_NODES_MAX];
    trpi_member_core *cores[MESH_NODES_MAX];
    bool cut[MESH_NODES_MAX];                         /* neither sends nor hears */
    bool waking[MESH_NODES_MAX];                      /* as a node that has stood still */
    bool deaf[MESH_NODES_MAX];                        /* it cannot be dialled */
    bool old[MESH_NODES_MAX];                         /* it does not take marks */
    uint32_t reach_at[64], reach_of[64], reach_count; /* dials under way: by, to */
    uint32_t reaches;                                 /* all of them */
    uint32_t dials[MESH_NODES_MAX];   /* members that it dials again, whatever the pause */
    int64_t ahead_ms[MESH_NODES_MAX]; /* of the right time, its wall clock */
    uint32_t event_node[MESH_EVENTS_MAX], events[MESH_EVENTS_MAX];
    trp_member_event members[MESH_EVENTS_MAX];
    uint32_t events_count;
    trp_downing_event decision; /* the last */
    trpi_member_stop stopped[MESH_NODES_MAX];
    bool asks_lease[MESH_NODES_MAX], released_lease[MESH_NODES_MAX];
    char warning[448]; /* the last, or an error */
    char infos[4096];  /* what is no warning, a line each, as much as there is room for */
    char sides[448];   /* what the last that stopped itself saw, or was told */
    struct mesh_frame queue[4096];
    uint32_t head, tail;
    uint64_t frames; /* delivered */
    /* NULL, or told every event as it is published */
    void (*on_event)(struct mesh *m, uint32_t node, const trpi_member_action *action);
};

static inline trpi_node_id
mesh_id(uint32_t node, uint64_t uid)
{
    trpi_node_id id;
    memset(&id, 0, sizeof id);
    snprintf(id.address.protocol, sizeof id.address.protocol, "troupe.tcp");
    snprintf(id.address.system, sizeof id.address.system, "test");
    snprintf(id.address.host, sizeof id.address.host, "host%u", node);
    id.address.port = (uint16_t)(2552 + node);
    id.uid = uid;
    return id;
}

static inline uint32_t
mesh_find(const struct mesh *m, const trpi_node_id *to)
{
    for (uint32_t i = m->count; i-- > 0;) { /* of one address the youngest */
        if (trpi_address_equal(&m->ids[i].address, &to->address) &&
            (to->uid == 0 || to->uid == m->ids[i].uid)) {
            return i;
        }
    }
    return UINT32_MAX;
}

static inline void
mesh_take_actions(struct mesh *m, uint32_t node)
{
    uint32_t count;
    const trpi_member_action *actions = trpi_member_actions(m->cores[node], &count);
    for (uint32_t i = 0; i < count; i++) {
        const trpi_member_action *a = &actions[i];
        if (m->on_event != NULL && a->kind == TRPI_ACTION_PUBLISH) {
            m->on_event(m, node, a);
        }
        if (a->kind == TRPI_ACTION_SEND) {
            uint32_t to = mesh_find(m, &a->to);
            bool takes = to == UINT32_MAX || !a->marks || (!m->old[node] && !m->old[to]);
            if (to == UINT32_MAX || m->cut[node] || m->cut[to] || !takes) {
                continue;
            }
            struct mesh_frame *f = &m->queue[m->tail++ % 4096];
            *f = (struct mesh_frame){ node, to, { NULL, 0, 0 } };
            (void)trpi_buffer_append(&f->bytes, a->bytes.data, a->bytes.count, SIZE_MAX);
        } else if (a->kind == TRPI_ACTION_PUBLISH && m->events_count < MESH_EVENTS_MAX &&
                   (a->event & (TRP_CLUSTER_MEMBER_EVENTS | TRP_CLUSTER_REACHABILITY_EVENTS)) !=
                       0) {
            m->event_node[m->events_count] = node;
            m->events[m->events_count] = a->event;
            m->members[m->events_count++] = a->published.member;
        } else if (a->kind == TRPI_ACTION_PUBLISH && a->event == TRP_CLUSTER_DOWNING_DECISION) {
            m->decision = a->published.downing;
        } else if (a->kind == TRPI_ACTION_LOG && a->level <= TRP_LOG_WARNING) {
            snprintf(m->warning, sizeof m->warning, "%s", a->text);
            if (strncmp(a->text, "this side: ", 11) == 0 ||
                strncmp(a->text, "this node was removed", 21) == 0) {
                snprintf(m->sides, sizeof m->sides, "%s", a->text);
            }
        } else if (a->kind == TRPI_ACTION_LOG && a->level == TRP_LOG_INFO) {
            size_t used = strlen(m->infos);
            snprintf(m->infos + used, sizeof m->infos - used, "%s\n", a->text);
        } else if (a->kind == TRPI_ACTION_LEASE_ACQUIRE) {
            m->asks_lease[node] = true;
        } else if (a->kind == TRPI_ACTION_LEASE_RELEASE) {
            m->released_lease[node] = true;
        } else if (a->kind == TRPI_ACTION_REACH) {
            UNIT_REQUIRE(m->reach_count < 64);
            m->reach_at[m->reach_count] = node;
            m->reach_of[m->reach_count++] = mesh_find(m, &a->to);
            m->reaches++;
        } else if (a->kind == TRPI_ACTION_DIAL) {
            m->dials[node]++;
        } else if (a->kind == TRPI_ACTION_STOPPED) {
            m->stopped[node] = a->stop;
        }
    }
}

static inline trp_err
mesh_step(struct mesh *m, uint32_t node, const trpi_member_event *event)
{
    trp_err err = trpi_member_step(
        m->cores[node],
        (trpi_member_now){ m->now_ms, 1700000000000 + (int64_t)m->now_ms + m->ahead_ms[node],
                           m->waking[node] },
        event);
    trpi_check check;
    const char *broken = trpi_member_check(m->cores[node], &check);
    const trpi_gossip *view = trpi_member_view(m->cores[node]);
    broken = broken != NULL || view == NULL ? broken : trpi_gossip_check(view, &check);
    UNIT_TEXT(broken == NULL ? "" : broken, "");
    mesh_take_actions(m, node);
    return err;
}

/* Hand it a frame as from `from`; what it sends waits. */
static inline void
mesh_hand(struct mesh *m, uint32_t node, trpi_node_id from, const trpi_frame *frame,
          const trpi_seen *seen)
{
    trpi_buffer bytes = { 0 };
    UNIT_REQUIRE(trpi_frame_encode(frame, seen, &bytes) == TRP_OK);
    trpi_member_event event = {
        .kind = TRPI_MEMBER_FRAME, .from = from, .bytes = bytes.data, .count = bytes.count
    };
    UNIT_EQUAL(mesh_step(m, node, &event), TRP_OK);
    trpi_buffer_fini(&bytes);
}

/* Deliver the frame that was sent first. */
static inline void
mesh_deliver(struct mesh *m)
{
    struct mesh_frame f = m->queue[m->head++ % 4096];
    if (m->cores[f.to] != NULL && !m->cut[f.to]) {
        trpi_member_event event = { .kind = TRPI_MEMBER_FRAME,
                                    .from = m->ids[f.from],
                                    .bytes = f.bytes.data,
                                    .count = f.bytes.count };
        (void)mesh_step(m, f.to, &event);
        m->frames++;
    }
    trpi_buffer_fini(&f.bytes);
}

/* Deliver until nothing is under way. */
static inline void
mesh_drain(struct mesh *m)
{
    while (m->head != m->tail || m->reach_count > 0) {
        while (m->head != m->tail) {
            mesh_deliver(m);
        }
        if (m->reach_count > 0) {
            uint32_t at = m->reach_at[--m->reach_count], of = m->reach_of[m->reach_count];
            trpi_member_event event = { .kind = TRPI_MEMBER_REACHED,
                                        .target = m->ids[of],
                                        .text = m->deaf[of] ? "connection refused" : NULL };
            (void)mesh_step(m, at, &event);
        }
    }
}

static inline void
mesh_run(struct mesh *m, uint64_t ms)
{
    uint64_t end_ms = m->now_ms + ms;
    mesh_drain(m);
    while (m->now_ms < end_ms) {
        m->now_ms += 10;
        for (uint32_t i = 0; i < m->count; i++) {
            if (m->cores[i] != NULL && trpi_member_wake_ms(m->cores[i]) <= m->now_ms) {
                trpi_member_event event = { .kind = TRPI_MEMBER_TICK };
                (void)mesh_step(m, i, &event);
            }
        }
        mesh_drain(m);
    }
}

static inline struct mesh *
mesh_new(void)
{
    struct mesh *m = calloc(1, sizeof *m);
    m->now_ms = 1000;
    return m;
}

static inline uint32_t
mesh_add_as(struct mesh *m, trpi_node_id id, const char *role, const trpi_member_options *options)
{
    uint32_t node = m->count++;
    m->ids[node] = id;
    trpi_member_options o = { .seed = 7 };
    if (options != NULL) {
        o = *options;
    }
    UNIT_REQUIRE(trpi_member_new(&id, &role, role == NULL ? 0 : 1, "1.0.0", &o, &m->cores[node]) ==
                 TRP_OK);
    return node;
}

static inline uint32_t
mesh_add(struct mesh *m, const trpi_member_options *options)
{
    return mesh_add_as(m, mesh_id(m->count, 1000 + m->count), NULL, options);
}

static inline trp_err
mesh_join(struct mesh *m, uint32_t node, uint32_t contact)
{
    trpi_member_event event = { .kind = TRPI_MEMBER_JOIN,
                                .addresses = &m->ids[contact].address,
                                .addresses_count = 1 };
    return mesh_step(m, node, &event);
}

/* Through the first `seeds` nodes. */
static inline trp_err
mesh_join_seeds(struct mesh *m, uint32_t node, uint32_t seeds)
{
    trpi_address addresses[MESH_NODES_MAX];
    for (uint32_t i = 0; i < seeds; i++) {
        addresses[i] = m->ids[i].address;
    }
    trpi_member_event event = { .kind = TRPI_MEMBER_JOIN,
                                .addresses = addresses,
                                .addresses_count = seeds };
    return mesh_step(m, node, &event);
}

static inline trp_err
mesh_order(struct mesh *m, uint32_t at, trpi_member_event_kind kind, uint32_t target)
{
    trpi_member_event event = { .kind = kind };
    event.target.address = m->ids[target].address;
    return mesh_step(m, at, &event);
}

/* `at` holds exactly these nodes unreachable; mask by node. */
static inline void
mesh_observe(struct mesh *m, uint32_t at, uint32_t mask)
{
    uint64_t keys[MESH_NODES_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        if ((mask >> i & 1) != 0) {
            keys[count++] = trpi_ident_key(&m->ids[i]);
        }
    }
    trpi_member_event event = { .kind = TRPI_MEMBER_OBSERVE, .keys = keys, .keys_count = count };
    (void)mesh_step(m, at, &event);
}

/* Status of `of` in the view of `at`; 0: not there. */
static inline uint32_t
mesh_status(const struct mesh *m, uint32_t at, uint32_t of)
{
    const trpi_gossip *g = trpi_member_view(m->cores[at]);
    uint32_t index =
        g == NULL ? TRPI_GOSSIP_NONE : trpi_gossip_find(g, trpi_ident_key(&m->ids[of]));
    return index == TRPI_GOSSIP_NONE ? 0 : trpi_member_status(&g->members[index]);
}

static inline uint32_t
mesh_members(const struct mesh *m, uint32_t at)
{
    const trpi_gossip *g = trpi_member_view(m->cores[at]);
    return g == NULL ? 0 : g->members_count;
}

static inline uint32_t
mesh_events(const struct mesh *m, uint32_t at, uint32_t event, uint32_t of)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->events_count; i++) {
        count += m->event_node[i] == at && m->events[i] == event &&
                         m->members[i].member.uid == m->ids[of].uid
                     ? 1
                     : 0;
    }
    return count;
}

/* n nodes, all Up, converged. */
static inline struct mesh *
mesh_cluster(uint32_t n, const trpi_member_options *options)
{
    struct mesh *m = mesh_new();
    for (uint32_t i = 0; i < n; i++) {
        mesh_add(m, options);
        UNIT_EQUAL(mesh_join(m, i, 0), TRP_OK);
        mesh_run(m, 1000);
    }
    mesh_run(m, 3000);
    for (uint32_t i = 0; i < n; i++) {
        UNIT_EQUAL(mesh_members(m, i), n);
        UNIT_EQUAL(mesh_status(m, i, i), TRP_MEMBER_UP);
    }
    return m;
}

static inline void
mesh_free(struct mesh *m)
{
    while (m->head != m->tail) {
        trpi_buffer_fini(&m->queue[m->head++ % 4096].bytes);
    }
    for (uint32_t i = 0; i < m->count; i++) {
        trpi_member_free(m->cores[i]);
    }
    free(m);
}

#endif

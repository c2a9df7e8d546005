/* pubsub_world.h - the world of pubsub_test.c: nodes with mediators, views of the cluster, a
 * network that loses, doubles and delays frames, connections that lose publications but keep their
 * order; and who knows the truth about subscriptions. One file includes it. */
#ifndef TESTS_SIM_PUBSUB_WORLD_H
#define TESTS_SIM_PUBSUB_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "cluster/pubsub/registry_inner.h"
#include "cluster/pubsub/route.h"

enum {
    PLACES = 5,
    INCS = 24,  /* incarnations of one run */
    LIVES = 6,  /* of the mediator of one incarnation */
    TOPICS = 6, /* keys: topics, then groups, then paths */
    KEYS = TOPICS + 5,
    VIEWS = 200,
    SESSIONS = 4096,
    END_MS = 12000, /* of the faults */
    QUIET_MS = 20000,
    STILL_MS = 4000,  /* the last of these: nothing is said */
    DETECT_MS = 2500, /* silent for so long: Down */
    NONE = 0xffff
};

/* The time in which a node subscribes to a topic without a break; versions are its bucket's. */
struct session {
    uint32_t node, topic;
    uint64_t life, begin, end;                           /* end 0: it goes on */
    uint32_t due[INCS][LIVES + 1], got[INCS][LIVES + 1]; /* by publisher: sent to it, and come */
};
struct inc {
    uint32_t place, view;
    trpi_node_id id;
    bool alive, isolated, leaves, left;
    uint64_t paused_ms, pause_began_ms, isolated_ms, dead_ms, life, absent_ms;
    trpi_pubreg *registry; /* NULL: no mediator just now */
    uint32_t counts[KEYS], session[TOPICS];
    uint64_t data_ms[INCS];                 /* the last publication to that node arrives then */
    uint64_t told[TOPICS], listing[TOPICS]; /* the change of its groups seen last, and their hash */
    bool met[INCS];                         /* by the registry's index: its mediator can be told */
};
struct view {
    struct {
        uint32_t node;
        trp_member_status status;
    } members[INCS];
    uint32_t count;
};
enum event_kind { FRAME, DATA };
struct event {
    uint64_t at_ms, seq;
    enum event_kind kind;
    uint32_t to, from;
    trpi_buffer bytes; /* FRAME */
    /* DATA */
    uint32_t topic, session, number; /* what it is in truth: of what it is the how manieth */
    uint64_t to_life;
    trpi_pubsub_stamp stamp;
};
static struct world {
    uint64_t now_ms, seq, random;
    struct event *heap;
    uint32_t heap_count, heap_room;
    struct inc incs[INCS];
    uint32_t incs_count;
    bool cut[PLACES][PLACES];
    uint64_t cut_until_ms;
    struct view views[VIEWS];
    uint32_t views_count;
    struct session *sessions;
    uint32_t sessions_count;
    bool faulty, counts_all; /* what is told is what was missed; else it may be less */
    uint32_t loss, doubles;  /* of a thousand frames */
    uint64_t frames, published, arrived, told, missed;
    trpi_route route;
    char why[512];
} w;
static uint32_t broken; /* TRPI_PUBREG_BROKEN_* */

#include "tests/sim/timeline.h"

static void
fail(const char *law, uint32_t node, const char *text)
{
    if (w.why[0] == '\0') {
        (void)snprintf(w.why, sizeof w.why, "%s at %llu ms: node %u: %s", law,
                       (unsigned long long)w.now_ms, node, text);
    }
}

/* Names of any bytes: a NUL, a slash, one that begins as another does. */
static trpi_pubsub_key
key_at(uint32_t number)
{
    static const char *const names[KEYS] = { "a\0b", "a\0c", "ab", "a/b",     "\xff\xfe\n", "*",
                                             "a\0b", "a\0b", "*",  "/user/s", "/user/s2" };
    static const uint32_t bytes[KEYS] = { 3, 3, 2, 3, 3, 1, 3, 3, 1, 7, 8 };
    static const char *const groups[KEYS] = { [TOPICS] = "left", "right", "left" };
    trpi_pubsub_key key = { .name = names[number], .name_bytes = bytes[number] };
    key.kind = number < TOPICS          ? TRPI_PUBSUB_TOPIC
               : groups[number] != NULL ? TRPI_PUBSUB_GROUP
                                        : TRPI_PUBSUB_PATH;
    key.group = groups[number];
    key.group_bytes = groups[number] == NULL ? 0 : (uint32_t)strlen(groups[number]);
    return key;
}

/* ---- the network ----------------------------------------------------------------------------- */

static bool
is_cut(uint32_t from, uint32_t to)
{
    return w.cut[w.incs[from].place][w.incs[to].place];
}

static bool
is_paused(const struct inc *inc)
{
    return inc->paused_ms > w.now_ms;
}

static uint32_t
inc_of(const trpi_node_id *id)
{
    uint32_t i = 0;
    while (i < w.incs_count && !trpi_node_id_equal(&w.incs[i].id, id)) {
        i++;
    }
    return i;
}

static void
send_frame(uint32_t from, const trpi_node_id *to, const trpi_buffer *bytes)
{
    uint32_t node = inc_of(to), copies = draw(1000) < w.doubles ? 2 : 1;
    w.frames++;
    for (; copies > 0 && node < w.incs_count && w.incs[node].alive; copies--) {
        if (is_cut(from, node) || draw(1000) < w.loss) {
            continue;
        }
        struct event event = { .kind = FRAME, .from = from, .to = node };
        trpi_assert(trpi_buffer_append(&event.bytes, bytes->data, bytes->count,
                                       TRPI_BUFFER_NO_LIMIT) == TRP_OK);
        post_event(event, w.now_ms + 1 + draw(draw(20) == 0 ? 1500 : 20));
    }
}

/* ---- one node -------------------------------------------------------------------------------- */

/* Nobody counts in a registry who is not Up in its view. */
static void
check_places(uint32_t node)
{
    const struct inc *inc = &w.incs[node];
    const struct view *view = &w.views[inc->view];
    for (uint32_t i = 1; i < inc->registry->nodes_count; i++) {
        const trpi_peer_state *peer = &inc->registry->nodes[i];
        bool up = false;
        for (uint32_t m = 0; m < view->count; m++) {
            trp_member_status status = view->members[m].status;
            up |= trpi_node_id_equal(&w.incs[view->members[m].node].id, &peer->node.id) &&
                  (status == TRP_MEMBER_UP || status == TRP_MEMBER_WEAKLY_UP);
        }
        if (peer->used && peer->entries > 0 && !up) {
            fail("pubsub-sim-L6", node, "the bucket of a node counts that is not Up");
        }
    }
}

static uint64_t
listing_of(const trpi_pubreg *registry, const trpi_pubreg_entry *entry)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; entry != NULL && i < entry->groups_count; i++) {
        for (uint32_t k = 0; k < entry->groups[i]->places_count; k++) {
            const trpi_pubreg_place *place = &entry->groups[i]->places[k];
            uint64_t words[2] = { entry->groups[i]->hash,
                                  trpi_pubreg_node_at(registry, place->node)->id.uid };
            sum += trpi_hash(words, sizeof words, 0); /* they have no order */
        }
    }
    return sum;
}

/* As who listens to a topic of the registry: it looks again if the number has changed. */
static void
check_listings(uint32_t node)
{
    struct inc *inc = &w.incs[node];
    for (uint32_t topic = 0; topic < TOPICS; topic++) {
        trpi_pubsub_key key = key_at(topic);
        const trpi_pubreg_entry *entry = trpi_pubreg_find(inc->registry, &key);
        uint64_t changed = entry == NULL ? 0 : entry->changed;
        uint64_t listing = listing_of(inc->registry, entry);
        if (changed == inc->told[topic] && listing != inc->listing[topic]) {
            fail("pubsub-sim-L8", node, "who is registered has changed, and nobody is told");
        }
        inc->told[topic] = changed;
        inc->listing[topic] = listing;
    }
}

/* Do what an event of the registry wants done. */
static void
after_event(uint32_t node)
{
    trpi_check check;
    uint32_t count = 0;
    trpi_pubreg *registry = w.incs[node].registry;
    const trpi_pubreg_action *actions = trpi_pubreg_actions(registry, &count);
    const char *bad = trpi_pubreg_check(registry, &check);
    if (bad != NULL) {
        fail("pubsub-sim-L1", node, bad);
    }
    check_places(node);
    check_listings(node);
    for (uint32_t i = 0; i < count; i++) {
        if (actions[i].kind == TRPI_PUBREG_SEND) {
            send_frame(node, &actions[i].node, &actions[i].bytes);
        } else if (actions[i].kind != TRPI_PUBREG_LOG) {
            trpi_assert(actions[i].index < INCS);
            w.incs[node].met[actions[i].index] = actions[i].kind == TRPI_PUBREG_MET;
        }
    }
}

static void
show_view(uint32_t node, uint32_t number)
{
    struct inc *inc = &w.incs[node];
    trpi_pubreg_member members[INCS];
    const struct view *view = &w.views[number];
    for (uint32_t i = 0; i < view->count; i++) {
        members[i] =
            (trpi_pubreg_member){ w.incs[view->members[i].node].id, view->members[i].status };
    }
    inc->view = number;
    if (inc->registry != NULL) {
        trpi_assert(trpi_pubreg_members(inc->registry, w.now_ms, members, view->count) == TRP_OK);
        after_event(node);
    }
}

/* The number of actors under a key changes; the truth about it is noted. */
static void
change_count(uint32_t node, uint32_t key, uint32_t count)
{
    struct inc *inc = &w.incs[node];
    trpi_pubsub_key name = key_at(key);
    uint32_t before = inc->counts[key];
    trpi_assert(trpi_pubreg_put(inc->registry, w.now_ms, &name, count) == TRP_OK);
    inc->counts[key] = count;
    if (key < TOPICS && before == 0 && count > 0) {
        trpi_assert(w.sessions_count < SESSIONS);
        struct session *session = &w.sessions[w.sessions_count];
        inc->session[key] = w.sessions_count++;
        memset(session, 0, sizeof *session);
        session->node = node;
        session->topic = key;
        session->life = inc->life;
        session->begin = trpi_pubreg_version(inc->registry);
    } else if (key < TOPICS && before > 0 && count == 0) {
        w.sessions[inc->session[key]].end = trpi_pubreg_version(inc->registry);
        inc->session[key] = NONE;
    }
}

static void
end_mediator(uint32_t node)
{
    struct inc *inc = &w.incs[node];
    trpi_pubreg_free(inc->registry);
    inc->registry = NULL;
    memset(inc->counts, 0, sizeof inc->counts);
    memset(inc->met, 0, sizeof inc->met);
    memset(inc->told, 0, sizeof inc->told);
    memset(inc->listing, 0, sizeof inc->listing);
    for (uint32_t i = 0; i < TOPICS; i++) {
        inc->session[i] = NONE;
    }
}

static void
start_mediator(uint32_t node)
{
    struct inc *inc = &w.incs[node];
    inc->life++;
    trpi_pubreg_options options = { .life = inc->life,
                                    .slot = node + 1,
                                    .generation = (uint32_t)inc->life,
                                    .broken = broken,
                                    .removed_max = w.counts_all ? 0 : 2 };
    trpi_assert(trpi_pubreg_new(&inc->id, "mediator", &options, &inc->registry) == TRP_OK);
    show_view(node, inc->view);
}

static void
kill_node(uint32_t node)
{
    struct inc *inc = &w.incs[node];
    if (inc->alive) {
        inc->alive = false;
        inc->dead_ms = w.now_ms;
        end_mediator(node);
    }
}

/* ---- publications ---------------------------------------------------------------------------- */

/* Which session of a node the publisher knows of, by the versions that it has seen. NONE: of none,
 * or the node does not count. */
static uint32_t
known_session(const trpi_pubreg *registry, uint32_t node, uint32_t topic)
{
    uint32_t at = trpi_pubreg_node_of(registry, &w.incs[node].id);
    const trpi_peer_state *peer = at == TRPI_PUBREG_NOWHERE ? NULL : &registry->nodes[at];
    for (uint32_t i = 0; peer != NULL && i < w.sessions_count; i++) {
        const struct session *session = &w.sessions[i];
        if (session->node == node && session->topic == topic && session->life == peer->node.life &&
            session->begin <= peer->seen && (session->end == 0 || session->end > peer->seen)) {
            return i;
        }
    }
    return NONE;
}

static const trpi_route_target *
target_of(uint32_t from, uint32_t to)
{
    uint32_t at = trpi_pubreg_node_of(w.incs[from].registry, &w.incs[to].id);
    const trpi_route_target *found = NULL;
    for (uint32_t i = 0; i < w.route.targets_count; i++) {
        if (w.route.targets[i].node == at) {
            if (found != NULL) {
                fail("pubsub-sim-L4", from, "a node gets a publication twice");
            }
            found = &w.route.targets[i];
        }
    }
    return found;
}

static void
send_publication(uint32_t from, uint32_t to, uint32_t topic, uint32_t session,
                 const trpi_pubsub_stamp *stamp)
{
    struct inc *inc = &w.incs[from];
    uint32_t number = w.sessions[session].due[from][inc->life]++;
    if (!w.incs[to].alive || is_cut(from, to) || draw(1000) < w.loss) {
        return;
    }
    uint64_t at_ms = w.now_ms + 1 + draw(100);
    at_ms = at_ms < inc->data_ms[to] ? inc->data_ms[to] : at_ms;
    at_ms += at_ms % 20 == 0; /* pauses end at full ticks: what waited comes before it */
    inc->data_ms[to] = at_ms;
    post_event((struct event){ .kind = DATA,
                               .from = from,
                               .to = to,
                               .topic = topic,
                               .session = session,
                               .number = number,
                               .to_life = w.sessions[session].life,
                               .stamp = *stamp },
               at_ms);
}

static void
publish(uint32_t from, uint32_t topic)
{
    trpi_pubreg *registry = w.incs[from].registry;
    trpi_pubsub_key key = key_at(topic);
    trpi_assert(trpi_route_publish(registry, &key, TRPI_ROUTE_RANDOM, &w.random, &w.route) ==
                TRP_OK);
    const trpi_pubreg_entry *entry = trpi_pubreg_find(registry, &key);
    w.published++;
    if (w.route.picks_count != (entry == NULL ? 0 : entry->groups_count)) {
        fail("pubsub-sim-L4", from, "not one of each group is chosen");
    }
    for (uint32_t to = 0; to < w.incs_count; to++) {
        uint32_t session =
            to == from ? w.incs[from].session[topic] : known_session(registry, to, topic);
        const trpi_route_target *target = target_of(from, to);
        if ((target != NULL && target->all) != (session != NONE)) {
            fail("pubsub-sim-L4", from,
                 "a node that is not known to subscribe, or not one that is");
        } else if (session != NONE && to != from) {
            if (!w.incs[from].met[target->node]) {
                fail("pubsub-sim-L7", from, "a mediator with subscribers cannot be told");
            }
            send_publication(from, to, topic, session, &target->stamp);
        }
    }
}

/* Compare the number that a subscriber is told with that which was missed in truth. */
static void
take_publication(const struct event *event)
{
    struct inc *inc = &w.incs[event->to];
    trpi_pubsub_key key = key_at(event->topic);
    trpi_pubsub_arrival arrival = { 0 };
    if (inc->registry == NULL) {
        return;
    }
    trp_err err =
        trpi_pubreg_arrived(inc->registry, &key, &w.incs[event->from].id, &event->stamp, &arrival);
    if ((err == TRP_ENOENT) != (inc->counts[event->topic] == 0)) {
        fail("pubsub-sim-L3", event->to, "somebody subscribes, or nobody");
    }
    uint64_t missed = 0;
    if (inc->session[event->topic] == event->session) {
        uint32_t *got = &w.sessions[event->session].got[event->from][event->stamp.life];
        missed = event->number - *got;
        *got = event->number + 1;
    }
    w.arrived++;
    w.told += arrival.missed;
    w.missed += missed;
    if (arrival.missed > missed || (w.counts_all && arrival.missed != missed) || arrival.late) {
        char text[96];
        (void)snprintf(text, sizeof text, "topic %u: told of %llu missed, it was %llu",
                       event->topic, (unsigned long long)arrival.missed,
                       (unsigned long long)missed);
        fail("pubsub-sim-L3", event->to, text);
    }
}

#endif

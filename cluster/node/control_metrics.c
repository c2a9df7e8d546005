/* control_metrics.c - metrics: figures of this node as families of series, answered at once.
 *
 * Must hold.
 *   control-metrics-M1  No actor and no peer is asked, and no list of actors is walked here: each
 *       figure is a counter that is kept anyway, a copy of the view, or of the last walk.
 *   control-metrics-M2  A peer has at most 8 series, so that 100 peers cost a scraper 800; without
 *       those of peers a node has at most 300 with the default of management.metrics-names.
 * Tests.   tests/system/metrics.sh, tests/system/management.sh
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cluster/node/control_member.h"
#include "cluster/node/figures.h"
#include "cluster/node/otlp.h"

#define PEERS_ROOM 16u
#define PEERS_MAX 1024u /* shown */

struct peers {
    trpi_peer_info *list; /* NULL: no memory */
    size_t count;
};

/* ---- the node -------------------------------------------------------------------------------- */

static void
node_add(trp_node *node, trpi_figures *f)
{
    trpi_world *world = trpi_system_world(node->system);
    trp_system_stats stats;
    (void)trpi_node_stats(node, &stats);
    trpi_figures_family(f, "troupe_build_info", "1; the version is a label.");
    trpi_figures_sample(f, "version", trp_version(), NULL, NULL, 1);
    trpi_figures_single(f, "troupe_uptime_seconds", "Seconds since this node was started.",
                        (double)(trpi_world_mono_ns(world) - node->start_ns) / 1e9);
    trpi_figures_single(f, "troupe_actors", "Actors of this node.", (double)stats.actors);
    trpi_figures_single(f, "troupe_actors_spawned_total", "Actors that were started.",
                        (double)stats.spawned);
    trpi_figures_single(f, "troupe_actors_stopped_total", "Actors that have ended.",
                        (double)stats.stopped);
    trpi_figures_family(f, "troupe_dead_letters_total",
                        "Messages that reached no actor, by reason.");
    for (size_t i = 1; i < TRP_DEAD_REASON_COUNT; i++) {
        char reason[64];
        (void)snprintf(reason, sizeof reason, "%s", trpi_dead_reason_text((trp_dead_reason)i));
        for (char *at = reason; (at = strchr(at, ' ')) != NULL;) {
            *at = '-';
        }
        trpi_figures_sample(f, "reason", reason, NULL, NULL, (double)stats.dead_letters[i]);
    }
    if (node->otlp != NULL) {
        trpi_otlp_counts counts = trpi_otlp_count(node->otlp);
        trpi_figures_family(f, "troupe_trace_spans_total",
                            "Messages of traces that were sent to the collector, or overwritten "
                            "before it took them.");
        trpi_figures_sample(f, "result", "sent", NULL, NULL, (double)counts.sent);
        trpi_figures_sample(f, "result", "dropped", NULL, NULL, (double)counts.dropped);
        trpi_figures_single(f, "troupe_trace_requests_failed_total",
                            "Requests that the collector did not take.", (double)counts.failures);
    }
}

/* Remoting counts for each peer, and forgets one that has gone: the sum must not fall. */
static void
messages_add(trp_node *node, trpi_figures *f, const struct peers *peers)
{
    uint64_t sums[2] = { 0, 0 };
    trp_system_stats stats;
    (void)trpi_node_stats(node, &stats);
    for (size_t i = 0; i < peers->count; i++) {
        sums[0] += peers->list[i].messages_in;
        sums[1] += peers->list[i].messages_out;
    }
    pthread_mutex_lock(&node->lock);
    for (size_t i = 0; i < 2; i++) {
        node->messages_seen[i] =
            sums[i] > node->messages_seen[i] ? sums[i] : node->messages_seen[i];
        sums[i] = node->messages_seen[i];
    }
    pthread_mutex_unlock(&node->lock);
    trpi_figures_family(f, "troupe_messages_total",
                        "Messages that actors here handled (local), that came from other nodes "
                        "(in) and went to them (out).");
    trpi_figures_sample(f, "direction", "local", NULL, NULL, (double)stats.messages_processed);
    trpi_figures_sample(f, "direction", "in", NULL, NULL, (double)sums[0]);
    trpi_figures_sample(f, "direction", "out", NULL, NULL, (double)sums[1]);
}

/* ---- the cluster ----------------------------------------------------------------------------- */

/* Members by status and roles ("backend,seed"): a member counts once. Beyond `max` combinations,
 * the other ones of a status are one. */
static void
members_add(const trpi_view *view, trpi_figures *f, uint32_t max)
{
    trpi_observed_names *names = trpi_alloc(sizeof *names);
    f->ok = f->ok && names != NULL;
    trpi_figures_family(f, "troupe_cluster_members",
                        "Members as this node sees them, by status and roles.");
    for (uint32_t s = TRP_MEMBER_JOINING; f->ok && s <= TRP_MEMBER_WEAKLY_UP; s++) {
        if (s == TRP_MEMBER_REMOVED) {
            continue;
        }
        const char *status = trp_member_status_name(s);
        memset(names, 0, sizeof *names);
        (void)trpi_observed_name_get(names, ""); /* a status without members is 0 */
        for (size_t i = 0; i < view->count; i++) {
            if (view->members[i].m.status == s) {
                trpi_observed_name_get(names, view->members[i].m.roles)->count++;
            }
        }
        uint64_t others = names->others.count;
        for (uint32_t i = 0; i < names->count; i++) {
            const trpi_observed_name *name = &names->entries[i];
            if (i == 0 || max > 0) {
                max -= i > 0 ? 1 : 0;
                trpi_figures_sample(f, "status", status, "role", name->name, (double)name->count);
            } else {
                others += name->count;
            }
        }
        if (others > 0) {
            trpi_figures_sample(f, "status", status, "role", "other", (double)others);
        }
    }
    trpi_free(names);
}

static void
cluster_add(const trpi_view *view, trpi_figures *f, uint32_t names_max)
{
    size_t unreachable = 0;
    for (size_t i = 0; i < view->count; i++) {
        unreachable += view->members[i].m.reachable ? 0 : 1;
    }
    members_add(view, f, names_max);
    trpi_figures_single(f, "troupe_cluster_unreachable_members",
                        "Members that are observed as unreachable.", (double)unreachable);
    trpi_figures_single(f, "troupe_cluster_converged", "1: all members have seen the present view.",
                        view->converged ? 1 : 0);
    trpi_figures_single(f, "troupe_cluster_gossip_seconds",
                        "Since when all members have seen the present view; 0: they have not.",
                        view->converged ? (double)view->converged_ms / 1e3 : 0);
    trpi_figures_single(f, "troupe_cluster_self_up", "1: this node is Up or WeaklyUp.",
                        view->self != NULL && (view->self->m.status == TRP_MEMBER_UP ||
                                               view->self->m.status == TRP_MEMBER_WEAKLY_UP)
                            ? 1
                            : 0);
    trpi_figures_family(f, "troupe_cluster_gossip_frames_total", "Frames of gossip, by direction.");
    trpi_figures_sample(f, "direction", "in", NULL, NULL, (double)view->stats.frames_in);
    trpi_figures_sample(f, "direction", "out", NULL, NULL, (double)view->stats.frames_out);
    trpi_figures_family(f, "troupe_cluster_gossip_bytes_total", "Their bytes.");
    trpi_figures_sample(f, "direction", "in", NULL, NULL, (double)view->stats.bytes_in);
    trpi_figures_sample(f, "direction", "out", NULL, NULL, (double)view->stats.bytes_out);
    trpi_figures_single(f, "troupe_cluster_gossip_undecodable_total",
                        "Frames of gossip that could not be read.",
                        (double)view->stats.undecodable);
    trpi_figures_family(
        f, "troupe_cluster_member_phi",
        "Suspicion of the failure detector, of the members that this node monitors.");
    for (size_t i = 0; i < view->count; i++) {
        if (view->members[i].phi >= 0) {
            trpi_figures_sample(f, "peer", view->members[i].m.address, NULL, NULL,
                                view->members[i].phi);
        }
    }
}

/* ---- peers: control-metrics-M2 --------------------------------------------------------------- */

static void
two_ways_add(trpi_figures *f, const char *peer, uint64_t in, uint64_t out)
{
    trpi_figures_sample(f, "peer", peer, "direction", "in", (double)in);
    trpi_figures_sample(f, "peer", peer, "direction", "out", (double)out);
}

static void
peers_add(trpi_figures *f, const struct peers *peers)
{
    enum { BYTES, MESSAGES, DROPPED, ROUND_TRIP, ACTIVE, FAMILIES };
    static const struct {
        const char *name, *help;
    } families[FAMILIES] = {
        [BYTES] = { "troupe_remote_bytes_total", "Bytes of frames, by peer and direction." },
        [MESSAGES] = { "troupe_remote_messages_total", "Messages, by peer and direction." },
        [DROPPED] = { "troupe_remote_dropped_total", "Messages for a peer that were not sent." },
        [ROUND_TRIP] = { "troupe_remote_rtt_seconds", "Round trip of the last control ping." },
        [ACTIVE] = { "troupe_remote_association_active", "1: messages to the peer go at once." },
    };
    for (size_t k = 0; f->ok && k < FAMILIES; k++) {
        trpi_figures_family(f, families[k].name, families[k].help);
        for (size_t i = 0; f->ok && i < peers->count; i++) {
            const trpi_peer_info *p = &peers->list[i];
            char peer[TRPI_ADDRESS_TEXT_BYTES];
            (void)trpi_address_format(&p->id.address, peer, sizeof peer);
            if (k == BYTES) {
                two_ways_add(f, peer, p->bytes_in, p->bytes_out);
            } else if (k == MESSAGES) {
                two_ways_add(f, peer, p->messages_in, p->messages_out);
            } else if (k == DROPPED) {
                trpi_figures_sample(f, "peer", peer, NULL, NULL, (double)p->dropped);
            } else if (k == ACTIVE) {
                trpi_figures_sample(f, "peer", peer, NULL, NULL,
                                    strcmp(p->state, "active") == 0 ? 1 : 0);
            } else if (p->round_trip_us != 0) {
                trpi_figures_sample(f, "peer", peer, NULL, NULL, (double)p->round_trip_us / 1e6);
            }
        }
    }
}

/* Give the peers; those above PEERS_MAX are not shown. */
static struct peers
peers_take(trp_node *node)
{
    size_t count = 0, room = PEERS_ROOM;
    trpi_peer_info *list = trpi_alloc(room * sizeof *list);
    if (list != NULL) {
        trpi_remote_peers(node->remote, list, room, &count);
    }
    if (list != NULL && count > room) { /* more than usual: once more, with room for them */
        trpi_free(list);
        room = count < PEERS_MAX ? count : PEERS_MAX;
        list = trpi_alloc(room * sizeof *list);
        if (list != NULL) {
            trpi_remote_peers(node->remote, list, room, &count);
        }
    }
    count = count < room ? count : room;
    return (struct peers){ list, list != NULL ? count : 0 };
}

static void
associations_add(trpi_figures *f, const struct peers *peers)
{
    static const char *const states[] = { "idle", "handshaking", "active", "gated", "quarantined" };
    enum { STATES = sizeof states / sizeof states[0] };
    double by_state[STATES] = { 0 }, lanes = 0, waiting = 0, slowed = 0, held = 0;
    for (size_t i = 0; i < peers->count; i++) {
        const trpi_peer_info *p = &peers->list[i];
        for (size_t s = 0; s < STATES; s++) {
            by_state[s] += strcmp(p->state, states[s]) == 0 ? 1 : 0;
        }
        for (size_t l = 0; l < TRPI_REMOTE_LANES; l++) {
            lanes += p->lanes[l].state != NULL && strcmp(p->lanes[l].state, "open") == 0 ? 1 : 0;
            waiting += (double)p->lanes[l].waiting_bytes;
        }
        slowed += p->slow_there;
        held += (double)p->held_bytes;
    }
    trpi_figures_family(f, "troupe_remote_associations", "Associations with peers, by state.");
    for (size_t s = 0; s < STATES; s++) {
        trpi_figures_sample(f, "state", states[s], NULL, NULL, by_state[s]);
    }
    trpi_figures_single(f, "troupe_remote_lanes_open", "Connections of their lanes.", lanes);
    trpi_figures_single(f, "troupe_remote_waiting_bytes", "Bytes that wait to be sent.", waiting);
    trpi_figures_single(f, "troupe_remote_receivers_slow",
                        "Receivers on other nodes whose senders here are slowed.", slowed);
    trpi_figures_single(f, "troupe_remote_held_bytes", "Bytes that are kept here for them.", held);
}

void
trpi_node_serve_metrics(trp_node *node, trpi_call *call)
{
    trpi_view view;
    if (!trpi_view_take_for(node, call, &view)) {
        return;
    }
    cJSON *reply = trpi_call_reply();
    trpi_figures f = { .families = cJSON_AddArrayToObject(reply, "families") };
    f.ok = f.families != NULL;
    struct peers peers = peers_take(node);
    uint32_t names_max = (uint32_t)trpi_config_int(node->config, "management.metrics-names");
    f.ok = f.ok && peers.list != NULL;
    node_add(node, &f);
    messages_add(node, &f, &peers);
    cluster_add(&view, &f, names_max);
    associations_add(&f, &peers);
    trpi_figures_parts(node, &f, names_max);
    trpi_figures_actors(node, &f, names_max);
    peers_add(&f, &peers);
    trpi_free(peers.list);
    trpi_view_fini(&view);
    trpi_call_answer_if(call, f.ok, reply);
}

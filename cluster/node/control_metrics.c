/* control_metrics.c - metrics: figures of this node as families of series, answered at once.
 *
 * Must hold.
 *   control-metrics-M1  No actor and no peer is asked, and no list of actors is walked: each figure
 *       is a counter that is kept anyway, or a copy of the membership's view.
 *   control-metrics-M2  A peer has at most 8 series, so that 100 peers cost a scraper 800.
 * Tests.   tests/system/management.sh
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/node/control_member.h"
#include "cluster/node/node_private.h"

#define PEERS_ROOM 16u
#define PEERS_MAX 1024u /* shown */

/* A list of families that is being filled; ok false: there was no memory. */
struct figures {
    cJSON *families;
    cJSON *samples; /* of the last family */
    bool ok;
};

static void
family_add(struct figures *f, const char *name, const char *help)
{
    size_t bytes = strlen(name);
    bool is_counter = bytes > 6 && strcmp(name + bytes - 6, "_total") == 0;
    cJSON *family = f->ok ? cJSON_CreateObject() : NULL;
    f->ok = family != NULL && trpi_json_add_text(family, "name", name) &&
            trpi_json_add_text(family, "type", is_counter ? "counter" : "gauge") &&
            trpi_json_add_text(family, "help", help);
    f->samples = f->ok ? cJSON_AddArrayToObject(family, "samples") : NULL;
    f->ok = trpi_json_append(f->families, family, f->samples != NULL);
}

/* Add a series with two labels; NULL: it has only one, or none. */
static void
sample_add(struct figures *f, const char *label, const char *value, const char *label_2,
           const char *value_2, double number)
{
    cJSON *sample = f->ok ? cJSON_CreateObject() : NULL;
    cJSON *labels = label != NULL ? cJSON_AddObjectToObject(sample, "labels") : NULL;
    bool ok = sample != NULL && (label == NULL || trpi_json_add_text(labels, label, value)) &&
              (label_2 == NULL || trpi_json_add_text(labels, label_2, value_2)) &&
              cJSON_AddNumberToObject(sample, "value", number) != NULL;
    f->ok = trpi_json_append(f->samples, sample, ok);
}

static void
single_add(struct figures *f, const char *name, const char *help, double number)
{
    family_add(f, name, help);
    sample_add(f, NULL, NULL, NULL, NULL, number);
}

/* ---- the node -------------------------------------------------------------------------------- */

static void
node_add(trp_node *node, struct figures *f)
{
    trpi_world *world = trpi_system_world(node->system);
    trp_system_stats stats;
    (void)trpi_node_stats(node, &stats);
    family_add(f, "troupe_build_info", "1; the version is a label.");
    sample_add(f, "version", trp_version(), NULL, NULL, 1);
    single_add(f, "troupe_uptime_seconds", "Seconds since this node was started.",
               (double)(trpi_world_mono_ns(world) - node->start_ns) / 1e9);
    single_add(f, "troupe_actors", "Actors of this node.", (double)stats.actors);
    single_add(f, "troupe_actors_spawned_total", "Actors that were started.",
               (double)stats.spawned);
    single_add(f, "troupe_actors_stopped_total", "Actors that have ended.", (double)stats.stopped);
    single_add(f, "troupe_actor_restarts_total", "Restarts of actors by their supervisors.",
               (double)stats.restarts);
    single_add(f, "troupe_messages_processed_total", "Messages that actors of this node handled.",
               (double)stats.messages_processed);
    family_add(f, "troupe_dead_letters_total", "Messages that reached no actor, by reason.");
    for (size_t i = 1; i < TRP_DEAD_REASON_COUNT; i++) {
        char reason[64];
        (void)snprintf(reason, sizeof reason, "%s", trpi_dead_reason_text((trp_dead_reason)i));
        for (char *at = reason; (at = strchr(at, ' ')) != NULL;) {
            *at = '-';
        }
        sample_add(f, "reason", reason, NULL, NULL, (double)stats.dead_letters[i]);
    }
}

/* ---- the cluster ----------------------------------------------------------------------------- */

static void
cluster_add(const trpi_view *view, struct figures *f)
{
    size_t by_status[TRP_MEMBER_WEAKLY_UP + 1] = { 0 }, unreachable = 0;
    for (size_t i = 0; i < view->count; i++) {
        const trp_member *m = &view->members[i].m;
        trpi_assert(m->status <= TRP_MEMBER_WEAKLY_UP);
        by_status[m->status]++;
        unreachable += m->reachable ? 0 : 1;
    }
    family_add(f, "troupe_cluster_members", "Members as this node sees them, by status.");
    for (uint32_t s = TRP_MEMBER_JOINING; s <= TRP_MEMBER_WEAKLY_UP; s++) {
        if (s != TRP_MEMBER_REMOVED) {
            sample_add(f, "status", trp_member_status_name(s), NULL, NULL, (double)by_status[s]);
        }
    }
    single_add(f, "troupe_cluster_unreachable_members", "Members that are observed as unreachable.",
               (double)unreachable);
    single_add(f, "troupe_cluster_converged", "1: all members have seen the present view.",
               view->converged ? 1 : 0);
    single_add(f, "troupe_cluster_self_up", "1: this node is Up or WeaklyUp.",
               view->self != NULL && (view->self->m.status == TRP_MEMBER_UP ||
                                      view->self->m.status == TRP_MEMBER_WEAKLY_UP)
                   ? 1
                   : 0);
    family_add(f, "troupe_cluster_gossip_frames_total", "Frames of gossip, by direction.");
    sample_add(f, "direction", "in", NULL, NULL, (double)view->stats.frames_in);
    sample_add(f, "direction", "out", NULL, NULL, (double)view->stats.frames_out);
    family_add(f, "troupe_cluster_member_phi",
               "Suspicion of the failure detector, of the members that this node monitors.");
    for (size_t i = 0; i < view->count; i++) {
        if (view->members[i].phi >= 0) {
            sample_add(f, "peer", view->members[i].m.address, NULL, NULL, view->members[i].phi);
        }
    }
}

/* ---- peers: control-metrics-M2 --------------------------------------------------------------- */

static void
two_ways_add(struct figures *f, const char *peer, uint64_t in, uint64_t out)
{
    sample_add(f, "peer", peer, "direction", "in", (double)in);
    sample_add(f, "peer", peer, "direction", "out", (double)out);
}

static void
peers_add(trp_node *node, struct figures *f)
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
    size_t count = 0, room = PEERS_ROOM;
    trpi_peer_info *peers = trpi_alloc(room * sizeof *peers);
    if (peers != NULL) {
        trpi_remote_peers(node->remote, peers, room, &count);
    }
    if (peers != NULL && count > room) { /* more than usual: once more, with room for them */
        trpi_free(peers);
        room = count < PEERS_MAX ? count : PEERS_MAX;
        peers = trpi_alloc(room * sizeof *peers);
        if (peers != NULL) {
            trpi_remote_peers(node->remote, peers, room, &count);
        }
    }
    count = count < room ? count : room;
    f->ok = f->ok && peers != NULL;
    for (size_t k = 0; f->ok && k < FAMILIES; k++) {
        family_add(f, families[k].name, families[k].help);
        for (size_t i = 0; f->ok && i < count; i++) {
            const trpi_peer_info *p = &peers[i];
            char peer[TRPI_ADDRESS_TEXT_BYTES];
            (void)trpi_address_format(&p->id.address, peer, sizeof peer);
            if (k == BYTES) {
                two_ways_add(f, peer, p->bytes_in, p->bytes_out);
            } else if (k == MESSAGES) {
                two_ways_add(f, peer, p->messages_in, p->messages_out);
            } else if (k == DROPPED) {
                sample_add(f, "peer", peer, NULL, NULL, (double)p->dropped);
            } else if (k == ACTIVE) {
                sample_add(f, "peer", peer, NULL, NULL, strcmp(p->state, "active") == 0 ? 1 : 0);
            } else if (p->round_trip_us != 0) {
                sample_add(f, "peer", peer, NULL, NULL, (double)p->round_trip_us / 1e6);
            }
        }
    }
    trpi_free(peers);
}

void
trpi_node_serve_metrics(trp_node *node, trpi_call *call)
{
    trpi_view view;
    if (!trpi_view_take_for(node, call, &view)) {
        return;
    }
    cJSON *reply = trpi_call_reply();
    struct figures f = { .families = cJSON_AddArrayToObject(reply, "families") };
    f.ok = f.families != NULL;
    node_add(node, &f);
    cluster_add(&view, &f);
    peers_add(node, &f);
    trpi_view_fini(&view);
    trpi_call_answer_if(call, f.ok, reply);
}

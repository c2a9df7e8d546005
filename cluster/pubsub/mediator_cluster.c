/* mediator_cluster.c - the mediator and the other nodes: members, frames, what the registry wants.
 *
 * Shape.   transport thread --frame--> by name --> mailbox --> registry --> actions
 *                             `--> no such mediator here: ABSENT
 * Must hold.
 *   mediator-cluster-C1  peers[i] is the node of the registry's index i, or none.
 * Limits.  MEDIATOR_FRAMES_MAX frames, and MEDIATOR_FRAMES_BYTES_MAX bytes of them, wait in a
 *          mailbox; more are dropped, and come again.
 * Tests.   tests/unit/cluster/pubsub_nodes_test.c, tests/multinode/topics.sh
 */
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "cluster/engine/age.h"
#include "cluster/pubsub/mediator.h"

typedef struct frame_note {
    trpi_node_id from;
    uint8_t bytes[];
} frame_note;

/* ---- frames ---------------------------------------------------------------------------------- */

/* Under all->lock. */
static void
frame_send(const mediators *all, const trpi_node_id *to, const uint8_t *bytes, size_t count)
{
    if (all->remote != NULL) { /* lost: it is sent again */
        (void)trpi_remote_control_send(all->remote, to, TRPI_CHANNEL_PUBSUB, bytes, count);
    }
}

/* Under all->lock. */
static void
frame_give(trp_mediator *m, const trpi_node_id *from, const uint8_t *bytes, size_t count)
{
    trp_ref nobody = TRP_REF_NONE;
    trp_msg *msg;
    void *payload;
    if (atomic_load_explicit(&m->frames_waiting, memory_order_relaxed) >= MEDIATOR_FRAMES_MAX ||
        atomic_load_explicit(&m->frames_bytes, memory_order_relaxed) + count >
            MEDIATOR_FRAMES_BYTES_MAX ||
        trp_msg_new(&mediator_frame_type, sizeof(frame_note) + count, &msg, &payload) != TRP_OK) {
        return;
    }
    /* relaxed: bounds; they grow under all->lock only */
    atomic_fetch_add_explicit(&m->frames_waiting, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&m->frames_bytes, count, memory_order_relaxed);
    frame_note *note = payload;
    note->from = *from;
    memcpy(note->bytes, bytes, count);
    trp_ctx *ctx = trpi_enter(m->system);
    trpi_send_as(ctx, m->actor, nobody, msg);
    trpi_leave(ctx);
}

void
mediators_frame_arrived(void *arg, const trpi_node_id *from, const uint8_t *bytes, size_t count,
                        uint64_t arrived_ns)
{
    mediators *all = arg;
    trpi_pubsub_frame frame, answer;
    trpi_buffer out = { NULL, 0, 0 };
    (void)arrived_ns;
    if (trpi_pubsub_frame_decode(bytes, count, &frame) != TRP_OK) {
        return; /* of a newer version, or nonsense */
    }
    pthread_mutex_lock(&all->lock);
    trp_mediator *m = mediator_find(all, frame.name);
    if (m != NULL) {
        frame_give(m, from, bytes, count);
    } else if (trpi_pubsub_frame_absent(&frame, from->uid, &answer) &&
               trpi_pubsub_frame_encode(&answer, &out) == TRP_OK) {
        frame_send(all, from, out.data, out.count);
    }
    pthread_mutex_unlock(&all->lock);
    trpi_buffer_fini(&out);
    trpi_pubsub_frame_fini(&frame);
}

void
mediator_frame(trp_mediator *m, trp_ctx *ctx, const void *note_, size_t bytes)
{
    const frame_note *note = note_;
    trpi_pubsub_frame frame;
    atomic_fetch_sub_explicit(&m->frames_waiting, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&m->frames_bytes, bytes - sizeof *note, memory_order_relaxed);
    if (trpi_pubsub_frame_decode(note->bytes, bytes - sizeof *note, &frame) != TRP_OK) {
        return; /* no memory: as a lost frame */
    }
    pthread_mutex_lock(&m->lock);
    trp_err err = trpi_pubreg_frame(m->registry, mediator_now_ms(m), &note->from, &frame);
    pthread_mutex_unlock(&m->lock);
    trpi_pubsub_frame_fini(&frame);
    (void)err; /* no memory: as a lost frame; but who was met or lost by it stays so */
    mediator_actions(m, ctx);
}

/* ---- actions --------------------------------------------------------------------------------- */

static void
peer_met(trp_mediator *m, uint32_t index, const trpi_node_id *id, uint32_t slot,
         uint32_t generation)
{
    uint32_t node;
    while (m->peers_count <= index) {
        if (!TRPI_ARRAY_HAS_ROOM(m, peers)) {
            return; /* it is met when something is for it */
        }
        memset(&m->peers[m->peers_count++], 0, sizeof m->peers[0]);
    }
    mediator_peer *peer = &m->peers[index];
    memset(peer, 0, sizeof *peer);
    if (trpi_node_meet(m->system, id, &node) == TRP_OK) {
        peer->id = *id;
        peer->ref = (trp_ref){ node, slot, generation, 0 };
    }
}

bool
mediator_is_met(trp_mediator *m, uint32_t index)
{
    if (index < m->peers_count && !trp_ref_is_none(m->peers[index].ref)) {
        return true;
    }
    const trpi_pubreg_node *node = trpi_pubreg_node_at(m->registry, index);
    if (node->life != 0) { /* there was no memory when it was met */
        peer_met(m, index, &node->id, node->slot, node->generation);
    }
    return index < m->peers_count && !trp_ref_is_none(m->peers[index].ref);
}

static void
peer_lost(trp_mediator *m, const trpi_pubreg_action *action)
{
    trpi_tallies_lost(m->tallies, &action->node);
    if (action->index < m->peers_count) { /* mediator-cluster-C1 */
        memset(&m->peers[action->index], 0, sizeof m->peers[0]);
    }
}

void
mediator_actions(trp_mediator *m, trp_ctx *ctx)
{
    uint32_t count;
    const trpi_pubreg_action *actions = trpi_pubreg_actions(m->registry, &count);
    (void)ctx;
    for (uint32_t i = 0; i < count; i++) {
        const trpi_pubreg_action *action = &actions[i];
        switch (action->kind) {
        case TRPI_PUBREG_SEND:
            pthread_mutex_lock(&m->all->lock);
            frame_send(m->all, &action->node, action->bytes.data, action->bytes.count);
            pthread_mutex_unlock(&m->all->lock);
            /* relaxed: figures */
            atomic_fetch_add_explicit(&m->frames_sent, 1, memory_order_relaxed);
            atomic_fetch_add_explicit(&m->bytes_sent, action->bytes.count, memory_order_relaxed);
            break;
        case TRPI_PUBREG_MET:
            peer_met(m, action->index, &action->node, action->slot, action->generation);
            break;
        case TRPI_PUBREG_LOST:
            peer_lost(m, action);
            break;
        case TRPI_PUBREG_LOG:
            trpi_log(m->system, action->level, "pubsub", "%s", action->text);
            break;
        }
    }
}

/* ---- members --------------------------------------------------------------------------------- */

/* The members with the role; without a cluster this node alone. Gives *ret_members. */
static trp_err
members_read(const trp_mediator *m, trpi_pubreg_member **ret_members, uint32_t *ret_count)
{
    size_t count = 0, room = 0;
    trp_member *all = NULL;
    trpi_address here;
    trp_err err = !mediators_address(m->all, &here)
                      ? TRP_ESTATE
                      : trp_cluster_members(m->system, NULL, 0, &count);
    bool alone = err == TRP_ESTATE;
    while (err == TRP_OK && count > room) { /* a member may come between the two calls */
        trpi_free(all);
        room = count;
        all = trpi_alloc(room * sizeof *all);
        err = all == NULL ? TRP_ENOMEM : trp_cluster_members(m->system, all, room, &count);
    }
    trpi_pubreg_member *members =
        err == TRP_OK || alone ? trpi_alloc((count + 1) * sizeof *members) : NULL;
    uint32_t kept = 0;
    for (size_t i = 0; members != NULL && !alone && i < count; i++) {
        trpi_aged aged;
        if ((m->role[0] == '\0' || trp_member_has_role(&all[i], m->role) != 0) &&
            trpi_aged_of(&all[i], &aged)) {
            members[kept].id = aged.id;
            members[kept++].status = all[i].status;
        }
    }
    if (members != NULL && alone) {
        members[0].id = *trpi_system_self(m->system);
        members[0].status = TRP_MEMBER_UP;
        kept = 1;
    }
    trpi_free(all);
    *ret_members = members;
    *ret_count = kept;
    return members != NULL ? TRP_OK : TRP_ENOMEM;
}

void
mediator_members(trp_mediator *m, trp_ctx *ctx)
{
    trpi_pubreg_member *members = NULL;
    uint32_t count = 0;
    trp_err err = members_read(m, &members, &count);
    if (err == TRP_OK) {
        pthread_mutex_lock(&m->lock);
        err = trpi_pubreg_members(m->registry, mediator_now_ms(m), members, count);
        pthread_mutex_unlock(&m->lock);
        mediator_actions(m, ctx);
    }
    trpi_free(members);
    if (err != TRP_OK) {
        trp_fail(ctx, 0, "the members of the cluster cannot be read: %s", trp_strerror(err));
    }
}

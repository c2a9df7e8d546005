/* peers.c - the table of peers, one an address, and the end of remoting's memory.
 *
 * Must hold.
 *   peers-D1  A peer stays in memory while it is pinned: by its connections and routes, too.
 * Limits.  peers_max addresses, host_peers_max of callers of one host; strangers.c says which
 *          one gives way.
 * Tests.   tests/unit/remote/remote_test.c, garbage_test.c
 */
#include "remote/association/control_reserve.h"
#include "remote/association/peer.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "remote/association/clients.h"
#include "remote/association/hold.h"
#include "remote/association/inbound.h"

static trpi_peer **
bucket_of(trpi_remote *remote, const trpi_address *address)
{
    return &remote->table.buckets[trpi_address_hash(address) % TRPI_PEER_BUCKETS];
}

/* By remote->lock. */
static trpi_peer *
peer_new(trpi_remote *remote, const trpi_address *address)
{
    trpi_peer **bucket = bucket_of(remote, address), *peer = trpi_alloc(sizeof *peer);
    if (peer != NULL) {
        peer->remote = remote;
        peer->address = *address;
        pthread_mutex_init(&peer->lock, NULL);
        for (int lane = 0; lane < TRPI_LANE_COUNT; lane++) {
            pthread_mutex_init(&peer->lanes[lane].recv_lock, NULL);
            atomic_init(&peer->lanes[lane].epoch, remote->table.epoch_first);
        }
        trpi_redelivery_init(&peer->redelivery, remote->options.system_messages_max,
                             remote->options.resend_ms, remote->options.give_up_ms);
        trpi_agreed_begin(&peer->agreed, remote->options.frame_bytes_max);
        peer->next = *bucket;
        *bucket = peer;
        remote->table.count++;
        trpi_peer_begin(peer);
    }
    return peer;
}

/* share TRPI_SHARES: it did not call. */
trp_err
trpi_peer_pin(trpi_remote *remote, const trpi_address *address, bool make, uint32_t share,
              trpi_peer **ret_peer)
{
    trp_err err = TRP_OK;
    pthread_mutex_lock(&remote->lock);
    trpi_peer *peer = *bucket_of(remote, address);
    while (peer != NULL && !trpi_address_equal(&peer->address, address)) {
        peer = peer->next;
    }
    if (peer == NULL && !make) {
        err = TRP_ENOENT;
    } else if (peer == NULL && (remote->table.count >= remote->options.peers_max ||
                                (share < TRPI_SHARES &&
                                 remote->table.shares[share] >= remote->options.host_peers_max))) {
        err = TRP_ELIMIT;
    } else if (peer == NULL) {
        peer = peer_new(remote, address);
        err = peer != NULL ? TRP_OK : TRP_ENOMEM;
    }
    if (err == TRP_OK) {
        if (share < TRPI_SHARES && peer->pins == 0 && !peer->shared && peer->assoc.uid == 0 &&
            !atomic_load_explicit(&peer->watch.member, memory_order_relaxed)) {
            peer->share = share;
            peer->shared = true;
            remote->table.shares[share]++;
        }
        peer->pins++;
        *ret_peer = peer;
    }
    pthread_mutex_unlock(&remote->lock);
    return err;
}

void
trpi_peer_unpin(trpi_peer *peer)
{
    if (peer != NULL) {
        trpi_remote *remote = peer->remote; /* peer may be gone behind the unlock */
        pthread_mutex_lock(&remote->lock);
        trpi_assert(peer->pins > 0);
        peer->pins--;
        pthread_mutex_unlock(&remote->lock);
    }
}

/* Our incarnation goes on, and so do its epochs there. By remote->lock. tick-T5 */
static void
epochs_keep(const trpi_peer *peer)
{
    for (int lane = 0; lane < TRPI_LANE_COUNT; lane++) {
        uint32_t epoch = trpi_lane_epoch(&peer->lanes[lane]);
        if (epoch > peer->remote->table.epoch_first) {
            peer->remote->table.epoch_first = epoch;
        }
    }
}

void
trpi_peer_unshare(trpi_peer *peer)
{
    trpi_remote *remote = peer->remote;
    pthread_mutex_lock(&remote->lock);
    if (peer->shared && peer->watch.delegated) {
        peer->shared = false;
        remote->table.shares[peer->share]--;
    }
    pthread_mutex_unlock(&remote->lock);
}

void
trpi_peer_remove(trpi_peer *peer)
{
    trpi_peer **at = bucket_of(peer->remote, &peer->address);
    while (*at != peer) {
        at = &(*at)->next;
    }
    *at = peer->next;
    epochs_keep(peer);
    peer->remote->table.resent_before += peer->redelivery.resent;
    peer->remote->table.count--;
    if (peer->shared) {
        peer->remote->table.shares[peer->share]--;
    }
}

/* The next one, not pinned. By remote->lock. */
static trpi_peer *
peer_behind(trpi_remote *remote, const trpi_peer *before)
{
    trpi_peer **bucket =
        before != NULL ? bucket_of(remote, &before->address) : remote->table.buckets;
    trpi_peer *peer = before != NULL ? before->next : *bucket;
    while (peer == NULL && ++bucket < remote->table.buckets + TRPI_PEER_BUCKETS) {
        peer = *bucket;
    }
    return peer;
}

/* uid 0: any. */
static trpi_peer *
peer_next(trpi_remote *remote, trpi_peer *before, uint64_t uid)
{
    pthread_mutex_lock(&remote->lock);
    trpi_peer *peer = peer_behind(remote, before);
    while (peer != NULL && uid != 0 &&
           atomic_load_explicit(&peer->active_uid, memory_order_relaxed) != uid) {
        peer = peer_behind(remote, peer);
    }
    if (peer != NULL) {
        peer->pins++;
    }
    if (before != NULL) {
        before->pins--;
    }
    pthread_mutex_unlock(&remote->lock);
    return peer;
}

trpi_peer *
trpi_peer_next(trpi_remote *remote, trpi_peer *before)
{
    return peer_next(remote, before, 0);
}

trpi_peer *
trpi_peer_of_uid(trpi_remote *remote, uint64_t uid, trpi_peer *before)
{
    if (uid == 0) { /* nobody's */
        trpi_peer_unpin(before);
        return NULL;
    }
    return peer_next(remote, before, uid); /* the caller looks again under the peer's lock */
}

void
trpi_peer_free(trpi_peer *peer)
{
    trpi_assert(peer->conns == NULL);
    for (int lane = 0; lane < TRPI_LANE_COUNT; lane++) {
        trpi_buffer_fini(&peer->lanes[lane].queue.frames);
        trpi_inflow_fini(&peer->lanes[lane].inflow);
        trpi_mutex_destroy(&peer->lanes[lane].recv_lock);
    }
    trpi_holds_free(peer->holds);
    trpi_free(peer->receivers);
    while (peer->routes != NULL) {
        trpi_route *route = peer->routes;
        trpi_route_unlink(route);
        trpi_route_free(route);
    }
    trpi_redelivery_fini(&peer->redelivery);
    trpi_waiting_fini(&peer->waiting);
    trpi_detector_fini(&peer->activity.detector);
    trpi_detector_fini(&peer->watch.detector);
    trpi_free(peer->ends.nodes);
    trpi_mutex_destroy(&peer->lock);
    trpi_free(peer);
}

void
trpi_remote_unref(trpi_remote *remote)
{
    if (atomic_fetch_sub_explicit(&remote->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (uint32_t i = 0; i < TRPI_PEER_BUCKETS; i++) {
        while (remote->table.buckets[i] != NULL) {
            trpi_peer *peer = remote->table.buckets[i];
            remote->table.buckets[i] = peer->next;
            trpi_peer_free(peer);
        }
    }
    for (int i = 0; i < TRPI_CHANNEL_COUNT; i++) {
        pthread_rwlock_destroy(&remote->channels[i].lock);
    }
    pthread_cond_destroy(&remote->over);
    trpi_mutex_destroy(&remote->lock);
    trpi_free(remote->largest);
    trpi_free(remote->evicted.uids);
    trpi_faults_free(remote->faults);
    trpi_untrusted_end(remote);
    trpi_clients_end(remote);
    trpi_control_reserve_free(remote->control);
    trpi_free(remote);
}

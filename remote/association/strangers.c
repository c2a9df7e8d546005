/* strangers.c - limits on peers and third nodes that are known, and which one gives way.
 *
 * Why.     Any host that reaches the port makes this node remember it: a peer, a number of its
 *          node, numbers of the nodes that it names. The entries of one host, or of the holder of
 *          one certificate, are bounded, and unused ones give way: so strangers can neither fill
 *          the tables nor keep others out, however often they connect.
 * Shape.   A caller counts for its share: the key of its certificate, or of its host (IPv6: of its
 *          network). A member of the cluster counts for none, and never gives way.
 * Must hold.
 *   strangers-G1  A third node gets a number when a message that names it is delivered, never for
 *       one that is refused, or whose receiver is not there. Without a number it is the empty ref
 *       in a message.
 *   strangers-G2  The peer that has been gone longest gives way: not connected, unused, without
 *       other pins, no member. Its incarnations end first, and their watchers are told.
 *   strangers-G3  An incarnation that gave way without having said goodbye is barred
 *       (association-A1): the numbers of its stream are forgotten.
 * Limits.  peers_max, host_peers_max, host_nodes_max; TRPI_NODES_INTRODUCED (nodes.h);
 *          TRPI_EVICTED_MAX incarnations are barred so, the oldest is forgotten first. LOOK_MAX
 *          gone peers are looked at for one of a share.
 * Tests.   tests/sim/strangers_test.c, tests/unit/remote/garbage_test.c
 */
#include "remote/association/peer.h"

#include "base/alloc.h"
#include "remote/association/conn.h"
#include "remote/association/route.h"

enum { LOOK_MAX = 256, ENDS_MAX = 16 };

/* ---- incarnations that gave way -------------------------------------------------------------- */

/* strangers-G3. By remote->lock; without memory a late comer is only misunderstood. */
static void
evicted_add(trpi_remote *remote, uint64_t uid)
{
    if (remote->evicted.uids == NULL) {
        remote->evicted.uids = trpi_alloc(TRPI_EVICTED_MAX * sizeof *remote->evicted.uids);
    }
    if (remote->evicted.uids != NULL) {
        remote->evicted.uids[remote->evicted.next] = uid;
        remote->evicted.next = (remote->evicted.next + 1) % TRPI_EVICTED_MAX;
        remote->evicted.count += remote->evicted.count < TRPI_EVICTED_MAX;
    }
}

void
trpi_evicted_bar(trpi_peer *peer, uint64_t uid)
{
    trpi_remote *remote = trpi_peer_remote(peer);
    if (trpi_peer_uid(peer) != 0) {
        return; /* that node knows by itself */
    }
    pthread_mutex_lock(&remote->lock);
    bool evicted = false;
    for (uint32_t i = 0; i < remote->evicted.count && !evicted; i++) {
        evicted = remote->evicted.uids[i] == uid;
    }
    pthread_mutex_unlock(&remote->lock);
    if (evicted) {
        trpi_assoc_bar(&peer->assoc, uid);
    }
}

/* ---- giving way ------------------------------------------------------------------------------ */

/* One that has been gone for long, pinned; NULL: none. */
static trpi_peer *
peer_candidate(trpi_remote *remote, uint32_t share)
{
    uint32_t looks = 0;
    pthread_mutex_lock(&remote->lock);
    trpi_peer *peer = remote->list.gone.first;
    while (peer != NULL && looks++ < LOOK_MAX && share < TRPI_SHARES &&
           !(peer->shared && peer->share == share)) {
        peer = trpi_activity_next(&peer->activity);
    }
    peer = looks > LOOK_MAX ? NULL : peer;
    if (peer != NULL) {
        trpi_peer_pin_more(peer);
    }
    pthread_mutex_unlock(&remote->lock);
    return peer;
}

/* strangers-G2. The caller holds peer->lock, and a pin. */
static bool
may_give_way(const trpi_peer *peer)
{
    bool may = !trpi_activity_is_active(&peer->activity) &&
               trpi_activity_list(&peer->activity) == &trpi_peer_remote(peer)->list.gone &&
               !trpi_watch_is_delegated(&peer->watch) && !trpi_peer_is_active(peer) &&
               trpi_peer_conns(peer) == NULL && !trpi_peer_wants(peer);
    uint32_t pins = 1; /* the caller's, and one a route */
    for (const trpi_route *route = trpi_peer_routes(peer); may && route != NULL;
         route = route->next) {
        may = route->uid != 0; /* else: it was asked for without an incarnation */
        pins++;
    }
    pthread_mutex_lock(&trpi_peer_remote(peer)->lock);
    may = may && peer->pins == pins; /* else: it calls, or is called, at this moment */
    pthread_mutex_unlock(&trpi_peer_remote(peer)->lock);
    return may;
}

/* The numbers that have to end first: they have ended now, should one of them be met at once. The
 * caller holds peer->lock. */
static uint32_t
numbers_end(const trpi_peer *peer, uint32_t numbers[ENDS_MAX])
{
    uint32_t count = 0;
    uint32_t own = trpi_peer_node_hint(peer);
    if (own != 0) {
        numbers[count++] = own;
    }
    for (const trpi_route *r = trpi_peer_routes(peer); r != NULL && count < ENDS_MAX; r = r->next) {
        numbers[count++] = r->node;
    }
    for (uint32_t i = 0; i < count; i++) {
        trpi_node_mark_ended(trpi_peer_remote(peer)->system, numbers[i]);
    }
    return count;
}

static void
say_so(trpi_remote *remote, const trpi_address *gone)
{
    uint32_t suppressed = 0;
    char address[TRPI_ADDRESS_TEXT_BYTES];
    if (trpi_log_limit_allows(remote, TRPI_LOG_LIMIT_CROWD, &suppressed)) {
        trpi_log(remote->system, TRP_LOG_WARNING, "remote",
                 "too many peers: the one that has been gone longest is forgotten peer=%s "
                 "next=\"remote.peers-max and remote.peers-per-host bound them\" suppressed=%u",
                 trpi_address_format(gone, address, sizeof address), suppressed);
    }
}

void
trpi_peer_forget(trpi_peer *peer, bool over)
{
    trpi_remote *remote = trpi_peer_remote(peer);
    uint32_t node = 0;
    pthread_mutex_lock(&remote->lock);
    over = over && peer->pins == 1 && /* ours */
           !atomic_load_explicit(&remote->stopping, memory_order_relaxed);
    if (!trpi_activity_is_active(&peer->activity)) {
        trpi_peer_list_remove(peer);
    }
    if (over) {
        trpi_peer_remove(peer);
        node = trpi_peer_node_hint(peer);
    } else if (!trpi_activity_is_active(&peer->activity)) {
        trpi_peer_list_append(peer, &remote->list.gone);
    }
    pthread_mutex_unlock(&remote->lock);
    pthread_mutex_unlock(&peer->lock);
    if (over) {
        /* refs lead there still, as those to a node that was only named */
        uint64_t by = peer->shared ? peer->share : trpi_host_key(trpi_peer_address(peer)->host);
        trpi_node_release(remote->system, node, by, remote->options.host_nodes_max);
        trpi_peer_free(peer);
    } else {
        trpi_peer_unpin(peer);
    }
}

bool
trpi_peers_give_way(trpi_remote *remote, uint32_t share)
{
    trpi_peer *peer = peer_candidate(remote, share);
    uint32_t numbers[ENDS_MAX], count = 0;
    if (peer == NULL) {
        return false;
    }
    pthread_mutex_lock(&peer->lock);
    bool may = may_give_way(peer);
    trpi_address gone = *trpi_peer_address(peer);
    uint64_t uid = trpi_peer_uid(peer);
    if (may) {
        count = numbers_end(peer, numbers);
    }
    if (may && uid != 0 && !trpi_assoc_is_barred(&peer->assoc, uid)) {
        trpi_assoc_bar(&peer->assoc, uid);
        pthread_mutex_lock(&remote->lock);
        evicted_add(remote, uid);
        pthread_mutex_unlock(&remote->lock);
    }
    pthread_mutex_lock(&remote->lock);
    bool over = may && peer->pins == 1 && trpi_peer_routes(peer) == NULL;
    pthread_mutex_unlock(&remote->lock);
    trpi_peer_forget(peer, may); /* with proxies: when those are given back */
    for (uint32_t i = 0; i < count; i++) {
        trpi_node_terminated(remote->system, numbers[i], TRP_DEAD_STALE);
    }
    if (may) {
        say_so(remote, &gone);
    }
    trpi_count(&remote->stats.gave_way, over);
    return over;
}

/* ---- finding one, or room for one ------------------------------------------------------------ */

/* A peer that gives way may have proxies, which takes a moment: so one goes while there is room. */
static void
make_room_ahead(trpi_remote *remote, uint32_t share)
{
    const trpi_remote_options *o = &remote->options;
    pthread_mutex_lock(&remote->lock);
    bool any = remote->table.count > o->peers_max - o->peers_max / 8;
    bool of_share = share < TRPI_SHARES &&
                    remote->table.shares[share] > o->host_peers_max - o->host_peers_max / 8;
    pthread_mutex_unlock(&remote->lock);
    if (of_share || any) {
        (void)trpi_peers_give_way(remote, of_share ? share : TRPI_SHARES);
    }
}

static trp_err
peer_get_or_make_room(trpi_remote *remote, const trpi_address *address, bool make, uint32_t share,
                      trpi_peer **ret_peer)
{
    trp_err err = trpi_peer_pin(remote, address, make, share, ret_peer);
    if (err == TRP_ELIMIT && (trpi_peers_give_way(remote, share) ||
                              (share < TRPI_SHARES && trpi_peers_give_way(remote, TRPI_SHARES)))) {
        err = trpi_peer_pin(remote, address, make, share, ret_peer);
    }
    if (err == TRP_OK && make) {
        make_room_ahead(remote, share);
    }
    return err;
}

trp_err
trpi_peer_get(trpi_remote *remote, const trpi_address *address, bool make, trpi_peer **ret_peer)
{
    return peer_get_or_make_room(remote, address, make, TRPI_SHARES, ret_peer);
}

trp_err
trpi_peer_get_caller(trpi_remote *remote, const trpi_address *address, uint64_t share_key,
                     trpi_peer **ret_peer)
{
    return peer_get_or_make_room(remote, address, true, (uint32_t)(share_key % TRPI_SHARES),
                                 ret_peer);
}

/* ---- third nodes ----------------------------------------------------------------------------- */

/* The number of a node that is connected, or is the present incarnation of a member: it belongs to
 * its peer, and does not give way to nodes that are only named. 0: neither. */
static uint32_t
present_number(trpi_remote *remote, const trpi_node_id *id)
{
    trpi_peer *peer = NULL;
    uint32_t node = 0;
    if (trpi_peer_get(remote, &id->address, false, &peer) != TRP_OK) {
        return 0;
    }
    pthread_mutex_lock(&peer->lock);
    if (trpi_peer_uid(peer) == id->uid &&
        (trpi_watch_is_delegated(&peer->watch) || trpi_peer_is_active(peer))) {
        node = trpi_peer_node(peer);
    }
    pthread_mutex_unlock(&peer->lock);
    trpi_peer_unpin(peer);
    return node;
}

trp_err
trpi_third_number(void *arg, const trpi_node_id *id, uint32_t *ret_node)
{
    trpi_conn *conn = arg;
    trpi_remote *remote = trpi_conn_remote(conn);
    if (id->uid == remote->uid) {
        *ret_node = TRPI_NODE_SELF;
        return TRP_OK;
    }
    uint32_t known = trpi_node_find(remote->system, id);
    uint32_t slot, generation;
    enum trpi_numbers_scope scope = trpi_conn_numbers(conn, &slot, &generation);
    bool numbers =
        scope == TRPI_NUMBERS_ANY ||
        (scope == TRPI_NUMBERS_RECEIVER && trpi_inbound_is_there(remote->system, slot, generation));
    if (!numbers) { /* strangers-G1 */
        *ret_node = known;
        return TRP_OK;
    }
    uint32_t present = known == 0 ? present_number(remote, id) : 0;
    if (present != 0) {
        *ret_node = present;
        return TRP_OK;
    }
    return trpi_node_introduce(remote->system, id, trpi_conn_counts_by(conn),
                               remote->options.host_nodes_max, ret_node);
}

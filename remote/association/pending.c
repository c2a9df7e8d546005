/* pending.c - connections without a handshake: how many there are, and which one gives way.
 *
 * Why.     A host may connect often and stay silent. The places for such connections are bounded,
 *          and a new one gets a place: at the bound, the one that has been silent longest is
 *          closed. So a peer that sends its handshake within milliseconds is let in, however many
 *          silent connections there are.
 * Must hold.
 *   remote-pending-W1  A connection is in the list, and is counted, from accepted() until it is
 *       bound to a peer, closed, or has to give way.
 * Limits.  pending_handshakes_max places, at most a quarter of the descriptors that the process may
 *          have; half of them for one address; an eighth is kept for the addresses of members.
 *          Each waits for handshake_timeout at most.
 * Tests.   tests/unit/remote/secure_test.c, tests/sim/strangers_test.c, tests/system/strangers.sh
 */
#include "remote/association/conn.h"

#include <stdio.h>
#include <sys/resource.h>

#include "remote/association/peer.h"

enum { SMALL = 16 }; /* of fewer places none is kept, and one address may have all */

uint32_t
trpi_pending_places(uint32_t wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 4 < wanted) {
        wanted = (uint32_t)(limit.rlim_cur / 4);
    }
    return wanted > 0 ? wanted : 1;
}

/* The oldest connection of this share, or, with TRPI_SHARES, of any share that is no member's. */
static trpi_conn *
oldest_of(const trpi_remote *remote, uint32_t share)
{
    trpi_conn *conn = remote->pending.first;
    while (conn != NULL &&
           (share < TRPI_SHARES ? trpi_conn_host(conn) != share
                                : remote->pending.member_hosts[trpi_conn_host(conn)])) {
        conn = conn->waits.next;
    }
    return conn;
}

static trpi_conn *
who_gives_way(const trpi_remote *remote, uint32_t share)
{
    uint32_t places = remote->options.pending_handshakes_max;
    uint32_t of_one = places > SMALL ? places / 2 : places;
    uint32_t kept = places > SMALL && !remote->pending.member_hosts[share] ? places / 8 : 0;
    if (remote->pending.hosts[share] >= of_one) {
        return oldest_of(remote, share);
    }
    if (remote->pending.count < places - kept) {
        return NULL;
    }
    trpi_conn *conn = oldest_of(remote, TRPI_SHARES);
    return conn != NULL ? conn : remote->pending.first;
}

void
trpi_pending_remove(trpi_conn *conn)
{
    trpi_remote *remote = trpi_conn_remote(conn);
    trpi_conn *next = conn->waits.next, *before = conn->waits.before;
    if (!conn->waits.listed) {
        return;
    }
    conn->waits.listed = false; /* remote-pending-W1 */
    *(next != NULL ? &next->waits.before : &remote->pending.last) = before;
    *(before != NULL ? &before->waits.next : &remote->pending.first) = next;
    remote->pending.hosts[trpi_conn_host(conn)]--;
    remote->pending.count--;
}

void
trpi_pending_add(trpi_conn *conn, char gone[TRPI_PENDING_TEXT_BYTES])
{
    trpi_remote *remote = trpi_conn_remote(conn);
    trpi_conn *over = who_gives_way(remote, trpi_conn_host(conn));
    gone[0] = '\0';
    if (over != NULL) {
        (void)snprintf(gone, TRPI_PENDING_TEXT_BYTES, "%s", over->peer_text);
        trpi_pending_remove(over);
        remote->ops->close(over->link);
        remote->pending.displaced_ms = trpi_remote_now_ms(remote);
    }
    conn->waits.listed = true;
    conn->waits.next = NULL;
    conn->waits.before = remote->pending.last;
    *(conn->waits.before != NULL ? &conn->waits.before->waits.next : &remote->pending.first) = conn;
    remote->pending.last = conn;
    remote->pending.hosts[trpi_conn_host(conn)]++;
    remote->pending.count++;
}

void
trpi_pending_member_host(const trpi_conn *conn)
{
    trpi_conn_remote(conn)->pending.member_hosts[trpi_conn_host(conn)] = true;
}

void
trpi_pending_member(trpi_peer *peer)
{
    trpi_remote *remote = trpi_peer_remote(peer);
    pthread_mutex_lock(&remote->lock);
    remote->pending.member_hosts[trpi_host_key(trpi_peer_address(peer)->host) % TRPI_SHARES] = true;
    for (const trpi_conn *conn = trpi_peer_conns(peer); conn != NULL; conn = trpi_conn_next(conn)) {
        remote->pending.member_hosts[trpi_conn_host(conn)] = true;
    }
    pthread_mutex_unlock(&remote->lock);
}

void
trpi_pending_starved(void *arg)
{
    trpi_remote *remote = arg;
    struct rlimit limit = { 0, 0 };
    uint32_t suppressed = 0;
    pthread_mutex_lock(&remote->lock);
    trpi_conn *over = remote->pending.first;
    if (over != NULL) {
        trpi_pending_remove(over);
        remote->ops->close(over->link);
    }
    remote->pending.starved++;
    remote->pending.starved_ms = trpi_remote_now_ms(remote);
    pthread_mutex_unlock(&remote->lock);
    if (!trpi_log_limit_allows(remote, TRPI_LOG_LIMIT_STARVED, &suppressed)) {
        return;
    }
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    trpi_log(remote->system, TRP_LOG_ERROR, "remote",
             "no descriptor is free for a connection limit=%llu next=\"connections without a "
             "handshake are closed, the oldest first; raise LimitNOFILE= of the service (ulimit "
             "-n)\" suppressed=%u",
             (unsigned long long)limit.rlim_cur, suppressed);
}

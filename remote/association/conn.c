/* conn.c - one connection: made, counted, closed, given back.
 *
 * Must hold.
 *   conn-N4  The transport outlives its links, also those that a worker is writing to while
 *       remoting stops: conns_alive counts them.
 * Not here. A connection's writes (conn_write.c) and reads (conn_events.c).
 * Limits.  TRPI_PEER_CONNS_MAX that one peer may have made; another one is refused.
 * Tests.   tests/unit/remote/remote_test.c, garbage_test.c
 */
#include "remote/association/conn.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "remote/association/control_lane.h"
#include "remote/association/peer.h"

enum { NETWORK_BYTES = 8 }; /* of an IPv6 address */

/* ---- shares ---------------------------------------------------------------------------------- */

uint64_t
trpi_host_key(const char *peer_text)
{
    char host[TRPI_HOST_BYTES_MAX + 1];
    uint8_t six[16];
    bool bracket = peer_text[0] == '[';
    size_t bytes = strcspn(peer_text + bracket, bracket ? "]" : "\n");
    if (bytes > sizeof host - 1) {
        bytes = sizeof host - 1;
    }
    memcpy(host, peer_text + bracket, bytes);
    host[bytes] = '\0';
    char *colon = strchr(host, ':');
    if (!bracket && colon != NULL && strchr(colon + 1, ':') == NULL) {
        *colon = '\0'; /* a port */
    }
    if (inet_pton(AF_INET6, host, six) == 1) {
        return trpi_hash(six, NETWORK_BYTES, 0);
    }
    return trpi_hash(host, strlen(host), 0);
}

uint64_t
trpi_conn_share_key(const trpi_conn *conn)
{
    const trpi_transport_ops *ops = conn->remote->ops;
    uint64_t key = ops->whose != NULL ? ops->whose(conn->link) : 0;
    return key != 0 ? key : conn->share_key;
}

/* ---- life ------------------------------------------------------------------------------------ */

void
trpi_conn_free(trpi_conn *conn)
{
    trpi_remote *remote = conn->remote;
    if (conn->write.taken.count > 0) {
        trpi_conn_give_up(conn);
    }
    if (conn->link != NULL) {
        conn->remote->ops->release(conn->link);
    }
    trpi_frame_decoder_fini(&conn->decoder);
    trpi_buffer_fini(&conn->write.head);
    trpi_buffer_fini(&conn->write.taken_head);
    trpi_buffer_fini(&conn->write.taken);
    trpi_buffer_fini(&conn->read.scratch);
    trpi_buffer_fini(&conn->read.expanded);
    trpi_control_free(conn->control);
    /* conn-N4: after release(), and remote may be gone after it */
    pthread_mutex_lock(&remote->lock);
    remote->conns_alive--;
    if (conn->peer != NULL) {
        trpi_peer_pin_less(conn->peer);
    }
    pthread_cond_broadcast(&remote->over);
    pthread_mutex_unlock(&remote->lock);
    trpi_free(conn);
}

trpi_conn *
trpi_conn_new(trpi_remote *remote, bool dialled)
{
    trpi_conn *conn = trpi_alloc(sizeof *conn);
    if (conn == NULL) {
        return NULL;
    }
    conn->remote = remote;
    conn->dialled = dialled;
    atomic_init(&conn->references, 1);
    conn->deadline_ms = trpi_remote_now_ms(remote) + remote->options.handshake_timeout_ms;
    return conn;
}

void
trpi_conns_add(trpi_conn *conn)
{
    trpi_remote *remote = conn->remote;
    conn->all_next = remote->conns;
    if (conn->all_next != NULL) {
        conn->all_next->all_previous = conn;
    }
    remote->conns = conn;
    remote->conns_alive++;
}

void
trpi_conns_remove(trpi_conn *conn)
{
    if (conn->all_previous != NULL) {
        conn->all_previous->all_next = conn->all_next;
    } else {
        conn->remote->conns = conn->all_next;
    }
    if (conn->all_next != NULL) {
        conn->all_next->all_previous = conn->all_previous;
    }
}

void
trpi_conn_close(trpi_conn *conn)
{
    if (conn->closing) {
        return;
    }
    conn->closing = true;
    if (conn->peer != NULL && trpi_lane_out(&conn->peer->lanes[conn->lane]) == conn) {
        trpi_peer_lane_disconnect(conn->peer, conn->lane);
    }
    if (conn->link != NULL) {
        conn->remote->ops->close(conn->link);
    }
}

void
trpi_conn_dial(trpi_peer *peer, enum trpi_lane lane)
{
    trpi_remote *remote = trpi_peer_remote(peer);
    trpi_conn *conn = trpi_conn_new(remote, true);
    if (conn == NULL) {
        return; /* the association's deadline, or the next pump, tries again */
    }
    conn->lane = (uint8_t)lane;
    conn->peer = peer;
    conn->uid = lane == TRPI_LANE_CONTROL ? 0 : trpi_peer_uid(peer);
    char address[TRPI_ADDRESS_TEXT_BYTES];
    (void)snprintf(conn->peer_text, sizeof conn->peer_text, "%s",
                   trpi_address_format(trpi_peer_address(peer), address, sizeof address));
    conn->share_key = trpi_host_key(trpi_peer_address(peer)->host);
    conn->host = (uint32_t)(conn->share_key % TRPI_SHARES);
    conn->peer_next = peer->conns;
    peer->conns = conn;
    peer->conns_count++;
    trpi_lane_unsettle(&peer->lane_marks, conn->lane);
    trpi_lane_dial_begun(&peer->lanes[lane].conns, conn);
    pthread_mutex_lock(&remote->lock);
    trpi_conns_add(conn);
    trpi_peer_pin_more(peer);
    pthread_mutex_unlock(&remote->lock);
    trp_err err = remote->ops->connect(remote->transport, trpi_peer_address(peer)->host,
                                       trpi_peer_address(peer)->port,
                                       remote->options.handshake_timeout_ms, conn, &conn->link);
    if (err != TRP_OK) {
        peer->conns = conn->peer_next; /* it is still the first: we hold the lock */
        peer->conns_count--;
        trpi_lane_dial_ended(&peer->lanes[lane].conns);
        pthread_mutex_lock(&remote->lock);
        trpi_conns_remove(conn);
        pthread_mutex_unlock(&remote->lock);
        conn->link = NULL;
        trpi_conn_unref(conn);
    }
}

/* Connections that did not get ready in time cost a counter and, now and then, a line. */
void
trpi_conns_expire(trpi_remote *remote, uint64_t now_ms)
{
    char peer_text[sizeof((trpi_conn *)0)->peer_text] = "";
    uint32_t expired = 0;
    pthread_mutex_lock(&remote->lock);
    for (trpi_conn *conn = remote->pending.first; conn != NULL; conn = conn->waits.next) {
        if (now_ms >= conn->deadline_ms) {
            expired++;
            conn->deadline_ms = UINT64_MAX; /* once */
            memcpy(peer_text, conn->peer_text, sizeof peer_text);
            remote->ops->close(conn->link);
        }
    }
    pthread_mutex_unlock(&remote->lock);
    if (expired == 0) {
        return;
    }
    uint32_t suppressed = 0;
    trpi_count(&remote->stats.handshake_timeouts, expired);
    trpi_count(&remote->stats.refused[TRPI_REFUSED_TIMEOUT], expired);
    if (trpi_log_limit_allows(remote, TRPI_LOG_LIMIT_TIMEOUT, &suppressed)) {
        trpi_log(remote->system, TRP_LOG_WARNING, "remote",
                 "connection dropped peer=%s reason=\"no handshake within %u ms\" others=%u "
                 "suppressed=%u",
                 peer_text, remote->options.handshake_timeout_ms, expired - 1, suppressed);
    }
}

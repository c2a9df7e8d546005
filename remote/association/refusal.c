/* refusal.c - connections that are refused: the reasons, the counters, the log lines. */
#include "remote/association/refusal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "remote/association/clients.h"
#include "remote/association/conn.h"
#include "remote/association/peer.h"
#include "remote/security/cookie.h"

void
trpi_refused(trpi_remote *remote, const char *peer, trpi_refusal why, const char *detail)
{
    uint32_t suppressed = 0;
    trpi_assert(why > TRPI_REFUSED_NONE && why < TRPI_REFUSAL_COUNT);
    trpi_count(&remote->stats.refused[why], 1);
    if (trpi_log_limit_allows(remote, TRPI_LOG_LIMIT_REFUSAL + (uint32_t)why, &suppressed)) {
        trpi_log(remote->system, TRP_LOG_WARNING, "remote",
                 "connection refused peer=%s reason=%s detail=\"%s\" suppressed=%u", peer,
                 trpi_refusal_text(why), detail, suppressed);
    }
}

void
trpi_handshake_refused(trpi_peer *peer, const trpi_handshake *refusal)
{
    trpi_remote *remote = trpi_peer_remote(peer);
    char barred[sizeof refusal->reason];
    trpi_count(&remote->stats.handshakes_failed, 1);
    memcpy(peer->refusal.by, refusal->from.address.system, sizeof peer->refusal.by);
    peer->refusal.place = refusal->from.address;
    (void)snprintf(barred, sizeof barred, TRPI_BARRED_FORMAT, remote->uid);
    peer->refusal.barred_by = strcmp(refusal->reason, barred) == 0 ? refusal->from.uid : 0;
    if (peer->refusal.barred_by != 0) {
        peer->refusal.foreign = peer->refusal.barred_by;
        trpi_count(&remote->stats.barred, 1);
    }
}

void
trpi_barred(trpi_peer *peer, trpi_deferred *deferred)
{
    if (peer->refusal.barred_by == 0 || trpi_watch_is_delegated(&peer->watch)) {
        return; /* the cluster judges its members, and itself */
    }
    for (int lane = TRPI_LANE_ORDINARY; lane < TRPI_LANE_COUNT; lane++) {
        if (!trpi_lane_is_empty(&peer->lanes[lane]) && deferred->dropped[lane].frames.count == 0) {
            trpi_lane_clear(peer, (enum trpi_lane)lane, deferred);
            deferred->dropped[lane].reason = TRP_DEAD_QUARANTINED;
        }
    }
    if (trpi_assoc_is_barred(&peer->assoc, peer->refusal.barred_by)) {
        return; /* told already */
    }
    trpi_assoc_event event = { .kind = TRPI_ASSOC_QUARANTINE,
                               .uid = peer->refusal.barred_by,
                               .random = trpi_world_random(trpi_peer_remote(peer)->world) };
    (void)trpi_peer_step(peer, NULL, &event, "it has quarantined this node", deferred);
    trpi_link_event *note = trpi_link_event_new(peer, &trp_self_quarantined_type, deferred);
    if (note != NULL) {
        note->level = TRP_LOG_ERROR;
        note->event.remote_uid = peer->refusal.barred_by;
        (void)snprintf(note->event.reason, sizeof note->event.reason, "%s",
                       "it has quarantined this node");
        (void)snprintf(note->text, sizeof note->text,
                       "this node is quarantined peer=%s uid=%016" PRIx64
                       " next=\"restart this process to communicate with that peer; "
                       "remote.when-quarantined=end ends it by itself\"",
                       note->event.remote, peer->refusal.barred_by);
    }
    deferred->barred = true;
}

bool
trpi_is_barred_now(const trpi_peer *peer)
{
    uint64_t next_ms = trpi_peer_next_ms(peer);
    return peer->refusal.barred_by != 0 && !trpi_watch_is_delegated(&peer->watch) && next_ms != 0 &&
           trpi_remote_now_ms(trpi_peer_remote(peer)) < next_ms;
}

/* Of "10.0.0.2:4711" or "[::1]:4711", as transports write it. */
static bool
is_number_beyond_loopback(const char *peer_text)
{
    char host[TRPI_HOST_BYTES_MAX + 1];
    bool six = peer_text[0] == '[';
    if (!six && (peer_text[0] < '0' || peer_text[0] > '9')) {
        return false; /* a network in memory has names */
    }
    (void)snprintf(host, sizeof host, "%.*s", (int)strcspn(peer_text + six, six ? "]" : ":"),
                   peer_text + six);
    return !trpi_host_is_loopback(host);
}

const char *
trpi_address_refusal(const trpi_conn *conn, const trpi_address *address)
{
    if (trpi_address_is_nameless(address)) {
        const char *odd =
            trpi_clients_refusal(trpi_conn_remote(conn), address, trpi_conn_uid(conn));
        if (odd != NULL) {
            return odd;
        }
    } else if (address->host[0] == '\0' || address->port == 0) {
        return "you advertise no host and port";
    }
    if (strcmp(address->protocol, trpi_conn_remote(conn)->address.protocol) != 0) {
        return "you advertise another protocol than this port has";
    }
    if (trpi_host_is_loopback(address->host) &&
        is_number_beyond_loopback(trpi_conn_peer_text(conn))) {
        return TRPI_LOOPBACK_REFUSAL;
    }
    return NULL;
}

trpi_refusal
trpi_refusal_of_bytes(const uint8_t *bytes, size_t count, const char **ret_detail)
{
    enum { ALERT = 0x15, HANDSHAKE = 0x16, MAJOR = 3 };
    if (count >= 2 && (bytes[0] == ALERT || bytes[0] == HANDSHAKE) && bytes[1] == MAJOR) {
        *ret_detail = "the peer speaks TLS, this node does not: remote.transport";
        return TRPI_REFUSED_PEER_TLS;
    }
    if (count >= 4 && memcmp(bytes, TRPI_COOKIE_MAGIC, 4) == 0) {
        *ret_detail = "the peer wants a cookie, this node has none: remote.require-cookie, or on "
                      "loopback remote.cookie";
        return TRPI_REFUSED_COOKIE;
    }
    return TRPI_REFUSED_NONE;
}

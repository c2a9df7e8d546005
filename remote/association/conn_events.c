/* conn_events.c - events of the transport on a connection: handshake, bytes, the end.
 *
 * Life.    dialled:  connect -> connected: preamble, request -> response -> ready
 *                    (ordinary lane: connected: preamble -> the peer's preamble -> ready)
 *          accepted: preamble -> request -> response sent: ready
 *                    (ordinary lane: preamble with a proved uid -> own preamble: ready)
 *          ready -> closed. A connection that is not ready at its deadline is closed.
 * Must hold.
 *   conn-N1  Nothing of a lane travels on a connection that is not ready: on an ordinary lane the
 *       peer's preamble proves that it will be read, so that the first messages are not lost to a
 *       race of two handshakes.
 *   conn-N2  `busy` has one owner at a time, from trpi_conn_take() to the end of the write.
 *       (conn_write.c)
 *   conn-N3  What was handed to the transport is never sent again (at most once). Messages
 *       that were not handed over when the connection ends are dead letters. (conn_write.c)
 * Limits.  TRPI_PEER_CONNS_MAX that one peer may have made; another one is refused.
 * Tests.   tests/unit/remote/remote_test.c, garbage_test.c
 */
#include "remote/association/conn.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/assert.h"
#include "remote/association/clients.h"
#include "remote/association/control_lane.h"
#include "remote/association/inbound.h"
#include "remote/association/peer.h"
#include "remote/association/refusal.h"

/* Note why reading fails; the decoder returns the error to on_bytes(), which
 * closes. */
static trp_err TRP_PRINTF(3, 4) conn_fail(trpi_conn *conn, trp_err err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(conn->failure, sizeof conn->failure, format, args);
    va_end(args);
    return err;
}

/* ---- connected ------------------------------------------------------------------------------- */

static trp_err on_preamble(void *arg, const trpi_preamble *preamble);
static trp_err on_frame(void *arg, const trpi_frame *frame);

/* Before its first byte. */
static void
reading_begin(trpi_conn *conn)
{
    trpi_frame_decoder_init(&conn->decoder, TRPI_HANDSHAKE_BYTES_MAX, on_preamble, on_frame, conn);
    trpi_frame_decoder_account(&conn->decoder, trpi_unfinished_carry);
}

static void
on_connected(void *user, trpi_link *link)
{
    trpi_conn *conn = user;
    trpi_peer *peer = conn->peer;
    trpi_deferred deferred = { 0 };
    (void)link;
    reading_begin(conn);
    pthread_mutex_lock(&peer->lock);
    conn->reached = true;
    if (conn->lane == TRPI_LANE_CONTROL) {
        trpi_assoc_event event = { .kind = TRPI_ASSOC_DIALLED };
        (void)trpi_peer_step(peer, conn, &event, "", &deferred);
    } else if (trpi_conn_preamble(conn) != TRP_OK) {
        trpi_conn_close(conn);
    }
    trpi_peer_pump(peer, &deferred);
    trpi_peer_unlock(peer, &deferred);
}

static bool
on_accepted(void *arg, trpi_link *link, const char *peer, void **ret_user)
{
    trpi_remote *remote = arg;
    trpi_conn *conn = NULL;
    char gone[TRPI_PENDING_TEXT_BYTES] = "";
    trpi_count(&remote->stats.accepted, 1);
    pthread_mutex_lock(&remote->lock);
    bool stopping = atomic_load_explicit(&remote->stopping, memory_order_relaxed);
    if (!stopping) {
        conn = trpi_conn_new(remote, false);
    }
    if (conn != NULL) {
        reading_begin(conn);
        conn->link = link;
        (void)snprintf(conn->peer_text, sizeof conn->peer_text, "%s", peer);
        conn->share_key = trpi_host_key(peer);
        conn->host = (uint32_t)(conn->share_key % TRPI_SHARES);
        trpi_pending_add(conn, gone);
        trpi_conns_add(conn);
    }
    pthread_mutex_unlock(&remote->lock);
    if (conn == NULL && !stopping) { /* a node that stops refuses all: no log line */
        trpi_refused(remote, peer, TRPI_REFUSED_PENDING, "out of memory");
    } else if (gone[0] != '\0') {
        trpi_refused(remote, gone, TRPI_REFUSED_PENDING,
                     "remote.pending-handshakes-max handshakes are pending, and this connection "
                     "was silent longest");
    }
    *ret_user = conn;
    return conn != NULL;
}

/* Give an accepted connection to its peer. The caller holds peer->lock. false: it has too many. */
static bool
bind_to_peer(trpi_conn *conn, trpi_peer *peer)
{
    trpi_assert(conn->peer == NULL);
    if (peer->conns_count >= TRPI_PEER_CONNS_MAX) {
        return false;
    }
    pthread_mutex_lock(&conn->remote->lock);
    conn->peer = peer;
    trpi_peer_pin_more(peer);
    trpi_pending_remove(conn);
    if (trpi_watch_is_delegated(&peer->watch)) {
        trpi_pending_member_host(conn);
    }
    pthread_mutex_unlock(&conn->remote->lock);
    conn->peer_next = peer->conns;
    peer->conns = conn;
    peer->conns_count++;
    trpi_lane_unsettle(&peer->lane_marks, conn->lane);
    return true;
}

#define TOO_MANY "too many connections of this peer"

/* ---- handshake ------------------------------------------------------------------------------- */

/* Large frames are for peers that are known. By trpi_conn_lock_of(), on the connection's bytes()
 * thread. */
static void
set_ready(trpi_conn *conn, bool ready)
{
    conn->ready = ready;
    if (ready) {
        trpi_conn_takes_large(conn);
    }
}

/* Is the peer, by what its link knows of it, the host that it says it is? */
static trp_err
address_check(trpi_conn *conn, const trpi_address *address)
{
    const trpi_transport_ops *ops = conn->remote->ops;
    if (ops->claims == NULL || conn->dialled || /* the link has checked the name that it dialled */
        ops->claims(conn->link, address->host, address->port, conn->failure,
                    sizeof conn->failure) == TRP_OK) {
        return TRP_OK;
    }
    return TRP_EPERM;
}

/* Find the peer of an accepted connection: among those with this uid the one that may use it. */
static trp_err
peer_find(trpi_conn *conn, uint64_t uid, trpi_peer **ret_peer)
{
    trp_err err = conn_fail(conn, TRP_ECONN, "no association with uid %016" PRIx64 " (yet)", uid);
    trpi_peer *peer = NULL;
    while (err != TRP_OK && (peer = trpi_peer_of_uid(conn->remote, uid, peer)) != NULL) {
        err = address_check(conn, trpi_peer_address(peer));
    }
    if (err == TRP_OK) {
        conn->failure[0] = '\0'; /* of those before it */
        *ret_peer = peer;
    }
    return err;
}

static trp_err
ordinary_preamble(trpi_conn *conn, const trpi_preamble *preamble)
{
    trpi_deferred deferred = { 0 };
    trpi_peer *peer = conn->peer;
    trp_err err = conn->dialled ? TRP_OK : peer_find(conn, preamble->uid, &peer);
    if (err != TRP_OK) {
        return err;
    }
    pthread_mutex_lock(&peer->lock);
    if (!trpi_peer_is_active_as(peer, preamble->uid)) {
        err = conn_fail(conn, TRP_ECONN, "no association with uid %016" PRIx64, preamble->uid);
    } else if (!conn->dialled && trpi_peer_is_client(peer) &&
               trpi_client_claims(peer, conn, true) != TRP_OK) {
        err = conn_fail(conn, TRP_EPERM, "lane of a client that has another certificate or host");
    } else if (!conn->dialled && !bind_to_peer(conn, peer)) {
        err = conn_fail(conn, TRP_ELIMIT, TOO_MANY);
    } else {
        if (conn->dialled) {
            trpi_lane_dial_succeeded(&peer->lanes[conn->lane].conns);
            trpi_dials_succeeded(&peer->dials, conn->lane);
        }
        conn->uid = preamble->uid;
        conn->share_key = conn->dialled ? conn->share_key : trpi_conn_share_key(conn);
        err = trpi_conn_preamble(conn);
        set_ready(conn, err == TRP_OK); /* conn-N1 */
        trpi_peer_pump(peer, &deferred);
    }
    trpi_peer_unlock(peer, &deferred);
    trpi_peer_unpin(conn->dialled ? NULL : peer);
    return err;
}

static trp_err
on_preamble(void *arg, const trpi_preamble *preamble)
{
    trpi_conn *conn = arg;
    if (preamble->version != TRPI_WIRE_VERSION) {
        return conn_fail(conn, TRP_EVERSION, "wire version %u, this node speaks %u",
                         preamble->version, TRPI_WIRE_VERSION);
    }
    if (preamble->lane > TRPI_LANE_ORDINARY &&
        (trpi_features_own(conn->remote) & TRPI_FEATURE_LANES) == 0) {
        return conn_fail(conn, TRP_EPROTO, "lane %u", preamble->lane);
    }
    if (conn->dialled && preamble->lane != conn->lane) {
        return conn_fail(conn, TRP_EPROTO, "answers on lane %u, asked on lane %u", preamble->lane,
                         conn->lane);
    }
    if (!conn->dialled) {
        conn->lane = preamble->lane; /* no other thread reads it before there is a peer */
    }
    if (conn->lane != TRPI_LANE_CONTROL) {
        return ordinary_preamble(conn, preamble);
    }
    pthread_mutex_lock(trpi_conn_lock_of(conn));
    conn->uid = preamble->uid;
    pthread_mutex_unlock(trpi_conn_lock_of(conn));
    return TRP_OK;
}

static void
refusal_log(trpi_conn *conn, const char *reason)
{
    uint32_t suppressed = 0;
    trpi_count(&conn->remote->stats.handshakes_failed, 1);
    if (trpi_log_limit_allows(conn->remote, TRPI_LOG_LIMIT_REFUSED, &suppressed)) {
        trpi_log(conn->remote->system, TRP_LOG_WARNING, "remote",
                 "handshake refused peer=%s reason=\"%s\" suppressed=%u", conn->peer_text, reason,
                 suppressed);
    }
}

/* Answer a request that cannot be fulfilled, before there is a peer. */
static trp_err
refuse_stranger(trpi_conn *conn, const char *reason)
{
    const trpi_address *own = &conn->remote->address;
    trpi_handshake refusal = { .from = { *own, conn->remote->uid }, .to = *own };
    (void)snprintf(refusal.reason, sizeof refusal.reason, "%s", reason);
    pthread_mutex_lock(&conn->remote->lock);
    bool taken = trpi_conn_handshake(conn, TRPI_FRAME_HANDSHAKE_REFUSAL, &refusal) == TRP_OK;
    conn->close_when_sent = true;
    taken = taken && trpi_conn_take(conn);
    pthread_mutex_unlock(&conn->remote->lock);
    uint32_t writes_left = TRPI_WRITES_AT_ONCE;
    if (taken && trpi_conn_write(conn, &writes_left)) {
        trpi_conn_write_alone_over(conn, &writes_left);
    }
    refusal_log(conn, reason);
    return taken ? TRP_OK : TRP_ECLOSED;
}

/* Agree on the features of both ends, unless this incarnation is barred. By peer->lock. */
static void
handshake_agree(trpi_conn *conn, const trpi_handshake *handshake)
{
    trpi_peer *peer = conn->peer;
    if (trpi_assoc_is_barred(&peer->assoc, conn->uid)) {
        trpi_refusal_foreign(&peer->refusal, conn->uid);
        return;
    }
    if (trpi_assoc_is_rival(&peer->assoc, conn->uid)) {
        return;
    }
    set_ready(conn, true);
    trpi_peer_agree(peer, handshake,
                    conn->remote->ops->until != NULL ? conn->remote->ops->until(conn->link) : 0);
}

static trp_err
on_request(trpi_conn *conn, const trpi_handshake *request)
{
    trpi_remote *remote = conn->remote;
    trpi_peer *peer = NULL;
    char reason[sizeof request->reason];
    char called[TRPI_ADDRESS_TEXT_BYTES];
    char own[TRPI_ADDRESS_TEXT_BYTES];
    if (conn->dialled || conn->peer != NULL || request->from.uid != conn->uid) {
        return conn_fail(conn, TRP_EPROTO, "handshake request out of place");
    }
    if (!trpi_address_equal(&request->to, &remote->address)) {
        (void)snprintf(reason, sizeof reason, "you called %s, this is %s",
                       trpi_address_format(&request->to, called, sizeof called),
                       trpi_address_format(&remote->address, own, sizeof own));
        return refuse_stranger(conn, reason);
    }
    if (trpi_address_equal(&request->from.address, &remote->address)) {
        return refuse_stranger(conn, "you use my address");
    }
    const char *odd = trpi_address_refusal(conn, &request->from.address);
    if (odd != NULL) {
        return refuse_stranger(conn, odd);
    }
    if (address_check(conn, &request->from.address) != TRP_OK) {
        trpi_refused(remote, conn->peer_text, TRPI_REFUSED_WRONG_NAME, conn->failure);
        /* beginning with the refusal's word, as in the refusal of a dialler */
        (void)snprintf(reason, sizeof reason, "%s: %.200s",
                       trpi_refusal_text(TRPI_REFUSED_WRONG_NAME), conn->failure);
        return refuse_stranger(conn, reason);
    }
    conn->share_key = trpi_conn_share_key(conn);
    bool is_client = trpi_address_is_nameless(&request->from.address); /* of no host */
    trp_err err =
        is_client ? trpi_peer_get(remote, &request->from.address, true, &peer)
                  : trpi_peer_get_caller(remote, &request->from.address, conn->share_key, &peer);
    if (err != TRP_OK) {
        return refuse_stranger(conn, err == TRP_ELIMIT ? "too many peers" : "out of memory");
    }
    trpi_deferred deferred = { 0 };
    trpi_assoc_event event = { .kind = TRPI_ASSOC_REQUEST, .uid = request->from.uid };
    pthread_mutex_lock(&peer->lock);
    bool is_other = is_client && trpi_client_claims(peer, conn, false) != TRP_OK;
    if (is_other || !bind_to_peer(conn, peer)) {
        pthread_mutex_unlock(&peer->lock);
        trpi_peer_unpin(peer);
        return refuse_stranger(conn, is_other ? "your name is in use by another client" : TOO_MANY);
    }
    if (is_client) {
        conn->of_client = true;
        trpi_clients_came(remote);
    }
    trpi_peer_unpin(peer); /* its connection has pinned it */
    trpi_evicted_bar(peer, conn->uid);
    event.want = trpi_peer_may_dial(peer);
    if (!event.want || !trpi_assoc_is_claimant(&peer->assoc, conn->uid)) {
        handshake_agree(conn, request);
    }
    bool rival = trpi_assoc_is_rival(&peer->assoc, conn->uid);
    (void)trpi_peer_step(peer, conn, &event, "peer called", &deferred);
    trpi_peer_pump(peer, &deferred);
    trpi_peer_unlock(peer, &deferred);
    if (rival) {
        refusal_log(conn, TRPI_RIVAL_REASON);
    }
    return TRP_OK;
}

static trp_err
on_answer(trpi_conn *conn, const trpi_frame *frame, const trpi_handshake *answer)
{
    trpi_peer *peer = conn->peer;
    bool response = frame->kind == TRPI_FRAME_HANDSHAKE_RESPONSE;
    if (!conn->dialled || conn->ready || conn->lane != TRPI_LANE_CONTROL) {
        return conn_fail(conn, TRP_EPROTO, "handshake answer out of place");
    }
    if (response && (answer->from.uid != conn->uid ||
                     !trpi_address_equal(&answer->from.address, trpi_peer_address(peer)))) {
        return conn_fail(conn, TRP_EPROTO, "answered by somebody else");
    }
    trpi_deferred deferred = { 0 };
    trpi_assoc_event event = { .kind = response ? TRPI_ASSOC_RESPONSE : TRPI_ASSOC_REFUSED,
                               .uid = conn->uid,
                               .random = trpi_world_random(conn->remote->world) };
    pthread_mutex_lock(&peer->lock);
    if (response) {
        trpi_evicted_bar(peer, conn->uid);
        handshake_agree(conn, answer);
    } else {
        trpi_handshake_refused(peer, answer);
    }
    trpi_lane_dial_ended(&peer->lanes[TRPI_LANE_CONTROL].conns);
    (void)trpi_peer_step(peer, conn, &event, response ? "answered" : answer->reason, &deferred);
    if (!response) {
        trpi_barred(peer, &deferred);
    }
    trpi_peer_pump(peer, &deferred);
    trpi_peer_unlock(peer, &deferred);
    return TRP_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

static trp_err
on_frame(void *arg, const trpi_frame *frame)
{
    trpi_conn *conn = arg;
    conn->frames++;
    if (frame->kind > TRPI_FRAME_HANDSHAKE_REFUSAL) {
        /* ready is written by this very callback's thread of events, or never after. */
        return conn->ready ? trpi_inbound_frame(conn, frame)
                           : conn_fail(conn, TRP_EPROTO, "frame before the handshake");
    }
    if (conn->close_when_sent) {
        return TRP_OK; /* refused already */
    }
    trpi_handshake handshake;
    if (trpi_handshake_decode(frame, &handshake) != TRP_OK) {
        return conn_fail(conn, TRP_EPROTO, "handshake cannot be read");
    }
    for (char *c = handshake.reason; *c != '\0'; c++) {
        *c = *c >= ' ' && *c < 127 && *c != '"' ? *c : '?'; /* it goes into our log */
    }
    return frame->kind == TRPI_FRAME_HANDSHAKE_REQUEST ? on_request(conn, &handshake)
                                                       : on_answer(conn, frame, &handshake);
}

static void
report_failure(trpi_conn *conn, trp_err err)
{
    trpi_remote *remote = conn->remote;
    uint32_t kind = TRPI_LOG_LIMIT_GARBAGE;
    _Atomic uint64_t *counter = &remote->stats.garbage;
    const char *what = conn->failure[0] != '\0' ? conn->failure : "not this protocol";
    if (err == TRP_EVERSION) {
        kind = TRPI_LOG_LIMIT_VERSION;
        counter = &remote->stats.wrong_version;
    } else if (err == TRP_EMSGSIZE) {
        kind = TRPI_LOG_LIMIT_OVERSIZE;
        counter = &remote->stats.oversize;
        what = conn->ready ? "frame longer than maximum-frame-size"
                           : "frame longer than a handshake may be";
    } else if (err == TRP_ECONN) {
        /* a race of handshakes: the dialler tries again */
        counter = &remote->stats.handshakes_failed;
    } else if (err == TRP_ELIMIT) {
        kind = TRPI_LOG_LIMIT_REFUSED;
        counter =
            conn->ready ? &remote->stats.unfinished_refused : &remote->stats.handshakes_failed;
    } else if (err == TRP_ENOMEM) {
        what = "out of memory";
    } else if (err == TRP_EPERM) {
        trpi_refused(remote, conn->peer_text, TRPI_REFUSED_WRONG_NAME, what);
        return;
    }
    trpi_count(counter, 1);
    uint32_t suppressed = 0;
    if (trpi_log_limit_allows(remote, kind, &suppressed)) {
        trpi_log(remote->system, err == TRP_ECONN ? TRP_LOG_DEBUG : TRP_LOG_WARNING, "remote",
                 "connection dropped peer=%s reason=\"%s\" suppressed=%u", conn->peer_text, what,
                 suppressed);
    }
}

/* Check bytes before the handshake: few are allowed, and the first may show another protocol. */
static trp_err
while_unknown(trpi_conn *conn, trp_err err, const uint8_t *bytes, size_t count)
{
    const char *detail = NULL;
    trpi_refusal why = TRPI_REFUSED_NONE;
    if (conn->early_bytes == 0) { /* also when shorter than a preamble, as a TLS alert is */
        why = trpi_refusal_of_bytes(bytes, count, &detail);
    }
    conn->early_bytes += count;
    if (err == TRP_OK && conn->early_bytes > conn->remote->options.handshake_bytes_max) {
        why = TRPI_REFUSED_BYTES;
        detail = "more than remote.handshake-bytes-max";
    }
    if (why == TRPI_REFUSED_NONE) {
        return err;
    }
    (void)snprintf(conn->failure, sizeof conn->failure, "%s: %s", trpi_refusal_text(why), detail);
    trpi_refused(conn->remote, conn->peer_text, why, detail);
    /* A peer that shows a cookie waits for ours: any other answer says that there is none. */
    bool tell = why == TRPI_REFUSED_COOKIE && !conn->dialled;
    return tell && refuse_stranger(conn, conn->failure) == TRP_OK ? TRP_OK : TRP_ECANCELED;
}

/* Bytes were read: decode them, and push the messages in them as one batch. */
static void
bytes_take(trpi_conn *conn, const uint8_t *bytes, size_t count)
{
    if (conn->decoder.failed != TRP_OK) {
        return; /* closing: the rest is not read */
    }
    if (conn->lane == TRPI_LANE_CONTROL) {
        trpi_unfinished_before(conn);
    }
    trp_err err = trpi_frame_decoder_feed(&conn->decoder, bytes, count);
    if (trpi_unfinished_is_any(conn)) {
        trpi_unfinished_after(conn);
    }
    trpi_inbound_batch_end(conn);
    if (!conn->ready) {
        err = while_unknown(conn, err, bytes, count);
    }
    if (conn->peer != NULL) {
        trpi_traffic_bytes_in_add(&conn->peer->traffic, count);
        atomic_fetch_add_explicit(&conn->uses, 1, memory_order_relaxed);
    }
    if (err != TRP_OK) {
        if (err != TRP_ECANCELED) { /* told already */
            report_failure(conn, err);
        }
        pthread_mutex_lock(trpi_conn_lock_of(conn));
        trpi_conn_close(conn);
        pthread_mutex_unlock(trpi_conn_lock_of(conn));
    }
}

static void
control_bytes(trpi_conn *conn, const uint8_t *bytes, size_t count, uint64_t arrived_ns)
{
    trpi_inbound_arrived(conn, arrived_ns);
    bytes_take(conn, bytes, count);
}

/* ---- written --------------------------------------------------------------------------------- */

static void
written_take(trpi_conn *conn)
{
    uint32_t writes_left = TRPI_WRITES_AT_ONCE;
    if (!trpi_conn_write_rest(conn, &writes_left)) {
        return;
    }
    if (conn->peer != NULL) {
        trpi_peer_written(conn->peer, conn, &writes_left);
    } else {
        trpi_conn_write_alone_over(conn, &writes_left);
    }
}

static void
on_written(void *user, trpi_link *link)
{
    trpi_conn *conn = user;
    (void)link;
    if (conn->control != NULL) {
        trpi_control_written(conn->control);
    } else {
        written_take(conn);
    }
}

static void
on_nudged(void *user, trpi_link *link)
{
    const trpi_conn *conn = user;
    (void)link;
    trpi_control_nudged(conn->control);
}

static void
on_refused(void *user, trpi_link *link, trpi_refusal why, const char *detail)
{
    trpi_conn *conn = user;
    (void)link;
    trpi_refused(conn->remote, conn->peer_text, why, detail);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void
remove_from_peer(trpi_peer *peer, trpi_conn *conn)
{
    for (trpi_conn **at = &peer->conns; *at != NULL; at = &(*at)->peer_next) {
        if (*at == conn) {
            *at = conn->peer_next;
            peer->conns_count--;
            return;
        }
    }
}

/* A dial that nobody has answered does not count for an association that is active by another
 * connection: its users would not be told that messages were lost with that one. */
static bool
has_control(const trpi_peer *peer)
{
    bool active = trpi_peer_state(peer) == TRPI_ASSOC_ACTIVE;
    for (const trpi_conn *conn = peer->conns; conn != NULL; conn = conn->peer_next) {
        if (conn->lane == TRPI_LANE_CONTROL && !conn->closing &&
            (!active || conn->ready || conn->reached)) {
            return true;
        }
    }
    return false;
}

static void
peer_lost(trpi_conn *conn, const char *reason)
{
    trpi_peer *peer = conn->peer;
    trpi_deferred deferred = { 0 };
    trpi_lane_state *lane = &peer->lanes[conn->lane];
    pthread_mutex_lock(&peer->lock);
    remove_from_peer(peer, conn);
    conn->closing = true;
    if (trpi_lane_out(lane) == conn) {
        trpi_peer_lane_disconnect(peer, conn->lane);
    }
    if (trpi_lane_closing(lane) == conn) {
        trpi_peer_lane_closed(peer, conn->lane);
    }
    trpi_lane_unsettle(&peer->lane_marks, conn->lane);
    trpi_conn_write_settle(conn);
    bool undialled = trpi_lane_dialling(lane) == conn && conn->lane != TRPI_LANE_CONTROL;
    if (undialled) {
        trpi_lane_undialled(peer, conn, reason);
    }
    if (trpi_lane_dialling(lane) == conn) {
        uint32_t backoff_ms = trpi_assoc_backoff_ms(
            &trpi_peer_remote(peer)->assoc_config, trpi_lane_dial_attempts(lane) + 1,
            trpi_world_random(trpi_peer_remote(peer)->world));
        trpi_lane_dial_failed(&lane->conns,
                              trpi_remote_now_ms(trpi_peer_remote(peer)) + backoff_ms);
    }
    if (conn->lane == TRPI_LANE_CONTROL && !has_control(peer)) {
        trpi_assoc_event event = { .kind = TRPI_ASSOC_LOST,
                                   .random = trpi_world_random(trpi_peer_remote(peer)->world) };
        (void)trpi_peer_step(peer, conn, &event, reason, &deferred);
    }
    trpi_peer_pump(peer, &deferred);
    trpi_peer_unlock(peer, &deferred);
    if (undialled) {
        trpi_lane_undialled_log(conn->remote, conn, reason);
    }
}

static void
closed_take(trpi_conn *conn, const char *reason)
{
    trpi_remote *remote = conn->remote;
    pthread_mutex_lock(&remote->lock);
    trpi_conns_remove(conn);
    trpi_pending_remove(conn);
    pthread_mutex_unlock(&remote->lock);
    if (conn->of_client) {
        trpi_clients_went(remote);
    }
    if (conn->peer != NULL) {
        peer_lost(conn, conn->failure[0] != '\0' ? conn->failure : reason);
    }
    trpi_conn_unref(conn);
}

/* ---- on the thread for control lanes --------------------------------------------------------- */

static const trpi_control_events control_events = { control_bytes, written_take, closed_take };

/* Is nothing of it being sent, or waiting to be, and no frame half read? By peer->lock. */
static bool
is_between_frames(const trpi_conn *conn)
{
    return conn->ready && !conn->closing && !conn->write.busy && conn->write.preamble_sent &&
           conn->write.head.count == 0 && conn->decoder.failed == TRP_OK &&
           conn->decoder.carry_bytes == 0;
}

/* Hand the connection over, if it is time and the driver can; else after the next bytes. */
static void
control_begin(trpi_conn *conn)
{
    trpi_peer *peer = conn->peer;
    const trpi_transport_ops *ops = conn->remote->ops;
    const trpi_control_of of = { conn->remote, peer, conn->uid, conn->link, conn };
    conn->stays = ops->hand_over == NULL || trpi_world_is_driven(conn->remote->world) ||
                  trpi_peer_is_client(peer); /* clients-C4 */
    if (conn->stays) {
        return;
    }
    pthread_mutex_lock(&peer->lock);
    bool now = is_between_frames(conn);
    pthread_mutex_unlock(&peer->lock);
    trpi_control *handed = now ? trpi_control_new(&of, &control_events) : NULL;
    if (handed == NULL) {
        return;
    }
    pthread_mutex_lock(&peer->lock);
    now = is_between_frames(conn);
    bool carries = trpi_lane_out(&peer->lanes[conn->lane]) == conn;
    if (now && carries) {
        trpi_control_carry(handed);
    }
    conn->stays = now && !ops->hand_over(conn->link);
    now = now && !conn->stays;
    if (now) { /* it is NULL otherwise, and who writes reads it without the lock */
        conn->control = handed;
    }
    pthread_mutex_unlock(&peer->lock);
    if (!now) {
        trpi_control_drop(handed);
    } else if (carries) {
        ops->nudge(conn->link);
    }
}

static void
on_bytes(void *user, trpi_link *link, const uint8_t *bytes, size_t count)
{
    trpi_conn *conn = user;
    (void)link;
    if (conn->control != NULL) {
        trpi_control_bytes(conn->control, bytes, count);
        return;
    }
    if (conn->lane == TRPI_LANE_CONTROL) {
        control_bytes(conn, bytes, count, trpi_world_mono_ns(conn->remote->world));
    } else {
        bytes_take(conn, bytes, count);
    }
    if (conn->lane == TRPI_LANE_CONTROL && conn->peer != NULL && !conn->stays) {
        control_begin(conn);
    }
}

static bool
on_paused(void *user, trpi_link *link)
{
    const trpi_conn *conn = user;
    (void)link;
    return trpi_control_paused(conn->control); /* only that one pauses */
}

static void
on_closed(void *user, trpi_link *link, trp_err err, const char *reason)
{
    trpi_conn *conn = user;
    (void)link;
    (void)err;
    if (conn->control != NULL) {
        trpi_control_closed(conn->control, reason);
    } else {
        closed_take(conn, reason);
    }
}

const trpi_transport_events trpi_conn_events = {
    .accepted = on_accepted,
    .starved = trpi_pending_starved,
    .connected = on_connected,
    .bytes = on_bytes,
    .paused = on_paused,
    .written = on_written,
    .nudged = on_nudged,
    .refused = on_refused,
    .closed = on_closed,
};

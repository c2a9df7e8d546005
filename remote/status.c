/* status.c - what remoting knows of its peers: the functions of remote.h that change nothing.
 *
 * Tests.  tests/unit/remote/remote_test.c, reach_test.c, secure_test.c
 */
#include "remote/remote.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "remote/association/conn.h"
#include "remote/association/hold.h"
#include "remote/association/refusal.h"

/* ---- peers and counters ---------------------------------------------------------------------- */

/* Return the state of a lane; NULL: it has never been used. */
static const char *
lane_state_name(const trpi_lane_state *lane)
{
    return trpi_lane_out(lane) != NULL                              ? "open"
           : trpi_lane_closing(lane) != NULL                        ? "closing"
           : trpi_lane_dialling(lane) != NULL                       ? "dialling"
           : !trpi_lane_is_empty(lane) || trpi_lane_epoch(lane) > 0 ? "closed"
                                                                    : NULL;
}

static void
peer_info(trpi_peer *peer, uint64_t now_ms, trpi_peer_info *info)
{
    memset(info, 0, sizeof *info);
    pthread_mutex_lock(&peer->lock);
    info->id.address = *trpi_peer_address(peer);
    info->id.uid = trpi_peer_uid(peer);
    info->state = trpi_assoc_state_name(trpi_peer_state(peer));
    memcpy(info->reason, trpi_peer_reason(peer), sizeof info->reason);
    uint64_t next_ms = trpi_peer_next_ms(peer);
    info->next_ms = next_ms > now_ms ? next_ms - now_ms : 0;
    info->round_trip_us = trpi_activity_round_trip_us(&peer->activity);
    info->minor = trpi_agreed_minor(&peer->agreed);
    if (trpi_peer_is_active(peer)) {
        (void)trpi_lane_problem(peer, now_ms, info->problem, sizeof info->problem);
    }
    info->slow_here = trpi_peer_receivers_limited(peer);
    trpi_holds_info(peer, info);
    for (int lane = 0; lane < TRPI_LANE_COUNT; lane++) {
        info->lanes[lane].state =
            trpi_lane_is_renewing(peer, lane) ? "renewing" : lane_state_name(&peer->lanes[lane]);
        info->lanes[lane].waiting_bytes = trpi_lane_bytes(&peer->lanes[lane]);
    }
    pthread_mutex_unlock(&peer->lock);
    info->bytes_in = trpi_traffic_bytes_in(&peer->traffic);
    info->bytes_out = trpi_traffic_bytes_out(&peer->traffic);
    info->messages_in = trpi_traffic_messages_in(&peer->traffic);
    info->messages_out = trpi_traffic_messages_out(&peer->traffic);
    info->dropped = trpi_traffic_dropped(&peer->traffic);
}

static int
info_compare(const void *a, const void *b)
{
    return trpi_address_compare(&((const trpi_peer_info *)a)->id.address,
                                &((const trpi_peer_info *)b)->id.address);
}

void
trpi_remote_peers(trpi_remote *remote, trpi_peer_info *peers, size_t max, size_t *ret_count)
{
    size_t count = 0;
    uint64_t now_ms = trpi_remote_now_ms(remote);
    for (trpi_peer *peer = NULL; (peer = trpi_peer_next(remote, peer)) != NULL; count++) {
        if (count < max) {
            peer_info(peer, now_ms, &peers[count]);
        }
    }
    qsort(peers, count < max ? count : max, sizeof *peers, info_compare);
    *ret_count = count;
}

static uint64_t
resent_count(trpi_remote *remote)
{
    uint64_t sum = 0;
    for (trpi_peer *peer = NULL; (peer = trpi_peer_next(remote, peer)) != NULL;) {
        pthread_mutex_lock(&peer->lock);
        sum += trpi_redelivery_resent(&peer->redelivery);
        pthread_mutex_unlock(&peer->lock);
    }
    pthread_mutex_lock(&remote->lock);
    sum += remote->table.resent_before;
    pthread_mutex_unlock(&remote->lock);
    return sum;
}

void
trpi_remote_stats_get(trpi_remote *remote, trpi_remote_stats *ret_stats)
{
#define COPY(name) ret_stats->name = atomic_load_explicit(&remote->stats.name, memory_order_relaxed)
    COPY(accepted);
    COPY(handshakes_failed);
    COPY(garbage);
    COPY(oversize);
    COPY(wrong_version);
    COPY(handshake_timeouts);
    COPY(frames_in);
    COPY(frames_out);
    COPY(decode_errors);
    COPY(quarantined);
    COPY(untrusted_dropped);
    COPY(deployments_refused);
    COPY(gave_way);
    COPY(unfinished_refused);
    COPY(unfinished_late);
    COPY(frames_skipped);
    COPY(frames_stale);
#undef COPY
    for (int i = 0; i < TRPI_REFUSAL_COUNT; i++) {
        ret_stats->refused[i] =
            atomic_load_explicit(&remote->stats.refused[i], memory_order_relaxed);
    }
    ret_stats->redelivered = resent_count(remote);
    uint64_t now_ms = trpi_remote_now_ms(remote);
    pthread_mutex_lock(&remote->lock);
    ret_stats->pending = remote->pending.count;
    ret_stats->pending_max = remote->options.pending_handshakes_max;
    ret_stats->starved = remote->pending.starved;
    ret_stats->starved_ago_ms =
        remote->pending.starved_ms != 0 ? now_ms - remote->pending.starved_ms : UINT64_MAX;
    ret_stats->displaced_ago_ms =
        remote->pending.displaced_ms != 0 ? now_ms - remote->pending.displaced_ms : UINT64_MAX;
    pthread_mutex_unlock(&remote->lock);
}

/* ---- why a peer is not connected ------------------------------------------------------------- */

bool
trpi_remote_problem(trpi_remote *remote, const trpi_address *address, char *ret_text, size_t bytes)
{
    trpi_peer *peer = NULL;
    ret_text[0] = '\0';
    if (trpi_peer_get(remote, address, false, &peer) != TRP_OK) {
        return false;
    }
    pthread_mutex_lock(&peer->lock);
    bool active = trpi_peer_is_active(peer);
    bool is = active ? trpi_lane_problem(peer, trpi_remote_now_ms(remote), ret_text, bytes)
                     : trpi_peer_state(peer) != TRPI_ASSOC_IDLE &&
                           trpi_peer_reason(peer)[0] != '\0' && trpi_peer_attempts(peer) > 0;
    if (is && !active) {
        (void)snprintf(ret_text, bytes, "no association with it: %s", trpi_peer_reason(peer));
    }
    pthread_mutex_unlock(&peer->lock);
    trpi_peer_unpin(peer);
    return is;
}

trpi_takes
trpi_remote_takes_marks(trpi_remote *remote, const trpi_node_id *id)
{
    trpi_peer *peer = NULL;
    if (trpi_peer_get(remote, &id->address, false, &peer) != TRP_OK) {
        return TRPI_TAKES_UNKNOWN;
    }
    pthread_mutex_lock(&peer->lock);
    bool met = trpi_peer_uid(peer) == id->uid && trpi_agreed_minor(&peer->agreed) != 0;
    bool takes = (trpi_agreed_features(&peer->agreed) & TRPI_FEATURE_MARKS) != 0;
    pthread_mutex_unlock(&peer->lock);
    trpi_peer_unpin(peer);
    return !met ? TRPI_TAKES_UNKNOWN : takes ? TRPI_TAKES_YES : TRPI_TAKES_NO;
}

bool
trpi_remote_offers_marks(const trpi_remote *remote)
{
    return (trpi_features_own(remote) & TRPI_FEATURE_MARKS) != 0;
}

bool
trpi_remote_foreign_heard(trpi_remote *remote, const trpi_address *address, uint64_t *ret_uid)
{
    trpi_peer *peer = NULL;
    if (trpi_peer_get(remote, address, false, &peer) != TRP_OK) {
        return false;
    }
    pthread_mutex_lock(&peer->lock);
    *ret_uid = trpi_refusal_foreign_take(&peer->refusal);
    pthread_mutex_unlock(&peer->lock);
    trpi_peer_unpin(peer);
    return *ret_uid != 0;
}

uint64_t
trpi_remote_barred_count(trpi_remote *remote)
{
    return atomic_load_explicit(&remote->stats.barred, memory_order_relaxed);
}

bool
trpi_remote_is_barred_by(trpi_remote *remote, const trpi_node_id *id)
{
    trpi_peer *peer = NULL;
    if (trpi_peer_get(remote, &id->address, false, &peer) != TRP_OK) {
        return false;
    }
    pthread_mutex_lock(&peer->lock);
    uint64_t by = trpi_refusal_barred_by(&peer->refusal);
    bool barred = by != 0 && (by == id->uid || id->uid == 0) && !trpi_peer_is_active(peer);
    pthread_mutex_unlock(&peer->lock);
    trpi_peer_unpin(peer);
    return barred;
}

/* Find the refusal in a reason as secure.c and conn.c write it: word, colon, detail. NONE: no
 * refusal. */
static trpi_refusal
refusal_of_reason(const char *reason)
{
    for (int why = TRPI_REFUSED_NONE + 1; why < TRPI_REFUSAL_COUNT; why++) {
        const char *word = trpi_refusal_text((trpi_refusal)why);
        size_t bytes = strlen(word);
        if (strncmp(reason, word, bytes) == 0 && reason[bytes] == ':') {
            return (trpi_refusal)why;
        }
    }
    return TRPI_REFUSED_NONE;
}

bool
trpi_remote_problem_is_refusal(const char *text)
{
    const char *reason = strstr(text, ": "); /* behind what waits */
    trpi_refusal why = reason != NULL ? refusal_of_reason(reason + 2) : TRPI_REFUSED_NONE;
    return why != TRPI_REFUSED_NONE && why < TRPI_REFUSED_BYTES;
}

bool
trpi_remote_is_refused(trpi_remote *remote, const trpi_address *address, uint32_t *ret_attempts,
                       char *ret_reason, size_t reason_bytes)
{
    trpi_peer *peer = NULL;
    *ret_attempts = 0;
    if (trpi_peer_get(remote, address, false, &peer) != TRP_OK) {
        return false;
    }
    pthread_mutex_lock(&peer->lock);
    trpi_refusal why = refusal_of_reason(trpi_peer_reason(peer));
    bool refused = !trpi_peer_is_active(peer) && why != TRPI_REFUSED_NONE &&
                   why < TRPI_REFUSED_BYTES; /* limits come last: a later attempt may succeed */
    *ret_attempts = trpi_peer_attempts(peer);
    (void)snprintf(ret_reason, reason_bytes, "%s", trpi_peer_reason(peer));
    pthread_mutex_unlock(&peer->lock);
    trpi_peer_unpin(peer);
    return refused;
}

bool
trpi_remote_is_incompatible(trpi_remote *remote, const trpi_address *address, char *ret_why,
                            size_t why_bytes)
{
    static const char called[] = "you called ";
    trpi_peer *peer = NULL;
    if (trpi_peer_get(remote, address, false, &peer) != TRP_OK) {
        return false;
    }
    pthread_mutex_lock(&peer->lock);
    trpi_refusal why = refusal_of_reason(trpi_peer_reason(peer));
    bool other = strncmp(trpi_peer_reason(peer), called, sizeof called - 1) == 0 &&
                 trpi_refusal_by(&peer->refusal)[0] != '\0' &&
                 strcmp(trpi_refusal_by(&peer->refusal), address->system) != 0;
    bool secret =
        why == TRPI_REFUSED_COOKIE ||
        (why == TRPI_REFUSED_BY_PEER && (strstr(trpi_peer_reason(peer), "secure-cookie") != NULL ||
                                         strstr(trpi_peer_reason(peer), "another cookie") != NULL));
    bool loopback = strcmp(trpi_peer_reason(peer), TRPI_LOOPBACK_REFUSAL) == 0;
    bool is = !trpi_peer_is_active(peer) && (other || secret || loopback);
    if (is && loopback) {
        (void)snprintf(
            ret_why, why_bytes, "%s",
            "remote.hostname: this node advertises a loopback address; set --host to the "
            "address by which the other nodes reach it");
    } else if (is && other) {
        (void)snprintf(ret_why, why_bytes, "system: %.60s here, %.60s at %s:%u", address->system,
                       trpi_refusal_by(&peer->refusal), address->host, address->port);
    } else if (is && remote->cookie_file[0] != '\0') {
        (void)snprintf(ret_why, why_bytes,
                       "remote.cookie: %s:%u has another cookie than %s: nodes of two users need "
                       "remote.require-cookie",
                       address->host, address->port, remote->cookie_file);
    } else if (is) {
        (void)snprintf(ret_why, why_bytes, "remote.secure-cookie: %s",
                       strchr(trpi_peer_reason(peer), ':') + 2);
    }
    pthread_mutex_unlock(&peer->lock);
    trpi_peer_unpin(peer);
    return is;
}

bool
trpi_remote_has_rival(trpi_remote *remote, const trpi_address *address)
{
    trpi_peer *peer = NULL;
    if (trpi_peer_get(remote, address, false, &peer) != TRP_OK) {
        return false;
    }
    pthread_mutex_lock(&peer->lock);
    bool has = !trpi_peer_is_active(peer) &&
               (strstr(trpi_peer_reason(peer), TRPI_RIVAL_REASON) != NULL ||
                strstr(trpi_peer_reason(peer), TRPI_CLAIMANT_REASON) != NULL);
    pthread_mutex_unlock(&peer->lock);
    trpi_peer_unpin(peer);
    return has;
}

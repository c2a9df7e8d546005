/* faults.c - the fault rules, and the peers of connections. The transport itself: faults_link.c.
 *
 * Locks.   faults->lock, a leaf.
 * Tests.   tests/unit/remote/faults_test.c
 * Sources. MNT-02, -07
 */
#include "remote/faults/faults_inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/mutex.h"
#include "remote/wire/codec.h"
#include "remote/nng/link_nng.h"

enum { KNOWN_MAX = 1024 }; /* remembered pairs of uid and address; the oldest is replaced */

typedef struct known_peer {
    uint64_t uid;
    char peer[TRPI_FAULT_PEER_BYTES];
} known_peer;

struct trpi_faults {
    const trpi_transport_ops *inner;
    void *inner_arg;
    trpi_transport_ops ops;
    pthread_mutex_t lock;      /* guards all below */
    trpi_transport *transport; /* NULL before open and after free */
    uint32_t rules_count;
    uint32_t known_count, known_next;
    trpi_faults_stats stats;
    trpi_fault_entry rules[TRPI_FAULT_RULES_MAX];
    known_peer known[KNOWN_MAX];
};

/* ---- peers of connections -------------------------------------------------------------------- */

void
trpi_fault_peer_format(char out[TRPI_FAULT_PEER_BYTES], const char *host, uint16_t port)
{
    (void)snprintf(out, TRPI_FAULT_PEER_BYTES, "%s:%u", host, (unsigned)port);
}

static void
known_add(trpi_faults *faults, uint64_t uid, const char *peer)
{
    known_peer *at = NULL;

    for (uint32_t i = 0; i < faults->known_count && at == NULL; i++) {
        at = faults->known[i].uid == uid ? &faults->known[i] : NULL;
    }
    if (at == NULL) {
        at = &faults->known[faults->known_next];
        faults->known_next = (faults->known_next + 1) % KNOWN_MAX;
        faults->known_count += faults->known_count < KNOWN_MAX;
    }
    at->uid = uid;
    (void)snprintf(at->peer, sizeof at->peer, "%s", peer);
}

/* Learn the peer of a connection from a unit that it has sent. The caller holds faults->lock. */
static void
peer_learn(trpi_faults *faults, char peer[TRPI_FAULT_PEER_BYTES], enum trpi_fault_unit unit,
           const uint8_t *bytes)
{
    trpi_preamble preamble;
    trpi_handshake handshake;
    trpi_frame frame;

    if (unit == TRPI_FAULT_PREAMBLE && peer[0] == '\0' &&
        trpi_preamble_decode(bytes, &preamble) == TRP_OK) {
        for (uint32_t i = 0; i < faults->known_count; i++) {
            if (faults->known[i].uid == preamble.uid) {
                (void)snprintf(peer, TRPI_FAULT_PEER_BYTES, "%s", faults->known[i].peer);
            }
        }
    }
    if (unit != TRPI_FAULT_FRAME) {
        return;
    }
    trpi_frame_header_decode(bytes, &frame);
    if ((frame.kind == TRPI_FRAME_HANDSHAKE_REQUEST ||
         frame.kind == TRPI_FRAME_HANDSHAKE_RESPONSE) &&
        trpi_handshake_decode(&frame, &handshake) == TRP_OK) {
        trpi_fault_peer_format(peer, handshake.from.address.host, handshake.from.address.port);
        known_add(faults, handshake.from.uid, peer);
    }
}

/* ---- rules ----------------------------------------------------------------------------------- */

static trpi_fault_entry *
rule_find(trpi_faults *faults, const char *peer)
{
    for (uint32_t i = 0; i < faults->rules_count; i++) {
        if (strcmp(faults->rules[i].peer, peer) == 0) {
            return &faults->rules[i];
        }
    }
    return NULL;
}

static const trpi_fault_entry *
rule_in_force(trpi_faults *faults, const char *peer)
{
    const trpi_fault_entry *rule = peer[0] != '\0' ? rule_find(faults, peer) : NULL;

    return rule != NULL ? rule : rule_find(faults, TRPI_FAULT_PEER_ALL);
}

bool
trpi_faults_find(trpi_faults *faults, const char *peer, trpi_fault_entry *ret_entry)
{
    const trpi_fault_entry *rule;

    pthread_mutex_lock(&faults->lock);
    rule = rule_in_force(faults, peer);
    if (rule != NULL) {
        *ret_entry = *rule;
    }
    pthread_mutex_unlock(&faults->lock);
    return rule != NULL;
}

static trpi_fault_rule
rule_for(trpi_faults *faults, const char *peer, bool out)
{
    static const trpi_fault_rule none = TRPI_FAULT_RULE_NONE;
    const trpi_fault_entry *rule = rule_in_force(faults, peer);

    return rule == NULL ? none : out ? rule->send : rule->receive;
}

trp_err
trpi_faults_set(trpi_faults *faults, const char *peer, enum trpi_fault_direction direction,
                const trpi_fault_rule *given)
{
    static const trpi_fault_rule none = TRPI_FAULT_RULE_NONE;
    trpi_fault_entry *rule;
    trp_err err = TRP_OK;

    if (!trpi_fault_rule_is_valid(given) || strlen(peer) >= TRPI_FAULT_PEER_BYTES) {
        return TRP_EINVAL;
    }
    pthread_mutex_lock(&faults->lock);
    rule = rule_find(faults, peer);
    if (rule == NULL && faults->rules_count == TRPI_FAULT_RULES_MAX) {
        err = TRP_ELIMIT;
    } else if (rule == NULL) {
        rule = &faults->rules[faults->rules_count++];
        (void)snprintf(rule->peer, sizeof rule->peer, "%s", peer);
        rule->send = rule->receive = none;
    }
    if (err == TRP_OK && (direction & TRPI_FAULT_SEND) != 0) {
        rule->send = *given;
    }
    if (err == TRP_OK && (direction & TRPI_FAULT_RECEIVE) != 0) {
        rule->receive = *given;
    }
    if (err == TRP_OK && trpi_fault_rule_is_none(&rule->send) &&
        trpi_fault_rule_is_none(&rule->receive)) {
        *rule = faults->rules[--faults->rules_count];
    }
    pthread_mutex_unlock(&faults->lock);
    return err;
}

static int
entry_compare(const void *a, const void *b)
{
    return strcmp(((const trpi_fault_entry *)a)->peer, ((const trpi_fault_entry *)b)->peer);
}

uint32_t
trpi_faults_list(trpi_faults *faults, trpi_fault_entry *entries, uint32_t max)
{
    pthread_mutex_lock(&faults->lock);
    uint32_t count = faults->rules_count;
    qsort(faults->rules, count, sizeof faults->rules[0], entry_compare); /* any order will do */
    memcpy(entries, faults->rules, (count < max ? count : max) * sizeof *entries);
    pthread_mutex_unlock(&faults->lock);
    return count;
}

/* Return whether a unit must not be lost, because the receiver needs it to read later frames. */
static bool
is_structure(enum trpi_fault_unit unit, const uint8_t *bytes)
{
    trpi_frame frame;

    if (unit != TRPI_FAULT_FRAME) {
        return true;
    }
    trpi_frame_header_decode(bytes, &frame);
    return frame.kind == TRPI_FRAME_LANE_OPEN || frame.kind == TRPI_FRAME_MANIFEST;
}

/* ---- for the transport ----------------------------------------------------------------------- */

trpi_fault_verdict
trpi_faults_judge(trpi_faults *faults, char peer[TRPI_FAULT_PEER_BYTES], bool out,
                  trpi_fault_shaper *shaper, uint64_t now_ns, enum trpi_fault_unit unit,
                  const uint8_t *bytes, size_t count, const uint64_t rolls[4])
{
    trpi_fault_verdict verdict;
    trpi_fault_rule rule;

    pthread_mutex_lock(&faults->lock);
    if (!out) {
        peer_learn(faults, peer, unit, bytes);
    }
    rule = rule_for(faults, peer, out);
    verdict =
        trpi_fault_shaper_judge(shaper, &rule, now_ns, count, is_structure(unit, bytes), rolls);
    faults->stats.passed += verdict.copies > 0;
    faults->stats.lost += verdict.copies == 0;
    faults->stats.repeated += verdict.copies > 1;
    faults->stats.delayed += verdict.copies > 0 && verdict.due_ns > now_ns;
    pthread_mutex_unlock(&faults->lock);
    return verdict;
}

void
trpi_faults_cut(trpi_faults *faults, uint64_t bytes)
{
    pthread_mutex_lock(&faults->lock);
    faults->stats.cut_bytes += bytes;
    pthread_mutex_unlock(&faults->lock);
}

const trpi_transport_ops *
trpi_faults_inner(const trpi_faults *faults, void **ret_arg)
{
    *ret_arg = faults->inner_arg;
    return faults->inner;
}

void
trpi_faults_attach(trpi_faults *faults, trpi_transport *transport)
{
    pthread_mutex_lock(&faults->lock);
    faults->transport = transport;
    pthread_mutex_unlock(&faults->lock);
}

/* ---- life ------------------------------------------------------------------------------------ */

trp_err
trpi_faults_new(const trpi_transport_ops *inner, void *inner_arg, trpi_faults **ret_faults)
{
    trpi_faults *faults = trpi_alloc(sizeof *faults);

    if (faults == NULL) {
        return TRP_ENOMEM;
    }
    pthread_mutex_init(&faults->lock, NULL);
    faults->inner = inner != NULL ? inner : &trpi_link_nng_ops;
    faults->inner_arg = inner_arg;
    faults->ops = trpi_fault_link_ops;
    faults->ops.scheme = faults->inner->scheme; /* the wrapper is invisible */
    if (faults->inner->claims == NULL) {
        faults->ops.claims = NULL;
    }
    *ret_faults = faults;
    return TRP_OK;
}

void
trpi_faults_free(trpi_faults *faults)
{
    if (faults == NULL) {
        return;
    }
    trpi_assert(faults->transport == NULL);
    trpi_mutex_destroy(&faults->lock);
    trpi_free(faults);
}

const trpi_transport_ops *
trpi_faults_ops(const trpi_faults *faults)
{
    return &faults->ops;
}

uint32_t
trpi_faults_disconnect(trpi_faults *faults, const char *peer)
{
    trpi_transport *transport;

    pthread_mutex_lock(&faults->lock);
    transport = faults->transport;
    pthread_mutex_unlock(&faults->lock); /* a leaf: released before the transport's lock is taken */
    return transport == NULL ? 0 : trpi_fault_links_cut(transport, peer);
}

void
trpi_faults_stats_get(trpi_faults *faults, trpi_faults_stats *ret_stats)
{
    pthread_mutex_lock(&faults->lock);
    *ret_stats = faults->stats;
    pthread_mutex_unlock(&faults->lock);
}

trpi_transport *
trpi_faults_inner_transport(trpi_faults *faults)
{
    trpi_transport *inner;

    pthread_mutex_lock(&faults->lock);
    inner = faults->transport != NULL ? trpi_fault_transport_inner(faults->transport) : NULL;
    pthread_mutex_unlock(&faults->lock);
    return inner;
}

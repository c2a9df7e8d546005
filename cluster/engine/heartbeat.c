/* heartbeat.c - the ring of heartbeats.
 *
 * Why.     If each node monitored all others, the traffic of a large cluster would be nothing but
 *          heartbeats. On a ring each node has the same small number of observers. The order is a
 *          hash, so that the nodes of one machine, which fail together, are not each other's only
 *          observers.
 * Shape.   ring by hash:  self -> n1 -> n2 -> (n3 silent) -> n4 ...   A node monitors the next k
 *          members that are reachable, each silent one between them, and each other member that it
 *          holds silent. Members that miss an answer do not count: as many more, and some, are
 *          asked at once (heartbeat-H5).
 * Must hold.
 *   heartbeat-H1  k reachable neighbours are asked even if many next to each other crash at once.
 *   heartbeat-H2  A peer that never answered is judged, too: from expected-response-after on
 *       (FD-16).
 *   heartbeat-H3  A pause of this node does not count as silence of its peers, and for a while
 *       after it this node suspects more slowly.
 *   heartbeat-H4  An answer counts only from the incarnation that is asked.
 *   heartbeat-H5  Crashes at one time are found at one time, however many neighbours crash
 *       together: a peer that is late, long before it is silent, is passed on the ring, and the
 *       more peers are late, the more others are asked. A peer asked in this way is known to have
 *       been alive and is judged from its first request on, without heartbeat-H2's patience.
 *   heartbeat-H6  When this node stood still for longer than its detector's acceptable pause, it is
 *       *waking* until each peer has answered a request that was made since, or has been silent for
 *       that long again.
 *   heartbeat-H7  About a peer that is late, long before it is silent, its other observers on the
 *       ring are queried; they report when they heard it last. While one has, within
 *       REPORT_INTERVALS, the peer is not called silent, for at most twice the detector's
 *       acceptable pause. A crash is found as early as without: when the detector judges, no
 *       observer has heard the peer for longer than that.
 * Limits.  Requests in one tick: k + the silent ones; a late one brings up to WIDEN more, at most
 *          WIDEN_MAX at a time. Queries in one tick: QUERIES_MAX, OBSERVERS_QUERIED for each late
 *          peer.
 * Tests.   tests/unit/cluster/heartbeat_test.c, tests/sim/sim_test.c
 */
#include "cluster/engine/heartbeat_inner.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/wire.h"

#define KIND_REQUEST 1u
#define KIND_ANSWER 2u
#define KIND_QUERY 3u /* heartbeat-H7 */
#define KIND_REPORT 4u
#define CHECKS_PER_INTERVAL 4u
#define PAUSE_US 250000u       /* a tick later than this after its time: we were stopped */
#define STRAIN_US_MAX 5000000u /* at most so much is added to all peers' credit after a pause */
#define ROUND_TRIP_US_MAX 60000000u
#define LATE_INTERVALS 2u /* heartbeat-H5: since the last answer, so one has not come */
#define WIDEN 8u          /* heartbeat-H5: for each late peer, if none answers */
#define WIDEN_MAX 64u
/* heartbeat-H6: a detector that never judges must not hold a node */
#define WAKING_US_MAX 60000000u
#define REPORT_INTERVALS 2u /* heartbeat-H7: the age of a report at most */
#define OBSERVERS_QUERIED 3u

/* As phi.c reads it. */
static uint32_t
acceptable_pause_ms(const trpi_phi_options *phi)
{
    return phi->acceptable_pause_ms == 0                   ? TRPI_PHI_PAUSE_S_DEFAULT * 1000u
           : phi->acceptable_pause_ms == TRPI_PHI_NO_PAUSE ? 0
                                                           : phi->acceptable_pause_ms;
}

trp_err
trpi_heartbeat_new(trpi_ident *self, const trpi_heartbeat_options *options,
                   trpi_heartbeat **ret_heartbeat)
{
    trpi_assert_slow(self->key != 0);
    trpi_heartbeat_options checked = { .monitored_by_nr_of_members = 0 };
    if (options != NULL) {
        checked = *options;
    }
    if (checked.phi.heartbeat_interval_ms == 0) {
        checked.phi.heartbeat_interval_ms = TRPI_PHI_INTERVAL_S_DEFAULT * 1000u;
    }
    if (checked.expected_response_after_ms == 0) {
        checked.expected_response_after_ms = TRPI_HEARTBEAT_EXPECTED_S_DEFAULT * 1000u;
    }
    if (checked.monitored_by_nr_of_members == 0) {
        checked.monitored_by_nr_of_members = TRPI_HEARTBEAT_MONITORS_DEFAULT;
    }
    trpi_detector probe = { .kind = NULL };
    if (trpi_detector_init(&probe, checked.detector, &checked.phi) != TRP_OK) {
        return TRP_EINVAL;
    }
    trpi_detector_fini(&probe);
    trpi_heartbeat *hb = trpi_alloc(sizeof *hb);
    if (hb == NULL) {
        return TRP_ENOMEM;
    }
    hb->options = checked;
    hb->pause_us = (uint64_t)acceptable_pause_ms(&checked.phi) * 1000;
    hb->self = trpi_ident_ref(self);
    hb->ask_us = hb->check_us = NEVER;
    *ret_heartbeat = hb;
    trpi_assert_slow(hb->peers_count == 0 && hb->options.monitored_by_nr_of_members > 0);
    return TRP_OK;
}

static void
peers_free(struct peer *peers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        trpi_detector_fini(&peers[i].detector);
        trpi_ident_unref(peers[i].ident);
    }
    trpi_free(peers);
}

void
trpi_heartbeat_free(trpi_heartbeat *hb)
{
    if (hb == NULL) {
        return;
    }
    peers_free(hb->peers, hb->peers_count);
    trpi_free(hb->targets);
    trpi_free(hb->unreachable);
    trpi_gossip_unref(hb->view);
    trpi_ident_unref(hb->self);
    trpi_free(hb);
}

/* ---- which peers to ask ---------------------------------------------------------------------- */

static int
order_peers(const void *a, const void *b)
{
    uint64_t x = ((const struct peer *)a)->ident->key;
    uint64_t y = ((const struct peer *)b)->ident->key;
    return x < y ? -1 : x > y;
}

static struct peer *
find_peer(const trpi_heartbeat *hb, uint64_t key)
{
    uint32_t low = 0;
    uint32_t high = hb->peers_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (hb->peers[middle].ident->key < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < hb->peers_count && hb->peers[low].ident->key == key ? &hb->peers[low] : NULL;
}

struct ring {
    const trpi_gossip *view;
    const uint32_t *places;
    uint32_t count;
    uint32_t start; /* the first place behind self */
    /* from there to the k-th that is reachable (heartbeat-H1), and answers (heartbeat-H5) */
    uint32_t length;
    uint32_t plain; /* of length, those before the first that is unreachable or late */
};

static const trpi_gossip_member *
ring_at(const struct ring *ring, uint32_t step)
{
    trpi_assert_slow(ring->count > 0);
    return &ring->view->members[ring->places[(ring->start + step) % ring->count]];
}

static bool
ring_is_before(const struct ring *ring, uint32_t place, const trpi_ident *self)
{
    trpi_assert_slow(place < ring->count);
    const trpi_ident *ident = ring->view->members[ring->places[place]].ident;
    return ident->ring_hash < self->ring_hash ||
           (ident->ring_hash == self->ring_hash && ident->key <= self->key);
}

/* Return the first place after it. */
static uint32_t
ring_behind(const struct ring *ring, const trpi_ident *self)
{
    uint32_t low = 0, high = ring->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ring_is_before(ring, middle, self)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    trpi_assert_slow(low <= ring->count);
    return low;
}

/* heartbeat-H1, heartbeat-H5. Walk the ring until k peers answer. A peer that has not been asked
 * for long enough may answer: k of those suffice while none is late; but the fewer answer, the more
 * of them are asked for each late one. */
static void
ring_walk(const trpi_heartbeat *hb, struct ring *ring)
{
    trpi_assert_slow(ring->length == 0);
    uint32_t k = hb->options.monitored_by_nr_of_members;
    uint32_t answering = 0, unknown = 0, late = 0, passed = 0;
    while (ring->length < ring->count && answering < k) {
        uint32_t more = (uint32_t)((uint64_t)WIDEN * late * (k - answering) / k);
        if (answering + unknown >= k + (more < WIDEN_MAX ? more : WIDEN_MAX)) {
            return;
        }
        const trpi_gossip_member *m = ring_at(ring, ring->length++);
        if (m->ident->key == hb->self->key) {
            ring->plain += passed == 0 ? 1 : 0;
            continue;
        }
        const struct peer *p = find_peer(hb, m->ident->key);
        bool away = m->unreachable != 0 || (p != NULL && p->silent);
        late += !away && p != NULL && p->late ? 1 : 0;
        passed += away || (p != NULL && p->late) ? 1 : 0;
        answering += !away && p != NULL && p->answers ? 1 : 0;
        unknown += !away && (p == NULL || (!p->answers && !p->late)) ? 1 : 0;
        ring->plain += passed == 0 ? 1 : 0;
    }
    trpi_assert_slow(ring->plain <= ring->length && ring->length <= ring->count);
}

static trp_err
ring_look(const trpi_heartbeat *hb, const trpi_gossip *view, struct ring *ring)
{
    trpi_assert_slow(view->frozen);
    *ring = (struct ring){ .view = view };
    trp_err err = trpi_gossip_ring(view, &ring->places, &ring->count);
    if (err != TRP_OK) {
        return err;
    }
    ring->start = ring_behind(ring, hb->self);
    ring_walk(hb, ring);
    return TRP_OK;
}

/* Choose one peer; a peer that was monitored before keeps its detector. */
static void
choose_peer(trpi_heartbeat *hb, const trpi_gossip_member *m, bool extra, struct peer *to)
{
    trpi_assert_slow(m->status != TRP_MEMBER_DOWN);
    trpi_assert_slow(m->ident->key != hb->self->key);
    struct peer *known = find_peer(hb, m->ident->key);
    if (known != NULL) {
        *to = *known;
        known->chosen = true; /* its contents have moved */
    } else {
        memset(to, 0, sizeof *to);
        to->extra = extra && m->up_number != 0; /* a joiner may just have come */
        to->ident = trpi_ident_ref(m->ident);
        trp_err err = trpi_detector_init(&to->detector, hb->options.detector, &hb->options.phi);
        trpi_assert(err == TRP_OK); /* the options were tried in new() */
    }
    to->chosen = false;
    trpi_assert_slow(!to->chosen);
}

/* Choose the members after self on the ring, and each silent peer wherever it stands. */
static uint32_t
choose_peers(trpi_heartbeat *hb, const struct ring *ring, struct peer *chosen)
{
    trpi_assert_slow(ring->length <= ring->count);
    uint32_t count = 0;
    for (uint32_t step = 0; step < ring->length; step++) {
        const trpi_gossip_member *m = ring_at(ring, step);
        if (m->ident->key != hb->self->key) {
            choose_peer(hb, m, step >= ring->plain, &chosen[count++]);
        }
    }
    for (uint32_t i = 0; i < hb->peers_count; i++) {
        const struct peer *p = &hb->peers[i];
        uint32_t at = p->silent && !p->chosen ? trpi_gossip_find(ring->view, p->ident->key)
                                              : TRPI_GOSSIP_NONE;
        if (at != TRPI_GOSSIP_NONE && ring->view->members[at].status != TRP_MEMBER_DOWN) {
            choose_peer(hb, &ring->view->members[at], false, &chosen[count++]);
        }
    }
    trpi_assert_slow(count <= ring->length + hb->peers_count);
    return count;
}

static void
collect_unreachable(trpi_heartbeat *hb)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < hb->peers_count; i++) {
        if (hb->peers[i].silent) {
            hb->unreachable[count++] = hb->peers[i].ident->key;
        }
    }
    hb->unreachable_count = count;
    trpi_assert_slow(hb->unreachable_count <= hb->peers_count);
}

trp_err
trpi_heartbeat_members(trpi_heartbeat *hb, uint64_t now_us, const trpi_gossip *view)
{
    trpi_assert_slow(view->frozen);
    struct ring ring;
    if (ring_look(hb, view, &ring) != TRP_OK) {
        return TRP_ENOMEM;
    }
    uint32_t room = ring.length + hb->peers_count + 1;
    struct peer *chosen = trpi_alloc(room * sizeof *chosen);
    const trpi_ident **targets = trpi_alloc(room * sizeof *targets);
    uint64_t *unreachable = trpi_alloc(room * sizeof *unreachable);
    if (chosen == NULL || targets == NULL || unreachable == NULL) {
        trpi_free(chosen);
        trpi_free(targets);
        trpi_free(unreachable);
        return TRP_ENOMEM;
    }
    uint32_t chosen_count = choose_peers(hb, &ring, chosen);
    if (chosen_count > 1) {
        qsort(chosen, chosen_count, sizeof *chosen, order_peers);
    }
    for (uint32_t i = 0; i < hb->peers_count; i++) {
        if (!hb->peers[i].chosen) {
            trpi_detector_fini(&hb->peers[i].detector);
            trpi_ident_unref(hb->peers[i].ident);
        }
    }
    trpi_free(hb->peers);
    trpi_free(hb->targets);
    trpi_free(hb->unreachable);
    hb->peers = chosen;
    hb->peers_count = chosen_count;
    hb->targets = targets;
    hb->targets_count = 0;
    hb->unreachable = unreachable;
    collect_unreachable(hb);
    if (hb->view != view) {
        trpi_gossip_unref(hb->view);
        hb->view = trpi_gossip_ref((trpi_gossip *)(uintptr_t)view); /* counted, not changed */
    }
    if (chosen_count == 0) {
        hb->ask_us = hb->check_us = NEVER;
    } else if (hb->ask_us == NEVER) {
        hb->ask_us = hb->check_us = now_us;
    }
    trpi_assert_slow(hb->targets_count == 0);
    trpi_assert_slow((chosen_count == 0) == (hb->ask_us == NEVER));
    return TRP_OK;
}

/* ---- asking and judging ---------------------------------------------------------------------- */

static uint64_t
later_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Called by a tick, or by an answer that arrived during the pause and is read before the tick. */
static void
notice_own_pause(trpi_heartbeat *hb, uint64_t now_us)
{
    uint64_t due_us = trpi_heartbeat_wake_us(hb);
    if (due_us == NEVER || now_us <= due_us + PAUSE_US) {
        return;
    }
    uint64_t pause_us = now_us - due_us;
    for (uint32_t i = 0; i < hb->peers_count; i++) { /* heartbeat-H3 */
        struct peer *p = &hb->peers[i];
        trpi_detector_own_pause(&p->detector, now_us / 1000, pause_us / 1000);
        if (p->first_asked_us != 0 && !p->detector.monitoring) {
            p->first_asked_us += pause_us;
        }
        p->heard_us += p->heard_us != 0 ? pause_us : 0;
        p->unproved = p->unproved || pause_us > hb->pause_us; /* heartbeat-H6 */
    }
    if (pause_us > hb->pause_us && hb->peers_count > 0) {
        hb->woke_us = now_us;
    }
    hb->ask_us = later_of(hb->ask_us, now_us); /* due now: the pause is counted once */
    hb->check_us = later_of(hb->check_us, now_us);
    hb->strain_us = later_of(hb->strain_us, pause_us < STRAIN_US_MAX ? pause_us : STRAIN_US_MAX);
    trpi_assert_slow(hb->ask_us >= now_us && hb->check_us >= now_us);
    trpi_assert_slow(hb->woke_us <= now_us);
}

/* heartbeat-H7. Another observer may have heard it an interval later than this node: so no report
 * may be older than the detector's acceptable pause and an interval, else a crash would be found
 * later. */
static bool
is_heard_by_another(const trpi_heartbeat *hb, const struct peer *p, uint64_t now_us)
{
    trpi_assert_slow(hb->options.phi.heartbeat_interval_ms > 0);
    uint64_t interval_us = (uint64_t)hb->options.phi.heartbeat_interval_ms * 1000;
    uint64_t old_us = REPORT_INTERVALS * interval_us;
    old_us = old_us < hb->pause_us ? old_us : hb->pause_us;
    return p->reported_us != 0 && p->heard_us != 0 && now_us < p->reported_us + old_us &&
           now_us < p->heard_us + 2 * (hb->pause_us + interval_us);
}

static void
judge_peer(trpi_heartbeat *hb, struct peer *p, uint64_t now_us)
{
    trpi_assert_slow(hb->peers_count > 0);
    uint64_t expected_us = (uint64_t)hb->options.expected_response_after_ms * 1000;
    if (!p->detector.monitoring && p->first_asked_us != 0 &&
        now_us >= p->first_asked_us + expected_us) {
        trpi_detector_assume(&p->detector, now_us / 1000); /* heartbeat-H2 */
    }
    uint64_t credit_us = now_us > hb->strain_us ? now_us - hb->strain_us : 0;
    bool silent =
        !trpi_detector_is_available(&p->detector, p->silent ? now_us / 1000 : credit_us / 1000);
    silent = silent && (p->silent || !is_heard_by_another(hb, p, now_us));
    if (silent != p->silent) {
        p->silent = silent;
        hb->changed = true;
    }
}

/* heartbeat-H5. Update p->late and p->answers; returns whether one of them has changed. */
static bool
update_late(const trpi_heartbeat *hb, struct peer *p, uint64_t now_us)
{
    trpi_assert_slow(p >= hb->peers && p < hb->peers + hb->peers_count);
    uint64_t interval_us = (uint64_t)hb->options.phi.heartbeat_interval_ms * 1000;
    uint64_t expected_us = (uint64_t)hb->options.expected_response_after_ms * 1000;
    uint64_t since_us = p->heard_us != 0 ? p->heard_us + LATE_INTERVALS * interval_us
                        : p->extra       ? p->first_asked_us + interval_us
                                         : p->first_asked_us + expected_us;
    bool late = p->first_asked_us != 0 && now_us > since_us + hb->strain_us;
    bool answers = p->heard_us != 0 && !late;
    bool changed = late != p->late || answers != p->answers;
    p->late = late;
    p->answers = answers;
    trpi_assert_slow(!(p->late && p->answers));
    return changed;
}

static void
judge_peers(trpi_heartbeat *hb, uint64_t now_us)
{
    bool changed = false;
    for (uint32_t i = 0; i < hb->peers_count; i++) {
        judge_peer(hb, &hb->peers[i], now_us);
        changed = update_late(hb, &hb->peers[i], now_us) || changed;
    }
    collect_unreachable(hb);
    if (changed && hb->view != NULL) {
        (void)trpi_heartbeat_members(hb, now_us, hb->view); /* no memory: with the next change */
    }
    trpi_assert_slow(hb->unreachable_count <= hb->peers_count);
}

/* ---- heartbeat-H7: reports of other observers ------------------------------------------------ */

/* Query members before the peer on the ring: they monitor it, too. */
static void
query_observers_of(trpi_heartbeat *hb, const struct peer *p)
{
    trpi_assert_slow(hb->questions_count <= QUERIES_MAX);
    trpi_assert_slow(p->late && !p->silent);
    struct ring ring = { .view = hb->view };
    if (hb->view == NULL || trpi_gossip_ring(hb->view, &ring.places, &ring.count) != TRP_OK ||
        ring.count == 0) {
        return;
    }
    uint32_t k = hb->options.monitored_by_nr_of_members, asked = 0;
    ring.start = ring_behind(&ring, p->ident) + ring.count - 1; /* its own place */
    for (uint32_t back = 1; back <= k && back < ring.count && asked < OBSERVERS_QUERIED; back++) {
        if (hb->questions_count == QUERIES_MAX) {
            return;
        }
        const trpi_gossip_member *m = ring_at(&ring, ring.count - back);
        const struct peer *known = find_peer(hb, m->ident->key);
        if (m->ident->key == hb->self->key || m->ident->key == p->ident->key ||
            m->unreachable != 0 || (known != NULL && (known->silent || known->late))) {
            continue;
        }
        trpi_heartbeat_query *q = &hb->questions[hb->questions_count++];
        memset(q, 0, sizeof *q);
        q->to = m->ident;
        q->bytes[0] = KIND_QUERY;
        trpi_put_u64(q->bytes + 1, p->ident->key);
        asked++;
    }
    trpi_assert_slow(hb->questions_count <= QUERIES_MAX);
}

static void
query_observers(trpi_heartbeat *hb, uint64_t now_us)
{
    trpi_assert_slow(hb->questions_count == 0);
    uint64_t interval_us = (uint64_t)hb->options.phi.heartbeat_interval_ms * 1000;
    for (uint32_t i = 0; i < hb->peers_count; i++) {
        struct peer *p = &hb->peers[i];
        if (p->late && !p->silent && p->heard_us != 0 &&
            now_us >= p->asked_after_us + interval_us) {
            p->asked_after_us = now_us;
            query_observers_of(hb, p);
        }
    }
    trpi_assert_slow(hb->questions_count <= QUERIES_MAX);
}

uint32_t
trpi_heartbeat_queries(const trpi_heartbeat *hb, const trpi_heartbeat_query **ret_questions)
{
    trpi_assert_slow(hb->questions_count <= QUERIES_MAX);
    *ret_questions = hb->questions;
    return hb->questions_count;
}

bool
trpi_heartbeat_report(const trpi_heartbeat *hb, uint64_t now_us, const uint8_t *bytes, size_t count,
                      uint8_t report[TRPI_HEARTBEAT_REPORT_BYTES])
{
    if (count < TRPI_HEARTBEAT_REPORT_BYTES || bytes[0] != KIND_QUERY) {
        return false;
    }
    const struct peer *p = find_peer(hb, trpi_get_u64(bytes + 1));
    if (p == NULL || p->heard_us == 0) {
        return false;
    }
    memcpy(report, bytes, TRPI_HEARTBEAT_REPORT_BYTES);
    report[0] = KIND_REPORT;
    trpi_put_u64(report + 9, now_us > p->heard_us ? (now_us - p->heard_us) / 1000 : 0);
    trpi_assert_slow(report[0] == KIND_REPORT);
    return true;
}

static void
report_arrived(trpi_heartbeat *hb, uint64_t arrived_us, const uint8_t *bytes)
{
    trpi_assert_slow(bytes[0] == KIND_REPORT);
    struct peer *p = find_peer(hb, trpi_get_u64(bytes + 1));
    uint64_t age_ms = trpi_get_u64(bytes + 9);
    if (p != NULL && age_ms < arrived_us / 1000 && arrived_us - age_ms * 1000 > p->reported_us) {
        p->reported_us = arrived_us - age_ms * 1000;
    }
}

static void
choose_targets(trpi_heartbeat *hb, uint64_t now_us, bool due)
{
    trpi_assert_slow(hb->targets_count == 0);
    for (uint32_t i = 0; i < hb->peers_count; i++) {
        struct peer *p = &hb->peers[i];
        if (!due && !(p->extra && p->first_asked_us == 0)) { /* heartbeat-H5: at once */
            continue;
        }
        if (p->first_asked_us == 0) {
            p->first_asked_us = now_us;
            if (p->extra) {
                trpi_detector_assume(&p->detector, now_us / 1000); /* heartbeat-H5 */
            }
        }
        hb->asked_us = now_us;
        hb->targets[hb->targets_count++] = p->ident;
    }
    trpi_assert_slow(hb->targets_count <= hb->peers_count);
    trpi_assert_slow(!due || hb->targets_count == hb->peers_count);
}

/* Return a time that may come a little earlier, so that the node has one reason less to wake up. */
static uint64_t
on_grid(const trpi_heartbeat *hb, uint64_t at_us)
{
    const uint64_t grid_us = hb->options.grid_us, begin_us = hb->options.grid_begin_us;
    uint64_t interval_us = (uint64_t)hb->options.phi.heartbeat_interval_ms * 1000;
    if (grid_us == 0 || interval_us % (CHECKS_PER_INTERVAL * grid_us) != 0 || at_us <= begin_us) {
        return at_us;
    }
    return at_us - (at_us - begin_us) % grid_us;
}

void
trpi_heartbeat_tick(trpi_heartbeat *hb, uint64_t now_us)
{
    trpi_assert_slow(hb->options.phi.heartbeat_interval_ms > 0);
    uint64_t interval_us = (uint64_t)hb->options.phi.heartbeat_interval_ms * 1000;
    hb->strain_us -= hb->strain_us / 10; /* halved in about seven checks */
    notice_own_pause(hb, now_us);
    hb->questions_count = 0;
    if (now_us >= hb->check_us) {
        judge_peers(hb, now_us); /* before asking: it may choose anew */
        query_observers(hb, now_us);
        hb->check_us = on_grid(hb, now_us + interval_us / CHECKS_PER_INTERVAL);
    }
    bool due = now_us >= hb->ask_us;
    hb->targets_count = 0;
    choose_targets(hb, now_us, due);
    /* from now, not from when it was due: no burst after a stall */
    hb->ask_us = due ? on_grid(hb, now_us + interval_us) : hb->ask_us;
    trpi_assert_slow(hb->targets_count <= hb->peers_count);
    trpi_assert_slow(hb->check_us > now_us && hb->ask_us > now_us);
}

/* heartbeat-H6 */
bool
trpi_heartbeat_is_waking(trpi_heartbeat *hb, uint64_t now_us)
{
    uint64_t again_us = hb->pause_us + (uint64_t)hb->options.phi.heartbeat_interval_ms * 1000;
    notice_own_pause(hb, now_us);
    if (hb->woke_us == 0) {
        return false;
    }
    bool waking = false;
    for (uint32_t i = 0; i < hb->peers_count; i++) {
        const struct peer *p = &hb->peers[i];
        waking = waking || (p->unproved && !(p->silent && now_us >= hb->woke_us + again_us));
    }
    if (!waking || now_us >= hb->woke_us + WAKING_US_MAX) {
        hb->woke_us = 0;
        for (uint32_t i = 0; i < hb->peers_count; i++) {
            hb->peers[i].unproved = false;
        }
    }
    trpi_assert_slow(hb->woke_us <= now_us);
    return hb->woke_us != 0;
}

uint64_t
trpi_heartbeat_wake_us(const trpi_heartbeat *hb)
{
    return hb->ask_us < hb->check_us ? hb->ask_us : hb->check_us;
}

void
trpi_heartbeat_answer(trpi_heartbeat *hb, uint64_t arrived_us, const trpi_node_id *from,
                      const uint8_t *bytes, size_t count)
{
    if (count >= TRPI_HEARTBEAT_REPORT_BYTES && bytes[0] == KIND_REPORT) {
        report_arrived(hb, arrived_us, bytes);
        return;
    }
    if (count < TRPI_HEARTBEAT_BYTES || bytes[0] != KIND_ANSWER) {
        return;
    }
    struct peer *p = find_peer(hb, trpi_ident_key(from)); /* heartbeat-H4 */
    if (p == NULL) {
        return;
    }
    notice_own_pause(hb, arrived_us); /* heartbeat-H3 */
    uint64_t asked_us = trpi_get_u64(bytes + 1);
    if (asked_us <= arrived_us && arrived_us - asked_us < ROUND_TRIP_US_MAX) {
        p->round_trip_us = arrived_us - asked_us;
    }
    p->heard_us = arrived_us > p->heard_us ? arrived_us : p->heard_us;
    p->heard_count++;
    p->unproved = p->unproved && asked_us < hb->woke_us; /* heartbeat-H6: it answered before */
    trpi_detector_heartbeat(&p->detector, arrived_us / 1000);
    if (p->silent) {
        judge_peer(hb, p, arrived_us);
        if (!p->silent) {
            collect_unreachable(hb);
        }
    }
}

uint32_t
trpi_heartbeat_targets(const trpi_heartbeat *hb, const trpi_ident *const **ret_targets,
                       uint8_t bytes[TRPI_HEARTBEAT_BYTES])
{
    trpi_assert_slow(hb->targets_count <= hb->peers_count);
    bytes[0] = KIND_REQUEST;
    trpi_put_u64(bytes + 1, hb->asked_us);
    *ret_targets = hb->targets;
    trpi_assert_slow(bytes[0] == KIND_REQUEST);
    return hb->targets_count;
}

uint32_t
trpi_heartbeat_unreachable(const trpi_heartbeat *hb, const uint64_t **ret_keys)
{
    trpi_assert_slow(hb->unreachable_count <= hb->peers_count);
    *ret_keys = hb->unreachable;
    return hb->unreachable_count;
}

bool
trpi_heartbeat_has_changed(trpi_heartbeat *hb)
{
    bool changed = hb->changed;
    hb->changed = false;
    return changed;
}

trpi_heartbeat_peer
trpi_heartbeat_look(const trpi_heartbeat *hb, uint64_t key, uint64_t now_us)
{
    trpi_heartbeat_peer look = { .key = key, .available = true };
    const struct peer *p = find_peer(hb, key);
    if (p != NULL) {
        look.phi = trpi_detector_suspicion(&p->detector, now_us / 1000);
        look.round_trip_us = p->round_trip_us;
        look.heard_count = p->heard_count;
        look.monitored = true;
        look.available = !p->silent;
    }
    return look;
}

uint32_t
trpi_heartbeat_peers_count(const trpi_heartbeat *hb)
{
    return hb->peers_count;
}

bool
trpi_heartbeat_reply(const uint8_t *bytes, size_t count, uint8_t answer[TRPI_HEARTBEAT_BYTES])
{
    if (count < TRPI_HEARTBEAT_BYTES || bytes[0] != KIND_REQUEST) {
        return false;
    }
    memcpy(answer, bytes, TRPI_HEARTBEAT_BYTES);
    answer[0] = KIND_ANSWER;
    trpi_assert_slow(answer[0] == KIND_ANSWER);
    return true;
}

bool
trpi_heartbeat_asked(const uint8_t *bytes, size_t count, uint64_t *ret_asked_us)
{
    if (count < TRPI_HEARTBEAT_BYTES || bytes[0] != KIND_ANSWER) {
        return false;
    }
    *ret_asked_us = trpi_get_u64(bytes + 1);
    return true;
}

/* operated_laws.c - what must hold of complete nodes at any time, whatever the faults and orders:
 * above all, what they report of themselves is true. Each node is checked twice a second.
 *
 *   operated-W1  A node that lists a member as Up, and whose messages to it have not arrived for
 *       SILENT_MS, does not say for longer than AT_ONCE_MS that it is healthy: whether the other
 *       one is dead, stands still, is cut off, cannot be dialled, or has removed this node.
 *       (Heartbeats may come again while the lane of messages has still to find out that it cannot
 *       be dialled.) `peers` does not say then that messages go at once, nor for longer. Nor is a
 *       node healthy when no message of the members that list it arrives as long.
 *   operated-W2  A node that is in no view of the members that it lists was removed: it does not
 *       say that it is healthy for longer than SILENT_MS.
 *   operated-W3  No member is Leaving or Exiting without an order that was not taken back before it
 *       began; none is Down without an order, a decision of a strategy, or a successor on its
 *       address.
 *   operated-W4  A forecast comes true or is withdrawn: a verdict that is due "now" is not so for
 *       longer than NOW_MS. A node that foresees its own end does not say that it is healthy.
 *   operated-W5  While members do not agree, there is a reason (control-why-Y1).
 *   operated-W6  A node that advertises the address of another node that is Up, or of none, is
 *       never Up; except alone, where no member could tell it.
 *   operated-W7  When all is well each node says so, with no problem and no reason; `peers` as
 *       well.
 *   operated-W8  A node that a strategy removes did not say that it is healthy when that was
 *       decided, unless it has run for less than DETECT_MS since its start or its last pause.
 * Tests. tests/sim/operated_test.c
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "actor/actor.h"
#include "cluster/sim/operated.h"

#define MILLISECOND_NS 1000000u
#define SILENT_MS 12000u /* the detector finds any crash by then (sim-Q6) */
#define NOW_MS                                                                                     \
    12000u /* the member that would act may have crashed: the detector needs up to 10 s */
#define DETECT_MS 8000u
#define AT_ONCE_MS 5000u

void
sim_operated_fail(struct sim_operated *o, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    trp_sim_fail(o->sim, __FILE__, __LINE__, text);
}

void
sim_laws_note_order(struct sim_operated *o, const struct sim_order *order)
{
    if (o->given_count < OPERATED_GIVEN_MAX) {
        o->given[o->given_count++] = *order;
    }
}

/* Return whether that was ordered and not taken back in time; also while the order is under way. */
static bool
is_ordered(const struct sim_operated *o, trpi_member_event_kind kind, uint64_t uid)
{
    for (uint32_t i = 0; i < o->given_count; i++) {
        if (o->given[i].kind == kind && o->given[i].uid == uid) {
            return true;
        }
    }
    for (uint32_t i = 0; i < OPERATED_ORDERS_MAX; i++) {
        const struct sim_order *order = &o->orders[i];
        if (order->order != NULL && order->kind == kind && order->uid == uid) {
            return true;
        }
    }
    return false;
}

struct sim_whole *
sim_operated_node_of(struct sim_operated *o, const char *address)
{
    for (uint32_t i = 0; i < o->sim->nodes_count; i++) {
        if (strcmp(o->sim->nodes[i].address, address) == 0) {
            return &o->sim->nodes[i];
        }
    }
    return NULL;
}

bool
sim_whole_is_awake(const struct sim_whole *n)
{
    return n->system != NULL && !n->over && n->still_until_ns <= sim_complete_now_ns(n->sim);
}

uint64_t
sim_whole_uid(const struct sim_whole *n)
{
    return n->system == NULL ? 0 : trpi_system_self(n->system)->uid;
}

static uint64_t
ms_since(const struct sim_operated *o, uint64_t ns)
{
    uint64_t now_ns = sim_complete_now_ns(o->sim);
    return now_ns > ns ? (now_ns - ns) / MILLISECOND_NS : 0;
}

static uint64_t
later_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* operated-W8. Called when it is seen that it is removed: it has said the latest half a second
 * ago. */
static void
check_removed(struct sim_operated *o, const struct sim_whole *n, const char *how)
{
    const struct sim_said *said = &o->said[n->number];
    if (said->healthy && n->advertises[0] == '\0' && sim_whole_is_awake(n) &&
        ms_since(o, n->woke_ns) >= DETECT_MS &&
        !is_ordered(o, TRPI_MEMBER_DOWN_CMD, sim_whole_uid(n))) {
        sim_operated_fail(o, "operated-W8: node %u says that it is healthy, and %s", n->number,
                          how);
    }
}

/* ---- one member in one view ------------------------------------------------------------------ */

/* Return whether the node is a member and does not list this uid; false also if it does not run. */
static bool
does_not_list(const struct sim_whole *n, uint64_t uid)
{
    trpi_cluster_snapshot *s = NULL;
    if (!sim_whole_is_awake(n) || trpi_cluster_snapshot_get(n->cluster, &s) != TRP_OK) {
        return false;
    }
    bool lists = s->members_count == 0;
    for (uint32_t i = 0; i < s->members_count; i++) {
        lists = lists || s->members[i].member.uid == uid;
    }
    trpi_cluster_snapshot_free(s);
    return !lists;
}

/* operated-W3, operated-W8 */
static void
check_status(struct sim_operated *o, const struct sim_whole *by, const trp_member *m,
             const struct sim_whole *of)
{
    uint64_t uid = sim_whole_uid(of);
    if (uid != m->uid) {
        return; /* a predecessor */
    }
    if ((m->status == TRP_MEMBER_LEAVING || m->status == TRP_MEMBER_EXITING) &&
        !is_ordered(o, TRPI_MEMBER_LEAVE, uid)) {
        sim_operated_fail(o, "operated-W3: node %u has node %u %s, which nobody ordered",
                          by->number, of->number, trp_member_status_name(m->status));
    }
    if (m->status == TRP_MEMBER_DOWN && o->decided_ns < o->started_ns[of->number] &&
        !is_ordered(o, TRPI_MEMBER_DOWN_CMD, uid)) {
        sim_operated_fail(o,
                          "operated-W3: node %u has node %u Down, which nobody ordered or decided",
                          by->number, of->number);
    }
    if (m->status == TRP_MEMBER_DOWN && !does_not_list(of, sim_whole_uid(by))) {
        check_removed(o, of, "others have it Down"); /* else it has removed those before */
    }
}

/* operated-W1: messages to this node */
static void
check_heard(struct sim_operated *o, const struct sim_whole *n, const struct sim_said *said)
{
    uint32_t senders = 0, silent = 0;
    for (uint32_t i = 0; i < o->sim->nodes_count; i++) {
        const struct sim_whole *other = &o->sim->nodes[i];
        const struct sim_listed *listed = &o->listed[i][n->number];
        if (other != n && sim_whole_is_awake(other) && other->advertises[0] == '\0' &&
            listed->uid == sim_whole_uid(n) && !does_not_list(n, sim_whole_uid(other))) {
            uint64_t since_ns = later_of(later_of(n->woke_ns, other->woke_ns), listed->since_ns);
            senders++;
            silent +=
                ms_since(o, later_of(since_ns, o->laws.arrived[n->number][i].ns)) >= SILENT_MS;
        }
    }
    if (said->healthy && senders > 0 && silent == senders) {
        sim_operated_fail(
            o,
            "operated-W1: node %u says that it is healthy, and no message of %u nodes that "
            "list it has arrived for 12 s",
            n->number, senders);
    }
}

/* When something from this node arrived last at the address of that one: at the incarnation uid, 0:
 * at any. It may be one of another node, which advertises that address. */
static uint64_t
arrived_ns(const struct sim_operated *o, const struct sim_whole *by, const struct sim_whole *of,
           uint64_t uid)
{
    uint64_t ns = 0;
    for (uint32_t i = 0; i < o->sim->nodes_count; i++) {
        const struct sim_whole *n = &o->sim->nodes[i];
        uint64_t heard_uid = o->laws.arrived[i][by->number].uid;
        if ((n == of || strcmp(n->advertises, of->host) == 0) && (uid == 0 || uid == heard_uid)) {
            ns = later_of(ns, o->laws.arrived[i][by->number].ns);
        }
    }
    return ns;
}

/* operated-W1: messages of this node */
static void
check_arrivals(struct sim_operated *o, const struct sim_whole *by, const trp_member *m,
               const struct sim_whole *of, const struct sim_said *said)
{
    struct sim_listed *listed = &o->listed[by->number][of->number];
    uint64_t since_ns = later_of(by->woke_ns, listed->since_ns);
    uint64_t any_ns = arrived_ns(o, by, of, 0);
    char next[80];
    listed->arrived_ns = later_of(listed->arrived_ns, arrived_ns(o, by, of, m->uid));
    listed->healthy_since_ns = !said->healthy                  ? 0
                               : listed->healthy_since_ns == 0 ? said->at_ns
                                                               : listed->healthy_since_ns;
    if (ms_since(o, later_of(since_ns, listed->arrived_ns)) < SILENT_MS) {
        return;
    }
    if (said->healthy) {
        if (ms_since(o, listed->healthy_since_ns) >= AT_ONCE_MS) {
            sim_operated_fail(
                o, "operated-W1: node %u says that it is healthy, and its messages to node %u %s",
                by->number, of->number, "have not arrived for 12 s");
        }
        return;
    }
    if (ms_since(o, later_of(since_ns, any_ns)) < SILENT_MS) {
        listed->go_since_ns = 0;
        return; /* they arrive at another node on its address */
    }
    sim_node_says_of(o, by, of->address, next, sizeof next);
    if (strcmp(next, "messages go at once") != 0) {
        listed->go_since_ns = 0;
    } else if (listed->go_since_ns == 0) { /* since it was dialled again, perhaps */
        listed->go_since_ns = said->at_ns;
    } else if (ms_since(o, listed->go_since_ns) >= AT_ONCE_MS) {
        sim_operated_fail(
            o,
            "operated-W1: peers of node %u says of node %u that messages go at once, and "
            "none has arrived for 12 s (%s)",
            by->number, of->number, said->first);
    }
}

/* ---- one node -------------------------------------------------------------------------------- */

/* operated-W2 */
static void
check_membership(struct sim_operated *o, const struct sim_whole *n, const trpi_cluster_snapshot *s,
                 const struct sim_said *said)
{
    uint64_t uid = sim_whole_uid(n);
    uint32_t asked = 0, without = 0;
    for (uint32_t i = 0; i < s->members_count; i++) {
        const trp_member *m = &s->members[i].member;
        const struct sim_whole *other = sim_operated_node_of(o, m->address);
        if (other != NULL && other != n && sim_whole_uid(other) == m->uid &&
            m->status == TRP_MEMBER_UP && sim_whole_is_awake(other)) {
            asked++;
            without += does_not_list(other, uid) ? 1 : 0;
        }
    }
    uint64_t now_ns = sim_complete_now_ns(o->sim);
    uint64_t *since_ns = &o->unlisted_ns[n->number];
    *since_ns = asked == 0 || without < asked ? 0 : *since_ns == 0 ? now_ns : *since_ns;
    if (*since_ns != 0 && said->healthy &&
        ms_since(o, later_of(*since_ns, n->woke_ns)) >= SILENT_MS) {
        sim_operated_fail(
            o,
            "operated-W2: node %u says that it is healthy, and no node that it lists has had it as "
            "a member for 12 s",
            n->number);
    }
}

/* operated-W4 */
static void
check_forecast(struct sim_operated *o, const struct sim_whole *n, const struct sim_said *before,
               struct sim_said *said)
{
    bool now = said->foresees && said->in_ms == 0 && strcmp(said->verdict, "undecided") != 0 &&
               strcmp(said->verdict, "lease") != 0;
    bool same = before->foresees && strcmp(before->verdict, said->verdict) == 0;
    said->now_since_ns = !now                                ? 0
                         : same && before->now_since_ns != 0 ? before->now_since_ns
                                                             : said->at_ns;
    if (said->healthy && said->foresees && strcmp(said->verdict, "stops") == 0) {
        sim_operated_fail(o, "operated-W4: node %u says that it is healthy, and foresees its end",
                          n->number);
    }
    if (now && ms_since(o, later_of(said->now_since_ns, n->woke_ns)) >= NOW_MS) {
        sim_operated_fail(o, "operated-W4: node %u has said for 12 s that its side %s now",
                          n->number, said->verdict);
    }
}

static void
note_listed(struct sim_operated *o, const struct sim_whole *n, const trpi_cluster_snapshot *s)
{
    for (uint32_t i = 0; i < o->sim->nodes_count; i++) {
        struct sim_listed *l = &o->listed[n->number][i];
        uint64_t now_ns = sim_complete_now_ns(o->sim);
        bool found = false;
        for (uint32_t k = 0; k < s->members_count; k++) {
            const trp_member *m = &s->members[k].member;
            if ((m->status == TRP_MEMBER_UP || m->status == TRP_MEMBER_LEAVING) &&
                strcmp(m->address, o->sim->nodes[i].address) == 0) {
                *l = l->uid == m->uid ? *l : (struct sim_listed){ .since_ns = now_ns };
                l->uid = m->uid;
                found = true;
            }
        }
        l->uid = found ? l->uid : 0;
    }
}

/* Return whether a member was there all the time that could tell n that `right` has its address. */
static bool
has_informed_member(const struct sim_operated *o, const struct sim_whole *n,
                    const struct sim_whole *right)
{
    for (uint32_t i = 0; i < o->sim->nodes_count && o->careful; i++) { /* nothing is cut off */
        const struct sim_whole *w = &o->sim->nodes[i];
        if (w != n && w != right && w->woke_ns < n->woke_ns && sim_whole_is_awake(w) &&
            sim_whole_is_up(w) && !does_not_list(w, sim_whole_uid(right))) {
            return true;
        }
    }
    return false;
}

/* operated-W6 */
static void
check_stranger(struct sim_operated *o, const struct sim_whole *n, const trpi_cluster_snapshot *s)
{
    const struct sim_whole *right = NULL;
    for (uint32_t i = 0; i < o->sim->nodes_count; i++) {
        right = strcmp(o->sim->nodes[i].host, n->advertises) == 0 ? &o->sim->nodes[i] : right;
    }
    bool up = n->advertises[0] != '\0' && s->self != TRPI_CLUSTER_NONE &&
              s->members[s->self].member.status == TRP_MEMBER_UP;
    if (!up || (right != NULL && !(sim_whole_is_awake(right) && sim_whole_is_up(right)))) {
        return;
    }
    if (s->members_count > 1 || (right != NULL && has_informed_member(o, n, right))) {
        sim_operated_fail(o, "operated-W6: node %u is Up with the address of %s", n->number,
                          n->advertises);
    }
}

static void
check_node(struct sim_operated *o, struct sim_whole *n)
{
    trpi_cluster_snapshot *s = NULL;
    struct sim_said said, before = o->said[n->number];
    if (!sim_whole_is_awake(n) || trpi_cluster_snapshot_get(n->cluster, &s) != TRP_OK) {
        return;
    }
    if (!sim_node_says(o, n, &said)) {
        sim_operated_fail(o, "node %u does not answer status", n->number);
        trpi_cluster_snapshot_free(s);
        return;
    }
    uint32_t status = s->self == TRPI_CLUSTER_NONE ? 0 : s->members[s->self].member.status;
    bool leaves = status == TRP_MEMBER_LEAVING || status == TRP_MEMBER_EXITING;
    uint64_t *leaving_ns = &o->leaving_ns[n->number];
    *leaving_ns = !leaves ? 0 : *leaving_ns == 0 ? said.at_ns : *leaving_ns;
    check_stranger(o, n, s);
    note_listed(o, n, s);
    for (uint32_t i = 0; i < s->members_count && n->advertises[0] == '\0'; i++) {
        const trp_member *m = &s->members[i].member;
        const struct sim_whole *of = sim_operated_node_of(o, m->address);
        if (of == NULL || of->advertises[0] != '\0') {
            continue;
        }
        check_status(o, n, m, of);
        if (of != n && (m->status == TRP_MEMBER_UP || m->status == TRP_MEMBER_LEAVING)) {
            check_arrivals(o, n, m, of, &said);
        }
    }
    if (n->advertises[0] == '\0') {
        check_heard(o, n, &said);
        check_membership(o, n, s, &said);
        check_forecast(o, n, &before, &said);
    }
    if (s->members_count > 0 && !said.converged && said.reasons == 0) { /* operated-W5 */
        sim_operated_fail(o, "operated-W5: node %u has not converged, and gives no reason (%s)",
                          n->number, said.first);
    }
    trpi_cluster_snapshot_free(s);
    o->said[n->number] = said;
}

void
sim_laws_look(struct sim_operated *o)
{
    for (uint32_t i = 0; i < o->sim->nodes_count && !o->sim->failed; i++) {
        check_node(o, &o->sim->nodes[i]);
    }
}

/* operated-W7. `status` tells of strangers for a minute. */
void
sim_laws_peace(struct sim_operated *o)
{
    for (uint32_t i = 0; i < o->sim->nodes_count && !o->sim->failed; i++) {
        const struct sim_said *said = &o->said[i];
        bool crowd = said->problems == 1 && strstr(said->first, "wait for their handshake") != NULL;
        if (!(said->healthy || crowd) || said->reasons > 0) {
            sim_operated_fail(o, "operated-W7: all is well, and node %u says: %s", i, said->first);
        }
        for (uint32_t k = 0; k < o->sim->nodes_count; k++) {
            char next[80];
            sim_node_says_of(o, &o->sim->nodes[i], o->sim->nodes[k].address, next, sizeof next);
            if (k != i && strcmp(next, "messages go at once") != 0) {
                sim_operated_fail(
                    o, "operated-W7: all is well, and peers of node %u says of node %u: %s", i, k,
                    next);
            }
        }
    }
}

/* ---- decisions ------------------------------------------------------------------------------- */

static void
note_decision(void *arg, const trpi_cluster_event *event)
{
    const struct sim_whole *n = arg;
    (void)event;
    n->sim->operated->decided_ns = sim_complete_now_ns(n->sim);
}

void
sim_operated_ended(struct sim_whole *n)
{
    if (n->stop == TRPI_STOP_DOWNED && n->sim->operated != NULL) {
        check_removed(n->sim->operated, n, "its membership has ended, for it is Down");
    }
}

trp_err
sim_operated_watch(struct sim_whole *n)
{
    uint64_t id;
    n->sim->operated->started_ns[n->number] = sim_complete_now_ns(n->sim);
    n->sim->operated->said[n->number] = (struct sim_said){ 0 };
    n->sim->operated->leaving_ns[n->number] = 0;
    return trpi_cluster_listen(n->cluster, TRP_CLUSTER_DOWNING_DECISION, note_decision, n, &id);
}

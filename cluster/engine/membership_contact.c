/* membership_contact.c - how a cluster lets a node in: the answers of a member to joiners (SEED,
 * MEMB-04, -29). The joiner's part, and a diagram, are in membership_seed.c.
 *
 * Must hold.
 *   membership-contact-J2  A JOIN needs a ticket which the contact gave out a short while ago: a
 *       JOIN that was stuck in the network cannot throw out the incarnation that has taken its
 *       sender's place since.
 *   membership-contact-J3  A new incarnation means that the old one is gone, whatever its status:
 *       it becomes Down at once.
 *   membership-contact-J4  A removed incarnation is never let in again; it is told so.
 *   membership-contact-J6  A joiner sends the settings that all members must share (compat.h), and
 *       whether a difference ends it: then it is refused for one, else both logs have a warning.
 *   membership-contact-J9  A contact stops letting nodes in before a view is full: several contacts
 *       let nodes in at one time, and views that are too large together could never be merged. The
 *       refusal answers a JOIN, not an INIT_JOIN, whose sender must learn that there is a cluster
 *       (membership-seed-J1).
 *   membership-contact-J10 A version costs more, the more members there are. So the first of many
 *       joiners is let in at once, and joiners that come within admission_ms() after it wait and
 *       are let in together, with one version; with few of them when the cluster is nearly full
 *       (membership-contact-J9).
 *   membership-contact-J11 As membership-contact-J9 for different roles: a view with too many could
 *       never be sent.
 *   membership-contact-J12 A contact that is waking (trpi_member_now) lets no node in: it may be
 *       removed itself, and would mark a predecessor Down.
 *   membership-contact-J13 A restarted node has the vote of its predecessor (downing-votes-D6). If
 *       the contact had not reached that one for half of stable-after, pauses of its own included,
 *       or if members have removed the contact, then the predecessor may have voted for the removal
 *       of this side before it ended, and one vote must not count on two sides. So the joiner is
 *       let in only where this side may go on without it; else it asks others, until this side
 *       has stopped or the predecessor is removed. Where members are missed for so long, no node is
 *       let in that leaves this side too small: nodes of a small side that end, start again and
 *       join each other would keep it for ever. Not with a lease, which has one owner, nor where no
 *       strategy decides.
 * Limits.  ADMITTED_MAX joiners in a version; JOINERS_MAX that wait: a joiner beyond that asks
 *          again.
 * Tests.   tests/unit/cluster/join_test.c, compat_test.c
 */
#include "cluster/engine/membership_core.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"

#define TICKET_MS 15000u
/* membership-contact-J10: a contact of 1,000 members makes a version in 50 ms at most */
#define MEMBERS_PER_MS 20u
#define ADMISSION_MS_MAX 100u
#define ADMITTED_MAX 512u /* in one version: each of them is sent the view at once */
#define ADMITTED_LEAST 8u /* and one in so many of those that there still is room for */
#define JOINERS_MAX 2048u
#define JOINERS_KEPT 32u /* room for more is given back */
#define REFUSED_LOG_MS 10000u

static void
send_nack(trpi_member_core *core, const trpi_node_id *to, uint32_t code, const char *reason)
{
    trpi_assert_slow(code >= TRPI_NACK_NOT_READY && code <= TRPI_NACK_INCOMPATIBLE);
    trpi_assert_slow(strlen(reason) < TRPI_FRAME_REASON_BYTES);
    trpi_frame frame = { .kind = TRPI_FRAME_INIT_JOIN_NACK, .to_uid = to->uid, .code = code };
    snprintf(frame.reason, sizeof frame.reason, "%s", reason);
    trpi_core_send(core, to, &frame, NULL);
}

/* Return whether a difference ends the joiner. An earlier version does not say, and goes on. */
static bool
ends_on_difference(const trpi_frame *frame)
{
    return frame->compat != NULL && frame->code == 0;
}

static void
log_difference(trpi_member_core *core, const trpi_node_id *from, bool refused, const char *why)
{
    trpi_assert_slow(why[0] != '\0');
    if (core->now.mono_ms >= core->logged.refused_ms) {
        char text[TRPI_ADDRESS_TEXT_BYTES];
        trpi_core_log(core, TRP_LOG_WARNING, "%s %s: %s",
                      trpi_address_format(&from->address, text, sizeof text),
                      refused ? "is refused" : "may join, though it differs", why);
        core->logged.refused_ms = core->now.mono_ms + REFUSED_LOG_MS;
    }
}

static void
refuse_full(trpi_member_core *core, const trpi_node_id *from)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    char reason[TRPI_FRAME_REASON_BYTES];
    (void)snprintf(reason, sizeof reason, "the cluster has as many members as it can have, %u",
                   TRPI_JOIN_MEMBERS_MAX);
    log_difference(core, from, true, reason);
    send_nack(core, from, TRPI_NACK_REFUSED, reason);
}

static void
refuse_roles(trpi_member_core *core, const trpi_node_id *from)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    char reason[TRPI_FRAME_REASON_BYTES];
    (void)snprintf(reason, sizeof reason,
                   "the cluster has as many different roles as it can have, %u: give it roles that "
                   "others have",
                   TRPI_JOIN_ROLES_MAX);
    log_difference(core, from, true, reason);
    send_nack(core, from, TRPI_NACK_REFUSED, reason);
}

/* ---- members that were missed for long (membership-contact-J13) ------------------------------ */

static bool
is_same_place(const trpi_gossip_member *m, const trpi_node_id *id)
{
    return trpi_address_is_same_place(&m->ident->id.address, &id->address);
}

/* Return whether this node has not reached that member for so long that the member may have removed
 * it. A member that was already missed when this node was let in counts as away for long, and one
 * that this node misses while its reports do not count: nobody here knows since when. */
static bool
is_long_away(const trpi_member_core *core, const trpi_gossip_member *m)
{
    uint64_t since_ms = trpi_member_unreachable_since_ms(core, m->ident->key);
    uint64_t away_ms = since_ms == 0 ? 0 : core->now.mono_ms - since_ms;
    return (since_ms == 0 && trpi_core_misses(core, m)) ||
           (since_ms != 0 && since_ms <= core->welcome_ms) ||
           away_ms + core->admission.paused_ms >= core->options.downing.stable_after_ms / 2;
}

/* Return whether the place of a joiner counts for this side: its predecessor, if it has one, was
 * reached until it ended. Else the predecessor may have removed this node before. */
static bool
is_place_ours(const trpi_member_core *core, const trpi_node_id *from)
{
    const trpi_gossip *g = core->gossip;
    bool any = false, ours = false;
    for (uint32_t i = trpi_gossip_lower(g, &from->address);
         i < g->members_count && is_same_place(&g->members[i], from); i++) {
        any = true;
        ours = ours ||
               (g->members[i].status != TRP_MEMBER_DOWN && !is_long_away(core, &g->members[i]));
    }
    return (ours || !any) && core->removers.removers_count == 0;
}

/* Return whether members are missed for so long that they may have removed this side. */
static bool
is_long_apart(const trpi_member_core *core)
{
    const trpi_gossip *g = core->gossip;
    bool apart = core->removers.removers_count > 0;
    for (uint32_t i = 0; i < g->members_count && g->unreachable_count > 0 && !apart; i++) {
        const trpi_gossip_member *m = &g->members[i];
        apart = trpi_core_misses(core, m) && m->status != TRP_MEMBER_DOWN && is_long_away(core, m);
    }
    return apart;
}

/* Return whether this side may go on with the place of the joiner, or without it, and without the
 * members that it does not reach and those that have removed this node. */
static bool
goes_on_with(const trpi_member_core *core, const trpi_node_id *from, bool place_ours)
{
    const trpi_gossip *g = core->gossip;
    trpi_downing_count count;
    uint32_t *marks = trpi_alloc((g->members_count + 1) * sizeof *marks);
    if (marks == NULL) {
        return false; /* it asks again */
    }
    for (uint32_t i = 0; i < g->members_count; i++) {
        const trpi_gossip_member *m = &g->members[i];
        bool same = is_same_place(m, from);
        bool away = same ? !place_ours
                         : trpi_core_misses(core, m) || trpi_member_is_remover(core, m->ident->key);
        marks[i] = away && m->ident->key != core->self->key ? TRPI_MARK_AWAY : TRPI_MARK_CLEAR;
    }
    bool goes_on = trpi_member_may_go_on(core, marks, &count);
    trpi_free(marks);
    return goes_on;
}

/* membership-contact-J13 */
static bool
may_be_removed(trpi_member_core *core, const trpi_node_id *from)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    bool place_ours = is_place_ours(core, from);
    if (!trpi_member_resolves(core) || trpi_downing_asks_lease(core->downing) ||
        (place_ours && !is_long_apart(core)) || goes_on_with(core, from, place_ours)) {
        return false;
    }
    if (core->now.mono_ms >= core->logged.refused_ms) {
        char text[TRPI_ADDRESS_TEXT_BYTES];
        trpi_core_log(core, TRP_LOG_WARNING,
                      "%s is not let in: members were out of reach for so long that they may have "
                      "removed this node; it asks the others, and is let in here when this side "
                      "may go on without them (troupe why)",
                      trpi_address_format(&from->address, text, sizeof text));
        core->logged.refused_ms = core->now.mono_ms + REFUSED_LOG_MS;
    }
    return true;
}

void
trpi_contact_own_pause(trpi_member_core *core, uint64_t pause_ms)
{
    trpi_assert_slow(pause_ms > 0);
    core->admission.paused_ms += pause_ms;
    core->admission.paused_digest = core->gossip != NULL ? core->gossip->digest : 0;
}

/* Pauses are over when all members have seen a version that came after the last one. */
static void
forget_pauses(trpi_member_core *core)
{
    if (core->admission.paused_ms > 0 && !core->now.waking &&
        core->gossip->digest != core->admission.paused_digest &&
        core->gossip->unreachable_count == 0 && trpi_member_is_converged(core)) {
        core->admission.paused_ms = 0;
    }
}

/* Return whether this node may ask to join; if not, send it the refusal. */
static bool
may_ask(trpi_member_core *core, const trpi_node_id *from, const trpi_frame *frame)
{
    trpi_assert_slow(core->phase != TRPI_PHASE_STOPPED);
    const trpi_address *own = &core->self->id.address;
    char reason[TRPI_FRAME_REASON_BYTES];
    if (from->uid == 0) {
        return false; /* the transport always knows; hostile bytes do not */
    }
    if (strcmp(from->address.system, own->system) != 0 ||
        strcmp(from->address.protocol, own->protocol) != 0) {
        snprintf(reason, sizeof reason, "system: it is %.20s://%.40s, this is %.20s://%.40s",
                 from->address.protocol, from->address.system, own->protocol, own->system);
        log_difference(core, from, true, reason);
        send_nack(core, from,
                  ends_on_difference(frame) ? TRPI_NACK_INCOMPATIBLE : TRPI_NACK_REFUSED,
                  reason); /* MEMB-29 */
        return false;
    }
    if (trpi_seek_is_self(core, &from->address)) {
        send_nack(core, from, TRPI_NACK_REFUSED, "it advertises the address of this node");
        return false;
    }
    if (!trpi_seek_is_compatible_host(core, &from->address)) { /* membership-seed-J15 */
        snprintf(reason, sizeof reason,
                 "remote.hostname: %.40s, this is %.40s: only one of them is on loopback; --host "
                 "takes the address that others reach",
                 from->address.host, own->host);
        log_difference(core, from, true, reason);
        send_nack(core, from,
                  ends_on_difference(frame) ? TRPI_NACK_INCOMPATIBLE : TRPI_NACK_REFUSED, reason);
        return false;
    }
    uint32_t self = trpi_core_self_index(core);
    if (core->phase != TRPI_PHASE_MEMBER || self == TRPI_GOSSIP_NONE) {
        send_nack(core, from, TRPI_NACK_NOT_READY, "not a member");
        return false;
    }
    if (core->gossip->members[self].status > TRP_MEMBER_UP) {
        send_nack(core, from, TRPI_NACK_LEAVING, "it leaves");
        return false;
    }
    /* membership-contact-J12; the same to the joiner: there is a cluster, ask others */
    if (core->now.waking) {
        send_nack(core, from, TRPI_NACK_LEAVING, "it stood still, and asks its own peers first");
        return false;
    }
    const trpi_tombstone *t = trpi_gossip_tombstone(core->gossip, trpi_ident_key(from));
    if (t != NULL) { /* membership-contact-J4 */
        send_nack(core, from, t->status == TRP_MEMBER_DOWN ? TRPI_NACK_REMOVED : TRPI_NACK_LEFT,
                  "this incarnation was removed from the cluster; restart the process");
        return false;
    }
    /* membership-contact-J13; a member that asks again for its WELCOME is let in already */
    if (trpi_gossip_find(core->gossip, trpi_ident_key(from)) == TRPI_GOSSIP_NONE &&
        may_be_removed(core, from)) {
        send_nack(core, from, TRPI_NACK_LEAVING,
                  "the others may have removed it, and it lets nobody in before it knows");
        return false;
    }
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER && !core->now.waking);
    return true;
}

void
trpi_contact_init_join(trpi_member_core *core, const trpi_node_id *from, const trpi_frame *frame)
{
    trpi_assert_slow(frame->kind == TRPI_FRAME_INIT_JOIN);
    if (!may_ask(core, from, frame)) {
        return;
    }
    if (frame->system[0] != '\0' && strcmp(frame->system, core->self->id.address.system) != 0) {
        send_nack(core, from, TRPI_NACK_REFUSED, "it asks for another system");
        return;
    }
    trpi_frame ack = { .kind = TRPI_FRAME_INIT_JOIN_ACK,
                       .to_uid = from->uid,
                       .ticket = core->now.mono_ms + 1 };
    /* membership-contact-J6 */
    if (!trpi_compat_check(frame->compat, core->compat, ack.reason, sizeof ack.reason)) {
        log_difference(core, from, ends_on_difference(frame), ack.reason);
        if (ends_on_difference(frame)) {
            send_nack(core, from, TRPI_NACK_INCOMPATIBLE, ack.reason);
            return;
        }
    }
    trpi_core_send(core, from, &ack, NULL);
}

bool
trpi_member_compat_set(trpi_member_core *core, const char *key, const char *value)
{
    return core->compat != NULL && trpi_compat_set(core->compat, key, value);
}

static bool
is_predecessor(const trpi_gossip_member *m, const trpi_node_id *id)
{
    return m->status != TRP_MEMBER_DOWN && m->ident->id.uid != id->uid &&
           trpi_address_equal(&m->ident->id.address, &id->address);
}

/* Count the predecessors at an address: other incarnations that are not Down yet
 * (membership-contact-J3). */
static uint32_t
count_predecessors(const trpi_gossip *edited, const trpi_node_id *from)
{
    uint32_t count = 0;
    for (uint32_t i = trpi_gossip_lower(edited, &from->address);
         i < edited->members_count && is_same_place(&edited->members[i], from); i++) {
        count += is_predecessor(&edited->members[i], from) ? 1 : 0;
    }
    trpi_assert_slow(count <= edited->members_count);
    return count;
}

static void
down_predecessors(trpi_gossip *edited, const trpi_node_id *from)
{
    trpi_assert_slow(!edited->frozen);
    for (uint32_t i = trpi_gossip_lower(edited, &from->address);
         i < edited->members_count && is_same_place(&edited->members[i], from); i++) {
        if (is_predecessor(&edited->members[i], from)) {
            trpi_gossip_set_status(edited, i, TRP_MEMBER_DOWN);
        }
    }
    trpi_assert_slow(count_predecessors(edited, from) == 0);
}

/* Mark other incarnations of this node's address Down. Two of them may join through two contacts;
 * the one that is alive knows which. */
void
trpi_seek_down_own_predecessors(trpi_member_core *core)
{
    trpi_assert_slow(trpi_core_self_index(core) != TRPI_GOSSIP_NONE);
    trpi_assert_slow(!core->now.waking);
    const trpi_gossip *g = core->gossip;
    bool any = false;
    uint32_t self = trpi_core_self_index(core); /* incarnations of one address stand side by side */
    for (uint32_t i = self; i-- > 0 && !any && is_same_place(&g->members[i], &core->self->id);) {
        any = is_predecessor(&g->members[i], &core->self->id);
    }
    for (uint32_t i = self + 1;
         i < g->members_count && !any && is_same_place(&g->members[i], &core->self->id); i++) {
        any = is_predecessor(&g->members[i], &core->self->id);
    }
    trpi_gossip *edited = any ? trpi_gossip_copy(g) : NULL;
    if (edited != NULL) {
        down_predecessors(edited, &core->self->id);
        (void)trpi_core_commit(core, edited); /* no memory: at the next step */
    }
}

/* ---- admission (membership-contact-J10) ------------------------------------------------------ */

static uint32_t
admission_ms(trpi_member_core *core, uint32_t members)
{
    uint32_t ms = members / MEMBERS_PER_MS;
    return ms > ADMISSION_MS_MAX || TRPI_BUGGIFY(core) ? ADMISSION_MS_MAX : ms;
}

static bool
is_waiting(const trpi_member_core *core, const trpi_ident *ident)
{
    trpi_assert_slow(core->admission.joiners_count <= JOINERS_MAX);
    for (uint32_t i = 0; i < core->admission.joiners_count; i++) {
        if (core->admission.joiners[i]->key == ident->key) {
            return true;
        }
    }
    return false;
}

static void
queue_joiner(trpi_member_core *core, trpi_ident *ident)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    if (is_waiting(core, ident) ||
        TRPI_ARRAY_RESERVE(&core->admission, joiners, 1, JOINERS_MAX) != TRP_OK) {
        return; /* it waits already; or it will ask again */
    }
    core->admission.joiners[core->admission.joiners_count++] = trpi_ident_ref(ident);
    trpi_assert_slow(core->admission.joiners_count <= JOINERS_MAX && is_waiting(core, ident));
}

static uint32_t
admitted_max(const trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    uint32_t members = core->gossip->members_count;
    uint32_t left = members < TRPI_JOIN_MEMBERS_MAX ? TRPI_JOIN_MEMBERS_MAX - members : 0;
    uint32_t max = left / ADMITTED_LEAST + ADMITTED_LEAST;
    trpi_assert_slow(max >= ADMITTED_LEAST);
    return max < ADMITTED_MAX ? max : ADMITTED_MAX;
}

/* membership-contact-J11. Add the joiner's roles to those of the members and of joiners let in with
 * the same version; false: there is no room. */
static bool
have_room(trpi_role_table *roles, const trpi_ident *joiner)
{
    trpi_assert_slow(roles->count <= TRPI_GOSSIP_ROLES_MAX);
    uint32_t missing = trpi_role_table_missing(roles, joiner);
    return (missing == 0 || roles->count + missing <= TRPI_JOIN_ROLES_MAX) &&
           trpi_role_table_add(roles, joiner) == TRP_OK;
}

static trp_err
admit_joiner(trpi_member_core *core, trpi_gossip *edited, trpi_role_table *roles,
             trpi_ident *joiner)
{
    trpi_assert_slow(!edited->frozen);
    uint32_t replaced = count_predecessors(edited, &joiner->id);
    if (edited->members_count - replaced >= TRPI_JOIN_MEMBERS_MAX) {
        refuse_full(core, &joiner->id); /* membership-contact-J9 */
        return TRP_OK;
    }
    if (!have_room(roles, joiner)) {
        refuse_roles(core, &joiner->id);
        return TRP_OK;
    }
    if (replaced > 0) {
        trpi_core_log(core, TRP_LOG_INFO, "%s has restarted: its predecessor is Down",
                      joiner->address);
        down_predecessors(edited, &joiner->id);
    }
    return trpi_gossip_add(edited, joiner, TRP_MEMBER_JOINING, 0);
}

/* Collect the roles of a view. Roles beyond the limit are left out: then none may be added anyway.
 */
static trp_err
roles_of(const trpi_gossip *gossip, trpi_role_table *roles)
{
    trpi_assert_slow(gossip->frozen);
    trpi_assert_slow(roles->count == 0);
    const trpi_ident *const *kinds;
    uint32_t count;
    trp_err err = trpi_gossip_kinds(gossip, &kinds, &count);
    for (uint32_t i = 0; i < count && err == TRP_OK; i++) {
        err = trpi_role_table_add(roles, kinds[i]);
        err = err == TRP_ELIMIT ? TRP_OK : err;
    }
    return err;
}

/* Let the first `count` waiting joiners in with one version. */
static trp_err
admit_first(trpi_member_core *core, uint32_t count)
{
    trpi_assert_slow(count > 0 && count <= core->admission.joiners_count);
    trpi_gossip *edited = trpi_gossip_copy(core->gossip);
    trpi_role_table *roles = trpi_role_table_new();
    trp_err err = edited == NULL || roles == NULL ? TRP_ENOMEM : roles_of(core->gossip, roles);
    for (uint32_t i = 0; i < count && err == TRP_OK; i++) {
        err = admit_joiner(core, edited, roles, core->admission.joiners[i]);
    }
    trpi_role_table_free(roles);
    if (err == TRP_OK && edited->members_count > core->gossip->members_count) {
        core->admission.admit_ms = core->now.mono_ms + admission_ms(core, edited->members_count);
        return trpi_core_commit(core, edited);
    }
    trpi_gossip_unref(edited); /* refused, or let in by others meanwhile */
    return err;
}

/* Let a joiner in. Without memory, or if it was removed meanwhile, it asks again. */
static void
send_welcome(trpi_member_core *core, const trpi_ident *joiner)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    uint32_t at = trpi_gossip_find(core->gossip, joiner->key);
    if (at != TRPI_GOSSIP_NONE && core->gossip->members[at].status != TRP_MEMBER_DOWN) {
        trpi_gossip_send_view(core, &joiner->id, TRPI_FRAME_WELCOME, 0);
    }
}

void
trpi_contact_tick(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    uint32_t self = trpi_core_self_index(core);
    forget_pauses(core);
    if (core->admission.joiners_count == 0 || core->now.mono_ms < core->admission.admit_ms ||
        core->now.waking) {
        return;
    }
    if (self == TRPI_GOSSIP_NONE || core->gossip->members[self].status > TRP_MEMBER_UP) {
        trpi_contact_forget(core,
                            core->admission.joiners_count); /* leaving meanwhile: they ask others */
        return;
    }
    uint32_t max = admitted_max(core);
    uint32_t count = core->admission.joiners_count < max ? core->admission.joiners_count : max;
    trp_err err = admit_first(core, count);
    for (uint32_t i = 0; i < count && err == TRP_OK; i++) {
        send_welcome(core, core->admission.joiners[i]);
    }
    trpi_contact_forget(core, count);
}

void
trpi_contact_forget(trpi_member_core *core, uint32_t count)
{
    trpi_assert_slow(count <= core->admission.joiners_count);
    for (uint32_t i = 0; i < count; i++) {
        trpi_ident_unref(core->admission.joiners[i]);
    }
    core->admission.joiners_count -= count;
    if (core->admission.joiners_count > 0) {
        memmove(core->admission.joiners, core->admission.joiners + count,
                core->admission.joiners_count * sizeof *core->admission.joiners);
    } else if (core->admission.joiners_room > JOINERS_KEPT) {
        trpi_free(core->admission.joiners);
        core->admission.joiners = NULL;
        core->admission.joiners_room = 0;
    }
    trpi_assert_slow(core->admission.joiners_count <= core->admission.joiners_room);
}

void
trpi_contact_join(trpi_member_core *core, const trpi_node_id *from, trpi_frame *frame)
{
    trpi_assert_slow(frame->kind == TRPI_FRAME_JOIN);
    if (!may_ask(core, from, frame)) {
        return;
    }
    uint64_t issued_ms = frame->ticket - 1;
    if (frame->ticket == 0 || issued_ms > core->now.mono_ms ||
        core->now.mono_ms - issued_ms > TICKET_MS) {
        /* membership-contact-J2 */
        send_nack(core, from, TRPI_NACK_NOT_READY, "the ticket has run out");
        return;
    }
    uint32_t index = trpi_gossip_find(core->gossip, frame->ident->key);
    if (index != TRPI_GOSSIP_NONE) {
        if (core->gossip->members[index].status == TRP_MEMBER_DOWN) {
            send_nack(core, from, TRPI_NACK_REMOVED,
                      "this incarnation is Down; restart the process");
        } else {
            trpi_gossip_send_view(core, from, TRPI_FRAME_WELCOME, 0); /* the first one was lost */
        }
        return;
    }
    if (core->options.dial_back && !is_waiting(core, frame->ident)) {
        trpi_prove_joiner(core, frame->ident); /* membership-contact-J12 */
    } else {
        queue_joiner(core, frame->ident); /* finish_step lets it in, in this step if it may */
    }
}

void
trpi_contact_take(trpi_member_core *core, trpi_ident *joiner)
{
    static const trpi_frame nothing = { .kind = TRPI_FRAME_JOIN };
    if (may_ask(core, &joiner->id, &nothing) &&
        trpi_gossip_find(core->gossip, joiner->key) == TRPI_GOSSIP_NONE) {
        queue_joiner(core, joiner); /* else it came in through another one, and asks again */
    }
}

void
trpi_contact_refuse(trpi_member_core *core, const trpi_node_id *to, const char *reason)
{
    send_nack(core, to, TRPI_NACK_REFUSED, reason);
}

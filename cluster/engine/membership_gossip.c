/* membership_gossip.c - gossip rounds, push and pull of views (GOSSIP-06 .. -10).
 *
 * Why.     A digest of a few bytes goes first: only a member with another version gets the view. A
 *          change does not wait for the next round: it is pushed through the cluster in extra
 *          rounds, and each member that it reaches reports to the leader, which alone acts on
 *          convergence.
 * Shape.   digest equal:   join the seen sets; answer if the other lacks a bit
 *          digest other:   answer with the clock; the newer side sends its view, a concurrent one
 *          too view:           merge; answer with the merge if it knows more, else with the digest
 * Must hold.
 *   membership-gossip-W1  Each answer has a smaller ttl than its question, and GONE and STRANGER,
 *       which have none, are not answered: so an exchange of two nodes ends.
 *   membership-gossip-W2  In a converged, idle cluster a node sends one digest a second, whatever
 *       the cluster's size.
 * Tests.   tests/unit/cluster/leader_test.c, tests/sim/sim_test.c
 */
#include "cluster/engine/membership_core.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

#define FIRST_TTL 4u
#define BURST_TARGETS 3u
#define EXTRA_TARGETS 2u
#define BURST_SPACING_MS 20u
#define EXTRA_DELAY_MS 5u /* and up to as long again and more: EXTRA_JITTER_MS */
#define EXTRA_JITTER_MS 25u
#define LEADER_ASKS 8u  /* unseen members that the leader asks in one round */
#define RANDOM_TRIES 4u /* for a random target, before all are counted */
#define HEAL_ONE_IN 4u  /* rounds in which one unreachable member is tried as well */
#define UNMERGED_LOG_MS 10000u

/* ---- sending --------------------------------------------------------------------------------- */

void
trpi_gossip_send_view(trpi_member_core *core, const trpi_node_id *to, uint32_t kind, uint32_t ttl)
{
    trpi_assert_slow(kind == TRPI_FRAME_WELCOME || kind == TRPI_FRAME_ENVELOPE);
    trpi_assert_slow(ttl <= TRPI_FRAME_TTL_MAX);
    trpi_assert_slow(core->seen.bits == core->gossip->members_count);
    trpi_frame frame = { .kind = kind,
                         .to_uid = to->uid,
                         .ttl = ttl,
                         .gossip = core->gossip,
                         .told = &core->votes.told };
    trpi_core_send(core, to, &frame, &core->seen);
    if (kind == TRPI_FRAME_WELCOME) {
        trpi_marks_tell(core, to, 0);
    }
}

static void
send_digest(trpi_member_core *core, const trpi_node_id *to, uint32_t ttl)
{
    trpi_assert_slow(ttl <= TRPI_FRAME_TTL_MAX);
    trpi_assert_slow(core->seen.bits == core->gossip->members_count);
    trpi_frame frame = { .kind = TRPI_FRAME_DIGEST,
                         .to_uid = to->uid,
                         .ttl = ttl,
                         .digest = core->gossip->digest,
                         .told = &core->votes.told };
    bool broken = TRPI_IS_BROKEN(core, TRPI_BROKEN_DIGEST_WITHOUT_SEEN);
    trpi_core_send(core, to, &frame, broken ? NULL : &core->seen);
}

static void
send_version(trpi_member_core *core, const trpi_node_id *to, uint32_t ttl)
{
    trpi_assert_slow(ttl < TRPI_FRAME_TTL_MAX);
    trpi_frame frame = { .kind = TRPI_FRAME_VERSION,
                         .to_uid = to->uid,
                         .ttl = ttl,
                         .digest = core->gossip->digest,
                         .clock = core->gossip->clock,
                         .clock_count = core->gossip->clock_count };
    trpi_core_send(core, to, &frame, NULL);
}

void
trpi_gossip_send_gone(trpi_member_core *core, const trpi_node_id *to, uint32_t status, bool near)
{
    trpi_assert_slow(status == TRP_MEMBER_EXITING || status == TRP_MEMBER_DOWN);
    trpi_frame frame = { .kind = TRPI_FRAME_GONE, .to_uid = to->uid, .code = status, .near = near };
    const trpi_gossip *g = core->gossip;
    frame.keys = trpi_alloc((g->members_count + 1) * sizeof *frame.keys);
    for (uint32_t i = 0; frame.keys != NULL && i < g->members_count; i++) {
        if (g->members[i].status < TRP_MEMBER_EXITING &&
            !trpi_node_id_equal(&g->members[i].ident->id, to)) {
            frame.keys[frame.keys_count++] = g->members[i].ident->key;
        }
    }
    trpi_core_send(core, to, &frame, NULL);
    trpi_free(frame.keys); /* NULL: then it speaks for the sender alone */
}

/* ---- targets --------------------------------------------------------------------------------- */

enum pick { PICK_ANY, PICK_UNSEEN, PICK_SUSPECT };

static bool
is_eligible(const trpi_member_core *core, uint32_t index, enum pick pick)
{
    trpi_assert_slow(index < core->gossip->members_count);
    const trpi_gossip_member *m = &core->gossip->members[index];
    if (m->ident == core->self || m->ident->key == core->self->key) {
        return false;
    }
    bool suspect =
        m->unreachable != 0 && trpi_gossip_observes(core->gossip, core->self->key, m->ident->key);
    if (pick == PICK_SUSPECT) {
        return suspect && m->status != TRP_MEMBER_DOWN;
    }
    if (suspect || (m->status == TRP_MEMBER_DOWN && m->unreachable != 0)) {
        return false;
    }
    return pick == PICK_ANY || !trpi_seen_get(&core->seen, index);
}

/* Return the eligible member with `before` eligible ones before it; TRPI_GOSSIP_NONE when there are
 * fewer, then *ret_count is their number. Words of the seen set that are full are skipped. */
static uint32_t
eligible_at(const trpi_member_core *core, enum pick pick, uint32_t not_index, uint32_t before,
            uint32_t *ret_count)
{
    trpi_assert_slow(core->seen.bits == core->gossip->members_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < core->gossip->members_count; i++) {
        if (pick == PICK_UNSEEN && i % 64 == 0 && core->seen.words[i / 64] == UINT64_MAX) {
            i += 63;
        } else if (i != not_index && is_eligible(core, i, pick) && count++ == before) {
            return i;
        }
    }
    *ret_count = count;
    trpi_assert_slow(count <= core->gossip->members_count);
    return TRPI_GOSSIP_NONE;
}

/* Return a random eligible member: by a few random tries, which suffice when most are eligible,
 * else by counting them. */
static uint32_t
pick_one(trpi_member_core *core, enum pick pick, uint32_t not_index)
{
    uint32_t count = core->gossip->members_count;
    if (pick == PICK_SUSPECT && core->gossip->unreachable_count == 0) {
        return TRPI_GOSSIP_NONE;
    }
    for (uint32_t guess = 0; guess < RANDOM_TRIES; guess++) {
        uint32_t i = trpi_core_random_below(core, count);
        if (i != not_index && is_eligible(core, i, pick)) {
            return i;
        }
    }
    if (eligible_at(core, pick, not_index, UINT32_MAX, &count) != TRPI_GOSSIP_NONE || count == 0) {
        return TRPI_GOSSIP_NONE;
    }
    return eligible_at(core, pick, not_index, trpi_core_random_below(core, count), &count);
}

static const trpi_node_id *
id_of(const trpi_member_core *core, uint32_t index)
{
    trpi_assert_slow(index < core->gossip->members_count);
    return &core->gossip->members[index].ident->id;
}

/* Push the view to up to `targets` members that have not seen it. */
static void
push_to_unseen(trpi_member_core *core, uint32_t targets)
{
    trpi_assert_slow(targets > 0);
    uint32_t before = TRPI_GOSSIP_NONE;
    for (uint32_t i = 0; i < targets; i++) {
        uint32_t index = pick_one(core, PICK_UNSEEN, before);
        if (index == TRPI_GOSSIP_NONE) {
            return;
        }
        trpi_gossip_send_view(core, id_of(core, index), TRPI_FRAME_ENVELOPE, FIRST_TTL);
        before = index;
    }
}

/* Send digests when this node has learned that all have seen a change of votes: a member that is
 * cut off before it hears that counts the vote both ways. Each node does so once. */
static void
tell_votes(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    uint32_t before = TRPI_GOSSIP_NONE;
    for (uint32_t i = 0; i < EXTRA_TARGETS && core->votes_news; i++) {
        uint32_t index = pick_one(core, PICK_ANY, before);
        if (index == TRPI_GOSSIP_NONE) {
            return;
        }
        send_digest(core, id_of(core, index), FIRST_TTL);
        before = index;
    }
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static bool
has_been_seen_by_all(const trpi_member_core *core)
{
    return trpi_seen_count(&core->seen) == core->seen.bits;
}

static bool
seen_by_less_than_half(const trpi_member_core *core)
{
    return trpi_seen_count(&core->seen) * 2 < core->seen.bits;
}

static void
schedule_extra_round(trpi_member_core *core, uint32_t delay_ms, uint32_t jitter_ms)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    uint64_t at = core->now.mono_ms + delay_ms + trpi_core_random_below(core, jitter_ms + 1);
    if (at < core->due.extra_gossip_ms) {
        trpi_core_due_extra_gossip(core, at);
    }
    trpi_assert_slow(core->due.extra_gossip_ms <= at);
}

static uint32_t
leader_index(const trpi_member_core *core)
{
    return trpi_gossip_leader(core->gossip, core->self->key, NULL);
}

void
trpi_gossip_ask(trpi_member_core *core, const trpi_node_id *to)
{
    send_digest(core, to, FIRST_TTL);
}

/* The leader waits for convergence: it asks members that, as far as it knows, have not seen the
 * version. */
static void
leader_asks(trpi_member_core *core)
{
    trpi_assert_slow(!has_been_seen_by_all(core));
    uint32_t leader = leader_index(core);
    if (leader == TRPI_GOSSIP_NONE || core->gossip->members[leader].ident->key != core->self->key) {
        return;
    }
    uint32_t count = core->gossip->members_count;
    uint32_t start = trpi_core_random_below(core, count);
    uint32_t asked = 0;
    for (uint32_t n = 0; n < count && asked < LEADER_ASKS; n++) {
        uint32_t i = (start + n) % count;
        if (is_eligible(core, i, PICK_UNSEEN)) {
            send_digest(core, id_of(core, i), FIRST_TTL);
            asked++;
        }
    }
    trpi_assert_slow(asked <= LEADER_ASKS);
}

/* Send one peer a digest, or the view if it may lack something; now and then also an unreachable
 * member, which may be reachable again. */
static void
regular_round(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    uint32_t index = TRPI_GOSSIP_NONE;
    double dice = (double)(trpi_core_random(core) >> 11) / 9007199254740992.0;
    bool all = has_been_seen_by_all(core);
    if (!all && dice < core->options.gossip_different_view_probability) {
        index = pick_one(core, PICK_UNSEEN, TRPI_GOSSIP_NONE);
    }
    if (index == TRPI_GOSSIP_NONE) {
        index = pick_one(core, PICK_ANY, TRPI_GOSSIP_NONE);
    }
    if (index != TRPI_GOSSIP_NONE) {
        if (trpi_seen_get(&core->seen, index) && !TRPI_BUGGIFY(core)) {
            send_digest(core, id_of(core, index), FIRST_TTL);
        } else { /* a whole view is never wrong */
            trpi_gossip_send_view(core, id_of(core, index), TRPI_FRAME_ENVELOPE, FIRST_TTL);
        }
        trpi_marks_round(core, id_of(core, index));
    }
    if (!all) {
        leader_asks(core);
    }
    if (core->gossip->rows_count > 0 && trpi_core_random_below(core, HEAL_ONE_IN) == 0) {
        index = pick_one(core, PICK_SUSPECT, TRPI_GOSSIP_NONE);
        if (index != TRPI_GOSSIP_NONE) {
            send_digest(core, id_of(core, index), FIRST_TTL);
        }
    }
}

void
trpi_gossip_tick(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    uint64_t now = core->now.mono_ms;
    if (now >= core->due.extra_gossip_ms) {
        trpi_core_due_extra_gossip(core, TRPI_NEVER);
        if (!TRPI_BUGGIFY(core)) { /* an extra round may always be lost */
            push_to_unseen(core, EXTRA_TARGETS);
            tell_votes(core);
        }
        core->votes_news = false;
    }
    if (now >= core->due.gossip_ms) {
        uint32_t interval = core->options.gossip_interval_ms;
        regular_round(core);
        if (core->gossip->members_count > 2 && seen_by_less_than_half(core)) {
            interval = interval / 3 + 1;
        }
        uint32_t jitter = trpi_core_random_below(core, interval / 10 + 1);
        trpi_core_due_gossip(core, now + interval - interval / 20 + jitter);
    }
    trpi_assert_slow(core->due.gossip_ms > now && core->due.extra_gossip_ms > now);
}

/* Send the view to members that are Down here and reachable: it is the last message to them. */
static void
tell_the_downed(trpi_member_core *core)
{
    trpi_assert_slow(core->changed_here);
    for (uint32_t i = 0; i < core->gossip->members_count; i++) {
        const trpi_gossip_member *m = &core->gossip->members[i];
        if (m->status == TRP_MEMBER_DOWN && m->unreachable == 0 &&
            m->ident->key != core->self->key) {
            trpi_gossip_send_view(core, &m->ident->id, TRPI_FRAME_ENVELOPE, 0);
        }
    }
}

void
trpi_gossip_ask_suspects(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    uint32_t asked = 0;
    for (uint32_t i = 0; i < core->gossip->members_count && asked < LEADER_ASKS; i++) {
        if (is_eligible(core, i, PICK_SUSPECT)) {
            send_digest(core, id_of(core, i), FIRST_TTL);
            asked++;
        }
    }
    trpi_assert_slow(asked <= LEADER_ASKS);
}

void
trpi_gossip_spread(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    if (core->changed_here) {
        if (core->now.mono_ms >= core->due.burst_ms + BURST_SPACING_MS || core->due.burst_ms == 0) {
            trpi_core_due_burst(core);
            push_to_unseen(core, BURST_TARGETS);
            tell_the_downed(core);
        } else {
            schedule_extra_round(core, BURST_SPACING_MS, EXTRA_JITTER_MS);
        }
    } else if (core->changed_there) {
        uint32_t leader = leader_index(core);
        if (leader != TRPI_GOSSIP_NONE) {
            uint64_t key = core->gossip->members[leader].ident->key;
            if (key != core->self->key && key != core->heard_from) {
                send_digest(core, id_of(core, leader), FIRST_TTL);
            }
        }
        if (!has_been_seen_by_all(core)) {
            schedule_extra_round(core, EXTRA_DELAY_MS, EXTRA_JITTER_MS);
        }
    }
    if (core->votes_news) {
        schedule_extra_round(core, EXTRA_DELAY_MS, EXTRA_JITTER_MS);
    }
}

/* ---- receiving ------------------------------------------------------------------------------- */

static bool
sender_is_member(trpi_member_core *core, const trpi_node_id *from, uint64_t key, uint32_t kind)
{
    trpi_assert_slow(key != core->self->key);
    if (trpi_gossip_find(core->gossip, key) != TRPI_GOSSIP_NONE) {
        return true;
    }
    core->stats.ignored++; /* membership-E5 */
    const trpi_tombstone *t = trpi_gossip_tombstone(core->gossip, key);
    if (kind == TRPI_FRAME_GONE) {
        return false; /* membership-gossip-W1: each has removed the other */
    } else if (t != NULL) {
        trpi_gossip_send_gone(core, from, t->status, trpi_core_removed_near(core, t));
    } else {
        trpi_frame frame = { .kind = TRPI_FRAME_STRANGER, .to_uid = from->uid };
        trpi_core_send(core, from, &frame, NULL);
    }
    return false;
}

/* Return whether this node knows a vote to be sure that the sender of the frame does not. room: for
 * the set. */
static bool
lacks_votes(const trpi_member_core *core, const trpi_frame *frame, trpi_seen *room)
{
    trpi_assert_slow(room->bits == core->votes.told.bits);
    memset(room->words, 0, room->words_count * sizeof room->words[0]);
    (void)trpi_frame_seen(&frame->sure, room); /* an earlier version says nothing */
    return !trpi_seen_covers(room, &core->votes.told);
}

/* Join the frame's seen set of this node's version. Answers if the sender's set lacks something. */
static void
take_seen(trpi_member_core *core, const trpi_node_id *from, const trpi_frame *frame)
{
    trpi_seen theirs;
    if (trpi_seen_init(&theirs, core->gossip->members_count) != TRP_OK) {
        return;
    }
    if (trpi_frame_seen(&frame->seen, &theirs)) {
        (void)trpi_seen_join(&core->seen, &theirs);
        trpi_core_hear_votes(core, core->gossip, frame);
        trpi_core_learn_votes(core);
        if (frame->ttl > 0 &&
            (!trpi_seen_covers(&theirs, &core->seen) || lacks_votes(core, frame, &theirs))) {
            send_digest(core, from, frame->ttl - 1); /* membership-gossip-W1 */
        }
    }
    trpi_seen_fini(&theirs);
}

static void
take_digest(trpi_member_core *core, const trpi_node_id *from, const trpi_frame *frame)
{
    trpi_assert_slow(frame->kind == TRPI_FRAME_DIGEST);
    if (frame->digest == core->gossip->digest) {
        core->stats.received_same++;
        take_seen(core, from, frame);
    } else if (frame->ttl > 0) {
        send_version(core, from, frame->ttl - 1);
    }
}

static void
take_version(trpi_member_core *core, const trpi_node_id *from, const trpi_frame *frame)
{
    trpi_assert_slow(frame->kind == TRPI_FRAME_VERSION);
    trpi_gossip theirs = { .frozen = true,
                           .clock = frame->clock,
                           .clock_count = frame->clock_count };
    trpi_vclock_order order = trpi_gossip_compare(core->gossip, &theirs);
    if (frame->ttl == 0 || frame->digest == core->gossip->digest) {
        return;
    }
    if (order == TRPI_VCLOCK_BEFORE) {
        send_version(core, from, frame->ttl - 1); /* theirs is newer: "send it" */
    } else {
        trpi_gossip_send_view(core, from, TRPI_FRAME_ENVELOPE, frame->ttl - 1);
    }
}

static void
count_received(trpi_member_core *core, const trpi_gossip *theirs)
{
    trpi_assert_slow(theirs->frozen);
    switch (trpi_gossip_compare(core->gossip, theirs)) {
    case TRPI_VCLOCK_SAME:
        core->stats.received_same++;
        break;
    case TRPI_VCLOCK_BEFORE:
        core->stats.received_newer++;
        break;
    case TRPI_VCLOCK_AFTER:
        core->stats.received_older++;
        break;
    case TRPI_VCLOCK_CONCURRENT:
        core->stats.merged++;
        break;
    }
}

/* Adopt the merged view, with the seen set of the side whose view is equal to it. */
static trp_err
take_merge(trpi_member_core *core, trpi_gossip *merged, const trpi_frame *frame)
{
    trpi_assert_slow(merged->frozen);
    trpi_assert_slow(frame->gossip->frozen);
    bool ours = merged->digest == core->gossip->digest;
    bool theirs = merged->digest == frame->gossip->digest;
    trpi_seen seen;
    trp_err err = trpi_seen_init(&seen, merged->members_count);
    if (err != TRP_OK) {
        return err;
    }
    if (theirs) {
        (void)trpi_frame_seen(&frame->seen, &seen);
    }
    if (ours && core->seen.bits == seen.bits) {
        (void)trpi_seen_join(&seen, &core->seen);
    }
    err = trpi_core_adopt(core, merged, &seen);
    trpi_seen_fini(&seen);
    if (err == TRP_OK) {
        trpi_core_hear_votes(core, frame->gossip, frame);
    }
    if (err == TRP_OK && !ours) {
        core->changed_there = true;
    }
    return err;
}

/* Log that a view cannot be merged: until it is, the two nodes do not agree. */
static void
log_unmerged(trpi_member_core *core, const trpi_node_id *from, trp_err err)
{
    trpi_assert_slow(err != TRP_OK);
    if (core->now.mono_ms >= core->logged.unmerged_ms) {
        char text[TRPI_ADDRESS_TEXT_BYTES];
        trpi_core_log(core, TRP_LOG_ERROR,
                      "the view of %s cannot be merged (%s), tried again with its next gossip: "
                      "a view has at most %u members and %u observations of unreachable ones",
                      trpi_address_format(&from->address, text, sizeof text), trp_strerror(err),
                      TRPI_GOSSIP_MEMBERS_MAX, TRPI_GOSSIP_ROWS_MAX);
        core->logged.unmerged_ms = core->now.mono_ms + UNMERGED_LOG_MS;
    }
}

/* Merge a received view and adopt the result. Answer with it if the sender lacks something, else
 * with the members that have seen it. */
static void
take_envelope(trpi_member_core *core, const trpi_node_id *from, const trpi_frame *frame)
{
    trpi_assert_slow(frame->kind == TRPI_FRAME_ENVELOPE);
    uint32_t self = trpi_gossip_find(frame->gossip, core->self->key);
    if (self == TRPI_GOSSIP_NONE && trpi_gossip_tombstone(frame->gossip, core->self->key) == NULL) {
        core->stats.ignored++; /* membership-E5: a cluster without us */
        return;
    }
    count_received(core, frame->gossip);
    trpi_gossip *merged;
    trp_err err =
        trpi_gossip_cache_merge(core->options.cache, core->gossip, frame->gossip, &merged);
    if (err != TRP_OK) {
        log_unmerged(core, from, err);
        return;
    }
    bool they_know_all = merged->digest == frame->gossip->digest;
    self = trpi_gossip_find(merged, core->self->key);
    bool alive = self != TRPI_GOSSIP_NONE && merged->members[self].status != TRP_MEMBER_DOWN;
    if (take_merge(core, merged, frame) == TRP_OK && frame->ttl > 0 && alive) { /* membership-E4 */
        if (they_know_all) {
            take_seen(core, from, frame); /* answers that we have seen it */
        } else {
            trpi_gossip_send_view(core, from, TRPI_FRAME_ENVELOPE, frame->ttl - 1);
        }
    }
    trpi_gossip_unref(merged);
}

static void
take_gone(trpi_member_core *core, const trpi_node_id *from, const trpi_frame *frame)
{
    trpi_assert_slow(frame->kind == TRPI_FRAME_GONE);
    trpi_assert_slow(trpi_core_self_index(core) != TRPI_GOSSIP_NONE);
    char text[TRPI_ADDRESS_TEXT_BYTES];
    uint32_t self = trpi_core_self_index(core); /* there, or this node would have stopped */
    uint32_t status = core->gossip->members[self].status;
    bool left = frame->code == TRP_MEMBER_EXITING && status >= TRP_MEMBER_LEAVING;
    bool exits = status >= TRP_MEMBER_EXITING; /* this node only waits to be removed */
    if (!left && !exits && !trpi_downing_asks_lease(core->downing)) {
        (void)trpi_removed_by(core, from, frame); /* membership-removed-X1 */
        return;
    }
    trpi_core_log(core, left ? TRP_LOG_INFO : TRP_LOG_WARNING, "%s says that this node has been %s",
                  trpi_address_format(&from->address, text, sizeof text),
                  left ? "removed after leaving" : "removed");
    trpi_core_stop(core, left ? TRPI_STOP_LEFT : TRPI_STOP_DOWNED); /* membership-removed-X2 */
}

void
trpi_gossip_frame(trpi_member_core *core, const trpi_node_id *from, trpi_frame *frame)
{
    trpi_assert_slow(frame->kind > TRPI_FRAME_JOIN && frame->kind < TRPI_FRAME_KIND_COUNT);
    uint64_t key = trpi_ident_key(from);
    if (core->phase != TRPI_PHASE_MEMBER || frame->to_uid == 0 || key == core->self->key) {
        core->stats.ignored++;
        return;
    }
    if (frame->kind == TRPI_FRAME_STRANGER) {
        trpi_seek_introduce(core, from); /* asks whether it is a member; answers nothing: no echo */
        return;
    }
    if (!sender_is_member(core, from, key, frame->kind)) {
        return;
    }
    core->heard_from = key;
    if (frame->kind != TRPI_FRAME_GONE) {
        trpi_removed_heard(core, key);
    }
    switch (frame->kind) {
    case TRPI_FRAME_DIGEST:
        take_digest(core, from, frame);
        break;
    case TRPI_FRAME_VERSION:
        take_version(core, from, frame);
        break;
    case TRPI_FRAME_ENVELOPE:
        take_envelope(core, from, frame);
        break;
    case TRPI_FRAME_EXITING_CONFIRMED:
        trpi_exiting_confirmed(core, from, key);
        break;
    case TRPI_FRAME_GONE:
        take_gone(core, from, frame);
        break;
    case TRPI_FRAME_MARKS:
        trpi_marks_frame(core, from, frame);
        break;
    default:
        break;
    }
}

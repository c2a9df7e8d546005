/* membership_seed.c - how a node gets into a cluster (SEED, MEMB-04); how a cluster lets it in is
 * membership_contact.c.
 *
 * Shape.   joiner                                     contact (any member)
 *            | -- INIT_JOIN to every seed ---------->   |
 *            | <------------- INIT_JOIN_ACK, ticket --  |  or NACK: not ready, or never
 *            | -- JOIN, ticket, roles --------------->  |  adds the joiner as Joining
 *            | <--------------------------- WELCOME --  |  the view with the joiner in it
 * Must hold.
 *   membership-seed-J1  Only the first seed may create a cluster, and only when all others said
 *       that they are in none, or none answered for seed-node-timeout. So a first seed that
 *       restarts comes back to the cluster that it left. If one was in a cluster when it answered,
 *       the silence must last longer by two times stable-after: it may be over when that cluster
 *       has settled. A node that is refused by a member, by all others, or because another node has
 *       its address, or had it and is looked for, has been answered, and creates none
 *       (membership-seed-J6).
 *   membership-seed-J5  A contact may crash after its WELCOME and before it has spread the join.
 *       Then the members answer the joiner's gossip with STRANGER, and it joins them as well; its
 *       view and theirs are of one cluster and merge. Not before the contact has had INTRODUCE_MS
 *       to spread it: else each of many joiners is let in by many contacts, each with a version of
 *       its own.
 *   membership-seed-J6  A node whose configuration does not fit ends, with the key named, and does
 *       not ask for ever: when a member has said so, or every other seed is another system or knows
 *       another secret, and none has let it in within REFUSED_MS. One foreign seed proves nothing:
 *       its address may have been given to another system.
 *   membership-seed-J7  A pause of this node does not count as silence of the seeds
 *       (membership-seed-J1).
 *   membership-seed-J8  A list that is looked up anew (trpi_seek_found) may be incomplete: a
 *       cluster is made only when it has been the same, and of enough addresses, for
 *       seed-node-timeout, and the answer that came then, or later, was this list still: silence of
 *       the name service confirms none.
 *   membership-seed-J13 A JOIN that a member refuses is tried again with back-off: after 1 s, then
 *       twice as long each time, up to 10 s; the refusal is kept as the reason why this node has
 *       not joined. While members refuse, this node creates no cluster (membership-seed-J1).
 *   membership-seed-J14 Answers count only from nodes that were asked: the seeds and the contact.
 *   membership-seed-J15 A node whose address only its own host can dial joins only such nodes, and
 *       they only such: else others would find it unreachable, or hold two of them for one.
 *   membership-seed-J16 A joiner may be let in, missed, marked Down and removed before it hears any
 *       of it. The seeds and the contact refuse its incarnation from then on, and it ends instead
 *       of asking for ever.
 * Tests.   tests/unit/cluster/join_test.c, seek_test.c
 */
#include "cluster/engine/membership_core.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

#define ASK_AGAIN_MS 500u
#define JOIN_AGAIN_MS 1000u
#define REFUSED_LOG_MS 10000u
#define REFUSED_MS 3000u       /* membership-seed-J6 */
#define REFUSED_AGAIN_MS 1000u /* membership-seed-J13 */
#define REFUSED_AGAIN_MS_MAX 10000u
#define INTRODUCE_MS 2000u
#define WAIT_LOG_FIRST_MS 2000u
#define WAIT_LOG_MS 10000u

/* ---- the joiner ------------------------------------------------------------------------------ */

bool
trpi_seek_is_compatible_host(const trpi_member_core *core, const trpi_address *address)
{
    return trpi_host_is_loopback(core->self->id.address.host) ==
           trpi_host_is_loopback(address->host);
}

/* membership-seed-J15 */
static bool
are_compatible_hosts(trpi_member_core *core, const trpi_address *addresses, uint32_t count)
{
    trpi_assert_slow(count > 0 && count <= TRPI_SEEDS_MAX);
    const char *own = core->self->id.address.host;
    for (uint32_t i = 0; i < count; i++) {
        if (!trpi_seek_is_compatible_host(core, &addresses[i])) {
            trpi_core_log(core, TRP_LOG_ERROR,
                          "this node cannot join as it is configured: remote.hostname: %.100s and "
                          "the seed node's %.100s: " TRPI_LOOPBACK_HELP,
                          own, addresses[i].host);
            return false;
        }
    }
    return true;
}

/* A cluster of this node alone: Joining under its own leadership, Up before the step ends
 * (SEED-10). */
static trp_err
create_cluster(trpi_member_core *core)
{
    trpi_gossip *edited = trpi_gossip_new();
    if (edited == NULL) {
        return TRP_ENOMEM;
    }
    trp_err err = trpi_gossip_add(edited, core->self, TRP_MEMBER_JOINING, 0);
    if (err != TRP_OK) {
        trpi_gossip_unref(edited);
        return err;
    }
    err = trpi_core_commit(core, edited);
    if (err == TRP_OK) {
        core->phase = TRPI_PHASE_MEMBER;
        trpi_core_due_member(core, core->now.mono_ms);
        trpi_core_log(core, TRP_LOG_INFO, "making a new cluster of this node alone");
    }
    return err;
}

/* membership-seed-J1: how long no seed may answer before this node creates a cluster. */
static uint32_t
silence_ms(const trpi_member_core *core)
{
    uint32_t ms = core->options.seed_node_timeout_ms;
    return core->seek.met_cluster ? ms + 2 * core->options.downing.stable_after_ms : ms;
}

/* membership-seed-J8 */
static bool
may_trust_seeds(const trpi_seek *seek)
{
    return seek->settled_ms == 0 || seek->confirmed;
}

static void
wait_for_seeds(trpi_member_core *core)
{
    core->seek.give_up_ms =
        core->seek.may_create ? core->now.mono_ms + silence_ms(core) : TRPI_NEVER;
}

static void
ask_again(trpi_member_core *core, uint32_t delay_ms)
{
    /* met_cluster is set: earlier answers count no more (membership-seed-J1) */
    core->seek.joining = false;
    core->seek.next_ms = core->now.mono_ms + delay_ms;
    wait_for_seeds(core);
}

/* Begin to ask these seeds; earlier seeds and their answers are dropped. */
static void
seek_begin(trpi_member_core *core, const trpi_address *addresses, uint32_t count)
{
    trpi_assert_slow(count > 0 && count <= TRPI_SEEDS_MAX);
    memset(&core->seek, 0, sizeof core->seek);
    core->seek.addresses_count = count;
    memcpy(core->seek.addresses, addresses, count * sizeof *addresses);
    core->seek.begin_ms = core->now.mono_ms;
    core->seek.log_ms = core->now.mono_ms + WAIT_LOG_FIRST_MS;
    core->phase = TRPI_PHASE_SEEKING;
}

trp_err
trpi_seek_start(trpi_member_core *core, const trpi_address *addresses, uint32_t count)
{
    trpi_assert(count > 0 && count <= TRPI_SEEDS_MAX);
    bool only_self = true;
    for (uint32_t i = 0; i < count; i++) {
        only_self = only_self && trpi_seek_is_self(core, &addresses[i]);
    }
    if (only_self && core->options.may_not_create_cluster) {
        return TRP_EINVAL;
    }
    if (!are_compatible_hosts(core, addresses, count)) {
        return TRP_ECONFIG;
    }
    if (only_self) {
        memset(&core->seek, 0, sizeof core->seek);
        return create_cluster(core);
    }
    seek_begin(core, addresses, count);
    core->seek.may_create =
        trpi_seek_is_self(core, &addresses[0]) && !core->options.may_not_create_cluster;
    ask_again(core, 0);
    return TRP_OK;
}

/* membership-seed-J8: the lowest address is the first seed, on every node. */
trp_err
trpi_seek_found(trpi_member_core *core, const trpi_address *addresses, uint32_t count)
{
    trpi_assert(count > 0 && count <= TRPI_SEEDS_MAX);
    trpi_seek *seek = &core->seek;
    if (core->phase == TRPI_PHASE_SEEKING && seek->settled_ms == 0) {
        return TRP_ESTATE; /* an operator has given other seeds since (SEED-11) */
    }
    if (!are_compatible_hosts(core, addresses, count)) {
        trpi_core_stop(core, TRPI_STOP_INCOMPATIBLE);
        return TRP_ECONFIG;
    }
    bool same = core->phase == TRPI_PHASE_SEEKING && count == seek->addresses_count;
    for (uint32_t i = 0; i < count && same; i++) {
        same = trpi_address_equal(&addresses[i], &seek->addresses[i]);
    }
    if (same) {
        seek->confirmed = core->now.mono_ms >= seek->settled_ms;
        seek->next_ms = seek->joining ? seek->next_ms : core->now.mono_ms;
        return TRP_OK;
    }
    trpi_seek before = *seek;
    bool first = core->phase != TRPI_PHASE_SEEKING;
    seek_begin(core, addresses, count);
    if (!first) {
        seek->begin_ms = before.begin_ms;
        seek->log_ms = before.log_ms;
        seek->met_cluster = before.met_cluster;
        seek->refusals = before.refusals;
        memcpy(seek->why, before.why, sizeof seek->why);
    }
    if (!first && before.joining) { /* the contact has answered: this is for the next attempt */
        seek->joining = true;
        seek->contact = before.contact;
        seek->ticket = before.ticket;
        seek->next_ms = before.next_ms;
        seek->give_up_ms = before.give_up_ms;
    }
    seek->settled_ms = core->now.mono_ms + core->options.seed_node_timeout_ms;
    seek->may_create = count >= core->options.required_contact_points &&
                       trpi_seek_is_self(core, &addresses[0]) &&
                       !core->options.may_not_create_cluster;
    if (!seek->joining) {
        ask_again(core, 0);
    }
    return TRP_OK;
}

void
trpi_seek_own_pause(trpi_member_core *core, uint64_t pause_ms)
{
    trpi_assert_slow(pause_ms > 0);
    uint64_t *times[] = { &core->seek.give_up_ms, &core->seek.settled_ms, &core->seek.refused_ms };
    for (size_t i = 0; core->phase == TRPI_PHASE_SEEKING && i < sizeof times / sizeof times[0];
         i++) { /* membership-seed-J7 */
        *times[i] += *times[i] == 0 || *times[i] == TRPI_NEVER ? 0 : pause_ms;
    }
}

const trpi_address *
trpi_member_seeds(const trpi_member_core *core, uint32_t *ret_count)
{
    trpi_assert_slow(core->seek.addresses_count <= TRPI_SEEDS_MAX);
    *ret_count = core->phase == TRPI_PHASE_SEEKING ? core->seek.addresses_count : 0;
    return core->seek.addresses;
}

const char *
trpi_member_seek_why(const trpi_member_core *core)
{
    return core->phase == TRPI_PHASE_SEEKING ? core->seek.why : "";
}

/* ---- refused for what this node is (membership-seed-J6) -------------------------------------- */

static uint32_t
seed_index(const trpi_seek *seek, const trpi_address *address)
{
    trpi_assert_slow(seek->addresses_count <= TRPI_SEEDS_MAX);
    for (uint32_t i = 0; i < seek->addresses_count; i++) {
        if (trpi_address_equal(&seek->addresses[i], address)) {
            return i;
        }
    }
    return TRPI_SEEDS_MAX;
}

/* Return whether there is another seed, and each one refuses this node. */
static bool
all_refuse(const trpi_member_core *core)
{
    trpi_assert_slow(core->seek.addresses_count <= TRPI_SEEDS_MAX);
    const trpi_seek *seek = &core->seek;
    bool all = true, any = false;
    for (uint32_t i = 0; i < seek->addresses_count; i++) {
        all = all && (seek->refused[i] || trpi_seek_is_self(core, &seek->addresses[i]));
        any = any || seek->refused[i];
    }
    return all && any;
}

static void
refused_because(trpi_member_core *core, const char *why)
{
    trpi_seek *seek = &core->seek;
    if (seek->refused_ms == 0) {
        seek->refused_ms = core->now.mono_ms;
        (void)snprintf(seek->refused_why, sizeof seek->refused_why, "%s", why);
    }
}

void
trpi_seek_refused(trpi_member_core *core, const trpi_address *address, const char *why)
{
    trpi_assert_slow(core->phase != TRPI_PHASE_STOPPED);
    uint32_t i = seed_index(&core->seek, address);
    if (core->phase != TRPI_PHASE_SEEKING || i >= TRPI_SEEDS_MAX) {
        return;
    }
    core->seek.refused[i] = true; /* membership-seed-J1, also for a node that a difference warns */
    if (!core->options.incompatible_warns) {
        refused_because(core, why);
    }
}

/* membership-seed-J1: a seed that refuses this node is alive and has answered: this is no silence.
 */
void
trpi_seek_rival(trpi_member_core *core, const trpi_address *address)
{
    trpi_seek *seek = &core->seek;
    if (core->phase != TRPI_PHASE_SEEKING || seek->joining ||
        seed_index(seek, address) >= TRPI_SEEDS_MAX) {
        return;
    }
    (void)snprintf(seek->why, sizeof seek->why,
                   "%.80s:%u refuses this node: another node has its address, or had it and is "
                   "looked for",
                   address->host, address->port);
    wait_for_seeds(core);
}

void
trpi_seek_removed(trpi_member_core *core, const trpi_address *address)
{
    trpi_seek *seek = &core->seek;
    bool is_contact = seek->joining && trpi_address_equal(&seek->contact.address, address);
    trpi_assert_slow(core->phase == TRPI_PHASE_SEEKING);
    if (!is_contact && seed_index(seek, address) >= TRPI_SEEDS_MAX) {
        return; /* membership-seed-J14 */
    }
    trpi_core_log(core, TRP_LOG_WARNING,
                  "cannot join: %.80s:%u has removed this incarnation from its cluster, before it "
                  "knew that it was in; restart the process",
                  address->host, address->port);
    trpi_core_stop(core, TRPI_STOP_DOWNED);
}

/* Note that a seed has answered: the node there is of this system. */
static void
note_answer(trpi_member_core *core, const trpi_address *address)
{
    trpi_seek *seek = &core->seek;
    uint32_t i = seed_index(seek, address);
    if (i < TRPI_SEEDS_MAX && seek->refused[i]) {
        seek->refused[i] = false;
        seek->refused_ms = seek->incompatible ? seek->refused_ms : 0;
    }
}

static bool
is_refused(const trpi_member_core *core)
{
    const trpi_seek *seek = &core->seek;
    if (seek->joining || seek->refused_ms == 0 ||
        core->now.mono_ms < seek->refused_ms + REFUSED_MS) {
        return false;
    }
    return seek->incompatible || all_refuse(core);
}

static void
send_init_join(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_SEEKING && !core->seek.joining);
    trpi_frame frame = { .kind = TRPI_FRAME_INIT_JOIN,
                         .code = core->compat != NULL && core->options.incompatible_warns,
                         .compat = core->compat };
    memcpy(frame.system, core->self->id.address.system, sizeof frame.system);
    for (uint32_t i = 0; i < core->seek.addresses_count; i++) {
        if (!trpi_seek_is_self(core, &core->seek.addresses[i])) {
            trpi_node_id to = { .address = core->seek.addresses[i], .uid = 0 };
            trpi_core_send(core, &to, &frame, NULL);
        }
    }
}

static void
send_join(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_SEEKING && core->seek.joining);
    trpi_frame frame = { .kind = TRPI_FRAME_JOIN,
                         .to_uid = core->seek.contact.uid,
                         .ticket = core->seek.ticket,
                         .ident = core->self };
    trpi_core_send(core, &core->seek.contact, &frame, NULL);
    core->seek.next_ms = core->now.mono_ms + JOIN_AGAIN_MS;
}

/* Log that the join goes on: a node that waits without a line seems to hang. */
static void
log_waiting(trpi_member_core *core)
{
    trpi_seek *seek = &core->seek;
    char text[TRPI_ADDRESS_TEXT_BYTES], others[32] = "";
    uint32_t first = 0, count = 0;
    for (uint32_t i = seek->addresses_count; i-- > 0;) {
        if (!trpi_seek_is_self(core, &seek->addresses[i])) {
            first = i;
            count++;
        }
    }
    if (count > 1) {
        (void)snprintf(others, sizeof others, " (and %u more)", count - 1);
    }
    trpi_core_log(core, TRP_LOG_INFO,
                  "not joined yet, after %u s: waiting for a cluster at seed node %s%s",
                  (unsigned)((core->now.mono_ms - seek->begin_ms) / 1000),
                  trpi_address_format(&seek->addresses[first], text, sizeof text), others);
    seek->log_ms = core->now.mono_ms + WAIT_LOG_MS;
}

void
trpi_seek_tick(trpi_member_core *core)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_SEEKING);
    trpi_seek *seek = &core->seek;
    uint64_t now = core->now.mono_ms;
    if (is_refused(core)) { /* membership-seed-J6 */
        trpi_core_log(core, TRP_LOG_ERROR, "this node cannot join as it is configured: %s%s",
                      seek->refused_why,
                      seek->incompatible && strncmp(seek->refused_why, "cluster.", 8) == 0
                          ? "; cluster.enforce-compatible = off joins all the same"
                          : ""); /* nothing would */
        trpi_core_stop(core, TRPI_STOP_INCOMPATIBLE);
        return;
    }
    if (now >= seek->give_up_ms && !seek->joining &&
        (!may_trust_seeds(seek) || seek->incompatible || all_refuse(core))) {
        seek->give_up_ms = now + ASK_AGAIN_MS; /* membership-seed-J8; membership-seed-J1 */
    }
    if (now >= seek->give_up_ms) {
        if (!seek->joining) {
            trpi_core_log(core, TRP_LOG_INFO, "no seed answered for %u ms", silence_ms(core));
            (void)create_cluster(core); /* no memory: the next tick tries again */
            return;
        }
        char text[TRPI_ADDRESS_TEXT_BYTES];
        trpi_core_log(core, TRP_LOG_WARNING, "no welcome from %s, asking the seeds again",
                      trpi_address_format(&seek->contact.address, text, sizeof text));
        ask_again(core, 0);
    }
    if (now >= seek->log_ms) {
        log_waiting(core);
    }
    if (now < seek->next_ms) {
        return;
    }
    if (seek->joining) {
        send_join(core);
    } else {
        send_init_join(core);
        seek->next_ms = now + ASK_AGAIN_MS + trpi_core_random_below(core, ASK_AGAIN_MS / 10);
    }
}

/* Return whether this node has joined but was never Up: maybe no live member knows it
 * (membership-seed-J5). */
static bool
is_unknown_joiner(const trpi_member_core *core, const trpi_node_id *to)
{
    uint32_t self = trpi_core_self_index(core);
    uint32_t other = core->gossip == NULL ? TRPI_GOSSIP_NONE
                                          : trpi_gossip_find(core->gossip, trpi_ident_key(to));
    return core->phase == TRPI_PHASE_MEMBER && self != TRPI_GOSSIP_NONE &&
           other != TRPI_GOSSIP_NONE && core->gossip->members[self].up_number == 0 &&
           core->gossip->members[self].status <= TRP_MEMBER_LEAVING &&
           core->gossip->members[other].status <= TRP_MEMBER_LEAVING;
}

void
trpi_seek_introduce(trpi_member_core *core, const trpi_node_id *to)
{
    trpi_assert_slow(core->phase == TRPI_PHASE_MEMBER);
    if (is_unknown_joiner(core, to) && core->now.mono_ms >= core->welcome_ms + INTRODUCE_MS) {
        trpi_frame frame = { .kind = TRPI_FRAME_INIT_JOIN, .to_uid = to->uid };
        memcpy(frame.system, core->self->id.address.system, sizeof frame.system);
        trpi_core_send(core, to, &frame, NULL);
    }
}

/* membership-seed-J14 */
static bool
was_asked(const trpi_seek *seek, const trpi_node_id *from)
{
    trpi_assert_slow(seek->addresses_count <= TRPI_SEEDS_MAX);
    return seed_index(seek, &from->address) < TRPI_SEEDS_MAX ||
           (seek->joining && trpi_node_id_equal(&seek->contact, from));
}

static void
take_ack(trpi_member_core *core, const trpi_node_id *from, const trpi_frame *frame)
{
    trpi_assert_slow(frame->kind == TRPI_FRAME_INIT_JOIN_ACK);
    trpi_foreign_heard(core, from);
    if (frame->ticket != 0 && is_unknown_joiner(core, from)) {
        trpi_frame join = { .kind = TRPI_FRAME_JOIN,
                            .to_uid = from->uid,
                            .ticket = frame->ticket,
                            .ident = core->self };
        trpi_core_send(core, from, &join, NULL);
        return;
    }
    if (core->phase != TRPI_PHASE_SEEKING || core->seek.joining || frame->ticket == 0 ||
        from->uid == 0 || !was_asked(&core->seek, from)) {
        return; /* membership-seed-J14 */
    }
    char text[TRPI_ADDRESS_TEXT_BYTES];
    (void)trpi_address_format(&from->address, text, sizeof text);
    trpi_core_log(core, TRP_LOG_INFO, "joining through %s", text);
    if (frame->reason[0] != '\0') { /* membership-seed-J6, and enforce-compatible is off here */
        trpi_core_log(core, TRP_LOG_WARNING, "configured otherwise than %s: %s", text,
                      frame->reason);
    }
    /* membership-seed-J6: a node that is let in begins anew if it has to ask again */
    core->seek.incompatible = false;
    core->seek.refused_ms = 0;
    note_answer(core, &from->address);
    core->seek.joining = true;
    core->seek.met_cluster = true;
    core->seek.contact = *from;
    core->seek.ticket = frame->ticket;
    core->seek.give_up_ms =
        core->options.retry_unsuccessful_join_after_ms == TRPI_MEMBER_OFF
            ? TRPI_NEVER
            : core->now.mono_ms + core->options.retry_unsuccessful_join_after_ms;
    send_join(core);
}

/* Return the back-off after a refused JOIN. */
static uint32_t
refused_wait_ms(trpi_member_core *core)
{
    uint32_t ms = REFUSED_AGAIN_MS;
    for (uint32_t i = 1; i < core->seek.refusals && ms < REFUSED_AGAIN_MS_MAX; i++) {
        ms *= 2;
    }
    ms = ms < REFUSED_AGAIN_MS_MAX ? ms : REFUSED_AGAIN_MS_MAX;
    return ms + trpi_core_random_below(core, ms / 10);
}

/* membership-seed-J13: a member does not let this node in as things are. */
static void
take_refusal(trpi_member_core *core, const trpi_node_id *from, const char *why)
{
    trpi_seek *seek = &core->seek;
    char text[TRPI_ADDRESS_TEXT_BYTES], next[48] = "asking again";
    (void)snprintf(seek->why, sizeof seek->why, "%.80s:%u refuses this node: %s",
                   from->address.host, from->address.port, why);
    if (seek->joining && trpi_node_id_equal(&seek->contact, from)) {
        seek->refusals++;
        uint32_t wait_ms = refused_wait_ms(core);
        ask_again(core, wait_ms);
        (void)snprintf(next, sizeof next, "asking again in %u s", (wait_ms + 500) / 1000);
    } else if (!seek->joining) {
        wait_for_seeds(core); /* a member is there: this is no silence (membership-seed-J1) */
    }
    if (core->now.mono_ms >= core->logged.refused_ms) {
        trpi_core_log(core, TRP_LOG_WARNING, "%s refuses this node: %s; %s",
                      trpi_address_format(&from->address, text, sizeof text), why, next);
        core->logged.refused_ms = core->now.mono_ms + REFUSED_LOG_MS;
    }
}

static void
take_nack(trpi_member_core *core, const trpi_node_id *from, const trpi_frame *frame)
{
    trpi_assert_slow(frame->kind == TRPI_FRAME_INIT_JOIN_NACK);
    trpi_seek *seek = &core->seek;
    if (frame->code == TRPI_NACK_REMOVED || frame->code == TRPI_NACK_LEFT ||
        frame->code == TRPI_NACK_LEAVING || frame->code == TRPI_NACK_INCOMPATIBLE) {
        trpi_foreign_heard(core, from);
    }
    if (frame->code == TRPI_NACK_REMOVED) {
        trpi_removed_by_successor(core, from);
    }
    if (core->phase != TRPI_PHASE_SEEKING || !was_asked(seek, from)) {
        core->stats.ignored += core->phase == TRPI_PHASE_SEEKING ? 1 : 0;
        return;
    }
    if (frame->code == TRPI_NACK_INCOMPATIBLE) {
        if (seed_index(seek, &from->address) < TRPI_SEEDS_MAX) {
            seek->refused_ms = seek->incompatible ? seek->refused_ms : 0; /* this one's own grace */
            seek->incompatible = true;
            seek->met_cluster = true;
            refused_because(core, frame->reason);
        }
        return;
    }
    note_answer(core, &from->address);
    if (frame->code == TRPI_NACK_REMOVED || frame->code == TRPI_NACK_LEFT) {
        trpi_core_log(core, TRP_LOG_WARNING, "cannot join: %s", frame->reason);
        trpi_core_stop(core, frame->code == TRPI_NACK_LEFT ? TRPI_STOP_LEFT : TRPI_STOP_DOWNED);
        return;
    }
    if (frame->code == TRPI_NACK_REFUSED) {
        take_refusal(core, from, frame->reason);
        return;
    }
    if (frame->code == TRPI_NACK_LEAVING) {
        (void)snprintf(seek->why, sizeof seek->why, "%.80s:%u does not let this node in yet: %s",
                       from->address.host, from->address.port, frame->reason);
    }
    if (seek->joining) {
        if (trpi_node_id_equal(&seek->contact, from)) { /* the ticket has run out, or it leaves */
            ask_again(core, ASK_AGAIN_MS);
        }
        return;
    }
    uint32_t at = seed_index(seek, &from->address);
    if (at < TRPI_SEEDS_MAX) {
        seek->nacked[at] = frame->code != TRPI_NACK_LEAVING;
    }
    /* membership-seed-J1: there is a cluster; do not make another one yet */
    if (frame->code == TRPI_NACK_LEAVING) {
        seek->met_cluster = true;
        wait_for_seeds(core);
        return;
    }
    bool all = true;
    for (uint32_t i = 0; i < seek->addresses_count; i++) {
        all = all && (seek->nacked[i] || trpi_seek_is_self(core, &seek->addresses[i]));
    }
    if (all && seek->may_create && !seek->met_cluster && may_trust_seeds(seek)) {
        /* membership-seed-J1, membership-seed-J8; a node that has met a cluster waits for it until
         * give_up_ms */
        trpi_core_log(core, TRP_LOG_INFO, "all other seeds are in no cluster yet");
        (void)create_cluster(core); /* no memory: give_up_ms tries again */
    }
}

void
trpi_core_welcome_frame(trpi_member_core *core, const trpi_node_id *from, trpi_frame *frame)
{
    trpi_assert_slow(frame->kind == TRPI_FRAME_WELCOME);
    if (core->phase == TRPI_PHASE_MEMBER) {
        /* membership-seed-J5, or a second answer to a repeated JOIN */
        frame->kind = TRPI_FRAME_ENVELOPE;
        trpi_gossip_frame(core, from, frame);
        return;
    }
    if (core->phase != TRPI_PHASE_SEEKING || !core->seek.joining ||
        !trpi_node_id_equal(from, &core->seek.contact)) {
        core->stats.ignored++; /* GOSSIP-16: only from the contact */
        return;
    }
    uint32_t self = trpi_gossip_find(frame->gossip, core->self->key);
    if (self == TRPI_GOSSIP_NONE || frame->gossip->members[self].status == TRP_MEMBER_DOWN ||
        trpi_gossip_find_address(frame->gossip, from) == TRPI_GOSSIP_NONE) {
        core->stats.ignored++;
        return;
    }
    trpi_seen seen;
    if (trpi_seen_init(&seen, frame->gossip->members_count) != TRP_OK) {
        return; /* asked again by the next JOIN */
    }
    (void)trpi_frame_seen(&frame->seen, &seen); /* a set that does not fit is an empty one */
    trp_err err = trpi_core_adopt(core, frame->gossip, &seen);
    trpi_seen_fini(&seen);
    if (err != TRP_OK) {
        return;
    }
    trpi_core_hear_votes(core, frame->gossip, frame);
    char text[TRPI_ADDRESS_TEXT_BYTES];
    trpi_core_log(core, TRP_LOG_INFO, "welcome from %s, %u members",
                  trpi_address_format(&from->address, text, sizeof text),
                  frame->gossip->members_count);
    core->phase = TRPI_PHASE_MEMBER;
    core->welcome_ms = core->now.mono_ms;
    core->changed_there = true;
    core->heard_from = 0; /* the contact, too, wants to know that we have seen it */
    trpi_core_due_member(core, core->now.mono_ms + core->options.leader_actions_interval_ms);
    trpi_frame digest = { .kind = TRPI_FRAME_DIGEST,
                          .to_uid = from->uid,
                          .ttl = 2,
                          .digest = core->gossip->digest,
                          .told = &core->votes.told };
    trpi_core_send(core, from, &digest, &core->seen);
}

void
trpi_seek_frame(trpi_member_core *core, const trpi_node_id *from, trpi_frame *frame)
{
    trpi_assert_slow(frame->kind > 0 && frame->kind <= TRPI_FRAME_JOIN);
    switch (frame->kind) {
    case TRPI_FRAME_INIT_JOIN:
        trpi_contact_init_join(core, from, frame);
        break;
    case TRPI_FRAME_INIT_JOIN_ACK:
        take_ack(core, from, frame);
        break;
    case TRPI_FRAME_INIT_JOIN_NACK:
        take_nack(core, from, frame);
        break;
    default:
        trpi_contact_join(core, from, frame);
        break;
    }
}

/* membership_seed.c - how a node gets into a cluster, and how a cluster lets it in (SEED, MEMB-04,
 * -29).
 *
 * Shape.   joiner                                     contact (any member)
 *            | -- INIT_JOIN to every seed ---------->   |
 *            | <------------- INIT_JOIN_ACK, ticket --  |  or NACK: not ready, or never
 *            | -- JOIN, ticket, roles --------------->  |  adds the joiner as Joining
 *            | <--------------------------- WELCOME --  |  the view with the joiner in it
 * Must hold.
 *   J1  Only the first of the seeds may make a cluster, and only when all others said that they
 *       are in none, or nobody answered for seed-node-timeout. So a first seed that restarts comes
 *       back to the cluster that it left. If one was in a cluster when it answered, the silence
 *       must last longer by two times stable-after: it may be over when that cluster has settled.
 *   J2  A JOIN needs a ticket which the contact gave out a short while ago: a JOIN that was stuck
 *       in the network cannot throw out the incarnation that has taken its sender's place since.
 *   J3  A new incarnation means that the old one is gone, whatever its status: it becomes Down at
 *       once.
 *   J4  A removed incarnation is never let in again; it is told so.
 *   J5  A contact may die after its WELCOME and before it has told anybody. Then the members
 *       answer the joiner's gossip with STRANGER, and it joins them as well; its view and theirs
 *       are of one cluster and merge.
 * Tests.   tests/unit/cluster/join_test.c
 */
#include "cluster/membership_core.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

#define ASK_AGAIN_MS 500u
#define JOIN_AGAIN_MS 1000u
#define TICKET_MS 15000u
#define REFUSED_LOG_MS 10000u
#define WAIT_LOG_FIRST_MS 2000u
#define WAIT_LOG_MS 10000u

/* ---- the joiner ------------------------------------------------------------------------------ */

static bool
is_self_address(const trpi_member_core *core, const trpi_address *address)
{
    return trpi_address_equal(address, &core->self->id.address);
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
        core->gossip_ms = core->now.mono_ms + core->options.gossip_interval_ms;
        core->leader_ms = core->now.mono_ms;
        trpi_core_log(core, TRP_LOG_INFO, "making a new cluster of this node alone");
    }
    return err;
}

/* J1: how long nobody may answer before this node makes a cluster. */
static uint32_t
silence_ms(const trpi_member_core *core)
{
    uint32_t ms = core->options.seed_node_timeout_ms;
    return core->seek.met_cluster ? ms + 2 * core->options.downing.stable_after_ms : ms;
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
    core->seek.joining = false;
    core->seek.next_ms = core->now.mono_ms + delay_ms;
    wait_for_seeds(core);
}

trp_err
trpi_seek_start(trpi_member_core *core, const trpi_address *addresses, uint32_t count)
{
    trpi_assert(count > 0 && count <= TRPI_SEEDS_MAX);
    bool only_self = true;
    for (uint32_t i = 0; i < count; i++) {
        only_self = only_self && is_self_address(core, &addresses[i]);
    }
    if (only_self && core->options.may_not_create_cluster) {
        return TRP_EINVAL;
    }
    memset(&core->seek, 0, sizeof(core->seek));
    core->seek.addresses_count = count;
    memcpy(core->seek.addresses, addresses, count * sizeof(*addresses));
    core->seek.may_create =
        is_self_address(core, &addresses[0]) && !core->options.may_not_create_cluster;
    if (only_self) {
        return create_cluster(core);
    }
    core->phase = TRPI_PHASE_SEEKING;
    core->seek.begin_ms = core->now.mono_ms;
    core->seek.log_ms = core->now.mono_ms + WAIT_LOG_FIRST_MS;
    ask_again(core, 0);
    return TRP_OK;
}

static void
send_init_join(trpi_member_core *core)
{
    trpi_frame frame = { .kind = TRPI_FRAME_INIT_JOIN };
    memcpy(frame.system, core->self->id.address.system, sizeof(frame.system));
    for (uint32_t i = 0; i < core->seek.addresses_count; i++) {
        if (!is_self_address(core, &core->seek.addresses[i])) {
            trpi_node_id to = { .address = core->seek.addresses[i], .uid = 0 };
            trpi_core_send(core, &to, &frame, NULL);
        }
    }
}

static void
send_join(trpi_member_core *core)
{
    trpi_frame frame = { .kind = TRPI_FRAME_JOIN,
                         .to_uid = core->seek.contact.uid,
                         .ticket = core->seek.ticket,
                         .ident = core->self };
    trpi_core_send(core, &core->seek.contact, &frame, NULL);
    core->seek.next_ms = core->now.mono_ms + JOIN_AGAIN_MS;
}

/* A node that waits in silence looks as if it hung. */
static void
log_waiting(trpi_member_core *core)
{
    trpi_seek *seek = &core->seek;
    char text[TRPI_ADDRESS_TEXT_BYTES], others[32] = "";
    uint32_t first = 0, count = 0;
    for (uint32_t i = seek->addresses_count; i-- > 0;) {
        if (!is_self_address(core, &seek->addresses[i])) {
            first = i;
            count++;
        }
    }
    if (count > 1) {
        (void)snprintf(others, sizeof(others), " (and %u more)", count - 1);
    }
    trpi_core_log(core, TRP_LOG_INFO,
                  "not joined yet, after %u s: waiting for a cluster at seed node %s%s",
                  (unsigned)((core->now.mono_ms - seek->begin_ms) / 1000),
                  trpi_address_format(&seek->addresses[first], text, sizeof(text)), others);
    seek->log_ms = core->now.mono_ms + WAIT_LOG_MS;
}

void
trpi_seek_tick(trpi_member_core *core)
{
    trpi_seek *seek = &core->seek;
    uint64_t now = core->now.mono_ms;
    if (now >= seek->give_up_ms) {
        if (!seek->joining) {
            trpi_core_log(core, TRP_LOG_INFO, "no seed answered for %u ms", silence_ms(core));
            (void)create_cluster(core); /* no memory: the next tick tries again */
            return;
        }
        char text[TRPI_ADDRESS_TEXT_BYTES];
        trpi_core_log(core, TRP_LOG_WARNING, "no welcome from %s, asking the seeds again",
                      trpi_address_format(&seek->contact.address, text, sizeof(text)));
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

/* Joined, but never Up: it may be that nobody who lives has heard of us (J5). */
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
    if (is_unknown_joiner(core, to)) {
        trpi_frame frame = { .kind = TRPI_FRAME_INIT_JOIN, .to_uid = to->uid };
        memcpy(frame.system, core->self->id.address.system, sizeof(frame.system));
        trpi_core_send(core, to, &frame, NULL);
    }
}

static void
take_ack(trpi_member_core *core, const trpi_node_id *from, const trpi_frame *frame)
{
    if (frame->ticket != 0 && is_unknown_joiner(core, from)) {
        trpi_frame join = { .kind = TRPI_FRAME_JOIN,
                            .to_uid = from->uid,
                            .ticket = frame->ticket,
                            .ident = core->self };
        trpi_core_send(core, from, &join, NULL);
        return;
    }
    if (core->phase != TRPI_PHASE_SEEKING || core->seek.joining || frame->ticket == 0 ||
        from->uid == 0) {
        return;
    }
    char text[TRPI_ADDRESS_TEXT_BYTES];
    trpi_core_log(core, TRP_LOG_INFO, "joining through %s",
                  trpi_address_format(&from->address, text, sizeof(text)));
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

static void
take_nack(trpi_member_core *core, const trpi_node_id *from, const trpi_frame *frame)
{
    trpi_seek *seek = &core->seek;
    if (core->phase != TRPI_PHASE_SEEKING) {
        return;
    }
    if (frame->code == TRPI_NACK_REMOVED || frame->code == TRPI_NACK_LEFT) {
        trpi_core_log(core, TRP_LOG_WARNING, "cannot join: %s", frame->reason);
        trpi_core_stop(core, frame->code == TRPI_NACK_LEFT ? TRPI_STOP_LEFT : TRPI_STOP_DOWNED);
        return;
    }
    if (frame->code == TRPI_NACK_REFUSED) {
        if (core->now.mono_ms >= core->refused_log_ms) {
            char text[TRPI_ADDRESS_TEXT_BYTES];
            trpi_core_log(core, TRP_LOG_WARNING, "%s refuses this node: %s; asking again",
                          trpi_address_format(&from->address, text, sizeof(text)), frame->reason);
            core->refused_log_ms = core->now.mono_ms + REFUSED_LOG_MS;
        }
        return;
    }
    if (seek->joining) {
        if (trpi_node_id_equal(&seek->contact, from)) { /* the ticket has run out, or it leaves */
            ask_again(core, ASK_AGAIN_MS);
        }
        return;
    }
    /* J1: there is a cluster; do not make another one yet */
    if (frame->code == TRPI_NACK_LEAVING) {
        seek->met_cluster = true;
        wait_for_seeds(core);
        return;
    }
    bool all = true;
    for (uint32_t i = 0; i < seek->addresses_count; i++) {
        if (trpi_address_equal(&seek->addresses[i], &from->address)) {
            seek->nacked[i] = true;
        }
        all = all && (seek->nacked[i] || is_self_address(core, &seek->addresses[i]));
    }
    if (all && seek->may_create) { /* J1 */
        trpi_core_log(core, TRP_LOG_INFO, "all other seeds are in no cluster yet");
        (void)create_cluster(core); /* no memory: give_up_ms tries again */
    }
}

void
trpi_core_welcome_frame(trpi_member_core *core, const trpi_node_id *from, trpi_frame *frame)
{
    if (core->phase == TRPI_PHASE_MEMBER) {
        frame->kind = TRPI_FRAME_ENVELOPE; /* J5, or a second answer to a repeated JOIN */
        trpi_gossip_frame(core, from, frame);
        return;
    }
    if (core->phase != TRPI_PHASE_SEEKING || !core->seek.joining ||
        !trpi_node_id_equal(from, &core->seek.contact)) {
        core->stats.ignored++; /* GOSSIP-16: only from whom we asked */
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
    (void)trpi_frame_seen(frame, &seen); /* a set that does not fit is an empty one */
    trp_err err = trpi_core_adopt(core, frame->gossip, &seen);
    trpi_seen_fini(&seen);
    if (err != TRP_OK) {
        return;
    }
    char text[TRPI_ADDRESS_TEXT_BYTES];
    trpi_core_log(core, TRP_LOG_INFO, "welcome from %s, %u members",
                  trpi_address_format(&from->address, text, sizeof(text)),
                  frame->gossip->members_count);
    core->phase = TRPI_PHASE_MEMBER;
    core->changed_there = true;
    core->heard_from = 0; /* the contact, too, wants to know that we have seen it */
    core->gossip_ms = core->now.mono_ms + core->options.gossip_interval_ms;
    core->leader_ms = core->now.mono_ms + core->options.leader_actions_interval_ms;
    trpi_frame digest = { .kind = TRPI_FRAME_DIGEST,
                          .to_uid = from->uid,
                          .ttl = 2,
                          .digest = core->gossip->digest };
    trpi_core_send(core, from, &digest, &core->seen);
}

/* ---- the contact ----------------------------------------------------------------------------- */

static void
send_nack(trpi_member_core *core, const trpi_node_id *to, uint32_t code, const char *reason)
{
    trpi_frame frame = { .kind = TRPI_FRAME_INIT_JOIN_NACK, .to_uid = to->uid, .code = code };
    snprintf(frame.reason, sizeof(frame.reason), "%s", reason);
    trpi_core_send(core, to, &frame, NULL);
}

/* May this stranger ask at all? Answers it when not. */
static bool
may_ask(trpi_member_core *core, const trpi_node_id *from)
{
    const trpi_address *own = &core->self->id.address;
    char reason[TRPI_FRAME_REASON_BYTES];
    if (from->uid == 0) {
        return false; /* the transport always knows; hostile bytes do not */
    }
    if (strcmp(from->address.system, own->system) != 0 ||
        strcmp(from->address.protocol, own->protocol) != 0) {
        snprintf(reason, sizeof(reason), "it is %.20s://%.40s, this is %.20s://%.40s",
                 from->address.protocol, from->address.system, own->protocol, own->system);
        send_nack(core, from, TRPI_NACK_REFUSED, reason); /* MEMB-29 */
        return false;
    }
    if (is_self_address(core, &from->address)) {
        send_nack(core, from, TRPI_NACK_REFUSED, "it advertises the address of this node");
        return false;
    }
    uint32_t self = trpi_core_self_index(core);
    if (core->phase != TRPI_PHASE_MEMBER || self == TRPI_GOSSIP_NONE) {
        send_nack(core, from, TRPI_NACK_NOT_READY, "not a member");
        return false;
    }
    if (core->gossip->members[self].status > TRP_MEMBER_UP) {
        send_nack(core, from, TRPI_NACK_LEAVING, "leaving");
        return false;
    }
    const trpi_tombstone *t = trpi_gossip_tombstone(core->gossip, trpi_ident_key(from));
    if (t != NULL) { /* J4 */
        send_nack(core, from, t->status == TRP_MEMBER_DOWN ? TRPI_NACK_REMOVED : TRPI_NACK_LEFT,
                  "this incarnation was removed from the cluster; restart the process");
        return false;
    }
    return true;
}

static void
take_init_join(trpi_member_core *core, const trpi_node_id *from, const trpi_frame *frame)
{
    if (!may_ask(core, from)) {
        return;
    }
    if (frame->system[0] != '\0' && strcmp(frame->system, core->self->id.address.system) != 0) {
        send_nack(core, from, TRPI_NACK_REFUSED, "it asks for another system");
        return;
    }
    trpi_frame ack = { .kind = TRPI_FRAME_INIT_JOIN_ACK,
                       .to_uid = from->uid,
                       .ticket = core->now.mono_ms + 1 };
    trpi_core_send(core, from, &ack, NULL);
}

static bool
is_predecessor(const trpi_gossip_member *m, const trpi_node_id *id)
{
    return m->status != TRP_MEMBER_DOWN && m->ident->id.uid != id->uid &&
           trpi_address_equal(&m->ident->id.address, &id->address);
}

/* J3: every other incarnation of the address is gone. */
static uint32_t
down_predecessors(trpi_gossip *edited, const trpi_node_id *from)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < edited->members_count; i++) {
        if (is_predecessor(&edited->members[i], from)) {
            trpi_gossip_set_status(edited, i, TRP_MEMBER_DOWN);
            count++;
        }
    }
    return count;
}

/* Two incarnations of one address may join through two contacts. The one that lives knows the
 * truth. */
void
trpi_seek_down_own_predecessors(trpi_member_core *core)
{
    const trpi_gossip *g = core->gossip;
    bool any = false;
    for (uint32_t i = 0; i < g->members_count && !any; i++) {
        any = is_predecessor(&g->members[i], &core->self->id);
    }
    trpi_gossip *edited = any ? trpi_gossip_copy(g) : NULL;
    if (edited != NULL) {
        (void)down_predecessors(edited, &core->self->id);
        (void)trpi_core_commit(core, edited); /* no memory: at the next step */
    }
}

static void
take_join(trpi_member_core *core, const trpi_node_id *from, trpi_frame *frame)
{
    if (!may_ask(core, from)) {
        return;
    }
    uint64_t issued_ms = frame->ticket - 1;
    if (frame->ticket == 0 || issued_ms > core->now.mono_ms ||
        core->now.mono_ms - issued_ms > TICKET_MS) {
        send_nack(core, from, TRPI_NACK_NOT_READY, "the ticket has run out"); /* J2 */
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
    trpi_gossip *edited = trpi_gossip_copy(core->gossip);
    if (edited == NULL) {
        return; /* it asks again */
    }
    char text[TRPI_ADDRESS_TEXT_BYTES];
    (void)trpi_address_format(&from->address, text, sizeof(text));
    if (down_predecessors(edited, from) > 0) {
        trpi_core_log(core, TRP_LOG_INFO, "%s has restarted: its predecessor is Down", text);
    }
    trp_err err = trpi_gossip_add(edited, frame->ident, TRP_MEMBER_JOINING, 0);
    if (err != TRP_OK) {
        trpi_gossip_unref(edited);
        send_nack(core, from, TRPI_NACK_REFUSED, "the cluster has as many members as it can have");
        return;
    }
    if (trpi_core_commit(core, edited) == TRP_OK) {
        trpi_gossip_send_view(core, from, TRPI_FRAME_WELCOME, 0);
    }
}

void
trpi_seek_frame(trpi_member_core *core, const trpi_node_id *from, trpi_frame *frame)
{
    switch (frame->kind) {
    case TRPI_FRAME_INIT_JOIN:
        take_init_join(core, from, frame);
        break;
    case TRPI_FRAME_INIT_JOIN_ACK:
        take_ack(core, from, frame);
        break;
    case TRPI_FRAME_INIT_JOIN_NACK:
        take_nack(core, from, frame);
        break;
    default:
        take_join(core, from, frame);
        break;
    }
}

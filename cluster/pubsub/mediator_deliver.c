/* mediator_deliver.c - messages on their way: to those who sit here, to the other nodes, and from
 * them.
 *
 * Shape.   publication -> route -> this node: seats -> offer to each
 *                             `-> other nodes: one envelope each -> their mediator -> seats there
 * Must hold.
 *   mediator-deliver-D1  What nobody takes is a dead letter: no subscriber, the subscriber's
 *       mailbox, a type that does not travel, a node that was lost.
 *   mediator-deliver-D2  An envelope that asks is answered once, with the number that took it.
 *   mediator-deliver-D3  A payload above MEDIATOR_SHARE_BYTES is copied once for a node.
 * Wire.    The head of an envelope: kind 1, flags 1, name bytes 2, picks or member 4, question 8,
 *          life 8, number 8, begun 8, since 8, the name, then for each pick member 4, group bytes 1
 *          and the group. In an answer life is the number of those who took it.
 * Tests.   tests/unit/cluster/pubsub_nodes_test.c, tests/unit/cluster/pubsub_envelope_test.c
 */
#include <string.h>

#include "base/alloc.h"
#include "base/wire.h"
#include "cluster/pubsub/mediator.h"
#include "pattern/pattern.h"

enum { HEAD_BYTES = 48, PICK_BYTES = 5 };

/* Wire numbers. */
enum envelope_kind {
    ENVELOPE_PUBLISH = 1,
    ENVELOPE_SEND = 2,     /* to what was put under the name */
    ENVELOPE_DELIVERED = 3 /* the answer; without a message */
};
enum { ENVELOPE_ALL = 1 }; /* flags: to all without a group; the stamp counts */

typedef struct envelope_head {
    uint8_t kind, flags;
    uint32_t name_bytes, picks_count;
    uint64_t question;
    trpi_pubsub_stamp stamp;
    const uint8_t *name, *picks, *end;
} envelope_head;

/* ---- to actors of this node ------------------------------------------------------------------ */

void
mediator_dead(trp_mediator *m, const mediator_parcel *parcel, trp_ref recipient,
              trp_dead_reason reason)
{
    trpi_dead_letter_of(m->system, parcel->sender, recipient, reason, parcel->type, parcel->payload,
                        parcel->bytes);
}

static trp_dead_reason
reason_of(trp_err err)
{
    return err == TRP_ENOENT       ? TRP_DEAD_STALE
           : err == TRP_EAGAIN     ? TRP_DEAD_MAILBOX_FULL
           : err == TRP_EUNHANDLED ? TRP_DEAD_REFUSED
           : err == TRP_ENOMEM     ? TRP_DEAD_NO_MEMORY
                                   : TRP_DEAD_NOT_ENCODABLE;
}

/* A payload that several messages share. */
typedef struct shared {
    _Atomic uint32_t count;
    uint32_t zero[3];
} shared;
_Static_assert(sizeof(shared) == 16, "the payload behind it is 16-aligned");

static void
shared_release(void *data, void *arg)
{
    shared *s = (shared *)data - 1;
    (void)arg;
    /* release: all uses happen before the free; acquire: its pair */
    if (atomic_fetch_sub_explicit(&s->count, 1, memory_order_acq_rel) == 1) {
        trpi_free(s);
    }
}

/* NULL: the payload is small, or there is no memory: each message has its own copy. */
static shared *
shared_new(const mediator_parcel *parcel, uint32_t receivers)
{
    shared *s = parcel->bytes > MEDIATOR_SHARE_BYTES && receivers > 1
                    ? trpi_alloc(sizeof *s + parcel->bytes)
                    : NULL;
    if (s != NULL) {
        atomic_init(&s->count, 1);
        memcpy(s + 1, parcel->payload, parcel->bytes);
    }
    return s;
}

static trp_err
shared_offer(trp_ctx *ctx, trp_ref ref, const mediator_parcel *parcel, shared *s)
{
    trp_msg *msg;
    /* relaxed: this thread holds one already */
    (void)atomic_fetch_add_explicit(&s->count, 1, memory_order_relaxed);
    trp_err err = trpi_msg_new_owner(parcel->type, s + 1, shared_release, &msg);
    if (err != TRP_OK) {
        shared_release(s + 1, NULL);
        return err;
    }
    ((trp_msg_priv_moved *)(void *)((char *)msg + sizeof *msg))->bytes = parcel->bytes;
    trpi_msg_sign(msg, parcel->sender);
    msg = trpi_trail_put(ctx, msg);
    err = trpi_offer_msg(ctx, ref, msg);
    if (err != TRP_OK) {
        trpi_msg_drop(msg);
    }
    return err;
}

static bool
missed_tell(trp_ctx *ctx, trp_ref mediator, const trpi_seats *seats, trp_ref ref, uint64_t count,
            bool refused)
{
    char bytes[sizeof(trp_missed) + TRP_TOPIC_BYTES_MAX];
    trp_missed head = { .count = count, .refused = refused, .topic_bytes = seats->key.name_bytes };
    size_t text = (size_t)seats->key.name_bytes + 1;
    size_t all =
        offsetof(trp_missed, topic) + (text < sizeof head.topic ? sizeof head.topic : text);
    memcpy(bytes, &head, sizeof head);
    memcpy(bytes + offsetof(trp_missed, topic), seats->key.name, seats->key.name_bytes);
    bytes[offsetof(trp_missed, topic) + seats->key.name_bytes] = '\0';
    return trpi_offer(ctx, ref, mediator, &trp_missed_type, bytes, all) == TRP_OK;
}

void
mediator_tell_missed(trp_mediator *m, trp_ctx *ctx, trpi_seats *seats, uint64_t count)
{
    for (uint32_t i = 0; i < seats->refs_count && seats->askers > 0; i++) {
        if ((seats->places[i]->flags & TRP_SUBSCRIBE_TELLS_MISSED) != 0) {
            (void)missed_tell(ctx, m->actor, seats, seats->refs[i], count, false);
        }
    }
}

/* Tell it how many its mailbox has refused, if there is room for that now. */
static void
refused_tell(trp_mediator *m, trp_ctx *ctx, trpi_seats *seats, uint32_t index)
{
    trpi_seat *seat = seats->places[index];
    if (seat->refused > 0 && (seat->flags & TRP_SUBSCRIBE_TELLS_MISSED) != 0 &&
        missed_tell(ctx, m->actor, seats, seats->refs[index], seat->refused, true)) {
        seat->refused = 0;
    }
}

uint64_t
mediator_tell_seats(trp_mediator *m, trp_ctx *ctx, trpi_seats *seats, const mediator_parcel *parcel)
{
    shared *s = shared_new(parcel, seats->refs_count);
    uint64_t delivered = 0;
    for (uint32_t i = 0; i < seats->refs_count; i++) {
        trp_ref ref = seats->refs[i];
        if (seats->askers > 0) {
            refused_tell(m, ctx, seats, i);
        }
        trp_err err = s != NULL ? shared_offer(ctx, ref, parcel, s)
                                : trpi_offer(ctx, ref, parcel->sender, parcel->type,
                                             parcel->payload, parcel->bytes);
        if (err == TRP_OK) {
            delivered++;
            continue;
        }
        seats->places[i]->refused += err == TRP_EAGAIN;
        mediator_dead(m, parcel, ref, reason_of(err)); /* mediator-deliver-D1 */
    }
    if (s != NULL) {
        shared_release(s + 1, NULL);
    }
    return delivered;
}

/* One who sits under the key, by number. */
static uint64_t
pick_tell(trp_mediator *m, trp_ctx *ctx, const trpi_pubsub_key *key, uint64_t hash, uint32_t member,
          const mediator_parcel *parcel)
{
    trpi_seats *seats = trpi_audience_find(&m->audience, key, hash);
    if (seats == NULL) {
        mediator_dead(m, parcel, m->actor, TRP_DEAD_NO_SUBSCRIBER);
        return 0;
    }
    uint32_t index = member % seats->refs_count;
    if (seats->askers > 0) {
        refused_tell(m, ctx, seats, index);
    }
    trp_ref ref = seats->refs[index];
    trp_err err =
        trpi_offer(ctx, ref, parcel->sender, parcel->type, parcel->payload, parcel->bytes);
    if (err != TRP_OK) {
        seats->places[index]->refused += err == TRP_EAGAIN;
        mediator_dead(m, parcel, ref, reason_of(err)); /* mediator-deliver-D1 */
    }
    return err == TRP_OK;
}

/* ---- to other nodes -------------------------------------------------------------------------- */

static trp_err
head_append(trpi_buffer *out, uint8_t kind, uint8_t flags, uint32_t picks, uint64_t question,
            const trpi_pubsub_stamp *stamp, const trpi_pubsub_key *key)
{
    uint8_t head[HEAD_BYTES] = { kind, flags };
    trpi_put_u16(head + 2, (uint16_t)key->name_bytes);
    trpi_put_u32(head + 4, picks);
    trpi_put_u64(head + 8, question);
    trpi_put_u64(head + 16, stamp->life);
    trpi_put_u64(head + 24, stamp->number);
    trpi_put_u64(head + 32, stamp->begun);
    trpi_put_u64(head + 40, stamp->since);
    trp_err err = trpi_buffer_append(out, head, sizeof head, TRPI_BUFFER_NO_LIMIT);
    return err != TRP_OK
               ? err
               : trpi_buffer_append(out, key->name, key->name_bytes, TRPI_BUFFER_NO_LIMIT);
}

static trp_err
picks_append(trpi_buffer *out, const trp_mediator *m, const trpi_route_target *target)
{
    trp_err err = TRP_OK;
    for (uint32_t i = 0; err == TRP_OK && i < target->picks_count; i++) {
        const trpi_route_pick *pick = &m->route.picks[target->picks_first + i];
        const trpi_pubsub_key *key = &pick->entry->key;
        uint8_t head[PICK_BYTES];
        trpi_put_u32(head, pick->member);
        head[4] = (uint8_t)key->group_bytes;
        err = trpi_buffer_append(out, head, sizeof head, TRPI_BUFFER_NO_LIMIT);
        err = err != TRP_OK
                  ? err
                  : trpi_buffer_append(out, key->group, key->group_bytes, TRPI_BUFFER_NO_LIMIT);
    }
    return err;
}

/* The envelope begins: m->envelope has room for its head, which envelope_tell() fills in. */
static trp_err
envelope_begin(trp_mediator *m)
{
    static const trpi_topic_envelope none = { .type = 0 };
    trpi_buffer_clear(&m->envelope);
    return trpi_buffer_append(&m->envelope, &none, sizeof none, TRPI_BUFFER_NO_LIMIT);
}

static bool
type_travels(const trp_type *type)
{
    return (type->flags & TRP_TYPE_LOCAL) == 0;
}

/* Tell it to another node's mediator; false: it was a dead letter. parcel NULL: it carries
 * nothing. */
static bool
envelope_tell(trp_mediator *m, trp_ctx *ctx, trp_ref to, const mediator_parcel *parcel)
{
    static const uint8_t zero[16] = { 0 };
    size_t head_bytes = m->envelope.count - sizeof(trpi_topic_envelope);
    size_t all = trpi_topic_envelope_bytes((uint32_t)head_bytes);
    trp_err err = head_bytes > TRPI_TOPIC_HEAD_BYTES_MAX ? TRP_EMSGSIZE : TRP_OK;
    err = err != TRP_OK ? err
                        : trpi_buffer_append(&m->envelope, zero, all - m->envelope.count,
                                             TRPI_BUFFER_NO_LIMIT);
    if (err == TRP_OK && parcel != NULL && parcel->bytes > 0) {
        err =
            trpi_buffer_append(&m->envelope, parcel->payload, parcel->bytes, TRPI_BUFFER_NO_LIMIT);
    }
    if (err != TRP_OK) {
        if (parcel != NULL) {
            mediator_dead(m, parcel, to,
                          err == TRP_EMSGSIZE ? TRP_DEAD_TOO_LARGE : TRP_DEAD_NO_MEMORY);
        }
        return false;
    }
    trpi_topic_envelope head = { .mediator = m->actor,
                                 .type = parcel == NULL ? 0 : parcel->type->number,
                                 .head_bytes = (uint32_t)head_bytes };
    memcpy(m->envelope.data, &head, sizeof head);
    trpi_tell(ctx, to, parcel == NULL ? m->actor : parcel->sender, &trpi_topic_envelope_type,
              m->envelope.data, m->envelope.count);
    return true;
}

/* One target of a publication. */
static bool
target_tell(trp_mediator *m, trp_ctx *ctx, const trpi_pubsub_key *topic,
            const trpi_route_target *target, uint64_t question, const mediator_parcel *parcel)
{
    trp_ref to = m->peers[target->node].ref;
    trp_err err = envelope_begin(m);
    err = err != TRP_OK
              ? err
              : head_append(&m->envelope, ENVELOPE_PUBLISH, target->all ? ENVELOPE_ALL : 0,
                            target->picks_count, question, &target->stamp, topic);
    err = err != TRP_OK ? err : picks_append(&m->envelope, m, target);
    if (err != TRP_OK) {
        mediator_dead(m, parcel, to, TRP_DEAD_NO_MEMORY);
        return false;
    }
    return envelope_tell(m, ctx, to, parcel);
}

/* ---- publish --------------------------------------------------------------------------------- */

void
mediator_report(trp_mediator *m, trp_ctx *ctx, const mediator_asker *asker, uint64_t delivered,
                uint32_t answered, uint32_t silent)
{
    trp_publish_report report = { .delivered = delivered,
                                  .nodes = asker->nodes + answered,
                                  .silent = silent,
                                  .late = asker->late };
    trpi_tell(ctx, asker->answer_to, m->actor, &trp_publish_report_type, &report, sizeof report);
}

static uint64_t
publish_here(trp_mediator *m, trp_ctx *ctx, const trpi_pubsub_key *topic,
             const trpi_route_target *target, const mediator_parcel *parcel)
{
    uint64_t delivered = 0;
    trpi_seats *seats =
        target->all ? trpi_audience_find(&m->audience, topic, trpi_pubsub_key_hash(topic)) : NULL;
    if (seats != NULL) {
        delivered = mediator_tell_seats(m, ctx, seats, parcel);
    }
    for (uint32_t i = 0; i < target->picks_count; i++) {
        const trpi_route_pick *pick = &m->route.picks[target->picks_first + i];
        delivered += pick_tell(m, ctx, &pick->entry->key, pick->entry->hash, pick->member, parcel);
    }
    return delivered;
}

/* Begin to count the answers of the nodes. Errors: TRP_ENOMEM. */
static trp_err
count_begin(trp_mediator *m, uint64_t delivered, const mediator_asker *asker, uint32_t timeout_ms,
            uint64_t *ret_question)
{
    uint32_t count = 0;
    mediator_asker *own = trpi_alloc(sizeof *own);
    trpi_node_id *nodes = trpi_alloc((m->route.targets_count + 1) * sizeof *nodes);
    trp_err err = own == NULL || nodes == NULL ? TRP_ENOMEM : TRP_OK;
    for (uint32_t i = 0; err == TRP_OK && i < m->route.targets_count; i++) {
        uint32_t node = m->route.targets[i].node;
        if (node != TRPI_PUBREG_SELF && mediator_is_met(m, node)) {
            nodes[count++] = m->peers[node].id;
        }
    }
    if (err == TRP_OK) {
        *own = *asker;
        err = trpi_tallies_add(m->tallies, delivered, nodes, count, mediator_now_ms(m) + timeout_ms,
                               own, ret_question);
    }
    trpi_free(nodes);
    if (err != TRP_OK) {
        trpi_free(own);
    }
    return err;
}

static void
publish_elsewhere(trp_mediator *m, trp_ctx *ctx, const trpi_pubsub_key *topic, uint64_t question,
                  const mediator_parcel *parcel)
{
    trp_ref nobody = TRP_REF_NONE;
    for (uint32_t i = 0; i < m->route.targets_count; i++) {
        const trpi_route_target *target = &m->route.targets[i];
        if (target->node == TRPI_PUBREG_SELF) {
            continue;
        }
        bool sent = false;
        if (!mediator_is_met(m, target->node)) {
            mediator_dead(m, parcel, nobody, TRP_DEAD_NOT_CONNECTED);
        } else if (!type_travels(parcel->type)) {
            mediator_dead(m, parcel, m->peers[target->node].ref, TRP_DEAD_NOT_ENCODABLE);
        } else {
            sent = target_tell(m, ctx, topic, target, question, parcel);
        }
        if (!sent && question != 0) {
            trpi_tallies_missed(m->tallies, question,
                                mediator_is_met(m, target->node) ? &m->peers[target->node].id
                                                                 : NULL);
        }
    }
}

void
mediator_publish(trp_mediator *m, trp_ctx *ctx, const trpi_pubsub_key *topic,
                 const mediator_parcel *parcel, const mediator_asker *asker, uint32_t timeout_ms)
{
    mediator_asker own = { .answer_to = TRP_REF_NONE };
    uint64_t question = 0, delivered = 0;
    bool counts = asker != NULL;
    own = counts ? *asker : own;
    trp_err err =
        trpi_route_publish(m->registry, topic, TRPI_ROUTE_ROUND_ROBIN, &m->random, &m->route);
    if (err != TRP_OK || m->route.targets_count == 0) { /* mediator-deliver-D1 */
        mediator_dead(m, parcel, m->actor,
                      err == TRP_OK ? TRP_DEAD_NO_SUBSCRIBER : TRP_DEAD_NO_MEMORY);
        if (counts) {
            mediator_report(m, ctx, &own, 0, 0, 0);
        }
        return;
    }
    for (uint32_t i = 0; i < m->route.targets_count; i++) {
        if (m->route.targets[i].node == TRPI_PUBREG_SELF) {
            delivered = publish_here(m, ctx, topic, &m->route.targets[i], parcel);
            own.nodes = 1;
        }
    }
    err = counts ? count_begin(m, delivered, &own, timeout_ms, &question) : TRP_OK;
    if (err != TRP_OK) { /* it is published all the same */
        trp_status_failure failure = { .err = (int32_t)err };
        trpi_tell(ctx, own.answer_to, m->actor, &trp_status_failure_type, &failure, sizeof failure);
    }
    publish_elsewhere(m, ctx, topic, question, parcel);
}

/* ---- send ------------------------------------------------------------------------------------ */

static void
node_send(trp_mediator *m, trp_ctx *ctx, const trpi_pubsub_key *path, uint32_t node,
          uint32_t member, const mediator_parcel *parcel)
{
    static const trpi_pubsub_stamp none = { 0, 0, 0, 0 };
    trp_ref nobody = TRP_REF_NONE;
    if (node == TRPI_PUBREG_SELF) {
        (void)pick_tell(m, ctx, path, trpi_pubsub_key_hash(path), member, parcel);
        return;
    }
    if (!mediator_is_met(m, node)) {
        mediator_dead(m, parcel, nobody, TRP_DEAD_NOT_CONNECTED);
    } else if (!type_travels(parcel->type)) {
        mediator_dead(m, parcel, m->peers[node].ref, TRP_DEAD_NOT_ENCODABLE);
    } else if (envelope_begin(m) != TRP_OK ||
               head_append(&m->envelope, ENVELOPE_SEND, 0, member, 0, &none, path) != TRP_OK) {
        mediator_dead(m, parcel, m->peers[node].ref, TRP_DEAD_NO_MEMORY);
    } else {
        (void)envelope_tell(m, ctx, m->peers[node].ref, parcel);
    }
}

void
mediator_send(trp_mediator *m, trp_ctx *ctx, const trpi_pubsub_key *path, uint32_t flags,
              const mediator_parcel *parcel)
{
    trpi_route_pick pick = trpi_route_send(
        m->registry, path, (flags & TRP_SEND_LOCAL_AFFINITY) != 0, TRPI_ROUTE_RANDOM, &m->random);
    if (pick.node == TRPI_PUBREG_NOWHERE) {
        mediator_dead(m, parcel, m->actor, TRP_DEAD_NO_SUBSCRIBER);
    } else {
        node_send(m, ctx, path, pick.node, pick.member, parcel);
    }
}

void
mediator_send_to_all(trp_mediator *m, trp_ctx *ctx, const trpi_pubsub_key *path, uint32_t flags,
                     const mediator_parcel *parcel)
{
    const trpi_pubreg_place *place;
    uint32_t position = 0, count = 0;
    bool all_but_self = (flags & TRP_SEND_ALL_BUT_SELF) != 0;
    while ((place = trpi_route_all(m->registry, path, all_but_self, &position)) != NULL) {
        count++;
        node_send(m, ctx, path, place->node, 0, parcel);
    }
    if (count == 0) {
        mediator_dead(m, parcel, m->actor, TRP_DEAD_NO_SUBSCRIBER);
    }
}

/* ---- from other nodes ------------------------------------------------------------------------ */

static bool
head_read(const uint8_t *bytes, size_t count, envelope_head *ret_head)
{
    if (count < HEAD_BYTES || count < HEAD_BYTES + (size_t)trpi_get_u16(bytes + 2)) {
        return false;
    }
    *ret_head = (envelope_head){ .kind = bytes[0],
                                 .flags = bytes[1],
                                 .name_bytes = trpi_get_u16(bytes + 2),
                                 .picks_count = trpi_get_u32(bytes + 4),
                                 .question = trpi_get_u64(bytes + 8),
                                 .stamp = { trpi_get_u64(bytes + 16), trpi_get_u64(bytes + 24),
                                            trpi_get_u64(bytes + 32), trpi_get_u64(bytes + 40) },
                                 .name = bytes + HEAD_BYTES };
    ret_head->picks = ret_head->name + ret_head->name_bytes;
    ret_head->end = bytes + count;
    return true;
}

/* The picks of an envelope that was not made by us are whatever they are. */
static uint64_t
picks_take(trp_mediator *m, trp_ctx *ctx, const envelope_head *head, const mediator_parcel *parcel)
{
    const uint8_t *at = head->picks;
    uint64_t delivered = 0;
    for (uint32_t i = 0; i < head->picks_count; i++) {
        size_t left = (size_t)(head->end - at);
        if (left < PICK_BYTES || left - PICK_BYTES < at[4]) {
            break;
        }
        trpi_pubsub_key key =
            mediator_key(TRPI_PUBSUB_GROUP, head->name, head->name_bytes, at + PICK_BYTES, at[4]);
        if (trpi_pubsub_key_is_valid(&key)) {
            delivered +=
                pick_tell(m, ctx, &key, trpi_pubsub_key_hash(&key), trpi_get_u32(at), parcel);
        }
        at += PICK_BYTES + at[4];
    }
    return delivered;
}

/* To all without a group. parcel->type NULL: what was published cannot be read here. */
static uint64_t
all_take(trp_mediator *m, trp_ctx *ctx, const trpi_node_id *from, const envelope_head *head,
         const trpi_pubsub_key *topic, const mediator_parcel *parcel)
{
    trpi_pubsub_arrival arrival = { 0, false };
    trpi_seats *seats = trpi_audience_find(&m->audience, topic, trpi_pubsub_key_hash(topic));
    if (seats == NULL && parcel->type == NULL) {
        return 0; /* its one dead letter is that it cannot be read */
    }
    if (seats == NULL) {
        mediator_dead(m, parcel, m->actor, TRP_DEAD_NO_SUBSCRIBER);
        return 0;
    }
    if (trpi_pubreg_arrived(m->registry, topic, from, &head->stamp, &arrival) == TRP_OK) {
        arrival.missed += parcel->type == NULL;
        if (arrival.missed > 0) {
            mediator_tell_missed(m, ctx, seats, arrival.missed);
        }
    }
    return parcel->type == NULL ? 0 : mediator_tell_seats(m, ctx, seats, parcel);
}

static void
answer_send(trp_mediator *m, trp_ctx *ctx, trp_ref to, uint64_t question, uint64_t delivered)
{
    trpi_pubsub_stamp numbers = { delivered, 0, 0, 0 };
    trpi_pubsub_key none = mediator_key(TRPI_PUBSUB_TOPIC, "", 0, NULL, 0);
    if (envelope_begin(m) == TRP_OK && /* else: as a lost answer */
        head_append(&m->envelope, ENVELOPE_DELIVERED, 0, 0, question, &numbers, &none) == TRP_OK) {
        (void)envelope_tell(m, ctx, to, NULL);
    }
}

static void
publication_take(trp_mediator *m, trp_ctx *ctx, const trpi_topic_envelope *envelope,
                 const envelope_head *head, const mediator_parcel *parcel)
{
    const trpi_node_id *from = trpi_node_id_get(m->system, envelope->mediator.node);
    trpi_pubsub_key topic = mediator_key(TRPI_PUBSUB_TOPIC, head->name, head->name_bytes, NULL, 0);
    uint64_t delivered = 0;
    if (from == NULL || !trpi_pubsub_key_is_valid(&topic)) {
        mediator_dead(m, parcel, m->actor, TRP_DEAD_NOT_ENCODABLE);
        return;
    }
    if ((head->flags & ENVELOPE_ALL) != 0) {
        delivered = all_take(m, ctx, from, head, &topic, parcel);
    }
    if (parcel->type == NULL) {
        mediator_dead(m, parcel, m->actor, TRP_DEAD_NOT_ENCODABLE);
    } else {
        delivered += picks_take(m, ctx, head, parcel);
    }
    if (head->question != 0) { /* mediator-deliver-D2 */
        answer_send(m, ctx, envelope->mediator, head->question, delivered);
    }
}

void
mediator_envelope(trp_mediator *m, trp_ctx *ctx, const trp_msg *msg)
{
    const uint8_t *bytes = trp_msg_payload(msg);
    size_t count = trp_msg_bytes(msg);
    trpi_topic_envelope envelope;
    envelope_head head;
    mediator_parcel parcel = { .sender = trpi_msg_sender_get(msg) };
    bool readable = count >= sizeof envelope;
    if (readable) {
        memcpy(&envelope, bytes, sizeof envelope);
        readable = count >= trpi_topic_envelope_bytes(envelope.head_bytes) &&
                   head_read(bytes + sizeof envelope, envelope.head_bytes, &head);
    }
    if (!readable) {
        trpi_dead(ctx, m->actor, msg, TRP_DEAD_NOT_ENCODABLE);
        return;
    }
    size_t skip = trpi_topic_envelope_bytes(envelope.head_bytes);
    parcel.type = envelope.type == 0 ? NULL : trpi_type_get(envelope.type);
    parcel.payload = parcel.type == NULL ? NULL : bytes + skip;
    parcel.bytes = count - skip;
    if (head.kind == ENVELOPE_DELIVERED) {
        const trpi_node_id *from = trpi_node_id_get(m->system, envelope.mediator.node);
        if (from != NULL) {
            trpi_tallies_answer(m->tallies, head.question, from, head.stamp.life);
        }
    } else if (head.kind == ENVELOPE_PUBLISH) {
        publication_take(m, ctx, &envelope, &head, &parcel);
    } else if (head.kind == ENVELOPE_SEND && parcel.type != NULL) {
        trpi_pubsub_key path = mediator_key(TRPI_PUBSUB_PATH, head.name, head.name_bytes, NULL, 0);
        (void)pick_tell(m, ctx, &path, trpi_pubsub_key_hash(&path), head.picks_count, &parcel);
    } else {
        mediator_dead(m, &parcel, m->actor, TRP_DEAD_NOT_ENCODABLE);
    }
}

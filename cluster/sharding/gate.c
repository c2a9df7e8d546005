/* gate.c - the way of messages between nodes: each node has one gate, whose cell takes messages for
 * all entities that live there, on the thread that delivers them.
 *
 * Why.     One recipient for all: remoting keeps the order of messages to one recipient, also when
 *          large ones take another lane, and like messages share a frame. An entity that lives is
 *          told on the transport's thread, without a hop through an actor. Neither end makes a
 *          message of the envelope in the usual case (trpi_carrier): the teller's run gathers its
 *          wire form, and what has come is told from the frame.
 * Must hold.
 *   gate-G1  What passes a gate is told to the entity, given back to the node that it came from,
 *       or a dead letter, which that node learns if it was for a shard that has moved.
 *       Nobody passes it on to a third node: order could not be kept.
 *   gate-G2  A fence is answered by the region, behind what it gave back before.
 * Tests.   tests/unit/cluster/entity_test.c, tests/unit/remote/envelope_test.c
 */
#include <string.h>

#include "base/alloc.h"
#include "base/atomics.h"
#include "base/hash.h"
#include "cluster/sharding/region.h"
#include "pattern/pattern.h"

enum { STACK_BYTES = 2048 };

/* Wire numbers. */
enum trpi_envelope_kind {
    TRPI_ENVELOPE_TOLD = 0,
    TRPI_ENVELOPE_RETURNED = 1, /* to the node that had sent it */
    TRPI_ENVELOPE_FENCE = 2,
    TRPI_ENVELOPE_FENCED = 3,
    TRPI_ENVELOPE_DROPPED = 4 /* without a message: one was dropped */
};

static trp_ref
sender_of(const trp_msg *msg)
{
    return (trp_ref){ msg->priv_from_node_flags & TRPI_NODES_MAX, msg->priv_from_slot,
                      msg->priv_from_generation, 0 };
}

/* Write an envelope without its payload; returns where that goes. */
static char *
envelope_put(char *to, uint64_t entity_type, trp_ref gate, const trpi_gate_head *h,
             const trp_type *type)
{
    trpi_entity_envelope head = { .entity_type = entity_type,
                                  .epoch = h->epoch,
                                  .gate = gate,
                                  .type = type == NULL ? 0 : type->number,
                                  .shard = h->shard,
                                  .id_bytes = (uint8_t)h->id_bytes,
                                  .kind = h->kind };
    size_t pad = trpi_envelope_head_bytes((uint8_t)h->id_bytes) - sizeof head - h->id_bytes;
    memcpy(to, &head, sizeof head);
    memcpy(to + sizeof head, h->id, h->id_bytes);
    memset(to + sizeof head + h->id_bytes, 0, pad);
    return to + sizeof head + h->id_bytes + pad;
}

static NOINLINE void
envelope_tell(const trpi_region *region, trp_ctx *ctx, trp_ref gate, const trpi_gate_head *h,
              trp_ref sender, const trp_type *type, const void *payload, size_t bytes)
{
    _Alignas(16) char stack[STACK_BYTES];
    size_t all = trpi_envelope_head_bytes((uint8_t)h->id_bytes) + bytes;
    char *memory = all <= STACK_BYTES ? stack : trpi_alloc(all);
    if (memory == NULL) {
        trpi_dead_letter(region->system, sender, gate, TRP_DEAD_NO_MEMORY, type, bytes);
        return;
    }
    char *place = envelope_put(memory, region->type, region->sharding->gate, h, type);
    if (bytes > 0) {
        memcpy(place, payload, bytes);
    }
    trpi_tell(ctx, gate, sender, &trpi_entity_envelope_type, memory, all);
    if (memory != stack) {
        trpi_free(memory);
    }
}

/* As the running actor, with those that it has told that node before (in_place.c). */
static bool
envelope_gather(const trpi_region *region, trp_ctx *ctx, trp_ref gate, const trpi_gate_head *h,
                const trp_type *type, const void *payload, size_t bytes)
{
    trpi_entity_envelope head = { .entity_type = region->type,
                                  .epoch = h->epoch,
                                  .gate = region->sharding->gate,
                                  .type = type->number,
                                  .id_bytes = (uint8_t)h->id_bytes,
                                  .kind = h->kind };
    trpi_carrier parts = { &trpi_entity_envelope_type, &head, h->id, type, payload, bytes };
    return trpi_tell_carried(ctx, gate, &parts);
}

void
trpi_gate_tell(const trpi_region *region, trp_ctx *ctx, trp_ref gate, uint64_t epoch,
               const void *id, size_t id_bytes, const trp_type *type, const void *payload,
               size_t bytes)
{
    trp_ref sender = trp_self(ctx);
    trpi_gate_head head = { epoch, id, id_bytes, 0, TRPI_ENVELOPE_TOLD };
    bytes = (type->flags & TRP_TYPE_VARIABLE) == 0 ? type->bytes : bytes;
    if (type->number == 0 || bytes < type->bytes) {
        trpi_tell(ctx, gate, sender, type, payload, bytes); /* a dead letter */
        return;
    }
    if (!envelope_gather(region, ctx, gate, &head, type, payload, bytes)) {
        envelope_tell(region, ctx, gate, &head, sender, type, payload, bytes);
        trpi_carriers_expect(ctx, gate, &trpi_entity_envelope_type,
                             trpi_envelope_head_bytes((uint8_t)id_bytes) + bytes);
    }
}

static void
gate_pass(const trpi_region *region, trp_ctx *ctx, trp_ref gate, const trpi_gate_head *head,
          trp_msg *msg)
{
    trpi_along along;
    trpi_along_begin(ctx, msg, &along);
    envelope_tell(region, ctx, gate, head, sender_of(msg), trp_msg_type(msg), trp_msg_payload(msg),
                  trp_msg_bytes(msg));
    trpi_along_end(ctx, &along);
    trpi_msg_drop(msg);
}

void
trpi_gate_send(const trpi_region *region, trp_ctx *ctx, trp_ref gate, uint64_t epoch,
               const void *id, size_t id_bytes, trp_msg *msg)
{
    trpi_gate_head head = { epoch, id, id_bytes, 0, TRPI_ENVELOPE_TOLD };
    gate_pass(region, ctx, gate, &head, msg);
}

void
trpi_gate_return(const trpi_region *region, trp_ctx *ctx, const trpi_origin *origin, const void *id,
                 size_t id_bytes, trp_msg *msg)
{
    trpi_gate_head head = { origin->epoch, id, id_bytes, 0, TRPI_ENVELOPE_RETURNED };
    gate_pass(region, ctx, origin->gate, &head, msg);
}

bool
trpi_gate_is_own(const trp_msg *msg)
{
    trp_ref sender = sender_of(msg);
    return !trp_ref_is_none(sender) && sender.node == TRPI_NODE_SELF;
}

void
trpi_gate_dropped(const trpi_region *region, trp_ctx *ctx, const trpi_origin *origin,
                  uint32_t shard)
{
    trp_ref nobody = TRP_REF_NONE;
    trpi_gate_head head = { origin->epoch, "-", 1, shard, TRPI_ENVELOPE_DROPPED };
    envelope_tell(region, ctx, origin->gate, &head, nobody, NULL, NULL, 0);
}

void
trpi_gate_fence(const trpi_region *region, trp_ctx *ctx, trp_ref gate, uint32_t shard, bool answer)
{
    trp_ref nobody = TRP_REF_NONE;
    trpi_gate_head head = { 0, "-", 1, shard, answer ? TRPI_ENVELOPE_FENCED : TRPI_ENVELOPE_FENCE };
    envelope_tell(region, ctx, gate, &head, nobody, NULL, NULL, 0);
    trpi_tell_flush(ctx);
}

/* ---- the gate's cell ------------------------------------------------------------------------- */

/* Open an envelope; false: it cannot be read here. */
static bool
envelope_open(const trp_msg *msg, trpi_entity_envelope *head, const char **ret_payload,
              size_t *ret_bytes)
{
    size_t bytes = trp_msg_bytes(msg);
    if (bytes < sizeof *head) {
        return false;
    }
    memcpy(head, trp_msg_payload(msg), sizeof *head);
    size_t skip = trpi_envelope_head_bytes(head->id_bytes);
    if (bytes < skip || head->id_bytes == 0 || head->id_bytes > TRP_ENTITY_ID_BYTES_MAX) {
        return false;
    }
    *ret_payload = (const char *)trp_msg_payload(msg) + skip;
    *ret_bytes = bytes - skip;
    return true;
}

/* Make the message that an envelope carries, in the envelope's place in its trace. */
static trp_err
inner_make(trp_ctx *ctx, trp_ref self, const trp_msg *msg, const trp_type *type,
           const void *payload, size_t bytes, trp_msg **ret_inner)
{
    trpi_along along;
    trp_err err = trpi_msg_restore(self, sender_of(msg), type, payload, bytes, ret_inner);
    if (err == TRP_OK && (msg->priv_from_node_flags & TRPI_MSG_TRAILER) != 0) {
        trpi_along_begin(ctx, msg, &along);
        *ret_inner = trpi_trail_put(ctx, *ret_inner);
        trpi_along_end(ctx, &along);
    }
    return err;
}

/* Something that the region does in the order of arrival. */
static void
region_tell(trp_ctx *ctx, trpi_region *region, const trpi_entity_envelope *head, const char *id,
            trp_msg *msg)
{
    enum trpi_request_kind kind = head->kind == TRPI_ENVELOPE_RETURNED  ? TRPI_REQUEST_RETURNED
                                  : head->kind == TRPI_ENVELOPE_FENCE   ? TRPI_REQUEST_FENCE_ASKED
                                  : head->kind == TRPI_ENVELOPE_DROPPED ? TRPI_REQUEST_DROPPED
                                                                        : TRPI_REQUEST_FENCED;
    trpi_request *request = trpi_request_new(region->system, kind, NULL, id, head->id_bytes, msg);
    if (request == NULL) {
        trp_ref nobody = TRP_REF_NONE;
        if (msg != NULL) {
            trpi_dead_letter_msg(region->system, nobody, msg, TRP_DEAD_NO_MEMORY);
            trpi_msg_drop(msg);
        }
        return;
    }
    request->origin = head->gate;
    request->epoch = head->epoch;
    request->hash = trpi_hash(id, head->id_bytes, 0);
    request->shard = kind == TRPI_REQUEST_RETURNED
                         ? trpi_region_shard_of(region, request->hash, id, head->id_bytes)
                         : head->shard;
    trpi_tell_flush(ctx); /* what was given back is before the answer to a fence */
    trpi_request_tell(ctx, region, request);
}

static void
envelope_take(trpi_sharding *sharding, trp_ctx *ctx, trp_ref self, const trp_msg *msg)
{
    trpi_entity_envelope head;
    const char *payload;
    size_t bytes;
    trp_msg *inner = NULL;
    if (!envelope_open(msg, &head, &payload, &bytes)) {
        trpi_dead(ctx, self, msg, TRP_DEAD_NOT_ENCODABLE);
        return;
    }
    const char *id = (const char *)trp_msg_payload(msg) + sizeof head;
    trpi_region *region = trpi_region_find(sharding, head.entity_type);
    const trp_type *type = head.type == 0 ? NULL : trpi_type_get(head.type);
    bool carries = head.kind == TRPI_ENVELOPE_TOLD || head.kind == TRPI_ENVELOPE_RETURNED;
    if (head.kind > TRPI_ENVELOPE_DROPPED) {
        return; /* of a later version */
    }
    if (region != NULL && !carries) {
        region_tell(ctx, region, &head, id, NULL);
        return;
    }
    trp_err err = region == NULL ? TRP_ENOENT
                  : type == NULL ? TRP_ENOTYPE
                                 : inner_make(ctx, self, msg, type, payload, bytes, &inner);
    if (err != TRP_OK) { /* gate-G1 */
        trpi_dead_letter_of(sharding->system, sender_of(msg), self,
                            err == TRP_ENOENT   ? TRP_DEAD_NO_SUCH_ACTOR
                            : err == TRP_ENOMEM ? TRP_DEAD_NO_MEMORY
                                                : TRP_DEAD_NOT_ENCODABLE,
                            type, type == NULL ? NULL : payload, bytes);
    } else if (head.kind == TRPI_ENVELOPE_RETURNED) {
        region_tell(ctx, region, &head, id, inner);
    } else {
        trpi_origin origin = { head.gate, head.epoch };
        trpi_entity_pass(region, ctx, id, head.id_bytes,
                         trp_ref_is_none(head.gate) ? NULL : &origin, inner);
    }
}

uint32_t
trpi_gate_arrived(void *arg, trp_ctx *ctx, trp_ref to, trp_ref sender, const trpi_carrier *what,
                  uint32_t count)
{
    const trpi_sharding *sharding = arg;
    uint32_t told = 0;
    while (told < count) {
        const trpi_entity_envelope *head = what[told].head;
        if (head->kind != TRPI_ENVELOPE_TOLD || head->id_bytes == 0 ||
            trp_ref_is_none(head->gate)) {
            break;
        }
        told++;
    }
    return trp_ref_equal(to, sharding->gate)
               ? trpi_entities_arrived(sharding, ctx, sender, what, told)
               : 0;
}

static bool
gate_route(void *arg, trp_ctx *ctx, trp_ref self, trp_msg *msg)
{
    if (!trp_msg_is(msg, &trpi_entity_envelope_type)) {
        return false;
    }
    envelope_take(arg, ctx, self, msg);
    trpi_msg_drop(msg);
    return true;
}

static void
gate_ended(void *arg, trp_system *system)
{
    (void)arg;
    (void)system;
}

static trp_err
gate_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return TRP_EUNHANDLED;
}

trp_err
trpi_gate_spawn(trpi_sharding *sharding)
{
    static const trp_behaviour gate = TRP_BEHAVIOUR_INIT("sharding-gate", char, gate_receive);
    static const trpi_routed_ops ops = { gate_route, gate_ended };
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    spawn.name = "sharding-gate";
    spawn.dispatcher = "default";
    spawn.mailbox = "unbounded";
    return trpi_system_spawn_routed(sharding->system, &gate, &spawn, &ops, sharding,
                                    &sharding->gate);
}

/* ---- asks ------------------------------------------------------------------------------------ */

/* Make the envelope of a question; NULL: *ret_err says why. The caller frees it. */
static char *
question_make(const trpi_sharding *sharding, const trp_entity *entity, const trp_type *type,
              const void *payload, size_t bytes, size_t *ret_bytes, trp_err *ret_err)
{
    if (entity == NULL || type == NULL || entity->id_bytes == 0 ||
        entity->id_bytes > TRP_ENTITY_ID_BYTES_MAX) {
        *ret_err = TRP_EINVAL;
        return NULL;
    }
    bytes = (type->flags & TRP_TYPE_VARIABLE) == 0 ? type->bytes : bytes;
    *ret_err = sharding == NULL || trpi_region_find(sharding, entity->type) == NULL ? TRP_ENOENT
               : type->number == 0                                                  ? TRP_ENOTYPE
                                                                                    : TRP_ENOMEM;
    *ret_bytes = trpi_envelope_head_bytes(entity->id_bytes) + bytes;
    char *question = *ret_err == TRP_ENOMEM ? trpi_alloc(*ret_bytes) : NULL;
    if (question != NULL) {
        trp_ref here = TRP_REF_NONE; /* it is of this node */
        trpi_gate_head head = { 0, entity->id, entity->id_bytes, 0, TRPI_ENVELOPE_TOLD };
        char *place = envelope_put(question, entity->type, here, &head, type);
        if (bytes > 0) {
            memcpy(place, payload, bytes);
        }
    }
    return question;
}

trp_err
trp_entity_ask(trp_ctx *ctx, const trp_entity *entity, const trp_type *type, const void *payload,
               size_t bytes, uint32_t timeout_ms, trp_reply_fn fn, void *arg)
{
    const trpi_sharding *sharding = trpi_ctx_entities(ctx);
    size_t all;
    trp_err err;
    char *question = question_make(sharding, entity, type, payload, bytes, &all, &err);
    if (question != NULL) {
        err = trp_ask(ctx, sharding->gate, &trpi_entity_envelope_type, question, all, timeout_ms,
                      fn, arg);
        trpi_free(question);
    }
    return err;
}

trp_err
trpi_system_entity_ask(trp_system *system, const trp_entity *entity, const trp_trace *trace,
                       const trp_type *type, const void *payload, size_t bytes,
                       const trpi_patience *patience, trp_msg **ret_reply)
{
    if (system == NULL || ret_reply == NULL) {
        return TRP_EINVAL;
    }
    const trpi_sharding *sharding = trpi_system_entities(system);
    size_t all;
    trp_err err;
    char *question = question_make(sharding, entity, type, payload, bytes, &all, &err);
    if (question != NULL) {
        trp_msg *reply = NULL;
        err = trpi_system_ask_whole(system, sharding->gate, &trpi_entity_envelope_type, question,
                                    all, trace, patience, &reply);
        if (err == TRP_OK) {
            *ret_reply = reply;
        } else {
            trp_msg_free(reply);
        }
        trpi_free(question);
    }
    return err;
}

trp_err
trp_system_entity_ask(trp_system *system, const trp_entity *entity, const trp_type *type,
                      const void *payload, size_t bytes, uint32_t timeout_ms, trp_msg **ret_reply)
{
    const trpi_patience patience = { .timeout_ms = timeout_ms };
    return trpi_system_entity_ask(system, entity, NULL, type, payload, bytes, &patience, ret_reply);
}

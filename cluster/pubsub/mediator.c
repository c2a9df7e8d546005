/* mediator.c - the mediator's actor: what the program asks of it, and its timer.
 *
 * Shape.   requests --mailbox--> audience (who sits here) --how many--> registry (which nodes)
 *                          `---> mediator_deliver.c
 * Must hold.
 *   mediator-M1  The registry's number for a key of this node is that of the audience, after each
 *       message.
 *   mediator-M2  Each subscribe and unsubscribe is acknowledged once.
 *   mediator-M3  A restart after a failure loses no subscriber: all is in the trp_mediator.
 *   mediator-M4  When its actor has stopped calls are refused, and peers hear that it is absent.
 * Limits.  TRP_MEDIATOR_ENTRIES_MAX, TRP_TOPIC_SUBSCRIBERS_MAX, TRP_MEDIATOR_WAITS_MAX,
 *          TRP_MEDIATOR_ASKS_MAX, TRP_MEDIATOR_ACKS_MAX.
 * Tests.   tests/unit/cluster/pubsub_test.c
 */
#include <string.h>

#include "base/alloc.h"
#include "cluster/pubsub/mediator.h"
#include "pattern/pattern.h"

enum { TICK_KEY = 1, TIMER_MS_MAX = 60000, ACK_KNOWN = 1 };

typedef struct mediator_state {
    trp_mediator *m;
} mediator_state;

uint64_t
mediator_now_ms(const trp_mediator *m)
{
    return trpi_world_mono_ns(trpi_system_world(m->system)) / 1000000u;
}

trpi_pubsub_key
mediator_key(trpi_pubsub_kind kind, const void *name, uint32_t name_bytes, const void *group,
             uint32_t group_bytes)
{
    return (trpi_pubsub_key){ .kind = kind,
                              .name_bytes = name_bytes,
                              .group_bytes = group_bytes,
                              .name = name,
                              .group = group };
}

/* ---- acknowledgements ------------------------------------------------------------------------ */

/* Build one; gives it. NULL: no memory. */
static mediator_late_ack *
ack_new(const mediator_request *request, const char *name, trp_err err)
{
    size_t text = (size_t)request->name_bytes + 1 + request->group_bytes + 1;
    size_t bytes = offsetof(trp_subscribe_ack, text) + (text < 8 ? 8 : text);
    mediator_late_ack *ack = trpi_alloc(sizeof *ack + bytes + sizeof(trp_subscribe_ack));
    if (ack != NULL) {
        trp_subscribe_ack head = { .subscriber = request->ref,
                                   .err = (int32_t)err,
                                   .topic_bytes = request->name_bytes,
                                   .group_bytes = request->group_bytes };
        char *to = ack->ack + offsetof(trp_subscribe_ack, text);
        memcpy(ack->ack, &head, sizeof head);
        memcpy(to, name, request->name_bytes);
        memcpy(to + request->name_bytes + 1, name + request->name_bytes, request->group_bytes);
        ack->bytes = bytes;
        ack->answer_to = trp_ref_is_none(request->answer_to) ? request->ref : request->answer_to;
    }
    return ack;
}

static void
ack_tell(trp_mediator *m, trp_ctx *ctx, const mediator_late_ack *ack, const trp_type *type)
{
    trpi_tell(ctx, ack->answer_to, m->actor, type, ack->ack, ack->bytes);
}

static void
ack_send(trp_mediator *m, trp_ctx *ctx, const mediator_request *request, const char *name,
         trp_err err)
{
    bool subscribes = request->kind == MEDIATOR_SUBSCRIBE;
    mediator_late_ack *ack = ack_new(request, name, err);
    if (ack == NULL) {
        trpi_dead_letter(m->system, m->actor, request->answer_to, TRP_DEAD_NO_MEMORY,
                         subscribes ? &trp_subscribe_ack_type : &trp_unsubscribe_ack_type, 0);
        return;
    }
    if (subscribes && err == TRP_OK && (request->flags & TRP_SUBSCRIBE_ACK_EVERYWHERE) != 0) {
        ack->version = trpi_pubreg_version(m->registry);
        *m->acks_end = ack;
        m->acks_end = &ack->next;
        m->acks_count++;
        return;
    }
    ack_tell(m, ctx, ack, subscribes ? &trp_subscribe_ack_type : &trp_unsubscribe_ack_type);
    trpi_free(ack);
}

/* Those that all other nodes know of by now. Versions grow along the list. */
static void
acks_step(trp_mediator *m, trp_ctx *ctx)
{
    while (m->acks != NULL && m->acks->version <= trpi_pubreg_known_version(m->registry)) {
        mediator_late_ack *ack = m->acks;
        uint32_t known = ACK_KNOWN;
        m->acks = ack->next;
        m->acks_end = m->acks == NULL ? &m->acks : m->acks_end;
        m->acks_count--;
        memcpy(ack->ack + offsetof(trp_subscribe_ack, everywhere), &known, sizeof known);
        ack_tell(m, ctx, ack, &trp_subscribe_ack_type);
        trpi_free(ack);
    }
}

/* ---- subscribers ----------------------------------------------------------------------------- */

/* mediator-M1 */
static trp_err
count_tell(trp_mediator *m, const trpi_pubsub_key *key, uint32_t count)
{
    pthread_mutex_lock(&m->lock);
    trp_err err = trpi_pubreg_put(m->registry, mediator_now_ms(m), key, count);
    pthread_mutex_unlock(&m->lock);
    return err;
}

static void
seat_leave(trp_mediator *m, trp_ctx *ctx, trpi_seat *seat, trp_ref ref)
{
    trpi_seats *seats = seat->seats;
    if (trpi_audience_leave(&m->audience, seat, ref) &&
        trpi_audience_any(&m->listeners, ref) == NULL) {
        trp_unwatch(ctx, ref);
    }
    (void)count_tell(m, &seats->key, seats->refs_count); /* to remove cannot fail */
    trpi_audience_tidy(&m->audience, seats);
}

static trp_err
seat_take(trp_mediator *m, trp_ctx *ctx, const trpi_pubsub_key *key, trp_ref ref, uint32_t flags)
{
    trpi_seats *seats;
    bool first;
    trp_err err = trpi_audience_add(&m->audience, key, ref, flags, &seats, &first);
    if (err != TRP_OK) {
        return err == TRP_EEXIST ? TRP_OK : err;
    }
    err = first ? trp_watch(ctx, ref) : TRP_OK;
    err = err != TRP_OK ? err : count_tell(m, key, seats->refs_count);
    if (err != TRP_OK) {
        trpi_seat *seat = trpi_audience_seat(&m->audience, seats, ref);
        if (trpi_audience_leave(&m->audience, seat, ref) &&
            trpi_audience_any(&m->listeners, ref) == NULL) {
            trp_unwatch(ctx, ref);
        }
        trpi_audience_tidy(&m->audience, seats);
    }
    return err;
}

static trpi_pubsub_key
topic_key(const mediator_request *request, const char *name)
{
    return mediator_key(request->group_bytes == 0 ? TRPI_PUBSUB_TOPIC : TRPI_PUBSUB_GROUP, name,
                        request->name_bytes, name + request->name_bytes, request->group_bytes);
}

static trp_err
topic_subscribe(trp_mediator *m, trp_ctx *ctx, const trpi_pubsub_key *key,
                const mediator_request *request)
{
    bool waits = (request->flags & TRP_SUBSCRIBE_ACK_EVERYWHERE) != 0;
    return waits && m->acks_count >= TRP_MEDIATOR_ACKS_MAX
               ? TRP_ELIMIT
               : seat_take(m, ctx, key, request->ref, request->flags);
}

static trp_err
topic_unsubscribe(trp_mediator *m, trp_ctx *ctx, const trpi_pubsub_key *key, trp_ref ref)
{
    trpi_seats *seats = trpi_audience_find(&m->audience, key, trpi_pubsub_key_hash(key));
    trpi_seat *seat = seats == NULL ? NULL : trpi_audience_seat(&m->audience, seats, ref);
    if (seat == NULL) {
        return TRP_ENOENT;
    }
    seat_leave(m, ctx, seat, ref);
    return TRP_OK;
}

static void
registration_take(trp_mediator *m, trp_ctx *ctx, const trpi_pubsub_key *key,
                  const mediator_request *request)
{
    trp_err err = seat_take(m, ctx, key, request->ref, 0);
    if (err != TRP_OK) {
        mediator_keys_register_failed(m, request, key->name, err);
    }
}

/* All under a path; ref: but for this one. */
static void
path_clear(trp_mediator *m, trp_ctx *ctx, const trpi_pubsub_key *path, trp_ref ref)
{
    trpi_seats *seats = trpi_audience_find(&m->audience, path, trpi_pubsub_key_hash(path));
    for (uint32_t i = seats == NULL ? 0 : seats->refs_count; i-- > 0;) {
        if (!trp_ref_equal(seats->refs[i], ref)) {
            bool last = seats->refs_count == 1; /* then they are freed */
            seat_leave(m, ctx, seats->places[i], seats->refs[i]);
            if (last) {
                return;
            }
        }
    }
}

static void
path_put(trp_mediator *m, trp_ctx *ctx, const trpi_pubsub_key *path, trp_ref ref)
{
    trp_err err = seat_take(m, ctx, path, ref, 0);
    if (err != TRP_OK) {
        trpi_log(m->system, TRP_LOG_ERROR, "pubsub",
                 "the actor %.*s could not be put: %s; messages that are sent to its path do not "
                 "reach it%s",
                 (int)path->name_bytes, (const char *)path->name, trp_strerror(err),
                 err == TRP_ELIMIT ? ": remove topics, groups or paths that nobody needs" : "");
        return;
    }
    path_clear(m, ctx, path, ref); /* one that had this path before it */
}

static void
subscriber_ended(trp_mediator *m, trp_ctx *ctx, trp_ref ref)
{
    trpi_seat *seat;
    while ((seat = trpi_audience_any(&m->audience, ref)) != NULL) {
        seat_leave(m, ctx, seat, ref);
    }
    mediator_keys_ended(m, ctx, ref);
}

/* ---- publications ---------------------------------------------------------------------------- */

static mediator_parcel
parcel_of(const trp_msg *msg)
{
    const mediator_request *request = trp_msg_payload(msg);
    size_t skip = mediator_request_head_bytes(request);
    return (mediator_parcel){ .sender = request->ref,
                              .type = trpi_type_get((uint16_t)request->type),
                              .payload = (const char *)request + skip,
                              .bytes = trp_msg_bytes(msg) - skip };
}

void
mediator_loss_show(const trp_type **type, const void **payload, size_t *bytes)
{
    const mediator_request *request = *payload;
    if (*type != &mediator_request_type) {
        trpi_topic_envelope_show(type, payload, bytes);
    } else if (request->type != 0) {
        size_t skip = mediator_request_head_bytes(request);
        *type = trpi_type_get((uint16_t)request->type);
        *payload = (const char *)request + skip;
        *bytes -= skip;
    }
}

/* A publication that asks is not published: it is a dead letter, and its asker is told. */
static void
request_refuse(trp_mediator *m, trp_ctx *ctx, const trp_msg *msg, trp_err err)
{
    trp_status_failure failure = { .err = (int32_t)err };
    mediator_parcel parcel = parcel_of(msg);
    mediator_dead(m, &parcel, m->actor, TRP_DEAD_NO_MEMORY);
    trpi_tell(ctx, trpi_msg_sender_get(msg), m->actor, &trp_status_failure_type, &failure,
              sizeof failure);
}

static void
request_publish(trp_mediator *m, trp_ctx *ctx, const trp_msg *msg, bool late)
{
    const mediator_request *request = trp_msg_payload(msg);
    trpi_pubsub_key topic = topic_key(request, (const char *)(request + 1));
    mediator_parcel parcel = parcel_of(msg);
    mediator_asker asker = { trpi_msg_sender_get(msg), 0, late };
    bool asks = (request->flags & MEDIATOR_ASKS) != 0;
    if (asks && trpi_tallies_count(m->tallies) >= TRP_MEDIATOR_ASKS_MAX) {
        request_refuse(m, ctx, msg, TRP_ELIMIT);
        return;
    }
    mediator_publish(m, ctx, &topic, &parcel, asks ? &asker : NULL, request->timeout_ms);
}

/* It waits for subscribers. */
static void
request_postpone(trp_mediator *m, trp_ctx *ctx, const trp_msg *msg)
{
    const mediator_request *request = trp_msg_payload(msg);
    trpi_pubsub_key topic = topic_key(request, (const char *)(request + 1));
    trp_msg *kept = NULL;
    uint64_t id;
    trp_err err = trp_msg_dup(msg, &kept);
    if (err == TRP_OK) {
        err = trpi_waits_add(m->waits, &topic, request->subscribers_min,
                             mediator_now_ms(m) + request->wait_ms, kept, &id);
    }
    if (err != TRP_OK) {
        trpi_msg_drop(kept);
        request_refuse(m, ctx, msg, err);
    }
}

static void
waits_step(trp_mediator *m, trp_ctx *ctx)
{
    trpi_wait_end end;
    while (trpi_waits_step(m->waits, m->registry, mediator_now_ms(m), &end)) {
        request_publish(m, ctx, end.arg, !end.ready);
        trpi_msg_drop(end.arg);
    }
}

static void
tallies_step(trp_mediator *m, trp_ctx *ctx)
{
    trpi_tally_end end;
    while (trpi_tallies_step(m->tallies, mediator_now_ms(m), &end)) {
        mediator_report(m, ctx, end.arg, end.delivered, end.answered, end.silent);
        trpi_free(end.arg);
    }
}

/* ---- the actor ------------------------------------------------------------------------------- */

static void
request_take(trp_mediator *m, trp_ctx *ctx, const trp_msg *msg)
{
    const mediator_request *request = trp_msg_payload(msg);
    const char *name = (const char *)(request + 1);
    trpi_pubsub_key path = mediator_key(TRPI_PUBSUB_PATH, name, request->name_bytes, NULL, 0);
    trpi_pubsub_key topic = topic_key(request, name);
    mediator_parcel parcel = parcel_of(msg);
    trp_ref nobody = TRP_REF_NONE;
    switch ((enum mediator_request_kind)request->kind) {
    case MEDIATOR_PUT:
        path_put(m, ctx, &path, request->ref);
        break;
    case MEDIATOR_REMOVE:
        path_clear(m, ctx, &path, nobody);
        break;
    case MEDIATOR_SUBSCRIBE:
        if (m->is_registry) {
            registration_take(m, ctx, &topic, request);
            break;
        }
        ack_send(m, ctx, request, name, topic_subscribe(m, ctx, &topic, request));
        break;
    case MEDIATOR_UNSUBSCRIBE:
        if (m->is_registry) {
            (void)topic_unsubscribe(m, ctx, &topic, request->ref); /* or it was not registered */
            break;
        }
        ack_send(m, ctx, request, name, topic_unsubscribe(m, ctx, &topic, request->ref));
        break;
    case MEDIATOR_LISTEN:
    case MEDIATOR_UNLISTEN:
        mediator_keys_listen(m, ctx, request, name);
        break;
    case MEDIATOR_SEND:
        mediator_send(m, ctx, &path, request->flags, &parcel);
        break;
    case MEDIATOR_SEND_TO_ALL:
        mediator_send_to_all(m, ctx, &path, request->flags, &parcel);
        break;
    case MEDIATOR_PUBLISH:
        if (request->subscribers_min > 0) {
            request_postpone(m, ctx, msg);
        } else {
            request_publish(m, ctx, msg, false);
        }
        break;
    }
}

static void
timer_set(trp_mediator *m, trp_ctx *ctx)
{
    uint64_t now_ms = mediator_now_ms(m), wake_ms = trpi_pubreg_wake_ms(m->registry);
    uint64_t other_ms = trpi_waits_wake_ms(m->waits);
    wake_ms = other_ms < wake_ms ? other_ms : wake_ms;
    other_ms = trpi_tallies_wake_ms(m->tallies);
    wake_ms = other_ms < wake_ms ? other_ms : wake_ms;
    other_ms = mediator_keys_wake_ms(m);
    wake_ms = other_ms < wake_ms ? other_ms : wake_ms;
    if (wake_ms == UINT64_MAX || (m->timer_ms > now_ms && m->timer_ms <= wake_ms)) {
        return;
    }
    uint64_t delay_ms = wake_ms <= now_ms ? 1 : wake_ms - now_ms;
    delay_ms = delay_ms < TIMER_MS_MAX ? delay_ms : TIMER_MS_MAX;
    /* without memory: the next message sets it */
    if (trp_timer_once(ctx, TICK_KEY, (uint32_t)delay_ms, &mediator_tick_type, NULL, 0) == TRP_OK) {
        m->timer_ms = now_ms + delay_ms;
    }
}

static void
registry_tick(trp_mediator *m, trp_ctx *ctx)
{
    m->timer_ms = 0;
    pthread_mutex_lock(&m->lock);
    trpi_pubreg_tick(m->registry, mediator_now_ms(m));
    pthread_mutex_unlock(&m->lock);
    mediator_actions(m, ctx);
}

static bool
is_member_event(const trp_msg *msg)
{
    for (uint32_t i = 0; i < trp_cluster_protocol.types_count; i++) {
        if (trp_msg_is(msg, trp_cluster_protocol.types[i])) {
            return true;
        }
    }
    return false;
}

static trp_err
mediator_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_mediator *m = ((mediator_state *)state)->m;
    if (trp_msg_is(msg, &mediator_request_type)) {
        request_take(m, ctx, msg);
    } else if (trp_msg_is(msg, &trpi_topic_envelope_type)) {
        mediator_envelope(m, ctx, msg);
    } else if (trp_msg_is(msg, &mediator_frame_type)) {
        mediator_frame(m, ctx, trp_msg_payload(msg), trp_msg_bytes(msg));
    } else if (trp_msg_is(msg, &mediator_tick_type)) {
        registry_tick(m, ctx);
    } else if (trp_msg_is(msg, &trp_terminated_type)) {
        subscriber_ended(m, ctx, ((const trp_terminated *)trp_msg_payload(msg))->ref);
    } else if (is_member_event(msg)) {
        mediator_members(m, ctx);
    } else {
        return TRP_EUNHANDLED;
    }
    acks_step(m, ctx);
    waits_step(m, ctx);
    tallies_step(m, ctx);
    mediator_keys_step(m, ctx);
    timer_set(m, ctx);
    return TRP_OK;
}

/* The registry tells other nodes where this actor is. */
static trp_err
registry_make(trp_mediator *m, trp_ref self)
{
    trpi_node_id id = *trpi_system_self(m->system);
    trpi_pubreg_options options = m->all->options;
    trpi_pubreg *registry;
    (void)mediators_address(m->all, &id.address);
    options.slot = self.slot;
    options.generation = self.generation;
    options.life = m->life;
    trp_err err = trpi_pubreg_new(&id, m->name, &options, &registry);
    if (err == TRP_OK) {
        pthread_mutex_lock(&m->lock);
        m->registry = registry;
        pthread_mutex_unlock(&m->lock);
    }
    return err;
}

/* mediator-M4 */
static void
mediator_over(trp_mediator *m)
{
    pthread_mutex_lock(&m->all->lock);
    if (!atomic_load(&m->ended)) {
        atomic_store(&m->ended, true);
        m->all->count -= !m->is_registry;
    }
    pthread_mutex_unlock(&m->all->lock);
}

static trp_err
mediator_begin(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trp_mediator *m;
    trp_ref ref;
    trpi_address here;
    uint32_t position = 0;
    trp_err err = TRP_OK;
    memcpy(&m, trp_msg_payload(args), sizeof m);
    ((mediator_state *)state)->m = m;
    m->timer_ms = 0;
    if (m->registry == NULL) {
        err = registry_make(m, trp_self(ctx));
    }
    while (err == TRP_OK && trpi_audience_next(&m->audience, &position, &ref)) {
        err = trp_watch(ctx, ref); /* mediator-M3 */
    }
    position = 0;
    while (err == TRP_OK && trpi_audience_next(&m->listeners, &position, &ref)) {
        err = trp_watch(ctx, ref);
    }
    if (err == TRP_OK && mediators_address(m->all, &here)) {
        err = trp_cluster_subscribe(m->system, trp_self(ctx), TRP_CLUSTER_MEMBER_EVENTS);
    }
    if (err == TRP_OK) {
        mediator_members(m, ctx);
        timer_set(m, ctx);
    } else {
        mediator_over(m); /* it is not tried again */
    }
    return err;
}

/* mediator-M3: nothing is undone before a restart. */
static trp_err
mediator_pause(trp_ctx *ctx, void *state, const trp_failure *why, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)why;
    (void)msg;
    return TRP_OK;
}

static void
mediator_end(trp_ctx *ctx, void *state)
{
    trp_mediator *m = ((mediator_state *)state)->m;
    (void)ctx;
    mediator_over(m);
}

const trp_behaviour mediator_behaviour = { .size = sizeof(trp_behaviour),
                                           .name = "pubsub-mediator",
                                           .version = 1,
                                           .state_bytes = sizeof(mediator_state),
                                           .receive = mediator_receive,
                                           .pre_start = mediator_begin,
                                           .post_stop = mediator_end,
                                           .pre_restart = mediator_pause };

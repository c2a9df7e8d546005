/* mediator_calls.c - what programs call: each call is a message to the mediator's actor, which
 * carries what is to be published.
 *
 * Must hold.
 *   mediator-calls-A1  The calls of one thread or actor are done in their order.
 * Limits.  TRP_TOPIC_BYTES_MAX, TRP_TOPIC_GROUP_BYTES_MAX.
 * Tests.   tests/unit/cluster/pubsub_test.c
 */
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "cluster/pubsub/mediator.h"

enum { ASK_SLACK_MS = 2000 }; /* the mediator answers before */

/* The message that a request carries; type NULL: none. */
typedef struct cargo {
    const trp_type *type;
    const void *payload;
    size_t bytes;
} cargo;

static trp_err
text_check(const char *text, size_t bytes_max, uint32_t *ret_bytes)
{
    size_t bytes = text == NULL ? 0 : strnlen(text, bytes_max + 1);
    *ret_bytes = (uint32_t)bytes;
    return bytes == 0 ? TRP_EINVAL : bytes > bytes_max ? TRP_ELIMIT : TRP_OK;
}

/* Measure the names and the cargo of a request. */
static trp_err
request_check(const trp_mediator *m, mediator_request *request, const char *name, const char *group,
              cargo *c)
{
    trp_err err = m == NULL ? TRP_EINVAL
                  : atomic_load(&m->ended)
                      ? TRP_ECLOSED /* mediator-M4 */
                      : text_check(name, TRP_TOPIC_BYTES_MAX, &request->name_bytes);
    if (err == TRP_OK && group != NULL) {
        err = text_check(group, TRP_TOPIC_GROUP_BYTES_MAX, &request->group_bytes);
    }
    if (err != TRP_OK || c == NULL) {
        return err;
    }
    if (c->type == NULL || (c->payload == NULL && c->bytes > 0)) {
        return TRP_EINVAL;
    }
    if (c->type->number == 0) {
        return TRP_ENOTYPE;
    }
    if ((c->type->flags & TRP_TYPE_VARIABLE) == 0) {
        c->bytes = c->type->bytes;
    }
    request->type = c->type->number;
    return c->bytes < c->type->bytes ? TRP_EINVAL : TRP_OK;
}

static size_t
request_bytes(const mediator_request *request, const cargo *c)
{
    return mediator_request_head_bytes(request) + (c == NULL ? 0 : c->bytes);
}

static void
request_write(char *to, const mediator_request *request, const char *name, const char *group,
              const cargo *c)
{
    size_t all = mediator_request_head_bytes(request);
    size_t text = (size_t)request->name_bytes + request->group_bytes;
    memcpy(to, request, sizeof *request);
    memcpy(to + sizeof *request, name, request->name_bytes);
    if (request->group_bytes > 0) {
        memcpy(to + sizeof *request + request->name_bytes, group, request->group_bytes);
    }
    memset(to + sizeof *request + text, 0, all - sizeof *request - text);
    if (c != NULL && c->bytes > 0) {
        memcpy(to + all, c->payload, c->bytes);
    }
}

static trp_err
request_send(trp_mediator *m, mediator_request *request, const char *name, const char *group,
             cargo *c)
{
    trp_ref nobody = TRP_REF_NONE;
    trp_msg *msg;
    void *payload;
    trp_err err = request_check(m, request, name, group, c);
    if (err == TRP_OK) {
        err = trp_msg_new(&mediator_request_type, request_bytes(request, c), &msg, &payload);
    }
    if (err != TRP_OK) {
        return err;
    }
    request_write(payload, request, name, group, c);
    trp_ctx *ctx = trpi_enter(m->system);
    /* a subscription is no consequence of the message that was handled, a publication is */
    trpi_send_as(ctx, m->actor, nobody, c == NULL ? msg : trpi_trail_put(ctx, msg));
    trpi_leave(ctx);
    return TRP_OK;
}

/* ---- subscribers ----------------------------------------------------------------------------- */

static trp_err
local_check(trp_ref ref)
{
    return trp_ref_is_none(ref)         ? TRP_EINVAL
           : ref.node != TRPI_NODE_SELF ? TRP_EUNSUPPORTED
                                        : TRP_OK;
}

static trp_err
subscription_send(trp_mediator *m, enum mediator_request_kind kind, const char *topic,
                  trp_ref subscriber, const trp_subscribe_options *options)
{
    trp_subscribe_options own = TRP_SUBSCRIBE_OPTIONS_INIT;
    if (options != NULL && !TRPI_SIZED_COPY(options, &own, flags)) {
        return TRP_EINVAL;
    }
    if ((own.flags & ~(uint32_t)(TRP_SUBSCRIBE_TELLS_MISSED | TRP_SUBSCRIBE_ACK_EVERYWHERE)) != 0) {
        return TRP_EINVAL;
    }
    mediator_request request = {
        .ref = subscriber, .answer_to = own.answer_to, .kind = kind, .flags = own.flags
    };
    trp_err err = local_check(subscriber);
    return err != TRP_OK ? err : request_send(m, &request, topic, own.group, NULL);
}

trp_err
trp_mediator_subscribe(trp_mediator *mediator, const char *topic, trp_ref subscriber,
                       const trp_subscribe_options *options)
{
    return subscription_send(mediator, MEDIATOR_SUBSCRIBE, topic, subscriber, options);
}

trp_err
trp_mediator_unsubscribe(trp_mediator *mediator, const char *topic, trp_ref subscriber,
                         const trp_subscribe_options *options)
{
    return subscription_send(mediator, MEDIATOR_UNSUBSCRIBE, topic, subscriber, options);
}

trp_err
trp_mediator_put(trp_mediator *mediator, trp_ref ref)
{
    char path[TRP_TOPIC_BYTES_MAX + 2]; /* one that is cut is too long */
    mediator_request request = { .ref = ref, .kind = MEDIATOR_PUT };
    trp_err err = mediator == NULL ? TRP_EINVAL : local_check(ref);
    if (err == TRP_OK && !trpi_inbound_is_there(mediator->system, ref.slot, ref.generation)) {
        err = TRP_ENOENT;
    }
    return err != TRP_OK
               ? err
               : request_send(mediator, &request,
                              trp_path(mediator->system, ref, path, sizeof path), NULL, NULL);
}

trp_err
trp_mediator_remove(trp_mediator *mediator, const char *path)
{
    mediator_request request = { .kind = MEDIATOR_REMOVE };
    return request_send(mediator, &request, path, NULL, NULL);
}

/* ---- publishers ------------------------------------------------------------------------------ */

trp_err
trp_mediator_publish(trp_mediator *mediator, trp_ref sender, const char *topic,
                     const trp_type *type, const void *payload, size_t bytes)
{
    mediator_request request = { .ref = sender, .kind = MEDIATOR_PUBLISH };
    cargo c = { type, payload, bytes };
    return request_send(mediator, &request, topic, NULL, &c);
}

trp_err
trp_mediator_send(trp_mediator *mediator, trp_ref sender, const char *path, uint32_t flags,
                  const trp_type *type, const void *payload, size_t bytes)
{
    mediator_request request = { .ref = sender, .kind = MEDIATOR_SEND, .flags = flags };
    cargo c = { type, payload, bytes };
    return (flags & ~(uint32_t)TRP_SEND_LOCAL_AFFINITY) != 0
               ? TRP_EINVAL
               : request_send(mediator, &request, path, NULL, &c);
}

trp_err
trp_mediator_send_to_all(trp_mediator *mediator, trp_ref sender, const char *path, uint32_t flags,
                         const trp_type *type, const void *payload, size_t bytes)
{
    mediator_request request = { .ref = sender, .kind = MEDIATOR_SEND_TO_ALL, .flags = flags };
    cargo c = { type, payload, bytes };
    return (flags & ~(uint32_t)TRP_SEND_ALL_BUT_SELF) != 0
               ? TRP_EINVAL
               : request_send(mediator, &request, path, NULL, &c);
}

/* ---- with an answer -------------------------------------------------------------------------- */

/* Gives *ret_bytes (trpi_free), a request of *ret_count bytes. */
static trp_err
question_make(const trp_mediator *m, trp_ref sender, const char *topic,
              const trp_publish_options *options, cargo *c, char **ret_bytes, size_t *ret_count,
              uint32_t *ret_timeout_ms)
{
    trp_publish_options own = TRP_PUBLISH_OPTIONS_INIT;
    mediator_request request = { .ref = sender, .kind = MEDIATOR_PUBLISH, .flags = MEDIATOR_ASKS };
    if ((options != NULL && !TRPI_SIZED_COPY(options, &own, timeout_ms)) || own.timeout_ms == 0 ||
        own.timeout_ms > TRP_PUBLISH_TIMEOUT_MS_MAX || own.wait_ms > TRP_PUBLISH_TIMEOUT_MS_MAX) {
        return TRP_EINVAL;
    }
    request.subscribers_min = own.subscribers_min;
    request.wait_ms = own.wait_ms;
    request.timeout_ms = own.timeout_ms;
    trp_err err = request_check(m, &request, topic, NULL, c);
    if (err != TRP_OK) {
        return err;
    }
    *ret_count = request_bytes(&request, c);
    *ret_bytes = trpi_alloc(*ret_count);
    if (*ret_bytes == NULL) {
        return TRP_ENOMEM;
    }
    request_write(*ret_bytes, &request, topic, NULL, c);
    *ret_timeout_ms = own.wait_ms + own.timeout_ms + ASK_SLACK_MS;
    return TRP_OK;
}

trp_err
trp_mediator_publish_ask(trp_ctx *ctx, trp_mediator *mediator, const char *topic,
                         const trp_publish_options *options, const trp_type *type,
                         const void *payload, size_t bytes, trp_reply_fn fn, void *arg)
{
    cargo c = { type, payload, bytes };
    char *question;
    size_t count;
    uint32_t timeout_ms;
    trp_err err =
        question_make(mediator, trp_self(ctx), topic, options, &c, &question, &count, &timeout_ms);
    if (err == TRP_OK) {
        err = trp_ask(ctx, mediator->actor, &mediator_request_type, question, count, timeout_ms, fn,
                      arg);
        trpi_free(question);
    }
    return err;
}

trp_err
trp_mediator_publish_wait(trp_mediator *mediator, const char *topic,
                          const trp_publish_options *options, const trp_type *type,
                          const void *payload, size_t bytes, trp_publish_report *ret_report)
{
    trp_ref nobody = TRP_REF_NONE;
    cargo c = { type, payload, bytes };
    char *question;
    size_t count;
    uint32_t timeout_ms;
    trp_msg *reply = NULL;
    if (ret_report == NULL) {
        return TRP_EINVAL;
    }
    trp_err err =
        question_make(mediator, nobody, topic, options, &c, &question, &count, &timeout_ms);
    if (err != TRP_OK) {
        return err;
    }
    err = trpi_system_in_behaviour(mediator->system)
              ? TRP_ESTATE
              : trp_system_ask(mediator->system, mediator->actor, &mediator_request_type, question,
                               count, timeout_ms, &reply);
    trpi_free(question);
    const trp_publish_report *report =
        err == TRP_OK ? trp_msg_as(reply, &trp_publish_report_type) : NULL;
    if (report != NULL) {
        *ret_report = *report;
    }
    trp_msg_free(reply);
    return err == TRP_OK && report == NULL ? TRP_EDATA : err;
}

/* ---- looking --------------------------------------------------------------------------------- */

static void
topic_tell(const trpi_pubreg_entry *entry, void (*fn)(void *arg, const trp_topic_info *info),
           void *arg)
{
    char text[TRP_TOPIC_BYTES_MAX + 1], group[TRP_TOPIC_GROUP_BYTES_MAX + 1];
    trp_topic_info info = { .topic = text,
                            .group = entry->key.kind == TRPI_PUBSUB_GROUP ? group : NULL,
                            .topic_bytes = entry->key.name_bytes,
                            .group_bytes = entry->key.group_bytes,
                            .nodes = entry->places_count };
    memcpy(text, entry->key.name, entry->key.name_bytes);
    text[entry->key.name_bytes] = '\0';
    if (info.group != NULL) {
        memcpy(group, entry->key.group, entry->key.group_bytes);
        group[entry->key.group_bytes] = '\0';
    }
    for (uint32_t i = 0; i < entry->places_count; i++) {
        info.subscribers += entry->places[i].count;
        if (entry->places[i].node == TRPI_PUBREG_SELF) {
            info.subscribers_here = entry->places[i].count;
        }
    }
    fn(arg, &info);
}

void
trp_mediator_topics(trp_mediator *mediator, void (*fn)(void *arg, const trp_topic_info *info),
                    void *arg)
{
    uint32_t position = 0;
    const trpi_pubreg_entry *entry;
    pthread_mutex_lock(&mediator->lock);
    while (mediator->registry != NULL &&
           (entry = trpi_pubreg_next(mediator->registry, &position)) != NULL) {
        if (mediator->is_registry) {
            if (entry->key.kind == TRPI_PUBSUB_TOPIC) {
                mediator_keys_show(entry, fn, arg);
            }
        } else if (entry->key.kind != TRPI_PUBSUB_PATH && entry->places_count > 0) {
            topic_tell(entry, fn, arg);
        }
    }
    pthread_mutex_unlock(&mediator->lock);
}

uint32_t
trp_mediator_topics_count(trp_mediator *mediator)
{
    pthread_mutex_lock(&mediator->lock);
    uint32_t count = mediator->registry == NULL ? 0 : trpi_pubreg_topics(mediator->registry);
    pthread_mutex_unlock(&mediator->lock);
    return count;
}

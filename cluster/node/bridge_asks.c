/* bridge_asks.c - what a voice waits for: answers to asks, paths to watch, topics.
 *
 * Shape.   request -> a path is resolved, or the mediator is told -> the answer -> line
 * Must hold.
 *   bridge-asks-K1  Each ask, watch and publication with an id is answered once, also when the
 *       actor that made it stops before; then without an ack, which it would not see.
 * Limits.  TRPI_BRIDGE_ASKS_MAX and TRPI_BRIDGE_WATCHES_MAX of one program
 * Tests.   tests/system/bridge.sh
 */
#include <stdio.h>
#include <string.h>

#include <troupe/cluster.h>
#include <troupe/io.h>
#include <troupe/pubsub.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "cluster/node/bridge_voice.h"
#include "cluster/node/ctl_proto.h"
#include "cluster/node/payload_json.h"

#define ENTITY_PREFIX "/cluster/"

struct trpi_bridge_watch {
    struct trpi_bridge_watch *next;
    trp_ref ref;
    char to[]; /* as the program wrote it */
};

struct trpi_bridge_ack {
    struct trpi_bridge_ack *next;
    uint64_t id;
    bool has_id, ends;
    char topic[]; /* a NUL, the group, a NUL */
};

/* An ask or a watch that waits. Memory of the actor's. */
typedef struct waiting {
    trpi_bridge_voice *v;
    struct waiting *next, **at;  /* in the voice's list */
    trpi_bridge_request request; /* without json; its texts are below */
    trpi_bridge_message message; /* its payload is the actor's memory */
    uint64_t until_ms;
    trp_ref found;
    trp_err begun; /* of the ask itself */
    char to[];
} waiting;

/* ---- asks: a path is resolved first ---------------------------------------------------------- */

static void
waiting_end(trp_ctx *ctx, waiting *w)
{
    (void)atomic_fetch_sub(&w->v->bridge->asks, 1);
    *w->at = w->next;
    if (w->next != NULL) {
        w->next->at = w->at;
    }
    trp_alloc_free(ctx, w->message.owned);
    trp_alloc_free(ctx, w);
}

/* NULL: too many wait, which has been answered. */
static waiting *
waiting_new(trp_ctx *ctx, trpi_bridge_voice *v, const trpi_bridge_request *request,
            const trpi_bridge_message *message)
{
    const char *to = request->to != NULL ? request->to : request->topic;
    if (atomic_fetch_add(&v->bridge->asks, 1) >= TRPI_BRIDGE_ASKS_MAX) {
        (void)atomic_fetch_sub(&v->bridge->asks, 1);
        trpi_bridge_voice_refuse(ctx, v, request, TRPI_CTL_EXIT_TIMEOUT,
                                 "wait for answers before you ask on",
                                 "%u asks of this program wait already", TRPI_BRIDGE_ASKS_MAX);
        return NULL;
    }
    waiting *w = trp_alloc(ctx, sizeof *w + strlen(to) + 1);
    w->v = v;
    w->next = v->waitings;
    w->at = &v->waitings;
    v->waitings = w;
    if (w->next != NULL) {
        w->next->at = &w->next;
    }
    w->request = *request;
    w->request.json = NULL;
    memcpy(w->to, to, strlen(to) + 1);
    w->request.to = w->to;
    w->until_ms = trp_now_ms(ctx) + request->timeout_ms;
    if (message != NULL) {
        w->message = *message;
        w->message.owned = trp_alloc(ctx, message->bytes + 1);
        memcpy(w->message.owned, message->payload, message->bytes);
        w->message.payload = w->message.owned;
    }
    return w;
}

/* Answer an ask that was not answered in the ordinary way. */
static void
answer_refuse(trp_ctx *ctx, waiting *w, trp_err err, const trp_msg *reply)
{
    char reason[sizeof(((trp_status_failure *)0)->reason) + 1] = "";
    const trp_status_failure *failure =
        reply == NULL ? NULL : trp_msg_as(reply, &trp_status_failure_type);
    if (failure == NULL) {
        trpi_bridge_refuse_err(ctx, w->v, &w->request, err, w->to);
        return;
    }
    memcpy(reason, failure->reason, sizeof failure->reason);
    trpi_bridge_voice_refuse(
        ctx, w->v, &w->request, err == TRP_EDATA ? TRPI_CTL_EXIT_DATA : TRPI_CTL_EXIT_NO, NULL,
        "%.600s refused: %s", w->to, reason[0] != '\0' ? reason : trp_strerror(err));
}

static trp_err
on_answer(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    waiting *w = arg;
    trp_trace trace;
    (void)state;
    if (err != TRP_OK) {
        answer_refuse(ctx, w, err, reply);
        waiting_end(ctx, w);
        return TRP_OK;
    }
    cJSON *answer = trpi_bridge_answer(w->request.id);
    bool ok = trpi_bridge_move(answer, trpi_payload_to_json(w->v->bridge->system, reply));
    if (ok && trp_msg_trace(reply, &trace)) {
        char text[TRP_TRACE_TEXT_BYTES];
        trp_trace_format(&trace, text);
        ok = trpi_json_add_text(answer, "traceparent", text);
    }
    char *line = trpi_bridge_print(answer, ok);
    if (line != NULL && strlen(line) > TRPI_BRIDGE_LINE_BYTES_MAX + 1) {
        cJSON_free(line);
        trpi_bridge_voice_refuse(ctx, w->v, &w->request, TRPI_CTL_EXIT_DATA, NULL,
                                 "%.600s: the answer is longer than a line of %u bytes", w->to,
                                 TRPI_BRIDGE_LINE_BYTES_MAX);
    } else {
        trpi_bridge_voice_write(ctx, w->v, line);
    }
    waiting_end(ctx, w);
    return TRP_OK;
}

static trp_err
ask_found(trp_ctx *ctx, void *arg)
{
    waiting *w = arg;
    uint64_t now_ms = trp_now_ms(ctx);
    w->begun = now_ms >= w->until_ms
                   ? TRP_ETIMEDOUT
                   : trp_ask(ctx, w->found, w->message.type, w->message.payload, w->message.bytes,
                             (uint32_t)(w->until_ms - now_ms), on_answer, w);
    return TRP_OK;
}

/* Run fn, as part of the request's trace if it has one. */
trp_err
trpi_bridge_in_trace(trp_ctx *ctx, const trpi_bridge_request *request,
                     trp_err (*fn)(trp_ctx *ctx, void *arg), void *arg)
{
    return request->has_trace ? trpi_in_trace(ctx, &request->trace, fn, arg) : fn(ctx, arg);
}

static trp_err
on_found(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    waiting *w = arg;
    const trp_actor_identity *identity =
        reply == NULL ? NULL : trp_msg_as(reply, &trp_actor_identity_type);
    (void)state;
    if (err == TRP_OK && identity == NULL) {
        err = TRP_ENOENT;
    }
    if (err == TRP_OK) {
        w->found = identity->ref;
        err = trpi_bridge_in_trace(ctx, &w->request, ask_found, w);
        err = err == TRP_OK ? w->begun : err;
    }
    if (err != TRP_OK) {
        trpi_bridge_refuse_err(ctx, w->v, &w->request, err, w->to);
        waiting_end(ctx, w);
    }
    return TRP_OK;
}

bool
trpi_bridge_entity_parse(trp_ctx *ctx, trpi_bridge_voice *v, const trpi_bridge_request *request,
                         trp_entity *ret_entity)
{
    if (trp_entity_parse(request->to, ret_entity) == TRP_OK) {
        return true;
    }
    trpi_bridge_voice_refuse(ctx, v, request, TRPI_CTL_EXIT_USAGE,
                             "write /cluster/TYPE/ID; other bytes of the ID are %XX",
                             "'%.256s' is no path of an entity", request->to);
    return false;
}

bool
trpi_bridge_is_entity(const char *to)
{
    return strncmp(to, ENTITY_PREFIX, strlen(ENTITY_PREFIX)) == 0;
}

void
trpi_bridge_ask_do(trp_ctx *ctx, trpi_bridge_voice *v, const trpi_bridge_request *request,
                   const trpi_bridge_message *m)
{
    trp_entity entity;
    bool sharded = trpi_bridge_is_entity(request->to);
    if (sharded && !trpi_bridge_entity_parse(ctx, v, request, &entity)) {
        return;
    }
    waiting *w = waiting_new(ctx, v, request, m);
    if (w == NULL) {
        return;
    }
    trp_err err = sharded ? trp_entity_ask(ctx, &entity, w->message.type, w->message.payload,
                                           w->message.bytes, request->timeout_ms, on_answer, w)
                          : trp_resolve(ctx, w->to, request->timeout_ms, on_found, w);
    if (err != TRP_OK) {
        trpi_bridge_refuse_err(ctx, v, request, err, w->to);
        waiting_end(ctx, w);
    }
}

/* ---- watches --------------------------------------------------------------------------------- */

trp_err
trpi_bridge_voice_watch(trp_ctx *ctx, trpi_bridge_voice *v, trp_ref ref, const char *to)
{
    for (struct trpi_bridge_watch *w = v->watches; w != NULL; w = w->next) {
        if (trp_ref_equal(w->ref, ref) && strcmp(w->to, to) == 0) {
            return TRP_OK; /* twice is once */
        }
    }
    trp_err err = atomic_fetch_add(&v->bridge->watches, 1) < TRPI_BRIDGE_WATCHES_MAX
                      ? trp_watch(ctx, ref)
                      : TRP_ELIMIT;
    if (err != TRP_OK) {
        (void)atomic_fetch_sub(&v->bridge->watches, 1);
        return err;
    }
    struct trpi_bridge_watch *w = trp_alloc(ctx, sizeof *w + strlen(to) + 1);
    w->ref = ref;
    memcpy(w->to, to, strlen(to) + 1);
    w->next = v->watches;
    v->watches = w;
    return TRP_OK;
}

static trp_err
on_watch_found(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    waiting *w = arg;
    const trp_actor_identity *identity =
        reply == NULL ? NULL : trp_msg_as(reply, &trp_actor_identity_type);
    (void)state;
    if (err == TRP_OK) {
        err = identity == NULL ? TRP_ENOENT
                               : trpi_bridge_voice_watch(ctx, w->v, identity->ref, w->to);
    }
    if (err == TRP_OK) {
        trpi_bridge_voice_ok(ctx, w->v, &w->request);
    } else if (err == TRP_ELIMIT) {
        trpi_bridge_voice_refuse(ctx, w->v, &w->request, TRPI_CTL_EXIT_TIMEOUT,
                                 "unwatch what is not needed",
                                 "this program watches %u actors already", TRPI_BRIDGE_WATCHES_MAX);
    } else {
        trpi_bridge_refuse_err(ctx, w->v, &w->request, err, w->to);
    }
    waiting_end(ctx, w);
    return TRP_OK;
}

void
trpi_bridge_watch_do(trp_ctx *ctx, trpi_bridge_voice *v, const trpi_bridge_request *request)
{
    waiting *w = waiting_new(ctx, v, request, NULL);
    trp_err err =
        w == NULL ? TRP_OK : trp_resolve(ctx, w->to, request->timeout_ms, on_watch_found, w);
    if (err != TRP_OK) {
        trpi_bridge_refuse_err(ctx, v, request, err, w->to);
        waiting_end(ctx, w);
    }
}

/* Does another watch want it, too? */
static bool
is_watched(const trpi_bridge_voice *v, trp_ref ref)
{
    for (const struct trpi_bridge_watch *w = v->watches; w != NULL; w = w->next) {
        if (trp_ref_equal(w->ref, ref)) {
            return true;
        }
    }
    return false;
}

void
trpi_bridge_unwatch_do(trp_ctx *ctx, trpi_bridge_voice *v, const trpi_bridge_request *request)
{
    bool any = false;
    for (struct trpi_bridge_watch **at = &v->watches; *at != NULL;) {
        struct trpi_bridge_watch *w = *at;
        if (strcmp(w->to, request->to) != 0) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        any = true;
        (void)atomic_fetch_sub(&v->bridge->watches, 1);
        if (!is_watched(v, w->ref)) {
            trp_unwatch(ctx, w->ref);
        }
        trp_alloc_free(ctx, w);
    }
    if (any) {
        trpi_bridge_voice_ok(ctx, v, request);
    } else {
        trpi_bridge_voice_refuse(ctx, v, request, TRPI_CTL_EXIT_NOT_FOUND, NULL,
                                 "'%.600s' is not watched", request->to);
    }
}

void
trpi_bridge_on_terminated(trp_ctx *ctx, trpi_bridge_voice *v, const trp_terminated *terminated)
{
    for (struct trpi_bridge_watch **at = &v->watches; *at != NULL;) {
        struct trpi_bridge_watch *w = *at;
        if (!trp_ref_equal(w->ref, terminated->ref)) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        (void)atomic_fetch_sub(&v->bridge->watches, 1);
        cJSON *event = trpi_bridge_event("terminated");
        bool ok = trpi_json_add_text(event, "actor", v->actor) &&
                  trpi_json_add_text(event, "to", w->to) &&
                  trpi_json_add_bool(event, "nodeLost", terminated->address_terminated != 0);
        trp_alloc_free(ctx, w);
        trpi_bridge_voice_write(ctx, v, trpi_bridge_print(event, ok));
    }
}

/* ---- topics ---------------------------------------------------------------------------------- */

static trp_err
mediator_find(trp_ctx *ctx, trpi_bridge_voice *v, const trpi_bridge_request *request,
              trp_mediator **ret_mediator)
{
    trp_err err = trp_mediator_of(v->bridge->system, NULL, ret_mediator);
    if (err == TRP_EROLE) {
        trpi_bridge_voice_refuse(ctx, v, request, TRPI_CTL_EXIT_NO, "cluster.pub-sub.role",
                                 "this node has no mediator: it does not have its role");
    } else if (err != TRP_OK) {
        trpi_bridge_refuse_err(ctx, v, request, err, request->topic);
    }
    return err;
}

void
trpi_bridge_subscribe_do(trp_ctx *ctx, trpi_bridge_voice *v, const trpi_bridge_request *request,
                         bool ends)
{
    trp_subscribe_options options = TRP_SUBSCRIBE_OPTIONS_INIT;
    const char *group = request->group == NULL ? "" : request->group;
    size_t topic_bytes = strlen(request->topic) + 1, group_bytes = strlen(group) + 1;
    trp_mediator *mediator;
    if (mediator_find(ctx, v, request, &mediator) != TRP_OK) {
        return;
    }
    struct trpi_bridge_ack *ack = trp_alloc(ctx, sizeof *ack + topic_bytes + group_bytes);
    ack->id = request->id;
    ack->has_id = request->has_id;
    ack->ends = ends;
    memcpy(ack->topic, request->topic, topic_bytes);
    memcpy(ack->topic + topic_bytes, group, group_bytes);
    options.group = request->group;
    trp_err err = ends ? trp_mediator_unsubscribe(mediator, request->topic, trp_self(ctx), &options)
                       : trp_mediator_subscribe(mediator, request->topic, trp_self(ctx), &options);
    if (err != TRP_OK) {
        trp_alloc_free(ctx, ack);
        trpi_bridge_refuse_err(ctx, v, request, err, request->topic);
        return;
    }
    ack->next = v->acks;
    v->acks = ack;
}

void
trpi_bridge_on_subscribe_ack(trp_ctx *ctx, trpi_bridge_voice *v, const trp_subscribe_ack *done,
                             bool ends)
{
    const char *topic = trp_subscribe_ack_topic(done), *group = trp_subscribe_ack_group(done);
    struct trpi_bridge_ack **found = NULL; /* the oldest: requests were put in front */
    for (struct trpi_bridge_ack **at = &v->acks; *at != NULL; at = &(*at)->next) {
        if ((*at)->ends == ends && strcmp((*at)->topic, topic) == 0 &&
            strcmp((*at)->topic + strlen(topic) + 1, group) == 0) {
            found = at;
        }
    }
    if (found == NULL) {
        return;
    }
    struct trpi_bridge_ack *ack = *found;
    trpi_bridge_request request = { .has_id = ack->has_id,
                                    .id = ack->id,
                                    .op = ends ? TRPI_BRIDGE_UNSUBSCRIBE : TRPI_BRIDGE_SUBSCRIBE };
    *found = ack->next;
    trp_alloc_free(ctx, ack);
    if (done->err == TRP_OK) {
        trpi_bridge_voice_ok(ctx, v, &request);
    } else {
        trpi_bridge_voice_refuse(
            ctx, v, &request, trpi_ctl_exit_of((trp_err)done->err), NULL, "%.300s: %s", topic,
            done->err == TRP_ENOENT ? "it is not subscribed" : trp_strerror((trp_err)done->err));
    }
}

static trp_err
on_published(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    waiting *w = arg;
    const trp_publish_report *report =
        reply == NULL ? NULL : trp_msg_as(reply, &trp_publish_report_type);
    (void)state;
    if (err != TRP_OK || report == NULL) {
        answer_refuse(ctx, w, err != TRP_OK ? err : TRP_EDATA, reply);
    } else {
        cJSON *answer = trpi_bridge_answer(w->request.id);
        bool ok = trpi_json_add_i64(answer, "delivered", (int64_t)report->delivered) &&
                  trpi_json_add_i64(answer, "nodes", report->nodes) &&
                  trpi_json_add_i64(answer, "silent", report->silent);
        trpi_bridge_voice_write(ctx, w->v, trpi_bridge_print(answer, ok));
    }
    waiting_end(ctx, w);
    return TRP_OK;
}

void
trpi_bridge_publish_do(trp_ctx *ctx, trpi_bridge_voice *v, const trpi_bridge_request *request,
                       const trpi_bridge_message *m)
{
    trp_publish_options options = TRP_PUBLISH_OPTIONS_INIT;
    trp_mediator *mediator;
    waiting *w = NULL;
    if (mediator_find(ctx, v, request, &mediator) != TRP_OK ||
        (request->has_id && (w = waiting_new(ctx, v, request, NULL)) == NULL)) {
        return;
    }
    options.timeout_ms = request->timeout_ms < TRP_PUBLISH_TIMEOUT_MS_MAX
                             ? request->timeout_ms
                             : TRP_PUBLISH_TIMEOUT_MS_MAX;
    trp_err err = w == NULL
                      ? trp_mediator_publish(mediator, trp_self(ctx), request->topic, m->type,
                                             m->payload, m->bytes)
                      : trp_mediator_publish_ask(ctx, mediator, request->topic, &options, m->type,
                                                 m->payload, m->bytes, on_published, w);
    if (err != TRP_OK) {
        trpi_bridge_refuse_err(ctx, v, request, err, request->topic);
        if (w != NULL) {
            waiting_end(ctx, w);
        }
    }
}

/* bridge-asks-K1 */
void
trpi_bridge_waitings_refuse(trp_ctx *ctx, trpi_bridge_voice *v)
{
    trpi_control_refusal refusal = { .exit = TRPI_CTL_EXIT_NO,
                                     .error = "the actor that asked has stopped" };
    for (const waiting *w = v->waitings; w != NULL; w = w->next) {
        char *line = trpi_bridge_refuse(&w->request, 0, &refusal);
        trp_err err =
            line == NULL || trp_ref_is_none(v->connection)
                ? TRP_OK
                : trp_tcp_write_copy(ctx, v->connection, line, strlen(line), TRP_TCP_NO_ACK);
        (void)err; /* no memory: the program waits until its own time limit */
        cJSON_free(line);
        (void)atomic_fetch_sub(&v->bridge->asks, 1);
    }
    v->waitings = NULL;
    for (const struct trpi_bridge_watch *w = v->watches; w != NULL; w = w->next) {
        (void)atomic_fetch_sub(&v->bridge->watches, 1);
    }
    v->watches = NULL;
}

/* template.c - messages to an endpoint by its URI alone: producers of the system, opened at the
 * first message and closed when none has come for a while.
 *
 * Shape.   trp_endpoint_send_to(), trp_endpoint_ask() -> /system/endpoints -> its producer of the
 *          URI -> the sender, or the function of the ask
 * Must hold.
 *   endpoint-template-T1  A producer is closed when no message has come for endpoint.template.idle,
 *       and for endpoint.timeout; one that still waits in it then is answered, by TRP_ECLOSED.
 *   endpoint-template-T2  Messages wait here until their producer has started, so that those of one
 *       that cannot start are answered, by TRP_ECLOSED.
 * Limits.  endpoint.template.producers-max; endpoint.pending-max that wait for a start; those of
 *          each producer.
 * Tests.   tests/unit/endpoint/actor_test.c
 * Sources. CAM-06, CAM-07
 */
#include <stdio.h>
#include <string.h>

#include <troupe/extension.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "endpoint/endpoint.h"

enum { LOOK_KEY = 1, LOOKS = 4 };

typedef struct held {
    struct held *next;
    trp_msg *msg;
    trp_ref sender;
} held;

typedef struct entry {
    struct entry *next;
    trp_ref producer;
    uint64_t used_ns;
    bool started;
    held *first, **last; /* until it has started; endpoint-template-T2 */
    uint32_t held_count;
    char uri[TRP_ENDPOINT_URI_BYTES_MAX + 1];
} entry;

typedef struct template
{
    entry *entries;
    uint32_t count, max, held_max;
    uint64_t idle_ns;
}
template;

static entry **
entry_of(template *t, const char *uri, trp_ref producer)
{
    entry **at = &t->entries;
    while (*at != NULL && (uri != NULL ? strcmp((*at)->uri, uri) != 0
                                       : !trp_ref_equal((*at)->producer, producer))) {
        at = &(*at)->next;
    }
    return at;
}

/* Send on what waits, or fail it: `reason`. */
static void
entry_release(trp_ctx *ctx, entry *e, const char *reason)
{
    while (e->first != NULL) {
        held *h = e->first;
        e->first = h->next;
        if (reason == NULL) {
            trpi_send_as(ctx, e->producer, h->sender, h->msg);
        } else {
            const trpi_endpoint_send *send = trp_msg_held(h->msg, &trpi_endpoint_send_type);
            trpi_endpoint_error_tell(ctx, NULL, h->sender, send->ack, 0, TRP_ECLOSED, reason);
            trp_msg_free(h->msg);
        }
        trpi_free(h);
    }
    e->last = &e->first;
    e->held_count = 0;
}

static void
entry_drop(trp_ctx *ctx, template *t, entry **at, const char *reason)
{
    entry *gone = *at;
    *at = gone->next;
    t->count--;
    entry_release(ctx, gone, reason);
    trpi_free(gone);
}

/* Errors, with a sentence. */
static trp_err
entry_hold(trp_ctx *ctx, const template *t, entry *e, const trp_msg *msg, const char **ret_reason)
{
    held *h = NULL;
    if (e->held_count >= t->held_max) {
        *ret_reason = "endpoint.pending-max messages wait for its start: send less, or later";
        return TRP_EAGAIN;
    }
    if ((h = trpi_alloc(sizeof *h)) == NULL || trp_msg_dup(msg, &h->msg) != TRP_OK) {
        trpi_free(h);
        *ret_reason = "no memory for the message";
        return TRP_ENOMEM;
    }
    h->sender = trp_sender(ctx);
    *e->last = h;
    e->last = &h->next;
    e->held_count++;
    return TRP_OK;
}

/* Open the producer of a URI. Errors, with a sentence. */
static trp_err
entry_open(trp_ctx *ctx, template *t, const char *uri, entry **ret_entry, const char **ret_reason)
{
    entry *made = NULL;
    *ret_reason = "the endpoint cannot be opened";
    if (t->count == t->max) {
        *ret_reason = "so many endpoints are open: raise endpoint.template.producers-max";
        return TRP_ELIMIT;
    }
    if ((made = trpi_alloc(sizeof *made)) == NULL) {
        return TRP_ENOMEM;
    }
    trp_err err = trp_producer_open(ctx, uri, NULL, &made->producer);
    err = err == TRP_OK ? trp_watch(ctx, made->producer) : err;
    if (err != TRP_OK) {
        trpi_free(made);
        return err;
    }
    (void)snprintf(made->uri, sizeof made->uri, "%s", uri);
    made->last = &made->first;
    made->next = t->entries;
    t->entries = made;
    t->count++;
    *ret_entry = made;
    return TRP_OK;
}

static void
on_send(trp_ctx *ctx, template *t, const trpi_endpoint_send *send, const trp_msg *msg)
{
    const char *reason = "";
    entry *e = *entry_of(t, send->uri, (trp_ref)TRP_REF_NONE);
    trp_err err = e != NULL ? TRP_OK : entry_open(ctx, t, send->uri, &e, &reason);
    err = err == TRP_OK && !e->started ? entry_hold(ctx, t, e, msg, &reason) : err;
    if (err != TRP_OK) {
        trpi_endpoint_error_tell(ctx, NULL, trp_sender(ctx), send->ack, 0, err, reason);
        return;
    }
    e->used_ns = trp_now_ns(ctx);
    if (e->started) {
        trp_forward(ctx, e->producer, msg);
    }
}

/* A producer has started, or has not; one that ends, or starts again, keeps its place till then. */
static void
on_event(trp_ctx *ctx, template *t, const trp_endpoint_event *event)
{
    entry *e = *entry_of(t, NULL, trp_sender(ctx));
    char reason[TRP_ENDPOINT_REASON_BYTES];
    if (e != NULL && event->event == TRP_ENDPOINT_STARTED) {
        e->started = true;
        entry_release(ctx, e, NULL);
    } else if (e != NULL) {
        (void)snprintf(reason, sizeof reason, "the endpoint did not start: %.150s", event->reason);
        entry_release(ctx, e, reason);
    }
}

/* endpoint-template-T1 */
static void
on_look(trp_ctx *ctx, template *t)
{
    uint64_t now = trp_now_ns(ctx);
    entry **at = &t->entries;
    while (*at != NULL) {
        if (now - (*at)->used_ns >= t->idle_ns) {
            trp_unwatch(ctx, (*at)->producer);
            trp_stop(ctx, (*at)->producer);
            entry_drop(ctx, t, at, "the endpoint did not start in time");
        } else {
            at = &(*at)->next;
        }
    }
}

static trp_err
template_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    template *t = state;
    const trpi_endpoint_send *send = trp_msg_held(msg, &trpi_endpoint_send_type);
    if (send != NULL && send->uri != NULL) {
        on_send(ctx, t, send, msg);
    } else if (trp_msg_is(msg, &trpi_endpoint_poll_type)) {
        on_look(ctx, t);
    } else if (trp_msg_is(msg, &trp_terminated_type)) {
        entry **at = entry_of(t, NULL, ((const trp_terminated *)trp_msg_payload(msg))->ref);
        if (*at != NULL) {
            entry_drop(ctx, t, at, "the endpoint has ended");
        }
    } else if (trp_msg_is(msg, &trp_endpoint_event_type)) {
        on_event(ctx, t, trp_msg_payload(msg));
    } else {
        return TRP_EUNHANDLED;
    }
    return TRP_OK;
}

static trp_err
template_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    const trpi_config *config = trpi_system_config(trp_ctx_system(ctx));
    template *t = state;
    (void)args;
    int64_t idle_ms = trpi_config_int(config, "endpoint.template.idle");
    int64_t least_ms = trpi_config_int(config, "endpoint.timeout") + 1;
    idle_ms = idle_ms > least_ms ? idle_ms : least_ms;
    t->max = (uint32_t)trpi_config_int(config, "endpoint.template.producers-max");
    t->held_max = (uint32_t)trpi_config_int(config, "endpoint.pending-max");
    t->idle_ns = (uint64_t)idle_ms * 1000000u;
    return trp_timer_repeat(ctx, LOOK_KEY, (uint32_t)(idle_ms / LOOKS) + 1,
                            (uint32_t)(idle_ms / LOOKS) + 1, &trpi_endpoint_poll_type, NULL, 0);
}

static void
template_post_stop(trp_ctx *ctx, void *state)
{
    template *t = state;
    while (t->entries != NULL) { /* the producers are its children */
        entry_drop(ctx, t, &t->entries, "the system stops");
    }
}

static const trp_behaviour template_behaviour = { .size = sizeof(trp_behaviour),
                                                  .name = "endpoint-template",
                                                  .version = 1,
                                                  .state_bytes = sizeof(template),
                                                  .receive = template_receive,
                                                  .pre_start = template_pre_start,
                                                  .post_stop = template_post_stop };

/* ---- one for each system --------------------------------------------------------------------- */

static trp_err
template_create(trp_system *system, void *arg, void **ret_instance)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref *ref = trpi_alloc(sizeof *ref);
    (void)arg;
    options.name = "endpoints";
    trp_err err = ref == NULL ? TRP_ENOMEM : trp_protocol_register(&trp_endpoint_protocol);
    err = err == TRP_OK ? trpi_system_spawn_internal(system, &template_behaviour, &options, ref)
                        : err;
    if (err != TRP_OK) {
        trpi_free(ref);
        return err;
    }
    *ret_instance = ref;
    return TRP_OK;
}

static const trp_extension extension = {
    sizeof(trp_extension), "endpoints", template_create, NULL, trpi_free, NULL
};

/* Make the message, and find the actor. */
static trp_err
template_message(trp_ctx *ctx, const char *uri, trp_bytes body, const trp_endpoint_header *headers,
                 uint32_t headers_count, uint64_t ack, trp_ref *ret_template, trp_msg **ret_msg)
{
    char reason[TRP_ENDPOINT_REASON_BYTES];
    void *ref;
    if (ctx == NULL || uri == NULL) {
        return TRP_EINVAL;
    }
    trp_err err = trp_endpoint_check(uri, 1, reason);
    if (err != TRP_OK) {
        trp_log(ctx, TRP_LOG_WARNING, "a message to an endpoint is refused: %s", reason);
        return err;
    }
    err = trp_extension_get(trp_ctx_system(ctx), &extension, &ref);
    if (err == TRP_OK) {
        *ret_template = *(const trp_ref *)ref;
        err = trpi_endpoint_send_make(&trpi_endpoint_send_type, uri, body, headers, headers_count,
                                      ack, ret_msg);
    }
    return err;
}

trp_err
trp_endpoint_send_to(trp_ctx *ctx, const char *uri, trp_bytes body,
                     const trp_endpoint_header *headers, uint32_t headers_count, uint64_t ack)
{
    trp_ref to;
    trp_msg *msg;
    trp_err err = template_message(ctx, uri, body, headers, headers_count, ack, &to, &msg);
    if (err == TRP_OK) {
        trp_send(ctx, to, msg);
    }
    return err;
}

trp_err
trp_endpoint_ask(trp_ctx *ctx, const char *uri, trp_bytes body, const trp_endpoint_header *headers,
                 uint32_t headers_count, uint32_t timeout_ms, trp_reply_fn fn, void *arg)
{
    trp_ref to;
    trp_msg *msg;
    if (fn == NULL || timeout_ms == 0) {
        return TRP_EINVAL;
    }
    trp_err err = template_message(ctx, uri, body, headers, headers_count, 0, &to, &msg);
    if (err == TRP_OK) {
        err = trpi_ask_msg(ctx, to, msg, timeout_ms, fn, arg);
        if (err != TRP_OK) {
            trp_msg_free(msg);
        }
    }
    return err;
}

/* endpoint.c - options, messages and the table of schemes of endpoints by URI.
 *
 * Tests.   tests/unit/endpoint/consumer_test.c, tests/unit/endpoint/producer_test.c
 * Sources. CAM-01 to -06
 */
#include "endpoint/endpoint.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sized.h"

#define PLAIN(variable, name_, tag_, struct_)                                                      \
    trp_type variable = {                                                                          \
        .name = name_, .bytes = sizeof(struct_), .tag = tag_, .flags = TRP_TYPE_LOCAL              \
    }
/* An actor that has ended misses nothing of these. */
#define OWN(variable, name_, tag_, struct_)                                                        \
    trp_type variable = { .name = name_,                                                           \
                          .bytes = sizeof(struct_),                                                \
                          .tag = tag_,                                                             \
                          .flags = TRP_TYPE_LOCAL | TRPI_TYPE_FLAG_SILENT }
#define EMPTY(variable, name_, tag_)                                                               \
    trp_type variable = { .name = name_, .tag = tag_, .flags = TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL }

trp_type trp_endpoint_message_type = TRP_HELD_TYPE("endpoint.message", 1);
OWN(trp_endpoint_event_type, "endpoint.event", 2, trp_endpoint_event);
EMPTY(trp_endpoint_await_type, "endpoint.await", 3);
PLAIN(trp_endpoint_done_type, "endpoint.done", 4, trp_endpoint_done);
PLAIN(trp_endpoint_error_type, "endpoint.error", 5, trp_endpoint_error);
trp_type trpi_endpoint_send_type = TRP_HELD_TYPE("endpoint.priv-send", 32);
PLAIN(trpi_endpoint_verdict_type, "endpoint.priv-verdict", 33, trpi_endpoint_verdict);
OWN(trpi_endpoint_freed_type, "endpoint.priv-freed", 34, trpi_endpoint_slot);
OWN(trpi_endpoint_alarm_type, "endpoint.priv-alarm", 35, trpi_endpoint_slot);
EMPTY(trpi_endpoint_poll_type, "endpoint.priv-poll", 36);
OWN(trpi_endpoint_ran_type, "endpoint.priv-ran", 37, trpi_endpoint_slot);
trp_type trpi_endpoint_reply_type = TRP_HELD_TYPE("endpoint.priv-reply", 38);

static trp_type *const types[] = { &trp_endpoint_message_type,  &trp_endpoint_event_type,
                                   &trp_endpoint_await_type,    &trp_endpoint_done_type,
                                   &trp_endpoint_error_type,    &trpi_endpoint_send_type,
                                   &trpi_endpoint_verdict_type, &trpi_endpoint_freed_type,
                                   &trpi_endpoint_alarm_type,   &trpi_endpoint_poll_type,
                                   &trpi_endpoint_ran_type,     &trpi_endpoint_reply_type };
const trp_protocol trp_endpoint_protocol = { "endpoint", types, sizeof types / sizeof types[0], 0 };

/* ---- schemes --------------------------------------------------------------------------------- */

static const trpi_scheme *const schemes[] = { &trpi_scheme_timer,        &trpi_scheme_file,
                                              &trpi_scheme_exec,         &trpi_scheme_tcp_in,
                                              &trpi_scheme_tcp_out,      &trpi_scheme_udp_in,
                                              &trpi_scheme_udp_out,      &trpi_scheme_http_client,
                                              &trpi_scheme_http_server,  &trpi_scheme_https_client,
                                              &trpi_scheme_https_server, &trpi_scheme_ws_client,
                                              &trpi_scheme_ws_server,    &trpi_scheme_wss_client,
                                              &trpi_scheme_wss_server,   &trpi_scheme_actor };

static const char *const *
options_of(const trpi_scheme *scheme, bool produces)
{
    return produces ? scheme->producer_options : scheme->consumer_options;
}

trp_err
trpi_scheme_find(const trpi_uri *uri, bool produces, const trpi_scheme **ret_scheme,
                 char ret_reason[TRP_ENDPOINT_REASON_BYTES])
{
    const trpi_scheme *scheme = NULL;
    size_t count = sizeof schemes / sizeof schemes[0], named = count;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(schemes[i]->name, uri->scheme) == 0) {
            named = i;
            scheme = options_of(schemes[i], produces) != NULL ? schemes[i] : scheme;
        }
    }
    if (named == count) {
        size_t at = (size_t)snprintf(ret_reason, TRP_ENDPOINT_REASON_BYTES,
                                     "no scheme is called %.40s: there are", uri->scheme);
        for (size_t i = 0; i < count && at < TRP_ENDPOINT_REASON_BYTES; i++) {
            bool again = i > 0 && strcmp(schemes[i]->name, schemes[i - 1]->name) == 0;
            at += again ? 0
                        : (size_t)snprintf(ret_reason + at, TRP_ENDPOINT_REASON_BYTES - at, "%s %s",
                                           i > 0 ? "," : "", schemes[i]->name);
        }
        return TRP_EUNSUPPORTED;
    }
    if (scheme == NULL) {
        (void)snprintf(ret_reason, TRP_ENDPOINT_REASON_BYTES, "%s: only %s", uri->scheme,
                       produces ? "consumes" : "produces");
        return TRP_EUNSUPPORTED;
    }
    const char *const *known = options_of(scheme, produces);
    for (uint32_t i = 0; i < uri->options_count; i++) {
        const char *const *name = known;
        while (*name != NULL && strcmp(*name, uri->options[i].name) != 0) {
            name++;
        }
        if (*name == NULL) {
            (void)snprintf(ret_reason, TRP_ENDPOINT_REASON_BYTES, "%s: has no option %.60s",
                           scheme->name, uri->options[i].name);
            return TRP_EINVAL;
        }
    }
    *ret_scheme = scheme;
    return scheme->check(uri, ret_reason);
}

trp_err
trp_endpoint_check(const char *text, int produces, char ret_reason[TRP_ENDPOINT_REASON_BYTES])
{
    const trpi_scheme *scheme;
    trpi_uri uri;
    if (text == NULL || ret_reason == NULL) {
        return TRP_EINVAL;
    }
    ret_reason[0] = '\0';
    trp_err err = trpi_uri_parse(text, &uri, ret_reason);
    return err == TRP_OK ? trpi_scheme_find(&uri, produces != 0, &scheme, ret_reason) : err;
}

trp_err
trpi_endpoint_begin(trp_ctx *ctx, trpi_endpoint *e, const trp_msg *args, bool produces)
{
    memcpy(&e->args, trp_msg_payload(args), sizeof e->args);
    trp_ref watched = produces ? e->args.opener : e->args.options.handler;
    trp_err err = trpi_uri_parse(e->args.uri, &e->uri, e->reason);
    err = err == TRP_OK ? trpi_scheme_find(&e->uri, produces, &e->scheme, e->reason) : err;
    return err != TRP_OK || produces ? err : trp_watch(ctx, watched);
}

void
trpi_endpoint_await(trp_ctx *ctx, const trpi_endpoint *e, const trp_msg *msg)
{
    trp_endpoint_event started = { TRP_ENDPOINT_STARTED, 0, "" };
    if (!e->starting) {
        trp_reply(ctx, &trp_endpoint_event_type, &started, sizeof started);
    } else if (trp_stash(ctx, msg) != TRP_OK) {
        trp_log(ctx, TRP_LOG_WARNING, "too many wait for the start of an endpoint: one is dropped");
    }
}

bool
trpi_endpoint_thread(pthread_t *ret_thread, void *(*fn)(void *), void *arg)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(ret_thread, NULL, fn, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error == 0;
}

uint32_t
trpi_endpoint_turn(void)
{
    static _Atomic uint32_t turns; /* of the process */
    return atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed);
}

/* Make a message about a slot beforehand. NULL: no memory. */
static trp_msg *
slot_msg_new(const trp_type *type, trpi_endpoint_slot at)
{
    trp_msg *msg;
    void *payload;
    if (trp_msg_new(type, sizeof at, &msg, &payload) != TRP_OK) {
        return NULL;
    }
    memcpy(payload, &at, sizeof at);
    return msg;
}

/* Tell it, or free it: an actor that has ended misses nothing. */
static void
slot_msg_tell(trp_system *system, trp_ref owner, trp_msg *msg)
{
    trp_ctx *ctx = trpi_enter(system);
    if (trpi_offer_msg(ctx, owner, msg) != TRP_OK) {
        trp_msg_free(msg);
    }
    trpi_leave(ctx);
}

trp_msg *
trpi_endpoint_ran_new(trpi_endpoint_slot at)
{
    return slot_msg_new(&trpi_endpoint_ran_type, at);
}

void
trpi_endpoint_ran_tell(trp_system *system, trp_ref owner, trp_msg *ran)
{
    slot_msg_tell(system, owner, ran);
}

static void
event_tell(trp_ctx *ctx, const trpi_endpoint *e, uint32_t event)
{
    trp_endpoint_event told;
    bool consumes = trp_ref_is_none(e->args.opener);
    memset(&told, 0, sizeof told);
    told.event = event;
    told.err = (int32_t)e->err;
    (void)snprintf(told.reason, sizeof told.reason, "%s",
                   e->reason[0] != '\0' || e->err == TRP_OK ? e->reason : trp_strerror(e->err));
    trp_tell(ctx, consumes ? e->args.options.handler : e->args.opener, &trp_endpoint_event_type,
             &told, sizeof told);
}

trp_err
trpi_endpoint_errno(trpi_endpoint *e, int error, const char *format, ...)
{
    char what[128];
    va_list values;
    va_start(values, format);
    (void)vsnprintf(what, sizeof what, format, values);
    va_end(values);
    (void)snprintf(e->reason, sizeof e->reason, "%s: %s", what, strerrordesc_np(error));
    return error == ENOENT                     ? TRP_ENOENT
           : error == EACCES || error == EPERM ? TRP_EPERM
           : error == EADDRINUSE               ? TRP_EEXIST
           : error == ETIMEDOUT                ? TRP_ETIMEDOUT
                                               : TRP_EIO;
}

void
trpi_endpoint_started(trp_ctx *ctx, trpi_endpoint *e, trp_err err)
{
    if (!e->starting) {
        return;
    }
    e->starting = false;
    e->err = err;
    if (err != TRP_OK) { /* behind the messages that wait: a producer fails them */
        trp_tell(ctx, trp_self(ctx), &trp_poison_pill_type, NULL, 0);
    } else {
        event_tell(ctx, e, TRP_ENDPOINT_STARTED);
        e->reason[0] = '\0';
        trp_unstash_all(ctx);
    }
}

void
trpi_endpoint_begun(trp_ctx *ctx, trpi_endpoint *e)
{
    e->starting = true;
    if (e->err != TRP_OK || !e->scheme->starts_later) {
        trpi_endpoint_started(ctx, e, e->err);
    }
}

void
trpi_endpoint_ended(trp_ctx *ctx, trpi_endpoint *e)
{
    if (e->err == TRP_OK) {
        e->reason[0] = '\0'; /* of some message */
    }
    event_tell(ctx, e, TRP_ENDPOINT_STOPPED);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* CONF-24: an option, or its key in the configuration. */
static uint32_t
number_of(uint32_t given, const trpi_config *config, const char *key)
{
    return given != 0 ? given : (uint32_t)trpi_config_int(config, key);
}

static trp_err
endpoint_open(trp_ctx *ctx, const char *uri, const trp_endpoint_options *given, bool produces,
              trp_ref *ret_ref)
{
    trp_endpoint_options own = TRP_ENDPOINT_OPTIONS_INIT;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    char reason[TRP_ENDPOINT_REASON_BYTES];
    trpi_endpoint_args args;
    if (ctx == NULL || ret_ref == NULL || !TRPI_SIZED_COPY(given, &own, zero) ||
        own.acknowledges > 1 || own.oneway > 1 || own.pending_max > TRP_ENDPOINT_PENDING_MAX ||
        own.timeout_ms > INT32_MAX) {
        return TRP_EINVAL;
    }
    trp_err err = trp_endpoint_check(uri, produces, reason);
    err = err == TRP_OK ? trp_protocol_register(&trp_endpoint_protocol) : err;
    if (err != TRP_OK) {
        if (uri != NULL && reason[0] != '\0') {
            trp_log(ctx, TRP_LOG_WARNING, "the endpoint is not opened: %s", reason);
        }
        return err;
    }
    memset(&args, 0, sizeof args);
    const trpi_config *config = trpi_system_config(trp_ctx_system(ctx));
    options.dispatcher =
        own.dispatcher != NULL ? own.dispatcher : trpi_config_text(config, "endpoint.dispatcher");
    own.dispatcher = NULL;
    own.pending_max = number_of(own.pending_max, config, "endpoint.pending-max");
    own.timeout_ms = number_of(own.timeout_ms, config, "endpoint.timeout");
    own.message_bytes_max = number_of(own.message_bytes_max, config, "endpoint.message-bytes-max");
    if (!produces && trp_ref_is_none(own.handler)) {
        own.handler = trp_self(ctx);
    }
    args.options = own;
    args.opener = produces ? trp_self(ctx) : (trp_ref)TRP_REF_NONE;
    (void)snprintf(args.uri, sizeof args.uri, "%s", uri);
    options.args_type = &trp_bytes_type;
    options.args = &args;
    options.args_bytes = sizeof args;
    return trp_spawn(ctx, produces ? &trpi_producer_behaviour : &trpi_consumer_behaviour, &options,
                     ret_ref);
}

trp_err
trp_consumer_open(trp_ctx *ctx, const char *uri, const trp_endpoint_options *options,
                  trp_ref *ret_consumer)
{
    return endpoint_open(ctx, uri, options, false, ret_consumer);
}

trp_err
trp_producer_open(trp_ctx *ctx, const char *uri, const trp_endpoint_options *options,
                  trp_ref *ret_producer)
{
    return endpoint_open(ctx, uri, options, true, ret_producer);
}

/* ---- headers --------------------------------------------------------------------------------- */

trp_err
trpi_endpoint_headers_copy(const trp_endpoint_header *headers, uint32_t count,
                           trp_endpoint_header **ret_headers)
{
    size_t bytes = count * sizeof *headers;
    *ret_headers = NULL;
    if (count == 0) {
        return TRP_OK;
    }
    if (headers == NULL || count > TRP_ENDPOINT_HEADERS_MAX) {
        return TRP_EINVAL;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (headers[i].name == NULL || headers[i].value == NULL ||
            strlen(headers[i].name) > TRP_ENDPOINT_HEADER_BYTES_MAX ||
            strlen(headers[i].value) > TRP_ENDPOINT_HEADER_BYTES_MAX) {
            return TRP_EINVAL;
        }
        bytes += strlen(headers[i].name) + strlen(headers[i].value) + 2;
    }
    trp_endpoint_header *copy = trpi_alloc(bytes);
    if (copy == NULL) {
        return TRP_ENOMEM;
    }
    char *at = (char *)(copy + count);
    for (uint32_t i = 0; i < count; i++) {
        copy[i].name = memcpy(at, headers[i].name, strlen(headers[i].name) + 1);
        at += strlen(at) + 1;
        copy[i].value = memcpy(at, headers[i].value, strlen(headers[i].value) + 1);
        at += strlen(at) + 1;
    }
    trpi_assert(at == (char *)copy + bytes);
    *ret_headers = copy;
    return TRP_OK;
}

const char *
trp_endpoint_header_get(const trp_endpoint_message *message, const char *name)
{
    for (uint32_t i = 0; message != NULL && name != NULL && i < message->headers_count; i++) {
        if (strcmp(message->headers[i].name, name) == 0) {
            return message->headers[i].value;
        }
    }
    return NULL;
}

/* ---- messages to a handler ------------------------------------------------------------------- */

struct trpi_endpoint_back {
    trp_system *system;
    trp_ref owner;
    _Atomic uint32_t count;
    _Atomic bool owned;
};

typedef struct held_message {
    trp_endpoint_message told; /* first */
    trp_endpoint_header *headers;
    trpi_endpoint_back *back;
    trp_msg *freed; /* what the owner of `back` is told; NULL: nothing */
} held_message;

trpi_endpoint_back *
trpi_endpoint_back_new(trp_ctx *ctx)
{
    trpi_endpoint_back *back = trpi_alloc(sizeof *back);
    if (back != NULL) {
        back->system = trp_ctx_system(ctx);
        back->owner = trp_self(ctx);
        atomic_init(&back->count, 1);
        atomic_init(&back->owned, true);
    }
    return back;
}

static void
back_unref(trpi_endpoint_back *back)
{
    if (atomic_fetch_sub_explicit(&back->count, 1, memory_order_acq_rel) == 1) {
        trpi_free(back);
    }
}

void
trpi_endpoint_back_end(trpi_endpoint_back *back)
{
    if (back != NULL) {
        atomic_store_explicit(&back->owned, false, memory_order_release);
        back_unref(back);
    }
}

static void
message_drop(void *held)
{
    held_message *m = held;
    trp_bytes_unref(&m->told.body);
    trpi_free(m->headers);
    if (m->back != NULL) {
        if (atomic_load_explicit(&m->back->owned, memory_order_acquire)) {
            slot_msg_tell(m->back->system, m->back->owner, m->freed);
        } else {
            trp_msg_free(m->freed);
        }
        back_unref(m->back);
    }
}

trp_err
trpi_endpoint_message_bare(uint64_t exchange, trp_bytes body, const trp_endpoint_header *headers,
                           uint32_t headers_count, trp_msg **ret_msg)
{
    trp_endpoint_header *copy = NULL;
    void *held;
    trp_err err = trpi_endpoint_headers_copy(headers, headers_count, &copy);
    err = err != TRP_OK ? err
                        : trp_msg_new_held(&trp_endpoint_message_type, sizeof(held_message),
                                           message_drop, ret_msg, &held);
    if (err != TRP_OK) {
        trpi_free(copy);
        return err;
    }
    held_message *m = held;
    m->told.exchange = exchange;
    m->told.body = trp_bytes_ref(body);
    m->told.headers_count = headers_count;
    m->told.headers = m->headers = copy;
    return TRP_OK;
}

trp_err
trpi_endpoint_message_new(const trpi_endpoint *e, uint64_t exchange, uint64_t ack, trp_bytes body,
                          const trp_endpoint_header *headers, uint32_t headers_count,
                          trpi_endpoint_back *back, trpi_endpoint_slot slot, trp_msg **ret_msg)
{
    const trp_endpoint_options *o = &e->args.options;
    trp_bytes given = TRP_BYTES_EMPTY;
    trp_msg *freed = back != NULL ? slot_msg_new(&trpi_endpoint_freed_type, slot) : NULL;
    if (back != NULL && freed == NULL) {
        trp_bytes_unref(&body);
        return TRP_ENOMEM;
    }
    trp_err err = o->incoming == NULL ? TRP_OK : o->incoming(o->transform_arg, body, &given);
    if (o->incoming != NULL) {
        trp_bytes_unref(&body);
        body = given;
    }
    err = err != TRP_OK
              ? err
              : trpi_endpoint_message_bare(exchange, body, headers, headers_count, ret_msg);
    trp_bytes_unref(&body);
    if (err == TRP_OK) { /* it is not shared yet */
        held_message *m =
            (held_message *)(uintptr_t)trp_msg_held(*ret_msg, &trp_endpoint_message_type);
        m->told.ack = ack;
        m->freed = freed;
        m->back = back;
        if (back != NULL) {
            (void)atomic_fetch_add_explicit(&back->count, 1, memory_order_relaxed);
        }
    } else {
        trp_msg_free(freed);
    }
    return err;
}

void
trpi_endpoint_error_tell(trp_ctx *ctx, const trpi_endpoint *e, trp_ref to, uint64_t ack,
                         uint64_t exchange, trp_err err, const char *reason)
{
    trp_endpoint_error error;
    memset(&error, 0, sizeof error);
    error.ack = ack;
    error.exchange = exchange;
    error.err = (int32_t)err;
    (void)snprintf(error.reason, sizeof error.reason, "%s", reason);
    if (!trp_ref_is_none(to)) {
        trp_tell(ctx, to, &trp_endpoint_error_type, &error, sizeof error);
    }
    if (e != NULL && !trp_ref_is_none(e->args.options.errors)) {
        trp_tell(ctx, e->args.options.errors, &trp_endpoint_error_type, &error, sizeof error);
    }
}

/* ---- what actors tell an endpoint ------------------------------------------------------------ */

void
trpi_endpoint_send_drop(void *held)
{
    trpi_endpoint_send *send = held;
    trp_bytes_unref(&send->body);
    trpi_free(send->headers);
    trpi_free(send->uri);
}

trp_err
trpi_endpoint_outgoing(const trpi_endpoint *e, trp_bytes body, trp_bytes *ret_body)
{
    const trp_endpoint_options *o = &e->args.options;
    *ret_body = o->outgoing == NULL ? trp_bytes_ref(body) : TRP_BYTES_EMPTY;
    return o->outgoing == NULL ? TRP_OK : o->outgoing(o->transform_arg, body, ret_body);
}

trp_err
trpi_endpoint_send_make(trp_type *type, const char *uri, trp_bytes body,
                        const trp_endpoint_header *headers, uint32_t headers_count, uint64_t ack,
                        trp_msg **ret_msg)
{
    trp_endpoint_header *copy = NULL;
    size_t uri_bytes = uri != NULL ? strlen(uri) + 1 : 0;
    char *own = NULL;
    void *held;
    trp_err err = trp_protocol_register(&trp_endpoint_protocol);
    err = err == TRP_OK ? trpi_endpoint_headers_copy(headers, headers_count, &copy) : err;
    if (err == TRP_OK && uri != NULL) {
        own = trpi_alloc(uri_bytes);
        err = own == NULL ? TRP_ENOMEM : TRP_OK;
    }
    err = err != TRP_OK ? err
                        : trp_msg_new_held(type, sizeof(trpi_endpoint_send),
                                           trpi_endpoint_send_drop, ret_msg, &held);
    if (err != TRP_OK) {
        trpi_free(copy);
        trpi_free(own);
        return err;
    }
    trpi_endpoint_send *send = held;
    send->ack = ack;
    send->body = trp_bytes_ref(body);
    send->headers = copy;
    send->headers_count = headers_count;
    send->uri = uri != NULL ? memcpy(own, uri, uri_bytes) : NULL;
    return TRP_OK;
}

/* Tell an endpoint a body; its errors are known at once only if it has ended. */
static trp_err
body_tell(trp_ctx *ctx, trp_ref endpoint, trp_type *type, trp_bytes body,
          const trp_endpoint_header *headers, uint32_t headers_count, uint64_t ack)
{
    trp_msg *msg;
    if (ctx == NULL || trp_ref_is_none(endpoint)) {
        return TRP_EINVAL;
    }
    if (trpi_has_ended(ctx, endpoint)) {
        return TRP_ENOENT;
    }
    trp_err err = trpi_endpoint_send_make(type, NULL, body, headers, headers_count, ack, &msg);
    if (err == TRP_OK) {
        trp_send(ctx, endpoint, msg);
    }
    return err;
}

trp_err
trp_endpoint_send(trp_ctx *ctx, trp_ref producer, trp_bytes body,
                  const trp_endpoint_header *headers, uint32_t headers_count, uint64_t ack)
{
    return body_tell(ctx, producer, &trpi_endpoint_send_type, body, headers, headers_count, ack);
}

trp_err
trp_endpoint_reply(trp_ctx *ctx, trp_ref consumer, uint64_t exchange, trp_bytes body,
                   const trp_endpoint_header *headers, uint32_t headers_count)
{
    return body_tell(ctx, consumer, &trpi_endpoint_reply_type, body, headers, headers_count,
                     exchange);
}

static void
verdict_tell(trp_ctx *ctx, trp_ref consumer, uint64_t exchange, bool failed, const char *reason)
{
    trpi_endpoint_verdict verdict;
    if (trp_protocol_register(&trp_endpoint_protocol) == TRP_OK) {
        memset(&verdict, 0, sizeof verdict);
        verdict.exchange = exchange;
        verdict.failed = failed;
        (void)snprintf(verdict.reason, sizeof verdict.reason, "%s", reason);
        trp_tell(ctx, consumer, &trpi_endpoint_verdict_type, &verdict, sizeof verdict);
    }
}

void
trp_endpoint_ack(trp_ctx *ctx, trp_ref consumer, uint64_t exchange)
{
    verdict_tell(ctx, consumer, exchange, false, "");
}

void
trp_endpoint_fail(trp_ctx *ctx, trp_ref consumer, uint64_t exchange, const char *reason)
{
    verdict_tell(ctx, consumer, exchange, true, reason != NULL ? reason : "");
}

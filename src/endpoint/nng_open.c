/* nng_open.c - options, addresses and messages of nng's sockets.
 *
 * Tests.   tests/unit/endpoint/nng_socket_test.c
 * Sources. ZMQ-01 to -06, -08
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "endpoint/closing.h"
#include "endpoint/nng_inner.h"

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

trp_type trp_nng_message_type = TRP_HELD_TYPE("nng.message", 1);
OWN(trp_nng_event_type, "nng.event", 2, trp_nng_event);
PLAIN(trp_nng_sent_type, "nng.sent", 3, trp_nng_sent);
PLAIN(trp_nng_failed_type, "nng.failed", 4, trp_nng_failed);
PLAIN(trp_nng_survey_end_type, "nng.survey-end", 5, trp_nng_survey_end);
trp_type trpi_nng_send_type = TRP_HELD_TYPE("nng.priv-send", 32);
PLAIN(trpi_nng_subscription_type, "nng.priv-subscription", 33, trpi_nng_subscription);
OWN(trpi_nng_done_type, "nng.priv-done", 34, trpi_nng_done);
OWN(trpi_nng_piped_type, "nng.priv-piped", 35, trpi_nng_piped);
trp_type trpi_nng_room_type = { .name = "nng.priv-room",
                                .tag = 36,
                                .flags =
                                    TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL | TRPI_TYPE_FLAG_SILENT };
OWN(trpi_nng_alarm_type, "nng.priv-alarm", 37, trpi_nng_alarm);

static trp_type *const types[] = { &trp_nng_message_type,       &trp_nng_event_type,
                                   &trp_nng_sent_type,          &trp_nng_failed_type,
                                   &trp_nng_survey_end_type,    &trpi_nng_send_type,
                                   &trpi_nng_subscription_type, &trpi_nng_done_type,
                                   &trpi_nng_piped_type,        &trpi_nng_room_type,
                                   &trpi_nng_alarm_type };
const trp_protocol trp_nng_protocol = { "nng", types, sizeof types / sizeof types[0], 0 };

/* ---- options --------------------------------------------------------------------------------- */

static uint32_t
or_default(uint32_t value, uint32_t otherwise)
{
    return value != 0 ? value : otherwise;
}

/* Check a list of addresses, and count them. */
static trp_err
addresses_take(const char *list, char copy[TRP_NNG_ADDRESSES_BYTES_MAX + 1], uint32_t *count)
{
    char url[TRPI_NNG_URL_BYTES];
    trp_err err = TRP_OK;
    if (list == NULL) {
        copy[0] = '\0';
        return TRP_OK;
    }
    if (strlen(list) > TRP_NNG_ADDRESSES_BYTES_MAX) {
        return TRP_EINVAL;
    }
    (void)snprintf(copy, TRP_NNG_ADDRESSES_BYTES_MAX + 1, "%s", list);
    while (err == TRP_OK && trpi_nng_address_next(&list, url)) {
        err = trpi_nng_address_check(url);
        *count += 1;
    }
    return err;
}

static trp_err
args_take(const trp_nng_options *given, trp_ref self, trpi_nng_args *args)
{
    trp_nng_options own = TRP_NNG_OPTIONS_INIT;
    uint32_t count = 0;
    memset(args, 0, sizeof *args);
    if (given == NULL || !TRPI_SIZED_COPY(given, &own, zero) || own.kind < TRP_NNG_PUB ||
        own.kind > TRP_NNG_RESPONDENT || own.framed > 1 || own.pad != 0 ||
        own.exchanges_max > TRP_NNG_EXCHANGES_MAX || own.timeout_ms > INT32_MAX ||
        own.redial_min_ms > INT32_MAX || own.redial_max_ms > INT32_MAX ||
        (own.subscribe != NULL &&
         (own.kind != TRP_NNG_SUB || strlen(own.subscribe) > TRP_NNG_PREFIX_BYTES_MAX))) {
        return TRP_EINVAL;
    }
    trp_err err = addresses_take(own.listen, args->listen, &count);
    err = err != TRP_OK ? err : addresses_take(own.dial, args->dial, &count);
    if (err != TRP_OK || count == 0) {
        return err != TRP_OK ? err : TRP_EINVAL;
    }
    args->settings.kind = own.kind;
    args->settings.message_bytes_max =
        or_default(own.message_bytes_max, TRP_NNG_MESSAGE_BYTES_DEFAULT);
    args->settings.timeout_ms = or_default(own.timeout_ms, TRP_NNG_TIMEOUT_MS_DEFAULT);
    args->settings.redial_min_ms = or_default(own.redial_min_ms, TRP_NNG_REDIAL_MIN_MS_DEFAULT);
    args->settings.redial_max_ms = or_default(own.redial_max_ms, TRP_NNG_REDIAL_MAX_MS_DEFAULT);
    args->framed = own.framed != 0;
    args->send_max = or_default(own.send_max, TRP_NNG_SEND_DEFAULT);
    args->receive_max = or_default(own.receive_max, TRP_NNG_RECEIVE_DEFAULT);
    args->receive_bytes_max = or_default(own.receive_bytes_max, TRP_NNG_RECEIVE_BYTES_DEFAULT);
    args->exchanges_max = or_default(own.exchanges_max, TRP_NNG_EXCHANGES_DEFAULT);
    args->listener = trp_ref_is_none(own.listener) ? self : own.listener;
    args->subscribes = own.subscribe != NULL;
    (void)snprintf(args->prefix, sizeof args->prefix, "%s",
                   own.subscribe != NULL ? own.subscribe : "");
    return TRP_OK;
}

static trp_err
child_spawn(trp_ctx *ctx, const trp_behaviour *behaviour, const char *dispatcher, const void *args,
            size_t bytes, trp_ref *ret_ref)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_err err = trp_protocol_register(&trp_nng_protocol);
    options.dispatcher = dispatcher != NULL ? dispatcher : "blocking";
    options.args_type = &trp_bytes_type;
    options.args = args;
    options.args_bytes = bytes;
    return err == TRP_OK ? trp_spawn(ctx, behaviour, &options, ret_ref) : err;
}

trp_err
trp_nng_open(trp_ctx *ctx, const trp_nng_options *options, trp_ref *ret_socket)
{
    trpi_nng_args args;
    if (ctx == NULL || ret_socket == NULL) {
        return TRP_EINVAL;
    }
    trp_err err = args_take(options, trp_self(ctx), &args);
    return err == TRP_OK ? child_spawn(ctx, &trpi_nng_socket_behaviour, options->dispatcher, &args,
                                       sizeof args, ret_socket)
                         : err;
}

/* True: a device passes messages between sockets of these kinds. */
static bool
kinds_fit(uint32_t front, uint32_t back)
{
    static const uint32_t pairs[][2] = {
        { TRP_NNG_REP, TRP_NNG_REQ },   { TRP_NNG_RESPONDENT, TRP_NNG_SURVEYOR },
        { TRP_NNG_PULL, TRP_NNG_PUSH }, { TRP_NNG_SUB, TRP_NNG_PUB },
        { TRP_NNG_PAIR, TRP_NNG_PAIR }, { TRP_NNG_BUS, TRP_NNG_BUS }
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (pairs[i][0] == front && pairs[i][1] == back) {
            return true;
        }
    }
    return false;
}

trp_err
trp_nng_open_device(trp_ctx *ctx, const trp_nng_options *front, const trp_nng_options *back,
                    trp_ref *ret_device)
{
    trpi_nng_device_args args;
    if (ctx == NULL || ret_device == NULL) {
        return TRP_EINVAL;
    }
    trp_err err = args_take(front, trp_self(ctx), &args.front);
    err = err == TRP_OK ? args_take(back, trp_self(ctx), &args.back) : err;
    if (err == TRP_OK && !kinds_fit(args.front.settings.kind, args.back.settings.kind)) {
        err = TRP_EINVAL;
    }
    return err == TRP_OK ? child_spawn(ctx, &trpi_nng_device_behaviour, front->dispatcher, &args,
                                       sizeof args, ret_device)
                         : err;
}

/* ---- opening --------------------------------------------------------------------------------- */

static trp_err
list_open(trpi_nng *nng, const char *list, bool listens, char *address, char *reason)
{
    char given[TRPI_NNG_URL_BYTES], url[TRPI_NNG_URL_BYTES], at[TRPI_NNG_ADDRESS_BYTES];
    while (trpi_nng_address_next(&list, given)) {
        trp_err err = trpi_nng_address_resolve(given, url);
        if (err != TRP_OK) {
            (void)snprintf(reason, TRPI_NNG_REASON_BYTES, "the name in %.100s is not known", given);
            return err;
        }
        int code = listens ? trpi_nng_listen(nng, url, at) : trpi_nng_dial(nng, url);
        if (code != 0) {
            (void)snprintf(reason, TRPI_NNG_REASON_BYTES, "cannot %s %.80s: %.50s",
                           listens ? "listen on" : "dial", given, trpi_nng_reason(code));
            return trpi_nng_err(code);
        }
        if (listens && address[0] == '\0') {
            (void)snprintf(address, TRPI_NNG_ADDRESS_BYTES, "%s", at);
        }
    }
    return TRP_OK;
}

trp_err
trpi_nng_addresses_open(trpi_nng *nng, const trpi_nng_args *args,
                        char ret_address[TRPI_NNG_ADDRESS_BYTES],
                        char ret_reason[TRPI_NNG_REASON_BYTES])
{
    ret_address[0] = '\0';
    trp_err err = list_open(nng, args->listen, true, ret_address, ret_reason);
    return err == TRP_OK ? list_open(nng, args->dial, false, ret_address, ret_reason) : err;
}

void
trpi_nng_close(trp_ctx *ctx, trpi_nng *nng)
{
    if (trpi_nng_free(nng) != TRP_OK) {
        trp_log(ctx, TRP_LOG_WARNING,
                "nng has not closed the socket in time, a known error of it: a thread goes on "
                "waiting. %u sockets are late; with %u no other can be opened: restart the process",
                (unsigned)trpi_closing_late(), (unsigned)TRPI_CLOSING_LATE_MAX);
    }
}

void
trpi_nng_reason_write(trp_err err, char reason[TRPI_NNG_REASON_BYTES])
{
    if (reason[0] == '\0') {
        bool is_late = err == TRP_ELIMIT && trpi_closing_late() >= TRPI_CLOSING_LATE_MAX;
        (void)snprintf(reason, TRPI_NNG_REASON_BYTES, "%s",
                       is_late ? "too many sockets of nng hang in its closing: restart the process"
                               : trp_strerror(err));
    }
}

void
trpi_nng_event_tell(trp_ctx *ctx, trp_ref to, uint32_t event, uint32_t pipe, trp_err err,
                    const char *address, const char *reason)
{
    trp_nng_event told;
    memset(&told, 0, sizeof told);
    told.event = event;
    told.pipe = pipe;
    told.err = (int32_t)err;
    (void)snprintf(told.address, sizeof told.address, "%s", address);
    (void)snprintf(told.reason, sizeof told.reason, "%s", reason);
    trp_tell(ctx, to, &trp_nng_event_type, &told, sizeof told);
}

void
trpi_nng_failed_tell(trp_ctx *ctx, trp_ref to, uint64_t ack, uint64_t exchange, trp_err err,
                     const char *reason)
{
    trp_nng_failed failed;
    if (trp_ref_is_none(to)) {
        return;
    }
    memset(&failed, 0, sizeof failed);
    failed.ack = ack;
    failed.exchange = exchange;
    failed.err = (int32_t)err;
    (void)snprintf(failed.reason, sizeof failed.reason, "%s", reason);
    trp_tell(ctx, to, &trp_nng_failed_type, &failed, sizeof failed);
}

/* ---- what actors tell a socket --------------------------------------------------------------- */

static void
send_drop(void *held)
{
    trpi_nng_send *send = held;
    for (uint32_t i = 0; i < send->count; i++) {
        trp_bytes_unref(&send->parts[i]);
    }
}

static trp_err
send_tell(trp_ctx *ctx, trp_ref socket, const trp_bytes *parts, uint32_t count,
          const trpi_nng_send *as)
{
    uint64_t bytes = trpi_nng_lengths_bytes(count);
    trp_msg *msg;
    void *held;
    if (ctx == NULL || parts == NULL || count == 0 || count > TRP_NNG_PARTS_MAX) {
        return TRP_EINVAL;
    }
    for (uint32_t i = 0; i < count; i++) {
        bytes += trp_bytes_length(parts[i]);
    }
    if (bytes > TRP_BYTES_MAX) {
        return TRP_EMSGSIZE;
    }
    trp_err err = trp_protocol_register(&trp_nng_protocol);
    err = err != TRP_OK ? err
                        : trp_msg_new_held(&trpi_nng_send_type,
                                           sizeof(trpi_nng_send) + count * sizeof(trp_bytes),
                                           send_drop, &msg, &held);
    if (err != TRP_OK) {
        return err;
    }
    trpi_nng_send *send = held;
    send->ack = as->ack;
    send->exchange = as->exchange;
    send->is_reply = as->is_reply;
    send->count = count;
    for (uint32_t i = 0; i < count; i++) {
        send->parts[i] = trp_bytes_ref(parts[i]);
    }
    trp_send(ctx, socket, msg);
    return TRP_OK;
}

trp_err
trp_nng_send(trp_ctx *ctx, trp_ref socket, const trp_bytes *parts, uint32_t parts_count,
             uint64_t ack)
{
    return send_tell(ctx, socket, parts, parts_count, &(trpi_nng_send){ .ack = ack });
}

trp_err
trp_nng_reply(trp_ctx *ctx, trp_ref socket, uint64_t exchange, const trp_bytes *parts,
              uint32_t parts_count)
{
    return send_tell(ctx, socket, parts, parts_count,
                     &(trpi_nng_send){ .exchange = exchange, .is_reply = true });
}

static trp_err
subscription_tell(trp_ctx *ctx, trp_ref socket, bool add, const void *prefix, size_t bytes)
{
    trpi_nng_subscription s;
    if (ctx == NULL || (prefix == NULL && bytes != 0) || bytes > TRP_NNG_PREFIX_BYTES_MAX) {
        return TRP_EINVAL;
    }
    memset(&s, 0, sizeof s);
    s.add = add;
    s.bytes = (uint8_t)bytes;
    if (bytes != 0) {
        memcpy(s.prefix, prefix, bytes);
    }
    trp_err err = trp_protocol_register(&trp_nng_protocol);
    if (err == TRP_OK) {
        trp_tell(ctx, socket, &trpi_nng_subscription_type, &s, sizeof s);
    }
    return err;
}

trp_err
trp_nng_subscribe(trp_ctx *ctx, trp_ref socket, const void *prefix, size_t bytes)
{
    return subscription_tell(ctx, socket, true, prefix, bytes);
}

trp_err
trp_nng_unsubscribe(trp_ctx *ctx, trp_ref socket, const void *prefix, size_t bytes)
{
    return subscription_tell(ctx, socket, false, prefix, bytes);
}

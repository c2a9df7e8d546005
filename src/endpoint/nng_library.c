/* nng_library.c - the scalability protocols of nng, called here and nowhere else.
 *
 * Shape.   a socket, with operations: an aio each, and for requests and surveys a context each, so
 *          that many are on their way. done() comes once for each receive or send that was begun,
 *          on a thread of nng's task queue.
 * Must hold. nng 1.5.2 as Debian builds it asks for:
 *   nng-library-N1  No aio is cancelled, nor has a timeout: a cancel may be lost, and a message
 *       with it. A context is closed instead, and the socket at the end.
 *   nng-library-N2  stop, wait and free of an aio come from threads of ours, never from a callback.
 *   nng-library-N3  A send and a receive of one context are never begun at the same time: closing
 *       it would write into a freed message.
 *   nng-library-N4  Names are resolved before (nng_address.c): ending a dial that resolves panics.
 *   nng-library-N5  A second listener on an ipc path would end the first one for good: a path that
 *       somebody serves is refused before.
 *   nng-library-N6  The length that a peer announces is bounded before memory is taken.
 *   nng-library-N7  A read that nng posts behind a message while the connection is closed never
 *       ends, and each later closing in the process waits for it. Nothing tells when the read has
 *       been posted, so a socket is given CLOSE_PAUSE_MS before it is closed. Where messages keep
 *       coming meanwhile this makes it rarer, not impossible: sockets are closed with a deadline
 *       (closing.c). Its thread has all of a late one, user with it, until it ends.
 * Threads. An owner calls, one call at a time; done() and piped() come on nng's threads.
 * Tests.   tests/unit/endpoint/nng_socket_test.c, tests/unit/endpoint/nng_closing_test.c
 * Sources. ZMQ-02, -03, -06
 */
#include "endpoint/nng_library.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <nng/nng.h>
#include <nng/protocol/bus0/bus.h>
#include <nng/protocol/pair0/pair.h>
#include <nng/protocol/pipeline0/pull.h>
#include <nng/protocol/pipeline0/push.h>
#include <nng/protocol/pubsub0/pub.h>
#include <nng/protocol/pubsub0/sub.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <nng/protocol/survey0/respond.h>
#include <nng/protocol/survey0/survey.h>
#include <nng/supplemental/util/platform.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "endpoint/closing.h"
#include "endpoint/nng_address.h"

#define CLOSE_PAUSE_MS 20
#define LISTENS 0x10000u /* in /proc/net/unix: __SO_ACCEPTCON */

struct trpi_nng_op {
    trpi_nng_op *next;
    trpi_nng *nng;
    nng_aio *aio;
    nng_ctx ctx;
    uint32_t number;
    bool exchange, sending;
    _Atomic uint32_t turn; /* written by the owner before it begins, read by the callback */
};

typedef struct pump {
    struct pump *next;
    nng_socket from, to;
    nng_aio *aio;
    bool sending; /* callbacks of one aio follow one another */
} pump;

struct trpi_nng {
    nng_socket socket;
    const trpi_nng_calls *calls;
    void *user;
    trpi_nng_op *ops;
    pump *pumps;
};

trp_err
trpi_nng_err(int code)
{
    static const struct {
        int code;
        trp_err err;
    } known[] = { { 0, TRP_OK },
                  { NNG_ENOMEM, TRP_ENOMEM },
                  { NNG_EINVAL, TRP_EINVAL },
                  { NNG_EADDRINVAL, TRP_EINVAL },
                  { NNG_ETIMEDOUT, TRP_ETIMEDOUT },
                  { NNG_ECLOSED, TRP_ECLOSED },
                  { NNG_ECONNREFUSED, TRP_ECONN },
                  { NNG_EUNREACHABLE, TRP_ECONN },
                  { NNG_ENOTSUP, TRP_EUNSUPPORTED },
                  { NNG_EADDRINUSE, TRP_EADDRINUSE },
                  { NNG_ESTATE, TRP_ESTATE },
                  { NNG_ENOENT, TRP_ENOENT },
                  { NNG_EPROTO, TRP_EPROTO },
                  { NNG_EPERM, TRP_EPERM },
                  { NNG_EMSGSIZE, TRP_EMSGSIZE },
                  { NNG_ENOFILES, TRP_ELIMIT } };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].code == code) {
            return known[i].err;
        }
    }
    return TRP_EIO;
}

const char *
trpi_nng_reason(int code)
{
    return nng_strerror(code);
}

/* ---- sockets --------------------------------------------------------------------------------- */

static int
socket_open(uint32_t kind, bool raw, nng_socket *ret_socket)
{
    switch (kind) {
    case TRP_NNG_PUB:
        return raw ? nng_pub0_open_raw(ret_socket) : nng_pub0_open(ret_socket);
    case TRP_NNG_SUB:
        return raw ? nng_sub0_open_raw(ret_socket) : nng_sub0_open(ret_socket);
    case TRP_NNG_PUSH:
        return raw ? nng_push0_open_raw(ret_socket) : nng_push0_open(ret_socket);
    case TRP_NNG_PULL:
        return raw ? nng_pull0_open_raw(ret_socket) : nng_pull0_open(ret_socket);
    case TRP_NNG_PAIR:
        return raw ? nng_pair0_open_raw(ret_socket) : nng_pair0_open(ret_socket);
    case TRP_NNG_BUS:
        return raw ? nng_bus0_open_raw(ret_socket) : nng_bus0_open(ret_socket);
    case TRP_NNG_REQ:
        return raw ? nng_req0_open_raw(ret_socket) : nng_req0_open(ret_socket);
    case TRP_NNG_REP:
        return raw ? nng_rep0_open_raw(ret_socket) : nng_rep0_open(ret_socket);
    case TRP_NNG_SURVEYOR:
        return raw ? nng_surveyor0_open_raw(ret_socket) : nng_surveyor0_open(ret_socket);
    default:
        return raw ? nng_respondent0_open_raw(ret_socket) : nng_respondent0_open(ret_socket);
    }
}

static void
address_text(const nng_sockaddr *address, char text[TRPI_NNG_ADDRESS_BYTES])
{
    char ip[INET6_ADDRSTRLEN] = "?";
    switch (address->s_family) {
    case NNG_AF_INET:
        (void)inet_ntop(AF_INET, &address->s_in.sa_addr, ip, sizeof ip);
        (void)snprintf(text, TRPI_NNG_ADDRESS_BYTES, "tcp://%s:%u", ip,
                       (unsigned)ntohs(address->s_in.sa_port));
        break;
    case NNG_AF_INET6:
        (void)inet_ntop(AF_INET6, address->s_in6.sa_addr, ip, sizeof ip);
        (void)snprintf(text, TRPI_NNG_ADDRESS_BYTES, "tcp://[%s]:%u", ip,
                       (unsigned)ntohs(address->s_in6.sa_port));
        break;
    case NNG_AF_IPC:
        (void)snprintf(text, TRPI_NNG_ADDRESS_BYTES, "ipc://%.120s", address->s_ipc.sa_path);
        break;
    default:
        text[0] = '\0';
        break;
    }
}

static void
on_pipe(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
    const trpi_nng *nng = arg;
    char text[TRPI_NNG_ADDRESS_BYTES] = "";
    nng_sockaddr address;
    memset(&address, 0, sizeof address);
    if (event == NNG_PIPE_EV_ADD_POST && nng_pipe_get_addr(pipe, NNG_OPT_REMADDR, &address) == 0) {
        address_text(&address, text);
    }
    nng->calls->piped(nng->user, event == NNG_PIPE_EV_ADD_POST, (uint32_t)nng_pipe_id(pipe), text);
}

trp_err
trpi_nng_new(const trpi_nng_settings *settings, const trpi_nng_calls *calls, void *user,
             trpi_nng **ret_nng)
{
    if (trpi_closing_late() >= TRPI_CLOSING_LATE_MAX) {
        return TRP_ELIMIT;
    }
    trpi_nng *nng = trpi_alloc(sizeof *nng);
    if (nng == NULL) {
        return TRP_ENOMEM;
    }
    int code = socket_open(settings->kind, settings->raw, &nng->socket);
    if (code != 0) {
        trpi_free(nng);
        return trpi_nng_err(code);
    }
    nng->calls = calls;
    nng->user = user;
    code = nng_socket_set_size(nng->socket, NNG_OPT_RECVMAXSZ,
                               settings->message_bytes_max); /* nng-library-N6 */
    code = code != 0 ? code
                     : nng_socket_set_ms(nng->socket, NNG_OPT_RECONNMINT,
                                         (nng_duration)settings->redial_min_ms);
    code = code != 0 ? code
                     : nng_socket_set_ms(nng->socket, NNG_OPT_RECONNMAXT,
                                         (nng_duration)settings->redial_max_ms);
    if (code == 0 && settings->kind == TRP_NNG_SURVEYOR && !settings->raw) {
        code = nng_socket_set_ms(nng->socket, NNG_OPT_SURVEYOR_SURVEYTIME,
                                 (nng_duration)settings->timeout_ms);
    }
    if (code == 0 && calls != NULL) {
        code = nng_pipe_notify(nng->socket, NNG_PIPE_EV_ADD_POST, on_pipe, nng);
        code = code != 0 ? code : nng_pipe_notify(nng->socket, NNG_PIPE_EV_REM_POST, on_pipe, nng);
    }
    if (code != 0) {
        (void)nng_close(nng->socket);
        trpi_free(nng);
        return trpi_nng_err(code);
    }
    *ret_nng = nng;
    return TRP_OK;
}

/* Free what an ended aio still has: the message of a send that failed, or one that was received. */
static void
aio_clear(nng_aio *aio, bool sending)
{
    nng_msg *msg = sending && nng_aio_result(aio) == 0 ? NULL : nng_aio_get_msg(aio);
    nng_aio_set_msg(aio, NULL);
    if (msg != NULL) {
        nng_msg_free(msg);
    }
}

static void
socket_close(void *arg)
{
    trpi_nng *nng = arg;
    (void)nng_pipe_notify(nng->socket, NNG_PIPE_EV_ADD_POST, NULL, NULL);
    (void)nng_pipe_notify(nng->socket, NNG_PIPE_EV_REM_POST, NULL, NULL);
    nng_msleep(CLOSE_PAUSE_MS); /* nng-library-N7 */
    (void)nng_close(nng->socket);
    for (trpi_nng_op *op = nng->ops, *next; op != NULL; op = next) {
        next = op->next;
        nng_aio_stop(op->aio);
        aio_clear(op->aio, op->sending);
        nng_aio_free(op->aio);
        trpi_free(op);
    }
    for (pump *p = nng->pumps, *next; p != NULL; p = next) {
        next = p->next;
        (void)nng_close(p->to); /* the other socket of the device, perhaps again */
        nng_aio_stop(p->aio);
        aio_clear(p->aio, p->sending);
        nng_aio_free(p->aio);
        trpi_free(p);
    }
    if (nng->calls != NULL) {
        nng->calls->freed(nng->user);
    }
    trpi_free(nng);
}

trp_err
trpi_nng_free(trpi_nng *nng)
{
    return nng == NULL || trpi_closing_run(socket_close, nng) ? TRP_OK : TRP_ETIMEDOUT;
}

/* nng-library-N5. The kernel's list is read: a connect and hang-up would stop the listener, too. */
static bool
ipc_is_served(const char *url)
{
    char line[512];
    bool served = false;
    FILE *file = strncmp(url, "ipc://", 6) == 0 ? fopen("/proc/net/unix", "re") : NULL;
    while (file != NULL && !served && fgets(line, sizeof line, file) != NULL) {
        unsigned flags = 0;
        int path = 0;
        line[strcspn(line, "\n")] = '\0';
        served = sscanf(line, "%*s %*s %*s %x %*s %*s %*s %n", &flags, &path) == 1 && path != 0 &&
                 (flags & LISTENS) != 0 && strcmp(line + path, url + 6) == 0;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return served;
}

int
trpi_nng_listen(trpi_nng *nng, const char *url, char ret_address[TRPI_NNG_ADDRESS_BYTES])
{
    nng_listener listener;
    int port = 0;
    if (ipc_is_served(url)) {
        return NNG_EADDRINUSE;
    }
    int code = nng_listen(nng->socket, url, &listener, 0);
    if (code != 0) {
        return code;
    }
    const char *end = strncmp(url, "tcp://", 6) == 0 ? strrchr(url, ':') : NULL;
    if (end != NULL && nng_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &port) == 0) {
        (void)snprintf(ret_address, TRPI_NNG_ADDRESS_BYTES, "%.*s:%d", (int)(end - url), url, port);
    } else {
        (void)snprintf(ret_address, TRPI_NNG_ADDRESS_BYTES, "%s", url);
    }
    return 0;
}

int
trpi_nng_dial(trpi_nng *nng, const char *url)
{
    return nng_dial(nng->socket, url, NULL, NNG_FLAG_NONBLOCK);
}

int
trpi_nng_subscribe(trpi_nng *nng, bool add, const void *prefix, size_t bytes)
{
    return nng_socket_set(nng->socket, add ? NNG_OPT_SUB_SUBSCRIBE : NNG_OPT_SUB_UNSUBSCRIBE,
                          prefix, bytes);
}

/* ---- operations ------------------------------------------------------------------------------ */

static void
on_done(void *arg)
{
    const trpi_nng_op *op = arg;
    op->nng->calls->done(op->nng->user, op->number,
                         atomic_load_explicit(&op->turn, memory_order_acquire));
}

trp_err
trpi_nng_op_new(trpi_nng *nng, uint32_t number, bool exchange, trpi_nng_op **ret_op)
{
    trpi_nng_op *op = trpi_alloc(sizeof *op);
    if (op == NULL) {
        return TRP_ENOMEM;
    }
    op->nng = nng;
    op->number = number;
    op->exchange = exchange;
    int code = exchange ? nng_ctx_open(&op->ctx, nng->socket) : 0;
    if (code == 0 && (code = nng_aio_alloc(&op->aio, on_done, op)) != 0 && exchange) {
        (void)nng_ctx_close(op->ctx);
    }
    if (code != 0) {
        trpi_free(op);
        return trpi_nng_err(code);
    }
    op->next = nng->ops;
    nng->ops = op;
    *ret_op = op;
    return TRP_OK;
}

uint32_t
trpi_nng_op_turn(const trpi_nng_op *op)
{
    return atomic_load_explicit(&op->turn, memory_order_acquire);
}

/* release: the callback of what begins now sees all that was written before */
static void
op_begin(trpi_nng_op *op, bool sending, nng_msg *msg)
{
    op->sending = sending;
    (void)atomic_fetch_add_explicit(&op->turn, 1, memory_order_release);
    nng_aio_set_msg(op->aio, msg);
}

void
trpi_nng_op_receive(trpi_nng_op *op)
{
    op_begin(op, false, NULL);
    if (op->exchange) {
        nng_ctx_recv(op->ctx, op->aio);
    } else {
        nng_recv_aio(op->nng->socket, op->aio);
    }
}

trp_err
trpi_nng_op_send(trpi_nng_op *op, const trp_bytes *parts, uint32_t count, bool framed)
{
    size_t bytes = framed ? trpi_nng_lengths_bytes(count) : 0, at = 0;
    nng_msg *msg;
    for (uint32_t i = 0; i < count; i++) {
        bytes += trp_bytes_length(parts[i]);
    }
    if (nng_msg_alloc(&msg, bytes) != 0) {
        return TRP_ENOMEM;
    }
    uint8_t *body = nng_msg_body(msg);
    for (uint32_t i = 0; i < count; i++) {
        at += trp_bytes_copy_out(parts[i], 0, body + at, trp_bytes_length(parts[i]));
    }
    if (framed) {
        trpi_nng_lengths_write(parts, count, body + at);
    }
    op_begin(op, true, msg);
    if (op->exchange) {
        nng_ctx_send(op->ctx, op->aio);
    } else {
        nng_send_aio(op->nng->socket, op->aio);
    }
    return TRP_OK;
}

static void
body_release(void *data, void *arg)
{
    (void)data;
    nng_msg_free(arg);
}

int
trpi_nng_op_received(trpi_nng_op *op, trp_bytes *ret_body, uint32_t *ret_pipe)
{
    int code = nng_aio_result(op->aio);
    nng_msg *msg = code == 0 ? nng_aio_get_msg(op->aio) : NULL;
    nng_aio_set_msg(op->aio, NULL);
    if (msg == NULL) {
        return code != 0 ? code : NNG_EINTERNAL;
    }
    int pipe = nng_pipe_id(nng_msg_get_pipe(msg));
    *ret_pipe = pipe > 0 ? (uint32_t)pipe : 0;
    if (nng_msg_len(msg) == 0) {
        nng_msg_free(msg);
        *ret_body = TRP_BYTES_EMPTY;
    } else if (trp_bytes_wrap(nng_msg_body(msg), nng_msg_len(msg), body_release, msg, ret_body) !=
               TRP_OK) {
        nng_msg_free(msg);
        return NNG_ENOMEM;
    }
    return 0;
}

int
trpi_nng_op_sent(trpi_nng_op *op)
{
    int code = nng_aio_result(op->aio);
    aio_clear(op->aio, true);
    return code;
}

trp_err
trpi_nng_op_reset(trpi_nng_op *op)
{
    trpi_assert(op->exchange);
    (void)nng_ctx_close(op->ctx); /* nng-library-N1 */
    nng_aio_wait(op->aio);
    aio_clear(op->aio, op->sending);
    (void)atomic_fetch_add_explicit(&op->turn, 1, memory_order_release);
    return trpi_nng_err(nng_ctx_open(&op->ctx, op->nng->socket));
}

/* ---- devices --------------------------------------------------------------------------------- */

static void
on_pumped(void *arg)
{
    pump *p = arg;
    int code = nng_aio_result(p->aio);
    if (code == NNG_ECLOSED || code == NNG_ECANCELED) {
        return; /* trpi_nng_free() clears it */
    }
    if (code == 0 && !p->sending) {
        p->sending = true;
        nng_send_aio(p->to, p->aio); /* with the message, and its route, that it has */
        return;
    }
    aio_clear(p->aio, p->sending);
    p->sending = false;
    nng_recv_aio(p->from, p->aio);
}

trp_err
trpi_nng_pump(trpi_nng *from, trpi_nng *to)
{
    pump *p = trpi_alloc(sizeof *p);
    if (p == NULL) {
        return TRP_ENOMEM;
    }
    p->from = from->socket;
    p->to = to->socket;
    if (nng_aio_alloc(&p->aio, on_pumped, p) != 0) {
        trpi_free(p);
        return TRP_ENOMEM;
    }
    p->next = from->pumps;
    from->pumps = p;
    nng_recv_aio(p->from, p->aio);
    return TRP_OK;
}

/* nng_socket.c - an actor that owns a socket of nng.
 *
 * Shape.   sender -> [send queue] -> one send, or an exchange for each request -> nng
 *          nng -> one receive, or an exchange for each request -> listener, or the asker
 *          A thread of nng only tells the actor that an operation has ended, so all state is
 *          touched in its turns alone. It runs where blocking is allowed: opening may resolve
 *          names, and closing waits for nng.
 * States.  of an exchange:
 *            REQ         IDLE -> SENDING -> ASKING -> IDLE      (a reply, or the timeout: a reset)
 *            SURVEYOR    IDLE -> SENDING -> ASKING -> ASKING... -> IDLE  (nng ends the survey)
 *            REP, RESP.  LISTENING -> SERVING -> ANSWERING -> LISTENING  (SERVING: or the timeout)
 * Must hold.
 *   nng-socket-K1  Each message that was told to the socket is sent or fails, once: its sender is
 *       told if it fails, or if it has an ack.
 *   nng-socket-K2  At most receive_max messages (one more of receive_bytes_max) are with the
 *       listener, or with those that made surveys (and one more for each survey); a receive is
 *       begun below that only, and again when half of them are freed.
 *   nng-socket-K3  done() of an operation that was given up has an older turn, and is not looked
 *       at.
 * Limits.  send_max, receive_max, receive_bytes_max, exchanges_max, message_bytes_max.
 * Tests.   tests/unit/endpoint/nng_socket_test.c, tests/unit/endpoint/nng_exchange_test.c
 * Sources. ZMQ-01 to -06
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "endpoint/nng_inner.h"

enum { SENDS = 0, RECEIVES = 1, EXCHANGES = 2 }; /* numbers of operations */
enum { IDLE, SENDING, ASKING, LISTENING, SERVING, ANSWERING };

/* The actor, as nng's threads and messages with the listener know it. Counted: by the actor, by
 * the socket of nng, by each message. */
typedef struct link {
    trp_system *system;
    trp_ref owner;
    _Atomic uint32_t count, messages;
    _Atomic uint64_t bytes;
    _Atomic bool owned, waits;
    uint32_t messages_max, bytes_max;
} link;

typedef struct exchange {
    trpi_nng_op *op;
    uint32_t phase;
    uint64_t id; /* SERVING */
    uint64_t ack, replies;
    trp_ref asker;
    bool waits; /* ASKING, of a survey: for room */
} exchange;

typedef struct waiting {
    struct waiting *next;
    trp_msg *msg;
    trp_ref sender;
} waiting;

typedef struct nng_actor {
    trpi_nng_args args;
    trpi_nng *nng;
    link *link;
    trpi_nng_op *out, *in;
    waiting *sent; /* what `out` sends */
    bool receiving;
    waiting *first, **last;
    uint32_t waiting_count;
    exchange *exchanges; /* exchanges_max of them */
    trp_err err;
    char reason[TRPI_NNG_REASON_BYTES];
} nng_actor;

typedef struct held_message {
    trp_nng_message told; /* first */
    link *link;           /* NULL: not counted */
    trp_bytes body;
    trp_bytes parts[];
} held_message;

/* ---- the link -------------------------------------------------------------------------------- */

static void
link_unref(link *l)
{
    if (l != NULL && atomic_fetch_sub_explicit(&l->count, 1, memory_order_acq_rel) == 1) {
        trpi_free(l);
    }
}

/* An actor that has ended meanwhile misses nothing. */
static void
link_tell(const link *l, const trp_type *type, const void *payload, size_t bytes)
{
    if (atomic_load_explicit(&l->owned, memory_order_acquire)) {
        trp_ctx *ctx = trpi_enter(l->system);
        (void)trpi_offer(ctx, l->owner, TRP_REF_NONE, type, payload, bytes);
        trpi_leave(ctx);
    }
}

static void
on_done(void *user, uint32_t number, uint32_t turn)
{
    trpi_nng_done done = { number, turn };
    link_tell(user, &trpi_nng_done_type, &done, sizeof done);
}

static void
on_piped(void *user, bool added, uint32_t pipe, const char *address)
{
    trpi_nng_piped piped;
    memset(&piped, 0, sizeof piped);
    piped.added = added;
    piped.pipe = pipe;
    (void)snprintf(piped.address, sizeof piped.address, "%s", address);
    link_tell(user, &trpi_nng_piped_type, &piped, sizeof piped);
}

static void
on_freed(void *user)
{
    link_unref(user);
}

static const trpi_nng_calls calls = { .done = on_done, .piped = on_piped, .freed = on_freed };

static bool
link_is_below(const link *l, uint32_t part)
{
    return atomic_load(&l->messages) < (l->messages_max + part - 1) / part &&
           atomic_load(&l->bytes) < (l->bytes_max + part - 1) / part;
}

/* nng-socket-K2. True: another message may come. False: the actor is told when there is room;
 * sequentially consistent against message_drop(), so that one of the two sees the other. */
static bool
link_has_room(link *l)
{
    if (link_is_below(l, 1)) {
        return true;
    }
    atomic_store(&l->waits, true);
    return link_is_below(l, 2) && atomic_exchange(&l->waits, false);
}

/* ---- messages that arrive -------------------------------------------------------------------- */

static void
message_drop(void *held)
{
    held_message *m = held;
    link *l = m->link;
    size_t bytes = trp_bytes_length(m->body);
    for (uint32_t i = 0; i < m->told.parts_count; i++) {
        trp_bytes_unref(&m->parts[i]);
    }
    trp_bytes_unref(&m->body);
    if (l != NULL) {
        (void)atomic_fetch_sub(&l->bytes, bytes);
        (void)atomic_fetch_sub(&l->messages, 1);
        if (link_is_below(l, 2) && atomic_exchange(&l->waits, false)) {
            link_tell(l, &trpi_nng_room_type, NULL, 0);
        }
        link_unref(l);
    }
}

/* Tell an actor what has arrived. Takes body, always. False: its lengths do not fit. */
static bool
message_tell(trp_ctx *ctx, nng_actor *s, trp_ref to, trp_bytes body, const trp_nng_message *as,
             bool counted)
{
    uint32_t count = 1, lengths[TRP_NNG_PARTS_MAX] = { (uint32_t)trp_bytes_length(body) };
    size_t at = 0;
    trp_msg *msg;
    void *held;
    if (s->args.framed &&
        !trpi_nng_lengths_read(trp_bytes_flat(body), trp_bytes_length(body), &count, lengths)) {
        trp_bytes_unref(&body);
        trpi_nng_event_tell(ctx, s->args.listener, TRP_NNG_BAD_MESSAGE, as->pipe, TRP_EDATA, "",
                            "a message without lengths of parts that fit; is its sender framed?");
        return false;
    }
    if (trp_msg_new_held(&trp_nng_message_type, sizeof(held_message) + count * sizeof(trp_bytes),
                         message_drop, &msg, &held) != TRP_OK) {
        trp_bytes_unref(&body);
        trp_log(ctx, TRP_LOG_WARNING, "no memory for a message of nng: it is dropped");
        return false;
    }
    held_message *m = held;
    m->told = *as;
    m->told.parts_count = count;
    m->told.parts = m->parts;
    m->body = body;
    for (uint32_t i = 0; i < count; i++) {
        m->parts[i] = trp_bytes_slice(body, at, at + lengths[i]);
        at += lengths[i];
    }
    if (counted) {
        m->link = s->link;
        (void)atomic_fetch_add_explicit(&s->link->count, 1, memory_order_relaxed);
        (void)atomic_fetch_add(&s->link->messages, 1);
        (void)atomic_fetch_add(&s->link->bytes, trp_bytes_length(body));
    }
    trp_send(ctx, to, msg);
    return true;
}

static void
receive_try(nng_actor *s)
{
    if (s->in != NULL && !s->receiving && link_has_room(s->link)) {
        s->receiving = true;
        trpi_nng_op_receive(s->in);
    }
}

static void
receive_done(trp_ctx *ctx, nng_actor *s)
{
    trp_nng_message as = { .exchange = 0 };
    trp_bytes body;
    s->receiving = false;
    int code = trpi_nng_op_received(s->in, &body, &as.pipe);
    if (code == 0) {
        (void)message_tell(ctx, s, s->args.listener, body, &as, true);
    } else if (trpi_nng_err(code) == TRP_ECLOSED) {
        return;
    }
    receive_try(s);
}

/* ---- the queue of sends ---------------------------------------------------------------------- */

static void
waiting_free(waiting *w)
{
    trp_msg_free(w->msg);
    trpi_free(w);
}

static const trpi_nng_send *
send_of(const waiting *w)
{
    return trp_msg_held(w->msg, &trpi_nng_send_type);
}

static void
waiting_fail(trp_ctx *ctx, waiting *w, trp_err err, const char *reason)
{
    trpi_nng_failed_tell(ctx, w->sender, send_of(w)->ack, 0, err, reason);
    waiting_free(w);
}

static waiting *
waiting_take(nng_actor *s)
{
    waiting *w = s->first;
    s->first = w->next;
    s->last = s->first == NULL ? &s->first : s->last;
    s->waiting_count--;
    return w;
}

static bool
socket_asks(const nng_actor *s)
{
    return s->args.settings.kind == TRP_NNG_REQ || s->args.settings.kind == TRP_NNG_SURVEYOR;
}

static bool
socket_serves(const nng_actor *s)
{
    return s->args.settings.kind == TRP_NNG_REP || s->args.settings.kind == TRP_NNG_RESPONDENT;
}

/* An exchange that is free, made at its first use; NULL: none. */
static exchange *
exchange_idle(nng_actor *s)
{
    for (uint32_t i = 0; i < s->args.exchanges_max; i++) {
        exchange *e = &s->exchanges[i];
        if (e->phase == IDLE &&
            (e->op != NULL || trpi_nng_op_new(s->nng, EXCHANGES + i, true, &e->op) == TRP_OK)) {
            return e;
        }
    }
    return NULL;
}

static uint64_t
exchange_key(const nng_actor *s, const exchange *e)
{
    return (uint64_t)(EXCHANGES + (e - s->exchanges));
}

static void
alarm_set(trp_ctx *ctx, const nng_actor *s, const exchange *e)
{
    trpi_nng_alarm alarm = { (uint32_t)exchange_key(s, e) };
    trp_err err = trp_timer_once(ctx, alarm.number, s->args.settings.timeout_ms,
                                 &trpi_nng_alarm_type, &alarm, sizeof alarm);
    if (err != TRP_OK) {
        trp_fail(ctx, (int32_t)err, "no timer for a request of nng");
    }
}

/* Begin what waits, as far as it goes. */
static void
send_next(trp_ctx *ctx, nng_actor *s)
{
    while (s->first != NULL) {
        exchange *e = socket_asks(s) ? exchange_idle(s) : NULL;
        if (socket_asks(s) ? e == NULL : s->sent != NULL) {
            return;
        }
        waiting *w = waiting_take(s);
        const trpi_nng_send *send = send_of(w);
        if (trpi_nng_op_send(socket_asks(s) ? e->op : s->out, send->parts, send->count,
                             s->args.framed) != TRP_OK) {
            waiting_fail(ctx, w, TRP_ENOMEM, "no memory for the message");
        } else if (socket_asks(s)) {
            e->phase = SENDING;
            e->ack = send->ack;
            e->asker = w->sender;
            e->replies = 0;
            waiting_free(w);
            if (s->args.settings.kind == TRP_NNG_REQ) {
                alarm_set(ctx, s, e);
            }
        } else {
            s->sent = w;
        }
    }
}

static void
send_done(trp_ctx *ctx, nng_actor *s)
{
    waiting *w = s->sent;
    int code = trpi_nng_op_sent(s->out);
    trpi_assert(w != NULL);
    s->sent = NULL;
    if (code != 0) {
        waiting_fail(ctx, w, trpi_nng_err(code), trpi_nng_reason(code));
    } else {
        trp_nng_sent sent = { send_of(w)->ack };
        if (sent.ack != 0 && !trp_ref_is_none(w->sender)) {
            trp_tell(ctx, w->sender, &trp_nng_sent_type, &sent, sizeof sent);
        }
        waiting_free(w);
    }
    send_next(ctx, s);
}

/* ---- exchanges ------------------------------------------------------------------------------- */

static void
exchange_listen(exchange *e)
{
    e->phase = LISTENING;
    trpi_nng_op_receive(e->op);
}

/* A request, or a survey, is over. */
static void
exchange_end(trp_ctx *ctx, nng_actor *s, exchange *e)
{
    trp_timer_cancel(ctx, exchange_key(s, e));
    e->phase = IDLE;
    send_next(ctx, s);
}

/* nng-socket-K2, of the replies to a survey. Without room nng keeps some, and drops others. */
static void
survey_try(const nng_actor *s, exchange *e)
{
    e->waits = !link_has_room(s->link);
    if (!e->waits) {
        trpi_nng_op_receive(e->op);
    }
}

static void
surveys_try(nng_actor *s)
{
    for (uint32_t i = 0; socket_asks(s) && i < s->args.exchanges_max; i++) {
        if (s->exchanges[i].waits) {
            survey_try(s, &s->exchanges[i]);
        }
    }
}

static void
exchange_asked(trp_ctx *ctx, nng_actor *s, exchange *e)
{
    trp_nng_message as = { .ack = e->ack };
    bool is_survey = s->args.settings.kind == TRP_NNG_SURVEYOR;
    trp_bytes body;
    int code = trpi_nng_op_received(e->op, &body, &as.pipe);
    if (code == 0 && message_tell(ctx, s, e->asker, body, &as, is_survey)) {
        e->replies++;
    } else if (code == 0 && !is_survey) {
        trpi_nng_failed_tell(ctx, e->asker, e->ack, 0, TRP_EDATA, "the reply has no parts");
    } else if (code != 0 && !is_survey) {
        trpi_nng_failed_tell(ctx, e->asker, e->ack, 0, trpi_nng_err(code), trpi_nng_reason(code));
    }
    if (is_survey && code == 0) {
        survey_try(s, e);
        return;
    }
    if (is_survey && !trp_ref_is_none(e->asker)) {
        trp_nng_survey_end end = { e->ack, e->replies };
        trp_tell(ctx, e->asker, &trp_nng_survey_end_type, &end, sizeof end);
    }
    exchange_end(ctx, s, e);
}

static void
exchange_served(trp_ctx *ctx, nng_actor *s, exchange *e)
{
    trp_nng_message as = { .exchange = 0 };
    trp_bytes body;
    int code = trpi_nng_op_received(e->op, &body, &as.pipe);
    if (trpi_nng_err(code) == TRP_ECLOSED) {
        return;
    }
    e->id = as.exchange = (uint64_t)trpi_nng_op_turn(e->op) << 32 | exchange_key(s, e);
    if (code != 0 || !message_tell(ctx, s, s->args.listener, body, &as, false)) {
        exchange_listen(e);
        return;
    }
    e->phase = SERVING;
    alarm_set(ctx, s, e);
}

static void
exchange_done(trp_ctx *ctx, nng_actor *s, exchange *e)
{
    int code;
    switch (e->phase) {
    case SENDING:
        code = trpi_nng_op_sent(e->op);
        if (code != 0) {
            trpi_nng_failed_tell(ctx, e->asker, e->ack, 0, trpi_nng_err(code),
                                 trpi_nng_reason(code));
            exchange_end(ctx, s, e);
        } else {
            e->phase = ASKING;
            trpi_nng_op_receive(e->op);
        }
        break;
    case ASKING:
        exchange_asked(ctx, s, e);
        break;
    case LISTENING:
        exchange_served(ctx, s, e);
        break;
    case ANSWERING: /* a peer that has gone meanwhile asks again, or does not want to know */
        (void)trpi_nng_op_sent(e->op);
        exchange_listen(e);
        break;
    default:
        break;
    }
}

/* The time of an exchange is over. */
static void
exchange_alarm(trp_ctx *ctx, nng_actor *s, exchange *e)
{
    if (e->phase == SERVING) {
        trpi_nng_failed_tell(ctx, s->args.listener, 0, e->id, TRP_ETIMEDOUT,
                             "the request was not replied to in time: its peer gets no reply");
        exchange_listen(e);
    } else if (e->phase == SENDING || e->phase == ASKING) {
        trpi_nng_failed_tell(ctx, e->asker, e->ack, 0, TRP_ETIMEDOUT,
                             e->phase == SENDING ? "no peer took the request in time"
                                                 : "no reply came in time");
        e->phase = IDLE; /* answered, also if the actor fails now */
        trp_err err = trpi_nng_op_reset(e->op);
        if (err != TRP_OK) {
            trp_fail(ctx, (int32_t)err, "no context for requests of nng");
        }
        exchange_end(ctx, s, e);
    }
}

/* ---- what actors tell ------------------------------------------------------------------------ */

static void
on_reply(trp_ctx *ctx, nng_actor *s, const trpi_nng_send *send)
{
    uint64_t at = (send->exchange & UINT32_MAX) - EXCHANGES;
    exchange *e = socket_serves(s) && at < s->args.exchanges_max ? &s->exchanges[at] : NULL;
    if (e == NULL || e->phase != SERVING || e->id != send->exchange) {
        trpi_nng_failed_tell(ctx, trp_sender(ctx), 0, send->exchange, TRP_ESTATE,
                             "the request was replied to, or its time is over");
        return;
    }
    trp_timer_cancel(ctx, exchange_key(s, e));
    if (trpi_nng_op_send(e->op, send->parts, send->count, s->args.framed) != TRP_OK) {
        trpi_nng_failed_tell(ctx, trp_sender(ctx), 0, send->exchange, TRP_ENOMEM,
                             "no memory for the reply");
        exchange_listen(e);
        return;
    }
    e->phase = ANSWERING;
}

static void
on_send(trp_ctx *ctx, nng_actor *s, const trp_msg *msg)
{
    const trpi_nng_send *send = trp_msg_held(msg, &trpi_nng_send_type);
    const char *reason = NULL;
    trp_err err = TRP_OK;
    waiting *w = NULL;
    if (s->nng == NULL) {
        err = TRP_ECLOSED;
        reason = "the socket is closed";
    } else if (send->is_reply) {
        on_reply(ctx, s, send);
        return;
    } else if (s->out == NULL && !socket_asks(s)) {
        err = TRP_EUNSUPPORTED;
        reason = socket_serves(s) ? "this socket only replies: trp_nng_reply()"
                                  : "this socket only receives";
    } else if (s->waiting_count >= s->args.send_max) {
        err = TRP_EAGAIN;
        reason = "send_max messages wait: send less, or connect to a peer that reads";
    } else if ((w = trpi_alloc(sizeof *w)) == NULL || trp_msg_dup(msg, &w->msg) != TRP_OK) {
        trpi_free(w);
        err = TRP_ENOMEM;
        reason = "no memory for the message";
    }
    if (err != TRP_OK) {
        trpi_nng_failed_tell(ctx, trp_sender(ctx), send->ack, send->exchange, err, reason);
        return;
    }
    w->sender = trp_sender(ctx);
    *s->last = w;
    s->last = &w->next;
    s->waiting_count++;
    send_next(ctx, s);
}

static void
on_subscription(trp_ctx *ctx, nng_actor *s, const trpi_nng_subscription *sub)
{
    int code = 0;
    if (s->nng == NULL || s->args.settings.kind != TRP_NNG_SUB) {
        trpi_nng_failed_tell(ctx, trp_sender(ctx), 0, 0, TRP_EUNSUPPORTED,
                             "only a socket of the kind SUB subscribes");
    } else if ((code = trpi_nng_subscribe(s->nng, sub->add, sub->prefix, sub->bytes)) != 0) {
        trpi_nng_failed_tell(ctx, trp_sender(ctx), 0, 0, trpi_nng_err(code), trpi_nng_reason(code));
    }
}

static void
on_op(trp_ctx *ctx, nng_actor *s, const trpi_nng_done *done)
{
    trpi_nng_op *op = done->number == SENDS      ? s->out
                      : done->number == RECEIVES ? s->in
                                                 : s->exchanges[done->number - EXCHANGES].op;
    if (trpi_nng_op_turn(op) != done->turn) {
        return; /* nng-socket-K3 */
    }
    if (done->number == SENDS) {
        send_done(ctx, s);
    } else if (done->number == RECEIVES) {
        receive_done(ctx, s);
    } else {
        exchange_done(ctx, s, &s->exchanges[done->number - EXCHANGES]);
    }
}

static trp_err
socket_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    nng_actor *s = state;
    if (trp_msg_held(msg, &trpi_nng_send_type) != NULL) {
        on_send(ctx, s, msg);
    } else if (trp_msg_is(msg, &trpi_nng_subscription_type)) {
        on_subscription(ctx, s, trp_msg_payload(msg));
    } else if (trp_msg_is(msg, &trp_terminated_type)) { /* the listener */
        trp_stop(ctx, trp_self(ctx));
    } else if (s->nng == NULL) {
        return TRP_EUNHANDLED;
    } else if (trp_msg_is(msg, &trpi_nng_done_type)) {
        on_op(ctx, s, trp_msg_payload(msg));
    } else if (trp_msg_is(msg, &trpi_nng_room_type)) {
        receive_try(s);
        surveys_try(s);
    } else if (trp_msg_is(msg, &trpi_nng_alarm_type)) {
        const trpi_nng_alarm *alarm = trp_msg_payload(msg);
        exchange_alarm(ctx, s, &s->exchanges[alarm->number - EXCHANGES]);
    } else if (trp_msg_is(msg, &trpi_nng_piped_type)) {
        const trpi_nng_piped *p = trp_msg_payload(msg);
        trpi_nng_event_tell(ctx, s->args.listener,
                            p->added != 0 ? TRP_NNG_CONNECTED : TRP_NNG_DISCONNECTED, p->pipe,
                            TRP_OK, p->address, "");
    } else {
        return TRP_EUNHANDLED;
    }
    return TRP_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

static trp_err
operations_make(nng_actor *s)
{
    uint32_t kind = s->args.settings.kind;
    bool sends = kind == TRP_NNG_PUB || kind == TRP_NNG_PUSH;
    bool receives = kind == TRP_NNG_SUB || kind == TRP_NNG_PULL;
    bool both = kind == TRP_NNG_PAIR || kind == TRP_NNG_BUS;
    trp_err err = TRP_OK;
    if (sends || both) {
        err = trpi_nng_op_new(s->nng, SENDS, false, &s->out);
    }
    if (err == TRP_OK && (receives || both)) {
        err = trpi_nng_op_new(s->nng, RECEIVES, false, &s->in);
    }
    if (err == TRP_OK && !sends && !receives && !both) {
        s->exchanges = trpi_alloc(s->args.exchanges_max * sizeof *s->exchanges);
        err = s->exchanges == NULL ? TRP_ENOMEM : TRP_OK;
    }
    for (uint32_t i = 0; err == TRP_OK && socket_serves(s) && i < s->args.exchanges_max; i++) {
        err = trpi_nng_op_new(s->nng, EXCHANGES + i, true, &s->exchanges[i].op);
    }
    return err;
}

static trp_err
socket_open(trp_ctx *ctx, nng_actor *s, char address[TRPI_NNG_ADDRESS_BYTES])
{
    link *l = trpi_alloc(sizeof *l);
    if (l == NULL) {
        return TRP_ENOMEM;
    }
    l->system = trp_ctx_system(ctx);
    l->owner = trp_self(ctx);
    l->messages_max = s->args.receive_max;
    l->bytes_max = s->args.receive_bytes_max;
    atomic_init(&l->count, 1);
    atomic_init(&l->owned, true);
    s->link = l;
    trp_err err = trp_watch(ctx, s->args.listener);
    err = err == TRP_OK ? trpi_nng_new(&s->args.settings, &calls, l, &s->nng) : err;
    if (s->nng != NULL) {
        (void)atomic_fetch_add_explicit(&l->count, 1, memory_order_relaxed); /* on_freed() */
    }
    err = err == TRP_OK ? operations_make(s) : err;
    if (err == TRP_OK && s->args.subscribes) {
        err =
            trpi_nng_err(trpi_nng_subscribe(s->nng, true, s->args.prefix, strlen(s->args.prefix)));
    }
    return err == TRP_OK ? trpi_nng_addresses_open(s->nng, &s->args, address, s->reason) : err;
}

static trp_err
socket_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    nng_actor *s = state;
    char address[TRPI_NNG_ADDRESS_BYTES] = "";
    memcpy(&s->args, trp_msg_payload(args), sizeof s->args);
    s->last = &s->first;
    s->err = socket_open(ctx, s, address);
    if (s->err != TRP_OK) {
        trpi_nng_reason_write(s->err, s->reason);
        trp_stop(ctx, trp_self(ctx));
        return TRP_OK;
    }
    trpi_nng_event_tell(ctx, s->args.listener, TRP_NNG_OPENED, 0, TRP_OK, address, "");
    receive_try(s);
    for (uint32_t i = 0; socket_serves(s) && i < s->args.exchanges_max; i++) {
        exchange_listen(&s->exchanges[i]);
    }
    return TRP_OK;
}

static void
socket_post_stop(trp_ctx *ctx, void *state)
{
    nng_actor *s = state;
    static const char *const reason = "the socket was closed";
    if (s->link != NULL) {
        atomic_store_explicit(&s->link->owned, false, memory_order_release);
    }
    trpi_nng_close(ctx, s->nng);
    s->nng = NULL;
    link_unref(s->link);
    s->link = NULL;
    for (uint32_t i = 0; s->exchanges != NULL && socket_asks(s) && i < s->args.exchanges_max; i++) {
        if (s->exchanges[i].phase != IDLE) {
            trpi_nng_failed_tell(ctx, s->exchanges[i].asker, s->exchanges[i].ack, 0, TRP_ECLOSED,
                                 reason);
        }
    }
    trpi_free(s->exchanges);
    s->exchanges = NULL;
    if (s->sent != NULL) {
        waiting_fail(ctx, s->sent, TRP_ECLOSED, reason);
        s->sent = NULL;
    }
    while (s->first != NULL) {
        waiting_fail(ctx, waiting_take(s), TRP_ECLOSED, reason);
    }
    trpi_nng_event_tell(ctx, s->args.listener, TRP_NNG_CLOSED, 0, s->err, "", s->reason);
}

const trp_behaviour trpi_nng_socket_behaviour = { .size = sizeof(trp_behaviour),
                                                  .name = "nng-socket",
                                                  .version = 1,
                                                  .state_bytes = sizeof(nng_actor),
                                                  .receive = socket_receive,
                                                  .pre_start = socket_pre_start,
                                                  .post_stop = socket_post_stop };

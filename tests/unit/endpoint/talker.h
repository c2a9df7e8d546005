/* talker.h - the fixture of tests of nng's sockets: an actor that opens one and notes what it is
 * told. Its peers are other talkers, or another program (peer.h).
 */
#ifndef TESTS_UNIT_ENDPOINT_TALKER_H
#define TESTS_UNIT_ENDPOINT_TALKER_H

#include <unistd.h>

#include <troupe/nng_socket.h>

#include "tests/unit/actor/stage.h"
#include "tests/unit/endpoint/peer.h"

/* Written by the actor, read by the test where it is atomic, or behind an atomic. */
typedef struct talker {
    char name[8];
    trp_nng_options options, back; /* back.kind != 0: a device */
    trp_ref self, socket;
    char address[160];
    _Atomic uint32_t opened, connected, closed, got, failed;
    _Atomic uint32_t last_err;
    _Atomic uint64_t last_exchange;
    bool keeps;   /* frees no message before talker_let_go() */
    bool replies; /* "re:" and the first part */
    bool quiet;   /* notes no messages */
    trp_msg *kept[4096];
    _Atomic uint32_t kept_count; /* since the start */
    uint32_t freed_count;        /* of them; the test's */
} talker;

typedef void (*talker_fn)(trp_ctx *ctx, talker *t);
typedef struct talker_order {
    talker_fn fn;
} talker_order;
static trp_type talker_order_type = {
    .name = "talker.order", .bytes = sizeof(talker_order), .tag = 1, .flags = TRP_TYPE_LOCAL
};
static trp_type *const talker_types[] = { &talker_order_type };
static const trp_protocol talker_protocol = { "talker", talker_types, 1, 0 };

static inline void
talker_got(trp_ctx *ctx, talker *t, const trp_nng_message *m, const trp_msg *msg)
{
    char text[1024], part[256];
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < m->parts_count; i++) {
        size_t bytes = trp_bytes_copy_out(m->parts[i], 0, part, sizeof part);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s", i == 0 ? "" : "|",
                                 (int)bytes, part);
        used = used < sizeof text ? used : sizeof text - 1;
    }
    if (!t->quiet) {
        stage_note("%s:got(%s%s%.0u)", t->name, text, m->ack != 0 ? ",re" : "", (unsigned)m->ack);
    }
    atomic_store(&t->last_exchange, m->exchange);
    if (t->keeps) {
        UNIT_EQUAL(trp_msg_dup(msg, &t->kept[atomic_load(&t->kept_count)]), TRP_OK);
        atomic_fetch_add(&t->kept_count, 1);
    }
    if (t->replies) {
        trp_bytes answer;
        char out[300];
        size_t bytes = trp_bytes_copy_out(m->parts[0], 0, part, sizeof part);
        snprintf(out, sizeof out, "re:%.*s", (int)bytes, part);
        UNIT_EQUAL(trp_bytes_copy(out, strlen(out), &answer), TRP_OK);
        UNIT_EQUAL(trp_nng_reply(ctx, trp_sender(ctx), m->exchange, &answer, 1), TRP_OK);
        trp_bytes_unref(&answer);
    }
    atomic_fetch_add(&t->got, 1);
}

static inline void
talker_event(talker *t, const trp_nng_event *e)
{
    switch (e->event) {
    case TRP_NNG_OPENED:
        snprintf(t->address, sizeof t->address, "%s", e->address);
        atomic_fetch_add(&t->opened, 1);
        break;
    case TRP_NNG_CONNECTED:
        atomic_fetch_add(&t->connected, 1);
        break;
    case TRP_NNG_DISCONNECTED:
        stage_note("%s:disconnected", t->name);
        break;
    case TRP_NNG_BAD_MESSAGE:
        stage_note("%s:bad", t->name);
        break;
    case TRP_NNG_CLOSED:
        stage_note("%s:closed(%s)", t->name, trp_err_name((trp_err)e->err));
        atomic_fetch_add(&t->closed, 1);
        break;
    default:
        stage_note("%s:?", t->name);
    }
}

static inline trp_err
talker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    talker *t = *(talker **)state;
    const trp_nng_message *m = trp_nng_message_of(msg);
    if (m != NULL) {
        talker_got(ctx, t, m, msg);
    } else if (trp_msg_is(msg, &talker_order_type)) {
        ((const talker_order *)trp_msg_payload(msg))->fn(ctx, t);
    } else if (trp_msg_is(msg, &trp_nng_event_type)) {
        talker_event(t, trp_msg_payload(msg));
    } else if (trp_msg_is(msg, &trp_nng_sent_type)) {
        stage_note("%s:sent(%u)", t->name,
                   (unsigned)((const trp_nng_sent *)trp_msg_payload(msg))->ack);
    } else if (trp_msg_is(msg, &trp_nng_failed_type)) {
        const trp_nng_failed *f = trp_msg_payload(msg);
        if (!t->quiet) {
            stage_note("%s:failed(%u,%s)", t->name, (unsigned)f->ack,
                       trp_err_name((trp_err)f->err));
        }
        UNIT_TRUE(f->reason[0] != '\0');
        atomic_store(&t->last_err, (uint32_t)f->err);
        atomic_fetch_add(&t->failed, 1);
    } else if (trp_msg_is(msg, &trp_nng_survey_end_type)) {
        const trp_nng_survey_end *end = trp_msg_payload(msg);
        stage_note("%s:end(%u,%u)", t->name, (unsigned)end->ack, (unsigned)end->replies);
    } else {
        return TRP_EUNHANDLED;
    }
    return TRP_OK;
}

/* A killed socket starts again: the decider of its parent. */
static inline trp_directive
talker_decide(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    (void)ctx;
    (void)state;
    (void)failure;
    return TRP_RESTART;
}
static const trp_strategy talker_strategy = { .size = sizeof(trp_strategy),
                                              .decider = talker_decide };

static inline trp_err
talker_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    talker *t;
    memcpy(&t, trp_msg_payload(args), sizeof t);
    *(talker **)state = t;
    t->self = trp_self(ctx);
    if (t->back.kind != 0) {
        UNIT_EQUAL(trp_nng_open_device(ctx, &t->options, &t->back, &t->socket), TRP_OK);
    } else {
        UNIT_EQUAL(trp_nng_open(ctx, &t->options, &t->socket), TRP_OK);
    }
    return TRP_OK;
}

static const trp_behaviour talker_behaviour = { .size = sizeof(trp_behaviour),
                                                .name = "talker",
                                                .version = 1,
                                                .state_bytes = sizeof(talker *),
                                                .receive = talker_receive,
                                                .pre_start = talker_pre_start,
                                                .strategy = &talker_strategy };

/* Return an address that no other process has. The last eight stay as they are. */
static inline const char *
talker_address(const char *scheme, const char *name)
{
    static char addresses[8][96];
    static unsigned next;
    char *address = addresses[next++ % 8];
    snprintf(address, sizeof addresses[0], "%stroupe-nng-%s-%d", scheme, name, (int)getpid());
    return address;
}

static inline talker *
talker_new(const char *name, uint32_t kind)
{
    talker *t = calloc(1, sizeof *t);
    UNIT_REQUIRE(t != NULL);
    snprintf(t->name, sizeof t->name, "%s", name);
    t->options = (trp_nng_options)TRP_NNG_OPTIONS_INIT;
    t->options.kind = kind;
    t->options.redial_min_ms = 10;
    t->options.redial_max_ms = 50;
    return t;
}

/* Start the actor, and wait until its sockets are open. */
static inline void
talker_start(trp_system *system, talker *t)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    UNIT_REQUIRE(trp_protocol_register(&talker_protocol) == TRP_OK);
    options.name = t->name;
    options.args_type = &trp_bytes_type;
    options.args = &t;
    options.args_bytes = sizeof t;
    UNIT_REQUIRE(trp_system_spawn(system, &talker_behaviour, &options, &ref) == TRP_OK);
    UNIT_WAIT(atomic_load(&t->opened) >= (t->back.kind != 0 ? 2u : 1u) || atomic_load(&t->closed),
              60000);
}

static inline void
talker_do(trp_system *system, const talker *t, talker_fn fn)
{
    talker_order order = { fn };
    trp_system_tell(system, t->self, &talker_order_type, &order, sizeof order);
}

/* Free all that was kept so far; more may be kept meanwhile. */
static inline void
talker_let_go(talker *t)
{
    uint32_t count = atomic_load(&t->kept_count);
    while (t->freed_count < count) {
        trp_msg_free(t->kept[t->freed_count++]);
    }
}

static inline void
talker_send(trp_ctx *ctx, const talker *t, const char *a, const char *b, uint64_t ack)
{
    trp_bytes parts[2] = { TRP_BYTES_EMPTY, TRP_BYTES_EMPTY };
    UNIT_EQUAL(trp_bytes_copy(a, strlen(a), &parts[0]), TRP_OK);
    if (b != NULL) {
        UNIT_EQUAL(trp_bytes_copy(b, strlen(b), &parts[1]), TRP_OK);
    }
    UNIT_EQUAL(trp_nng_send(ctx, t->socket, parts, b != NULL ? 2 : 1, ack), TRP_OK);
    trp_bytes_unref(&parts[0]);
    trp_bytes_unref(&parts[1]);
}

#endif

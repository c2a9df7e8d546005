/* persistent_trace_test.c - traces through persistent actors: commands that wait, callbacks of
 * what is stored; and through all that delivers a message again. */
#include <troupe/delivery.h>
#include <troupe/reliable_proxy.h>

#include "pattern/reliable.h"
#include "tests/unit/actor/hops.h"
#include "tests/unit/persistence/book.h"

#define LEDGER_ENTRY(F, S) F(S, u64, number)
#define LEDGER_MESSAGES(M, P) M(P, add, LEDGER_ENTRY) M(P, added, LEDGER_ENTRY)
TRP_PROTOCOL(ledger, LEDGER_MESSAGES)
static const trp_protocol *const ledger_protocols[] = { &ledger_protocol, NULL };

static trp_ref reader;

typedef struct ledger {
    trp_persistent_state persistent; /* the first member */
    uint64_t sum;
} ledger;

static trp_err
ledger_stored(trp_ctx *ctx, void *state, const trp_msg *event, void *arg)
{
    (void)state, (void)event, (void)arg;
    trp_tell_text(ctx, reader, "stored");
    return TRP_OK;
}

/* Numbers of commands that store nothing: one is handled, one fails. */
enum { NOTHING = 100, FAILS = 101 };

static trp_err
ledger_command(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    ledger_added event = { ledger_add_as(msg)->number };

    (void)state;
    if (event.number == FAILS) {
        trp_fail(ctx, 7, "as ordered");
    }
    if (event.number == NOTHING) {
        trp_tell_text(ctx, reader, "nothing");
        return TRP_OK;
    }
    return trp_persist(ctx, &ledger_added_type, &event, 0, ledger_stored, NULL);
}

static trp_err
ledger_event(trp_ctx *ctx, void *state, const trp_msg *event)
{
    (void)ctx;
    ((ledger *)state)->sum += ledger_added_as(event)->number;
    return TRP_OK;
}

static trp_err
reader_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx, (void)state, (void)msg;
    return TRP_OK;
}
static const trp_behaviour reader_behaviour = {
    .size = sizeof(trp_behaviour), .name = "reader", .version = 1, .receive = reader_receive
};

/* HOW-09: three commands come while the actor recovers, and the second and third wait for the event
 * of the one before; another one is in no trace. */
static void
what_a_callback_tells_when_its_event_is_stored_is_below_the_command(void)
{
    trp_persistent what = TRP_PERSISTENT_INIT("ledger", ledger, ledger_command, ledger_event);
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    static hops h;
    uint32_t stored = 0;
    char name[64];
    book b;

    book_open(&b);
    what.events = ledger_protocols;
    UNIT_EQUAL(trp_protocol_register(&ledger_protocol), TRP_OK);
    options.name = "ledger";
    UNIT_REQUIRE(trp_system_spawn(b.system, &what.behaviour, &options, &ref) == TRP_OK);
    options.name = "reader";
    UNIT_REQUIRE(trp_system_spawn(b.system, &reader_behaviour, &options, &reader) == TRP_OK);
    for (uint64_t i = 0; i < 3; i++) {
        ledger_add add = { i };

        trp_system_tell_traced(b.system, ref, (trp_ref)TRP_REF_NONE, &outside, &ledger_add_type,
                               &add, sizeof add);
    }
    trp_system_tell(b.system, ref, &ledger_add_type, &(ledger_add){ 7 }, sizeof(ledger_add));
    book_run(&b, 0);
    hops_take(b.system, &h);
    for (uint32_t i = 0; i < h.count; i++) {
        UNIT_EQUAL(h.all[i].trace.id_low, outside.id_low);
        if (trp_ref_equal(h.all[i].actor, reader)) {
            UNIT_TEXT(parent_of(&h, h.all[i].parent, name, sizeof name), "ledger");
            for (uint32_t k = 0; k < i; k++) { /* each below its own command */
                UNIT_TRUE(!trp_ref_equal(h.all[k].actor, reader) ||
                          h.all[k].parent != h.all[i].parent);
            }
            stored++;
        }
    }
    UNIT_EQUAL(stored, 3);
    spans_differ(&h); /* trailer-I2 */
    /* of each: it was kept, it was handled, its event was stored, reader was told */
    UNIT_EQUAL(h.count, 3 * 4);
    book_close(&b);
}

/* ---- actors at which traces begin ------------------------------------------------------------ */

static char why_restarted[TRP_FAILURE_REASON_BYTES];

static trp_err
ledger_pre_restart(trp_ctx *ctx, void *state, const trp_failure *why, const trp_msg *msg)
{
    (void)ctx, (void)state, (void)msg;
    (void)snprintf(why_restarted, sizeof why_restarted, "%s", why->reason);
    return TRP_OK;
}

/* Open a book with a ledger that has recovered, and a reader. */
static trp_ref
ledger_open(book *b, trp_persistent *what)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;

    book_open(b);
    *what = (trp_persistent)TRP_PERSISTENT_INIT("ledger", ledger, ledger_command, ledger_event);
    what->behaviour.pre_restart = ledger_pre_restart;
    what->events = ledger_protocols;
    UNIT_EQUAL(trp_protocol_register(&ledger_protocol), TRP_OK);
    options.name = "reader";
    UNIT_REQUIRE(trp_system_spawn(b->system, &reader_behaviour, &options, &reader) == TRP_OK);
    options.name = "ledger";
    UNIT_REQUIRE(trp_system_spawn(b->system, &what->behaviour, &options, &ref) == TRP_OK);
    book_run(b, 0);
    return ref;
}

static void
add_tell(const book *b, trp_ref ref, uint64_t number)
{
    ledger_add add = { number };

    trp_system_tell(b->system, ref, &ledger_add_type, &add, sizeof add);
}

/* Find the hop of a span; NULL: there is none. */
static const trp_trace_hop *
hop_of(const hops *h, uint64_t span)
{
    for (uint32_t i = 0; i < h->count; i++) {
        if (h->all[i].trace.span == span) {
            return &h->all[i];
        }
    }
    return NULL;
}

/* Count the hops of reader; each is in a trace that began at a command. */
static uint32_t
read_below_commands(const hops *h)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < h->count; i++) {
        const trp_trace_hop *hop = &h->all[i];

        if (!trp_ref_equal(hop->actor, reader)) {
            continue;
        }
        while (hop->parent != 0 && hop->parent != outside.span) {
            hop = hop_of(h, hop->parent);
            UNIT_REQUIRE(hop != NULL);
            UNIT_EQUAL(hop->trace.id_low, h->all[i].trace.id_low);
        }
        UNIT_TRUE(hop->type == &ledger_add_type);
        count++;
    }
    return count;
}

/* HOW-09: one command alone; then each of three, two of which wait for the event of the first. */
static void
what_a_callback_of_a_sampled_command_tells_is_in_its_trace(void)
{
    trp_persistent what;
    static hops h;
    book b;
    trp_ref ref = ledger_open(&b, &what);

    UNIT_EQUAL(trp_trace_sample(b.system, "/user/ledger", TRP_TRACE_ONE_IN_MAX), TRP_OK);
    book_run(&b, 0);
    add_tell(&b, ref, 1);
    book_run(&b, 0);
    hops_take(b.system, &h);
    UNIT_TEXT(hops_text(&h), "->ledger ledger>ledger ledger>reader");
    UNIT_EQUAL(read_below_commands(&h), 1);
    UNIT_EQUAL(trp_trace_sample(b.system, "/user/ledger", 1), TRP_OK);
    book_run(&b, 0);
    for (uint64_t i = 2; i <= 4; i++) {
        add_tell(&b, ref, i);
    }
    book_run(&b, 0);
    hops_take(b.system, &h);
    spans_differ(&h);
    UNIT_EQUAL(read_below_commands(&h), 4);
    book_close(&b);
}

/* Commands that are kept while the actor recovers: one stores nothing, so nothing keeps it behind
 * its turn; the next one fails, and the last one is handled by the instance behind it. */
static void
a_kept_command_that_fails_is_a_hop_and_those_behind_it_stay_in_their_trace(void)
{
    static const uint64_t numbers[] = { NOTHING, FAILS, 3 };
    trp_persistent what;
    static hops h;
    uint32_t failed = 0, told = 0;
    book b;
    trp_ref ref = ledger_open(&b, &what);

    /* waits for its event: those behind it are kept */
    add_tell(&b, ref, 1);
    for (uint32_t i = 0; i < 3; i++) {
        ledger_add add = { numbers[i] };

        trp_system_tell_traced(b.system, ref, (trp_ref)TRP_REF_NONE, &outside, &ledger_add_type,
                               &add, sizeof add);
    }
    book_run(&b, 60000);
    UNIT_TEXT(why_restarted, "as ordered");
    hops_take(b.system, &h);
    spans_differ(&h);
    for (uint32_t i = 0; i < h.count; i++) {
        failed += h.all[i].end == TRP_HOP_FAILED;
        told += trp_ref_equal(h.all[i].actor, reader) ? 1 : 0;
    }
    UNIT_EQUAL(failed, 1);
    UNIT_EQUAL(told, 2); /* "nothing", and "stored" of the last one */
    UNIT_EQUAL(read_below_commands(&h), told);
    book_close(&b);
}

/* ---- deliveries that are repeated ------------------------------------------------------------ */

enum { AGAIN_MS = 1000 };
static uint32_t tells; /* of the deliver hook */
static bool fails;     /* the next one, once */

static trp_err
sure_event(trp_ctx *ctx, void *state, const trp_msg *event)
{
    (void)state;
    return trp_deliver(ctx, &ledger_added_type, trp_msg_payload(event), 0, NULL);
}

static void
sure_deliver(trp_ctx *ctx, void *state, uint64_t delivery, const trp_msg *msg)
{
    (void)state, (void)delivery, (void)msg;
    trp_tell_text(ctx, reader, "delivered");
    tells++;
    if (fails) {
        fails = false;
        trp_fail(ctx, 7, "as ordered"); /* a jump out of the attempt leaves nothing carried */
    }
}

/* Count the hops of reader; each is an attempt below a hop of `above`, with a span of its own. */
static uint32_t
attempts_check(const hops *h, const char *above, uint32_t *ret_highest)
{
    char name[64];
    uint32_t count = 0;

    *ret_highest = 0;
    for (uint32_t i = 0; i < h->count; i++) {
        const trp_trace_hop *hop = &h->all[i];

        UNIT_EQUAL(hop->trace.id_high, outside.id_high);
        UNIT_EQUAL(hop->trace.id_low, outside.id_low);
        if (trp_ref_equal(hop->actor, reader)) {
            for (uint32_t k = 0; k < i; k++) {
                UNIT_TRUE(h->all[k].trace.span != hop->trace.span);
            }
            UNIT_TEXT(parent_of(h, hop->parent, name, sizeof name), above);
            *ret_highest = hop->trace.attempt > *ret_highest ? hop->trace.attempt : *ret_highest;
            count++;
        }
    }
    return count;
}

/* HOW-09, persistent-V3: at once and twice more, below the command; a delivery of a command in no
 * trace beside it is in none, and so is what is told after a recovery. */
static void
each_attempt_of_a_delivery_is_below_its_command(void)
{
    trp_persistent what = TRP_PERSISTENT_INIT("sure", ledger, ledger_command, sure_event);
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    uint32_t highest;
    static hops h;
    book b;

    book_open(&b);
    tells = 0;
    fails = false;
    what.events = ledger_protocols;
    what.deliver = sure_deliver;
    what.redeliver_ms = AGAIN_MS;
    UNIT_EQUAL(trp_protocol_register(&ledger_protocol), TRP_OK);
    options.name = "reader";
    UNIT_REQUIRE(trp_system_spawn(b.system, &reader_behaviour, &options, &reader) == TRP_OK);
    options.name = "sure";
    UNIT_REQUIRE(trp_system_spawn(b.system, &what.behaviour, &options, &ref) == TRP_OK);
    book_run(&b, 0);
    trp_system_tell_traced(b.system, ref, (trp_ref)TRP_REF_NONE, &outside, &ledger_add_type,
                           &(ledger_add){ 1 }, sizeof(ledger_add));
    trp_system_tell(b.system, ref, &ledger_add_type, &(ledger_add){ 2 }, sizeof(ledger_add));
    for (uint32_t attempt = 1; attempt <= 3; attempt++) {
        book_run(&b, attempt == 1 ? 0 : AGAIN_MS);
        hops_take(b.system, &h);
        UNIT_EQUAL(tells, 2 * attempt);
        /* that of the command's callback, and the attempts */
        UNIT_EQUAL(attempts_check(&h, "sure", &highest), 1 + attempt);
        UNIT_EQUAL(highest, attempt);
    }
    uint32_t before = h.count;
    fails = true;
    book_run(&b, AGAIN_MS); /* the actor recovers, and tells both again */
    UNIT_EQUAL(tells, 9);
    hops_take(b.system, &h);
    UNIT_EQUAL(h.count, before + 1);
    (void)attempts_check(&h, "sure", &highest);
    UNIT_EQUAL(highest, 4);
    book_close(&b);
}

/* HOW-09, reliable-proxy-N4: the test is the far end, and acknowledges nothing. */
static void
each_attempt_of_a_reliable_proxy_is_below_its_message(void)
{
    trp_reliable_proxy_options options = TRP_RELIABLE_PROXY_OPTIONS_INIT;
    trp_ref proxy = TRP_REF_NONE;
    uint32_t highest;
    static hops h;
    book b;

    book_open(&b);
    reader = trp_probe_ref(b.probe);
    options.target = reader;
    options.retry_after_ms = AGAIN_MS;
    options.name = "proxy";
    UNIT_REQUIRE(trp_system_reliable_proxy_spawn(b.system, &options, &proxy) == TRP_OK);
    trpi_reliable_ack ack = { trpi_world_mono_ns(trpi_system_world(b.system)), 1 };
    book_run(&b, 0);
    trp_system_tell_traced(b.system, proxy, (trp_ref)TRP_REF_NONE, &outside, &trp_string_type, "m",
                           1);
    trp_system_tell(b.system, proxy, &trp_string_type, "n", 1); /* in none */
    trp_system_tell_as(b.system, proxy, reader, &trpi_reliable_ack_type, &ack, sizeof ack);
    for (uint32_t attempt = 1; attempt <= 3; attempt++) {
        book_run(&b, attempt == 1 ? 0 : AGAIN_MS);
        UNIT_EQUAL(trp_probe_receive_n(b.probe, TRP_TEST_TIME, 2), 2);
        hops_take(b.system, &h);
        UNIT_EQUAL(attempts_check(&h, "proxy", &highest), attempt);
        UNIT_EQUAL(highest, attempt);
    }
    book_close(&b);
}

/* The next message that the probe got: in the trace that the tests begin? */
static uint32_t
attempt_of_next(trp_probe *probe)
{
    const trp_msg *msg = trp_probe_receive(probe, TRP_TEST_TIME);
    trp_trace trace = outside;

    UNIT_REQUIRE(msg != NULL && trp_msg_is(msg, &trp_string_type));
    if (!trp_msg_trace(msg, &trace)) {
        return 0;
    }
    UNIT_EQUAL(trace.id_high, outside.id_high);
    UNIT_EQUAL(trace.id_low, outside.id_low);
    return trace.attempt;
}

/* As the far end of a proxy passes it on. */
static void
a_message_that_a_reliable_proxy_passed_on_has_its_number(void)
{
    trp_reliable_proxy_options options = TRP_RELIABLE_PROXY_OPTIONS_INIT;
    trp_ref proxy = TRP_REF_NONE;
    book b;

    book_open(&b);
    options.target = trp_probe_ref(b.probe);
    options.retry_after_ms = AGAIN_MS;
    UNIT_REQUIRE(trp_system_reliable_proxy_spawn(b.system, &options, &proxy) == TRP_OK);
    for (int i = 0; i < 2; i++) { /* before there is a far end, and with it */
        trp_system_tell_traced(b.system, proxy, (trp_ref)TRP_REF_NONE, &outside, &trp_string_type,
                               "m", 1);
        trp_system_tell(b.system, proxy, &trp_string_type, "n", 1);
        book_run(&b, 0);
        UNIT_EQUAL(attempt_of_next(b.probe), 1);
        UNIT_EQUAL(attempt_of_next(b.probe), 0);
    }
    book_close(&b);
}

static trp_probe *
worker_open(const book *b, trp_ref to)
{
    trp_delivery_consumer_options options = TRP_DELIVERY_CONSUMER_OPTIONS_INIT;
    trp_probe *probe = NULL;
    trp_ref ref;

    UNIT_REQUIRE(trp_probe_open(b->kit, &probe) == TRP_OK);
    options.consumer = trp_probe_ref(probe);
    options.producer = to;
    UNIT_REQUIRE(trp_system_delivery_consumer_spawn(b->system, &options, &ref) == TRP_OK);
    book_run(b, 0);
    return probe;
}

/* HOW-09, delivery-produce-P4: of work pulling, in memory and with a journal. A worker ends with
 * two messages unconfirmed, one of them in its controller: the next worker gets both. */
static void
a_message_that_another_worker_gets_stays_in_its_trace(void)
{
    for (int durable = 0; durable < 2; durable++) {
        trp_delivery_producer_options options = TRP_DELIVERY_PRODUCER_OPTIONS_INIT;
        trp_ref to = TRP_REF_NONE;
        book b;

        book_open(&b);
        options.workers = 1;
        options.journal_id = durable ? "jobs" : NULL;
        UNIT_REQUIRE(trp_system_delivery_producer_spawn(b.system, &options, &to) == TRP_OK);
        book_run(&b, 0);
        trp_system_tell_traced(b.system, to, (trp_ref)TRP_REF_NONE, &outside, &trp_string_type, "m",
                               1);
        trp_system_tell(b.system, to, &trp_string_type, "n", 1); /* in none */
        book_run(&b, 0);
        for (uint32_t attempt = 1; attempt <= 3; attempt++) {
            trp_probe *worker = worker_open(&b, to);
            UNIT_EQUAL(attempt_of_next(worker), attempt);
            trp_probe_close(worker);
            book_run(&b, 0);
        }
        trp_delivery_consumer_options last = TRP_DELIVERY_CONSUMER_OPTIONS_INIT;
        trp_ref controller;
        last.consumer = trp_probe_ref(b.probe);
        last.producer = to;
        UNIT_REQUIRE(trp_system_delivery_consumer_spawn(b.system, &last, &controller) == TRP_OK);
        book_run(&b, 0);
        UNIT_EQUAL(attempt_of_next(b.probe), 4);
        trp_probe_tell(b.probe, controller, &trp_delivery_confirm_type, NULL, 0);
        book_run(&b, 0);
        UNIT_EQUAL(attempt_of_next(b.probe), 0);
        book_close(&b);
    }
}

UNIT_BEGIN("persistent_trace")
UNIT(each_attempt_of_a_delivery_is_below_its_command)
UNIT(each_attempt_of_a_reliable_proxy_is_below_its_message)
UNIT(a_message_that_a_reliable_proxy_passed_on_has_its_number)
UNIT(a_message_that_another_worker_gets_stays_in_its_trace)
UNIT(what_a_callback_tells_when_its_event_is_stored_is_below_the_command)
UNIT(what_a_callback_of_a_sampled_command_tells_is_in_its_trace)
UNIT(a_kept_command_that_fails_is_a_hop_and_those_behind_it_stay_in_their_trace)
UNIT_END

/* faults_test.c - fault rules: the arithmetic of one frame, the cutting of streams, and two systems
 * that communicate through them. */
#include "remote/faults/faults.h"

#include "remote/faults/fault_cut.h"
#include "remote/wire/frame.h"
#include "tests/unit/remote/answers.h"
#include "tests/unit/remote/pair.h"

#define MS UINT64_C(1000000)
static const uint64_t never[4] = { UINT64_MAX, 0, UINT64_MAX, UINT64_MAX };
static const uint64_t always[4] = { 0, UINT64_MAX, 0, 0 };

/* ---- one frame ------------------------------------------------------------------------------- */

/* MNT-07, MNT-09, REMOTE-62: no rule, a rate with its bucket, a blackhole */
static void
rates_and_blackholes_are_kept(void)
{
    trpi_fault_rule rule = TRPI_FAULT_RULE_NONE;
    trpi_fault_shaper shaper = { 0 };
    trpi_fault_verdict v = trpi_fault_shaper_judge(&shaper, &rule, 7 * MS, 1000000, false, never);

    UNIT_TRUE(trpi_fault_rule_is_none(&rule));
    UNIT_TRUE(v.copies == 1 && v.due_ns == 7 * MS);
    rule.bytes_per_s = 125000; /* 1 Mbit/s: 8 us a byte */
    v = trpi_fault_shaper_judge(&shaper, &rule, 10 * MS, TRPI_FAULT_BUCKET_BYTES, false, never);
    UNIT_TRUE(v.copies == 1 && v.due_ns == 10 * MS);
    v = trpi_fault_shaper_judge(&shaper, &rule, 10 * MS, 125, false, never);
    UNIT_EQUAL(v.due_ns, 11 * MS);
    v = trpi_fault_shaper_judge(&shaper, &rule, 10 * MS, 12500, false, never);
    UNIT_EQUAL(v.due_ns, 111 * MS);
    v = trpi_fault_shaper_judge(&shaper, &rule, 1000 * MS, 125, false, never); /* rested */
    UNIT_EQUAL(v.due_ns, 1000 * MS);
    rule.bytes_per_s = TRPI_FAULT_RATE_BLACKHOLE;
    UNIT_EQUAL(trpi_fault_shaper_judge(&shaper, &rule, 1000 * MS, 1, false, never).copies, 0);
    UNIT_EQUAL(trpi_fault_shaper_judge(&shaper, &rule, 1000 * MS, 1, true, never).copies, 1);
}

/* REMOTE-63: fault-shaper-G1 */
static void
frames_are_lost_repeated_delayed_and_overtaken(void)
{
    trpi_fault_rule rule = TRPI_FAULT_RULE_NONE;
    trpi_fault_shaper shaper = { 0 };
    trpi_fault_verdict v;

    rule.lose = 0.5;
    UNIT_EQUAL(trpi_fault_shaper_judge(&shaper, &rule, 0, 1, false, always).copies, 0);
    UNIT_EQUAL(trpi_fault_shaper_judge(&shaper, &rule, 0, 1, true, always).copies, 1);
    UNIT_EQUAL(trpi_fault_shaper_judge(&shaper, &rule, 0, 1, false, never).copies, 1);
    rule.lose = 0;
    rule.repeat = 0.5;
    UNIT_EQUAL(trpi_fault_shaper_judge(&shaper, &rule, 0, 1, false, always).copies, 2);
    UNIT_EQUAL(trpi_fault_shaper_judge(&shaper, &rule, 0, 1, false, never).copies, 1);
    rule.repeat = 0;
    rule.delay_ms = 5;
    rule.jitter_ms = 10;
    v = trpi_fault_shaper_judge(&shaper, &rule, 100 * MS, 1, false,
                                (uint64_t[4]){ 0, 9 * MS, 0, 0 });
    UNIT_EQUAL(v.due_ns, 114 * MS);
    v = trpi_fault_shaper_judge(&shaper, &rule, 101 * MS, 1, false,
                                never); /* due earlier, but it keeps the order */
    UNIT_EQUAL(v.due_ns, 114 * MS);
    rule.reorder = 0.5;
    v = trpi_fault_shaper_judge(&shaper, &rule, 110 * MS, 1, false, (uint64_t[4]){ 0, 0, 0, 0 });
    UNIT_EQUAL(v.due_ns, 121 * MS);
    v = trpi_fault_shaper_judge(&shaper, &rule, 110 * MS, 1, false, never);
    UNIT_EQUAL(v.due_ns, 115 * MS);
}

static void
rules_that_cannot_be_are_refused(void)
{
    trpi_fault_rule good = TRPI_FAULT_RULE_NONE, bad = good;
    trpi_faults *faults;
    char peer[32], text[400];

    UNIT_REQUIRE(trpi_faults_new(NULL, NULL, &faults) == TRP_OK);
    UNIT_TEXT(trpi_faults_ops(faults)->scheme, "tcp");
    good.delay_ms = TRPI_FAULT_DELAY_MS_MAX;
    UNIT_EQUAL(trpi_faults_set(faults, "*", TRPI_FAULT_BOTH, &good), TRP_OK);
    bad.delay_ms = TRPI_FAULT_DELAY_MS_MAX + 1;
    UNIT_EQUAL(trpi_faults_set(faults, "*", TRPI_FAULT_BOTH, &bad), TRP_EINVAL);
    bad = (trpi_fault_rule){ -2, 0, 0, 0, 0, 0 };
    UNIT_EQUAL(trpi_faults_set(faults, "*", TRPI_FAULT_BOTH, &bad), TRP_EINVAL);
    bad = (trpi_fault_rule){ -1, 1.1, 0, 0, 0, 0 };
    UNIT_EQUAL(trpi_faults_set(faults, "*", TRPI_FAULT_BOTH, &bad), TRP_EINVAL);
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    UNIT_EQUAL(trpi_faults_set(faults, text, TRPI_FAULT_BOTH, &good), TRP_EINVAL);
    for (int i = 1; i < TRPI_FAULT_RULES_MAX; i++) {
        (void)snprintf(peer, sizeof peer, "host:%d", i);
        UNIT_EQUAL(trpi_faults_set(faults, peer, TRPI_FAULT_SEND, &good), TRP_OK);
    }
    UNIT_EQUAL(trpi_faults_set(faults, "one:1", TRPI_FAULT_SEND, &good), TRP_ELIMIT);
    bad = (trpi_fault_rule)TRPI_FAULT_RULE_NONE; /* takes a rule away */
    UNIT_EQUAL(trpi_faults_set(faults, "host:1", TRPI_FAULT_SEND, &bad), TRP_OK);
    UNIT_EQUAL(trpi_faults_set(faults, "one:1", TRPI_FAULT_SEND, &good), TRP_OK);
    UNIT_EQUAL(trpi_faults_disconnect(faults, "*"), 0);
    trpi_faults_free(faults);
    trpi_faults_free(NULL);
}

/* ---- streams --------------------------------------------------------------------------------- */

typedef struct cut_book {
    uint32_t preambles, frames, raws;
    size_t bytes;
    uint8_t out[4096];
} cut_book;

static trp_err
cut_note(void *arg, enum trpi_fault_unit unit, const uint8_t *bytes, size_t count)
{
    cut_book *book = arg;

    book->preambles += unit == TRPI_FAULT_PREAMBLE;
    book->frames += unit == TRPI_FAULT_FRAME;
    book->raws += unit == TRPI_FAULT_RAW;
    memcpy(book->out + book->bytes, bytes, count);
    book->bytes += count;
    return TRP_OK;
}

static void
streams_are_cut_wherever_their_reads_end(void)
{
    trpi_preamble preamble = { TRPI_WIRE_VERSION, TRPI_LANE_CONTROL, 0, 42 };
    uint8_t start[TRPI_PREAMBLE_BYTES], body[100] = { 1, 2, 3 };
    trpi_buffer all = { 0 };

    trpi_preamble_encode(start, &preamble);
    UNIT_EQUAL(trpi_buffer_append(&all, start, sizeof(start), SIZE_MAX), TRP_OK);
    for (size_t i = 0; i <= sizeof body; i += 10) {
        UNIT_EQUAL(trpi_frame_append(&all, TRPI_FRAME_PING, 0, 0, body, i), TRP_OK);
    }
    for (size_t step = 1; step <= all.count; step++) {
        trpi_fault_cutter cutter = { 0 };
        cut_book book = { 0 };

        for (size_t at = 0; at < all.count; at += step) {
            size_t n = all.count - at < step ? all.count - at : step;

            UNIT_EQUAL(trpi_fault_cutter_feed(&cutter, all.data + at, n, cut_note, &book), TRP_OK);
        }
        UNIT_TRUE(book.preambles == 1 && book.frames == 11 && book.raws == 0);
        UNIT_TRUE(book.bytes == all.count && memcmp(book.out, all.data, all.count) == 0);
        trpi_fault_cutter_fini(&cutter);
    }
    trpi_buffer_fini(&all);
}

static void
what_is_not_our_wire_passes_as_it_comes(void)
{
    uint8_t start[TRPI_PREAMBLE_BYTES], header[TRPI_FRAME_HEADER_BYTES];
    trpi_preamble preamble = { TRPI_WIRE_VERSION, TRPI_LANE_CONTROL, 0, 42 };
    trpi_fault_cutter cutter = { 0 };
    cut_book book = { 0 };
    const char *hello = "GET / HTTP/1.1\r\n\r\n";

    UNIT_EQUAL(trpi_fault_cutter_feed(&cutter, (const uint8_t *)hello, 10, cut_note, &book),
               TRP_OK);
    UNIT_EQUAL(book.bytes, 0);
    UNIT_EQUAL(trpi_fault_cutter_feed(&cutter, (const uint8_t *)hello + 10, 8, cut_note, &book),
               TRP_OK);
    UNIT_TRUE(book.raws == 1 && book.bytes == 18);
    trpi_fault_cutter_fini(&cutter);
    memset(&cutter, 0, sizeof cutter);
    memset(&book, 0, sizeof book);
    trpi_preamble_encode(start, &preamble);
    trpi_frame_header_encode(header, TRPI_FAULT_FRAME_BYTES_MAX + 1, TRPI_FRAME_USER, 0, 0);
    UNIT_EQUAL(trpi_fault_cutter_feed(&cutter, start, sizeof(start), cut_note, &book), TRP_OK);
    UNIT_EQUAL(trpi_fault_cutter_feed(&cutter, header, sizeof header, cut_note, &book), TRP_OK);
    UNIT_TRUE(book.preambles == 1 && book.raws == 1 && book.bytes == 24);
    trpi_fault_cutter_fini(&cutter);
}

/* ---- limits of one connection ---------------------------------------------------------------- */

/* The test takes the part of the inner transport: one connection, on which nothing is ever due. */
static struct below {
    const trpi_transport_events *events;
    void *user;
    int pauses;
} below;
static trpi_link *const below_link = (trpi_link *)(void *)&below; /* opaque */

static trp_err
below_open(void *arg, trpi_world *world, const trpi_transport_events *events, void *user,
           trpi_transport **ret_transport)
{
    (void)arg;
    (void)world;
    (void)user;
    below.events = events;
    *ret_transport = (trpi_transport *)(void *)&below;
    return TRP_OK;
}
static trp_err
below_connect(trpi_transport *transport, const char *host, uint16_t port, uint32_t timeout_ms,
              void *user, trpi_link **ret_link)
{
    (void)transport;
    (void)host;
    (void)port;
    (void)timeout_ms;
    below.user = user;
    *ret_link = below_link;
    return TRP_OK;
}
static void
below_pause(trpi_link *link)
{
    (void)link;
    below.pauses++;
}
static void
below_nothing(trpi_link *link)
{
    (void)link;
}
static void
below_stop(trpi_transport *transport)
{
    (void)transport;
    below.events->closed(below.user, below_link, TRP_ECLOSED, "stop");
}
static void
below_free(trpi_transport *transport)
{
    (void)transport;
}
static const trpi_transport_ops below_ops = { .scheme = "tcp",
                                              .open = below_open,
                                              .connect = below_connect,
                                              .pause = below_pause,
                                              .close = below_nothing,
                                              .release = below_nothing,
                                              .stop = below_stop,
                                              .free = below_free };

static _Atomic int above_written, above_closed;
static _Atomic size_t above_bytes;

static void
above_has_bytes(void *user, trpi_link *link, const uint8_t *bytes, size_t count)
{
    (void)user;
    (void)link;
    (void)bytes;
    atomic_fetch_add(&above_bytes, count);
}
static void
above_has_written(void *user, trpi_link *link)
{
    (void)user;
    (void)link;
    atomic_fetch_add(&above_written, 1);
}
static void
above_has_closed(void *user, trpi_link *link, trp_err err, const char *reason)
{
    (void)err;
    (void)reason;
    atomic_fetch_add(&above_closed, 1);
    ((const trpi_transport_ops *)user)->release(link);
}
static const trpi_transport_events above = { .bytes = above_has_bytes,
                                             .written = above_has_written,
                                             .closed = above_has_closed };

/* TRPI_FAULT_HELD_BYTES_MAX each way: at it the writer waits, one past it the reader. */
static void
what_waits_in_a_slow_network_is_bounded(void)
{
    static const trpi_fault_rule slow = { TRPI_FAULT_RATE_PASS, 0, 0, 0, 60000, 0 };
    static uint8_t zeros[TRPI_FAULT_HELD_BYTES_MAX]; /* of another protocol: only delayed */
    const trpi_iov nearly = { zeros, sizeof zeros - 1 }, one = { zeros, 1 };
    trpi_faults *faults = NULL;
    trpi_transport *transport = NULL;
    trpi_world *world = NULL;
    trpi_link *link = NULL;
    trpi_faults_stats stats;

    UNIT_REQUIRE(trpi_world_real_new(&world) == TRP_OK);
    UNIT_REQUIRE(trpi_faults_new(&below_ops, NULL, &faults) == TRP_OK);
    const trpi_transport_ops *ops = trpi_faults_ops(faults);
    UNIT_REQUIRE(ops->open(faults, world, &above, NULL, &transport) == TRP_OK);
    UNIT_EQUAL(trpi_faults_set(faults, "*", TRPI_FAULT_SEND, &slow), TRP_OK);
    UNIT_REQUIRE(ops->connect(transport, "192.0.2.1", 1, 1000, (void *)(uintptr_t)ops, &link) ==
                 TRP_OK);
    bool done = false;
    UNIT_EQUAL(ops->write(link, &nearly, 1, &done), TRP_OK);
    UNIT_TRUE(done); /* it was copied */
    done = false;
    UNIT_EQUAL(ops->write(link, &one, 1, &done), TRP_OK);
    UNIT_FALSE(done);
    below.events->bytes(below.user, below_link, zeros, 16);
    UNIT_WAIT(atomic_load(&above_bytes) == 16, 60000); /* a written() would be earlier */
    UNIT_EQUAL(atomic_load(&above_written), 0);

    UNIT_EQUAL(trpi_faults_set(faults, "*", TRPI_FAULT_RECEIVE, &slow), TRP_OK);
    below.events->bytes(below.user, below_link, zeros, sizeof zeros);
    UNIT_EQUAL(below.pauses, 0);
    below.events->bytes(below.user, below_link, zeros, 1);
    UNIT_EQUAL(below.pauses, 1);
    UNIT_TRUE(below.events->paused(below.user, below_link));
    UNIT_EQUAL(trpi_faults_disconnect(faults, "*"), 1);
    UNIT_FALSE(below.events->paused(below.user, below_link));
    trpi_faults_stats_get(faults, &stats);
    UNIT_EQUAL(stats.cut_bytes, 2 * sizeof zeros + 1);
    ops->stop(transport);
    UNIT_EQUAL(atomic_load(&above_closed), 1);
    ops->free(transport);
    trpi_faults_free(faults);
    trpi_world_free(world);
}

/* ---- two systems ----------------------------------------------------------------------------- */

static pair p;
static trpi_faults *bad; /* the network of the left system */
static char right_peer[TRPI_HOST_BYTES_MAX + 8];

static void
open_pair(const trpi_remote_options *given)
{
    trpi_remote_options options = { 0 };

    if (given != NULL) {
        options = *given;
    }
    memset(&p, 0, sizeof p);
    pair_log_clear();
    UNIT_REQUIRE(trpi_faults_new(pair_driver, NULL, &bad) == TRP_OK);
    p.system[1] = pair_system("right");
    pair_remote(&p, 1, &options, 0);
    p.system[0] = pair_system("left");
    options.transport = trpi_faults_ops(bad);
    options.transport_arg = bad;
    pair_remote(&p, 0, &options, 0);
    (void)snprintf(right_peer, sizeof right_peer, "127.0.0.1:%u",
                   (unsigned)trpi_remote_address(p.remote[1])->port);
}

static void
close_pair(void)
{
    pair_end(&p);
    trpi_faults_free(bad);
}

static void
rule_set(const char *peer, enum trpi_fault_direction direction, trpi_fault_rule rule)
{
    UNIT_EQUAL(trpi_faults_set(bad, peer, direction, &rule), TRP_OK);
}

static trp_err
ask_from(int side, trp_ref to, uint32_t timeout_ms)
{
    trp_msg *reply = NULL;
    trp_err err =
        trp_system_ask(p.system[side], to, &trp_string_type, "hello", 5, timeout_ms, &reply);

    trp_msg_free(reply);
    return err;
}

static trp_ref
side_resolve(int side, int there, const char *path)
{
    char text[512];
    trp_ref ref = TRP_REF_NONE;

    UNIT_EQUAL(trp_system_resolve(p.system[side], pair_path(&p, there, path, text, sizeof text),
                                  60000, &ref),
               TRP_OK);
    return ref;
}

/* MNT-02, MNT-07: a blackhole of one peer, in either direction, and its end; the handshake tells
 * the peer, whichever side dialled */
static void
a_blackhole_swallows_and_is_lifted(void)
{
    static const trpi_fault_rule hole = { TRPI_FAULT_RATE_BLACKHOLE, 0, 0, 0, 0, 0 };
    static const trpi_fault_rule none = TRPI_FAULT_RULE_NONE;
    trp_ref left, right;

    open_pair(NULL);
    (void)pair_spawn(p.system[0], &pair_echo, "echo", NULL, NULL, 0);
    (void)pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    left = side_resolve(1, 0, "/user/echo"); /* the right one dials */
    right = side_resolve(0, 1, "/user/echo");
    UNIT_EQUAL(ask_from(0, right, 60000), TRP_OK);
    rule_set("192.0.2.1:1", TRPI_FAULT_BOTH, hole); /* of another peer */
    UNIT_EQUAL(ask_from(0, right, 60000), TRP_OK);
    rule_set(right_peer, TRPI_FAULT_SEND, hole);
    UNIT_EQUAL(ask_from(0, right, 200), TRP_ETIMEDOUT);
    UNIT_EQUAL(ask_from(1, left, 200), TRP_ETIMEDOUT); /* no reply comes out */
    rule_set(right_peer, TRPI_FAULT_SEND, none);
    UNIT_EQUAL(ask_from(0, right, 60000), TRP_OK);
    rule_set(right_peer, TRPI_FAULT_RECEIVE, hole);
    UNIT_EQUAL(ask_from(0, right, 200), TRP_ETIMEDOUT);
    rule_set(right_peer, TRPI_FAULT_RECEIVE, none);
    UNIT_EQUAL(ask_from(0, right, 60000), TRP_OK);
    UNIT_EQUAL(ask_from(1, left, 60000), TRP_OK);
    close_pair();
}

#define NUMBERS 3000
static _Atomic int64_t numbers_seen, numbers_last;
static atomic_bool numbers_wrong;

static trp_err
number_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t number = *(const int64_t *)trp_msg_payload(msg);

    (void)ctx;
    (void)state;
    if (number <= atomic_load(&numbers_last)) {
        atomic_store(&numbers_wrong, true); /* again, or overtaken */
    }
    atomic_store(&numbers_last, number);
    atomic_fetch_add(&numbers_seen, 1);
    return TRP_OK;
}
static const trp_behaviour number_behaviour = TRP_BEHAVIOUR_INIT("number", char, number_receive);

static trp_ref
open_numbers(void)
{
    atomic_store(&numbers_seen, 0);
    atomic_store(&numbers_last, 0);
    atomic_store(&numbers_wrong, false);
    (void)pair_spawn(p.system[1], &number_behaviour, "numbers", NULL, NULL, 0);
    return side_resolve(0, 1, "/user/numbers");
}

/* faults-link-W3: a delay keeps the order, and messages before the stop arrive */
static void
a_slow_network_keeps_order_to_the_end(void)
{
    trpi_remote_options options = { .flush_on_shutdown_ms = 60000 };
    trp_ref to;

    open_pair(&options);
    to = open_numbers();
    rule_set(right_peer, TRPI_FAULT_BOTH, (trpi_fault_rule){ 4000000, 0, 0, 0, 5, 10 });
    for (int64_t n = 1; n <= NUMBERS; n++) {
        trp_system_tell(p.system[0], to, &trp_i64_type, &n, sizeof n);
    }
    pair_end_side(&p, 0);
    UNIT_WAIT(atomic_load(&numbers_seen) == NUMBERS, 60000);
    UNIT_FALSE(atomic_load(&numbers_wrong));
    close_pair();
}

/* MNT-07, REMOTE-63: connections are cut under load: messages arrive in order, each once */
static void
cuts_lose_but_never_reorder(void)
{
    trp_ref to;
    int64_t n = 0, last;

    open_pair(NULL);
    to = open_numbers();
    for (int cuts = 0; cuts < 5;) {
        for (int i = 0; i < 100; i++) {
            n++;
            trp_system_tell(p.system[0], to, &trp_i64_type, &n, sizeof n);
        }
        cuts += trpi_faults_disconnect(bad, right_peer) > 0;
        unit_pause(); /* it is gated for a while */
    }
    last = n;
    do { /* until the association has found together again */
        n++;
        trp_system_tell(p.system[0], to, &trp_i64_type, &n, sizeof n);
        unit_pause();
    } while (atomic_load(&numbers_last) <= last);
    UNIT_FALSE(atomic_load(&numbers_wrong));
    UNIT_TRUE(atomic_load(&numbers_seen) <= n);
    close_pair();
}

#define WATCHED 16
static _Atomic int ends[WATCHED];

static trp_err
mourner_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const int *number = state;

    if (trp_msg_is(msg, &trp_terminated_type)) {
        UNIT_FALSE(((const trp_terminated *)trp_msg_payload(msg))->address_terminated);
        atomic_fetch_add(&ends[*number], 1);
        return TRP_OK;
    }
    return trp_watch(ctx, *(const trp_ref *)trp_msg_payload(msg));
}
static trp_err
mourner_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    memcpy(state, trp_msg_payload(args), sizeof(int));
    return TRP_OK;
}

/* REMOTE, TRP: under loss, repetition and reordering of every kind each watcher is told once */
static void
system_messages_come_once_over_a_network_that_loses_and_repeats(void)
{
    static const trp_behaviour mourner = { .size = sizeof(trp_behaviour),
                                           .name = "mourner",
                                           .state_bytes = sizeof(int),
                                           .receive = mourner_receive,
                                           .pre_start = mourner_start };
    trpi_remote_options options = { .watch_pause_ms = 600000 }; /* no peer is quarantined */
    trp_ref there[WATCHED], here[WATCHED];
    char name[16], path[32];

    open_pair(&options);
    for (int i = 0; i < WATCHED; i++) {
        (void)snprintf(name, sizeof name, "a%d", i);
        (void)snprintf(path, sizeof path, "/user/a%d", i);
        (void)pair_spawn(p.system[1], &pair_echo, name, NULL, NULL, 0);
        there[i] = side_resolve(0, 1, path);
        atomic_store(&ends[i], 0);
        here[i] = pair_spawn(p.system[0], &mourner, name, &trp_bytes_type, &i, sizeof i);
    }
    rule_set("*", TRPI_FAULT_BOTH, (trpi_fault_rule){ -1, 0.1, 0.1, 0.1, 0, 2 });
    for (int i = 0; i < WATCHED; i++) {
        trp_system_tell(p.system[0], here[i], &trp_bytes_type, &there[i], sizeof there[i]);
        if (i % 2 == 0) {
            trp_system_stop_actor(p.system[0], there[i]); /* by a system message, too */
        }
    }
    for (int i = 0; i < WATCHED; i += 2) {
        UNIT_WAIT(atomic_load(&ends[i]) == 1, 60000);
    }
    rule_set("*", TRPI_FAULT_BOTH, (trpi_fault_rule)TRPI_FAULT_RULE_NONE);
    for (int i = 1; i < WATCHED; i += 2) {
        trp_system_stop_actor(p.system[0], there[i]);
    }
    for (int i = 1; i < WATCHED; i += 2) {
        UNIT_WAIT(atomic_load(&ends[i]) == 1, 60000);
    }
    for (int i = 0; i < WATCHED; i++) {
        UNIT_EQUAL(atomic_load(&ends[i]), 1);
    }
    trpi_faults_stats stats;
    trpi_faults_stats_get(bad, &stats);
    UNIT_TRUE(stats.passed > 0 && stats.lost + stats.repeated + stats.delayed > 0);
    close_pair();
}

ANSWERS_TESTS(a_slow_network_keeps_order_to_the_end, pair_driver)
ANSWERS_TESTS(cuts_lose_but_never_reorder, pair_driver)

UNIT_BEGIN("faults")
UNIT(rates_and_blackholes_are_kept)
UNIT(frames_are_lost_repeated_delayed_and_overtaken)
UNIT(rules_that_cannot_be_are_refused)
UNIT(streams_are_cut_wherever_their_reads_end)
UNIT(what_is_not_our_wire_passes_as_it_comes)
UNIT(what_waits_in_a_slow_network_is_bounded)
UNIT(a_blackhole_swallows_and_is_lifted)
UNIT(a_slow_network_keeps_order_to_the_end)
UNIT(cuts_lose_but_never_reorder)
UNIT_ANSWERS(a_slow_network_keeps_order_to_the_end)
UNIT_ANSWERS(cuts_lose_but_never_reorder)
UNIT(system_messages_come_once_over_a_network_that_loses_and_repeats)
UNIT_END

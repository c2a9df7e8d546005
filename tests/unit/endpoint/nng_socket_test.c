/* nng_socket_test.c - sockets of nng as actors, whose peers are other programs. */
#include "tests/unit/endpoint/talker.h"

static void
send_hello(trp_ctx *ctx, talker *t)
{
    talker_send(ctx, t, "hello", " world", 7);
}

static void
send_other(trp_ctx *ctx, talker *t)
{
    talker_send(ctx, t, "other", NULL, 0);
}

static void
subscribe_more(trp_ctx *ctx, talker *t)
{
    UNIT_EQUAL(trp_nng_subscribe(ctx, t->socket, "more", 4), TRP_OK);
    UNIT_EQUAL(trp_nng_unsubscribe(ctx, t->socket, "health", 6), TRP_OK);
    UNIT_EQUAL(trp_nng_unsubscribe(ctx, t->socket, "nothing", 7), TRP_OK);
}

static void
subscribe_all(trp_ctx *ctx, talker *t)
{
    UNIT_EQUAL(trp_nng_subscribe(ctx, t->socket, NULL, 0), TRP_OK);
    UNIT_EQUAL(trp_nng_unsubscribe(ctx, t->socket, "nothing", 7), TRP_OK); /* its answer is later */
}

static void
stop_socket(trp_ctx *ctx, talker *t)
{
    trp_tell(ctx, t->socket, &trp_poison_pill_type, NULL, 0);
}

static void
kill_socket(trp_ctx *ctx, talker *t)
{
    trp_tell(ctx, t->socket, &trp_kill_type, NULL, 0);
}

/* ZMQ-04, ZMQ-08: a plain subscriber matches prefixes of the first part, and gets the parts one
 * behind the other. */
static void
a_publisher_reaches_plain_subscribers_by_prefix(void)
{
    trp_system *system = stage_open();
    talker *t = talker_new("p", TRP_NNG_PUB);
    t->options.listen = "tcp://127.0.0.1:0";
    talker_start(system, t);
    peer *hello = peer_start("sub", "dial", t->address, "hell"),
         *other = peer_start("sub", "dial", t->address, "oth");
    UNIT_WAIT(atomic_load(&t->connected) == 2, 60000);
    talker_do(system, t, send_hello);
    talker_do(system, t, send_other);
    UNIT_TRUE(peer_gets(hello, "hello world"));
    UNIT_TRUE(peer_gets(other, "other"));
    STAGE_EXPECT("p:sent(7)");
    peer_end(hello);
    UNIT_WAIT(stage_has("p:disconnected"), 60000);
    peer_end(other);
    stage_close(system);
    free(t);
}

/* ZMQ-03, ZMQ-04 */
static void
a_subscriber_hears_its_prefixes_and_changes_them(void)
{
    trp_system *system = stage_open();
    talker *t = talker_new("s", TRP_NNG_SUB);
    peer *pub = peer_start("pub", "listen", "tcp://127.0.0.1:0", NULL);
    char url[64];
    snprintf(url, sizeof url, "tcp://localhost%s", strrchr(pub->address, ':'));
    t->options.dial = url;
    t->options.subscribe = "health";
    talker_start(system, t);
    UNIT_WAIT(atomic_load(&t->connected) == 1, 60000);
    UNIT_TRUE(peer_does(pub, "ok", "peers 1"));
    UNIT_TRUE(peer_puts(pub, "more 1"));
    UNIT_TRUE(peer_puts(pub, "health 1"));
    STAGE_EXPECT("s:got(health 1)");
    talker_do(system, t, subscribe_more);
    UNIT_WAIT(stage_has("s:failed(0,TRP_ENOENT)"), 60000);
    UNIT_TRUE(peer_puts(pub, "health 2"));
    UNIT_TRUE(peer_puts(pub, "more 2"));
    STAGE_EXPECT("s:got(health 1) s:failed(0,TRP_ENOENT) s:got(more 2)");
    talker_do(system, t, subscribe_all); /* the empty prefix */
    UNIT_WAIT(stage_count("s:failed(0,TRP_ENOENT)") == 2, 60000);
    UNIT_TRUE(peer_puts(pub, "any"));
    UNIT_WAIT(stage_has("s:got(any)"), 60000);
    talker_do(system, t, send_hello); /* ZMQ-04: a subscriber does not send */
    UNIT_WAIT(stage_has("s:failed(7,TRP_EUNSUPPORTED)"), 60000);
    peer_end(pub);
    stage_close(system);
    free(t);
}

static void
send_three(trp_ctx *ctx, talker *t)
{
    for (uint64_t i = 1; i <= 3; i++) {
        talker_send(ctx, t, "task", NULL, i);
    }
}

/* ZMQ-06, ZMQ-03: send_max is the high-water mark. */
static void
a_pusher_waits_for_a_puller_and_refuses_beyond_its_mark(void)
{
    trp_system *system = stage_open();
    talker *t = talker_new("p", TRP_NNG_PUSH);
    t->options.listen = talker_address("ipc:///tmp/", "push");
    t->options.send_max = 1; /* one waits behind the one that nng has */
    talker_start(system, t);
    talker_do(system, t, send_three);
    STAGE_EXPECT("p:failed(3,TRP_EAGAIN)");
    peer *pull = peer_start("pull", "dial", t->options.listen, NULL);
    UNIT_TRUE(peer_gets(pull, "task"));
    UNIT_TRUE(peer_gets(pull, "task"));
    STAGE_EXPECT("p:failed(3,TRP_EAGAIN) p:sent(1) p:sent(2)");
    peer_end(pull);
    stage_close(system);
    free(t);
}

/* nng-socket-K1 */
static void
messages_that_wait_at_the_end_fail(void)
{
    trp_system *system = stage_open();
    talker *t = talker_new("p", TRP_NNG_PUSH);
    t->options.listen = "inproc://waiting";
    talker_start(system, t);
    talker_do(system, t, send_three);
    talker_do(system, t, stop_socket);
    STAGE_EXPECT("p:failed(1,TRP_ECLOSED) p:failed(2,TRP_ECLOSED) p:failed(3,TRP_ECLOSED) "
                 "p:closed(TRP_OK)");
    talker_do(system, t, send_other);
    UNIT_WAIT(stage_dead_sum(system) > 0, 60000);
    stage_close(system);
    free(t);
}

/* ZMQ-06; nng-socket-K2: a listener that frees nothing stops the reading, and so the sender. */
static void
a_puller_reads_no_more_than_its_listener_frees(void)
{
    enum { BOUND = 8, ALL = 2000 };
    trp_system *system = stage_open();
    talker *t = talker_new("p", TRP_NNG_PULL);
    unsigned sent = 0;
    t->options.listen = "tcp://127.0.0.1:0";
    t->options.receive_max = BOUND;
    t->keeps = t->quiet = true;
    talker_start(system, t);
    peer *push = peer_start("push", "dial", t->address, NULL);
    UNIT_TRUE(peer_does(push, NULL, "fill 65536 2000 2000"));
    UNIT_EQUAL(sscanf(push->answer, "sent %u", &sent), 1);
    UNIT_TRUE(sent < ALL); /* what the kernel's and nng's buffers take, not 125 MiB */
    UNIT_WAIT(atomic_load(&t->got) == BOUND, 60000);
    /* It reads again whenever more than half of the bound are freed: free until all have come. */
    UNIT_WAIT((talker_let_go(t), atomic_load(&t->got) >= sent), 60000);
    UNIT_EQUAL(atomic_load(&t->got), sent);
    talker_let_go(t);
    peer_end(push);
    stage_close(system);
    free(t);
}

/* ZMQ-03: nothing is allocated for a length beyond the bound. */
static void
a_message_beyond_the_bound_ends_its_connection(void)
{
    trp_system *system = stage_open();
    talker *t = talker_new("p", TRP_NNG_PULL);
    t->options.listen = "tcp://127.0.0.1:0";
    t->options.message_bytes_max = 1024;
    t->quiet = true;
    talker_start(system, t);
    peer *push = peer_start("push", "dial", t->address, NULL);
    UNIT_TRUE(peer_does(push, "sent 1", "fill 1024 1 60000"));
    UNIT_WAIT(atomic_load(&t->got) == 1, 60000);
    UNIT_TRUE(peer_does(push, "sent 1", "fill 1025 1 60000"));
    UNIT_WAIT(stage_has("p:disconnected"), 60000);
    UNIT_EQUAL(atomic_load(&t->got), 1);
    peer_end(push);
    stage_close(system);
    free(t);
}

/* ZMQ-06 */
static void
a_pair_speaks_both_ways(void)
{
    trp_system *system = stage_open();
    talker *t = talker_new("p", TRP_NNG_PAIR);
    t->options.dial = talker_address("abstract://", "pair");
    peer *pair = peer_start("pair", "listen", t->options.dial, NULL);
    talker_start(system, t);
    talker_do(system, t, send_hello);
    UNIT_TRUE(peer_gets(pair, "hello world"));
    UNIT_TRUE(peer_puts(pair, "back"));
    UNIT_WAIT(stage_has("p:got(back)"), 60000);
    UNIT_TRUE(peer_puts(pair, ""));
    UNIT_WAIT(stage_has("p:got()"), 60000);
    peer_end(pair);
    stage_close(system);
    free(t);
}

/* ZMQ-06 */
static void
members_of_a_bus_hear_one_another(void)
{
    trp_system *system = stage_open();
    talker *a = talker_new("a", TRP_NNG_BUS), *b = talker_new("b", TRP_NNG_BUS);
    a->options.listen = b->options.dial = talker_address("abstract://", "bus");
    talker_start(system, a);
    talker_start(system, b);
    peer *bus = peer_start("bus", "dial", a->options.listen, NULL);
    UNIT_WAIT(atomic_load(&a->connected) == 2 && atomic_load(&b->connected) == 1, 60000);
    talker_do(system, a, send_other);
    UNIT_WAIT(stage_has("b:got(other)"), 60000);
    UNIT_TRUE(peer_gets(bus, "other"));
    UNIT_TRUE(peer_puts(bus, "plain"));
    UNIT_WAIT(stage_has("a:got(plain)"), 60000);
    peer_end(bus);
    stage_close(system);
    free(a);
    free(b);
}

/* ZMQ-08: framed on both ends; a plain peer's message has no lengths, and is said to be bad. */
static void
parts_arrive_as_they_were_sent(void)
{
    trp_system *system = stage_open();
    talker *a = talker_new("a", TRP_NNG_PAIR), *b = talker_new("b", TRP_NNG_PAIR);
    a->options.listen = b->options.dial = talker_address("abstract://", "parts");
    a->options.framed = b->options.framed = 1;
    talker_start(system, a);
    talker_start(system, b);
    UNIT_WAIT(atomic_load(&a->connected) == 1, 60000);
    talker_do(system, b, send_hello);
    UNIT_WAIT(stage_has("a:got(hello| world)"), 60000);
    talker_do(system, b, stop_socket);
    UNIT_WAIT(stage_has("a:disconnected"), 60000);
    peer *plain = peer_start("pair", "dial", a->options.listen, NULL);
    UNIT_TRUE(peer_puts(plain, "no lengths"));
    UNIT_WAIT(stage_has("a:bad"), 60000);
    talker_do(system, a, send_hello);
    UNIT_TRUE(peer_gets(plain, "hello world\\x00\\x00\\x00\\x05\\x00\\x00\\x00\\x06"
                               "\\x00\\x00\\x00\\x02"));
    peer_end(plain);
    stage_close(system);
    free(a);
    free(b);
}

/* ZMQ-01 */
static void
a_restarted_socket_opens_again_as_before(void)
{
    trp_system *system = stage_open();
    talker *t = talker_new("s", TRP_NNG_SUB);
    peer *pub = peer_start("pub", "listen", talker_address("abstract://", "restarts"), NULL);
    t->options.dial = pub->address;
    t->options.subscribe = "a";
    talker_start(system, t);
    UNIT_WAIT(atomic_load(&t->connected) == 1, 60000);
    talker_do(system, t, kill_socket);
    UNIT_WAIT(atomic_load(&t->connected) == 2, 60000);
    UNIT_TRUE(peer_does(pub, "ok", "peers 2"));
    UNIT_EQUAL(atomic_load(&t->opened), 2);
    UNIT_TRUE(peer_puts(pub, "b"));
    UNIT_TRUE(peer_puts(pub, "a"));
    STAGE_EXPECT("s:closed(TRP_OK) s:got(a)");
    peer_end(pub);
    stage_close(system);
    free(t);
}

static void
open_badly(trp_ctx *ctx, talker *t)
{
    trp_nng_options good = t->options, bad = good;
    trp_bytes part = TRP_BYTES_LITERAL("x"), parts[TRP_NNG_PARTS_MAX + 1];
    char prefix[TRP_NNG_PREFIX_BYTES_MAX + 2];
    trp_ref ref;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        parts[i] = part;
    }
    memset(prefix, 'p', sizeof prefix);
    prefix[sizeof prefix - 1] = '\0';
    bad.kind = 0;
    UNIT_EQUAL(trp_nng_open(ctx, &bad, &ref), TRP_EINVAL);
    bad.kind = TRP_NNG_RESPONDENT + 1;
    UNIT_EQUAL(trp_nng_open(ctx, &bad, &ref), TRP_EINVAL);
    bad = good;
    bad.listen = bad.dial = NULL;
    UNIT_EQUAL(trp_nng_open(ctx, &bad, &ref), TRP_EINVAL);
    bad.listen = "tls+tcp://127.0.0.1:1";
    UNIT_EQUAL(trp_nng_open(ctx, &bad, &ref), TRP_EUNSUPPORTED);
    bad = good;
    bad.exchanges_max = TRP_NNG_EXCHANGES_MAX + 1;
    UNIT_EQUAL(trp_nng_open(ctx, &bad, &ref), TRP_EINVAL);
    bad = good;
    bad.subscribe = ""; /* a pusher */
    UNIT_EQUAL(trp_nng_open(ctx, &bad, &ref), TRP_EINVAL);
    bad.kind = TRP_NNG_SUB;
    bad.subscribe = prefix; /* one too long */
    UNIT_EQUAL(trp_nng_open(ctx, &bad, &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_nng_subscribe(ctx, t->socket, prefix, TRP_NNG_PREFIX_BYTES_MAX + 1), TRP_EINVAL);
    UNIT_EQUAL(trp_nng_send(ctx, t->socket, parts, 0, 0), TRP_EINVAL);
    UNIT_EQUAL(trp_nng_send(ctx, t->socket, parts, TRP_NNG_PARTS_MAX + 1, 0), TRP_EINVAL);
    UNIT_EQUAL(trp_nng_send(ctx, t->socket, parts, TRP_NNG_PARTS_MAX, 64), TRP_OK);
    stage_note("tried");
}

static void
options_out_of_range_are_refused(void)
{
    trp_system *system = stage_open();
    talker *t = talker_new("p", TRP_NNG_PUSH);
    t->options.listen = "inproc://options";
    talker_start(system, t);
    talker_do(system, t, open_badly);
    UNIT_WAIT(stage_has("tried"), 60000);
    stage_close(system);
    free(t);
}

/* ZMQ-01. An ipc path that another listener has would end that one: nng-library-N5. */
static void
an_address_in_use_closes_the_second_socket_with_a_reason(void)
{
    trp_system *system = stage_open();
    talker *a = talker_new("a", TRP_NNG_PULL), *b = talker_new("b", TRP_NNG_PULL),
           *c = talker_new("c", TRP_NNG_PULL), *d = talker_new("d", TRP_NNG_PUSH);
    a->options.listen = talker_address("tcp://127.0.0.1:0 ipc:///tmp/", "used");
    talker_start(system, a);
    UNIT_WAIT(atomic_load(&a->opened) == 1, 60000);
    b->options.listen = a->address;
    c->options.listen = talker_address("ipc:///tmp/", "used");
    talker_start(system, b);
    STAGE_EXPECT("b:closed(TRP_EADDRINUSE)");
    talker_start(system, c);
    STAGE_EXPECT("b:closed(TRP_EADDRINUSE) c:closed(TRP_EADDRINUSE)");
    d->options.dial = c->options.listen; /* the first one still listens */
    talker_start(system, d);
    talker_do(system, d, send_hello);
    UNIT_WAIT(stage_has("a:got(hello world)"), 60000);
    stage_close(system);
    free(a);
    free(b);
    free(c);
    free(d);
}

UNIT_BEGIN("nng-socket")
UNIT(a_publisher_reaches_plain_subscribers_by_prefix)
UNIT(a_subscriber_hears_its_prefixes_and_changes_them)
UNIT(a_pusher_waits_for_a_puller_and_refuses_beyond_its_mark)
UNIT(messages_that_wait_at_the_end_fail)
UNIT(a_puller_reads_no_more_than_its_listener_frees)
UNIT(a_message_beyond_the_bound_ends_its_connection)
UNIT(a_pair_speaks_both_ways)
UNIT(members_of_a_bus_hear_one_another)
UNIT(parts_arrive_as_they_were_sent)
UNIT(a_restarted_socket_opens_again_as_before)
UNIT(options_out_of_range_are_refused)
UNIT(an_address_in_use_closes_the_second_socket_with_a_reason)
UNIT_END

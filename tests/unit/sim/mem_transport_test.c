/* mem_transport_test.c - the network in memory, stepped by hand. */
#include "base/alloc.h"
#include "base/world.h"
#include "sim/mem_transport.h"
#include "tests/unit/unit.h"

static const trpi_transport_ops *const ops = &trpi_mem_transport_ops;

typedef struct end {
    trpi_link *link;
    int connected, written, closed;
    char got[256];
    size_t bytes;
} end;
static end left, right;
static int order[8];
static int order_count;

static bool
on_accepted(void *arg, trpi_link *link, const char *peer, void **ret_user)
{
    (void)arg;
    (void)peer;
    right.link = link;
    *ret_user = &right;
    return true;
}
static void
on_connected(void *user, trpi_link *link)
{
    ((end *)user)->link = link;
    ((end *)user)->connected++;
}
static void
on_bytes(void *user, trpi_link *link, const uint8_t *bytes, size_t count)
{
    end *e = user;
    (void)link;
    memcpy(e->got + e->bytes, bytes, count);
    e->bytes += count;
    order[order_count++ % 8] = e == &left ? 1 : 2;
}
static void
on_written(void *user, trpi_link *link)
{
    (void)link;
    ((end *)user)->written++;
}
static void
on_closed(void *user, trpi_link *link, trp_err err, const char *reason)
{
    (void)err;
    (void)reason;
    ((end *)user)->closed++;
    ops->release(link);
}
static const trpi_transport_events events = { on_accepted, on_connected, on_bytes,
                                              on_written,  on_closed,    NULL };

static trpi_mem_network *network;
static trpi_transport *a, *b;

static void
pair_start(void)
{
    uint16_t port = 0;
    memset(&left, 0, sizeof left);
    memset(&right, 0, sizeof right);
    order_count = 0;
    UNIT_REQUIRE(trpi_mem_network_new(&network) == TRP_OK);
    UNIT_REQUIRE(ops->open(network, NULL, &events, NULL, &a) == TRP_OK);
    UNIT_REQUIRE(ops->open(network, NULL, &events, NULL, &b) == TRP_OK);
    UNIT_EQUAL(ops->listen(a, "left", 0, &port), TRP_OK);
    UNIT_EQUAL(ops->listen(b, "right", 7, &port), TRP_OK);
    ops->accept(a);
    ops->accept(b);
    UNIT_EQUAL(port, 7);
}
static void
network_run(void)
{
    while (trpi_mem_network_step(network)) {
    }
}
static void
pair_finish(void)
{
    ops->stop(a);
    ops->stop(b);
    ops->free(a);
    ops->free(b);
    trpi_mem_network_free(network);
}
static void
bytes_send(trpi_link *link, const char *text)
{
    trpi_iov iov[2] = { { text, 1 }, { text + 1, strlen(text) - 1 } };
    bool done = false;
    UNIT_EQUAL(ops->write(link, iov, 2, &done), TRP_OK);
    UNIT_FALSE(done); /* written() is an event of the world */
}
static void
right_dial(void)
{
    trpi_link *link = NULL;
    UNIT_EQUAL(ops->connect(a, "right", 7, 1000, &left, &link), TRP_OK);
    network_run();
}

static void
bytes_go_both_ways_and_an_end_is_told_to_both(void)
{
    pair_start();
    right_dial();
    UNIT_EQUAL(left.connected, 1);
    bytes_send(left.link, "hello");
    bytes_send(right.link, "world");
    network_run();
    UNIT_TRUE(right.bytes == 5 && memcmp(right.got, "hello", 5) == 0);
    UNIT_TRUE(left.bytes == 5 && memcmp(left.got, "world", 5) == 0);
    UNIT_EQUAL(left.written, 1);
    ops->close(left.link);
    trpi_iov iov = { "x", 1 };
    UNIT_EQUAL(ops->write(left.link, &iov, 1, NULL), TRP_ECLOSED);
    network_run();
    UNIT_TRUE(left.closed == 1 && right.closed == 1);
    pair_finish();
}

static trpi_mem_verdict verdict;
static trpi_mem_verdict
fault_decide(void *arg, trpi_mem_event *event)
{
    (void)arg;
    if (strcmp(event->from_host, "left") == 0 && !event->connect) {
        event->delay_ns = 1000;
        event->bytes_first = 2;
    }
    return verdict;
}

static void
a_hook_delays_and_splits_without_reordering_a_stream(void)
{
    pair_start();
    right_dial();
    verdict = TRPI_MEM_PASS;
    trpi_mem_network_fault_set(network, fault_decide, NULL);
    bytes_send(left.link, "abcdef");
    trpi_mem_network_fault_set(network, NULL, NULL);
    bytes_send(right.link, "uvw"); /* not delayed: first */
    UNIT_EQUAL(trpi_mem_network_due_ns(network), 0);
    network_run();
    UNIT_TRUE(order_count == 3 && order[0] == 1 && order[1] == 2 && order[2] == 2);
    UNIT_TRUE(right.bytes == 6 && memcmp(right.got, "abcdef", 6) == 0);
    pair_finish();
}

static void
a_dropped_direction_is_silent_and_a_cut_is_told(void)
{
    pair_start();
    right_dial();
    verdict = TRPI_MEM_DROP;
    trpi_mem_network_fault_set(network, fault_decide, NULL);
    bytes_send(left.link, "lost");
    verdict = TRPI_MEM_PASS;
    bytes_send(left.link, "too"); /* the stream has a hole: nothing may come after it */
    network_run();
    UNIT_EQUAL(right.bytes, 0);
    UNIT_EQUAL(left.written, 2);
    trpi_mem_network_fault_set(network, NULL, NULL);
    trpi_mem_network_cut(network, "right", "left");
    network_run();
    UNIT_TRUE(left.closed == 1 && right.closed == 1);
    pair_finish();
}

static void
a_connect_to_nobody_is_refused(void)
{
    trpi_link *link = NULL;
    pair_start();
    UNIT_EQUAL(ops->connect(a, "nowhere", 7, 1000, &left, &link), TRP_OK);
    network_run();
    UNIT_TRUE(left.connected == 0 && left.closed == 1);
    uint16_t port = 0;
    UNIT_EQUAL(ops->listen(b, "left", 1024, &port), TRP_EADDRINUSE);
    pair_finish();
}

/* Of the copy, of the event for the peer, of the news for the writer. */
static void
a_write_without_memory_ends_the_connection_at_both_ends(void)
{
    for (int nth = 0; nth < 3; nth++) {
        pair_start();
        right_dial();
        trpi_alloc_fail_after(nth);
        bytes_send(left.link, "hello");
        trpi_alloc_fail_after(-1);
        network_run();
        UNIT_TRUE(left.closed == 1 && right.closed == 1);
        pair_finish();
    }
}

UNIT_BEGIN("mem_transport")
UNIT(bytes_go_both_ways_and_an_end_is_told_to_both)
UNIT(a_hook_delays_and_splits_without_reordering_a_stream)
UNIT(a_dropped_direction_is_silent_and_a_cut_is_told)
UNIT(a_connect_to_nobody_is_refused)
UNIT(a_write_without_memory_ends_the_connection_at_both_ends)
UNIT_END

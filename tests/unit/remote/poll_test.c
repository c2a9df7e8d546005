/* poll_test.c - the driver on the poller over sockets that misbehave as the kernel may: they take
 * and give a few bytes at a time, have no descriptor left, and are read no more. And how many
 * messages a write carries. */
#include <errno.h>

#include <troupe/mailbox.h>

#include "base/net.h"
#include "remote/poll/link_poll.h"
#include "tests/unit/remote/pair.h"

static const trpi_transport_ops *const ops = &trpi_link_poll_ops;

/* ---- sockets of the machine, with faults ----------------------------------------------------- */

static _Atomic size_t part_bytes; /* a read or write is of so many at most; 0: any */
static _Atomic int accepts_starved;
static _Atomic uint64_t writes, long_writes;

/* Longer than what is said besides messages: heartbeats, credit, acknowledgements. */
enum { LONG_BYTES = 1000 };

static ssize_t
part_read(trpi_world *world, int socket, const struct iovec *iov, int count)
{
    size_t most = atomic_load(&part_bytes);
    struct iovec one = iov[0];
    UNIT_TRUE(count == 1);
    one.iov_len = most != 0 && one.iov_len > most ? most : one.iov_len;
    return trpi_net_machine.read(world, socket, &one, 1);
}
/* More may be left behind a part: net-N1. */
static int
part_wait(trpi_net_set *set, trpi_net_report *ret_reports, int most, uint64_t timeout_ns)
{
    int count = trpi_net_machine.set_wait(set, ret_reports, most, timeout_ns);
    for (int i = 0; i < count && atomic_load(&part_bytes) != 0; i++) {
        ret_reports[i].events |= TRPI_NET_DRAIN;
    }
    return count;
}
static ssize_t
part_write(trpi_world *world, int socket, const struct iovec *iov, int count)
{
    size_t most = atomic_load(&part_bytes);
    struct iovec one = iov[0];
    one.iov_len = most != 0 && one.iov_len > most ? most : one.iov_len;
    ssize_t sent = most != 0 ? trpi_net_machine.write(world, socket, &one, 1)
                             : trpi_net_machine.write(world, socket, iov, count);
    atomic_fetch_add(&writes, 1);
    atomic_fetch_add(&long_writes, sent > LONG_BYTES);
    return sent;
}
static int
starved_accept(trpi_world *world, int socket, trpi_net_address *ret_peer)
{
    if (atomic_load(&accepts_starved) > 0) {
        atomic_fetch_sub(&accepts_starved, 1);
        return -EMFILE;
    }
    return trpi_net_machine.accept(world, socket, ret_peer);
}

/* A world like the machine's, but for its sockets. */
static struct {
    trpi_world world;
    trpi_world_ops ops;
    trpi_net_ops net;
    trpi_world *real;
} odd;

static uint64_t
odd_mono_ns(trpi_world *world)
{
    (void)world;
    return trpi_world_mono_ns(odd.real);
}
static int64_t
odd_wall_ms(trpi_world *world)
{
    (void)world;
    return trpi_world_wall_ms(odd.real);
}
static uint64_t
odd_random(trpi_world *world)
{
    (void)world;
    return trpi_world_random(odd.real);
}

static trp_system *
odd_system(const char *name)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system = NULL;
    options.workers = 2;
    options.log = pair_log_line;
    UNIT_REQUIRE(trpi_system_new_in(&odd.world, name, &options, &system) == TRP_OK);
    return system;
}
static void
odd_begin(void)
{
    UNIT_REQUIRE(trpi_world_real_new(&odd.real) == TRP_OK);
    odd.net = trpi_net_machine;
    odd.net.read = part_read;
    odd.net.write = part_write;
    odd.net.set_wait = part_wait;
    odd.net.accept = starved_accept;
    odd.ops = (trpi_world_ops){ .name = "real",
                                .mono_ns = odd_mono_ns,
                                .wall_ms = odd_wall_ms,
                                .random_u64 = odd_random,
                                .net = &odd.net };
    odd.world.ops = &odd.ops;
    atomic_store(&part_bytes, 0);
    atomic_store(&accepts_starved, 0);
    atomic_store(&writes, 0);
    atomic_store(&long_writes, 0);
}

/* ---- the driver ------------------------------------------------------------------------------ */

static trp_system *below;
static trpi_transport *transport;
static uint16_t port;
static _Atomic(trpi_link *) dialled;
static _Atomic uint64_t got, wrong, done_count, closed_count, starved_count, looks, paused_at;
static atomic_bool pausing, wait_on, close_at_once;

static bool
on_accepted(void *arg, trpi_link *link, const char *peer, void **ret_user)
{
    (void)arg;
    (void)link;
    (void)peer;
    *ret_user = &got;
    return true;
}
static void
on_connected(void *user, trpi_link *link)
{
    (void)user;
    atomic_store(&dialled, link);
}
static void
on_bytes(void *user, trpi_link *link, const uint8_t *bytes, size_t count)
{
    uint64_t at = atomic_load(&got);
    (void)user;
    for (size_t i = 0; i < count; i++) {
        atomic_fetch_add(&wrong, bytes[i] != (uint8_t)((at + i) % 251));
    }
    atomic_fetch_add(&got, count);
    if (atomic_exchange(&pausing, false)) {
        atomic_store(&paused_at, at + count);
        ops->pause(link);
    }
    if (atomic_load(&close_at_once)) { /* transport-T5 */
        ops->close(link);
    }
}
static bool
on_paused(void *user, trpi_link *link)
{
    (void)user;
    (void)link;
    atomic_fetch_add(&looks, 1);
    return atomic_load(&wait_on);
}
static void
on_written(void *user, trpi_link *link)
{
    (void)user;
    (void)link;
    atomic_fetch_add(&done_count, 1);
}
static void
on_closed(void *user, trpi_link *link, trp_err err, const char *reason)
{
    (void)user;
    UNIT_TRUE(err != TRP_OK && reason != NULL);
    ops->release(link);
    atomic_fetch_add(&closed_count, 1);
}
static void
on_starved(void *arg)
{
    (void)arg;
    atomic_fetch_add(&starved_count, 1);
}
static const trpi_transport_events events = { .accepted = on_accepted,
                                              .connected = on_connected,
                                              .bytes = on_bytes,
                                              .written = on_written,
                                              .closed = on_closed,
                                              .paused = on_paused,
                                              .starved = on_starved };

static void
driver_start(void)
{
    trpi_link_poll_arg arg = { 0 };
    odd_begin();
    atomic_store(&dialled, NULL);
    atomic_store(&got, 0);
    atomic_store(&wrong, 0);
    atomic_store(&done_count, 0);
    atomic_store(&closed_count, 0);
    atomic_store(&starved_count, 0);
    atomic_store(&looks, 0);
    below = odd_system("below");
    UNIT_REQUIRE(trpi_system_poller(below, &arg.poller) == TRP_OK);
    arg.sched = trpi_system_sched(below);
    UNIT_REQUIRE(ops->open(&arg, &odd.world, &events, NULL, &transport) == TRP_OK);
    UNIT_REQUIRE(ops->listen(transport, "127.0.0.1", 0, &port) == TRP_OK);
    ops->accept(transport);
}
static trpi_link *
driver_connect(void)
{
    trpi_link *link = NULL;
    UNIT_REQUIRE(ops->connect(transport, "127.0.0.1", port, 60000, &dialled, &link) == TRP_OK);
    UNIT_WAIT(atomic_load(&dialled) == link, 60000);
    return link;
}
static void
driver_finish(void)
{
    ops->stop(transport);
    ops->free(transport);
    UNIT_EQUAL(trp_system_stop(below, 60000), TRP_OK);
    trp_system_free(below);
    trpi_world_free(odd.real);
}

enum { BYTES = 1 << 20 };
static uint8_t data[BYTES];

/* Send BYTES, and return whether written() comes. */
static bool
data_send(trpi_link *link)
{
    bool done = false;
    for (size_t i = 0; i < BYTES; i++) {
        data[i] = (uint8_t)(i % 251);
    }
    trpi_iov iov[3] = { { data, 7 }, { data + 7, 1 }, { data + 8, BYTES - 8 } };
    UNIT_EQUAL(ops->write(link, iov, 3, &done), TRP_OK);
    return !done;
}

static void
parts_of_a_write_arrive_whole_and_in_order(void)
{
    driver_start();
    trpi_link *link = driver_connect();
    atomic_store(&part_bytes, 1013);
    bool later = data_send(link);
    UNIT_WAIT(atomic_load(&got) == BYTES, 60000);
    UNIT_WAIT(atomic_load(&done_count) == later, 60000);
    UNIT_EQUAL(atomic_load(&wrong), 0);
    UNIT_TRUE(atomic_load(&writes) >= BYTES / 1013);
    driver_finish();
    UNIT_EQUAL(atomic_load(&closed_count), 2);
}

/* REMOTE-60: back-pressure: nothing is read until the user wants more, and then all */
static void
a_paused_link_reads_no_more_until_it_may(void)
{
    driver_start();
    trpi_link *link = driver_connect();
    atomic_store(&part_bytes, 4096);
    atomic_store(&wait_on, true);
    atomic_store(&pausing, true);
    (void)data_send(link);
    UNIT_WAIT(atomic_load(&looks) >= 5, 60000);
    UNIT_EQUAL(atomic_load(&got), atomic_load(&paused_at));
    UNIT_TRUE(atomic_load(&got) < BYTES);
    atomic_store(&wait_on, false);
    UNIT_WAIT(atomic_load(&got) == BYTES, 60000);
    UNIT_EQUAL(atomic_load(&wrong), 0);
    atomic_store(&wait_on, true); /* close() ends a pause */
    atomic_store(&pausing, true);
    bool done = false;
    trpi_iov iov = { data, 251 };
    UNIT_WAIT(ops->write(link, &iov, 1, &done) == TRP_OK && done, 60000);
    UNIT_WAIT(!atomic_load(&pausing), 60000);
    driver_finish();
    UNIT_EQUAL(atomic_load(&closed_count), 2);
}

static void
a_close_from_bytes_is_the_end_of_it(void)
{
    driver_start();
    trpi_link *link = driver_connect();
    atomic_store(&close_at_once, true);
    atomic_store(&part_bytes, 100);
    (void)data_send(link);
    UNIT_WAIT(atomic_load(&closed_count) == 2, 60000);
    UNIT_TRUE(atomic_load(&got) > 0 && atomic_load(&got) <= 100); /* one read */
    atomic_store(&close_at_once, false);
    driver_finish();
}

/* No descriptor is left: it is said each time that accept pauses, and accept goes on by itself. */
static void
accept_pauses_without_a_descriptor_and_goes_on(void)
{
    driver_start();
    atomic_store(&accepts_starved, 3);
    trpi_link *link = driver_connect();
    UNIT_WAIT(atomic_load(&accepts_starved) == 0, 60000);
    (void)data_send(link);
    UNIT_WAIT(atomic_load(&got) == BYTES, 60000);
    UNIT_EQUAL(atomic_load(&starved_count), 3);
    driver_finish();
}

/* ---- two systems ----------------------------------------------------------------------------- */

enum { MESSAGES = 200000, MESSAGE_BYTES = 100, TURN = 1000, A_WRITE = 400 };
static pair p;
static trp_ref counter_ref;
static _Atomic uint64_t counted;
static const uint8_t body[MESSAGE_BYTES];

static trp_err
count_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    atomic_fetch_add_explicit(&counted, trp_msg_bytes(msg) == MESSAGE_BYTES, memory_order_relaxed);
    return TRP_OK;
}
static const trp_behaviour counter = TRP_BEHAVIOUR_INIT("counter", char, count_receive);

/* Tells as much as the lane takes, at most TURN messages, and goes on. */
static trp_err
teller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    uint64_t *sent = state;
    (void)msg;
    for (int i = 0; i < TURN && *sent < MESSAGES; i++) {
        if (trp_try_tell(ctx, counter_ref, &trp_bytes_type, body, sizeof body) != TRP_OK) {
            return TRP_OK; /* until trp_mailbox_ready */
        }
        ++*sent;
    }
    if (*sent < MESSAGES) {
        trp_tell(ctx, trp_self(ctx), &trp_bytes_type, "", 0);
    }
    return TRP_OK;
}
static const trp_behaviour teller = TRP_BEHAVIOUR_INIT("teller", uint64_t, teller_receive);

/* At saturation: two writes a turn, and fewer when the lane is full. */
static void
a_write_carries_hundreds_of_messages(void)
{
    char path[TRP_PATH_BYTES_MAX];
    trpi_remote_options options = { .transport = ops };
    memset(&p, 0, sizeof p);
    atomic_store(&counted, 0);
    pair_log_clear();
    odd_begin();
    p.system[0] = odd_system("left");
    p.system[1] = pair_system("right");
    pair_remote(&p, 0, &options, 0);
    pair_remote(&p, 1, &options, 0);
    pair_spawn(p.system[1], &counter, "counter", NULL, NULL, 0);
    UNIT_EQUAL(trp_system_resolve(p.system[0], pair_path(&p, 1, "/user/counter", path, sizeof path),
                                  60000, &counter_ref),
               TRP_OK);
    trp_ref from = pair_spawn(p.system[0], &teller, "teller", NULL, NULL, 0);
    trp_system_tell(p.system[0], from, &trp_bytes_type, "", 0);
    UNIT_WAIT(atomic_load(&counted) == MESSAGES, 120000);
    uint64_t each = MESSAGES / (atomic_load(&long_writes) + 1);
    printf("  messages a write: %llu\n", (unsigned long long)each);
    UNIT_TRUE(each >= A_WRITE);
    pair_end(&p);
    trpi_world_free(odd.real);
}

UNIT_BEGIN("poll")
UNIT(parts_of_a_write_arrive_whole_and_in_order)
UNIT(a_paused_link_reads_no_more_until_it_may)
UNIT(a_close_from_bytes_is_the_end_of_it)
UNIT(accept_pauses_without_a_descriptor_and_goes_on)
UNIT(a_write_carries_hundreds_of_messages)
UNIT_END

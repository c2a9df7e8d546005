/* done_test.c - who writes, for how long, and what outlives it: writes that block, and writes that
 * are done at once. */
#include "remote/association/conn_state.h"
#include "remote/nng/link_nng.h"
#include "tests/unit/remote/answers.h"
#include "tests/unit/remote/pair.h"

static pair p;
static char path_buffer[TRP_PATH_BYTES_MAX];

#define RIGHT(path) pair_path(&p, 1, (path), path_buffer, sizeof path_buffer)

static _Atomic uint32_t counted;

static trp_err
count_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    atomic_fetch_add(&counted, 1);
    return TRP_OK;
}
static const trp_behaviour counter = TRP_BEHAVIOUR_INIT("counter", char, count_receive);

/* ---- a transport with a slow writer ---------------------------------------------------------- */

static atomic_bool hold, inside, stopped, freed, freed_inside;

/* A large write stands before the network until it is let go. */
static trp_err
held_write(trpi_link *link, const trpi_iov *iov, size_t count, bool *ret_done)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += iov[i].bytes;
    }
    if (bytes > 4096 && atomic_load(&hold)) {
        atomic_store(&inside, true);
        while (atomic_load(&hold)) {
            unit_pause();
        }
        atomic_store(&inside, false);
    }
    return trpi_link_nng_ops.write(link, iov, count, ret_done);
}

static void
held_stop(trpi_transport *transport)
{
    trpi_link_nng_ops.stop(transport);
    atomic_store(&stopped, true);
}

static void
held_free(trpi_transport *transport)
{
    if (atomic_load(&inside)) {
        atomic_store(&freed_inside, true);
    }
    atomic_store(&freed, true);
    trpi_link_nng_ops.free(transport);
}

static void *
remote_stopper(void *arg)
{
    (void)arg;
    trpi_remote_stop(p.remote[0]);
    return NULL;
}

static void
a_transport_outlives_who_writes_to_it_while_remoting_stops(void)
{
    static char text[8192];
    trpi_transport_ops ops = trpi_link_nng_ops;
    ops.write = held_write;
    ops.stop = held_stop;
    ops.free = held_free;
    trpi_remote_options options = { .transport = &ops, .flush_on_shutdown_ms = 1 };
    trp_ref echo = TRP_REF_NONE;
    pthread_t stopper;
    pair_start(&p, false, &options);
    pair_spawn(p.system[1], &pair_echo, "echo", NULL, NULL, 0);
    UNIT_EQUAL(trp_system_resolve(p.system[0], RIGHT("/user/echo"), 60000, &echo), TRP_OK);
    memset(text, 'x', sizeof text);
    atomic_store(&hold, true);
    trp_system_tell(p.system[0], echo, &trp_string_type, text, sizeof text);
    UNIT_WAIT(atomic_load(&inside), 60000);
    UNIT_REQUIRE(pthread_create(&stopper, NULL, remote_stopper, NULL) == 0);
    UNIT_WAIT(atomic_load(&stopped), 60000);
    for (int i = 0; i < 20; i++) { /* long enough to go wrong */
        unit_pause();
    }
    UNIT_FALSE(atomic_load(&freed));
    atomic_store(&hold, false);
    pthread_join(stopper, NULL);
    UNIT_TRUE(atomic_load(&freed) && !atomic_load(&freed_inside));
    p.remote[0] = NULL;
    pair_end(&p);
}

/* Bytes that wait for the right side. */
static uint64_t
waiting_bytes(void)
{
    trpi_peer_info info;
    size_t count = 0;
    uint64_t bytes = 0;
    trpi_remote_peers(p.remote[0], &info, 1, &count);
    for (int lane = 0; count == 1 && lane < TRPI_LANE_COUNT; lane++) {
        bytes += info.lanes[lane].waiting_bytes;
    }
    return bytes;
}

/* TRPI_WRITES_AT_ONCE: more gathers while two systems connect than one thread writes. */
static void
one_thread_writes_so_many_times_and_another_goes_on(void)
{
    enum { MESSAGES = (TRPI_WRITES_AT_ONCE + 2) * 16 };
    static char text[65536];
    trpi_remote_options options = { .lane_bytes_max = 64u << 20 };
    answers_begin(ANSWERS_ALWAYS);
    atomic_store(&answers.hold, true);
    pair_driver = &answers_ops;
    pair_start(&p, false, &options);
    atomic_store(&counted, 0);
    pair_spawn(p.system[1], &counter, "counter", NULL, NULL, 0);
    for (int i = 0; i < MESSAGES; i++) {
        UNIT_EQUAL(trp_system_select_tell(p.system[0], RIGHT("/user/counter"), &trp_bytes_type,
                                          text, sizeof text),
                   TRP_OK);
    }
    UNIT_WAIT(waiting_bytes() >= MESSAGES * sizeof text, 60000);
    atomic_store(&answers.hold, false);
    UNIT_WAIT(atomic_load(&counted) == MESSAGES, 60000);
    UNIT_TRUE(atomic_load(&answers.asked_late) > 0);
    pair_end(&p);
    pair_driver = NULL;
    answers_end();
}

UNIT_BEGIN("done")
UNIT(a_transport_outlives_who_writes_to_it_while_remoting_stops)
UNIT(one_thread_writes_so_many_times_and_another_goes_on)
UNIT_END

/* control_lane_test.c - heartbeats are answered while threads of the answering node stand still: in
 * a tell to the peer that asks, with the lock of that peer, in a look at the cluster, in an
 * allocation, in a log call. And what the thread that answers takes: no memory, and of all locks
 * those of its links.
 *
 * A program of its own, for its malloc() and pthread_mutex_lock() count the calls of that thread.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <sys/prctl.h>

#include <troupe/serialization.h>

#include "base/wire.h"
#include "remote/association/conn.h"
#include "remote/association/control_reserve.h"
#include "tests/unit/remote/control_cluster.h"
#include "tests/unit/remote/duo.h"

/* ---- what the threads for control lanes take ------------------------------------------------- */

enum { MUTEXES_MAX = 64 };

static atomic_bool closed, inside; /* a thread stands still until it is open */
static atomic_bool counting;
static atomic_uint mallocs, tls_mallocs;
static _Atomic(void *) mutexes[MUTEXES_MAX]; /* different ones */

#ifndef UNIT_SANITIZED
static _Thread_local int is_control; /* 0: not known yet */

static bool
is_counted(void)
{
    if (!atomic_load_explicit(&counting, memory_order_relaxed)) {
        return false;
    }
    if (is_control == 0) {
        char name[17] = "";

        (void)prctl(PR_GET_NAME, name);
        is_control = strcmp(name, "troupe-control") == 0 ? 1 : -1;
    }
    return is_control == 1;
}

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

static _Thread_local volatile bool stands_in_malloc; /* the compiler knows malloc() */

static void
malloc_seen(void)
{
    if (is_counted()) {
        atomic_fetch_add(&mallocs, 1);
    }
    while (stands_in_malloc && atomic_load(&closed)) {
        atomic_store(&inside, true);
        unit_pause();
    }
}

void *
malloc(size_t bytes)
{
    malloc_seen();
    return __libc_malloc(bytes);
}
void *
calloc(size_t count, size_t bytes)
{
    malloc_seen();
    return __libc_calloc(count, bytes);
}
void *
realloc(void *old, size_t bytes)
{
    malloc_seen();
    return __libc_realloc(old, bytes);
}

static int (*real_lock)(pthread_mutex_t *mutex);

int
pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (real_lock == NULL) {
        *(void **)&real_lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    }
    for (int i = 0; i < MUTEXES_MAX && is_counted(); i++) {
        void *none = NULL;

        if (atomic_load(&mutexes[i]) == mutex ||
            atomic_compare_exchange_strong(&mutexes[i], &none, mutex)) {
            break;
        }
    }
    return real_lock(mutex);
}

/* OpenSSL's own memory is counted apart. */
static void *
tls_malloc(size_t bytes, const char *file, int line)
{
    (void)file;
    (void)line;
    atomic_fetch_add(&tls_mallocs, is_counted());
    return __libc_malloc(bytes);
}
static void *
tls_realloc(void *old, size_t bytes, const char *file, int line)
{
    (void)file;
    (void)line;
    atomic_fetch_add(&tls_mallocs, is_counted());
    return __libc_realloc(old, bytes);
}
static void
tls_free(void *memory, const char *file, int line)
{
    (void)file;
    (void)line;
    free(memory);
}
__attribute__((constructor)) static void
tls_count(void)
{
    (void)CRYPTO_set_mem_functions(tls_malloc, tls_realloc, tls_free);
}

static uint32_t
mutexes_count(void)
{
    uint32_t count = 0;

    for (int i = 0; i < MUTEXES_MAX; i++) {
        count += atomic_load(&mutexes[i]) != NULL;
    }
    return count;
}
#endif

static bool
is_taken(const pthread_mutex_t *mutex)
{
    for (int i = 0; i < MUTEXES_MAX; i++) {
        if (atomic_load(&mutexes[i]) == mutex) {
            return true;
        }
    }
    return false;
}

/* ---- two nodes and beats between them -------------------------------------------------------- */

static duo d;
static _Atomic uint64_t answered;

static void
on_answer(void *arg, const trpi_node_id *from, const uint8_t *bytes, size_t count,
          uint64_t arrived_ns)
{
    (void)arg;
    (void)from;
    UNIT_TRUE(arrived_ns > 0);
    if (count == TRPI_BEAT_BYTES && bytes[0] == 2) {
        atomic_store(&answered, trpi_get_u64(bytes + 1));
    }
}

static trpi_node_id
node_of(int i)
{
    return (trpi_node_id){ *trpi_remote_address(d.remote[i]), trpi_system_self(d.system[i])->uid };
}

/* Ask until an answer comes. */
static bool
beat(uint64_t number)
{
    trpi_node_id to = node_of(1);
    uint8_t bytes[TRPI_BEAT_BYTES] = { 1 };

    trpi_put_u64(bytes + 1, number);
    trp_err err =
        trpi_remote_control_send(d.remote[0], &to, TRPI_CHANNEL_HEARTBEAT, bytes, sizeof bytes);
    return err == TRP_OK && UNIT_WAIT(atomic_load(&answered) == number, 20000);
}

static trpi_peer *
peer_of(int i)
{
    trpi_node_id other = node_of(1 - i);
    trpi_peer *peer = NULL;

    UNIT_REQUIRE(trpi_peer_get(d.remote[i], &other.address, true, &peer) == TRP_OK);
    return peer;
}

static bool
is_handed_over(int i)
{
    trpi_peer *peer = peer_of(i);
    bool handed = false;

    pthread_mutex_lock(&peer->lock);
    for (const trpi_conn *conn = trpi_peer_conns(peer); conn != NULL; conn = trpi_conn_next(conn)) {
        handed = handed || conn->control != NULL;
    }
    pthread_mutex_unlock(&peer->lock);
    trpi_peer_unpin(peer);
    return handed;
}

static uint64_t beats;

static void
nodes_start(bool tls)
{
    const side left = { .ca = "ca", .cert = tls ? "left" : NULL };
    const side right = { .ca = "ca", .cert = tls ? "right" : NULL };

    pair_other = strcmp(pair_drives(), "poll") != 0;
    duo_start(&d, &left, &right);
    trpi_remote_control_bind(d.remote[0], TRPI_CHANNEL_HEARTBEAT, on_answer, NULL);
}

/* Each beat may be the one after whose bytes a connection is handed over. */
static void
lanes_hand_over(void)
{
    UNIT_WAIT(beat(++beats) && is_handed_over(0) && is_handed_over(1), 60000);
}

static void
beats_count(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        UNIT_TRUE(beat(++beats));
    }
}

/* ---- threads that stand still ---------------------------------------------------------------- */

static void
stand(void)
{
    atomic_store(&inside, true);
    while (atomic_load(&closed)) {
        unit_pause();
    }
}

typedef void still_fn(void);

static void *
still_main(void *arg)
{
    still_fn *const *fn = arg;

    (*fn)();
    return NULL;
}

/* Beats are answered while fn stands still on a thread of the node that answers. */
static void
answered_while(still_fn *fn)
{
    pthread_t thread;

    atomic_store(&inside, false);
    atomic_store(&closed, true);
    UNIT_REQUIRE(pthread_create(&thread, NULL, still_main, &fn) == 0);
    UNIT_WAIT(atomic_load(&inside), 20000);
    beats_count(10);
    atomic_store(&closed, false);
    UNIT_EQUAL(pthread_join(thread, NULL), 0);
}

static trp_err
still_encode(void *arg, trp_wire *wire, const trp_type *type, const void *payload, size_t bytes)
{
    (void)arg;
    (void)type;
    stand();
    return trp_wire_put(wire, payload, bytes);
}
static trp_err
still_decode(void *arg, trp_wire *wire, const trp_type *type, const void *data, size_t bytes)
{
    (void)arg;
    (void)type;
    return trp_wire_put(wire, data, bytes);
}
static const trp_serializer still = { sizeof still, 40,           { 0 },       "still",
                                      NULL,         still_encode, still_decode };
static trp_type still_type = { "control.still", sizeof(int64_t), 1, 0, NULL, 0, 0 };
static trp_type *const still_types[] = { &still_type };
static const trp_protocol still_protocol = { "control", still_types, 1, 0 };

static trp_ref abroad;

static void
in_a_tell(void)
{
    int64_t number = 1;

    trp_system_tell(d.system[1], abroad, &still_type, &number, sizeof number);
    while (atomic_load(&closed)) { /* a worker's turn may encode it */
        unit_pause();
    }
}

static void
with_the_lock_of_the_peer(void)
{
    trpi_peer *peer = peer_of(1);

    pthread_mutex_lock(&peer->lock);
    stand();
    pthread_mutex_unlock(&peer->lock);
    trpi_peer_unpin(peer);
}

static pthread_mutex_t *engine_lock;

static void
in_a_look_at_the_cluster(void)
{
    pthread_mutex_lock(engine_lock);
    stand();
    pthread_mutex_unlock(engine_lock);
}

static void
in_an_allocation(void)
{
#ifdef UNIT_SANITIZED
    stand(); /* the sanitizers have malloc() */
#else
    stands_in_malloc = true;
    void *volatile memory = malloc(100);
    stands_in_malloc = false;
    free(memory);
#endif
}

static void
in_a_log_call(void)
{
    pthread_mutex_lock(&pair_lines.lock); /* of the sink */
    trpi_log(d.system[1], TRP_LOG_INFO, "test", "a line that the sink does not take");
    stand();
    pthread_mutex_unlock(&pair_lines.lock);
}

static void
count_begin(void)
{
    atomic_store(&mallocs, 0);
    atomic_store(&tls_mallocs, 0);
    for (int i = 0; i < MUTEXES_MAX; i++) {
        atomic_store(&mutexes[i], NULL);
    }
    atomic_store(&counting, true);
}

/* No memory, and of all locks those of the links. */
static void
count_end(bool tls)
{
    trpi_peer *peers[2] = { peer_of(0), peer_of(1) };

    atomic_store(&counting, false);
#ifndef UNIT_SANITIZED
    UNIT_EQUAL(atomic_load(&mallocs), 0);
    UNIT_TRUE(mutexes_count() > 0);
    UNIT_TRUE(mutexes_count() <= (tls ? 4 : 2));
    printf("  of %" PRIu64 " beats: locks %u, allocations of OpenSSL %u\n", beats, mutexes_count(),
           atomic_load(&tls_mallocs));
#endif
    (void)tls;
    for (int i = 0; i < 2; i++) {
        UNIT_FALSE(is_taken(&peers[i]->lock));
        UNIT_FALSE(is_taken(&d.remote[i]->lock));
        trpi_peer_unpin(peers[i]);
    }
    UNIT_FALSE(is_taken(engine_lock));
}

/* ---- two connections ------------------------------------------------------------------------- */

static uint32_t
control_conns(int i)
{
    trpi_peer *peer = peer_of(i);
    uint32_t count = 0;

    pthread_mutex_lock(&peer->lock);
    for (const trpi_conn *conn = trpi_peer_conns(peer); conn != NULL; conn = trpi_conn_next(conn)) {
        count += trpi_conn_lane(conn) == TRPI_LANE_CONTROL && trpi_conn_is_open(conn);
    }
    pthread_mutex_unlock(&peer->lock);
    trpi_peer_unpin(peer);
    return count;
}

static pthread_barrier_t start_line;

static void *
knock_main(void *arg)
{
    const int *own = arg;
    trpi_node_id to = node_of(1 - *own);

    to.uid = 0;
    (void)pthread_barrier_wait(&start_line);
    (void)trpi_remote_control_send(d.remote[*own], &to, TRPI_CHANNEL_GOSSIP, "knock", 5);
    return NULL;
}

/* control-lane-C5: both dial at once, and each sends on its own connection. Chance decides whether
 * the dials cross: about each third time. */
static void
heartbeats_are_answered_where_dials_have_crossed(void)
{
    enum { ROUNDS = 60, CROSSED = 3 };
    uint32_t crossed = 0;

    UNIT_EQUAL(pthread_barrier_init(&start_line, NULL, 2), 0);
    for (int round = 0; round < ROUNDS && crossed < CROSSED; round++) {
        int sides[2] = { 0, 1 };
        pthread_t threads[2];

        nodes_start(false);
        void *cluster = control_cluster_start(d.system[1], d.remote[1], &engine_lock);
        UNIT_REQUIRE(cluster != NULL);
        for (int i = 0; i < 2; i++) {
            UNIT_REQUIRE(pthread_create(&threads[i], NULL, knock_main, &sides[i]) == 0);
        }
        for (int i = 0; i < 2; i++) {
            UNIT_EQUAL(pthread_join(threads[i], NULL), 0);
        }
        lanes_hand_over();
        trpi_peer *peer = peer_of(1);
        UNIT_WAIT(trpi_peer_carrier(peer) != NULL, 20000);
        trpi_peer_unpin(peer);
        beats_count(10);
        pair_other = false;
        crossed += control_conns(1) > 1;
        control_cluster_stop(cluster);
        duo_end(&d);
        control_cluster_free(cluster);
    }
    (void)pthread_barrier_destroy(&start_line);
    printf("  crossed: %u\n", crossed);
}

static void
heartbeats_are_answered(bool tls)
{
    void *cluster;
    nodes_start(tls);
    UNIT_REQUIRE(trp_protocol_register(&still_protocol) == TRP_OK);
    UNIT_REQUIRE(trp_serializer_add(d.system[0], &still) == TRP_OK);
    UNIT_REQUIRE(trp_serializer_add(d.system[1], &still) == TRP_OK);
    UNIT_REQUIRE(trp_serializer_bind(d.system[1], "control.still", "still") == TRP_OK);
    cluster = control_cluster_start(d.system[1], d.remote[1], &engine_lock);
    UNIT_REQUIRE(cluster != NULL);
    trpi_node_id id = node_of(0);
    abroad = pair_spawn(d.system[0], &pair_echo, "echo", NULL, NULL, 0);
    UNIT_REQUIRE(trpi_node_intern(d.system[1], &id, &abroad.node) == TRP_OK);
    lanes_hand_over();
    count_begin();
    answered_while(in_a_tell);
    answered_while(with_the_lock_of_the_peer);
    answered_while(in_a_look_at_the_cluster);
    answered_while(in_an_allocation);
    answered_while(in_a_log_call);
    count_end(tls);
    control_cluster_stop(cluster);
    duo_end(&d);
    control_cluster_free(cluster);
    pair_other = false;
}

static atomic_int sent;

static void *
send_main(void *arg)
{
    trpi_node_id to = node_of(1);
    uint8_t bytes[TRPI_BEAT_BYTES] = { 1 };

    trpi_put_u64(bytes + 1, *(uint64_t *)arg);
    atomic_store(&sent, trpi_remote_control_send(d.remote[0], &to, TRPI_CHANNEL_HEARTBEAT, bytes,
                                                 sizeof bytes));
    return NULL;
}

/* As by a thread that has lost its processor with the lock (beat_box.h). */
static void
a_heartbeat_leaves_while_another_thread_has_the_lock(bool tls)
{
    trpi_peer *peer;
    pthread_t thread;
    uint64_t answers;

    nodes_start(tls);
    void *cluster = control_cluster_start(d.system[1], d.remote[1], &engine_lock);
    UNIT_REQUIRE(cluster != NULL);
    lanes_hand_over();
    peer = peer_of(0);
    UNIT_WAIT(trpi_peer_carrier(peer) != NULL && beat(++beats), 60000);
    pthread_mutex_lock(&peer->lock);
    atomic_store(&sent, -1);
    answers = atomic_load(&d.remote[1]->stats.frames_out);
    beats++;
    UNIT_REQUIRE(pthread_create(&thread, NULL, send_main, &beats) == 0);
    UNIT_WAIT(atomic_load(&sent) == TRP_OK, 20000);
    UNIT_WAIT(atomic_load(&d.remote[1]->stats.frames_out) > answers, 20000);
    pthread_mutex_unlock(&peer->lock);
    UNIT_EQUAL(pthread_join(thread, NULL), 0);
    UNIT_WAIT(atomic_load(&answered) == beats, 20000);
    trpi_peer_unpin(peer);
    beats_count(10);
    control_cluster_stop(cluster);
    duo_end(&d);
    control_cluster_free(cluster);
    pair_other = false;
}

static void
a_heartbeat_leaves_while_its_lane_is_locked(void)
{
    a_heartbeat_leaves_while_another_thread_has_the_lock(false);
    a_heartbeat_leaves_while_another_thread_has_the_lock(true);
}

static void
heartbeats_are_answered_while_threads_stand_still(void)
{
    heartbeats_are_answered(false);
}

static void
heartbeats_are_answered_while_threads_stand_still_over_tls(void)
{
    heartbeats_are_answered(true);
}

/* ---- what is handed on ----------------------------------------------------------------------- */

static _Atomic uint64_t frames_came, frames_wrong;

/* Each frame begins with its number. */
static void
on_frame(void *arg, const trpi_node_id *from, const uint8_t *bytes, size_t count,
         uint64_t arrived_ns)
{
    uint64_t number = count >= 8 ? trpi_get_u64(bytes) : 0;

    (void)arg;
    (void)from;
    (void)arrived_ns;
    for (size_t i = 8; i < count; i++) {
        atomic_fetch_add(&frames_wrong, bytes[i] != (uint8_t)(number + i));
    }
    atomic_fetch_add(&frames_wrong, number != atomic_fetch_add(&frames_came, 1) + 1);
}

/* false: the lane is full. */
static bool
frame_send(uint64_t number, size_t count)
{
    static uint8_t bytes[65536];
    trpi_node_id to = node_of(1);

    trpi_put_u64(bytes, number);
    for (size_t i = 8; i < count; i++) {
        bytes[i] = (uint8_t)(number + i);
    }
    return trpi_remote_control_send(d.remote[0], &to, TRPI_CHANNEL_GOSSIP, bytes, count) == TRP_OK;
}

static bool
reply(const uint8_t *bytes, size_t count, uint8_t answer[TRPI_BEAT_BYTES])
{
    if (count != TRPI_BEAT_BYTES || bytes[0] != 1) {
        return false;
    }
    memcpy(answer, bytes, count);
    answer[0] = 2;
    return true;
}

static void
receivers_begin(void)
{
    atomic_store(&frames_came, 0);
    atomic_store(&frames_wrong, 0);
    trpi_remote_control_bind(d.remote[1], TRPI_CHANNEL_GOSSIP, on_frame, NULL);
    trpi_remote_beats_answer(d.remote[1], reply);
}

/* Frames of many lengths, and beats between them. */
static void
frames_arrive_whole_and_in_order(bool tls)
{
    uint64_t number = 0;

    nodes_start(tls);
    receivers_begin();
    lanes_hand_over();
    for (size_t bytes = 8; bytes <= 65536; bytes += bytes / 3) {
        for (int i = 0; i < 8; i++) {
            UNIT_WAIT(frame_send(number + 1, bytes), 20000);
            number++;
        }
        UNIT_TRUE(beat(++beats));
    }
    UNIT_WAIT(atomic_load(&frames_came) == number, 20000);
    UNIT_EQUAL(atomic_load(&frames_wrong), 0);
    trpi_remote_control_bind(d.remote[1], TRPI_CHANNEL_GOSSIP, NULL, NULL);
    duo_end(&d);
    pair_other = false;
}

static void
other_frames_arrive_whole_and_in_order(void)
{
    frames_arrive_whole_and_in_order(false);
}

static void
other_frames_arrive_whole_and_in_order_over_tls(void)
{
    frames_arrive_whole_and_in_order(true);
}

/* More comes than may wait for a worker: it waits in the network, and nothing is lost. */
static void
a_lane_whose_share_is_used_up_waits_and_goes_on(void)
{
    enum { BYTES = 4000, FRAMES = 3 * TRPI_CONTROL_COMMON * TRPI_CONTROL_BLOCK_BYTES / BYTES };
    uint64_t number = 0;

    nodes_start(false);
    receivers_begin();
    lanes_hand_over();
    trpi_peer *peer = peer_of(1);
    pthread_rwlock_wrlock(
        &d.remote[1]->channels[TRPI_CHANNEL_GOSSIP].lock); /* no worker takes it */
    for (int refused = 0; number < FRAMES && refused < 1000;) {
        if (frame_send(number + 1, BYTES)) {
            number++;
            refused = 0;
        } else { /* the sender's lane is full */
            refused++;
            unit_pause();
        }
    }
    UNIT_TRUE(number > TRPI_CONTROL_COMMON * TRPI_CONTROL_BLOCK_BYTES / BYTES);
    pthread_rwlock_unlock(&d.remote[1]->channels[TRPI_CHANNEL_GOSSIP].lock);
    UNIT_WAIT(atomic_load(&frames_came) == number, 60000);
    UNIT_EQUAL(atomic_load(&frames_wrong), 0);
    UNIT_TRUE(beat(++beats));
    trpi_peer_unpin(peer);
    trpi_remote_control_bind(d.remote[1], TRPI_CHANNEL_GOSSIP, NULL, NULL);
    duo_end(&d);
    pair_other = false;
}

UNIT_BEGIN("control_lane")
UNIT(heartbeats_are_answered_while_threads_stand_still)
UNIT(heartbeats_are_answered_while_threads_stand_still_over_tls)
UNIT(heartbeats_are_answered_where_dials_have_crossed)
UNIT(a_heartbeat_leaves_while_its_lane_is_locked)
UNIT(other_frames_arrive_whole_and_in_order)
UNIT(other_frames_arrive_whole_and_in_order_over_tls)
UNIT(a_lane_whose_share_is_used_up_waits_and_goes_on)
UNIT_END

/* poller_test.c - watches of sockets: no edge is lost, callbacks of one watch do not overlap, the
 * last one comes once; and what a watch of an earlier generation is not told. */
#include "tests/unit/io/pool.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"

typedef struct end {
    int number; /* its socket */
    trpi_watch *watch;
    _Atomic uint32_t bytes, calls, inside, removed, overlaps;
    _Atomic uint32_t events;    /* all that came */
    _Atomic uint32_t more;      /* times that ready() asks to be called again */
    _Atomic bool removes, held; /* in ready(): remove the watch; wait */
    _Atomic bool in_call;       /* the test is inside a call of the interface */
    bool closes;
} end;

static uint32_t
on_ready(void *user, uint32_t events)
{
    end *e = user;

    if (atomic_fetch_add(&e->inside, 1) != 0 || atomic_load(&e->removed) != 0) {
        atomic_fetch_add(&e->overlaps, 1);
    }
    while (atomic_load(&e->held)) {
        unit_pause();
    }
    atomic_fetch_or(&e->events, events);
    atomic_fetch_add(&e->bytes, (events & TRPI_NET_IN) != 0 ? pool_drain(e->number) : 0);
    if (atomic_load(&e->removes)) {
        trpi_watch_remove(e->watch);
        trpi_watch_remove(e->watch);
        UNIT_EQUAL(atomic_load(&e->removed), 0); /* not from inside the call */
    }
    atomic_fetch_sub(&e->inside, 1);
    atomic_fetch_add(&e->calls, 1);
    if (atomic_load(&e->more) != 0) {
        atomic_fetch_sub(&e->more, 1);
        return TRPI_NET_IN;
    }
    return 0;
}

static void
on_removed(void *user)
{
    end *e = user;

    if (atomic_load(&e->inside) != 0) {
        atomic_fetch_add(&e->overlaps, 1);
    }
    if (e->closes) {
        (void)close(e->number);
    }
    atomic_fetch_add(&e->removed, 1);
}

static const trpi_watch_events events = { on_ready, on_removed };

static void
watched(end *e, int number)
{
    e->number = number;
    UNIT_REQUIRE(trpi_watch_new(pool.poller, number, &events, e, &e->watch) == TRP_OK);
}

static unsigned
descriptors_open(void)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned count = 0;

    UNIT_REQUIRE(directory != NULL);
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

static void
bytes_are_delivered_and_left_ones_again(void)
{
    end e = { .more = 5 };
    int pair[2];

    pool_open(2);
    pool_pair(pair);
    watched(&e, pair[0]);
    UNIT_EQUAL(trpi_poller_watches(pool.poller), 1);
    UNIT_WAIT((atomic_load(&e.events) & TRPI_NET_OUT) != 0, 5000);
    UNIT_WAIT(atomic_load(&e.calls) >= 6, 5000); /* asked for, without a report */
    for (uint32_t sent = 1; sent <= 100; sent++) {
        UNIT_EQUAL(write(pair[1], "b", 1), 1);
        if (sent % 10 == 0) {
            UNIT_WAIT(atomic_load(&e.bytes) == sent, 5000);
        }
    }
    (void)close(pair[1]);
    UNIT_WAIT((atomic_load(&e.events) & TRPI_NET_END) != 0, 5000);
    trpi_watch_remove(e.watch);
    UNIT_WAIT(atomic_load(&e.removed) == 1, 5000);
    UNIT_WAIT(trpi_poller_watches(pool.poller) == 0, 5000);
    pool_close();
    UNIT_EQUAL(e.overlaps, 0);
    (void)close(pair[0]);
}

/* poller-I2 */
static void
an_edge_during_a_callback_is_delivered_after_it(void)
{
    end e = { .held = true };
    int pair[2];

    pool_open(2);
    pool_pair(pair);
    watched(&e, pair[0]);
    UNIT_WAIT(atomic_load(&e.inside) == 1, 5000);
    UNIT_EQUAL(write(pair[1], "b", 1), 1);
    trpi_watch_again(e.watch, TRPI_NET_OUT);
    atomic_store(&e.held, false);
    UNIT_WAIT(atomic_load(&e.bytes) == 1, 5000);
    UNIT_WAIT(atomic_load(&e.calls) >= 2, 5000);
    pool_close();
    UNIT_EQUAL(e.removed, 1); /* by trpi_poller_free() */
    UNIT_EQUAL(e.overlaps, 0);
    (void)close(pair[0]);
    (void)close(pair[1]);
}

static void
a_watch_is_told_again_when_the_user_asks(void)
{
    end e = { .number = -1 };
    uint32_t calls;
    int pair[2];

    pool_open(1);
    pool_pair(pair);
    watched(&e, pair[0]);
    UNIT_WAIT(atomic_load(&e.calls) != 0, 5000);
    for (int i = 0; i < 50; i++) {
        calls = atomic_load(&e.calls);
        trpi_watch_again(e.watch, TRPI_NET_IN);
        UNIT_WAIT(atomic_load(&e.calls) > calls, 5000);
    }
    pool_close();
    (void)close(pair[0]);
    (void)close(pair[1]);
}

/* poller-I1 */
static void
a_removal_from_a_callback_and_from_outside_comes_once(void)
{
    end inner = { .removes = true, .closes = true }, outer = { .closes = true };
    int one[2], two[2];

    pool_open(2);
    pool_pair(one);
    pool_pair(two);
    watched(&outer, two[0]);
    watched(&inner, one[0]);
    UNIT_WAIT(atomic_load(&inner.removed) == 1, 5000);
    UNIT_EQUAL(inner.calls, 1);
    trpi_watch_remove(outer.watch);
    UNIT_WAIT(atomic_load(&outer.removed) == 1, 5000);
    UNIT_EQUAL(send(one[1], "b", 1, MSG_NOSIGNAL), -1); /* the other end is closed */
    pool_close();
    UNIT_EQUAL(inner.removed + outer.removed, 2);
    UNIT_EQUAL(inner.overlaps + outer.overlaps, 0);
    (void)close(one[1]);
    (void)close(two[1]);
}

static void
what_is_left_at_the_end_is_removed_and_no_descriptor_stays(void)
{
    static end ends[200];
    unsigned before = descriptors_open();
    int pair[2];

    pool_open(2);
    for (int i = 0; i < 200; i++) {
        pool_pair(pair);
        ends[i].closes = true;
        watched(&ends[i], pair[0]);
        UNIT_EQUAL(write(pair[1], "b", 1), 1);
        if (i % 3 == 0) {
            trpi_watch_remove(ends[i].watch); /* which closes the other end: SIGPIPE after it */
        }
        (void)close(pair[1]);
    }
    pool_close();
    for (int i = 0; i < 200; i++) {
        UNIT_EQUAL(ends[i].removed, 1);
        UNIT_EQUAL(ends[i].overlaps, 0);
    }
    UNIT_EQUAL(descriptors_open(), before);
}

/* poller-I4 */
static void
a_report_of_an_earlier_watch_is_dropped(void)
{
    end first = { .closes = true }, second = { .closes = true };
    uint64_t old_key;
    uint32_t calls;
    int one[2], two[2];

    pool_open(2);
    pool_pair(one);
    pool_pair(two);
    watched(&first, one[0]);
    old_key = atomic_load(&pool.last_key);
    trpi_watch_remove(first.watch);
    UNIT_WAIT(trpi_poller_watches(pool.poller) == 0, 5000);
    watched(&second, two[0]);
    UNIT_EQUAL((uint32_t)old_key, (uint32_t)atomic_load(&pool.last_key)); /* the same entry */
    atomic_store(&pool.late_key, old_key + 1);
    UNIT_WAIT(atomic_load(&second.calls) != 0, 5000);
    for (uint32_t i = 0; i < 10 || atomic_load(&pool.late_key) != 0; i++) {
        calls = atomic_load(&second.calls);
        UNIT_EQUAL(write(two[1], "b", 1), 1);
        UNIT_WAIT(atomic_load(&second.calls) > calls, 5000);
    }
    UNIT_EQUAL(atomic_load(&second.events) & TRPI_NET_END, 0);
    pool_close();
    (void)close(one[1]);
    (void)close(two[1]);
}

/* ---- a set that the test reports from -------------------------------------------------------- */

static struct fake {
    uint64_t last_key;
    int add_result;
    uint32_t removes;
} fake;

static int
fake_set_new(trpi_world *world, void (*on_due)(void *arg, uint64_t in_ns), void *arg,
             trpi_net_set **ret_set)
{
    (void)world;
    (void)on_due;
    (void)arg;
    *ret_set = (trpi_net_set *)(void *)&fake;
    return 0;
}

static void
fake_set_free(trpi_net_set *set)
{
    (void)set;
}

static int
fake_set_add(trpi_net_set *set, int number, uint64_t key)
{
    (void)set;
    (void)number;
    fake.last_key = key;
    return fake.add_result;
}

static void
fake_set_remove(trpi_net_set *set, int number)
{
    (void)set;
    (void)number;
    fake.removes++;
}

/* Make a poller of a scheduler that has not started: its functions run on this thread. */
static trpi_poller *
fake_poller(trpi_sched **ret_sched)
{
    static const trpi_sched_ops ops = { .run = pool_run, .thread = pool_thread };
    static trpi_net_ops net;
    trpi_sched_options options = { .workers = 1, .world = &pool.world, .ops = &ops, .name = "f" };
    trpi_poller *poller = NULL;

    memset(&fake, 0, sizeof fake);
    UNIT_REQUIRE(trpi_world_real_new(&pool.real) == TRP_OK);
    net = (trpi_net_ops){ .set_new = fake_set_new,
                          .set_free = fake_set_free,
                          .set_add = fake_set_add,
                          .set_remove = fake_set_remove };
    pool.world_ops = *pool.real->ops;
    pool.world_ops.mono_ns = pool_mono_ns;
    pool.world_ops.net = NULL;
    pool.world = (trpi_world){ .ops = &pool.world_ops };
    UNIT_REQUIRE(trpi_sched_new(&options, ret_sched) == TRP_OK);
    UNIT_EQUAL(trpi_poller_new(*ret_sched, &pool.world, &poller), TRP_EUNSUPPORTED);
    pool.world_ops.net = &net;
    trpi_alloc_fail_after(0);
    UNIT_EQUAL(trpi_poller_new(*ret_sched, &pool.world, &poller), TRP_ENOMEM);
    trpi_alloc_fail_after(-1);
    UNIT_REQUIRE(trpi_poller_new(*ret_sched, &pool.world, &poller) == TRP_OK);
    return poller;
}

static void
fake_close(trpi_sched *sched, trpi_poller *poller)
{
    trpi_poller_free(poller);
    trpi_sched_free(sched);
    trpi_world_free(pool.real);
}

static void
errors_of_the_set_give_the_entry_back(void)
{
    trpi_sched *sched = NULL;
    trpi_poller *poller = fake_poller(&sched);
    trpi_watch *watch = NULL;
    end e = { .number = 3 };

    trpi_alloc_fail_after(0);
    UNIT_EQUAL(trpi_watch_new(poller, 3, &events, &e, &watch), TRP_ENOMEM);
    trpi_alloc_fail_after(-1);
    fake.add_result = -EBADF;
    UNIT_EQUAL(trpi_watch_new(poller, 3, &events, &e, &watch), TRP_EIO);
    fake.add_result = -ENOSPC;
    UNIT_EQUAL(trpi_watch_new(poller, 3, &events, &e, &watch), TRP_ELIMIT);
    fake.add_result = -ENOMEM;
    UNIT_EQUAL(trpi_watch_new(poller, 3, &events, &e, &watch), TRP_ENOMEM);
    UNIT_EQUAL(trpi_poller_watches(poller), 0);
    fake.add_result = 0;
    UNIT_EQUAL(trpi_watch_new(poller, 3, &events, &e, &watch), TRP_OK);
    UNIT_EQUAL((uint32_t)fake.last_key, 0); /* the same entry */
    UNIT_TRUE(fake.last_key >> 32 != 0);    /* another generation */
    UNIT_EQUAL(trpi_poller_watches(poller), 1);
    fake_close(sched, poller);
    UNIT_EQUAL(e.removed, 1);
    UNIT_EQUAL(fake.removes, 1);
}

static void
watches_have_a_limit(void)
{
    trpi_sched *sched = NULL;
    trpi_poller *poller = fake_poller(&sched);
    trpi_watch *watch = NULL;
    end e = { .number = 3 };
    uint32_t made = 0;

    while (trpi_watch_new(poller, 3, &events, &e, &watch) == TRP_OK) {
        made++;
    }
    UNIT_EQUAL(made, TRPI_WATCHES_MAX);
    UNIT_EQUAL((uint32_t)fake.last_key, TRPI_WATCHES_MAX - 1);
    UNIT_EQUAL(trpi_watch_new(poller, 3, &events, &e, &watch), TRP_ELIMIT);
    fake_close(sched, poller);
    UNIT_EQUAL(e.removed, TRPI_WATCHES_MAX);
}

/* ---- a system -------------------------------------------------------------------------------- */

static void
a_system_makes_its_poller_when_it_is_asked(void)
{
    trp_system *system = NULL;
    trpi_poller *poller = NULL, *same = NULL;
    unsigned before = descriptors_open(), without;
    end e = { .closes = true };
    int pair[2];

    UNIT_REQUIRE(trp_system_new("poll", NULL, &system) == TRP_OK);
    without = descriptors_open();
    UNIT_REQUIRE(trpi_system_poller(system, &poller) == TRP_OK);
    UNIT_EQUAL(descriptors_open(), without + 2);
    UNIT_EQUAL(trpi_system_poller(system, &same), TRP_OK);
    UNIT_TRUE(poller == same);
    pool_pair(pair);
    e.number = pair[0];
    UNIT_EQUAL(trpi_watch_new(poller, pair[0], &events, &e, &e.watch), TRP_OK);
    UNIT_EQUAL(write(pair[1], "byte", 4), 4);
    UNIT_WAIT(atomic_load(&e.bytes) == 4, 5000);
    trp_system_free(system);
    UNIT_EQUAL(e.removed, 1);
    (void)close(pair[1]);
    UNIT_EQUAL(descriptors_open(), before);
}

static _Atomic uint32_t heard, heard_from_somebody, context_of_worker;

static trp_err
listener_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    (void)msg;
    atomic_fetch_add(&heard_from_somebody, !trp_ref_is_none(trp_sender(ctx)));
    atomic_fetch_add(&heard, 1);
    return TRP_OK;
}

static const trp_behaviour listener = {
    .size = sizeof(trp_behaviour), .name = "listener", .version = 1, .receive = listener_receive
};

typedef struct teller {
    trp_system *system;
    trp_ref to;
    int number;
} teller;

/* Tell three times: the second and third message wait in a chain, which nobody but the end of this
 * run pushes. */
static uint32_t
teller_ready(void *user, uint32_t reported)
{
    teller *t = user;

    if ((reported & TRPI_NET_IN) != 0 && pool_drain(t->number) != 0) {
        trp_ctx *ctx = trpi_enter(t->system);

        atomic_fetch_add(&context_of_worker, trpi_worker_current() != NULL &&
                                                 ctx == trpi_worker_data(trpi_worker_current()));
        for (int i = 0; i < 3; i++) {
            trpi_tell(ctx, t->to, (trp_ref)TRP_REF_NONE, &trp_string_type, "x", 1);
        }
        trpi_leave(ctx);
    }
    return 0;
}

static void
teller_removed(void *user)
{
    (void)close(((teller *)user)->number);
}

static void
what_a_callback_tells_arrives_without_a_sender(void)
{
    static const trpi_watch_events telling = { teller_ready, teller_removed };
    trpi_poller *poller = NULL;
    trpi_watch *watch = NULL;
    teller t = { .system = NULL };
    int pair[2];

    UNIT_REQUIRE(trp_system_new("poll", NULL, &t.system) == TRP_OK);
    UNIT_REQUIRE(trp_system_spawn(t.system, &listener, NULL, &t.to) == TRP_OK);
    UNIT_REQUIRE(trpi_system_poller(t.system, &poller) == TRP_OK);
    pool_pair(pair);
    t.number = pair[0];
    UNIT_REQUIRE(trpi_watch_new(poller, pair[0], &telling, &t, &watch) == TRP_OK);
    for (uint32_t i = 1; i <= 20; i++) {
        UNIT_EQUAL(write(pair[1], "b", 1), 1);
        UNIT_WAIT(atomic_load(&heard) == 3 * i, 20000);
    }
    UNIT_EQUAL(heard_from_somebody, 0);
    UNIT_TRUE(context_of_worker != 0);
    trp_system_free(t.system);
    (void)close(pair[1]);
}

/* ---- many threads ---------------------------------------------------------------------------- */

#define ENDS 24
#define WRITERS 3
#define ROUNDS 60

static struct storm {
    struct place {
        end *_Atomic e;
        int far; /* the other end */
    } places[ENDS];
    _Atomic uint32_t sent, got, made, removed, overlaps;
    _Atomic uint32_t rounds;
    uint64_t seed;
} storm;

static void
storm_removed(void *user)
{
    end *e = user;

    atomic_fetch_add(&storm.got, atomic_load(&e->bytes) + pool_drain(e->number));
    atomic_fetch_add(&storm.overlaps, atomic_load(&e->overlaps) + atomic_load(&e->inside));
    atomic_fetch_add(&storm.removed, 1);
    (void)close(e->number);
    free(e);
}

static uint64_t
random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Each writer owns its places: it makes watches, writes, asks again, and removes. */
static void *
storm_main(void *arg)
{
    static const trpi_watch_events storm_events = { on_ready, storm_removed };
    size_t me = (size_t)(uintptr_t)arg;
    uint64_t state = storm.seed + me;

    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = me; i < ENDS; i += WRITERS) {
            struct place *place = &storm.places[i];
            end *e = calloc(1, sizeof *e);
            int pair[2];

            UNIT_TRUE(e != NULL);
            if (e == NULL ||
                socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) {
                UNIT_FAIL("no socket");
                free(e);
                return NULL;
            }
            e->number = pair[0];
            place->far = pair[1];
            atomic_store(&e->more, (uint32_t)(random_next(&state) % 3));
            UNIT_EQUAL(trpi_watch_new(pool.poller, pair[0], &storm_events, e, &e->watch), TRP_OK);
            atomic_store(&place->e, e);
            atomic_fetch_add(&storm.made, 1);
        }
        for (size_t i = me; i < ENDS; i += WRITERS) {
            struct place *place = &storm.places[i];
            end *e = atomic_load(&place->e);

            for (uint64_t writes = random_next(&state) % 4; writes > 0; writes--) {
                if (write(place->far, "b", 1) == 1) {
                    atomic_fetch_add(&storm.sent, 1);
                }
                if (random_next(&state) % 4 == 0) {
                    trpi_watch_again(e->watch, TRPI_NET_IN | TRPI_NET_OUT);
                }
            }
            if (random_next(&state) % 2 == 0) {
                (void)sched_yield();
            }
        }
        for (size_t i = me; i < ENDS; i += WRITERS) {
            struct place *place = &storm.places[i];

            trpi_watch_remove(atomic_load(&place->e)->watch);
            (void)close(place->far);
        }
    }
    return NULL;
}

static void
storm_run(const char *test)
{
    const char *given = getenv("POLLER_SEED");
    pthread_t threads[WRITERS];

    memset(&storm, 0, sizeof storm);
    storm.seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)unit_now_ms();
    for (size_t i = 0; i < WRITERS; i++) {
        UNIT_REQUIRE(pthread_create(&threads[i], NULL, storm_main, (void *)(uintptr_t)i) == 0);
    }
    for (size_t i = 0; i < WRITERS; i++) {
        pthread_join(threads[i], NULL);
    }
    UNIT_WAIT(atomic_load(&storm.removed) == ENDS * ROUNDS, 20000);
    UNIT_WAIT(trpi_poller_watches(pool.poller) == 0, 5000); /* after the call */
    pool_close();
    UNIT_EQUAL(storm.made, ENDS * ROUNDS);
    UNIT_EQUAL(storm.removed, ENDS * ROUNDS);
    UNIT_EQUAL(storm.got, storm.sent);
    UNIT_EQUAL(storm.overlaps, 0);
    if (unit_failures() != 0) {
        printf("replay: POLLER_SEED=%llu io_tests poller_test %s\n", (unsigned long long)storm.seed,
               test);
    }
}

static void
each_byte_is_read_and_each_watch_ends_once_under_many_threads(void)
{
    pool_open(2);
    storm_run("each_byte_is_read_and_each_watch_ends_once_under_many_threads");
}

static void
each_byte_is_read_by_a_thread_of_its_own_too(void)
{
    pool_open_alone();
    storm_run("each_byte_is_read_by_a_thread_of_its_own_too");
}

/* ---- a thread of its own --------------------------------------------------------------------- */

typedef struct named {
    int number;
    _Atomic uint32_t bytes;
    char thread[16];
} named;

static uint32_t
named_ready(void *user, uint32_t reported)
{
    named *n = user;

    (void)reported;
    (void)pthread_getname_np(pthread_self(), n->thread, sizeof n->thread);
    atomic_fetch_add(&n->bytes, pool_drain(n->number));
    return 0;
}

static void
named_removed(void *user)
{
    (void)close(((named *)user)->number);
}

static void
a_thread_of_its_own_calls_back_and_does_not_tick(void)
{
    static const trpi_watch_events naming = { named_ready, named_removed };
    unsigned before = descriptors_open();
    trpi_watch *watch = NULL;
    named n = { .number = -1 };
    uint32_t waits = atomic_load(&pool.waits), looks = atomic_load(&pool.looks);
    int pair[2];

    pool_open_alone();
    UNIT_EQUAL(descriptors_open(), before + 2);
    pool_pair(pair);
    n.number = pair[0];
    UNIT_REQUIRE(trpi_watch_new(pool.poller, pair[0], &naming, &n, &watch) == TRP_OK);
    for (uint32_t i = 1; i <= 20; i++) {
        UNIT_EQUAL(write(pair[1], "b", 1), 1);
        UNIT_WAIT(atomic_load(&n.bytes) == i, 20000);
    }
    UNIT_TEXT(n.thread, "alone");
    /* the first, one for being writable, one a byte */
    UNIT_TRUE(atomic_load(&pool.waits) - waits <= 22);
    UNIT_EQUAL(atomic_load(&pool.looks), looks);
    pool_close();
    (void)close(pair[1]);
    UNIT_EQUAL(descriptors_open(), before);
}

/* ---- a watch without a socket ---------------------------------------------------------------- */

/* The thread that waits for reports makes the call. */
static void
a_watch_without_a_socket_is_called_when_the_user_asks(void)
{
    for (uint32_t workers = 0; workers <= 2; workers++) {
        end e = { .number = -1 };
        if (workers == 0) {
            pool_open_alone();
        } else {
            pool_open(workers);
        }
        watched(&e, -1);
        for (uint32_t i = 0; i < 200; i++) {
            trpi_watch_again(e.watch, TRPI_NET_OUT);
            UNIT_WAIT(atomic_load(&e.calls) == i + 1, 20000);
        }
        UNIT_EQUAL(atomic_load(&e.events), TRPI_NET_OUT);
        trpi_watch_remove(e.watch);
        UNIT_WAIT(atomic_load(&e.removed) == 1, 20000);
        UNIT_EQUAL(atomic_load(&e.overlaps), 0);
        pool_close();
    }
}

UNIT_BEGIN("poller")
UNIT(bytes_are_delivered_and_left_ones_again)
UNIT(an_edge_during_a_callback_is_delivered_after_it)
UNIT(a_watch_is_told_again_when_the_user_asks)
UNIT(a_removal_from_a_callback_and_from_outside_comes_once)
UNIT(what_is_left_at_the_end_is_removed_and_no_descriptor_stays)
UNIT(a_report_of_an_earlier_watch_is_dropped)
UNIT(errors_of_the_set_give_the_entry_back)
UNIT(watches_have_a_limit)
UNIT(a_system_makes_its_poller_when_it_is_asked)
UNIT(what_a_callback_tells_arrives_without_a_sender)
UNIT(each_byte_is_read_and_each_watch_ends_once_under_many_threads)
UNIT(each_byte_is_read_by_a_thread_of_its_own_too)
UNIT(a_thread_of_its_own_calls_back_and_does_not_tick)
UNIT(a_watch_without_a_socket_is_called_when_the_user_asks)
UNIT_END

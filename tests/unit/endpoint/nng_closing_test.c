/* nng_closing_test.c - closings that hang are left to their threads. */
#include <nng/nng.h>

#include "endpoint/closing.h"
#include "tests/unit/endpoint/talker.h"

enum { TASK_THREADS_MAX = 16 }; /* of nng: two for each processor */

static struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_open;
    _Atomic uint32_t came, left;
} gate = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0, 0 };

static void
gate_pass(void *arg)
{
    (void)arg;
    atomic_fetch_add(&gate.came, 1);
    pthread_mutex_lock(&gate.lock);
    while (!gate.is_open) {
        pthread_cond_wait(&gate.changed, &gate.lock);
    }
    pthread_mutex_unlock(&gate.lock);
    atomic_fetch_add(&gate.left, 1);
}

static void
gate_set(bool is_open)
{
    pthread_mutex_lock(&gate.lock);
    gate.is_open = is_open;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

static void
stop_socket(trp_ctx *ctx, talker *t)
{
    trp_tell(ctx, t->socket, &trp_poison_pill_type, NULL, 0);
}

static void
a_closing_that_ends_is_waited_for(void)
{
    uint32_t left = atomic_load(&gate.left);
    gate_set(true);
    UNIT_TRUE(trpi_closing_run(gate_pass, NULL));
    UNIT_EQUAL(atomic_load(&gate.left), left + 1);
    UNIT_EQUAL(trpi_closing_late(), 0);
}

/* At the limit a socket is opened, one past it none is. */
static void
beside_too_many_late_closings_no_socket_is_opened(void)
{
    trp_system *system = stage_open();
    talker *a = talker_new("a", TRP_NNG_PULL), *b = talker_new("b", TRP_NNG_PULL),
           *c = talker_new("c", TRP_NNG_PULL);
    a->options.listen = "inproc://a";
    b->options.listen = c->options.listen = "inproc://b";
    gate_set(false);
    for (uint32_t i = 1; i < TRPI_CLOSING_LATE_MAX; i++) {
        UNIT_FALSE(trpi_closing_run(gate_pass, NULL));
        UNIT_EQUAL(trpi_closing_late(), i);
    }
    talker_start(system, a);
    UNIT_EQUAL(atomic_load(&a->opened), 1);
    UNIT_FALSE(trpi_closing_run(gate_pass, NULL));
    talker_start(system, b);
    UNIT_WAIT(stage_has("b:closed(TRP_ELIMIT)"), 60000);
    gate_set(true);
    UNIT_WAIT(trpi_closing_late() == 0, 60000);
    talker_start(system, c);
    UNIT_EQUAL(atomic_load(&c->opened), 1);
    stage_close(system);
    free(a);
    free(b);
    free(c);
}

/* ZMQ-02, nng-library-N7. No callback of nng is run any more, so the receive never ends. */
static void
a_closing_that_hangs_holds_neither_the_actor_nor_its_system(void)
{
    trp_system *system = stage_open();
    talker *t = talker_new("p", TRP_NNG_PULL);
    nng_aio *aios[TASK_THREADS_MAX];
    long threads = 2 * sysconf(_SC_NPROCESSORS_ONLN);
    t->options.listen = "inproc://hangs";
    talker_start(system, t);
    gate_set(false);
    atomic_store(&gate.came, 0);
    for (int i = 0; i < TASK_THREADS_MAX; i++) {
        UNIT_REQUIRE(nng_aio_alloc(&aios[i], gate_pass, NULL) == 0);
        nng_sleep_aio(0, aios[i]);
    }
    UNIT_WAIT(atomic_load(&gate.came) >= TASK_THREADS_MAX || atomic_load(&gate.came) >= threads,
              60000);
    talker_do(system, t, stop_socket);
    STAGE_EXPECT("p:closed(TRP_OK)");
    STAGE_LOGGED("nng has not closed the socket in time");
    UNIT_EQUAL(trpi_closing_late(), 1);
    stage_close(system);
    gate_set(true);
    for (int i = 0; i < TASK_THREADS_MAX; i++) {
        nng_aio_free(aios[i]);
    }
    UNIT_WAIT(trpi_closing_late() == 0, 60000);
    free(t);
}

UNIT_BEGIN("nng-closing")
UNIT(a_closing_that_ends_is_waited_for)
UNIT(beside_too_many_late_closings_no_socket_is_opened)
UNIT(a_closing_that_hangs_holds_neither_the_actor_nor_its_system)
UNIT_END

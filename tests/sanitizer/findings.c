/* findings.c - mistakes made on purpose, one a run, each of which a sanitizer must report.
 * findings.sh runs them with the options of tests/run: a sanitizer that is silent about these says
 * nothing about the rest.
 *
 * Threads are ordered by relaxed atomics alone, so that the mistake happens in that order every
 * time while the thread sanitizer sees no order at all. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/mutex.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int step;
static volatile int shared; /* a plain race all the same; the compiler keeps both writes */
static bool late;

static void
step_await(int wanted)
{
    while (atomic_load_explicit(&step, memory_order_relaxed) < wanted) {
    }
}

static void
step_to(int reached)
{
    atomic_store_explicit(&step, reached, memory_order_relaxed);
}

static void *
use_lock(void *arg)
{
    (void)arg;
    step_await(late ? 2 : 0);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    step_to(late ? 3 : 1);
    return NULL;
}

/* A mutex that ends without being ordered after its last use (early), or before its next (late). */
static int
destroy_lock(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, use_lock, NULL) != 0) {
        return 1;
    }
    if (!late) {
        step_await(1);
    }
    trpi_mutex_destroy(&lock);
    step_to(2);
    step_await(late ? 3 : 2);
    (void)pthread_join(thread, NULL);
    return 0;
}

static void *
use_shared(void *arg)
{
    (void)arg;
    shared = 1;
    step_to(1);
    return NULL;
}

static int
race(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, use_shared, NULL) != 0) {
        return 1;
    }
    step_await(1);
    shared = 2;
    (void)pthread_join(thread, NULL);
    return 0;
}

static int
use_after_free(void)
{
    char *volatile block = trpi_alloc(16);

    if (block == NULL) {
        return 1;
    }
    trpi_free(block);
    return block[3] == 77;
}

static int
leak(void)
{
    void *volatile block = trpi_alloc(1000);

    block = NULL;
    return block != NULL;
}

static int
overflow(void)
{
    volatile int32_t number = INT32_MAX;

    number = number + 1;
    return number == 77;
}

static int
nothing(void)
{
    return 0;
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } mistakes[] = { { "nothing", nothing },
                     { "race", race },
                     { "early", destroy_lock },
                     { "late", destroy_lock },
                     { "use-after-free", use_after_free },
                     { "leak", leak },
                     { "overflow", overflow } };

    for (size_t i = 0; argc == 2 && i < sizeof mistakes / sizeof mistakes[0]; i++) {
        if (strcmp(argv[1], mistakes[i].name) == 0) {
            late = strcmp(argv[1], "late") == 0;
            return mistakes[i].run();
        }
    }
    (void)fprintf(stderr, "findings: nothing race early late use-after-free leak overflow\n");
    return 64;
}

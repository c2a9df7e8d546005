/* msg_test.c - message memory: sizes, out-of-line payloads, blocks between threads, chunks given
 * back. */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <troupe/actor.h>

#include "actor/kernel/msg.h"
#include "base/alloc.h"

static void
payloads_of_all_sizes_come_back_as_they_were(void)
{
    static const size_t sizes[] = { 0,
                                    1,
                                    8,
                                    32,
                                    33,
                                    96,
                                    97,
                                    1000,
                                    4064,
                                    4065,
                                    40000,
                                    TRP_INLINE_PAYLOAD_MAX,
                                    TRP_INLINE_PAYLOAD_MAX + 1,
                                    1000000 };

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        trp_msg *msg, *copy;
        void *payload;

        UNIT_REQUIRE(trp_msg_new(&trp_bytes_type, sizes[i], &msg, &payload) == TRP_OK);
        memset(payload, (int)i + 1, sizes[i]);
        UNIT_EQUAL((uintptr_t)payload % 16, 0);
        UNIT_EQUAL(trp_msg_bytes(msg), sizes[i]);
        UNIT_TRUE(trp_msg_is(msg, &trp_bytes_type));
        UNIT_EQUAL((msg->priv_from_node_flags & TRP_MSG_PRIV_OUT_OF_LINE) != 0,
                   sizes[i] > TRP_INLINE_PAYLOAD_MAX);
        UNIT_EQUAL(trp_msg_dup(msg, &copy), TRP_OK);
        UNIT_EQUAL(trp_msg_bytes(copy), sizes[i]);
        UNIT_TRUE(memcmp(trp_msg_payload(copy), payload, sizes[i]) == 0);
        trp_msg_free(msg);
        trp_msg_free(copy);
    }
    trp_msg_free(NULL);
}

static void
wrong_sizes_and_unregistered_types_are_refused(void)
{
    static trp_type unknown = { "no.one", 4, 1, 0, NULL, 0, 0 };
    trp_msg *msg = NULL;
    void *payload;

    UNIT_EQUAL(trp_msg_new(&trp_i64_type, 7, &msg, &payload), TRP_EINVAL);
    UNIT_EQUAL(trp_msg_new(&unknown, 4, &msg, &payload), TRP_ENOTYPE);
    UNIT_EQUAL(trp_msg_new(NULL, 4, &msg, &payload), TRP_EINVAL);
    UNIT_TRUE(msg == NULL);
}

static void
out_of_memory_is_an_error_and_leaves_nothing(void)
{
    trp_msg *msg = NULL;
    void *payload;

    for (long n = 0; n < 3; n++) { /* payload, then perhaps a chunk or magazine */
        trpi_alloc_fail_after(n);
        if (trp_msg_new(&trp_bytes_type, 200000, &msg, &payload) == TRP_OK) {
            trp_msg_free(msg);
            msg = NULL;
        }
        trpi_alloc_fail_after(-1);
    }
    trpi_alloc_fail_after(0);
    UNIT_EQUAL(trp_msg_new(&trp_bytes_type, 200000, &msg, &payload), TRP_ENOMEM);
    trpi_alloc_fail_after(-1);
    UNIT_TRUE(msg == NULL);
}

static void
a_payload_that_was_taken_is_not_released_with_its_message(void)
{
    trp_msg_priv_moved moved = { NULL, 0, NULL, NULL };
    trp_msg *msg;
    void *payload;

    UNIT_REQUIRE(trp_msg_new(&trp_bytes_type, 100000, &msg, &payload) == TRP_OK);
    memset(payload, 42, 100000);
    UNIT_TRUE(trpi_msg_payload_take(msg, &moved));
    UNIT_FALSE(trpi_msg_payload_take(msg, &moved));
    trp_msg_free(msg);
    UNIT_TRUE(moved.data == payload && moved.bytes == 100000);
    UNIT_EQUAL(((unsigned char *)moved.data)[99999], 42);
    moved.release(moved.data, moved.arg);
}

/* ---- blocks that one thread makes and another frees ------------------------------------------ */

enum { HANDED = 20000, ROUNDS = 20 };
static trp_msg *_Atomic handed[HANDED];

static void *
free_all(void *arg)
{
    (void)arg;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < HANDED; i++) {
            trp_msg *msg;

            while ((msg = atomic_exchange(&handed[i], NULL)) == NULL) {
                unit_pause();
            }
            if (*(const int64_t *)trp_msg_payload(msg) != i) {
                UNIT_FAIL("a block was given out twice");
            }
            trp_msg_free(msg);
        }
    }
    return NULL;
}

static void
blocks_wander_between_threads_and_none_is_given_out_twice(void)
{
    pthread_t thread;

    UNIT_REQUIRE(pthread_create(&thread, NULL, free_all, NULL) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < HANDED; i++) {
            trp_msg *msg;
            void *payload;

            UNIT_REQUIRE(trp_msg_new(&trp_i64_type, 8, &msg, &payload) == TRP_OK);
            *(int64_t *)payload = i;
            while (atomic_load(&handed[i]) != NULL) {
                unit_pause();
            }
            atomic_store(&handed[i], msg);
        }
    }
    (void)pthread_join(thread, NULL);
}

static size_t
resident(void)
{
    unsigned long total = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    UNIT_REQUIRE(file != NULL);
    UNIT_EQUAL(fscanf(file, "%lu %lu", &total, &pages), 2);
    (void)fclose(file);
    return pages * 4096u;
}

static void
wholly_free_chunks_go_back_to_the_machine(void)
{
    enum { MANY = 300000 };
    trp_msg **messages = calloc(MANY, sizeof(trp_msg *));
    size_t before, high, after;

    UNIT_REQUIRE(messages != NULL);
    before = resident();
    for (int i = 0; i < MANY; i++) {
        void *payload;

        UNIT_REQUIRE(trp_msg_new(&trp_i64_type, 8, &messages[i], &payload) == TRP_OK);
        *(int64_t *)payload = i;
    }
    high = resident();
    for (int i = 0; i < MANY; i++) {
        trp_msg_free(messages[i]);
    }
    trpi_msg_cache_trim(trpi_msg_cache_get(), true);
    after = resident();
    free(messages);
#ifndef UNIT_SANITIZED
    UNIT_TRUE(high - before > 15u * 1024 * 1024);
    UNIT_TRUE(after < before + (high - before) / 2);
#else
    (void)high, (void)after, (void)before; /* their shadow memory counts too */
#endif
}

UNIT_BEGIN("msg")
UNIT(payloads_of_all_sizes_come_back_as_they_were)
UNIT(wrong_sizes_and_unregistered_types_are_refused)
UNIT(out_of_memory_is_an_error_and_leaves_nothing)
UNIT(a_payload_that_was_taken_is_not_released_with_its_message)
UNIT(blocks_wander_between_threads_and_none_is_given_out_twice)
UNIT(wholly_free_chunks_go_back_to_the_machine)
UNIT_END

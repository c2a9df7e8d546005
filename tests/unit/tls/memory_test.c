/* memory_test.c - what a session takes of memory, and which calls allocate. */
#include <openssl/crypto.h>
#include <stdatomic.h>
#include <stddef.h>

#include "tests/unit/tls/ends.h"

static atomic_size_t held, allocations, largest; /* of OpenSSL, in all suites of this program */

static void *
count_alloc(size_t bytes, const char *file, int line)
{
    size_t *block = malloc(bytes + sizeof(max_align_t));
    (void)file;
    (void)line;
    if (block == NULL) {
        return NULL;
    }
    *block = bytes;
    held += bytes;
    allocations++;
    if (bytes > largest) {
        largest = bytes;
    }
    return (char *)block + sizeof(max_align_t);
}

static void
count_free(void *memory, const char *file, int line)
{
    (void)file;
    (void)line;
    if (memory != NULL) {
        size_t *block = (size_t *)(void *)((char *)memory - sizeof(max_align_t));
        held -= *block;
        free(block);
    }
}

static void *
count_realloc(void *memory, size_t bytes, const char *file, int line)
{
    void *next = count_alloc(bytes, file, line);
    if (memory != NULL && next != NULL) {
        size_t old = *(size_t *)(void *)((char *)memory - sizeof(max_align_t));
        memcpy(next, memory, old < bytes ? old : bytes);
        count_free(memory, file, line);
    }
    return next;
}

enum { SESSIONS = 50 };

/* Start SESSIONS pairs that share two contexts, each after its handshake. Returns the bytes that
 * OpenSSL holds for a pair. */
static size_t
pairs_start(end c[SESSIONS], end s[SESSIONS], ends_files *f, bool keeps_buffers)
{
    trpi_tls_options client = ends_client(f), server = ends_server(f);
    size_t before = 0;
    for (int i = 0; i < SESSIONS; i++) {
        const trpi_tls_session_options options[] = {
            { .host = "echo.example", .keeps_buffers = keeps_buffers, .wall_ms = f->pki.now_ms },
            { .keeps_buffers = keeps_buffers, .wall_ms = f->pki.now_ms }
        };
        if (i == 0) { /* what OpenSSL keeps for the process and for a context */
            end_start(&c[0], f, &client, "echo.example", 0);
            end_start(&s[0], f, &server, NULL, 0);
        } else {
            memset(&c[i], 0, sizeof c[i]);
            memset(&s[i], 0, sizeof s[i]);
            UNIT_REQUIRE(trpi_tls_session_new(c[0].context, &options[0], &c[i].session) == TRP_OK);
            UNIT_REQUIRE(trpi_tls_session_new(s[0].context, &options[1], &s[i].session) == TRP_OK);
        }
        ends_shake(&c[i], &s[i]);
        UNIT_EQUAL(c[i].result, TRPI_TLS_OK);
        UNIT_EQUAL(s[i].result, TRPI_TLS_OK);
        before = i == 0 ? held : before;
    }
    return (held - before) / (SESSIONS - 1);
}

static void
pairs_stop(end c[SESSIONS], end s[SESSIONS], ends_files *f)
{
    for (int i = 0; i < SESSIONS; i++) {
        end_stop(&c[i]);
        end_stop(&s[i]);
    }
    pki_end(&f->pki);
}

/* Say hello in both directions. */
static void
pair_talk(end *c, end *s)
{
    char text[100];
    size_t count = 0;
    end_write(c, "hello", 5);
    UNIT_EQUAL(end_read(s, c, text, sizeof text, &count), TRPI_TLS_MORE);
    end_write(s, "hello", 5);
    UNIT_EQUAL(end_read(c, s, text, sizeof text, &count), TRPI_TLS_MORE);
    UNIT_EQUAL(count, 5);
}

static void
an_idle_session_is_small_and_traffic_leaves_it_so(void)
{
    ends_files f;
    end c[SESSIONS], s[SESSIONS];
    ends_files_start(&f);
    size_t both = pairs_start(c, s, &f, false), before = held;
    for (int i = 0; i < SESSIONS; i++) {
        pair_talk(&c[i], &s[i]);
    }
    UNIT_EQUAL(held, before); /* buffers are given back */
    printf("  idle: %zu B of OpenSSL and %zu B of ours for an end\n", both / 2,
           sizeof(trpi_tls_session));
    UNIT_TRUE(both > 0 && both / 2 < 24 * 1024); /* 15 KiB with OpenSSL 3.0 */
    pairs_stop(c, s, &f);
}

/* OpenSSL still allocates a few bytes for each record, and gives them back. */
static void
a_session_that_keeps_its_buffers_allocates_none_for_its_records(void)
{
    enum { ROUNDS = 100 };
    ends_files f;
    end c[SESSIONS], s[SESSIONS];
    ends_files_start(&f);
    (void)pairs_start(c, s, &f, true);
    pair_talk(&c[1], &s[1]);
    size_t before = held, calls = allocations;
    largest = 0;
    for (int i = 0; i < ROUNDS; i++) {
        pair_talk(&c[1], &s[1]);
    }
    printf("  a record written and read: %zu allocations of at most %zu B\n",
           (allocations - calls) / (ROUNDS * 2), largest);
    UNIT_EQUAL(held, before);
#if OPENSSL_VERSION_NUMBER < 0x30200000L /* later ones have another record layer */
    UNIT_TRUE(largest < 512);
#endif
    pairs_stop(c, s, &f);
}

static void
all_is_given_back_with_the_last_session(void)
{
    ends_files f;
    end c[SESSIONS], s[SESSIONS];
    size_t before[2];
    for (int i = 0; i < 2; i++) {
        ends_files_start(&f);
        (void)pairs_start(c, s, &f, i == 1);
        pairs_stop(c, s, &f);
        before[i] = held;
    }
    UNIT_EQUAL(before[0], before[1]);
}

static void __attribute__((constructor)) count_memory(void) /* before OpenSSL's first allocation */
{
    (void)CRYPTO_set_mem_functions(count_alloc, count_realloc, count_free);
}

UNIT_BEGIN("memory")
UNIT(an_idle_session_is_small_and_traffic_leaves_it_so)
UNIT(a_session_that_keeps_its_buffers_allocates_none_for_its_records)
UNIT(all_is_given_back_with_the_last_session)
UNIT_END

/* alloc.c - the heap, with an allocation counter that tests can arm.
 *
 * Why.     "Out of memory is an error, not an abort" is only true where it was tried. All heap
 *          blocks pass here, so a test can let each allocation of a call fail in turn.
 * Cost.    Unarmed: one load of a cache line that is not written.
 * Tests.   tests/unit/base/alloc_test.c
 */
#include "base/alloc.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

_Static_assert(alignof(max_align_t) >= 16, "trpi_alloc promises 16-aligned blocks");

/* glibc's calloc() passes by the blocks that a thread keeps for itself, of up to 1032 bytes;
 * malloc() does not. Larger blocks may come from the machine, and are zero already. */
#define SMALL_BYTES 1032u

/* Allocations left before one fails; negative: none fails. Test state of the process, as the heap
 * is. The acquire pairs with the release that arms it. */
static atomic_long fail_after = -1;
static _Atomic(const void *) fail_here; /* NULL: any; else &here_mark of the thread */
static _Thread_local char here_mark;

static bool
must_fail(void)
{
    long left = atomic_load_explicit(&fail_after, memory_order_acquire);
    const void *here;

    if (__builtin_expect(left < 0, 1)) {
        return false;
    }
    here = atomic_load_explicit(&fail_here, memory_order_relaxed);
    if (here != NULL && here != &here_mark) {
        return false;
    }
    return atomic_fetch_sub_explicit(&fail_after, 1, memory_order_relaxed) == 0;
}

void *
trpi_alloc(size_t bytes)
{
    if (must_fail()) {
        return NULL;
    }
    if (bytes <= SMALL_BYTES) {
        void *memory = malloc(bytes == 0 ? 1 : bytes);

        return memory != NULL ? memset(memory, 0, bytes) : NULL;
    }
    return calloc(1, bytes);
}

void *
trpi_alloc_aligned(size_t alignment, size_t bytes)
{
    void *memory = NULL;

    trpi_assert(alignment != 0 && (alignment & (alignment - 1)) == 0);
    if (alignment < sizeof(void *)) {
        alignment = sizeof(void *);
    }
    if (must_fail() || posix_memalign(&memory, alignment, bytes == 0 ? 1 : bytes) != 0) {
        return NULL;
    }
    memset(memory, 0, bytes);
    return memory;
}

void *
trpi_realloc(void *memory, size_t bytes)
{
    if (must_fail()) {
        return NULL;
    }
    return realloc(memory, bytes == 0 ? 1 : bytes);
}

char *
trpi_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = trpi_alloc(bytes);

    if (copy != NULL) {
        memcpy(copy, text, bytes);
    }
    return copy;
}

void
trpi_free(void *memory)
{
    free(memory);
}

void
trpi_alloc_fail_after(long n)
{
    atomic_store_explicit(&fail_here, NULL, memory_order_relaxed);
    atomic_store_explicit(&fail_after, n, memory_order_relaxed);
}

void
trpi_alloc_fail_here_after(long n)
{
    atomic_store_explicit(&fail_here, &here_mark, memory_order_relaxed);
    atomic_store_explicit(&fail_after, n, memory_order_release);
}

void
trpi_free_pointer(void *pointer_to_pointer)
{
    void *memory;

    memcpy(&memory, pointer_to_pointer, sizeof memory);
    trpi_free(memory);
}

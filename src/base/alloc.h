/* alloc.h - the only way to the heap, so that tests can make the n-th allocation fail. */
#ifndef TRPI_BASE_ALLOC_H
#define TRPI_BASE_ALLOC_H

#include <stddef.h>

/* Zeroed memory, 16-aligned, or NULL. */
void *trpi_alloc(size_t bytes) __attribute__((malloc, alloc_size(1)));
/* Zeroed, aligned to `alignment` (a power of two). Freed with trpi_free as well. */
void *trpi_alloc_aligned(size_t alignment, size_t bytes);
/* As realloc; on failure the old block stays. New bytes are not zeroed. */
void *trpi_realloc(void *memory, size_t bytes);
char *trpi_strdup(const char *text);
void trpi_free(void *memory); /* NULL is fine */

/* Tests: the allocation after the next n fails (0: the next one); -1: none. Process-wide. */
void trpi_alloc_fail_after(long n);
/* The same, but only allocations of the calling thread count and fail; those of other threads, such
 * as the logger, change nothing. */
void trpi_alloc_fail_here_after(long n);

/* Locals that free themselves: char *s TRPI_AUTO_FREE = ...; */
void trpi_free_pointer(void *pointer_to_pointer);
#define TRPI_AUTO_FREE __attribute__((cleanup(trpi_free_pointer)))

#endif

/* coroutine.h - functions that run on stacks of their own, and may be left and resumed. */
#ifndef TRPI_PATTERN_COROUTINE_H
#define TRPI_PATTERN_COROUTINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>

#define TRPI_STACK_GUARD_BYTES (64u * 1024u) /* below each stack; a frame may skip a page or two */

/* The memory of a stack. All-zero: none. */
typedef struct trpi_stack {
    struct trpi_stack *next; /* of an idle one */
    char *low;               /* its lowest byte; the guard is below it */
    size_t bytes;
} trpi_stack;

/* Map a stack of at least so many bytes, with its guard; pages take memory once they are touched.
 * Errors: TRP_ENOMEM. Thread: any. */
trp_err trpi_stack_map(size_t bytes, trpi_stack *ret_stack);
/* An empty one is fine. Thread: any. */
void trpi_stack_unmap(trpi_stack *stack);

typedef struct trpi_coroutine trpi_coroutine;

/* Make a coroutine that will run fn(arg) on `stack`, which is borrowed until it is freed. fn must
 * return. Errors: TRP_ENOMEM. Thread: any. */
trp_err trpi_coroutine_new(const trpi_stack *stack, void (*fn)(void *arg), void *arg,
                           trpi_coroutine **ret_coroutine);
/* Frees one that has not begun, or has returned. NULL is fine. */
void trpi_coroutine_free(trpi_coroutine *co);

/* Run it until it suspends itself (true) or has returned (false). Each call may be on another
 * thread, one after the other; happens-before between them is the caller's business. A coroutine
 * may resume another one. */
bool trpi_coroutine_resume(trpi_coroutine *co);
/* Go back to the caller of resume(), until the next one. From the coroutine only. The thread may be
 * another one afterwards: the caller of this function keeps no address of a thread-local variable,
 * and holds no lock. */
void trpi_coroutine_suspend(trpi_coroutine *co);

#endif

/* misuse.h - private to the room: debug checks for wrong use of messages and of a ctx. */
#ifndef TRPI_ACTOR_KERNEL_MISUSE_H
#define TRPI_ACTOR_KERNEL_MISUSE_H

#include <stdbool.h>

#include <troupe/actor.h>

/* Are the checks on? Always in developer builds, else in the whole process from the first system
 * whose configuration says so. Relaxed: one check more or less does not matter. */
extern bool trpi_misuse_on;

/* Abort, with a line on stderr that names the function and the actor of ctx (NULL: none). */
void trpi_misuse_found(const trp_ctx *ctx, const char *verb, const char *what)
    __attribute__((noreturn, cold));
/* Abort, with a line on stderr, unless ctx belongs to this thread. */
void trpi_misuse_ctx(const trp_ctx *ctx, const char *verb);
/* Abort if the program has sent or freed msg before; else mark it as sent. ctx may be NULL. */
void trpi_misuse_sent(const trp_ctx *ctx, trp_msg *msg);
void trpi_misuse_freed(trp_msg *msg);
/* Abort if the program has freed msg. */
void trpi_misuse_read(const trp_msg *msg, const char *verb);

static inline bool
trpi_misuse_is_wanted(void)
{
    return __builtin_expect(__atomic_load_n(&trpi_misuse_on, __ATOMIC_RELAXED), 0);
}

/* First statement of a function that takes a ctx. */
#define TRPI_USE(ctx)                                                                              \
    do {                                                                                           \
        if (trpi_misuse_is_wanted() && (ctx) != NULL) {                                            \
            trpi_misuse_ctx((ctx), __func__);                                                      \
        }                                                                                          \
    } while (0)
/* First statement of a function that tells. Empty but in developer builds: with the checks on no
 * tell takes the fast path, and make_rare() checks. */
#ifdef TRPI_DEBUG
#define TRPI_USE_TELLING(ctx) TRPI_USE(ctx)
#else
#define TRPI_USE_TELLING(ctx) ((void)0)
#endif

#endif

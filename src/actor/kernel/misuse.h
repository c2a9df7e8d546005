/* misuse.h - private to the room: what a program must not do with a message or a ctx. */
#ifndef TRPI_ACTOR_KERNEL_MISUSE_H
#define TRPI_ACTOR_KERNEL_MISUSE_H

#include <stdbool.h>

#include <troupe/actor.h>

/* Is it looked for? Always in developer builds, else from the first system on whose configuration
 * says so, in the whole process. Relaxed: a look more or less. */
extern bool trpi_misuse_on;

/* Abort, with a line on stderr that names the verb and the running actor of ctx (NULL: none). */
void trpi_misuse_found(const trp_ctx *ctx, const char *verb, const char *what)
    __attribute__((noreturn, cold));
/* Abort, with a line on stderr, unless ctx is this thread's: a kept one is another's. */
void trpi_misuse_ctx(const trp_ctx *ctx, const char *verb);
/* Abort if the program has sent or freed msg before; else note that it does now. ctx may be
 * NULL. */
void trpi_misuse_sent(const trp_ctx *ctx, trp_msg *msg);
void trpi_misuse_freed(trp_msg *msg);
/* Abort if the program has freed msg. */
void trpi_misuse_read(const trp_msg *msg, const char *verb);

static inline bool
trpi_misuse_is_wanted(void)
{
    return __builtin_expect(__atomic_load_n(&trpi_misuse_on, __ATOMIC_RELAXED), 0);
}

/* First in a verb that takes a ctx. */
#define TRPI_USE(ctx)                                                                              \
    do {                                                                                           \
        if (trpi_misuse_is_wanted() && (ctx) != NULL) {                                            \
            trpi_misuse_ctx((ctx), __func__);                                                      \
        }                                                                                          \
    } while (0)
/* First in a verb that tells: it need not look, unless in developer builds, for all tells go the
 * long way where misuse is asked for. */
#ifdef TRPI_DEBUG
#define TRPI_USE_TELLING(ctx) TRPI_USE(ctx)
#else
#define TRPI_USE_TELLING(ctx) ((void)0)
#endif

#endif

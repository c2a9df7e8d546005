/* sys.h - private to the room and distribution: the kinds of system messages. */
#ifndef TRPI_ACTOR_LIFE_SYS_H
#define TRPI_ACTOR_LIFE_SYS_H

#include "actor/kernel/run.h"

/* Kinds of system messages, and the meaning of from, number, flag and pointer. */
enum trpi_sys {
    TRPI_SYS_STOP = 1,
    TRPI_SYS_SUSPEND = 2,
    TRPI_SYS_RESUME = 3,      /* flag 1: answers the actor's own failure */
    TRPI_SYS_RESTART = 4,     /* pointer: trpi_failure, owned; flag 1: its children stay */
    TRPI_SYS_SUPERVISE = 5,   /* from: a child that was spawned from outside; guardians only */
    TRPI_SYS_FAILED = 6,      /* from: child; pointer: trpi_failure, owned */
    TRPI_SYS_CHILD_ENDED = 7, /* from: child; pointer: the parent's Terminated or NULL, owned */
    TRPI_SYS_WATCH = 8,       /* from: watcher; pointer: its prepared Terminated message, owned */
    TRPI_SYS_UNWATCH = 9,     /* from: watcher */
    TRPI_SYS_IDLE = 10,       /* receive timeout; number: timers_number when it was armed */
    TRPI_SYS_PROMISE_TIMEOUT = 11,
    TRPI_SYS_PROMISE_CANCEL = 12,
    TRPI_SYS_PROMISE_DEAD = 13, /* from: the ref that was asked and is dead */
    TRPI_SYS_SELECT = 14,       /* pointer: trpi_selecting, counted; number: next element */
    TRPI_SYS_INSPECT = 15,      /* pointer: trpi_inspection, counted; number: place of the entry */
    TRPI_SYS_UNWATCH_NODE = 16, /* number: a node that is lost */
    TRPI_SYS_ACTIVE = 17,       /* flag 1: activate, 0: deactivate */
    TRPI_SYS_ERRAND = 18,       /* pointer: pending.c's, counted */
    /* /remote only; from: the child proxy; pointer: deployed.c's, owned */
    TRPI_SYS_DEPLOY = 19,
    TRPI_SYS_DEPLOYED = 20,   /* child proxies only, as the next two; from: the actor */
    TRPI_SYS_REFUSED = 21,    /* pointer: trpi_failure, owned */
    TRPI_SYS_FAR_FAILED = 22, /* from: the actor; pointer: trpi_failure, owned */
    TRPI_SYS_AHEAD = 25,      /* pointer: a message for the front queue, owned */
    TRPI_SYS_SAMPLE = 26,     /* number: one in so many messages begins a trace; 0: none */
    /* pointer: a pass of upgrade.c, counted; number: place of the actor in it */
    TRPI_SYS_UPGRADE = 27,
    TRPI_SYS_ALARM = 24 /* services and child proxies only */
};

static inline void
trpi_sys_to(trp_ctx *ctx, trp_ref to, enum trpi_sys kind, uint16_t flag, trp_ref from,
            uint64_t number, void *pointer)
{
    trpi_sys_tell(ctx, to.slot, to.generation, (uint16_t)kind, flag, from, number, pointer);
}

#endif

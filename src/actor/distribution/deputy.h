/* deputy.h - what stands in the tree for a child that lives on another node: the decisions. Pure:
 * no clock, no cell, no message. deputy.c is the shell.
 */
#ifndef TRPI_ACTOR_DISTRIBUTION_DEPUTY_H
#define TRPI_ACTOR_DISTRIBUTION_DEPUTY_H

#include <stdbool.h>
#include <stdint.h>

enum trpi_deputy_state {
    TRPI_DEPUTY_LOOKING = 0,  /* asks who lives at the address */
    TRPI_DEPUTY_CREATING = 1, /* the order is on its way */
    TRPI_DEPUTY_LIVE = 2,
    TRPI_DEPUTY_REFUSED = 3, /* its parent decides */
    TRPI_DEPUTY_OVER = 4
};

enum trpi_deputy_event {
    TRPI_DEPUTY_START = 1,
    TRPI_DEPUTY_FOUND = 2, /* the node has answered */
    TRPI_DEPUTY_CREATED = 3,
    TRPI_DEPUTY_REFUSAL = 4,
    TRPI_DEPUTY_FAILURE = 5, /* the actor has failed, and waits */
    TRPI_DEPUTY_LOST = 6,    /* the actor has ended, or its node */
    TRPI_DEPUTY_TICK = 7,
    /* what a parent orders its children to do */
    TRPI_DEPUTY_STOP = 8,
    TRPI_DEPUTY_SUSPEND = 9,
    TRPI_DEPUTY_RESUME = 10,
    TRPI_DEPUTY_RESTART = 11,
    TRPI_DEPUTY_BUSY = 12 /* too much is on its way to the node: the order was not sent */
};

/* What is to be done about an event, in this order. */
enum {
    TRPI_DEPUTY_DO_LOOK = 1,    /* ask who lives there; a tick is wanted */
    TRPI_DEPUTY_DO_ORDER = 2,   /* watch the node, send the order */
    TRPI_DEPUTY_DO_WELCOME = 4, /* watch the actor, suspend it as often as `suspended` says, tell
                                   it what was held */
    TRPI_DEPUTY_DO_STOP = 8,    /* tell the actor, as the next three */
    TRPI_DEPUTY_DO_SUSPEND = 16,
    TRPI_DEPUTY_DO_RESUME = 32,
    TRPI_DEPUTY_DO_RESTART = 64,
    TRPI_DEPUTY_DO_REPORT = 128,  /* the failure to the parent */
    TRPI_DEPUTY_DO_GIVE_UP = 256, /* nobody answers: say so */
    TRPI_DEPUTY_DO_WAIT = 512,    /* for the end, or for room: a tick is wanted */
    TRPI_DEPUTY_DO_END = 1024
};

/* Zero: looking, nothing happened yet. */
typedef struct trpi_deputy_core {
    enum trpi_deputy_state state;
    bool stopping;
    uint8_t suspended; /* while there is no actor: how often */
    uint64_t until_ms; /* LOOKING */
} trpi_deputy_core;

#define TRPI_DEPUTY_LOOK_MS 250u /* between two questions */

/* patience_ms: how long to look. answers: of RESUME, the order answers the child's own failure. */
uint32_t trpi_deputy_step(trpi_deputy_core *core, enum trpi_deputy_event event, bool answers,
                          uint64_t now_ms, uint32_t patience_ms);

#endif

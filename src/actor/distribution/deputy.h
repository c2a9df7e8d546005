/* deputy.h - the proxy of a child on another node: the decisions. Pure: no clock, no cell, no
 * message. deputy.c is the shell.
 */
#ifndef TRPI_ACTOR_DISTRIBUTION_DEPUTY_H
#define TRPI_ACTOR_DISTRIBUTION_DEPUTY_H

#include <stdbool.h>
#include <stdint.h>

enum trpi_deputy_state {
    TRPI_DEPUTY_LOOKING = 0,  /* asks for the incarnation at the address */
    TRPI_DEPUTY_CREATING = 1, /* the order was sent */
    TRPI_DEPUTY_LIVE = 2,
    TRPI_DEPUTY_REFUSED = 3, /* its parent decides */
    TRPI_DEPUTY_OVER = 4
};

enum trpi_deputy_event {
    TRPI_DEPUTY_START = 1,
    TRPI_DEPUTY_FOUND = 2, /* the node has answered */
    TRPI_DEPUTY_CREATED = 3,
    TRPI_DEPUTY_REFUSAL = 4,
    TRPI_DEPUTY_FAILURE = 5, /* the actor has failed, and waits for a directive */
    TRPI_DEPUTY_LOST = 6,    /* the actor has ended, or its node is lost */
    TRPI_DEPUTY_TICK = 7,
    /* orders of the parent */
    TRPI_DEPUTY_STOP = 8,
    TRPI_DEPUTY_SUSPEND = 9,
    TRPI_DEPUTY_RESUME = 10,
    TRPI_DEPUTY_RESTART = 11,
    TRPI_DEPUTY_BUSY = 12 /* the lane to the node is full: the order was not sent */
};

/* Actions that follow from an event; bits, carried out in this order. */
enum {
    TRPI_DEPUTY_DO_LOOK = 1,  /* send an Identify to the address, arm a tick */
    TRPI_DEPUTY_DO_ORDER = 2, /* watch the node, send the order */
    /* watch the actor, suspend it `suspended` times, pass on the held messages */
    TRPI_DEPUTY_DO_WELCOME = 4,
    TRPI_DEPUTY_DO_STOP = 8, /* send it to the actor, as the next three */
    TRPI_DEPUTY_DO_SUSPEND = 16,
    TRPI_DEPUTY_DO_RESUME = 32,
    TRPI_DEPUTY_DO_RESTART = 64,
    TRPI_DEPUTY_DO_REPORT = 128,  /* the failure to the parent */
    TRPI_DEPUTY_DO_GIVE_UP = 256, /* no answer: log it */
    TRPI_DEPUTY_DO_WAIT = 512,    /* for the end, or for room: arm a tick */
    TRPI_DEPUTY_DO_END = 1024
};

/* Zero is the first state: LOOKING, without an event. */
typedef struct trpi_deputy_core {
    enum trpi_deputy_state state;
    bool stopping;
    uint8_t suspended; /* suspensions, while there is no actor */
    uint64_t until_ms; /* LOOKING */
} trpi_deputy_core;

#define TRPI_DEPUTY_LOOK_MS 250u /* between two Identify */

/* Return the actions for an event. patience_ms: bound of LOOKING. answers: of RESUME, the order
 * answers the child's own failure. */
uint32_t trpi_deputy_step(trpi_deputy_core *core, enum trpi_deputy_event event, bool answers,
                          uint64_t now_ms, uint32_t patience_ms);

#endif

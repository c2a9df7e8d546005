/* child_proxy.h - the proxy of a child on another node: the decisions. Pure: no clock, no cell, no
 * message. child_proxy.c is the shell.
 */
#ifndef TRPI_ACTOR_DISTRIBUTION_CHILD_PROXY_H
#define TRPI_ACTOR_DISTRIBUTION_CHILD_PROXY_H

#include <stdbool.h>
#include <stdint.h>

enum trpi_child_proxy_state {
    TRPI_CHILD_PROXY_LOOKING = 0,  /* asks for the incarnation at the address */
    TRPI_CHILD_PROXY_CREATING = 1, /* the order was sent */
    TRPI_CHILD_PROXY_LIVE = 2,
    TRPI_CHILD_PROXY_REFUSED = 3, /* its parent decides */
    TRPI_CHILD_PROXY_OVER = 4
};

enum trpi_child_proxy_event {
    TRPI_CHILD_PROXY_START = 1,
    TRPI_CHILD_PROXY_FOUND = 2, /* the node has answered */
    TRPI_CHILD_PROXY_CREATED = 3,
    TRPI_CHILD_PROXY_REFUSAL = 4,
    TRPI_CHILD_PROXY_FAILURE = 5, /* the actor has failed, and waits for a directive */
    TRPI_CHILD_PROXY_LOST = 6,    /* the actor has ended, or its node is lost */
    TRPI_CHILD_PROXY_TICK = 7,
    /* orders of the parent */
    TRPI_CHILD_PROXY_STOP = 8,
    TRPI_CHILD_PROXY_SUSPEND = 9,
    TRPI_CHILD_PROXY_RESUME = 10,
    TRPI_CHILD_PROXY_RESTART = 11,
    TRPI_CHILD_PROXY_BUSY = 12 /* the lane to the node is full: the order was not sent */
};

/* Actions that follow from an event; bits, carried out in this order. */
enum {
    TRPI_CHILD_PROXY_DO_LOOK = 1,  /* send an Identify to the address, arm a tick */
    TRPI_CHILD_PROXY_DO_ORDER = 2, /* watch the node, send the order */
    /* watch the actor, suspend it `suspended` times, pass on the held messages */
    TRPI_CHILD_PROXY_DO_WELCOME = 4,
    TRPI_CHILD_PROXY_DO_STOP = 8, /* send it to the actor, as the next three */
    TRPI_CHILD_PROXY_DO_SUSPEND = 16,
    TRPI_CHILD_PROXY_DO_RESUME = 32,
    TRPI_CHILD_PROXY_DO_RESTART = 64,
    TRPI_CHILD_PROXY_DO_REPORT = 128,  /* the failure to the parent */
    TRPI_CHILD_PROXY_DO_GIVE_UP = 256, /* no answer: log it */
    TRPI_CHILD_PROXY_DO_WAIT = 512,    /* for the end, or for room: arm a tick */
    TRPI_CHILD_PROXY_DO_END = 1024
};

/* Zero is the first state: LOOKING, without an event. */
typedef struct trpi_child_proxy_core {
    enum trpi_child_proxy_state state;
    bool stopping;
    uint8_t suspended; /* suspensions, while there is no actor */
    uint64_t until_ms; /* LOOKING */
} trpi_child_proxy_core;

#define TRPI_CHILD_PROXY_LOOK_MS 250u /* between two Identify */

/* Return the actions for an event. patience_ms: bound of LOOKING. answers: of RESUME, the order
 * answers the child's own failure. */
uint32_t trpi_child_proxy_step(trpi_child_proxy_core *core, enum trpi_child_proxy_event event,
                               bool answers, uint64_t now_ms, uint32_t patience_ms);

#endif

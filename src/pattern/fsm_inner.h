/* fsm_inner.h - the parts of a machine, between fsm.c, which runs it, and fsm_change.c. */
#ifndef TRPI_PATTERN_FSM_INNER_H
#define TRPI_PATTERN_FSM_INNER_H

#include "pattern/fsm.h"

/* Of priv_flags, beside TRP_FSM_PRIV_EVENT. */
enum {
    TRPI_FSM_LIMIT = 4, /* trp_fsm_for_max() */
    TRPI_FSM_USING = 8,
    TRPI_FSM_REPLIES = 16,
    TRPI_FSM_STOP = 32,
    TRPI_FSM_ENDED = 64,    /* terminated was called */
    TRPI_FSM_HISTORY = 128, /* from here on lasting */
    /* trpi_fsm_is_simple(), without subscribers: a transition is a number */
    TRPI_FSM_SIMPLE = 256,
    TRPI_FSM_DUE = 512 /* a time limit of trp_fsm_for_max() runs all the same: priv_due_ns */
};

typedef struct trpi_fsm_reply {
    struct trpi_fsm_reply *next;
    const trp_type *type;
    size_t bytes;
    char payload[];
} trpi_fsm_reply;

/* The part of a machine that few need; in memory of the actor. */
typedef struct trpi_fsm_more {
    uint32_t *timeouts_ms; /* of all states, once one was set; NULL: those of the table */
    trp_ref *subscribers;
    uint32_t subscribers_count, subscribers_room;
    trpi_fsm_reply *replies, **replies_last;
    uint32_t replies_count;
    uint32_t history_count, history_next; /* entries that are filled; where the next one goes */
    trp_fsm_entry *history;
    char *history_data; /* data_bytes for each entry */
    trp_fsm_reason reason;
    char why[TRP_FSM_WHY_BYTES];
} trpi_fsm_more;

/* Make what the definition needs of memory: data, if there is none yet, rows, history. Out of
 * memory: the actor fails. */
void trpi_fsm_memory_make(trp_ctx *ctx, trp_fsm *fsm);

#endif

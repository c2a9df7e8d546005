/* promise.h - private to the room: the state of an ask that waits for its answer (ask.c), which a
 * look at all of them reads too (waiting_asks.c). */
#ifndef TRPI_ACTOR_LIFE_PROMISE_H
#define TRPI_ACTOR_LIFE_PROMISE_H

#include "actor/life/open.h"

enum trpi_purpose { TRPI_FOR_REPLY, TRPI_FOR_END, TRPI_FOR_REF };

typedef struct trpi_promise { /* state of the promise's cell */
    enum trpi_purpose purpose;
    trp_ref asked;
    trp_ref asker;                  /* none: a thread */
    uint64_t timer_id;              /* 0: none */
    trp_msg *done;                  /* prepared CONTINUE; asker's */
    struct trpi_continuation *data; /* in done */
    struct trpi_waiter *waiting;
} trpi_promise;

/* The question of a thread. */
typedef struct trpi_question {
    enum trpi_purpose purpose;
    trp_ref to;
    const char *path; /* TRPI_FOR_REF */
    const trp_type *type;
    const void *payload;
    size_t bytes;
    const trp_trace *trace; /* of a reply; NULL: none */
    const trpi_patience *patience;
} trpi_question;
/* Ask and wait; ret_reply as in trpi_system_ask_whole(), NULL: not wanted. Errors: as
 * trp_system_ask. */
trp_err trpi_thread_ask(trp_system *system, const trpi_question *q, trp_msg **ret_reply);

#endif

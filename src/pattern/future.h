/* future.h - shared by the files of futures: reference-counted outcomes, and callbacks. */
#ifndef TRPI_PATTERN_FUTURE_H
#define TRPI_PATTERN_FUTURE_H

#include <stdatomic.h>
#include <stdbool.h>

#include <troupe/future.h>

/* An outcome that several futures share. Immutable. */
typedef struct trpi_outcome {
    _Atomic uint32_t refs;
    uint32_t parts_count;
    struct trpi_outcome **parts; /* outcomes that own the messages of the values; counted */
    trp_msg *own;                /* or the own message; NULL: none */
    trp_outcome seen;            /* the view of callbacks */
} trpi_outcome;

trpi_outcome *trpi_outcome_ref(trpi_outcome *outcome);
void trpi_outcome_unref(trpi_outcome *outcome); /* NULL is fine */
/* Takes msg, on success only. NULL: out of memory. */
trpi_outcome *trpi_outcome_value(trp_msg *msg);
trpi_outcome *trpi_outcome_failure(trp_err err, const char *reason);
/* Give the message back that trpi_outcome_value() took; no other reader has seen the outcome. */
void trpi_outcome_give_up(trpi_outcome *outcome);
/* Join the values of all parts in order. Borrows parts. NULL: out of memory. */
trpi_outcome *trpi_outcome_joined(trpi_outcome *const *parts, size_t count);

/* Make an unsent message with a copy of payload; bytes is ignored for fixed-size types. */
trp_err trpi_msg_copied(const trp_type *type, const void *payload, size_t bytes, trp_msg **ret_msg);

/* A function that is called once when a future has its outcome. Part of the caller's object. */
typedef struct trpi_callback {
    struct trpi_callback *next;           /* in the future's list, later in a chain of its own */
    struct trpi_callback *before, *after; /* in the executor's list; guarded by its lock */
    trp_future *source;                   /* counted, until run has returned */
    struct trpi_trail *trail;             /* in which trace it was registered; NULL: in none */
    /* Frees the object that callback is part of. */
    void (*run)(struct trpi_callback *callback, trpi_outcome *outcome);
    bool at_once; /* run on the thread that gave the outcome: short, without code of programs */
} trpi_callback;

/* Takes callback. */
void trpi_future_then(trp_future *future, trpi_callback *callback);
/* Takes outcome (NULL: out of memory, which is the outcome then); false: there was one before. */
bool trpi_promise_settle(trp_promise *promise, trpi_outcome *outcome);
/* Make a promise whose callbacks run where those of model do. */
trp_err trpi_promise_like(const trp_future *model, trp_promise **ret_promise);
typedef struct trpi_executor trpi_executor; /* executor.h */

/* Which alarm; all-zero is none. */
typedef struct trpi_alarm_id {
    trpi_executor *runs;
    struct trpi_alarm *alarm;
    uint64_t timer_id;
} trpi_alarm_id;

/* Settle promise, delay_ms from now: with a failure, or, where with is TRP_OK, with a success
 * without a value; with TRP_ECLOSED when the system ends before. *ret_id (NULL: it is never
 * cancelled) is written before it can ring. Shares promise until then, on success only. */
trp_err trpi_promise_alarm(trp_promise *promise, uint64_t delay_ms, trp_err with,
                           trpi_alarm_id *ret_id);
/* Cancel the alarm, unless it rings already, has rung, or is none. The caller holds a future of the
 * same system. */
void trpi_alarm_cancel(const trpi_alarm_id *id);
/* Return the system, which stays until trpi_future_leave(); NULL: it has ended. */
trp_system *trpi_future_enter(const trp_future *future);
void trpi_future_leave(const trp_future *future);
/* Give *ret_future for a promise whose count the caller keeps. */
void trpi_promise_give(trp_promise *promise, trp_future **ret_future);

#endif

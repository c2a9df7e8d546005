/* troupe/trace.h - where a message went: traces through actors and nodes.
 *
 * A message may be part of a trace. From then on the worker passes the trace on, as it does an
 * interaction: all messages that an actor tells while it handles such a message are part of it,
 * too, with a span of their own below that of the message that was being handled. This holds for
 * tells, asks and their replies, stashed messages, messages of timers that are due once, callbacks
 * of futures and of stored events, entities, topics, and messages to other nodes that announced the
 * feature. A message that is delivered again (trp_deliver, reliable proxies, controllers of
 * troupe/delivery.h, peek mailboxes) stays in its trace: each attempt has a span and a number. A
 * hop says what became of a message; the node where it ended keeps it in a ring. A message that is
 * handled again, out of a stash, and a callback of its stored event have hops and spans of their
 * own, below the handling before.
 *
 * A trace begins where the program says so (trp_tell_traced), with the context of a W3C
 * "traceparent" header, say; or at an actor that is sampled (trp_trace_sample, `troupe trace
 * start`): one message in so many that it handles, and that belongs to no trace, begins one.
 *
 * Messages that are in no trace are not larger, and cost nothing.
 */
#ifndef TROUPE_TRACE_H
#define TROUPE_TRACE_H

#include <troupe/base.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_TRACE_TEXT_BYTES 56  /* of a traceparent, with the NUL */
#define TRP_TRACE_HOPS_MAX 4096  /* that a system keeps: the latest */
#define TRP_TRACE_SAMPLES_MAX 16 /* paths that are sampled at a time */
#define TRP_TRACE_ONE_IN_MAX 1000000000

/* The place of a message in a trace. */
typedef struct trp_trace {
    uint64_t id_high, id_low; /* of the trace; never both 0 */
    uint64_t span;            /* of the message; to begin with: of what caused it, 0: nothing */
    uint32_t attempt;         /* of a delivery that is repeated until it is confirmed; else 0 */
    uint32_t reserved;        /* 0 */
} trp_trace;

/* The end of a message of a trace. */
typedef enum trp_hop_end {
    TRP_HOP_HANDLED = 0,
    TRP_HOP_FAILED = 1, /* its handler failed */
    TRP_HOP_UNHANDLED = 2,
    TRP_HOP_DEAD = 3 /* a dead letter */
} trp_hop_end;

/* One message of a trace, at the node where it ended. */
typedef struct trp_trace_hop {
    uint64_t number; /* of the hop, from 1 on, in the order in which they ended on this system */
    trp_trace trace;
    uint64_t parent;      /* span of the message that was handled when it was told; 0: none here */
    trp_ref actor;        /* that handled it, or that it was for; none: a selection found nobody */
    const trp_type *type; /* of the message; NULL: not known here */
    uint64_t wall_ns;     /* when it was handled, by this host's clock; since the epoch */
    uint64_t net_ns;  /* on the way from another node, by the clocks of both; 0: from this node */
    uint64_t wait_ns; /* from the tell, or from its arrival, until it was handled */
    uint64_t run_ns;  /* in its handler */
    trp_err err;      /* of a handler that failed; TRP_OK: none */
    int dead_reason;  /* TRP_HOP_DEAD: a trp_dead_reason */
    trp_hop_end end;
    uint32_t reserved; /* 0 */
} trp_trace_hop;

/* Read a traceparent ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").
 *
 * Ownership: borrows text.
 * Errors:    TRP_EINVAL   it is none
 *            TRP_ENOENT   it is one that is not sampled: the trace is not to be recorded
 * Thread:    any; lock-free.
 * Source:    HOW-09, W3C Trace Context.  Since: 0.2 */
TRP_API trp_err trp_trace_parse(const char *text, trp_trace *ret_trace);

/* Write a traceparent.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    HOW-09, W3C Trace Context.  Since: 0.2 */
TRP_API void trp_trace_format(const trp_trace *trace, char text[TRP_TRACE_TEXT_BYTES]);

/* Begin a trace: give an id that no other has.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    HOW-09.  Since: 0.2 */
TRP_API void trp_trace_new(trp_system *system, trp_trace *ret_trace);

/* Is msg part of a trace? 1, and its place; else 0.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    HOW-09.  Since: 0.2 */
TRP_API int trp_msg_trace(const trp_msg *msg, trp_trace *ret_trace);

/* Do as trp_tell, as part of this trace, below trace->span; NULL: of none. trace->attempt becomes
 * that of the message: a program that tells it again until it is confirmed counts from 1.
 *
 * Ownership: borrows trace and payload.
 * Errors:    none
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    HOW-09.  Since: 0.2 */
TRP_API void trp_tell_traced(trp_ctx *ctx, trp_ref to, const trp_trace *trace, const trp_type *type,
                             const void *payload, size_t bytes);

/* Do as trp_system_tell_as, as part of this trace.
 *
 * Ownership: borrows trace and payload.
 * Errors:    none
 * Thread:    any; takes a lock for a moment; outside of actors may block until a full mailbox has
 *            room.
 * Source:    HOW-09.  Since: 0.2 */
TRP_API void trp_system_tell_traced(trp_system *system, trp_ref to, trp_ref sender,
                                    const trp_trace *trace, const trp_type *type,
                                    const void *payload, size_t bytes);

/* Sample the actors whose path matches, now and later: one in one_in of the messages that each
 * handles begins a trace, the first at once; one that is in a trace stays in it, and the next one
 * begins. Where one_in is more than the messages of a turn (throughput), only the first message of
 * a turn begins a trace: as many begin, up to a turn later. 0: no longer. A path is absolute and
 * may have wildcards as in selections ("/user/orders/?"), but no "..".
 *
 * Errors:    TRP_EINVAL   path is none, or one_in is above TRP_TRACE_ONE_IN_MAX
 *            TRP_ELIMIT   TRP_TRACE_SAMPLES_MAX other paths are sampled
 *            TRP_ENOENT   one_in is 0, and the path is not sampled
 * Thread:    any; takes a lock for moments, and time in proportion to the number of actors.
 * Source:    HOW-09.  Since: 0.2 */
TRP_API trp_err trp_trace_sample(trp_system *system, const char *path, uint32_t one_in);

/* Call fn with each hop that is kept and whose number is above `after`, in order, until it returns
 * other than TRP_OK. The hop is valid until fn returns.
 *
 * Errors:    TRP_EINVAL   system or fn is NULL
 *            TRP_ENOMEM   out of memory
 *            and those of fn
 * Thread:    any; takes a lock for a moment, not while fn runs.
 * Source:    HOW-09.  Since: 0.2 */
TRP_API trp_err trp_trace_hops(trp_system *system, uint64_t after,
                               trp_err (*fn)(void *arg, const trp_trace_hop *hop), void *arg);

/* Give the paths that are sampled: call fn with each, until it returns other than TRP_OK.
 *
 * Errors:    TRP_EINVAL   system or fn is NULL
 *            and those of fn
 * Thread:    any; takes a lock for a moment, not while fn runs.
 * Source:    HOW-09.  Since: 0.2 */
TRP_API trp_err trp_trace_samples(trp_system *system,
                                  trp_err (*fn)(void *arg, const char *path, uint32_t one_in),
                                  void *arg);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_TRACE_H */

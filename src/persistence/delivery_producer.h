/* delivery_producer.h - the engine of a producer controller: pure, without actor, clock or socket.
 *
 * Why.    Messages must be confirmed once each, whatever the wire loses, whichever consumer ends.
 * Shape.  put --> waiting --assigned to a stream with demand--> frames --request--> confirmed
 *         A stream is one registration of one consumer. Its frames are numbered from 1; a message
 *         is one frame, or several in a row (parts). A stream that ends gives its unconfirmed
 *         messages back to waiting, in the order of their numbers.
 * Must hold.
 *   delivery-producer-D1  A message is kept until it is confirmed, and is confirmed once.
 *   delivery-producer-D2  A message is in waiting or in one stream.
 *   delivery-producer-D3  No frame above the consumer's demand is sent.
 *   delivery-producer-D4  waiting and each stream's messages are in the order of their numbers,
 *       but for those that a stream took before others were given back.
 *   delivery-producer-D5  No more than messages_max and bytes_max are held.
 */
#ifndef TRPI_PERSISTENCE_DELIVERY_PRODUCER_H
#define TRPI_PERSISTENCE_DELIVERY_PRODUCER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>
#include <troupe/trace.h>

/* The head of a frame: 32 bytes, little endian. */
#define TRPI_DELIVERY_HEAD_BYTES 32u
enum { TRPI_DELIVERY_FIRST = 1, TRPI_DELIVERY_LAST = 2, TRPI_DELIVERY_PROBE = 4 };
typedef struct trpi_delivery_head {
    uint64_t stream, seq, number;
    uint32_t flags; /* TRPI_DELIVERY_* */
    uint32_t total; /* bytes of the whole message */
} trpi_delivery_head;
void trpi_delivery_head_put(const trpi_delivery_head *head, uint8_t *bytes);
void trpi_delivery_head_get(trpi_delivery_head *head, const uint8_t *bytes);

/* From consumer to producer: what it has, and how far the producer may go. */
typedef struct trpi_delivery_request {
    uint64_t stream, confirmed, received, upto;
    uint32_t resend; /* 1: what is behind received was lost */
    uint32_t zero;
} trpi_delivery_request;

typedef struct trpi_delivery_entry {
    struct trpi_delivery_entry *next;
    uint64_t number, first_seq;
    uint64_t mark; /* the shell's: mark and trace of the producer when it was put */
    trp_trace trace;
    uint32_t attempts; /* to send it */
    uint32_t parts;
    uint32_t bytes;
    uint8_t data[];
} trpi_delivery_entry;

typedef struct trpi_delivery_stream {
    struct trpi_delivery_stream *next;
    uint64_t id, nonce;
    trp_ref consumer;
    uint64_t next_seq, sent, confirmed, upto; /* sent: the next frame to send */
    uint64_t received;                        /* as far as the consumer has said */
    uint64_t heard_ms;                        /* the last news of it, or the last probe */
    trpi_delivery_entry *first, **last;
    trpi_delivery_entry *cursor; /* the one that has frame `sent`; NULL: all were sent */
    uint32_t count;
} trpi_delivery_stream;

/* The effects of the engine. Called during its functions; must not call it. */
typedef struct trpi_delivery_out {
    void *arg;
    void (*frame)(void *arg, trp_ref to, const trpi_delivery_head *head, const void *data,
                  size_t bytes);
    void (*confirmed)(void *arg, uint64_t number);
} trpi_delivery_out;

typedef struct trpi_delivery_producer {
    trpi_delivery_out out;
    bool workers; /* any number of streams; else a new one replaces the one before */
    uint32_t part_bytes, messages_max, streams_max, resend_ms;
    uint64_t bytes_max;
    uint32_t messages, streams_count;
    uint64_t bytes;
    uint64_t stream_last;               /* number of the last stream */
    uint64_t mark;                      /* of messages that are put; grows */
    trp_trace trace;                    /* of messages that are put; all 0: none */
    const trpi_delivery_entry *sending; /* during out.frame: whose frame it is; NULL: a probe */
    trpi_delivery_entry *waiting, **waiting_last;
    trpi_delivery_stream *streams;
} trpi_delivery_producer;

void trpi_delivery_producer_init(trpi_delivery_producer *p);
void trpi_delivery_producer_fini(trpi_delivery_producer *p);
/* Take a message; numbers grow. Errors: TRP_EAGAIN (messages_max, or bytes_max), TRP_ENOMEM. */
trp_err trpi_delivery_put(trpi_delivery_producer *p, uint64_t now_ms, uint64_t number,
                          const void *data, uint32_t bytes);
/* Forget a message that waits: it was confirmed in an earlier life. False: it is not there. */
bool trpi_delivery_forget(trpi_delivery_producer *p, uint64_t number);
/* Return the least mark of a message that is kept; 0: there is none. */
uint64_t trpi_delivery_mark_least(const trpi_delivery_producer *p);
/* Open a stream for a consumer, or find that of this nonce. Errors: TRP_ELIMIT, TRP_ENOMEM. */
trp_err trpi_delivery_join(trpi_delivery_producer *p, uint64_t now_ms, trp_ref consumer,
                           uint64_t nonce, uint64_t *ret_stream);
/* The consumer has ended. */
void trpi_delivery_gone(trpi_delivery_producer *p, uint64_t now_ms, trp_ref consumer);
/* False: there is no such stream. */
bool trpi_delivery_requested(trpi_delivery_producer *p, uint64_t now_ms,
                             const trpi_delivery_request *request);
/* Probe the streams that were silent for resend_ms. False: nothing is unconfirmed. */
bool trpi_delivery_tick(trpi_delivery_producer *p, uint64_t now_ms);
/* Assert the invariants. */
void trpi_delivery_producer_check(const trpi_delivery_producer *p);

/* A deliberate fault, for tests of the tests: 0 none; 1 nothing is sent again; 2 messages of a
 * stream that ends are forgotten; 3 consumers take frames twice; 4 a gap is passed over; 5 numbers
 * are confirmed when they are received. */
extern int trpi_delivery_break;

#endif

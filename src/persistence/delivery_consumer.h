/* delivery_consumer.h - the engine of a consumer controller: pure, without actor, clock or socket.
 *
 * Shape.  frames, in order --> assembled --> ready --deliver--> in hand (`ahead`) --confirm-->
 * Must hold.
 *   delivery-consumer-C1  Frames of a stream are taken in the order of their numbers, each once.
 *   delivery-consumer-C2  Demand covers the messages that `window` has room for; parts of a message
 *       that is assembled do not use it up.
 *   delivery-consumer-C3  Confirmed is what the consumer has confirmed, in order.
 *   delivery-consumer-C4  A message of at most message_bytes_max is assembled; of a longer one
 *       nothing is kept, and the stream ends.
 */
#ifndef TRPI_PERSISTENCE_DELIVERY_CONSUMER_H
#define TRPI_PERSISTENCE_DELIVERY_CONSUMER_H

#include "persistence/delivery_producer.h"

typedef struct trpi_delivery_parcel {
    struct trpi_delivery_parcel *next;
    uint64_t stream, last_seq, number;
    trp_trace trace; /* the shell's: of the frame that ended it */
    uint32_t bytes, filled;
    uint8_t data[];
} trpi_delivery_parcel;

typedef struct trpi_delivery_in {
    void *arg;
    void (*request)(void *arg, const trpi_delivery_request *request);
    void (*deliver)(void *arg, uint64_t number, const void *data, uint32_t bytes);
} trpi_delivery_in;

typedef struct trpi_delivery_consumer {
    trpi_delivery_in in;
    uint32_t window; /* messages */
    uint32_t ahead;  /* in hand at once */
    uint32_t message_bytes_max;
    uint64_t stream; /* 0: none */
    uint64_t producer;
    bool is_one;        /* the producer's only consumer: numbers come in order */
    uint64_t received;  /* frames */
    uint64_t confirmed; /* frames */
    uint64_t told_upto, told_confirmed;
    uint64_t done_number; /* of this producer, the highest that was confirmed (is_one) */
    bool gap_told;
    trp_trace trace;                        /* of the frame that is taken; all 0: none */
    const trpi_delivery_parcel *delivering; /* during in.deliver */
    uint32_t ready_count, hand_count;
    trpi_delivery_parcel *open; /* being assembled */
    trpi_delivery_parcel *ready, **ready_last;
    trpi_delivery_parcel *hand, **hand_last; /* with the consumer; data is empty */
} trpi_delivery_consumer;

void trpi_delivery_consumer_init(trpi_delivery_consumer *c);
void trpi_delivery_consumer_fini(trpi_delivery_consumer *c);
/* The producer has opened a stream. */
void trpi_delivery_stream_opened(trpi_delivery_consumer *c, uint64_t stream, uint64_t producer,
                                 bool is_one);
/* A stream has ended: what is not in hand is forgotten. */
void trpi_delivery_stream_closed(trpi_delivery_consumer *c);
/* Take a frame. Errors: TRP_EPROTO, TRP_EMSGSIZE (the stream is to be ended), TRP_ENOMEM (it counts
 * as lost). */
trp_err trpi_delivery_framed(trpi_delivery_consumer *c, const trpi_delivery_head *head,
                             const void *data, size_t bytes);
/* The consumer has confirmed the oldest message in its hand. False: it has none. */
bool trpi_delivery_confirm(trpi_delivery_consumer *c);
/* Say again where it is. */
void trpi_delivery_remind(trpi_delivery_consumer *c);

#endif

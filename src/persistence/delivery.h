/* delivery.h - messages between producer and consumer controllers. */
#ifndef TRPI_PERSISTENCE_DELIVERY_H
#define TRPI_PERSISTENCE_DELIVERY_H

#include <troupe/delivery.h>

#include "persistence/delivery_producer.h"

/* Consumer to producer, until it is answered: open a stream. nonce tells the lives of a consumer
 * controller and its registrations apart. */
typedef struct trpi_delivery_register {
    trp_ref consumer;
    uint64_t nonce;
} trpi_delivery_register;
extern trp_type trpi_delivery_register_type;

/* Producer to consumer. */
typedef struct trpi_delivery_opened {
    uint64_t nonce, stream;
    uint64_t producer; /* tells producers, and lives of one in memory, apart */
    uint32_t is_one;
    uint32_t zero;
} trpi_delivery_opened;
extern trp_type trpi_delivery_opened_type;

/* Producer to consumer: there is no such stream, register again. */
typedef struct trpi_delivery_closed {
    uint64_t stream;
} trpi_delivery_closed;
extern trp_type trpi_delivery_closed_type;

extern trp_type trpi_delivery_request_type; /* trpi_delivery_request */
extern trp_type trpi_delivery_frame_type;   /* a head (TRPI_DELIVERY_HEAD_BYTES), and data */
extern trp_type trpi_delivery_tick_type;    /* timers of both */

/* Events of a producer controller with a journal: a message, 8 bytes of its number before it; and
 * that one is confirmed. last: the highest number so far. */
typedef struct trpi_delivery_done {
    uint64_t number, last;
} trpi_delivery_done;
extern trp_type trpi_delivery_kept_type;
extern trp_type trpi_delivery_done_type;

#endif

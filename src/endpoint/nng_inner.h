/* nng_inner.h - what the files of nng's sockets share. */
#ifndef TRPI_ENDPOINT_NNG_INNER_H
#define TRPI_ENDPOINT_NNG_INNER_H

#include <troupe/nng_socket.h>

#include "actor/actor.h"
#include "endpoint/nng_address.h"
#include "endpoint/nng_library.h"

/* Complete options, without what they point to: kept for a restart. */
typedef struct trpi_nng_args {
    trpi_nng_settings settings;
    bool framed, subscribes;
    uint32_t send_max, receive_max, receive_bytes_max, exchanges_max;
    trp_ref listener;
    char listen[TRP_NNG_ADDRESSES_BYTES_MAX + 1], dial[TRP_NNG_ADDRESSES_BYTES_MAX + 1];
    char prefix[TRP_NNG_PREFIX_BYTES_MAX + 1];
} trpi_nng_args;

typedef struct trpi_nng_device_args {
    trpi_nng_args front, back;
} trpi_nng_device_args;

/* A message of trp_nng_send() or trp_nng_reply(). */
typedef struct trpi_nng_send {
    uint64_t ack, exchange;
    bool is_reply;
    uint32_t count;
    trp_bytes parts[];
} trpi_nng_send;
typedef struct trpi_nng_subscription {
    bool add;
    uint8_t bytes;
    char prefix[TRP_NNG_PREFIX_BYTES_MAX];
} trpi_nng_subscription;
typedef struct trpi_nng_done {
    uint32_t number, turn;
} trpi_nng_done;
typedef struct trpi_nng_piped {
    uint32_t added, pipe;
    char address[TRPI_NNG_ADDRESS_BYTES];
} trpi_nng_piped;
typedef struct trpi_nng_alarm {
    uint32_t number;
} trpi_nng_alarm;

extern trp_type trpi_nng_send_type, trpi_nng_subscription_type, trpi_nng_done_type,
    trpi_nng_piped_type, trpi_nng_room_type, trpi_nng_alarm_type;

extern const trp_behaviour trpi_nng_socket_behaviour, trpi_nng_device_behaviour;

/* Open all addresses; ret_address: the first one listened at. Errors, with a sentence. */
trp_err trpi_nng_addresses_open(trpi_nng *nng, const trpi_nng_args *args,
                                char ret_address[TRPI_NNG_ADDRESS_BYTES],
                                char ret_reason[TRPI_NNG_REASON_BYTES]);
/* Close a socket, or NULL; one that is late is logged. */
void trpi_nng_close(trp_ctx *ctx, trpi_nng *nng);
/* Write a sentence of why a socket was not opened, if there is none yet. */
void trpi_nng_reason_write(trp_err err, char reason[TRPI_NNG_REASON_BYTES]);
void trpi_nng_event_tell(trp_ctx *ctx, trp_ref to, uint32_t event, uint32_t pipe, trp_err err,
                         const char *address, const char *reason);
void trpi_nng_failed_tell(trp_ctx *ctx, trp_ref to, uint64_t ack, uint64_t exchange, trp_err err,
                          const char *reason);

#endif

/* nng_library.h - the scalability protocols of nng, without nng's types. */
#ifndef TRPI_ENDPOINT_NNG_LIBRARY_H
#define TRPI_ENDPOINT_NNG_LIBRARY_H

#include <stdbool.h>

#include <troupe/nng_socket.h>

typedef struct trpi_nng trpi_nng;       /* a socket */
typedef struct trpi_nng_op trpi_nng_op; /* sends or receives, one message at a time */

/* Called on threads of nng, which must not wait: no call of this header from them but
 * trpi_nng_op_turn(). */
typedef struct trpi_nng_calls {
    void (*done)(void *user, uint32_t number, uint32_t turn); /* of an operation */
    void (*piped)(void *user, bool added, uint32_t pipe, const char *address);
    void (*freed)(void *user); /* the last call, on a thread of its own: user is needed no more */
} trpi_nng_calls;

typedef struct trpi_nng_settings {
    uint32_t kind; /* TRP_NNG_* */
    bool raw;      /* of a device: routes stay with the messages */
    uint32_t message_bytes_max, timeout_ms, redial_min_ms, redial_max_ms;
} trpi_nng_settings;

#define TRPI_NNG_REASON_BYTES 160
#define TRPI_NNG_ADDRESS_BYTES 160

/* A static sentence of nng's, and ours, of the code that an operation ended with. */
trp_err trpi_nng_err(int code);
const char *trpi_nng_reason(int code);

/* Make a socket. calls: NULL for a device. Errors: TRP_ENOMEM, TRP_ELIMIT (descriptors, or
 * TRPI_CLOSING_LATE_MAX sockets hang in nng's closing). */
trp_err trpi_nng_new(const trpi_nng_settings *settings, const trpi_nng_calls *calls, void *user,
                     trpi_nng **ret_nng);
/* Close the socket and wait until no call of it runs any more, for TRPI_CLOSING_WAIT_MS at most.
 * NULL is fine. Errors: TRP_ETIMEDOUT, it is closed by a thread of its own, later or never. */
trp_err trpi_nng_free(trpi_nng *nng);

/* Listen at an address that trpi_nng_address_check() has let pass; writes where. Returns a code of
 * nng, 0: done. */
int trpi_nng_listen(trpi_nng *nng, const char *url, char ret_address[TRPI_NNG_ADDRESS_BYTES]);
/* Connect, and again whenever the connection is lost. Returns a code of nng. */
int trpi_nng_dial(trpi_nng *nng, const char *url);
/* Returns a code of nng. */
int trpi_nng_subscribe(trpi_nng *nng, bool add, const void *prefix, size_t bytes);

/* Make an operation. exchange: with a context of its own, so that many requests are on their way.
 * It lives as long as the socket. Errors: TRP_ENOMEM. */
trp_err trpi_nng_op_new(trpi_nng *nng, uint32_t number, bool exchange, trpi_nng_op **ret_op);
/* The number that done() has for the present operation; another one was given up. */
uint32_t trpi_nng_op_turn(const trpi_nng_op *op);
void trpi_nng_op_receive(trpi_nng_op *op);
/* Send parts, with the lengths behind them if framed. Errors: TRP_ENOMEM, and nothing was begun. */
trp_err trpi_nng_op_send(trpi_nng_op *op, const trp_bytes *parts, uint32_t count, bool framed);
/* After done() of a receive: give the body and where it came from. Returns a code of nng. */
int trpi_nng_op_received(trpi_nng_op *op, trp_bytes *ret_body, uint32_t *ret_pipe);
/* After done() of a send. Returns a code of nng. */
int trpi_nng_op_sent(trpi_nng_op *op);
/* Give up what an exchange does, and forget the request that it belongs to: may block. Errors:
 * TRP_ENOMEM, after which the exchange is of no use. */
trp_err trpi_nng_op_reset(trpi_nng_op *op);

/* Pass on each message of one raw socket to the other, until either closes. Errors: TRP_ENOMEM. */
trp_err trpi_nng_pump(trpi_nng *from, trpi_nng *to);

#endif

/* cookie.h - the two ends of a connection prove to each other that they know a secret, without
 * sending it. Pure.
 *
 * docs/wire.md, "TLS and cookie", is the byte by byte description; this header and that page change
 * together.
 */
#ifndef TRPI_REMOTE_COOKIE_H
#define TRPI_REMOTE_COOKIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

#define TRPI_COOKIE_MAGIC "TRC\x1a" /* 4 bytes */
#define TRPI_COOKIE_VERSION 1
#define TRPI_COOKIE_BINDING_LABEL "EXPORTER-troupe-cookie" /* of the TLS session */
#define TRPI_SECRETS_MAX 2 /* the present one, and the previous one during a rotation */
#define TRPI_SECRET_BYTES_MAX 255
#define TRPI_COOKIE_PLACE_BYTES 262 /* "host:port" and the NUL */

enum {
    TRPI_COOKIE_NONCE_BYTES = 32,
    TRPI_COOKIE_HELLO_BYTES = 40,   /* magic 4, version 1, zero 3, nonce 32 */
    TRPI_COOKIE_PROOF_BYTES = 64,   /* of the dialler: one for each secret */
    TRPI_COOKIE_VERDICT_BYTES = 40, /* of the acceptor: yes 1, zero 7, proof 32 */
    TRPI_COOKIE_STEP_BYTES_MAX = 64
};

typedef struct trpi_secrets {
    uint32_t count;
    char text[TRPI_SECRETS_MAX][TRPI_SECRET_BYTES_MAX + 1];
} trpi_secrets;

typedef enum trpi_cookie_result {
    TRPI_COOKIE_MORE,
    TRPI_COOKIE_DONE,
    TRPI_COOKIE_MISSING, /* the peer began with something else */
    TRPI_COOKIE_WRONG,   /* the peer does not know our secret */
    TRPI_COOKIE_REFUSED, /* the peer says that we do not know its secret */
    TRPI_COOKIE_BROKEN   /* out of memory, no digest */
} trpi_cookie_result;

typedef struct trpi_cookie {
    bool dialled;
    uint8_t step;
    uint8_t own[TRPI_COOKIE_NONCE_BYTES], peer[TRPI_COOKIE_NONCE_BYTES];
    uint8_t binding[32]; /* of the encrypted session below; zero without one */
    uint8_t in[TRPI_COOKIE_STEP_BYTES_MAX];
    size_t in_count;
    uint32_t matched; /* acceptor: the index of the secret that the dialler knows */
} trpi_cookie;

/* Turn a dialler's random bytes into a nonce that names the two addresses of the connection
 * ("10.0.0.1:2552") to a peer that knows the secret. false: no digest. */
bool trpi_cookie_nonce(uint8_t nonce[TRPI_COOKIE_NONCE_BYTES], const trpi_secrets *secrets,
                       const char *from, const char *to);
/* Return, at an acceptor after DONE, whether the dialler's nonce was made for these two addresses.
 * A dialler of an earlier minor version does not name any: then true. */
bool trpi_cookie_is_meant(const trpi_cookie *cookie, const trpi_secrets *secrets, const char *from,
                          const char *to);

/* Begin. random: bytes that were never used before. Appends a dialler's first bytes to out. */
trpi_cookie_result trpi_cookie_begin(trpi_cookie *cookie, bool dialled,
                                     const uint8_t random[TRPI_COOKIE_NONCE_BYTES],
                                     const uint8_t binding[32], trpi_buffer *out);
/* Return how many bytes of the peer the present step still needs. */
size_t trpi_cookie_wants(const trpi_cookie *cookie);
/* Take bytes of the peer. *ret_used of them belong to the cookie, the rest to the user. */
trpi_cookie_result trpi_cookie_feed(trpi_cookie *cookie, const trpi_secrets *secrets,
                                    const uint8_t *bytes, size_t count, size_t *ret_used,
                                    trpi_buffer *out);

#endif

/* cookie.c - see the header.
 *
 * Why.    Akka sends the cookie itself, so anybody who reads the traffic learns it. Here each end
 *         sends a keyed digest of two fresh nonces: the secret stays unknown, and a recorded proof
 *         is worthless on another connection.
 * Shape.  dialler   HELLO(nonce d)  ---------------->
 *                   <---------------- HELLO(nonce a)            acceptor
 *         PROOF(HMAC(secret_i, "d" d a binding), i = 1..2) ---->
 *                   <---------------- VERDICT(yes, HMAC(matched secret, "a" d a binding))
 *         The dialler proves first, so a stranger that dials gets no digest of the secret.
 * Must hold.
 *   cookie-K1  The two directions have different labels, so a proof cannot be sent back as an
 *       answer.
 *   cookie-K2  Proofs are compared in constant time, and all of them.          (secret_of)
 *   cookie-K4  A dialler's nonce, which both proofs cover, names the two addresses that it was made
 *       for: a proof that is relayed to another node is refused there. Without the secret nobody
 *       can make it look like the nonce of an earlier version, which names no address.
 *   cookie-K3  Only the last step says DONE; every step has a fixed length.
 * Tests.  tests/unit/remote/cookie_test.c
 */
#include "remote/security/cookie.h"

#include <string.h>

#include "base/assert.h"
#include "tls/digest.h"

enum { WAIT_HELLO, WAIT_PROOF, WAIT_VERDICT, OVER };
enum { PROOF = 32, NONCE = TRPI_COOKIE_NONCE_BYTES };

_Static_assert(TRPI_COOKIE_PROOF_BYTES == TRPI_SECRETS_MAX * PROOF, "one proof for each secret");

static bool
proof_make(const trpi_cookie *cookie, bool dialler, const char *secret, uint8_t ret_proof[PROOF])
{
    static const char label[2][24] = { "troupe cookie acceptor", "troupe cookie dialler" };
    uint8_t text[sizeof label[0] + 2 * NONCE + 32];
    uint8_t *at = text;
    const uint8_t *parts[] = { cookie->dialled ? cookie->own : cookie->peer,
                               cookie->dialled ? cookie->peer : cookie->own, cookie->binding };
    memcpy(at, label[dialler], sizeof label[0]); /* cookie-K1 */
    at += sizeof label[0];
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        memcpy(at, parts[i], 32);
        at += 32;
    }
    return trpi_hmac_sha256(secret, strlen(secret), text, sizeof text, ret_proof);
}

enum { FRESH = 8, MARK = 4, TAG = 8 }; /* of a dialler's nonce: fresh, then {mark, tag} a secret */

_Static_assert(FRESH + TRPI_SECRETS_MAX * (MARK + TAG) == NONCE, "all bytes are used");

/* The mark says that a tag follows, the tag names the addresses (cookie-K4). */
static bool
mark_and_tag(const char *secret, const uint8_t *fresh, const char *from, const char *to,
             uint8_t ret[MARK + TAG])
{
    static const char label[2][24] = { "troupe cookie nonce", "troupe cookie addresses" };
    uint8_t text[sizeof label[0] + FRESH + 2 * TRPI_COOKIE_PLACE_BYTES], digest[32];
    size_t head = sizeof label[0] + FRESH, bytes = strlen(from) + 1;
    trpi_assert(bytes <= TRPI_COOKIE_PLACE_BYTES && strlen(to) < TRPI_COOKIE_PLACE_BYTES);
    memcpy(text, label[0], sizeof label[0]);
    memcpy(text + sizeof label[0], fresh, FRESH);
    if (!trpi_hmac_sha256(secret, strlen(secret), text, head, digest)) {
        return false;
    }
    memcpy(ret, digest, MARK);
    memcpy(text, label[1], sizeof label[1]);
    memcpy(text + head, from, bytes);
    memcpy(text + head + bytes, to, strlen(to));
    if (!trpi_hmac_sha256(secret, strlen(secret), text, head + bytes + strlen(to), digest)) {
        return false;
    }
    memcpy(ret + MARK, digest, TAG);
    return true;
}

bool
trpi_cookie_nonce(uint8_t nonce[NONCE], const trpi_secrets *secrets, const char *from,
                  const char *to)
{
    bool made = true;
    for (uint32_t i = 0; i < TRPI_SECRETS_MAX; i++) { /* one secret: used twice */
        made = made && mark_and_tag(secrets->text[i < secrets->count ? i : 0], nonce, from, to,
                                    nonce + FRESH + i * (MARK + TAG));
    }
    return made;
}

bool
trpi_cookie_is_meant(const trpi_cookie *cookie, const trpi_secrets *secrets, const char *from,
                     const char *to)
{
    uint8_t wanted[MARK + TAG];
    trpi_assert(!cookie->dialled && cookie->matched < secrets->count);
    if (!mark_and_tag(secrets->text[cookie->matched], cookie->peer, from, to, wanted)) {
        return false;
    }
    for (uint32_t i = 0; i < TRPI_SECRETS_MAX; i++) {
        const uint8_t *slot = cookie->peer + FRESH + i * (MARK + TAG);
        if (trpi_equal_secret(slot, wanted, MARK)) {
            return trpi_equal_secret(slot + MARK, wanted + MARK, TAG);
        }
    }
    return true;
}

/* Return the secret that one of the count proofs was made with; NULL: none (cookie-K2). */
static const char *
secret_of(const trpi_cookie *cookie, const trpi_secrets *secrets, bool dialler,
          const uint8_t *proofs, size_t count)
{
    const char *found = NULL;
    for (uint32_t i = 0; i < secrets->count; i++) {
        uint8_t proof[PROOF];
        bool made = proof_make(cookie, dialler, secrets->text[i], proof);
        for (size_t k = 0; k < count; k++) {
            bool equal = trpi_equal_secret(proof, proofs + k * PROOF, PROOF);
            found = made && equal && found == NULL ? secrets->text[i] : found;
        }
    }
    return found;
}

static trpi_cookie_result
step_append(trpi_buffer *out, const void *bytes, size_t count, trpi_cookie_result result)
{
    /* no limit: the steps have fixed lengths */
    return trpi_buffer_append(out, bytes, count, TRPI_BUFFER_NO_LIMIT) == TRP_OK
               ? result
               : TRPI_COOKIE_BROKEN;
}

static trpi_cookie_result
hello_append(const trpi_cookie *cookie, trpi_buffer *out)
{
    uint8_t bytes[TRPI_COOKIE_HELLO_BYTES] = { 0 };
    memcpy(bytes, TRPI_COOKIE_MAGIC, 4);
    bytes[4] = TRPI_COOKIE_VERSION;
    memcpy(bytes + 8, cookie->own, NONCE);
    return step_append(out, bytes, sizeof bytes, TRPI_COOKIE_MORE);
}

trpi_cookie_result
trpi_cookie_begin(trpi_cookie *cookie, bool dialled, const uint8_t random[NONCE],
                  const uint8_t binding[32], trpi_buffer *out)
{
    memset(cookie, 0, sizeof *cookie);
    cookie->dialled = dialled;
    cookie->step = WAIT_HELLO;
    memcpy(cookie->own, random, NONCE);
    memcpy(cookie->binding, binding, sizeof cookie->binding);
    return dialled ? hello_append(cookie, out) : TRPI_COOKIE_MORE;
}

static size_t
step_bytes(uint8_t step)
{
    return step == WAIT_HELLO   ? (size_t)TRPI_COOKIE_HELLO_BYTES
           : step == WAIT_PROOF ? (size_t)TRPI_COOKIE_PROOF_BYTES
                                : (size_t)TRPI_COOKIE_VERDICT_BYTES;
}

size_t
trpi_cookie_wants(const trpi_cookie *cookie)
{
    return cookie->step == OVER ? 0 : step_bytes(cookie->step) - cookie->in_count;
}

static trpi_cookie_result
on_hello(trpi_cookie *cookie, const trpi_secrets *secrets, trpi_buffer *out)
{
    memcpy(cookie->peer, cookie->in + 8, NONCE);
    if (!cookie->dialled) {
        cookie->step = WAIT_PROOF;
        return hello_append(cookie, out);
    }
    uint8_t proofs[TRPI_COOKIE_PROOF_BYTES] = { 0 };
    for (uint32_t i = 0; i < TRPI_SECRETS_MAX; i++) {
        /* one secret: its proof twice */
        if (!proof_make(cookie, true, secrets->text[i < secrets->count ? i : 0],
                        proofs + i * PROOF)) {
            return TRPI_COOKIE_BROKEN;
        }
    }
    cookie->step = WAIT_VERDICT;
    return step_append(out, proofs, sizeof proofs, TRPI_COOKIE_MORE);
}

static trpi_cookie_result
on_proof(trpi_cookie *cookie, const trpi_secrets *secrets, trpi_buffer *out)
{
    uint8_t verdict[TRPI_COOKIE_VERDICT_BYTES] = { 0 };
    const char *secret = secret_of(cookie, secrets, true, cookie->in, TRPI_SECRETS_MAX);
    cookie->step = OVER;
    for (uint32_t i = 0; i < secrets->count; i++) {
        cookie->matched = secret == secrets->text[i] ? i : cookie->matched;
    }
    if (secret != NULL && !proof_make(cookie, false, secret, verdict + 8)) {
        return TRPI_COOKIE_BROKEN;
    }
    verdict[0] = secret != NULL;
    return step_append(out, verdict, sizeof verdict,
                       secret != NULL ? TRPI_COOKIE_DONE : TRPI_COOKIE_WRONG);
}

static trpi_cookie_result
on_verdict(trpi_cookie *cookie, const trpi_secrets *secrets)
{
    cookie->step = OVER;
    if (cookie->in[0] != 1) {
        return TRPI_COOKIE_REFUSED;
    }
    return secret_of(cookie, secrets, false, cookie->in + 8, 1) != NULL ? TRPI_COOKIE_DONE
                                                                        : TRPI_COOKIE_WRONG;
}

/* The peer did not begin with a cookie. Tell it that one is needed if it is a node; other strangers
 * get no answer. */
static trpi_cookie_result
cookie_missing(const trpi_cookie *cookie, trpi_buffer *out)
{
    bool tell = !cookie->dialled && cookie->in_count >= 3 && memcmp(cookie->in, "TRP", 3) == 0;
    return !tell || hello_append(cookie, out) == TRPI_COOKIE_MORE ? TRPI_COOKIE_MISSING
                                                                  : TRPI_COOKIE_BROKEN;
}

trpi_cookie_result
trpi_cookie_feed(trpi_cookie *cookie, const trpi_secrets *secrets, const uint8_t *bytes,
                 size_t count, size_t *ret_used, trpi_buffer *out)
{
    trpi_cookie_result result = TRPI_COOKIE_MORE;
    trpi_assert(secrets->count >= 1 && secrets->count <= TRPI_SECRETS_MAX);
    *ret_used = 0;
    while (result == TRPI_COOKIE_MORE && *ret_used < count) {
        size_t want = step_bytes(cookie->step) - cookie->in_count;
        size_t part = count - *ret_used < want ? count - *ret_used : want;
        memcpy(cookie->in + cookie->in_count, bytes + *ret_used, part);
        cookie->in_count += part;
        *ret_used += part;
        size_t known = cookie->in_count < 4 ? cookie->in_count : 4;
        if (cookie->step == WAIT_HELLO && memcmp(cookie->in, TRPI_COOKIE_MAGIC, known) != 0) {
            return cookie_missing(cookie, out); /* without waiting for the rest */
        }
        if (cookie->in_count < step_bytes(cookie->step)) {
            return TRPI_COOKIE_MORE;
        }
        cookie->in_count = 0;
        result = cookie->step == WAIT_HELLO   ? on_hello(cookie, secrets, out)
                 : cookie->step == WAIT_PROOF ? on_proof(cookie, secrets, out)
                                              : on_verdict(cookie, secrets);
    }
    return result;
}

/* sessions.h - how a browser becomes a reader: a code that is good once, and the cookie that it is
 * exchanged for. Without sockets and clocks.
 *
 * Why.     A browser has no token, and one in an address would stay in its history. `troupe
 *          dashboard` has the node make a code; the page exchanges it for a cookie that no script
 *          can read.
 * Must hold.
 *   sessions-S1  A code opens one session at most, and none after its time.      (sessions_open)
 *   sessions-S2  Codes and cookies are kept and compared as digests, like tokens. (pass_find)
 *   sessions-S3  A session is a reader's: it can change nothing.                 (level_of)
 * Limits.  TRPI_MANAGEMENT_CODES_MAX and _SESSIONS_MAX: one more replaces the one that ends first.
 * Thread.  One at a time.
 * Tests.   tests/unit/management/sessions_test.c, tests/system/dashboard.sh
 * Sources. RFC 6265bis, cookies: HttpOnly, SameSite.
 */
#ifndef TRPI_MANAGEMENT_SESSIONS_H
#define TRPI_MANAGEMENT_SESSIONS_H

#include "cluster/management/request.h"

#define TRPI_MANAGEMENT_CODES_MAX 8u
#define TRPI_MANAGEMENT_SESSIONS_MAX 32u
#define TRPI_MANAGEMENT_CODE_MS 60000u
#define TRPI_MANAGEMENT_SESSION_MS (12u * 3600u * 1000u)
#define TRPI_MANAGEMENT_SECRET_BYTES 32u                                   /* of random bytes */
#define TRPI_MANAGEMENT_SECRET_TEXT (2 * TRPI_MANAGEMENT_SECRET_BYTES + 1) /* as digits, with NUL */

typedef struct trpi_management_pass {
    uint8_t digest[TRPI_MANAGEMENT_DIGEST_BYTES];
    uint64_t until_ms; /* 0: the place is free */
} trpi_management_pass;

typedef struct trpi_management_sessions {
    trpi_management_pass codes[TRPI_MANAGEMENT_CODES_MAX];
    trpi_management_pass list[TRPI_MANAGEMENT_SESSIONS_MAX];
} trpi_management_sessions;

/* Make a code of random bytes. false: OpenSSL has failed. */
bool trpi_management_code_make(trpi_management_sessions *sessions, uint64_t now_ms,
                               const uint8_t random[TRPI_MANAGEMENT_SECRET_BYTES],
                               char ret_code[TRPI_MANAGEMENT_SECRET_TEXT]);
/* Take a code, which is good no more, and make a session of random bytes. false: there is no such
 * code, or no more (sessions-S1). */
bool trpi_management_sessions_open(trpi_management_sessions *sessions, const char *code,
                                   uint64_t now_ms,
                                   const uint8_t random[TRPI_MANAGEMENT_SECRET_BYTES],
                                   char ret_secret[TRPI_MANAGEMENT_SECRET_TEXT]);
/* Is it the secret of a session that has not ended? */
bool trpi_management_sessions_hold(const trpi_management_sessions *sessions, const char *secret,
                                   uint64_t now_ms);

/* Browsers do not tell ports of a host apart, so the name has it. */
#define TRPI_MANAGEMENT_COOKIE_BYTES 192u
/* Write the value of Set-Cookie. tls: it is sent over TLS alone. */
void trpi_management_cookie_write(uint16_t port, const char *secret, bool tls,
                                  char ret_text[TRPI_MANAGEMENT_COOKIE_BYTES]);
/* Find our cookie in a Cookie header. false: it is not there, or is none of ours. */
bool trpi_management_cookie_get(const char *header, uint16_t port,
                                char ret_secret[TRPI_MANAGEMENT_SECRET_TEXT]);

#endif

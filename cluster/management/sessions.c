/* sessions.c - see sessions.h. */
#include "cluster/management/sessions.h"

#include <stdio.h>
#include <string.h>

#include "cluster/management/access.h"
#include "tls/digest.h"

#define COOKIE_NAME "troupe-%u"

/* Return the place of this text among the passes that still hold; NULL: there is none.
 * sessions-S2: no early end. */
static const trpi_management_pass *
pass_find(const trpi_management_pass *passes, size_t count, const char *text, uint64_t now_ms)
{
    uint8_t digest[TRPI_MANAGEMENT_DIGEST_BYTES];
    const trpi_management_pass *found = NULL;
    size_t bytes = strlen(text);
    if (bytes != TRPI_MANAGEMENT_SECRET_TEXT - 1 ||
        !trpi_management_token_digest(text, bytes, digest)) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        bool equal = trpi_equal_secret(passes[i].digest, digest, sizeof digest);
        found = equal && passes[i].until_ms > now_ms ? &passes[i] : found;
    }
    trpi_cleanse(digest, sizeof digest);
    return found;
}

/* Keep a secret of these random bytes in the place that is free, or ends first. */
static bool
pass_add(trpi_management_pass *passes, size_t count, uint64_t until_ms,
         const uint8_t random[TRPI_MANAGEMENT_SECRET_BYTES],
         char ret_secret[TRPI_MANAGEMENT_SECRET_TEXT])
{
    trpi_management_pass *place = &passes[0];
    for (size_t i = 1; i < count; i++) {
        place = passes[i].until_ms < place->until_ms ? &passes[i] : place;
    }
    for (size_t i = 0; i < TRPI_MANAGEMENT_SECRET_BYTES; i++) {
        (void)snprintf(ret_secret + 2 * i, 3, "%02x", random[i]);
    }
    bool ok =
        trpi_management_token_digest(ret_secret, TRPI_MANAGEMENT_SECRET_TEXT - 1, place->digest);
    place->until_ms = ok ? until_ms : 0;
    return ok;
}

bool
trpi_management_code_make(trpi_management_sessions *sessions, uint64_t now_ms,
                          const uint8_t random[TRPI_MANAGEMENT_SECRET_BYTES],
                          char ret_code[TRPI_MANAGEMENT_SECRET_TEXT])
{
    return pass_add(sessions->codes, TRPI_MANAGEMENT_CODES_MAX, now_ms + TRPI_MANAGEMENT_CODE_MS,
                    random, ret_code);
}

bool
trpi_management_sessions_open(trpi_management_sessions *sessions, const char *code, uint64_t now_ms,
                              const uint8_t random[TRPI_MANAGEMENT_SECRET_BYTES],
                              char ret_secret[TRPI_MANAGEMENT_SECRET_TEXT])
{
    const trpi_management_pass *found =
        pass_find(sessions->codes, TRPI_MANAGEMENT_CODES_MAX, code, now_ms);
    if (found == NULL) {
        return false;
    }
    memset(&sessions->codes[found - sessions->codes], 0, sizeof *found); /* sessions-S1 */
    return pass_add(sessions->list, TRPI_MANAGEMENT_SESSIONS_MAX,
                    now_ms + TRPI_MANAGEMENT_SESSION_MS, random, ret_secret);
}

bool
trpi_management_sessions_hold(const trpi_management_sessions *sessions, const char *secret,
                              uint64_t now_ms)
{
    return pass_find(sessions->list, TRPI_MANAGEMENT_SESSIONS_MAX, secret, now_ms) != NULL;
}

/* ---- cookies --------------------------------------------------------------------------------- */

void
trpi_management_cookie_write(uint16_t port, const char *secret, bool tls,
                             char ret_text[TRPI_MANAGEMENT_COOKIE_BYTES])
{
    (void)snprintf(ret_text, TRPI_MANAGEMENT_COOKIE_BYTES,
                   COOKIE_NAME "=%s; Path=/; Max-Age=%u; HttpOnly; SameSite=Strict%s", port, secret,
                   TRPI_MANAGEMENT_SESSION_MS / 1000, tls ? "; Secure" : "");
}

bool
trpi_management_cookie_get(const char *header, uint16_t port,
                           char ret_secret[TRPI_MANAGEMENT_SECRET_TEXT])
{
    char name[24];
    size_t name_bytes = (size_t)snprintf(name, sizeof name, COOKIE_NAME "=", port);
    for (const char *at = header; *at != '\0';) {
        at += strspn(at, "; ");
        size_t bytes = strcspn(at, ";");
        if (bytes == name_bytes + TRPI_MANAGEMENT_SECRET_TEXT - 1 &&
            memcmp(at, name, name_bytes) == 0) {
            memcpy(ret_secret, at + name_bytes, TRPI_MANAGEMENT_SECRET_TEXT - 1);
            ret_secret[TRPI_MANAGEMENT_SECRET_TEXT - 1] = '\0';
            return true;
        }
        at += bytes;
    }
    return false;
}

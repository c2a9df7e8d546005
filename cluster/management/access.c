/* access.c - see access.h.
 *
 * Must hold.
 *   access-A1  Tokens are compared by keyed digests of equal length, each with each, in a time that
 *       does not depend on where they differ (trpi_management_level_of).
 *   access-A2  A header that is not exactly what is expected is refused, never repaired.
 * Tests.   tests/unit/management/access_test.c, tests/fuzz/management_fuzz.c
 */
#include "cluster/management/access.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/address.h"
#include "base/assert.h"
#include "base/errno_name.h"
#include "cluster/management/sessions.h"
#include "tls/digest.h"

#define HOST_BYTES 256u /* of a host and its port */
#define FILE_BYTES_MAX (TRPI_MANAGEMENT_TOKENS_MAX * (TRPI_MANAGEMENT_TOKEN_BYTES_MAX + 2u))

/* The key of digests that are only compared: it makes them no secret, but fixes their length. */
static const char digest_key[] = "troupe management token";

/* ---- hosts ----------------------------------------------------------------------------------- */

/* Take the host out of "host", "host:port", "[v6]:port", in lower case and without brackets.
 * false: it is none of these. */
static bool
host_take(const char *text, char ret_host[HOST_BYTES])
{
    size_t bytes = strlen(text), begin = 0, end = 0;
    if (bytes == 0 || bytes >= HOST_BYTES) {
        return false;
    }
    if (text[0] == '[') {
        begin = 1;
        end = 1 + strspn(text + 1, "0123456789abcdefABCDEF:.");
        if (text[end] != ']' || end == 1) {
            return false;
        }
    } else {
        end = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._");
        if (end == 0) {
            return false;
        }
    }
    const char *port = text + end + (text[0] == '[' ? 1 : 0);
    if (port[0] != '\0') {
        size_t digits = port[0] == ':' ? strspn(port + 1, "0123456789") : 0;
        if (digits == 0 || digits > 5 || port[1 + digits] != '\0') {
            return false;
        }
    }
    for (size_t i = begin; i < end; i++) {
        char c = text[i];
        ret_host[i - begin] = c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
    }
    ret_host[end - begin] = '\0';
    return true;
}

static bool
list_has_host(const char *const *list, size_t count, const char *host)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(list[i], host) == 0) {
            return true;
        }
    }
    return false;
}

bool
trpi_management_host_is_ours(const trpi_management_policy *policy, const char *host)
{
    char name[HOST_BYTES];
    if (host == NULL || !host_take(host, name)) {
        return false;
    }
    return strcasecmp(name, policy->bound) == 0 ||
           (policy->is_local && trpi_host_is_loopback(name)) ||
           list_has_host(policy->hosts, policy->hosts_count, name);
}

bool
trpi_management_origin_is_ours(const char *origin, const char *host)
{
    if (origin == NULL) {
        return true;
    }
    const char *rest = strncasecmp(origin, "http://", 7) == 0    ? origin + 7
                       : strncasecmp(origin, "https://", 8) == 0 ? origin + 8
                                                                 : NULL;
    return rest != NULL && host != NULL && rest[0] != '\0' && strcasecmp(rest, host) == 0;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

bool
trpi_management_token_digest(const char *token, size_t bytes,
                             uint8_t ret_digest[TRPI_MANAGEMENT_DIGEST_BYTES])
{
    return trpi_hmac_sha256(digest_key, sizeof digest_key - 1, token, bytes, ret_digest);
}

bool
trpi_management_token_derive(const char *cookie, const char *system, char ret_token[65])
{
    char text[128];
    uint8_t digest[TRPI_MANAGEMENT_DIGEST_BYTES];
    int length = snprintf(text, sizeof text, "troupe management 1 %s", system);
    if (length < 0 || (size_t)length >= sizeof text ||
        !trpi_hmac_sha256(cookie, strlen(cookie), text, (size_t)length, digest)) {
        return false;
    }
    for (size_t i = 0; i < sizeof digest; i++) {
        (void)snprintf(ret_token + 2 * i, 3, "%02x", digest[i]);
    }
    return true;
}

/* The characters of a bearer token: token68 of RFC 7235. */
static bool
is_token(const char *token, size_t bytes)
{
    size_t used = 0;
    while (used < bytes && token[used] != '\0' &&
           strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/",
                  token[used]) != NULL) {
        used++;
    }
    while (used < bytes && token[used] == '=') {
        used++;
    }
    return used == bytes && bytes >= TRPI_MANAGEMENT_TOKEN_BYTES_MIN &&
           bytes <= TRPI_MANAGEMENT_TOKEN_BYTES_MAX;
}

trp_err
trpi_management_tokens_add(trpi_management_tokens *tokens, const char *token, size_t bytes,
                           trpi_management_level level)
{
    trpi_assert(level != TRPI_MANAGEMENT_NOBODY);
    if (!is_token(token, bytes)) {
        return TRP_EINVAL;
    }
    if (tokens->count == sizeof tokens->list / sizeof tokens->list[0]) {
        return TRP_ELIMIT;
    }
    trpi_management_token *place = &tokens->list[tokens->count];
    if (!trpi_management_token_digest(token, bytes, place->digest)) {
        return TRP_EIO;
    }
    place->level = level;
    place->line = 0;
    tokens->count++;
    return TRP_OK;
}

/* A name that is printable: it stands in a line of the log. */
static void
who_certificate(const char *name, char ret_who[TRPI_MANAGEMENT_WHO_BYTES])
{
    (void)snprintf(ret_who, TRPI_MANAGEMENT_WHO_BYTES, "cert=%s", name); /* cut is fine */
    for (char *c = ret_who; *c != '\0'; c++) {
        *c = *c > ' ' && *c < 127 && *c != '"' ? *c : '?';
    }
}

static void
who_token(const trpi_management_token *token, char ret_who[TRPI_MANAGEMENT_WHO_BYTES])
{
    const uint8_t *d = token->digest;
    if (token->line == 0) {
        (void)snprintf(ret_who, TRPI_MANAGEMENT_WHO_BYTES, "cookie");
    } else {
        (void)snprintf(ret_who, TRPI_MANAGEMENT_WHO_BYTES, "token=%u/%02x%02x%02x%02x", token->line,
                       d[0], d[1], d[2], d[3]);
    }
}

/* Return what the certificate or the session allows. */
static trpi_management_level
level_without_token(const trpi_management_policy *policy, const trpi_management_request *request,
                    char ret_who[TRPI_MANAGEMENT_WHO_BYTES])
{
    const char *name = request->certificate;
    trpi_management_level level = TRPI_MANAGEMENT_NOBODY;
    if (name != NULL && list_has_host(policy->writers, policy->writers_count, name)) {
        level = TRPI_MANAGEMENT_WRITER;
    } else if (name != NULL && list_has_host(policy->readers, policy->readers_count, name)) {
        level = TRPI_MANAGEMENT_READER;
    }
    if (level != TRPI_MANAGEMENT_NOBODY) {
        who_certificate(name, ret_who);
    } else if (request->session != NULL && policy->sessions != NULL &&
               trpi_management_origin_is_ours(request->origin, request->host) &&
               trpi_management_sessions_hold(policy->sessions, request->session, policy->now_ms)) {
        level = TRPI_MANAGEMENT_READER; /* sessions-S3 */
        (void)snprintf(ret_who, TRPI_MANAGEMENT_WHO_BYTES, "session");
    }
    return level;
}

trpi_management_level
trpi_management_level_of(const trpi_management_policy *policy,
                         const trpi_management_request *request, bool *ret_shown,
                         char ret_who[TRPI_MANAGEMENT_WHO_BYTES])
{
    const char *header = request->authorization;
    uint8_t digest[TRPI_MANAGEMENT_DIGEST_BYTES];
    const trpi_management_token *match = NULL;
    ret_who[0] = '\0';
    *ret_shown = header != NULL || request->certificate != NULL || request->session != NULL;
    trpi_management_level level = level_without_token(policy, request, ret_who);
    if (header == NULL || strncasecmp(header, "Bearer ", 7) != 0) {
        return level;
    }
    const char *token = header + 7;
    size_t bytes = strlen(token);
    if (bytes > TRPI_MANAGEMENT_TOKEN_BYTES_MAX ||
        !trpi_management_token_digest(token, bytes, digest)) {
        return level;
    }
    for (size_t i = 0; i < policy->tokens->count; i++) { /* access-A1: no early end */
        const trpi_management_token *known = &policy->tokens->list[i];
        bool equal = trpi_equal_secret(known->digest, digest, sizeof digest);
        match = equal && known->level > level ? known : match;
        level = match != NULL && match->level > level ? match->level : level;
    }
    if (match != NULL) {
        who_token(match, ret_who);
    }
    trpi_cleanse(digest, sizeof digest);
    return level;
}

/* ---- files ----------------------------------------------------------------------------------- */

static trp_err __attribute__((format(printf, 2, 3)))
why_write(char why[TRPI_MANAGEMENT_WHY_BYTES], const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(why, TRPI_MANAGEMENT_WHY_BYTES, format, list); /* cut is fine */
    va_end(list);
    return TRP_ECONFIG;
}

/* Read a private file. *ret_bytes above FILE_BYTES_MAX: it is too long. */
static trp_err
file_read(const char *path, char text[FILE_BYTES_MAX + 1], size_t *ret_bytes,
          char why[TRPI_MANAGEMENT_WHY_BYTES])
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return why_write(why, "cannot read %s: %s (%s)", path, strerror(errno),
                         trpi_errno_name(errno));
    }
    trp_err err = TRP_OK;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        err = why_write(why, "%s is no regular file", path);
    } else if (status.st_uid != geteuid() && status.st_uid != 0) {
        err =
            why_write(why, "%s belongs to uid %u: it must be this node's user's (uid %u) or root's",
                      path, (unsigned)status.st_uid, (unsigned)geteuid());
    } else if ((status.st_mode & 077) != 0) {
        err = why_write(why, "%s: others may read it (mode %04o): chmod 600", path,
                        (unsigned)status.st_mode & 07777);
    }
    size_t count = 0;
    for (ssize_t part = 1; err == TRP_OK && part > 0 && count <= FILE_BYTES_MAX;) {
        part = read(fd, text + count, FILE_BYTES_MAX + 1 - count);
        count += part > 0 ? (size_t)part : 0;
        if (part < 0) {
            err = why_write(why, "cannot read %s: %s", path, strerror(errno));
        }
    }
    (void)close(fd);
    *ret_bytes = count;
    return err;
}

trp_err
trpi_management_tokens_load(trpi_management_tokens *tokens, const char *path,
                            trpi_management_level level, char why[TRPI_MANAGEMENT_WHY_BYTES])
{
    char text[FILE_BYTES_MAX + 1];
    size_t bytes = 0, before = tokens->count, line = 0;
    trp_err err = file_read(path, text, &bytes, why);
    if (err == TRP_OK && bytes > FILE_BYTES_MAX) {
        err = why_write(why, "%s is longer than %u bytes", path, FILE_BYTES_MAX);
    }
    for (size_t at = 0; err == TRP_OK && at < bytes;) {
        const char *end = memchr(text + at, '\n', bytes - at);
        size_t count = end != NULL ? (size_t)(end - (text + at)) : bytes - at, length = count;
        line++;
        while (length > 0 && strchr(" \t\r", text[at + length - 1]) != NULL) {
            length--;
        }
        if (length > 0 && text[at] != '#') {
            err = tokens->count - before == TRPI_MANAGEMENT_TOKENS_MAX
                      ? TRP_ELIMIT
                      : trpi_management_tokens_add(tokens, text + at, length, level);
            if (err == TRP_OK) {
                tokens->list[tokens->count - 1].line = (uint32_t)line;
            }
        }
        at += count + 1;
    }
    trpi_cleanse(text, sizeof text);
    if (err == TRP_ELIMIT) {
        err = why_write(why, "%s holds more than %u tokens", path, TRPI_MANAGEMENT_TOKENS_MAX);
    } else if (err != TRP_OK && err != TRP_ECONFIG) {
        err =
            why_write(why,
                      "%s:%zu: no token: %u to %u letters, digits and -._~+/ are one (openssl rand "
                      "-hex 32 makes one)",
                      path, line, TRPI_MANAGEMENT_TOKEN_BYTES_MIN, TRPI_MANAGEMENT_TOKEN_BYTES_MAX);
    } else if (err == TRP_OK && tokens->count == before) {
        err = why_write(why, "%s holds no token (openssl rand -hex 32 makes one)", path);
    }
    if (err != TRP_OK) {
        tokens->count = before;
    }
    return err;
}

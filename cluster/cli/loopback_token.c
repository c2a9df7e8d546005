/* loopback_token.c - see the header.
 *
 * Why.     A node on loopback takes a token that is made of the cookie of its user, a file that
 *          that user alone may read. So an operator on that host needs no file of tokens.
 * Must hold.
 *   loopback-token-L1  The token is made for a listener of this user or of root alone: any user of
 *       the host may listen on a port of loopback.                             (listener_check)
 * Limits.  The table of sockets is looked at just before; a port can change its owner meanwhile.
 * Cost.    Nothing unless the node asks for a credential: then one more request.
 * Tests.   tests/system/endpoint.sh
 */
#include "cluster/cli/loopback_token.h"

#ifdef HAVE_LIBCURL

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/opensslv.h>

#include "base/address.h"
#include "base/cookie_reader.h"

#define LISTENS 0x0Au /* state of /proc/net/tcp */
#define PORT_HTTP 80u

#if OPENSSL_VERSION_NUMBER >= 0x30000000L
#define CRYPTO_FILE "libcrypto.so.3"
#define CRYPTO_PACKAGE "libssl3"
#else
#define CRYPTO_FILE "libcrypto.so.1.1"
#define CRYPTO_PACKAGE "libssl1.1"
#endif

#define CRYPTO_FUNCTIONS(F)                                                                        \
    F(EVP_sha256)                                                                                  \
    F(HMAC)

static struct {
    CRYPTO_FUNCTIONS(TRPI_LIBRARY_MEMBER)
} crypto;
static const char *const names[] = { CRYPTO_FUNCTIONS(TRPI_LIBRARY_NAME) };
static trpi_loaded_library library = { .file = CRYPTO_FILE,
                                       .package = CRYPTO_PACKAGE,
                                       .names = names,
                                       .count = sizeof names / sizeof names[0],
                                       .functions = &crypto };

/* ---- the listener ---------------------------------------------------------------------------- */

static unsigned
port_of(const trpi_transfer *t)
{
    const char *rest = t->base + strlen("http://");
    const char *colon = strchr(rest[0] == '[' ? rest + strcspn(rest, "]") : rest, ':');
    return colon != NULL ? (unsigned)strtoul(colon + 1, NULL, 10) : PORT_HTTP;
}

/* Count the listeners of a port in a table of the kernel; *ret_uid: of one that is neither root's
 * nor this user's. */
static unsigned
listeners_count(const char *table, unsigned port, unsigned *ret_uid, bool *ret_foreign)
{
    char line[512];
    unsigned count = 0;
    FILE *file = fopen(table, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        unsigned at = 0, state = 0, uid = 0;
        int got =
            sscanf(line, " %*[^:]: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*[^ ] %*[^ ] %*[^ ] %u",
                   &at, &state, &uid);
        if (got == 3 && at == port && state == LISTENS) {
            count++;
            if (uid != 0 && uid != geteuid()) {
                *ret_foreign = true;
                *ret_uid = uid;
            }
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return count;
}

/* loopback-token-L1 */
static bool
listener_check(trpi_transfer *t)
{
    unsigned port = port_of(t), uid = 0;
    bool foreign = false;
    unsigned count = listeners_count("/proc/net/tcp", port, &uid, &foreign) +
                     listeners_count("/proc/net/tcp6", port, &uid, &foreign);
    if (foreign) {
        (void)snprintf(t->no_token, sizeof t->no_token,
                       "uid %u listens on port %u, and is not given the token of your cookie", uid,
                       port);
    } else if (count == 0) {
        (void)snprintf(t->no_token, sizeof t->no_token,
                       "/proc/net/tcp does not say which user listens on port %u", port);
    }
    return count > 0 && !foreign;
}

/* ---- the cookie and the system --------------------------------------------------------------- */

static bool
cookie_read(trpi_transfer *t, trpi_cookie_secrets *ret_secrets)
{
    char path[TRPI_COOKIE_FILE_PATH_BYTES], why[TRPI_COOKIE_FILE_WHY_BYTES];
    size_t kept = 0;
    trp_err err = trpi_cookie_file_of_user(path, &kept, why);
    if (err != TRP_OK) {
        (void)snprintf(t->no_token, sizeof t->no_token,
                       "set HOME, XDG_CONFIG_HOME or STATE_DIRECTORY as the node has it");
        return false;
    }
    err = trpi_cookie_file_read(path, true, ret_secrets, why);
    if (err == TRP_ENOENT) {
        (void)snprintf(t->no_token, sizeof t->no_token,
                       "there is no %s: no node of this user has made one, or it has another "
                       "STATE_DIRECTORY, XDG_CONFIG_HOME or HOME",
                       path);
    } else if (err != TRP_OK) {
        (void)snprintf(t->no_token, sizeof t->no_token, "%.480s", why);
    } else {
        (void)snprintf(t->cookie_file, sizeof t->cookie_file, "%s", path);
    }
    return err == TRP_OK;
}

/* Take the name of the system out of an address: troupe.tcp://NAME@host:port. */
static bool
system_take(const char *address, char ret_system[TRPI_ADDRESS_TEXT_BYTES])
{
    const char *begin = address != NULL ? strstr(address, "://") : NULL;
    const char *end = begin != NULL ? strchr(begin, '@') : NULL;
    if (end == NULL) {
        return false;
    }
    (void)snprintf(ret_system, TRPI_ADDRESS_TEXT_BYTES, "%.*s", (int)(end - begin - 3), begin + 3);
    return true;
}

/* Ask the node for its address, which any user of the host may. */
static bool
system_ask(trpi_transfer *t, char ret_system[TRPI_ADDRESS_TEXT_BYTES])
{
    trpi_transfer members;
    cJSON *answer = NULL;
    long status = 0;
    bool ok =
        trpi_transfer_begin(&members, t->cli) == 0 &&
        trpi_buffer_printf(&members.url, TRPI_CTL_REQUEST_BYTES_MAX, "%.*s/cluster/members",
                           (int)members.base_bytes, members.base) == TRP_OK &&
        trpi_transfer_options(&members) &&
        members.curl->curl_easy_perform(members.easy) == CURLE_OK &&
        members.curl->curl_easy_getinfo(members.easy, CURLINFO_RESPONSE_CODE, &status) ==
            CURLE_OK &&
        status == 200 &&
        trpi_json_parse((const char *)members.in.data, members.in.count, &answer, NULL) == TRP_OK &&
        system_take(trpi_json_get_text(answer, "selfNode"), ret_system);
    cJSON_Delete(answer);
    trpi_transfer_end(&members);
    if (!ok) {
        (void)snprintf(t->no_token, sizeof t->no_token, "the node does not tell its system");
    }
    return ok;
}

/* ---- the token ------------------------------------------------------------------------------- */

bool
trpi_cli_loopback_token(trpi_transfer *t, char ret_token[TRPI_CLI_TOKEN_BYTES])
{
    char system[TRPI_ADDRESS_TEXT_BYTES], text[TRPI_ADDRESS_TEXT_BYTES + 32];
    unsigned char digest[32];
    unsigned bytes = 0;
    trpi_cookie_secrets secrets;
    if (!listener_check(t) || !cookie_read(t, &secrets)) {
        return false;
    }
    bool ok = system_ask(t, system) && trpi_library_open(&library, t->no_token, sizeof t->no_token);
    int length = ok ? snprintf(text, sizeof text, "troupe management 1 %s", system) : 0;
    ok = ok && crypto.HMAC(crypto.EVP_sha256(), secrets.now, (int)strlen(secrets.now),
                           (const unsigned char *)text, (size_t)length, digest, &bytes) != NULL;
    for (size_t i = 0; ok && i < bytes; i++) {
        (void)snprintf(ret_token + 2 * i, 3, "%02x", digest[i]);
    }
    explicit_bzero(&secrets, sizeof secrets);
    return ok;
}

#endif

/* cookie_file.c - see the header.
 *
 * Must hold.
 *   cookie-file-F1  A reader never sees half a file: it is written under another name, and linked
 *       to its own, which fails when there is one already. (make)
 * Tests.   tests/unit/node/cookie_file_test.c, tests/system/cookie.sh
 */
#include "cluster/node/cookie_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/address.h"
#include "base/assert.h"
#include "cluster/node/cert.h"

#define REQUIRE "remote.require-cookie"
#define SECRET "remote.secure-cookie"
#define SECRET_BEFORE "remote.secure-cookie-before"
#define SECRET_FILE "remote.secure-cookie-file"
#define USERS "remote.cookie"
#define OR_OFF TRPI_COOKIE_OR_OFF

enum { RANDOM_BYTES = 20, TRIES_MAX = 8 };

/* ---- making ---------------------------------------------------------------------------------- */

static trp_err
cannot_make(const char *path, char *why)
{
    return trpi_cookie_why(
        why, TRP_EIO,
        "cannot make %s, the cookie that this user's nodes on loopback share: %s; " OR_OFF, path,
        strerror(errno));
}

/* Make the directories above path, each for this user alone; existing ones stay as they are. */
static bool
directories_make(const char *path, size_t kept)
{
    char part[TRPI_COOKIE_FILE_PATH_BYTES];
    trpi_assert(path[0] == '/' && strlen(path) < sizeof part && kept < strlen(path));
    for (const char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        struct stat status;
        memcpy(part, path, (size_t)(at - path));
        part[at - path] = '\0';
        if (stat(part, &status) != 0 &&
            ((size_t)(at - path) <= kept || (mkdir(part, 0700) != 0 && errno != EEXIST))) {
            return false;
        }
    }
    return true;
}

/* cookie-file-F1 */
trp_err
trpi_cookie_file_make(const char *path, size_t kept, char *why)
{
    char digits[2 * RANDOM_BYTES + 2], fresh[TRPI_COOKIE_FILE_PATH_BYTES + 8];
    if (trpi_cert_random_hex(digits, RANDOM_BYTES) != TRP_OK) {
        return trpi_cookie_why(why, TRP_EIO, "the system gives no random bytes for %s", path);
    }
    digits[2 * RANDOM_BYTES] = '\n';
    digits[2 * RANDOM_BYTES + 1] = '\0';
    (void)snprintf(fresh, sizeof fresh, "%s.XXXXXX", path);
    int fd = directories_make(path, kept) ? mkostemp(fresh, O_CLOEXEC) : -1; /* 0600, O_EXCL */
    if (fd < 0) {
        return cannot_make(path, why);
    }
    ssize_t bytes = (ssize_t)strlen(digits);
    bool made = write(fd, digits, (size_t)bytes) == bytes && fchmod(fd, 0400) == 0 &&
                fsync(fd) == 0 && (link(fresh, path) == 0 || errno == EEXIST);
    trp_err err = made ? TRP_OK : cannot_make(path, why);
    (void)close(fd);
    (void)unlink(fresh);
    explicit_bzero(digits, sizeof digits);
    return err;
}

/* ---- the user's ------------------------------------------------------------------------------ */

/* Could the file be made, in the lowest directory above it that exists? */
static trp_err
can_make(const char *path, size_t kept, char *why)
{
    char part[TRPI_COOKIE_FILE_PATH_BYTES];
    (void)snprintf(part, sizeof part, "%s", path);
    for (char *slash = strrchr(part, '/'); slash != NULL; slash = strrchr(part, '/')) {
        slash[slash == part] = '\0'; /* of the root the slash stays */
        if (access(part, W_OK | X_OK) == 0) {
            return TRP_OK;
        }
        if (errno != ENOENT || strlen(part) <= kept || slash == part) {
            break;
        }
    }
    return cannot_make(path, why);
}

static trp_err
users_load(trpi_secrets_use use, trpi_node_secrets *secrets, char *why)
{
    char path[TRPI_COOKIE_FILE_PATH_BYTES];
    size_t kept = 0;
    trp_err err = trpi_cookie_file_of_user(path, &kept, why);
    if (err != TRP_OK) {
        return err;
    }
    err = trpi_cookie_file_read(path, true, secrets, why);
    if (err == TRP_ENOENT && use == TRPI_SECRETS_CHECK) {
        return can_make(path, kept, why);
    }
    /* more than once: another process may remove it */
    for (int i = 0; err == TRP_ENOENT && use == TRPI_SECRETS_MAKE && i < TRIES_MAX; i++) {
        err = trpi_cookie_file_make(path, kept, why);
        err = err == TRP_OK ? trpi_cookie_file_read(path, true, secrets, why) : err;
    }
    return err;
}

/* ---- all ------------------------------------------------------------------------------------- */

bool
trpi_node_has_users_cookie(const trpi_config *config)
{
    return trpi_config_bool(config, USERS) && !trpi_config_bool(config, REQUIRE) &&
           strcmp(trpi_config_text(config, "remote.transport"), "tls") != 0 &&
           trpi_host_is_loopback(trpi_config_text(config, "remote.hostname"));
}

static trp_err
texts_load(const trpi_config *config, trpi_node_secrets *secrets, char *why)
{
    int now = snprintf(secrets->now, sizeof secrets->now, "%s", trpi_config_text(config, SECRET));
    int before = snprintf(secrets->before, sizeof secrets->before, "%s",
                          trpi_config_text(config, SECRET_BEFORE));
    if (now >= TRPI_COOKIE_FILE_TEXT_BYTES || before >= TRPI_COOKIE_FILE_TEXT_BYTES) {
        return trpi_cookie_why(why, TRP_ECONFIG, "longer than %d bytes",
                               TRPI_COOKIE_FILE_TEXT_BYTES - 1);
    }
    return TRP_OK;
}

static trp_err
required_load(const trpi_config *config, trpi_secrets_use use, trpi_node_secrets *secrets,
              const char **ret_key, char *why)
{
    const char *file = trpi_config_text(config, SECRET_FILE);
    bool has_text = trpi_config_text(config, SECRET)[0] != '\0';
    *ret_key = file[0] != '\0' ? SECRET_FILE : has_text ? SECRET : REQUIRE;
    if (file[0] == '\0' && !has_text) {
        return trpi_cookie_why(why, TRP_ECONFIG,
                               "it is on, and " SECRET " is empty; `troupe cookie gen` makes one");
    }
    if (file[0] == '\0') {
        return texts_load(config, secrets, why);
    }
    if (has_text || trpi_config_text(config, SECRET_BEFORE)[0] != '\0') {
        return trpi_cookie_why(
            why, TRP_ECONFIG,
            SECRET " is given, too; leave one of them out (the file's second line is the "
                   "previous cookie)");
    }
    if (strlen(file) >= TRPI_COOKIE_FILE_PATH_BYTES) {
        return trpi_cookie_why(why, TRP_ECONFIG, "longer than %d bytes",
                               TRPI_COOKIE_FILE_PATH_BYTES - 1);
    }
    return use == TRPI_SECRETS_KEYS ? TRP_OK : trpi_cookie_file_read(file, false, secrets, why);
}

trp_err
trpi_node_secrets_load(const trpi_config *config, trpi_secrets_use use,
                       trpi_node_secrets *ret_secrets, trpi_config_error *ret_error)
{
    char why[TRPI_COOKIE_FILE_WHY_BYTES] = "";
    const char *key = USERS;
    trpi_config_entry entry;
    size_t at = 0;
    memset(ret_secrets, 0, sizeof *ret_secrets);
    trp_err err = TRP_OK;
    if (trpi_config_bool(config, REQUIRE)) {
        err = required_load(config, use, ret_secrets, &key, why);
    } else if (use != TRPI_SECRETS_KEYS && trpi_node_has_users_cookie(config)) {
        err = users_load(use, ret_secrets, why);
    }
    if (err == TRP_OK) {
        return TRP_OK;
    }
    memset(ret_secrets, 0, sizeof *ret_secrets);
    if (trpi_config_find(config, key, &entry) && entry.layer != TRPI_CONFIG_DEFAULT) {
        at = (size_t)snprintf(ret_error->text, sizeof ret_error->text, "%.200s: ", entry.origin);
    }
    (void)snprintf(ret_error->text + at, sizeof ret_error->text - at, "%s: %s", key, why);
    return TRP_ECONFIG;
}

bool
trpi_node_secret_stands_open(const trpi_config *config, char *why)
{
    static const char *const keys[] = { SECRET, SECRET_BEFORE };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        trpi_config_entry entry;
        char path[TRPI_COOKIE_FILE_PATH_BYTES];
        struct stat status;
        const char *line; /* "my.conf:7" */
        if (!trpi_config_find(config, keys[i], &entry) || entry.layer != TRPI_CONFIG_FILE ||
            entry.values[0][0] == '\0' || (line = strrchr(entry.origin, ':')) == NULL ||
            (size_t)(line - entry.origin) >= sizeof path) {
            continue;
        }
        (void)snprintf(path, sizeof path, "%.*s", (int)(line - entry.origin), entry.origin);
        if (stat(path, &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & 07) != 0) {
            (void)trpi_cookie_why(
                why, TRP_OK,
                "%s: %s: others may read it there (mode %04o): chmod o-rwx, or put it into a "
                "file of its own, " SECRET_FILE,
                entry.origin, keys[i], (unsigned)status.st_mode & 07777);
            return true;
        }
    }
    return false;
}

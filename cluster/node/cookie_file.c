/* cookie_file.c - see the header.
 *
 * Must hold.
 *   cookie-file-F1  A reader never sees half a file: it is written under another name, and linked
 *       to its own, which fails when there is one already. (make)
 *   cookie-file-F2 A cookie file that others may read is refused, as sshd refuses a key. A group
 *       may read a configured file of another user, which is the administrator's decision; the
 *       user's own file must be this user's. (is_private)
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
#define OR_OFF                                                                                     \
    "set STATE_DIRECTORY or XDG_CONFIG_HOME to a directory of this user, or " USERS                \
    " = off, with which every local user may command the actors of this node"

enum { RANDOM_BYTES = 20, TRIES_MAX = 8, FILE_BYTES_MAX = 1023 };

static trp_err why_write(char *why, trp_err err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static trp_err
why_write(char *why, trp_err err, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(why, TRPI_COOKIE_FILE_WHY_BYTES, format, list); /* cut is fine */
    va_end(list);
    return err;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* cookie-file-F2 */
static trp_err
is_private(const char *path, const struct stat *status, bool is_users, char *why)
{
    if (!S_ISREG(status->st_mode)) {
        return why_write(why, TRP_ECONFIG, "%s is not a regular file", path);
    }
    if (is_users && status->st_uid != geteuid()) {
        return why_write(
            why, TRP_ECONFIG,
            "%s belongs to uid %u, and this node runs as uid %u: it needs a file of its own", path,
            (unsigned)status->st_uid, (unsigned)geteuid());
    }
    if (status->st_uid == geteuid() ? (status->st_mode & 077) != 0 : (status->st_mode & 07) != 0) {
        return why_write(why, TRP_ECONFIG, "%s: others may read it (mode %04o): chmod 400", path,
                         (unsigned)status->st_mode & 07777);
    }
    return TRP_OK;
}

/* One line of *text, without blanks at its end; false: too long, or no text. */
static bool
take_line(const char **text, char ret_line[TRPI_COOKIE_FILE_TEXT_BYTES])
{
    size_t bytes = strcspn(*text, "\n"), end = bytes;
    while (end > 0 && strchr(" \t\r", (*text)[end - 1]) != NULL) {
        end--;
    }
    if (end >= TRPI_COOKIE_FILE_TEXT_BYTES) {
        return false;
    }
    memcpy(ret_line, *text, end);
    ret_line[end] = '\0';
    *text += bytes + ((*text)[bytes] == '\n');
    for (size_t i = 0; i < end; i++) {
        if ((unsigned char)ret_line[i] < ' ' || ret_line[i] == 127) {
            return false;
        }
    }
    return true;
}

static trp_err
text_take(const char *path, const char *text, size_t bytes, trpi_node_secrets *secrets, char *why)
{
    const char *at = text;
    bool fine = bytes <= FILE_BYTES_MAX && strlen(text) == bytes && take_line(&at, secrets->now) &&
                take_line(&at, secrets->before) && *at == '\0' && secrets->now[0] != '\0';
    return fine ? TRP_OK
                : why_write(
                      why, TRP_ECONFIG,
                      "%s holds no cookie: it must have one line of at most %d bytes, and may have "
                      "a second one with the previous cookie; `troupe cookie gen` makes one",
                      path, TRPI_COOKIE_FILE_TEXT_BYTES - 1);
}

static trp_err
cannot_read(const char *path, bool is_users, char *why)
{
    bool is_missing = errno == ENOENT || errno == ENOTDIR;
    return why_write(why, is_missing ? TRP_ENOENT : TRP_EIO, "cannot read %s: %s%s", path,
                     strerror(errno), is_users ? "; " OR_OFF : "");
}

trp_err
trpi_cookie_file_read(const char *path, bool is_users, trpi_node_secrets *ret_secrets, char *why)
{
    char text[FILE_BYTES_MAX + 2];
    size_t count = 0;
    struct stat status;
    /* an open() of a FIFO must not block */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return cannot_read(path, is_users, why);
    }
    trp_err err = fstat(fd, &status) == 0 ? is_private(path, &status, is_users, why)
                                          : cannot_read(path, is_users, why);
    for (ssize_t part = 1; err == TRP_OK && part > 0 && count < sizeof text - 1;) {
        part = read(fd, text + count, sizeof text - 1 - count);
        count += part > 0 ? (size_t)part : 0;
        err = part < 0 ? cannot_read(path, is_users, why) : TRP_OK;
    }
    (void)close(fd);
    if (err != TRP_OK) {
        return err;
    }
    text[count] = '\0';
    memset(ret_secrets, 0, sizeof *ret_secrets);
    err = text_take(path, text, count, ret_secrets, why);
    explicit_bzero(text, sizeof text);
    (void)snprintf(ret_secrets->file, sizeof ret_secrets->file, "%s", path);
    ret_secrets->is_users = is_users;
    return err;
}

/* ---- making ---------------------------------------------------------------------------------- */

static trp_err
cannot_make(const char *path, char *why)
{
    return why_write(
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
        return why_write(why, TRP_EIO, "the system gives no random bytes for %s", path);
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

/* Return the value of a variable that names a directory; NULL: it is not set, or empty. */
static const char *
directory_of(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] == '/' ? value : NULL;
}

/* *ret_kept: the part of the path that is not made: a home directory, and the directory of
 * systemd. */
static trp_err
users_path(char ret_path[TRPI_COOKIE_FILE_PATH_BYTES], size_t *ret_kept, char *why)
{
    const char *state = directory_of("STATE_DIRECTORY"), *config = directory_of("XDG_CONFIG_HOME");
    const char *home = directory_of("HOME");
    char names[4096];
    struct passwd entry, *found = NULL;
    int bytes;
    if (state != NULL) { /* of several, as systemd writes them, the first */
        *ret_kept = strcspn(state, ":");
        bytes =
            snprintf(ret_path, TRPI_COOKIE_FILE_PATH_BYTES, "%.*s/cookie", (int)*ret_kept, state);
    } else if (config != NULL) {
        *ret_kept = 0;
        bytes = snprintf(ret_path, TRPI_COOKIE_FILE_PATH_BYTES, "%s/troupe/cookie", config);
    } else {
        if (home == NULL && getpwuid_r(geteuid(), &entry, names, sizeof names, &found) == 0 &&
            found != NULL && entry.pw_dir[0] == '/') {
            home = entry.pw_dir;
        }
        if (home == NULL) {
            return why_write(
                why, TRP_ECONFIG,
                "there is no directory for the cookie that this user's nodes on loopback "
                "share: HOME is not set, and uid %u has no home directory; " OR_OFF,
                (unsigned)geteuid());
        }
        *ret_kept = strlen(home);
        bytes = snprintf(ret_path, TRPI_COOKIE_FILE_PATH_BYTES, "%s/.config/troupe/cookie", home);
    }
    return bytes > 0 && bytes < TRPI_COOKIE_FILE_PATH_BYTES
               ? TRP_OK
               : why_write(why, TRP_ECONFIG,
                           "the path of this user's cookie is longer than %d bytes; " OR_OFF,
                           TRPI_COOKIE_FILE_PATH_BYTES - 1);
}

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
    trp_err err = users_path(path, &kept, why);
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
        return why_write(why, TRP_ECONFIG, "longer than %d bytes", TRPI_COOKIE_FILE_TEXT_BYTES - 1);
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
        return why_write(why, TRP_ECONFIG,
                         "it is on, and " SECRET " is empty; `troupe cookie gen` makes one");
    }
    if (file[0] == '\0') {
        return texts_load(config, secrets, why);
    }
    if (has_text || trpi_config_text(config, SECRET_BEFORE)[0] != '\0') {
        return why_write(why, TRP_ECONFIG,
                         SECRET
                         " is given, too; leave one of them out (the file's second line is the "
                         "previous cookie)");
    }
    if (strlen(file) >= TRPI_COOKIE_FILE_PATH_BYTES) {
        return why_write(why, TRP_ECONFIG, "longer than %d bytes", TRPI_COOKIE_FILE_PATH_BYTES - 1);
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
            (void)why_write(
                why, TRP_OK,
                "%s: %s: others may read it there (mode %04o): chmod o-rwx, or put it into a "
                "file of its own, " SECRET_FILE,
                entry.origin, keys[i], (unsigned)status.st_mode & 07777);
            return true;
        }
    }
    return false;
}

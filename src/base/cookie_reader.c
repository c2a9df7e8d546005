/* cookie_reader.c - see the header.
 *
 * Must hold.
 *   cookie-file-F2 A cookie file that others may read is refused, as sshd refuses a key. A group
 *       may read a configured file of another user, which is the administrator's decision; the
 *       user's own file must be this user's. (is_private)
 * Tests.   tests/unit/node/cookie_file_test.c, tests/system/cookie.sh
 */
#include "base/cookie_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OR_OFF TRPI_COOKIE_OR_OFF

enum { FILE_BYTES_MAX = 1023 };

trp_err
trpi_cookie_why(char *why, trp_err err, const char *format, ...)
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
        return trpi_cookie_why(why, TRP_ECONFIG, "%s is not a regular file", path);
    }
    if (is_users && status->st_uid != geteuid()) {
        return trpi_cookie_why(
            why, TRP_ECONFIG,
            "%s belongs to uid %u, and this node runs as uid %u: it needs a file of its own", path,
            (unsigned)status->st_uid, (unsigned)geteuid());
    }
    if (status->st_uid == geteuid() ? (status->st_mode & 077) != 0 : (status->st_mode & 07) != 0) {
        return trpi_cookie_why(why, TRP_ECONFIG, "%s: others may read it (mode %04o): chmod 400",
                               path, (unsigned)status->st_mode & 07777);
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
text_take(const char *path, const char *text, size_t bytes, trpi_cookie_secrets *secrets, char *why)
{
    const char *at = text;
    bool fine = bytes <= FILE_BYTES_MAX && strlen(text) == bytes && take_line(&at, secrets->now) &&
                take_line(&at, secrets->before) && *at == '\0' && secrets->now[0] != '\0';
    return fine ? TRP_OK
                : trpi_cookie_why(
                      why, TRP_ECONFIG,
                      "%s holds no cookie: it must have one line of at most %d bytes, and may have "
                      "a second one with the previous cookie; `troupe cookie gen` makes one",
                      path, TRPI_COOKIE_FILE_TEXT_BYTES - 1);
}

static trp_err
cannot_read(const char *path, bool is_users, char *why)
{
    bool is_missing = errno == ENOENT || errno == ENOTDIR;
    return trpi_cookie_why(why, is_missing ? TRP_ENOENT : TRP_EIO, "cannot read %s: %s%s", path,
                           strerror(errno), is_users ? "; " OR_OFF : "");
}

trp_err
trpi_cookie_file_read(const char *path, bool is_users, trpi_cookie_secrets *ret_secrets, char *why)
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

/* Return the value of a variable that names a directory; NULL: it is not set, or empty. */
static const char *
directory_of(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] == '/' ? value : NULL;
}

trp_err
trpi_cookie_file_of_user(char ret_path[TRPI_COOKIE_FILE_PATH_BYTES], size_t *ret_kept, char *why)
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
            return trpi_cookie_why(
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
               : trpi_cookie_why(why, TRP_ECONFIG,
                                 "the path of this user's cookie is longer than %d bytes; " OR_OFF,
                                 TRPI_COOKIE_FILE_PATH_BYTES - 1);
}

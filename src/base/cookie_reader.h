/* cookie_reader.h - files that hold a cookie, the secret that a node asks of its peers: how they
 * are read, and where a user has one. Their use by nodes: cluster/node/cookie_file.h. */
#ifndef TRPI_BASE_COOKIE_READER_H
#define TRPI_BASE_COOKIE_READER_H

#include <stdbool.h>
#include <stddef.h>

#include <troupe/base.h>

enum {
    TRPI_COOKIE_FILE_PATH_BYTES = 512, /* with its NUL */
    TRPI_COOKIE_FILE_TEXT_BYTES = 256, /* of one cookie, with its NUL */
    TRPI_COOKIE_FILE_WHY_BYTES = 1000  /* two paths, and what to do */
};

typedef struct trpi_cookie_secrets {
    char now[TRPI_COOKIE_FILE_TEXT_BYTES];    /* "": peers are not asked for one */
    char before[TRPI_COOKIE_FILE_TEXT_BYTES]; /* accepted as well; "": none */
    char file[TRPI_COOKIE_FILE_PATH_BYTES];   /* that both are from; "": the configuration */
    bool is_users; /* file is that of the user, for loopback, and not a configured one */
} trpi_cookie_secrets;

#define TRPI_COOKIE_OR_OFF                                                                         \
    "set STATE_DIRECTORY or XDG_CONFIG_HOME to a directory of this user, or remote.cookie = off, " \
    "with which every local user may command the actors of this node"

/* Read one or two cookies, each on a line of its own. why: at least TRPI_COOKIE_FILE_WHY_BYTES.
 * Errors: TRP_ENOENT, TRP_ECONFIG (others may read it, another user's, no cookie), TRP_EIO. */
trp_err trpi_cookie_file_read(const char *path, bool is_users, trpi_cookie_secrets *ret_secrets,
                              char *why);
/* Name the cookie file of this user. *ret_kept: the part of the path that is not made: a home
 * directory, and the directory of systemd. why: as above.
 * Errors: TRP_ECONFIG (there is no directory for it). */
trp_err trpi_cookie_file_of_user(char ret_path[TRPI_COOKIE_FILE_PATH_BYTES], size_t *ret_kept,
                                 char *why);
/* Write the reason, of at most TRPI_COOKIE_FILE_WHY_BYTES with its NUL, and return err. */
trp_err trpi_cookie_why(char *why, trp_err err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif

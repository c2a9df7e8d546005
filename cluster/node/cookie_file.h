/* cookie_reader.h - the secret that a node asks of its peers, and the files that hold one.
 *
 * On loopback every local user reaches a port. So a node that advertises an address there, and has
 * neither TLS nor a configured cookie, asks its peers for the cookie of its user: a file that the
 * first node makes, and that no other user may read. The default is decided here, where the
 * configuration of a node is read: every program that opens a node has it (`troupe node`, `troupe
 * dev`, trp_node_open()). trpi_remote_start() takes the secrets that it is given, so tests of
 * remoting and the simulated world have none. */
#ifndef TRPI_NODE_COOKIE_FILE_H
#define TRPI_NODE_COOKIE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include <troupe/base.h>

#include "base/config.h"
#include "base/cookie_reader.h"

typedef trpi_cookie_secrets trpi_node_secrets;

typedef enum trpi_secrets_use {
    TRPI_SECRETS_KEYS,  /* the keys alone, no file is looked at */
    TRPI_SECRETS_CHECK, /* could they be loaded? A file that is not there yet: could it be made? */
    TRPI_SECRETS_READ,
    TRPI_SECRETS_MAKE /* READ, and make the user's file where there is none */
} trpi_secrets_use;

/* Is it a node on loopback without TLS and without a configured cookie? */
bool trpi_node_has_users_cookie(const trpi_config *config);

/* Find the secrets of a node that has this configuration.
 * Errors: TRP_ECONFIG (a file that cannot be read or made, that others may read, that is no
 *         cookie); *ret_error names the key, the file and the remedy.
 * Thread: any. */
trp_err trpi_node_secrets_load(const trpi_config *config, trpi_secrets_use use,
                               trpi_node_secrets *ret_secrets, trpi_config_error *ret_error);

/* Is there a cookie in a configuration file that others may read? Such a file holds other settings,
 * and is often readable by all: a warning, no error. why: at least TRPI_COOKIE_FILE_WHY_BYTES. */
bool trpi_node_secret_stands_open(const trpi_config *config, char *why);

/* Make a file with a new cookie, mode 0400, and the directories above it, but not those that the
 * first `kept` bytes of path name. It appears whole, and when another process was faster that one's
 * stays: TRP_OK, too.
 * Errors: TRP_EIO. */
trp_err trpi_cookie_file_make(const char *path, size_t kept, char *why);

#endif

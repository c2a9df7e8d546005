/* loopback_token.h - the token of this user on loopback, for --endpoint without a credential. */
#ifndef TRPI_CLI_LOOPBACK_TOKEN_H
#define TRPI_CLI_LOOPBACK_TOKEN_H

#ifdef HAVE_LIBCURL

#include "cluster/cli/endpoint.h"

#define TRPI_CLI_TOKEN_BYTES 65u /* with its NUL */

/* Make the token of the node at t's target, a loopback address: of this user's cookie and the name
 * of the node's system, which the node is asked for. false: t->no_token says why there is none. */
bool trpi_cli_loopback_token(trpi_transfer *t, char ret_token[TRPI_CLI_TOKEN_BYTES]);

#endif
#endif

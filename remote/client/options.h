/* options.h - what a program gives a client at its start; private to remote/client. An option that
 * is wrong is an error in the log of the system. */
#ifndef TRPI_REMOTE_CLIENT_OPTIONS_H
#define TRPI_REMOTE_CLIENT_OPTIONS_H

#include <troupe/client.h>

#include "base/address.h"
#include "remote/remote.h"

/* Log that an option is refused, and return TRP_EINVAL. */
trp_err trpi_client_option_refuse(trp_system *system, const char *what, const char *contact,
                                  const char *hint);
/* Errors: TRP_EINVAL (none, too many, or no address). contacts: TRP_CLIENT_CONTACTS_MAX. */
trp_err trpi_client_contacts_parse(trp_system *system, const trp_client_options *o,
                                   trpi_address *contacts);
/* Start remoting without a port, with the cookie and the certificates of the options.
 * Errors: TRP_ECONFIG (a file of them), and those of trpi_remote_start(). */
trp_err trpi_client_remoting_start(trp_system *system, const trp_client_options *o,
                                   trpi_remote **ret_remote);

#endif

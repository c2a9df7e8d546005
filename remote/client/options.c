/* options.c - what a program gives a client at its start: see the header.
 *
 * Tests.   tests/unit/client/client_test.c, tests/system/via.sh
 */
#include "remote/client/options.h"

#include <stdio.h>
#include <string.h>

#include "base/cookie_reader.h"
#include "remote/client/stub.h"

trp_err
trpi_client_option_refuse(trp_system *system, const char *what, const char *contact,
                          const char *hint)
{
    trp_system_log(system, TRP_LOG_ERROR, "client", "%s '%.300s': %s", what, contact, hint);
    return TRP_EINVAL;
}

trp_err
trpi_client_contacts_parse(trp_system *system, const trp_client_options *o, trpi_address *contacts)
{
    if (o->contacts == NULL || o->contacts_count == 0 ||
        o->contacts_count > TRP_CLIENT_CONTACTS_MAX) {
        return trpi_client_option_refuse(system, "contacts", "",
                                         "give 1 to 32 of them, as host:port");
    }
    for (size_t i = 0; i < o->contacts_count; i++) {
        const char *given = o->contacts[i] != NULL ? o->contacts[i] : "", *hint = "";
        char text[TRPI_ADDRESS_TEXT_BYTES + 64];
        (void)snprintf(text, sizeof text, "troupe.%s://%s@%.320s",
                       o->tls_ca != NULL ? "tls" : "tcp", trp_system_name(system), given);
        if (trpi_address_parse(strstr(given, "://") != NULL ? given : text, &contacts[i], NULL,
                               &hint) != TRP_OK) {
            return trpi_client_option_refuse(system, "contact", given, hint);
        }
        if (contacts[i].port == 0) {
            return trpi_client_option_refuse(system, "contact", given,
                                             "it has no host and port: write host:port");
        }
    }
    return TRP_OK;
}

/* Read the file of the cookie, if there is one. */
static trp_err
cookie_read(trp_system *system, const trp_client_options *o, trpi_cookie_secrets *secrets)
{
    char path[TRPI_COOKIE_FILE_PATH_BYTES], why[TRPI_COOKIE_FILE_WHY_BYTES] = "";
    const char *file = o->cookie_file;
    size_t kept;
    trp_err err = TRP_OK;
    if (file == NULL) {
        return TRP_OK;
    }
    bool is_users = strcmp(file, TRP_CLIENT_COOKIE_OF_USER) == 0;
    if (is_users) {
        err = trpi_cookie_file_of_user(path, &kept, why);
        file = path;
    }
    err = err == TRP_OK ? trpi_cookie_file_read(file, is_users, secrets, why) : err;
    if (err == TRP_OK || (err == TRP_ENOENT && is_users)) {
        return TRP_OK;
    }
    trp_system_log(system, TRP_LOG_ERROR, "client", "cookie_file: %s", why);
    return TRP_ECONFIG;
}

trp_err
trpi_client_remoting_start(trp_system *system, const trp_client_options *o,
                           trpi_remote **ret_remote)
{
    trpi_cookie_secrets secrets = { "", "", "", false };
    char why[400] = "";
    trpi_remote_options options;
    memset(&options, 0, sizeof options);
    options.nameless = true;
    trp_err err = cookie_read(system, o, &secrets);
    if (err != TRP_OK) {
        return err;
    }
    options.cookie = o->cookie != NULL ? o->cookie : secrets.now[0] != '\0' ? secrets.now : NULL;
    options.tls = o->tls_ca != NULL;
    options.tls_ca = o->tls_ca;
    options.tls_cert = o->tls_cert;
    options.tls_key = o->tls_key;
    options.why = why;
    options.why_bytes = sizeof why;
    err = trpi_remote_start(system, &options, ret_remote);
    explicit_bzero(&secrets, sizeof secrets);
    if (err == TRP_ECONFIG) {
        trp_system_log(system, TRP_LOG_ERROR, "client", "TLS or cookie cannot be used: %s", why);
    }
    return err;
}

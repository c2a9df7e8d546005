/* access.h - who may ask what: the Host and Origin headers, bearer tokens, names of certificates.
 * Thread: any; nothing is changed. */
#ifndef TRPI_MANAGEMENT_ACCESS_H
#define TRPI_MANAGEMENT_ACCESS_H

#include "cluster/management/request.h"

/* Does the Host header name this server: its bound address, a loopback name where it is bound to
 * one, or a host of management.hosts? Any port is accepted. A page of a foreign name that resolves
 * to this host (DNS rebinding) has the foreign name there. */
bool trpi_management_host_is_ours(const trpi_management_policy *policy, const char *host);

/* Is the request of a page of this server, or of no page at all? origin NULL: no page; else it must
 * be http or https and the Host header's host and port. */
bool trpi_management_origin_is_ours(const char *origin, const char *host);

/* Return what the request's credentials allow. ret_shown: it has one, known or not. ret_who: the
 * one that counts, for the audit: "cert=NAME", "session", "cookie" (the token derived from it), or
 * "token=LINE/DIGEST" with the line of its file and the first 8 digits of its digest; "": none. */
trpi_management_level trpi_management_level_of(const trpi_management_policy *policy,
                                               const trpi_management_request *request,
                                               bool *ret_shown,
                                               char ret_who[TRPI_MANAGEMENT_WHO_BYTES]);

/* Make the digest by which a token is kept and compared. false: OpenSSL has failed. */
bool trpi_management_token_digest(const char *token, size_t bytes,
                                  uint8_t ret_digest[TRPI_MANAGEMENT_DIGEST_BYTES]);

/* Make the token of the user's cookie: 64 hexadecimal digits. A process that can read the file can
 * make it; the cookie itself is never sent. false: OpenSSL has failed. */
bool trpi_management_token_derive(const char *cookie, const char *system, char ret_token[65]);

/* Add a token. Errors: TRP_ELIMIT, TRP_EINVAL (too short, too long, no characters of a bearer
 * token), TRP_EIO (OpenSSL). */
trp_err trpi_management_tokens_add(trpi_management_tokens *tokens, const char *token, size_t bytes,
                                   trpi_management_level level);

/* Add the tokens of a file, each on a line of its own; empty lines and those that begin with '#'
 * are skipped. The file must be the process's user's or root's, and no other user may read it.
 * Errors: TRP_ECONFIG; why says what to do. Nothing is added then. */
#define TRPI_MANAGEMENT_WHY_BYTES 768
trp_err trpi_management_tokens_load(trpi_management_tokens *tokens, const char *path,
                                    trpi_management_level level,
                                    char why[TRPI_MANAGEMENT_WHY_BYTES]);

#endif

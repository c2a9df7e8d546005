/* cert.h - make, read and revoke certificates of an own authority, as PEM text. No file is touched
 * here; cert_main.c reads and writes them.
 */
#ifndef TRPI_NODE_CERT_H
#define TRPI_NODE_CERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>

enum {
    TRPI_CERT_NAMES_MAX = 64,       /* host names and addresses of one certificate */
    TRPI_CERT_NAME_BYTES_MAX = 253, /* of a host; of a subject it is TRPI_CERT_SUBJECT_BYTES_MAX */
    TRPI_CERT_SUBJECT_BYTES_MAX = 64,
    TRPI_CERT_DAYS_MAX = 36500,
    TRPI_CERT_REVOKED_MAX = 10000,
    TRPI_CERT_SKEW_MS = 300000 /* start of validity before now: clocks differ */
};

typedef struct trpi_cert_request {
    const char *subject;      /* common name */
    const char *const *names; /* of a node: host names and numeric addresses; each is checked */
    size_t names_count;
    int64_t not_before_ms, not_after_ms; /* wall clock, since 1970 */
} trpi_cert_request;

typedef struct trpi_cert_info {
    char subject[TRPI_CERT_SUBJECT_BYTES_MAX + 1], issuer[TRPI_CERT_SUBJECT_BYTES_MAX + 1];
    char names[2048]; /* "host1, 10.0.0.1"; cut where it is longer, with "..." */
    char serial[48];  /* hexadecimal */
    char digest[65];  /* SHA-256, hexadecimal */
    char key_type[32];
    int64_t not_before_ms, not_after_ms;
    bool is_authority;
} trpi_cert_info;

/* Texts given here are freed with trpi_free(). why: the reason of an error, as a text of at least
 * 200 bytes. Errors of all: TRP_EINVAL (request), TRP_EDATA (a text cannot be read, a key does not
 * belong to its certificate), TRP_ENOMEM, TRP_EINTERNAL. Thread: any. */

/* A self-signed authority, ECDSA on P-256. */
trp_err trpi_cert_make_authority(const trpi_cert_request *request, char **ret_cert, char **ret_key,
                                 char *why, size_t why_bytes);
/* A certificate with a new key for a node, good for both ends of a connection. */
trp_err trpi_cert_make_node(const char *ca_cert, const char *ca_key,
                            const trpi_cert_request *request, char **ret_cert, char **ret_key,
                            char *why, size_t why_bytes);
/* Make a revocation list of the certificates in old_list (NULL: none) and of these. */
trp_err trpi_cert_revoke(const char *ca_cert, const char *ca_key, const char *old_list,
                         const char *const *certs, size_t certs_count, int64_t now_ms,
                         int64_t next_update_ms, char **ret_list, char *why, size_t why_bytes);
/* The first certificate of a text. */
trp_err trpi_cert_read(const char *cert, trpi_cert_info *ret_info, char *why, size_t why_bytes);
/* Read the next certificate of the text *at, and move *at behind it. Errors, besides: TRP_ENOENT:
 * none follows. TRP_EDATA: one that cannot be read. */
trp_err trpi_cert_next(const char **at, trpi_cert_info *ret_info, char *why, size_t why_bytes);
/* Its names, one by one, into names[] as texts of *storage (freed with trpi_free). */
trp_err trpi_cert_names(const char *cert, const char *names[TRPI_CERT_NAMES_MAX], size_t *ret_count,
                        char **ret_storage);

/* bytes random bytes as hexadecimal digits; out has 2 * bytes + 1. For secrets that an operator
 * copies. */
trp_err trpi_cert_random_hex(char *out, size_t bytes);
/* SHA-256 of a text as hexadecimal digits. */
trp_err trpi_cert_digest_hex(const char *text, char ret_digest[65]);

#endif

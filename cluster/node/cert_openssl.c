/* cert_openssl.c - certificates by OpenSSL's X.509. The only file that makes any.
 *
 * Why.     An operator sets up a cluster's own authority with three commands and needs to know
 *          nothing of X.509: ECDSA on P-256, one level, names only in the SAN, where TLS looks.
 * Must hold.
 *   cert-openssl-C1  A name goes into the extension's text only if it is made of letters, digits,
 *       '.', '-', ':' and '_': the text has a grammar of its own. (names_text)
 *   cert-openssl-C2  A key is checked against its certificate before it signs anything.
 *       (authority_open)
 * Tests.   tests/unit/node/cert_test.c
 */
#include "cluster/node/cert.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"

enum { SERIAL_BYTES = 16 };

typedef struct authority {
    X509 *cert;
    EVP_PKEY *key;
} authority;

static trp_err TRP_PRINTF(4, 5)
    why_write(trp_err err, char *why, size_t why_bytes, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, why_bytes, format, args);
    va_end(args);
    ERR_clear_error();
    return err;
}

static trp_err
say_openssl(char *why, size_t why_bytes, const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return why_write(TRP_EINTERNAL, why, why_bytes, "%s: %s", what,
                     reason != NULL ? reason : "failed");
}

/* ---- PEM ------------------------------------------------------------------------------------- */

/* Return the content of a memory BIO as a text of ours; the BIO is freed. */
static char *
bio_take(BIO *bio)
{
    char *data = NULL, *text = NULL;
    long bytes = bio != NULL ? BIO_get_mem_data(bio, &data) : 0;
    if (bytes > 0) {
        text = trpi_alloc((size_t)bytes + 1);
    }
    if (text != NULL) {
        memcpy(text, data, (size_t)bytes);
    }
    (void)BIO_free(bio);
    return text;
}

static char *
cert_text(X509 *cert)
{
    BIO *bio = BIO_new(BIO_s_mem());
    (void)(bio != NULL && PEM_write_bio_X509(bio, cert));
    return bio_take(bio);
}

static char *
key_text(EVP_PKEY *key)
{
    BIO *bio = BIO_new(BIO_s_secmem());
    (void)(bio != NULL && PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL));
    return bio_take(bio);
}

static int
no_password(char *buffer, int bytes, int writing, void *arg)
{
    (void)buffer;
    (void)bytes;
    (void)writing;
    (void)arg;
    return -1; /* never ask a terminal */
}

static X509 *
cert_parse(const char *text)
{
    BIO *bio = BIO_new_mem_buf(text, -1);
    X509 *cert = bio != NULL ? PEM_read_bio_X509(bio, NULL, no_password, NULL) : NULL;
    (void)BIO_free(bio);
    return cert;
}

static void
authority_close(authority *ca)
{
    X509_free(ca->cert);
    EVP_PKEY_free(ca->key);
}

static trp_err
authority_open(const char *ca_cert, const char *ca_key, authority *ret_ca, char *why,
               size_t why_bytes)
{
    authority ca = { cert_parse(ca_cert), NULL };
    BIO *bio = BIO_new_mem_buf(ca_key, -1);
    ca.key = bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;
    (void)BIO_free(bio);
    const char *wrong = ca.cert == NULL  ? "the authority's certificate cannot be read"
                        : ca.key == NULL ? "the authority's key cannot be read"
                        : X509_check_ca(ca.cert) != 1
                            ? "this certificate is not that of an authority"
                        : X509_check_private_key(ca.cert, ca.key) != 1 /* cert-openssl-C2 */
                            ? "the key does not belong to the authority's certificate"
                            : NULL;
    if (wrong != NULL) {
        authority_close(&ca);
        return why_write(TRP_EDATA, why, why_bytes, "%s", wrong);
    }
    *ret_ca = ca;
    return TRP_OK;
}

/* Return the digest that a signature with key uses; NULL: it signs the text itself. */
static const EVP_MD *
digest_of(const EVP_PKEY *key)
{
    return EVP_PKEY_is_a(key, "ED25519") || EVP_PKEY_is_a(key, "ED448") ? NULL : EVP_sha256();
}

/* ---- making ---------------------------------------------------------------------------------- */

static bool
name_is_plain(const char *name)
{
    size_t bytes = strlen(name);
    return bytes >= 1 && bytes <= TRPI_CERT_NAME_BYTES_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:_") ==
               bytes;
}

static bool
name_is_numeric(const char *name)
{
    uint8_t address[16];
    return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

/* cert-openssl-C1. "DNS:host,IP:10.0.0.1" */
static trp_err
names_text(const trpi_cert_request *request, trpi_buffer *text, char *why, size_t why_bytes)
{
    if (request->names_count == 0 || request->names_count > TRPI_CERT_NAMES_MAX) {
        return why_write(TRP_EINVAL, why, why_bytes, "a certificate has 1 to %d names, not %zu",
                         TRPI_CERT_NAMES_MAX, request->names_count);
    }
    for (size_t i = 0; i < request->names_count; i++) {
        const char *name = request->names[i];
        bool numeric = name_is_numeric(name);
        if (!name_is_plain(name) || (!numeric && strchr(name, ':') != NULL)) {
            return why_write(TRP_EINVAL, why, why_bytes,
                             "'%.60s' is neither a host name nor an address", name);
        }
        trp_err err = trpi_buffer_printf(text, TRPI_BUFFER_NO_LIMIT, "%s%s:%s", i > 0 ? "," : "",
                                         numeric ? "IP" : "DNS", name); /* both are bounded above */
        if (err != TRP_OK) {
            return why_write(err, why, why_bytes, "out of memory");
        }
    }
    return TRP_OK;
}

static bool
extension_add(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    bool added = extension != NULL && X509_add_ext(cert, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return added;
}

static bool
serial_set(X509 *cert)
{
    uint8_t bytes[SERIAL_BYTES];
    if (RAND_bytes(bytes, sizeof bytes) != 1) {
        return false;
    }
    bytes[0] = (uint8_t)((bytes[0] & 0x7f) | 0x40); /* positive, and always of one length */
    BIGNUM *number = BN_bin2bn(bytes, sizeof bytes, NULL);
    bool set = number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert)) != NULL;
    BN_free(number);
    return set;
}

/* Everything but extensions and signature. */
static X509 *
cert_begin(const trpi_cert_request *request, EVP_PKEY *key, X509 *issuer)
{
    X509 *cert = X509_new();
    X509_NAME *subject = X509_NAME_new();
    bool built =
        cert != NULL && subject != NULL && X509_set_version(cert, X509_VERSION_3) == 1 &&
        serial_set(cert) &&
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const uint8_t *)request->subject,
                                   -1, -1, 0) == 1 &&
        X509_set_subject_name(cert, subject) == 1 &&
        X509_set_issuer_name(cert, issuer != NULL ? X509_get_subject_name(issuer) : subject) == 1 &&
        ASN1_TIME_set(X509_getm_notBefore(cert), (time_t)(request->not_before_ms / 1000)) != NULL &&
        ASN1_TIME_set(X509_getm_notAfter(cert), (time_t)(request->not_after_ms / 1000)) != NULL &&
        X509_set_pubkey(cert, key) == 1;
    X509_NAME_free(subject);
    if (!built) {
        X509_free(cert);
        return NULL;
    }
    return cert;
}

static trp_err
request_check(const trpi_cert_request *request, char *why, size_t why_bytes)
{
    size_t bytes = strlen(request->subject);
    if (bytes == 0 || bytes > TRPI_CERT_SUBJECT_BYTES_MAX) {
        return why_write(TRP_EINVAL, why, why_bytes, "a subject has 1 to %d bytes",
                         TRPI_CERT_SUBJECT_BYTES_MAX);
    }
    for (const char *c = request->subject; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~') {
            return why_write(TRP_EINVAL, why, why_bytes,
                             "a subject may have only printable characters");
        }
    }
    if (request->not_after_ms <= request->not_before_ms) {
        return why_write(TRP_EINVAL, why, why_bytes,
                         "the certificate would expire before it becomes valid");
    }
    return TRP_OK;
}

/* Give both texts, or none. */
static trp_err
texts_give(X509 *cert, EVP_PKEY *key, char **ret_cert, char **ret_key, char *why, size_t why_bytes)
{
    char *cert_pem = cert_text(cert);
    char *key_pem = key_text(key);
    if (cert_pem == NULL || key_pem == NULL) {
        trpi_free(cert_pem);
        trpi_free(key_pem);
        return why_write(TRP_ENOMEM, why, why_bytes, "out of memory");
    }
    *ret_cert = cert_pem;
    *ret_key = key_pem;
    return TRP_OK;
}

trp_err
trpi_cert_make_authority(const trpi_cert_request *request, char **ret_cert, char **ret_key,
                         char *why, size_t why_bytes)
{
    trp_err err = request_check(request, why, why_bytes);
    if (err != TRP_OK) {
        return err;
    }
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = key != NULL ? cert_begin(request, key, NULL) : NULL;
    bool built = cert != NULL &&
                 extension_add(cert, cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                 extension_add(cert, cert, NID_key_usage, "critical,keyCertSign,cRLSign") &&
                 extension_add(cert, cert, NID_subject_key_identifier, "hash") &&
                 X509_sign(cert, key, EVP_sha256()) != 0;
    err = built ? texts_give(cert, key, ret_cert, ret_key, why, why_bytes)
                : say_openssl(why, why_bytes, "cannot make the certificate");
    X509_free(cert);
    EVP_PKEY_free(key);
    return err;
}

trp_err
trpi_cert_make_node(const char *ca_cert, const char *ca_key, const trpi_cert_request *request,
                    char **ret_cert, char **ret_key, char *why, size_t why_bytes)
{
    authority ca = { NULL, NULL };
    trpi_buffer names = { 0 };
    trp_err err = request_check(request, why, why_bytes);
    err = err != TRP_OK ? err : names_text(request, &names, why, why_bytes);
    err = err != TRP_OK ? err : authority_open(ca_cert, ca_key, &ca, why, why_bytes);
    if (err != TRP_OK) {
        trpi_buffer_fini(&names);
        return err;
    }
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = key != NULL ? cert_begin(request, key, ca.cert) : NULL;
    bool built = cert != NULL &&
                 extension_add(cert, ca.cert, NID_basic_constraints, "critical,CA:FALSE") &&
                 extension_add(cert, ca.cert, NID_key_usage, "critical,digitalSignature") &&
                 extension_add(cert, ca.cert, NID_ext_key_usage, "serverAuth,clientAuth") &&
                 extension_add(cert, ca.cert, NID_subject_alt_name, (const char *)names.data) &&
                 extension_add(cert, ca.cert, NID_subject_key_identifier, "hash") &&
                 extension_add(cert, ca.cert, NID_authority_key_identifier, "keyid:always") &&
                 X509_sign(cert, ca.key, digest_of(ca.key)) != 0;
    err = built ? texts_give(cert, key, ret_cert, ret_key, why, why_bytes)
                : say_openssl(why, why_bytes, "cannot make the certificate");
    X509_free(cert);
    EVP_PKEY_free(key);
    authority_close(&ca);
    trpi_buffer_fini(&names);
    return err;
}

/* ---- revoking -------------------------------------------------------------------------------- */

static bool
list_has(X509_CRL *list, const ASN1_INTEGER *serial)
{
    X509_REVOKED *known = NULL;
    return X509_CRL_get0_by_serial(list, &known, serial) == 1;
}

static bool
list_add(X509_CRL *list, const ASN1_INTEGER *serial, int64_t when_ms)
{
    if (list_has(list, serial)) {
        return true;
    }
    X509_REVOKED *entry = X509_REVOKED_new();
    ASN1_TIME *when = ASN1_TIME_set(NULL, (time_t)(when_ms / 1000));
    bool added = entry != NULL && when != NULL &&
                 X509_REVOKED_set_serialNumber(entry, (ASN1_INTEGER *)(uintptr_t)serial) == 1 &&
                 X509_REVOKED_set_revocationDate(entry, when) == 1 &&
                 X509_CRL_add0_revoked(list, entry) == 1;
    if (!added) {
        X509_REVOKED_free(entry);
    }
    ASN1_TIME_free(when);
    return added;
}

/* Copy the old entries with their dates and reasons. */
static trp_err
list_add_old(X509_CRL *list, const char *old_list, char *why, size_t why_bytes)
{
    BIO *bio = BIO_new_mem_buf(old_list, -1);
    X509_CRL *old = bio != NULL ? PEM_read_bio_X509_CRL(bio, NULL, no_password, NULL) : NULL;
    (void)BIO_free(bio);
    if (old == NULL) {
        return why_write(TRP_EDATA, why, why_bytes, "the existing revocation list cannot be read");
    }
    STACK_OF(X509_REVOKED) *entries = X509_CRL_get_REVOKED(old);
    trp_err err = TRP_OK;
    for (int i = 0; i < sk_X509_REVOKED_num(entries) && err == TRP_OK; i++) {
        const X509_REVOKED *entry = sk_X509_REVOKED_value(entries, i);
        if (list_has(list, X509_REVOKED_get0_serialNumber(entry))) {
            continue;
        }
        X509_REVOKED *copy = X509_REVOKED_dup(entry);
        if (copy == NULL || X509_CRL_add0_revoked(list, copy) != 1) {
            X509_REVOKED_free(copy);
            err = why_write(TRP_ENOMEM, why, why_bytes, "out of memory");
        }
    }
    X509_CRL_free(old);
    return err;
}

static trp_err
list_add_certs(X509_CRL *list, const authority *ca, const char *const *certs, size_t count,
               int64_t now_ms, char *why, size_t why_bytes)
{
    for (size_t i = 0; i < count; i++) {
        X509 *cert = cert_parse(certs[i]);
        if (cert == NULL) {
            return why_write(TRP_EDATA, why, why_bytes, "certificate %zu cannot be read", i + 1);
        }
        bool ours = X509_verify(cert, ca->key) == 1;
        bool added = ours && list_add(list, X509_get0_serialNumber(cert), now_ms);
        X509_free(cert);
        if (!ours) {
            return why_write(TRP_EDATA, why, why_bytes,
                             "certificate %zu was not signed by this authority", i + 1);
        }
        if (!added) {
            return why_write(TRP_ENOMEM, why, why_bytes, "out of memory");
        }
    }
    return TRP_OK;
}

/* Date the list (issued at now, next update at next), and sign it with the authority's key. */
static bool
list_finish(X509_CRL *list, const authority *ca, int64_t now_ms, int64_t next_update_ms)
{
    ASN1_TIME *now = ASN1_TIME_set(NULL, (time_t)((now_ms - TRPI_CERT_SKEW_MS) / 1000));
    ASN1_TIME *next = ASN1_TIME_set(NULL, (time_t)(next_update_ms / 1000));
    bool built =
        now != NULL && next != NULL && X509_CRL_set_version(list, X509_CRL_VERSION_2) == 1 &&
        X509_CRL_set_issuer_name(list, X509_get_subject_name(ca->cert)) == 1 &&
        X509_CRL_set1_lastUpdate(list, now) == 1 && X509_CRL_set1_nextUpdate(list, next) == 1 &&
        X509_CRL_sort(list) == 1 && X509_CRL_sign(list, ca->key, digest_of(ca->key)) != 0;
    ASN1_TIME_free(now);
    ASN1_TIME_free(next);
    return built;
}

trp_err
trpi_cert_revoke(const char *ca_cert, const char *ca_key, const char *old_list,
                 const char *const *certs, size_t certs_count, int64_t now_ms,
                 int64_t next_update_ms, char **ret_list, char *why, size_t why_bytes)
{
    authority ca = { NULL, NULL };
    trp_err err = authority_open(ca_cert, ca_key, &ca, why, why_bytes);
    if (err != TRP_OK) {
        return err;
    }
    X509_CRL *list = X509_CRL_new();
    err = list == NULL ? why_write(TRP_ENOMEM, why, why_bytes, "out of memory") : TRP_OK;
    if (err == TRP_OK && old_list != NULL) {
        err = list_add_old(list, old_list, why, why_bytes);
    }
    if (err == TRP_OK) {
        err = list_add_certs(list, &ca, certs, certs_count, now_ms, why, why_bytes);
    }
    if (err == TRP_OK && sk_X509_REVOKED_num(X509_CRL_get_REVOKED(list)) > TRPI_CERT_REVOKED_MAX) {
        err = why_write(TRP_ELIMIT, why, why_bytes, "more than %d revoked certificates",
                        TRPI_CERT_REVOKED_MAX);
    }
    if (err == TRP_OK && !list_finish(list, &ca, now_ms, next_update_ms)) {
        err = say_openssl(why, why_bytes, "cannot make the revocation list");
    }
    if (err == TRP_OK) {
        BIO *bio = BIO_new(BIO_s_mem());
        (void)(bio != NULL && PEM_write_bio_X509_CRL(bio, list));
        *ret_list = bio_take(bio);
        err = *ret_list != NULL ? TRP_OK : why_write(TRP_ENOMEM, why, why_bytes, "out of memory");
    }
    X509_CRL_free(list);
    authority_close(&ca);
    return err;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void
common_name(const X509_NAME *name, char *text, size_t bytes)
{
    text[0] = '\0';
    /* cuts at the room there is */
    (void)X509_NAME_get_text_by_NID(name, NID_commonName, text, (int)bytes);
    for (char *c = text; *c != '\0'; c++) {
        *c = *c >= ' ' && *c < 127 && *c != '"' ? *c : '?';
    }
}

static int64_t
time_ms(const ASN1_TIME *time)
{
    struct tm parts;
    memset(&parts, 0, sizeof parts);
    return ASN1_TIME_to_tm(time, &parts) == 1 ? (int64_t)timegm(&parts) * 1000 : 0;
}

static void
hex_write(const uint8_t *bytes, size_t count, char *text)
{
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }
}

/* A name of the SAN as text; false: another kind, or one that does not fit. */
static bool
alternative_text(const GENERAL_NAME *name, char *text, size_t bytes)
{
    int type = 0;
    const ASN1_STRING *value = GENERAL_NAME_get0_value(name, &type);
    if (type == GEN_DNS) {
        int length = ASN1_STRING_length(value);
        if (length <= 0 || (size_t)length >= bytes) {
            return false;
        }
        memcpy(text, ASN1_STRING_get0_data(value), (size_t)length);
        text[length] = '\0';
        return name_is_plain(text) || text[0] == '*';
    }
    if (type == GEN_IPADD) {
        int family = ASN1_STRING_length(value) == 4 ? AF_INET : AF_INET6;
        return (ASN1_STRING_length(value) == 4 || ASN1_STRING_length(value) == 16) &&
               inet_ntop(family, ASN1_STRING_get0_data(value), text, (socklen_t)bytes) != NULL;
    }
    return false;
}

trp_err
trpi_cert_names(const char *cert_pem, const char *names[TRPI_CERT_NAMES_MAX], size_t *ret_count,
                char **ret_storage)
{
    X509 *cert = cert_parse(cert_pem);
    char *storage = trpi_alloc(TRPI_CERT_NAMES_MAX * (TRPI_CERT_NAME_BYTES_MAX + 1));
    GENERAL_NAMES *all =
        cert != NULL ? X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL) : NULL;
    size_t count = 0;
    for (int i = 0; storage != NULL && i < sk_GENERAL_NAME_num(all) && count < TRPI_CERT_NAMES_MAX;
         i++) {
        char *text = storage + count * (TRPI_CERT_NAME_BYTES_MAX + 1);
        if (alternative_text(sk_GENERAL_NAME_value(all, i), text, TRPI_CERT_NAME_BYTES_MAX + 1)) {
            names[count++] = text;
        }
    }
    GENERAL_NAMES_free(all);
    trp_err err = storage == NULL ? TRP_ENOMEM : cert == NULL ? TRP_EDATA : TRP_OK;
    X509_free(cert);
    ERR_clear_error();
    if (err != TRP_OK) {
        trpi_free(storage);
        return err;
    }
    *ret_count = count;
    *ret_storage = storage;
    return TRP_OK;
}

static void
names_join(const char *cert_pem, char *text, size_t bytes)
{
    const char *names[TRPI_CERT_NAMES_MAX];
    size_t count = 0, at = 0;
    char *storage = NULL;
    text[0] = '\0';
    if (trpi_cert_names(cert_pem, names, &count, &storage) != TRP_OK) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (at + strlen(names[i]) + 8 >= bytes) {
            (void)snprintf(text + at, bytes - at, ", ...");
            break;
        }
        at += (size_t)snprintf(text + at, bytes - at, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    trpi_free(storage);
}

trp_err
trpi_cert_read(const char *cert_pem, trpi_cert_info *ret_info, char *why, size_t why_bytes)
{
    X509 *cert = cert_parse(cert_pem);
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned digest_bytes = 0;
    if (cert == NULL) {
        return why_write(TRP_EDATA, why, why_bytes, "the file has no certificate in PEM form");
    }
    memset(ret_info, 0, sizeof *ret_info);
    common_name(X509_get_subject_name(cert), ret_info->subject, sizeof ret_info->subject);
    common_name(X509_get_issuer_name(cert), ret_info->issuer, sizeof ret_info->issuer);
    ret_info->not_before_ms = time_ms(X509_get0_notBefore(cert));
    ret_info->not_after_ms = time_ms(X509_get0_notAfter(cert));
    ret_info->is_authority = X509_check_ca(cert) == 1;
    EVP_PKEY *key = X509_get0_pubkey(cert);
    (void)snprintf(ret_info->key_type, sizeof ret_info->key_type, "%s",
                   key != NULL ? EVP_PKEY_get0_type_name(key) : "unknown");
    const ASN1_INTEGER *serial = X509_get0_serialNumber(cert);
    int serial_bytes = ASN1_STRING_length(serial);
    hex_write(ASN1_STRING_get0_data(serial), serial_bytes < 20 ? (size_t)serial_bytes : 20,
              ret_info->serial);
    if (X509_digest(cert, EVP_sha256(), digest, &digest_bytes) == 1) {
        hex_write(digest, 32, ret_info->digest);
    }
    X509_free(cert);
    names_join(cert_pem, ret_info->names, sizeof ret_info->names);
    ERR_clear_error();
    return TRP_OK;
}

trp_err
trpi_cert_next(const char **at, trpi_cert_info *ret_info, char *why, size_t why_bytes)
{
    BIO *bio = BIO_new_mem_buf(*at, -1);
    ERR_clear_error();
    X509 *cert = bio != NULL ? PEM_read_bio_X509(bio, NULL, no_password, NULL) : NULL;
    size_t left = bio != NULL ? BIO_ctrl_pending(bio) : 0;
    unsigned long error = ERR_peek_last_error();
    bool none = cert == NULL && ERR_GET_LIB(error) == ERR_LIB_PEM &&
                ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
    bool found = cert != NULL;
    X509_free(cert);
    (void)BIO_free(bio);
    ERR_clear_error();
    if (!found) {
        return none ? TRP_ENOENT
                    : why_write(TRP_EDATA, why, why_bytes, "a certificate that cannot be read");
    }
    trp_err err = trpi_cert_read(*at, ret_info, why, why_bytes);
    *at += strlen(*at) - left;
    return err;
}

/* ---- secrets --------------------------------------------------------------------------------- */

trp_err
trpi_cert_random_hex(char *out, size_t bytes)
{
    uint8_t random[64];
    if (bytes > sizeof random || RAND_bytes(random, (int)bytes) != 1) {
        return TRP_EINTERNAL;
    }
    hex_write(random, bytes, out);
    OPENSSL_cleanse(random, sizeof random);
    return TRP_OK;
}

trp_err
trpi_cert_digest_hex(const char *text, char ret_digest[65])
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned bytes = 0;
    if (EVP_Digest(text, strlen(text), digest, &bytes, EVP_sha256(), NULL) != 1) {
        return TRP_EINTERNAL;
    }
    hex_write(digest, 32, ret_digest);
    return TRP_OK;
}

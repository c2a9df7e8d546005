/* cert_test.c - certificates of an own authority: made, read back, revoked, and every refusal. */
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/alloc.h"
#include "cluster/node/cert.h"
#include "tests/unit/unit.h"

static const int64_t now_ms = 1800000000000; /* some day in 2027 */
#define DAY 86400000ll

static char why[256];

static void
authority(char **ret_cert, char **ret_key)
{
    trpi_cert_request request = { .subject = "demo-ca",
                                  .not_before_ms = now_ms,
                                  .not_after_ms = now_ms + 3650 * DAY };
    UNIT_REQUIRE(trpi_cert_make_authority(&request, ret_cert, ret_key, why, sizeof why) == TRP_OK);
}

static void
a_node_certificate_says_who_for_whom_and_how_long(void)
{
    static const char *const names[] = { "host1.example", "10.0.0.1", "2001:db8::7", "localhost" };
    char *ca_cert = NULL, *ca_key = NULL, *cert = NULL, *key = NULL, *storage = NULL;
    const char *read[TRPI_CERT_NAMES_MAX];
    size_t count = 0;
    trpi_cert_info info;
    authority(&ca_cert, &ca_key);
    trpi_cert_request request = { .subject = "host1",
                                  .names = names,
                                  .names_count = 4,
                                  .not_before_ms = now_ms - 300000,
                                  .not_after_ms = now_ms + 365 * DAY };
    UNIT_REQUIRE(trpi_cert_make_node(ca_cert, ca_key, &request, &cert, &key, why, sizeof why) ==
                 TRP_OK);
    UNIT_EQUAL(trpi_cert_read(cert, &info, why, sizeof why), TRP_OK);
    UNIT_TEXT(info.subject, "host1");
    UNIT_TEXT(info.issuer, "demo-ca");
    UNIT_TEXT(info.names, "host1.example, 10.0.0.1, 2001:db8::7, localhost");
    UNIT_EQUAL(info.not_before_ms, now_ms - 300000);
    UNIT_EQUAL(info.not_after_ms, now_ms + 365 * DAY);
    UNIT_FALSE(info.is_authority);
    UNIT_EQUAL(strlen(info.serial), 32);
    UNIT_EQUAL(strlen(info.digest), 64);
    UNIT_TEXT(info.key_type, "EC");
    UNIT_EQUAL(trpi_cert_names(cert, read, &count, &storage), TRP_OK);
    UNIT_EQUAL(count, 4);
    UNIT_TEXT(count == 4 ? read[2] : "", "2001:db8::7");
    UNIT_EQUAL(trpi_cert_read(ca_cert, &info, why, sizeof why), TRP_OK);
    UNIT_TRUE(info.is_authority);
    UNIT_TEXT(info.issuer, "demo-ca");
    UNIT_TRUE(strstr(key, "PRIVATE KEY") != NULL && strstr(cert, "PRIVATE") == NULL);
    trpi_free(storage);
    trpi_free(cert);
    trpi_free(key);
    trpi_free(ca_cert);
    trpi_free(ca_key);
}

/* A bundle, as `cat` makes it of two authorities; the text around them is ignored. */
static void
each_certificate_of_a_bundle_is_read(void)
{
    char *first = NULL, *second = NULL, *key = NULL, *other = NULL, bundle[8192];
    trpi_cert_info info;
    authority(&first, &key);
    authority(&second, &other);
    (void)snprintf(bundle, sizeof bundle, "a line\n%s%s# and another\n%s", first, key, second);
    const char *at = bundle;
    UNIT_EQUAL(trpi_cert_next(&at, &info, why, sizeof why), TRP_OK);
    char digest[65];
    memcpy(digest, info.digest, sizeof digest);
    UNIT_EQUAL(trpi_cert_next(&at, &info, why, sizeof why), TRP_OK);
    UNIT_TRUE(strcmp(digest, info.digest) != 0);
    UNIT_EQUAL(trpi_cert_next(&at, &info, why, sizeof why), TRP_ENOENT);
    (void)snprintf(bundle, sizeof bundle, "%s%.300s", first, second); /* the second one is cut */
    at = bundle;
    UNIT_EQUAL(trpi_cert_next(&at, &info, why, sizeof why), TRP_OK);
    UNIT_EQUAL(trpi_cert_next(&at, &info, why, sizeof why), TRP_EDATA);
    trpi_free(first);
    trpi_free(second);
    trpi_free(key);
    trpi_free(other);
}

/* A name with other characters could add extensions to the certificate. */
static void
names_are_checked_and_counted(void)
{
    static const char *const wrong[] = { "",        "a,IP:1.2.3.4", "a b",       "x\n",
                                         "host:80", "10.0.0.1/8",   "*.example", "a;b=c" };
    static const char *many[TRPI_CERT_NAMES_MAX + 1];
    char *ca_cert = NULL, *ca_key = NULL, *cert = NULL, *key = NULL;
    authority(&ca_cert, &ca_key);
    trpi_cert_request request = {
        .subject = "n", .names_count = 1, .not_before_ms = now_ms, .not_after_ms = now_ms + DAY
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        request.names = &wrong[i];
        UNIT_EQUAL(trpi_cert_make_node(ca_cert, ca_key, &request, &cert, &key, why, sizeof why),
                   TRP_EINVAL);
    }
    for (size_t i = 0; i <= TRPI_CERT_NAMES_MAX; i++) {
        many[i] = "host.example";
    }
    request.names = many;
    request.names_count = TRPI_CERT_NAMES_MAX + 1;
    UNIT_EQUAL(trpi_cert_make_node(ca_cert, ca_key, &request, &cert, &key, why, sizeof why),
               TRP_EINVAL);
    request.names_count = TRPI_CERT_NAMES_MAX;
    UNIT_EQUAL(trpi_cert_make_node(ca_cert, ca_key, &request, &cert, &key, why, sizeof why),
               TRP_OK);
    trpi_free(cert);
    trpi_free(key);
    trpi_free(ca_cert);
    trpi_free(ca_key);
}

static void
requests_without_sense_are_refused(void)
{
    char subject[TRPI_CERT_SUBJECT_BYTES_MAX + 2], *cert = NULL, *key = NULL;
    trpi_cert_request request = { .subject = subject,
                                  .not_before_ms = now_ms,
                                  .not_after_ms = now_ms + DAY };
    memset(subject, 'x', sizeof subject);
    subject[sizeof subject - 1] = '\0'; /* one past */
    UNIT_EQUAL(trpi_cert_make_authority(&request, &cert, &key, why, sizeof why), TRP_EINVAL);
    subject[sizeof subject - 2] = '\0'; /* at the limit */
    UNIT_EQUAL(trpi_cert_make_authority(&request, &cert, &key, why, sizeof why), TRP_OK);
    trpi_free(cert);
    trpi_free(key);
    request.subject = "";
    UNIT_EQUAL(trpi_cert_make_authority(&request, &cert, &key, why, sizeof why), TRP_EINVAL);
    request.subject = "a\nb";
    UNIT_EQUAL(trpi_cert_make_authority(&request, &cert, &key, why, sizeof why), TRP_EINVAL);
    request.subject = "a";
    request.not_after_ms = now_ms;
    UNIT_EQUAL(trpi_cert_make_authority(&request, &cert, &key, why, sizeof why), TRP_EINVAL);
}

static void
only_an_authority_with_its_own_key_signs(void)
{
    static const char *const names[] = { "h" };
    char *ca[2][2] = { { NULL } }, *node[2] = { NULL }, *cert = NULL, *key = NULL;
    authority(&ca[0][0], &ca[0][1]);
    authority(&ca[1][0], &ca[1][1]);
    trpi_cert_request request = { .subject = "h",
                                  .names = names,
                                  .names_count = 1,
                                  .not_before_ms = now_ms,
                                  .not_after_ms = now_ms + DAY };
    UNIT_REQUIRE(trpi_cert_make_node(ca[0][0], ca[0][1], &request, &node[0], &node[1], why,
                                     sizeof why) == TRP_OK);
    UNIT_EQUAL(trpi_cert_make_node(ca[0][0], ca[1][1], &request, &cert, &key, why, sizeof why),
               TRP_EDATA);
    UNIT_EQUAL(trpi_cert_make_node(node[0], node[1], &request, &cert, &key, why, sizeof why),
               TRP_EDATA);
    UNIT_EQUAL(trpi_cert_make_node("rubbish", ca[0][1], &request, &cert, &key, why, sizeof why),
               TRP_EDATA);
    char *list = NULL;
    const char *revoked[] = { node[0] };
    UNIT_EQUAL(trpi_cert_revoke(ca[1][0], ca[1][1], NULL, revoked, 1, now_ms, now_ms + DAY, &list,
                                why, sizeof why),
               TRP_EDATA);
    UNIT_REQUIRE(trpi_cert_revoke(ca[0][0], ca[0][1], NULL, revoked, 1, now_ms, now_ms + DAY, &list,
                                  why, sizeof why) == TRP_OK);
    char *longer = NULL;
    UNIT_EQUAL(trpi_cert_revoke(ca[0][0], ca[0][1], list, revoked, 1, now_ms, now_ms + DAY, &longer,
                                why, sizeof why),
               TRP_OK);
    /* the same one twice is one; the signature's length varies by a few bytes */
    UNIT_TRUE(longer != NULL && strlen(longer) < strlen(list) + 20);
    trpi_free(list);
    trpi_free(longer);
    for (int i = 0; i < 2; i++) {
        trpi_free(ca[i][0]);
        trpi_free(ca[i][1]);
        trpi_free(node[i]);
    }
}

static X509_CRL *
list_parse(const char *text)
{
    BIO *bio = BIO_new_mem_buf(text, -1);
    X509_CRL *list = PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL);
    BIO_free(bio);
    UNIT_REQUIRE(list != NULL);
    return list;
}

/* The list is written anew each month: the date of a revocation does not change with it. */
static void
an_entry_keeps_its_date_when_the_list_is_written_anew(void)
{
    static const char *const names[] = { "h" };
    char *ca_cert = NULL, *ca_key = NULL, *cert = NULL, *key = NULL, *list = NULL, *later = NULL;
    authority(&ca_cert, &ca_key);
    trpi_cert_request request = { .subject = "h",
                                  .names = names,
                                  .names_count = 1,
                                  .not_before_ms = now_ms,
                                  .not_after_ms = now_ms + DAY };
    UNIT_REQUIRE(trpi_cert_make_node(ca_cert, ca_key, &request, &cert, &key, why, sizeof why) ==
                 TRP_OK);
    const char *revoked[] = { cert };
    UNIT_REQUIRE(trpi_cert_revoke(ca_cert, ca_key, NULL, revoked, 1, now_ms, now_ms + DAY, &list,
                                  why, sizeof why) == TRP_OK);
    UNIT_REQUIRE(trpi_cert_revoke(ca_cert, ca_key, list, NULL, 0, now_ms + 20 * DAY,
                                  now_ms + 50 * DAY, &later, why, sizeof why) == TRP_OK);
    X509_CRL *parsed = list_parse(later);
    const X509_REVOKED *entry = sk_X509_REVOKED_value(X509_CRL_get_REVOKED(parsed), 0);
    UNIT_REQUIRE(entry != NULL);
    UNIT_EQUAL(
        ASN1_TIME_cmp_time_t(X509_REVOKED_get0_revocationDate(entry), (time_t)(now_ms / 1000)), 0);
    X509_CRL_free(parsed);
    trpi_free(list);
    trpi_free(later);
    trpi_free(cert);
    trpi_free(key);
    trpi_free(ca_cert);
    trpi_free(ca_key);
}

/* An authority made by another tool. */
static void
an_ed25519_authority_signs_and_revokes(void)
{
    static const char *const names[] = { "h" };
    char *ca_key = NULL, *cert = NULL, *key = NULL, *list = NULL, *old_cert = NULL;
    EVP_PKEY *pair = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    BIO *bio = BIO_new(BIO_s_mem());
    UNIT_REQUIRE(pair != NULL && bio != NULL);
    authority(&old_cert, &ca_key); /* the same with another key */
    BIO *from = BIO_new_mem_buf(old_cert, -1);
    X509 *ca = PEM_read_bio_X509(from, NULL, NULL, NULL);
    UNIT_REQUIRE(ca != NULL && X509_set_pubkey(ca, pair) == 1 && X509_sign(ca, pair, NULL) != 0);
    UNIT_TRUE(PEM_write_bio_X509(bio, ca) == 1 && BIO_write(bio, "", 1) == 1);
    BIO *key_bio = BIO_new(BIO_s_mem());
    UNIT_TRUE(PEM_write_bio_PrivateKey(key_bio, pair, NULL, NULL, 0, NULL, NULL) == 1 &&
              BIO_write(key_bio, "", 1) == 1);
    char *ed_cert = NULL, *ed_key = NULL;
    (void)BIO_get_mem_data(bio, &ed_cert);
    (void)BIO_get_mem_data(key_bio, &ed_key);
    trpi_cert_request request = { .subject = "h",
                                  .names = names,
                                  .names_count = 1,
                                  .not_before_ms = now_ms,
                                  .not_after_ms = now_ms + DAY };
    UNIT_EQUAL(trpi_cert_make_node(ed_cert, ed_key, &request, &cert, &key, why, sizeof why),
               TRP_OK);
    const char *revoked[] = { cert };
    UNIT_EQUAL(trpi_cert_revoke(ed_cert, ed_key, NULL, revoked, 1, now_ms, now_ms + DAY, &list, why,
                                sizeof why),
               TRP_OK);
    X509_CRL *parsed = list_parse(list);
    UNIT_EQUAL(X509_CRL_verify(parsed, pair), 1);
    X509_CRL_free(parsed);
    BIO_free(bio);
    BIO_free(key_bio);
    BIO_free(from);
    X509_free(ca);
    EVP_PKEY_free(pair);
    trpi_free(old_cert);
    trpi_free(ca_key);
    trpi_free(cert);
    trpi_free(key);
    trpi_free(list);
}

UNIT_BEGIN("cert")
UNIT(a_node_certificate_says_who_for_whom_and_how_long)
UNIT(each_certificate_of_a_bundle_is_read)
UNIT(names_are_checked_and_counted)
UNIT(requests_without_sense_are_refused)
UNIT(only_an_authority_with_its_own_key_signs)
UNIT(an_entry_keeps_its_date_when_the_list_is_written_anew)
UNIT(an_ed25519_authority_signs_and_revokes)
UNIT_END

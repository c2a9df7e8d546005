/* hello_test.c - which certificate, name and protocol two ends agree on, and the reasons when they
 * do not. */
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

#include "tests/unit/tls/ends.h"

/* One handshake. host: dialled. The refusals: of the client's end and of the server's. */
static void
shake(ends_files *f, const trpi_tls_options *client, const trpi_tls_options *server,
      const char *host, trpi_refusal client_why, trpi_refusal server_why)
{
    end c, s;
    end_start(&c, f, client, host, 0);
    end_start(&s, f, server, NULL, 0);
    ends_shake(&c, &s);
    UNIT_EQUAL(end_refusal(&c), client_why);
    UNIT_EQUAL(end_refusal(&s), server_why);
    UNIT_EQUAL(c.result, client_why == TRPI_REFUSED_NONE ? TRPI_TLS_OK : TRPI_TLS_FAILED);
    UNIT_TRUE(s.result != TRPI_TLS_MORE);
    end_stop(&c);
    end_stop(&s);
}

/* ---- certificates and names ------------------------------------------------------------------ */

static void
the_servers_certificate_names_the_host_that_was_asked_for(void)
{
    ends_files f;
    ends_files_start(&f);
    trpi_tls_options client = ends_client(&f), server = ends_server(&f);
    shake(&f, &client, &server, "echo.example", TRPI_REFUSED_NONE, TRPI_REFUSED_NONE);
    shake(&f, &client, &server, "other.example", TRPI_REFUSED_WRONG_NAME, TRPI_REFUSED_BY_PEER);
    shake(&f, &client, &server, "127.0.0.1", TRPI_REFUSED_WRONG_NAME, TRPI_REFUSED_BY_PEER);
    server.cert = ends_path(&f, "stranger.pem");
    server.key = ends_path(&f, "stranger.key");
    shake(&f, &client, &server, "echo.example", TRPI_REFUSED_UNKNOWN_CA, TRPI_REFUSED_BY_PEER);
    pki_end(&f.pki);
}

static void
a_client_that_checks_nothing_says_so(void)
{
    ends_files f;
    ends_files_start(&f);
    trpi_tls_options client = { .use = TRPI_TLS_CLIENT, .peer = TRPI_TLS_PEER_UNCHECKED };
    trpi_tls_options server = ends_server(&f);
    server.cert = ends_path(&f, "stranger.pem");
    server.key = ends_path(&f, "stranger.key");
    shake(&f, &client, &server, "any.example", TRPI_REFUSED_NONE, TRPI_REFUSED_NONE);
    client.peer = TRPI_TLS_PEER_REQUIRED; /* by the authorities of the system: not the test's */
    shake(&f, &client, &server, "echo.example", TRPI_REFUSED_UNKNOWN_CA, TRPI_REFUSED_BY_PEER);
    pki_end(&f.pki);
}

static void
a_server_asks_for_none_or_leaves_it_open_or_demands_one(void)
{
    static const struct {
        trpi_tls_peer peer;
        const char *cert, *key; /* of the client */
        trpi_refusal why;       /* of the server */
    } rows[] = {
        { TRPI_TLS_PEER_UNCHECKED, NULL, NULL, TRPI_REFUSED_NONE },
        { TRPI_TLS_PEER_UNCHECKED, "stranger.pem", "stranger.key", TRPI_REFUSED_NONE },
        { TRPI_TLS_PEER_OPTIONAL, NULL, NULL, TRPI_REFUSED_NONE },
        { TRPI_TLS_PEER_OPTIONAL, "client.pem", "client.key", TRPI_REFUSED_NONE },
        { TRPI_TLS_PEER_OPTIONAL, "stranger.pem", "stranger.key", TRPI_REFUSED_UNKNOWN_CA },
        { TRPI_TLS_PEER_REQUIRED, NULL, NULL, TRPI_REFUSED_NO_CERTIFICATE },
        { TRPI_TLS_PEER_REQUIRED, "client.pem", "client.key", TRPI_REFUSED_NONE },
        { TRPI_TLS_PEER_REQUIRED, "stranger.pem", "stranger.key", TRPI_REFUSED_UNKNOWN_CA },
    };
    ends_files f;
    ends_files_start(&f);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        end c, s;
        trpi_tls_options client = ends_client(&f), server = ends_server(&f);
        client.cert = rows[i].cert != NULL ? ends_path(&f, rows[i].cert) : NULL;
        client.key = rows[i].key != NULL ? ends_path(&f, rows[i].key) : NULL;
        server.ca = ends_path(&f, "ca.pem");
        server.peer = rows[i].peer;
        end_start(&c, &f, &client, "echo.example", 0);
        end_start(&s, &f, &server, NULL, 0);
        ends_shake(&c, &s); /* with TLS 1.3 the client is done before the server judges */
        bool fits = UNIT_EQUAL(end_refusal(&s), rows[i].why);
        trpi_refusal why = TRPI_REFUSED_NONE;
        if (rows[i].why == TRPI_REFUSED_NONE) {
            bool shown = rows[i].cert != NULL && rows[i].peer != TRPI_TLS_PEER_UNCHECKED;
            fits = UNIT_EQUAL(trpi_tls_session_key(s.session) != 0, shown) && fits;
            fits = UNIT_TRUE(trpi_tls_session_stands(s.session, s.context, f.pki.now_ms, &why)) &&
                   fits;
        }
        if (!fits) {
            printf("  row %zu\n", i);
        }
        end_stop(&c);
        end_stop(&s);
    }
    pki_end(&f.pki);
}

static void
a_server_shows_the_certificate_of_the_name_that_is_asked_for(void)
{
    ends_files f;
    end c, s;
    ends_files_start(&f);
    trpi_tls_options client = ends_client(&f), server = ends_server(&f);
    const trpi_tls_pair more[] = { { ends_path(&f, "client.pem"), ends_path(&f, "client.key") },
                                   { ends_path(&f, "other.pem"), ends_path(&f, "other.key") } };
    server.more = more;
    server.more_count = 2;
    shake(&f, &client, &server, "echo.example", TRPI_REFUSED_NONE, TRPI_REFUSED_NONE);
    shake(&f, &client, &server, "other.example", TRPI_REFUSED_NONE, TRPI_REFUSED_NONE);
    shake(&f, &client, &server, "client.example", TRPI_REFUSED_NONE, TRPI_REFUSED_NONE);
    /* the first one otherwise */
    shake(&f, &client, &server, "nobody.example", TRPI_REFUSED_WRONG_NAME, TRPI_REFUSED_BY_PEER);
    end_start(&c, &f, &client, "other.example", 0);
    end_start(&s, &f, &server, NULL, 0);
    UNIT_TEXT(trpi_tls_session_asked(s.session), "");
    ends_shake(&c, &s);
    UNIT_TEXT(trpi_tls_session_asked(s.session), "other.example");
    end_stop(&c);
    end_stop(&s);
    pki_end(&f.pki);
}

/* Write other.pem and other.key anew: RSA, signed by ca. The other certificates are ECDSA. */
static void
other_is_rsa(const ends_files *f)
{
    FILE *file = fopen(ends_path(f, "ca.pem"), "r");
    UNIT_REQUIRE(file != NULL);
    X509 *ca = PEM_read_X509(file, NULL, NULL, NULL);
    fclose(file);
    file = fopen(ends_path(f, "ca.key"), "r");
    UNIT_REQUIRE(file != NULL);
    EVP_PKEY *ca_key = PEM_read_PrivateKey(file, NULL, NULL, NULL), *key = EVP_RSA_gen(2048);
    fclose(file);
    X509 *cert = X509_new();
    X509_EXTENSION *names =
        X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "DNS:other.example");
    UNIT_REQUIRE(ca != NULL && ca_key != NULL && key != NULL && cert != NULL && names != NULL);
    UNIT_TRUE(X509_set_version(cert, X509_VERSION_3) == 1 &&
              ASN1_INTEGER_set(X509_get_serialNumber(cert), 7) == 1 &&
              X509_gmtime_adj(X509_getm_notBefore(cert), -86400) != NULL &&
              X509_gmtime_adj(X509_getm_notAfter(cert), 86400) != NULL &&
              X509_set_subject_name(cert, X509_get_subject_name(ca)) == 1 &&
              X509_set_issuer_name(cert, X509_get_subject_name(ca)) == 1 &&
              X509_set_pubkey(cert, key) == 1 && X509_add_ext(cert, names, -1) == 1 &&
              X509_sign(cert, ca_key, EVP_sha256()) > 0);
    file = fopen(ends_path(f, "other.pem"), "w");
    UNIT_REQUIRE(file != NULL);
    UNIT_EQUAL(PEM_write_X509(file, cert), 1);
    fclose(file);
    file = fopen(ends_path(f, "other.key"), "w"); /* it exists: its mode stays */
    UNIT_REQUIRE(file != NULL);
    UNIT_EQUAL(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
    X509_EXTENSION_free(names);
    X509_free(cert);
    X509_free(ca);
    EVP_PKEY_free(key);
    EVP_PKEY_free(ca_key);
}

/* Else OpenSSL would have one of each kind, and show the kind that the client likes best. */
static void
the_kind_of_the_keys_does_not_choose_the_certificate(void)
{
    ends_files f;
    ends_files_start(&f);
    other_is_rsa(&f);
    trpi_tls_options client = ends_client(&f), server = ends_server(&f);
    const trpi_tls_pair other = { ends_path(&f, "other.pem"), ends_path(&f, "other.key") };
    server.more = &other;
    server.more_count = 1;
    shake(&f, &client, &server, "other.example", TRPI_REFUSED_NONE, TRPI_REFUSED_NONE);
    shake(&f, &client, &server, "echo.example", TRPI_REFUSED_NONE, TRPI_REFUSED_NONE);
    const trpi_tls_pair echo = { server.cert, server.key };
    server.cert = other.cert;
    server.key = other.key;
    server.more = &echo;
    shake(&f, &client, &server, "other.example", TRPI_REFUSED_NONE, TRPI_REFUSED_NONE);
    shake(&f, &client, &server, "echo.example", TRPI_REFUSED_NONE, TRPI_REFUSED_NONE);
    pki_end(&f.pki);
}

static void
an_address_is_verified_but_not_sent_as_a_name(void)
{
    ends_files f;
    end c, s;
    ends_files_start(&f);
    pki_node(&f.pki, "ca", "loop", "127.0.0.1", -1, 30);
    trpi_tls_options client = ends_client(&f), server = ends_server(&f);
    server.cert = ends_path(&f, "loop.pem");
    server.key = ends_path(&f, "loop.key");
    end_start(&c, &f, &client, "127.0.0.1", 0);
    end_start(&s, &f, &server, NULL, 0);
    ends_shake(&c, &s);
    UNIT_EQUAL(c.result, TRPI_TLS_OK);
    UNIT_TEXT(trpi_tls_session_asked(s.session), "");
    end_stop(&c);
    end_stop(&s);
    pki_end(&f.pki);
}

/* A list of allowed names and one of revoked certificates, at either end. */
static void
a_peer_that_is_revoked_or_not_allowed_is_refused(void)
{
    static const char *const others[] = { "other.example" };
    ends_files f;
    ends_files_start(&f);
    pki_revoke(&f.pki, "ca", "echo", "echo-revoked.pem");
    pki_revoke(&f.pki, "foreign", NULL, "of-foreign.pem");
    trpi_tls_options client = ends_client(&f), server = ends_server(&f);
    client.crl = ends_path(&f, "echo-revoked.pem"); /* of a client without a certificate */
    shake(&f, &client, &server, "echo.example", TRPI_REFUSED_REVOKED, TRPI_REFUSED_BY_PEER);
    client.crl = ends_path(&f, "of-foreign.pem");
    shake(&f, &client, &server, "echo.example", TRPI_REFUSED_REVOCATION_LIST, TRPI_REFUSED_BY_PEER);
    client.crl = NULL;
    client.allowed = others;
    client.allowed_count = 1;
    shake(&f, &client, &server, "echo.example", TRPI_REFUSED_NOT_ALLOWED, TRPI_REFUSED_BY_PEER);
    const trpi_tls_pair more = { ends_path(&f, "other.pem"), ends_path(&f, "other.key") };
    server.more = &more;
    server.more_count = 1;
    shake(&f, &client, &server, "other.example", TRPI_REFUSED_NONE, TRPI_REFUSED_NONE);
    pki_end(&f.pki);
}

/* ---- protocols ------------------------------------------------------------------------------- */

static void
both_ends_agree_on_the_protocol_that_the_server_prefers(void)
{
    static const char *const offered[] = { "a/1", "echo/1", "echo/2" }, *const spoken[] = {
        "echo/2", "echo/1"
    };
    ends_files f;
    end c, s;
    ends_files_start(&f);
    trpi_tls_options client = ends_client(&f), server = ends_server(&f);
    client.protocols = offered;
    client.protocols_count = 3;
    server.protocols = spoken;
    server.protocols_count = 2;
    end_start(&c, &f, &client, "echo.example", 0);
    end_start(&s, &f, &server, NULL, 0);
    UNIT_TEXT(trpi_tls_session_protocol(c.session), "");
    ends_shake(&c, &s);
    UNIT_TEXT(trpi_tls_session_protocol(c.session), "echo/2");
    UNIT_TEXT(trpi_tls_session_protocol(s.session), "echo/2");
    end_stop(&c);
    end_stop(&s);
    pki_end(&f.pki);
}

/* Which end has protocols, and whether they are optional there: what each says. */
static void
no_protocol_in_common_is_an_error_with_a_text(void)
{
    static const char *const a[] = { "a/1", "a\n2" }, *const b[] = { "b/1" };
    static const struct {
        int client, server; /* 0: none, 1: has some, 2: optional */
        const char *client_says, *server_says;
    } rows[] = {
        { 1, 1, "the server speaks none", "the client offers a/1, a?2; this server speaks b/1" },
        { 2, 1, "the server speaks none", "the client offers a/1, a?2; this server speaks b/1" },
        { 0, 1, "the server speaks none", "the client offers none (ALPN); this server speaks b/1" },
        { 1, 0, "the peer chooses none (ALPN); this side speaks a/1, a?2", NULL },
        { 1, 2, "the peer chooses none (ALPN); this side speaks a/1, a?2", NULL },
        { 2, 2, NULL, NULL },
        { 0, 2, NULL, NULL },
        { 2, 0, NULL, NULL },
    };
    ends_files f;
    ends_files_start(&f);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        end c, s;
        trpi_tls_options client = ends_client(&f), server = ends_server(&f);
        client.protocols = a;
        client.protocols_count = rows[i].client > 0 ? 2 : 0;
        client.protocol_optional = rows[i].client == 2;
        server.protocols = b;
        server.protocols_count = rows[i].server > 0 ? 1 : 0;
        server.protocol_optional = rows[i].server == 2;
        end_start(&c, &f, &client, "echo.example", 0);
        end_start(&s, &f, &server, NULL, 0);
        ends_shake(&c, &s);
        const char *says[] = { rows[i].client_says, rows[i].server_says };
        const end *of[] = { &c, &s };
        bool fits = true;
        for (int k = 0; k < 2; k++) {
            trpi_refusal why = says[k] != NULL ? TRPI_REFUSED_NO_PROTOCOL : TRPI_REFUSED_NONE;
            fits = UNIT_EQUAL(end_refusal(of[k]), why) && fits;
            fits = (says[k] == NULL || UNIT_TRUE(end_says(of[k], says[k]))) && fits;
            fits = UNIT_TEXT(trpi_tls_session_protocol(of[k]->session), "") && fits;
        }
        if (!fits) {
            printf("  row %zu\n", i);
        }
        end_stop(&c);
        end_stop(&s);
    }
    pki_end(&f.pki);
}

/* ---- contexts -------------------------------------------------------------------------------- */

/* Return what is said of a certificate whose time begins or ends so many days from now. */
static const char *
dates_of(const ends_files *f, const char *bound, int days)
{
    static char text[128];
    char at[2][32];
    for (int i = 0; i < 2; i++) {
        time_t seconds = (time_t)(f->pki.now_ms / 1000) + (i == 0 ? days * 86400 : 0);
        struct tm utc;
        strftime(at[i], sizeof at[i], "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &utc));
    }
    snprintf(text, sizeof text, " valid; valid %s %s, this host's clock says %s)", bound, at[0],
             at[1]);
    return strcmp(bound, "until") == 0 ? strstr(text, "valid until") : text;
}

/* Change one option of a good server's or client's; the context is refused with this text. */
static void
is_refused(const ends_files *f, const trpi_tls_options *options, const char *says)
{
    char why[300] = "";
    trpi_tls_context *context = NULL;
    UNIT_EQUAL(trpi_tls_context_load(options, f->pki.now_ms, &context, why, sizeof why),
               TRP_ECONFIG);
    if (!UNIT_TRUE(strstr(why, says) != NULL)) {
        printf("  it says: %s\n", why);
    }
    trpi_tls_context_unref(context);
}

static void
a_context_is_refused_with_a_text(void)
{
    static char long_name[257];
    static const char *const empty[] = { "" }, *const too_long[] = { long_name };
    memset(long_name, 'x', 256);
    ends_files f;
    ends_files_start(&f);
    pki_node(&f.pki, "ca", "brief", "echo.example", -3, -1);
    pki_node(&f.pki, "ca", "early", "echo.example", 1, 3);
    trpi_tls_options o = ends_client(&f);
    o.peer = TRPI_TLS_PEER_OPTIONAL;
    is_refused(&f, &o, "only a server may leave");
    o = ends_client(&f);
    o.use = TRPI_TLS_NODE;
    o.peer = TRPI_TLS_PEER_UNCHECKED;
    is_refused(&f, &o, "a node checks its peers");
    o = ends_client(&f);
    o.cert = ends_path(&f, "client.pem");
    is_refused(&f, &o, "go together");
    o = ends_server(&f);
    o.key = NULL;
    is_refused(&f, &o, "a server needs a certificate");
    o = ends_server(&f);
    o.key = ends_path(&f, "other.key");
    is_refused(&f, &o, "key values mismatch");
    o = ends_server(&f);
    o.peer = TRPI_TLS_PEER_REQUIRED; /* by no authority */
    o.ca = ends_path(&f, "missing.pem");
    is_refused(&f, &o, "authorities");
    o = ends_server(&f);
    o.cert = ends_path(&f, "brief.pem");
    o.key = ends_path(&f, "brief.key");
    is_refused(&f, &o, "reason=expired");
    is_refused(&f, &o, dates_of(&f, "until", -1));
    o.cert = ends_path(&f, "early.pem");
    o.key = ends_path(&f, "early.key");
    is_refused(&f, &o, "reason=not-yet-valid");
    is_refused(&f, &o, dates_of(&f, "from", 1));
    const trpi_tls_pair more = { ends_path(&f, "brief.pem"), ends_path(&f, "brief.key") };
    o = ends_server(&f);
    o.more = &more;
    o.more_count = 1;
    is_refused(&f, &o, "brief.pem");
    o = ends_client(&f);
    o.more = &more;
    o.more_count = 1;
    is_refused(&f, &o, "only a server has certificates for several");
    o = ends_server(&f);
    o.protocols_count = 1;
    o.protocols = empty;
    is_refused(&f, &o, "1 to 255 bytes");
    o.protocols = too_long;
    is_refused(&f, &o, "1 to 255 bytes");
    long_name[255] = '\0'; /* at the limit */
    end e;
    end_start(&e, &f, &o, NULL, 0);
    end_stop(&e);
    pki_end(&f.pki);
}

UNIT_BEGIN("hello")
UNIT(the_servers_certificate_names_the_host_that_was_asked_for)
UNIT(a_client_that_checks_nothing_says_so)
UNIT(a_server_asks_for_none_or_leaves_it_open_or_demands_one)
UNIT(a_server_shows_the_certificate_of_the_name_that_is_asked_for)
UNIT(the_kind_of_the_keys_does_not_choose_the_certificate)
UNIT(an_address_is_verified_but_not_sent_as_a_name)
UNIT(a_peer_that_is_revoked_or_not_allowed_is_refused)
UNIT(both_ends_agree_on_the_protocol_that_the_server_prefers)
UNIT(no_protocol_in_common_is_an_error_with_a_text)
UNIT(a_context_is_refused_with_a_text)
UNIT_END

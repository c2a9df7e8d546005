/* web_server_test.c - requests over HTTP, and strangers who send something else. */
#include "tests/unit/endpoint/waiter.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <signal.h>

#include "base/lws.h"
#include "tests/unit/remote/pki.h"

static waiter w, second, third;

#define CLOSE "host: a\r\nconnection: close\r\n\r\n"

static trp_system *
server_open(const char *uri)
{
    trp_system *system = stage_open();
    waiter_init(&w, uri);
    return system;
}

/* CAM-01, CAM-02 */
static void
a_request_is_a_message_and_the_reply_its_response(void)
{
    trp_system *system = server_open("http://127.0.0.1:0/a?prefix=1");
    waiter_start(system, &w);
    UNIT_REQUIRE(atomic_load(&w.started) == 1 && w.port != 0);
    const char *answer =
        guest_ask(w.port, "GET /a/b%20c?x=1&y=%26%25 HTTP/1.1\r\nuser-agent: me\r\n" CLOSE);
    UNIT_TRUE(starts_with(answer, "HTTP/1.1 200 OK\r\n"));
    UNIT_TRUE(strstr(answer, "\r\n\r\n<GET /a/b c?x=1&y=%26%25 me >") != NULL);
    UNIT_TRUE(strstr(answer, "\r\nconnection: close\r\n") != NULL);
    answer = guest_ask(w.port, "POST /a HTTP/1.1\r\ncontent-length: 3\r\n" CLOSE "abc");
    UNIT_TRUE(strstr(answer, "<POST /a?  abc>") != NULL);
    answer = guest_ask(w.port, "HEAD /a HTTP/1.1\r\n" CLOSE);
    UNIT_TRUE(strstr(answer, "content-length: 12\r\n") != NULL && strstr(answer, "<") == NULL);
    answer = guest_ask(w.port, "GET /ab HTTP/1.1\r\n" CLOSE);
    UNIT_TRUE(starts_with(answer, "HTTP/1.1 404 "));
    answer = guest_ask(w.port, "GET /a HTTP/1.0\r\n\r\n");
    UNIT_TRUE(strstr(answer, "<GET /a?  >") != NULL);
    stage_close(system);
}

static void
a_connection_carries_more_than_one_request(void)
{
    trp_system *system = server_open("http://127.0.0.1:0/?prefix=1");
    waiter_start(system, &w);
    int fd = guest_connect(w.port);
    for (int i = 0; i < 3; i++) {
        guest_say(fd, "POST /1 HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhi");
        UNIT_TRUE(strstr(guest_read(fd, "hi>"), "<POST /1?  hi>") != NULL);
    }
    /* pipelined: answered one after the other */
    guest_say(fd, "GET /2 HTTP/1.1\r\nhost: a\r\n\r\nGET /3 HTTP/1.1\r\n" CLOSE);
    const char *answer = guest_read(fd, NULL);
    const char *first = strstr(answer, "<GET /2?  >"), *then = strstr(answer, "<GET /3?  >");
    UNIT_TRUE(first != NULL && then != NULL && first < then);
    close(fd);
    UNIT_EQUAL(atomic_load(&w.got), 5);
    stage_close(system);
}

/* web-http-H1 */
static void
a_body_may_be_empty_or_have_no_length(void)
{
    static const char *const methods[] = { "POST", "PUT", "PATCH" };
    char text[256];
    trp_system *system = server_open("http://127.0.0.1:0/?prefix=1&idle=5000");
    waiter_start(system, &w);
    int fd = guest_connect(w.port);
    for (int i = 0; i < 3; i++) {
        guest_say(fd, "POST /0 HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n");
        const char *answer = guest_read(fd, ">");
        UNIT_TRUE(strstr(answer, "<POST /0?  >") != NULL);
        UNIT_TRUE(strstr(answer, "connection: close") == NULL);
    }
    guest_say(fd, "GET /1 HTTP/1.1\r\n" CLOSE);
    UNIT_TRUE(strstr(guest_read(fd, NULL), "<GET /1?  >") != NULL);
    close(fd);
    UNIT_EQUAL(atomic_load(&w.got), 4);
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        snprintf(text, sizeof text, "%s /2 HTTP/1.1\r\nhost: a\r\n\r\n", methods[i]);
        const char *answer = guest_ask(w.port, text);
        UNIT_TRUE(strstr(answer, " /2?  >") != NULL);
        UNIT_TRUE(strstr(answer, "\r\nconnection: close\r\n") != NULL);
    }
    fd = guest_connect(w.port); /* no body is awaited of other methods */
    for (int i = 0; i < 2; i++) {
        guest_say(fd, "DELETE /3 HTTP/1.1\r\nhost: a\r\n\r\n");
        UNIT_TRUE(strstr(guest_read(fd, ">"), "<DELETE /3?  >") != NULL);
    }
    close(fd);
    stage_close(system);
}

/* CAM-03, CAM-04; web-text-T1 */
static void
the_word_of_a_handler_is_a_status(void)
{
    trp_system *system = server_open("http://127.0.0.1:0/?prefix=1");
    w.options.timeout_ms = 300 * UNIT_STRETCH;
    waiter_start(system, &w);
    UNIT_TRUE(starts_with(guest_ask(w.port, "GET /ack HTTP/1.1\r\n" CLOSE), "HTTP/1.1 204 "));
    UNIT_TRUE(starts_with(guest_ask(w.port, "GET /fail HTTP/1.1\r\n" CLOSE), "HTTP/1.1 500 "));
    const char *answer = guest_ask(w.port, "GET /teapot HTTP/1.1\r\n" CLOSE);
    UNIT_TRUE(starts_with(answer, "HTTP/1.1 418 ") && strstr(answer, "x-pot: tea\r\n") != NULL);
    UNIT_TRUE(strstr(answer, "connection: x") == NULL);
    UNIT_EQUAL(atomic_load(&w.errors), 1); /* of fail */
    answer = guest_ask(w.port, "GET /split HTTP/1.1\r\n" CLOSE);
    UNIT_TRUE(starts_with(answer, "HTTP/1.1 500 ") && strstr(answer, "x-c") == NULL);
    UNIT_WAIT(atomic_load(&w.errors) == 2 && atomic_load(&w.err) == TRP_EINVAL, 60000);
    UNIT_TRUE(starts_with(guest_ask(w.port, "GET /wrong HTTP/1.1\r\n" CLOSE), "HTTP/1.1 500 "));
    UNIT_WAIT(atomic_load(&w.errors) == 3, 60000);
    UNIT_TRUE(starts_with(guest_ask(w.port, "GET /hold HTTP/1.1\r\n" CLOSE), "HTTP/1.1 504 "));
    UNIT_WAIT(atomic_load(&w.err) == TRP_ETIMEDOUT, 60000);
    stage_close(system);
}

static void
answer_held(trp_ctx *ctx, waiter *of)
{
    waiter_reply(ctx, of, atomic_exchange(&of->held, 0), "late", NULL, 0);
}

/* A reply to a client that has reset its connection is an error of its own. */
static void
a_client_that_has_gone_is_told_of(void)
{
    const struct linger reset = { 1, 0 };
    trp_system *system = server_open("http://127.0.0.1:0/?prefix=1&connections=1");
    waiter_start(system, &w);
    int fd = guest_connect(w.port);
    guest_say(fd, "GET /hold HTTP/1.1\r\nhost: a\r\n\r\n");
    UNIT_WAIT(atomic_load(&w.held) != 0, 60000);
    UNIT_EQUAL(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    close(fd);
    /* with one connection, the next one is served when the first one's end was seen */
    bool served = false;
    for (int i = 0; i < 6000 && !served; i++) {
        served = strstr(guest_ask(w.port, "GET /x HTTP/1.1\r\n" CLOSE), "200 OK") != NULL;
        poll(NULL, 0, served ? 0 : 10);
    }
    UNIT_TRUE(served);
    waiter_do(system, &w, answer_held);
    UNIT_WAIT(atomic_load(&w.errors) == 1 && atomic_load(&w.err) == TRP_ECLOSED, 60000);
    stage_close(system);
}

/* At each limit, and one past it. */
static void
bodies_fields_and_heads_have_limits(void)
{
    static char text[12000], name[1100];
    trp_system *system = server_open("http://127.0.0.1:0/?prefix=1&headers=4096");
    w.options.message_bytes_max = 10;
    waiter_start(system, &w);
    UNIT_TRUE(
        strstr(guest_ask(w.port, "PUT / HTTP/1.1\r\ncontent-length: 10\r\n" CLOSE "0123456789"),
               "413") == NULL);
    UNIT_EQUAL(atomic_load(&w.got), 1);
    UNIT_TRUE(starts_with(
        guest_ask(w.port, "PUT / HTTP/1.1\r\ncontent-length: 11\r\n" CLOSE "01234567890"),
        "HTTP/1.1 413 "));
    for (int more = 0; more < 2; more++) { /* a field of 1,023 bytes, and of 1,024 */
        memset(name, 'v', sizeof name);
        name[1023 + more] = '\0';
        snprintf(text, sizeof text, "GET /ack HTTP/1.1\r\nuser-agent: %s\r\n" CLOSE, name);
        UNIT_TRUE(starts_with(guest_ask(w.port, text), more ? "HTTP/1.1 431 " : "HTTP/1.1 204 "));
    }
    UNIT_EQUAL(atomic_load(&w.got), 2);
    memset(text, 0, sizeof text); /* a head above `headers` reaches nobody */
    size_t at = (size_t)snprintf(text, sizeof text, "GET /ack HTTP/1.1\r\nhost: a\r\n");
    for (int i = 0; i < 9; i++) {
        memset(name, 'v', 600);
        name[600] = '\0';
        at += (size_t)snprintf(text + at, sizeof text - at, "accept-language: %s\r\n", name);
    }
    snprintf(text + at, sizeof text - at, "connection: close\r\n\r\n");
    UNIT_TRUE(strstr(guest_ask(w.port, text), " 20") == NULL);
    UNIT_EQUAL(atomic_load(&w.got), 2);
    stage_close(system);
}

static void
requests_and_connections_have_limits(void)
{
    trp_system *system = server_open("http://127.0.0.1:0/?prefix=1&connections=2");
    w.options.pending_max = 1;
    waiter_start(system, &w);
    int fd = guest_connect(w.port);
    guest_say(fd, "GET /hold HTTP/1.1\r\n" CLOSE);
    UNIT_WAIT(atomic_load(&w.held) != 0, 60000);
    const char *answer = guest_ask(w.port, "GET /x HTTP/1.1\r\n" CLOSE); /* one past pending_max */
    UNIT_TRUE(starts_with(answer, "HTTP/1.1 503 ") && strstr(answer, "retry-after: 1") != NULL);
    int idle = guest_connect(w.port);
    guest_say(idle, "GET /x HTTP/1.1\r\n"); /* it is accepted, the second one */
    bool refused = false;                   /* and a third one is closed without a word */
    for (int i = 0; i < 6000 && !refused; i++) {
        refused = guest_ask(w.port, "GET /x HTTP/1.1\r\n" CLOSE)[0] == '\0';
        poll(NULL, 0, refused ? 0 : 10);
    }
    UNIT_TRUE(refused);
    waiter_do(system, &w, answer_held);
    UNIT_TRUE(strstr(guest_read(fd, NULL), "\r\n\r\nlate") != NULL);
    UNIT_EQUAL(atomic_load(&w.got), 1);
    close(fd);
    close(idle);
    stage_close(system);
}

/* web-http-H1: a body is never a request, whatever a client says about its length. */
static void
bodies_are_never_read_as_requests(void)
{
    static const char *const texts[] = {
        /* refused by its path, its length, its encoding, its two lengths */
        "POST /no HTTP/1.1\r\nhost: a\r\ncontent-length: 42\r\n\r\n",
        "POST /yes HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999\r\n\r\n",
        "POST /yes HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2a\r\n",
        "POST /yes HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ncontent-length: "
        "0\r\n\r\n0\r\n\r\n",
        "POST /yes HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\ncontent-length: 42\r\n\r\n",
        "POST /yes HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n",
        "POST /yes HTTP/1.1\r\nhost: a\r\ncontent-length: +0\r\n\r\n",
        "POST /yes HTTP/1.1\r\nhost: a\r\ncontent-length: 0x2a\r\n\r\n",
        "POST /yes HTTP/1.1\r\nhost: a\r\ncontent-length: 4 2\r\n\r\n",
        "GET /yes HTTP/1.1\r\nhost: a\r\ntransfer-encoding : chunked\r\n\r\n",
        "GET /yes HTTP/1.1\r\nhost: a\r\ncontent-length : 42\r\n\r\n",
        "GET /yes HTTP/1.1\r\nhost: a\r\nContent-Length\t: 42\r\n\r\n",
        "POST /yes HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET /no HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET /yes HTTP/1.1\r\nhost: a\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n",
        "GET /yes HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
        "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "BREW /yes HTTP/1.1\r\nhost: a\r\n\r\n",
        "\r\n\r\n\r\n",
        "\x16\x03\x01\x02\x01\x01\xfc\x03\x03",
    };
    char text[512];
    trp_system *system = server_open("http://127.0.0.1:0/yes?idle=200");
    w.options.message_bytes_max = 1000;
    waiter_start(system, &w);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        snprintf(text, sizeof text, "%sGET /yes?hidden HTTP/1.1\r\n" CLOSE, texts[i]);
        const char *answer = guest_ask(w.port, text);
        bool empty = texts[i][0] == '\r'; /* empty lines are no request */
        UNIT_TRUE(strstr(answer, "hidden") == NULL || empty);
    }
    UNIT_TRUE(strstr(guest_ask(w.port, "GET /yes HTTP/1.1\r\n" CLOSE), "<GET /yes") != NULL);
    stage_close(system);
}

/* No path leads out of the endpoint's. */
static void
path_tricks_lead_nowhere(void)
{
    static const char *const paths[] = { "/yes/../no",
                                         "/yes/..%2fno",
                                         "/yes%2f..%2fno",
                                         "/yes/%2e%2e/no",
                                         "/yesno",
                                         "/../yes/../no",
                                         "/yes\\..\\no",
                                         "/%00/yes",
                                         "/yes/../../no",
                                         "http://a/no",
                                         "*",
                                         "no",
                                         "/yes%",
                                         "/yes%0",
                                         "/YES/x" };
    char text[256];
    trp_system *system = server_open("http://127.0.0.1:0/yes?prefix=1&idle=200");
    waiter_start(system, &w);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        snprintf(text, sizeof text, "GET %s HTTP/1.1\r\n" CLOSE, paths[i]);
        const char *answer = guest_ask(w.port, text);
        const char *seen = strstr(answer, "<GET ");
        UNIT_TRUE(seen == NULL ||
                  (starts_with(seen, "<GET /yes") && (seen[9] == '/' || seen[9] == '?') &&
                   strstr(seen, "/../") == NULL));
    }
    UNIT_TRUE(strstr(guest_ask(w.port, "GET /yes/./x HTTP/1.1\r\n" CLOSE), "<GET /yes/x?") != NULL);
    stage_close(system);
}

/* web-http-H2: a client has `idle`, however slowly it sends. */
static void
slow_clients_are_closed(void)
{
    static const char *const texts[] = { "", "GET /yes HT",
                                         "POST /yes HTTP/1.1\r\ncontent-length: 9\r\n\r\nab" };
    trp_system *system = server_open("http://127.0.0.1:0/yes?idle=300");
    waiter_start(system, &w);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        UNIT_TEXT(guest_ask(w.port, texts[i]), "");
    }
    int fd = guest_connect(w.port); /* a byte now and then is no more */
    struct pollfd ended = { fd, POLLIN, 0 };
    int bytes = 0;
    while (poll(&ended, 1, 20) == 0 && bytes < 6000) {
        guest_say(fd, "a");
        bytes++;
    }
    UNIT_TRUE(bytes < 6000);
    close(fd);
    UNIT_EQUAL(atomic_load(&w.got), 0);
    UNIT_TRUE(strstr(guest_ask(w.port, "GET /yes HTTP/1.1\r\n" CLOSE), "200 OK") != NULL);
    stage_close(system);
}

static trp_err
upper(void *arg, trp_bytes in, trp_bytes *ret_out)
{
    char text[256];
    size_t bytes = trp_bytes_copy_out(in, 0, text, sizeof text);
    (void)arg;
    if (bytes == 3 && memcmp(text, "bad", 3) == 0) {
        return TRP_EINVAL;
    }
    for (size_t i = 0; i < bytes; i++) {
        text[i] = text[i] >= 'a' && text[i] <= 'z' ? (char)(text[i] - 32) : text[i];
    }
    return trp_bytes_copy(text, bytes, ret_out);
}

static void
bodies_are_transformed_both_ways(void)
{
    trp_system *system = server_open("http://127.0.0.1:0/x");
    w.options.incoming = upper;
    w.options.outgoing = upper;
    waiter_start(system, &w);
    UNIT_TRUE(strstr(guest_ask(w.port, "POST /x HTTP/1.1\r\ncontent-length: 2\r\n" CLOSE "hi"),
                     "<POST /X?  HI>") != NULL);
    UNIT_TRUE(
        starts_with(guest_ask(w.port, "POST /x HTTP/1.1\r\ncontent-length: 3\r\n" CLOSE "bad"),
                    "HTTP/1.1 400 "));
    UNIT_WAIT(atomic_load(&w.errors) == 1, 60000);
    stage_close(system);
}

static void
a_port_that_is_taken_ends_the_endpoint(void)
{
    char uri[128];
    trp_system *system = server_open("http://127.0.0.1:0/x");
    waiter_start(system, &w);
    snprintf(uri, sizeof uri, "http://127.0.0.1:%u/x", w.port);
    waiter_init(&second, uri);
    waiter_start(system, &second);
    UNIT_WAIT(atomic_load(&second.stopped) == 1, 60000);
    UNIT_EQUAL(atomic_load(&second.err), TRP_EADDRINUSE);
    UNIT_TRUE(strstr(second.reason, "cannot listen on 127.0.0.1:") != NULL);
    waiter_init(&third, "https://127.0.0.1:0/x?cert=/no/cert&key=/no/key");
    waiter_start(system, &third);
    UNIT_WAIT(atomic_load(&third.stopped) == 1, 60000);
    UNIT_TRUE(strstr(third.reason, "/no/cert") != NULL);
    stage_close(system);
}

#ifdef HAVE_LIBWEBSOCKETS

/* ---- TLS ------------------------------------------------------------------------------------- */

/* NAME.pem: the certificate of "client" with another subject, signed again. NULL: no such part. */
static void
subject_change(const pki *p, const char *name, const char *organisation, const char *common)
{
    char path[128], file_name[64];
    FILE *file = fopen(pki_path(p, "client.pem", path, sizeof path), "r");
    UNIT_REQUIRE(file != NULL);
    X509 *cert = PEM_read_X509(file, NULL, NULL, NULL);
    fclose(file);
    file = fopen(pki_path(p, "ca.key", path, sizeof path), "r");
    UNIT_REQUIRE(file != NULL);
    EVP_PKEY *key = PEM_read_PrivateKey(file, NULL, NULL, NULL);
    fclose(file);
    X509_NAME *subject = X509_NAME_new();
    UNIT_REQUIRE(cert != NULL && key != NULL && subject != NULL);
    X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_UTF8, (const uint8_t *)organisation, -1, -1,
                               0);
    if (common != NULL) {
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const uint8_t *)common, -1, -1,
                                   0);
    }
    UNIT_TRUE(X509_set_subject_name(cert, subject) == 1 && X509_sign(cert, key, EVP_sha256()) > 0);
    snprintf(file_name, sizeof file_name, "%s.pem", name);
    file = fopen(pki_path(p, file_name, path, sizeof path), "w");
    UNIT_REQUIRE(file != NULL);
    UNIT_EQUAL(PEM_write_X509(file, cert), 1);
    fclose(file);
    X509_NAME_free(subject);
    X509_free(cert);
    EVP_PKEY_free(key);
}

/* Ask with this certificate (NULL: none) and key. "": nothing has come back. Static. */
static const char *
tls_ask(const pki *p, const char *cert, const char *key)
{
    static const char request[] = "GET /s HTTP/1.1\r\nuser-agent: nobody\r\n" CLOSE;
    static char answer[4096];
    char path[128];
    struct timeval minute = { 60, 0 };
    size_t got = 0, now = 0;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    UNIT_REQUIRE(context != NULL);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    UNIT_EQUAL(
        SSL_CTX_load_verify_locations(context, pki_path(p, "ca.pem", path, sizeof path), NULL), 1);
    if (cert != NULL) {
        UNIT_EQUAL(SSL_CTX_use_certificate_file(context, pki_path(p, cert, path, sizeof path),
                                                SSL_FILETYPE_PEM),
                   1);
        UNIT_EQUAL(SSL_CTX_use_PrivateKey_file(context, pki_path(p, key, path, sizeof path),
                                               SSL_FILETYPE_PEM),
                   1);
    }
    SSL *ssl = SSL_new(context);
    int fd = guest_connect(w.port);
    UNIT_EQUAL(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof minute), 0);
    UNIT_EQUAL(SSL_set_fd(ssl, fd), 1);
    if (SSL_connect(ssl) == 1 && SSL_write(ssl, request, sizeof request - 1) > 0) {
        while (got < sizeof answer - 1 &&
               SSL_read_ex(ssl, answer + got, sizeof answer - 1 - got, &now) == 1) {
            got += now;
        }
    }
    answer[got] = '\0';
    SSL_free(ssl);
    SSL_CTX_free(context);
    close(fd);
    return answer;
}

/* CAM-01; web-loop-L5 */
static void
clients_are_known_by_their_certificates(void)
{
    char uri[512], cert[128], key[128], ca[128];
    void (*before)(int) = signal(SIGPIPE, SIG_IGN); /* of SSL_write() */
    pki p;
    pki_start(&p);
    pki_authority(&p, "ca");
    pki_authority(&p, "foreign");
    pki_node(&p, "ca", "server", "localhost", -1, 30);
    pki_node(&p, "ca", "client", "client.example", -1, 30);
    pki_node(&p, "foreign", "stranger", "client.example", -1, 30);
    subject_change(&p, "sly", "x/CN=admin", "client");
    subject_change(&p, "nameless", "x/CN=admin", NULL);
    snprintf(uri, sizeof uri, "https://127.0.0.1:0/s?cert=%s&key=%s&ca=%s",
             pki_path(&p, "server.pem", cert, sizeof cert),
             pki_path(&p, "server.key", key, sizeof key), pki_path(&p, "ca.pem", ca, sizeof ca));
    trp_system *system = server_open(uri);
    waiter_start(system, &w);
    UNIT_REQUIRE(atomic_load(&w.started) == 1);
    UNIT_TRUE(strstr(tls_ask(&p, "client.pem", "client.key"), "<GET /s? client >") != NULL);
    UNIT_TRUE(strstr(tls_ask(&p, "sly.pem", "client.key"), "<GET /s? client >") != NULL);
    UNIT_TRUE(strstr(tls_ask(&p, "nameless.pem", "client.key"), "<GET /s? nobody >") != NULL);
    UNIT_EQUAL(atomic_load(&w.got), 3);
    UNIT_TEXT(tls_ask(&p, NULL, NULL), "");
    UNIT_TEXT(tls_ask(&p, "stranger.pem", "stranger.key"), "");
    UNIT_EQUAL(atomic_load(&w.got), 3);
    stage_close(system);
    pki_end(&p);
    signal(SIGPIPE, before);
}

/* ---- the library ----------------------------------------------------------------------------- */

static int
nothing_done(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t length)
{
    (void)wsi, (void)reason, (void)user, (void)in, (void)length;
    return 0;
}

static pthread_barrier_t gate;

static void *
contexts_make(void *arg)
{
    static const struct lws_protocols protocols[] = { { "x", nothing_done, 0, 0, 0, NULL, 0 },
                                                      { NULL, NULL, 0, 0, 0, NULL, 0 } };
    const trpi_lws *lws = arg;
    struct lws_context_creation_info info;
    memset(&info, 0, sizeof info);
    info.port = CONTEXT_PORT_NO_LISTEN;
    info.protocols = protocols;
    info.gid = info.uid = -1;
    info.options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS;
    for (int i = 0; i < 20; i++) {
        struct lws_context *context;
        int error;
        pthread_barrier_wait(&gate);
        UNIT_TRUE(trpi_lws_open(lws, &info, &context, &error) != NULL);
        lws->lws_context_destroy(context);
    }
    return NULL;
}

/* The library ignores SIGPIPE for the process: it is as it was, also if two are made at once. */
static void
contexts_made_at_once_leave_signals_alone(void)
{
    char why[256];
    pthread_t threads[4];
    const trpi_lws *lws = trpi_lws_get(why, sizeof why);
    void (*before)(int) = signal(SIGPIPE, SIG_DFL);
    UNIT_REQUIRE(lws != NULL);
    pthread_barrier_init(&gate, NULL, 4);
    for (int i = 0; i < 4; i++) {
        UNIT_EQUAL(pthread_create(&threads[i], NULL, contexts_make, (void *)lws), 0);
    }
    for (int i = 0; i < 4; i++) {
        UNIT_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    pthread_barrier_destroy(&gate);
    UNIT_TRUE(signal(SIGPIPE, before) == SIG_DFL);
}

#endif

UNIT_BEGIN("web_server")
UNIT(a_request_is_a_message_and_the_reply_its_response)
UNIT(a_connection_carries_more_than_one_request)
UNIT(a_body_may_be_empty_or_have_no_length)
UNIT(the_word_of_a_handler_is_a_status)
UNIT(a_client_that_has_gone_is_told_of)
UNIT(bodies_fields_and_heads_have_limits)
UNIT(requests_and_connections_have_limits)
UNIT(bodies_are_never_read_as_requests)
UNIT(path_tricks_lead_nowhere)
UNIT(slow_clients_are_closed)
UNIT(bodies_are_transformed_both_ways)
UNIT(a_port_that_is_taken_ends_the_endpoint)
#ifdef HAVE_LIBWEBSOCKETS
UNIT(clients_are_known_by_their_certificates)
UNIT(contexts_made_at_once_leave_signals_alone)
#endif
UNIT_END

/* http_client_test.c - requests over HTTP: to a stranger of sockets, which answers as badly as it
 * likes, and to python's server with TLS. */
#include "tests/unit/endpoint/stranger.h"

#include "endpoint/http_request.h"
#include "tests/unit/remote/pki.h"

#ifdef HAVE_LIBCURL

static keeper k;
static int listener;

/* Start a producer to http://127.0.0.1:PORT, followed by this. */
static trp_system *
client_start(const char *rest)
{
    listener = stranger_socket(SOCK_STREAM);
    int port = stranger_bind(listener, 0);
    UNIT_EQUAL(listen(listener, 5), 0);
    keeper_init(&k, "h", true);
    snprintf(k.uri, sizeof k.uri, "http://127.0.0.1:%d%s", port, rest);
    return stage_open();
}

/* Read a request's head, and so many bytes of a body, as text. */
static const char *
request_read(int fd, size_t body_bytes)
{
    static char text[4096];
    size_t got = 0;
    const char *end = NULL;
    while (got < sizeof text - 1 && (end == NULL || (size_t)(text + got - end) < 4 + body_bytes)) {
        ssize_t now = recv(fd, text + got, sizeof text - 1 - got, 0);
        if (now <= 0) {
            break;
        }
        got += (size_t)now;
        text[got] = '\0';
        end = strstr(text, "\r\n\r\n");
    }
    text[got] = '\0';
    return text;
}

static void
send_with_fields(trp_ctx *ctx, keeper *of)
{
    const trp_endpoint_header headers[] = { { "http.path", "/a b" }, { "http.query", "x=1&y=%20" },
                                            { "x-own", "v" },        { "tcp.peer", "zz" },
                                            { "connection", "zz" },  { "x-empty", "" },
                                            { "host", "zz" } };
    trp_bytes body;
    UNIT_EQUAL(trp_bytes_copy("hi", 2, &body), TRP_OK);
    UNIT_EQUAL(trp_endpoint_send(ctx, of->endpoint, body, headers, 7, 7), TRP_OK);
    trp_bytes_unref(&body);
}

/* CAM-01, CAM-05; http-request-R1, -R2 */
static void
a_message_is_a_request_and_the_answer_its_reply(void)
{
    trp_system *system = client_start("/base/");
    k.keeps = true;
    keeper_start(system, &k);
    keeper_do(system, &k, send_with_fields);
    int fd = accept(listener, NULL, NULL);
    const char *text = request_read(fd, 2);
    UNIT_TRUE(strncmp(text, "POST /base/a%20b?x=1&y=%20 HTTP/1.1\r\n", 37) == 0);
    UNIT_TRUE(strstr(text, "\r\nx-own: v\r\n") != NULL);
    UNIT_TRUE(strstr(text, "\r\nx-empty:\r\n") != NULL);
    UNIT_TRUE(strstr(text, "\r\nContent-Type: application/octet-stream\r\n") != NULL);
    UNIT_TRUE(strstr(text, "\r\n\r\nhi") != NULL);
    UNIT_TRUE(strstr(text, "zz") == NULL);
    stranger_say(fd, "HTTP/1.1 201 Created\r\nX-Thing:  One \r\nhttp.status: 999\r\n"
                     "Content-Length: 3\r\n\r\nyes");
    UNIT_WAIT(stage_has("h:got(201,yes,7)"), 60000);
    UNIT_WAIT(atomic_load(&k.kept_count) == 1, 60000);
    const trp_endpoint_message *m = trp_endpoint_message_of(k.kept[0]);
    UNIT_TRUE(m->headers_count == 2 && strcmp(trp_endpoint_header_get(m, "x-thing"), "One") == 0);
    keeper_let_go(&k);
    close(fd);
    close(listener);
    stage_close(system);
}

static void
send_nothing(trp_ctx *ctx, keeper *of)
{
    keeper_send(ctx, of, "", NULL, 1);
}

/* Answer requests without a body by these texts, on a connection each. */
static void
answers_give(trp_system *system, const char *const *answers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        keeper_do(system, &k, send_nothing);
        int fd = accept(listener, NULL, NULL);
        UNIT_TRUE(strncmp(request_read(fd, 0), "GET / HTTP/1.1\r\n", 16) == 0);
        (void)send(fd, answers[i], strlen(answers[i]), MSG_NOSIGNAL);
        close(fd);
        UNIT_WAIT(atomic_load(&k.got) + atomic_load(&k.errors) == i + 1, 60000);
    }
}

/* http-client-H2: a body at its limit, and one past, with and without a length. */
static void
an_answer_has_a_bound(void)
{
    static const char *const answers[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n1234",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345", "HTTP/1.0 404 No\r\n\r\n1234",
        "HTTP/1.0 200 OK\r\n\r\n12345",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n123\r\n2\r\n45\r\n0\r\n\r\n"
    };
    trp_system *system = client_start("");
    k.options.message_bytes_max = 4;
    keeper_start(system, &k);
    answers_give(system, answers, 5);
    STAGE_EXPECT("h:TRP_OK h:got(200,1234,1) h:error(1,TRP_EMSGSIZE) h:got(404,1234,1) "
                 "h:error(1,TRP_EMSGSIZE) h:error(1,TRP_EMSGSIZE)");
    close(listener);
    stage_close(system);
}

/* An answer that is none, or half of one, is an error. */
static void
a_bad_answer_is_an_error(void)
{
    static const char *const answers[] = {
        "", "SSH-2.0-stranger\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 100 Go\r\nx-no: 1\r\n\r\nHTTP/1.1 204 None\r\nbad field: 1\r\nx-yes: 1\r\n\r\n"
    };
    trp_system *system = client_start("");
    k.keeps = true;
    keeper_start(system, &k);
    answers_give(system, answers, 5);
    STAGE_EXPECT("h:TRP_OK h:error(1,TRP_EIO) h:error(1,TRP_EIO) h:error(1,TRP_EIO) "
                 "h:error(1,TRP_EIO) h:got(204,,1)");
    const trp_endpoint_message *m = trp_endpoint_message_of(k.kept[0]);
    UNIT_TRUE(m->headers_count == 2 && trp_endpoint_header_get(m, "x-yes") != NULL);
    keeper_let_go(&k);
    close(listener);
    stage_close(system);
}

/* http-client-H2: one byte at a time is no way to go on for ever. */
static void
a_slow_server_is_given_up(void)
{
    trp_system *system = client_start("");
    k.options.timeout_ms = 1000;
    keeper_start(system, &k);
    keeper_do(system, &k, send_nothing);
    int fd = accept(listener, NULL, NULL);
    (void)request_read(fd, 0);
    stranger_say(fd, "HTTP/1.1 200 OK\r\nx-slow: ");
    while (send(fd, "x", 1, MSG_NOSIGNAL) == 1) { /* until it is closed */
        unit_pause();
    }
    close(fd);
    close(listener);
    UNIT_WAIT(stage_has("h:error(1,TRP_ETIMEDOUT)"), 60000);
    stage_close(system);
}

static void
send_badly(trp_ctx *ctx, keeper *of)
{
    static const trp_endpoint_header bad[] = { { "x", "a\r\nb: c" },
                                               { "x\n", "a" },
                                               { "a b", "c" },
                                               { "http.path", "x" },
                                               { "http.path", "/a/../b" },
                                               { "http.path", "/?" },
                                               { "http.method", "get" },
                                               { "http.method", "CONNECT" } };
    for (uint64_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        UNIT_EQUAL(trp_endpoint_send(ctx, of->endpoint, TRP_BYTES_EMPTY, &bad[i], 1, i), TRP_OK);
    }
}

/* http-request-R1: nobody is connected to for these. */
static void
messages_that_are_no_requests_are_refused(void)
{
    trp_system *system = client_start("/");
    keeper_start(system, &k);
    keeper_do(system, &k, send_badly);
    UNIT_WAIT(atomic_load(&k.errors) == 8, 60000);
    UNIT_EQUAL(stage_count("TRP_EINVAL"), 8);
    struct timeval now = { 0, 1 };
    UNIT_EQUAL(setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &now, sizeof now), 0);
    UNIT_EQUAL(accept(listener, NULL, NULL), -1);
    close(listener);
    stage_close(system);
}

/* http-client-H3: followed when that is asked for. */
static void
redirects_are_replies_or_followed(void)
{
    for (int follows = 0; follows < 2; follows++) {
        trp_system *system = client_start(follows != 0 ? "/?redirects=1" : "/");
        keeper_start(system, &k);
        keeper_do(system, &k, send_nothing);
        int fd = accept(listener, NULL, NULL);
        (void)request_read(fd, 0);
        stranger_say(fd, "HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 2\r\n\r\nno");
        if (follows != 0) {
            UNIT_TRUE(strncmp(request_read(fd, 0), "GET /there HTTP/1.1\r\n", 21) == 0);
            stranger_say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes");
        }
        UNIT_WAIT(stage_has(follows != 0 ? "h:got(200,yes,1)" : "h:got(302,no,1)"), 60000);
        close(fd);
        close(listener);
        stage_close(system);
    }
}

static void
send_body(trp_ctx *ctx, keeper *of)
{
    keeper_send(ctx, of, "body", NULL, 1);
}

/* A POST that is sent elsewhere by 302 is a GET there; a PUT is not repeated. */
static void
a_redirected_post_is_a_get_and_a_put_is_not_followed(void)
{
    for (int puts = 0; puts < 2; puts++) {
        trp_system *system = client_start(puts != 0 ? "/?redirects=1&method=PUT" : "/?redirects=1");
        keeper_start(system, &k);
        keeper_do(system, &k, send_body);
        int fd = accept(listener, NULL, NULL);
        UNIT_TRUE(strncmp(request_read(fd, 4), puts != 0 ? "PUT / " : "POST / ", 6) == 0);
        stranger_say(fd, "HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 2\r\n\r\nno");
        if (puts == 0) {
            UNIT_TRUE(strncmp(request_read(fd, 0), "GET /there HTTP/1.1\r\n", 21) == 0);
            stranger_say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes");
        }
        UNIT_WAIT(stage_has(puts == 0 ? "h:got(200,yes,1)" : "h:got(302,no,1)"), 60000);
        close(fd);
        close(listener);
        stage_close(system);
    }
}

static void
send_three(trp_ctx *ctx, keeper *of)
{
    for (uint64_t i = 1; i <= 3; i++) {
        keeper_send(ctx, of, "", NULL, i);
    }
    trp_tell(ctx, of->endpoint, &trp_poison_pill_type, NULL, 0);
}

/* producer-P1: requests on their way, and one that waits. */
static void
an_endpoint_that_ends_gives_its_requests_up(void)
{
    trp_system *system = client_start("/?parallel=2");
    keeper_start(system, &k);
    keeper_do(system, &k, send_three);
    UNIT_WAIT(stage_has("h:stopped(TRP_OK)"), 60000);
    UNIT_EQUAL(stage_count("TRP_ECLOSED"), 3);
    close(listener);
    stage_close(system);
}

/* ---- TLS ------------------------------------------------------------------------------------- */

/* A server of python's, with this certificate, until its input is closed. */
static FILE *
python_start(const pki *p, const char *name)
{
    char command[2048], ready[128];
    snprintf(command, sizeof command,
             "exec python3 -c '\n"
             "import http.server, os, ssl, sys, threading\n"
             "class H(http.server.BaseHTTPRequestHandler):\n"
             "    def do_POST(self):\n"
             "        body = self.rfile.read(int(self.headers[\"content-length\"])).upper()\n"
             "        self.send_response(200)\n"
             "        self.send_header(\"Content-Length\", str(len(body)))\n"
             "        self.end_headers()\n"
             "        self.wfile.write(body)\n"
             "    def log_message(self, *a): pass\n"
             "s = http.server.ThreadingHTTPServer((\"127.0.0.1\", 0), H)\n"
             "s.handle_error = lambda *a: None\n"
             "c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\n"
             "c.load_cert_chain(\"%s/%s.pem\", \"%s/%s.key\")\n"
             "s.socket = c.wrap_socket(s.socket, server_side=True)\n"
             "threading.Thread(target=s.serve_forever, daemon=True).start()\n"
             "open(\"%s/port.new\", \"w\").write(str(s.server_port))\n"
             "os.rename(\"%s/port.new\", \"%s/port\")\n"
             "sys.stdin.read()\n"
             "os._exit(0)'",
             p->dir, name, p->dir, name, p->dir, p->dir, p->dir);
    FILE *python = popen(command, "w");
    UNIT_REQUIRE(python != NULL);
    pki_path(p, "port", ready, sizeof ready);
    UNIT_WAIT(access(ready, R_OK) == 0, 60000);
    return python;
}

static void
send_word(trp_ctx *ctx, keeper *of)
{
    keeper_send(ctx, of, "word", NULL, 1);
}

/* Send a word to python's server; what is noted then. */
static void
https_try(const pki *p, const char *certificate, const char *authority, const char *expected)
{
    trp_system *system = stage_open();
    FILE *python = python_start(p, certificate);
    char *port = pki_read(p, "port"), file[128];
    keeper_init(&k, "h", true);
    snprintf(k.uri, sizeof k.uri, "https://localhost:%s/%s%s", port,
             authority != NULL ? "?ca=" : "",
             authority != NULL ? pki_path(p, authority, file, sizeof file) : "");
    keeper_start(system, &k);
    keeper_do(system, &k, send_word);
    UNIT_WAIT(stage_has(expected), 60000);
    stage_close(system);
    UNIT_EQUAL(pclose(python), 0);
    UNIT_EQUAL(unlink(pki_path(p, "port", file, sizeof file)), 0);
    trpi_free(port);
}

/* CAM-01: the peer is python's; who signed, and for which name, is looked at. */
static void
certificates_are_verified(void)
{
    pki p;
    if (access("/usr/bin/python3", X_OK) != 0) {
        printf("  (no python3: nothing is tested)\n");
        return;
    }
    pki_start(&p);
    pki_authority(&p, "ca");
    pki_authority(&p, "foreign");
    pki_node(&p, "ca", "good", "localhost", -1, 30);
    pki_node(&p, "ca", "other", "other.example", -1, 30);
    https_try(&p, "good", "ca.pem", "h:got(200,WORD,1)");
    https_try(&p, "good", NULL, "h:error(1,TRP_EPERM)");
    https_try(&p, "good", "foreign.pem", "h:error(1,TRP_EPERM)");
    https_try(&p, "other", "ca.pem", "h:error(1,TRP_EPERM)");
    pki_end(&p);
}

#endif

/* ---- without a library ----------------------------------------------------------------------- */

/* http-request-R1 */
static void
urls_are_written(void)
{
    static const struct {
        const char *uri, *path, *query, *url;
    } rows[] = { { "http://h", NULL, NULL, "http://h" },
                 { "http://h:1/a%20b%25/", NULL, NULL, "http://h:1/a%20b%25/" },
                 { "http://h/a%3Fq=%26", NULL, "x", "http://h/a?q=&&x" },
                 { "http://h/a%3Fq", "/p", NULL, NULL },
                 { "https://h/a", "/b", "c d", "https://h/a/b?c%20d" },
                 { "https://h", NULL, "c", "https://h/?c" },
                 { "https://[::1]:2/", "/\xc3\xa4\n", "#", "https://[::1]:2/%C3%A4%0A?%23" },
                 { "http://h/", "/./a", NULL, NULL },
                 { "http://h/", "/a/..", NULL, NULL },
                 { "http://h/", "/..a/...", NULL, "http://h/..a/..." } };
    char url[TRPI_HTTP_URL_BYTES], reason[TRP_ENDPOINT_REASON_BYTES];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        trpi_uri uri;
        trp_endpoint_header headers[2];
        trpi_endpoint_send send = { .headers = headers };
        if (rows[i].path != NULL) {
            headers[send.headers_count++] = (trp_endpoint_header){ "http.path", rows[i].path };
        }
        if (rows[i].query != NULL) {
            headers[send.headers_count++] = (trp_endpoint_header){ "http.query", rows[i].query };
        }
        UNIT_EQUAL(trpi_uri_parse(rows[i].uri, &uri, reason), TRP_OK);
        trp_err err = trpi_http_url_write(&uri, &send, url, reason);
        UNIT_EQUAL(err, rows[i].url != NULL ? TRP_OK : TRP_EINVAL);
        if (err == TRP_OK && strcmp(url, rows[i].url) != 0) {
            printf("  %s: %s\n", rows[i].uri, url);
            UNIT_TRUE(false);
        }
    }
}

/* A URI that names no host, or somebody, is none; neither is an option out of its range. */
static void
uris_of_http_are_checked(void)
{
    static const char *const bad[] = { "http:",
                                       "http://",
                                       "http:///a",
                                       "http://:80/",
                                       "http://me:secret@h/",
                                       "http://h/a%23b",
                                       "http://h/?method=get",
                                       "http://h/?parallel=65",
                                       "http://h/?redirects=11",
                                       "https://h/?cert=x",
                                       "https://h/?verify=0" };
    char reason[TRP_ENDPOINT_REASON_BYTES];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        UNIT_EQUAL(trp_endpoint_check(bad[i], 1, reason), TRP_EINVAL);
        UNIT_TRUE(reason[0] != '\0' && strstr(reason, "secret") == NULL);
    }
    UNIT_EQUAL(trp_endpoint_check("http://h/?parallel=64&redirects=10&method=PUT", 1, reason),
               TRP_OK);
    UNIT_EQUAL(trp_endpoint_check("https://h", 1, reason), TRP_OK);
}

/* Fields of an answer: as many as there may be headers, and one more; at the length of one. */
static void
fields_have_bounds(void)
{
    trpi_http_fields fields;
    trp_endpoint_header headers[TRP_ENDPOINT_HEADERS_MAX];
    char line[TRP_ENDPOINT_HEADER_BYTES_MAX + 8] = "a:";
    memset(&fields, 0, sizeof fields);
    memset(line + 2, 'x', TRP_ENDPOINT_HEADER_BYTES_MAX + 1);
    trpi_http_fields_add(&fields, line, TRP_ENDPOINT_HEADER_BYTES_MAX + 3); /* one past */
    UNIT_EQUAL(fields.count, 0);
    trpi_http_fields_add(&fields, line, TRP_ENDPOINT_HEADER_BYTES_MAX + 2);
    UNIT_EQUAL(fields.count, 1);
    for (int i = 0; i < TRP_ENDPOINT_HEADERS_MAX; i++) {
        trpi_http_fields_add(&fields, "B: \t1 \r\n", 8);
    }
    UNIT_EQUAL(fields.count, TRP_ENDPOINT_HEADERS_MAX);
    UNIT_EQUAL(trpi_http_fields_headers(&fields, headers, 1), TRP_ENDPOINT_HEADERS_MAX);
    UNIT_TRUE(strcmp(headers[2].name, "b") == 0 && strcmp(headers[2].value, "1") == 0);
    trpi_http_fields_add(&fields, "HTTP/1.1 200 OK\r\n", 17);
    UNIT_EQUAL(fields.count, 0);
    trpi_http_fields_add(&fields, "no colon\r\n", 10);
    trpi_http_fields_add(&fields, ": 1\r\n", 5);
    trpi_http_fields_add(&fields, "a\0b: 1\r\n", 8);
    trpi_http_fields_add(&fields, "a: b\rc\r\n", 8);
    UNIT_EQUAL(fields.count, 0);
    trpi_buffer_fini(&fields.texts);
}

UNIT_BEGIN("http_client")
UNIT(urls_are_written)
UNIT(uris_of_http_are_checked)
UNIT(fields_have_bounds)
#ifdef HAVE_LIBCURL
UNIT(a_message_is_a_request_and_the_answer_its_reply)
UNIT(an_answer_has_a_bound)
UNIT(a_bad_answer_is_an_error)
UNIT(a_slow_server_is_given_up)
UNIT(messages_that_are_no_requests_are_refused)
UNIT(redirects_are_replies_or_followed)
UNIT(a_redirected_post_is_a_get_and_a_put_is_not_followed)
UNIT(an_endpoint_that_ends_gives_its_requests_up)
UNIT(certificates_are_verified)
#endif
UNIT_END

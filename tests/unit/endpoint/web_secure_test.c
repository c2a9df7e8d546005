/* web_secure_test.c - WebSockets with TLS, both ends ours and in one process. */
#include "base/lws.h"
#include "tests/unit/endpoint/keeper.h"
#include "tests/unit/endpoint/waiter.h"
#include "tests/unit/remote/pki.h"

static waiter w;
static keeper k, second;
static pki p;

static void
files_make(void)
{
    pki_start(&p);
    pki_authority(&p, "ca");
    pki_authority(&p, "foreign");
    pki_node(&p, "ca", "good", "localhost", -1, 30);
    pki_node(&p, "ca", "other", "other.example", -1, 30);
}

static trp_system *
server_start(const char *name)
{
    char pem[64], key[64], cert_path[128], key_path[128];
    trp_system *system = stage_open();
    snprintf(pem, sizeof pem, "%s.pem", name);
    snprintf(key, sizeof key, "%s.key", name);
    waiter_init(&w, "");
    snprintf(w.uri, sizeof w.uri, "wss://127.0.0.1:0/?cert=%s&key=%s",
             pki_path(&p, pem, cert_path, sizeof cert_path),
             pki_path(&p, key, key_path, sizeof key_path));
    w.options.acknowledges = 1;
    waiter_start(system, &w);
    UNIT_REQUIRE(w.port != 0);
    return system;
}

static void
client_start(trp_system *system, keeper *of, const char *name, const char *host, const char *ca)
{
    char path[128];
    keeper_init(of, name, true);
    snprintf(of->uri, sizeof of->uri, "wss://%s:%u/?ca=%s", host, w.port,
             pki_path(&p, ca, path, sizeof path));
    keeper_start(system, of);
}

static void
send_one(trp_ctx *ctx, keeper *of)
{
    keeper_send(ctx, of, "one", NULL, 1);
}

static void
send_two(trp_ctx *ctx, keeper *of)
{
    keeper_send(ctx, of, "two", NULL, 2);
}

static void
wss_try(const char *certificate, const char *host, const char *ca, const char *expected)
{
    trp_system *system = server_start(certificate);
    client_start(system, &k, "c", host, ca);
    keeper_do(system, &k, send_one);
    UNIT_WAIT(stage_has(expected), 60000);
    UNIT_EQUAL(atomic_load(&w.got), strncmp(expected, "c:got", 5) == 0);
    stage_close(system);
}

/* CAM-01; web-client-W3, tls-dialer-D1: who signed, and for which name. Neither end leaves a
 * context of OpenSSL behind, which the address sanitizer sees. */
static void
servers_are_verified(void)
{
    files_make();
    wss_try("good", "localhost", "ca.pem", "c:got(,binary:/:one,1)");
    wss_try("good", "localhost", "foreign.pem", "c:error(1,TRP_EPERM)");
    wss_try("good", "127.0.0.1", "ca.pem", "c:error(1,TRP_EPERM)");
    wss_try("other", "localhost", "ca.pem", "c:error(1,TRP_EPERM)");
    pki_end(&p);
}

#ifdef HAVE_LIBWEBSOCKETS

/* ---- another context in between -------------------------------------------------------------- */

static int
nothing_done(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t length)
{
    (void)wsi, (void)reason, (void)user, (void)in, (void)length;
    return 0;
}

/* One of the program's own. */
static struct lws_context *
context_make(const trpi_lws *lws)
{
    static const struct lws_protocols protocols[] = { { "x", nothing_done, 0, 0, 0, NULL, 0 },
                                                      { NULL, NULL, 0, 0, 0, NULL, 0 } };
    struct lws_context_creation_info info;
    memset(&info, 0, sizeof info);
    info.port = CONTEXT_PORT_NO_LISTEN;
    info.protocols = protocols;
    info.gid = info.uid = -1;
    info.options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS | LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
    return lws->lws_create_context(&info);
}

/* A peer that answers no TLS: a connection of ours is then in its handshake. */
typedef struct silent {
    int fd;
    uint16_t port;
} silent;

static silent
silent_start(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t bytes = sizeof at;
    silent s = { .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    UNIT_REQUIRE(s.fd >= 0 && bind(s.fd, (const struct sockaddr *)&at, sizeof at) == 0 &&
                 listen(s.fd, 4) == 0 && getsockname(s.fd, (struct sockaddr *)&at, &bytes) == 0);
    s.port = ntohs(at.sin_port);
    return s;
}

/* Carry bytes between the two, until one ends. */
static void
bytes_carry(int a, int b)
{
    static char bytes[65536];
    struct pollfd ready[2] = { { a, POLLIN, 0 }, { b, POLLIN, 0 } };
    while (poll(ready, 2, 60000) > 0) {
        for (int i = 0; i < 2; i++) {
            if ((ready[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
                ssize_t got = recv(ready[i].fd, bytes, sizeof bytes, 0);
                if (got <= 0) {
                    return;
                }
                guest_write(ready[1 - i].fd, bytes, (size_t)got);
            }
        }
    }
}

typedef struct carrier {
    int client, server;
} carrier;

static void *
carrier_main(void *arg)
{
    const carrier *c = arg;
    bytes_carry(c->client, c->server);
    return NULL;
}

/* web-loop-L5, tls-dialer-D1: a context that is made while a connection is in its handshake changes
 * the library's number by which it finds the connection. */
static void
other_contexts_change_no_verification(void)
{
    char why[256];
    pthread_t thread;
    const trpi_lws *lws = trpi_lws_get(why, sizeof why);
    UNIT_REQUIRE(lws != NULL);
    lws->lws_set_log_level(0, NULL);
    files_make();
    trp_system *system = server_start("good");
    silent between = silent_start();
    uint16_t port = w.port;
    w.port = between.port; /* the client's way to the server */
    client_start(system, &k, "c", "localhost", "ca.pem");
    keeper_do(system, &k, send_one);
    struct pollfd comes = { between.fd, POLLIN, 0 };
    UNIT_REQUIRE(poll(&comes, 1, 60000) == 1);
    carrier c = { .client = accept(between.fd, NULL, NULL) };
    comes.fd = c.client; /* it has said hello: its callbacks are set */
    UNIT_REQUIRE(c.client >= 0 && poll(&comes, 1, 60000) == 1);
    struct lws_context *own = context_make(lws);
    UNIT_TRUE(own != NULL);
    c.server = guest_connect(port);
    UNIT_REQUIRE(pthread_create(&thread, NULL, carrier_main, &c) == 0);
    UNIT_WAIT(stage_has("c:got(,binary:/:one,1)"), 60000);
    w.port = port;
    client_start(system, &second, "d", "localhost", "foreign.pem");
    keeper_do(system, &second, send_two);
    UNIT_WAIT(stage_has("d:error(2,TRP_EPERM)"), 60000);
    stage_close(system);
    pthread_join(thread, NULL);
    close(c.client);
    close(c.server);
    close(between.fd);
    lws->lws_context_destroy(own);
    pki_end(&p);
}

#endif

UNIT_BEGIN("web_secure")
UNIT(servers_are_verified)
#ifdef HAVE_LIBWEBSOCKETS
UNIT(other_contexts_change_no_verification)
#endif
UNIT_END

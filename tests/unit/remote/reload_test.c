/* reload_test.c - files and secrets that change while nodes talk: certificates, revocation lists,
 * cookies, and those that do not fit. */
#include <openssl/ssl.h>

#include "remote/wire/frame.h"
#include "tests/unit/remote/duo.h"

static void
moving_copy(const char *name)
{
    char from[64];
    (void)snprintf(from, sizeof from, "%s.pem", name);
    file_copy(from, "moving.pem");
    (void)snprintf(from, sizeof from, "%s.key", name);
    file_copy(from, "moving.key");
}

static bool
has_said_all(duo *d, int i)
{
    trpi_peer_info info = { .state = NULL };
    size_t count = 0;
    trpi_remote_peers(d->remote[i], &info, 1, &count);
    return count > 0 && info.lanes[TRPI_LANE_CONTROL].waiting_bytes == 0;
}

/* Return whether the node reports that problem of its files. */
static bool
is_troubled(duo *d, trpi_trouble kind, const char *what)
{
    trpi_trouble_text text;
    return trpi_remote_trouble(d->remote[0], kind, &text) && strstr(text.what, what) != NULL;
}

static void
new_files_are_taken_without_a_restart(void)
{
    duo d;
    trpi_tls_state state;
    side moving = { .ca = "ca", .cert = "moving", .old_end_ms = 300 };
    files_setup();
    moving_copy("left");
    duo_start(&d, &moving, &good_right);
    UNIT_WAIT((duo_knock(&d, 1), is_active(&d, 0) && is_active(&d, 1)), 60000);
    UNIT_WAIT(has_said_all(&d, 1), 60000); /* so it does not call again of itself */
    uint64_t before = duo_accepted(&d);
    pki_write(&all, "moving.pem", "not a certificate\n"); /* half done: the old ones stay */
    UNIT_EQUAL(trpi_remote_secrets_reload(d.remote[0], NULL, NULL), TRP_OK);
    UNIT_WAIT(pair_logged("credentials not read again, the old ones stay"), 60000);
    UNIT_TRUE(trpi_remote_tls_state(d.remote[0], &state));
    UNIT_TEXT(state.subject, "left");
    UNIT_TRUE(is_active(&d, 0));
    UNIT_EQUAL(duo_accepted(&d), before);
    UNIT_TRUE(is_troubled(&d, TRPI_TROUBLE_RELOAD, "the old ones stay: certificate"));
    moving_copy("brief");
    UNIT_EQUAL(trpi_remote_secrets_reload(d.remote[0], NULL, NULL), TRP_OK);
    UNIT_WAIT(pair_logged("credentials read again subject=brief"), 60000);
    UNIT_TRUE(trpi_remote_tls_state(d.remote[0], &state));
    UNIT_TEXT(state.subject, "brief");
    UNIT_TRUE(!is_troubled(&d, TRPI_TROUBLE_RELOAD, "")); /* corrected */
    UNIT_EQUAL(trpi_remote_certificate_until(d.remote[1], trpi_remote_address(d.remote[0])) / 1000,
               (all.now_ms + 400 * PKI_DAY) / 1000); /* it has shown the old one */
    /* the connection of the old ones ends in its time, and another one follows; one that came
     * before the end is noticed would leave nothing to tell of */
    UNIT_WAIT(pair_logged("was replaced"), 60000);
    UNIT_WAIT((duo_knock(&d, 1), duo_accepted(&d) > before), 60000);
    UNIT_WAIT((duo_knock(&d, 1), is_active(&d, 0) && is_active(&d, 1)), 60000);
    UNIT_EQUAL(refused_sum(&d, 0) + refused_sum(&d, 1), 0);
    UNIT_EQUAL(trpi_remote_certificate_until(d.remote[1], trpi_remote_address(d.remote[0])) / 1000,
               (all.now_ms + 30 * PKI_DAY) / 1000);
    duo_end(&d);
}

/* Each is told once, and stands until the files are others. */
static void
what_ends_soon_is_told(void)
{
    duo d;
    side moving = { .ca = "ca", .cert = "moving", .days_ahead = 20 };
    files_setup();
    moving_copy("brief"); /* ends in 30 days */
    duo_start(&d, &moving, &good_right);
    UNIT_WAIT(pair_logged("this node's certificate (brief) ends in 9 days"), 60000);
    UNIT_TRUE(is_troubled(&d, TRPI_TROUBLE_CERTIFICATE, "(brief) ends in 9 days"));
    moving_copy("elsewhere"); /* for another host: every peer would refuse it */
    UNIT_EQUAL(trpi_remote_secrets_reload(d.remote[0], NULL, NULL), TRP_OK);
    UNIT_WAIT(pair_logged("(elsewhere) is not for 127.0.0.1, which this node advertises"), 60000);
    UNIT_TRUE(is_troubled(&d, TRPI_TROUBLE_NAME, "(elsewhere) is not for"));
    UNIT_TRUE(!is_troubled(&d, TRPI_TROUBLE_CERTIFICATE, ""));
    moving_copy("left");
    UNIT_EQUAL(trpi_remote_secrets_reload(d.remote[0], NULL, NULL), TRP_OK);
    UNIT_WAIT(!is_troubled(&d, TRPI_TROUBLE_NAME, ""), 60000);
    UNIT_EQUAL(pair_log_count("ends in 9 days"), 1);
    duo_end(&d);
}

static void
who_is_revoked_while_connected_is_cut_off(void)
{
    duo d;
    side left = { .ca = "ca", .cert = "left", .crl = "moving-list.pem" };
    files_setup();
    file_copy("none-revoked.pem", "moving-list.pem");
    duo_start(&d, &left, &good_right);
    UNIT_WAIT((duo_knock(&d, 1), is_active(&d, 0) && is_active(&d, 1)), 60000);
    file_copy("right-revoked.pem", "moving-list.pem");
    UNIT_EQUAL(trpi_remote_secrets_reload(d.remote[0], NULL, NULL), TRP_OK);
    UNIT_WAIT(!is_active(&d, 0) && !is_active(&d, 1), 60000);
    UNIT_WAIT((duo_knock(&d, 1), duo_refused(&d, 0, TRPI_REFUSED_REVOKED) > 0), 60000);
    UNIT_WAIT((duo_knock(&d, 0), duo_refused(&d, 0, TRPI_REFUSED_REVOKED) > 1),
              60000); /* nor by us */
    duo_end(&d);
}

/* Its moment was wrong, not the files: they are not written again. */
static void
files_that_failed_are_tried_again(void)
{
    duo d;
    trpi_tls_state state;
    side moving = { .ca = "ca", .cert = "moving", .reload_ms = 20 };
    char path[128];
    files_setup();
    moving_copy("left");
    duo_start(&d, &moving, &good_right);
    moving_copy("early");
    UNIT_WAIT(pair_logged("reason=\"certificate") && pair_logged("not-yet-valid"), 60000);
    atomic_store(&d.world[0].ahead_ms, 21 * PKI_DAY);
    UNIT_WAIT(pair_logged("credentials read again subject=early"), 60000);
    UNIT_TRUE(trpi_remote_tls_state(d.remote[0], &state));
    UNIT_TEXT(state.subject, "early");
    UNIT_EQUAL(pair_log_count("not-yet-valid"), 1); /* however often it was tried */
    uint64_t before = pair_log_count("credentials read again");
    UNIT_EQUAL(chmod(pki_path(&all, "moving.key", path, sizeof path), 0400), 0);
    UNIT_WAIT(pair_log_count("credentials read again") > before, 60000);
    duo_end(&d);
}

/* ---- a handshake step by step ---------------------------------------------------------------- */

typedef struct caller {
    SSL_CTX *context;
    SSL *ssl;
    BIO *in, *out;
    int fd;
} caller;

static void
caller_send(caller *c)
{
    char bytes[16384];
    int count;
    while ((count = BIO_read(c->out, bytes, sizeof bytes)) > 0) {
        UNIT_EQUAL(send(c->fd, bytes, (size_t)count, MSG_NOSIGNAL), count);
    }
}

/* Everything but the last bytes of its handshake, which are not sent yet. */
static void
caller_start(caller *c, const duo *d)
{
    char path[128], bytes[16384];
    c->context = SSL_CTX_new(TLS_client_method());
    UNIT_REQUIRE(c->context != NULL);
    UNIT_EQUAL(SSL_CTX_use_certificate_file(
                   c->context, pki_path(&all, "right.pem", path, sizeof path), SSL_FILETYPE_PEM),
               1);
    UNIT_EQUAL(SSL_CTX_use_PrivateKey_file(
                   c->context, pki_path(&all, "right.key", path, sizeof path), SSL_FILETYPE_PEM),
               1);
    c->ssl = SSL_new(c->context);
    c->in = BIO_new(BIO_s_mem());
    c->out = BIO_new(BIO_s_mem());
    UNIT_REQUIRE(c->ssl != NULL && c->in != NULL && c->out != NULL);
    SSL_set_bio(c->ssl, c->in, c->out);
    SSL_set_connect_state(c->ssl);
    c->fd = duo_dial(d);
    while (SSL_do_handshake(c->ssl) != 1) {
        caller_send(c);
        ssize_t count = recv(c->fd, bytes, sizeof bytes, 0);
        UNIT_REQUIRE(count > 0 && BIO_write(c->in, bytes, (int)count) == count);
    }
}

static void
caller_end(caller *c)
{
    SSL_free(c->ssl);
    SSL_CTX_free(c->context);
    close(c->fd);
}

static void
who_is_revoked_while_it_shakes_hands_is_not_let_in(void)
{
    duo d;
    caller c;
    side left = { .ca = "ca", .cert = "left", .crl = "moving-list.pem" };
    files_setup();
    file_copy("none-revoked.pem", "moving-list.pem");
    duo_start(&d, &left, &good_right);
    caller_start(&c, &d);
    file_copy("right-revoked.pem", "moving-list.pem");
    UNIT_EQUAL(trpi_remote_secrets_reload(d.remote[0], NULL, NULL), TRP_OK);
    UNIT_WAIT(pair_logged("credentials read again subject=left closed=0"), 60000);
    caller_send(&c);
    UNIT_WAIT(duo_refused(&d, 0, TRPI_REFUSED_REVOKED) == 1, 60000);
    UNIT_WAIT(is_closed(c.fd), 60000);
    caller_end(&c);
    duo_end(&d);
}

static void
a_new_cookie_is_taken_without_a_restart(void)
{
    duo d;
    side left = { .cookie = "correct horse", .old_end_ms = 300 };
    side right = { .cookie = "battery staple" };
    duo_start(&d, &left, &right);
    UNIT_WAIT((duo_knock(&d, 1), duo_refused(&d, 0, TRPI_REFUSED_COOKIE) > 0), 60000);
    UNIT_EQUAL(trpi_remote_secrets_reload(d.remote[0], "battery staple", "correct horse"), TRP_OK);
    UNIT_WAIT((duo_knock(&d, 1), is_active(&d, 0) && is_active(&d, 1)), 60000);
    duo_end(&d);
}

static void
files_that_do_not_fit_are_refused_at_the_start(void)
{
    static const struct {
        side with;
        const char *word;
    } cases[] = {
        { { .ca = "other", .cert = "left" }, "unknown-ca" },
        { { .ca = "ca", .cert = "brief", .days_ahead = 40 }, "expired" },
        { { .ca = "ca", .cert = "early" }, "not-yet-valid" },
        { { .ca = "ca", .cert = "right", .crl = "right-revoked.pem" }, "revoked" },
        { { .ca = "ca", .cert = "nowhere" }, "No such file" },
        { { .ca = "ca", .cert = "left", .crl = "left.pem" }, "revocation list" },
        { { .ca = "ca", .cert = "left", .crl = "damaged.pem" }, "revocation list" },
        { { .ca = "ca", .cert = "mixed" }, "key values mismatch" },
    };
    files_setup();
    file_copy("left.pem", "mixed.pem");
    file_copy("right.key", "mixed.key");
    char *one = pki_read(&all, "none-revoked.pem"), *two = pki_read(&all, "right-revoked.pem");
    char both[8192]; /* two lists, the second one cut off */
    (void)snprintf(both, sizeof(both), "%s%.*s", one, (int)strlen(two) / 2, two);
    pki_write(&all, "damaged.pem", both);
    trpi_free(one);
    trpi_free(two);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        duo d = { 0 };
        char why[300] = "";
        UNIT_EQUAL(side_start(&d, 0, &cases[i].with, 0, 0, why, sizeof why), TRP_ECONFIG);
        if (!UNIT_TRUE(strstr(why, cases[i].word) != NULL)) {
            printf("  %s: %s\n", cases[i].word, why);
        }
        duo_end(&d);
    }
}

static void
files_are_removed(void)
{
    duo_files_remove();
}

UNIT_BEGIN("reload")
UNIT(new_files_are_taken_without_a_restart)
UNIT(what_ends_soon_is_told)
UNIT(who_is_revoked_while_connected_is_cut_off)
UNIT(files_that_failed_are_tried_again)
UNIT(who_is_revoked_while_it_shakes_hands_is_not_let_in)
UNIT(a_new_cookie_is_taken_without_a_restart)
UNIT(files_that_do_not_fit_are_refused_at_the_start)
UNIT(files_are_removed) /* last */
UNIT_END

/* duo.h - two nodes that know each other by certificates, a cookie, or both, made here; calendars
 * are those of the tests' worlds. */
#ifndef TESTS_UNIT_REMOTE_DUO_H
#define TESTS_UNIT_REMOTE_DUO_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "remote/association/context.h"
#include "tests/unit/remote/pair.h"
#include "tests/unit/remote/pki.h"

static pki all;

/* Everything that the tests need, once: ca and other (authorities), left, right, ... */
static inline void
files_setup(void)
{
    if (all.now_ms != 0) {
        return;
    }
    pki_start(&all);
    pki_authority(&all, "ca");
    pki_authority(&all, "other");
    pki_node(&all, "ca", "left", "127.0.0.1", -1, 400);
    pki_node(&all, "ca", "right", "127.0.0.1", -1, 400);
    pki_node(&all, "other", "foreign", "127.0.0.1", -1, 400);
    pki_node(&all, "ca", "second", "127.0.0.2", -1, 400);
    pki_node(&all, "ca", "brief", "127.0.0.1", -1, 30);
    pki_node(&all, "ca", "early", "127.0.0.1", 20, 400);
    pki_node(&all, "ca", "elsewhere", "10.9.8.7", -1, 400);
    char *one = pki_read(&all, "ca.pem"), *two = pki_read(&all, "other.pem"), both[8192];
    (void)snprintf(both, sizeof(both), "%s%s", one, two);
    pki_write(&all, "both.pem", both);
    trpi_free(one);
    trpi_free(two);
    pki_revoke(&all, "ca", "right", "right-revoked.pem");
    pki_revoke(&all, "ca", NULL, "none-revoked.pem");
    pki_revoke(&all, "other", NULL, "of-other.pem");
}

/* ---- two nodes ------------------------------------------------------------------------------- */

typedef struct side {
    const char *host;            /* NULL: 127.0.0.1 */
    const char *ca, *cert, *crl; /* names of files; cert NULL: plain tcp */
    int days_ahead;              /* of its calendar */
    const char *cookie, *before, *cookie_file;
    const char *allowed;
    bool ignore_address;
    uint32_t old_end_ms, reload_ms;
} side;

typedef struct duo {
    pki_world world[2];
    trp_system *system[2];
    trpi_remote *remote[2];
} duo;

static inline trp_err
side_start(duo *d, int i, const side *s, uint32_t pending_max, uint32_t bytes_max, char *why,
           size_t why_bytes)
{
    char ca[128], cert[128], key[128], crl[128], name[64];
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    options.workers = 2;
    options.log = pair_log_line;
    options.log_level = TRP_LOG_DEBUG;
    pki_world_start(&d->world[i], s->days_ahead);
    UNIT_REQUIRE(trpi_system_new_in(&d->world[i].world, i == 0 ? "left" : "right", &options,
                                    &d->system[i]) == TRP_OK);
    trpi_remote_options o = { .transport = pair_driver,
                              .driver = pair_drives(),
                              .bind_port = -1,
                              .host = s->host != NULL ? s->host : "127.0.0.1",
                              .cookie = s->cookie,
                              .cookie_before = s->before,
                              .cookie_file = s->cookie_file,
                              .tls_ignore_address = s->ignore_address,
                              .tls_old_end_ms = s->old_end_ms,
                              .tls_reload_interval_ms = s->reload_ms,
                              .pending_handshakes_max = pending_max,
                              .handshake_bytes_max = bytes_max,
                              .link_pause_ms = 60000, /* as in pair.h */
                              .backoff_min_ms = 20,
                              .backoff_max_ms = 200,
                              .why = why,
                              .why_bytes = why_bytes };
    if (s->cert != NULL) {
        (void)snprintf(name, sizeof name, "%s.pem", s->ca);
        o.tls_ca = pki_path(&all, name, ca, sizeof ca);
        (void)snprintf(name, sizeof name, "%s.pem", s->cert);
        o.tls_cert = pki_path(&all, name, cert, sizeof cert);
        (void)snprintf(name, sizeof name, "%s.key", s->cert);
        o.tls_key = pki_path(&all, name, key, sizeof key);
        o.tls_crl = s->crl != NULL ? pki_path(&all, s->crl, crl, sizeof crl) : NULL;
        o.tls_allowed = &s->allowed;
        o.tls_allowed_count = s->allowed != NULL;
        o.tls = true;
    }
    return trpi_remote_start(d->system[i], &o, &d->remote[i]);
}

static inline void
duo_start(duo *d, const side *left, const side *right)
{
    char why[300] = "";
    files_setup();
    memset(d, 0, sizeof *d);
    pair_log_clear();
    for (int i = 0; i < 2; i++) {
        trp_err err = side_start(d, i, i == 0 ? left : right, 0, 0, why, sizeof why);
        if (err != TRP_OK) {
            printf("  %s: %s\n", trp_err_name(err), why);
        }
        UNIT_REQUIRE(err == TRP_OK);
    }
}

static inline void
duo_end(duo *d)
{
    for (int i = 0; i < 2; i++) {
        if (d->system[i] != NULL) {
            UNIT_EQUAL(trp_system_stop(d->system[i], 60000), TRP_OK);
            trpi_remote_stop(d->remote[i]);
            trp_system_free(d->system[i]);
            pki_world_end(&d->world[i]);
        }
    }
}

/* Side i sends a message to the other one. */
static inline void
duo_knock(duo *d, int i)
{
    trpi_node_id to = { *trpi_remote_address(d->remote[1 - i]), 0 };
    (void)trpi_remote_control_send(d->remote[i], &to, TRPI_CHANNEL_GOSSIP, "knock", 5);
}

static inline bool
is_active(duo *d, int i)
{
    trpi_peer_info info;
    size_t count = 0;
    trpi_remote_peers(d->remote[i], &info, 1, &count);
    return count > 0 && strcmp(info.state, "active") == 0;
}

static inline uint64_t
duo_refused(duo *d, int i, trpi_refusal why)
{
    trpi_remote_stats stats;
    trpi_remote_stats_get(d->remote[i], &stats);
    return stats.refused[why];
}

/* Refusals for any other reason, in one snapshot: a refused peer dials again meanwhile. */
static inline uint64_t
refused_but(duo *d, int i, trpi_refusal but)
{
    trpi_remote_stats stats;
    uint64_t sum = 0;
    trpi_remote_stats_get(d->remote[i], &stats);
    for (int why = 1; why < TRPI_REFUSAL_COUNT; why++) {
        sum += why != (int)but ? stats.refused[why] : 0;
    }
    return sum;
}

static inline uint64_t
refused_sum(duo *d, int i)
{
    return refused_but(d, i, TRPI_REFUSAL_COUNT);
}

static const side good_left = { .ca = "ca", .cert = "left" };
static const side good_right = { .ca = "ca", .cert = "right" };
static const side plain = { .cert = NULL };

static inline uint64_t
duo_accepted(duo *d)
{
    trpi_remote_stats stats;
    trpi_remote_stats_get(d->remote[0], &stats);
    return stats.accepted;
}

/* ---- strangers: sockets without a system ----------------------------------------------------- */

static inline int
duo_dial(const duo *d)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(trpi_remote_address(d->remote[0])->port) };
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    UNIT_REQUIRE(fd >= 0);
    UNIT_REQUIRE(connect(fd, (const struct sockaddr *)&to, sizeof to) == 0);
    return fd;
}

static inline bool
is_closed(int fd)
{
    char byte[256];
    ssize_t got = recv(fd, byte, sizeof byte, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
}

/* ---- files that change ----------------------------------------------------------------------- */

static inline void
file_copy(const char *from, const char *to)
{
    char *text = pki_read(&all, from);
    pki_write(&all, to, text);
    trpi_free(text);
}

/* The last test of a program. */
static inline void
duo_files_remove(void)
{
    files_setup();
    pki_end(&all);
    all.now_ms = 0;
}

#endif

/* pki.h - authorities and certificates for tests, made on the spot, in a directory of their own. */
#ifndef TESTS_UNIT_REMOTE_PKI_H
#define TESTS_UNIT_REMOTE_PKI_H

#include <dirent.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/net.h"
#include "base/world.h"
#include "cluster/node/cert.h"
#include "tests/unit/unit.h"

#define PKI_DAY 86400000ll

typedef struct pki {
    char dir[64];
    int64_t now_ms;
} pki;

static inline char *
pki_path(const pki *p, const char *name, char *buffer, size_t bytes)
{
    (void)snprintf(buffer, bytes, "%s/%s", p->dir, name);
    return buffer;
}

/* Write a temporary file and rename it, so that no reader sees half a file. */
static inline void
pki_write(const pki *p, const char *name, const char *text)
{
    char path[128], beside[140];
    pki_path(p, name, path, sizeof path);
    (void)snprintf(beside, sizeof beside, "%s.new", path);
    FILE *file = fopen(beside, "w");
    UNIT_REQUIRE(file != NULL);
    UNIT_TRUE(fchmod(fileno(file), strstr(name, ".key") != NULL ? 0600 : 0644) == 0);
    UNIT_TRUE(fputs(text, file) >= 0);
    UNIT_TRUE(fclose(file) == 0);
    UNIT_TRUE(rename(beside, path) == 0);
}

static inline char *
pki_read(const pki *p, const char *name)
{
    char path[128];
    FILE *file = fopen(pki_path(p, name, path, sizeof path), "r");
    UNIT_REQUIRE(file != NULL);
    char *text = trpi_alloc(65536);
    UNIT_REQUIRE(text != NULL);
    size_t bytes = fread(text, 1, 65535, file);
    text[bytes] = '\0';
    fclose(file);
    return text;
}

static inline void
pki_start(pki *p)
{
    trpi_world *world = NULL;
    (void)snprintf(p->dir, sizeof p->dir, "/tmp/troupe-pki-XXXXXX");
    UNIT_REQUIRE(mkdtemp(p->dir) != NULL);
    UNIT_REQUIRE(trpi_world_real_new(&world) == TRP_OK);
    p->now_ms = trpi_world_wall_ms(world);
    trpi_world_free(world);
}

static inline void
pki_end(pki *p)
{
    DIR *dir = opendir(p->dir);
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char path[400];
        (void)snprintf(path, sizeof path, "%s/%s", p->dir, entry->d_name);
        (void)unlink(path);
    }
    closedir(dir);
    UNIT_EQUAL(rmdir(p->dir), 0);
}

/* NAME.pem and NAME.key, from `from` to `to` days from now. */
static inline void
pki_authority(const pki *p, const char *name)
{
    char why[256] = "", file[64], *cert = NULL, *key = NULL;
    trpi_cert_request request = { .subject = name,
                                  .not_before_ms = p->now_ms - 1000 * PKI_DAY,
                                  .not_after_ms = p->now_ms + 3000 * PKI_DAY };
    UNIT_REQUIRE(trpi_cert_make_authority(&request, &cert, &key, why, sizeof why) == TRP_OK);
    (void)snprintf(file, sizeof file, "%s.pem", name);
    pki_write(p, file, cert);
    (void)snprintf(file, sizeof file, "%s.key", name);
    pki_write(p, file, key);
    trpi_free(cert);
    trpi_free(key);
}

static inline void
pki_node(const pki *p, const char *authority, const char *name, const char *host, int from, int to)
{
    char why[256] = "", file[64], *cert = NULL, *key = NULL;
    (void)snprintf(file, sizeof file, "%s.pem", authority);
    char *ca_cert = pki_read(p, file);
    (void)snprintf(file, sizeof file, "%s.key", authority);
    char *ca_key = pki_read(p, file);
    trpi_cert_request request = { .subject = name,
                                  .names = &host,
                                  .names_count = 1,
                                  .not_before_ms = p->now_ms + from * PKI_DAY,
                                  .not_after_ms = p->now_ms + to * PKI_DAY };
    UNIT_REQUIRE(trpi_cert_make_node(ca_cert, ca_key, &request, &cert, &key, why, sizeof why) ==
                 TRP_OK);
    (void)snprintf(file, sizeof file, "%s.pem", name);
    pki_write(p, file, cert);
    (void)snprintf(file, sizeof file, "%s.key", name);
    pki_write(p, file, key);
    trpi_free(cert);
    trpi_free(key);
    trpi_free(ca_cert);
    trpi_free(ca_key);
}

/* Write FILE, a list that revokes name's certificate (NULL: none). */
static inline void
pki_revoke(const pki *p, const char *authority, const char *name, const char *file)
{
    char why[256] = "", path[64], *list = NULL;
    (void)snprintf(path, sizeof path, "%s.pem", authority);
    char *ca_cert = pki_read(p, path);
    (void)snprintf(path, sizeof path, "%s.key", authority);
    char *ca_key = pki_read(p, path);
    char *cert = NULL;
    if (name != NULL) {
        (void)snprintf(path, sizeof path, "%s.pem", name);
        cert = pki_read(p, path);
    }
    const char *certs[1] = { cert };
    UNIT_REQUIRE(trpi_cert_revoke(ca_cert, ca_key, NULL, certs, name != NULL, p->now_ms,
                                  p->now_ms + 30 * PKI_DAY, &list, why, sizeof why) == TRP_OK);
    pki_write(p, file, list);
    trpi_free(list);
    trpi_free(cert);
    trpi_free(ca_cert);
    trpi_free(ca_key);
}

/* ---- a world whose calendar is some days ahead ----------------------------------------------- */

typedef struct pki_world {
    trpi_world world;
    trpi_world *real;
    _Atomic int64_t ahead_ms;
} pki_world;

static inline uint64_t
pki_mono_ns(trpi_world *world)
{
    return trpi_world_mono_ns(((pki_world *)world)->real);
}
static inline int64_t
pki_wall_ms(trpi_world *world)
{
    return trpi_world_wall_ms(((pki_world *)world)->real) + ((pki_world *)world)->ahead_ms;
}
static inline uint64_t
pki_random(trpi_world *world)
{
    return trpi_world_random(((pki_world *)world)->real);
}
static const trpi_world_ops pki_world_ops = { .name = "real",
                                              .mono_ns = pki_mono_ns,
                                              .wall_ms = pki_wall_ms,
                                              .random_u64 = pki_random,
                                              .net = &trpi_net_machine };

static inline void
pki_world_start(pki_world *w, int days_ahead)
{
    memset(w, 0, sizeof *w);
    w->world.ops = &pki_world_ops;
    w->ahead_ms = days_ahead * PKI_DAY;
    UNIT_REQUIRE(trpi_world_real_new(&w->real) == TRP_OK);
}
static inline void
pki_world_end(pki_world *w)
{
    trpi_world_free(w->real);
}

#endif

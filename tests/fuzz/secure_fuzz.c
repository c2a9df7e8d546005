/* secure_fuzz.c - bytes of a stranger before it is authenticated: TLS, or a cookie.
 *
 * The first byte says whether the link speaks TLS (bit 0), who dialled (bit 1) and whether a write
 * is done at once (bit 2), the second how many bytes come in one read (0: all). The transport below
 * is a stub; nonces are always the same, so that the corpus can hold a cookie that is right. Laws:
 * no peer gets through TLS without a key; no more than handshake_bytes_max are taken; closed() is
 * called once. Corpus: tests/fuzz/corpus/secure.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/world.h"
#include "cluster/node/cert.h"
#include "remote/security/secure.h"

enum { BYTES_MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
require(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* ---- the world: its calendar is the certificates' -------------------------------------------- */

static uint64_t
now_ns(trpi_world *world)
{
    (void)world;
    return 1000000000;
}
static int64_t
wall_ms(trpi_world *world)
{
    (void)world;
    return 1800000000000;
}
static uint64_t
no_random(trpi_world *world)
{
    (void)world;
    return 0x0807060504030201;
}
static const trpi_world_ops world_ops = {
    .name = "real", .mono_ns = now_ns, .wall_ms = wall_ms, .random_u64 = no_random
};
static trpi_world world = { .ops = &world_ops };

/* ---- the transport below --------------------------------------------------------------------- */

static const trpi_transport_events *below; /* the same for both transports */
static void *below_arg[2], *below_user;
static atomic_bool close_asked; /* set by the keeper's thread, too */
static bool write_is_done, write_pending, released;
static int opened_count;
static char link_of_below; /* its address stands for the link */

static trp_err
stub_open(void *transport_arg, trpi_world *in, const trpi_transport_events *events, void *arg,
          trpi_transport **ret_transport)
{
    (void)transport_arg;
    (void)in;
    below = events;
    below_arg[opened_count++] = arg;
    *ret_transport = (trpi_transport *)&link_of_below;
    return TRP_OK;
}
static trp_err
stub_connect(trpi_transport *transport, const char *host, uint16_t port, uint32_t timeout_ms,
             void *user, trpi_link **ret_link)
{
    (void)transport;
    (void)host;
    (void)port;
    (void)timeout_ms;
    below_user = user;
    *ret_link = (trpi_link *)&link_of_below;
    return TRP_OK;
}
static trp_err
stub_write(trpi_link *link, const trpi_iov *iov, size_t count, bool *ret_done)
{
    (void)link;
    require(!write_pending && count == 1 && iov[0].bytes > 0); /* secure-V2 */
    write_pending = !write_is_done || ret_done == NULL;
    if (!write_pending) {
        *ret_done = true;
    }
    return TRP_OK;
}
static void
stub_close(trpi_link *link)
{
    (void)link;
    atomic_store(&close_asked, true);
}
static void
stub_release(trpi_link *link)
{
    (void)link;
    require(!released);
    released = true;
}
static const trpi_transport_ops stub_ops = { .scheme = "tcp",
                                             .open = stub_open,
                                             .connect = stub_connect,
                                             .write = stub_write,
                                             .close = stub_close,
                                             .release = stub_release };

/* ---- the user above -------------------------------------------------------------------------- */

static trpi_link *link_above;
static int open_count, closed_count;

static bool
on_accepted(void *arg, trpi_link *link, const char *peer, void **ret_user)
{
    (void)arg;
    (void)peer;
    link_above = link;
    *ret_user = &link_above;
    return true;
}
static void
on_open(void *user, trpi_link *link)
{
    (void)user;
    (void)link;
    open_count++;
}
static void
on_bytes(void *user, trpi_link *link, const uint8_t *bytes, size_t count)
{
    (void)bytes;
    require(count > 0);
    on_open(user, link);
}
static void
on_written(void *user, trpi_link *link)
{
    (void)user;
    (void)link;
    require(false); /* nobody has written */
}
static void
on_closed(void *user, trpi_link *link, trp_err err, const char *reason)
{
    (void)user;
    require(err != TRP_OK && memchr(reason, '\0', 400) != NULL);
    closed_count++;
    trpi_secure_tls_ops.release(link); /* the same for both */
}
static const trpi_transport_events above = { .accepted = on_accepted,
                                             .connected = on_open,
                                             .bytes = on_bytes,
                                             .written = on_written,
                                             .closed = on_closed };

/* ---- the two transports ---------------------------------------------------------------------- */

static trpi_transport *transports[2]; /* a cookie alone, TLS and a cookie */

static void
text_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    require(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void
transports_open(void)
{
    static const char *const names[] = { "127.0.0.1" };
    char why[400] = "", dir[] = "/tmp/troupe-fuzz-XXXXXX", paths[3][64];
    char *ca = NULL, *ca_key = NULL, *cert = NULL, *key = NULL;
    trpi_cert_request request = { .subject = "fuzz",
                                  .names = names,
                                  .names_count = 1,
                                  .not_before_ms = wall_ms(NULL) - 1000,
                                  .not_after_ms = wall_ms(NULL) + 86400000 };
    require(mkdtemp(dir) != NULL &&
            trpi_cert_make_authority(&request, &ca, &ca_key, why, sizeof why) == TRP_OK &&
            trpi_cert_make_node(ca, ca_key, &request, &cert, &key, why, sizeof why) == TRP_OK);
    const char *texts[] = { ca, cert, key };
    for (int i = 0; i < 3; i++) {
        (void)snprintf(paths[i], sizeof paths[i], "%s/%d", dir, i);
        text_write(paths[i], texts[i]);
        require(chmod(paths[i], 0600) == 0); /* or the key is refused */
    }
    trpi_tls_options tls = { .ca = paths[0], .cert = paths[1], .key = paths[2] };
    trpi_secure_options options = { .inner = &stub_ops,
                                    .secrets = { 1, { "correct horse" } },
                                    .handshake_bytes_max = BYTES_MAX,
                                    .old_end_ms = 1000 };
    require(trpi_secure_tcp_ops.open(&options, &world, &above, NULL, &transports[0]) == TRP_OK);
    options.tls = &tls;
    require(trpi_secure_tls_ops.open(&options, &world, &above, NULL, &transports[1]) == TRP_OK);
    for (int i = 0; i < 3; i++) { /* they are read once */
        require(unlink(paths[i]) == 0);
    }
    require(rmdir(dir) == 0);
    trpi_free(ca);
    trpi_free(ca_key);
    trpi_free(cert);
    trpi_free(key);
}

static void
write_complete(trpi_link *link)
{
    while (write_pending) {
        write_pending = false;
        below->written(below_user, link);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trpi_link *link = (trpi_link *)&link_of_below;
    if (transports[0] == NULL) {
        transports_open();
    }
    if (size < 2) {
        return 0;
    }
    bool is_tls = (data[0] & 1) != 0, is_dialled = (data[0] & 2) != 0;
    size_t step = data[1] != 0 ? data[1] : size, taken = 0;
    atomic_store(&close_asked, false);
    write_pending = released = false;
    write_is_done = (data[0] & 4) != 0;
    open_count = closed_count = 0;
    if (is_dialled) {
        require(trpi_secure_tls_ops.connect(transports[is_tls], "127.0.0.1", 1, 1000, &link_above,
                                            &link_above) == TRP_OK);
        below->connected(below_user, link);
    } else {
        require(below->accepted(below_arg[is_tls], link, "fuzz", &below_user));
    }
    write_complete(link);
    for (size_t at = 2; at < size && !atomic_load(&close_asked); at += step) {
        size_t count = size - at < step ? size - at : step;
        taken += open_count == 0 ? count : 0;
        below->bytes(below_user, link, data + at, count);
        write_complete(link);
    }
    require(taken < BYTES_MAX + step && (!is_tls || open_count == 0));
    below->closed(below_user, link, TRP_ECONN, "over");
    require(closed_count == 1 && released);
    return 0;
}

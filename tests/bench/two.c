/* two.c - see two.h. The certificates live as long as it takes both processes to read them. */
#include "tests/bench/two.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cluster/node/cert.h"

#define HOST "127.0.0.1"
#define CERT_MS 3600000 /* before and after now */

enum { PATH_BYTES = 64, WHY_BYTES = 256 };

static const char *
file_path(const char *pki, const char *name, char *buffer)
{
    (void)snprintf(buffer, PATH_BYTES, "%s/%s", pki, name);
    return buffer;
}

static void
file_write(const char *pki, const char *name, const char *text)
{
    char path[PATH_BYTES];
    FILE *file = fopen(file_path(pki, name, path), "w");

    if (file == NULL || fchmod(fileno(file), 0600) != 0 || /* else the key is refused */
        fputs(text, file) < 0 || fclose(file) != 0) {
        bench_check(TRP_EIO, path);
    }
}

static void
pki_make(char *pki, int64_t now_ms)
{
    const char *name = HOST;
    trpi_cert_request request = { .subject = "bench",
                                  .not_before_ms = now_ms - CERT_MS,
                                  .not_after_ms = now_ms + CERT_MS };
    char *ca, *ca_key, *node, *node_key, why[WHY_BYTES] = "";

    if (mkdtemp(pki) == NULL) {
        bench_check(TRP_EIO, pki);
    }
    bench_check(trpi_cert_make_authority(&request, &ca, &ca_key, why, sizeof why), why);
    request.names = &name;
    request.names_count = 1;
    bench_check(trpi_cert_make_node(ca, ca_key, &request, &node, &node_key, why, sizeof why), why);
    file_write(pki, "ca.pem", ca);
    file_write(pki, "node.pem", node);
    file_write(pki, "node.key", node_key);
    trpi_free(ca);
    trpi_free(ca_key);
    trpi_free(node);
    trpi_free(node_key);
}

static void
pki_remove(const char *pki)
{
    char path[PATH_BYTES];

    (void)unlink(file_path(pki, "ca.pem", path));
    (void)unlink(file_path(pki, "node.pem", path));
    (void)unlink(file_path(pki, "node.key", path));
    (void)rmdir(pki);
}

trpi_remote *
bench_remote_start(trp_system *system, const char *pki)
{
    trpi_remote_options options = { .bind_port = -1 };
    char ca[PATH_BYTES], cert[PATH_BYTES], key[PATH_BYTES], why[WHY_BYTES] = "";
    trpi_remote *remote = NULL;

    options.why = why;
    options.why_bytes = sizeof why;
    if (pki != NULL) {
        options.tls = true;
        options.tls_ca = file_path(pki, "ca.pem", ca);
        options.tls_cert = file_path(pki, "node.pem", cert);
        options.tls_key = file_path(pki, "node.key", key);
    }
    options.driver = getenv("TROUPE_REMOTE_DRIVER"); /* of both processes */
    bench_check(trpi_remote_start(system, &options, &remote),
                why[0] != '\0' ? why : "trpi_remote_start");
    return remote;
}

static void
child_start(bench_two *two, const bench_options *options)
{
    int to[2], from[2];
    char threads[16];

    (void)snprintf(threads, sizeof threads, "%u", options->threads);
    if (pipe(to) != 0 || pipe(from) != 0 || (two->pid = fork()) < 0) {
        bench_check(TRP_EIO, "pipe, fork");
    }
    if (two->pid == 0) {
        char self[PATH_MAX];
        ssize_t bytes =
            readlink("/proc/self/exe", self, sizeof self - 1); /* valgrind's is its own */

        if (bytes < 0) {
            _exit(127);
        }
        self[bytes] = '\0';
        (void)dup2(to[0], 0);
        (void)dup2(from[1], 1);
        (void)close(to[0]);
        (void)close(to[1]);
        (void)close(from[0]);
        (void)close(from[1]);
        (void)execl(self, "bench", "remote", "--child", two->pki, "--threads", threads,
                    (char *)NULL);
        _exit(127);
    }
    (void)close(to[0]);
    (void)close(from[1]);
    two->in = fdopen(to[1], "w");
    two->out = fdopen(from[0], "r");
    if (two->in == NULL || two->out == NULL ||
        fgets(two->address, sizeof two->address, two->out) == NULL) {
        bench_check(TRP_EIO, "the child said nothing");
    }
    two->address[strcspn(two->address, "\n")] = '\0';
}

void
bench_two_start(bench_two *two, const bench_options *options, bool tls)
{
    trpi_world *world = NULL;

    memset(two, 0, sizeof *two);
    if (tls) {
        (void)snprintf(two->pki, sizeof two->pki, "/tmp/troupe-bench-XXXXXX");
        bench_check(trpi_world_real_new(&world), "trpi_world_real_new");
        pki_make(two->pki, trpi_world_wall_ms(world));
        trpi_world_free(world);
    }
    child_start(two, options); /* before any thread of ours exists */
    two->system = bench_system(options);
    two->remote = bench_remote_start(two->system, tls ? two->pki : NULL);
    if (tls) {
        pki_remove(two->pki);
    }
}

void
bench_two_end(bench_two *two)
{
    bench_check(trp_system_stop(two->system, BENCH_ASK_MS), "trp_system_stop");
    trpi_remote_stop(two->remote);
    trp_system_free(two->system);
    (void)fclose(two->in);
    (void)waitpid(two->pid, NULL, 0);
    (void)fclose(two->out);
}

trp_ref
bench_two_resolve(const bench_two *two, const char *path)
{
    char text[TRP_PATH_BYTES_MAX];
    trp_ref ref = TRP_REF_NONE;

    (void)snprintf(text, sizeof text, "%s%s", two->address, path);
    bench_check(trp_system_resolve(two->system, text, BENCH_ASK_MS, &ref), text);
    return ref;
}

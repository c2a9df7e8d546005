/* two.c - see two.h. The certificates live as long as it takes both processes to read them. */
#include "tests/bench/two.h"

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cluster/node/cert.h"

#define HOST "127.0.0.1"
#define CERT_MS 3600000 /* before and after now */

enum { PATH_BYTES = 64, WHY_BYTES = 256, ARGUMENTS_MAX = 8, BEAT_PAUSE_NS = 1000000 };

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

void
bench_child_start(bench_child *child, const char *const *arguments)
{
    const char *argv[ARGUMENTS_MAX + 2] = { "bench" };
    int to[2], from[2];

    for (size_t i = 0; arguments[i] != NULL && i < ARGUMENTS_MAX; i++) {
        argv[i + 1] = arguments[i];
    }
    if (pipe(to) != 0 || pipe(from) != 0 || (child->pid = fork()) < 0) {
        bench_check(TRP_EIO, "pipe, fork");
    }
    if (child->pid == 0) {
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
        (void)execv(self, (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    (void)close(to[0]);
    (void)close(from[1]);
    (void)fcntl(to[1], F_SETFD, FD_CLOEXEC); /* else the next child holds its input open */
    (void)fcntl(from[0], F_SETFD, FD_CLOEXEC);
    child->in = fdopen(to[1], "w");
    child->out = fdopen(from[0], "r");
    if (child->in == NULL || child->out == NULL) {
        bench_check(TRP_ENOMEM, "fdopen");
    }
}

void
bench_child_end(bench_child *child)
{
    (void)fclose(child->in);
    (void)waitpid(child->pid, NULL, 0);
    (void)fclose(child->out);
}

static void
two_child_start(bench_two *two, const bench_options *options)
{
    char threads[16];
    const char *const arguments[] = { "remote", "--child", two->pki, "--threads", threads, NULL };

    (void)snprintf(threads, sizeof threads, "%u", options->threads);
    bench_child_start(&two->child, arguments);
    if (fgets(two->address, sizeof two->address, two->child.out) == NULL) {
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
    two_child_start(two, options); /* before any thread of ours exists */
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
    bench_child_end(&two->child);
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

/* ---- heartbeats ------------------------------------------------------------------------------ */

static _Atomic uint64_t beat_back_ns, beat_number;

static void
beat_came(void *arg, const trpi_node_id *from, const uint8_t *bytes, size_t count,
          uint64_t arrived_ns)
{
    uint64_t number;

    (void)arg;
    (void)from;
    if (count == BENCH_BEAT_BYTES && bytes[0] == 2) {
        memcpy(&number, bytes + 1, sizeof number);
        atomic_store(&beat_back_ns, arrived_ns); /* as the failure detector is told it */
        atomic_store(&beat_number, number);
    }
}

void
bench_beats_bind(const bench_two *two, bool bound)
{
    trpi_remote_control_bind(two->remote, TRPI_CHANNEL_HEARTBEAT, bound ? beat_came : NULL, NULL);
}

uint64_t
bench_beats_run(const bench_two *two, const trpi_node_id *to, uint64_t count,
                uint64_t *ret_trips_ns)
{
    static uint64_t number; /* an answer that is late is none of the next run's */

    for (uint64_t i = 0; i < count; i++) {
        uint8_t beat[BENCH_BEAT_BYTES] = { 1 };
        uint64_t sent_ns = bench_now_ns();

        number++;
        memcpy(beat + 1, &number, sizeof number);
        bench_check(
            trpi_remote_control_send(two->remote, to, TRPI_CHANNEL_HEARTBEAT, beat, sizeof beat),
            "heartbeat");
        while (atomic_load(&beat_number) != number) {
            (void)nanosleep(&(struct timespec){ 0, BEAT_PAUSE_NS }, NULL);
            if (bench_now_ns() - sent_ns > BENCH_QUIET_NS) {
                return count - i;
            }
        }
        ret_trips_ns[i] = atomic_load(&beat_back_ns) - sent_ns;
    }
    return 0;
}

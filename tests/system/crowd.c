/* crowd.c - one node and a crowd of peers: what an idle association costs, and a storm of calls.
 *
 *   crowd PEERS STORM SECONDS   STORM peers call at once, then the others; idle for SECONDS
 *
 * Why.    The peers have to be cheap, so that a thousand of them fit beside the node that is looked
 *         at: they are sockets of one child process (fork and exec), which speak as much of the
 *         wire (docs/wire.md) as an idle peer needs: preamble, handshake, answers to PING and
 *         CONTROL.
 * Shape.  node <-- 127.0.0.1 --> child: peer 0 .. PEERS - 1, each with an address of its own
 *         child's input: a line with the node's address, then lines with a number: so many more
 *         peers call now
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <troupe/remoting.h>

#include "base/wire.h"
#include "remote/remote.h"
#include "remote/wire/codec.h"

enum {
    PEERS_MAX = 4096,
    PORT_FIRST = 10000, /* of the addresses that the peers claim; none of them listens there */
    READ_BYTES = 65536,
    WAIT_MS = 60000,
    LOOK_NS = 1000000,
    BEAT_BYTES = 8
};

static void
check(bool ok, const char *what)
{
    if (!ok) {
        (void)fprintf(stderr, "crowd: %s: %s\n", what, strerror(errno));
        exit(1);
    }
}

static uint64_t
now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

/* ---- the crowd ------------------------------------------------------------------------------- */

typedef struct peer {
    int fd;
    bool called; /* its request was sent */
    uint32_t index;
    trpi_frame_decoder decoder;
    trpi_buffer out;
} peer;

static peer peers[PEERS_MAX];
static uint32_t peers_count;
static trpi_address node_address;
static int poller;

static void
peer_send(peer *p)
{
    size_t sent = 0;

    while (sent < p->out.count) { /* few bytes: the socket always has room for them */
        ssize_t n = send(p->fd, p->out.data + sent, p->out.count - sent, MSG_NOSIGNAL);

        check(n > 0, "send");
        sent += (size_t)n;
    }
    trpi_buffer_clear(&p->out);
}

static trp_err
peer_preamble(void *arg, const trpi_preamble *preamble)
{
    (void)arg;
    (void)preamble;
    return TRP_OK;
}

static trp_err
peer_frame(void *arg, const trpi_frame *frame)
{
    peer *p = arg;
    uint8_t epoch[4];

    switch (frame->kind) {
    case TRPI_FRAME_HANDSHAKE_RESPONSE:
        trpi_put_u32(epoch, 1);
        return trpi_frame_append(&p->out, TRPI_FRAME_LANE_OPEN, 0, 0, epoch, sizeof epoch);
    case TRPI_FRAME_PING:
        return trpi_frame_append(&p->out, TRPI_FRAME_PONG, 0, 0, frame->body, frame->bytes);
    case TRPI_FRAME_CONTROL:
        return trpi_frame_append(&p->out, TRPI_FRAME_CONTROL, 0, frame->extra, frame->body,
                                 frame->bytes);
    default:
        return TRP_OK;
    }
}

static void
peer_call(peer *p)
{
    uint8_t bytes[TRPI_PREAMBLE_BYTES];
    trpi_preamble preamble = { TRPI_WIRE_VERSION, TRPI_LANE_CONTROL, 0, p->index + 1000u };
    trpi_handshake request = { .to = node_address, .frame_bytes_max = TRPI_FRAME_BYTES_DEFAULT };

    request.from.uid = preamble.uid;
    request.from.address = node_address;
    request.from.address.port = (uint16_t)(PORT_FIRST + p->index);
    trpi_preamble_encode(bytes, &preamble);
    check(trpi_buffer_append(&p->out, bytes, sizeof bytes, TRPI_BUFFER_NO_LIMIT) == TRP_OK &&
              trpi_handshake_append(&p->out, TRPI_FRAME_HANDSHAKE_REQUEST, &request) == TRP_OK,
          "handshake");
    p->called = true;
    peer_send(p);
}

static void
peer_begin(void)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(node_address.port),
                              .sin_addr = { htonl(INADDR_LOOPBACK) } };
    check(peers_count < PEERS_MAX, "too many peers");
    peer *p = &peers[peers_count];
    struct epoll_event event = { .events = EPOLLOUT, .data.ptr = p };

    p->index = peers_count++;
    p->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    trpi_frame_decoder_init(&p->decoder, TRPI_FRAME_BYTES_DEFAULT, peer_preamble, peer_frame, p);
    check(p->fd >= 0 && (connect(p->fd, (const struct sockaddr *)&to, sizeof to) == 0 ||
                         errno == EINPROGRESS),
          "connect");
    check(epoll_ctl(poller, EPOLL_CTL_ADD, p->fd, &event) == 0, "epoll");
}

static void
peer_ready(peer *p)
{
    static uint8_t bytes[READ_BYTES];
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = p };

    if (!p->called) {
        int err = 0;
        socklen_t size = sizeof err;

        check(getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &err, &size) == 0 && err == 0, "connected");
        peer_call(p);
        check(epoll_ctl(poller, EPOLL_CTL_MOD, p->fd, &event) == 0, "epoll");
        return;
    }
    ssize_t n = read(p->fd, bytes, sizeof bytes);
    check(n > 0, "the node has closed a connection");
    check(trpi_frame_decoder_feed(&p->decoder, bytes, (size_t)n) == TRP_OK, "frames of the node");
    peer_send(p);
}

static int
crowd_run(void)
{
    char line[TRPI_ADDRESS_TEXT_BYTES];
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL }, events[64];

    (void)setvbuf(stdin, NULL, _IONBF, 0); /* what epoll does not see is not there */
    check(fgets(line, sizeof line, stdin) != NULL, "no address");
    line[strcspn(line, "\n")] = '\0';
    check(trpi_address_parse(line, &node_address, NULL, NULL) == TRP_OK, line);
    poller = epoll_create1(0);
    check(poller >= 0 && epoll_ctl(poller, EPOLL_CTL_ADD, 0, &event) == 0, "epoll");
    for (;;) {
        int count = epoll_wait(poller, events, 64, -1);

        check(count >= 0, "epoll");
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr != NULL) {
                peer_ready(events[i].data.ptr);
                continue;
            }
            if (fgets(line, sizeof line, stdin) == NULL) {
                return 0; /* the kernel closes them all at once */
            }
            for (unsigned long more = strtoul(line, NULL, 10); more > 0; more--) {
                peer_begin();
            }
        }
    }
}

/* ---- the node -------------------------------------------------------------------------------- */

static _Atomic uint32_t associated, disassociated, answers;

static trp_err
listener_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    atomic_fetch_add(trp_msg_is(msg, &trp_associated_type) ? &associated : &disassociated, 1);
    return TRP_OK;
}
static const trp_behaviour listener = TRP_BEHAVIOUR_INIT("listener", char, listener_receive);

static void
answered(void *arg, const trpi_node_id *from, const uint8_t *bytes, size_t count,
         uint64_t arrived_ns)
{
    (void)arrived_ns;
    (void)arg;
    (void)from;
    (void)bytes;
    atomic_fetch_add(&answers, count == BEAT_BYTES);
}

/* Returns milliseconds until *what has come to count. */
static uint64_t
until(_Atomic uint32_t *what, uint32_t count, const char *sentence)
{
    uint64_t begin = now_ms();

    while (atomic_load(what) < count) {
        errno = ETIMEDOUT;
        check(now_ms() - begin < WAIT_MS, sentence);
        (void)nanosleep(&(struct timespec){ 0, LOOK_NS }, NULL);
    }
    return now_ms() - begin;
}

static uint32_t
entries(const char *path)
{
    uint32_t count = 0;
    DIR *dir = opendir(path);

    while (dir != NULL && readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);
    return count - 2;
}

static uint64_t
resident_bytes(void)
{
    unsigned long total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    check(file != NULL && fscanf(file, "%lu %lu", &total, &resident) == 2, "statm");
    (void)fclose(file);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t
cpu_us(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000u +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static FILE *
crowd_start(pid_t *ret_pid)
{
    int to[2];

    check(pipe(to) == 0, "pipe");
    *ret_pid = fork();
    check(*ret_pid >= 0, "fork");
    if (*ret_pid == 0) {
        (void)dup2(to[0], 0);
        (void)close(to[0]);
        (void)close(to[1]);
        (void)execl("/proc/self/exe", "crowd", "--peers", (char *)NULL);
        _exit(127);
    }
    (void)close(to[0]);
    FILE *in = fdopen(to[1], "w");
    check(in != NULL, "fdopen");
    (void)setvbuf(in, NULL, _IOLBF, 0);
    return in;
}

/* Send to every peer, and check that each answers. */
static void
ask_all(trpi_remote *remote, uint32_t count)
{
    uint8_t bytes[BEAT_BYTES] = { 1 };
    trpi_node_id to = { *trpi_remote_address(remote), 0 };
    uint64_t begin = now_ms();

    atomic_store(&answers, 0);
    for (uint32_t i = 0; i < count; i++) {
        to.address.port = (uint16_t)(PORT_FIRST + i);
        to.uid = i + 1000u;
        check(trpi_remote_control_send(remote, &to, TRPI_CHANNEL_HEARTBEAT, bytes, sizeof bytes) ==
                  TRP_OK,
              "control_send");
    }
    (void)until(&answers, count, "every peer answers");
    (void)printf("round %" PRIu64 " ms\n", now_ms() - begin);
}

static void
node_look(trpi_remote *remote, FILE *crowd, uint32_t count, uint32_t storm, uint32_t seconds)
{
    uint64_t began;

    (void)fprintf(crowd, "1\n"); /* whatever the first one brings along is not counted */
    (void)until(&associated, 1, "the first one is associated");
    ask_all(remote, 1);
    uint64_t before = resident_bytes();
    uint32_t fds = entries("/proc/self/fd");
    began = now_ms();
    (void)fprintf(crowd, "%u\n", storm);
    (void)until(&associated, 1 + storm, "all of the storm are associated");
    (void)printf("storm %" PRIu64 " ms\n", now_ms() - began);
    (void)fprintf(crowd, "%u\n", count - storm - 1);
    (void)until(&associated, count, "all are associated");
    ask_all(remote, count);
    uint64_t used = cpu_us();
    (void)sleep(seconds);
    used = cpu_us() - used;
    (void)printf("idle %" PRIu64 " us of processor time a second\n", used / seconds);
    (void)printf("bytes %" PRIu64 " an association\n", (resident_bytes() - before) / (count - 1));
    (void)printf("fds %u more\n", entries("/proc/self/fd") - fds);
    (void)printf("threads %u\n", entries("/proc/self/task"));
    ask_all(remote, count);
    (void)printf("associations %u ended %u\n", atomic_load(&associated),
                 atomic_load(&disassociated));
    began = now_ms();
    (void)fclose(crowd);
    (void)until(&disassociated, count, "all ends are seen");
    (void)printf("ends %" PRIu64 " ms\n", now_ms() - began);
}

int
main(int argc, char **argv)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trpi_remote_options remoting = { .driver = getenv("TROUPE_REMOTE_DRIVER"), .bind_port = -1 };
    struct rlimit files = { 0, 0 };
    char text[TRPI_ADDRESS_TEXT_BYTES];
    trp_system *system = NULL;
    trpi_remote *remote = NULL;
    trp_ref ref;
    pid_t pid;

    (void)getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files); /* also for the child */
    if (argc > 1 && strcmp(argv[1], "--peers") == 0) {
        return crowd_run();
    }
    check(argc == 4, "usage: crowd PEERS STORM SECONDS");
    FILE *crowd = crowd_start(&pid); /* before any thread of ours exists */
    options.workers = 2;
    options.log_level = TRP_LOG_ERROR;
    check(trp_system_new("crowd", &options, &system) == TRP_OK &&
              trp_system_spawn(system, &listener, NULL, &ref) == TRP_OK &&
              trp_system_subscribe(system, ref, &trp_associated_type) == TRP_OK &&
              trp_system_subscribe(system, ref, &trp_disassociated_type) == TRP_OK &&
              trpi_remote_start(system, &remoting, &remote) == TRP_OK,
          "node");
    trpi_remote_control_bind(remote, TRPI_CHANNEL_HEARTBEAT, answered, NULL);
    (void)fprintf(crowd, "%s\n",
                  trpi_address_format(trpi_remote_address(remote), text, sizeof text));
    node_look(remote, crowd, (uint32_t)strtoul(argv[1], NULL, 10),
              (uint32_t)strtoul(argv[2], NULL, 10), (uint32_t)strtoul(argv[3], NULL, 10));
    (void)waitpid(pid, NULL, 0);
    check(trp_system_stop(system, WAIT_MS) == TRP_OK, "stop");
    trpi_remote_stop(remote);
    trp_system_free(system);
    return 0;
}

/* strangers_http.c - beside_http: heartbeats of a node beside hostile clients of its API.
 *
 * Shape.  beats <--> a node of its own process (troupe/node.h) with the API on <-- crowd. Every
 *         second stranger asks for a stream of events and reads little of it. The others: a header
 *         and a body a byte at a time, a request inside a body, paths that lead out, a header and a
 *         body beyond their limits, a good scrape. Every second request that is sent at once has a
 *         byte that is random. By turns without and beside them, as beside_strangers.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <troupe/node.h>

#include "tests/bench/strangers.h"

#define WORKLOAD "beside_http"
#define HOST " HTTP/1.1\r\nHost: 127.0.0.1\r\n"

enum { KINDS = 7, REQUEST_BYTES = 24 * 1024, HEADER_BYTES = 20000, LINE_BYTES = 400 };

/* ---- what the crowd sends -------------------------------------------------------------------- */

static char request[REQUEST_BYTES];

/* Padding of so many bytes, behind `begin` and before `end`. Returns all bytes. */
static size_t
padded(const char *begin, size_t bytes, const char *end)
{
    size_t length = strlen(begin);

    memcpy(request, begin, length);
    memset(request + length, 'x', bytes);
    memcpy(request + length + bytes, end, strlen(end));
    return length + bytes + strlen(end);
}

static size_t
path_trick(void)
{
    static const char *const paths[] = {
        "/../../etc/passwd",     "/cluster/members/%2e%2e%2f%2e%2e%2fconfig",
        "/cluster/members%00/x", "//cluster//members",
        "/cluster/members/%zz",  "/actors?path=/user/../system&depth=99999999999",
        "http://evil/config",    "/cluster/members/\xff\xfe",
    };
    int bytes = snprintf(request, sizeof request, "GET %s" HOST "\r\n",
                         paths[bench_stranger_random() % (sizeof paths / sizeof paths[0])]);

    return (size_t)bytes;
}

/* A whole request, in `request`. */
static size_t
whole(uint32_t kind)
{
    static const char inside[] =
        "POST /nowhere" HOST "Content-Length: 60\r\n\r\nGET /cluster/members" HOST "\r\n";

    switch (kind) {
    case 0:
        return padded(inside, 30, "");
    case 1:
        return path_trick();
    case 2:
        return padded("GET /cluster/members" HOST "X-A: ", HEADER_BYTES, "\r\n\r\n");
    case 3:
        return padded("PUT /cluster/members/x" HOST "Content-Length: 65537\r\n\r\n", 1000, "");
    default:
        return padded("GET /metrics" HOST "\r\n", 0, "");
    }
}

static const uint8_t *
hostile(uint32_t number, uint32_t sent, size_t *ret_bytes)
{
    static const char stream[] = "GET /cluster/domain-events" HOST "\r\n";
    static const char header[] = "GET /cluster/members" HOST "X-A: ";
    static const char body[] = "PUT /cluster/members/x" HOST "Content-Length: 60000\r\n\r\n";
    uint32_t kind = number / 2 % KINDS;
    size_t bytes;

    if (number % 2 != 0) {
        *ret_bytes = sent == 0 ? sizeof stream - 1 : 0;
        return (const uint8_t *)stream;
    }
    if (kind >= KINDS - 2) { /* a byte at a time */
        const char *text = kind == KINDS - 2 ? header : body;
        *ret_bytes = 1;
        return (const uint8_t *)(sent < strlen(text) ? text + sent : "x");
    }
    *ret_bytes = 0;
    if (sent == 0) {
        bytes = whole(kind);
        if (number % 4 == 0) {
            request[bench_stranger_random() % bytes] = (char)bench_stranger_random();
        }
        *ret_bytes = bytes;
    }
    return (const uint8_t *)request;
}

/* ---- the node -------------------------------------------------------------------------------- */

static _Atomic uint16_t api_port;

static void
line_read(void *arg, const trp_log_line *line)
{
    static const char begin[] = "management API at http://127.0.0.1:";

    (void)arg;
    if (strncmp(line->text, begin, sizeof begin - 1) == 0) {
        atomic_store(&api_port, (uint16_t)strtoul(line->text + sizeof begin - 1, NULL, 10));
    }
}

static trp_err
sink_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return TRP_OK;
}
static const trp_behaviour sink = TRP_BEHAVIOUR_INIT("sink", char, sink_receive);

/* Say address and port of the API, and end with the input. */
static int
node_run(void)
{
    static const char *const settings[] = { "system=bench",
                                            "remote.port=0",
                                            "remote.cookie=off",
                                            "cluster.control-socket=off",
                                            "cluster.seed-nodes=self",
                                            "management.enabled=on",
                                            "management.port=0",
                                            NULL };
    trp_node_options options = TRP_NODE_OPTIONS_INIT;
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_node_error error;
    trp_node *node;
    trp_ref ref;

    options.settings = settings;
    options.environment_ignored = 1;
    options.log = line_read;
    if (trp_node_open(&options, &node, &error) != TRP_OK) {
        (void)fprintf(stderr, "bench " WORKLOAD ": %s\n", error.text);
        return 1;
    }
    spawn.name = "sink";
    bench_check(trp_system_spawn(trp_node_system(node), &sink, &spawn, &ref), "sink");
    for (int i = 0; i < 1000 && atomic_load(&api_port) == 0; i++) { /* lines come by a thread */
        (void)nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
    }
    (void)printf("%s\n%u\n", trp_node_address(node), atomic_load(&api_port));
    (void)fflush(stdout);
    while (getchar() != EOF) {
    }
    trp_node_close(node);
    return 0;
}

static void
line_get(FILE *from, char *line, size_t bytes)
{
    if (fgets(line, (int)bytes, from) == NULL) {
        bench_check(TRP_EIO, "the node said nothing");
    }
    line[strcspn(line, "\n")] = '\0';
}

static int
run_beside_http(const bench_options *options)
{
    static const char *const crowd_arguments[] = { WORKLOAD, "--crowd", "yes", NULL };
    static const char *const node_arguments[] = { WORKLOAD, "--node", "yes", NULL };
    bench_child crowd;
    bench_two two = { 0 };
    char port[LINE_BYTES];

    bench_descriptors_raise();
    if (bench_option_value(options, "--crowd") != NULL) {
        return bench_crowd_run(hostile);
    }
    if (bench_option_value(options, "--node") != NULL) {
        return node_run();
    }
    bench_child_start(&crowd, crowd_arguments);
    bench_child_start(&two.child, node_arguments);
    line_get(two.child.out, two.address, sizeof two.address);
    line_get(two.child.out, port, sizeof port);
    two.system = bench_system(options);
    two.remote = bench_remote_start(two.system, NULL);
    return bench_beside_run(WORKLOAD, options, &two, &crowd, port);
}

const bench_workload bench_strangers_http[] = {
    { WORKLOAD, "2 processes: heartbeats beside 1,000 hostile clients of the management API",
      run_beside_http },
    { NULL, NULL, NULL },
};

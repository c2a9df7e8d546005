/* otlp_test.c - the export of traces where no collector answers: what waits, what is dropped. */
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include <troupe/trace.h>

#include "cluster/node/otlp.h"
#include "tests/unit/node/inside.h"

/* Leave hops, each at once: of messages to nobody. */
static void
hops_leave(trp_node *node, uint32_t count)
{
    static const trp_trace outside = { 1, 2, 3, 0, 0 };
    trp_ref nobody = TRP_REF_NONE;
    for (uint32_t i = 0; i < count; i++) {
        trp_system_tell_traced(trp_node_system(node), nobody, nobody, &outside, &trp_string_type,
                               "gone", 4);
    }
}

/* Wait until a request that began later has failed. */
static void
failure_wait(trp_node *node)
{
    uint64_t before = trpi_otlp_count(node->otlp).failures;
    UNIT_WAIT(trpi_otlp_count(node->otlp).failures >= before + 2, 120000);
}

/* TRP_TRACE_HOPS_MAX, and one more. */
static void
so_many_messages_wait_for_a_collector_and_the_oldest_is_dropped(void)
{
    const char *extra[] = { "cluster.seed-nodes=self",
                            "trace.otlp-endpoint=http://127.0.0.1:1/v1/traces",
                            "trace.otlp-interval=1s", NULL };
    trp_node *node = up(extra);
    UNIT_REQUIRE(node->otlp != NULL);
    hops_leave(node, TRP_TRACE_HOPS_MAX);
    failure_wait(node);
    UNIT_EQUAL(trpi_otlp_count(node->otlp).dropped, 0);
    hops_leave(node, 1);
    failure_wait(node);
    UNIT_EQUAL(trpi_otlp_count(node->otlp).dropped, 1);
    hops_leave(node, 10);
    failure_wait(node);
    UNIT_EQUAL(trpi_otlp_count(node->otlp).dropped, 11);
    UNIT_EQUAL(trpi_otlp_count(node->otlp).sent, 0);
    trp_node_close(node); /* it does not wait for the collector */
}

static void
without_an_endpoint_nothing_is_sent(void)
{
    trp_node *node = up(alone);
    UNIT_TRUE(node->otlp == NULL);
    hops_leave(node, 1);
    UNIT_EQUAL(trpi_otlp_count(node->otlp).sent, 0);
    trp_node_close(node);
}

/* A collector that takes all, on a connection a request. */
static void *
collector_run(void *arg)
{
    static const char answer[] =
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    static char body[1 << 20];
    int listener = *(int *)arg;
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0; (void)close(fd)) {
        size_t used = 0, all = SIZE_MAX;
        for (ssize_t got;
             used < all && (got = recv(fd, body + used, sizeof body - used - 1, 0)) > 0;) {
            used += (size_t)got;
            body[used] = '\0';
            const char *head = strcasestr(body, "content-length: "),
                       *end = strstr(body, "\r\n\r\n");
            if (all == SIZE_MAX && head != NULL && end != NULL) {
                all = (size_t)(end + 4 - body) + strtoul(head + 16, NULL, 10);
            }
        }
        (void)!send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL);
    }
    return NULL;
}

typedef struct storm {
    trp_node *node;
    _Atomic bool stop;
} storm;

static void *
storm_run(void *arg)
{
    storm *s = arg;
    while (!atomic_load(&s->stop)) {
        hops_leave(s->node, 16);
    }
    return NULL;
}

/* otlp-O3 */
static void
messages_that_go_on_do_not_keep_a_node(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t bytes = sizeof address;
    char endpoint[96];
    const char *extra[] = { "cluster.seed-nodes=self", endpoint, "trace.otlp-interval=1s", NULL };
    pthread_t collector, teller;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    UNIT_REQUIRE(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 &&
                 listen(listener, 8) == 0 &&
                 getsockname(listener, (struct sockaddr *)&address, &bytes) == 0);
    snprintf(endpoint, sizeof endpoint, "trace.otlp-endpoint=http://127.0.0.1:%u/v1/traces",
             ntohs(address.sin_port));
    UNIT_REQUIRE(pthread_create(&collector, NULL, collector_run, &listener) == 0);
    storm s = { .node = up(extra) };
    UNIT_REQUIRE(pthread_create(&teller, NULL, storm_run, &s) == 0);
    UNIT_WAIT(trpi_otlp_count(s.node->otlp).sent > 0, 120000);
    trpi_otlp_stop(s.node->otlp); /* returns, though more comes than can be sent */
    atomic_store(&s.stop, true);
    UNIT_EQUAL(pthread_join(teller, NULL), 0);
    trpi_otlp_free(s.node->otlp);
    s.node->otlp = NULL;
    trp_node_close(s.node);
    (void)shutdown(listener, SHUT_RDWR);
    UNIT_EQUAL(pthread_join(collector, NULL), 0);
    (void)close(listener);
}

UNIT_BEGIN("otlp")
UNIT(messages_that_go_on_do_not_keep_a_node)
UNIT(so_many_messages_wait_for_a_collector_and_the_oldest_is_dropped)
UNIT(without_an_endpoint_nothing_is_sent)
UNIT_END

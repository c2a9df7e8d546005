/* inside.h - a node inside the test program, and what its control socket answers. */
#ifndef TESTS_UNIT_NODE_INSIDE_H
#define TESTS_UNIT_NODE_INSIDE_H

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <troupe/cluster.h>
#include <troupe/node.h>
#include <troupe/troupe.h>

#include "base/json.h"
#include "cluster/node/ctl_proto.h"
#include "tests/unit/unit.h"

static inline void
quiet(void *arg, const trp_log_line *line)
{
    (void)arg;
    (void)line;
}

static void (*node_log)(void *arg, const trp_log_line *line) = quiet;

/* Open with `extra` settings behind the common ones. */
static inline trp_err
node_open(const char *const *extra, trp_node **ret_node, trp_node_error *ret_error)
{
    const char *settings[16] = { "remote.port=0", "cluster.gossip-interval=100ms",
                                 "cluster.leader-actions-interval=100ms" };
    size_t count = 3;
    trp_node_options options = TRP_NODE_OPTIONS_INIT;
    while (extra && *extra) {
        settings[count++] = *extra++;
    }
    options.settings = settings;
    options.environment_ignored = 1;
    options.log = node_log;
    return trp_node_open(&options, ret_node, ret_error);
}

static inline uint32_t
own_status(trp_node *node)
{
    trp_member self;
    return trp_cluster_self(trp_node_system(node), &self) == TRP_OK ? self.status : 0;
}

static const char *const alone[] __attribute__((unused)) = { "cluster.seed-nodes=self", NULL };

static inline trp_node *
up(const char *const *extra)
{
    trp_node *node = NULL;
    trp_node_error error = { "" };
    UNIT_REQUIRE(node_open(extra, &node, &error) == TRP_OK);
    UNIT_WAIT(own_status(node) == TRP_MEMBER_UP, 60000);
    return node;
}

/* Another one, which joins through the first. Extra may be NULL. */
static inline trp_node *
open_beside(const trp_node *first, const char *const *extra)
{
    char seed[512];
    const char *settings[12] = { seed };
    trp_node *node = NULL;
    trp_node_error error = { "" };
    snprintf(seed, sizeof seed, "cluster.seed-nodes=%s", trp_node_address(first));
    for (size_t i = 1; extra && *extra; i++) {
        settings[i] = *extra++;
    }
    UNIT_REQUIRE(node_open(settings, &node, &error) == TRP_OK);
    return node;
}

static inline trp_node *
up_beside(const trp_node *first, const char *const *extra)
{
    trp_node *node = open_beside(first, extra);
    UNIT_WAIT(own_status(node) == TRP_MEMBER_UP, 60000);
    return node;
}

static inline void
closes(trp_node *node, trp_node_end want)
{
    trp_node_end end = (trp_node_end)0;
    UNIT_EQUAL(trp_node_await(node, 60000, &end), TRP_OK);
    UNIT_EQUAL(end, want);
    trp_node_close(node);
}

static inline void
socket_setting(char *buffer, size_t bytes)
{
    snprintf(buffer, bytes, "control.socket=/tmp/troupe-node-test-%d.sock", (int)getpid());
}

/* Ask the node behind path; the final object, NULL on failure. */
static inline cJSON *
control_ask(const char *path, const char *request)
{
    int fd = -1;
    enum { REPLY_BYTES = 1u << 20 };
    uint8_t *reply = malloc(REPLY_BYTES);
    uint8_t header[TRPI_CTL_HEADER_BYTES];
    cJSON *json = NULL;
    struct timeval limit = { 60, 0 };
    if (reply == NULL || trpi_ctl_connect(path, 60000, &fd) != TRP_OK) {
        free(reply);
        return NULL;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    trpi_ctl_header_encode(header, (uint32_t)strlen(request));
    (void)!send(fd, header, sizeof header, MSG_NOSIGNAL);
    (void)!send(fd, request, strlen(request), MSG_NOSIGNAL);
    while (recv(fd, header, sizeof header, MSG_WAITALL) == sizeof header) {
        size_t bytes = (size_t)header[0] | (size_t)header[1] << 8 | (size_t)header[2] << 16;
        if (bytes >= REPLY_BYTES || recv(fd, reply, bytes, MSG_WAITALL) != (ssize_t)bytes ||
            trpi_json_parse((const char *)reply, bytes, &json, NULL) != TRP_OK) {
            break;
        }
        if (cJSON_GetObjectItemCaseSensitive(json, "ok")) {
            close(fd);
            free(reply);
            return json;
        }
        cJSON_Delete(json);
        json = NULL;
    }
    close(fd);
    free(reply);
    return NULL;
}

#endif

/* cmd_bridge.c - bridge: lines of JSON between a program and the node, in both directions.
 *
 * Shape.   stdin --> connection --> node: requests; node --> connection --> stdout: answers, events
 * Must hold.
 *   cmd-bridge-B1  Neither direction waits for the other: a program that writes before it reads is
 *       served as long as both fit into the buffers on the way.
 *   cmd-bridge-B2  What was read from stdin is sent before the end of stdin ends the bridge.
 *   cmd-bridge-B3  After the end of stdin a node that takes and says nothing is waited for as long
 *       as for an answer (--timeout); a reader of stdout that is slow is waited for.
 * Tests.   tests/system/bridge.sh
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/cli/cli.h"

#define PIECE_BYTES 65536u
#define OUT_BYTES 4096u /* a pipe that is writable takes so much without waiting */

typedef struct way {
    int from, to;
    bool ended;  /* nothing more comes */
    bool broken; /* what has come cannot be written */
    size_t count, sent;
    char bytes[PIECE_BYTES];
} way;

static bool
is_empty(const way *w)
{
    return w->sent == w->count;
}

/* Read what is there. Returns an errno. */
static int
way_read(way *w)
{
    ssize_t got = read(w->from, w->bytes, sizeof w->bytes);
    if (got < 0) {
        return errno == EINTR || errno == EAGAIN ? 0 : errno;
    }
    w->ended = got == 0;
    w->count = (size_t)got;
    w->sent = 0;
    return 0;
}

/* Write what fits. Returns an errno. */
static int
way_write(way *w)
{
    size_t left = w->count - w->sent;
    ssize_t sent = write(w->to, w->bytes + w->sent, left < OUT_BYTES ? left : OUT_BYTES);
    if (sent < 0) {
        w->broken = errno != EINTR && errno != EAGAIN;
        return errno == EINTR || errno == EAGAIN ? 0 : errno;
    }
    w->sent += (size_t)sent;
    return 0;
}

/* Write the bytes that came behind the node's answer: the first of its lines. */
static int
first_write(trpi_cli *cli)
{
    for (size_t sent = 0; sent < cli->in.count;) {
        ssize_t got = write(STDOUT_FILENO, cli->in.data + sent, cli->in.count - sent);
        if (got < 0 && errno != EINTR) {
            return errno;
        }
        sent += got < 0 ? 0 : (size_t)got;
    }
    return 0;
}

static int
fail_broken(trpi_cli *cli, int code, int error)
{
    trpi_cli_disconnect(cli);
    if (error == ETIMEDOUT) {
        return trpi_cli_fail(TRPI_CTL_EXIT_TIMEOUT, "the node has not ended the bridge in %u ms",
                             cli->timeout_ms);
    }
    return error == EPIPE ? 0 : trpi_cli_fail(code, "bridge: %s", strerror(error));
}

/* One round: wait, then read and write what can be. Returns an errno. */
static int
round_go(trpi_cli *cli, way *in, way *out, bool *ret_reset)
{
    bool sends = !is_empty(in), prints = !is_empty(out);
    short of_node = (short)((sends ? POLLOUT : 0) | (prints || out->ended ? 0 : POLLIN));
    struct pollfd polls[3] = {
        { .fd = sends || in->ended ? -1 : STDIN_FILENO, .events = POLLIN },
        { .fd = of_node != 0 ? cli->fd : -1, .events = of_node },
        { .fd = STDOUT_FILENO, .events = prints ? POLLOUT : 0 },
    };
    int limit_ms = in->ended && !prints && cli->timeout_ms <= INT_MAX ? (int)cli->timeout_ms : 0;
    int count = poll(polls, 3, limit_ms > 0 ? limit_ms : -1);
    if (count <= 0) {
        return count == 0 ? ETIMEDOUT : errno == EINTR ? 0 : errno; /* cmd-bridge-B3 */
    }
    int error = polls[0].revents != 0 ? way_read(in) : 0;
    if (error == 0 && sends && (polls[1].revents & (POLLOUT | POLLERR | POLLHUP)) != 0) {
        error = way_write(in);
        *ret_reset = error == EPIPE || error == ECONNRESET;
        in->sent = *ret_reset ? in->count : in->sent; /* the node has gone: read what it said */
        in->ended = in->ended || *ret_reset;
        error = *ret_reset ? 0 : error;
    }
    if (error == 0 && !prints && (polls[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
        error = way_read(out);
        if (error == ECONNRESET) {
            out->ended = true;
            error = 0;
        }
    }
    if (error == 0 && prints && polls[2].revents != 0) {
        error = way_write(out);
    } else if (error == 0 && (polls[2].revents & POLLERR) != 0) {
        error = EPIPE; /* the reader of stdout has gone */
    }
    return error;
}

static int
lines_carry(trpi_cli *cli)
{
    static way in, out; /* zeroed; too large for the stack */
    bool shut = false, reset = false;
    int error = first_write(cli);
    if (error != 0) {
        return fail_broken(cli, TRPI_CTL_EXIT_OUTPUT, error);
    }
    in.from = STDIN_FILENO;
    in.to = out.from = cli->fd;
    out.to = STDOUT_FILENO;
    while (error == 0 && !(out.ended && is_empty(&out))) {
        error = round_go(cli, &in, &out, &reset);
        if (!shut && in.ended && is_empty(&in)) { /* cmd-bridge-B2 */
            shut = true;
            (void)shutdown(cli->fd, SHUT_WR); /* the node closes; ENOTCONN: it has already */
        }
    }
    if (error != 0) {
        return fail_broken(cli, out.broken ? TRPI_CTL_EXIT_OUTPUT : TRPI_CTL_EXIT_INTERNAL, error);
    }
    trpi_cli_disconnect(cli);
    return shut && !reset
               ? 0
               : trpi_cli_fail(TRPI_CTL_EXIT_UNREACHABLE,
                               "the node ended the bridge: it stops, or its actor was stopped");
}

int
trpi_cli_run_bridge(trpi_cli *cli)
{
    cJSON *reply, *request = trpi_cli_request_new(cli, "bridge");
    if (request != NULL && cli->args_count > 0 &&
        !trpi_json_add_text(request, "path", cli->args[0])) {
        cJSON_Delete(request);
        request = NULL;
    }
    int code = trpi_cli_call(cli, request, NULL, NULL, &reply);
    cJSON_Delete(reply);
    return code != 0 ? code : lines_carry(cli);
}

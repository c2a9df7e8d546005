/* client.c - one request to the node: connect, send, read until the final object or the deadline.
 *
 * Why.     All answers of nodes come through here, so that "no node", "not permitted", "too slow"
 *          and the node's own errors have the same text and exit code in each command.
 * Must hold.
 *   client-C1  Nothing waits without a deadline: the node is given timeoutMs, to accept included,
 *       the client TRPI_CLI_GRACE_MS more.
 *   client-C2  A stream ends at once, not at the next event, when the reader of stdout has gone.
 *   client-C3  A request is sent once: its connection is new, or was used a moment ago. A
 *       command that pauses longer closes it first, since the node closes an idle connection.
 *       (trpi_cli_disconnect)
 *   client-C5  The error for a node that does not answer names the state of its process, from
 *       /proc. (fail_late)
 *   client-C4  The error of an order without the node's confirmation says so, whatever ended it: no
 *       answer, a closed connection, Ctrl-C. So Ctrl-C is held back from the sending of an order
 *       until the client can report its state. (An order is short, and a new connection takes it at
 *       once: this does not wait.)
 * Limits.  Replies above TRPI_CTL_RESPONSE_BYTES_MAX are refused.
 * Tests.   tests/system/cli.sh, tests/system/cli_fake.sh
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cluster/cli/cli.h"

#define READ_BYTES 65536u

static int
fail_no_node(const char *what, char dirs[][TRPI_CTL_PATH_BYTES], size_t dirs_count,
             uint32_t stale_count)
{
    (void)trpi_cli_fail(0, "cannot reach a node: %s", what); /* the exit code is returned below */
    (void)fputs("  tried      ", stderr);
    for (size_t index = 0; index < dirs_count; index++) {
        (void)fprintf(stderr, "%s%s/*.sock", index > 0 ? ", " : "", dirs[index]);
    }
    if (stale_count > 0) {
        (void)fprintf(stderr, "   (%u left behind by a node that is gone)", stale_count);
    }
    (void)fputs(
        "\n  try        troupe dev 3      or      troupe node --config /etc/troupe/troupe.conf"
        "      or      --socket PATH\n",
        stderr);
    if (access("/run/systemd/system", F_OK) == 0) {
        (void)fputs(
            "  systemd    systemctl status 'troupe@*'      journalctl -u 'troupe@*' -n 20\n",
            stderr);
    }
    return TRPI_CTL_EXIT_UNREACHABLE;
}

static int
fail_connect(const trpi_cli *cli, trp_err err, const char *path)
{
    switch (err) {
    case TRP_EPERM:
        return trpi_cli_fail(
            TRPI_CTL_EXIT_PERMISSION,
            "not permitted to open %s\n  try        sudo, or become a member of the socket's group",
            path);
    case TRP_ESTATE:
        return trpi_cli_fail(TRPI_CTL_EXIT_PERMISSION,
                             "%s was put there by another user, or other users may write to its "
                             "directory: it is not used\n  try        look at its owner (ls -ld); "
                             "a node of that user has its control socket in a directory of its own",
                             path);
    case TRP_ELIMIT:
        return trpi_cli_fail(TRPI_CTL_EXIT_USAGE, "socket path is longer than %u bytes: %s",
                             TRPI_CTL_PATH_BYTES - 1, path);
    case TRP_ENOENT:
        return trpi_cli_fail(
            TRPI_CTL_EXIT_UNREACHABLE,
            "cannot reach a node: %s: no such file\n  try        start it with this --socket, or "
            "leave --socket out to look for running nodes",
            path);
    case TRP_ETIMEDOUT:
        return trpi_cli_fail(
            TRPI_CTL_EXIT_TIMEOUT,
            "the node at %s does not accept: stopped (SIGSTOP), or it hangs%s", path,
            cli->order != NULL ? "; not confirmed by the node: nothing was ordered" : "");
    case TRP_ECONN:
        return trpi_cli_fail(
            TRPI_CTL_EXIT_UNREACHABLE,
            "cannot reach a node: %s: no process listens there (the node that made it has ended)",
            path);
    default:
        return trpi_cli_fail(TRPI_CTL_EXIT_UNREACHABLE, "cannot reach a node: %s: %s", path,
                             strerror(errno));
    }
}

static int
connect_found(trpi_cli *cli, uint32_t timeout_ms)
{
    char dirs[TRPI_CTL_DIRS_MAX][TRPI_CTL_PATH_BYTES];
    size_t dirs_count = trpi_ctl_dirs(dirs);
    const char *system = trpi_cli_text(cli, TRPI_CLI_SYSTEM);
    trpi_ctl_found found;
    trp_err err = trpi_ctl_find(dirs, dirs_count, system, timeout_ms, &found, &cli->fd);
    char what[128];
    switch (err) {
    case TRP_OK:
        memcpy(cli->path, found.path, sizeof cli->path);
        return 0;
    case TRP_ELIMIT:
        return trpi_cli_fail(
            TRPI_CTL_EXIT_USAGE,
            "nodes of several systems run here: %s\n  try        --system NAME (or TROUPE_SYSTEM)",
            found.systems);
    case TRP_EPERM:
    case TRP_ESTATE:
    case TRP_ETIMEDOUT:
        return fail_connect(cli, err, found.path);
    default:
        (void)snprintf(what, sizeof what, "no node%s%.63s runs on this machine",
                       system != NULL ? " of system " : "", system != NULL ? system : "");
        return fail_no_node(what, dirs, dirs_count, found.stale_count);
    }
}

/* A system that the command line names goes before a socket that the environment names. */
const char *
trpi_cli_socket_of(const trpi_cli *cli)
{
    bool from_env = (cli->from_env & TRPI_CLI_BIT(SOCKET)) != 0;
    bool named = trpi_cli_has(cli, TRPI_CLI_SYSTEM) && (cli->from_env & TRPI_CLI_BIT(SYSTEM)) == 0;
    return from_env && named ? NULL : trpi_cli_text(cli, TRPI_CLI_SOCKET);
}

int
trpi_cli_connect(trpi_cli *cli)
{
    if (cli->fd >= 0) {
        return 0;
    }
    uint32_t timeout_ms = cli->timeout_ms > 0 ? cli->timeout_ms : TRPI_CTL_TIMEOUT_MS_DEFAULT;
    bool again = cli->path[0] != '\0'; /* to the same node */
    const char *path = again ? cli->path : trpi_cli_socket_of(cli);
    if (path == NULL) {
        return connect_found(cli, timeout_ms);
    }
    trp_err err = trpi_ctl_open(path, timeout_ms, &cli->fd);
    if (again && (err == TRP_ENOENT || err == TRP_ECONN)) {
        return trpi_cli_fail(TRPI_CTL_EXIT_UNREACHABLE, "the node at %s has ended or crashed",
                             path);
    }
    if (err != TRP_OK) {
        return fail_connect(cli, err, path);
    }
    if (!again) {
        (void)snprintf(cli->path, sizeof cli->path, "%s", path);
    }
    return 0;
}

void
trpi_cli_disconnect(trpi_cli *cli)
{
    if (cli->fd >= 0) {
        (void)close(cli->fd); /* the answer was read or is lost */
        cli->fd = -1;
    }
    trpi_buffer_clear(&cli->in);
}

cJSON *
trpi_cli_request_new(const trpi_cli *cli, const char *cmd)
{
    cJSON *request = cJSON_CreateObject();
    bool done = trpi_json_add_i64(request, "v", TRPI_CTL_VERSION) &&
                trpi_json_add_text(request, "cmd", cmd) &&
                trpi_json_add_i64(request, "timeoutMs", cli->timeout_ms);
    if (!done) {
        cJSON_Delete(request);
        return NULL;
    }
    return request;
}

/* ---- orders (client-C4) ---------------------------------------------------------------------- */

#define UNCONFIRMED "not confirmed by the node"
#define DROPPED "it drops the order unless it has begun it; `troupe members` shows what it did"

static volatile sig_atomic_t is_confirmed;
static char interrupted_text[256]; /* of the order that was confirmed */

static void
words_write(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text)); /* no other place for an error */
}

static void
on_interrupt(int signal_number)
{
    words_write(is_confirmed ? interrupted_text
                             : "\ntroupe: interrupted; " UNCONFIRMED ": " DROPPED "\n");
    _exit(128 + signal_number);
}

void
trpi_cli_order_watch(const trpi_cli *cli)
{
    struct sigaction action = { .sa_handler = on_interrupt };
    (void)snprintf(interrupted_text, sizeof interrupted_text, "\ntroupe: interrupted; %s\n",
                   cli->order);
    is_confirmed = 0;
    (void)sigaction(SIGINT, &action, NULL); /* EINVAL only for a wrong number */
    (void)sigaction(SIGTERM, &action, NULL);
}

static int
disconnect_with(trpi_cli *cli, int code)
{
    trpi_cli_disconnect(cli);
    return code;
}

static int
fail_lost(trpi_cli *cli)
{
    if (cli->order != NULL && !is_confirmed) {
        return disconnect_with(cli,
                               trpi_cli_fail(TRPI_CTL_EXIT_TIMEOUT,
                                             UNCONFIRMED " at %s: it closed the connection, it has "
                                                         "ended or crashed",
                                             cli->path));
    }
    return disconnect_with(
        cli,
        trpi_cli_fail(TRPI_CTL_EXIT_UNREACHABLE,
                      "the node at %s closed the connection: it has ended or crashed", cli->path));
}

static int
fail_late(trpi_cli *cli)
{
    double limit_s = (double)(cli->timeout_ms > 0 ? cli->timeout_ms : cli->first_ms) / 1000;
    int code = TRPI_CTL_EXIT_TIMEOUT;
    char process[TRPI_CTL_PROCESS_BYTES];
    trpi_ctl_process_tell(cli->fd, process);
    if (cli->holds_late) {
        (void)snprintf(cli->late, sizeof cli->late, "no answer from the node at %s%s", cli->path,
                       process);
    } else if (cli->order != NULL && !is_confirmed) {
        (void)trpi_cli_fail(code, UNCONFIRMED " at %s within %.1f s%s; " DROPPED, cli->path,
                            limit_s, process);
    } else if (cli->order != NULL) {
        (void)trpi_cli_fail(code, "no end within %.1f s; %s", limit_s, cli->order);
    } else {
        (void)trpi_cli_fail(code, "no answer from the node at %s within %.1f s%s", cli->path,
                            limit_s, process);
    }
    return disconnect_with(cli, code);
}

/* A stream without an end of its own: print a note, and go on. */
static void
note_late(trpi_cli *cli)
{
    char process[TRPI_CTL_PROCESS_BYTES];
    trpi_ctl_process_tell(cli->fd, process);
    trpi_cli_note(cli, "no answer yet from the node at %s%s", cli->path, process);
    cli->first_due_ms = 0;
}

/* Wait until fd is ready for `events`. 0, or the exit code. deadline_ms 0: no limit. */
static int
wait_ready(trpi_cli *cli, short events, uint64_t deadline_ms)
{
    for (;;) {
        uint64_t now = trpi_cli_now_ms();
        uint64_t due_ms = cli->first_due_ms != 0 ? cli->first_due_ms : deadline_ms;
        if (due_ms != 0 && now >= due_ms) {
            if (cli->first_due_ms == 0 || !cli->first_is_note) {
                return fail_late(cli);
            }
            note_late(cli);
            continue;
        }
        struct pollfd polls[2] = { { .fd = cli->fd, .events = events },
                                   { .fd = STDOUT_FILENO, .events = 0 } };
        int ready = poll(polls, 2, due_ms == 0 ? -1 : (int)(due_ms - now));
        if (ready < 0 && errno != EINTR) {
            return disconnect_with(
                cli, trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "poll: %s", strerror(errno)));
        }
        if (ready > 0 && polls[0].revents != 0) {
            return 0;
        }
        if (ready > 0 && (polls[1].revents & POLLERR) != 0) { /* client-C2 */
            _exit(0);
        }
    }
}

static int
send_all(trpi_cli *cli, const uint8_t *data, size_t bytes, uint64_t deadline_ms)
{
    while (bytes > 0) {
        ssize_t sent = send(cli->fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) {
            data += sent;
            bytes -= (size_t)sent;
            continue;
        }
        if (errno == EPIPE || errno == ECONNRESET) {
            return 0; /* the node may have sent the reason before it closed: read on */
        }
        if (errno != EAGAIN && errno != EINTR) {
            return fail_lost(cli);
        }
        int code = wait_ready(cli, POLLOUT, deadline_ms);
        if (code != 0) {
            return code;
        }
    }
    return 0;
}

static int
send_request(trpi_cli *cli, cJSON *request, uint64_t deadline_ms)
{
    char *text = request != NULL ? trpi_json_print(request) : NULL;
    cJSON_Delete(request);
    if (text == NULL) {
        return trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
    }
    size_t bytes = strlen(text);
    int code = 0;
    if (bytes > TRPI_CTL_REQUEST_BYTES_MAX) {
        code =
            trpi_cli_fail(TRPI_CTL_EXIT_DATA,
                          "the request takes %zu bytes; at most %u go through the control socket",
                          bytes, TRPI_CTL_REQUEST_BYTES_MAX);
    } else {
        uint8_t header[TRPI_CTL_HEADER_BYTES];
        trpi_ctl_header_encode(header, (uint32_t)bytes);
        code = send_all(cli, header, sizeof header, deadline_ms);
        code = code != 0 ? code : send_all(cli, (const uint8_t *)text, bytes, deadline_ms);
    }
    cJSON_free(text);
    return code;
}

/* Replace control characters, which a node or its peers may have sent, and which a terminal obeys.
 * In JSON the lower ones are escaped; texts of actors have lines and tabs. */
static void
text_clean(char *text, bool lines, bool escaped)
{
    for (unsigned char *c = (unsigned char *)text; *c != '\0'; c++) {
        bool kept = escaped || (lines && (*c == '\n' || *c == '\t'));
        if ((*c < ' ' && !kept) || *c == 0x7f) {
            *c = '?';
        } else if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) { /* U+0080 .. U+009F */
            c[0] = c[1] = '?';
        }
    }
}

/* Depth is bounded by the parser. */
static void
items_clean(cJSON *json, bool escaped)
{
    for (cJSON *item = json; item != NULL; item = item->next) {
        if (item->string != NULL) {
            text_clean(item->string, false, escaped);
        }
        if (item->valuestring != NULL) {
            text_clean(item->valuestring, item->string != NULL && strcmp(item->string, "text") == 0,
                       escaped);
        }
        items_clean(item->child, escaped);
    }
}

void
trpi_cli_object_clean(const trpi_cli *cli, cJSON *object)
{
    items_clean(object, cli->output == TRPI_CLI_JSON || cli->output == TRPI_CLI_JSONL);
}

/* Give the next object of the connection. */
static int
object_receive(trpi_cli *cli, uint64_t deadline_ms, cJSON **ret_object)
{
    for (;;) {
        const uint8_t *body = NULL;
        size_t bytes = 0;
        trp_err err = trpi_ctl_frame_decode(cli->in.data, cli->in.count,
                                            TRPI_CTL_RESPONSE_BYTES_MAX, &body, &bytes);
        if (err == TRP_OK) {
            err = trpi_json_parse((const char *)body, bytes, ret_object, NULL);
            trpi_buffer_drop(&cli->in, TRPI_CTL_HEADER_BYTES + bytes);
            if (err == TRP_OK && cJSON_IsObject(*ret_object)) {
                trpi_cli_object_clean(cli, *ret_object);
                return 0;
            }
            if (err == TRP_OK) {
                cJSON_Delete(*ret_object);
            }
            err = TRP_EDATA;
        }
        if (err != TRP_EAGAIN) {
            return disconnect_with(cli,
                                   trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL,
                                                 "the program at %s is not a troupe node of this "
                                                 "version: bad frame (%zu bytes)",
                                                 cli->path, bytes));
        }
        int code = wait_ready(cli, POLLIN, deadline_ms);
        if (code != 0) {
            return code;
        }
        if (trpi_buffer_reserve(&cli->in, READ_BYTES,
                                TRPI_CTL_RESPONSE_BYTES_MAX + 2 * READ_BYTES) != TRP_OK) {
            return disconnect_with(cli, trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory"));
        }
        ssize_t got = recv(cli->fd, cli->in.data + cli->in.count, READ_BYTES, MSG_DONTWAIT);
        if (got > 0) {
            cli->in.count += (size_t)got;
        } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            return fail_lost(cli);
        }
    }
}

/* Hold SIGINT back; give the mask from before. */
static void
interrupts_hold(const trpi_cli *cli, sigset_t *ret_kept)
{
    sigset_t held;
    (void)sigemptyset(&held);
    if (cli->order != NULL) {
        (void)sigaddset(&held, SIGINT);
        (void)sigaddset(&held, SIGTERM);
    }
    (void)pthread_sigmask(SIG_BLOCK, &held, ret_kept); /* EINVAL only for a wrong word */
}

static bool
progress_print(trpi_cli *cli, const cJSON *object, void *arg)
{
    (void)arg;
    const char *text = trpi_json_get_text(object, "progress");
    if (text != NULL && !cli->quiet && (cli->verbose || isatty(STDERR_FILENO))) {
        (void)fprintf(stderr, "%s\n", text);
    }
    return true;
}

/* Send and read until the final object, and give that unchanged. */
static int
request_run(trpi_cli *cli, cJSON *request, trpi_cli_stream_fn stream, void *arg, cJSON **ret_final)
{
    if (trpi_cli_has(cli, TRPI_CLI_VIA)) {
        int via_code = trpi_cli_via_run(cli, request, ret_final);
        trpi_cli_object_clean(cli, *ret_final);
        return via_code;
    }
    if (trpi_cli_is_remote(cli)) {
        int code = strcmp(trpi_cli_get(request, "cmd"), "events") == 0
                       ? trpi_cli_endpoint_events(cli, request, stream, arg, ret_final)
                       : trpi_cli_endpoint_run(cli, request, ret_final);
        trpi_cli_object_clean(cli, *ret_final);
        return code;
    }
    *ret_final = NULL;
    uint64_t deadline_ms =
        cli->timeout_ms == 0 ? 0 : trpi_cli_now_ms() + cli->timeout_ms + TRPI_CLI_GRACE_MS;
    int code = trpi_cli_connect(cli);
    if (code != 0) {
        cJSON_Delete(request);
        return code;
    }
    sigset_t kept;
    interrupts_hold(cli, &kept); /* client-C4 */
    code = send_request(cli, request, deadline_ms);
    if (code == 0 && cli->order != NULL) {
        trpi_cli_order_watch(cli);
    }
    (void)pthread_sigmask(SIG_SETMASK, &kept, NULL);
    while (code == 0) {
        cJSON *object = NULL;
        code = object_receive(cli, deadline_ms, &object);
        if (code != 0) {
            return code;
        }
        cli->first_due_ms = 0;
        if (cJSON_HasObjectItem(object, "ok")) {
            *ret_final = object;
            return 0;
        }
        if (cJSON_HasObjectItem(object, "ordered")) {
            is_confirmed = 1;
            cJSON_Delete(object);
            if (cli->verbose) {
                trpi_cli_note(cli, "ordered");
            }
            continue;
        }
        bool go_on = (stream != NULL ? stream : progress_print)(cli, object, arg);
        cJSON_Delete(object);
        if (!go_on) {
            return disconnect_with(cli, 0); /* the node ends the request when its client goes */
        }
    }
    return code;
}

static int
final_exit(const cJSON *final)
{
    double code = trpi_cli_get_number(final, "exit", TRPI_CTL_EXIT_INTERNAL);
    return code >= 1 && code <= 255 ? (int)code : TRPI_CTL_EXIT_INTERNAL;
}

int
trpi_cli_call(trpi_cli *cli, cJSON *request, trpi_cli_stream_fn stream, void *arg,
              cJSON **ret_final)
{
    int code = request_run(cli, request, stream, arg, ret_final);
    if (code != 0 || *ret_final == NULL || trpi_cli_get_true(*ret_final, "ok")) {
        return code;
    }
    code = trpi_cli_fail(final_exit(*ret_final), "%s", trpi_cli_get(*ret_final, "error"));
    const char *hint = trpi_json_get_text(*ret_final, "hint");
    if (hint != NULL && hint[0] != '\0') {
        (void)fprintf(stderr, "  hint: %s\n", hint);
    }
    cJSON_Delete(*ret_final);
    *ret_final = NULL;
    return code;
}

int
trpi_cli_call_quiet(trpi_cli *cli, cJSON *request, cJSON **ret_final)
{
    int code = request_run(cli, request, NULL, NULL, ret_final);
    return code != 0 || trpi_cli_get_true(*ret_final, "ok") ? code : final_exit(*ret_final);
}

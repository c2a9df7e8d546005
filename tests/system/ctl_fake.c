/* ctl_fake.c - a node's control socket with canned replies, for tests of the client alone.
 *
 *   ctl_fake [--once] SOCKET REPLIES
 *                               serve; REPLIES has lines "CMD OBJECT": a request CMD is answered by
 *   the
 *                               objects of its lines, in order, up to the first one with "ok".
 *                               Instead of an object: !close, !hang, !garbage, !huge, !empty.
 *                               Each request is printed on stdout, one line.
 *                               --once: close each connection behind its first answer.
 *   ctl_fake --deaf SOCKET      listen, with room for one connection, and never accept
 *   ctl_fake --yes COMMAND...   run it at a terminal where y has been typed
 *   ctl_fake --check            exit 0 when each line of stdin, or stdin whole, is a JSON value
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/json.h"
#include "cluster/node/ctl_proto.h"

#define LINES_MAX 256
static char *lines[LINES_MAX];
static size_t lines_count;
static bool once;

static int
die(const char *text)
{
    perror(text);
    exit(70);
}

static void
replies_read(const char *path)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t capacity = 0;
    if (file == NULL) {
        die(path);
    }
    while (lines_count < LINES_MAX && getline(&line, &capacity, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        lines[lines_count++] = strdup(line);
    }
    free(line);
    fclose(file);
}

static void
send_frame(int fd, const char *body)
{
    uint8_t header[TRPI_CTL_HEADER_BYTES];
    trpi_ctl_header_encode(header, (uint32_t)strlen(body));
    (void)!send(fd, header, sizeof header,
                MSG_NOSIGNAL); /* the client may be gone: a test of its own */
    (void)!send(fd, body, strlen(body), MSG_NOSIGNAL);
}

/* False: the connection is to be closed. */
static bool
special(int fd, const char *what)
{
    if (strcmp(what, "!hang") == 0) {
        char byte;
        (void)!recv(fd, &byte, 1, 0); /* until the client gives up */
    } else if (strcmp(what, "!garbage") == 0) {
        send_frame(fd, "this is no JSON");
    } else if (strcmp(what, "!huge") == 0) {
        uint8_t header[TRPI_CTL_HEADER_BYTES] = { 0xff, 0xff, 0xff, 0xff };
        (void)!send(fd, header, sizeof header, MSG_NOSIGNAL);
    } else if (strcmp(what, "!empty") == 0) {
        uint8_t header[TRPI_CTL_HEADER_BYTES] = { 0 };
        (void)!send(fd, header, sizeof header, MSG_NOSIGNAL);
    }
    return false;
}

static bool
answer(int fd, const char *cmd)
{
    size_t length = strlen(cmd);
    for (size_t index = 0; index < lines_count; index++) {
        if (strncmp(lines[index], cmd, length) != 0 || lines[index][length] != ' ') {
            continue;
        }
        const char *reply = lines[index] + length + 1;
        if (reply[0] == '!') {
            return special(fd, reply);
        }
        send_frame(fd, reply);
        if (strncmp(reply, "{\"ok\"", 5) == 0) {
            return true;
        }
    }
    return false; /* a stream without an end: the node goes away */
}

static void
serve(int fd)
{
    static uint8_t data[TRPI_CTL_HEADER_BYTES + TRPI_CTL_REQUEST_BYTES_MAX];
    size_t count = 0;
    for (;;) {
        const uint8_t *body;
        size_t bytes = 0;
        if (trpi_ctl_frame_decode(data, count, TRPI_CTL_REQUEST_BYTES_MAX, &body, &bytes) ==
            TRP_OK) {
            cJSON *request = NULL;
            printf("%.*s\n", (int)bytes, (const char *)body);
            fflush(stdout);
            bool good = trpi_json_parse((const char *)body, bytes, &request, NULL) == TRP_OK &&
                        answer(fd, trpi_json_get_text(request, "cmd"));
            cJSON_Delete(request);
            if (!good || once) {
                break;
            }
            count -= TRPI_CTL_HEADER_BYTES + bytes;
            memmove(data, body + bytes, count);
            continue;
        }
        ssize_t got = recv(fd, data + count, sizeof data - count, 0);
        if (got <= 0) {
            break;
        }
        count += (size_t)got;
    }
    close(fd);
}

static int
check_json(void)
{
    char *text = NULL;
    size_t capacity = 0;
    ssize_t bytes = getdelim(&text, &capacity, EOF, stdin);
    cJSON *json = NULL;
    if (bytes > 0 && trpi_json_parse(text, (size_t)bytes, &json, NULL) == TRP_OK) {
        cJSON_Delete(json);
        free(text);
        return 0;
    }
    char *save = NULL;
    bool good = bytes > 0;
    for (char *line = good ? strtok_r(text, "\n", &save) : NULL; line != NULL && good;
         line = strtok_r(NULL, "\n", &save)) {
        good = trpi_json_parse(line, strlen(line), &json, NULL) == TRP_OK;
        if (good) {
            cJSON_Delete(json);
        }
    }
    free(text);
    return good ? 0 : 1;
}

static int
run_with_yes(char **command)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY); /* stays open: its end would hang up */
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0 ||
        write(master, "y\n", 2) != 2) {
        return die("terminal");
    }
    int terminal = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0 || dup2(terminal, STDIN_FILENO) < 0) {
        return die("terminal");
    }
    execv(command[0], command);
    return die(command[0]);
}

static int
listen_at(const char *path, int backlog)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* The socket's name appears when it listens, not before: a client that sees it can connect. */
    snprintf(address.sun_path, sizeof address.sun_path, "%s-", path);
    if (bind(listener, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, backlog) != 0 || rename(address.sun_path, path) != 0) {
        return die(path);
    }
    return listener;
}

int
main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    once = strcmp(mode, "--once") == 0;
    if (argc == 2 && strcmp(mode, "--check") == 0) {
        return check_json();
    }
    if (argc > 2 && strcmp(mode, "--yes") == 0) {
        return run_with_yes(argv + 2);
    }
    if (argc == 3 && strcmp(mode, "--deaf") == 0) {
        return listen_at(argv[2], 0) < 0 || pause();
    }
    if (argc != 3 + once) {
        fprintf(stderr, "usage: ctl_fake [--once] SOCKET REPLIES | ctl_fake --deaf SOCKET | "
                        "ctl_fake --yes COMMAND... | ctl_fake --check\n");
        return 64;
    }
    replies_read(argv[2 + once]);
    int listener = listen_at(argv[1 + once], 16);
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd >= 0) {
            serve(fd);
        }
    }
}

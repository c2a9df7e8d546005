/* nng_peer.c - another program of nng: a plain socket, which knows nothing of actors and does what
 * lines of its input say. tests/unit/endpoint/peer.h starts it.
 *
 *     nng_peer KIND listen|dial URL [PREFIX ...]      -> "at URL" when it listens, or is connected
 *     put TEXT                     send it            -> "ok"
 *     get MS                       receive            -> "got TEXT", with \xHH for what is not text
 *     fill BYTES COUNT MS          send so many, until one waits for MS      -> "sent N"
 *     peers N                      wait until N have connected, since the start    -> "ok"
 *
 * A failed call is answered by nng's sentence. It ends with its input, and closes nothing before:
 * nng-library-N7.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nng/nng.h>
#include <nng/protocol/bus0/bus.h>
#include <nng/protocol/pair0/pair.h>
#include <nng/protocol/pipeline0/pull.h>
#include <nng/protocol/pipeline0/push.h>
#include <nng/protocol/pubsub0/pub.h>
#include <nng/protocol/pubsub0/sub.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <nng/protocol/survey0/respond.h>
#include <nng/protocol/survey0/survey.h>
#include <nng/supplemental/util/platform.h>
#include <sys/prctl.h>

#include <signal.h>
#include <unistd.h>

enum { WAIT_MS = 60000 };

static const struct {
    const char *name;
    int (*open)(nng_socket *);
} kinds[] = { { "pub", nng_pub0_open },           { "sub", nng_sub0_open },
              { "push", nng_push0_open },         { "pull", nng_pull0_open },
              { "pair", nng_pair0_open },         { "bus", nng_bus0_open },
              { "req", nng_req0_open },           { "rep", nng_rep0_open },
              { "surveyor", nng_surveyor0_open }, { "respondent", nng_respondent0_open } };

static _Atomic uint32_t peers_count;

static void
on_peer(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
    (void)pipe;
    (void)event;
    (void)arg;
    atomic_fetch_add(&peers_count, 1);
}

static void
require(int code, const char *what)
{
    if (code != 0) {
        printf("%s: %s\n", what, nng_strerror(code));
        fflush(stdout);
        _exit(1);
    }
}

static void
answer(int code)
{
    puts(code == 0 ? "ok" : nng_strerror(code));
}

static void
get(nng_socket s, int ms)
{
    uint8_t *data = NULL;
    size_t bytes = 0;
    require(nng_socket_set_ms(s, NNG_OPT_RECVTIMEO, ms), "time");
    int code = nng_recv(s, &data, &bytes, NNG_FLAG_ALLOC);
    if (code != 0) {
        answer(code);
        return;
    }
    fputs("got ", stdout);
    for (size_t i = 0; i < bytes; i++) {
        printf(data[i] < ' ' || data[i] > '~' ? "\\x%02x" : "%c", data[i]);
    }
    putchar('\n');
    nng_free(data, bytes);
}

static void
fill(nng_socket s, size_t bytes, unsigned count, int ms)
{
    char *body = malloc(bytes);
    unsigned sent = 0;
    if (body == NULL) {
        abort();
    }
    memset(body, 'x', bytes);
    require(nng_socket_set_ms(s, NNG_OPT_SENDTIMEO, ms), "time");
    while (sent < count && nng_send(s, body, bytes, 0) == 0) {
        sent++;
    }
    require(nng_socket_set_ms(s, NNG_OPT_SENDTIMEO, WAIT_MS), "time");
    free(body);
    printf("sent %u\n", sent);
}

static void
wait_for_peers(unsigned count)
{
    for (int i = 0; i < WAIT_MS && atomic_load(&peers_count) < count; i++) {
        nng_msleep(1);
    }
    answer(atomic_load(&peers_count) < count ? NNG_ETIMEDOUT : 0);
}

static void
obey(nng_socket s, char *line)
{
    unsigned bytes, count;
    int ms;
    if (strncmp(line, "put ", 4) == 0) {
        answer(nng_send(s, line + 4, strlen(line + 4), 0));
    } else if (sscanf(line, "get %d", &ms) == 1) {
        get(s, ms);
    } else if (sscanf(line, "fill %u %u %d", &bytes, &count, &ms) == 3) {
        fill(s, bytes, count, ms);
    } else if (sscanf(line, "peers %u", &count) == 1) {
        wait_for_peers(count);
    } else {
        printf("not known: %s\n", line);
    }
    fflush(stdout);
}

int
main(int argc, char **argv)
{
    nng_socket s = NNG_SOCKET_INITIALIZER;
    nng_listener listener;
    char line[1024];
    int code = NNG_EINVAL, port;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc < 4) {
        fprintf(stderr, "nng_peer: see the head of its source\n");
        return 64;
    }
    for (size_t i = 0; code != 0 && i < sizeof kinds / sizeof kinds[0]; i++) {
        code = strcmp(kinds[i].name, argv[1]) == 0 ? kinds[i].open(&s) : code;
    }
    require(code, argv[1]);
    require(nng_socket_set_ms(s, NNG_OPT_SENDTIMEO, WAIT_MS), "time");
    require(nng_pipe_notify(s, NNG_PIPE_EV_ADD_POST, on_peer, NULL), "notice");
    if (strcmp(argv[1], "surveyor") == 0) {
        require(nng_socket_set_ms(s, NNG_OPT_SURVEYOR_SURVEYTIME, WAIT_MS), "time");
    }
    for (int i = 4; i < argc; i++) {
        require(nng_socket_set(s, NNG_OPT_SUB_SUBSCRIBE, argv[i], strlen(argv[i])), argv[i]);
    }
    if (strcmp(argv[2], "listen") == 0) {
        require(nng_listen(s, argv[3], &listener, 0), argv[3]);
        bool has_port = nng_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &port) == 0;
        printf("at %.*s", has_port ? (int)(strrchr(argv[3], ':') - argv[3]) : 200, argv[3]);
        printf(has_port ? ":%d\n" : "\n", port);
    } else {
        require(nng_dial(s, argv[3], NULL, 0), argv[3]);
        printf("at %s\n", argv[3]);
    }
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        obey(s, line);
    }
    _exit(0);
}

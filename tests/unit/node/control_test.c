/* control_test.c - the server of the control socket against clients that behave and clients that do
 * not. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"
#include "cluster/node/control.h"
#include "cluster/node/control_socket.h"
#include "cluster/node/ctl_proto.h"
#include "tests/unit/unit.h"

static char directory[] = "/tmp/troupe-control-XXXXXX";
static char path[128];
static atomic_int slow_running;
static trpi_world *world; /* one for all tests */

static bool
is_quick(const trpi_control_request *request)
{
    return request->command == TRPI_CONTROL_VERSION || request->command == TRPI_CONTROL_EVENTS;
}

/* version answers; events streams; ask waits until it is cancelled or its time is over. */
static void
serve(void *arg, trpi_call *call)
{
    (void)arg;
    if (call->request.command == TRPI_CONTROL_EVENTS) {
        trpi_call_stream(call);
        return;
    }
    if (call->request.command == TRPI_CONTROL_ASK) {
        atomic_fetch_add(&slow_running, 1);
        trpi_call_progress(call, "waiting for \"%s\"", call->request.path);
        while (trpi_call_left_ms(call) > 0 && trpi_call_pause(call, 5)) {
        }
        atomic_fetch_sub(&slow_running, 1);
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_TIMEOUT, "try later", "no reply");
        return;
    }
    trpi_call_answer(call, trpi_call_reply());
}

static trpi_control *
server_open_in(trpi_world *in)
{
    trpi_control *control = NULL;
    int pid = 0;
    if (!world) {
        UNIT_REQUIRE(trpi_world_real_new(&world) == TRP_OK);
    }
    trpi_control_options options = { path, in ? in : world, is_quick, serve, NULL };
    if (!path[0]) {
        UNIT_REQUIRE(mkdtemp(directory) != NULL);
        snprintf(path, sizeof path, "%s/demo@1.sock", directory);
    }
    UNIT_REQUIRE(trpi_control_open(&options, &control, &pid) == TRP_OK);
    UNIT_REQUIRE(trpi_control_begin(control) == TRP_OK);
    return control;
}

static trpi_control *
server_open(void)
{
    return server_open_in(NULL);
}

static int
client_open(void)
{
    int fd = -1;
    struct timeval limit = { 60, 0 };
    UNIT_REQUIRE(trpi_ctl_connect(path, 60000, &fd) == TRP_OK);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
}

static void
client_send(int fd, const char *text)
{
    uint8_t header[TRPI_CTL_HEADER_BYTES];
    trpi_ctl_header_encode(header, (uint32_t)strlen(text));
    UNIT_TRUE(send(fd, header, sizeof header, MSG_NOSIGNAL) == sizeof header);
    UNIT_TRUE(send(fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
}

/* The next object as text, "" at the end of the stream. */
static char *
client_read(int fd)
{
    static char text[65536];
    uint8_t header[TRPI_CTL_HEADER_BYTES];
    text[0] = '\0';
    if (recv(fd, header, sizeof header, MSG_WAITALL) == sizeof header) {
        size_t bytes = (size_t)header[0] | (size_t)header[1] << 8 | (size_t)header[2] << 16;
        if (bytes < sizeof text && recv(fd, text, bytes, MSG_WAITALL) == (ssize_t)bytes) {
            text[bytes] = '\0';
        }
    }
    return text;
}

static void
requests_on_one_connection_are_answered_one_after_the_other(void)
{
    trpi_control *control = server_open();
    int fd = client_open();
    for (int i = 0; i < 3; i++) {
        client_send(fd, "{\"v\":1,\"cmd\":\"version\"}");
    }
    for (int i = 0; i < 3; i++) {
        UNIT_TEXT(client_read(fd), "{\"ok\":true}");
    }
    close(fd);
    trpi_control_close(control, 100, 100);
}

static void
socket_has_its_mode_and_goes_at_the_end(void)
{
    trpi_control *control = server_open();
    struct stat file;
    UNIT_EQUAL(stat(path, &file), 0);
    UNIT_EQUAL(file.st_mode & 0777, 0660);
    trpi_control_close(control, 100, 100);
    UNIT_TRUE(stat(path, &file) != 0);
}

static void
live_socket_is_refused_and_stale_one_replaced(void)
{
    trpi_control *control = server_open(), *second = NULL;
    trpi_control_options options = { path, world, is_quick, serve, NULL };
    int pid = 0;
    UNIT_EQUAL(trpi_control_open(&options, &second, &pid), TRP_EEXIST);
    UNIT_EQUAL(pid, getpid());
    char kept[160];
    snprintf(kept, sizeof(kept), "%s.kept", path);
    UNIT_EQUAL(rename(path, kept), 0);
    trpi_control_close(control, 100, 100);
    UNIT_EQUAL(rename(kept, path), 0); /* as a killed node leaves it */
    control = server_open();
    int fd = client_open();
    client_send(fd, "{\"cmd\":\"version\"}");
    UNIT_TEXT(client_read(fd), "{\"ok\":true}");
    close(fd);
    trpi_control_close(control, 100, 100);
}

/* One that was stopped (SIGSTOP), when its queue has filled: it lives, and keeps its file. */
static void
a_node_that_does_not_accept_is_live(void)
{
    int listener = -1, other = -1, pid = -1, fds[128];
    unsigned count = 0;
    trpi_control_close(server_open(), 0, 0); /* so that there is a path */
    UNIT_REQUIRE(trpi_control_socket_listen(path, &listener, &pid) == TRP_OK);
    while (count < 128 && trpi_ctl_connect(path, 0, &fds[count]) == TRP_OK) {
        count++;
    }
    UNIT_TRUE(count < 128);
    UNIT_EQUAL(trpi_control_socket_listen(path, &other, &pid), TRP_EEXIST);
    UNIT_EQUAL(pid, 0);
    while (count > 0) {
        close(fds[--count]);
    }
    close(listener);
    UNIT_FALSE(trpi_control_is_live(path, &pid));
    (void)unlink(path);
}

static void
garbage_is_refused_and_the_connection_closed(void)
{
    static const struct {
        const char *bytes;
        size_t count;
        const char *answer;
    } cases[] = {
        { "\0\0\0\0", 4, "{\"ok\":false,\"exit\":65,\"error\":\"a request of 0 bytes\"}" },
        { "\1\0\x10\0{", 5,
          "{\"ok\":false,\"exit\":65,\"error\":\"the request is larger than 1048576 bytes\"}" },
        { "\xff\xff\xff\xff", 4,
          "{\"ok\":false,\"exit\":65,\"error\":\"the request is larger than 1048576 bytes\"}" },
        { "\3\0\0\0{\"a", 7,
          "{\"ok\":false,\"exit\":65,\"error\":\"the request is no JSON: error at byte 2\"}" },
        { "\2\0\0\0[]", 6,
          "{\"ok\":false,\"exit\":65,\"error\":\"the request is no JSON object\"}" },
    };
    trpi_control *control = server_open();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int fd = client_open();
        UNIT_TRUE(send(fd, cases[i].bytes, cases[i].count, MSG_NOSIGNAL) ==
                  (ssize_t)cases[i].count);
        UNIT_TEXT(client_read(fd), cases[i].answer);
        UNIT_TEXT(client_read(fd), "");
        close(fd);
    }
    trpi_control_close(control, 100, 100);
}

static void
request_in_single_bytes_is_put_together(void)
{
    trpi_control *control = server_open();
    int fd = client_open();
    static const char request[] = "\x11\0\0\0{\"cmd\":\"version\"}";
    for (size_t i = 0; i < sizeof request - 1; i++) {
        UNIT_EQUAL(send(fd, request + i, 1, MSG_NOSIGNAL), 1);
    }
    UNIT_TEXT(client_read(fd), "{\"ok\":true}");
    close(fd);
    trpi_control_close(control, 100, 100);
}

static void
slow_call_reports_progress_and_ends_in_time(void)
{
    trpi_control *control = server_open();
    int fd = client_open(), other = client_open();
    client_send(fd, "{\"cmd\":\"ask\",\"path\":\"/user/a\",\"text\":\"x\",\"timeoutMs\":300}");
    UNIT_TEXT(client_read(fd), "{\"progress\":\"waiting for \\\"/user/a\\\"\"}");
    client_send(other, "{\"cmd\":\"version\"}"); /* the others do not wait for it */
    UNIT_TEXT(client_read(other), "{\"ok\":true}");
    UNIT_TEXT(client_read(fd),
              "{\"ok\":false,\"exit\":75,\"error\":\"no reply\",\"hint\":\"try later\"}");
    client_send(fd, "{\"cmd\":\"version\"}");
    UNIT_TEXT(client_read(fd), "{\"ok\":true}");
    close(fd);
    close(other);
    trpi_control_close(control, 100, 100);
}

/* A clock that others overtake: a thread that reads it has an old time when it goes on. */
static uint64_t
late_mono_ns(trpi_world *late)
{
    struct timespec pause = { 0, 200000 };
    uint64_t now = trpi_world_mono_ns(world);
    (void)late;
    (void)nanosleep(&pause, NULL);
    return now;
}

static void
an_answer_arrives_whatever_the_poll_thread_does_at_that_moment(void)
{
    static const trpi_world_ops ops = { .name = "late", .mono_ns = late_mono_ns };
    trpi_world late = { .ops = &ops };
    trpi_control *control = server_open_in(&late);
    int other = client_open();
    for (int i = 0; i < 30; i++) {
        int fd = client_open();
        client_send(fd, "{\"cmd\":\"ask\",\"path\":\"/user/a\",\"text\":\"x\",\"timeoutMs\":10}");
        for (int k = 0; k < 10; k++) { /* so that it has something to do meanwhile */
            client_send(other, "{\"v\":1,\"cmd\":\"version\"}");
            UNIT_TEXT(client_read(other), "{\"ok\":true}");
        }
        UNIT_TRUE(strstr(client_read(fd), "progress") != NULL);
        UNIT_TRUE(strstr(client_read(fd), "no reply") != NULL);
        (void)close(fd);
    }
    (void)close(other);
    trpi_control_close(control, 100, 100);
}

static void
client_that_goes_cancels_its_call(void)
{
    trpi_control *control = server_open();
    int fd = client_open();
    client_send(fd, "{\"cmd\":\"ask\",\"path\":\"/a\",\"text\":\"x\",\"timeoutMs\":3600000}");
    UNIT_WAIT(atomic_load(&slow_running) == 1, 60000);
    close(fd);
    UNIT_WAIT(atomic_load(&slow_running) == 0, 60000);
    trpi_control_close(control, 100, 100);
}

static void
close_ends_calls_and_streams(void)
{
    trpi_control *control = server_open();
    int fd = client_open(), stream = client_open();
    client_send(fd, "{\"cmd\":\"ask\",\"path\":\"/a\",\"text\":\"x\",\"timeoutMs\":3600000}");
    client_send(stream, "{\"cmd\":\"events\"}");
    UNIT_WAIT(atomic_load(&slow_running) == 1, 60000);
    UNIT_TEXT(client_read(stream), "{\"progress\":\"subscribed\"}");
    trpi_control_close(control, 100, 60000); /* the call is given up, what follows is written */
    UNIT_TEXT(client_read(stream), "{\"ok\":false,\"exit\":69,\"error\":\"the node is stopping\"}");
    (void)client_read(fd); /* the progress */
    UNIT_TEXT(client_read(fd),
              "{\"ok\":false,\"exit\":75,\"error\":\"no reply\",\"hint\":\"try later\"}");
    close(fd);
    close(stream);
}

static void
events_go_to_the_streams_that_asked_for_their_type(void)
{
    trpi_control *control = server_open();
    int all = client_open(), some = client_open();
    client_send(all, "{\"cmd\":\"events\"}");
    client_send(some, "{\"cmd\":\"events\",\"types\":[\"MemberUp\"]}");
    UNIT_TEXT(client_read(all), "{\"progress\":\"subscribed\"}");
    UNIT_TEXT(client_read(some), "{\"progress\":\"subscribed\"}");
    UNIT_TRUE(trpi_control_has_streams(control));
    trpi_control_publish(control, 0, "{\"event\":0}");
    trpi_control_publish(control, 2, "{\"event\":2}");
    UNIT_TEXT(client_read(all), "{\"event\":0}");
    UNIT_TEXT(client_read(all), "{\"event\":2}");
    UNIT_TEXT(client_read(some), "{\"event\":2}");
    close(all);
    close(some);
    UNIT_WAIT(!trpi_control_has_streams(control), 60000);
    trpi_control_close(control, 100, 100);
}

/* A stream must not continue after a lost event. */
static void
a_stream_whose_event_finds_no_memory_ends_with_an_error(void)
{
    trpi_control *control = server_open();
    int all = client_open(), some = client_open();
    client_send(all, "{\"cmd\":\"events\"}");
    client_send(some, "{\"cmd\":\"events\",\"types\":[\"MemberUp\"]}");
    UNIT_TEXT(client_read(all), "{\"progress\":\"subscribed\"}");
    UNIT_TEXT(client_read(some), "{\"progress\":\"subscribed\"}");
    trpi_control_publish(control, 0, NULL);
    trpi_control_publish(control, 2, "{\"event\":2}");
    UNIT_TEXT(client_read(all), "{\"ok\":false,\"exit\":70,\"error\":\"out of memory\"}");
    UNIT_TEXT(client_read(all), "");
    UNIT_TEXT(client_read(some), "{\"event\":2}");
    close(all);
    close(some);
    trpi_control_close(control, 100, 100);
}

static void
slow_client_of_events_is_cut_off_at_the_limit(void)
{
    trpi_control *control = server_open();
    int fd = client_open();
    char *event = malloc(32768);
    UNIT_REQUIRE(event != NULL);
    memset(event, ' ', 32767);
    event[0] = '{';
    event[32766] = '}';
    event[32767] = '\0';
    client_send(fd, "{\"cmd\":\"events\"}");
    (void)client_read(fd);
    for (unsigned i = 0; i < TRPI_CONTROL_EVENTS_MAX + 64;
         i++) { /* the kernel's buffer takes a few */
        trpi_control_publish(control, 0, event);
    }
    unsigned got = 0;
    while (strncmp(client_read(fd), "{\"ok\"", 5) != 0 && got < TRPI_CONTROL_EVENTS_MAX + 64) {
        got++;
    }
    UNIT_TRUE(got >= TRPI_CONTROL_EVENTS_MAX);
    UNIT_TRUE(got < TRPI_CONTROL_EVENTS_MAX + 64);
    UNIT_TEXT(client_read(fd), "");
    free(event);
    close(fd);
    trpi_control_close(control, 100, 100);
}

static atomic_int carried_answers;

static void
carried_emit(trpi_call *call, const char *text, bool final)
{
    (void)call;
    (void)text;
    atomic_fetch_add(&carried_answers, final);
}

static void
calls_for_other_nodes_are_limited(void)
{
    static const char ask[] = "{\"cmd\":\"ask\",\"path\":\"/user/a\",\"text\":\"x\"}";
    trpi_control *control = server_open();
    trpi_control_refusal refusal;
    trp_err err = TRP_OK;
    atomic_store(&carried_answers, 0);
    for (unsigned i = 0; i <= TRPI_CONTROL_CARRIED_MAX; i++) {
        trpi_call *call = trpi_alloc(sizeof *call);
        UNIT_REQUIRE(call != NULL);
        UNIT_REQUIRE(trpi_control_request_parse((const uint8_t *)ask, sizeof ask - 1,
                                                &call->request, &refusal) == TRP_OK);
        call->emit = carried_emit;
        call->world = world;
        call->start_ns = trpi_world_mono_ns(world);
        call->deadline_ns = call->start_ns + 60000000000u;
        err = trpi_control_run(control, call);
        UNIT_EQUAL(err, i < TRPI_CONTROL_CARRIED_MAX ? TRP_OK : TRP_ELIMIT);
        if (err != TRP_OK) {
            trpi_control_request_fini(&call->request);
            trpi_free(call);
        }
    }
    uint64_t before = trpi_world_mono_ns(world);
    trpi_control_close(control, 0, 0); /* gives them up */
    UNIT_TRUE(trpi_world_mono_ns(world) - before < 30000000000u);
    UNIT_EQUAL(atomic_load(&carried_answers), TRPI_CONTROL_CARRIED_MAX);
}

static void
connections_are_limited(void)
{
    trpi_control *control = server_open();
    int fds[TRPI_CTL_CONNECTIONS_MAX + 1];
    for (unsigned i = 0; i < TRPI_CTL_CONNECTIONS_MAX; i++) {
        fds[i] = client_open();
    }
    client_send(fds[TRPI_CTL_CONNECTIONS_MAX - 1], "{\"cmd\":\"version\"}");
    UNIT_TEXT(client_read(fds[TRPI_CTL_CONNECTIONS_MAX - 1]), "{\"ok\":true}");
    fds[TRPI_CTL_CONNECTIONS_MAX] = client_open();
    UNIT_TEXT(client_read(fds[TRPI_CTL_CONNECTIONS_MAX]),
              "{\"ok\":false,\"exit\":75,\"error\":\"too many control clients\"}");
    for (unsigned i = 0; i <= TRPI_CTL_CONNECTIONS_MAX; i++) {
        close(fds[i]);
    }
    trpi_control_close(control, 100, 100);
    (void)rmdir(directory); /* the last test */
    trpi_world_free(world);
}

/* ---- many that start at once ----------------------------------------------------------------- */

enum { STARTERS = 4, STARTS = 100 };
static pthread_barrier_t at_once;

/* One start; the socket, -1: another one was faster. */
static void *
start_at_once(void *arg)
{
    int *fd = arg, pid = 0;
    *fd = -1;
    (void)pthread_barrier_wait(&at_once);
    trp_err err = trpi_control_socket_listen(path, fd, &pid);
    UNIT_TRUE(err == TRP_OK || err == TRP_EEXIST);
    return NULL;
}

/* Two nodes find a stale file at once: neither removes the file that the other has just made. */
static void
of_nodes_that_start_on_one_path_at_once_one_has_it(void)
{
    trpi_control_close(server_open(), 0, 0); /* so that there is a path */
    UNIT_REQUIRE(pthread_barrier_init(&at_once, NULL, STARTERS) == 0);
    for (int start = 0; start < STARTS; start++) {
        pthread_t threads[STARTERS];
        int fds[STARTERS], winners = 0, pid = 0;
        for (int i = 0; i < STARTERS; i++) {
            UNIT_REQUIRE(pthread_create(&threads[i], NULL, start_at_once, &fds[i]) == 0);
        }
        for (int i = 0; i < STARTERS; i++) {
            (void)pthread_join(threads[i], NULL);
            winners += fds[i] >= 0;
        }
        UNIT_EQUAL(winners, 1);
        UNIT_TRUE(trpi_control_is_live(path, &pid));
        for (int i = 0; i < STARTERS; i++) {
            if (fds[i] >= 0) {
                (void)close(fds[i]); /* the file stays, stale */
            }
        }
    }
    (void)pthread_barrier_destroy(&at_once);
    (void)unlink(path);
}

UNIT_BEGIN("control")
UNIT(requests_on_one_connection_are_answered_one_after_the_other)
UNIT(socket_has_its_mode_and_goes_at_the_end)
UNIT(live_socket_is_refused_and_stale_one_replaced)
UNIT(a_node_that_does_not_accept_is_live)
UNIT(of_nodes_that_start_on_one_path_at_once_one_has_it)
UNIT(garbage_is_refused_and_the_connection_closed)
UNIT(request_in_single_bytes_is_put_together)
UNIT(slow_call_reports_progress_and_ends_in_time)
UNIT(an_answer_arrives_whatever_the_poll_thread_does_at_that_moment)
UNIT(client_that_goes_cancels_its_call)
UNIT(close_ends_calls_and_streams)
UNIT(events_go_to_the_streams_that_asked_for_their_type)
UNIT(a_stream_whose_event_finds_no_memory_ends_with_an_error)
UNIT(slow_client_of_events_is_cut_off_at_the_limit)
UNIT(calls_for_other_nodes_are_limited)
UNIT(connections_are_limited)
UNIT_END

/* control.c - connections of the control socket: one thread polls them all.
 *
 * Why.     A command must be answered while peers are dead and actors are busy, so the server
 *          shares nothing with them but the calls it hands out.
 * Shape.   poll thread:  accept, read frames, check -> serve() at once (quick commands)
 *                                                   -> a thread for the call (the others)
 *          any thread:   emit -> connection's queue of frames -> poll thread writes
 *          A call knows its connection by number: the connection may be gone when the answer comes.
 * Must hold.
 *   control-I1  input buffers are the poll thread's alone; an fd is closed with `lock` held
 *   control-I2  connections, their frames and `calls` are touched with `lock` held
 *   control-I3  serve() is called without the lock
 *   control-I4  close returns after the last call has ended (trpi_control_close)
 * Limits.  TRPI_CTL_CONNECTIONS_MAX, TRPI_CTL_REQUEST_BYTES_MAX, TRPI_CONTROL_EVENTS_MAX,
 *          TRPI_CONTROL_IDLE_MS, TRPI_CONTROL_REQUEST_MS, TRPI_CONTROL_CARRIED_MAX.
 * Cost.    Without connections the thread sleeps in poll without a timeout.
 * Tests.   tests/unit/node/control_test.c
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cluster/node/control.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buffer.h"
#include "base/mutex.h"
#include "cluster/node/control_inner.h"
#include "cluster/node/control_socket.h"
#include "cluster/node/ctl_proto.h"

#define READ_BYTES 16384
#define LINGER_STEP_MS 10u
#define POLL_MS 1000 /* how often idle connections are looked for, while there are any */

static uint64_t
now_ns(const trpi_control *control)
{
    return trpi_world_mono_ns(control->options.world);
}

void
trpi_control_wake(trpi_control *control)
{
    uint64_t one = 1;
    (void)!write(control->wake_fd, &one, sizeof one); /* full means that it is awake */
}

/* ---- frames to a client: with the lock ------------------------------------------------------- */

bool
trpi_control_push(connection *c, const char *text, bool is_event)
{
    size_t bytes = strlen(text);
    out_frame *frame = trpi_alloc(sizeof *frame + TRPI_CTL_HEADER_BYTES + bytes);
    if (!frame) {
        c->dead = true; /* a stream with a hole would be a lie */
        return false;
    }
    frame->bytes = TRPI_CTL_HEADER_BYTES + bytes;
    frame->is_event = is_event;
    trpi_ctl_header_encode(frame->data, (uint32_t)bytes);
    memcpy(frame->data + TRPI_CTL_HEADER_BYTES, text, bytes);
    *c->out_last = frame;
    c->out_last = &frame->next;
    c->events_count += is_event;
    return true;
}

static void
frame_pop(connection *c)
{
    out_frame *frame = c->out_first;
    c->out_first = frame->next;
    if (!c->out_first) {
        c->out_last = &c->out_first;
    }
    c->events_count -= frame->is_event;
    trpi_free(frame);
}

static void
connection_kill(trpi_control *control, connection *c)
{
    pthread_mutex_lock(&control->lock);
    c->dead = true;
    pthread_mutex_unlock(&control->lock);
}

/* Restart the idle time of a connection: something was done for or by its client. */
static void
connection_touch(trpi_control *control, connection *c)
{
    pthread_mutex_lock(&control->lock);
    c->active_ns = now_ns(control);
    pthread_mutex_unlock(&control->lock);
}

connection *
trpi_control_find(trpi_control *control, uint64_t id)
{
    for (connection *c = control->connections; c; c = c->next) {
        if (c->id == id) {
            return c;
        }
    }
    return NULL;
}

/* Has the client closed the connection, or its sending side? Then it does not wait for an
 * answer. */
bool
trpi_control_hung_up(const connection *c)
{
    struct pollfd fd = { c->fd, POLLRDHUP, 0 };
    return c->dead ||
           (poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0);
}

void
trpi_control_stream_end(trpi_control *control, connection *c, const char *final_text)
{
    if (c->event_bits) {
        c->event_bits = 0;
        control->streams_count--;
        (void)trpi_control_push(c, final_text, false); /* on failure it is closed without */
        c->closing = true;
    }
}

void
trpi_control_publish(trpi_control *control, unsigned event_index, const char *text)
{
    trpi_assert(event_index < TRPI_CONTROL_EVENT_TYPES);
    bool any = false;
    pthread_mutex_lock(&control->lock);
    for (connection *c = control->connections; c; c = c->next) {
        if (!(c->event_bits & 1u << event_index)) {
            continue;
        }
        any = true;
        if (text == NULL) { /* a stream with a hole would be a lie */
            trpi_control_stream_end(control, c, trpi_call_no_memory);
        } else if (c->events_count == TRPI_CONTROL_EVENTS_MAX) {
            trpi_control_stream_end(
                control, c, "{\"ok\":false,\"exit\":75,\"error\":\"the client is too slow\"}");
        } else {
            (void)trpi_control_push(c, text, true); /* on failure the connection is closed */
        }
    }
    pthread_mutex_unlock(&control->lock);
    if (any) {
        trpi_control_wake(control);
    }
}

bool
trpi_control_has_streams(trpi_control *control)
{
    pthread_mutex_lock(&control->lock);
    bool any = control->streams_count > 0;
    pthread_mutex_unlock(&control->lock);
    return any;
}

/* ---- requests: poll thread ------------------------------------------------------------------- */

static void
connection_refuse(trpi_control *control, connection *c, int exit_code, const char *error,
                  bool closing)
{
    char text[256];
    (void)snprintf(text, sizeof text, "{\"ok\":false,\"exit\":%d,\"error\":\"%s\"}", exit_code,
                   error);
    pthread_mutex_lock(&control->lock);
    (void)trpi_control_push(c, text, false); /* on failure the connection is closed */
    c->closing |= closing;
    pthread_mutex_unlock(&control->lock);
}

static void
connection_close_after(trpi_control *control, connection *c)
{
    pthread_mutex_lock(&control->lock);
    c->closing = true;
    pthread_mutex_unlock(&control->lock);
}

static trpi_call *
call_new(trpi_control *control, const connection *c)
{
    trpi_call *call = trpi_alloc(sizeof *call);
    if (call) {
        call->emit = trpi_control_emit;
        call->emit_arg = control;
        call->emit_id = c->id;
        call->control = control;
        call->world = control->options.world;
        call->start_ns = now_ns(control);
        call->by_known = c->by_known;
        call->by_uid = c->by_uid;
        call->by_pid = c->by_pid;
    }
    return call;
}

static void
request_take(trpi_control *control, connection *c, const uint8_t *body, size_t bytes)
{
    trpi_control_refusal refusal;
    trpi_call *call = call_new(control, c);
    if (!call) {
        connection_refuse(control, c, TRPI_CTL_EXIT_INTERNAL, "out of memory", true);
        return;
    }
    trp_err err = trpi_control_request_parse(body, bytes, &call->request, &refusal);
    if (err != TRP_OK) {
        trpi_call_refuse(call, &refusal);
        if (!call->request.json && err == TRP_EDATA) {
            connection_close_after(control, c);
        }
        trpi_call_free(call);
        return;
    }
    call->deadline_ns = call->start_ns + (uint64_t)call->request.timeout_ms * 1000000u;
    if (control->options.is_quick(&call->request)) {
        trpi_call_serve(call); /* control-I3 */
        trpi_call_free(call);
        return;
    }
    pthread_mutex_lock(&control->lock);
    err = trpi_call_start(control, call);
    c->call = err == TRP_OK ? call : NULL;
    pthread_mutex_unlock(&control->lock);
    if (err != TRP_OK) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_INTERNAL, NULL,
                              "no thread can be started for the command");
        trpi_call_free(call);
    }
}

static bool
is_busy(trpi_control *control, const connection *c)
{
    pthread_mutex_lock(&control->lock);
    bool busy = c->call || c->event_bits || c->closing || c->dead;
    pthread_mutex_unlock(&control->lock);
    return busy;
}

/* Serve the requests that have arrived, one after the other. */
static void
frames_take(trpi_control *control, connection *c)
{
    while (!is_busy(control, c)) {
        const uint8_t *body = NULL;
        size_t bytes = 0;
        trp_err err = trpi_ctl_frame_decode(c->in.data, c->in.count, TRPI_CTL_REQUEST_BYTES_MAX,
                                            &body, &bytes);
        if (err == TRP_EAGAIN) {
            return;
        }
        if (err != TRP_OK) {
            connection_refuse(
                control, c, TRPI_CTL_EXIT_DATA,
                bytes ? "the request is larger than 1048576 bytes" : "a request of 0 bytes", true);
            return;
        }
        request_take(control, c, body, bytes);
        trpi_buffer_drop(&c->in, TRPI_CTL_HEADER_BYTES + bytes);
        connection_touch(control, c);
    }
}

static void
connection_read(trpi_control *control, connection *c)
{
    uint8_t bytes[READ_BYTES];
    ssize_t count = recv(c->fd, bytes, sizeof bytes, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (count <= 0) {
        connection_kill(control, c);
        return;
    }
    if (c->in.count == 0) {
        connection_touch(control, c);
    }
    /* Read up to one whole request and the bytes that came with it; more is not read before that
     * one is served. */
    if (trpi_buffer_append(&c->in, bytes, (size_t)count,
                           TRPI_CTL_REQUEST_BYTES_MAX + TRPI_CTL_HEADER_BYTES + READ_BYTES) !=
        TRP_OK) {
        connection_kill(control, c);
    }
}

static void
connection_write(trpi_control *control, connection *c)
{
    pthread_mutex_lock(&control->lock);
    while (c->out_first && !c->dead) {
        out_frame *frame = c->out_first;
        ssize_t count =
            send(c->fd, frame->data + frame->written, frame->bytes - frame->written, MSG_NOSIGNAL);
        if (count < 0) {
            c->dead = errno != EAGAIN && errno != EINTR;
            break;
        }
        frame->written += (size_t)count;
        c->active_ns = now_ns(control);
        if (frame->written == frame->bytes) {
            frame_pop(c);
        }
    }
    c->dead |= c->closing && !c->out_first;
    pthread_mutex_unlock(&control->lock);
}

/* ---- connections: poll thread ---------------------------------------------------------------- */

static void
connection_open(trpi_control *control)
{
    int fd = trpi_control_accept(control->listen_fd, &control->spare_fd);
    connection *c = fd < 0 ? NULL : trpi_alloc(sizeof *c);
    if (!c) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return;
    }
    c->fd = fd;
    c->out_last = &c->out_first;
    c->active_ns = now_ns(control);
    c->by_known = trpi_control_peer(fd, &c->by_uid, &c->by_pid);
    pthread_mutex_lock(&control->lock);
    bool full = control->connections_count == TRPI_CTL_CONNECTIONS_MAX;
    c->id = ++control->id_next;
    c->next = control->connections;
    control->connections = c;
    control->connections_count++;
    pthread_mutex_unlock(&control->lock);
    if (!trpi_control_peer_allowed(fd, control->path)) {
        connection_refuse(control, c, TRPI_CTL_EXIT_PERMISSION, "not permitted: other user", true);
    } else if (full) {
        connection_refuse(control, c, TRPI_CTL_EXIT_TIMEOUT, "too many control clients", true);
        connection_write(control, c);
        connection_kill(control, c);
    }
}

static void
connection_free(connection *c)
{
    while (c->out_first) {
        frame_pop(c);
    }
    trpi_buffer_fini(&c->in);
    (void)close(c->fd);
    trpi_free(c);
}

/* Unlink dead connections and cancel their calls. With the lock. */
static void
connections_sweep(trpi_control *control)
{
    pthread_mutex_lock(&control->lock);
    uint64_t now = now_ns(control); /* with the lock: no active_ns is later */
    for (connection **at = &control->connections; *at;) {
        connection *c = *at;
        bool waits = !c->call && !c->event_bits; /* for a request, or for the client to read */
        uint64_t limit_ms = c->in.count ? TRPI_CONTROL_REQUEST_MS : TRPI_CONTROL_IDLE_MS;
        if (!c->dead && !(waits && now - c->active_ns > limit_ms * 1000000u)) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        control->connections_count--;
        control->streams_count -= c->event_bits != 0;
        if (c->call && !atomic_load_explicit(&c->call->goes_on, memory_order_relaxed)) {
            atomic_store_explicit(&c->call->cancelled, true, memory_order_relaxed);
        }
        connection_free(c);
    }
    pthread_mutex_unlock(&control->lock);
}

/* Fill fds and the ids behind them; returns their number. */
static nfds_t
poll_prepare(trpi_control *control, struct pollfd *fds, connection **of)
{
    nfds_t count = 0;
    fds[count++] = (struct pollfd){ control->wake_fd, POLLIN, 0 };
    pthread_mutex_lock(&control->lock);
    fds[count++] = (struct pollfd){ control->stopping ? -1 : control->listen_fd, POLLIN, 0 };
    for (connection *c = control->connections; c && count < TRPI_CTL_CONNECTIONS_MAX + 4;
         c = c->next) {
        bool reads = !c->call && !c->event_bits && !c->closing;
        short events =
            (short)(POLLRDHUP | (reads ? POLLIN : 0) | (c->out_first || c->closing ? POLLOUT : 0));
        of[count] = c;
        fds[count++] = (struct pollfd){ c->fd, events, 0 };
    }
    pthread_mutex_unlock(&control->lock);
    return count;
}

static void
poll_serve(trpi_control *control, connection *c, short events)
{
    if (events & POLLIN) {
        connection_read(control, c);
    } else if (events & (POLLRDHUP | POLLHUP | POLLERR)) {
        connection_kill(control, c); /* a client that closes its side ends its request */
    }
    frames_take(control, c);
    connection_write(control, c);
}

static void *
control_main(void *arg)
{
    trpi_control *control = arg;
    struct pollfd fds[TRPI_CTL_CONNECTIONS_MAX + 4];
    connection *of[TRPI_CTL_CONNECTIONS_MAX + 4];
    for (bool quit = false; !quit;) {
        nfds_t count = poll_prepare(control, fds, of);
        int rc = poll(fds, count, count > 2 ? POLL_MS : -1);
        if (rc < 0) {
            continue; /* EINTR */
        }
        uint64_t wakes = 0;
        (void)!read(control->wake_fd, &wakes, sizeof wakes); /* EAGAIN: it was not that */
        for (nfds_t i = 2; i < count; i++) {
            poll_serve(control, of[i], fds[i].revents);
        }
        if (fds[1].revents & POLLIN) {
            connection_open(control);
        }
        connections_sweep(control);
        trpi_control_spare(&control->spare_fd);
        pthread_mutex_lock(&control->lock);
        quit = control->quit;
        pthread_mutex_unlock(&control->lock);
    }
    return NULL;
}

/* ---- open and close -------------------------------------------------------------------------- */

static void
control_free(trpi_control *control)
{
    while (control->connections) {
        connection *c = control->connections;
        control->connections = c->next;
        connection_free(c);
    }
    if (control->spare_fd >= 0) {
        (void)close(control->spare_fd);
    }
    if (control->listen_fd >= 0) {
        (void)close(control->listen_fd);
    }
    if (control->wake_fd >= 0) {
        (void)close(control->wake_fd);
    }
    pthread_cond_destroy(&control->ended);
    trpi_mutex_destroy(&control->lock);
    trpi_free(control);
}

/* The server's threads block all signals: the program handles them. */
static int
thread_start(trpi_control *control)
{
    sigset_t all, old;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(&control->thread, NULL, control_main, control);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc;
}

trp_err
trpi_control_open(const trpi_control_options *options, trpi_control **ret_control, int *ret_pid)
{
    struct stat file;
    if (strlen(options->path) >= TRPI_CTL_PATH_BYTES) {
        return TRP_ELIMIT;
    }
    trpi_control *control = trpi_alloc(sizeof *control);
    if (!control) {
        return TRP_ENOMEM;
    }
    control->options = *options;
    memcpy(control->path, options->path, strlen(options->path));
    control->listen_fd = -1;
    control->spare_fd = -1;
    trpi_control_spare(&control->spare_fd);
    pthread_mutex_init(&control->lock, NULL);
    pthread_cond_init(&control->ended, NULL);
    control->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    trp_err err = control->wake_fd < 0
                      ? TRP_EIO
                      : trpi_control_socket_listen(control->path, &control->listen_fd, ret_pid);
    if (err == TRP_OK && stat(control->path, &file) == 0) {
        control->device = file.st_dev;
        control->inode = file.st_ino;
    }
    if (err != TRP_OK) {
        control_free(control);
        return err;
    }
    *ret_control = control;
    return TRP_OK;
}

trp_err
trpi_control_begin(trpi_control *control)
{
    control->has_begun = thread_start(control) == 0;
    return control->has_begun ? TRP_OK : TRP_EIO;
}

const char *
trpi_control_path(const trpi_control *control)
{
    return control->path;
}

/* Is anything left to do or to write? With the lock. */
static bool
work_left(const trpi_control *control)
{
    for (const connection *c = control->connections; c; c = c->next) {
        if (c->out_first && !c->dead) {
            return true;
        }
    }
    return control->calls_count > 0;
}

/* Wait until no work is left, at most ms. With the lock, released while waiting. */
static void
work_await(trpi_control *control, uint32_t ms)
{
    for (uint32_t waited = 0; waited < ms && work_left(control); waited += LINGER_STEP_MS) {
        struct timespec pause = { 0, (long)LINGER_STEP_MS * 1000000 };
        pthread_mutex_unlock(&control->lock);
        (void)nanosleep(&pause, NULL);
        pthread_mutex_lock(&control->lock);
    }
}

void
trpi_control_close(trpi_control *control, uint32_t linger_ms, uint32_t flush_ms)
{
    struct stat file;
    if (!control) {
        return;
    }
    if (stat(control->path, &file) == 0 && file.st_dev == control->device &&
        file.st_ino == control->inode) {
        (void)unlink(control->path);
    }
    pthread_mutex_lock(&control->lock);
    control->stopping = true;
    for (connection *c = control->connections; c; c = c->next) {
        trpi_control_stream_end(control, c,
                                "{\"ok\":false,\"exit\":69,\"error\":\"the node is stopping\"}");
    }
    trpi_control_wake(control);
    work_await(control, linger_ms);
    for (connection *c = control->connections; c; c = c->next) {
        if (c->call) {
            atomic_store_explicit(&c->call->cancelled, true, memory_order_relaxed);
        }
    }
    for (size_t i = 0; i < 2 * TRPI_CONTROL_CARRIED_MAX; i++) {
        if (control->carried[i]) {
            atomic_store_explicit(&control->carried[i]->cancelled, true, memory_order_relaxed);
        }
    }
    while (control->calls_count > 0) { /* control-I4 */
        pthread_cond_wait(&control->ended, &control->lock);
    }
    work_await(control, flush_ms);
    control->quit = true;
    pthread_mutex_unlock(&control->lock);
    trpi_control_wake(control);
    if (control->has_begun) {
        (void)pthread_join(control->thread, NULL);
    }
    control_free(control);
}

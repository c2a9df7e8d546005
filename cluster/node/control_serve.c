/* control_serve.c - the calls of the control server: a request that takes time has a thread of its
 * own.
 *
 * Shape.   control.c reads requests, and starts a call here; each object of the call is a frame of
 *          its connection, which control.c writes. A call for another node (carry.c) emits
 *          elsewhere.
 * Must hold.
 *   control-serve-S1  A call ends once: its thread frees it, and signals trpi_control_close() by
 *       calls_count.
 *   control-serve-S2  A frame that another thread queues on a connection wakes the poll thread.
 *   control-serve-S3  Calls over HTTP take no place of other nodes' calls, and those that follow
 *       take half of theirs at most: a page that stays open does not end the service. (place_take)
 * Tests.   tests/unit/node/control_test.c
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cluster/node/control_inner.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"

#define CALL_STACK_BYTES (512u * 1024u)

void
trpi_control_emit(trpi_call *call, const char *text, bool final)
{
    trpi_control *control = call->emit_arg;
    pthread_mutex_lock(&control->lock);
    connection *c = trpi_control_find(control, call->emit_id);
    if (c) {
        (void)trpi_control_push(c, text, false); /* on failure the connection is closed */
        if (final) {
            c->call = NULL; /* the next request may come */
            c->active_ns = trpi_world_mono_ns(control->options.world);
        }
    }
    pthread_mutex_unlock(&control->lock);
    trpi_control_wake(control);
}

bool
trpi_call_is_wanted(void *arg)
{
    trpi_call *call = arg;
    if (atomic_load_explicit(&call->cancelled, memory_order_relaxed) ||
        trpi_world_mono_ns(call->world) >= call->deadline_ns) {
        return false;
    }
    if (call->emit != trpi_control_emit) {
        return true; /* a call for another node: its client is not connected to this socket */
    }
    trpi_control *control = call->emit_arg;
    pthread_mutex_lock(&control->lock);
    const connection *c = trpi_control_find(control, call->emit_id);
    bool is_there = c != NULL && !trpi_control_hung_up(c);
    pthread_mutex_unlock(&control->lock);
    return is_there;
}

bool
trpi_call_ends(trpi_call *call)
{
    trpi_control *control = call->control;
    pthread_mutex_lock(&control->lock);
    bool ends = control->stopping;
    pthread_mutex_unlock(&control->lock);
    return ends;
}

void
trpi_call_stream(trpi_call *call)
{
    trpi_control *control = call->emit_arg;
    trpi_assert(call->emit == trpi_control_emit);
    trpi_assert(!call->answered);
    call->answered = true; /* by trpi_control_stream_end(), some day */
    pthread_mutex_lock(&control->lock);
    connection *c = trpi_control_find(control, call->emit_id);
    if (c) {
        (void)trpi_control_push(c, "{\"progress\":\"subscribed\"}", false);
        c->event_bits = call->request.event_bits;
        control->streams_count += c->event_bits != 0;
    }
    pthread_mutex_unlock(&control->lock);
    trpi_control_wake(control); /* control-serve-S2 */
}

void
trpi_call_stream_fail(trpi_call *call)
{
    trpi_control *control = call->emit_arg;
    pthread_mutex_lock(&control->lock);
    connection *c = trpi_control_find(control, call->emit_id);
    if (c) {
        trpi_control_stream_end(control, c, trpi_call_no_memory);
    }
    pthread_mutex_unlock(&control->lock);
    trpi_control_wake(control);
}

/* Send a whole frame at once; the connection has nothing else to send. */
static bool
frame_send(int fd, const char *text)
{
    uint8_t frame[TRPI_CTL_HEADER_BYTES + 64];
    size_t bytes = strlen(text);
    trpi_assert(bytes <= 64);
    trpi_ctl_header_encode(frame, (uint32_t)bytes);
    memcpy(frame + TRPI_CTL_HEADER_BYTES, text, bytes);
    bytes += TRPI_CTL_HEADER_BYTES;
    return send(fd, frame, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes;
}

trp_err
trpi_call_take_stream(trpi_call *call, const char *text, int *ret_fd)
{
    trpi_control *control = call->emit_arg;
    if (call->emit != trpi_control_emit) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_USAGE, "call it on that node's own host",
                              "this command needs a connection to the control socket");
        return TRP_EUNSUPPORTED;
    }
    trpi_assert(!call->answered);
    call->answered = true;
    int fd = -1;
    pthread_mutex_lock(&control->lock);
    connection *c = trpi_control_find(control, call->emit_id);
    if (c != NULL && !trpi_control_hung_up(c) && c->out_first == NULL && !control->stopping) {
        fd = fcntl(c->fd, F_DUPFD_CLOEXEC, 3);
        if (fd >= 0 && !frame_send(fd, text)) {
            (void)close(fd);
            fd = -1;
        }
    }
    if (c != NULL) {
        c->dead = true; /* its own descriptor is closed; the stream lives on by the other one */
    }
    pthread_mutex_unlock(&control->lock);
    trpi_control_wake(control);
    *ret_fd = fd;
    return fd < 0 ? TRP_ECLOSED : TRP_OK;
}

void
trpi_call_free(trpi_call *call)
{
    trpi_control_request_fini(&call->request);
    trpi_free(call);
}

void
trpi_call_serve(trpi_call *call)
{
    trpi_control *control = call->control;
    control->options.serve(control->options.arg, call);
    trpi_assert(call->answered);
}

/* control-serve-S3. With the lock. Find a free place for call; NULL: none. */
static trpi_call **
place_take(trpi_control *control, const trpi_call *call)
{
    bool http = call->by_text[0] != '\0';
    trpi_call **places = &control->carried[http ? TRPI_CONTROL_CARRIED_MAX : 0], **place = NULL;
    size_t followers = 0;
    for (size_t i = 0; i < TRPI_CONTROL_CARRIED_MAX; i++) {
        if (places[i] == NULL) {
            place = &places[i];
        } else if (places[i]->request.follow) {
            followers++;
        }
    }
    return call->request.follow && followers >= TRPI_CONTROL_FOLLOWERS_MAX ? NULL : place;
}

/* With the lock. */
static void
place_leave(trpi_control *control, const trpi_call *call)
{
    for (size_t i = 0; i < 2 * TRPI_CONTROL_CARRIED_MAX; i++) {
        if (control->carried[i] == call) {
            control->carried[i] = NULL;
        }
    }
}

void
trpi_control_cancel(trpi_control *control, const void *emit_arg, uint64_t emit_id)
{
    pthread_mutex_lock(&control->lock);
    for (size_t i = 0; i < 2 * TRPI_CONTROL_CARRIED_MAX; i++) {
        trpi_call *call = control->carried[i];
        if (call != NULL && call->emit_arg == emit_arg && call->emit_id == emit_id &&
            !atomic_load_explicit(&call->goes_on, memory_order_relaxed)) {
            atomic_store_explicit(&call->cancelled, true, memory_order_relaxed);
        }
    }
    pthread_mutex_unlock(&control->lock);
}

static void *
call_main(void *arg)
{
    trpi_call *call = arg;
    trpi_control *control = call->control;
    bool carried = call->emit != trpi_control_emit;
    trpi_call_serve(call);
    pthread_mutex_lock(&control->lock);
    connection *c = carried ? NULL : trpi_control_find(control, call->emit_id);
    if (c && c->call == call) {
        c->call = NULL;
    }
    if (carried) {
        place_leave(control, call);
    }
    trpi_call_free(call);
    control->calls_count--;
    pthread_cond_broadcast(&control->ended);
    pthread_mutex_unlock(&control->lock);
    return NULL;
}

/* With the lock. On failure the caller still owns call. */
trp_err
trpi_call_start(trpi_control *control, trpi_call *call)
{
    pthread_t thread;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) {
        return TRP_ENOMEM;
    }
    (void)pthread_attr_setstacksize(&attributes, CALL_STACK_BYTES);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int rc = pthread_create(&thread, &attributes, call_main, call);
    (void)pthread_attr_destroy(&attributes);
    if (rc != 0) {
        return TRP_ENOMEM;
    }
    control->calls_count++;
    return TRP_OK;
}

trp_err
trpi_control_run(trpi_control *control, trpi_call *call)
{
    trp_err err = TRP_OK;
    call->control = control;
    pthread_mutex_lock(&control->lock);
    trpi_call **place = place_take(control, call);
    if (control->stopping) {
        err = TRP_ECLOSED;
    } else if (place == NULL) {
        err = TRP_ELIMIT;
    } else {
        err = trpi_call_start(control, call);
        *place = err == TRP_OK ? call : NULL; /* it does not end without the lock */
    }
    pthread_mutex_unlock(&control->lock);
    return err;
}

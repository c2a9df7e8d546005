/* scheme_exec.c - exec:PATH, a program that gets each body as its input, and whose output is the
 * reply.
 *
 * Why.     A program reads, computes and writes in its own time. Each runs with a thread that waits
 *          for it, so that no thread of a dispatcher does.
 * Shape.   send -> run: thread { spawn, poll(input, output, wake), wait } -> message -> finish
 * Must hold.
 *   scheme-exec-X1  Each program that was started is waited for, also when it is ended: by its time
 *       or by the end of the endpoint, with all of its process group.
 *   scheme-exec-X2  Nothing of a message is part of a command: program and arguments are the URI's,
 *       and no shell reads them.
 *   scheme-exec-X3  The output is kept up to message_bytes_max, and then the program is ended.
 *   scheme-exec-X4  A program gets all of its input, or closes it: no reply is of half a message.
 * Threads. A run is its thread's until that has told `ran`, and then the actor's, which joins it.
 * Limits.  parallel, message_bytes_max, timeout_ms.
 * Tests.   tests/unit/endpoint/producer_test.c
 * Sources. CAM-05, CAM-08
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buffer.h"
#include "base/world.h"
#include "endpoint/endpoint.h"

enum { ARGUMENTS = TRPI_URI_OPTIONS_MAX + 2, PARALLEL_MOST = 64 };

extern char **environ;

typedef struct run {
    pthread_t thread;
    bool used;
    trp_msg *ran;  /* told at the end */
    uint32_t turn; /* a restarted endpoint does not take an earlier one's word */
    trp_system *system;
    trp_ref owner;
    trpi_world *world;
    char *const *arguments;
    uint32_t bytes_max, timeout_ms;
    int wake; /* eventfd: the endpoint ends */
    trp_bytes input;
    trpi_buffer output;
    int status;
    trp_err err;
    const char *reason;
} run;

typedef struct exec {
    char *arguments[ARGUMENTS];
    uint32_t parallel;
    run *runs;
} exec;

static trp_err
exec_read(const trpi_uri *uri, uint32_t *parallel, char reason[TRP_ENDPOINT_REASON_BYTES])
{
    *parallel = 1;
    if (uri->path[0] != '/') {
        (void)snprintf(reason, TRP_ENDPOINT_REASON_BYTES,
                       "exec: needs the whole path of a program, exec:/PATH");
        return TRP_EINVAL;
    }
    return trpi_uri_number(uri, "parallel", 1, PARALLEL_MOST, parallel, reason);
}

static trp_err
exec_check(const trpi_uri *uri, char ret_reason[TRP_ENDPOINT_REASON_BYTES])
{
    uint32_t parallel;
    return exec_read(uri, &parallel, ret_reason);
}

static trp_err
exec_produce(trp_ctx *ctx, trpi_endpoint *e)
{
    uint32_t count = 0;
    const char *argument;
    exec *x = trpi_alloc(sizeof *x);
    (void)ctx;
    if (x == NULL) {
        return TRP_ENOMEM;
    }
    e->state = x;
    trp_err err = exec_read(&e->uri, &x->parallel, e->reason);
    if (err == TRP_OK && access(e->uri.path, X_OK) != 0) {
        err = trpi_endpoint_errno(e, errno, "cannot run %.100s", e->uri.path);
    }
    if (err == TRP_OK) {
        x->runs = trpi_alloc(x->parallel * sizeof *x->runs);
        err = x->runs == NULL ? TRP_ENOMEM : TRP_OK;
    }
    x->arguments[0] = (char *)(uintptr_t)e->uri.path; /* execve() does not write to them */
    while ((argument = trpi_uri_option(&e->uri, "arg", count)) != NULL) {
        x->arguments[++count] = (char *)(uintptr_t)argument;
    }
    return err;
}

static uint32_t
exec_parallel(const trpi_endpoint *e)
{
    return ((const exec *)e->state)->parallel;
}

/* ---- a run, on its thread -------------------------------------------------------------------- */

/* Start the program; the parent's ends of its input and output. False: errno. */
static bool
program_start(const run *r, int ends[2], pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0) {
        return false;
    }
    if (pipe2(out, O_CLOEXEC) != 0) {
        int error = errno;
        (void)close(in[0]);
        (void)close(in[1]);
        errno = error;
        return false;
    }
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&attributes);
    int error = posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
    error = error == 0 ? posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO) : error;
#if __GLIBC_PREREQ(2, 34) /* else those that some library opened without O_CLOEXEC are inherited */
    error =
        error == 0 ? posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1) : error;
#endif
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setsigdefault(&attributes, &all);
    (void)posix_spawnattr_setpgroup(&attributes, 0);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                    POSIX_SPAWN_SETPGROUP);
    error = error == 0
                ? posix_spawn(pid, r->arguments[0], &files, &attributes, r->arguments, environ)
                : error;
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attributes);
    (void)close(in[0]);
    (void)close(out[1]);
    ends[0] = in[1];
    ends[1] = out[0];
    if (error != 0) {
        (void)close(in[1]);
        (void)close(out[0]);
        errno = error;
        return false;
    }
    (void)fcntl(in[1], F_SETFL, O_NONBLOCK);
    (void)fcntl(out[0], F_SETFL, O_NONBLOCK);
    return true;
}

/* Write more of the input; closes its end after the last byte, or when nobody reads. */
static void
input_write(const run *r, int *fd, size_t *at)
{
    uint8_t part[16384];
    size_t count = trp_bytes_copy_out(r->input, *at, part, sizeof part);
    ssize_t put = count > 0 ? write(*fd, part, count) : 0;
    *at += put > 0 ? (size_t)put : 0;
    if (*at == trp_bytes_length(r->input) || (put < 0 && errno != EAGAIN && errno != EINTR)) {
        (void)close(*fd);
        *fd = -1;
    }
}

/* Read more of the output. True: that was the end. */
static bool
output_read(run *r, int fd)
{
    uint8_t part[16384];
    ssize_t got = read(fd, part, sizeof part);
    if (got < 0) {
        return errno != EAGAIN && errno != EINTR;
    }
    if (got > 0 && trpi_buffer_append(&r->output, part, (size_t)got, r->bytes_max) != TRP_OK) {
        r->err = TRP_EMSGSIZE;
        r->reason = "the program's output is longer than message_bytes_max; it was ended";
    }
    return got == 0 || r->err != TRP_OK;
}

/* Feed the program until its output ends, and all of its input is written or nobody reads it. */
static void
program_feed(run *r, int ends[2], uint64_t deadline_ns)
{
    size_t at = 0;
    bool ended = false;
    while (r->err == TRP_OK && (!ended || ends[0] >= 0)) {
        struct pollfd fds[3] = { { r->wake, POLLIN, 0 },
                                 { ended ? -1 : ends[1], POLLIN, 0 }, /* -1: is not looked at */
                                 { ends[0], POLLOUT, 0 } };
        uint64_t now = trpi_world_mono_ns(r->world);
        uint64_t left_ms = now < deadline_ns ? (deadline_ns - now) / 1000000u + 1 : 0;
        if (left_ms == 0) {
            r->err = TRP_ETIMEDOUT;
            r->reason = "the program did not end in time; it was ended";
            return;
        }
        if (poll(fds, 3, (int)(left_ms < 60000 ? left_ms : 60000)) <= 0) {
            continue;
        }
        if (fds[0].revents != 0) {
            r->err = TRP_ECLOSED;
            r->reason = "the endpoint was closed; the program was ended";
            return;
        }
        if (fds[2].revents != 0) {
            input_write(r, &ends[0], &at);
        }
        if (fds[1].revents != 0) {
            ended = output_read(r, ends[1]);
        }
    }
}

/* A program that has closed its output has the rest of its time to end. True: it has. */
static bool
program_await(run *r, pid_t pid, uint64_t deadline_ns)
{
    for (;;) {
        struct pollfd wake = { r->wake, POLLIN, 0 };
        pid_t ended = waitpid(pid, &r->status, WNOHANG);
        if (ended > 0) {
            return true;
        }
        if (ended < 0 && errno != EINTR) {
            r->err = TRP_EIO;
            r->reason =
                "the program's status was taken by somebody else: does SIGCHLD stay as it is?";
            return false;
        }
        if (poll(&wake, 1, 5) != 0 || trpi_world_mono_ns(r->world) >= deadline_ns) {
            r->err = TRP_ETIMEDOUT;
            r->reason = "the program did not end in time; it was ended";
            return false;
        }
    }
}

static void *
run_thread(void *arg)
{
    run *r = arg;
    pid_t pid = 0;
    int ends[2];
    uint64_t deadline_ns = trpi_world_mono_ns(r->world) + r->timeout_ms * 1000000ull;
    if (!program_start(r, ends, &pid)) {
        r->err = TRP_EIO;
        r->reason = strerrordesc_np(errno);
    } else {
        program_feed(r, ends, deadline_ns);
        if (ends[0] >= 0) {
            (void)close(ends[0]);
        }
        (void)close(ends[1]);
        if (r->err != TRP_OK || !program_await(r, pid, deadline_ns)) {
            (void)kill(-pid, SIGKILL); /* scheme-exec-X1 */
            while (waitpid(pid, &r->status, 0) < 0 && errno == EINTR) {
            }
        }
    }
    trpi_endpoint_ran_tell(r->system, r->owner, r->ran);
    return NULL;
}

/* ---- runs, in the actor ---------------------------------------------------------------------- */

static void
run_end(run *r)
{
    (void)pthread_join(r->thread, NULL);
    (void)close(r->wake);
    trp_bytes_unref(&r->input);
    r->used = false;
}

static void
exec_send(trp_ctx *ctx, trpi_endpoint *e, uint32_t slot, const trpi_endpoint_send *send)
{
    exec *x = e->state;
    run *r = &x->runs[slot];
    trpi_assert(!r->used);
    memset(r, 0, sizeof *r);
    r->turn = trpi_endpoint_turn();
    r->system = trp_ctx_system(ctx);
    r->owner = trp_self(ctx);
    r->world = trpi_system_world(r->system);
    r->arguments = x->arguments;
    r->bytes_max = e->args.options.message_bytes_max;
    r->timeout_ms = e->args.options.timeout_ms;
    r->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (r->wake < 0) {
        trpi_producer_finish(ctx, e, slot, TRP_EIO, "no descriptor is left", NULL, NULL, 0);
        return;
    }
    r->input = trp_bytes_ref(send->body);
    r->ran = trpi_endpoint_ran_new((trpi_endpoint_slot){ slot, r->turn });
    r->used = r->ran != NULL;
    if (!r->used || !trpi_endpoint_thread(&r->thread, run_thread, r)) {
        r->used = false;
        (void)close(r->wake);
        trp_bytes_unref(&r->input);
        trp_msg_free(r->ran);
        trpi_producer_finish(ctx, e, slot, r->ran == NULL ? TRP_ENOMEM : TRP_EIO,
                             "no memory or no thread for the program", NULL, NULL, 0);
    }
}

static bool
exec_receive(trp_ctx *ctx, trpi_endpoint *e, const trp_msg *msg)
{
    exec *x = e->state;
    if (!trp_msg_is(msg, &trpi_endpoint_ran_type)) {
        return false;
    }
    const trpi_endpoint_slot *at = trp_msg_payload(msg);
    run *r = at->slot < x->parallel ? &x->runs[at->slot] : NULL;
    if (r == NULL || !r->used || r->turn != at->turn) {
        return true;
    }
    trp_bytes reply = TRP_BYTES_EMPTY;
    char status[16];
    run_end(r);
    (void)snprintf(status, sizeof status, "%d", WIFEXITED(r->status) ? WEXITSTATUS(r->status) : -1);
    const trp_endpoint_header header = { "exec.status", status };
    if (r->err == TRP_OK && r->output.count > 0) {
        r->err = trp_bytes_copy(r->output.data, r->output.count, &reply);
        r->reason = "no memory for the output";
    }
    trpi_buffer_fini(&r->output);
    trpi_producer_finish(ctx, e, at->slot, r->err, r->reason, &reply, &header, 1);
    trp_bytes_unref(&reply);
    return true;
}

static void
exec_stop(trp_ctx *ctx, trpi_endpoint *e)
{
    exec *x = e->state;
    (void)ctx;
    if (x == NULL) {
        return;
    }
    for (uint32_t i = 0; x->runs != NULL && i < x->parallel; i++) {
        if (x->runs[i].used) {
            uint64_t one = 1;
            ssize_t put = write(x->runs[i].wake, &one, sizeof one);
            trpi_assert(put == (ssize_t)sizeof one);
            (void)put;
        }
    }
    for (uint32_t i = 0; x->runs != NULL && i < x->parallel; i++) {
        if (x->runs[i].used) {
            run_end(&x->runs[i]);
        }
        trpi_buffer_fini(&x->runs[i].output);
    }
    trpi_free(x->runs);
    trpi_free(x);
    e->state = NULL;
}

static const char *const producer_options[] = { "arg", "parallel", NULL };
const trpi_scheme trpi_scheme_exec = { .name = "exec",
                                       .producer_options = producer_options,
                                       .check = exec_check,
                                       .produce = exec_produce,
                                       .stop = exec_stop,
                                       .send = exec_send,
                                       .receive = exec_receive,
                                       .parallel = exec_parallel };

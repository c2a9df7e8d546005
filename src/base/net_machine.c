/* net_machine.c - the machine's sockets: plain system calls, and epoll for readiness.
 *
 * Shape.   Each function is its system call, with -errno for -1. A set is an epoll descriptor and
 *          an eventfd in it, both edge-triggered: a socket is registered once, and neither a report
 *          nor a wake-up costs a second system call.
 * Must hold.
 *   net-machine-M1  Each write to the eventfd is an edge of its own, and stays in the ready list of
 *       the set until a wait takes it: a wake-up before the wait ends that wait. Nobody reads the
 *       counter, which has room for 2^64 wake-ups.
 *   net-machine-M2  sendfile(2) knows no MSG_NOSIGNAL: SIGPIPE is blocked around it, and one that
 *       it raised is taken back.
 * Limits.  A wait is as long as its timeout, rounded up to a millisecond.
 * Tests.   tests/unit/base/net_test.c
 */
#include "base/net.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"

#define KEY_WAKE UINT64_MAX
#define REPORTS_MAX 64 /* of one wait */

struct trpi_net_set {
    int epoll, wake;
};

static inline int
result_of(int result)
{
    return result < 0 ? -errno : result;
}

static inline ssize_t
bytes_of(ssize_t result)
{
    return result < 0 ? -errno : result;
}

/* ---- sockets --------------------------------------------------------------------------------- */

static int
machine_socket(trpi_world *world, int family, int type)
{
    (void)world;
    return result_of(socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

static int
machine_bind(trpi_world *world, int number, const trpi_net_address *address)
{
    (void)world;
    return result_of(bind(number, &address->of.any, address->bytes));
}

static int
machine_listen(trpi_world *world, int number, int backlog)
{
    (void)world;
    return result_of(listen(number, backlog));
}

static int
machine_accept(trpi_world *world, int number, trpi_net_address *ret_peer)
{
    trpi_net_address peer = { .bytes = sizeof peer.of };
    int accepted = accept4(number, &peer.of.any, &peer.bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);

    (void)world;
    if (accepted >= 0) {
        *ret_peer = peer;
    }
    return result_of(accepted);
}

static int
machine_connect(trpi_world *world, int number, const trpi_net_address *address)
{
    (void)world;
    return result_of(connect(number, &address->of.any, address->bytes));
}

static ssize_t
machine_read(trpi_world *world, int number, const struct iovec *iov, int count)
{
    (void)world;
    trpi_assert(count > 0);
    if (count == 1) {
        return bytes_of(recv(number, iov->iov_base, iov->iov_len, 0));
    }
    return bytes_of(readv(number, iov, count));
}

static ssize_t
machine_send(trpi_world *world, int number, const struct iovec *iov, int count,
             const trpi_net_address *to)
{
    struct msghdr message = { 0 };

    (void)world;
    message.msg_iov = (struct iovec *)(uintptr_t)iov; /* which sendmsg() does not write */
    message.msg_iovlen = (size_t)count;
    if (to != NULL) {
        message.msg_name = (void *)(uintptr_t)&to->of;
        message.msg_namelen = to->bytes;
    }
    return bytes_of(sendmsg(number, &message, MSG_NOSIGNAL));
}

static ssize_t
machine_write(trpi_world *world, int number, const struct iovec *iov, int count)
{
    trpi_assert(count > 0);
    if (count == 1) {
        return bytes_of(send(number, iov->iov_base, iov->iov_len, MSG_NOSIGNAL));
    }
    return machine_send(world, number, iov, count, NULL);
}

static ssize_t
machine_receive(trpi_world *world, int number, const struct iovec *iov, int count,
                trpi_net_address *ret_from, int *ret_flags)
{
    struct msghdr message = { 0 };
    trpi_net_address from = { 0 };
    ssize_t got;

    (void)world;
    message.msg_iov = (struct iovec *)(uintptr_t)iov;
    message.msg_iovlen = (size_t)count;
    message.msg_name = &from.of;
    message.msg_namelen = sizeof from.of;
    got = recvmsg(number, &message, 0);
    if (got < 0) {
        return -errno;
    }
    from.bytes = message.msg_namelen;
    *ret_from = from;
    *ret_flags = message.msg_flags & MSG_TRUNC;
    return got;
}

/* net-machine-M2 */
static ssize_t
machine_send_file(trpi_world *world, int number, int file, off_t *offset, size_t count)
{
    sigset_t pipes, before, pending;
    ssize_t sent;

    (void)world;
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &pipes, &before);
    (void)sigpending(&pending);
    sent = bytes_of(sendfile(number, file, offset, count));
    if (sent == -EPIPE && sigismember(&pending, SIGPIPE) == 0) {
        struct timespec none = { 0 };

        while (sigtimedwait(&pipes, NULL, &none) < 0 && errno == EINTR) {
        }
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return sent;
}

static int
machine_shutdown(trpi_world *world, int number, int how)
{
    (void)world;
    return result_of(shutdown(number, how));
}

static int
machine_close(trpi_world *world, int number)
{
    (void)world;
    return result_of(close(number));
}

static int
machine_option_set(trpi_world *world, int number, int level, int name, const void *value,
                   socklen_t bytes)
{
    (void)world;
    return result_of(setsockopt(number, level, name, value, bytes));
}

static int
machine_option_get(trpi_world *world, int number, int level, int name, void *ret_value,
                   socklen_t *bytes)
{
    (void)world;
    return result_of(getsockopt(number, level, name, ret_value, bytes));
}

static int
machine_local_address(trpi_world *world, int number, trpi_net_address *ret_address)
{
    trpi_net_address address = { .bytes = sizeof address.of };

    (void)world;
    if (getsockname(number, &address.of.any, &address.bytes) < 0) {
        return -errno;
    }
    *ret_address = address;
    return 0;
}

static int
machine_peer_address(trpi_world *world, int number, trpi_net_address *ret_address)
{
    trpi_net_address address = { .bytes = sizeof address.of };

    (void)world;
    if (getpeername(number, &address.of.any, &address.bytes) < 0) {
        return -errno;
    }
    *ret_address = address;
    return 0;
}

/* ---- readiness ------------------------------------------------------------------------------- */

static void
machine_set_free(trpi_net_set *set)
{
    if (set != NULL) {
        (void)(set->epoll >= 0 && close(set->epoll));
        (void)(set->wake >= 0 && close(set->wake));
        trpi_free(set);
    }
}

static int
machine_set_new(trpi_world *world, void (*on_due)(void *arg, uint64_t in_ns), void *arg,
                trpi_net_set **ret_set)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u64 = KEY_WAKE };
    trpi_net_set *set = trpi_alloc(sizeof *set);
    int error;

    (void)world;
    (void)on_due;
    (void)arg;
    if (set == NULL) {
        return -ENOMEM;
    }
    set->epoll = epoll_create1(EPOLL_CLOEXEC);
    set->wake = set->epoll < 0 ? -1 : eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (set->wake < 0 || epoll_ctl(set->epoll, EPOLL_CTL_ADD, set->wake, &event) < 0) {
        error = -errno;
        machine_set_free(set);
        return error;
    }
    *ret_set = set;
    return 0;
}

static int
machine_set_add(trpi_net_set *set, int number, uint64_t key)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET,
                                 .data.u64 = key };

    trpi_assert(key != KEY_WAKE);
    return result_of(epoll_ctl(set->epoll, EPOLL_CTL_ADD, number, &event));
}

static void
machine_set_remove(trpi_net_set *set, int number)
{
    struct epoll_event none = { 0 };

    (void)epoll_ctl(set->epoll, EPOLL_CTL_DEL, number, &none); /* a closed one has left the set */
}

static uint32_t
events_of(uint32_t events)
{
    return ((events & (EPOLLIN | EPOLLRDHUP)) != 0 ? TRPI_NET_IN : 0u) |
           ((events & (EPOLLRDHUP | EPOLLPRI)) != 0 ? TRPI_NET_DRAIN : 0u) |
           ((events & EPOLLOUT) != 0 ? TRPI_NET_OUT : 0u) |
           ((events & (EPOLLERR | EPOLLHUP)) != 0 ? TRPI_NET_END : 0u);
}

static int
milliseconds_of(uint64_t ns)
{
    uint64_t ms = ns / 1000000u + (ns % 1000000u != 0);

    if (ns == UINT64_MAX) {
        return -1;
    }
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

static int
machine_set_wait(trpi_net_set *set, trpi_net_report *ret_reports, int most, uint64_t timeout_ns)
{
    struct epoll_event events[REPORTS_MAX];
    int count, reports = 0;

    trpi_assert(most > 0);
    count = epoll_wait(set->epoll, events, most < REPORTS_MAX ? most : REPORTS_MAX,
                       milliseconds_of(timeout_ns));
    for (int i = 0; i < count; i++) {
        if (events[i].data.u64 != KEY_WAKE) {
            ret_reports[reports].key = events[i].data.u64;
            ret_reports[reports].events = events_of(events[i].events);
            reports++;
        }
    }
    return reports;
}

/* net-machine-M1 */
static void
machine_set_wake(trpi_net_set *set)
{
    (void)(eventfd_write(set->wake, 1) == 0);
}

const trpi_net_ops trpi_net_machine = {
    .socket = machine_socket,
    .bind = machine_bind,
    .listen = machine_listen,
    .accept = machine_accept,
    .connect = machine_connect,
    .read = machine_read,
    .write = machine_write,
    .receive = machine_receive,
    .send = machine_send,
    .send_file = machine_send_file,
    .shutdown = machine_shutdown,
    .close = machine_close,
    .option_set = machine_option_set,
    .option_get = machine_option_get,
    .local_address = machine_local_address,
    .peer_address = machine_peer_address,
    .set_new = machine_set_new,
    .set_free = machine_set_free,
    .set_add = machine_set_add,
    .set_remove = machine_set_remove,
    .set_wait = machine_set_wait,
    .set_wake = machine_set_wake,
};

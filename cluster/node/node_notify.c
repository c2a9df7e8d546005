/* node_notify.c - see the header.
 *
 * Why.     Written without libsystemd: the protocol is one datagram of KEY=VALUE lines to an
 *          address in the environment.
 * Shape.   thread: Up? -> READY=1; every half of WATCHDOG_USEC a question to the dispatcher
 *          "system" -> alive_answered() there -> WATCHDOG=1. Membership, remoting and shutdown
 *          run on that dispatcher, and no actors of the program: a node whose workers are all busy
 *          still answers the watchdog, one whose system actors stand still does not.
 * Must hold.
 *   node-notify-Y1  READY=1 is sent once, except for reloads, and only watchdog messages after
 *       STOPPING=1
 *   node-notify-Y2  the system is only touched with lock, and not once `system` is NULL
 *   node-notify-Y3  an answer may come after the node has gone (its system leaks then): what
 *       alive_answered() touches is never given back
 *   node-notify-Y4  a service manager that does not read costs SAY_MS for each message, and does
 *       not stop the node
 * Sources. sd_notify(3).
 * Tests.   tests/system/notify.sh
 */
#include "cluster/node/node_notify.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <troupe/dispatcher.h>

#include "actor/actor.h"
#include "base/errno_name.h"
#include "base/units.h"

#define UP_LOOK_MS 100 /* while it is not Up */
#define SAY_MS 1000

static struct {
    struct sockaddr_un to;
    socklen_t to_bytes;
    int period_ms; /* between watchdog messages; 0: no watchdog */
    char address[TRPI_ADDRESS_TEXT_BYTES];
    pthread_t thread;
    bool runs; /* the thread */
    _Atomic bool over;
    int wake_fd; /* eventfd, never closed (node-notify-Y3); 0: not made yet */
    _Atomic bool answered;

    pthread_mutex_t lock; /* for the fields below */
    int fd;               /* -1: no service manager */
    trp_system *system;   /* NULL: it stops */
    bool ready, stopping;
    bool failed; /* and logged */
} notify = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

/* ---- words ----------------------------------------------------------------------------------- */

/* With lock. */
static void
message_send(const char *words)
{
    if (notify.fd < 0 ||
        sendto(notify.fd, words, strlen(words), MSG_NOSIGNAL, (const struct sockaddr *)&notify.to,
               notify.to_bytes) >= 0 ||
        notify.failed || notify.system == NULL) {
        return;
    }
    int error = errno;
    notify.failed = true;
    trp_system_log(notify.system, TRP_LOG_WARNING, "node",
                   "\"%.*s\" cannot be sent to the service manager: %s (%s); NOTIFY_SOCKET is %s",
                   (int)strcspn(words, "\n"), words, strerror(error), trpi_errno_name(error),
                   getenv("NOTIFY_SOCKET"));
}

/* With lock. */
static void
ready_send(void)
{
    char words[sizeof notify.address + 64];
    notify.ready = true;
    (void)snprintf(words, sizeof words, "READY=1\nSTATUS=started as %s", notify.address);
    message_send(words);
}

void
trpi_notify_reloading(void)
{
    pthread_mutex_lock(&notify.lock);
    if (notify.ready && !notify.stopping) {
        char words[64];
        uint64_t now_us = trpi_world_mono_ns(trpi_system_world(notify.system)) / 1000u;
        (void)snprintf(words, sizeof words, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, now_us);
        message_send(words);
    }
    pthread_mutex_unlock(&notify.lock);
}

void
trpi_notify_reloaded(void)
{
    pthread_mutex_lock(&notify.lock);
    if (notify.ready && !notify.stopping) {
        ready_send();
    }
    pthread_mutex_unlock(&notify.lock);
}

static void
thread_wake(void)
{
    uint64_t one = 1;
    (void)!write(notify.wake_fd, &one, sizeof one); /* cannot fail: the counter cannot overflow */
}

void
trpi_notify_stopping(void)
{
    pthread_mutex_lock(&notify.lock);
    if (notify.fd >= 0 && !notify.stopping) {
        notify.stopping = true; /* node-notify-Y1 */
        message_send("STOPPING=1\nSTATUS=leaving the cluster, or ending");
        notify.system = NULL; /* node-notify-Y2 */
        thread_wake();
    }
    pthread_mutex_unlock(&notify.lock);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* On the dispatcher "system". */
static void
alive_answered(void *arg)
{
    (void)arg;
    atomic_store_explicit(&notify.answered, true, memory_order_relaxed);
    thread_wake();
}

/* Send READY=1 if the node has become ready. true: no further check is needed. */
static bool
ready_check(void)
{
    trp_member self;
    pthread_mutex_lock(&notify.lock);
    if (!notify.ready && notify.system != NULL &&
        trp_cluster_self(notify.system, &self) == TRP_OK && self.status == TRP_MEMBER_UP) {
        ready_send();
    }
    bool done = notify.ready || notify.stopping;
    pthread_mutex_unlock(&notify.lock);
    return done;
}

/* Ask the system's dispatcher for a sign of life. true: an answer will come, or is there. false: no
 * memory, to be tried again. */
static bool
alive_ask(void)
{
    pthread_mutex_lock(&notify.lock);
    trp_err err = notify.system == NULL
                      ? TRP_ECLOSED
                      : trp_dispatcher_execute(notify.system, "system", alive_answered, NULL);
    pthread_mutex_unlock(&notify.lock);
    if (err == TRP_ECLOSED) {
        alive_answered(NULL); /* the node ends: that is progress */
    }
    return err == TRP_OK || err == TRP_ECLOSED;
}

/* Send WATCHDOG=1 if the dispatcher has answered. */
static bool
watchdog_beat(void)
{
    pthread_mutex_lock(&notify.lock);
    bool lives = notify.system == NULL ||
                 atomic_exchange_explicit(&notify.answered, false, memory_order_relaxed);
    if (lives) {
        message_send("WATCHDOG=1");
    }
    pthread_mutex_unlock(&notify.lock);
    return lives;
}

static void *
notify_thread(void *arg)
{
    struct pollfd fd = { notify.wake_fd, POLLIN, 0 };
    int left_ms = 0; /* to the next question */
    bool asked = false;
    (void)pthread_setname_np(pthread_self(), "trp-notify");
    while (!atomic_load_explicit(&notify.over, memory_order_relaxed)) {
        uint64_t count;
        bool look = !ready_check();
        if (notify.period_ms != 0 && !asked && left_ms == 0) {
            asked = alive_ask();
            left_ms = asked ? 0 : UP_LOOK_MS;
        }
        if (asked && watchdog_beat()) {
            asked = false;
            left_ms = notify.period_ms;
        }
        int wait_ms = asked || notify.period_ms == 0 ? -1 : left_ms;
        wait_ms = look && (wait_ms < 0 || wait_ms > UP_LOOK_MS) ? UP_LOOK_MS : wait_ms;
        if (poll(&fd, 1, wait_ms) > 0) {
            (void)!read(notify.wake_fd, &count, sizeof count); /* it was readable, and is ours */
        } else if (wait_ms > 0) {
            left_ms -= left_ms < wait_ms ? left_ms : wait_ms;
        }
    }
    return arg;
}

/* ---- begin and end --------------------------------------------------------------------------- */

static bool
address_take(const char *text)
{
    size_t bytes = strlen(text);
    memset(&notify.to, 0, sizeof notify.to);
    if ((text[0] != '/' && text[0] != '@') || bytes < 2 || bytes >= sizeof notify.to.sun_path) {
        return false;
    }
    notify.to.sun_family = AF_UNIX;
    memcpy(notify.to.sun_path, text, bytes);
    notify.to_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes);
    if (text[0] == '@') {
        notify.to.sun_path[0] = '\0';
    }
    return true;
}

/* Return half of WATCHDOG_USEC, if that is set for this process. 0: no watchdog. */
static int
period_find(void)
{
    const char *text = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    uint64_t us = 0, meant = 0;
    if (text == NULL || !trpi_whole_parse(text, 1, UINT64_MAX, &us) ||
        (pid != NULL &&
         (!trpi_whole_parse(pid, 1, INT_MAX, &meant) || meant != (uint64_t)getpid()))) {
        return 0;
    }
    return us / 2000u > INT_MAX ? INT_MAX : us < 2000u ? 1 : (int)(us / 2000u);
}

static bool
begin_locked(bool has_no_seeds)
{
    struct timeval patience = { SAY_MS / 1000, 0 };
    notify.period_ms = period_find();
    notify.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (notify.wake_fd == 0) {
        int made = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        notify.wake_fd = made > 0 ? made : 0;
    }
    if (notify.fd < 0 || notify.wake_fd == 0 ||
        /* node-notify-Y4 */
        setsockopt(notify.fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0) {
        return false;
    }
    if (has_no_seeds) {
        ready_send();
    } else {
        message_send("STATUS=joining the cluster");
    }
    notify.runs = pthread_create(&notify.thread, NULL, notify_thread, NULL) == 0;
    return notify.runs;
}

void
trpi_notify_begin(trp_node *node, bool has_no_seeds)
{
    const char *text = getenv("NOTIFY_SOCKET");
    if (text == NULL || *text == '\0') {
        return;
    }
    if (!address_take(text)) {
        trp_system_log(node->system, TRP_LOG_WARNING, "node",
                       "the service manager is not notified: NOTIFY_SOCKET is neither an absolute "
                       "path nor @NAME, or too long: %s",
                       text);
        return;
    }
    pthread_mutex_lock(&notify.lock);
    notify.system = node->system;
    notify.ready = notify.stopping = notify.failed = false;
    (void)snprintf(notify.address, sizeof notify.address, "%s", node->address);
    atomic_store_explicit(&notify.over, false, memory_order_relaxed);
    if (!begin_locked(has_no_seeds)) {
        trp_system_log(node->system, TRP_LOG_ERROR, "node",
                       "the service manager is not notified of this node's state: no descriptor or "
                       "thread is free");
        ready_send(); /* it would wait for ever */
    }
    pthread_mutex_unlock(&notify.lock);
}

void
trpi_notify_end(void)
{
    if (notify.runs) {
        atomic_store_explicit(&notify.over, true, memory_order_relaxed);
        thread_wake();
        (void)pthread_join(notify.thread, NULL);
        notify.runs = false;
    }
    pthread_mutex_lock(&notify.lock);
    if (notify.fd >= 0) {
        (void)close(notify.fd); /* it carried datagrams: nothing is on its way */
        notify.fd = -1;
    }
    notify.system = NULL;
    pthread_mutex_unlock(&notify.lock);
}

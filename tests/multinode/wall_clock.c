/* wall_clock.c - preloaded into a process, it moves that process's wall clock and no other clock.
 *
 * The file that WALL_CLOCK_FILE names has the seconds to add, as text; it is read at each request
 * for the time, so a test makes the clock jump by writing to it. To a node this looks like an
 * operator who sets the clock of its host, for which the kernel has no namespace. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

/* Act on this process alone: its children (a sanitizer's symbolizer) run unchanged. */
__attribute__((constructor)) static void
keep_to_oneself(void)
{
    (void)unsetenv("LD_PRELOAD");
}

static time_t
seconds_to_add(void)
{
    char text[32] = "";
    const char *path = getenv("WALL_CLOCK_FILE");
    int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    ssize_t count = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) {
        (void)close(fd);
    }
    return count > 0 ? (time_t)strtoll(text, NULL, 10) : 0;
}

/* The function that this one stands before. Any thread may be the first to ask. */
static void *
next_of(_Atomic(void *) *found, const char *name)
{
    void *next = atomic_load_explicit(found, memory_order_relaxed);
    if (next == NULL) {
        next = dlsym(RTLD_NEXT, name);
        atomic_store_explicit(found, next, memory_order_relaxed);
    }
    return next;
}

EXPORTED int
clock_gettime(clockid_t clock, struct timespec *ret)
{
    static _Atomic(void *) found;
    int (*real)(clockid_t, struct timespec *);
    *(void **)&real = next_of(&found, "clock_gettime");
    int failed = real(clock, ret);
    if (failed == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        ret->tv_sec += seconds_to_add();
    }
    return failed;
}

EXPORTED int
gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    int failed = clock_gettime(CLOCK_REALTIME, &now);
    *ret = (struct timeval){ now.tv_sec, now.tv_nsec / 1000 };
    return failed;
}

EXPORTED time_t
time(time_t *ret)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (ret != NULL) {
        *ret = now.tv_sec;
    }
    return now.tv_sec;
}

/* libnng waits until a time of the wall clock, and would wait no more or for ever. Another clock's
 * times are small: they count since the host started. */
EXPORTED int
pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                       const struct timespec *restrict until)
{
    static _Atomic(void *) found;
    int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    struct timespec moved = *until;
    *(void **)&real = next_of(&found, "pthread_cond_timedwait");
    if (until->tv_sec > 1000000000) {
        moved.tv_sec -= seconds_to_add();
    }
    return real(cond, mutex, &moved);
}

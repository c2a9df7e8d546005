/* mutex.h - destroy a mutex; the thread sanitizer reports one that is still in use. */
#ifndef TRPI_BASE_MUTEX_H
#define TRPI_BASE_MUTEX_H

#include <pthread.h>

#include "base/assert.h"

#if defined(__SANITIZE_THREAD__)
void __tsan_write1(void *address); /* of the sanitizer: counts as a write and changes nothing */
#endif

/* Every mutex of ours ends here (`tests/tidy` checks). Under the thread sanitizer the call counts
 * as a write by this function, so that a use which is not ordered before it is reported with our
 * frame on top; those of libraries are silenced (mutex.c, tests/tsan.supp).
 * tests/sanitizer/findings.sh shows that it works. */
static inline void
trpi_mutex_destroy(pthread_mutex_t *mutex)
{
#if defined(__SANITIZE_THREAD__)
    __tsan_write1(mutex);
#endif
    int code = pthread_mutex_destroy(mutex);

    trpi_assert(code == 0); /* EBUSY: a thread still holds it */
    (void)code;
}

#endif

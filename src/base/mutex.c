/* mutex.c - mutexes of libnng under the thread sanitizer; nothing in other builds.
 *
 * libnng counts the references of its dialers with atomics that the sanitizer does not see, so its
 * reaper seems to destroy a dialer's mutex while another thread may still hold it. To apply a
 * suppression the sanitizer starts llvm-symbolizer, which may hold a node for a second and took a
 * sixth of the processor time of all scripts. So the destruction of a mutex by libnng is declared
 * to happen after its last unlock, as libnng's count of references ensures.
 *
 * Tests.   tests/sanitizer/findings.sh
 */
#include "base/mutex.h"

#if defined(__SANITIZE_THREAD__)
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* of the sanitizer */
int __interceptor_pthread_mutex_destroy(pthread_mutex_t *mutex);
void __tsan_acquire(void *address);

/* The linker needs this symbol (configure.ac), and so takes this file into every program. */
const char trpi_tsan_mutex = 0;

/* In place of the sanitizer's own, for all libraries of a program. */
__attribute__((visibility("default"))) int
pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    Dl_info caller;
    bool is_nng = dladdr(__builtin_return_address(0), &caller) != 0 && caller.dli_fname != NULL &&
                  strstr(caller.dli_fname, "/libnng.") != NULL;
    if (is_nng) {
        __tsan_acquire(mutex);
    }
    return __interceptor_pthread_mutex_destroy(mutex);
}
#endif

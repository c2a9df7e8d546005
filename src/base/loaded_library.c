/* loaded_library.c - see loaded_library.h.
 *
 * Threads. One lock for all of them, held while the linker works; functions are written before the
 *          first caller gets true, and never again.
 * Tests.   tests/unit/base/loaded_library_test.c
 */
#include "base/loaded_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void
library_load(trpi_loaded_library *library)
{
    void *object = dlopen(library->file, RTLD_NOW | RTLD_LOCAL);

    if (object == NULL) {
        const char *why = dlerror();

        (void)snprintf(library->reason, sizeof library->reason, "%s", why != NULL ? why : "");
        library->lacks = "";
        return;
    }
    for (size_t i = 0; i < library->count && library->lacks == NULL; i++) {
        void *function = dlsym(object, library->names[i]);

        memcpy((char *)library->functions + i * sizeof function, &function, sizeof function);
        library->lacks = function == NULL ? library->names[i] : NULL;
    }
}

bool
trpi_library_open(trpi_loaded_library *library, char *why, size_t why_bytes)
{
    trpi_assert(library->count > 0);
    pthread_mutex_lock(&lock);
    if (!library->is_opened) {
        library_load(library);
        library->is_opened = true;
    }
    pthread_mutex_unlock(&lock);
    if (library->lacks == NULL) {
        return true;
    }
    if (library->lacks[0] == '\0') {
        (void)snprintf(why, why_bytes, "%s cannot be loaded (%s): install it (apt-get install %s)",
                       library->file, library->reason, library->package);
    } else {
        (void)snprintf(why, why_bytes,
                       "%s has no %s: it is not the one that this was built for (apt-get install "
                       "%s)",
                       library->file, library->lacks, library->package);
    }
    return false;
}

/* postgres_libpq.c - load libpq.so.5 when it is needed.
 *
 * Why.   libpq brings Kerberos, LDAP and more along: a node without a journal in PostgreSQL shall
 *        neither wait for it at its start nor need it.
 * Must hold. It is never unloaded: threads and libraries of its own may point into it.
 * Tests. tests/system/postgres.sh
 */
#include "persistence/postgres_libpq.h"

#ifdef HAVE_POSTGRES

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#define LIBRARY "libpq.so.5"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static trpi_libpq functions; /* written once, by library_load() */
static const char *missing;  /* the first function that it lacks; "": the library itself */
static char reason[512];

static void
library_load(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    if (library == NULL) {
        const char *why = dlerror();
        (void)snprintf(reason, sizeof reason, "%s", why != NULL ? why : "unknown");
        missing = "";
        return;
    }
#define LOAD(name)                                                                                 \
    *(void **)&functions.name = dlsym(library, #name);                                             \
    if (functions.name == NULL && missing == NULL) {                                               \
        missing = #name;                                                                           \
    }
    TRPI_LIBPQ_FUNCTIONS(LOAD)
#undef LOAD
}

const trpi_libpq *
trpi_libpq_get(char *why, size_t why_bytes)
{
    (void)pthread_once(&once, library_load);
    if (missing == NULL) {
        return &functions;
    }
    if (missing[0] == '\0') {
        (void)snprintf(why, why_bytes,
                       LIBRARY " cannot be loaded (%s): install it (apt-get install libpq5)",
                       reason);
    } else {
        (void)snprintf(why, why_bytes,
                       LIBRARY " has no %s: it is older than libpq 14; install a newer libpq5",
                       missing);
    }
    return NULL;
}

#endif

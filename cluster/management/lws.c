/* lws.c - load libwebsockets when it is needed.
 *
 * Why.   A node whose management API is off shall neither wait for libwebsockets at its start nor
 *        need it, nor have its memory.
 * Must hold. It is never unloaded: OpenSSL may have functions of it. Its structs are those of the
 *        header, so a library of another minor version is refused.
 * Tests. tests/system/management.sh
 */
#include "cluster/management/lws.h"

#ifdef HAVE_LIBWEBSOCKETS

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#if LWS_LIBRARY_VERSION_MAJOR == 4 && LWS_LIBRARY_VERSION_MINOR == 1
#define LIBRARY "libwebsockets.so.17"
#define DEBIAN_PACKAGE "libwebsockets17"
#elif LWS_LIBRARY_VERSION_MAJOR == 4 && LWS_LIBRARY_VERSION_MINOR == 3
#define LIBRARY "libwebsockets.so.19"
#define DEBIAN_PACKAGE "libwebsockets19"
#else
#define LIBRARY "libwebsockets.so"
#define DEBIAN_PACKAGE "libwebsockets-dev"
#endif
#define NUMBER_OF(number) NUMBER_OF_EXPANDED(number)
#define NUMBER_OF_EXPANDED(number) #number
#define HEADER_VERSION                                                                             \
    NUMBER_OF(LWS_LIBRARY_VERSION_MAJOR) "." NUMBER_OF(LWS_LIBRARY_VERSION_MINOR) "."

static pthread_once_t once = PTHREAD_ONCE_INIT;
static trpi_lws functions;  /* written once, by library_load() */
static const char *missing; /* the first function that it lacks; "": the library itself */
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
    TRPI_LWS_FUNCTIONS(LOAD)
#undef LOAD
    if (missing == NULL && strncmp(functions.lws_get_library_version(), HEADER_VERSION,
                                   sizeof HEADER_VERSION - 1) != 0) {
        missing = "version " HEADER_VERSION "*";
    }
}

const trpi_lws *
trpi_lws_get(char *why, size_t why_bytes)
{
    (void)pthread_once(&once, library_load);
    if (missing == NULL) {
        return &functions;
    }
    if (missing[0] == '\0') {
        (void)snprintf(why, why_bytes,
                       LIBRARY " cannot be loaded (%s): install it (apt-get install " DEBIAN_PACKAGE
                               ")",
                       reason);
    } else {
        (void)snprintf(
            why, why_bytes,
            LIBRARY " has no %s: it is not the one that this was built with (" DEBIAN_PACKAGE ")",
            missing);
    }
    return NULL;
}

#endif

/* curl.c - load libcurl for --endpoint, so that all other uses of the program neither need nor wait
 * for it. Of Debian's three libcurls it is the one with OpenSSL, whose reasons are printed.
 *
 * Tests.   tests/system/endpoint.sh
 */
#include "cluster/cli/curl.h"

#ifdef HAVE_LIBCURL

#include <dlfcn.h>
#include <stddef.h>

#include "cluster/cli/cli.h"

#define LIBRARY "libcurl.so.4"
#define DEBIAN_PACKAGE "libcurl4"

const trpi_curl *
trpi_curl_get(void)
{
    static trpi_curl functions;
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    const char *missing = NULL;
    if (library == NULL) {
        const char *why = dlerror();
        (void)trpi_cli_fail(0,
                            "--endpoint needs " LIBRARY ", which cannot be loaded (%s)\n"
                            "  try        apt-get install " DEBIAN_PACKAGE,
                            why != NULL ? why : "unknown");
        return NULL;
    }
#define LOAD(name)                                                                                 \
    *(void **)&functions.name = dlsym(library, #name);                                             \
    if (functions.name == NULL && missing == NULL) {                                               \
        missing = #name;                                                                           \
    }
    TRPI_CURL_FUNCTIONS(LOAD)
#undef LOAD
    if (missing != NULL) {
        (void)trpi_cli_fail(0, LIBRARY " has no %s: it is not that of " DEBIAN_PACKAGE, missing);
        return NULL;
    }
    return functions.curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? &functions : NULL;
}

#endif

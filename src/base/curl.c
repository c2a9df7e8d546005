/* curl.c - libcurl, opened when it is needed. Of Debian's three libcurls it is the one with
 * OpenSSL, whose reasons are printed.
 *
 * Tests.   tests/system/endpoint.sh, otlp.sh
 */
#include "base/curl.h"

#ifdef HAVE_LIBCURL

#include <pthread.h>
#include <stdio.h>

static trpi_curl functions;
static const char *const names[] = { TRPI_CURL_FUNCTIONS(TRPI_LIBRARY_NAME) };
static trpi_loaded_library library = { .file = "libcurl.so.4",
                                       .package = "libcurl4",
                                       .names = names,
                                       .count = sizeof names / sizeof names[0],
                                       .functions = &functions };
static pthread_once_t once = PTHREAD_ONCE_INIT;
static CURLcode begun; /* written once, by library_begin() */

static void
library_begin(void)
{
    begun = functions.curl_global_init(CURL_GLOBAL_DEFAULT);
}

const trpi_curl *
trpi_curl_get(char *why, size_t why_bytes)
{
    if (!trpi_library_open(&library, why, why_bytes)) {
        return NULL;
    }
    (void)pthread_once(&once, library_begin);
    if (begun != CURLE_OK) {
        (void)snprintf(why, why_bytes, "libcurl.so.4 does not start: %s",
                       functions.curl_easy_strerror(begun));
        return NULL;
    }
    return &functions;
}

#endif

/* curl.h - libcurl, opened by what sends a request over HTTP: `troupe --endpoint`, a node that
 * exports traces, an endpoint that produces to http:. The one file that includes its header. */
#ifndef TRPI_BASE_CURL_H
#define TRPI_BASE_CURL_H

#ifdef HAVE_LIBCURL

#define CURL_DISABLE_TYPECHECK /* its macros cannot be called by pointer */
#include <curl/curl.h>

#include "base/loaded_library.h"

#define TRPI_CURL_FUNCTIONS(F)                                                                     \
    F(curl_easy_cleanup)                                                                           \
    F(curl_easy_escape)                                                                            \
    F(curl_easy_getinfo)                                                                           \
    F(curl_easy_init)                                                                              \
    F(curl_easy_perform)                                                                           \
    F(curl_easy_reset)                                                                             \
    F(curl_easy_setopt)                                                                            \
    F(curl_easy_strerror)                                                                          \
    F(curl_free)                                                                                   \
    F(curl_global_init)                                                                            \
    F(curl_multi_add_handle)                                                                       \
    F(curl_multi_cleanup)                                                                          \
    F(curl_multi_info_read)                                                                        \
    F(curl_multi_init)                                                                             \
    F(curl_multi_perform)                                                                          \
    F(curl_multi_poll)                                                                             \
    F(curl_multi_remove_handle)                                                                    \
    F(curl_multi_wakeup)                                                                           \
    F(curl_slist_append)                                                                           \
    F(curl_slist_free_all)

typedef struct trpi_curl {
    TRPI_CURL_FUNCTIONS(TRPI_LIBRARY_MEMBER)
} trpi_curl;

/* Load it, once a process. NULL: it cannot be, and why says what to install. Thread: any. */
const trpi_curl *trpi_curl_get(char *why, size_t why_bytes);

#endif
#endif

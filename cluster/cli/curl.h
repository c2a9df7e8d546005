/* curl.h - libcurl, loaded by `--endpoint` alone. The one file that includes its header. */
#ifndef TRPI_CLI_CURL_H
#define TRPI_CLI_CURL_H

#ifdef HAVE_LIBCURL

#define CURL_DISABLE_TYPECHECK /* its macros cannot be called by pointer */
#include <curl/curl.h>

#define TRPI_CURL_FUNCTIONS(F)                                                                     \
    F(curl_easy_cleanup)                                                                           \
    F(curl_easy_escape)                                                                            \
    F(curl_easy_getinfo)                                                                           \
    F(curl_easy_init)                                                                              \
    F(curl_easy_perform)                                                                           \
    F(curl_easy_setopt)                                                                            \
    F(curl_easy_strerror)                                                                          \
    F(curl_free)                                                                                   \
    F(curl_global_init)                                                                            \
    F(curl_slist_append)                                                                           \
    F(curl_slist_free_all)

typedef struct trpi_curl {
#define TRPI_CURL_MEMBER(name) __typeof__(&name) name;
    TRPI_CURL_FUNCTIONS(TRPI_CURL_MEMBER)
#undef TRPI_CURL_MEMBER
} trpi_curl;

/* Load it. NULL, with what to install printed: 69. */
const trpi_curl *trpi_curl_get(void);

#endif
#endif

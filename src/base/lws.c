/* lws.c - load libwebsockets when it is needed.
 *
 * Why.   A program without management API and such endpoints shall neither wait for libwebsockets
 *        nor need it, nor have its memory.
 * Must hold. Its structs are those of the header, so a library of another minor version is refused.
 *        Its state of the process has no lock: contexts are made one at a time. (trpi_lws_open)
 * Tests. tests/system/management.sh, tests/unit/endpoint/web_server_test.c
 */
#include "base/lws.h"

#ifdef HAVE_LIBWEBSOCKETS

#include <errno.h>
#include <pthread.h>
#include <signal.h>
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
/* The library would end what waits for a reply, and a stream some minutes after its headers have
 * come: those that send none are ended by timers of ours. */
#define AH_IDLE_S (1 << 29)
#define NUMBER_OF(number) NUMBER_OF_EXPANDED(number)
#define NUMBER_OF_EXPANDED(number) #number
#define HEADER_VERSION                                                                             \
    NUMBER_OF(LWS_LIBRARY_VERSION_MAJOR) "." NUMBER_OF(LWS_LIBRARY_VERSION_MINOR) "."

static trpi_lws functions;
static const char *const names[] = { TRPI_LWS_FUNCTIONS(TRPI_LIBRARY_NAME) };
static trpi_loaded_library library = { .file = LIBRARY,
                                       .package = DEBIAN_PACKAGE,
                                       .names = names,
                                       .count = sizeof names / sizeof names[0],
                                       .functions = &functions };

const trpi_lws *
trpi_lws_get(char *why, size_t why_bytes)
{
    if (!trpi_library_open(&library, why, why_bytes)) {
        return NULL;
    }
    if (strncmp(functions.lws_get_library_version(), HEADER_VERSION, sizeof HEADER_VERSION - 1) !=
        0) {
        (void)snprintf(why, why_bytes,
                       LIBRARY " is not version " HEADER_VERSION
                               "*: it is not the one that this was built with (" DEBIAN_PACKAGE
                               ")");
        return NULL;
    }
    return &functions;
}

static void
line_dropped(int level, const char *line)
{
    (void)level;
    (void)line; /* it may hold parts of requests */
}

void
trpi_lws_info_fill(struct lws_context_creation_info *info, const char *bind, int port,
                   uint32_t connections, uint32_t header_bytes, uint32_t timeout_ms)
{
    memset(info, 0, sizeof *info);
    info->port = bind != NULL ? port : CONTEXT_PORT_NO_LISTEN;
    info->iface = bind;
    info->options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS | LWS_SERVER_OPTION_FAIL_UPON_UNABLE_TO_BIND |
                    LWS_SERVER_OPTION_SKIP_SERVER_CANONICAL_NAME;
    if (bind != NULL && strchr(bind, ':') == NULL) { /* else it listens on a mapped address */
        info->options |= LWS_SERVER_OPTION_DISABLE_IPV6;
    }
    info->gid = -1; /* as it is */
    info->uid = -1;
    info->max_http_header_data = (unsigned short)header_bytes;
    info->max_http_header_pool = (unsigned short)connections;
    info->fd_limit_per_thread = connections + TRPI_LWS_FDS_MORE;
    info->timeout_secs = (timeout_ms + 999) / 1000;
    info->timeout_secs_ah_idle = AH_IDLE_S;
    info->alpn = "http/1.1";
}

struct lws_vhost *
trpi_lws_open(const trpi_lws *lws, const struct lws_context_creation_info *info,
              struct lws_context **ret_context, int *ret_errno)
{
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
    struct sigaction before;
    struct lws_vhost *vhost = NULL;
    pthread_mutex_lock(&making);
    lws->lws_set_log_level(0, line_dropped);
    (void)sigaction(SIGPIPE, NULL, &before);
    *ret_context = lws->lws_create_context(info);
    (void)sigaction(SIGPIPE, &before, NULL);
    if (*ret_context != NULL) {
        errno = 0;
        vhost = lws->lws_create_vhost(*ret_context, info);
        *ret_errno = errno;
    }
    pthread_mutex_unlock(&making);
    return vhost;
}

const char *
trpi_lws_method(const trpi_lws *lws, struct lws *wsi)
{
    static const struct {
        enum lws_token_indexes token;
        const char *name;
    } methods[] = { { WSI_TOKEN_GET_URI, "GET" },         { WSI_TOKEN_POST_URI, "POST" },
                    { WSI_TOKEN_PUT_URI, "PUT" },         { WSI_TOKEN_DELETE_URI, "DELETE" },
                    { WSI_TOKEN_HEAD_URI, "HEAD" },       { WSI_TOKEN_PATCH_URI, "PATCH" },
                    { WSI_TOKEN_OPTIONS_URI, "OPTIONS" }, { WSI_TOKEN_CONNECT, "CONNECT" } };
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (lws->lws_hdr_total_length(wsi, methods[i].token) > 0) {
            return methods[i].name;
        }
    }
    return "UNKNOWN";
}

#endif

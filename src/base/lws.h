/* lws.h - libwebsockets, loaded when the management API is on or an endpoint is opened over HTTP or
 * WebSocket.
 *
 * The one file that includes its header. A program without these neither loads libwebsockets nor
 * needs it installed. */
#ifndef TRPI_BASE_LWS_H
#define TRPI_BASE_LWS_H

#ifdef HAVE_LIBWEBSOCKETS

#include <libwebsockets.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loaded_library.h"

#define TRPI_LWS_FUNCTIONS(F)                                                                      \
    F(lws_callback_on_writable)                                                                    \
    F(lws_cancel_service)                                                                          \
    F(lws_client_connect_via_info)                                                                 \
    F(lws_close_reason)                                                                            \
    F(lws_context_destroy)                                                                         \
    F(lws_context_user)                                                                            \
    F(lws_create_context)                                                                          \
    F(lws_create_vhost)                                                                            \
    F(lws_frame_is_binary)                                                                         \
    F(lws_get_context)                                                                             \
    F(lws_get_library_version)                                                                     \
    F(lws_get_opaque_user_data)                                                                    \
    F(lws_get_peer_simple)                                                                         \
    F(lws_get_socket_fd)                                                                           \
    F(lws_get_ssl)                                                                                 \
    F(lws_get_vhost_listen_port)                                                                   \
    F(lws_hdr_copy)                                                                                \
    F(lws_hdr_copy_fragment)                                                                       \
    F(lws_hdr_custom_copy)                                                                         \
    F(lws_hdr_custom_length)                                                                       \
    F(lws_hdr_total_length)                                                                        \
    F(lws_http_transaction_completed)                                                              \
    F(lws_is_final_fragment)                                                                       \
    F(lws_is_first_fragment)                                                                       \
    F(lws_remaining_packet_payload)                                                                \
    F(lws_rx_flow_control)                                                                         \
    F(lws_service)                                                                                 \
    F(lws_set_log_level)                                                                           \
    F(lws_set_opaque_user_data)                                                                    \
    F(lws_set_timeout)                                                                             \
    F(lws_set_timer_usecs)                                                                         \
    F(lws_token_to_string)                                                                         \
    F(lws_write)

typedef struct trpi_lws {
    TRPI_LWS_FUNCTIONS(TRPI_LIBRARY_MEMBER)
} trpi_lws;

/* Load it, once a process. NULL: it cannot be, and why says what to install. Thread: any. */
const trpi_lws *trpi_lws_get(char *why, size_t why_bytes);
/* Return the method of a request whose headers are here; "UNKNOWN": another one. Static. */
const char *trpi_lws_method(const trpi_lws *lws, struct lws *wsi);

#define TRPI_LWS_FDS_MORE 16u /* the listener, the pipe, and what is refused at the limit */

/* Fill what all of our contexts have in common; TLS and times of their own are the caller's. bind:
 * the address to listen at; NULL: it is for clients. seconds: of a request, rounded up. */
void trpi_lws_info_fill(struct lws_context_creation_info *info, const char *bind, int port,
                        uint32_t connections, uint32_t header_bytes, uint32_t timeout_ms);
/* Make a context and its one virtual host, one at a time in the process, without a line of log;
 * SIGPIPE, which the library ignores for all of the process, stays as it was. NULL: there is none;
 * *ret_context, if not NULL, is then the caller's to destroy, and *ret_errno why. Thread: any. */
struct lws_vhost *trpi_lws_open(const trpi_lws *lws, const struct lws_context_creation_info *info,
                                struct lws_context **ret_context, int *ret_errno);

#endif
#endif

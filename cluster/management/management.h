/* management.h - the door of this room: the management API over HTTP, on a thread of its own.
 *
 * The server knows nothing of nodes: its owner gives it `ask`, which gets requests of the control
 * protocol and gives their replies to trpi_management_reply(). */
#ifndef TRPI_MANAGEMENT_MANAGEMENT_H
#define TRPI_MANAGEMENT_MANAGEMENT_H

#include "base/world.h"
#include "cluster/management/access.h"
#include "cluster/management/request.h"
#include "cluster/management/sessions.h"

#define TRPI_MANAGEMENT_CONNECTIONS_DEFAULT 64
#define TRPI_MANAGEMENT_CONNECTIONS_MAX 4096
#define TRPI_MANAGEMENT_REQUEST_S_DEFAULT 10
#define TRPI_MANAGEMENT_STREAMS_DEFAULT 16
#define TRPI_MANAGEMENT_METRICS_NAMES_DEFAULT 20
#define TRPI_MANAGEMENT_METRICS_NAMES_MAX 100

typedef struct trpi_management trpi_management;

typedef struct trpi_management_options {
    const char *bind; /* a numeric address */
    uint16_t port;    /* 0: any free one */
    bool read_only;
    const char *const *hosts, *const *readers, *const *writers; /* lists: copied */
    size_t hosts_count, readers_count, writers_count;
    const char *cert, *key, *ca; /* PEM files, "" cert: no TLS, which needs a loopback address */
    uint32_t connections_max;    /* one more is closed at once */
    uint32_t request_ms;         /* a connection that has not been served by then is closed */
    uint32_t streams_max;        /* of events; one more is 503 */
    uint64_t uid;                /* of the node: ids of events begin with it */
    trpi_management_tokens tokens;
    trpi_world *world; /* its clock ends codes and sessions; NULL: they do not end */
    /* Answer command by trpi_management_reply(management, id, ...), in this call or later, from any
     * thread. from: the client's address and credential, for the audit. The server's thread: it
     * must not wait. */
    void (*ask)(void *arg, trpi_management *management, uint64_t id, const char *command,
                const char *from);
    /* The client that asked `id` has gone, or its time is over: no reply is needed. NULL is fine.
     * The server's thread. */
    void (*cancel)(void *arg, trpi_management *management, uint64_t id);
    void *arg;
} trpi_management_options;

/* Listen, and serve until trpi_management_stop(). Gives *ret_management. why: what to do about an
 * error. Errors: TRP_ECONFIG (libwebsockets is missing, TLS files), TRP_EADDRINUSE, TRP_ENOMEM. */
trp_err trpi_management_open(const trpi_management_options *options,
                             trpi_management **ret_management, char why[TRPI_MANAGEMENT_WHY_BYTES]);
/* Would it open? Nothing listens after. Errors: TRP_ECONFIG. */
trp_err trpi_management_check(char why[TRPI_MANAGEMENT_WHY_BYTES]);
uint16_t trpi_management_port(const trpi_management *management);
/* Read the files of TLS (as in the options) again; connections that begin later have them. Errors:
 * TRP_ECONFIG, TRP_ENOMEM; the present ones stay then, and why says what to do. Thread: any; may
 * block for the file system. */
trp_err trpi_management_tls_reload(trpi_management *management, int64_t wall_ms,
                                   char why[TRPI_MANAGEMENT_WHY_BYTES]);
/* Accept these tokens from now on, and no others. Thread: any. */
void trpi_management_tokens_set(trpi_management *management, const trpi_management_tokens *tokens);
/* Make a code that opens a session of a browser, once, within TRPI_MANAGEMENT_CODE_MS. Errors:
 * TRP_EIO (OpenSSL). Thread: any. */
trp_err trpi_management_code(trpi_management *management,
                             char ret_code[TRPI_MANAGEMENT_SECRET_TEXT]);
/* Give the reply of a request: JSON, borrowed. Thread: any; also after the client has gone, and
 * after trpi_management_stop(). */
void trpi_management_reply(trpi_management *management, uint64_t id, const char *reply);
/* Give an event to the streams, {"event":{...}} of the control protocol; NULL: there was no memory
 * for it, and all streams end. Thread: any; in the order of the events. */
void trpi_management_event(trpi_management *management, const char *object);
/* Return the number of the last event; from now on streams are accepted, if `open`. Thread: any. */
uint64_t trpi_management_events_last(trpi_management *management, bool open);
/* Close all connections and end the thread: ask is not called any more. NULL is fine. */
void trpi_management_stop(trpi_management *management);
/* Free a stopped server, when no reply can come any more. NULL is fine. */
void trpi_management_free(trpi_management *management);

#endif

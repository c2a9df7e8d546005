/* control.h - the server end of the control socket: connections, frames, and calls in progress.
 *
 * The server knows nothing of clusters: its owner gives it `serve`, which gets each checked request
 * as a call and answers it, at once or from a thread of the call's own. */
#ifndef TRPI_NODE_CONTROL_H
#define TRPI_NODE_CONTROL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <troupe/base.h>

#include "base/json.h"
#include "base/world.h"
#include "cluster/node/control_request.h"

#define TRPI_CONTROL_EVENTS_MAX 1024u  /* events that wait for one slow client */
#define TRPI_CONTROL_IDLE_MS 60000u    /* a connection without a request is closed then */
#define TRPI_CONTROL_REQUEST_MS 10000u /* a request that has begun must have arrived by then */
#define TRPI_CONTROL_CARRIED_MAX 16u   /* calls for other nodes at one time, and over HTTP */
#define TRPI_CONTROL_FOLLOWERS_MAX 8u  /* of those over HTTP: that wait for the next record */

typedef struct trpi_control trpi_control;

/* One request in progress. */
typedef struct trpi_call {
    trpi_control_request request;
    uint64_t start_ns, deadline_ns; /* monotonic */
    atomic_bool cancelled; /* the client has gone, or the node ends: give up; plain flag, no data */
    atomic_bool goes_on;   /* a client that goes does not cancel it (trpi_call_go_on) */
    bool answered;         /* the final object has been emitted; by the call's thread only */
    /* Send one object. text: NUL-terminated JSON, borrowed. Any thread. */
    void (*emit)(struct trpi_call *call, const char *text, bool final);
    void *emit_arg;
    uint64_t emit_id; /* of the connection, or of the request over HTTP */
    trpi_control *control;
    trpi_world *world; /* its clock */
    bool by_known;     /* the client's user and process by SO_PEERCRED; false: another node asks */
    uint32_t by_uid;
    long by_pid;
    /* of a request over HTTP: "management from=127.0.0.1 token=2/0a1b2c3d"; "": of none */
    char by_text[192];
} trpi_call;

typedef struct trpi_control_options {
    const char *path;
    trpi_world *world; /* borrowed until close */
    /* Is the command answered from memory, at once? Then serve runs on the poll thread. */
    bool (*is_quick)(const trpi_control_request *request);
    /* Answer call: trpi_call_progress() any number of times, then trpi_call_answer() or
     * trpi_call_refuse() once. For TRPI_CONTROL_EVENTS trpi_call_stream(). */
    void (*serve)(void *arg, trpi_call *call);
    void *arg;
} trpi_control_options;

/* Make the socket: who connects waits for trpi_control_begin(). A stale file is replaced.
 * Errors: TRP_EEXIST (a live node is behind path; *ret_pid is it), TRP_EPERM, TRP_EIO, TRP_ELIMIT
 * (path too long), TRP_ENOMEM. */
trp_err trpi_control_open(const trpi_control_options *options, trpi_control **ret_control,
                          int *ret_pid);
/* Start to serve. Errors: TRP_EIO (no thread). */
trp_err trpi_control_begin(trpi_control *control);
/* Does a node listen at path? *ret_pid: its process; 0: unknown, since it does not accept. Does not
 * wait. */
bool trpi_control_is_live(const char *path, int *ret_pid);
/* Refuse more requests; cancel calls in progress after linger_ms; end streams with exit 69; flush
 * answers for at most flush_ms. Returns when no call is in progress. */
void trpi_control_close(trpi_control *control, uint32_t linger_ms, uint32_t flush_ms);
const char *trpi_control_path(const trpi_control *control);

/* Send an event to every stream that asked for this type. text: the whole stream object; NULL:
 * there was no memory for it, and these streams end with exit 70. Any thread. */
void trpi_control_publish(trpi_control *control, unsigned event_index, const char *text);
bool trpi_control_has_streams(trpi_control *control);

/* Run a call that did not come through the socket on a thread of its own; by_text, if it has one,
 * says that it came over HTTP. Takes call and its request, on success only. Errors: TRP_ELIMIT,
 * TRP_ENOMEM, TRP_ECLOSED. */
trp_err trpi_control_run(trpi_control *control, trpi_call *call);
/* The client of the call of trpi_control_run() that has these has gone: cancel it, unless it goes
 * on. Any thread. */
void trpi_control_cancel(trpi_control *control, const void *emit_arg, uint64_t emit_id);

/* ---- for serve ------------------------------------------------------------------------------- */
/* {"ok":true}, to be filled. NULL: no memory (trpi_call_answer(NULL) says so). */
cJSON *trpi_call_reply(void);
void trpi_call_answer(trpi_call *call, cJSON *reply); /* takes reply */
/* As trpi_call_answer(); not ok: there was no memory to fill it. */
void trpi_call_answer_if(trpi_call *call, bool ok, cJSON *reply);
/* Add "dryRun" and the list "nodes" of an order to reply; return the list, empty. NULL: no
 * memory. */
cJSON *trpi_call_plan(const trpi_call *call, cJSON *reply);
void trpi_call_refuse(trpi_call *call, const trpi_control_refusal *refusal);
void trpi_call_refuse_text(trpi_call *call, int exit_code, const char *hint, const char *format,
                           ...) __attribute__((format(printf, 4, 5)));
/* Refuse an order that was not accepted; what: the name of the command. */
void trpi_call_refuse_order(trpi_call *call, trp_err err, const char *what);
void trpi_call_progress(trpi_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* May a change still begin? Not when its client has hung up, its deadline has passed, or the node
 * ends. Checks the connection itself: after a standstill of the process the poll thread has not
 * done so yet. arg: a trpi_call. Any thread, while the call lives. */
bool trpi_call_is_wanted(void *arg);
/* The same as an error: TRP_OK or TRP_ECANCELED, for trpi_call_refuse_order(). */
trp_err trpi_call_wanted(trpi_call *call);
/* Tell the client that the node has accepted the order: it must know that after a timeout or Ctrl-C
 * of its own. */
void trpi_call_confirm(trpi_call *call);
/* The change has begun, in several steps: from now on it is done to its end, with or without its
 * client, unless the node ends. */
void trpi_call_go_on(trpi_call *call);
/* From now on events of the request's types go to the client. */
void trpi_call_stream(trpi_call *call);
/* An object of the stream found no memory: it ends with exit 70. */
void trpi_call_stream_fail(trpi_call *call);
/* Answer, and take the client's connection out of the server: from now on its bytes are the
 * caller's. Gives *ret_fd (nonblocking; close). Errors: TRP_EUNSUPPORTED (the call did not come
 * through the socket; it is refused), TRP_ECLOSED (the client has gone). */
trp_err trpi_call_take_stream(trpi_call *call, const char *text, int *ret_fd);
extern const char trpi_call_no_memory[]; /* the final object then */
/* Is the server about to close? A call that waits for what may never come gives up then. */
bool trpi_call_ends(trpi_call *call);
/* Wait `ms`, or until cancelled. false: give up (cancelled). Only on the call's own thread. */
bool trpi_call_pause(trpi_call *call, uint32_t ms);
/* Wait a little, until the view may have changed. false: refused, the node is stopping. */
bool trpi_call_look_again(trpi_call *call);
uint64_t trpi_call_elapsed_ns(const trpi_call *call);
double trpi_call_elapsed_ms(const trpi_call *call);              /* whole ones */
bool trpi_call_add_elapsed(const trpi_call *call, cJSON *reply); /* "elapsedMs" */
/* Milliseconds that are left before the client gives up, less a margin to answer; 0: none. */
uint32_t trpi_call_left_ms(const trpi_call *call);

#endif

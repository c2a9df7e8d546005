/* control_inner.h - the structs that the two files of the control server share; see control.c for
 * their rules. */
#ifndef TRPI_NODE_CONTROL_INNER_H
#define TRPI_NODE_CONTROL_INNER_H

#include "cluster/node/control.h"

#include <pthread.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "cluster/node/ctl_proto.h"

typedef struct out_frame {
    struct out_frame *next;
    size_t bytes, written;
    bool is_event;
    uint8_t data[]; /* header and body */
} out_frame;

typedef struct connection {
    struct connection *next;
    uint64_t id;
    int fd;
    trpi_buffer in;     /* control-I1 */
    uint64_t active_ns; /* the last request ended, or the first byte of the next came */
    out_frame *out_first, **out_last;
    uint32_t events_count; /* of out */
    uint32_t event_bits;   /* a stream: its types */
    trpi_call *call;       /* in progress, NULL none */
    bool by_known; /* the client's, by SO_PEERCRED; written before it is listed, as the two below */
    uint32_t by_uid;
    long by_pid;
    bool closing; /* close when out is empty */
    bool dead;    /* close at once */
    /* all but `in` with the lock */
} connection;

struct trpi_control {
    trpi_control_options options;
    char path[TRPI_CTL_PATH_BYTES];
    int listen_fd, wake_fd;
    int spare_fd; /* kept for one client where the process has no descriptor left; -1: in use */
    dev_t device; /* of the file, so that we remove only our own */
    ino_t inode;
    pthread_t thread;
    pthread_mutex_t lock; /* innermost: nothing is called out with it */
    pthread_cond_t ended; /* calls_count has fallen */
    connection *connections;
    size_t connections_count;
    uint32_t calls_count;
    /* calls that did not come through the socket; NULL: free. The first half is for other nodes,
     * which clients over HTTP must not keep waiting: control-serve-S3 */
    trpi_call *carried[2 * TRPI_CONTROL_CARRIED_MAX];
    uint32_t streams_count;
    uint64_t id_next;
    bool stopping; /* no new requests */
    bool quit;     /* the poll thread is to end */
    bool has_begun;
};

/* control.c */
void trpi_control_wake(trpi_control *control);
/* With the lock. Put text among the frames to c; false: no memory, c is closed. */
bool trpi_control_push(connection *c, const char *text, bool is_event);
/* With the lock. NULL: it has gone. */
connection *trpi_control_find(trpi_control *control, uint64_t id);
/* Has the client closed the connection, or its sending side? Then it does not wait for an
 * answer. */
bool trpi_control_hung_up(const connection *c);
/* With the lock. End c's stream, if it is one, with a last object. */
void trpi_control_stream_end(trpi_control *control, connection *c, const char *final_text);

/* control_serve.c */
void trpi_control_emit(trpi_call *call, const char *text, bool final);
void trpi_call_free(trpi_call *call);
void trpi_call_serve(trpi_call *call); /* without the lock: control-I3 */
/* With the lock. On failure the caller still owns call. */
trp_err trpi_call_start(trpi_control *control, trpi_call *call);

#endif

/* control_request.h - one request of the control protocol, checked. See CONTROL.md. */
#ifndef TRPI_NODE_CONTROL_REQUEST_H
#define TRPI_NODE_CONTROL_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>
#include <troupe/trace.h>

#include "base/json.h"

#define TRPI_CONTROL_ADDRESSES_MAX 32
#define TRPI_CONTROL_DOWNS_MAX 256 /* members that one command downs */
#define TRPI_CONTROL_TIMEOUT_MS_MAX (24u * 3600u * 1000u)
#define TRPI_CONTROL_DEPTH_DEFAULT 16u
#define TRPI_CONTROL_RECORDS_MAX 1000000u /* field count */

typedef enum trpi_control_command {
    TRPI_CONTROL_VERSION = 1,
    TRPI_CONTROL_MEMBERS,
    TRPI_CONTROL_MEMBER_STATUS,
    TRPI_CONTROL_STATUS,
    TRPI_CONTROL_JOIN,
    TRPI_CONTROL_LEAVE,
    TRPI_CONTROL_DOWN,
    TRPI_CONTROL_EVENTS,
    TRPI_CONTROL_SEND,
    TRPI_CONTROL_ASK,
    TRPI_CONTROL_PING,
    TRPI_CONTROL_TREE,
    TRPI_CONTROL_CONFIG,
    TRPI_CONTROL_PEERS,
    TRPI_CONTROL_FAULT,
    TRPI_CONTROL_WHY,
    TRPI_CONTROL_SHUTDOWN,
    TRPI_CONTROL_REACH,
    TRPI_CONTROL_SINGLETON,
    TRPI_CONTROL_TOPICS,
    TRPI_CONTROL_PUBLISH,
    TRPI_CONTROL_SHARDS,
    TRPI_CONTROL_ENTITY,
    TRPI_CONTROL_DEADLETTERS,
    TRPI_CONTROL_LOGS,
    TRPI_CONTROL_DOCTOR,
    TRPI_CONTROL_STOP,
    TRPI_CONTROL_METRICS,
    TRPI_CONTROL_READY,
    TRPI_CONTROL_ALIVE,
    TRPI_CONTROL_RELOAD,
    TRPI_CONTROL_TRACE,
    TRPI_CONTROL_TOP,
    TRPI_CONTROL_DRAIN,
    TRPI_CONTROL_UNDRAIN,
    TRPI_CONTROL_DASHBOARD,
    TRPI_CONTROL_SENDERS,
    TRPI_CONTROL_BRIDGE,
    TRPI_CONTROL_UPGRADE,
    TRPI_CONTROL_SPAWN,
    TRPI_CONTROL_WATCH
} trpi_control_command;

/* Event types as bits, in the order of trpi_control_event_name(). */
enum { TRPI_CONTROL_EVENT_TYPES = 14 };
const char *trpi_control_event_name(unsigned index);

/* Texts borrow from json. */
typedef struct trpi_control_request {
    cJSON *json;
    trpi_control_command command;
    uint32_t timeout_ms;
    bool wait, dry_run, unreachable, snapshot;
    bool cautious;       /* down: refuse where two clusters may be left */
    bool dead;           /* down: the operator says that they are stopped */
    bool prepare;        /* shutdown: only note that the whole cluster ends */
    bool everywhere;     /* shutdown, prepare: on every member */
    uint32_t keep_ms;    /* shutdown, prepare: for so long at least */
    bool local;          /* reach, doctor, trace, shards: of this node alone */
    bool all_members;    /* status, why, peers, doctor: the answers of every member */
    bool rebalance;      /* shards: of the type */
    bool follow;         /* deadletters, logs: wait for the next one */
    uint32_t event_bits; /* events: wanted types */
    uint32_t depth;
    /* deadletters, logs: only the last ones, 0: all; trace: one message in so many */
    uint32_t count;
    uint64_t after;                /* only those behind this number; 0: all */
    const char *level, *component; /* logs; NULL: all */
    const char *member;            /* NULL: this node */
    /* send, ask, tree, watch; ping: its target; fault: its peer; upgrade: a file; spawn: a name */
    const char *path;
    const char *plugin;           /* spawn: FILE or FILE:SYMBOL */
    const char *action;           /* fault, stop, trace: never NULL there */
    const char *direction, *rule; /* fault; direction is never NULL there */
    const char *type;
    const char *text;
    bool has_trace;   /* send, ask: */
    trp_trace trace;  /* that the message continues */
    uint8_t *payload; /* decoded base64; NULL without */
    size_t payload_bytes;
    const char *addresses[TRPI_CONTROL_ADDRESSES_MAX];
    size_t addresses_count;
    uint64_t uids[TRPI_CONTROL_DOWNS_MAX]; /* down: those of these that are unreachable */
    size_t uids_count;
} trpi_control_request;

/* The reason of a refusal, as the client gets it. */
typedef struct trpi_control_refusal {
    int exit; /* enum trpi_ctl_exit */
    char error[1024];
    char hint[1024]; /* "": none */
} trpi_control_refusal;

void trpi_control_refuse(trpi_control_refusal *ret_refusal, int exit_code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Read and check a request body. On success trpi_control_request_fini() frees what it holds.
 * Errors: TRP_EDATA, TRP_EINVAL, TRP_EVERSION, TRP_ENOMEM; *ret_refusal is the answer. */
trp_err trpi_control_request_parse(const uint8_t *body, size_t bytes,
                                   trpi_control_request *ret_request,
                                   trpi_control_refusal *ret_refusal);
void trpi_control_request_fini(trpi_control_request *request);

#endif

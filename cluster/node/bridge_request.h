/* bridge_request.h - what a program says to its bridge, checked: bytes to lines, lines to requests.
 *
 * The protocol is docs/bridge.md. Pure: no socket, clock, thread or actor. */
#ifndef TRPI_NODE_BRIDGE_REQUEST_H
#define TRPI_NODE_BRIDGE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/message.h>
#include <troupe/trace.h>

#include "base/buffer.h"
#include "base/json.h"
#include "cluster/node/control_request.h"

#define TRPI_BRIDGE_LINE_BYTES_MAX 1048576u /* of one line, either way, without its newline */
#define TRPI_BRIDGE_TIMEOUT_MS_DEFAULT 5000u
#define TRPI_BRIDGE_NUMBER_MAX 9007199254740991ull /* 2^53 - 1: of id and reply */

/* ---- bytes to lines -------------------------------------------------------------------------- */

/* Zeroed is begun. */
typedef struct trpi_bridge_lines {
    trpi_buffer held; /* of a line whose end has not come */
    bool skips;       /* the rest of a line that was refused */
    uint64_t number;  /* of the line that was given last, from 1 on */
} trpi_bridge_lines;

/* One line, without its newline; or, with err, why it is not given: TRP_EMSGSIZE (longer than
 * TRPI_BRIDGE_LINE_BYTES_MAX), TRP_ENOMEM. Borrows text. */
typedef void (*trpi_bridge_line_fn)(void *arg, uint64_t number, trp_err err, const char *text,
                                    size_t bytes);
/* Take bytes of the stream, and call fn with each line that ends in them. Lines of white space
 * count and are not given. */
void trpi_bridge_lines_feed(trpi_bridge_lines *lines, const void *data, size_t bytes,
                            trpi_bridge_line_fn fn, void *arg);
void trpi_bridge_lines_fini(trpi_bridge_lines *lines); /* begun again */

/* ---- lines to requests ----------------------------------------------------------------------- */

typedef enum trpi_bridge_op {
    TRPI_BRIDGE_HOST = 1,
    TRPI_BRIDGE_STOP,
    TRPI_BRIDGE_TELL,
    TRPI_BRIDGE_ASK,
    TRPI_BRIDGE_REPLY,
    TRPI_BRIDGE_FAIL,
    TRPI_BRIDGE_WATCH,
    TRPI_BRIDGE_UNWATCH,
    TRPI_BRIDGE_SUBSCRIBE,
    TRPI_BRIDGE_UNSUBSCRIBE,
    TRPI_BRIDGE_PUBLISH,
    TRPI_BRIDGE_EVENTS,
    TRPI_BRIDGE_PING
} trpi_bridge_op;

/* Texts borrow from json. */
typedef struct trpi_bridge_request {
    cJSON *json;
    trpi_bridge_op op;
    bool has_id, has_trace;
    uint64_t id;
    const char *actor; /* "": the bridge itself */
    const char *to, *topic, *group, *error;
    uint64_t reply;
    uint32_t timeout_ms;
    uint32_t event_bits; /* events: as of trpi_control_request */
    trp_trace trace;
    const char *type, *text, *base64; /* of the message; NULL: absent */
    const cJSON *value;               /* "json" of the message; NULL: absent */
} trpi_bridge_request;

/* Read a line. On success trpi_bridge_request_fini() frees what the request holds; on failure it
 * holds nothing, and has its id if one could be read. Errors: TRP_EDATA (no JSON object),
 * TRP_EINVAL (a key is missing, unknown or wrong). *ret_refusal is the answer. */
trp_err trpi_bridge_request_parse(const char *text, size_t bytes, trpi_bridge_request *ret_request,
                                  trpi_control_refusal *ret_refusal);
void trpi_bridge_request_fini(trpi_bridge_request *request);

/* The message of a request. */
typedef struct trpi_bridge_message {
    const trp_type *type;
    const void *payload;
    size_t bytes;
    void *owned; /* trpi_free */
} trpi_bridge_message;
/* Make the message of a tell, ask, reply or publish; borrows from the request what it does not own.
 * Errors: TRP_ENOTYPE, TRP_EDATA, TRP_ENOMEM; *ret_refusal is the answer. */
trp_err trpi_bridge_message_make(const trpi_bridge_request *request,
                                 trpi_bridge_message *ret_message,
                                 trpi_control_refusal *ret_refusal);

/* ---- lines to the program: each ends with a newline; cJSON_free(); NULL: no memory ----------- */

/* {"id":N,"ok":true}, to be filled; NULL: no memory. */
cJSON *trpi_bridge_answer(uint64_t id);
/* {"event":NAME}, to be filled; NULL: no memory. */
cJSON *trpi_bridge_event(const char *name);
/* Print a line. Takes object; NULL or not ok: no memory. */
char *trpi_bridge_print(cJSON *object, bool ok);
/* The answer to a request that is refused: with its id, else as event "error". request NULL: of
 * line `number` as a whole. */
char *trpi_bridge_refuse(const trpi_bridge_request *request, uint64_t number,
                         const trpi_control_refusal *refusal);
/* Move the members of `from` into object; takes from. false: no memory, or one is NULL. */
bool trpi_bridge_move(cJSON *object, cJSON *from);
/* The name of an op. */
const char *trpi_bridge_op_name(trpi_bridge_op op);

#endif

/* carry.c - a call that another node runs: control requests over TRPI_CHANNEL_NODE.
 *
 * Why.     The client talks to the node on its machine; a request that only another node can answer
 *          (its tree) is carried there and back, so that an operator needs no login on every host.
 * Shape.   frame = u8 version, u8 kind (1 request, 2 reply), u64 id, JSON of the control protocol
 *          asking: the call's thread sends, and looks every WAIT_STEP_MS for the reply of its id
 *          asked:  the transport thread checks the request and gives it to the control server's
 *                  threads (a node without a control socket answers that it carries nothing)
 * Must hold.
 *   carry-I1  only commands that change nothing are carried, and the notice that the whole cluster
 *       ends (is_carried)
 *   carry-I2  the transport thread never blocks: it parses and hands over (on_frame)
 *   carry-I4  only members of the asked node's view are answered (request_take)
 *   carry-I3  a reply is accepted only if a call waits for its id, and only from the node that was
 *       asked (reply_take)
 * Limits.  WAITERS_MAX asking; TRPI_CONTROL_CARRIED_MAX asked; REPLY_BYTES_MAX of a reply: a larger
 *          one is answered with exit 65.
 * Tests.   tests/system/cli.sh
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "base/wire.h"
#include "cluster/node/node_private.h"

#define CARRY_VERSION 1u
#define HEADER_BYTES 10u
#define WAITERS_MAX 64u
#define REPLY_BYTES_MAX (192u * 1024u) /* fits a control frame of the default size */
#define WAIT_STEP_MS 2u

enum { KIND_REQUEST = 1, KIND_REPLY = 2 };

typedef struct waiter {
    uint64_t id; /* 0: free */
    trpi_address address;
    uint8_t *reply; /* JSON, when it has arrived */
    size_t reply_bytes;
} waiter;

struct trpi_carry {
    trp_node *node;
    pthread_mutex_t lock; /* innermost */
    uint64_t id_next;
    waiter waiters[WAITERS_MAX];
    bool closing;
};

/* A call for another node, and the address for its answer. */
typedef struct asked {
    trpi_call call; /* first: the server frees it as a call */
    trpi_node_id from;
    uint64_t id;
} asked;

static trp_err
frame_send(trp_node *node, const trpi_node_id *to, uint8_t kind, uint64_t id, const char *text)
{
    size_t bytes = strlen(text);
    uint8_t *frame = trpi_alloc(HEADER_BYTES + bytes);
    if (!frame) {
        return TRP_ENOMEM;
    }
    frame[0] = CARRY_VERSION;
    frame[1] = kind;
    trpi_put_u64(frame + 2, id);
    memcpy(frame + HEADER_BYTES, text, bytes);
    trp_err err =
        trpi_remote_control_send(node->remote, to, TRPI_CHANNEL_NODE, frame, HEADER_BYTES + bytes);
    trpi_free(frame);
    return err;
}

/* ---- asked ----------------------------------------------------------------------------------- */

static bool
is_carried(const trpi_control_request *request)
{
    if (request->all_members) {
        return false; /* one member asks all; its question is not passed on */
    }
    return request->command == TRPI_CONTROL_TREE || request->command == TRPI_CONTROL_STATUS ||
           request->command == TRPI_CONTROL_WHY || request->command == TRPI_CONTROL_PEERS ||
           request->command == TRPI_CONTROL_VERSION || request->command == TRPI_CONTROL_SINGLETON ||
           ((request->command == TRPI_CONTROL_SHARDS || request->command == TRPI_CONTROL_ENTITY) &&
            request->member == NULL && !request->rebalance) ||
           (request->command == TRPI_CONTROL_REACH && request->local) ||
           request->command == TRPI_CONTROL_DOCTOR ||
           (request->command == TRPI_CONTROL_TRACE && request->local &&
            strcmp(request->action, "show") == 0) ||
           (request->command == TRPI_CONTROL_SHUTDOWN && request->prepare && !request->everywhere);
}

static void
asked_emit(trpi_call *call, const char *text, bool final)
{
    asked *a = (asked *)call;
    trp_node *node = call->emit_arg;
    if (!final) {
        return; /* progress is only shown at the node that runs the call */
    }
    if (strlen(text) > REPLY_BYTES_MAX) {
        text = "{\"ok\":false,\"exit\":65,\"error\":\"the answer is too large to be carried; ask "
               "for less (--depth)\"}";
    }
    (void)!frame_send(node, &a->from, KIND_REPLY, a->id,
                      text); /* lost: the asking side times out */
}

static void
refusal_send(trp_node *node, const trpi_node_id *to, uint64_t id, int exit_code, const char *error)
{
    char text[256];
    (void)snprintf(text, sizeof text, "{\"ok\":false,\"exit\":%d,\"error\":\"%s\"}", exit_code,
                   error);
    (void)!frame_send(node, to, KIND_REPLY, id, text); /* lost: the asking side times out */
}

static void
request_take(trp_node *node, const trpi_node_id *from, uint64_t id, const uint8_t *json,
             size_t bytes)
{
    trpi_control_refusal refusal;
    if (!trpi_cluster_is_member(node->cluster, from)) { /* carry-I4 */
        refusal_send(node, from, id, TRPI_CTL_EXIT_PERMISSION,
                     "that node takes commands from members of its cluster only");
        return;
    }
    if (!node->control) {
        refusal_send(node, from, id, TRPI_CTL_EXIT_UNREACHABLE,
                     "that node has no control socket (cluster.control-socket)");
        return;
    }
    asked *a = trpi_alloc(sizeof *a);
    if (!a) {
        return; /* the asking side times out */
    }
    if (trpi_control_request_parse(json, bytes, &a->call.request, &refusal) != TRP_OK ||
        !is_carried(&a->call.request)) { /* carry-I1 */
        refusal_send(node, from, id, TRPI_CTL_EXIT_USAGE, "that node does not carry this command");
        trpi_control_request_fini(&a->call.request);
        trpi_free(a);
        return;
    }
    a->from = *from;
    a->id = id;
    a->call.emit = asked_emit;
    a->call.emit_arg = node;
    a->call.world = trpi_system_world(node->system);
    a->call.start_ns = trpi_world_mono_ns(a->call.world);
    a->call.deadline_ns = a->call.start_ns + (uint64_t)a->call.request.timeout_ms * 1000000u;
    trp_err err = trpi_control_run(node->control, &a->call);
    if (err != TRP_OK) {
        refusal_send(node, from, id, TRPI_CTL_EXIT_TIMEOUT,
                     "that node is busy with other commands");
        trpi_control_request_fini(&a->call.request);
        trpi_free(a);
    }
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void
reply_take(struct trpi_carry *carry, const trpi_node_id *from, uint64_t id, const uint8_t *json,
           size_t bytes)
{
    pthread_mutex_lock(&carry->lock);
    for (size_t i = 0; i < WAITERS_MAX; i++) {
        waiter *w = &carry->waiters[i];
        if (id != 0 && w->id == id && !w->reply &&
            trpi_address_equal(&w->address, &from->address)) { /* carry-I3 */
            w->reply = trpi_alloc(bytes + 1);
            if (w->reply) {
                memcpy(w->reply, json, bytes);
                w->reply_bytes = bytes;
            }
        }
    }
    pthread_mutex_unlock(&carry->lock);
}

/* Transport thread. */
static void
on_frame(void *arg, const trpi_node_id *from, const uint8_t *bytes, size_t count,
         uint64_t arrived_ns)
{
    (void)arrived_ns;
    struct trpi_carry *carry = arg;
    if (count <= HEADER_BYTES || bytes[0] != CARRY_VERSION) {
        return; /* of a later version: the asking side times out */
    }
    uint64_t id = trpi_get_u64(bytes + 2);
    if (bytes[1] == KIND_REQUEST) {
        request_take(carry->node, from, id, bytes + HEADER_BYTES, count - HEADER_BYTES);
    } else if (bytes[1] == KIND_REPLY) {
        reply_take(carry, from, id, bytes + HEADER_BYTES, count - HEADER_BYTES);
    }
}

static waiter *
waiter_take(struct trpi_carry *carry, const trpi_address *address)
{
    for (size_t i = 0; i < WAITERS_MAX; i++) {
        waiter *w = &carry->waiters[i];
        if (w->id == 0 && !carry->closing) {
            w->id = ++carry->id_next;
            w->address = *address;
            return w;
        }
    }
    return NULL;
}

/* With the lock, released while waiting: until the reply is there, or the limit or the call has
 * ended. */
static trp_err
reply_wait(struct trpi_carry *carry, waiter *w, trpi_call *call, uint64_t until_ns)
{
    while (!w->reply) {
        if (carry->closing || atomic_load_explicit(&call->cancelled, memory_order_relaxed)) {
            return TRP_ECANCELED;
        }
        if (trpi_call_left_ms(call) == 0 || trpi_world_mono_ns(call->world) >= until_ns) {
            return TRP_ETIMEDOUT;
        }
        pthread_mutex_unlock(&carry->lock);
        (void)trpi_call_pause(call, WAIT_STEP_MS);
        pthread_mutex_lock(&carry->lock);
    }
    return TRP_OK;
}

static waiter *
waiter_find(struct trpi_carry *carry, uint64_t id)
{
    for (size_t i = 0; i < WAITERS_MAX; i++) {
        if (carry->waiters[i].id == id) {
            return &carry->waiters[i];
        }
    }
    return NULL;
}

trp_err
trpi_carry_begin(struct trpi_carry *carry, const trpi_address *address, const char *request,
                 uint64_t *ret_id)
{
    trpi_node_id to;
    memset(&to, 0, sizeof to);
    to.address = *address; /* uid 0: any incarnation */
    pthread_mutex_lock(&carry->lock);
    waiter *w = waiter_take(carry, address);
    *ret_id = w ? w->id : 0;
    pthread_mutex_unlock(&carry->lock);
    if (!w) {
        return TRP_EAGAIN;
    }
    trp_err err = frame_send(carry->node, &to, KIND_REQUEST, *ret_id, request);
    if (err != TRP_OK) {
        pthread_mutex_lock(&carry->lock);
        trpi_free(w->reply);
        memset(w, 0, sizeof *w);
        pthread_mutex_unlock(&carry->lock);
        *ret_id = 0;
    }
    return err;
}

trp_err
trpi_carry_end(struct trpi_carry *carry, uint64_t id, uint64_t until_ns, trpi_call *call,
               cJSON **ret_reply)
{
    pthread_mutex_lock(&carry->lock);
    waiter *w = waiter_find(carry, id);
    trpi_assert(id != 0 && w != NULL);
    trp_err err = reply_wait(carry, w, call, until_ns);
    uint8_t *reply = w->reply;
    size_t bytes = w->reply_bytes;
    memset(w, 0, sizeof *w);
    pthread_mutex_unlock(&carry->lock);
    if (err == TRP_OK) {
        err = trpi_json_parse((const char *)reply, bytes, ret_reply, NULL);
        if (err == TRP_OK && !cJSON_IsBool(cJSON_GetObjectItemCaseSensitive(*ret_reply, "ok"))) {
            cJSON_Delete(*ret_reply);
            err = TRP_EDATA;
        }
    }
    trpi_free(reply);
    return err;
}

trp_err
trpi_carry_ask(struct trpi_carry *carry, const trpi_address *address, const char *request,
               uint32_t limit_ms, trpi_call *call, cJSON **ret_reply)
{
    uint64_t until_ns = trpi_world_mono_ns(call->world) + (uint64_t)limit_ms * 1000000u, id;
    trp_err err = trpi_carry_begin(carry, address, request, &id);
    return err == TRP_OK ? trpi_carry_end(carry, id, until_ns, call, ret_reply) : err;
}

/* ---- open and close -------------------------------------------------------------------------- */

trp_err
trpi_carry_new(trp_node *node, struct trpi_carry **ret_carry)
{
    struct trpi_carry *carry = trpi_alloc(sizeof *carry);
    if (!carry) {
        return TRP_ENOMEM;
    }
    carry->node = node;
    carry->id_next = trpi_world_random(trpi_system_world(node->system)) | 1;
    pthread_mutex_init(&carry->lock, NULL);
    *ret_carry = carry;
    return TRP_OK;
}

void
trpi_carry_bind(struct trpi_carry *carry, bool on)
{
    trpi_remote_control_bind(carry->node->remote, TRPI_CHANNEL_NODE, on ? on_frame : NULL, carry);
    if (!on) {
        pthread_mutex_lock(&carry->lock);
        carry->closing = true;
        pthread_mutex_unlock(&carry->lock);
    }
}

/* No call is in progress any more: the control server has been closed. */
void
trpi_carry_free(struct trpi_carry *carry)
{
    if (!carry) {
        return;
    }
    trpi_mutex_destroy(&carry->lock);
    trpi_free(carry);
}

/* request.c - the messages of a region's actor, which own what they carry.
 *
 * Must hold.
 *   request-O1  A request that is freed with the message that brought it makes a dead letter of
 *       what it carries: nothing that was told is lost without a word.
 *   request-O2  The memory of a request lives as long as the message that brought it (attached),
 *       and as long as it is needed (kept, until over).
 * Tests.   tests/unit/cluster/entity_test.c
 */
#include <string.h>

#include "base/alloc.h"
#include "cluster/sharding/region.h"

trp_type trpi_request_type = { .name = "sharding.request", .tag = 0, .flags = TRP_TYPE_LOCAL };
trp_type trpi_region_tick_type = { .name = "sharding.tick", .tag = 1, .flags = TRP_TYPE_LOCAL };

trpi_request *
trpi_request_new(trp_system *system, enum trpi_request_kind kind, trpi_entry *entry, const void *id,
                 size_t id_bytes, trp_msg *msg)
{
    trpi_request *request = trpi_alloc(sizeof *request + id_bytes);
    if (request != NULL) {
        request->system = system;
        request->kind = (uint8_t)kind;
        request->entry = entry;
        request->msg = msg;
        request->id_bytes = (uint8_t)id_bytes;
        request->bytes = sizeof *request + id_bytes + (msg != NULL ? 64 + trp_msg_bytes(msg) : 0);
        if (id_bytes > 0) {
            memcpy(request->id, id, id_bytes);
        }
    }
    return request;
}

void
trpi_request_free(trpi_request *request)
{
    if (request != NULL) {
        trpi_msg_drop(request->msg);
        trpi_free(request->home);
        trpi_request_lost(request->fired);
        request->fired = NULL;
        request->msg = NULL;
        request->home = NULL;
        /* acq_rel: pairs with itself in order_release(), maybe on another thread */
        if ((atomic_fetch_or_explicit(&request->marks, TRPI_REQUEST_OVER, memory_order_acq_rel) &
             TRPI_REQUEST_ATTACHED) == 0) {
            trpi_free(request);
        }
    }
}

void
trpi_request_dead(trpi_request *request, trp_dead_reason reason)
{
    trp_ref nobody = TRP_REF_NONE;
    if (request->msg != NULL && trpi_system_entities(request->system) != NULL) {
        trpi_dead_letter_msg(request->system, nobody, request->msg, reason);
    }
    trpi_request_free(request);
}

/* The message that brought the request is freed. request-O1 */
static void
order_release(void *data, void *arg)
{
    trpi_request *request = data;
    (void)arg;
    uint8_t marks = atomic_fetch_and_explicit(&request->marks, (uint8_t)~TRPI_REQUEST_ATTACHED,
                                              memory_order_acq_rel);
    if ((marks & TRPI_REQUEST_OVER) != 0) {
        trpi_free(request);
    } else if ((marks & TRPI_REQUEST_KEPT) == 0) {
        trpi_request_dead(request, TRP_DEAD_STOPPED);
    }
}

void
trpi_request_tell(trp_ctx *ctx, trpi_region *region, trpi_request *request)
{
    trp_msg *msg;
    if (atomic_load_explicit(&region->closed, memory_order_acquire)) {
        trpi_request_dead(request, TRP_DEAD_STOPPED);
    } else if (trpi_msg_new_owner(&trpi_request_type, request, order_release, &msg) != TRP_OK) {
        trpi_request_dead(request, TRP_DEAD_NO_MEMORY);
    } else {
        /* relaxed: nobody else has it yet */
        atomic_store_explicit(&request->marks, TRPI_REQUEST_ATTACHED, memory_order_relaxed);
        trpi_send(ctx, region->actor, msg);
    }
}

void
trpi_request_fired(trpi_request *fired, enum trpi_request_kind kind)
{
    fired->kind = (uint8_t)kind;
    if (trpi_system_entities(fired->system) == NULL) { /* the system is being freed */
        trpi_request_free(fired);
        return;
    }
    trp_ctx *ctx = trpi_enter(fired->system);
    trpi_request_tell(ctx, fired->region, fired);
    trpi_leave(ctx);
}

void
trpi_request_lost(void *fired)
{
    if (fired != NULL) {
        trpi_request_fired(fired, TRPI_REQUEST_UNFIRED);
    }
}

void
trpi_request_append(trpi_request_queue *queue, trpi_request *request)
{
    request->next = NULL;
    if (queue->last == NULL) {
        queue->first = request;
    } else {
        queue->last->next = request;
    }
    queue->last = request;
    queue->count++;
}

trpi_request *
trpi_request_take(trpi_request_queue *queue)
{
    trpi_request *request = queue->first;
    if (request != NULL) {
        queue->first = request->next;
        queue->last = queue->first == NULL ? NULL : queue->last;
        queue->count--;
    }
    return request;
}

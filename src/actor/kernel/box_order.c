/* box_order.c - in what order a box gives its messages: by priority, control first, or as the
 * program's own mailbox says.
 *
 * Must hold.
 *   mailbox-order-O1  Equal priorities, and messages of one class, keep the order of their arrival.
 * Cost.    priority: O(log n) a message; control-aware: O(1).
 * Tests.   tests/unit/actor/box_test.c
 * Sources. MBOX-5, -12.
 */
#include "actor/kernel/box.h"

#include <string.h>

#include "actor/kernel/extra.h"
#include "base/alloc.h"
#include "base/assert.h"

#define HEAP_FIRST 16u

bool
trpi_order_is_used(const trpi_box *box)
{
    switch (box->type->options.kind) {
    case TRP_MAILBOX_KIND_PRIORITY:
    case TRP_MAILBOX_KIND_BOUNDED_PRIORITY:
    case TRP_MAILBOX_KIND_CONTROL_AWARE:
    case TRP_MAILBOX_KIND_BOUNDED_CONTROL_AWARE:
    case TRP_MAILBOX_KIND_CUSTOM:
    case TRP_MAILBOX_KIND_PEEK:
        return true;
    default:
        return false;
    }
}

static bool
is_before(const trpi_heap_item *a, const trpi_heap_item *b)
{
    /* mailbox-order-O1 */
    return a->order != b->order ? a->order < b->order : a->arrival < b->arrival;
}

static trp_err
heap_put(trpi_box *box, trp_msg *msg)
{
    bool last = msg->priv_type == TRPI_TYPE_MARK; /* marks-K2: the program does not see it */
    trpi_heap_item item = { last ? INT64_MAX
                                 : box->type->options.priority(box->type->options.arg, msg),
                            box->arrivals++, msg };
    uint32_t at = box->heap_count;

    if (box->heap_count == box->heap_size) {
        uint32_t size = box->heap_size != 0 ? 2 * box->heap_size : HEAP_FIRST;
        trpi_heap_item *heap = trpi_alloc(size * sizeof *heap);

        if (heap == NULL) {
            return TRP_ENOMEM;
        }
        if (box->heap_count > 0) {
            memcpy(heap, box->heap, box->heap_count * sizeof *heap);
        }
        trpi_free(box->heap);
        box->heap = heap;
        box->heap_size = size;
    }
    while (at > 0 && is_before(&item, &box->heap[(at - 1) / 2])) {
        box->heap[at] = box->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    box->heap[at] = item;
    box->heap_count++;
    return TRP_OK;
}

static trp_msg *
heap_take(trpi_box *box)
{
    trpi_heap_item last;
    uint32_t at = 0;
    trp_msg *msg;

    if (box->heap_count == 0) {
        return NULL;
    }
    msg = box->heap[0].msg;
    last = box->heap[--box->heap_count];
    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child + 1 < box->heap_count && is_before(&box->heap[child + 1], &box->heap[child])) {
            child++;
        }
        if (child >= box->heap_count || !is_before(&box->heap[child], &last)) {
            break;
        }
        box->heap[at] = box->heap[child];
        at = child;
    }
    box->heap[at] = last;
    return msg;
}

static bool
is_control(const trp_msg *msg)
{
    const trp_type *type = trpi_type_get(msg->priv_type);

    return type != NULL && (type->flags & TRP_TYPE_CONTROL) != 0;
}

trp_err
trpi_order_put(trpi_box *box, trp_msg *msg)
{
    if (box->custom != NULL) {
        return box->type->options.ops->enqueue(box->custom, box->owner, msg);
    }
    if (box->type->options.priority != NULL) {
        return heap_put(box, msg);
    }
    trpi_msg_list_append(is_control(msg) ? &box->control : &box->plain, msg);
    return TRP_OK;
}

trp_msg *
trpi_order_take(trpi_box *box)
{
    trp_msg *msg;

    if (box->custom != NULL) {
        return box->type->options.ops->dequeue(box->custom);
    }
    if (box->type->options.priority != NULL) {
        return heap_take(box);
    }
    msg = trpi_msg_list_take(&box->control);
    return msg != NULL ? msg : trpi_msg_list_take(&box->plain);
}

uint32_t
trpi_order_count(trpi_box *box)
{
    if (box->custom != NULL) {
        return box->type->options.ops->has(box->custom) ? box->type->options.ops->count(box->custom)
                                                        : 0;
    }
    return box->heap_count + box->control.count + box->plain.count;
}

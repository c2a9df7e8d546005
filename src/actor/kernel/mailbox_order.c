/* mailbox_order.c - the order of a mailbox: by priority, control messages first, or that of a
 * custom mailbox.
 *
 * Must hold.
 *   mailbox-order-O1  Equal priorities, and messages of one class, keep the order of their arrival.
 * Cost.    priority: O(log n) a message; control-aware: O(1).
 * Tests.   tests/unit/actor/bounded_mailbox_test.c
 * Sources. MBOX-5, -12.
 */
#include "actor/kernel/bounded_mailbox.h"

#include "actor/kernel/extra.h"
#include "base/array.h"
#include "base/assert.h"

bool
trpi_mailbox_is_ordered(const trpi_bounded_mailbox *mailbox)
{
    switch (mailbox->type->options.kind) {
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
heap_put(trpi_bounded_mailbox *mailbox, trp_msg *msg)
{
    bool last = msg->priv_type == TRPI_TYPE_MARK; /* marks-K2: no priority() for it */
    trpi_heap_item item = { last ? INT64_MAX
                                 : mailbox->type->options.priority(mailbox->type->options.arg, msg),
                            mailbox->arrivals++, msg };
    uint32_t at = mailbox->heap_count;

    if (!TRPI_ARRAY_HAS_ROOM(mailbox, heap)) {
        return TRP_ENOMEM;
    }
    while (at > 0 && is_before(&item, &mailbox->heap[(at - 1) / 2])) {
        mailbox->heap[at] = mailbox->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    mailbox->heap[at] = item;
    mailbox->heap_count++;
    return TRP_OK;
}

static trp_msg *
heap_take(trpi_bounded_mailbox *mailbox)
{
    trpi_heap_item last;
    uint32_t at = 0;
    trp_msg *msg;

    if (mailbox->heap_count == 0) {
        return NULL;
    }
    msg = mailbox->heap[0].msg;
    last = mailbox->heap[--mailbox->heap_count];
    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child + 1 < mailbox->heap_count &&
            is_before(&mailbox->heap[child + 1], &mailbox->heap[child])) {
            child++;
        }
        if (child >= mailbox->heap_count || !is_before(&mailbox->heap[child], &last)) {
            break;
        }
        mailbox->heap[at] = mailbox->heap[child];
        at = child;
    }
    mailbox->heap[at] = last;
    return msg;
}

static bool
is_control(const trp_msg *msg)
{
    const trp_type *type = trpi_type_get(msg->priv_type);

    return type != NULL && (type->flags & TRP_TYPE_CONTROL) != 0;
}

trp_err
trpi_mailbox_order_put(trpi_bounded_mailbox *mailbox, trp_msg *msg)
{
    if (mailbox->custom != NULL) {
        return mailbox->type->options.ops->enqueue(mailbox->custom, mailbox->owner, msg);
    }
    if (mailbox->type->options.priority != NULL) {
        return heap_put(mailbox, msg);
    }
    trpi_msg_list_append(is_control(msg) ? &mailbox->control : &mailbox->plain, msg);
    return TRP_OK;
}

trp_msg *
trpi_mailbox_order_take(trpi_bounded_mailbox *mailbox)
{
    trp_msg *msg;

    if (mailbox->custom != NULL) {
        return mailbox->type->options.ops->dequeue(mailbox->custom);
    }
    if (mailbox->type->options.priority != NULL) {
        return heap_take(mailbox);
    }
    msg = trpi_msg_list_take(&mailbox->control);
    return msg != NULL ? msg : trpi_msg_list_take(&mailbox->plain);
}

uint32_t
trpi_mailbox_order_count(trpi_bounded_mailbox *mailbox)
{
    if (mailbox->custom != NULL) {
        return mailbox->type->options.ops->has(mailbox->custom)
                   ? mailbox->type->options.ops->count(mailbox->custom)
                   : 0;
    }
    return mailbox->heap_count + mailbox->control.count + mailbox->plain.count;
}

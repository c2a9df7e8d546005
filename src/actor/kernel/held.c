/* held.c - messages that hold what cannot be copied, such as counted slices of bytes.
 *
 * Why.     The payload of a message is copied byte by byte wherever a message is told again. A
 *          handle in it would then be given back twice, or never.
 * Shape.   message -> [count | drop | the program's struct]
 *          The struct is out of line and the message has no bytes, so that copying its payload
 *          copies nothing. A copy of the message itself (trp_msg_dup) shares the struct and counts.
 * Must hold.
 *   held-H1  drop is called once, when the last message that shares the struct is freed, whether it
 *       was handled, refused, stashed, a dead letter or never sent.
 *   held-H2  The struct does not change once the message was sent: its readers run at once.
 * Tests.   tests/unit/actor/held_test.c
 * Sources. IO-07; docs/architecture.md#messages-and-types.
 */
#include <stdatomic.h>

#include "actor/kernel/msg.h"
#include "actor/kernel/open.h"
#include "base/alloc.h"
#include "base/assert.h"

typedef struct held {
    _Atomic uint32_t count;
    uint32_t zero;
    void (*drop)(void *held); /* NULL: nothing to give back */
} held;
_Static_assert(sizeof(held) == 16, "the struct behind it is 16-aligned");

static held *
head_of(const void *data)
{
    return (held *)((uintptr_t)data - sizeof(held));
}

static void
held_release(void *data, void *arg)
{
    held *h = head_of(data);

    (void)arg;
    /* release: all uses happen before the drop; acquire: its pair */
    if (atomic_fetch_sub_explicit(&h->count, 1, memory_order_acq_rel) == 1) { /* held-H1 */
        if (h->drop != NULL) {
            h->drop(data);
        }
        trpi_free(h);
    }
}

bool
trpi_msg_is_held(const trp_msg *msg)
{
    const trp_msg_priv_moved *moved = (const void *)((const char *)msg + TRPI_MSG_HEADER_BYTES);

    return (msg->priv_from_node_flags & TRP_MSG_PRIV_OUT_OF_LINE) != 0 &&
           moved->release == held_release;
}

void
trpi_msg_held_share(const trp_msg *msg)
{
    trpi_assert(trpi_msg_is_held(msg));
    /* relaxed: the caller has a message that counts already */
    (void)atomic_fetch_add_explicit(&head_of(trp_msg_payload(msg))->count, 1, memory_order_relaxed);
}

trp_err
trp_msg_new_held(const trp_type *type, size_t bytes, void (*drop)(void *held), trp_msg **ret_msg,
                 void **ret_held)
{
    trp_err err;
    held *h;

    if (type == NULL || ret_msg == NULL || ret_held == NULL || bytes > TRP_HELD_BYTES_MAX ||
        type->bytes != 0 || (type->flags & TRP_TYPE_LOCAL) == 0 ||
        (type->flags & TRP_TYPE_VARIABLE) != 0) {
        return TRP_EINVAL;
    }
    if (type->number == 0) {
        return TRP_ENOTYPE;
    }
    h = trpi_alloc(sizeof *h + bytes);
    if (h == NULL) {
        return TRP_ENOMEM;
    }
    atomic_init(&h->count, 1);
    h->drop = drop;
    err = trpi_msg_new_owner(type, h + 1, held_release, ret_msg);
    if (err != TRP_OK) {
        trpi_free(h);
        return err;
    }
    *ret_held = h + 1;
    return TRP_OK;
}

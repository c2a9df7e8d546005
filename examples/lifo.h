/* lifo.h - for custom_mailbox.c: a stack of messages, last in, first out. */
#include <stdlib.h>

typedef struct lifo { /* run by one thread at a time: no lock */
    trp_msg *msgs[8];
    uint32_t used;
} lifo;
static trp_err
create(void *arg, trp_system *system, trp_ref owner, void **ret_mailbox)
{
    (void)arg, (void)system, (void)owner;
    *ret_mailbox = calloc(1, sizeof(lifo));
    return *ret_mailbox != NULL ? TRP_OK : TRP_ENOMEM;
}
static trp_err
put(void *mailbox, trp_ref receiver, trp_msg *msg)
{
    lifo *stack = mailbox;
    (void)receiver;
    if (stack->used == 8) {
        return TRP_EAGAIN; /* becomes a dead letter: mailbox-full */
    }
    stack->msgs[stack->used++] = msg;
    return TRP_OK;
}
static trp_msg *
take(void *mailbox)
{
    lifo *stack = mailbox;
    return stack->used > 0 ? stack->msgs[--stack->used] : NULL;
}
static uint32_t
count(void *mailbox)
{
    return ((lifo *)mailbox)->used;
}
static int
has(void *mailbox)
{
    return count(mailbox) > 0;
}
static void
clean_up(void *mailbox, void (*dead)(void *arg, trp_msg *msg), void *arg)
{
    for (trp_msg *msg; (msg = take(mailbox)) != NULL;) {
        dead(arg, msg);
    }
}
static const trp_mailbox_ops ops = { sizeof ops, create, put, take, count, has, clean_up, free, 0 };

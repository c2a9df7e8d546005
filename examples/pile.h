/* pile.h - for custom_mailbox.c: the newest message first, as from a pile. */
#include <stdlib.h>

typedef struct pile { /* run by one thread at a time: no lock */
    trp_msg *msgs[8];
    uint32_t used;
} pile;
static trp_err
create(void *arg, trp_system *system, trp_ref owner, void **ret_mailbox)
{
    (void)arg, (void)system, (void)owner;
    *ret_mailbox = calloc(1, sizeof(pile));
    return *ret_mailbox != NULL ? TRP_OK : TRP_ENOMEM;
}
static trp_err
put(void *mailbox, trp_ref receiver, trp_msg *msg)
{
    pile *p = mailbox;
    (void)receiver;
    if (p->used == 8) {
        return TRP_EAGAIN; /* becomes a dead letter: mailbox-full */
    }
    p->msgs[p->used++] = msg;
    return TRP_OK;
}
static trp_msg *
take(void *mailbox)
{
    pile *p = mailbox;
    return p->used > 0 ? p->msgs[--p->used] : NULL;
}
static uint32_t
count(void *mailbox)
{
    return ((pile *)mailbox)->used;
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

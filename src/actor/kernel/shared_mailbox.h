/* shared_mailbox.h - private to the room: the shared mailbox of a balancing dispatcher. */
#ifndef TRPI_ACTOR_KERNEL_SHARED_MAILBOX_H
#define TRPI_ACTOR_KERNEL_SHARED_MAILBOX_H

#include "actor/kernel/bounded_mailbox.h"

typedef struct trpi_shared_mailbox {
    pthread_mutex_t lock; /* all below; a leaf */
    bool teamwork;        /* an idle member takes messages that were told to others */
    /* the same for all members; NULL while there are none */
    const trp_behaviour *behaviour;
    const trpi_mailbox_type *type;
    uint32_t members;
    trp_msg *first, *last;
    _Atomic uint32_t count; /* written under the lock; relaxed: a hint without */
    trpi_bounded_mailbox *idle_first, *idle_last; /* longest idle first */
} trpi_shared_mailbox;

trpi_shared_mailbox *trpi_shared_new(bool teamwork); /* NULL: no memory */
/* Free it with its messages. No thread runs. */
void trpi_shared_free(trpi_shared_mailbox *shared);
/* Add a member. Errors: TRP_EINVAL: the others have another behaviour or mailbox type. */
trp_err trpi_shared_join(trpi_shared_mailbox *shared, trpi_cell *cell,
                         trpi_bounded_mailbox *mailbox);
/* Remove a member that ends or will not be published; with the last one messages are dead
 * letters. */
void trpi_shared_leave(trp_ctx *ctx, trpi_bounded_mailbox *mailbox);
bool trpi_shared_is_empty(trpi_shared_mailbox *shared);
/* A member has another version of the behaviour, which those that join have from now on. Thread:
 * its runner. */
void trpi_shared_behaviour_set(trpi_shared_mailbox *shared, const trp_behaviour *behaviour);

/* Tell the member with this mailbox; some member will handle the message. Takes msg but for
 * TRP_EAGAIN, which only try_only returns. */
trp_err trpi_shared_put(trp_ctx *ctx, trpi_bounded_mailbox *mailbox, trp_ref to, trp_msg *msg,
                        bool try_only);

/* ---- the runner of a member ------------------------------------------------------------------ */
/* Take the next message, readdressed to this member. NULL: there is none; the member is listed as
 * idle, and must check trpi_shared_is_unlisted() when it has given its token up. */
trp_msg *trpi_shared_take(trp_ctx *ctx, trpi_bounded_mailbox *mailbox);
/* shared-mailbox-T2. Without the token. */
static inline bool
trpi_shared_is_unlisted(const trpi_bounded_mailbox *mailbox)
{
    return !atomic_load_explicit(&mailbox->listed, memory_order_seq_cst);
}
/* The member takes no message for now: it is suspended, or stopping. */
void trpi_shared_step_back(trp_ctx *ctx, trpi_bounded_mailbox *mailbox);

#endif

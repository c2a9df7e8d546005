/* shared_mailbox.h - private to the room: the shared mailbox of a balancing dispatcher. */
#ifndef TRPI_ACTOR_KERNEL_SHARED_MAILBOX_H
#define TRPI_ACTOR_KERNEL_SHARED_MAILBOX_H

#include "actor/kernel/bounded_mailbox.h"

typedef struct trpi_shared_mailbox {
    pthread_mutex_t lock; /* all below; a leaf */
    bool teamwork;        /* who is idle helps */
    /* of all members; NULL while there are none */
    const trp_behaviour *behaviour;
    const trpi_mailbox_type *type;
    uint32_t members;
    trp_msg *first, *last;
    _Atomic uint32_t count; /* written under the lock; relaxed: a hint without */
    trpi_bounded_mailbox *idle_first, *idle_last; /* who has been idle longest comes first */
} trpi_shared_mailbox;

trpi_shared_mailbox *trpi_shared_new(bool teamwork); /* NULL: no memory */
/* No thread runs: free it, and what it holds. */
void trpi_shared_free(trpi_shared_mailbox *shared);
/* Errors: TRP_EINVAL: the others are of another behaviour, or have another mailbox. */
trp_err trpi_shared_join(trpi_shared_mailbox *shared, trpi_cell *cell,
                         trpi_bounded_mailbox *mailbox);
/* The member ends, or will not live. The last one: what is left is dead. */
void trpi_shared_leave(trp_ctx *ctx, trpi_bounded_mailbox *mailbox);
bool trpi_shared_is_empty(trpi_shared_mailbox *shared);

/* Tell the member that has this box: one of the team will handle it. Takes msg but for TRP_EAGAIN,
 * which only try_only gives. */
trp_err trpi_shared_put(trp_ctx *ctx, trpi_bounded_mailbox *mailbox, trp_ref to, trp_msg *msg,
                        bool try_only);

/* ---- the runner of a member ------------------------------------------------------------------ */
/* The next message, told to this member from now on. NULL: there is none; the member is listed as
 * idle, and must look at trpi_shared_is_unlisted() when it has given its token up. */
trp_msg *trpi_shared_take(trp_ctx *ctx, trpi_bounded_mailbox *mailbox);
/* shared-mailbox-T2. Without the token. */
static inline bool
trpi_shared_is_unlisted(const trpi_bounded_mailbox *mailbox)
{
    return !atomic_load_explicit(&mailbox->listed, memory_order_seq_cst);
}
/* The member takes nothing for now: it is suspended, or on its way out. */
void trpi_shared_step_back(trp_ctx *ctx, trpi_bounded_mailbox *mailbox);

#endif

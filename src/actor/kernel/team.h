/* team.h - private to the room: the mailbox that the actors of a balancing dispatcher share. */
#ifndef TRPI_ACTOR_KERNEL_TEAM_H
#define TRPI_ACTOR_KERNEL_TEAM_H

#include "actor/kernel/box.h"

typedef struct trpi_team {
    pthread_mutex_t lock; /* all below; a leaf */
    bool teamwork;        /* who is idle helps */
    /* of all members; NULL while there are none */
    const trp_behaviour *behaviour;
    const trpi_box_type *type;
    uint32_t members;
    trp_msg *first, *last;
    _Atomic uint32_t count;           /* written under the lock; relaxed: a hint without */
    trpi_box *idle_first, *idle_last; /* who has been idle longest comes first */
} trpi_team;

trpi_team *trpi_team_new(bool teamwork); /* NULL: no memory */
/* No thread runs: free it, and what it holds. */
void trpi_team_free(trpi_team *team);
/* Errors: TRP_EINVAL: the others are of another behaviour, or have another mailbox. */
trp_err trpi_team_join(trpi_team *team, trpi_cell *cell, trpi_box *box);
/* The member ends, or will not live. The last one: what is left is dead. */
void trpi_team_leave(trp_ctx *ctx, trpi_box *box);
bool trpi_team_is_empty(trpi_team *team);

/* Tell the member that has this box: one of the team will handle it. Takes msg but for TRP_EAGAIN,
 * which only try_only gives. */
trp_err trpi_team_put(trp_ctx *ctx, trpi_box *box, trp_ref to, trp_msg *msg, bool try_only);

/* ---- the runner of a member ------------------------------------------------------------------ */
/* The next message, told to this member from now on. NULL: there is none; the member is listed as
 * idle, and must look at trpi_team_missed() when it has given its token up. */
trp_msg *trpi_team_take(trp_ctx *ctx, trpi_box *box);
/* shared-mailbox-T2. Without the token. */
static inline bool
trpi_team_missed(const trpi_box *box)
{
    return !atomic_load_explicit(&box->listed, memory_order_seq_cst);
}
/* The member takes nothing for now: it is suspended, or on its way out. */
void trpi_team_away(trp_ctx *ctx, trpi_box *box);

#endif

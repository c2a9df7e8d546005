/* recoveries.c - how many actors of a system recover at once.
 *
 * Why.   Thousands of actors that start together would read their events into memory together, and
 *        each would get its answers late.
 * Shape. A counter and a queue: the actor that leaves passes its place on to the one that waits
 *        longest, by a message that was made when it began to wait.
 * Must hold.
 *   recoveries-R1  At most recoveries_max places are given. (trpi_recovery_enter)
 *   recoveries-R2  A place that is given to an actor which ends meanwhile is passed on: it leaves,
 *       too. (trpi_recovery_leave)
 * Tests. tests/unit/persistence/persistent_test.c
 */
#include "persistence/persistent.h"

#include "base/alloc.h"
#include "base/assert.h"

trp_err
trpi_recovery_enter(trpi_persistence *persistence, trp_ref actor, trpi_recovery **ret_recovery)
{
    trpi_recovery *own = trpi_alloc(sizeof *own);
    void *place;

    if (own == NULL || trp_msg_new(&trpi_persistent_type, 0, &own->grant, &place) != TRP_OK) {
        trpi_free(own);
        return TRP_ENOMEM;
    }
    own->actor = actor;
    pthread_mutex_lock(&persistence->lock);
    if (persistence->recoveries < persistence->recoveries_max) { /* recoveries-R1 */
        persistence->recoveries++;
    } else {
        own->waits = true;
        own->prev = persistence->last;
        if (persistence->last != NULL) {
            persistence->last->next = own;
        } else {
            persistence->first = own;
        }
        persistence->last = own;
    }
    pthread_mutex_unlock(&persistence->lock);
    *ret_recovery = own;
    return TRP_OK;
}

bool
trpi_recovery_waits(trpi_persistence *persistence, const trpi_recovery *recovery)
{
    pthread_mutex_lock(&persistence->lock);
    bool waits = recovery->waits;
    pthread_mutex_unlock(&persistence->lock);
    return waits;
}

static void
unlink_waiting(trpi_persistence *persistence, const trpi_recovery *own)
{
    if (own->prev != NULL) {
        own->prev->next = own->next;
    } else {
        persistence->first = own->next;
    }
    if (own->next != NULL) {
        own->next->prev = own->prev;
    } else {
        persistence->last = own->prev;
    }
}

void
trpi_recovery_leave(trpi_persistence *persistence, trp_system *system, trpi_recovery *recovery)
{
    trp_msg *grant = NULL;
    trp_ref actor = TRP_REF_NONE;

    if (recovery == NULL) {
        return;
    }
    pthread_mutex_lock(&persistence->lock);
    trpi_recovery *next = persistence->first;
    if (recovery->waits) {
        unlink_waiting(persistence, recovery);
    } else if (next != NULL) { /* recoveries-R2 */
        unlink_waiting(persistence, next);
        next->waits = false;
        grant = next->grant;
        next->grant = NULL;
        actor = next->actor;
    } else {
        trpi_assert(persistence->recoveries > 0);
        persistence->recoveries--;
    }
    pthread_mutex_unlock(&persistence->lock);
    trpi_msg_drop(recovery->grant);
    trpi_free(recovery);
    if (grant != NULL) {
        trp_ctx *ctx = trpi_enter(system);

        trpi_send(ctx, actor, grant);
        trpi_leave(ctx);
    }
}

/* shell_reach.c - dials joiners back, for the engine: TRPI_ACTION_REACH in, TRPI_MEMBER_REACHED
 * out.
 *
 * Must hold. Each REACH has one answer, unless the engine has stopped or its time is over: then it
 *          is not needed any more.
 * Tests.     tests/unit/cluster/shell_test.c
 */
#include "cluster/shell/shell.h"

#include "base/array.h"

#define LOOK_MS 10u
#define LOOKED_PER_MS 50u /* a thousand joiners at once are checked 30 times a second */

void
shell_reach_begin(trpi_cluster *cluster, const trpi_node_id *id)
{
    for (uint32_t i = 0; i < cluster->dialled.reaching_count; i++) {
        if (trpi_node_id_equal(&cluster->dialled.reaching[i].id, id)) {
            return; /* it asked before and is still being dialled */
        }
    }
    if (!TRPI_ARRAY_HAS_ROOM(&cluster->dialled, reaching)) {
        return; /* the engine's time for it passes, and the joiner asks again */
    }
    struct shell_reaching *r = &cluster->dialled.reaching[cluster->dialled.reaching_count++];
    *r = (struct shell_reaching){ .id = *id };
    char why[TRPI_REACH_WHY_BYTES];
    (void)trpi_remote_reach(cluster->remote, id, &r->reach, why, sizeof why); /* dials */
    cluster->dialled.look_ms = shell_now_us(cluster) / 1000 + LOOK_MS;
}

void
shell_reach_look(trpi_cluster *cluster, trp_ctx *ctx)
{
    uint64_t now_ms = shell_now_us(cluster) / 1000;
    if (cluster->dialled.reaching_count == 0 || now_ms < cluster->dialled.look_ms) {
        return;
    }
    cluster->dialled.look_ms = now_ms + LOOK_MS + cluster->dialled.reaching_count / LOOKED_PER_MS;
    for (uint32_t i = cluster->dialled.reaching_count; i-- > 0;) {
        char why[TRPI_REACH_WHY_BYTES];
        struct shell_reaching *r = &cluster->dialled.reaching[i];
        trp_err err = trpi_remote_reach(cluster->remote, &r->id, &r->reach, why, sizeof why);
        if (err == TRP_EAGAIN) {
            continue;
        }
        trpi_member_event event = { .kind = TRPI_MEMBER_REACHED,
                                    .target = r->id,
                                    .text = err == TRP_OK ? NULL : why };
        *r = cluster->dialled.reaching[--cluster->dialled.reaching_count];
        (void)shell_step(cluster, ctx, &event); /* no memory: the joiner asks again */
    }
}

uint64_t
shell_reach_wake_ms(const trpi_cluster *cluster)
{
    return cluster->dialled.reaching_count > 0 ? cluster->dialled.look_ms : UINT64_MAX;
}

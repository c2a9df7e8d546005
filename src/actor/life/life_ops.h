/* life_ops.h - what the room life calls above itself: one table, the same for all systems, filled
 * by the uppermost room (system/tables.c).
 *
 * A child proxy is a cell that stands for a child on another node; actors that other nodes
 * deployed here live below /remote. The room distribution has both.
 */
#ifndef TRPI_ACTOR_LIFE_LIFE_OPS_H
#define TRPI_ACTOR_LIFE_LIFE_OPS_H

#include <stdbool.h>

#include <troupe/actor.h>

struct trpi_cell;
struct trpi_child_proxy;
struct trpi_sysmsg;

typedef struct trpi_life_ops {
    const trp_behaviour *remote_guardian; /* of /remote */
    /* If the options place the child on another node, turn cell into its proxy. *ret_is_proxy:
     * whether it is one. Errors: as trp_spawn. Thread: holder of cell's token, before
     * publication. */
    trp_err (*proxy_make)(trp_ctx *ctx, struct trpi_cell *cell, const trp_spawn_options *options,
                          bool *ret_is_proxy);
    void (*proxy_free)(struct trpi_child_proxy *proxy); /* NULL is fine */
    /* Refuse a child that the other node would certainly refuse; its name and parent are known.
     * TRP_OK for all but child proxies. Errors: as trp_spawn. */
    trp_err (*proxy_check)(trp_ctx *ctx, const struct trpi_cell *cell);
    void (*proxy_start)(trp_ctx *ctx, struct trpi_cell *cell); /* runner, as the next two */
    /* true: handled, and what sysmsg owns is taken. */
    bool (*proxy_order)(trp_ctx *ctx, struct trpi_cell *cell, struct trpi_sysmsg *sysmsg);
    /* A message below TRPI_TYPE_AUTO_END. true: handled. */
    bool (*proxy_automatic)(trp_ctx *ctx, struct trpi_cell *cell, const trp_msg *msg);
    /* runner of /remote; takes order */
    void (*deployed_make)(trp_ctx *ctx, struct trpi_cell *guardian, trp_ref proxy, void *order);
    void (*deployed_drop)(void *order);
    void (*deployed_ended)(trp_ctx *ctx, struct trpi_cell *guardian,
                           trp_ref child); /* same runner */
} trpi_life_ops;

#endif

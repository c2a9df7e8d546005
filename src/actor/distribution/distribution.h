/* distribution.h - children on other nodes, and actors that other nodes deployed here. */
#ifndef TRPI_ACTOR_DISTRIBUTION_DISTRIBUTION_H
#define TRPI_ACTOR_DISTRIBUTION_DISTRIBUTION_H

#include "actor/distribution/open.h"
#include "actor/life/life.h"

struct trpi_behaviours;

/* ---- child_proxy.c --------------------------------------------------------------------------- */
/* If the options place the child on another node, turn cell into its proxy. *ret_is_proxy: whether
 * it is one. Errors: as trp_spawn. Thread: holder of cell's token, before it is published. */
trp_err trpi_child_proxy_make(trp_ctx *ctx, trpi_cell *cell, const trp_spawn_options *options,
                              bool *ret_is_proxy);
void trpi_child_proxy_free(struct trpi_child_proxy *proxy); /* NULL is fine */
void trpi_child_proxy_start(trp_ctx *ctx, trpi_cell *cell); /* runner, as the next two */
/* true: handled, and what sysmsg owns is taken. */
bool trpi_child_proxy_order(trp_ctx *ctx, trpi_cell *cell, trpi_sysmsg *sysmsg);
/* A message below TRPI_TYPE_AUTO_END. true: handled. */
bool trpi_child_proxy_automatic(trp_ctx *ctx, trpi_cell *cell, const trp_msg *msg);
/* Refuse a child that the other node would certainly refuse; its name and parent are known. TRP_OK
 * for all but child proxies. Errors: as trp_spawn. */
trp_err trpi_child_proxy_check(trp_ctx *ctx, const trpi_cell *cell);

/* ---- deployed.c ------------------------------------------------------------------------------ */
extern const trp_behaviour trpi_remote_guardian;
/* Write the name below /remote: "system@host:port" and the path. Returns its length, as
 * snprintf. */
size_t trpi_deployed_name(const trpi_address *address, const char *path, char *buffer,
                          size_t bytes);
trp_err trpi_behaviours_new(struct trpi_behaviours **ret_behaviours);
void trpi_behaviours_free(struct trpi_behaviours *behaviours); /* NULL is fine */
void trpi_deployed_make(trp_ctx *ctx, trpi_cell *guardian, trp_ref proxy,
                        void *order); /* runner of /remote; takes order */
void trpi_deployed_drop(void *order);
/* Send a copy of an order to /remote; out of memory, it is refused. Thread: any. */
void trpi_deployed_order(trp_ctx *ctx, trp_ref proxy, const trpi_deploy *deploy);
void trpi_deployed_ended(trp_ctx *ctx, trpi_cell *guardian, trp_ref child); /* the same runner */
/* Is ref an actor that another node deployed here? A hint unless its token is held. Thread: any. */
bool trpi_is_deployed(trp_ctx *ctx, trp_ref ref);

#endif

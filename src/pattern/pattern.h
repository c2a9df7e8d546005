/* pattern.h - the door of the pattern room: what rooms above it may use beyond the public API. */
#ifndef TRPI_PATTERN_PATTERN_H
#define TRPI_PATTERN_PATTERN_H

#include <troupe/router.h>

/* ---- routees from elsewhere --------------------------------------------------------------------
 * A room above (cluster routers) adds and removes routees of a router as nodes come and go, by
 * trp_add_routee and trp_remove_routee messages. Such a router may be without routees, and does not
 * end for it. */
typedef struct trpi_routee_source {
    /* The router's actor has started, or is started again: tell it what there is, and what changes
     * from now on. Its thread. */
    void (*start)(void *arg, trp_ctx *ctx, trp_ref router);
    /* The router has ended; no thread calls start any more. Any thread. */
    void (*ended)(void *arg);
} trpi_routee_source;
/* As trp_router_spawn (ctx) or trp_system_router_spawn (ctx NULL). routee may be NULL: then no
 * children are made. Takes arg on success. */
trp_err trpi_router_spawn_open(trp_ctx *ctx, trp_system *system, const trp_behaviour *routee,
                               const trp_spawn_options *routee_options, const char *name,
                               const trp_router_options *options, const trpi_routee_source *source,
                               void *arg, trp_ref *ret_ref);

#endif

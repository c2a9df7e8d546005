/* pattern.h - the door of the pattern room: what rooms above it may use beyond the public API. */
#ifndef TRPI_PATTERN_PATTERN_H
#define TRPI_PATTERN_PATTERN_H

#include <stdbool.h>

#include <troupe/config.h>
#include <troupe/router.h>
#include <troupe/shutdown.h>

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

/* ---- messages inside a message -----------------------------------------------------------------
 * A reliable proxy's message to its far end: this head, then the payload of the message that it
 * carries, 16-aligned. Between nodes it is the one form that the parcel serializer of the remote
 * room knows. type 0: what it carried cannot be read here, or could not be sent; the number
 * counts. */
typedef struct trpi_parcel {
    trp_ref sender;
    uint64_t instance, number;
    uint32_t type; /* trp_type.number */
    uint32_t zero[3];
} trpi_parcel;
_Static_assert(sizeof(trpi_parcel) % 16 == 0, "the payload behind it is 16-aligned");
extern trp_type trpi_parcel_type;
/* Register the types of reliable proxies, and receive those of other nodes from now on. Idempotent.
 * Errors: TRP_ENOMEM, TRP_ELIMIT, TRP_ECLOSED. Thread: any. */
trp_err trpi_reliable_receive(trp_system *system);

/* ---- coordinated shutdown (troupe/shutdown.h) ---------------------------------------------------
 * What is done at the end of the phases, on the shutdown's actor, instead of stopping the system.
 * Errors: those of trp_shutdown_run. Thread: any. */
trp_err trpi_shutdown_over_set(trp_system *system, void (*fn)(void *arg), void *arg);
/* What came of the phases that had tasks and are over, from index 0 on. false: no more yet. */
bool trpi_shutdown_report(trp_system *system, uint32_t index, char *text, size_t bytes);
/* 0: there is no such phase, or nobody has asked for the shutdown of this system yet. */
uint32_t trpi_shutdown_timeout_ms(trp_system *system, const char *phase);
/* Would the phases that a configuration describes do? Errors: TRP_ECONFIG, *ret_error says why. */
trp_err trpi_shutdown_config_check(const trp_config *config, trp_config_error *ret_error);

#endif

/* kernel_ops.h - what the kernel calls above itself: one table, the same for all systems.
 *
 * The uppermost room fills it (system/tables.c) and gives it to each system that it makes. What is
 * told, handled and answered on this node passes through none of these.
 */
#ifndef TRPI_ACTOR_KERNEL_KERNEL_OPS_H
#define TRPI_ACTOR_KERNEL_KERNEL_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/actor.h>

struct trpi_cell;
struct trpi_kind_ops;
struct trpi_sysmsg;

typedef struct trpi_kernel_ops {
    /* ---- a cell's turn, with its token held (run.c); the room life ---- */
    /* First turn of an actor. Sets life to RUNNING, or fails. */
    void (*start)(trp_ctx *ctx, struct trpi_cell *cell);
    /* One system message for this incarnation. Borrows sysmsg. */
    void (*order)(trp_ctx *ctx, struct trpi_cell *cell, struct trpi_sysmsg *sysmsg);
    /* A system message for an incarnation that is gone: answer a watch with terminated, drop a
     * stop... cell NULL: the slot never existed. slot is the target's. Frees what the kind owns. */
    void (*order_stale)(trp_ctx *ctx, struct trpi_cell *cell, uint32_t slot,
                        struct trpi_sysmsg *sysmsg);
    /* A system message that nobody will ever handle (the system is being freed): free what the kind
     * owns. */
    void (*order_drop)(trp_system *system, struct trpi_sysmsg *sysmsg);
    /* A message below TRPI_TYPE_AUTO_END. Borrows msg. */
    void (*automatic)(trp_ctx *ctx, struct trpi_cell *cell, trp_msg *msg);
    /* receive returned an error, or trp_fail jumped (failure is ctx's; its fields are filled). msg
     * may be NULL. */
    void (*failed)(trp_ctx *ctx, struct trpi_cell *cell, const trp_failure *failure, trp_msg *msg);
    /* The next front message, taken out (the loop delivers and frees it); NULL and TRPI_MARK_FRONT
     * cleared: none. */
    trp_msg *(*front)(trp_ctx *ctx, struct trpi_cell *cell);
    /* receive of a cell with TRPI_MARK_BECOME. */
    trp_receive_fn (*receive)(trp_ctx *ctx, struct trpi_cell *cell);
    /* After each user message of a cell with TRPI_MARK_TIMEOUT. */
    void (*touched)(trp_ctx *ctx, struct trpi_cell *cell);
    /* A type that the behaviour does not accept. Borrows msg. */
    void (*unaccepted)(trp_ctx *ctx, struct trpi_cell *cell, const trp_msg *msg);
    /* receive returned TRP_EUNHANDLED. Borrows msg; may fail with a jump. */
    void (*unhandled)(trp_ctx *ctx, const trp_msg *msg);
    /* The actor with this kind has ended. */
    void (*routed_ended)(trp_ctx *ctx, const struct trpi_kind_ops *kind);

    /* ---- messages that take another way (tell.c, dead.c, cell.c); the room life ---- */
    /* To a router: true: it took msg. */
    bool (*routed_take)(trp_ctx *ctx, struct trpi_cell *cell, trp_ref to, trp_msg *msg);
    /* A message that reached nobody; counted by the caller already (stats.dead). Borrows msg; the
     * target is to (msg's header for local cells). */
    void (*dead)(trp_ctx *ctx, trp_ref to, const trp_msg *msg, trp_dead_reason reason);
    /* The same of what is no message yet: it counts, too. payload NULL: not at hand. */
    void (*dead_of)(trp_system *system, trp_ref sender, trp_ref recipient, trp_dead_reason reason,
                    const trp_type *type, const void *payload, size_t bytes);
    /* A TRPI_TYPE_MARK that nobody will handle any more. */
    void (*mark_reached)(const trp_msg *msg);
    /* serialize-messages: replace *msg, which was not told yet, by what another node would get.
     * Errors: it is logged, and *msg is as it was. */
    trp_err (*round_trip)(trp_ctx *ctx, trp_msg **msg);

    /* ---- to other nodes (tell.c); the room nodes ---- */
    /* The proxy cell of a node. NULL: *ret_reason says why; else *ret_slow: some recipients there
     * are behind. */
    struct trpi_cell *(*proxy)(trp_system *system, uint32_t node, trp_dead_reason *ret_reason,
                               bool *ret_slow);
    /* Is to one of them? */
    bool (*proxy_slows)(trp_system *system, trp_ref to);
    /* trp_try_tell() through this proxy, and its way back. */
    trp_err (*proxy_reserve)(trp_ctx *ctx, struct trpi_cell *proxy, trp_ref to, size_t bytes,
                             bool *ret_reserved);
    void (*proxy_unreserve)(struct trpi_cell *proxy, size_t bytes);

    /* ---- names for people (misuse.c, fault.c); the room naming ---- */
    size_t (*path)(trp_system *system, trp_ref ref, char *buffer, size_t bytes);
    /* The own name of a cell that does not end meanwhile, "?" if a lock is in the way.
     * Async-signal-safe. */
    void (*name_try)(trp_system *system, const struct trpi_cell *cell, char *name, size_t bytes);
} trpi_kernel_ops;

#endif

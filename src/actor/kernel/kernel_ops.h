/* kernel_ops.h - the hooks: functions of rooms above the kernel that it calls, one table for all
 * systems.
 *
 * The uppermost room fills it (system/tables.c) and sets it in each system that it makes. The path
 * of a message on this node (tell, turn, answer) calls none of these.
 */
#ifndef TRPI_ACTOR_KERNEL_KERNEL_OPS_H
#define TRPI_ACTOR_KERNEL_KERNEL_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/actor.h>

#include "actor/kernel/open.h"
#include "base/buffer.h"

struct trpi_cell;
struct trpi_kind_ops;
struct trpi_sysmsg;

typedef struct trpi_kernel_ops {
    /* ---- a cell's turn, with its token held (run.c); the room life ---- */
    /* The first turn of an actor. Sets life to RUNNING, or fails. */
    void (*start)(trp_ctx *ctx, struct trpi_cell *cell);
    /* Handle one system message for this incarnation. Borrows sysmsg. */
    void (*order)(trp_ctx *ctx, struct trpi_cell *cell, struct trpi_sysmsg *sysmsg);
    /* Handle a system message for an incarnation that has ended: answer a watch with terminated,
     * ignore a stop... slot: the target's. cell NULL: the slot never existed. Frees the resources
     * of the system message. */
    void (*order_stale)(trp_ctx *ctx, struct trpi_cell *cell, uint32_t slot,
                        struct trpi_sysmsg *sysmsg);
    /* Free the resources of a system message that will never be handled: the system is being
     * freed. */
    void (*order_drop)(trp_system *system, struct trpi_sysmsg *sysmsg);
    /* Handle a message of a type below TRPI_TYPE_AUTO_END. Borrows msg. */
    void (*automatic)(trp_ctx *ctx, struct trpi_cell *cell, trp_msg *msg);
    /* The actor failed: receive returned an error, or trp_fail() jumped. failure is that of ctx;
     * msg may be NULL. */
    void (*failed)(trp_ctx *ctx, struct trpi_cell *cell, const trp_failure *failure, trp_msg *msg);
    /* Take the next front message, which the loop delivers and frees; NULL, with TRPI_MARK_FRONT
     * cleared: none. */
    trp_msg *(*front)(trp_ctx *ctx, struct trpi_cell *cell);
    /* Return the receive function of a cell with TRPI_MARK_BECOME. */
    trp_receive_fn (*receive)(trp_ctx *ctx, struct trpi_cell *cell);
    /* Called after each user message of a cell with TRPI_MARK_TIMEOUT. */
    void (*touched)(trp_ctx *ctx, struct trpi_cell *cell);
    /* The behaviour does not accept the type of msg. Borrows msg. */
    void (*unaccepted)(trp_ctx *ctx, struct trpi_cell *cell, const trp_msg *msg);
    /* receive returned TRP_EUNHANDLED. Borrows msg; may fail with a jump. */
    void (*unhandled)(trp_ctx *ctx, const trp_msg *msg);
    /* The router with these ops has ended. */
    void (*routed_ended)(trp_ctx *ctx, const struct trpi_kind_ops *kind);

    /* ---- messages that take another way (tell.c, dead.c, cell.c); the room life ---- */
    /* Route msg to the routees of a router; true: msg was taken. */
    bool (*routed_take)(trp_ctx *ctx, struct trpi_cell *cell, trp_ref to, trp_msg *msg);
    /* A message to `to` reached no actor; the caller has counted it (stats.dead). Borrows msg. */
    void (*dead)(trp_ctx *ctx, trp_ref to, const trp_msg *msg, trp_dead_reason reason);
    /* The same without a message; this function counts it. payload NULL: not available. */
    void (*dead_of)(trp_system *system, trp_ref sender, trp_ref recipient, trp_dead_reason reason,
                    const trp_type *type, const void *payload, size_t bytes);
    /* A TRPI_TYPE_MARK that will not be handled any more. */
    void (*mark_reached)(const trp_msg *msg);
    /* serialize-messages: replace *msg, which was not told yet, by its encoded and decoded copy.
     * Errors: logged; *msg is unchanged. */
    trp_err (*round_trip)(trp_ctx *ctx, trp_msg **msg);

    /* ---- to other nodes (tell.c); the room nodes ---- */
    /* Return the proxy cell of a node. NULL: *ret_reason says why; else *ret_slow: proxy_slows()
     * is to be asked. */
    struct trpi_cell *(*proxy)(trp_system *system, uint32_t node, trp_dead_reason *ret_reason,
                               bool *ret_slow);
    /* Is this recipient slow, so that its sender is to be throttled? */
    bool (*proxy_slows)(trp_system *system, trp_ref to);
    /* With the proxy's token: flush a large batch, more follows. true: it is overloaded. */
    bool (*proxy_more)(trp_ctx *ctx, struct trpi_cell *proxy);
    /* Make the scheduler run the proxy, also without a message. */
    void (*proxy_wake)(trp_ctx *ctx, struct trpi_cell *proxy);
    /* With the proxy's token: deliver a message that is like the one before. bounded: if there is
     * room for trp_try_tell(). false: nothing was done. */
    bool (*proxy_again)(struct trpi_cell *proxy, const trp_msg *msg, const void *payload,
                        size_t bytes, bool bounded);
    /* With the proxy's token, after a message that was like the one before: may more of them be
     * gathered, the next record with `need` bytes? Return how many bytes are reserved; 0: no. */
    size_t (*proxy_gather)(struct trpi_cell *proxy, size_t need);
    /* With the proxy's token: deliver what was gathered. false: nothing was done. */
    bool (*proxy_gathered)(struct trpi_cell *proxy, const trp_msg *msg,
                           const trpi_gathered *gathered);
    /* Append the wire form of a message that carries another one, as a record has it; without the
     * token. false: nothing was appended, it cannot be a record. */
    bool (*proxy_carry)(struct trpi_cell *proxy, const trpi_carrier *what, trpi_buffer *out);
    /* Append the payload of the message that a record is the wire form of. */
    trp_err (*proxy_restore)(struct trpi_cell *proxy, const trp_type *type, const uint8_t *record,
                             size_t bytes, trpi_buffer *out);
    /* Instead: reserve for each of so many messages, with so many bytes of payload in all, what was
     * granted for all of them. */
    void (*proxy_reserve_each)(struct trpi_cell *proxy, size_t granted, uint32_t count,
                               size_t bytes);
    /* With the proxy's token: is there room for trp_try_tell()? false: ask proxy_reserve(). */
    bool (*proxy_admits)(struct trpi_cell *proxy, trp_ref to, size_t bytes);
    /* Reserve buffer space of this proxy for trp_try_tell(), and release it again. */
    trp_err (*proxy_reserve)(trp_ctx *ctx, struct trpi_cell *proxy, trp_ref to, size_t bytes,
                             bool *ret_reserved);
    void (*proxy_unreserve)(struct trpi_cell *proxy, size_t bytes);

    /* ---- names for people (misuse.c, fault.c); the room naming ---- */
    size_t (*path)(trp_system *system, trp_ref ref, char *buffer, size_t bytes);
    /* Write the last path element of a cell that does not end meanwhile, "?" if a lock is held.
     * Async-signal-safe. */
    void (*name_try)(trp_system *system, const struct trpi_cell *cell, char *name, size_t bytes);
} trpi_kernel_ops;

#endif

/* inbound.c - the door for remoting: messages, signals and selections that arrive from other nodes.
 *
 * Must hold.
 *   actor-inbound-R1  No input of a peer reaches an assertion: slots and generations are looked
 *       up, text is parsed.
 * Tests.   tests/unit/actor/inbound_test.c
 */
#include "actor/distribution/distribution.h"

#include <string.h>

#include "actor/nodes/nodes.h"
#include "base/assert.h"
#include "base/payload.h"
#include "base/wire.h"

trp_ctx *
trpi_inbound_begin(trp_system *system)
{
    trp_ctx *ctx = trpi_enter(system);

    if (ctx->worker == NULL) {
        ctx->chaining = true;
    }
    return ctx;
}

void
trpi_inbound_end(trp_ctx *ctx)
{
    if (ctx->chains_open != 0) {
        trpi_chains_flush(ctx);
    }
    if (ctx->worker == NULL) {
        ctx->chaining = false;
    }
    trpi_leave(ctx);
}

/* May a peer send this type? It must be registered and not be local. Terminated and the like arrive
 * as signals; the payloads of internal types are pointers. */
static bool
is_admissible(const trp_type *type)
{
    if (type == NULL || type->number == 0 || (type->flags & TRP_TYPE_LOCAL) != 0) {
        return false;
    }
    return type->number >= TRPI_TYPE_AUTO_END || type->number == TRPI_TYPE_POISON_PILL ||
           type->number == TRPI_TYPE_KILL || type->number == TRPI_TYPE_IDENTIFY ||
           type->number == TRPI_TYPE_ASK_UNHANDLED;
}

void
trpi_inbound_tell(trp_ctx *ctx, uint32_t slot, uint32_t generation, trp_ref sender,
                  const trp_type *type, const void *payload, size_t bytes)
{
    trp_ref to = trpi_ref_local(slot, generation);

    if (!is_admissible(type) || !trpi_payload_fits(type, bytes)) {
        trpi_dead_letter(ctx->system, sender, to, TRP_DEAD_NOT_ENCODABLE, type, bytes);
        return;
    }
    trpi_tell(ctx, to, sender, type, payload, bytes);
}

void
trpi_inbound_tell_traced(trp_ctx *ctx, uint32_t slot, uint32_t generation, trp_ref sender,
                         const trpi_traced *traced, const trp_type *type, const void *payload,
                         size_t bytes)
{
    trpi_trailer room;
    const trpi_trailer *before = trpi_carry_arrived(ctx, traced, &room);

    trpi_inbound_tell(ctx, slot, generation, sender, type, payload, bytes);
    (void)trpi_carry(ctx, before);
}

void
trpi_inbound_tell_run(trp_ctx *ctx, uint32_t slot, uint32_t generation, trp_ref sender,
                      const trp_type *type, const uint8_t *records, uint32_t count)
{
    trp_ref to = trpi_ref_local(slot, generation);

    if (is_admissible(type)) {
        trpi_tell_run(ctx, to, sender, type, records, count);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        size_t bytes = trpi_get_u32(records);

        trpi_dead_letter(ctx->system, sender, to, TRP_DEAD_NOT_ENCODABLE, type, bytes);
        records += TRPI_RECORD_BYTES + bytes;
    }
}

uint32_t
trpi_inbound_entities(trp_ctx *ctx, uint32_t slot, uint32_t generation, trp_ref sender,
                      const trpi_carrier *what, uint32_t count)
{
    return trpi_entity_arrived(ctx, trpi_ref_local(slot, generation), sender, what, count);
}

bool
trpi_inbound_is_there(trp_system *system, uint32_t slot, uint32_t generation)
{
    trp_ctx *ctx = trpi_enter(system);
    bool is = trpi_cell_peek(ctx, trpi_ref_local(slot, generation)) != NULL;

    trpi_leave(ctx);
    return is;
}

void
trpi_selection_failed(trp_system *system, trp_ref sender, trp_err err)
{
    trp_ctx *ctx = trpi_enter(system);

    trpi_ask_dead_of(ctx, sender, sender, err, true);
    trpi_leave(ctx);
}

void
trpi_inbound_select_traced(trp_system *system, const char *path, trp_ref sender,
                           const trpi_traced *traced, const trp_type *type, const void *payload,
                           size_t bytes)
{
    const trpi_trailer *before = NULL;
    trpi_trailer room;
    trp_ref nobody = TRP_REF_NONE;
    trp_ctx *ctx;
    trp_msg *msg;

    if (!is_admissible(type) || !trpi_payload_fits(type, bytes)) {
        trpi_dead_letter(system, sender, nobody, TRP_DEAD_NOT_ENCODABLE, type, bytes);
        return;
    }
    ctx = trpi_enter(system);
    if (traced != NULL) {
        before = trpi_carry_arrived(ctx, traced, &room);
    }
    msg = trpi_tell_make(ctx, nobody, sender, type, payload, bytes);
    if (traced != NULL) {
        (void)trpi_carry(ctx, before);
    }
    if (msg == NULL) {
        trpi_dead_letter(system, sender, nobody, TRP_DEAD_NO_MEMORY, type, bytes);
    } else {
        /* Only local paths: an address would let a peer use this node as a relay. A path that does
         * not parse is a dead letter without a log line: a peer could flood the log. */
        trpi_selection_path parsed;
        trp_err err = path[0] != '/' || strstr(path, "://") != NULL
                          ? TRP_EINVAL
                          : trpi_selection_parse(path, &parsed, NULL);

        if (err == TRP_OK) {
            err = trpi_select(ctx, system->top.root, path, sender, msg);
        }

        if (err != TRP_OK) {
            trpi_dead_letter_msg(system, nobody, msg, TRP_DEAD_NO_SUCH_ACTOR);
        }
        trpi_msg_free(ctx->cache, msg);
    }
    trpi_leave(ctx);
}

void
trpi_inbound_select(trp_system *system, const char *path, trp_ref sender, const trp_type *type,
                    const void *payload, size_t bytes)
{
    trpi_inbound_select_traced(system, path, sender, NULL, type, payload, bytes);
}

static void
inbound_watch(trp_ctx *ctx, trp_ref target, trp_ref from)
{
    trp_terminated what = { target, 1, 0, { 0 } };
    trp_msg *prepared =
        trpi_msg_make(ctx->cache, from, target, &trp_terminated_type, &what, sizeof what);

    if (prepared == NULL) {
        trpi_log(ctx->system, TRP_LOG_ERROR, "watch",
                 "out of memory: a remote watcher is notified of the end of a live actor");
        (void)trpi_remote_signal(ctx->system, TRPI_SIGNAL_TERMINATED, from, target,
                                 0); /* best effort */
        return;
    }
    trpi_remote_watch_inbound(ctx->system, from, target);
    trpi_sys_to(ctx, target, TRPI_SYS_WATCH, 0, from, 0, prepared);
}

/* Pass on the order of a supervisor on another node; orders.c refuses it if the actor was not
 * deployed by that node. */
static void
deployed_order(trp_ctx *ctx, trp_ref target, trp_ref from, enum trpi_sys kind, uint16_t flag)
{
    if (trpi_is_deployed(ctx, target)) {
        trpi_sys_to(ctx, target, kind, flag, from, 0, NULL);
    }
}

void
trpi_inbound_signal(trp_system *system, enum trpi_remote_signal signal, trp_ref target,
                    trp_ref from, uint32_t flag)
{
    trp_ctx *ctx = trpi_enter(system);

    target.node = TRPI_NODE_SELF;
    switch (signal) {
    case TRPI_SIGNAL_WATCH:
        inbound_watch(ctx, target, from);
        break;
    case TRPI_SIGNAL_UNWATCH:
        trpi_remote_unwatch_inbound(system, from, target);
        trpi_sys_to(ctx, target, TRPI_SYS_UNWATCH, 0, from, 0, NULL);
        break;
    case TRPI_SIGNAL_TERMINATED:
        trpi_remote_watch_terminated(ctx, target, from, flag != 0);
        break;
    case TRPI_SIGNAL_STOP:
        trpi_stop_send(ctx, target);
        break;
    case TRPI_SIGNAL_DEPLOYED:
        trpi_sys_to(ctx, target, TRPI_SYS_DEPLOYED, 0, from, 0, NULL);
        break;
    case TRPI_SIGNAL_SUSPEND:
        deployed_order(ctx, target, from, TRPI_SYS_SUSPEND, 0);
        break;
    case TRPI_SIGNAL_RESUME:
        deployed_order(ctx, target, from, TRPI_SYS_RESUME, flag != 0);
        break;
    case TRPI_SIGNAL_ACTIVE:
        deployed_order(ctx, target, from, TRPI_SYS_ACTIVE, flag != 0);
        break;
    default:
        break; /* actor-inbound-R1: a signal of a newer peer */
    }
    trpi_leave(ctx);
}

void
trpi_inbound_order(trp_system *system, enum trpi_remote_signal signal, trp_ref target, trp_ref from,
                   const trpi_order *order)
{
    trp_ctx *ctx = trpi_enter(system);

    target.node = TRPI_NODE_SELF;
    switch (signal) {
    case TRPI_SIGNAL_DEPLOY:
        trpi_deployed_order(ctx, from, order->deploy);
        break;
    case TRPI_SIGNAL_REFUSED:
        trpi_sys_to(ctx, target, TRPI_SYS_REFUSED, 0, from, 0, trpi_failure_new(order->failure));
        break;
    case TRPI_SIGNAL_FAILED:
        trpi_sys_to(ctx, target, TRPI_SYS_FAR_FAILED, 0, from, 0, trpi_failure_new(order->failure));
        break;
    case TRPI_SIGNAL_RESTART:
        if (trpi_is_deployed(ctx, target)) {
            trpi_sys_to(ctx, target, TRPI_SYS_RESTART, 0, from, 0,
                        trpi_failure_new(order->failure));
        }
        break;
    default:
        break;
    }
    trpi_leave(ctx);
}

void
trpi_node_terminated(trp_system *system, uint32_t node, trp_dead_reason reason)
{
    trpi_nodes_end(system, node, reason);
    trpi_node_watchers_notify(system, node);
}

trp_err
trpi_node_introduce(trp_system *system, const trpi_node_id *id, uint64_t by, uint32_t share_max,
                    uint32_t *ret_node)
{
    uint32_t over;
    trp_err err = trpi_node_number_introduce(system, id, by, share_max, ret_node, &over);

    if (over != 0) {
        trpi_node_terminated(system, over, TRP_DEAD_STALE);
    }
    return err;
}

void
trpi_node_release(trp_system *system, uint32_t node, uint64_t by, uint32_t share_max)
{
    uint32_t over = trpi_node_number_release(system, node, by, share_max);

    if (over != 0) {
        trpi_node_terminated(system, over, TRP_DEAD_STALE);
    }
}

void
trpi_node_lost(trp_system *system, uint32_t node, bool left)
{
    trpi_node_lost_notify(system, node, left);
}

/* ---- timers for upper rooms ------------------------------------------------------------------ */

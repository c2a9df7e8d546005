/* region_move.c - what a shard keeps for entities of other shards is handed to these.
 *
 * Why.     When the number of shards changes, or the extractor, most ids belong to another shard
 *          than the one that remembers them. They would stay there, and start nothing.
 * Shape.   shard opened -> entities and reminders of other shards -> an order, asked of the entity
 *          -> the store of its shard, on whichever node -> answer -> forgotten here
 * Must hold.
 *   region-move-V1  Nothing is taken out of this store before that of the right shard has it: a
 *       crash in between hands it over again.
 *   region-move-V2  Twice is as once: an entity that is remembered there stays remembered, and a
 *       reminder whose name is set there is newer, and stays.
 *   region-move-V3  A move belongs to its region until it is over; one whose store was given up
 *       waits for its answer and does nothing.
 * Limits.  MOVES_MAX at once for a region, all of one shard; an order is given up after MOVE_MS.
 * Tests.   tests/unit/cluster/entity_remember_test.c, entity_reminder_test.c,
 *          tests/sim/kept_test.c
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buffer.h"
#include "base/hash.h"
#include "cluster/sharding/region.h"

enum {
    MOVES_MAX = 64,
    MOVE_MS = 10000,
    LOG_MS = 10000 /* between two lines about moves that have failed */
};

#define NO_SHARD UINT32_MAX

typedef struct trpi_region_move {
    struct trpi_region_move *next;
    trpi_region *region;
    uint32_t number; /* of the shard that has it; NO_SHARD: its store was given up */
    bool forgets;    /* the other shard has it; the effect of its end here comes */
    bool is_reminder;
    char id[TRPI_SHARD_ID_BYTES_MAX + 1];
    char name[TRPI_SHARD_REMINDER_NAME_MAX + 1];
} trpi_region_move;

/* ---- moves ----------------------------------------------------------------------------------- */

static void
move_end(trpi_region_move *move)
{
    trpi_region_move **at = &move->region->moves;
    while (*at != move) {
        at = &(*at)->next;
    }
    *at = move->next;
    trpi_free(move);
}

static void
move_failed(trpi_region_move *move, trp_err err)
{
    trpi_region *region = move->region;
    uint64_t now_ms = trpi_region_now_ms(region);
    region->moves_later = true;
    if (region->moves_logged_ms == 0 || now_ms - region->moves_logged_ms >= LOG_MS) {
        region->moves_logged_ms = now_ms;
        trpi_log(region->system, TRP_LOG_WARNING, "sharding",
                 "%s not handed to its shard type=%s shard=%u id=%s reason=\"%s\" next=\"it is "
                 "tried again\"",
                 move->is_reminder ? "a reminder is" : "a remembered entity is", region->name,
                 move->number, move->id, trp_strerror(err));
    }
    move_end(move);
}

static void
moves_abandon(trpi_region *region, uint32_t number)
{
    trpi_region_move *next = NULL;
    trpi_shard *shard = &region->shards[number];
    region->misplaced -= shard->misplaced;
    shard->misplaced = false;
    for (trpi_region_move *move = region->moves; move != NULL; move = next) {
        next = move->next;
        if (move->number == number && move->forgets) {
            move_end(move); /* its effect comes no more */
        } else if (move->number == number) {
            move->number = NO_SHARD; /* region-move-V3 */
        }
    }
}

static void
moves_free(trpi_region *region)
{
    while (region->moves != NULL) {
        move_end(region->moves);
    }
}

static void moves_go_on(trp_ctx *ctx, trpi_region *region);

/* ---- answers --------------------------------------------------------------------------------- */

/* The right shard has it, or not. */
static trp_err
move_answered(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    trpi_region_move *move = arg;
    trpi_region *region = move->region;
    trpi_shard_keep *keep = move->number == NO_SHARD ? NULL : region->shards[move->number].keep;
    (void)state;
    (void)reply;
    if (keep == NULL || keep->store == NULL) {
        move_end(move);
        moves_go_on(ctx, region);
        return TRP_OK;
    }
    if (err == TRP_OK) { /* region-move-V1 */
        uint64_t token = (uintptr_t)move | TRPI_MOVE_TOKEN;
        err = move->is_reminder ? trpi_shard_store_cancel(keep->store, move->id, move->name, token)
                                : trpi_shard_store_remove(keep->store, move->id, token);
    }
    if (err == TRP_OK) {
        move->forgets = true;
        trpi_keep_go_on(ctx, keep);
    } else {
        move_failed(move, err);
        moves_go_on(ctx, region);
    }
    return TRP_OK;
}

static void
move_effect(trp_ctx *ctx, const trpi_shard_keep *keep, const trpi_shard_effect *effect)
{
    trpi_region_move *move = (trpi_region_move *)(uintptr_t)(effect->token & ~TRPI_MOVE_TOKEN);
    trpi_assert(move->forgets && move->region == keep->region);
    if (effect->err != TRP_OK) {
        move_failed(move, effect->err);
    } else {
        move_end(move);
    }
    moves_go_on(ctx, keep->region);
}

/* ---- orders ---------------------------------------------------------------------------------- */

/* Return whether a name of the store of this shard is of another shard's entity. */
static bool
is_misplaced(const trpi_region *region, uint32_t number, const char *name, trp_entity *ret_entity)
{
    char id[TRP_ENTITY_ID_BYTES_MAX];
    size_t bytes = trpi_entity_unname(name, id);
    if (bytes == 0 || trpi_region_shard_of(region, trpi_hash(id, bytes, 0), id, bytes) == number) {
        return false;
    }
    trp_entity_set(ret_entity, region->type, id, bytes);
    return true;
}

/* Ask the right shard to keep it. reminder NULL: the entity is remembered. */
static bool
move_begin(trp_ctx *ctx, trpi_region *region, uint32_t number, const trp_entity *entity,
           const char *id, const trpi_shard_reminder *reminder)
{
    trpi_reminder_order order = { .kind = TRPI_REMINDER_REMEMBER };
    trpi_buffer out = { 0 };
    trpi_region_move *move = trpi_alloc(sizeof *move);
    if (move == NULL) {
        region->moves_later = true;
        return false;
    }
    move->region = region;
    move->number = number;
    (void)snprintf(move->id, sizeof move->id, "%s", id);
    if (reminder != NULL) {
        move->is_reminder = true;
        (void)snprintf(move->name, sizeof move->name, "%s", reminder->name);
        order.kind = TRPI_REMINDER_MOVE;
        order.due_ms = reminder->due_ms;
        order.period_ms = reminder->period_ms;
    }
    move->next = region->moves;
    region->moves = move;
    trp_err err = trpi_reminder_order_make(
        &out, &order, move->name, reminder != NULL ? reminder->type : "",
        reminder != NULL ? reminder->data : NULL, reminder != NULL ? reminder->bytes : 0);
    if (err == TRP_OK) {
        err = trp_entity_ask(ctx, entity, &trpi_reminder_order_type, out.data, out.count, MOVE_MS,
                             move_answered, move);
    }
    trpi_buffer_fini(&out);
    if (err != TRP_OK) {
        move_failed(move, err);
    }
    return err == TRP_OK;
}

/* Begin the next moves of a shard. Returns how many. */
static uint32_t
shard_begin(trp_ctx *ctx, trpi_region *region, uint32_t number)
{
    const trpi_shard_store *store = region->shards[number].keep->store;
    const trpi_shard_reminder *reminder = NULL;
    const char *name = NULL;
    trp_entity entity;
    uint32_t position = 0, count = 0;
    while (region->options.remember_entities != 0 && count < MOVES_MAX &&
           (name = trpi_shard_store_entity(store, &position)) != NULL) {
        if (is_misplaced(region, number, name, &entity)) {
            if (!move_begin(ctx, region, number, &entity, name, NULL)) {
                return count;
            }
            count++;
        }
    }
    position = 0;
    while (region->options.reminders != 0 && count < MOVES_MAX &&
           (reminder = trpi_shard_store_reminder(store, NULL, &position)) != NULL) {
        if (is_misplaced(region, number, reminder->id, &entity)) {
            if (!move_begin(ctx, region, number, &entity, reminder->id, reminder)) {
                return count;
            }
            count++;
        }
    }
    return count;
}

static void
moves_go_on(trp_ctx *ctx, trpi_region *region)
{
    for (uint32_t i = 0; i < region->options.shards && region->misplaced > 0; i++) {
        uint32_t number = region->move_shard;
        trpi_shard *shard = &region->shards[number];
        if (region->moves != NULL || region->moves_later) { /* region-move-V3; the tick */
            return;
        }
        if (shard->misplaced && shard->state == TRPI_SHARD_OWN && shard->keep != NULL &&
            shard->keep->store != NULL &&
            trpi_shard_store_state_get(shard->keep->store) == TRPI_SHARD_STORE_READY &&
            shard_begin(ctx, region, number) == 0 && !region->moves_later) {
            shard->misplaced = false;
            region->misplaced--;
            trpi_log(region->system, TRP_LOG_INFO, "sharding",
                     "all that a shard kept for other shards was handed over type=%s shard=%u",
                     region->name, number);
        }
        if (region->moves == NULL) {
            region->move_shard = (number + 1) % region->options.shards;
        }
    }
}

static void
moves_tick(trp_ctx *ctx, trpi_region *region)
{
    if (region->moves == NULL) {
        region->moves_later = false;
        moves_go_on(ctx, region);
    }
}

static void
shard_open(trp_ctx *ctx, trpi_region *region, uint32_t number)
{
    trpi_shard *shard = &region->shards[number];
    const trpi_shard_store *store = shard->keep == NULL ? NULL : shard->keep->store;
    const trpi_shard_reminder *reminder = NULL;
    const char *name = NULL;
    uint32_t position = 0, entities = 0, reminders = 0;
    trp_entity entity;
    if (store == NULL || shard->misplaced) {
        return;
    }
    while (region->options.remember_entities != 0 &&
           (name = trpi_shard_store_entity(store, &position)) != NULL) {
        entities += is_misplaced(region, number, name, &entity);
    }
    position = 0;
    while (region->options.reminders != 0 &&
           (reminder = trpi_shard_store_reminder(store, NULL, &position)) != NULL) {
        reminders += is_misplaced(region, number, reminder->id, &entity);
    }
    if (entities + reminders > 0) {
        trpi_log(region->system, TRP_LOG_INFO, "sharding",
                 "a shard keeps %u entities and %u reminders of other shards type=%s shard=%u "
                 "next=\"they are handed to their shards\"",
                 entities, reminders, region->name, number);
        shard->misplaced = true;
        region->misplaced++;
        moves_go_on(ctx, region);
    }
}

const trpi_region_mover trpi_region_mover_own = { shard_open, moves_tick, move_effect,
                                                  moves_abandon, moves_free };

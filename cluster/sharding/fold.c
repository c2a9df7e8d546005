/* fold.c - `troupe journal fold`: what shards keep that exist no longer goes into those that do.
 *
 * Why.     When a type has fewer shards than before, nobody opens the stores of the others, and
 *          what they remember would never start. While no node runs, one process may write all.
 * Shape.   ids of the journal -> stores of shards from `shards` on -> each into shard N % shards
 *          Which shard an entity belongs to is not asked: a program's extractor is not here. The
 *          nodes hand each to its shard when they open the store (region_move.c).
 * Must hold.
 *   sharding-fold-F1  A store loses nothing before the other one has it: what was cut short is
 *       folded again.
 *   sharding-fold-F2  What the other store has already, stays: a reminder of this name is newer.
 * Tests.   tests/unit/cluster/shard_store_test.c, tests/system/journal.sh
 */
#include "cluster/sharding/sharding.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "cluster/sharding/shard_store.h"

enum { PAGE = 64 };

typedef struct fold {
    const trp_journal_driver *driver;
    const char *type;
    uint32_t shards;
    uint64_t wall_ms;
    trpi_sharding_folded *of;
    char *why;
    size_t why_bytes;
    uint32_t *numbers; /* of shards that exist no longer */
    uint32_t numbers_count;
    uint32_t numbers_room;
    char prefix[TRP_JOURNAL_ID_BYTES_MAX + 1];
    char after[TRP_JOURNAL_ID_BYTES_MAX + 1];
    bool is_past; /* names of others follow */
    trp_err err;
} fold;

static trp_err fold_fail(fold *f, trp_err err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static trp_err
fold_fail(fold *f, trp_err err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(f->why, f->why_bytes, format, args);
    va_end(args);
    return err;
}

/* ---- which stores there are ------------------------------------------------------------------ */

static trp_err
name_given(trp_journal_op *op, const trp_journal_event *item)
{
    fold *f = op->user;
    size_t bytes = strlen(f->prefix);
    char *end = NULL;
    if (strncmp(item->id, f->prefix, bytes) != 0) {
        f->is_past = true;
        return TRP_OK;
    }
    (void)snprintf(f->after, sizeof f->after, "%s", item->id);
    unsigned long number = strtoul(item->id + bytes, &end, 10);
    if (end == item->id + bytes || *end != '\0' || number < f->shards || number >= UINT32_MAX) {
        return TRP_OK;
    }
    if (f->err == TRP_OK && TRPI_ARRAY_RESERVE(f, numbers, 1, TRPI_ARRAY_NO_LIMIT) != TRP_OK) {
        f->err = TRP_ENOMEM;
    }
    if (f->err == TRP_OK) {
        f->numbers[f->numbers_count++] = (uint32_t)number;
    }
    return TRP_OK;
}

static trp_err
numbers_find(fold *f)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    (void)snprintf(f->after, sizeof f->after, "%s", f->prefix);
    do {
        op = (trp_journal_op)TRP_JOURNAL_OP_INIT;
        op.kind = TRP_JOURNAL_IDS;
        op.id = f->after;
        op.max_events = PAGE;
        op.give = name_given;
        op.user = f;
        if (trp_journal_call(f->driver, &op) != TRP_OK) {
            return fold_fail(f, op.err, "%s", op.why);
        }
    } while (op.ret_more && !f->is_past && f->err == TRP_OK);
    return f->err == TRP_OK ? TRP_OK : fold_fail(f, f->err, "%s", trp_strerror(f->err));
}

/* ---- a store --------------------------------------------------------------------------------- */

/* Carry out what the store has to do. */
static trp_err
store_run(fold *f, trpi_shard_store *store)
{
    trp_journal_op *op = NULL;
    trpi_shard_effect effect;
    const char *why = NULL;
    trp_err err = TRP_OK;
    while ((op = trpi_shard_store_next(store, f->wall_ms)) != NULL) {
        (void)trp_journal_call(f->driver, op); /* the store looks at its outcome */
        trpi_shard_store_answered(store, op);
    }
    while (trpi_shard_store_effect(store, &effect)) {
        if (effect.err != TRP_OK && err == TRP_OK) {
            err = fold_fail(f, effect.err, "%s: %s", trpi_shard_store_scope(store), effect.why);
        }
    }
    if (err == TRP_OK && trpi_shard_store_state_get(store) != TRPI_SHARD_STORE_READY) {
        err = trpi_shard_store_error(store, &why);
        err = fold_fail(f, err, "%s: %s", trpi_shard_store_scope(store), why);
    }
    return err;
}

static trp_err
store_open(fold *f, uint32_t number, trpi_shard_store **ret_store)
{
    trpi_shard_store_options options = {
        .type = f->type, .shard = number, .writer = "troupe journal fold", .memory = true
    };
    trpi_shard_store *store = NULL;
    trp_err err = trpi_shard_store_new(&options, &store);
    if (err != TRP_OK) {
        return fold_fail(f, err, "%s", trp_strerror(err));
    }
    err = store_run(f, store);
    if (err != TRP_OK) {
        trpi_shard_store_free(store);
        return err;
    }
    *ret_store = store;
    return TRP_OK;
}

/* Put all of `from` into `to`. sharding-fold-F2 */
static trp_err
store_copy(fold *f, const trpi_shard_store *from, trpi_shard_store *to)
{
    const trpi_shard_reminder *reminder = NULL;
    const char *name = NULL;
    uint32_t position = 0;
    trp_err err = TRP_OK;
    while (err == TRP_OK && (name = trpi_shard_store_entity(from, &position)) != NULL) {
        err = trpi_shard_store_remembers(to, name) ? TRP_OK : trpi_shard_store_add(to, name, 0);
    }
    position = 0;
    while (err == TRP_OK && (reminder = trpi_shard_store_reminder(from, NULL, &position)) != NULL) {
        err = trpi_shard_store_has_reminder(to, reminder->id, reminder->name)
                  ? TRP_OK
                  : trpi_shard_store_remind(to, reminder, 0);
    }
    if (err != TRP_OK) {
        return fold_fail(f, err, "%s cannot take what %s keeps: %s", trpi_shard_store_scope(to),
                         trpi_shard_store_scope(from),
                         err == TRP_ELIMIT ? "it would keep too much: choose more shards"
                                           : trp_strerror(err));
    }
    return store_run(f, to);
}

static trp_err
store_empty(fold *f, trpi_shard_store *store)
{
    const trpi_shard_reminder *reminder = NULL;
    const char *name = NULL;
    uint32_t position = 0;
    trp_err err = TRP_OK;
    while (err == TRP_OK && (name = trpi_shard_store_entity(store, &position)) != NULL) {
        err = trpi_shard_store_remove(store, name, 0);
    }
    position = 0;
    while (err == TRP_OK &&
           (reminder = trpi_shard_store_reminder(store, NULL, &position)) != NULL) {
        err = trpi_shard_store_cancel(store, reminder->id, reminder->name, 0);
    }
    return err != TRP_OK ? fold_fail(f, err, "%s", trp_strerror(err)) : store_run(f, store);
}

static trp_err
shard_fold(fold *f, uint32_t number)
{
    trpi_shard_store *from = NULL, *to = NULL;
    trp_err err = store_open(f, number, &from);
    uint32_t entities = err == TRP_OK ? trpi_shard_store_entities_count(from) : 0;
    uint32_t reminders = err == TRP_OK ? trpi_shard_store_reminders_count(from) : 0;
    if (err == TRP_OK && entities + reminders > 0) {
        err = store_open(f, number % f->shards, &to);
        err = err == TRP_OK ? store_copy(f, from, to) : err;
        err = err == TRP_OK ? store_empty(f, from) : err; /* sharding-fold-F1 */
    }
    if (err == TRP_OK && entities + reminders > 0) {
        f->of->shards++;
        f->of->entities += entities;
        f->of->reminders += reminders;
    }
    trpi_shard_store_free(to);
    trpi_shard_store_free(from);
    return err;
}

trp_err
trpi_sharding_fold(const trp_journal_driver *driver, const char *type, uint32_t shards,
                   uint64_t wall_ms, trpi_sharding_folded *ret_folded, char *why, size_t why_bytes)
{
    trpi_sharding_folded of = { 0, 0, 0 };
    fold f = { .driver = driver,
               .type = type,
               .shards = shards,
               .wall_ms = wall_ms,
               .of = &of,
               .why = why,
               .why_bytes = why_bytes };
    if (type[0] == '\0' || strlen(type) > TRP_ENTITY_TYPE_BYTES_MAX || shards == 0 ||
        shards > TRP_SHARDING_SHARDS_MAX) {
        return fold_fail(&f, TRP_EINVAL, "a type has 1 to %d bytes, and 1 to %d shards",
                         TRP_ENTITY_TYPE_BYTES_MAX, TRP_SHARDING_SHARDS_MAX);
    }
    (void)snprintf(f.prefix, sizeof f.prefix, "/sharding/%s/", type);
    trp_err err = numbers_find(&f);
    for (uint32_t i = 0; err == TRP_OK && i < f.numbers_count; i++) {
        err = shard_fold(&f, f.numbers[i]);
    }
    trpi_free(f.numbers);
    *ret_folded = of;
    return err;
}

/* region_keep.c - the stores of a region's shards: opened before a shard's entities start, fed,
 * and given up behind the last of them.
 *
 * Why.     The owner of a shard claims it once for all its entities, and believes nothing before
 *          it has read it.
 * Shape.   own -> trpi_keep_open -> claim, reads -> trpi_shard_opened
 *                       ^---- back-off ----v
 *          READY: changes -> appends;  fenced, or an outcome unknown -> trpi_shard_lost
 *          stop -> last entity ended -> trpi_keep_close -> stopped()
 * Must hold.
 *   region-keep-K1  A shard is given back only when no operation of it is under way: a claim that
 *       came later would fence the next owner.
 *   region-keep-K2  What an operation leads to is freed by its answer, also when the region's actor
 *       has ended; an answer needs no memory.
 *   region-keep-K3  At most READS_BYTES_MAX are being read for the shards of a region, or one read.
 *   region-keep-K4  When a shard is lost, no entity of it starts any more, whatever waits for it:
 *       its appends would be refused, each with a message. Messages are for the next owner
 *       (region-shard-S7). One that has failed starts again when the journal has said that the
 *       shard is not lost, also while it is handed off.
 * Limits.  READS_BYTES_MAX; back-off: the type's.
 * Tests.   tests/unit/cluster/entity_keep_test.c
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/sharding/region.h"
#include "persistence/persistence.h"

enum {
    READS_BYTES_MAX = 16 << 20,
    EVENTS_BYTES = 1 << 20,
    SNAPSHOT_BYTES = 4 << 20, /* more than the largest one */
    LOG_MS = 10000            /* between two lines about stores that cannot be opened */
};

trp_type trpi_keep_answer_type = { .name = "sharding.stored",
                                   .tag = 3,
                                   .flags = TRP_TYPE_LOCAL | TRPI_TYPE_FLAG_SILENT };

/* ---- answers --------------------------------------------------------------------------------- */

/* The payload of the message that says that keep->op is answered. */
typedef struct keep_answer {
    trp_system *system;
    trp_ref actor;
    trpi_shard_keep *keep;
    trp_msg *msg;
    bool taken; /* else keep is freed with it: region-keep-K2 */
} keep_answer;

static void
keep_free(trpi_shard_keep *keep)
{
    trpi_remind_asks_free(keep);
    trpi_shard_store_free(keep->store);
    trpi_free(keep);
}

static void
answer_release(void *data, void *arg)
{
    keep_answer *answer = data;
    (void)arg;
    if (!answer->taken) {
        trpi_shard_store_answered(answer->keep->store, answer->keep->op);
        keep_free(answer->keep);
    }
    trpi_free(answer);
}

/* Thread: one of the driver's, or the region's. */
static void
op_done(trp_journal_op *op)
{
    keep_answer *answer = op->user;
    trp_ctx *ctx = trpi_enter(answer->system);
    trpi_send(ctx, answer->actor, answer->msg);
    trpi_leave(ctx);
}

static keep_answer *
answer_new(trpi_shard_keep *keep)
{
    keep_answer *answer = trpi_alloc(sizeof *answer);
    if (answer == NULL || trpi_msg_new_owner(&trpi_keep_answer_type, answer, answer_release,
                                             &answer->msg) != TRP_OK) {
        trpi_free(answer);
        return NULL;
    }
    answer->system = keep->region->system;
    answer->actor = keep->region->actor;
    answer->keep = keep;
    return answer;
}

static void
answer_drop(keep_answer *answer)
{
    answer->taken = true;
    trpi_msg_drop(answer->msg);
}

/* ---- operations ------------------------------------------------------------------------------ */

static void
op_submit(trpi_shard_keep *keep)
{
    const trp_journal_driver *journal = trpi_persistence_journal(keep->region->system);
    keep->reads_later = false;
    keep->region->reading_bytes += keep->read_bytes;
    journal->submit(journal->arg, keep->op);
}

static bool
may_read(const trpi_region *region, uint32_t bytes)
{
    return region->reading_bytes == 0 || region->reading_bytes + bytes <= READS_BYTES_MAX;
}

static void
op_begin(trpi_shard_keep *keep, trp_journal_op *op, keep_answer *answer)
{
    trpi_region *region = keep->region;
    op->done = op_done;
    op->user = answer;
    keep->op = op;
    keep->read_bytes = 0;
    if (op->give != NULL) {
        bool snapshot = op->kind == TRP_JOURNAL_SNAPSHOT_LOAD;
        op->max_bytes = EVENTS_BYTES;
        keep->read_bytes = snapshot ? SNAPSHOT_BYTES : EVENTS_BYTES;
    }
    if (keep->read_bytes == 0 ||
        (region->reads == NULL && may_read(region, keep->read_bytes))) { /* region-keep-K3 */
        op_submit(keep);
        return;
    }
    keep->reads_later = true;
    keep->next_read = NULL;
    *(region->reads == NULL ? &region->reads : region->reads_end) = keep;
    region->reads_end = &keep->next_read;
}

static void
reads_begin(trpi_region *region)
{
    while (region->reads != NULL && may_read(region, region->reads->read_bytes)) {
        trpi_shard_keep *keep = region->reads;
        region->reads = keep->next_read;
        op_submit(keep);
    }
}

static void
reads_leave(trpi_region *region, const trpi_shard_keep *keep)
{
    trpi_shard_keep **at = &region->reads;
    while (*at != keep) {
        at = &(*at)->next_read;
    }
    *at = keep->next_read;
    if (region->reads_end == &keep->next_read) {
        region->reads_end = at;
    }
}

void
trpi_keep_go_on(trp_ctx *ctx, trpi_shard_keep *keep)
{
    trpi_region *region = keep->region;
    (void)ctx;
    if (keep->store == NULL || keep->op != NULL) {
        return;
    }
    keep_answer *answer = answer_new(keep); /* before the operation: that cannot be put off */
    if (answer == NULL) {
        region->keeps_stuck = true;
        return;
    }
    trp_journal_op *op = trpi_shard_store_next(
        keep->store, (uint64_t)trpi_world_wall_ms(trpi_system_world(region->system)));
    if (op != NULL) {
        op_begin(keep, op, answer);
    } else {
        answer_drop(answer);
    }
}

/* ---- opening --------------------------------------------------------------------------------- */

static void
open_later(trpi_shard_keep *keep)
{
    trpi_region *region = keep->region;
    uint64_t back_off = region->options.backoff_min_ms;
    for (uint32_t i = 0; i < keep->tries && back_off < region->options.backoff_max_ms; i++) {
        back_off *= 2;
    }
    if (back_off > region->options.backoff_max_ms) {
        back_off = region->options.backoff_max_ms;
    }
    if (keep->tries == 0) {
        /* relaxed: for status */
        atomic_fetch_add_explicit(&region->keeps_failed, 1, memory_order_relaxed);
    }
    keep->tries = (uint8_t)(keep->tries < UINT8_MAX ? keep->tries + 1 : keep->tries);
    keep->open_ms = trpi_region_now_ms(region) + back_off;
    region->keeps_later++;
}

/* The name under which it claims: for those that are fenced. */
static void
writer_write(const trpi_region *region, char *text, size_t bytes)
{
    char address[TRPI_ADDRESS_TEXT_BYTES];
    (void)trpi_address_format(&trpi_system_self(region->system)->address, address, sizeof address);
    (void)snprintf(text, bytes, "%s/system/sharding-%s", address, region->name);
}

static void
open_try(trp_ctx *ctx, trpi_shard_keep *keep)
{
    const trpi_region *region = keep->region;
    char writer[TRP_JOURNAL_WRITER_BYTES_MAX + 1];
    writer_write(region, writer, sizeof writer);
    trpi_shard_store_options options = {
        .type = region->name, .shard = keep->number, .writer = writer, .memory = region->remembers
    };
    if (trpi_shard_store_new(&options, &keep->store) != TRP_OK) {
        keep->store = NULL;
        open_later(keep);
        return;
    }
    trpi_keep_go_on(ctx, keep);
}

void
trpi_keep_open(trp_ctx *ctx, trpi_region *region, uint32_t number)
{
    trpi_shard *shard = &region->shards[number];
    trpi_assert(shard->keep == NULL);
    shard->keep = trpi_alloc(sizeof *shard->keep);
    if (shard->keep == NULL) {
        region->keeps_stuck = true;
        return;
    }
    shard->keep->region = region;
    shard->keep->number = number;
    open_try(ctx, shard->keep);
}

void
trpi_keep_open_later(trpi_region *region, uint32_t number)
{
    trpi_shard *shard = &region->shards[number];
    trpi_assert(shard->keep == NULL);
    shard->keep = trpi_alloc(sizeof *shard->keep);
    if (shard->keep == NULL) {
        region->keeps_stuck = true;
        return;
    }
    shard->keep->region = region;
    shard->keep->number = number;
    open_later(shard->keep);
}

static void
open_failed(trpi_shard_keep *keep)
{
    trpi_region *region = keep->region;
    const char *why;
    trp_err err = trpi_shard_store_error(keep->store, &why);
    uint64_t now_ms = trpi_region_now_ms(region);
    if (region->keeps_logged_ms == 0 || now_ms - region->keeps_logged_ms >= LOG_MS) {
        region->keeps_logged_ms = now_ms;
        trpi_log(region->system, err == TRP_EDATA ? TRP_LOG_ERROR : TRP_LOG_WARNING, "sharding",
                 "shard not opened type=%s shard=%u reason=\"%s\" next=\"it is tried again, its "
                 "messages wait\"",
                 region->name, keep->number, why[0] != '\0' ? why : trp_strerror(err));
    }
    trpi_shard_store_free(keep->store);
    keep->store = NULL;
    open_later(keep);
}

static void
keep_opened(trp_ctx *ctx, trpi_shard_keep *keep)
{
    trpi_region *region = keep->region;
    trpi_shard *shard = &region->shards[keep->number];
    if (keep->tries > 0) {
        keep->tries = 0;
        atomic_fetch_sub_explicit(&region->keeps_failed, 1, memory_order_relaxed); /* status */
    }
    /* release: pairs with the acquire of an entity that starts */
    atomic_store_explicit(&shard->writes_as, trpi_shard_store_epoch(keep->store),
                          memory_order_release);
    trpi_shard_opened(ctx, region, keep->number);
}

static void
keep_lost(trp_ctx *ctx, trpi_shard_keep *keep)
{
    trpi_region *region = keep->region;
    const char *why;
    trp_err err = trpi_shard_store_error(keep->store, &why);
    trpi_log(region->system, TRP_LOG_ERROR, "sharding",
             "shard lost type=%s shard=%u reason=\"%s\" next=\"its entities stop, and its messages "
             "go to its next owner\"",
             region->name, keep->number, why[0] != '\0' ? why : trp_strerror(err));
    trpi_shard_lost(ctx, region, keep->number);
}

/* Pass on what the store has carried out, or not. */
static void
keep_effects(trp_ctx *ctx, trpi_shard_keep *keep)
{
    trpi_shard_effect effect;
    while (trpi_shard_store_effect(keep->store, &effect)) {
        if ((effect.token & TRPI_MOVE_TOKEN) != 0) {
            keep->region->mover->effect(ctx, keep, &effect);
        } else if (effect.token == 0 &&
                   (effect.kind == TRPI_SHARD_ADD || effect.kind == TRPI_SHARD_REMOVE)) {
            trpi_entry_noted(ctx, keep->region, keep->number, &effect);
        } else {
            trpi_remind_effect(ctx, keep, &effect);
        }
    }
    trpi_shard_open(ctx, keep->region, &keep->region->shards[keep->number]);
}

void
trpi_keep_answered(trp_ctx *ctx, trpi_region *region, const trp_msg *msg)
{
    keep_answer *answer = (keep_answer *)(uintptr_t)trp_msg_payload(msg);
    trpi_shard_keep *keep = answer->keep;
    trp_journal_op *op = keep->op;
    uint32_t number = keep->number;
    trpi_shard *shard = &region->shards[number];
    bool stops = shard->state == TRPI_SHARD_STOPPING;
    answer->taken = true;
    keep->op = NULL;
    region->reading_bytes -= keep->read_bytes;
    reads_begin(region);
    if (op->kind == TRP_JOURNAL_APPEND && op->outcome == TRP_JOURNAL_DONE) {
        trpi_journal_committed(region->system, op);
    }
    trpi_shard_store_answered(keep->store, op);
    keep_effects(ctx, keep);
    trpi_shard_store_state state = trpi_shard_store_state_get(keep->store);
    if (shard->state == TRPI_SHARD_OPENING && state == TRPI_SHARD_STORE_LOST) {
        open_failed(keep);
        return;
    }
    if (state == TRPI_SHARD_STORE_LOST &&
        (shard->state == TRPI_SHARD_OWN || (shard->state == TRPI_SHARD_STOPPING && !shard->lost))) {
        keep_lost(ctx, keep);
        stops = true;
    }
    if (shard->state == TRPI_SHARD_STOPPING) {
        trpi_entry_start_due(ctx, region); /* those that waited for a probe */
    }
    if (stops && (shard->state != TRPI_SHARD_STOPPING || state != TRPI_SHARD_STORE_READY)) {
        trpi_shard_look(ctx, region, number); /* nothing more is begun; keep may be freed */
        return;
    }
    if (shard->state == TRPI_SHARD_OPENING && state == TRPI_SHARD_STORE_READY) {
        keep_opened(ctx, keep);
    }
    trpi_keep_go_on(ctx, keep);
    trpi_shard_look(ctx, region, number);
}

void
trpi_keep_probe(trp_ctx *ctx, trpi_region *region, uint32_t number)
{
    const trpi_shard *shard = &region->shards[number];
    if (shard->keep != NULL && shard->keep->store != NULL &&
        (shard->state == TRPI_SHARD_OWN || shard->state == TRPI_SHARD_STOPPING)) {
        trpi_shard_store_probe(shard->keep->store);
        trpi_keep_go_on(ctx, shard->keep);
    }
}

bool
trpi_keep_probes(const trpi_region *region, uint32_t number)
{
    const trpi_shard_keep *keep = region->shards[number].keep;
    return keep != NULL && keep->store != NULL && trpi_shard_store_probes(keep->store);
}

void
trpi_keep_tick(trp_ctx *ctx, trpi_region *region)
{
    bool stuck = region->keeps_stuck;
    uint64_t now_ms = trpi_region_now_ms(region);
    if (!stuck && region->keeps_later == 0) {
        return;
    }
    region->keeps_stuck = false;
    for (uint32_t i = 0; i < region->options.shards; i++) {
        trpi_shard_keep *keep = region->shards[i].keep;
        if (keep == NULL && stuck && region->shards[i].state == TRPI_SHARD_OPENING) {
            trpi_keep_open(ctx, region, i);
        } else if (keep != NULL && keep->store == NULL && keep->open_ms <= now_ms) {
            region->keeps_later--;
            open_try(ctx, keep);
        } else if (keep != NULL && stuck) {
            trpi_keep_go_on(ctx, keep);
        }
        if (stuck) {
            trpi_remind_wait(ctx, region, i);
        }
        if (region->shards[i].remember_again) {
            region->shards[i].remember_again = false;
            trpi_remember_open(ctx, region, i);
        }
    }
}

/* ---- the end --------------------------------------------------------------------------------- */

bool
trpi_keep_close(trpi_region *region, trpi_shard *shard)
{
    trpi_shard_keep *keep = shard->keep;
    if (keep == NULL) {
        return true;
    }
    if (keep->op != NULL && !keep->reads_later) {
        return false; /* region-keep-K1 */
    }
    if (keep->op != NULL) { /* it was not submitted */
        keep_answer *answer = keep->op->user;
        reads_leave(region, keep);
        keep->op->outcome = TRP_JOURNAL_FAILED;
        keep->op->err = TRP_ECLOSED;
        trpi_shard_store_answered(keep->store, keep->op);
        answer_drop(answer);
    }
    region->keeps_later -= keep->store == NULL ? 1 : 0;
    if (keep->tries > 0) {
        atomic_fetch_sub_explicit(&region->keeps_failed, 1, memory_order_relaxed); /* status */
    }
    shard->keep = NULL;
    region->mover->abandon(region, keep->number);
    keep_free(keep);
    return true;
}

void
trpi_keep_abandon(trpi_region *region, trpi_shard *shard)
{
    if (!trpi_keep_close(region, shard)) {
        shard->keep = NULL; /* region-keep-K2 */
    }
}

/* ---- who writes ------------------------------------------------------------------------------ */

/* On the thread of an entity that starts, or of any persistent actor. */
static bool
scope_of(void *arg, trp_ctx *ctx, char *id, char *scope, uint64_t *epoch)
{
    const trpi_entry *entry = trpi_entry_of_self(ctx);
    char name[TRPI_ENTITY_NAME_BYTES];
    (void)arg;
    if (entry == NULL || !entry->region->keeps ||
        trpi_entity_name(entry->id, entry->id_bytes, name) == 0) {
        return false;
    }
    const trpi_region *region = entry->region;
    (void)snprintf(id, TRP_JOURNAL_ID_BYTES_MAX + 1, "%s|%s", region->name, name);
    (void)snprintf(scope, TRP_JOURNAL_SCOPE_BYTES_MAX + 1, "sharding/%s/%u", region->name,
                   entry->shard);
    /* acquire: pairs with the release in keep_opened() */
    *epoch = atomic_load_explicit(&region->shards[entry->shard].writes_as, memory_order_acquire);
    return true;
}

trp_err
trpi_keep_check(trpi_sharding *sharding, const trp_sharding_options *options, char *why,
                size_t why_bytes)
{
    char what[TRP_ENTITY_TYPE_BYTES_MAX + sizeof "entities of the type ''"];
    if (!trpi_keep_is_wanted(options)) {
        return TRP_OK;
    }
    (void)snprintf(what, sizeof what, "entities of the type '%s'", options->type);
    trp_err err = trpi_persistence_require_shared(sharding->system, what, why, why_bytes);
    if (err == TRP_OK) {
        err = trpi_persistent_scope_set(sharding->system, scope_of, sharding);
    }
    return err == TRP_EEXIST ? TRP_OK : err; /* by the type before */
}

bool
trpi_keep_is_wanted(const trp_sharding_options *options)
{
    return options->behaviour != NULL &&
           (options->persistent != 0 || options->remember_entities != 0 ||
            trpi_behaviour_is_persistent(options->behaviour));
}

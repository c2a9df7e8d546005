/* region_entry.c - the life of an entity: start, passivation, end; and what waits for it meanwhile.
 *
 * States.  ABSENT --message--> RUNNING --passivate--> CLOSING --grace--> STOPPING --ended--> ENDED
 *          ABSENT -> NOTING -> RUNNING, and DRAINING -> FORGETTING -> gone: region_remember.c
 *          RUNNING, CLOSING --ended (by itself, or by a failure)--> ENDED
 *          ENDED --grace--> DRAINING --mark--> ABSENT: forgotten, or it starts for what waits
 * Must hold.
 *   region-entry-E1  At most one incarnation: one is spawned only in ABSENT, which follows the end
 *       of the one before.
 *   region-entry-E2  What waits is passed on in this order: front, in the order of the mailbox that
 *       it was left in; then back, in the order of arrival. The order of a sender: what it told the
 *       old incarnation was in the mailbox before region-O2's grace period was over, and what it
 *       told later is in back.
 *   region-entry-E3  The stop message is told when no teller has the ref (CLOSING), so it is behind
 *       all that was told by name.
 * Limits.  options.buffer_bytes_max (dead letters: entity-buffer).
 * Tests.   tests/unit/cluster/entity_test.c
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "cluster/sharding/region.h"
#include "persistence/persistence.h"

enum { FAILURES_MAX = 16 };

/* ---- what waits ------------------------------------------------------------------------------ */

void
trpi_region_keep(trpi_region *region, trpi_request_queue *queue, trpi_request *request)
{
    if (region->buffered_bytes + request->bytes > region->options.buffer_bytes_max) {
        trpi_request_dead(request, TRP_DEAD_ENTITY_BUFFER);
        return;
    }
    region->buffered_bytes += request->bytes;
    atomic_fetch_add_explicit(&region->waiting_msgs, 1, memory_order_relaxed);
    trpi_request_append(queue, request);
}

trpi_request *
trpi_region_unkeep(trpi_region *region, trpi_request_queue *queue)
{
    trpi_request *request = trpi_request_take(queue);
    if (request != NULL) {
        region->buffered_bytes -= request->bytes;
        atomic_fetch_sub_explicit(&region->waiting_msgs, 1, memory_order_relaxed);
    }
    return request;
}

bool
trpi_entry_has_waiting(const trpi_entry *entry)
{
    return entry->wait != NULL &&
           (entry->wait->front.first != NULL || entry->wait->back.first != NULL);
}

static bool
wait_get(trpi_entry *entry)
{
    if (entry->wait == NULL) {
        entry->wait = trpi_alloc(sizeof *entry->wait);
        if (entry->wait != NULL) {
            entry->wait->entry = entry;
        }
    }
    return entry->wait != NULL;
}

static void
request_keep(trpi_region *region, trpi_entry *entry, bool front, trpi_request *request)
{
    if (!wait_get(entry)) {
        trpi_request_dead(request, TRP_DEAD_NO_MEMORY);
        return;
    }
    trpi_region_keep(region, front ? &entry->wait->front : &entry->wait->back, request);
}

/* ---- grace periods --------------------------------------------------------------------------- */

static void
grace_over(void *arg)
{
    trpi_region *region = arg;
    if (region->free_after_grace) { /* all threads have ended */
        trpi_region_free(region);
        return;
    }
    atomic_store(&region->grace_called, true);
    if (atomic_load_explicit(&region->closed, memory_order_acquire)) {
        return;
    }
    trpi_request *request =
        trpi_request_new(region->system, TRPI_REQUEST_GRACE, NULL, NULL, 0, NULL);
    if (request != NULL) {
        trp_ctx *ctx = trpi_enter(region->system);
        trpi_request_tell(ctx, region, request);
        trpi_leave(ctx);
    }
}

void
trpi_region_grace(trpi_region *region)
{
    region->grace_wanted = true;
    if (!region->grace_runs) {
        region->grace_runs = true;
        region->grace_wanted = false;
        atomic_store(&region->grace_called, false);
        region->closing_now = region->closing_next;
        region->closing_next = NULL;
        for (uint32_t i = 0; region->shards_closing > 0 && i < region->options.shards; i++) {
            region->shards[i].closing_now = region->shards[i].closing;
        }
        trpi_system_retire(region->system, grace_over, region);
    }
}

static void
close_later(trpi_region *region, trpi_entry_wait *wait)
{
    if (!wait->is_closing) {
        wait->is_closing = true;
        wait->next_closing = region->closing_next;
        region->closing_next = wait;
        trpi_region_grace(region);
    }
}

/* ---- start ----------------------------------------------------------------------------------- */

trpi_entry *
trpi_entry_get(trpi_region *region, const trpi_request *request)
{
    return trpi_entry_make(region, request->shard, request->hash, request->id, request->id_bytes);
}

trpi_entry *
trpi_entry_make(trpi_region *region, uint32_t number, uint64_t hash, const void *id,
                size_t id_bytes)
{
    trpi_shard *shard = &region->shards[number];
    trpi_entry *entry = trpi_entry_find(&shard->entries, hash, id, id_bytes);
    if (entry != NULL) {
        return entry;
    }
    entry = trpi_alloc(sizeof *entry + id_bytes);
    if (entry == NULL) {
        return NULL;
    }
    entry->region = region;
    entry->shard = number;
    entry->hash = hash;
    entry->id_bytes = (uint8_t)id_bytes;
    memcpy(entry->id, id, id_bytes);
    atomic_init(&entry->used, atomic_load_explicit(&region->clock, memory_order_relaxed));
    if (!wait_get(entry) || trpi_entry_insert(region->system, &shard->entries, entry) != TRP_OK) {
        trpi_free(entry->wait);
        trpi_free(entry);
        return NULL;
    }
    region->entities++;
    return entry;
}

void
trpi_entry_forget(trpi_region *region, trpi_entry *entry)
{
    trpi_assert(entry->state == TRPI_ENTRY_ABSENT && entry->wait->front.first == NULL &&
                entry->wait->back.first == NULL);
    trpi_assert(!entry->wait->is_closing && !entry->wait->is_opening && !entry->wait->is_later);
    trpi_entry_restarts_clear(region, entry);
    trpi_entry_remove(&region->shards[entry->shard].entries, entry);
    region->entities--;
    trpi_free(entry->wait);
    trpi_system_retire(region->system, trpi_free, entry); /* entity-table-T2 */
}

/* Before the entity runs: it may ask for its name, and may end at once. */
static trp_err
entry_publish(void *arg, trp_ref ref)
{
    trpi_entry *entry = arg;
    atomic_store_explicit(&entry->incarnation, (uint64_t)ref.generation << 32 | ref.slot,
                          memory_order_relaxed);
    return trpi_entry_index_set(&entry->region->sharding->index, ref.slot, entry);
}

static trp_err
entry_spawn(trp_ctx *ctx, trpi_region *region, trpi_entry *entry)
{
    const trp_sharding_options *o = &region->options;
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    uint8_t *args = NULL;
    trp_err err = TRP_OK;
    trp_ref ref;
    spawn.dispatcher = o->dispatcher;
    if (o->args != NULL) {
        trp_entity entity = trp_entity_of(region->type, entry->id, entry->id_bytes);
        args = trpi_alloc(o->args_type->bytes == 0 ? 1 : o->args_type->bytes);
        err = args == NULL ? TRP_ENOMEM : o->args(o->arg, &entity, args);
        spawn.args_type = o->args_type;
        spawn.args = args;
        spawn.args_bytes = o->args_type->bytes;
    }
    if (err == TRP_OK) {
        err = trpi_spawn_prepared(ctx, o->behaviour, &spawn, region->sharding->keeper.arg != NULL,
                                  entry_publish, entry, &ref);
    }
    trpi_free(args);
    return err;
}

/* Move an ABSENT entry to the list of those that start later. */
void
trpi_entry_start_later(trpi_region *region, trpi_entry *entry)
{
    uint64_t back_off = region->options.backoff_min_ms;
    for (uint32_t i = 1; i < entry->failures && back_off < region->options.backoff_max_ms; i++) {
        back_off *= 2;
    }
    back_off =
        back_off < region->options.backoff_max_ms ? back_off : region->options.backoff_max_ms;
    entry->wait->start_ms = trpi_region_now_ms(region) + back_off;
    if (!entry->wait->is_later) {
        entry->wait->is_later = true;
        entry->wait->next_later = region->later;
        region->later = entry->wait;
    }
}

/* The incarnation has ended while it got what waits: this message and the rest are behind those
 * that it got, which come to front. region-entry-E2 */
static void
waiting_put_back(trpi_region *region, trpi_entry_wait *wait, trpi_request *request)
{
    trpi_request_queue rest = { 0 };
    trpi_request_append(&rest, request);
    region->buffered_bytes += request->bytes;
    atomic_fetch_add_explicit(&region->waiting_msgs, 1, memory_order_relaxed);
    while ((request = trpi_request_take(&wait->front)) != NULL ||
           (request = trpi_request_take(&wait->back)) != NULL) {
        trpi_request_append(&rest, request);
    }
    wait->back = rest;
}

static void
failure_count(trpi_entry *entry)
{
    entry->failures =
        (uint8_t)(entry->failures < FAILURES_MAX ? entry->failures + 1 : entry->failures);
}

void
trpi_entry_start(trp_ctx *ctx, trpi_region *region, trpi_entry *entry)
{
    trpi_assert(entry->state == TRPI_ENTRY_ABSENT && !entry->wait->is_later); /* region-entry-E1 */
    trpi_entry_restarts_clear(region, entry);
    entry->passivated = false;
    trpi_region_limit(ctx, region);
    trp_err err = entry_spawn(ctx, region, entry);
    if (err != TRP_OK) {
        trpi_log(region->system, TRP_LOG_WARNING, "sharding",
                 "entity not started type=%s reason=\"%s\" next=\"it is tried again\"",
                 region->name, trp_strerror(err));
        failure_count(entry);
        trpi_entry_start_later(region, entry);
        return;
    }
    trp_ref ref = trpi_entry_ref(entry);
    trpi_entry_wait *wait = entry->wait;
    trpi_request *request;
    entry->state = TRPI_ENTRY_RUNNING;
    entry->started_ms = (uint32_t)trpi_region_now_ms(region);
    atomic_fetch_add_explicit(&region->live, 1, memory_order_relaxed);
    while ((request = trpi_region_unkeep(region, &wait->front)) != NULL ||
           (request = trpi_region_unkeep(region, &wait->back)) != NULL) { /* region-entry-E2 */
        if (!trpi_send_live(ctx, ref.slot, ref.generation, request->msg)) {
            waiting_put_back(region, wait, request);
            break;
        }
        request->msg = NULL;
        trpi_remind_pushed(ctx, region, entry, request->fired);
        request->fired = NULL;
        trpi_request_free(request);
    }
    if (!wait->is_opening) {
        trpi_shard *shard = &region->shards[entry->shard];
        wait->is_opening = true;
        wait->next_opening = shard->opening;
        shard->opening = wait;
    }
}

/* Begin it; in a shard that is handed off it ends behind what waits, which is handled here. */
static void
entry_begin_here(trp_ctx *ctx, trpi_region *region, trpi_entry *entry)
{
    const trpi_shard *shard = &region->shards[entry->shard];
    trpi_entry_begin(ctx, region, entry);
    if (shard->state == TRPI_SHARD_STOPPING && entry->state == TRPI_ENTRY_RUNNING) {
        trpi_entry_stop(ctx, region, entry);
    }
}

void
trpi_entry_start_due(trp_ctx *ctx, trpi_region *region)
{
    uint64_t now_ms = trpi_region_now_ms(region);
    trpi_entry_wait *later = region->later;
    region->later = NULL;
    while (later != NULL) {
        trpi_entry_wait *wait = later;
        later = wait->next_later;
        if (wait->start_ms > now_ms || trpi_keep_probes(region, wait->entry->shard)) {
            wait->next_later = region->later;
            region->later = wait;
            continue;
        }
        wait->is_later = false;
        trpi_entry *entry = wait->entry;
        uint32_t number = entry->shard;
        if (entry->state == TRPI_ENTRY_FORGETTING) {
            entry->state = TRPI_ENTRY_ABSENT;
            trpi_entry_let_go(ctx, region, entry);
        } else if (trpi_entry_has_waiting(entry) || trpi_entry_is_remembered(region, entry)) {
            entry_begin_here(ctx, region, entry);
            trpi_shard_open(ctx, region, &region->shards[number]);
        } else {
            trpi_entry_forget(region, entry);
        }
        trpi_shard_look(ctx, region, number);
    }
}

void
trpi_entry_message(trp_ctx *ctx, trpi_region *region, trpi_entry *entry, trpi_request *request)
{
    trp_ref ref = trpi_entry_ref(entry);
    if (entry->state == TRPI_ENTRY_RUNNING &&
        (entry->wait == NULL || entry->wait->back.first == NULL) &&
        trpi_send_live(ctx, ref.slot, ref.generation, request->msg)) {
        request->msg = NULL;
        trpi_remind_pushed(ctx, region, entry, request->fired);
        request->fired = NULL;
        trpi_request_free(request);
        return;
    }
    request_keep(region, entry, false, request);
    if (entry->state == TRPI_ENTRY_ABSENT && entry->wait != NULL && !entry->wait->is_later) {
        trpi_entry_begin(ctx, region, entry);
    }
}

/* ---- end ------------------------------------------------------------------------------------- */

static void
opening_leave(trpi_region *region, trpi_entry_wait *wait)
{
    trpi_entry_wait **at = &region->shards[wait->entry->shard].opening;
    while (wait->is_opening) {
        if (*at == wait) {
            *at = wait->next_opening;
            wait->is_opening = false;
        } else {
            at = &(*at)->next_opening;
        }
    }
}

void
trpi_entry_passivate(trp_ctx *ctx, trpi_region *region, trpi_entry *entry)
{
    (void)ctx;
    if (entry->state == TRPI_ENTRY_RUNNING && wait_get(entry)) {
        /* region-O2. seq_cst: as all changes of target */
        trpi_entity_cache_drop(region, entry);
        atomic_store(&entry->target, TRPI_TARGET_NONE);
        entry->state = TRPI_ENTRY_CLOSING;
        entry->passivated = true;
        opening_leave(region, entry->wait);
        entry->wait->closed = false;
        close_later(region, entry->wait);
    }
}

static void
stop_reached(trp_ctx *ctx, void *arg)
{
    (void)arg;
    trp_stop(ctx, trp_self(ctx));
}

void
trpi_entry_stop(trp_ctx *ctx, trpi_region *region, trpi_entry *entry)
{
    const trp_sharding_options *o = &region->options;
    trp_ref ref = trpi_entry_ref(entry);
    /* seq_cst: as all changes of target */
    trpi_entity_cache_drop(region, entry);
    atomic_store(&entry->target, TRPI_TARGET_NONE);
    if (!wait_get(entry)) {
        trp_stop(ctx, ref); /* without a buffer it cannot be asked to */
        entry->state = TRPI_ENTRY_STOPPING;
        return;
    }
    entry->state = TRPI_ENTRY_STOPPING;
    opening_leave(region, entry->wait);
    entry->wait->closed = true;
    trp_msg *stop;
    if (o->stop_type == NULL && trpi_behaviour_is_persistent(o->behaviour) &&
        trpi_behind_new(stop_reached, NULL, NULL, &stop) == TRP_OK) {
        trpi_send(ctx, ref, stop); /* behind what it keeps while it recovers or persists */
        return;
    }
    trpi_tell(ctx, ref, trp_self(ctx), o->stop_type == NULL ? &trp_poison_pill_type : o->stop_type,
              o->stop, o->stop_bytes);
}

static void
mark_reached(void *arg, uint64_t number)
{
    trpi_entry *entry = arg;
    trpi_region *region = entry->region;
    (void)number;
    if (atomic_load_explicit(&region->closed, memory_order_acquire)) {
        return;
    }
    trpi_request *request =
        trpi_request_new(region->system, TRPI_REQUEST_DRAINED, entry, NULL, 0, NULL);
    if (request != NULL) {
        trp_ctx *ctx = trpi_enter(region->system);
        trpi_request_tell(ctx, region, request);
        trpi_leave(ctx);
    }
}

static void
mailbox_drain(trp_ctx *ctx, trpi_entry *entry)
{
    trp_ref ref = trpi_entry_ref(entry);
    entry->state = TRPI_ENTRY_DRAINING;
    trpi_mark_behind(ctx, ref.slot, ref.generation, mark_reached, entry); /* drains-D2 */
}

void
trpi_entry_graced(trp_ctx *ctx, trpi_region *region, trpi_entry_wait *wait)
{
    wait->is_closing = false;
    wait->closed = true;
    if (wait->entry->state == TRPI_ENTRY_CLOSING) {
        trpi_entry_stop(ctx, region, wait->entry); /* region-entry-E3 */
    } else if (wait->entry->state == TRPI_ENTRY_ENDED) {
        mailbox_drain(ctx, wait->entry);
    }
}

void
trpi_entry_ended(trp_ctx *ctx, trpi_region *region, trpi_entry *entry)
{
    if (!wait_get(entry)) { /* later */
        trpi_request *request =
            trpi_request_new(region->system, TRPI_REQUEST_ENDED, entry, NULL, 0, NULL);
        if (request != NULL) {
            trpi_request_tell(ctx, region, request);
        }
        return;
    }
    /* The region may have opened the entry since ending(). seq_cst: as all changes of target */
    trpi_entity_cache_drop(region, entry);
    atomic_store(&entry->target, TRPI_TARGET_NONE);
    bool closed = entry->state == TRPI_ENTRY_STOPPING;
    bool lived =
        (uint32_t)trpi_region_now_ms(region) - entry->started_ms >= region->options.backoff_max_ms;
    if (lived) {
        entry->failures = 0;
    }
    if (atomic_load_explicit(&entry->failed, memory_order_relaxed)) {
        failure_count(entry);
        trpi_keep_probe(ctx, region, entry->shard); /* was it because another one writes? */
    } else {
        entry->failures = 0;
    }
    atomic_fetch_sub_explicit(&region->live, 1, memory_order_relaxed);
    entry->state = TRPI_ENTRY_ENDED;
    opening_leave(region, entry->wait);
    if (closed) {
        mailbox_drain(ctx, entry);
    } else {
        entry->wait->closed = false;
        close_later(region, entry->wait);
    }
}

void
trpi_entry_left(trpi_region *region, trpi_entry *entry, trpi_request *request)
{
    request_keep(region, entry, true, request);
}

void
trpi_entry_drained(trp_ctx *ctx, trpi_region *region, trpi_entry *entry)
{
    trp_ref ref = trpi_entry_ref(entry);
    trpi_drains_remove(&region->sharding->drains, ref.slot, ref.generation);
    trpi_entry_index_clear(&region->sharding->index, ref.slot, entry);
    atomic_store_explicit(&entry->incarnation, 0, memory_order_relaxed);
    entry->state = TRPI_ENTRY_ABSENT;
    bool waits = trpi_entry_has_waiting(entry);
    if (region->shards[entry->shard].state == TRPI_SHARD_STOPPING) {
        uint32_t number = entry->shard;
        if (waits && trpi_keep_probes(region, number)) { /* region-keep-K4 */
            trpi_entry_start_later(region, entry);
            entry->wait->start_ms = 0; /* with the answer */
        } else if (waits) {
            entry_begin_here(ctx, region, entry);
        } else {
            trpi_entry_forget(region, entry);
        }
        trpi_shard_look(ctx, region, number);
    } else if (entry->failures > 0) {
        trpi_entry_start_later(region, entry);
    } else if (waits) {
        trpi_entry_begin(ctx, region, entry);
    } else if (!entry->passivated && trpi_entry_is_remembered(region, entry)) {
        trpi_entry_start_later(region, entry); /* it has ended by itself, and is to live */
    } else {
        trpi_entry_let_go(ctx, region, entry);
    }
}

void
trpi_entry_settle(trp_ctx *ctx, trpi_region *region, trpi_entry *entry)
{
    trpi_entry_wait **at = &region->later;
    trpi_assert(entry->state == TRPI_ENTRY_ABSENT || entry->wait->is_later);
    entry->state = TRPI_ENTRY_ABSENT;
    while (entry->wait->is_later) {
        if (*at == entry->wait) {
            *at = entry->wait->next_later;
            entry->wait->is_later = false;
        } else {
            at = &(*at)->next_later;
        }
    }
    if (!trpi_entry_has_waiting(entry)) {
        trpi_entry_forget(region, entry);
        return;
    }
    entry_begin_here(ctx, region, entry);
}

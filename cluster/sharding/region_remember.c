/* region_remember.c - what a shard remembers: entities that are to live, noted before their first
 * message, started again where their shard is, forgotten when they are passivated; and reminders.
 *
 * Why.     An entity with timers or work of its own must not wait for a message after a crash.
 * Shape.   first message -> NOTING --the journal has it--> start
 *          passivated by hand, ended, nothing waits -> FORGETTING --done--> gone
 *          ended otherwise -> started again after the back-off
 *          shard opened -> entries that restart -> started, RESTARTING_BYTES_MAX at once
 * Must hold.
 *   region-remember-M1  An entity that handles a message is in the journal.
 *   region-remember-M2  Only what was passivated is taken out of it, and only while its shard is
 *       not being handed off: a hand-off, a failure or a crash forgets nothing.
 *   region-remember-M3  Those that recover at once, each counted with its state, take at most
 *       RESTARTING_BYTES_MAX; the next ones start as they are done, as fast as the journal reads.
 *   region-remember-M4  A reminder that is due is told, and the journal notes that it was when its
 *       entity has handled it; a persistent one: in the incarnation that it was told to.
 *   region-remember-M5  What is kept in another shard than its entity's (their number has changed)
 *       starts nothing there: else the entity could live twice. It is handed over (region_move.c).
 * Limits.  RESTARTING_BYTES_MAX, TURN_BYTES_MAX. A shard remembers TRPI_SHARD_STORE_BYTES_MAX.
 * Tests.   tests/unit/cluster/entity_remember_test.c, entity_reminder_test.c
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buffer.h"
#include "base/hash.h"
#include "cluster/sharding/region.h"
#include "persistence/persistence.h"

enum {
    RESTARTING_BYTES_MAX = 4 << 20,
    TURN_BYTES_MAX = 256 << 10 /* then others have the thread */
};

static trpi_shard_store *
store_of(const trpi_region *region, uint32_t number)
{
    const trpi_shard_keep *keep = region->shards[number].keep;
    return keep == NULL ? NULL : keep->store;
}

static bool
is_on(const trpi_region *region)
{
    return region->options.remember_entities != 0;
}

bool
trpi_entry_is_remembered(const trpi_region *region, const trpi_entry *entry)
{
    const trpi_shard_store *store = is_on(region) ? store_of(region, entry->shard) : NULL;
    char name[TRPI_ENTITY_NAME_BYTES];
    return store != NULL && trpi_entity_name(entry->id, entry->id_bytes, name) > 0 &&
           trpi_shard_store_remembers(store, name);
}

/* ---- noting and forgetting ------------------------------------------------------------------- */

static trp_err
change_begin(trp_ctx *ctx, trpi_region *region, const trpi_entry *entry, bool add)
{
    trpi_shard_keep *keep = region->shards[entry->shard].keep;
    char name[TRPI_ENTITY_NAME_BYTES];
    if (keep == NULL || keep->store == NULL ||
        trpi_entity_name(entry->id, entry->id_bytes, name) == 0) {
        return TRP_ESTATE;
    }
    trp_err err = add ? trpi_shard_store_add(keep->store, name, 0)
                      : trpi_shard_store_remove(keep->store, name, 0);
    if (err == TRP_OK) {
        trpi_keep_go_on(ctx, keep);
    }
    return err;
}

/* The shard is lost: what waits for the entry is for the next owner. */
static void
entry_give_up(trp_ctx *ctx, trpi_region *region, trpi_entry *entry)
{
    trpi_shard *shard = &region->shards[entry->shard];
    trpi_request *request;
    while ((request = trpi_region_unkeep(region, &entry->wait->front)) != NULL ||
           (request = trpi_region_unkeep(region, &entry->wait->back)) != NULL) {
        trpi_shard_give_up(ctx, region, shard, request);
    }
    entry->state = TRPI_ENTRY_ABSENT;
    trpi_entry_forget(region, entry);
}

static void
change_failed(trp_ctx *ctx, trpi_region *region, trpi_entry *entry, trp_err err, const char *why)
{
    const trpi_shard_store *store = store_of(region, entry->shard);
    if (store == NULL || trpi_shard_store_state_get(store) != TRPI_SHARD_STORE_READY) {
        entry_give_up(ctx, region, entry);
        return;
    }
    trpi_log(region->system, TRP_LOG_WARNING, "sharding",
             "entity not %s type=%s shard=%u reason=\"%s\" next=\"it is tried again\"",
             entry->state == TRPI_ENTRY_NOTING ? "noted" : "forgotten", region->name, entry->shard,
             why[0] != '\0' ? why : trp_strerror(err));
    entry->failures = (uint8_t)(entry->failures < UINT8_MAX ? entry->failures + 1 : UINT8_MAX);
    if (entry->state == TRPI_ENTRY_NOTING) {
        entry->state = TRPI_ENTRY_ABSENT;
    }
    trpi_entry_start_later(region, entry);
}

void
trpi_entry_begin(trp_ctx *ctx, trpi_region *region, trpi_entry *entry)
{
    trpi_assert(entry->state == TRPI_ENTRY_ABSENT && !entry->wait->is_later);
    const trpi_shard_store *store = store_of(region, entry->shard);
    if (store != NULL && trpi_shard_store_state_get(store) == TRPI_SHARD_STORE_LOST) {
        entry_give_up(ctx, region, entry); /* region-keep-K4 */
        return;
    }
    if (!is_on(region) || trpi_entry_is_remembered(region, entry)) {
        trpi_entry_start(ctx, region, entry);
        return;
    }
    entry->state = TRPI_ENTRY_NOTING; /* region-remember-M1 */
    trp_err err = change_begin(ctx, region, entry, true);
    if (err != TRP_OK) {
        change_failed(ctx, region, entry, err, "");
    }
}

void
trpi_entry_let_go(trp_ctx *ctx, trpi_region *region, trpi_entry *entry)
{
    if (trpi_entry_has_waiting(entry)) {
        trpi_entry_begin(ctx, region, entry);
        return;
    }
    if (!trpi_entry_is_remembered(region, entry)) {
        trpi_entry_forget(region, entry);
        return;
    }
    entry->state = TRPI_ENTRY_FORGETTING;
    trp_err err = change_begin(ctx, region, entry, false);
    if (err != TRP_OK) {
        change_failed(ctx, region, entry, err, "");
    }
}

void
trpi_entry_noted(trp_ctx *ctx, trpi_region *region, uint32_t number,
                 const trpi_shard_effect *effect)
{
    const trpi_shard *shard = &region->shards[number];
    char id[TRP_ENTITY_ID_BYTES_MAX];
    size_t id_bytes = trpi_entity_unname(effect->id, id);
    trpi_entry *entry = trpi_entry_find(&shard->entries, trpi_hash(id, id_bytes, 0), id, id_bytes);
    bool add = effect->kind == TRPI_SHARD_ADD;
    if (entry == NULL || entry->state != (add ? TRPI_ENTRY_NOTING : TRPI_ENTRY_FORGETTING)) {
        return;
    }
    if (effect->err != TRP_OK) {
        change_failed(ctx, region, entry, effect->err, effect->why);
        return;
    }
    entry->state = TRPI_ENTRY_ABSENT;
    if (!add) {
        trpi_entry_let_go(ctx, region, entry);
        return;
    }
    trpi_entry_start(ctx, region, entry);
    if (shard->state == TRPI_SHARD_STOPPING && entry->state == TRPI_ENTRY_RUNNING) {
        trpi_entry_stop(ctx, region, entry); /* it was told here, and is handled here */
    }
}

/* ---- starting again -------------------------------------------------------------------------- */

void
trpi_entry_restarts_clear(trpi_region *region, trpi_entry *entry)
{
    if (entry->restarts) {
        entry->restarts = false;
        region->shards[entry->shard].restarts--;
        region->restarts--;
    }
}

/* Start what the store remembers under this name, if its entity is of this shard. false: there is
 * no memory. */
static bool
restart_mark(trpi_region *region, uint32_t number, const char *name)
{
    trpi_shard *shard = &region->shards[number];
    char id[TRP_ENTITY_ID_BYTES_MAX];
    size_t id_bytes = trpi_entity_unname(name, id);
    uint64_t hash = trpi_hash(id, id_bytes, 0);
    if (id_bytes == 0 || trpi_region_shard_of(region, hash, id, id_bytes) != number) {
        return true; /* region-remember-M5 */
    }
    trpi_entry *entry = trpi_entry_make(region, number, hash, id, id_bytes);
    if (entry == NULL) {
        region->keeps_stuck = shard->remember_again = true;
        return false;
    }
    if (entry->state == TRPI_ENTRY_ABSENT && !entry->wait->is_later && !entry->restarts) {
        entry->restarts = true;
        shard->restarts++;
        region->restarts++;
    }
    return true;
}

void
trpi_remember_open(trp_ctx *ctx, trpi_region *region, uint32_t number)
{
    const trpi_shard_store *store = is_on(region) ? store_of(region, number) : NULL;
    uint32_t position = 0;
    const char *name;
    while (store != NULL && (name = trpi_shard_store_entity(store, &position)) != NULL &&
           restart_mark(region, number, name)) {
    }
    trpi_remember_go_on(ctx, region);
    region->mover->open(ctx, region, number);
}

/* An entity has recovered, or has ended before. Any thread. */
static void
restart_over(void *arg)
{
    trpi_region *region = arg;
    uint64_t left = atomic_fetch_sub(&region->restarting_bytes, region->restart_cost);
    if (left - region->restart_cost > RESTARTING_BYTES_MAX / 2 ||
        !atomic_exchange(&region->restart_waits, false) ||
        atomic_load_explicit(&region->closed, memory_order_acquire)) {
        return;
    }
    trp_ctx *ctx = trpi_enter(region->system);
    trpi_region_order(ctx, region, TRPI_REQUEST_RESTART, 0, 0, NULL);
    trpi_leave(ctx);
}

static void
restart_reached(trp_ctx *ctx, void *arg)
{
    (void)ctx;
    restart_over(arg);
}

/* Start it, and learn when it has recovered. */
static void
entry_restart(trp_ctx *ctx, trpi_region *region, trpi_entry *entry)
{
    trp_msg *behind;
    trpi_entry_begin(ctx, region, entry);
    if (entry->state == TRPI_ENTRY_RUNNING &&
        trpi_behaviour_is_persistent(region->options.behaviour) &&
        trpi_behind_new(restart_reached, restart_over, region, &behind) == TRP_OK) {
        trp_ref ref = trpi_entry_ref(entry);
        atomic_fetch_add(&region->restarting_bytes, region->restart_cost);
        trpi_send(ctx, ref, behind);
    }
}

/* Return the next entry that restarts; NULL: the shard has none. */
static trpi_entry *
restart_next(trpi_shard *shard)
{
    uint32_t places = trpi_entry_places(&shard->entries);
    if (places != shard->restart_places) { /* another table */
        shard->restart_places = places;
        shard->restart_place = 0;
    }
    for (uint32_t i = 0; shard->restarts > 0 && i < places; i++) {
        shard->restart_place = shard->restart_place < places ? shard->restart_place : 0;
        trpi_entry *entry = trpi_entry_at(&shard->entries, shard->restart_place++);
        if (entry != NULL && entry->restarts) {
            return entry;
        }
    }
    return NULL;
}

void
trpi_remember_go_on(trp_ctx *ctx, trpi_region *region)
{
    uint64_t turn_bytes = 0;
    uint32_t without = 0; /* shards in a row that are not here, or have none */
    while (region->restarts > 0 && turn_bytes < TURN_BYTES_MAX &&
           without < region->options.shards) {
        trpi_shard *shard = &region->shards[region->restart_shard];
        trpi_entry *entry = shard->state == TRPI_SHARD_OWN ? restart_next(shard) : NULL;
        if (entry == NULL) {
            without++;
            region->restart_shard = (region->restart_shard + 1) % region->options.shards;
            continue;
        }
        atomic_store(&region->restart_waits, true); /* before the look */
        if (atomic_load(&region->restarting_bytes) >= RESTARTING_BYTES_MAX) {
            shard->restart_place--; /* region-remember-M3 */
            trpi_shard_open(ctx, region, shard);
            return;
        }
        without = 0;
        trpi_entry_restarts_clear(region, entry);
        entry_restart(ctx, region, entry);
        turn_bytes += region->restart_cost;
        trpi_shard_open(ctx, region, shard);
    }
    if (turn_bytes >= TURN_BYTES_MAX) {
        trpi_region_order(ctx, region, TRPI_REQUEST_RESTART, 0, 0, NULL);
    }
}

/* ---- orders of reminders --------------------------------------------------------------------- */

trp_type trpi_remind_tick_type = { .name = "sharding.remind", .tag = 6, .flags = TRP_TYPE_LOCAL };

/* An actor that is told when the journal has a change. */
typedef struct trpi_remind_ask {
    struct trpi_remind_ask *next, **at;
    trp_ref asker;
} trpi_remind_ask;

static void
order_answer(trp_ctx *ctx, trp_ref asker, trp_err err, const char *why)
{
    if (trp_ref_is_none(asker)) {
        return;
    }
    if (err == TRP_OK) {
        trpi_tell(ctx, asker, trp_self(ctx), &trp_reminders_type, NULL, 0);
        return;
    }
    trp_status_failure failure = { .err = (int32_t)err };
    (void)snprintf(failure.reason, sizeof failure.reason, "%s",
                   why[0] != '\0' ? why : trp_strerror(err)); /* cut is fine */
    trpi_tell(ctx, asker, trp_self(ctx), &trp_status_failure_type, &failure, sizeof failure);
}

static void
ask_free(trpi_remind_ask *ask)
{
    *ask->at = ask->next;
    if (ask->next != NULL) {
        ask->next->at = ask->at;
    }
    trpi_free(ask);
}

void
trpi_remind_asks_free(trpi_shard_keep *keep)
{
    while (keep->asks != NULL) {
        ask_free(keep->asks);
    }
}

static trpi_remind_ask *
ask_new(trpi_shard_keep *keep, trp_ref asker)
{
    trpi_remind_ask *ask = trpi_alloc(sizeof *ask);
    if (ask != NULL) {
        ask->asker = asker;
        ask->next = keep->asks;
        ask->at = &keep->asks;
        if (ask->next != NULL) {
            ask->next->at = &ask->next;
        }
        keep->asks = ask;
    }
    return ask;
}

typedef struct order_view {
    trpi_reminder_order head;
    const char *name, *type;
    const void *data;
} order_view;

/* false: it is of another node, and no order. */
static bool
order_read(const trp_msg *msg, order_view *ret)
{
    size_t bytes = trp_msg_bytes(msg);
    if (bytes < sizeof ret->head) {
        return false;
    }
    const char *at = trp_msg_payload(msg);
    memcpy(&ret->head, at, sizeof ret->head);
    const trpi_reminder_order *h = &ret->head;
    bytes -= sizeof *h;
    if (h->name_bytes == 0 || h->type_bytes == 0 ||
        (uint64_t)h->name_bytes + h->type_bytes + h->data_bytes != bytes) {
        return false;
    }
    ret->name = at + sizeof *h;
    ret->type = ret->name + h->name_bytes;
    ret->data = ret->type + h->type_bytes;
    return ret->name[h->name_bytes - 1] == '\0' && ret->type[h->type_bytes - 1] == '\0';
}

static trp_err
list_answer(trp_ctx *ctx, const trpi_shard_store *store, const char *id, trp_ref asker)
{
    trpi_buffer out = { 0 };
    const trpi_shard_reminder *r;
    uint32_t position = 0;
    trp_err err = TRP_OK;
    while (err == TRP_OK && (r = trpi_shard_store_reminder(store, id, &position)) != NULL) {
        trpi_reminder_record record = { r->due_ms, r->period_ms, (uint32_t)strlen(r->name) + 1,
                                        (uint32_t)strlen(r->type) + 1 };
        err = trpi_buffer_append(&out, &record, sizeof record, TRPI_BUFFER_NO_LIMIT);
        if (err == TRP_OK) {
            err = trpi_buffer_append(&out, r->name, record.name_bytes, TRPI_BUFFER_NO_LIMIT);
        }
        if (err == TRP_OK) {
            err = trpi_buffer_append(&out, r->type, record.type_bytes, TRPI_BUFFER_NO_LIMIT);
        }
    }
    if (err == TRP_OK) {
        trpi_tell(ctx, asker, trp_self(ctx), &trp_reminders_type, out.data, out.count);
    }
    trpi_buffer_fini(&out);
    return err;
}

/* Begin a change, or answer a list; the answer of a change comes with its effect. */
static trp_err
order_begin(trp_ctx *ctx, trpi_shard_keep *keep, const char *id, const order_view *o, trp_ref asker)
{
    if (o->head.kind == TRPI_REMINDER_LIST) {
        return list_answer(ctx, keep->store, id, asker);
    }
    bool has = trpi_shard_store_has_reminder(keep->store, id, o->name);
    if (o->head.kind == TRPI_REMINDER_CANCEL && !has) {
        return TRP_ENOENT;
    }
    bool sets = o->head.kind == TRPI_REMINDER_SET || o->head.kind == TRPI_REMINDER_MOVE;
    if ((o->head.kind == TRPI_REMINDER_MOVE && has) ||
        (o->head.kind == TRPI_REMINDER_REMEMBER && trpi_shard_store_remembers(keep->store, id))) {
        order_answer(ctx, asker, TRP_OK, ""); /* region-move-V2 */
        return TRP_OK;
    }
    if (sets && trpi_shard_store_reminders_of(keep->store, id, o->name) >= TRP_REMINDERS_MAX) {
        return TRP_ELIMIT;
    }
    trpi_remind_ask *ask = ask_new(keep, asker);
    if (ask == NULL) {
        return TRP_ENOMEM;
    }
    trpi_shard_reminder r = { .id = id,
                              .name = o->name,
                              .due_ms = o->head.due_ms,
                              .period_ms = o->head.period_ms,
                              .type = o->type,
                              .data = o->data,
                              .bytes = o->head.data_bytes };
    trp_err err = sets ? trpi_shard_store_remind(keep->store, &r, (uintptr_t)ask)
                  : o->head.kind == TRPI_REMINDER_REMEMBER
                      ? trpi_shard_store_add(keep->store, id, (uintptr_t)ask)
                  : o->head.kind == TRPI_REMINDER_CANCEL
                      ? trpi_shard_store_cancel(keep->store, id, o->name, (uintptr_t)ask)
                      : TRP_EUNSUPPORTED;
    if (err != TRP_OK) {
        ask_free(ask);
    }
    return err;
}

void
trpi_remind_order(trp_ctx *ctx, trpi_region *region, trpi_request *request)
{
    trpi_shard_keep *keep = region->shards[request->shard].keep;
    trp_ref asker = trpi_msg_sender_get(request->msg);
    char id[TRPI_ENTITY_NAME_BYTES];
    order_view o;
    trp_err err = TRP_ESTATE;
    const char *why = "entities of this type have no reminders: set reminders of its options";
    if (keep != NULL && keep->store != NULL) {
        err = !order_read(request->msg, &o)                               ? TRP_EINVAL
              : trpi_entity_name(request->id, request->id_bytes, id) == 0 ? TRP_EMSGSIZE
              : !(o.head.kind == TRPI_REMINDER_REMEMBER ? is_on(region)
                                                        : region->options.reminders != 0)
                  ? TRP_ESTATE
                  : TRP_OK;
        why = err == TRP_ESTATE ? why : "";
        if (err == TRP_OK) {
            err = order_begin(ctx, keep, id, &o, asker);
        }
        trpi_keep_go_on(ctx, keep);
    }
    if (err != TRP_OK) {
        order_answer(ctx, asker, err, why);
    }
    trpi_request_free(request);
}

/* ---- reminders that are due ------------------------------------------------------------------ */

enum {
    REMIND_MS_MAX = 1000, /* between two looks: the wall clock may jump */
    REMIND_RETRY_MS = 200
};

static uint64_t
wall_ms(const trpi_region *region)
{
    return (uint64_t)trpi_world_wall_ms(trpi_system_world(region->system));
}

static void
remind_at(trp_ctx *ctx, trpi_region *region, uint64_t at_ms)
{
    uint64_t now_ms = wall_ms(region);
    if (at_ms >= region->remind_ms) {
        return;
    }
    uint64_t delay = at_ms > now_ms ? at_ms - now_ms : 1;
    region->remind_ms = at_ms;
    if (trp_timer_once(ctx, 2, delay < REMIND_MS_MAX ? (uint32_t)delay : REMIND_MS_MAX,
                       &trpi_remind_tick_type, NULL, 0) != TRP_OK) {
        region->remind_ms = UINT64_MAX;
        region->keeps_stuck = true; /* the tick looks again */
    }
}

void
trpi_remind_wait(trp_ctx *ctx, trpi_region *region, uint32_t number)
{
    const trpi_shard_store *store = store_of(region, number);
    if (store != NULL && region->options.reminders != 0) {
        uint64_t due_ms = trpi_shard_store_next_due(store);
        if (due_ms != UINT64_MAX) {
            remind_at(ctx, region, due_ms);
        }
    }
}

/* A note that outlives the reminder's way to its entity: id and name. */
static trpi_request *
fired_new(trpi_region *region, uint32_t number, const trpi_shard_reminder *r)
{
    char texts[TRPI_SHARD_ID_BYTES_MAX + TRPI_SHARD_REMINDER_NAME_MAX + 2];
    size_t id_bytes = strlen(r->id) + 1, name_bytes = strlen(r->name) + 1;
    memcpy(texts, r->id, id_bytes);
    memcpy(texts + id_bytes, r->name, name_bytes);
    trpi_request *fired = trpi_request_new(region->system, TRPI_REQUEST_UNFIRED, NULL, texts,
                                           id_bytes + name_bytes, NULL);
    if (fired != NULL) {
        fired->region = region;
        fired->shard = number;
        fired->epoch = r->due_ms;
    }
    return fired;
}

static const char *
fired_name(const trpi_request *fired)
{
    return fired->id + strlen(fired->id) + 1;
}

/* Hand one over. false: it waits. */
static bool
reminder_hand(trp_ctx *ctx, trpi_region *region, uint32_t number, const trpi_shard_reminder *r)
{
    trpi_shard *shard = &region->shards[number];
    char id[TRP_ENTITY_ID_BYTES_MAX];
    size_t id_bytes = trpi_entity_unname(r->id, id);
    trp_msg *msg = NULL;
    trp_err err =
        id_bytes == 0 ? TRP_EDATA : trpi_stored_read(region->system, r->data, r->bytes, &msg);
    if (err != TRP_OK && err != TRP_ENOMEM) {
        trpi_log(region->system, TRP_LOG_ERROR, "sharding",
                 "reminder not told type=%s name=%s of=%s message=%s reason=\"%s\" next=\"it is "
                 "tried again when its shard is opened again\"",
                 region->name, r->name, r->id, r->type, trp_strerror(err));
        return true;
    }
    uint64_t hash = trpi_hash(id, id_bytes, 0);
    if (err == TRP_OK && trpi_region_shard_of(region, hash, id, id_bytes) != number) {
        trpi_msg_drop(msg); /* region-remember-M5: it is told there */
        return true;
    }
    trpi_request *fired = err == TRP_OK ? fired_new(region, number, r) : NULL;
    trpi_request *request = fired == NULL ? NULL
                                          : trpi_request_new(region->system, TRPI_REQUEST_MISS,
                                                             NULL, id, id_bytes, msg);
    if (request == NULL) {
        trpi_msg_drop(msg);
        trpi_request_free(fired);
        return false;
    }
    request->fired = fired;
    request->hash = hash;
    request->shard = number;
    trpi_shard_message(ctx, region, request);
    trpi_shard_open(ctx, region, shard);
    return true;
}

static void
shard_remind(trp_ctx *ctx, trpi_region *region, uint32_t number)
{
    trpi_shard_store *store = store_of(region, number);
    trpi_shard_reminder r;
    while (region->shards[number].state == TRPI_SHARD_OWN && store != NULL) {
        if (region->buffered_bytes > region->options.buffer_bytes_max / 2) {
            remind_at(ctx, region, wall_ms(region) + REMIND_RETRY_MS); /* it would be lost */
            return;
        }
        if (!trpi_shard_store_due(store, wall_ms(region), &r)) {
            break;
        }
        if (!reminder_hand(ctx, region, number, &r)) {
            trpi_shard_store_unfired(store, r.id, r.name, r.due_ms);
            remind_at(ctx, region, wall_ms(region) + REMIND_RETRY_MS);
            return;
        }
    }
    if (region->shards[number].state == TRPI_SHARD_OWN) {
        trpi_remind_wait(ctx, region, number);
    }
}

void
trpi_remind_tick(trp_ctx *ctx, trpi_region *region)
{
    trpi_request_queue unrecorded = region->unrecorded;
    trpi_request *fired;
    region->remind_ms = UINT64_MAX;
    region->unrecorded = (trpi_request_queue){ 0 };
    while ((fired = trpi_request_take(&unrecorded)) != NULL) {
        trpi_remind_fired(ctx, region, fired);
        trpi_request_free(fired);
    }
    for (uint32_t i = 0; i < region->options.shards; i++) {
        if (region->shards[i].keep != NULL) {
            shard_remind(ctx, region, i);
        }
    }
}

/* ---- told, or not ---------------------------------------------------------------------------- */

/* One that comes to another incarnation than the reminder did: that one has failed, maybe. */
static void
fired_reached(trp_ctx *ctx, void *arg)
{
    trpi_request *fired = arg;
    trpi_request_fired(fired, trp_self(ctx).generation == fired->hash ? TRPI_REQUEST_FIRED
                                                                      : TRPI_REQUEST_UNFIRED);
}

static void
fired_marked(void *arg, uint64_t number)
{
    (void)number;
    trpi_request_fired(arg, TRPI_REQUEST_FIRED);
}

void
trpi_remind_pushed(trp_ctx *ctx, trpi_region *region, const trpi_entry *entry, trpi_request *fired)
{
    trp_ref ref = trpi_entry_ref(entry);
    trp_msg *behind;
    if (fired == NULL) {
        return;
    }
    if (!trpi_behaviour_is_persistent(region->options.behaviour)) {
        trpi_mark_behind(ctx, ref.slot, ref.generation, fired_marked, fired);
        return;
    }
    fired->hash = ref.generation;
    if (trpi_behind_new(fired_reached, trpi_request_lost, fired, &behind) != TRP_OK) {
        trpi_request_lost(fired);
    } else if (!trpi_send_live(ctx, ref.slot, ref.generation, behind)) {
        trpi_msg_drop(behind); /* lost */
    }
}

void
trpi_remind_fired(trp_ctx *ctx, trpi_region *region, const trpi_request *request)
{
    trpi_shard_keep *keep = region->shards[request->shard].keep;
    const char *id = request->id, *name = fired_name(request);
    if (keep == NULL || keep->store == NULL ||
        trpi_shard_store_state_get(keep->store) != TRPI_SHARD_STORE_READY) {
        return; /* the next owner tells it again */
    }
    if (request->kind == TRPI_REQUEST_UNFIRED) {
        trpi_shard_store_unfired(keep->store, id, name, request->epoch);
        remind_at(ctx, region, wall_ms(region) + REMIND_RETRY_MS);
        return;
    }
    trp_err err = trpi_shard_store_fired(keep->store, id, name, request->epoch, wall_ms(region), 0);
    if (err == TRP_ENOMEM || err == TRP_ELIMIT) {
        trpi_shard_store_unfired(keep->store, id, name, request->epoch);
        remind_at(ctx, region, wall_ms(region) + REMIND_RETRY_MS);
    }
    trpi_keep_go_on(ctx, keep);
}

/* The journal refused to note that it was told: note it later, and do not tell it again. */
static void
unrecorded_keep(trp_ctx *ctx, trpi_shard_keep *keep, const trpi_shard_effect *effect)
{
    trpi_region *region = keep->region;
    trpi_shard_reminder r = { .id = effect->id, .name = effect->name, .due_ms = effect->due_ms };
    trpi_request *fired = fired_new(region, keep->number, &r);
    if (fired != NULL) {
        fired->kind = TRPI_REQUEST_FIRED;
        trpi_request_append(&region->unrecorded, fired);
    } else {
        trpi_shard_store_unfired(keep->store, r.id, r.name, r.due_ms);
    }
    remind_at(ctx, region, wall_ms(region) + REMIND_RETRY_MS);
}

void
trpi_remind_effect(trp_ctx *ctx, trpi_shard_keep *keep, const trpi_shard_effect *effect)
{
    trpi_remind_ask *ask = (trpi_remind_ask *)(uintptr_t)effect->token;
    if (effect->kind == TRPI_SHARD_FIRED) {
        if (effect->err != TRP_OK &&
            trpi_shard_store_state_get(keep->store) == TRPI_SHARD_STORE_READY) {
            unrecorded_keep(ctx, keep, effect);
        }
    } else if (ask != NULL) {
        order_answer(ctx, ask->asker, effect->err, effect->why);
        ask_free(ask);
    }
    if (effect->kind == TRPI_SHARD_ADD && effect->err == TRP_OK) {
        (void)restart_mark(keep->region, keep->number, effect->id); /* or at the tick */
        trpi_remember_go_on(ctx, keep->region);
    }
    trpi_remind_wait(ctx, keep->region, keep->number);
}

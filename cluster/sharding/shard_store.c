/* shard_store.c - the operations of one shard's store, in their order. See shard_store.h.
 *
 * Why.     The owner of a shard must own its records alone, find what an earlier owner has
 *          remembered, and may not believe anything that is not in the journal.
 * States.  CLAIM -> SNAPSHOT (an older one, while one cannot be read) -> EVENTS (in parts) -> READY
 *          READY: APPEND of what is queued; each snapshot_every of them SAVE -> DELETE events up to
 *          the snapshot before -> PRUNE what is older than that one. LOST from anywhere.
 * Must hold.
 *   shard-store-K1  At most one operation is under way.
 *   shard-store-K2  What memory holds is in the journal: a change is carried out when its append is
 *                   done, and in the order of the calls.
 *   shard-store-K3  Each change has one effect, also when the store is lost.
 *   shard-store-K4  bytes + reserved_bytes <= bytes_max.
 *   shard-store-K5  Events are deleted only up to a snapshot that a newer one follows: if that one
 *                   cannot be read, the one before and its events can.
 *   shard-store-K6  The heap of reminders has the next one first.
 * Tests.   tests/unit/cluster/shard_store_test.c
 */
#include "cluster/sharding/shard_store.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/sharding/shard_memory.h"

typedef enum store_step {
    STEP_CLAIM,
    STEP_SNAPSHOT,
    STEP_EVENTS,
    STEP_APPEND, /* READY: so, or one of the next four */
    STEP_SAVE,
    STEP_DELETE,
    STEP_PRUNE,
    STEP_PROBE,
    STEP_LOST
} store_step;

typedef struct change_list {
    trpi_shard_change *first, **end;
} change_list;

struct trpi_shard_store {
    store_step step;
    bool under_way;
    bool memory_wanted;
    bool probe_wanted;
    uint32_t snapshot_every, appends; /* since the snapshot */
    uint64_t bytes_max, epoch;
    uint64_t number;          /* of the last event in the journal */
    uint64_t snapshot_to;     /* SNAPSHOT: those up to this; 0: no end */
    uint64_t snapshot_number; /* of the newest confirmed one; 0: none */
    uint64_t previous_number; /* of the one before */
    trp_err given_err;        /* of an item that could not be read */
    trpi_shard_memory memory;
    change_list queued;      /* not sent */
    change_list in_flight;   /* of the append under way */
    change_list finished;    /* effects */
    trpi_shard_change *told; /* the effect that the caller looks at */
    trpi_pack_writer writer; /* bytes of the operation under way */
    trp_journal_event event;
    trp_journal_op op;
    trp_err lost_err;
    char why[TRP_JOURNAL_WHY_BYTES];
    char id[TRP_JOURNAL_ID_BYTES_MAX + 1];
    char scope[TRP_JOURNAL_SCOPE_BYTES_MAX + 1];
    char writer_name[TRP_JOURNAL_WRITER_BYTES_MAX + 1];
};

/* ---- lists ----------------------------------------------------------------------------------- */

static void
list_init(change_list *list)
{
    list->first = NULL;
    list->end = &list->first;
}

static void
list_add(change_list *list, trpi_shard_change *change)
{
    change->next = NULL;
    *list->end = change;
    list->end = &change->next;
}

static trpi_shard_change *
list_take(change_list *list)
{
    trpi_shard_change *change = list->first;

    if (change != NULL) {
        list->first = change->next;
        if (list->first == NULL) {
            list->end = &list->first;
        }
        change->next = NULL;
    }
    return change;
}

static void
list_free(change_list *list)
{
    trpi_shard_change *change = NULL;

    while ((change = list_take(list)) != NULL) {
        trpi_shard_change_free(change);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

static trp_err
names_make(trpi_shard_store *store, const trpi_shard_store_options *options)
{
    int bytes = 0;

    if (options->type == NULL || options->type[0] == '\0' || options->writer == NULL ||
        options->writer[0] == '\0' || strlen(options->writer) > TRP_JOURNAL_WRITER_BYTES_MAX) {
        return TRP_EINVAL;
    }
    bytes = snprintf(store->id, sizeof store->id, "/sharding/%s/%u", options->type, options->shard);
    if (bytes < 0 || (size_t)bytes >= sizeof store->id) {
        return TRP_EINVAL;
    }
    (void)snprintf(store->scope, sizeof store->scope, "%s", store->id + 1);
    memcpy(store->writer_name, options->writer, strlen(options->writer) + 1);
    return TRP_OK;
}

trp_err
trpi_shard_store_new(const trpi_shard_store_options *options, trpi_shard_store **ret_store)
{
    trpi_shard_store *store = NULL;
    trp_err err = TRP_OK;

    if (options->bytes_max > TRPI_SHARD_STORE_BYTES_MAX) {
        return TRP_EINVAL;
    }
    store = trpi_alloc(sizeof *store);
    if (store == NULL) {
        return TRP_ENOMEM;
    }
    err = names_make(store, options);
    if (err != TRP_OK) {
        trpi_free(store);
        return err;
    }
    store->memory_wanted = options->memory;
    store->snapshot_every = options->snapshot_every != 0 ? options->snapshot_every
                                                         : TRPI_SHARD_STORE_SNAPSHOT_EVERY_DEFAULT;
    store->bytes_max = options->bytes_max != 0 ? options->bytes_max : TRPI_SHARD_STORE_BYTES_MAX;
    list_init(&store->queued);
    list_init(&store->in_flight);
    list_init(&store->finished);
    *ret_store = store;
    return TRP_OK;
}

void
trpi_shard_store_free(trpi_shard_store *store)
{
    if (store != NULL) {
        trpi_assert(!store->under_way);
        list_free(&store->queued);
        list_free(&store->in_flight);
        list_free(&store->finished);
        trpi_shard_change_free(store->told);
        trpi_shard_memory_clear(&store->memory);
        trpi_buffer_fini(&store->writer.buffer);
        trpi_free(store);
    }
}

/* ---- its end --------------------------------------------------------------------------------- */

static void
changes_fail(trpi_shard_store *store, change_list *list, trp_err err)
{
    trpi_shard_change *change = NULL;

    while ((change = list_take(list)) != NULL) {
        trpi_shard_change_drop(&store->memory, change);
        change->err = err;
        list_add(&store->finished, change);
    }
}

static void
store_lose(trpi_shard_store *store, trp_err err, const char *why)
{
    store->step = STEP_LOST;
    store->lost_err = err;
    if (why != store->why) {
        (void)snprintf(store->why, sizeof store->why, "%s", why);
    }
    changes_fail(store, &store->in_flight, err);
    changes_fail(store, &store->queued, err);
}

/* ---- reading --------------------------------------------------------------------------------- */

static trpi_shard_store *
store_of(trp_journal_op *op)
{
    return (trpi_shard_store *)((char *)op - offsetof(trpi_shard_store, op));
}

/* Whether item is what this version reads; else the reason is kept. */
static bool
item_is(trpi_shard_store *store, const trp_journal_event *item, const char *type)
{
    if (strcmp(item->type, type) == 0 && item->version == TRPI_SHARD_STORE_VERSION) {
        return true;
    }
    (void)snprintf(store->why, sizeof store->why,
                   "%s number %llu has the type %s of version %u, and this version of Troupe reads "
                   "%s of version %u: run the version that wrote it",
                   store->id, (unsigned long long)item->number, item->type, item->version, type,
                   TRPI_SHARD_STORE_VERSION);
    return false;
}

static void
item_failed(trpi_shard_store *store, const trp_journal_event *item, trp_err err)
{
    store->given_err = err;
    if (err == TRP_ENOMEM) {
        (void)snprintf(store->why, sizeof store->why, "out of memory while %s is read", store->id);
    } else if (store->why[0] == '\0') {
        (void)snprintf(store->why, sizeof store->why,
                       "%s number %llu of type %s cannot be read: %s", store->id,
                       (unsigned long long)item->number, item->type, trp_err_name(err));
    }
}

/* One snapshot, or none. An unreadable one is not the end: an older one may be readable. */
static trp_err
snapshot_given(trp_journal_op *op, const trp_journal_event *item)
{
    trpi_shard_store *store = store_of(op);
    trp_err err = TRP_EDATA;

    store->number = item->number;
    if (item_is(store, item, TRPI_SHARD_STORE_SNAPSHOT)) {
        err = trpi_shard_memory_decode(&store->memory, item->data, item->bytes, store->bytes_max);
    }
    if (err != TRP_OK) {
        item_failed(store, item, err);
    }
    return TRP_OK;
}

static trp_err
event_given(trp_journal_op *op, const trp_journal_event *item)
{
    trpi_shard_store *store = store_of(op);
    trp_err err = TRP_EDATA;

    if (item->number != store->number + 1) {
        (void)snprintf(store->why, sizeof store->why,
                       "%s lacks the events %llu to %llu: restore the journal from a backup",
                       store->id, (unsigned long long)store->number + 1,
                       (unsigned long long)item->number - 1);
    } else if (item_is(store, item, TRPI_SHARD_STORE_TYPE)) {
        err = trpi_shard_changes_decode(&store->memory, item->data, item->bytes, store->bytes_max);
    }
    if (err == TRP_OK) {
        store->number = item->number;
        store->appends++;
    } else {
        item_failed(store, item, err);
    }
    return err;
}

/* Try the snapshot before the one that could not be read, or the events from the first one. */
static void
snapshot_answered(trpi_shard_store *store)
{
    if (store->given_err == TRP_ENOMEM) {
        store_lose(store, TRP_ENOMEM, store->why);
        return;
    }
    store->step = STEP_EVENTS;
    if (store->given_err != TRP_OK) {
        trpi_shard_memory_clear(&store->memory);
        store->snapshot_to = store->number - 1;
        store->step = store->snapshot_to != 0 ? STEP_SNAPSHOT : STEP_EVENTS;
        store->number = 0;
        store->given_err = TRP_OK;
        store->why[0] = '\0';
    } else if (store->number != 0) {
        store->snapshot_number = store->number;
    }
}

static void
events_answered(trpi_shard_store *store)
{
    char why[TRP_JOURNAL_WHY_BYTES];

    if (store->op.ret_more != 0) {
        return; /* the next part */
    }
    if (store->op.ret_number != store->number) {
        (void)snprintf(why, sizeof why,
                       "%s has had events up to number %llu, of which those behind number %llu are "
                       "neither there nor in a snapshot that can be read: restore the journal from "
                       "a backup",
                       store->id, (unsigned long long)store->op.ret_number,
                       (unsigned long long)store->number);
        store_lose(store, TRP_EDATA, why);
        return;
    }
    store->step = STEP_APPEND;
}

/* ---- the next operation ---------------------------------------------------------------------- */

static void
op_begin(trpi_shard_store *store, trp_journal_kind kind)
{
    trp_journal_op *op = &store->op;

    *op = (trp_journal_op)TRP_JOURNAL_OP_INIT;
    op->kind = kind;
    op->id = store->id;
    op->scope = store->scope;
    op->epoch = store->epoch;
}

static void
event_begin(trpi_shard_store *store, const char *type, uint64_t wall_ms)
{
    store->event = (trp_journal_event){ .type = type,
                                        .version = TRPI_SHARD_STORE_VERSION,
                                        .time_ms = wall_ms,
                                        .data = store->writer.buffer.data,
                                        .bytes = store->writer.buffer.count };
    store->op.events = &store->event;
    store->op.events_count = 1;
}

static void
writer_begin(trpi_shard_store *store)
{
    trpi_buffer_clear(&store->writer.buffer);
    store->writer.err = TRP_OK;
}

/* false: there is nothing to append. Without memory the changes are refused. */
static bool
append_begin(trpi_shard_store *store, uint64_t wall_ms)
{
    uint32_t count = 0;

    if (store->queued.first == NULL) {
        return false;
    }
    writer_begin(store);
    count = trpi_shard_changes_encode(&store->writer, store->queued.first);
    while (count-- > 0) {
        list_add(&store->in_flight, list_take(&store->queued));
    }
    if (store->writer.err != TRP_OK) {
        changes_fail(store, &store->in_flight, store->writer.err);
        return false;
    }
    op_begin(store, TRP_JOURNAL_APPEND);
    store->op.from = store->number + 1;
    event_begin(store, TRPI_SHARD_STORE_TYPE, wall_ms);
    return true;
}

/* false: there is no memory, and it is tried again later. */
static bool
save_begin(trpi_shard_store *store, uint64_t wall_ms)
{
    writer_begin(store);
    trpi_shard_memory_encode(&store->writer, &store->memory);
    store->appends = 0;
    if (store->writer.err != TRP_OK) {
        return false;
    }
    op_begin(store, TRP_JOURNAL_SNAPSHOT_SAVE);
    event_begin(store, TRPI_SHARD_STORE_SNAPSHOT, wall_ms);
    store->event.number = store->number;
    store->step = STEP_SAVE;
    return true;
}

static bool
ready_begin(trpi_shard_store *store, uint64_t wall_ms)
{
    if (store->step == STEP_DELETE) {
        op_begin(store, TRP_JOURNAL_DELETE);
        store->op.to = store->previous_number;
        return true;
    }
    if (store->step == STEP_PRUNE) {
        op_begin(store, TRP_JOURNAL_SNAPSHOT_DELETE);
        store->op.to = store->previous_number - 1;
        return true;
    }
    if (store->probe_wanted) { /* delete the first snapshot if it is not among the newest: never */
        store->probe_wanted = false;
        op_begin(store, TRP_JOURNAL_SNAPSHOT_DELETE);
        store->op.to = 1;
        store->op.keep = UINT32_MAX;
        store->step = STEP_PROBE;
        return true;
    }
    if (store->appends >= store->snapshot_every && save_begin(store, wall_ms)) {
        return true;
    }
    return append_begin(store, wall_ms);
}

trp_journal_op *
trpi_shard_store_next(trpi_shard_store *store, uint64_t wall_ms)
{
    if (store->under_way) {
        return NULL;
    }
    switch (store->step) {
    case STEP_CLAIM:
        op_begin(store, TRP_JOURNAL_CLAIM);
        store->op.id = NULL;
        store->op.writer = store->writer_name;
        break;
    case STEP_SNAPSHOT:
        op_begin(store, TRP_JOURNAL_SNAPSHOT_LOAD);
        store->op.to = store->snapshot_to;
        store->op.give = snapshot_given;
        break;
    case STEP_EVENTS:
        op_begin(store, TRP_JOURNAL_EVENTS);
        store->op.from = store->number + 1;
        store->op.give = event_given;
        break;
    case STEP_LOST:
        return NULL;
    default:
        if (!ready_begin(store, wall_ms)) {
            return NULL;
        }
        break;
    }
    store->under_way = true;
    return &store->op;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void
append_answered(trpi_shard_store *store)
{
    trpi_shard_change *change = NULL;

    store->number++;
    store->appends++;
    while ((change = list_take(&store->in_flight)) != NULL) {
        trpi_shard_change_apply(&store->memory, change);
        list_add(&store->finished, change);
    }
}

static void
done_answered(trpi_shard_store *store)
{
    switch (store->step) {
    case STEP_CLAIM:
        store->epoch = store->op.ret_epoch;
        store->step = store->memory_wanted ? STEP_SNAPSHOT : STEP_APPEND;
        break;
    case STEP_SNAPSHOT:
        snapshot_answered(store);
        break;
    case STEP_EVENTS:
        events_answered(store);
        break;
    case STEP_APPEND:
        append_answered(store);
        break;
    case STEP_SAVE:
        store->previous_number = store->snapshot_number;
        store->snapshot_number = store->number;
        store->step = store->previous_number != 0 ? STEP_DELETE : STEP_APPEND;
        break;
    case STEP_DELETE:
        store->step = store->previous_number > 1 ? STEP_PRUNE : STEP_APPEND;
        break;
    default:
        store->step = STEP_APPEND;
        break;
    }
}

/* A refused append has changed nothing. Snapshots and deletions only save room: they wait for the
 * next time. A store that was fenced has another owner. */
static void
not_done_answered(trpi_shard_store *store)
{
    const trp_journal_op *op = &store->op;
    const bool fenced = op->outcome == TRP_JOURNAL_REFUSED && op->err == TRP_EFENCED;

    if (store->step >= STEP_SAVE && !fenced) {
        store->step = STEP_APPEND;
    } else if (store->step == STEP_APPEND && op->outcome == TRP_JOURNAL_REFUSED && !fenced) {
        (void)snprintf(store->why, sizeof store->why, "%s", op->why);
        changes_fail(store, &store->in_flight, op->err);
    } else {
        store_lose(store, op->err,
                   store->given_err != TRP_OK && store->why[0] != '\0' ? store->why : op->why);
    }
}

void
trpi_shard_store_answered(trpi_shard_store *store, trp_journal_op *op)
{
    trpi_assert(store->under_way && op == &store->op); /* shard-store-K1 */
    store->under_way = false;
    if (op->outcome == TRP_JOURNAL_DONE) {
        done_answered(store);
    } else {
        not_done_answered(store);
    }
    trpi_assert_check(trpi_shard_store_check, store);
}

/* ---- changes --------------------------------------------------------------------------------- */

static trp_err
change_queue(trpi_shard_store *store, trpi_shard_change_kind kind, const trpi_shard_reminder *of,
             uint64_t token, trpi_shard_change **ret_change)
{
    trpi_shard_change *change = NULL;
    trp_err err = TRP_ESTATE;
    if (trpi_shard_store_state_get(store) == TRPI_SHARD_STORE_READY && store->memory_wanted) {
        err = trpi_shard_change_new(&store->memory, kind, of, store->bytes_max, &change);
    }
    if (err == TRP_OK) {
        change->token = token;
        list_add(&store->queued, change);
        *ret_change = change;
    }
    return err;
}

trp_err
trpi_shard_store_add(trpi_shard_store *store, const char *id, uint64_t token)
{
    const trpi_shard_reminder of = { .id = id };
    trpi_shard_change *change = NULL;
    return change_queue(store, TRPI_SHARD_ADD, &of, token, &change);
}

trp_err
trpi_shard_store_remove(trpi_shard_store *store, const char *id, uint64_t token)
{
    const trpi_shard_reminder of = { .id = id };
    trpi_shard_change *change = NULL;
    return change_queue(store, TRPI_SHARD_REMOVE, &of, token, &change);
}

trp_err
trpi_shard_store_remind(trpi_shard_store *store, const trpi_shard_reminder *reminder,
                        uint64_t token)
{
    trpi_shard_change *change = NULL;
    return change_queue(store, TRPI_SHARD_REMIND, reminder, token, &change);
}

trp_err
trpi_shard_store_cancel(trpi_shard_store *store, const char *id, const char *name, uint64_t token)
{
    const trpi_shard_reminder of = { .id = id, .name = name };
    trpi_shard_change *change = NULL;
    return change_queue(store, TRPI_SHARD_CANCEL, &of, token, &change);
}

/* The first time behind now; 0: none. */
static uint64_t
due_behind(uint64_t due_ms, uint64_t period_ms, uint64_t now_ms)
{
    uint64_t missed = 0;
    if (period_ms == 0) {
        return 0;
    }
    missed = now_ms > due_ms ? (now_ms - due_ms) / period_ms : 0;
    return missed >= (UINT64_MAX - due_ms) / period_ms ? 0 : due_ms + (missed + 1) * period_ms;
}

trp_err
trpi_shard_store_fired(trpi_shard_store *store, const char *id, const char *name, uint64_t due_ms,
                       uint64_t wall_ms, uint64_t token)
{
    const trpi_shard_reminder of = { .id = id, .name = name };
    const trpi_shard_alarm *alarm = NULL;
    trpi_shard_change *change = NULL;
    trp_err err = TRP_OK;
    if (id == NULL || name == NULL) {
        return TRP_EINVAL;
    }
    alarm = trpi_shard_memory_alarm(&store->memory, id, name);
    if (alarm == NULL || alarm->of.due_ms != due_ms) {
        return TRP_ENOENT;
    }
    err = change_queue(store, TRPI_SHARD_FIRED, &of, token, &change);
    if (err == TRP_OK) {
        change->due_ms = due_ms;
        change->next_ms = due_behind(due_ms, alarm->of.period_ms, wall_ms);
    }
    return err;
}

void
trpi_shard_store_probe(trpi_shard_store *store)
{
    store->probe_wanted = true;
}

bool
trpi_shard_store_probes(const trpi_shard_store *store)
{
    return store->step != STEP_LOST && (store->probe_wanted || store->step == STEP_PROBE);
}

/* ---- looks ----------------------------------------------------------------------------------- */

bool
trpi_shard_store_effect(trpi_shard_store *store, trpi_shard_effect *ret_effect)
{
    trpi_shard_change *change = list_take(&store->finished);
    trpi_shard_change_free(store->told);
    store->told = change;
    if (change == NULL) {
        return false;
    }
    *ret_effect = (trpi_shard_effect){ .kind = change->kind,
                                       .err = change->err,
                                       .token = change->token,
                                       .id = change->id,
                                       .name = change->name,
                                       .due_ms = change->due_ms,
                                       .why = change->err != TRP_OK ? store->why : "" };
    return true;
}

trpi_shard_store_state
trpi_shard_store_state_get(const trpi_shard_store *store)
{
    if (store->step == STEP_LOST) {
        return TRPI_SHARD_STORE_LOST;
    }
    return store->step >= STEP_APPEND ? TRPI_SHARD_STORE_READY : TRPI_SHARD_STORE_OPENING;
}

trp_err
trpi_shard_store_error(const trpi_shard_store *store, const char **ret_why)
{
    *ret_why = store->step == STEP_LOST ? store->why : "";
    return store->lost_err;
}

uint64_t
trpi_shard_store_epoch(const trpi_shard_store *store)
{
    return store->epoch;
}

const char *
trpi_shard_store_scope(const trpi_shard_store *store)
{
    return store->scope;
}

const char *
trpi_shard_store_entity(const trpi_shard_store *store, uint32_t *position)
{
    return trpi_shard_memory_next(&store->memory, position);
}

bool
trpi_shard_store_remembers(const trpi_shard_store *store, const char *id)
{
    return trpi_shard_memory_entity(&store->memory, id) != NULL;
}

uint32_t
trpi_shard_store_entities_count(const trpi_shard_store *store)
{
    return store->memory.entities.count;
}

uint32_t
trpi_shard_store_reminders_count(const trpi_shard_store *store)
{
    return store->memory.alarms.count;
}

uint64_t
trpi_shard_store_next_due(const trpi_shard_store *store)
{
    return store->step >= STEP_APPEND && store->step != STEP_LOST && store->memory.heap_count > 0
               ? store->memory.heap[0]->of.due_ms
               : UINT64_MAX;
}

bool
trpi_shard_store_due(trpi_shard_store *store, uint64_t wall_ms, trpi_shard_reminder *ret_reminder)
{
    if (trpi_shard_store_next_due(store) > wall_ms) {
        return false;
    }
    *ret_reminder = store->memory.heap[0]->of;
    trpi_shard_memory_hand(&store->memory, store->memory.heap[0]);
    return true;
}

void
trpi_shard_store_unfired(trpi_shard_store *store, const char *id, const char *name, uint64_t due_ms)
{
    trpi_shard_alarm *alarm = trpi_shard_memory_alarm(&store->memory, id, name);
    if (alarm != NULL && alarm->place == 0 && alarm->of.due_ms == due_ms) {
        trpi_shard_memory_unhand(&store->memory, alarm);
    }
}

const trpi_shard_reminder *
trpi_shard_store_reminder(const trpi_shard_store *store, const char *id, uint32_t *position)
{
    const trpi_shard_alarm *alarm = NULL;
    do {
        alarm = trpi_shard_memory_next_alarm(&store->memory, position);
    } while (alarm != NULL && id != NULL && strcmp(alarm->of.id, id) != 0);
    return alarm == NULL ? NULL : &alarm->of;
}

uint32_t
trpi_shard_store_reminders_of(const trpi_shard_store *store, const char *id, const char *name)
{
    uint32_t position = 0;
    uint32_t count = trpi_shard_changes_reminds(store->queued.first, id, name) +
                     trpi_shard_changes_reminds(store->in_flight.first, id, name);
    const trpi_shard_reminder *reminder = NULL;
    while ((reminder = trpi_shard_store_reminder(store, id, &position)) != NULL) {
        count += strcmp(reminder->name, name) != 0;
    }
    return count;
}

bool
trpi_shard_store_has_reminder(const trpi_shard_store *store, const char *id, const char *name)
{
    const trpi_shard_change *last = trpi_shard_changes_last(store->queued.first, id, name);
    last = last == NULL ? trpi_shard_changes_last(store->in_flight.first, id, name) : last;
    return last != NULL ? last->kind == TRPI_SHARD_REMIND
                        : trpi_shard_memory_alarm(&store->memory, id, name) != NULL;
}

const char *
trpi_shard_store_check(const trpi_shard_store *store, trpi_check *check)
{
    const trpi_shard_memory *memory = &store->memory;
    if (memory->bytes + memory->reserved_bytes > store->bytes_max) {
        return trpi_check_broken(check, "shard-store-K4: %llu bytes of %llu",
                                 (unsigned long long)(memory->bytes + memory->reserved_bytes),
                                 (unsigned long long)store->bytes_max);
    }
    if (store->in_flight.first != NULL && !store->under_way) {
        return trpi_check_broken(check, "shard-store-K3: changes in flight, and no operation");
    }
    if (store->previous_number > store->snapshot_number) {
        return trpi_check_broken(check, "shard-store-K5: snapshot %llu before %llu",
                                 (unsigned long long)store->snapshot_number,
                                 (unsigned long long)store->previous_number);
    }
    for (uint32_t i = 1; i < memory->heap_count; i++) {
        if (memory->heap[i]->of.due_ms < memory->heap[(i + 1) / 2 - 1]->of.due_ms ||
            memory->heap[i]->place != i + 1) {
            return trpi_check_broken(check, "shard-store-K6: the reminder %u is out of order", i);
        }
    }
    return NULL;
}

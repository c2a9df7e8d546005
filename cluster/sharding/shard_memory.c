/* shard_memory.c - entities and reminders of one shard. See shard_memory.h.
 *
 * Shape.   entities: a table by id. Reminders: a table by (id, name), and a heap by time of those
 *          that have not been handed over.
 * Limits.  trpi_shard_store_options.bytes_max: ids, reminders and COST each; changes that are not
 *          carried out yet count as if they were.
 * Tests.   tests/unit/cluster/shard_store_test.c
 */
#include "cluster/sharding/shard_memory.h"

#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/hash.h"

#define COST                                                                                       \
    64u                        /* of an entity or reminder, beside its texts and data: what it takes
                                    encoded, and more */
#define GROUP_BYTES (1u << 20) /* of one event, but for its last change */
#define ENCODED_MAX (TRPI_PACK_BYTES_MAX - 1)

_Static_assert(TRPI_SHARD_STORE_BYTES_MAX < ENCODED_MAX, "a snapshot can be read");
_Static_assert(GROUP_BYTES + TRPI_SHARD_REMINDER_BYTES_MAX + 1024 < ENCODED_MAX,
               "an event can be read");

/* ---- tables ---------------------------------------------------------------------------------- */

static uint64_t
alarm_hash(const char *id, const char *name)
{
    return trpi_hash(name, strlen(name), trpi_hash_text(id));
}

static uint64_t
entity_hash_of(const void *arg, const void *element)
{
    (void)arg;
    return (*(trpi_shard_entity *const *)element)->hash;
}

static bool
entity_is(const void *arg, const void *element, const void *key)
{
    (void)arg;
    return strcmp((*(trpi_shard_entity *const *)element)->id, key) == 0;
}

static uint64_t
alarm_hash_of(const void *arg, const void *element)
{
    (void)arg;
    return (*(trpi_shard_alarm *const *)element)->hash;
}

static bool
alarm_is(const void *arg, const void *element, const void *key)
{
    const trpi_shard_alarm *alarm = *(trpi_shard_alarm *const *)element;
    const trpi_shard_reminder *wanted = key;

    (void)arg;
    return strcmp(alarm->of.id, wanted->id) == 0 && strcmp(alarm->of.name, wanted->name) == 0;
}

static const trpi_table_kind entity_kind = { sizeof(trpi_shard_entity *),
                                             trpi_table_pointer_is_empty, entity_hash_of,
                                             entity_is };
static const trpi_table_kind alarm_kind = { sizeof(trpi_shard_alarm *), trpi_table_pointer_is_empty,
                                            alarm_hash_of, alarm_is };

static trpi_shard_entity **
entity_place(const trpi_shard_memory *memory, const char *id)
{
    return trpi_table_find(&entity_kind, &memory->entities, NULL, trpi_hash_text(id), id);
}

static trpi_shard_alarm **
alarm_place(const trpi_shard_memory *memory, const char *id, const char *name)
{
    const trpi_shard_reminder key = { .id = id, .name = name };

    return trpi_table_find(&alarm_kind, &memory->alarms, NULL, alarm_hash(id, name), &key);
}

trpi_shard_entity *
trpi_shard_memory_entity(const trpi_shard_memory *memory, const char *id)
{
    trpi_shard_entity **place = entity_place(memory, id);

    return place != NULL ? *place : NULL;
}

trpi_shard_alarm *
trpi_shard_memory_alarm(const trpi_shard_memory *memory, const char *id, const char *name)
{
    trpi_shard_alarm **place = alarm_place(memory, id, name);

    return place != NULL ? *place : NULL;
}

const char *
trpi_shard_memory_next(const trpi_shard_memory *memory, uint32_t *position)
{
    trpi_shard_entity **entity = trpi_table_next(&entity_kind, &memory->entities, position);

    return entity != NULL ? (*entity)->id : NULL;
}

/* ---- the heap -------------------------------------------------------------------------------- */

static void
heap_put(trpi_shard_memory *memory, uint32_t place, trpi_shard_alarm *alarm)
{
    memory->heap[place - 1] = alarm;
    alarm->place = place;
}

static void
heap_up(trpi_shard_memory *memory, uint32_t place, trpi_shard_alarm *alarm)
{
    while (place > 1 && memory->heap[place / 2 - 1]->of.due_ms > alarm->of.due_ms) {
        heap_put(memory, place, memory->heap[place / 2 - 1]);
        place /= 2;
    }
    heap_put(memory, place, alarm);
}

static void
heap_down(trpi_shard_memory *memory, uint32_t place, trpi_shard_alarm *alarm)
{
    for (;;) {
        uint32_t child = place * 2;

        if (child > memory->heap_count) {
            break;
        }
        if (child < memory->heap_count &&
            memory->heap[child]->of.due_ms < memory->heap[child - 1]->of.due_ms) {
            child++;
        }
        if (memory->heap[child - 1]->of.due_ms >= alarm->of.due_ms) {
            break;
        }
        heap_put(memory, place, memory->heap[child - 1]);
        place = child;
    }
    heap_put(memory, place, alarm);
}

static void
heap_add(trpi_shard_memory *memory, trpi_shard_alarm *alarm)
{
    trpi_assert(memory->heap_count < memory->heap_room); /* reserved by the change */
    memory->heap_count++;
    heap_up(memory, memory->heap_count, alarm);
}

void
trpi_shard_memory_hand(trpi_shard_memory *memory, trpi_shard_alarm *alarm)
{
    uint32_t place = alarm->place;
    trpi_shard_alarm *last = NULL;

    if (place == 0) {
        return;
    }
    trpi_assert(place <= memory->heap_count);
    last = memory->heap[--memory->heap_count];
    alarm->place = 0;
    if (last != alarm) {
        if (place > 1 && memory->heap[place / 2 - 1]->of.due_ms > last->of.due_ms) {
            heap_up(memory, place, last);
        } else {
            heap_down(memory, place, last);
        }
    }
}

void
trpi_shard_memory_unhand(trpi_shard_memory *memory, trpi_shard_alarm *alarm)
{
    trpi_assert(alarm->place == 0);
    heap_add(memory, alarm); /* its place is reserved while it is in the table */
}

const trpi_shard_alarm *
trpi_shard_memory_next_alarm(const trpi_shard_memory *memory, uint32_t *position)
{
    trpi_shard_alarm **alarm = trpi_table_next(&alarm_kind, &memory->alarms, position);

    return alarm != NULL ? *alarm : NULL;
}

/* ---- changes --------------------------------------------------------------------------------- */

static trp_err
text_check(const char *text, size_t bytes_max)
{
    return text != NULL && text[0] != '\0' && strnlen(text, bytes_max + 1) <= bytes_max
               ? TRP_OK
               : TRP_EINVAL;
}

static trp_err
change_check(trpi_shard_change_kind kind, const trpi_shard_reminder *of)
{
    trp_err err = text_check(of->id, TRPI_SHARD_ID_BYTES_MAX);

    if (err == TRP_OK && kind >= TRPI_SHARD_REMIND) {
        err = text_check(of->name, TRPI_SHARD_REMINDER_NAME_MAX);
    }
    if (err == TRP_OK && kind == TRPI_SHARD_REMIND) {
        err = text_check(of->type, TRP_JOURNAL_TYPE_BYTES_MAX);
        if (err == TRP_OK && of->bytes > TRPI_SHARD_REMINDER_BYTES_MAX) {
            err = TRP_EMSGSIZE;
        }
    }
    return err;
}

static char *
text_put(char **end, const char *text)
{
    char *begin = *end;
    size_t bytes = strlen(text) + 1;

    memcpy(begin, text, bytes);
    *end += bytes;
    return begin;
}

static trpi_shard_alarm *
alarm_new(const trpi_shard_reminder *of)
{
    trpi_shard_alarm *alarm = trpi_alloc(sizeof *alarm + strlen(of->id) + strlen(of->name) +
                                         strlen(of->type) + 3 + of->bytes);

    if (alarm != NULL) {
        char *end = (char *)(alarm + 1);

        alarm->of = *of;
        alarm->of.id = text_put(&end, of->id);
        alarm->of.name = text_put(&end, of->name);
        alarm->of.type = text_put(&end, of->type);
        alarm->of.data = end;
        if (of->bytes != 0) {
            memcpy(end, of->data, of->bytes);
        }
        alarm->hash = alarm_hash(of->id, of->name);
    }
    return alarm;
}

static trp_err
change_reserve(trpi_shard_memory *memory, trpi_shard_change *change, const trpi_shard_reminder *of,
               uint64_t bytes_max)
{
    trp_err err = TRP_OK;

    if (memory->bytes + memory->reserved_bytes + change->bytes > bytes_max) {
        return TRP_ELIMIT;
    }
    if (change->kind == TRPI_SHARD_ADD) {
        err = trpi_table_reserve(&entity_kind, &memory->entities, NULL,
                                 memory->entities.count + memory->adds + 1);
        change->entity = trpi_alloc(sizeof *change->entity + strlen(of->id) + 1);
        if (err == TRP_OK && change->entity != NULL) {
            change->entity->hash = trpi_hash_text(of->id);
            memcpy(change->entity->id, of->id, strlen(of->id) + 1);
        }
        err = change->entity == NULL ? TRP_ENOMEM : err;
    } else if (change->kind == TRPI_SHARD_REMIND) {
        uint32_t most = memory->alarms.count + memory->reminds + 1;

        err = trpi_table_reserve(&alarm_kind, &memory->alarms, NULL, most);
        if (err == TRP_OK) {
            err = TRPI_ARRAY_RESERVE(memory, heap, most - memory->heap_count, TRPI_ARRAY_NO_LIMIT);
        }
        change->alarm = alarm_new(of);
        err = change->alarm == NULL ? TRP_ENOMEM : err;
        if (err == TRP_OK) {
            change->alarm->bytes = change->bytes;
        }
    }
    return err;
}

trp_err
trpi_shard_change_new(trpi_shard_memory *memory, trpi_shard_change_kind kind,
                      const trpi_shard_reminder *of, uint64_t bytes_max,
                      trpi_shard_change **ret_change)
{
    trp_err err = change_check(kind, of);
    const char *name = kind >= TRPI_SHARD_REMIND ? of->name : "";
    trpi_shard_change *change = NULL;

    if (err != TRP_OK) {
        return err;
    }
    change = trpi_alloc(sizeof *change + strlen(of->id) + strlen(name) + 2);
    if (change == NULL) {
        return TRP_ENOMEM;
    }
    char *end = change->texts;

    change->kind = kind;
    change->id = text_put(&end, of->id);
    change->name = text_put(&end, name);
    if (kind == TRPI_SHARD_ADD) {
        change->bytes = COST + strlen(of->id);
    } else if (kind == TRPI_SHARD_REMIND) {
        change->bytes = COST + strlen(of->id) + strlen(name) + strlen(of->type) + of->bytes;
    }
    err = change_reserve(memory, change, of, bytes_max);
    if (err != TRP_OK) {
        trpi_shard_change_free(change);
        return err;
    }
    memory->adds += kind == TRPI_SHARD_ADD;
    memory->reminds += kind == TRPI_SHARD_REMIND;
    memory->reserved_bytes += change->bytes;
    *ret_change = change;
    return TRP_OK;
}

void
trpi_shard_change_free(trpi_shard_change *change)
{
    if (change != NULL) {
        trpi_free(change->entity);
        trpi_free(change->alarm);
        trpi_free(change);
    }
}

void
trpi_shard_change_drop(trpi_shard_memory *memory, trpi_shard_change *change)
{
    memory->adds -= change->kind == TRPI_SHARD_ADD;
    memory->reminds -= change->kind == TRPI_SHARD_REMIND;
    memory->reserved_bytes -= change->bytes;
    change->bytes = 0;
}

uint32_t
trpi_shard_changes_reminds(const trpi_shard_change *first, const char *id, const char *name)
{
    uint32_t count = 0;

    for (const trpi_shard_change *change = first; change != NULL; change = change->next) {
        count += change->kind == TRPI_SHARD_REMIND && strcmp(change->id, id) == 0 &&
                 strcmp(change->name, name) != 0;
    }
    return count;
}

const trpi_shard_change *
trpi_shard_changes_last(const trpi_shard_change *first, const char *id, const char *name)
{
    const trpi_shard_change *last = NULL;

    for (const trpi_shard_change *change = first; change != NULL; change = change->next) {
        bool sets = change->kind == TRPI_SHARD_REMIND || change->kind == TRPI_SHARD_CANCEL;

        if (sets && strcmp(change->id, id) == 0 && strcmp(change->name, name) == 0) {
            last = change;
        }
    }
    return last;
}

static void
alarm_take_out(trpi_shard_memory *memory, trpi_shard_alarm **place)
{
    trpi_shard_alarm *alarm = *place;

    trpi_shard_memory_hand(memory, alarm);
    memory->bytes -= alarm->bytes;
    trpi_table_remove(&alarm_kind, &memory->alarms, NULL, place);
    trpi_free(alarm);
}

static void
apply_remind(trpi_shard_memory *memory, trpi_shard_change *change)
{
    trpi_shard_alarm **place = alarm_place(memory, change->id, change->name);

    if (place != NULL) {
        alarm_take_out(memory, place);
    }
    place =
        trpi_table_add(&alarm_kind, &memory->alarms, NULL, change->alarm->hash, &change->alarm->of);
    trpi_assert(place != NULL); /* reserved */
    *place = change->alarm;
    change->alarm = NULL;
    memory->bytes += (*place)->bytes;
    heap_add(memory, *place);
}

static void
apply_fired(trpi_shard_memory *memory, const trpi_shard_change *change)
{
    trpi_shard_alarm **place = alarm_place(memory, change->id, change->name);

    if (place == NULL || (*place)->of.due_ms != change->due_ms) {
        return; /* cancelled, or set anew */
    }
    if (change->next_ms == 0) {
        alarm_take_out(memory, place);
        return;
    }
    trpi_shard_memory_hand(memory, *place);
    (*place)->of.due_ms = change->next_ms;
    heap_add(memory, *place);
}

void
trpi_shard_change_apply(trpi_shard_memory *memory, trpi_shard_change *change)
{
    trpi_shard_entity **entity = entity_place(memory, change->id);
    trpi_shard_alarm **alarm = NULL;

    trpi_shard_change_drop(memory, change);
    switch (change->kind) {
    case TRPI_SHARD_ADD:
        if (entity == NULL) {
            entity = trpi_table_add(&entity_kind, &memory->entities, NULL, change->entity->hash,
                                    change->id);
            trpi_assert(entity != NULL); /* reserved */
            *entity = change->entity;
            change->entity = NULL;
            memory->bytes += COST + strlen(change->id);
        }
        break;
    case TRPI_SHARD_REMOVE:
        if (entity != NULL) {
            trpi_shard_entity *gone = *entity;

            memory->bytes -= COST + strlen(gone->id);
            trpi_table_remove(&entity_kind, &memory->entities, NULL, entity);
            trpi_free(gone);
        }
        break;
    case TRPI_SHARD_REMIND:
        apply_remind(memory, change);
        break;
    case TRPI_SHARD_CANCEL:
        alarm = alarm_place(memory, change->id, change->name);
        if (alarm != NULL) {
            alarm_take_out(memory, alarm);
        }
        break;
    case TRPI_SHARD_FIRED:
        apply_fired(memory, change);
        break;
    }
}

void
trpi_shard_memory_clear(trpi_shard_memory *memory)
{
    uint32_t position = 0;
    trpi_shard_entity **entity = NULL;
    trpi_shard_alarm **alarm = NULL;

    while ((entity = trpi_table_next(&entity_kind, &memory->entities, &position)) != NULL) {
        trpi_free(*entity);
    }
    position = 0;
    while ((alarm = trpi_table_next(&alarm_kind, &memory->alarms, &position)) != NULL) {
        trpi_free(*alarm);
    }
    trpi_table_fini(&memory->entities);
    trpi_table_fini(&memory->alarms);
    trpi_free(memory->heap);
    *memory = (trpi_shard_memory){ 0 };
}

/* ---- bytes in the journal: arrays, to whose ends a later version may add elements ------------ */

static void
reminder_encode(trpi_pack_writer *w, const trpi_shard_reminder *of)
{
    trpi_pack_u64(w, of->due_ms);
    trpi_pack_u64(w, of->period_ms);
    trpi_pack_text(w, of->type);
    trpi_pack_u64(w, of->version);
    trpi_pack_bytes(w, of->data, of->bytes);
}

static void
change_encode(trpi_pack_writer *w, const trpi_shard_change *change)
{
    static const uint8_t elements[] = { 0, 2, 2, 8, 3, 5 };

    trpi_pack_array(w, elements[change->kind]);
    trpi_pack_u64(w, change->kind);
    trpi_pack_text(w, change->id);
    if (change->kind >= TRPI_SHARD_REMIND) {
        trpi_pack_text(w, change->name);
    }
    if (change->kind == TRPI_SHARD_REMIND) {
        reminder_encode(w, &change->alarm->of);
    } else if (change->kind == TRPI_SHARD_FIRED) {
        trpi_pack_u64(w, change->due_ms);
        trpi_pack_u64(w, change->next_ms);
    }
}

uint32_t
trpi_shard_changes_encode(trpi_pack_writer *w, const trpi_shard_change *first)
{
    uint32_t count = 0;
    uint64_t bytes = 0;

    for (const trpi_shard_change *change = first;
         change != NULL && count < TRPI_SHARD_STORE_GROUP_MAX && bytes < GROUP_BYTES;
         change = change->next) {
        bytes += COST + strlen(change->id) + strlen(change->name) + change->bytes;
        count++;
    }
    w->limit = ENCODED_MAX;
    trpi_pack_array(w, count);
    for (uint32_t i = 0; i < count; i++, first = first->next) {
        change_encode(w, first);
    }
    return count;
}

/* Texts of one decoded change or reminder. */
typedef struct decoded {
    char id[TRPI_SHARD_ID_BYTES_MAX + 1];
    char name[TRPI_SHARD_REMINDER_NAME_MAX + 1];
    char type[TRP_JOURNAL_TYPE_BYTES_MAX + 1];
    trpi_shard_reminder of;
    uint64_t next_ms;
} decoded;

static bool
reminder_decode(const trpi_pack_value *array, uint32_t at, decoded *d)
{
    uint64_t version = 0;
    const uint8_t *data = NULL;
    bool whole = trpi_pack_get_text(trpi_pack_at(array, at), d->id, sizeof d->id) &&
                 trpi_pack_get_text(trpi_pack_at(array, at + 1), d->name, sizeof d->name) &&
                 trpi_pack_get_u64(trpi_pack_at(array, at + 2), UINT64_MAX, &d->of.due_ms) &&
                 trpi_pack_get_u64(trpi_pack_at(array, at + 3), UINT64_MAX, &d->of.period_ms) &&
                 trpi_pack_get_text(trpi_pack_at(array, at + 4), d->type, sizeof d->type) &&
                 trpi_pack_get_u64(trpi_pack_at(array, at + 5), UINT32_MAX, &version) &&
                 trpi_pack_get_bytes(trpi_pack_at(array, at + 6), &data, &d->of.bytes);

    d->of.version = (uint32_t)version;
    d->of.data = data;
    return whole;
}

static bool
change_decode(const trpi_pack_value *array, uint64_t kind, decoded *d)
{
    switch (kind) {
    case TRPI_SHARD_ADD:
    case TRPI_SHARD_REMOVE:
        return trpi_pack_get_text(trpi_pack_at(array, 1), d->id, sizeof d->id);
    case TRPI_SHARD_REMIND:
        return reminder_decode(array, 1, d);
    case TRPI_SHARD_CANCEL:
    case TRPI_SHARD_FIRED:
        return trpi_pack_get_text(trpi_pack_at(array, 1), d->id, sizeof d->id) &&
               trpi_pack_get_text(trpi_pack_at(array, 2), d->name, sizeof d->name) &&
               (kind == TRPI_SHARD_CANCEL ||
                (trpi_pack_get_u64(trpi_pack_at(array, 3), UINT64_MAX, &d->of.due_ms) &&
                 trpi_pack_get_u64(trpi_pack_at(array, 4), UINT64_MAX, &d->next_ms)));
    default:
        return false;
    }
}

static trp_err
decoded_apply(trpi_shard_memory *memory, trpi_shard_change_kind kind, decoded *d,
              uint64_t bytes_max)
{
    trpi_shard_change *change = NULL;

    d->of.id = d->id;
    d->of.name = d->name;
    d->of.type = d->type;
    trp_err err = trpi_shard_change_new(memory, kind, &d->of, bytes_max, &change);

    if (err == TRP_OK) {
        change->due_ms = d->of.due_ms;
        change->next_ms = d->next_ms;
        trpi_shard_change_apply(memory, change);
        trpi_shard_change_free(change);
    }
    return err == TRP_EINVAL || err == TRP_EMSGSIZE ? TRP_EDATA : err;
}

trp_err
trpi_shard_changes_decode(trpi_shard_memory *memory, const void *data, size_t bytes,
                          uint64_t bytes_max)
{
    trpi_pack_doc *doc = NULL;
    uint32_t count = 0;
    trp_err err = trpi_pack_parse(data, bytes, &doc);

    if (err == TRP_OK && !trpi_pack_get_count(trpi_pack_root(doc), UINT32_MAX, &count)) {
        err = TRP_EDATA;
    }
    for (uint32_t i = 0; err == TRP_OK && i < count; i++) {
        const trpi_pack_value *array = trpi_pack_at(trpi_pack_root(doc), i);
        decoded d = { 0 };
        uint64_t kind = 0;

        if (!trpi_pack_get_u64(trpi_pack_at(array, 0), TRPI_SHARD_FIRED, &kind) ||
            !change_decode(array, kind, &d)) {
            err = TRP_EDATA;
        } else {
            err = decoded_apply(memory, (trpi_shard_change_kind)kind, &d, bytes_max);
        }
    }
    trpi_pack_doc_free(doc);
    return err;
}

void
trpi_shard_memory_encode(trpi_pack_writer *w, const trpi_shard_memory *memory)
{
    uint32_t position = 0;
    trpi_shard_entity **entity = NULL;
    trpi_shard_alarm **alarm = NULL;

    w->limit = ENCODED_MAX;
    trpi_pack_array(w, 2);
    trpi_pack_array(w, memory->entities.count);
    while ((entity = trpi_table_next(&entity_kind, &memory->entities, &position)) != NULL) {
        trpi_pack_text(w, (*entity)->id);
    }
    position = 0;
    trpi_pack_array(w, memory->alarms.count);
    while ((alarm = trpi_table_next(&alarm_kind, &memory->alarms, &position)) != NULL) {
        trpi_pack_array(w, 7);
        trpi_pack_text(w, (*alarm)->of.id);
        trpi_pack_text(w, (*alarm)->of.name);
        reminder_encode(w, &(*alarm)->of);
    }
}

trp_err
trpi_shard_memory_decode(trpi_shard_memory *memory, const void *data, size_t bytes,
                         uint64_t bytes_max)
{
    trpi_pack_doc *doc = NULL;
    uint32_t entities = 0, alarms = 0;
    trp_err err = trpi_pack_parse(data, bytes, &doc);
    const trpi_pack_value *root = err == TRP_OK ? trpi_pack_root(doc) : NULL;

    if (err == TRP_OK && (!trpi_pack_get_count(trpi_pack_at(root, 0), UINT32_MAX, &entities) ||
                          !trpi_pack_get_count(trpi_pack_at(root, 1), UINT32_MAX, &alarms))) {
        err = TRP_EDATA;
    }
    for (uint32_t i = 0; err == TRP_OK && i < entities; i++) {
        decoded d = { 0 };

        err = trpi_pack_get_text(trpi_pack_at(trpi_pack_at(root, 0), i), d.id, sizeof d.id)
                  ? decoded_apply(memory, TRPI_SHARD_ADD, &d, bytes_max)
                  : TRP_EDATA;
    }
    for (uint32_t i = 0; err == TRP_OK && i < alarms; i++) {
        decoded d = { 0 };

        err = reminder_decode(trpi_pack_at(trpi_pack_at(root, 1), i), 0, &d)
                  ? decoded_apply(memory, TRPI_SHARD_REMIND, &d, bytes_max)
                  : TRP_EDATA;
    }
    trpi_pack_doc_free(doc);
    return err;
}

/* type.c - message types: process-wide numbers and wire ids.
 *
 * Why.     A descriptor is static data and the same in every system of a process, so its number is
 *          process-wide. The number indexes a table that is read for each message, without a lock.
 * Shape.   Built-in types come from the rooms (base/built_in_types.h), all others from protocols.
 * Must hold.
 *   type-Y1  An entry of `types` is written once, when the library is loaded or under the lock,
 *            before any descriptor of a protocol holds its number.
 *   type-Y2  Two names never share a wire id: the second registration is refused.
 * Limits.  TRP_TYPES_MAX numbers; a name of TRP_TYPE_NAME_BYTES_MAX.
 * Cost.    2.3 MiB of address space, of which the pages with registered types are touched.
 * Tests.   tests/unit/actor/type_test.c
 */
#include "actor/kernel/type.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/built_in_types.h"
#include "base/hash.h"
#include "base/payload.h"
#include "base/table.h"

#define WIRE_PLACES (2u * (TRP_TYPES_MAX + 1u)) /* at most half full: by_wire_id never grows */

typedef struct type_entry {
    _Atomic(const trp_type *) type; /* release; pairs with acquire of trpi_type_get() */
    const trp_protocol *protocol;   /* NULL: built in */
    uint64_t wire_id;
    _Atomic uint16_t parent; /* set once, under the lock; 0: none */
} type_entry;

static type_entry types[TRP_TYPES_MAX + 1u]; /* by number; zeroed, so it is not in the file */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all below, and writing `types` */
static uint16_t wire_places[WIRE_PLACES];
static trpi_table by_wire_id = { wire_places, WIRE_PLACES, 0 }; /* of numbers */
static uint32_t number_next = TRPI_TYPE_USER_FIRST;
static uint64_t (*wire_hash)(const char *name) = trpi_hash_text;

void
trpi_type_test_hash(uint64_t (*hash)(const char *name))
{
    pthread_mutex_lock(&lock);
    wire_hash = hash != NULL ? hash : trpi_hash_text;
    pthread_mutex_unlock(&lock);
}

const trp_type *
trpi_type_get(uint32_t number)
{
    return number > TRP_TYPES_MAX ? NULL
                                  : atomic_load_explicit(&types[number].type, memory_order_acquire);
}

const trp_type *
trp_msg_type(const trp_msg *msg)
{
    return trpi_type_get(msg->priv_type);
}

uint16_t
trp_msg_tag(const trp_msg *msg)
{
    const trp_type *type = trpi_type_get(msg->priv_type);

    return type != NULL ? type->tag : 0;
}

uint64_t
trpi_type_wire_id(uint32_t number)
{
    return trpi_type_get(number) == NULL ? 0 : types[number].wire_id; /* type-Y1 */
}

/* ---- under the lock -------------------------------------------------------------------------- */

static bool
wire_is_empty(const void *element)
{
    return *(const uint16_t *)element == 0;
}

static uint64_t
wire_hash_of(const void *arg, const void *element)
{
    (void)arg;
    return types[*(const uint16_t *)element].wire_id;
}

static bool
wire_is_key(const void *arg, const void *element, const void *key)
{
    return wire_hash_of(arg, element) == *(const uint64_t *)key;
}

static const trpi_table_kind wire = { sizeof(uint16_t), wire_is_empty, wire_hash_of, wire_is_key };

/* Enter a type in both tables; its wire id is not known yet. */
static void
type_enter(const trp_type *type, uint32_t number, const trp_protocol *protocol, uint64_t wire_id)
{
    uint16_t *place = trpi_table_add(&wire, &by_wire_id, NULL, wire_id, &wire_id);

    trpi_assert(*place == 0);
    types[number].protocol = protocol;
    types[number].wire_id = wire_id;
    atomic_store_explicit(&types[number].type, type, memory_order_release); /* type-Y1 */
    *place = (uint16_t)number;
}

/* Enter the built-in types of all rooms when the library is loaded: no message pays for a test, and
 * the library file does not hold the 2 MiB table. 101: before constructors of a static program. */
__attribute__((constructor(101))) static void
built_in_enter(void)
{
    for (const trpi_type_part *const *part = trpi_type_parts; *part != NULL; part++) {
        for (uint32_t i = 0; i < (*part)->count; i++) {
            const trp_type *type = (*part)->types[i].type;

            trpi_assert(type->number < TRPI_TYPE_USER_FIRST);
            trpi_assert(trpi_type_get(type->number) == NULL); /* one type a number */
            type_enter(type, type->number, NULL, trpi_hash_text(type->name));
            atomic_store_explicit(&types[type->number].parent, (*part)->types[i].parent,
                                  memory_order_relaxed);
        }
    }
}

static bool
name_is_valid(const char *name)
{
    const char *dot = name != NULL ? strchr(name, '.') : NULL;

    return dot != NULL && dot != name && dot[1] != '\0' && strlen(name) <= TRP_TYPE_NAME_BYTES_MAX;
}

/* The depth of the recursion is that of types (trpi_type_check). */
static bool
same_fields(const trp_type *a, const trp_type *b)
{
    if (a->bytes != b->bytes || a->flags != b->flags || a->fields_count != b->fields_count) {
        return false;
    }
    for (uint32_t i = 0; i < a->fields_count; i++) {
        const trp_field *x = &a->fields[i], *y = &b->fields[i];

        if (x->kind != y->kind || x->offset != y->offset || strcmp(x->name, y->name) != 0 ||
            (trpi_kind_element(x->kind) == TRP_FIELD_STRUCT && !same_fields(x->of, y->of))) {
            return false;
        }
    }
    return true;
}

static bool
same_shape(const trp_type *a, const trp_type *b)
{
    return a->tag == b->tag && same_fields(a, b);
}

static trp_err
type_register(const trp_protocol *protocol, trp_type *type)
{
    uint64_t wire_id;
    const uint16_t *place;
    uint32_t number;
    trp_err err = type != NULL && name_is_valid(type->name) ? trpi_type_check(type) : TRP_EINVAL;

    if (err != TRP_OK) {
        return err;
    }
    wire_id = wire_hash(type->name);
    place = trpi_table_find(&wire, &by_wire_id, NULL, wire_id, &wire_id);
    if (place != NULL) {
        const trp_type *known = trpi_type_get(*place);

        number = *place;
        if (strcmp(known->name, type->name) !=
            0) { /* type-Y2; to stderr, since there is no system and no log here */
            (void)fprintf(stderr,
                          "troupe: message types %s and %s have one wire id, %016llx: rename one\n",
                          known->name, type->name, (unsigned long long)wire_id);
            return TRP_ECOLLISION;
        }
        if (!same_shape(known, type)) {
            return TRP_EEXIST;
        }
        /* Another copy of the same declaration gets the same number. Not written again: other
         * threads may be reading it. */
        if (__atomic_load_n(&type->number, __ATOMIC_RELAXED) != number) {
            __atomic_store_n(&type->number, number, __ATOMIC_RELAXED);
        }
        return TRP_OK;
    }
    if (number_next > TRP_TYPES_MAX) {
        return TRP_ELIMIT;
    }
    number = number_next++;
    type_enter(type, number, protocol, wire_id);
    __atomic_store_n(&type->number, number, __ATOMIC_RELAXED);
    return TRP_OK;
}

/* ---- public ---------------------------------------------------------------------------------- */

trp_err
trp_protocol_register(const trp_protocol *protocol)
{
    trp_err err = TRP_OK;

    if (protocol == NULL || protocol->name == NULL ||
        (protocol->types_count != 0 && protocol->types == NULL)) {
        return TRP_EINVAL;
    }
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; err == TRP_OK && i < protocol->types_count; i++) {
        err = type_register(protocol, protocol->types[i]);
    }
    pthread_mutex_unlock(&lock);
    return err;
}

uint32_t
trpi_type_parent(uint32_t number)
{
    return number > TRP_TYPES_MAX ? 0
                                  : atomic_load_explicit(&types[number].parent,
                                                         memory_order_acquire); /* pair: extend */
}

/* Return the number of levels below a type, by a scan of all types: rare. Under the lock. */
static uint32_t
levels_below(uint32_t top)
{
    uint32_t most = 0;

    for (uint32_t number = 1; number < number_next; number++) {
        uint32_t levels = 0, at = number;

        while (at != 0 && at != top) {
            at = trpi_type_parent(at);
            levels++;
        }
        most = at == top && levels > most ? levels : most;
    }
    return most;
}

trp_err
trp_type_extend(const trp_type *type, const trp_type *parent)
{
    uint32_t depth = 1;
    uint32_t at, known;
    trp_err err = TRP_OK;

    if (type == NULL || parent == NULL || type->number == 0 || parent->number == 0) {
        return type == NULL || parent == NULL ? TRP_EINVAL : TRP_ENOTYPE;
    }
    pthread_mutex_lock(&lock);
    for (at = parent->number; at != 0; at = trpi_type_parent(at), depth++) {
        if (at == type->number) {
            err = TRP_EINVAL;
            break;
        }
    }
    known = trpi_type_parent(type->number);
    if (err == TRP_OK && known != 0 && known != parent->number) {
        err = TRP_EEXIST;
    } else if (err == TRP_OK && depth + levels_below(type->number) > TRP_TYPE_DEPTH_MAX) {
        err = TRP_ELIMIT;
    } else if (err == TRP_OK) {
        atomic_store_explicit(&types[type->number].parent, (uint16_t)parent->number,
                              memory_order_release); /* pair: trpi_type_parent */
    }
    pthread_mutex_unlock(&lock);
    return err;
}

const trp_type *
trpi_type_find_wire(uint64_t wire_id)
{
    const uint16_t *place;
    const trp_type *type;

    pthread_mutex_lock(&lock);
    place = trpi_table_find(&wire, &by_wire_id, NULL, wire_id, &wire_id);
    type = place != NULL ? trpi_type_get(*place) : NULL;
    pthread_mutex_unlock(&lock);
    return type;
}

const trp_type *
trp_type_find(const char *name)
{
    const trp_type *type = name != NULL ? trpi_type_find_wire(trpi_hash_text(name)) : NULL;

    return type != NULL && strcmp(type->name, name) == 0 ? type : NULL;
}

trp_err
trpi_types_accept(const trp_protocol *const *accepts)
{
    trp_err err = TRP_OK;

    for (; accepts != NULL && *accepts != NULL && err == TRP_OK; accepts++) {
        err = trp_protocol_register(*accepts);
    }
    return err;
}

bool
trpi_type_accepted(const trp_protocol *const *accepts, uint32_t number)
{
    const trp_protocol *protocol =
        types[number].protocol; /* type-Y1: written before the number was known */

    if (number < TRPI_TYPE_STRING ||
        (number >= TRPI_TYPE_ACTOR_IDENTITY && number < TRPI_TYPE_USER_FIRST)) {
        return true;
    }
    for (; protocol != NULL && *accepts != NULL; accepts++) {
        /* by name too: a plugin has its own copy of a shared declaration */
        if (*accepts == protocol || strcmp((*accepts)->name, protocol->name) == 0) {
            return true;
        }
    }
    return false;
}

bool
trpi_type_is_ordinary(uint16_t number) /* receive-filter-G1 */
{
    return number >= TRPI_TYPE_USER_FIRST ||
           (number >= TRPI_TYPE_STRING && number <= TRPI_TYPE_I64);
}

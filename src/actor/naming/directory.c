/* directory.c - names for actors besides their paths: an alias is one actor's, a category has many.
 *
 * Why.     A path says where an actor stands in the tree. A program that wants "the printer", or
 *          any one of the workers, need not know its path.
 * Shape.   Two tables (kinds) of hashed names; below each name its members, oldest first.
 * Must hold.
 *   directory-D1  A name without members is not in the table.
 *   directory-D2  A member that has ended is removed at the next lookup, or addition without room,
 *       not when it ends: an actor without such names pays nothing at its end.
 *   directory-D3  `known` and `members` hold the same refs.
 *   directory-D4  A bucket's entries are sorted by serial, so that a visitor that gave up the lock
 *       finds the next one.
 * Threads. One lock, a leaf: under it only cells are read and the library's own visitors called;
 *          the program's visitors are called without it (trp_alias_each()).
 * Limits.  A system has TRP_ALIASES_MAX names of each kind, a category TRP_CATEGORY_MEMBERS_MAX
 *          members, a name TRP_NAME_BYTES_MAX bytes; above: TRP_ELIMIT.
 * Cost.    To add a member is O(1) on average, to look one up or to remove it is O(members).
 * Tests.   tests/unit/actor/alias_test.c, tests/unit/pattern/category_test.c
 * Sources. A4J-08, UJ-04, UJ-17, UJ-50
 */
#include "actor/naming/directory.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include <troupe/alias.h>
#include <troupe/category.h>

#include "actor/naming/name.h"
#include "actor/kernel/ref_map.h"
#include "actor/kernel/run.h"
#include "actor/kernel/system.h"
#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/mutex.h"

#define BUCKETS 256u

typedef struct entry {
    struct entry *next;
    uint64_t hash, serial;
    trpi_member *members;
    uint32_t count, size; /* of members */
    trpi_ref_map known;   /* no values */
    uint32_t bytes;       /* of name */
    char name[];
} entry;

typedef struct table {
    uint32_t count; /* of entries */
    entry *buckets[BUCKETS];
} table;

struct trpi_directory {
    pthread_mutex_t lock; /* guards all */
    uint64_t serial;      /* of the latest entry */
    table kinds[TRPI_DIRECTORY_KINDS];
};

trp_err
trpi_directory_new(trpi_directory **ret_directory)
{
    trpi_directory *directory = trpi_alloc(sizeof *directory);

    if (directory == NULL) {
        return TRP_ENOMEM;
    }
    pthread_mutex_init(&directory->lock, NULL);
    *ret_directory = directory;
    return TRP_OK;
}

static void
entry_free(entry *e)
{
    trpi_ref_map_fini(&e->known);
    trpi_free(e->members);
    trpi_free(e);
}

void
trpi_directory_free(trpi_directory *directory)
{
    if (directory == NULL) {
        return;
    }
    for (int kind = 0; kind < TRPI_DIRECTORY_KINDS; kind++) {
        for (uint32_t i = 0; i < BUCKETS; i++) {
            entry *next;

            for (entry *e = directory->kinds[kind].buckets[i]; e != NULL; e = next) {
                next = e->next;
                entry_free(e);
            }
        }
    }
    trpi_mutex_destroy(&directory->lock);
    trpi_free(directory);
}

/* ---- with the lock --------------------------------------------------------------------------- */

static bool
is_alive(trp_ctx *ctx, trp_ref ref)
{
    return ref.node != TRPI_NODE_SELF || trpi_cell_peek(ctx, ref) != NULL;
}

/* Where the entry is linked, or would be: *place is NULL then. */
static entry **
place_of(table *t, const char *name, size_t bytes, uint64_t hash)
{
    entry **place = &t->buckets[hash % BUCKETS];

    while (*place != NULL && ((*place)->hash != hash || (*place)->bytes != bytes ||
                              memcmp((*place)->name, name, bytes) != 0)) {
        place = &(*place)->next;
    }
    return place;
}

/* Remove members that have ended (directory-D2), and the one that equals gone. Returns how many
 * were removed. */
static uint32_t
entry_sweep(trp_ctx *ctx, entry *e, trp_ref gone)
{
    uint32_t kept = 0, before = e->count;

    for (uint32_t i = 0; i < e->count; i++) {
        if (is_alive(ctx, e->members[i].ref) && !trp_ref_equal(e->members[i].ref, gone)) {
            e->members[kept++] = e->members[i];
        } else {
            (void)trpi_ref_map_remove(&e->known, e->members[i].ref, NULL); /* directory-D3 */
        }
    }
    e->count = kept;
    return before - kept;
}

/* directory-D1 */
static void
drop_if_empty(table *t, entry **place)
{
    entry *e = *place;

    if (e != NULL && e->count == 0) {
        *place = e->next;
        t->count--;
        entry_free(e);
    }
}

static void
sweep_table(trp_ctx *ctx, table *t, trp_ref gone)
{
    for (uint32_t i = 0; i < BUCKETS; i++) {
        entry **place = &t->buckets[i];

        while (*place != NULL) {
            entry *e = *place;

            (void)entry_sweep(ctx, e, gone);
            drop_if_empty(t, place);
            if (*place == e) {
                place = &e->next;
            }
        }
    }
}

static trp_err
entry_make(trpi_directory *directory, table *t, entry **place, const char *name, size_t bytes,
           uint64_t hash)
{
    entry *e;

    if (t->count >= TRP_ALIASES_MAX) {
        return TRP_ELIMIT;
    }
    e = trpi_alloc(sizeof *e + bytes + 1);
    if (e == NULL) {
        return TRP_ENOMEM;
    }
    e->hash = hash;
    e->serial = ++directory->serial;
    e->bytes = (uint32_t)bytes;
    memcpy(e->name, name, bytes);
    *place = e; /* the last one of its bucket (directory-D4) */
    t->count++;
    return TRP_OK;
}

/* There is no room: remove members that have ended (directory-D2), and grow unless half of the
 * array is free then, so that the next pass over all members is far away. */
static trp_err
room_make(trp_ctx *ctx, entry *e)
{
    const trp_ref nobody = TRP_REF_NONE;

    (void)entry_sweep(ctx, e, nobody);
    if (e->count == TRP_CATEGORY_MEMBERS_MAX) {
        return TRP_ELIMIT;
    }
    if (e->count < e->size && (e->count <= e->size / 2 || e->size == TRP_CATEGORY_MEMBERS_MAX)) {
        return TRP_OK;
    }
    return trpi_array_reserve(&e->members, e->count, &e->size, sizeof *e->members,
                              e->size - e->count + 1, TRP_CATEGORY_MEMBERS_MAX);
}

static trp_err
member_add(trp_ctx *ctx, entry *e, trp_ref ref)
{
    trp_err err = TRP_OK;

    if (trpi_ref_map_find(&e->known, ref) != NULL) {
        return TRP_OK;
    }
    if (e->count == e->size) {
        err = room_make(ctx, e);
    }
    if (err == TRP_OK) {
        err = trpi_ref_map_put(&e->known, ref, NULL);
    }
    if (err == TRP_OK) {
        e->members[e->count++] = (trpi_member){ ref, 0, 0 };
    }
    return err;
}

/* ---- the door -------------------------------------------------------------------------------- */

trp_err
trpi_directory_add(trp_ctx *ctx, enum trpi_directory_kind kind, const char *name, trp_ref ref)
{
    const trp_ref nobody = TRP_REF_NONE;
    trpi_directory *directory = ctx->system->directory;
    table *t = &directory->kinds[kind];
    size_t bytes = name == NULL ? 0 : strlen(name);
    uint64_t hash;
    entry **place;
    trp_err err = TRP_OK;

    if (!trpi_name_is_valid(name, bytes) || trp_ref_is_none(ref)) {
        return TRP_EINVAL;
    }
    if (!is_alive(ctx, ref)) {
        return TRP_ENOENT;
    }
    hash = trpi_hash(name, bytes, 0);
    pthread_mutex_lock(&directory->lock);
    if (t->count >= TRP_ALIASES_MAX) {
        sweep_table(ctx, t, nobody); /* directory-D2 */
    }
    place = place_of(t, name, bytes, hash);
    if (*place == NULL) {
        err = entry_make(directory, t, place, name, bytes, hash);
    } else if (kind == TRPI_DIRECTORY_ALIAS) {
        (void)entry_sweep(ctx, *place, nobody);
    }
    if (err == TRP_OK && kind == TRPI_DIRECTORY_ALIAS && (*place)->count > 0 &&
        !trp_ref_equal((*place)->members[0].ref, ref)) {
        err = TRP_EEXIST;
    }
    if (err == TRP_OK) {
        err = member_add(ctx, *place, ref);
    }
    drop_if_empty(t, place);
    pthread_mutex_unlock(&directory->lock);
    return err;
}

trp_err
trpi_directory_remove(trp_ctx *ctx, enum trpi_directory_kind kind, const char *name, trp_ref ref)
{
    trpi_directory *directory = ctx->system->directory;
    table *t = &directory->kinds[kind];
    uint32_t count;
    entry **place;
    bool any = false;

    pthread_mutex_lock(&directory->lock);
    if (name == NULL) {
        sweep_table(ctx, t, ref);
        any = true;
    } else {
        place = place_of(t, name, strlen(name), trpi_hash(name, strlen(name), 0));
        if (*place != NULL) {
            count = (*place)->count;
            if (trp_ref_is_none(ref)) {
                (*place)->count = 0; /* the entry goes with it (directory-D1) */
            } else {
                (void)entry_sweep(ctx, *place, ref);
            }
            any = (*place)->count < count;
            drop_if_empty(t, place);
        }
    }
    pthread_mutex_unlock(&directory->lock);
    return any ? TRP_OK : TRP_ENOENT;
}

uint32_t
trpi_directory_each(trp_ctx *ctx, enum trpi_directory_kind kind, const char *name,
                    void (*fn)(void *arg, const char *name, trpi_member *member), void *arg)
{
    const trp_ref nobody = TRP_REF_NONE;
    trpi_directory *directory = ctx->system->directory;
    table *t = &directory->kinds[kind];
    uint32_t count = 0;

    pthread_mutex_lock(&directory->lock);
    for (uint32_t i = 0; i < BUCKETS && name == NULL; i++) {
        for (entry *e = t->buckets[i]; e != NULL; e = e->next) {
            for (uint32_t k = 0; k < e->count; k++) {
                if (is_alive(ctx, e->members[k].ref)) {
                    count++;
                    if (fn != NULL) {
                        fn(arg, e->name, &e->members[k]);
                    }
                }
            }
        }
    }
    if (name != NULL) {
        entry **place = place_of(t, name, strlen(name), trpi_hash(name, strlen(name), 0));

        if (*place != NULL) {
            (void)entry_sweep(ctx, *place, nobody);
            count = (*place)->count;
            for (uint32_t k = 0; k < count && fn != NULL; k++) {
                fn(arg, (*place)->name, &(*place)->members[k]);
            }
            drop_if_empty(t, place);
        }
    }
    pthread_mutex_unlock(&directory->lock);
    return count;
}

trp_ref
trpi_alias_get(trp_ctx *ctx, const char *alias, size_t bytes)
{
    trpi_directory *directory = ctx->system->directory;
    trp_ref ref = TRP_REF_NONE;
    const entry *e;

    pthread_mutex_lock(&directory->lock);
    e = *place_of(&directory->kinds[TRPI_DIRECTORY_ALIAS], alias, bytes,
                  trpi_hash(alias, bytes, 0));
    if (e != NULL && is_alive(ctx, e->members[0].ref)) {
        ref = e->members[0].ref;
    }
    pthread_mutex_unlock(&directory->lock);
    return ref;
}

/* ---- aliases --------------------------------------------------------------------------------- */

trp_err
trp_alias_set(trp_system *system, const char *alias, trp_ref ref)
{
    trp_ctx *ctx;
    trp_err err;

    if (!trpi_system_is_valid(system)) {
        return TRP_EINVAL;
    }
    ctx = trpi_enter(system);
    err = trpi_directory_add(ctx, TRPI_DIRECTORY_ALIAS, alias, ref);
    trpi_leave(ctx);
    return err;
}

trp_err
trp_alias_clear(trp_system *system, const char *alias)
{
    trp_ref anybody = TRP_REF_NONE;
    trp_ctx *ctx;
    trp_err err;

    if (!trpi_system_is_valid(system) || alias == NULL) {
        return TRP_EINVAL;
    }
    ctx = trpi_enter(system);
    err = trpi_directory_remove(ctx, TRPI_DIRECTORY_ALIAS, alias, anybody);
    trpi_leave(ctx);
    return err;
}

trp_err
trp_alias_find(trp_system *system, const char *alias, trp_ref *ret_ref)
{
    trp_ctx *ctx;
    trp_ref ref;

    if (!trpi_system_is_valid(system) || alias == NULL || ret_ref == NULL) {
        return TRP_EINVAL;
    }
    ctx = trpi_enter(system);
    ref = trpi_alias_get(ctx, alias, strlen(alias));
    trpi_leave(ctx);
    if (trp_ref_is_none(ref)) {
        return TRP_ENOENT;
    }
    *ret_ref = ref;
    return TRP_OK;
}

typedef struct visit {
    uint32_t bucket;
    uint64_t serial; /* of the entry of this bucket that was visited; 0: none yet */
    trp_ref ref;
    char name[TRP_NAME_BYTES_MAX + 1];
} visit;

/* Write the next alias of the actor `of` (TRP_REF_NONE: of any live actor) into v. False: there is
 * none. */
static bool
visit_next(trp_ctx *ctx, trp_ref of, visit *v)
{
    trpi_directory *directory = ctx->system->directory;
    const table *t = &directory->kinds[TRPI_DIRECTORY_ALIAS];
    const entry *found = NULL;

    pthread_mutex_lock(&directory->lock);
    for (; v->bucket < BUCKETS; v->bucket++, v->serial = 0) {
        for (found = t->buckets[v->bucket]; found != NULL; found = found->next) {
            trp_ref ref = found->members[0].ref;

            if (found->serial > v->serial && is_alive(ctx, ref) &&
                (trp_ref_is_none(of) || trp_ref_equal(of, ref))) {
                v->serial = found->serial; /* directory-D4 */
                v->ref = ref;
                memcpy(v->name, found->name, found->bytes + 1);
                break;
            }
        }
        if (found != NULL) {
            break;
        }
    }
    pthread_mutex_unlock(&directory->lock);
    return found != NULL;
}

void
trp_alias_each(trp_system *system, trp_ref ref, trp_alias_fn fn, void *arg)
{
    visit v = { 0 };
    bool any = true;

    if (!trpi_system_is_valid(system) || fn == NULL) {
        return;
    }
    while (any) {
        trp_ctx *ctx = trpi_enter(system);

        any = visit_next(ctx, ref, &v);
        trpi_leave(ctx);
        if (any) {
            fn(arg, v.name, v.ref);
        }
    }
}

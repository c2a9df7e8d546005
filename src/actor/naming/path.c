/* path.c - from a reference to its path.
 *
 * Why.     A ref holds no text. Readers of logs want a path, also for an actor that has just
 *          ended.
 * Shape.   alive: walk the parents; dead: a ring of obituaries {ref, parent, name}; remote: the
 *          path that came with the ref, in a direct-mapped cache; else "#uid" behind the
 *          address.
 * Must hold.
 *   path-H1  Fields read from a cell count only if its generation is the same before and after.
 *       (look_alive)
 *   path-H2  The obituary of an actor is written before its generation ends, so there is no gap.
 * Limits.  TRPI_OBITUARIES, TRPI_REMOTE_PATHS; the newest displaces the oldest.
 * Cost.    An unnamed actor's obituary allocates nothing.
 * Tests.   tests/unit/actor/path_test.c
 * Sources. SYS-12, -13, -16; docs/architecture.md#paths.
 */
#include "actor/naming/path.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/mutex.h"

typedef struct obituary {
    uint32_t slot, generation;
    uint32_t parent_slot, parent_generation;
    char *name; /* owned; NULL: automatic */
} obituary;

typedef struct remembered {
    trp_ref ref;
    char *path; /* owned */
} remembered;

struct trpi_paths {
    pthread_mutex_t lock; /* guards all; a leaf, but for the registry's */
    obituary *ring;       /* allocated at the first end of an actor */
    uint32_t ring_next;
    remembered *remote; /* allocated with the first path */
};

trp_err
trpi_paths_new(trp_system *system)
{
    struct trpi_paths *paths = trpi_alloc(sizeof *paths);

    if (paths == NULL) {
        return TRP_ENOMEM;
    }
    pthread_mutex_init(&paths->lock, NULL);
    system->paths = paths;
    return TRP_OK;
}

void
trpi_paths_free(trp_system *system)
{
    struct trpi_paths *paths = system->paths;

    if (paths == NULL) {
        return;
    }
    for (uint32_t i = 0; paths->ring != NULL && i < TRPI_OBITUARIES; i++) {
        trpi_free(paths->ring[i].name);
    }
    for (uint32_t i = 0; paths->remote != NULL && i < TRPI_REMOTE_PATHS; i++) {
        trpi_free(paths->remote[i].path);
    }
    trpi_free(paths->ring);
    trpi_free(paths->remote);
    trpi_mutex_destroy(&paths->lock);
    trpi_free(paths);
    system->paths = NULL;
}

size_t
trpi_cell_name(trp_system *system, const trpi_cell *cell, char *buffer, size_t bytes)
{
    uint32_t index = trpi_cell_name_index(cell);

    if (index != 0) {
        return trpi_registry_name(system->registry, index, buffer, bytes);
    }
    trpi_assert(bytes >= TRPI_NAME_AUTO_BYTES);
    return trpi_name_auto_format(trpi_cell_slot(cell), buffer);
}

/* ---- obituaries ------------------------------------------------------------------------------ */

void
trpi_obituary_add(trp_ctx *ctx, const trpi_cell *cell)
{
    struct trpi_paths *paths = ctx->system->paths;
    const trpi_cell *parent = cell->parent == 0 ? NULL : trpi_cells_find(ctx->cells, cell->parent);
    obituary entry = { trpi_cell_slot(cell), trpi_cell_ref(cell).generation, cell->parent, 0,
                       NULL };
    char *displaced = NULL;

    entry.parent_generation = parent == NULL ? 0 : trpi_cell_ref(parent).generation;
    if (cell->name != 0) {
        char name[TRP_NAME_BYTES_MAX + 1];

        trpi_registry_name(ctx->system->registry, cell->name, name, sizeof name);
        entry.name = trpi_strdup(name); /* NULL, out of memory: the path shows its automatic name */
    }
    pthread_mutex_lock(&paths->lock);
    if (paths->ring == NULL) {
        paths->ring = trpi_alloc(TRPI_OBITUARIES * sizeof *paths->ring);
    }
    if (paths->ring != NULL) {
        displaced = paths->ring[paths->ring_next].name;
        paths->ring[paths->ring_next] = entry;
        paths->ring_next = (paths->ring_next + 1) % TRPI_OBITUARIES;
    } else {
        displaced = entry.name;
    }
    pthread_mutex_unlock(&paths->lock);
    trpi_free(displaced);
}

/* One step up: the name of ref and its parent (none: ref is the root). */
typedef struct step {
    char name[TRP_NAME_BYTES_MAX + 1];
    size_t name_bytes;
    trp_ref parent;
} step;

static bool
look_dead(trp_system *system, trp_ref ref, step *ret_step)
{
    struct trpi_paths *paths = system->paths;
    const obituary *found = NULL;

    /* the slot of no actor, and of the ring's places that were never written */
    if (ref.slot == 0) {
        return false;
    }
    pthread_mutex_lock(&paths->lock);
    for (uint32_t i = 0; paths->ring != NULL && i < TRPI_OBITUARIES && found == NULL; i++) {
        const obituary *o = &paths->ring[i];

        if (o->slot == ref.slot && o->generation == ref.generation) {
            found = o;
        }
    }
    if (found != NULL) {
        ret_step->parent = trpi_ref_local(found->parent_slot, found->parent_generation);
        if (found->parent_slot == 0) {
            ret_step->parent.node = 0;
        }
        if (found->name != NULL) {
            ret_step->name_bytes = strlen(found->name);
            memcpy(ret_step->name, found->name, ret_step->name_bytes + 1);
        } else {
            ret_step->name_bytes = trpi_name_auto_format(ref.slot, ret_step->name);
        }
    }
    pthread_mutex_unlock(&paths->lock);
    return found != NULL;
}

/* path-H1 */
static bool
look_alive(trp_system *system, trp_ref ref, step *ret_step)
{
    const trpi_cell *cell = trpi_cells_find(system->cells, ref.slot);
    const trpi_cell *parent;
    uint32_t parent_slot;
    uint8_t kind;

    if (cell == NULL || trpi_cell_ref(cell).generation != ref.generation) {
        return false;
    }
    kind = atomic_load_explicit(&cell->kind, memory_order_relaxed);
    if (kind == TRPI_KIND_PROMISE || kind == TRPI_KIND_SERVICE) {
        ret_step->parent = system->top.temp;
        ret_step->name_bytes = trpi_name_auto_format(ref.slot, ret_step->name);
        return true;
    }
    parent_slot = trpi_cell_parent(cell);
    parent = parent_slot == 0 ? NULL : trpi_cells_find(system->cells, parent_slot);
    ret_step->parent = (trp_ref)TRP_REF_NONE;
    if (parent != NULL) {
        ret_step->parent = trpi_cell_ref(parent);
    }
    ret_step->name_bytes = trpi_cell_name(system, cell, ret_step->name, sizeof ret_step->name);
    return trpi_cell_ref(cell).generation == ref.generation;
}

size_t
trpi_path_local(trp_system *system, trp_ref ref, char *buffer, size_t bytes)
{
    char text[TRP_PATH_BYTES_MAX + 1];
    size_t at = sizeof text - 1;
    trp_ref here = ref;
    step up;
    int written;

    text[at] = 0;
    for (unsigned depth = 0; depth <= TRP_PATH_DEPTH_MAX + 1; depth++) {
        if (!look_alive(system, here, &up) && !look_dead(system, here, &up)) {
            break; /* its obituary is gone: a number says more than half a path */
        }
        if (trp_ref_is_none(up.parent)) {
            written = snprintf(buffer, bytes, "%s", text[at] == 0 ? "/" : text + at);
            return written < 0 ? 0 : (size_t)written < bytes ? (size_t)written : bytes - 1;
        }
        if (up.name_bytes + 1 > at) {
            break;
        }
        at -= up.name_bytes;
        memcpy(text + at, up.name, up.name_bytes);
        text[--at] = '/';
        here = up.parent;
    }
    written = snprintf(buffer, bytes, "/#%llu",
                       (unsigned long long)((uint64_t)ref.generation << 32 | ref.slot));
    return written < 0 ? 0 : (size_t)written < bytes ? (size_t)written : bytes - 1;
}

size_t
trpi_path_unborn_auto(trp_system *system, trp_ref ref, char *buffer, size_t bytes)
{
    const trpi_cell *cell = trpi_cells_find(system->cells, ref.slot);
    const trpi_cell *parent;
    char above[TRP_PATH_BYTES_MAX + 1], name[TRP_NAME_BYTES_MAX + 1];
    int written;

    trpi_assert(cell != NULL);
    parent = trpi_cells_find(system->cells, trpi_cell_parent(cell));
    if (parent == NULL) {
        return 0;
    }
    if ((trpi_cell_ref(parent).generation & 1) != 0) {
        trpi_path_local(system, trpi_cell_ref(parent), above, sizeof above);
    } else if (trpi_path_unborn_auto(system, trpi_slot_ref(parent), above, sizeof above) == 0) {
        return 0;
    }
    trpi_cell_name(system, cell, name, sizeof name);
    written = snprintf(buffer, bytes, "%s/%s", above, name);
    return written > 0 && (size_t)written < bytes ? (size_t)written : 0;
}

size_t
trpi_path_unborn(trp_system *system, trp_ref ref, char *buffer, size_t bytes)
{
    const trpi_cell *cell = trpi_cells_find(system->cells, ref.slot);

    while (cell != NULL && (trpi_cell_ref(cell).generation & 1) == 0) { /* and those above it */
        if (trpi_cell_name_index(cell) == 0) {
            return 0;
        }
        cell = trpi_cells_find(system->cells, trpi_cell_parent(cell));
    }
    return trpi_path_unborn_auto(system, ref, buffer, bytes);
}

/* ---- remote refs ----------------------------------------------------------------------------- */

static uint32_t
remote_place(trp_ref ref)
{
    return (uint32_t)(trpi_hash_u64(((uint64_t)ref.generation << 32 | ref.slot) ^
                                    ((uint64_t)ref.node << 40)) %
                      TRPI_REMOTE_PATHS);
}

void
trpi_path_remember(trp_system *system, trp_ref ref, const char *path)
{
    struct trpi_paths *paths = system->paths;
    char *copy =
        strnlen(path, TRP_PATH_BYTES_MAX + 1) > TRP_PATH_BYTES_MAX ? NULL : trpi_strdup(path);
    remembered *place;

    if (copy == NULL) {
        return; /* a cache may forget */
    }
    pthread_mutex_lock(&paths->lock);
    if (paths->remote == NULL) {
        paths->remote = trpi_alloc(TRPI_REMOTE_PATHS * sizeof *paths->remote);
    }
    if (paths->remote != NULL) {
        char *displaced;

        place = &paths->remote[remote_place(ref)];
        displaced = place->path;
        place->ref = ref;
        place->path = copy;
        copy = displaced;
    }
    pthread_mutex_unlock(&paths->lock);
    trpi_free(copy);
}

static void
path_remote(trp_system *system, trp_ref ref, char *buffer, size_t bytes)
{
    struct trpi_paths *paths = system->paths;
    trp_ctx *ctx = trpi_enter(system);
    const trpi_node_id *node = trpi_node_id_get(system, ref.node);
    unsigned long long uid = (unsigned long long)ref.generation << 32 | ref.slot;
    char address[TRPI_ADDRESS_TEXT_BYTES] = "troupe://unknown";
    const remembered *place;

    if (node != NULL) {
        trpi_address_format(&node->address, address, sizeof address);
    }
    trpi_leave(ctx);
    pthread_mutex_lock(&paths->lock);
    place = paths->remote == NULL ? NULL : &paths->remote[remote_place(ref)];
    if (place != NULL && place->path != NULL && trp_ref_equal(place->ref, ref)) {
        snprintf(buffer, bytes, "%s%s", address, place->path);
    } else {
        snprintf(buffer, bytes, "%s/#%llu", address, uid);
    }
    pthread_mutex_unlock(&paths->lock);
}

char *
trp_path(trp_system *system, trp_ref ref, char *buffer, size_t bytes)
{
    if (buffer == NULL || bytes == 0) {
        return buffer;
    }
    buffer[0] = 0;
    if (trpi_system_is_valid(system) && !trp_ref_is_none(ref)) {
        if (ref.node == TRPI_NODE_SELF) {
            trpi_path_local(system, ref, buffer, bytes);
        } else {
            path_remote(system, ref, buffer, bytes);
        }
    }
    return buffer;
}

/* ---- from a name to a reference -------------------------------------------------------------- */

trp_ref
trpi_path_child(trp_system *system, uint32_t parent_slot, const char *name, size_t bytes)
{
    trp_ref none = TRP_REF_NONE;
    uint32_t slot, generation;
    const trpi_cell *cell;

    if (trpi_name_auto_parse(name, bytes, &slot)) {
        trp_ref ref;

        cell = trpi_cells_find(system->cells, slot);
        if (cell == NULL) {
            return none;
        }
        ref = trpi_cell_ref(cell);
        /* path-H1, as in look_alive() */
        if ((ref.generation & 1u) == 0 ||
            !trpi_kind_is_actor(atomic_load_explicit(&cell->kind, memory_order_acquire)) ||
            trpi_cell_parent(cell) != parent_slot || trpi_cell_name_index(cell) != 0 ||
            trpi_cell_ref(cell).generation != ref.generation) {
            return none;
        }
        return ref;
    }
    if (!trpi_registry_find(system->registry, parent_slot, name, bytes, &slot, &generation)) {
        return none;
    }
    cell = trpi_cells_find(system->cells, slot);
    /* a child that has ended keeps its name until its parent has seen the end */
    return cell != NULL && trpi_cell_ref(cell).generation == generation
               ? trpi_ref_local(slot, generation)
               : none;
}

#define NAME_TRIES 1000 /* looks at a lock that another thread holds for an instant */

void
trpi_cell_name_try(trp_system *system, const trpi_cell *cell, char *name, size_t bytes)
{
    trpi_registry *registry = system->registry;
    uint32_t index = trpi_cell_name_index(cell);

    trpi_assert(bytes > TRP_NAME_BYTES_MAX);
    if (index == 0) {
        (void)trpi_name_auto_format(trpi_cell_slot(cell), name);
        return;
    }
    name[0] = '?'; /* its shard is locked, perhaps by this thread */
    name[1] = 0;
    for (int i = 0; i < NAME_TRIES && !trpi_registry_name_try(registry, index, name, bytes); i++) {
    }
}

/* Is it this system's address, or the local form with its name? */
bool
trpi_address_is_own(trp_system *system, const trpi_address *address)
{
    const trpi_address *own = &trpi_system_self(system)->address;

    return trpi_address_equal(address, own) ||
           (address->host[0] == 0 && strcmp(address->system, own->system) == 0);
}

trp_err
trpi_path_find(trp_system *system, const char *path, trp_ref *ret_ref, bool *ret_remote)
{
    trpi_selection_path parsed;
    trpi_address address;
    trp_ref here = system->top.root;
    const char *rest = path;

    *ret_remote = false;
    if (strstr(path, "://") != NULL) {
        if (trpi_address_parse(path, &address, &rest, NULL) != TRP_OK) {
            return TRP_EINVAL;
        }
        *ret_remote = !trpi_address_is_own(system, &address);
    }
    if (trpi_selection_parse(rest, &parsed, NULL) != TRP_OK || !parsed.absolute ||
        parsed.has_pattern) {
        return TRP_EINVAL;
    }
    for (uint32_t i = 0; i < parsed.count && !trp_ref_is_none(here) && !*ret_remote; i++) {
        const trpi_element *e = &parsed.elements[i];

        if (e->kind != TRPI_ELEMENT_NAME) {
            return TRP_EINVAL;
        }
        here = trpi_path_child(system, here.slot, rest + e->offset, e->bytes);
    }
    *ret_ref = *ret_remote ? (trp_ref)TRP_REF_NONE : here;
    return TRP_OK;
}

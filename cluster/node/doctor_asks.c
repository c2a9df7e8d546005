/* doctor_asks.c - see doctor_asks.h.
 *
 * Shape.   asks --trim: drop asks of actors that wait for nobody, until none is left to drop-->
 *          each actor that is left waits for one that is left --follow--> a cycle
 * Cost.    Sorting the keys; then a pass over the asks for each that is dropped, and two for each
 *          cycle.
 * Tests.   tests/unit/node/doctor_asks_test.c
 */
#include "cluster/node/doctor_asks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

#define ROOM_FIRST 16u
#define MORE_BYTES 40u /* ", and N more", ", which waits for the first" */

bool
trpi_doctor_asks_add(trpi_doctor_asks *asks, const char *name, const char *from, const char *to,
                     uint64_t waited_ms)
{
    if (asks->count == asks->room) {
        size_t room = asks->room == 0 ? ROOM_FIRST : 2 * asks->room;
        trpi_doctor_ask *list = trpi_realloc(asks->list, room * sizeof *list);
        if (list == NULL) {
            return false;
        }
        asks->list = list;
        asks->room = room;
    }
    trpi_doctor_ask ask = {
        trpi_strdup(name), trpi_strdup(from), trpi_strdup(to), waited_ms, 0, 0
    };
    if (ask.name == NULL || ask.from == NULL || ask.to == NULL) {
        trpi_free(ask.name);
        trpi_free(ask.from);
        trpi_free(ask.to);
        return false;
    }
    asks->list[asks->count++] = ask;
    return true;
}

static void
ask_drop(trpi_doctor_asks *asks, size_t index)
{
    trpi_free(asks->list[index].name);
    trpi_free(asks->list[index].from);
    trpi_free(asks->list[index].to);
    asks->list[index] = asks->list[--asks->count];
}

void
trpi_doctor_asks_fini(trpi_doctor_asks *asks)
{
    while (asks->count > 0) {
        ask_drop(asks, asks->count - 1);
    }
    trpi_free(asks->list);
    *asks = (trpi_doctor_asks){ NULL, 0, 0 };
}

static int
longest_first(const void *a, const void *b)
{
    uint64_t one = ((const trpi_doctor_ask *)a)->waited_ms;
    uint64_t two = ((const trpi_doctor_ask *)b)->waited_ms;
    return (one < two) - (one > two);
}

bool
trpi_doctor_asks_longest(trpi_doctor_asks *asks, size_t max)
{
    if (asks->count <= max) {
        return true;
    }
    qsort(asks->list, asks->count, sizeof *asks->list, longest_first);
    while (asks->count > max) {
        ask_drop(asks, asks->count - 1);
    }
    return false;
}

/* ---- numbers for keys ------------------------------------------------------------------------ */

static int
keys_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static uint32_t
id_of(const char **keys, size_t count, const char *key)
{
    const char **found = bsearch(&key, keys, count, sizeof *keys, keys_compare);
    trpi_assert(found != NULL);
    return (uint32_t)(found - keys);
}

/* Number the actors. Returns how many there are, 0: no memory (or no ask). */
static size_t
actors_number(trpi_doctor_asks *asks)
{
    const char **keys = trpi_alloc((2 * asks->count + 1) * sizeof *keys);
    size_t count = 0;
    if (keys == NULL) {
        return 0;
    }
    for (size_t i = 0; i < asks->count; i++) {
        keys[2 * i] = asks->list[i].from;
        keys[2 * i + 1] = asks->list[i].to;
    }
    qsort(keys, 2 * asks->count, sizeof *keys, keys_compare);
    for (size_t i = 0; i < 2 * asks->count; i++) {
        if (count == 0 || strcmp(keys[count - 1], keys[i]) != 0) {
            keys[count++] = keys[i];
        }
    }
    for (size_t i = 0; i < asks->count; i++) {
        asks->list[i].from_id = id_of(keys, count, asks->list[i].from);
        asks->list[i].to_id = id_of(keys, count, asks->list[i].to);
    }
    trpi_free(keys);
    return count;
}

/* ---- asks that are in no cycle --------------------------------------------------------------- */

/* Is it the key of an actor of the node `self`? */
static bool
is_of(const char *key, const char *self)
{
    size_t bytes = strlen(self);
    return strncmp(key, self, bytes) == 0 && key[bytes] == '/';
}

/* Drop asks until each is for an actor that waits itself, or may. waits: how many asks each actor
 * has. */
static void
asks_trim(trpi_doctor_asks *asks, const char *self, uint32_t *waits)
{
    for (bool dropped = true; dropped;) {
        dropped = false;
        for (size_t i = asks->count; i > 0; i--) {
            const trpi_doctor_ask *ask = &asks->list[i - 1];
            bool may_wait = self != NULL && !is_of(ask->to, self);
            if (waits[ask->to_id] == 0 && !may_wait) {
                waits[ask->from_id]--;
                ask_drop(asks, i - 1);
                dropped = true;
            }
        }
    }
}

/* Give the number of asks of each actor; NULL: no memory, or no ask. */
static uint32_t *
waits_count(trpi_doctor_asks *asks, size_t *ret_actors)
{
    size_t count = *ret_actors = actors_number(asks);
    uint32_t *waits = count > 0 ? trpi_alloc(count * sizeof *waits) : NULL;
    for (size_t i = 0; waits != NULL && i < asks->count; i++) {
        waits[asks->list[i].from_id]++;
    }
    return waits;
}

bool
trpi_doctor_asks_trim(trpi_doctor_asks *asks, const char *self)
{
    size_t actors;
    uint32_t *waits = waits_count(asks, &actors);
    bool ok = waits != NULL || asks->count == 0;
    if (waits != NULL) {
        asks_trim(asks, self, waits);
    }
    trpi_free(waits);
    return ok;
}

/* ---- cycles ---------------------------------------------------------------------------------- */

typedef struct actor {
    size_t ask; /* by which it waits: an index, of one that is left */
    bool is_in; /* the cycle */
} actor;

/* All asks that are left are in a cycle or lead to one: follow them. Marks the actors of the cycle,
 * and returns that which has waited longest. */
static uint32_t
cycle_find(const trpi_doctor_asks *asks, actor *actors)
{
    uint32_t at = asks->list[0].from_id, first;
    for (size_t i = 0; i < asks->count; i++) {
        actors[asks->list[i].from_id].ask = i;
    }
    for (size_t i = 0; i < asks->count; i++) { /* so many steps end in the cycle */
        at = asks->list[actors[at].ask].to_id;
    }
    for (first = at; !actors[at].is_in; at = asks->list[actors[at].ask].to_id) {
        actors[at].is_in = true;
        if (asks->list[actors[at].ask].waited_ms > asks->list[actors[first].ask].waited_ms) {
            first = at;
        }
    }
    return first;
}

/* The name as it is shown: without the address of `self`, NULL: with. */
static const char *
name_shown(const trpi_doctor_ask *ask, const char *self)
{
    return self == NULL ? ask->name : ask->name + strlen(self);
}

static void
cycle_write(const trpi_doctor_asks *asks, const actor *actors, uint32_t first, const char *self,
            char *text, size_t bytes)
{
    const trpi_doctor_ask *ask = &asks->list[actors[first].ask], *next;
    size_t left = 0, used;
    do { /* how many links; and is one elsewhere? */
        self = self != NULL && is_of(ask->from, self) ? self : NULL;
        left++;
        ask = &asks->list[actors[ask->to_id].ask];
    } while (ask->from_id != first);
    used = (size_t)snprintf(text, bytes, "%s", name_shown(ask, self));
    for (; left > 0 && used < bytes; left--, ask = next) {
        char link[2048];
        next = &asks->list[actors[ask->to_id].ask];
        int more =
            snprintf(link, sizeof link, "%s has waited %" PRIu64 ".%" PRIu64 " s for %s",
                     ask->from_id == first ? "" : ", which", ask->waited_ms / 1000,
                     ask->waited_ms % 1000 / 100, next == ask ? "itself" : name_shown(next, self));
        if (used + (size_t)more + (left > 1 ? MORE_BYTES : 0) >= bytes) {
            (void)snprintf(text + used, bytes - used,
                           left > 1 ? ", and %zu more" : ", which waits for the first", left - 1);
            return;
        }
        used += (size_t)snprintf(text + used, bytes - used, "%s", link);
    }
}

/* Drop the asks of the actors of the cycle, and those of others for them: what waits for a cycle is
 * none of its own. */
static void
cycle_drop(trpi_doctor_asks *asks, const actor *actors, uint32_t *waits)
{
    for (size_t i = asks->count; i > 0; i--) {
        const trpi_doctor_ask *ask = &asks->list[i - 1];
        if (actors[ask->from_id].is_in || actors[ask->to_id].is_in) {
            waits[ask->from_id]--;
            ask_drop(asks, i - 1);
        }
    }
}

uint32_t
trpi_doctor_asks_cycles(trpi_doctor_asks *asks, const char *self, char *text, size_t bytes)
{
    size_t count;
    uint32_t *waits = waits_count(asks, &count), cycles = 0;
    actor *actors = waits != NULL ? trpi_alloc(count * sizeof *actors) : NULL;
    if (actors != NULL) {
        asks_trim(asks, NULL, waits);
    }
    while (actors != NULL && asks->count > 0) {
        uint32_t first = cycle_find(asks, actors);
        if (cycles++ == 0) {
            cycle_write(asks, actors, first, self, text, bytes);
        }
        cycle_drop(asks, actors, waits);
        asks_trim(asks, NULL, waits);
    }
    trpi_free(actors);
    trpi_free(waits);
    trpi_doctor_asks_fini(asks);
    return cycles;
}

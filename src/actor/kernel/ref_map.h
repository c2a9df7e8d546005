/* ref_map.h - a small hash map from trp_ref to a pointer; owned by one actor, no lock inside.
 *
 * A zeroed map is an empty one and has no memory. Errors: TRP_ENOMEM only.
 */
#ifndef TRPI_ACTOR_KERNEL_REF_MAP_H
#define TRPI_ACTOR_KERNEL_REF_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include <troupe/base.h>

#include "base/table.h"

typedef struct trpi_ref_pair {
    trp_ref ref; /* none: empty place */
    void *value;
} trpi_ref_pair;

typedef trpi_table trpi_ref_map;

/* Add or replace a pair. On an error the map is unchanged. */
trp_err trpi_ref_map_put(trpi_ref_map *map, trp_ref ref, void *value);
/* Return the pair of ref, NULL: none; valid until the next put or remove. */
trpi_ref_pair *trpi_ref_map_find(const trpi_ref_map *map, trp_ref ref);
/* Remove the pair of ref; false: none. *ret_value (may be NULL) gets its value. */
bool trpi_ref_map_remove(trpi_ref_map *map, trp_ref ref, void **ret_value);
/* Iterate: *position starts at 0; NULL: the end. No put or remove in between. */
trpi_ref_pair *trpi_ref_map_next(const trpi_ref_map *map, uint32_t *position);
void trpi_ref_map_fini(trpi_ref_map *map); /* the caller frees the values before */

#endif

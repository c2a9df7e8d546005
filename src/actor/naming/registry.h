/* registry.h - which child of which parent has which name.
 *
 * A name is taken from the moment of the spawn until the parent has seen the child end. Lookup is
 * O(1) per path element; auto-named actors ("$...", path.h) are never in here.
 */
#ifndef TRPI_ACTOR_NAMING_REGISTRY_H
#define TRPI_ACTOR_NAMING_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/actor.h>

typedef struct trpi_registry trpi_registry;

/* Gives *ret_registry. Errors: TRP_ENOMEM. */
trp_err trpi_registry_new(uint64_t seed, trpi_registry **ret_registry);
void trpi_registry_free(trpi_registry *registry); /* NULL is fine */

/* Take `name` below the parent; *ret_index (never 0) is what a cell keeps of it. Errors:
 * TRP_EEXIST, TRP_ENOMEM. Thread: any. */
trp_err trpi_registry_reserve(trpi_registry *registry, uint32_t parent_slot, const char *name,
                              size_t name_bytes, uint32_t *ret_index);
/* Enter the cell that has the name; until then lookups miss. Thread: any. */
void trpi_registry_bind(trpi_registry *registry, uint32_t index, uint32_t slot,
                        uint32_t generation);
/* Thread: any. */
bool trpi_registry_find(trpi_registry *registry, uint32_t parent_slot, const char *name,
                        size_t name_bytes, uint32_t *ret_slot, uint32_t *ret_generation);
/* Copy the name, cut at bytes - 1; its length, or 0 when index is free. The caller checks
 * afterwards that the index still belongs to its cell (the cell's generation has not changed).
 * Thread: any. */
size_t trpi_registry_name(trpi_registry *registry, uint32_t index, char *buffer, size_t bytes);
/* As trpi_registry_name, without waiting: false when the lock is held. For a signal handler. */
bool trpi_registry_name_try(trpi_registry *registry, uint32_t index, char *buffer, size_t bytes);
/* Free the name for reuse. Thread: the parent's runner. */
void trpi_registry_release(trpi_registry *registry, uint32_t index);

#endif

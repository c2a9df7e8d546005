/* path.h - names and paths of live cells and of cells that have ended. */
#ifndef TRPI_ACTOR_NAMING_PATH_H
#define TRPI_ACTOR_NAMING_PATH_H

#include "actor/kernel/run.h"
#include "actor/naming/open.h"
#include "actor/naming/name.h"
#include "actor/naming/registry.h"
#include "actor/nodes/open.h"
#include "base/address.h"

#define TRPI_OBITUARIES 4096u   /* paths of the dead that are remembered */
#define TRPI_REMOTE_PATHS 4096u /* paths of remote refs that are remembered */

trp_err trpi_paths_new(trp_system *system);
void trpi_paths_free(trp_system *system);
/* Remember name and parent of an actor that ends; before its generation ends. Thread: runner. */
void trpi_obituary_add(trp_ctx *ctx, const trpi_cell *cell);
/* Write the path without an address, "#uid" when it is not known; returns the length. */
size_t trpi_path_local(trp_system *system, trp_ref ref, char *buffer, size_t bytes);
/* Write the name of a live cell; returns the length. Thread: its runner, or its parent's. */
size_t trpi_cell_name(trp_system *system, const trpi_cell *cell, char *buffer, size_t bytes);
/* The same without waiting: "?" if the lock is held. Async-signal-safe. */
void trpi_cell_name_try(trp_system *system, const trpi_cell *cell, char *name, size_t bytes);
/* Find the live child of a cell by name; TRP_REF_NONE: there is none. Thread: any. */
trp_ref trpi_path_child(trp_system *system, uint32_t parent_slot, const char *name, size_t bytes);

bool trpi_address_is_own(trp_system *system, const trpi_address *address); /* also "troupe://" */

#endif

/* directory.h - names that are given to actors besides their paths: aliases and categories. */
#ifndef TRPI_ACTOR_NAMING_DIRECTORY_H
#define TRPI_ACTOR_NAMING_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>

#include "actor/naming/open.h"

typedef struct trpi_directory trpi_directory;

trp_err trpi_directory_new(trpi_directory **ret_directory); /* TRP_ENOMEM */
void trpi_directory_free(trpi_directory *directory);        /* NULL is fine */
/* Return the living owner of an alias, or TRP_REF_NONE. Any thread, in a run or a bracket. */
trp_ref trpi_alias_get(trp_ctx *ctx, const char *alias, size_t bytes);

#endif

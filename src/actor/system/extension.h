/* extension.h - the extensions of a system: their start and end. */
#ifndef TRPI_ACTOR_SYSTEM_EXTENSION_H
#define TRPI_ACTOR_SYSTEM_EXTENSION_H

#include <troupe/extension.h>

typedef struct trpi_extensions trpi_extensions;

/* Errors: TRP_ENOMEM. */
trp_err trpi_extensions_new(trpi_extensions **ret_extensions);
/* Make the extensions that options and configuration list, in that order; the first failure is
 * logged, and ends it. */
trp_err trpi_extensions_start(trp_system *system);
/* Refuse new ones; call stop, the last one made first. Idempotent. */
void trpi_extensions_stop(trpi_extensions *extensions);
/* Call release, the last one made first. NULL is fine. */
void trpi_extensions_free(trpi_extensions *extensions);

#endif

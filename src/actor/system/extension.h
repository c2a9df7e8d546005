/* extension.h - the extensions of a system, as its birth and its end see them. */
#ifndef TRPI_ACTOR_SYSTEM_EXTENSION_H
#define TRPI_ACTOR_SYSTEM_EXTENSION_H

#include <troupe/extension.h>

typedef struct trpi_extensions trpi_extensions;

/* Errors: TRP_ENOMEM. */
trp_err trpi_extensions_new(trpi_extensions **ret_extensions);
/* Make what options and configuration list, in that order; the first failure ends it, logged. */
trp_err trpi_extensions_start(trp_system *system);
/* No more are made; stop is called, the last one made first. Idempotent. */
void trpi_extensions_stop(trpi_extensions *extensions);
/* release is called, the last one made first. NULL is fine. */
void trpi_extensions_free(trpi_extensions *extensions);

#endif

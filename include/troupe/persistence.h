/* troupe/persistence.h - state that outlives its actor and its host.
 *
 * A system has one journal (troupe/journal.h), given by the configuration of its node
 * (persistence.journal), or by a program or plugin with trp_persistence_start().
 */
#ifndef TROUPE_PERSISTENCE_H
#define TROUPE_PERSISTENCE_H

#include <troupe/base.h>
#include <troupe/journal.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_PERSISTENCE_RECOVERIES_DEFAULT 50

typedef struct trp_persistence_options {
    size_t size;
    /* 1: what may move between hosts is allowed also over a journal that only this node sees; 0: as
     * persistence.local-store-is-enough says */
    uint32_t local_store_is_enough;
    /* actors that recover at once; 0: persistence.max-concurrent-recoveries */
    uint32_t recoveries_max;
} trp_persistence_options;
#define TRP_PERSISTENCE_OPTIONS_INIT                                                               \
    {                                                                                              \
        sizeof(trp_persistence_options), 0, 0                                                      \
    }

/* Give a system its journal, before actors that use one are spawned.
 *
 * Ownership: takes driver, on success only: it is closed when the actors of the system have ended;
 *            borrows options (NULL: all defaults)
 * Errors:    TRP_EINVAL   driver is not complete, or an option has no meaning
 *            TRP_EEXIST   the system has a journal
 *            TRP_ELIMIT   the system has too many extensions
 *            TRP_ENOMEM   out of memory
 *            TRP_ECLOSED  the system has stopped
 * Thread:    any; takes a lock for a moment.
 * Source:    A4J-14, A4J-28.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_persistence_start(trp_system *system,
                                                     const trp_journal_driver *driver,
                                                     const trp_persistence_options *options);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_PERSISTENCE_H */

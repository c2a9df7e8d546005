/* troupe/journal_lmdb.h - a journal in a directory of this node, with LMDB: one process at a time.
 *
 *     trp_journal_lmdb_options options = TRP_JOURNAL_LMDB_OPTIONS_INIT;
 *     const trp_journal_driver *driver = NULL;
 *     char why[TRP_JOURNAL_WHY_BYTES];
 *     options.directory = "/var/lib/shop/journal";
 *     if (trp_journal_lmdb_open(&options, &driver, why, sizeof why) == TRP_OK) {
 *         err = trp_persistence_start(system, driver, NULL);
 *     }
 *
 * Changes that wait are stored together, of all writers: one transaction and one flush for all.
 * An answer *done* means that the flush has returned. A flush that fails is final: everything that
 * waits has failed, and what changes something is refused until the journal is opened again. A
 * disk or a journal that is full is a refusal before anything is written; deletion goes on. */
#ifndef TROUPE_JOURNAL_LMDB_H
#define TROUPE_JOURNAL_LMDB_H

#include <troupe/journal.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_JOURNAL_LMDB_SIZE_MAX_DEFAULT 68719476736u /* 64 GiB */
#define TRP_JOURNAL_LMDB_SIZE_MAX_LEAST 1048576u
#define TRP_JOURNAL_LMDB_SIZE_MAX_MOST 17592186044416u /* 16 TiB */

typedef struct trp_journal_lmdb_options {
    size_t size;           /* sizeof(trp_journal_lmdb_options) */
    const char *directory; /* made if it is missing, its parent is there; on a disk of this host */
    /* Bytes that events and snapshots may take; 0: TRP_JOURNAL_LMDB_SIZE_MAX_DEFAULT. The file
     * grows as it is used, by 2 MiB more for deletions and claims; so many bytes of address space
     * are reserved at once. It may differ at each opening: what is there already is kept. */
    uint64_t size_max;
} trp_journal_lmdb_options;
#define TRP_JOURNAL_LMDB_OPTIONS_INIT                                                              \
    {                                                                                              \
        sizeof(trp_journal_lmdb_options), NULL, 0                                                  \
    }

/* Open the journal in a directory, or make it. Close it with the driver's close, which waits for
 * what has been submitted.
 *
 * Ownership: borrows options; gives *ret_driver, closed by its close; why (NULL: not wanted) is
 *            filled when it fails
 * Errors:    TRP_EINVAL       there is no directory, or size_max is out of range
 *            TRP_EADDRINUSE   this or another process has it open
 *            TRP_EAGAIN       the disk is full
 *            TRP_EDATA        what is there is no journal, or is damaged
 *            TRP_EVERSION     another version has written it
 *            TRP_EIO          a file could not be made, opened, read or written
 *            TRP_ENOMEM       out of memory
 *            TRP_EUNSUPPORTED the library was built without LMDB, or the directory is on a network
 *                             file system
 * Thread:    any; may block until the disk has answered; never from a behaviour.
 * Source:    docs/adr, decision 287.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_journal_lmdb_open(const trp_journal_lmdb_options *options,
                                                     const trp_journal_driver **ret_driver,
                                                     char *why, size_t why_bytes);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_JOURNAL_LMDB_H */

/* durable_lmdb.h - private to the room: a directory as a storage of records. */
#ifndef TRPI_PATTERN_DURABLE_LMDB_H
#define TRPI_PATTERN_DURABLE_LMDB_H

#include <stdint.h>

#include <troupe/durable.h>

#define TRPI_STORE_ERROR_BYTES 512

/* Open a directory that this process does not have open. error: a sentence that says what failed.
 * Gives *ret_storage (its close). Errors: TRP_EUNSUPPORTED, TRP_EADDRINUSE, TRP_EDATA,
 * TRP_EVERSION, TRP_EIO, TRP_ENOMEM. */
trp_err trpi_lmdb_open(const char *directory, uint64_t map_bytes, trp_durable_storage *ret_storage,
                       char *error);

#endif

/* durable_record.h - private to the room: a message as bytes, with names instead of numbers.
 *
 *     header | type name | sender and each ref field: ref, length, path | payload
 *
 * In the byte order of the machine: the file does not travel.
 */
#ifndef TRPI_PATTERN_DURABLE_RECORD_H
#define TRPI_PATTERN_DURABLE_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include <troupe/message.h>

#include "pattern/durable_store.h"

/* Give *ret_record. Errors: TRP_EMSGSIZE (above max_bytes), TRP_ENOMEM. */
trp_err trpi_record_write(trp_system *system, const trp_msg *msg, uint64_t max_bytes,
                          trpi_store_record *ret_record);

typedef struct trpi_record_info {
    const trp_type *type; /* NULL: unknown here, or of another size */
    trp_ref sender;       /* as it is now; may be none */
    int64_t stored_ms;
    const unsigned char *refs; /* behind the sender */
    const unsigned char *payload;
    size_t payload_bytes;
} trpi_record_info;
/* Points into record. Errors: TRP_EDATA. */
trp_err trpi_record_read(trp_system *system, const trpi_store_record *record,
                         trpi_record_info *ret_info);
/* Make the message, to `to`; info->type is known. Changes the record's payload: its refs become
 * those of this process. Gives *ret_msg. Errors: TRP_ENOMEM, TRP_EDATA. */
trp_err trpi_record_msg(trp_system *system, trpi_store_record *record, const trpi_record_info *info,
                        trp_ref to, trp_msg **ret_msg);

#endif

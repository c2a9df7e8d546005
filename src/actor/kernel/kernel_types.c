/* kernel_types.c - built-in types of the room kernel: plain values, and the event of a mailbox that
 * has room again.
 *
 * Tests.   tests/unit/actor/type_test.c
 */
#include "actor/kernel/open.h"
#include "actor/kernel/type.h"

#include <troupe/mailbox.h>

#include "base/built_in_types.h"

static const trp_field i64_fields[] = { { "value", TRP_FIELD_i64, 0 } };

BUILT_IN(trp_string_type, "troupe.string", 0, trp_string_tag, TRP_TYPE_VARIABLE | TRP_TYPE_TEXT,
         TRPI_TYPE_STRING);
BUILT_IN(trp_json_type, "troupe.json", 0, trp_json_tag, TRP_TYPE_VARIABLE | TRP_TYPE_JSON,
         TRPI_TYPE_JSON);
BUILT_IN(trp_bytes_type, "troupe.bytes", 0, trp_bytes_tag, TRP_TYPE_VARIABLE, TRPI_TYPE_BYTES);
BUILT_IN_FIELDS(trp_i64_type, "troupe.i64", 8, trp_i64_tag, 0, i64_fields, TRPI_TYPE_I64);
BUILT_IN(trp_mailbox_ready_type, "troupe.mailbox-ready", sizeof(trp_mailbox_ready),
         trp_mailbox_ready_tag, TRP_TYPE_LOCAL, TRPI_TYPE_MAILBOX_READY);

static const trpi_built_in_type rows[] = {
    { &trp_string_type, 0 }, { &trp_json_type, 0 },          { &trp_bytes_type, 0 },
    { &trp_i64_type, 0 },    { &trp_mailbox_ready_type, 0 },
};

const trpi_type_part trpi_kernel_types = TYPES_OF(rows);

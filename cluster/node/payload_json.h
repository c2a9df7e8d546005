/* payload_json.h - messages as the shell writes and reads them: JSON from field tables. */
#ifndef TRPI_NODE_PAYLOAD_JSON_H
#define TRPI_NODE_PAYLOAD_JSON_H

#include <troupe/system.h>

#include "base/json.h"

/* Find the type of a message that somebody outside the node names: string, json, bytes, or the name
 * of a registered type. Orders to the runtime (troupe.kill), types that stay on a node and private
 * ones are not for them: their payload may be a struct with pointers, and `stop` and `kill` are the
 * orders that are audited. ret_why, at least TRPI_OUTSIDE_WHY_BYTES, gets the reason.
 * Errors: TRP_ENOTYPE, TRP_EUNSUPPORTED (not from outside). Any thread. */
#define TRPI_OUTSIDE_WHY_BYTES 256u
trp_err trpi_type_from_outside(const char *name, const trp_type **ret_type, char *ret_why);

/* Make the payload of type from text: the text itself for text and JSON types, an object of fields
 * for a type with a field table. Absent fields are 0. A ref may only be null. Gives *ret_payload
 * (trpi_free). Errors: TRP_EDATA, TRP_EMSGSIZE (a text longer than its field), TRP_ENOTYPE (the
 * type has no JSON form), TRP_ENOMEM; *ret_what, bytes_max bytes, gets the reason. */
trp_err trpi_payload_from_json(const trp_type *type, const char *text, void **ret_payload,
                               size_t *ret_bytes, char *ret_what, size_t what_bytes);

/* {"type":NAME, "text"|"json"|"base64": ...}. NULL: no memory. */
cJSON *trpi_payload_to_json(trp_system *system, const trp_msg *msg);

#endif

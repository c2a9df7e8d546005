/* delivery_types.c - the types of reliable delivery. */
#include "persistence/delivery.h"

#include "actor/actor.h"

#define FIELD(kind_, of, member)                                                                   \
    {                                                                                              \
        .name = #member, .kind = TRP_FIELD_##kind_, .offset = offsetof(of, member)                 \
    }
static const trp_field request_next_fields[] = { FIELD(u32, trp_delivery_request_next, messages) };
static const trp_field confirmed_fields[] = { FIELD(u64, trp_delivery_confirmed, number) };
static const trp_field register_fields[] = { FIELD(ref, trpi_delivery_register, consumer),
                                             FIELD(u64, trpi_delivery_register, nonce) };
static const trp_field opened_fields[] = { FIELD(u64, trpi_delivery_opened, nonce),
                                           FIELD(u64, trpi_delivery_opened, stream),
                                           FIELD(u64, trpi_delivery_opened, producer),
                                           FIELD(u32, trpi_delivery_opened, is_one) };
static const trp_field done_fields[] = { FIELD(u64, trpi_delivery_done, number),
                                         FIELD(u64, trpi_delivery_done, last) };
static const trp_field closed_fields[] = { FIELD(u64, trpi_delivery_closed, stream) };
static const trp_field request_fields[] = { FIELD(u64, trpi_delivery_request, stream),
                                            FIELD(u64, trpi_delivery_request, confirmed),
                                            FIELD(u64, trpi_delivery_request, received),
                                            FIELD(u64, trpi_delivery_request, upto),
                                            FIELD(u32, trpi_delivery_request, resend) };
enum { request_next_tag, confirmed_tag, confirm_tag, private_tag };
#define STRUCT(symbol, text, of, type_tag, type_flags, table)                                      \
    trp_type symbol = { .name = "delivery." text,                                                  \
                        .bytes = sizeof(of),                                                       \
                        .tag = (type_tag),                                                         \
                        .flags = (type_flags),                                                     \
                        .fields = (table),                                                         \
                        .fields_count = sizeof(table) / sizeof((table)[0]) }
#define OPAQUE(symbol, text, type_tag, type_flags)                                                 \
    trp_type symbol = { .name = "delivery." text,                                                  \
                        .tag = (type_tag),                                                         \
                        .flags = TRP_TYPE_VARIABLE | (type_flags) }
STRUCT(trp_delivery_request_next_type, "request-next", trp_delivery_request_next, request_next_tag,
       0, request_next_fields);
STRUCT(trp_delivery_confirmed_type, "confirmed", trp_delivery_confirmed, confirmed_tag, 0,
       confirmed_fields);
OPAQUE(trp_delivery_confirm_type, "confirm", confirm_tag, 0);
STRUCT(trpi_delivery_register_type, "priv-register", trpi_delivery_register, private_tag,
       TRP_TYPE_POSSIBLY_HARMFUL, register_fields);
STRUCT(trpi_delivery_opened_type, "priv-opened", trpi_delivery_opened, private_tag + 1,
       TRP_TYPE_POSSIBLY_HARMFUL, opened_fields);
STRUCT(trpi_delivery_closed_type, "priv-closed", trpi_delivery_closed, private_tag + 2,
       TRP_TYPE_POSSIBLY_HARMFUL, closed_fields);
STRUCT(trpi_delivery_request_type, "priv-request", trpi_delivery_request, private_tag + 3,
       TRP_TYPE_POSSIBLY_HARMFUL, request_fields);
/* Its consumer is told whatever message it carries: in untrusted mode no peer may make one. */
OPAQUE(trpi_delivery_frame_type, "priv-frame", private_tag + 4, TRP_TYPE_POSSIBLY_HARMFUL);
OPAQUE(trpi_delivery_tick_type, "priv-tick", private_tag + 5, TRP_TYPE_LOCAL);
/* Their names are in journals. */
OPAQUE(trpi_delivery_kept_type, "kept", private_tag + 6, TRP_TYPE_POSSIBLY_HARMFUL);
STRUCT(trpi_delivery_done_type, "done", trpi_delivery_done, private_tag + 7,
       TRP_TYPE_POSSIBLY_HARMFUL, done_fields);
static trp_type *const types[] = { &trp_delivery_request_next_type, &trp_delivery_confirmed_type,
                                   &trp_delivery_confirm_type,      &trpi_delivery_register_type,
                                   &trpi_delivery_opened_type,      &trpi_delivery_closed_type,
                                   &trpi_delivery_request_type,     &trpi_delivery_frame_type,
                                   &trpi_delivery_tick_type,        &trpi_delivery_kept_type,
                                   &trpi_delivery_done_type };
const trp_protocol trp_delivery_protocol = { "delivery", types, sizeof types / sizeof types[0], 0 };

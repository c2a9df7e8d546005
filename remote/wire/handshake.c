/* handshake.c - the body of handshake frames: a msgpack map, so that versions can be mixed.
 *
 * Keys: "from" address text, "uid" text of decimal digits, "to" address text, "to-uid", "frame-max"
 * number, "reason" text, "features" bits, "minor" number. Unknown keys are skipped, missing ones
 * are zero; "from" and "uid" are required, except in a refusal.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/pack.h"
#include "base/units.h"
#include "remote/wire/codec.h"

_Static_assert(TRPI_CONTROL_FRAME_BYTES_MAX == TRPI_PACK_BYTES_MAX,
               "what the cluster can read and write is what may be sent");

static void
pack_uid(trpi_pack_writer *writer, const char *key, uint64_t uid)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, uid);
    trpi_pack_text(writer, key);
    trpi_pack_text(writer, text);
}

static void
pack_address(trpi_pack_writer *writer, const char *key, const trpi_address *address)
{
    char text[TRPI_ADDRESS_TEXT_BYTES];
    trpi_pack_text(writer, key);
    trpi_pack_text(writer, trpi_address_format(address, text, sizeof text));
}

trp_err
trpi_handshake_append(trpi_buffer *out, enum trpi_frame_kind kind, const trpi_handshake *handshake)
{
    trpi_pack_writer writer = { .limit = TRPI_HANDSHAKE_BYTES_MAX };
    trpi_pack_map(&writer, 6u + (handshake->features != 0) + (handshake->minor > 1));
    pack_address(&writer, "from", &handshake->from.address);
    pack_uid(&writer, "uid", handshake->from.uid);
    pack_address(&writer, "to", &handshake->to);
    pack_uid(&writer, "to-uid", handshake->to_uid);
    trpi_pack_text(&writer, "frame-max");
    trpi_pack_u64(&writer, handshake->frame_bytes_max);
    trpi_pack_text(&writer, "reason");
    trpi_pack_text(&writer, handshake->reason);
    if (handshake->features != 0) {
        trpi_pack_text(&writer, "features");
        trpi_pack_u64(&writer, handshake->features);
    }
    if (handshake->minor > 1) { /* 0 and 1 do not send it */
        trpi_pack_text(&writer, "minor");
        trpi_pack_u64(&writer, handshake->minor);
    }
    trp_err err = writer.err;
    if (err == TRP_OK) {
        err = trpi_frame_append(out, kind, 0, 0, writer.buffer.data, writer.buffer.count);
    }
    trpi_buffer_fini(&writer.buffer);
    return err;
}

static bool
get_uid(const trpi_pack_value *map, const char *key, uint64_t *ret_uid)
{
    char text[24];
    return trpi_pack_get_text(trpi_pack_find(map, key), text, sizeof text) &&
           trpi_whole_parse(text, 0, UINT64_MAX, ret_uid);
}

static bool
get_address(const trpi_pack_value *map, const char *key, trpi_address *ret_address)
{
    char text[TRPI_ADDRESS_TEXT_BYTES];
    return trpi_pack_get_text(trpi_pack_find(map, key), text, sizeof text) &&
           trpi_address_parse(text, ret_address, NULL, NULL) == TRP_OK;
}

trp_err
trpi_handshake_decode(const trpi_frame *frame, trpi_handshake *ret_handshake)
{
    trpi_pack_doc *doc = NULL;
    if (frame->bytes > TRPI_HANDSHAKE_BYTES_MAX) {
        return TRP_EMSGSIZE;
    }
    trp_err err = trpi_pack_parse(frame->body, frame->bytes, &doc);
    if (err != TRP_OK) {
        return err;
    }
    const trpi_pack_value *map = trpi_pack_root(doc);
    uint64_t frame_bytes_max = 0, features = 0, minor = 0;
    memset(ret_handshake, 0, sizeof *ret_handshake);
    bool named = get_address(map, "from", &ret_handshake->from.address) &&
                 get_uid(map, "uid", &ret_handshake->from.uid) && ret_handshake->from.uid != 0 &&
                 get_address(map, "to", &ret_handshake->to);
    (void)get_uid(map, "to-uid", &ret_handshake->to_uid);
    (void)trpi_pack_get_u64(trpi_pack_find(map, "frame-max"), UINT32_MAX, &frame_bytes_max);
    ret_handshake->frame_bytes_max = (uint32_t)frame_bytes_max;
    (void)trpi_pack_get_u64(trpi_pack_find(map, "features"), UINT64_MAX, &features);
    ret_handshake->features = (uint32_t)features; /* without bits of later versions */
    (void)trpi_pack_get_u64(trpi_pack_find(map, "minor"), UINT32_MAX, &minor);
    ret_handshake->minor = (uint32_t)minor;
    if (!trpi_pack_get_text(trpi_pack_find(map, "reason"), ret_handshake->reason,
                            sizeof ret_handshake->reason)) {
        ret_handshake->reason[0] = '\0';
    }
    trpi_pack_doc_free(doc);
    return named || frame->kind == TRPI_FRAME_HANDSHAKE_REFUSAL ? TRP_OK : TRP_EDATA;
}

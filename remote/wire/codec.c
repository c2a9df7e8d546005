/* codec.c - see the header. The handshake is in handshake.c.
 *
 * Shape.  USER    to slot 4, generation 4, from slot 4, generation 4, wire id 8, payload, [trace],
 *                 [nodes]
 *         SELECT  from slot 4, generation 4, wire id 8, path length 2, path, payload, [trace],
 *                 [nodes]
 *         MANY    as USER up to the wire id, { length 4, payload } ...
 *         nodes   { uid 8, length 2, address text } x count, count 2, bytes of the entries 2
 *         trace   id 16, span 8, parent 8, sent 8, attempt 4; between the payload and the nodes
 *         The node section is at the end: it is known only when the payload has been encoded.
 * Must hold.
 *   codec-C1  Decoding reads nothing beyond body + bytes, for any bytes.
 *   codec-C2  A failed encode leaves the buffer unchanged: only this frame is dropped.
 * Tests.  tests/unit/remote/codec_test.c, tests/fuzz/frame_fuzz.c, tests/golden/
 */
#include "remote/wire/codec.h"

#include <string.h>

#include "base/assert.h"
#include "base/wire.h"

enum {
    USER_FIXED_BYTES = TRPI_USER_FIXED_BYTES,
    SELECT_FIXED_BYTES = 18,
    SECTION_TAIL_BYTES = 4,
    SECTION_ENTRY_LEAST = 10
};

_Static_assert(TRPI_SYSTEM_BODY_BYTES == 1 + 1 + 2 + 4 * 4, "signal, flag, reserved, two refs");

trp_err
trpi_node_section_append(trpi_buffer *out, const trpi_node_map *map)
{
    size_t begin = out->count;
    for (uint32_t i = 0; i < map->third_count; i++) {
        const trpi_node_id *id = map->get(map->arg, map->third[i]);
        if (id == NULL) {
            return TRP_EINVAL; /* a ref with a made-up node */
        }
        char text[TRPI_ADDRESS_TEXT_BYTES];
        size_t length = strlen(trpi_address_format(&id->address, text, sizeof text));
        uint8_t head[SECTION_ENTRY_LEAST];
        trpi_put_u64(head, id->uid);
        trpi_put_u16(head + 8, (uint16_t)length);
        trp_err err = trpi_buffer_append(out, head, sizeof head, TRPI_BUFFER_NO_LIMIT);
        err = err != TRP_OK ? err : trpi_buffer_append(out, text, length, TRPI_BUFFER_NO_LIMIT);
        if (err != TRP_OK) {
            return err;
        }
    }
    uint8_t tail[SECTION_TAIL_BYTES];
    trpi_put_u16(tail, (uint16_t)map->third_count);
    trpi_put_u16(tail + 2, (uint16_t)(out->count - begin));
    return trpi_buffer_append(out, tail, sizeof tail, TRPI_BUFFER_NO_LIMIT);
}

static trp_err
fixed_append(trpi_buffer *out, const trpi_message *message)
{
    uint8_t fixed[TRPI_FRAME_HEADER_BYTES + USER_FIXED_BYTES] = { 0 };
    /* the header is written when the length is known */
    uint8_t *at = fixed + TRPI_FRAME_HEADER_BYTES;
    if (message->path == NULL) {
        trpi_put_u32(at, message->to_slot);
        trpi_put_u32(at + 4, message->to_generation);
        at += 8;
    }
    trpi_put_u32(at, message->sender.slot);
    trpi_put_u32(at + 4, message->sender.generation);
    trpi_put_u64(at + 8, message->wire_id);
    at += 16;
    if (message->path != NULL) {
        trpi_put_u16(at, (uint16_t)message->path_bytes);
        at += 2;
    }
    trp_err err = trpi_buffer_append(out, fixed, (size_t)(at - fixed), TRPI_BUFFER_NO_LIMIT);
    return err != TRP_OK || message->path == NULL
               ? err
               : trpi_buffer_append(out, message->path, message->path_bytes, TRPI_BUFFER_NO_LIMIT);
}

static trp_err
trace_append(trpi_buffer *out, const trpi_wire_trace *trace)
{
    uint8_t section[TRPI_TRACE_SECTION_BYTES];
    trpi_put_u64(section, trace->trace.id_high);
    trpi_put_u64(section + 8, trace->trace.id_low);
    trpi_put_u64(section + 16, trace->trace.span);
    trpi_put_u64(section + 24, trace->parent);
    trpi_put_u64(section + 32, trace->sent_ns);
    trpi_put_u32(section + 40, trace->trace.attempt);
    return trpi_buffer_append(out, section, sizeof section, TRPI_BUFFER_NO_LIMIT);
}

/* The section ends what is left of the body. */
static trp_err
trace_split(trpi_message *message)
{
    if (message->payload_bytes < TRPI_TRACE_SECTION_BYTES) {
        return TRP_EDATA;
    }
    message->payload_bytes -= TRPI_TRACE_SECTION_BYTES;
    const uint8_t *section = message->payload + message->payload_bytes;
    message->traced = true;
    message->trace.trace = (trp_trace){ trpi_get_u64(section), trpi_get_u64(section + 8),
                                        trpi_get_u64(section + 16), trpi_get_u32(section + 40), 0 };
    message->trace.parent = trpi_get_u64(section + 24);
    message->trace.sent_ns = trpi_get_u64(section + 32);
    bool is_none = (message->trace.trace.id_high | message->trace.trace.id_low) == 0;
    return is_none || message->trace.trace.span == 0 ? TRP_EDATA : TRP_OK;
}

trp_err
trpi_message_encode(trpi_buffer *out, const trpi_serializer *serializer, trpi_node_map *map,
                    uint32_t frame_bytes_max, const trpi_message *message)
{
    size_t begin = out->count;
    uint8_t sender_code = 0;
    map->third_count = 0;
    if (message->path_bytes > TRP_PATH_BYTES_MAX || message->payload_bytes > frame_bytes_max) {
        return TRP_EMSGSIZE;
    }
    /* first: code 3 at most */
    trp_err err = trpi_node_map_encode(map, message->sender.node, &sender_code);
    trpi_assert(err == TRP_OK && sender_code <= TRPI_MESSAGE_SENDER_MASK);
    err = fixed_append(out, message);
    if (err == TRP_OK) {
        err = trpi_encode(serializer, message->type, message->payload, message->payload_bytes, map,
                          out);
    }
    if (err == TRP_OK && message->traced) {
        err = trace_append(out, &message->trace);
    }
    if (err == TRP_OK && map->third_count > 0) {
        err = trpi_node_section_append(out, map);
    }
    size_t body = out->count - begin - TRPI_FRAME_HEADER_BYTES;
    if (err == TRP_OK && body > frame_bytes_max) {
        err = TRP_EMSGSIZE;
    }
    if (err != TRP_OK) {
        out->count = begin; /* codec-C2 */
        return err;
    }
    unsigned flags = sender_code | (map->third_count > 0 ? TRPI_MESSAGE_HAS_NODES : 0u) |
                     (message->anyone ? TRPI_MESSAGE_ANYONE : 0u) |
                     (message->traced ? TRPI_MESSAGE_TRACED : 0u);
    trpi_frame_header_encode(out->data + begin, (uint32_t)body,
                             message->path == NULL ? TRPI_FRAME_USER : TRPI_FRAME_SELECT,
                             (uint8_t)flags, serializer->id);
    return TRP_OK;
}

trp_err
trpi_many_begin(trpi_buffer *out, const trpi_message *message, uint8_t sender_code)
{
    size_t begin = out->count;
    trp_err err = fixed_append(out, message);
    if (err == TRP_OK) {
        trpi_frame_header_encode(out->data + begin, USER_FIXED_BYTES, TRPI_FRAME_MANY, sender_code,
                                 message->serializer);
    }
    return err;
}

trp_err
trpi_many_append(trpi_buffer *out, size_t at, const trpi_serializer *serializer, trpi_node_map *map,
                 const trp_type *type, const void *payload, size_t bytes)
{
    size_t begin = out->count;
    if (begin - at + TRPI_MANY_RECORD_BYTES + bytes > TRPI_MANY_BYTES_MAX) {
        return TRP_EMSGSIZE;
    }
    trp_err err = trpi_buffer_reserve(out, TRPI_MANY_RECORD_BYTES + bytes, TRPI_BUFFER_NO_LIMIT);
    if (err != TRP_OK) {
        return err;
    }
    out->count += TRPI_MANY_RECORD_BYTES;
    if (serializer == NULL) { /* as it is */
        memcpy(out->data + out->count, payload, bytes);
        out->count += bytes;
    } else {
        map->third_count = 0;
        err = trpi_encode(serializer, type, payload, bytes, map, out);
        err = err == TRP_OK && map->third_count > 0 ? TRP_ELIMIT : err;
        err = err == TRP_OK && out->count - at > TRPI_MANY_BYTES_MAX ? TRP_EMSGSIZE : err;
        if (err != TRP_OK) {
            out->count = begin; /* codec-C2 */
            return err;
        }
    }
    trpi_put_u32(out->data + begin, (uint32_t)(out->count - begin - TRPI_MANY_RECORD_BYTES));
    trpi_put_u32(out->data + at, (uint32_t)(out->count - at - TRPI_FRAME_HEADER_BYTES));
    return TRP_OK;
}

trp_err
trpi_node_section_decode(const trpi_frame *frame, trpi_node_map *map, size_t *ret_left)
{
    if (frame->bytes < SECTION_TAIL_BYTES) {
        return TRP_EDATA;
    }
    const uint8_t *tail = frame->body + frame->bytes - SECTION_TAIL_BYTES;
    uint32_t count = trpi_get_u16(tail);
    size_t bytes = trpi_get_u16(tail + 2);
    if (count == 0 || count > TRPI_MAP_NODES_MAX || bytes > frame->bytes - SECTION_TAIL_BYTES) {
        return TRP_EDATA;
    }
    const uint8_t *at = tail - bytes;
    *ret_left = (size_t)(at - frame->body);
    for (uint32_t i = 0; i < count; i++) {
        size_t left = (size_t)(tail - at);
        size_t length = left >= SECTION_ENTRY_LEAST ? trpi_get_u16(at + 8) : SIZE_MAX;
        if (left < SECTION_ENTRY_LEAST || length > left - SECTION_ENTRY_LEAST ||
            length >= TRPI_ADDRESS_TEXT_BYTES) {
            return TRP_EDATA;
        }
        char text[TRPI_ADDRESS_TEXT_BYTES] = { 0 };
        trpi_node_id id;
        memset(&id, 0, sizeof id);
        id.uid = trpi_get_u64(at);
        memcpy(text, at + SECTION_ENTRY_LEAST, length);
        if (strlen(text) != length || trpi_address_parse(text, &id.address, NULL, NULL) != TRP_OK) {
            return TRP_EDATA;
        }
        trp_err err = map->intern(map->arg, &id, &map->third[i]);
        if (err != TRP_OK) {
            return err;
        }
        map->third_count = i + 1;
        at += SECTION_ENTRY_LEAST + length;
    }
    return at == tail ? TRP_OK : TRP_EDATA;
}

bool
trpi_message_peek(const trpi_frame *frame, trpi_message *ret_message)
{
    bool user = frame->kind != TRPI_FRAME_SELECT;
    if (frame->bytes < (user ? USER_FIXED_BYTES : SELECT_FIXED_BYTES)) {
        return false;
    }
    memset(ret_message, 0, sizeof *ret_message);
    const uint8_t *at = frame->body;
    if (user) {
        ret_message->to_slot = trpi_get_u32(at);
        ret_message->to_generation = trpi_get_u32(at + 4);
        at += 8;
    }
    ret_message->sender.slot = trpi_get_u32(at);
    ret_message->sender.generation = trpi_get_u32(at + 4);
    ret_message->wire_id = trpi_get_u64(at + 8);
    ret_message->serializer = frame->extra;
    ret_message->anyone = (frame->flags & TRPI_MESSAGE_ANYONE) != 0;
    ret_message->payload = at + 16;
    ret_message->payload_bytes = frame->bytes - (size_t)(at + 16 - frame->body);
    return true; /* compressed: the size on the wire */
}

trp_err
trpi_message_decode(const trpi_frame *frame, trpi_node_map *map, trpi_message *ret_message)
{
    if ((frame->flags & TRPI_MESSAGE_COMPRESSED) != 0 || /* the caller expands first */
        !trpi_message_peek(frame, ret_message)) {
        return TRP_EDATA;
    }
    map->third_count = 0;
    if ((frame->flags & TRPI_MESSAGE_HAS_NODES) != 0) {
        if (frame->kind == TRPI_FRAME_MANY) {
            return TRP_EDATA;
        }
        size_t left = 0;
        trp_err err = trpi_node_section_decode(frame, map, &left);
        size_t before = (size_t)(ret_message->payload - frame->body);
        if (err != TRP_OK || left < before) {
            return err != TRP_OK ? err : TRP_EDATA;
        }
        ret_message->payload_bytes = left - before;
    }
    if ((frame->flags & TRPI_MESSAGE_TRACED) != 0) {
        trp_err err = frame->kind == TRPI_FRAME_MANY ? TRP_EDATA : trace_split(ret_message);
        if (err != TRP_OK) {
            return err;
        }
    }
    uint8_t code = frame->flags & TRPI_MESSAGE_SENDER_MASK;
    trp_err err = trpi_node_map_decode(map, code, &ret_message->sender.node);
    if (err != TRP_OK) {
        return err;
    }
    if (ret_message->sender.node == 0) { /* also a node that gets no number */
        ret_message->sender = (trp_ref)TRP_REF_NONE;
    }
    if (frame->kind == TRPI_FRAME_SELECT) {
        size_t length =
            ret_message->payload_bytes >= 2 ? trpi_get_u16(ret_message->payload) : SIZE_MAX;
        if (ret_message->payload_bytes < 2 || length > ret_message->payload_bytes - 2 ||
            length == 0 || length > TRP_PATH_BYTES_MAX ||
            memchr(ret_message->payload + 2, 0, length) != NULL) {
            return TRP_EDATA;
        }
        ret_message->path = (const char *)ret_message->payload + 2;
        ret_message->path_bytes = length;
        ret_message->payload += 2 + length;
        ret_message->payload_bytes -= 2 + length;
    }
    return TRP_OK;
}

void
trpi_system_body_encode(uint8_t body[TRPI_SYSTEM_BODY_BYTES], const trpi_system_message *message)
{
    body[0] = message->signal;
    body[1] = message->flag;
    trpi_put_u16(body + 2, 0);
    trpi_put_u32(body + 4, message->to_slot);
    trpi_put_u32(body + 8, message->to_generation);
    trpi_put_u32(body + 12, message->from_slot);
    trpi_put_u32(body + 16, message->from_generation);
}

trp_err
trpi_system_frame_append(trpi_buffer *out, uint64_t seq, const uint8_t body[TRPI_SYSTEM_BODY_BYTES],
                         const uint8_t *tail, uint32_t tail_bytes)
{
    uint8_t bytes[TRPI_SYSTEM_FRAME_BYTES];
    size_t begin = out->count;
    trpi_put_u64(bytes, seq);
    memcpy(bytes + 8, body, TRPI_SYSTEM_BODY_BYTES);
    trp_err err = trpi_frame_append(out, TRPI_FRAME_SYSTEM, 0, 0, bytes, sizeof bytes);
    if (err == TRP_OK && tail_bytes != 0) {
        err = trpi_buffer_append(out, tail, tail_bytes, TRPI_BUFFER_NO_LIMIT); /* MAX bounds it */
        if (err == TRP_OK) {
            trpi_put_u32(out->data + begin, TRPI_SYSTEM_FRAME_BYTES + tail_bytes);
        } else {
            out->count = begin; /* codec-C2 */
        }
    }
    return err;
}

static bool
has_tail(uint8_t signal)
{
    return signal == TRPI_SIGNAL_DEPLOY || signal == TRPI_SIGNAL_REFUSED ||
           signal == TRPI_SIGNAL_FAILED || signal == TRPI_SIGNAL_RESTART;
}

trp_err
trpi_system_frame_decode(const trpi_frame *frame, trpi_system_message *ret_message)
{
    if (frame->bytes < TRPI_SYSTEM_FRAME_BYTES ||
        frame->bytes > TRPI_SYSTEM_FRAME_BYTES + TRPI_SYSTEM_TAIL_BYTES_MAX ||
        has_tail(frame->body[8]) != (frame->bytes > TRPI_SYSTEM_FRAME_BYTES)) {
        return TRP_EDATA;
    }
    const uint8_t *body = frame->body + 8;
    ret_message->seq = trpi_get_u64(frame->body);
    ret_message->signal = body[0];
    ret_message->flag = body[1];
    ret_message->to_slot = trpi_get_u32(body + 4);
    ret_message->to_generation = trpi_get_u32(body + 8);
    ret_message->from_slot = trpi_get_u32(body + 12);
    ret_message->from_generation = trpi_get_u32(body + 16);
    ret_message->tail = body + TRPI_SYSTEM_BODY_BYTES;
    ret_message->tail_bytes = (uint32_t)(frame->bytes - TRPI_SYSTEM_FRAME_BYTES);
    return body[0] >= TRPI_SIGNAL_WATCH && body[0] <= TRPI_SIGNAL_LAST ? TRP_OK : TRP_EDATA;
}

trp_err
trpi_manifest_append(trpi_buffer *out, uint64_t wire_id, const char *name)
{
    uint8_t body[8 + TRP_TYPE_NAME_BYTES_MAX];
    size_t length = strlen(name);
    trpi_assert(length <= TRP_TYPE_NAME_BYTES_MAX);
    trpi_put_u64(body, wire_id);
    memcpy(body + 8, name, length);
    return trpi_frame_append(out, TRPI_FRAME_MANIFEST, 0, 0, body, 8 + length);
}

trp_err
trpi_manifest_decode(const trpi_frame *frame, trpi_manifest *ret_manifest)
{
    if (frame->bytes <= 8 || frame->bytes > 8 + TRP_TYPE_NAME_BYTES_MAX ||
        memchr(frame->body + 8, 0, frame->bytes - 8) != NULL) {
        return TRP_EDATA;
    }
    memset(ret_manifest, 0, sizeof *ret_manifest);
    ret_manifest->wire_id = trpi_get_u64(frame->body);
    memcpy(ret_manifest->name, frame->body + 8, frame->bytes - 8);
    return TRP_OK;
}

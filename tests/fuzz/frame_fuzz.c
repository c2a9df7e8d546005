/* frame_fuzz.c - a stranger's stream through the frame decoder and every body decoder behind it.
 *
 * The first byte of the input says how the rest is cut into reads. Corpus: tests/fuzz/corpus/frame.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "pattern/reliable.h"
#include "remote/wire/codec.h"
#include "remote/wire/deployment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t interned;
static const trpi_node_id *
node_get(void *arg, uint32_t node)
{
    (void)arg;
    (void)node;
    return NULL;
}
static trp_err
node_intern(void *arg, const trpi_node_id *id, uint32_t *ret_node)
{
    (void)arg;
    (void)id;
    *ret_node = 3 + interned++ % 100;
    return TRP_OK;
}

static const trp_field fields[] = {
    { "b", TRP_FIELD_bool, 0 },    { "n", TRP_FIELD_i64, 8 },      { "r", TRP_FIELD_ref, 16 },
    { "t", TRP_FIELD_text32, 32 }, { "u", TRP_FIELD_text128, 64 }, { "f", TRP_FIELD_f64, 192 },
};
static const trp_type type = { "fuzz.type", 200, 1, 0, fields, 6, 0 };

static trp_err
on_preamble(void *arg, const trpi_preamble *preamble)
{
    (void)arg;
    (void)preamble;
    return TRP_OK;
}

static trpi_node_map
map_make(void)
{
    static trpi_serializers serializers;
    if (serializers.by_id[TRPI_SERIALIZER_RAW] == NULL) {
        trpi_serializers_init(&serializers);
        if (trp_protocol_register(&trp_reliable_proxy_protocol) != TRP_OK) {
            abort();
        }
    }
    return (trpi_node_map){ .serializers = &serializers,
                            .sending = 2,
                            .receiving = 1,
                            .get = node_get,
                            .intern = node_intern };
}

static void
message_decode(const trpi_frame *frame)
{
    trpi_message m;
    trpi_node_map map = map_make();
    trpi_buffer out = { 0 };
    if (trpi_message_decode(frame, &map, &m) == TRP_OK) {
        const trpi_serializer *serializer =
            frame->extra == TRPI_SERIALIZER_JSON     ? &trpi_serializer_json
            : frame->extra == TRPI_SERIALIZER_PARCEL ? &trpi_serializer_parcel
                                                     : &trpi_serializer_raw;
        if (serializer == &trpi_serializer_parcel) {
            (void)serializer->decode(&trpi_parcel_type, m.payload, m.payload_bytes, &map, &out);
        } else if (serializer->decode(&type, m.payload, m.payload_bytes, &map, &out) == TRP_OK) {
            trpi_buffer again = { 0 };
            map.third_count = 0;
            (void)trpi_serializer_raw.encode(&type, out.data, out.count, &map, &again);
            trpi_buffer_fini(&again);
        }
    }
    trpi_buffer_fini(&out);
}

static void
many_decode(const trpi_frame *frame)
{
    trpi_message rest;
    trpi_node_map map = { .sending = 2, .receiving = 1, .get = node_get, .intern = node_intern };
    const uint8_t *payload;
    size_t bytes;
    if (trpi_message_decode(frame, &map, &rest) == TRP_OK) {
        while (trpi_many_next(&rest, &payload, &bytes)) {
            trpi_buffer out = { 0 };
            (void)trpi_serializer_raw.decode(&type, payload, bytes, &map, &out);
            trpi_buffer_fini(&out);
        }
    }
}

static void
tail_decode(const trpi_system_message *system)
{
    trpi_deploy_read order;
    trp_failure failure;
    if (system->tail_bytes == 0) {
        return;
    }
    if (trpi_deploy_decode(system->tail, system->tail_bytes, &order) == TRP_OK) {
        trpi_deploy_read_fini(&order);
    }
    (void)trpi_failure_decode(system->tail, system->tail_bytes, &failure);
}

static trp_err
on_frame(void *arg, const trpi_frame *frame)
{
    (void)arg;
    trpi_handshake handshake;
    trpi_manifest manifest;
    trpi_system_message system;
    switch (frame->kind) {
    case TRPI_FRAME_HANDSHAKE_REQUEST:
    case TRPI_FRAME_HANDSHAKE_RESPONSE:
    case TRPI_FRAME_HANDSHAKE_REFUSAL:
        (void)trpi_handshake_decode(frame, &handshake);
        break;
    case TRPI_FRAME_MANY:
        many_decode(frame);
        break;
    case TRPI_FRAME_USER:
    case TRPI_FRAME_SELECT:
        message_decode(frame);
        break;
    case TRPI_FRAME_MANIFEST:
        (void)trpi_manifest_decode(frame, &manifest);
        break;
    case TRPI_FRAME_SYSTEM:
        if (trpi_system_frame_decode(frame, &system) == TRP_OK) {
            tail_decode(&system);
        }
        break;
    default:
        break;
    }
    return TRP_OK;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    size_t part = data[0] != 0 ? data[0] : size;
    trpi_frame_decoder decoder;
    trpi_frame_decoder_init(&decoder, 16384, on_preamble, on_frame, NULL);
    for (size_t at = 1; at < size;) {
        size_t count = part < size - at ? part : size - at;
        uint8_t *exact = trpi_alloc(count); /* so that a step beyond is seen */
        if (exact == NULL) {
            break;
        }
        memcpy(exact, data + at, count);
        trp_err err = trpi_frame_decoder_feed(&decoder, exact, count);
        trpi_free(exact);
        if (err != TRP_OK) {
            break;
        }
        at += count;
    }
    trpi_frame_decoder_fini(&decoder);
    return 0;
}

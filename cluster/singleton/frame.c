/* frame.c - the bytes of singletons' frames: a msgpack map, unknown keys skipped (docs/wire.md).
 *
 * Tests.   tests/unit/cluster/singleton_test.c
 */
#include <string.h>

#include "base/pack.h"
#include "cluster/singleton/registry.h"

#define FRAME_BYTES_MAX (TRP_SINGLETON_DATA_BYTES_MAX + 256u)

trp_err
singleton_frame_encode(const singleton_frame *frame, trpi_buffer *out)
{
    trpi_pack_writer w = { .buffer = *out, .limit = FRAME_BYTES_MAX };
    bool located = frame->word == SINGLETON_HERE;
    trpi_pack_map(&w, 3u + (located ? 2u : 0u) + (frame->data_bytes > 0 ? 1u : 0u));
    trpi_pack_text(&w, "w");
    trpi_pack_u64(&w, frame->word);
    trpi_pack_text(&w, "n");
    trpi_pack_text(&w, frame->name);
    trpi_pack_text(&w, "r");
    trpi_pack_u64(&w, frame->round);
    if (located) {
        trpi_pack_text(&w, "s");
        trpi_pack_u64(&w, frame->slot);
        trpi_pack_text(&w, "g");
        trpi_pack_u64(&w, frame->generation);
    }
    if (frame->data_bytes > 0) {
        trpi_pack_text(&w, "d");
        trpi_pack_bytes(&w, frame->data, frame->data_bytes);
    }
    *out = w.buffer;
    return w.err;
}

trp_err
singleton_frame_decode(const uint8_t *bytes, size_t count, singleton_frame *ret_frame,
                       struct trpi_pack_doc **ret_doc)
{
    trpi_pack_doc *doc;
    singleton_frame frame = { .word = 0 };
    uint64_t word = 0, slot = 0, generation = 0;
    trp_err err = trpi_pack_parse(bytes, count, &doc);
    if (err != TRP_OK) {
        return err;
    }
    const trpi_pack_value *root = trpi_pack_root(doc);
    bool ok = trpi_pack_get_u64(trpi_pack_find(root, "w"), UINT32_MAX, &word) &&
              trpi_pack_get_text(trpi_pack_find(root, "n"), frame.name, sizeof frame.name) &&
              trpi_pack_get_u64(trpi_pack_find(root, "r"), UINT64_MAX, &frame.round) &&
              frame.name[0] != '\0';
    if (ok && word == SINGLETON_HERE) {
        ok = trpi_pack_get_u64(trpi_pack_find(root, "s"), UINT32_MAX, &slot) &&
             trpi_pack_get_u64(trpi_pack_find(root, "g"), UINT32_MAX, &generation);
    }
    const trpi_pack_value *data = trpi_pack_find(root, "d");
    if (ok && data != NULL) {
        ok = trpi_pack_get_bytes(data, &frame.data, &frame.data_bytes) &&
             frame.data_bytes <= TRP_SINGLETON_DATA_BYTES_MAX;
    }
    if (!ok) {
        trpi_pack_doc_free(doc);
        return TRP_EDATA;
    }
    frame.word = (uint32_t)word;
    frame.slot = (uint32_t)slot;
    frame.generation = (uint32_t)generation;
    *ret_frame = frame;
    *ret_doc = doc;
    return TRP_OK;
}

/* frame.c - the bytes of clients' frames: a msgpack map, unknown keys skipped (docs/wire.md).
 *
 * Limits.  TRPI_CLIENT_FRAME_BYTES_MAX and those of frame.h; a frame beyond them is refused.
 * Tests.   tests/unit/client/frame_test.c
 */
#include "remote/client/frame.h"

#include <string.h>

#include "base/pack.h"

static void
pack_number(trpi_pack_writer *w, const char *key, uint64_t value)
{
    if (value != 0) {
        trpi_pack_text(w, key);
        trpi_pack_u64(w, value);
    }
}

static void
pack_name(trpi_pack_writer *w, const char *key, const char *text)
{
    if (text[0] != '\0') {
        trpi_pack_text(w, key);
        trpi_pack_text(w, text);
    }
}

trp_err
trpi_client_frame_encode(const trpi_client_frame *frame, trpi_buffer *out)
{
    trpi_pack_writer w = { .buffer = *out, .limit = TRPI_CLIENT_FRAME_BYTES_MAX };
    uint32_t pairs = 1u + (frame->client != 0) + (frame->number != 0) + (frame->slot != 0) +
                     (frame->generation != 0) + (frame->ask_slot != 0) +
                     (frame->ask_generation != 0) + (frame->kind != 0) + (frame->err != 0) +
                     (frame->name[0] != '\0') + (frame->why[0] != '\0') +
                     (frame->contacts_count != 0);
    trpi_pack_map(&w, pairs);
    pack_number(&w, "w", frame->word);
    pack_number(&w, "c", frame->client);
    pack_number(&w, "i", frame->number);
    pack_number(&w, "s", frame->slot);
    pack_number(&w, "g", frame->generation);
    pack_number(&w, "S", frame->ask_slot);
    pack_number(&w, "G", frame->ask_generation);
    pack_number(&w, "k", frame->kind);
    pack_number(&w, "e", frame->err);
    pack_name(&w, "n", frame->name);
    pack_name(&w, "why", frame->why);
    if (frame->contacts_count != 0) {
        trpi_pack_text(&w, "a");
        trpi_pack_array(&w, frame->contacts_count);
    }
    for (uint32_t i = 0; i < frame->contacts_count; i++) {
        char text[TRPI_ADDRESS_TEXT_BYTES];
        trpi_pack_text(&w, trpi_address_format(&frame->contacts[i], text, sizeof text));
    }
    *out = w.buffer;
    return w.err;
}

/* An absent number is 0. */
static bool
get_number(const trpi_pack_value *root, const char *key, uint64_t max, uint64_t *ret_value)
{
    const trpi_pack_value *value = trpi_pack_find(root, key);
    *ret_value = 0;
    return value == NULL || trpi_pack_get_u64(value, max, ret_value);
}

static bool
get_u32(const trpi_pack_value *root, const char *key, uint32_t *ret_value)
{
    uint64_t value = 0;
    bool is = get_number(root, key, UINT32_MAX, &value);
    *ret_value = (uint32_t)value;
    return is;
}

static bool
get_name(const trpi_pack_value *root, const char *key, char *text, size_t room)
{
    const trpi_pack_value *value = trpi_pack_find(root, key);
    return value == NULL || trpi_pack_get_text(value, text, room);
}

static bool
get_contacts(const trpi_pack_value *root, trpi_client_frame *frame)
{
    const trpi_pack_value *list = trpi_pack_find(root, "a");
    bool is =
        list == NULL || trpi_pack_get_count(list, TRPI_CLIENT_CONTACTS_MAX, &frame->contacts_count);
    for (uint32_t i = 0; is && i < frame->contacts_count; i++) {
        char text[TRPI_ADDRESS_TEXT_BYTES];
        is = trpi_pack_get_text(trpi_pack_at(list, i), text, sizeof text) &&
             trpi_address_parse(text, &frame->contacts[i], NULL, NULL) == TRP_OK &&
             frame->contacts[i].port != 0;
    }
    return is;
}

/* A why goes into logs. */
static void
why_clean(char *why)
{
    for (char *c = why; *c != '\0'; c++) {
        *c = *c >= ' ' && *c < 127 && *c != '"' ? *c : '?';
    }
}

trp_err
trpi_client_frame_decode(const uint8_t *bytes, size_t count, trpi_client_frame *ret_frame)
{
    trpi_pack_doc *doc;
    trpi_client_frame frame;
    if (count > TRPI_CLIENT_FRAME_BYTES_MAX) {
        return TRP_EMSGSIZE;
    }
    trp_err err = trpi_pack_parse(bytes, count, &doc);
    if (err != TRP_OK) {
        return err;
    }
    memset(&frame, 0, sizeof frame);
    const trpi_pack_value *root = trpi_pack_root(doc);
    bool ok =
        get_u32(root, "w", &frame.word) && frame.word != 0 && get_u32(root, "c", &frame.client) &&
        get_number(root, "i", UINT64_MAX, &frame.number) && get_u32(root, "s", &frame.slot) &&
        get_u32(root, "g", &frame.generation) && get_u32(root, "S", &frame.ask_slot) &&
        get_u32(root, "G", &frame.ask_generation) && get_u32(root, "k", &frame.kind) &&
        get_u32(root, "e", &frame.err) && get_name(root, "n", frame.name, sizeof frame.name) &&
        get_name(root, "why", frame.why, sizeof frame.why) && get_contacts(root, &frame);
    trpi_pack_doc_free(doc);
    if (!ok) {
        return TRP_EDATA;
    }
    why_clean(frame.why);
    *ret_frame = frame;
    return TRP_OK;
}

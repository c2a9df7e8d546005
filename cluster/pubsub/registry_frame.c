/* registry_frame.c - frames of publish and subscribe as bytes. See registry_frame.h.
 *
 * Limits.  TRPI_PUBSUB_ITEMS_MAX, TRPI_TOPIC_BYTES_MAX, TRPI_GROUP_BYTES_MAX,
 *          TRPI_PUBSUB_NUMBER_MAX.
 * Tests.   tests/unit/cluster/pubsub_frame_test.c, tests/fuzz/pubsub_fuzz.c, tests/golden
 */
#include "cluster/pubsub/registry_frame.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/pack.h"

#define ITEM_NUMBERS 6u /* kind, name, group, count, version, age */
#define ITEM_BYTES 34u  /* of an item, without its name and group */

/* ---- keys ------------------------------------------------------------------------------------ */

bool
trpi_pubsub_key_is_valid(const trpi_pubsub_key *key)
{
    bool grouped = key->kind == TRPI_PUBSUB_GROUP;
    return key->kind >= TRPI_PUBSUB_PATH && key->kind <= TRPI_PUBSUB_GROUP && key->name_bytes > 0 &&
           key->name_bytes <= TRPI_TOPIC_BYTES_MAX && grouped == (key->group_bytes > 0) &&
           key->group_bytes <= TRPI_GROUP_BYTES_MAX;
}

bool
trpi_pubsub_key_equal(const trpi_pubsub_key *a, const trpi_pubsub_key *b)
{
    return a->kind == b->kind && a->name_bytes == b->name_bytes &&
           a->group_bytes == b->group_bytes && memcmp(a->name, b->name, a->name_bytes) == 0 &&
           (a->group_bytes == 0 || memcmp(a->group, b->group, a->group_bytes) == 0);
}

uint64_t
trpi_pubsub_key_hash(const trpi_pubsub_key *key)
{
    uint64_t hash = trpi_hash(key->name, key->name_bytes, (uint64_t)key->kind);
    return key->group_bytes == 0 ? hash : trpi_hash(key->group, key->group_bytes, hash);
}

uint32_t
trpi_pubsub_item_bytes(const trpi_pubsub_item *item)
{
    return ITEM_BYTES + item->key.name_bytes + item->key.group_bytes;
}

/* ---- encode ---------------------------------------------------------------------------------- */

static void
pack_number(trpi_pack_writer *w, const char *key, uint64_t number)
{
    trpi_pack_text(w, key);
    trpi_pack_u64(w, number);
}

static void
pack_items(trpi_pack_writer *w, const trpi_pubsub_frame *frame)
{
    trpi_pack_text(w, "i");
    trpi_pack_array(w, frame->items_count * ITEM_NUMBERS);
    for (uint32_t i = 0; i < frame->items_count; i++) {
        const trpi_pubsub_item *item = &frame->items[i];
        trpi_assert(trpi_pubsub_key_is_valid(&item->key));
        trpi_assert(item->version > frame->base && item->version <= frame->version);
        trpi_assert(item->begun <= item->version);
        trpi_pack_u64(w, item->key.kind);
        trpi_pack_bytes(w, item->key.name, item->key.name_bytes);
        if (item->key.group_bytes > 0) {
            trpi_pack_bytes(w, item->key.group, item->key.group_bytes);
        } else {
            trpi_pack_nil(w);
        }
        trpi_pack_u64(w, item->count);
        trpi_pack_u64(w, item->version - frame->base);
        trpi_pack_u64(w, item->version - item->begun);
    }
}

trp_err
trpi_pubsub_frame_encode(const trpi_pubsub_frame *frame, trpi_buffer *ret_bytes)
{
    trpi_assert(frame->kind > 0 && frame->kind < TRPI_PUBSUB_FRAME_KIND_COUNT);
    trpi_assert(frame->items_count <= TRPI_PUBSUB_ITEMS_MAX);
    trpi_pack_writer w = { .limit = TRPI_PACK_BYTES_MAX };
    bool delta = frame->kind == TRPI_PUBSUB_DELTA, seen = frame->seen.life != 0;
    bool actor = frame->slot != 0 || frame->generation != 0;
    trpi_pack_map(&w, 4u + seen + actor + (frame->question != 0) + frame->gap + delta +
                          (delta && frame->items_count > 0));
    pack_number(&w, "k", frame->kind);
    trpi_pack_text(&w, "n");
    trpi_pack_text(&w, frame->name);
    pack_number(&w, "to", frame->to_uid);
    trpi_pack_text(&w, "l");
    trpi_pack_array(&w, 2);
    trpi_pack_u64(&w, frame->life);
    trpi_pack_u64(&w, frame->era);
    if (seen) {
        trpi_pack_text(&w, "s");
        trpi_pack_array(&w, 3);
        trpi_pack_u64(&w, frame->seen.life);
        trpi_pack_u64(&w, frame->seen.era);
        trpi_pack_u64(&w, frame->seen.version);
    }
    if (actor) {
        trpi_pack_text(&w, "a");
        trpi_pack_array(&w, 2);
        trpi_pack_u64(&w, frame->slot);
        trpi_pack_u64(&w, frame->generation);
    }
    if (frame->question != 0) {
        pack_number(&w, "q", frame->question);
    }
    if (frame->gap) {
        trpi_pack_text(&w, "g");
        trpi_pack_bool(&w, true);
    }
    if (delta) {
        trpi_pack_text(&w, "v");
        trpi_pack_array(&w, 2);
        trpi_pack_u64(&w, frame->base);
        trpi_pack_u64(&w, frame->version);
    }
    if (delta && frame->items_count > 0) {
        pack_items(&w, frame);
    }
    if (w.err != TRP_OK) {
        trpi_buffer_fini(&w.buffer);
        return w.err == TRP_ELIMIT ? TRP_EMSGSIZE : w.err;
    }
    *ret_bytes = w.buffer;
    return TRP_OK;
}

/* ---- decode ---------------------------------------------------------------------------------- */

static bool
get_u32(const trpi_pack_value *value, uint32_t *ret)
{
    uint64_t number = 0;
    bool good = trpi_pack_get_u64(value, UINT32_MAX, &number);
    *ret = (uint32_t)number;
    return good;
}

static bool
get_version(const trpi_pack_value *value, uint64_t *ret)
{
    return trpi_pack_get_u64(value, TRPI_PUBSUB_NUMBER_MAX, ret);
}

/* The name and the group, borrowed from the document. */
static bool
get_key(const trpi_pack_value *items, uint32_t at, uint64_t kind, trpi_pubsub_key *ret)
{
    const trpi_pack_value *group = trpi_pack_at(items, at + 2);
    const uint8_t *name = NULL, *grouped = NULL;
    size_t name_bytes = 0, group_bytes = 0;
    if (!trpi_pack_get_bytes(trpi_pack_at(items, at + 1), &name, &name_bytes) ||
        !(trpi_pack_is_nil(group) || trpi_pack_get_bytes(group, &grouped, &group_bytes)) ||
        name_bytes > TRPI_TOPIC_BYTES_MAX || group_bytes > TRPI_GROUP_BYTES_MAX) {
        return false;
    }
    *ret = (trpi_pubsub_key){ .kind = (trpi_pubsub_kind)kind,
                              .name_bytes = (uint32_t)name_bytes,
                              .group_bytes = (uint32_t)group_bytes,
                              .name = name,
                              .group = grouped };
    return trpi_pubsub_key_is_valid(ret);
}

/* Have own bytes of a key, behind those of the items before it. */
static uint32_t
own_key(trpi_pubsub_frame *f, uint32_t used, trpi_pubsub_key *key)
{
    memcpy(f->bytes + used, key->name, key->name_bytes);
    key->name = f->bytes + used;
    used += key->name_bytes;
    if (key->group_bytes > 0) {
        memcpy(f->bytes + used, key->group, key->group_bytes);
        key->group = f->bytes + used;
        used += key->group_bytes;
    }
    return used;
}

/* Items of unknown kinds are skipped; versions rise. frame_bytes: more than all keys have. */
static trp_err
get_items(const trpi_pack_value *items, size_t frame_bytes, trpi_pubsub_frame *f)
{
    uint32_t count = 0, used = 0;
    uint64_t before = f->base;
    if (items == NULL) {
        return TRP_OK;
    }
    if (!trpi_pack_get_count(items, TRPI_PUBSUB_ITEMS_MAX * ITEM_NUMBERS, &count) ||
        count % ITEM_NUMBERS != 0) {
        return TRP_EDATA;
    }
    f->items = count == 0 ? NULL : trpi_alloc(count / ITEM_NUMBERS * sizeof *f->items);
    f->bytes = count == 0 ? NULL : trpi_alloc(frame_bytes);
    if (count > 0 && (f->items == NULL || f->bytes == NULL)) {
        return TRP_ENOMEM;
    }
    for (uint32_t i = 0; i < count; i += ITEM_NUMBERS) {
        trpi_pubsub_item item;
        uint64_t kind = 0, above = 0, age = 0;
        if (!trpi_pack_get_u64(trpi_pack_at(items, i), UINT32_MAX, &kind)) {
            return TRP_EDATA;
        }
        if (kind > TRPI_PUBSUB_GROUP) {
            continue; /* of a newer version */
        }
        if (!get_key(items, i, kind, &item.key) ||
            !get_u32(trpi_pack_at(items, i + 3), &item.count) ||
            !get_version(trpi_pack_at(items, i + 4), &above) ||
            !get_version(trpi_pack_at(items, i + 5), &age) || above > f->version - f->base ||
            f->base + above <= before || age > f->base + above) {
            return TRP_EDATA;
        }
        before = item.version = f->base + above;
        item.begun = item.version - age;
        used = own_key(f, used, &item.key);
        f->items[f->items_count++] = item;
    }
    return TRP_OK;
}

static bool
is_absent_or(const trpi_pack_value *value, bool good)
{
    return value == NULL || good;
}

static trp_err
decode_root(const trpi_pack_value *root, size_t count, trpi_pubsub_frame *f)
{
    const trpi_pack_value *life = trpi_pack_find(root, "l"), *seen = trpi_pack_find(root, "s");
    const trpi_pack_value *actor = trpi_pack_find(root, "a"), *gap = trpi_pack_find(root, "g");
    const trpi_pack_value *question = trpi_pack_find(root, "q"), *v = trpi_pack_find(root, "v");
    uint64_t kind = 0;
    if (!trpi_pack_get_u64(trpi_pack_find(root, "k"), TRPI_PUBSUB_FRAME_KIND_COUNT - 1, &kind) ||
        kind == 0 || !trpi_pack_get_text(trpi_pack_find(root, "n"), f->name, sizeof f->name) ||
        f->name[0] == '\0' ||
        !trpi_pack_get_u64(trpi_pack_find(root, "to"), UINT64_MAX, &f->to_uid) ||
        !get_version(trpi_pack_at(life, 0), &f->life) ||
        !get_version(trpi_pack_at(life, 1), &f->era) ||
        !is_absent_or(seen, get_version(trpi_pack_at(seen, 0), &f->seen.life) &&
                                get_version(trpi_pack_at(seen, 1), &f->seen.era) &&
                                get_version(trpi_pack_at(seen, 2), &f->seen.version)) ||
        !is_absent_or(actor, get_u32(trpi_pack_at(actor, 0), &f->slot) &&
                                 get_u32(trpi_pack_at(actor, 1), &f->generation)) ||
        !is_absent_or(gap, trpi_pack_get_bool(gap, &f->gap)) ||
        !is_absent_or(question, trpi_pack_get_u64(question, UINT64_MAX, &f->question))) {
        return TRP_EDATA;
    }
    f->kind = (trpi_pubsub_frame_kind)kind;
    if ((f->life == 0) != (f->kind == TRPI_PUBSUB_ABSENT)) {
        return TRP_EDATA;
    }
    if (f->kind != TRPI_PUBSUB_DELTA) {
        return TRP_OK;
    }
    if (!get_version(trpi_pack_at(v, 0), &f->base) ||
        !get_version(trpi_pack_at(v, 1), &f->version) || f->base >= f->version) {
        return TRP_EDATA;
    }
    return get_items(trpi_pack_find(root, "i"), count, f);
}

trp_err
trpi_pubsub_frame_decode(const uint8_t *bytes, size_t count, trpi_pubsub_frame *ret_frame)
{
    trpi_pack_doc *doc = NULL;
    trpi_pubsub_frame frame;
    memset(&frame, 0, sizeof frame);
    trp_err err = trpi_pack_parse(bytes, count, &doc);
    if (err != TRP_OK) {
        return err;
    }
    err = decode_root(trpi_pack_root(doc), count, &frame);
    trpi_pack_doc_free(doc);
    if (err != TRP_OK) {
        trpi_pubsub_frame_fini(&frame);
        return err;
    }
    *ret_frame = frame;
    return TRP_OK;
}

void
trpi_pubsub_frame_fini(trpi_pubsub_frame *frame)
{
    trpi_free(frame->items);
    trpi_free(frame->bytes);
    memset(frame, 0, sizeof *frame);
}

bool
trpi_pubsub_frame_absent(const trpi_pubsub_frame *frame, uint64_t from_uid,
                         trpi_pubsub_frame *ret_answer)
{
    if (frame->kind != TRPI_PUBSUB_HELLO) {
        return false;
    }
    memset(ret_answer, 0, sizeof *ret_answer);
    ret_answer->kind = TRPI_PUBSUB_ABSENT;
    ret_answer->to_uid = from_uid;
    ret_answer->question = frame->question;
    memcpy(ret_answer->name, frame->name, sizeof ret_answer->name);
    return true;
}

const char *
trpi_pubsub_frame_name(trpi_pubsub_frame_kind kind)
{
    static const char *const names[TRPI_PUBSUB_FRAME_KIND_COUNT] = { "?", "hello", "delta", "ack",
                                                                     "absent" };
    return (uint32_t)kind < TRPI_PUBSUB_FRAME_KIND_COUNT ? names[kind] : names[0];
}

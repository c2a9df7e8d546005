/* shard_frame.c - frames of sharding as bytes. See shard_frame.h.
 *
 * Tests. tests/unit/cluster/sharding_test.c, tests/fuzz/sharding_fuzz.c, tests/golden
 */
#include "cluster/sharding/shard_frame.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/pack.h"

enum { FLAG_HOSTS = 1, FLAG_ACCEPTED = 2, FLAG_LEAVING = 4 };
enum { SET_KEEPS_ACTIVE = 1, SET_EAGER = 2, SET_DROPS = 4, SET_UNORDERED = 8, SET_LATE_DROPS = 16 };
#define SETTINGS_COUNT 8u

static uint32_t
numbers_of(trpi_shard_frame_kind kind) /* of each item */
{
    return kind == TRPI_SHARD_FRAME_HOSTS ? 3 : kind == TRPI_SHARD_FRAME_GET ? 1 : 2;
}

/* ---- encode ---------------------------------------------------------------------------------- */

static void
pack_term(trpi_pack_writer *w, const char *key, trpi_shard_term term)
{
    trpi_pack_text(w, key);
    trpi_pack_array(w, 2);
    trpi_pack_u64(w, term.up_number);
    trpi_pack_u64(w, term.uid);
}

static void
pack_settings(trpi_pack_writer *w, const trpi_sharding_settings *settings)
{
    trpi_pack_text(w, "set");
    trpi_pack_array(w, SETTINGS_COUNT);
    trpi_pack_u64(w, settings->shards);
    trpi_pack_u64(w, settings->extractor_version);
    trpi_pack_u64(w, settings->allocation);
    trpi_pack_u64(w, settings->moves_max);
    trpi_pack_u64(w, settings->moves_permille);
    trpi_pack_u64(w, settings->members_min);
    trpi_pack_u64(w, settings->rebalance_ms);
    trpi_pack_u64(w, (settings->keeps_active ? SET_KEEPS_ACTIVE : 0u) |
                         (settings->eager ? SET_EAGER : 0u) | (settings->drops ? SET_DROPS : 0u) |
                         (settings->unordered ? SET_UNORDERED : 0u) |
                         (settings->late_drops ? SET_LATE_DROPS : 0u));
}

static void
pack_node(trpi_pack_writer *w, const trpi_node_id *node)
{
    char text[TRPI_ADDRESS_TEXT_BYTES];
    trpi_pack_text(w, "n");
    trpi_pack_array(w, 2);
    trpi_pack_text(w, trpi_address_format(&node->address, text, sizeof text));
    trpi_pack_u64(w, node->uid);
}

static void
pack_items(trpi_pack_writer *w, const trpi_shard_frame *frame)
{
    uint32_t numbers = numbers_of(frame->kind);
    trpi_pack_text(w, "i");
    trpi_pack_array(w, frame->items_count * numbers);
    for (uint32_t i = 0; i < frame->items_count; i++) {
        trpi_pack_u64(w, frame->items[i].shard);
        if (numbers > 1) {
            trpi_pack_u64(w, frame->items[i].epoch);
        }
        if (numbers > 2) {
            trpi_pack_u64(w, frame->items[i].hold);
        }
    }
}

trp_err
trpi_shard_frame_encode(const trpi_shard_frame *frame, trpi_buffer *ret_bytes)
{
    trpi_assert(frame->kind > 0 && frame->kind < TRPI_SHARD_FRAME_KIND_COUNT);
    trpi_assert(frame->items_count <= TRPI_SHARDS_MAX);
    trpi_pack_writer w = { .limit = TRPI_PACK_BYTES_MAX };
    uint32_t flags = (frame->hosts ? FLAG_HOSTS : 0u) | (frame->accepted ? FLAG_ACCEPTED : 0u) |
                     (frame->leaving ? FLAG_LEAVING : 0u);
    bool settings = frame->settings.shards != 0, node = frame->node.uid != 0;
    bool bound = frame->bound.uid != 0;
    trpi_pack_map(&w, 4u + (flags != 0) + (frame->role[0] != '\0') + (frame->text[0] != '\0') +
                          settings + node + bound + (frame->items_count > 0));
    trpi_pack_text(&w, "k");
    trpi_pack_u64(&w, frame->kind);
    trpi_pack_text(&w, "t");
    trpi_pack_text(&w, frame->type);
    trpi_pack_text(&w, "to");
    trpi_pack_u64(&w, frame->to_uid);
    pack_term(&w, "c", frame->term);
    if (flags != 0) {
        trpi_pack_text(&w, "f");
        trpi_pack_u64(&w, flags);
    }
    if (frame->role[0] != '\0') {
        trpi_pack_text(&w, "role");
        trpi_pack_text(&w, frame->role);
    }
    if (frame->text[0] != '\0') {
        trpi_pack_text(&w, "why");
        trpi_pack_text(&w, frame->text);
    }
    if (settings) {
        pack_settings(&w, &frame->settings);
    }
    if (node) {
        pack_node(&w, &frame->node);
    }
    if (bound) {
        pack_term(&w, "b", frame->bound);
    }
    if (frame->items_count > 0) {
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
get_u32(const trpi_pack_value *value, uint32_t max, uint32_t *ret)
{
    uint64_t number = 0;
    if (!trpi_pack_get_u64(value, max, &number)) {
        return false;
    }
    *ret = (uint32_t)number;
    return true;
}

static bool
get_term(const trpi_pack_value *value, trpi_shard_term *ret)
{
    return trpi_pack_get_u64(trpi_pack_at(value, 0), UINT32_MAX, &ret->up_number) &&
           trpi_pack_get_u64(trpi_pack_at(value, 1), UINT64_MAX, &ret->uid);
}

static bool
get_settings(const trpi_pack_value *value, trpi_sharding_settings *ret)
{
    uint64_t flags = 0;
    if (!get_u32(trpi_pack_at(value, 0), TRPI_SHARDS_MAX, &ret->shards) || ret->shards == 0 ||
        !get_u32(trpi_pack_at(value, 1), UINT32_MAX, &ret->extractor_version) ||
        !get_u32(trpi_pack_at(value, 2), UINT32_MAX, &ret->allocation) ||
        !get_u32(trpi_pack_at(value, 3), UINT32_MAX, &ret->moves_max) ||
        !get_u32(trpi_pack_at(value, 4), UINT32_MAX, &ret->moves_permille) ||
        !get_u32(trpi_pack_at(value, 5), UINT32_MAX, &ret->members_min) ||
        !get_u32(trpi_pack_at(value, 6), UINT32_MAX, &ret->rebalance_ms) ||
        !trpi_pack_get_u64(trpi_pack_at(value, 7), UINT64_MAX, &flags)) {
        return false;
    }
    ret->keeps_active = (flags & SET_KEEPS_ACTIVE) != 0;
    ret->eager = (flags & SET_EAGER) != 0;
    ret->drops = (flags & SET_DROPS) != 0;
    ret->unordered = (flags & SET_UNORDERED) != 0;
    ret->late_drops = (flags & SET_LATE_DROPS) != 0;
    return true;
}

static bool
get_node(const trpi_pack_value *value, trpi_node_id *ret)
{
    char text[TRPI_ADDRESS_TEXT_BYTES];
    return trpi_pack_get_text(trpi_pack_at(value, 0), text, sizeof text) &&
           trpi_address_parse(text, &ret->address, NULL, NULL) == TRP_OK &&
           trpi_pack_get_u64(trpi_pack_at(value, 1), UINT64_MAX, &ret->uid) && ret->uid != 0;
}

/* Items may name a shard beyond the receiver's number of shards: it is the engine that knows. */
static trp_err
get_items(const trpi_pack_value *value, trpi_shard_frame *frame)
{
    uint32_t numbers = numbers_of(frame->kind), count = 0;
    if (value == NULL) {
        return TRP_OK;
    }
    if (!trpi_pack_get_count(value, TRPI_SHARDS_MAX * numbers, &count) || count % numbers != 0) {
        return TRP_EDATA;
    }
    if (count == 0) {
        return TRP_OK;
    }
    frame->items = trpi_alloc(count / numbers * sizeof *frame->items);
    if (frame->items == NULL) {
        return TRP_ENOMEM;
    }
    for (uint32_t i = 0; i < count; i += numbers) {
        trpi_shard_item *item = &frame->items[frame->items_count++];
        if (!get_u32(trpi_pack_at(value, i), TRPI_SHARDS_MAX - 1, &item->shard) ||
            (numbers > 1 &&
             !trpi_pack_get_u64(trpi_pack_at(value, i + 1), UINT64_MAX, &item->epoch)) ||
            (numbers > 2 &&
             !get_u32(trpi_pack_at(value, i + 2), TRPI_SHARD_HOLD_STOPPING, &item->hold))) {
            return TRP_EDATA;
        }
    }
    return TRP_OK;
}

static bool
is_absent_or(const trpi_pack_value *value, bool good)
{
    return value == NULL || good;
}

static trp_err
decode_root(const trpi_pack_value *root, trpi_shard_frame *f)
{
    const trpi_pack_value *role = trpi_pack_find(root, "role"), *why = trpi_pack_find(root, "why");
    const trpi_pack_value *set = trpi_pack_find(root, "set"), *node = trpi_pack_find(root, "n");
    const trpi_pack_value *bound = trpi_pack_find(root, "b"), *flag = trpi_pack_find(root, "f");
    uint64_t kind = 0, flags = 0;
    if (!trpi_pack_get_u64(trpi_pack_find(root, "k"), TRPI_SHARD_FRAME_KIND_COUNT - 1, &kind) ||
        kind == 0 || !trpi_pack_get_text(trpi_pack_find(root, "t"), f->type, sizeof f->type) ||
        f->type[0] == '\0' ||
        !trpi_pack_get_u64(trpi_pack_find(root, "to"), UINT64_MAX, &f->to_uid) ||
        !get_term(trpi_pack_find(root, "c"), &f->term) ||
        !is_absent_or(flag, trpi_pack_get_u64(flag, UINT64_MAX, &flags)) ||
        !is_absent_or(role, trpi_pack_get_text(role, f->role, sizeof f->role)) ||
        !is_absent_or(why, trpi_pack_get_text(why, f->text, sizeof f->text)) ||
        !is_absent_or(set, get_settings(set, &f->settings)) ||
        !is_absent_or(node, get_node(node, &f->node)) ||
        !is_absent_or(bound, get_term(bound, &f->bound))) {
        return TRP_EDATA;
    }
    f->kind = (trpi_shard_frame_kind)kind;
    f->hosts = (flags & FLAG_HOSTS) != 0;
    f->accepted = (flags & FLAG_ACCEPTED) != 0;
    f->leaving = (flags & FLAG_LEAVING) != 0;
    bool names_node = kind == TRPI_SHARD_FRAME_HOME || kind == TRPI_SHARD_FRAME_AVOID ||
                      kind == TRPI_SHARD_FRAME_AVOIDED;
    if (names_node && f->node.uid == 0) {
        return TRP_EDATA;
    }
    return get_items(trpi_pack_find(root, "i"), f);
}

trp_err
trpi_shard_frame_decode(const uint8_t *bytes, size_t count, trpi_shard_frame *ret_frame)
{
    trpi_pack_doc *doc = NULL;
    trpi_shard_frame frame;
    memset(&frame, 0, sizeof frame);
    trp_err err = trpi_pack_parse(bytes, count, &doc);
    if (err != TRP_OK) {
        return err;
    }
    err = decode_root(trpi_pack_root(doc), &frame);
    trpi_pack_doc_free(doc);
    if (err != TRP_OK) {
        trpi_shard_frame_fini(&frame);
        return err;
    }
    *ret_frame = frame;
    return TRP_OK;
}

void
trpi_shard_frame_fini(trpi_shard_frame *frame)
{
    trpi_free(frame->items);
    frame->items = NULL;
    frame->items_count = 0;
}

const char *
trpi_shard_frame_name(trpi_shard_frame_kind kind)
{
    static const char *const names[TRPI_SHARD_FRAME_KIND_COUNT] = {
        "none",  "ask",     "hosts",     "welcome", "refuse",   "get",     "home",
        "begin", "begun",   "handoff",   "stopped", "grant",    "started", "leaving",
        "avoid", "avoided", "may-leave", "stale",   "rebalance"
    };
    return (uint32_t)kind < TRPI_SHARD_FRAME_KIND_COUNT ? names[kind] : names[0];
}

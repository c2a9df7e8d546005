/* frame_codec.c - the frames around a view. See gossip_codec.h. */
#include "cluster/engine/gossip_codec.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/wire.h"
#include "base/pack.h"

/* ---- encode ---------------------------------------------------------------------------------- */

static void
pack_set(trpi_pack_writer *w, const char *key, const trpi_seen *seen)
{
    trpi_assert_slow(seen->words_count == (seen->bits + 63) / 64);
    trpi_pack_text(w, key);
    if (trpi_seen_count(seen) == seen->bits) {
        trpi_pack_u64(w, 1); /* all: the digest of an idle cluster does not grow with its size */
        return;
    }
    uint8_t bytes[(TRPI_GOSSIP_MEMBERS_MAX + 63) / 64 * 8];
    trpi_assert(seen->words_count * 8 <= sizeof bytes);
    for (uint32_t i = 0; i < seen->words_count; i++) {
        trpi_put_u64(bytes + (size_t)i * 8, seen->words[i]);
    }
    trpi_pack_bytes(w, bytes, (seen->bits + 7) / 8);
}

static void
pack_join(trpi_pack_writer *w, const trpi_ident *ident)
{
    trpi_assert_slow(ident->roles_count <= TRPI_ROLES_MAX);
    trpi_pack_text(w, "roles");
    trpi_pack_array(w, ident->roles_count);
    for (uint32_t i = 0; i < ident->roles_count; i++) {
        trpi_pack_text(w, ident->roles[i]);
    }
    trpi_pack_text(w, "app");
    trpi_pack_text(w, ident->app_version);
    if (ident->build[0] != '\0') {
        trpi_pack_text(w, "troupe");
        trpi_pack_text(w, ident->build);
    }
}

static void
pack_compat(trpi_pack_writer *w, const trpi_compat *compat)
{
    trpi_assert_slow(compat->count <= TRPI_COMPAT_MAX);
    trpi_pack_text(w, "conf");
    trpi_pack_array(w, compat->count * 2);
    for (uint32_t i = 0; i < compat->count; i++) {
        trpi_pack_text(w, compat->entries[i].key);
        trpi_pack_text(w, compat->entries[i].value);
    }
}

static void
pack_frame(trpi_pack_writer *w, const trpi_frame *f, const trpi_seen *seen)
{
    trpi_assert_slow(f->reason[sizeof f->reason - 1] == '\0');
    trpi_assert_slow(f->gossip == NULL || f->gossip->encoded_bytes > 0);
    uint32_t pairs = 3u + (f->ticket != 0) + (f->digest != 0) + (f->code != 0) + (seen != NULL) +
                     (f->clock_count > 0) + 2u * (f->ident != NULL) +
                     (f->ident != NULL && f->ident->build[0] != '\0') + (f->gossip != NULL) +
                     (f->reason[0] != '\0') + (f->system[0] != '\0') + (f->compat != NULL) +
                     (f->keys_count > 0) + (f->told != NULL) + (f->near ? 1u : 0u);
    trpi_pack_map(w, pairs);
    trpi_pack_text(w, "k");
    trpi_pack_u64(w, f->kind);
    trpi_pack_text(w, "to");
    trpi_pack_u64(w, f->to_uid);
    trpi_pack_text(w, "ttl");
    trpi_pack_u64(w, f->ttl);
    if (f->ticket != 0) {
        trpi_pack_text(w, "ticket");
        trpi_pack_u64(w, f->ticket);
    }
    if (f->digest != 0) {
        trpi_pack_text(w, "digest");
        trpi_pack_u64(w, f->digest);
    }
    if (f->code != 0) {
        trpi_pack_text(w, "code");
        trpi_pack_u64(w, f->code);
    }
    if (f->reason[0] != '\0') {
        trpi_pack_text(w, "why");
        trpi_pack_text(w, f->reason);
    }
    if (f->system[0] != '\0') {
        trpi_pack_text(w, "system");
        trpi_pack_text(w, f->system);
    }
    if (f->compat != NULL) {
        pack_compat(w, f->compat);
    }
    if (seen != NULL) {
        pack_set(w, "seen", seen);
    }
    if (f->told != NULL) {
        pack_set(w, "sure", f->told);
    }
    if (f->clock_count > 0) {
        trpi_pack_text(w, "clock");
        trpi_pack_array(w, f->clock_count * 2);
        for (uint32_t i = 0; i < f->clock_count; i++) {
            trpi_pack_u64(w, f->clock[i].key);
            trpi_pack_u64(w, f->clock[i].counter);
        }
    }
    if (f->near) {
        trpi_pack_text(w, "near");
        trpi_pack_u64(w, 1);
    }
    if (f->keys_count > 0) {
        trpi_pack_text(w, "by");
        trpi_pack_array(w, f->keys_count);
        for (uint32_t i = 0; i < f->keys_count; i++) {
            trpi_pack_u64(w, f->keys[i]);
        }
    }
    if (f->ident != NULL) {
        pack_join(w, f->ident);
    }
    if (f->gossip != NULL) {
        trpi_pack_text(w, "g");
        trpi_pack_bytes(w, f->gossip->encoded, f->gossip->encoded_bytes);
    }
}

trp_err
trpi_frame_encode(const trpi_frame *frame, const trpi_seen *seen, trpi_buffer *ret_bytes)
{
    trpi_assert(frame->kind > 0 && frame->kind < TRPI_FRAME_KIND_COUNT);
    trpi_assert_slow(seen == NULL || frame->gossip == NULL ||
                     seen->bits == frame->gossip->members_count);
    trpi_assert_slow(frame->told == NULL || frame->gossip == NULL ||
                     frame->told->bits == frame->gossip->members_count);
    if (frame->gossip != NULL) {
        trp_err err = trpi_gossip_encode(frame->gossip);
        if (err != TRP_OK) {
            return err;
        }
    }
    trpi_pack_writer w = { .limit = TRPI_PACK_BYTES_MAX };
    if (frame->gossip != NULL) { /* once, not by doubling */
        size_t bytes = frame->gossip->encoded_bytes + (seen == NULL ? 0 : seen->bits / 8);
        w.err = trpi_buffer_reserve(&w.buffer, bytes + 256, w.limit);
    }
    pack_frame(&w, frame, seen);
    if (w.err != TRP_OK) {
        trpi_buffer_fini(&w.buffer);
        return w.err == TRP_ELIMIT ? TRP_EMSGSIZE : w.err;
    }
    *ret_bytes = w.buffer;
    return TRP_OK;
}

/* ---- decode ---------------------------------------------------------------------------------- */

static trp_err
read_set(const trpi_pack_value *value, trpi_frame_set *set)
{
    trpi_assert_slow(set->count == 0 && !set->all);
    uint64_t all;
    const uint8_t *bytes;
    size_t count;
    if (value == NULL) {
        return TRP_OK;
    }
    if (trpi_pack_get_u64(value, 1, &all)) {
        set->all = all == 1;
        return TRP_OK;
    }
    if (!trpi_pack_get_bytes(value, &bytes, &count) || count > TRPI_GOSSIP_MEMBERS_MAX / 8 + 1) {
        return TRP_EDATA;
    }
    set->bytes = trpi_alloc(count + 1);
    if (set->bytes == NULL) {
        return TRP_ENOMEM;
    }
    memcpy(set->bytes, bytes, count);
    set->count = count;
    return TRP_OK;
}

static trp_err
read_clock(const trpi_pack_value *value, trpi_frame *f)
{
    trpi_assert_slow(f->clock_count == 0);
    uint32_t count;
    if (value == NULL) {
        return TRP_OK;
    }
    if (!trpi_pack_get_count(value, TRPI_GOSSIP_MEMBERS_MAX * 2, &count) || count % 2 != 0) {
        return TRP_EDATA;
    }
    f->clock = trpi_alloc((count / 2 + 1) * sizeof *f->clock);
    if (f->clock == NULL) {
        return TRP_ENOMEM;
    }
    for (uint32_t i = 0; i < count; i += 2) {
        trpi_vclock_entry *e = &f->clock[f->clock_count];
        if (!trpi_pack_get_u64(trpi_pack_at(value, i), UINT64_MAX, &e->key) ||
            !trpi_pack_get_u64(trpi_pack_at(value, i + 1), TRPI_GOSSIP_COUNTER_MAX, &e->counter) ||
            (f->clock_count > 0 && e[-1].key >= e->key)) {
            return TRP_EDATA;
        }
        f->clock_count++;
    }
    trpi_assert_slow(f->clock_count == count / 2);
    return TRP_OK;
}

static trp_err
read_keys(const trpi_pack_value *value, trpi_frame *f)
{
    trpi_assert_slow(f->keys_count == 0);
    uint32_t count;
    if (value == NULL) {
        return TRP_OK;
    }
    if (!trpi_pack_get_count(value, TRPI_GOSSIP_MEMBERS_MAX, &count)) {
        return TRP_EDATA;
    }
    f->keys = trpi_alloc((count + 1) * sizeof *f->keys);
    if (f->keys == NULL) {
        return TRP_ENOMEM;
    }
    for (; f->keys_count < count; f->keys_count++) {
        if (!trpi_pack_get_u64(trpi_pack_at(value, f->keys_count), UINT64_MAX,
                               &f->keys[f->keys_count])) {
            return TRP_EDATA;
        }
    }
    trpi_assert_slow(f->keys_count == count);
    return TRP_OK;
}

static trp_err
read_join(const trpi_pack_value *root, const trpi_node_id *from, trpi_frame *f)
{
    char texts[TRPI_ROLES_MAX][TRPI_ROLE_BYTES_MAX + 1];
    const char *roles[TRPI_ROLES_MAX];
    char version[TRPI_APP_VERSION_BYTES_MAX + 1], build[TRPI_BUILD_BYTES_MAX + 1];
    const trpi_pack_value *array = trpi_pack_find(root, "roles");
    uint32_t count;
    if (!trpi_pack_get_count(array, TRPI_ROLES_MAX, &count) ||
        !trpi_pack_get_text(trpi_pack_find(root, "app"), version, sizeof version)) {
        return TRP_EDATA;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!trpi_pack_get_text(trpi_pack_at(array, i), texts[i], sizeof texts[i])) {
            return TRP_EDATA;
        }
        roles[i] = texts[i];
    }
    trp_err err = trpi_ident_new(from, roles, count, version, &f->ident);
    if (err == TRP_OK && trpi_pack_get_text(trpi_pack_find(root, "troupe"), build, sizeof build)) {
        trpi_ident_set_build(f->ident, build);
    }
    return err == TRP_EINVAL || err == TRP_ELIMIT ? TRP_EDATA : err;
}

static trp_err
read_compat(const trpi_pack_value *value, trpi_frame *f)
{
    char key[TRPI_COMPAT_KEY_BYTES], text[TRPI_COMPAT_VALUE_BYTES];
    uint32_t count;
    if (value == NULL) {
        return TRP_OK;
    }
    if (!trpi_pack_get_count(value, TRPI_COMPAT_MAX * 2, &count) || count % 2 != 0) {
        return TRP_EDATA;
    }
    f->compat = trpi_alloc(sizeof *f->compat);
    if (f->compat == NULL) {
        return TRP_ENOMEM;
    }
    for (uint32_t i = 0; i < count; i += 2) {
        if (!trpi_pack_get_text(trpi_pack_at(value, i), key, sizeof key) ||
            !trpi_pack_get_text(trpi_pack_at(value, i + 1), text, sizeof text) ||
            trpi_compat_add(f->compat, key, text) != TRP_OK) {
            return TRP_EDATA;
        }
    }
    return TRP_OK;
}

/* An optional number: absent is 0. */
static bool
read_optional(const trpi_pack_value *root, const char *key, uint64_t max, uint64_t *ret)
{
    const trpi_pack_value *value = trpi_pack_find(root, key);
    *ret = 0;
    return value == NULL || trpi_pack_get_u64(value, max, ret);
}

static trp_err
read_frame(const trpi_pack_value *root, const trpi_node_id *from, const trpi_gossip *known,
           trpi_gossip_cache *cache, trpi_frame *f)
{
    trpi_assert_slow(f->kind == 0);
    uint64_t kind;
    uint64_t ttl;
    uint64_t code;
    uint64_t near;
    const trpi_pack_value *why = trpi_pack_find(root, "why");
    const trpi_pack_value *system = trpi_pack_find(root, "system");
    if (!trpi_pack_get_u64(trpi_pack_find(root, "k"), UINT32_MAX, &kind) || kind == 0 ||
        !read_optional(root, "to", UINT64_MAX, &f->to_uid) ||
        !read_optional(root, "ttl", UINT32_MAX, &ttl) ||
        !read_optional(root, "ticket", UINT64_MAX, &f->ticket) ||
        !read_optional(root, "digest", UINT64_MAX, &f->digest) ||
        !read_optional(root, "code", UINT32_MAX, &code) ||
        !read_optional(root, "near", UINT64_MAX, &near) ||
        (why != NULL && !trpi_pack_get_text(why, f->reason, sizeof f->reason)) ||
        (system != NULL && !trpi_pack_get_text(system, f->system, sizeof f->system))) {
        return TRP_EDATA;
    }
    f->kind = (uint32_t)kind;
    f->ttl = ttl > TRPI_FRAME_TTL_MAX ? TRPI_FRAME_TTL_MAX : (uint32_t)ttl;
    f->code = (uint32_t)code;
    f->near = near != 0;
    trp_err err = read_set(trpi_pack_find(root, "seen"), &f->seen);
    if (err == TRP_OK) {
        err = read_set(trpi_pack_find(root, "sure"), &f->sure);
    }
    if (err == TRP_OK) {
        err = read_clock(trpi_pack_find(root, "clock"), f);
    }
    if (err == TRP_OK && kind == TRPI_FRAME_GONE) {
        err = read_keys(trpi_pack_find(root, "by"), f);
    }
    if (err == TRP_OK && kind == TRPI_FRAME_INIT_JOIN) {
        err = read_compat(trpi_pack_find(root, "conf"), f);
    }
    if (err == TRP_OK && kind == TRPI_FRAME_JOIN) {
        err = from->uid == 0 ? TRP_EDATA : read_join(root, from, f);
        f->ident = f->ident == NULL ? NULL : trpi_gossip_cache_ident(cache, f->ident);
    }
    if (err == TRP_OK && (kind == TRPI_FRAME_WELCOME || kind == TRPI_FRAME_ENVELOPE)) {
        const uint8_t *bytes;
        size_t count;
        err = trpi_pack_get_bytes(trpi_pack_find(root, "g"), &bytes, &count)
                  ? trpi_gossip_cache_decode(cache, bytes, count, known, &f->gossip)
                  : TRP_EDATA;
    }
    trpi_assert_slow(f->ttl <= TRPI_FRAME_TTL_MAX);
    trpi_assert_slow(err != TRP_OK || f->kind != 0);
    return err;
}

trp_err
trpi_frame_decode(const uint8_t *bytes, size_t count, const trpi_node_id *from,
                  const trpi_gossip *known, trpi_gossip_cache *cache, trpi_frame *ret_frame)
{
    trpi_assert_slow(known == NULL || known->frozen);
    trpi_pack_doc *doc;
    trp_err err = trpi_pack_parse(bytes, count, &doc);
    if (err != TRP_OK) {
        return err;
    }
    trpi_frame frame = { 0 };
    err = read_frame(trpi_pack_root(doc), from, known, cache, &frame);
    trpi_pack_doc_free(doc);
    if (err != TRP_OK) {
        trpi_frame_fini(&frame);
        return err;
    }
    *ret_frame = frame;
    trpi_assert_slow(ret_frame->kind != 0);
    trpi_assert_slow(ret_frame->gossip == NULL || ret_frame->gossip->frozen);
    return TRP_OK;
}

void
trpi_frame_fini(trpi_frame *frame)
{
    trpi_free(frame->seen.bytes);
    trpi_free(frame->sure.bytes);
    trpi_free(frame->clock);
    trpi_free(frame->keys);
    trpi_ident_unref(frame->ident);
    trpi_gossip_unref(frame->gossip);
    trpi_free(frame->compat);
    memset(frame, 0, sizeof *frame);
    trpi_assert_slow(frame->kind == 0 && frame->clock_count == 0);
}

bool
trpi_frame_seen(const trpi_frame_set *set, trpi_seen *seen)
{
    trpi_assert_slow(seen->words_count == (seen->bits + 63) / 64);
    if (set->all) {
        for (uint32_t i = 0; i < seen->bits; i++) {
            trpi_seen_set(seen, i);
        }
        return true;
    }
    if (set->bytes == NULL || set->count != (seen->bits + 7) / 8) {
        return false;
    }
    for (uint32_t i = 0; i < set->count; i++) {
        uint32_t bits = seen->bits - i * 8 < 8 ? seen->bits - i * 8 : 8;
        uint64_t byte = set->bytes[i] & ((1u << bits) - 1u);
        seen->words[i / 8] |= byte << (i % 8 * 8);
    }
    return true;
}

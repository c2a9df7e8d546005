/* pack.c - msgpack behind pack.h.
 *
 * Why.     msgpack-c allocates what an array header claims before it has seen the elements: five
 *          bytes may ask for gigabytes. is_well_formed() walks the bytes first, without recursion
 *          or allocation.
 * Tests.   tests/unit/cluster/gossip_codec_test.c, tests/fuzz/gossip_fuzz.c
 */
#include "base/pack.h"

#include <string.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <msgpack.h>
#pragma GCC diagnostic pop

#include "base/alloc.h"
#include "base/assert.h"

/* ---- writer ---------------------------------------------------------------------------------- */

static int
write_to_buffer(void *data, const char *bytes, size_t count)
{
    trpi_pack_writer *w = data;
    if (w->err == TRP_OK) {
        w->err = trpi_buffer_append(&w->buffer, bytes, count, w->limit);
    }
    return w->err == TRP_OK ? 0 : -1;
}

static msgpack_packer
packer_of(trpi_pack_writer *w)
{
    msgpack_packer packer;
    msgpack_packer_init(&packer, w, write_to_buffer);
    return packer;
}

void
trpi_pack_map(trpi_pack_writer *w, uint32_t pairs)
{
    msgpack_packer packer = packer_of(w);
    (void)msgpack_pack_map(&packer, pairs); /* w->err has it */
}
void
trpi_pack_array(trpi_pack_writer *w, uint32_t elements)
{
    msgpack_packer packer = packer_of(w);
    (void)msgpack_pack_array(&packer, elements);
}
void
trpi_pack_u64(trpi_pack_writer *w, uint64_t value)
{
    msgpack_packer packer = packer_of(w);
    (void)msgpack_pack_uint64(&packer, value);
}
void
trpi_pack_i64(trpi_pack_writer *w, int64_t value)
{
    msgpack_packer packer = packer_of(w);
    (void)msgpack_pack_int64(&packer, value);
}
void
trpi_pack_text(trpi_pack_writer *w, const char *text)
{
    trpi_pack_text_n(w, text, strlen(text));
}
void
trpi_pack_text_n(trpi_pack_writer *w, const char *text, size_t bytes)
{
    msgpack_packer packer = packer_of(w);
    (void)msgpack_pack_str(&packer, bytes);
    (void)msgpack_pack_str_body(&packer, text, bytes);
}
void
trpi_pack_bytes(trpi_pack_writer *w, const void *bytes, size_t count)
{
    msgpack_packer packer = packer_of(w);
    (void)msgpack_pack_bin(&packer, count);
    (void)msgpack_pack_bin_body(&packer, bytes, count);
}

void
trpi_pack_nil(trpi_pack_writer *w)
{
    msgpack_packer packer = packer_of(w);
    (void)msgpack_pack_nil(&packer);
}
void
trpi_pack_bool(trpi_pack_writer *w, bool value)
{
    msgpack_packer packer = packer_of(w);
    (void)(value ? msgpack_pack_true(&packer) : msgpack_pack_false(&packer));
}
void
trpi_pack_f64(trpi_pack_writer *w, double value)
{
    msgpack_packer packer = packer_of(w);
    (void)msgpack_pack_double(&packer, value);
}

/* ---- guard ----------------------------------------------------------------------------------- */

struct item {
    size_t header;   /* bytes of type and length */
    uint64_t body;   /* bytes that follow */
    uint64_t nested; /* values that follow */
};

static uint64_t
big_endian(const uint8_t *p, size_t count)
{
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++) {
        value = value << 8 | p[i];
    }
    return value;
}

/* Read the length field of `width` bytes behind the type byte. False: cut off. */
static bool
length_of(const uint8_t *p, size_t left, size_t width, uint64_t *ret)
{
    if (left < 1 + width) {
        return false;
    }
    *ret = big_endian(p + 1, width);
    return true;
}

/* Read the parts of the value at p, by the msgpack type table. False: cut off, or no msgpack. */
static bool
item_at(const uint8_t *p, size_t left, struct item *ret)
{
    static const uint8_t fixed_body[] = { 4, 8, 1, 2, 4, 8, 1, 2, 4, 8 }; /* 0xca .. 0xd3 */
    static const uint8_t fixext_body[] = { 2, 3, 5, 9, 17 };              /* 0xd4 .. 0xd8 */
    uint8_t type = p[0];
    uint64_t n = 0;
    *ret = (struct item){ 1, 0, 0 };
    if (type <= 0x7f || type >= 0xe0 || type == 0xc0 || type == 0xc2 || type == 0xc3) {
        return true;
    }
    if (type <= 0x8f) {
        ret->nested = 2u * (type & 0x0fu);
    } else if (type <= 0x9f) {
        ret->nested = type & 0x0fu;
    } else if (type <= 0xbf) {
        ret->body = type & 0x1fu;
    } else if ((type >= 0xc4 && type <= 0xc9) || (type >= 0xd9 && type <= 0xdb)) {
        bool ext = type >= 0xc7 && type <= 0xc9;
        size_t width = (size_t)1 << (type >= 0xd9 ? type - 0xd9 : (type - 0xc4) % 3);
        if (!length_of(p, left, width, &n)) {
            return false;
        }
        ret->header = 1 + width;
        ret->body = n + (ext ? 1 : 0);
    } else if (type >= 0xca && type <= 0xd3) {
        ret->body = fixed_body[type - 0xca];
    } else if (type >= 0xd4 && type <= 0xd8) {
        ret->body = fixext_body[type - 0xd4];
    } else if (type >= 0xdc) {
        size_t width = (type & 1) != 0 ? 4 : 2;
        if (!length_of(p, left, width, &n)) {
            return false;
        }
        ret->header = 1 + width;
        ret->nested = type >= 0xde ? 2 * n : n;
    } else {
        return false; /* 0xc1 is never used */
    }
    return true;
}

static bool
is_well_formed(const uint8_t *bytes, size_t count)
{
    uint64_t pending[TRPI_PACK_DEPTH_MAX + 1]; /* values still to come, per level */
    size_t depth = 0;
    size_t at = 0;
    pending[0] = 1;
    while (true) {
        while (pending[depth] == 0) {
            if (depth == 0) {
                return at == count; /* nothing may follow the one value */
            }
            depth--;
        }
        struct item item;
        if (at >= count || !item_at(bytes + at, count - at, &item)) {
            return false;
        }
        pending[depth]--;
        size_t left = count - at - item.header;
        if (item.header > count - at || item.body > left || item.nested > left) {
            return false;
        }
        at += item.header + (size_t)item.body;
        if (item.nested > 0) {
            if (depth == TRPI_PACK_DEPTH_MAX) {
                return false;
            }
            pending[++depth] = item.nested;
        }
    }
}

/* ---- reader ---------------------------------------------------------------------------------- */

struct trpi_pack_doc {
    msgpack_unpacked unpacked;
};

trp_err
trpi_pack_parse(const uint8_t *bytes, size_t count, trpi_pack_doc **ret_doc)
{
    if (count > TRPI_PACK_BYTES_MAX) {
        return TRP_EMSGSIZE;
    }
    if (count == 0 || !is_well_formed(bytes, count)) {
        return TRP_EDATA;
    }
    trpi_pack_doc *doc = trpi_alloc(sizeof *doc);
    if (doc == NULL) {
        return TRP_ENOMEM;
    }
    msgpack_unpacked_init(&doc->unpacked);
    size_t offset = 0;
    msgpack_unpack_return result =
        msgpack_unpack_next(&doc->unpacked, (const char *)bytes, count, &offset);
    if (result != MSGPACK_UNPACK_SUCCESS) { /* nothing follows it: is_well_formed() */
        trpi_pack_doc_free(doc);
        return result == MSGPACK_UNPACK_NOMEM_ERROR ? TRP_ENOMEM : TRP_EDATA;
    }
    *ret_doc = doc;
    return TRP_OK;
}

void
trpi_pack_doc_free(trpi_pack_doc *doc)
{
    if (doc != NULL) {
        msgpack_unpacked_destroy(&doc->unpacked);
        trpi_free(doc);
    }
}

static const msgpack_object *
object_of(const trpi_pack_value *value)
{
    return (const msgpack_object *)(const void *)value;
}
static const trpi_pack_value *
value_of(const msgpack_object *object)
{
    return (const trpi_pack_value *)(const void *)object;
}

const trpi_pack_value *
trpi_pack_root(const trpi_pack_doc *doc)
{
    return value_of(&doc->unpacked.data);
}

const trpi_pack_value *
trpi_pack_find(const trpi_pack_value *map, const char *key)
{
    const msgpack_object *o = object_of(map);
    if (o == NULL || o->type != MSGPACK_OBJECT_MAP) {
        return NULL;
    }
    size_t bytes = strlen(key);
    for (uint32_t i = 0; i < o->via.map.size; i++) {
        const msgpack_object *k = &o->via.map.ptr[i].key;
        if (k->type == MSGPACK_OBJECT_STR && k->via.str.size == bytes &&
            memcmp(k->via.str.ptr, key, bytes) == 0) {
            return value_of(&o->via.map.ptr[i].val);
        }
    }
    return NULL;
}

const trpi_pack_value *
trpi_pack_at(const trpi_pack_value *array, uint32_t index)
{
    const msgpack_object *o = object_of(array);
    if (o == NULL || o->type != MSGPACK_OBJECT_ARRAY || index >= o->via.array.size) {
        return NULL;
    }
    return value_of(&o->via.array.ptr[index]);
}

bool
trpi_pack_get_u64(const trpi_pack_value *value, uint64_t max, uint64_t *ret)
{
    const msgpack_object *o = object_of(value);
    if (o == NULL || o->type != MSGPACK_OBJECT_POSITIVE_INTEGER || o->via.u64 > max) {
        return false;
    }
    *ret = o->via.u64;
    return true;
}

bool
trpi_pack_get_i64(const trpi_pack_value *value, int64_t *ret)
{
    const msgpack_object *o = object_of(value);
    if (o == NULL) {
        return false;
    }
    if (o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER) {
        *ret = o->via.i64;
        return true;
    }
    if (o->type == MSGPACK_OBJECT_POSITIVE_INTEGER && o->via.u64 <= INT64_MAX) {
        *ret = (int64_t)o->via.u64;
        return true;
    }
    return false;
}

bool
trpi_pack_get_count(const trpi_pack_value *array, uint32_t max, uint32_t *ret)
{
    const msgpack_object *o = object_of(array);
    if (o == NULL || o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size > max) {
        return false;
    }
    *ret = o->via.array.size;
    return true;
}

bool
trpi_pack_get_text(const trpi_pack_value *value, char *text, size_t room)
{
    const msgpack_object *o = object_of(value);
    if (o == NULL || o->type != MSGPACK_OBJECT_STR || o->via.str.size >= room ||
        memchr(o->via.str.ptr, 0, o->via.str.size) != NULL) {
        return false;
    }
    memset(text, 0, room);
    memcpy(text, o->via.str.ptr, o->via.str.size);
    return true;
}

bool
trpi_pack_get_str(const trpi_pack_value *value, const char **ret, size_t *ret_bytes)
{
    const msgpack_object *o = object_of(value);
    if (o == NULL || o->type != MSGPACK_OBJECT_STR) {
        return false;
    }
    *ret = o->via.str.ptr;
    *ret_bytes = o->via.str.size;
    return true;
}

bool
trpi_pack_get_bytes(const trpi_pack_value *value, const uint8_t **ret, size_t *ret_count)
{
    const msgpack_object *o = object_of(value);
    if (o == NULL || o->type != MSGPACK_OBJECT_BIN) {
        return false;
    }
    *ret = (const uint8_t *)o->via.bin.ptr;
    *ret_count = o->via.bin.size;
    return true;
}

bool
trpi_pack_get_bool(const trpi_pack_value *value, bool *ret)
{
    const msgpack_object *o = object_of(value);
    if (o == NULL || o->type != MSGPACK_OBJECT_BOOLEAN) {
        return false;
    }
    *ret = o->via.boolean;
    return true;
}

bool
trpi_pack_get_f64(const trpi_pack_value *value, double *ret)
{
    const msgpack_object *o = object_of(value);
    int64_t whole = 0;
    if (trpi_pack_get_i64(value, &whole)) {
        *ret = (double)whole;
        return true;
    }
    if (o == NULL || (o->type != MSGPACK_OBJECT_FLOAT64 && o->type != MSGPACK_OBJECT_FLOAT32)) {
        return false;
    }
    *ret = o->via.f64;
    return true;
}

bool
trpi_pack_is_nil(const trpi_pack_value *value)
{
    return value != NULL && object_of(value)->type == MSGPACK_OBJECT_NIL;
}

bool
trpi_pack_is_map(const trpi_pack_value *value)
{
    return value != NULL && object_of(value)->type == MSGPACK_OBJECT_MAP;
}

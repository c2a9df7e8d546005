/* journal_lmdb_row.c - keys and rows of the LMDB journal as bytes.
 *
 * Shape. check 8 | offset 8 | time 8 | version 4 | type 1 | tags 1 | bytes of tags 2 |
 *        type NUL | each tag NUL | data; little-endian. check: XXH64 of all behind it, its seed the
 *        number, so that a row at a wrong key is found as well.
 * Tests. tests/unit/persistence/journal_lmdb_test.c
 */
#include "persistence/journal_lmdb.h"

#ifdef HAVE_LMDB

#include <string.h>

#include "base/assert.h"
#include "base/hash.h"

_Static_assert(TRP_JOURNAL_TYPE_BYTES_MAX <= UINT8_MAX, "its length has a byte");
_Static_assert(TRP_JOURNAL_TAGS_MAX *(TRP_JOURNAL_TAG_BYTES_MAX + 1) <= UINT16_MAX, "two bytes");

static void
little_put(unsigned char *to, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        to[i] = (unsigned char)(value >> 8 * i);
    }
}

static uint64_t
little_get(const unsigned char *from, unsigned bytes)
{
    uint64_t value = 0;

    for (unsigned i = bytes; i > 0; i--) {
        value = value << 8 | from[i - 1];
    }
    return value;
}

uint64_t
trpi_lmdb_u64_get(const void *bytes)
{
    uint64_t value = 0;

    memcpy(&value, bytes, sizeof value);
    return __builtin_bswap64(value);
}

void
trpi_lmdb_u64_put(void *bytes, uint64_t value)
{
    value = __builtin_bswap64(value);
    memcpy(bytes, &value, sizeof value);
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "LMDB's own files depend on it too");

trpi_lmdb_key
trpi_lmdb_key_of(uint64_t first, uint64_t second)
{
    trpi_lmdb_key key;

    trpi_lmdb_u64_put(key.bytes, first);
    trpi_lmdb_u64_put(key.bytes + 8, second);
    return key;
}

size_t
trpi_lmdb_row_bytes(const trp_journal_event *event)
{
    size_t bytes = TRPI_LMDB_ROW_HEAD + strlen(event->type) + 1 + event->bytes;

    for (uint32_t i = 0; i < event->tags_count; i++) {
        bytes += strlen(event->tags[i]) + 1;
    }
    return bytes;
}

void
trpi_lmdb_row_write(unsigned char *row, const trp_journal_event *event, uint64_t number,
                    uint64_t offset)
{
    size_t type = strlen(event->type);
    unsigned char *end = row + TRPI_LMDB_ROW_HEAD;

    memcpy(end, event->type, type + 1);
    end += type + 1;
    unsigned char *tags = end;
    for (uint32_t i = 0; i < event->tags_count; i++) {
        size_t bytes = strlen(event->tags[i]) + 1;
        memcpy(end, event->tags[i], bytes);
        end += bytes;
    }
    little_put(row + 8, offset, 8);
    little_put(row + 16, event->time_ms, 8);
    little_put(row + 24, event->version, 4);
    row[28] = (unsigned char)type;
    row[29] = (unsigned char)event->tags_count;
    little_put(row + 30, (uint64_t)(end - tags), 2);
    if (event->bytes != 0) {
        memcpy(end, event->data, event->bytes);
    }
    end += event->bytes;
    little_put(row, trpi_hash(row + 8, (size_t)(end - row) - 8, number), 8);
}

/* Fill the tags. False: they do not fill their bytes. */
static bool
tags_read(const char *text, size_t bytes, uint32_t count, const char **tags)
{
    const char *end = text + bytes;

    for (uint32_t i = 0; i < count; i++) {
        size_t length = strnlen(text, (size_t)(end - text));
        if (text + length >= end) {
            return false;
        }
        tags[i] = text;
        text += length + 1;
    }
    return text == end;
}

bool
trpi_lmdb_row_read(const MDB_val *row, uint64_t number, const char **tags,
                   trp_journal_event *ret_event)
{
    const unsigned char *bytes = row->mv_data;

    if (row->mv_size < TRPI_LMDB_ROW_HEAD + 2 ||
        little_get(bytes, 8) != trpi_hash(bytes + 8, row->mv_size - 8, number)) {
        return false;
    }
    size_t type = bytes[28];
    uint32_t tags_count = bytes[29];
    size_t tags_bytes = little_get(bytes + 30, 2);
    const char *text = (const char *)bytes + TRPI_LMDB_ROW_HEAD;
    if (tags_count > TRP_JOURNAL_TAGS_MAX ||
        TRPI_LMDB_ROW_HEAD + type + 1 + tags_bytes > row->mv_size || text[type] != '\0' ||
        !tags_read(text + type + 1, tags_bytes, tags_count, tags)) {
        return false;
    }
    *ret_event = (trp_journal_event){
        .number = number,
        .offset = little_get(bytes + 8, 8),
        .time_ms = little_get(bytes + 16, 8),
        .type = text,
        .version = (uint32_t)little_get(bytes + 24, 4),
        .tags_count = tags_count,
        .tags = tags_count != 0 ? tags : NULL,
        .data = text + type + 1 + tags_bytes,
        .bytes = row->mv_size - TRPI_LMDB_ROW_HEAD - type - 1 - tags_bytes,
    };
    return true;
}

#endif

/* pack.h - msgpack without its headers: a writer into a buffer, a checked reader.
 *
 * pack.c is the only file that includes msgpack. Before anything is allocated, the reader refuses
 * values that are nested deeper than TRPI_PACK_DEPTH_MAX or claim more elements than they have
 * bytes. Every accessor takes NULL (a missing value) and returns false, so a decoder is a row of
 * calls joined by && without further checks.
 */
#ifndef TRPI_BASE_PACK_H
#define TRPI_BASE_PACK_H

#include <stdbool.h>

#include "base/buffer.h"

#define TRPI_PACK_DEPTH_MAX 10u /* a payload of TRP_TYPE_NESTING_MAX, an array of refs in it */
#define TRPI_PACK_BYTES_MAX (4u << 20)

typedef struct trpi_pack_writer {
    trpi_buffer buffer;
    size_t limit;
    trp_err err; /* the first one; later calls do nothing */
} trpi_pack_writer;

void trpi_pack_map(trpi_pack_writer *w, uint32_t pairs);
void trpi_pack_array(trpi_pack_writer *w, uint32_t elements);
void trpi_pack_u64(trpi_pack_writer *w, uint64_t value);
void trpi_pack_i64(trpi_pack_writer *w, int64_t value);
void trpi_pack_text(trpi_pack_writer *w, const char *text);
void trpi_pack_text_n(trpi_pack_writer *w, const char *text, size_t bytes);
void trpi_pack_bytes(trpi_pack_writer *w, const void *bytes, size_t count);
void trpi_pack_nil(trpi_pack_writer *w);
void trpi_pack_bool(trpi_pack_writer *w, bool value);
void trpi_pack_f64(trpi_pack_writer *w, double value);

typedef struct trpi_pack_doc trpi_pack_doc;
typedef struct trpi_pack_value trpi_pack_value; /* owned by its document */

/* Gives *ret_doc. bytes must outlive it. Errors: TRP_EDATA, TRP_EMSGSIZE (TRPI_PACK_BYTES_MAX),
 * TRP_ENOMEM. */
trp_err trpi_pack_parse(const uint8_t *bytes, size_t count, trpi_pack_doc **ret_doc);
void trpi_pack_doc_free(trpi_pack_doc *doc); /* NULL is fine */
const trpi_pack_value *trpi_pack_root(const trpi_pack_doc *doc);
/* NULL: not there */
const trpi_pack_value *trpi_pack_find(const trpi_pack_value *map, const char *key);
/* NULL: not there */
const trpi_pack_value *trpi_pack_at(const trpi_pack_value *array, uint32_t index);
bool trpi_pack_get_u64(const trpi_pack_value *value, uint64_t max, uint64_t *ret);
bool trpi_pack_get_i64(const trpi_pack_value *value, int64_t *ret);
bool trpi_pack_get_count(const trpi_pack_value *array, uint32_t max, uint32_t *ret);
/* Copies into text[room], NUL-terminated; refuses longer ones and NUL inside. */
bool trpi_pack_get_text(const trpi_pack_value *value, char *text, size_t room);
/* Borrows; not NUL-terminated. */
bool trpi_pack_get_str(const trpi_pack_value *value, const char **ret, size_t *ret_bytes);
bool trpi_pack_get_bytes(const trpi_pack_value *value, const uint8_t **ret, size_t *ret_count);
bool trpi_pack_get_bool(const trpi_pack_value *value, bool *ret);
bool trpi_pack_get_f64(const trpi_pack_value *value, double *ret); /* an integer is one, too */
bool trpi_pack_is_nil(const trpi_pack_value *value);
bool trpi_pack_is_map(const trpi_pack_value *value);

#endif

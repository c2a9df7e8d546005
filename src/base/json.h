/* json.h - the only file that includes cJSON's header, with the rules that we add to it.
 *
 * 64-bit ids are strings in JSON, because a JSON number is a double and loses bits above 2^53.
 * Input is checked for depth, length, UTF-8 and NULs before cJSON, which recurses and whose strings
 * end at a NUL, sees it.
 */
#ifndef TRPI_BASE_JSON_H
#define TRPI_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include <troupe/base.h>

#define TRPI_JSON_DEPTH_MAX 64

/* Parse exactly one JSON value of `bytes` bytes (no NUL needed). Gives *ret_json (cJSON_Delete).
 * Errors: TRP_EDATA (syntax, trailing text, deeper than TRPI_JSON_DEPTH_MAX, a NUL, escaped or not,
 *         no UTF-8; *ret_offset, when not NULL, is where), TRP_ENOMEM is reported as
 *         TRP_EDATA too, for cJSON does not tell them apart. */
trp_err trpi_json_parse(const char *text, size_t bytes, cJSON **ret_json, size_t *ret_offset);

/* Each adds one member and returns false when out of memory; object NULL returns false, so that
 * calls can follow one another and be checked once. */
bool trpi_json_add_text(cJSON *object, const char *key, const char *text); /* NULL text: null */
bool trpi_json_add_u64_string(cJSON *object, const char *key, uint64_t number);
bool trpi_json_add_i64(cJSON *object, const char *key, int64_t number); /* a string above 2^53 */
/* With as many digits as tell it from all others. NULL, or false, also for infinities and NaN, for
 * which JSON has no number. */
cJSON *trpi_json_f64(double number);
bool trpi_json_add_f64(cJSON *object, const char *key, double number);
bool trpi_json_add_bool(cJSON *object, const char *key, bool value);

/* Put row, when it is ok, behind the others. Takes row, also when it returns false: not ok, or out
 * of memory. list NULL returns false. */
bool trpi_json_append(cJSON *list, cJSON *row, bool ok);

/* Borrow the text of a string member, or NULL when it is absent or no string. */
const char *trpi_json_get_text(const cJSON *object, const char *key);
/* A number or a string of decimal digits. False: absent, negative, fractional or out of range. */
bool trpi_json_u64(const cJSON *item, uint64_t *ret_number);
bool trpi_json_get_u64(const cJSON *object, const char *key, uint64_t *ret_number);
bool trpi_json_get_bool(const cJSON *object, const char *key, bool *ret_value);

/* Unformatted text; the caller frees it with cJSON_free. NULL: no memory. It is UTF-8, which every
 * parser wants: a byte of a string that is none is printed as '?'. */
char *trpi_json_print(const cJSON *json);

#endif

/* name.h - the text of path elements and selections; pure, no system.
 *
 * A name is 1 to TRP_NAME_BYTES_MAX of [A-Za-z0-9] - _ . ~ ! ' ( ) + , ; : @ & = and %XX, does not
 * start with '$' and is not "." or "..". Automatic names are '$' and the slot in base 62: they
 * cost no memory.
 */
#ifndef TRPI_ACTOR_NAMING_NAME_H
#define TRPI_ACTOR_NAMING_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/actor.h>

#define TRPI_NAME_AUTO_BYTES 8 /* '$', up to 6 digits of base 62 for 32 bits, NUL */

bool trpi_name_is_valid(const char *name, size_t bytes);
/* Returns the length; buffer has TRPI_NAME_AUTO_BYTES. slot > 0. */
size_t trpi_name_auto_format(uint32_t slot, char *buffer);
/* false: not an automatic name. Each slot has exactly one text. */
bool trpi_name_auto_parse(const char *name, size_t bytes, uint32_t *ret_slot);
/* Match as a shell does: * is any sequence of bytes, ? any one byte. No recursion, no
 * allocation. */
bool trpi_name_matches(const char *pattern, size_t pattern_bytes, const char *name,
                       size_t name_bytes);

enum trpi_element_kind { TRPI_ELEMENT_NAME = 0, TRPI_ELEMENT_UP = 1, TRPI_ELEMENT_PATTERN = 2 };
typedef struct trpi_element {
    uint16_t offset; /* into the parsed text */
    uint8_t bytes;
    uint8_t kind; /* enum trpi_element_kind */
} trpi_element;

typedef struct trpi_selection_path {
    bool absolute;
    bool has_pattern;
    uint8_t count;
    trpi_element elements[TRP_PATH_DEPTH_MAX];
} trpi_selection_path;
/* Parse "/a/b", "../x", "a/w*". A trailing slash is fine, an empty element is not; "/" is the
 * root. ".." behind a wildcard is refused: its cost would be the product of the numbers of
 * children.
 * *ret_at, when not NULL, gets the offset of the mistake. Errors: TRP_EINVAL. */
trp_err trpi_selection_parse(const char *text, trpi_selection_path *ret_path, size_t *ret_at);

#endif

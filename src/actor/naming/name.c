/* name.c - names, automatic names, wildcards, selections as text.
 *
 * Limits.  TRP_NAME_BYTES_MAX for an element, TRP_PATH_DEPTH_MAX elements, TRP_PATH_BYTES_MAX in
 *          all.
 * Tests.   tests/unit/actor/name_test.c
 * Sources. SYS-22, SYS-24; RFC 3986 pchar without '*' and '$' (the first is a wildcard here).
 */
#include "actor/naming/name.h"

#include <string.h>

#include "base/assert.h"

static const char digits[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
#define BASE 62u

_Static_assert(sizeof digits == BASE + 1, "one digit for each value");
_Static_assert(TRP_NAME_BYTES_MAX <= UINT8_MAX, "trpi_element.bytes holds it");
_Static_assert(TRP_PATH_BYTES_MAX <= UINT16_MAX, "trpi_element.offset holds it");

static bool
is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool
is_plain(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != 0 && strchr("-_.~!'()+,;:@&=", c) != NULL);
}

static bool
is_dots(const char *name, size_t bytes)
{
    return (bytes == 1 && name[0] == '.') || (bytes == 2 && name[0] == '.' && name[1] == '.');
}

/* The offset of the first byte that cannot stand in an element; bytes when all can. */
static size_t
bad_byte(const char *name, size_t bytes, bool wildcards)
{
    for (size_t i = 0; i < bytes; i++) {
        if (name[i] == '%') {
            if (i + 2 >= bytes || !is_hex(name[i + 1]) || !is_hex(name[i + 2])) {
                return i;
            }
            i += 2;
        } else if (!is_plain(name[i]) && !(wildcards && (name[i] == '*' || name[i] == '?'))) {
            return i;
        }
    }
    return bytes;
}

bool
trpi_name_is_valid(const char *name, size_t bytes)
{
    return bytes > 0 && bytes <= TRP_NAME_BYTES_MAX && !is_dots(name, bytes) &&
           bad_byte(name, bytes, false) == bytes;
}

size_t
trpi_name_auto_format(uint32_t slot, char *buffer)
{
    char reversed[TRPI_NAME_AUTO_BYTES];
    size_t count = 0, at = 0;

    trpi_assert(slot > 0);
    for (; slot > 0; slot /= BASE) {
        reversed[count++] = digits[slot % BASE];
    }
    buffer[at++] = '$';
    while (count > 0) {
        buffer[at++] = reversed[--count];
    }
    trpi_assert(at < TRPI_NAME_AUTO_BYTES);
    buffer[at] = 0;
    return at;
}

bool
trpi_name_auto_parse(const char *name, size_t bytes, uint32_t *ret_slot)
{
    uint64_t slot = 0;

    if (bytes < 2 || bytes >= TRPI_NAME_AUTO_BYTES || name[0] != '$' || name[1] == digits[0]) {
        return false; /* a leading zero would be a second text for the same slot */
    }
    for (size_t i = 1; i < bytes; i++) {
        const char *digit = name[i] == 0 ? NULL : strchr(digits, name[i]);

        if (digit == NULL) {
            return false;
        }
        slot = slot * BASE + (uint64_t)(digit - digits);
    }
    if (slot > UINT32_MAX) {
        return false;
    }
    *ret_slot = (uint32_t)slot;
    return true;
}

bool
trpi_name_matches(const char *pattern, size_t pattern_bytes, const char *name, size_t name_bytes)
{
    size_t p = 0, n = 0, star = SIZE_MAX, star_n = 0;

    while (n < name_bytes) {
        if (p < pattern_bytes && pattern[p] == '*') {
            star = p++; /* try the empty run first */
            star_n = n;
        } else if (p < pattern_bytes && (pattern[p] == '?' || pattern[p] == name[n])) {
            p++;
            n++;
        } else if (star != SIZE_MAX) {
            p = star +
                /* only the last star needs backtracking: earlier ones matched as little as they
                 * can */
                1;
            n = ++star_n;
        } else {
            return false;
        }
    }
    while (p < pattern_bytes && pattern[p] == '*') {
        p++;
    }
    return p == pattern_bytes;
}

/* One element of a selection; false: it is not one, *at is moved to the mistake. */
static bool
parse_element(const char *text, size_t bytes, size_t *at, trpi_element *element)
{
    const char *name = text + *at;
    uint32_t slot;
    size_t bad;

    element->offset = (uint16_t)*at;
    element->bytes = (uint8_t)bytes;
    if (bytes == 0 || bytes > TRP_NAME_BYTES_MAX) {
        return false;
    }
    if (is_dots(name, bytes)) {
        element->kind = TRPI_ELEMENT_UP;
        return bytes == 2;
    }
    if (trpi_name_auto_parse(name, bytes, &slot)) {
        element->kind = TRPI_ELEMENT_NAME;
        return true;
    }
    /* "$*" may select automatic names, so '$' may begin a pattern */
    bad = name[0] == '$' ? 1 + bad_byte(name + 1, bytes - 1, true) : bad_byte(name, bytes, true);
    element->kind = memchr(name, '*', bytes) != NULL || memchr(name, '?', bytes) != NULL
                        ? TRPI_ELEMENT_PATTERN
                        : TRPI_ELEMENT_NAME;
    if (bad < bytes || (name[0] == '$' && element->kind == TRPI_ELEMENT_NAME)) {
        *at += bad < bytes ? bad : 0;
        return false;
    }
    return true;
}

trp_err
trpi_selection_parse(const char *text, trpi_selection_path *ret_path, size_t *ret_at)
{
    trpi_selection_path path = { 0 };
    size_t all = strnlen(text, TRP_PATH_BYTES_MAX + 1), at = 0;
    bool good = all > 0 && all <= TRP_PATH_BYTES_MAX;

    if (good && text[0] == '/') {
        path.absolute = true;
        at = 1;
    }
    while (good && at < all) {
        const char *slash = memchr(text + at, '/', all - at);
        size_t bytes = slash == NULL ? all - at : (size_t)(slash - (text + at));

        good = path.count < TRP_PATH_DEPTH_MAX &&
               parse_element(text, bytes, &at, &path.elements[path.count]);
        /* ".." behind a wildcard would visit the parent once for each child, and again for each
         * further pair */
        good = good && !(path.has_pattern && path.elements[path.count].kind == TRPI_ELEMENT_UP);
        if (good) {
            path.has_pattern |= path.elements[path.count++].kind == TRPI_ELEMENT_PATTERN;
            at += bytes + 1;
        }
    }
    if (!good) {
        if (ret_at != NULL) {
            *ret_at = at;
        }
        return TRP_EINVAL;
    }
    *ret_path = path;
    return TRP_OK;
}

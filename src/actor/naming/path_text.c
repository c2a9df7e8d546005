/* path_text.c - paths as values: parse, compare, join. Pure, no system.
 *
 * Shape.   [address] "/" name "/" name ... ["#" uid ["@" uid of the node]]
 * Limits.  TRP_PATH_DEPTH_MAX names, TRP_NAME_BYTES_MAX each, TRP_PATH_BYTES_MAX in all.
 * Tests.   tests/unit/actor/ref_test.c
 * Sources. SYS-12, -13, -17, -22.
 */
#include <troupe/path.h>

#include <string.h>

#include "actor/naming/name.h"
#include "base/address.h"

typedef struct taken_apart {
    bool has_address;
    trpi_address address;
    const char *names;  /* behind the first slash */
    size_t names_bytes; /* without "#uid" and a slash at the end */
    size_t end;         /* of all that, from the start of the text */
    unsigned count;
} taken_apart;

static bool
is_name(const char *name, size_t bytes)
{
    uint32_t slot;

    return trpi_name_is_valid(name, bytes) || trpi_name_auto_parse(name, bytes, &slot);
}

/* Count the names; false: one of them is not valid, or there are too many. */
static bool
names_check(taken_apart *parts)
{
    size_t from = 0;

    while (from < parts->names_bytes) {
        const char *name = parts->names + from;
        const char *slash = memchr(name, '/', parts->names_bytes - from);
        size_t bytes = slash == NULL ? parts->names_bytes - from : (size_t)(slash - name);

        if (!is_name(name, bytes) || ++parts->count > TRP_PATH_DEPTH_MAX) {
            return false;
        }
        from += bytes + 1;
    }
    return true;
}

/* Is it the uid of an actor, perhaps with "@" and the uid of its node? */
static bool
is_uid(const char *text)
{
    static const char digits[] = "0123456789";
    size_t first = strspn(text, digits);

    if (first > 0 && text[first] == '@') {
        text += first + 1;
        first = strspn(text, digits);
    }
    return first > 0 && text[first] == 0;
}

static bool
take_apart(const char *path, taken_apart *ret_parts)
{
    const char *rest = path;
    const char *uid;

    memset(ret_parts, 0, sizeof *ret_parts);
    if (path == NULL || strnlen(path, TRP_PATH_BYTES_MAX + 1) > TRP_PATH_BYTES_MAX) {
        return false;
    }
    if (path[0] != '/') {
        if (trpi_address_parse(path, &ret_parts->address, &rest, NULL) != TRP_OK) {
            return false;
        }
        ret_parts->has_address = true;
    }
    if (rest[0] != '/') {
        return false; /* an address alone is no path */
    }
    uid = strchr(rest, '#');
    ret_parts->names = rest + 1;
    ret_parts->names_bytes = uid == NULL ? strlen(rest + 1) : (size_t)(uid - (rest + 1));
    if (uid != NULL && !is_uid(uid + 1)) {
        return false;
    }
    if (ret_parts->names_bytes > 0 && ret_parts->names[ret_parts->names_bytes - 1] == '/') {
        ret_parts->names_bytes--;
        if (ret_parts->names_bytes == 0 || ret_parts->names[ret_parts->names_bytes - 1] == '/') {
            return false; /* "//", "/a//" */
        }
    }
    ret_parts->end = (size_t)(ret_parts->names - path) + ret_parts->names_bytes;
    return names_check(ret_parts);
}

trp_err
trp_path_check(const char *path)
{
    taken_apart parts;

    return take_apart(path, &parts) ? TRP_OK : TRP_EINVAL;
}

int
trp_path_equal(const char *a, const char *b)
{
    taken_apart left, right;

    return take_apart(a, &left) && take_apart(b, &right) && left.has_address == right.has_address &&
           (!left.has_address || trpi_address_equal(&left.address, &right.address)) &&
           left.names_bytes == right.names_bytes &&
           memcmp(left.names, right.names, left.names_bytes) == 0;
}

trp_err
trp_path_child(const char *path, const char *name, char *buffer, size_t bytes)
{
    size_t name_bytes = name == NULL ? 0 : strnlen(name, TRP_NAME_BYTES_MAX + 1);
    taken_apart parts;
    size_t slash, total;

    if (buffer == NULL || !take_apart(path, &parts) || !is_name(name, name_bytes)) {
        return TRP_EINVAL;
    }
    slash = parts.names_bytes == 0 ? 0 : 1; /* the root ends in a slash */
    total = parts.end + slash + name_bytes;
    if (parts.count == TRP_PATH_DEPTH_MAX || total > TRP_PATH_BYTES_MAX) {
        return TRP_ELIMIT;
    }
    if (bytes <= total) {
        return TRP_EMSGSIZE;
    }
    memmove(buffer, path, parts.end);
    buffer[parts.end] = '/';
    memmove(buffer + parts.end + slash, name, name_bytes);
    buffer[total] = 0;
    return TRP_OK;
}

trp_err
trp_path_parent(const char *path, char *buffer, size_t bytes)
{
    taken_apart parts;
    size_t end;

    if (buffer == NULL || !take_apart(path, &parts)) {
        return TRP_EINVAL;
    }
    if (parts.count == 0) {
        return TRP_ENOENT;
    }
    end = parts.end;
    while (path[end - 1] != '/') {
        end--;
    }
    end -= parts.count > 1 ? 1 : 0; /* the root keeps its slash */
    if (bytes <= end) {
        return TRP_EMSGSIZE;
    }
    memmove(buffer, path, end);
    buffer[end] = 0;
    return TRP_OK;
}

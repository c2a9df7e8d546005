/* entity_path.c - entities as text: "/cluster/TYPE/ID", a path that names no host.
 *
 * Tests.   tests/unit/cluster/entity_test.c
 * Sources. FUTURE-20
 */
#include <string.h>

#include "base/hash.h"
#include "cluster/sharding/region.h"

static const char prefix[] = "/cluster/";

static bool
is_plain(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '~';
}

typedef struct text {
    char *buffer;
    size_t bytes, count;
} text;

static void
text_put(text *t, char c)
{
    if (t->count + 1 < t->bytes) {
        t->buffer[t->count] = c;
    }
    t->count++;
}

size_t
trpi_entity_path_write(const char *type, const trp_entity *entity, char *buffer, size_t bytes)
{
    static const char digits[] = "0123456789ABCDEF";
    text t = { buffer, bytes, 0 };
    for (const char *c = prefix; *c != '\0'; c++) {
        text_put(&t, *c);
    }
    for (const char *c = type; *c != '\0'; c++) {
        text_put(&t, *c);
    }
    text_put(&t, '/');
    for (uint8_t i = 0; i < entity->id_bytes; i++) {
        unsigned char c = (unsigned char)entity->id[i];
        if (is_plain(c)) {
            text_put(&t, (char)c);
        } else {
            text_put(&t, '%');
            text_put(&t, digits[c >> 4]);
            text_put(&t, digits[c & 15]);
        }
    }
    if (bytes > 0) {
        buffer[t.count < bytes ? t.count : bytes - 1] = '\0';
    }
    return t.count;
}

size_t
trp_entity_path(trp_system *system, const trp_entity *entity, char *buffer, size_t bytes)
{
    const trpi_sharding *sharding = system == NULL ? NULL : trpi_system_entities(system);
    const trpi_region *region =
        sharding == NULL || entity == NULL ? NULL : trpi_region_find(sharding, entity->type);
    return region == NULL ? 0 : trpi_entity_path_write(region->name, entity, buffer, bytes);
}

static int
digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

trp_err
trp_entity_parse(const char *path, trp_entity *ret_entity)
{
    if (path == NULL || ret_entity == NULL || strncmp(path, prefix, sizeof prefix - 1) != 0) {
        return TRP_EINVAL;
    }
    const char *type = path + sizeof prefix - 1;
    const char *id = strchr(type, '/');
    char id_text[TRP_ENTITY_ID_BYTES_MAX];
    size_t count = 0;
    if (id == NULL || id == type || id - type > TRP_ENTITY_TYPE_BYTES_MAX) {
        return TRP_EINVAL;
    }
    for (const char *c = id + 1; *c != '\0'; c++) {
        char byte = *c;
        if (*c == '%') {
            int high = digit_of(c[1]), low = high < 0 ? -1 : digit_of(c[2]);
            if (low < 0) {
                return TRP_EINVAL;
            }
            byte = (char)(high << 4 | low);
            c += 2;
        } else if (!is_plain((unsigned char)*c)) {
            return TRP_EINVAL;
        }
        if (count == sizeof id_text) {
            return TRP_EINVAL;
        }
        id_text[count++] = byte;
    }
    if (count == 0) {
        return TRP_EINVAL;
    }
    *ret_entity = trp_entity_of(trpi_hash(type, (size_t)(id - type), 0), id_text, count);
    return TRP_OK;
}

/* entity_name.c - the ids of entities as texts: a journal keeps texts, an id is any bytes.
 *
 * Must hold.
 *   entity-name-N1  Two ids have two names, and unname() finds the id again.
 * Limits.  TRPI_ENTITY_NAME_BYTES: an id of TRP_ENTITY_ID_BYTES_MAX bytes of text fits; one of more
 *          than 63 bytes that are no text does not.
 * Tests.   tests/unit/cluster/entity_keep_test.c
 */
#include "base/utf8.h"
#include "cluster/sharding/region.h"

static const char digits[] = "0123456789ABCDEF";

static bool
is_plain(unsigned char byte, bool is_text)
{
    return byte < 0x80 ? byte >= 0x20 && byte != 0x7f && byte != '%' : is_text;
}

size_t
trpi_entity_name(const void *id, size_t id_bytes, char name[TRPI_ENTITY_NAME_BYTES])
{
    const unsigned char *bytes = id;
    bool is_text = trpi_utf8_is_valid(id, id_bytes);
    size_t at = 0;
    for (size_t i = 0; i < id_bytes; i++) {
        bool plain = is_plain(bytes[i], is_text);
        if (at + (plain ? 1 : 3) >= TRPI_ENTITY_NAME_BYTES) {
            return 0;
        }
        if (plain) {
            name[at++] = (char)bytes[i];
        } else {
            name[at++] = '%';
            name[at++] = digits[bytes[i] >> 4];
            name[at++] = digits[bytes[i] & 15];
        }
    }
    name[at] = '\0';
    return at;
}

/* -1: it is no digit. */
static int
digit_of(char c)
{
    const char *at = c == '\0' ? NULL : strchr(digits, c);
    return at == NULL ? -1 : (int)(at - digits);
}

size_t
trpi_entity_unname(const char *name, char id[TRP_ENTITY_ID_BYTES_MAX])
{
    size_t at = 0;
    for (; *name != '\0'; name++) {
        if (at == TRP_ENTITY_ID_BYTES_MAX) {
            return 0;
        }
        if (*name != '%') {
            id[at++] = *name;
            continue;
        }
        int high = digit_of(name[1]), low = high < 0 ? -1 : digit_of(name[2]);
        if (low < 0) {
            return 0;
        }
        id[at++] = (char)(high << 4 | low);
        name += 2;
    }
    return at;
}

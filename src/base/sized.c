/* sized.c - the rules of sized.h, for structs of another size than ours.
 *
 * Tests.   tests/unit/base/sized_test.c
 */
#include "base/sized.h"

#include <string.h>

static bool
size_is_possible(size_t size, size_t first)
{
    return size >= first && size <= TRPI_SIZED_BYTES_MAX;
}

bool
trpi_sized_differs_well(const void *given, size_t first, size_t known)
{
    const unsigned char *bytes = given;
    size_t size = *(const size_t *)given;

    if (!size_is_possible(size, first)) {
        return false;
    }
    for (size_t i = known; i < size; i++) {
        if (bytes[i] != 0) {
            return false; /* a newer program asks for an option that this library lacks */
        }
    }
    return true;
}

const void *
trpi_sized_convert(const void *given, void *own, size_t first, size_t known)
{
    size_t size = *(const size_t *)given, common = size < known ? size : known;

    if (!trpi_sized_differs_well(given, first, known)) {
        return NULL;
    }
    memcpy(own, given, common);
    memset((unsigned char *)own + common, 0, known - common);
    *(size_t *)own = known;
    return own;
}

bool
trpi_sized_write(void *ret, const void *own, size_t first, size_t known)
{
    size_t size = *(const size_t *)ret, common = size < known ? size : known;

    if (!size_is_possible(size, first)) {
        return false;
    }
    memcpy(ret, own, common);
    memset((unsigned char *)ret + common, 0, size - common);
    *(size_t *)ret = size;
    return true;
}

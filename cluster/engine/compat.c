/* compat.c - see the header.
 *
 * Tests. tests/unit/cluster/compat_test.c
 */
#include "cluster/engine/compat.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

trp_err
trpi_compat_add(trpi_compat *compat, const char *key, const char *value)
{
    trpi_assert_slow(compat->count <= TRPI_COMPAT_MAX);
    if (compat->count == TRPI_COMPAT_MAX || strlen(key) >= TRPI_COMPAT_KEY_BYTES ||
        strlen(value) >= TRPI_COMPAT_VALUE_BYTES) {
        return TRP_ELIMIT;
    }
    memcpy(compat->entries[compat->count].key, key, strlen(key) + 1);
    memcpy(compat->entries[compat->count].value, value, strlen(value) + 1);
    compat->count++;
    trpi_assert_slow(compat->count <= TRPI_COMPAT_MAX);
    return TRP_OK;
}

bool
trpi_compat_set(trpi_compat *compat, const char *key, const char *value)
{
    trpi_assert_slow(compat->count <= TRPI_COMPAT_MAX);
    for (uint32_t i = 0; i < compat->count; i++) {
        if (strcmp(compat->entries[i].key, key) == 0 && strlen(value) < TRPI_COMPAT_VALUE_BYTES) {
            memcpy(compat->entries[i].value, value, strlen(value) + 1);
            return true;
        }
    }
    return false;
}

static const char *
value_of(const trpi_compat *compat, const char *key)
{
    trpi_assert_slow(compat->count <= TRPI_COMPAT_MAX);
    for (uint32_t i = 0; i < compat->count; i++) {
        if (strcmp(compat->entries[i].key, key) == 0) {
            return compat->entries[i].value;
        }
    }
    return NULL;
}

static bool
has_word(const char *list, const char *word, size_t bytes)
{
    for (;;) {
        size_t count = strcspn(list, ",");
        if (count == bytes && memcmp(list, word, bytes) == 0) {
            return true;
        }
        if (list[count] == '\0') {
            return false;
        }
        list += count + 1;
    }
}

static bool
share_a_word(const char *a, const char *b)
{
    for (;;) {
        size_t count = strcspn(a, ",");
        if (has_word(b, a, count)) {
            return true;
        }
        if (a[count] == '\0') {
            return false;
        }
        a += count + 1;
    }
}

bool
trpi_compat_check(const trpi_compat *joining, const trpi_compat *own, char *ret_why,
                  size_t why_bytes)
{
    trpi_assert_slow(why_bytes > 0);
    for (uint32_t i = 0; joining != NULL && own != NULL && i < joining->count; i++) {
        const char *key = joining->entries[i].key, *theirs = joining->entries[i].value;
        const char *ours = value_of(own, key);
        if (ours == NULL || share_a_word(theirs, ours)) {
            continue;
        }
        if (*theirs == TRPI_COMPAT_SECRET || *ours == TRPI_COMPAT_SECRET) {
            (void)snprintf(ret_why, why_bytes, "%s: not the secret of the cluster", key);
        } else {
            (void)snprintf(ret_why, why_bytes,
                           "%s: %.40s at the joining node, %.40s in the cluster", key,
                           *theirs ? theirs : "nothing", *ours ? ours : "nothing");
        }
        return false;
    }
    return true;
}

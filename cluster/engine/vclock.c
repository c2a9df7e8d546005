/* vclock.c - vector clocks as sorted arrays; every function is one pass. Tests:
 * tests/unit/cluster/gossip_test.c. Sources: Mattern 1988; GOSSIP-02, -12; GAP-10. */
#include "cluster/engine/vclock.h"

#include <stddef.h>
#include <string.h>

#include "base/assert.h"

trpi_vclock_order
trpi_vclock_compare(const trpi_vclock_entry *a, uint32_t a_count, const trpi_vclock_entry *b,
                    uint32_t b_count, trpi_vclock_ignore_fn ignore, const void *ignore_a,
                    const void *ignore_b)
{
    bool a_ahead = false;
    bool b_ahead = false;
    uint32_t i = 0;
    uint32_t j = 0;
    while (i < a_count || j < b_count) {
        if (j == b_count || (i < a_count && a[i].key < b[j].key)) {
            a_ahead = a_ahead || ignore == NULL || !ignore(ignore_a, a[i].key);
            i++;
        } else if (i == a_count || b[j].key < a[i].key) {
            b_ahead = b_ahead || ignore == NULL || !ignore(ignore_b, b[j].key);
            j++;
        } else {
            a_ahead = a_ahead || a[i].counter > b[j].counter;
            b_ahead = b_ahead || b[j].counter > a[i].counter;
            i++;
            j++;
        }
    }
    if (a_ahead) {
        return b_ahead ? TRPI_VCLOCK_CONCURRENT : TRPI_VCLOCK_AFTER;
    }
    return b_ahead ? TRPI_VCLOCK_BEFORE : TRPI_VCLOCK_SAME;
}

uint32_t
trpi_vclock_merge(const trpi_vclock_entry *a, uint32_t a_count, const trpi_vclock_entry *b,
                  uint32_t b_count, trpi_vclock_entry *out)
{
    uint32_t i = 0;
    uint32_t j = 0;
    uint32_t count = 0;
    while (i < a_count || j < b_count) {
        if (j == b_count || (i < a_count && a[i].key < b[j].key)) {
            out[count++] = a[i++];
        } else if (i == a_count || b[j].key < a[i].key) {
            out[count++] = b[j++];
        } else {
            out[count] = a[i++];
            if (b[j].counter > out[count].counter) {
                out[count].counter = b[j].counter;
            }
            j++;
            count++;
        }
    }
    trpi_assert_slow(count <= a_count + b_count && count >= a_count);
    return count;
}

static uint32_t
vclock_find(const trpi_vclock_entry *entries, uint32_t count, uint64_t key)
{
    uint32_t low = 0;
    uint32_t high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (entries[middle].key < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

uint32_t
trpi_vclock_increment(trpi_vclock_entry *entries, uint32_t count, uint64_t key)
{
    uint32_t at = vclock_find(entries, count, key);
    if (at < count && entries[at].key == key) {
        trpi_assert(entries[at].counter < UINT64_MAX);
        entries[at].counter++;
        return count;
    }
    memmove(entries + at + 1, entries + at, (count - at) * sizeof *entries);
    entries[at].key = key;
    entries[at].counter = 1;
    return count + 1;
}

uint64_t
trpi_vclock_get(const trpi_vclock_entry *entries, uint32_t count, uint64_t key)
{
    uint32_t at = vclock_find(entries, count, key);
    return at < count && entries[at].key == key ? entries[at].counter : 0;
}

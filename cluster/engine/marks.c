/* marks.c - which members are drained. See marks.h.
 *
 * Must hold.
 *   marks-D1  Entries are sorted by key, each key once, and no counter is 0.
 * Tests.   tests/unit/cluster/marks_test.c
 */
#include "cluster/engine/marks.h"

#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"

void
trpi_marks_fini(trpi_marks *marks)
{
    trpi_free(marks->entries);
    memset(marks, 0, sizeof *marks);
}

/* Return the index of the key, or where it belongs. */
static uint32_t
place_of(const trpi_marks *marks, uint64_t key)
{
    uint32_t low = 0, high = marks->entries_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (marks->entries[middle].key < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool
has_key_at(const trpi_marks *marks, uint32_t place, uint64_t key)
{
    return place < marks->entries_count && marks->entries[place].key == key;
}

uint64_t
trpi_marks_get(const trpi_marks *marks, uint64_t key)
{
    uint32_t place = place_of(marks, key);
    return has_key_at(marks, place, key) ? marks->entries[place].counter : 0;
}

trp_err
trpi_marks_raise(trpi_marks *marks, uint64_t key, uint64_t counter, bool *ret_raised)
{
    uint32_t place = place_of(marks, key);
    *ret_raised = false;
    if (counter == 0) {
        return TRP_OK;
    }
    if (has_key_at(marks, place, key)) {
        *ret_raised = counter > marks->entries[place].counter;
        marks->entries[place].counter = *ret_raised ? counter : marks->entries[place].counter;
        return TRP_OK;
    }
    if (marks->entries_count >= TRPI_GOSSIP_MEMBERS_MAX) {
        return TRP_ELIMIT;
    }
    if (!TRPI_ARRAY_HAS_ROOM(marks, entries)) {
        return TRP_ENOMEM;
    }
    memmove(marks->entries + place + 1, marks->entries + place,
            (marks->entries_count - place) * sizeof *marks->entries);
    marks->entries[place] = (trpi_vclock_entry){ key, counter };
    marks->entries_count++;
    *ret_raised = true;
    return TRP_OK;
}

void
trpi_marks_retain(trpi_marks *marks, const trpi_gossip *view)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < marks->entries_count; i++) {
        if (trpi_gossip_find(view, marks->entries[i].key) != TRPI_GOSSIP_NONE) {
            marks->entries[kept++] = marks->entries[i];
        }
    }
    trpi_assert_slow(kept <= marks->entries_count);
    marks->entries_count = kept;
}

const char *
trpi_marks_check(const trpi_marks *marks, trpi_check *check)
{
    for (uint32_t i = 0; i < marks->entries_count; i++) {
        const trpi_vclock_entry *entry = &marks->entries[i];
        if (entry->counter == 0 || (i > 0 && entry[-1].key >= entry->key)) {
            return trpi_check_broken(check, "marks-D1: mark %u of %u is 0, or out of order", i,
                                     marks->entries_count);
        }
    }
    return NULL;
}

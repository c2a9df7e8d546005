/* metrics_table.c - one node's figures of all nodes: immutable tables of immutable entries, and
 * their merge. See metrics.h.
 *
 * Must hold.
 *   metrics-table-T1  A merge has the newest entry of each node, and is commutative, associative,
 *       idempotent; of two entries with the same number, which no correct node makes, the one with
 *       the greater bytes stays.
 *   metrics-table-T2  A table never changes; reference counts are atomic, since tables cross
 *       threads.
 * Cost.    merge: O(n) pointers; figures are not copied.
 * Tests.   tests/unit/cluster/metrics_gossip_test.c
 * Sources. CMETRIC-13.
 */
#include "cluster/metrics/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

trpi_metrics_entry *
trpi_metrics_entry_new(uint64_t key)
{
    trpi_metrics_entry *entry = trpi_alloc(sizeof *entry);
    if (entry != NULL) {
        atomic_init(&entry->refs, 1);
        entry->key = key;
    }
    return entry;
}

/* Relaxed: the caller has a reference already. */
static trpi_metrics_entry *
entry_ref(trpi_metrics_entry *entry)
{
    (void)atomic_fetch_add_explicit(&entry->refs, 1, memory_order_relaxed);
    return entry;
}

void
trpi_metrics_entry_unref(trpi_metrics_entry *entry)
{
    /* acq_rel: the last owner sees the accesses of all others before it frees */
    if (entry != NULL && atomic_fetch_sub_explicit(&entry->refs, 1, memory_order_acq_rel) == 1) {
        trpi_free(entry);
    }
}

trpi_metrics_table *
trpi_metrics_table_ref(trpi_metrics_table *table)
{
    (void)atomic_fetch_add_explicit(&table->refs, 1, memory_order_relaxed); /* as entry_ref */
    return table;
}

void
trpi_metrics_table_unref(void *object)
{
    trpi_metrics_table *table = object;
    if (table != NULL && atomic_fetch_sub_explicit(&table->refs, 1, memory_order_acq_rel) == 1) {
        for (uint32_t i = 0; i < table->count; i++) {
            trpi_metrics_entry_unref(table->entries[i]);
        }
        trpi_free(table);
    }
}

/* metrics-table-T1. Compare entries byte by byte: they are zeroed before they are filled. */
static int
entry_newer(const trpi_metrics_entry *a, const trpi_metrics_entry *b)
{
    if (a->node.number != b->node.number) {
        return a->node.number < b->node.number ? -1 : 1;
    }
    return a == b ? 0 : memcmp(&a->node, &b->node, sizeof a->node);
}

static int
entries_compare(const void *a, const void *b)
{
    const trpi_metrics_entry *x = *(trpi_metrics_entry *const *)a;
    const trpi_metrics_entry *y = *(trpi_metrics_entry *const *)b;
    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    return entry_newer(x, y);
}

static trpi_metrics_table *
table_alloc(uint32_t room)
{
    trpi_metrics_table *table = trpi_alloc(sizeof *table + room * sizeof table->entries[0]);
    if (table != NULL) {
        atomic_init(&table->refs, 1);
    }
    return table;
}

trpi_metrics_table *
trpi_metrics_table_new(trpi_metrics_entry *const *entries, uint32_t count)
{
    trpi_metrics_table *table = table_alloc(count);
    if (table == NULL || count == 0) {
        return table;
    }
    memcpy(table->entries, entries, count * sizeof entries[0]);
    qsort(table->entries, count, sizeof entries[0], entries_compare);
    for (uint32_t i = 0; i < count; i++) { /* of one key the last, which is the newest */
        if (i + 1 == count || table->entries[i]->key != table->entries[i + 1]->key) {
            table->entries[table->count++] = entry_ref(table->entries[i]);
        }
    }
    return table;
}

/* Has b an entry that is newer than a's, or missing there? */
static bool
has_news(const trpi_metrics_table *a, const trpi_metrics_table *b)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        while (at < a->count && a->entries[at]->key < b->entries[i]->key) {
            at++;
        }
        if (at == a->count || a->entries[at]->key != b->entries[i]->key ||
            entry_newer(a->entries[at], b->entries[i]) < 0) {
            return true;
        }
    }
    return false;
}

trp_err
trpi_metrics_merge(trpi_metrics_table *a, trpi_metrics_table *b, trpi_metrics_table **ret_merged)
{
    if (!has_news(a, b)) {
        *ret_merged = trpi_metrics_table_ref(a);
        return TRP_OK;
    }
    trpi_metrics_table *merged = table_alloc(a->count + b->count);
    if (merged == NULL) {
        return TRP_ENOMEM;
    }
    uint32_t i = 0, j = 0;
    while (i < a->count || j < b->count) {
        trpi_metrics_entry *x = i < a->count ? a->entries[i] : NULL;
        trpi_metrics_entry *y = j < b->count ? b->entries[j] : NULL;
        bool same = x != NULL && y != NULL && x->key == y->key;
        bool mine = y == NULL || (x != NULL && (same ? entry_newer(x, y) >= 0 : x->key < y->key));
        merged->entries[merged->count++] = entry_ref(mine ? x : y);
        i += mine || same ? 1 : 0;
        j += !mine || same ? 1 : 0;
    }
    *ret_merged = merged;
    return TRP_OK;
}

const trp_node_metrics *
trpi_metrics_of(const trpi_metrics_table *table, uint64_t key)
{
    uint32_t low = 0, high = table->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (table->entries[middle]->key < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < table->count && table->entries[low]->key == key ? &table->entries[low]->node
                                                                 : NULL;
}

/* metrics_codec.c - the frames of the metrics gossip: a msgpack map with short keys, unknown keys
 * and figures skipped. See metrics.h, and docs/wire.md, "Channel 4".
 *
 * Limits.  TRPI_METRICS_FRAME_NODES_MAX nodes, TRP_METRICS_MAX figures each; more is refused.
 * Tests.   tests/unit/cluster/metrics_gossip_test.c, tests/fuzz/metrics_fuzz.c
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/pack.h"
#include "cluster/metrics/metrics.h"

#define ENTRY_HEAD 3u                /* key, number, wall ms; then name, value, name, value ... */
#define WHOLE_MAX 9007199254740992.0 /* 2^53: up to here a double is every whole number */

/* A name that each node has is one byte: its place here, from 1 on; wire numbers. */
static const char *const names[] = { TRP_METRIC_HEAP_USED,  TRP_METRIC_HEAP_COMMITTED,
                                     TRP_METRIC_HEAP_MAX,   TRP_METRIC_LOAD,
                                     TRP_METRIC_PROCESSORS, TRP_METRIC_CPU };
#define NAMES_COUNT (sizeof(names) / sizeof(names[0]))

/* ---- encode ---------------------------------------------------------------------------------- */

static void
pack_metric(trpi_pack_writer *w, const trp_metric *metric)
{
    size_t i = 0;
    while (i < NAMES_COUNT && strcmp(names[i], metric->name) != 0) {
        i++;
    }
    if (i < NAMES_COUNT) {
        trpi_pack_u64(w, i + 1);
    } else {
        trpi_pack_text(w, metric->name);
    }
    if (metric->value < WHOLE_MAX && floor(metric->value) == metric->value) {
        trpi_pack_u64(w, (uint64_t)metric->value);
    } else {
        trpi_pack_f64(w, metric->value);
    }
}

trp_err
trpi_metrics_encode(enum trpi_metrics_frame_kind kind, trpi_metrics_entry *const *entries,
                    uint32_t entries_count, trpi_buffer *ret_bytes)
{
    trpi_assert(entries_count <= TRPI_METRICS_FRAME_NODES_MAX);
    trpi_pack_writer w = { .limit = TRPI_PACK_BYTES_MAX };
    trpi_pack_map(&w, 2);
    trpi_pack_text(&w, "k");
    trpi_pack_u64(&w, kind);
    trpi_pack_text(&w, "n");
    trpi_pack_array(&w, entries_count);
    for (uint32_t i = 0; i < entries_count; i++) {
        const trp_node_metrics *node = &entries[i]->node;
        trpi_pack_array(&w, ENTRY_HEAD + 2 * node->count);
        trpi_pack_u64(&w, entries[i]->key);
        trpi_pack_u64(&w, node->number);
        trpi_pack_i64(&w, node->wall_ms);
        for (uint32_t j = 0; j < node->count; j++) {
            pack_metric(&w, &node->metrics[j]);
        }
    }
    if (w.err != TRP_OK) {
        trpi_buffer_fini(&w.buffer);
        return w.err;
    }
    *ret_bytes = w.buffer;
    return TRP_OK;
}

/* ---- decode ---------------------------------------------------------------------------------- */

/* false: the figure is invalid, or only a later version knows it, and is left out (CMETRIC-12). */
static bool
read_metric(const trpi_pack_value *name, const trpi_pack_value *value, trp_node_metrics *node)
{
    trp_metric metric;
    uint64_t number;
    double there;
    memset(&metric, 0, sizeof metric);
    if (trpi_pack_get_u64(name, UINT32_MAX, &number)) {
        if (number == 0 || number > NAMES_COUNT) {
            return true;
        }
        memcpy(metric.name, names[number - 1], strlen(names[number - 1]));
    } else if (!trpi_pack_get_text(name, metric.name, sizeof metric.name)) {
        return false;
    }
    if (!trpi_pack_get_f64(value, &metric.value)) {
        return false;
    }
    metric.value = metric.value == 0 ? 0 : metric.value; /* not -0: equal figures, equal bytes */
    if (trpi_metric_is_valid(&metric) && !trp_metrics_find(node, metric.name, &there)) {
        node->metrics[node->count++] = metric;
    }
    return true;
}

static const trpi_metrics_peer *
peer_find(const trpi_metrics_peer *peers, uint32_t count, uint64_t key)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (peers[middle].key < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < count && peers[low].key == key ? &peers[low] : NULL;
}

/* *ret_entry NULL: the node is no member here. */
static trp_err
read_entry(const trpi_pack_value *array, const trpi_metrics_peer *peers, uint32_t peers_count,
           trpi_metrics_entry **ret_entry)
{
    uint32_t count;
    uint64_t key, number;
    int64_t wall_ms;
    *ret_entry = NULL;
    if (!trpi_pack_get_count(array, ENTRY_HEAD + 2 * TRP_METRICS_MAX, &count) ||
        count < ENTRY_HEAD || (count - ENTRY_HEAD) % 2 != 0 ||
        !trpi_pack_get_u64(trpi_pack_at(array, 0), UINT64_MAX, &key) ||
        !trpi_pack_get_u64(trpi_pack_at(array, 1), TRPI_METRICS_NUMBER_MAX, &number) ||
        number == 0 || !trpi_pack_get_i64(trpi_pack_at(array, 2), &wall_ms)) {
        return TRP_EDATA;
    }
    const trpi_metrics_peer *peer = peer_find(peers, peers_count, key);
    if (peer == NULL) {
        return TRP_OK;
    }
    trpi_metrics_entry *entry = trpi_metrics_entry_new(key);
    if (entry == NULL) {
        return TRP_ENOMEM;
    }
    (void)trpi_address_format(&peer->id.address, entry->node.address, sizeof entry->node.address);
    entry->node.uid = peer->id.uid;
    entry->node.number = number;
    entry->node.wall_ms = wall_ms;
    for (uint32_t i = ENTRY_HEAD; i < count; i += 2) {
        if (!read_metric(trpi_pack_at(array, i), trpi_pack_at(array, i + 1), &entry->node)) {
            trpi_metrics_entry_unref(entry);
            return TRP_EDATA;
        }
    }
    *ret_entry = entry;
    return TRP_OK;
}

static trp_err
read_frame(const trpi_pack_value *root, const trpi_metrics_peer *peers, uint32_t peers_count,
           uint32_t *ret_kind, trpi_metrics_table **ret_table)
{
    trpi_metrics_entry *entries[TRPI_METRICS_FRAME_NODES_MAX];
    const trpi_pack_value *array = trpi_pack_find(root, "n");
    uint32_t count, kept = 0;
    uint64_t kind;
    if (!trpi_pack_get_u64(trpi_pack_find(root, "k"), UINT32_MAX, &kind) || kind == 0 ||
        !trpi_pack_get_count(array, TRPI_METRICS_FRAME_NODES_MAX, &count)) {
        return TRP_EDATA;
    }
    trp_err err = TRP_OK;
    for (uint32_t i = 0; i < count && err == TRP_OK; i++) {
        err = read_entry(trpi_pack_at(array, i), peers, peers_count, &entries[kept]);
        kept += err == TRP_OK && entries[kept] != NULL ? 1 : 0;
    }
    if (err == TRP_OK) {
        *ret_kind = (uint32_t)kind;
        *ret_table = trpi_metrics_table_new(entries, kept);
        err = *ret_table == NULL ? TRP_ENOMEM : TRP_OK;
    }
    for (uint32_t i = 0; i < kept; i++) {
        trpi_metrics_entry_unref(entries[i]);
    }
    return err;
}

trp_err
trpi_metrics_decode(const uint8_t *bytes, size_t count, const trpi_metrics_peer *peers,
                    uint32_t peers_count, uint32_t *ret_kind, trpi_metrics_table **ret_table)
{
    trpi_pack_doc *doc;
    trp_err err = trpi_pack_parse(bytes, count, &doc);
    if (err == TRP_OK) {
        err = read_frame(trpi_pack_root(doc), peers, peers_count, ret_kind, ret_table);
        trpi_pack_doc_free(doc);
    }
    return err;
}

/* metrics_fuzz.c - any bytes as a frame of the metrics gossip: refused, or figures that make sense,
 * merge, and read back as they were written. A valid frame is also given to a node. */
#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/engine/ident.h"
#include "cluster/metrics/metrics.h"
#include "tests/fuzz/node_id.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PEERS 4u

/* Members 10 to 13, as in the corpus. */
static void
peers_make(trpi_metrics_peer *peers)
{
    for (uint32_t i = 0; i < PEERS; i++) {
        peers[i] = (trpi_metrics_peer){ 10 + i, node_id("test", i + 1), true };
    }
}

static void
try_table(trpi_metrics_table *table, const trpi_metrics_peer *peers)
{
    trpi_metrics_table *back = NULL, *merged = NULL;
    trpi_buffer bytes = { NULL, 0, 0 };
    uint32_t kind;
    for (uint32_t i = 0; i < table->count; i++) {
        for (uint32_t j = 0; j < table->entries[i]->node.count; j++) {
            trpi_assert(trpi_metric_is_valid(&table->entries[i]->node.metrics[j]));
        }
    }
    trpi_assert(trpi_metrics_encode(TRPI_METRICS_TELL, table->entries, table->count, &bytes) ==
                TRP_OK);
    trpi_assert(trpi_metrics_decode(bytes.data, bytes.count, peers, PEERS, &kind, &back) == TRP_OK);
    trpi_assert(trpi_metrics_merge(table, back, &merged) == TRP_OK);
    trpi_assert(merged == table); /* the same: nothing new */
    trpi_metrics_table_unref(merged);
    trpi_metrics_table_unref(back);
    trpi_buffer_fini(&bytes);
}

static void
try_core(const uint8_t *data, size_t size)
{
    const trpi_metrics_options options = { .half_life_ms = 0 };
    trpi_node_id self = node_id("test", 1);
    trpi_metrics_core *core = NULL;
    trpi_buffer answer = { NULL, 0, 0 };
    trpi_metrics_peer *peers = trpi_alloc(PEERS * sizeof *peers);
    trpi_assert(peers != NULL && trpi_metrics_core_new(&self, &options, 1, &core) == TRP_OK);
    peers_make(peers);
    peers[0].key = trpi_ident_key(&self);
    trpi_assert(trpi_metrics_core_members(core, peers, PEERS) == TRP_OK);
    (void)trpi_metrics_core_frame(core, data, size, &answer); /* refused or taken */
    trpi_assert(trpi_metrics_of(trpi_metrics_core_table(core), trpi_ident_key(&self)) == NULL);
    trpi_buffer_fini(&answer);
    trpi_metrics_core_free(core);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trpi_metrics_peer peers[PEERS];
    trpi_metrics_table *table = NULL;
    uint32_t kind;
    peers_make(peers);
    if (trpi_metrics_decode(data, size, peers, PEERS, &kind, &table) == TRP_OK) {
        try_table(table, peers);
        trpi_metrics_table_unref(table);
        try_core(data, size);
    }
    return 0;
}

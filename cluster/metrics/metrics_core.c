/* metrics_core.c - the metrics of one node: measure, send, merge, forget; pure. See metrics.h.
 *
 * Shape.   each collect-interval   samples -> next measurement of this node
 *          each gossip-interval    TELL to one random member that is Up -> its ANSWER
 *          a frame                 decode -> merge -> (TELL only) ANSWER
 * Must hold.
 *   metrics-core-C1  Only this node's own measurements enter its table as its own: entries about it
 *       from other nodes are ignored.
 *   metrics-core-C2  Only present, reachable members are in the table: a removed one cannot come
 *       back.
 *   metrics-core-C3  An ANSWER is not answered.
 *   metrics-core-C4  A frame carries own figures and those of some others, chosen at random, of 40
 *       nodes at most: a round costs no more in a large cluster; the figures there are older.
 *   metrics-core-C5  After a pause one round is caught up, not each that was missed.
 * Tests.   tests/unit/cluster/metrics_gossip_test.c
 * Sources. CMETRIC-01, -13; decision 128.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "cluster/engine/ident.h"
#include "cluster/metrics/metrics.h"

struct trpi_metrics_core {
    trpi_node_id self;
    uint64_t self_key;
    uint32_t collect_interval_ms, gossip_interval_ms, half_life_ms;
    uint64_t random;          /* state */
    trpi_metrics_peer *peers; /* by key */
    uint32_t peers_count;
    bool member; /* this node is one of them */
    trpi_metrics_table *table;
    uint64_t serial;
    trp_node_metrics last;          /* of this node; number 0: none yet */
    uint64_t collected_ms;          /* when */
    uint64_t collect_ms, gossip_ms; /* when it is due next */
};

/* ---- life ------------------------------------------------------------------------------------ */

trp_err
trpi_metrics_core_new(const trpi_node_id *self, const trpi_metrics_options *options, uint64_t seed,
                      trpi_metrics_core **ret_core)
{
    trpi_metrics_core *core = trpi_alloc(sizeof *core);
    if (core == NULL) {
        return TRP_ENOMEM;
    }
    core->table = trpi_metrics_table_new(NULL, 0);
    if (core->table == NULL) {
        trpi_free(core);
        return TRP_ENOMEM;
    }
    core->self = *self;
    core->self_key = trpi_ident_key(self);
    core->random = seed;
    core->collect_interval_ms = options->collect_interval_ms == 0
                                    ? TRPI_METRICS_COLLECT_S_DEFAULT * 1000u
                                    : options->collect_interval_ms;
    core->gossip_interval_ms = options->gossip_interval_ms == 0
                                   ? TRPI_METRICS_GOSSIP_S_DEFAULT * 1000u
                                   : options->gossip_interval_ms;
    core->half_life_ms = options->half_life_ms == 0 ? TRPI_METRICS_HALF_LIFE_S_DEFAULT * 1000u
                                                    : options->half_life_ms;
    *ret_core = core;
    return TRP_OK;
}

void
trpi_metrics_core_free(trpi_metrics_core *core)
{
    if (core != NULL) {
        trpi_metrics_table_unref(core->table);
        trpi_free(core->peers);
        trpi_free(core);
    }
}

trpi_metrics_table *
trpi_metrics_core_table(const trpi_metrics_core *core)
{
    return core->table;
}

/* Takes table. */
static void
table_set(trpi_metrics_core *core, trpi_metrics_table *table)
{
    if (table == core->table) { /* nothing new */
        trpi_metrics_table_unref(table);
        return;
    }
    table->serial = ++core->serial;
    trpi_metrics_table_unref(core->table);
    core->table = table;
}

static uint64_t
next_random(trpi_metrics_core *core)
{
    return trpi_hash_u64(core->random += 0x9e3779b97f4a7c15u); /* SplitMix64's step */
}

/* ---- members --------------------------------------------------------------------------------- */

static int
peers_compare(const void *a, const void *b)
{
    const trpi_metrics_peer *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

static bool
is_peer(const trpi_metrics_core *core, uint64_t key)
{
    const trpi_metrics_peer wanted = { .key = key };
    return core->peers_count > 0 &&
           bsearch(&wanted, core->peers, core->peers_count, sizeof wanted, peers_compare) != NULL;
}

/* metrics-core-C2 */
static trp_err
entries_forget(trpi_metrics_core *core)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < core->table->count; i++) {
        kept += is_peer(core, core->table->entries[i]->key) ? 1 : 0;
    }
    if (kept == core->table->count) {
        return TRP_OK;
    }
    trpi_metrics_entry **entries = trpi_alloc((kept + 1) * sizeof *entries);
    if (entries == NULL) {
        return TRP_ENOMEM;
    }
    kept = 0;
    for (uint32_t i = 0; i < core->table->count; i++) {
        if (is_peer(core, core->table->entries[i]->key)) {
            entries[kept++] = core->table->entries[i];
        }
    }
    trpi_metrics_table *table = trpi_metrics_table_new(entries, kept);
    trpi_free(entries);
    if (table == NULL) {
        return TRP_ENOMEM;
    }
    table_set(core, table);
    return TRP_OK;
}

trp_err
trpi_metrics_core_members(trpi_metrics_core *core, trpi_metrics_peer *peers, uint32_t count)
{
    trpi_metrics_peer *before = core->peers;
    uint32_t before_count = core->peers_count;
    if (count > 0) {
        qsort(peers, count, sizeof *peers, peers_compare);
    }
    core->peers = peers;
    core->peers_count = count;
    trp_err err = entries_forget(core);
    if (err != TRP_OK) {
        core->peers = before;
        core->peers_count = before_count;
        return err;
    }
    core->member = is_peer(core, core->self_key);
    trpi_free(before);
    return TRP_OK;
}

/* ---- time ------------------------------------------------------------------------------------ */

uint32_t
trpi_metrics_core_due(trpi_metrics_core *core, uint64_t now_ms)
{
    uint32_t due = 0;
    if (!core->member) {
        return 0;
    }
    if (now_ms >= core->collect_ms) { /* metrics-core-C5 */
        core->collect_ms = now_ms + core->collect_interval_ms;
        due |= TRPI_METRICS_COLLECT;
    }
    if (core->gossip_ms == 0) { /* the first measurement must be there */
        core->gossip_ms = now_ms + core->gossip_interval_ms;
    } else if (now_ms >= core->gossip_ms) {
        core->gossip_ms = now_ms + core->gossip_interval_ms;
        due |= TRPI_METRICS_GOSSIP;
    }
    return due;
}

uint64_t
trpi_metrics_core_wake_ms(const trpi_metrics_core *core)
{
    if (!core->member) {
        return UINT64_MAX;
    }
    return core->collect_ms < core->gossip_ms ? core->collect_ms : core->gossip_ms;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static trp_err
news_merge(trpi_metrics_core *core, trpi_metrics_table *news)
{
    trpi_metrics_table *merged;
    trp_err err = trpi_metrics_merge(core->table, news, &merged);
    if (err == TRP_OK) {
        table_set(core, merged);
    }
    return err;
}

trp_err
trpi_metrics_core_sample(trpi_metrics_core *core, uint64_t now_ms, int64_t wall_ms,
                         const trp_metric *samples, uint32_t count)
{
    if (!core->member) {
        return TRP_ESTATE;
    }
    trpi_metrics_entry *entry = trpi_metrics_entry_new(core->self_key);
    if (entry == NULL) {
        return TRP_ENOMEM;
    }
    const trp_node_metrics *before = core->last.number == 0 ? NULL : &core->last;
    double alpha = trpi_metrics_alpha(now_ms - core->collected_ms, core->half_life_ms);
    trpi_metrics_next(before, samples, count, alpha, &entry->node);
    (void)trpi_address_format(&core->self.address, entry->node.address, sizeof entry->node.address);
    entry->node.uid = core->self.uid;
    entry->node.wall_ms = wall_ms;
    trpi_metrics_table *news = trpi_metrics_table_new(&entry, 1);
    trp_err err = news == NULL ? TRP_ENOMEM : news_merge(core, news);
    if (err == TRP_OK) {
        core->last = entry->node;
        core->collected_ms = now_ms;
    }
    trpi_metrics_table_unref(news);
    trpi_metrics_entry_unref(entry);
    return err;
}

/* ---- gossip ---------------------------------------------------------------------------------- */

/* Bring the entries that a frame carries to the front of `order` (metrics-core-C4). */
static void
entries_choose(trpi_metrics_core *core, trpi_metrics_entry **order, uint32_t count)
{
    uint32_t own = 0;
    while (own < count && order[own]->key != core->self_key) {
        own++;
    }
    for (uint32_t i = 0; i < TRPI_METRICS_FRAME_NODES_MAX; i++) {
        uint32_t other =
            i == 0 && own < count ? own : i + (uint32_t)(next_random(core) % (count - i));
        trpi_metrics_entry *before = order[i];
        order[i] = order[other];
        order[other] = before;
    }
}

static trp_err
write_frame(trpi_metrics_core *core, enum trpi_metrics_frame_kind kind, trpi_buffer *ret_bytes)
{
    uint32_t count = core->table->count;
    trpi_metrics_entry **order = trpi_alloc((count + 1) * sizeof *order);
    if (order == NULL) {
        return TRP_ENOMEM;
    }
    if (count > 0) {
        memcpy(order, core->table->entries, count * sizeof *order);
    }
    if (count > TRPI_METRICS_FRAME_NODES_MAX) {
        entries_choose(core, order, count);
        count = TRPI_METRICS_FRAME_NODES_MAX;
    }
    trp_err err = trpi_metrics_encode(kind, order, count, ret_bytes);
    trpi_free(order);
    return err;
}

trp_err
trpi_metrics_core_gossip(trpi_metrics_core *core, trpi_node_id *ret_to, trpi_buffer *ret_bytes)
{
    uint32_t hearing = 0;
    for (uint32_t i = 0; i < core->peers_count; i++) {
        hearing += core->peers[i].hears && core->peers[i].key != core->self_key ? 1 : 0;
    }
    if (hearing == 0 || core->table->count == 0) {
        return TRP_ENOENT;
    }
    uint64_t chosen = next_random(core) % hearing;
    for (uint32_t i = 0; i < core->peers_count; i++) {
        if (core->peers[i].hears && core->peers[i].key != core->self_key && chosen-- == 0) {
            *ret_to = core->peers[i].id;
            break;
        }
    }
    return write_frame(core, TRPI_METRICS_TELL, ret_bytes);
}

/* metrics-core-C1 */
static trp_err
without_own(const trpi_metrics_core *core, trpi_metrics_table *table,
            trpi_metrics_table **ret_table)
{
    trpi_metrics_entry *others[TRPI_METRICS_FRAME_NODES_MAX];
    uint32_t count = 0;
    trpi_assert(table->count <= TRPI_METRICS_FRAME_NODES_MAX);
    for (uint32_t i = 0; i < table->count; i++) {
        if (table->entries[i]->key != core->self_key) {
            others[count++] = table->entries[i];
        }
    }
    *ret_table = trpi_metrics_table_new(others, count);
    return *ret_table == NULL ? TRP_ENOMEM : TRP_OK;
}

trp_err
trpi_metrics_core_frame(trpi_metrics_core *core, const uint8_t *bytes, size_t count,
                        trpi_buffer *ret_answer)
{
    trpi_metrics_table *told = NULL, *news = NULL;
    uint32_t kind = 0;
    ret_answer->count = 0;
    trp_err err = trpi_metrics_decode(bytes, count, core->peers, core->peers_count, &kind, &told);
    if (err != TRP_OK) {
        return err;
    }
    err = without_own(core, told, &news);
    if (err == TRP_OK && kind <= TRPI_METRICS_ANSWER) { /* of a later version: skipped */
        err = news_merge(core, news);
    }
    if (err == TRP_OK && kind == TRPI_METRICS_TELL && core->member) { /* metrics-core-C3 */
        err = write_frame(core, TRPI_METRICS_ANSWER, ret_answer);
    }
    trpi_metrics_table_unref(news);
    trpi_metrics_table_unref(told);
    return err;
}

/* Tables of figures, their merge, their frames, and what a node does with them: many cores in one
 * thread, under a clock and a generator of the test. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/pack.h"
#include "cluster/engine/ident.h"
#include "cluster/metrics/metrics.h"
#include "tests/unit/golden.h"
#include "tests/unit/unit.h"

static uint64_t random_state;

static uint32_t
draw_below(uint32_t bound)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % bound);
}

static trpi_node_id
node_id(uint32_t number)
{
    trpi_node_id id;
    memset(&id, 0, sizeof id);
    (void)snprintf(id.address.protocol, sizeof id.address.protocol, "troupe.tcp");
    (void)snprintf(id.address.system, sizeof id.address.system, "test");
    (void)snprintf(id.address.host, sizeof id.address.host, "host%u", number);
    id.address.port = 2552;
    id.uid = 100 + number;
    return id;
}

/* ---- merge ----------------------------------------------------------------------------------- */

#define KEYS 6

static trpi_metrics_table *
random_table(void)
{
    trpi_metrics_entry *entries[KEYS];
    uint32_t count = 0;
    for (uint32_t key = 0; key < KEYS; key++) {
        if (draw_below(3) == 0) {
            continue;
        }
        trpi_metrics_entry *entry = trpi_metrics_entry_new(key);
        UNIT_REQUIRE(entry != NULL);
        entry->node.uid = key;
        entry->node.number = 1 + draw_below(4);
        entry->node.wall_ms = draw_below(3); /* ties with other bytes, which no honest node makes */
        entries[count++] = entry;
    }
    trpi_metrics_table *table = trpi_metrics_table_new(entries, count);
    for (uint32_t i = 0; i < count; i++) {
        trpi_metrics_entry_unref(entries[i]);
    }
    return table;
}

static bool
is_same(const trpi_metrics_table *a, const trpi_metrics_table *b)
{
    bool same = a->count == b->count;
    for (uint32_t i = 0; same && i < a->count; i++) {
        same = a->entries[i]->key == b->entries[i]->key &&
               memcmp(&a->entries[i]->node, &b->entries[i]->node, sizeof(trp_node_metrics)) == 0;
    }
    return same;
}

static trpi_metrics_table *
merge_tables(trpi_metrics_table *a, trpi_metrics_table *b)
{
    trpi_metrics_table *merged = NULL;
    UNIT_EQUAL(trpi_metrics_merge(a, b, &merged), TRP_OK);
    return merged;
}

/* CMETRIC-13 */
static void
a_merge_is_commutative_associative_and_idempotent_and_the_newest_wins(void)
{
    random_state = 20221;
    for (uint32_t i = 0; i < 1000; i++) {
        trpi_metrics_table *a = random_table(), *b = random_table(), *c = random_table();
        trpi_metrics_table *ab = merge_tables(a, b), *ba = merge_tables(b, a),
                           *bc = merge_tables(b, c);
        trpi_metrics_table *ab_c = merge_tables(ab, c), *a_bc = merge_tables(a, bc),
                           *again = merge_tables(ab, b);
        UNIT_TRUE(is_same(ab, ba));
        UNIT_TRUE(is_same(ab_c, a_bc));
        UNIT_TRUE(again == ab); /* nothing new: the same table */
        for (uint32_t k = 0; k < ab->count; k++) {
            const trp_node_metrics *x = trpi_metrics_of(a, ab->entries[k]->key);
            const trp_node_metrics *y = trpi_metrics_of(b, ab->entries[k]->key);
            uint64_t newest = x == NULL                            ? y->number
                              : y == NULL || x->number > y->number ? x->number
                                                                   : y->number;
            UNIT_EQUAL(ab->entries[k]->node.number, newest);
        }
        trpi_metrics_table *all[] = { a, b, c, ab, ba, bc, ab_c, a_bc, again };
        for (size_t t = 0; t < sizeof all / sizeof all[0]; t++) {
            trpi_metrics_table_unref(all[t]);
        }
    }
}

/* ---- frames ---------------------------------------------------------------------------------- */

static trpi_metrics_peer peers[TRPI_METRICS_FRAME_NODES_MAX + 8];

static void
peers_make(uint32_t count) /* by key: number i is key 10 + i */
{
    for (uint32_t i = 0; i < count; i++) {
        peers[i] = (trpi_metrics_peer){ 10 + i, node_id(i), true };
    }
}

/* As a node would make it: everything that a frame can say. */
static trpi_metrics_entry *
full_entry(uint64_t key, uint32_t figures)
{
    static const char *const names[] = { TRP_METRIC_HEAP_USED,  TRP_METRIC_HEAP_COMMITTED,
                                         TRP_METRIC_HEAP_MAX,   TRP_METRIC_LOAD,
                                         TRP_METRIC_PROCESSORS, TRP_METRIC_CPU };
    trpi_metrics_entry *entry = trpi_metrics_entry_new(key);
    trpi_node_id id = node_id((uint32_t)key - 10);
    UNIT_REQUIRE(entry != NULL);
    (void)trpi_address_format(&id.address, entry->node.address, sizeof entry->node.address);
    entry->node.uid = id.uid;
    entry->node.number = 7;
    entry->node.wall_ms = 1700000000000;
    for (uint32_t i = 0; i < figures; i++) {
        trp_metric *metric = &entry->node.metrics[entry->node.count++];
        if (i < 6) {
            (void)snprintf(metric->name, sizeof metric->name, "%s", names[i]);
        } else {
            (void)snprintf(metric->name, sizeof metric->name, "own-figure-%u", i);
        }
        metric->value = i == 5 ? 0.25 : 1000.0 * (i + 1);
    }
    return entry;
}

static void
a_frame_says_all_and_strangers_are_skipped(void)
{
    trpi_metrics_entry *entries[2] = { full_entry(10, TRP_METRICS_MAX), full_entry(11, 6) };
    trpi_metrics_table *read = NULL;
    trpi_buffer bytes = { NULL, 0, 0 };
    uint32_t kind = 0;
    peers_make(2);
    UNIT_EQUAL(trpi_metrics_encode(TRPI_METRICS_TELL, entries, 2, &bytes), TRP_OK);
    UNIT_EQUAL(trpi_metrics_decode(bytes.data, bytes.count, peers, 2, &kind, &read), TRP_OK);
    UNIT_EQUAL(kind, TRPI_METRICS_TELL);
    UNIT_EQUAL(read->count, 2);
    for (uint32_t i = 0; i < read->count; i++) {
        UNIT_TRUE(memcmp(&read->entries[i]->node, &entries[i]->node, sizeof(trp_node_metrics)) ==
                  0);
    }
    trpi_metrics_table_unref(read);
    UNIT_EQUAL(trpi_metrics_decode(bytes.data, bytes.count, peers, 1, &kind, &read), TRP_OK);
    UNIT_EQUAL(read->count, 1); /* the other one is no member */
    trpi_metrics_table_unref(read);
    for (size_t i = 0; i < bytes.count; i++) { /* cut anywhere: refused */
        UNIT_TRUE(trpi_metrics_decode(bytes.data, i, peers, 2, &kind, &read) != TRP_OK);
    }
    trpi_buffer_fini(&bytes);
    trpi_metrics_entry_unref(entries[0]);
    trpi_metrics_entry_unref(entries[1]);
}

/* One frame of one node with these figures: name number or text, value. */
static trp_err
read_one(void (*write)(trpi_pack_writer *w), uint32_t elements, trpi_metrics_table **ret_table)
{
    trpi_pack_writer w = { .limit = TRPI_PACK_BYTES_MAX };
    uint32_t kind;
    trpi_pack_map(&w, 3);
    trpi_pack_text(&w, "later"); /* a key of a later version */
    trpi_pack_nil(&w);
    trpi_pack_text(&w, "k");
    trpi_pack_u64(&w, TRPI_METRICS_ANSWER);
    trpi_pack_text(&w, "n");
    trpi_pack_array(&w, 1);
    trpi_pack_array(&w, elements);
    trpi_pack_u64(&w, 10);
    write(&w);
    trp_err err = trpi_metrics_decode(w.buffer.data, w.buffer.count, peers, 1, &kind, ret_table);
    trpi_buffer_fini(&w.buffer);
    return err;
}

static void
pack_senseless(trpi_pack_writer *w)
{
    trpi_pack_u64(w, 1);
    trpi_pack_i64(w, -5);
    trpi_pack_u64(w, 1);
    trpi_pack_f64(w, -1.0);
    trpi_pack_u64(w, 2);
    trpi_pack_f64(w, NAN);
    trpi_pack_u64(w, 99); /* a name of a later version */
    trpi_pack_f64(w, 1.0);
    trpi_pack_text(w, "own");
    trpi_pack_f64(w, 0.5);
}

static void
without_value(trpi_pack_writer *w)
{
    trpi_pack_u64(w, 1);
    trpi_pack_i64(w, 0);
    trpi_pack_u64(w, 1);
}

static void
number_nought(trpi_pack_writer *w)
{
    trpi_pack_u64(w, 0);
    trpi_pack_i64(w, 0);
}

static void
number_too_high(trpi_pack_writer *w)
{
    trpi_pack_u64(w, TRPI_METRICS_NUMBER_MAX + 1);
    trpi_pack_i64(w, 0);
}

/* CMETRIC-12 */
static void
what_makes_no_sense_in_a_frame_is_left_out_or_refused(void)
{
    trpi_metrics_table *read = NULL;
    double value = 0;
    peers_make(1);
    UNIT_EQUAL(read_one(pack_senseless, 11, &read), TRP_OK);
    UNIT_EQUAL(read->entries[0]->node.count, 1);
    UNIT_TRUE(trp_metrics_find(&read->entries[0]->node, "own", &value) && value == 0.5);
    trpi_metrics_table_unref(read);
    UNIT_EQUAL(read_one(without_value, 4, &read), TRP_EDATA);
    UNIT_EQUAL(read_one(number_nought, 3, &read), TRP_EDATA);
    UNIT_EQUAL(read_one(number_too_high, 3, &read), TRP_EDATA);
}

/* The limit, and one past it. */
static void
a_frame_has_a_limit(void)
{
    trpi_metrics_entry *entries[TRPI_METRICS_FRAME_NODES_MAX];
    trpi_metrics_table *read = NULL;
    trpi_buffer bytes = { NULL, 0, 0 };
    uint32_t kind = 0;
    peers_make(TRPI_METRICS_FRAME_NODES_MAX + 1);
    for (uint32_t i = 0; i < TRPI_METRICS_FRAME_NODES_MAX; i++) {
        entries[i] = full_entry(10 + i, TRP_METRICS_MAX);
    }
    UNIT_EQUAL(
        trpi_metrics_encode(TRPI_METRICS_TELL, entries, TRPI_METRICS_FRAME_NODES_MAX, &bytes),
        TRP_OK);
    UNIT_TRUE(bytes.count < 32000); /* the least that remote.maximum-frame-size may be */
    UNIT_EQUAL(trpi_metrics_decode(bytes.data, bytes.count, peers, TRPI_METRICS_FRAME_NODES_MAX + 1,
                                   &kind, &read),
               TRP_OK);
    UNIT_EQUAL(read->count, TRPI_METRICS_FRAME_NODES_MAX);
    trpi_metrics_table_unref(read);
    trpi_buffer_fini(&bytes);
    trpi_pack_writer w = { .limit = TRPI_PACK_BYTES_MAX };
    trpi_pack_map(&w, 2);
    trpi_pack_text(&w, "k");
    trpi_pack_u64(&w, TRPI_METRICS_TELL);
    trpi_pack_text(&w, "n");
    trpi_pack_array(&w, TRPI_METRICS_FRAME_NODES_MAX + 1);
    for (uint32_t i = 0; i <= TRPI_METRICS_FRAME_NODES_MAX; i++) {
        trpi_pack_array(&w, 3);
        trpi_pack_u64(&w, 10 + i);
        trpi_pack_u64(&w, 1);
        trpi_pack_i64(&w, 0);
    }
    UNIT_EQUAL(trpi_metrics_decode(w.buffer.data, w.buffer.count, peers,
                                   TRPI_METRICS_FRAME_NODES_MAX + 1, &kind, &read),
               TRP_EDATA);
    trpi_buffer_fini(&w.buffer);
    for (uint32_t i = 0; i < TRPI_METRICS_FRAME_NODES_MAX; i++) {
        trpi_metrics_entry_unref(entries[i]);
    }
}

static void
golden_line(FILE *file, const char *name, enum trpi_metrics_frame_kind kind,
            trpi_metrics_entry *const *entries, uint32_t count)
{
    trpi_buffer bytes = { NULL, 0, 0 };
    UNIT_EQUAL(trpi_metrics_encode(kind, entries, count, &bytes), TRP_OK);
    fprintf(file, "%s ", name);
    for (size_t i = 0; i < bytes.count; i++) {
        fprintf(file, "%02x", bytes.data[i]);
    }
    fprintf(file, "\n");
    trpi_buffer_fini(&bytes);
}

static void
golden_write(FILE *file)
{
    trpi_metrics_entry *entries[2] = { full_entry(10, 8), full_entry(11, 0) };
    golden_line(file, "tell", TRPI_METRICS_TELL, entries, 2);
    golden_line(file, "answer", TRPI_METRICS_ANSWER, entries, 1);
    golden_line(file, "tell-nothing", TRPI_METRICS_TELL, entries, 0);
    trpi_metrics_entry_unref(entries[0]);
    trpi_metrics_entry_unref(entries[1]);
}

static void
frames_are_those_of_the_golden_file(void)
{
    char *line = strtok(unit_golden("metrics-1.txt", golden_write), "\n");
    uint32_t lines = 0;
    peers_make(2);
    for (; line != NULL; line = strtok(NULL, "\n"), lines++) {
        uint8_t bytes[512];
        size_t count = 0;
        uint32_t kind = 0;
        trpi_metrics_table *read = NULL;
        for (const char *hex = strchr(line, ' ') + 1; hex[0] != '\0' && hex[1] != '\0'; hex += 2) {
            char digits[3] = { hex[0], hex[1], '\0' };
            bytes[count++] = (uint8_t)strtoul(digits, NULL, 16);
        }
        UNIT_EQUAL(trpi_metrics_decode(bytes, count, peers, 2, &kind, &read), TRP_OK);
        trpi_metrics_table_unref(read);
    }
    UNIT_EQUAL(lines, 3);
}

/* ---- many nodes ------------------------------------------------------------------------------ */

#define NODES_MAX 60u

struct net {
    uint32_t count;
    uint64_t now_ms;
    trpi_metrics_core *cores[NODES_MAX];
    trpi_node_id ids[NODES_MAX];
    bool gone[NODES_MAX];
    uint64_t frames, frame_bytes_max;
};

static struct net net;

/* All learn the members; a member that is gone is told nothing. */
static void
net_members(void)
{
    for (uint32_t i = 0; i < net.count; i++) {
        trpi_metrics_peer *list = trpi_alloc(net.count * sizeof *list);
        uint32_t count = 0;
        for (uint32_t j = 0; j < net.count; j++) {
            if (!net.gone[j]) {
                list[count++] =
                    (trpi_metrics_peer){ trpi_ident_key(&net.ids[j]), net.ids[j], true };
            }
        }
        if (net.gone[i] || trpi_metrics_core_members(net.cores[i], list, count) != TRP_OK) {
            trpi_free(list);
        }
    }
}

static void
net_open(uint32_t count)
{
    const trpi_metrics_options options = { .half_life_ms = 0 };
    memset(&net, 0, sizeof net);
    net.count = count;
    net.now_ms = 5000;
    for (uint32_t i = 0; i < count; i++) {
        net.ids[i] = node_id(i);
        UNIT_REQUIRE(trpi_metrics_core_new(&net.ids[i], &options, i + 1, &net.cores[i]) == TRP_OK);
    }
    net_members();
}

static void
net_close(void)
{
    for (uint32_t i = 0; i < net.count; i++) {
        trpi_metrics_core_free(net.cores[i]);
    }
}

static void
net_deliver(const trpi_node_id *to, trpi_buffer *bytes, uint32_t from)
{
    trpi_buffer answer = { NULL, 0, 0 };
    uint32_t i = (uint32_t)(to->uid - 100);
    net.frames++;
    net.frame_bytes_max = bytes->count > net.frame_bytes_max ? bytes->count : net.frame_bytes_max;
    if (!net.gone[i]) {
        UNIT_EQUAL(trpi_metrics_core_frame(net.cores[i], bytes->data, bytes->count, &answer),
                   TRP_OK);
    }
    trpi_buffer_fini(bytes);
    if (answer.count > 0) {
        net_deliver(&net.ids[from], &answer, i);
    }
}

static void
net_run(uint64_t ms)
{
    const trp_metric sample = { TRP_METRIC_CPU, 0.5, 1, 0 };
    for (uint64_t end_ms = net.now_ms + ms; net.now_ms < end_ms; net.now_ms += 100) {
        for (uint32_t i = 0; i < net.count; i++) {
            trpi_buffer bytes = { NULL, 0, 0 };
            trpi_node_id to;
            uint32_t due = net.gone[i] ? 0 : trpi_metrics_core_due(net.cores[i], net.now_ms);
            if ((due & TRPI_METRICS_COLLECT) != 0) {
                UNIT_EQUAL(trpi_metrics_core_sample(net.cores[i], net.now_ms, 0, &sample, 1),
                           TRP_OK);
            }
            if ((due & TRPI_METRICS_GOSSIP) != 0 &&
                trpi_metrics_core_gossip(net.cores[i], &to, &bytes) == TRP_OK) {
                net_deliver(&to, &bytes, i);
            }
        }
    }
}

/* How many measurements what i knows of j is behind. */
static uint64_t
is_behind(uint32_t i, uint32_t j)
{
    uint64_t key = trpi_ident_key(&net.ids[j]);
    const trp_node_metrics *own = trpi_metrics_of(trpi_metrics_core_table(net.cores[j]), key);
    const trp_node_metrics *told = trpi_metrics_of(trpi_metrics_core_table(net.cores[i]), key);
    return told == NULL ? UINT64_MAX : own->number - told->number;
}

/* CMETRIC-01, -13 */
static void
figures_spread_and_those_of_removed_members_never_come_back(void)
{
    net_open(5);
    UNIT_EQUAL(trpi_metrics_core_wake_ms(net.cores[0]), 0); /* a member: at once */
    net_run(30000);
    for (uint32_t i = 0; i < 5; i++) {
        UNIT_EQUAL(trpi_metrics_core_table(net.cores[i])->count, 5);
        for (uint32_t j = 0; j < 5; j++) {
            UNIT_TRUE(is_behind(i, j) <= 4);
        }
    }
    /* 4 is removed, but only 0 to 2 know it yet: 3 goes on telling of it */
    net.gone[4] = true;
    net.count = 3;
    net_members();
    net.count = 5;
    for (uint32_t i = 0; i < 3; i++) {
        trpi_metrics_peer *list = trpi_alloc(4 * sizeof *list);
        for (uint32_t j = 0; j < 4; j++) {
            list[j] = (trpi_metrics_peer){ trpi_ident_key(&net.ids[j]), net.ids[j], true };
        }
        UNIT_EQUAL(trpi_metrics_core_members(net.cores[i], list, 4), TRP_OK);
        UNIT_TRUE(is_behind(i, 4) == UINT64_MAX);
    }
    UNIT_TRUE(is_behind(3, 4) != UINT64_MAX);
    net_run(30000);
    for (uint32_t i = 0; i < 3; i++) {
        UNIT_TRUE(is_behind(i, 4) == UINT64_MAX);
        UNIT_TRUE(is_behind(i, 3) != UINT64_MAX);
    }
    net_close();
}

/* CMETRIC-13: a round costs the same in every cluster, and what is known stays fresh. */
static void
in_a_large_cluster_a_round_stays_small_and_figures_fresh(void)
{
    uint64_t sum = 0, most = 0;
    uint32_t unknown = 0;
    net_open(NODES_MAX);
    net_run(60000);
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        for (uint32_t j = 0; j < NODES_MAX; j++) {
            uint64_t late = is_behind(i, j);
            unknown += late == UINT64_MAX ? 1 : 0;
            sum += late == UINT64_MAX ? 0 : late;
            most = late > most ? late : most;
        }
    }
    printf("  %u nodes: %.1f measurements behind in the mean, %u at most, frames up to %u bytes\n",
           NODES_MAX, (double)sum / NODES_MAX / NODES_MAX, (unsigned)most,
           (unsigned)net.frame_bytes_max);
    UNIT_EQUAL(unknown, 0);
    UNIT_TRUE(net.frame_bytes_max < 1000); /* with one figure a node */
    UNIT_TRUE(sum < 4ull * NODES_MAX * NODES_MAX);
    net_close();
}

static void
only_a_node_itself_says_what_it_has_measured(void)
{
    trpi_buffer bytes = { NULL, 0, 0 }, answer = { NULL, 0, 0 };
    net_open(2);
    uint64_t own = trpi_ident_key(&net.ids[0]);
    net_run(200);
    trpi_metrics_entry *lie = trpi_metrics_entry_new(own);
    lie->node.number = 1000;
    UNIT_EQUAL(trpi_metrics_encode(TRPI_METRICS_ANSWER, &lie, 1, &bytes), TRP_OK);
    UNIT_EQUAL(trpi_metrics_core_frame(net.cores[0], bytes.data, bytes.count, &answer), TRP_OK);
    UNIT_EQUAL(answer.count, 0); /* an answer is not answered */
    UNIT_EQUAL(trpi_metrics_of(trpi_metrics_core_table(net.cores[0]), own)->number, 1);
    trpi_buffer_fini(&bytes);
    trpi_metrics_entry_unref(lie);
    net_close();
}

/* CMETRIC-02, -03: a process that was stopped makes up for one round; its old average is worth what
 * it is worth. */
static void
a_pause_is_one_round_and_ages_the_average(void)
{
    trp_metric sample = { TRP_METRIC_CPU, 1, 1, 0 };
    double cpu = 0;
    net_open(1);
    UNIT_EQUAL(trpi_metrics_core_due(net.cores[0], 5000), TRPI_METRICS_COLLECT);
    UNIT_EQUAL(trpi_metrics_core_sample(net.cores[0], 5000, 0, &sample, 1), TRP_OK);
    UNIT_EQUAL(trpi_metrics_core_wake_ms(net.cores[0]), 8000);
    UNIT_EQUAL(trpi_metrics_core_due(net.cores[0], 7999), 0);
    UNIT_EQUAL(trpi_metrics_core_due(net.cores[0], 53000),
               TRPI_METRICS_COLLECT | TRPI_METRICS_GOSSIP);
    UNIT_EQUAL(trpi_metrics_core_due(net.cores[0], 53001), 0);
    sample.value = 0;
    UNIT_EQUAL(trpi_metrics_core_sample(net.cores[0], 53000, 0, &sample, 1), TRP_OK);
    UNIT_TRUE(trp_metrics_find(&trpi_metrics_core_table(net.cores[0])->entries[0]->node,
                               TRP_METRIC_CPU, &cpu));
    UNIT_TRUE(fabs(cpu - 0.0625) < 1e-9); /* four half-lives */
    net_close();
}

UNIT_BEGIN("metrics_gossip")
UNIT(a_merge_is_commutative_associative_and_idempotent_and_the_newest_wins)
UNIT(a_frame_says_all_and_strangers_are_skipped)
UNIT(what_makes_no_sense_in_a_frame_is_left_out_or_refused)
UNIT(a_frame_has_a_limit)
UNIT(frames_are_those_of_the_golden_file)
UNIT(figures_spread_and_those_of_removed_members_never_come_back)
UNIT(in_a_large_cluster_a_round_stays_small_and_figures_fresh)
UNIT(only_a_node_itself_says_what_it_has_measured)
UNIT(a_pause_is_one_round_and_ages_the_average)
UNIT_END

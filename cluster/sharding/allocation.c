/* allocation.c - which region gets a shard, and which shards should move. See allocation.h. */
#include "cluster/sharding/allocation.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/engine/ident.h"

/* ---- versions -------------------------------------------------------------------------------- */

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Compare two runs of digits as numbers of any length, and move behind them. */
static int
compare_numbers(const char **a, const char **b)
{
    size_t digits_a, digits_b;
    while (**a == '0') {
        (*a)++;
    }
    while (**b == '0') {
        (*b)++;
    }
    digits_a = strspn(*a, "0123456789");
    digits_b = strspn(*b, "0123456789");
    int order = digits_a != digits_b ? (digits_a < digits_b ? -1 : 1) : memcmp(*a, *b, digits_a);
    *a += digits_a;
    *b += digits_b;
    return order;
}

int
trpi_app_version_compare(const char *a, const char *b)
{
    while (*a != '\0' && *b != '\0') {
        int order = is_digit(*a) && is_digit(*b) ? compare_numbers(&a, &b)
                                                 : (unsigned char)*a++ - (unsigned char)*b++;
        if (order != 0) {
            return order;
        }
    }
    /* "1.2-rc" comes before "1.2", and "1.2" before "1.2.1" */
    int a_more = *a == '\0' ? 0 : *a == '-' ? -1 : 1;
    int b_more = *b == '\0' ? 0 : *b == '-' ? -1 : 1;
    return a_more - b_more;
}

/* ---- a home ---------------------------------------------------------------------------------- */

static uint64_t
weight_of(const trpi_allocation_view *view, uint32_t index)
{
    uint64_t sum = 0, known = 0;
    if (view->regions[index].weight != 0) {
        return view->regions[index].weight;
    }
    for (uint32_t i = 0; i < view->regions_count; i++) {
        sum += view->regions[i].weight;
        known += view->regions[i].weight != 0;
    }
    return known == 0 || sum < known ? 1 : sum / known;
}

/* Return whether one more shard suits a better than b. */
static bool
is_better(trpi_allocation_kind kind, const trpi_allocation_view *view, uint32_t a, uint32_t b)
{
    const trpi_allocation_region *x = &view->regions[a], *y = &view->regions[b];
    if (kind == TRPI_ALLOCATION_METRICS) {
        return (x->shards + 1ull) * weight_of(view, b) < (y->shards + 1ull) * weight_of(view, a);
    }
    return x->shards < y->shards;
}

uint32_t
trpi_allocation_choose(trpi_allocation_kind kind, const trpi_allocation_view *view)
{
    uint32_t best = TRPI_ALLOCATION_NONE, start = 0;
    /* First fit looks from behind the last one on; the others have no place to begin at. */
    if (kind == TRPI_ALLOCATION_FIRST_FIT && view->last < view->regions_count) {
        start = view->last + 1;
    }
    for (uint32_t i = 0; i < view->regions_count; i++) {
        uint32_t index = (start + i) % view->regions_count;
        if (view->regions[index].may_get &&
            (best == TRPI_ALLOCATION_NONE || is_better(kind, view, index, best))) {
            best = index;
        }
    }
    return best;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

uint32_t
trpi_allocation_round(uint32_t shards, uint32_t moves_max, uint32_t moves_permille)
{
    uint64_t share = (uint64_t)shards * moves_permille / 1000;
    uint64_t moves = share < moves_max ? share : moves_max;
    return moves == 0 ? 1 : (uint32_t)moves;
}

/* Return whether a shard should move from one region to another, as each has so many. A difference
 * of a tenth is none: weights change all the time. */
static bool
is_uneven(trpi_allocation_kind kind, const trpi_allocation_view *view, const uint32_t *counts,
          uint32_t from, uint32_t to)
{
    if (kind != TRPI_ALLOCATION_METRICS) {
        return counts[from] >= counts[to] + 2ull;
    }
    return counts[from] * weight_of(view, to) * 10ull >
           (counts[to] + 1ull) * weight_of(view, from) * 11ull;
}

static uint64_t
load_of(trpi_allocation_kind kind, const trpi_allocation_view *view, const uint32_t *counts,
        uint32_t index)
{
    if (kind != TRPI_ALLOCATION_METRICS) {
        return counts[index];
    }
    return ((uint64_t)counts[index] << 20) / weight_of(view, index);
}

uint32_t
trpi_allocation_rebalance(trpi_allocation_kind kind, const trpi_allocation_view *view, uint32_t max,
                          uint32_t *counts, uint32_t *ret_shards)
{
    uint32_t moves = 0, found = 0;
    if (kind == TRPI_ALLOCATION_USER) {
        return 0; /* it would undo what the program has placed */
    }
    for (uint32_t i = 0; i < view->regions_count; i++) {
        counts[i] = view->regions[i].shards;
    }
    while (moves < max) {
        uint32_t most = TRPI_ALLOCATION_NONE, least = TRPI_ALLOCATION_NONE;
        for (uint32_t i = 0; i < view->regions_count; i++) {
            if (most == TRPI_ALLOCATION_NONE ||
                load_of(kind, view, counts, i) > load_of(kind, view, counts, most)) {
                most = i;
            }
            if (view->regions[i].may_get &&
                (least == TRPI_ALLOCATION_NONE ||
                 load_of(kind, view, counts, i) < load_of(kind, view, counts, least))) {
                least = i;
            }
        }
        if (least == TRPI_ALLOCATION_NONE || most == least || counts[most] == 0 ||
            !is_uneven(kind, view, counts, most, least)) {
            break;
        }
        counts[most]--;
        counts[least]++;
        moves++;
    }
    /* Write the shards that each region has too many of, in the order of their numbers. */
    for (uint32_t shard = 0; shard < view->shards && found < moves; shard++) {
        uint32_t home = view->home[shard];
        if (home != TRPI_ALLOCATION_NONE && counts[home] < view->regions[home].shards) {
            counts[home]++;
            ret_shards[found++] = shard;
        }
    }
    return found;
}

/* ---- the program's own ----------------------------------------------------------------------- */

enum { VERSION_BYTES = TRPI_APP_VERSION_BYTES_MAX + 1 };

trpi_allocation_question *
trpi_allocation_question_new(const char *type, const trpi_allocation_view *view,
                             const uint32_t *wanted, uint32_t wanted_count, uint32_t moves_max)
{
    size_t regions = view->regions_count, numbers = view->shards + 2 * (size_t)wanted_count,
           type_bytes = strlen(type) + 1;
    trpi_allocation_question *round = trpi_alloc(
        sizeof *round + regions * (sizeof round->nodes[0] + sizeof(trp_allocation_region)) +
        (numbers + moves_max) * sizeof(uint32_t) +
        regions * (TRPI_ADDRESS_TEXT_BYTES + VERSION_BYTES) + type_bytes);
    if (round == NULL) {
        return NULL;
    }
    trp_allocation_region *region = (trp_allocation_region *)(void *)(round->nodes + regions);
    uint32_t *number = (uint32_t *)(void *)(region + regions);
    char *text = (char *)(number + numbers + moves_max);
    trp_allocation_round *ask = &round->ask;
    *ask = (trp_allocation_round){ .size = sizeof *ask,
                                   .type = memcpy(text, type, type_bytes),
                                   .regions = region,
                                   .regions_count = view->regions_count,
                                   .shards = view->shards,
                                   .homes = number,
                                   .wanted = number + view->shards,
                                   .wanted_count = wanted_count,
                                   .moves_max = moves_max,
                                   .wanted_homes = number + view->shards + wanted_count,
                                   .moves = number + numbers };
    memcpy(number, view->home, view->shards * sizeof *number);
    memcpy(number + view->shards, wanted, wanted_count * sizeof *number);
    for (uint32_t i = 0; i < wanted_count; i++) {
        ask->wanted_homes[i] = TRP_ALLOCATION_NONE;
    }
    text += type_bytes;
    for (uint32_t i = 0; i < view->regions_count; i++) {
        const trpi_allocation_region *from = &view->regions[i];
        round->nodes[i] = *from->node;
        (void)trpi_address_format(&from->node->address, text, TRPI_ADDRESS_TEXT_BYTES);
        region[i] = (trp_allocation_region){ .address = text,
                                             .uid = from->node->uid,
                                             .app_version = text + TRPI_ADDRESS_TEXT_BYTES,
                                             .shards = from->shards,
                                             .weight = from->weight,
                                             .may_get = from->may_get };
        text += TRPI_ADDRESS_TEXT_BYTES;
        text[0] = '\0';
        strncat(text, from->app_version, VERSION_BYTES - 1);
        text += VERSION_BYTES;
    }
    return round;
}

/* ---- the ring of FUTURE-06 and -07 ----------------------------------------------------------- */

void
trpi_allocation_ring(uint32_t nodes, const uint32_t *instances, uint32_t partitions,
                     uint32_t *ret_nodes)
{
    uint32_t next = 0, place = 0;
    trpi_assert(nodes > 0);
    for (uint32_t i = 0; i < partitions; i++) {
        trpi_assert(instances[i] <= nodes); /* two instances of one partition on a node are none */
        for (uint32_t j = 0; j < instances[i]; j++) {
            ret_nodes[place++] = next + 1;
            next = (next + 1) % nodes;
        }
    }
}

void
trpi_allocation_renumber(const uint32_t *joined, uint32_t joined_count, uint32_t *nodes,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t before = 0;
        for (uint32_t j = 0; j < joined_count; j++) {
            before += joined[j] < nodes[i];
        }
        nodes[i] += before;
    }
}

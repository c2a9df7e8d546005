/* router_spread.c - how many routees each node should have.
 *
 * Why.     Placing each routee on the node with the fewest fills all nodes up to one level. So the
 *          level is found by binary search, not routee by routee.
 * Cost.    32 passes over the nodes.
 * Tests.   tests/unit/cluster/router_core_test.c
 * Sources. CROUTE-06, -12; Akka 2.2.5, ClusterRouteeProvider.selectDeploymentTarget.
 */
#include "base/assert.h"
#include "cluster/routing/router.h"

static uint32_t
lesser_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Return how many routees a node has after it is filled up, or cut down, to the level. */
static uint32_t
at_level(const trpi_router_share *share, uint32_t level, bool fill)
{
    uint32_t filled = lesser_of(level, share->most);
    uint32_t kept = lesser_of(share->have, share->most);

    if (!fill) {
        return lesser_of(kept, level);
    }
    return kept > filled ? kept : filled;
}

static uint64_t
sum_at(const trpi_router_share *shares, size_t count, uint32_t level, bool fill)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        sum += at_level(&shares[i], level, fill);
    }
    return sum;
}

/* Find the highest level with at most `total` routees; level 0 always qualifies. */
static uint32_t
level_of(const trpi_router_share *shares, size_t count, uint32_t total, bool fill)
{
    uint32_t low = 0, high = TRP_ROUTEES_MAX;

    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;

        if (sum_at(shares, count, middle, fill) <= total) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

void
trpi_router_spread(trpi_router_share *shares, size_t count, uint32_t total)
{
    bool fill = sum_at(shares, count, 0, true) <= total;
    uint32_t level = level_of(shares, count, total, fill);
    uint64_t left = total - sum_at(shares, count, level, fill);

    for (size_t i = 0; i < count; i++) {
        uint32_t next = at_level(&shares[i], level + 1, fill);

        shares[i].want = at_level(&shares[i], level, fill);
        if (left > 0 && next > shares[i].want) {
            shares[i].want = next;
            left--;
        }
        trpi_assert(shares[i].want <= shares[i].most);
    }
}

/* drained_test.c - marks of drained members between real nodes, one of which is of an earlier
 * version. */
#include "cluster/shell/shell.h"
#include "tests/unit/cluster/host.h"

enum { NODES_MAX = 4, NEW = 0, OTHER = 1, EARLIER = 2, LATE = 3, MINOR_0_1_0 = 4 };
static struct host nodes[NODES_MAX];

static bool
wait_on(void *arg)
{
    (void)arg;
    return true;
}

static void
node_start(uint32_t index, uint32_t wire_minor)
{
    trpi_cluster_options options = { .quiet = false };
    host_open_as(&nodes[index], wire_minor);
    host_join(&nodes[index], index == NEW ? "self" : nodes[NEW].address, options);
}

/* How many members does that node know, all of them Up? 0: not all are. */
static size_t
up(uint32_t at)
{
    trp_member members[NODES_MAX];
    size_t count = 0;
    if (trp_cluster_members(nodes[at].system, members, NODES_MAX, &count) != TRP_OK ||
        count > NODES_MAX) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        if (members[i].status != TRP_MEMBER_UP) {
            return 0;
        }
    }
    return count;
}

/* Does the node know that the other one is drained? */
static bool
knows(uint32_t at, uint32_t of)
{
    trp_member members[NODES_MAX];
    size_t count = 0;
    bool drained = false;
    UNIT_REQUIRE(trp_cluster_members(nodes[at].system, members, NODES_MAX, &count) == TRP_OK);
    for (size_t i = 0; i < count && i < NODES_MAX; i++) {
        drained = drained || (strcmp(members[i].address, nodes[of].address) == 0 &&
                              trpi_member_has_drained(&members[i]));
    }
    return drained;
}

static uint64_t
frames_in(uint32_t at)
{
    trpi_cluster_snapshot *snapshot = NULL;
    UNIT_REQUIRE(trpi_cluster_snapshot_get(nodes[at].cluster, &snapshot) == TRP_OK);
    uint64_t frames = snapshot->stats.frames_in;
    trpi_cluster_snapshot_free(snapshot);
    return frames;
}

static void
drain(uint32_t by, uint32_t of, bool drains)
{
    trpi_cluster_patience patience = { .is_wanted = wait_on };
    UNIT_EQUAL(
        trpi_cluster_drain_and_wait(nodes[by].cluster, nodes[of].address, 0, drains, &patience),
        TRP_OK);
}

/* It joins while there is a mark, hears gossip of all, and is sent no mark: it would take one, for
 * its code is this one's. The members with the feature are. */
static void
an_earlier_version_is_sent_no_mark(void)
{
    node_start(NEW, 0);
    node_start(OTHER, 0);
    UNIT_WAIT(up(NEW) == 2 && up(OTHER) == 2, 60000);
    drain(OTHER, NEW, true);
    UNIT_WAIT(knows(NEW, NEW) && knows(OTHER, NEW), 60000);
    node_start(EARLIER, MINOR_0_1_0);
    UNIT_WAIT(up(EARLIER) == 3 && up(NEW) == 3 && up(OTHER) == 3, 60000);
    node_start(LATE, 0);
    UNIT_WAIT(up(LATE) == 4 && up(EARLIER) == 4 && knows(LATE, NEW), 60000);
    drain(LATE, OTHER, true); /* and not at once after a change either */
    UNIT_WAIT(knows(NEW, OTHER) && knows(OTHER, OTHER) && knows(LATE, OTHER), 60000);
    uint64_t before = frames_in(EARLIER); /* rounds in which the mark goes along to the others */
    UNIT_WAIT(frames_in(EARLIER) >= before + 6, 60000);
    UNIT_FALSE(knows(EARLIER, NEW));
    UNIT_FALSE(knows(EARLIER, OTHER));
    UNIT_EQUAL(trpi_remote_takes_marks(nodes[NEW].remote, trpi_system_self(nodes[EARLIER].system)),
               TRPI_TAKES_NO);
    UNIT_EQUAL(trpi_remote_takes_marks(nodes[NEW].remote, trpi_system_self(nodes[LATE].system)),
               TRPI_TAKES_YES);
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        host_end(&nodes[i]);
    }
}

UNIT_BEGIN("drained")
UNIT(an_earlier_version_is_sent_no_mark)
UNIT_END

/* downing_check.c - the invariants of a decision about a split, as code.
 *
 * Must hold.
 *   downing-D13 A decision marks members Down only with a verdict that says so, each once, in
 *       order, none that is Down or Exiting, and this node only with its whole side.
 *   downing-D14 Others are given up only while somebody is missed.
 *   downing-D15 This side is no larger than all that was counted.
 * Cost.    A walk over the members that are marked.
 * Tests.   tests/unit/cluster/check_test.c
 */
#include "cluster/engine/downing.h"

static bool
marks_members(const trpi_downing_decision *decision)
{
    return decision->verdict == TRPI_DOWNING_DOWN_MEMBERS ||
           decision->verdict == TRPI_DOWNING_DOWN_SIDE;
}

static const char *
check_marked(const trpi_downing_input *input, const trpi_downing_decision *decision,
             trpi_check *check)
{
    const trpi_gossip *g = input->gossip;
    bool side = decision->verdict == TRPI_DOWNING_DOWN_SIDE;
    for (uint32_t i = 0; i < decision->indexes_count; i++) {
        uint32_t index = decision->indexes[i];
        if (index >= g->members_count || (i > 0 && decision->indexes[i - 1] >= index)) {
            return trpi_check_broken(check, "downing-D13: mark %u of %u is member %u of %u", i,
                                     decision->indexes_count, index, g->members_count);
        }
        const trpi_gossip_member *m = &g->members[index];
        if (m->status >= TRP_MEMBER_EXITING || (m->ident->key == input->self && !side)) {
            return trpi_check_broken(check, "downing-D13: %s of status %u is marked Down",
                                     m->ident->address, m->status);
        }
    }
    return NULL;
}

const char *
trpi_downing_check(const trpi_downing_input *input, const trpi_downing_decision *decision,
                   trpi_check *check)
{
    if (marks_members(decision) != (decision->indexes_count > 0)) {
        return trpi_check_broken(check, "downing-D13: verdict %u with %u members marked",
                                 decision->verdict, decision->indexes_count);
    }
    if (decision->verdict == TRPI_DOWNING_DOWN_MEMBERS && input->gossip->unreachable_count == 0) {
        return trpi_check_broken(check, "downing-D14: %u members are given up, and none is missed",
                                 decision->indexes_count);
    }
    if (decision->reachable > decision->members) {
        return trpi_check_broken(check, "downing-D15: %u of %u members are on this side",
                                 decision->reachable, decision->members);
    }
    return check_marked(input, decision, check);
}

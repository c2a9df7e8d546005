/* oldest.h - for stats_master.c: the member that has been Up for the longest time; where all nodes
 * agree on it, it can have the one actor of its kind.
 */
#include <troupe/cluster.h>

enum { MEMBERS_MAX = 16 };

/* 0: no member has the role. */
static int
oldest_find(trp_system *system, const char *role, trp_member *ret_oldest)
{
    trp_member members[MEMBERS_MAX];
    size_t count = 0;
    int found = 0;
    if (trp_cluster_members(system, members, MEMBERS_MAX, &count) != TRP_OK) {
        return 0;
    }
    for (size_t i = 0; i < count && i < MEMBERS_MAX; i++) {
        if (members[i].status == TRP_MEMBER_UP && trp_member_has_role(&members[i], role) &&
            (!found || trp_member_is_older_than(&members[i], ret_oldest))) {
            *ret_oldest = members[i];
            found = 1;
        }
    }
    return found;
}

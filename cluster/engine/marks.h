/* marks.h - which members are drained: a counter for each, odd while it is.
 *
 * The mark of a member only rises, so that two sets are merged by the higher counter of each
 * member: commutative, associative, idempotent. It is kept beside the view, not in it: members
 * that do not know marks agree on the view all the same.
 */
#ifndef TRPI_CLUSTER_MARKS_H
#define TRPI_CLUSTER_MARKS_H

#include <troupe/base.h>

#include "base/check.h"
#include "cluster/engine/gossip.h"

typedef struct trpi_marks {     /* zeroed: empty, without memory */
    trpi_vclock_entry *entries; /* by key; no counter is 0 */
    uint32_t entries_count, entries_room;
} trpi_marks;

void trpi_marks_fini(trpi_marks *marks);
uint64_t trpi_marks_get(const trpi_marks *marks, uint64_t key); /* 0: it never was drained */
static inline bool
trpi_mark_is_drained(uint64_t counter)
{
    return counter % 2 != 0;
}
/* Raise the counter of a member to this one, if it is lower. *ret_raised: it was. Errors:
 * TRP_ENOMEM, TRP_ELIMIT (TRPI_GOSSIP_MEMBERS_MAX members). */
trp_err trpi_marks_raise(trpi_marks *marks, uint64_t key, uint64_t counter, bool *ret_raised);
/* Forget those that are no members of the view. */
void trpi_marks_retain(trpi_marks *marks, const trpi_gossip *view);
/* marks-D1: sorted, unique, without zeros. NULL, or what is broken. */
const char *trpi_marks_check(const trpi_marks *marks, trpi_check *check);

#endif

/* troupe/lease.h - a custom lease for the downing strategy lease.
 *
 * When a cluster is partitioned, the strategy lease asks something outside of the cluster which
 * side may go on: the side that gets the lease stays, the other side stops. The one that comes with
 * Troupe is a lock on a file (cluster.downing.lease.file), which needs a file system that all nodes
 * share. A plugin or program may bring another (a database, a cloud's lock service): it must be
 * given to one owner at a time, and end when its owner is dead for good.
 */
#ifndef TROUPE_LEASE_H
#define TROUPE_LEASE_H

#include <troupe/base.h>
#include <troupe/system.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_LEASE_NAME_BYTES_MAX 127
#define TRP_LEASE_OWNER_BYTES_MAX 371
#define TRP_LEASE_WHY_BYTES 520 /* the least that there is: owner, name and a few words fit */

typedef struct trp_lease_ops {
    size_t size;      /* sizeof(trp_lease_ops) */
    const char *name; /* for logs */
    /* Try to get the lease `name` (cluster.downing.lease.name) for `owner`, an address with its
     * uid. May block, for about timeout_ms; later its answer counts as a refusal. why: room for a
     * sentence that is logged, "" at first; why_bytes is TRP_LEASE_WHY_BYTES or more. TRP_OK: it is
     * owner's, now or already. TRP_EAGAIN: another has it, and why must name that owner exactly as
     * it was passed to acquire, uncut ("OWNER has it"): if it is on the asker's side, from an
     * earlier partition, the side goes on; if no owner, or one of another side, is named, the side
     * stops as a whole. Any other error: the owner is not known, which is a refusal too. Thread:
     * one of its own, one call at a time. */
    trp_err (*acquire)(void *arg, const char *name, const char *owner, uint32_t timeout_ms,
                       char *why, size_t why_bytes);
    /* Give it back; called when it is not held, too. Not called when the owner ends while others of
     * its side go on: then the lease has to end with its owner. May block. Thread: as acquire, or
     * the one that closes the node. */
    void (*release)(void *arg, const char *name, const char *owner);
} trp_lease_ops;

/* Give the cluster of this system its lease; the last one counts, and the one before is not asked
 * any more. A plugin does this in its init.
 *
 * Ownership: borrows ops and arg until the node is closed and no call of theirs runs: an acquire
 *            that has not returned is not waited for, and after it release is called.
 * Errors:    TRP_EINVAL  ops is incomplete
 *            TRP_ESTATE  this system is no cluster node
 * Thread:    any; takes a lock for a moment.
 * Source:    docs/adr, decision 121.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_cluster_lease_set(trp_system *system, const trp_lease_ops *ops,
                                                     void *arg);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_LEASE_H */

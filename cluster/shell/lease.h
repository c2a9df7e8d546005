/* lease.h - calls a lease on a thread of its own; and the lease that is a file. */
#ifndef TRPI_CLUSTER_LEASE_H
#define TRPI_CLUSTER_LEASE_H

#include <stdbool.h>

#include <troupe/lease.h>

#include "cluster/engine/ident.h"

typedef struct trpi_lease trpi_lease;

/* answer(arg, granted, why) is called once for each acquire, on the lease's thread, unless the
 * lease was closed before. name is cut at TRP_LEASE_NAME_BYTES_MAX. Errors: TRP_ENOMEM. Gives
 * *ret_lease. */
typedef void (*trpi_lease_answer_fn)(void *arg, bool granted, const char *why);
trp_err trpi_lease_new(const char *name, const char *owner, uint32_t timeout_ms,
                       trpi_lease_answer_fn answer, void *arg, trpi_lease **ret_lease);
void trpi_lease_set(trpi_lease *lease, const trp_lease_ops *ops, void *arg);
bool trpi_lease_is_set(trpi_lease *lease);
/* Keep an object that ops need: end(arg) is called when the lease is closed and no call of the ops
 * runs any more, which may be long after the close. At most once. */
void trpi_lease_keep(trpi_lease *lease, void (*end)(void *arg), void *arg);
/* Never block. inside: on this thread instead, in a world without threads. */
void trpi_lease_acquire(trpi_lease *lease, bool inside);
void trpi_lease_release(trpi_lease *lease, bool inside);
/* Stop answers, and release the lease if give_back: not while other members of this node's side go
 * on, since the other side must find it taken. An acquire that hangs is left behind. NULL is
 * fine. */
void trpi_lease_close(trpi_lease *lease, bool give_back);

/* ---- the lease that is a lock on a file ------------------------------------------------------ */
typedef struct trpi_lease_file trpi_lease_file;
/* Nothing is opened yet. Errors: TRP_ENOMEM. */
trp_err trpi_lease_file_new(const char *path, trpi_lease_file **ret_file);
void trpi_lease_file_free(trpi_lease_file *file); /* gives the lock back; NULL is fine */
extern const trp_lease_ops trpi_lease_file_ops;   /* arg: the trpi_lease_file */
/* Could the file be opened, or made, now? false, with *why: no. Leaves nothing behind. */
bool trpi_lease_file_check(const char *path, char *why, size_t why_bytes);
/* Is the directory there, and on a file system that hosts share? false: why says which; a lock
 * there still works where all nodes are on one host. */
bool trpi_lease_file_is_shared(const char *path, char *why, size_t why_bytes);

#endif

/* troupe/path.h - paths as values.
 *
 * A path is text: an address, which a local path may leave out, and names from the root down:
 * "/user/a/b", "troupe.tcp://demo@host:2552/user/a". It is a name and never becomes invalid: there
 * may be nobody behind it, and tomorrow somebody else. A trp_ref names one life of one actor. Where
 * the incarnation does not matter, compare and keep paths; where it does, refs. "#uid" behind a
 * path says which life is meant; comparing looks past it.
 */
#ifndef TROUPE_PATH_H
#define TROUPE_PATH_H

#include <troupe/actor.h>
#include <troupe/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Check that path is one: an optional address, and names that an actor can have, at most
 * TRP_PATH_DEPTH_MAX of them and TRP_PATH_BYTES_MAX in all. No wildcards (those are selections).
 *
 * Ownership: borrows path.
 * Errors:    TRP_EINVAL  it is none
 * Thread:    any; lock-free.
 * Source:    SYS-13.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_path_check(const char *path);

/* Return non-zero when both are paths to the same place, whoever lives there: same address (or
 * none), same names.
 *
 * Ownership: borrows a and b.
 * Errors:    none; what is no path equals nothing
 * Thread:    any; lock-free.
 * Source:    SYS-12, SYS-17.  Since: 0.1 */
TRP_API int trp_path_equal(const char *a, const char *b);

/* Write the path of the child `name` below path.
 *
 * Ownership: borrows path and name; buffer may be path.
 * Errors:    TRP_EINVAL    path is none, or no actor can have that name
 *            TRP_ELIMIT    TRP_PATH_DEPTH_MAX or TRP_PATH_BYTES_MAX reached
 *            TRP_EMSGSIZE  bytes is too small; buffer is untouched
 * Thread:    any; lock-free.
 * Source:    SYS-12.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_path_child(const char *path, const char *name, char *buffer,
                                              size_t bytes);

/* Write the path of the parent.
 *
 * Ownership: borrows path; buffer may be path.
 * Errors:    TRP_EINVAL    path is none
 *            TRP_ENOENT    it is the root
 *            TRP_EMSGSIZE  bytes is too small; buffer is untouched
 * Thread:    any; lock-free.
 * Source:    SYS-12.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_path_parent(const char *path, char *buffer, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_PATH_H */

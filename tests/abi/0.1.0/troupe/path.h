/* troupe/path.h - paths as values.
 *
 * A path is text: an address, which a local path may leave out, and names from the root down:
 * "/user/a/b", "troupe.tcp://demo@host:2552/user/a". It is a name and never becomes invalid: there
 * may be no actor at it now, and another one tomorrow. A trp_ref names one life of one actor. Where
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

/* Return non-zero when both are paths to the same place, whatever actor is there: same address (or
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

/* ---- refs as text -------------------------------------------------------------------------------
 * For a file, a database, another program: "troupe.tcp://demo@host:2552/user/a#uid@node". Between
 * nodes refs travel inside messages by themselves (troupe/serialization.h). */

#define TRP_REF_TEXT_BYTES (TRP_PATH_BYTES_MAX + 1) /* enough for any, with the NUL */

typedef enum trp_ref_form {
    TRP_REF_WITHOUT_UID = 0, /* the actor at the path: for trp_resolve(), trp_select_tell() */
    TRP_REF_WITH_UID = 1     /* this life of the actor, on this life of its node */
} trp_ref_form;

/* Write a ref with the address under which its node is reached; that of a system without remoting
 * is "troupe://name", and a text with it is read by that very system, also when it has an address
 * later.
 *
 * Ownership: buffer is the caller's.
 * Errors:    TRP_EINVAL    ref is TRP_REF_NONE or not this system's, or form is none
 *            TRP_ENOENT    the path of a remote actor is not known here (without uid)
 *            TRP_EMSGSIZE  bytes is too small; buffer is untouched
 * Thread:    any; takes a lock for a moment.
 * Source:    SERIAL-11, -12, -13, -14; SYS-13.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_ref_format(trp_system *system, trp_ref ref, trp_ref_form form,
                                              char *buffer, size_t bytes);

/* Read a ref. With the uids no question is asked: whether the actor lives shows when it is told.
 * Without them: the actor at the path now, on this node only.
 *
 * Ownership: borrows text.
 * Errors:    TRP_EINVAL   it is no path, its uids are none, or it is another node's and without its
 *                         address
 *            TRP_ENOENT   without a uid: no actor is there
 *            TRP_ESTATE   another node's, without the uids: ask by trp_resolve()
 *            TRP_ELIMIT, TRP_ENOMEM  no number for one more node
 * Thread:    any; takes a lock for a moment.
 * Source:    SERIAL-11, -13, -15; SYS-28.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_ref_parse(trp_system *system, const char *text,
                                             trp_ref *ret_ref);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_PATH_H */

/* troupe/alias.h - short names for actors, valid in the whole system.
 *
 * An alias leads to one actor, wherever it stands in the tree; an actor may have several. It is
 * found with trp_alias_find(), and told, asked and resolved by the path "/alias/NAME" as by any
 * other path. An alias ends with its actor; a restart keeps it.
 */
#ifndef TROUPE_ALIAS_H
#define TROUPE_ALIAS_H

#include <troupe/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_ALIASES_MAX 65536 /* of one system */

/* Give ref an alias; setting the same again is no error. Aliases have the form of actors' names.
 *
 * Ownership: borrows alias.
 * Errors:    TRP_EINVAL  alias is no name, or ref is TRP_REF_NONE
 *            TRP_EEXIST  another actor has it
 *            TRP_ENOENT  ref has ended
 *            TRP_ELIMIT  TRP_ALIASES_MAX reached
 *            TRP_ENOMEM  out of memory
 * Thread:    any; takes a lock for a moment.
 * Source:    A4J-08.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_alias_set(trp_system *system, const char *alias, trp_ref ref);

/* Take an alias away from its actor.
 *
 * Ownership: borrows alias.
 * Errors:    TRP_EINVAL  alias is NULL
 *            TRP_ENOENT  no actor has it
 * Thread:    any; takes a lock for a moment.
 * Source:    A4J-08.  Since: 0.1 */
TRP_API trp_err trp_alias_clear(trp_system *system, const char *alias);

/* Find the actor that has an alias.
 *
 * Ownership: borrows alias.
 * Errors:    TRP_EINVAL  an argument is NULL
 *            TRP_ENOENT  no living actor has it
 * Thread:    any; takes a lock for a moment.
 * Source:    A4J-08.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_alias_find(trp_system *system, const char *alias,
                                              trp_ref *ret_ref);

/* One alias, borrowed for the call. It may set and clear aliases, and wait. */
typedef void (*trp_alias_fn)(void *arg, const char *alias, trp_ref ref);

/* Call fn for each alias of ref; TRP_REF_NONE: for each alias of the system. In no order. One that
 * exists from the first call to the last is visited once; one that is set or cleared meanwhile may
 * be, or not.
 *
 * Ownership: arg is passed through.
 * Errors:    none
 * Thread:    any; takes a lock for a moment; fn runs in it.
 * Source:    A4J-08.  Since: 0.1 */
TRP_API void trp_alias_each(trp_system *system, trp_ref ref, trp_alias_fn fn, void *arg);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_ALIAS_H */

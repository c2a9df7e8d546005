/* troupe/category.h - tell one of several actors, or all, and learn which took the message.
 *
 * A category is a name that any number of actors share. A message sent to it reaches the member
 * that has the least to do; a broadcast reaches every member. An actor may be in several
 * categories, and leaves them when it ends. The result of a tell to several actors is a
 * trp_delivery everywhere: a count, and an error for each target that did not take the message.
 */
#ifndef TROUPE_CATEGORY_H
#define TROUPE_CATEGORY_H

#include <troupe/base.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_CATEGORY_MEMBERS_MAX 65536 /* of one category */

typedef struct trp_delivery_error {
    trp_ref target;
    trp_err err; /* TRP_ENOENT it has ended; TRP_EUNHANDLED its will_receive refused;
                    TRP_EAGAIN its mailbox is full */
} trp_delivery_error;

/* How a tell to several went. Accepted means: it is in the mailbox, or on its way to another node.
 * Targets that refuse do not keep the others from getting theirs. */
typedef struct trp_delivery {
    size_t size;                /* sizeof(trp_delivery), set by the caller */
    trp_delivery_error *errors; /* the caller's, NULL: only counted */
    uint32_t errors_max;        /* room in errors */
    uint32_t errors_count;      /* that there were; the first errors_max are in errors */
    uint32_t targets;           /* that were tried */
    uint32_t accepted;
} trp_delivery;
#define TRP_DELIVERY_INIT                                                                          \
    {                                                                                              \
        sizeof(trp_delivery), NULL, 0, 0, 0, 0                                                     \
    }

/* Put an actor into a category; again has no effect.
 *
 * Ownership: borrows category.
 * Errors:    TRP_EINVAL  category is no name (that actors may have), or ref is TRP_REF_NONE
 *            TRP_ENOENT  ref has ended
 *            TRP_ELIMIT  TRP_CATEGORY_MEMBERS_MAX, or as many categories as aliases
 *            TRP_ENOMEM  out of memory
 * Thread:    any; takes a lock for a moment.
 * Source:    UJ-04, UJ-50.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_category_join(trp_system *system, const char *category,
                                                 trp_ref ref);

/* Take an actor out of a category; NULL: out of all.
 *
 * Ownership: borrows category.
 * Errors:    TRP_EINVAL  ref is TRP_REF_NONE
 *            TRP_ENOENT  it is not a member
 * Thread:    any; takes a lock for a moment.
 * Source:    UJ-04.  Since: 0.1 */
TRP_API trp_err trp_category_leave(trp_system *system, const char *category, trp_ref ref);

/* Count the members that live.
 *
 * Ownership: borrows category.
 * Errors:    none
 * Thread:    any; takes a lock for a moment.
 * Source:    UJ-04.  Since: 0.1 */
TRP_API uint32_t trp_category_size(trp_system *system, const char *category);

/* Tell one member: the one with the fewest messages that wait, of equals the one that joined first;
 * if it refuses, the next. Bounded and counted mailboxes know their number; of others it is
 * estimated from the messages that the category sent them and those that they have handled.
 *
 * Ownership: borrows all; ret_delivery may be NULL.
 * Errors:    TRP_ENOENT  the category has no member
 *            TRP_EAGAIN  no member took it
 *            TRP_EINVAL  category or type is NULL
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    UJ-17, TRP-03.  Since: 0.1 */
TRP_API trp_err trp_category_send(trp_ctx *ctx, const char *category, const trp_type *type,
                                  const void *payload, size_t bytes, trp_delivery *ret_delivery);

/* Do as trp_category_send, without a sender.
 *
 * Ownership: borrows all; ret_delivery may be NULL.
 * Errors:    as trp_category_send
 * Thread:    any; takes a lock for a moment; outside of actors may block until a full mailbox has
 *            room.
 * Source:    UJ-17.  Since: 0.1 */
TRP_API trp_err trp_system_category_send(trp_system *system, const char *category,
                                         const trp_type *type, const void *payload, size_t bytes,
                                         trp_delivery *ret_delivery);

/* Tell every member, the sender too if it is one; category NULL: all members of all categories,
 * each once.
 *
 * Ownership: borrows all; ret_delivery may be NULL.
 * Errors:    as trp_category_send; also
 *            TRP_ENOMEM  out of memory: no actor was told
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    UJ-18, TRP-03.  Since: 0.1 */
TRP_API trp_err trp_category_broadcast(trp_ctx *ctx, const char *category, const trp_type *type,
                                       const void *payload, size_t bytes,
                                       trp_delivery *ret_delivery);

/* Do as trp_category_broadcast, without a sender.
 *
 * Ownership: borrows all; ret_delivery may be NULL.
 * Errors:    as trp_category_broadcast
 * Thread:    any; takes a lock for a moment; outside of actors may block until a full mailbox has
 *            room.
 * Source:    UJ-18.  Since: 0.1 */
TRP_API trp_err trp_system_category_broadcast(trp_system *system, const char *category,
                                              const trp_type *type, const void *payload,
                                              size_t bytes, trp_delivery *ret_delivery);

/* Tell each of several actors its own copy, and report which took it. A message to an actor that
 * has ended is no dead letter here: the caller learns of it.
 *
 * Ownership: borrows all; ret_delivery may be NULL.
 * Errors:    TRP_ENOENT  refs_count is 0
 *            TRP_EAGAIN  none took it
 *            TRP_EINVAL  type or refs is NULL
 * Thread:    actor (inside ctx's behaviour only).
 * Source:    UJ-03, UJ-16, TRP-03.  Since: 0.1 */
TRP_API trp_err trp_tell_each(trp_ctx *ctx, const trp_ref *refs, size_t refs_count,
                              const trp_type *type, const void *payload, size_t bytes,
                              trp_delivery *ret_delivery);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_CATEGORY_H */

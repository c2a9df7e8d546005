/* troupe/subject.h - match messages by their subject, by text or regular expression.
 *
 * The subject of a message is its type's full name ("bank.deposit"); of a text (trp_string_type) it
 * is the text itself. Where the type is known, trp_msg_is() is a comparison of two numbers and the
 * better choice; a subject serves where messages are picked by rules that come from elsewhere.
 */
#ifndef TROUPE_SUBJECT_H
#define TROUPE_SUBJECT_H

#include <troupe/base.h>
#include <troupe/message.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_SUBJECT_BYTES_MAX 1023 /* of a pattern; longer subjects match no regular expression */

typedef struct trp_subject trp_subject;

/* Compile a pattern for subjects: a text that they must equal, or (regular not 0) a
 * POSIX extended regular expression that must match all of them. NULL or "": any subject.
 *
 * Ownership: gives *ret_subject (trp_subject_free).
 * Errors:    TRP_EINVAL  the expression is wrong or too long
 *            TRP_ENOMEM  out of memory
 * Thread:    any; lock-free.
 * Source:    UJ-01, UJ-07.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_subject_new(const char *pattern, int regular,
                                               trp_subject **ret_subject);

/* Free it. NULL is fine.
 *
 * Ownership: takes subject.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    UJ-01.  Since: 0.1 */
TRP_API void trp_subject_free(trp_subject *subject);

/* Return non-zero when msg's subject matches.
 *
 * Ownership: borrows msg.
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    UJ-01, UJ-07.  Since: 0.1 */
TRP_API int trp_subject_matches(const trp_subject *subject, const trp_msg *msg);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_SUBJECT_H */

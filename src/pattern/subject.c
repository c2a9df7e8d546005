/* subject.c - match messages by text or regular expression.
 *
 * Tests.   tests/unit/pattern/subject_test.c
 * Sources. UJ-01, UJ-07
 */
#include <troupe/subject.h>

#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

struct trp_subject {
    bool any, regular;
    regex_t compiled; /* if regular */
    char text[TRP_SUBJECT_BYTES_MAX + 1];
};

trp_err
trp_subject_new(const char *pattern, int regular, trp_subject **ret_subject)
{
    size_t bytes = pattern == NULL ? 0 : strlen(pattern);
    char whole[TRP_SUBJECT_BYTES_MAX + 5];
    trp_subject *subject;

    if (ret_subject == NULL || bytes > TRP_SUBJECT_BYTES_MAX) {
        return TRP_EINVAL;
    }
    subject = trpi_alloc(sizeof *subject);
    if (subject == NULL) {
        return TRP_ENOMEM;
    }
    subject->any = bytes == 0;
    subject->regular = regular != 0 && bytes > 0;
    if (bytes > 0) {
        memcpy(subject->text, pattern, bytes);
    }
    if (subject->regular) {
        int code;

        (void)snprintf(whole, sizeof whole, "^(%s)$", pattern);
        code = regcomp(&subject->compiled, whole, REG_EXTENDED | REG_NOSUB);
        if (code != 0) {
            trpi_free(subject);
            return code == REG_ESPACE ? TRP_ENOMEM : TRP_EINVAL;
        }
    }
    *ret_subject = subject;
    return TRP_OK;
}

void
trp_subject_free(trp_subject *subject)
{
    if (subject != NULL && subject->regular) {
        regfree(&subject->compiled);
    }
    trpi_free(subject);
}

int
trp_subject_matches(const trp_subject *subject, const trp_msg *msg)
{
    bool is_text = trp_msg_is(msg, &trp_string_type);
    const char *text = is_text ? trp_msg_payload(msg) : trp_msg_type(msg)->name;
    size_t bytes = is_text ? trp_msg_bytes(msg) : strlen(text);
    char copy[TRP_SUBJECT_BYTES_MAX + 1];

    if (subject->any) {
        return 1;
    }
    if (!subject->regular) {
        return bytes == strlen(subject->text) &&
               (bytes == 0 || memcmp(text, subject->text, bytes) == 0);
    }
    if (bytes > TRP_SUBJECT_BYTES_MAX) {
        return 0;
    }
    if (bytes > 0) {
        memcpy(copy, text, bytes);
    }
    copy[bytes] = 0;
    return regexec(&subject->compiled, copy, 0, NULL, 0) == 0;
}

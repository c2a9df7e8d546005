/* The error table: every value has a name, a sentence and a retry rule. */
#include <troupe/base.h>

#include "tests/unit/unit.h"

static void
every_code_has_a_name_and_a_text(void)
{
#define CHECK(number, name, text, retryable)                                                       \
    UNIT_EQUAL(TRP_##name, number);                                                                \
    UNIT_TEXT(trp_err_name(TRP_##name), "TRP_" #name);                                             \
    UNIT_TEXT(trp_strerror(TRP_##name), text);                                                     \
    UNIT_EQUAL(trp_err_retryable(TRP_##name), retryable);
    TRP_ERRORS(CHECK)
#undef CHECK
}

static void
a_code_of_a_newer_version_is_named_unknown(void)
{
    UNIT_TEXT(trp_err_name((trp_err)9999), "TRP_E?");
    UNIT_TEXT(trp_strerror((trp_err)-1), "unknown error code");
    UNIT_TEXT(trp_strerror((trp_err)INT32_MAX), "unknown error code");
    UNIT_EQUAL(trp_err_retryable((trp_err)9999), 0);
}

static void
version_is_the_header_s(void)
{
    char text[32];

    snprintf(text, sizeof text, "%d.%d.%d", TRP_VERSION_MAJOR, TRP_VERSION_MINOR,
             TRP_VERSION_PATCH);
    UNIT_TEXT(trp_version(), text);
}

UNIT_BEGIN("err")
UNIT(every_code_has_a_name_and_a_text)
UNIT(a_code_of_a_newer_version_is_named_unknown)
UNIT(version_is_the_header_s)
UNIT_END

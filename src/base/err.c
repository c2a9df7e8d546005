/* err.c - the error table as text.
 *
 * Why.     Codes cross the wire and reach people; both need a name that never changes and a
 *          sentence. The table itself is TRP_ERRORS in troupe/base.h, so a code cannot exist
 *          without its text.
 * Tests.   tests/unit/base/err_test.c
 */
#include <troupe/base.h>

typedef struct err_entry {
    const char *name;
    const char *text;
    int retryable;
} err_entry;

static const err_entry entries[] = {
#define ERR_ENTRY(number, name, text, retryable) [number] = { "TRP_" #name, text, retryable },
    TRP_ERRORS(ERR_ENTRY)
#undef ERR_ENTRY
};

/* A peer of a newer version may send a code that this build does not know: any value is
 * answered. */
static const err_entry unknown = { "TRP_E?", "unknown error code", 0 };

static const err_entry *
entry_of(trp_err err)
{
    unsigned number = (unsigned)err;

    if (number >= sizeof entries / sizeof entries[0] || entries[number].name == NULL) {
        return &unknown;
    }
    return &entries[number];
}

const char *
trp_strerror(trp_err err)
{
    return entry_of(err)->text;
}

const char *
trp_err_name(trp_err err)
{
    return entry_of(err)->name;
}

int
trp_err_retryable(trp_err err)
{
    return entry_of(err)->retryable;
}

const char *
trp_version(void)
{
    return TRP_VERSION;
}

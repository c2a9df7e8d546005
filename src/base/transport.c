/* transport.c - the reasons of refused connections as text; the interface itself is a header. */
#include "base/transport.h"

#include "base/assert.h"

const char *
trpi_refusal_text(trpi_refusal why)
{
    static const char *const texts[] = { "",
#define TEXT(name, text) text,
                                         TRPI_REFUSALS(TEXT)
#undef TEXT
    };
    trpi_assert((unsigned)why < sizeof texts / sizeof texts[0]);
    return texts[why];
}

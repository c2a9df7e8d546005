/* assert.c - report a failed assertion and abort.
 *
 * Why.     An assertion is about our own mistakes; going on would corrupt what other actors hold.
 *          It says where, then aborts, so that a core file shows the state. Input never leads here.
 */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void
trpi_assert_failed(const char *expression, const char *file, int line)
{
    fprintf(stderr, "%s:%d: troupe assertion failed: %s\n", file, line, expression);
    abort();
}

/* check.c - see the header. */
#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>

const char *
trpi_check_broken(trpi_check *check, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(check->text, sizeof check->text, format, args);
    va_end(args);
    return check->text;
}

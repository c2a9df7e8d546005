/* errno_name.h - an errno as its symbol, "ECONNREFUSED": the sentence depends on the language and
 * the C library, people and rules of log collectors look for the symbol. */
#ifndef TRPI_BASE_ERRNO_NAME_H
#define TRPI_BASE_ERRNO_NAME_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <string.h>

/* Static text; "E?" for a number that is no errno. Thread: any. */
static inline const char *
trpi_errno_name(int error)
{
    const char *name = strerrorname_np(error);
    return name != NULL ? name : "E?";
}

#endif

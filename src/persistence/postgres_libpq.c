/* postgres_libpq.c - load libpq.so.5 when it is needed.
 *
 * Why.   libpq brings Kerberos, LDAP and more along: a node without a journal in PostgreSQL shall
 *        neither wait for it at its start nor need it.
 * Tests. tests/system/postgres.sh
 */
#include "persistence/postgres_libpq.h"

#ifdef HAVE_POSTGRES

static trpi_libpq functions;
static const char *const names[] = { TRPI_LIBPQ_FUNCTIONS(TRPI_LIBRARY_NAME) };
static trpi_loaded_library library = { .file = "libpq.so.5",
                                       .package = "libpq5", /* 14 or newer */
                                       .names = names,
                                       .count = sizeof names / sizeof names[0],
                                       .functions = &functions };

const trpi_libpq *
trpi_libpq_get(char *why, size_t why_bytes)
{
    return trpi_library_open(&library, why, why_bytes) ? &functions : NULL;
}

#endif

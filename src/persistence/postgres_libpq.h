/* postgres_libpq.h - libpq, loaded when the first journal in PostgreSQL is opened.
 *
 * The one file that includes libpq-fe.h. A program that uses no such journal neither loads libpq
 * nor needs it installed. */
#ifndef TRPI_PERSISTENCE_POSTGRES_LIBPQ_H
#define TRPI_PERSISTENCE_POSTGRES_LIBPQ_H

#ifdef HAVE_POSTGRES

#include <libpq-fe.h>
#include <stddef.h>

#include "base/loaded_library.h"

#define TRPI_LIBPQ_FUNCTIONS(F)                                                                    \
    F(PQclear)                                                                                     \
    F(PQconnectPoll)                                                                               \
    F(PQconnectStartParams)                                                                        \
    F(PQconnectdbParams)                                                                           \
    F(PQconninfoFree)                                                                              \
    F(PQconninfoParse)                                                                             \
    F(PQconsumeInput)                                                                              \
    F(PQenterPipelineMode)                                                                         \
    F(PQerrorMessage)                                                                              \
    F(PQexec)                                                                                      \
    F(PQexecParams)                                                                                \
    F(PQfinish)                                                                                    \
    F(PQflush)                                                                                     \
    F(PQfreemem)                                                                                   \
    F(PQgetResult)                                                                                 \
    F(PQgetisnull)                                                                                 \
    F(PQgetlength)                                                                                 \
    F(PQgetvalue)                                                                                  \
    F(PQisBusy)                                                                                    \
    F(PQnfields)                                                                                   \
    F(PQntuples)                                                                                   \
    F(PQpipelineSync)                                                                              \
    F(PQresultErrorField)                                                                          \
    F(PQresultStatus)                                                                              \
    F(PQsendPrepare)                                                                               \
    F(PQsendQueryParams)                                                                           \
    F(PQsendQueryPrepared)                                                                         \
    F(PQsetNoticeReceiver)                                                                         \
    F(PQsetnonblocking)                                                                            \
    F(PQsocket)                                                                                    \
    F(PQstatus)

typedef struct trpi_libpq {
    TRPI_LIBPQ_FUNCTIONS(TRPI_LIBRARY_MEMBER)
} trpi_libpq;

/* Load it, once a process. NULL: it cannot be, and why says what to install. */
const trpi_libpq *trpi_libpq_get(char *why, size_t why_bytes);

#endif
#endif

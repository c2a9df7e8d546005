/* postgres_schema.h - the tables of a journal in PostgreSQL, and the statements that use them. */
#ifndef TRPI_PERSISTENCE_POSTGRES_SCHEMA_H
#define TRPI_PERSISTENCE_POSTGRES_SCHEMA_H

#include <troupe/base.h>

/* Moves with each change of the tables or of the procedure. */
#define TRPI_POSTGRES_VERSION 1

/* The statements. CHANGE carries a batch, SLICE deletes events, the others are reads. */
typedef enum trpi_postgres_statement {
    TRPI_POSTGRES_CHANGE,
    TRPI_POSTGRES_EVENTS,
    TRPI_POSTGRES_TAGGED,
    TRPI_POSTGRES_ALL,
    TRPI_POSTGRES_SNAPSHOT,
    TRPI_POSTGRES_IDS,
    TRPI_POSTGRES_SCOPES,
    TRPI_POSTGRES_SLICE,
    TRPI_POSTGRES_STATEMENTS
} trpi_postgres_statement;

/* The outcome of a change of the batch, in the procedure's answer. */
typedef enum trpi_postgres_code {
    TRPI_POSTGRES_DONE = 0,
    TRPI_POSTGRES_FENCED = 1,
    TRPI_POSTGRES_GAP = 2
} trpi_postgres_code;

/* Kinds of changes: trp_journal_kind, but for this one. */
#define TRPI_POSTGRES_RESTORE 12

/* The texts, in which @ stands for the schema. */
extern const char trpi_postgres_tables[];
extern const char *const trpi_postgres_settings;
extern const char *const trpi_postgres_version;
extern const char *const trpi_postgres_fence_end;
extern const char *const trpi_postgres_fence_take;
extern const char *const trpi_postgres_statements[TRPI_POSTGRES_STATEMENTS];

/* Return text with the schema in place of each @ (trpi_free); NULL: no memory. */
char *trpi_postgres_text(const char *text, const char *schema);

#endif

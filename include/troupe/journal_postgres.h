/* troupe/journal_postgres.h - a journal in a PostgreSQL database, which all nodes of a cluster
 * share.
 *
 *     trp_journal_postgres_options options = TRP_JOURNAL_POSTGRES_OPTIONS_INIT;
 *     char why[TRP_JOURNAL_WHY_BYTES];
 *     options.url = "postgresql://troupe@db1,db2/orders";
 *     err = trp_journal_postgres_open(&options, &driver, why, sizeof why);
 *
 * `troupe journal init` makes the tables first. PostgreSQL 12 or later; libpq 14 or later, which is
 * loaded when the first journal is opened (package libpq5). A build --without-postgres has these
 * functions too, and they answer TRP_EUNSUPPORTED.
 *
 * Opening does not wait for the server, and neither does a submit. While the server is away,
 * operations wait, so many and so long as the options say, and then are refused; only those that
 * had been sent are failed. Changes of all nodes take turns (so offsets are given in the order of
 * commits); each turn carries what has gathered meanwhile, in one transaction. */
#ifndef TROUPE_JOURNAL_POSTGRES_H
#define TROUPE_JOURNAL_POSTGRES_H

#include <troupe/journal.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_JOURNAL_POSTGRES_SCHEMA "troupe"
#define TRP_JOURNAL_POSTGRES_SCHEMA_BYTES_MAX 63
#define TRP_JOURNAL_POSTGRES_READERS_DEFAULT 2
#define TRP_JOURNAL_POSTGRES_READERS_MAX 16
#define TRP_JOURNAL_POSTGRES_CONNECT_MS_DEFAULT 10000
#define TRP_JOURNAL_POSTGRES_WAIT_MS_DEFAULT 10000
#define TRP_JOURNAL_POSTGRES_ANSWER_MS_DEFAULT 30000
#define TRP_JOURNAL_POSTGRES_WAITING_DEFAULT 65536
#define TRP_JOURNAL_POSTGRES_WAITING_BYTES_DEFAULT 268435456u
#define TRP_JOURNAL_POSTGRES_BATCH_DEFAULT 1000
#define TRP_JOURNAL_POSTGRES_BATCH_MAX 10000

typedef struct trp_journal_postgres_options {
    size_t size;
    const char *url;           /* as libpq takes it: a URL, or "host=db1 dbname=orders" */
    const char *password_file; /* NULL: none. Its first line is the password; read at each connect;
                                  it must belong to this user alone */
    const char *schema;        /* NULL: TRP_JOURNAL_POSTGRES_SCHEMA; a-z, 0-9 and _ */
    uint32_t readers;          /* connections for reads, beside the one for changes */
    uint32_t connect_timeout_ms;
    uint32_t wait_timeout_ms;   /* how long an operation without a timeout_ms waits to be sent */
    uint32_t answer_timeout_ms; /* a connection that does not answer for so long is given up */
    uint32_t waiting_max;       /* operations without an answer: one more is refused */
    uint32_t batch_max;         /* operations of one transaction */
    uint64_t waiting_bytes_max; /* data of the operations without an answer, likewise */
} trp_journal_postgres_options;
#define TRP_JOURNAL_POSTGRES_OPTIONS_INIT                                                          \
    {                                                                                              \
        sizeof(trp_journal_postgres_options), NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0                \
    }

/* Open a journal, without waiting for its server. why is filled with the reason of an error, cut to
 * its room; it may be NULL. No password gets into a reason, here or in an answer.
 *
 * Ownership: gives *ret_driver (its close frees it); borrows options and why
 * Errors:    TRP_EINVAL       options are incomplete or out of range
 *            TRP_ECONFIG      url is no connection string
 *            TRP_EUNSUPPORTED built --without-postgres, or libpq cannot be loaded
 *            TRP_ENOMEM       out of memory, or of threads
 * Thread:    any; may block until libpq is loaded; never from a behaviour.
 * Source:    docs/adr, decision 295.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err
trp_journal_postgres_open(const trp_journal_postgres_options *options,
                          const trp_journal_driver **ret_driver, char *why, size_t why_bytes);

/* Make the tables of a journal, if they are not there; *ret_made says whether they were made now.
 * The user of url needs the right to make a schema, and then owns the tables.
 *
 * Ownership: borrows options and why; ret_made may be NULL
 * Errors:    as trp_journal_postgres_open, and
 *            TRP_ECONN    no connection to the server
 *            TRP_EVERSION the tables are there, made by another version of Troupe
 *            TRP_EFAILED  the server has refused to make them
 * Thread:    any; may block until the server answers; never from a behaviour.
 * Source:    docs/adr, decision 295.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_journal_postgres_init(
    const trp_journal_postgres_options *options, uint32_t *ret_made, char *why, size_t why_bytes);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_JOURNAL_POSTGRES_H */

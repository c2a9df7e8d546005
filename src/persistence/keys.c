/* keys.c - the keys of persistence. */
#include "persistence/persistence.h"

#include <troupe/journal_postgres.h>

#include "base/config_keys.h"

/* clang-format off */
static const trpi_config_row persistence_rows[] = {
    { "persistence.journal", CHOICE, "off", 0, 0, "off|memory|lmdb|postgres",
      "Where a node keeps the events and snapshots of persistent actors. memory: until the process "
      "ends, for trials and tests. lmdb: in persistence.lmdb.dir. postgres: in a database that all "
      "nodes share. off: nowhere, unless a plugin brings a journal. (Akka: "
      "persistence.journal.plugin)" },
    { "persistence.lmdb.dir", TEXT, "", 0, 0, NULL,
      "lmdb: directory of the journal, on a disk of this host; it is made if it is missing. One "
      "process at a time may use it." },
    { "persistence.lmdb.size-max", SIZE, "64GiB", MIB, 16384.0 * 1024 * MIB, NULL,
      "lmdb: how much events and snapshots may take; what does not fit is refused. So much "
      "address space is reserved, the file grows as it is used." },
    { "persistence.local-store-is-enough", BOOL, "off", 0, 0, NULL,
      "Persistent state that may move between hosts is allowed in a journal that only this node "
      "sees: after a move it starts without its state. `troupe dev` sets it. (Akka has no such "
      "key)" },
    { "persistence.max-concurrent-recoveries", INT,
      TEXT_OF(TRP_PERSISTENCE_RECOVERIES_DEFAULT), 1, 1000000, NULL,
      "How many persistent actors of a node recover at once; others wait for their turn." },
    { "persistence.postgres.url", TEXT, "", 0, 0, NULL,
      "The database, as libpq takes it: postgresql://user@host1,host2/database, or host=db1 "
      "dbname=orders. `troupe journal init` makes its tables. Never shown or logged.",
      true },
    { "persistence.postgres.password-file", TEXT, "", 0, 0, NULL,
      "A file whose first line is the password, read at each connect; for its owner alone." },
    { "persistence.postgres.schema", TEXT, TRP_JOURNAL_POSTGRES_SCHEMA, 0, 0, NULL,
      "The schema with the tables of the journal: one for each cluster that uses the database." },
    { "persistence.postgres.readers", INT, TEXT_OF(TRP_JOURNAL_POSTGRES_READERS_DEFAULT), 1,
      TRP_JOURNAL_POSTGRES_READERS_MAX, NULL,
      "Connections for recoveries and queries, beside the one for changes." },
    { "persistence.postgres.connect-timeout", DURATION,
      MS_OF(TRP_JOURNAL_POSTGRES_CONNECT_MS_DEFAULT), 100, HOURS, NULL,
      "How long the server may take to accept a connection." },
    { "persistence.postgres.wait-timeout", DURATION, MS_OF(TRP_JOURNAL_POSTGRES_WAIT_MS_DEFAULT),
      100, HOURS, NULL,
      "How long an operation waits while the server is away or behind; then it is refused, and "
      "certainly not stored." },
    { "persistence.postgres.answer-timeout", DURATION,
      MS_OF(TRP_JOURNAL_POSTGRES_ANSWER_MS_DEFAULT), 1000, HOURS, NULL,
      "A connection without an answer for so long is given up; the changes on it are failed." },
    { "persistence.postgres.waiting-max", INT, TEXT_OF(TRP_JOURNAL_POSTGRES_WAITING_DEFAULT), 1,
      10000000, NULL, "Operations without an answer; one more is refused." },
    { "persistence.postgres.waiting-bytes-max", SIZE, "256MiB", MIB, 1024.0 * 1024.0 * MIB, NULL,
      "Data of the operations without an answer; what exceeds it is refused." },
    { "persistence.postgres.batch-max", INT, TEXT_OF(TRP_JOURNAL_POSTGRES_BATCH_DEFAULT), 1,
      TRP_JOURNAL_POSTGRES_BATCH_MAX, NULL, "Changes of one transaction." },
    { NULL, TEXT, NULL, 0, 0, NULL, NULL, false },
};
/* clang-format on */

const trpi_config_part trpi_persistence_keys = KEYS_OF(persistence_rows, NULL);

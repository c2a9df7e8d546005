# src/persistence: journals, and what is kept in them
pkginclude_HEADERS += include/troupe/journal.h include/troupe/journal_kit.h include/troupe/journal_postgres.h
troupe_sources += src/persistence/journal_kit.c src/persistence/journal_kit_limits.c src/persistence/journal_kit_reads.c \
	src/persistence/journal_kit_writes.c src/persistence/journal_memory.c src/persistence/journal_memory_data.c \
	src/persistence/journal_op.c
pkginclude_HEADERS += include/troupe/persistence.h
troupe_sources += src/persistence/flight.c src/persistence/keys.c src/persistence/persistence.c \
	src/persistence/persistent.c src/persistence/persistent_deliver.c src/persistence/persistent_keep.c \
	src/persistence/persistent_recover.c src/persistence/persistent_write.c src/persistence/recoveries.c \
	src/persistence/unconfirmed.c
# queries and projections
pkginclude_HEADERS += include/troupe/journal_query.h include/troupe/projection.h
troupe_sources += src/persistence/journal_ask.c src/persistence/journal_query.c src/persistence/journal_watch.c \
	src/persistence/projection.c src/persistence/projection_store.c
pkginclude_HEADERS += include/troupe/journal_lmdb.h
troupe_sources += src/persistence/journal_lmdb.c src/persistence/journal_lmdb_delete.c src/persistence/journal_lmdb_lot.c \
	src/persistence/journal_lmdb_read.c src/persistence/journal_lmdb_row.c \
	src/persistence/journal_lmdb_store.c src/persistence/journal_lmdb_write.c
# reliable delivery: engines, and the actors that feed them
pkginclude_HEADERS += include/troupe/delivery.h
troupe_sources += src/persistence/delivery_consume.c src/persistence/delivery_consumer.c src/persistence/delivery_produce.c \
	src/persistence/delivery_producer.c src/persistence/delivery_types.c
troupe_sources += src/persistence/journal_postgres.c src/persistence/postgres_answer.c src/persistence/postgres_conn.c \
	src/persistence/postgres_init.c src/persistence/postgres_libpq.c src/persistence/postgres_schema.c src/persistence/postgres_send.c

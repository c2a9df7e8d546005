/* journal_kit.h - what the laws of the conformance kit share. */
#ifndef TRPI_PERSISTENCE_JOURNAL_KIT_H
#define TRPI_PERSISTENCE_JOURNAL_KIT_H

#include <stdbool.h>

#include <troupe/journal_kit.h>

#define TRPI_KIT_SEEN_MAX 4096u

/* One run of one law. */
typedef struct trpi_kit_run {
    const trp_journal_kit *kit;
    const trp_journal_driver *driver;
    char *why;
    size_t why_bytes;
} trpi_kit_run;

/* The items that a read has given: the facts that laws compare, in order. */
typedef struct trpi_kit_item {
    char id[TRP_JOURNAL_ID_BYTES_MAX + 1];
    char type[32];
    char data[32];
    uint64_t number;
    uint64_t offset;
    uint64_t time_ms;
    uint64_t bytes;
    uint32_t version;
    uint32_t tags_count;
} trpi_kit_item;
typedef struct trpi_kit_seen {
    trpi_kit_item *items;
    uint32_t items_count;
    uint32_t items_room;
} trpi_kit_seen;

typedef bool (*trpi_kit_law_fn)(trpi_kit_run *run);

/* Say what is broken; false, so that a law can return it. */
bool trpi_kit_fail(trpi_kit_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#define TRPI_KIT_CHECK(run, condition, ...)                                                        \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            return trpi_kit_fail((run), __VA_ARGS__);                                              \
        }                                                                                          \
    } while (0)

bool trpi_kit_reopen(trpi_kit_run *run);

/* An operation of a scope whose epoch is known. */
trp_journal_op trpi_kit_op(trp_journal_kind kind, const char *id, const char *scope,
                           uint64_t epoch);
trp_err trpi_kit_call(const trpi_kit_run *run, trp_journal_op *op);
/* Claim scope; 0: refused. */
uint64_t trpi_kit_claim(const trpi_kit_run *run, const char *scope, const char *writer);
/* Append count (at most 1,024) events "id/number" of type "kit" with this tag (NULL: none). */
trp_err trpi_kit_append(const trpi_kit_run *run, const char *id, const char *scope, uint64_t epoch,
                        uint64_t from, uint32_t count, const char *tag);
/* Carry out a read, and add what it gives to seen. */
trp_err trpi_kit_read(const trpi_kit_run *run, trp_journal_op *op, trpi_kit_seen *seen);
/* All events of id: count of them, numbered from first. */
bool trpi_kit_has_events(trpi_kit_run *run, const char *id, uint64_t first, uint32_t count);
void trpi_kit_seen_fini(trpi_kit_seen *seen);

bool trpi_kit_numbers(trpi_kit_run *run);
bool trpi_kit_groups(trpi_kit_run *run);
bool trpi_kit_one_writer(trpi_kit_run *run);
bool trpi_kit_refusals(trpi_kit_run *run);
bool trpi_kit_order(trpi_kit_run *run);
bool trpi_kit_failures(trpi_kit_run *run);
bool trpi_kit_deletion(trpi_kit_run *run);
bool trpi_kit_restore(trpi_kit_run *run);
bool trpi_kit_reads(trpi_kit_run *run);
bool trpi_kit_tags(trpi_kit_run *run);
bool trpi_kit_readers(trpi_kit_run *run);
bool trpi_kit_snapshots(trpi_kit_run *run);
bool trpi_kit_ids(trpi_kit_run *run);
bool trpi_kit_reopening(trpi_kit_run *run);
bool trpi_kit_health(trpi_kit_run *run);
bool trpi_kit_limits(trpi_kit_run *run);
bool trpi_kit_large_data(trpi_kit_run *run);
bool trpi_kit_arguments(trpi_kit_run *run);

#endif

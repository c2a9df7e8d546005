/* journal_carry.h - a whole journal as lines of JSON, and back: for backup and the move between
 * stores.
 *
 *   {"journal":"troupe","version":1}
 *   {"event":{"id":"order-7","number":1,"timeMs":1700000000000,"type":"placed","version":1,
 *             "tags":["order"],"data":"BASE64"}}            in the order of offsets
 *   {"snapshot":{"id":"order-7","number":1,"timeMs":..,"type":"state","version":1,"data":".."}}
 *   {"id":{"id":"order-8","highest":12}}                    of each id, at the end
 *   {"scope":{"scope":"order-7","writer":"troupe://shop@a:2552/user/7","epoch":3}}
 *   {"end":{"events":1,"snapshots":1,"ids":2,"scopes":1}} */
#ifndef TRPI_NODE_JOURNAL_CARRY_H
#define TRPI_NODE_JOURNAL_CARRY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <troupe/journal.h>

#define TRPI_CARRY_LINE_BYTES_MAX (3u * TRP_JOURNAL_GROUP_BYTES_MAX / 2u)

typedef struct trpi_carry {
    const trp_journal_driver *driver;
    FILE *file;
    uint64_t events;
    uint64_t snapshots;
    uint64_t ids;
    uint64_t scopes;
    char after[TRP_JOURNAL_SCOPE_BYTES_MAX + 1]; /* the last scope that was written */
    uint64_t line;                               /* of the file that is read */
    char why[TRP_JOURNAL_WHY_BYTES + 256];
} trpi_carry;

/* Write the journal to file. Errors: of the journal, or TRP_EIO; why says the reason. */
trp_err trpi_carry_export(trpi_carry *carry);
/* Read file into a journal that has none of its ids. TRP_EDATA: the file is none, or is cut. */
trp_err trpi_carry_import(trpi_carry *carry);
/* Print one event as JSON without a line end. False: no memory, or it cannot be written. */
bool trpi_carry_print(FILE *file, const char *kind, const trp_journal_event *item);

#endif

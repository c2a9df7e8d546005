/* book.h - for tests: a kit whose clock the test holds, and its system with a journal in memory. */
#ifndef TESTS_UNIT_PERSISTENCE_BOOK_H
#define TESTS_UNIT_PERSISTENCE_BOOK_H

#include <stdio.h>

#include <troupe/journal.h>
#include <troupe/persistence.h>
#include <troupe/testkit.h>

#include "persistence/persistence.h"
#include "tests/unit/actor/stage.h"

typedef struct book {
    trp_testkit *kit;
    trp_system *system;
    trp_probe *probe;
    trp_journal_memory *memory; /* stays when the kit is closed and opened again */
    const trp_journal_driver *journal;
    uint64_t epoch; /* of scope "book" */
} book;

static inline void
book_call(const book *b, trp_journal_op *op)
{
    (void)trp_journal_call(b->journal, op);
    UNIT_EQUAL(op->outcome, TRP_JOURNAL_DONE);
}

static inline void
book_open_again(book *b)
{
    trp_testkit_options options = TRP_TESTKIT_OPTIONS_INIT;

    options.clock = TRP_CLOCK_MANUAL;
    UNIT_REQUIRE(trp_testkit_open(&options, &b->kit) == TRP_OK);
    b->system = trp_testkit_system(b->kit);
    b->probe = trp_testkit_probe(b->kit);
    UNIT_REQUIRE(trp_persistence_start(b->system, b->journal, NULL) == TRP_OK);
}

static inline void
book_open(book *b)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;

    UNIT_REQUIRE(trp_journal_memory_new(&b->memory) == TRP_OK);
    b->journal = trp_journal_memory_driver(b->memory);
    op.scope = "book";
    op.writer = "test";
    book_call(b, &op);
    b->epoch = op.ret_epoch;
    book_open_again(b);
}

static inline void
book_close(book *b)
{
    UNIT_EQUAL(trp_testkit_close(b->kit), TRP_OK);
    trp_journal_memory_free(b->memory);
}

static inline void
book_run(const book *b, uint32_t ms)
{
    UNIT_EQUAL(trp_testkit_advance(b->kit, ms), TRP_OK);
}

/* Store events first .. last of id, each with its number as text; told: live queries hear of it. */
static inline void
book_append(const book *b, const char *id, const char *tag, uint64_t first, uint64_t last,
            bool told)
{
    for (uint64_t n = first; n <= last; n++) {
        trp_journal_op op = TRP_JOURNAL_OP_INIT;
        trp_journal_event event;
        char text[24];

        memset(&event, 0, sizeof event);
        event.type = "bank.deposit";
        event.version = 1;
        event.tags_count = tag != NULL ? 1 : 0;
        event.tags = &tag;
        event.data = text;
        event.bytes = (size_t)snprintf(text, sizeof text, "%llu", (unsigned long long)n);
        op.kind = TRP_JOURNAL_APPEND;
        op.id = id;
        op.scope = "book";
        op.epoch = b->epoch;
        op.from = n;
        op.events = &event;
        op.events_count = 1;
        book_call(b, &op);
        if (told) {
            trpi_journal_committed(b->system, &op);
        }
    }
}

#endif

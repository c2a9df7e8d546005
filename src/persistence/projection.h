/* projection.h - the state of a projection, shared by its two files. */
#ifndef TRPI_PERSISTENCE_PROJECTION_H
#define TRPI_PERSISTENCE_PROJECTION_H

#include <stdbool.h>

#include <troupe/projection.h>

#include "persistence/journal_ask.h"

/* "projection/NAME": its id and its scope. */
#define TRPI_PROJECTION_PREFIX "projection/"
#define TRPI_PROJECTION_ID_BYTES (sizeof TRPI_PROJECTION_PREFIX + TRP_PROJECTION_NAME_BYTES_MAX)
/* The type of its snapshot, and of the last event of each group of an exactly-once one: 8 bytes,
 * the offset, little endian. */
#define TRPI_PROJECTION_OFFSET_TYPE "troupe.projection-offset"

typedef struct trpi_projection_args {
    trp_projection_fn handler;
    void *arg;
    bool exactly_once, ends, has_id, has_tag;
    uint32_t save_events, save_ms, poll_ms, on_failure, retries, retry_ms, retry_ms_max;
    char key[TRPI_PROJECTION_ID_BYTES];
    char id[TRP_JOURNAL_ID_BYTES_MAX + 1];
    char tag[TRP_JOURNAL_TAG_BYTES_MAX + 1];
} trpi_projection_args;

struct trp_projection {
    trpi_projection_args args;
    const trp_journal_driver *journal;
    trpi_journal_ask *ask; /* under way: a step of the start, or a save */
    trp_ref query;         /* TRP_REF_NONE: not reading */
    uint64_t epoch;
    uint64_t own_number; /* of the last event of its own id */
    uint64_t position, saved, saving;
    uint64_t own_number_saving;
    uint64_t handled, skipped, failures;
    uint32_t granted; /* events that were asked for and are not over */
    uint32_t unsaved; /* events handled, the offset of which is in no save yet */
    uint32_t tries;   /* of the present event, or of the journal */
    uint32_t emitted_count, emitted_before; /* events; before the present one */
    uint64_t emitted_bytes;
    trpi_journal_item *emitted, **emitted_last;
    trp_projection_phase phase;
    trp_err err;
    bool in_handler;
    bool save_is_due; /* the timer of saves runs */
    bool ends;        /* it stops: no answer is waited for */
    bool at_end;      /* the query has ended: all was told */
};

/* Begin from its place in the journal: claim, read the offset, start the query. */
trp_err trpi_projection_begin(trp_ctx *ctx, trp_projection *p);
/* Do it after a pause, since the journal has failed. */
trp_err trpi_projection_begin_later(trp_ctx *ctx, trp_projection *p, trp_err err, const char *why);
/* Take the answer of an operation: a step of the start, or of a save. */
trp_err trpi_projection_answered(trp_ctx *ctx, trp_projection *p);
/* Store the offset, and what was emitted, unless a save is under way. */
trp_err trpi_projection_save(trp_ctx *ctx, trp_projection *p);
/* Forget emitted events behind the first `keep`. */
void trpi_projection_emitted_cut(trp_projection *p, uint32_t keep);
/* The pause before attempt number tries. */
uint32_t trpi_projection_pause_ms(const trp_projection *p);

extern trp_type trpi_projection_again_type; /* timers: begin, or call the handler, again */
extern trp_type trpi_projection_save_type;
enum { TRPI_PROJECTION_AGAIN_KEY = 1, TRPI_PROJECTION_SAVE_KEY = 2 };

#endif

/* stage.h - what a demonstration shows: threads, actors, messages, rates, trace; see stage.c. */
#ifndef TRPI_DEMO_STAGE_H
#define TRPI_DEMO_STAGE_H

#include <stdbool.h>
#include <stdint.h>

#include <troupe/base.h>

#include "base/buffer.h"

#define TRPI_STAGE_ACTORS_MAX 200u
#define TRPI_STAGE_THREADS_MAX 64u
#define TRPI_STAGE_STEPS_MAX 512u         /* seconds of one run */
#define TRPI_STAGE_LINES_MAX 1024u        /* of the trace: the latest */
#define TRPI_STAGE_LINE_BYTES 160u        /* of one line, with its NUL; longer ones are cut */
#define TRPI_STAGE_FRESH_MAX 256u         /* messages sent last */
#define TRPI_STAGE_SNAPSHOTS_MAX 16u      /* of the run so far */
#define TRPI_STAGE_SNAPSHOT_LINKS_MAX 64u /* of each: the first of the table */
#define TRPI_STAGE_LINKS_MAX 1500u        /* of the present, in one answer */
#define TRPI_STAGE_NAME_BYTES 32u         /* of an actor, with its NUL */
#define TRPI_STAGE_JSON_MAX (1u << 20)
#define TRPI_STAGE_OUTSIDE TRPI_STAGE_ACTORS_MAX /* as sender: the program itself */
#define TRPI_STAGE_NOBODY UINT32_MAX

typedef enum trpi_stage_kind {
    TRPI_STAGE_TEST_ACTOR,
    TRPI_STAGE_PRODUCER,
    TRPI_STAGE_CONSUMER,
    TRPI_STAGE_MAP_REDUCE,
    TRPI_STAGE_WORKER,
    TRPI_STAGE_WALKER,
    TRPI_STAGE_SCANNER,
    TRPI_STAGE_KINDS
} trpi_stage_kind;
extern const char *const trpi_stage_kinds[TRPI_STAGE_KINDS];

typedef struct trpi_stage trpi_stage;

/* Figures of a stage. */
typedef struct trpi_stage_figures {
    uint32_t actors, threads, step;
    uint32_t waiting; /* messages sent and not yet taken */
    uint32_t busy;    /* messages being handled */
    uint64_t accepted, completed;
    uint32_t accepts_per_s, completions_per_s; /* of the last step */
} trpi_stage_figures;

/* Give an empty one. Errors: TRP_ENOMEM. */
trp_err trpi_stage_new(trpi_stage **ret_stage);
void trpi_stage_free(trpi_stage *stage); /* NULL is fine */

/* The others: any thread; each takes the stage's lock for a moment. */

/* Forget all, and begin with so many threads, from 1 to TRPI_STAGE_THREADS_MAX. */
void trpi_stage_reset(trpi_stage *stage, uint32_t threads, uint64_t now_ns);
/* From now on there are so many threads. One that goes is idle. */
void trpi_stage_threads_set(trpi_stage *stage, uint32_t threads);
/* Add an actor; gives its index, from 0 on. Errors: TRP_ELIMIT: TRPI_STAGE_ACTORS_MAX are there. */
trp_err trpi_stage_actor_add(trpi_stage *stage, const char *name, trpi_stage_kind kind,
                             uint32_t *ret_index);
/* A message is on its way; from: an index, or TRPI_STAGE_OUTSIDE. */
void trpi_stage_sent(trpi_stage *stage, uint32_t from, uint32_t to);
/* A thread takes such a message, and has handled it. */
void trpi_stage_turn_begin(trpi_stage *stage, uint32_t thread, uint32_t from, uint32_t to,
                           uint64_t now_ns);
void trpi_stage_turn_end(trpi_stage *stage, uint32_t thread, uint64_t now_ns);
/* Add a line of the trace, "HH:MM:SS.mmm T [thread] - text": level 'T', or 'W' for a warning.
 * thread TRPI_STAGE_NOBODY: [main]. */
void trpi_stage_trace(trpi_stage *stage, int64_t wall_ms, char level, uint32_t thread,
                      const char *format, ...) __attribute__((format(printf, 5, 6)));
/* A second has passed: rates, shares of threads and the history are taken. */
void trpi_stage_step(trpi_stage *stage, uint64_t now_ns);

void trpi_stage_figures_get(trpi_stage *stage, trpi_stage_figures *ret_figures);
/* Return the one of these actors, at least one, with the fewest waiting messages; the first of
 * equals. */
uint32_t trpi_stage_least(trpi_stage *stage, const uint32_t *indices, uint32_t count);
/* Copy the name of an actor. */
void trpi_stage_name(trpi_stage *stage, uint32_t index, char ret_name[TRPI_STAGE_NAME_BYTES]);
/* Copy line `number` of the trace, from 0 on, and return true; false: it is not there yet. One that
 * is not kept any more is "". */
bool trpi_stage_line(trpi_stage *stage, uint64_t number, char ret_line[TRPI_STAGE_LINE_BYTES]);
/* Append members of a JSON object: what there is now, the trace from line `line` on, and the
 * messages sent from number `fresh` on. Errors: TRP_ENOMEM, TRP_ELIMIT: TRPI_STAGE_JSON_MAX. */
trp_err trpi_stage_write(trpi_stage *stage, uint64_t line, uint64_t fresh, trpi_buffer *buffer);

#endif

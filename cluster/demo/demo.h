/* demo.h - declarations that the files of this room share: one demonstration, its actors, its run.
 */
#ifndef TRPI_DEMO_DEMO_H
#define TRPI_DEMO_DEMO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <troupe/troupe.h>

#include "base/world.h"
#include "cluster/demo/stage.h"
#include "cluster/demo/threads.h"

#define TRPI_DEMO_ACTORS_DEFAULT 34u /* of the count-down, as in the article */
#define TRPI_DEMO_ACTORS_MIN 2u
#define TRPI_DEMO_ACTORS_OF_ALL_MAX 150u /* of the count-down, beside those of all other plays */
#define TRPI_DEMO_THREADS_DEFAULT 10u
#define TRPI_DEMO_STEPS_DEFAULT 256u
#define TRPI_DEMO_PACE_MS_DEFAULT 250u
#define TRPI_DEMO_PACE_MS_MAX 10000u
#define TRPI_DEMO_FILES_MAX 1000u /* that one scan reads */
#define TRPI_DEMO_VALUES 1000u    /* of map/reduce */
#define TRPI_DEMO_PARTITIONS 100u /* of those */
#define TRPI_DEMO_SCANNERS 6u
#define TRPI_DEMO_ITEMS 5u /* kinds of things that producers order */
#define TRPI_DEMO_TICK_MS 50

typedef enum trpi_demo_name {
    TRPI_DEMO_COUNTDOWN,
    TRPI_DEMO_PRODUCER_CONSUMER,
    TRPI_DEMO_MAP_REDUCE,
    TRPI_DEMO_VIRUS_SCAN,
    TRPI_DEMO_PLAYS, /* so many are plays, the others put them together */
    TRPI_DEMO_ALL = TRPI_DEMO_PLAYS,
    TRPI_DEMO_SEQUENCE,
    TRPI_DEMO_NAMES
} trpi_demo_name;

typedef struct trpi_demo_info {
    const char *name, *text;
} trpi_demo_info;
extern const trpi_demo_info trpi_demo_list[TRPI_DEMO_NAMES];

/* Messages: a subject, the sender, and two numbers. */
typedef enum trpi_demo_subject {
    TRPI_DEMO_INIT,
    TRPI_DEMO_REPEAT,
    TRPI_DEMO_LATER, /* to oneself, when it is due */
    TRPI_DEMO_PRODUCE_N,
    TRPI_DEMO_PRODUCE_1,
    TRPI_DEMO_CONSTRUCT,
    TRPI_DEMO_CONSTRUCTION_COMPLETE,
    TRPI_DEMO_CREATE_PARTITION,
    TRPI_DEMO_MAP_WORKER,
    TRPI_DEMO_MAP_RESPONSE,
    TRPI_DEMO_REDUCE_WORKER,
    TRPI_DEMO_REDUCE_RESPONSE,
    TRPI_DEMO_SCAN,
    TRPI_DEMO_SCANNED,
    TRPI_DEMO_SUBJECTS
} trpi_demo_subject;

typedef struct trpi_demo_msg {
    uint32_t subject, from, to, count, item;
} trpi_demo_msg;

/* State of one actor, which only its own turns touch. */
typedef struct trpi_demo_cell {
    trp_ref ref;
    trpi_stage_kind kind;
    uint32_t seed;
    uint32_t first, count; /* its last helper, and how many it has; of a helper: the one before */
    uint32_t expected[TRPI_DEMO_ITEMS]; /* of a producer: ordered and not yet built */
    uint32_t done, found;               /* answers so far; suspicious files */
    uint32_t timers;                    /* made so far */
} trpi_demo_cell;

typedef struct trpi_demo {
    trpi_world *world;
    trpi_stage *stage;
    uint32_t pace_ms;      /* what the articles have as a second of work */
    uint32_t actors;       /* of the count-down */
    const char *directory; /* to be scanned; NULL: a tree of its own */
    /* of a run: written while no thread of a system is there */
    trp_system *system; /* NULL: nothing was started */
    uint64_t run;       /* number of it */
    trpi_demo_name name;
    uint32_t threads, steps;
    trpi_demo_threads *executor; /* of the system's dispatcher; NULL: none */
    uint32_t added;              /* main thread: threads beyond `threads` */
    atomic_bool stopping;        /* relaxed: nothing is sent any more, and no time is spent */
    bool is_over;                /* main thread: all was handled, or it was stopped and all was */
    trpi_demo_name play;         /* of a sequence: the one that runs */
    uint64_t step_at_ns, pause_until_ns;
    /* by index; an entry is written before the first message that names it */
    trpi_demo_cell cells[TRPI_STAGE_ACTORS_MAX];
    /* count-down */
    uint32_t storm_first, storm_count, storm_common;
    /* map/reduce: an element belongs to the actor that has its partition at the time */
    uint64_t values[TRPI_DEMO_VALUES], sums[TRPI_DEMO_PARTITIONS];
    /* virus scan: written before the scan begins. Other plays start actors meanwhile, so the
     * indices of the scanners have gaps. */
    uint32_t scanners[TRPI_DEMO_SCANNERS];
    char *files[TRPI_DEMO_FILES_MAX];
    uint32_t files_count;
    char tree[64]; /* of its own; "": none */
} trpi_demo;

/* run.c: the first ones are called by turns of actors as well. */

/* Start an actor, as a child of ctx's; NULL: of the system's. Gives its index. That there is no
 * room is told in the trace. Errors: those of trpi_stage_actor_add() and trp_spawn(). */
trp_err trpi_demo_spawn(trpi_demo *demo, trp_ctx *ctx, trpi_stage_kind kind, const char *name,
                        uint32_t *ret_index);
/* Tell actor `to` something, in the name of `from`; ctx NULL: from outside. Nothing once the run is
 * being stopped. */
void trpi_demo_tell(trpi_demo *demo, trp_ctx *ctx, uint32_t from, uint32_t to,
                    trpi_demo_subject subject, uint32_t count, uint32_t item);
/* The same to oneself, in so many hundredths of the pace. Errors: those of trp_timer_once(). */
trp_err trpi_demo_later(trpi_demo *demo, trp_ctx *ctx, uint32_t self, trpi_demo_subject subject,
                        uint32_t count, uint32_t hundredths);
/* Work for this many hundredths of the pace. */
void trpi_demo_work(const trpi_demo *demo, uint32_t hundredths);
/* Add to the trace, as the thread that runs. */
#define trpi_demo_trace(demo, level, ...)                                                          \
    trpi_stage_trace((demo)->stage, trpi_world_wall_ms((demo)->world), (level),                    \
                     trpi_demo_threads_current(), __VA_ARGS__)

/* From here on the main thread only. Start; what ran before is ended. Errors: those of
 * trp_system_new(). */
trp_err trpi_demo_start(trpi_demo *demo, trpi_demo_name name, uint32_t threads, uint32_t steps);
void trpi_demo_stop(trpi_demo *demo);
/* Add a thread to a demonstration that runs, and remove one that was added. A sequence keeps them.
 * Errors: TRP_ESTATE: none runs. TRP_ELIMIT: TRPI_STAGE_THREADS_MAX are there; none was added.
 * TRP_EIO: no thread can be made. */
trp_err trpi_demo_task_add(trpi_demo *demo);
trp_err trpi_demo_task_remove(trpi_demo *demo);
/* Some time has passed: steps, the end, the next of a sequence. */
void trpi_demo_tick(trpi_demo *demo);
/* End the system, if there is one. */
void trpi_demo_end(trpi_demo *demo);
/* "idle", "running", "stopping", "stopped", "done". */
const char *trpi_demo_state(const trpi_demo *demo);
/* A number from 0 to sides - 1. */
uint32_t trpi_demo_dice(uint32_t *seed, uint32_t sides);

/* plays.c, play_scan.c: put the actors of a play there and send the first messages; a turn of an
 * actor. */
trp_err trpi_demo_play(trpi_demo *demo, trpi_demo_name name);
trp_err trpi_demo_turn(trpi_demo *demo, trp_ctx *ctx, trpi_demo_cell *cell,
                       const trpi_demo_msg *msg);
trp_err trpi_demo_scan_play(trpi_demo *demo);
void trpi_demo_scan_turn(trpi_demo *demo, trp_ctx *ctx, trpi_demo_cell *cell,
                         const trpi_demo_msg *msg);
void trpi_demo_scan_end(trpi_demo *demo);
extern const char *const trpi_demo_subjects[TRPI_DEMO_SUBJECTS];

#endif

/* observed.h - figures of actors that are made only while somebody looks: part of actor/actor.h.
 *
 * Nothing is counted for them where messages pass. A timer walks over the cells, samples what the
 * workers run, and puts marks into mailboxes; it ends a minute after the last look. */
#ifndef TRPI_ACTOR_LIFE_OBSERVED_H
#define TRPI_ACTOR_LIFE_OBSERVED_H

#include <stdbool.h>
#include <stdint.h>

#include <troupe/system.h>

#define TRPI_OBSERVED_MS 60000u        /* so long after the last look figures are made */
#define TRPI_OBSERVED_SLICE_NS 500000u /* of a walk, after which it pauses; at most 1 ms */
#define TRPI_OBSERVED_NAMES_MAX 100u   /* kept apart; the others are one */
#define TRPI_OBSERVED_NAME_BYTES 64u   /* with its end; a longer one is cut */
#define TRPI_OBSERVED_ROWS_MAX 64u     /* actors that want attention */
#define TRPI_OBSERVED_BOUNDS 11u

typedef struct trpi_observed_name {
    char name[TRPI_OBSERVED_NAME_BYTES];
    uint64_t actors; /* of this behaviour, or on this dispatcher */
    uint64_t active; /* of them: run, or have messages */
    uint64_t count;  /* of restarts */
    double busy;     /* a dispatcher's threads: the share of samples in which they ran something */
    bool sampled;    /* busy was measured */
} trpi_observed_name;

/* Names in the order in which they came. */
typedef struct trpi_observed_names {
    uint32_t count;
    bool has_others;
    trpi_observed_name entries[TRPI_OBSERVED_NAMES_MAX], others;
} trpi_observed_names;

typedef struct trpi_observed_times {
    uint64_t sum_ns;
    uint64_t buckets[TRPI_OBSERVED_BOUNDS + 1]; /* each alone: up to its bound, then above all */
} trpi_observed_times;
/* Upper bounds of buckets. */
extern const uint64_t trpi_observed_bounds_ns[TRPI_OBSERVED_BOUNDS];

/* An actor that wants attention. Times are 0 where they are not known. */
typedef struct trpi_observed_actor {
    trp_ref ref;
    char behaviour[TRPI_OBSERVED_NAME_BYTES], dispatcher[TRPI_OBSERVED_NAME_BYTES];
    uint64_t depth;   /* messages that waited */
    uint64_t age_ns;  /* a message waits for so long at least */
    uint64_t wait_ns; /* how long the last sample waited */
    uint64_t run_ns;  /* how long the last sampled message took */
    uint64_t held_ns; /* it holds its thread with one message */
    uint64_t handled;
    double per_s; /* handled between two looks at it */
    bool depth_known, suspended;
} trpi_observed_actor;

typedef struct trpi_observed {
    bool complete;         /* a walk has ended; false: all figures are 0 */
    uint64_t age_ns;       /* of the figures: since that walk began */
    uint64_t walk_ns;      /* that it took, with its pauses */
    uint64_t slice_ns_max; /* of its slices */
    uint64_t actors, active, suspended, overloaded;
    uint64_t depth_max, age_ns_max; /* of mailboxes that were looked into */
    trpi_observed_names behaviours, dispatchers;
    trpi_observed_times wait, run;
    trpi_observed_actor rows[TRPI_OBSERVED_ROWS_MAX]; /* the most urgent first */
    uint32_t rows_count;
} trpi_observed;

/* Copy the figures of the last walk, and have more made for a minute. Errors: TRP_ENOMEM,
 * TRP_ECLOSED (the system stops). Thread: any; takes a lock for a moment. */
trp_err trpi_system_observe(trp_system *system, trpi_observed *ret_observed);

/* ---- observed_names.c ------------------------------------------------------------------------ */
/* Find or add the entry of a name; one that came late, and "other", is that of the others. */
trpi_observed_name *trpi_observed_name_get(trpi_observed_names *names, const char *name);
/* Copy how often actors were restarted, by the first two elements of their paths. Thread: any;
 * takes a lock for a moment. */
void trpi_system_restarts(trp_system *system, trpi_observed_names *ret_names);

#endif

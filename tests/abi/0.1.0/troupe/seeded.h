/* troupe/seeded.h - run an actor program under seeds, and find the order of events that breaks it.
 *
 * A race of actors shows itself in one order of a thousand. Here a program runs in one thread, in
 * virtual time, and everything that threads and clocks would decide (which actor runs next, how
 * many messages it handles, when time passes and timers fire) is drawn from a seed: the same seed
 * is the same run, on every machine. A run that fails is shrunk: decisions that do not matter are
 * removed, and a short schedule remains that can be run again.
 *
 *     static void
 *     transfer_keeps_the_sum(trp_testkit *kit, void *arg)
 *     {
 *         ... spawn, tell, trp_probe_expect(...), TRP_TESTKIT_CHECK(kit, sum == 100);
 *     }
 *
 *     trp_seeded_options options = TRP_SEEDED_OPTIONS_INIT;
 *     options.seeds = 1000;
 *     err = trp_seeded_run(transfer_keeps_the_sum, NULL, &options, NULL);
 *
 * A schedule lists the decisions that differ from the calm ones: "12t3" lets the fourth of the
 * ready actors have turn 12 instead of the one that waits longest, "12b2" lets it handle 2 messages
 * in that turn, "12s9" lets 9 ms pass before it.
 *
 * The program must do the same whenever the same happens to it: no clock but the kit's, no random
 * numbers but trp_seeded_random(), no other threads. Any failed expectation of the kit, an actor
 * that does not stop, or more turns than turns_max is a failure of the run.
 */
#ifndef TROUPE_SEEDED_H
#define TROUPE_SEEDED_H

#include <troupe/base.h>
#include <troupe/system.h>
#include <troupe/testkit.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_SEEDED_TURNS_DEFAULT 1000000 /* turns of actors in one run */
#define TRP_SEEDED_STALL_MS_DEFAULT 10   /* time that may pass although actors are ready */
#define TRP_SEEDED_SHRINK_DEFAULT 2000   /* runs that shrinking may take */
#define TRP_SEEDED_SCHEDULE_BYTES 3072   /* of a schedule's text, with the NUL */

/* One run. The kit has its own system and a virtual clock; a failure ends the program by a jump. */
typedef void (*trp_seeded_program)(trp_testkit *kit, void *arg);
/* One line about a failure. */
typedef void (*trp_seeded_print)(void *arg, const char *line);

typedef struct trp_seeded_options {
    size_t size;
    const char *replay; /* printed before the seed of a failing run; NULL: the call to make */
    uint64_t seed;      /* of the first run; 0: 1 */
    uint32_t seeds;     /* runs, with seed, seed + 1, ... until one fails; 0: 1 */
    uint32_t zero;
    uint64_t turns_max;             /* 0: TRP_SEEDED_TURNS_DEFAULT */
    uint32_t stall_ms_max;          /* 0: TRP_SEEDED_STALL_MS_DEFAULT; TRP_OFF */
    uint32_t shrink_max;            /* 0: TRP_SEEDED_SHRINK_DEFAULT; TRP_OFF: do not shrink */
    const char *schedule;           /* run this schedule instead of drawing; NULL: draw */
    const trp_testkit_options *kit; /* clock, on_fail, fail and system are the run's; may be NULL.
                                       Without a log of its own the system's is dropped */
    trp_seeded_print print;         /* NULL: to stderr */
    void *print_arg;
} trp_seeded_options;
#define TRP_SEEDED_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(trp_seeded_options), NULL, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL                 \
    }

typedef struct trp_seeded_result {
    size_t size;         /* sizeof(trp_seeded_result), set by the caller */
    uint32_t runs;       /* seeds that were run */
    uint32_t failed;     /* 1: the last of them failed, and what follows is about it */
    uint64_t seed;       /* of the last run */
    uint64_t hash;       /* of its trace: decisions, turns and times */
    uint64_t turns;      /* of actors */
    uint32_t choices;    /* decisions that were made */
    uint32_t deviations; /* of them, those that were not the calm ones (first come, first served) */
    uint32_t shrunk;     /* the same after shrinking: length of the schedule */
    uint32_t shrink_runs;
    int line; /* where it failed */
    uint32_t zero;
    const char *file;                         /* static text of the program */
    char text[512];                           /* what failed */
    char schedule[TRP_SEEDED_SCHEDULE_BYTES]; /* shrunk; empty: it fails in the calm order too.
                                                 Cut at a blank when it is longer */
} trp_seeded_result;

/* Run program under seeds until one fails; shrink that one, and print its seed, how to replay it,
 * and its schedule.
 *
 * Ownership: borrows options; arg is passed through.
 * Errors:    TRP_EFAILED  a run failed; *ret_result (NULL: not wanted) tells how
 *            TRP_EINVAL   an option is out of range, or the schedule does not parse
 *            TRP_ENOMEM   out of memory
 * Thread:    any; may block until all runs have ended; never from a behaviour.
 * Source:    docs/architecture.md#the-simulator.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_seeded_run(trp_seeded_program program, void *arg,
                                              const trp_seeded_options *options,
                                              trp_seeded_result *ret_result);

/* Return a number of the run's random stream: the same for the same seed, also while it is shrunk.
 *
 * Errors:    none; in a kit that is not of a seeded run, the numbers of its world.
 * Thread:    owner (the creator; no lock inside).
 * Source:    docs/architecture.md#principles.  Since: 0.1 */
TRP_API uint64_t trp_seeded_random(trp_testkit *kit);

/* Mix a number into the hash of the run's trace: what the program saw, so that two runs that saw
 * different things have different hashes. Without effect in other kits.
 *
 * Errors:    none
 * Thread:    owner (the creator; no lock inside).
 * Source:    docs/architecture.md#the-simulator.  Since: 0.1 */
TRP_API void trp_seeded_note(trp_testkit *kit, uint64_t what);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_SEEDED_H */

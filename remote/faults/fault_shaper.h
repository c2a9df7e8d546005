/* fault_shaper.h - decides by a rule what a faulty network does with one frame: lose, repeat, delay
 * or reorder it. Pure.
 *
 * Why.     TCP loses and reorders nothing, so faults are injected one level higher, frame by frame:
 *          framing stays intact, and a fault can begin and end at any moment.
 * Must hold.
 *   fault-shaper-G1  Due times do not decrease, except that of a reordered frame.
 *   fault-shaper-G2  A rule that does nothing passes each frame once and at once.
 * Tests.   tests/unit/remote/faults_test.c
 * Sources. MNT-02, -07, -09
 */
#ifndef TRPI_REMOTE_FAULT_SHAPER_H
#define TRPI_REMOTE_FAULT_SHAPER_H

#include <stdbool.h>
#include <stdint.h>

#define TRPI_FAULT_RATE_PASS (-1)     /* no limit */
#define TRPI_FAULT_RATE_BLACKHOLE 0   /* nothing passes */
#define TRPI_FAULT_BUCKET_BYTES 1000  /* burst after an idle time (MNT-09) */
#define TRPI_FAULT_DELAY_MS_MAX 60000 /* of delay_ms, and of jitter_ms */

/* A rule for one direction of one peer. lose, repeat and reorder are probabilities, 0 to 1, drawn
 * independently for each frame. */
typedef struct trpi_fault_rule {
    int64_t bytes_per_s; /* or TRPI_FAULT_RATE_* */
    double lose, repeat, reorder;
    uint32_t delay_ms, jitter_ms; /* delay_ms to delay_ms + jitter_ms */
} trpi_fault_rule;
#define TRPI_FAULT_RULE_NONE                                                                       \
    {                                                                                              \
        TRPI_FAULT_RATE_PASS, 0, 0, 0, 0, 0                                                        \
    }

typedef struct trpi_fault_shaper { /* zeroed at first */
    uint64_t due_ns;               /* of the last frame that was not reordered */
    uint64_t free_ns;              /* when the bucket will be full again */
} trpi_fault_shaper;

typedef struct trpi_fault_verdict {
    uint32_t copies; /* 0: lost */
    uint64_t due_ns; /* when it arrives */
} trpi_fault_verdict;

bool trpi_fault_rule_is_valid(const trpi_fault_rule *rule);
bool trpi_fault_rule_is_none(const trpi_fault_rule *rule);
/* Decide what happens to one frame. rolls: four random numbers for this frame. whole: it may only
 * be delayed, not lost, repeated or reordered (for bytes that are no frame). */
trpi_fault_verdict trpi_fault_shaper_judge(trpi_fault_shaper *shaper, const trpi_fault_rule *rule,
                                           uint64_t now_ns, uint64_t bytes, bool whole,
                                           const uint64_t rolls[4]);

#endif

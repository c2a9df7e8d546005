/* fault_shaper.h - what becomes of one frame on a bad network. Pure.
 *
 * Why.     A byte stream below remoting loses and reorders nothing, so that faults are made one
 *          level higher, frame by frame; framing stays whole and a fault can begin and end at any
 *          moment.
 * Must hold.
 *   fault-shaper-G1  Due times do not decrease but for a frame that is reordered.
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
#define TRPI_FAULT_BUCKET_BYTES 1000  /* may pass at once after a rest (MNT-09) */
#define TRPI_FAULT_DELAY_MS_MAX 60000 /* of delay_ms, and of jitter_ms */

/* For one direction of one peer. Chances are 0 to 1, for each frame by itself. */
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
    uint64_t due_ns;               /* of the last frame that kept its place */
    uint64_t free_ns;              /* from when on the bucket would be full */
} trpi_fault_shaper;

typedef struct trpi_fault_verdict {
    uint32_t copies; /* 0: lost */
    uint64_t due_ns; /* when it shall arrive */
} trpi_fault_verdict;

bool trpi_fault_rule_is_valid(const trpi_fault_rule *rule);
bool trpi_fault_rule_is_none(const trpi_fault_rule *rule);
/* rolls: four numbers drawn for this frame. whole: not lost, repeated or reordered (what is no
 * frame), though it may wait. */
trpi_fault_verdict trpi_fault_shaper_judge(trpi_fault_shaper *shaper, const trpi_fault_rule *rule,
                                           uint64_t now_ns, uint64_t bytes, bool whole,
                                           const uint64_t rolls[4]);

#endif

/* troupe/failure_detector.h - decide from heartbeats whether another node is reachable.
 *
 * Three users have one for each node that they monitor: the cluster, death watch of other nodes,
 * and each connection. The settings cluster.failure-detector, remote.watch-failure-detector and
 * remote.transport-failure-detector say which one (implementation-class) and its parameters. Two
 * are built in: "phi-accrual", which learns the rhythm of the heartbeats, and "deadline", for which
 * a silence longer than heartbeat-interval and acceptable-heartbeat-pause is too long. An own one
 * is registered before the node starts: by the program, or by an extension (troupe/extension.h).
 */
#ifndef TROUPE_FAILURE_DETECTOR_H
#define TROUPE_FAILURE_DETECTOR_H

#include <troupe/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_FAILURE_DETECTORS_MAX 16         /* registered in one process */
#define TRP_FAILURE_DETECTOR_STATE_BYTES 128 /* of one detector; what needs more allocates it */

/* The settings of the section. */
typedef struct trp_failure_detector_options {
    size_t size;
    double threshold;
    uint32_t heartbeat_interval_ms, acceptable_pause_ms, min_std_deviation_ms, max_samples;
} trp_failure_detector_options;

/* One kind of detector. Times are milliseconds of a clock that never goes back, of any origin.
 * `state` is zeroed, aligned as malloc's, and may be moved to another address between two calls.
 * Every function is short, does not block, and calls nothing of the library; calls for one state
 * do not overlap. */
typedef struct trp_failure_detector {
    size_t size;
    const char *name;   /* of implementation-class; static */
    size_t state_bytes; /* at most TRP_FAILURE_DETECTOR_STATE_BYTES */
    /* Are these settings valid? TRP_EINVAL refuses the start of the node. NULL: all are. */
    trp_err (*check)(const trp_failure_detector_options *options);
    void (*init)(void *state, const trp_failure_detector_options *options);
    void (*fini)(void *state); /* NULL: nothing to do */
    /* The node was heard at now_ms; the first one begins the judgement. A node that never answers
     * is taken for heard once, when its first answer is due (FD-16); now_ms may lie ahead. */
    void (*heartbeat)(void *state, uint64_t now_ms);
    /* 0: its silence has been too long. Only asked after a first heartbeat. */
    int (*is_available)(void *state, uint64_t now_ms);
    /* How suspicious it is, to be shown: 0 none, threshold and above: not available. */
    double (*suspicion)(const void *state, uint64_t now_ms);
    /* This node itself did not run for pause_ms before now_ms: that was not the other's silence. */
    void (*own_pause)(void *state, uint64_t now_ms, uint64_t pause_ms);
} trp_failure_detector;

/* The two that are built in; registered already. */
TRP_API extern const trp_failure_detector trp_phi_accrual_failure_detector;
TRP_API extern const trp_failure_detector trp_deadline_failure_detector;

/* Make a detector known by its name, for good: implementation-class = NAME.
 *
 * Ownership: borrows detector for ever.
 * Errors:    TRP_EINVAL  a function or the name is missing, or state_bytes is too large
 *            TRP_EEXIST  another one has the name
 *            TRP_ELIMIT  TRP_FAILURE_DETECTORS_MAX are registered
 * Thread:    any; takes a lock for a moment.
 * Source:    FD-08.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_failure_detector_register(const trp_failure_detector *detector);

/* Find a detector by its name; NULL: there is none.
 *
 * Errors:    none
 * Thread:    any; takes a lock for a moment.
 * Source:    FD-08.  Since: 0.1 */
TRP_API const trp_failure_detector *trp_failure_detector_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_FAILURE_DETECTOR_H */

/* heartbeat_inner.h - the state of the heartbeats, shared by heartbeat.c, which writes it, and
 * heartbeat_check.c. */
#ifndef TRPI_CLUSTER_HEARTBEAT_INNER_H
#define TRPI_CLUSTER_HEARTBEAT_INNER_H

#include "base/detector.h"
#include "cluster/engine/heartbeat.h"

#define QUERIES_MAX 24u
#define NEVER UINT64_MAX

struct peer {
    trpi_ident *ident;
    trpi_detector detector;
    uint64_t first_asked_us; /* 0: not yet */
    uint64_t heard_us;       /* its last answer; 0: none */
    uint64_t round_trip_us;
    uint64_t heard_count;
    uint64_t asked_after_us; /* heartbeat-H7: the last question; 0: none */
    uint64_t reported_us;    /* heartbeat-H7: another observer heard it then; 0: none has */
    bool silent;
    bool late;     /* heartbeat-H5 */
    bool answers;  /* heard, and not late */
    bool extra;    /* asked because others are late or silent */
    bool unproved; /* heartbeat-H6 */
    bool chosen;   /* by the last choice */
};

struct trpi_heartbeat {
    trpi_heartbeat_options options;
    trpi_ident *self;
    struct peer *peers; /* by key */
    uint32_t peers_count;
    uint64_t ask_us, check_us; /* next */
    uint64_t asked_us;         /* what the last requests carry */
    uint64_t strain_us;        /* own slowness, decaying (heartbeat-H3) */
    uint64_t pause_us;         /* that the detector bears */
    uint64_t woke_us;          /* heartbeat-H6: since when it is waking; 0: it is not */
    trpi_gossip *view;         /* of the last choice; NULL: none yet */
    const trpi_ident **targets;
    uint32_t targets_count;
    uint64_t *unreachable;
    uint32_t unreachable_count;
    trpi_heartbeat_query questions[QUERIES_MAX];
    uint32_t questions_count;
    bool changed;
};

#endif

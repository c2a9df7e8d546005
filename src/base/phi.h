/* phi.h - the phi accrual failure detector: how suspicious is this silence? (FD-01 .. FD-11)
 *
 * Pure: it owns no clock. The caller says when a heartbeat arrived and asks for phi at a time. Used
 * by the cluster's heartbeats and by remote watch, each with its own options. Times are monotonic
 * milliseconds of any origin.
 */
#ifndef TRPI_BASE_PHI_H
#define TRPI_BASE_PHI_H

#include <stdbool.h>
#include <stdint.h>

#include <troupe/base.h>

#include "base/check.h"

#define TRPI_PHI_SAMPLES_LIMIT 100000u /* highest max_samples */
#define TRPI_PHI_HIGHEST 1000.0        /* phi of an endless silence; finite, so that it prints */

/* Defaults, which are the cluster's (FD-04 .. FD-07). */
#define TRPI_PHI_THRESHOLD_DEFAULT 8.0
#define TRPI_PHI_SAMPLES_DEFAULT 1000
#define TRPI_PHI_DEVIATION_MS_DEFAULT 100
#define TRPI_PHI_INTERVAL_S_DEFAULT 1
#define TRPI_PHI_PAUSE_S_DEFAULT 3

/* A zero field is its default. */
typedef struct trpi_phi_options {
    double threshold;     /* the peer is suspected from here on */
    uint32_t max_samples; /* intervals remembered */
    uint32_t min_std_deviation_ms;
    uint32_t heartbeat_interval_ms; /* expected, for the first estimate */
    uint32_t acceptable_pause_ms;   /* TRPI_PHI_NO_PAUSE: none */
    bool learn_pause;               /* simulation, developer builds: phi-P3 broken on purpose */
} trpi_phi_options;
#define TRPI_PHI_NO_PAUSE UINT32_MAX

typedef struct trpi_phi {
    trpi_phi_options options;
    uint32_t *intervals_ms; /* ring, grown on demand up to max_samples */
    uint32_t capacity, count, next;
    uint64_t sum_ms, sum_square_ms;
    uint64_t last_ms;   /* last heartbeat, moved forward by own pauses */
    bool monitoring;    /* a heartbeat has been seen, or was assumed */
    bool after_failure; /* the silence that is ending was a failure, or our own: not a sample */
} trpi_phi;

/* Errors: TRP_EINVAL threshold is negative or not a number, a count or time is out of range. */
trp_err trpi_phi_init(trpi_phi *phi, const trpi_phi_options *options);
void trpi_phi_fini(trpi_phi *phi); /* NULL and zeroed are fine */

/* A heartbeat arrived. Without memory for a larger window the oldest sample is dropped instead. */
void trpi_phi_heartbeat(trpi_phi *phi, uint64_t now_ms);
/* Begin to monitor although no heartbeat ever came (FD-16); no effect when monitoring. */
void trpi_phi_assume(trpi_phi *phi, uint64_t now_ms);
/* The observer itself did not run for pause_ms before now: that time was not the peer's silence. */
void trpi_phi_own_pause(trpi_phi *phi, uint64_t now_ms, uint64_t pause_ms);
/* Suspicion, 0 .. TRPI_PHI_HIGHEST; 0 before the first heartbeat (FD-09). Rises with now_ms. */
double trpi_phi_value(const trpi_phi *phi, uint64_t now_ms);
/* phi below the threshold. Not const: remembers a failure, so that its length is no sample. */
bool trpi_phi_is_available(trpi_phi *phi, uint64_t now_ms);
/* The bare formula (FD-03): silence against mean + pause and a deviation, all in milliseconds. */
double trpi_phi_compute(double silence_ms, double mean_ms, double std_deviation_ms);

/* Return NULL, or the invariant that is broken: phi-P4..P6. */
const char *trpi_phi_check(const trpi_phi *phi, trpi_check *check);

#endif

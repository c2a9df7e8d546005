/* detector.h - a failure detector of whatever kind, with its state, as a value that may be moved.
 *
 * Three owners keep one for each peer: cluster/engine/heartbeat.c, and remote/association/peer.c
 * two. The kinds are troupe/failure_detector.h.
 */
#ifndef TRPI_BASE_DETECTOR_H
#define TRPI_BASE_DETECTOR_H

#include <troupe/failure_detector.h>

#include "base/phi.h"

typedef struct trpi_detector {
    const trp_failure_detector *kind;
    bool monitoring; /* a heartbeat was seen, or assumed */
    union {
        uint64_t word;
        double number;
        void *pointer;
        unsigned char bytes[TRP_FAILURE_DETECTOR_STATE_BYTES];
    } state;
} trpi_detector;

/* kind NULL: phi accrual. A zero option is its default, whatever the kind. Takes no memory.
 * Errors: TRP_EINVAL (as trpi_phi_init, or the kind refuses). */
trp_err trpi_detector_init(trpi_detector *detector, const trp_failure_detector *kind,
                           const trpi_phi_options *options);
void trpi_detector_fini(trpi_detector *detector); /* NULL and zeroed are fine */
void trpi_detector_heartbeat(trpi_detector *detector, uint64_t now_ms);
/* Begin to monitor although no heartbeat ever came (FD-16); no effect when monitoring. */
void trpi_detector_assume(trpi_detector *detector, uint64_t now_ms);
void trpi_detector_own_pause(trpi_detector *detector, uint64_t now_ms, uint64_t pause_ms);
/* true, and 0, before the first heartbeat (FD-09). */
bool trpi_detector_is_available(trpi_detector *detector, uint64_t now_ms);
double trpi_detector_suspicion(const trpi_detector *detector, uint64_t now_ms);

/* Return NULL, or the invariant that is broken: of phi accrual those of phi.h, of other kinds
 * none. */
const char *trpi_detector_check(const trpi_detector *detector, trpi_check *check);

#endif

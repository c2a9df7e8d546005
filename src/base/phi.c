/* phi.c - the phi accrual failure detector.
 *
 * Why.     One silence means nothing without the rhythm before it. Phi is the number of nines by
 *          which a silence this long is improbable: phi 8 means one false alarm in 10^8 checks.
 * Shape.   A ring of heartbeat intervals with running sums (mean and variance in O(1)); a logistic
 *          approximation of the normal distribution, in two branches because one loses all
 *          precision where the probability is near 0 or 1.
 * Must hold.
 *   phi-P1  Phi never falls while the silence lasts.                                  (compute)
 *   phi-P2  A time that runs backwards is an interval of 0, never a negative one.     (heartbeat,
 *   value)
 *   phi-P3  A silence that was judged a failure, or in which the observer itself stood still, is
 *       not a sample: else one long pause makes the detector blind for the next max_samples
 *       heartbeats. (heartbeat)
 *   phi-P4  A heartbeat of a burst (within an eighth of the interval after the last one) is not a
 *       sample: else answers that were delayed together, or came twice, make the detector rash.
 *       (heartbeat)
 *   phi-P5  A silence beyond the acceptable pause that was not judged, as in a young window, counts
 *       only up to that length: else a few of them hide a crash for minutes.
 *   phi-P6  The sums are those of the samples in the ring.
 * Limits.  TRPI_PHI_SAMPLES_LIMIT samples; one interval counts at most an hour.
 * Tests.   tests/unit/cluster/phi_test.c
 * Sources. Hayashibara and others, "The phi accrual failure detector", 2004; FD-01 .. FD-11.
 */
#include "base/phi.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

#define PHI_FIRST_CAPACITY 16u
#define PHI_BURST_PART 8u
#ifdef TRPI_DEBUG
#define PHI_IS_BROKEN(phi) ((phi)->options.learn_pause)
#else
#define PHI_IS_BROKEN(phi) false
#endif
#define PHI_INTERVAL_MS_MAX 3600000u
#define PHI_RHYTHM_MAX 4u /* a rhythm up to so many times slower than configured is learned */

static void
phi_defaults(trpi_phi_options *o)
{
    if (o->threshold == 0.0) {
        o->threshold = TRPI_PHI_THRESHOLD_DEFAULT;
    }
    if (o->max_samples == 0) {
        o->max_samples = TRPI_PHI_SAMPLES_DEFAULT;
    }
    if (o->min_std_deviation_ms == 0) {
        o->min_std_deviation_ms = TRPI_PHI_DEVIATION_MS_DEFAULT;
    }
    if (o->heartbeat_interval_ms == 0) {
        o->heartbeat_interval_ms = TRPI_PHI_INTERVAL_S_DEFAULT * 1000u;
    }
    if (o->acceptable_pause_ms == 0) {
        o->acceptable_pause_ms = TRPI_PHI_PAUSE_S_DEFAULT * 1000u;
    } else if (o->acceptable_pause_ms == TRPI_PHI_NO_PAUSE) {
        o->acceptable_pause_ms = 0;
    }
}

trp_err
trpi_phi_init(trpi_phi *phi, const trpi_phi_options *options)
{
    trpi_assert(phi != NULL);
    trpi_phi_options o = { 0 };
    if (options != NULL) {
        o = *options;
    }
    phi_defaults(&o);
    if (!(o.threshold > 0.0) || o.threshold > TRPI_PHI_HIGHEST) {
        return TRP_EINVAL;
    }
    if (o.max_samples < 2 || o.max_samples > TRPI_PHI_SAMPLES_LIMIT ||
        o.heartbeat_interval_ms > PHI_INTERVAL_MS_MAX ||
        o.acceptable_pause_ms > PHI_INTERVAL_MS_MAX ||
        o.min_std_deviation_ms > PHI_INTERVAL_MS_MAX) {
        return TRP_EINVAL;
    }
    memset(phi, 0, sizeof *phi);
    phi->options = o;
    return TRP_OK;
}

void
trpi_phi_fini(trpi_phi *phi)
{
    if (phi != NULL) {
        trpi_free(phi->intervals_ms);
        memset(phi, 0, sizeof *phi);
    }
}

/* Grow the ring for one more sample. False: no memory, it stays as large as it is. */
static bool
phi_grow(trpi_phi *phi)
{
    uint32_t capacity = phi->capacity == 0 ? PHI_FIRST_CAPACITY : phi->capacity * 2;
    if (capacity > phi->options.max_samples) {
        capacity = phi->options.max_samples;
    }
    if (capacity <= phi->capacity) {
        return false;
    }
    uint32_t *grown = trpi_alloc((size_t)capacity * sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < phi->count; i++) { /* unroll: oldest first */
        grown[i] = phi->intervals_ms[(phi->next + phi->capacity - phi->count + i) % phi->capacity];
    }
    trpi_free(phi->intervals_ms);
    phi->intervals_ms = grown;
    phi->capacity = capacity;
    phi->next = phi->count % capacity;
    return true;
}

static void
phi_sample(trpi_phi *phi, uint64_t interval_ms)
{
    uint32_t value =
        interval_ms > PHI_INTERVAL_MS_MAX ? PHI_INTERVAL_MS_MAX : (uint32_t)interval_ms;
    if (phi->count == phi->capacity && !phi_grow(phi)) {
        if (phi->capacity == 0) {
            return; /* no memory at all: judged by the bootstrap estimate */
        }
        uint64_t oldest = phi->intervals_ms[phi->next];
        phi->sum_ms -= oldest;
        phi->sum_square_ms -= oldest * oldest;
        phi->count--;
    }
    phi->intervals_ms[phi->next] = value;
    phi->next = (phi->next + 1) % phi->capacity;
    phi->count++;
    phi->sum_ms += value;
    phi->sum_square_ms += (uint64_t)value * value;
    trpi_assert(phi->count <= phi->capacity);
}

/* FD-09: one heartbeat must be enough to judge, so the window begins with interval +-
 * interval/4. */
static void
phi_bootstrap(trpi_phi *phi, uint64_t now_ms)
{
    uint32_t interval = phi->options.heartbeat_interval_ms;
    uint32_t spread = interval / 4;
    phi_sample(phi, interval - spread);
    phi_sample(phi, (uint64_t)interval + spread);
    phi->monitoring = true;
    phi->last_ms = now_ms;
}

/* phi-P5 */
static uint64_t
phi_weight(const trpi_phi *phi, uint64_t interval_ms)
{
    uint64_t told_ms = phi->options.heartbeat_interval_ms;
    uint64_t forgiven_ms = told_ms + phi->options.acceptable_pause_ms;
    uint64_t most_ms = PHI_RHYTHM_MAX * told_ms;
    most_ms = most_ms > forgiven_ms ? most_ms : forgiven_ms;
    return interval_ms < most_ms ? interval_ms : most_ms;
}

void
trpi_phi_heartbeat(trpi_phi *phi, uint64_t now_ms)
{
    if (!phi->monitoring) {
        phi_bootstrap(phi, now_ms);
        return;
    }
    uint64_t interval = now_ms > phi->last_ms ? now_ms - phi->last_ms : 0; /* phi-P2 */
    bool judged = phi->after_failure || trpi_phi_value(phi, now_ms) >= phi->options.threshold;
    bool burst = interval < phi->options.heartbeat_interval_ms / PHI_BURST_PART; /* phi-P4 */
    if (PHI_IS_BROKEN(phi)) {
        phi_sample(phi, interval);
    } else if (!judged && !burst) { /* phi-P3 */
        phi_sample(phi, phi_weight(phi, interval));
    }
    phi->after_failure = false;
    if (now_ms > phi->last_ms) {
        phi->last_ms = now_ms;
    }
}

void
trpi_phi_assume(trpi_phi *phi, uint64_t now_ms)
{
    if (!phi->monitoring) {
        phi_bootstrap(phi, now_ms);
    }
}

void
trpi_phi_own_pause(trpi_phi *phi, uint64_t now_ms, uint64_t pause_ms)
{
    if (phi->monitoring && now_ms > phi->last_ms) {
        uint64_t silence = now_ms - phi->last_ms;
        phi->last_ms += pause_ms < silence ? pause_ms : silence;
        phi->after_failure = true; /* phi-P3: the rest of the silence is no sample */
    }
}

double
trpi_phi_compute(double silence_ms, double mean_ms, double std_deviation_ms)
{
    double y = (silence_ms - mean_ms) / std_deviation_ms;
    double e = exp(-y * (1.5976 + 0.070566 * y * y));
    double phi;
    if (silence_ms > mean_ms) {
        phi = e > 0.0 ? -log10(e / (1.0 + e)) : TRPI_PHI_HIGHEST;
    } else {
        phi = -log10(1.0 - 1.0 / (1.0 + e));
    }
    if (!(phi > 0.0)) {
        return 0.0; /* also -0.0 and what rounding makes of a probability of 1 */
    }
    return phi < TRPI_PHI_HIGHEST ? phi : TRPI_PHI_HIGHEST;
}

double
trpi_phi_value(const trpi_phi *phi, uint64_t now_ms)
{
    if (!phi->monitoring || now_ms <= phi->last_ms) {
        return 0.0;
    }
    double mean = (double)phi->options.heartbeat_interval_ms;
    double deviation = mean / 4.0;
    if (phi->count > 0) {
        mean = (double)phi->sum_ms / (double)phi->count;
        double variance = (double)phi->sum_square_ms / (double)phi->count - mean * mean;
        deviation = variance > 0.0 ? sqrt(variance) : 0.0;
    }
    if (deviation < (double)phi->options.min_std_deviation_ms) {
        deviation = (double)phi->options.min_std_deviation_ms;
    }
    return trpi_phi_compute((double)(now_ms - phi->last_ms),
                            mean + (double)phi->options.acceptable_pause_ms, deviation);
}

bool
trpi_phi_is_available(trpi_phi *phi, uint64_t now_ms)
{
    bool available = trpi_phi_value(phi, now_ms) < phi->options.threshold;
    if (!available) {
        phi->after_failure = true;
    }
    return available;
}

const char *
trpi_phi_check(const trpi_phi *phi, trpi_check *check)
{
    uint64_t sum = 0, sum_square = 0;
    uint64_t least_ms = phi->options.heartbeat_interval_ms / PHI_BURST_PART;
    if (phi->count > phi->capacity || phi->capacity > phi->options.max_samples) {
        return trpi_check_broken(check, "phi-P6: %u samples in a ring of %u, at most %u",
                                 phi->count, phi->capacity, phi->options.max_samples);
    }
    for (uint32_t i = 0; i < phi->count; i++) {
        uint64_t ms = phi->intervals_ms[(phi->next + phi->capacity - 1 - i) % phi->capacity];
        if (ms > PHI_INTERVAL_MS_MAX || phi_weight(phi, ms) != ms) {
            return trpi_check_broken(check, "phi-P5: a sample of %llu ms counts more than %llu ms",
                                     (unsigned long long)ms,
                                     (unsigned long long)phi_weight(phi, ms));
        }
        if (ms < least_ms) {
            return trpi_check_broken(check, "phi-P4: a sample of %llu ms is of a burst",
                                     (unsigned long long)ms);
        }
        sum += ms;
        sum_square += ms * ms;
    }
    if (sum != phi->sum_ms || sum_square != phi->sum_square_ms) {
        return trpi_check_broken(check, "phi-P6: the samples add up to %llu ms, the sum is %llu ms",
                                 (unsigned long long)sum, (unsigned long long)phi->sum_ms);
    }
    return NULL;
}

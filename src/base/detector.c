/* detector.c - the kinds of failure detectors: phi accrual, a plain deadline, and what a program
 * registers.
 *
 * Why.     A deadline is easy to compute and to test; phi learns a rhythm without configuration. A
 *          kind is three functions about one silence; the rooms above decide which peers are
 *          monitored, and what follows.
 * Tests.   tests/unit/cluster/detector_test.c
 */
#include "base/detector.h"

#include <pthread.h>
#include <string.h>

#include "base/assert.h"
#include "base/sized.h"

/* ---- phi accrual ----------------------------------------------------------------------------- */

static void
phi_init(void *state, const trp_failure_detector_options *o)
{
    trpi_phi_options options = { .threshold = o->threshold,
                                 .max_samples = o->max_samples,
                                 .min_std_deviation_ms = o->min_std_deviation_ms,
                                 .heartbeat_interval_ms = o->heartbeat_interval_ms,
                                 .acceptable_pause_ms = o->acceptable_pause_ms == 0
                                                            ? TRPI_PHI_NO_PAUSE
                                                            : o->acceptable_pause_ms };
    trp_err err = trpi_phi_init(state, &options);
    trpi_assert(err == TRP_OK); /* options are checked before */
}

static void
phi_fini(void *state)
{
    trpi_phi_fini(state);
}

static void
phi_heartbeat(void *state, uint64_t now_ms)
{
    trpi_phi_heartbeat(state, now_ms);
}

static int
phi_is_available(void *state, uint64_t now_ms)
{
    return trpi_phi_is_available(state, now_ms);
}

static double
phi_suspicion(const void *state, uint64_t now_ms)
{
    return trpi_phi_value(state, now_ms);
}

static void
phi_own_pause(void *state, uint64_t now_ms, uint64_t pause_ms)
{
    trpi_phi_own_pause(state, now_ms, pause_ms);
}

const trp_failure_detector trp_phi_accrual_failure_detector = {
    .size = sizeof(trp_failure_detector),
    .name = "phi-accrual",
    .state_bytes = sizeof(trpi_phi),
    .init = phi_init,
    .fini = phi_fini,
    .heartbeat = phi_heartbeat,
    .is_available = phi_is_available,
    .suspicion = phi_suspicion,
    .own_pause = phi_own_pause,
};

_Static_assert(sizeof(trpi_phi) <= TRP_FAILURE_DETECTOR_STATE_BYTES, "a phi fits");

/* ---- deadline -------------------------------------------------------------------------------- */

typedef struct deadline {
    uint64_t last_ms, allowed_ms;
    double threshold;
} deadline;

static void
deadline_init(void *state, const trp_failure_detector_options *o)
{
    deadline *d = state;
    d->allowed_ms = (uint64_t)o->heartbeat_interval_ms + o->acceptable_pause_ms;
    d->threshold = o->threshold;
}

static void
deadline_heartbeat(void *state, uint64_t now_ms)
{
    deadline *d = state;
    d->last_ms = now_ms > d->last_ms ? now_ms : d->last_ms;
}

static uint64_t
deadline_silence_ms(const deadline *d, uint64_t now_ms)
{
    return now_ms > d->last_ms ? now_ms - d->last_ms : 0;
}

static int
deadline_is_available(void *state, uint64_t now_ms)
{
    const deadline *d = state;
    return deadline_silence_ms(d, now_ms) < d->allowed_ms;
}

/* The part of the allowed time that has passed, so that the threshold is reached when all has. */
static double
deadline_suspicion(const void *state, uint64_t now_ms)
{
    const deadline *d = state;
    return d->threshold * (double)deadline_silence_ms(d, now_ms) / (double)d->allowed_ms;
}

static void
deadline_own_pause(void *state, uint64_t now_ms, uint64_t pause_ms)
{
    deadline *d = state;
    uint64_t silence_ms = deadline_silence_ms(d, now_ms);
    d->last_ms += pause_ms < silence_ms ? pause_ms : silence_ms;
}

const trp_failure_detector trp_deadline_failure_detector = {
    .size = sizeof(trp_failure_detector),
    .name = "deadline",
    .state_bytes = sizeof(deadline),
    .init = deadline_init,
    .heartbeat = deadline_heartbeat,
    .is_available = deadline_is_available,
    .suspicion = deadline_suspicion,
    .own_pause = deadline_own_pause,
};

/* ---- by name --------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const trp_failure_detector *registered[TRP_FAILURE_DETECTORS_MAX] = {
    &trp_phi_accrual_failure_detector, &trp_deadline_failure_detector
};
static uint32_t registered_count = 2; /* only grows; with lock */

static const trp_failure_detector *
kind_find(const char *name)
{
    for (uint32_t i = 0; i < registered_count; i++) {
        if (strcmp(registered[i]->name, name) == 0) {
            return registered[i];
        }
    }
    return NULL;
}

const trp_failure_detector *
trp_failure_detector_find(const char *name)
{
    pthread_mutex_lock(&lock);
    const trp_failure_detector *found = name == NULL ? NULL : kind_find(name);
    pthread_mutex_unlock(&lock);
    return found;
}

trp_err
trp_failure_detector_register(const trp_failure_detector *kind)
{
    if (kind == NULL || !TRPI_SIZED_FITS(kind, own_pause) || kind->name == NULL ||
        kind->name[0] == '\0' || kind->state_bytes > TRP_FAILURE_DETECTOR_STATE_BYTES ||
        kind->init == NULL || kind->heartbeat == NULL || kind->is_available == NULL ||
        kind->suspicion == NULL || kind->own_pause == NULL) {
        return TRP_EINVAL;
    }
    trp_err err = TRP_OK;
    pthread_mutex_lock(&lock);
    const trp_failure_detector *same = kind_find(kind->name);
    if (same != NULL) {
        err = same == kind ? TRP_OK : TRP_EEXIST;
    } else if (registered_count == TRP_FAILURE_DETECTORS_MAX) {
        err = TRP_ELIMIT;
    } else {
        registered[registered_count++] = kind;
    }
    pthread_mutex_unlock(&lock);
    return err;
}

/* ---- one of them ----------------------------------------------------------------------------- */

trp_err
trpi_detector_init(trpi_detector *detector, const trp_failure_detector *kind,
                   const trpi_phi_options *options)
{
    trpi_phi filled; /* its options with their defaults, checked */
    trp_err err = trpi_phi_init(&filled, options);
    if (err != TRP_OK) {
        return err;
    }
    memset(detector, 0, sizeof *detector);
    detector->kind = kind == NULL ? &trp_phi_accrual_failure_detector : kind;
    if (detector->kind == &trp_phi_accrual_failure_detector) {
        memcpy(detector->state.bytes, &filled, sizeof filled);
        return TRP_OK;
    }
    const trp_failure_detector_options given = {
        .size = sizeof given,
        .threshold = filled.options.threshold,
        .heartbeat_interval_ms = filled.options.heartbeat_interval_ms,
        .acceptable_pause_ms = filled.options.acceptable_pause_ms,
        .min_std_deviation_ms = filled.options.min_std_deviation_ms,
        .max_samples = filled.options.max_samples,
    };
    err = detector->kind->check == NULL ? TRP_OK : detector->kind->check(&given);
    if (err != TRP_OK) {
        memset(detector, 0, sizeof *detector);
        return TRP_EINVAL;
    }
    detector->kind->init(detector->state.bytes, &given);
    return TRP_OK;
}

void
trpi_detector_fini(trpi_detector *detector)
{
    if (detector != NULL && detector->kind != NULL) {
        if (detector->kind->fini != NULL) {
            detector->kind->fini(detector->state.bytes);
        }
        memset(detector, 0, sizeof *detector);
    }
}

void
trpi_detector_heartbeat(trpi_detector *detector, uint64_t now_ms)
{
    detector->kind->heartbeat(detector->state.bytes, now_ms);
    detector->monitoring = true;
}

void
trpi_detector_assume(trpi_detector *detector, uint64_t now_ms)
{
    if (!detector->monitoring) {
        trpi_detector_heartbeat(detector, now_ms);
    }
}

void
trpi_detector_own_pause(trpi_detector *detector, uint64_t now_ms, uint64_t pause_ms)
{
    if (detector->monitoring) {
        detector->kind->own_pause(detector->state.bytes, now_ms, pause_ms);
    }
}

bool
trpi_detector_is_available(trpi_detector *detector, uint64_t now_ms)
{
    return !detector->monitoring ||
           detector->kind->is_available(detector->state.bytes, now_ms) != 0;
}

double
trpi_detector_suspicion(const trpi_detector *detector, uint64_t now_ms)
{
    return detector->monitoring ? detector->kind->suspicion(detector->state.bytes, now_ms) : 0.0;
}

const char *
trpi_detector_check(const trpi_detector *detector, trpi_check *check)
{
    return detector->kind == &trp_phi_accrual_failure_detector
               ? trpi_phi_check((const trpi_phi *)(const void *)&detector->state, check)
               : NULL;
}

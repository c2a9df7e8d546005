/* Failure detectors of several kinds behind one interface (FD-08, -21, -23). */
#include <string.h>

#include "base/detector.h"
#include "tests/unit/unit.h"

/* FD-23 */
static void
a_deadline_is_interval_and_pause(void)
{
    trpi_phi_options options = { .heartbeat_interval_ms = 200, .acceptable_pause_ms = 800 };
    trpi_detector d = { .kind = NULL };
    UNIT_EQUAL(trpi_detector_init(&d, &trp_deadline_failure_detector, &options), TRP_OK);
    UNIT_TRUE(trpi_detector_is_available(&d, 1000000)); /* FD-09: never heard */
    UNIT_TRUE(trpi_detector_suspicion(&d, 1000000) == 0.0);
    trpi_detector_heartbeat(&d, 5000);
    UNIT_TRUE(trpi_detector_is_available(&d, 4000)); /* a time that lies behind */
    UNIT_TRUE(trpi_detector_is_available(&d, 5999));
    UNIT_TRUE(trpi_detector_suspicion(&d, 5500) == 4.0); /* half of the time: half of 8.0 */
    UNIT_FALSE(trpi_detector_is_available(&d, 6000));
    UNIT_TRUE(trpi_detector_suspicion(&d, 6000) >= 8.0);
    trpi_detector_heartbeat(&d, 7000);
    UNIT_TRUE(trpi_detector_is_available(&d, 7999));
    trpi_detector_own_pause(&d, 17500, 10000);
    UNIT_TRUE(trpi_detector_is_available(&d, 17999));
    UNIT_FALSE(trpi_detector_is_available(&d, 18000));
    trpi_detector_own_pause(&d, 19000, 60000); /* never ahead of the time */
    UNIT_FALSE(trpi_detector_is_available(&d, 20000));
    trpi_detector_fini(&d);
    trpi_detector_fini(&d);
    trpi_detector_fini(NULL);
}

static void
without_a_kind_it_is_phi_accrual(void)
{
    trpi_detector d;
    trpi_phi phi;
    UNIT_EQUAL(trpi_detector_init(&d, NULL, NULL), TRP_OK);
    UNIT_EQUAL(trpi_phi_init(&phi, NULL), TRP_OK);
    trpi_detector_assume(&d, 1000);
    trpi_detector_assume(&d, 9000); /* no effect */
    trpi_phi_heartbeat(&phi, 1000);
    for (uint64_t now = 2000; now < 30000; now += 1000) {
        trpi_detector_heartbeat(&d, now);
        trpi_phi_heartbeat(&phi, now);
        UNIT_TRUE(trpi_detector_suspicion(&d, now + 4200) == trpi_phi_value(&phi, now + 4200));
    }
    trpi_detector moved = d; /* a value */
    UNIT_FALSE(trpi_detector_is_available(&moved, 40000));
    trpi_detector_fini(&moved);
    trpi_phi_fini(&phi);
    trpi_phi_options wrong = { .threshold = -1.0 };
    UNIT_EQUAL(trpi_detector_init(&d, NULL, &wrong), TRP_EINVAL);
    UNIT_EQUAL(trpi_detector_init(&d, &trp_deadline_failure_detector, &wrong), TRP_EINVAL);
}

/* ---- one that a program brings --------------------------------------------------------------- */

typedef struct stubborn { /* holds all available until it was asked three times */
    uint32_t asked;
    uint32_t interval_ms;
} stubborn;

static trp_err
stubborn_check(const trp_failure_detector_options *options)
{
    return options->threshold > 50.0 ? TRP_EINVAL : TRP_OK;
}

static void
stubborn_init(void *state, const trp_failure_detector_options *options)
{
    UNIT_EQUAL(options->size, sizeof *options);
    ((stubborn *)state)->interval_ms = options->heartbeat_interval_ms;
}

static void
stubborn_heartbeat(void *state, uint64_t now_ms)
{
    (void)now_ms;
    ((stubborn *)state)->asked = 0;
}

static int
stubborn_is_available(void *state, uint64_t now_ms)
{
    (void)now_ms;
    return ++((stubborn *)state)->asked < 3;
}

static double
stubborn_suspicion(const void *state, uint64_t now_ms)
{
    (void)now_ms;
    return ((const stubborn *)state)->asked;
}

static void
stubborn_own_pause(void *state, uint64_t now_ms, uint64_t pause_ms)
{
    (void)state;
    (void)now_ms;
    (void)pause_ms;
}

static const trp_failure_detector stubborn_kind = { .size = sizeof(trp_failure_detector),
                                                    .name = "stubborn",
                                                    .state_bytes = sizeof(stubborn),
                                                    .check = stubborn_check,
                                                    .init = stubborn_init,
                                                    .heartbeat = stubborn_heartbeat,
                                                    .is_available = stubborn_is_available,
                                                    .suspicion = stubborn_suspicion,
                                                    .own_pause = stubborn_own_pause };

/* FD-08 */
static void
a_detector_of_the_program_is_found_by_its_name_and_judges(void)
{
    trpi_phi_options options = { .heartbeat_interval_ms = 700 };
    trpi_detector d;
    UNIT_TRUE(trp_failure_detector_find("stubborn") == NULL);
    UNIT_EQUAL(trp_failure_detector_register(&stubborn_kind), TRP_OK);
    UNIT_EQUAL(trp_failure_detector_register(&stubborn_kind), TRP_OK); /* the same one */
    UNIT_TRUE(trp_failure_detector_find("stubborn") == &stubborn_kind);
    UNIT_EQUAL(trpi_detector_init(&d, &stubborn_kind, &options), TRP_OK);
    UNIT_EQUAL(((stubborn *)(void *)d.state.bytes)->interval_ms, 700);
    trpi_detector_heartbeat(&d, 1);
    UNIT_TRUE(trpi_detector_is_available(&d, 1));
    UNIT_TRUE(trpi_detector_is_available(&d, 1));
    UNIT_FALSE(trpi_detector_is_available(&d, 1));
    trpi_detector_fini(&d);
    options.threshold = 51.0;
    UNIT_EQUAL(trpi_detector_init(&d, &stubborn_kind, &options), TRP_EINVAL);
}

static void
what_is_no_detector_or_one_too_many_is_refused(void)
{
    static trp_failure_detector kinds[TRP_FAILURE_DETECTORS_MAX];
    static char names[TRP_FAILURE_DETECTORS_MAX][16];
    trp_failure_detector wrong = stubborn_kind;
    UNIT_EQUAL(trp_failure_detector_register(NULL), TRP_EINVAL);
    wrong.own_pause = NULL;
    UNIT_EQUAL(trp_failure_detector_register(&wrong), TRP_EINVAL);
    wrong = stubborn_kind;
    wrong.state_bytes = TRP_FAILURE_DETECTOR_STATE_BYTES + 1;
    UNIT_EQUAL(trp_failure_detector_register(&wrong), TRP_EINVAL);
    wrong = stubborn_kind;
    wrong.name = "deadline";
    UNIT_EQUAL(trp_failure_detector_register(&wrong), TRP_EEXIST);
    trp_err err = trp_failure_detector_register(&stubborn_kind); /* an earlier test may have */
    UNIT_TRUE(err == TRP_OK || err == TRP_EEXIST);
    uint32_t taken = 0;
    for (uint32_t i = 0; i < TRP_FAILURE_DETECTORS_MAX; i++) {
        kinds[i] = stubborn_kind;
        (void)snprintf(names[i], sizeof names[i], "own-%u", i);
        kinds[i].name = names[i];
        kinds[i].state_bytes = TRP_FAILURE_DETECTOR_STATE_BYTES;
        err = trp_failure_detector_register(&kinds[i]);
        UNIT_TRUE(err == TRP_OK || err == TRP_ELIMIT);
        taken += err == TRP_OK ? 1 : 0;
    }
    UNIT_EQUAL(taken, TRP_FAILURE_DETECTORS_MAX - 3); /* the two built in, and stubborn */
}

UNIT_BEGIN("detector")
UNIT(a_deadline_is_interval_and_pause)
UNIT(without_a_kind_it_is_phi_accrual)
UNIT(a_detector_of_the_program_is_found_by_its_name_and_judges)
UNIT(what_is_no_detector_or_one_too_many_is_refused)
UNIT_END

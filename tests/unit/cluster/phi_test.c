/* The phi accrual detector (FD-01 .. FD-11). */
#include "base/phi.h"
#include "tests/unit/unit.h"

static trpi_phi
steady_phi(uint64_t beats)
{
    trpi_phi phi;
    UNIT_REQUIRE(trpi_phi_init(&phi, NULL) == TRP_OK);
    for (uint64_t i = 0; i < beats; i++) {
        trpi_phi_heartbeat(&phi, 1000 + i * 1000);
    }
    return phi;
}

/* FD-09 */
static void
without_a_heartbeat_nothing_is_suspicious(void)
{
    trpi_phi phi = steady_phi(0);
    UNIT_TRUE(trpi_phi_value(&phi, 1000000) == 0.0);
    UNIT_TRUE(trpi_phi_is_available(&phi, 1000000));
    trpi_phi_fini(&phi);
}

/* FD-09, FD-21: one heartbeat is enough to become suspicious */
static void
one_heartbeat_is_enough_to_judge(void)
{
    trpi_phi phi = steady_phi(1);
    UNIT_TRUE(trpi_phi_is_available(&phi, 1000 + 4000));
    UNIT_FALSE(trpi_phi_is_available(&phi, 1000 + 5700));
    trpi_phi_fini(&phi);
}

/* FD-04, FD-05, FD-07, GAP-12: 1 s + 3 s pause + 5.2 x 100 ms */
static void
after_steady_beating_phi_crosses_eight_at_four_and_a_half_seconds(void)
{
    trpi_phi phi = steady_phi(1200); /* the first estimate has left the window */
    uint64_t last = 1000 + 1199 * 1000;
    UNIT_TRUE(trpi_phi_value(&phi, last + 4400) < 8.0);
    UNIT_TRUE(trpi_phi_value(&phi, last + 4600) >= 8.0);
    trpi_phi_fini(&phi);
}

/* When a detector that has heard 1,200 beats gives a silence up, in steps of 100 ms. */
static uint64_t
given_up_after_ms(const trpi_phi_options *options)
{
    trpi_phi phi;
    UNIT_REQUIRE(trpi_phi_init(&phi, options) == TRP_OK);
    for (uint64_t i = 0; i < 1200; i++) {
        trpi_phi_heartbeat(&phi, 1000 + i * 1000);
    }
    uint64_t last_ms = 1000 + 1199 * 1000, after_ms = 0;
    while (trpi_phi_is_available(&phi, last_ms + after_ms) && after_ms < 60000) {
        after_ms += 100;
    }
    trpi_phi_fini(&phi);
    return after_ms;
}

/* FD-04, FD-05: a higher threshold is slower, a longer pause forgives as much more */
static void
threshold_and_pause_are_what_was_set(void)
{
    trpi_phi_options options = { .threshold = 8.0 };
    uint64_t usual_ms = given_up_after_ms(&options);
    UNIT_TRUE(usual_ms > 4000 && usual_ms < 5000);
    options.threshold = 1.0;
    UNIT_TRUE(given_up_after_ms(&options) < usual_ms);
    options.threshold = 12.0;
    uint64_t careful_ms = given_up_after_ms(&options);
    UNIT_TRUE(careful_ms > usual_ms);
    options.acceptable_pause_ms = 6000; /* 3 s more than the default */
    UNIT_EQUAL(given_up_after_ms(&options), careful_ms + 3000);
    options.acceptable_pause_ms = TRPI_PHI_NO_PAUSE;
    UNIT_EQUAL(given_up_after_ms(&options), careful_ms - 3000);
}

/* FD-02, FD-03, FD-11, FD-01 */
static void
phi_never_falls_with_time_and_rises_with_a_steeper_curve(void)
{
    double before = 0.0;
    for (double t = 0.0; t < 20000.0; t += 5.0) {
        double phi = trpi_phi_compute(t, 4000.0, 100.0);
        UNIT_TRUE(phi >= before);
        UNIT_TRUE(phi <= TRPI_PHI_HIGHEST);
        before = phi;
    }
    UNIT_TRUE(trpi_phi_compute(4500.0, 4000.0, 100.0) > trpi_phi_compute(4500.0, 4000.0, 200.0));
    double middle = trpi_phi_compute(4000.0, 4000.0, 100.0);
    UNIT_TRUE(middle > 0.301 && middle < 0.302); /* -log10(1/2) */
}

/* a defect of the anchor: one long pause made the detector blind */
static void
a_long_failure_does_not_make_the_detector_blind(void)
{
    trpi_phi phi = steady_phi(100);
    uint64_t last = 1000 + 99 * 1000;
    UNIT_FALSE(trpi_phi_is_available(&phi, last + 300000));
    trpi_phi_heartbeat(&phi, last + 300000);
    UNIT_TRUE(trpi_phi_is_available(&phi, last + 300500));
    UNIT_FALSE(trpi_phi_is_available(&phi, last + 300000 + 7000));
    trpi_phi_fini(&phi);
}

/* Seed 1652 of `troupe sim --nodes 2 --faults swarm`: of three samples one was a pause, so the
 * next, longer one was not too long, and half a minute of beating did not outweigh the two. */
static void
pauses_in_a_young_window_hide_no_crash_later(void)
{
    trpi_phi phi = steady_phi(2);
    uint64_t last = 2000;
    static const uint32_t pauses_ms[] = { 4900, 9700, 9700 };
    for (size_t i = 0; i < 3; i++) {
        last += pauses_ms[i];
        trpi_phi_heartbeat(&phi, last);
    }
    for (uint32_t i = 0; i < 30; i++) {
        last += 1000;
        trpi_phi_heartbeat(&phi, last);
    }
    UNIT_TRUE(trpi_phi_is_available(&phi, last + 4000));
    UNIT_FALSE(trpi_phi_is_available(&phi, last + 12000));
    trpi_phi_fini(&phi);
}

/* A rhythm that is slower than told is learned, up to four times, with any pause. */
static void
a_slower_rhythm_is_learned(void)
{
    trpi_phi_options options = { .acceptable_pause_ms = TRPI_PHI_NO_PAUSE };
    trpi_phi phi;
    UNIT_REQUIRE(trpi_phi_init(&phi, &options) == TRP_OK);
    uint64_t last = 1000;
    for (uint32_t interval_ms = 1000; interval_ms <= 3900; interval_ms += 100) {
        for (uint32_t i = 0; i < 20; i++) {
            last += interval_ms;
            UNIT_TRUE(trpi_phi_is_available(&phi, last));
            trpi_phi_heartbeat(&phi, last);
        }
    }
    trpi_phi_fini(&phi);
}

static void
a_clock_that_steps_back_changes_nothing(void)
{
    trpi_phi phi = steady_phi(10);
    trpi_phi_heartbeat(&phi, 5);
    UNIT_TRUE(trpi_phi_value(&phi, 5) == 0.0);
    UNIT_TRUE(trpi_phi_is_available(&phi, 11000));
    trpi_phi_fini(&phi);
}

static void
an_own_pause_is_not_the_silence_of_the_other(void)
{
    trpi_phi phi = steady_phi(100);
    uint64_t last = 1000 + 99 * 1000;
    trpi_phi_own_pause(&phi, last + 60000, 60000);
    UNIT_TRUE(trpi_phi_is_available(&phi, last + 60000));
    UNIT_FALSE(trpi_phi_is_available(&phi, last + 60000 + 6000));
    trpi_phi_fini(&phi);
}

/* FD-07: the window is a window */
static void
the_window_forgets_what_is_older_than_max_samples(void)
{
    trpi_phi_options options = { .max_samples = 20 };
    trpi_phi phi;
    UNIT_REQUIRE(trpi_phi_init(&phi, &options) == TRP_OK);
    uint64_t now = 0;
    for (uint32_t i = 0; i < 100; i++) {
        trpi_phi_heartbeat(&phi, now += 1000);
    }
    for (uint32_t i = 0; i < 20; i++) {
        trpi_phi_heartbeat(&phi, now += 500);
    }
    UNIT_EQUAL(phi.count, 20);
    UNIT_EQUAL(phi.sum_ms, 20 * 500);
    trpi_phi_fini(&phi);
}

/* FD-10 */
static void
options_are_validated_at_their_limits(void)
{
    trpi_phi phi;
    trpi_phi_options options = { .threshold = -1.0 };
    UNIT_EQUAL(trpi_phi_init(&phi, &options), TRP_EINVAL);
    options = (trpi_phi_options){ .max_samples = 1 };
    UNIT_EQUAL(trpi_phi_init(&phi, &options), TRP_EINVAL);
    options.max_samples = TRPI_PHI_SAMPLES_LIMIT;
    UNIT_EQUAL(trpi_phi_init(&phi, &options), TRP_OK);
    options.max_samples++;
    UNIT_EQUAL(trpi_phi_init(&phi, &options), TRP_EINVAL);
    options = (trpi_phi_options){ .acceptable_pause_ms = TRPI_PHI_NO_PAUSE };
    UNIT_EQUAL(trpi_phi_init(&phi, &options), TRP_OK);
    UNIT_EQUAL(phi.options.acceptable_pause_ms, 0);
}

/* FD-02, FD-03: the formula, computed with 60 digits elsewhere. Below the mean and above it */
static void
phi_is_the_formula_to_a_millionth(void)
{
    static const struct {
        double silence_ms, mean_ms, deviation_ms, phi;
    } rows[] = {
        { 500, 4000, 100, 0 },
        { 3700, 4000, 100, 0.000535274549457 },
        { 3999, 4000, 100, 0.297574691757 },
        { 4000, 4000, 100, 0.301029995664 },
        { 4001, 4000, 100, 0.304513011046 },
        { 4300, 4000, 100, 2.90947532648 },
        { 4500, 4000, 100, 7.29994739446 },
        { 4900, 4000, 100, 28.5857031735 },
        { 5000, 4200, 350, 1.95668976013 },
        { 1000, 1000, 250, 0.301029995664 },
        { 0, 1000, 250, 7.96331160884e-06 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double got = trpi_phi_compute(rows[i].silence_ms, rows[i].mean_ms, rows[i].deviation_ms);
        double apart = got > rows[i].phi ? got - rows[i].phi : rows[i].phi - got;
        UNIT_TRUE(apart < 1e-6);
    }
}

/* Answers that were held up come together; some come twice. */
static void
a_burst_does_not_skew_the_window(void)
{
    trpi_phi phi = steady_phi(20);
    uint64_t now = 1000 + 19 * 1000;
    for (uint32_t i = 0; i < 2000; i++) {
        trpi_phi_heartbeat(&phi, now += 1);
    }
    UNIT_TRUE(trpi_phi_is_available(&phi, now + 4400));
    UNIT_TRUE(trpi_phi_value(&phi, now + 4400) > 1.0);
    trpi_phi_fini(&phi);
}

/* phi-P3 */
static void
an_interval_with_an_own_pause_in_it_is_no_sample(void)
{
    trpi_phi phi = steady_phi(20);
    uint64_t now = 1000 + 19 * 1000;
    uint32_t count = phi.count;
    uint64_t sum_ms = phi.sum_ms;
    now += 3600;
    trpi_phi_own_pause(&phi, now, 3000);
    trpi_phi_heartbeat(&phi, now += 400);
    UNIT_EQUAL(phi.count, count);
    UNIT_EQUAL(phi.sum_ms, sum_ms);
    trpi_phi_heartbeat(&phi, now + 1000);
    UNIT_EQUAL(phi.count, count + 1);
    trpi_phi_fini(&phi);
}

UNIT_BEGIN("phi")
UNIT(without_a_heartbeat_nothing_is_suspicious)
UNIT(one_heartbeat_is_enough_to_judge)
UNIT(after_steady_beating_phi_crosses_eight_at_four_and_a_half_seconds)
UNIT(threshold_and_pause_are_what_was_set)
UNIT(phi_never_falls_with_time_and_rises_with_a_steeper_curve)
UNIT(phi_is_the_formula_to_a_millionth)
UNIT(a_burst_does_not_skew_the_window)
UNIT(an_interval_with_an_own_pause_in_it_is_no_sample)
UNIT(a_long_failure_does_not_make_the_detector_blind)
UNIT(pauses_in_a_young_window_hide_no_crash_later)
UNIT(a_slower_rhythm_is_learned)
UNIT(a_clock_that_steps_back_changes_nothing)
UNIT(an_own_pause_is_not_the_silence_of_the_other)
UNIT(the_window_forgets_what_is_older_than_max_samples)
UNIT(options_are_validated_at_their_limits)
UNIT_END

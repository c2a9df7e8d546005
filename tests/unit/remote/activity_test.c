/* activity_test.c - when a PING is due beside the heartbeats of the failure detector. Pure.
 */
#include "remote/association/activity.h"

#include "tests/unit/unit.h"

enum { GAP_MS = 1000 };

/* An association that began at 10 s, and whose first PING was sent then. */
static trpi_activity
begun(void)
{
    static const trpi_remote remote = { .options = { .link_heartbeat_ms = GAP_MS,
                                                     .link_pause_ms = GAP_MS + 2 * TRPI_TICK_MS } };
    trpi_activity activity = { .active = true };
    trpi_activity_begin(&activity, &remote, 10000);
    return activity;
}

static bool
is_due(const trpi_activity *activity, uint64_t now_ms)
{
    return trpi_activity_ping_is_due(activity, now_ms, GAP_MS, false);
}

static void
without_heartbeats_a_ping_is_due_after_its_gap(void)
{
    trpi_activity activity = begun();
    UNIT_TRUE(!is_due(&activity, 10000 + GAP_MS - 1));
    UNIT_TRUE(is_due(&activity, 10000 + GAP_MS));
    trpi_detector_fini(&activity.detector);
}

/* FD-23: the next heartbeat is sent at its time, and answered before the next tick. */
static void
an_answered_heartbeat_puts_the_ping_off_until_the_next_one_is_late(void)
{
    trpi_activity activity = begun();
    for (uint64_t ms = 10400; ms < 20400; ms += GAP_MS) {
        trpi_activity_beat_answered(&activity, ms, ms + 3, 3000);
        UNIT_TRUE(!is_due(&activity, ms + GAP_MS));
        UNIT_TRUE(!is_due(&activity, ms + GAP_MS + TRPI_TICK_MS - 1));
        UNIT_TRUE(is_due(&activity, ms + GAP_MS + TRPI_TICK_MS));
    }
    UNIT_EQUAL(trpi_activity_round_trip_us(&activity), 3000);
    UNIT_EQUAL(trpi_activity_heard_ms(&activity), 19403);
    trpi_detector_fini(&activity.detector);
}

/* A heartbeat says less than the PONG that somebody waits for. */
static void
a_ping_that_is_wanted_for_itself_is_not_put_off(void)
{
    trpi_activity activity = begun();
    trpi_activity_beat_answered(&activity, 10990, 10995, 5000);
    UNIT_TRUE(!trpi_activity_ping_is_due(&activity, 10999, GAP_MS, true));
    UNIT_TRUE(trpi_activity_ping_is_due(&activity, 11000, GAP_MS, true));
    trpi_detector_fini(&activity.detector);
}

/* After a PING the next one comes in its own gap, until a later heartbeat is answered. */
static void
answers_to_heartbeats_before_a_ping_do_not_answer_it(void)
{
    trpi_activity activity = begun();
    trpi_activity_beat_answered(&activity, 10500, 10510, 10000);
    activity.pinged_ms = 12000; /* as trpi_peer_ping() */
    activity.unanswered = true;
    trpi_activity_beat_answered(&activity, 11500, 12100, 600000);
    UNIT_TRUE(trpi_activity_is_in_question(&activity));
    UNIT_TRUE(!is_due(&activity, 12000 + GAP_MS - 1));
    UNIT_TRUE(is_due(&activity, 12000 + GAP_MS));
    trpi_activity_beat_answered(&activity, 12500, 12510, 10000);
    trpi_activity_answered(&activity, 11999, 511000); /* a late PONG changes nothing */
    UNIT_TRUE(!is_due(&activity, 12500 + GAP_MS));
    /* one that overtakes another does not take it back */
    trpi_activity_beat_answered(&activity, 12400, 12600, 200000);
    UNIT_TRUE(!is_due(&activity, 12500 + GAP_MS + TRPI_TICK_MS - 1));
    UNIT_TRUE(is_due(&activity, 12500 + GAP_MS + TRPI_TICK_MS));
    trpi_detector_fini(&activity.detector);
}

/* Of the time in which nothing was asked the peer is not silent (tick-T3). */
static void
an_answer_after_a_rest_is_no_end_of_a_silence(void)
{
    trpi_activity activity = begun();
    trpi_activity_rest(&activity);
    trpi_activity_beat_answered(&activity, 70000, 70005, 5000);
    UNIT_TRUE(!trpi_activity_is_quiet(&activity));
    activity.pinged_ms = 71250;
    activity.unanswered = true;
    UNIT_TRUE(!trpi_activity_is_silent(&activity, 72000));
    UNIT_TRUE(trpi_activity_is_silent(&activity, 80000));
    trpi_detector_fini(&activity.detector);
}

/* A pause of the detector that two ticks and the gap between PINGs do not exceed. */
static void
heartbeats_count_if_pings_are_often_enough_for_their_rhythm(void)
{
    trpi_remote_options options = { .link_heartbeat_ms = GAP_MS,
                                    .link_pause_ms = GAP_MS + 2 * TRPI_TICK_MS };
    UNIT_TRUE(trpi_activity_bears_beats(&options));
    options.link_heartbeat_ms++;
    UNIT_TRUE(!trpi_activity_bears_beats(&options));
    options.link_pause_ms = TRPI_PHI_NO_PAUSE;
    UNIT_TRUE(!trpi_activity_bears_beats(&options));
    /* after a hundred of a quicker rhythm the PONGs are in time */
    trpi_activity activity = begun();
    uint64_t ms = 10000;
    for (int i = 0; i < 100; i++) {
        ms += 300;
        trpi_activity_beat_answered(&activity, ms, ms, 0);
    }
    for (int i = 0; i < 3; i++) {
        activity.unanswered = true;
        ms += i == 0 ? GAP_MS + TRPI_TICK_MS : GAP_MS;
        UNIT_TRUE(!trpi_activity_is_silent(&activity, ms + TRPI_TICK_MS));
        trpi_activity_heard(&activity, ms + TRPI_TICK_MS);
    }
    trpi_detector_fini(&activity.detector);
}

UNIT_BEGIN("activity")
UNIT(without_heartbeats_a_ping_is_due_after_its_gap)
UNIT(an_answered_heartbeat_puts_the_ping_off_until_the_next_one_is_late)
UNIT(a_ping_that_is_wanted_for_itself_is_not_put_off)
UNIT(answers_to_heartbeats_before_a_ping_do_not_answer_it)
UNIT(an_answer_after_a_rest_is_no_end_of_a_silence)
UNIT(heartbeats_count_if_pings_are_often_enough_for_their_rhythm)
UNIT_END

/* association_test.c - the state machine alone. */
#include "remote/association/association.h"
#include "tests/unit/unit.h"

static const trpi_assoc_config config = { 15000, 50, 10000, 3000 };

static trpi_assoc_effects
assoc_step(trpi_assoc *a, uint64_t now, enum trpi_assoc_event_kind kind, uint64_t uid)
{
    trpi_assoc_event event = {
        .kind = kind, .uid = uid, .random = 12345, .want = kind == TRPI_ASSOC_TICK
    };
    return trpi_assoc_step(a, &config, now, &event);
}

static void
dial_and_answer(trpi_assoc *a, uint64_t now, uint64_t uid)
{
    UNIT_TRUE((assoc_step(a, now, TRPI_ASSOC_WANT, 0).bits & TRPI_ASSOC_DO_DIAL) != 0);
    UNIT_EQUAL(a->state, TRPI_ASSOC_HANDSHAKING);
    UNIT_EQUAL(assoc_step(a, now, TRPI_ASSOC_DIALLED, 0).bits, TRPI_ASSOC_DO_REQUEST);
    UNIT_TRUE((assoc_step(a, now, TRPI_ASSOC_RESPONSE, uid).bits & TRPI_ASSOC_DO_ACTIVATE) != 0);
    UNIT_EQUAL(a->state, TRPI_ASSOC_ACTIVE);
    UNIT_EQUAL(a->uid, uid);
}

/* REMOTE-28 REMOTE-29 */
static void
wanting_dials_and_the_answer_makes_it_active(void)
{
    trpi_assoc a = { 0 };
    dial_and_answer(&a, 0, 7);
    UNIT_EQUAL(assoc_step(&a, 1, TRPI_ASSOC_WANT, 0).bits, 0);
}

/* Another incarnation of the address, while one is connected that said no goodbye; 0 is none. */
static void
who_would_take_the_place_of_who_is_connected_is_a_rival(void)
{
    trpi_assoc a = { 0 };
    UNIT_FALSE(trpi_assoc_is_rival(&a, 8));
    dial_and_answer(&a, 0, 7);
    UNIT_FALSE(trpi_assoc_is_rival(&a, 0));
    UNIT_FALSE(trpi_assoc_is_rival(&a, 7));
    UNIT_TRUE(trpi_assoc_is_rival(&a, 1));
    UNIT_TRUE(trpi_assoc_is_rival(&a, 8));
    trpi_assoc_bar(&a, 8);
    UNIT_FALSE(trpi_assoc_is_rival(&a, 8));
}

/* REMOTE-31 */
static void
a_request_makes_it_active_from_idle_too(void)
{
    trpi_assoc a = { 0 };
    uint32_t bits = assoc_step(&a, 0, TRPI_ASSOC_REQUEST, 7).bits;
    UNIT_EQUAL(bits, TRPI_ASSOC_DO_ACTIVATE | TRPI_ASSOC_DO_RESPOND | TRPI_ASSOC_DO_LOG);
    /* one more connection */
    UNIT_EQUAL(assoc_step(&a, 0, TRPI_ASSOC_REQUEST, 7).bits, TRPI_ASSOC_DO_RESPOND);
}

/* REMOTE-32: crossing dials need no tie-break */
static void
two_dials_that_cross_end_active_with_one_activation(void)
{
    trpi_assoc a = { 0 };
    (void)assoc_step(&a, 0, TRPI_ASSOC_WANT, 0);
    UNIT_TRUE((assoc_step(&a, 1, TRPI_ASSOC_REQUEST, 7).bits & TRPI_ASSOC_DO_ACTIVATE) != 0);
    UNIT_EQUAL(assoc_step(&a, 2, TRPI_ASSOC_DIALLED, 0).bits, TRPI_ASSOC_DO_REQUEST);
    UNIT_EQUAL(assoc_step(&a, 3, TRPI_ASSOC_RESPONSE, 7).bits, 0);
    UNIT_EQUAL(a.state, TRPI_ASSOC_ACTIVE);
}

/* association-A3: a long back-off is cut short, and the next pause is short again */
static void
who_is_hurried_dials_after_the_shortest_pause_however_often_it_has_failed(void)
{
    trpi_assoc a = { 0 };
    uint64_t now = 1000;
    UNIT_EQUAL(assoc_step(&a, now, TRPI_ASSOC_HURRY, 0).bits, 0); /* nothing waits for it */
    UNIT_EQUAL(a.state, TRPI_ASSOC_IDLE);
    for (uint32_t i = 0; i < 12; i++) {
        UNIT_TRUE((assoc_step(&a, now, TRPI_ASSOC_WANT, 0).bits & TRPI_ASSOC_DO_DIAL) != 0);
        (void)assoc_step(&a, now, TRPI_ASSOC_LOST, 0);
        now = i < 11 ? a.next_ms : now;
    }
    UNIT_TRUE(a.next_ms >= now + 5000);
    UNIT_EQUAL(assoc_step(&a, now, TRPI_ASSOC_HURRY, 0).bits, 0);
    UNIT_EQUAL(a.next_ms, now + 50);
    trpi_assoc_event unwanted = { .kind = TRPI_ASSOC_TICK, .random = 1 };
    UNIT_EQUAL(trpi_assoc_step(&a, &config, now + 49, &unwanted).bits, 0);
    UNIT_TRUE((trpi_assoc_step(&a, &config, now + 50, &unwanted).bits & TRPI_ASSOC_DO_DIAL) != 0);
    (void)assoc_step(&a, now + 50, TRPI_ASSOC_LOST, 0);
    UNIT_TRUE(a.next_ms <= now + 50 + 100);
}

/* association-A3 */
static void
backoff_doubles_from_min_to_max_and_is_jittered(void)
{
    uint32_t base[] = { 50, 100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000 };
    for (uint32_t i = 0; i < 10; i++) {
        for (uint64_t random = 0; random < 1000; random++) {
            uint32_t ms = trpi_assoc_backoff_ms(&config, i + 1, random * 7919);
            UNIT_TRUE(ms >= base[i] / 2 && ms <= base[i]);
        }
    }
    UNIT_TRUE(trpi_assoc_backoff_ms(&config, UINT32_MAX, 1) <= 10000);
}

/* REMOTE-33 */
static void
a_lost_association_is_gated_until_its_time_and_dials_when_wanted(void)
{
    trpi_assoc a = { 0 };
    dial_and_answer(&a, 1000, 7);
    (void)assoc_step(&a, 1000, TRPI_ASSOC_LOST, 0);
    UNIT_EQUAL(a.state, TRPI_ASSOC_GATED);
    UNIT_TRUE(a.next_ms >= 1025 && a.next_ms <= 1050);
    UNIT_EQUAL(assoc_step(&a, a.next_ms - 1, TRPI_ASSOC_WANT, 0).bits, 0);
    UNIT_TRUE((assoc_step(&a, a.next_ms, TRPI_ASSOC_TICK, 0).bits & TRPI_ASSOC_DO_DIAL) != 0);
    (void)assoc_step(&a, 1100, TRPI_ASSOC_LOST, 0);
    UNIT_EQUAL(a.attempts, 2);
    /* the peer comes first */
    UNIT_TRUE((assoc_step(&a, 1200, TRPI_ASSOC_REQUEST, 7).bits & TRPI_ASSOC_DO_ACTIVATE) != 0);
    UNIT_EQUAL(a.attempts, 0);
}

static void
a_gate_that_nobody_waits_at_ends_in_idle(void)
{
    trpi_assoc a = { 0 };
    dial_and_answer(&a, 0, 7);
    (void)assoc_step(&a, 0, TRPI_ASSOC_LOST, 0);
    trpi_assoc_event tick = { .kind = TRPI_ASSOC_TICK };
    UNIT_EQUAL(trpi_assoc_step(&a, &config, 10000, &tick).bits, 0);
    UNIT_EQUAL(a.state, TRPI_ASSOC_IDLE);
}

/* REMOTE-29: association-A4: at the deadline and one before it */
static void
a_handshake_has_its_deadline(void)
{
    trpi_assoc a = { 0 };
    (void)assoc_step(&a, 100, TRPI_ASSOC_WANT, 0);
    UNIT_EQUAL(assoc_step(&a, 100 + 14999, TRPI_ASSOC_TICK, 0).bits, 0);
    UNIT_EQUAL(assoc_step(&a, 100 + 15000, TRPI_ASSOC_TICK, 0).bits,
               TRPI_ASSOC_DO_CLOSE | TRPI_ASSOC_DO_LOG);
    UNIT_EQUAL(a.state, TRPI_ASSOC_GATED);
}

/* REMOTE-36 association-A2 */
static void
a_present_incarnation_is_asked_before_another_takes_its_place(void)
{
    const uint32_t refused = TRPI_ASSOC_DO_REFUSE, asked = refused | TRPI_ASSOC_DO_ASK;
    trpi_assoc a = { 0 };
    dial_and_answer(&a, 1000, 7);
    UNIT_EQUAL(assoc_step(&a, 2000, TRPI_ASSOC_REQUEST, 8).bits, asked);
    UNIT_EQUAL(assoc_step(&a, 2100, TRPI_ASSOC_REQUEST, 8).bits, refused); /* asked once */
    UNIT_EQUAL(assoc_step(&a, 2200, TRPI_ASSOC_REQUEST, 9).bits, refused);
    UNIT_EQUAL(assoc_step(&a, 4999, TRPI_ASSOC_TICK, 0).bits, 0);
    UNIT_EQUAL(assoc_step(&a, 4999, TRPI_ASSOC_ALIVE, 7).bits, 0);
    UNIT_EQUAL(assoc_step(&a, 6000, TRPI_ASSOC_TICK, 0).bits, 0);
    UNIT_EQUAL(a.uid, 7);
    UNIT_EQUAL(a.state, TRPI_ASSOC_ACTIVE);
    UNIT_EQUAL(assoc_step(&a, 7000, TRPI_ASSOC_RESPONSE, 8).bits,
               TRPI_ASSOC_DO_CLOSE_THIS | TRPI_ASSOC_DO_ASK);
    UNIT_EQUAL(assoc_step(&a, 9999, TRPI_ASSOC_TICK, 0).bits, 0);
    trpi_assoc_effects effects = assoc_step(&a, 10000, TRPI_ASSOC_TICK, 0);
    UNIT_EQUAL(effects.bits, TRPI_ASSOC_DO_END | TRPI_ASSOC_DO_CLOSE | TRPI_ASSOC_DO_LOG);
    UNIT_EQUAL(effects.over_uid, 7);
    UNIT_FALSE(effects.over_quarantined);
    UNIT_TRUE((assoc_step(&a, 10001, TRPI_ASSOC_REQUEST, 8).bits & TRPI_ASSOC_DO_ACTIVATE) != 0);
    UNIT_EQUAL(assoc_step(&a, 14000, TRPI_ASSOC_TICK, 0).bits, 0); /* the next one owes nothing */
    UNIT_EQUAL(assoc_step(&a, 15000, TRPI_ASSOC_REQUEST, 7).bits, refused); /* association-A1 */
}

static trpi_assoc_effects
request_step(trpi_assoc *a, uint64_t now, uint64_t uid)
{
    trpi_assoc_event event = { .kind = TRPI_ASSOC_REQUEST, .uid = uid, .want = true };
    return trpi_assoc_step(a, &config, now, &event);
}

/* association-A6: its connection broke a moment ago, or it has been idle for long */
static void
who_is_not_connected_is_dialled_before_another_takes_its_place(void)
{
    for (int idle = 0; idle < 2; idle++) {
        trpi_assoc a = { 0 };
        dial_and_answer(&a, 1000, 7);
        (void)assoc_step(&a, 2000, TRPI_ASSOC_LOST, 0);
        trpi_assoc_event unwanted = { .kind = TRPI_ASSOC_TICK };
        if (idle == 1) {
            (void)trpi_assoc_step(&a, &config, 3000, &unwanted);
            UNIT_EQUAL(a.state, TRPI_ASSOC_IDLE);
        }
        trpi_assoc_effects effects = request_step(&a, 3000, 8);
        UNIT_EQUAL(effects.bits, TRPI_ASSOC_DO_REFUSE | TRPI_ASSOC_DO_DIAL);
        UNIT_EQUAL(request_step(&a, 3001, 8).bits, TRPI_ASSOC_DO_REFUSE);
        UNIT_EQUAL(a.uid, 7);
        trpi_assoc lives = a, gone = a, taken = a;
        (void)assoc_step(&lives, 3002, TRPI_ASSOC_DIALLED, 0);
        effects = assoc_step(&lives, 3003, TRPI_ASSOC_RESPONSE, 7);
        UNIT_EQUAL(effects.bits, TRPI_ASSOC_DO_ACTIVATE | TRPI_ASSOC_DO_LOG);
        UNIT_EQUAL(request_step(&lives, 3004, 8).bits, TRPI_ASSOC_DO_REFUSE | TRPI_ASSOC_DO_ASK);
        (void)assoc_step(&gone, 3002, TRPI_ASSOC_LOST, 0); /* connection refused */
        effects = request_step(&gone, 3003, 8);
        UNIT_TRUE((effects.bits & TRPI_ASSOC_DO_ACTIVATE) != 0);
        UNIT_EQUAL(effects.over_uid, 7);
        (void)assoc_step(&taken, 3002, TRPI_ASSOC_DIALLED, 0);
        effects = assoc_step(&taken, 3003, TRPI_ASSOC_RESPONSE, 8); /* the newcomer lives there */
        UNIT_TRUE((effects.bits & TRPI_ASSOC_DO_ACTIVATE) != 0);
        UNIT_EQUAL(effects.over_uid, 7);
    }
    trpi_assoc a = { 0 };
    dial_and_answer(&a, 1000, 7);
    (void)assoc_step(&a, 2000, TRPI_ASSOC_LOST, 0);
    UNIT_EQUAL(request_step(&a, 2001, 8).bits, TRPI_ASSOC_DO_REFUSE); /* soon: association-A3 */
    trpi_assoc_event unwanted = { .kind = TRPI_ASSOC_TICK };
    UNIT_EQUAL(trpi_assoc_step(&a, &config, 2051, &unwanted).bits, TRPI_ASSOC_DO_DIAL);
    a = (trpi_assoc){ 0 };
    dial_and_answer(&a, 1000, 7);
    (void)assoc_step(&a, 2000, TRPI_ASSOC_GOODBYE, 0);
    UNIT_TRUE((request_step(&a, 2001, 8).bits & TRPI_ASSOC_DO_ACTIVATE) != 0); /* no answer */
}

/* The PONG may have arrived while this node stood still. */
static void
who_was_asked_before_a_pause_of_ours_is_asked_again(void)
{
    trpi_assoc a = { 0 };
    dial_and_answer(&a, 1000, 7);
    UNIT_EQUAL(assoc_step(&a, 1500, TRPI_ASSOC_PAUSED, 0).bits, 0); /* no PING is outstanding */
    (void)assoc_step(&a, 2000, TRPI_ASSOC_REQUEST, 8);
    UNIT_EQUAL(assoc_step(&a, 7000, TRPI_ASSOC_PAUSED, 0).bits, TRPI_ASSOC_DO_ASK);
    UNIT_EQUAL(assoc_step(&a, 7000, TRPI_ASSOC_TICK, 0).bits, 0);
    UNIT_EQUAL(assoc_step(&a, 9999, TRPI_ASSOC_TICK, 0).bits, 0);
    UNIT_TRUE((assoc_step(&a, 10000, TRPI_ASSOC_TICK, 0).bits & TRPI_ASSOC_DO_END) != 0);
}

/* REMOTE-36 association-A2 */
static void
another_uid_replaces_one_that_is_not_connected(void)
{
    trpi_assoc a = { 0 };
    dial_and_answer(&a, 0, 7);
    (void)assoc_step(&a, 0, TRPI_ASSOC_LOST, 0);
    trpi_assoc_effects effects = assoc_step(&a, 5, TRPI_ASSOC_REQUEST, 8);
    UNIT_TRUE((effects.bits & TRPI_ASSOC_DO_END) != 0);
    UNIT_EQUAL(effects.over_uid, 7);
    UNIT_FALSE(effects.over_quarantined);
    UNIT_TRUE((effects.bits & (TRPI_ASSOC_DO_ACTIVATE | TRPI_ASSOC_DO_CLOSE)) ==
              (TRPI_ASSOC_DO_ACTIVATE | TRPI_ASSOC_DO_CLOSE));
    UNIT_EQUAL(a.uid, 8);
    UNIT_EQUAL(assoc_step(&a, 6, TRPI_ASSOC_REQUEST, 7).bits,
               TRPI_ASSOC_DO_REFUSE); /* association-A1 */
    UNIT_EQUAL(a.uid, 8);
}

/* REMOTE-36 association-A1 */
static void
a_quarantined_uid_is_refused_and_another_one_welcome(void)
{
    trpi_assoc a = { 0 };
    dial_and_answer(&a, 0, 7);
    trpi_assoc_effects effects = assoc_step(&a, 0, TRPI_ASSOC_QUARANTINE, 0);
    UNIT_EQUAL(effects.over_uid, 7);
    UNIT_TRUE(effects.over_quarantined);
    UNIT_EQUAL(a.state, TRPI_ASSOC_QUARANTINED);
    UNIT_EQUAL(assoc_step(&a, 1, TRPI_ASSOC_QUARANTINE, 7).bits, 0); /* once */
    UNIT_EQUAL(assoc_step(&a, 1, TRPI_ASSOC_REQUEST, 7).bits, TRPI_ASSOC_DO_REFUSE);
    (void)assoc_step(&a, 20000, TRPI_ASSOC_WANT, 0); /* any incarnation */
    (void)assoc_step(&a, 20000, TRPI_ASSOC_DIALLED, 0);
    UNIT_TRUE((assoc_step(&a, 20001, TRPI_ASSOC_RESPONSE, 7).bits & TRPI_ASSOC_DO_CLOSE_THIS) != 0);
    UNIT_EQUAL(a.state, TRPI_ASSOC_QUARANTINED);
    UNIT_TRUE((assoc_step(&a, 20002, TRPI_ASSOC_REQUEST, 8).bits & TRPI_ASSOC_DO_ACTIVATE) != 0);
    UNIT_EQUAL(a.state, TRPI_ASSOC_ACTIVE);
}

static void
quarantining_an_earlier_uid_does_not_touch_the_present_one(void)
{
    trpi_assoc a = { 0 };
    dial_and_answer(&a, 0, 7);
    trpi_assoc_effects effects = assoc_step(&a, 0, TRPI_ASSOC_QUARANTINE, 99);
    UNIT_EQUAL(effects.bits, TRPI_ASSOC_DO_END | TRPI_ASSOC_DO_LOG);
    UNIT_EQUAL(a.state, TRPI_ASSOC_ACTIVE);
    UNIT_TRUE(trpi_assoc_is_barred(&a, 99));
}

/* the limit of barred uids, and one past it */
static void
so_many_barred_uids_are_remembered_and_the_oldest_goes_first(void)
{
    trpi_assoc a = { 0 };
    for (uint64_t uid = 1; uid <= TRPI_ASSOC_BARRED_MAX + 1; uid++) {
        (void)assoc_step(&a, 0, TRPI_ASSOC_LOST, 0);
        (void)assoc_step(&a, 0, TRPI_ASSOC_REQUEST, uid);
    }
    UNIT_TRUE(trpi_assoc_is_barred(&a, 1)); /* 16 have ended, 17 is active */
    (void)assoc_step(&a, 0, TRPI_ASSOC_LOST, 0);
    (void)assoc_step(&a, 0, TRPI_ASSOC_REQUEST, 100);
    UNIT_FALSE(trpi_assoc_is_barred(&a, 1));
    UNIT_TRUE(trpi_assoc_is_barred(&a, 2));
}

/* REMOTE-46 */
static void
a_goodbye_ends_the_incarnation(void)
{
    trpi_assoc a = { 0 };
    dial_and_answer(&a, 0, 7);
    trpi_assoc_effects effects = assoc_step(&a, 0, TRPI_ASSOC_GOODBYE, 0);
    UNIT_TRUE((effects.bits & TRPI_ASSOC_DO_END) != 0);
    UNIT_EQUAL(effects.over_uid, 7);
    UNIT_TRUE(a.state != TRPI_ASSOC_ACTIVE);
    UNIT_EQUAL(assoc_step(&a, 0, TRPI_ASSOC_GOODBYE, 0).bits, 0);
}

static void
any_order_of_events_keeps_the_rules(void)
{
    for (uint64_t run = 1; run <= 500; run++) {
        uint64_t seed = run * 0x9e3779b97f4a7c15u;
        trpi_assoc a = { 0 };
        uint64_t now = 0, quarantined = 0;
        for (int i = 0; i < 300; i++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            now += seed % 2000;
            trpi_assoc_event event = { .kind = (enum trpi_assoc_event_kind)(1 + (seed >> 8) % 11),
                                       .want = (seed >> 16 & 1) != 0,
                                       .uid = 1 + (seed >> 20) % 6,
                                       .random = seed };
            trpi_assoc_effects effects = trpi_assoc_step(&a, &config, now, &event);
            bool ok =
                a.state != TRPI_ASSOC_ACTIVE || (a.uid != 0 && !trpi_assoc_is_barred(&a, a.uid));
            ok = ok && ((effects.bits & TRPI_ASSOC_DO_END) == 0 ||
                        trpi_assoc_is_barred(&a, effects.over_uid));
            ok = ok && (event.kind != TRPI_ASSOC_TICK || a.state != TRPI_ASSOC_HANDSHAKING ||
                        now < a.deadline_ms);
            quarantined |= (effects.bits & TRPI_ASSOC_DO_END) != 0 ? 1ull << effects.over_uid : 0;
            /* association-A1: six uids fit */
            ok = ok && ((quarantined >> a.uid & 1) == 0 || a.state != TRPI_ASSOC_ACTIVE);
            if (!UNIT_TRUE(ok)) {
                printf("  seed %llu step %d\n", (unsigned long long)run, i);
                return;
            }
        }
    }
}

UNIT_BEGIN("association")
UNIT(wanting_dials_and_the_answer_makes_it_active)
UNIT(who_would_take_the_place_of_who_is_connected_is_a_rival)
UNIT(a_request_makes_it_active_from_idle_too)
UNIT(two_dials_that_cross_end_active_with_one_activation)
UNIT(backoff_doubles_from_min_to_max_and_is_jittered)
UNIT(who_is_hurried_dials_after_the_shortest_pause_however_often_it_has_failed)
UNIT(a_lost_association_is_gated_until_its_time_and_dials_when_wanted)
UNIT(a_gate_that_nobody_waits_at_ends_in_idle)
UNIT(a_handshake_has_its_deadline)
UNIT(a_present_incarnation_is_asked_before_another_takes_its_place)
UNIT(who_is_not_connected_is_dialled_before_another_takes_its_place)
UNIT(who_was_asked_before_a_pause_of_ours_is_asked_again)
UNIT(another_uid_replaces_one_that_is_not_connected)
UNIT(a_quarantined_uid_is_refused_and_another_one_welcome)
UNIT(quarantining_an_earlier_uid_does_not_touch_the_present_one)
UNIT(so_many_barred_uids_are_remembered_and_the_oldest_goes_first)
UNIT(a_goodbye_ends_the_incarnation)
UNIT(any_order_of_events_keeps_the_rules)
UNIT_END

/* engine_test.c - which contact a client talks to, without sockets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "remote/client/engine.h"
#include "tests/unit/unit.h"

static const trpi_client_config config = { .ping_ms = 1000,
                                           .silence_ms = 3500,
                                           .try_ms = 500,
                                           .refresh_ms = 60000,
                                           .pause_min_ms = 100,
                                           .pause_max_ms = 1600 };
static trpi_client_engine e;
static uint64_t now;
static trpi_address points[4];

static trpi_address
at(const char *host)
{
    char text[64];
    trpi_address address;
    (void)snprintf(text, sizeof text, "troupe.tcp://shop@%s:2552", host);
    UNIT_REQUIRE(trpi_address_parse(text, &address, NULL, NULL) == TRP_OK);
    return address;
}

/* The actions so far, as words: "hello a, switch a". */
static const char *
did(void)
{
    static const char *const words[] = { "", "hello", "ping", "bye", "switch", "lost", "stop" };
    static char text[512];
    size_t used = 0;
    trpi_client_action action;
    text[0] = '\0';
    UNIT_TRUE(trpi_client_check(&e) == NULL);
    while (trpi_client_next(&e, &action)) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s%s", used > 0 ? ", " : "",
                                 words[action.kind], action.to.host[0] != '\0' ? " " : "",
                                 action.to.host);
    }
    return text;
}

static void
tick(uint64_t ms)
{
    now += ms;
    trpi_client_tick(&e, 0, now);
}

static void
begin(uint32_t count)
{
    static const char *const hosts[] = { "a", "b", "c", "d" };
    now = 1000;
    for (uint32_t i = 0; i < count; i++) {
        points[i] = at(hosts[i]);
    }
    UNIT_EQUAL(trpi_client_begin(&e, &config, points, count, 0, now), TRP_OK);
}

static void
welcome(const char *from, const char *first, const char *second)
{
    trpi_address contacts[2] = { at(first), at(second) }, sender = at(from);
    trpi_client_welcome(&e, &sender, contacts, 2, now);
}

static void
the_first_contact_that_answers_is_taken(void)
{
    begin(2);
    UNIT_TEXT(did(), "hello a");
    tick(499);
    UNIT_TEXT(did(), "");
    tick(1);
    UNIT_TEXT(did(), "hello b");
    welcome("b", "b", "a");
    UNIT_TEXT(did(), "switch b");
    UNIT_EQUAL(e.state, TRPI_CLIENT_ESTABLISHED);
}

static void
a_late_answer_of_one_that_was_given_up_is_told_goodbye(void)
{
    begin(2);
    (void)did();
    tick(500);
    UNIT_TEXT(did(), "hello b");
    welcome("a", "a", "b");
    UNIT_TEXT(did(), "bye a");
    UNIT_EQUAL(e.state, TRPI_CLIENT_LOOKING);
}

/* CONTRIB-28: pings, and a contact that does not answer them */
static void
a_silent_contact_is_lost_and_the_others_are_asked(void)
{
    begin(2);
    welcome("a", "a", "b");
    (void)did();
    tick(1000);
    UNIT_TEXT(did(), "ping a");
    trpi_client_heard(&e, &points[0], now);
    tick(1000);
    UNIT_TEXT(did(), "ping a");
    tick(1000);
    tick(1000);
    (void)did();
    tick(499);
    UNIT_TEXT(did(), "");
    tick(1);
    UNIT_TEXT(did(), "lost a, bye a, hello a");
    tick(500);
    UNIT_TEXT(did(), "hello b");
}

/* CONTRIB-22:
 * also after a restart of all nodes with new addresses. After the known contacts the first ones are
 * asked again, whose names are looked up anew. */
static void
after_the_known_contacts_come_the_first_ones_again(void)
{
    begin(1);
    welcome("a", "x", "y");
    UNIT_TEXT(did(), "hello a, switch a, hello x");
    welcome("x", "x", "y");
    UNIT_TEXT(did(), "bye a, switch x");
    trpi_address x = at("x"), y = at("y");
    trpi_client_failed(&e, &x, "it ended", now);
    UNIT_TEXT(did(), "lost x, bye x, hello x");
    trpi_client_failed(&e, &x, "refused", now);
    UNIT_TEXT(did(), "hello y");
    trpi_client_failed(&e, &y, "refused", now);
    UNIT_TEXT(did(), "hello a");
}

static void
rounds_without_success_are_further_and_further_apart(void)
{
    begin(1);
    UNIT_TEXT(did(), "hello a");
    for (uint64_t pause = 100; pause <= 6400; pause *= 2) {
        trpi_client_failed(&e, &points[0], "refused", now);
        tick(0);
        uint64_t expected = (pause < 1600 ? pause : 1600) / 2; /* random 0: the shortest */
        tick(expected - 1);
        UNIT_TEXT(did(), "");
        tick(1);
        UNIT_TEXT(did(), "hello a");
    }
}

/* CONTRIB-29: a client is spread to its part of the ring, once */
static void
better_contacts_are_followed_once(void)
{
    begin(1);
    welcome("a", "b", "c");
    UNIT_TEXT(did(), "hello a, switch a, hello b");
    UNIT_EQUAL(e.state, TRPI_CLIENT_MOVING);
    welcome("b", "c", "d");
    UNIT_TEXT(did(), "bye a, switch b");
    UNIT_EQUAL(e.state, TRPI_CLIENT_ESTABLISHED);
}

static void
a_client_stays_when_the_better_contacts_do_not_answer(void)
{
    trpi_address b = at("b"), c = at("c");
    begin(1);
    welcome("a", "b", "c");
    (void)did();
    trpi_client_failed(&e, &b, "refused", now);
    UNIT_TEXT(did(), "hello c");
    trpi_client_failed(&e, &c, "refused", now);
    UNIT_TEXT(did(), "");
    UNIT_EQUAL(e.state, TRPI_CLIENT_ESTABLISHED);
}

/* akka#24167: the goodbye of a receptionist whose node leaves */
static void
a_contact_that_leaves_is_used_until_another_one_takes_over(void)
{
    begin(2);
    welcome("a", "a", "b");
    (void)did();
    trpi_address others[1] = { at("b") };
    trpi_client_move(&e, &points[0], others, 1, now);
    UNIT_TEXT(did(), "hello b");
    UNIT_TRUE(trpi_client_has_contact(&e));
    welcome("b", "b", "b");
    UNIT_TEXT(did(), "bye a, switch b");
}

static void
a_contact_that_goes_while_another_one_is_asked_is_lost(void)
{
    begin(2);
    welcome("a", "a", "b");
    (void)did();
    trpi_address others[1] = { at("b") };
    trpi_client_move(&e, &points[0], others, 1, now);
    (void)did();
    trpi_client_failed(&e, &points[0], "it ended", now);
    UNIT_TEXT(did(), "lost a, bye a");
    UNIT_TEXT(e.why, "it ended");
    welcome("b", "b", "b");
    UNIT_TEXT(did(), "switch b");
}

static void
one_that_has_another_address_is_asked_there(void)
{
    trpi_address real = at("10.0.0.7");
    begin(1);
    (void)did();
    trpi_client_elsewhere(&e, &points[0], &real, now);
    UNIT_TEXT(did(), "hello 10.0.0.7");
    welcome("10.0.0.7", "10.0.0.7", "b");
    UNIT_TEXT(did(), "switch 10.0.0.7");
}

static void
it_stops_when_it_looks_for_too_long(void)
{
    trpi_client_config limited = config;
    limited.reconnect_ms = 2000;
    now = 1000;
    points[0] = at("a");
    UNIT_EQUAL(trpi_client_begin(&e, &limited, points, 1, 0, now), TRP_OK);
    (void)did();
    tick(1999);
    (void)did();
    tick(1);
    UNIT_TEXT(did(), "stop");
    UNIT_EQUAL(e.state, TRPI_CLIENT_STOPPED);
    welcome("a", "a", "a");
    tick(10000);
    UNIT_TEXT(did(), "");
}

static void
contacts_are_asked_for_again_at_times(void)
{
    begin(1);
    welcome("a", "a", "b");
    (void)did();
    for (int i = 0; i < 59; i++) {
        tick(1000);
        trpi_client_heard(&e, &points[0], now);
        UNIT_TEXT(did(), "ping a");
    }
    tick(1000);
    UNIT_TEXT(did(), "ping a, hello a");
}

static void
contact_points_and_times_have_limits(void)
{
    trpi_address many[TRPI_CLIENT_INITIAL_MAX + 1];
    trpi_client_config odd = config;
    for (uint32_t i = 0; i < TRPI_CLIENT_INITIAL_MAX + 1; i++) {
        many[i] = at("a");
    }
    UNIT_EQUAL(trpi_client_begin(&e, &config, many, 0, 0, 0), TRP_EINVAL);
    UNIT_EQUAL(trpi_client_begin(&e, &config, many, TRPI_CLIENT_INITIAL_MAX, 7, 0), TRP_OK);
    UNIT_EQUAL(trpi_client_begin(&e, &config, many, TRPI_CLIENT_INITIAL_MAX + 1, 0, 0), TRP_EINVAL);
    odd.silence_ms = odd.ping_ms;
    UNIT_EQUAL(trpi_client_begin(&e, &odd, many, 1, 0, 0), TRP_EINVAL);
}

/* The engine after a tick so much later is as it was, but for that tick's actions: none. */
static bool
a_tick_does_nothing(uint64_t later_ms)
{
    static trpi_client_engine then;
    memcpy(&then, &e, sizeof then);
    trpi_client_tick(&then, 7, now + later_ms);
    return memcmp(&then, &e, sizeof then) == 0;
}

/* Any order of events keeps the invariants, a tick has something to do when it is due and not
 * before, and a client whose contacts answer gets one. */
static void
any_order_of_events_is_survived(void)
{
    static const char *const hosts[] = { "a", "b", "c", "d" };
    const char *given = getenv("TROUPE_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : unit_now_ms(), state = seed;
    printf("seed %llu; again: TROUPE_SEED=%llu client_tests engine_test "
           "any_order_of_events_is_survived\n",
           (unsigned long long)seed, (unsigned long long)seed);
    for (int round = 0; round < 200; round++) {
        trpi_client_action action;
        begin(1 + (uint32_t)(round % 4));
        e.config.reconnect_ms = round % 3 == 0 ? 3000 : 0;
        for (int i = 0; i < 200; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            trpi_address who = at(hosts[state >> 33 & 3]), other = at(hosts[state >> 35 & 3]);
            switch (state >> 40 & 7) {
            case 0:
                trpi_client_welcome(&e, &who, &other, 1, now);
                break;
            case 1:
                trpi_client_move(&e, &who, &other, state >> 50 & 1, now);
                break;
            case 2:
                trpi_client_failed(&e, &who, "failed", now);
                break;
            case 3:
                trpi_client_elsewhere(&e, &who, &other, now);
                break;
            case 4:
                trpi_client_heard(&e, &who, now);
                break;
            default:
                now += state >> 44 & 1023;
                trpi_client_tick(&e, state >> 20, now);
                break;
            }
            UNIT_REQUIRE(trpi_client_check(&e) == NULL);
            while (trpi_client_next(&e, &action)) {
            }
            uint64_t due = trpi_client_due_ms(&e, now);
            UNIT_REQUIRE(due == 0 || a_tick_does_nothing(due == UINT64_MAX ? 1u << 30 : due - 1));
            UNIT_REQUIRE(due == UINT64_MAX || !a_tick_does_nothing(due));
        }
        for (int i = 0; i < 100 && !trpi_client_has_contact(&e) && e.state != TRPI_CLIENT_STOPPED;
             i++) {
            tick(100);
            while (trpi_client_next(&e, &action)) {
                if (action.kind == TRPI_CLIENT_DO_HELLO) {
                    trpi_client_welcome(&e, &action.to, &action.to, 1, now);
                }
            }
            if (e.trying) {
                trpi_address tried = e.tried;
                trpi_client_welcome(&e, &tried, &tried, 1, now);
            }
        }
        UNIT_TRUE(trpi_client_has_contact(&e) || e.config.reconnect_ms != 0);
    }
}

UNIT_BEGIN("engine")
UNIT(the_first_contact_that_answers_is_taken)
UNIT(a_late_answer_of_one_that_was_given_up_is_told_goodbye)
UNIT(a_silent_contact_is_lost_and_the_others_are_asked)
UNIT(after_the_known_contacts_come_the_first_ones_again)
UNIT(rounds_without_success_are_further_and_further_apart)
UNIT(better_contacts_are_followed_once)
UNIT(a_client_stays_when_the_better_contacts_do_not_answer)
UNIT(a_contact_that_leaves_is_used_until_another_one_takes_over)
UNIT(a_contact_that_goes_while_another_one_is_asked_is_lost)
UNIT(one_that_has_another_address_is_asked_there)
UNIT(it_stops_when_it_looks_for_too_long)
UNIT(contacts_are_asked_for_again_at_times)
UNIT(contact_points_and_times_have_limits)
UNIT(any_order_of_events_is_survived)
UNIT_END

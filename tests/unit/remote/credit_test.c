/* credit_test.c - how much may wait for one receiver, and the CREDIT frames for its sender. Pure.
 */
#include "remote/association/credit.h"

#include <stdlib.h>

#include "tests/unit/unit.h"

#define MIB (UINT64_C(1) << 20)

static const trpi_credit_limits usual = { 64 * MIB, 256 * MIB };

static void
the_window_shrinks_as_more_waits_in_all(void)
{
    UNIT_EQUAL(trpi_credit_window(&usual, 0), 16 * MIB);
    UNIT_EQUAL(trpi_credit_window(&usual, 128 * MIB), 8 * MIB);
    UNIT_EQUAL(trpi_credit_window(&usual, 256 * MIB), TRPI_CREDIT_LEAST_BYTES);
    UNIT_EQUAL(trpi_credit_window(&usual, UINT64_MAX), TRPI_CREDIT_LEAST_BYTES);
    /* a thousand slow receivers: together little more than the limit for all */
    uint64_t waiting = 0;
    for (int i = 0; i < 1000; i++) {
        waiting += trpi_credit_window(&usual, waiting);
    }
    UNIT_TRUE(waiting <= 256 * MIB + 1000 * (uint64_t)TRPI_CREDIT_LEAST_BYTES);
    /* one may have all of its limit while there is room for all, and little when there is none */
    UNIT_EQUAL(trpi_credit_most(&usual, 256 * MIB - 1), 64 * MIB);
    UNIT_EQUAL(trpi_credit_most(&usual, 256 * MIB), 4 * TRPI_CREDIT_LEAST_BYTES);
}

/* A4J-35 */
static void
a_receiver_is_limited_one_past_its_window_and_free_at_a_quarter(void)
{
    trpi_credit credit = { false, 0, 0 };
    UNIT_TRUE(!trpi_credit_came(&credit, 1000, 1000, 100).say);
    UNIT_TRUE(!credit.limited);
    trpi_credit_word word = trpi_credit_came(&credit, 1000, 1001, 100);
    UNIT_TRUE(word.say && credit.limited);
    UNIT_EQUAL(word.flags, TRPI_CREDIT_SET);
    UNIT_EQUAL(word.bytes, 0);
    /* less than an eighth of the window is not worth a frame */
    UNIT_TRUE(!trpi_credit_passed(&credit, 1000, 876).say);
    word = trpi_credit_passed(&credit, 1000, 875);
    UNIT_TRUE(word.say);
    UNIT_EQUAL(word.flags, 0);
    UNIT_EQUAL(word.bytes, 125);
    UNIT_TRUE(!trpi_credit_passed(&credit, 1000, 800).say); /* the credit is granted already */
    word = trpi_credit_passed(&credit, 1000, 251);
    UNIT_EQUAL(word.bytes, 1000 - 251 - 125);
    word = trpi_credit_passed(&credit, 1000, 250);
    UNIT_EQUAL(word.flags, TRPI_CREDIT_FREE | TRPI_CREDIT_SET);
    UNIT_EQUAL(word.bytes, 750); /* the kept messages must not come all at once */
    UNIT_TRUE(!credit.limited);
    UNIT_TRUE(!trpi_credit_passed(&credit, 1000, 0).say);
}

static void
who_sends_without_credit_is_told_again(void)
{
    trpi_credit credit = { false, 0, 0 };
    UNIT_TRUE(trpi_credit_came(&credit, 10, 11, 11).say);
    UNIT_TRUE(!trpi_credit_came(&credit, 10, 20, TRPI_CREDIT_AGAIN_BYTES - 1).say);
    trpi_credit_word word = trpi_credit_came(&credit, 10, 21, 1);
    UNIT_TRUE(word.say);
    UNIT_EQUAL(word.flags, TRPI_CREDIT_SET);
    UNIT_TRUE(!trpi_credit_came(&credit, 10, 22, 1).say);
}

static void
who_asks_is_always_answered(void)
{
    trpi_credit credit = { false, 0, 0 };
    UNIT_EQUAL(trpi_credit_asked(&credit, 1000, 0).flags, TRPI_CREDIT_FREE | TRPI_CREDIT_SET);
    (void)trpi_credit_came(&credit, 1000, 1001, 1);
    trpi_credit_word word = trpi_credit_asked(&credit, 1000, 1001);
    UNIT_TRUE(word.say && word.flags == TRPI_CREDIT_SET && word.bytes == 0);
    word = trpi_credit_asked(&credit, 1000, 600);
    UNIT_TRUE(word.say && word.flags == TRPI_CREDIT_SET && word.bytes == 400);
    word = trpi_credit_asked(&credit, 1000, 600); /* earlier CREDIT frames may be lost */
    UNIT_EQUAL(word.bytes, 400);
    word = trpi_credit_asked(&credit, 1000, 250);
    UNIT_EQUAL(word.flags, TRPI_CREDIT_FREE | TRPI_CREDIT_SET);
    UNIT_TRUE(!credit.limited);
    /* a free sender that has used up its credit may become limited */
    word = trpi_credit_asked(&credit, 1000, 251);
    UNIT_TRUE(credit.limited && word.flags == TRPI_CREDIT_SET && word.bytes == 749);
}

/* A sender that keeps to its credit, a receiver that handles messages at random, CREDIT frames that
 * are lost: the queue stays within its bounds, and everything is sent in the end. */
static void
random_course(uint32_t seed)
{
    enum { WINDOW = 100000, MESSAGE = 100 };
    trpi_credit credit = { false, 0, 0 };
    uint64_t waiting = 0, left = 50 * WINDOW, may = UINT64_MAX, random = seed;
    for (int i = 0; i < 1000000 && left + waiting > 0; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint32_t dice = (uint32_t)(random >> 40);
        trpi_credit_word word = { false, 0, 0 };
        uint64_t some = (1 + dice % 20) * MESSAGE;
        bool out = left > 0 && may == 0;
        if (dice % 3 != 0 && left > 0 && !out) {
            some = some < may ? some : may;
            some = some < left ? some : left;
            may -= may == UINT64_MAX ? 0 : some;
            left -= some;
            waiting += some;
            word = trpi_credit_came(&credit, WINDOW, waiting, some);
        } else if (waiting > 0) {
            waiting -= some < waiting ? some : waiting;
            word = trpi_credit_passed(&credit, WINDOW, waiting);
        }
        if (out && dice % 10 == 7) {
            word = trpi_credit_asked(&credit, WINDOW, waiting);
        } else if (dice % 50 == 9 && word.bytes > 0) {
            word.say = false; /* lost: the sender asks later */
        }
        if (word.say) {
            may = (word.flags & TRPI_CREDIT_SET) != 0 ? word.bytes : may + word.bytes;
        }
        UNIT_TRUE(waiting <= WINDOW + 20 * MESSAGE);
        UNIT_TRUE(waiting > 0 || !credit.limited); /* credit-W2 */
    }
    UNIT_EQUAL(left + waiting, 0);
}

static void
what_waits_stays_in_bounds_and_ends(void)
{
    const char *given = getenv("CREDIT_SEED");
    uint32_t seed = given != NULL ? (uint32_t)strtoul(given, NULL, 10) : 1;
    uint32_t until = given != NULL ? seed + 1 : 101;
    for (; seed < until; seed++) {
        random_course(seed); /* CREDIT_SEED=N remote_tests credit_test: one of them */
    }
}

static void
a_frame_of_credit_comes_back(void)
{
    trpi_credit_frame frame = { 5, 0x80000001u, UINT64_C(1) << 40 }, back;
    uint8_t body[TRPI_CREDIT_BYTES];
    trpi_credit_encode(body, &frame);
    trpi_credit_decode(body, sizeof body, &back);
    UNIT_TRUE(back.slot == 5 && back.generation == 0x80000001u && back.bytes == UINT64_C(1) << 40);
    trpi_credit_decode(body, TRPI_CREDIT_ASK_BYTES, &back);
    UNIT_TRUE(back.slot == 5 && back.generation == 0x80000001u && back.bytes == 0);
}

UNIT_BEGIN("credit")
UNIT(the_window_shrinks_as_more_waits_in_all)
UNIT(a_receiver_is_limited_one_past_its_window_and_free_at_a_quarter)
UNIT(who_sends_without_credit_is_told_again)
UNIT(who_asks_is_always_answered)
UNIT(what_waits_stays_in_bounds_and_ends)
UNIT(a_frame_of_credit_comes_back)
UNIT_END

/* waiting_test.c - signals for incarnations that are not proved: order, bound, the oldest. */
#include <stdlib.h>

#include "base/alloc.h"
#include "remote/association/waiting.h"
#include "tests/unit/unit.h"

static void
entry_add(trpi_waiting *w, uint64_t uid, uint64_t now_ms, uint8_t mark)
{
    uint8_t body[TRPI_SYSTEM_BODY_BYTES] = { mark };
    UNIT_EQUAL(trpi_waiting_add(w, 1000, uid, now_ms, body), TRP_OK);
}

static uint8_t
next_mark(trpi_redelivery *r)
{
    uint64_t seq = 0;
    const uint8_t *body = trpi_redelivery_next(r, 0, &seq);
    return body != NULL ? body[0] : 0;
}

static void
what_is_for_one_incarnation_leaves_in_order_and_the_rest_stays(void)
{
    trpi_waiting w = { 0 };
    trpi_redelivery r;
    trpi_redelivery_init(&r, 100, 0, 0);
    for (uint8_t i = 1; i <= 40; i++) {
        entry_add(&w, i % 3, 10 + i, i);
    }
    UNIT_EQUAL(trpi_waiting_move(&w, 1, 99, &r), TRP_OK);
    for (uint8_t i = 1; i <= 40; i += 3) {
        UNIT_EQUAL(next_mark(&r), i);
    }
    UNIT_EQUAL(next_mark(&r), 0);
    UNIT_EQUAL(w.count, 26);
    trpi_waiting_drop(&w, 2);
    UNIT_EQUAL(w.count, 13);
    UNIT_EQUAL(trpi_waiting_move(&w, 0, 99, &r), TRP_OK);
    for (uint8_t i = 3; i <= 39; i += 3) {
        UNIT_EQUAL(next_mark(&r), i);
    }
    UNIT_EQUAL(w.count, 0);
    trpi_redelivery_fini(&r);
    trpi_waiting_fini(&w);
}

static void
the_oldest_is_one_of_another_incarnation_that_waited_before_a_time(void)
{
    trpi_waiting w = { 0 };
    UNIT_TRUE(trpi_waiting_oldest(&w, UINT64_MAX, 0) == NULL);
    entry_add(&w, 7, 10, 1);
    entry_add(&w, 8, 20, 2);
    UNIT_TRUE(trpi_waiting_oldest(&w, 10, 0) == NULL); /* not the same moment */
    UNIT_EQUAL(trpi_waiting_oldest(&w, 11, 0)->uid, 7);
    UNIT_TRUE(trpi_waiting_oldest(&w, 11, 7) == NULL);
    UNIT_EQUAL(trpi_waiting_oldest(&w, 21, 7)->uid, 8);
    trpi_waiting_fini(&w);
}

static void
at_the_bound_one_more_is_refused_and_changes_nothing(void)
{
    trpi_waiting w = { 0 };
    uint8_t body[TRPI_SYSTEM_BODY_BYTES] = { 0 };
    for (uint32_t i = 0; i < 20; i++) {
        UNIT_EQUAL(trpi_waiting_add(&w, 20, 5, i, body), TRP_OK);
    }
    UNIT_EQUAL(trpi_waiting_add(&w, 20, 5, 21, body), TRP_ELIMIT);
    UNIT_EQUAL(w.count, 20);
    /* The redelivery ring may have less room: the first refusal is returned, none stays. */
    trpi_redelivery r;
    trpi_redelivery_init(&r, 16, 0, 0);
    UNIT_EQUAL(trpi_waiting_move(&w, 5, 0, &r), TRP_ELIMIT);
    UNIT_EQUAL(trpi_redelivery_unacked(&r), 16);
    UNIT_EQUAL(w.count, 0);
    trpi_redelivery_fini(&r);
    trpi_waiting_fini(&w);
    trpi_alloc_fail_here_after(0);
    UNIT_EQUAL(trpi_waiting_add(&w, 20, 5, 0, body), TRP_ENOMEM);
    trpi_alloc_fail_here_after(-1);
    UNIT_EQUAL(w.count, 0);
    trpi_waiting_fini(&w);
}

UNIT_BEGIN("waiting")
UNIT(what_is_for_one_incarnation_leaves_in_order_and_the_rest_stays)
UNIT(the_oldest_is_one_of_another_incarnation_that_waited_before_a_time)
UNIT(at_the_bound_one_more_is_refused_and_changes_nothing)
UNIT_END

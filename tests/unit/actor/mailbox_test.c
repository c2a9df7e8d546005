/* mailbox_test.c - the queue and its token, without a scheduler. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "actor/kernel/mailbox.h"
#include "base/alloc.h"

static trp_msg *
message(uint32_t number)
{
    trp_msg *msg = trpi_alloc_aligned(64, 64);

    UNIT_REQUIRE(msg != NULL);
    msg->priv_from_slot = number;
    return msg;
}

/* Take all; returns how many, checks that numbers rise from `next`. */
static uint32_t
take_all(trpi_cell *cell, uint32_t next)
{
    trp_msg *msg, *done;
    uint32_t count = 0;

    while (trpi_mailbox_take(cell, &msg, &done) == TRPI_TAKE_MSG) {
        UNIT_EQUAL(msg->priv_from_slot, next + count);
        count++;
        trpi_free(done);
    }
    return count;
}

static void
the_first_push_to_an_idle_cell_gets_the_token(void)
{
    trpi_cell *cell = trpi_alloc_aligned(128, sizeof *cell);
    trp_msg *done;

    trpi_mailbox_init(cell);
    for (int round = 0; round < 3; round++) {
        trp_msg *a = message(0), *b = message(1);

        UNIT_TRUE(trpi_mailbox_push(cell, a, a));
        UNIT_FALSE(trpi_mailbox_push(cell, b, b));
        UNIT_EQUAL(take_all(cell, 0), 2);
        UNIT_TRUE(trpi_mailbox_go_idle(cell, &done));
        UNIT_TRUE(done == b); /* an idle cell keeps no message */
        trpi_free(done);
        UNIT_TRUE(cell->tail == trpi_cell_stub(cell));
    }
    trpi_free(cell);
}

static void
going_idle_fails_when_a_message_came(void)
{
    trpi_cell *cell = trpi_alloc_aligned(128, sizeof *cell);
    trp_msg *a = message(0), *b = message(1), *done;

    trpi_mailbox_init(cell);
    UNIT_TRUE(trpi_mailbox_push(cell, a, a));
    UNIT_EQUAL(take_all(cell, 0), 1);
    UNIT_FALSE(trpi_mailbox_push(cell, b, b));
    UNIT_FALSE(trpi_mailbox_go_idle(cell, &done));
    UNIT_TRUE(trpi_mailbox_has_more(cell));
    UNIT_EQUAL(take_all(cell, 1), 1);
    UNIT_TRUE(trpi_mailbox_go_idle(cell, &done));
    trpi_free(done);
    trpi_free(cell);
}

/* mailbox-M5 */
static void
a_message_is_handed_over_in_the_dummy_when_nothing_waits(void)
{
    trpi_cell *cell = trpi_alloc_aligned(128, sizeof *cell);
    trp_msg *a = message(0), *b = message(2), *msg = NULL, *done = NULL;

    trpi_mailbox_init(cell);
    UNIT_TRUE(trpi_mailbox_direct_block(cell) == NULL); /* idle: the token is not ours */
    UNIT_TRUE(trpi_mailbox_push(cell, a, a));
    UNIT_TRUE(trpi_mailbox_direct_block(cell) == NULL); /* one waits */
    UNIT_EQUAL(take_all(cell, 0), 1);
    for (int round = 0; round < 3; round++) {
        UNIT_TRUE(trpi_mailbox_direct_block(cell) == a);
        a->priv_from_slot = 1;
        trpi_mailbox_deliver_direct(cell);
        UNIT_TRUE(trpi_mailbox_has_more(cell));
        UNIT_FALSE(trpi_mailbox_has_many(cell));
        UNIT_TRUE(trpi_mailbox_first(cell) == a);
        UNIT_TRUE(trpi_mailbox_direct_block(cell) == NULL); /* it waits now */
        UNIT_FALSE(trpi_mailbox_go_idle(cell, &done));
        UNIT_EQUAL(take_all(cell, 1), 1);
        UNIT_FALSE(trpi_mailbox_has_more(cell));
    }
    /* what is pushed after it comes after it */
    trpi_mailbox_deliver_direct(cell);
    UNIT_FALSE(trpi_mailbox_push(cell, b, b));
    UNIT_TRUE(trpi_mailbox_has_many(cell));
    UNIT_TRUE(trpi_msg_next(trpi_mailbox_first(cell)) == b);
    UNIT_EQUAL(trpi_mailbox_take(cell, &msg, &done), TRPI_TAKE_MSG);
    UNIT_TRUE(msg == a && done == NULL);
    UNIT_EQUAL(trpi_mailbox_take(cell, &msg, &done), TRPI_TAKE_MSG);
    UNIT_TRUE(msg == b && done == a);
    trpi_free(a);
    /* parked with a message in the dummy, and run again by another thread */
    UNIT_TRUE(trpi_mailbox_direct_block(cell) == b);
    trpi_mailbox_deliver_direct(cell);
    trpi_mailbox_park(cell);
    UNIT_TRUE(trpi_mailbox_claim(cell));
    UNIT_EQUAL(take_all(cell, 2), 1);
    UNIT_TRUE(trpi_mailbox_go_idle(cell, &done));
    UNIT_TRUE(done == b);
    trpi_free(b);
    UNIT_TRUE(trpi_mailbox_direct_block(cell) == NULL); /* the stub is no message */
    trpi_free(cell);
}

static void
only_a_dummy_of_one_line_is_written_over(void)
{
    trpi_cell *cell = trpi_alloc_aligned(128, sizeof *cell);
    trp_msg *a = message(0);

    trpi_mailbox_init(cell);
    UNIT_TRUE(trpi_mailbox_push(cell, a, a));
    UNIT_EQUAL(take_all(cell, 0), 1);
    a->priv_bytes = TRPI_LINE_PAYLOAD_MAX;
    UNIT_TRUE(trpi_mailbox_direct_block(cell) == a);
    a->priv_bytes = TRPI_LINE_PAYLOAD_MAX + 1; /* a larger block */
    UNIT_TRUE(trpi_mailbox_direct_block(cell) == NULL);
    a->priv_bytes = 8;
    a->priv_from_node_flags = TRP_MSG_PRIV_OUT_OF_LINE; /* it leads to something */
    UNIT_TRUE(trpi_mailbox_direct_block(cell) == NULL);
    a->priv_from_node_flags = TRPI_MSG_TRAILER;
    UNIT_TRUE(trpi_mailbox_direct_block(cell) == NULL);
    trpi_free(a);
    trpi_free(cell);
}

static void
a_half_done_push_is_not_taken_for_empty(void)
{
    trpi_cell *cell = trpi_alloc_aligned(128, sizeof *cell);
    trp_msg *a = message(0), *msg, *done;
    uintptr_t before;

    trpi_mailbox_init(cell);
    UNIT_TRUE(trpi_mailbox_claim(cell));
    before = atomic_exchange(&cell->head, (uintptr_t)a); /* the first step of a push */
    UNIT_EQUAL(trpi_mailbox_take(cell, &msg, &done), TRPI_TAKE_NOT_YET);
    UNIT_FALSE(trpi_mailbox_go_idle(cell, &done));
    trpi_msg_next_set((trp_msg *)before, a, __ATOMIC_RELEASE); /* the second */
    UNIT_EQUAL(take_all(cell, 0), 1);
    UNIT_TRUE(trpi_mailbox_go_idle(cell, &done));
    trpi_free(done);
    trpi_free(cell);
}

static void
a_parked_cell_keeps_its_messages_and_wakes_at_the_next_push(void)
{
    trpi_cell *cell = trpi_alloc_aligned(128, sizeof *cell);
    trp_msg *a = message(0), *b = message(1), *c = message(2), *done;

    trpi_mailbox_init(cell);
    UNIT_TRUE(trpi_mailbox_push(cell, a, a));
    UNIT_FALSE(trpi_mailbox_push(cell, b, b));
    trpi_mailbox_park(cell);
    UNIT_TRUE(trpi_mailbox_push(cell, c, c));
    UNIT_FALSE(trpi_mailbox_claim(cell));
    UNIT_EQUAL(take_all(cell, 0), 3);
    UNIT_TRUE(trpi_mailbox_go_idle(cell, &done));
    trpi_free(done);
    trpi_free(cell);
}

static void
system_messages_come_oldest_first_and_wake_the_cell_once(void)
{
    trpi_cell *cell = trpi_alloc_aligned(128, sizeof *cell);
    trpi_sysmsg messages[3];
    trpi_sysmsg *list;

    memset(messages, 0, sizeof messages);
    trpi_mailbox_init(cell);
    for (uint16_t i = 0; i < 3; i++) {
        messages[i].kind = i;
        UNIT_EQUAL(trpi_mailbox_push_system(cell, &messages[i]), i == 0);
    }
    UNIT_EQUAL(atomic_load(&cell->attention), 1);
    list = trpi_mailbox_take_system(cell);
    UNIT_EQUAL(atomic_load(&cell->attention), 0);
    for (uint16_t i = 0; i < 3; i++) {
        UNIT_REQUIRE(list != NULL);
        UNIT_EQUAL(list->kind, i);
        list = list->next;
    }
    UNIT_TRUE(list == NULL);
    trpi_free(cell);
}

/* ---- many senders; the one that gets the token runs the cell --------------------------------- */

enum { TELLERS = 3, EACH = 60000 };
static trpi_cell *crowded;
static uint32_t expected[TELLERS]; /* the runner's: next number of each teller */
static uint64_t taken;

static void
run_crowded(void)
{
    trp_msg *msg, *done;

    for (;;) {
        switch (trpi_mailbox_take(crowded, &msg, &done)) {
        case TRPI_TAKE_MSG:
            trpi_free(done);
            if (msg->priv_from_generation != expected[msg->priv_from_slot]++) {
                UNIT_FAIL("messages of one teller changed their order");
            }
            taken++;
            break;
        case TRPI_TAKE_NOT_YET:
            break;
        case TRPI_TAKE_EMPTY:
            if (trpi_mailbox_go_idle(crowded, &done)) {
                trpi_free(done);
                return;
            }
            break;
        }
    }
}

static void *
teller(void *arg)
{
    uint32_t me = *(uint32_t *)arg;

    for (uint32_t i = 0; i < EACH; i++) {
        trp_msg *first = message(me), *last = first;

        first->priv_from_generation = i;
        if (i % 7 == 0 && i + 1 < EACH) { /* sometimes a chain */
            last = message(me);
            last->priv_from_generation = ++i;
            trpi_msg_next_set(first, last, __ATOMIC_RELAXED);
        }
        if (trpi_mailbox_push(crowded, first, last)) {
            run_crowded();
        }
    }
    return NULL;
}

/* UJ-12 */
static void
no_message_is_lost_and_order_holds_with_many_tellers(void)
{
    pthread_t threads[TELLERS];
    uint32_t ids[TELLERS];

    crowded = trpi_alloc_aligned(128, sizeof *crowded);
    trpi_mailbox_init(crowded);
    for (uint32_t i = 0; i < TELLERS; i++) {
        ids[i] = i;
        UNIT_REQUIRE(pthread_create(&threads[i], NULL, teller, &ids[i]) == 0);
    }
    for (uint32_t i = 0; i < TELLERS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    UNIT_EQUAL(taken, (uint64_t)TELLERS * EACH);
    UNIT_TRUE((atomic_load(&crowded->head) & TRPI_TOKEN) != 0);
    trpi_free(crowded);
}

/* The invariants that the holder of the token checks. */
static void
a_check_names_what_is_broken_in_a_mailbox(void)
{
    trpi_cell *cell = trpi_alloc_aligned(128, sizeof *cell);
    trp_msg *a = message(0), *b = message(1), *msg, *done, *stub;
    trpi_check check;

    trpi_mailbox_init(cell);
    stub = trpi_cell_stub(cell);
#define SEES(label) UNIT_TRUE(strstr(trpi_mailbox_check(cell, &check), label ": ") != NULL)
    SEES("mailbox-M4"); /* nobody has taken the token */
    UNIT_TRUE(trpi_mailbox_push(cell, a, a));
    UNIT_FALSE(trpi_mailbox_push(cell, b, b));
    UNIT_TRUE(trpi_mailbox_check(cell, &check) == NULL);
    cell->tail = (trp_msg *)((uintptr_t)stub | TRPI_DIRECT);
    SEES("mailbox-M5");
    cell->tail = stub;
    trpi_msg_next_set(b, stub, __ATOMIC_RELEASE);
    SEES("mailbox-M2");
    UNIT_EQUAL(trpi_mailbox_take(cell, &msg, &done), TRPI_TAKE_MSG);
    trpi_msg_next_set(b, a, __ATOMIC_RELEASE); /* a is the dummy now */
    SEES("mailbox-M1");
    trpi_msg_next_set(b, NULL, __ATOMIC_RELEASE);
    UNIT_TRUE(trpi_mailbox_check(cell, &check) == NULL);
    atomic_store(&cell->head, (uintptr_t)a);
    SEES("mailbox-M1");
#undef SEES
    trpi_free(a);
    trpi_free(b);
    trpi_free(cell);
}

UNIT_BEGIN("mailbox")
UNIT(the_first_push_to_an_idle_cell_gets_the_token)
UNIT(going_idle_fails_when_a_message_came)
UNIT(a_message_is_handed_over_in_the_dummy_when_nothing_waits)
UNIT(only_a_dummy_of_one_line_is_written_over)
UNIT(a_half_done_push_is_not_taken_for_empty)
UNIT(a_parked_cell_keeps_its_messages_and_wakes_at_the_next_push)
UNIT(system_messages_come_oldest_first_and_wake_the_cell_once)
UNIT(no_message_is_lost_and_order_holds_with_many_tellers)
UNIT(a_check_names_what_is_broken_in_a_mailbox)
UNIT_END

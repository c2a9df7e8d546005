/* coroutine.h - what both ways to switch stacks must do: included by coroutine_test.c for the one
 * of this machine, by coroutine_portable_test.c for ucontext's. */
#ifndef TESTS_UNIT_PATTERN_COROUTINE_H
#define TESTS_UNIT_PATTERN_COROUTINE_H

#include <fenv.h>
#include <pthread.h>
#include <setjmp.h>

#include "pattern/coroutine.h"
#include "tests/unit/unit.h"

enum { STACK_BYTES = 256 * 1024 };

typedef struct counter {
    trpi_coroutine *co;
    int turns, seen;
    double sum;
    struct counter *inner;
    jmp_buf base;
} counter;

static void
counter_open(void (*fn)(void *arg), counter *place, trpi_stack *stack)
{
    *place = (counter){ .turns = 3 };
    UNIT_REQUIRE(trpi_stack_map(STACK_BYTES, stack) == TRP_OK);
    UNIT_REQUIRE(trpi_coroutine_new(stack, fn, place, &place->co) == TRP_OK);
}

static void
counter_close(counter *c, trpi_stack *stack)
{
    trpi_coroutine_free(c->co);
    trpi_stack_unmap(stack);
}

static void
count_turns(void *arg)
{
    counter *c = arg;
    for (int i = 0; i < c->turns; i++) {
        c->seen = i + 1;
        trpi_coroutine_suspend(c->co);
    }
}

static void
it_goes_on_where_it_was_left(void)
{
    trpi_stack stack;
    counter c;
    counter_open(count_turns, &c, &stack);
    for (int i = 0; i < 3; i++) {
        UNIT_EQUAL(c.seen, i);
        UNIT_TRUE(trpi_coroutine_resume(c.co));
        UNIT_EQUAL(c.seen, i + 1);
    }
    UNIT_FALSE(trpi_coroutine_resume(c.co));
    counter_close(&c, &stack);
}

static void
one_that_never_ran_is_freed(void)
{
    trpi_stack stack, none = { NULL, NULL, 0 };
    counter c;
    counter_open(count_turns, &c, &stack);
    counter_close(&c, &stack);
    trpi_coroutine_free(NULL);
    trpi_stack_unmap(&none);
}

/* Many values live across the switch, in registers too, of both sides. */
static void
sum_up(void *arg)
{
    counter *c = arg;
    double a = c->sum, b = a * 2, d = b + a;
    int i = c->turns, j = i * 3, k = j - i, l = k * 5, m = l + k;
    while (i-- > 0) {
        trpi_coroutine_suspend(c->co);
        a += 1;
        b += a;
        d += b;
        m += j + k + l;
    }
    c->sum = a + b + d + m;
}

static void
what_each_side_holds_in_registers_stays(void)
{
    trpi_stack stack;
    counter c;
    int turns = 0, square = 1;
    double half = 1;
    counter_open(sum_up, &c, &stack);
    c.sum = 1.5;
    while (trpi_coroutine_resume(c.co)) {
        turns++;
        square += turns * turns;
        half /= 2;
    }
    UNIT_EQUAL(turns, 3);
    UNIT_EQUAL(square, 15);
    UNIT_TRUE(half == 0.125);
    /* a 4.5; b 3 + 2.5 + 3.5 + 4.5; d 4.5 + 5.5 + 9 + 13.5; m 36 + 3 * (9 + 6 + 30) */
    UNIT_TRUE(c.sum == 4.5 + 13.5 + 32.5 + 171);
    counter_close(&c, &stack);
}

/* The direction of rounding belongs to the side that sets it. */
static void
round_up(void *arg)
{
    counter *c = arg;
    (void)fesetround(FE_UPWARD);
    trpi_coroutine_suspend(c->co);
    c->seen = fegetround();
}

static void
control_words_are_kept(void)
{
    trpi_stack stack;
    counter c;
    int before = fegetround();
    counter_open(round_up, &c, &stack);
    UNIT_TRUE(trpi_coroutine_resume(c.co));
    UNIT_EQUAL(fegetround(), before);
    UNIT_FALSE(trpi_coroutine_resume(c.co));
    UNIT_EQUAL(c.seen, FE_UPWARD);
    UNIT_EQUAL(fegetround(), before);
    counter_close(&c, &stack);
}

static void
resume_the_inner_one(void *arg)
{
    counter *c = arg;
    while (trpi_coroutine_resume(c->inner->co)) {
        c->seen += c->inner->seen;
        trpi_coroutine_suspend(c->co);
    }
}

static void
one_resumes_another(void)
{
    trpi_stack stack, inner_stack;
    counter c, inner;
    counter_open(resume_the_inner_one, &c, &stack);
    counter_open(count_turns, &inner, &inner_stack);
    c.inner = &inner;
    UNIT_TRUE(trpi_coroutine_resume(c.co));
    UNIT_TRUE(trpi_coroutine_resume(c.co));
    UNIT_TRUE(trpi_coroutine_resume(c.co));
    UNIT_EQUAL(c.seen, 6);
    UNIT_FALSE(trpi_coroutine_resume(c.co));
    counter_close(&inner, &inner_stack);
    counter_close(&c, &stack);
}

/* Frames that a jump leaves, with arrays that a sanitizer marks. */
__attribute__((noinline)) static void
jump_from_depth(counter *c, int depth)
{
    volatile char frame[256];
    frame[0] = (char)depth;
    if (depth == 0) {
        _longjmp(c->base, c->turns);
    }
    if (c->turns > 0) {
        jump_from_depth(c, depth - 1);
    }
    frame[1] = frame[0];
}

static void
jump_then_count(void *arg)
{
    counter *c = arg;
    if (_setjmp(c->base) == 0) {
        trpi_coroutine_suspend(c->co);
        jump_from_depth(c, 50);
    }
    c->seen = 7;
}

static void
jumps_stay_on_its_stack_which_is_used_again(void)
{
    trpi_stack stack;
    counter c;
    counter_open(jump_then_count, &c, &stack);
    for (int i = 0; i < 3; i++) {
        UNIT_TRUE(trpi_coroutine_resume(c.co));
        UNIT_FALSE(trpi_coroutine_resume(c.co));
        UNIT_EQUAL(c.seen, 7);
        c.seen = 0;
        trpi_coroutine_free(c.co);
        UNIT_REQUIRE(trpi_coroutine_new(&stack, jump_then_count, &c, &c.co) == TRP_OK);
    }
    counter_close(&c, &stack);
}

static void *
resume_once(void *arg)
{
    UNIT_TRUE(trpi_coroutine_resume(((counter *)arg)->co));
    return NULL;
}

static void
it_moves_from_thread_to_thread(void)
{
    trpi_stack stack;
    counter c;
    counter_open(count_turns, &c, &stack);
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        UNIT_REQUIRE(pthread_create(&thread, NULL, resume_once, &c) == 0);
        pthread_join(thread, NULL);
        UNIT_EQUAL(c.seen, i + 1);
    }
    UNIT_FALSE(trpi_coroutine_resume(c.co));
    counter_close(&c, &stack);
}

#define COROUTINE_TESTS                                                                            \
    UNIT(it_goes_on_where_it_was_left)                                                             \
    UNIT(one_that_never_ran_is_freed)                                                              \
    UNIT(what_each_side_holds_in_registers_stays)                                                  \
    UNIT(control_words_are_kept)                                                                   \
    UNIT(one_resumes_another)                                                                      \
    UNIT(jumps_stay_on_its_stack_which_is_used_again)                                              \
    UNIT(it_moves_from_thread_to_thread)

#endif

/* future_list_test.c - one future made of many: zip, sequence, traverse, fold, reduce, race. */
#include <troupe/future.h>

#include "tests/unit/actor/stage.h"

#define MANY 100

static trp_system *stage;
static trp_promise *promises[MANY];
static trp_future *futures[MANY];

static void
open_many(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        UNIT_REQUIRE(trp_promise_new(stage, NULL, &promises[i]) == TRP_OK);
        futures[i] = trp_promise_future(promises[i]);
    }
}

static void
promise_keep(size_t index, int64_t number)
{
    UNIT_EQUAL(trp_promise_succeed(promises[index], &trp_i64_type, &number, sizeof number), TRP_OK);
}

static void
close_many(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        trp_promise_unref(promises[i]);
    }
}

static int64_t
number_of(const trp_msg *msg)
{
    return msg != NULL && trp_msg_is(msg, &trp_i64_type) ? *(const int64_t *)trp_msg_payload(msg)
                                                         : INT64_MIN;
}

/* Takes the future. */
static void
expect_number(trp_future *future, int64_t want)
{
    const trp_msg *value = NULL;

    UNIT_EQUAL(trp_future_result(future, 60000, &value), TRP_OK);
    UNIT_EQUAL(number_of(value), want);
    trp_future_unref(future);
}

static void
expect_failure(trp_future *future, trp_err want)
{
    UNIT_EQUAL(trp_future_result(future, 60000, NULL), want);
    trp_future_unref(future);
}

/* FUT-4 */
static void
zip_has_the_values_of_both_and_is_flat(void)
{
    trp_future *pair, *three;
    const trp_outcome *seen;

    stage = stage_open();
    open_many(3);
    UNIT_EQUAL(trp_future_zip(futures[0], futures[1], &pair), TRP_OK);
    UNIT_EQUAL(trp_future_zip(pair, futures[2], &three), TRP_OK);
    promise_keep(2, 30);
    promise_keep(1, 20);
    UNIT_TRUE(trp_future_outcome(pair) == NULL);
    promise_keep(0, 10);
    UNIT_EQUAL(trp_future_await(three, 60000), TRP_OK);
    close_many(3);
    trp_future_unref(pair); /* three keeps what it needs */
    seen = trp_future_outcome(three);
    UNIT_EQUAL(seen->count, 3);
    for (size_t i = 0; i < seen->count; i++) {
        UNIT_EQUAL(number_of(seen->values[i]), 10 * ((int64_t)i + 1));
    }
    trp_future_unref(three);
    stage_close(stage);
}

/* FUT-4 */
static void
a_sequence_keeps_the_order_of_the_list_and_fails_with_the_first_failure(void)
{
    trp_future *all;
    const trp_outcome *seen;

    stage = stage_open();
    open_many(MANY);
    UNIT_EQUAL(trp_future_sequence(stage, futures, MANY, &all), TRP_OK);
    for (size_t i = MANY; i-- > 0;) {
        promise_keep(i, (int64_t)i);
    }
    UNIT_EQUAL(trp_future_await(all, 60000), TRP_OK);
    seen = trp_future_outcome(all);
    UNIT_EQUAL(seen->count, MANY);
    for (size_t i = 0; i < seen->count; i++) {
        UNIT_EQUAL(number_of(seen->values[i]), (int64_t)i);
    }
    trp_future_unref(all);
    close_many(MANY);

    open_many(3);
    UNIT_EQUAL(trp_future_sequence(stage, futures, 3, &all), TRP_OK);
    UNIT_EQUAL(trp_promise_fail(promises[1], TRP_EPERM, NULL), TRP_OK);
    expect_failure(all, TRP_EPERM); /* at once: the others are not there */
    close_many(3);
    UNIT_EQUAL(trp_future_sequence(stage, NULL, 0, &all), TRP_OK);
    UNIT_EQUAL(trp_future_await(all, 60000), TRP_OK);
    UNIT_EQUAL(trp_future_outcome(all)->err, TRP_OK);
    UNIT_EQUAL(trp_future_outcome(all)->count, 0);
    trp_future_unref(all);
    stage_close(stage);
}

static trp_err
make_square(void *arg, size_t index, trp_future **ret_future)
{
    int64_t square = (int64_t)(index * index);

    if (arg != NULL && index == *(size_t *)arg) {
        return TRP_EIO;
    }
    return trp_future_succeeded(stage, &trp_i64_type, &square, sizeof square, ret_future);
}

static trp_err
sum_add(void *arg, const trp_msg *sum, const trp_msg *value, trp_msg **ret_sum)
{
    void *payload;
    trp_err err;

    if (arg != NULL) {
        return *(trp_err *)arg;
    }
    err = trp_msg_new(&trp_i64_type, sizeof(int64_t), ret_sum, &payload);
    if (err == TRP_OK) {
        /* the order matters; unsigned, because a hundred of them wrap */
        *(int64_t *)payload = (int64_t)((uint64_t)number_of(sum) * 2 + (uint64_t)number_of(value));
    }
    return err;
}

/* FUT-4 */
static void
traverse_makes_and_gathers_and_gives_back_what_it_made_when_it_fails(void)
{
    size_t bad = 3;
    trp_future *all;

    stage = stage_open();
    UNIT_EQUAL(trp_future_traverse(stage, 5, make_square, NULL, &all), TRP_OK);
    UNIT_EQUAL(trp_future_await(all, 60000), TRP_OK);
    UNIT_EQUAL(trp_future_outcome(all)->count, 5);
    UNIT_EQUAL(number_of(trp_future_outcome(all)->values[4]), 16);
    trp_future_unref(all);
    UNIT_EQUAL(trp_future_traverse(stage, 5, make_square, &bad, &all), TRP_EIO);
    UNIT_EQUAL(trp_future_traverse(stage, TRP_FUTURE_LIST_MAX + 1u, make_square, NULL, &all),
               TRP_ELIMIT);
    stage_close(stage);
}

/* FUT-4 */
static void
fold_goes_through_the_list_and_reduce_through_the_arrivals(void)
{
    static trp_err denied = TRP_EPERM;
    int64_t one = 1;
    trp_future *sum;

    stage = stage_open();
    open_many(3);
    UNIT_EQUAL(trp_future_fold(stage, futures, 3, &trp_i64_type, &one, sizeof one, sum_add, NULL,
                               NULL, &sum),
               TRP_OK);
    promise_keep(2, 30);
    promise_keep(1, 20);
    promise_keep(0, 10);
    expect_number(sum, ((1 * 2 + 10) * 2 + 20) * 2 + 30);
    UNIT_EQUAL(trp_future_fold(stage, futures, 3, &trp_i64_type, &one, sizeof one, sum_add, &denied,
                               NULL, &sum),
               TRP_OK);
    expect_failure(sum, TRP_EPERM);
    close_many(3);
    UNIT_EQUAL(
        trp_future_fold(stage, NULL, 0, &trp_i64_type, &one, sizeof one, sum_add, NULL, NULL, &sum),
        TRP_OK);
    expect_number(sum, 1);

    open_many(3);
    UNIT_EQUAL(trp_future_reduce(stage, futures, 3, sum_add, NULL, NULL, &sum), TRP_OK);
    promise_keep(1, 20);
    promise_keep(2, 30);
    promise_keep(0, 10);
    expect_number(sum, (20 * 2 + 30) * 2 + 10);
    close_many(3);
    UNIT_EQUAL(trp_future_reduce(stage, NULL, 0, sum_add, NULL, NULL, &sum), TRP_OK);
    expect_failure(sum, TRP_ENOENT);
    stage_close(stage);
}

/* FUT-4 */
static void
the_first_completed_wins_whatever_it_is(void)
{
    trp_future *first;

    stage = stage_open();
    open_many(2);
    UNIT_EQUAL(trp_future_first_completed(stage, futures, 2, &first), TRP_OK);
    UNIT_EQUAL(trp_promise_fail(promises[1], TRP_EIO, NULL), TRP_OK);
    promise_keep(0, 1);
    expect_failure(first, TRP_EIO);
    close_many(2);
    UNIT_EQUAL(trp_future_first_completed(stage, NULL, 0, &first), TRP_EINVAL);
    stage_close(stage);
}

static void *
keeper_thread(void *arg)
{
    size_t first = *(size_t *)arg;

    for (size_t i = first; i < MANY; i += 2) {
        promise_keep(i, (int64_t)i);
    }
    return NULL;
}

/* FUT-4; meant for the thread sanitizer */
static void
two_threads_complete_what_is_gathered(void)
{
    stage = stage_open();
    for (int round = 0; round < 20; round++) {
        size_t starts[2] = { 0, 1 };
        pthread_t threads[2];
        trp_future *all, *sum;
        const trp_outcome *seen;

        open_many(MANY);
        UNIT_EQUAL(trp_future_sequence(stage, futures, MANY, &all), TRP_OK);
        UNIT_EQUAL(trp_future_reduce(stage, futures, MANY, sum_add, NULL, NULL, &sum), TRP_OK);
        for (int i = 0; i < 2; i++) {
            UNIT_REQUIRE(pthread_create(&threads[i], NULL, keeper_thread, &starts[i]) == 0);
        }
        UNIT_EQUAL(trp_future_await(all, 60000), TRP_OK);
        UNIT_EQUAL(trp_future_await(sum, 60000), TRP_OK);
        seen = trp_future_outcome(all);
        for (size_t i = 0; i < seen->count; i++) {
            UNIT_EQUAL(number_of(seen->values[i]), (int64_t)i);
        }
        for (int i = 0; i < 2; i++) {
            pthread_join(threads[i], NULL);
        }
        trp_future_unref(all);
        trp_future_unref(sum);
        close_many(MANY);
    }
    stage_close(stage);
}

UNIT_BEGIN("future_list")
UNIT(zip_has_the_values_of_both_and_is_flat)
UNIT(a_sequence_keeps_the_order_of_the_list_and_fails_with_the_first_failure)
UNIT(traverse_makes_and_gathers_and_gives_back_what_it_made_when_it_fails)
UNIT(fold_goes_through_the_list_and_reduce_through_the_arrivals)
UNIT(the_first_completed_wins_whatever_it_is)
UNIT(two_threads_complete_what_is_gathered)
UNIT_END

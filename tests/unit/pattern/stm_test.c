/* stm_test.c - transactions one at a time, and against commits that come in between. */
#include <troupe/stm.h>

#include <pthread.h>

#include <troupe/testkit.h>

#include "base/alloc.h"
#include "tests/unit/unit.h"

static trp_stm *stm;
static trp_stm_cell *a, *b;

static void
open_cells(int64_t of_a, int64_t of_b)
{
    UNIT_REQUIRE(trp_stm_new(&stm) == TRP_OK);
    UNIT_REQUIRE(trp_stm_cell_new(stm, &of_a, sizeof of_a, &a) == TRP_OK);
    UNIT_REQUIRE(trp_stm_cell_new(stm, &of_b, sizeof of_b, &b) == TRP_OK);
}

static void
close_cells(void)
{
    trp_stm_cell_free(a);
    trp_stm_cell_free(b);
    trp_stm_free(stm);
}

static int64_t
value_of(const trp_stm_cell *cell)
{
    int64_t value;
    trp_stm_get(cell, &value);
    return value;
}

static trp_err
add_to(trp_txn *txn, trp_stm_cell *cell, int64_t amount)
{
    int64_t value = 0;
    trp_err err = trp_stm_read(txn, cell, &value);
    value += amount;
    return err != TRP_OK ? err : trp_stm_write(txn, cell, &value);
}

static trp_err
transfer(trp_txn *txn, void *arg)
{
    int64_t amount = *(const int64_t *)arg, left = 0;
    trp_err err = add_to(txn, a, -amount); /* functions compose */
    err = err != TRP_OK ? err : add_to(txn, b, amount);
    err = err != TRP_OK ? err : trp_stm_read(txn, a, &left); /* its own write */
    return err == TRP_OK && left < 0 ? TRP_ESTATE : err;
}

/* STM-1 */
static void
a_transaction_writes_all_or_nothing(void)
{
    open_cells(100, 20);
    UNIT_EQUAL(trp_stm_run(stm, transfer, &(int64_t){ 30 }, NULL), TRP_OK);
    UNIT_EQUAL(value_of(a), 70);
    UNIT_EQUAL(value_of(b), 50);
    UNIT_EQUAL(trp_stm_run(stm, transfer, &(int64_t){ 71 }, NULL), TRP_ESTATE);
    UNIT_EQUAL(value_of(a), 70);
    UNIT_EQUAL(value_of(b), 50);
    close_cells();
}

/* ---- conflicts: the function itself lets another transaction commit -------------------------- */

static trp_err
set_both(trp_txn *txn, void *arg)
{
    trp_err err = trp_stm_write(txn, a, arg);
    return err != TRP_OK ? err : trp_stm_write(txn, b, arg);
}

/* Between its two reads another one changes both cells: in its first run only. */
static trp_err
read_both(trp_txn *txn, void *arg)
{
    int64_t *seen = arg, first = -1, second = -1;
    trp_err err = trp_stm_read(txn, a, &first);
    if (trp_txn_attempt(txn) == 1) {
        UNIT_EQUAL(trp_stm_run(stm, set_both, &(int64_t){ 7 }, NULL), TRP_OK);
    }
    err = err != TRP_OK ? err : trp_stm_read(txn, b, &second);
    if (err != TRP_OK) {
        UNIT_EQUAL(err, TRP_EAGAIN);
        UNIT_EQUAL(second, -1);                               /* no value is given */
        UNIT_EQUAL(trp_stm_read(txn, a, &first), TRP_EAGAIN); /* nor any other from here on */
        UNIT_EQUAL(trp_stm_write(txn, a, &first), TRP_EAGAIN);
        return err;
    }
    UNIT_EQUAL(first, second); /* never one old and one new */
    seen[0] = first;
    seen[1] = second;
    return TRP_OK;
}

/* STM-1: a read that does not fit those before it gives nothing, and the function runs again. */
static void
what_is_read_was_there_at_one_moment(void)
{
    trp_stm_options options = TRP_STM_OPTIONS_INIT;
    int64_t seen[2] = { 0, 0 };
    uint32_t attempts = 0;
    open_cells(1, 1);
    options.ret_attempts = &attempts;
    UNIT_EQUAL(trp_stm_run(stm, read_both, seen, &options), TRP_OK);
    UNIT_TRUE(seen[0] == 7 && seen[1] == 7);
    UNIT_EQUAL(attempts, 2);
    close_cells();
}

/* One that was not read before is taken at its new value: the snapshot moves on. */
static trp_err
read_late(trp_txn *txn, void *arg)
{
    int64_t other = 9;
    if (trp_txn_attempt(txn) == 1) {
        UNIT_EQUAL(trp_stm_run(stm, set_both, &other, NULL), TRP_OK);
    }
    return trp_stm_read(txn, a, arg);
}

/* STM-1 */
static void
a_later_value_is_no_conflict_while_the_rest_stands(void)
{
    trp_stm_options options = TRP_STM_OPTIONS_INIT;
    int64_t seen = 0;
    uint32_t attempts = 0;
    open_cells(1, 1);
    options.ret_attempts = &attempts;
    UNIT_EQUAL(trp_stm_run(stm, read_late, &seen, &options), TRP_OK);
    UNIT_EQUAL(seen, 9);
    UNIT_EQUAL(attempts, 1);
    close_cells();
}

/* Write skew: reads both, writes one; another one does the same the other way round. */
static trp_err
set_b_from_a(trp_txn *txn, void *arg)
{
    int64_t of_a = 0, of_b = 0;
    trp_err err = trp_stm_read(txn, a, &of_a);
    (void)arg;
    err = err != TRP_OK ? err : trp_stm_read(txn, b, &of_b);
    of_b = of_a + of_b > 0 ? 0 : of_b;
    return err != TRP_OK ? err : trp_stm_write(txn, b, &of_b);
}

static trp_err
set_a_from_b(trp_txn *txn, void *arg)
{
    int64_t of_a = 0, of_b = 0;
    trp_err err = trp_stm_read(txn, a, &of_a);
    err = err != TRP_OK ? err : trp_stm_read(txn, b, &of_b);
    if (trp_txn_attempt(txn) == 1) {
        UNIT_EQUAL(trp_stm_run(stm, set_b_from_a, NULL, NULL), TRP_OK);
    }
    *(int64_t *)arg = of_a + of_b;
    of_a = of_a + of_b > 1 ? 0 : of_a;
    return err != TRP_OK ? err : trp_stm_write(txn, a, &of_a);
}

/* STM-1: a commit that has only read what another one wrote is a conflict, too. */
static void
two_that_read_what_the_other_writes_do_not_both_commit(void)
{
    int64_t seen = 0;
    open_cells(1, 1);
    UNIT_EQUAL(trp_stm_run(stm, set_a_from_b, &seen, NULL), TRP_OK);
    UNIT_EQUAL(seen, 1); /* of the second run: b is 0 */
    UNIT_EQUAL(value_of(a) + value_of(b), 1);
    close_cells();
}

static trp_err
never_fits(trp_txn *txn, void *arg)
{
    uint32_t *runs = arg;
    int64_t value;
    ++*runs;
    trp_err err = trp_stm_read(txn, a, &value);
    UNIT_EQUAL(trp_stm_run(stm, set_both, &(int64_t){ 3 }, NULL), TRP_OK);
    return err != TRP_OK ? err : trp_stm_write(txn, a, &value);
}

/* STM-1 */
static void
attempts_have_a_limit_and_an_error(void)
{
    trp_stm_options options = TRP_STM_OPTIONS_INIT;
    uint32_t runs = 0, attempts = 0;
    open_cells(1, 1);
    options.attempts_max = 5;
    options.ret_attempts = &attempts;
    UNIT_EQUAL(trp_stm_run(stm, never_fits, &runs, &options), TRP_ELIMIT);
    UNIT_EQUAL(runs, 5);
    UNIT_EQUAL(attempts, 5);
    UNIT_EQUAL(value_of(a), 3);
    close_cells();
}

static trp_err
swallow(trp_txn *txn, void *arg)
{
    int64_t value = 0;
    ++*(uint32_t *)arg;
    (void)!trp_stm_read(txn, a, &value);
    if (trp_txn_attempt(txn) == 1) {
        UNIT_EQUAL(trp_stm_run(stm, set_both, &(int64_t){ 3 }, NULL), TRP_OK);
    }
    (void)!trp_stm_read(txn, b, &value);
    (void)!trp_stm_write(txn, a, &(int64_t){ 99 });
    return TRP_OK; /* whatever came */
}

/* STM-1: a function that ignores a conflict does not commit what it made of it. */
static void
a_conflict_that_is_ignored_runs_again(void)
{
    uint32_t runs = 0;
    open_cells(1, 1);
    UNIT_EQUAL(trp_stm_run(stm, swallow, &runs, NULL), TRP_OK);
    UNIT_EQUAL(runs, 2);
    close_cells();
}

/* ---- effects --------------------------------------------------------------------------------- */

static int called, released;
static void
count_call(void *arg)
{
    called = called * 10 + *(const int *)arg;
}
static void
count_release(void *arg)
{
    released = released * 10 + *(const int *)arg;
}

static trp_err
with_effects(trp_txn *txn, void *arg)
{
    static int one = 1, two = 2;
    int64_t value;
    trp_err err = trp_txn_on_commit(txn, count_call, count_release, &one);
    err = err != TRP_OK ? err : trp_stm_read(txn, a, &value);
    if (trp_txn_attempt(txn) == 1) {
        UNIT_EQUAL(trp_stm_run(stm, set_both, &(int64_t){ 3 }, NULL), TRP_OK);
    }
    err = err != TRP_OK ? err : trp_stm_read(txn, b, &value);
    err = err != TRP_OK ? err : trp_txn_on_commit(txn, count_call, count_release, &two);
    return err != TRP_OK ? err : *(const trp_err *)arg;
}

/* AGENT-4: effects happen once, in their order, and only for the run that commits. */
static void
effects_happen_when_it_commits(void)
{
    open_cells(1, 1);
    called = released = 0;
    UNIT_EQUAL(trp_stm_run(stm, with_effects, &(trp_err){ TRP_OK }, NULL), TRP_OK);
    UNIT_EQUAL(called, 12);
    UNIT_EQUAL(released, 112); /* that of the first run, too */
    called = released = 0;
    UNIT_EQUAL(trp_stm_run(stm, with_effects, &(trp_err){ TRP_ESTATE }, NULL), TRP_ESTATE);
    UNIT_EQUAL(called, 0);
    UNIT_EQUAL(released, 112);
    close_cells();
}

static trp_testkit *kit;
static trp_err
with_tell(trp_txn *txn, void *arg)
{
    trp_ref to = trp_probe_ref(trp_testkit_probe(kit)), nobody = TRP_REF_NONE;
    trp_err err =
        trp_txn_tell(txn, trp_testkit_system(kit), to, nobody, &trp_i64_type, &(int64_t){ 5 }, 0);
    return err != TRP_OK ? err : *(const trp_err *)arg;
}

/* AGENT-4 */
static void
a_tell_of_a_transaction_is_sent_when_it_commits(void)
{
    trp_testkit_options options = TRP_TESTKIT_OPTIONS_INIT;
    options.clock = TRP_CLOCK_MANUAL;
    options.on_fail = TRP_FAIL_RETURN;
    UNIT_REQUIRE(trp_testkit_open(&options, &kit) == TRP_OK);
    open_cells(1, 1);
    UNIT_EQUAL(trp_stm_run(stm, with_tell, &(trp_err){ TRP_ESTATE }, NULL), TRP_ESTATE);
    UNIT_TRUE(trp_probe_expect_none(trp_testkit_probe(kit), 0));
    UNIT_EQUAL(trp_stm_run(stm, with_tell, &(trp_err){ TRP_OK }, NULL), TRP_OK);
    trp_probe_expect(trp_testkit_probe(kit), TRP_TEST_TIME, &trp_i64_type, &(int64_t){ 5 }, 8);
    UNIT_EQUAL(trp_testkit_failures(kit), 0);
    UNIT_EQUAL(trp_testkit_close(kit), TRP_OK);
    close_cells();
}

/* ---- limits ---------------------------------------------------------------------------------- */

static trp_stm_cell **many;
static uint32_t many_count;
static trp_err
touch_many(trp_txn *txn, void *arg)
{
    trp_err err = TRP_OK;
    (void)arg;
    for (uint32_t i = 0; i < many_count && err == TRP_OK; i++) {
        err = add_to(txn, many[i], i + 1);
    }
    return err;
}
static trp_err
many_effects(trp_txn *txn, void *arg)
{
    trp_err err = TRP_OK;
    for (uint32_t i = 0; i < *(const uint32_t *)arg && err == TRP_OK; i++) {
        err = trp_txn_on_commit(txn, NULL, NULL, NULL);
    }
    return err;
}

/* STM-1 */
static void
cells_and_effects_of_a_transaction_have_limits(void)
{
    int64_t value;
    many = trpi_alloc((TRP_STM_CELLS_MAX + 1) * sizeof *many);
    UNIT_REQUIRE(many != NULL);
    open_cells(0, 0);
    for (uint32_t i = 0; i <= TRP_STM_CELLS_MAX; i++) {
        UNIT_REQUIRE(trp_stm_cell_new(stm, NULL, sizeof(int64_t), &many[i]) == TRP_OK);
    }
    many_count = TRP_STM_CELLS_MAX;
    UNIT_EQUAL(trp_stm_run(stm, touch_many, NULL, NULL), TRP_OK);
    many_count = 100; /* the index is another one */
    UNIT_EQUAL(trp_stm_run(stm, touch_many, NULL, NULL), TRP_OK);
    many_count = TRP_STM_CELLS_MAX + 1;
    UNIT_EQUAL(trp_stm_run(stm, touch_many, NULL, NULL), TRP_ELIMIT);
    for (uint32_t i = 0; i <= TRP_STM_CELLS_MAX; i++) {
        trp_stm_get(many[i], &value);
        UNIT_EQUAL(value, i < 100 ? 2 * (i + 1) : i < TRP_STM_CELLS_MAX ? i + 1 : 0);
        trp_stm_cell_free(many[i]);
    }
    trpi_free(many);
    UNIT_EQUAL(trp_stm_run(stm, many_effects, &(uint32_t){ TRP_STM_EFFECTS_MAX }, NULL), TRP_OK);
    UNIT_EQUAL(trp_stm_run(stm, many_effects, &(uint32_t){ TRP_STM_EFFECTS_MAX + 1 }, NULL),
               TRP_ELIMIT);
    close_cells();
}

static trp_err
large_twice(trp_txn *txn, void *arg)
{
    trp_stm_cell *cell = arg;
    static char value[TRP_STM_CELL_BYTES_MAX];
    trp_err err = trp_stm_read(txn, cell, value);
    value[0]++;
    value[sizeof value - 1]++;
    err = err != TRP_OK ? err : trp_stm_write(txn, cell, value);
    return err != TRP_OK ? err : trp_stm_read(txn, cell, value);
}

/* STM-1 */
static void
cells_have_sizes_up_to_a_limit(void)
{
    static char value[TRP_STM_CELL_BYTES_MAX];
    trp_stm_cell *cell = NULL;
    open_cells(0, 0);
    UNIT_EQUAL(trp_stm_cell_new(stm, "abc", 3, &cell), TRP_OK);
    trp_stm_get(cell, value);
    UNIT_TRUE(memcmp(value, "abc\0", 4) == 0);
    trp_stm_cell_free(cell);
    cell = NULL;
    UNIT_EQUAL(trp_stm_cell_new(stm, NULL, 0, &cell), TRP_EINVAL);
    UNIT_EQUAL(trp_stm_cell_new(stm, NULL, TRP_STM_CELL_BYTES_MAX + 1, &cell), TRP_EINVAL);
    UNIT_TRUE(cell == NULL);
    UNIT_EQUAL(trp_stm_cell_new(stm, NULL, TRP_STM_CELL_BYTES_MAX, &cell), TRP_OK);
    UNIT_EQUAL(trp_stm_run(stm, large_twice, cell, NULL), TRP_OK);
    trp_stm_get(cell, value);
    UNIT_TRUE(value[0] == 1 && value[TRP_STM_CELL_BYTES_MAX - 1] == 1 && value[1] == 0);
    trp_stm_cell_free(cell);
    close_cells();
}

static trp_err
stranger(trp_txn *txn, void *arg)
{
    int64_t value;
    return trp_stm_read(txn, arg, &value);
}

/* STM-1 */
static void
misuse_and_lack_of_memory_are_errors(void)
{
    trp_stm_options options = TRP_STM_OPTIONS_INIT;
    trp_stm *other;
    trp_stm_cell *theirs;
    open_cells(5, 5);
    UNIT_EQUAL(trp_stm_new(&other), TRP_OK);
    UNIT_EQUAL(trp_stm_cell_new(other, NULL, 8, &theirs), TRP_OK);
    UNIT_EQUAL(trp_stm_run(stm, stranger, theirs, NULL), TRP_EINVAL);
    options.size = 3;
    UNIT_EQUAL(trp_stm_run(stm, stranger, a, &options), TRP_EINVAL);
    UNIT_EQUAL(trp_stm_run(NULL, stranger, a, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_stm_run(stm, NULL, a, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_stm_new(NULL), TRP_EINVAL);
    trpi_alloc_fail_here_after(0);
    UNIT_EQUAL(trp_stm_run(stm, many_effects, &(uint32_t){ 1 }, NULL), TRP_ENOMEM);
    trpi_alloc_fail_here_after(-1);
    UNIT_EQUAL(trp_stm_run(stm, transfer, &(int64_t){ 1 }, NULL), TRP_OK); /* needs none */
    trp_stm_cell_free(theirs);
    trp_stm_free(other);
    trp_stm_free(NULL);
    trp_stm_cell_free(NULL);
    close_cells();
}

/* ---- threads --------------------------------------------------------------------------------- */

typedef struct pair {
    int64_t left, right;
} pair;
static trp_stm_cell *both;
static _Atomic bool stop_readers;

static void *
reader_run(void *arg)
{
    pair seen = { 0, 0 }, before = { 0, 0 };
    (void)arg;
    while (!stop_readers) {
        trp_stm_get(both, &seen);
        UNIT_EQUAL(seen.left, seen.right);
        UNIT_TRUE(seen.left >= before.left);
        before = seen;
    }
    return NULL;
}
static trp_err
add_pair(trp_txn *txn, void *arg)
{
    pair value = { 0, 0 };
    trp_err err = trp_stm_read(txn, both, &value);
    (void)arg;
    value.left++;
    value.right++;
    return err != TRP_OK ? err : trp_stm_write(txn, both, &value);
}

/* STM-2 MEM-4: a value is seen whole, and never an older one after a newer one. */
static void
a_value_is_read_whole_while_others_commit(void)
{
    pthread_t thread;
    pair seen;
    open_cells(0, 0);
    UNIT_REQUIRE(trp_stm_cell_new(stm, NULL, sizeof(pair), &both) == TRP_OK);
    stop_readers = false;
    UNIT_REQUIRE(pthread_create(&thread, NULL, reader_run, NULL) == 0);
    for (int i = 0; i < 20000; i++) {
        UNIT_EQUAL(trp_stm_run(stm, add_pair, NULL, NULL), TRP_OK);
    }
    stop_readers = true;
    (void)pthread_join(thread, NULL);
    trp_stm_get(both, &seen);
    UNIT_EQUAL(seen.left, 20000);
    trp_stm_cell_free(both);
    close_cells();
}

UNIT_BEGIN("stm")
UNIT(a_transaction_writes_all_or_nothing)
UNIT(what_is_read_was_there_at_one_moment)
UNIT(a_later_value_is_no_conflict_while_the_rest_stands)
UNIT(two_that_read_what_the_other_writes_do_not_both_commit)
UNIT(attempts_have_a_limit_and_an_error)
UNIT(a_conflict_that_is_ignored_runs_again)
UNIT(effects_happen_when_it_commits)
UNIT(a_tell_of_a_transaction_is_sent_when_it_commits)
UNIT(cells_and_effects_of_a_transaction_have_limits)
UNIT(cells_have_sizes_up_to_a_limit)
UNIT(misuse_and_lack_of_memory_are_errors)
UNIT(a_value_is_read_whole_while_others_commit)
UNIT_END

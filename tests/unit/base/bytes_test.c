/* Counted slices: cut and joined without copying, looked through across pieces, freed once. */
#include "base/bytes.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "tests/unit/draw.h"

static trp_bytes
copied(const char *text)
{
    trp_bytes bytes = TRP_BYTES_EMPTY;

    UNIT_EQUAL(trp_bytes_copy(text, strlen(text), &bytes), TRP_OK);
    return bytes;
}

static bool
is_text(trp_bytes bytes, const char *text)
{
    char got[512] = "";
    size_t count = trp_bytes_copy_out(bytes, 0, got, sizeof got);

    return count == trp_bytes_length(bytes) && count == strlen(text) &&
           memcmp(got, text, count) == 0;
}

static void
count_release(void *data, void *arg)
{
    (void)data;
    (*(unsigned *)arg)++;
}

/* IO-07 */
static void
a_copy_does_not_follow_the_memory_it_was_made_of(void)
{
    char text[] = "first";
    trp_bytes bytes = copied(text);

    text[0] = 'w';
    UNIT_TRUE(is_text(bytes, "first"));
    trp_bytes_unref(&bytes);
    UNIT_EQUAL(trp_bytes_length(bytes), 0);
    trp_bytes_unref(&bytes);
    trp_bytes_unref(NULL);
}

/* IO-07: every piece of the result points into the memory of its origin */
static void
cutting_and_joining_copy_nothing(void)
{
    trp_bytes a = copied("hello "), b = copied("world"), joined = TRP_BYTES_EMPTY, cut;
    const uint8_t *in_a = trp_bytes_flat(a), *in_b = trp_bytes_flat(b);
    trp_bytes_part parts[4];

    UNIT_EQUAL(trp_bytes_join(a, b, &joined), TRP_OK);
    UNIT_TRUE(is_text(joined, "hello world"));
    UNIT_TRUE(trp_bytes_flat(joined) == NULL);
    UNIT_EQUAL(trp_bytes_parts(joined, parts, 4), 2);
    UNIT_TRUE(parts[0].data == in_a && parts[0].bytes == 6);
    UNIT_TRUE(parts[1].data == in_b && parts[1].bytes == 5);

    trpi_alloc_fail_here_after(0); /* a cut takes no memory at all */
    cut = trp_bytes_slice(joined, 4, 8);
    trpi_alloc_fail_here_after(-1);
    UNIT_TRUE(is_text(cut, "o wo"));
    UNIT_EQUAL(trp_bytes_parts(cut, parts, 4), 2);
    UNIT_TRUE(parts[0].data == in_a + 4 && parts[1].data == in_b);
    trp_bytes_unref(&joined);
    trp_bytes_unref(&a);
    UNIT_TRUE(is_text(cut, "o wo"));
    trp_bytes_skip(&cut, 2);
    UNIT_TRUE(trp_bytes_flat(cut) == in_b);
    trp_bytes_unref(&b);
    UNIT_TRUE(is_text(cut, "wo"));
    trp_bytes_unref(&cut);
}

/* IO-07 */
static void
takes_and_drops_from_both_ends_leave_out_what_is_not_there(void)
{
    trp_bytes bytes = copied("abcdef");
    trp_bytes cuts[] = { trp_bytes_take(bytes, 2),       trp_bytes_drop(bytes, 4),
                         trp_bytes_take_right(bytes, 2), trp_bytes_drop_right(bytes, 4),
                         trp_bytes_take(bytes, 100),     trp_bytes_take_right(bytes, 100) };
    const char *want[] = { "ab", "ef", "ef", "ab", "abcdef", "abcdef" };

    for (unsigned i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        UNIT_TRUE(is_text(cuts[i], want[i]));
        trp_bytes_unref(&cuts[i]);
    }
    cuts[0] = trp_bytes_drop(bytes, 6);
    UNIT_TRUE(cuts[0].priv_owner == NULL);
    cuts[0] = trp_bytes_slice(bytes, 4, 2);
    UNIT_EQUAL(trp_bytes_length(cuts[0]), 0);
    cuts[0] = trp_bytes_drop_right(bytes, 6);
    UNIT_EQUAL(trp_bytes_length(cuts[0]), 0);
    cuts[0] = trp_bytes_split(&bytes, 4);
    UNIT_TRUE(is_text(cuts[0], "abcd"));
    UNIT_TRUE(is_text(bytes, "ef"));
    trp_bytes_unref(&cuts[0]);
    cuts[0] = trp_bytes_split(&bytes, 9);
    UNIT_TRUE(is_text(cuts[0], "ef"));
    UNIT_TRUE(bytes.priv_owner == NULL);
    trp_bytes_unref(&cuts[0]);
}

/* IO-07 */
static void
compact_keeps_only_the_memory_of_its_own_bytes(void)
{
    unsigned released = 0;
    trp_bytes bytes, cut;
    const uint8_t *place;

    UNIT_EQUAL(trp_bytes_wrap("0123456789", 10, count_release, &released, &bytes), TRP_OK);
    cut = trp_bytes_slice(bytes, 2, 5);
    trp_bytes_unref(&bytes);
    UNIT_EQUAL(released, 0);
    trpi_alloc_fail_here_after(0);
    UNIT_EQUAL(trp_bytes_compact(&cut), TRP_ENOMEM);
    trpi_alloc_fail_here_after(-1);
    UNIT_TRUE(is_text(cut, "234"));
    UNIT_EQUAL(trp_bytes_compact(&cut), TRP_OK);
    UNIT_EQUAL(released, 1);
    UNIT_TRUE(is_text(cut, "234"));
    place = trp_bytes_flat(cut);
    UNIT_EQUAL(trp_bytes_compact(&cut), TRP_OK); /* it is already */
    UNIT_TRUE(trp_bytes_flat(cut) == place);
    trp_bytes_unref(&cut);
}

static void
wrapped_memory_is_released_once_with_the_last_handle(void)
{
    unsigned released = 0;
    trp_bytes bytes, second, joined = TRP_BYTES_EMPTY;

    UNIT_EQUAL(trp_bytes_wrap("wrapped", 7, count_release, &released, &bytes), TRP_OK);
    second = trp_bytes_ref(bytes);
    UNIT_EQUAL(trp_bytes_append(&joined, bytes), TRP_OK);
    UNIT_EQUAL(trp_bytes_append(&joined, TRP_BYTES_LITERAL(" and literal")), TRP_OK);
    trp_bytes_unref(&bytes);
    trp_bytes_unref(&second);
    UNIT_TRUE(is_text(joined, "wrapped and literal"));
    UNIT_EQUAL(released, 0);
    trp_bytes_unref(&joined);
    UNIT_EQUAL(released, 1);
    UNIT_EQUAL(trp_bytes_wrap("none", 0, count_release, &released, &bytes), TRP_OK);
    UNIT_EQUAL(released, 2);
    trpi_alloc_fail_here_after(0);
    UNIT_EQUAL(trp_bytes_wrap("static", 6, NULL, NULL, &bytes), TRP_OK);
    trpi_alloc_fail_here_after(0);
    UNIT_EQUAL(trp_bytes_wrap("refused", 7, count_release, &released, &second), TRP_ENOMEM);
    trpi_alloc_fail_here_after(-1);
    UNIT_EQUAL(released, 2); /* it is still the caller's */
    UNIT_TRUE(is_text(bytes, "static"));
    trp_bytes_unref(&bytes);
}

static void
memory_that_was_skipped_is_freed_before_the_rest(void)
{
    unsigned released = 0;
    trp_bytes all = TRP_BYTES_EMPTY, piece;

    for (unsigned i = 0; i < 100; i++) {
        UNIT_EQUAL(trp_bytes_wrap("0123456789", 10, count_release, &released, &piece), TRP_OK);
        UNIT_REQUIRE(trp_bytes_append(&all, piece) == TRP_OK);
        trp_bytes_unref(&piece);
    }
    trp_bytes_skip(&all, 9);
    UNIT_EQUAL(released, 0);
    trp_bytes_skip(&all, 1);
    UNIT_EQUAL(released, 1);
    trp_bytes_skip(&all, 505);
    UNIT_EQUAL(released, 51);
    UNIT_EQUAL(trp_bytes_length(all), 485);
    trp_bytes_skip(&all, 480);
    UNIT_EQUAL(released, 99);
    UNIT_TRUE(is_text(all, "56789"));
    trp_bytes_skip(&all, 5);
    UNIT_EQUAL(released, 100);
}

/* A stream that is appended to behind and cut off in front keeps a bounded memory. */
static void
a_long_stream_holds_no_more_than_what_is_between_its_ends(void)
{
    unsigned released = 0, appended = 0;
    trp_bytes stream = TRP_BYTES_EMPTY, piece;

    for (; appended < 20000; appended++) {
        UNIT_REQUIRE(trp_bytes_wrap("0123456789", 10, count_release, &released, &piece) == TRP_OK);
        UNIT_REQUIRE(trp_bytes_append(&stream, piece) == TRP_OK);
        trp_bytes_unref(&piece);
        if (appended >= 10) {
            trp_bytes_skip(&stream, 10);
        }
        UNIT_REQUIRE(appended - released <= 11);
    }
    UNIT_EQUAL(trp_bytes_length(stream), 100);
    trp_bytes_unref(&stream);
    UNIT_EQUAL(released, appended);
}

static void
what_was_cut_apart_is_one_piece_when_it_is_joined_again(void)
{
    trp_bytes bytes = copied("abcdef"), front = trp_bytes_split(&bytes, 2), middle;
    trp_bytes all = TRP_BYTES_EMPTY;

    trpi_alloc_fail_here_after(0);
    UNIT_EQUAL(trp_bytes_append(&front, bytes), TRP_OK);
    trpi_alloc_fail_here_after(-1);
    UNIT_TRUE(trp_bytes_flat(front) != NULL && is_text(front, "abcdef"));
    UNIT_EQUAL(trp_bytes_join(TRP_BYTES_LITERAL(">"), TRP_BYTES_LITERAL(" "), &all), TRP_OK);
    for (unsigned i = 0; i < 6; i++) {
        middle = trp_bytes_slice(front, i, i + 1);
        UNIT_EQUAL(trp_bytes_append(&all, middle), TRP_OK);
        trp_bytes_unref(&middle);
    }
    trp_bytes_unref(&front);
    trp_bytes_unref(&bytes);
    UNIT_TRUE(is_text(all, "> abcdef"));
    {
        trp_bytes_part parts[9];

        UNIT_EQUAL(trp_bytes_parts(all, parts, 9), 3);
    }
    trp_bytes_unref(&all);
}

static void
a_handle_may_be_appended_to_itself_and_to_what_shares_it(void)
{
    trp_bytes bytes = copied("ab"), second;

    UNIT_EQUAL(trp_bytes_append(&bytes, bytes), TRP_OK);
    UNIT_TRUE(is_text(bytes, "abab"));
    UNIT_EQUAL(trp_bytes_append(&bytes, bytes), TRP_OK);
    UNIT_TRUE(is_text(bytes, "abababab"));
    second = trp_bytes_ref(bytes);
    UNIT_EQUAL(trp_bytes_append(&bytes, TRP_BYTES_LITERAL("!")), TRP_OK);
    UNIT_TRUE(is_text(second, "abababab")); /* it did not change */
    UNIT_TRUE(is_text(bytes, "abababab!"));
    trp_bytes_unref(&bytes);
    UNIT_EQUAL(trp_bytes_append(&second, TRP_BYTES_EMPTY), TRP_OK);
    UNIT_TRUE(is_text(second, "abababab"));
    trp_bytes_unref(&second);
}

static void
without_memory_nothing_is_lost(void)
{
    trp_bytes a = copied("left"), b = copied("right"), joined = TRP_BYTES_EMPTY;

    trpi_alloc_fail_here_after(0);
    UNIT_EQUAL(trp_bytes_append(&a, b), TRP_ENOMEM);
    trpi_alloc_fail_here_after(0);
    UNIT_EQUAL(trp_bytes_join(a, b, &joined), TRP_ENOMEM);
    trpi_alloc_fail_here_after(0);
    UNIT_EQUAL(trp_bytes_copy("x", 1, &joined), TRP_ENOMEM);
    trpi_alloc_fail_here_after(-1);
    UNIT_TRUE(is_text(a, "left") && is_text(b, "right"));
    UNIT_EQUAL(trp_bytes_length(joined), 0);
    trp_bytes_unref(&a);
    trp_bytes_unref(&b);
}

/* IO-10 */
static void
at_two_gibibytes_it_takes_and_one_past_it_refuses(void)
{
    static const uint8_t zeros[1 << 20];
    trp_bytes mebi, bytes = TRP_BYTES_EMPTY, cut;
    uint8_t *data;

    UNIT_EQUAL(trp_bytes_wrap(zeros, sizeof zeros, NULL, NULL, &mebi), TRP_OK);
    for (unsigned i = 0; i < 2048; i++) {
        UNIT_REQUIRE(trp_bytes_append(&bytes, mebi) == TRP_OK);
    }
    UNIT_EQUAL(trp_bytes_length(bytes), TRP_BYTES_MAX);
    UNIT_EQUAL(trp_bytes_append(&bytes, TRP_BYTES_LITERAL("x")), TRP_EMSGSIZE);
    UNIT_EQUAL(trp_bytes_new((size_t)TRP_BYTES_MAX + 1, &data, &cut), TRP_EMSGSIZE);
    trp_bytes_skip(&bytes, TRP_BYTES_MAX - 1);
    UNIT_EQUAL(trp_bytes_append(&bytes, TRP_BYTES_LITERAL("x")), TRP_OK);
    cut = trp_bytes_drop(bytes, 1);
    UNIT_TRUE(is_text(cut, "x"));
    trp_bytes_unref(&cut);
    trp_bytes_unref(&bytes);
}

/* ---- against a model ------------------------------------------------------------------------- */

#define MODEL_MAX 4096u

typedef struct model {
    trp_bytes bytes;
    char text[MODEL_MAX];
    size_t count;
} model;

static void
model_check(const model *m, unit_draw *draw)
{
    trp_bytes_part parts[64];
    static char got[MODEL_MAX];
    size_t in_parts = 0, from = unit_drawn(draw, (uint32_t)m->count + 1), count;
    char needle[3] = { (char)('a' + unit_drawn(draw, 3)), (char)('a' + unit_drawn(draw, 3)), 0 };
    size_t needle_bytes = 1 + unit_drawn(draw, 2);
    const char *hit;

    UNIT_REQUIRE(trp_bytes_length(m->bytes) == m->count);
    count = trp_bytes_copy_out(m->bytes, from, got, sizeof got);
    UNIT_REQUIRE(count == m->count - from && memcmp(got, m->text + from, count) == 0);
    count = trp_bytes_parts(m->bytes, parts, 64);
    for (size_t i = 0; i < count; i++) {
        UNIT_REQUIRE(memcmp(parts[i].data, m->text + in_parts, parts[i].bytes) == 0);
        in_parts += parts[i].bytes;
    }
    UNIT_REQUIRE(count == 64 || in_parts == m->count);
    hit = memmem(m->text + from, m->count - from, needle, needle_bytes);
    UNIT_REQUIRE(trp_bytes_find(m->bytes, from, needle, needle_bytes) ==
                 (hit == NULL ? TRP_BYTES_NOT_FOUND : (size_t)(hit - m->text)));
}

static void
model_step(model *all, size_t models, unit_draw *draw)
{
    model *m = &all[unit_drawn(draw, (uint32_t)models)],
          *other = &all[unit_drawn(draw, (uint32_t)models)];
    uint32_t n = unit_drawn(draw, (uint32_t)m->count + 2);
    trp_bytes cut;

    switch (unit_drawn(draw, 6)) {
    case 0:
        if (m->count + other->count <= MODEL_MAX) {
            UNIT_REQUIRE(trp_bytes_append(&m->bytes, other->bytes) == TRP_OK);
            memmove(m->text + m->count, other->text, other->count);
            m->count += other->count;
        }
        break;
    case 1:
        trp_bytes_skip(&m->bytes, n);
        n = n < m->count ? n : (uint32_t)m->count;
        m->count -= n;
        memmove(m->text, m->text + n, m->count);
        break;
    case 2:
        cut = trp_bytes_take(m->bytes, n);
        trp_bytes_unref(&m->bytes);
        m->bytes = cut;
        m->count = n < m->count ? n : m->count;
        break;
    case 3:
        UNIT_REQUIRE(unit_drawn(draw, 4) != 0 || trp_bytes_compact(&m->bytes) == TRP_OK);
        break;
    case 4:
        cut = trp_bytes_ref(other->bytes);
        trp_bytes_unref(&m->bytes);
        m->bytes = cut;
        memmove(m->text, other->text, other->count);
        m->count = other->count;
        break;
    default:
        if (m->count + 40 <= MODEL_MAX) {
            char fresh[40];

            n = 1 + unit_drawn(draw, sizeof fresh);
            for (uint32_t i = 0; i < n; i++) {
                fresh[i] = (char)('a' + unit_drawn(draw, 3));
            }
            UNIT_REQUIRE(trp_bytes_copy(fresh, n, &cut) == TRP_OK);
            UNIT_REQUIRE(trp_bytes_append(&m->bytes, cut) == TRP_OK);
            trp_bytes_unref(&cut);
            memcpy(m->text + m->count, fresh, n);
            m->count += n;
        }
        break;
    }
    model_check(m, draw);
}

static void
random_cuts_and_joins_agree_with_an_array(void)
{
    unit_draw draw = unit_draw_begin("tests/unit/base/base_tests", "bytes_test");
    static model all[4];

    for (unsigned i = 0; i < 20000; i++) {
        model_step(all, 4, &draw);
    }
    for (unsigned i = 0; i < 4; i++) {
        UNIT_EQUAL(trp_bytes_compare(all[i].bytes, all[i].bytes), 0);
        trp_bytes_unref(&all[i].bytes);
        all[i].count = 0;
    }
}

static void
compare_orders_as_memcmp_does_across_pieces(void)
{
    trp_bytes a = copied("ab"), b = copied("abc"), joined = TRP_BYTES_EMPTY;

    UNIT_EQUAL(trp_bytes_append(&joined, TRP_BYTES_LITERAL("a")), TRP_OK);
    UNIT_EQUAL(trp_bytes_append(&joined, TRP_BYTES_LITERAL("b")), TRP_OK);
    UNIT_TRUE(trp_bytes_equal(a, joined));
    UNIT_TRUE(trp_bytes_compare(joined, b) < 0);
    UNIT_TRUE(trp_bytes_compare(b, joined) > 0);
    UNIT_TRUE(trp_bytes_compare(TRP_BYTES_LITERAL("b"), joined) > 0);
    UNIT_FALSE(trp_bytes_equal(TRP_BYTES_LITERAL("ac"), joined));
    UNIT_TRUE(trp_bytes_equal(TRP_BYTES_EMPTY, TRP_BYTES_LITERAL("")));
    UNIT_EQUAL(trp_bytes_find(joined, 2, "", 0), 2);
    UNIT_EQUAL(trp_bytes_find(joined, 3, "", 0), TRP_BYTES_NOT_FOUND);
    trp_bytes_unref(&a);
    trp_bytes_unref(&b);
    trp_bytes_unref(&joined);
}

/* ---- threads --------------------------------------------------------------------------------- */

#define THREADS 4
static _Atomic unsigned released_by_threads;

static void
count_thread_release(void *data, void *arg)
{
    (void)data;
    (void)arg;
    atomic_fetch_add(&released_by_threads, 1);
}

static void *
handles_churn(void *arg)
{
    trp_bytes *mine = arg;

    for (unsigned i = 0; i < 2000; i++) {
        trp_bytes second = trp_bytes_ref(*mine), cut = trp_bytes_slice(second, i % 20, 25);

        UNIT_REQUIRE(trp_bytes_append(&second, cut) == TRP_OK);
        trp_bytes_unref(&cut);
        trp_bytes_unref(&second);
    }
    trp_bytes_unref(mine);
    return NULL;
}

static void
threads_share_memory_that_the_last_one_frees(void)
{
    pthread_t threads[THREADS];
    trp_bytes handles[THREADS], bytes = TRP_BYTES_EMPTY, piece;

    for (unsigned i = 0; i < 3; i++) {
        UNIT_EQUAL(trp_bytes_wrap("0123456789", 10, count_thread_release, NULL, &piece), TRP_OK);
        UNIT_EQUAL(trp_bytes_append(&bytes, piece), TRP_OK);
        trp_bytes_unref(&piece);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        handles[i] = trp_bytes_ref(bytes);
    }
    trp_bytes_unref(&bytes);
    for (unsigned i = 0; i < THREADS; i++) {
        UNIT_REQUIRE(pthread_create(&threads[i], NULL, handles_churn, &handles[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    UNIT_EQUAL(atomic_load(&released_by_threads), 3);
}

UNIT_BEGIN("bytes")
UNIT(a_copy_does_not_follow_the_memory_it_was_made_of)
UNIT(cutting_and_joining_copy_nothing)
UNIT(takes_and_drops_from_both_ends_leave_out_what_is_not_there)
UNIT(compact_keeps_only_the_memory_of_its_own_bytes)
UNIT(wrapped_memory_is_released_once_with_the_last_handle)
UNIT(memory_that_was_skipped_is_freed_before_the_rest)
UNIT(a_long_stream_holds_no_more_than_what_is_between_its_ends)
UNIT(what_was_cut_apart_is_one_piece_when_it_is_joined_again)
UNIT(a_handle_may_be_appended_to_itself_and_to_what_shares_it)
UNIT(without_memory_nothing_is_lost)
UNIT(at_two_gibibytes_it_takes_and_one_past_it_refuses)
UNIT(random_cuts_and_joins_agree_with_an_array)
UNIT(compare_orders_as_memcmp_does_across_pieces)
UNIT(threads_share_memory_that_the_last_one_frees)
UNIT_END

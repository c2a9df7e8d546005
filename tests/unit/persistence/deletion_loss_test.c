/* deletion_loss_test.c - the LMDB journal when the power fails between the slices of a deletion.
 *
 * TROUPE_JOURNAL_IMAGES (2,000): a twentieth of it is the number of images; TROUPE_JOURNAL_SEED
 * draws others. */
#include "tests/unit/persistence/power_record.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#define ATTEMPTS_MAX 20

enum { LARGE_GROUPS = 18, LARGE_EACH = 500, LARGE = LARGE_GROUPS * LARGE_EACH, ANSWERS_MAX = 64 };

/* In the places of ids: what was acknowledged. */
enum { OTHER_APPENDS, THE_DELETION };

static const book *deleting;
static uint32_t deletion_answers; /* atomic */
static uint64_t other_number;     /* of the thread that writes */

static trp_journal_op
op_of(trp_journal_kind kind, const char *id)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    op.kind = kind;
    op.id = id;
    op.scope = "s";
    op.epoch = deleting->epoch;
    return op;
}

static void
deletion_done(trp_journal_op *op)
{
    UNIT_EQUAL(op->err, TRP_OK);
    step_add(STEP_ACKNOWLEDGED, false, 1, NULL, THE_DELETION);
    (void)__atomic_add_fetch(&deletion_answers, 1, __ATOMIC_ACQ_REL);
}

/* Append the next event of another id, until the deletion is over. */
static void
other_done(trp_journal_op *op)
{
    step_add(STEP_ACKNOWLEDGED, false, op->from, NULL, OTHER_APPENDS);
    UNIT_EQUAL(op->err, TRP_OK);
    other_number = op->from;
    if (__atomic_load_n(&deletion_answers, __ATOMIC_ACQUIRE) == 0 && op->from < ANSWERS_MAX) {
        op->from++;
        op->outcome = TRP_JOURNAL_PENDING;
        memset(op->driver, 0, sizeof op->driver);
        deleting->driver->submit(deleting->driver->arg, op);
    } else {
        (void)__atomic_add_fetch(&deletion_answers, 1, __ATOMIC_ACQ_REL);
    }
}

/* Delete many events, recorded, while others are appended. */
static void
deletion_record(book *b)
{
    static trp_journal_event events[LARGE_EACH];
    book_make(b);
    deleting = b;
    deletion_answers = 0;
    other_number = 0;
    UNIT_REQUIRE(book_open(b) == TRP_OK && book_claim(b) == TRP_OK);
    for (uint64_t i = 0; i < LARGE_GROUPS; i++) {
        trp_journal_op op = op_of(TRP_JOURNAL_APPEND, "many");
        for (uint64_t k = 0; k < LARGE_EACH; k++) {
            events[k] = (trp_journal_event){ .type = "t", .data = "x", .bytes = 1 };
        }
        op.from = i * LARGE_EACH + 1;
        op.events = events;
        op.events_count = LARGE_EACH;
        UNIT_EQUAL(trp_journal_call(b->driver, &op), TRP_OK);
    }
    book_close(b);
    record_begin(b);
    UNIT_REQUIRE(book_open(b) == TRP_OK && book_claim(b) == TRP_OK);
    trp_journal_op deletion = op_of(TRP_JOURNAL_DELETE, "many");
    trp_journal_op other = op_of(TRP_JOURNAL_APPEND, "other");
    deletion.to = LARGE - 1;
    deletion.done = deletion_done;
    other.from = 1;
    other.events = events;
    other.events_count = 1;
    other.done = other_done;
    b->driver->submit(b->driver->arg, &deletion);
    b->driver->submit(b->driver->arg, &other);
    UNIT_WAIT(__atomic_load_n(&deletion_answers, __ATOMIC_ACQUIRE) == 2, 60000);
    book_close(b);
    recorder.is_on = false;
}

static trp_err
count_up(trp_journal_op *op, const trp_journal_event *event)
{
    uint64_t *next = op->user;
    *next = *next == 0 ? event->number : *next;
    return event->number == (*next)++ ? TRP_OK : TRP_EDATA;
}

/* The events of an id have no gap, and end with the highest number. Returns the first one. */
static bool
numbers_check(const book *b, const char *id, uint64_t *ret_first, uint64_t *ret_last)
{
    uint64_t next = 0;
    trp_journal_op op = op_of(TRP_JOURNAL_EVENTS, id);
    op.max_events = 1000000;
    op.max_bytes = 64 * MIB;
    op.give = count_up;
    op.user = &next;
    if (trp_journal_call(b->driver, &op) != TRP_OK || op.ret_number != (next == 0 ? 0 : next - 1)) {
        return false;
    }
    *ret_first = next - op.ret_count;
    *ret_last = op.ret_number;
    return true;
}

/* A crash between two slices leaves what a deletion up to a lower number leaves, and the deletion
 * can be asked for again. */
static bool
deletion_check(book *b, const uint64_t acknowledged[IDS], uint64_t *ret_first)
{
    uint64_t first = 0, last = 0, other_first = 0, other_last = 0;
    if (!numbers_check(b, "many", ret_first, &last) || last != LARGE ||
        (acknowledged[THE_DELETION] != 0 && *ret_first != LARGE) ||
        !numbers_check(b, "other", &other_first, &other_last) ||
        other_last < acknowledged[OTHER_APPENDS] || book_claim(b) != TRP_OK) {
        return false;
    }
    trp_journal_op op = op_of(TRP_JOURNAL_DELETE, "many");
    op.to = LARGE - 1;
    return trp_journal_call(b->driver, &op) == TRP_OK && numbers_check(b, "many", &first, &last) &&
           first == LARGE && last == LARGE;
}

static bool
deletion_image_check(const unsigned char *image, size_t length, const uint64_t acknowledged[IDS],
                     uint64_t *ret_first)
{
    char path[128];
    book b;
    book_make(&b);
    deleting = &b;
    book_path(&b, "data.mdb", path);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    bool is_right = fd >= 0 && write(fd, image, length) == (ssize_t)length;
    (void)close(fd);
    is_right = is_right && book_open(&b) == TRP_OK;
    if (is_right) {
        is_right = deletion_check(&b, acknowledged, ret_first);
        book_close(&b);
    }
    book_remove(&b);
    return is_right;
}

/* A4J-28 */
static void
a_power_loss_between_slices_leaves_a_part_of_the_deletion(void)
{
    uint64_t seed = asked("TROUPE_JOURNAL_SEED", 1) * 2654435761u + 88172645463325252u;
    uint64_t images = asked("TROUPE_JOURNAL_IMAGES", 2000) / 20 + 1;
    uint64_t parts = 0;
    book b;
    deletion_record(&b);
    /* A thread that is held between its two orders has appended nothing meanwhile. */
    for (int i = 1; i < ATTEMPTS_MAX && other_number < 2; i++) {
        record_free();
        book_remove(&b);
        deletion_record(&b);
    }
    UNIT_TRUE(other_number >= 2); /* there were instants between slices */
    image_bytes = 8 * MIB;
    unsigned char *image = malloc(image_bytes);
    UNIT_REQUIRE(image != NULL);
    for (uint64_t i = 0; i < images; i++) {
        uint64_t acknowledged[IDS];
        uint64_t own = seed;
        uint64_t first = 0;
        uint32_t end =
            recorder.first + (uint32_t)draw(&seed, recorder.steps_count - recorder.first) + 1;
        size_t length = image_make(image, end, UINT32_MAX, &seed, acknowledged);
        if (!deletion_image_check(image, length, acknowledged, &first)) {
            printf("image %" PRIu64 " is wrong: %" PRIu32 " steps of %" PRIu32 ", state %" PRIu64
                   "\n",
                   i, end, recorder.steps_count, own);
            UNIT_TRUE(false);
            break;
        }
        parts += first > 1 && first < LARGE;
    }
    printf("%" PRIu64 " of %" PRIu64 " images have a part of the deletion\n", parts, images);
    UNIT_TRUE(parts > 0);
    image_bytes = MIB;
    free(image);
    record_free();
    book_remove(&b);
}

UNIT_BEGIN("deletion_loss")
UNIT(a_power_loss_between_slices_leaves_a_part_of_the_deletion)
UNIT_END

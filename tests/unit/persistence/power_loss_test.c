/* power_loss_test.c - the LMDB journal when the power fails, a process is killed, a disk answers
 * with errors or is full.
 *
 * The writes of LMDB to data.mdb are recorded (power_record.h).
 * A prefix of the record makes an image of the file: flushed pages are there; each other one is
 * there, lost, or torn at a sector. Each image is opened and checked: acknowledged events are
 * there, groups are whole, the order is kept, and a second opening finds the same.
 *
 * TROUPE_JOURNAL_IMAGES (2,000) and TROUPE_JOURNAL_KILLS (10) say how many different ones;
 * TROUPE_JOURNAL_SEED draws others. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tests/unit/persistence/power_record.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"

#define ROUNDS 60u
#define GROUP_MAX 4u

/* ---- groups ---------------------------------------------------------------------------------- */

static const char *const ids[IDS] = { "one", "two", "three" };

/* The size of the group of an id that begins with this number: both writer and checker know. */
static uint32_t
group_of(uint32_t id, uint64_t number)
{
    return (uint32_t)(number * 7 + id * 3) % GROUP_MAX + 1;
}

typedef struct group {
    trp_journal_op op;
    trp_journal_event events[GROUP_MAX];
    char data[GROUP_MAX][160];
} group;

static uint32_t group_answers;

static void
group_done(trp_journal_op *op)
{
    (void)op;
    (void)__atomic_add_fetch(&group_answers, 1, __ATOMIC_ACQ_REL);
}

static void
group_fill(group *g, const book *b, uint32_t id, uint64_t from)
{
    static const char *const tag = "t";
    uint32_t count = group_of(id, from);
    g->op = (trp_journal_op)TRP_JOURNAL_OP_INIT;
    for (uint32_t i = 0; i < count; i++) {
        int bytes = snprintf(g->data[i], sizeof g->data[i], "%s %" PRIu64 " %0100d", ids[id],
                             from + i, (int)(from + i));
        g->events[i] = (trp_journal_event){
            .type = "t", .tags_count = 1, .tags = &tag, .data = g->data[i], .bytes = (size_t)bytes
        };
    }
    g->op.kind = TRP_JOURNAL_APPEND;
    g->op.id = ids[id];
    g->op.scope = "s";
    g->op.epoch = b->epoch;
    g->op.from = from;
    g->op.events = g->events;
    g->op.events_count = count;
    g->op.done = group_done;
}

/* The place of a reader of one id. */
typedef struct reader {
    uint32_t id;
    uint64_t next;
    uint64_t offset;
    bool is_wrong;
} reader;

static trp_err
event_check(trp_journal_op *op, const trp_journal_event *event)
{
    reader *r = op->user;
    char data[160];
    int bytes =
        snprintf(data, sizeof data, "%s %" PRIu64 " %0100d", ids[r->id], r->next, (int)r->next);
    if (event->number != r->next || event->offset <= r->offset || event->bytes != (size_t)bytes ||
        memcmp(event->data, data, (size_t)bytes) != 0) {
        r->is_wrong = true;
        return TRP_EDATA;
    }
    r->offset = event->offset;
    r->next++;
    return TRP_OK;
}

/* Check the journal against what was acknowledged. False: something is wrong. */
static bool
book_check(const book *b, const uint64_t acknowledged[IDS], uint64_t found[IDS])
{
    for (uint32_t id = 0; id < IDS; id++) {
        reader r = { id, 1, 0, false };
        trp_journal_op op = TRP_JOURNAL_OP_INIT;
        op.kind = TRP_JOURNAL_EVENTS;
        op.id = ids[id];
        op.max_events = 1000000;
        op.max_bytes = 64 * MIB;
        op.give = event_check;
        op.user = &r;
        if (trp_journal_call(b->driver, &op) != TRP_OK || r.is_wrong ||
            op.ret_number != r.next - 1 || r.next - 1 < acknowledged[id]) {
            return false;
        }
        uint64_t number = 1;
        while (number < r.next) {
            number += group_of(id, number);
        }
        if (number != r.next) { /* a group is there in part */
            return false;
        }
        found[id] = r.next - 1;
    }
    return true;
}

/* ---- images ---------------------------------------------------------------------------------- */

/* Run the writer, recorded. */
static void
record_make(book *b)
{
    static group groups[IDS];
    uint64_t next[IDS] = { 1, 1, 1 };
    book_make(b);
    UNIT_REQUIRE(book_open(b) == TRP_OK);
    book_close(b);
    record_begin(b);
    UNIT_REQUIRE(book_open(b) == TRP_OK && book_claim(b) == TRP_OK);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t count = round % IDS + 1;
        group_answers = 0;
        for (uint32_t i = 0; i < count; i++) {
            group_fill(&groups[i], b, i, next[i]);
            b->driver->submit(b->driver->arg, &groups[i].op);
        }
        UNIT_WAIT(__atomic_load_n(&group_answers, __ATOMIC_ACQUIRE) == count, 60000);
        for (uint32_t i = 0; i < count; i++) {
            UNIT_EQUAL(groups[i].op.err, TRP_OK);
            next[i] += groups[i].op.events_count;
            step_add(STEP_ACKNOWLEDGED, false, next[i] - 1, NULL, i);
        }
    }
    book_close(b);
    recorder.is_on = false;
}

/* Open an image and check it, twice. False: something is wrong. */
static bool
image_check(const unsigned char *image, size_t length, const uint64_t acknowledged[IDS])
{
    uint64_t found[IDS] = { 0 };
    uint64_t again[IDS] = { 0 };
    char path[128];
    book b;
    book_make(&b);
    book_path(&b, "data.mdb", path);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    bool is_right = fd >= 0 && write(fd, image, length) == (ssize_t)length;
    (void)close(fd);
    for (int i = 0; is_right && i < 2; i++) {
        is_right = book_open(&b) == TRP_OK;
        if (is_right) {
            is_right = book_check(&b, acknowledged, i == 0 ? found : again);
            book_close(&b);
        }
    }
    book_remove(&b);
    return is_right && memcmp(found, again, sizeof found) == 0;
}

/* Check in a process of its own: a broken tree may be a signal. */
static bool
image_check_apart(const unsigned char *image, size_t length, const uint64_t acknowledged[IDS])
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        (void)close(2);
        _exit(image_check(image, length, acknowledged) ? 0 : 1);
    }
    return waitpid(child, &status, 0) == child && status == 0;
}

/* Note the hash of an image in one of `places`. False: it is there already. */
static bool
is_new_image(uint64_t *hashes, uint64_t places, uint64_t hash)
{
    uint64_t place = hash % places;
    while (hashes[place] != 0 && hashes[place] != hash) {
        place = (place + 1) % places;
    }
    bool is_new = hashes[place] == 0;
    hashes[place] = hash;
    return is_new;
}

/* A4J-28 */
static void
what_was_acknowledged_survives_a_power_loss(void)
{
    uint64_t seed = asked("TROUPE_JOURNAL_SEED", 1) * 2654435761u + 88172645463325252u;
    uint64_t images = asked("TROUPE_JOURNAL_IMAGES", 2000);
    unsigned char *image = malloc(image_bytes);
    uint64_t *hashes = calloc(2 * images, sizeof *hashes);
    uint64_t different = 0;
    book b;
    UNIT_REQUIRE(image != NULL && hashes != NULL);
    record_make(&b);
    for (uint64_t i = 0; different < images; i++) {
        uint64_t acknowledged[IDS];
        uint64_t own = seed;
        uint32_t end =
            recorder.first + (uint32_t)draw(&seed, recorder.steps_count - recorder.first) + 1;
        size_t length = image_make(image, end, UINT32_MAX, &seed, acknowledged);
        UNIT_REQUIRE(i < 20 * images); /* the record has not so many */
        different += is_new_image(hashes, 2 * images, trpi_hash(image, length, length));
        if (!image_check(image, length, acknowledged)) {
            printf("image %" PRIu64 " is wrong: %" PRIu32 " steps of %" PRIu32 ", state %" PRIu64
                   "\n",
                   i, end, recorder.steps_count, own);
            UNIT_TRUE(false);
            break;
        }
    }
    printf("%" PRIu64 " images with different contents\n", different);
    free(hashes);
    free(image);
    record_free();
    book_remove(&b);
}

/* The check is worth something: a flush that is left out is found. */
static void
a_flush_that_is_left_out_is_found(void)
{
    uint64_t seed = 4711;
    unsigned char *image = malloc(image_bytes);
    uint32_t flushes = 0;
    uint32_t wrong = 0;
    book b;
    UNIT_REQUIRE(image != NULL);
    record_make(&b);
    for (uint32_t i = 0; i < recorder.steps_count && wrong == 0; i++) {
        uint64_t acknowledged[IDS];
        if (recorder.steps[i].kind != STEP_FLUSH || flushes++ < 5) {
            continue;
        }
        uint32_t end = i + 1; /* up to the acknowledgement that followed it */
        while (end < recorder.steps_count && recorder.steps[end].kind != STEP_ACKNOWLEDGED) {
            end++;
        }
        for (int tries = 0; end < recorder.steps_count && tries < 10 && wrong == 0; tries++) {
            size_t length = image_make(image, end + 1, flushes - 1, &seed, acknowledged);
            wrong += !image_check_apart(image, length, acknowledged);
        }
    }
    UNIT_TRUE(wrong != 0);
    free(image);
    record_free();
    book_remove(&b);
}

/* ---- errors of the disk ---------------------------------------------------------------------- */

/* Append the next group of an id, and return its answer. */
static trp_journal_op
append_next(const book *b, uint32_t id, uint64_t from)
{
    static group g;
    group_fill(&g, b, id, from);
    (void)trp_journal_call(b->driver, &g.op);
    return g.op;
}

/* The commit fails by `error`: it is the last one. */
static void
failure_is_final(int *error)
{
    trp_journal_health health = TRP_JOURNAL_HEALTH_INIT;
    uint64_t acknowledged[IDS] = { 0 };
    uint64_t found[IDS];
    book b;
    book_make(&b);
    UNIT_REQUIRE(book_open(&b) == TRP_OK && book_claim(&b) == TRP_OK);
    trp_journal_op op = append_next(&b, 0, 1);
    UNIT_EQUAL(op.err, TRP_OK);
    acknowledged[0] = op.ret_number;
    *error = EIO;
    op = append_next(&b, 0, acknowledged[0] + 1);
    *error = 0;
    UNIT_EQUAL(op.outcome, TRP_JOURNAL_FAILED);
    UNIT_EQUAL(op.err, TRP_EIO);
    op = append_next(&b, 0, acknowledged[0] + 1); /* the disk is well again; the journal is not */
    UNIT_EQUAL(op.outcome, TRP_JOURNAL_REFUSED);
    UNIT_TRUE(strstr(op.why, "open the journal again") != NULL);
    UNIT_EQUAL(book_claim(&b), TRP_EIO);
    b.driver->health(b.driver->arg, &health);
    UNIT_EQUAL(health.state, TRP_JOURNAL_READ_ONLY);
    UNIT_EQUAL(health.failed, 1);
    UNIT_TRUE(strstr(health.why, "read-only since a commit has failed") != NULL);
    book_close(&b);
    UNIT_REQUIRE(book_open(&b) == TRP_OK);
    UNIT_TRUE(book_check(&b, acknowledged, found));
    UNIT_EQUAL(append_next(&b, 0, found[0] + 1).err, TRP_OK);
    book_close(&b);
    book_remove(&b);
}

static void
a_failed_flush_is_final(void)
{
    failure_is_final(&recorder.sync_errno);
}

static void
a_failed_write_is_final(void)
{
    failure_is_final(&recorder.write_errno);
}

static void
a_full_disk_is_a_refusal_before_the_write(void)
{
    trp_journal_health health = TRP_JOURNAL_HEALTH_INIT;
    uint64_t acknowledged[IDS] = { 0 };
    uint64_t found[IDS];
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    book b;
    book_make(&b);
    UNIT_REQUIRE(book_open(&b) == TRP_OK && book_claim(&b) == TRP_OK);
    recorder.room_errno = ENOSPC;
    for (uint64_t next = 1; next < 100000; next += op.events_count) {
        op = append_next(&b, 0, next);
        if (op.err != TRP_OK) {
            break;
        }
        acknowledged[0] = op.ret_number;
    }
    UNIT_EQUAL(op.outcome, TRP_JOURNAL_REFUSED);
    UNIT_EQUAL(op.err, TRP_EAGAIN);
    UNIT_TRUE(strstr(op.why, "no room on the disk") != NULL);
    UNIT_EQUAL(book_claim(&b), TRP_OK); /* of the reserve */
    b.driver->health(b.driver->arg, &health);
    UNIT_EQUAL(health.state, TRP_JOURNAL_OPEN);
    recorder.room_errno = 0;
    UNIT_EQUAL(append_next(&b, 0, acknowledged[0] + 1).err, TRP_OK);
    book_close(&b);
    UNIT_REQUIRE(book_open(&b) == TRP_OK);
    UNIT_TRUE(book_check(&b, acknowledged, found));
    UNIT_TRUE(found[0] > acknowledged[0]);
    book_close(&b);
    book_remove(&b);
}

/* ---- kill -9 --------------------------------------------------------------------------------- */

/* Write without end, and say each number that was acknowledged. */
static void
victim_run(book *b, int to)
{
    uint64_t next[IDS] = { 1, 1, 1 };
    if (book_open(b) != TRP_OK || book_claim(b) != TRP_OK) {
        _exit(1);
    }
    for (uint32_t i = 0;; i = (i + 1) % IDS) {
        trp_journal_op op = append_next(b, i, next[i]);
        uint64_t line[2] = { i, op.ret_number };
        if (op.err != TRP_OK || write(to, line, sizeof line) != (ssize_t)sizeof line) {
            _exit(1);
        }
        next[i] = op.ret_number + 1;
    }
}

static void
what_was_acknowledged_survives_a_kill(void)
{
    uint64_t seed = asked("TROUPE_JOURNAL_SEED", 1) + 88172645463325252u;
    uint64_t kills = asked("TROUPE_JOURNAL_KILLS", 10);
    for (uint64_t i = 0; i < kills; i++) {
        uint64_t acknowledged[IDS] = { 0 };
        uint64_t found[IDS];
        uint64_t line[2];
        uint64_t lines = draw(&seed, 100) + 1;
        int ends[2];
        book b;
        book_make(&b);
        UNIT_REQUIRE(pipe(ends) == 0);
        pid_t child = fork();
        if (child == 0) {
            victim_run(&b, ends[1]);
        }
        (void)close(ends[1]);
        while (read(ends[0], line, sizeof line) == (ssize_t)sizeof line) {
            acknowledged[line[0]] = line[1];
            if (lines-- == 1) {
                (void)kill(child, SIGKILL);
            }
        }
        (void)close(ends[0]);
        (void)waitpid(child, NULL, 0);
        UNIT_REQUIRE(book_open(&b) == TRP_OK);
        UNIT_TRUE(acknowledged[0] != 0 && book_check(&b, acknowledged, found));
        book_close(&b);
        book_remove(&b);
    }
}

UNIT_BEGIN("power_loss")
UNIT(what_was_acknowledged_survives_a_power_loss)
UNIT(a_flush_that_is_left_out_is_found)
UNIT(a_failed_flush_is_final)
UNIT(a_failed_write_is_final)
UNIT(a_full_disk_is_a_refusal_before_the_write)
UNIT(what_was_acknowledged_survives_a_kill)
UNIT_END

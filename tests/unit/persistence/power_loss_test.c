/* power_loss_test.c - the LMDB journal when the power fails, a process is killed, a disk answers
 * with errors or is full.
 *
 * The writes of LMDB to data.mdb are recorded: this program has the functions that it writes with.
 * A prefix of the record makes an image of the file: flushed pages are there; each other one is
 * there, lost, or torn at a sector. Each image is opened and checked: acknowledged events are
 * there, groups are whole, the order is kept, and a second opening finds the same.
 *
 * TROUPE_JOURNAL_IMAGES (2,000) and TROUPE_JOURNAL_KILLS (10) say how many different ones;
 * TROUPE_JOURNAL_SEED draws others. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tests/unit/unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <troupe/journal_lmdb.h>

#include "base/hash.h"

/* LMDB must find these in the program, before libc's. */
#define RECORDED __attribute__((visibility("default")))

#define PAGE_BYTES 4096u
#define SECTOR_BYTES 512u
#define STEPS_MAX 20000u
#define IDS 3u
#define ROUNDS 60u
#define GROUP_MAX 4u
#define MIB (1024u * 1024u)

/* ---- the recorder ---------------------------------------------------------------------------- */

typedef enum step_kind { STEP_WRITE, STEP_FLUSH, STEP_ACKNOWLEDGED } step_kind;

typedef struct step {
    step_kind kind;
    bool is_flushed; /* a write through O_DSYNC */
    uint64_t offset; /* a page; of an acknowledgement the number */
    uint32_t bytes;  /* of an acknowledgement the id */
    unsigned char *data;
} step;

static struct {
    pthread_mutex_t lock;
    bool is_on;
    ino_t file;
    step steps[STEPS_MAX];
    uint32_t steps_count;
    uint32_t first; /* behind those of what is there at first */
    /* Errors to answer with. */
    int sync_errno;
    int write_errno;
    int room_errno;
} recorder = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void
step_add(step_kind kind, bool is_flushed, uint64_t offset, const void *data, size_t bytes)
{
    pthread_mutex_lock(&recorder.lock);
    if (recorder.steps_count == STEPS_MAX) {
        abort();
    }
    step *to = &recorder.steps[recorder.steps_count++];
    *to = (step){ kind, is_flushed, offset, (uint32_t)bytes, NULL };
    if (data != NULL) {
        to->data = malloc(bytes);
        memcpy(to->data, data, bytes);
    }
    pthread_mutex_unlock(&recorder.lock);
}

static bool
is_recorded(int fd)
{
    struct stat status;
    return recorder.is_on && fstat(fd, &status) == 0 && status.st_ino == recorder.file;
}

static void
write_note(int fd, const void *data, size_t bytes, off_t offset)
{
    if (is_recorded(fd)) {
        bool is_flushed = (fcntl(fd, F_GETFL) & O_DSYNC) != 0;
        step_add(STEP_WRITE, is_flushed, (uint64_t)offset, data, bytes);
    }
}

RECORDED ssize_t
pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    static ssize_t (*next)(int, const void *, size_t, off_t);
    if (next == NULL) {
        next = (ssize_t(*)(int, const void *, size_t, off_t))(uintptr_t)dlsym(RTLD_NEXT, "pwrite");
    }
    if (recorder.write_errno != 0) {
        errno = recorder.write_errno;
        return -1;
    }
    write_note(fd, data, bytes, offset);
    return next(fd, data, bytes, offset);
}

RECORDED ssize_t
writev(int fd, const struct iovec *parts, int count)
{
    static ssize_t (*next)(int, const struct iovec *, int);
    if (next == NULL) {
        next = (ssize_t(*)(int, const struct iovec *, int))(uintptr_t)dlsym(RTLD_NEXT, "writev");
    }
    if (recorder.write_errno != 0 && lseek(fd, 0, SEEK_CUR) >= 0) {
        errno = recorder.write_errno;
        return -1;
    }
    if (is_recorded(fd)) {
        off_t offset = lseek(fd, 0, SEEK_CUR);
        for (int i = 0; i < count; i++) {
            write_note(fd, parts[i].iov_base, parts[i].iov_len, offset);
            offset += (off_t)parts[i].iov_len;
        }
    }
    return next(fd, parts, count);
}

RECORDED int
fdatasync(int fd)
{
    static int (*next)(int);
    if (next == NULL) {
        next = (int (*)(int))(uintptr_t)dlsym(RTLD_NEXT, "fdatasync");
    }
    if (recorder.sync_errno != 0) {
        errno = recorder.sync_errno;
        return -1;
    }
    int result = next(fd);
    if (result == 0 && is_recorded(fd)) {
        step_add(STEP_FLUSH, true, 0, NULL, 0);
    }
    return result;
}

RECORDED int
fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    static int (*next)(int, int, off_t, off_t);
    if (next == NULL) {
        next = (int (*)(int, int, off_t, off_t))(uintptr_t)dlsym(RTLD_NEXT, "fallocate");
    }
    if (recorder.room_errno != 0) {
        errno = recorder.room_errno;
        return -1;
    }
    return next(fd, mode, offset, bytes);
}

static void
record_free(void)
{
    recorder.is_on = false;
    for (uint32_t i = 0; i < recorder.steps_count; i++) {
        free(recorder.steps[i].data);
    }
    recorder.steps_count = 0;
}

/* ---- a journal in a directory ---------------------------------------------------------------- */

typedef struct book {
    char directory[64];
    const trp_journal_driver *driver;
    uint64_t epoch;
} book;

static const char *const ids[IDS] = { "one", "two", "three" };

static void
book_path(const book *b, const char *name, char path[128])
{
    (void)snprintf(path, 128, "%s/%s", b->directory, name);
}

static void
book_make(book *b)
{
    (void)snprintf(b->directory, sizeof b->directory, "%s/troupe-power-XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    UNIT_REQUIRE(mkdtemp(b->directory) != NULL);
}

static void
book_remove(const book *b)
{
    static const char *const names[] = { "data.mdb", "lock.mdb", "owner" };
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        book_path(b, names[i], path);
        (void)unlink(path);
    }
    (void)rmdir(b->directory);
}

static trp_err
book_open(book *b)
{
    trp_journal_lmdb_options options = TRP_JOURNAL_LMDB_OPTIONS_INIT;
    options.directory = b->directory;
    options.size_max = 8 * MIB;
    return trp_journal_lmdb_open(&options, &b->driver, NULL, 0);
}

static void
book_close(book *b)
{
    b->driver->close(b->driver->arg);
}

static trp_err
book_claim(book *b)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    op.kind = TRP_JOURNAL_CLAIM;
    op.scope = "s";
    op.writer = "w";
    trp_err err = trp_journal_call(b->driver, &op);
    b->epoch = err == TRP_OK ? op.ret_epoch : b->epoch;
    return err;
}

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

static uint64_t
draw(uint64_t *seed, uint64_t below)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed % below;
}

static uint64_t
asked(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);
    return value != NULL ? strtoull(value, NULL, 10) : otherwise;
}

/* Run the writer, recorded. */
static void
record_make(book *b)
{
    static group groups[IDS];
    uint64_t next[IDS] = { 1, 1, 1 };
    char path[128];
    struct stat status;
    book_make(b);
    UNIT_REQUIRE(book_open(b) == TRP_OK);
    book_close(b);
    book_path(b, "data.mdb", path);
    UNIT_REQUIRE(stat(path, &status) == 0);
    recorder.file = status.st_ino;
    int fd = open(path, O_RDONLY);
    for (off_t at = 0; at < status.st_size; at += PAGE_BYTES) { /* what is there at first */
        unsigned char page[PAGE_BYTES];
        UNIT_REQUIRE(pread(fd, page, sizeof page, at) == (ssize_t)sizeof page);
        if (page[0] != 0 || memcmp(page, page + 1, sizeof page - 1) != 0) {
            step_add(STEP_WRITE, true, (uint64_t)at, page, sizeof page);
        }
    }
    (void)close(fd);
    recorder.first = recorder.steps_count;
    recorder.is_on = true;
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

/* Put a page that was not flushed into the image: whole, torn at sectors, or not. */
static void
page_put(unsigned char *image, const step *from, uint64_t *seed)
{
    uint64_t fate = draw(seed, 3);
    for (uint32_t at = 0; at < from->bytes; at += SECTOR_BYTES) {
        uint32_t bytes = from->bytes - at < SECTOR_BYTES ? from->bytes - at : SECTOR_BYTES;
        if (fate == 0 || (fate == 1 && draw(seed, 2) == 0)) {
            memcpy(image + from->offset + at, from->data + at, bytes);
        }
    }
}

#define IMAGE_BYTES ((size_t)MIB)

/* Make the image of a power loss behind `end` steps; skip_flush: flush to leave out, UINT32_MAX:
 * none. Returns its length. */
static size_t
image_make(unsigned char *image, uint32_t end, uint32_t skip_flush, uint64_t *seed,
           uint64_t acknowledged[IDS])
{
    uint32_t last_flush = 0;
    size_t length = 0;
    uint32_t flushes = 0;
    memset(acknowledged, 0, IDS * sizeof *acknowledged);
    memset(image, 0, IMAGE_BYTES);
    for (uint32_t i = 0; i < end; i++) {
        last_flush =
            recorder.steps[i].kind == STEP_FLUSH && flushes++ != skip_flush ? i : last_flush;
    }
    for (uint32_t i = 0; i < end; i++) {
        const step *s = &recorder.steps[i];
        if (s->kind == STEP_ACKNOWLEDGED) {
            acknowledged[s->bytes] = s->offset;
        } else if (s->kind == STEP_WRITE) {
            if (s->offset + s->bytes > IMAGE_BYTES) {
                abort();
            }
            length = s->offset + s->bytes > length ? s->offset + s->bytes : length;
            if (i < last_flush || s->is_flushed) {
                memcpy(image + s->offset, s->data, s->bytes);
            } else {
                page_put(image, s, seed);
            }
        }
    }
    return length;
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
    unsigned char *image = malloc(IMAGE_BYTES);
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
    unsigned char *image = malloc(IMAGE_BYTES);
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

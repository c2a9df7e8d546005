/* journal_lmdb_test.c - the LMDB journal: the conformance kit, openings, a full one, the order. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <troupe/journal_kit.h>
#include <troupe/journal_lmdb.h>

#define MIB (1024u * 1024u)

/* A directory of one test. */
typedef struct place {
    char directory[64];
    uint64_t size_max;
} place;

static void
place_remove(const place *at)
{
    static const char *const names[] = { "data.mdb", "lock.mdb", "owner" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "%s/%s", at->directory, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(at->directory);
}

static void
place_make(place *at, uint64_t size_max)
{
    (void)snprintf(at->directory, sizeof at->directory, "/tmp/troupe-journal-XXXXXX");
    UNIT_REQUIRE(mkdtemp(at->directory) != NULL);
    (void)rmdir(at->directory); /* the journal makes it */
    at->size_max = size_max;
}

static trp_err
place_open(void *arg, const trp_journal_driver **ret_driver)
{
    const place *at = arg;
    char why[TRP_JOURNAL_WHY_BYTES] = "";
    trp_journal_lmdb_options options = TRP_JOURNAL_LMDB_OPTIONS_INIT;
    options.directory = at->directory;
    options.size_max = at->size_max;
    trp_err err = trp_journal_lmdb_open(&options, ret_driver, why, sizeof why);
    UNIT_EQUAL(err == TRP_OK, why[0] == '\0');
    return err;
}

static trp_err
place_forget(void *arg)
{
    place_remove(arg);
    return TRP_OK;
}

/* A4J-28 */
static void
it_keeps_every_law(void)
{
    char why[TRP_JOURNAL_KIT_WHY_BYTES];
    place at;
    place_make(&at, 512 * (uint64_t)MIB);
    trp_journal_kit kit = { sizeof kit, &at, place_open, place_forget, NULL };
    for (uint32_t law = 0; law < trp_journal_kit_laws_count(); law++) {
        trp_err err = trp_journal_kit_run(&kit, law, why, sizeof why);
        if (err != TRP_OK) {
            printf("%s: %s\n", trp_journal_kit_law(law), why);
        }
        UNIT_EQUAL(err, TRP_OK);
    }
    place_remove(&at);
}

/* ---- one writer of one id -------------------------------------------------------------------- */

typedef struct book {
    place at;
    const trp_journal_driver *driver;
    uint64_t epoch;
} book;

static trp_err
book_claim(book *b)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    op.kind = TRP_JOURNAL_CLAIM;
    op.scope = "b";
    op.writer = "w";
    trp_err err = trp_journal_call(b->driver, &op);
    b->epoch = op.ret_epoch;
    return err;
}

static void
book_open(book *b, uint64_t size_max)
{
    place_make(&b->at, size_max);
    UNIT_REQUIRE(place_open(&b->at, &b->driver) == TRP_OK);
    UNIT_REQUIRE(book_claim(b) == TRP_OK);
}

static void
book_reopen(book *b)
{
    b->driver->close(b->driver->arg);
    UNIT_REQUIRE(place_open(&b->at, &b->driver) == TRP_OK);
}

static void
book_close(book *b)
{
    b->driver->close(b->driver->arg);
    place_remove(&b->at);
}

/* Append one event of so many bytes. */
static trp_journal_op
book_append(const book *b, uint64_t number, const void *data, size_t bytes)
{
    trp_journal_event event = { .type = "page", .data = data, .bytes = bytes };
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    op.kind = TRP_JOURNAL_APPEND;
    op.id = "b";
    op.scope = "b";
    op.epoch = b->epoch;
    op.from = number;
    op.events = &event;
    op.events_count = 1;
    (void)trp_journal_call(b->driver, &op);
    op.events = NULL;
    return op;
}

static trp_journal_op
book_call(const book *b, trp_journal_kind kind, uint64_t to)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    op.kind = kind;
    op.id = "b";
    op.scope = "b";
    op.epoch = b->epoch;
    op.to = to;
    (void)trp_journal_call(b->driver, &op);
    return op;
}

static void
a_second_opening_is_refused_in_this_process_and_in_another(void)
{
    book b;
    char why[TRP_JOURNAL_WHY_BYTES] = "";
    char pid[64];
    trp_journal_lmdb_options options = TRP_JOURNAL_LMDB_OPTIONS_INIT;
    const trp_journal_driver *second = NULL;
    int status = 0;
    book_open(&b, 0);
    options.directory = b.at.directory;
    UNIT_EQUAL(trp_journal_lmdb_open(&options, &second, why, sizeof why), TRP_EADDRINUSE);
    (void)snprintf(pid, sizeof pid, "open already, in process %ld", (long)getpid());
    UNIT_TRUE(strstr(why, pid) != NULL && strstr(why, b.at.directory) != NULL);
    pid_t child = fork();
    if (child == 0) {
        _exit(trp_journal_lmdb_open(&options, &second, why, sizeof why) == TRP_EADDRINUSE ? 0 : 1);
    }
    UNIT_TRUE(waitpid(child, &status, 0) == child && status == 0);
    book_reopen(&b); /* what was refused has closed nothing of ours */
    UNIT_EQUAL(book_append(&b, 1, "x", 1).err, TRP_OK);
    book_close(&b);
}

static void
wrong_options_and_foreign_files_are_refused(void)
{
    book b;
    char why[TRP_JOURNAL_WHY_BYTES] = "";
    char path[128];
    trp_journal_lmdb_options options = TRP_JOURNAL_LMDB_OPTIONS_INIT;
    const trp_journal_driver *driver = NULL;
    UNIT_EQUAL(trp_journal_lmdb_open(NULL, &driver, NULL, 0), TRP_EINVAL);
    UNIT_EQUAL(trp_journal_lmdb_open(&options, &driver, why, sizeof why), TRP_EINVAL);
    options.directory = "/nowhere/at/all";
    UNIT_EQUAL(trp_journal_lmdb_open(&options, &driver, why, sizeof why), TRP_EIO);
    UNIT_TRUE(strstr(why, "cannot be made") != NULL);
    UNIT_EQUAL(trp_journal_lmdb_open(&options, NULL, why, sizeof why), TRP_EINVAL);
    options.size_max = TRP_JOURNAL_LMDB_SIZE_MAX_LEAST - 1;
    UNIT_EQUAL(trp_journal_lmdb_open(&options, &driver, why, sizeof why), TRP_EINVAL);
    options.size_max = TRP_JOURNAL_LMDB_SIZE_MAX_MOST + (uint64_t)1;
    UNIT_EQUAL(trp_journal_lmdb_open(&options, &driver, why, sizeof why), TRP_EINVAL);
    book_open(&b, TRP_JOURNAL_LMDB_SIZE_MAX_LEAST);
    b.driver->close(b.driver->arg);
    (void)snprintf(path, sizeof path, "%s/data.mdb", b.at.directory);
    int fd = open(path, O_RDWR);
    UNIT_REQUIRE(fd >= 0 && ftruncate(fd, 20000) == 0);
    UNIT_EQUAL(place_open(&b.at, &b.driver), TRP_EDATA); /* cut */
    UNIT_REQUIRE(ftruncate(fd, 0) == 0);
    UNIT_REQUIRE(pwrite(fd, "something else", 14, 0) == 14);
    UNIT_EQUAL(place_open(&b.at, &b.driver), TRP_EDATA);
    (void)close(fd);
    place_remove(&b.at);
}

static void
a_full_journal_refuses_before_the_write_and_still_deletes(void)
{
    book b;
    static unsigned char data[20000];
    trp_journal_health health = TRP_JOURNAL_HEALTH_INIT;
    uint64_t number = 1;
    trp_journal_op op;
    book_open(&b, 2 * MIB);
    while ((op = book_append(&b, number, data, sizeof data)).err == TRP_OK && number < 1000) {
        number++;
    }
    UNIT_EQUAL(op.err, TRP_EAGAIN);
    UNIT_EQUAL(op.outcome, TRP_JOURNAL_REFUSED);
    UNIT_TRUE(strstr(op.why, "persistence.lmdb.size-max") != NULL);
    UNIT_TRUE(number > 50 && number < 110);
    b.driver->health(b.driver->arg, &health);
    UNIT_EQUAL(health.state, TRP_JOURNAL_OPEN);
    UNIT_TEXT(health.why, op.why);
    UNIT_TRUE(health.bytes <= 4 * MIB); /* with the reserve */
    UNIT_EQUAL(book_claim(&b), TRP_OK);
    UNIT_EQUAL(book_call(&b, TRP_JOURNAL_EVENTS, 0).ret_number, number - 1);
    UNIT_EQUAL(book_call(&b, TRP_JOURNAL_DELETE, number / 2).err, TRP_OK);
    b.driver->health(b.driver->arg, &health);
    UNIT_TEXT(health.why, op.why); /* that there is room now is seen by the next append */
    UNIT_EQUAL(book_append(&b, number, data, 1).err, TRP_OK);
    b.driver->health(b.driver->arg, &health);
    UNIT_TEXT(health.why, "");
    UNIT_EQUAL(book_append(&b, number + 1, data, 1).err, TRP_OK);
    UNIT_EQUAL(book_append(&b, number + 2, data, sizeof data).err, TRP_OK);
    b.at.size_max = 4 * MIB; /* it grows */
    book_reopen(&b);
    for (uint64_t more = 3; more < 20; more++) {
        UNIT_EQUAL(book_append(&b, number + more, data, sizeof data).err, TRP_OK);
    }
    b.at.size_max = 2 * MIB; /* what is there is kept */
    book_reopen(&b);
    UNIT_EQUAL(book_call(&b, TRP_JOURNAL_EVENTS, 0).ret_number, number + 19);
    book_close(&b);
}

static void
a_large_deletion_takes_several_transactions_and_keeps_its_place(void)
{
    book b;
    enum { GROUPS = 10, EACH = 1000 };
    static trp_journal_event events[EACH];
    const char *tags[] = { "red" };
    book_open(&b, 64 * MIB);
    for (uint64_t i = 0; i < EACH; i++) {
        events[i] = (trp_journal_event){
            .type = "t", .data = "x", .bytes = 1, .tags = tags, .tags_count = 1
        };
    }
    for (uint64_t i = 0; i < GROUPS; i++) {
        trp_journal_op op = TRP_JOURNAL_OP_INIT;
        op.kind = TRP_JOURNAL_APPEND;
        op.id = op.scope = "b";
        op.epoch = b.epoch;
        op.from = i * EACH + 1;
        op.events = events;
        op.events_count = EACH;
        UNIT_EQUAL(trp_journal_call(b.driver, &op), TRP_OK);
    }
    trp_journal_op op = book_call(&b, TRP_JOURNAL_DELETE, GROUPS * EACH - 1);
    UNIT_EQUAL(op.err, TRP_OK);
    UNIT_EQUAL(op.ret_number, GROUPS * EACH);
    op = book_call(&b, TRP_JOURNAL_EVENTS, 0);
    UNIT_EQUAL(op.ret_count, 1);
    UNIT_EQUAL(book_call(&b, TRP_JOURNAL_DELETE, 0).err, TRP_OK);
    book_reopen(&b);
    UNIT_EQUAL(book_append(&b, GROUPS * EACH + 1, "x", 1).ret_offset, GROUPS * EACH + 1);
    trp_journal_op tagged = TRP_JOURNAL_OP_INIT;
    tagged.kind = TRP_JOURNAL_TAGGED;
    tagged.tag = "red";
    UNIT_EQUAL(trp_journal_call(b.driver, &tagged), TRP_OK);
    UNIT_EQUAL(tagged.ret_count, 0);
    UNIT_EQUAL(tagged.ret_offset, GROUPS * EACH + 1);
    book_close(&b);
}

static void
a_damaged_event_ends_its_read_with_an_error_that_names_it(void)
{
    book b;
    char path[128];
    static char page[16384];
    off_t at = 0;
    book_open(&b, MIB);
    UNIT_EQUAL(book_append(&b, 1, "MARK-OF-THE-FIRST", 17).err, TRP_OK);
    UNIT_EQUAL(book_append(&b, 2, "MARK-OF-THE-SECOND", 18).err, TRP_OK);
    b.driver->close(b.driver->arg);
    (void)snprintf(path, sizeof path, "%s/data.mdb", b.at.directory);
    int fd = open(path, O_RDWR);
    UNIT_REQUIRE(fd >= 0);
    for (ssize_t got; (got = pread(fd, page, sizeof page, at)) > 0; at += got) {
        for (char *mark = page;
             (mark = memmem(mark, (size_t)(page + got - mark), "THE-SECOND", 10)) != NULL; mark++) {
            UNIT_EQUAL(pwrite(fd, "x", 1, at + (mark - page)), 1);
        }
    }
    (void)close(fd);
    UNIT_REQUIRE(place_open(&b.at, &b.driver) == TRP_OK);
    trp_journal_op op = book_call(&b, TRP_JOURNAL_EVENTS, 0);
    UNIT_EQUAL(op.err, TRP_EDATA);
    UNIT_EQUAL(op.ret_count, 1);
    UNIT_TRUE(strstr(op.why, "event 2 of \"b\"") != NULL);
    UNIT_EQUAL(book_call(&b, TRP_JOURNAL_DELETE, 0).err, TRP_OK);
    UNIT_EQUAL(book_append(&b, 3, "x", 1).err, TRP_OK);
    book_close(&b);
}

/* ---- between the slices of a deletion -------------------------------------------------------- */

enum { LARGE_GROUPS = 60, LARGE_EACH = 1000, LARGE = LARGE_GROUPS * LARGE_EACH, OTHERS = 10 };

/* Answers come on the journal's threads; each has its place among them. */
static struct {
    const book *b;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t answers;
    uint32_t deletion_at, read_at, append_at, other_at, look_at;
    trp_journal_op deletion, read, append, other, look;
    uint32_t others; /* appends of the other id that are done */
} between = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void
between_note(uint32_t *at)
{
    pthread_mutex_lock(&between.lock);
    *at = ++between.answers;
    pthread_cond_broadcast(&between.changed); /* the test and the writer may both wait */
    pthread_mutex_unlock(&between.lock);
}

static void
between_wait(const uint32_t *at)
{
    pthread_mutex_lock(&between.lock);
    while (*at == 0) {
        pthread_cond_wait(&between.changed, &between.lock);
    }
    pthread_mutex_unlock(&between.lock);
}

static void
deletion_done(trp_journal_op *op)
{
    (void)op;
    between_note(&between.deletion_at);
}

static void
read_done(trp_journal_op *op)
{
    (void)op;
    between_note(&between.read_at);
}

static void
append_done(trp_journal_op *op)
{
    (void)op;
    between_note(&between.append_at);
}

static void
look_done(trp_journal_op *op)
{
    (void)op;
    between_note(&between.look_at);
}

static void
between_submit(trp_journal_op *op, trp_journal_kind kind, const char *id, trp_journal_done_fn done)
{
    static const trp_journal_event event = { .type = "t", .data = "x", .bytes = 1 };
    *op = (trp_journal_op)TRP_JOURNAL_OP_INIT;
    op->kind = kind;
    op->id = id;
    op->scope = "b";
    op->epoch = between.b->epoch;
    op->events = kind == TRP_JOURNAL_APPEND ? &event : NULL;
    op->events_count = kind == TRP_JOURNAL_APPEND;
    op->from = kind != TRP_JOURNAL_APPEND ? 0
               : strcmp(id, "b") == 0     ? LARGE + 1
                                          : between.others + 1;
    op->to = kind == TRP_JOURNAL_DELETE ? LARGE - 1 : 0;
    op->done = done;
    between.b->driver->submit(between.b->driver->arg, op);
}

/* The next append is submitted before the next slice. One waits for a read in the place of the
 * thread that writes, so that no slice ends meanwhile. */
static void
other_done(trp_journal_op *op)
{
    UNIT_EQUAL(op->err, TRP_OK);
    if (++between.others < OTHERS) {
        between_submit(&between.other, TRP_JOURNAL_APPEND, "other", other_done);
        return;
    }
    between_note(&between.other_at);
    between_submit(&between.look, TRP_JOURNAL_EVENTS, "other", look_done);
    between_wait(&between.look_at);
}

static void
large_fill(const book *b)
{
    static trp_journal_event events[LARGE_EACH];
    for (uint64_t i = 0; i < LARGE_EACH; i++) {
        events[i] = (trp_journal_event){ .type = "t", .data = "x", .bytes = 1 };
    }
    for (uint64_t i = 0; i < LARGE_GROUPS; i++) {
        trp_journal_op op = TRP_JOURNAL_OP_INIT;
        op.kind = TRP_JOURNAL_APPEND;
        op.id = op.scope = "b";
        op.epoch = b->epoch;
        op.from = i * LARGE_EACH + 1;
        op.events = events;
        op.events_count = LARGE_EACH;
        UNIT_EQUAL(trp_journal_call(b->driver, &op), TRP_OK);
    }
}

static void
others_go_on_between_the_slices_of_a_deletion(void)
{
    book b;
    book_open(&b, 64 * MIB);
    large_fill(&b);
    between.b = &b;
    between_submit(&between.deletion, TRP_JOURNAL_DELETE, "b", deletion_done);
    between_submit(&between.read, TRP_JOURNAL_EVENTS, "b", read_done);
    between_submit(&between.append, TRP_JOURNAL_APPEND, "b", append_done);
    between_submit(&between.other, TRP_JOURNAL_APPEND, "other", other_done);
    between_wait(&between.append_at);
    between_wait(&between.look_at);
    UNIT_EQUAL(between.deletion.err, TRP_OK);
    UNIT_EQUAL(between.deletion.ret_number, LARGE);
    UNIT_TRUE(between.other_at < between.deletion_at && between.look_at < between.deletion_at);
    UNIT_EQUAL(between.look.ret_number, OTHERS);
    /* Operations of its id come behind it, in order. */
    UNIT_TRUE(between.deletion_at < between.read_at && between.read_at < between.append_at);
    UNIT_EQUAL(between.read.ret_count, 1);
    UNIT_EQUAL(between.read.ret_number, LARGE);
    UNIT_EQUAL(between.append.err, TRP_OK);
    book_reopen(&b);
    UNIT_EQUAL(book_call(&b, TRP_JOURNAL_EVENTS, 0).ret_count, 2);
    book_close(&b);
}

/* The end of a journal waits for a deletion that has begun, and for what is behind it. */
static void
a_deletion_ends_before_its_journal(void)
{
    book b;
    book_open(&b, 64 * MIB);
    large_fill(&b);
    between.b = &b;
    between.deletion_at = between.append_at = 0;
    between_submit(&between.deletion, TRP_JOURNAL_DELETE, "b", deletion_done);
    between_submit(&between.append, TRP_JOURNAL_APPEND, "b", append_done);
    book_reopen(&b);
    UNIT_TRUE(between.deletion_at != 0 && between.append_at > between.deletion_at);
    UNIT_EQUAL(book_call(&b, TRP_JOURNAL_EVENTS, 0).ret_count, 2);
    book_close(&b);
}

/* ---- what is submitted without waiting ------------------------------------------------------- */

enum { PAIRS = 400 };

typedef struct pair {
    trp_journal_op append;
    trp_journal_op read;
    trp_journal_event event;
} pair;

static uint32_t answers;
static pthread_mutex_t answers_lock = PTHREAD_MUTEX_INITIALIZER;

static void
pair_done(trp_journal_op *op)
{
    (void)op;
    pthread_mutex_lock(&answers_lock);
    answers++;
    pthread_mutex_unlock(&answers_lock);
}

static bool
all_answered(uint32_t want)
{
    pthread_mutex_lock(&answers_lock);
    bool are = answers == want;
    pthread_mutex_unlock(&answers_lock);
    return are;
}

/* Each read sees the appends of its id that were submitted before it, and no later one. */
static void
reads_and_writes_of_one_id_keep_their_order(void)
{
    static pair pairs[PAIRS];
    book b;
    book_open(&b, 16 * MIB);
    answers = 0;
    for (uint32_t i = 0; i < PAIRS; i++) {
        pair *p = &pairs[i];
        p->event = (trp_journal_event){ .type = "t", .data = "x", .bytes = 1 };
        p->append = (trp_journal_op)TRP_JOURNAL_OP_INIT;
        p->append.kind = TRP_JOURNAL_APPEND;
        p->append.id = p->append.scope = "b";
        p->append.epoch = b.epoch;
        p->append.from = i + 1;
        p->append.events = &p->event;
        p->append.events_count = 1;
        p->append.done = pair_done;
        p->read = (trp_journal_op)TRP_JOURNAL_OP_INIT;
        p->read.kind = TRP_JOURNAL_EVENTS;
        p->read.id = "b";
        p->read.done = pair_done;
        b.driver->submit(b.driver->arg, &p->append);
        b.driver->submit(b.driver->arg, &p->read);
    }
    UNIT_WAIT(all_answered(2 * PAIRS), 60000);
    for (uint32_t i = 0; i < PAIRS; i++) {
        UNIT_EQUAL(pairs[i].append.err, TRP_OK);
        UNIT_EQUAL(pairs[i].read.ret_count, i + 1);
    }
    book_close(&b);
}

/* Close answers the operations that wait. */
static void
close_answers_what_waits(void)
{
    static pair pairs[PAIRS];
    book b;
    book_open(&b, 16 * MIB);
    answers = 0;
    for (uint32_t i = 0; i < PAIRS; i++) {
        pair *p = &pairs[i];
        p->read = (trp_journal_op)TRP_JOURNAL_OP_INIT;
        p->read.kind = i % 2 != 0 ? TRP_JOURNAL_CLAIM : TRP_JOURNAL_EVENTS;
        p->read.id = p->read.scope = p->read.writer = "b";
        p->read.done = pair_done;
        b.driver->submit(b.driver->arg, &p->read);
    }
    book_close(&b);
    UNIT_TRUE(all_answered(PAIRS));
}

UNIT_BEGIN("journal_lmdb")
UNIT(it_keeps_every_law)
UNIT(a_second_opening_is_refused_in_this_process_and_in_another)
UNIT(wrong_options_and_foreign_files_are_refused)
UNIT(a_full_journal_refuses_before_the_write_and_still_deletes)
UNIT(a_large_deletion_takes_several_transactions_and_keeps_its_place)
UNIT(others_go_on_between_the_slices_of_a_deletion)
UNIT(a_deletion_ends_before_its_journal)
UNIT(a_damaged_event_ends_its_read_with_an_error_that_names_it)
UNIT(reads_and_writes_of_one_id_keep_their_order)
UNIT(close_answers_what_waits)
UNIT_END

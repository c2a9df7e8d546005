/* durable_test.c - durable mailboxes: what is told survives, in order, once; limits; ill storage.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <troupe/troupe.h>

#include "pattern/durable_store.h"

#ifdef HAVE_LMDB

#include "tests/unit/pattern/clerk.h"

/* known to the system that tells, and not to the next one */
#define RARE_MESSAGES(M, P) M(P, bird, POST_NUMBER)
TRP_PROTOCOL(rare, RARE_MESSAGES)

static trp_system *system_;
static char directory[64];

/* Also in the child, where no test runs. */
static trp_err
system_make(const trp_durable_options *options)
{
    trp_system_options system_options = TRP_SYSTEM_OPTIONS_INIT;
    trp_durable_options own = TRP_DURABLE_OPTIONS_INIT;
    trp_err err = trp_protocol_register(&post_protocol);

    system_options.workers = 2;
    system_options.log_level = TRP_LOG_OFF;
    err = err == TRP_OK ? trp_system_new("post", &system_options, &system_) : err;
    if (options != NULL) {
        own = *options;
    }
    own.directory = directory;
    return err == TRP_OK ? trp_durable_register(system_, "kept", &own) : err;
}

static void
start(const trp_durable_options *options)
{
    UNIT_REQUIRE(system_make(options) == TRP_OK);
    atomic_store(&seen_count, 0);
    atomic_store(&holding, 0);
    atomic_store(&gate_open, 0);
}

static void
stop(void)
{
    atomic_store(&gate_open, 1);
    UNIT_EQUAL(trp_system_stop(system_, 60000), TRP_OK);
    trp_system_free(system_);
}

static void
fresh(void)
{
    (void)snprintf(directory, sizeof directory, "durable-XXXXXX");
    UNIT_REQUIRE(mkdtemp(directory) != NULL);
}

static void
forget(void)
{
    static const char *const files[] = { "data.mdb", "owner", "acks", "begun" };
    char path[128];

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", directory, files[i]);
        (void)unlink(path);
    }
    UNIT_EQUAL(rmdir(directory), 0);
}

static trp_err
spawn_as(const char *name, const trp_behaviour *behaviour, const char *mailbox, trp_ref *ret_ref)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;

    options.name = name;
    options.mailbox = mailbox;
    return trp_system_spawn(system_, behaviour, &options, ret_ref);
}

static trp_ref
spawn_clerk(void)
{
    trp_ref ref = TRP_REF_NONE;

    UNIT_REQUIRE(spawn_as("clerk", &clerk, "kept", &ref) == TRP_OK);
    return ref;
}

static void
tell_from(trp_ref to, trp_ref sender, uint64_t number, trp_ref back)
{
    post_letter letter = { number, back };

    trp_system_tell_as(system_, to, sender, &post_letter_type, &letter, sizeof letter);
}

static void
tell(trp_ref to, uint64_t number)
{
    trp_ref none = TRP_REF_NONE;

    tell_from(to, none, number, none);
}

/* A clerk that is at a message, so that what it is told waits. */
static trp_ref
spawn_held(void)
{
    trp_ref ref = spawn_clerk();
    post_hold hold = { 0 };

    trp_system_tell(system_, ref, &post_hold_type, &hold, sizeof hold);
    UNIT_REQUIRE(UNIT_WAIT(atomic_load(&holding) == 1, 5000));
    return ref;
}

static uint64_t
dead(trp_dead_reason reason)
{
    trp_system_stats stats = { .size = sizeof stats };

    trp_system_stats_get(system_, &stats);
    return stats.dead_letters[reason];
}

/* Stop the held clerk while mail waits: what it has not begun stays. */
static void
stop_held(trp_ref ref)
{
    trp_system_stop_actor(system_, ref);
    stop();
}

/* ---- a process that is killed ---------------------------------------------------------------- */

enum { TELLERS = 3, PER_TELLER = 20000 }; /* all of it fits into what is read back */
static trp_ref child_clerk;
static int ack_fd;

static void *
child_tell(void *arg)
{
    uint64_t teller = (uint64_t)(uintptr_t)arg;

    for (uint64_t i = 0; i < PER_TELLER; i++) {
        uint64_t number = teller << 32 | i;

        tell(child_clerk, number);
        if (write(ack_fd, &number, 8) != 8) { /* after the tell returned */
            _exit(3);
        }
    }
    return NULL;
}

static int
open_in_directory(const char *name, int flags)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    return open(path, flags, 0600);
}

/* Runs before main when the parent says so; ends by SIGKILL. */
static void __attribute__((constructor))
child(void)
{
    const char *where = getenv("DURABLE_TEST_CHILD");
    pthread_t thread;

    if (where == NULL) {
        return;
    }
    (void)snprintf(directory, sizeof directory, "%s", where);
    ack_fd = open_in_directory("acks", O_WRONLY | O_CREAT | O_APPEND);
    note_fd = open_in_directory("begun", O_WRONLY | O_CREAT | O_APPEND);
    if (system_make(NULL) != TRP_OK || spawn_as("clerk", &clerk, "kept", &child_clerk) != TRP_OK) {
        _exit(6);
    }
    for (uintptr_t i = 0; i < TELLERS; i++) {
        if (pthread_create(&thread, NULL, child_tell, (void *)i) != 0) {
            _exit(4);
        }
    }
    for (;;) {
        (void)pause();
    }
}

static uint64_t
numbers_in(const char *name, uint64_t *numbers, uint64_t max)
{
    int fd = open_in_directory(name, O_RDONLY);
    struct stat status;
    uint64_t count = 0;

    if (fd >= 0) {
        if (fstat(fd, &status) == 0) {
            count = (uint64_t)status.st_size / 8;
        }
        if (numbers != NULL) {
            count = count < max ? count : max;
            UNIT_TRUE(read(fd, numbers, count * 8) == (ssize_t)(count * 8));
        }
        (void)close(fd);
    }
    return count;
}

static int
by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Each teller's numbers rise. */
static bool
is_in_order(const uint64_t *numbers, uint64_t count)
{
    uint64_t next[TELLERS] = { 0 };

    for (uint64_t i = 0; i < count; i++) {
        uint64_t teller = numbers[i] >> 32, n = numbers[i] & 0xffffffffu;

        if (teller >= TELLERS || n < next[teller]) {
            return false;
        }
        next[teller] = n + 1;
    }
    return true;
}

static void
run_and_kill(uint64_t acks)
{
    pid_t pid = fork();
    int status = 0;

    UNIT_REQUIRE(pid >= 0);
    if (pid == 0) {
        (void)setenv("DURABLE_TEST_CHILD", directory, 1);
        (void)execl("/proc/self/exe", "durable_test", (char *)NULL);
        _exit(5);
    }
    UNIT_WAIT(numbers_in("acks", NULL, 0) >= acks, 5000);
    UNIT_EQUAL(kill(pid, SIGKILL), 0);
    UNIT_TRUE(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
}

/* DUR-01, DUR-02, MBOX-7: a process is killed while three threads tell and the actor handles. What
 * a tell has returned for is handled before or after, in order and once; only the message that was
 * in progress may be lost. */
static void
what_was_told_survives_a_kill(void)
{
    enum { MAX = SEEN_MAX };
    static uint64_t acked[MAX], all[2 * MAX];
    uint64_t acks, begun, found = 0, lost = 0;
    trp_ref ref;

    fresh();
    run_and_kill(500);
    acks = numbers_in("acks", acked, MAX);
    begun = numbers_in("begun", all, MAX);
    start(NULL);
    ref = spawn_clerk(); /* nobody tells it anything: it wakes by what is left */
    UNIT_WAIT(atomic_load(&seen_count) + begun + 1 >= acks, 5000);
    tell(ref, UINT64_MAX - 1);
    UNIT_WAIT((pthread_mutex_lock(&seen_lock), found = atomic_load(&seen_count),
               pthread_mutex_unlock(&seen_lock),
               found > 0 && found < MAX && seen[found - 1] == UINT64_MAX - 1),
              10000);
    UNIT_REQUIRE(found > 0 && found < MAX && acks < MAX && begun < MAX);
    found--;
    memcpy(all + begun, seen, found * 8);
    UNIT_TRUE(is_in_order(all, begun + found));
    printf("  %llu acknowledged, %llu begun before, %llu handled after\n",
           (unsigned long long)acks, (unsigned long long)begun, (unsigned long long)found);
    qsort(all, begun + found, 8, by_value);
    for (uint64_t i = 1; i < begun + found; i++) {
        UNIT_TRUE(all[i] != all[i - 1]);
    }
    for (uint64_t i = 0; i < acks; i++) {
        lost += bsearch(&acked[i], all, begun + found, 8, by_value) == NULL ? 1 : 0;
    }
    UNIT_TRUE(lost <= 1);
    stop();
    forget();
}

/* ---- one incarnation after another ----------------------------------------------------------- */

/* TRP-13, DUR-01: what is left when the actor is stopped waits for the next one of its path;
 * another path gets nothing of it. */
static void
the_end_of_an_actor_leaves_its_mail(void)
{
    trp_ref ref, other = TRP_REF_NONE;

    fresh();
    start(NULL);
    ref = spawn_held();
    for (uint64_t i = 0; i < 10; i++) {
        tell(ref, i);
    }
    stop_held(ref);
    UNIT_EQUAL(atomic_load(&seen_count), 1); /* post_stop */
    start(NULL);
    UNIT_EQUAL(spawn_as("other", &clerk, "kept", &other), TRP_OK);
    ref = spawn_clerk();
    UNIT_WAIT(atomic_load(&seen_count) == 10, 5000);
    for (uint64_t i = 0; i < 10; i++) {
        UNIT_EQUAL(seen[i], i);
    }
    stop();
    forget();
}

/* MBOX-7: poison pills, which are not stored, keep their place among what is. */
static void
a_poison_pill_keeps_its_place(void)
{
    trp_ref ref;

    fresh();
    start(NULL);
    ref = spawn_held();
    tell(ref, 1);
    tell(ref, 2);
    trp_system_tell(system_, ref, &trp_poison_pill_type, NULL, 0);
    tell(ref, 3);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&seen_count) == 3, 5000);
    UNIT_TRUE(seen[0] == 1 && seen[1] == 2 && seen[2] == UINT64_MAX);
    stop();
    start(NULL);
    (void)spawn_clerk();
    UNIT_WAIT(atomic_load(&seen_count) == 1, 5000);
    UNIT_EQUAL(seen[0], 3);
    stop();
    forget();
}

/* DUR-06: sender and references come back by their paths; who is not there any more is nobody. */
static void
senders_are_found_again_by_path(void)
{
    trp_ref ref, a = TRP_REF_NONE, b = TRP_REF_NONE;

    fresh();
    start(NULL);
    UNIT_EQUAL(spawn_as("a", &plain, NULL, &a), TRP_OK);
    UNIT_EQUAL(spawn_as("b", &plain, NULL, &b), TRP_OK);
    ref = spawn_held();
    tell_from(ref, a, 1, b);
    tell_from(ref, b, 2, a);
    stop_held(ref);
    start(NULL);
    UNIT_EQUAL(spawn_as("other", &plain, NULL, &b), TRP_OK); /* other slots than before */
    UNIT_EQUAL(spawn_as("a", &plain, NULL, &a), TRP_OK);
    ref = spawn_clerk();
    UNIT_WAIT(atomic_load(&seen_count) == 2, 5000);
    UNIT_TRUE(trp_ref_equal(seen_sender[0], a) && trp_ref_is_none(seen_back[0]));
    UNIT_TRUE(trp_ref_is_none(seen_sender[1]) && trp_ref_equal(seen_back[1], a));
    stop();
    forget();
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* DUR-05: at max_items nothing is lost, one past it the oldest is a dead letter; and the mailbox's
 * count knows. */
static void
the_oldest_is_dropped_when_it_is_full(void)
{
    trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
    trp_mailbox_view view;
    trp_ref ref;

    fresh();
    options.max_items = 5;
    start(&options);
    ref = spawn_held();
    for (uint64_t i = 0; i < 5; i++) {
        tell(ref, i);
    }
    UNIT_EQUAL(dead(TRP_DEAD_MAILBOX_FULL), 0);
    tell(ref, 5);
    UNIT_EQUAL(dead(TRP_DEAD_MAILBOX_FULL), 1);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&seen_count) == 5, 5000);
    UNIT_TRUE(seen[0] == 1 && seen[4] == 5);
    UNIT_WAIT(trp_mailbox_look(system_, ref, &view) == TRP_OK && view.messages == 0, 5000);
    stop();
    forget();
}

/* DUR-05: or the newest is refused, and who may try again is told so. */
static void
or_the_newest_is_refused(void)
{
    trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
    post_letter letter = { 9, TRP_REF_NONE };
    trp_ref ref;

    fresh();
    options.max_items = 2; /* without the one that holds it, which it is at */
    options.refuse_when_full = 1;
    start(&options);
    ref = spawn_held();
    tell(ref, 0);
    UNIT_EQUAL(trp_system_try_tell(system_, ref, &post_letter_type, &letter, sizeof letter),
               TRP_OK);
    UNIT_EQUAL(trp_system_try_tell(system_, ref, &post_letter_type, &letter, sizeof letter),
               TRP_EAGAIN);
    tell(ref, 2);
    UNIT_EQUAL(dead(TRP_DEAD_MAILBOX_FULL), 1);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&seen_count) == 2, 5000);
    UNIT_TRUE(seen[0] == 0 && seen[1] == 9);
    stop();
    forget();
}

/* Tell bytes until `limit` of them are too many; gives how many stayed. */
static uint32_t
fill(trp_ref ref, size_t bytes, uint32_t limit, trp_dead_reason reason)
{
    char *payload = calloc(1, bytes);
    uint32_t told = 0;

    UNIT_REQUIRE(payload != NULL);
    while (told < limit && dead(reason) == 0) {
        trp_system_tell(system_, ref, &trp_bytes_type, payload, bytes);
        told++;
    }
    free(payload);
    return told - (dead(reason) > 0 ? 1 : 0);
}

/* DUR-05: max_bytes counts what is stored; max_item_bytes is exact, one byte more is too large. */
static void
bytes_are_counted_too(void)
{
    trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
    size_t payload = 1000, bytes = 0;
    trp_ref ref;

    fresh();
    options.max_item_bytes = 1200;
    options.max_bytes = 12000;
    options.refuse_when_full = 1;
    start(&options);
    ref = spawn_held();
    while (dead(TRP_DEAD_TOO_LARGE) == 0 && payload < 1201) {
        bytes = payload++;
        UNIT_EQUAL(dead(TRP_DEAD_MAILBOX_FULL), 0);
        UNIT_REQUIRE(fill(ref, bytes, 1, TRP_DEAD_TOO_LARGE) <= 1);
        payload += 19; /* coarse: a record is the payload and some tens of bytes */
    }
    UNIT_EQUAL(dead(TRP_DEAD_TOO_LARGE), 1);
    UNIT_TRUE(bytes > 1000 && bytes <= 1200);
    UNIT_TRUE(fill(ref, 1000, 20, TRP_DEAD_MAILBOX_FULL) < 12);
    UNIT_EQUAL(dead(TRP_DEAD_MAILBOX_FULL), 1);
    stop();
    forget();
}

/* DUR-03: too old when its turn comes: a dead letter of its own reason. */
static void
what_is_too_old_is_not_given(void)
{
    trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
    uint64_t since;
    trp_ref ref;

    fresh();
    options.max_age_ms = 20;
    start(&options);
    UNIT_REQUIRE(spawn_as("clerk", &late, "kept", &ref) == TRP_OK);
    tell(ref, 1);
    since = unit_now_ms();
    UNIT_WAIT(unit_now_ms() - since > 40, 5000);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(dead(TRP_DEAD_EXPIRED) == 1, 5000);
    UNIT_EQUAL(atomic_load(&seen_count), 0);
    stop();
    forget();
}

/* DUR-05: a full disk, by the size of the map: refused, not lost; and what is there can be taken
 * out, after which there is room again. */
static void
a_full_disk_refuses_and_recovers(void)
{
    trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
    uint32_t told;
    trp_ref ref;

    fresh();
    options.map_bytes = TRP_DURABLE_MAP_BYTES_MIN;
    start(&options);
    ref = spawn_held();
    told = fill(ref, 10000, 1000, TRP_DEAD_MAILBOX_FULL);
    UNIT_TRUE(told > 20 && told < 110);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&seen_count) == told, 10000);
    tell(ref, 77);
    UNIT_WAIT(atomic_load(&seen_count) == told + 1, 5000);
    UNIT_EQUAL(dead(TRP_DEAD_MAILBOX_FULL), 1);
    stop();
    forget();
}

/* ---- ill storage ----------------------------------------------------------------------------- */

/* DUR-04: three failures open the breaker: then nothing is tried, messages are dead letters
 * "storage", until the reset timeout. */
static void
a_breaker_stands_before_the_storage(void)
{
    trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
    trp_ref ref;

    fresh();
    options.reset_timeout_ms = 600000; /* not in this test */
    start(&options);
    ref = spawn_held();
    tell(ref, 1);
    trpi_store_test_fail(3);
    tell(ref, 2);
    tell(ref, 3);
    UNIT_EQUAL(dead(TRP_DEAD_STORAGE), 2);
    tell(ref, 4);
    trpi_store_test_fail(0); /* well again, but open */
    tell(ref, 5);
    UNIT_EQUAL(dead(TRP_DEAD_STORAGE), 4);
    stop();
    forget();
}

/* DUR-04: with the reset timeout all is well again: what waited is read, without a new message. */
static void
a_storage_that_is_well_again_is_read(void)
{
    trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
    trp_ref ref;

    fresh();
    options.reset_timeout_ms = 100;
    start(&options);
    ref = spawn_held();
    tell(ref, 1);
    tell(ref, 2);
    trpi_store_test_fail(3);
    for (uint64_t i = 3; i <= 5; i++) {
        tell(ref, i);
    }
    UNIT_EQUAL(dead(TRP_DEAD_STORAGE), 3);
    trpi_store_test_fail(0);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&seen_count) == 2, 5000);
    UNIT_TRUE(seen[0] == 1 && seen[1] == 2);
    tell(ref, 7);
    UNIT_WAIT(atomic_load(&seen_count) == 3, 5000);
    UNIT_EQUAL(seen[2], 7);
    stop();
    forget();
}

static trp_err
register_here(void)
{
    trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
    trp_system_options system_options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system;
    trp_err err;

    system_options.workers = 1;
    system_options.log_level = TRP_LOG_OFF;
    UNIT_REQUIRE(trp_system_new("look", &system_options, &system) == TRP_OK);
    options.directory = directory;
    err = trp_durable_register(system, "kept", &options);
    trp_system_free(system);
    return err;
}

/* DUR-03: what is no store of ours is refused: garbage, a file that was cut, no directory. */
static void
damaged_and_foreign_files_are_refused(void)
{
    char garbage[8192];
    char path[128];
    struct stat status;
    trp_ref ref;
    int fd;

    fresh();
    memset(garbage, 0x5a, sizeof garbage);
    fd = open_in_directory("data.mdb", O_WRONLY | O_CREAT);
    UNIT_TRUE(write(fd, garbage, sizeof garbage) == (ssize_t)sizeof garbage);
    (void)close(fd);
    UNIT_EQUAL(register_here(), TRP_EDATA);
    forget();

    fresh();
    start(NULL);
    ref = spawn_held();
    (void)fill(ref, 5000, 20, TRP_DEAD_STORAGE);
    stop_held(ref);
    (void)snprintf(path, sizeof path, "%s/data.mdb", directory);
    UNIT_REQUIRE(stat(path, &status) == 0 && status.st_size > 16384);
    UNIT_EQUAL(truncate(path, 12288), 0);
    UNIT_EQUAL(register_here(), TRP_EDATA);
    forget();
    (void)snprintf(directory, sizeof directory, "durable-none/below");
    UNIT_EQUAL(register_here(), TRP_EIO);
}

/* A type that the next process does not know, here: whose name is another one there. */
static void
an_unknown_type_is_a_dead_letter(void)
{
    rare_bird bird = { 1, TRP_REF_NONE };
    char bytes[65536], path[128];
    trp_ref ref;
    ssize_t got;
    int fd;

    UNIT_REQUIRE(trp_protocol_register(&rare_protocol) == TRP_OK);
    fresh();
    start(NULL);
    ref = spawn_held();
    trp_system_tell(system_, ref, &rare_bird_type, &bird, sizeof bird);
    tell(ref, 2);
    stop_held(ref);
    (void)snprintf(path, sizeof path, "%s/data.mdb", directory);
    fd = open(path, O_RDWR);
    for (off_t at = 0; (got = pread(fd, bytes, sizeof bytes, at)) > 0; at += got) {
        for (ssize_t i = 0; i + 9 <= got; i++) {
            if (memcmp(bytes + i, "rare.bird", 9) == 0) {
                UNIT_TRUE(pwrite(fd, "rare.worm", 9, at + i) == 9);
            }
        }
    }
    (void)close(fd);
    start(NULL);
    ref = spawn_clerk();
    UNIT_WAIT(atomic_load(&seen_count) == 1, 5000);
    UNIT_EQUAL(seen[0], 2);
    UNIT_EQUAL(dead(TRP_DEAD_NOT_ENCODABLE), 1);
    stop();
    forget();
}

/* DUR-06: it needs an owner with a name; one directory may serve many mailboxes and systems, but
 * one actor at a time has a path's mail. */
static void
who_may_have_one(void)
{
    trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
    trp_system_options system_options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *first, *second;
    trp_ref ref, none = TRP_REF_NONE;
    char name[TRP_NAME_BYTES_MAX + 1];

    fresh();
    start(NULL);
    first = system_;
    options.directory = directory;
    UNIT_EQUAL(trp_durable_register(system_, "kept", &options), TRP_EEXIST);
    UNIT_EQUAL(trp_durable_register(system_, "too", &options), TRP_OK);
    UNIT_EQUAL(spawn_as(NULL, &clerk, "kept", &ref), TRP_EINVAL);
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    UNIT_EQUAL(spawn_as(name, &clerk, "kept", &ref),
               sizeof name - 1 + strlen("post/user/") <= TRP_DURABLE_KEY_BYTES_MAX ? TRP_OK
                                                                                   : TRP_EINVAL);
    (void)spawn_clerk();
    UNIT_REQUIRE(trp_system_new("post", &system_options, &second) == TRP_OK);
    UNIT_EQUAL(trp_durable_register(second, "kept", &options), TRP_OK);
    system_ = second;
    UNIT_EQUAL(spawn_as("clerk", &clerk, "kept", &ref), TRP_EEXIST);
    ref = none;
    UNIT_EQUAL(spawn_as("clark", &clerk, "kept", &ref), TRP_OK);
    stop();
    system_ = first;
    options.size--;
    UNIT_EQUAL(trp_durable_register(system_, "third", &options), TRP_EINVAL);
    options.size++;
    options.map_bytes = TRP_DURABLE_MAP_BYTES_MIN - 1;
    UNIT_EQUAL(trp_durable_register(system_, "third", &options), TRP_EINVAL);
    stop();
    forget();
}

UNIT_BEGIN("durable")
UNIT(what_was_told_survives_a_kill)
UNIT(the_end_of_an_actor_leaves_its_mail)
UNIT(a_poison_pill_keeps_its_place)
UNIT(senders_are_found_again_by_path)
UNIT(the_oldest_is_dropped_when_it_is_full)
UNIT(or_the_newest_is_refused)
UNIT(bytes_are_counted_too)
UNIT(what_is_too_old_is_not_given)
UNIT(a_full_disk_refuses_and_recovers)
UNIT(a_breaker_stands_before_the_storage)
UNIT(a_storage_that_is_well_again_is_read)
UNIT(damaged_and_foreign_files_are_refused)
UNIT(an_unknown_type_is_a_dead_letter)
UNIT(who_may_have_one)
UNIT_END

#else /* --without-lmdb: it says so */

static void
a_build_without_storage_says_so(void)
{
    trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
    trp_system_options system_options = TRP_SYSTEM_OPTIONS_INIT;
    trp_mailbox_info info = { .size = sizeof info };
    trp_system *system;

    system_options.workers = 1;
    system_options.log_level = TRP_LOG_OFF;
    UNIT_REQUIRE(trp_system_new("post", &system_options, &system) == TRP_OK);
    UNIT_EQUAL(trp_durable_register(system, "kept", &options), TRP_EUNSUPPORTED);
    UNIT_EQUAL(trp_mailbox_find(system, "kept", &info), TRP_ENOENT);
    trp_system_free(system);
}

UNIT_BEGIN("durable")
UNIT(a_build_without_storage_says_so)
UNIT_END
#endif

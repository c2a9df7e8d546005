/* durable_test.c - durable mailboxes: what is told survives, in order, once, also a kill.
 */
#include "tests/unit/pattern/post.h"

TRP_PROTOCOL_DEFINE(rare, RARE_MESSAGES)
TRP_PROTOCOL_DEFINE(post, POST_MESSAGES)

#include <pthread.h>
#include <sys/wait.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "pattern/durable_record.h"

#ifdef HAVE_LMDB

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

        number_tell(child_clerk, number);
        if (write(ack_fd, &number, 8) != 8) { /* after the tell returned */
            _exit(3);
        }
    }
    return NULL;
}

/* Runs before main when the parent says so; ends by SIGKILL. */
static void __attribute__((constructor)) child(void)
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

/* A process that tells until it is killed; back when so many tells have returned. */
static pid_t
child_run(uint64_t acks)
{
    pid_t pid = fork();

    UNIT_REQUIRE(pid >= 0);
    if (pid == 0) {
        (void)setenv("DURABLE_TEST_CHILD", directory, 1);
        (void)execl("/proc/self/exe", "durable_test", (char *)NULL);
        _exit(5);
    }
    UNIT_WAIT(numbers_in("acks", NULL, 0) >= acks, 20000);
    return pid;
}

static void
child_kill(pid_t pid)
{
    int status = 0;

    UNIT_EQUAL(kill(pid, SIGKILL), 0);
    UNIT_TRUE(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
}

/* DUR-01, DUR-02, MBOX-7: a process is killed while three threads tell and the actor handles. A
 * message whose tell has returned is handled before or after the kill, in order and once; only the
 * message that was being handled may be lost. */
static void
what_was_told_survives_a_kill(void)
{
    enum { MAX = SEEN_MAX };
    static uint64_t acked[MAX], all[2 * MAX];
    uint64_t acks, begun, found = 0, lost = 0;
    trp_ref ref;

    directory_make();
    child_kill(child_run(500));
    acks = numbers_in("acks", acked, MAX);
    begun = numbers_in("begun", all, MAX);
    system_start(NULL);
    ref = spawn_clerk(); /* no message is told: the stored ones wake it */
    UNIT_WAIT(atomic_load(&seen_count) + begun + 1 >= acks, 5000);
    number_tell(ref, UINT64_MAX - 1);
    UNIT_WAIT((pthread_mutex_lock(&seen_lock), found = atomic_load(&seen_count),
               pthread_mutex_unlock(&seen_lock),
               found > 0 && found < MAX && seen[found - 1] == UINT64_MAX - 1),
              10000);
    UNIT_REQUIRE(found > 0 && found < MAX && acks < MAX && begun < MAX);
    found--;
    memcpy(all + begun, seen, found * 8);
    UNIT_TRUE(is_in_order(all, begun + found));
    printf("  %llu acknowledged, %llu begun before, %llu handled after\n", (unsigned long long)acks,
           (unsigned long long)begun, (unsigned long long)found);
    qsort(all, begun + found, 8, by_value);
    for (uint64_t i = 1; i < begun + found; i++) {
        UNIT_TRUE(all[i] != all[i - 1]);
    }
    for (uint64_t i = 0; i < acks; i++) {
        lost += bsearch(&acked[i], all, begun + found, 8, by_value) == NULL ? 1 : 0;
    }
    UNIT_TRUE(lost <= 1);
    system_stop();
    directory_remove();
}

/* ---- one incarnation after another ----------------------------------------------------------- */

/* TRP-13, DUR-01: messages that are left when the actor stops wait for the next one of its path,
 * and for no other path. */
static void
the_end_of_an_actor_leaves_its_mail(void)
{
    trp_ref ref, other = TRP_REF_NONE;
    trp_mailbox_view view;

    directory_make();
    system_start(NULL);
    ref = spawn_held();
    for (uint64_t i = 0; i < 10; i++) {
        number_tell(ref, i);
    }
    stop_held(ref);
    UNIT_EQUAL(atomic_load(&seen_count), 1); /* post_stop */
    system_start(NULL);
    UNIT_EQUAL(spawn_as("other", &clerk, "kept", &other), TRP_OK);
    ref = spawn_clerk();
    UNIT_WAIT(atomic_load(&seen_count) == 10, 5000);
    for (uint64_t i = 0; i < 10; i++) {
        UNIT_EQUAL(seen[i], i);
    }
    /* what was there from the start is counted: nothing waits, nor less */
    UNIT_WAIT(trp_mailbox_look(system_, ref, &view) == TRP_OK && view.messages == 0, 5000);
    system_stop();
    directory_remove();
}

/* MBOX-7: poison pills, which are not stored, keep their place among what is. */
static void
a_poison_pill_keeps_its_place(void)
{
    trp_ref ref;

    directory_make();
    system_start(NULL);
    ref = spawn_held();
    number_tell(ref, 1);
    number_tell(ref, 2);
    trp_system_tell(system_, ref, &trp_poison_pill_type, NULL, 0);
    number_tell(ref, 3);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&seen_count) == 3, 5000);
    UNIT_TRUE(seen[0] == 1 && seen[1] == 2 && seen[2] == UINT64_MAX);
    system_stop();
    system_start(NULL);
    (void)spawn_clerk();
    UNIT_WAIT(atomic_load(&seen_count) == 1, 5000);
    UNIT_EQUAL(seen[0], 3);
    system_stop();
    directory_remove();
}

/* DUR-06: sender and references come back by their paths; an actor that has ended becomes
 * TRP_REF_NONE. */
static void
senders_are_found_again_by_path(void)
{
    trp_ref ref, a = TRP_REF_NONE, b = TRP_REF_NONE;

    directory_make();
    system_start(NULL);
    UNIT_EQUAL(spawn_as("a", &plain, NULL, &a), TRP_OK);
    UNIT_EQUAL(spawn_as("b", &plain, NULL, &b), TRP_OK);
    ref = spawn_held();
    tell_from(ref, a, 1, b);
    tell_from(ref, b, 2, a);
    stop_held(ref);
    system_start(NULL);
    UNIT_EQUAL(spawn_as("other", &plain, NULL, &b), TRP_OK); /* other slots than before */
    UNIT_EQUAL(spawn_as("a", &plain, NULL, &a), TRP_OK);
    ref = spawn_clerk();
    UNIT_WAIT(atomic_load(&seen_count) == 2, 5000);
    UNIT_TRUE(trp_ref_equal(seen_sender[0], a) && trp_ref_is_none(seen_back[0]));
    UNIT_TRUE(trp_ref_is_none(seen_sender[1]) && trp_ref_equal(seen_back[1], a));
    system_stop();
    directory_remove();
}

#define GUEST_PARTY(F, S) F(S, text, name) F(S, ref, actor)
#define GUEST_INVITE(F, S)                                                                         \
    F(S, text, room) F(S, array(struct(guest_party)), parties) F(S, ref, back)
#define GUEST_MESSAGES(M, P) M(P, invite, GUEST_INVITE)
TRP_STRUCT(guest, party, GUEST_PARTY)
TRP_PROTOCOL(guest, GUEST_MESSAGES)

static trp_msg *
invite_make(trp_ref first, trp_ref second)
{
    trp_builder b;
    guest_invite *invite = TRP_BUILD(&b, guest_invite);
    guest_party *parties = TRP_BUILD_ARRAY(&b, &invite->parties, 2);
    trp_msg *msg = NULL;

    trp_build_text(&b, &invite->room, "lobby");
    parties[0].actor = first;
    trp_build_text(&b, &parties[1].name, "the second");
    invite->back = second;
    UNIT_EQUAL(trpi_msg_restore(first, second, TRP_BUILT(&b), &msg), TRP_OK);
    trp_build_free(&b);
    return msg;
}

/* DUR-06: references in fields of variable length, too; invalid bytes on the disk are refused. */
static void
a_message_of_variable_length_comes_back_from_the_disk(void)
{
    trp_ref a = TRP_REF_NONE, b = TRP_REF_NONE;
    trpi_store_record record = { 0 };
    trpi_record_info info = { 0 };
    trp_msg *msg, *back = NULL;
    const guest_party *parties;
    const guest_invite *invite;
    size_t count;

    directory_make();
    system_start(NULL);
    UNIT_EQUAL(trp_protocol_register(&guest_protocol), TRP_OK);
    UNIT_EQUAL(spawn_as("a", &plain, NULL, &a), TRP_OK);
    UNIT_EQUAL(spawn_as("b", &plain, NULL, &b), TRP_OK);
    msg = invite_make(a, b);
    UNIT_EQUAL(trpi_record_write(system_, msg, 100000, &record), TRP_OK);
    trp_msg_free(msg);
    system_stop();
    system_start(NULL); /* another life: a lives elsewhere, b is not there */
    UNIT_EQUAL(spawn_as("other", &plain, NULL, &b), TRP_OK);
    UNIT_EQUAL(spawn_as("a", &plain, NULL, &a), TRP_OK);
    UNIT_EQUAL(trpi_record_read(system_, &record, &info), TRP_OK);
    UNIT_TRUE(info.type == &guest_invite_type);
    UNIT_REQUIRE(trpi_record_msg(system_, &record, &info, a, &back) == TRP_OK);
    invite = trp_msg_payload(back);
    UNIT_TEXT(trp_msg_text(back, invite->room, NULL), "lobby");
    parties = TRP_MSG_ARRAY(back, invite->parties, &count);
    UNIT_REQUIRE(count == 2);
    UNIT_TRUE(trp_ref_equal(parties[0].actor, a) && trp_ref_is_none(parties[1].actor));
    UNIT_TEXT(trp_msg_text(back, parties[1].name, NULL), "the second");
    UNIT_TRUE(trp_ref_is_none(invite->back));
    trp_msg_free(back);
    /* the count of parties */
    memset((unsigned char *)record.data + (info.payload - (const unsigned char *)record.data) +
               offsetof(guest_invite, parties) + 4,
           0x7f, 4);
    UNIT_EQUAL(trpi_record_read(system_, &record, &info), TRP_OK);
    UNIT_TRUE(info.type == NULL);
    trpi_free(record.data);
    system_stop();
    directory_remove();
}

/* DUR-06: a directory is one process's at a time, which is told to the other one; a process that
 * was killed is no obstacle. */
static void
another_process_is_refused_while_one_has_the_directory(void)
{
    pid_t pid;

    directory_make();
    pid = child_run(1);
    UNIT_EQUAL(register_here(), TRP_EADDRINUSE);
    UNIT_TRUE(strstr(last_line, directory) != NULL &&
              strstr(last_line, "is in use by another process") != NULL);
    child_kill(pid);
    UNIT_EQUAL(register_here(), TRP_OK);
    UNIT_TEXT(last_line, "");
    directory_remove();
}

UNIT_BEGIN("durable")
UNIT(what_was_told_survives_a_kill)
UNIT(the_end_of_an_actor_leaves_its_mail)
UNIT(a_poison_pill_keeps_its_place)
UNIT(senders_are_found_again_by_path)
UNIT(a_message_of_variable_length_comes_back_from_the_disk)
UNIT(another_process_is_refused_while_one_has_the_directory)
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

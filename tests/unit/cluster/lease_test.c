/* lease_test.c - the lease that is a file, and the thread that asks any lease. */
#include "cluster/shell/lease.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static char directory[64], path[96];

static void
place_make(void)
{
    snprintf(directory, sizeof directory, "/tmp/troupe-lease-XXXXXX");
    UNIT_REQUIRE(mkdtemp(directory) != NULL);
    snprintf(path, sizeof path, "%s/lease", directory);
}

static void
place_end(void)
{
    (void)unlink(path);
    UNIT_EQUAL(rmdir(directory), 0);
}

static trp_err
acquire_lock(trpi_lease_file *file, const char *owner, char *why, size_t bytes)
{
    why[0] = '\0';
    return trpi_lease_file_ops.acquire(file, "demo-lease", owner, 100, why, bytes);
}

static void
one_owner_at_a_time_has_the_file_and_the_other_hears_who(void)
{
    trpi_lease_file *a, *b;
    char why[256];
    place_make();
    UNIT_REQUIRE(trpi_lease_file_new(path, &a) == TRP_OK);
    UNIT_REQUIRE(trpi_lease_file_new(path, &b) == TRP_OK);
    UNIT_EQUAL(acquire_lock(a, "node a", why, sizeof why), TRP_OK);
    UNIT_EQUAL(acquire_lock(a, "node a", why, sizeof why), TRP_OK); /* it is its already */
    UNIT_EQUAL(acquire_lock(b, "node b", why, sizeof why), TRP_EAGAIN);
    UNIT_TEXT(why, "node a (lease demo-lease) has it");
    trpi_lease_file_ops.release(b, "demo-lease", "node b"); /* not held: nothing */
    UNIT_EQUAL(acquire_lock(b, "node b", why, sizeof why), TRP_EAGAIN);
    trpi_lease_file_ops.release(a, "demo-lease", "node a");
    UNIT_EQUAL(acquire_lock(b, "node b", why, sizeof why), TRP_OK);
    trpi_lease_file_free(b); /* as at its end */
    UNIT_EQUAL(acquire_lock(a, "node a", why, sizeof why), TRP_OK);
    trpi_lease_file_free(a);
    place_end();
}

static void
a_place_that_will_not_do_says_so(void)
{
    trpi_lease_file *file;
    char why[256];
    UNIT_REQUIRE(trpi_lease_file_new("/nonexistent/lease", &file) == TRP_OK);
    UNIT_EQUAL(acquire_lock(file, "node a", why, sizeof why), TRP_EIO);
    UNIT_TEXT(why, "/nonexistent/lease: No such file or directory (ENOENT)");
    trpi_lease_file_free(file);
    UNIT_TRUE(!trpi_lease_file_is_shared("/nonexistent/lease", why, sizeof why));
    UNIT_TEXT(why, "/nonexistent: No such file or directory (ENOENT)");
    UNIT_TRUE(!trpi_lease_file_is_shared("/proc/lease", why, sizeof why));
    UNIT_TRUE(strstr(why, "/proc/lease is on a file system of this host alone") == why);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static _Atomic int asked, given_back, answers, granted_answers, hang, slow_answer;
static char last_why[TRP_LEASE_WHY_BYTES];

static trp_err
fake_acquire(void *arg, const char *name, const char *owner, uint32_t timeout_ms, char *why,
             size_t why_bytes)
{
    UNIT_TEXT(name, "demo-lease");
    UNIT_TEXT(owner, "node a");
    UNIT_EQUAL(timeout_ms, 70);
    atomic_fetch_add(&asked, 1);
    while (atomic_load(&hang) != 0) {
        usleep(1000);
    }
    trp_err err = *(trp_err *)arg;
    if (err == TRP_EIO) {
        snprintf(why, why_bytes, "the service is away");
    }
    return err;
}

static void
fake_release(void *arg, const char *name, const char *owner)
{
    (void)arg;
    (void)name;
    (void)owner;
    atomic_fetch_add(&given_back, 1);
}

static const trp_lease_ops fake_ops = { sizeof(trp_lease_ops), "fake", fake_acquire, fake_release };

static void
note_answer(void *arg, bool granted, const char *why)
{
    (void)arg;
    if (atomic_load(&slow_answer) != 0) {
        atomic_store(&slow_answer, 2);
        usleep(50000); /* meanwhile it is closed */
    }
    snprintf(last_why, sizeof last_why, "%s", why == NULL ? "" : why);
    atomic_fetch_add(&granted_answers, granted ? 1 : 0);
    atomic_fetch_add(&answers, 1);
}

static trpi_lease *
lease_of(trp_err *outcome)
{
    trpi_lease *lease = NULL;
    asked = given_back = answers = granted_answers = hang = slow_answer = 0;
    UNIT_REQUIRE(trpi_lease_new("demo-lease", "node a", 70, note_answer, NULL, &lease) == TRP_OK);
    UNIT_TRUE(!trpi_lease_is_set(lease));
    if (outcome != NULL) {
        trpi_lease_set(lease, &fake_ops, outcome);
    }
    return lease;
}

static void
each_question_has_one_answer(void)
{
    static trp_err outcome = TRP_OK;
    trpi_lease *lease = lease_of(&outcome);
    UNIT_TRUE(trpi_lease_is_set(lease));
    trpi_lease_acquire(lease, false);
    UNIT_WAIT(atomic_load(&answers) == 1, 60000);
    UNIT_EQUAL(granted_answers, 1);
    outcome = TRP_EIO;
    trpi_lease_acquire(lease, true); /* on this thread, as in the simulator */
    UNIT_EQUAL(answers, 2);
    UNIT_EQUAL(granted_answers, 1);
    UNIT_TEXT(last_why, "the service is away");
    outcome = TRP_EAGAIN;
    trpi_lease_acquire(lease, true);
    UNIT_TEXT(last_why, trp_strerror(TRP_EAGAIN));
    trpi_lease_release(lease, true);
    UNIT_EQUAL(given_back, 1);
    trpi_lease_close(lease, false); /* others need it */
    UNIT_EQUAL(given_back, 1);
    lease = lease_of(&outcome);
    trpi_lease_close(lease, true);
    UNIT_EQUAL(given_back, 1);
    lease = lease_of(NULL); /* none is set */
    trpi_lease_acquire(lease, true);
    UNIT_EQUAL(answers, 1);
    UNIT_EQUAL(granted_answers, 0);
    UNIT_TEXT(last_why, "no lease is set");
    trpi_lease_close(lease, true);
}

/* membership-downing-W2 looks for it there */
static void
the_longest_owner_is_told_whole(void)
{
    char owner[2][TRPI_LEASE_OWNER_BYTES], name[TRP_LEASE_NAME_BYTES_MAX + 1];
    const char hosts[] = { 'g', 'h' };
    trpi_lease_file *file[2];
    trpi_lease *lease[2];
    place_make();
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    answers = granted_answers = slow_answer = 0;
    for (uint32_t i = 0; i < 2; i++) {
        trpi_node_id id = { .address.port = 65535, .uid = UINT64_MAX };
        memset(id.address.protocol, 'p', TRPI_PROTOCOL_BYTES_MAX);
        memset(id.address.system, 's', TRPI_SYSTEM_BYTES_MAX);
        memset(id.address.host, hosts[i], TRPI_HOST_BYTES_MAX);
        UNIT_EQUAL(strlen(trpi_lease_owner(&id, owner[i])), TRP_LEASE_OWNER_BYTES_MAX);
        UNIT_TRUE(strstr(owner[i], ":65535 uid ffffffffffffffff") != NULL);
        UNIT_REQUIRE(trpi_lease_file_new(path, &file[i]) == TRP_OK);
    }
    for (uint32_t i = 0; i < 2; i++) { /* the other one has it */
        for (uint32_t of = 0; of < 2; of++) {
            UNIT_REQUIRE(trpi_lease_new(name, owner[of], 70, note_answer, NULL, &lease[of]) ==
                         TRP_OK);
            trpi_lease_set(lease[of], &trpi_lease_file_ops, file[of]);
        }
        trpi_lease_acquire(lease[1 - i], true);
        trpi_lease_acquire(lease[i], true);
        UNIT_EQUAL(answers, 2 * (int)(i + 1));
        UNIT_EQUAL(granted_answers, (int)(i + 1));
        UNIT_TRUE(strncmp(last_why, owner[1 - i], strlen(owner[1 - i])) == 0);
        UNIT_TEXT(last_why + strlen(last_why) - 8, ") has it");
        trpi_lease_close(lease[0], true);
        trpi_lease_close(lease[1], true);
    }
    trpi_lease_file_free(file[0]);
    trpi_lease_file_free(file[1]);
    place_end();
}

/* lease-L1 */
static void
a_lease_that_hangs_is_left_behind_and_given_back_when_it_comes(void)
{
    static trp_err outcome = TRP_OK;
    trpi_lease *lease = lease_of(&outcome);
    hang = 1;
    trpi_lease_acquire(lease, false);
    UNIT_WAIT(atomic_load(&asked) == 1, 60000);
    trpi_lease_close(lease, true); /* at once */
    UNIT_EQUAL(given_back, 0);
    hang = 0;
    UNIT_WAIT(atomic_load(&given_back) == 1, 60000);
    UNIT_EQUAL(answers, 0);
    trpi_lease_close(NULL, true);
}

/* lease-L3: close comes while the answer is told that it is granted. */
static void
a_lease_that_is_granted_while_it_is_closed_is_given_back(void)
{
    static trp_err outcome = TRP_OK;
    trpi_lease *lease = lease_of(&outcome);
    slow_answer = 1;
    trpi_lease_acquire(lease, false);
    UNIT_WAIT(atomic_load(&slow_answer) == 2, 60000);
    trpi_lease_close(lease, true); /* waits for the answer */
    UNIT_WAIT(atomic_load(&given_back) == 1, 60000);
    UNIT_EQUAL(granted_answers, 1);
}

static void
kept_end(void *arg)
{
    UNIT_TRUE(atomic_load(&given_back) == 1); /* after the last call */
    atomic_store((_Atomic int *)arg, 1);
}

/* lease-L1 */
static void
what_a_lease_needs_lives_until_its_last_call_has_ended(void)
{
    static trp_err outcome = TRP_OK;
    static _Atomic int ended;
    trpi_lease *lease = lease_of(&outcome);
    trpi_lease_keep(lease, kept_end, &ended);
    hang = 1;
    trpi_lease_acquire(lease, false);
    UNIT_WAIT(atomic_load(&asked) == 1, 60000);
    trpi_lease_close(lease, true);
    UNIT_EQUAL(ended, 0);
    hang = 0;
    UNIT_WAIT(atomic_load(&ended) == 1, 60000);
}

UNIT_BEGIN("lease")
UNIT(one_owner_at_a_time_has_the_file_and_the_other_hears_who)
UNIT(a_place_that_will_not_do_says_so)
UNIT(each_question_has_one_answer)
UNIT(the_longest_owner_is_told_whole)
UNIT(a_lease_that_hangs_is_left_behind_and_given_back_when_it_comes)
UNIT(a_lease_that_is_granted_while_it_is_closed_is_given_back)
UNIT(what_a_lease_needs_lives_until_its_last_call_has_ended)
UNIT_END

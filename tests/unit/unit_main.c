/* unit_main.c - main of every program of unit tests: its suites, one a process.
 *
 * A suite may end the process, change its limits or leave threads behind, so no two share one:
 * without arguments the program runs itself once for each of its suites. A program of one suite
 * (tests/sim) is that suite, and its arguments are tests.
 */
#include "tests/unit/unit.h"

#include <CUnit/CUnit.h>
#include <CUnit/TestRun.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static unit_suite *suites;

/* In the order of names, whatever order the linker gave the files. */
void
unit_suite_add(unit_suite *suite)
{
    unit_suite **at = &suites;

    while (*at != NULL && strcmp((*at)->file, suite->file) < 0) {
        at = &(*at)->next;
    }
    suite->next = *at;
    *at = suite;
}

/* ".../tests/unit/actor/ref_test.c" is "ref_test". */
static size_t
suite_name(const unit_suite *suite, const char **ret_name)
{
    const char *slash = strrchr(suite->file, '/');

    *ret_name = slash == NULL ? suite->file : slash + 1;
    return strcspn(*ret_name, ".");
}

static const unit_suite *
suite_find(const char *wanted)
{
    for (const unit_suite *suite = suites; suite != NULL; suite = suite->next) {
        const char *name;
        size_t length = suite_name(suite, &name);

        if (strlen(wanted) == length && memcmp(wanted, name, length) == 0) {
            return suite;
        }
    }
    return NULL;
}

static bool
test_wanted(int count, char **names, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return count == 0;
}

/* With TROUPE_ONE_THREAD, which the suites of tests/unit/one_thread get since the thread sanitizer
 * does not see them, a thread that begins, also in a child, ends its process: by a signal without a
 * handler, since libc blocks all of them meanwhile. A process may begin. */
static void
one_thread_only(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        /* its flags are in memory, which a filter cannot read: libc takes clone then */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof filter / sizeof filter[0], filter };

    if (getenv("TROUPE_ONE_THREAD") == NULL) {
        return;
    }
    printf("one thread: SIGSYS for who starts another; tests/unit/one_thread has this suite\n");
    fflush(stdout);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("threads are not looked for: seccomp"); /* a container may refuse it */
    }
}

static void
test_report(const char *suite, const char *name)
{
    CU_pFailureRecord failure = CU_get_failure_list();
    const char *file = failure == NULL ? "" : failure->strFileName;
    const char *text = failure == NULL ? "" : failure->strCondition;

    if (failure == NULL) {
        printf("PASS %s:%s\n", suite, name);
    } else {
        printf("FAIL %s:%s %s:%u %s\n", suite, name, file, failure->uiLineNumber, text);
    }
    fflush(stdout);
}

/* Run the named tests of a suite, or all; return the exit status. */
static int
suite_run(const unit_suite *suite, int count, char **names)
{
    CU_pSuite cu_suite;
    unsigned failed = 0;
    unsigned ran = 0;

    if (suite->skip != NULL) {
        printf("SKIP %s: %s\n", suite->name, suite->skip);
        return 77;
    }
    if (CU_initialize_registry() != CUE_SUCCESS ||
        (cu_suite = CU_add_suite(suite->name, NULL, NULL)) == NULL) {
        fprintf(stderr, "CUnit: %s\n", CU_get_error_msg());
        return 1;
    }
    CU_set_error_action(CUEA_IGNORE);
    one_thread_only();
    for (size_t i = 0; i < suite->count; i++) {
        const unit_test *test = &suite->tests[i];
        CU_pTest cu_test;

        if (!test_wanted(count, names, test->name)) {
            continue;
        }
        cu_test = CU_add_test(cu_suite, test->name, test->run);
        if (cu_test == NULL) {
            fprintf(stderr, "CUnit: %s\n", CU_get_error_msg());
            failed++;
            continue;
        }
        ran++;
        CU_run_test(cu_suite, cu_test);
        failed += CU_get_number_of_failures() > 0;
        test_report(suite->name, test->name);
    }
    CU_cleanup_registry();
    if (ran == 0) {
        fprintf(stderr, "%s: no test of this name\n", suite->name);
        return 1;
    }
    return failed > 0;
}

/* Run one suite, or one test of it, in a process that is this program anew; return whether it
 * failed. */
static bool
process_failed(const unit_suite *suite, const char *test)
{
    const char *name;
    int length = (int)suite_name(suite, &name);
    char text[128];
    int status = 0;
    pid_t pid;

    snprintf(text, sizeof text, "%.*s", length, name);
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "unit", text, test, (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        perror(text);
        return true;
    }
    if (WIFSIGNALED(status)) {
        printf("FAIL %s:%s ended by signal %d\n", suite->name, test == NULL ? "" : test,
               WTERMSIG(status));
    }
    return !WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 77);
}

static void
suites_list(void)
{
    for (const unit_suite *suite = suites; suite != NULL; suite = suite->next) {
        const char *path = strstr(suite->file, "tests/unit/");

        path = path == NULL ? suite->file : path;
        printf("%.*s\n", (int)strcspn(path, "."), path);
    }
}

/* Every suite in a process of its own; or every test, which shows a test that needs another. */
static bool
all_failed(bool each_test)
{
    bool failed = false;

    for (const unit_suite *suite = suites; suite != NULL; suite = suite->next) {
        if (!each_test) {
            failed = process_failed(suite, NULL) || failed;
            continue;
        }
        for (size_t i = 0; i < suite->count; i++) {
            failed = process_failed(suite, suite->tests[i].name) || failed;
        }
    }
    return failed;
}

int
main(int argc, char **argv)
{
    const unit_suite *suite;

    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        suites_list();
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--alone") == 0) {
        return all_failed(true);
    }
    if (suites != NULL && suites->next == NULL && (argc < 2 || suite_find(argv[1]) == NULL)) {
        return suite_run(suites, argc - 1, argv + 1);
    }
    if (argc > 1) {
        suite = suite_find(argv[1]);
        if (suite == NULL) {
            fprintf(stderr, "%s: no suite %s (--list names them)\n", argv[0], argv[1]);
            return 64;
        }
        return suite_run(suite, argc - 2, argv + 2);
    }
    return all_failed(false);
}

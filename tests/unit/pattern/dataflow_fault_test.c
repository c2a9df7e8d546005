/* dataflow_fault_test.c - with fault-trap a fault of a flow is its failure, and nobody else's.
 *
 * Linked with the shared library, as a program is (see tests/unit/actor/fault_test.c).
 */
#include <troupe/dataflow.h>

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/actor/stage.h"

#ifdef UNIT_SANITIZED
UNIT_SKIPPED("dataflow_fault", "the sanitizers take these signals and the heap for themselves")
#else

static void *volatile nothing;
static volatile int zero;
static void (*volatile nowhere)(void);

__attribute__((noinline)) static int
deep(volatile char *above)
{
    volatile char frame[4096];
    frame[0] = above == NULL ? 1 : above[0];
    return zero == 0 ? deep(frame) + frame[0] : 0;
}

static void
released(void *arg)
{
    atomic_fetch_add((_Atomic int *)arg, 1);
}

static _Atomic int releases;

/* Waits once, so that it may be on another thread, then does what it was told. */
static trp_err
misbehave(trp_flow *flow, void *arg, trp_promise *out)
{
    const char *how = arg;
    trp_err err = trp_flow_defer(flow, released, &releases);
    err = err != TRP_OK ? err : trp_flow_sleep(flow, 0);
    if (strcmp(how, "write") == 0) {
        *(volatile int *)nothing = 1;
    } else if (strcmp(how, "call") == 0) {
        nowhere();
    } else if (strcmp(how, "divide") == 0) {
        zero = 1000 / zero;
    } else if (strcmp(how, "deep") == 0) {
        zero = deep(NULL);
    } else if (strcmp(how, "libc") == 0) {
        zero = (int)strlen(nothing);
    }
    return err != TRP_OK ? err : trp_promise_succeed(out, &trp_i64_type, &(int64_t){ 7 }, 8);
}

static trp_system *
open_mode(uint32_t mode)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    options.fault_trap = mode;
    return stage_open_with(options);
}

static trp_future *
flow_open(trp_system *system, const char *how)
{
    trp_flow_options options = TRP_FLOW_OPTIONS_INIT;
    trp_future *future = NULL;
    options.name = "culprit";
    UNIT_REQUIRE(trp_flow_start(system, misbehave, (void *)(uintptr_t)how, NULL, &options,
                                &future) == TRP_OK);
    return future;
}

/* DATAFLOW-1, SYS-4 */
static void
a_fault_of_a_flow_is_its_failure(void)
{
    static const struct {
        const char *how, *said;
    } rows[] = { { "write", "SIGSEGV at address 0x0, code 0x" },
                 { "call", "SIGSEGV at address 0x0, code 0x0" },
                 { "divide", "SIGFPE, code 0x" },
                 { "deep", "SIGSEGV (stack overflow) at address 0x" } };
    trp_system *system = open_mode(TRP_FAULT_TRAP_ON);
    int flows = 0;
    atomic_store(&releases, 0);
    for (int round = 0; round < 50; round++) { /* the same stacks again, and good flows between */
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            trp_future *bad = flow_open(system, rows[i].how), *good = flow_open(system, "well");
            UNIT_EQUAL(trp_future_await(bad, 120000), TRP_OK);
            UNIT_EQUAL(trp_future_await(good, 120000), TRP_OK);
            UNIT_EQUAL(trp_future_outcome(bad)->err, TRP_EFAULT);
            if (!UNIT_TRUE(strncmp(trp_future_outcome(bad)->reason, rows[i].said,
                                   strlen(rows[i].said)) == 0)) {
                printf("  was: %s\n", trp_future_outcome(bad)->reason);
            }
            UNIT_EQUAL(trp_future_outcome(good)->err, TRP_OK);
            trp_future_unref(bad);
            trp_future_unref(good);
            flows += 2;
        }
    }
    /* one that ends well releases when it returns, behind its success */
    UNIT_WAIT(atomic_load(&releases) == flows, 60000);
    STAGE_LOGGED("a flow failed name=culprit reason=SIGSEGV");
    stage_close(system);
}

/* Let a flow misbehave in a child, and keep what it says. */
static void
expect_death(uint32_t mode, const char *how, int number, const char *want)
{
    char said[4096];
    int ends[2], status = 0;
    size_t used = 0;
    ssize_t got;
    UNIT_REQUIRE(pipe(ends) == 0);
    pid_t pid = fork();
    UNIT_REQUIRE(pid >= 0);
    if (pid == 0) {
        struct rlimit no_core = { 0, 0 };
        trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
        trp_flow_options flow = TRP_FLOW_OPTIONS_INIT;
        trp_system *system;
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)dup2(ends[1], STDERR_FILENO);
        (void)alarm(600); /* a child that hangs ends the test, too */
        options.fault_trap = mode;
        flow.name = "culprit";
        if (trp_system_new("child", &options, &system) != TRP_OK ||
            trp_flow_start(system, misbehave, (void *)(uintptr_t)how, NULL, &flow, NULL) !=
                TRP_OK) {
            _exit(9);
        }
        _exit(trp_system_await(system, 60000) == TRP_OK ? 8 : 10);
    }
    (void)close(ends[1]);
    while ((got = read(ends[0], said + used, sizeof said - 1 - used)) > 0) {
        used += (size_t)got;
    }
    said[used] = 0;
    (void)close(ends[0]);
    UNIT_EQUAL(waitpid(pid, &status, 0), pid);
    if (!UNIT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) ||
        !UNIT_TRUE(strstr(said, want) != NULL)) {
        printf("  %s: status %x, said: %s\n", how, (unsigned)status, said);
    }
}

/* Without the trap, and in code that may hold a lock, the process dies and says of which flow. */
static void
the_last_line_of_a_crash_names_the_flow(void)
{
    expect_death(TRP_FAULT_TRAP_REPORT, "write", SIGSEGV, ": flow culprit of system child\n");
    expect_death(TRP_FAULT_TRAP_REPORT, "deep", SIGSEGV, "SIGSEGV (stack overflow) at address 0x");
    expect_death(TRP_FAULT_TRAP_ON, "libc", SIGSEGV, ": flow culprit of system child\n");
}

UNIT_BEGIN("dataflow_fault")
UNIT(a_fault_of_a_flow_is_its_failure)
UNIT(the_last_line_of_a_crash_names_the_flow)
UNIT_END
#endif

/* fault_test.c - faults of an actor's own code, lack of memory, and what a crash says last.
 *
 * Linked with the shared library, as a program is: in a static one the actors' code and the
 * library's are one range of addresses. A fault that ends a process is raised in a child.
 */
#include "tests/unit/actor/stage.h"

#include <troupe/extension.h>

#include <CUnit/CUnit.h>
#include <CUnit/TestDB.h>
#include <dlfcn.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef UNIT_SANITIZED
UNIT_SKIPPED("fault", "the sanitizers take these signals and the heap for themselves")
#else

/* ---- things that no program should do -------------------------------------------------------- */

static void *volatile nothing;
static volatile int zero;
static CU_pTestRegistry volatile out_of_reach = (CU_pTestRegistry)(uintptr_t)64;
static void (*volatile nowhere)(void);

__attribute__((noinline)) static int
deep(volatile char *above)
{
    volatile char frame[4096];

    frame[0] = above == NULL ? 1 : above[0];
    return zero == 0 ? deep(frame) + frame[0] : 0;
}

static void
touch_past_the_end_of_a_file(void)
{
    FILE *file = tmpfile();
    volatile char *page;

    if (file != NULL) {
        page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fileno(file), 0);
        (void)page[0];
    }
}

#define PLUGIN "./tests/unit/actor/.libs/plain_extension.so"
static void (*of_plugin)(int *to);

static bool
plugin_open(void)
{
    void *object = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);

    *(void **)&of_plugin = object == NULL ? NULL : dlsym(object, "plain_write");
    return of_plugin != NULL;
}

static void
misbehave(const char *how)
{
    if (strcmp(how, "write") == 0) {
        *(volatile int *)nothing = 1;
    } else if (strcmp(how, "call") == 0) {
        nowhere();
    } else if (strcmp(how, "divide") == 0) {
        zero = 1000 / zero;
    } else if (strcmp(how, "bus") == 0) {
        touch_past_the_end_of_a_file();
    } else if (strcmp(how, "deep") == 0) {
        zero = deep(NULL);
    } else if (strcmp(how, "libc") == 0) {
        zero = (int)strlen(nothing);
    } else if (strcmp(how, "library") == 0) {
        zero = CU_get_suite_by_name("x", out_of_reach) != NULL;
    } else if (strcmp(how, "plugin") == 0) {
        of_plugin(nothing);
    } else if (strcmp(how, "sent") == 0) {
        (void)raise(SIGSEGV);
    } else if (strcmp(how, "abort") == 0) {
        abort();
    }
}

/* ---- the actor that does them ---------------------------------------------------------------- */

static _Atomic int deferred_left;
static const char *volatile bad_hook = "";
static const char *volatile bad_way = "write";

static void
hook(const char *name)
{
    if (strcmp(bad_hook, name) == 0) {
        bad_hook = "";
        misbehave(bad_way);
    }
}

static void
release(void *arg)
{
    atomic_fetch_sub((_Atomic int *)arg, 1);
    hook("deferred");
}

static trp_err
villain_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    atomic_fetch_add(&deferred_left, 1);
    if (trp_defer(ctx, release, &deferred_left) != TRP_OK) {
        return TRP_ENOMEM;
    }
    hook("pre_start");
    return TRP_OK;
}
static void
villain_post_stop(trp_ctx *ctx, void *state)
{
    (void)ctx;
    (void)state;
    hook("post_stop");
}
static trp_err
villain_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int *count = state;
    char text[32];

    ++*count;
    snprintf(text, sizeof text, "%.*s", (int)trp_msg_bytes(msg),
             (const char *)trp_msg_payload(msg));
    if (strcmp(text, "ping") == 0) {
        snprintf(text, sizeof text, "pong %d", *count);
        trp_reply_text(ctx, text);
    } else if (strcmp(text, "fail") == 0) {
        (void)trp_alloc(ctx, 4096);
        trp_fail(ctx, 1, "on purpose");
    } else {
        memset(trp_alloc(ctx, 4096), 1, 4096);
        misbehave(text);
    }
    return TRP_OK;
}
static const trp_behaviour villain = { .size = sizeof(trp_behaviour),
                                       .name = "villain",
                                       .state_bytes = sizeof(int),
                                       .receive = villain_receive,
                                       .pre_start = villain_pre_start,
                                       .post_stop = villain_post_stop };
static char answer[64];

static trp_system *
open_mode(uint32_t mode)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;

    options.fault_trap = mode;
    return stage_open_with(options);
}

/* SYS-4: each fault is the failure of the actor that made it; its supervisor
 * restarts it, the mailbox stays, and nobody else notices */
static void
a_fault_of_an_actor_is_its_failure(void)
{
    static const struct {
        const char *how, *said;
    } rows[] = {
        { "write", "/user/a: failed: SIGSEGV at address 0x0, code 0x" },
        { "call", "/user/b: failed: SIGSEGV at address 0x0, code 0x0 (TRP_EFAULT" },
        { "divide", "/user/c: failed: SIGFPE, code 0x" },
        { "bus", "/user/d: failed: SIGBUS at address 0x" },
        { "deep", "/user/e: failed: SIGSEGV (stack overflow) at address 0x" },
    };
    trp_system *system = open_mode(TRP_FAULT_TRAP_ON);
    trp_ref bystander = stage_spawn(system, &villain, "bystander");

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char name[2] = { (char)('a' + i), 0 };
        trp_ref a = stage_spawn(system, &villain, name);

        UNIT_EQUAL(stage_ask(system, a, "ping", answer, sizeof answer), TRP_OK);
        stage_tell(system, a, rows[i].how);
        UNIT_EQUAL(stage_ask(system, a, "ping", answer, sizeof answer), TRP_OK);
        UNIT_TEXT(answer, "pong 1"); /* a fresh state */
        UNIT_EQUAL(trp_log_flush(system, 60000), TRP_OK);
        if (!UNIT_WAIT(stage_book_has(&stage_lines, rows[i].said), 5000)) {
            printf("  was: %s\n", stage_lines.text);
        }
        stage_tell(system, a, rows[i].how); /* the mask is as it was: again */
        UNIT_EQUAL(stage_ask(system, a, "ping", answer, sizeof answer), TRP_OK);
        UNIT_EQUAL(stage_ask(system, bystander, "ping", answer, sizeof answer), TRP_OK);
    }
    UNIT_TEXT(answer, "pong 5");
    stage_close(system);
    UNIT_EQUAL(atomic_load(&deferred_left), 0);
}

static trp_directive
bad_decider(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    UNIT_TRUE(failure->err != TRP_EFAULT || failure->code == SIGSEGV);
    hook("decider");
    return trp_default_decider(ctx, state, failure);
}
static const trp_strategy bad_strategy = { .size = sizeof(trp_strategy),
                                           .decider = bad_decider,
                                           .retries_max = TRP_FOREVER };
static trp_err
parent_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    stage_child(ctx, &villain, "kid");
    return TRP_OK;
}
static const trp_behaviour parent = { .size = sizeof(trp_behaviour),
                                      .name = "parent",
                                      .state_bytes = sizeof(int),
                                      .receive = villain_receive,
                                      .pre_start = parent_pre_start,
                                      .strategy = &bad_strategy };

/* SUP-8, SUP-15: in hooks, deferred calls and deciders a fault is what a failure there is */
static void
a_fault_in_a_hook_is_a_failure_there(void)
{
    trp_system *system = open_mode(TRP_FAULT_TRAP_ON);
    trp_ref a, kid;

    bad_hook = "pre_start";
    a = stage_spawn(system, &villain, "a");
    UNIT_WAIT(stage_book_has(&stage_lines, "/user/a: failed: SIGSEGV"), 5000);
    UNIT_WAIT(stage_book_has(&stage_lines, "(TRP_EINIT"), 5000);
    UNIT_EQUAL(trp_system_graceful_stop(system, a, 60000), TRP_OK);

    a = stage_spawn(system, &villain, "b");
    UNIT_EQUAL(stage_ask(system, a, "ping", answer, sizeof answer), TRP_OK);
    bad_hook = "post_stop";
    UNIT_EQUAL(trp_system_graceful_stop(system, a, 60000), TRP_OK);
    UNIT_WAIT(stage_book_has(&stage_lines, "/user/b: post_stop failed: SIGSEGV"), 5000);

    a = stage_spawn(system, &villain, "c");
    UNIT_EQUAL(stage_ask(system, a, "ping", answer, sizeof answer), TRP_OK);
    bad_hook = "deferred";
    UNIT_EQUAL(trp_system_graceful_stop(system, a, 60000), TRP_OK);
    UNIT_WAIT(stage_book_has(&stage_lines, "/user/c: a deferred call failed: SIGSEGV"), 5000);

    stage_spawn(system, &parent, "p");
    UNIT_WAIT(trp_system_resolve(system, "/user/p/kid", 60000, &kid) == TRP_OK, 5000);
    bad_hook = "decider";
    stage_tell(system, kid, "fail");
    UNIT_WAIT(stage_book_has(&stage_lines, "/user/p: failed: SIGSEGV"), 5000);
    stage_close(system);
    UNIT_EQUAL(atomic_load(&deferred_left), 0);
}

/* 10,000 crashing restarts leak nothing of what trp_alloc() and trp_defer() hold. Each
 * instance holds 4 KiB, so what leaks would be 40 MB. */
static void
ten_thousand_crashing_restarts_leak_nothing(void)
{
    enum { RESTARTS = 10000, ROUND = 500, WARM = 1000 };
    static trp_strategy quiet = TRP_STRATEGY_INIT;
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system_stats stats = { .size = sizeof stats };
    trp_system *system;
    size_t held = 0;
    trp_ref a;

    quiet.quiet = 1;
    options.guardian_strategy = &quiet;
    options.fault_trap = TRP_FAULT_TRAP_ON;
    system = stage_open_with(options);
    a = stage_spawn(system, &villain, "a");
    for (int i = 0; i < RESTARTS; i++) {
        stage_tell(system, a, i % 3 == 0 ? "write" : i % 3 == 1 ? "fail" : "divide");
        if ((i + 1) % ROUND == 0) {
            UNIT_EQUAL(stage_ask(system, a, "ping", answer, sizeof answer), TRP_OK);
            UNIT_EQUAL(atomic_load(&deferred_left), 1);
        }
        if (i + 1 == WARM) {
            held = mallinfo2().uordblks;
        }
    }
    UNIT_TRUE(mallinfo2().uordblks < held + (size_t)1024 * 1024);
    trp_system_stats_get(system, &stats);
    UNIT_EQUAL(stats.restarts, RESTARTS);
    stage_close(system);
    UNIT_EQUAL(atomic_load(&deferred_left), 0);
}

/* ---- processes that end ---------------------------------------------------------------------- */

static void
previous_handler(int number)
{
    static const char said[] = "the program's own handler\n";

    (void)number;
    (void)!write(STDERR_FILENO, said, sizeof said - 1);
    _exit(7);
}

typedef struct ending {
    int status;
    char said[4096]; /* on stderr */
} ending;

/* Let an actor misbehave in a child; true: it ended. */
static bool
child_ends(uint32_t mode, const char *how, bool own_handler, ending *ret_ending)
{
    int ends[2];
    size_t used = 0;
    ssize_t got;
    pid_t pid;

    if (pipe(ends) != 0 || (pid = fork()) < 0) {
        return false;
    }
    if (pid == 0) {
        struct rlimit no_core = { 0, 0 };
        trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
        trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
        trp_system *system;
        trp_ref a;

        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)dup2(ends[1], STDERR_FILENO);
        (void)alarm(600); /* a child that hangs ends the test, too */
        if (own_handler) {
            (void)signal(SIGSEGV, previous_handler);
        }
        options.fault_trap = mode;
        spawn.name = "culprit";
        if (trp_system_new("child", &options, &system) != TRP_OK ||
            trp_system_spawn(system, &parent, &spawn, &a) != TRP_OK) {
            _exit(9);
        }
        while (trp_system_resolve(system, "/user/culprit/kid", 60000, &a) != TRP_OK) {
            unit_pause();
        }
        stage_tell(system, a, how);
        _exit(trp_system_await(system, 60000) == TRP_OK ? 8 : 10);
    }
    (void)close(ends[1]);
    while ((got = read(ends[0], ret_ending->said + used, sizeof ret_ending->said - 1 - used)) > 0) {
        used += (size_t)got;
    }
    ret_ending->said[used] = 0;
    (void)close(ends[0]);
    return waitpid(pid, &ret_ending->status, 0) == pid;
}

static void
expect_death(uint32_t mode, const char *how, int number, const char *said)
{
    ending end = { 0, "" };

    UNIT_TRUE(child_ends(mode, how, false, &end));
    if (!UNIT_TRUE(WIFSIGNALED(end.status) && WTERMSIG(end.status) == number) ||
        !UNIT_TRUE(strstr(end.said, said) != NULL)) {
        printf("  %s: status %x, said: %s\n", how, (unsigned)end.status, end.said);
    }
    if (said[0] != 0) { /* the last line, and only one */
        const char *line = strstr(end.said, "troupe: ");

        UNIT_TRUE(line != NULL && strchr(line, '\n') == line + strlen(line) - 1);
    }
}

/* SYS-4: without the trap, and for what it does not cover, the last line of a crash names
 * the actor, and the process dies of the same signal */
static void
the_last_line_of_a_crash_names_the_actor(void)
{
    expect_death(TRP_FAULT_TRAP_REPORT, "write", SIGSEGV,
                 ": actor /user/culprit/kid of system child, behaviour villain, handling "
                 "troupe.string\n");
    expect_death(TRP_FAULT_TRAP_REPORT, "deep", SIGSEGV, "SIGSEGV (stack overflow) at address 0x");
    expect_death(TRP_FAULT_TRAP_REPORT, "divide", SIGFPE, "actor /user/culprit/kid of system");
    expect_death(TRP_FAULT_TRAP_REPORT, "abort", SIGABRT, "actor /user/culprit/kid of system");
    /* a lock may be held there: never jumped out of */
    expect_death(TRP_FAULT_TRAP_ON, "libc", SIGSEGV, "actor /user/culprit/kid of system child");
    /* nor of a library of which nothing is known */
    expect_death(TRP_FAULT_TRAP_ON, "library", SIGSEGV, "actor /user/culprit/kid of system child");
    /* sent, not raised */
    expect_death(TRP_FAULT_TRAP_ON, "sent", SIGSEGV, "actor /user/culprit/kid of system child");
}

/* An object that somebody has opened is any library; what is loaded as a plugin or an extension is
 * code of actors. */
static void
a_fault_in_a_plugin_is_a_failure(void)
{
    trp_system *system;
    trp_ref a;

    UNIT_REQUIRE(plugin_open());
    expect_death(TRP_FAULT_TRAP_ON, "plugin", SIGSEGV, "actor /user/culprit/kid of system child");
    system = open_mode(TRP_FAULT_TRAP_ON);
    a = stage_spawn(system, &villain, "a");
    UNIT_EQUAL(trp_extension_load(system, PLUGIN), TRP_OK);
    stage_tell(system, a, "plugin");
    UNIT_EQUAL(stage_ask(system, a, "ping", answer, sizeof answer), TRP_OK);
    UNIT_WAIT(stage_book_has(&stage_lines, "/user/a: failed: SIGSEGV at address 0x0"), 5000);
    stage_close(system);
}

/* The library installs no handler unless asked, and passes on to the program's own */
static void
handlers_are_installed_on_demand_and_passed_on(void)
{
    ending end = { 0, "" };
    trp_system *one, *two;
    struct sigaction now;

    expect_death(TRP_FAULT_TRAP_OFF, "write", SIGSEGV, "");
    one = open_mode(TRP_FAULT_TRAP_OFF);
    UNIT_TRUE(sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
    stage_close(one);
    one = open_mode(TRP_FAULT_TRAP_REPORT);
    two = open_mode(TRP_FAULT_TRAP_ON);
    stage_close(one);
    UNIT_TRUE(sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_handler != SIG_DFL);
    stage_close(two);
    UNIT_TRUE(sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
    UNIT_TRUE(sigaction(SIGFPE, NULL, &now) == 0 && now.sa_handler == SIG_DFL);

    UNIT_TRUE(child_ends(TRP_FAULT_TRAP_REPORT, "write", true, &end));
    UNIT_TRUE(WIFEXITED(end.status) && WEXITSTATUS(end.status) == 7);
    UNIT_TRUE(strstr(end.said, "/user/culprit/kid") != NULL);
    UNIT_TRUE(strstr(end.said, "\nthe program's own handler\n") != NULL);
}

static void
a_mode_that_is_none_is_refused(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system;

    options.fault_trap = TRP_FAULT_TRAP_ON + 1;
    UNIT_EQUAL(trp_system_new("stage", &options, &system), TRP_EINVAL);
}

/* fault-trap is a key of the configuration, too, which is stronger than the code */
static void
the_configuration_can_turn_it_on(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_config_error error = { "" };
    trp_config *config = NULL;
    trp_system *system;
    trp_ref a;

    UNIT_EQUAL(trp_config_parse_text("t.conf", "actor { fault-trap = on }", &config, &error),
               TRP_OK);
    options.config = config;
    options.fault_trap = TRP_FAULT_TRAP_REPORT;
    system = stage_open_with(options);
    trp_config_unref(config);
    a = stage_spawn(system, &villain, "a");
    stage_tell(system, a, "write");
    UNIT_EQUAL(stage_ask(system, a, "ping", answer, sizeof answer), TRP_OK);
    UNIT_WAIT(stage_book_has(&stage_lines, "/user/a: failed: SIGSEGV"), 5000);
    stage_close(system);
}

/* ---- no memory ------------------------------------------------------------------------------- */

static trp_err
glutton_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "eat")) {
        for (;;) {
            memset(trp_alloc(ctx, 1024 * 1024), 1, 1024 * 1024);
        }
    }
    trp_reply_text(ctx, "pong");
    return TRP_OK;
}
static const trp_behaviour glutton = { .size = sizeof(trp_behaviour),
                                       .name = "glutton",
                                       .receive = glutton_receive };

/* In a child whose address space is limited: 0, or the line that went wrong. */
static int
starve(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    struct rlimit limit = { 512u << 20, 512u << 20 };
    trp_system *system;
    trp_ref a, b;

    options.log = stage_log;
    options.workers = 2;
    if (trp_system_new("child", &options, &system) != TRP_OK) {
        return __LINE__;
    }
    spawn.name = "b";
    if (trp_system_spawn(system, &glutton, &spawn, &b) != TRP_OK ||
        setrlimit(RLIMIT_AS, &limit) != 0) {
        return __LINE__;
    }
    spawn.name = "a";
    if (trp_system_spawn(system, &glutton, &spawn, &a) != TRP_OK) {
        return __LINE__;
    }
    for (int i = 0; i < 3; i++) { /* each time it has all the memory again */
        stage_tell(system, a, "eat");
        if (stage_ask(system, a, "ping", answer, sizeof answer) != TRP_OK ||
            stage_ask(system, b, "ping", answer, sizeof answer) != TRP_OK) {
            return __LINE__;
        }
    }
    if (!stage_book_has(&stage_lines, "/user/a: failed: out of memory: 1048576 bytes")) {
        return __LINE__;
    }
    return trp_system_stop(system, 60000) == TRP_OK ? 0 : __LINE__;
}

/* SYS-4: an actor that takes all memory fails, gives it back, and the others live */
static void
an_actor_that_finds_no_memory_fails_and_gives_back_what_it_had(void)
{
    int status = -1;
    pid_t pid = fork();

    UNIT_REQUIRE(pid >= 0);
    if (pid == 0) {
        int line;

        (void)alarm(600); /* of a machine that runs it seldom, not of a test that waits */
        line = starve();
        if (line != 0) {
            printf("  failed in line %d\n", line);
            (void)fflush(stdout);
        }
        _exit(line != 0);
    }
    UNIT_EQUAL(waitpid(pid, &status, 0), pid);
    UNIT_EQUAL(status, 0);
}

UNIT_BEGIN("fault")
UNIT(a_fault_of_an_actor_is_its_failure)
UNIT(a_fault_in_a_plugin_is_a_failure)
UNIT(a_fault_in_a_hook_is_a_failure_there)
UNIT(ten_thousand_crashing_restarts_leak_nothing)
UNIT(the_last_line_of_a_crash_names_the_actor)
UNIT(handlers_are_installed_on_demand_and_passed_on)
UNIT(a_mode_that_is_none_is_refused)
UNIT(the_configuration_can_turn_it_on)
UNIT(an_actor_that_finds_no_memory_fails_and_gives_back_what_it_had)
UNIT_END
#endif

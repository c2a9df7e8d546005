/* misuse_test.c - mistakes with messages and ctx end the process with a line that names them. Each
 * is made in a child. */
#include "tests/unit/actor/stage.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(UNIT_SANITIZED)
UNIT_SKIPPED("misuse", "the address sanitizer says so first, and signals are the sanitizers'")
#else

static trp_ctx *_Atomic kept;
static _Atomic int handled;
static trp_ref other;

static trp_err
receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_msg *made = NULL, *copy = NULL;
    void *payload;

    (void)state;
    if (stage_said(msg, "keep")) {
        atomic_store(&kept, ctx);
        atomic_store(&handled, 1);
        return TRP_OK;
    }
    if (trp_msg_new(&trp_bytes_type, 8, &made, &payload) != TRP_OK) {
        return TRP_ENOMEM;
    }
    memset(payload, 0, 8);
    if (stage_said(msg, "well")) {
        trp_send(ctx, other, made);
    } else if (stage_said(msg, "twice")) {
        trp_send(ctx, trp_self(ctx), made); /* it cannot be handled before this returns */
        trp_send(ctx, trp_self(ctx), made);
    } else if (stage_said(msg, "freed")) {
        trp_msg_free(made);
        trp_send(ctx, other, made);
    } else if (stage_said(msg, "free twice")) {
        trp_msg_free(made);
        trp_msg_free(made);
    } else if (stage_said(msg, "free sent")) {
        trp_send(ctx, trp_self(ctx), made);
        trp_msg_free(made);
    } else if (stage_said(msg, "read freed")) {
        trp_msg_free(made);
        (void)!trp_msg_dup(made, &copy);
    } else {
        trp_msg_free(made);
    }
    atomic_store(&handled, 1);
    return TRP_OK;
}
static const trp_behaviour clumsy = TRP_BEHAVIOUR_INIT("clumsy", char, receive);

/* In a child: 0 when all went well. */
static int
live(const char *how)
{
    trp_config *config = stage_config("actor { debug { misuse = on } }");
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system;
    trp_ref a;

    options.config = config;
    system = stage_open_with(options);
    other = stage_spawn(system, &clumsy, "other");
    a = stage_spawn(system, &clumsy, "a");
    stage_tell(system, a, strncmp(how, "keep", 4) == 0 ? "keep" : how);
    while (atomic_load(&handled) == 0) {
        unit_pause();
    }
    if (strncmp(how, "keep", 4) == 0) { /* by a thread that is no actor */
        UNIT_EQUAL(trp_system_graceful_stop(system, a, 60000), TRP_OK);
    }
    if (strcmp(how, "keep") == 0) {
        trp_tell_text(atomic_load(&kept), other, "well");
    } else if (strcmp(how, "keep, unwatch") == 0) { /* its thread runs nobody now */
        trp_unwatch(atomic_load(&kept), other);
    } else if (strcmp(how, "keep, cancel") == 0) {
        trp_timer_cancel(atomic_load(&kept), 1);
    }
    stage_close(system);
    trp_config_unref(config);
    return 0;
}

static void
ends_with(const char *how, int number, const char *want)
{
    char said[4096] = "";
    size_t used = 0;
    ssize_t got;
    int ends[2], status = 0;
    pid_t pid;

    UNIT_REQUIRE(pipe(ends) == 0);
    pid = fork();
    UNIT_REQUIRE(pid >= 0);
    if (pid == 0) {
        struct rlimit no_core = { 0, 0 };

        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)dup2(ends[1], STDERR_FILENO);
        (void)alarm(600);
        _exit(live(how));
    }
    (void)close(ends[1]);
    while ((got = read(ends[0], said + used, sizeof said - 1 - used)) > 0) {
        used += (size_t)got;
    }
    (void)close(ends[0]);
    UNIT_EQUAL(waitpid(pid, &status, 0), pid);
    if (!UNIT_TRUE(number == 0 ? WIFEXITED(status) && WEXITSTATUS(status) == 0
                               : WIFSIGNALED(status) && WTERMSIG(status) == number) ||
        !UNIT_TRUE(strstr(said, want) != NULL)) {
        printf("  %s: status %x, said: %s\n", how, (unsigned)status, said);
    }
}

static void
a_message_that_was_given_away_is_not_used_again(void)
{
    ends_with("well", 0, "");
    ends_with("twice", SIGABRT,
              "troupe: misuse: trp_send(): this message was sent already; send a "
              "trp_msg_dup() of it; in actor /user/a\n");
    ends_with("freed", SIGABRT, "trp_send(): this message was freed already; in actor /user/a\n");
    ends_with("free twice", SIGABRT, "trp_msg_free(): this message was freed already\n");
    ends_with("free sent", SIGABRT,
              "trp_msg_free(): this message was sent: it belongs to its receiver");
    ends_with("read freed", SIGABRT, "trp_msg_dup(): this message was freed already\n");
}

static void
a_ctx_that_was_kept_is_not_used(void)
{
    /* trp_tell_text() in a developer's build: the other one looks where all tells pass */
    ends_with("keep", SIGABRT, "troupe: misuse: trp_tell");
    ends_with("keep", SIGABRT, "(): this ctx was kept and is used by another thread");
    ends_with("keep, unwatch", SIGABRT,
              "trp_unwatch(): this ctx was kept and is used by another thread");
    ends_with("keep, cancel", SIGABRT,
              "trp_timer_cancel(): this ctx was kept and is used by another thread");
}

UNIT_BEGIN("misuse")
UNIT(a_message_that_was_given_away_is_not_used_again)
UNIT(a_ctx_that_was_kept_is_not_used)
UNIT_END
#endif

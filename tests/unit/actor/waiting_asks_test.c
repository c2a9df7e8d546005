/* waiting_asks_test.c - the asks that wait for their answer, seen from another thread. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/actor/stage.h"

enum { SEEN_MAX = 64, LOOKS = 2000 };

static trp_ref silent_ref, asker_ref;
static _Atomic uint32_t ended;

static trp_err
silent_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "quick")) {
        trp_reply_text(ctx, "yes");
    }
    return TRP_OK;
}
static const trp_behaviour silent = {
    .size = sizeof(trp_behaviour), .name = "silent", .version = 1, .receive = silent_receive
};

static trp_err
asker_done(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    (void)state, (void)reply, (void)err;
    atomic_fetch_add(&ended, 1);
    return arg == NULL
               ? TRP_OK
               : trp_ask(ctx, silent_ref, &trp_string_type, "quick", 5, 60000, asker_done, arg);
}

static trp_err
asker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "self")) {
        return trp_ask(ctx, trp_self(ctx), &trp_string_type, "x", 1, 600000, asker_done, NULL);
    }
    if (stage_said(msg, "wait")) {
        return trp_ask(ctx, silent_ref, &trp_string_type, "x", 1, 600000, asker_done, NULL);
    }
    if (stage_said(msg, "end")) {
        trp_stop(ctx, trp_self(ctx));
    }
    return stage_said(msg, "again")
               ? trp_ask(ctx, silent_ref, &trp_string_type, "quick", 5, 60000, asker_done, &ended)
               : TRP_OK;
}
static const trp_behaviour asker = {
    .size = sizeof(trp_behaviour), .name = "asker", .version = 1, .receive = asker_receive
};

static trp_system *
both_start(void)
{
    trp_system *system = stage_open();
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;

    atomic_store(&ended, 0);
    UNIT_EQUAL(trp_system_spawn(system, &silent, &options, &silent_ref), TRP_OK);
    UNIT_EQUAL(trp_system_spawn(system, &asker, &options, &asker_ref), TRP_OK);
    return system;
}

static bool
waits(trp_system *system, uint32_t count)
{
    trpi_waiting_ask list[SEEN_MAX];

    return trpi_system_waiting_asks(system, list, SEEN_MAX) == count;
}

static void
asks_that_wait_are_listed_and_gone_when_they_end(void)
{
    trp_system *system = both_start();
    trpi_waiting_ask first[SEEN_MAX], second[SEEN_MAX];

    UNIT_TRUE(waits(system, 0));
    trp_system_tell(system, asker_ref, &trp_string_type, "wait", strlen("wait"));
    trp_system_tell(system, asker_ref, &trp_string_type, "self", strlen("self"));
    UNIT_WAIT(waits(system, 2), 60000);
    UNIT_EQUAL(trpi_system_waiting_asks(system, first, SEEN_MAX), 2);
    UNIT_TRUE(trp_ref_equal(first[0].asker, asker_ref) && trp_ref_equal(first[1].asker, asker_ref));
    UNIT_TRUE(trp_ref_equal(first[0].asked, silent_ref) !=
              trp_ref_equal(first[1].asked, silent_ref));
    UNIT_TRUE(trp_ref_equal(first[0].asked, asker_ref) != trp_ref_equal(first[1].asked, asker_ref));
    UNIT_EQUAL(trpi_system_waiting_asks(system, second, SEEN_MAX), 2); /* the same asks */
    UNIT_TRUE(trp_ref_equal(first[0].promise, second[0].promise));
    UNIT_TRUE(trp_ref_equal(first[1].promise, second[1].promise));
    UNIT_TRUE(second[0].waited_ns > first[0].waited_ns && second[0].waited_ns < 60000000000);
    UNIT_EQUAL(trpi_system_waiting_asks(system, second, 1), 1); /* at the limit */
    UNIT_EQUAL(trpi_system_waiting_asks(system, second, 0), 0);
    trp_system_tell(system, asker_ref, &trp_string_type, "end", strlen("end"));
    UNIT_WAIT(waits(system, 0), 60000);
    stage_close(system);
}

/* waiting-asks-W1: promises that are made and freed meanwhile are seen whole or not at all. */
static void
asks_that_end_meanwhile_are_seen_whole(void)
{
    trp_system *system = both_start();
    uint32_t seen = 0;

    for (int i = 0; i < 8; i++) {
        trp_system_tell(system, asker_ref, &trp_string_type, "again", strlen("again"));
    }
    for (uint64_t until = unit_now_ms() + 60000; seen < LOOKS && unit_now_ms() < until;) {
        trpi_waiting_ask list[SEEN_MAX];
        uint32_t count = trpi_system_waiting_asks(system, list, SEEN_MAX);

        for (uint32_t i = 0; i < count; i++) {
            UNIT_TRUE(trp_ref_equal(list[i].asker, asker_ref));
            UNIT_TRUE(trp_ref_equal(list[i].asked, silent_ref));
        }
        seen += count;
    }
    UNIT_EQUAL(seen >= LOOKS, true);
    UNIT_TRUE(atomic_load(&ended) > 0);
    trp_system_tell(system, asker_ref, &trp_string_type, "end", strlen("end"));
    UNIT_WAIT(waits(system, 0), 60000);
    stage_close(system);
}

/* In a child: refuse the system call from now on. false: that cannot be done here. */
static bool
kernel_refuses(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof rules / sizeof rules[0], rules };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

static void
a_kernel_that_refuses_is_known(void)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        bool before = trpi_waiting_asks_seen();

        _exit(!before ? 2 : !kernel_refuses() ? 3 : trpi_waiting_asks_seen() ? 4 : 0);
    }
    UNIT_REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
    UNIT_TRUE(WIFEXITED(status));
    UNIT_EQUAL(WEXITSTATUS(status), 0);
}

UNIT_BEGIN("waiting_asks")
UNIT(a_kernel_that_refuses_is_known)
UNIT(asks_that_wait_are_listed_and_gone_when_they_end)
UNIT(asks_that_end_meanwhile_are_seen_whole)
UNIT_END

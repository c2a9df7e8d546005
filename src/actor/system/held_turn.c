/* held_turn.c - see held_turn.h.
 *
 * Why.     An actor that never ends its turn is named by its path; its author asks what it was
 *          told, and where it is. Its stack is taken from outside, by the tool
 *          (cluster/cli/stack.c): the signal that would ask the thread for it ends system calls of
 *          the actor (EINTR, short writes) and may meet a handler of the program.
 * Shape.   ctx of the worker --> message --copy by the kernel--> number of its type --> name
 * Must hold.
 *   held-turn-H1  A field of another thread's ctx is a hint (stall-K2). The message may be freed
 *       meanwhile: its header is copied by the kernel, which refuses what is not mapped, and counts
 *       only if the ctx shows the same turn and message afterwards.                 (type_look)
 * Cost.    None until a look.
 * Tests.   tests/unit/actor/held_turn_test.c
 * Sources. process_vm_readv(2)
 */
#include "actor/system/held_turn.h"

#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "actor/kernel/run.h"
#include "actor/system/open.h"

typedef struct search {
    trp_ref actor;
    const trp_msg *msg;
    uint64_t run, left;
    int thread;
    bool found;
} search;

/* held-turn-H1 */
__attribute__((no_sanitize("thread"), noinline)) static bool
ctx_look(const trp_ctx *ctx, search *s)
{
    const volatile trp_ctx *seen = ctx;
    trp_ref self = { seen->self.node, seen->self.slot, seen->self.generation, 0 };

    if (seen->cell == NULL || !trp_ref_equal(self, s->actor)) {
        return false;
    }
    s->msg = seen->msg;
    s->run = (uint64_t)seen->run << 32 | seen->turn.rest;
    s->left = (uint64_t)(uint32_t)seen->turn.left;
    return true;
}

static void
worker_look(void *arg, trpi_worker *worker)
{
    search *s = arg;

    if (!s->found && ctx_look(trpi_worker_data(worker), s)) {
        s->found = true;
        s->thread = trpi_worker_kernel_thread(worker);
    }
}

/* Copy the header of a message that may be gone (held-turn-H1). */
static bool
header_copy(const trp_msg *msg, trp_msg *ret_header)
{
    struct iovec here = { ret_header, sizeof *ret_header };
    struct iovec there = { (void *)(uintptr_t)msg, sizeof *ret_header };

    return msg != NULL &&
           process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)sizeof *ret_header;
}

bool
trpi_system_held(trp_system *system, trp_ref actor, trpi_held_turn *ret_turn)
{
    search before = { .actor = actor }, after = { .actor = actor };
    trp_msg header = { 0 };

    *ret_turn = (trpi_held_turn){ "", 0 };
    trpi_sched_workers_each(system->sched, worker_look, &before);
    ret_turn->thread = before.thread;
    if (!before.found || !header_copy(before.msg, &header)) {
        return before.found;
    }
    trpi_sched_workers_each(system->sched, worker_look, &after);
    bool same = after.found && after.msg == before.msg && after.run == before.run &&
                after.left == before.left;
    const trp_type *type = same ? trpi_type_get(header.priv_type) : NULL;
    if (type != NULL) {
        (void)snprintf(ret_turn->type, sizeof ret_turn->type, "%s", type->name);
    }
    return true;
}

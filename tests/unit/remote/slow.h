/* slow.h - an actor on the other node that is slower than its sender, and counters of both. */
#ifndef TESTS_UNIT_REMOTE_SLOW_H
#define TESTS_UNIT_REMOTE_SLOW_H

#include "tests/unit/remote/pair.h"

static atomic_bool slow_gate_open, slow_in_order;
static _Atomic int64_t slow_handled, slow_told;

/* Stands still in its first message until the gate opens. Its messages are numbers, from 1. */
static inline trp_err
slow_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t *last = state;
    (void)ctx;
    while (!atomic_load(&slow_gate_open)) {
        unit_pause();
    }
    int64_t number = *(const int64_t *)trp_msg_payload(msg);
    if (number != *last + 1) {
        atomic_store(&slow_in_order, false);
    }
    *last = number;
    atomic_fetch_add(&slow_handled, 1);
    return TRP_OK;
}
static const trp_behaviour slow_actor = TRP_BEHAVIOUR_INIT("slow", int64_t, slow_receive);

static inline void
slow_reset(void)
{
    atomic_store(&slow_gate_open, false);
    atomic_store(&slow_in_order, true);
    atomic_store(&slow_handled, 0);
    atomic_store(&slow_told, 0);
}

/* On side 1, as side 0 knows it. */
static inline trp_ref
slow_start(pair *p)
{
    char path[TRP_PATH_BYTES_MAX];
    trp_ref ref = TRP_REF_NONE;
    pair_spawn(p->system[1], &slow_actor, "slow", NULL, NULL, 0);
    pair_path(p, 1, "/user/slow", path, sizeof path);
    UNIT_REQUIRE(trp_system_resolve(p->system[0], path, 60000, &ref) == TRP_OK);
    return ref;
}

#endif

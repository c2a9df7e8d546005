/* clerk.h - actors of the tests of durable mailboxes: they record their messages, or wait. */
#ifndef TESTS_UNIT_PATTERN_CLERK_H
#define TESTS_UNIT_PATTERN_CLERK_H

#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include <troupe/troupe.h>

#define POST_NUMBER(F, S) F(S, u64, number) F(S, ref, back)
#define POST_MESSAGES(M, P) M(P, letter, POST_NUMBER) M(P, hold, TRP_NO_FIELDS)
TRP_PROTOCOL_DECLARE(post, POST_MESSAGES) /* defined in durable_test.c */

enum { SEEN_MAX = 65536 };
static pthread_mutex_t seen_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t seen[SEEN_MAX];
static trp_ref seen_sender[SEEN_MAX], seen_back[SEEN_MAX];
static _Atomic uint32_t seen_count, holding;
static _Atomic int gate_open;
static int note_fd = -1; /* of a child: what was begun */

static trp_err
clerk_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const post_letter *letter = trp_msg_payload(msg);
    uint32_t at;

    (void)state;
    if (trp_msg_is(msg, &post_hold_type)) {
        atomic_fetch_add(&holding, 1);
        while (!atomic_load(&gate_open)) {
            unit_pause();
        }
        return TRP_OK;
    }
    if (note_fd >= 0) {
        return write(note_fd, &letter->number, 8) == 8 ? TRP_OK : TRP_EIO;
    }
    pthread_mutex_lock(&seen_lock);
    at = atomic_load(&seen_count);
    if (at < SEEN_MAX) {
        seen[at] = letter->number;
        seen_sender[at] = trp_sender(ctx);
        seen_back[at] = letter->back;
    }
    atomic_store(&seen_count, at + 1);
    pthread_mutex_unlock(&seen_lock);
    return TRP_OK;
}

static void
clerk_ended(trp_ctx *ctx, void *state)
{
    uint32_t at = atomic_load(&seen_count);

    (void)ctx;
    (void)state;
    if (note_fd < 0 && at < SEEN_MAX) {
        seen[at] = UINT64_MAX;
        atomic_store(&seen_count, at + 1);
    }
}

static const trp_behaviour clerk = { .size = sizeof(trp_behaviour),
                                     .name = "clerk",
                                     .version = 1,
                                     .receive = clerk_receive,
                                     .post_stop = clerk_ended };
static const trp_behaviour plain = {
    .size = sizeof(trp_behaviour), .name = "plain", .version = 1, .receive = clerk_receive
};

/* Held before its first message: all messages wait, and nothing else is in its mailbox. */
static trp_err
late_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    (void)state;
    (void)args;
    while (!atomic_load(&gate_open)) {
        unit_pause();
    }
    return TRP_OK;
}
static const trp_behaviour late = { .size = sizeof(trp_behaviour),
                                    .name = "late",
                                    .version = 1,
                                    .receive = clerk_receive,
                                    .pre_start = late_start };

#endif

/* shell_messages.c - the messages of the actor /system/cluster, made by any thread.
 *
 * Shape.   frame: bytes of a peer, from a transport thread; bounded, dropped beyond the bound
 *          command: of any thread, with an answer; owned by its message, which answers TRP_ECLOSED
 *          when it is freed before the actor has answered
 *          subscribe, unsubscribe, send-state, on-up, metrics: of any thread, without an answer
 * Must hold.
 *   shell-messages-Q1  No more frames, and no more bytes of them, wait in a mailbox than its bound
 *       allows (SHELL_FRAMES_MAX and SHELL_FRAME_BYTES_MAX; the metrics' actor has its own bound).
 *       The others are dropped and counted.
 *   shell-messages-Q2  No command is dropped, and each is answered exactly once.
 *   shell-messages-Q3  After shell_close() only a thread that was already in shell_put() still
 *       sends to the mailbox.
 * Cost.    A frame: one block for message and bytes, a compare-and-swap, a push. No lock.
 * Tests.   tests/unit/cluster/shell_test.c
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/shell/shell.h"

#define CLOSE_TIMEOUT_MS 5000u

#define LOCAL_TYPE(text, bytes, tag)                                                               \
    {                                                                                              \
        "cluster." text, bytes, tag, TRP_TYPE_LOCAL, NULL, 0, 0                                    \
    }

trp_type shell_frame_type = {
    "cluster.frame", 0, 0xff4d, TRP_TYPE_LOCAL | TRP_TYPE_VARIABLE, NULL, 0, 0
};
trp_type shell_tick_type = LOCAL_TYPE("tick", 0, 0xff4e);
trp_type shell_command_type = LOCAL_TYPE("command", 0, 0xff4f);
trp_type shell_subscribe_type = LOCAL_TYPE("subscribe", sizeof(struct shell_subscriber), 0xff51);
trp_type shell_unsubscribe_type =
    LOCAL_TYPE("unsubscribe", sizeof(struct shell_subscriber), 0xff52);
trp_type shell_send_state_type = LOCAL_TYPE("send-state", sizeof(struct shell_subscriber), 0xff53);
trp_type shell_on_up_type = LOCAL_TYPE("on-up", sizeof(struct shell_on_up), 0xff54);
trp_type shell_metrics_type = LOCAL_TYPE("metrics", 0, 0xff55);

/* ---- messages without an answer -------------------------------------------------------------- */

static bool
is_closed(const struct shell_mailbox *mailbox)
{
    return atomic_load_explicit(&mailbox->closed, memory_order_acquire); /* pair: shell_close() */
}

static void
send_msg(const trpi_cluster *cluster, trp_ref actor, trp_msg *msg)
{
    trp_ctx *ctx = trpi_enter(cluster->system);
    trpi_send(ctx, actor, msg);
    trpi_leave(ctx);
}

trp_err
shell_put(trpi_cluster *cluster, const trp_type *type, const void *payload, size_t bytes)
{
    trp_msg *msg;
    void *place;
    if (is_closed(&cluster->mailbox)) {
        return TRP_ECLOSED;
    }
    trp_err err = trp_msg_new(type, bytes, &msg, &place);
    if (err == TRP_OK) {
        if (bytes > 0) {
            memcpy(place, payload, bytes);
        }
        send_msg(cluster, cluster->actor, msg);
    }
    return err;
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* The share of a frame in both bounds: one in the upper half, its bytes in the lower one. */
static uint64_t
frame_share(size_t count)
{
    return (UINT64_C(1) << 32) + count;
}

/* shell-messages-Q1. Relaxed: the message itself carries what the actor reads. */
static bool
frame_admit(struct shell_mailbox *mailbox, const struct shell_bound *bound, size_t count)
{
    uint64_t waiting = atomic_load_explicit(&mailbox->frames_waiting, memory_order_relaxed);
    do {
        if (waiting >> 32 >= bound->frames_max ||
            (waiting & UINT32_MAX) + count > bound->bytes_max) {
            atomic_fetch_add_explicit(&mailbox->frames_dropped, 1, memory_order_relaxed);
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&mailbox->frames_waiting, &waiting,
                                                    waiting + frame_share(count),
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

bool
shell_frame_taken(struct shell_mailbox *mailbox, size_t count)
{
    uint64_t before = atomic_fetch_sub_explicit(&mailbox->frames_waiting, frame_share(count),
                                                memory_order_relaxed);
    trpi_assert(before >> 32 > 0 && (before & UINT32_MAX) >= count);
    return before >> 32 == 1;
}

void
shell_frame_put(const trpi_cluster *cluster, trp_ref actor, struct shell_mailbox *mailbox,
                const struct shell_bound *bound, const trpi_node_id *from, const uint8_t *bytes,
                size_t count)
{
    trp_msg *msg;
    void *place;
    if (is_closed(mailbox) || !frame_admit(mailbox, bound, count)) {
        return;
    }
    if (trp_msg_new(bound->type, sizeof(struct shell_frame) + count, &msg, &place) != TRP_OK) {
        (void)shell_frame_taken(mailbox, count);
        return; /* a lost frame */
    }
    struct shell_frame *frame = place;
    frame->from = *from;
    frame->arrived_ms = shell_now_us(cluster) / 1000;
    memcpy(frame->bytes, bytes, count);
    send_msg(cluster, actor, msg);
}

void
shell_frame_arrived(void *arg, const trpi_node_id *from, const uint8_t *bytes, size_t count,
                    uint64_t arrived_ns)
{
    (void)arrived_ns;
    static const struct shell_bound bound = { &shell_frame_type, SHELL_FRAMES_MAX,
                                              SHELL_FRAME_BYTES_MAX };
    trpi_cluster *cluster = arg;
    shell_frame_put(cluster, cluster->actor, &cluster->mailbox, &bound, from, bytes, count);
}

/* ---- commands -------------------------------------------------------------------------------- */

struct shell_command *
shell_command_new(trpi_member_event_kind kind, size_t text_bytes)
{
    struct shell_command *command = trpi_alloc(sizeof *command + text_bytes);
    if (command != NULL) {
        command->kind = kind;
    }
    return command;
}

void
shell_command_free(struct shell_command *command)
{
    if (command != NULL) {
        trpi_free(command->addresses);
        trpi_free(command);
    }
}

void
shell_command_answer(struct shell_command *command, trp_err err)
{
    trpi_cluster_done_fn done = command->done;
    command->done = NULL; /* shell-messages-Q2: once */
    if (done != NULL) {
        done(command->arg, err);
    }
}

/* The message of a command is freed: after the actor has answered it, or without an answer, as a
 * dead letter. */
static void
command_release(void *data, void *arg)
{
    (void)arg;
    shell_command_answer(data, TRP_ECLOSED);
    shell_command_free(data);
}

trp_err
shell_command_put(trpi_cluster *cluster, struct shell_command *command)
{
    trp_msg *msg;
    trp_err err = is_closed(&cluster->mailbox)
                      ? TRP_ECLOSED
                      : trpi_msg_new_owner(&shell_command_type, command, command_release, &msg);
    if (err == TRP_OK) {
        send_msg(cluster, cluster->actor, msg);
    }
    return err;
}

/* ---- the end --------------------------------------------------------------------------------- */

void
shell_close(trpi_cluster *cluster)
{
    static const trp_identify question = { 0 };
    trp_msg *reply = NULL;
    atomic_store_explicit(&cluster->mailbox.closed, true,
                          memory_order_release); /* pair: is_closed() */
    /* The actor refuses commands with TRP_ECLOSED from now on; its answer to this question comes
     * after those in the mailbox. The commands of an actor that hangs are answered when their
     * messages are freed. */
    if (trp_system_ask(cluster->system, cluster->actor, &trp_identify_type, &question,
                       sizeof question, CLOSE_TIMEOUT_MS, &reply) == TRP_OK) {
        trp_msg_free(reply);
    }
}

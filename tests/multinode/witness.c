/* witness.c - a node with the options of `troupe node` that keeps account of what it is told.
 *
 *   /user/witness   "tell INDEX ADDRESS": from now on tell the witness of that node number after
 *                   number; "index N": this one's own; "stop": tell no more; "report": a line
 *                   "INDEX told N" for each that is told, "INDEX received N" for each that tells,
 *                   "disorder N" (came late or twice), "missing N", "dead N" (dead letters here)
 *   /user/slow      takes SLOW_MS for each message; "flood ADDRESS" to the witness tells that of
 *                   the node there FLOOD_TELLS at once
 *
 * Why.    tests/chaos makes everything go wrong around nodes that live throughout: what these tell
 *         one another arrives, once and in order.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <troupe/troupe.h>

enum {
    WITNESSES = 16,
    EVERY_MS = 10,
    A_TURN = 2,
    RESOLVE_MS = 60000,
    SLOW_MS = 20,
    FLOOD_TELLS = 500,
    FLOOD_BYTES = 500,
    TICK = 1
};

typedef struct number {
    uint64_t from;
    uint64_t number;
} number;

typedef struct state {
    trp_ref to[WITNESSES];
    uint64_t told[WITNESSES];
    uint64_t received[WITNESSES], next[WITNESSES];
    uint64_t disorder, missing, dead;
    uint32_t self;
} state;

static trp_err
resolved(trp_ctx *ctx, void *s, void *arg, trp_err err, const trp_msg *msg)
{
    state *w = s;
    size_t index = (size_t)(uintptr_t)arg;
    if (err == TRP_OK) {
        const trp_actor_identity *identity = trp_msg_payload(msg);
        w->to[index] = identity->ref;
    } else {
        trp_log(ctx, TRP_LOG_ERROR, "witness %zu is not found: %s", index, trp_strerror(err));
    }
    return TRP_OK;
}

static trp_err
tell_to(trp_ctx *ctx, state *w, char *text)
{
    char path[TRP_PATH_BYTES_MAX], *end;
    unsigned long index = strtoul(text, &end, 10);
    if (index >= WITNESSES || *end != ' ') {
        trp_reply_text(ctx, "tell INDEX ADDRESS");
        return TRP_OK;
    }
    (void)snprintf(path, sizeof path, "%s/user/witness", end + 1);
    w->to[index] = TRP_REF_NONE;
    trp_err err = trp_resolve(ctx, path, RESOLVE_MS, resolved, (void *)(uintptr_t)index);
    trp_reply_text(ctx, trp_strerror(err));
    return err;
}

static trp_err
flood(trp_ctx *ctx, const char *address)
{
    static const char bytes[FLOOD_BYTES];
    char path[TRP_PATH_BYTES_MAX];
    (void)snprintf(path, sizeof path, "%s/user/slow", address);
    for (int i = 0; i < FLOOD_TELLS; i++) {
        trp_err err = trp_select_tell(ctx, path, &trp_bytes_type, bytes, sizeof bytes);
        if (err != TRP_OK) {
            return err;
        }
    }
    trp_reply_text(ctx, "told");
    return TRP_OK;
}

static void
report(trp_ctx *ctx, const state *w)
{
    char text[WITNESSES * 100 + 200];
    size_t used = 0;
    for (size_t i = 0; i < WITNESSES; i++) {
        if (w->told[i] != 0) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%zu told %" PRIu64 "\n", i,
                                     w->told[i]);
        }
        if (w->received[i] != 0) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%zu received %" PRIu64 "\n",
                                     i, w->received[i]);
        }
    }
    (void)snprintf(text + used, sizeof text - used,
                   "disorder %" PRIu64 "\nmissing %" PRIu64 "\ndead %" PRIu64, w->disorder,
                   w->missing, w->dead);
    trp_reply_text(ctx, text);
}

static trp_err
command(trp_ctx *ctx, state *w, const trp_msg *msg)
{
    char text[TRP_PATH_BYTES_MAX];
    (void)snprintf(text, sizeof text, "%.*s", (int)trp_msg_bytes(msg),
                   (const char *)trp_msg_payload(msg));
    if (strncmp(text, "tell ", 5) == 0) {
        return tell_to(ctx, w, text + 5);
    }
    if (strncmp(text, "flood ", 6) == 0) {
        return flood(ctx, text + 6);
    }
    if (strncmp(text, "index ", 6) == 0) {
        w->self = (uint32_t)strtoul(text + 6, NULL, 10);
        trp_reply_text(ctx, "ok");
        return trp_timer_repeat(ctx, TICK, EVERY_MS, EVERY_MS, &trp_i64_type, &(int64_t){ 0 }, 0);
    }
    if (strcmp(text, "stop") == 0) {
        trp_timer_cancel(ctx, TICK);
        trp_reply_text(ctx, "ok");
        return TRP_OK;
    }
    report(ctx, w);
    return TRP_OK;
}

static void
numbers_tell(trp_ctx *ctx, state *w)
{
    for (size_t i = 0; i < WITNESSES; i++) {
        for (int turn = 0; turn < A_TURN && !trp_ref_is_none(w->to[i]); turn++) {
            number next = { w->self, w->told[i]++ };
            trp_tell(ctx, w->to[i], &trp_bytes_type, &next, sizeof next);
        }
    }
}

static void
number_take(state *w, const number *n)
{
    if (n->from >= WITNESSES || n->number < w->next[n->from]) {
        w->disorder++;
        return;
    }
    w->missing += n->number - w->next[n->from];
    w->next[n->from] = n->number + 1;
    w->received[n->from]++;
}

static trp_err
witness_receive(trp_ctx *ctx, void *s, const trp_msg *msg)
{
    state *w = s;
    if (trp_msg_is(msg, &trp_i64_type)) {
        numbers_tell(ctx, w);
    } else if (trp_msg_is(msg, &trp_dead_letter_type)) {
        const trp_dead_letter *letter = trp_msg_payload(msg);
        w->dead += letter->bytes == sizeof(number);
    } else if (trp_msg_is(msg, &trp_bytes_type) && trp_msg_bytes(msg) == sizeof(number)) {
        number n;
        memcpy(&n, trp_msg_payload(msg), sizeof n);
        number_take(w, &n);
    } else if (trp_msg_is(msg, &trp_string_type)) {
        return command(ctx, w, msg);
    }
    return TRP_OK;
}
static const trp_behaviour witness = TRP_BEHAVIOUR_INIT("witness", state, witness_receive);

static trp_err
slow_receive(trp_ctx *ctx, void *s, const trp_msg *msg)
{
    (void)ctx, (void)s, (void)msg;
    (void)nanosleep(&(struct timespec){ 0, SLOW_MS * 1000000L }, NULL);
    return TRP_OK;
}
static const trp_behaviour slow = TRP_BEHAVIOUR_INIT("slow", char, slow_receive);

static trp_err
start(trp_node *node, void *arg)
{
    trp_spawn_options named = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    (void)arg;
    named.name = "slow";
    trp_err err = trp_system_spawn(trp_node_system(node), &slow, &named, &ref);
    if (err != TRP_OK) {
        return err;
    }
    named.name = "witness";
    err = trp_system_spawn(trp_node_system(node), &witness, &named, &ref);
    return err != TRP_OK ? err
                         : trp_system_subscribe(trp_node_system(node), ref, &trp_dead_letter_type);
}

int
main(int argc, char **argv)
{
    return trp_node_run(argc, argv, NULL, start, NULL);
}

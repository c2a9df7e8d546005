/* trace_test.c - traces: what messages of a trace leave in the ring, and where traces begin. */
#include <troupe/interaction.h>
#include <troupe/mailbox.h>
#include <troupe/path.h>
#include <troupe/scheduler.h>
#include <troupe/trace.h>

#include "tests/unit/actor/hops.h"

static trp_ref next_of[3];
/* ---- actors ---------------------------------------------------------------------------------- */

static trp_err
answered(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    (void)state;
    (void)arg;
    (void)err;
    (void)reply;
    trp_tell_text(ctx, next_of[2], "after");
    return TRP_OK;
}

static void
tell_sent(trp_ctx *ctx)
{
    trp_msg *msg = NULL;
    void *payload;

    UNIT_EQUAL(trp_msg_new(&trp_string_type, 5000, &msg, &payload), TRP_OK);
    memset(payload, 'a', 5000);
    trp_send(ctx, next_of[1], msg);
}

static bool put_off; /* the next one is from the stash */

/* Does what it is told to, and knows nothing of traces. */
static trp_err
worker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "tell")) {
        trp_tell_text(ctx, next_of[1], "done");
        trp_tell_text(ctx, next_of[2], "done");
    } else if (stage_said(msg, "forward")) {
        if (!trp_ref_equal(trp_self(ctx), next_of[2])) {
            bool is_first = trp_ref_equal(trp_self(ctx), next_of[0]);

            trp_forward(ctx, is_first ? next_of[1] : next_of[2], msg);
        }
    } else if (stage_said(msg, "send")) {
        tell_sent(ctx);
    } else if (stage_said(msg, "try")) {
        UNIT_EQUAL(trp_try_tell(ctx, next_of[1], &trp_string_type, "done", 4), TRP_OK);
    } else if (stage_said(msg, "ask")) {
        UNIT_EQUAL(trp_ask(ctx, next_of[1], &trp_string_type, "reply", 5, 60000, answered, NULL),
                   TRP_OK);
    } else if (stage_said(msg, "ask nobody")) {
        UNIT_EQUAL(trp_ask(ctx, (trp_ref)TRP_REF_NONE, &trp_string_type, "reply", 5, 60000,
                           answered, NULL),
                   TRP_OK);
    } else if (stage_said(msg, "reply")) {
        trp_reply_text(ctx, "here");
    } else if (stage_said(msg, "select")) {
        UNIT_EQUAL(trp_select_tell(ctx, "../r?", &trp_string_type, "done", 4), TRP_OK);
    } else if (stage_said(msg, "miss")) {
        UNIT_EQUAL(trp_select_tell(ctx, "/user/none", &trp_string_type, "done", 4), TRP_OK);
    } else if (stage_said(msg, "timer")) {
        UNIT_EQUAL(trp_timer_once(ctx, 1, 1, &trp_string_type, "tick", 4), TRP_OK);
        UNIT_EQUAL(trp_timer_repeat(ctx, 2, 1, 60000, &trp_string_type, "repeated", 8), TRP_OK);
    } else if (stage_said(msg, "tick")) { /* for ever */
        trp_tell_text(ctx, next_of[1], "done");
        UNIT_EQUAL(trp_timer_once(ctx, 1, 1, &trp_string_type, "tick", 4), TRP_OK);
        stage_note("tick");
    } else if (stage_said(msg, "late")) { /* for ever, each time out of the stash */
        put_off = !put_off;
        if (put_off) {
            UNIT_EQUAL(trp_stash(ctx, msg), TRP_OK);
            trp_unstash_all(ctx);
        } else {
            UNIT_EQUAL(trp_timer_once(ctx, 1, 1, &trp_string_type, "late", 4), TRP_OK);
            stage_note("late");
        }
    } else if (stage_said(msg, "schedule")) {
        UNIT_EQUAL(trp_schedule_once(trp_ctx_system(ctx), 1, next_of[1], trp_self(ctx),
                                     &trp_string_type, "done", 4, NULL),
                   TRP_OK);
    } else if (stage_said(msg, "stash")) {
        UNIT_EQUAL(trp_stash(ctx, msg), TRP_OK);
    } else if (stage_said(msg, "unstash")) {
        trp_unstash_all(ctx);
        return TRP_OK;
    } else if (stage_said(msg, "fail")) {
        trp_fail(ctx, 7, "as ordered");
    } else if (stage_said(msg, "unhandled")) {
        return TRP_EUNHANDLED;
    }
    return TRP_OK;
}
static const trp_behaviour worker = {
    .size = sizeof(trp_behaviour), .name = "worker", .version = 1, .receive = worker_receive
};

static trp_system *
open_workers(void)
{
    trp_system *system = stage_open();

    next_of[0] = stage_spawn(system, &worker, "r0");
    next_of[1] = stage_spawn(system, &worker, "r1");
    next_of[2] = stage_spawn(system, &worker, "r2");
    return system;
}

static void
begin(trp_system *system, const char *text)
{
    trp_system_tell_traced(system, next_of[0], (trp_ref)TRP_REF_NONE, &outside, &trp_string_type,
                           text, strlen(text));
}

/* ---- propagation ----------------------------------------------------------------------------- */

/* HOW-09 */
static void
messages_told_while_a_traced_one_is_handled_are_below_it(void)
{
    static const struct {
        const char *text;
        uint32_t hops;
        const char *want;
    } rows[] = {
        { "tell", 3, "->r0 r0>r1 r0>r2" },
        { "forward", 3, "->r0 r0>r1 r1>r2" },
        { "send", 2, "->r0 r0>r1" },
        { "try", 2, "->r0 r0>r1" },
        { "ask", 4, "->r0 r0>r1 r0>r2 r1>r0" },
        { "ask nobody", 2, "->r0 r0>r2" },
        { "select", 4, "->r0 r0>r0 r0>r1 r0>r2" },
        { "miss", 2, "->r0 r0>nobodyx" },
        { "schedule", 2, "->r0 r0>r1" },
        { "unhandled", 1, "->r0?" },
        { "fail", 1, "->r0!" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        trp_system *system = open_workers();
        hops h;

        begin(system, rows[i].text);
        hops_expect(system, rows[i].hops, rows[i].want);
        hops_take(system, &h);
        for (uint32_t k = 0; k < h.count; k++) {
            UNIT_EQUAL(h.all[k].trace.id_high, outside.id_high);
            UNIT_EQUAL(h.all[k].trace.id_low, outside.id_low);
            UNIT_EQUAL(h.all[k].number, k + 1);
            UNIT_EQUAL(h.all[k].net_ns, 0);
            UNIT_TRUE(h.all[k].type == &trp_string_type);
        }
        stage_close(system);
    }
}

/* HOW-09. The span of the ask's reply is a hop of the asker, at which what its function tells
 * hangs. */
static void
what_a_reply_causes_is_below_the_reply(void)
{
    trp_system *system = open_workers();
    hops h;
    uint64_t reply = 0, after = 0;

    begin(system, "ask");
    UNIT_WAIT(hops_count(system) == 4, 60000);
    hops_take(system, &h);
    for (uint32_t i = 0; i < h.count; i++) {
        bool is_root = h.all[i].parent == outside.span;

        reply = trp_ref_equal(h.all[i].actor, next_of[0]) && !is_root ? h.all[i].trace.span : reply;
        after = trp_ref_equal(h.all[i].actor, next_of[2]) ? h.all[i].parent : after;
    }
    UNIT_TRUE(reply != 0);
    UNIT_EQUAL(after, reply);
    stage_close(system);
}

/* The number of an attempt is that of the message alone: what follows from it has none. */
static void
an_attempt_that_a_program_numbers_keeps_its_number_and_passes_none_on(void)
{
    static const char *const said[] = { "tell", "schedule", "ask", "stash" };

    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        trp_system *system = open_workers();
        trp_trace third = outside;
        hops h;

        third.attempt = 3;
        trp_system_tell_traced(system, next_of[0], (trp_ref)TRP_REF_NONE, &third, &trp_string_type,
                               said[i], strlen(said[i]));
        UNIT_WAIT(hops_count(system) >= (i == 3 ? 1u : i == 2 ? 4u : i == 1 ? 2u : 3u), 60000);
        hops_take(system, &h);
        for (uint32_t k = 0; k < h.count; k++) {
            bool is_first = h.all[k].parent == outside.span;

            UNIT_EQUAL(h.all[k].trace.attempt, is_first ? 3 : 0);
        }
        stage_close(system);
    }
}

/* HOW-09. An actor that sets its timer again at each tick leaves the trace: the next tick is in
 * none. */
static void
a_timer_is_part_of_the_trace_that_set_it_and_does_not_prolong_it_for_ever(void)
{
    trp_system *system = open_workers();

    begin(system, "timer");
    UNIT_WAIT(stage_count("tick") >= 3, 60000);
    hops_expect(system, 3, "->r0 r0>r0 r0>r1");
    stage_close(system);
}

/* HOW-09, trailer-I2: twice out of the stash, of a message that came in a trace, and of one of a
 * sampled actor, at which the trace begins. */
static void
each_handling_of_a_stashed_message_is_below_the_one_before(void)
{
    for (int sampled = 0; sampled < 2; sampled++) {
        trp_system *system = open_workers();
        hops h;

        if (sampled) {
            UNIT_EQUAL(trp_trace_sample(system, "/user/r0", TRP_TRACE_ONE_IN_MAX), TRP_OK);
            stage_tell(system, next_of[0], "stash");
        } else {
            begin(system, "stash");
        }
        for (uint32_t handled_count = 1; handled_count <= 3; handled_count++) {
            UNIT_WAIT(hops_count(system) == handled_count, 60000);
            stage_tell(system, next_of[0], "unstash"); /* in no trace */
        }
        UNIT_WAIT(hops_count(system) == 4, 60000);
        hops_take(system, &h);
        spans_differ(&h);
        UNIT_EQUAL(h.all[0].parent, sampled ? 0 : outside.span);
        for (uint32_t i = 1; i < h.count; i++) {
            UNIT_EQUAL(h.all[i].parent, h.all[i - 1].trace.span);
            UNIT_EQUAL(h.all[i].trace.id_low, h.all[0].trace.id_low);
            UNIT_TRUE(h.all[i].wait_ns > 0);
        }
        stage_close(system);
    }
}

/* HOW-09 */
static void
a_stashed_message_that_is_never_handled_again_is_a_dead_letter_of_its_trace(void)
{
    trp_system *system = open_workers();
    hops h;

    begin(system, "stash");
    UNIT_WAIT(hops_count(system) == 1, 60000);
    trp_system_stop_actor(system, next_of[0]);
    hops_expect(system, 2, "->r0 r0>r0x");
    hops_take(system, &h);
    spans_differ(&h);
    UNIT_EQUAL(h.all[1].dead_reason, TRP_DEAD_STASH);
    stage_close(system);
}

/* As a_timer_is_part_of_the_trace_that_set_it...: a tick that was stashed still is one. */
static void
a_tick_out_of_the_stash_does_not_prolong_its_trace_for_ever(void)
{
    trp_system *system = open_workers();
    hops h;

    put_off = true; /* the first one sets the timer */
    begin(system, "late");
    UNIT_WAIT(stage_count("late") >= 4, 60000);
    hops_expect(system, 3, "->r0 r0>r0 r0>r0");
    hops_take(system, &h);
    spans_differ(&h);
    stage_close(system);
}

static void
what_reaches_no_actor_says_why(void)
{
    trp_system *system = open_workers();
    hops h;

    trp_system_stop_actor(system, next_of[1]);
    UNIT_WAIT(!trpi_inbound_is_there(system, next_of[1].slot, next_of[1].generation), 60000);
    begin(system, "tell");
    hops_expect(system, 3, "->r0 r0>r1x r0>r2");
    hops_take(system, &h);
    for (uint32_t i = 0; i < h.count; i++) {
        bool is_dead = trp_ref_equal(h.all[i].actor, next_of[1]);

        UNIT_EQUAL(h.all[i].end, is_dead ? TRP_HOP_DEAD : TRP_HOP_HANDLED);
        UNIT_TRUE(!is_dead || h.all[i].dead_reason == TRP_DEAD_STALE);
    }
    stage_close(system);
}

static void
a_message_may_be_in_a_trace_and_in_an_interaction(void)
{
    static const trp_interaction order = { 7, 42, "sale", "books" };
    trp_system *system = open_workers();
    hops h;

    /* an interaction alone leaves no hops, and a traced actor keeps it */
    trp_system_tell_in(system, next_of[0], (trp_ref)TRP_REF_NONE, &order, &trp_string_type, "tell",
                       4);
    stage_tell(system, next_of[0], "tell");
    begin(system, "tell");
    hops_expect(system, 3, "->r0 r0>r1 r0>r2");
    hops_take(system, &h);
    UNIT_EQUAL(h.count, 3);
    stage_close(system);
}

/* ---- where traces begin ---------------------------------------------------------------------- */

static void
tell_all(trp_system *system, trp_ref to, const char *text, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        stage_tell(system, to, text);
    }
}

static uint64_t
handled(trp_system *system)
{
    trp_system_stats stats = { .size = sizeof stats };

    trp_system_stats_get(system, &stats);
    return stats.messages_processed;
}

static void
one_in_so_many_messages_of_a_sampled_actor_begins_a_trace(void)
{
    trp_system *system = open_workers();
    uint64_t before;
    hops h;

    UNIT_EQUAL(trp_trace_sample(system, "/user/r0", 10), TRP_OK);
    tell_all(system, next_of[0], "tell", 21); /* the 1st, the 11th, the 21st */
    UNIT_WAIT(hops_count(system) == 9, 60000);
    hops_take(system, &h);
    for (uint32_t i = 0; i < h.count; i++) {
        bool is_root = trp_ref_equal(h.all[i].actor, next_of[0]);

        UNIT_TRUE((h.all[i].parent == 0) == is_root);
        UNIT_TRUE(!is_root || h.all[i].wait_ns == 0);
    }
    /* no longer */
    UNIT_EQUAL(trp_trace_sample(system, "/user/r0", 0), TRP_OK);
    before = handled(system);
    tell_all(system, next_of[0], "tell", 30);
    UNIT_WAIT(handled(system) - before >= 90, 60000);
    UNIT_EQUAL(hops_count(system), 9);
    stage_close(system);
}

/* ---- whole turns of a sampled actor (run-R8) ------------------------------------------------- */

enum { FLOOD = 1000, FIRST_RUN = 30, SECOND_RUN = 20 };

static _Atomic uint32_t firsts, seconds;

static trp_err
flooder_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    (void)msg;
    for (int i = 0; i < FLOOD; i++) {
        trp_tell_text(ctx, next_of[0], "again");
    }
    return TRP_OK;
}
static const trp_behaviour flooder = {
    .size = sizeof(trp_behaviour), .name = "flooder", .version = 1, .receive = flooder_receive
};

static trp_err
second_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    (void)msg;
    if (atomic_fetch_add(&seconds, 1) % SECOND_RUN == SECOND_RUN - 1) {
        trp_unbecome(ctx);
    }
    return TRP_OK;
}

static trp_err
first_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    (void)msg;
    if (atomic_fetch_add(&firsts, 1) % FIRST_RUN == FIRST_RUN - 1) {
        return trp_become(ctx, second_receive, 1);
    }
    return TRP_OK;
}
static const trp_behaviour changing = {
    .size = sizeof(trp_behaviour), .name = "changing", .version = 1, .receive = first_receive
};

/* FLOOD messages in turns that are full, from an actor that is not sampled. */
static trp_system *
flood_sampled(const trp_behaviour *behaviour, uint32_t one_in)
{
    trp_system *system = stage_open();

    next_of[0] = stage_spawn(system, behaviour, "sampled");
    next_of[1] = stage_spawn(system, &flooder, "flooder");
    UNIT_EQUAL(trp_trace_sample(system, "/user/sampled", one_in), TRP_OK);
    stage_tell(system, next_of[1], "flood");
    UNIT_WAIT(handled(system) >= FLOOD + 1, 60000);
    return system;
}

static void
one_in_more_than_a_turn_has_begins_as_many_traces(void)
{
    /* of the last hundred messages one is the first of its turn: a multiple is 900 */
    static const uint32_t rates[] = { 150, 300, 450, 900 };

    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        trp_system *system = flood_sampled(&worker, rates[i]);

        UNIT_WAIT(hops_count(system) == (FLOOD + rates[i] - 1) / rates[i], 60000);
        stage_close(system);
    }
}

static void
a_sampled_actor_changes_its_behaviour_at_the_next_message(void)
{
    static const uint32_t rates[] = { 7, 150 };

    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        atomic_store(&firsts, 0);
        atomic_store(&seconds, 0);
        stage_close(flood_sampled(&changing, rates[i]));
        UNIT_EQUAL(atomic_load(&firsts), FLOOD / (FIRST_RUN + SECOND_RUN) * FIRST_RUN);
        UNIT_EQUAL(atomic_load(&seconds), FLOOD / (FIRST_RUN + SECOND_RUN) * SECOND_RUN);
    }
}

static void
actors_that_start_later_are_sampled_by_their_path(void)
{
    trp_system *system = open_workers();
    trp_ref late, other;

    UNIT_EQUAL(trp_trace_sample(system, "/user/late*", 1), TRP_OK);
    late = stage_spawn(system, &worker, "late-1");
    other = stage_spawn(system, &worker, "elate-1");
    stage_tell(system, other, "x");
    stage_tell(system, late, "x");
    hops_expect(system, 1, "->late-1");
    stage_close(system);
}

/* sample-T1 */
static void
a_failure_in_a_sampled_message_keeps_its_cause(void)
{
    trp_system *system = open_workers();
    hops h;

    UNIT_EQUAL(trp_trace_sample(system, "/user/*", 1), TRP_OK);
    stage_tell(system, next_of[0], "fail");
    STAGE_LOGGED("as ordered");
    UNIT_WAIT(hops_count(system) == 1, 60000);
    hops_take(system, &h);
    UNIT_EQUAL(h.all[0].end, TRP_HOP_FAILED);
    UNIT_EQUAL(h.all[0].err, TRP_EFAILED);
    stage_tell(system, next_of[0], "tell"); /* restarted, it is sampled still */
    UNIT_WAIT(hops_count(system) == 4, 60000);
    stage_close(system);
}

static trp_err
count_sample(void *arg, const char *path, uint32_t one_in)
{
    (void)path;
    (void)one_in;
    ++*(uint32_t *)arg;
    return TRP_OK;
}

static void
so_many_paths_are_sampled_and_no_more(void)
{
    trp_system *system = stage_open();
    uint32_t count = 0;
    char path[32];

    for (int i = 0; i < TRP_TRACE_SAMPLES_MAX; i++) {
        (void)snprintf(path, sizeof path, "/user/a%d", i);
        UNIT_EQUAL(trp_trace_sample(system, path, 1), TRP_OK);
    }
    UNIT_EQUAL(trp_trace_sample(system, "/user/one-more", 1), TRP_ELIMIT);
    UNIT_EQUAL(trp_trace_sample(system, "/user/a3/", 5), TRP_OK); /* its rate changes */
    UNIT_EQUAL(trp_trace_samples(system, count_sample, &count), TRP_OK);
    UNIT_EQUAL(count, TRP_TRACE_SAMPLES_MAX);
    UNIT_EQUAL(trp_trace_sample(system, "/user/a3", 0), TRP_OK);
    UNIT_EQUAL(trp_trace_sample(system, "/user/a3", 0), TRP_ENOENT);
    UNIT_EQUAL(trp_trace_sample(system, "/user/one-more", 1), TRP_OK);
    stage_close(system);
}

static void
a_path_that_cannot_be_sampled_is_refused(void)
{
    trp_system *system = stage_open();
    char path[TRP_PATH_BYTES_MAX + 2];

    UNIT_EQUAL(trp_trace_sample(NULL, "/user/a", 1), TRP_EINVAL);
    UNIT_EQUAL(trp_trace_sample(system, NULL, 1), TRP_EINVAL);
    UNIT_EQUAL(trp_trace_sample(system, "", 1), TRP_EINVAL);
    UNIT_EQUAL(trp_trace_sample(system, "/", 1), TRP_EINVAL);
    UNIT_EQUAL(trp_trace_sample(system, "user/a", 1), TRP_EINVAL);
    UNIT_EQUAL(trp_trace_sample(system, "/user/../a", 1), TRP_EINVAL);
    UNIT_EQUAL(trp_trace_sample(system, "/user//a", 1), TRP_EINVAL);
    UNIT_EQUAL(trp_trace_sample(system, "/user/a", TRP_TRACE_ONE_IN_MAX), TRP_OK);
    UNIT_EQUAL(trp_trace_sample(system, "/user/a", TRP_TRACE_ONE_IN_MAX + 1), TRP_EINVAL);
    memset(path, 'a', sizeof path);
    memcpy(path, "/user/", 6);
    path[sizeof path - 1] = '\0';
    UNIT_EQUAL(trp_trace_sample(system, path, 1), TRP_EINVAL);
    stage_close(system);
}

/* ---- the ring -------------------------------------------------------------------------------- */

typedef struct numbers {
    uint64_t first, last, count;
} numbers;

static trp_err
number_note(void *arg, const trp_trace_hop *hop)
{
    numbers *n = arg;

    n->first = n->count == 0 ? hop->number : n->first;
    n->last = hop->number;
    return n->count++ == UINT64_MAX ? TRP_EIO : TRP_OK;
}

static void
tell_traced_all(trp_system *system, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        begin(system, "x");
    }
}

static void
the_latest_hops_are_kept(void)
{
    trp_system *system = open_workers();
    numbers n = { 0 };
    uint64_t before = handled(system);

    UNIT_EQUAL(trp_trace_hops(system, 0, number_note, &n), TRP_OK);
    UNIT_EQUAL(n.count, 0);
    tell_traced_all(system, TRP_TRACE_HOPS_MAX);
    UNIT_WAIT(handled(system) - before >= TRP_TRACE_HOPS_MAX, 60000);
    UNIT_WAIT((n = (numbers){ 0 }, trp_trace_hops(system, 0, number_note, &n) == TRP_OK) &&
                  n.count == TRP_TRACE_HOPS_MAX,
              60000);
    UNIT_EQUAL(n.first, 1);
    tell_traced_all(system, 1);
    UNIT_WAIT((n = (numbers){ 0 }, trp_trace_hops(system, 0, number_note, &n) == TRP_OK) &&
                  n.last == TRP_TRACE_HOPS_MAX + 1,
              60000);
    UNIT_EQUAL(n.first, 2);
    UNIT_EQUAL(n.count, TRP_TRACE_HOPS_MAX);
    n = (numbers){ 0 };
    UNIT_EQUAL(trp_trace_hops(system, TRP_TRACE_HOPS_MAX, number_note, &n), TRP_OK);
    UNIT_EQUAL(n.count, 1);
    n = (numbers){ .count = UINT64_MAX };
    UNIT_EQUAL(trp_trace_hops(system, 0, number_note, &n), TRP_EIO); /* the caller's error */
    UNIT_EQUAL(trp_trace_hops(system, 0, NULL, &n), TRP_EINVAL);
    stage_close(system);
}

/* ---- traceparent ----------------------------------------------------------------------------- */

static void
traceparents_are_read_and_written(void)
{
    static const char good[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    static const struct {
        const char *text;
        trp_err want;
    } rows[] = {
        { good, TRP_OK },
        { "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", TRP_ENOENT }, /* not sampled */
        { "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03", TRP_OK },
        { "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later", TRP_OK },
        { "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x", TRP_EINVAL },
        { "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x", TRP_EINVAL },
        { "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", TRP_EINVAL },
        { "00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", TRP_EINVAL },
        { "00-00000000000000000000000000000000-00f067aa0ba902b7-01", TRP_EINVAL },
        { "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", TRP_EINVAL },
        { "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01", TRP_EINVAL },
        { "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0", TRP_EINVAL },
        { "", TRP_EINVAL },
        { NULL, TRP_EINVAL },
    };
    char text[TRP_TRACE_TEXT_BYTES];
    trp_trace trace;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        UNIT_EQUAL(trp_trace_parse(rows[i].text, &trace), rows[i].want);
    }
    UNIT_EQUAL(trp_trace_parse(good, &trace), TRP_OK);
    UNIT_EQUAL(trace.id_high, 0x4bf92f3577b34da6);
    UNIT_EQUAL(trace.id_low, 0xa3ce929d0e0e4736);
    UNIT_EQUAL(trace.span, 0x00f067aa0ba902b7);
    trp_trace_format(&trace, text);
    UNIT_TEXT(text, good);
}

static void
a_new_trace_is_like_no_other(void)
{
    trp_system *system = stage_open();
    trp_trace a, b;

    trp_trace_new(system, &a);
    trp_trace_new(system, &b);
    UNIT_TRUE((a.id_high | a.id_low) != 0);
    UNIT_TRUE(a.id_high != b.id_high && a.id_low != b.id_low);
    UNIT_EQUAL(a.span, 0);
    stage_close(system);
}

UNIT_BEGIN("trace")
UNIT(messages_told_while_a_traced_one_is_handled_are_below_it)
UNIT(what_a_reply_causes_is_below_the_reply)
UNIT(an_attempt_that_a_program_numbers_keeps_its_number_and_passes_none_on)
UNIT(a_timer_is_part_of_the_trace_that_set_it_and_does_not_prolong_it_for_ever)
UNIT(each_handling_of_a_stashed_message_is_below_the_one_before)
UNIT(a_stashed_message_that_is_never_handled_again_is_a_dead_letter_of_its_trace)
UNIT(a_tick_out_of_the_stash_does_not_prolong_its_trace_for_ever)
UNIT(what_reaches_no_actor_says_why)
UNIT(a_message_may_be_in_a_trace_and_in_an_interaction)
UNIT(one_in_so_many_messages_of_a_sampled_actor_begins_a_trace)
UNIT(one_in_more_than_a_turn_has_begins_as_many_traces)
UNIT(a_sampled_actor_changes_its_behaviour_at_the_next_message)
UNIT(actors_that_start_later_are_sampled_by_their_path)
UNIT(a_failure_in_a_sampled_message_keeps_its_cause)
UNIT(so_many_paths_are_sampled_and_no_more)
UNIT(a_path_that_cannot_be_sampled_is_refused)
UNIT(the_latest_hops_are_kept)
UNIT(traceparents_are_read_and_written)
UNIT(a_new_trace_is_like_no_other)
UNIT_END

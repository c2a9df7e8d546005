/* watch_test.c - Terminated: once, in order, suppressed, also for an actor that has ended; death
 * pact; other nodes. */
#include "tests/unit/actor/stage.h"

#include "actor/life/life.h"
#include "actor/nodes/nodes.h"

#define TARGETS 4
static trp_ref targets[TARGETS]; /* set by the test before it tells */

typedef struct watcher_state {
    int seen;
} watcher_state;

static trp_err
target_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (stage_said(msg, "stop")) {
        trp_tell_text(ctx, trp_sender(ctx), "last words");
        trp_stop(ctx, trp_self(ctx));
    } else if (stage_said(msg, "fail")) {
        return TRP_EIO;
    } else if (stage_said(msg, "ping")) {
        trp_reply_text(ctx, "pong");
    }
    return TRP_OK;
}
static const trp_behaviour target = {
    .size = sizeof(trp_behaviour), .name = "target", .version = 1, .receive = target_receive
};

static int
index_of(const trp_msg *msg, const char *verb)
{
    size_t bytes = strlen(verb);
    const char *text = trp_msg_payload(msg);

    if (!trp_msg_is(msg, &trp_string_type) || trp_msg_bytes(msg) != bytes + 1 ||
        memcmp(text, verb, bytes) != 0) {
        return -1;
    }
    return text[bytes] - '0';
}

static trp_err
watcher_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    watcher_state *s = state;
    int i;

    if (trp_msg_is(msg, &trp_terminated_type)) {
        const trp_terminated *what = trp_msg_payload(msg);

        for (i = 0; i < TARGETS && !trp_ref_equal(what->ref, targets[i]); i++) {
        }
        if (stage_has("aside") && !stage_has("stashed")) {
            UNIT_EQUAL(trp_stash(ctx, msg), TRP_OK);
            stage_note("stashed");
            return TRP_OK;
        }
        stage_note("T%d(%d,%d)", i, what->existence_confirmed, what->address_terminated);
        s->seen++;
        if (stage_has("pact")) {
            trp_unhandled_msg(ctx, msg);
        }
    } else if ((i = index_of(msg, "watch")) >= 0) {
        UNIT_EQUAL(trp_watch(ctx, targets[i]), TRP_OK);
        if (!trp_ref_is_none(trp_sender(ctx))) {
            trp_reply_text(ctx, "ok");
        }
    } else if ((i = index_of(msg, "unwatch")) >= 0) {
        trp_unwatch(ctx, targets[i]);
    } else if ((i = index_of(msg, "end")) >= 0) {
        trp_tell_text(ctx, targets[i], "stop");
    } else if ((i = index_of(msg, "wait")) >=
               0) { /* until the target is dead and Terminated is queued */
        char path[64];

        while (strchr(trp_path(trp_ctx_system(ctx), targets[i], path, sizeof path), '#') == NULL &&
               !stage_has("go")) {
            unit_pause();
        }
    } else if (stage_said(msg, "unstash")) {
        trp_unstash_all(ctx);
    } else if (stage_said(msg, "last words")) {
        stage_note("words");
    } else if (stage_said(msg, "ping")) {
        trp_reply_text(ctx, "pong");
    }
    return TRP_OK;
}
static const trp_behaviour watcher = { .size = sizeof(trp_behaviour),
                                       .name = "watcher",
                                       .version = 1,
                                       .state_bytes = sizeof(watcher_state),
                                       .receive = watcher_receive };

static char answer[64];

static trp_system *
open_watch(trp_ref *ret_watcher)
{
    static const char *const names[TARGETS] = { "t0", "t1", "t2", "t3" };
    trp_system *system = stage_open();

    for (int i = 0; i < TARGETS; i++) {
        targets[i] = stage_spawn(system, &target, names[i]);
    }
    *ret_watcher = stage_spawn(system, &watcher, "w");
    return system;
}

/* A4J-21 WATCH-1, WATCH-6, WATCH-2, A4J-25; earlier messages of the ended actor come first */
static void
a_watcher_is_told_once_and_after_the_last_words(void)
{
    trp_ref w;
    trp_system *system = open_watch(&w);

    UNIT_EQUAL(stage_ask(system, w, "watch0", answer, sizeof answer), TRP_OK);
    stage_tell(system, w, "end0");
    STAGE_EXPECT("words T0(1,0)");
    UNIT_EQUAL(stage_ask(system, w, "ping", answer, sizeof answer), TRP_OK);
    STAGE_EXPECT("words T0(1,0)");
    stage_close(system);
}

/* WATCH-3: twice is once */
static void
watching_twice_is_one_watch(void)
{
    trp_ref w;
    trp_system *system = open_watch(&w);

    stage_tell(system, w, "watch0");
    UNIT_EQUAL(stage_ask(system, w, "watch0", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(trp_system_graceful_stop(system, targets[0], 60000), TRP_OK);
    STAGE_EXPECT("T0(1,0)");
    UNIT_EQUAL(stage_ask(system, w, "ping", answer, sizeof answer), TRP_OK);
    STAGE_EXPECT("T0(1,0)");
    stage_close(system);
}

/* WATCH-2, WATCH-6 */
static void
a_dead_ref_answers_at_once_that_nobody_was_there(void)
{
    trp_ref w;
    trp_system *system = open_watch(&w);

    UNIT_EQUAL(trp_system_graceful_stop(system, targets[0], 60000), TRP_OK);
    stage_tell(system, w, "watch0");
    STAGE_EXPECT("T0(0,0)");
    targets[1].slot = 999999; /* a slot that never was */
    stage_tell(system, w, "watch1");
    STAGE_EXPECT("T0(0,0) T1(0,0)");
    stage_tell(system, w, "watch0"); /* again, and again an answer */
    STAGE_EXPECT("T0(0,0) T1(0,0) T0(0,0)");
    stage_close(system);
}

/* WATCH-4, WATCH-1 */
static void
unwatch_ends_the_watch(void)
{
    trp_ref w;
    trp_system *system = open_watch(&w);

    stage_tell(system, w, "watch0");
    stage_tell(system, w, "unwatch0");
    UNIT_EQUAL(stage_ask(system, w, "watch1", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(trp_system_graceful_stop(system, targets[0], 60000), TRP_OK);
    UNIT_EQUAL(trp_system_graceful_stop(system, targets[1], 60000), TRP_OK);
    STAGE_EXPECT("T1(1,0)");
    stage_close(system);
}

/* WATCH-4, MSG-17, MSC-02: also when it is queued already */
static void
unwatch_suppresses_a_terminated_that_is_queued(void)
{
    trp_ref w;
    trp_system *system = open_watch(&w);

    UNIT_EQUAL(stage_ask(system, w, "watch0", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(stage_ask(system, w, "watch1", answer, sizeof answer), TRP_OK);
    stage_tell(system, w, "wait2"); /* busy until "go" */
    stage_tell(system, w, "unwatch0");
    UNIT_EQUAL(trp_system_graceful_stop(system, targets[0], 60000),
               TRP_OK); /* its Terminated is behind unwatch0 */
    UNIT_EQUAL(trp_system_graceful_stop(system, targets[1], 60000), TRP_OK);
    stage_note("go");
    UNIT_WAIT(stage_has("T1"), 5000);
    UNIT_FALSE(stage_has("T0"));
    stage_close(system);
}

/* WATCH-3: a watch of an ended actor is answered each time, so the renewed one is answered, once */
static void
a_watch_that_is_renewed_is_answered_once(void)
{
    trp_ref w;
    trp_system *system = open_watch(&w);

    UNIT_EQUAL(stage_ask(system, w, "watch0", answer, sizeof answer), TRP_OK);
    stage_tell(system, w, "wait2");
    stage_tell(system, w, "unwatch0");
    stage_tell(system, w, "watch0");
    UNIT_EQUAL(trp_system_graceful_stop(system, targets[0], 60000), TRP_OK);
    stage_note("go");
    UNIT_WAIT(stage_has("T0"), 5000);
    UNIT_EQUAL(stage_ask(system, w, "ping", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(stage_ask(system, w, "ping", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(stage_count("T0"), 1);
    stage_close(system);
}

/* WATCH-2, BEH-6: a stashed Terminated is still delivered, once */
static void
a_terminated_can_be_stashed(void)
{
    trp_ref w;
    trp_system *system = open_watch(&w);

    UNIT_EQUAL(stage_ask(system, w, "watch0", answer, sizeof answer), TRP_OK);
    stage_note("aside");
    UNIT_EQUAL(trp_system_graceful_stop(system, targets[0], 60000), TRP_OK);
    STAGE_EXPECT("aside stashed");
    stage_tell(system, w, "unstash");
    STAGE_EXPECT("aside stashed T0(1,0)");
    stage_close(system);
}

/* WATCH-1, LIFE-3: a restart is invisible */
static void
a_restart_of_the_watched_is_not_seen(void)
{
    trp_ref w;
    trp_system *system = open_watch(&w);

    UNIT_EQUAL(stage_ask(system, w, "watch0", answer, sizeof answer), TRP_OK);
    stage_tell(system, targets[0], "fail");
    UNIT_EQUAL(stage_ask(system, targets[0], "ping", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(stage_ask(system, w, "ping", answer, sizeof answer), TRP_OK);
    STAGE_EXPECT("");
    UNIT_EQUAL(trp_system_graceful_stop(system, targets[0], 60000), TRP_OK);
    STAGE_EXPECT("T0(1,0)"); /* watchers stay over the restart */
    stage_close(system);
}

/* WATCH-5, MSG-15, MSC-01 */
static void
an_unhandled_terminated_is_a_death_pact(void)
{
    trp_ref w;
    trp_system *system = open_watch(&w);

    UNIT_EQUAL(stage_ask(system, w, "watch0", answer, sizeof answer), TRP_OK);
    stage_note("pact");
    UNIT_EQUAL(trp_system_graceful_stop(system, targets[0], 60000), TRP_OK);
    UNIT_WAIT(stage_book_has(&stage_lines,
                             "/user/w: failed: death pact: /user/t0 has ended (TRP_EDEATHPACT)"),
              5000);
    UNIT_WAIT(stage_ask(system, w, "ping", answer, sizeof answer) == TRP_ENOENT, 5000);
    stage_close(system);
}

/* WATCH-7 is in restart_test (default hooks unwatch); here: a watcher that ends leaves nothing
 * behind */
static void
a_watcher_that_ends_is_forgotten(void)
{
    trp_ref w;
    trp_system *system = open_watch(&w);

    for (int i = 0; i < TARGETS; i++) {
        char text[] = "watch0";

        text[5] = (char)('0' + i);
        UNIT_EQUAL(stage_ask(system, w, text, answer, sizeof answer), TRP_OK);
    }
    UNIT_EQUAL(trp_system_graceful_stop(system, w, 60000), TRP_OK);
    for (int i = 0; i < TARGETS; i++) {
        UNIT_EQUAL(trp_system_graceful_stop(system, targets[i], 60000), TRP_OK);
    }
    STAGE_EXPECT("");
    stage_close(system);
}

/* ---- parent and child ------------------------------------------------------------------------ */

static void
talker_post_stop(trp_ctx *ctx, void *state)
{
    (void)state;
    trp_tell_text(ctx, trp_parent(ctx), "last words");
}
static const trp_behaviour talker = { .size = sizeof(trp_behaviour),
                                      .name = "talker",
                                      .version = 1,
                                      .receive = target_receive,
                                      .post_stop = talker_post_stop };

static trp_err
parent_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_ref *kid = state;

    if (trp_msg_is(msg, &trp_terminated_type)) {
        trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;

        options.name = "kid";
        /* SYS-18: on Terminated of a child its name is free for the supervisor */
        stage_note("again=%s", trp_err_name(trp_spawn(ctx, &target, &options, kid)));
    } else if (stage_said(msg, "make") || stage_said(msg, "part")) {
        trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
        trp_err err;

        options.name = "kid";
        err = trp_spawn(ctx, stage_said(msg, "make") ? &target : &talker, &options, kid);
        /* of the last round; another watcher may be notified of its end before this parent */
        if (err == TRP_EEXIST) {
            trp_forward(ctx, trp_self(ctx), msg);
            return TRP_OK;
        }
        UNIT_EQUAL(err, TRP_OK);
        UNIT_EQUAL(trp_watch(ctx, *kid), TRP_OK);
        trp_stop(ctx, *kid);
    } else if (stage_said(msg, "last words")) {
        stage_note("words");
    } else if (stage_said(msg, "fail")) {
        *kid = stage_child(ctx, &target, "kid2");
        UNIT_EQUAL(trp_watch(ctx, *kid), TRP_OK);
        return TRP_EIO;
    } else if (stage_said(msg, "ping")) {
        trp_reply_text(ctx, "pong");
    }
    return TRP_OK;
}
static const trp_behaviour parent = { .size = sizeof(trp_behaviour),
                                      .name = "parent",
                                      .version = 1,
                                      .state_bytes = sizeof(trp_ref),
                                      .receive = parent_receive };

/* The kid that the parent made on Terminated. */
static void
end_second_kid(trp_system *system)
{
    trp_ref kid;

    UNIT_EQUAL(trp_system_resolve(system, "/user/p/kid", 60000, &kid), TRP_OK);
    UNIT_EQUAL(trp_system_graceful_stop(system, kid, 60000), TRP_OK);
}

/* SYS-18, LIFE-21 */
static void
on_terminated_of_a_child_its_name_is_free(void)
{
    trp_system *system = stage_open();
    trp_ref p = stage_spawn(system, &parent, "p");

    for (int i = 0; i < 50; i++) {
        stage_clear(&stage_events);
        stage_tell(system, p, "make");
        UNIT_WAIT(stage_has("again="), 5000);
        UNIT_TRUE(stage_has("again=TRP_OK"));
        end_second_kid(system);
    }
    stage_close(system);
}

/* WATCH-1: the parent is notified in another way than other watchers (by the notice that frees the
 * name), and after the child's messages to it */
static void
a_parent_hears_the_last_words_of_its_child_first(void)
{
    trp_system *system = stage_open();
    trp_ref p = stage_spawn(system, &parent, "p");

    for (int i = 0; i < 200; i++) {
        stage_clear(&stage_events);
        stage_tell(system, p, "part");
        STAGE_EXPECT("words again=TRP_OK");
        end_second_kid(system);
    }
    stage_close(system);
}

/* WATCH-7: the default pre_restart unwatches the children, so the new instance does not see their
 * end */
static void
children_that_a_restart_stops_are_not_seen_to_end(void)
{
    trp_system *system = stage_open();
    trp_ref p = stage_spawn(system, &parent, "p");

    stage_tell(system, p, "fail");
    UNIT_EQUAL(stage_ask(system, p, "ping", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(stage_ask(system, p, "ping", answer, sizeof answer), TRP_OK);
    STAGE_EXPECT("");
    stage_close(system);
}

/* ---- other nodes ----------------------------------------------------------------------------- */

static void
fake_signal(void *arg, trp_system *system, uint32_t node, enum trpi_remote_signal signal,
            trp_ref to, trp_ref from, uint32_t flag)
{
    static const char *const names[] = { "?", "WATCH", "UNWATCH", "TERMINATED", "STOP" };

    (void)arg;
    (void)system;
    (void)from;
    stage_note("%s>%u/%u(%u)", names[signal], node, to.slot, flag);
}
static const trpi_remote_ops fake_ops = { stage_lost_connect, fake_signal, NULL };

static uint32_t
fake_node(trp_system *system)
{
    trpi_node_id id;
    uint32_t node = 0;

    memset(&id, 0, sizeof id);
    UNIT_EQUAL(trpi_address_parse("troupe.tcp://far@127.0.0.1:2552", &id.address, NULL, NULL),
               TRP_OK);
    id.uid = 77;
    UNIT_EQUAL(trpi_node_intern(system, &id, &node), TRP_OK);
    return node;
}

/* LIFE-20 */
static void
the_life_cycle_can_be_logged(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_log_options logging = TRP_LOG_OPTIONS_INIT;
    trp_system *system;
    trp_ref w;

    logging.debug = TRP_DEBUG_LIFECYCLE;
    options.logging = &logging;
    options.log_level = TRP_LOG_DEBUG;
    system = stage_open_with(options);
    targets[0] = stage_spawn(system, &target, "t0");
    w = stage_spawn(system, &watcher, "w");
    stage_tell(system, targets[0], "fail");
    stage_tell(system, w, "watch0");
    stage_tell(system, w, "unwatch0");
    UNIT_EQUAL(stage_ask(system, w, "ping", answer, sizeof answer), TRP_OK);
    UNIT_WAIT(stage_book_has(&stage_lines, "[4 /user/t0: restarted]"), 5000);
    UNIT_EQUAL(trp_system_graceful_stop(system, targets[0], 60000), TRP_OK);
    UNIT_EQUAL(trp_log_flush(system, 60000), TRP_OK);
    STAGE_LOGGED("[4 /user/t0: created below /user]");
    STAGE_LOGGED("[4 /user/t0: started]");
    UNIT_WAIT(stage_book_has(&stage_lines, "[4 /user/w: watches /user/t0]"), 5000);
    STAGE_LOGGED("[4 /user/w: unwatches /user/t0]");
    STAGE_LOGGED("[4 /user/t0: stopped]");
    stage_close(system);
}

/* WATCH-8: the parts that belong to this room */
static void
a_remote_watch_is_signalled_answered_and_ended(void)
{
    trp_ref w;
    trp_system *system = open_watch(&w);
    uint32_t node = fake_node(system);
    char script[128];

    UNIT_EQUAL(trpi_system_remote_set(system, &fake_ops, NULL), TRP_OK);
    UNIT_EQUAL(trpi_system_remote_set(system, &fake_ops, NULL), TRP_EEXIST);
    targets[0] = (trp_ref){ node, 5, 9, 0 };
    targets[1] = (trp_ref){ node, 6, 9, 0 };
    UNIT_FALSE(trpi_node_is_watched(system, node));
    UNIT_EQUAL(stage_ask(system, w, "watch0", answer, sizeof answer), TRP_OK);
    UNIT_TRUE(trpi_node_is_watched(system, node));
    trpi_inbound_signal(system, TRPI_SIGNAL_TERMINATED, w, targets[0], 1);
    snprintf(script, sizeof script, "WATCH>%u/5(0) T0(1,0)", node);
    STAGE_EXPECT(script);
    trpi_inbound_signal(system, TRPI_SIGNAL_TERMINATED, w, targets[0],
                        1); /* a second one is not shown */
    UNIT_EQUAL(stage_ask(system, w, "watch1", answer, sizeof answer), TRP_OK);
    stage_tell(system, w, "unwatch1");
    UNIT_EQUAL(stage_ask(system, w, "ping", answer, sizeof answer), TRP_OK);
    snprintf(script, sizeof script, "WATCH>%u/5(0) T0(1,0) WATCH>%u/6(0) UNWATCH>%u/6(0)", node,
             node, node);
    STAGE_EXPECT(script);
    UNIT_FALSE(trpi_node_is_watched(system, node));
    stage_close(system);
}

/* WATCH-8, REMOTE: a lost node ends all its actors for their watchers */
static void
a_lost_node_terminates_what_is_watched_there(void)
{
    trp_ref w;
    trp_system *system = open_watch(&w);
    uint32_t node = fake_node(system);

    UNIT_EQUAL(trpi_system_remote_set(system, &fake_ops, NULL), TRP_OK);
    targets[0] = (trp_ref){ node, 5, 9, 0 };
    targets[1] = (trp_ref){ node, 6, 9, 0 };
    UNIT_EQUAL(stage_ask(system, w, "watch0", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(stage_ask(system, w, "watch1", answer, sizeof answer), TRP_OK);
    trpi_node_terminated(system, node, TRP_DEAD_QUARANTINED);
    UNIT_WAIT(stage_has("T0(1,1)") && stage_has("T1(1,1)"), 5000);
    UNIT_FALSE(trpi_node_is_watched(system, node));
    trpi_node_terminated(system, node, TRP_DEAD_QUARANTINED);
    UNIT_EQUAL(stage_ask(system, w, "ping", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(stage_count("T0"), 1);
    stage_close(system);
}

/* WATCH-8: a watcher on another node is answered with a signal */
static void
a_remote_watcher_is_told_by_a_signal(void)
{
    trp_ref w, far;
    trp_system *system = open_watch(&w);
    uint32_t node = fake_node(system);
    char script[64];

    UNIT_EQUAL(trpi_system_remote_set(system, &fake_ops, NULL), TRP_OK);
    far = (trp_ref){ node, 5, 9, 0 };
    trpi_inbound_signal(system, TRPI_SIGNAL_WATCH, targets[0], far, 0);
    trpi_inbound_signal(system, TRPI_SIGNAL_WATCH, targets[1], far, 0);
    trpi_inbound_signal(system, TRPI_SIGNAL_UNWATCH, targets[1], far, 0);
    UNIT_EQUAL(trp_system_graceful_stop(system, targets[1], 60000), TRP_OK);
    trpi_inbound_signal(system, TRPI_SIGNAL_STOP, targets[0], far, 0);
    snprintf(script, sizeof script, "TERMINATED>%u/5(1)", node);
    STAGE_EXPECT(script);
    trpi_inbound_signal(system, TRPI_SIGNAL_WATCH, targets[0], far, 0);
    snprintf(script, sizeof script, "TERMINATED>%u/5(1) TERMINATED>%u/5(0)", node, node);
    STAGE_EXPECT(script);
    stage_close(system);
}

static void
proxy_deliver(void *arg, trp_system *system, trp_msg *msg)
{
    (void)arg;
    (void)system;
    (void)msg;
}

/* A peer may name any slot: one that is no actor is answered as not existing. */
static void
a_watch_of_what_is_no_actor_is_answered(void)
{
    static const trpi_proxy_ops ops = { .deliver = proxy_deliver };
    trp_ref w, far;
    trp_system *system = open_watch(&w);
    uint32_t node = fake_node(system);
    trp_dead_reason reason;
    bool slow;
    char script[64];

    UNIT_EQUAL(trpi_system_remote_set(system, &fake_ops, NULL), TRP_OK);
    UNIT_EQUAL(trpi_proxy_attach(system, node, &ops, NULL), TRP_OK);
    far = (trp_ref){ node, 5, 9, 0 };
    trpi_inbound_signal(system, TRPI_SIGNAL_WATCH,
                        trpi_cell_ref(trpi_nodes_proxy(system, node, &reason, &slow)), far, 0);
    snprintf(script, sizeof script, "TERMINATED>%u/5(0)", node);
    STAGE_EXPECT(script);
    stage_close(system);
}

/* WATCH-8, RemoteNodeDeathWatchSpec: a watched actor forgets the lost node; nothing is kept for
 * it */
static void
a_lost_node_is_forgotten_as_a_watcher(void)
{
    trp_ref w, far;
    trp_system *system = open_watch(&w);
    uint32_t node = fake_node(system);

    UNIT_EQUAL(trpi_system_remote_set(system, &fake_ops, NULL), TRP_OK);
    for (uint32_t i = 0; i < 50; i++) {
        far = (trp_ref){ node, 5 + i, 9, 0 };
        trpi_inbound_signal(system, TRPI_SIGNAL_WATCH, targets[i % 2], far, 0);
    }
    UNIT_EQUAL(stage_ask(system, w, "watch0", answer, sizeof answer), TRP_OK);
    UNIT_FALSE(trpi_node_is_watched(system, node)); /* it watches an actor of this node */
    trpi_node_terminated(system, node, TRP_DEAD_QUARANTINED);
    UNIT_EQUAL(trp_system_graceful_stop(system, targets[0], 60000), TRP_OK);
    UNIT_EQUAL(trp_system_graceful_stop(system, targets[1], 60000), TRP_OK);
    STAGE_EXPECT("T0(1,0)"); /* the local watcher is notified, the remote ones are not */
    stage_close(system);
}

/* WATCH-9 is by type: trp_watch takes a ref. Here: TRP_REF_NONE cannot be watched, and an actor
 * does not watch itself. */
static void
nobody_cannot_be_watched(void)
{
    trp_ref w;
    trp_system *system = open_watch(&w);

    targets[0] = w;
    UNIT_EQUAL(stage_ask(system, w, "watch0", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(trp_system_graceful_stop(system, w, 60000), TRP_OK);
    STAGE_EXPECT("");
    stage_close(system);
}

UNIT_BEGIN("watch")
UNIT(a_watcher_is_told_once_and_after_the_last_words)
UNIT(watching_twice_is_one_watch)
UNIT(a_dead_ref_answers_at_once_that_nobody_was_there)
UNIT(unwatch_ends_the_watch)
UNIT(unwatch_suppresses_a_terminated_that_is_queued)
UNIT(a_watch_that_is_renewed_is_answered_once)
UNIT(a_terminated_can_be_stashed)
UNIT(a_restart_of_the_watched_is_not_seen)
UNIT(an_unhandled_terminated_is_a_death_pact)
UNIT(a_watcher_that_ends_is_forgotten)
UNIT(on_terminated_of_a_child_its_name_is_free)
UNIT(a_parent_hears_the_last_words_of_its_child_first)
UNIT(children_that_a_restart_stops_are_not_seen_to_end)
UNIT(the_life_cycle_can_be_logged)
UNIT(a_remote_watch_is_signalled_answered_and_ended)
UNIT(a_lost_node_terminates_what_is_watched_there)
UNIT(a_remote_watcher_is_told_by_a_signal)
UNIT(a_watch_of_what_is_no_actor_is_answered)
UNIT(a_lost_node_is_forgotten_as_a_watcher)
UNIT(nobody_cannot_be_watched)
UNIT_END

/* shared_mailbox_test.c - the balancing dispatcher: an idle member takes the next message of the
 * shared mailbox; messages for one actor stay its own; none is lost when members fail, end or
 * restart. */
#include "tests/unit/actor/dispatch.h"

#define CREW_BYTES(F, S) F(S, u64, number)
#define CREW_MESSAGES(M, P)                                                                        \
    M(P, hold, CREW_BYTES)                                                                         \
    M(P, task, CREW_BYTES)                                                                         \
    M(P, fail, CREW_BYTES) M(P, keep, CREW_BYTES) M(P, release, CREW_BYTES) M(P, who, CREW_BYTES)
TRP_PROTOCOL(crew, CREW_MESSAGES)

enum { CREW = 3 };
static trp_ref crew[CREW];
static _Atomic uint64_t done[CREW], done_all, failed, restarted, ended;
static bool in_hold[CREW];
static _Atomic bool released;
static _Atomic int kept_by;      /* who handled, after the release, what it had put aside */
static _Atomic int held, let_go; /* members in hold, and how many of them may leave so far */

static int
index_of(trp_ref self)
{
    for (int i = 0; i < CREW; i++) {
        if (trp_ref_equal(self, crew[i])) {
            return i;
        }
    }
    return -1;
}

static void
hold(void)
{
    int mine = atomic_fetch_add(&held, 1);

    while (atomic_load(&let_go) <= mine) {
        unit_pause();
    }
}

static trp_err
crew_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int index = index_of(trp_self(ctx));

    (void)state;
    if (trp_msg_is(msg, &crew_hold_type)) {
        hold();
    } else if (trp_msg_is(msg, &crew_fail_type)) {
        atomic_fetch_add(&failed, 1);
        return TRP_EIO;
    } else if (trp_msg_is(msg, &crew_keep_type)) {
        if (!atomic_load(&released)) {
            return trp_stash(ctx, msg);
        }
        atomic_store(&kept_by, index);
    } else if (trp_msg_is(msg, &crew_release_type)) {
        atomic_store(&released, true);
        trp_unstash_all(ctx);
    } else if (trp_msg_is(msg, &crew_who_type)) {
        crew_who me = { trp_self(ctx).slot };

        trp_reply(ctx, &crew_who_type, &me, sizeof me);
    } else {
        if (index >= 0) {
            atomic_fetch_add(&done[index], 1);
        }
        atomic_fetch_add(&done_all, 1);
    }
    return TRP_OK;
}

static trp_err
crew_restarted(trp_ctx *ctx, void *state, const trp_failure *why, const trp_msg *args)
{
    (void)ctx;
    (void)state;
    (void)why;
    (void)args;
    atomic_fetch_add(&restarted, 1);
    return TRP_OK;
}

static void
crew_ended(trp_ctx *ctx, void *state)
{
    (void)ctx;
    (void)state;
    atomic_fetch_add(&ended, 1);
}

static const trp_behaviour member = { .size = sizeof(trp_behaviour),
                                      .name = "member",
                                      .version = 1,
                                      .receive = crew_receive,
                                      .post_restart = crew_restarted,
                                      .post_stop = crew_ended };

static trp_err
team_add(const char *id, int no_teamwork, const char *mailbox)
{
    trp_dispatcher_options options = TRP_DISPATCHER_OPTIONS_INIT;

    options.kind = TRP_DISPATCHER_BALANCING;
    options.threads_max = 4;
    options.no_teamwork = no_teamwork;
    options.mailbox = mailbox;
    return trp_dispatcher_register(system_, id, &options);
}

static void
crew_start(int no_teamwork, const char *mailbox)
{
    start(5);
    UNIT_REQUIRE(trp_protocol_register(&crew_protocol) == TRP_OK);
    if (mailbox != NULL) {
        trp_mailbox_options options = TRP_MAILBOX_OPTIONS_INIT;

        options.kind = TRP_MAILBOX_KIND_BOUNDED;
        options.capacity = 4;
        options.push_timeout_ms = TRP_OFF;
        UNIT_REQUIRE(trp_mailbox_register(system_, mailbox, &options) == TRP_OK);
    }
    for (int i = 0; i < CREW; i++) {
        crew[i] = nobody;
        in_hold[i] = false;
        atomic_store(&done[i], 0);
    }
    atomic_store(&done_all, 0);
    atomic_store(&failed, 0);
    atomic_store(&restarted, 0);
    atomic_store(&ended, 0);
    atomic_store(&held, 0);
    atomic_store(&let_go, 0);
    atomic_store(&released, false);
    atomic_store(&kept_by, -1);
    UNIT_REQUIRE(team_add("team", no_teamwork, mailbox) == TRP_OK);
    for (int i = 0; i < CREW; i++) {
        crew[i] = spawn(&member, "team");
    }
}

static void
say(trp_ref ref, const trp_type *type, int times)
{
    crew_task task = { 0 };

    for (int i = 0; i < times; i++) {
        trp_system_tell(system_, ref, type, &task, sizeof task);
    }
}

static bool
is_idle(trp_ref ref)
{
    trp_mailbox_view view = { 0 };

    return trp_mailbox_look(system_, ref, &view) == TRP_OK && view.idle;
}

static bool
is_suspended(trp_ref ref)
{
    trp_mailbox_view view = { 0 };

    return trp_mailbox_look(system_, ref, &view) == TRP_OK && view.suspended;
}

static void
wait_idle(void)
{
    UNIT_WAIT(is_idle(crew[0]) && is_idle(crew[1]) && is_idle(crew[2]), 5000);
}

/* Only held members are awake: no other one takes a message. */
static bool
is_quiet(void)
{
    trp_mailbox_view view;

    for (int i = 0; i < CREW; i++) {
        if (!in_hold[i] && !is_idle(crew[i]) &&
            trp_mailbox_look(system_, crew[i], &view) == TRP_OK) {
            return false;
        }
    }
    return true;
}

/* Have this member, which is idle or will be, wait in hold. */
static void
hold_up(int index)
{
    int before = atomic_load(&held);

    in_hold[index] = false;
    UNIT_WAIT(is_quiet(), 5000);
    in_hold[index] = true;
    say(crew[index], &crew_hold_type, 1);
    UNIT_WAIT(atomic_load(&held) == before + 1, 5000);
}

/* ---- sharing --------------------------------------------------------------------------------- */

/* DISP-5, MBOX-13: a message for a busy member is handled by another one; fast ones handle more. */
static void
an_idle_member_takes_what_was_told_to_another(void)
{
    crew_start(0, NULL);
    wait_idle();
    hold_up(0); /* an idle receiver is preferred */
    say(crew[0], &crew_task_type, 100);
    UNIT_WAIT(atomic_load(&done_all) == 100, 5000);
    UNIT_EQUAL(atomic_load(&done[0]), 0);
    hold_up(1);
    say(crew[0], &crew_task_type, 50);
    say(crew[1], &crew_task_type, 50);
    UNIT_WAIT(atomic_load(&done_all) == 200, 5000);
    UNIT_EQUAL(atomic_load(&done[0]) + atomic_load(&done[1]) + atomic_load(&done[2]), 200);
    UNIT_TRUE(atomic_load(&done[2]) >= 100); /* the others are held since */
    atomic_store(&let_go, CREW);
    end();
}

/* DISP-8: without teamwork a message wakes only its receiver; a member that is awake takes all. */
static void
without_teamwork_only_the_addressee_is_woken(void)
{
    trp_mailbox_view view = { 0 };

    crew_start(1, NULL);
    wait_idle();
    hold_up(0);
    say(crew[0], &crew_task_type, 5);
    UNIT_EQUAL(trp_mailbox_look(system_, crew[1], &view), TRP_OK);
    UNIT_EQUAL(view.messages, 5); /* of the shared mailbox */
    UNIT_TRUE(view.exact);
    say(crew[1], &crew_task_type, 1);
    UNIT_WAIT(atomic_load(&done_all) == 6, 5000);
    UNIT_EQUAL(atomic_load(&done[1]), 6);
    UNIT_EQUAL(atomic_load(&done[2]), 0);
    atomic_store(&let_go, CREW);
    end();
}

/* DISP-5: one behaviour, one mailbox, and one that actors can share (MBOX-3). */
static void
a_shared_mailbox_is_of_one_behaviour_and_one_type(void)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_dispatcher_options pool = TRP_DISPATCHER_OPTIONS_INIT;
    trp_ref ref;

    crew_start(0, NULL);
    options.dispatcher = "team";
    UNIT_EQUAL(trp_system_spawn(system_, &noter, &options, &ref), TRP_EINVAL);
    options.mailbox = "single-consumer";
    UNIT_EQUAL(trp_system_spawn(system_, &member, &options, &ref), TRP_EINVAL);
    options.mailbox = "unbounded"; /* it could be shared, but the others have another one */
    UNIT_EQUAL(trp_system_spawn(system_, &member, &options, &ref), TRP_EINVAL);
    UNIT_EQUAL(team_add("a", 0, "single-consumer"), TRP_EINVAL);
    UNIT_EQUAL(team_add("b", 0, "bounded"), TRP_EINVAL); /* its senders wait */
    UNIT_EQUAL(team_add("c", 0, "control-aware"), TRP_EINVAL);
    UNIT_EQUAL(team_add("d", 0, "nothing"), TRP_ENOENT);
    UNIT_EQUAL(team_add("e", 0, "unbounded"), TRP_OK);
    pool.kind = TRP_DISPATCHER_POOL;
    pool.no_teamwork = 1;
    UNIT_EQUAL(trp_dispatcher_register(system_, "f", &pool), TRP_EINVAL);
    UNIT_EQUAL(info("team").actors, CREW);
    for (int i = 0; i < CREW; i++) {
        trp_system_stop_actor(system_, crew[i]);
    }
    UNIT_WAIT(info("team").actors == 0, 5000);
    options.mailbox = NULL;
    UNIT_EQUAL(trp_system_spawn(system_, &noter, &options, &ref),
               TRP_OK); /* the last member has left */
    end();
}

/* MBOX-4: the bound is that of the shared mailbox; one more is refused. */
static void
a_bound_is_for_all_members(void)
{
    trp_system_stats stats = { .size = sizeof stats };
    crew_task task = { 0 };

    crew_start(0, "four");
    for (int i = 0; i < CREW; i++) {
        hold_up(i);
    }
    say(crew[0], &crew_task_type, 2);
    say(crew[1], &crew_task_type, 1);
    UNIT_EQUAL(trp_system_try_tell(system_, crew[2], &crew_task_type, &task, sizeof task), TRP_OK);
    UNIT_EQUAL(trp_system_try_tell(system_, crew[2], &crew_task_type, &task, sizeof task),
               TRP_EAGAIN);
    say(crew[1], &crew_task_type, 1);
    trp_system_stats_get(system_, &stats);
    UNIT_EQUAL(stats.dead_letters[TRP_DEAD_MAILBOX_FULL], 1);
    trp_system_stop_actor(system_, crew[0]); /* not refused: a message for one member alone */
    atomic_store(&let_go, CREW);
    UNIT_WAIT(atomic_load(&done_all) == 4, 5000);
    UNIT_WAIT(atomic_load(&ended) == 1, 5000);
    end();
}

/* ---- one's own ------------------------------------------------------------------------------- */

static _Atomic uint64_t seen_end;

static trp_err
watcher_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_terminated_type)) {
        const trp_terminated *what = trp_msg_payload(msg);

        UNIT_TRUE(trp_ref_equal(what->ref, crew[0]));
        atomic_fetch_add(&seen_end, 1);
    } else {
        return trp_watch(ctx, crew[0]);
    }
    return TRP_OK;
}

/* MBOX-13: a message that the runtime handles stays with its receiver; so do replies and stash. */
static void
what_is_for_one_actor_stays_its_own(void)
{
    static const trp_behaviour watcher = {
        .size = sizeof(trp_behaviour), .name = "watcher", .version = 1, .receive = watcher_receive
    };
    trp_msg *reply = NULL;
    crew_task task = { 0 };
    trp_ref ref;

    crew_start(1, NULL); /* without teamwork it is sure who takes what */
    atomic_store(&seen_end, 0);
    ref = spawn(&watcher, NULL);
    say(ref, &crew_task_type, 1);
    UNIT_WAIT(is_idle(ref), 5000); /* its watch is with the crew, */
    wait_idle();                   /* which it wakes for a moment */
    if (UNIT_EQUAL(
            trp_system_ask(system_, crew[1], &crew_who_type, &task, sizeof task, 60000, &reply),
            TRP_OK)) {
        UNIT_EQUAL(((const crew_who *)trp_msg_payload(reply))->number, crew[1].slot);
    }
    trp_msg_free(reply);
    wait_idle();
    say(crew[2], &crew_keep_type, 1);
    UNIT_WAIT(is_idle(crew[2]), 5000);
    say(crew[2], &crew_release_type, 1);
    UNIT_WAIT(atomic_load(&kept_by) == 2, 5000);
    wait_idle();
    hold_up(0);
    say(crew[0], &trp_poison_pill_type, 1); /* the others are idle, and live on */
    say(crew[1], &trp_kill_type, 1);
    UNIT_WAIT(info("team").actors == 2, 5000);
    say(crew[0], &crew_task_type, 4);
    say(crew[2], &crew_task_type, 4);
    UNIT_WAIT(atomic_load(&done_all) == 8, 5000);
    UNIT_EQUAL(atomic_load(&seen_end), 0);
    atomic_store(&let_go, CREW);
    UNIT_WAIT(atomic_load(&seen_end) == 1, 5000);
    UNIT_WAIT(info("team").actors == 1, 5000);
    say(crew[2], &crew_task_type, 1);
    UNIT_WAIT(atomic_load(&done_all) == 9, 5000);
    end();
}

/* ---- ends and failures ----------------------------------------------------------------------- */

/* DISP-5, MBOX-13: the messages of a stopped member are left to the others; those of the last one
 * are dead letters. */
static void
the_mail_of_a_member_that_ends_is_left_to_the_others(void)
{
    trp_system_stats stats = { .size = sizeof stats };

    crew_start(0, NULL);
    for (int i = 0; i < CREW; i++) {
        hold_up(i);
    }
    say(crew[0], &crew_task_type, 30);
    trp_system_stop_actor(system_, crew[0]);
    trp_system_stop_actor(system_, crew[1]);
    atomic_store(&let_go, CREW);
    UNIT_WAIT(atomic_load(&done_all) == 30, 5000);
    UNIT_EQUAL(atomic_load(&done[2]), 30);
    UNIT_WAIT(info("team").actors == 1, 5000);
    hold_up(2);
    say(crew[2], &crew_task_type, 7);
    trp_system_stop_actor(system_, crew[2]);
    UNIT_EQUAL(dead_sum(), 0);
    atomic_store(&let_go, CREW + 1);
    UNIT_WAIT(dead_sum() == 7, 5000);
    trp_system_stats_get(system_, &stats);
    UNIT_EQUAL(stats.dead_letters[TRP_DEAD_STOPPED], 7);
    UNIT_EQUAL(atomic_load(&done_all), 30);
    end();
}

static trp_err
parent_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;

    (void)state;
    if (trp_msg_is(msg, &crew_hold_type)) {
        hold();
        return TRP_OK;
    }
    options.dispatcher = "family";
    for (int i = 0; i < CREW; i++) {
        UNIT_EQUAL(trp_spawn(ctx, &member, &options, &crew[i]), TRP_OK);
    }
    trp_reply(ctx, &crew_who_type, &(crew_who){ 0 }, sizeof(crew_who));
    return TRP_OK;
}

/* A failed member takes no message until its supervisor has decided. */
static void
a_failed_member_takes_nothing(void)
{
    static const trp_behaviour parent = {
        .size = sizeof(trp_behaviour), .name = "parent", .version = 1, .receive = parent_receive
    };
    trp_msg *reply = NULL;
    crew_task task = { 0 };
    trp_ref ref;

    crew_start(0, NULL);
    UNIT_EQUAL(team_add("family", 0, NULL), TRP_OK);
    ref = spawn(&parent, NULL);
    UNIT_EQUAL(trp_system_ask(system_, ref, &crew_task_type, &task, sizeof task, 60000, &reply),
               TRP_OK);
    trp_msg_free(reply);
    wait_idle();
    say(ref, &crew_hold_type, 1);
    UNIT_WAIT(atomic_load(&held) == 1, 5000);
    say(crew[0], &crew_fail_type, 1); /* it is idle: nobody else takes it */
    UNIT_WAIT(is_suspended(crew[0]), 5000);
    say(crew[0], &crew_task_type, 60);
    UNIT_WAIT(atomic_load(&done_all) == 60, 5000);
    UNIT_EQUAL(atomic_load(&done[0]), 0);
    UNIT_EQUAL(atomic_load(&restarted), 0);
    atomic_store(&let_go, 1);
    UNIT_WAIT(atomic_load(&restarted) == 1, 5000);
    wait_idle();
    say(crew[0], &crew_task_type, 1);
    UNIT_WAIT(atomic_load(&done[0]) == 1, 5000); /* idle again, and the one it was told to */
    end();
}

/* ---- conservation ---------------------------------------------------------------------------- */

static void *
say_all(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg;

    for (int i = 0; i < TOLD; i++) {
        seed = seed * 1664525u + 1013904223u;
        say(crew[(seed >> 24) % CREW], (seed >> 8) % 64 == 0 ? &crew_fail_type : &crew_task_type,
            1);
    }
    return NULL;
}

/* DISP-5, HEADLINE: several threads tell, members fail and are restarted in the middle. */
static void
restarts_lose_nothing(void)
{
    pthread_t threads[TELLERS];

    crew_start(0, NULL);
    for (uintptr_t i = 0; i < TELLERS; i++) {
        UNIT_REQUIRE(pthread_create(&threads[i], NULL, say_all, (void *)(i + 1)) == 0);
    }
    for (int i = 0; i < TELLERS; i++) {
        UNIT_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    UNIT_WAIT(atomic_load(&done_all) + atomic_load(&failed) + dead_sum() ==
                  (uint64_t)TELLERS * TOLD,
              10000);
    UNIT_TRUE(atomic_load(&failed) > 0);
    UNIT_EQUAL(dead_sum(), 0);
    UNIT_WAIT(atomic_load(&restarted) == atomic_load(&failed), 5000);
    end();
}

/* DISP-5, TRP-04: Members come and go while others tell them. */
static void
members_that_come_and_go_lose_nothing(void)
{
    for (int round = 0; round < 3; round++) {
        start(5);
        UNIT_EQUAL(team_add("team", round == 2, NULL), TRP_OK);
        conserve("team", round > 0);
        end();
    }
}

UNIT_BEGIN("shared_mailbox")
UNIT(an_idle_member_takes_what_was_told_to_another)
UNIT(without_teamwork_only_the_addressee_is_woken)
UNIT(a_shared_mailbox_is_of_one_behaviour_and_one_type)
UNIT(a_bound_is_for_all_members)
UNIT(what_is_for_one_actor_stays_its_own)
UNIT(the_mail_of_a_member_that_ends_is_left_to_the_others)
UNIT(a_failed_member_takes_nothing)
UNIT(restarts_lose_nothing)
UNIT(members_that_come_and_go_lose_nothing)
UNIT_END

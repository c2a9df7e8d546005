/* persistent_test.c - persistent actors: commands, events, and what the journal answers. */
#include "tests/unit/persistence/account.h"

TRP_PROTOCOL_DEFINE(account, ACCOUNT_MESSAGES)

static uint64_t
dead_of(const book *b, trp_dead_reason reason)
{
    trp_system_stats stats = { .size = sizeof stats };

    trp_system_stats_get(b->system, &stats);
    return stats.dead_letters[reason];
}

/* A4J-14 */
static void
an_empty_journal_is_recovered_from_before_the_first_command(void)
{
    trp_persistent what = account_make();
    book b;

    book_open(&b);
    trp_ref ref = account_spawn(&b, &what, "a");
    account_tell_add(&b, ref, 5, 1, ACCOUNT_SYNC);
    book_run(&b, 0);
    UNIT_TEXT(account_said(), "start recovered0 a5 e5 c5 ");
    book_close(&b);
}

/* A4J-18, A4J-28 */
static void
the_state_comes_back_when_the_actor_does(void)
{
    trp_persistent what = account_make();
    book b;

    book_open(&b);
    trp_ref ref = account_spawn(&b, &what, "a");
    account_tell_add(&b, ref, 5, 1, ACCOUNT_SYNC);
    account_tell_add(&b, ref, 7, 2, ACCOUNT_SYNC);
    book_run(&b, 0);
    UNIT_EQUAL(account_total_of(&b, ref), 20);
    account_stop(&b, ref);
    (void)account_said();
    ref = account_spawn(&b, &what, "a");
    UNIT_EQUAL(account_total_of(&b, ref), 20);
    UNIT_TEXT(account_said(), "start e5 e7 e8 recovered20 ");
    UNIT_EQUAL(trp_testkit_close(b.kit), TRP_OK);
    book_open_again(&b); /* another system */
    ref = account_spawn(&b, &what, "a");
    UNIT_EQUAL(account_total_of(&b, ref), 20);
    book_close(&b);
}

/* A4J-14 */
static void
a_group_is_one_append_and_its_callbacks_come_in_order(void)
{
    trp_journal_health health = TRP_JOURNAL_HEALTH_INIT;
    trp_persistent what = account_make();
    book b;

    book_open(&b);
    trp_ref ref = account_spawn(&b, &what, "a");
    account_tell_add(&b, ref, 1, 4, ACCOUNT_ALL);
    book_run(&b, 0);
    UNIT_TEXT(account_said(), "start recovered0 a1 e1 c1 e2 c2 e3 c3 e4 c4 ");
    b.journal->health(b.journal->arg, &health);
    UNIT_EQUAL(health.groups, 1);
    UNIT_EQUAL(health.events, 4);
    book_close(&b);
}

static void
commands_wait_in_order_while_an_event_is_written(void)
{
    trp_persistent what = account_make();
    book b;

    book_open(&b);
    trp_ref ref = account_spawn(&b, &what, "a");
    book_run(&b, 0);
    trp_journal_memory_hold(b.memory, 1);
    for (int64_t amount = 1; amount <= 3; amount++) {
        account_tell_add(&b, ref, amount, 1, ACCOUNT_SYNC);
    }
    book_run(&b, 0);
    UNIT_TEXT(account_said(), "start recovered0 a1 ");
    trp_journal_memory_hold(b.memory, 0);
    book_run(&b, 0);
    UNIT_TEXT(account_said(), "e1 c1 a2 e2 c2 a3 e3 c3 ");
    book_close(&b);
}

static void
a_callback_answers_the_sender_of_its_command(void)
{
    trp_persistent what = account_make();
    trp_msg *reply = NULL;
    account_add add = { 5, 1, ACCOUNT_SYNC };
    book b;

    book_open(&b);
    trp_ref ref = account_spawn(&b, &what, "a");
    UNIT_EQUAL(trp_system_ask(b.system, ref, &account_add_type, &add, 0, 1000, &reply), TRP_OK);
    if (reply != NULL) {
        UNIT_EQUAL(account_total_as(reply)->amount, 5);
        UNIT_EQUAL(account_total_as(reply)->number, 1);
    }
    trp_msg_free(reply);
    book_close(&b);
}

static void
asynchronous_events_let_commands_go_on_and_share_an_append(void)
{
    trp_journal_health health = TRP_JOURNAL_HEALTH_INIT;
    trp_persistent what = account_make();
    book b;

    book_open(&b);
    trp_ref ref = account_spawn(&b, &what, "a");
    book_run(&b, 0);
    trp_journal_memory_hold(b.memory, 1);
    for (int64_t amount = 1; amount <= 3; amount++) {
        account_tell_add(&b, ref, amount, 1, ACCOUNT_ASYNC);
    }
    account_tell_add(&b, ref, 4, 1, ACCOUNT_DEFER);
    book_run(&b, 0);
    UNIT_TEXT(account_said(), "start recovered0 a1 a2 a3 a4 ");
    trp_journal_memory_hold(b.memory, 0);
    book_run(&b, 0);
    UNIT_TEXT(account_said(), "e1 c1 e2 c2 e3 c3 e4 c4 c-1 ");
    b.journal->health(b.journal->arg, &health);
    UNIT_EQUAL(health.groups, 2);
    UNIT_EQUAL(health.events, 4);
    book_close(&b);
}

static void
what_a_callback_persists_comes_before_the_next_command(void)
{
    trp_persistent what = account_make();
    book b;

    book_open(&b);
    trp_ref ref = account_spawn(&b, &what, "a");
    account_tell_add(&b, ref, 1, 1, ACCOUNT_CALLBACK);
    account_tell_add(&b, ref, 5, 1, ACCOUNT_SYNC);
    book_run(&b, 0);
    UNIT_TEXT(account_said(), "start recovered0 a1 e1 c1 e1 c1 a5 e5 c5 ");
    book_close(&b);
}

static void
the_stash_is_bounded_and_its_senders_are_told(void)
{
    trp_persistent what = account_make();
    account_get get = { 0 };
    book b;

    what.stash_msgs_max = 2;
    book_open(&b);
    trp_ref ref = account_spawn(&b, &what, "a");
    book_run(&b, 0);
    trp_journal_memory_hold(b.memory, 1);
    account_tell_add(&b, ref, 1, 1, ACCOUNT_SYNC);
    account_tell_add(&b, ref, 2, 1, ACCOUNT_SYNC);
    account_tell_add(&b, ref, 3, 1, ACCOUNT_SYNC); /* the limit */
    book_run(&b, 0);
    UNIT_EQUAL(dead_of(&b, TRP_DEAD_STASH_FULL), 0);
    trp_probe_tell(b.probe, ref, &account_get_type, &get, 0); /* one past it */
    book_run(&b, 0);
    UNIT_EQUAL(dead_of(&b, TRP_DEAD_STASH_FULL), 1);
    const trp_msg *told = trp_probe_expect_type(b.probe, 1000, &trp_status_failure_type);
    UNIT_TRUE(told != NULL &&
              ((const trp_status_failure *)trp_msg_payload(told))->err == TRP_EAGAIN);
    trp_journal_memory_hold(b.memory, 0);
    book_run(&b, 0);
    UNIT_EQUAL(account_total_of(&b, ref), 6);
    book_close(&b);
}

static void
more_groups_than_may_wait_are_refused(void)
{
    trp_persistent what = account_make();
    book b;

    what.pending_max = 2;
    book_open(&b);
    trp_ref ref = account_spawn(&b, &what, "a");
    book_run(&b, 0);
    trp_journal_memory_hold(b.memory, 1);
    account_tell_add(&b, ref, 1, 1, ACCOUNT_ASYNC);
    account_tell_add(&b, ref, 2, 1, ACCOUNT_ASYNC);
    book_run(&b, 0);
    UNIT_EQUAL(account_last_err, TRP_OK);
    account_tell_add(&b, ref, 3, 1, ACCOUNT_ASYNC);
    book_run(&b, 0);
    UNIT_EQUAL(account_last_err, TRP_EAGAIN);
    trp_journal_memory_hold(b.memory, 0);
    book_run(&b, 0);
    UNIT_EQUAL(account_total_of(&b, ref), 3);
    book_close(&b);
}

static void
a_rejection_is_told_and_the_actor_goes_on(void)
{
    trp_persistent what = account_make();
    book b;

    book_open(&b);
    trp_ref ref = account_spawn(&b, &what, "a");
    book_run(&b, 0);
    trp_journal_memory_fail(b.memory, TRP_JOURNAL_APPEND, 0, 1, TRP_JOURNAL_REFUSED, TRP_EAGAIN);
    account_tell_add(&b, ref, 1, 1, ACCOUNT_SYNC);
    account_tell_add(&b, ref, 2, 1, ACCOUNT_SYNC);
    book_run(&b, 0);
    UNIT_TEXT(account_said(), "start recovered0 a1 rejected1 a2 e2 c2 ");
    const trp_msg *told = trp_probe_expect_type(b.probe, 1000, &trp_status_failure_type);
    UNIT_TRUE(told != NULL &&
              ((const trp_status_failure *)trp_msg_payload(told))->err == TRP_EAGAIN);
    UNIT_EQUAL(account_total_of(&b, ref), 2);
    book_close(&b);
}

static void
a_rejected_group_costs_no_other_one_of_its_append(void)
{
    trp_persistent what = account_make();
    book b;

    book_open(&b);
    trp_ref ref = account_spawn(&b, &what, "a");
    book_run(&b, 0);
    trp_journal_memory_hold(b.memory, 1);
    for (int64_t amount = 1; amount <= 4; amount++) { /* 1, then 2 to 4 together */
        account_tell_add(&b, ref, amount, 1, amount == 3 ? ACCOUNT_DEFER : ACCOUNT_ASYNC);
    }
    book_run(&b, 0);
    trp_journal_memory_fail(b.memory, TRP_JOURNAL_APPEND, 1, 2, TRP_JOURNAL_REFUSED, TRP_EAGAIN);
    (void)account_said();
    trp_journal_memory_hold(b.memory, 0);
    book_run(&b, 0);
    UNIT_TEXT(account_said(), "e1 c1 rejected2 e3 c3 c-1 e4 c4 ");
    UNIT_EQUAL(account_total_of(&b, ref), 8);
    book_close(&b);
}

static void
a_write_of_unknown_outcome_ends_the_actor_after_its_hook(void)
{
    trp_persistent what = account_make();
    book b;

    book_open(&b);
    trp_ref ref = account_spawn(&b, &what, "a");
    book_run(&b, 0);
    UNIT_EQUAL(trp_probe_watch(b.probe, ref), TRP_OK);
    trp_journal_memory_fail(b.memory, TRP_JOURNAL_APPEND, 0, 1, TRP_JOURNAL_FAILED, TRP_EIO);
    account_tell_add(&b, ref, 1, 1, ACCOUNT_SYNC);
    account_tell_add(&b, ref, 2, 1, ACCOUNT_SYNC);
    book_run(&b, 0);
    UNIT_TEXT(account_said(), "start recovered0 a1 failed1:TRP_EJOURNAL ");
    UNIT_TRUE(trp_probe_expect_type(b.probe, 1000, &trp_terminated_type) != NULL);
    book_close(&b);
}

static void
an_actor_that_was_replaced_is_refused_and_ends(void)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    trp_persistent what = account_make();
    book b;

    book_open(&b);
    trp_ref ref = account_spawn(&b, &what, "a");
    account_tell_add(&b, ref, 1, 1, ACCOUNT_SYNC);
    book_run(&b, 0);
    op.scope = "/user/a";
    op.writer = "elsewhere";
    book_call(&b, &op);
    UNIT_EQUAL(op.ret_epoch, 2);
    account_tell_add(&b, ref, 2, 1, ACCOUNT_SYNC);
    book_run(&b, 0);
    UNIT_TEXT(account_said(), "start recovered0 a1 e1 c1 a2 failed2:TRP_EFENCED ");
    ref = account_spawn(&b, &what, "a");
    UNIT_EQUAL(account_total_of(&b, ref), 1);
    book_close(&b);
}

static void
a_command_that_fails_has_persisted_nothing(void)
{
    trp_persistent what = account_make();
    book b;

    book_open(&b);
    trp_ref ref = account_spawn(&b, &what, "a");
    account_tell_add(&b, ref, 1, 1, ACCOUNT_SYNC);
    for (uint32_t how = ACCOUNT_FAILS; how <= ACCOUNT_JUMPS; how++) {
        account_tell_add(&b, ref, 100, 2, how);
        account_tell_add(&b, ref, 1, 1, ACCOUNT_SYNC);
        book_run(&b, 0);
    }
    UNIT_TEXT(account_said(), "start recovered0 a1 e1 c1 a100 start e1 recovered1 a1 e1 c1 "
                              "a100 start e1 e1 recovered2 a1 e1 c1 ");
    UNIT_EQUAL(account_total_of(&b, ref), 3);
    book_close(&b);
}

static trp_directive
resume_decide(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    (void)ctx;
    (void)state;
    (void)failure;
    return TRP_RESUME;
}

static trp_ref child_made;

static trp_err
parent_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return TRP_OK;
}

static const trp_persistent *child_what;

static trp_err
parent_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)state;
    (void)args;
    return trp_spawn(ctx, &child_what->behaviour, NULL, &child_made);
}

static trp_ref
spawn_below(const book *b, const trp_persistent *what, const trp_behaviour *parent)
{
    trp_ref ref = TRP_REF_NONE;

    child_what = what;
    UNIT_EQUAL(trp_system_spawn(b->system, parent, NULL, &ref), TRP_OK);
    book_run(b, 0);
    return child_made;
}

static void
an_actor_whose_event_has_failed_is_not_resumed(void)
{
    trp_persistent what = account_make();
    trp_strategy strategy = TRP_STRATEGY_INIT;
    trp_behaviour parent = TRP_BEHAVIOUR_INIT("parent", int, parent_receive);
    book b;

    strategy.decider = resume_decide;
    parent.strategy = &strategy;
    parent.pre_start = parent_start;
    book_open(&b);
    trp_ref ref = spawn_below(&b, &what, &parent);
    account_tell_add(&b, ref, 100, 1, ACCOUNT_JUMPS); /* a command may be resumed behind */
    account_tell_add(&b, ref, 1, 1, ACCOUNT_SYNC);
    book_run(&b, 0);
    UNIT_TEXT(account_said(), "start recovered0 a100 a1 e1 c1 ");
    account_event_err = 1;
    account_tell_add(&b, ref, 2, 1, ACCOUNT_SYNC);
    account_tell_add(&b, ref, 3, 1, ACCOUNT_SYNC);
    book_run(&b, 0);
    UNIT_TEXT(account_said(), "a2 e2 ");
    UNIT_EQUAL(account_total_of(&b, ref), INT64_MIN);
    book_close(&b);
}

static trp_directive
recover_decide(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    (void)ctx;
    (void)state;
    return failure->err == TRP_EJOURNAL ? TRP_STOP : TRP_RECOVER;
}

/* A4J-21, A4J-24 */
static void
a_supervisor_recovers_a_child_to_its_last_state_and_no_command_is_lost(void)
{
    trp_persistent what = account_make();
    trp_strategy strategy = TRP_STRATEGY_INIT;
    trp_behaviour parent = TRP_BEHAVIOUR_INIT("parent", int, parent_receive);
    book b;

    strategy.decider = recover_decide;
    parent.strategy = &strategy;
    parent.pre_start = parent_start;
    book_open(&b);
    trp_ref ref = spawn_below(&b, &what, &parent);
    account_id[0] = 'x';
    account_tell_add(&b, ref, 1, 1, ACCOUNT_SYNC);
    account_tell_add(&b, ref, 100, 1, ACCOUNT_FAILS);
    account_tell_add(&b, ref, 2, 1, ACCOUNT_SYNC);
    account_tell_add(&b, ref, 3, 1, ACCOUNT_SYNC);
    account_id[0] = '\0';
    book_run(&b, 0);
    UNIT_TEXT(account_said(),
              "start recovered0 a1 e1 c1 a100 start e1 recovered1 a2 e2 c2 a3 e3 c3 ");
    UNIT_EQUAL(account_total_of(&b, ref), 6);
    book_close(&b);
}

static void
what_an_actor_keeps_when_it_stops_is_a_dead_letter(void)
{
    trp_persistent what = account_make();
    book b;

    book_open(&b);
    trp_ref ref = account_spawn(&b, &what, "a");
    book_run(&b, 0);
    trp_journal_memory_hold(b.memory, 1);
    for (int64_t amount = 1; amount <= 3; amount++) {
        account_tell_add(&b, ref, amount, 1, ACCOUNT_SYNC);
    }
    book_run(&b, 0);
    account_stop(&b, ref);
    UNIT_EQUAL(dead_of(&b, TRP_DEAD_STASH), 2);
    trp_journal_memory_hold(b.memory, 0); /* the answer finds nobody */
    book_run(&b, 0);
    ref = account_spawn(&b, &what, "a");
    UNIT_EQUAL(account_total_of(&b, ref), 1);
    book_close(&b);
}

static void
an_actor_needs_a_journal(void)
{
    trp_persistent what = account_make();
    trp_testkit_options options = TRP_TESTKIT_OPTIONS_INIT;
    book b;

    options.clock = TRP_CLOCK_MANUAL;
    UNIT_REQUIRE(trp_testkit_open(&options, &b.kit) == TRP_OK);
    b.system = trp_testkit_system(b.kit);
    b.probe = trp_testkit_probe(b.kit);
    trp_ref ref = account_spawn(&b, &what, "a");
    UNIT_EQUAL(trp_probe_watch(b.probe, ref), TRP_OK);
    book_run(&b, 0);
    UNIT_TRUE(trp_probe_expect_type(b.probe, 1000, &trp_terminated_type) != NULL);
    UNIT_TEXT(account_said(), "");
    UNIT_EQUAL(trp_testkit_close(b.kit), TRP_OK);
}

UNIT_BEGIN("persistent")
UNIT(an_empty_journal_is_recovered_from_before_the_first_command)
UNIT(the_state_comes_back_when_the_actor_does)
UNIT(a_group_is_one_append_and_its_callbacks_come_in_order)
UNIT(commands_wait_in_order_while_an_event_is_written)
UNIT(a_callback_answers_the_sender_of_its_command)
UNIT(asynchronous_events_let_commands_go_on_and_share_an_append)
UNIT(what_a_callback_persists_comes_before_the_next_command)
UNIT(the_stash_is_bounded_and_its_senders_are_told)
UNIT(more_groups_than_may_wait_are_refused)
UNIT(a_rejection_is_told_and_the_actor_goes_on)
UNIT(a_rejected_group_costs_no_other_one_of_its_append)
UNIT(a_write_of_unknown_outcome_ends_the_actor_after_its_hook)
UNIT(an_actor_that_was_replaced_is_refused_and_ends)
UNIT(a_command_that_fails_has_persisted_nothing)
UNIT(an_actor_whose_event_has_failed_is_not_resumed)
UNIT(a_supervisor_recovers_a_child_to_its_last_state_and_no_command_is_lost)
UNIT(what_an_actor_keeps_when_it_stops_is_a_dead_letter)
UNIT(an_actor_needs_a_journal)
UNIT_END

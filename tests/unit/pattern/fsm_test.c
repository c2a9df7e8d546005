/* fsm_test.c - state machines: outcomes, hooks, data, replies, ends, subscribers, history. */
#include "tests/unit/pattern/door.h"

static trp_err
do_event(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct door *d = state;
    if (door_said(msg, "open")) {
        struct door_data *data = trp_fsm_using(&d->fsm);
        data->opened++;
        UNIT_TRUE(trp_fsm_using(&d->fsm) == data);
        UNIT_EQUAL(trp_fsm_reply(ctx, &d->fsm, &trp_string_type, "reply", 5), TRP_OK);
        return trp_fsm_goto(&d->fsm, OPEN);
    }
    if (door_said(msg, "close")) {
        return trp_fsm_goto(&d->fsm, CLOSED);
    }
    if (door_said(msg, "lock")) {
        return trp_fsm_goto(&d->fsm, LOCKED);
    }
    if (door_said(msg, "nowhere")) {
        return trp_fsm_goto(&d->fsm, NOWHERE);
    }
    if (door_said(msg, "not really")) { /* the last word counts */
        UNIT_EQUAL(trp_fsm_goto(&d->fsm, OPEN), TRP_OK);
        return trp_fsm_stay(&d->fsm);
    }
    if (door_said(msg, "fail")) {
        ((struct door_data *)trp_fsm_using(&d->fsm))->opened = 99;
        UNIT_EQUAL(trp_fsm_reply(ctx, &d->fsm, &trp_string_type, "never", 5), TRP_OK);
        UNIT_EQUAL(trp_fsm_goto(&d->fsm, OPEN), TRP_OK);
        trp_fail(ctx, 1, "it is told to");
    }
    if (door_said(msg, "error")) {
        ((struct door_data *)trp_fsm_using(&d->fsm))->opened = 99;
        UNIT_EQUAL(trp_fsm_goto(&d->fsm, OPEN), TRP_OK);
        return TRP_EIO;
    }
    if (door_said(msg, "stop")) {
        UNIT_EQUAL(trp_fsm_reply(ctx, &d->fsm, &trp_string_type, "bye", 3), TRP_OK);
        return trp_fsm_stop(ctx, &d->fsm, TRP_FSM_NORMAL, NULL);
    }
    if (door_said(msg, "break")) {
        ((struct door_data *)trp_fsm_using(&d->fsm))->opened = 7;
        return trp_fsm_stop(ctx, &d->fsm, TRP_FSM_FAILURE, "the hinge is broken");
    }
    return TRP_EUNHANDLED;
}

static trp_err
do_question(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct door *d = state;
    if (!door_said(msg, "what")) {
        return TRP_EUNHANDLED;
    }
    UNIT_EQUAL(trp_fsm_next(&d->fsm), trp_fsm_now(&d->fsm));
    door_say(ctx, d, "%s %u", trp_fsm_name(&d->fsm), door_opened(trp_fsm_data(&d->fsm)));
    return trp_fsm_stay(&d->fsm);
}
TRP_OR_ELSE(on_closed, do_question, do_event)

/* FSM-13: the outcome of one function is changed by another one. */
static trp_err
on_open(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct door *d = state;
    trp_err err = on_closed(ctx, state, msg);
    if (err == TRP_OK && trp_fsm_next(&d->fsm) == OPEN &&
        door_opened(trp_fsm_next_data(&d->fsm)) > 2) {
        return trp_fsm_goto(&d->fsm, LOCKED);
    }
    return err;
}

static void
first_hook(trp_ctx *ctx, void *state, uint32_t from, uint32_t to)
{
    struct door *d = state;
    UNIT_TRUE(from != to && from == trp_fsm_now(&d->fsm));
    door_say(ctx, d, "%u>%u %u>%u", from, to, door_opened(trp_fsm_data(&d->fsm)),
             door_opened(trp_fsm_next_data(&d->fsm)));
}

static void
second_hook(trp_ctx *ctx, void *state, uint32_t from, uint32_t to)
{
    struct door *d = state;
    (void)from;
    (void)to;
    UNIT_EQUAL(trp_fsm_goto(&d->fsm, CLOSED), TRP_ESTATE); /* a hook changes nothing */
    UNIT_EQUAL(trp_fsm_stay(&d->fsm), TRP_ESTATE);
    UNIT_EQUAL(trp_fsm_for_max(&d->fsm, 1), TRP_ESTATE);
    UNIT_EQUAL(trp_fsm_stop(ctx, &d->fsm, TRP_FSM_NORMAL, NULL), TRP_ESTATE);
    UNIT_EQUAL(trp_fsm_reply(ctx, &d->fsm, &trp_string_type, "x", 1), TRP_ESTATE);
    UNIT_TRUE(trp_fsm_using(&d->fsm) == NULL);
    door_say(ctx, d, "second");
}

static void
on_end(trp_ctx *ctx, void *state, const trp_fsm_stop_event *event)
{
    const struct door *d = state;
    door_say(ctx, d, "end %d %u %u '%s'", (int)event->reason, event->state,
             door_opened(event->data), event->why);
}

static trp_err
door_init(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct door *d = state;
    (void)ctx;
    memcpy(&d->probe, trp_msg_payload(args), sizeof d->probe);
    return TRP_OK;
}

static const trp_fsm_state states[] = { TRP_FSM_STATE(CLOSED, on_closed, 0),
                                        TRP_FSM_STATE(OPEN, on_open, 0),
                                        TRP_FSM_STATE(LOCKED, NULL, 0) };
static const trp_fsm_hook hooks[] = { first_hook, second_hook, NULL };
static const struct door_data data_first = { 0, 0 };
static const trp_fsm_definition plain = { .size = sizeof plain,
                                          .name = "door",
                                          .states = states,
                                          .states_count = 3,
                                          .first = CLOSED,
                                          .data_bytes = sizeof data_first,
                                          .data = &data_first,
                                          .history = 3,
                                          .init = door_init,
                                          .hooks = hooks,
                                          .terminated = on_end };
TRP_FSM_BEHAVIOUR(door, "door", struct door, &plain)

/* FSM-1 FSM-2 FSM-4 FSM-9: states, functions one after the other, replies before hooks, old and new
 * data; a state that stays has no transition. */
static void
a_transition_replies_then_calls_each_hook_then_is_made(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_ref ref = door_spawn(kit, &door);
    door_tell(kit, ref, "what");
    DOOR_SAYS(kit, "CLOSED 0");
    door_tell(kit, ref, "open");
    DOOR_SAYS(kit, "reply");
    DOOR_SAYS(kit, "0>1 0>1");
    DOOR_SAYS(kit, "second");
    door_tell(kit, ref, "what");
    DOOR_SAYS(kit, "OPEN 1");
    door_tell(kit, ref, "open"); /* the same state: no transition, but new data */
    DOOR_SAYS(kit, "reply");
    door_tell(kit, ref, "what");
    DOOR_SAYS(kit, "OPEN 2");
    door_tell(kit, ref, "close");
    DOOR_SAYS(kit, "1>0 2>2");
    DOOR_SAYS(kit, "second");
    door_tell(kit, ref, "not really");
    door_tell(kit, ref, "what");
    DOOR_SAYS(kit, "CLOSED 2");
    DOOR_QUIET(kit);
    door_kit_close(kit);
}

/* FSM-13 */
static void
a_function_finishes_the_outcome_of_another_one(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_ref ref = door_spawn(kit, &door);
    struct door *d = trp_testkit_state(kit, ref);
    struct door_data data = { 2, 0 };
    UNIT_EQUAL(trp_fsm_put(&d->fsm, OPEN, &data), TRP_OK);
    door_tell(kit, ref, "open");
    DOOR_SAYS(kit, "reply");
    DOOR_SAYS(kit, "1>2 2>3");
    UNIT_EQUAL(trp_fsm_now(&d->fsm), LOCKED);
    door_kit_close(kit);
}

static trp_directive
resume(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    (void)ctx;
    (void)state;
    (void)failure;
    return TRP_RESUME;
}
static const trp_strategy resuming = { .size = sizeof resuming, .decider = resume, .quiet = 1 };
struct parent {
    trp_ref child;
};
static trp_err
parent_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct parent *p = state;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    options.args_type = &trp_bytes_type;
    options.args = trp_msg_payload(args);
    options.args_bytes = trp_msg_bytes(args);
    return trp_spawn(ctx, &door, &options, &p->child);
}
static trp_err
parent_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_forward(ctx, ((struct parent *)state)->child, msg);
    return TRP_OK;
}
static const trp_behaviour parent = { .size = sizeof parent,
                                      .name = "parent",
                                      .version = 1,
                                      .state_bytes = sizeof(struct parent),
                                      .receive = parent_receive,
                                      .pre_start = parent_start,
                                      .strategy = &resuming };

/* FSM-4: nothing that a function noted before it failed is done. */
static void
a_function_that_fails_has_changed_nothing(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_ref ref = door_spawn(kit, &parent);
    static const char *const ways[] = { "fail", "error" };
    for (size_t i = 0; i < 2; i++) {
        door_tell(kit, ref, ways[i]);
        door_tell(kit, ref, "what");
        DOOR_SAYS(kit, "CLOSED 0");
        DOOR_QUIET(kit);
    }
    door_kit_close(kit);
}

/* FSM-8 */
static void
a_state_that_is_not_declared_is_a_failure_that_names_it(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_ref ref = door_spawn(kit, &door);
    trp_failure failure = { .err = TRP_OK };
    UNIT_EQUAL(trp_testkit_receive(kit, ref, trp_probe_ref(trp_testkit_probe(kit)),
                                   &trp_string_type, "nowhere", 7, &failure),
               TRP_EFAILED);
    UNIT_TEXT(failure.reason, "state machine door: state NOWHERE (3) is not declared, from CLOSED");
    door_kit_close(kit);
}

static const trp_fsm_edge edges[] = { TRP_FSM_EDGE(CLOSED, OPEN, "open"),
                                      TRP_FSM_EDGE(OPEN, CLOSED, NULL) };
static const trp_fsm_definition edged = { .size = sizeof edged,
                                          .name = "edged",
                                          .states = states,
                                          .edges = edges,
                                          .states_count = 3,
                                          .edges_count = 2,
                                          .first = CLOSED,
                                          .data_bytes = sizeof data_first,
                                          .init = door_init };
TRP_FSM_BEHAVIOUR(edged_door, "edged", struct door, &edged)

/* FSM-8 */
static void
a_transition_without_an_edge_is_a_failure(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_ref ref = door_spawn(kit, &edged_door);
    trp_failure failure = { .err = TRP_OK };
    door_tell(kit, ref, "open");
    DOOR_SAYS(kit, "reply");
    UNIT_EQUAL(trp_testkit_receive(kit, ref, trp_probe_ref(trp_testkit_probe(kit)),
                                   &trp_string_type, "lock", 4, &failure),
               TRP_EFAILED);
    UNIT_TEXT(failure.reason, "state machine edged: no edge from OPEN to LOCKED is declared");
    door_tell(kit, ref, "close");
    door_tell(kit, ref, "what");
    DOOR_SAYS(kit, "CLOSED 1");
    door_kit_close(kit);
}

/* FSM-7: a state without a function handles nothing; the event is logged, and unhandled. */
static void
an_event_that_is_not_handled_is_logged_and_published(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_probe *probe = trp_testkit_probe(kit);
    trp_filter filter = TRP_FILTER_INIT;
    trp_ref ref = door_spawn(kit, &door);
    door_tell(kit, ref, "lock");
    DOOR_SAYS(kit, "0>2 0>0");
    DOOR_SAYS(kit, "second");
    UNIT_EQUAL(
        trp_system_subscribe(trp_testkit_system(kit), trp_probe_ref(probe), &trp_unhandled_type),
        TRP_OK);
    filter.level = TRP_LOG_WARNING;
    filter.occurrences = 1;
    filter.text = "state machine door: event *string is not handled in state LOCKED";
    TRP_INTERCEPT(kit, &filter)
    {
        door_tell(kit, ref, "open");
    }
    UNIT_TRUE(trp_probe_expect_type(probe, TRP_TEST_TIME, &trp_unhandled_type) != NULL);
    door_kit_close(kit);
}

static trp_err
catch_all(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct door *d = state;
    door_say(ctx, d, "unhandled in %s", trp_fsm_name(&d->fsm));
    return trp_msg_is(msg, &trp_i64_type) ? trp_fsm_goto(&d->fsm, CLOSED) : trp_fsm_stay(&d->fsm);
}
static const trp_fsm_definition caught = { .size = sizeof caught,
                                           .name = "caught",
                                           .states = states,
                                           .states_count = 3,
                                           .first = LOCKED,
                                           .data_bytes = sizeof data_first,
                                           .init = door_init,
                                           .unhandled = catch_all };
TRP_FSM_BEHAVIOUR(caught_door, "caught", struct door, &caught)

/* FSM-7 */
static void
events_that_no_state_knows_go_to_a_common_function(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_ref ref = door_spawn(kit, &caught_door);
    const struct door *d = trp_testkit_state(kit, ref);
    door_tell(kit, ref, "open");
    DOOR_SAYS(kit, "unhandled in LOCKED");
    UNIT_EQUAL(trp_fsm_now(&d->fsm), LOCKED);
    trp_probe_tell(trp_testkit_probe(kit), ref, &trp_i64_type, &(int64_t){ 1 }, 0);
    DOOR_SAYS(kit, "unhandled in LOCKED");
    UNIT_EQUAL(trp_fsm_now(&d->fsm), CLOSED);
    door_kit_close(kit);
}

/* FSM-11 */
static void
it_stops_for_a_reason_that_its_hook_is_told_once(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_probe *probe = trp_testkit_probe(kit);
    trp_filter filter = TRP_FILTER_INIT;
    trp_ref ref = door_spawn(kit, &door);
    UNIT_EQUAL(trp_probe_watch(probe, ref), TRP_OK);
    door_tell(kit, ref, "stop");
    DOOR_SAYS(kit, "bye");
    DOOR_SAYS(kit, "end 1 0 0 ''");
    UNIT_TRUE(trp_probe_expect_terminated(probe, TRP_TEST_TIME, ref) != NULL);
    ref = door_spawn(kit, &door);
    filter.level = TRP_LOG_ERROR;
    filter.occurrences = 1;
    filter.text = "state machine door stops in state CLOSED: the hinge is broken";
    TRP_INTERCEPT(kit, &filter)
    {
        door_tell(kit, ref, "break");
    }
    DOOR_SAYS(kit, "end 3 0 7 'the hinge is broken'");
    ref = door_spawn(kit, &door);
    trp_system_stop_actor(trp_testkit_system(kit), ref); /* from outside */
    DOOR_SAYS(kit, "end 2 0 0 ''");
    DOOR_QUIET(kit);
    door_kit_close(kit);
}

/* FSM-11 FSM-3: a restart ends the machine and begins another one. */
static void
a_restart_begins_in_the_first_state(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_ref ref = door_spawn(kit, &door);
    door_tell(kit, ref, "open");
    DOOR_SAYS(kit, "reply");
    DOOR_SAYS(kit, "0>1 0>1");
    DOOR_SAYS(kit, "second");
    door_tell(kit, ref, "nowhere");
    DOOR_SAYS(kit, "end 2 1 1 ''");
    door_tell(kit, ref, "what");
    DOOR_SAYS(kit, "CLOSED 0");
    door_kit_close(kit);
}

static const trp_fsm_definition bare = { .size = sizeof bare,
                                         .name = "bare",
                                         .states = states,
                                         .states_count = 3,
                                         .first = CLOSED,
                                         .data_bytes = sizeof data_first,
                                         .init = door_init };
TRP_FSM_BEHAVIOUR(bare_door, "bare", struct door, &bare)

/* FSM-1 FSM-8: without hooks, limits and history the steps are shorter, and the same. */
static void
a_machine_without_extras_goes_the_same_ways(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_ref ref = door_spawn(kit, &bare_door);
    trp_failure failure = { .err = TRP_OK };
    door_tell(kit, ref, "open");
    DOOR_SAYS(kit, "reply");
    door_tell(kit, ref, "what");
    DOOR_SAYS(kit, "OPEN 1");
    door_tell(kit, ref, "close");
    door_tell(kit, ref, "not really");
    door_tell(kit, ref, "unknown");
    door_tell(kit, ref, "what");
    DOOR_SAYS(kit, "CLOSED 1");
    UNIT_EQUAL(trp_testkit_receive(kit, ref, trp_probe_ref(trp_testkit_probe(kit)),
                                   &trp_string_type, "nowhere", 7, &failure),
               TRP_EFAILED);
    UNIT_TEXT(failure.reason, "state machine bare: state NOWHERE (3) is not declared, from CLOSED");
    door_tell(kit, ref, "what");
    DOOR_SAYS(kit, "CLOSED 1");
    door_tell(kit, ref, "lock");
    door_tell(kit, ref, "open"); /* not handled there */
    UNIT_EQUAL(trp_fsm_now(trp_testkit_state(kit, ref)), LOCKED);
    DOOR_QUIET(kit);
    door_kit_close(kit);
}

/* ---- subscribers ----------------------------------------------------------------------------- */

static void
order(trp_testkit *kit, trp_ref ref, const trp_type *type, trp_ref subscriber)
{
    trp_system_tell(trp_testkit_system(kit), ref, type, &subscriber, sizeof subscriber);
    (void)trp_testkit_advance(kit, 0);
}

/* FSM-12 */
static void
subscribers_are_told_the_state_and_each_transition(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_probe *other;
    trp_ref ref = door_spawn(kit, &door);
    trp_fsm_current current = { ref, CLOSED, 0, "CLOSED" };
    trp_fsm_transition told = { ref, CLOSED, OPEN, "CLOSED", "OPEN" };
    UNIT_EQUAL(trp_probe_open(kit, &other), TRP_OK);
    order(kit, ref, &trp_fsm_subscribe_type, trp_probe_ref(other));
    trp_probe_expect(other, TRP_TEST_TIME, &trp_fsm_current_type, &current, sizeof current);
    order(kit, ref, &trp_fsm_subscribe_type, trp_probe_ref(other)); /* twice is once */
    trp_probe_expect(other, TRP_TEST_TIME, &trp_fsm_current_type, &current, sizeof current);
    door_tell(kit, ref, "open");
    trp_probe_expect(other, TRP_TEST_TIME, &trp_fsm_transition_type, &told, sizeof told);
    door_tell(kit, ref, "open"); /* the same state */
    UNIT_TRUE(trp_probe_expect_none(other, 0));
    order(kit, ref, &trp_fsm_unsubscribe_type, trp_probe_ref(other));
    order(kit, ref, &trp_fsm_unsubscribe_type, trp_probe_ref(other));
    door_tell(kit, ref, "close");
    UNIT_TRUE(trp_probe_expect_none(other, 0));
    door_kit_close(kit);
}

/* FSM-12 */
static void
a_subscriber_of_a_machine_without_extras_is_told(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_probe *other;
    trp_ref ref = door_spawn(kit, &bare_door);
    trp_fsm_transition told = { ref, OPEN, CLOSED, "OPEN", "CLOSED" };
    UNIT_EQUAL(trp_probe_open(kit, &other), TRP_OK);
    door_tell(kit, ref, "open");
    order(kit, ref, &trp_fsm_subscribe_type, trp_probe_ref(other));
    trp_probe_expect_type(other, TRP_TEST_TIME, &trp_fsm_current_type);
    door_tell(kit, ref, "close");
    trp_probe_expect(other, TRP_TEST_TIME, &trp_fsm_transition_type, &told, sizeof told);
    door_kit_close(kit);
}

/* FSM-12: one that is not running is refused; one that has ended is told nothing. */
static void
a_subscriber_that_has_ended_is_removed(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_filter filter = TRP_FILTER_INIT;
    trp_probe *gone, *stays;
    trp_ref ref = door_spawn(kit, &door);
    trp_system_stats before = { .size = sizeof before }, after = before;
    UNIT_EQUAL(trp_probe_open(kit, &gone), TRP_OK);
    UNIT_EQUAL(trp_probe_open(kit, &stays), TRP_OK);
    trp_ref ended = trp_probe_ref(gone);
    order(kit, ref, &trp_fsm_subscribe_type, ended);
    order(kit, ref, &trp_fsm_subscribe_type, trp_probe_ref(stays));
    trp_probe_expect_type(stays, TRP_TEST_TIME, &trp_fsm_current_type);
    trp_probe_close(gone);
    (void)trp_testkit_advance(kit, 0);
    trp_system_stats_get(trp_testkit_system(kit), &before);
    door_tell(kit, ref, "open");
    trp_probe_expect_type(stays, TRP_TEST_TIME, &trp_fsm_transition_type);
    trp_system_stats_get(trp_testkit_system(kit), &after);
    for (int i = 0; i < TRP_DEAD_REASON_COUNT; i++) {
        UNIT_EQUAL(after.dead_letters[i], before.dead_letters[i]);
    }
    filter.level = TRP_LOG_WARNING;
    filter.occurrences = 2;
    filter.text = "state machine door: * is not told transitions: no such actor is running";
    TRP_INTERCEPT(kit, &filter)
    {
        order(kit, ref, &trp_fsm_subscribe_type, ended);
        order(kit, ref, &trp_fsm_subscribe_type, (trp_ref)TRP_REF_NONE);
    }
    door_kit_close(kit);
}

static trp_err
ear_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)msg;
    ++*(uint32_t *)state;
    return TRP_OK;
}
static const trp_behaviour ear = TRP_BEHAVIOUR_INIT("ear", uint32_t, ear_receive);

/* FSM-12 */
static void
subscribers_have_a_limit(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_filter filter = TRP_FILTER_INIT;
    trp_ref ref = door_spawn(kit, &door), one = TRP_REF_NONE;
    for (uint32_t i = 0; i < TRP_FSM_SUBSCRIBERS_MAX; i++) {
        UNIT_EQUAL(trp_system_spawn(trp_testkit_system(kit), &ear, NULL, &one), TRP_OK);
        order(kit, ref, &trp_fsm_subscribe_type, one);
        UNIT_EQUAL(*(uint32_t *)trp_testkit_state(kit, one), 1);
    }
    filter.level = TRP_LOG_WARNING;
    filter.occurrences = 1;
    filter.text = "*TRP_FSM_SUBSCRIBERS_MAX*";
    TRP_INTERCEPT(kit, &filter)
    {
        order(kit, ref, &trp_fsm_subscribe_type, trp_probe_ref(trp_testkit_probe(kit)));
        order(kit, ref, &trp_fsm_subscribe_type, one); /* is there */
    }
    door_tell(kit, ref, "lock");
    UNIT_EQUAL(*(uint32_t *)trp_testkit_state(kit, one), 3);
    door_kit_close(kit);
}

/* ---- looking at it --------------------------------------------------------------------------- */

/* FSM-14: the last three events, the oldest first, with the data before each. */
static void
the_last_events_are_remembered(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_ref ref = door_spawn(kit, &door);
    const struct door *d = trp_testkit_state(kit, ref);
    trp_fsm_entry entry;
    UNIT_EQUAL(trp_fsm_history_count(&d->fsm), 0);
    UNIT_EQUAL(trp_fsm_history_get(&d->fsm, 0, &entry), TRP_ENOENT);
    uint64_t before_ms;
    door_tell(kit, ref, "what");
    door_tell(kit, ref, "what");
    UNIT_EQUAL(trp_fsm_history_count(&d->fsm), 2);
    UNIT_EQUAL(trp_testkit_advance(kit, 5), TRP_OK);
    door_tell(kit, ref, "open");
    UNIT_EQUAL(trp_testkit_advance(kit, 5), TRP_OK);
    door_tell(kit, ref, "lock");
    UNIT_EQUAL(trp_fsm_history_count(&d->fsm), 3);
    UNIT_EQUAL(trp_fsm_history_get(&d->fsm, 0, &entry), TRP_OK);
    UNIT_TRUE(entry.from == CLOSED && entry.to == CLOSED && entry.event == &trp_string_type);
    before_ms = entry.at_ms;
    UNIT_EQUAL(trp_fsm_history_get(&d->fsm, 1, &entry), TRP_OK);
    UNIT_TRUE(entry.from == CLOSED && entry.to == OPEN && door_opened(entry.data) == 0);
    UNIT_EQUAL(entry.at_ms, before_ms + 5);
    UNIT_EQUAL(trp_fsm_history_get(&d->fsm, 2, &entry), TRP_OK);
    UNIT_TRUE(entry.from == OPEN && entry.to == LOCKED && door_opened(entry.data) == 1);
    UNIT_TRUE(trp_ref_equal(entry.sender, trp_probe_ref(trp_testkit_probe(kit))));
    UNIT_EQUAL(trp_fsm_history_get(&d->fsm, 3, &entry), TRP_ENOENT);
    door_kit_close(kit);
}

/* FSM-14 LOG-13 */
static void
events_and_transitions_are_traced_by_their_key(void)
{
    trp_system_options system_options = TRP_SYSTEM_OPTIONS_INIT;
    trp_log_options log_options = { .size = sizeof log_options, .debug = TRP_DEBUG_FSM };
    trp_testkit_options options = TRP_TESTKIT_OPTIONS_INIT;
    trp_testkit *kit = NULL;
    trp_filter event = TRP_FILTER_INIT, transition = TRP_FILTER_INIT;
    system_options.log_level = TRP_LOG_DEBUG;
    system_options.logging = &log_options;
    options.system_options = &system_options;
    options.clock = TRP_CLOCK_MANUAL;
    options.on_fail = TRP_FAIL_RETURN;
    UNIT_REQUIRE(trp_testkit_open(&options, &kit) == TRP_OK);
    trp_ref ref = door_spawn(kit, &door);
    event.level = transition.level = TRP_LOG_DEBUG;
    event.occurrences = transition.occurrences = 1;
    event.text = "state machine door: *string in state CLOSED";
    transition.text = "state machine door: CLOSED -> OPEN";
    TRP_INTERCEPT(kit, &event)
    {
        TRP_INTERCEPT(kit, &transition)
        {
            door_tell(kit, ref, "open");
        }
    }
    door_kit_close(kit);
}

/* FSM-15 FSM-16: a test sees state and data, and sets them. */
static void
a_test_looks_at_the_state_and_sets_it(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_ref ref = door_spawn(kit, &door);
    struct door *d = trp_testkit_state(kit, ref);
    UNIT_EQUAL(trp_fsm_now(&d->fsm), CLOSED);
    UNIT_TEXT(trp_fsm_name(&d->fsm), "CLOSED");
    UNIT_EQUAL(trp_fsm_put(&d->fsm, OPEN, &(struct door_data){ 5, 0 }), TRP_OK);
    UNIT_EQUAL(trp_fsm_put(&d->fsm, NOWHERE, NULL), TRP_ENOENT);
    UNIT_EQUAL(door_opened(trp_fsm_data(&d->fsm)), 5);
    UNIT_EQUAL(trp_fsm_put(&d->fsm, CLOSED, NULL), TRP_OK);
    door_tell(kit, ref, "what");
    DOOR_SAYS(kit, "CLOSED 5");
    door_kit_close(kit);
}

UNIT_BEGIN("fsm")
UNIT(a_transition_replies_then_calls_each_hook_then_is_made)
UNIT(a_function_finishes_the_outcome_of_another_one)
UNIT(a_function_that_fails_has_changed_nothing)
UNIT(a_state_that_is_not_declared_is_a_failure_that_names_it)
UNIT(a_transition_without_an_edge_is_a_failure)
UNIT(an_event_that_is_not_handled_is_logged_and_published)
UNIT(events_that_no_state_knows_go_to_a_common_function)
UNIT(it_stops_for_a_reason_that_its_hook_is_told_once)
UNIT(a_restart_begins_in_the_first_state)
UNIT(a_machine_without_extras_goes_the_same_ways)
UNIT(a_subscriber_of_a_machine_without_extras_is_told)
UNIT(subscribers_are_told_the_state_and_each_transition)
UNIT(a_subscriber_that_has_ended_is_removed)
UNIT(subscribers_have_a_limit)
UNIT(the_last_events_are_remembered)
UNIT(events_and_transitions_are_traced_by_their_key)
UNIT(a_test_looks_at_the_state_and_sets_it)
UNIT_END

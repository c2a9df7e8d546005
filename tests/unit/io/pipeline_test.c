/* pipeline_test.c - the order of stages, what waits, management, ticks, failures, limits. */
#include <setjmp.h>

#include <troupe/pipeline.h>

#include "base/alloc.h"
#include "tests/unit/unit.h"

/* All that happened, as words. */
static char script[4096];

static void
note(const char *format, const char *who, uint64_t number)
{
    size_t used = strlen(script);

    (void)snprintf(script + used, sizeof script - used, format, used == 0 ? "" : " ", who,
                   (unsigned long long)number);
}

static void
script_is(const char *want)
{
    UNIT_TEXT(script, want);
    script[0] = 0;
}

static unsigned numbers_alive;

static void
number_drop(trp_item *item)
{
    (void)item;
    numbers_alive--;
}
static const trp_item_type number_type = { "number", number_drop };
static const trp_item_type order_type = { "order", NULL };

static trp_item
number(uint64_t value)
{
    trp_item item = trp_item_of(&number_type);

    item.as.number = value;
    numbers_alive++;
    return item;
}

/* ---- stages ---------------------------------------------------------------------------------- */

typedef struct noter {
    const char *name; /* the options */
    unsigned inside;
} noter;
static unsigned noters_open;

static trp_err
noter_open(trp_port *port, void *state, const void *options)
{
    noter *n = state;

    (void)port;
    UNIT_TRUE(n->name == NULL); /* zeroed */
    n->name = options;
    noters_open++;
    return strcmp(n->name, "bad") == 0 ? TRP_EIO : TRP_OK;
}

static void
noter_close(void *state)
{
    UNIT_TRUE(((noter *)state)->name != NULL);
    noters_open--;
}

/* 1 and 2 are passed on; 3 becomes three; 4 turns round; 5 fails; 6 fails with a reason; 7 is
 * swallowed. */
static trp_err
noter_handle(trp_port *port, noter *n, trp_item *item, bool is_event)
{
    trp_err (*on)(trp_port *, trp_item *) = is_event ? trp_port_emit_event : trp_port_emit_command;
    trp_err (*back)(trp_port *, trp_item *) =
        is_event ? trp_port_emit_command : trp_port_emit_event;
    trp_item one;
    trp_err err = TRP_OK;

    note(is_event ? "%s%s^%llu" : "%s%sv%llu", n->name, item->as.number);
    UNIT_EQUAL(n->inside++, 0); /* pipeline-P1 */
    switch (item->as.number) {
    case 3:
        for (uint64_t i = 0; i < 3 && err == TRP_OK; i++) {
            one = number(10 + i);
            err = on(port, &one);
            UNIT_TRUE(one.type == NULL);
        }
        break;
    case 4:
        one = number(1);
        err = back(port, &one);
        break;
    case 5:
        err = TRP_EIO;
        break;
    case 6:
        err = trp_port_fail(port, TRP_EDATA, "%d is too many", 6);
        break;
    case 7:
        break;
    default:
        err = on(port, item);
        break;
    }
    n->inside--;
    return err;
}

static trp_err
noter_command(trp_port *port, void *state, trp_item *item)
{
    return noter_handle(port, state, item, false);
}

static trp_err
noter_event(trp_port *port, void *state, trp_item *item)
{
    return noter_handle(port, state, item, true);
}

static trp_err
noter_manage(trp_port *port, void *state, const trp_item *item)
{
    noter *n = state;

    note("%s%s!%llu", n->name, item->as.number);
    if (item->type == &order_type && item->as.number == 9) {
        trp_item up = number(20), down = number(21);
        trp_err err = trp_port_emit_event(port, &up);

        return err == TRP_OK ? trp_port_emit_command(port, &down) : err;
    }
    return item->as.number == 8 ? TRP_EIO : TRP_OK;
}

static const trp_stage noting = { .size = sizeof(trp_stage),
                                  .name = "noting",
                                  .state_bytes = sizeof(noter),
                                  .open = noter_open,
                                  .close = noter_close,
                                  .command = noter_command,
                                  .event = noter_event,
                                  .manage = noter_manage };
static const trp_stage plain = { .size = sizeof(trp_stage), .name = "plain" };
static const trp_stage_use abc[] = {
    { &noting, "a" }, { &plain, NULL }, { &noting, "b" }, { &noting, "c" }
};

/* ---- sinks ----------------------------------------------------------------------------------- */

typedef struct end {
    trp_pipeline *pipeline;
    uint64_t answer; /* a command for each event, if it is not 0 */
    uint64_t echo;   /* an event for each command, once */
    trp_err err;
} end;

static trp_err
end_command(void *arg, trp_item *item)
{
    end *e = arg;
    uint64_t echo = e->echo;

    note("%s%svout%llu", "", item->as.number);
    if (echo != 0) {
        trp_item event = number(echo);
        trp_err err;

        e->echo = 0;
        err = trp_pipeline_event(e->pipeline, &event);
        trp_item_clear(&event);
        return err;
    }
    return TRP_OK;
}

static trp_err
end_event(void *arg, trp_item *item)
{
    end *e = arg;

    note("%s%s^out%llu", "", item->as.number);
    UNIT_EQUAL(trp_pipeline_manage(e->pipeline, item), TRP_ESTATE);
    if (e->answer != 0) {
        trp_item command = number(e->answer);
        trp_err err = trp_pipeline_command(e->pipeline, &command);

        trp_item_clear(&command);
        return err;
    }
    return e->err;
}

static trp_pipeline *
opened(end *e, uint32_t waiting_max)
{
    trp_pipeline_options options = TRP_PIPELINE_OPTIONS_INIT;

    options.on_command = end_command;
    options.on_event = end_event;
    options.arg = e;
    options.waiting_max = waiting_max;
    script[0] = 0;
    UNIT_REQUIRE(trp_pipeline_new(abc, 4, &options, &e->pipeline) == TRP_OK);
    return e->pipeline;
}

static void
closed(end *e)
{
    trp_pipeline_free(e->pipeline);
    UNIT_EQUAL(numbers_alive, 0);
    UNIT_EQUAL(noters_open, 0);
}

static trp_err
fed(end *e, uint64_t value, bool is_event)
{
    trp_item item = number(value);
    trp_err err = is_event ? trp_pipeline_event(e->pipeline, &item)
                           : trp_pipeline_command(e->pipeline, &item);

    UNIT_TRUE(err != TRP_OK || item.type == NULL);
    trp_item_clear(&item);
    return err;
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* PIPE-01, PIPE-04: the uppermost is the first; a stage without functions passes on */
static void
commands_go_down_and_events_up_through_all_stages(void)
{
    end e = { 0 };

    opened(&e, 0);
    UNIT_EQUAL(fed(&e, 1, false), TRP_OK);
    script_is("av1 bv1 cv1 vout1");
    UNIT_EQUAL(fed(&e, 2, true), TRP_OK);
    script_is("c^2 b^2 a^2 ^out2");
    UNIT_EQUAL(fed(&e, 4, true), TRP_OK); /* c turns it round */
    script_is("c^4 vout1");
    UNIT_EQUAL(fed(&e, 7, true), TRP_OK);
    script_is("c^7");
    closed(&e);
}

/* PIPE-06: any number of results, without memory */
static void
one_input_may_have_many_results_that_take_no_memory(void)
{
    end e = { 0 };

    opened(&e, 0);
    trpi_alloc_fail_here_after(0);
    UNIT_EQUAL(fed(&e, 3, true), TRP_OK);
    UNIT_EQUAL(fed(&e, 1, false), TRP_OK);
    trpi_alloc_fail_here_after(-1);
    script_is("c^3 b^10 a^10 ^out10 b^11 a^11 ^out11 b^12 a^12 ^out12 av1 bv1 cv1 vout1");
    closed(&e);
}

/* PIPE-02: what comes for a stage that runs waits, in order */
static void
a_stage_is_not_entered_while_it_runs(void)
{
    end e = { 0 };

    opened(&e, 0);
    e.answer = 2;
    UNIT_EQUAL(fed(&e, 3, true), TRP_OK);
    /* the first answer waits for a, which is inside its event, and so on down to c */
    script_is("c^3 b^10 a^10 ^out10 av2 bv2 b^11 a^11 ^out11 av2 bv2 b^12 a^12 ^out12 av2 bv2 "
              "cv2 vout2 cv2 vout2 cv2 vout2");
    e.answer = 0;
    e.echo = 2;
    UNIT_EQUAL(fed(&e, 1, false), TRP_OK);
    script_is("av1 bv1 cv1 vout1 c^2 b^2 a^2 ^out2");
    closed(&e);
}

/* PIPE-07: without functions at its ends the results are fetched */
static void
results_wait_to_be_taken_where_there_is_no_sink(void)
{
    trp_pipeline *p = NULL;
    trp_item item;

    script[0] = 0;
    UNIT_REQUIRE(trp_pipeline_new(abc, 4, NULL, &p) == TRP_OK);
    item = number(3);
    UNIT_EQUAL(trp_pipeline_command(p, &item), TRP_OK);
    item = number(4);
    UNIT_EQUAL(trp_pipeline_command(p, &item), TRP_OK);
    UNIT_TRUE(trp_pipeline_next_event(p, &item) && item.as.number == 1);
    trp_item_clear(&item);
    UNIT_FALSE(trp_pipeline_next_event(p, &item));
    UNIT_TRUE(trp_pipeline_next_command(p, &item) && item.as.number == 10);
    trp_item_clear(&item);
    UNIT_TRUE(trp_pipeline_next_command(p, &item) && item.as.number == 11);
    trp_item_clear(&item);
    trp_pipeline_free(p); /* the third was not taken */
    UNIT_EQUAL(numbers_alive, 0);
    script[0] = 0;
}

/* PIPE-02, PIPE-07: one error a run, which ends it; the pipeline stays */
static void
an_error_ends_the_run_and_not_the_pipeline(void)
{
    end e = { 0 };

    opened(&e, 0);
    UNIT_EQUAL(fed(&e, 5, true), TRP_EIO);
    UNIT_TEXT(trp_pipeline_reason(e.pipeline), "noting: input or output failed");
    UNIT_EQUAL(fed(&e, 6, false), TRP_EDATA);
    UNIT_TEXT(trp_pipeline_reason(e.pipeline), "noting: 6 is too many");
    script_is("c^5 av6");
    e.err = TRP_EAGAIN;
    UNIT_EQUAL(fed(&e, 3, true), TRP_EAGAIN); /* of the sink; two results are not made */
    UNIT_TEXT(trp_pipeline_reason(e.pipeline), "pipeline: full at the moment, try again");
    script_is("c^3 b^10 a^10 ^out10");
    e.err = TRP_OK;
    e.answer = 5; /* a fails at what waited for it; what waits behind is dropped */
    UNIT_EQUAL(fed(&e, 3, true), TRP_EIO);
    script_is("c^3 b^10 a^10 ^out10 av5");
    e.answer = 0;
    UNIT_EQUAL(fed(&e, 1, true), TRP_OK);
    UNIT_TEXT(trp_pipeline_reason(e.pipeline), "");
    script_is("c^1 b^1 a^1 ^out1");
    closed(&e);
}

/* PIPE-08 */
static void
management_reaches_every_stage_and_they_may_answer(void)
{
    trp_item order = trp_item_of(&order_type);
    end e = { 0 };

    opened(&e, 0);
    UNIT_EQUAL(trp_pipeline_manage(e.pipeline, &order), TRP_OK);
    script_is("a!0 b!0 c!0");
    order.as.number = 9;
    UNIT_EQUAL(trp_pipeline_manage(e.pipeline, &order), TRP_OK);
    script_is("a!9 ^out20 bv21 cv21 vout21 b!9 a^20 ^out20 cv21 vout21 c!9 b^20 a^20 ^out20 "
              "vout21");
    order.as.number = 8;
    UNIT_EQUAL(trp_pipeline_manage(e.pipeline, &order), TRP_EIO);
    script_is("a!8");
    order.type = NULL;
    UNIT_EQUAL(trp_pipeline_manage(e.pipeline, &order), TRP_EINVAL);
    UNIT_EQUAL(trp_pipeline_manage(NULL, &order), TRP_EINVAL);
    closed(&e);
}

/* PIPE-05: a stage says what it needs; the context is that of one pipeline */
static trp_err
needy_command(trp_port *port, void *state, trp_item *item)
{
    (void)state;
    item->as.number = *(uint64_t *)trp_port_context(port) + (uint64_t)trp_port_byte_order(port);
    return trp_port_emit_command(port, item);
}

/* PIPE-05 */
static void
a_stage_gets_the_context_that_it_needs_or_there_is_no_pipeline(void)
{
    static const trp_stage needy = { .size = sizeof(trp_stage),
                                     .name = "needy",
                                     .needs = TRP_STAGE_NEEDS_BYTE_ORDER | TRP_STAGE_NEEDS_CONTEXT,
                                     .command = needy_command };
    static const trp_stage_use use[] = { { &needy, NULL } };
    trp_pipeline_options options = TRP_PIPELINE_OPTIONS_INIT;
    trp_pipeline *p = NULL;
    uint64_t forty = 40;
    trp_item item;

    UNIT_EQUAL(trp_pipeline_new(use, 1, &options, &p), TRP_EINVAL);
    options.order = TRP_LITTLE_ENDIAN;
    UNIT_EQUAL(trp_pipeline_new(use, 1, &options, &p), TRP_EINVAL);
    options.context = &forty;
    UNIT_REQUIRE(trp_pipeline_new(use, 1, &options, &p) == TRP_OK);
    item = number(1);
    UNIT_EQUAL(trp_pipeline_command(p, &item), TRP_OK);
    UNIT_TRUE(trp_pipeline_next_command(p, &item) && item.as.number == 42);
    trp_item_clear(&item);
    trp_pipeline_free(p);
}

/* PIPE-09 */
static void
the_shortest_interval_of_ticks_is_that_of_the_pipeline(void)
{
    trp_ticks_options slow = TRP_TICKS_OPTIONS_INIT, fast = TRP_TICKS_OPTIONS_INIT;
    const trp_stage_use use[] = { { &trp_ticks_stage, &slow },
                                  { &noting, "n" },
                                  { &trp_ticks_stage, &fast } };
    trp_item tick = trp_item_of(&trp_item_tick);
    trp_pipeline *p = NULL;

    UNIT_EQUAL(trp_pipeline_new(use, 3, NULL, &p), TRP_EINVAL); /* no interval */
    UNIT_EQUAL(noters_open, 0);
    slow.interval_ms = 1000;
    fast.interval_ms = 250;
    UNIT_REQUIRE(trp_pipeline_new(use, 3, NULL, &p) == TRP_OK);
    UNIT_EQUAL(trp_pipeline_tick_ms(p), 250);
    tick.as.number = 77;
    script[0] = 0;
    UNIT_EQUAL(trp_pipeline_manage(p, &tick), TRP_OK);
    script_is("n!77");
    trp_pipeline_free(p);
    UNIT_REQUIRE(trp_pipeline_new(abc, 4, NULL, &p) == TRP_OK);
    UNIT_EQUAL(trp_pipeline_tick_ms(p), 0);
    trp_pipeline_free(p);
}

/* The bound, and one past it. */
static void
only_so_many_results_wait(void)
{
    trp_pipeline_options options = TRP_PIPELINE_OPTIONS_INIT;
    trp_pipeline *p = NULL;
    trp_item item;

    options.waiting_max = 3;
    script[0] = 0;
    UNIT_REQUIRE(trp_pipeline_new(abc, 4, &options, &p) == TRP_OK);
    item = number(3);
    UNIT_EQUAL(trp_pipeline_command(p, &item), TRP_OK); /* three wait to be taken */
    item = number(1);
    UNIT_EQUAL(trp_pipeline_command(p, &item), TRP_ELIMIT);
    trp_item_clear(&item);
    UNIT_TRUE(trp_pipeline_next_command(p, &item));
    trp_item_clear(&item);
    item = number(1);
    UNIT_EQUAL(trp_pipeline_command(p, &item), TRP_OK);
    trp_pipeline_free(p);
    UNIT_EQUAL(numbers_alive, 0);
    script[0] = 0;
}

static void
without_memory_a_pipeline_is_not_made_and_nothing_is_lost(void)
{
    trp_pipeline *p = NULL;
    end e = { 0 };

    for (long n = 0; n < 5; n++) { /* the pipeline and a state a stage */
        trpi_alloc_fail_here_after(n);
        UNIT_EQUAL(trp_pipeline_new(abc, 4, NULL, &p), TRP_ENOMEM);
        trpi_alloc_fail_here_after(-1);
        UNIT_EQUAL(noters_open, 0);
    }
    opened(&e, 0);
    e.answer = 1;
    trpi_alloc_fail_here_after(0);
    UNIT_EQUAL(fed(&e, 1, true), TRP_ENOMEM); /* the answer would have to wait */
    trpi_alloc_fail_here_after(-1);
    closed(&e);
}

/* As trp_fail() does in a sink: the run is left, and the pipeline freed. */
static jmp_buf out_of_the_run;

static trp_err
end_jump(void *arg, trp_item *item)
{
    end *e = arg;
    trp_item command = number(1);

    (void)item;
    UNIT_EQUAL(trp_pipeline_command(e->pipeline, &command), TRP_OK); /* waits for a */
    longjmp(out_of_the_run, 1);
}

static void
a_pipeline_can_be_freed_after_its_run_was_left_by_a_jump(void)
{
    static end e;
    trp_pipeline_options options = TRP_PIPELINE_OPTIONS_INIT;

    options.on_event = end_jump;
    options.arg = &e;
    script[0] = 0;
    UNIT_REQUIRE(trp_pipeline_new(abc, 4, &options, &e.pipeline) == TRP_OK);
    if (setjmp(out_of_the_run) == 0) {
        (void)fed(&e, 1, true);
        UNIT_FAIL("the sink has returned");
    }
    numbers_alive--; /* that of fed(), whose frame is gone */
    closed(&e);
    script[0] = 0;
}

static void
what_cannot_be_a_pipeline_is_refused(void)
{
    static const trp_stage too_large = { .size = sizeof(trp_stage),
                                         .name = "large",
                                         .state_bytes = TRP_STAGE_STATE_BYTES_MAX + 1 };
    static const trp_stage nameless = { .size = sizeof(trp_stage) };
    trp_pipeline_options options = TRP_PIPELINE_OPTIONS_INIT;
    trp_stage_use many[TRP_STAGES_MAX + 1];
    const trp_stage_use large[] = { { &too_large, NULL } }, none[] = { { NULL, NULL } };
    const trp_stage_use bad[] = { { &noting, "a" }, { &noting, "bad" }, { &noting, "c" } };
    const trp_stage_use unnamed[] = { { &nameless, NULL } };
    trp_item item = trp_item_of(NULL);
    trp_pipeline *p = NULL;

    for (size_t i = 0; i <= TRP_STAGES_MAX; i++) {
        many[i] = (trp_stage_use){ &plain, NULL };
    }
    UNIT_EQUAL(trp_pipeline_new(many, TRP_STAGES_MAX + 1, NULL, &p), TRP_ELIMIT);
    UNIT_EQUAL(trp_pipeline_new(many, 0, NULL, &p), TRP_EINVAL);
    UNIT_EQUAL(trp_pipeline_new(NULL, 1, NULL, &p), TRP_EINVAL);
    UNIT_EQUAL(trp_pipeline_new(large, 1, NULL, &p), TRP_ELIMIT);
    UNIT_EQUAL(trp_pipeline_new(none, 1, NULL, &p), TRP_EINVAL);
    UNIT_EQUAL(trp_pipeline_new(unnamed, 1, NULL, &p), TRP_EINVAL);
    UNIT_EQUAL(trp_pipeline_new(bad, 3, NULL, &p), TRP_EIO);
    UNIT_EQUAL(noters_open, 0);
    options.order = (trp_byte_order)3;
    UNIT_EQUAL(trp_pipeline_new(many, 1, &options, &p), TRP_EINVAL);
    UNIT_REQUIRE(trp_pipeline_new(many, TRP_STAGES_MAX, NULL, &p) == TRP_OK);
    UNIT_EQUAL(trp_pipeline_command(p, &item), TRP_EINVAL);
    UNIT_EQUAL(trp_pipeline_event(NULL, &item), TRP_EINVAL);
    trp_pipeline_free(p);
    trp_pipeline_free(NULL);
}

UNIT_BEGIN("pipeline")
UNIT(commands_go_down_and_events_up_through_all_stages)
UNIT(one_input_may_have_many_results_that_take_no_memory)
UNIT(a_stage_is_not_entered_while_it_runs)
UNIT(results_wait_to_be_taken_where_there_is_no_sink)
UNIT(an_error_ends_the_run_and_not_the_pipeline)
UNIT(management_reaches_every_stage_and_they_may_answer)
UNIT(a_stage_gets_the_context_that_it_needs_or_there_is_no_pipeline)
UNIT(the_shortest_interval_of_ticks_is_that_of_the_pipeline)
UNIT(only_so_many_results_wait)
UNIT(without_memory_a_pipeline_is_not_made_and_nothing_is_lost)
UNIT(a_pipeline_can_be_freed_after_its_run_was_left_by_a_jump)
UNIT(what_cannot_be_a_pipeline_is_refused)
UNIT_END

/* gather_test.c - the first answer of many: all at once, or one after the other. */
#include "tests/unit/pattern/crew.h"

static _Atomic int slow_asked; /* routees that were asked so far; the one of this number answers */
static _Atomic int answers_from;

/* Answers its own name when it is at least the answers_from-th that was asked. */
static trp_err
slow_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    char path[256];

    (void)state;
    (void)msg;
    if (atomic_fetch_add(&slow_asked, 1) + 1 >= atomic_load(&answers_from)) {
        trp_reply_text(ctx, stage_name(trp_ctx_system(ctx), trp_self(ctx), path, sizeof path));
    }
    return TRP_OK;
}
static const trp_behaviour slow = TRP_BEHAVIOUR_INIT("slow", char, slow_receive);

static trp_ref
open_router(trp_system *system, const char *logic, uint32_t within_ms, uint32_t interval_ms)
{
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;

    atomic_store(&slow_asked, 0);
    options.logic = logic;
    options.instances = 5;
    options.within_ms = within_ms;
    options.interval_ms = interval_ms;
    UNIT_EQUAL(trp_system_router_spawn(system, &slow, NULL, NULL, &options, &ref), TRP_OK);
    return ref;
}

/* ROUTE-11, ROUTE-25: all are asked, by an intermediary in the asker's place; the asker gets one
 * answer, from a routee; the others are dead letters. */
static void
scatter_asks_all_and_the_first_answer_wins(void)
{
    trp_system *system = stage_open();
    trp_ref router = open_router(system, "scatter-gather", 0, 0), refs[CREW_MAX];
    trp_system_stats stats = { .size = sizeof stats };
    char answer[64], path[128];
    bool one_of_them = false;

    atomic_store(&answers_from, 1);
    UNIT_EQUAL(stage_ask(system, router, "question", answer, sizeof answer), TRP_OK);
    UNIT_WAIT(atomic_load(&slow_asked) == 5, 5000);
    UNIT_EQUAL(crew_of(system, router, refs), 5);
    for (int i = 0; i < 5; i++) {
        one_of_them |= strcmp(answer, stage_name(system, refs[i], path, sizeof path)) == 0;
    }
    UNIT_TRUE(one_of_them);
    UNIT_WAIT((trp_system_stats_get(system, &stats),
               stats.dead_letters[TRP_DEAD_STALE] + stats.dead_letters[TRP_DEAD_STOPPED] == 4),
              5000);
    stage_close(system);
}

/* ROUTE-11: nobody answers: a failure after `within`, not before, and not the asker's own timeout.
 */
static void
no_answer_within_is_a_timeout_for_the_asker(void)
{
    static const char *const logics[] = { "scatter-gather", "tail-chopping" };
    trp_system *system = stage_open();

    atomic_store(&answers_from, 100);
    for (int i = 0; i < 2; i++) {
        trp_ref router = open_router(system, logics[i], 60, 5);
        uint64_t before = unit_now_ms();
        trp_msg *reply = NULL;

        UNIT_EQUAL(trp_system_ask(system, router, &trp_string_type, "question", 8, 120000, &reply),
                   TRP_ETIMEDOUT);
        UNIT_TRUE(unit_now_ms() - before >= 59);
        UNIT_TRUE(unit_now_ms() - before < 100000); /* the asker would wait for two minutes */
        if (i == 0) {
            UNIT_WAIT(atomic_load(&slow_asked) == 5, 5000);
        }
    }
    stage_close(system);
}

/* Tail-chopping: a routee that answers at once is the only one asked; else one more is asked each
 * interval, each once, until one answers. */
static void
tail_chopping_asks_one_after_the_other(void)
{
    trp_system *system = stage_open();
    trp_ref router = open_router(system, "tail-chopping", 30000, 20000);
    char answer[64];

    atomic_store(&answers_from, 1);
    UNIT_EQUAL(stage_ask(system, router, "question", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(atomic_load(&slow_asked), 1);
    router = open_router(system, "tail-chopping", 30000, 5);
    atomic_store(&answers_from, 4);
    UNIT_EQUAL(stage_ask(system, router, "question", answer, sizeof answer), TRP_OK);
    UNIT_EQUAL(trp_system_graceful_stop(system, router, 60000), TRP_OK); /* the fifth, too */
    UNIT_TRUE(atomic_load(&slow_asked) >= 4 && atomic_load(&slow_asked) <= 5);
    router = open_router(system, "tail-chopping", 600000, 5);
    atomic_store(&answers_from, 100);
    stage_tell(system, router, "question"); /* nobody answers: all are asked, and each once */
    UNIT_WAIT(atomic_load(&slow_asked) == 5, 5000);
    stage_close(system);
    UNIT_EQUAL(atomic_load(&slow_asked), 5);
}

/* Questions that wait when the system ends are freed (the address sanitizer checks). */
static void
questions_that_wait_end_with_the_system(void)
{
    trp_system *system = stage_open();
    trp_ref scatter = open_router(system, "scatter-gather", 60000, 0);
    trp_ref chop = open_router(system, "tail-chopping", 60000, 30000);

    atomic_store(&answers_from, 100);
    for (int i = 0; i < 50; i++) {
        stage_tell(system, scatter, "question");
        stage_tell(system, chop, "question");
    }
    UNIT_WAIT(atomic_load(&slow_asked) == 300, 5000);
    stage_close(system);
}

UNIT_BEGIN("gather")
UNIT(scatter_asks_all_and_the_first_answer_wins)
UNIT(no_answer_within_is_a_timeout_for_the_asker)
UNIT(tail_chopping_asks_one_after_the_other)
UNIT(questions_that_wait_end_with_the_system)
UNIT_END

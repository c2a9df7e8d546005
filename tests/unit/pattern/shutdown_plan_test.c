/* shutdown_plan_test.c - phases of a coordinated shutdown: order, deadlines, configuration. */
#include "pattern/pattern.h"
#include "pattern/shutdown_plan.h"
#include "tests/unit/unit.h"

static trpi_shutdown_plan plan;

static uint64_t
task_add(const char *phase, const char *name)
{
    trpi_shutdown_task *task = NULL;
    UNIT_REQUIRE(trpi_shutdown_task_add(&plan, trpi_shutdown_phase_find(&plan, phase), name,
                                        &task) == TRP_OK);
    return task->id;
}

static uint64_t
task_started(void)
{
    uint64_t id = 0;
    uint32_t phase;
    return trpi_shutdown_plan_take(&plan, &id, &phase) == TRPI_SHUTDOWN_START ? id : 0;
}

static bool
phase_reported(const char *text)
{
    char buffer[512] = "";
    uint64_t id;
    uint32_t phase;
    if (trpi_shutdown_plan_take(&plan, &id, &phase) != TRPI_SHUTDOWN_REPORT) {
        return false;
    }
    (void)trpi_shutdown_phase_text(&plan, phase, buffer, sizeof buffer);
    UNIT_TEXT(buffer, text);
    return true;
}

static bool
plan_ended(void)
{
    uint64_t id;
    uint32_t phase;
    return trpi_shutdown_plan_take(&plan, &id, &phase) == TRPI_SHUTDOWN_END &&
           trpi_shutdown_plan_take(&plan, &id, &phase) == TRPI_SHUTDOWN_NOTHING;
}

static void
tasks_run_phase_by_phase_and_those_of_one_phase_together(void)
{
    trpi_shutdown_plan_init(&plan, 5000, 20000);
    uint64_t last = task_add(TRP_SHUTDOWN_BEFORE_ACTOR_SYSTEM_TERMINATE, "last");
    uint64_t a = task_add(TRP_SHUTDOWN_SERVICE_UNBIND, "a");
    uint64_t b = task_add(TRP_SHUTDOWN_SERVICE_UNBIND, "b");
    UNIT_TRUE(task_started() == 0);
    UNIT_TRUE(trpi_shutdown_plan_run(&plan, 1000, 0));
    UNIT_TRUE(!trpi_shutdown_plan_run(&plan, 1001, 0));
    UNIT_EQUAL(task_started(), a);
    UNIT_EQUAL(task_started(), b);
    UNIT_TRUE(task_started() == 0);
    trpi_shutdown_plan_done(&plan, 1010, a, TRP_OK);
    trpi_shutdown_plan_done(&plan, 1010, a, TRP_OK); /* once more changes nothing */
    UNIT_TRUE(task_started() == 0);
    trpi_shutdown_plan_done(&plan, 1030, b, TRP_OK);
    UNIT_TRUE(phase_reported("service-unbind done after 30 ms"));
    UNIT_EQUAL(task_started(), last);
    trpi_shutdown_plan_done(&plan, 1030, last, TRP_EIO);
    UNIT_TRUE(
        phase_reported("before-actor-system-terminate failed after 0 ms, failed: last (input or "
                       "output failed)"));
    UNIT_TRUE(plan_ended());
    UNIT_EQUAL(trpi_shutdown_plan_due_ms(&plan), UINT64_MAX);
    trpi_shutdown_plan_fini(&plan);
}

static void
without_tasks_it_is_over_at_once(void)
{
    trpi_shutdown_plan_init(&plan, 5000, 20000);
    UNIT_TRUE(trpi_shutdown_plan_run(&plan, 1000, 0));
    UNIT_TRUE(plan_ended());
    trpi_shutdown_plan_fini(&plan);
}

/* shutdown-plan-P2: at the deadline, not one millisecond before */
static void
a_phase_that_overruns_names_what_it_waited_for_and_the_next_one_begins(void)
{
    trpi_shutdown_plan_init(&plan, 5000, 20000);
    uint64_t a = task_add(TRP_SHUTDOWN_SERVICE_STOP, "fast");
    uint64_t b = task_add(TRP_SHUTDOWN_SERVICE_STOP, "slow");
    (void)task_add(TRP_SHUTDOWN_SERVICE_STOP, "slower");
    uint64_t next = task_add(TRP_SHUTDOWN_CLUSTER_LEAVE, "leave");
    (void)trpi_shutdown_plan_run(&plan, 1000, 0);
    UNIT_EQUAL(trpi_shutdown_plan_due_ms(&plan), 6000);
    UNIT_EQUAL(task_started(), a);
    UNIT_EQUAL(task_started(), b);
    (void)task_started();
    trpi_shutdown_plan_done(&plan, 1001, a, TRP_OK);
    trpi_shutdown_plan_tick(&plan, 5999);
    UNIT_TRUE(task_started() == 0);
    trpi_shutdown_plan_tick(&plan, 6000);
    UNIT_TRUE(phase_reported("service-stop late after 5000 ms, waited for: slow, slower"));
    trpi_shutdown_plan_done(&plan, 6001, b, TRP_OK); /* too late to matter */
    UNIT_EQUAL(task_started(), next);
    UNIT_EQUAL(trpi_shutdown_plan_due_ms(&plan), 26000); /* as long as leaving may take */
    trpi_shutdown_plan_done(&plan, 7000, next, TRP_OK);
    UNIT_TRUE(phase_reported("cluster-leave done after 1000 ms"));
    UNIT_TRUE(plan_ended());
    trpi_shutdown_plan_fini(&plan);
}

static void
a_crucial_phase_that_fails_ends_it_all(void)
{
    trpi_shutdown_plan_init(&plan, 5000, 20000);
    uint64_t a = task_add(TRP_SHUTDOWN_SERVICE_STOP, "a");
    trpi_shutdown_task *task;
    (void)task_add(TRP_SHUTDOWN_CLUSTER_LEAVE, "leave");
    plan.phases[trpi_shutdown_phase_find(&plan, TRP_SHUTDOWN_SERVICE_STOP)].is_crucial = true;
    (void)trpi_shutdown_plan_run(&plan, 1000, 0);
    UNIT_EQUAL(task_started(), a);
    trpi_shutdown_plan_done(&plan, 1000, a, TRP_EFAILED);
    UNIT_TRUE(phase_reported("service-stop failed after 0 ms, failed: a (actor failed)"));
    UNIT_TRUE(plan_ended()); /* shutdown-plan-P4 */
    UNIT_EQUAL(trpi_shutdown_task_add(&plan, 11, "late", &task), TRP_ESTATE);
    trpi_shutdown_plan_fini(&plan);
}

static void
tasks_are_added_to_phases_that_have_not_begun_and_taken_away_from_them(void)
{
    trpi_shutdown_plan_init(&plan, 5000, 20000);
    trpi_shutdown_task *task;
    uint64_t gone = task_add(TRP_SHUTDOWN_SERVICE_UNBIND, "gone");
    uint64_t here = task_add(TRP_SHUTDOWN_SERVICE_UNBIND, "here");
    UNIT_TRUE(trpi_shutdown_task_remove(&plan, gone));
    UNIT_TRUE(!trpi_shutdown_task_remove(&plan, gone));
    (void)trpi_shutdown_plan_run(&plan, 1000,
                                 trpi_shutdown_phase_find(&plan, TRP_SHUTDOWN_SERVICE_UNBIND));
    UNIT_EQUAL(task_started(), here);
    UNIT_TRUE(!trpi_shutdown_task_remove(&plan, here));
    UNIT_EQUAL(trpi_shutdown_task_add(&plan, 0, "passed by", &task), TRP_ESTATE);
    UNIT_EQUAL(trpi_shutdown_task_add(&plan, 1, "runs", &task), TRP_ESTATE);
    uint64_t added = task_add(TRP_SHUTDOWN_SERVICE_REQUESTS_DONE, "in time");
    trpi_shutdown_plan_done(&plan, 1001, here, TRP_OK);
    UNIT_TRUE(phase_reported("service-unbind done after 1 ms"));
    UNIT_EQUAL(task_started(), added);
    trpi_shutdown_plan_fini(&plan);
}

static void
there_are_so_many_tasks_and_phases_and_not_one_more(void)
{
    char name[16];
    trpi_shutdown_task *task;
    trpi_shutdown_plan_init(&plan, 5000, 20000);
    for (uint32_t i = plan.phases_count; i < TRP_SHUTDOWN_PHASES_MAX; i++) {
        snprintf(name, sizeof name, "phase-%u", i);
        UNIT_EQUAL(trpi_shutdown_phase_add(&plan, name, 1), TRP_OK);
    }
    UNIT_EQUAL(trpi_shutdown_phase_add(&plan, "too-many", 1), TRP_ELIMIT);
    UNIT_EQUAL(trpi_shutdown_phase_add(&plan, "service-stop", 1), TRP_EEXIST);
    for (uint32_t i = 0; i < TRP_SHUTDOWN_TASKS_MAX; i++) {
        UNIT_EQUAL(trpi_shutdown_task_add(&plan, i % TRP_SHUTDOWN_PHASES_MAX, "x", &task), TRP_OK);
    }
    UNIT_EQUAL(trpi_shutdown_task_add(&plan, 0, "x", &task), TRP_ELIMIT);
    trpi_shutdown_plan_fini(&plan);
}

/* ---- the configuration ----------------------------------------------------------------------- */

/* want "": it is right; the plan is left for the caller then. */
static void
config_reads(const char *text, const char *want)
{
    trp_config *config = NULL;
    trp_config_error error = { "" };
    UNIT_REQUIRE(trp_config_parse_text("x.conf", text, &config, &error) == TRP_OK);
    trp_err err = trpi_shutdown_plan_read(&plan, config, &error);
    UNIT_EQUAL(err, want[0] == '\0' ? TRP_OK : TRP_ECONFIG);
    UNIT_TEXT(error.text, want);
    trp_config_unref(config);
}

static void
phases_of_the_configuration_find_their_place(void)
{
    config_reads(
        "cluster { leave-timeout = 7s }\n"
        "coordinated-shutdown { default-phase-timeout = 2s\n"
        "  phases \"drain\" { depends-on = { \"service-stop\" } timeout = 3s recover = off }\n"
        "  phases \"before-cluster-shutdown\" { depends-on = { drain } enabled = off } }\n",
        "");
    uint32_t drain = trpi_shutdown_phase_find(&plan, "drain");
    UNIT_REQUIRE(drain != TRPI_SHUTDOWN_NONE);
    UNIT_EQUAL(plan.phases_count, 13);
    UNIT_EQUAL(plan.order[3], 3);
    UNIT_EQUAL(plan.order[4], drain);
    UNIT_TEXT(plan.phases[plan.order[5]].name, "before-cluster-shutdown");
    UNIT_TRUE(plan.phases[plan.order[5]].off);
    UNIT_EQUAL(plan.phases[drain].timeout_ms, 3000);
    UNIT_TRUE(plan.phases[drain].is_crucial);
    UNIT_EQUAL(plan.phases[0].timeout_ms, 2000);
    UNIT_EQUAL(
        plan.phases[trpi_shutdown_phase_find(&plan, TRP_SHUTDOWN_CLUSTER_EXITING)].timeout_ms,
        7000);
    UNIT_EQUAL(plan.phases[11].timeout_ms, 10000);
    uint64_t off = task_add(TRP_SHUTDOWN_BEFORE_CLUSTER_SHUTDOWN, "off");
    (void)trpi_shutdown_plan_run(&plan, 1, 0);
    UNIT_TRUE(phase_reported("before-cluster-shutdown skipped: it is switched off"));
    UNIT_TRUE(plan_ended() && off != 0);
    trpi_shutdown_plan_fini(&plan);
}

static void
misspelt_phases_and_circles_are_refused_with_what_to_do(void)
{
    config_reads("coordinated-shutdown { phases \"cluster-exitin\" { timeout = 1s } }",
                 "x.conf:1: coordinated-shutdown.phases.cluster-exitin.timeout: there is no phase "
                 "'cluster-exitin'; did you mean 'cluster-exiting'? (a new one says depends-on)");
    config_reads("coordinated-shutdown { phases \"drain\" { depends-on = { \"service-stp\" } } }",
                 "x.conf:1: coordinated-shutdown.phases.drain.depends-on: there is no phase "
                 "'service-stp'; did you mean 'service-stop'?");
    config_reads(
        "coordinated-shutdown { phases \"drain\" { depends-on = { \"cluster-leave\" } }\n"
        "  phases \"service-stop\" { depends-on = { drain } } }",
        "coordinated-shutdown.phases: they wait for each other in a circle: service-stop -> "
        "drain -> cluster-leave -> cluster-sharding-shutdown-region -> before-cluster-shutdown "
        "-> service-stop");
}

UNIT_BEGIN("shutdown_plan")
UNIT(tasks_run_phase_by_phase_and_those_of_one_phase_together)
UNIT(without_tasks_it_is_over_at_once)
UNIT(a_phase_that_overruns_names_what_it_waited_for_and_the_next_one_begins)
UNIT(a_crucial_phase_that_fails_ends_it_all)
UNIT(tasks_are_added_to_phases_that_have_not_begun_and_taken_away_from_them)
UNIT(there_are_so_many_tasks_and_phases_and_not_one_more)
UNIT(phases_of_the_configuration_find_their_place)
UNIT(misspelt_phases_and_circles_are_refused_with_what_to_do)
UNIT_END

/* shutdown.c - coordinated shutdown of a system: tasks are added, run by an actor, and done.
 *
 * Shape.   any thread --add, run, done--> plan (shutdown_plan.c), under the lock
 *              `--poke--> actor /system/shutdown --take--> starts tasks, reports phases, ends
 *                               `--start--> actor /system/shutdown-tasks, on "default", calls the
 *                                           program's tasks
 *          An extension of the system: made when it is first asked for.
 * Must hold.
 *   shutdown-H1  A task is called without the lock: it may call back here.
 *   shutdown-H2  Each change of the plan pokes the actor, so that nothing waits for the next
 *       deadline.
 *   shutdown-H3  The plan and its deadlines run on the "system" dispatcher, the program's code does
 *       not: even when the default one is blocked, each phase is over at its deadline.
 * Threads. any; the lock is a leaf.
 * Tests.   tests/unit/pattern/shutdown_test.c
 */
#include <troupe/shutdown.h>

#include <pthread.h>
#include <string.h>

#include <troupe/extension.h>
#include <troupe/log.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "base/mutex.h"
#include "pattern/pattern.h"
#include "pattern/shutdown_plan.h"

#define LATER_MS_MAX 3600000u /* of one timer */

typedef struct shutdown {
    trp_system *system;
    trp_ref actor;
    trp_ref runner;       /* calls the program's tasks */
    pthread_mutex_t lock; /* guards the rest */
    trpi_shutdown_plan plan;
    trp_shutdown_reason reason;
    void (*over)(void *arg); /* NULL: the system is stopped */
    void *over_arg;
} shutdown;

typedef struct shutdown_state {
    shutdown *s;
} shutdown_state;

static trp_type poke_type = { "shutdown.poke", 0, 0xff2a, TRP_TYPE_LOCAL, NULL, 0, 0 };
static trp_type start_type = {
    "shutdown.start", sizeof(uint64_t), 0xff2b, TRP_TYPE_LOCAL, NULL, 0, 0
};
static trp_type *const shutdown_types[] = { &poke_type, &start_type };
static const trp_protocol shutdown_protocol = { "shutdown", shutdown_types, 2 };

static uint64_t
now_ms(const shutdown *s)
{
    return trpi_world_mono_ns(trpi_system_world(s->system)) / 1000000;
}

static void
actor_poke(shutdown *s)
{
    trp_system_tell(s->system, s->actor, &poke_type, NULL, 0);
}

/* ---- the actor ------------------------------------------------------------------------------- */

static void
task_start(trp_ctx *ctx, shutdown *s, const trpi_shutdown_task *task)
{
    if (task->fn != NULL && task->is_own) {
        task->fn(task->arg, task->id);
        return;
    }
    if (task->fn != NULL) {
        trp_tell(ctx, s->runner, &start_type, &task->id, sizeof task->id); /* shutdown-H3 */
        return;
    }
    trp_err err = trp_watch(ctx, task->actor);
    if (err != TRP_OK) {
        trp_shutdown_done(s->system, task->id, err);
        return;
    }
    trp_tell(ctx, task->actor, &trp_poison_pill_type, NULL, 0);
}

static void
phase_report(const shutdown *s, trpi_shutdown_state state, bool cut, const char *text)
{
    bool good = state == TRPI_SHUTDOWN_IS_DONE || state == TRPI_SHUTDOWN_SKIPPED;
    trpi_log(s->system, good ? TRP_LOG_DEBUG : TRP_LOG_WARNING, "shutdown", "phase %s%s", text,
             good  ? ""
             : cut ? "; its recover is off, the phases behind it are left out"
                   : "; going on");
}

static void
shutdown_end(shutdown *s)
{
    pthread_mutex_lock(&s->lock);
    void (*over)(void *arg) = s->over;
    void *arg = s->over_arg;
    pthread_mutex_unlock(&s->lock);
    if (over != NULL) {
        over(arg);
    } else {
        trp_system_shutdown(s->system);
    }
}

/* Carry out the next effect of the plan. False: there is none now. */
static bool
effect_run(trp_ctx *ctx, shutdown *s)
{
    char text[512];
    trpi_shutdown_task task = { .id = 0 };
    trpi_shutdown_state state = TRPI_SHUTDOWN_WAITS;
    uint32_t phase;
    uint64_t id;
    pthread_mutex_lock(&s->lock);
    trpi_shutdown_plan_tick(&s->plan, now_ms(s));
    trpi_shutdown_effect effect = trpi_shutdown_plan_take(&s->plan, &id, &phase);
    bool cut = s->plan.is_cut;
    if (effect == TRPI_SHUTDOWN_START) {
        task = *trpi_shutdown_task_find(&s->plan, id);
    } else if (effect == TRPI_SHUTDOWN_REPORT) {
        state = s->plan.phases[phase].state;
        (void)trpi_shutdown_phase_text(&s->plan, phase, text, sizeof text);
    }
    pthread_mutex_unlock(&s->lock);
    switch (effect) {
    case TRPI_SHUTDOWN_START:
        task_start(ctx, s, &task); /* shutdown-H1 */
        break;
    case TRPI_SHUTDOWN_REPORT:
        phase_report(s, state, cut, text);
        break;
    case TRPI_SHUTDOWN_END:
        shutdown_end(s);
        break;
    case TRPI_SHUTDOWN_NOTHING:
        return false;
    }
    return true;
}

static void
timer_set(trp_ctx *ctx, shutdown *s)
{
    pthread_mutex_lock(&s->lock);
    uint64_t due_ms = trpi_shutdown_plan_due_ms(&s->plan);
    pthread_mutex_unlock(&s->lock);
    uint64_t now = now_ms(s);
    if (due_ms == UINT64_MAX) {
        trp_timer_cancel(ctx, 1);
        return;
    }
    uint64_t wait_ms = due_ms <= now ? 1 : due_ms - now;
    wait_ms = wait_ms < LATER_MS_MAX ? wait_ms : LATER_MS_MAX;
    trp_err err = trp_timer_once(ctx, 1, (uint32_t)wait_ms, &poke_type, NULL, 0);
    if (err != TRP_OK) {
        trp_fail(ctx, 0, "no timer: %s", trp_strerror(err));
    }
}

/* A task that waits for the end of an actor. */
static void
actor_ended(shutdown *s, trp_ref actor)
{
    pthread_mutex_lock(&s->lock);
    for (uint32_t i = 0; i < s->plan.tasks_count; i++) {
        const trpi_shutdown_task *task = &s->plan.tasks[i];
        if (task->fn == NULL && trp_ref_equal(task->actor, actor)) {
            trpi_shutdown_plan_done(&s->plan, now_ms(s), task->id, TRP_OK);
        }
    }
    pthread_mutex_unlock(&s->lock);
}

static trp_err
shutdown_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    shutdown *s = ((shutdown_state *)state)->s;
    if (trp_msg_is(msg, &trp_terminated_type)) {
        const trp_terminated *terminated = trp_msg_payload(msg);
        actor_ended(s, terminated->ref);
    } else if (!trp_msg_is(msg, &poke_type)) {
        trp_unhandled_msg(ctx, msg);
        return TRP_OK;
    }
    while (effect_run(ctx, s)) {
    }
    timer_set(ctx, s);
    return TRP_OK;
}

static trp_err
shutdown_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    memcpy(&((shutdown_state *)state)->s, trp_msg_payload(args), sizeof(shutdown *));
    trp_tell(ctx, trp_self(ctx), &poke_type, NULL, 0); /* after a restart there is no timer */
    return TRP_OK;
}

static const trp_behaviour shutdown_behaviour = { .size = sizeof(trp_behaviour),
                                                  .name = "shutdown",
                                                  .version = 1,
                                                  .state_bytes = sizeof(shutdown_state),
                                                  .receive = shutdown_receive,
                                                  .pre_start = shutdown_start };

/* ---- the actor that calls the program's tasks ------------------------------------------------ */

static trp_err
runner_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    shutdown *s = ((shutdown_state *)state)->s;
    if (!trp_msg_is(msg, &start_type)) {
        trp_unhandled_msg(ctx, msg);
        return TRP_OK;
    }
    uint64_t id;
    trpi_shutdown_task task = { .id = 0 };
    memcpy(&id, trp_msg_payload(msg), sizeof id);
    pthread_mutex_lock(&s->lock);
    const trpi_shutdown_task *found = trpi_shutdown_task_find(&s->plan, id);
    if (found != NULL && found->state == TRPI_TASK_RUNS) { /* else its phase is over */
        task = *found;
    }
    pthread_mutex_unlock(&s->lock);
    if (task.fn != NULL) {
        task.fn(task.arg, task.id); /* shutdown-H1 */
    }
    return TRP_OK;
}

static trp_err
runner_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    memcpy(&((shutdown_state *)state)->s, trp_msg_payload(args), sizeof(shutdown *));
    return TRP_OK;
}

static const trp_behaviour runner_behaviour = { .size = sizeof(trp_behaviour),
                                                .name = "shutdown-tasks",
                                                .version = 1,
                                                .state_bytes = sizeof(shutdown_state),
                                                .receive = runner_receive,
                                                .pre_start = runner_start };

/* ---- the extension --------------------------------------------------------------------------- */

static void
shutdown_release(void *instance)
{
    shutdown *s = instance;
    trpi_shutdown_plan_fini(&s->plan);
    trpi_mutex_destroy(&s->lock);
    trpi_free(s);
}

static trp_err
shutdown_create(trp_system *system, void *arg, void **ret_instance)
{
    trp_config_error error = { "" };
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    shutdown *s = trpi_alloc(sizeof *s);
    (void)arg;
    if (s == NULL) {
        return TRP_ENOMEM;
    }
    s->system = system;
    pthread_mutex_init(&s->lock, NULL);
    trp_err err = trpi_shutdown_plan_read(&s->plan, trpi_system_config(system), &error);
    if (err != TRP_OK) {
        trpi_log(system, TRP_LOG_ERROR, "shutdown", "%s", error.text);
    }
    spawn.name = runner_behaviour.name;
    spawn.dispatcher = "default"; /* code of the program: it must not delay the cluster */
    spawn.args_type = &trp_bytes_type;
    spawn.args = &s;
    spawn.args_bytes = sizeof s;
    err = err == TRP_OK ? trp_protocol_register(&shutdown_protocol) : err;
    err = err == TRP_OK ? trpi_system_spawn_internal(system, &runner_behaviour, &spawn, &s->runner)
                        : err;
    spawn.name = shutdown_behaviour.name;
    spawn.dispatcher = NULL; /* shutdown-H3 */
    err = err == TRP_OK ? trpi_system_spawn_internal(system, &shutdown_behaviour, &spawn, &s->actor)
                        : err;
    if (err != TRP_OK) {
        shutdown_release(s);
        return err;
    }
    *ret_instance = s;
    return TRP_OK;
}

static const trp_extension shutdown_extension = { .size = sizeof(trp_extension),
                                                  .name = "shutdown",
                                                  .create = shutdown_create,
                                                  .release = shutdown_release };

static trp_err
shutdown_of(trp_system *system, shutdown **ret_shutdown)
{
    void *instance;
    trp_err err = trp_extension_get(system, &shutdown_extension, &instance);
    *ret_shutdown = err == TRP_OK ? instance : NULL;
    return err;
}

static shutdown *
shutdown_find(trp_system *system)
{
    return trp_extension_find(system, shutdown_extension.name);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static trp_err
task_add(trp_system *system, const char *phase, const trpi_shutdown_task *what, const char *name,
         uint64_t *ret_task)
{
    shutdown *s;
    trpi_shutdown_task *task;
    if (phase == NULL || name == NULL || name[0] == '\0' ||
        strlen(name) > TRP_SHUTDOWN_NAME_BYTES_MAX || ret_task == NULL) {
        return TRP_EINVAL;
    }
    trp_err err = shutdown_of(system, &s);
    if (err != TRP_OK) {
        return err;
    }
    pthread_mutex_lock(&s->lock);
    uint32_t index = trpi_shutdown_phase_find(&s->plan, phase);
    err = index == TRPI_SHUTDOWN_NONE ? TRP_ENOENT
                                      : trpi_shutdown_task_add(&s->plan, index, name, &task);
    if (err == TRP_OK) {
        task->fn = what->fn;
        task->arg = what->arg;
        task->actor = what->actor;
        task->is_own = what->is_own;
        *ret_task = task->id;
    }
    pthread_mutex_unlock(&s->lock);
    return err;
}

trp_err
trp_shutdown_add(trp_system *system, const char *phase, const char *name, trp_shutdown_fn fn,
                 void *arg, uint64_t *ret_task)
{
    trpi_shutdown_task what = { .fn = fn, .arg = arg };
    return fn == NULL ? TRP_EINVAL : task_add(system, phase, &what, name, ret_task);
}

trp_err
trp_shutdown_add_stop(trp_system *system, const char *phase, const char *name, trp_ref actor,
                      uint64_t *ret_task)
{
    trpi_shutdown_task what = { .actor = actor };
    return trp_ref_is_none(actor) ? TRP_EINVAL : task_add(system, phase, &what, name, ret_task);
}

int
trp_shutdown_remove(trp_system *system, uint64_t task)
{
    shutdown *s = shutdown_find(system);
    if (s == NULL) {
        return 0;
    }
    pthread_mutex_lock(&s->lock);
    bool removed = trpi_shutdown_task_remove(&s->plan, task);
    pthread_mutex_unlock(&s->lock);
    return removed;
}

void
trp_shutdown_done(trp_system *system, uint64_t task, trp_err err)
{
    shutdown *s = shutdown_find(system);
    if (s == NULL) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    trpi_shutdown_plan_done(&s->plan, now_ms(s), task, err);
    pthread_mutex_unlock(&s->lock);
    actor_poke(s); /* shutdown-H2 */
}

/* ---- running --------------------------------------------------------------------------------- */

trp_err
trp_shutdown_run(trp_system *system, trp_shutdown_reason reason, const char *from)
{
    shutdown *s;
    if (reason < TRP_SHUTDOWN_PROGRAM || reason > TRP_SHUTDOWN_CLUSTER) {
        return TRP_EINVAL;
    }
    trp_err err = shutdown_of(system, &s);
    if (err != TRP_OK) {
        return err;
    }
    pthread_mutex_lock(&s->lock);
    uint32_t first = from == NULL ? s->plan.order[0] : trpi_shutdown_phase_find(&s->plan, from);
    err = first == TRPI_SHUTDOWN_NONE ? TRP_ENOENT : TRP_OK;
    if (err == TRP_OK && s->reason == TRP_SHUTDOWN_NONE) {
        s->reason = reason; /* before the first task can ask for it */
        (void)trpi_shutdown_plan_run(&s->plan, now_ms(s), first);
    }
    pthread_mutex_unlock(&s->lock);
    actor_poke(s);
    return err;
}

trp_shutdown_reason
trp_shutdown_reason_get(trp_system *system)
{
    shutdown *s = shutdown_find(system);
    if (s == NULL) {
        return TRP_SHUTDOWN_NONE;
    }
    pthread_mutex_lock(&s->lock);
    trp_shutdown_reason reason = s->reason;
    pthread_mutex_unlock(&s->lock);
    return reason;
}

/* ---- for rooms above ------------------------------------------------------------------------- */

trp_err
trpi_shutdown_add_own(trp_system *system, const char *phase, const char *name, trp_shutdown_fn fn,
                      void *arg)
{
    uint64_t task;
    trpi_shutdown_task what = { .fn = fn, .arg = arg, .is_own = true };
    return task_add(system, phase, &what, name, &task);
}

trp_err
trpi_shutdown_over_set(trp_system *system, void (*fn)(void *arg), void *arg)
{
    shutdown *s;
    trp_err err = shutdown_of(system, &s);
    if (err == TRP_OK) {
        pthread_mutex_lock(&s->lock);
        s->over = fn;
        s->over_arg = arg;
        pthread_mutex_unlock(&s->lock);
    }
    return err;
}

bool
trpi_shutdown_report(trp_system *system, uint32_t index, char *text, size_t bytes)
{
    shutdown *s = shutdown_find(system);
    bool found = false;
    if (s == NULL) {
        return false;
    }
    pthread_mutex_lock(&s->lock);
    uint32_t over = s->plan.running ? s->plan.at : 0;
    for (uint32_t i = 0; i < over && !found; i++) {
        if (s->plan.phases[s->plan.order[i]].tasks > 0 && index-- == 0) {
            (void)trpi_shutdown_phase_text(&s->plan, s->plan.order[i], text, bytes);
            found = true;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

uint32_t
trpi_shutdown_timeout_ms(trp_system *system, const char *phase)
{
    shutdown *s = shutdown_find(system);
    uint32_t index = s == NULL ? TRPI_SHUTDOWN_NONE : trpi_shutdown_phase_find(&s->plan, phase);
    return index == TRPI_SHUTDOWN_NONE ? 0 : s->plan.phases[index].timeout_ms; /* never changes */
}

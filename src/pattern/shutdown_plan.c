/* shutdown_plan.c - see shutdown_plan.h.
 *
 * States.  of a phase: WAITS --begins--> RUNS --all ended--> IS_DONE, FAILED
 *                        `--nothing to do--> SKIPPED  `--deadline--> LATE
 * Must hold.
 *   shutdown-plan-P1  A phase begins when all that it depends on are over, and only one runs at a
 *       time.
 *   shutdown-plan-P2  Every phase is over at its deadline at the latest, so the shutdown ends.
 *   shutdown-plan-P3  A task is started once at most, and only while its phase runs.
 *   shutdown-plan-P4  After a crucial phase that failed or was late no task starts.
 * Limits.  TRP_SHUTDOWN_PHASES_MAX (bits of a word), TRP_SHUTDOWN_TASKS_MAX.
 * Tests.   tests/unit/pattern/shutdown_plan_test.c
 * Sources. decision 120; Akka's CoordinatedShutdown.
 */
#include "pattern/shutdown_plan.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"

_Static_assert(TRP_SHUTDOWN_PHASES_MAX == 64, "a bit each");

/* ---- the phases ------------------------------------------------------------------------------ */

uint32_t
trpi_shutdown_phase_find(const trpi_shutdown_plan *plan, const char *name)
{
    for (uint32_t i = 0; i < plan->phases_count; i++) {
        if (strcmp(plan->phases[i].name, name) == 0) {
            return i;
        }
    }
    return TRPI_SHUTDOWN_NONE;
}

trp_err
trpi_shutdown_phase_add(trpi_shutdown_plan *plan, const char *name, uint32_t timeout_ms)
{
    size_t bytes = strlen(name);
    if (bytes == 0 || bytes > TRP_SHUTDOWN_NAME_BYTES_MAX) {
        return TRP_EINVAL;
    }
    if (trpi_shutdown_phase_find(plan, name) != TRPI_SHUTDOWN_NONE) {
        return TRP_EEXIST;
    }
    if (plan->phases_count == TRP_SHUTDOWN_PHASES_MAX) {
        return TRP_ELIMIT;
    }
    trpi_shutdown_phase *phase = &plan->phases[plan->phases_count];
    memcpy(phase->name, name, bytes + 1);
    phase->timeout_ms = timeout_ms;
    plan->order[plan->phases_count] = plan->phases_count;
    plan->phases_count++;
    return TRP_OK;
}

void
trpi_shutdown_plan_init(trpi_shutdown_plan *plan, uint32_t default_ms, uint32_t leave_ms)
{
    enum { LEAVE = 1 };
    static const struct {
        const char *name;
        uint32_t timeout_ms; /* 0: the default, LEAVE: as long as leaving may take */
    } phases[] = { { TRP_SHUTDOWN_BEFORE_SERVICE_UNBIND, 0 },
                   { TRP_SHUTDOWN_SERVICE_UNBIND, 0 },
                   { TRP_SHUTDOWN_SERVICE_REQUESTS_DONE, 0 },
                   { TRP_SHUTDOWN_SERVICE_STOP, 0 },
                   { TRP_SHUTDOWN_BEFORE_CLUSTER_SHUTDOWN, 0 },
                   { TRP_SHUTDOWN_CLUSTER_SHARDING_SHUTDOWN_REGION, 10000 },
                   { TRP_SHUTDOWN_CLUSTER_LEAVE, LEAVE },
                   { TRP_SHUTDOWN_CLUSTER_EXITING, LEAVE },
                   { TRP_SHUTDOWN_CLUSTER_EXITING_DONE, LEAVE },
                   { TRP_SHUTDOWN_CLUSTER_SHUTDOWN, LEAVE },
                   { TRP_SHUTDOWN_BEFORE_ACTOR_SYSTEM_TERMINATE, 0 },
                   { TRP_SHUTDOWN_ACTOR_SYSTEM_TERMINATE, 10000 } };
    memset(plan, 0, sizeof *plan);
    for (uint32_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        uint32_t timeout_ms = phases[i].timeout_ms;
        timeout_ms = timeout_ms == 0 ? default_ms : timeout_ms == LEAVE ? leave_ms : timeout_ms;
        trp_err err = trpi_shutdown_phase_add(plan, phases[i].name, timeout_ms);
        trpi_assert(err == TRP_OK);
        plan->phases[i].after = i == 0 ? 0 : UINT64_C(1) << (i - 1);
    }
}

void
trpi_shutdown_plan_fini(trpi_shutdown_plan *plan)
{
    trpi_free(plan->tasks);
    plan->tasks = NULL;
    plan->tasks_count = plan->tasks_room = 0;
}

/* Write a circle of phases: walk back from one until one comes again. */
static void
circle_write(const trpi_shutdown_plan *plan, uint64_t placed, char *circle, size_t bytes)
{
    uint32_t path[TRP_SHUTDOWN_PHASES_MAX + 1];
    uint32_t steps = 0, at = 0;
    uint64_t met = 0;
    while ((placed >> at & 1) != 0) {
        at++;
    }
    while ((met >> at & 1) == 0) {
        met |= UINT64_C(1) << at;
        path[steps++] = at;
        uint64_t rest = plan->phases[at].after & ~placed;
        trpi_assert(rest != 0); /* else it could be placed */
        at = (uint32_t)__builtin_ctzll(rest);
    }
    uint32_t first = 0;
    while (path[first] != at) {
        first++;
    }
    path[steps] = at;
    size_t used = 0;
    for (uint32_t i = first; i <= steps && used < bytes; i++) {
        int more = snprintf(circle + used, bytes - used, "%s%s", i == first ? "" : " -> ",
                            plan->phases[path[i]].name);
        used += more > 0 ? (size_t)more : 0;
    }
}

trp_err
trpi_shutdown_plan_order(trpi_shutdown_plan *plan, char *circle, size_t bytes)
{
    uint64_t placed = 0;
    for (uint32_t count = 0; count < plan->phases_count; count++) {
        uint32_t next = 0;
        while (next < plan->phases_count &&
               ((placed >> next & 1) != 0 || (plan->phases[next].after & ~placed) != 0)) {
            next++;
        }
        if (next == plan->phases_count) {
            circle_write(plan, placed, circle, bytes);
            return TRP_EINVAL;
        }
        plan->order[count] = next;
        placed |= UINT64_C(1) << next;
    }
    return TRP_OK;
}

/* ---- tasks ----------------------------------------------------------------------------------- */

trpi_shutdown_task *
trpi_shutdown_task_find(const trpi_shutdown_plan *plan, uint64_t id)
{
    for (uint32_t i = 0; i < plan->tasks_count; i++) {
        if (plan->tasks[i].id == id) {
            return &plan->tasks[i];
        }
    }
    return NULL;
}

trp_err
trpi_shutdown_task_add(trpi_shutdown_plan *plan, uint32_t phase, const char *name,
                       trpi_shutdown_task **ret_task)
{
    trpi_assert(phase < plan->phases_count);
    if (plan->phases[phase].state != TRPI_SHUTDOWN_WAITS || plan->over) {
        return TRP_ESTATE;
    }
    trp_err err = TRPI_ARRAY_RESERVE(plan, tasks, 1, TRP_SHUTDOWN_TASKS_MAX);
    if (err != TRP_OK) {
        return err;
    }
    trpi_shutdown_task *task = &plan->tasks[plan->tasks_count++];
    memset(task, 0, sizeof *task);
    task->id = ++plan->last_id;
    task->phase = phase;
    (void)snprintf(task->name, sizeof task->name, "%s", name);
    *ret_task = task;
    return TRP_OK;
}

bool
trpi_shutdown_task_remove(trpi_shutdown_plan *plan, uint64_t id)
{
    trpi_shutdown_task *task = trpi_shutdown_task_find(plan, id);
    if (task == NULL || task->state != TRPI_TASK_WAITS) {
        return false;
    }
    size_t behind = (size_t)(plan->tasks + plan->tasks_count - (task + 1));
    memmove(task, task + 1, behind * sizeof *task);
    plan->tasks_count--;
    return true;
}

/* ---- running --------------------------------------------------------------------------------- */

static void
phase_begin(trpi_shutdown_plan *plan, uint32_t index, uint64_t now_ms)
{
    trpi_shutdown_phase *phase = &plan->phases[index];
    phase->state = TRPI_SHUTDOWN_RUNS;
    phase->began_ms = now_ms;
    for (uint32_t i = 0; i < plan->tasks_count; i++) {
        if (plan->tasks[i].phase == index) {
            phase->tasks++;
            plan->tasks[i].state = phase->off ? TRPI_TASK_ENDED : TRPI_TASK_IS_DUE;
        }
    }
    if (phase->tasks == 0 || phase->off) {
        phase->state = TRPI_SHUTDOWN_SKIPPED;
    }
}

/* End the phase if it is over; at its deadline unfinished tasks are abandoned
 * (shutdown-plan-P2). */
static void
phase_judge(trpi_shutdown_plan *plan, uint32_t index, uint64_t now_ms)
{
    trpi_shutdown_phase *phase = &plan->phases[index];
    bool late = now_ms - phase->began_ms >= phase->timeout_ms;
    bool failed = false;
    if (phase->ended < phase->tasks && !late) {
        return;
    }
    for (uint32_t i = 0; i < plan->tasks_count; i++) {
        trpi_shutdown_task *task = &plan->tasks[i];
        if (task->phase == index) {
            failed = failed || task->err != TRP_OK;
            task->state = task->state == TRPI_TASK_ENDED ? TRPI_TASK_ENDED : TRPI_TASK_LATE;
        }
    }
    phase->took_ms = now_ms - phase->began_ms;
    phase->state = phase->ended < phase->tasks ? TRPI_SHUTDOWN_LATE
                   : failed                    ? TRPI_SHUTDOWN_FAILED
                                               : TRPI_SHUTDOWN_IS_DONE;
    plan->is_cut = phase->is_crucial && phase->state != TRPI_SHUTDOWN_IS_DONE;
}

static void
plan_advance(trpi_shutdown_plan *plan, uint64_t now_ms)
{
    while (plan->running && !plan->over) {
        trpi_shutdown_phase *phase = &plan->phases[plan->order[plan->at]];
        if (phase->state == TRPI_SHUTDOWN_WAITS) {
            phase_begin(plan, plan->order[plan->at], now_ms);
        }
        if (phase->state == TRPI_SHUTDOWN_RUNS) {
            phase_judge(plan, plan->order[plan->at], now_ms);
            if (phase->state == TRPI_SHUTDOWN_RUNS) {
                return;
            }
        }
        plan->at++;
        plan->over = plan->is_cut || plan->at == plan->phases_count; /* shutdown-plan-P4 */
    }
}

bool
trpi_shutdown_plan_run(trpi_shutdown_plan *plan, uint64_t now_ms, uint32_t from)
{
    if (plan->running) {
        return false;
    }
    plan->running = true;
    while (plan->order[plan->at] != from) {
        plan->phases[plan->order[plan->at++]].state = TRPI_SHUTDOWN_SKIPPED;
    }
    plan_advance(plan, now_ms);
    return true;
}

void
trpi_shutdown_plan_done(trpi_shutdown_plan *plan, uint64_t now_ms, uint64_t id, trp_err err)
{
    trpi_shutdown_task *task = trpi_shutdown_task_find(plan, id);
    if (task == NULL || task->state != TRPI_TASK_RUNS) {
        return;
    }
    task->state = TRPI_TASK_ENDED;
    task->err = err;
    plan->phases[task->phase].ended++;
    plan_advance(plan, now_ms);
}

void
trpi_shutdown_plan_tick(trpi_shutdown_plan *plan, uint64_t now_ms)
{
    plan_advance(plan, now_ms);
}

uint64_t
trpi_shutdown_plan_due_ms(const trpi_shutdown_plan *plan)
{
    if (!plan->running || plan->over) {
        return UINT64_MAX;
    }
    const trpi_shutdown_phase *phase = &plan->phases[plan->order[plan->at]];
    return phase->began_ms + phase->timeout_ms;
}

trpi_shutdown_effect
trpi_shutdown_plan_take(trpi_shutdown_plan *plan, uint64_t *ret_id, uint32_t *ret_phase)
{
    while (plan->running && plan->told < plan->at) {
        *ret_phase = plan->order[plan->told++];
        if (plan->phases[*ret_phase].tasks > 0) {
            return TRPI_SHUTDOWN_REPORT;
        }
    }
    if (plan->over || !plan->running) {
        bool end = plan->over && !plan->end_told;
        plan->end_told = plan->over;
        return end ? TRPI_SHUTDOWN_END : TRPI_SHUTDOWN_NOTHING;
    }
    for (uint32_t i = 0; i < plan->tasks_count; i++) {
        /* shutdown-plan-P3: only of the phase that runs */
        if (plan->tasks[i].state == TRPI_TASK_IS_DUE) {
            plan->tasks[i].state = TRPI_TASK_RUNS;
            *ret_id = plan->tasks[i].id;
            return TRPI_SHUTDOWN_START;
        }
    }
    return TRPI_SHUTDOWN_NOTHING;
}

/* Write the names of the tasks of a phase that are late, or that failed with their errors. */
static size_t
names_write(const trpi_shutdown_plan *plan, uint32_t phase, bool late, char *buffer, size_t bytes)
{
    size_t used = 0, count = 0;
    for (uint32_t i = 0; i < plan->tasks_count && used < bytes; i++) {
        const trpi_shutdown_task *task = &plan->tasks[i];
        bool is_late = task->state == TRPI_TASK_LATE;
        if (task->phase == phase && (late ? is_late : task->err != TRP_OK)) {
            const char *before = count++ > 0 ? ", " : late ? ", waited for: " : ", failed: ";
            int more = late ? snprintf(buffer + used, bytes - used, "%s%s", before, task->name)
                            : snprintf(buffer + used, bytes - used, "%s%s (%s)", before, task->name,
                                       trp_strerror(task->err));
            used += more > 0 ? (size_t)more : 0;
        }
    }
    return used < bytes ? used : bytes - 1;
}

char *
trpi_shutdown_phase_text(const trpi_shutdown_plan *plan, uint32_t phase, char *buffer, size_t bytes)
{
    static const char *const words[] = {
        [TRPI_SHUTDOWN_WAITS] = "waits",  [TRPI_SHUTDOWN_RUNS] = "runs",
        [TRPI_SHUTDOWN_IS_DONE] = "done", [TRPI_SHUTDOWN_FAILED] = "failed",
        [TRPI_SHUTDOWN_LATE] = "late",    [TRPI_SHUTDOWN_SKIPPED] = "skipped"
    };
    const trpi_shutdown_phase *p = &plan->phases[phase];
    int head = p->state == TRPI_SHUTDOWN_SKIPPED
                   ? snprintf(buffer, bytes, "%s skipped: it is switched off", p->name)
                   : snprintf(buffer, bytes, "%s %s after %llu ms", p->name, words[p->state],
                              (unsigned long long)p->took_ms);
    size_t used = head > 0 && (size_t)head < bytes ? (size_t)head : bytes - 1;
    used += names_write(plan, phase, true, buffer + used, bytes - used);
    (void)names_write(plan, phase, false, buffer + used, bytes - used);
    return buffer;
}

/* stage.c - what a demonstration shows, counted by its own actors.
 *
 * Why.     The screen needs sender and receiver of each message, which no counter of a system has.
 *          The actors of a demonstration say them here themselves, so neither the library nor a
 *          node has a hook.
 * Shape.   sent() --> waiting, link from-to --> turn_begin() --> busy --> turn_end()
 *          step(), once a second: rates, shares, backlog, snapshots.
 * Must hold.
 *   stage-S1  accepted = completed + waiting + busy.                      (counts_check)
 *   stage-S2  The links of an actor as receiver are its waiting messages. (stage_check, turn_check)
 *   stage-S3  A run of any length has at most TRPI_STAGE_SNAPSHOTS_MAX snapshots, evenly apart:
 *       when there is no room, each second one is dropped, and they are taken half as often.
 *                                                                         (snapshot_take)
 * Limits.  TRPI_STAGE_*_MAX in the header.
 * Tests.   tests/unit/demo/stage_test.c
 * Sources. UJ-32, UJ-44 to -47.
 */
#include "cluster/demo/stage.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"

#define SENDERS (TRPI_STAGE_ACTORS_MAX + 1) /* the actors, and the program */

const char *const trpi_stage_kinds[TRPI_STAGE_KINDS] = {
    "TestActor",       "ProducerActor",  "ConsumerActor", "MapReduceActor",
    "MapReduceWorker", "VirusScanActor", "ScannerActor",
};

typedef struct stage_actor {
    char name[TRPI_STAGE_NAME_BYTES];
    trpi_stage_kind kind;
    uint32_t waiting;
    uint32_t thread; /* that handles its message; TRPI_STAGE_NOBODY: none */
} stage_actor;

typedef struct stage_thread {
    uint32_t actor;    /* TRPI_STAGE_NOBODY: it is idle */
    uint64_t since_ns; /* of its turn, or of the step if that is later */
    uint64_t busy_ns;  /* since the last step */
    uint32_t permille; /* busy in the last step */
} stage_thread;

typedef struct stage_link {
    uint8_t from, to;
    uint16_t count;
} stage_link;

typedef struct stage_snapshot {
    uint32_t step, waiting, actors, links_count;
    stage_link links[TRPI_STAGE_SNAPSHOT_LINKS_MAX];
} stage_snapshot;

struct trpi_stage {
    pthread_mutex_t lock; /* innermost; all below it with it */
    stage_actor actors[TRPI_STAGE_ACTORS_MAX];
    stage_thread threads[TRPI_STAGE_THREADS_MAX];
    trpi_stage_figures figures;
    uint64_t step_ns; /* when the last step was */
    uint64_t step_accepted, step_completed;
    uint32_t backlog[TRPI_STAGE_STEPS_MAX];
    stage_snapshot snapshots[TRPI_STAGE_SNAPSHOTS_MAX];
    uint32_t snapshots_count, snapshots_every;
    uint64_t fresh_next;  /* number of the next message */
    uint64_t fresh_first; /* and of the first one of this run */
    stage_link fresh[TRPI_STAGE_FRESH_MAX];
    uint64_t lines_next;
    char lines[TRPI_STAGE_LINES_MAX][TRPI_STAGE_LINE_BYTES];
    uint16_t links[SENDERS][TRPI_STAGE_ACTORS_MAX]; /* waiting messages, from sender to receiver */
};
_Static_assert(SENDERS <= 256, "a sender is a byte of a link");

static bool
links_of_are_right(const trpi_stage *stage, uint32_t to)
{
    uint32_t of = 0;
    for (uint32_t from = 0; from < SENDERS; from++) {
        of += stage->links[from][to];
    }
    return of == stage->actors[to].waiting;
}

static bool
links_are_right(const trpi_stage *stage)
{
    uint32_t waiting = 0;
    for (uint32_t to = 0; to < stage->figures.actors; to++) {
        if (!links_of_are_right(stage, to)) {
            return false;
        }
        waiting += stage->actors[to].waiting;
    }
    return waiting == stage->figures.waiting;
}

static void
counts_check(const trpi_stage *stage)
{
    const trpi_stage_figures *f = &stage->figures;
    trpi_assert(f->accepted == f->completed + f->waiting + f->busy); /* stage-S1 */
}

static void
stage_check(const trpi_stage *stage)
{
    counts_check(stage);
    trpi_assert_slow(links_are_right(stage)); /* stage-S2 */
}

/* After a turn: the links of its actor, and at every 16th those of all, which are 40,000. */
static void
turn_check(const trpi_stage *stage, uint32_t actor)
{
    counts_check(stage);
    trpi_assert_slow(links_of_are_right(stage, actor)); /* stage-S2 */
    trpi_assert_slow(stage->figures.completed % 16 != 0 || links_are_right(stage));
}

trp_err
trpi_stage_new(trpi_stage **ret_stage)
{
    trpi_stage *stage = trpi_alloc(sizeof *stage);
    if (stage == NULL) {
        return TRP_ENOMEM;
    }
    pthread_mutex_init(&stage->lock, NULL);
    trpi_stage_reset(stage, 1, 0);
    *ret_stage = stage;
    return TRP_OK;
}

void
trpi_stage_free(trpi_stage *stage)
{
    if (stage != NULL) {
        trpi_mutex_destroy(&stage->lock);
        trpi_free(stage);
    }
}

void
trpi_stage_reset(trpi_stage *stage, uint32_t threads, uint64_t now_ns)
{
    trpi_assert(threads > 0 && threads <= TRPI_STAGE_THREADS_MAX);
    pthread_mutex_lock(&stage->lock);
    memset(&stage->figures, 0, sizeof stage->figures);
    memset(stage->links, 0, sizeof stage->links);
    memset(stage->threads, 0, sizeof stage->threads);
    for (uint32_t i = 0; i < threads; i++) {
        stage->threads[i].actor = TRPI_STAGE_NOBODY;
    }
    stage->figures.threads = threads;
    stage->step_ns = now_ns;
    stage->step_accepted = stage->step_completed = 0;
    stage->snapshots_count = 0;
    stage->snapshots_every = 1;
    stage->fresh_first = stage->fresh_next; /* numbers go on, and so does the trace */
    pthread_mutex_unlock(&stage->lock);
}

void
trpi_stage_threads_set(trpi_stage *stage, uint32_t threads)
{
    trpi_assert(threads > 0 && threads <= TRPI_STAGE_THREADS_MAX);
    pthread_mutex_lock(&stage->lock);
    for (uint32_t i = threads; i < stage->figures.threads; i++) {
        trpi_assert(stage->threads[i].actor == TRPI_STAGE_NOBODY);
    }
    for (uint32_t i = stage->figures.threads; i < threads; i++) {
        stage->threads[i] = (stage_thread){ .actor = TRPI_STAGE_NOBODY };
    }
    stage->figures.threads = threads;
    pthread_mutex_unlock(&stage->lock);
}

trp_err
trpi_stage_actor_add(trpi_stage *stage, const char *name, trpi_stage_kind kind, uint32_t *ret_index)
{
    pthread_mutex_lock(&stage->lock);
    uint32_t index = stage->figures.actors;
    trp_err err = index < TRPI_STAGE_ACTORS_MAX ? TRP_OK : TRP_ELIMIT;
    if (err == TRP_OK) {
        stage_actor *actor = &stage->actors[index];
        *actor = (stage_actor){ .kind = kind, .thread = TRPI_STAGE_NOBODY };
        (void)snprintf(actor->name, sizeof actor->name, "%s", name);
        stage->figures.actors++;
        *ret_index = index;
    }
    pthread_mutex_unlock(&stage->lock);
    return err;
}

void
trpi_stage_sent(trpi_stage *stage, uint32_t from, uint32_t to)
{
    pthread_mutex_lock(&stage->lock);
    trpi_assert(from < SENDERS && to < stage->figures.actors);
    trpi_assert(stage->links[from][to] < UINT16_MAX);
    stage->links[from][to]++;
    stage->actors[to].waiting++;
    stage->figures.waiting++;
    stage->figures.accepted++;
    stage->fresh[stage->fresh_next++ % TRPI_STAGE_FRESH_MAX] =
        (stage_link){ (uint8_t)from, (uint8_t)to, 1 };
    pthread_mutex_unlock(&stage->lock);
}

void
trpi_stage_turn_begin(trpi_stage *stage, uint32_t thread, uint32_t from, uint32_t to,
                      uint64_t now_ns)
{
    pthread_mutex_lock(&stage->lock);
    trpi_assert(thread < stage->figures.threads && from < SENDERS && to < stage->figures.actors);
    trpi_assert(stage->links[from][to] > 0);
    stage->links[from][to]--;
    stage->actors[to].waiting--;
    stage->actors[to].thread = thread;
    stage->figures.waiting--;
    stage->figures.busy++;
    stage->threads[thread].actor = to;
    stage->threads[thread].since_ns = now_ns;
    pthread_mutex_unlock(&stage->lock);
}

/* Count the time of a turn up to now. Step and turn read the clock before they have the lock. */
static void
busy_count(stage_thread *thread, uint64_t now_ns)
{
    if (now_ns > thread->since_ns) {
        thread->busy_ns += now_ns - thread->since_ns;
        thread->since_ns = now_ns;
    }
}

void
trpi_stage_turn_end(trpi_stage *stage, uint32_t thread, uint64_t now_ns)
{
    pthread_mutex_lock(&stage->lock);
    trpi_assert(thread < stage->figures.threads);
    stage_thread *of = &stage->threads[thread];
    trpi_assert(of->actor < stage->figures.actors && stage->figures.busy > 0);
    busy_count(of, now_ns);
    uint32_t actor = of->actor;
    stage->actors[actor].thread = TRPI_STAGE_NOBODY;
    of->actor = TRPI_STAGE_NOBODY;
    stage->figures.busy--;
    stage->figures.completed++;
    turn_check(stage, actor);
    pthread_mutex_unlock(&stage->lock);
}

/* ---- trace ----------------------------------------------------------------------------------- */

/* The text goes into JSON and to a terminal as it is: others than printable ASCII, and what JSON
 * would escape, become a '?'. */
static void
line_clean(char *line)
{
    for (; *line != '\0'; line++) {
        if (*line < ' ' || *line > '~' || *line == '"' || *line == '\\') {
            *line = '?';
        }
    }
}

void
trpi_stage_trace(trpi_stage *stage, int64_t wall_ms, char level, uint32_t thread,
                 const char *format, ...)
{
    char text[TRPI_STAGE_LINE_BYTES], name[16] = "main";
    struct tm at = { 0 };
    time_t seconds = (time_t)(wall_ms / 1000);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    line_clean(text);
    (void)localtime_r(&seconds, &at);
    if (thread != TRPI_STAGE_NOBODY) {
        (void)snprintf(name, sizeof name, "actor%u", thread);
    }
    pthread_mutex_lock(&stage->lock);
    char *line = stage->lines[stage->lines_next++ % TRPI_STAGE_LINES_MAX];
    int bytes = snprintf(line, TRPI_STAGE_LINE_BYTES, "%02d:%02d:%02d.%03d %c [%s] - ", at.tm_hour,
                         at.tm_min, at.tm_sec, (int)(wall_ms % 1000), level, name);
    trpi_assert(bytes > 0 && (size_t)bytes < TRPI_STAGE_LINE_BYTES);
    (void)snprintf(line + bytes, TRPI_STAGE_LINE_BYTES - (size_t)bytes, "%s", text);
    pthread_mutex_unlock(&stage->lock);
}

bool
trpi_stage_line(trpi_stage *stage, uint64_t number, char ret_line[TRPI_STAGE_LINE_BYTES])
{
    pthread_mutex_lock(&stage->lock);
    bool is_there = number < stage->lines_next;
    if (is_there && number + TRPI_STAGE_LINES_MAX >= stage->lines_next) {
        memcpy(ret_line, stage->lines[number % TRPI_STAGE_LINES_MAX], TRPI_STAGE_LINE_BYTES);
    } else {
        ret_line[0] = '\0';
    }
    pthread_mutex_unlock(&stage->lock);
    return is_there;
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* Copy links, at most max; returns how many. */
static uint32_t
links_copy(const trpi_stage *stage, stage_link *links, uint32_t max)
{
    uint32_t count = 0;
    for (uint32_t from = 0; from < SENDERS; from++) {
        for (uint32_t to = 0; to < stage->figures.actors && count < max; to++) {
            if (stage->links[from][to] > 0) {
                links[count++] = (stage_link){ (uint8_t)from, (uint8_t)to, stage->links[from][to] };
            }
        }
    }
    return count;
}

/* stage-S3. */
static void
snapshot_take(trpi_stage *stage)
{
    if (stage->figures.step % stage->snapshots_every != 0) {
        return;
    }
    if (stage->snapshots_count == TRPI_STAGE_SNAPSHOTS_MAX) {
        for (uint32_t i = 0; i < TRPI_STAGE_SNAPSHOTS_MAX / 2; i++) {
            stage->snapshots[i] = stage->snapshots[2 * i + 1];
        }
        stage->snapshots_count = TRPI_STAGE_SNAPSHOTS_MAX / 2;
        stage->snapshots_every *= 2;
        if (stage->figures.step % stage->snapshots_every != 0) {
            return;
        }
    }
    stage_snapshot *snapshot = &stage->snapshots[stage->snapshots_count++];
    snapshot->step = stage->figures.step;
    snapshot->waiting = stage->figures.waiting;
    snapshot->actors = stage->figures.actors;
    snapshot->links_count = links_copy(stage, snapshot->links, TRPI_STAGE_SNAPSHOT_LINKS_MAX);
}

static uint32_t
per_second(uint64_t count, uint64_t ns)
{
    return (uint32_t)((count * 1000000000u + ns / 2) / ns);
}

void
trpi_stage_step(trpi_stage *stage, uint64_t now_ns)
{
    pthread_mutex_lock(&stage->lock);
    trpi_stage_figures *f = &stage->figures;
    uint64_t ns = now_ns > stage->step_ns ? now_ns - stage->step_ns : 1;
    f->accepts_per_s = per_second(f->accepted - stage->step_accepted, ns);
    f->completions_per_s = per_second(f->completed - stage->step_completed, ns);
    stage->step_accepted = f->accepted;
    stage->step_completed = f->completed;
    stage->step_ns = now_ns;
    for (uint32_t i = 0; i < f->threads; i++) {
        stage_thread *thread = &stage->threads[i];
        if (thread->actor != TRPI_STAGE_NOBODY) {
            busy_count(thread, now_ns);
        }
        uint64_t permille = thread->busy_ns * 1000u / ns;
        thread->permille = (uint32_t)(permille > 1000 ? 1000 : permille);
        thread->busy_ns = 0;
    }
    if (f->step < TRPI_STAGE_STEPS_MAX) {
        stage->backlog[f->step++] = f->waiting;
        snapshot_take(stage);
    }
    pthread_mutex_unlock(&stage->lock);
}

/* ---- what is asked --------------------------------------------------------------------------- */

void
trpi_stage_figures_get(trpi_stage *stage, trpi_stage_figures *ret_figures)
{
    pthread_mutex_lock(&stage->lock);
    *ret_figures = stage->figures;
    pthread_mutex_unlock(&stage->lock);
}

uint32_t
trpi_stage_least(trpi_stage *stage, const uint32_t *indices, uint32_t count)
{
    uint32_t least = indices[0];
    pthread_mutex_lock(&stage->lock);
    for (uint32_t i = 0; i < count; i++) {
        trpi_assert(indices[i] < stage->figures.actors);
        if (stage->actors[indices[i]].waiting < stage->actors[least].waiting) {
            least = indices[i];
        }
    }
    pthread_mutex_unlock(&stage->lock);
    return least;
}

void
trpi_stage_name(trpi_stage *stage, uint32_t index, char ret_name[TRPI_STAGE_NAME_BYTES])
{
    pthread_mutex_lock(&stage->lock);
    (void)snprintf(ret_name, TRPI_STAGE_NAME_BYTES, "%s",
                   index < stage->figures.actors ? stage->actors[index].name : "nobody");
    pthread_mutex_unlock(&stage->lock);
}

/* Append; the first error stays. */
#define PUT(...)                                                                                   \
    do {                                                                                           \
        if (err == TRP_OK) {                                                                       \
            err = trpi_buffer_printf(buffer, TRPI_STAGE_JSON_MAX, __VA_ARGS__);                    \
        }                                                                                          \
    } while (0)

static trp_err
links_write(const stage_link *links, uint32_t count, trpi_buffer *buffer)
{
    trp_err err = TRP_OK;
    PUT("[");
    for (uint32_t i = 0; i < count; i++) {
        PUT("%s[%u,%u,%u]", i > 0 ? "," : "", links[i].from, links[i].to, links[i].count);
    }
    PUT("]");
    return err;
}

static trp_err
actors_write(const trpi_stage *stage, trpi_buffer *buffer)
{
    trp_err err = TRP_OK;
    PUT(",\"threadList\":[");
    for (uint32_t i = 0; i < stage->figures.threads; i++) {
        const stage_thread *thread = &stage->threads[i];
        PUT("%s[%d,%u]", i > 0 ? "," : "", (int)thread->actor, thread->permille);
    }
    PUT("],\"kinds\":[");
    for (uint32_t i = 0; i < TRPI_STAGE_KINDS; i++) {
        PUT("%s\"%s\"", i > 0 ? "," : "", trpi_stage_kinds[i]);
    }
    PUT("],\"actorList\":[");
    for (uint32_t i = 0; i < stage->figures.actors; i++) {
        const stage_actor *actor = &stage->actors[i];
        PUT("%s[\"%s\",%u,%u,%d]", i > 0 ? "," : "", actor->name, (unsigned)actor->kind,
            actor->waiting, (int)actor->thread);
    }
    PUT("]");
    return err;
}

/* The past: backlog a second, snapshots, trace. */
static trp_err
past_write(const trpi_stage *stage, uint64_t line, trpi_buffer *buffer)
{
    trp_err err = TRP_OK;
    PUT(",\"backlog\":[");
    for (uint32_t i = 0; i < stage->figures.step; i++) {
        PUT("%s%u", i > 0 ? "," : "", stage->backlog[i]);
    }
    PUT("],\"snapshots\":[");
    for (uint32_t i = 0; i < stage->snapshots_count; i++) {
        const stage_snapshot *s = &stage->snapshots[i];
        PUT("%s{\"step\":%u,\"waiting\":%u,\"actors\":%u,\"links\":", i > 0 ? "," : "", s->step,
            s->waiting, s->actors);
        err = err == TRP_OK ? links_write(s->links, s->links_count, buffer) : err;
        PUT("}");
    }
    uint64_t oldest =
        stage->lines_next > TRPI_STAGE_LINES_MAX ? stage->lines_next - TRPI_STAGE_LINES_MAX : 0;
    line = line < oldest || line > stage->lines_next ? oldest : line;
    PUT("],\"traceNext\":%llu,\"trace\":[", (unsigned long long)stage->lines_next);
    for (uint64_t i = line; i < stage->lines_next; i++) {
        PUT("%s\"%s\"", i > line ? "," : "", stage->lines[i % TRPI_STAGE_LINES_MAX]);
    }
    PUT("]");
    return err;
}

trp_err
trpi_stage_write(trpi_stage *stage, uint64_t line, uint64_t fresh, trpi_buffer *buffer)
{
    trp_err err = TRP_OK;
    stage_link *links = trpi_alloc(TRPI_STAGE_LINKS_MAX * sizeof *links);
    if (links == NULL) {
        return TRP_ENOMEM;
    }
    pthread_mutex_lock(&stage->lock);
    stage_check(stage);
    const trpi_stage_figures *f = &stage->figures;
    PUT("\"actors\":%u,\"threads\":%u,\"step\":%u,\"waiting\":%u,\"busy\":%u,\"accepted\":%llu,"
        "\"completed\":%llu,\"acceptsPerS\":%u,\"completionsPerS\":%u",
        f->actors, f->threads, f->step, f->waiting, f->busy, (unsigned long long)f->accepted,
        (unsigned long long)f->completed, f->accepts_per_s, f->completions_per_s);
    err = err == TRP_OK ? actors_write(stage, buffer) : err;
    PUT(",\"links\":");
    uint32_t count = links_copy(stage, links, TRPI_STAGE_LINKS_MAX);
    err = err == TRP_OK ? links_write(links, count, buffer) : err;
    uint64_t oldest = stage->fresh_next - stage->fresh_first > TRPI_STAGE_FRESH_MAX
                          ? stage->fresh_next - TRPI_STAGE_FRESH_MAX
                          : stage->fresh_first;
    fresh = fresh < oldest || fresh > stage->fresh_next ? oldest : fresh;
    for (count = 0; fresh < stage->fresh_next; fresh++) {
        links[count++] = stage->fresh[fresh % TRPI_STAGE_FRESH_MAX];
    }
    PUT(",\"freshNext\":%llu,\"fresh\":", (unsigned long long)stage->fresh_next);
    err = err == TRP_OK ? links_write(links, count, buffer) : err;
    err = err == TRP_OK ? past_write(stage, line, buffer) : err;
    pthread_mutex_unlock(&stage->lock);
    trpi_free(links);
    return err;
}

/* pulling.c - work that is pulled: a worker asks for a job when it has none, so that no mailbox
 * overflows, whoever is fast gets more, and workers come and go at any time, on any node.
 *
 *     troupe node --system pulling --port 2552 --seed self --load ./pulling.so:master:100
 *     troupe node --system pulling --port 0 --seed troupe.tcp://pulling@127.0.0.1:2552 \
 *         --load ./pulling.so:workers:3    three; :3:500 when a job takes them 500 ms
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <troupe/plugin.h>
#include <troupe/troupe.h>

#define PULL_DONE(F, S) F(S, u32, number) F(S, u32, square)
#define PULL_JOB(F, S) F(S, u32, number)
#define PULL_MASTER_MESSAGES(M, P) M(P, idle, TRP_NO_FIELDS) M(P, done, PULL_DONE)
#define PULL_WORKER_MESSAGES(M, P) M(P, job, PULL_JOB)
TRP_PROTOCOL(pull_master, PULL_MASTER_MESSAGES)
TRP_PROTOCOL(pull_worker, PULL_WORKER_MESSAGES)
#define PULL_MASTER_CALLS(C, O, P) O(P, idle) O(P, done)
#define PULL_WORKER_CALLS(C, O, P) O(P, job)
TRP_TYPED(pull_master, PULL_MASTER_CALLS)
TRP_TYPED(pull_worker, PULL_WORKER_CALLS)
TRP_REGISTRY(pull_master)

enum { NEW, GIVEN, LOST, DONE };
enum { JOBS_MAX = 10000, WORKERS_MAX = 100, JOB_MS = 20 };
static const pull_master_registry_key masters = { "master" };
static trp_type tick_type = { "pulling.tick", 0, 1, TRP_TYPE_LOCAL, NULL, 0, 0 };

/* ---- the master: jobs are made when somebody asks for one ------------------------------------ */

struct master {
    uint32_t jobs, next, again, left, workers, repeated; /* again: the first that nobody has now */
    uint64_t sum;
    struct {
        trp_ref ref;
        uint32_t job; /* 0: none */
    } worker[WORKERS_MAX];
    uint8_t job[JOBS_MAX + 1]; /* NEW, GIVEN, LOST, DONE */
};

static uint32_t
worker_of(struct master *s, trp_ref ref)
{
    uint32_t i = 0;
    while (i < s->workers && !trp_ref_equal(s->worker[i].ref, ref)) {
        i++;
    }
    return i;
}

/* The next one that was lost with its worker, else one that was never given; 0: there is none. */
static uint32_t
job_next(struct master *s)
{
    for (uint32_t i = 1; i < s->next && s->again > 0; i++) {
        if (s->job[i] == LOST) {
            s->again--;
            s->repeated++;
            return i;
        }
    }
    return s->next <= s->jobs ? s->next++ : 0;
}

static void
job_lose(struct master *s, uint32_t job)
{
    if (job > 0) {
        s->job[job] = LOST;
        s->again++;
    }
}

static void
job_give(trp_ctx *ctx, struct master *s, uint32_t i)
{
    pull_worker_job job = { job_next(s) };
    s->worker[i].job = job.number;
    if (job.number > 0) {
        s->job[job.number] = GIVEN;
        pull_worker_job_tell(ctx, pull_worker_ref_of(s->worker[i].ref), job);
    } /* else it waits for one that is lost */
}

static trp_err
on_idle(trp_ctx *ctx, void *state, const pull_master_idle *m)
{
    struct master *s = state;
    uint32_t i = worker_of(s, trp_sender(ctx));
    trp_err err = TRP_OK;
    (void)m;
    if (i == WORKERS_MAX) {
        return TRP_OK; /* one too many: it gets nothing */
    }
    if (i == s->workers) {
        s->worker[i].ref = trp_sender(ctx);
        s->worker[i].job = 0;
        s->workers++;
        err = trp_watch(ctx, trp_sender(ctx));
        trp_log(ctx, TRP_LOG_INFO, "a worker has come; %u are there", s->workers);
    } else {
        job_lose(s, s->worker[i].job); /* it has begun anew */
    }
    job_give(ctx, s, i);
    return err;
}

static trp_err
on_done(trp_ctx *ctx, void *state, const pull_master_done *m)
{
    struct master *s = state;
    uint32_t i = worker_of(s, trp_sender(ctx));
    if (m->number == 0 || m->number > s->jobs || i == s->workers || s->worker[i].job != m->number) {
        return TRP_OK; /* of one that was given up: another worker has its job */
    }
    s->job[m->number] = DONE;
    s->sum += m->square;
    if (--s->left == 0) {
        trp_log(ctx, TRP_LOG_INFO, "%u jobs are done, sum %llu", s->jobs,
                (unsigned long long)s->sum);
    }
    job_give(ctx, s, i);
    return TRP_OK;
}

static void
worker_ended(trp_ctx *ctx, struct master *s, trp_ref ref)
{
    uint32_t i = worker_of(s, ref);
    if (i == s->workers) {
        return;
    }
    uint32_t job = s->worker[i].job;
    s->worker[i] = s->worker[--s->workers];
    trp_log(ctx, TRP_LOG_INFO, "a worker has ended, with job %u; %u are left", job, s->workers);
    job_lose(s, job);
    for (i = 0; i < s->workers && s->again > 0; i++) {
        if (s->worker[i].job == 0) {
            job_give(ctx, s, i);
        }
    }
}

static trp_err
master_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    static const pull_master_methods methods = { on_idle, on_done };
    if (trp_msg_is(msg, &trp_terminated_type)) {
        worker_ended(ctx, state, ((const trp_terminated *)trp_msg_payload(msg))->ref);
        return TRP_OK;
    }
    return pull_master_serve(ctx, state, msg, &methods);
}

static trp_err
master_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct master *s = state;
    s->jobs = s->left = *(const uint32_t *)trp_msg_payload(args);
    s->next = 1;
    return pull_master_registry_add(trp_ctx_system(ctx), masters,
                                    pull_master_ref_of(trp_self(ctx)));
}
static const trp_behaviour master = { sizeof master, "pull-master",
                                      .state_bytes = sizeof(struct master),
                                      .receive = master_receive, .pre_start = master_start };

/* ---- a worker: never has more than one job --------------------------------------------------- */

struct worker {
    pull_master_ref master;
    uint32_t job, job_ms; /* job 0: none */
};

static trp_err
on_job(trp_ctx *ctx, void *state, const pull_worker_job *m)
{
    struct worker *s = state;
    s->job = m->number;
    return trp_timer_once(ctx, 1, s->job_ms, &tick_type, NULL, 0); /* as if it took so long */
}

static trp_err
worker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    static const pull_worker_methods methods = { on_job };
    struct worker *s = state;
    uint32_t count;
    const pull_master_ref *all = pull_master_registry_listing_of(msg, masters, &count);
    if (all != NULL && count > 0 && !trp_ref_equal(all[0].ref, s->master.ref)) {
        /* a master is there, or another one */
        s->master = all[0];
        s->job = 0;
        pull_master_idle_tell(ctx, s->master, (pull_master_idle){ 0 });
    } else if (trp_msg_is(msg, &tick_type) && s->job > 0) {
        pull_master_done done = { s->job, s->job * s->job };
        s->job = 0;
        pull_master_done_tell(ctx, s->master, done);
    } else if (all == NULL && !trp_msg_is(msg, &tick_type)) {
        return pull_worker_serve(ctx, state, msg, &methods);
    }
    return TRP_OK;
}

static trp_err
worker_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    ((struct worker *)state)->job_ms = ((const uint32_t *)trp_msg_payload(args))[1];
    return pull_master_registry_subscribe(trp_ctx_system(ctx), masters, trp_self(ctx));
}
static const trp_behaviour worker = { sizeof worker, "pull-worker",
                                      .state_bytes = sizeof(struct worker),
                                      .receive = worker_receive, .pre_start = worker_start };

static trp_err
pulling_init(trp_node *node, const char *arguments, void **ret_state, trp_plugin_error *ret_error)
{
    static trp_type *const types[] = { &tick_type };
    static const trp_protocol local = { "pulling", types, 1, 0 };
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    char what[16] = "", name[32];
    uint32_t numbers[2] = { 3, JOB_MS }, *number = &numbers[0];
    trp_ref ref;
    trp_err err = trp_protocol_register(&pull_master_protocol);
    err = err != TRP_OK ? err : trp_protocol_register(&pull_worker_protocol);
    err = err != TRP_OK ? err : trp_protocol_register(&local);
    (void)ret_state;
    if (sscanf(arguments, "%15[a-z]:%u:%u", what, number, &numbers[1]) < 1 || *number == 0 ||
        *number > JOBS_MAX) {
        snprintf(ret_error->text, sizeof ret_error->text,
                 "pulling.so:master:JOBS or :workers:N:MS");
        return TRP_EINVAL;
    }
    bool is_master = strcmp(what, "master") == 0;
    options.name = name;
    options.args_type = &trp_bytes_type;
    options.args = numbers;
    options.args_bytes = sizeof numbers;
    for (uint32_t i = 1; err == TRP_OK && i <= (is_master ? 1 : *number); i++) {
        snprintf(name, sizeof name, "%s%u", is_master ? "master" : "worker", i);
        err =
            trp_system_spawn(trp_node_system(node), is_master ? &master : &worker, &options, &ref);
    }
    return err;
}
TRP_PLUGIN("pulling", pulling_init, NULL)

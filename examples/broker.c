/* broker.c - work through a broker: an actor that looks like any other to those who ask it, and
 * hands the work to workers that dial in over TCP, in whatever language: here two of bash. A job
 * is a line "NUMBER VALUE", its result a line "NUMBER RESULT". A job whose worker hangs up is given
 * to another one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <troupe/troupe.h>

enum { JOBS = 10, JOBS_MAX = 100, WORKERS_MAX = 16 };

#define BROKER_VALUE(F, S) F(S, i64, value)
#define BROKER_MESSAGES(M, P)                                                                      \
    M(P, square, BROKER_VALUE)                                                                     \
    M(P, result, BROKER_VALUE) M(P, where, TRP_NO_FIELDS) M(P, port, BROKER_VALUE)
TRP_PROTOCOL(broker, BROKER_MESSAGES)
#define BROKER_CALLS(C, O, P) C(P, square, result) C(P, where, port)
TRP_TYPED(broker, BROKER_CALLS)

struct broker {
    int64_t port;
    trp_ref waits_for_port;
    struct {
        trp_ref asker; /* none: it is done */
        int64_t value;
        uint32_t worker; /* WORKERS_MAX: it waits for one */
    } job[JOBS_MAX];
    struct {
        trp_ref lines; /* none: no worker is here */
        uint32_t job;  /* JOBS_MAX: it has none */
    } worker[WORKERS_MAX];
    uint32_t jobs, again;
};

static trp_err
job_give(trp_ctx *ctx, struct broker *b, uint32_t job, uint32_t worker)
{
    char text[64];
    trp_item line = trp_item_of(&trp_item_bytes);
    int bytes = snprintf(text, sizeof text, "%u %" PRId64, job, b->job[job].value);
    b->job[job].worker = worker;
    b->worker[worker].job = job;
    trp_err err = trp_bytes_copy(text, (size_t)bytes, &line.as.bytes);
    return err != TRP_OK ? err : trp_tcp_pipeline_command(ctx, b->worker[worker].lines, &line);
}

/* Give what waits to those who have nothing to do. */
static trp_err
jobs_give(trp_ctx *ctx, struct broker *b)
{
    trp_err err = TRP_OK;
    for (uint32_t w = 0, j = 0; w < WORKERS_MAX && err == TRP_OK; w++) {
        if (trp_ref_is_none(b->worker[w].lines) || b->worker[w].job != JOBS_MAX) {
            continue;
        }
        while (j < b->jobs &&
               (trp_ref_is_none(b->job[j].asker) || b->job[j].worker != WORKERS_MAX)) {
            j++;
        }
        err = j < b->jobs ? job_give(ctx, b, j, w) : TRP_OK;
    }
    return err;
}

static trp_err
worker_come(trp_ctx *ctx, struct broker *b)
{
    static const trp_stage_use stages[] = { { &trp_line_stage, NULL } };
    uint32_t w = 0;
    while (w < WORKERS_MAX && !trp_ref_is_none(b->worker[w].lines)) {
        w++;
    }
    if (w == WORKERS_MAX) { /* too many: it may try again */
        trp_tell(ctx, trp_sender(ctx), &trp_tcp_abort_type, NULL, 0);
        return TRP_OK;
    }
    b->worker[w].job = JOBS_MAX;
    trp_err err = trp_tcp_pipeline(ctx, trp_sender(ctx), stages, 1, NULL, &b->worker[w].lines);
    err = err != TRP_OK ? err : trp_watch(ctx, b->worker[w].lines);
    return err != TRP_OK ? err : jobs_give(ctx, b);
}

static trp_err
worker_gone(trp_ctx *ctx, struct broker *b, trp_ref lines)
{
    for (uint32_t w = 0; w < WORKERS_MAX; w++) {
        if (trp_ref_equal(b->worker[w].lines, lines)) {
            b->worker[w].lines = TRP_REF_NONE;
            if (b->worker[w].job != JOBS_MAX) {
                b->job[b->worker[w].job].worker = WORKERS_MAX;
                b->again++;
            }
        }
    }
    return jobs_give(ctx, b);
}

/* A line is hostile until it is a result of the job that this worker has. */
static trp_err
line_take(trp_ctx *ctx, struct broker *b, const trp_tcp_pipeline_event *event)
{
    char text[64] = "";
    uint32_t job = JOBS_MAX, w = 0;
    broker_result result = { 0 };
    (void)trp_bytes_copy_out(event->item.as.bytes, 0, text, sizeof text - 1);
    while (w < WORKERS_MAX && !trp_ref_equal(b->worker[w].lines, trp_sender(ctx))) {
        w++;
    }
    if (w == WORKERS_MAX || sscanf(text, "%u %" SCNd64, &job, &result.value) != 2 ||
        job >= b->jobs || b->worker[w].job != job) {
        trp_tell(ctx, trp_sender(ctx), &trp_tcp_abort_type, NULL, 0);
        return TRP_OK;
    }
    trp_tell(ctx, b->job[job].asker, &broker_result_type, &result, sizeof result);
    b->job[job].asker = TRP_REF_NONE;
    b->worker[w].job = JOBS_MAX;
    return jobs_give(ctx, b);
}

static trp_err
broker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct broker *b = state;
    const trp_tcp_pipeline_event *event = trp_tcp_pipeline_event_of(msg);
    if (trp_msg_is(msg, &trp_tcp_bound_type)) {
        char text[64];
        trp_io_address_text(&((const trp_tcp_bound *)trp_msg_payload(msg))->local, text, 64);
        b->port = atoi(strrchr(text, ':') + 1);
        broker_port port = { b->port };
        trp_tell(ctx, b->waits_for_port, &broker_port_type, &port, sizeof port);
    } else if (trp_msg_is(msg, &trp_tcp_connected_type)) {
        return worker_come(ctx, b);
    } else if (event != NULL && event->item.type == &trp_item_bytes) {
        return line_take(ctx, b, event);
    } else if (trp_msg_is(msg, &trp_terminated_type)) {
        return worker_gone(ctx, b, ((const trp_terminated *)trp_msg_payload(msg))->ref);
    } else if (trp_msg_is(msg, &broker_where_type)) {
        b->waits_for_port = trp_sender(ctx);
        return trp_tcp_bind(ctx, "127.0.0.1:0", NULL);
    } else if (trp_msg_is(msg, &broker_square_type)) {
        if (b->jobs == JOBS_MAX) {
            trp_reply_failure(ctx, TRP_ELIMIT, "the broker has no room");
            return TRP_OK;
        }
        b->job[b->jobs].asker = trp_sender(ctx); /* answered when a worker has done it */
        b->job[b->jobs].value = broker_square_as(msg)->value;
        b->job[b->jobs++].worker = WORKERS_MAX;
        return jobs_give(ctx, b);
    }
    return TRP_OK;
}
static const trp_protocol *const accepts[] = { &broker_protocol, &trp_tcp_protocol,
                                               &trp_tcp_pipeline_protocol, NULL };
static const trp_behaviour broker = { sizeof broker, "broker", .state_bytes = sizeof(struct broker),
                                      .receive = broker_receive, .accepts = accepts };

/* The first takes a job and hangs up, the second works until there is no more. */
static int
workers_run(int64_t port)
{
    char command[256];
    snprintf(command, sizeof command,
             "bash -c 'exec 3<>/dev/tcp/127.0.0.1/%d; read -r job value <&3'", (int)port);
    int code = system(command);
    snprintf(command, sizeof command,
             "bash -c 'exec 3<>/dev/tcp/127.0.0.1/%d; "
             "while read -r job value <&3; do echo \"$job $((value * value))\" >&3; done' &",
             (int)port);
    return code != 0 ? code : system(command);
}

int
main(void)
{
    trp_system *system;
    trp_future *futures[JOBS];
    broker_ref to;
    broker_port port = { 0 };
    int64_t sum = 0;
    if (trp_system_new("broker", NULL, &system) != TRP_OK ||
        broker_system_spawn(system, &broker, NULL, &to) != TRP_OK ||
        broker_where_call(system, to, (broker_where){ 0 }, 10000, &port) != TRP_OK) {
        return 1;
    }
    for (int i = 0; i < JOBS; i++) { /* an actor like any other */
        if (broker_square_future(system, to, (broker_square){ i + 1 }, 30000, &futures[i]) !=
            TRP_OK) {
            return 1;
        }
    }
    int wrong = workers_run(port.value);
    for (int i = 0; i < JOBS; i++) {
        const trp_msg *answer = NULL;
        if (trp_future_result(futures[i], 30000, &answer) == TRP_OK) {
            sum += broker_result_as(answer)->value;
        }
        trp_future_unref(futures[i]);
    }
    printf("the sum of the squares is %" PRId64 "\n", sum);
    trp_system_free(system); /* hangs up: the worker ends */
    return wrong != 0 || sum != 385;
}

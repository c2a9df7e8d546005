/* routers.c - a plugin for routers.sh: workers on every node, and on one a front with a pool and a
 * group of them, which it can keep under traffic.
 *
 *     troupe node --load routers.so           a worker at /user/worker, and it can make more
 *     troupe node --load routers.so:front     besides /user/front, with the routers pool and group
 *                                             below it, which the configuration describes
 *     troupe ask /user/front routees          POOL GROUP: how many routees
 *     troupe ask /user/front begin            tell both routers so much again and again that
 * workers have mail nearly always troupe ask /user/front end              stop that; "sent N
 * answered N" when all is quiet
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <troupe/plugin.h>
#include <troupe/troupe.h>

#define JOB_FIELDS(F, S) F(S, u64, number)
#define JOB_MESSAGES(M, P) M(P, ask, JOB_FIELDS) M(P, answer, JOB_FIELDS) M(P, tick, JOB_FIELDS)
TRP_PROTOCOL(routers_job, JOB_MESSAGES)

enum {
    EVERY_MS = 400,
    AT_ONCE = 120,
    BEHIND_MAX = 8 * AT_ONCE, /* not answered: a leaving worker must handle its share in time */
    WORK_MS = 5,
    QUIET_MS = 500,
    QUIET_MS_MAX = 50000 /* less than the script waits for the answer */
};

static trp_err
work(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (!trp_msg_is(msg, &routers_job_ask_type)) {
        return TRP_EUNHANDLED;
    }
    (void)usleep(WORK_MS * 1000); /* on a thread of its own */
    trp_reply(ctx, &routers_job_answer_type, trp_msg_payload(msg), sizeof(routers_job_ask));
    return TRP_OK;
}
static const trp_behaviour worker = {
    .size = sizeof(trp_behaviour), .name = "worker", .version = 1, .receive = work
};

typedef struct front {
    trp_ref pool, group;
    uint64_t sent, answered;
    uint64_t heard_ms, end_ms; /* end_ms: when it was told to end; 0: not */
    trp_ref asker;
    int runs;
} front;

static void
begin_or_end(trp_ctx *ctx, front *f, int begin)
{
    routers_job_tick tick = { 0 };
    f->runs = begin;
    if (begin) {
        f->sent = f->answered = 0;
        trp_reply_text(ctx, "begun");
    } else {
        f->asker = trp_sender(ctx);
        f->end_ms = f->heard_ms = trp_now_ms(ctx);
    }
    if (trp_timer_repeat(ctx, 1, 1, begin ? EVERY_MS : QUIET_MS, &routers_job_tick_type, &tick,
                         sizeof(tick)) != TRP_OK) {
        trp_fail(ctx, TRP_ENOMEM, "no memory for a timer");
    }
}

/* Both routers get one; or, when it is to end, is all quiet? */
static void
tick(trp_ctx *ctx, front *f)
{
    routers_job_ask job = { f->sent };
    uint64_t now_ms = trp_now_ms(ctx);
    char text[80];
    if (f->runs && f->sent - f->answered >= BEHIND_MAX) {
        return; /* on a slow machine: mail enough */
    }
    if (f->runs) {
        for (int i = 0; i < AT_ONCE; i++) {
            trp_tell(ctx, f->pool, &routers_job_ask_type, &job, sizeof(job));
            trp_tell(ctx, f->group, &routers_job_ask_type, &job, sizeof(job));
        }
        f->sent += 2 * AT_ONCE;
    } else if (f->answered == f->sent ? now_ms - f->heard_ms > QUIET_MS
                                      : now_ms - f->end_ms > QUIET_MS_MAX) {
        trp_timer_cancel(ctx, 1);
        (void)snprintf(text, sizeof text, "sent %llu answered %llu", (unsigned long long)f->sent,
                       (unsigned long long)f->answered);
        trp_tell_text(ctx, f->asker, text);
    }
}

static void
routees(trp_ctx *ctx, const front *f)
{
    uint32_t pool = 0, group = 0;
    char text[32];
    if (trp_router_routees(trp_ctx_system(ctx), f->pool, NULL, 0, &pool) == TRP_OK &&
        trp_router_routees(trp_ctx_system(ctx), f->group, NULL, 0, &group) == TRP_OK) {
        (void)snprintf(text, sizeof text, "%u %u", pool, group);
        trp_reply_text(ctx, text);
    }
}

static int
said(const trp_msg *msg, const char *text)
{
    size_t bytes = strlen(text);
    return trp_msg_bytes(msg) == bytes && memcmp(trp_msg_payload(msg), text, bytes) == 0;
}

static trp_err
front_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    front *f = state;
    if (trp_msg_is(msg, &routers_job_tick_type)) {
        tick(ctx, f);
    } else if (trp_msg_is(msg, &routers_job_answer_type)) {
        f->answered++;
        f->heard_ms = trp_now_ms(ctx);
    } else if (said(msg, "routees")) {
        routees(ctx, f);
    } else if (said(msg, "begin") || said(msg, "end")) {
        begin_or_end(ctx, f, said(msg, "begin"));
    } else {
        return TRP_EUNHANDLED;
    }
    return TRP_OK;
}

static trp_err
front_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    front *f = state;
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_spawn_options routee = TRP_SPAWN_OPTIONS_INIT;
    (void)args;
    options.from_config = 1;
    routee.dispatcher = "blocking";
    trp_err err = trp_router_spawn(ctx, &worker, &routee, "pool", &options, &f->pool);
    return err != TRP_OK ? err : trp_router_spawn(ctx, NULL, NULL, "group", &options, &f->group);
}
static const trp_behaviour front_behaviour = { .size = sizeof(trp_behaviour),
                                               .name = "front",
                                               .version = 1,
                                               .state_bytes = sizeof(front),
                                               .receive = front_receive,
                                               .pre_start = front_start };

static trp_err
init(trp_node *node, const char *arguments, void **ret_state, trp_plugin_error *ret_error)
{
    trp_system *system = trp_node_system(node);
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    (void)ret_state;
    (void)ret_error;
    trp_err err = trp_protocol_register(&routers_job_protocol);
    if (err == TRP_OK) {
        err = trp_behaviour_register(system, &worker);
    }
    options.name = "worker";
    options.dispatcher = "blocking";
    if (err == TRP_OK) {
        err = trp_system_spawn(system, &worker, &options, &ref);
    }
    options.name = "front";
    if (err == TRP_OK && arguments[0] != '\0') {
        err = trp_system_spawn(system, &front_behaviour, &options, &ref);
    }
    return err;
}
TRP_PLUGIN("routers", init, NULL)

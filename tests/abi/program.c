/* program.c - what a program relies on that was compiled with the headers of some release.
 *
 * tests/abi/check compiles it and sizes.c with the headers of each release that is kept, and with
 * headers of a future one (-DFUTURE), in which each struct that begins with its size has one more
 * member, and runs it with the library of today.
 *
 * Use public headers only, and only what the first release has: these files are not adapted to a
 * newer one.
 */
#include "program.h"

trp_system *stage;
int failures;

void
check_at(int line, bool holds, const char *name, const char *what)
{
    if (!holds) {
        printf("FAIL abi:%s: %s (line %d)\n", name, what, line);
        failures++;
    }
}

/* ---- a program that uses many structs -------------------------------------------------------- */

static uint32_t decided, started, stopped, restarted, logged;

static void
count(uint32_t *counter)
{
    (void)__atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST);
}

static trp_directive
decide(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    (void)ctx, (void)state;
    if (failure->err == TRP_EFAILED && failure->code == 7 && !trp_ref_is_none(failure->actor) &&
        strcmp(failure->reason, "seven") == 0) {
        count(&decided);
    }
    return TRP_RESTART;
}

static trp_err
worker_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    *(int64_t *)state = *(const int64_t *)trp_msg_payload(args);
    count(&started);
    return TRP_OK;
}

static void
worker_stop(trp_ctx *ctx, void *state)
{
    (void)ctx, (void)state;
    count(&stopped);
}

static trp_err
worker_restart(trp_ctx *ctx, void *state, const trp_failure *why, const trp_msg *args)
{
    if (why->code == 7) {
        count(&restarted);
    }
    return worker_start(ctx, state, args);
}

static int
worker_will(const trp_msg *msg)
{
    return trp_msg_is(msg, &trp_i64_type);
}

static trp_err
worker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t number = *(const int64_t *)trp_msg_payload(msg) + *(int64_t *)state;

    if (number == 107) {
        trp_fail(ctx, 7, "seven");
    }
    trp_reply(ctx, &trp_i64_type, &number, 0);
    return TRP_OK;
}

static const trp_behaviour worker = { .size = sizeof(trp_behaviour),
                                      .name = "worker",
                                      .version = 1,
                                      .state_bytes = sizeof(int64_t),
                                      .receive = worker_receive,
                                      .pre_start = worker_start,
                                      .post_stop = worker_stop,
                                      .post_restart = worker_restart,
                                      .args_type = &trp_i64_type,
                                      .will_receive = worker_will };

static void
log_line(void *arg, const trp_log_line *line)
{
    (void)arg;
    if (line->source != NULL && line->text != NULL && line->thread != NULL && line->wall_ms != 0) {
        count(&logged);
    }
}

static trp_system *
system_make(void)
{
    static trp_strategy strategy = TRP_STRATEGY_INIT;
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_log_options logging = TRP_LOG_OPTIONS_INIT;
    trp_scheduler_options scheduler = TRP_SCHEDULER_OPTIONS_INIT;
    trp_system *system = NULL;

    strategy.decider = decide;
    logging.queue_max = 1000;
    scheduler.tick_ms = 5;
    options.workers = 2;
    options.log = log_line;
    options.guardian_strategy = &strategy;
    options.logging = &logging;
    options.scheduler = &scheduler;
    options.serialize_messages = 1;
    if (trp_system_new("abi", &options, &system) != TRP_OK) {
        puts("FAIL abi: no system");
        exit(1);
    }
    return system;
}

/* The answer to number; -1: none. */
static int64_t
ask(trp_ref to, int64_t number)
{
    trp_msg *reply = NULL;
    int64_t answer = -1;

    if (trp_system_ask(stage, to, &trp_i64_type, &number, 0, 10000, &reply) == TRP_OK) {
        answer = trp_msg_is(reply, &trp_i64_type) ? *(const int64_t *)trp_msg_payload(reply) : -2;
        trp_msg_free(reply);
    }
    return answer;
}

static void
actors_use_options_and_hooks(void)
{
    const char *name = "actors_use_options_and_hooks";
    const int64_t hundred = 100;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_system_stats stats = { .size = sizeof stats };
    trp_msg *reply = NULL;
    const int64_t seven = 7;
    trp_ref ref;

    options.name = "worker";
    options.args_type = &trp_i64_type;
    options.args = &hundred;
    CHECK(trp_system_spawn(stage, &worker, &options, &ref) == TRP_OK, name, "no actor");
    CHECK(ask(ref, 1) == 101, name, "arguments, state and a reply");
    CHECK(trp_system_ask(stage, ref, &trp_i64_type, &seven, 0, 200, &reply) != TRP_OK, name,
          "a failed ask has a reply");
    CHECK(ask(ref, 2) == 102, name, "restarted with its arguments");
    CHECK(decided == 1 && restarted == 1 && started == 2, name, "decider and hooks");
    trp_system_tell(stage, ref, &trp_string_type, "?", 1); /* will_receive refuses it */
    CHECK(ask(ref, 3) == 103, name, "the next one");
    trp_system_stats_get(stage, &stats);
    CHECK(stats.size == sizeof stats && stats.restarts == 1 && stats.spawned >= 1, name,
          "counters");
    CHECK(stats.dead_letters[TRP_DEAD_REFUSED] == 1, name, "dead letters by reason");
}

/* Inline functions of the library, compiled into the program. */
static trp_err
in_line_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const unsigned char *payload = trp_msg_payload(msg);
    size_t bytes = trp_msg_bytes(msg);
    int64_t sum = trp_log_wants(ctx, TRP_LOG_WARNING) && !trp_log_wants(ctx, TRP_LOG_DEBUG) &&
                          !trp_ref_is_none(trp_sender(ctx)) && trp_msg_is(msg, &trp_bytes_type)
                      ? (int64_t)bytes
                      : -1;

    (void)state;
    for (size_t i = 0; sum >= 0 && i < bytes; i++) {
        sum += payload[i];
    }
    trp_reply(ctx, &trp_i64_type, &sum, 0);
    return TRP_OK;
}

static void
what_is_in_line_reads_messages_and_contexts(void)
{
    const char *name = "what_is_in_line_reads_messages_and_contexts";
    static const trp_behaviour in_line = TRP_BEHAVIOUR_INIT("in-line", char, in_line_receive);
    static unsigned char payload[200000];
    const size_t sizes[] = { 1, 1000, sizeof payload }; /* the last one does not fit into a block */
    trp_ref ref;

    memset(payload, 2, sizeof payload);
    CHECK(trp_system_spawn(stage, &in_line, NULL, &ref) == TRP_OK, name, "spawn");
    for (unsigned i = 0; i < 3; i++) {
        trp_msg *reply = NULL;
        trp_err err = trp_system_ask(stage, ref, &trp_bytes_type, payload, sizes[i], 10000, &reply);

        CHECK(err == TRP_OK && *(const int64_t *)trp_msg_payload(reply) == (int64_t)sizes[i] * 3,
              name, "type, size, payload, sender and level");
        trp_msg_free(reply);
    }
}

static void
a_dispatcher_of_the_program_runs_an_actor(void)
{
    const char *name = "a_dispatcher_of_the_program_runs_an_actor";
    trp_dispatcher_options dispatcher = TRP_DISPATCHER_OPTIONS_INIT;
    trp_dispatcher_info info = { .size = sizeof info };
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    const int64_t ten = 10;
    trp_ref ref;

    dispatcher.kind = TRP_DISPATCHER_PINNED;
    dispatcher.throughput = 3;
    CHECK(trp_dispatcher_register(stage, "mine", &dispatcher) == TRP_OK, name, "register");
    CHECK(trp_dispatcher_find(stage, "mine", &info) == TRP_OK && info.throughput == 3 &&
              info.kind == TRP_DISPATCHER_PINNED && info.size == sizeof info,
          name, "find");
    options.dispatcher = "mine";
    options.args_type = &trp_i64_type;
    options.args = &ten;
    CHECK(trp_system_spawn(stage, &worker, &options, &ref) == TRP_OK, name, "spawn");
    CHECK(ask(ref, 5) == 15, name, "a reply");
}

static void
a_router_uses_its_options(void)
{
    const char *name = "a_router_uses_its_options";
    trp_router_options router = TRP_ROUTER_OPTIONS_INIT;
    trp_spawn_options routees = TRP_SPAWN_OPTIONS_INIT;
    const int64_t twenty = 20;
    trp_ref ref;

    router.logic = "smallest-mailbox";
    router.instances = 3;
    routees.args_type = &trp_i64_type;
    routees.args = &twenty;
    CHECK(trp_system_router_spawn(stage, &worker, &routees, "pool", &router, &ref) == TRP_OK, name,
          "spawn");
    CHECK(ask(ref, 1) == 21 && ask(ref, 2) == 22 && ask(ref, 3) == 23, name, "replies");
}

int
main(void)
{
    static void (*const tests[])(
        void) = { actors_use_options_and_hooks, what_is_in_line_reads_messages_and_contexts,
                  a_dispatcher_of_the_program_runs_an_actor, a_router_uses_its_options };
    static const char *const names[] = { "actors_use_options_and_hooks",
                                         "what_is_in_line_reads_messages_and_contexts",
                                         "a_dispatcher_of_the_program_runs_an_actor",
                                         "a_router_uses_its_options" };

    stage = system_make();
    for (unsigned i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        int before = failures;

        tests[i]();
        if (failures == before) {
            printf("PASS abi:%s\n", names[i]);
        }
    }
    sizes_are_checked();
    trp_system_free(stage);
    CHECK(stopped > 0 && logged > 0, "end", "post_stop and log lines");
    return failures == 0 ? 0 : 1;
}

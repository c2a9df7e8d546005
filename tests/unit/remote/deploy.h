/* deploy.h - a parent on the left system, a worker that it has made on the right one, and what both
 * have seen. */
#ifndef TESTS_UNIT_REMOTE_DEPLOY_H
#define TESTS_UNIT_REMOTE_DEPLOY_H

#include <troupe/config.h>
#include <troupe/log.h>

#include "tests/unit/remote/pair.h"

enum { DEPLOY_CHILDREN = 4 };

typedef struct deploy_state {
    pair pair;
    trp_ref parent;
    trp_directive directive; /* of the parent */
    bool all_for_one;
} deploy_state;
static deploy_state d;

/* Written by the actors: how often each event happened, and its last value. */
static struct {
    _Atomic uint32_t started, restarted, stopped, failures, terminated, refused, paths, lost;
} deploy_seen;
typedef struct deploy_facts {
    char path[TRP_PATH_BYTES_MAX + 1], system[64], reason[TRP_FAILURE_REASON_BYTES];
    int32_t code;
    trp_ref parent, child;
} deploy_facts;
static deploy_facts deploy_last; /* under the lock: actors of several workers write */
static pthread_mutex_t deploy_lock = PTHREAD_MUTEX_INITIALIZER;

/* For the test's own thread, until the next call. */
static inline const deploy_facts *
deploy_said(void)
{
    static deploy_facts copy;
    pthread_mutex_lock(&deploy_lock);
    copy = deploy_last;
    pthread_mutex_unlock(&deploy_lock);
    return &copy;
}

/* ---- the worker, on the right ---------------------------------------------------------------- */

typedef struct worker_state {
    uint32_t told;
    uint32_t first; /* from its arguments */
} worker_state;

static inline trp_err
worker_start(trp_ctx *ctx, void *arg, const trp_msg *args)
{
    worker_state *state = arg;
    if (args != NULL) {
        memcpy(&state->first, trp_msg_payload(args), sizeof state->first);
    }
    pthread_mutex_lock(&deploy_lock);
    (void)snprintf(deploy_last.system, sizeof deploy_last.system, "%s",
                   trp_system_name(trp_ctx_system(ctx)));
    deploy_last.parent = trp_parent(ctx);
    pthread_mutex_unlock(&deploy_lock);
    atomic_fetch_add(&deploy_seen.started, 1);
    return TRP_OK;
}

static inline void
worker_stop(trp_ctx *ctx, void *state)
{
    (void)ctx;
    (void)state;
    atomic_fetch_add(&deploy_seen.stopped, 1);
}

static inline trp_err
worker_restarted(trp_ctx *ctx, void *arg, const trp_failure *why, const trp_msg *args)
{
    worker_state *state = arg;
    (void)ctx;
    pthread_mutex_lock(&deploy_lock);
    (void)snprintf(deploy_last.reason, sizeof deploy_last.reason, "%s", why->reason);
    pthread_mutex_unlock(&deploy_lock);
    if (args != NULL) {
        memcpy(&state->first, trp_msg_payload(args), sizeof state->first);
    }
    atomic_fetch_add(&deploy_seen.restarted, 1);
    return TRP_OK;
}

static inline trp_err
worker_receive(trp_ctx *ctx, void *arg, const trp_msg *msg)
{
    worker_state *state = arg;
    char text[32] = "";
    int64_t answer;
    if (!trp_msg_is(msg, &trp_string_type) || trp_msg_bytes(msg) >= sizeof text) {
        return TRP_EUNHANDLED;
    }
    memcpy(text, trp_msg_payload(msg), trp_msg_bytes(msg));
    state->told++;
    if (strcmp(text, "fail") == 0) {
        trp_fail(ctx, 42, "no more paper");
    } else if (strcmp(text, "path") == 0) {
        pthread_mutex_lock(&deploy_lock);
        trp_path(trp_ctx_system(ctx), trp_self(ctx), deploy_last.path, sizeof deploy_last.path);
        pthread_mutex_unlock(&deploy_lock);
        atomic_fetch_add(&deploy_seen.paths, 1);
    } else {
        answer = state->first + state->told;
        trp_reply(ctx, &trp_i64_type, &answer, sizeof answer);
    }
    return TRP_OK;
}

static const trp_behaviour deploy_worker = { .size = sizeof(trp_behaviour),
                                             .name = "worker",
                                             .version = 1,
                                             .state_bytes = sizeof(worker_state),
                                             .receive = worker_receive,
                                             .pre_start = worker_start,
                                             .post_stop = worker_stop,
                                             .post_restart = worker_restarted };

/* ---- the parent, on the left ----------------------------------------------------------------- */

static inline trp_directive
parent_decide(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    (void)ctx;
    (void)state;
    pthread_mutex_lock(&deploy_lock);
    (void)snprintf(deploy_last.reason, sizeof deploy_last.reason, "%s", failure->reason);
    deploy_last.code = failure->code;
    deploy_last.child = failure->actor;
    pthread_mutex_unlock(&deploy_lock);
    if (failure->err == TRP_EINIT) {
        atomic_fetch_add(&deploy_seen.refused, 1);
    }
    atomic_fetch_add(&deploy_seen.failures, 1);
    return d.directive;
}

/* The options of the next spawn; they belong to the test, which waits. */
typedef struct deploy_spawn {
    const trp_behaviour *behaviour;
    const trp_spawn_options *options;
    trp_ref ref;
    trp_err err;
    _Atomic bool done;
} deploy_spawn;

static inline trp_err
parent_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &trp_terminated_type)) {
        const trp_terminated *what = trp_msg_payload(msg);
        pthread_mutex_lock(&deploy_lock);
        deploy_last.child = what->ref;
        pthread_mutex_unlock(&deploy_lock);
        atomic_fetch_add(&deploy_seen.lost, what->address_terminated);
        atomic_fetch_add(&deploy_seen.terminated, 1);
    } else if (trp_msg_is(msg, &trp_bytes_type)) {
        deploy_spawn *what;
        memcpy(&what, trp_msg_payload(msg), sizeof what);
        what->err = trp_spawn(ctx, what->behaviour, what->options, &what->ref);
        if (what->err == TRP_OK) {
            what->err = trp_watch(ctx, what->ref);
        }
        atomic_store(&what->done, true);
    } else if (trp_msg_is(msg, &trp_i64_type)) { /* "stop the child" */
        trp_stop(ctx, trp_child(ctx, "child"));
    } else {
        trp_fail(ctx, 7, "the parent has had enough");
    }
    return TRP_OK;
}

/* Two parents in one: children die with it, or live on and are restarted. */
static const trp_strategy deploy_one = { sizeof(trp_strategy), 0, 0, parent_decide, 0, 0, NULL };
static const trp_strategy deploy_all = { sizeof(trp_strategy), 1, 0, parent_decide, 0, 0, NULL };
static const trp_behaviour deploy_parent = { .size = sizeof(trp_behaviour),
                                             .name = "parent",
                                             .version = 1,
                                             .receive = parent_receive,
                                             .strategy = &deploy_one };
static inline trp_err
parent_keeps(trp_ctx *ctx, void *state, const trp_failure *why, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)why;
    (void)msg;
    return TRP_OK;
}
static const trp_behaviour deploy_keeper = { .size = sizeof(trp_behaviour),
                                             .name = "keeper",
                                             .version = 1,
                                             .receive = parent_receive,
                                             .pre_restart = parent_keeps,
                                             .strategy = &deploy_all };

/* ---- both ------------------------------------------------------------------------------------ */

/* The left system's configuration, for the next start only: patient, or for a node that will not
 * answer. */
#define DEPLOY_TEXT "remote { deployment-timeout = 60s }\n"
#define DEPLOY_TEXT_HASTY "remote { deployment-timeout = 300ms }\n"
static char deploy_text[1024] = DEPLOY_TEXT;
static trpi_remote_options deploy_left;

static inline trp_system *
deploy_system(const char *name, const char *text)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_config_error error = { "" };
    trp_config *config = NULL;
    trp_system *system = NULL;
    UNIT_EQUAL(trp_config_parse_text("test.conf", text, &config, &error), TRP_OK);
    UNIT_TEXT(error.text, "");
    options.workers = 2;
    options.log = pair_log_line;
    options.log_level = TRP_LOG_DEBUG;
    options.config = config;
    UNIT_REQUIRE(trp_system_new(name, &options, &system) == TRP_OK);
    trp_config_unref(config);
    return system;
}

static inline void
deploy_start_with(const trpi_remote_options *right, const trp_behaviour *parent)
{
    memset(&d, 0, sizeof d);
    memset(&deploy_seen, 0, sizeof deploy_seen);
    memset(&deploy_last, 0, sizeof deploy_last);
    d.directive = TRP_RESTART;
    pair_log_clear();
    d.pair.mem = true;
    UNIT_REQUIRE(trpi_mem_network_new(&d.pair.network) == TRP_OK);
    UNIT_REQUIRE(trpi_mem_network_thread_start(d.pair.network) == TRP_OK);
    for (int i = 0; i < 2; i++) {
        d.pair.system[i] = deploy_system(i == 0 ? "left" : "right", i == 0 ? deploy_text : "");
        pair_remote(&d.pair, i, i == 0 ? &deploy_left : right, 0);
    }
    UNIT_EQUAL(trp_behaviour_register(d.pair.system[1], &deploy_worker), TRP_OK);
    d.parent = pair_spawn(d.pair.system[0], parent, "parent", NULL, NULL, 0);
}

static inline void
deploy_start_hasty(const trpi_remote_options *right)
{
    (void)snprintf(deploy_text, sizeof deploy_text, "%s", DEPLOY_TEXT_HASTY);
    deploy_start_with(right, &deploy_parent);
}

static inline void
deploy_start(const trpi_remote_options *right)
{
    deploy_start_with(right, &deploy_parent);
}

static inline void
deploy_end(void)
{
    pair_end(&d.pair);
    (void)snprintf(deploy_text, sizeof deploy_text, "%s", DEPLOY_TEXT);
}

/* Have the parent spawn; its answer. */
static inline trp_err
deploy_spawn_with(const trp_behaviour *behaviour, const trp_spawn_options *options,
                  trp_ref *ret_ref)
{
    deploy_spawn what = { behaviour, options, TRP_REF_NONE, TRP_OK, false };
    deploy_spawn *told = &what;
    trp_system_tell(d.pair.system[0], d.parent, &trp_bytes_type, &told, sizeof told);
    UNIT_WAIT(atomic_load(&what.done), 60000);
    *ret_ref = what.ref;
    return what.err;
}

/* A worker on the right; first: its argument, NULL: none. */
static inline trp_ref
deploy_child(const char *name, const int64_t *first)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    options.name = name;
    options.node = d.pair.address[1];
    if (first != NULL) {
        options.args_type = &trp_i64_type;
        options.args = first;
        options.args_bytes = sizeof *first;
    }
    UNIT_EQUAL(deploy_spawn_with(&deploy_worker, &options, &ref), TRP_OK);
    return ref;
}

/* Return the worker's answer; -1: none. */
static inline int64_t
deploy_ask(trp_ref ref, const char *text)
{
    trp_msg *reply = NULL;
    int64_t answer = -1;
    if (trp_system_ask(d.pair.system[0], ref, &trp_string_type, text, strlen(text), 60000,
                       &reply) == TRP_OK) {
        memcpy(&answer, trp_msg_payload(reply), sizeof answer);
        trp_msg_free(reply);
    }
    return answer;
}

static inline void
deploy_tell(trp_ref ref, const char *text)
{
    trp_system_tell(d.pair.system[0], ref, &trp_string_type, text, strlen(text));
}

#endif

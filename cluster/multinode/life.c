/* life.c - one process of a test over several nodes: how it begins, begins again, and ends.
 *
 * Why.     The conductor must be reachable while links of the systems under test are cut and nodes
 *          end. So each process has two nodes: one under test, and one for control, which is an
 *          ordinary node with remoting of its own; every question is an ask between actors.
 * Must hold.
 *   multinode-life-M1  the control node does not depend on the settings of the test
 *   multinode-life-M3  the first node's control node is closed last of all (trp_multinode_close)
 *   multinode-life-M4  the other nodes learn the reason of a failed test: the first node waits for
 *       them, for a limited time (trp_multinode_fail)
 * Tests.   tests/multinode/kit.sh
 * Sources. MNT-01, -05, -10, -16
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <troupe/troupe.h>

#include "base/address.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "base/sized.h"
#include "cluster/multinode/conductor.h"
#include "cluster/multinode/kit.h"

#define MAGIC 0x6d756c74696e6f64ull
#define CONTROL_SYSTEM "multinode"

enum {
    RESOLVE_MS = 250,
    GIVE_UP_MS = 1000,   /* for the answer; on the first node also for the others to give up */
    LOST_AFTER_MS = 3000 /* of silence */
};

/* ---- looking --------------------------------------------------------------------------------- */

const char *
trp_multinode_role_name(const trp_multinode *test)
{
    return test->roles[test->place.index];
}

int
trp_multinode_is(const trp_multinode *test, const char *roles)
{
    const char *own = trp_multinode_role_name(test);
    size_t own_bytes = strlen(own);
    while (roles && *roles != '\0') {
        size_t bytes = strcspn(roles, " ");
        if (bytes == own_bytes && memcmp(roles, own, bytes) == 0) {
            return 1;
        }
        roles += bytes;
        roles += strspn(roles, " ");
    }
    return 0;
}

trp_node *
trp_multinode_node(trp_multinode *test)
{
    return test->node; /* only this thread writes it */
}

trp_system *
trp_multinode_system(trp_multinode *test)
{
    return test->node ? trp_node_system(test->node) : NULL;
}

const char *
trp_multinode_reason(const trp_multinode *test)
{
    return test->why;
}

/* ---- the node under test --------------------------------------------------------------------- */

static void
node_set(trp_multinode *test, trp_node *node)
{
    pthread_mutex_lock(&test->lock);
    test->node = node;
    pthread_mutex_unlock(&test->lock);
}

static trp_err
node_open(trp_multinode *test)
{
    trp_node_options options = TRP_NODE_OPTIONS_INIT;
    trp_node_error error = { "" };
    trp_node *node = NULL;
    char **settings = NULL;
    trp_err err = trpi_multinode_settings_make(test, &settings);
    if (err != TRP_OK) {
        return err;
    }
    options.settings = (const char *const *)settings;
    err = trp_node_open(&options, &node, &error);
    trpi_multinode_settings_free(settings);
    if (err != TRP_OK) {
        return trpi_multinode_refuse(test, err, "%s", error.text);
    }
    node_set(test, node);
    return TRP_OK;
}

static void
node_close(trp_multinode *test)
{
    trp_node *node = test->node;
    node_set(test, NULL);
    trp_node_close(node);
}

/* Introduce this process, start its node, and wait for the others. */
static trp_err
node_begin(trp_multinode *test)
{
    trpi_multinode_call hello = trpi_multinode_call_of(TRPI_MULTINODE_HELLO);
    trpi_multinode_call present = trpi_multinode_call_of(TRPI_MULTINODE_PRESENT);
    pthread_mutex_lock(&test->lock);
    test->released = false;
    pthread_mutex_unlock(&test->lock);
    trp_err err =
        trpi_multinode_ask(test, test->player, &hello,
                           trpi_multinode_stretched(test, test->options.query_timeout_ms), NULL);
    err = err != TRP_OK ? err : node_open(test);
    if (err == TRP_OK) {
        (void)snprintf(present.name, sizeof present.name, "%s", trp_node_address(test->node));
        err = trpi_multinode_ask(test, test->conductor, &present,
                                 trpi_multinode_stretched(test, test->options.barrier_timeout_ms),
                                 NULL);
    }
    return err;
}

trp_err
trp_multinode_await_end(trp_multinode *test, uint32_t timeout_ms)
{
    trp_node_end end;
    if (!test->node) {
        return trpi_multinode_refuse(test, TRP_ESTATE, "no node has been started that could end");
    }
    trp_err err = trp_node_await(test->node, trpi_multinode_stretched(test, timeout_ms), &end);
    if (err != TRP_OK) {
        return trpi_multinode_refuse(test, err, "the node has not ended");
    }
    node_close(test);
    return TRP_OK;
}

trp_err
trp_multinode_restart(trp_multinode *test, int same_address)
{
    uint16_t port = test->place.port;
    if (test->node) {
        return trpi_multinode_refuse(test, TRP_ESTATE,
                                     "there is a node already; see trp_multinode_await_end()");
    }
    test->place.port = same_address ? test->port_before : port;
    trp_err err = node_begin(test);
    test->place.port = port;
    return err;
}

/* ---- control --------------------------------------------------------------------------------- */

/* multinode-life-M1 */
static trp_err
control_open(trp_multinode *test)
{
    char host[300], port[32], pause[96];
    bool first = test->place.index == 0;
    trp_node_options options = TRP_NODE_OPTIONS_INIT;
    trp_node_error error = { "" };
    (void)snprintf(host, sizeof host, "remote.hostname=%s",
                   first ? test->place.server_host : test->place.host);
    (void)snprintf(port, sizeof port, "remote.port=%u", first ? test->place.server_port : 0);
    (void)snprintf(pause, sizeof pause,
                   "remote.watch-failure-detector.acceptable-heartbeat-pause=%ums",
                   trpi_multinode_stretched(test, LOST_AFTER_MS));
    const char *settings[] = { "system=" CONTROL_SYSTEM,
                               "log.level=error",
                               "actor.default-dispatcher.workers=1",
                               "remote.retry-backoff-max=200ms",
                               "remote.watch-failure-detector.heartbeat-interval=250ms",
                               "remote.watch-failure-detector.expected-response-after=1s",
                               host,
                               port,
                               pause,
                               NULL };
    options.settings = settings;
    options.environment_ignored = 1;
    trp_err err = trp_node_open(&options, &test->control, &error);
    return err == TRP_OK ? err : trpi_multinode_refuse(test, err, "control: %s", error.text);
}

static trp_err
actors_spawn(trp_multinode *test)
{
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    const trpi_multinode_plan *plan = &test->plan;
    trp_system *system = trp_node_system(test->control);
    trp_ref conductor;
    trp_err err = trp_protocol_register(&trpi_multinode_protocol);
    spawn.args_type = &trp_bytes_type;
    spawn.args_bytes = sizeof(void *);
    spawn.name = "player";
    spawn.args = &test;
    err = err != TRP_OK ? err
                        : trp_system_spawn(system, &trpi_player_behaviour, &spawn, &test->player);
    spawn.name = "conductor";
    spawn.args = &plan;
    if (err == TRP_OK && test->place.index == 0) {
        err = trp_system_spawn(system, &trpi_conductor_behaviour, &spawn, &conductor);
    }
    return err == TRP_OK ? err : trpi_multinode_refuse(test, err, "control: %s", trp_strerror(err));
}

static trp_err
conductor_find(trp_multinode *test)
{
    char path[400];
    const char *host = test->place.server_host;
    uint64_t until = trp_multinode_until(test, test->options.connect_timeout_ms);
    trp_err err;
    (void)snprintf(path, sizeof path,
                   strchr(host, ':') ? "troupe.tcp://" CONTROL_SYSTEM "@[%s]:%u/user/conductor"
                                     : "troupe.tcp://" CONTROL_SYSTEM "@%s:%u/user/conductor",
                   host, test->place.server_port);
    do {
        err =
            trp_system_resolve(trp_node_system(test->control), path, RESOLVE_MS, &test->conductor);
    } while (err != TRP_OK && err != TRP_EINVAL && trp_multinode_pause(test, until));
    return err == TRP_OK
               ? err
               : trpi_multinode_refuse(test, err == TRP_EINVAL ? err : TRP_ETIMEDOUT,
                                       "the first node of the test does not answer at %s: %s", path,
                                       trp_strerror(err));
}

/* ---- life ------------------------------------------------------------------------------------ */

static bool
is_role_name(const char *name)
{
    size_t bytes = name ? strlen(name) : 0;
    for (size_t i = 0; i < bytes; i++) {
        if (!isalnum((unsigned char)name[i]) && name[i] != '-' && name[i] != '_') {
            return false;
        }
    }
    return bytes > 0 && bytes <= TRP_MULTINODE_ROLE_BYTES_MAX;
}

/* Fills test->options, ->plan and ->roles. */
static trp_err
options_take(trp_multinode *test, const trp_multinode_options *given)
{
    trp_multinode_options *o = &test->options;
    *o = (trp_multinode_options)TRP_MULTINODE_OPTIONS_INIT;
    if (!TRPI_SIZED_COPY(given, o, argv)) {
        return trpi_multinode_refuse(
            test, TRP_EINVAL,
            "the size of trp_multinode_options is not one of a release, or "
            "a newer program asks for more than this library can do");
    }
    if (!o->roles || o->roles_count == 0) {
        return trpi_multinode_refuse(
            test, TRP_EINVAL, "trp_multinode_options names no roles; a test needs at least one");
    }
    if (o->roles_count > TRP_MULTINODE_ROLES_MAX) {
        return trpi_multinode_refuse(test, TRP_ELIMIT, "a test has at most %d roles",
                                     TRP_MULTINODE_ROLES_MAX);
    }
    for (uint32_t i = 0; i < o->roles_count; i++) {
        test->roles[i] = o->roles[i].name;
        if (!is_role_name(test->roles[i])) {
            return trpi_multinode_refuse(test, TRP_EINVAL,
                                         "role %u: a name is 1 to %d letters, digits, - or _", i,
                                         TRP_MULTINODE_ROLE_BYTES_MAX);
        }
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(test->roles[j], test->roles[i]) == 0) {
                return trpi_multinode_refuse(test, TRP_EINVAL, "two roles are called '%s'",
                                             test->roles[i]);
            }
        }
    }
    o->barrier_timeout_ms =
        o->barrier_timeout_ms ? o->barrier_timeout_ms : TRP_MULTINODE_BARRIER_TIMEOUT_DEFAULT_MS;
    o->query_timeout_ms =
        o->query_timeout_ms ? o->query_timeout_ms : TRP_MULTINODE_QUERY_TIMEOUT_DEFAULT_MS;
    o->connect_timeout_ms =
        o->connect_timeout_ms ? o->connect_timeout_ms : TRP_MULTINODE_CONNECT_TIMEOUT_DEFAULT_MS;
    test->plan = (trpi_multinode_plan){ test->roles, o->roles_count,
                                        o->participants ? o->participants : o->roles_count };
    return o->participants <= o->roles_count
               ? TRP_OK
               : trpi_multinode_refuse(test, TRP_EINVAL, "%u participants, and %u roles",
                                       o->participants, o->roles_count);
}

/* Give *ret_test, also after an error of the options (for its text); NULL without memory. */
static trp_err
test_new(const trp_multinode_options *options, trp_multinode **ret_test)
{
    trp_multinode *test = trpi_alloc(sizeof *test);
    *ret_test = test;
    if (!test) {
        return TRP_ENOMEM;
    }
    test->magic = MAGIC;
    pthread_mutex_init(&test->lock, NULL);
    trp_err err = options_take(test, options);
    return err != TRP_OK
               ? err
               : trpi_multinode_place_read(test->plan.roles_count, &test->place, test->why);
}

static void
test_free(trp_multinode *test)
{
    if (!test) {
        return;
    }
    pthread_mutex_lock(&test->lock);
    test->closing = true;
    pthread_mutex_unlock(&test->lock);
    node_close(test);
    trp_node_close(test->control);
    trpi_mutex_destroy(&test->lock);
    test->magic = 0;
    trpi_free(test);
}

static trp_err
test_begin(trp_multinode *test)
{
    trpi_address address;
    trp_err err = control_open(test);
    err = err != TRP_OK ? err : actors_spawn(test);
    err = err != TRP_OK ? err : conductor_find(test);
    err = err != TRP_OK ? err : node_begin(test);
    if (err == TRP_OK &&
        trpi_address_parse(trp_node_address(test->node), &address, NULL, NULL) == TRP_OK) {
        test->port_before = address.port;
    }
    return err;
}

trp_err
trp_multinode_open(const trp_multinode_options *options, trp_multinode **ret_test)
{
    trp_multinode *test;
    trp_err err = test_new(options, &test);
    if (err == TRP_OK && test->place.listing) {
        err = trpi_multinode_refuse(test, TRP_EINVAL, "only trp_multinode_main() tells the roles");
    }
    err = err != TRP_OK ? err : test_begin(test);
    if (err != TRP_OK) {
        (void)fprintf(stderr, "multinode: %s\n", test ? test->why : trp_strerror(err));
        test_free(test);
        return err;
    }
    *ret_test = test;
    return TRP_OK;
}

trp_err
trp_multinode_close(trp_multinode *test)
{
    trp_err err = TRP_OK;
    if (!test) {
        return TRP_OK;
    }
    trpi_assert(test->magic == MAGIC);
    bool first = test->place.index == 0;
    trpi_multinode_call call =
        trpi_multinode_call_of(first ? TRPI_MULTINODE_FAREWELL : TRPI_MULTINODE_BYE);
    if (!first) {
        node_close(test);
    }
    pthread_mutex_lock(&test->lock);
    test->closing = true; /* from here on the conductor may go */
    bool released = test->released;
    pthread_mutex_unlock(&test->lock);
    if (!released) {
        uint32_t wait_ms =
            first ? test->options.barrier_timeout_ms : test->options.query_timeout_ms;
        err = trpi_multinode_ask(test, test->conductor, &call,
                                 trpi_multinode_stretched(test, wait_ms), NULL);
    }
    if (err != TRP_OK && !first) {
        err = TRP_ECONN;
    }
    test_free(test); /* multinode-life-M3 */
    return err;
}

void
trpi_multinode_end(int code)
{
    (void)fflush(NULL); /* best effort: flush the output of the test */
    _exit(code);
}

void
trp_multinode_fail(trp_multinode *test, const char *file, int line, const char *format, ...)
{
    trpi_multinode_call call = trpi_multinode_call_of(TRPI_MULTINODE_GIVE_UP);
    va_list list;
    va_start(list, format);
    (void)vsnprintf(call.text, sizeof call.text, format, list); /* cut is fine */
    va_end(list);
    (void)fprintf(stderr, "FAIL %s: %s:%d: %s\n", trp_multinode_role_name(test), file, line,
                  call.text);
    /* No answer: the others notice by their failure detector. */
    uint32_t wait_ms = trpi_multinode_stretched(test, GIVE_UP_MS);
    trp_err err = trpi_multinode_ask(test, test->conductor, &call, wait_ms, NULL);
    if (err == TRP_OK && test->place.index == 0) { /* multinode-life-M4 */
        call = trpi_multinode_call_of(TRPI_MULTINODE_FAREWELL);
        (void)trpi_multinode_ask(test, test->conductor, &call, wait_ms, NULL);
    }
    trpi_multinode_end(1);
}

int
trp_multinode_main(const trp_multinode_options *options, trp_multinode_fn fn, void *arg)
{
    trp_multinode *test;
    trp_err err = test_new(options, &test);
    if (err == TRP_OK && test->place.listing) {
        for (uint32_t i = 0; i < test->plan.roles_count; i++) {
            (void)puts(test->roles[i]);
        }
        test_free(test);
        return 0;
    }
    err = err != TRP_OK ? err : test_begin(test);
    if (err != TRP_OK) {
        (void)fprintf(stderr, "multinode: %s\n", test ? test->why : trp_strerror(err));
        bool is_started = test && test->control;
        test_free(test);
        return err == TRP_ENOENT && !is_started ? 64 : 1;
    }
    fn(test, arg);
    bool first = test->place.index == 0;
    err = trp_multinode_close(test);
    if (err != TRP_OK) {
        (void)fprintf(stderr, first ? "FAIL: not all nodes have left the test\n"
                                    : "FAIL: the first node does not answer\n");
        return 1;
    }
    return 0;
}

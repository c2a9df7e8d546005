/* pair.h - two systems in one process, remoting over tcp loopback or over a network in memory. */
#ifndef TESTS_UNIT_REMOTE_PAIR_H
#define TESTS_UNIT_REMOTE_PAIR_H

#include <stdatomic.h>
#include <stdlib.h>

#include <troupe/system.h>

#include "base/alloc.h"
#include "base/config.h"
#include "remote/remote.h"
#include "sim/mem_transport.h"
#include "tests/unit/unit.h"

/* Beneath remoting; NULL: the default. Of systems that are not in memory. */
static const trpi_transport_ops *pair_driver;
/* Not the driver of the other tests, which is the default, or that of TROUPE_REMOTE_DRIVER. */
static bool pair_other;

/* The driver of tcp. */
static inline const char *
pair_drives(void)
{
    const char *driver = getenv("TROUPE_REMOTE_DRIVER");
    driver = driver != NULL ? driver : trpi_config_text(NULL, "remote.driver");
    return !pair_other ? driver : strcmp(driver, "poll") == 0 ? "nng" : "poll";
}

typedef struct pair {
    bool mem;
    trpi_mem_network *network;
    trp_system *system[2];
    trpi_remote *remote[2];
    char address[2][TRPI_ADDRESS_TEXT_BYTES];
} pair;

/* Log lines land here, so that tests can look for them. */
typedef struct pair_log {
    pthread_mutex_t lock;
    char text[65536];
    size_t bytes;
} pair_log;
static pair_log pair_lines = { .lock = PTHREAD_MUTEX_INITIALIZER };

static inline void
pair_log_line(void *arg, const trp_log_line *line)
{
    (void)arg;
    pthread_mutex_lock(&pair_lines.lock);
    int n = snprintf(pair_lines.text + pair_lines.bytes, sizeof pair_lines.text - pair_lines.bytes,
                     "%s%s: %s\n", line->level == TRP_LOG_DEBUG ? "debug " : "", line->source,
                     line->text);
    if (n > 0 && pair_lines.bytes + (size_t)n < sizeof pair_lines.text) {
        pair_lines.bytes += (size_t)n;
    }
    pthread_mutex_unlock(&pair_lines.lock);
    if (getenv("PAIR_LOG") != NULL) {
        fprintf(stderr, "[%d] %s: %s\n", (int)line->level, line->source, line->text);
    }
}

static inline bool
pair_logged(const char *text)
{
    pthread_mutex_lock(&pair_lines.lock);
    pair_lines.text[pair_lines.bytes] = '\0';
    bool found = strstr(pair_lines.text, text) != NULL;
    pthread_mutex_unlock(&pair_lines.lock);
    return found;
}

static inline uint64_t
pair_log_count(const char *text)
{
    uint64_t count = 0;
    pthread_mutex_lock(&pair_lines.lock);
    pair_lines.text[pair_lines.bytes] = '\0';
    for (const char *at = pair_lines.text; (at = strstr(at, text)) != NULL; at++) {
        count++;
    }
    pthread_mutex_unlock(&pair_lines.lock);
    return count;
}

static inline void
pair_log_clear(void)
{
    pthread_mutex_lock(&pair_lines.lock);
    pair_lines.bytes = 0;
    pthread_mutex_unlock(&pair_lines.lock);
}

static inline trp_system *
pair_system(const char *name)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    options.workers = 2;
    options.log = pair_log_line;
    options.log_level = TRP_LOG_DEBUG;
    trp_system *system = NULL;
    UNIT_REQUIRE(trp_system_new(name, &options, &system) == TRP_OK);
    return system;
}

/* Start remoting of side i with options (host, port and transport are set here when zero). */
static inline void
pair_remote(pair *p, int i, const trpi_remote_options *options, uint16_t port)
{
    trpi_remote_options o = { 0 };
    if (options != NULL) {
        o = *options;
    }
    o.bind_port = -1;
    o.port = port;
    if (o.link_pause_ms == 0) { /* a machine that stands still for seconds breaks no link */
        o.link_pause_ms = 60000;
    }
    o.transport = o.transport != NULL ? o.transport : pair_driver;
    o.driver = o.driver != NULL ? o.driver : pair_drives();
    if (p->mem) {
        o.transport = &trpi_mem_transport_ops;
        o.transport_arg = p->network;
        o.host = i == 0 ? "left" : "right";
    }
    trp_err err = TRP_EADDRINUSE;
    /* another program's connection may have a given port for a moment */
    UNIT_WAIT((err = trpi_remote_start(p->system[i], &o, &p->remote[i])) != TRP_EADDRINUSE, 60000);
    UNIT_REQUIRE(err == TRP_OK);
    trpi_address_format(trpi_remote_address(p->remote[i]), p->address[i], sizeof p->address[i]);
}

static inline void
pair_start(pair *p, bool mem, const trpi_remote_options *options)
{
    memset(p, 0, sizeof *p);
    pair_log_clear();
    p->mem = mem;
    if (mem) {
        UNIT_REQUIRE(trpi_mem_network_new(&p->network) == TRP_OK);
        UNIT_REQUIRE(trpi_mem_network_thread_start(p->network) == TRP_OK);
    }
    for (int i = 0; i < 2; i++) {
        p->system[i] = pair_system(i == 0 ? "left" : "right");
        pair_remote(p, i, options, 0);
    }
}

static inline void
pair_end_side(pair *p, int i)
{
    if (p->system[i] == NULL) {
        return;
    }
    UNIT_EQUAL(trp_system_stop(p->system[i], 60000), TRP_OK);
    trpi_remote_stop(p->remote[i]);
    trp_system_free(p->system[i]);
    p->system[i] = NULL;
    p->remote[i] = NULL;
}

static inline void
pair_end(pair *p)
{
    pair_end_side(p, 0);
    pair_end_side(p, 1);
    if (p->mem) {
        trpi_mem_network_thread_stop(p->network);
        trpi_mem_network_free(p->network);
    }
}

/* Return the left side's ref of an actor of the right side. Resolving its path may ask twice, when
 * the answer takes a second: then the second answer is a dead letter. */
static inline trp_ref
pair_abroad(const pair *p, trp_ref there)
{
    trpi_node_id id = { *trpi_remote_address(p->remote[1]), trpi_system_self(p->system[1])->uid };
    UNIT_REQUIRE(trpi_node_intern(p->system[0], &id, &there.node) == TRP_OK);
    return there;
}

/* "/user/echo" of side i, with its address. */
static inline char *
pair_path(const pair *p, int i, const char *path, char *buffer, size_t bytes)
{
    (void)snprintf(buffer, bytes, "%s%s", p->address[i], path);
    return buffer;
}

/* ---- actors ---------------------------------------------------------------------------------- */

/* Sends each message back to its sender. */
static inline trp_err
pair_echo_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_reply(ctx, trp_msg_type(msg), trp_msg_payload(msg), trp_msg_bytes(msg));
    return TRP_OK;
}
static const trp_behaviour pair_echo = TRP_BEHAVIOUR_INIT("echo", char, pair_echo_receive);

static inline trp_ref
pair_spawn(trp_system *system, const trp_behaviour *behaviour, const char *name,
           const trp_type *args_type, const void *args, size_t bytes)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    options.name = name;
    options.args_type = args_type;
    options.args = args;
    options.args_bytes = bytes;
    UNIT_REQUIRE(trp_system_spawn(system, behaviour, &options, &ref) == TRP_OK);
    return ref;
}

/* ---- faults of the network in memory: for trpi_mem_network_fault_set() ------------------------
 */

static inline trpi_mem_verdict
pair_cut_all(void *arg, trpi_mem_event *event)
{
    (void)arg;
    (void)event;
    return TRPI_MEM_CUT;
}

static inline trpi_mem_verdict
pair_drop_all(void *arg, trpi_mem_event *event)
{
    (void)arg;
    (void)event;
    return TRPI_MEM_DROP;
}

/* ---- what a side knows of the other ------------------------------------------------------------
 */

static inline const char *
pair_state(pair *p, int i)
{
    trpi_peer_info info;
    size_t count = 0;
    trpi_remote_peers(p->remote[i], &info, 1, &count);
    return count == 0 ? "none" : info.state;
}
static inline uint64_t
pair_uid(pair *p, int i)
{
    return trpi_system_self(p->system[i])->uid;
}

/* The same test on the other driver. */
#define PAIR_OTHER_TEST(test)                                                                      \
    static void test##_on_the_other_driver(void)                                                   \
    {                                                                                              \
        pair_other = true;                                                                         \
        test();                                                                                    \
        pair_other = false;                                                                        \
    }
#define UNIT_PAIR_OTHER(test) UNIT(test##_on_the_other_driver)

#endif

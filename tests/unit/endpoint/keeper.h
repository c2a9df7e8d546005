/* keeper.h - the fixture of tests of endpoints: an actor that opens one, and notes what it is told;
 * a folder of the test's own.
 */
#ifndef TESTS_UNIT_ENDPOINT_KEEPER_H
#define TESTS_UNIT_ENDPOINT_KEEPER_H

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/endpoint.h>
#include <troupe/io.h>

#include "tests/unit/actor/stage.h"

/* Written by the actor, read by the test where it is atomic. */
typedef struct keeper {
    char name[8], uri[512];
    char address[TRP_ENDPOINT_REASON_BYTES]; /* that it listens at; before `started` */
    bool produces;
    trp_endpoint_options options;
    trp_ref self, endpoint;
    trp_err opened;
    _Atomic uint32_t got, errors, done, started, stopped;
    _Atomic uint64_t exchange; /* the last one */
    bool keeps;                /* frees no message before keeper_let_go() */
    trp_msg *kept[64];
    _Atomic uint32_t kept_count;
} keeper;

typedef void (*keeper_fn)(trp_ctx *ctx, keeper *k);
typedef struct keeper_order {
    keeper_fn fn;
} keeper_order;
static trp_type keeper_order_type = {
    .name = "keeper.order", .bytes = sizeof(keeper_order), .tag = 1, .flags = TRP_TYPE_LOCAL
};
static trp_type *const keeper_types[] = { &keeper_order_type };
static const trp_protocol keeper_protocol = { "keeper", keeper_types, 1, 0 };

static inline void
keeper_got(keeper *k, const trp_endpoint_message *m, const trp_msg *msg)
{
    char text[256];
    size_t bytes = trp_bytes_copy_out(m->body, 0, text, sizeof text);
    const char *header = trp_endpoint_header_get(m, "file.name");
    header = header != NULL ? header : trp_endpoint_header_get(m, "timer.count");
    header = header != NULL ? header : trp_endpoint_header_get(m, "exec.status");
    header = header != NULL ? header : trp_endpoint_header_get(m, "http.status");
    stage_note("%s:got(%s,%.*s,%u)", k->name, header != NULL ? header : "", (int)bytes, text,
               (unsigned)m->ack);
    atomic_store(&k->exchange, m->exchange);
    if (k->keeps) {
        UNIT_EQUAL(trp_msg_dup(msg, &k->kept[atomic_load(&k->kept_count)]), TRP_OK);
        atomic_fetch_add(&k->kept_count, 1);
    }
    atomic_fetch_add(&k->got, 1);
}

static inline trp_err
keeper_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    keeper *k = *(keeper **)state;
    const trp_endpoint_message *m = trp_endpoint_message_of(msg);
    if (m != NULL) {
        keeper_got(k, m, msg);
    } else if (trp_msg_is(msg, &keeper_order_type)) {
        ((const keeper_order *)trp_msg_payload(msg))->fn(ctx, k);
    } else if (trp_msg_is(msg, &trp_endpoint_event_type)) {
        const trp_endpoint_event *e = trp_msg_payload(msg);
        if (e->event == TRP_ENDPOINT_STARTED) {
            snprintf(k->address, sizeof k->address, "%s", e->reason);
            atomic_fetch_add(&k->started, 1);
        } else {
            stage_note("%s:stopped(%s)", k->name, trp_err_name((trp_err)e->err));
            UNIT_EQUAL(e->reason[0] != '\0', e->err != 0);
            atomic_fetch_add(&k->stopped, 1);
        }
    } else if (trp_msg_is(msg, &trp_endpoint_done_type)) {
        stage_note("%s:done(%u)", k->name,
                   (unsigned)((const trp_endpoint_done *)trp_msg_payload(msg))->ack);
        atomic_fetch_add(&k->done, 1);
    } else if (trp_msg_is(msg, &trp_endpoint_error_type)) {
        const trp_endpoint_error *e = trp_msg_payload(msg);
        stage_note("%s:error(%u,%s)", k->name, (unsigned)e->ack, trp_err_name((trp_err)e->err));
        UNIT_TRUE(e->reason[0] != '\0');
        atomic_fetch_add(&k->errors, 1);
    } else {
        return TRP_EUNHANDLED;
    }
    return TRP_OK;
}

static inline trp_directive
keeper_decide(trp_ctx *ctx, void *state, const trp_failure *failure)
{
    (void)ctx;
    (void)state;
    (void)failure;
    return TRP_RESTART;
}
static const trp_strategy keeper_strategy = { .size = sizeof(trp_strategy),
                                              .decider = keeper_decide };

static inline trp_err
keeper_pre_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    keeper *k;
    memcpy(&k, trp_msg_payload(args), sizeof k);
    *(keeper **)state = k;
    k->self = trp_self(ctx);
    k->opened = k->produces ? trp_producer_open(ctx, k->uri, &k->options, &k->endpoint)
                            : trp_consumer_open(ctx, k->uri, &k->options, &k->endpoint);
    stage_note("%s:%s", k->name, trp_err_name(k->opened));
    return TRP_OK;
}

static const trp_behaviour keeper_behaviour = { .size = sizeof(trp_behaviour),
                                                .name = "keeper",
                                                .version = 1,
                                                .state_bytes = sizeof(keeper *),
                                                .receive = keeper_receive,
                                                .pre_start = keeper_pre_start,
                                                .strategy = &keeper_strategy };

static inline void
keeper_init(keeper *k, const char *name, bool produces)
{
    memset(k, 0, sizeof *k);
    snprintf(k->name, sizeof k->name, "%s", name);
    k->produces = produces;
    k->options = (trp_endpoint_options)TRP_ENDPOINT_OPTIONS_INIT;
}

/* Start the actor, and wait until its endpoint has started, or is refused. */
static inline void
keeper_start(trp_system *system, keeper *k)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    char opened[64];
    trp_ref ref;
    UNIT_REQUIRE(trp_protocol_register(&keeper_protocol) == TRP_OK);
    options.name = k->name;
    options.args_type = &trp_bytes_type;
    options.args = &k;
    options.args_bytes = sizeof k;
    UNIT_REQUIRE(trp_system_spawn(system, &keeper_behaviour, &options, &ref) == TRP_OK);
    snprintf(opened, sizeof opened, "%s:TRP_", k->name);
    UNIT_WAIT(stage_has(opened), 60000);
    if (k->opened == TRP_OK) {
        UNIT_WAIT(atomic_load(&k->started) > 0 || atomic_load(&k->stopped) > 0, 60000);
    }
}

static inline void
keeper_do(trp_system *system, const keeper *k, keeper_fn fn)
{
    keeper_order order = { fn };
    trp_system_tell(system, k->self, &keeper_order_type, &order, sizeof order);
}

static inline void
keeper_let_go(keeper *k)
{
    uint32_t count = atomic_exchange(&k->kept_count, 0);
    for (uint32_t i = 0; i < count; i++) {
        trp_msg_free(k->kept[i]);
    }
}

static inline void
keeper_let_go_now(trp_ctx *ctx, keeper *k)
{
    (void)ctx;
    keeper_let_go(k);
}

static inline void
keeper_send(trp_ctx *ctx, const keeper *k, const char *text, const char *name, uint64_t ack)
{
    const trp_endpoint_header header = { "file.name", name };
    trp_bytes body;
    UNIT_EQUAL(trp_bytes_copy(text, strlen(text), &body), TRP_OK);
    UNIT_EQUAL(trp_endpoint_send(ctx, k->endpoint, body, &header, name != NULL ? 1 : 0, ack),
               TRP_OK);
    trp_bytes_unref(&body);
}

/* Reply to the last message. */
static inline void
keeper_reply(trp_ctx *ctx, const keeper *k, const void *bytes, size_t count)
{
    trp_bytes body;
    UNIT_EQUAL(trp_bytes_copy(bytes, count, &body), TRP_OK);
    UNIT_EQUAL(trp_endpoint_reply(ctx, k->endpoint, atomic_load(&k->exchange), body, NULL, 0),
               TRP_OK);
    trp_bytes_unref(&body);
}

static inline void
keeper_reply_yes(trp_ctx *ctx, keeper *k)
{
    keeper_reply(ctx, k, "yes", 3);
}

/* ---- a folder of the test's own -------------------------------------------------------------- */

static char keeper_folder[64];

static inline void
folder_make(void)
{
    snprintf(keeper_folder, sizeof keeper_folder, "/tmp/troupe-endpoint-XXXXXX");
    UNIT_REQUIRE(mkdtemp(keeper_folder) != NULL);
}

static inline const char *
folder_path(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", keeper_folder, name);
    return path;
}

static inline bool
folder_has(const char *name)
{
    struct stat status;
    return stat(folder_path(name), &status) == 0;
}

/* Write a file aside and rename it, as a well-behaved program does. */
static inline void
folder_put(const char *name, const char *text)
{
    char aside[256];
    snprintf(aside, sizeof aside, "%s", folder_path(".aside"));
    FILE *file = fopen(aside, "w");
    UNIT_REQUIRE(file != NULL);
    UNIT_TRUE(fputs(text, file) >= 0);
    UNIT_EQUAL(fclose(file), 0);
    UNIT_EQUAL(rename(aside, folder_path(name)), 0);
}

static inline bool
folder_is(const char *name, const char *text)
{
    char data[256];
    FILE *file = fopen(folder_path(name), "r");
    size_t count = file != NULL ? fread(data, 1, sizeof data, file) : 0;
    if (file != NULL) {
        fclose(file);
    }
    return file != NULL && count == strlen(text) && memcmp(data, text, count) == 0;
}

static inline void
folder_remove(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", keeper_folder);
    UNIT_EQUAL(system(command), 0);
}

#endif

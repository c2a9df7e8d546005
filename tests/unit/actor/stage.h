/* stage.h - the fixture of scenario tests: a system whose log lines are kept, and actors that note
 * their events, so that a test reads like a script.
 */
#ifndef TESTS_UNIT_ACTOR_STAGE_H
#define TESTS_UNIT_ACTOR_STAGE_H

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <troupe/config.h>
#include <troupe/log.h>
#include <troupe/system.h>

#include "actor/actor.h"
#include "base/alloc.h"
#include "tests/unit/unit.h"

#define STAGE_BYTES 65536

/* The events so far, in order: words separated by blanks. */
typedef struct stage_book {
    pthread_mutex_t lock;
    size_t used;
    char text[STAGE_BYTES];
} stage_book;
static stage_book stage_events = { PTHREAD_MUTEX_INITIALIZER, 0, "" };
static stage_book stage_lines __attribute__((unused)) = { PTHREAD_MUTEX_INITIALIZER, 0, "" };

static inline void stage_write(stage_book *book, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static inline void
stage_write(stage_book *book, const char *format, ...)
{
    va_list arguments;
    int written;

    pthread_mutex_lock(&book->lock);
    if (book->used < STAGE_BYTES - 2) {
        if (book->used > 0) {
            book->text[book->used++] = ' ';
        }
        va_start(arguments, format);
        written = vsnprintf(book->text + book->used, STAGE_BYTES - book->used, format, arguments);
        va_end(arguments);
        if (written > 0) {
            book->used += (size_t)written < STAGE_BYTES - book->used ? (size_t)written
                                                                     : STAGE_BYTES - book->used - 1;
        }
    }
    pthread_mutex_unlock(&book->lock);
}
#define stage_note(...) stage_write(&stage_events, __VA_ARGS__)

static inline bool
stage_book_has(stage_book *book, const char *text)
{
    bool has;

    pthread_mutex_lock(&book->lock);
    has = strstr(book->text, text) != NULL;
    pthread_mutex_unlock(&book->lock);
    return has;
}
#define stage_has(text) stage_book_has(&stage_events, (text))

static inline size_t
stage_count(const char *text)
{
    size_t count = 0;

    pthread_mutex_lock(&stage_events.lock);
    for (const char *at = stage_events.text; (at = strstr(at, text)) != NULL; at += strlen(text)) {
        count++;
    }
    pthread_mutex_unlock(&stage_events.lock);
    return count;
}

static inline bool
stage_is(const char *text)
{
    bool is;

    pthread_mutex_lock(&stage_events.lock);
    is = strcmp(stage_events.text, text) == 0;
    pthread_mutex_unlock(&stage_events.lock);
    return is;
}

static inline void
stage_clear(stage_book *book)
{
    pthread_mutex_lock(&book->lock);
    book->used = 0;
    book->text[0] = 0;
    pthread_mutex_unlock(&book->lock);
}

/* Wait until the script is exactly this; on failure show what it was. */
#define STAGE_EXPECT(script)                                                                       \
    do {                                                                                           \
        UNIT_WAIT(stage_is(script), 60000);                                                        \
        if (!stage_is(script)) {                                                                   \
            printf("  was: %s\n", stage_events.text);                                              \
        }                                                                                          \
    } while (0)

/* Wait until a line with this text is logged: loggers write in their own time. */
#define STAGE_LOGGED(text) UNIT_WAIT(stage_book_has(&stage_lines, text), 60000)

static inline void
stage_log(void *arg, const trp_log_line *line)
{
    (void)arg;
    stage_write(&stage_lines, "[%d %s: %s]", (int)line->level, line->source, line->text);
}

static inline trp_config *
stage_config(const char *text)
{
    trp_config *config = NULL;
    trp_config_error error = { "" };

    UNIT_EQUAL(trp_config_parse_text("t.conf", text, &config, &error), TRP_OK);
    UNIT_TEXT(error.text, "");
    UNIT_REQUIRE(config != NULL);
    return config;
}

static inline trp_system *
stage_open_with(trp_system_options options)
{
    trp_system *system = NULL;

    stage_clear(&stage_events);
    stage_clear(&stage_lines);
    if (options.log == NULL) {
        options.log = stage_log;
    }
    if (options.workers == 0) {
        options.workers = 2;
    }
    UNIT_REQUIRE(trp_system_new("stage", &options, &system) == TRP_OK);
    return system;
}

static inline trp_system *
stage_open(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;

    return stage_open_with(options);
}

/* Open a system with this configuration. */
static inline trp_system *
stage_open_config(const char *text)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_config *config = stage_config(text);
    trp_system *system;

    options.config = config;
    system = stage_open_with(options);
    trp_config_unref(config);
    return system;
}

static inline void
stage_close(trp_system *system)
{
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trp_system_free(system);
}

static inline trp_ref
stage_spawn(trp_system *system, const trp_behaviour *behaviour, const char *name)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;

    options.name = name;
    UNIT_EQUAL(trp_system_spawn(system, behaviour, &options, &ref), TRP_OK);
    return ref;
}

static inline trp_ref
stage_child(trp_ctx *ctx, const trp_behaviour *behaviour, const char *name)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;

    options.name = name;
    UNIT_EQUAL(trp_spawn(ctx, behaviour, &options, &ref), TRP_OK);
    return ref;
}

static inline void
stage_tell(trp_system *system, trp_ref to, const char *text)
{
    trp_system_tell(system, to, &trp_string_type, text, strlen(text));
}

/* The number of dead letters so far: of one reason, of all. */
static inline uint64_t
stage_dead(trp_system *system, trp_dead_reason reason)
{
    trp_system_stats stats = { .size = sizeof stats };

    trp_system_stats_get(system, &stats);
    return stats.dead_letters[reason];
}
static inline uint64_t
stage_dead_sum(trp_system *system)
{
    uint64_t sum = 0;

    for (int i = 0; i < TRP_DEAD_REASON_COUNT; i++) {
        sum += stage_dead(system, (trp_dead_reason)i);
    }
    return sum;
}

/* The ref of an actor on another node, which never answers. */
static inline trp_ref
stage_far(trp_system *system)
{
    trpi_node_id id = { .uid = 1 };
    trp_ref ref = { 0, 4, 5, 0 };

    UNIT_EQUAL(trpi_address_parse("troupe.tcp://far@192.0.2.1:2552", &id.address, NULL, NULL),
               TRP_OK);
    UNIT_EQUAL(trpi_node_intern(system, &id, &ref.node), TRP_OK);
    return ref;
}

/* A remoting without connections, which loses every message. */
static inline trp_err
stage_lost_connect(void *arg, trp_system *system, uint32_t node)
{
    (void)arg;
    (void)system;
    (void)node;
    return TRP_ECONN;
}
static inline void
stage_lost_signal(void *arg, trp_system *system, uint32_t node, enum trpi_remote_signal signal,
                  trp_ref target, trp_ref from, uint32_t flag)
{
    (void)arg;
    (void)system;
    (void)node;
    (void)signal;
    (void)target;
    (void)from;
    (void)flag;
}

/* Is msg this text? */
static inline bool
stage_said(const trp_msg *msg, const char *text)
{
    return trp_msg_is(msg, &trp_string_type) && trp_msg_bytes(msg) == strlen(text) &&
           memcmp(trp_msg_payload(msg), text, strlen(text)) == 0;
}

/* Note the word, then keep the thread until go is true. */
static inline void
stage_hold(const char *word, _Atomic bool *go)
{
    stage_note("%s", word);
    while (!atomic_load(go)) {
        unit_pause();
    }
}

/* The last element of an actor's path. */
static inline const char *
stage_name(trp_system *system, trp_ref ref, char *buffer, size_t bytes)
{
    const char *slash;

    trp_path(system, ref, buffer, bytes);
    slash = strrchr(buffer, '/');
    return slash == NULL ? buffer : slash + 1;
}

/* Hooks that note "name+" and "name-". */
static inline trp_err
stage_started(trp_ctx *ctx, void *state, const trp_msg *args)
{
    char path[128];

    (void)state;
    (void)args;
    stage_note("%s+", stage_name(trp_ctx_system(ctx), trp_self(ctx), path, sizeof path));
    return TRP_OK;
}
static inline void
stage_stopped(trp_ctx *ctx, void *state)
{
    char path[128];

    (void)state;
    stage_note("%s-", stage_name(trp_ctx_system(ctx), trp_self(ctx), path, sizeof path));
}

/* Tell the text and wait for the answer, which is not noted. */
static inline trp_err
stage_ask(trp_system *system, trp_ref to, const char *text, char *answer, size_t bytes)
{
    trp_msg *reply = NULL;
    trp_err err = trp_system_ask(system, to, &trp_string_type, text, strlen(text), 60000, &reply);

    if (err == TRP_OK) {
        snprintf(answer, bytes, "%.*s", (int)trp_msg_bytes(reply),
                 (const char *)trp_msg_payload(reply));
        trp_msg_free(reply);
    }
    return err;
}

#endif

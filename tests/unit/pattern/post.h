/* post.h - for the tests of durable mailboxes: a clerk whose mail is kept in a directory. */
#ifndef TESTS_PATTERN_POST_H
#define TESTS_PATTERN_POST_H

#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/troupe.h>

#pragma GCC diagnostic ignored "-Wunused-function" /* no test needs them all */
#pragma GCC diagnostic ignored "-Wunused-variable"

#include "tests/unit/pattern/clerk.h"

/* known to the system that tells, and not to the next one */
#define RARE_MESSAGES(M, P) M(P, bird, POST_NUMBER)
TRP_PROTOCOL_DECLARE(rare, RARE_MESSAGES) /* defined in durable_test.c */

static trp_system *system_;
static char directory[64];

/* Also in the child, where no test runs. */
static trp_err
system_make(const trp_durable_options *options)
{
    trp_system_options system_options = TRP_SYSTEM_OPTIONS_INIT;
    trp_durable_options own = TRP_DURABLE_OPTIONS_INIT;
    trp_err err = trp_protocol_register(&post_protocol);

    system_options.workers = 2;
    system_options.log_level = TRP_LOG_OFF;
    err = err == TRP_OK ? trp_system_new("post", &system_options, &system_) : err;
    if (options != NULL) {
        own = *options;
    }
    own.directory = directory;
    return err == TRP_OK ? trp_durable_register(system_, "kept", &own) : err;
}

static void
system_start(const trp_durable_options *options)
{
    UNIT_REQUIRE(system_make(options) == TRP_OK);
    atomic_store(&seen_count, 0);
    atomic_store(&holding, 0);
    atomic_store(&gate_open, 0);
}

static void
system_stop(void)
{
    atomic_store(&gate_open, 1);
    UNIT_EQUAL(trp_system_stop(system_, 60000), TRP_OK);
    trp_system_free(system_);
}

static void
directory_make(void)
{
    (void)snprintf(directory, sizeof directory, "durable-XXXXXX");
    UNIT_REQUIRE(mkdtemp(directory) != NULL);
}

static void
directory_remove(void)
{
    static const char *const files[] = { "data.mdb", "owner", "acks", "begun" };
    char path[128];

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", directory, files[i]);
        (void)unlink(path);
    }
    UNIT_EQUAL(rmdir(directory), 0);
}

static trp_err
spawn_as(const char *name, const trp_behaviour *behaviour, const char *mailbox, trp_ref *ret_ref)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;

    options.name = name;
    options.mailbox = mailbox;
    return trp_system_spawn(system_, behaviour, &options, ret_ref);
}

static trp_ref
spawn_clerk(void)
{
    trp_ref ref = TRP_REF_NONE;

    UNIT_REQUIRE(spawn_as("clerk", &clerk, "kept", &ref) == TRP_OK);
    return ref;
}

static void
tell_from(trp_ref to, trp_ref sender, uint64_t number, trp_ref back)
{
    post_letter letter = { number, back };

    trp_system_tell_as(system_, to, sender, &post_letter_type, &letter, sizeof letter);
}

static void
number_tell(trp_ref to, uint64_t number)
{
    trp_ref none = TRP_REF_NONE;

    tell_from(to, none, number, none);
}

/* Spawn a clerk that is held in a message, so that further messages wait. */
static trp_ref
spawn_held(void)
{
    trp_ref ref = spawn_clerk();
    post_hold hold = { 0 };

    trp_system_tell(system_, ref, &post_hold_type, &hold, sizeof hold);
    UNIT_REQUIRE(UNIT_WAIT(atomic_load(&holding) == 1, 5000));
    return ref;
}

static uint64_t
dead_letters(trp_dead_reason reason)
{
    trp_system_stats stats = { .size = sizeof stats };

    trp_system_stats_get(system_, &stats);
    return stats.dead_letters[reason];
}

/* Stop the held clerk while messages wait: those stay stored. */
static void
stop_held(trp_ref ref)
{
    trp_system_stop_actor(system_, ref);
    system_stop();
}

static int
open_in_directory(const char *name, int flags)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    return open(path, flags, 0600);
}

static char last_line[1024]; /* the error line of the last registration */

static void
keep_line(void *arg, const trp_log_line *line)
{
    (void)arg;
    if (line->level == TRP_LOG_ERROR) {
        (void)snprintf(last_line, sizeof last_line, "%s", line->text);
    }
}

/* Register the mailbox and return the error; its log line is in last_line. */
static trp_err
register_here(void)
{
    trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
    trp_system_options system_options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system;
    trp_err err;

    system_options.workers = 1;
    system_options.log_level = TRP_LOG_ERROR;
    system_options.log = keep_line;
    last_line[0] = 0;
    UNIT_REQUIRE(trp_system_new("look", &system_options, &system) == TRP_OK);
    options.directory = directory;
    err = trp_durable_register(system, "kept", &options);
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK); /* its last line is out */
    trp_system_free(system);
    return err;
}

#endif

/* node_log_test.c - the output of log lines: a pipe without a reader, a file that is moved away,
 * and the three formats. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/node/node_log.h"
#include "tests/unit/unit.h"

static uint64_t
now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void
say(trpi_node_log *log, trp_log_level level, const char *text)
{
    trp_log_line line = { .level = level, .source = "s", .text = text };
    trpi_node_log_line(log, &line);
}

static char heard[1 << 20]; /* all that was read */

/* Take what is there. Returns how often `what` stands in all of it. */
static int
drained(int fd, const char *what)
{
    size_t used = strlen(heard);
    int count = 0;
    for (ssize_t got; (got = read(fd, heard + used, sizeof heard - used - 1)) > 0;) {
        used += (size_t)got;
        heard[used] = '\0';
    }
    for (const char *at = heard; (at = strstr(at, what)) != NULL; at++) {
        count++;
    }
    return count;
}

/* The sum of what the lines about lost lines say. */
static uint64_t
told_lost(void)
{
    static const char words[] = "lines were lost lines=";
    uint64_t sum = 0;
    for (const char *at = heard; (at = strstr(at, words)) != NULL; at++) {
        sum += strtoull(at + sizeof words - 1, NULL, 10);
    }
    return sum;
}

/* Standard error is a pipe: returns its reading end, and what standard error was before. */
static int
stderr_to_pipe(int *ret_before)
{
    int fds[2];
    UNIT_REQUIRE(pipe2(fds, O_CLOEXEC) == 0);
    UNIT_REQUIRE(fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0);
    *ret_before = dup(STDERR_FILENO);
    UNIT_REQUIRE(dup2(fds[1], STDERR_FILENO) == STDERR_FILENO);
    (void)close(fds[1]);
    return fds[0];
}

static void
nobody_waits_for_a_pipe_that_is_not_read(void)
{
    enum { LINES = 2000 }; /* of 1 KiB; a pipe holds 64 KiB, or a few times that */
    char text[1000];
    trpi_node_log log = { 0 };
    int before, reader = stderr_to_pipe(&before);
    UNIT_EQUAL(trpi_node_log_open(&log, 0, TRP_LOG_INFO, ""), TRP_OK);
    UNIT_EQUAL(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0); /* others share it */
    memset(text, 'm', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    uint64_t began_ms = now_ms();
    for (int i = 0; i < LINES; i++) {
        say(&log, TRP_LOG_WARNING, text);
    }
    UNIT_TRUE(now_ms() - began_ms < 20u * TRPI_LOG_PATIENCE_MS);
    uint64_t lost = trpi_node_log_lost(&log);
    UNIT_TRUE(lost > 0 && lost < LINES);
    UNIT_EQUAL(drained(reader, "warning s mmm"), LINES - (int)lost); /* the others are whole */
    say(&log, TRP_LOG_INFO, "there is room again");
    say(&log, TRP_LOG_DEBUG, "too fine");
    say(&log, TRP_LOG_INFO, "and no more is lost");
    UNIT_EQUAL(drained(reader, "info    s there is room again\n"), 1);
    UNIT_EQUAL(drained(reader, "and no more is lost\n"), 1);
    UNIT_EQUAL(drained(reader, "too fine"), 0);
    UNIT_EQUAL(told_lost(), lost);
    UNIT_EQUAL(trpi_node_log_lost(&log), lost);
    trpi_node_log_close(&log);
    (void)dup2(before, STDERR_FILENO);
    (void)close(before);
    (void)close(reader);
}

static long
bytes_of(const char *path)
{
    struct stat file;
    return stat(path, &file) == 0 ? (long)file.st_size : -1;
}

/* A full disk: the lines are counted, status says it, and the log, when there is room again. */
static void
a_full_disk_is_told(void)
{
    char directory[] = "/tmp/troupe-log-XXXXXX", path[64], text[200];
    trpi_node_log log = { 0 };
    UNIT_REQUIRE(mkdtemp(directory) != NULL);
    snprintf(path, sizeof path, "%s/log", directory);
    UNIT_EQUAL(symlink("/dev/full", path), 0);
    UNIT_EQUAL(trpi_node_log_open(&log, 0, TRP_LOG_INFO, path), TRP_OK);
    UNIT_TRUE(!trpi_node_log_problem(&log, text, sizeof text));
    say(&log, TRP_LOG_INFO, "first");
    say(&log, TRP_LOG_INFO, "second");
    UNIT_EQUAL(trpi_node_log_lost(&log), 2);
    UNIT_REQUIRE(trpi_node_log_problem(&log, text, sizeof text));
    UNIT_TEXT(
        text,
        "the log cannot be written (ENOSPC): 2 lines were lost; make room, or move it away and "
        "send SIGUSR1");
    UNIT_EQUAL(unlink(path), 0);
    UNIT_EQUAL(trpi_node_log_reopen(&log), TRP_OK);
    say(&log, TRP_LOG_INFO, "third");
    UNIT_TRUE(!trpi_node_log_problem(&log, text, sizeof text));
    int fd = open(path, O_RDONLY);
    heard[0] = '\0';
    UNIT_EQUAL(drained(fd, "lines were lost lines=2 error=ENOSPC\n"), 1);
    UNIT_EQUAL(drained(fd, "third\n"), 1);
    (void)close(fd);
    trpi_node_log_close(&log);
    (void)unlink(path);
    (void)rmdir(directory);
}

/* node-log-L3: the disk takes a part of a line and no more: what is said when there is room again
 * begins a line of its own, in each format. */
static void
a_disk_that_is_full_within_a_line_is_told(void)
{
    enum { LINES = 10 };
    for (int format = 0; format <= 2; format++) {
        char directory[] = "/tmp/troupe-log-XXXXXX", path[64];
        trpi_node_log log = { 0 };
        struct rlimit before, small;
        UNIT_REQUIRE(mkdtemp(directory) != NULL);
        snprintf(path, sizeof path, "%s/log", directory);
        UNIT_EQUAL(trpi_node_log_open(&log, format, TRP_LOG_INFO, path), TRP_OK);
        UNIT_REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
        small = before;
        small.rlim_cur = 200; /* as a full file system: the rest of a line finds no room */
        UNIT_TRUE(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
        UNIT_REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
        for (int i = 0; i < LINES; i++) {
            say(&log, TRP_LOG_INFO, "a line that is longer than what is left of the disk");
        }
        UNIT_REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
        uint64_t lost = trpi_node_log_lost(&log);
        UNIT_TRUE(lost > 0 && lost < LINES);
        say(&log, TRP_LOG_INFO, "there is room again");
        int fd = open(path, O_RDONLY);
        heard[0] = '\0';
        UNIT_EQUAL(drained(fd, "there is room again"), 1);
        UNIT_EQUAL(drained(fd, "error=EFBIG"), 1);
        UNIT_EQUAL(told_lost(), lost);
        UNIT_TRUE(heard[small.rlim_cur] == '\n'); /* behind the torn line */
        UNIT_EQUAL(heard[strlen(heard) - 1], '\n');
        (void)close(fd);
        trpi_node_log_close(&log);
        (void)unlink(path);
        (void)rmdir(directory);
    }
}

static void
a_file_that_was_moved_away_is_made_again(void)
{
    char directory[] = "/tmp/troupe-log-XXXXXX", path[64], moved[64], none[64];
    trpi_node_log log = { 0 }, bad = { 0 };
    UNIT_REQUIRE(mkdtemp(directory) != NULL);
    snprintf(path, sizeof path, "%s/log", directory);
    snprintf(moved, sizeof moved, "%s/log.1", directory);
    snprintf(none, sizeof none, "%s/no/log", directory);
    UNIT_EQUAL(trpi_node_log_open(&bad, 0, TRP_LOG_INFO, none), TRP_EIO);
    trpi_node_log_close(&bad);
    UNIT_EQUAL(trpi_node_log_open(&log, 1, TRP_LOG_INFO, path), TRP_OK);
    say(&log, TRP_LOG_INFO, "first");
    long first = bytes_of(path);
    UNIT_TRUE(first > 0);
    UNIT_EQUAL(rename(path, moved), 0);
    say(&log, TRP_LOG_INFO, "other");
    UNIT_EQUAL(bytes_of(moved), 2 * first);
    UNIT_EQUAL(trpi_node_log_reopen(&log), TRP_OK);
    say(&log, TRP_LOG_INFO, "third");
    UNIT_EQUAL(bytes_of(moved), 2 * first);
    UNIT_EQUAL(bytes_of(path), first);
    UNIT_EQUAL(unlink(path), 0);
    UNIT_EQUAL(mkdir(path, 0700), 0); /* in the way: the old one stays */
    UNIT_EQUAL(trpi_node_log_reopen(&log), TRP_EIO);
    trpi_node_log_close(&log);
    (void)rmdir(path);
    (void)unlink(moved);
    (void)rmdir(directory);
}

static void
standard_error_is_not_opened_again(void)
{
    trpi_node_log log = { 0 };
    UNIT_EQUAL(trpi_node_log_open(&log, 0, TRP_LOG_INFO, NULL), TRP_OK);
    UNIT_EQUAL(trpi_node_log_reopen(&log), TRP_ESTATE);
    trpi_node_log_close(&log);
}

static void
looks_like(int format, trp_log_level level, trp_err cause, const char *text, const char *want)
{
    char buffer[512];
    trp_log_line line = { .level = level, .source = "node", .text = text, .cause = cause };
    buffer[trp_log_format(&line, format, buffer, sizeof buffer)] = '\0';
    const char *from = format == 1 ? strstr(buffer, "\"message\"") : buffer;
    UNIT_TEXT(from != NULL ? from : buffer, want);
}

/* LOG-10, CONTRIB-46 */
static void
fields_causes_and_priorities_are_told_to_machines(void)
{
    looks_like(1, TRP_LOG_INFO, TRP_OK, "started version=0.1.0 why=\"so it \\is\" pid=7",
               "\"message\":\"started version=0.1.0 why=\\\"so it \\\\is\\\" pid=7\",\"fields\":"
               "{\"version\":\"0.1.0\",\"why\":\"so it \\\\is\",\"pid\":\"7\"}}\n");
    looks_like(1, TRP_LOG_INFO, TRP_OK, "a=1 is no field here",
               "\"message\":\"a=1 is no field here\"}\n");
    looks_like(1, TRP_LOG_INFO, TRP_OK, "b=", "\"message\":\"b=\",\"fields\":{\"b\":\"\"}}\n");
    looks_like(1, TRP_LOG_INFO, TRP_OK, "c=\"open", "\"message\":\"c=\\\"open\"}\n");
    looks_like(1, TRP_LOG_ERROR, TRP_ETIMEDOUT, "late",
               "\"message\":\"late\",\"cause\":\"TRP_ETIMEDOUT\"}\n");
    static const char *const journal[] = { [TRP_LOG_ERROR] = "<3>node x\n",
                                           [TRP_LOG_WARNING] = "<4>node x\n",
                                           [TRP_LOG_INFO] = "<6>node x\n",
                                           [TRP_LOG_DEBUG] = "<7>node x\n" };
    for (trp_log_level level = TRP_LOG_ERROR; level <= TRP_LOG_DEBUG; level++) {
        looks_like(2, level, TRP_OK, "x", journal[level]);
    }
}

/* At the edge of the room: pairs are whole or absent, the object is whole. */
static void
many_fields_are_cut_between_two(void)
{
    char text[TRP_LOG_TEXT_BYTES_MAX], buffer[2048];
    size_t used = 0;
    for (int i = 0; used + 16 < sizeof text; i++) {
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%sk%d=\"\\\\\"", i ? " " : "", i);
    }
    trp_log_line line = { .level = TRP_LOG_INFO, .source = "s", .text = text };
    for (size_t room = 256; room <= sizeof buffer; room++) {
        size_t bytes = trp_log_format(&line, 1, buffer, room);
        UNIT_REQUIRE(bytes < room && strcmp(buffer + bytes - 2, "}\n") == 0);
        const char *fields = strstr(buffer, "\"fields\":{");
        if (fields != NULL) {
            UNIT_TRUE(strstr(fields, "}}\n") != NULL);
            UNIT_TRUE(strstr(fields, ",}") == NULL && strstr(fields, "\":}") == NULL);
        }
    }
}

UNIT_BEGIN("node_log")
UNIT(nobody_waits_for_a_pipe_that_is_not_read)
UNIT(a_full_disk_is_told)
UNIT(a_disk_that_is_full_within_a_line_is_told)
UNIT(a_file_that_was_moved_away_is_made_again)
UNIT(standard_error_is_not_opened_again)
UNIT(fields_causes_and_priorities_are_told_to_machines)
UNIT(many_fields_are_cut_between_two)
UNIT_END

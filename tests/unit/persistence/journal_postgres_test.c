/* journal_postgres_test.c - the options of a journal in PostgreSQL, without a server; with one:
 * tests/system/postgres.sh. */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <troupe/journal_postgres.h>

/* Open with these options and close again; why is the reason. */
static trp_err
opened(const trp_journal_postgres_options *options, char why[512])
{
    const trp_journal_driver *driver = NULL;
    why[0] = '\0';
    trp_err err = trp_journal_postgres_open(options, &driver, why, 512);
    if (err == TRP_OK) {
        driver->close(driver->arg);
    }
    return err;
}

static bool
is_built(void)
{
    trp_journal_postgres_options options = TRP_JOURNAL_POSTGRES_OPTIONS_INIT;
    char why[512];
    return opened(&options, why) != TRP_EUNSUPPORTED;
}

static void
a_build_without_postgres_or_libpq_says_so(void)
{
    trp_journal_postgres_options options = TRP_JOURNAL_POSTGRES_OPTIONS_INIT;
    char why[512];
    options.url = "postgresql://nobody@127.0.0.1:1/none";
    trp_err err = opened(&options, why);
    if (err == TRP_EUNSUPPORTED) {
        UNIT_TRUE(strstr(why, "--without-postgres") != NULL || strstr(why, "libpq5") != NULL);
        UNIT_EQUAL(trp_journal_postgres_init(&options, NULL, why, sizeof why), TRP_EUNSUPPORTED);
    } else {
        UNIT_EQUAL(err, TRP_OK);
    }
}

static void
wrong_options_are_refused_with_a_reason(void)
{
    trp_journal_postgres_options options = TRP_JOURNAL_POSTGRES_OPTIONS_INIT;
    char why[512];
    if (!is_built()) {
        return;
    }
    UNIT_EQUAL(trp_journal_postgres_open(NULL, NULL, NULL, 0), TRP_EINVAL);
    UNIT_EQUAL(opened(&options, why), TRP_EINVAL);
    options.url = "host=127.0.0.1 port=1";
    options.schema = "Upper";
    UNIT_EQUAL(opened(&options, why), TRP_EINVAL);
    UNIT_TRUE(strstr(why, "schema") != NULL);
    options.schema = "a123456789b123456789c123456789d123456789e123456789f123456789g123";
    UNIT_EQUAL(opened(&options, why), TRP_EINVAL);
    options.schema++;                              /* the longest */
    UNIT_EQUAL(opened(&options, why), TRP_EINVAL); /* it begins with a digit */
    options.schema = "a23456789b123456789c123456789d123456789e123456789f123456789g123";
    UNIT_EQUAL(opened(&options, why), TRP_OK);
    options.schema = NULL;
    options.readers = TRP_JOURNAL_POSTGRES_READERS_MAX + 1;
    UNIT_EQUAL(opened(&options, why), TRP_EINVAL);
    options.readers = TRP_JOURNAL_POSTGRES_READERS_MAX;
    options.batch_max = TRP_JOURNAL_POSTGRES_BATCH_MAX + 1;
    UNIT_EQUAL(opened(&options, why), TRP_EINVAL);
    options.batch_max = TRP_JOURNAL_POSTGRES_BATCH_MAX;
    UNIT_EQUAL(opened(&options, why), TRP_OK);
}

static void
a_wrong_connection_string_is_not_quoted(void)
{
    trp_journal_postgres_options options = TRP_JOURNAL_POSTGRES_OPTIONS_INIT;
    char why[512];
    if (!is_built()) {
        return;
    }
    options.url = "host=127.0.0.1 password='hunter22";
    UNIT_EQUAL(opened(&options, why), TRP_ECONFIG);
    UNIT_TRUE(strstr(why, "hunter22") == NULL && why[0] != '\0');
    options.url = "postgresql://u:hunter22@127.0.0.1:1/x?nothing=1";
    UNIT_EQUAL(opened(&options, why), TRP_ECONFIG);
    UNIT_TRUE(strstr(why, "hunter22") == NULL);
}

static void
a_server_that_is_not_there_is_no_error_of_open_but_of_init(void)
{
    trp_journal_postgres_options options = TRP_JOURNAL_POSTGRES_OPTIONS_INIT;
    char why[512];
    if (!is_built()) {
        return;
    }
    options.url = "host=127.0.0.1 port=1 user=x dbname=x password=hunter22";
    UNIT_EQUAL(opened(&options, why), TRP_OK);
    UNIT_EQUAL(trp_journal_postgres_init(&options, NULL, why, sizeof why), TRP_ECONN);
    UNIT_TRUE(strstr(why, "hunter22") == NULL && why[0] != '\0');
    options.password_file = "/nowhere/password";
    UNIT_EQUAL(trp_journal_postgres_init(&options, NULL, why, sizeof why), TRP_ECONFIG);
    UNIT_TRUE(strstr(why, "/nowhere/password") != NULL);
}

/* A server as far as a connection's set-up: it refuses the statements, and ends the answer of one
 * connection only, that of changes. */
#define SERVED 3 /* connections of a journal with two readers */

typedef struct server {
    int fd; /* listens */
    int conns[SERVED];
    bool has_served; /* all of them */
    char directory[64];
    struct sockaddr_un address;
} server;

static bool
server_read(int fd, void *bytes, size_t count)
{
    return count == 0 || recv(fd, bytes, count, MSG_WAITALL) == (ssize_t)count;
}

static uint32_t
server_number(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Read the first message, which has no letter, or others up to a sync. True: there was a text. */
static bool
server_take(int fd, bool is_first, const char *text)
{
    static unsigned char body[65536];
    bool is_found = false;
    for (;;) {
        unsigned char head[5] = { 'S', 0, 0, 0, 0 };
        if (!server_read(fd, is_first ? head + 1 : head, is_first ? 4 : 5)) {
            return false;
        }
        uint32_t bytes = server_number(head + 1) - 4;
        if (bytes > sizeof body || !server_read(fd, body, bytes)) {
            return false;
        }
        is_found = is_found || memmem(body, bytes, text, strlen(text)) != NULL;
        if (head[0] == 'S') {
            return is_found;
        }
    }
}

static bool
server_send(int fd, const void *bytes, size_t count)
{
    return send(fd, bytes, count, MSG_NOSIGNAL) == (ssize_t)count;
}

static void *
server_run(void *arg)
{
    static const char welcome[] = "R\0\0\0\10\0\0\0\0"
                                  "S\0\0\0\30server_version\00015.0\0"
                                  "S\0\0\0\46default_transaction_read_only\0off\0"
                                  "S\0\0\0\27in_hot_standby\0off\0"
                                  "Z\0\0\0\5I";
    static const char refusal[] = "E\0\0\0\33SERROR\0C3F000\0Mabsent\0";
    static const char ready[] = "Z\0\0\0\5I";
    server *s = arg;
    int changes = -1;
    bool is_right = true;
    for (int i = 0; is_right && i < SERVED; i++) {
        s->conns[i] = accept(s->fd, NULL, NULL);
        struct timeval limit = { 20, 0 };
        is_right = s->conns[i] >= 0 &&
                   setsockopt(s->conns[i], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
                   server_take(s->conns[i], true, "user") &&
                   server_send(s->conns[i], welcome, sizeof welcome - 1);
        if (is_right && server_take(s->conns[i], false, "pg_advisory_lock")) {
            changes = s->conns[i];
        }
    }
    for (int i = 0; is_right && i < SERVED; i++) {
        is_right = s->conns[i] == changes || server_send(s->conns[i], refusal, sizeof refusal);
    }
    s->has_served = is_right && changes >= 0 && server_send(changes, refusal, sizeof refusal) &&
                    server_send(changes, ready, sizeof ready - 1);
    return NULL;
}

static bool
server_begin(server *s)
{
    struct timeval limit = { 20, 0 };
    (void)snprintf(s->directory, sizeof s->directory, "/tmp/troupe-test-XXXXXX");
    if (mkdtemp(s->directory) == NULL) {
        return false;
    }
    s->address.sun_family = AF_UNIX;
    (void)snprintf(s->address.sun_path, sizeof s->address.sun_path, "%s/.s.PGSQL.5432",
                   s->directory);
    s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return s->fd >= 0 && setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
           bind(s->fd, (struct sockaddr *)&s->address, sizeof s->address) == 0 &&
           listen(s->fd, SERVED) == 0;
}

/* An answer without its end is freed: a leak is a finding of AddressSanitizer. */
static void
a_journal_without_tables_is_closed_while_a_connection_is_set_up(void)
{
    trp_journal_postgres_options options = TRP_JOURNAL_POSTGRES_OPTIONS_INIT;
    const trp_journal_driver *driver = NULL;
    server s = { .fd = -1, .conns = { -1, -1, -1 } };
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    pthread_t thread;
    char url[128];
    char why[512];
    if (!is_built()) {
        return;
    }
    UNIT_REQUIRE(server_begin(&s));
    UNIT_REQUIRE(pthread_create(&thread, NULL, server_run, &s) == 0);
    (void)snprintf(url, sizeof url, "host=%s port=5432 user=user dbname=x", s.directory);
    options.url = url;
    options.readers = SERVED - 1;
    UNIT_EQUAL(trp_journal_postgres_open(&options, &driver, why, sizeof why), TRP_OK);
    op.kind = TRP_JOURNAL_IDS;
    op.timeout_ms = 20000;
    UNIT_EQUAL(trp_journal_call(driver, &op), TRP_ECONFIG);
    UNIT_TRUE(strstr(op.why, "troupe journal init") != NULL);
    driver->close(driver->arg);
    UNIT_EQUAL(pthread_join(thread, NULL), 0);
    UNIT_TRUE(s.has_served);
    for (int i = 0; i < SERVED; i++) {
        (void)close(s.conns[i]);
    }
    (void)close(s.fd);
    (void)unlink(s.address.sun_path);
    (void)rmdir(s.directory);
}

UNIT_BEGIN("journal_postgres")
UNIT(a_build_without_postgres_or_libpq_says_so)
UNIT(wrong_options_are_refused_with_a_reason)
UNIT(a_wrong_connection_string_is_not_quoted)
UNIT(a_server_that_is_not_there_is_no_error_of_open_but_of_init)
UNIT(a_journal_without_tables_is_closed_while_a_connection_is_set_up)
UNIT_END

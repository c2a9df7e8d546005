/* journal_postgres.c - the programs of tests/system/postgres.sh; that of deletions is in
 * journal_postgres_delete.c.
 *
 *   journal_postgres lmdb               whether the journal in a directory is built as well
 *   journal_postgres built | init URL   whether there is such a journal; makes its tables
 *   journal_postgres kit URL            the conformance kit
 *   journal_postgres load URL IDS       IDS writers at once, until SIGTERM, whatever happens to the
 *                                       server; then the stored events are compared with the
 *                                       acknowledged ones. Prints "acked N" for each thousand,
 *                                       "begun N" when each id has an event
 *   journal_postgres delete URL         deletions of many events, and what others do meanwhile
 *   journal_postgres wait URL           operations that wait for a server that is away, and limits
 *   journal_postgres hang URL PID       a server that takes connections and answers nothing: PID is
 *                                       its main process, which is stopped with its children
 */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#include <troupe/journal_kit.h>
#include <troupe/journal_postgres.h>

#include "persistence/postgres_libpq.h"
#include "tests/system/journal_postgres.h"

int failures;

void
check(bool holds, const char *name, const char *detail)
{
    printf("%s %s%s%s\n", holds ? "PASS" : "FAIL", name, holds ? "" : ": ", holds ? "" : detail);
    (void)fflush(stdout);
    failures += !holds;
}

#ifdef HAVE_POSTGRES

static void
pass_ms(long ms)
{
    struct timespec time = { ms / 1000, ms % 1000 * 1000000 };
    (void)nanosleep(&time, NULL);
}

trp_err
sql(const char *url, const char *text, long *ret_number)
{
    char why[512];
    const trpi_libpq *pq = trpi_libpq_get(why, sizeof why);
    const char *keywords[] = { "dbname", NULL };
    const char *values[] = { url, NULL };
    PGconn *conn = pq != NULL ? pq->PQconnectdbParams(keywords, values, 1) : NULL;
    trp_err err = TRP_EFAILED;
    if (conn != NULL) {
        PGresult *result = pq->PQexec(conn, text);
        ExecStatusType status = pq->PQresultStatus(result);
        err = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ? TRP_OK : TRP_EFAILED;
        if (ret_number != NULL && status == PGRES_TUPLES_OK && pq->PQntuples(result) > 0) {
            *ret_number = strtol(pq->PQgetvalue(result, 0, 0), NULL, 10);
        }
        pq->PQclear(result);
        pq->PQfinish(conn);
    }
    return err;
}

trp_journal_postgres_options
options_of(const char *url)
{
    trp_journal_postgres_options options = TRP_JOURNAL_POSTGRES_OPTIONS_INIT;
    options.url = url;
    return options;
}

/* ---- the conformance kit --------------------------------------------------------------------- */

#define LATE_ANSWER_MS 1000

static bool is_late_law; /* a connection without an answer is given up soon */

static trp_err
kit_open(void *arg, const trp_journal_driver **ret_driver)
{
    trp_journal_postgres_options options = options_of(arg);
    char why[512];
    options.answer_timeout_ms = is_late_law ? LATE_ANSWER_MS : 0;
    trp_err err = trp_journal_postgres_open(&options, ret_driver, why, sizeof why);
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    if (err != TRP_OK) {
        fprintf(stderr, "%s\n", why);
        return err;
    }
    op.kind = TRP_JOURNAL_IDS; /* it waits until there is a connection */
    err = trp_journal_call(*ret_driver, &op);
    return err;
}

static trp_err
kit_forget(void *arg)
{
    trp_journal_postgres_options options = options_of(arg);
    char why[512];
    trp_err err = sql(arg, "DROP SCHEMA IF EXISTS troupe CASCADE", NULL);
    if (err == TRP_OK) {
        err = trp_journal_postgres_init(&options, NULL, why, sizeof why);
        if (err != TRP_OK) {
            fprintf(stderr, "%s\n", why);
        }
    }
    return err;
}

/* Stops the process of the server that carries out changes, for longer than the journal waits; it
 * goes on with what it was sent. */
static struct {
    pthread_t thread;
    pthread_mutex_t lock;
    bool is_over; /* under lock */
} disturber = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool
disturber_is_over(void)
{
    pthread_mutex_lock(&disturber.lock);
    bool is_over = disturber.is_over;
    pthread_mutex_unlock(&disturber.lock);
    return is_over;
}

static void *
disturber_run(void *arg)
{
    while (!disturber_is_over()) {
        long pid = 0;
        (void)sql(arg,
                  "SELECT l.pid FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 1"
                  " AND l.granted AND l.pid <> pg_backend_pid() LIMIT 1",
                  &pid);
        if (pid > 1 && kill((pid_t)pid, SIGSTOP) == 0) {
            pass_ms(LATE_ANSWER_MS + 400);
            (void)kill((pid_t)pid, SIGCONT);
        }
        pass_ms(100);
    }
    return NULL;
}

static trp_err
kit_disturb(void *arg, int on)
{
    if (!on) {
        pthread_mutex_lock(&disturber.lock);
        disturber.is_over = true;
        pthread_mutex_unlock(&disturber.lock);
        return pthread_join(disturber.thread, NULL) == 0 ? TRP_OK : TRP_EFAILED;
    }
    return pthread_create(&disturber.thread, NULL, disturber_run, arg) == 0 ? TRP_OK : TRP_EFAILED;
}

static void
kit(char *url)
{
    trp_journal_kit under_test = { sizeof under_test, url, kit_open, kit_forget, kit_disturb };
    static char why[TRP_JOURNAL_KIT_WHY_BYTES];
    for (uint32_t law = 0; law < trp_journal_kit_laws_count(); law++) {
        char name[128];
        is_late_law = strcmp(trp_journal_kit_law(law), "a failed operation keeps its place") == 0;
        trp_err err = trp_journal_kit_run(&under_test, law, why, sizeof why);
        (void)snprintf(name, sizeof name, "%s", trp_journal_kit_law(law));
        for (char *at = name; *at != '\0'; at++) {
            *at = *at == ' ' ? '_' : *at == ',' ? '.' : *at;
        }
        check(err == TRP_OK, name, why);
    }
}

/* ---- load ------------------------------------------------------------------------------------ */

/* One writer of one id: one operation at a time. */
typedef struct writer {
    struct load *load;
    trp_journal_op op;
    trp_journal_event event;
    char id[16];
    char data[32];
    uint64_t epoch;
    uint64_t acked; /* the last number that was acknowledged, or found by a recovery */
    uint64_t seen;  /* by the reader beside the writers */
    bool has_begun; /* it has an event */
    bool is_over;
} writer;

typedef struct load {
    const trp_journal_driver *driver;
    writer *writers;
    uint32_t count;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t over;  /* under lock, as all that follows */
    uint32_t begun; /* writers that have an event */
    bool is_stopping;
    uint64_t acks, failed, refused, lost, invented, fenced;
    char why[TRP_JOURNAL_WHY_BYTES];
} load;

static void writer_next(writer *w);

static void
writer_submit(writer *w, trp_journal_kind kind, trp_journal_done_fn done)
{
    void *user = w;
    trp_journal_op fresh = TRP_JOURNAL_OP_INIT;
    w->op = fresh;
    w->op.kind = kind;
    w->op.id = w->op.scope = w->op.writer = w->id;
    w->op.epoch = w->epoch;
    w->op.done = done;
    w->op.user = user;
    w->op.timeout_ms = 60000;
    w->load->driver->submit(w->load->driver->arg, &w->op);
}

/* The writer has events up to number. Under the lock. */
static void
writer_has(writer *w, uint64_t number)
{
    w->acked = number;
    if (number != 0 && !w->has_begun) {
        w->has_begun = true;
        if (++w->load->begun == w->load->count) {
            printf("begun %" PRIu32 "\n", w->load->count);
            (void)fflush(stdout);
        }
    }
}

/* Find the highest number: the last acknowledged one, or that whose answer was lost. */
static void
recovered(trp_journal_op *op)
{
    writer *w = op->user;
    if (op->outcome != TRP_JOURNAL_DONE) {
        writer_submit(w, TRP_JOURNAL_EVENTS, recovered);
        return;
    }
    pthread_mutex_lock(&w->load->lock);
    w->load->lost += op->ret_number < w->acked;
    w->load->invented += op->ret_number > w->acked + 1;
    writer_has(w, op->ret_number);
    pthread_mutex_unlock(&w->load->lock);
    writer_next(w);
}

static void
claimed(trp_journal_op *op)
{
    writer *w = op->user;
    if (op->outcome == TRP_JOURNAL_DONE) {
        w->epoch = op->ret_epoch;
        writer_submit(w, TRP_JOURNAL_EVENTS, recovered);
    } else {
        writer_submit(w, TRP_JOURNAL_CLAIM, claimed);
    }
}

static void
appended(trp_journal_op *op)
{
    writer *w = op->user;
    load *l = w->load;
    pthread_mutex_lock(&l->lock);
    if (op->outcome == TRP_JOURNAL_DONE) {
        writer_has(w, w->acked + 1);
        if (++l->acks % 1000 == 0) {
            printf("acked %" PRIu64 "\n", l->acks);
            (void)fflush(stdout);
        }
    } else {
        l->failed += op->outcome == TRP_JOURNAL_FAILED;
        l->refused += op->outcome == TRP_JOURNAL_REFUSED;
        l->fenced += op->err == TRP_EFENCED;
        (void)snprintf(l->why, sizeof l->why, "%s", op->why);
    }
    pthread_mutex_unlock(&l->lock);
    if (op->outcome == TRP_JOURNAL_FAILED) {
        writer_submit(w, TRP_JOURNAL_CLAIM, claimed);
    } else {
        writer_next(w);
    }
}

static void
writer_next(writer *w)
{
    load *l = w->load;
    bool is_stopping = false;
    static const char *const tag = "load";
    pthread_mutex_lock(&l->lock);
    is_stopping = l->is_stopping;
    if (is_stopping) {
        w->is_over = true;
        l->over++;
        pthread_cond_signal(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    if (is_stopping) {
        return;
    }
    trp_journal_op fresh = TRP_JOURNAL_OP_INIT;
    (void)snprintf(w->data, sizeof w->data, "%s/%" PRIu64, w->id, w->acked + 1);
    w->event = (trp_journal_event){ .type = "load", .data = w->data, .bytes = strlen(w->data) };
    w->event.tags = &tag;
    w->event.tags_count = 1;
    w->op = fresh;
    w->op.kind = TRP_JOURNAL_APPEND;
    w->op.id = w->op.scope = w->op.writer = w->id;
    w->op.epoch = w->epoch;
    w->op.from = w->acked + 1;
    w->op.events = &w->event;
    w->op.events_count = 1;
    w->op.done = appended;
    w->op.user = w;
    w->op.timeout_ms = 60000;
    l->driver->submit(l->driver->arg, &w->op);
}

static trp_err
see(trp_journal_op *op, const trp_journal_event *item)
{
    load *l = op->user;
    long place = strtol(item->id + 1, NULL, 10);
    char data[32];
    if (place < 0 || (uint32_t)place >= l->count) {
        return TRP_EDATA;
    }
    writer *w = &l->writers[place];
    (void)snprintf(data, sizeof data, "%s/%" PRIu64, w->id, item->number);
    bool is_right = item->number == w->seen + 1 && strlen(data) == item->bytes &&
                    memcmp(data, item->data, item->bytes) == 0;
    w->seen = item->number;
    return is_right ? TRP_OK : TRP_EDATA;
}

/* Read the tag from an offset to its end. */
static trp_err
follow(load *l, uint64_t *offset)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    do {
        trp_journal_op fresh = TRP_JOURNAL_OP_INIT;
        op = fresh;
        op.kind = TRP_JOURNAL_TAGGED;
        op.tag = "load";
        op.from = *offset;
        op.give = see;
        op.user = l;
        op.timeout_ms = 60000;
        if (trp_journal_call(l->driver, &op) != TRP_OK) {
            fprintf(stderr, "the reader: %s %s\n", trp_err_name(op.err), op.why);
            return op.err == TRP_EDATA ? TRP_EDATA : TRP_OK;
        }
        *offset = op.ret_offset;
    } while (op.ret_more);
    return TRP_OK;
}

static bool
stops(load *l)
{
    pthread_mutex_lock(&l->lock);
    bool is_stopping = l->is_stopping;
    pthread_mutex_unlock(&l->lock);
    return is_stopping;
}

static void *
stop_at_signal(void *arg)
{
    load *l = arg;
    sigset_t term;
    int number = 0;
    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    (void)sigwait(&term, &number);
    pthread_mutex_lock(&l->lock);
    l->is_stopping = true;
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static void
load_judge(load *l, trp_err reader, uint64_t offset)
{
    char detail[128];
    uint64_t behind = 0;
    trp_err err = reader == TRP_OK ? follow(l, &offset) : reader;
    for (uint32_t i = 0; i < l->count; i++) {
        behind += l->writers[i].seen != l->writers[i].acked;
    }
    (void)snprintf(detail, sizeof detail, "%" PRIu64 " ids", l->lost);
    check(l->lost == 0, "nothing_acknowledged_is_lost", detail);
    (void)snprintf(detail, sizeof detail, "%" PRIu64 " ids", l->invented);
    check(l->invented == 0, "nothing_is_stored_that_was_not_sent", detail);
    check(err == TRP_OK, "a_reader_sees_each_id_in_order_without_gap", trp_err_name(err));
    (void)snprintf(detail, sizeof detail, "%" PRIu64 " ids", behind);
    check(behind == 0, "a_reader_sees_all_that_is_stored", detail);
    check(l->fenced == 0, "no_writer_is_refused_because_of_itself", l->why);
    trp_journal_health health = TRP_JOURNAL_HEALTH_INIT;
    l->driver->health(l->driver->arg, &health);
    printf("acks %" PRIu64 " failed %" PRIu64 " refused %" PRIu64 " commits %" PRIu64 " last %s\n",
           l->acks, l->failed, l->refused, health.commits, l->why);
}

static int
load_run(const char *url, uint32_t count)
{
    static load l = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
    trp_journal_postgres_options options = options_of(url);
    char why[512];
    pthread_t stopper;
    uint64_t offset = 0;
    trp_err reader = TRP_OK;
    sigset_t term;
    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &term, NULL);
    options.batch_max = 100;
    if (trp_journal_postgres_open(&options, &l.driver, why, sizeof why) != TRP_OK) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    l.writers = calloc(count, sizeof *l.writers);
    l.count = count;
    if (l.writers == NULL || pthread_create(&stopper, NULL, stop_at_signal, &l) != 0) {
        return 1;
    }
    for (uint32_t i = 0; i < count; i++) {
        l.writers[i].load = &l;
        (void)snprintf(l.writers[i].id, sizeof l.writers[i].id, "l%" PRIu32, i);
        writer_submit(&l.writers[i], TRP_JOURNAL_CLAIM, claimed);
    }
    while (!stops(&l) && reader == TRP_OK) {
        reader = follow(&l, &offset);
    }
    (void)pthread_join(stopper, NULL);
    pthread_mutex_lock(&l.lock);
    while (l.over < count) {
        pthread_cond_wait(&l.changed, &l.lock);
    }
    pthread_mutex_unlock(&l.lock);
    load_judge(&l, reader, offset);
    l.driver->close(l.driver->arg);
    free(l.writers);
    return failures != 0;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static trp_journal_op
claim_of(const char *scope, uint32_t timeout_ms)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    op.kind = TRP_JOURNAL_CLAIM;
    op.scope = scope;
    op.writer = "w";
    op.timeout_ms = timeout_ms;
    return op;
}

static void
ignore(trp_journal_op *op)
{
    (void)op;
}

/* The server of url is away. */
static int
wait_run(const char *url)
{
    trp_journal_postgres_options options = options_of(url);
    const trp_journal_driver *driver = NULL;
    trp_journal_health health = TRP_JOURNAL_HEALTH_INIT;
    char why[512];
    options.waiting_max = 3;
    if (trp_journal_postgres_open(&options, &driver, why, sizeof why) != TRP_OK) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    trp_journal_op op = claim_of("a", 300);
    (void)trp_journal_call(driver, &op);
    check(op.outcome == TRP_JOURNAL_REFUSED && op.err == TRP_ETIMEDOUT,
          "what_waits_is_refused_at_its_deadline", op.why);
    printf("    %s\n", op.why);
    check(strstr(op.why, "hunter22") == NULL, "no_password_is_in_the_reason", op.why);
    driver->health(driver->arg, &health);
    check(health.state == TRP_JOURNAL_AWAY && health.why[0] != '\0', "health_says_away_and_why",
          health.why);
    check(strstr(health.why, "hunter22") == NULL, "no_password_is_in_the_health", health.why);
    trp_journal_op many[3];
    for (int i = 0; i < 3; i++) {
        many[i] = claim_of("b", 60000);
        many[i].done = ignore;
        driver->submit(driver->arg, &many[i]);
    }
    op = claim_of("c", 60000);
    (void)trp_journal_call(driver, &op);
    check(op.outcome == TRP_JOURNAL_REFUSED && op.err == TRP_EAGAIN,
          "one_more_than_may_wait_is_refused", op.why);
    check(many[2].outcome == TRP_JOURNAL_PENDING, "as_many_as_may_wait_do", many[2].why);
    driver->close(driver->arg);
    check(many[0].outcome == TRP_JOURNAL_REFUSED && many[2].err == TRP_ECLOSED,
          "the_end_refuses_what_waits", many[2].why);
    return failures != 0;
}

/* ---- a server that hangs --------------------------------------------------------------------- */

#define HANG_MS 60000u /* for what must come in the end */

/* Send a signal to the main process of the server and to its children. */
static void
server_signal(long server, int number)
{
    char path[64], pids[4096] = "";
    (void)snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", server, server);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        size_t bytes = fread(pids, 1, sizeof pids - 1, file);
        pids[bytes] = '\0';
        (void)fclose(file);
    }
    check(pids[0] != '\0', "the_server_has_children", path);
    (void)kill((pid_t)server, number);
    char *at = pids;
    for (long pid = strtol(at, &at, 10); pid > 1; pid = strtol(at, &at, 10)) {
        (void)kill((pid_t)pid, number);
    }
}

static trp_err
append_one(const trp_journal_driver *driver, uint64_t epoch, uint64_t number, trp_journal_op *op)
{
    static const trp_journal_event event = { .type = "hang", .data = "x", .bytes = 1 };
    *op = (trp_journal_op)TRP_JOURNAL_OP_INIT;
    op->kind = TRP_JOURNAL_APPEND;
    op->id = op->scope = "hang";
    op->epoch = epoch;
    op->from = number;
    op->events = &event;
    op->events_count = 1;
    op->timeout_ms = HANG_MS;
    return trp_journal_call(driver, op);
}

static bool
health_becomes(const trp_journal_driver *driver, trp_journal_state state, const char *text,
               trp_journal_health *ret_health)
{
    *ret_health = (trp_journal_health)TRP_JOURNAL_HEALTH_INIT;
    for (uint32_t i = 0; i < HANG_MS / 20; i++) {
        driver->health(driver->arg, ret_health);
        if (ret_health->state == state && strstr(ret_health->why, text) != NULL) {
            return true;
        }
        pass_ms(20);
    }
    return false;
}

/* The server stands still: what is in flight fails, what waits is refused at its deadline. */
static void
hang_stopped(const trp_journal_driver *driver, uint64_t epoch)
{
    trp_journal_health health;
    trp_journal_op op;
    (void)append_one(driver, epoch, 2, &op);
    check(op.outcome == TRP_JOURNAL_FAILED && op.err == TRP_ECONN,
          "what_a_server_that_hangs_was_sent_is_failed", op.why);
    op = claim_of("other", 1500);
    (void)trp_journal_call(driver, &op);
    check(op.outcome == TRP_JOURNAL_REFUSED && op.err == TRP_ETIMEDOUT,
          "what_it_was_not_sent_is_refused_at_its_deadline", op.why);
    check(health_becomes(driver, TRP_JOURNAL_AWAY, "did not take the connection in time", &health),
          "health_says_that_it_takes_no_connection", health.why);
    printf("    %s\n", health.why);
}

static int
hang_run(const char *url, long server)
{
    trp_journal_postgres_options options = options_of(url);
    const trp_journal_driver *driver = NULL;
    trp_journal_health health;
    char why[512];
    trp_journal_op op;
    options.connect_timeout_ms = 500;
    options.answer_timeout_ms = 1000;
    if (trp_journal_postgres_open(&options, &driver, why, sizeof why) != TRP_OK) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    op = claim_of("hang", HANG_MS);
    check(trp_journal_call(driver, &op) == TRP_OK, "a_claim_is_done", op.why);
    uint64_t epoch = op.ret_epoch;
    check(append_one(driver, epoch, 1, &op) == TRP_OK, "an_append_is_done", op.why);
    server_signal(server, SIGSTOP);
    hang_stopped(driver, epoch);
    server_signal(server, SIGCONT);

    op = (trp_journal_op)TRP_JOURNAL_OP_INIT;
    op.kind = TRP_JOURNAL_EVENTS;
    op.id = "hang";
    op.timeout_ms = HANG_MS;
    check(trp_journal_call(driver, &op) == TRP_OK && op.ret_number >= 1 && op.ret_number <= 2,
          "reads_go_on_when_the_server_does", op.why);
    uint64_t number = op.ret_number;
    check(append_one(driver, epoch, number + 1, &op) == TRP_OK,
          "the_writer_goes_on_behind_what_it_has_read", op.why);
    check(health_becomes(driver, TRP_JOURNAL_OPEN, "", &health), "health_says_open", health.why);
    check(health.failed == 1, "one_operation_has_failed", health.why);
    driver->close(driver->arg);
    return failures != 0;
}

int
main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "lmdb") == 0) {
#ifdef HAVE_LMDB
        return 0;
#else
        return 1;
#endif
    }
    if (argc == 2 && strcmp(argv[1], "built") == 0) {
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "init") == 0) {
        trp_journal_postgres_options options = options_of(argv[2]);
        char why[512];
        return trp_journal_postgres_init(&options, NULL, why, sizeof why) != TRP_OK;
    }
    if (argc == 3 && strcmp(argv[1], "kit") == 0) {
        kit(argv[2]);
        return failures != 0;
    }
    if (argc == 3 && strcmp(argv[1], "delete") == 0) {
        return delete_run(argv[2]);
    }
    if (argc == 3 && strcmp(argv[1], "wait") == 0) {
        return wait_run(argv[2]);
    }
    if (argc == 4 && strcmp(argv[1], "hang") == 0) {
        return hang_run(argv[2], strtol(argv[3], NULL, 10));
    }
    if (argc == 4 && strcmp(argv[1], "load") == 0) {
        return load_run(argv[2], (uint32_t)strtoul(argv[3], NULL, 10));
    }
    return 64;
}

#else

int
main(void)
{
    (void)check;
    printf("built --without-postgres\n");
    return 77;
}

#endif

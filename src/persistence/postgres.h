/* postgres.h - a journal in PostgreSQL: what its files share.
 *
 *   journal_postgres.c   the thread, submit, health, open, close, queues
 *   postgres_conn.c      one connection: made, used, lost, made again
 *   postgres_send.c      operations as parameters of statements
 *   postgres_answer.c    results as answers
 *   postgres_schema.c    tables and statements;  postgres_init.c  makes them
 */
#ifndef TRPI_PERSISTENCE_POSTGRES_H
#define TRPI_PERSISTENCE_POSTGRES_H

#ifdef HAVE_POSTGRES

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <troupe/journal_postgres.h>

#include "base/buffer.h"
#include "base/table.h"
#include "base/world.h"
#include "persistence/postgres_libpq.h"
#include "persistence/postgres_schema.h"

#define TRPI_PG_TEXT_BYTES 1024u     /* of a connection string, and of a password */
#define TRPI_PG_BATCHES_MAX 2u       /* sent and not answered: one is carried out, one is there */
#define TRPI_PG_FLIGHTS_MAX 16u      /* of a connection */
#define TRPI_PG_BATCH_BYTES 4194304u /* of data; one operation may exceed it */
#define TRPI_PG_SLICE_OPS 64u        /* deletions that share one transaction */
#define TRPI_PG_SLICE_EVENTS 1024u   /* that it deletes, of all of them */
#define TRPI_PG_SLICE_BYTES 16777216u
#define TRPI_PG_BACKOFF_MS_MIN 100u
#define TRPI_PG_BACKOFF_MS_MAX 5000u

/* A queue of operations, linked by driver[0]. */
typedef struct trpi_pg_queue {
    trp_journal_op *first;
    trp_journal_op *last;
    uint32_t count;
} trpi_pg_queue;

/* An id that unanswered operations name: keeps their order. Of the thread. */
typedef struct trpi_pg_id {
    uint64_t hash;
    uint32_t changes; /* and reads among them: what goes through the changes' connection */
    uint32_t reads;   /* on other connections */
    uint64_t batch;   /* the last batch that has a change of it */
    const trp_journal_op *deletion; /* that has begun: what comes behind it waits aside */
    char id[];
} trpi_pg_id;

typedef enum trpi_pg_flight_kind {
    TRPI_PG_SETUP = 1,
    TRPI_PG_BATCH,
    TRPI_PG_READ,
    TRPI_PG_SLICE
} trpi_pg_flight_kind;

/* The statements up to one sync, and their results. */
typedef struct trpi_pg_flight {
    trpi_pg_flight_kind kind;
    trpi_pg_queue ops; /* in the order of the parameters */
    uint64_t sent_ns;
    PGresult *result; /* the one that counts; NULL: not there yet */
    PGresult *error;  /* the first one */
    int32_t version;  /* SETUP: of the tables; -1: not read */
} trpi_pg_flight;

typedef enum trpi_pg_state {
    TRPI_PG_RESTS, /* until retry_ns */
    TRPI_PG_CONNECTS,
    TRPI_PG_SETS_UP,
    TRPI_PG_READY
} trpi_pg_state;

typedef struct trpi_pg_journal trpi_pg_journal;

typedef struct trpi_pg_conn {
    trpi_pg_journal *journal;
    PGconn *conn;
    trpi_pg_state state;
    PostgresPollingStatusType polling;
    bool has_output; /* libpq has bytes that the socket did not take */
    uint64_t retry_ns;
    uint64_t began_ns;
    uint32_t backoff_ms;
    trpi_pg_flight flights[TRPI_PG_FLIGHTS_MAX]; /* a ring */
    uint32_t flights_first;
    uint32_t flights_count;
    uint32_t batches; /* flights that are one */
    uint32_t slices;  /* flights that are one: at most 1 */
    char why[TRP_JOURNAL_WHY_BYTES];
} trpi_pg_conn;

struct trpi_pg_journal {
    trp_journal_driver driver;
    const trpi_libpq *pq;
    trpi_world *world; /* clock and random numbers */
    char *url;
    char *password_file; /* NULL: none */
    char *schema;
    trp_journal_postgres_options options; /* figures, with the defaults filled in */
    char password[TRPI_PG_TEXT_BYTES];    /* of the thread: last used, "" none; never shown */
    char *statements[TRPI_POSTGRES_STATEMENTS];
    char *version_text;
    char fence[24]; /* decimal: of the lock that the connection of changes has at the server */
    pthread_t thread;
    int wake_fd;

    pthread_mutex_t lock; /* of what follows, up to the next empty line */
    trpi_pg_queue inbox;
    bool is_woken;
    bool is_closing;
    uint32_t waiting;
    uint64_t waiting_bytes;
    trp_journal_health health; /* but for waiting */

    /* Of the thread. */
    trpi_pg_queue changes;   /* not sent, in order; reads that must keep their place among them */
    trpi_pg_queue reads;     /* not sent */
    trpi_pg_queue deletions; /* begun; the next slice is not sent */
    trpi_pg_queue aside;     /* behind a deletion of their id, in order */
    bool aside_is_due;       /* a deletion is over */
    trpi_table ids;          /* trpi_pg_id * */
    uint64_t batch;          /* serial of the one that is collected */
    uint64_t expiry_ns;      /* nothing that waits expires before */
    bool schema_is_wrong;    /* operations are refused until it is right */
    bool is_ending;
    trpi_pg_conn *conns; /* the first is that of changes */
    uint32_t conns_count;
    trpi_buffer params[15]; /* of the batch that is encoded */
};

static inline uint64_t
trpi_pg_now(trpi_pg_journal *journal)
{
    return trpi_world_mono_ns(journal->world);
}

void trpi_pg_queue_push(trpi_pg_queue *queue, trp_journal_op *op);
trp_journal_op *trpi_pg_queue_pop(trpi_pg_queue *queue); /* NULL: empty */

/* journal_postgres.c. Count op, and forget it: its maker is answered next, by the caller. */
void trpi_pg_settle(trpi_pg_journal *journal, trp_journal_op *op, trp_journal_outcome outcome);
void trpi_pg_finish(trpi_pg_journal *journal, trp_journal_op *op, trp_journal_outcome outcome,
                    trp_err err, const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Set the state that health says. */
void trpi_pg_say(trpi_pg_journal *journal, trp_journal_state state, const char *why);
trpi_pg_id *trpi_pg_id_of(const trp_journal_op *op); /* NULL: it names none */
/* Set aside what stands first among the changes while a deletion of its id takes slices. */
void trpi_pg_aside_put(trpi_pg_journal *journal);

/* postgres_conn.c. Go on with a connection: connect, read answers, flush. */
void trpi_pg_conn_step(trpi_pg_conn *conn, short events);
/* Return the events to poll for, and the descriptor; 0: nothing. */
short trpi_pg_conn_events(const trpi_pg_conn *conn, int *ret_fd);
/* When it must be stepped at the latest. */
uint64_t trpi_pg_conn_due(const trpi_pg_conn *conn);
/* End it: changes in flight are failed, reads go back to the journal's queue. */
void trpi_pg_conn_lose(trpi_pg_conn *conn, const char *why);
/* End it for good, with the journal: all operations are answered. */
void trpi_pg_conn_end(trpi_pg_conn *conn);
/* The flight behind those that there are; the caller sends, and then calls sent. */
trpi_pg_flight *trpi_pg_conn_flight(trpi_pg_conn *conn, trpi_pg_flight_kind kind);
/* Sync and flush. A connection that cannot is lost. */
void trpi_pg_conn_sent(trpi_pg_conn *conn);
/* The text without line ends and passwords. */
void trpi_pg_text_clean(const trpi_pg_journal *journal, const char *text, char *ret_text,
                        size_t ret_bytes);

/* postgres_send.c. Send as many changes as make a batch, or one read. False: libpq refused, or
 * there is no memory; what was taken is answered or lies in the flight. */
bool trpi_pg_send_batch(trpi_pg_conn *conn);
bool trpi_pg_send_read(trpi_pg_conn *conn, trp_journal_op *op);
bool trpi_pg_send_setup(trpi_pg_conn *conn);
/* Send the next slice of deletions that have begun; there is one. */
bool trpi_pg_send_slice(trpi_pg_conn *conn);

/* postgres_answer.c. Answer the operations of a flight whose results are there. */
void trpi_pg_answer(trpi_pg_conn *conn, trpi_pg_flight *flight);
uint64_t trpi_pg_deletion_end(const trp_journal_op *op); /* the last number that it deletes */
/* Read a big-endian number of a result. */
int64_t trpi_pg_int(const trpi_libpq *pq, const PGresult *result, int row, int column);

/* postgres_init.c. Check options, and fill what the journal needs of them. */
trp_err trpi_pg_options_check(const trp_journal_postgres_options *options, const trpi_libpq *pq,
                              char *why, size_t why_bytes);
/* Read the password, if there is a file; why names what is wrong with it. */
trp_err trpi_pg_password_read(const char *path, char *ret_password, size_t bytes, char *why,
                              size_t why_bytes);
/* Keywords of a connection, with the journal's defaults around the user's string. */
#define TRPI_PG_KEYWORDS_MAX 16
void trpi_pg_keywords(const trp_journal_postgres_options *options, const char *password,
                      const char **keywords, const char **values);

#endif
#endif

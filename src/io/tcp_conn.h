/* tcp_conn.h - what a TCP connection does next, decided without a socket, a clock or a thread.
 *
 * Why.   Both directions of a stream end by themselves, in either order, with or without writes
 *        that wait, by five kinds of events. All cases are decided here, and are tested in one
 *        table.
 * Shape. An event goes in (trpi_tcp_conn_step), effects come out, which the owner carries out in
 *        the order of their members. Between two events the owner reads while
 *        trpi_tcp_conn_reads() and the socket has something, and writes while
 *        trpi_tcp_conn_writes() and it has room.
 *        A write command is a chain of parts; the queue is linked through the owner's records.
 * States. Reading: not before REGISTER; while there is credit; until the peer's end.
 *         Writing: open; closing, for one reason (trpi_tcp_closing), until the queue is empty; our
 *         end sent; broken by an error, while what the peer sent before is still read.
 * Must hold.
 *   tcp-conn-C1  Each part of each command comes back exactly once, as done or as failed, and parts
 *       that are done in the order in which they came. Those that fail at one step are in their
 *       order, too.
 *   tcp-conn-C2  What waits is bounded: one command without a buffer, else buffer.max bytes and
 *       TRPI_TCP_PARTS_MAX parts.
 *   tcp-conn-C3  One `end`, the last effect of all; later events have none but failed commands.
 *   tcp-conn-C4  After WritingResumed the next write is taken (if it fits at all).
 *   tcp-conn-C5  No byte is read before REGISTER, none is delivered without credit, and an error of
 *       the write half waits until what can be read has been read.
 * Cost.   No allocation. An idle connection is this struct.
 * Tests.  tests/unit/io/tcp_conn_test.c
 * Sources. TCP-03, TCP-08 to -14, TCP-16 to -22, TCP-25, TRP-07, TRP-08
 */
#ifndef TRPI_IO_TCP_CONN_H
#define TRPI_IO_TCP_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRPI_TCP_PARTS_MAX 65536u /* that wait in one connection, or stand in one command */
#define TRPI_TCP_CREDIT_ALL UINT32_MAX

/* One part of a write command; the owner's record begins with it. */
typedef struct trpi_tcp_part {
    struct trpi_tcp_part *next;
    uint64_t left;   /* bytes that the kernel has not taken yet; 0 from the start: an ack only */
    uint64_t memory; /* of these, bytes that are in memory: 0 for a piece of a file */
    int err;         /* errno of a part that failed */
} trpi_tcp_part;

typedef enum trpi_tcp_mode {
    TRPI_TCP_BUFFERED =
        1, /* a command too many ends the connection: its stream would have a hole */
    TRPI_TCP_SUSPENDING = 2, /* one command; a refused one makes all fail until RESUME_WRITING */
    TRPI_TCP_REFUSING = 3    /* one command; others fail meanwhile */
} trpi_tcp_mode;

typedef struct trpi_tcp_limits {
    uint64_t low, high, max; /* bytes; low <= high <= max */
} trpi_tcp_limits;

typedef struct trpi_tcp_settings {
    trpi_tcp_mode mode;
    trpi_tcp_limits buffer; /* of TRPI_TCP_BUFFERED */
    bool keep_open;         /* the peer's end does not end the connection */
    bool pull;              /* each RESUME_READING is one Received */
} trpi_tcp_settings;

typedef enum trpi_tcp_closing {
    TRPI_TCP_OPEN = 0,
    TRPI_TCP_BY_CLOSE,
    TRPI_TCP_BY_CONFIRMED,
    TRPI_TCP_BY_PEER,   /* ended, and it is not kept open */
    TRPI_TCP_BY_HANDLER /* which has ended: nothing is read any more */
} trpi_tcp_closing;

typedef enum trpi_tcp_end {
    TRPI_TCP_GOES_ON = 0,
    TRPI_TCP_CLOSED,
    TRPI_TCP_ABORTED,
    TRPI_TCP_CONFIRMED_CLOSED,
    TRPI_TCP_PEER_CLOSED,
    TRPI_TCP_ERROR_CLOSED
} trpi_tcp_end;

typedef enum trpi_tcp_event_kind {
    /* commands */
    TRPI_TCP_REGISTER = 1, /* settings */
    TRPI_TCP_WRITE,        /* parts */
    TRPI_TCP_RESUME_WRITING,
    TRPI_TCP_SUSPEND_READING,
    TRPI_TCP_RESUME_READING,
    TRPI_TCP_CLOSE,
    TRPI_TCP_CONFIRMED_CLOSE,
    TRPI_TCP_ABORT,
    /* what else happens to its actor */
    TRPI_TCP_HANDLER_ENDED,
    TRPI_TCP_TIMEOUT, /* no REGISTER came in time, or no flush after the handler's end */
    /* results of the socket */
    TRPI_TCP_READ,        /* bytes */
    TRPI_TCP_READ_NONE,   /* would block */
    TRPI_TCP_READ_END,    /* the peer sends no more */
    TRPI_TCP_READ_ERROR,  /* err */
    TRPI_TCP_WROTE,       /* bytes, of the first parts of the queue */
    TRPI_TCP_WRITE_ERROR, /* err */
    TRPI_TCP_PART_ERROR   /* err: the first part cannot be read (a file); nothing more is written */
} trpi_tcp_event_kind;

typedef struct trpi_tcp_event {
    trpi_tcp_event_kind kind;
    int err;
    uint64_t bytes;
    trpi_tcp_part *parts; /* a chain, at least one; the connection's until they come back */
    const trpi_tcp_settings *settings;
} trpi_tcp_event;

/* Carried out from top to bottom. */
typedef struct trpi_tcp_effects {
    trpi_tcp_part *done;   /* chain, or NULL: acknowledge those that ask for it */
    trpi_tcp_part *failed; /* chain, or NULL: tell the writers, with err of each */
    int refused;           /* errno of a command (no write) that is not possible now; 0: none */
    bool deliver;          /* tell the handler the bytes of this READ */
    bool high, low;        /* tell the handler that a mark was passed: upwards, downwards */
    bool resumed;          /* tell the asker: writing is possible again */
    bool peer_closed;      /* tell the handler; the connection stays */
    bool flush_timer;      /* TIMEOUT is wanted, if the connection does not end before */
    bool send_end;         /* shut the sending direction down */
    bool reset;            /* when the socket is closed: by a reset */
    trpi_tcp_end end;      /* tell it, and close the socket */
    int err;               /* errno of ERROR_CLOSED */
} trpi_tcp_effects;

typedef struct trpi_tcp_conn {
    trpi_tcp_part *first, *last; /* what waits, in its order; NULL: nothing */
    uint64_t waiting;            /* bytes in memory that wait */
    uint32_t parts;              /* that wait */
    uint32_t credit;             /* Received that are wanted; TRPI_TCP_CREDIT_ALL: all */
    trpi_tcp_limits buffer;
    int broken; /* errno of the sending direction; 0: none */
    uint8_t mode, closing;
    bool registered, keep_open, pull;
    bool peer_ended, end_sent, ended;
    bool above;      /* the high mark, since it was passed */
    bool refusing;   /* TRPI_TCP_SUSPENDING: a command was refused */
    bool resume_due; /* RESUME_WRITING waits for the queue */
} trpi_tcp_conn;

void trpi_tcp_conn_init(trpi_tcp_conn *conn); /* connected, not registered */
void trpi_tcp_conn_step(trpi_tcp_conn *conn, const trpi_tcp_event *event,
                        trpi_tcp_effects *ret_effects);

/* True while bytes are wanted from the socket. */
static inline bool
trpi_tcp_conn_reads(const trpi_tcp_conn *conn)
{
    return conn->credit != 0 && !conn->peer_ended && !conn->ended &&
           conn->closing != TRPI_TCP_BY_HANDLER;
}

/* True while there is something to write. */
static inline bool
trpi_tcp_conn_writes(const trpi_tcp_conn *conn)
{
    return conn->first != NULL;
}

#endif

/* tcp_conn.c - the decisions of a TCP connection; see tcp_conn.h. */
#include "io/tcp_conn.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"

typedef trpi_tcp_conn conn_t;
typedef trpi_tcp_effects effects_t;

void
trpi_tcp_conn_init(conn_t *conn)
{
    memset(conn, 0, sizeof *conn);
    conn->mode = TRPI_TCP_SUSPENDING;
}

/* ---- the queue ------------------------------------------------------------------------------- */

static trpi_tcp_part **
chain_end(trpi_tcp_part **chain)
{
    while (*chain != NULL) {
        chain = &(*chain)->next;
    }
    return chain;
}

/* Move all parts of a chain to the failed ones, behind those that are there. */
static void
parts_fail(effects_t *effects, trpi_tcp_part *parts, int err)
{
    trpi_assert(err != 0);
    *chain_end(&effects->failed) = parts;
    for (; parts != NULL; parts = parts->next) {
        parts->err = err;
    }
}

/* Fail what waits (tcp-conn-C1). */
static void
queue_fail(conn_t *conn, effects_t *effects, int err)
{
    trpi_tcp_part *parts = conn->first;

    conn->first = NULL;
    conn->last = NULL;
    conn->waiting = 0;
    conn->parts = 0;
    parts_fail(effects, parts, err);
}

/* Take finished parts off the front, after so many bytes more were written. */
static void
queue_advance(conn_t *conn, effects_t *effects, uint64_t bytes)
{
    trpi_tcp_part **done = chain_end(&effects->done);

    while (conn->first != NULL) {
        trpi_tcp_part *part = conn->first;
        uint64_t now = part->left < bytes ? part->left : bytes;
        uint64_t of_memory = part->memory < now ? part->memory : now;

        part->left -= now;
        part->memory -= of_memory;
        conn->waiting -= of_memory;
        bytes -= now;
        if (part->left != 0) {
            break;
        }
        conn->first = part->next;
        conn->parts--;
        part->next = NULL;
        *done = part;
        done = &part->next;
    }
    if (conn->first == NULL) {
        conn->last = NULL;
    }
    trpi_assert(bytes == 0); /* no more was written than was there */
}

/* ---- the end --------------------------------------------------------------------------------- */

static void
end_with(conn_t *conn, effects_t *effects, trpi_tcp_end end, int err)
{
    trpi_assert(!conn->ended);
    conn->ended = true; /* tcp-conn-C3 */
    effects->end = end;
    effects->err = err;
    effects->reset = end == TRPI_TCP_ABORTED || end == TRPI_TCP_ERROR_CLOSED;
}

static void
end_by_error(conn_t *conn, effects_t *effects, int err)
{
    queue_fail(conn, effects, err);
    end_with(conn, effects, TRPI_TCP_ERROR_CLOSED, err);
}

static void
end_by_abort(conn_t *conn, effects_t *effects)
{
    queue_fail(conn, effects, ECONNABORTED);
    end_with(conn, effects, TRPI_TCP_ABORTED, 0);
}

/* Go on with closing, if nothing waits any more. */
static void
close_go_on(conn_t *conn, effects_t *effects)
{
    if (conn->closing == TRPI_TCP_OPEN || conn->first != NULL || conn->ended) {
        return;
    }
    if (!conn->end_sent) {
        conn->end_sent = true;
        effects->send_end = true;
    }
    switch (conn->closing) {
    case TRPI_TCP_BY_CONFIRMED:
        if (conn->peer_ended) {
            end_with(conn, effects, TRPI_TCP_CONFIRMED_CLOSED, 0);
        }
        return;
    case TRPI_TCP_BY_PEER:
        end_with(conn, effects, TRPI_TCP_PEER_CLOSED, 0);
        return;
    default:
        end_with(conn, effects, TRPI_TCP_CLOSED, 0);
        return;
    }
}

/* The sending direction is broken. Bytes that came before are read first, if the handler wants
 * bytes now (tcp-conn-C5); it cannot be waited for until it does. */
static void
writing_breaks(conn_t *conn, effects_t *effects, int err)
{
    conn->broken = err;
    conn->closing = TRPI_TCP_OPEN;
    queue_fail(conn, effects, err);
    if (!trpi_tcp_conn_reads(conn)) {
        end_with(conn, effects, TRPI_TCP_ERROR_CLOSED, err);
    }
}

/* ---- commands -------------------------------------------------------------------------------- */

static void
on_register(conn_t *conn, const trpi_tcp_settings *settings, effects_t *effects)
{
    if (conn->registered || conn->closing != TRPI_TCP_OPEN) {
        effects->refused = conn->registered ? EALREADY : EPIPE;
        return;
    }
    trpi_assert(settings->buffer.low <= settings->buffer.high);
    trpi_assert(settings->buffer.high <= settings->buffer.max);
    conn->registered = true;
    conn->mode = (uint8_t)settings->mode;
    conn->buffer = settings->buffer;
    conn->keep_open = settings->keep_open;
    conn->pull = settings->pull;
    conn->credit = settings->pull ? 0 : TRPI_TCP_CREDIT_ALL;
}

/* Return 0 when a command of so many parts and bytes is taken, or why not. */
static int
write_verdict(const conn_t *conn, uint32_t parts, uint64_t memory)
{
    if (conn->broken != 0) {
        return conn->broken;
    }
    if (!conn->registered) {
        return ENOTCONN;
    }
    if (conn->closing != TRPI_TCP_OPEN) {
        return EPIPE;
    }
    if (parts > TRPI_TCP_PARTS_MAX) {
        return EMSGSIZE;
    }
    if (conn->mode != TRPI_TCP_BUFFERED) {
        return conn->first != NULL || conn->refusing ? EAGAIN : 0;
    }
    return memory > conn->buffer.max - conn->waiting || parts > TRPI_TCP_PARTS_MAX - conn->parts
               ? ENOBUFS
               : 0;
}

static void
on_write(conn_t *conn, trpi_tcp_part *parts, effects_t *effects)
{
    uint32_t count = 0;
    uint64_t memory = 0;
    trpi_tcp_part *last = NULL;
    int err;

    trpi_assert(parts != NULL);
    for (trpi_tcp_part *part = parts; part != NULL; part = part->next) {
        trpi_assert(part->memory <= part->left);
        memory += part->memory;
        count++;
        last = part;
    }
    err = write_verdict(conn, count, memory);
    if (err == ENOBUFS) { /* a stream with a hole is of no use */
        queue_fail(conn, effects, ECONNABORTED);
        parts_fail(effects, parts, ENOBUFS);
        end_with(conn, effects, TRPI_TCP_ERROR_CLOSED, ENOBUFS);
        return;
    }
    if (err != 0) {
        conn->refusing = conn->refusing || (err == EAGAIN && conn->mode == TRPI_TCP_SUSPENDING);
        parts_fail(effects, parts, err);
        return;
    }
    *(conn->last != NULL ? &conn->last->next : &conn->first) = parts;
    conn->last = last;
    conn->waiting += memory;
    conn->parts += count;
    queue_advance(conn, effects, 0); /* parts without bytes, at the front */
    if (conn->mode == TRPI_TCP_BUFFERED && !conn->above && conn->waiting > conn->buffer.high) {
        conn->above = true;
        effects->high = true;
    }
}

static void
on_resume_writing(conn_t *conn, effects_t *effects)
{
    if (!conn->registered || conn->closing != TRPI_TCP_OPEN || conn->broken != 0) {
        effects->refused = conn->broken != 0 ? conn->broken : conn->registered ? EPIPE : ENOTCONN;
    } else if (conn->resume_due) {
        effects->refused = EALREADY;
    } else if (conn->first != NULL) {
        conn->resume_due = true;
    } else {
        conn->refusing = false; /* tcp-conn-C4 */
        effects->resumed = true;
    }
}

static void
on_reading(conn_t *conn, bool resume, effects_t *effects)
{
    if (!conn->registered) {
        effects->refused = ENOTCONN;
        return;
    }
    conn->credit = !resume ? 0 : conn->pull ? 1 : TRPI_TCP_CREDIT_ALL;
    if (conn->broken != 0 && !trpi_tcp_conn_reads(conn)) {
        end_with(conn, effects, TRPI_TCP_ERROR_CLOSED, conn->broken);
    }
}

static void
on_close(conn_t *conn, trpi_tcp_closing why, effects_t *effects)
{
    if (conn->broken != 0) {
        end_with(conn, effects, TRPI_TCP_ERROR_CLOSED, conn->broken);
        return;
    }
    if (why == TRPI_TCP_BY_HANDLER) {
        conn->closing = (uint8_t)why; /* no one else is there to be told */
    } else if (conn->closing == TRPI_TCP_OPEN ||
               (conn->closing == TRPI_TCP_BY_CONFIRMED && why == TRPI_TCP_BY_CLOSE)) {
        conn->closing = (uint8_t)why;
    } else {
        return; /* it closes already */
    }
    close_go_on(conn, effects);
    effects->flush_timer = why == TRPI_TCP_BY_HANDLER && !conn->ended;
}

/* ---- results of the socket ------------------------------------------------------------------- */

static void
on_read(conn_t *conn, effects_t *effects)
{
    trpi_assert(trpi_tcp_conn_reads(conn));
    effects->deliver = true;
    if (conn->credit != TRPI_TCP_CREDIT_ALL) {
        conn->credit--;
    }
    if (conn->broken != 0 && conn->credit == 0) {
        end_with(conn, effects, TRPI_TCP_ERROR_CLOSED, conn->broken);
    }
}

static void
on_read_end(conn_t *conn, effects_t *effects)
{
    conn->peer_ended = true;
    if (conn->broken != 0) {
        end_with(conn, effects, TRPI_TCP_ERROR_CLOSED, conn->broken);
    } else if (conn->closing != TRPI_TCP_OPEN) {
        close_go_on(conn, effects);
    } else if (conn->keep_open) {
        effects->peer_closed = true;
    } else {
        conn->closing = TRPI_TCP_BY_PEER;
        close_go_on(conn, effects);
    }
}

static void
on_wrote(conn_t *conn, uint64_t bytes, effects_t *effects)
{
    queue_advance(conn, effects, bytes);
    if (conn->above && conn->waiting <= conn->buffer.low) {
        conn->above = false;
        effects->low = conn->closing == TRPI_TCP_OPEN; /* else nothing may be written anyway */
    }
    if (conn->first == NULL && conn->resume_due) {
        conn->resume_due = false;
        conn->refusing = false; /* tcp-conn-C4 */
        effects->resumed = true;
    }
    close_go_on(conn, effects);
}

/* ---- the step -------------------------------------------------------------------------------- */

static void
on_socket(conn_t *conn, const trpi_tcp_event *event, effects_t *effects)
{
    switch (event->kind) {
    case TRPI_TCP_READ:
        on_read(conn, effects);
        return;
    case TRPI_TCP_READ_NONE:
        if (conn->broken != 0) {
            end_with(conn, effects, TRPI_TCP_ERROR_CLOSED, conn->broken);
        }
        return;
    case TRPI_TCP_READ_END:
        on_read_end(conn, effects);
        return;
    case TRPI_TCP_READ_ERROR:
        end_by_error(conn, effects, conn->broken != 0 ? conn->broken : event->err);
        return;
    case TRPI_TCP_WROTE:
        on_wrote(conn, event->bytes, effects);
        return;
    case TRPI_TCP_PART_ERROR: /* the peer must not take what was cut for the whole */
        end_by_error(conn, effects, event->err);
        return;
    default:
        trpi_assert(event->kind == TRPI_TCP_WRITE_ERROR);
        writing_breaks(conn, effects, event->err);
        return;
    }
}

static void
on_command(conn_t *conn, const trpi_tcp_event *event, effects_t *effects)
{
    switch (event->kind) {
    case TRPI_TCP_REGISTER:
        on_register(conn, event->settings, effects);
        return;
    case TRPI_TCP_WRITE:
        on_write(conn, event->parts, effects);
        return;
    case TRPI_TCP_RESUME_WRITING:
        on_resume_writing(conn, effects);
        return;
    case TRPI_TCP_SUSPEND_READING:
    case TRPI_TCP_RESUME_READING:
        on_reading(conn, event->kind == TRPI_TCP_RESUME_READING, effects);
        return;
    case TRPI_TCP_CLOSE:
        on_close(conn, TRPI_TCP_BY_CLOSE, effects);
        return;
    case TRPI_TCP_CONFIRMED_CLOSE:
        on_close(conn, TRPI_TCP_BY_CONFIRMED, effects);
        return;
    case TRPI_TCP_HANDLER_ENDED:
        on_close(conn, TRPI_TCP_BY_HANDLER, effects);
        return;
    case TRPI_TCP_TIMEOUT:
        if (conn->registered && conn->closing != TRPI_TCP_BY_HANDLER) {
            return; /* it came too late to mean anything */
        }
        end_by_abort(conn, effects);
        return;
    default:
        trpi_assert(event->kind == TRPI_TCP_ABORT);
        end_by_abort(conn, effects);
        return;
    }
}

void
trpi_tcp_conn_step(conn_t *conn, const trpi_tcp_event *event, effects_t *ret_effects)
{
    memset(ret_effects, 0, sizeof *ret_effects);
    if (conn->ended) { /* tcp-conn-C3 */
        if (event->kind == TRPI_TCP_WRITE) {
            parts_fail(ret_effects, event->parts, conn->broken != 0 ? conn->broken : EPIPE);
        } else if (event->kind < TRPI_TCP_CLOSE) {
            ret_effects->refused = EPIPE;
        }
        return;
    }
    if (event->kind >= TRPI_TCP_READ) {
        on_socket(conn, event, ret_effects);
    } else {
        on_command(conn, event, ret_effects);
    }
}

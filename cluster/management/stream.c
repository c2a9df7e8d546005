/* stream.c - a connection that stays: the present state, then each event of the cluster.
 *
 * States.  (accepted) --resumed by its id--------------------------> following
 *          (accepted) --Reset, question to the node--> the snapshot --> following --> closed
 * Must hold.
 *   stream-W1  A reader is given the state and then each event of its types, or is cut off: when
 *       the feed has overwritten its next event, or when it has taken nothing for two beats.
 *       (trpi_stream_write, trpi_stream_timer)
 *   stream-W2  Until its snapshot has come a stream has the time of any request.   (exchange-X2)
 *   stream-W3  streams_count counts the exchanges that have `streams`.
 *   stream-W4  A client that has gone keeps no place from another one: the library does not look at
 *       the connection of an idle stream.                          (trpi_streams_sweep)
 * Limits.  streams_max; TRPI_MANAGEMENT_EVENTS_MAX events behind; WRITE_BYTES at one time.
 * Cost.    A beat of some bytes each BEAT_S for a stream that is idle, which finds dead clients.
 * Tests.   tests/system/management.sh
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cluster/management/server.h"

#ifdef HAVE_LIBWEBSOCKETS

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

#define WRITE_BYTES 16384u /* gathered and written at one time, about */
#define TEXT_BYTES_MAX (32u << 20)
#define BEAT_S 10

/* ---- begin and end --------------------------------------------------------------------------- */

static bool
text_add(trpi_exchange *x, const char *text)
{
    return trpi_buffer_append_text(&x->text, text, TEXT_BYTES_MAX) == TRP_OK;
}

static bool
head_add(trpi_exchange *x)
{
    static const uint8_t room[LWS_PRE];
    char head[TRPI_MANAGEMENT_HEAD_BYTES];
    trpi_management_answer answer = { .status = 200,
                                      .content_type = "text/event-stream",
                                      .streams = true };
    x->text_sent = sizeof room;
    return trpi_management_head_write(&answer, head) > 0 &&
           trpi_buffer_append(&x->text, room, sizeof room, TEXT_BYTES_MAX) == TRP_OK &&
           text_add(x, head) && text_add(x, "retry:1000\n\n");
}

static int
beat_start(trpi_management *m, trpi_exchange *x)
{
    x->is_silent = false;
    /* the library's own limit of a request would end it, too */
    m->lws->lws_set_timeout(x->wsi, NO_PENDING_TIMEOUT, 0);
    m->lws->lws_set_timer_usecs(x->wsi, (lws_usec_t)BEAT_S * 1000000);
    return m->lws->lws_callback_on_writable(x->wsi) >= 0 ? 0 : -1;
}

static int
stream_refuse(trpi_management *m, trpi_exchange *x, const char *error, const char *message)
{
    trpi_management_answer answer = { 0 };
    trpi_management_answer_error(&answer, 503, error, message);
    return trpi_exchange_answer(m, x, &answer);
}

/* stream-W4. A timer that is over ends the connection, when no other callback is on the stack. */
void
trpi_streams_sweep(trpi_management *m)
{
    for (trpi_exchange *x = m->exchanges; x != NULL; x = x->next) {
        if (x->streams && x->id == 0 && trpi_exchange_hung_up(m, x)) {
            trpi_stream_end(m, x);
            m->lws->lws_set_timer_usecs(x->wsi, 1);
        }
    }
}

/* stream-W3. false: there are too many, or the node does not publish events (any more). */
static bool
stream_admit(trpi_management *m, trpi_exchange *x, const char **ret_error, const char **ret_why)
{
    if (m->streams_count >= m->streams_max) {
        trpi_streams_sweep(m);
    }
    pthread_mutex_lock(&m->lock);
    bool open = m->feed_open, fits = m->streams_count < m->streams_max;
    x->streams = open && fits;
    m->streams_count += x->streams ? 1 : 0;
    pthread_mutex_unlock(&m->lock);
    *ret_error = open ? "too-many-streams" : "try-again";
    *ret_why = open ? "as many streams of events as management.streams-max allows are open"
                    : "the node is starting";
    return x->streams;
}

int
trpi_stream_begin(trpi_management *m, trpi_exchange *x)
{
    const char *error = "", *why = "";
    if (x->is_head) {
        trpi_management_answer answer = { .status = 200,
                                          .content_type = "text/event-stream",
                                          .body = cJSON_malloc(1) };
        if (answer.body != NULL) {
            answer.body[0] = '\0';
        }
        return trpi_exchange_answer(m, x, &answer);
    }
    if (!stream_admit(m, x, &error, &why)) {
        return stream_refuse(m, x, error, why);
    }
    if (!head_add(x)) {
        return -1;
    }
    pthread_mutex_lock(&m->lock);
    bool resumes = trpi_management_feed_resumes(&m->feed, x->request.last_event_id, &x->event_next);
    pthread_mutex_unlock(&m->lock);
    if (resumes) {
        return beat_start(m, x);
    }
    if (!text_add(x, "data:{\"type\":\"Reset\"}\nevent:Reset\n\n")) {
        return -1;
    }
    x->id = ++m->id_next; /* stream-W2 */
    m->ask(m->arg, m, x->id, x->plan.command, x->from);
    return 0;
}

void
trpi_stream_end(trpi_management *m, trpi_exchange *x)
{
    if (x->streams) {
        x->streams = false;
        pthread_mutex_lock(&m->lock);
        trpi_assert(m->streams_count > 0); /* stream-W3 */
        m->streams_count--;
        pthread_mutex_unlock(&m->lock);
    }
    trpi_buffer_fini(&x->text);
}

/* ---- the snapshot ---------------------------------------------------------------------------- */

/* The node has refused: answer so, as nothing has been written yet. */
static int
snapshot_refuse(trpi_management *m, trpi_exchange *x, const char *object)
{
    trpi_management_answer answer = { 0 };
    trpi_stream_end(m, x);
    trpi_management_plan_answer(&x->plan, object, &answer);
    return trpi_exchange_answer(m, x, &answer);
}

/* Take the first line of text: a copy. NULL: no memory. */
static char *
line_take(const char **text)
{
    size_t bytes = strcspn(*text, "\n");
    trpi_buffer line = { 0 };
    trp_err err = trpi_buffer_append(&line, *text, bytes, TEXT_BYTES_MAX);
    *text += bytes + ((*text)[bytes] == '\n');
    return err == TRP_OK ? trpi_buffer_take_text(&line) : NULL;
}

int
trpi_stream_snapshot(trpi_management *m, trpi_exchange *x, const char *reply)
{
    uint32_t bit = 0;
    uint64_t last = 0;
    cJSON *json = NULL;
    bool ok = false;
    char *line = line_take(&reply);
    bool read = line != NULL && trpi_json_parse(line, strlen(line), &json, NULL) == TRP_OK &&
                trpi_json_get_bool(json, "ok", &ok) && ok &&
                trpi_json_get_u64(json, "after", &last);
    cJSON_Delete(json);
    int rc = read ? 0 : snapshot_refuse(m, x, line);
    trpi_free(line);
    while (read && rc == 0 && *reply != '\0') {
        line = line_take(&reply);
        if (line == NULL || trpi_management_event_write(line, &x->text, &bit) != TRP_OK) {
            rc = -1;
        }
        trpi_free(line);
    }
    if (read && rc == 0) {
        pthread_mutex_lock(&m->lock);
        bool marked = trpi_management_feed_mark(&m->feed, last, &x->text) == TRP_OK;
        pthread_mutex_unlock(&m->lock);
        x->event_next = last + 1;
        rc = marked ? beat_start(m, x) : -1;
    }
    return rc;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Gather what has come, when all is written. false: cut off. */
static bool
text_refill(trpi_management *m, trpi_exchange *x)
{
    static const uint8_t room[LWS_PRE];
    trpi_buffer_clear(&x->text);
    x->text_sent = sizeof room;
    bool ok = trpi_buffer_append(&x->text, room, sizeof room, TEXT_BYTES_MAX) == TRP_OK;
    pthread_mutex_lock(&m->lock);
    ok = ok && trpi_management_feed_read(&m->feed, &x->event_next, x->plan.event_bits, WRITE_BYTES,
                                         &x->text); /* stream-W1 */
    pthread_mutex_unlock(&m->lock);
    return ok;
}

int
trpi_stream_write(trpi_management *m, trpi_exchange *x)
{
    if (x->event_next == 0) {
        return 0; /* its snapshot is to come */
    }
    if (x->text_sent == x->text.count && !text_refill(m, x)) {
        return -1;
    }
    size_t left = x->text.count - x->text_sent;
    size_t count = left < WRITE_BYTES ? left : WRITE_BYTES;
    if (count == 0) {
        return 0;
    }
    if (m->lws->lws_write(x->wsi, x->text.data + x->text_sent, count, LWS_WRITE_HTTP) <
        (int)count) {
        return -1;
    }
    x->text_sent += count;
    x->is_silent = false;
    return m->lws->lws_callback_on_writable(x->wsi) >= 0 ? 0 : -1;
}

int
trpi_stream_timer(trpi_management *m, trpi_exchange *x)
{
    bool all_is_written = x->text_sent == x->text.count;
    if (x->event_next == 0 || (x->is_silent && !all_is_written)) {
        return -1; /* stream-W2, stream-W1 */
    }
    if (all_is_written && (!text_refill(m, x) || !text_add(x, ":\n\n"))) {
        return -1;
    }
    int rc = beat_start(m, x);
    x->is_silent = true; /* until something is written */
    return rc;
}

void
trpi_streams_wake(trpi_management *m)
{
    for (trpi_exchange *x = m->exchanges; x != NULL; x = x->next) {
        if (x->streams && x->event_next != 0) {
            (void)m->lws->lws_callback_on_writable(x->wsi); /* else it ends with its timer */
        }
    }
}

#endif

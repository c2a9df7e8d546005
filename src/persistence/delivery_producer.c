/* delivery_producer.c - see delivery_producer.h.
 *
 * Limits. messages_max and bytes_max held; streams_max.
 * Cost.   A message is copied once; parts are sent from it. Loss is repaired from the first frame
 *         that was lost on (go back n): what is behind it is sent again.
 * Tests.  tests/unit/persistence/delivery_engine_test.c (a lossy wire under seeds),
 *         tests/sim/delivery_test.c
 */
#include "persistence/delivery_producer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/wire.h"

int trpi_delivery_break;

void
trpi_delivery_head_put(const trpi_delivery_head *head, uint8_t *bytes)
{
    trpi_put_u64(bytes, head->stream);
    trpi_put_u64(bytes + 8, head->seq);
    trpi_put_u64(bytes + 16, head->number);
    trpi_put_u32(bytes + 24, head->flags);
    trpi_put_u32(bytes + 28, head->total);
}

void
trpi_delivery_head_get(trpi_delivery_head *head, const uint8_t *bytes)
{
    head->stream = trpi_get_u64(bytes);
    head->seq = trpi_get_u64(bytes + 8);
    head->number = trpi_get_u64(bytes + 16);
    head->flags = trpi_get_u32(bytes + 24);
    head->total = trpi_get_u32(bytes + 28);
}

void
trpi_delivery_producer_init(trpi_delivery_producer *p)
{
    trpi_assert(p->part_bytes > 0);
    p->waiting_last = &p->waiting;
}

static void
entries_free(trpi_delivery_entry *e)
{
    while (e != NULL) {
        trpi_delivery_entry *next = e->next;

        trpi_free(e);
        e = next;
    }
}

void
trpi_delivery_producer_fini(trpi_delivery_producer *p)
{
    entries_free(p->waiting);
    while (p->streams != NULL) {
        trpi_delivery_stream *next = p->streams->next;

        entries_free(p->streams->first);
        trpi_free(p->streams);
        p->streams = next;
    }
}

/* ---- sending --------------------------------------------------------------------------------- */

static void
frame_send(trpi_delivery_producer *p, trpi_delivery_stream *s, trpi_delivery_entry *e)
{
    uint64_t part = s->sent - e->first_seq;
    uint32_t at = (uint32_t)part * p->part_bytes;
    uint32_t bytes = e->bytes - at < p->part_bytes ? e->bytes - at : p->part_bytes;
    trpi_delivery_head head = { s->id, s->sent, e->number, 0, e->bytes };

    trpi_assert(part < e->parts && at <= e->bytes);
    trpi_assert(s->sent <= s->upto); /* delivery-producer-D3 */
    head.flags =
        (part == 0 ? TRPI_DELIVERY_FIRST : 0u) | (part == e->parts - 1 ? TRPI_DELIVERY_LAST : 0u);
    e->attempts += part == 0 && e->attempts != UINT32_MAX;
    p->sending = e;
    p->out.frame(p->out.arg, s->consumer, &head, e->data + at, bytes);
    p->sending = NULL;
    s->sent++;
    if (s->sent == e->first_seq + e->parts) {
        s->cursor = e->next;
    }
}

/* Move the first waiting message into the stream. False: none waits. */
static bool
message_assign(trpi_delivery_producer *p, trpi_delivery_stream *s)
{
    trpi_delivery_entry *e = p->waiting;

    if (e == NULL) {
        return false;
    }
    p->waiting = e->next;
    if (p->waiting == NULL) {
        p->waiting_last = &p->waiting;
    }
    e->next = NULL;
    e->first_seq = s->next_seq;
    s->next_seq += e->parts;
    *s->last = e;
    s->last = &e->next;
    s->count++;
    s->cursor = e;
    return true;
}

/* Send frames up to the end of one message. False: there was nothing to send. */
static bool
message_send(trpi_delivery_producer *p, trpi_delivery_stream *s)
{
    if (s->sent > s->upto || (s->cursor == NULL && !message_assign(p, s))) {
        return false;
    }
    trpi_delivery_entry *e = s->cursor;
    while (s->cursor == e && s->sent <= s->upto) {
        frame_send(p, s, e);
    }
    return true;
}

/* Send what demand allows, one message for each stream in turn. */
static void
send_all(trpi_delivery_producer *p)
{
    bool sent = true;

    while (sent) {
        sent = false;
        for (trpi_delivery_stream *s = p->streams; s != NULL; s = s->next) {
            sent = message_send(p, s) || sent;
        }
    }
}

/* Send again from seq on. */
static void
go_back(trpi_delivery_stream *s, uint64_t seq)
{
    if (seq >= s->sent || trpi_delivery_break == 1) {
        return;
    }
    s->sent = seq;
    s->cursor = s->first;
    while (s->cursor != NULL && s->cursor->first_seq + s->cursor->parts <= seq) {
        s->cursor = s->cursor->next;
    }
    if (s->cursor != NULL && s->cursor->first_seq < seq) {
        s->cursor->attempts += s->cursor->attempts != UINT32_MAX; /* its first part is not sent */
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

/* bytes_max may be passed by the first message alone. */
static bool
has_room(const trpi_delivery_producer *p, uint32_t bytes)
{
    return p->messages < p->messages_max &&
           (p->messages == 0 || (p->bytes <= p->bytes_max && bytes <= p->bytes_max - p->bytes));
}

trp_err
trpi_delivery_put(trpi_delivery_producer *p, uint64_t now_ms, uint64_t number, const void *data,
                  uint32_t bytes)
{
    bool idle = p->messages == 0;

    if (!has_room(p, bytes)) { /* delivery-producer-D5 */
        return TRP_EAGAIN;
    }
    trpi_delivery_entry *e = trpi_alloc(sizeof *e + bytes);
    if (e == NULL) {
        return TRP_ENOMEM;
    }
    e->number = number;
    e->mark = p->mark;
    e->trace = p->trace;
    e->bytes = bytes;
    e->parts = bytes == 0 ? 1 : (bytes + p->part_bytes - 1) / p->part_bytes;
    if (bytes != 0) {
        memcpy(e->data, data, bytes);
    }
    *p->waiting_last = e;
    p->waiting_last = &e->next;
    p->messages++;
    p->bytes += bytes;
    if (idle) {
        for (trpi_delivery_stream *s = p->streams; s != NULL; s = s->next) {
            s->heard_ms = now_ms;
        }
    }
    send_all(p);
    return TRP_OK;
}

bool
trpi_delivery_forget(trpi_delivery_producer *p, uint64_t number)
{
    for (trpi_delivery_entry **at = &p->waiting; *at != NULL; at = &(*at)->next) {
        trpi_delivery_entry *e = *at;

        if (e->number != number) {
            continue;
        }
        *at = e->next;
        if (p->waiting_last == &e->next) {
            p->waiting_last = at;
        }
        p->messages--;
        p->bytes -= e->bytes;
        trpi_free(e);
        return true;
    }
    return false;
}

static uint64_t
mark_least(const trpi_delivery_entry *e, uint64_t least)
{
    for (; e != NULL; e = e->next) {
        least = least == 0 || e->mark < least ? e->mark : least;
    }
    return least;
}

uint64_t
trpi_delivery_mark_least(const trpi_delivery_producer *p)
{
    uint64_t least = mark_least(p->waiting, 0);

    for (const trpi_delivery_stream *s = p->streams; s != NULL; s = s->next) {
        least = mark_least(s->first, least);
    }
    return least;
}

/* Put the messages of a stream back to where their numbers belong (delivery-producer-D2, -D4). */
static void
give_back(trpi_delivery_producer *p, trpi_delivery_entry *e)
{
    trpi_delivery_entry **at = &p->waiting;
    uint64_t last = 0;

    while (e != NULL) {
        trpi_delivery_entry *next = e->next;

        if (last > e->number) {
            at = &p->waiting;
        }
        last = e->number;
        while (*at != NULL && (*at)->number < e->number) {
            at = &(*at)->next;
        }
        e->next = *at;
        *at = e;
        at = &e->next;
        e = next;
    }
    while (*at != NULL) {
        at = &(*at)->next;
    }
    p->waiting_last = at;
}

static void
stream_end(trpi_delivery_producer *p, trpi_delivery_stream **place)
{
    trpi_delivery_stream *s = *place;

    *place = s->next;
    p->streams_count--;
    if (trpi_delivery_break == 2) {
        p->messages -= s->count;
        entries_free(s->first);
    } else {
        give_back(p, s->first);
    }
    trpi_free(s);
}

trp_err
trpi_delivery_join(trpi_delivery_producer *p, uint64_t now_ms, trp_ref consumer, uint64_t nonce,
                   uint64_t *ret_stream)
{
    for (trpi_delivery_stream **at = &p->streams; *at != NULL;) {
        if (trp_ref_equal((*at)->consumer, consumer) && (*at)->nonce == nonce) {
            *ret_stream = (*at)->id;
            return TRP_OK;
        }
        if (!p->workers || trp_ref_equal((*at)->consumer, consumer)) {
            stream_end(p, at); /* another life of it, or the consumer before */
        } else {
            at = &(*at)->next;
        }
    }
    if (p->streams_count >= p->streams_max) {
        return TRP_ELIMIT;
    }
    trpi_delivery_stream *s = trpi_alloc(sizeof *s);
    if (s == NULL) {
        return TRP_ENOMEM;
    }
    s->id = *ret_stream = ++p->stream_last;
    s->nonce = nonce;
    s->consumer = consumer;
    s->next_seq = s->sent = 1;
    s->heard_ms = now_ms;
    s->last = &s->first;
    s->next = p->streams;
    p->streams = s;
    p->streams_count++;
    return TRP_OK;
}

void
trpi_delivery_gone(trpi_delivery_producer *p, uint64_t now_ms, trp_ref consumer)
{
    (void)now_ms;
    for (trpi_delivery_stream **at = &p->streams; *at != NULL;) {
        if (trp_ref_equal((*at)->consumer, consumer)) {
            stream_end(p, at);
        } else {
            at = &(*at)->next;
        }
    }
    send_all(p);
}

/* Confirm the messages whose frames are all confirmed (delivery-producer-D1). */
static void
confirm_up_to(trpi_delivery_producer *p, trpi_delivery_stream *s, uint64_t confirmed)
{
    while (s->first != NULL && s->first->first_seq + s->first->parts - 1 <= confirmed) {
        trpi_delivery_entry *e = s->first;

        s->first = e->next;
        if (s->first == NULL) {
            s->last = &s->first;
        }
        if (s->cursor == e) {
            s->cursor = e->next;
        }
        s->count--;
        p->messages--;
        p->bytes -= e->bytes;
        s->confirmed = e->first_seq + e->parts - 1;
        p->out.confirmed(p->out.arg, e->number);
        trpi_free(e);
    }
}

bool
trpi_delivery_requested(trpi_delivery_producer *p, uint64_t now_ms,
                        const trpi_delivery_request *request)
{
    trpi_delivery_stream *s = p->streams;

    while (s != NULL && s->id != request->stream) {
        s = s->next;
    }
    if (s == NULL) {
        return false;
    }
    /* It comes from a peer: what was never sent is neither confirmed nor received. */
    if (request->received >= s->sent && request->received >= s->next_seq) {
        return true;
    }
    if (request->received > s->received || request->confirmed > s->confirmed) {
        s->heard_ms = now_ms; /* a reminder without news does not put off a probe */
        s->received = request->received > s->received ? request->received : s->received;
    }
    if (request->confirmed < s->next_seq && request->confirmed <= request->received) {
        confirm_up_to(p, s, request->confirmed);
    }
    s->upto = request->upto > s->upto ? request->upto : s->upto;
    if (s->sent <= request->received) { /* an answer that overtook the memory of what was sent */
        s->sent = request->received + 1;
        s->cursor = s->first;
        while (s->cursor != NULL && s->cursor->first_seq + s->cursor->parts <= s->sent) {
            s->cursor = s->cursor->next;
        }
    }
    if (request->resend != 0) {
        /* One that was overtaken may ask for what is confirmed since. */
        go_back(s, (request->received > s->confirmed ? request->received : s->confirmed) + 1);
    }
    send_all(p);
    return true;
}

bool
trpi_delivery_tick(trpi_delivery_producer *p, uint64_t now_ms)
{
    for (trpi_delivery_stream *s = p->streams; s != NULL; s = s->next) {
        if (s->first != NULL && s->sent > 1 && now_ms - s->heard_ms >= p->resend_ms) {
            trpi_delivery_head head = { s->id, s->sent - 1, 0, TRPI_DELIVERY_PROBE, 0 };

            s->heard_ms = now_ms;
            p->out.frame(p->out.arg, s->consumer, &head, NULL, 0);
        }
    }
    return p->messages != 0;
}

void
trpi_delivery_producer_check(const trpi_delivery_producer *p)
{
    uint32_t messages = 0, streams = 0;
    uint64_t bytes = 0;

    for (const trpi_delivery_entry *e = p->waiting; e != NULL; e = e->next) {
        trpi_assert(e->next == NULL || e->next->number > e->number); /* delivery-producer-D4 */
        messages++;
        bytes += e->bytes;
    }
    for (const trpi_delivery_stream *s = p->streams; s != NULL; s = s->next) {
        uint32_t count = 0;

        for (const trpi_delivery_entry *e = s->first; e != NULL; e = e->next) {
            trpi_assert(e->first_seq < s->next_seq);
            count++;
            bytes += e->bytes;
        }
        trpi_assert(count == s->count && s->sent <= s->next_seq);
        messages += count;
        streams++;
    }
    trpi_assert(messages == p->messages); /* delivery-producer-D2 */
    trpi_assert(streams == p->streams_count);
    trpi_assert(bytes == p->bytes || trpi_delivery_break == 2);
    trpi_assert(p->messages <= p->messages_max); /* delivery-producer-D5 */
}

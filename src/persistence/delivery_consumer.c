/* delivery_consumer.c - see delivery_consumer.h.
 *
 * Limits. window messages, and one that is assembled, of message_bytes_max each.
 * Cost.   A request for half a window, and one when nothing is left to do.
 * Tests.  tests/unit/persistence/delivery_engine_test.c, tests/sim/delivery_test.c
 */
#include "persistence/delivery_consumer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

void
trpi_delivery_consumer_init(trpi_delivery_consumer *c)
{
    trpi_assert(c->window > 0 && c->ahead > 0);
    c->ready_last = &c->ready;
    c->hand_last = &c->hand;
}

static void
parcels_free(trpi_delivery_parcel *first)
{
    while (first != NULL) {
        trpi_delivery_parcel *next = first->next;

        trpi_free(first);
        first = next;
    }
}

void
trpi_delivery_consumer_fini(trpi_delivery_consumer *c)
{
    parcels_free(c->open);
    parcels_free(c->ready);
    parcels_free(c->hand);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* How far the producer may go (delivery-consumer-C2). */
static uint64_t
demand_upto(const trpi_delivery_consumer *c)
{
    uint32_t held = c->ready_count;

    for (const trpi_delivery_parcel *p = c->hand; p != NULL; p = p->next) {
        held += p->stream == c->stream;
    }
    return c->received + (held < c->window ? c->window - held : 0);
}

static void
request_send(trpi_delivery_consumer *c, bool resend)
{
    trpi_delivery_request request = { c->stream,      c->confirmed,   c->received,
                                      demand_upto(c), resend ? 1 : 0, 0 };

    if (trpi_delivery_break == 5) {
        request.confirmed = c->received;
    }
    c->told_upto = request.upto;
    c->told_confirmed = request.confirmed;
    c->in.request(c->in.arg, &request);
}

/* Send a request if enough has changed, or nothing else is to be done. */
static void
request_maybe(trpi_delivery_consumer *c)
{
    uint64_t step = c->window / 2 + 1;
    bool idle = c->ready == NULL && c->hand == NULL;

    if (c->stream != 0 &&
        (demand_upto(c) >= c->told_upto + step || c->confirmed >= c->told_confirmed + step ||
         (idle && c->confirmed != c->told_confirmed))) {
        request_send(c, false);
    }
}

void
trpi_delivery_remind(trpi_delivery_consumer *c)
{
    if (c->stream != 0) {
        request_send(c, false);
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

static trpi_delivery_parcel *
ready_take(trpi_delivery_consumer *c)
{
    trpi_delivery_parcel *p = c->ready;

    c->ready = p->next;
    if (c->ready == NULL) {
        c->ready_last = &c->ready;
    }
    c->ready_count--;
    p->next = NULL;
    return p;
}

/* Is it in the consumer's hand since an earlier stream? Its confirmation counts for this one. */
static bool
is_in_hand(trpi_delivery_consumer *c, const trpi_delivery_parcel *p)
{
    for (trpi_delivery_parcel *h = c->hand; h != NULL && c->is_one; h = h->next) {
        if (h->stream == 0 && h->number == p->number) {
            h->stream = p->stream;
            h->last_seq = p->last_seq;
            return true;
        }
    }
    return false;
}

/* Give ready messages to the consumer, up to `ahead`. A message that it got in an earlier stream of
 * this producer is not given again: it is confirmed already, or will be. */
static void
deliver_on(trpi_delivery_consumer *c)
{
    while (c->ready != NULL) {
        bool is_done = c->is_one && c->ready->number <= c->done_number;

        if (is_done || is_in_hand(c, c->ready)) {
            trpi_delivery_parcel *p = ready_take(c);

            c->confirmed = is_done ? p->last_seq : c->confirmed;
            trpi_free(p);
            continue;
        }
        if (c->hand_count >= c->ahead) {
            return;
        }
        trpi_delivery_parcel *p = ready_take(c);
        *c->hand_last = p;
        c->hand_last = &p->next;
        c->hand_count++;
        c->delivering = p;
        c->in.deliver(c->in.arg, p->number, p->data, p->bytes);
        c->delivering = NULL;
    }
}

bool
trpi_delivery_confirm(trpi_delivery_consumer *c)
{
    trpi_delivery_parcel *p = c->hand;

    if (p == NULL) {
        return false;
    }
    c->hand = p->next;
    if (c->hand == NULL) {
        c->hand_last = &c->hand;
    }
    c->hand_count--;
    if (c->is_one && p->number > c->done_number) {
        c->done_number = p->number;
    }
    if (p->stream == c->stream) { /* delivery-consumer-C3 */
        c->confirmed = p->last_seq;
    }
    trpi_free(p);
    deliver_on(c);
    request_maybe(c);
    return true;
}

/* ---- streams and frames ---------------------------------------------------------------------- */

void
trpi_delivery_stream_closed(trpi_delivery_consumer *c)
{
    parcels_free(c->open);
    parcels_free(c->ready);
    c->open = c->ready = NULL;
    c->ready_last = &c->ready;
    c->ready_count = 0;
    c->stream = c->received = c->confirmed = c->told_upto = c->told_confirmed = 0;
    c->gap_told = false;
}

void
trpi_delivery_stream_opened(trpi_delivery_consumer *c, uint64_t stream, uint64_t producer,
                            bool is_one)
{
    if (stream == c->stream && producer == c->producer) {
        return;
    }
    trpi_delivery_stream_closed(c);
    if (producer != c->producer) {
        c->done_number = 0;
        /* The messages in hand are of another producer: their numbers mean nothing here. */
        for (trpi_delivery_parcel *p = c->hand; p != NULL; p = p->next) {
            p->number = 0;
        }
    }
    c->stream = stream;
    c->producer = producer;
    c->is_one = is_one;
    for (trpi_delivery_parcel *p = c->hand; p != NULL; p = p->next) {
        p->stream = 0; /* their confirmation counts for no stream */
    }
    request_send(c, false);
}

/* Begin a message. */
static trp_err
parcel_begin(trpi_delivery_consumer *c, const trpi_delivery_head *head)
{
    if (c->open != NULL) {
        return TRP_EPROTO;
    }
    if (head->total > c->message_bytes_max) { /* delivery-consumer-C4 */
        return TRP_EMSGSIZE;
    }
    c->open = trpi_alloc(sizeof *c->open + head->total);
    if (c->open == NULL) {
        return TRP_ENOMEM;
    }
    c->open->bytes = head->total;
    c->open->number = head->number;
    c->open->stream = head->stream;
    return TRP_OK;
}

static trp_err
frame_take(trpi_delivery_consumer *c, const trpi_delivery_head *head, const void *data,
           size_t bytes)
{
    if ((head->flags & TRPI_DELIVERY_FIRST) != 0) {
        trp_err err = parcel_begin(c, head);

        if (err != TRP_OK) {
            return err;
        }
    }
    trpi_delivery_parcel *p = c->open;
    if (p == NULL || p->number != head->number || bytes > p->bytes - p->filled) {
        return TRP_EPROTO;
    }
    if (bytes != 0) {
        memcpy(p->data + p->filled, data, bytes);
    }
    p->filled += (uint32_t)bytes;
    if ((head->flags & TRPI_DELIVERY_LAST) == 0) {
        return TRP_OK;
    }
    if (p->filled != p->bytes) {
        return TRP_EPROTO;
    }
    p->last_seq = head->seq;
    p->trace = c->trace;
    c->open = NULL;
    *c->ready_last = p;
    c->ready_last = &p->next;
    c->ready_count++;
    return TRP_OK;
}

trp_err
trpi_delivery_framed(trpi_delivery_consumer *c, const trpi_delivery_head *head, const void *data,
                     size_t bytes)
{
    bool is_probe = (head->flags & TRPI_DELIVERY_PROBE) != 0;
    bool is_next = head->seq == c->received + 1 ||
                   (trpi_delivery_break == 4 && head->seq > c->received &&
                    (head->flags & TRPI_DELIVERY_FIRST) != 0) ||
                   (trpi_delivery_break == 3 && head->seq == c->received);

    if (head->stream != c->stream || c->stream == 0) {
        return TRP_OK; /* of an earlier one */
    }
    if (is_probe) {
        request_send(c, head->seq > c->received);
        return TRP_OK;
    }
    if (!is_next) { /* delivery-consumer-C1 */
        if (head->seq > c->received && !c->gap_told) {
            c->gap_told = true;
            request_send(c, true);
        }
        return TRP_OK;
    }
    if (head->seq > c->told_upto && trpi_delivery_break == 0) {
        return TRP_EPROTO;
    }
    trp_err err = frame_take(c, head, data, bytes);
    if (err != TRP_OK) {
        return err;
    }
    c->received = head->seq;
    c->gap_told = false;
    deliver_on(c);
    request_maybe(c);
    return TRP_OK;
}

/* delivery_engine_test.c - both engines over a wire that loses, doubles and reorders, under seeds;
 * consumers that end and come again. TROUPE_TEST_SEED plays a seed again; TROUPE_DELIVERY_RUNS says
 * how many runs. */
#include "persistence/delivery_consumer.h"

#include <string.h>

#include "base/alloc.h"
#include "tests/unit/draw.h"

enum { CONSUMERS = 3, PACKETS = 4096, MESSAGES = 120, DATA = 900, TICK_MS = 100 };

/* On its way: a frame, or a request. */
typedef struct packet {
    uint32_t to;   /* consumer; CONSUMERS: the producer */
    uint32_t life; /* of the consumer, at either end */
    uint32_t from;
    trpi_delivery_head head;
    trpi_delivery_request request;
    uint32_t bytes;
    uint8_t data[64];
} packet;

typedef struct peer {
    trpi_delivery_consumer engine;
    uint32_t index;
    uint32_t life; /* 0: it does not run */
    uint32_t in_hand;
    uint64_t last_number; /* delivered in this life */
} peer;

static struct wire {
    unit_draw draw;
    trpi_delivery_producer producer;
    peer peers[CONSUMERS];
    packet *packets;
    uint32_t count;
    uint64_t now_ms;
    uint32_t lives, loss, kills;
    uint8_t confirmed[MESSAGES + 1], processed[MESSAGES + 1];
    uint64_t confirmed_last;
    bool one;
    const char *broken; /* the law that does not hold; NULL: all do */
} w;

static void
law(bool holds, const char *text)
{
    if (!holds && w.broken == NULL) {
        w.broken = text;
    }
}

static bool
chance(uint32_t of_1000)
{
    return unit_drawn(&w.draw, 1000) < of_1000;
}

static void
packet_send(const packet *p)
{
    uint32_t copies = chance(w.loss) ? 0 : chance(w.loss / 4) ? 2 : 1;

    for (uint32_t i = 0; i < copies && w.count < PACKETS; i++) {
        uint32_t at = w.count;

        if (w.count > 0 && chance(w.loss / 4)) { /* overtakes one */
            at = w.count - 1;
            w.packets[w.count] = w.packets[at];
        }
        w.packets[at] = *p;
        w.count++;
    }
}

static trp_ref
ref_of(uint32_t consumer, uint32_t life)
{
    return (trp_ref){ 1, consumer + 1, life, 0 };
}

static void
wire_frame(void *arg, trp_ref to, const trpi_delivery_head *head, const void *data, size_t bytes)
{
    packet p = {
        .to = to.slot - 1, .life = to.generation, .head = *head, .bytes = (uint32_t)bytes
    };

    (void)arg;
    UNIT_REQUIRE(bytes <= sizeof p.data);
    if (bytes != 0) {
        memcpy(p.data, data, bytes);
    }
    packet_send(&p);
}

static void
wire_confirmed(void *arg, uint64_t number)
{
    (void)arg;
    law(number >= 1 && number <= MESSAGES, "a number is confirmed that was put");
    law(w.processed[number] != 0, "what is confirmed was processed");
    law(w.confirmed[number]++ == 0, "each is confirmed once");
    law(!w.one || number == w.confirmed_last + 1, "one consumer confirms in order");
    w.confirmed_last = number;
}

static void
wire_request(void *arg, const trpi_delivery_request *request)
{
    const peer *c = arg;
    packet p = { .to = CONSUMERS, .from = c->index, .life = c->life, .request = *request };

    packet_send(&p);
}

static uint32_t
bytes_of(uint64_t number)
{
    return (uint32_t)(number * number * 7 % DATA);
}

static void
wire_deliver(void *arg, uint64_t number, const void *data, uint32_t bytes)
{
    peer *c = arg;
    bool same = bytes == bytes_of(number);

    for (uint32_t i = 0; same && i < bytes; i++) {
        same = ((const uint8_t *)data)[i] == (uint8_t)(number + i);
    }
    law(same, "a message is whole");
    law(!w.one || number >= c->last_number, "one consumer gets them in order");
    law(!w.one || number == c->last_number + 1 || c->last_number == 0, "and each once");
    c->last_number = number;
    w.processed[number] = 1;
    c->in_hand++;
}

/* ---- lives ----------------------------------------------------------------------------------- */

static void
peer_join(peer *c)
{
    uint64_t stream;

    if (c->life != 0 && trpi_delivery_join(&w.producer, w.now_ms, ref_of(c->index, c->life),
                                           c->life, &stream) == TRP_OK) {
        trpi_delivery_stream_opened(&c->engine, stream, 77, w.one);
    }
}

static void
peer_start(peer *c)
{
    uint32_t index = c->index;

    memset(c, 0, sizeof *c);
    c->index = index;
    c->life = ++w.lives;
    c->engine.in = (trpi_delivery_in){ c, wire_request, wire_deliver };
    c->engine.window = 1 + unit_drawn(&w.draw, 8);
    c->engine.ahead = 1 + unit_drawn(&w.draw, 3);
    c->engine.message_bytes_max = DATA;
    trpi_delivery_consumer_init(&c->engine);
    peer_join(c);
}

static void
peer_end(peer *c)
{
    if (c->life != 0) {
        trpi_delivery_consumer_fini(&c->engine);
        trpi_delivery_gone(&w.producer, w.now_ms, ref_of(c->index, c->life));
        c->life = 0;
    }
}

static void
packet_arrive(const packet *p)
{
    if (p->to == CONSUMERS) {
        (void)trpi_delivery_requested(&w.producer, w.now_ms, &p->request);
    } else if (w.peers[p->to].life == p->life) {
        uint8_t head[TRPI_DELIVERY_HEAD_BYTES];
        trpi_delivery_head got;

        trpi_delivery_head_put(&p->head, head);
        trpi_delivery_head_get(&got, head);
        law(trpi_delivery_framed(&w.peers[p->to].engine, &got, p->data, p->bytes) == TRP_OK,
            "frames are taken");
    }
}

static void
one_step(uint64_t *put)
{
    peer *c = &w.peers[unit_drawn(&w.draw, w.one ? 1 : CONSUMERS)];
    uint8_t data[DATA];

    switch (unit_drawn(&w.draw, 8)) {
    case 0:
        if (*put < MESSAGES) {
            for (uint32_t i = 0; i < bytes_of(*put + 1); i++) {
                data[i] = (uint8_t)(*put + 1 + i);
            }
            *put += trpi_delivery_put(&w.producer, w.now_ms, *put + 1, data, bytes_of(*put + 1)) ==
                    TRP_OK;
        }
        break;
    case 1:
    case 2:
        if (c->life != 0 && c->in_hand > 0) {
            c->in_hand--;
            law(trpi_delivery_confirm(&c->engine), "what is in the hand can be confirmed");
        }
        break;
    case 3:
        if (!chance(200)) {
            break;
        }
        w.now_ms += TICK_MS;
        (void)trpi_delivery_tick(&w.producer, w.now_ms);
        for (uint32_t i = 0; i < CONSUMERS; i++) {
            if (w.peers[i].life != 0) {
                trpi_delivery_remind(&w.peers[i].engine);
            }
        }
        break;
    case 4:
        if (w.kills > 0 && chance(60)) {
            w.kills--;
            peer_end(c);
        } else if (c->life == 0) {
            peer_start(c);
        } else if (w.kills > 0 && chance(60)) {
            w.kills--;
            trpi_delivery_stream_closed(&c->engine); /* the same consumer, another stream */
            trpi_delivery_gone(&w.producer, w.now_ms, ref_of(c->index, c->life));
            peer_join(c);
        }
        break;
    default:
        for (uint32_t i = 0; i < 3 && w.count > 0; i++) {
            packet p = w.packets[0];

            memmove(w.packets, w.packets + 1, --w.count * sizeof *w.packets);
            packet_arrive(&p);
        }
    }
}

/* One run; the law that does not hold, or NULL. */
static const char *
one_run(unit_draw draw)
{
    packet *packets = w.packets;
    uint64_t put = 0;
    uint32_t steps = 0;

    memset(&w, 0, sizeof w);
    w.packets = packets;
    w.draw = draw;
    w.one = chance(500);
    w.loss = unit_drawn(&w.draw, 3) * 150;
    w.kills = unit_drawn(&w.draw, 6);
    w.producer.out = (trpi_delivery_out){ NULL, wire_frame, wire_confirmed };
    w.producer.workers = !w.one;
    w.producer.part_bytes = 64;
    w.producer.messages_max = 1 + unit_drawn(&w.draw, 40);
    w.producer.bytes_max = 20000;
    w.producer.streams_max = CONSUMERS;
    w.producer.resend_ms = 3 * TICK_MS;
    trpi_delivery_producer_init(&w.producer);
    for (uint32_t i = 0; i < (w.one ? 1 : CONSUMERS); i++) {
        w.peers[i].index = i;
        peer_start(&w.peers[i]);
    }
    while ((put < MESSAGES || w.producer.messages > 0) && steps++ < 200000 && w.broken == NULL) {
        one_step(&put);
        trpi_delivery_producer_check(&w.producer);
    }
    law(put == MESSAGES && w.producer.messages == 0, "all are confirmed in the end");
    for (uint32_t n = 1; n <= MESSAGES; n++) {
        law(w.confirmed[n] == 1, "none is lost");
    }
    for (uint32_t i = 0; i < CONSUMERS; i++) {
        peer_end(&w.peers[i]);
    }
    trpi_delivery_producer_fini(&w.producer);
    return w.broken;
}

static uint32_t
runs_asked(void)
{
    const char *text = getenv("TROUPE_DELIVERY_RUNS");

    return text != NULL ? (uint32_t)strtoul(text, NULL, 10) : 300;
}

static void
each_is_confirmed_once_in_order_and_none_is_lost(void)
{
    unit_draw draw =
        unit_draw_begin("tests/unit/persistence/persistence_tests", "delivery_engine_test");

    w.packets = trpi_alloc(PACKETS * sizeof *w.packets);
    UNIT_REQUIRE(w.packets != NULL);
    for (uint32_t run = 0, runs = runs_asked(); run < runs; run++) {
        const char *broken = one_run(draw);

        if (broken != NULL) {
            printf("run %u: %s\n", run, broken);
            UNIT_TRUE(broken == NULL);
            break;
        }
        (void)unit_drawn(&draw, 2);
    }
    trpi_free(w.packets);
    w.packets = NULL;
}

/* Each deliberate fault breaks a law within the runs of one test. */
static void
each_fault_is_found(void)
{
    w.packets = trpi_alloc(PACKETS * sizeof *w.packets);
    UNIT_REQUIRE(w.packets != NULL);
    for (int fault = 1; fault <= 5; fault++) {
        const char *broken = NULL;
        unit_draw draw = { (uint64_t)fault * 0x9e3779b97f4a7c15u };

        trpi_delivery_break = fault;
        for (uint32_t run = 0; run < 200 && broken == NULL; run++) {
            broken = one_run(draw);
            (void)unit_drawn(&draw, 2);
        }
        trpi_delivery_break = 0;
        printf("fault %d: %s\n", fault, broken != NULL ? broken : "not found");
        UNIT_TRUE(broken != NULL);
    }
    trpi_free(w.packets);
    w.packets = NULL;
}

/* ---- limits ---------------------------------------------------------------------------------- */

static uint32_t frames, requests, delivered;
static trpi_delivery_request last_request;
static void
count_frame(void *arg, trp_ref to, const trpi_delivery_head *head, const void *data, size_t bytes)
{
    (void)arg, (void)to, (void)head, (void)data, (void)bytes;
    frames++;
}
static void
count_confirmed(void *arg, uint64_t number)
{
    (void)arg, (void)number;
}
static void
count_request(void *arg, const trpi_delivery_request *request)
{
    (void)arg;
    requests++;
    last_request = *request;
}
static void
count_delivered(void *arg, uint64_t number, const void *data, uint32_t bytes)
{
    (void)arg, (void)number, (void)data, (void)bytes;
    delivered++;
}

static trpi_delivery_producer
producer_of(uint32_t messages_max, uint64_t bytes_max)
{
    trpi_delivery_producer p;

    memset(&p, 0, sizeof p);
    p.out = (trpi_delivery_out){ NULL, count_frame, count_confirmed };
    p.part_bytes = 10;
    p.messages_max = messages_max;
    p.bytes_max = bytes_max;
    p.streams_max = 2;
    p.workers = true;
    p.resend_ms = 100;
    frames = 0;
    return p;
}

static void
the_producer_has_limits(void)
{
    trpi_delivery_producer p = producer_of(2, 100);
    uint64_t stream;

    trpi_delivery_producer_init(&p);
    UNIT_EQUAL(trpi_delivery_put(&p, 0, 1, "x", 1), TRP_OK);
    UNIT_EQUAL(trpi_delivery_put(&p, 0, 2, "x", 1), TRP_OK);
    UNIT_EQUAL(trpi_delivery_put(&p, 0, 3, "x", 1), TRP_EAGAIN);
    UNIT_EQUAL(trpi_delivery_join(&p, 0, ref_of(1, 1), 1, &stream), TRP_OK);
    UNIT_EQUAL(trpi_delivery_join(&p, 0, ref_of(2, 1), 1, &stream), TRP_OK);
    UNIT_EQUAL(trpi_delivery_join(&p, 0, ref_of(3, 1), 1, &stream), TRP_ELIMIT);
    UNIT_EQUAL(trpi_delivery_join(&p, 0, ref_of(2, 1), 1, &stream), TRP_OK); /* known */
    trpi_delivery_producer_fini(&p);
    p = producer_of(10, 100);
    trpi_delivery_producer_init(&p);
    uint8_t data[128] = { 0 };
    UNIT_EQUAL(trpi_delivery_put(&p, 0, 1, data, 60), TRP_OK);
    UNIT_EQUAL(trpi_delivery_put(&p, 0, 2, data, 41), TRP_EAGAIN);
    UNIT_EQUAL(trpi_delivery_put(&p, 0, 2, data, 40), TRP_OK);
    trpi_delivery_producer_check(&p);
    trpi_delivery_producer_fini(&p);
    p = producer_of(10, 100);
    trpi_delivery_producer_init(&p);
    UNIT_EQUAL(trpi_delivery_put(&p, 0, 1, data, 101), TRP_OK); /* alone, whatever its size */
    UNIT_EQUAL(trpi_delivery_put(&p, 0, 2, data, 0), TRP_EAGAIN);
    trpi_delivery_producer_fini(&p);
}

/* Demand is kept to, frame by frame; a probe comes after resend_ms of silence. */
static void
no_frame_is_sent_without_demand(void)
{
    trpi_delivery_producer p = producer_of(10, 1000);
    trpi_delivery_request request = { 0, 0, 0, 2, 0, 0 };
    uint8_t data[50] = { 0 };

    trpi_delivery_producer_init(&p);
    UNIT_EQUAL(trpi_delivery_join(&p, 0, ref_of(1, 1), 1, &request.stream), TRP_OK);
    UNIT_EQUAL(trpi_delivery_put(&p, 0, 1, data, 50), TRP_OK);
    UNIT_EQUAL(frames, 0);
    UNIT_TRUE(trpi_delivery_requested(&p, 0, &request));
    UNIT_EQUAL(frames, 2);
    request.upto = 4;
    UNIT_TRUE(trpi_delivery_requested(&p, 0, &request));
    UNIT_EQUAL(frames, 4);
    UNIT_TRUE(trpi_delivery_tick(&p, 99));
    UNIT_EQUAL(frames, 4);
    UNIT_TRUE(trpi_delivery_tick(&p, 100));
    UNIT_EQUAL(frames, 5);
    request.received = 1;
    request.resend = 1;
    UNIT_TRUE(trpi_delivery_requested(&p, 100, &request));
    UNIT_EQUAL(frames, 8);                       /* 2, 3, 4 again */
    request.received = request.confirmed = 1000; /* of a liar */
    UNIT_TRUE(trpi_delivery_requested(&p, 100, &request));
    UNIT_EQUAL(p.messages, 1);
    request.stream++;
    UNIT_TRUE(!trpi_delivery_requested(&p, 100, &request));
    trpi_delivery_producer_fini(&p);
}

static void
the_consumer_has_limits_and_refuses_what_makes_no_sense(void)
{
    trpi_delivery_consumer c;
    trpi_delivery_head head = { 5, 1, 1, TRPI_DELIVERY_FIRST | TRPI_DELIVERY_LAST, 10 };
    uint8_t data[32] = { 0 };

    memset(&c, 0, sizeof c);
    c.in = (trpi_delivery_in){ NULL, count_request, count_delivered };
    c.window = 2;
    c.ahead = 1;
    c.message_bytes_max = 10;
    trpi_delivery_consumer_init(&c);
    requests = delivered = 0;
    UNIT_EQUAL(trpi_delivery_framed(&c, &head, data, 10), TRP_OK); /* no stream: not taken */
    trpi_delivery_stream_opened(&c, 5, 1, true);
    UNIT_EQUAL(last_request.upto, 2);
    UNIT_EQUAL(trpi_delivery_framed(&c, &head, data, 10), TRP_OK);
    UNIT_EQUAL(trpi_delivery_framed(&c, &head, data, 10), TRP_OK); /* again: ignored */
    head.seq = head.number = 2;
    head.total = 11;
    UNIT_EQUAL(trpi_delivery_framed(&c, &head, data, 11), TRP_EMSGSIZE);
    head.total = 10;
    UNIT_EQUAL(trpi_delivery_framed(&c, &head, data, 9), TRP_EPROTO); /* fewer than it said */
    trpi_delivery_stream_closed(&c);
    trpi_delivery_stream_opened(&c, 6, 1, true);
    head = (trpi_delivery_head){ 6, 1, 2, TRPI_DELIVERY_LAST, 10 };
    UNIT_EQUAL(trpi_delivery_framed(&c, &head, data, 10), TRP_EPROTO); /* no first part */
    head.flags = TRPI_DELIVERY_FIRST;
    UNIT_EQUAL(trpi_delivery_framed(&c, &head, data, 11), TRP_EPROTO); /* more than it said */
    UNIT_EQUAL(delivered, 1);
    UNIT_TRUE(trpi_delivery_confirm(&c));
    UNIT_TRUE(!trpi_delivery_confirm(&c));
    trpi_delivery_consumer_fini(&c);
}

UNIT_BEGIN("delivery_engine")
UNIT(each_is_confirmed_once_in_order_and_none_is_lost)
UNIT(each_fault_is_found)
UNIT(the_producer_has_limits)
UNIT(no_frame_is_sent_without_demand)
UNIT(the_consumer_has_limits_and_refuses_what_makes_no_sense)
UNIT_END

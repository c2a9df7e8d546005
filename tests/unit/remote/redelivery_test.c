/* redelivery_test.c - exactly once and in order, under loss, duplication, reordering and
 * reconnects.
 *     TROUPE_SIM_SEEDS=20000 [TROUPE_SIM_FIRST=SEED] tests/unit/remote/redelivery_test  (300, 1)
 */
#include <stdlib.h>

#include "base/wire.h"
#include "remote/association/redelivery.h"
#include "tests/unit/unit.h"

static uint64_t
next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static trp_err
number_push(trpi_redelivery *r, uint64_t now, uint64_t number)
{
    uint8_t body[TRPI_SYSTEM_BODY_BYTES] = { 0 };
    trpi_put_u64(body, number);
    return trpi_redelivery_push(r, now, body);
}

enum { TO_RECEIVER, TO_SENDER_ACK, TO_SENDER_NACK };
typedef struct packet {
    int kind;
    uint64_t seq, number;
} packet;
#define LINK_PACKETS_MAX 4096u
typedef struct link { /* first .. first + count: taking the first one moves nothing */
    packet packets[2 * LINK_PACKETS_MAX];
    uint32_t first, count;
} link_t;

static void
packet_put(link_t *link, packet p, uint64_t *seed, unsigned loss)
{
    uint64_t dice = next_random(seed) % 100;
    if (dice < loss || link->count + 2 > LINK_PACKETS_MAX) {
        return;
    }
    if (link->first + link->count + 2 > 2 * LINK_PACKETS_MAX) {
        memmove(link->packets, &link->packets[link->first], link->count * sizeof p);
        link->first = 0;
    }
    link->packets[link->first + link->count++] = p;
    if (dice >= 90) {
        link->packets[link->first + link->count++] = p; /* duplicated */
    }
}

static packet
packet_take(link_t *link, uint32_t at)
{
    packet *first = &link->packets[link->first++];
    packet taken = first[at];

    memmove(first + 1, first, at * sizeof taken);
    link->count--;
    return taken;
}

static void
run_seed(uint64_t run)
{
    static link_t wire;
    uint64_t seed = run * 0x9e3779b97f4a7c15u + 1;
    unsigned loss = (unsigned)(run % 40);
    uint64_t now = 0, pushed = 0, delivered = 0;
    bool good = true;
    trpi_redelivery sender, receiver;
    trpi_redelivery_init(&sender, 100, 0, 0);
    trpi_redelivery_init(&receiver, 100, 0, 0);
    wire.count = 0;
    for (int step = 0;
         step < 20000 && (delivered < 500 || trpi_redelivery_unacked(&sender) > 0) && good;
         step++) {
        uint64_t seq = 0;
        now += next_random(&seed) % 50;
        if (pushed < 500 && number_push(&sender, now, pushed + 1) == TRP_OK) {
            pushed++;
        }
        UNIT_EQUAL(trpi_redelivery_tick(&sender, now), TRP_OK);
        for (const uint8_t *body; (body = trpi_redelivery_next(&sender, now, &seq)) != NULL;) {
            packet_put(&wire, (packet){ TO_RECEIVER, seq, trpi_get_u64(body) }, &seed, loss);
        }
        if (next_random(&seed) % 200 == 0) { /* the connection breaks: packets in flight are lost */
            wire.count = 0;
            trpi_redelivery_reconnected(&sender);
        }
        while (wire.count > 0 && next_random(&seed) % 4 != 0) {
            uint32_t at = next_random(&seed) % 3 == 0 ? (uint32_t)(next_random(&seed) % wire.count)
                                                      : 0; /* reordered */
            packet p = packet_take(&wire, at);
            if (p.kind == TO_RECEIVER) {
                enum trpi_redelivery_verdict verdict = trpi_redelivery_receive(&receiver, p.seq);
                if (verdict == TRPI_REDELIVERY_DELIVER) {
                    good = p.number == ++delivered; /* redelivery-R2 */
                }
                packet answer = { verdict == TRPI_REDELIVERY_GAP ? TO_SENDER_NACK : TO_SENDER_ACK,
                                  receiver.expected, 0 };
                packet_put(&wire, answer, &seed, loss);
            } else {
                good = p.kind == TO_SENDER_ACK ? trpi_redelivery_ack(&sender, now, p.seq)
                                               : trpi_redelivery_nack(&sender, now, p.seq);
            }
        }
    }
    if (!UNIT_TRUE(good && delivered == 500 && trpi_redelivery_unacked(&sender) == 0)) {
        printf("  seed %llu: delivered %llu; TROUPE_SIM_SEEDS=1 TROUPE_SIM_FIRST=%llu\n",
               (unsigned long long)run, (unsigned long long)delivered, (unsigned long long)run);
    }
    trpi_redelivery_fini(&sender);
    trpi_redelivery_fini(&receiver);
}

#ifdef UNIT_SANITIZED
#define SEEDS 60 /* each takes twenty times as long there */
#else
#define SEEDS 300
#endif

/* REMOTE-37 REMOTE-40 REMOTE-41 */
static void
every_message_arrives_once_and_in_order_over_a_bad_link(void)
{
    const char *seeds = getenv("TROUPE_SIM_SEEDS"), *from = getenv("TROUPE_SIM_FIRST");
    uint64_t count = seeds != NULL ? strtoull(seeds, NULL, 10) : SEEDS;
    uint64_t first = from != NULL ? strtoull(from, NULL, 10) : 1;
    for (uint64_t run = first; run < first + count; run++) {
        run_seed(run);
    }
}

/* REMOTE-37: the limit and one past it */
static void
the_unacknowledged_are_bounded(void)
{
    trpi_redelivery r;
    trpi_redelivery_init(&r, 5, 0, 0);
    for (uint64_t i = 1; i <= 5; i++) {
        UNIT_EQUAL(number_push(&r, 0, i), TRP_OK);
    }
    UNIT_EQUAL(number_push(&r, 0, 6), TRP_ELIMIT);
    UNIT_TRUE(trpi_redelivery_ack(&r, 0, 1));
    UNIT_EQUAL(number_push(&r, 0, 6), TRP_OK);
    UNIT_EQUAL(number_push(&r, 0, 7), TRP_ELIMIT);
    trpi_redelivery_fini(&r);
}

/* REMOTE-39 */
static void
silence_of_a_second_sends_again_and_of_six_hours_gives_up(void)
{
    trpi_redelivery r;
    uint64_t seq = 0;
    trpi_redelivery_init(&r, 0, 0, 0);
    UNIT_EQUAL(number_push(&r, 1000, 1), TRP_OK);
    UNIT_TRUE(trpi_redelivery_next(&r, 1000, &seq) != NULL);
    UNIT_TRUE(trpi_redelivery_next(&r, 1000, &seq) == NULL);
    UNIT_EQUAL(trpi_redelivery_tick(&r, 1000 + TRPI_RESEND_MS - 1), TRP_OK);
    UNIT_TRUE(trpi_redelivery_next(&r, 1999, &seq) == NULL);
    UNIT_EQUAL(trpi_redelivery_tick(&r, 1000 + TRPI_RESEND_MS), TRP_OK);
    UNIT_TRUE(trpi_redelivery_next(&r, 2000, &seq) != NULL);
    UNIT_EQUAL(seq, 1);
    UNIT_EQUAL(r.resent, 1);
    UNIT_EQUAL(trpi_redelivery_tick(&r, 1000 + TRPI_GIVE_UP_MS - 1), TRP_OK);
    UNIT_EQUAL(trpi_redelivery_tick(&r, 1000 + TRPI_GIVE_UP_MS), TRP_ETIMEDOUT);
    trpi_redelivery_fini(&r);
}

/* The time was read before another thread's push: no entry counts as old. */
static void
a_tick_with_an_earlier_clock_gives_nothing_up(void)
{
    trpi_redelivery r;
    uint64_t seq = 0;
    trpi_redelivery_init(&r, 0, 0, 0);
    UNIT_EQUAL(number_push(&r, 1000, 1), TRP_OK);
    UNIT_TRUE(trpi_redelivery_next(&r, 1000, &seq) != NULL);
    UNIT_EQUAL(trpi_redelivery_tick(&r, 999), TRP_OK);
    UNIT_EQUAL(r.resent, 0);
    trpi_redelivery_fini(&r);
}

static void
an_ack_of_what_was_never_sent_is_refused(void)
{
    trpi_redelivery r;
    trpi_redelivery_init(&r, 0, 0, 0);
    UNIT_FALSE(trpi_redelivery_ack(&r, 0, 1));
    UNIT_EQUAL(number_push(&r, 0, 1), TRP_OK);
    UNIT_TRUE(trpi_redelivery_ack(&r, 0, 1));
    UNIT_FALSE(trpi_redelivery_nack(&r, 0, 2));
    UNIT_EQUAL(trpi_redelivery_unacked(&r), 0);
    trpi_redelivery_fini(&r);
}

/* REMOTE-41 */
static void
a_new_incarnation_begins_with_1(void)
{
    trpi_redelivery r;
    uint64_t seq = 0;
    trpi_redelivery_init(&r, 0, 0, 0);
    UNIT_EQUAL(number_push(&r, 0, 1), TRP_OK);
    UNIT_EQUAL(number_push(&r, 0, 2), TRP_OK);
    UNIT_EQUAL(trpi_redelivery_receive(&r, 1), TRPI_REDELIVERY_DELIVER);
    UNIT_EQUAL(trpi_redelivery_reset(&r), 2);
    UNIT_EQUAL(number_push(&r, 0, 3), TRP_OK);
    UNIT_TRUE(trpi_redelivery_next(&r, 0, &seq) != NULL);
    UNIT_EQUAL(seq, 1);
    UNIT_EQUAL(trpi_redelivery_receive(&r, 2), TRPI_REDELIVERY_GAP);
    UNIT_EQUAL(trpi_redelivery_receive(&r, 1), TRPI_REDELIVERY_DELIVER);
    UNIT_EQUAL(trpi_redelivery_receive(&r, 1), TRPI_REDELIVERY_DUPLICATE);
    trpi_redelivery_fini(&r);
}

UNIT_BEGIN("redelivery")
UNIT(every_message_arrives_once_and_in_order_over_a_bad_link)
UNIT(the_unacknowledged_are_bounded)
UNIT(silence_of_a_second_sends_again_and_of_six_hours_gives_up)
UNIT(a_tick_with_an_earlier_clock_gives_nothing_up)
UNIT(an_ack_of_what_was_never_sent_is_refused)
UNIT(a_new_incarnation_begins_with_1)
UNIT_END

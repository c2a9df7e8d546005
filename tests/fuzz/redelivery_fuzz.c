/* redelivery_fuzz.c - acknowledgements, NACKs and sequence numbers of a peer that may send false
 * ones.
 *
 * Three bytes are one event: what happens, and a number near the present one or far from it.
 * The sender's counters and the receiver's deliveries must keep the invariants of redelivery.c.
 * Corpus: tests/fuzz/corpus/redelivery.
 */
#include <stdlib.h>
#include <string.h>

#include "remote/association/redelivery.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static uint64_t
number_near(uint64_t base, uint8_t step, uint8_t far)
{
    uint64_t number = base + step - 128;
    return far % 16 == 15 ? number << (far / 16 * 4) : number;
}

static void
event_apply(trpi_redelivery *r, const uint8_t *bytes, uint64_t *now_ms, uint64_t *pushed)
{
    uint8_t body[TRPI_SYSTEM_BODY_BYTES] = { 0 };
    uint64_t number = number_near(r->acked, bytes[1], bytes[2]);
    uint64_t acked = r->acked, expected = r->expected, seq = 0;
    switch (bytes[0] % 7) {
    case 0:
        *pushed += 1;
        memcpy(body, pushed, sizeof *pushed);
        if (trpi_redelivery_push(r, *now_ms, body) != TRP_OK) {
            *pushed -= 1;
        }
        break;
    case 1: {
        const uint8_t *next = trpi_redelivery_next(r, *now_ms, &seq);
        require((next == NULL) == (seq == 0));
        require(next == NULL ||
                memcmp(next, &seq, sizeof seq) == 0); /* number and body go together */
        break;
    }
    case 2:
        require(trpi_redelivery_ack(r, *now_ms, number) == (number <= r->pushed));
        break;
    case 3:
        require(trpi_redelivery_nack(r, *now_ms, number) == (number <= r->pushed));
        break;
    case 4: {
        uint64_t arrived = number_near(expected, bytes[1], bytes[2]);
        enum trpi_redelivery_verdict verdict = trpi_redelivery_receive(r, arrived);
        require((verdict == TRPI_REDELIVERY_DELIVER) == (arrived == expected + 1));
        require(r->expected == expected + (verdict == TRPI_REDELIVERY_DELIVER));
        break;
    }
    case 5:
        *now_ms += (uint64_t)bytes[1] * bytes[2];
        (void)trpi_redelivery_tick(r, *now_ms);
        break;
    default:
        trpi_redelivery_reconnected(r);
        break;
    }
    require(r->acked >= acked && r->acked <= r->sent && r->sent <= r->pushed);
    require(trpi_redelivery_unacked(r) <= r->max && r->pushed == *pushed);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trpi_redelivery r;
    uint64_t now_ms = 1, pushed = 0;
    trpi_redelivery_init(&r, 64, 0, 0);
    for (size_t at = 0; at + 3 <= size; at += 3) {
        event_apply(&r, data + at, &now_ms, &pushed);
    }
    trpi_redelivery_fini(&r);
    return 0;
}

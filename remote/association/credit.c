/* credit.c - see the header.
 *
 * Why.    Messages for a slow receiver must not delay messages for others, and must not grow
 *         without bound on either node. So its senders' nodes keep them, and send as many as it
 *         handles. A window of one size for all receivers would be too small for one (a round trip
 *         must fit) or too large for a thousand: each may have a share of the memory that is left
 *         (dynamic queue thresholds, as switches have them).
 * Must hold.
 *   credit-W1  Bytes that are granted and have not arrived, and bytes that wait, are together no
 *       more than the window was when they were granted.
 *   credit-W2  A receiver for which nothing waits is free, or becomes so with the next CREDIT.
 * Tests.  tests/unit/remote/credit_test.c
 * Sources. A. Choudhury, E. Hahne, "Dynamic queue length thresholds for shared-memory packet
 *         switches", 1998.
 */
#include "remote/association/credit.h"

#include "base/wire.h"

enum {
    SHARE = 16,    /* one may have this part of what is left for all */
    QUARTER = 4,   /* of its limit at once; a receiver with less of its window is free */
    GRANT_PART = 8 /* less than this part of a window is not worth a frame */
};

static uint64_t
min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t
max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

uint64_t
trpi_credit_window(const trpi_credit_limits *limits, uint64_t waiting)
{
    uint64_t left = limits->all > waiting ? limits->all - waiting : 0;
    return max_u64(min_u64(limits->one / QUARTER, left / SHARE), TRPI_CREDIT_LEAST_BYTES);
}

uint64_t
trpi_credit_most(const trpi_credit_limits *limits, uint64_t waiting)
{
    uint64_t few = min_u64(limits->one, QUARTER * (uint64_t)TRPI_CREDIT_LEAST_BYTES);
    return waiting < limits->all ? limits->one : few;
}

static trpi_credit_word
credit_word(trpi_credit *credit, uint8_t flags, uint64_t bytes)
{
    credit->unsaid = 0;
    return (trpi_credit_word){ true, flags, bytes };
}

/* A sender that has kept much asks again when that is used up: it must not come all at once. */
static trpi_credit_word
set_free(trpi_credit *credit, uint64_t window, uint64_t waiting)
{
    credit->limited = false;
    credit->granted = 0;
    return credit_word(credit, TRPI_CREDIT_FREE | TRPI_CREDIT_SET, window - waiting);
}

trpi_credit_word
trpi_credit_came(trpi_credit *credit, uint64_t window, uint64_t waiting, uint64_t bytes)
{
    if (!credit->limited) {
        if (waiting <= window) {
            return (trpi_credit_word){ false, 0, 0 };
        }
        credit->limited = true;
        credit->granted = 0;
        return credit_word(credit, TRPI_CREDIT_SET, 0);
    }
    uint64_t expected = min_u64(credit->granted, bytes);
    credit->granted -= expected;
    credit->unsaid += bytes - expected;
    /* it does not know: the frame was lost */
    return credit->unsaid >= TRPI_CREDIT_AGAIN_BYTES ? credit_word(credit, TRPI_CREDIT_SET, 0)
                                                     : (trpi_credit_word){ false, 0, 0 };
}

trpi_credit_word
trpi_credit_passed(trpi_credit *credit, uint64_t window, uint64_t waiting)
{
    if (!credit->limited) {
        return (trpi_credit_word){ false, 0, 0 };
    }
    if (waiting <= window / QUARTER) {
        return set_free(credit, window, waiting); /* credit-W2 */
    }
    uint64_t taken = waiting + credit->granted; /* credit-W1 */
    if (taken >= window || window - taken < window / GRANT_PART) {
        return (trpi_credit_word){ false, 0, 0 };
    }
    credit->granted += window - taken;
    return credit_word(credit, 0, window - taken);
}

trpi_credit_word
trpi_credit_asked(trpi_credit *credit, uint64_t window, uint64_t waiting)
{
    if (waiting <= window / QUARTER) {
        return set_free(credit, window, waiting);
    }
    credit->limited = true;
    credit->granted = window > waiting ? window - waiting : 0;
    return credit_word(credit, TRPI_CREDIT_SET, credit->granted);
}

void
trpi_credit_encode(uint8_t body[TRPI_CREDIT_BYTES], const trpi_credit_frame *frame)
{
    trpi_put_u32(body, frame->slot);
    trpi_put_u32(body + 4, frame->generation);
    trpi_put_u64(body + 8, frame->bytes);
}

void
trpi_credit_decode(const uint8_t *body, size_t count, trpi_credit_frame *ret_frame)
{
    ret_frame->slot = trpi_get_u32(body);
    ret_frame->generation = trpi_get_u32(body + 4);
    ret_frame->bytes = count >= TRPI_CREDIT_BYTES ? trpi_get_u64(body + 8) : 0;
}

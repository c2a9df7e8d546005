/* credit.h - how much may wait for one receiver, and what the sending node is told of it. Pure.
 *
 * Receiving side, one a (peer, receiver):
 *
 *     free --more waits than its window--> limited: CREDIT 0 is said, then more credit as it
 *      ^                                      |     handles what it has
 *      '---- little waits: CREDIT free -------'
 *
 * Sending side: a hold (hold.c) keeps what has no credit.
 */
#ifndef TRPI_REMOTE_CREDIT_H
#define TRPI_REMOTE_CREDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>

#define TRPI_CREDIT_MESSAGE_BYTES 64     /* what each message counts besides its payload */
#define TRPI_CREDIT_MARK_BYTES 32768u    /* between two marks in a receiver's mail */
#define TRPI_CREDIT_LEAST_BYTES 65536u   /* so much may always wait for a receiver */
#define TRPI_CREDIT_AGAIN_BYTES 1048576u /* CREDIT 0 is said again when so much came in spite */

typedef struct trpi_credit_limits {
    uint64_t one, all; /* bytes: for one receiver, for all of a node together */
} trpi_credit_limits;

/* Bytes that may wait for one receiver before its senders are slowed, while `waiting` wait for all.
 * The more wait in all, the less each may have. */
uint64_t trpi_credit_window(const trpi_credit_limits *limits, uint64_t waiting);
/* Mail above this for one receiver becomes dead letters. */
uint64_t trpi_credit_most(const trpi_credit_limits *limits, uint64_t waiting);

/* The receiving side. All zero: free. */
typedef struct trpi_credit {
    bool limited;
    uint64_t granted; /* and not come yet */
    uint64_t unsaid;  /* came without credit since CREDIT was said last */
} trpi_credit;

/* Flags of CREDIT. */
enum {
    TRPI_CREDIT_FREE = 1, /* no limit any more; a sender that keeps more asks again */
    TRPI_CREDIT_SET = 2   /* what was granted before does not count any more */
};
/* A frame to be said. */
typedef struct trpi_credit_word {
    bool say;
    uint8_t flags;
    uint64_t bytes;
} trpi_credit_word;

/* waiting: for this receiver, of this peer, now; with `bytes` that have just come. */
trpi_credit_word trpi_credit_came(trpi_credit *credit, uint64_t window, uint64_t waiting,
                                  uint64_t bytes);
/* Something was handled. */
trpi_credit_word trpi_credit_passed(trpi_credit *credit, uint64_t window, uint64_t waiting);
/* The sender asks for its credit, behind all that it has sent: always answered. */
trpi_credit_word trpi_credit_asked(trpi_credit *credit, uint64_t window, uint64_t waiting);

/* Body of CREDIT; CREDIT_ASK has the first 8 bytes of it. */
#define TRPI_CREDIT_BYTES 16
#define TRPI_CREDIT_ASK_BYTES 8
typedef struct trpi_credit_frame {
    uint32_t slot, generation; /* of the receiver, on the granting node */
    uint64_t bytes;
} trpi_credit_frame;
void trpi_credit_encode(uint8_t body[TRPI_CREDIT_BYTES], const trpi_credit_frame *frame);
/* count: TRPI_CREDIT_BYTES, or TRPI_CREDIT_ASK_BYTES. */
void trpi_credit_decode(const uint8_t *body, size_t count, trpi_credit_frame *ret_frame);

#endif

/* bottleneck.h - how much of a connection's data may be in the kernel and on the way; pure.
 *
 * TCP fills the queue in front of a narrow link until that drops packets, which may be 20 seconds'
 * worth of a modem's queue. All that shares the link waits behind it, heartbeats too. So the bytes
 * handed to the kernel are bounded to those that are acknowledged within half a second; the rest
 * waits in the lane, and control frames have a lane of their own.
 */
#ifndef TRPI_REMOTE_BOTTLENECK_H
#define TRPI_REMOTE_BOTTLENECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRPI_BOTTLENECK_LOOK_US 100000u   /* between two looks at a connection that sends */
#define TRPI_BOTTLENECK_RTT_US 5000u      /* below: no narrow link on the way, so no bound */
#define TRPI_BOTTLENECK_TARGET_US 500000u /* of round trips, where the way itself is short */
#define TRPI_BOTTLENECK_TARGET_US_MAX 1500000u
#define TRPI_BOTTLENECK_BYTES_MIN 4096u    /* three packets */
#define TRPI_BOTTLENECK_BYTES_MAX 1048576u /* above: no bound */

typedef struct trpi_bottleneck { /* as the kernel gives it, or computed from that */
    uint32_t in_kernel;          /* bytes not acknowledged: sent, and not sent yet */
    uint64_t rate;               /* acknowledged since the last look, bytes/s; 0: unknown */
    uint32_t rtt_us;             /* smoothed */
    uint32_t min_rtt_us;         /* 0: unknown */
    bool held;                   /* a write had to wait for room since the last look */
} trpi_bottleneck;

typedef struct trpi_bottleneck_state { /* of a connection */
    uint32_t limit;                    /* its bound, 0: none */
    uint64_t handed;                   /* bytes, to the kernel; counted by the owner */
    uint64_t look_ns;                  /* when it is looked at next */
    uint64_t looked_ns;                /* the last look */
    uint64_t acked;                    /* of the bytes, then */
    bool was_busy;                     /* then */
    bool was_held;                     /* since then */
} trpi_bottleneck_state;

/* A connection with this round trip has just been made. */
void trpi_bottleneck_begin(trpi_bottleneck_state *way, uint32_t rtt_us);
/* Is the kernel to be asked before a write? If not, any number of bytes may be handed over. */
bool trpi_bottleneck_is_asked(const trpi_bottleneck_state *way, uint64_t now_ns);
/* How many bytes may be handed over now; SIZE_MAX: any. look: in_kernel, rtt_us and min_rtt_us as
 * they are now. */
size_t trpi_bottleneck_allow(trpi_bottleneck_state *way, const trpi_bottleneck *look,
                             uint64_t now_ns);

/* ---- its parts ---- */

/* The bound for a connection that has just been made; 0: none. */
uint32_t trpi_bottleneck_first(uint32_t rtt_us);
/* Its bound from now on, when it is `limit` now; 0: none. */
uint32_t trpi_bottleneck_limit(const trpi_bottleneck *look, uint32_t limit);
/* How long the next look has to wait: the effect of a new bound is seen a round trip later. */
uint32_t trpi_bottleneck_wait_us(const trpi_bottleneck *look, uint32_t limit);
/* How many bytes may be handed over now; SIZE_MAX: any. */
size_t trpi_bottleneck_room(const trpi_bottleneck *look, uint32_t limit);

#endif

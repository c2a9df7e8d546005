/* control_reserve.h - the blocks in which the thread for control lanes hands bytes on: made
 * beforehand, taken by that thread alone, given back by any.
 *
 * Must hold.
 *   control-reserve-R1  Taking and giving back take no lock and no memory. Only one thread takes,
 *       so an entry that it is about to take cannot return meanwhile.
 *   control-reserve-R2  Each lane has a share that no other one takes: what one read brings. So a
 *       lane may read when nothing of it waits, or when the rest has room for a share.
 * Tests. tests/unit/remote/control_scan_test.c, control_lane_test.c
 */
#ifndef TRPI_REMOTE_CONTROL_RESERVE_H
#define TRPI_REMOTE_CONTROL_RESERVE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>

enum {
    TRPI_CONTROL_BLOCK_BYTES = 1000,
    TRPI_CONTROL_SHARE = 24,   /* blocks: a read of 4 KiB may complete a TLS record of 16 KiB */
    TRPI_CONTROL_COMMON = 1024 /* blocks for all lanes, beside their shares */
};

typedef struct trpi_control_block {
    struct trpi_control_block *next;
    uint64_t arrived_ns;
    uint32_t count;
    uint8_t bytes[TRPI_CONTROL_BLOCK_BYTES];
} trpi_control_block;

typedef struct trpi_control_reserve trpi_control_reserve;

/* NULL: no memory. */
trpi_control_reserve *trpi_control_reserve_new(void);
void trpi_control_reserve_free(trpi_control_reserve *reserve); /* NULL is fine */
/* One lane more, with its share. Errors: TRP_ENOMEM. Thread: any. */
trp_err trpi_control_reserve_join(trpi_control_reserve *reserve);
void trpi_control_reserve_leave(trpi_control_reserve *reserve);
/* NULL: a lane has taken more than a share with one read. Thread: the one for control lanes. */
trpi_control_block *trpi_control_block_take(trpi_control_reserve *reserve);
void trpi_control_block_give(trpi_control_reserve *reserve, trpi_control_block *block);
/* May a lane read of which so many blocks wait? */
bool trpi_control_may_read(const trpi_control_reserve *reserve, uint32_t waiting);

#endif

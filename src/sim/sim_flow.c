/* sim_flow.c - the bytes of one direction of a simulated stream: a ring that grows up to what the
 * two buffers hold.
 */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "sim/sim_socket.h"

#define ROOM_BYTES 1024u

/* Take `bytes` of the vectors; false: no memory. */
bool
trpi_sim_flow_append(sim_flow *flow, const struct iovec *iov, size_t bytes)
{
    size_t room = flow->room == 0 ? ROOM_BYTES : flow->room;

    while (room < flow->count + bytes) {
        room *= 2;
    }
    if (room != flow->room) {
        uint8_t *ring = trpi_alloc(room);

        if (ring == NULL) {
            return false;
        }
        for (size_t i = 0; i < flow->count; i++) {
            ring[i] = flow->bytes[(flow->first + i) % flow->room];
        }
        trpi_free(flow->bytes);
        flow->bytes = ring;
        flow->room = room;
        flow->first = 0;
    }
    for (; bytes > 0; iov++) {
        const uint8_t *from = iov->iov_base;
        size_t part = iov->iov_len < bytes ? iov->iov_len : bytes;

        bytes -= part;
        while (part > 0) {
            size_t at = (flow->first + flow->count) % flow->room;
            size_t some = flow->room - at < part ? flow->room - at : part;

            memcpy(flow->bytes + at, from, some);
            flow->count += some;
            from += some;
            part -= some;
        }
    }
    return true;
}

/* Give `bytes` of those that have arrived. */
void
trpi_sim_flow_take(sim_flow *flow, const struct iovec *iov, size_t bytes)
{
    flow->arrived -= bytes;
    flow->count -= bytes;
    for (; bytes > 0; iov++) {
        uint8_t *to = iov->iov_base;
        size_t part = iov->iov_len < bytes ? iov->iov_len : bytes;

        bytes -= part;
        while (part > 0) {
            size_t some = flow->room - flow->first < part ? flow->room - flow->first : part;

            memcpy(to, flow->bytes + flow->first, some);
            flow->first = (flow->first + some) % flow->room;
            to += some;
            part -= some;
        }
    }
}

/* Forget the bytes that have not arrived. */
void
trpi_sim_flow_cut(sim_flow *flow)
{
    flow->count = flow->arrived;
    flow->flying = 0;
}

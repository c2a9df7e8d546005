/* lane.h - the queue of a lane, the choice of the lane of a message, and order across lanes. */
#ifndef TRPI_REMOTE_LANE_H
#define TRPI_REMOTE_LANE_H

#include "base/hash.h"
#include "remote/association/lane_state.h"

/* ---- lane.c ---- */
/* Bytes that may wait on a lane. */
static inline size_t
trpi_lane_bytes_max(const trpi_remote *remote, enum trpi_lane lane)
{
    return lane == TRPI_LANE_CONTROL ? remote->options.control_bytes_max
           : lane == TRPI_LANE_LARGE ? remote->options.large_lane_bytes_max
                                     : remote->options.lane_bytes_max;
}
/* Bytes above which trp_try_tell() is refused. */
static inline size_t
trpi_lane_admit_max(const trpi_remote *remote, enum trpi_lane lane)
{
    size_t quarter = trpi_lane_bytes_max(remote, lane) / 4;
    /* few messages fill the large lane: it would run empty between two of them */
    return quarter < TRPI_ADMIT_BYTES_MAX || lane == TRPI_LANE_LARGE ? quarter
                                                                     : TRPI_ADMIT_BYTES_MAX;
}
/* Tell refused and slowed senders when there is room again. The caller holds peer->lock. */
void trpi_lanes_room_notify(trpi_peer *peer, trpi_deferred *deferred);
/* Keep the frames for anyone and those for keep_uid; move the others to deferred->dropped of the
 * lane, which takes them of one incarnation. The caller holds peer->lock, as for the next. */
void trpi_lane_drop(trpi_peer *peer, enum trpi_lane lane, uint64_t keep_uid, trp_dead_reason reason,
                    trpi_deferred *deferred);
/* Move all that waits on a lane to deferred->dropped, which has nothing of the lane yet. */
void trpi_lane_clear(trpi_peer *peer, enum trpi_lane lane, trpi_deferred *deferred);
/* node: that those without ANYONE were for. Without locks. */
void trpi_lane_dead_letters(trpi_peer *peer, uint32_t node, const trpi_buffer *frames,
                            trp_dead_reason reason);
/* Append the system messages that are due to the control lane. By peer->lock, as the next. */
void trpi_system_messages_send(trpi_peer *peer);
/* Append frames to a lane. uid 0: for any incarnation. checked: the caller has checked the limit.
 * Takes the content of frames on success (the buffer is then empty, perhaps with other memory). The
 * caller pumps afterwards.
 * Errors: TRP_EQUARANTINED, TRP_ECLOSED (that incarnation is over), TRP_EAGAIN (full),
 *         TRP_ENOMEM. */
trp_err trpi_peer_append(trpi_peer *peer, enum trpi_lane lane, uint64_t uid, trpi_buffer *frames,
                         bool checked);

/* ---- spread.c: which lane ---- */
/* Features that this node offers. */
uint32_t trpi_features_own(const trpi_remote *remote);
/* The longest body of a CONTROL frame, with these features and this limit of all frames. */
uint32_t trpi_control_frame_max(uint32_t features, uint32_t frame_bytes_max);
/* The peer of this connection is known: it may send frames as long as any. */
void trpi_conn_takes_large(trpi_conn *conn);
/* The ordinary lane of a recipient. */
static inline enum trpi_lane
trpi_lane_of(uint32_t spread, uint32_t slot)
{
    /* recipients of one large place share their ordinary lane: its fence is for all of them */
    uint32_t nth = spread > 1 ? (uint32_t)(trpi_hash_u64(slot) % TRPI_LARGE_PLACES % spread) : 0;
    return (enum trpi_lane)(TRPI_LANE_ORDINARY + nth);
}
/* Keep what a handshake has agreed on; the caller holds peer->lock. */
void trpi_peer_agree(trpi_peer *peer, const trpi_handshake *handshake, int64_t cert_until_ms);
/* Use the lanes that the proved incarnation takes: what waits moves. By peer->lock. */
void trpi_peer_spread(trpi_peer *peer, trpi_deferred *deferred);
/* Sort frames into lanes, at the end of each of sorted; of a type's manifests the first, by
 * announced: a bit a type number. Frames that
 * find no memory go to *ret_lost. */
void trpi_frames_sort(uint32_t spread, const trpi_buffer *frames,
                      trpi_buffer sorted[TRPI_LANE_COUNT], uint8_t announced[TRPI_ANNOUNCED_BYTES],
                      trpi_buffer *ret_lost);

/* ---- fence.c: order across lanes. The caller holds peer->lock ---- */
/* Append one, if anything may be on its way on that lane. Errors: TRP_ENOMEM. */
trp_err trpi_fence_append(trpi_peer *peer, enum trpi_lane lane);
/* The first that a new connection of a lane says, when one may be lost. */
void trpi_fence_again(trpi_peer *peer, enum trpi_lane lane, trpi_conn *conn);
void trpi_fence_acked(trpi_peer *peer, uint64_t value);
/* Is the large lane to wait for the others? */
bool trpi_large_is_held(const trpi_peer *peer);
/* Say again what was not answered; end the era of a large lane that has become quiet. */
void trpi_fences_tick(trpi_peer *peer, uint64_t now_ms);

/* ---- lane_dial.c ---- */
enum { TRPI_LANE_NAME_BYTES = 24 };
/* As people read it: "ordinary-1"; returns out. */
const char *trpi_lane_name(int lane, char out[TRPI_LANE_NAME_BYTES]);
/* Has its last dial failed, so lately that it is dialled again though nothing waits? By
 * peer->lock. */
bool trpi_lane_is_doubted(const trpi_peer *peer, int lane);
/* The dial of an ordinary lane failed. By peer->lock; and the line, without locks. */
void trpi_lane_undialled(trpi_peer *peer, const trpi_conn *conn, const char *reason);
void trpi_lane_undialled_log(trpi_remote *remote, const trpi_conn *conn, const char *reason);
/* Is there a lane that cannot be dialled? By peer->lock. */
bool trpi_lane_problem(const trpi_peer *peer, uint64_t now_ms, char *ret_text, size_t bytes);

#endif

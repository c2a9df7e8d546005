/* control_lane.h - a connection of the control lane on the thread for control lanes: a heartbeat
 * waits for no worker, and for nothing that an actor holds.
 *
 * Shape. the thread:  bytes -> control_scan.h -> answers -> the link
 *                                             '-> blocks -> (a call on a worker) -> the connection
 *        a worker:    frames -> outbox or the lane's own buffers -> nudge -> the thread -> the link
 * Must hold.
 *   control-lane-C1  From its beginning to the link's end the thread alone writes to the link; an
 *       answer goes between two frames.
 *   control-lane-C2  The thread takes no lock of peer, engine or log, allocates nothing (OpenSSL
 *       does, for records), and reads only: the peer's proved incarnation, remote's beat_reply and
 *       counters, and what was set before the connection was handed over.
 *   control-lane-C3  The calls of trpi_control_events never overlap, and come in the order of the
 *       stream; closed() is the last.
 *   control-lane-C4  A lane that may not read is paused; a block of it that comes back nudges it.
 *   control-lane-C5  An answer goes out on the connection that carries the lane to the peer, which
 *       may be another one than the request came by: the receiver drops frames of any other
 *       (inbound.c). Both are the thread's. While none of the thread's carries it, requests are
 *       handed on.
 * Thread. "thread": the driver's for control lanes. "call": a worker, or the timer's thread.
 * Tests.  tests/unit/remote/control_lane_test.c
 */
#ifndef TRPI_REMOTE_CONTROL_LANE_H
#define TRPI_REMOTE_CONTROL_LANE_H

#include "remote/association/context.h"

/* On the call, for the connection. */
typedef struct trpi_control_events {
    void (*bytes)(trpi_conn *conn, const uint8_t *bytes, size_t count, uint64_t arrived_ns);
    void (*written)(trpi_conn *conn);
    void (*closed)(trpi_conn *conn, const char *reason); /* control is freed here, or later */
} trpi_control_events;

typedef struct trpi_control_of {
    trpi_remote *remote;
    trpi_peer *peer;
    uint64_t uid; /* of the peer's incarnation */
    trpi_link *link;
    trpi_conn *conn;
} trpi_control_of;

/* For a connection whose driver can hand over, before it does. NULL: no memory. */
trpi_control *trpi_control_new(const trpi_control_of *of, const trpi_control_events *events);
/* It carries the lane to the peer already, and its LANE_OPEN was sent. Before it is handed over;
 * after it, nudge the link. */
void trpi_control_carry(trpi_control *handed);
/* Which was not handed over. */
void trpi_control_drop(trpi_control *handed);
void trpi_control_free(trpi_control *handed); /* after closed(); NULL is fine */

/* As the transport's write(); *ret_done is also true when the outbox took all. */
trp_err trpi_control_write(trpi_control *handed, const trpi_iov *iov, size_t count, bool *ret_done);

/* Callbacks of the link, on the thread. */
void trpi_control_bytes(trpi_control *handed, const uint8_t *bytes, size_t count);
void trpi_control_written(trpi_control *handed);
void trpi_control_nudged(trpi_control *handed);
bool trpi_control_paused(trpi_control *handed);
void trpi_control_closed(trpi_control *handed, const char *reason);

#endif

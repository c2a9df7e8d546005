/* effects.h - effects that are noted under a lock and carried out after its release: writes, dead
 * letters, events, log lines.
 */
#ifndef TRPI_REMOTE_EFFECTS_H
#define TRPI_REMOTE_EFFECTS_H

#include <troupe/remoting.h>

#include "base/buffer.h"
#include "remote/association/context.h"
#include "remote/wire/codec.h"

/* A change of an association, to be logged and published. */
typedef struct trpi_link_event {
    struct trpi_link_event *next;
    trp_log_level level;
    const trp_type *type; /* of the event; NULL: only a line */
    trp_remoting_event event;
    char text[600]; /* "": only an event */
} trpi_link_event;

/* Frames that left a lane unsent: their messages become dead letters. */
typedef struct trpi_dropped {
    trpi_buffer frames;
    uint64_t uid; /* incarnation that the frames without ANYONE were for; 0: none are there */
    trp_dead_reason reason;
} trpi_dropped;

/* Effects to be carried out when peer->lock has been released. */
enum { TRPI_DEFERRED_WRITES_MAX = 6 };
struct trpi_deferred {
    trpi_conn *writes[TRPI_DEFERRED_WRITES_MAX]; /* counted, busy */
    uint32_t writes_count;
    uint32_t dials; /* bit a lane */
    trpi_dropped dropped[TRPI_LANE_COUNT];
    uint64_t over_uid; /* incarnation to be ended, 0: none */
    bool over_quarantined;
    bool ready;                   /* tell the proxies that the lane drained */
    bool barred;                  /* a peer has quarantined this node, which is news */
    trpi_link_event *events;      /* oldest first */
    struct trpi_held_chunk *held; /* that becomes dead letters, oldest first */
};

/* ---- events.c ---- */
/* Append an event of peer; the caller fills in the rest. NULL: no memory. */
trpi_link_event *trpi_link_event_new(trpi_peer *peer, const trp_type *type,
                                     trpi_deferred *deferred);
/* Log, publish and free them. The caller holds no lock, as for the next four. */
void trpi_link_events_publish(trpi_remote *remote, trpi_link_event *events);
/* As log-remote-lifecycle-events says. */
void trpi_lifecycle_log(trpi_remote *remote, trp_log_level level, const char *text);
void trpi_remoting_publish(trpi_remote *remote, const trp_type *type, trp_remoting_event *event);
/* Log peer, type and size of a message; never its content. */
void trpi_message_trace(trpi_remote *remote, const trpi_peer *peer, bool sent, const trp_type *type,
                        const trpi_message *message);

#endif

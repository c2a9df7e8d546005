/* activity.h - which peers are looked at by the tick, and whether a peer is there.
 *
 * An active peer is looked at by each tick, and is sent a PING while somebody needs to know that it
 * is there and heartbeats of the failure detector do not show it. An idle one has an association
 * that nobody uses; a gone one has none. tick.c has the rules.
 * Tests.  tests/unit/remote/activity_test.c
 */
#ifndef TRPI_REMOTE_ACTIVITY_H
#define TRPI_REMOTE_ACTIVITY_H

#include "base/detector.h"
#include "remote/association/context.h"

typedef struct trpi_activity {
    uint64_t heard_ms, pinged_ms, round_trip_us; /* by peer->lock, as the next five */
    uint64_t beat_ms;       /* when the last heartbeat was sent that was answered; 0: none was */
    bool used;              /* something was sent to the peer since its last PING */
    bool unanswered;        /* that PING */
    bool quiet;             /* no PING was needed for a heartbeat */
    trpi_detector detector; /* is the association alive */
    /* The list that it is in; by peer->lock and remote->lock */
    bool active;
    struct trpi_peer_list *list; /* NULL: of the active ones */
    trpi_peer *next, *before;
    uint64_t idle_since_ms;
} trpi_activity;

/* The peer is used: whether it is there is asked within a heartbeat. */
static inline void
trpi_activity_use(trpi_activity *activity)
{
    activity->used = true;
}

/* A PONG came, or the PING of sent_ms is answered by it. */
static inline void
trpi_activity_heard(trpi_activity *activity, uint64_t now_ms)
{
    activity->heard_ms = now_ms;
    trpi_detector_heartbeat(&activity->detector, now_ms);
}
static inline void
trpi_activity_answered(trpi_activity *activity, uint64_t sent_ms, uint64_t round_trip_us)
{
    activity->round_trip_us = round_trip_us;
    activity->unanswered = activity->unanswered && sent_ms < activity->pinged_ms;
}
/* May answers to heartbeats stand for PONGs? Not if PINGs are so rare that the detector, which has
 * learned the rhythm of heartbeats, would call a peer silent between two of them. */
static inline bool
trpi_activity_bears_beats(const trpi_remote_options *options)
{
    return options->link_pause_ms != TRPI_PHI_NO_PAUSE &&
           options->link_pause_ms >= options->link_heartbeat_ms + 2u * TRPI_TICK_MS;
}
/* The heartbeat of sent_ms was answered now: this shows what a PONG shows. */
static inline void
trpi_activity_beat_answered(trpi_activity *activity, uint64_t sent_ms, uint64_t now_ms,
                            uint64_t round_trip_us)
{
    if (activity->quiet) { /* tick-T3: nothing was asked */
        trpi_detector_own_pause(&activity->detector, now_ms, now_ms - activity->heard_ms);
        activity->quiet = false;
    }
    trpi_activity_heard(activity, now_ms);
    trpi_activity_answered(activity, sent_ms, round_trip_us);
    activity->beat_ms = sent_ms > activity->beat_ms ? sent_ms : activity->beat_ms;
}
/* No PING was needed for a heartbeat. */
static inline void
trpi_activity_rest(trpi_activity *activity)
{
    activity->quiet = true;
}
/* This process stood still for pause_ms: that is no silence of the peer. */
static inline void
trpi_activity_paused(trpi_activity *activity, uint64_t now_ms, uint64_t pause_ms)
{
    trpi_detector_own_pause(&activity->detector, now_ms, pause_ms);
}
/* Is the peer looked at by each tick? By peer->lock or remote->lock, as the next three; the rest by
 * peer->lock. */
static inline bool
trpi_activity_is_active(const trpi_activity *activity)
{
    return activity->active;
}
/* NULL: of the active ones. */
static inline const trpi_peer_list *
trpi_activity_list(const trpi_activity *activity)
{
    return activity->list;
}
/* The next peer of its list. */
static inline trpi_peer *
trpi_activity_next(const trpi_activity *activity)
{
    return activity->next;
}
static inline uint64_t
trpi_activity_idle_since_ms(const trpi_activity *activity)
{
    return activity->idle_since_ms;
}
static inline bool
trpi_activity_is_quiet(const trpi_activity *activity)
{
    return activity->quiet;
}
static inline bool
trpi_activity_is_used(const trpi_activity *activity)
{
    return activity->used;
}
/* Was it used since its last PING, or is that one unanswered? */
static inline bool
trpi_activity_is_in_question(const trpi_activity *activity)
{
    return activity->used || activity->unanswered;
}
/* Has the last PING been without an answer for too long? */
static inline bool
trpi_activity_is_silent(trpi_activity *activity, uint64_t now_ms)
{
    return activity->unanswered && !trpi_detector_is_available(&activity->detector, now_ms);
}
static inline uint64_t
trpi_activity_heard_ms(const trpi_activity *activity)
{
    return activity->heard_ms;
}
static inline uint64_t
trpi_activity_pinged_ms(const trpi_activity *activity)
{
    return activity->pinged_ms;
}
/* tick-T1: if the peer is in question, is it time for a PING? gap_ms: between two questions, of
 * which a heartbeat that was answered is one, unless only a PING will do. The heartbeat that
 * follows it may be sent, and answered, until the next tick. Pure. */
static inline bool
trpi_activity_ping_is_due(const trpi_activity *activity, uint64_t now_ms, uint32_t gap_ms,
                          bool only_ping)
{
    bool beats = !only_ping && activity->beat_ms >= activity->pinged_ms;
    return now_ms - (beats ? activity->beat_ms : activity->pinged_ms) >=
           gap_ms + (beats ? TRPI_TICK_MS : 0u);
}
static inline uint64_t
trpi_activity_round_trip_us(const trpi_activity *activity)
{
    return activity->round_trip_us;
}
/* A new association. */
void trpi_activity_begin(trpi_activity *activity, const trpi_remote *remote, uint64_t now_ms);

/* ---- idle.c ---- */
/* A list of peers, by remote->lock. */
void trpi_peer_list_append(trpi_peer *peer, trpi_peer_list *list);
void trpi_peer_list_remove(trpi_peer *peer);
/* The first of a list, pinned, if it has been in it for so long; NULL: none. */
trpi_peer *trpi_peer_list_first(trpi_remote *remote, const trpi_peer_list *list, uint64_t now_ms,
                                uint32_t for_ms);
/* Take all active peers, pinned, as a list by activity.next. Without locks. */
trpi_peer *trpi_peers_active_take(trpi_remote *remote);
/* Put a peer back that the tick has taken out of the active ones. By peer->lock. */
void trpi_peer_list_put(trpi_peer *peer, bool idle, uint64_t now_ms);
/* Ask an active peer whether it is there. The caller holds peer->lock. */
void trpi_peer_ping(trpi_peer *peer, uint64_t now_ms);
/* A new peer. The caller holds remote->lock. */
void trpi_peer_begin(trpi_peer *peer);
/* Make a peer active: something about it has changed, and the next tick looks at it. The caller
 * holds peer->lock. */
void trpi_peer_make_active(trpi_peer *peer);

/* ---- tick.c ---- */
/* Before the first tick. */
void trpi_remote_tick_begin(trpi_remote *remote);
/* Do the periodic work; true: a peer waits for an attempt, so the next tick should come soon. By
 * the timer's thread. */
bool trpi_remote_tick(trpi_remote *remote);

#endif

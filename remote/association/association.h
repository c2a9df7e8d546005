/* association.h - the life of the link to one address, as a pure state machine.
 *
 * step(state, now, event) -> effects. The shell (remote/association/peer.c) owns connections,
 * queues and clocks; it tells what happened and does what the effects say, in the order of the
 * bits.
 */
#ifndef TRPI_REMOTE_ASSOCIATION_H
#define TRPI_REMOTE_ASSOCIATION_H

#include <stdbool.h>
#include <stdint.h>

#include <troupe/base.h>

#define TRPI_ASSOC_BARRED_MAX 16 /* incarnations of one address that are remembered as over */

enum trpi_assoc_state {
    TRPI_ASSOC_IDLE = 0,        /* nothing to send, no connection */
    TRPI_ASSOC_HANDSHAKING = 1, /* dialling, or waiting for the answer */
    TRPI_ASSOC_ACTIVE = 2,      /* its uid is proved and the control lane stands */
    /* lost; the next attempt is at next_ms, and only if something is to be sent */
    TRPI_ASSOC_GATED = 3,
    TRPI_ASSOC_QUARANTINED = 4 /* the last known incarnation is barred; another one is welcome */
};
const char *trpi_assoc_state_name(enum trpi_assoc_state state);

enum trpi_assoc_event_kind {
    TRPI_ASSOC_WANT = 1,   /* there is something to send */
    TRPI_ASSOC_DIALLED,    /* the control connection that we dialled stands */
    TRPI_ASSOC_REQUEST,    /* the peer's handshake request arrived: uid */
    TRPI_ASSOC_RESPONSE,   /* the peer answered our request: uid */
    TRPI_ASSOC_REFUSED,    /* the peer refused our request */
    TRPI_ASSOC_LOST,       /* no control connection is left, or the dial failed */
    TRPI_ASSOC_QUARANTINE, /* uid (0: the present one) is quarantined */
    TRPI_ASSOC_GOODBYE,    /* the present incarnation ends its remoting for good */
    TRPI_ASSOC_TICK,       /* time passes; want: something is to be sent */
    TRPI_ASSOC_HURRY,      /* what kept it away may be over: dial without a long pause */
    TRPI_ASSOC_ALIVE,      /* the present incarnation has answered what DO_ASK has asked */
    TRPI_ASSOC_PAUSED      /* this node stood still: what was answered may not be read yet */
};

typedef struct trpi_assoc_event {
    enum trpi_assoc_event_kind kind;
    bool want; /* with TICK; with REQUEST: this node may dial */
    uint64_t uid;
    uint64_t random; /* for jitter, with LOST, REFUSED, TICK, QUARANTINE, GOODBYE */
} trpi_assoc_event;

/* Effects, done in this order. */
enum {
    TRPI_ASSOC_DO_REFUSE = 1, /* refuse the request on its connection and close that */
    /* close all connections of the peer (but the one of this event) */
    TRPI_ASSOC_DO_CLOSE = 2,
    TRPI_ASSOC_DO_CLOSE_THIS = 4, /* close the connection of this event */
    /* incarnation over_uid is over: tell its watchers, drop what is for it */
    TRPI_ASSOC_DO_END = 8,
    /* uid is the peer now: lanes may open, system messages are sent again */
    TRPI_ASSOC_DO_ACTIVATE = 16,
    TRPI_ASSOC_DO_RESPOND = 32, /* answer the request on its connection */
    TRPI_ASSOC_DO_REQUEST = 64, /* send a handshake request on the connection of this event */
    TRPI_ASSOC_DO_DIAL = 128,   /* dial a control connection */
    /* the state changed, or an incarnation was quarantined that is not the present one: log it */
    TRPI_ASSOC_DO_LOG = 256,
    /* ask the present incarnation whether it lives; TRPI_ASSOC_ALIVE answers */
    TRPI_ASSOC_DO_ASK = 512
};
typedef struct trpi_assoc_effects {
    uint32_t bits;
    uint64_t over_uid;
    bool over_quarantined; /* over by quarantine; else by a new incarnation or a goodbye */
} trpi_assoc_effects;

typedef struct trpi_assoc_config {
    uint32_t handshake_timeout_ms;
    uint32_t backoff_min_ms, backoff_max_ms;
    uint32_t ask_ms; /* no answer to DO_ASK for so long: another incarnation may take its place */
} trpi_assoc_config;

typedef struct trpi_assoc {
    enum trpi_assoc_state state;
    uint64_t uid;         /* of the last proved incarnation, 0: none yet */
    uint32_t attempts;    /* failed in a row */
    uint32_t backoff_ms;  /* of the present back-off */
    uint64_t next_ms;     /* gated, quarantined: when dialling is allowed again */
    uint64_t deadline_ms; /* handshaking */
    bool wanted;
    uint64_t asked_ms; /* active: since when it owes an answer, for another one calls; 0: not */
    uint32_t barred_count, barred_next;
    uint64_t barred[TRPI_ASSOC_BARRED_MAX]; /* a ring */
} trpi_assoc;

/* All-zero is the initial state. */
trpi_assoc_effects trpi_assoc_step(trpi_assoc *assoc, const trpi_assoc_config *config,
                                   uint64_t now_ms, const trpi_assoc_event *event);
/* Does nothing about it depend on time? Not of an active one. */
static inline bool
trpi_assoc_is_at_rest(const trpi_assoc *assoc)
{
    return assoc->state == TRPI_ASSOC_IDLE ||
           (assoc->state == TRPI_ASSOC_QUARANTINED && !assoc->wanted);
}
/* Incarnations that are remembered as over. */
static inline uint32_t
trpi_assoc_barred_count(const trpi_assoc *assoc)
{
    return assoc->barred_count;
}
/* That incarnation is over, and its end was told. */
void trpi_assoc_bar(trpi_assoc *assoc, uint64_t uid);
static inline bool
trpi_assoc_is_barred(const trpi_assoc *assoc, uint64_t uid)
{
    bool is = false;
    for (uint32_t i = 0; i < assoc->barred_count && !is; i++) {
        is = assoc->barred[i] == uid;
    }
    return is;
}
/* Would uid take the place of an incarnation that is connected? */
bool trpi_assoc_is_rival(const trpi_assoc *assoc, uint64_t uid);
/* Is it to be found out by a dial whether the present incarnation, which is not connected, lives,
 * before uid takes its place? */
bool trpi_assoc_is_claimant(const trpi_assoc *assoc, uint64_t uid);
/* Delay before attempt number `attempts` (from 1): doubling from min to max, then 50 % .. 100 % of
 * it. */
uint32_t trpi_assoc_backoff_ms(const trpi_assoc_config *config, uint32_t attempts, uint64_t random);

#endif

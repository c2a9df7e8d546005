/* manager_engine.h - one node's part of one singleton, as a pure state machine.
 *
 *     trpi_singleton_step(core, now, event) -> actions, through a sink
 *
 * It owns no thread, clock, socket or global. The actor manager.c feeds it and carries out what it
 * says; tests/unit/cluster/singleton_engine_test.c does the same for many nodes at once.
 */
#ifndef TRPI_CLUSTER_SINGLETON_MANAGER_ENGINE_H
#define TRPI_CLUSTER_SINGLETON_MANAGER_ENGINE_H

#include "base/buffer.h"
#include "base/check.h"
#include "cluster/engine/age.h"

/* Akka's states (CONTRIB-07). */
typedef enum trpi_singleton_state {
    TRPI_SINGLETON_START = 1,        /* this node is not Up yet */
    TRPI_SINGLETON_YOUNGER = 2,      /* an older member hosts it */
    TRPI_SINGLETON_BECOMING = 3,     /* the oldest, not the host yet: it asks the older ones */
    TRPI_SINGLETON_OLDEST = 4,       /* the host */
    TRPI_SINGLETON_WAS_OLDEST = 5,   /* the host still; offers it to the new oldest */
    TRPI_SINGLETON_HANDING_OVER = 6, /* the singleton is being stopped */
    TRPI_SINGLETON_END = 7           /* this node hosts nothing any more */
} trpi_singleton_state;
const char *trpi_singleton_state_name(trpi_singleton_state state); /* "Younger"; static */

/* The words of managers to each other. Numbers of the wire (docs/wire.md). */
typedef enum trpi_singleton_word {
    TRPI_SINGLETON_HAND_OVER_TO_ME = 1,
    TRPI_SINGLETON_HAND_OVER_IN_PROGRESS = 2,
    TRPI_SINGLETON_HAND_OVER_DONE = 3, /* perhaps with data */
    TRPI_SINGLETON_TAKEN = 4,          /* DONE has arrived */
    TRPI_SINGLETON_TAKE_OVER_FROM_ME = 5,
    TRPI_SINGLETON_ABSENT = 6, /* there is no manager of this singleton on that node */
    TRPI_SINGLETON_WORD_LAST = 6
} trpi_singleton_word;

#define TRPI_SINGLETON_NEVER UINT64_MAX

typedef struct trpi_singleton_settings { /* all fields set */
    uint32_t retry_ms;                   /* between two messages that are not answered */
    uint32_t hand_over_retries;          /* unanswered HAND_OVER_TO_ME, then the manager is stuck */
    uint32_t take_over_retries; /* unanswered TAKE_OVER_FROM_ME, then it hands over to nobody */
    uint32_t stop_timeout_ms;   /* for the end message, then the singleton is stopped by force */
    uint32_t lease_retry_ms;
    bool lease;
    uint32_t broken; /* tests: TRPI_SINGLETON_BROKEN_... */
} trpi_singleton_settings;
/* A fault put in on purpose: the new oldest does not wait for those before it. */
#define TRPI_SINGLETON_BROKEN_HASTY 1u

typedef enum trpi_singleton_event_kind {
    TRPI_SINGLETON_TICK = 1,
    /* members with count: those of the role, sorted by identity, this node among them if it is one;
     * takeover_ms for those that are gone */
    TRPI_SINGLETON_VIEW = 2,
    TRPI_SINGLETON_OUT = 3,     /* the membership of this node has ended */
    TRPI_SINGLETON_FRAME = 4,   /* from, word, round, data */
    TRPI_SINGLETON_STARTED = 5, /* the singleton runs */
    TRPI_SINGLETON_STOPPED = 6, /* it has ended, or could not be started */
    TRPI_SINGLETON_DATA = 7,    /* data: what it gives to the next one */
    TRPI_SINGLETON_LEASE_GRANTED = 8,
    TRPI_SINGLETON_LEASE_REFUSED = 9,
    TRPI_SINGLETON_CLUSTER_ENDS = 10 /* count 1: the whole cluster is being shut down; 0: not */
} trpi_singleton_event_kind;

typedef struct trpi_singleton_event {
    trpi_singleton_event_kind kind;
    const trpi_aged *members;
    uint32_t count;
    /* When that member is gone: how long from now until what it hosted may start elsewhere; or
     * TRPI_SINGLETON_NEVER. */
    uint64_t (*takeover_ms)(void *arg, const trpi_node_id *id);
    void *takeover_arg;
    trpi_node_id from;
    uint32_t up_number; /* of that member */
    trpi_singleton_word word;
    uint64_t round;
    trpi_buffer *data; /* taken when it is used; NULL or empty: none */
} trpi_singleton_event;

typedef enum trpi_singleton_action_kind {
    TRPI_SINGLETON_SEND = 1,  /* to, word, round, data (borrowed) */
    TRPI_SINGLETON_SPAWN = 2, /* data: handed over, or NULL; STARTED or STOPPED follows */
    TRPI_SINGLETON_STOP = 3,  /* tell it the end message; STOPPED follows */
    TRPI_SINGLETON_KILL = 4,  /* stop it after its present message; STOPPED follows */
    TRPI_SINGLETON_LEASE_ACQUIRE = 5,
    TRPI_SINGLETON_LEASE_RELEASE = 6,
    TRPI_SINGLETON_STATE = 7, /* the state has changed; text says why */
    TRPI_SINGLETON_STUCK = 8, /* restart the manager; text is the cause */
    TRPI_SINGLETON_OVER = 9,  /* nothing is left to hand over: this node may go */
    TRPI_SINGLETON_SAY = 10   /* text, for the log */
} trpi_singleton_action_kind;

typedef struct trpi_singleton_action {
    trpi_singleton_action_kind kind;
    const trpi_node_id *to;
    trpi_singleton_word word;
    uint64_t round;
    const trpi_buffer *data;
    const char *text;
} trpi_singleton_action;
/* Called within the step; must not step. */
typedef void (*trpi_singleton_sink)(void *arg, const trpi_singleton_action *action);

typedef struct trpi_singleton_core trpi_singleton_core;

/* Gives *ret_core. Errors: TRP_ENOMEM. */
trp_err trpi_singleton_new(const trpi_node_id *self, const trpi_singleton_settings *settings,
                           trpi_singleton_sink sink, void *sink_arg,
                           trpi_singleton_core **ret_core);
void trpi_singleton_free(trpi_singleton_core *core); /* NULL is fine */
/* Begin again after a restart of the manager, which has stopped the singleton. The knowledge of
 * other members stays. */
void trpi_singleton_restart(trpi_singleton_core *core, uint64_t now_ms);
/* Errors: TRP_ENOMEM: the event had no effect. */
trp_err trpi_singleton_step(trpi_singleton_core *core, uint64_t now_ms,
                            const trpi_singleton_event *event);
uint64_t trpi_singleton_wake_ms(const trpi_singleton_core *core); /* UINT64_MAX: never */

/* ---- looking --------------------------------------------------------------------------------- */
trpi_singleton_state trpi_singleton_state_get(const trpi_singleton_core *core);
typedef struct trpi_singleton_look {
    trpi_singleton_state state;
    uint64_t state_since_ms;
    bool hosts; /* the singleton runs on this node, or is being started or stopped */
    uint64_t hosts_since_ms;
    const trpi_node_id *oldest;  /* NULL: no member may host it */
    const trpi_node_id *awaited; /* what the state waits for; NULL: none */
    uint64_t awaited_free_ms;    /* when an absent one may be succeeded; 0: it is asked */
    uint32_t asked;              /* messages to it without an answer */
    bool awaits_lease, cluster_ends;
} trpi_singleton_look;
void trpi_singleton_look_at(const trpi_singleton_core *core, trpi_singleton_look *ret_look);

/* singleton-O1..O4. NULL, or what is broken. */
const char *trpi_singleton_check(const trpi_singleton_core *core, trpi_check *check);

#endif

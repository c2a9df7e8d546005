/* manager_core.h - the parts of the engine of singletons; private to manager_*.c of it. */
#ifndef TRPI_CLUSTER_SINGLETON_MANAGER_CORE_H
#define TRPI_CLUSTER_SINGLETON_MANAGER_CORE_H

#include "cluster/singleton/manager_engine.h"

#define SINGLETON_DONE_RETRIES 5u /* of an answer that nobody confirms */

typedef struct singleton_other { /* sorted by id */
    trpi_node_id id;
    uint32_t up_number; /* 0: unknown */
    bool present;       /* in the view */
    bool settled;       /* singleton-O2 */
    bool asks;          /* it wants to be the host: it is owed an answer */
    bool owed;          /* DONE was sent, TAKEN has not come */
    bool gets_data;     /* of those that ask: the data goes there */
    uint64_t asks_round;
    uint64_t free_ms; /* gone: when its take-over time is over */
} singleton_other;

struct trpi_singleton_core {
    trpi_node_id self;
    trpi_singleton_settings settings;
    trpi_singleton_sink sink;
    void *sink_arg;
    trpi_singleton_state state;
    trpi_aged own; /* up_number 0: not Up yet */
    bool out;      /* the membership has ended */
    bool cluster_ends;
    bool stuck; /* the manager is being restarted */
    bool over;  /* OVER was said */
    bool has_oldest;
    trpi_aged oldest;
    singleton_other *others;
    uint32_t others_count, others_room;
    uint64_t round;    /* of asking; answers carry it */
    uint64_t since_ms; /* of the state */
    uint64_t hosts_since_ms;
    bool runs;   /* spawned and not STOPPED */
    bool killed; /* by force */
    bool lease_held, lease_asked;
    bool successor_absent; /* WasOldest: the new oldest has no manager */
    uint32_t asked;        /* without an answer */
    uint64_t ask_ms;       /* when to ask again */
    uint64_t stop_ms;      /* HandingOver: when to stop it by force */
    uint64_t spawn_ms;     /* Oldest: when to start it again */
    uint64_t lease_ms;     /* when to ask for the lease again */
    uint32_t done_count;   /* times that DONE was sent */
    uint64_t done_ms;      /* when to send it again */
    trpi_buffer data;      /* for the next host, or from the one before */
};

/* ---- manager_others.c: actions, other members, the view -------------------------------------- */
void singleton_act(trpi_singleton_core *core, trpi_singleton_action_kind kind, const char *text);
void singleton_send(trpi_singleton_core *core, const trpi_node_id *to, trpi_singleton_word word,
                    uint64_t round, const trpi_buffer *data);
void singleton_state_set(trpi_singleton_core *core, trpi_singleton_state state, uint64_t now_ms,
                         const char *why);
void singleton_lease_release(trpi_singleton_core *core);
/* NULL: it is not among them. */
singleton_other *singleton_other_find(trpi_singleton_core *core, const trpi_node_id *id);
/* Return it, added if need be; there is room. */
singleton_other *singleton_other_add(trpi_singleton_core *core, const trpi_node_id *id);
bool singleton_is_older(const singleton_other *o, const trpi_aged *own);
bool singleton_is_settled(const singleton_other *o, uint64_t now_ms);
/* Return the first that is not settled: one to ask, or else one that is gone and not free yet. */
const singleton_other *singleton_unsettled(const trpi_singleton_core *core, uint64_t now_ms);
bool singleton_is_asked_for(const trpi_singleton_core *core);
/* A younger member asks only when it knows that this node's time is over (singleton-O3). */
bool singleton_is_asked_by_younger(const trpi_singleton_core *core);
/* Forget those that are gone and need not be waited for. */
void singleton_others_forget(trpi_singleton_core *core, uint64_t now_ms);
/* Errors: TRP_ENOMEM. */
trp_err singleton_view_take(trpi_singleton_core *core, uint64_t now_ms,
                            const trpi_singleton_event *event);
bool singleton_is_oldest(const trpi_singleton_core *core);
/* Return whether this node can be a host (it is Up or Leaving), and whether it is too late. */
bool singleton_may_host(const trpi_singleton_core *core);
bool singleton_is_past(const trpi_singleton_core *core);

/* ---- manager_states.c ------------------------------------------------------------------------ */
/* Look at everything until nothing changes. */
void singleton_advance(trpi_singleton_core *core, uint64_t now_ms);
/* End the singleton, by force or with the end message. */
void singleton_stop_begin(trpi_singleton_core *core, uint64_t now_ms, bool force, const char *why);
/* Return whether it runs here, or may. */
bool singleton_hosts(const trpi_singleton_core *core);
/* Return whether an answer is not confirmed yet. */
bool singleton_is_owed(const trpi_singleton_core *core);
/* Until when data that came while this node leaves is kept for the member that will ask for it. */
uint64_t singleton_past_end_ms(const trpi_singleton_core *core);

#endif

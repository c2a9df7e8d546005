/* membership_core.h - the engine's state; private to the membership*.c files. */
#ifndef TRPI_CLUSTER_MEMBERSHIP_CORE_H
#define TRPI_CLUSTER_MEMBERSHIP_CORE_H

#include "cluster/engine/marks.h"
#include "cluster/engine/membership.h"

#define TRPI_NEVER UINT64_MAX

typedef struct trpi_seek {
    trpi_address addresses[TRPI_SEEDS_MAX];
    bool nacked[TRPI_SEEDS_MAX];
    uint32_t addresses_count;
    /* the seed is of another system, or has another secret (membership-seed-J6) */
    bool refused[TRPI_SEEDS_MAX];
    bool may_create;     /* the address of this node is the first seed */
    bool met_cluster;    /* a seed was in a cluster when it answered */
    bool incompatible;   /* a member said that this node's configuration does not fit */
    uint64_t refused_ms; /* since when a seed refuses; 0: none does */
    char refused_why[TRPI_FRAME_REASON_BYTES];
    /* from when on discovered addresses are trusted (membership-seed-J8); 0: configured ones */
    uint64_t settled_ms;
    bool confirmed;      /* an answer after settled_ms gave the same addresses */
    bool joining;        /* a contact has answered: JOIN goes to it */
    uint64_t give_up_ms; /* may_create: make a cluster; joining: look for another contact */
    uint64_t next_ms;    /* ask, or join, again */
    uint32_t refusals;   /* of JOINs since the search began: each delays the next one more */
    char why[TRPI_SEEK_WHY_BYTES]; /* the last refusal of a member; "": none */
    uint64_t begin_ms, log_ms;     /* of the search; when to log next that it goes on */
    trpi_node_id contact;
    uint64_t ticket;
} trpi_seek;

typedef struct trpi_prove { /* a joiner that is being dialled back (membership-prove-J12) */
    trpi_ident *ident;
    uint64_t until_ms;
} trpi_prove;

typedef struct trpi_remover {
    uint64_t key;
    bool near; /* this node was reachable when removed, as the remover or another member says */
} trpi_remover;

typedef struct trpi_removal { /* of a tombstone */
    uint64_t ms; /* membership-leader-L4: when this node saw it; TRPI_NEVER: it only heard of it */
    uint64_t known_ms; /* since when this node knows of it */
    bool near;         /* this node saw the member become Down while it was reachable */
} trpi_removal;

#define TRPI_FOREIGN_MAX 8u
typedef struct trpi_foreign { /* a node at the address of a seed that is no member */
    trpi_node_id id;
    uint64_t since_ms, last_ms, counted_ms;
    uint32_t times;
} trpi_foreign;

typedef struct trpi_since { /* a member that is unreachable, or was within stable-after */
    uint64_t key;
    uint64_t since_ms; /* 0: it is reachable again */
    uint64_t back_ms;  /* when it was last unreachable for more than a moment; 0: not recently */
    uint64_t lost_ms;  /* when it was last unreachable, for however short a time */
    bool missed;       /* an observer that is reachable itself reports it, or it flaps */
} trpi_since;

#ifdef TRPI_DEBUG
#define TRPI_IS_BROKEN(core, what) (((core)->options.broken & (what)) != 0)
#else
#define TRPI_IS_BROKEN(core, what) false
#endif
/* With options.buggify, one time in four: take the rare branch. */
#define TRPI_BUGGIFY(core) ((core)->options.buggify && trpi_core_random_below((core), 4) == 0)

/* The parts of the state. Only the file that is named with a part writes it: tests/tidy writers. */

typedef struct trpi_core_published { /* what subscribers know: membership_events.c */
    trpi_gossip *view;
    uint32_t seen_count; /* of the last SeenChanged */
    bool converged;
    bool ends; /* what is published now is the end of this node's membership */
    uint64_t converged_changed_ms;
} trpi_core_published;

typedef struct trpi_core_due { /* when the next round of each kind is due */
    uint64_t gossip_ms;
    uint64_t extra_gossip_ms; /* before the next regular round */
    uint64_t burst_ms;        /* when the last burst of gossip was */
    uint64_t leader_ms;       /* leader and downing */
    uint64_t led_ms;          /* their last one */
    uint64_t wake_ms;         /* what the last step asked for */
} trpi_core_due;

typedef struct trpi_core_leading { /* membership_leader.c */
    uint64_t blocked_ms; /* since when this node leads a view that does not converge; 0: not */
    uint64_t exiting_ms; /* since when this node is Exiting; 0: it is not */
    uint64_t confirm_ms; /* next EXITING_CONFIRMED */
    uint64_t *confirmed; /* keys of Exiting members that said they are done */
    uint32_t confirmed_count, confirmed_room;
} trpi_core_leading;

typedef struct trpi_core_removals { /* how members went: membership_leader.c */
    uint64_t *near_downs; /* keys of Down members that were reachable when they became so */
    uint32_t near_downs_count;
    trpi_removal *of_tombstones; /* one each; NULL: no memory, all are as if told */
} trpi_core_removals;

typedef struct trpi_core_admission { /* membership_contact.c */
    trpi_ident **joiners;            /* let in with the next version (membership-contact-J10) */
    uint32_t joiners_count, joiners_room;
    uint64_t admit_ms;      /* not before */
    uint64_t paused_ms;     /* sum of this node's own pauses (membership-contact-J13) */
    uint64_t paused_digest; /* of the view at the last one */
} trpi_core_admission;

typedef struct trpi_core_proving { /* joiners that are dialled back: membership_prove.c */
    trpi_prove *proves;
    uint32_t proves_count, proves_room;
} trpi_core_proving;

typedef struct trpi_core_stability { /* membership_events.c; a pause of this node moves its times */
    uint64_t stable_ms;              /* since when members and reachability have not changed */
    uint64_t shape;                  /* hash of what stable_ms looks at */
    uint64_t tracked;                /* digest of the view that stable_ms and since know */
    uint64_t reach;                  /* hash of the unreachable members */
    uint64_t reach_ms;               /* when it last changed */
    uint64_t flapping_ms;            /* when it first did, after no change for stable-after */
    uint32_t flaps;                  /* how often it has since then; 0: every member is reachable */
    uint32_t since_count;
    trpi_since *since;
} trpi_core_stability;

typedef struct trpi_core_split { /* the downing strategy's memory: membership_downing.c */
    uint64_t suspicion_ms;       /* when a suspected member had last seen the version; 0: never */
    /* when this node got the last version in which its side was sure (downing-D12) */
    uint64_t sure_ms;
    uint64_t apart_ms;       /* since when a member is unreachable; 0: none is */
    uint64_t oldest_exiting; /* key of the last oldest that was found to know that it is Exiting */
    uint64_t lease_ms;       /* when it was asked for, answered, or last needed */
    trpi_lease_state lease;
} trpi_core_split;

typedef struct trpi_core_foreigners { /* nodes where seeds are: membership_foreign.c */
    trpi_foreign foreign[TRPI_FOREIGN_MAX];
    uint32_t foreign_count;
    uint32_t lost_next;     /* index of the member that is looked at first for one to ask */
    uint64_t seeds_look_ms; /* when seeds that are no members are asked; 0: not a member yet */
} trpi_core_foreigners;

typedef struct trpi_core_removers { /* members that have removed this node: membership_removed.c */
    trpi_remover *removers;         /* by key */
    uint32_t removers_count, removers_room;
    uint32_t next;     /* index of the member that is asked next whether it has, too */
    uint64_t since_ms; /* since when there is one */
    uint64_t log_ms;
} trpi_core_removers;

typedef struct trpi_core_marks { /* drained members: membership_marks.c */
    trpi_marks set;
    bool news;    /* of this step: others are to be told */
    bool changed; /* a member is drained, or no more: TRPI_ACTION_MARKS is to be said */
} trpi_core_marks;

typedef struct trpi_core_actions { /* of the last step, until the next one */
    trpi_member_action *actions;
    uint32_t actions_count, actions_room;
    trp_err err; /* since the last TRP_OK: an action found no room */
} trpi_core_actions;

struct trpi_member_core {
    trpi_member_options options;
    const trpi_downing_ops *downing;
    trpi_ident *self;
    trpi_compat *compat; /* NULL: nothing is compared */
    trpi_member_phase phase;
    trpi_member_stop stop;
    uint64_t random;
    trpi_member_now now; /* of the step in progress */

    trpi_gossip *gossip; /* present view */
    trpi_seen seen;
    trpi_votes votes;    /* of the present view */
    bool votes_news;     /* a vote has become sure that others may not know */
    bool changed_here;   /* this step made a new version */
    bool changed_there;  /* this step took over, or merged, one */
    uint64_t heard_from; /* key of the node that sent it */
    uint64_t welcome_ms; /* when this node was let in */
    struct {
        uint64_t since_ms; /* since when the present view is the present one */
        uint64_t made_ms;  /* when this node last made a version */
    } version;

    trpi_seek seek; /* membership_seed.c */
    trpi_core_published published;
    trpi_core_due due;
    trpi_core_leading leading;
    trpi_core_removals removals;
    trpi_core_admission admission;
    trpi_core_proving proving;
    trpi_core_stability stability;
    trpi_core_split split;
    trpi_core_foreigners foreigners;
    trpi_core_removers removers;
    trpi_core_marks marks;
    struct { /* a line that could be written in each step is written once in a while */
        uint64_t refused_ms, unmerged_ms, unsent_ms;
    } logged;
    trpi_core_actions out;
    trpi_member_stats stats;
};

/* Move a time by a pause of this node, but not into the future. */
static inline void
trpi_core_move(const trpi_member_core *core, uint64_t *time_ms, uint64_t pause_ms)
{
    uint64_t moved_ms = *time_ms + pause_ms;
    *time_ms = moved_ms < core->now.mono_ms ? moved_ms : core->now.mono_ms;
}

/* Only these functions, and membership.c for wake_ms, write core->due. */

/* No round is due. */
static inline void
trpi_core_due_none(trpi_member_core *core)
{
    core->due.gossip_ms = core->due.extra_gossip_ms = core->due.leader_ms = TRPI_NEVER;
}

/* The node has become a member: its first gossip round comes in an interval. */
static inline void
trpi_core_due_member(trpi_member_core *core, uint64_t leader_ms)
{
    core->due.gossip_ms = core->now.mono_ms + core->options.gossip_interval_ms;
    core->due.leader_ms = leader_ms;
}

static inline void
trpi_core_due_leader(trpi_member_core *core, uint64_t at_ms)
{
    core->due.leader_ms = at_ms;
}

/* The leader's round is done now. The next one is due at a point of the options' grid, so that the
 * node has one reason less to wake up. */
static inline void
trpi_core_due_next_round(trpi_member_core *core)
{
    const trpi_member_options *o = &core->options;
    uint64_t at_ms = core->now.mono_ms + o->leader_actions_interval_ms;
    bool on_grid = o->grid_ms != 0 && o->leader_actions_interval_ms % o->grid_ms == 0 &&
                   at_ms > o->grid_begin_ms;
    core->due.led_ms = core->now.mono_ms;
    core->due.leader_ms = on_grid ? at_ms - (at_ms - o->grid_begin_ms) % o->grid_ms : at_ms;
}

static inline void
trpi_core_due_gossip(trpi_member_core *core, uint64_t at_ms)
{
    core->due.gossip_ms = at_ms;
}

static inline void
trpi_core_due_extra_gossip(trpi_member_core *core, uint64_t at_ms)
{
    core->due.extra_gossip_ms = at_ms;
}

/* A burst of gossip is sent now. */
static inline void
trpi_core_due_burst(trpi_member_core *core)
{
    core->due.burst_ms = core->now.mono_ms;
}

/* membership_core.c, membership.c */
uint64_t trpi_core_random(trpi_member_core *core);
uint32_t trpi_core_random_below(trpi_member_core *core, uint32_t bound);
void trpi_core_send(trpi_member_core *core, const trpi_node_id *to, const trpi_frame *frame,
                    const trpi_seen *seen);
void trpi_core_log(trpi_member_core *core, trp_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
trpi_member_action *trpi_core_action(trpi_member_core *core, trpi_member_action_kind kind);
void trpi_core_actions_clear(trpi_member_core *core); /* those of the last step */
/* Begin actions that are taken together, or not at all; returns the number before them. */
uint32_t trpi_core_actions_begin(trpi_member_core *core);
/* Drop the actions since `begin` if one of them found no memory (membership-events-V3); none of
 * them has bytes. Returns whether they are complete. */
bool trpi_core_actions_complete(trpi_member_core *core, uint32_t begin);
void trpi_core_actions_lost(trpi_member_core *core); /* one found no memory */
/* Make `edited` (frozen by this call) the present view, as this node's own change. Takes edited. */
trp_err trpi_core_commit(trpi_member_core *core, trpi_gossip *edited);
/* Replace the view; seen starts with what `seen` (may be NULL) has, and self. Takes a reference. */
trp_err trpi_core_adopt(trpi_member_core *core, trpi_gossip *gossip, const trpi_seen *seen);
void trpi_core_stop(trpi_member_core *core, trpi_member_stop stop);
uint32_t trpi_core_self_index(const trpi_member_core *core);
/* Return whether the member is unreachable, or this node reports it while its own reports do not
 * count, because others report this node (gossip_reachability.c): it reaches that member no more
 * for that. */
bool trpi_core_misses(const trpi_member_core *core, const trpi_gossip_member *member);
/* Add the frame's knowledge of votes in its view, which the present view includes. */
void trpi_core_hear_votes(trpi_member_core *core, const trpi_gossip *theirs,
                          const trpi_frame *frame);
/* The same from the present seen set. */
void trpi_core_learn_votes(trpi_member_core *core);

/* membership_seed.c */
bool trpi_seek_is_self(const trpi_member_core *core, const trpi_address *address);
/* Of two nodes of one cluster both can be dialled from other hosts, or none. */
bool trpi_seek_is_compatible_host(const trpi_member_core *core, const trpi_address *address);
trp_err trpi_seek_start(trpi_member_core *core, const trpi_address *addresses, uint32_t count);
trp_err trpi_seek_found(trpi_member_core *core, const trpi_address *addresses, uint32_t count);
void trpi_seek_rival(trpi_member_core *core, const trpi_address *address);
void trpi_seek_removed(trpi_member_core *core, const trpi_address *address);
void trpi_seek_refused(trpi_member_core *core, const trpi_address *address, const char *why);
void trpi_seek_own_pause(trpi_member_core *core, uint64_t pause_ms);
void trpi_seek_tick(trpi_member_core *core);
void trpi_seek_frame(trpi_member_core *core, const trpi_node_id *from, trpi_frame *frame);
/* A member of this node's view does not know this node: its contact crashed before it spread the
 * join. Introduce this node. */
void trpi_seek_introduce(trpi_member_core *core, const trpi_node_id *to);
void trpi_core_welcome_frame(trpi_member_core *core, const trpi_node_id *from, trpi_frame *frame);

/* membership_contact.c */
void trpi_contact_init_join(trpi_member_core *core, const trpi_node_id *from,
                            const trpi_frame *frame);
void trpi_contact_join(trpi_member_core *core, const trpi_node_id *from, trpi_frame *frame);
void trpi_contact_tick(trpi_member_core *core); /* lets waiting joiners in, when it is time */
void trpi_contact_forget(trpi_member_core *core, uint32_t count); /* the first of them */
void trpi_contact_own_pause(trpi_member_core *core, uint64_t pause_ms);
/* It has shown that it can be dialled: it waits for the next version. */
void trpi_contact_take(trpi_member_core *core, trpi_ident *joiner);
void trpi_contact_refuse(trpi_member_core *core, const trpi_node_id *to, const char *reason);

/* membership_prove.c */
void trpi_prove_joiner(trpi_member_core *core, trpi_ident *ident);
void trpi_prove_reached(trpi_member_core *core, const trpi_node_id *id, const char *why);
void trpi_prove_tick(trpi_member_core *core);
uint64_t trpi_prove_wake_ms(const trpi_member_core *core);
void trpi_prove_forget_all(trpi_member_core *core);

/* membership_contact.c */
void trpi_seek_down_own_predecessors(trpi_member_core *core);

/* membership_gossip.c */
void trpi_gossip_frame(trpi_member_core *core, const trpi_node_id *from, trpi_frame *frame);
void trpi_gossip_tick(trpi_member_core *core);
void trpi_gossip_spread(trpi_member_core *core); /* after a change in this step */
/* Ask members that this node does not reach whether they are alive; spread leaves them out. */
void trpi_gossip_ask_suspects(trpi_member_core *core);
void trpi_gossip_send_view(trpi_member_core *core, const trpi_node_id *to, uint32_t kind,
                           uint32_t ttl);
/* near: it was reachable when it became Down. */
void trpi_gossip_send_gone(trpi_member_core *core, const trpi_node_id *to, uint32_t status,
                           bool near);
/* Send the digest of this node's version; a node with another one answers. */
void trpi_gossip_ask(trpi_member_core *core, const trpi_node_id *to);

/* membership_marks.c */
/* index: of the present view. Errors: TRP_ESTATE (it is leaving), TRP_ENOMEM, TRP_ELIMIT. */
trp_err trpi_marks_order(trpi_member_core *core, uint32_t index, bool drain);
void trpi_marks_frame(trpi_member_core *core, const trpi_node_id *from, const trpi_frame *frame);
/* Send all marks to one member, if there is one. */
void trpi_marks_tell(trpi_member_core *core, const trpi_node_id *to, uint32_t ttl);
void trpi_marks_round(trpi_member_core *core, const trpi_node_id *to);
/* At the end of a member's step: what has changed is spread, and said. */
void trpi_marks_finish(trpi_member_core *core);
bool trpi_core_is_drained(const trpi_member_core *core, uint64_t key);

/* membership_leader.c */
void trpi_leader_tick(trpi_member_core *core);
/* `next` is about to be the view: note which members are gone from it (membership-leader-L4).
 * Without memory all removals count as only heard of. */
void trpi_core_note_removals(trpi_member_core *core, const trpi_gossip *next);
/* Return whether it was reachable when it became Down, as far as this node knows. t: of the present
 * view. */
bool trpi_core_removed_near(const trpi_member_core *core, const trpi_tombstone *t);
void trpi_leader_own_pause(trpi_member_core *core, uint64_t pause_ms);
void trpi_leader_act(trpi_member_core *core); /* whenever it may: leader, converged */
void trpi_exiting_tick(trpi_member_core *core);
void trpi_exiting_confirmed(trpi_member_core *core, const trpi_node_id *from, uint64_t key);

/* membership_downing.c */
void trpi_downing_tick(trpi_member_core *core);
void trpi_downing_own_pause(trpi_member_core *core, uint64_t pause_ms);
void trpi_lease_answered(trpi_member_core *core, bool granted, const char *why);
/* Return whether this node holds the lease, and another member that is not leaving needs it. */
bool trpi_lease_is_kept(const trpi_member_core *core);
/* trpi_member_forecast and trpi_member_next_crash, before they are checked. */
bool trpi_core_forecast(const trpi_member_core *core, trpi_downing_forecast *ret_forecast);
bool trpi_core_next_crash(const trpi_member_core *core, uint64_t leaving,
                          trpi_downing_next_crash *ret_crash);

/* membership_foreign.c */
void trpi_foreign_tick(trpi_member_core *core);
/* It has answered as a member of some cluster does, or cannot be talked to. */
void trpi_foreign_heard(trpi_member_core *core, const trpi_node_id *id);

/* membership_removed.c */
/* That member has removed this node: it sent GONE, or (NULL) refuses its handshakes. May stop this
 * node. TRP_ENOMEM: it, or some of the members that it speaks for, are not counted. */
trp_err trpi_removed_by(trpi_member_core *core, const trpi_node_id *id, const trpi_frame *gone);
void trpi_removed_heard(trpi_member_core *core, uint64_t key); /* it talks to this node after all */
/* An incarnation that is no member says so, at the address of one. */
void trpi_removed_by_successor(trpi_member_core *core, const trpi_node_id *id);
void trpi_removed_tick(trpi_member_core *core);

/* membership_events.c */
void trpi_events_publish(trpi_member_core *core); /* what changed since the last time */
void trpi_events_downing(trpi_member_core *core, const trpi_downing_decision *decision,
                         const char *what);
/* Publish that this node is out, and with it each other member (EVENTS-14). */
void trpi_events_stopped(trpi_member_core *core);
void trpi_core_track(trpi_member_core *core); /* stable_ms, since */
void trpi_core_track_pause(trpi_member_core *core, uint64_t pause_ms);

#endif

/* membership.h - the membership engine: one node's part of the cluster, as a pure state machine.
 *
 *     trpi_member_step(core, now, event) -> actions
 *
 * It owns no socket, thread, clock or global. The shell (cluster/shell/shell.c) and the simulator
 * (cluster/sim/) feed it and carry out what it returns. Its only randomness is a generator seeded
 * by the options, so that one seed gives one history.
 */
#ifndef TRPI_CLUSTER_MEMBERSHIP_H
#define TRPI_CLUSTER_MEMBERSHIP_H

#include "cluster/engine/compat.h"
#include "cluster/engine/downing.h"
#include "cluster/engine/downing_forecast.h"
#include "cluster/engine/gossip.h"
#include "cluster/engine/gossip_codec.h"

#define TRPI_SEEDS_MAX TRP_CLUSTER_SEEDS_MAX
#define TRPI_ROLE_MINIMA_MAX 16u
#define TRPI_SEEK_WHY_BYTES 256 /* with the NUL */
#define TRPI_LOOPBACK_HELP                                                                         \
    "an address on loopback can be dialled from its own host only; give every node the address "   \
    "by which the others reach it (remote.hostname, --host), or all of them one on loopback"
#define TRPI_MEMBER_OFF UINT32_MAX /* for a time: never */

typedef struct trpi_role_minimum {
    char role[TRPI_ROLE_BYTES_MAX + 1];
    uint32_t members;
} trpi_role_minimum;

/* Defaults of trpi_member_options and of the keys of the configuration (cluster/keys.c). */
#define TRPI_MEMBER_GOSSIP_INTERVAL_S_DEFAULT 1
#define TRPI_MEMBER_LEADER_ACTIONS_INTERVAL_S_DEFAULT 1
#define TRPI_MEMBER_GOSSIP_TTL_S_DEFAULT 2
#define TRPI_MEMBER_SEED_NODE_TIMEOUT_S_DEFAULT 5
#define TRPI_MEMBER_SEED_CHECK_S_DEFAULT 10
#define TRPI_MEMBER_JOIN_RETRY_S_DEFAULT 10
#define TRPI_MEMBER_PRUNE_AFTER_H_DEFAULT 24
#define TRPI_MEMBER_MIN_MEMBERS_DEFAULT 1
#define TRPI_MEMBER_CONTACT_POINTS_DEFAULT 2
#define TRPI_MEMBER_DIFFERENT_VIEW_DEFAULT 0.8

/* A zero field is its default. All times in milliseconds. */
typedef struct trpi_member_options {
    uint64_t seed;     /* of the generator; 0 is a seed like any other */
    const char *build; /* of Troupe, told to all; NULL: it is not told */
    uint32_t gossip_interval_ms;
    uint32_t leader_actions_interval_ms;
    /* leader's rounds come at points of this grid, at most so much earlier, if their interval is a
     * multiple of it; 0: none */
    uint32_t grid_ms;
    uint64_t grid_begin_ms; /* a point of it */
    /* gossip that waited longer for this node is dropped */
    uint32_t gossip_ttl_ms;
    uint32_t seed_node_timeout_ms;
    uint32_t retry_unsuccessful_join_after_ms;
    uint32_t seed_check_ms;      /* a member asks seeds that are none; TRPI_MEMBER_OFF: never */
    uint32_t exiting_timeout_ms; /* leave without a confirmed removal */
    uint32_t prune_tombstones_after_ms;
    /* The leader lets joiners be weakly up when it could not act for so long; 0: never. */
    uint32_t weakly_up_after_ms;
    uint32_t min_nr_of_members;
    double gossip_different_view_probability; /* negative: 0 */
    bool may_not_create_cluster;              /* never make a new cluster of this node alone */
    bool exiting_waits; /* this node stays Exiting until TRPI_MEMBER_RELEASE */
    /* addresses that must be found (TRPI_MEMBER_SEEDS) before a new cluster is made */
    uint32_t required_contact_points;
    const trpi_compat *compat; /* copied; NULL: nothing is compared when a node joins */
    bool incompatible_warns;   /* this node joins all the same, with a warning */
    bool dial_back; /* who joins through this node is dialled first (TRPI_ACTION_REACH) */
    trpi_role_minimum role_minima[TRPI_ROLE_MINIMA_MAX];
    uint32_t role_minima_count;
    const char *downing_strategy; /* borrowed during new */
    trpi_downing_options downing;
    trpi_gossip_cache *cache; /* borrowed; NULL: none */
    bool quiet;               /* no TRPI_ACTION_LOG */
    bool buggify;    /* simulation: do now and then what is allowed and rare (TRPI_BUGGIFY) */
    uint32_t broken; /* simulation, developer builds: TRPI_BROKEN_... */
} trpi_member_options;

/* Faults put in on purpose, to show that the simulator finds them. */
#define TRPI_BROKEN_NO_TOMBSTONES 1u       /* a removed member leaves no tombstone */
#define TRPI_BROKEN_LEARN_PAUSE 2u         /* a silence that was judged a failure is a sample */
#define TRPI_BROKEN_DIGEST_WITHOUT_SEEN 4u /* the digest has no seen set */
#define TRPI_BROKEN_NO_SUSPENSION 8u       /* a node never suspends what must not live twice */
#define TRPI_BROKEN_NO_MARGIN 16u          /* nothing waits for down-removal-margin */
#define TRPI_BROKEN_NO_STALLS 32u          /* a node that stood still does not notice */
/* ... those of TRPI_SHARD_BROKEN_ and TRPI_SINGLETON_BROKEN_ in this node's engines */
#define TRPI_BROKEN_SHARDS(bits) ((uint32_t)(bits) << 8)
#define TRPI_BROKEN_SINGLETONS(bits) ((uint32_t)(bits) << 16)

typedef struct trpi_member_now {
    uint64_t mono_ms;
    int64_t wall_ms; /* tombstones, since when a member is Up, and logs only */
    /* This node stood still for so long that the others may have removed it, and does not know yet
     * which members are alive (trpi_heartbeat_is_waking): it does not act as leader, marks no
     * member Down, and lets no node in. */
    bool waking;
} trpi_member_now;

typedef enum trpi_member_event_kind {
    TRPI_MEMBER_TICK = 1,     /* a time that ret_wake_ms named has come */
    TRPI_MEMBER_FRAME = 2,    /* from, bytes, count, arrived_ms */
    TRPI_MEMBER_JOIN = 3,     /* addresses: seeds in order, or one address */
    TRPI_MEMBER_LEAVE = 4,    /* target; uid 0: any member there */
    TRPI_MEMBER_DOWN_CMD = 5, /* target, likewise */
    TRPI_MEMBER_OBSERVE = 6,  /* keys: everything that the own detector holds unreachable now */
    TRPI_MEMBER_RELEASE = 7,  /* what had to be done while Exiting is done: exiting_waits ends */
    /* addresses, sorted: all contact points that a look-up found; answers as JOIN does */
    TRPI_MEMBER_SEEDS = 8,
    /* target, text: no association with that seed, for what both are: "KEY: why" */
    TRPI_MEMBER_REFUSED = 9,
    /* the answer to TRPI_ACTION_LEASE_ACQUIRE: count 1: granted, 0: refused; text: why, or NULL */
    TRPI_MEMBER_LEASE = 10,
    /* target: that member, or the seed at that address, refuses the handshakes of this node, for it
     * has removed it */
    TRPI_MEMBER_REMOVED_BY = 11,
    /* target: it lives where a seed is, and no association between it and this node is possible */
    TRPI_MEMBER_FOREIGN = 13,
    /* target: that seed is alive, and refuses this node because another node has its address, or
     * had it and is looked for */
    TRPI_MEMBER_RIVAL = 14,
    /* make a new version, so that members that have seen it have seen it after now: a suspended
     * node asks for its convergence (exclusive.h) */
    TRPI_MEMBER_ROLL_CALL = 21,
    /* as DOWN_CMD, and the operator says that it is dead: what it hosted need not wait (settled) */
    TRPI_MEMBER_DEAD_CMD = 22,
    /* the answer to TRPI_ACTION_REACH: target; text: why it cannot be dialled, NULL: it can */
    TRPI_MEMBER_REACHED = 20,
    TRPI_MEMBER_DRAIN = 23,  /* target, as of LEAVE: it is given no shard and no routee */
    TRPI_MEMBER_UNDRAIN = 24 /* target: that ends */
} trpi_member_event_kind;

typedef struct trpi_member_event {
    trpi_member_event_kind kind;
    trpi_node_id from; /* proved by the transport */
    const uint8_t *bytes;
    size_t count;
    uint64_t arrived_ms; /* 0: just now */
    trpi_node_id target;
    const trpi_address *addresses;
    uint32_t addresses_count;
    const uint64_t *keys; /* sorted */
    uint32_t keys_count;
    const char *text;
} trpi_member_event;

/* Why the membership of this node has ended. */
typedef enum trpi_member_stop {
    TRPI_STOP_NONE = 0,
    TRPI_STOP_LEFT = 1,        /* as it asked, or it never joined */
    TRPI_STOP_DOWNED = 2,      /* the others, the operator or the own downing strategy said so */
    TRPI_STOP_INCOMPATIBLE = 3 /* no cluster lets it in as it is configured; logged */
} trpi_member_stop;

typedef enum trpi_member_action_kind {
    TRPI_ACTION_SEND = 1,          /* to, bytes */
    TRPI_ACTION_PUBLISH = 2,       /* event */
    TRPI_ACTION_LOG = 3,           /* level, text */
    TRPI_ACTION_QUARANTINE = 4,    /* to: removed after Down */
    TRPI_ACTION_STOPPED = 5,       /* stop */
    TRPI_ACTION_LEASE_ACQUIRE = 6, /* TRPI_MEMBER_LEASE answers */
    TRPI_ACTION_LEASE_RELEASE = 7,
    TRPI_ACTION_DIAL = 8,   /* to: now, whatever the pause between attempts */
    TRPI_ACTION_REACH = 20, /* to: dial it at its address; TRPI_MEMBER_REACHED answers */
    TRPI_ACTION_MARKS = 21  /* members are drained, or no more: trpi_member_is_drained() */
} trpi_member_action_kind;

typedef struct trpi_member_action {
    trpi_member_action_kind kind;
    uint32_t event; /* one bit of trp_cluster_events */
    bool own_end;   /* of an event: this node is out, of the others it says nothing (EVENTS-14) */
    bool marks;     /* of a SEND: only to a peer that takes marks of drained members */
    trpi_buffer bytes;
    union { /* by kind: who joins a large cluster hears of all its members in one step */
        trpi_node_id to;
        union {
            trp_member_event member;
            trp_leader_event leader;
            trp_seen_event seen;
            trp_downing_event downing;
        } published;
        char text[448];
    };
    trp_log_level level;
    trpi_member_stop stop;
} trpi_member_action;

typedef struct trpi_member_core trpi_member_core;

/* Gives *ret_core. Errors: TRP_EINVAL (an option out of range, no such strategy), TRP_ENOMEM. */
trp_err trpi_member_new(const trpi_node_id *self, const char *const *roles, uint32_t roles_count,
                        const char *app_version, const trpi_member_options *options,
                        trpi_member_core **ret_core);
void trpi_member_free(trpi_member_core *core); /* NULL is fine */

/* Change this node's value of a key of options.compat: joiners are compared with it, and it is sent
 * when this node joins. false: there is no such key. */
bool trpi_member_compat_set(trpi_member_core *core, const char *key, const char *value);
/* Take one event. Commands answer by the result: TRP_OK (ordered), TRP_EINVAL, TRP_ENOENT (no such
 * member), TRP_ESTATE (already a member; it is Down; stopped). Anything may answer TRP_ENOMEM:
 * then the event had no effect. A frame never answers an error but that. */
trp_err trpi_member_step(trpi_member_core *core, trpi_member_now now,
                         const trpi_member_event *event);
/* Move the bytes of an action of the last step, a TRPI_ACTION_SEND, to the caller. */
trpi_buffer trpi_member_take_bytes(trpi_member_core *core, uint32_t action);
/* Leave the events of this node's end (EVENTS-14), if it is a member, as the only actions: its
 * system stops and sends nothing to the others. No step may follow. */
void trpi_member_end(trpi_member_core *core);
/* Return the actions of the last step, in order; borrowed until the next step. */
const trpi_member_action *trpi_member_actions(const trpi_member_core *core, uint32_t *ret_count);
/* When the next TICK is due; UINT64_MAX: never. */
uint64_t trpi_member_wake_ms(const trpi_member_core *core);

/* Return NULL, or the invariant that is broken since the last step (membership_check.c): to be
 * asked before the actions are taken. The view has a check function of its own,
 * trpi_gossip_check(). */
const char *trpi_member_check(const trpi_member_core *core, trpi_check *check);
/* Likewise for the lease, and for what the node forecasts: membership_downing_check.c. The second
 * costs a decision for each member. */
const char *trpi_lease_check(const trpi_member_core *core, trpi_check *check);
const char *trpi_forecast_check(const trpi_member_core *core, trpi_check *check);

/* ---- looking --------------------------------------------------------------------------------- */
typedef enum trpi_member_phase {
    TRPI_PHASE_IDLE = 0,    /* not asked to join */
    TRPI_PHASE_SEEKING = 1, /* asks seeds */
    TRPI_PHASE_MEMBER = 2,
    TRPI_PHASE_STOPPED = 3
} trpi_member_phase;

trpi_member_phase trpi_member_phase_get(const trpi_member_core *core);
trpi_member_stop trpi_member_stop_reason(const trpi_member_core *core);
/* The present view; borrowed until the next step; NULL unless member (or stopped: the last view).
 */
trpi_gossip *trpi_member_view(const trpi_member_core *core);
const trpi_seen *trpi_member_seen(const trpi_member_core *core);
const trpi_ident *trpi_member_self(const trpi_member_core *core);
bool trpi_member_is_converged(const trpi_member_core *core);
/* Is that member drained, as far as this node knows? */
bool trpi_member_is_drained(const trpi_member_core *core, uint64_t key);
/* of the last change of it */
uint64_t trpi_member_converged_since_ms(const trpi_member_core *core);
/* Since when is it unreachable; 0: it is reachable. */
uint64_t trpi_member_unreachable_since_ms(const trpi_member_core *core, uint64_t key);
/* Return whether that member says that it has removed this node, and since when one does (0: none
 * does). */
bool trpi_member_is_remover(const trpi_member_core *core, uint64_t key);
uint64_t trpi_member_removed_since_ms(const trpi_member_core *core);
/* Return what this node knows of the votes of its view's members. */
const trpi_votes *trpi_member_votes(const trpi_member_core *core);
/* trpi_downing_may_go_on with the present view, strategy and votes. Only of a member. */
bool trpi_member_may_go_on(const trpi_member_core *core, const uint32_t *marks,
                           trpi_downing_count *ret_count);
/* trpi_downing_next_crash_find of it. false: no memory, or no such member. */
bool trpi_member_next_crash(const trpi_member_core *core, uint64_t leaving,
                            trpi_downing_next_crash *ret_crash);
/* Return a hash of the view and its seen set: equal on two nodes only when both are equal. */
uint64_t trpi_member_version(const trpi_member_core *core);
void trpi_member_fill(const trpi_member_core *core, const trpi_gossip_member *member,
                      trp_member *ret);
/* Is a member that was filled drained? The layout of trp_member is frozen: the mark is in one of
 * its spare bytes, which programs do not read. */
#define TRPI_MEMBER_DRAINED_AT 0
static inline bool
trpi_member_has_drained(const trp_member *member)
{
    return member->zero[TRPI_MEMBER_DRAINED_AT] != 0;
}
/* Call fn for each role that has a leader, with the event as RoleLeaderChanged has it; for none
 * without memory. */
typedef void (*trpi_role_leader_fn)(void *arg, const trp_leader_event *leader);
void trpi_member_each_role_leader(const trpi_member_core *core, trpi_role_leader_fn fn, void *arg);
/* Return the seeds that a joining node asks; borrowed until the next step; none: it is not joining.
 */
const trpi_address *trpi_member_seeds(const trpi_member_core *core, uint32_t *ret_count);
/* The next seed that is no member, from *at on, which is set behind it; NULL: no more. */
const trpi_address *trpi_member_absent_seed(const trpi_member_core *core, uint32_t *at);
/* The seed node number index that lives in another cluster of this name; false: no more. */
bool trpi_member_foreign(const trpi_member_core *core, uint32_t index, trpi_node_id *ret_id,
                         uint64_t *ret_since_ms);
/* The address it asks or has joined through, for the log of a join that hangs; "" none. */
const char *trpi_member_seek_text(const trpi_member_core *core, char *buffer, size_t bytes);

/* Return the last refusal of a member while this node joins; "": none, or it has joined. */
const char *trpi_member_seek_why(const trpi_member_core *core);

/* Return whether it holds the lease, for others besides itself; also when it has stopped. */
bool trpi_member_needs_lease(const trpi_member_core *core);

/* Forecast the decision of the downing strategy if nothing changes; false: no member is
 * unreachable, this node is no member or is leaving, or there is no memory. */
bool trpi_member_forecast(const trpi_member_core *core, trpi_downing_forecast *ret_forecast);

/* Return in how many milliseconds what that member hosted may be started on another node; false: it
 * is still a member, or this node is none. 0: now, for its removal is settled: a resolving strategy
 * decided it, it said that it is done, or an operator said that it is dead; or its margin is over.
 */
bool trpi_member_takeover(const trpi_member_core *core, uint64_t now_ms, uint64_t key,
                          uint64_t *ret_in_ms);
/* Return for how long the strategy is patient, and whether both sides decide alike by it. */
uint32_t trpi_member_stable_after_ms(const trpi_member_core *core);
bool trpi_member_resolves(const trpi_member_core *core);
/* Return whether this node is Exiting and says so: nothing of it may run any more. */
bool trpi_member_is_done(const trpi_member_core *core);
uint32_t trpi_member_broken(const trpi_member_core *core); /* 0 without TRPI_DEBUG */
/* Return whether this node holds the lease. */
bool trpi_member_holds_lease(const trpi_member_core *core);

/* Write what is missing for joiners to become Up: "2 of 3 members are there"; "": nothing. */
const char *trpi_member_lacking(const trpi_member_core *core, char *buffer, size_t bytes);

typedef struct trpi_member_stats {
    uint64_t frames_in, frames_out, bytes_in, bytes_out, undecodable, ignored, received_same,
        received_newer, received_older, merged, expired;
} trpi_member_stats;
void trpi_member_stats_get(const trpi_member_core *core, trpi_member_stats *ret_stats);

#endif

/* troupe/cluster.h - membership: the members of the cluster, their states, and events of changes.
 *
 * A system becomes a cluster node by the node program, or by its configuration in a program that
 * embeds the library. Every node has its own view; views become equal by gossip (they *converge*).
 * An actor that subscribes is told the present state first (trp_current_cluster_state) and then
 * every change in order. Views are copies: they never change under you and never dangle.
 *
 *     joining -> up -> leaving -> exiting -> removed      any of the first four -> down -> removed
 *     joining -> weakly up -> up, where allow-weakly-up-members is set and nodes cannot agree
 *     joining or weakly up -> leaving, when a node leaves before it was Up
 *
 * Unreachable is an observation beside the status; it comes and goes.
 */
#ifndef TROUPE_CLUSTER_H
#define TROUPE_CLUSTER_H

#include <troupe/actor.h>
#include <troupe/base.h>
#include <troupe/message.h>
#include <troupe/system.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_ADDRESS_BYTES 352      /* "troupe.tcp://system@host:port" and the NUL */
#define TRP_MEMBER_ROLES_BYTES 512 /* "role,role" and the NUL */
#define TRP_APP_VERSION_BYTES 32
#define TRP_ROLE_BYTES 64

/* Numbers of the wire; the later one wins, see WEAKLY_UP. */
typedef enum trp_member_status {
    TRP_MEMBER_JOINING = 1,
    TRP_MEMBER_UP = 2,
    TRP_MEMBER_LEAVING = 3,
    TRP_MEMBER_EXITING = 4,
    TRP_MEMBER_DOWN = 5,
    TRP_MEMBER_REMOVED = 6,
    TRP_MEMBER_WEAKLY_UP = 7 /* between joining and up: may work, does not decide */
} trp_member_status;

/* Return "Joining", "Up", ...; "?" for no status; a static string.
 *
 * Errors:    none
 * Thread:    any; async-signal-safe.
 * Source:    MEMB-06.  Since: 0.1 */
TRP_API const char *trp_member_status_name(uint32_t status);

/* A copy of what one node knows about one member. */
typedef struct trp_member {
    char address[TRP_ADDRESS_BYTES];
    char roles[TRP_MEMBER_ROLES_BYTES]; /* sorted, comma-separated; trp_member_has_role() */
    char app_version[TRP_APP_VERSION_BYTES];
    uint64_t uid;       /* of this incarnation */
    uint32_t status;    /* trp_member_status */
    uint32_t up_number; /* the lower, the older; 0: never was Up */
    uint8_t reachable;
    uint8_t self; /* it is this node */
    uint8_t zero[6];
} trp_member;

/* Tell whether the member has a role.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    ROLES-02, MEMB-25.  Since: 0.1 */
TRP_API int trp_member_has_role(const trp_member *member, const char *role);

/* Tell whether a was Up before b; only among present members.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    MEMB-24.  Since: 0.1 */
TRP_API int trp_member_is_older_than(const trp_member *a, const trp_member *b);

/* ---- events ----------------------------------------------------------------------------------
 *
 * Their order, on each node (nodes see changes at different times, and may see several as one):
 *
 *   - of one member: Joined, WeaklyUp, Up, Left, Exited, Downed, Removed, each once at most. Joined
 *     is first and Removed last. Events that a view jumps over are told all the same, except those
 *     on the way to Downed, WeaklyUp, and an Up that never happened;
 *   - Unreachable and Reachable of one member alternate, and come between its Joined and Removed;
 *   - of one change: reachability of members that are known already, removals (each with the events
 *     before it), other changes of members in the order of members, LeaderChanged,
 *     RoleLeaderChanged, SeenChanged. So a subscriber has been told that a leader is Up before it
 *     is told of the leader;
 *   - DowningDecision comes before the events that follow from it.
 *
 * A subscriber that applies each event in turn to the state knows what the node knows.
 *
 * When this node is out (it has left, was downed or removed, or its system stops), its subscribers
 * are told MemberRemoved of every member, of this node last, and that there is no leader; no event
 * follows, and the state is empty from then on. previous_status is then the status that each had: a
 * member that was Up is still in the cluster, and watchers of its actors are not told. */

/* Payload of the member events: joined, weakly up, up, left, exited, downed, removed, unreachable,
 * reachable. */
typedef struct trp_member_event {
    trp_member member;
    /* of a removed member: TRP_MEMBER_EXITING or _DOWN; any other: this node is out */
    uint32_t previous_status;
    uint32_t zero;
} trp_member_event;

/* Payload of LeaderChanged (role empty) and RoleLeaderChanged. address empty: there is no
 * leader. */
typedef struct trp_leader_event {
    char address[TRP_ADDRESS_BYTES];
    char role[TRP_ROLE_BYTES];
    uint64_t uid;
} trp_leader_event;

/* Payload of SeenChanged. */
typedef struct trp_seen_event {
    uint32_t members, seen_by;
    uint8_t converged;
    uint8_t zero[7];
} trp_seen_event;

/* Payload of DowningDecision: what was decided here, from what. */
typedef struct trp_downing_event {
    char strategy[32];
    char decision[32]; /* "down-unreachable", "down-self", ... */
    char reason[192];
    uint32_t members, reachable, unreachable, indirectly_connected;
} trp_downing_event;

/* Payload of trp_current_cluster_state_type: this header, then members_count trp_member. */
typedef struct trp_current_cluster_state {
    trp_leader_event leader;
    uint32_t members_count; /* 0: not joined yet */
    uint32_t unreachable_count;
    uint8_t converged;
    uint8_t zero[7];
} trp_current_cluster_state;

/* Return the members of a received state. */
static inline const trp_member *
trp_current_cluster_state_members(const trp_current_cluster_state *state)
{
    return (const trp_member *)(const void *)(state + 1);
}

/* Tags of the cluster's messages. */
enum {
    trp_cluster_state_tag = 0xff40,
    trp_member_joined_tag = 0xff41,
    trp_member_up_tag = 0xff42,
    trp_member_left_tag = 0xff43,
    trp_member_exited_tag = 0xff44,
    trp_member_downed_tag = 0xff45,
    trp_member_removed_tag = 0xff46,
    trp_member_unreachable_tag = 0xff47,
    trp_member_reachable_tag = 0xff48,
    trp_leader_changed_tag = 0xff49,
    trp_role_leader_changed_tag = 0xff4a,
    trp_seen_changed_tag = 0xff4b,
    trp_downing_decision_tag = 0xff4c,
    trp_member_weakly_up_tag = 0xff50
};

TRP_API extern trp_type trp_current_cluster_state_type;
TRP_API extern trp_type trp_member_joined_type;
TRP_API extern trp_type trp_member_weakly_up_type;
TRP_API extern trp_type trp_member_up_type;
TRP_API extern trp_type trp_member_left_type;
TRP_API extern trp_type trp_member_exited_type;
TRP_API extern trp_type trp_member_downed_type;
TRP_API extern trp_type trp_member_removed_type;
TRP_API extern trp_type trp_member_unreachable_type;
TRP_API extern trp_type trp_member_reachable_type;
TRP_API extern trp_type trp_leader_changed_type;
TRP_API extern trp_type trp_role_leader_changed_type;
TRP_API extern trp_type trp_seen_changed_type;
TRP_API extern trp_type trp_downing_decision_type;
TRP_API extern const trp_protocol trp_cluster_protocol;

/* Events to subscribe to; bits may be combined (EVENTS-09). */
enum trp_cluster_events {
    TRP_CLUSTER_MEMBER_JOINED = 1,
    TRP_CLUSTER_MEMBER_UP = 2,
    TRP_CLUSTER_MEMBER_LEFT = 4,
    TRP_CLUSTER_MEMBER_EXITED = 8,
    TRP_CLUSTER_MEMBER_DOWNED = 16,
    TRP_CLUSTER_MEMBER_REMOVED = 32,
    TRP_CLUSTER_MEMBER_WEAKLY_UP = 4096,
    TRP_CLUSTER_MEMBER_EVENTS = 63 + 4096,
    TRP_CLUSTER_UNREACHABLE = 64,
    TRP_CLUSTER_REACHABLE = 128,
    TRP_CLUSTER_REACHABILITY_EVENTS = 192,
    TRP_CLUSTER_LEADER_CHANGED = 256,
    TRP_CLUSTER_ROLE_LEADER_CHANGED = 512,
    TRP_CLUSTER_SEEN_CHANGED = 1024,
    TRP_CLUSTER_DOWNING_DECISION = 2048,
    TRP_CLUSTER_METRICS_CHANGED = 65536,    /* troupe/metrics.h */
    TRP_CLUSTER_DOMAIN_EVENTS = 8191 - 1024 /* all but SeenChanged and MetricsChanged */
};

/* Be told trp_current_cluster_state, then every event of `events` that happens after it. With
 * TRP_CLUSTER_ROLE_LEADER_CHANGED one for each role that has a leader comes right behind the state.
 * Subscribing again adds to the events and sends the state again. Ends with the actor.
 *
 * Errors:    TRP_EINVAL  events has unknown bits or is 0; subscriber is TRP_REF_NONE
 *            TRP_ESTATE  this system is no cluster node
 *            TRP_ENOMEM  out of memory
 * Thread:    any; takes a lock for a moment.
 * Source:    EVENTS-01, -02, -09, -12.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_cluster_subscribe(trp_system *system, trp_ref subscriber,
                                                     uint32_t events);

/* End the subscription to `events` (EVENTS-10); events already told may still be in the mailbox.
 *
 * Errors:    none
 * Thread:    any; takes a lock for a moment.
 * Source:    EVENTS-10.  Since: 0.1 */
TRP_API void trp_cluster_unsubscribe(trp_system *system, trp_ref subscriber, uint32_t events);

/* Send the present state to receiver once (EVENTS-15).
 *
 * Errors:    TRP_ESTATE  this system is no cluster node; TRP_ENOMEM  out of memory
 * Thread:    any; takes a lock for a moment.
 * Source:    EVENTS-15.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_cluster_send_state(trp_system *system, trp_ref receiver);

/* Run fn(arg) once, on the cluster's thread, when this node is Up; at once if it is Up already. fn
 * is short, may spawn and tell, must not block.
 *
 * Errors:    TRP_EINVAL fn is NULL; TRP_ESTATE this system is no cluster node; TRP_ENOMEM
 * Thread:    any; takes a lock for a moment.
 * Source:    MEMB-21.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_cluster_on_member_up(trp_system *system, void (*fn)(void *arg),
                                                        void *arg);

/* ---- looking --------------------------------------------------------------------------------- */

/* Copy at most max members, in order; *ret_count is how many there are (0: not joined).
 *
 * Errors:    TRP_ESTATE this system is no cluster node
 * Thread:    any; takes a lock for a moment.
 * Source:    EVENTS-12, MEMB-25.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_cluster_members(trp_system *system, trp_member *members,
                                                   size_t max, size_t *ret_count);

/* Copy what this node knows of itself; status 0 before it has joined.
 *
 * Errors:    TRP_ESTATE this system is no cluster node
 * Thread:    any; takes a lock for a moment.
 * Source:    MEMB-01.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_cluster_self(trp_system *system, trp_member *ret_member);

/* Copy the leader, of a role or of all (role NULL), as seen from here.
 *
 * Errors:    TRP_ENOENT there is no leader; TRP_ESTATE this system is no cluster node
 * Thread:    any; takes a lock for a moment.
 * Source:    MEMB-14.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_cluster_leader(trp_system *system, const char *role,
                                                  trp_member *ret_member);

/* ---- what is bound to a role ----------------------------------------------------------------- */

/* Check that this node has a role, before something is started that is bound to it. If it has not,
 * the log says so, and what to do. Roles do not change while a node lives, and are known before it
 * has joined: once is enough, at the start of a program or in a plugin's init, which ends the node
 * by passing the error on. role NULL: any node will do.
 *
 * Ownership: borrows role.
 * Errors:    TRP_EROLE   this node does not have the role
 *            TRP_EINVAL  role is empty
 *            TRP_ESTATE  this system is no cluster node
 * Thread:    any; takes a lock for a moment.
 * Source:    ROLES-03, ROLES-05.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_cluster_require_role(trp_system *system, const char *role);

/* Do as trp_system_spawn on a node that has the role. On one that has not nothing is started, and
 * *ret_ref is trp_system_dead_letters(): one program can run on all nodes, and messages that a node
 * without the role tells the service are dead letters.
 *
 * Ownership: borrows behaviour until the system ends; borrows role and options.
 * Errors:    TRP_EINVAL  role is empty
 *            TRP_ESTATE  this system is no cluster node
 *            and those of trp_system_spawn
 * Thread:    any; takes a lock for a moment.
 * Source:    ROLES-03, ROLES-05.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_cluster_spawn_in_role(trp_system *system, const char *role,
                                                         const trp_behaviour *behaviour,
                                                         const trp_spawn_options *options,
                                                         trp_ref *ret_ref);

/* ---- commands -------------------------------------------------------------------------------- */

/* A cluster lets in no more members than so many; nor can it be told to wait for more. */
#define TRP_CLUSTER_MEMBERS_MAX 10000u

/* Begin to join the cluster that any of these addresses belongs to; the own address alone makes a
 * new cluster. Tries until it succeeds, which MemberUp reports. addresses:
 * "troupe.tcp://system@host:port".
 *
 * Errors:    TRP_EINVAL an address does not parse, or count is 0 or above TRP_CLUSTER_SEEDS_MAX
 *            TRP_ESTATE already a member (join once), or no cluster node
 *            TRP_ETIMEDOUT the cluster actor has not begun it within 5 s: the order is dropped, it
 *            will not be carried out later
 * Thread:    any; may block until the cluster actor answers; never from a behaviour.
 * Source:    SEED-09, -10, -12, MEMB-05.  Since: 0.1 */
#define TRP_CLUSTER_SEEDS_MAX 32
TRP_API TRP_MUST_CHECK trp_err trp_cluster_join(trp_system *system, const char *const *addresses,
                                                size_t count);

/* Ask a member (NULL: this node) to leave gracefully. Returns when it is ordered; events report the
 * rest.
 *
 * Errors:    TRP_ENOENT     no such member
 *            TRP_ESTATE     it is Down, or this system is no cluster node
 *            TRP_EINVAL     the address does not parse
 *            TRP_ETIMEDOUT  as trp_cluster_join: the order is dropped
 * Thread:    any; may block until the cluster actor answers; never from a behaviour.
 * Source:    MEMB-12.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_cluster_leave(trp_system *system, const char *address);

/* Mark a member Down. It is removed, and that incarnation never comes back.
 *
 * Errors:    as trp_cluster_leave, and address must not be NULL
 * Thread:    any; may block until the cluster actor answers; never from a behaviour.
 * Source:    MEMB-08, DOWN-02, -05.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_cluster_down(trp_system *system, const char *address);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_CLUSTER_H */

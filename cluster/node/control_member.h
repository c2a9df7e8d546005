/* control_member.h - the members as commands see them, and the forms of their names. */
#ifndef TRPI_NODE_CONTROL_MEMBER_H
#define TRPI_NODE_CONTROL_MEMBER_H

#include "cluster/node/control_request.h"
#include "cluster/node/node_private.h"

#define TRPI_VIEW_LINK_BYTES 240

/* This node's knowledge of one member, at one moment. */
typedef struct trpi_view_member {
    trp_member m;
    double round_trip_ms; /* negative: unknown */
    double phi;           /* negative: unknown, not monitored from here */
    uint64_t heartbeats;  /* answered since this node monitors it */
    /* by the clock of the leader that made it Up; 0: unknown */
    int64_t up_since_wall_ms;
    char build[TRPI_BUILD_BYTES_MAX + 1]; /* of Troupe; "": unknown */
    uint64_t age_ms;                      /* since this node saw it first */
    uint64_t unreachable_ms;              /* since when; 0: reachable */
    bool seen;                            /* has seen the present version of the view */
    bool awaited;                         /* convergence waits until it has */
    /* it has removed this node from its cluster, and says so */
    bool remover;
    char link[TRPI_VIEW_LINK_BYTES]; /* why messages to it do not go from here; "": they do */
    char cause[96];                  /* the reason at its link, if it is unreachable; "": none */
    int64_t cert_until_ms;           /* of its certificate, as far as this node has seen; 0: not */
    /* addresses of the members that observe it as unreachable; NULL: none */
    const char **observers;
    size_t observers_count;
} trpi_view_member;

typedef struct trpi_view {
    trpi_view_member *members;    /* in order */
    size_t count;                 /* 0: not joined */
    const trpi_view_member *self; /* NULL: not a member */
    bool converged;
    uint64_t converged_ms; /* for how long */
    uint64_t version;
    uint32_t clock_count, tombstones_count;
    const trp_member *leader, *oldest; /* NULL: none */
    /* the address that a node asks that has not joined; "" */
    char seeking[TRPI_ADDRESS_TEXT_BYTES];
    char seeking_why[TRPI_SEEK_WHY_BYTES];    /* why it is not admitted; "": not known */
    char lacking[TRPI_CLUSTER_LACKING_BYTES]; /* why joiners are not Up, though all agree; "" */
    const char *strategy;                     /* of downing; static */
    uint32_t stable_after_ms, auto_down_after_ms;
    trpi_view_member foreign[TRPI_CLUSTER_FOREIGN_MAX]; /* seeds of another cluster; m, age_ms */
    size_t foreign_count;
    /* for how long a member says that it has removed this node; 0: none does */
    uint64_t removed_ms;
    /* this node stood still and does not know yet which members are reachable */
    bool waking;
    trpi_exclusive_view exclusive; /* of singletons and entities */
    bool foresees; /* trpi_view_foresee() found an unreachable member: forecast is set */
    trpi_downing_forecast forecast;
    trpi_member_stats stats;
    trpi_trouble_text troubles[TRPI_NODE_TROUBLES]; /* of this node's own files */
    size_t troubles_count;
    void *memory;
} trpi_view;

/* Give a view, to be freed by trpi_view_fini(). Errors: TRP_ENOMEM. Never blocks on the cluster's
 * work. */
trp_err trpi_view_take(trp_node *node, trpi_view *ret_view);
/* As that, for a command. false: answered, there is no memory. */
bool trpi_view_take_for(trp_node *node, trpi_call *call, trpi_view *ret_view);
/* Add the forecast of the downing decision about unreachable members, and the state of their
 * links. */
void trpi_view_foresee(trp_node *node, trpi_view *view);
void trpi_view_fini(trpi_view *view);
/* Fill in each member's link: why messages to a reachable member wait. */
void trpi_view_look_at_links(trp_node *node, trpi_view *view);
/* Fill in when the members' certificates end, as far as this node has seen them. */
void trpi_view_look_at_certificates(trp_node *node, trpi_view *view);
/* Fill in the problems of this node's certificate and of its last reload. */
void trpi_view_look_at_files(trp_node *node, trpi_view *view);

/* The members with a role, one after the other; the oldest of them; the first that may lead. */
const trp_member *trpi_view_oldest(const trpi_view *view, const char *role);
const trp_member *trpi_view_leader(const trpi_view *view, const char *role);

/* Call each(arg, role) for every role of any member, once, in the order of members; false as soon
 * as it is. */
bool trpi_view_each_role(const trpi_view *view, bool (*each)(void *arg, const char *role),
                         void *arg);

/* Find a member by address, system@host:port, host:port, host, uid, or 16 hex digits of the uid.
 * Errors: TRP_EINVAL, TRP_ENOENT; *ret_refusal is the answer. */
trp_err trpi_view_find(const trpi_view *view, const char *name, const trpi_view_member **ret_member,
                       trpi_control_refusal *ret_refusal);
/* As above, in the present view; false: refused. */
bool trpi_member_find(trp_node *node, const char *name, trp_member *ret_member,
                      trpi_control_refusal *ret_refusal);

/* Write the problem that `status` shows when no other member can be reached and the failure
 * detector has not decided yet: of these links, all that were tried have failed. false: some work,
 * or none was tried; text is unchanged. */
bool trpi_peers_problem(const trpi_view *view, const trpi_peer_info *peers, size_t count,
                        char *text, size_t bytes);

/* control_reach.c: dial all other members of the view, and add the ways from this node. false: no
 * memory. */
bool trpi_node_own_ways_add(trp_node *node, trpi_call *call, const trpi_view *view, cJSON *ways);

/* Add {"node","nodeUid","status","roles"} to object. */
bool trpi_member_add(cJSON *object, const trp_member *member);

#endif

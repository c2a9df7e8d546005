/* shell.h - the actor /system/cluster around the pure engine; private to the shell*.c files.
 *
 * Locks, in this order; none is held while callbacks run. engine: core and heartbeat; the actor
 * steps them, transport threads record heartbeats, any thread reads. listen: the listeners, and
 * whether one is being called. */
#ifndef TRPI_CLUSTER_SHELL_H
#define TRPI_CLUSTER_SHELL_H

#include <pthread.h>
#include <stdatomic.h>

#include "cluster/engine/exclusive.h"
#include "cluster/engine/heartbeat.h"
#include "cluster/engine/membership.h"
#include "cluster/metrics/metrics.h"
#include "cluster/shell/commands.h"
#include "cluster/shell/lease.h"
#include "cluster/shell/listen.h"
#include "cluster/shell/snapshot.h"
#include "remote/remote.h"

/* frames waiting for the actor; more are dropped, counted */
#define SHELL_FRAMES_MAX 4096u
#define SHELL_FRAME_BYTES_MAX (32u << 20) /* their bytes, together */
#define METRICS_FRAMES_MAX 64u            /* the same for the metrics' actor */
#define METRICS_FRAME_BYTES_MAX (8u << 20)
#define SHELL_SUBSCRIBERS_MAX 100000u

struct shell_frame { /* payload of a frame */
    trpi_node_id from;
    uint64_t arrived_ms;
    uint8_t bytes[];
};

struct shell_command {           /* owned by its message */
    trpi_member_event_kind kind; /* 0: nothing for the engine, only an answer */
    bool granted;                /* LEASE */
    uint32_t addresses_count;
    trpi_address *addresses; /* JOIN, SEEDS; owned */
    trpi_node_id target;
    trpi_cluster_done_fn done; /* NULL: no caller waits, or it is answered */
    bool (*begins)(void *arg); /* false drops it; NULL: it begins */
    void *arg;
    char text[]; /* LEASE */
};

struct shell_subscriber {
    trp_ref ref;
    uint32_t events;
};

struct shell_listener {
    uint64_t id;
    uint32_t events;
    trpi_cluster_event_fn fn;
    void *arg;
};

struct shell_known { /* facts about a member that the view does not have; engine lock */
    uint64_t uid;
    uint64_t first_seen_ms;
};

struct shell_quarantine {
    trpi_node_id id;
    uint64_t due_ms;
};

struct shell_reaching { /* a joining node that is being dialled back */
    trpi_node_id id;
    trpi_reach reach;
};

struct shell_on_up {
    void (*fn)(void *arg);
    void *arg;
};

struct shell_settings { /* constant after the start */
    bool quiet;
    uint32_t quarantine_after_ms;
    uint32_t stats_interval_ms; /* 0: not logged; or TRPI_STATS_ALWAYS */
    uint32_t stable_after_ms, auto_down_after_ms;
    uint32_t acceptable_pause_ms, heartbeat_interval_ms;
    const char *strategy;
    void (*stopped)(void *arg, trpi_member_stop why);
    void *stopped_arg;
};

struct shell_engine { /* with lock; the actor alone writes, and reads the core without it */
    pthread_mutex_t lock;
    trpi_member_core *core;
    trpi_heartbeat *heartbeat;
    struct shell_known *known;
    uint32_t known_count, known_room;
};

struct shell_bound {      /* of the frames that wait in an actor's mailbox; constant */
    const trp_type *type; /* of a message that holds a frame */
    uint32_t frames_max, bytes_max;
};

struct shell_mailbox {
    _Atomic uint64_t frames_waiting; /* number and bytes: shell_messages.c */
    _Atomic uint64_t frames_dropped; /* relaxed: a counter */
    _Atomic bool closed;             /* the mailbox takes nothing any more */
};

struct shell_listeners { /* with lock */
    pthread_mutex_t lock;
    pthread_cond_t returned;
    struct shell_listener *listeners;
    uint32_t listeners_count, listeners_room;
    uint64_t last_id;
    bool calls; /* a listener is being called, by this thread */
    pthread_t caller;
};

struct shell_audience { /* actors that hear the events; shell_events.c, the actor only */
    struct shell_subscriber *subscribers;
    uint32_t subscribers_count, subscribers_room;
    struct shell_on_up *on_up;
    uint32_t on_up_count, on_up_room;
    bool is_up;
};

struct shell_dialled { /* joining nodes that are dialled back; shell_reach.c, the actor only */
    struct shell_reaching *reaching;
    uint32_t reaching_count, reaching_room;
    uint64_t look_ms; /* when to look next */
};

struct shell_own { /* used by the actor only */
    bool unheard;  /* there was no memory to pass the list of silent members to the engine */
    struct shell_quarantine *quarantines;
    uint32_t quarantines_count, quarantines_room;
    uint64_t timer_ms;        /* when the timer fires; 0: it is not set */
    uint64_t view_digest;     /* of the view that the detector knows */
    uint64_t stats_log_ms;    /* when the last line was logged */
    uint64_t stats_frames;    /* frames in both directions at that time */
    uint64_t send_log_ms;     /* a refused frame is logged at most once in a while */
    uint64_t refused_look_ms; /* when to look next whether seeds refuse this node */
    uint64_t barred_count; /* of remoting, when the actor last looked which nodes refuse this one */
    uint64_t waking_ms;    /* since when this node is waking (heartbeat-H6); 0: it is not */
};

struct shell_exclusive {
    _Atomic bool in_use;  /* release / acquire: trpi_exclusive_open() */
    trpi_exclusive state; /* engine lock; the actor alone writes */
    bool roll_call;       /* the actor only: the engine is to make a version */
};

struct trpi_cluster {
    trp_system *system;
    trpi_remote *remote;
    trpi_world *world;
    trp_ref actor;
    trpi_lease *lease;            /* has a lock of its own */
    struct trpi_metrics *metrics; /* NULL: switched off; written before other threads read it */
    /* stopped or ended: heartbeats are not answered. Relaxed: a late answer is harmless */
    _Atomic bool silent;
    struct shell_settings settings;
    struct shell_engine engine;
    struct shell_mailbox mailbox;
    struct shell_listeners listen;
    struct shell_audience audience;
    struct shell_dialled dialled;
    struct shell_own own;
    struct shell_exclusive exclusive;
};

uint64_t shell_now_us(const trpi_cluster *cluster);
trpi_member_now shell_now(const trpi_cluster *cluster);
/* commands.c: the done function and the `begins` of an order that a thread waits for. */
void shell_waiter_answer(void *waiter, trp_err err);
bool shell_waiter_begins(void *waiter);
/* shell_messages.c; any thread, but the actor takes and answers. Errors of put: TRP_ECLOSED,
 * TRP_ENOMEM. */
extern trp_type shell_frame_type, shell_tick_type, shell_command_type, shell_subscribe_type,
    shell_unsubscribe_type, shell_send_state_type, shell_on_up_type, shell_metrics_type;
void shell_frame_arrived(void *arg, const trpi_node_id *from, const uint8_t *bytes, size_t count,
                         uint64_t arrived_ns);
/* Put a frame into the mailbox of actor, within bound; a frame beyond it is dropped and counted. */
void shell_frame_put(const trpi_cluster *cluster, trp_ref actor, struct shell_mailbox *mailbox,
                     const struct shell_bound *bound, const trpi_node_id *from,
                     const uint8_t *bytes, size_t count);
/* The actor: count bytes of a frame no longer wait. false: other frames do. */
bool shell_frame_taken(struct shell_mailbox *mailbox, size_t count);
trp_err shell_put(trpi_cluster *cluster, const trp_type *type, const void *payload, size_t bytes);
/* NULL: no memory. */
struct shell_command *shell_command_new(trpi_member_event_kind kind, size_t text_bytes);
void shell_command_free(struct shell_command *command); /* one that was not put; NULL is fine */
/* Takes command, on success only. */
trp_err shell_command_put(trpi_cluster *cluster, struct shell_command *command);
void shell_command_answer(struct shell_command *command, trp_err err);
/* Accept no more messages, and wait until those in the mailbox are answered. */
void shell_close(trpi_cluster *cluster);

/* shell.c; the actor only: step the engine, carry out its actions. Errors: those of the step. */
trp_err shell_step(trpi_cluster *cluster, trp_ctx *ctx, const trpi_member_event *event);

/* shell_reach.c; the actor only */
void shell_reach_begin(trpi_cluster *cluster, const trpi_node_id *id);
void shell_reach_look(trpi_cluster *cluster, trp_ctx *ctx);
uint64_t shell_reach_wake_ms(const trpi_cluster *cluster); /* UINT64_MAX: no node is dialled */

/* exclusive.c; the actor only. true: the engine is to be stepped with TRPI_MEMBER_ROLL_CALL. */
bool shell_exclusive_update(trpi_cluster *cluster, bool waking);
uint64_t shell_exclusive_wake_ms(trpi_cluster *cluster); /* UINT64_MAX: not in use */

/* shell_events.c; the actor only */
const trp_type *shell_event_type(uint32_t event);
void shell_publish(trpi_cluster *cluster, trp_ctx *ctx, const trpi_member_action *action);
void shell_subscribe(trpi_cluster *cluster, trp_ctx *ctx, trp_ref ref, uint32_t events);
void shell_unsubscribe(trpi_cluster *cluster, trp_ctx *ctx, trp_ref ref, uint32_t events);
void shell_send_state(trpi_cluster *cluster, trp_ctx *ctx, trp_ref ref);
void shell_on_up(trpi_cluster *cluster, const struct shell_on_up *on_up);
void shell_publish_metrics(trpi_cluster *cluster, trp_ctx *ctx);
void shell_tell_waking(trpi_cluster *cluster);  /* TRPI_CLUSTER_WAKING */
void shell_tell_drained(trpi_cluster *cluster); /* TRPI_CLUSTER_DRAINED */

/* ---- metrics_shell.c ---------------------------------------------------------------- */
/* Sets cluster->metrics, unless it is switched off. Errors: TRP_ENOMEM. */
trp_err trpi_metrics_new(trpi_cluster *cluster, const trpi_metrics_options *options);
/* Errors: those of trpi_system_spawn_internal. */
trp_err trpi_metrics_start(trpi_cluster *cluster);
void trpi_metrics_stop(trpi_cluster *cluster);
void trpi_metrics_free(struct trpi_metrics *metrics);            /* after the system has stopped */
void trpi_metrics_members_changed(struct trpi_metrics *metrics); /* any thread; NULL is fine */
/* A frame of TRPI_CHANNEL_METRICS; arg: a struct trpi_metrics. A transport thread. */
void trpi_metrics_frame_arrived(void *arg, const trpi_node_id *from, const uint8_t *bytes,
                                size_t count, uint64_t arrived_ns);
/* Its counters, for tests. Any thread. */
const struct shell_mailbox *trpi_metrics_mailbox(const struct trpi_metrics *metrics);

extern const trp_behaviour trpi_cluster_behaviour;

#endif

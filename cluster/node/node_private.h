/* node_private.h - a node's fields, shared by the files of this room. */
#ifndef TRPI_NODE_NODE_PRIVATE_H
#define TRPI_NODE_NODE_PRIVATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <troupe/cluster.h>
#include <troupe/journal.h>
#include <troupe/node.h>

#include "base/config.h"
#include "cluster/cluster.h"
#include "cluster/node/control.h"
#include "cluster/node/cookie_file.h"
#include "cluster/node/ctl_proto.h"
#include "cluster/node/node_log.h"
#include "cluster/node/node_options.h"
#include "cluster/node/node_plugin.h"
#include "cluster/node/record_ring.h"
#include "cluster/node/seed_dns.h"
#include "remote/remote.h"

#define TRPI_NODE_MAGIC 0x6e6f64655f747270ull
/* How long a stopping control server waits for calls in progress, and for answers to be written. */
#define TRPI_NODE_LINGER_MS 1000u
#define TRPI_NODE_FLUSH_MS 1000u
#define TRPI_NODE_STOP_MS 10000u /* for actors to end where a start failed before its phases */

#define TRPI_NODE_COOKIE_KEY "remote.secure-cookie" /* among the settings that all members share */

/* The largest number of simultaneous problems of this node's own files: those of remoting, the
 * configuration. */
#define TRPI_NODE_TROUBLES (TRPI_TROUBLE_COUNT + 1)
#define TRPI_NODE_RELOAD_BYTES 512

#define TRPI_DEAD_RING_BYTES 65536u /* some 500 dead letters */
#define TRPI_LOG_RING_BYTES 262144u /* some 1,500 lines */
#define TRPI_FOLLOW_MS 20u          /* how often a call that follows looks for more */

struct trpi_carry;
struct trpi_doctor_facts;
struct trpi_doctor_probes;

/* Of the coordinated shutdown; node_shutdown.c. */
typedef enum trpi_node_task {
    TRPI_NODE_LEAVE = 0,
    TRPI_NODE_EXITING = 1,
    TRPI_NODE_EXITING_DONE = 2,
    TRPI_NODE_SHUTDOWN = 3,
    TRPI_NODE_TASKS = 4
} trpi_node_task;

/* How this member leaves: written by node_shutdown.c, with the node's lock. */
struct trpi_node_ending {
    uint64_t listener;               /* of this member's way out */
    uint64_t tasks[TRPI_NODE_TASKS]; /* that run; 0: it does not */
    uint32_t own_status;             /* Leaving or Exiting, else 0 */
    bool membership_ended, downed, refused;
    bool told_to_leave;  /* by a signal, a command, the program or another member */
    bool gave_up;        /* cluster.leave-timeout has passed */
    uint64_t drain_task; /* of the shutdown's actor */
};

/* Messages per second, as status shows them: written by control_members.c, with the node's lock. */
struct trpi_node_rate {
    uint64_t since_ns; /* of the last measurement; 0: none yet */
    uint64_t messages; /* processed then */
    double per_second;
};

struct trp_node {
    uint64_t magic;
    trpi_config *config;
    trpi_node_secrets secrets; /* set before it listens; later the main thread's, at SIGHUP */
    bool has_cookie;           /* set before it listens */
    trpi_node_log log;
    bool only_check; /* the start ends before anything can be noticed by others: config check */
    bool log_own;    /* lines go to log, not to the log function of the opener */
    trp_log_fn program_log; /* the opener's; NULL: log_own */
    void *program_log_arg;
    trp_system *system;
    trpi_remote *remote;
    trpi_cluster *cluster;
    trpi_control *control;      /* NULL: no control socket */
    trp_journal_driver journal; /* of the configuration: a driver in memory ends with it */
    trpi_seed_dns *seed_dns;    /* NULL: seeds are not looked up */
    /* no more seed nodes are needed; relaxed: one look-up more does no harm */
    _Atomic bool seeds_over;
    struct trpi_carry *carry;
    struct trpi_management *management; /* NULL: management.enabled is off */
    struct trpi_otlp *otlp;             /* NULL: trace.otlp-endpoint is not set */
    struct trpi_health *health;         /* from before any command can come */
    /* control_commands.c's, for requests over HTTP; set before any can come */
    struct {
        bool (*is_quick)(const trpi_control_request *request);
        void (*serve)(void *arg, trpi_call *call);
    } commands;
    trpi_plugin plugins[TRPI_PLUGINS_MAX];
    size_t plugins_count;
    trpi_spawn_file spawn_files[TRPI_SPAWN_FILES_MAX]; /* node-spawn-S3 */
    size_t spawn_files_count;
    struct trpi_apps *apps;                  /* NULL: it has no directory of applications */
    const struct trpi_doctor_probes *probes; /* of the doctor; tests replace them */
    trpi_record_ring dead_ring;              /* the last dead letters; control_deadletters.c */
    trpi_record_ring log_ring;               /* the last lines of the log; control_logs.c */
    uint64_t listener;                       /* of the cluster's events */
    char address[TRPI_ADDRESS_TEXT_BYTES];
    char control_path[TRPI_CTL_PATH_BYTES];
    uint64_t start_ns;
    int end_fd; /* eventfd: readable once it has ended */

    pthread_mutex_t lock; /* innermost */
    trp_node_end end;     /* 0: it has not; with lock */
    struct trpi_node_ending ending;
    struct trpi_node_rate rate;
    uint32_t own_calls;          /* over HTTP, on threads of their own; with the lock */
    pthread_cond_t own_ended;    /* own_calls has fallen */
    struct trpi_bridge *bridges; /* bridge.c; with the lock, as the next one */
    uint64_t bridges_begun;
    uint64_t messages_seen[2]; /* from peers and to them; control_metrics.c, with the lock */
    /* until then an end counts as that of the whole cluster; 0: it does not */
    uint64_t cluster_ends_ns;
    bool is_upgrading;                           /* node_upgrade.c; with lock */
    char reload_refused[TRPI_NODE_RELOAD_BYTES]; /* why the last SIGHUP changed nothing; "" */
    struct {                                     /* control_reload.c; with lock */
        int fd; /* wakes the thread that reads the configuration; 0: there is none */
        uint32_t wanted, done;
        cJSON *report;      /* of the last one */
        char log_level[16]; /* since then; "": that of config. The thread's own */
    } reload;
};

/* Start from a configuration. Takes config, on success only. Errors as trp_node_open. */
trp_err trpi_node_open(trpi_config *config, const trp_node_options *options, trp_node **ret_node,
                       trp_node_error *ret_error);
/* Check whether a node would start from a configuration. Runs all checks of a start, up to steps
 * that others would notice: the port is another one, plugins are loaded and not begun, a node that
 * runs already is no error, no log line is written. Borrows config. Errors as trp_node_open. */
trp_err trpi_node_check(trpi_config *config, const trp_node_options *options,
                        trp_node_error *ret_error);
/* The exit code of a node that does not start for err. */
int trpi_node_open_exit(trp_err err);
/* The membership has ended; the first reason counts. Any thread. */
void trpi_node_end(trp_node *node, trp_node_end end);
/* node_shutdown.c: the same through the phases of the shutdown. The cluster's thread. */
void trpi_node_membership_ended(trp_node *node, trpi_member_stop why);
/* The cluster refuses what this member starts: it leaves, and ends with 78. */
void trpi_node_refused(trp_node *node);
/* How it has ended, or how it will as soon as its phases are over; 0: that is not known. */
trp_node_end trpi_node_fate(trp_node *node);
/* Write an end in words, for the log and for a waiting client; return the exit code. */
#define TRPI_NODE_END_BYTES 256
int trpi_node_end_tell(const trp_node *node, trp_node_end end, char text[TRPI_NODE_END_BYTES]);

/* node_dump.c: log the state of this node, whatever log.level is (SIGUSR2). */
void trpi_node_dump(trp_node *node);
/* Fills *ret with the engine's counters; returns the dead letters of all reasons. */
uint64_t trpi_node_stats(trp_node *node, trp_system_stats *ret);

/* node_dump.c: a log line of level info, whatever log.level is. */
void trpi_node_say(trp_node *node, const char *source, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* control_audit.c: log the order of a call, unless it only reads. Called before the order
 * begins. */
void trpi_audit_call(trp_node *node, const trpi_call *call);
/* As that, for a signal; pid 0: the terminal's. */
void trpi_audit_signal(trp_node *node, const char *order, const char *name, uint32_t uid,
                       uint32_t pid);

/* control_commands.c: the functions that the control server calls. */
bool trpi_node_command_is_quick(const trpi_control_request *request);
void trpi_node_command_serve(void *arg, trpi_call *call);
/* control_all.c: the command of a call with `allMembers`, answered by every member; serve: its
 * function. */
void trpi_node_serve_all(trp_node *node, trpi_call *call,
                         void (*serve)(trp_node *node, trpi_call *call));
/* control_actors.c */
void trpi_node_serve_send(trp_node *node, trpi_call *call);
void trpi_node_serve_ask(trp_node *node, trpi_call *call);
void trpi_node_serve_publish(trp_node *node, trpi_call *call);
void trpi_node_serve_ping(trp_node *node, trpi_call *call);
void trpi_node_serve_stop(trp_node *node, trpi_call *call);
void trpi_node_serve_tree(trp_node *node, trpi_call *call);
/* control_members.c */
void trpi_node_serve_members(trp_node *node, trpi_call *call);
void trpi_node_serve_peers(trp_node *node, trpi_call *call);
/* node_persistence.c: write the journal's health into a status, and what is wrong with it into the
 * problems. false: out of memory. */
bool trpi_node_journal_add(trp_node *node, cJSON *reply, cJSON *problems);
/* control_reach.c */
void trpi_node_serve_reach(trp_node *node, trpi_call *call);
void trpi_node_serve_singleton(trp_node *node, trpi_call *call);
void trpi_node_serve_dashboard(trp_node *node, trpi_call *call); /* control_dashboard.c */
void trpi_node_serve_senders(trp_node *node, trpi_call *call);   /* control_senders.c */
void trpi_node_serve_topics(trp_node *node, trpi_call *call);    /* control_topics.c */
void trpi_node_serve_top(trp_node *node, trpi_call *call);       /* control_top.c */
/* Hand-overs that hang: texts for status, rows of "reasons" for why. false: no memory. */
bool trpi_node_singletons_problems(trp_node *node, cJSON *problems);
bool trpi_node_singletons_why(trp_node *node, cJSON *reply);
void trpi_node_serve_metrics(trp_node *node, trpi_call *call); /* control_metrics.c */
/* control_health.c: `ready` waits for its probes, `alive` for nothing. */
void trpi_node_serve_ready(trp_node *node, trpi_call *call);
void trpi_node_serve_alive(trp_node *node, trpi_call *call);
/* control_shards.c */
void trpi_node_serve_shards(trp_node *node, trpi_call *call);
void trpi_node_serve_entity(trp_node *node, trpi_call *call);
bool trpi_node_shards_problems(trp_node *node, cJSON *problems);
bool trpi_node_shards_why(trp_node *node, cJSON *reply);
/* control_deadletters.c */
void trpi_node_deadletters_start(trp_node *node); /* once the system is there */
void trpi_node_serve_deadletters(trp_node *node, trpi_call *call);
void trpi_node_serve_trace(trp_node *node, trpi_call *call); /* control_trace.c */
/* Find the records that a call asks for (after, count); with follow wait until there is one, or the
 * call's time is over. false: refused, the node is stopping. */
bool trpi_node_records_await(trpi_call *call, trpi_record_ring *ring, trpi_record_place *ret_place);
/* Fill in the dead letters of the last window_ms, as far as they are kept. */
void trpi_node_deadletters_recent(trp_node *node, uint64_t window_ms,
                                  struct trpi_doctor_facts *facts);
/* control_doctor.c */
void trpi_node_serve_doctor(trp_node *node, trpi_call *call);
/* node_membership.c: the times and numbers of the downing strategy. */
void trpi_node_downing_times(const trp_node *node, trpi_downing_options *downing);
/* control_logs.c */
void trpi_node_log_keep(trpi_record_ring *ring, const trp_log_line *line); /* any thread */
void trpi_node_serve_logs(trp_node *node, trpi_call *call);
/* control_reload.c: for the thread that reads the configuration again. */
trp_err trpi_reload_open(trp_node *node); /* requests are taken. Errors: TRP_EIO */
void trpi_reload_close(trp_node *node);   /* no more; before the control server ends */
/* Return the number of the last reload that was ordered, after reload.fd has been readable. */
uint32_t trpi_reload_wanted(trp_node *node);
cJSON *trpi_reload_report(void); /* empty. NULL: no memory; the next two take that */
void trpi_reload_changed(cJSON *report, const trpi_config_entry *then,
                         const trpi_config_entry *now);
void trpi_reload_restart(cJSON *report, const char *key);
/* Takes report, of all reloads up to `wanted`. */
void trpi_reload_done(trp_node *node, uint32_t wanted, cJSON *report);
void trpi_node_serve_reload(trp_node *node, trpi_call *call);
/* node_upgrade.c */
const char *trpi_plugins_dir(trp_node *node); /* where files of plugins are that commands name */
void trpi_node_serve_upgrade(trp_node *node, trpi_call *call);
/* Begin a command that loads code; false: another one runs, which was answered. */
bool trpi_plugin_turn_take(trp_node *node, trpi_call *call);
void trpi_plugin_turn_give(trp_node *node);
/* Register the types that a behaviour of a loaded file accepts. *why "": all well. */
void trpi_plugin_accepts_register(const trp_behaviour *behaviour, char *why, size_t why_bytes);
/* node_spawn.c */
void trpi_node_serve_spawn(trp_node *node, trpi_call *call);
void trpi_node_serve_watch(trp_node *node, trpi_call *call); /* control_actors.c */
/* control_fault.c */
void trpi_node_serve_fault(trp_node *node, trpi_call *call);
void trpi_node_serve_why(trp_node *node, trpi_call *call);
/* Write the rule for a peer, "send blackhole, receive pass"; false: none. */
bool trpi_node_fault_text(trp_node *node, const trpi_address *peer,
                          char out[2 * TRPI_FAULT_TEXT_BYTES + 32]);
void trpi_node_serve_member_status(trp_node *node, trpi_call *call);
void trpi_node_serve_status(trp_node *node, trpi_call *call);
/* control_join.c, control_change.c */
void trpi_node_serve_join(trp_node *node, trpi_call *call);
void trpi_node_serve_leave(trp_node *node, trpi_call *call);
void trpi_node_serve_drain(trp_node *node, trpi_call *call);
void trpi_node_serve_undrain(trp_node *node, trpi_call *call);
/* Add what `troupe shards`, `troupe singleton` list: "types", "singletons". false: no memory. */
bool trpi_node_shards_list(trp_node *node, cJSON *reply);
bool trpi_node_singletons_list(trp_node *node, cJSON *reply);
void trpi_node_serve_down(trp_node *node, trpi_call *call);
/* Refuse a leave of this node that ended in another way. */
void trpi_node_refuse_end(trp_node *node, trpi_call *call, trp_node_end end);
/* control_shutdown.c */
void trpi_node_serve_shutdown(trp_node *node, trpi_call *call);
/* Note that the whole cluster ends: the reason of this node's shutdown, if it begins soon: within
 * keep_ms, and at least within the time that an order for all takes to come. */
void trpi_node_prepare_end(trp_node *node, uint32_t keep_ms);
/* Is this node's end, if it begins now, that of the whole cluster? */
bool trpi_node_ends_with_all(trp_node *node);
/* control_events.c: turns the cluster's events into objects for the streams. */
trp_err trpi_node_events_start(trp_node *node);
void trpi_node_events_cluster_ends(trp_node *node); /* ClusterShuttingDown, to the streams */
void trpi_node_serve_events(trp_node *node, trpi_call *call);

/* carry.c: one node asks another to run a call (TRPI_CHANNEL_NODE). */
trp_err trpi_carry_new(trp_node *node, struct trpi_carry **ret_carry);
/* on: begin to answer, once the control server is there. Off: before the server closes; cancels
 * waiting calls, and returns when no frame is being handled. */
/* ask_members.c: ask all other members at once, and take the reply of each, or why there is none
 * (TRP_ECONN: it is unreachable, and was not asked). at_a_time: so many are asked together, at most
 * TRPI_ASKED_MAX. */
#define TRPI_ASKED_MAX 32u /* of the 64 questions that a node carries */
struct trpi_view;
struct trpi_view_member;
typedef void (*trpi_member_reply_fn)(void *arg, const struct trpi_view_member *v, trp_err err,
                                     const cJSON *reply);
void trpi_node_ask_members(trp_node *node, trpi_call *call, const struct trpi_view *view,
                           const char *request, uint32_t at_a_time, uint32_t ask_ms,
                           trpi_member_reply_fn fn, void *arg);
void trpi_carry_bind(struct trpi_carry *carry, bool on);
void trpi_carry_free(struct trpi_carry *carry); /* when no call is left; NULL is fine */
/* Send request to the node at address and wait for its final object: limit_ms, and no longer than
 * the call. Gives *ret_reply (cJSON_Delete). Errors: TRP_ETIMEDOUT, TRP_ECONN, TRP_EMSGSIZE,
 * TRP_ENOMEM, TRP_ECANCELED, TRP_EDATA. Call threads only. */
trp_err trpi_carry_ask(struct trpi_carry *carry, const trpi_address *address, const char *request,
                       uint32_t limit_ms, trpi_call *call, cJSON **ret_reply);
/* The same in two steps: several nodes may be asked before the first reply is awaited. A request
 * that has begun (*ret_id is not 0) must be ended by its caller. */
trp_err trpi_carry_begin(struct trpi_carry *carry, const trpi_address *address, const char *request,
                         uint64_t *ret_id);
trp_err trpi_carry_end(struct trpi_carry *carry, uint64_t id, uint64_t until_ns, trpi_call *call,
                       cJSON **ret_reply);

#endif

/* world.h - the simulated world, shared by the files of this room. */
#ifndef TRPI_CLUSTER_SIM_WORLD_H
#define TRPI_CLUSTER_SIM_WORLD_H

#include "actor/actor.h"
#include "cluster/engine/exclusive.h"
#include "cluster/engine/heartbeat.h"
#include "cluster/engine/membership.h"
#include "cluster/sim/sim.h"

#define SIM_SEEDS 32u       /* in a cluster of at most so many nodes all are seeds */
#define SIM_SEEDS_LARGE 3u  /* in a larger one the first few */
#define SIM_SMALL_BYTES 24u /* a heartbeat needs no memory of its own */
#define SIM_CHECKED 512u    /* pairs of views that are remembered as checked; a power of two */
#define SIM_QUARANTINED_MAX 64u
#define SIM_QUARANTINE_AFTER_US 5000000u /* as the shell does */

enum sim_event_kind {
    SIM_DELIVER = 1, /* bytes reach a node */
    SIM_WAKE = 2,    /* its engine or detector asked to be called */
    SIM_SCRIPT = 3   /* the scenario acts */
};

enum sim_channel {
    SIM_GOSSIP = 1,
    SIM_HEARTBEAT = 2,
    SIM_REFUSAL = 3 /* of a handshake: the sender has quarantined the receiver */
};

struct sim_world;
typedef void (*sim_script_fn)(struct sim_world *w, uint32_t node, uint64_t arg);

struct sim_event {
    uint64_t at_us;
    enum sim_event_kind kind;
    uint32_t node;
    uint32_t incarnation; /* SIM_WAKE: of which; SIM_DELIVER: 0 any */
    uint32_t from;        /* SIM_DELIVER */
    uint32_t from_incarnation;
    enum sim_channel channel;
    uint8_t *bytes; /* NULL: in small */
    uint32_t count;
    uint8_t small[SIM_SMALL_BYTES];
    sim_script_fn fn;
    uint64_t arg;
};

struct sim_place { /* in the queue */
    uint64_t at_us, seq;
    uint32_t event; /* index of events */
};

/* A subscriber's mirror of the view, built from the events alone (sim-S10). */
struct sim_mirror_member {
    uint64_t uid; /* 0: none */
    uint32_t status;
    bool unreachable;
};

struct sim_checked { /* this step from one view to another is legal, on any node */
    trpi_gossip *from, *to;
};

struct sim_tenant { /* tenant.c */
    trpi_exclusive exclusive;
    trpi_guard *guard; /* NULL: there are no tenants */
    bool hosts;        /* by the present view of its node */
    bool roll_call;
};

struct sim_node {
    struct sim_tenant tenant;
    trpi_node_id id;
    uint32_t incarnation; /* 0: never started */
    bool running;         /* the process is there */
    bool wanted;          /* it should be a member when all is well */
    bool hands_over;      /* it is Exiting, and will confirm */
    bool ever_up;         /* a node has seen this incarnation Up */
    uint32_t peak_status; /* the highest that any node has seen of this incarnation (sim-S6) */
    uint64_t started_us;
    uint64_t joining_us, up_us; /* when it first was somewhere */
    uint64_t restart_us;        /* when the supervisor starts it again; 0: not planned */
    uint64_t paused_until_us;
    uint64_t wake_us; /* of the SIM_WAKE that counts */
    int64_t wall_skew_ms;
    trpi_member_core *core;
    trpi_heartbeat *heartbeat;
    trpi_gossip *checked; /* the view that was checked last */
    uint64_t
        apart_ms; /* since when its views have an unreachable member (downing-D1); 0: they do not */
    trpi_member_stop stop;
    uint64_t quarantined[SIM_QUARANTINED_MAX]; /* keys */
    uint64_t quarantined_from_us[SIM_QUARANTINED_MAX];
    uint32_t quarantined_count;
    struct sim_mirror_member *mirror; /* by node; other incarnations behind them */
    uint32_t mirror_count, mirror_used, mirror_room;
};

struct sim_world {
    trpi_sim_options options;
    /* Of each event that a node publishes; NULL: none. */
    void (*on_event)(struct sim_world *w, uint32_t node, const trpi_member_action *action);
    trpi_sim_result result;
    uint64_t now_us, seq;
    uint64_t random;
    struct sim_place *heap;
    uint32_t heap_count, heap_room;
    struct sim_event *events; /* those in the queue, and free ones linked by node */
    uint32_t events_count, events_room, events_free;
    struct sim_checked *checked;
    struct sim_node *nodes;
    uint32_t nodes_count;
    uint8_t *cut;    /* nodes_count squared: [from][to] drops */
    uint32_t *heard; /* nodes_count squared: [at][from] latest incarnation heard */
    bool any_cut;
    /* fault mix of this seed */
    uint32_t delay_min_us, delay_mean_us;
    double loss, duplicate, corrupt;
    trpi_member_options member;
    trpi_heartbeat_options heartbeat;
    trpi_gossip_cache *cache;
    trpi_address addresses[SIM_SEEDS];
    uint32_t seeds_count;
    uint64_t exiting_ms; /* who leaves hands over for so long; 0: it confirms at once */
    /* counted for the checks */
    uint64_t unreachable_events, downed, decisions, removed_by_down, islands;
    uint64_t *removed_keys; /* keys of all members with a tombstone in any view (sim-S6) */
    uint32_t removed_keys_count, removed_keys_room;
    uint32_t faults;                          /* injected so far; 0: nothing bad may be seen */
    uint32_t lease_holder, lease_incarnation; /* node + 1; 0: none has it */
    uint64_t cut_until_us;
    uint64_t cuts_from_us;     /* no cut before */
    uint64_t restarts_from_us; /* the supervisor does not restart before */
    bool careful, supervised;  /* schedule.h */
};

/* tenant.c; nothing happens without options.tenant */
void sim_tenant_start(struct sim_world *w, uint32_t node);
void sim_tenant_end(struct sim_node *n);
void sim_tenant_step(struct sim_world *w, uint32_t node); /* after the engine's step */
void sim_tenant_check(struct sim_world *w);               /* after each event */
void sim_tenant_check_quiet(struct sim_world *w);
uint64_t sim_tenant_wake_us(const struct sim_world *w, const struct sim_node *n);

/* world.c */
uint64_t sim_random(struct sim_world *w);
uint32_t sim_below(struct sim_world *w, uint32_t bound);
bool sim_chance(struct sim_world *w, double probability);
/* Where the generator of a purpose begins: the same for the same seed, another for each. */
uint64_t sim_stream(uint64_t seed, uint32_t nodes, const char *purpose);
void sim_fail(struct sim_world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_note(struct sim_world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_at(struct sim_world *w, uint64_t delay_ms, sim_script_fn fn, uint32_t node, uint64_t arg);
trp_err sim_world_new(const trpi_sim_options *options, struct sim_world **ret_world);
void sim_world_free(struct sim_world *w);
/* The next call that the node's engine or detector asked for. */
void sim_schedule_wake(struct sim_world *w, uint32_t node, uint64_t at_us);
/* Run until nothing is left before at_us, or something failed. */
void sim_run_until(struct sim_world *w, uint64_t at_us);

/* node.c */
void sim_node_start(struct sim_world *w, uint32_t node); /* a new incarnation; joins the seeds */
void sim_node_kill(struct sim_world *w, uint32_t node);
void sim_node_pause(struct sim_world *w, uint32_t node, uint64_t ms);
void sim_node_command(struct sim_world *w, uint32_t node, trpi_member_event_kind kind,
                      uint32_t target);
/* bytes are the frame's */
void sim_node_deliver(struct sim_world *w, const struct sim_event *event, const uint8_t *bytes);
void sim_node_wake(struct sim_world *w, uint32_t node);
/* Takes *bytes as far as it can; what is left is the caller's. */
void sim_send(struct sim_world *w, uint32_t from, const trpi_node_id *to, enum sim_channel channel,
              trpi_buffer *bytes);
/* As that, with at most SIM_SMALL_BYTES, which are copied. */
void sim_send_small(struct sim_world *w, uint32_t from, const trpi_node_id *to,
                    enum sim_channel channel, const uint8_t *bytes, size_t count);
/* The node whose present incarnation this is; NULL: of none. */
struct sim_node *sim_node_of(struct sim_world *w, uint64_t uid);
bool sim_is_member(const struct sim_node *n); /* runs, and takes part */

/* check.c */
/* Is this step one after which the engine's check functions are called? */
bool sim_is_checked_step(const struct sim_world *w);
/* After each step, before its actions are taken: the checks of membership, lease and forecast. */
void sim_check_engine(struct sim_world *w, uint32_t node);
/* After each tick: heartbeat-H8..H10, phi-P5 and their like. */
void sim_check_heartbeat(struct sim_world *w, uint32_t node);
void sim_check_view(struct sim_world *w, uint32_t node); /* after each step that changed it: S */
/* check_events.c: sim-S10 */
struct sim_mirror_member *sim_mirror_find(const struct sim_world *w, const struct sim_node *n,
                                          uint64_t uid);
void sim_check_event(struct sim_world *w, uint32_t node, const trpi_member_action *action);
bool sim_is_quiet(struct sim_world *w);    /* sim-Q1 .. sim-Q5 hold now */
void sim_explain(struct sim_world *w);     /* why not, as the failure */
void sim_check_quiet(struct sim_world *w); /* the rest of Q, once quiet */

/* play.c: options.schedule */
void sim_schedule_prepare(struct sim_world *w);
void sim_schedule_play(struct sim_world *w);

/* figures.c */
void sim_play_join(struct sim_world *w);
void sim_play_lossy(struct sim_world *w);

/* scenario.c */
/* All nodes but the last so many, at random times within spread_ms; until they are one cluster. */
void sim_start_but(struct sim_world *w, uint32_t spread_ms, uint32_t missing);
void sim_start_all(struct sim_world *w, uint32_t spread_ms);
/* Until the wanted are one converged cluster, looked at so often; false: not in
 * time. */
bool sim_await_quiet(struct sim_world *w, uint64_t limit_ms, uint64_t every_ms);
void sim_supervise(struct sim_world *w); /* from now on: see the head of scenario.c */
/* No frame between nodes of different sides ('0' or '1' each), both ways or from 0 to 1. */
void sim_cut_sides(struct sim_world *w, const char *sides, bool both_ways, uint64_t ms);
void sim_cut_link(struct sim_world *w, uint32_t from, uint32_t to, bool both_ways, uint64_t ms);
void sim_heal(struct sim_world *w);
/* All faults end; until the wanted are one converged cluster. */
void sim_finish(struct sim_world *w);
/* Return whether every running node sees it unreachable, Down or gone. */
bool sim_all_see_away(const struct sim_world *w, uint32_t dead);
typedef struct sim_scenario {
    const char *name;
    void (*prepare)(struct sim_world *w); /* options, before any node starts */
    void (*play)(struct sim_world *w);    /* to the end */
} sim_scenario;
const sim_scenario *sim_scenario_find(const char *name);

#endif

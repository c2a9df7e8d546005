/* troupe/sim.h - whole clusters in one thread, under one seed, in virtual time.
 *
 * The production code runs: systems, their actors, remoting, membership and the failure detector;
 * the network, the clocks and the fate of processes are simulated, and the order in which actors
 * run is drawn. A seed means the same events on every machine.
 *
 *     static void
 *     spawn_actors(trp_sim *sim, uint32_t node, void *arg)
 *     {
 *         ... trp_system_spawn(trp_sim_system(sim, node), ...) ...
 *     }
 *
 *     static void
 *     every_node_answers(trp_sim *sim, void *arg)
 *     {
 *         trp_sim_faults(sim, 60000);
 *         trp_sim_calm(sim, 120000);
 *         ... trp_system_ask_path(trp_sim_system(sim, 0), ...); TRP_SIM_CHECK(sim, sum == 100);
 *     }
 *
 *     trp_sim_options options = TRP_SIM_OPTIONS_INIT;
 *     options.nodes = 5;
 *     options.started = spawn_actors;
 *     options.seeds = 1000;
 *     err = trp_sim_run(every_node_answers, NULL, &options, NULL);
 *
 * The program must do the same whenever the same happens to it: no clock and no random numbers but
 * the simulation's, no other threads. It runs beside the nodes, not on one; time passes only in
 * calls that wait: trp_sim_pass() and the others of this header, and those of troupe/system.h that
 * may block.
 */
#ifndef TROUPE_SIM_H
#define TROUPE_SIM_H

#include <troupe/base.h>
#include <troupe/journal.h>
#include <troupe/log.h>
#include <troupe/system.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRP_SIM_NODES_MAX 100 /* complete nodes; `troupe sim` has 10,000 of membership alone */
#define TRP_SIM_NODES_DEFAULT 3

typedef struct trp_sim trp_sim;
/* One run: called when all nodes are up and have seen each other. */
typedef void (*trp_sim_program)(trp_sim *sim, void *arg);
/* Called for each incarnation of each node, before it does anything: here its actors are made. */
typedef void (*trp_sim_started_fn)(trp_sim *sim, uint32_t node, void *arg);
typedef void (*trp_sim_log_fn)(void *arg, uint64_t now_ms, uint32_t node, const trp_log_line *line);

typedef struct trp_sim_options {
    size_t size;
    uint64_t seed;              /* of the first run; 0: 1 */
    uint32_t seeds;             /* runs, with seed, seed + 1, ... until one fails; 0: 1 */
    uint32_t nodes;             /* 0: TRP_SIM_NODES_DEFAULT; at most TRP_SIM_NODES_MAX */
    uint32_t calm;              /* 1: the actor that waits longest runs; the order is not drawn */
    uint32_t stable_after_ms;   /* of the downing strategy; 0: as in production */
    trp_sim_started_fn started; /* with the program's arg; NULL: nodes have no actors of yours */
    const char *downing;        /* "keep-majority"; NULL: as in production */
    const char *replay; /* printed before the seed of a failing run; NULL: the call to make */
    trp_sim_log_fn log; /* lines of all nodes; NULL: dropped */
    void *log_arg;
    const char *const *roles; /* one of each node, or NULL for it; NULL: none has one. Since: 0.2 */
} trp_sim_options;
#define TRP_SIM_OPTIONS_INIT                                                                       \
    {                                                                                              \
        sizeof(trp_sim_options), 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL                 \
    }

typedef struct trp_sim_result {
    size_t size;         /* sizeof(trp_sim_result), set by the caller */
    uint64_t seed;       /* of the last run */
    uint64_t hash;       /* of its trace: turns, their times and results, and notes */
    uint64_t turns;      /* of actors */
    uint64_t virtual_ms; /* how long it lasted */
    uint32_t runs;
    uint32_t failed; /* 1: the last of them failed, and what follows is about it */
    int line;
    uint32_t zero;
    const char *file; /* static text of the program */
    char text[512];
} trp_sim_result;

/* Run program under seeds until one fails, and print that one's seed and how to replay it.
 *
 * Ownership: borrows options; arg is passed through.
 * Errors:    TRP_EFAILED  a run failed; *ret_result (NULL: not wanted) tells how
 *            TRP_EINVAL   an option is out of range, or there is no such strategy
 *            TRP_ENOMEM   out of memory
 * Thread:    any; may block until all runs have ended; never from a behaviour.
 * Source:    docs/architecture.md#the-simulator.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_sim_run(trp_sim_program program, void *arg,
                                           const trp_sim_options *options,
                                           trp_sim_result *ret_result);

/* ---- nodes: 0 .. trp_sim_nodes() - 1 ---------------------------------------------------------
 * The first three are the seed nodes; with options.started the first twelve, so that a first seed
 * that starts again finds whoever is left.
 */

/* Return how many there are, running or not. Errors: none. Thread: owner (the program).
 * Since: 0.1 */
TRP_API uint32_t trp_sim_nodes(const trp_sim *sim);

/* Borrow the system of a node, until it is killed or its membership ends, which a call that waits
 * may find; NULL: it does not run. Spawn, tell, ask and look at the cluster with it.
 *
 * Errors:    none
 * Thread:    owner (the program).
 * Source:    docs/architecture.md#the-simulator.  Since: 0.1 */
TRP_API trp_system *trp_sim_system(trp_sim *sim, uint32_t node);

/* Borrow the address of a node, "troupe.mem://sim@n0:2552"; all its incarnations have it.
 *
 * Errors:    none
 * Thread:    owner (the program).
 * Source:    docs/architecture.md#the-simulator.  Since: 0.1 */
TRP_API const char *trp_sim_address(const trp_sim *sim, uint32_t node);

/* Start a node that does not run: a new incarnation, which joins the others.
 *
 * Errors:    none; out of memory fails the run
 * Thread:    owner (the program).
 * Source:    docs/architecture.md#the-simulator.  Since: 0.1 */
TRP_API void trp_sim_start(trp_sim *sim, uint32_t node);

/* End a node as kill -9 does: it is never heard from again. Its system is gone.
 *
 * Errors:    none
 * Thread:    owner (the program).
 * Source:    docs/architecture.md#the-simulator.  Since: 0.1 */
TRP_API void trp_sim_kill(trp_sim *sim, uint32_t node);

/* Let a node stand still for so long, as SIGSTOP does; what is sent to it waits.
 *
 * Errors:    none
 * Thread:    owner (the program).
 * Source:    docs/architecture.md#the-simulator.  Since: 0.1 */
TRP_API void trp_sim_pause(trp_sim *sim, uint32_t node, uint32_t ms);

/* Order a node to leave the cluster; when it has left, it does not run any more.
 *
 * Errors:    none
 * Thread:    owner (the program).
 * Source:    docs/architecture.md#the-simulator.  Since: 0.1 */
TRP_API void trp_sim_leave(trp_sim *sim, uint32_t node);

/* ---- network --------------------------------------------------------------------------------- */

/* For so long nothing goes from one node to another; as with TCP, it arrives afterwards. Both ways:
 * two calls.
 *
 * Errors:    none
 * Thread:    owner (the program).
 * Source:    docs/architecture.md#the-simulator.  Since: 0.1 */
TRP_API void trp_sim_cut(trp_sim *sim, uint32_t from, uint32_t to, uint32_t ms);

/* Break all connections of a node, as a router that loses its tables does; they can be made again.
 *
 * Errors:    none
 * Thread:    owner (the program).
 * Source:    docs/architecture.md#the-simulator.  Since: 0.1 */
TRP_API void trp_sim_reset(trp_sim *sim, uint32_t node);

/* Delay everything by up to so many milliseconds, drawn for each write; 0: none (at first 1).
 *
 * Errors:    none
 * Thread:    owner (the program).
 * Source:    docs/architecture.md#the-simulator.  Since: 0.1 */
TRP_API void trp_sim_delay(trp_sim *sim, uint32_t ms);

/* ---- sockets ---------------------------------------------------------------------------------
 *
 * The sockets of actors (troupe/io.h) are those of a simulated network, in which each node is a
 * host; the program and all that is on no node are one more. Use numeric addresses: names are
 * the machine's. The sockets answer as Linux's do. The faults of links and nodes are theirs: a
 * cut holds back what is sent and the answers to connects, trp_sim_reset() resets,
 * trp_sim_delay() delays, a node that ends resets its connections, and a system that ends must
 * have closed all its sockets, or the run fails. Their chance has a random stream of its own.
 */

/* Faults by chance between two hosts, of 1,000. */
typedef struct trp_sim_socket_faults {
    size_t size;
    uint32_t refused;    /* connects: refused, or nobody answers */
    uint32_t reset;      /* segments: the connection is reset behind it */
    uint32_t partial;    /* writes and segments: taken, carried in parts; and buffers are small */
    uint32_t lost;       /* datagrams */
    uint32_t duplicated; /* datagrams */
    uint32_t spurious;   /* reports of readiness that are not true any more */
} trp_sim_socket_faults;
#define TRP_SIM_SOCKET_FAULTS_INIT                                                                 \
    {                                                                                              \
        sizeof(trp_sim_socket_faults), 0, 0, 0, 0, 0, 0                                            \
    }

/* Let sockets fail by chance from now on. Without this call they do in trp_sim_faults() only, until
 * trp_sim_calm(): refused 50, reset 2, partial 200, lost 50, duplicated 20, spurious 50.
 *
 * Ownership: borrows faults; NULL: none by chance.
 * Errors:    TRP_EINVAL  a number is above 1,000
 * Thread:    owner (the program).
 * Source:    docs/architecture.md#the-simulator.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_sim_sockets(trp_sim *sim, const trp_sim_socket_faults *faults);

/* Borrow the address of a node's host, "10.0.0.1" for node 0: what its sockets bind and others
 * connect to. It has 127.0.0.1, ::1 and fd00::1 (fd00::2 for node 1) too.
 *
 * Errors:    none
 * Thread:    owner (the program and the behaviours that it runs).
 * Source:    docs/architecture.md#the-simulator.  Since: 0.1 */
TRP_API const char *trp_sim_host(const trp_sim *sim, uint32_t node);

/* ---- journal ---------------------------------------------------------------------------------
 *
 * One journal that all nodes see, and that no death of a node touches: what persistent actors,
 * entities and singletons of a simulation keep their state in. Operations take their time there
 * and back, and those that name neither one id nor one scope overtake each other. Of a node that
 * is killed, each change that was under way is carried out, lost, or carried out later, when
 * others may have claimed its scope; a late one of a living node comes before what the node submits
 * behind it. Its chance has a random stream of its own.
 */

/* Faults by chance. */
typedef struct trp_sim_journal_faults {
    size_t size;
    uint32_t latency_ms; /* longest way there, or back; 0: 2 */
    uint32_t refused;    /* of 1,000 changes: there is no room, TRP_EAGAIN */
    uint32_t unknown;    /* of 1,000 changes: failed with TRP_ETIMEDOUT; carried out or not, or
                            later */
    uint32_t lost;    /* of 1,000 operations: with it its node loses the connection, and all that it
                            has under way fails with TRP_ECONN */
    uint32_t away_ms; /* longest time until the connection is made again, for which what is
                            submitted waits; 0: 3,000 */
    uint32_t zero;
} trp_sim_journal_faults;
#define TRP_SIM_JOURNAL_FAULTS_INIT                                                                \
    {                                                                                              \
        sizeof(trp_sim_journal_faults), 0, 0, 0, 0, 0, 0                                           \
    }

/* Borrow the journal as a node sees it, until the run ends: for trp_persistence_start() of each
 * incarnation of that node, in options.started. NULL: no memory, or there is no such node.
 *
 * Errors:    none
 * Thread:    owner (the program).
 * Source:    docs/adr, decision 335.  Since: 0.2 */
TRP_API const trp_journal_driver *trp_sim_journal(trp_sim *sim, uint32_t node);

/* Let the journal fail by chance from now on. Without this call it does in trp_sim_faults() only,
 * until trp_sim_calm(): latency 20 ms, refused 5, unknown 5, lost 1.
 *
 * Ownership: borrows faults; NULL: none by chance.
 * Errors:    TRP_EINVAL  a number of 1,000 is above that
 *            TRP_ENOMEM  out of memory
 * Thread:    owner (the program).
 * Source:    docs/adr, decision 335.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_sim_journal_fail(trp_sim *sim,
                                                    const trp_sim_journal_faults *faults);

/* Carry out an operation at once and without faults, as trp_journal_call(), which would wait for
 * ever: to look at what is there.
 *
 * Ownership: borrows op
 * Errors:    op->err
 *            TRP_ENOMEM  out of memory; op has no answer
 * Thread:    owner (the program and the behaviours that it runs).
 * Source:    docs/adr, decision 335.  Since: 0.2 */
TRP_API trp_err trp_sim_journal_call(trp_sim *sim, trp_journal_op *op);

/* ---- time ------------------------------------------------------------------------------------ */

/* Return virtual milliseconds since the run began. Errors: none. Thread: owner (the program).
 * Since: 0.1 */
TRP_API uint64_t trp_sim_now_ms(const trp_sim *sim);

/* Let time pass.
 *
 * Errors:    none
 * Thread:    owner (the program).
 * Source:    docs/architecture.md#the-simulator.  Since: 0.1 */
TRP_API void trp_sim_pass(trp_sim *sim, uint32_t ms);

/* Let time pass until holds(arg) is not 0; 0 after ms: the run fails, and the program ends.
 *
 * Errors:    none
 * Thread:    owner (the program).
 * Source:    docs/architecture.md#the-simulator.  Since: 0.1 */
TRP_API void trp_sim_await(trp_sim *sim, int (*holds)(void *arg), void *arg, uint32_t ms);

/* The safety phase: for so long nodes are killed and started again, stand still, are cut off, one
 * way or both, lose their connections, and the network is slow, all drawn from the seed. At least
 * half of the nodes, and node 0, are neither killed nor isolated as a whole; single links of theirs
 * are cut too, for up to 6.2 s each, which for a while may be all the links of one node.
 *
 * Errors:    none
 * Thread:    owner (the program).
 * Source:    docs/architecture.md#the-simulator.  Since: 0.1 */
TRP_API void trp_sim_faults(trp_sim *sim, uint32_t ms);

/* The liveness phase: all faults end, nodes that do not run are started, and time passes until all
 * are up in one cluster and all know it. If they are not after ms, the run fails, and the program
 * ends.
 *
 * Errors:    none
 * Thread:    owner (the program).
 * Source:    docs/architecture.md#the-simulator.  Since: 0.1 */
TRP_API void trp_sim_calm(trp_sim *sim, uint32_t ms);

/* ---- chance and failure ---------------------------------------------------------------------- */

/* Return a number of the run's random stream: the same for the same seed.
 *
 * Errors:    none
 * Thread:    owner (the program).
 * Source:    docs/architecture.md#principles.  Since: 0.1 */
TRP_API uint64_t trp_sim_random(trp_sim *sim);

/* Mix a number into the hash of the trace: what the program saw.
 *
 * Errors:    none
 * Thread:    owner (the program and the behaviours that it runs).
 * Source:    docs/architecture.md#the-simulator.  Since: 0.1 */
TRP_API void trp_sim_note(trp_sim *sim, uint64_t what);

/* Fail the run; the first failure counts. In the program the call does not return: the run ends by
 * a jump, and memory that it has allocated is leaked. In a behaviour it returns, and the run ends
 * with the program's next call that waits. file is static text.
 *
 * Errors:    none
 * Thread:    owner (the program and the behaviours that it runs).
 * Source:    docs/architecture.md#the-simulator.  Since: 0.1 */
TRP_API void trp_sim_fail(trp_sim *sim, const char *file, int line, const char *text);
#define TRP_SIM_CHECK(sim, condition)                                                              \
    ((condition) ? (void)0 : trp_sim_fail((sim), __FILE__, __LINE__, #condition))

/* ---- the command ----------------------------------------------------------------------------- */

/* Run the program `troupe sim`: parse its options (argv[0] is the name of the command), simulate,
 * print each seed with its trace hash, and for a broken invariant the command that replays it.
 * Return the exit code.
 *
 * Ownership: borrows argv.
 * Errors:    none; the exit code says.
 * Thread:    the main thread; may block until all seeds have run; never from a behaviour.
 * Source:    docs/architecture.md#the-simulator.  Since: 0.1 */
TRP_API int trp_sim_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_SIM_H */

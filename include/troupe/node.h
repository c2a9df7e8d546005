/* troupe/node.h - a whole node from its configuration: system, remoting, membership, control
 * socket.
 *
 * `troupe node` is such a node with signal handling, and so is a program that calls trp_node_run():
 * it opens the node, lets the program spawn its actors, leaves the cluster at a signal, and returns
 * the exit code. A program with a main loop of its own opens a node, spawns its actors in
 * trp_node_system(), and closes it at the end; there the library installs no signal handler and
 * never ends the process: trp_node_await() tells when the membership is over.
 */
#ifndef TROUPE_NODE_H
#define TROUPE_NODE_H

#include <troupe/base.h>
#include <troupe/system.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trp_node trp_node;

typedef struct trp_node_options {
    size_t size;
    const char *config_file; /* NULL: none */
    /* "key=value", NULL-terminated; stronger than environment and file */
    const char *const *settings;
    int environment_ignored; /* 1: TROUPE_* variables are not looked at */
    uint32_t zero;
    trp_log_fn log; /* NULL: lines on stderr as log.format says */
    void *log_arg;
    int control_socket_forced; /* 1: a control socket whatever cluster.control-socket says */
    uint32_t fault_trap;       /* trp_fault_trap, unless actor.fault-trap is set */
} trp_node_options;
#define TRP_NODE_OPTIONS_INIT                                                                      \
    {                                                                                              \
        sizeof(trp_node_options), NULL, NULL, 0, 0, NULL, NULL, 0, 0                               \
    }

/* An error and its place, as one sentence. */
typedef struct trp_node_error {
    char text[768];
} trp_node_error;

/* Read the configuration, start everything, and begin to join the seed nodes if there are any.
 * Returns before the node is a member.
 *
 * Ownership: gives *ret_node (trp_node_close); borrows options. ret_error may be NULL; it is filled
 *            on failure.
 * Errors:    TRP_ECONFIG     configuration or plugin
 *            TRP_EADDRINUSE  remote.port is taken
 *            TRP_EEXIST      a node of this name and port runs already (its control socket answers)
 *            TRP_EPERM       the control socket cannot be made there
 *            TRP_EIO, TRP_ENOMEM, TRP_EINVAL
 * Thread:    any; may block until the plugins are loaded; never from a behaviour.
 * Source:    CONF-2.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_node_open(const trp_node_options *options, trp_node **ret_node,
                                             trp_node_error *ret_error);

/* Borrow the system until the node is closed. Errors: none. Thread: any; lock-free.  Since: 0.1 */
TRP_API trp_system *trp_node_system(trp_node *node);
/* Borrow the advertised address ("troupe.tcp://demo@127.0.0.1:2552") until the node is closed.
 * Errors: none. Thread: any; lock-free.  Since: 0.1 */
TRP_API const char *trp_node_address(const trp_node *node);
/* Borrow the path of the control socket, NULL without one. Errors: none.
 * Thread: any; lock-free.  Since: 0.1 */
TRP_API const char *trp_node_control_path(const trp_node *node);

/* Read a value of the configuration as text: any key, "app.greeting" too. NULL: not set. Borrowed
 * until the node is closed. A list has several values: index from 0; NULL behind the last.
 *
 * Errors:    none
 * Thread:    any; lock-free.
 * Source:    CONF-25.  Since: 0.1 */
TRP_API const char *trp_node_config_get(const trp_node *node, const char *key, size_t index);

typedef enum trp_node_end {
    TRP_NODE_LEFT = 1,          /* by trp_node_leave(), `troupe leave`, or it never was a member */
    TRP_NODE_DOWNED = 2,        /* the others took it out */
    TRP_NODE_TERMINATED = 3,    /* the actor system ended by itself */
    TRP_NODE_LEAVE_TIMEOUT = 4, /* it did not leave within cluster.leave-timeout */
    TRP_NODE_INCOMPATIBLE = 5,  /* no cluster lets it in as it is configured; the log has the key */
    TRP_NODE_SHUTDOWN_CUT = 6,  /* a phase with recover = off failed or was late: it has not left */
    TRP_NODE_LEAVE_DOWNED = 7   /* it was told to leave, and was downed before it had */
} trp_node_end;

/* Wait until the membership has ended. timeout_ms 0: no limit.
 *
 * Errors:    TRP_ETIMEDOUT
 * Thread:    any; may block until the membership ends; never from a behaviour.
 * Source:    docs/operating.md.  Since: 0.1 */
TRP_API TRP_MUST_CHECK trp_err trp_node_await(trp_node *node, uint32_t timeout_ms,
                                              trp_node_end *ret_end);
/* A descriptor that is readable once the membership has ended, for programs with an event loop. It
 * belongs to the node. Errors: none. Thread: any; lock-free.  Since: 0.1 */
TRP_API int trp_node_end_fd(const trp_node *node);

/* Begin the coordinated shutdown (troupe/shutdown.h), of which leaving the cluster is a part;
 * trp_node_await() tells the end. Idempotent.
 * Errors: none. Thread: any; never blocks.  Since: 0.1 */
TRP_API void trp_node_leave(trp_node *node);

/* Stop everything (without leaving first) and free; actors have the timeout of the phase
 * actor-system-terminate. If some do not end in it, an error in the log says so, and what they may
 * use stays: node, configuration, plugins, whose fini is not called. NULL is fine. Takes node.
 * Errors: none. Thread: the opener; may block until the actors have stopped.  Since: 0.1 */
TRP_API void trp_node_close(trp_node *node);

/* Spawn the program's actors in trp_node_system(node). Any result but TRP_OK ends the program. */
typedef trp_err (*trp_node_start_fn)(trp_node *node, void *arg);

/* Be a node from the first line of main() to the last: read the options of the command line, which
 * are those of `troupe node` (--seed, --port, --role, --config, --set ...; --help lists them), open
 * the node, call start, and wait. TERM and INT leave the cluster, a second one ends at once; HUP
 * reads log.level and the secrets again. Actors are stopped before this returns. Always with a
 * control socket, so that `troupe members` and `troupe leave` find the node. options: what the
 * program sets itself, stronger than environment and file, weaker than the command line; NULL:
 * nothing.
 *
 *     int
 *     main(int argc, char **argv)
 *     {
 *         return trp_node_run(argc, argv, NULL, start, NULL);
 *     }
 *
 * Ownership: borrows all until it returns.
 * Errors:    none; the result is the exit code: 0 left the cluster, 64 usage, 69 cannot listen or
 *            runs already, 70 internal error or start failed, 75 leaving took too long, 76 downed,
 *            77 the control socket may not be made, 78 configuration or plugin. A second signal
 *            ends the process with 1, this call does not return then.
 * Thread:    the main thread, before any other is made: it blocks TERM, INT, HUP, USR1 and USR2 in
 *            all of them, ignores PIPE, and leaves both so.
 * Source:    docs/operating.md.  Since: 0.1 */
TRP_API int trp_node_run(int argc, char **argv, const trp_node_options *options,
                         trp_node_start_fn start, void *arg);

/* The programs `troupe node` and `troupe config`: options as documented there, argv[0] is the name
 * of the command. They install signal handling, and return the exit code. Errors: none; the exit
 * code says.
 * Thread: the main thread, before any other is made.  Since: 0.1 */
TRP_API int trp_node_main(int argc, char **argv);
TRP_API int trp_config_main(int argc, char **argv);

/* The programs `troupe cert` and `troupe cookie`: certificates of an own authority, shared secrets.
 * argv[0] is the name of the command. They return the exit code. Errors: none; the exit code says.
 * Thread: any; may block until its files are written; never from a behaviour.  Since: 0.1 */
TRP_API int trp_cert_main(int argc, char **argv);
TRP_API int trp_cookie_main(int argc, char **argv);

/* Called once with the answer, a JSON object, which is borrowed until it returns. */
typedef void (*trp_via_answer_fn)(void *arg, const char *answer);

/* Do what `troupe --via` does: send a message to a service of a cluster, ask it, or publish to a
 * topic, from a process that is no node and has no system of its own. The request is a JSON object:
 * "cmd" (send, ask, publish), "path" (the name), "type", "text", "timeoutMs", "via" ("host:port",
 * several with commas), and where wanted "cacert", "cert", "key", "cookieFile". The answer is that
 * of the control socket: "ok", and if not, "exit", "error" and "hint".
 *
 * Ownership: borrows request; arg is passed through.
 * Errors:    TRP_EINVAL  request is no JSON, or answer is NULL
 *            TRP_ENOMEM  out of memory
 *            all others come in the answer
 * Thread:    any; may block until there is an answer; never from a behaviour.
 * Source:    CONTRIB-24.  Since: 0.2 */
TRP_API TRP_MUST_CHECK trp_err trp_via_call(const char *request, trp_via_answer_fn answer,
                                            void *arg);

/* The program `troupe journal`: tables, ids, events, backup and check of the journal that a node of
 * this configuration uses. argv[0] is the name of the command. Returns the exit code. Errors: none;
 * the exit code says.
 * Thread: any; may block until the journal answers; never from a behaviour.  Since: 0.2 */
TRP_API int trp_journal_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_NODE_H */

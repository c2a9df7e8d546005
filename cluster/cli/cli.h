/* cli.h - declarations that the files of the `troupe` program share: command line, output, request.
 *
 * The program is a thin client: it links libc, cJSON and a few files of base. `node`, `sim` and
 * `config` load libtroupe at run time (library.c), so that all other commands start in a
 * millisecond.
 */
#ifndef TRPI_CLI_CLI_H
#define TRPI_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/json.h"
#include "cluster/node/ctl_proto.h"

#define TRPI_CLI_REPEAT_MAX 16u /* values of one repeated flag (--role, --type) */
#define TRPI_CLI_ARGS_MAX 64u   /* words that are no flags */
#define TRPI_CLI_COUNT_MAX 1000000u

/* Every flag of every command, once: id, name, short letter or 0, value name or NULL, sentence. */
#define TRPI_CLI_FLAGS(F)                                                                          \
    F(SYSTEM, "system", 's', "NAME", "pick the local node by its actor-system name")               \
    F(SOCKET, "socket", 0, "PATH", "control socket of the node")                                   \
    F(OUTPUT, "output", 'o', "FMT", "table, wide, json, jsonl, name or prom")                      \
    F(WATCH, "watch", 'w', "[=SECS]", "repeat; redraws on a terminal, appends otherwise")          \
    F(TIMEOUT, "timeout", 't', "DUR", "how long to wait: 500ms, 5s, 2m")                           \
    F(DRY_RUN, "dry-run", 0, NULL, "say what would change, change nothing")                        \
    F(YES, "yes", 'y', NULL, "ask no confirmation")                                                \
    F(NO_WAIT, "no-wait", 0, NULL, "return as soon as it is ordered")                              \
    F(QUIET, "quiet", 'q', NULL, "print data and errors only")                                     \
    F(VERBOSE, "verbose", 'v', NULL, "say more on stderr")                                         \
    F(COLOR, "color", 0, "WHEN", "auto, always or never (NO_COLOR is honoured)")                   \
    F(HELP, "help", 'h', NULL, "describe the command")                                             \
    F(VERSION, "version", 0, NULL, "print the version")                                            \
    F(ROLE, "role", 0, "ROLE", "only members with this role; for wait ROLE=N")                     \
    F(STATUS, "status", 0, "STATUS", "only members in this status")                                \
    F(UNREACHABLE, "unreachable", 0, NULL, "only, or all, unreachable members")                    \
    F(DEAD, "dead", 0, NULL, "the members are certainly stopped: mark them Down on any side")      \
    F(TYPE, "type", 0, "NAME", "event type, or message type of the payload")                       \
    F(COUNT, "count", 'c', "N", "stop after N")                                                    \
    F(INTERVAL, "interval", 0, "DUR", "time between two requests (default 200ms)")                 \
    F(ON, "on", 0, "MEMBER", "PATH is an actor of this member")                                    \
    F(DEPTH, "depth", 0, "N", "how many levels (default 16)")                                      \
    F(UP, "up", 0, NULL, "wait until this node is Up")                                             \
    F(MEMBERS, "members", 0, "N", "wait until N members are Up")                                   \
    F(GONE, "gone", 0, "MEMBER", "wait until that member is gone")                                 \
    F(CONVERGED, "converged", 0, NULL, "wait until all members have seen the same view")           \
    F(SNAPSHOT, "snapshot", 0, NULL, "begin with one event for each current member")               \
    F(REBALANCE, "rebalance", 0, NULL, "let the coordinator look now which shards should move")    \
    F(FOLLOW, "follow", 'f', NULL, "go on with what comes next")                                   \
    F(LEVEL, "level", 0, "LEVEL",                                                                  \
      "only lines of this level or above: error, warning, info, debug")                            \
    F(COMPONENT, "component", 0, "NAME",                                                           \
      "only lines of this room or actor, and of those below it")                                   \
    F(VIA, "via", 0, "HOST:PORT", "through a receptionist, from a host without a node")            \
    F(ENDPOINT, "endpoint", 0, "URL", "through the management API of a node: https://HOST:8558")   \
    F(TOKEN_FILE, "token-file", 0, "FILE", "for --endpoint: file with a bearer token, mode 0600")  \
    F(CACERT, "cacert", 0, "FILE", "for --endpoint and --via: authority of the certificates")      \
    F(CERT, "cert", 0, "FILE", "for --endpoint and --via: own certificate")                        \
    F(KEY, "key", 0, "FILE", "for --endpoint and --via: its key")                                  \
    F(COOKIE_FILE, "cookie-file", 0, "FILE", "for --via: file with the cluster's cookie")          \
    F(ALL_MEMBERS, "all-members", 0, NULL, "the answers of all members, not of one node alone")    \
    F(FIX_HINTS, "fix-hints", 0, NULL, "say what to do about each finding")                        \
    F(OUT_FILE, "out-file", 'O', "FILE", "write to FILE")                                          \
    F(LANG, "lang", 0, "LANG", "c or c++ (default c)")                                             \
    F(PATH, "path", 0, "PATH", "the actors, with * and ? as wildcards")                            \
    F(SAMPLE, "sample", 0, "1/N", "one message in N (default 1/1)")                                \
    F(FORMAT, "format", 0, "FORMAT", "tree, dot, chrome or otlp; of graph dot, mermaid or json")   \
    F(PLUGIN, "plugin", 0, "FILE[:SYMBOL]", "the file in plugins-dir that has the behaviour")      \
    F(ARGS, "args", 0, "JSON", "the first message of the actor")

typedef enum trpi_cli_flag {
#define TRPI_CLI_FLAG_ENUM(id, name, letter, value, text) TRPI_CLI_##id,
    TRPI_CLI_FLAGS(TRPI_CLI_FLAG_ENUM)
#undef TRPI_CLI_FLAG_ENUM
        TRPI_CLI_FLAG_COUNT
} trpi_cli_flag;
#define TRPI_CLI_BIT(flag) (UINT64_C(1) << TRPI_CLI_##flag)
_Static_assert(TRPI_CLI_FLAG_COUNT <= 64, "flags of a command are a mask of 64 bits");
/* Accepted by every command; WATCH, DRY_RUN and NO_WAIT only where they have a meaning: --dry-run
 * must never be ignored. */
#define TRPI_CLI_EVERYWHERE                                                                        \
    (TRPI_CLI_BIT(SYSTEM) | TRPI_CLI_BIT(SOCKET) | TRPI_CLI_BIT(TIMEOUT) | TRPI_CLI_BIT(YES) |     \
     TRPI_CLI_BIT(QUIET) | TRPI_CLI_BIT(VERBOSE) | TRPI_CLI_BIT(COLOR) | TRPI_CLI_BIT(HELP) |      \
     TRPI_CLI_BIT(VERSION))

typedef struct trpi_cli_flag_info {
    const char *name;
    char letter;
    const char *value; /* NULL: none; "[=...": optional */
    const char *text;
} trpi_cli_flag_info;
extern const trpi_cli_flag_info trpi_cli_flags[TRPI_CLI_FLAG_COUNT];

typedef enum trpi_cli_output {
    TRPI_CLI_TABLE,
    TRPI_CLI_WIDE,
    TRPI_CLI_JSON,
    TRPI_CLI_JSONL,
    TRPI_CLI_NAME,
    TRPI_CLI_PROM, /* the text format of Prometheus */
    TRPI_CLI_OUTPUT_COUNT
} trpi_cli_output;
extern const char *const trpi_cli_output_names[TRPI_CLI_OUTPUT_COUNT];
#define TRPI_CLI_OUT(format) (1u << TRPI_CLI_##format)

typedef struct trpi_cli trpi_cli;

typedef enum trpi_cli_group {
    TRPI_CLI_RUN,
    TRPI_CLI_CLUSTER,
    TRPI_CLI_ACTORS,
    TRPI_CLI_OBSERVE,
    TRPI_CLI_OPERATE
} trpi_cli_group;

typedef struct trpi_cli_command {
    const char *name;
    trpi_cli_group group;
    const char *usage;   /* the arguments, for the usage line */
    const char *summary; /* one line for the list */
    const char *text;    /* the rest of --help, or NULL */
    uint64_t flags;      /* mask, without TRPI_CLI_EVERYWHERE */
    unsigned outputs;    /* mask of TRPI_CLI_OUT; 0: -o is refused */
    unsigned args_min, args_max;
    uint32_t timeout_ms; /* default */
    char completes;      /* 'm' members, 'p' paths or members, 'c' commands, 'u' plugins */
    bool passes_through; /* all words behind the name are passed to run unchanged */
    bool of_all_behind;  /* except the flags of every command, which may be there, too */
    bool takes_node;     /* and so are --system and --socket before it: a node has them itself */
    int (*run)(trpi_cli *cli);
} trpi_cli_command;
extern const trpi_cli_command trpi_cli_commands[];
extern const size_t trpi_cli_commands_count;
/* options.c */
const trpi_cli_command *trpi_cli_command_find(const char *name);

struct trpi_cli {
    const char *program; /* argv[0] */
    const trpi_cli_command *command;
    int command_second; /* the place of its second word; 0: its name is one word */
    struct {
        unsigned count;
        const char *values[TRPI_CLI_REPEAT_MAX];
    } flags[TRPI_CLI_FLAG_COUNT];
    uint64_t from_env; /* mask of the flags that the environment gave */
    unsigned args_count;
    char *args[TRPI_CLI_ARGS_MAX + 1]; /* NULL-terminated */
    char **rest;                       /* passes_through: the words behind the name */
    int rest_count;

    trpi_cli_output output;
    uint32_t timeout_ms;
    uint32_t watch_ms; /* 0: once */
    bool quiet, verbose, color;

    int fd;                         /* -1: not connected */
    char path[TRPI_CTL_PATH_BYTES]; /* "" before the first connection */
    /* NULL, or the request is an order: the text of what goes on once the node has confirmed it */
    const char *order;
    trpi_buffer in;
    /* A stream, whose end is no error: when its first object must have come; 0: it has, or the
     * request is no stream. first_is_note: a late one is noted, and the stream goes on. */
    uint64_t first_due_ms;
    uint32_t first_ms; /* so long after it was asked */
    bool first_is_note;
    bool holds_late; /* the text of a missing answer goes to late, for the caller to print */
    char late[512];
};
/* Time after timeout_ms for the answer of a node that has used all of timeout_ms. */
#define TRPI_CLI_GRACE_MS 400u

/* options.c. Fill cli from argv and the environment. 0, or the exit code with the reason printed.
 * */
int trpi_cli_parse(trpi_cli *cli, int argc, char **argv);
static inline bool
trpi_cli_has(const trpi_cli *cli, trpi_cli_flag flag)
{
    return cli->flags[flag].count > 0;
}
static inline const char *
trpi_cli_text(const trpi_cli *cli, trpi_cli_flag flag)
{
    return cli->flags[flag].count > 0 ? cli->flags[flag].values[cli->flags[flag].count - 1] : NULL;
}
/* A number flag in [low, high], or fallback. False with the reason printed: exit 64. */
bool trpi_cli_number(const trpi_cli *cli, trpi_cli_flag flag, uint32_t low, uint32_t high,
                     uint32_t fallback, uint32_t *ret_number);
/* "500ms", "5s", "1.5s", "2m", "1h" in 1 ms .. 1 day. */
bool trpi_cli_duration_parse(const char *text, uint32_t *ret_ms);

/* suggest.c. Return the one of `names` (count of them) that is nearest to word, or NULL. */
const char *trpi_cli_suggest(const char *word, const char *const *names, size_t names_count);
int trpi_cli_fail_command(const char *word);  /* no such command: 64 */
int trpi_cli_address_check(const char *text); /* 0, or 64: no PROTOCOL://SYSTEM@HOST:PORT */

/* client.c. Connect, to the same node as before; 0, or the exit code, with the attempts printed.
 * 75: it does not accept. */
int trpi_cli_connect(trpi_cli *cli);
/* Return the control socket that was named; NULL: the node is to be looked for. */
const char *trpi_cli_socket_of(const trpi_cli *cli);
/* Close before a pause, since the node closes an idle connection. The next call connects again. */
void trpi_cli_disconnect(trpi_cli *cli);
/* {"v":1,"cmd":cmd,"timeoutMs":...}; NULL: out of memory. */
cJSON *trpi_cli_request_new(const trpi_cli *cli, const char *cmd);
/* Called for each object before the final one; false ends the stream (exit 0, no final object). */
typedef bool (*trpi_cli_stream_fn)(trpi_cli *cli, const cJSON *object, void *arg);
/* Send request (taken; NULL is out of memory) and wait for the final object; connects when needed.
 * Gives *ret_final (cJSON_Delete), NULL when the stream function ended it. stream NULL: progress
 * goes to stderr on a terminal. Returns 0, or the exit code with error and hint printed. */
int trpi_cli_call(trpi_cli *cli, cJSON *request, trpi_cli_stream_fn stream, void *arg,
                  cJSON **ret_final);
/* print-W1: blank the control characters in the texts of what a node has sent. NULL is fine. */
void trpi_cli_object_clean(const trpi_cli *cli, cJSON *object);
/* As trpi_cli_call, but an error of the node comes back in *ret_final instead of being printed. */
int trpi_cli_call_quiet(trpi_cli *cli, cJSON *request, cJSON **ret_final);

/* print.c */
/* "troupe: text\n" on stderr; returns code. */
int trpi_cli_fail(int code, const char *format, ...) TRP_PRINTF(2, 3);
void trpi_cli_note(const trpi_cli *cli, const char *format, ...)
    TRP_PRINTF(2, 3); /* stderr, not with -q */
/* Pretty JSON, or one line for jsonl and --watch; "ok" is left out. Flushes. */
void trpi_cli_print_json(const trpi_cli *cli, const cJSON *json);
/* Print the reasons in a reply of why or status, each with its advice below. */
void trpi_cli_print_reasons(const cJSON *reply);
void trpi_cli_print_drained(const cJSON *reply); /* a line for each drained member */
void trpi_cli_flush(void); /* a write error ends the program: 0 for a closed pipe, else 70 */
char *trpi_cli_age(double ms, char buffer[24]);         /* "3m12s", "4s", "120ms" */
char *trpi_cli_grouped(double number, char buffer[32]); /* "1,204" */
/* The uid at key as the log writes it, 16 hexadecimal digits; "-" when there is none. */
char *trpi_cli_uid(const cJSON *object, const char *key, char buffer[24]);
/* Text of a string member, or "-" . */
const char *trpi_cli_get(const cJSON *object, const char *key);
double trpi_cli_get_number(const cJSON *object, const char *key, double fallback);
bool trpi_cli_get_true(const cJSON *object, const char *key);
/* "demo@h:1" of "troupe.tcp://demo@h:1" (borrows). */
const char *trpi_cli_short(const char *address);
uint64_t trpi_cli_now_ms(void); /* monotonic */
void trpi_cli_sleep_ms(uint32_t ms);
/* Begin one output of --watch: clears the screen of a terminal. */
void trpi_cli_watch_begin(const trpi_cli *cli);
/* cmd_all.c. Ask all members for `cmd`, and print the answer of each with print, which returns an
 * exit code for what it could not do. Returns 1: one says no; 75: none does, some are silent. */
int trpi_cli_all_once(trpi_cli *cli, const char *cmd,
                      int (*print)(trpi_cli *cli, const cJSON *answer));
/* Run `once` (0: go on) each cli->watch_ms, or one time. */
int trpi_cli_repeat(trpi_cli *cli, int (*once)(trpi_cli *cli));

/* table.c: columns as wide as their widest cell. Cells are copied. */
#define TRPI_CLI_COLUMNS_MAX 14u
typedef struct trpi_cli_table {
    unsigned columns;
    uint32_t rows_count, rows_room;
    char **cells; /* rows x columns, row 0 the header */
} trpi_cli_table;
bool trpi_cli_table_row(trpi_cli_table *table, unsigned columns, const char *const *cells);
void trpi_cli_table_print(const trpi_cli_table *table, const char *indent);
void trpi_cli_table_fini(trpi_cli_table *table);

/* library.c. Find a function of libtroupe; NULL, with the reason printed: exit 69. */
void *trpi_cli_library_function(const char *name);
/* Call `int name(int, char **)` of libtroupe; 69 when it cannot be loaded. */
int trpi_cli_library_call(const char *name, int argc, char **argv);

/* via.c. Do the request (taken) through a receptionist, as trpi_cli_call does it through a node. */
int trpi_cli_via_run(trpi_cli *cli, cJSON *request, cJSON **ret_final);

/* endpoint.c. Is the node to be asked through its management API? */
bool trpi_cli_is_remote(const trpi_cli *cli);
/* Do the request (taken) so, as trpi_cli_via_run. */
int trpi_cli_endpoint_run(trpi_cli *cli, cJSON *request, cJSON **ret_final);
/* endpoint_events.c. As that, for `events`: objects of the stream go to stream. */
int trpi_cli_endpoint_events(trpi_cli *cli, cJSON *request, trpi_cli_stream_fn stream, void *arg,
                             cJSON **ret_final);
/* client.c. From here on the node may have the order: Ctrl-C says so. */
void trpi_cli_order_watch(const trpi_cli *cli);

/* help.c, completion.c */
void trpi_cli_help_all(FILE *stream);
/* List the formats of -o: "table, json, jsonl". */
char *trpi_cli_outputs(const trpi_cli_command *command, char text[64]);
void trpi_cli_help_command(const trpi_cli_command *command, FILE *stream);
extern const char *const trpi_cli_event_types[];
extern const size_t trpi_cli_event_types_count;

/* cmd_actors.c: give the path that word means, with the address of --on before it (trpi_free).
 * Returns 0, or the exit code. */
int trpi_cli_path_resolve(trpi_cli *cli, const char *word, char **ret_path);

/* One function a command; each returns the exit code. */
int trpi_cli_run_node(trpi_cli *cli);
int trpi_cli_run_dev(trpi_cli *cli);
int trpi_cli_run_demo(trpi_cli *cli);
int trpi_cli_run_sim(trpi_cli *cli);
int trpi_cli_run_config(trpi_cli *cli);
int trpi_cli_run_config_reload(trpi_cli *cli);
int trpi_cli_run_multinode(trpi_cli *cli);
int trpi_cli_run_new(trpi_cli *cli);
int trpi_cli_run_pack(trpi_cli *cli);
int trpi_cli_run_cert(trpi_cli *cli);
int trpi_cli_run_cookie(trpi_cli *cli);
int trpi_cli_run_fsm(trpi_cli *cli);
int trpi_cli_run_journal(trpi_cli *cli);
int trpi_cli_run_status(trpi_cli *cli);
int trpi_cli_run_why(trpi_cli *cli);
int trpi_cli_run_reach(trpi_cli *cli);
int trpi_cli_run_cluster_status(trpi_cli *cli);
int trpi_cli_run_members(trpi_cli *cli);
int trpi_cli_run_member_status(trpi_cli *cli);
int trpi_cli_run_unreachable(trpi_cli *cli);
int trpi_cli_run_peers(trpi_cli *cli);
int trpi_cli_run_singleton(trpi_cli *cli);
int trpi_cli_run_top(trpi_cli *cli);
int trpi_cli_run_topics(trpi_cli *cli);
int trpi_cli_run_publish(trpi_cli *cli);
int trpi_cli_run_shards(trpi_cli *cli);
int trpi_cli_run_entity(trpi_cli *cli);
int trpi_cli_run_deadletters(trpi_cli *cli);
int trpi_cli_run_trace(trpi_cli *cli);
int trpi_cli_run_logs(trpi_cli *cli);
int trpi_cli_run_dashboard(trpi_cli *cli);
int trpi_cli_run_doctor(trpi_cli *cli);
int trpi_cli_run_report(trpi_cli *cli);
/* cmd_doctor.c: add the stacks of the threads that are named as stuck, or why there are none. */
void trpi_cli_doctor_stacks(const trpi_cli *cli, cJSON *reply);
int trpi_cli_run_check(trpi_cli *cli);
int trpi_cli_run_member(trpi_cli *cli);
int trpi_cli_run_stop(trpi_cli *cli);
int trpi_cli_run_actor(trpi_cli *cli);
int trpi_cli_run_fault(trpi_cli *cli);
int trpi_cli_run_leader(trpi_cli *cli);
int trpi_cli_run_is_singleton(trpi_cli *cli);
int trpi_cli_run_is_available(trpi_cli *cli);
int trpi_cli_run_join(trpi_cli *cli);
int trpi_cli_run_leave(trpi_cli *cli);
int trpi_cli_run_down(trpi_cli *cli);
int trpi_cli_run_drain(trpi_cli *cli);
int trpi_cli_run_undrain(trpi_cli *cli);
int trpi_cli_run_bridge(trpi_cli *cli);
int trpi_cli_run_upgrade(trpi_cli *cli);
int trpi_cli_run_spawn(trpi_cli *cli);
int trpi_cli_run_watch(trpi_cli *cli);
int trpi_cli_run_shutdown(trpi_cli *cli);
int trpi_cli_run_events(trpi_cli *cli);
int trpi_cli_run_wait(trpi_cli *cli);
int trpi_cli_run_send(trpi_cli *cli);
int trpi_cli_run_ask(trpi_cli *cli);
int trpi_cli_run_ping(trpi_cli *cli);
int trpi_cli_run_tree(trpi_cli *cli);
int trpi_cli_run_graph(trpi_cli *cli);
int trpi_cli_run_metrics(trpi_cli *cli);
int trpi_cli_run_version(trpi_cli *cli);
int trpi_cli_run_completion(trpi_cli *cli);
int trpi_cli_run_complete(trpi_cli *cli);
int trpi_cli_run_help(trpi_cli *cli);

#endif

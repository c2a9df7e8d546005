/* commands.c - every command of `troupe`, once: its words, flags, limits and function.
 *
 * Why.     Parsing, help and completion read this table, so that they cannot disagree.
 * Tests.   tests/unit/cli/options_test.c, tests/system/cli.sh
 */
#include <string.h>

#include "cluster/cli/cli.h"

#define ANY                                                                                        \
    (TRPI_CLI_OUT(TABLE) | TRPI_CLI_OUT(WIDE) | TRPI_CLI_OUT(JSON) | TRPI_CLI_OUT(JSONL) |         \
     TRPI_CLI_OUT(NAME))
#define ANSWER (TRPI_CLI_OUT(TABLE) | TRPI_CLI_OUT(JSON) | TRPI_CLI_OUT(JSONL))
#define SHORT TRPI_CTL_TIMEOUT_MS_DEFAULT
#define LONG TRPI_CTL_TIMEOUT_MS_LONG
#define BIT TRPI_CLI_BIT

#define MEMBER_TEXT                                                                                \
    "MEMBER is an address (troupe.tcp://demo@10.0.0.2:2552), demo@10.0.0.2:2552, 10.0.0.2:2552, "  \
    "or a uid.\n"

const trpi_cli_command trpi_cli_commands[] = {
    { .name = "node",
      .group = TRPI_CLI_RUN,
      .usage = "[OPTION]...",
      .summary = "start a node in the foreground (trouped)",
      .args_max = TRPI_CLI_ARGS_MAX,
      .passes_through = true,
      .of_all_behind = true,
      .takes_node = true,
      .run = trpi_cli_run_node },
    { .name = "dev",
      .group = TRPI_CLI_RUN,
      .usage = "[N] [OPTION]...",
      .summary = "throw-away local cluster of N nodes; Ctrl-C makes them leave",
      .text = "Starts N nodes (default 3, at most 64) on 127.0.0.1, free ports from 2552 on, and "
              "ends them together. Each line that a node prints begins with its address: "
              "127.0.0.1:2552 | ...\n"
              "All other options go to each node: troupe dev 3 --load ./echo.so --set "
              "log.level=debug\n",
      .args_max = TRPI_CLI_ARGS_MAX,
      .passes_through = true,
      .of_all_behind = true,
      .run = trpi_cli_run_dev },
    { .name = "sim",
      .group = TRPI_CLI_RUN,
      .usage = "[--nodes N] [--seed S] [OPTION]...",
      .summary = "a whole cluster in virtual time under one seed",
      .args_max = TRPI_CLI_ARGS_MAX,
      .passes_through = true,
      .of_all_behind = true,
      .run = trpi_cli_run_sim },
    { .name = "multinode",
      .group = TRPI_CLI_RUN,
      .usage = "[OPTION]... PROGRAM... [-- ARGUMENT...]",
      .summary = "run a test over several nodes: a process for each of its roles",
      .args_max = TRPI_CLI_ARGS_MAX,
      .passes_through = true,
      .run = trpi_cli_run_multinode },
    { .name = "config",
      .group = TRPI_CLI_RUN,
      .usage = "show|check [OPTION]...",
      .summary = "show the configuration and where it comes from, or check a file",
      .outputs = TRPI_CLI_OUT(TABLE) | TRPI_CLI_OUT(JSON),
      .args_max = TRPI_CLI_ARGS_MAX,
      .passes_through = true,
      .of_all_behind = true,
      .takes_node = true,
      .run = trpi_cli_run_config },

    { .name = "status",
      .group = TRPI_CLI_CLUSTER,
      .usage = "",
      .summary = "one screen: is the cluster healthy (exit 0) or not (exit 1)",
      .text = "Prints below it, as `why` does, each cause that keeps the members from agreeing, "
              "and what would\nhelp.\n",
      .flags = BIT(WATCH),
      .outputs = ANSWER | TRPI_CLI_OUT(NAME) | TRPI_CLI_OUT(PROM),
      .timeout_ms = SHORT,
      .run = trpi_cli_run_status },
    { .name = "members",
      .group = TRPI_CLI_CLUSTER,
      .usage = "[--role R] [--status S] [--unreachable]",
      .summary = "the members as this node sees them",
      .text = "REACH is the verdict of the failure detectors; * marks the node that answered; `-o "
              "name` prints one address a line.\n",
      .flags = BIT(WATCH) | BIT(ROLE) | BIT(STATUS) | BIT(UNREACHABLE),
      .outputs = ANY,
      .timeout_ms = SHORT,
      .run = trpi_cli_run_members },
    { .name = "member-status",
      .group = TRPI_CLI_CLUSTER,
      .usage = "[MEMBER]",
      .summary = "the status of one member (default: this node) as one word",
      .text = MEMBER_TEXT,
      .flags = BIT(WATCH),
      .outputs = ANSWER | TRPI_CLI_OUT(NAME),
      .args_max = 1,
      .timeout_ms = SHORT,
      .completes = 'm',
      .run = trpi_cli_run_member_status },
    { .name = "join",
      .group = TRPI_CLI_CLUSTER,
      .usage = "ADDRESS... [--no-wait]",
      .summary = "make this node join the cluster of one of these nodes, and wait until it is Up",
      .flags = BIT(NO_WAIT) | BIT(DRY_RUN),
      .outputs = ANSWER,
      .args_min = 1,
      .args_max = 16,
      .timeout_ms = LONG,
      .completes = 'm',
      .run = trpi_cli_run_join },
    { .name = "leave",
      .group = TRPI_CLI_CLUSTER,
      .usage = "[MEMBER] [--no-wait]",
      .summary = "take a member (default: this node) out of the cluster in good order",
      .text = MEMBER_TEXT
      "Waits until the member is gone. Exit 75: the member is still leaving, has given up, or was "
      "downed\nmeanwhile; the text says which, and which members it waits for. Prints whether the "
      "next single\ncrash after the leave would stop the remaining members; --dry-run prints only "
      "that.\n",
      .flags = BIT(NO_WAIT) | BIT(DRY_RUN),
      .outputs = ANSWER,
      .args_max = 1,
      .timeout_ms = LONG,
      .completes = 'm',
      .run = trpi_cli_run_leave },
    { .name = "down",
      .group = TRPI_CLI_CLUSTER,
      .usage = "MEMBER|--unreachable [--yes] [--dead] [--dry-run] [--no-wait]",
      .summary = "declare a member dead, so that the others go on without it",
      .text = MEMBER_TEXT
      "Refused on a side that would not survive by the downing strategy (troupe why names the side "
      "that does):\nmembers that are still alive would go on as a second cluster. --dead confirms "
      "that they are stopped.\nAsks for confirmation; --yes is needed where stdin is not a "
      "terminal. Only the members that were\nconfirmed are marked Down: a node that restarted or "
      "became unreachable meanwhile is left alone.\n",
      .flags = BIT(NO_WAIT) | BIT(DRY_RUN) | BIT(UNREACHABLE) | BIT(DEAD),
      .outputs = ANSWER,
      .args_max = 1,
      .timeout_ms = LONG,
      .completes = 'm',
      .run = trpi_cli_run_down },
    { .name = "shutdown",
      .group = TRPI_CLI_CLUSTER,
      .usage = "[--yes] [--dry-run] [--no-wait]",
      .summary = "end all nodes of the cluster in good order; this one is the last",
      .text = "All nodes are told first, so that none hands over work to a node that ends as well; "
              "then they leave.\nAsks for confirmation; --yes is needed where stdin is not a "
              "terminal.\n",
      .flags = BIT(NO_WAIT) | BIT(DRY_RUN),
      .outputs = ANSWER,
      .timeout_ms = LONG,
      .run = trpi_cli_run_shutdown },
    { .name = "unreachable",
      .group = TRPI_CLI_CLUSTER,
      .usage = "",
      .summary = "unreachable members, and the members that observe them as unreachable",
      .flags = BIT(WATCH),
      .outputs = ANY,
      .timeout_ms = SHORT,
      .run = trpi_cli_run_unreachable },
    { .name = "why",
      .group = TRPI_CLI_CLUSTER,
      .usage = "",
      .summary = "what keeps the members from agreeing, since when, and what would help",
      .text = "Exit 0 when nothing does, else 1. Names each member that is unreachable (with its "
              "observers), that has\nnot seen the present view, or that waits; -o json also has "
              "the statistics of gossip.\n",
      .flags = BIT(WATCH),
      .outputs = ANSWER | TRPI_CLI_OUT(NAME),
      .timeout_ms = SHORT,
      .run = trpi_cli_run_why },
    { .name = "peers",
      .group = TRPI_CLI_CLUSTER,
      .usage = "",
      .summary = "associations: state, reason, what happens next",
      .text = "Lists every address that this node has connected to, or tried to. IN and OUT count "
              "messages of actors.\n",
      .flags = BIT(WATCH),
      .outputs = ANSWER | TRPI_CLI_OUT(NAME),
      .timeout_ms = SHORT,
      .run = trpi_cli_run_peers },
    { .name = "reach",
      .group = TRPI_CLI_CLUSTER,
      .usage = "",
      .summary = "whether each member can dial each other member (exit 1 when one cannot)",
      .text = "Each member dials each other member at its advertised address, as the first message "
              "would. Prints the\nconnections that fail, and why; with -o wide and -o json all "
              "connections.\n",
      .flags = BIT(WATCH),
      .outputs = ANSWER | TRPI_CLI_OUT(WIDE) | TRPI_CLI_OUT(NAME),
      .timeout_ms = LONG,
      .run = trpi_cli_run_reach },
    { .name = "cluster-status",
      .group = TRPI_CLI_CLUSTER,
      .usage = "",
      .summary = "as status -o json; -o table prints Akka's text",
      .flags = BIT(WATCH),
      .outputs = ANSWER | TRPI_CLI_OUT(NAME),
      .timeout_ms = SHORT,
      .run = trpi_cli_run_cluster_status },
    { .name = "leader",
      .group = TRPI_CLI_CLUSTER,
      .usage = "[--role R]",
      .summary = "the address of the leader (exit 1 when there is none)",
      .flags = BIT(WATCH) | BIT(ROLE),
      .outputs = ANSWER | TRPI_CLI_OUT(NAME),
      .timeout_ms = SHORT,
      .run = trpi_cli_run_leader },
    { .name = "is-singleton",
      .group = TRPI_CLI_CLUSTER,
      .usage = "",
      .summary = "exit 0 when this node is the only member, else 1",
      .outputs = ANSWER,
      .timeout_ms = SHORT,
      .run = trpi_cli_run_is_singleton },
    { .name = "is-available",
      .group = TRPI_CLI_CLUSTER,
      .usage = "[MEMBER]",
      .summary = "exit 0 when the member is reachable and neither Down nor Removed, else 1",
      .text = MEMBER_TEXT,
      .outputs = ANSWER,
      .args_max = 1,
      .timeout_ms = SHORT,
      .completes = 'm',
      .run = trpi_cli_run_is_available },
    { .name = "events",
      .group = TRPI_CLI_CLUSTER,
      .usage = "[--type T]... [--count N] [--snapshot]",
      .summary = "what happens in the cluster, as it happens",
      .text = "Begins with events for the present state (in JSON \"snapshot\": true), so that a "
              "replay of the stream\ngives the state; with --type or --count only if --snapshot is "
              "given. Runs until Ctrl-C, --count events,\nor --timeout (exit 0; 75 when the node "
              "has not answered by then). Several types:\n--type MemberUp,MemberRemoved\n-o name "
              "prints the member of each event, and nothing for an event without a member.\n",
      .flags = BIT(TYPE) | BIT(COUNT) | BIT(SNAPSHOT),
      .outputs = ANSWER | TRPI_CLI_OUT(NAME),
      .run = trpi_cli_run_events },
    { .name = "wait",
      .group = TRPI_CLI_CLUSTER,
      .usage = "[--up] [--members N] [--role R=N]... [--gone MEMBER] [--converged]",
      .summary = "wait until all of these hold (default --up)",
      .text = "Also waits for a node that has not started yet. Exit 1: the condition can no longer "
              "become true; 75: it did\nnot become true in time.\n",
      .flags = BIT(UP) | BIT(MEMBERS) | BIT(ROLE) | BIT(GONE) | BIT(CONVERGED),
      .timeout_ms = LONG,
      .run = trpi_cli_run_wait },

    { .name = "send",
      .group = TRPI_CLI_ACTORS,
      .usage = "PATH [TEXT|-] [--type NAME]",
      .summary = "tell an actor something",
      .text = "PATH is /user/a/b on this node, or a full address with a path behind it; --on "
              "MEMBER adds the address.\n"
              "TEXT that parses as a JSON object, array, number or literal has type json, other "
              "text string;\n"
              "--type NAME encodes JSON for a registered type. - or no TEXT reads stdin.\n",
      .flags = BIT(TYPE) | BIT(ON),
      .outputs = ANSWER,
      .args_min = 1,
      .args_max = 2,
      .timeout_ms = SHORT,
      .completes = 'p',
      .run = trpi_cli_run_send },
    { .name = "ask",
      .group = TRPI_CLI_ACTORS,
      .usage = "PATH [TEXT|-] [--type NAME] [-c N]",
      .summary = "ask an actor and print its reply",
      .text = "Arguments as for send. Exit 1: the actor refused the message; 65: it could not "
              "decode the message;\n68: no actor at PATH; 75: no reply in time.\n",
      .flags = BIT(TYPE) | BIT(ON) | BIT(COUNT),
      .outputs = ANSWER | TRPI_CLI_OUT(NAME),
      .args_min = 1,
      .args_max = 2,
      .timeout_ms = SHORT,
      .completes = 'p',
      .run = trpi_cli_run_ask },
    { .name = "ping",
      .group = TRPI_CLI_ACTORS,
      .usage = "PATH|MEMBER [-c N] [--on MEMBER] [--interval DUR]",
      .summary = "does an actor or member answer, and how fast",
      .flags = BIT(COUNT) | BIT(ON) | BIT(INTERVAL),
      .outputs = ANSWER | TRPI_CLI_OUT(NAME),
      .args_min = 1,
      .args_max = 1,
      .timeout_ms = SHORT,
      .completes = 'p',
      .run = trpi_cli_run_ping },
    { .name = "tree",
      .group = TRPI_CLI_ACTORS,
      .usage = "[PATH|MEMBER] [--depth N] [--on MEMBER]",
      .summary = "the actors below PATH (default /)",
      .flags = BIT(DEPTH) | BIT(ON) | BIT(WATCH),
      .outputs = ANY,
      .args_max = 1,
      .timeout_ms = SHORT,
      .completes = 'p',
      .run = trpi_cli_run_tree },

    { .name = "cert",
      .group = TRPI_CLI_OPERATE,
      .usage = "ca|node|renew|revoke|show [OPTION]...",
      .summary = "make, renew, revoke and show certificates of an own authority",
      .args_max = TRPI_CLI_ARGS_MAX,
      .passes_through = true,
      .of_all_behind = true,
      .run = trpi_cli_run_cert },
    { .name = "cookie",
      .group = TRPI_CLI_OPERATE,
      .usage = "gen|hash",
      .summary = "make a shared secret, or a digest to compare two",
      .args_max = TRPI_CLI_ARGS_MAX,
      .passes_through = true,
      .of_all_behind = true,
      .run = trpi_cli_run_cookie },
    { .name = "fault",
      .group = TRPI_CLI_OPERATE,
      .usage = "[list | set PEER [send|receive|both] RULE... | clear [PEER] | disconnect PEER]",
      .summary = "inject faults into the network of this node, for tests",
      .text = "Only where remote.test-adapters is on. PEER is an address, 10.0.0.2:2552, or all: "
              "the peers without a rule of their own.\nRULE: blackhole, rate=SIZE (a second), "
              "lose=P, repeat=P, reorder=P (0.1 or 10%), delay=DUR, jitter=DUR, pass;\nit replaces "
              "the previous rule of that direction (default: both). disconnect closes the "
              "connections with PEER.\n",
      .outputs = ANSWER,
      .args_max = 16,
      .timeout_ms = SHORT,
      .run = trpi_cli_run_fault },
    { .name = "version",
      .group = TRPI_CLI_OPERATE,
      .usage = "",
      .summary = "the version of this program",
      .outputs = ANSWER,
      .run = trpi_cli_run_version },
    { .name = "completion",
      .group = TRPI_CLI_OPERATE,
      .usage = "bash|zsh|fish",
      .summary = "print the completion script of a shell",
      .args_min = 1,
      .args_max = 1,
      .run = trpi_cli_run_completion },
    { .name = "help",
      .group = TRPI_CLI_OPERATE,
      .usage = "[COMMAND]",
      .summary = "describe the commands",
      .args_max = 1,
      .completes = 'c',
      .run = trpi_cli_run_help },
    { .name = "__complete",
      .group = TRPI_CLI_OPERATE,
      .usage = "WORD...",
      .summary = "words for completion",
      .args_max = TRPI_CLI_ARGS_MAX,
      .timeout_ms = 200,
      .passes_through = true,
      .run = trpi_cli_run_complete },
};
const size_t trpi_cli_commands_count = sizeof(trpi_cli_commands) / sizeof(trpi_cli_commands)[0];

const trpi_cli_command *
trpi_cli_command_find(const char *name)
{
    for (size_t index = 0; index < trpi_cli_commands_count; index++) {
        if (strcmp(trpi_cli_commands[index].name, name) == 0) {
            return &trpi_cli_commands[index];
        }
    }
    return NULL;
}

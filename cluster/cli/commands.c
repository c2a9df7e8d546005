/* commands.c - every command of `troupe`, once: its words, flags, limits and function.
 *
 * Why.     Parsing, help and completion read this table, so that they cannot disagree.
 * Tests.   tests/unit/cli/options_test.c, tests/system/cli.sh
 */
#include "cluster/cli/cli.h"

#define ANY                                                                                        \
    (TRPI_CLI_OUT(TABLE) | TRPI_CLI_OUT(WIDE) | TRPI_CLI_OUT(JSON) | TRPI_CLI_OUT(JSONL) |         \
     TRPI_CLI_OUT(NAME))
#define ANSWER (TRPI_CLI_OUT(TABLE) | TRPI_CLI_OUT(JSON) | TRPI_CLI_OUT(JSONL))
#define SHORT TRPI_CTL_TIMEOUT_MS_DEFAULT
#define LONG TRPI_CTL_TIMEOUT_MS_LONG
#define BIT TRPI_CLI_BIT
#define REMOTE (BIT(ENDPOINT) | BIT(TOKEN_FILE) | BIT(CACERT) | BIT(CERT) | BIT(KEY))
#define VIA (BIT(VIA) | BIT(CACERT) | BIT(CERT) | BIT(KEY) | BIT(COOKIE_FILE))

#define MEMBER_TEXT                                                                                \
    "MEMBER is an address (troupe.tcp://demo@10.0.0.2:2552), demo@10.0.0.2:2552, 10.0.0.2:2552, "  \
    "or a uid.\n"

#define ALL_TEXT                                                                                   \
    "--all-members asks every member through this node. Exit 1: one of them says no; 75: none "    \
    "does, but\nsome have not answered, and they are named.\n"

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
    { .name = "demo",
      .group = TRPI_CLI_RUN,
      .usage = "[NAME] [OPTION]...",
      .summary = "a demonstration of actors, with its page for the browser",
      .args_max = TRPI_CLI_ARGS_MAX,
      .passes_through = true,
      .of_all_behind = true,
      .run = trpi_cli_run_demo },
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
    { .name = "fsm",
      .group = TRPI_CLI_RUN,
      .usage = "dot PLUGIN NAME",
      .summary = "draw a state machine of a shared object",
      .args_max = TRPI_CLI_ARGS_MAX,
      .passes_through = true,
      .of_all_behind = true,
      .run = trpi_cli_run_fsm },
    { .name = "new",
      .group = TRPI_CLI_RUN,
      .usage = "app|actor|plugin NAME [--lang c|c++]",
      .summary = "make a project: a program, an actor or a plugin, with a Makefile and a test",
      .text = "Makes the directory NAME; make check there builds the project and passes its test. "
              "NAME begins with a-z and\ngoes on with a-z, 0-9, _ and -, at most 40 characters. "
              "Prints the files. Exit 64: no such kind, name or\nlanguage; 74: NAME exists or "
              "cannot be written.\n",
      .flags = BIT(LANG) | BIT(DRY_RUN),
      .args_min = 2,
      .args_max = 2,
      .run = trpi_cli_run_new },
    { .name = "pack",
      .group = TRPI_CLI_RUN,
      .usage = "DIR [FILE]",
      .summary = "pack an application for troupe node --apps",
      .text =
          "DIR is named as the application and has NAME.so (troupe/bootable.h), NAME.conf if it "
          "has a configuration, and\nother files. Writes NAME.tar.gz, or FILE: tar xzf "
          "NAME.tar.gz -C APPS installs it into the directory of a node's\napplications. "
          "MANIFEST in it names the application, the version of this "
          "program and the files with their sizes.\nExit 65: DIR is no application; 74: FILE "
          "exists or cannot be written.\n",
      .args_min = 1,
      .args_max = 2,
      .run = trpi_cli_run_pack },
    { .name = "config",
      .group = TRPI_CLI_RUN,
      .usage = "show|check|reload [OPTION]...",
      .summary = "show the configuration and where it comes from, check a file, or reload it",
      .outputs = ANSWER,
      .args_max = TRPI_CLI_ARGS_MAX,
      .passes_through = true,
      .of_all_behind = true,
      .takes_node = true,
      .run = trpi_cli_run_config },

    { .name = "config reload",
      .group = TRPI_CLI_RUN,
      .usage = "",
      .summary = "make the node read its configuration again, and say what has changed",
      .text = "Does what SIGHUP does: log.level, cookies, the files of TLS and of tokens are taken "
              "anew. Prints these,\nand the keys that have changed and need a restart. Exit 78: "
              "refused, the old values stay.\n",
      .outputs = ANSWER,
      .timeout_ms = SHORT,
      .run = trpi_cli_run_config_reload },

    { .name = "status",
      .group = TRPI_CLI_CLUSTER,
      .usage = "[--all-members]",
      .summary = "one screen: is the cluster healthy (exit 0) or not (exit 1)",
      .text = "Prints below it, as `why` does, each cause that keeps the members from agreeing, "
              "and what would\nhelp.\n" ALL_TEXT,
      .flags = BIT(WATCH) | BIT(ALL_MEMBERS) | REMOTE,
      .outputs = ANSWER | TRPI_CLI_OUT(NAME) | TRPI_CLI_OUT(PROM),
      .timeout_ms = SHORT,
      .run = trpi_cli_run_status },
    { .name = "members",
      .group = TRPI_CLI_CLUSTER,
      .usage = "[--role R] [--status S] [--unreachable]",
      .summary = "the members as this node sees them",
      .text = "REACH is the verdict of the failure detectors; * marks the node that answered; `-o "
              "name` prints one address a line.\n",
      .flags = BIT(WATCH) | BIT(ROLE) | BIT(STATUS) | BIT(UNREACHABLE) | REMOTE,
      .outputs = ANY,
      .timeout_ms = SHORT,
      .run = trpi_cli_run_members },
    { .name = "member-status",
      .group = TRPI_CLI_CLUSTER,
      .usage = "[MEMBER]",
      .summary = "the status of one member (default: this node) as one word",
      .text = MEMBER_TEXT,
      .flags = BIT(WATCH) | REMOTE,
      .outputs = ANSWER | TRPI_CLI_OUT(NAME),
      .args_max = 1,
      .timeout_ms = SHORT,
      .completes = 'm',
      .run = trpi_cli_run_member_status },
    { .name = "member",
      .group = TRPI_CLI_CLUSTER,
      .usage = "MEMBER",
      .summary = "everything that this node knows about one member and its association",
      .text = MEMBER_TEXT,
      .flags = REMOTE,
      .outputs = ANSWER,
      .args_min = 1,
      .args_max = 1,
      .timeout_ms = SHORT,
      .completes = 'm',
      .run = trpi_cli_run_member },
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
      .flags = BIT(NO_WAIT) | BIT(DRY_RUN) | REMOTE,
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
      .flags = BIT(NO_WAIT) | BIT(DRY_RUN) | BIT(UNREACHABLE) | BIT(DEAD) | REMOTE,
      .outputs = ANSWER,
      .args_max = 1,
      .timeout_ms = LONG,
      .completes = 'm',
      .run = trpi_cli_run_down },
    { .name = "drain",
      .group = TRPI_CLI_CLUSTER,
      .usage = "[MEMBER] [--no-wait]",
      .summary = "hand the shards of a member (default: this node) over, and give it no new ones",
      .text = MEMBER_TEXT
      "The member stays in the cluster: it is given no shard and no routee, and is not ready, "
      "until "
      "undrain or\nits restart. Waits until its shards have moved. Exit 1: shards stay, since no "
      "other node can take them, or\nmembers of an earlier version do not know drain (nothing was "
      "changed); exit 75: they are still moving.\nSingletons stay, and are named: the oldest "
      "member "
      "has them, and leave moves them.\n",
      .flags = BIT(NO_WAIT),
      .outputs = ANSWER,
      .args_max = 1,
      .timeout_ms = LONG,
      .completes = 'm',
      .run = trpi_cli_run_drain },
    { .name = "undrain",
      .group = TRPI_CLI_CLUSTER,
      .usage = "[MEMBER]",
      .summary = "let a member (default: this node) be given shards and routees again",
      .text = MEMBER_TEXT
      "Shards come back as the rebalancing of their type moves them (troupe shards TYPE "
      "--rebalance).\n",
      .outputs = ANSWER,
      .args_max = 1,
      .timeout_ms = LONG,
      .completes = 'm',
      .run = trpi_cli_run_undrain },
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
      .flags = BIT(WATCH) | REMOTE,
      .outputs = ANY,
      .timeout_ms = SHORT,
      .run = trpi_cli_run_unreachable },
    { .name = "why",
      .group = TRPI_CLI_CLUSTER,
      .usage = "[--all-members]",
      .summary = "what keeps the members from agreeing, since when, and what would help",
      .text = "Exit 0 when nothing does, else 1. Names each member that is unreachable (with its "
              "observers), that has\nnot seen the present view, or that waits; -o json also has "
              "the statistics of gossip.\n" ALL_TEXT,
      .flags = BIT(WATCH) | BIT(ALL_MEMBERS) | REMOTE,
      .outputs = ANSWER | TRPI_CLI_OUT(NAME),
      .timeout_ms = SHORT,
      .run = trpi_cli_run_why },
    { .name = "peers",
      .group = TRPI_CLI_CLUSTER,
      .usage = "[--all-members]",
      .summary = "associations: state, reason, what happens next",
      .text = "Lists every address that this node has connected to, or tried to. IN and OUT count "
              "messages of actors.\n" ALL_TEXT,
      .flags = BIT(WATCH) | BIT(ALL_MEMBERS) | REMOTE,
      .outputs = ANSWER | TRPI_CLI_OUT(NAME),
      .timeout_ms = SHORT,
      .run = trpi_cli_run_peers },
    { .name = "singleton",
      .group = TRPI_CLI_CLUSTER,
      .usage = "[NAME]",
      .summary = "where each singleton runs, since when, and what a hand-over waits for",
      .text = "Answered by one node, for the singletons and proxies that were started on it.\nExit "
              "68: NAME is none of them.\n",
      .flags = BIT(WATCH) | REMOTE,
      .outputs = ANSWER | TRPI_CLI_OUT(NAME),
      .args_max = 1,
      .timeout_ms = SHORT,
      .run = trpi_cli_run_singleton },
    { .name = "topics",
      .group = TRPI_CLI_CLUSTER,
      .usage = "[TOPIC]",
      .summary = "topics that have subscribers, their groups, and on how many nodes",
      .text = "Answered by one node, with what its default mediator knows of all nodes.\n",
      .flags = BIT(WATCH) | REMOTE,
      .outputs = ANSWER | TRPI_CLI_OUT(NAME),
      .args_max = 1,
      .timeout_ms = SHORT,
      .run = trpi_cli_run_topics },
    { .name = "shards",
      .group = TRPI_CLI_CLUSTER,
      .usage = "[TYPE] [--rebalance]",
      .summary = "where the shards of each type of entities live, and what they wait for",
      .text = "The member that coordinates a type has its table; it is asked through this node.\n"
              "Exit 68: TYPE is not started on this node.\n",
      .flags = BIT(WATCH) | BIT(REBALANCE) | REMOTE,
      .outputs = ANSWER | TRPI_CLI_OUT(NAME),
      .args_max = 1,
      .timeout_ms = SHORT,
      .run = trpi_cli_run_shards },
    { .name = "entity",
      .group = TRPI_CLI_CLUSTER,
      .usage = "TYPE ID",
      .summary = "where an entity lives, as this node knows it",
      .text = "Tells its shard and the node of that; there also whether it has started.\nExit 68: "
              "TYPE is not started on this node.\n",
      .outputs = ANSWER,
      .args_min = 2,
      .args_max = 2,
      .timeout_ms = SHORT,
      .run = trpi_cli_run_entity },
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
      .flags = BIT(WATCH) | REMOTE,
      .outputs = ANSWER | TRPI_CLI_OUT(NAME),
      .timeout_ms = SHORT,
      .run = trpi_cli_run_cluster_status },
    { .name = "leader",
      .group = TRPI_CLI_CLUSTER,
      .usage = "[--role R]",
      .summary = "the address of the leader (exit 1 when there is none)",
      .flags = BIT(WATCH) | BIT(ROLE) | REMOTE,
      .outputs = ANSWER | TRPI_CLI_OUT(NAME),
      .timeout_ms = SHORT,
      .run = trpi_cli_run_leader },
    { .name = "is-singleton",
      .group = TRPI_CLI_CLUSTER,
      .usage = "",
      .summary = "exit 0 when this node is the only member, else 1",
      .flags = REMOTE,
      .outputs = ANSWER,
      .timeout_ms = SHORT,
      .run = trpi_cli_run_is_singleton },
    { .name = "is-available",
      .group = TRPI_CLI_CLUSTER,
      .usage = "[MEMBER]",
      .summary = "exit 0 when the member is reachable and neither Down nor Removed, else 1",
      .text = MEMBER_TEXT,
      .flags = REMOTE,
      .outputs = ANSWER,
      .args_max = 1,
      .timeout_ms = SHORT,
      .completes = 'm',
      .run = trpi_cli_run_is_available },
    { .name = "events",
      .group = TRPI_CLI_CLUSTER,
      .usage = "[--type T]... [--count N] [--snapshot]",
      .summary = "what happens in the cluster, as it happens",
      .text =
          "Begins with events for the present state (in JSON \"snapshot\": true), so that a "
          "replay of the stream\ngives the state; with --type or --count only if --snapshot is "
          "given. Runs until Ctrl-C, --count events,\nor --timeout (exit 0; 75 when the node "
          "has not answered by then). Several types:\n--type MemberUp,MemberRemoved\n-o name "
          "prints the member of each event, and nothing for an event without a member.\n"
          "With --endpoint a stream that breaks goes on behind its last event; if some were lost "
          "meanwhile, that is said.\n",
      .flags = BIT(TYPE) | BIT(COUNT) | BIT(SNAPSHOT) | REMOTE,
      .outputs = ANSWER | TRPI_CLI_OUT(NAME),
      .run = trpi_cli_run_events },
    { .name = "wait",
      .group = TRPI_CLI_CLUSTER,
      .usage = "[--up] [--members N] [--role R=N]... [--gone MEMBER] [--converged]",
      .summary = "wait until all of these hold (default --up)",
      .text = "Also waits for a node that has not started yet. Exit 1: the condition can no longer "
              "become true; 75: it did\nnot become true in time. MEMBER may be gone already, or "
              "never have been one: "
              "0, and stderr says so.\n",
      .flags = BIT(UP) | BIT(MEMBERS) | BIT(ROLE) | BIT(GONE) | BIT(CONVERGED),
      .timeout_ms = LONG,
      .run = trpi_cli_run_wait },

    { .name = "send",
      .group = TRPI_CLI_ACTORS,
      .usage = "PATH [TEXT|-] [--type NAME]",
      .summary = "tell an actor something",
      .text =
          "PATH is /user/a/b on this node, or a full address with a path behind it; --on "
          "MEMBER adds the address.\n"
          "/cluster/TYPE/ID is an entity, wherever it lives (its type is started on this node).\n"
          "TEXT that parses as a JSON object, array, number or literal has type json, other "
          "text string;\n"
          "--type NAME encodes JSON for a registered type. - or no TEXT reads stdin.\n"
          "With --via PATH is the name of a service that is registered for clients; no node is "
          "needed on this host.\n",
      .flags = BIT(TYPE) | BIT(ON) | VIA,
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
      .flags = BIT(TYPE) | BIT(ON) | BIT(COUNT) | VIA,
      .outputs = ANSWER | TRPI_CLI_OUT(NAME),
      .args_min = 1,
      .args_max = 2,
      .timeout_ms = SHORT,
      .completes = 'p',
      .run = trpi_cli_run_ask },
    { .name = "publish",
      .group = TRPI_CLI_ACTORS,
      .usage = "TOPIC [TEXT|-] [--type NAME]",
      .summary = "publish a message to a topic, and say to how many it was delivered",
      .text = "Arguments as for send. Exit 68: nobody subscribes to TOPIC; 75: no answer of any "
              "node in time.\n",
      .flags = BIT(TYPE) | VIA,
      .outputs = ANSWER,
      .args_min = 1,
      .args_max = 2,
      .timeout_ms = SHORT,
      .run = trpi_cli_run_publish },
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
    { .name = "actor",
      .group = TRPI_CLI_ACTORS,
      .usage = "PATH [--on MEMBER]",
      .summary = "one actor: behaviour, messages handled and waiting, restarts, children",
      .flags = BIT(ON) | REMOTE,
      .outputs = ANSWER,
      .args_min = 1,
      .args_max = 1,
      .timeout_ms = SHORT,
      .completes = 'p',
      .run = trpi_cli_run_actor },
    { .name = "stop",
      .group = TRPI_CLI_ACTORS,
      .usage = "PATH --yes [--dry-run] [--on MEMBER]",
      .summary = "stop an actor below /user behind its present message",
      .text = "Its other messages become dead letters. The order is audited. Returns once it is "
              "ordered.\n",
      .flags = BIT(ON) | BIT(DRY_RUN),
      .outputs = ANSWER,
      .args_min = 1,
      .args_max = 1,
      .timeout_ms = SHORT,
      .completes = 'p',
      .run = trpi_cli_run_stop },
    { .name = "kill",
      .group = TRPI_CLI_ACTORS,
      .usage = "PATH --yes [--dry-run] [--on MEMBER]",
      .summary = "let an actor below /user fail: its supervisor decides",
      .text = "The order is audited. Returns once it is ordered.\n",
      .flags = BIT(ON) | BIT(DRY_RUN),
      .outputs = ANSWER,
      .args_min = 1,
      .args_max = 1,
      .timeout_ms = SHORT,
      .completes = 'p',
      .run = trpi_cli_run_stop },
    { .name = "restart",
      .group = TRPI_CLI_ACTORS,
      .usage = "PATH --yes [--dry-run]",
      .summary = "restart an actor below /user of this node, as its supervisor would",
      .text = "Its state and its children are new; its messages wait, and its name, refs and "
              "watchers stay. Its supervisor\nis not asked, and its limit of restarts is not "
              "used up. The order is audited. Returns once it is ordered.\n",
      .flags = BIT(DRY_RUN),
      .outputs = ANSWER,
      .args_min = 1,
      .args_max = 1,
      .timeout_ms = SHORT,
      .completes = 'p',
      .run = trpi_cli_run_stop },
    { .name = "spawn",
      .group = TRPI_CLI_ACTORS,
      .usage = "NAME --plugin FILE[:SYMBOL] [--args JSON]",
      .summary = "start an actor /user/NAME of this node, whose behaviour a plugin has",
      .text =
          "FILE is the name of a file in plugins-dir, under the rules of upgrade. SYMBOL is a "
          "trp_behaviour that it exports\n(default: that of TRP_SPAWN, troupe/plugin.h). JSON is "
          "told to the actor as its first message. Exit 1:\n/user/NAME lives; 65: the file or JSON "
          "is refused, nothing was started; 68: no such file; 77: somebody else\nmay write it. The "
          "order is audited.\n",
      .flags = BIT(PLUGIN) | BIT(ARGS),
      .outputs = ANSWER,
      .args_min = 1,
      .args_max = 1,
      .timeout_ms = SHORT,
      .run = trpi_cli_run_spawn },
    { .name = "watch",
      .group = TRPI_CLI_ACTORS,
      .usage = "PATH [--on MEMBER]",
      .summary = "wait for the end of an actor, and say when it comes",
      .text =
          "A restart is no end; the loss of its node is one. Exit 68: no actor lives there; 75: "
          "it lives after --timeout.\n",
      .flags = BIT(ON),
      .outputs = ANSWER,
      .args_min = 1,
      .args_max = 1,
      .timeout_ms = LONG,
      .completes = 'p',
      .run = trpi_cli_run_watch },
    { .name = "bridge",
      .group = TRPI_CLI_ACTORS,
      .usage = "[NAME]",
      .summary =
          "let a program in any language host actors here: lines of JSON on stdin and stdout",
      .text = "The program that starts it writes requests to it, one JSON object a line, and reads "
              "answers and messages\n(docs/bridge.md). The actors that it hosts are "
              "/user/NAME/..., NAME being bridge-1, bridge-2, ... by default.\nThey end with it. "
              "Exit 0: stdin has ended; 1: /user/NAME is there already; 69: the node ended the "
              "bridge;\n75: stdin has ended, and the node has not ended the bridge in time.\n",
      .args_max = 1,
      .timeout_ms = SHORT,
      .run = trpi_cli_run_bridge },
    { .name = "upgrade",
      .group = TRPI_CLI_ACTORS,
      .usage = "FILE",
      .summary = "give the actors of a loaded plugin the code of its newer version, as they live",
      .text =
          "FILE is the name of a file in plugins-dir, by which the plugin was loaded; it and the "
          "directory belong to\nroot or the node's user, who alone may write them. It is "
          "copied and loaded; each actor changes between\ntwo messages. One that cannot keeps "
          "its old code, state and mailbox, and is listed (exit 1); --timeout\nsays how long "
          "to wait for those that are busy. Exit 65: the file is refused, nothing was changed; "
          "68: no\nsuch plugin or file; 77: somebody else may write it. The order is audited.\n",
      .outputs = ANSWER,
      .args_min = 1,
      .args_max = 1,
      .timeout_ms = LONG,
      .completes = 'u',
      .run = trpi_cli_run_upgrade },
    { .name = "tree",
      .group = TRPI_CLI_ACTORS,
      .usage = "[PATH|MEMBER] [--depth N] [--on MEMBER]",
      .summary = "the actors below PATH (default /)",
      .flags = BIT(DEPTH) | BIT(ON) | BIT(WATCH) | REMOTE,
      .outputs = ANY,
      .args_max = 1,
      .timeout_ms = SHORT,
      .completes = 'p',
      .run = trpi_cli_run_tree },

    { .name = "ls",
      .group = TRPI_CLI_ACTORS,
      .usage = "[PATH|MEMBER] [--on MEMBER]",
      .summary = "the children of an actor (default /): tree --depth 1",
      .flags = BIT(ON) | BIT(WATCH) | REMOTE,
      .outputs = ANY,
      .args_max = 1,
      .timeout_ms = SHORT,
      .completes = 'p',
      .run = trpi_cli_run_tree },

    { .name = "metrics",
      .group = TRPI_CLI_OBSERVE,
      .usage = "[PATTERN]",
      .summary = "the figures of this node: those that PATTERN names, or all",
      .text =
          "PATTERN is a part of a name, or has * and ? as wildcards. -o prom is the text format "
          "of Prometheus.\nExit 68: no metric is called so.\n",
      .flags = BIT(WATCH),
      .outputs = ANSWER | TRPI_CLI_OUT(PROM),
      .args_max = 1,
      .timeout_ms = SHORT,
      .run = trpi_cli_run_metrics },
    { .name = "graph",
      .group = TRPI_CLI_OBSERVE,
      .usage = "[--format dot|mermaid|json]",
      .summary = "the members, and which of them are unreachable, as a drawing (default dot)",
      .flags = BIT(FORMAT) | REMOTE,
      .outputs = ANSWER,
      .timeout_ms = SHORT,
      .run = trpi_cli_run_graph },
    { .name = "top",
      .group = TRPI_CLI_OBSERVE,
      .usage = "[--count N]",
      .summary = "the actors of this node that want attention, the most urgent first",
      .text =
          "First those that hold their thread with one message, then by the age of a message that "
          "waits, by the depth\nof the mailbox, by the rate. MBOX: messages that waited (?: the "
          "actor "
          "has not come to the last one yet);\nAGE: a message waits for so long; WAIT, RUN: of the "
          "last sample. The node looks at its actors until a\nminute after the last request; that "
          "asks none of them, so stuck ones are seen, too.\nOn a terminal it is drawn anew every 2 "
          "s "
          "(--watch=SECS) until Ctrl-C, the only key; else it is printed once.\n--count N ends "
          "after "
          "N; -o name prints the paths.\n",
      .flags = BIT(WATCH) | BIT(COUNT),
      .outputs = ANSWER | TRPI_CLI_OUT(NAME),
      .timeout_ms = SHORT,
      .run = trpi_cli_run_top },
    { .name = "dashboard",
      .group = TRPI_CLI_OBSERVE,
      .usage = "",
      .summary = "print the address of this node's page, for a browser",
      .text =
          "The page shows what is wrong, the busiest actors, the members, the shards, dead letters "
          "and events. The\naddress has a code that opens it once, within a minute, as a reader, "
          "for 12 hours. Needs\nmanagement.enabled = on (else exit 78).\n",
      .outputs = ANSWER | TRPI_CLI_OUT(NAME),
      .timeout_ms = SHORT,
      .run = trpi_cli_run_dashboard },
    { .name = "deadletters",
      .group = TRPI_CLI_OBSERVE,
      .usage = "[-f] [--count N]",
      .summary = "the last messages that reached no actor: reason, type, sender, receiver",
      .text =
          "Answered by one node, with the dead letters it has kept (about 500); the counters are "
          "those since its\nstart. A message to a path without an actor names the nearest path "
          "that has one. Payloads are not kept.\n-f goes on with those that come next, until "
          "Ctrl-C, --timeout, or --count new ones. Without -f, --count N\nprints the last N. "
          "-o name prints the receivers.\n",
      .flags = BIT(FOLLOW) | BIT(COUNT) | REMOTE,
      .outputs = ANSWER | TRPI_CLI_OUT(NAME),
      .timeout_ms = SHORT,
      .run = trpi_cli_run_deadletters },
    { .name = "logs",
      .group = TRPI_CLI_OBSERVE,
      .usage = "[-f] [--level LEVEL] [--component NAME] [--count N]",
      .summary = "the last lines of the log of this node",
      .text =
          "Answered by one node, with the lines it has kept (256 KiB), wherever else they were "
          "written. Lines that\nlog.level switches off were never made. NAME is a room (cluster, "
          "remote) or the path of an actor, and includes\nthose below it. -f goes on with lines "
          "that come next, until Ctrl-C, --timeout, or --count new ones; a reader\nthat is too "
          "slow is told how many lines it missed. In JSON the fields are named as in "
          "OpenTelemetry.\n",
      .flags = BIT(FOLLOW) | BIT(COUNT) | BIT(LEVEL) | BIT(COMPONENT) | REMOTE,
      .outputs = ANSWER,
      .timeout_ms = SHORT,
      .run = trpi_cli_run_logs },
    { .name = "trace",
      .group = TRPI_CLI_OBSERVE,
      .usage = "start|stop --path PATH [--sample 1/N] | list | last | ID [--format FORMAT]",
      .summary = "where messages went: all that follows from one, on all members",
      .text =
          "start has the actors whose path is PATH on this node begin a trace with one message in "
          "N that they handle;\nstop ends that, list shows which are sampled. last shows the trace "
          "of the latest hop on this node, ID the\none with these 32 digits: which actor handled "
          "each message, on which member, how long it was on its way\n(net, by the clocks of "
          "both), in the mailbox (wait) and in the handler (run). Each member keeps its last\n"
          "4,096 hops. --format dot is for graphviz, chrome for Perfetto, otlp for a collector of "
          "OpenTelemetry.\n",
      .flags = BIT(PATH) | BIT(SAMPLE) | BIT(FORMAT) | REMOTE,
      .outputs = ANSWER,
      .args_min = 1,
      .args_max = 1,
      .timeout_ms = SHORT,
      .run = trpi_cli_run_trace },

    { .name = "doctor",
      .group = TRPI_CLI_OPERATE,
      .usage = "[--all-members] [--fix-hints]",
      .summary = "look for what is wrong with this node and its cluster (exit 1: failures)",
      .text =
          "Looks at the node and its host, and asks and dials each other member; takes a second "
          "or a few. Each check\nsays what was seen. A warning is no failure: exit 0. "
          "--fix-hints says what to do about each finding, and\nits section in the handbook. "
          "-o name prints the ids of those that are not ok.\n" ALL_TEXT,
      .flags = BIT(FIX_HINTS) | BIT(ALL_MEMBERS) | REMOTE,
      .outputs = ANSWER | TRPI_CLI_OUT(NAME),
      .timeout_ms = LONG,
      .run = trpi_cli_run_doctor },
    { .name = "check",
      .group = TRPI_CLI_OPERATE,
      .usage = "ready|alive|certs|clock|ports|versions",
      .summary = "one question, for scripts and probes: exit 0 yes, 1 no",
      .text = "ready: the node is Up or WeaklyUp, is not being drained, and probes of its default "
              "dispatcher and of its\ninbound path are answered within a second. alive: it does "
              "work; depends on no other node "
              "(management.alive-after).\ncerts: certificates of this node and of the members, and "
              "the files of TLS. clock: "
              "apart from those of the\nmembers. ports: can each member dial each other one. "
              "versions: of Troupe and of the keys that members decide\nby together. A warning is "
              "a no, too.\n",
      .flags = REMOTE,
      .outputs = ANSWER,
      .args_min = 1,
      .args_max = 1,
      .timeout_ms = LONG,
      .run = trpi_cli_run_check },
    { .name = "report",
      .group = TRPI_CLI_OPERATE,
      .usage = "[-O FILE.tar.gz]",
      .summary = "write what this node says about itself and its cluster into one archive",
      .text =
          "Holds the JSON of version, status, members, why, peers, reach, doctor, config, shards, "
          "singleton, topics,\ntree, deadletters and logs. Secrets are blanked by the node, and "
          "there are no payloads. The file has\nmode 0600; its name is printed. Exit 74: it "
          "could not be written.\n",
      .flags = BIT(OUT_FILE),
      .timeout_ms = LONG,
      .run = trpi_cli_run_report },
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
    { .name = "journal",
      .group = TRPI_CLI_OPERATE,
      .usage = "init|ids|show ID|export|import|verify|stats|fold TYPE SHARDS [OPTION]...",
      .summary = "make, read, save, restore and check the journal of persistent actors",
      .args_max = TRPI_CLI_ARGS_MAX,
      .passes_through = true,
      .of_all_behind = true,
      .run = trpi_cli_run_journal },
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

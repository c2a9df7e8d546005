/* config_schema.c - every key of the configuration: type, default, range and one sentence.
 *
 * Names are Akka's without the leading "akka."; what Akka calls otherwise, or has not, is said in
 * the sentence. The order is the order of `troupe config show`.
 */
#include "base/config.h"

#include <string.h>

#include <troupe/actor.h>
#include <troupe/dispatcher.h>
#include <troupe/log.h>
#include <troupe/mailbox.h>
#include <troupe/router.h>
#include <troupe/scheduler.h>
#include <troupe/testkit.h>

#define PORT_MAX 65535
#define KIB 1024.0
#define MIB (1024.0 * 1024.0)
#define SECONDS 1000.0
#define HOURS 3600000.0
#define DAYS (24.0 * HOURS)

/* The text of a number that a public header names. */
#define TEXT_OF(number) TEXT_OF_EXPANDED(number)
#define TEXT_OF_EXPANDED(number) #number
#define MS_OF(number) TEXT_OF(number) "ms"

#define TEXT TRPI_CONFIG_TEXT
#define INT TRPI_CONFIG_INT
#define FLOAT TRPI_CONFIG_FLOAT
#define DURATION TRPI_CONFIG_DURATION
#define SIZE TRPI_CONFIG_SIZE
#define BOOL TRPI_CONFIG_BOOL
#define CHOICE TRPI_CONFIG_CHOICE
#define LIST TRPI_CONFIG_LIST

#define REQUIREMENTS                                                                               \
    "unbounded|bounded|deque|multi-consumer|priority|stable|durable|control-aware|counted"

/* clang-format off */
const trpi_config_row trpi_config_rows[] = {
    { "system", TEXT, "demo", 0, 0, NULL,
      "Name of the actor system; all members of a cluster have the same one." },
    { "version", TEXT, "", 0, 0, NULL,
      "Version of Troupe that the file was written for, \"0.1\" or \"0.1.0\": another one refuses "
      "it; empty: any." },
    { "log-config-on-start", BOOL, "off", 0, 0, NULL,
      "on: log every key with its value and where it came from, at info." },
    { "plugins", LIST, "", 0, 0, NULL,
      "Shared objects to load, each PATH or PATH:ARGUMENTS (--load)." },
    { "extensions", LIST, "", 0, 0, NULL,
      "Shared objects whose trp_extension_v1 every system makes at its start, each a PATH." },

    { "actor.default-dispatcher.workers", INT, "0", 0, 64, NULL,
      "Threads that run actors; 0 is one per core." },
    { "actor.default-dispatcher.throughput", INT, TEXT_OF(TRP_THROUGHPUT_DEFAULT), 1, 1000000, NULL,
      "Messages an actor may handle before it gives way; Akka's default is 5." },
    { "actor.default-dispatcher.throughput-deadline-time", DURATION, "0ms", 0, HOURS, NULL,
      "An actor gives way after this time, too; 0ms: no deadline." },
    { "actor.default-dispatcher.mailbox-requirement", LIST, "", 0, 0, REQUIREMENTS,
      "What the mailbox of its actors must be; the words are those of dispatcher \"*\" { }." },
    { "actor.actors-max", INT, "100000000", 16, 2000000000, NULL,
      "Actors that may live at one time." },
    { "actor.guardian-supervisor-strategy", CHOICE, "default", 0, 0, "default|stopping",
      "What /user does when one of its children fails." },
    { "actor.fault-trap", CHOICE, "off", 0, 0, "off|report|on",
      "on: SIGSEGV, SIGBUS or SIGFPE in an actor's own code is its failure; report: the last line "
      "of a crash names the actor (`troupe node` does when nothing is said)." },
    { "actor.serialize-messages", BOOL, "off", 0, 0, NULL,
      "For tests: what an actor of this system is told goes through its type's serializer and "
      "back." },
    { "actor.serialize-creators", BOOL, "off", 0, 0, NULL,
      "For tests: the same for the arguments of new actors, at their spawn." },

    { "actor.stall-warning", DURATION, "1s", 0, HOURS, NULL,
      "An actor that holds its worker so long with one message is logged and published; "
      "0ms: off." },

    { "actor.debug.receive", BOOL, "off", 0, 0, NULL,
      "Log, at debug, the messages of actors that asked for it by trp_log_receive()." },
    { "actor.debug.autoreceive", BOOL, "off", 0, 0, NULL,
      "Log, at debug, what actors are told and the runtime handles: poison pills, kills and the "
      "like." },
    { "actor.debug.fsm", BOOL, "off", 0, 0, NULL,
      "Log, at debug, when actors become another behaviour, and their timers." },
    { "actor.debug.lifecycle", BOOL, "off", 0, 0, NULL,
      "Log, at debug, starts, restarts, watches and stops." },
    { "actor.debug.event-stream", BOOL, "off", 0, 0, NULL,
      "Log, at debug, changes of subscriptions." },
    { "actor.debug.unhandled", BOOL, "off", 0, 0, NULL,
      "Log, at debug, messages that nobody handled." },
    { "actor.debug.router-misconfiguration", BOOL, "off", 0, 0, NULL,
      "Warn when a deployment section says router and the code makes a plain actor." },
    { "actor.default-mailbox.mailbox-type", CHOICE, "unbounded", 0, 0,
      "unbounded|bounded|control-aware|bounded-control-aware|counted",
      "The mailbox of actors for which nothing else is said." },
    { "actor.default-mailbox.mailbox-capacity", INT, TEXT_OF(TRP_MAILBOX_CAPACITY_DEFAULT), 1,
      TRP_MAILBOX_CAPACITY_MAX, NULL, "Messages in a bounded one." },
    { "actor.default-mailbox.mailbox-push-timeout-time", DURATION,
      MS_OF(TRP_MAILBOX_PUSH_TIMEOUT_DEFAULT_MS), -1000, HOURS, NULL,
      "How long a sender waits for room; 0ms: not at all; -1s: for ever, which may lock up." },
    { "actor.default-mailbox.overflow", CHOICE, "drop", 0, 0, "drop|notify",
      "drop: then it is a dead letter; notify: trp_try_tell() refuses and says when to go on." },
    { "actor.default-mailbox.stash-capacity", INT, "-1", -1, 1000000000, NULL,
      "Messages that an actor may stash when its code does not say; 0 or less: unbounded." },

    { "actor.mailbox.requirements.unbounded", TEXT, "unbounded", 0, 0, NULL,
      "Mailbox of actors that require an unbounded one, where nothing says another." },
    { "actor.mailbox.requirements.bounded", TEXT, "bounded", 0, 0, NULL,
      "The same for those that require a bounded one." },
    { "actor.mailbox.requirements.deque", TEXT, "unbounded-deque", 0, 0, NULL,
      "... one that takes messages at its front." },
    { "actor.mailbox.requirements.multi-consumer", TEXT, "unbounded", 0, 0, NULL,
      "... one that several actors may take from." },
    { "actor.mailbox.requirements.priority", TEXT, "", 0, 0, NULL,
      "... one that has an order; empty: the default mailbox, which has none." },
    { "actor.mailbox.requirements.stable", TEXT, "", 0, 0, NULL,
      "... one that keeps the order of equal priorities; empty: the default mailbox." },
    { "actor.mailbox.requirements.durable", TEXT, "", 0, 0, NULL,
      "... one that outlives the process; empty: the default mailbox, which does not." },
    { "actor.mailbox.requirements.control-aware", TEXT, "control-aware", 0, 0, NULL,
      "... one that gives control messages first." },
    { "actor.mailbox.requirements.counted", TEXT, "counted", 0, 0, NULL,
      "... one whose length is known at once." },

    { "mailbox.*.mailbox-type", CHOICE, "unbounded", 0, 0,
      "unbounded|bounded|control-aware|bounded-control-aware|counted",
      "A mailbox of one's own, named by its title." },
    { "mailbox.*.mailbox-capacity", INT, TEXT_OF(TRP_MAILBOX_CAPACITY_DEFAULT), 1,
      TRP_MAILBOX_CAPACITY_MAX, NULL, "Messages in a bounded one." },
    { "mailbox.*.mailbox-push-timeout-time", DURATION,
      MS_OF(TRP_MAILBOX_PUSH_TIMEOUT_DEFAULT_MS), -1000, HOURS, NULL,
      "How long a sender waits for room; 0ms: not at all; -1s: for ever, which may lock up." },
    { "mailbox.*.overflow", CHOICE, "drop", 0, 0, "drop|notify",
      "drop: then it is a dead letter; notify: trp_try_tell() refuses and says when to go on." },

    { "dispatcher.*.type", CHOICE, "pool", 0, 0,
      "pool|pinned|blocking|affinity|balancing|calling-thread|dispatcher|pinneddispatcher|"
      "balancingdispatcher",
      "A dispatcher of one's own, named by its title: dispatcher \"my-pool\" { type = pool }. "
      "Akka's Dispatcher is a pool, its PinnedDispatcher is pinned." },
    { "dispatcher.*.attempt-teamwork", BOOL, "on", 0, 0, NULL,
      "balancing: a message wakes any idle actor of the team; off: only whom it was told to." },
    { "dispatcher.*.throughput", INT, TEXT_OF(TRP_THROUGHPUT_DEFAULT), 1, 1000000, NULL,
      "Messages an actor may handle before it gives way; if not said, the default dispatcher's." },
    { "dispatcher.*.throughput-deadline-time", DURATION, "0ms", 0, HOURS, NULL,
      "It gives way after this time, too; 0ms: no deadline." },
    { "dispatcher.*.mailbox-type", TEXT, "", 0, 0, NULL,
      "Mailbox of its actors, by name; empty: what they require, or the default one." },
    { "dispatcher.*.mailbox-requirement", LIST, "", 0, 0, REQUIREMENTS,
      "What the mailbox of its actors must be: any of unbounded, bounded, deque, multi-consumer, "
      "priority, stable, durable, control-aware, counted; an actor with another is refused." },
    { "dispatcher.*.fork-join-executor.parallelism-min", INT,
      TEXT_OF(TRP_DISPATCHER_THREADS_MIN_DEFAULT), 1, TRP_DISPATCHER_THREADS_MAX, NULL,
      "Threads at least, of a pool; if not said, 1 for affinity and the maximum for blocking." },
    { "dispatcher.*.fork-join-executor.parallelism-factor", FLOAT,
      TEXT_OF(TRP_DISPATCHER_THREADS_FACTOR_DEFAULT), 0.001, 1024, NULL,
      "Threads for each core, within the bounds; if not said, 1.0 for affinity." },
    { "dispatcher.*.fork-join-executor.parallelism-max", INT,
      TEXT_OF(TRP_DISPATCHER_THREADS_CAP_DEFAULT), 1, TRP_DISPATCHER_THREADS_MAX, NULL,
      "Threads at most; they are made when they are needed." },
    { "dispatcher.*.thread-pool-executor.keep-alive-time", DURATION,
      MS_OF(TRP_DISPATCHER_KEEP_ALIVE_DEFAULT_MS), 1, DAYS, NULL,
      "An idle thread ends after this time; not with affinity." },
    { "dispatcher.*.shutdown-timeout", DURATION, MS_OF(TRP_DISPATCHER_SHUTDOWN_DEFAULT_MS), 1, DAYS,
      NULL, "The threads of a dispatcher without actors end after this time." },

    { "deployment.*.dispatcher", TEXT, "", 0, 0, NULL,
      "Dispatcher of the actors with this path: deployment \"/service/*\" { dispatcher = pinned }; "
      "stronger than what the code says; empty: the code decides. Of a router: of its routees." },
    { "deployment.*.mailbox", TEXT, "", 0, 0, NULL,
      "Mailbox of these actors, by name; empty: the code decides, or the dispatcher." },
    { "deployment.*.router", TEXT, "from-code", 0, 0,
      "from-code|round-robin|random|smallest-mailbox|broadcast|scatter-gather|tail-chopping|"
      "balancing|consistent-hashing",
      "How a router that the code makes at this path routes, or the name of a registered logic; "
      "-pool or -group may stand behind. from-code: as the code says, the keys below too." },
    { "deployment.*.nr-of-instances", INT, "1", 1, TRP_ROUTEES_MAX, NULL,
      "Children that the router makes; not used where routees.paths is given." },
    { "deployment.*.routees.paths", LIST, "", 0, 0, NULL,
      "Actors to route to, by path; the router makes none then." },
    { "deployment.*.within", DURATION, MS_OF(TRP_ROUTER_WITHIN_MS_DEFAULT), 1, HOURS, NULL,
      "scatter-gather, tail-chopping: when they give up." },
    { "deployment.*.tail-chopping-router.interval", DURATION,
      MS_OF(TRP_ROUTER_INTERVAL_MS_DEFAULT), 1, HOURS, NULL,
      "tail-chopping: when the next routee is tried." },
    { "deployment.*.virtual-nodes-factor", INT,
      TEXT_OF(TRP_ROUTER_VIRTUAL_NODES_DEFAULT), 1, TRP_ROUTER_VIRTUAL_NODES_MAX, NULL,
      "consistent-hashing: places of each routee on the ring." },
    { "deployment.*.router-dispatcher", TEXT, "", 0, 0, NULL,
      "Dispatcher of the router itself, which manages its routees; empty: the code decides." },
    { "deployment.*.logic-settings", LIST, "", 0, 0, NULL,
      "Settings of a logic of the program's own, each \"KEY=VALUE\"; stronger than its code's." },
    { "deployment.*.resizer.lower-bound", INT,
      TEXT_OF(TRP_RESIZER_LOWER_BOUND_DEFAULT), 1, TRP_ROUTEES_MAX, NULL,
      "Routees at least. One key of this section is enough to make the pool grow and shrink." },
    { "deployment.*.resizer.upper-bound", INT,
      TEXT_OF(TRP_RESIZER_UPPER_BOUND_DEFAULT), 1, TRP_ROUTEES_MAX, NULL, "Routees at most." },
    { "deployment.*.resizer.pressure-threshold", INT,
      TEXT_OF(TRP_RESIZER_PRESSURE_THRESHOLD_DEFAULT), 0, 1000000000, NULL,
      "When a routee is busy: 0: it handles a message; 1: and has more mail; above: that many." },
    { "deployment.*.resizer.rampup-rate", FLOAT,
      TEXT_OF(TRP_RESIZER_RAMPUP_RATE_DEFAULT), 0, 65536, NULL,
      "When all are busy, grow by this share of the routees, rounded up." },
    { "deployment.*.resizer.backoff-threshold", FLOAT,
      TEXT_OF(TRP_RESIZER_BACKOFF_THRESHOLD_DEFAULT), -1, 1, NULL,
      "Shrink when a smaller share than this is busy; 0 or less: never." },
    { "deployment.*.resizer.backoff-rate", FLOAT,
      TEXT_OF(TRP_RESIZER_BACKOFF_RATE_DEFAULT), 0, 1, NULL,
      "Shrink by this share of the routees, rounded up." },
    { "deployment.*.resizer.stop-delay", DURATION,
      MS_OF(TRP_RESIZER_STOP_DELAY_MS_DEFAULT), 0, HOURS, NULL,
      "From the removal of a routee to its poison pill." },
    { "deployment.*.resizer.messages-per-resize", INT,
      TEXT_OF(TRP_RESIZER_MESSAGES_PER_RESIZE_DEFAULT), 1, 1000000000, NULL,
      "Messages between two looks at the load." },

    { "remote.transport", CHOICE, "tcp", 0, 0, "tcp|tls",
      "How nodes talk to one another; tls: TLS 1.3, with the files of remote.tls." },
    { "remote.hostname", TEXT, "127.0.0.1", 0, 0, NULL,
      "Host by which the others reach this node (advertised); not a wildcard." },
    { "remote.port", INT, "2552", 0, PORT_MAX, NULL,
      "Port by which the others reach this node; 0 takes a free one." },
    { "remote.bind-hostname", TEXT, "", 0, 0, NULL, "Host to listen on; empty: remote.hostname." },
    { "remote.bind-port", INT, "", 0, PORT_MAX, NULL, "Port to listen on; empty: remote.port." },
    { "remote.maximum-frame-size", SIZE, "256KiB", 32000, 64 * MIB, NULL,
      "Largest frame on the wire; a larger message is a dead letter." },
    { "remote.handshake-timeout", DURATION, "15s", 100, HOURS, NULL,
      "A peer that has not said who it is by then is disconnected." },
    { "remote.lane-buffer-size", SIZE, "16MiB", 64 * KIB, 1024 * MIB, NULL,
      "Bytes that may wait for one peer; above, senders are paced, then messages are dead "
      "letters." },
    { "remote.control-buffer-size", SIZE, "1MiB", 64 * KIB, 64 * MIB, NULL,
      "Bytes of the control lane that may wait for one peer." },
    { "remote.system-message-buffer-size", INT, "20000", 16, 10000000, NULL,
      "Unacknowledged system messages; when it is full the peer is quarantined." },
    { "remote.retry-backoff-min", DURATION, "50ms", 1, HOURS, NULL,
      "First pause before a connection is tried again; it doubles each time." },
    { "remote.retry-backoff-max", DURATION, "10s", 1, HOURS, NULL,
      "Longest pause before a connection is tried again." },
    { "remote.flush-wait-on-shutdown", DURATION, "2s", 1, HOURS, NULL,
      "How long a stopping node waits for what it has told to leave." },
    { "remote.pending-handshakes-max", INT, "1024", 1, 1000000, NULL,
      "Connections that have not said who they are; more are refused." },
    { "remote.handshake-bytes-max", SIZE, "64KiB", 8 * KIB, 16 * MIB, NULL,
      "Bytes that such a connection may send; how long it may take: remote.handshake-timeout." },
    { "remote.tls.ca", TEXT, "", 0, 0, NULL,
      "PEM file with the authorities whose nodes may talk to this one (`troupe cert ca`)." },
    { "remote.tls.cert", TEXT, "", 0, 0, NULL,
      "PEM file with this node's certificate (`troupe cert node`)." },
    { "remote.tls.key", TEXT, "", 0, 0, NULL, "PEM file with its key, not encrypted." },
    { "remote.tls.crl", TEXT, "", 0, 0, NULL,
      "PEM file with the list of revoked certificates (`troupe cert revoke`); empty: none." },
    { "remote.tls.enabled-algorithms", LIST, "", 0, 0, NULL,
      "Cipher suites of TLS 1.3, best first; none: AES-128-GCM, AES-256-GCM, ChaCha20." },
    { "remote.tls.allowed-names", LIST, "", 0, 0, NULL,
      "Only peers whose certificate is for one of these hosts; none: all of the authority." },
    { "remote.tls.verify-peer-address", BOOL, "on", 0, 0, NULL,
      "A peer's certificate must be for the host of its address; off: any host." },
    { "remote.tls.reload-interval", DURATION, "1m", 0, DAYS, NULL,
      "How often the files are looked at; changed ones are read again; 0ms: only on SIGHUP." },
    { "remote.tls.old-connections-end-after", DURATION, "1h", 1, 30 * DAYS, NULL,
      "Connections that began with replaced files, or a replaced cookie, end so long after." },
    { "remote.untrusted-mode", BOOL, "off", 0, 0, NULL,
      "on: peers may not watch, stop or kill actors here, nor select paths that are not trusted." },
    { "remote.trusted-selection-paths", LIST, "", 0, 0, NULL,
      "Paths that peers may select in untrusted mode, such as \"/user/receptionist\"." },
    { "remote.require-cookie", BOOL, "off", 0, 0, NULL,
      "Peers must know remote.secure-cookie; the cookie itself is never sent." },
    { "remote.secure-cookie", TEXT, "", 0, 0, NULL,
      "Secret that all nodes of a cluster share (`troupe cookie gen`); never shown or logged." },
    { "remote.secure-cookie-before", TEXT, "", 0, 0, NULL,
      "The one before it: taken as well, while the nodes change over one by one." },
    { "remote.watch-failure-detector.threshold", FLOAT, "10.0", 0.1, 100, NULL,
      "Phi at which the node of a watched actor is taken for dead." },
    { "remote.watch-failure-detector.heartbeat-interval", DURATION, "1s", 10, HOURS, NULL,
      "Pause between heartbeats to nodes with watched actors." },
    { "remote.watch-failure-detector.acceptable-heartbeat-pause", DURATION, "4s", 1, HOURS, NULL,
      "Silence that is forgiven." },
    { "remote.watch-failure-detector.max-sample-size", INT, "200", 2, 100000, NULL,
      "Intervals between heartbeats that are remembered." },
    { "remote.watch-failure-detector.min-std-deviation", DURATION, "100ms", 1, HOURS, NULL,
      "Least spread that is assumed of them." },
    { "remote.watch-failure-detector.expected-response-after", DURATION, "3s", 1, HOURS, NULL,
      "A node that was never heard is judged from here on." },
    { "remote.transport-failure-detector.threshold", FLOAT, "7.0", 0.1, 100, NULL,
      "Phi at which a connection is taken for dead and made anew." },
    { "remote.transport-failure-detector.heartbeat-interval", DURATION, "1s", 10, HOURS, NULL,
      "Pause between heartbeats on the control lane." },
    { "remote.transport-failure-detector.acceptable-heartbeat-pause", DURATION, "3s", 1, HOURS,
      NULL, "Silence that is forgiven." },
    { "remote.transport-failure-detector.max-sample-size", INT, "100", 2, 100000, NULL,
      "Intervals between heartbeats that are remembered." },
    { "remote.transport-failure-detector.min-std-deviation", DURATION, "100ms", 1, HOURS, NULL,
      "Least spread that is assumed of them." },
    { "remote.resend-interval", DURATION, "1s", 10, HOURS, NULL,
      "A system message that is not acknowledged by then is sent again." },
    { "remote.give-up-system-message-after", DURATION, "6h", 1000, 24 * HOURS, NULL,
      "Then its peer is quarantined." },
    { "remote.log-remote-lifecycle-events", CHOICE, "on", 0, 0,
      "on|off|error|warning|info|debug",
      "Log changes of links: each at its own level (on), not, or all at one level." },
    { "remote.log-sent-messages", BOOL, "off", 0, 0, NULL,
      "Log each message that leaves, at level debug: type, size, receiver." },
    { "remote.log-received-messages", BOOL, "off", 0, 0, NULL,
      "Log each message that arrives, at level debug." },
    { "remote.log-frame-size-exceeding", SIZE, "0", 0, 64 * MIB, NULL,
      "Log types whose payload is larger; again when one is larger by a tenth. 0: never." },

    { "cluster.seed-nodes", LIST, "", 0, 0, NULL,
      "Addresses to join at start; a node whose own address (or the word self) stands first "
      "may start "
      "a cluster." },
    { "cluster.roles", LIST, "", 0, 0, NULL, "What this node is good for." },
    { "cluster.app-version", TEXT, "0.0.0", 0, 0, NULL,
      "Version of the application, shown for each member." },
    { "cluster.log-info", BOOL, "on", 0, 0, NULL,
      "off: no log line for each change of membership." },
    { "cluster.may-create-cluster", BOOL, "on", 0, 0, NULL,
      "off: never start a new cluster, even as first seed." },
    { "cluster.seed-node-timeout", DURATION, "5s", 50, HOURS, NULL,
      "How long the seed nodes may take to answer." },
    { "cluster.retry-unsuccessful-join-after", DURATION, "10s", 50, HOURS, NULL,
      "When a join is tried again." },
    { "cluster.min-nr-of-members", INT, "1", 1, 100000, NULL,
      "Members that must have joined before the first are Up." },
    { "cluster.role.*.min-nr-of-members", INT, "1", 1, 100000, NULL,
      "The same for members with this role: role \"backend\" { min-nr-of-members = 2 }." },
    { "cluster.gossip-interval", DURATION, "1s", 10, HOURS, NULL, "Pause between gossip rounds." },
    { "cluster.leader-actions-interval", DURATION, "1s", 10, HOURS, NULL,
      "How often the leader looks for members to move on." },
    { "cluster.gossip-different-view-probability", FLOAT, "0.8", 0, 1, NULL,
      "How often gossip goes to a member with another view, if there is one." },
    { "cluster.leave-timeout", DURATION, "20s", 100, DAYS, NULL,
      "How long a node that is told to end waits for its leaving." },
    { "cluster.control-socket", BOOL, "off", 0, 0, NULL,
      "on: a program that embeds the library has a control socket, as troupe node always has." },
    { "cluster.failure-detector.threshold", FLOAT, "8.0", 0.1, 100, NULL,
      "Phi at which a member is unreachable." },
    { "cluster.failure-detector.heartbeat-interval", DURATION, "1s", 10, HOURS, NULL,
      "Pause between heartbeats." },
    { "cluster.failure-detector.acceptable-heartbeat-pause", DURATION, "3s", 1, HOURS, NULL,
      "Silence that is forgiven." },
    { "cluster.failure-detector.min-std-deviation", DURATION, "100ms", 1, HOURS, NULL,
      "Least deviation of the heartbeat history." },
    { "cluster.failure-detector.max-sample-size", INT, "1000", 2, 100000, NULL,
      "Heartbeats that are remembered." },
    { "cluster.failure-detector.monitored-by-nr-of-members", INT, "5", 1, 1000, NULL,
      "Neighbours on the ring that watch each member." },
    { "cluster.failure-detector.expected-response-after", DURATION, "3s", 1, HOURS, NULL,
      "A member that was never heard is judged from then on." },
    { "cluster.downing.active-strategy", CHOICE, "keep-majority", 0, 0,
      "manual|auto-down-after|keep-majority",
      "Who downs members that stay unreachable; Akka 2.2 has only manual (off) and auto-down." },
    { "cluster.downing.stable-after", DURATION, "20s", 0, DAYS, NULL,
      "How long nothing may change before keep-majority decides." },
    { "cluster.downing.auto-down-after", DURATION, "5s", 0, DAYS, NULL,
      "auto-down-after: an unreachable member is downed then (Akka: cluster.auto-down)." },
    { "cluster.downing.keep-majority.role", TEXT, "", 0, 0, NULL,
      "Count only members with this role; empty: all." },

    { "control.socket", TEXT, "", 0, 0, NULL,
      "Path of the control socket; empty: SYSTEM@PORT.sock in $XDG_RUNTIME_DIR/troupe or "
      "/run/troupe." },
    { "log.level", CHOICE, "info", 0, 0, "error|warning|info|debug|off",
      "Least level that is logged." },
    { "log.stdout-level", CHOICE, "warning", 0, 0, "error|warning|info|debug|off",
      "The same while no logger runs, at the start and at the end of a system." },
    { "log.format", CHOICE, "text", 0, 0, "text|json", "A line of text or a JSON object." },
    { "log.dead-letters", INT, "10", 0, 4294967294, "on|off",
      "How many dead letters are logged, at info; on: all; off: none." },
    { "log.dead-letters-during-shutdown", BOOL, "on", 0, 0, NULL,
      "off: dead letters of a system that ends are counted, not logged." },
    { "log.loggers", LIST, "default", 0, 0, NULL,
      "Which loggers there are, in this order: default, and names of loggers that the program "
      "brings; if not said, default and those that its code starts." },
    { "log.logger-startup-timeout", DURATION, MS_OF(TRP_LOGGER_START_MS_DEFAULT), 1, HOURS, NULL,
      "How long a logger of the program's own may take to say that it is ready." },
    { "log.queue-size", INT, TEXT_OF(TRP_LOG_QUEUE_DEFAULT), 1, 1000000000, NULL,
      "Lines that may wait for one logger; more are dropped and counted." },

    { "scheduler.tick-duration", DURATION, MS_OF(TRP_TICK_MS_DEFAULT), 1, TRP_TICK_MS_MAX, NULL,
      "What is due runs at the next tick; Akka's default is 10ms." },
    { "scheduler.ticks-per-wheel", INT, TEXT_OF(TRP_WHEEL_TICKS_DEFAULT), TRP_WHEEL_TICKS_MIN,
      TRP_WHEEL_TICKS_MAX, NULL,
      "Slots of each wheel of the timer, a power of two; Akka's default is 512 in one wheel." },
    { "scheduler.schedules-max", INT, "16777216", 16, TRP_SCHEDULES_MAX, NULL,
      "What may be scheduled at one time, timers of actors and of the system too." },
    { "scheduler.shutdown-timeout", DURATION, MS_OF(TRP_SCHEDULER_STOP_MS_DEFAULT), 1, HOURS, NULL,
      "How long functions that are being run may take when the system ends." },

    { "test.timefactor", FLOAT, "1.0", 0.001, 1000000, NULL,
      "Time limits of the test kit are multiplied by it, for slow machines." },
    { "test.single-expect-default", DURATION, MS_OF(TRP_TEST_EXPECT_MS_DEFAULT), 1, HOURS, NULL,
      "How long a probe waits for what it expects when the test does not say." },
    { "test.filter-leeway", DURATION, MS_OF(TRP_TEST_LEEWAY_MS_DEFAULT), 1, HOURS, NULL,
      "How long an event filter waits for what is still to come." },
    { "test.default-timeout", DURATION, MS_OF(TRP_TEST_TIMEOUT_MS_DEFAULT), 1, HOURS, NULL,
      "Of the test kit's asks and stops." },
    { NULL, TEXT, NULL, 0, 0, NULL, NULL },
};

const trpi_config_alias trpi_config_aliases[] = {
    { "loglevel", "log.level" },
    { "remote.netty.ssl.security.trust-store", "remote.tls.ca" },
    { "remote.netty.ssl.security.key-store", "remote.tls.cert" },
    { "remote.netty.ssl.security.enabled-algorithms", "remote.tls.enabled-algorithms" },
    { "tls.ca", "remote.tls.ca" },
    { "tls.cert", "remote.tls.cert" },
    { "tls.key", "remote.tls.key" },
    { "stdout-loglevel", "log.stdout-level" },
    { "log-dead-letters", "log.dead-letters" },
    { "log-dead-letters-during-shutdown", "log.dead-letters-during-shutdown" },
    { "loggers", "log.loggers" },
    { "logger-startup-timeout", "log.logger-startup-timeout" },
    { NULL, NULL },
};
/* clang-format on */

const char *
trpi_config_shown(const trpi_config_entry *entry, size_t index)
{
    static const char secret[] = "remote.secure-cookie"; /* and the one before it */
    const char *value = entry->values[index];
    return *value != '\0' && strncmp(entry->key, secret, sizeof secret - 1) == 0 ? "(secret)"
                                                                                 : value;
}

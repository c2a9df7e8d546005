/* config_schema.c - every key of the configuration: type, default, range and one sentence.
 *
 * Names are Akka's without the leading "akka."; what Akka calls otherwise, or has not, is said in
 * the sentence. The order is the order of `troupe config show`.
 */
#include "base/config.h"

#include <string.h>

#include <troupe/actor.h>
#include <troupe/cluster.h>
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
      "Name of the actor system; all members of a cluster have the same name." },
    { "version", TEXT, "", 0, 0, NULL,
      "Version of Troupe that the file was written for, \"0.1\" or \"0.1.0\"; a node of another "
      "version refuses the file. empty: any version." },
    { "log-config-on-start", BOOL, "off", 0, 0, NULL,
      "on: log every key with its value and its origin, at level info." },
    { "plugins", LIST, "", 0, 0, NULL,
      "Shared objects to load, each PATH or PATH:ARGUMENTS (--load)." },
    { "extensions", LIST, "", 0, 0, NULL,
      "Shared objects to load as extensions: every system starts the trp_extension_v1 of each; "
      "each a PATH." },

    { "actor.default-dispatcher.workers", INT, "0", 0, 64, NULL,
      "Worker threads that run actors; 0: one per core." },
    { "actor.default-dispatcher.throughput", INT, TEXT_OF(TRP_THROUGHPUT_DEFAULT), 1,
      TRP_THROUGHPUT_MAX, NULL,
      "Messages that an actor may handle in one turn before other actors run; Akka's default is "
      "5." },
    { "actor.default-dispatcher.throughput-deadline-time", DURATION, "0ms", 0, HOURS, NULL,
      "Longest time of one turn: an actor also yields its worker after this time; 0ms: no "
      "deadline." },
    { "actor.default-dispatcher.mailbox-requirement", LIST, "", 0, 0, REQUIREMENTS,
      "Properties that the mailbox of each of its actors must have; the words are those of "
      "dispatcher \"*\" { }." },
    { "actor.actors-max", INT, "100000000", 16, 2000000000, NULL,
      "Largest number of live actors." },
    { "actor.guardian-supervisor-strategy", CHOICE, "default", 0, 0, "default|stopping",
      "Supervision strategy of /user, which decides what happens when a top-level actor fails." },
    { "actor.fault-trap", CHOICE, "off", 0, 0, "off|report|on",
      "on: SIGSEGV, SIGBUS or SIGFPE in an actor's own code is a failure of that actor; report: "
      "the process still crashes, and its last line names the actor (what `troupe node` does when "
      "this key is not set); off: neither." },
    { "actor.serialization-bindings", LIST, "", 0, 0, NULL,
      "Serializers of message types, each \"TYPE=NAME\". TYPE: the name of a type, \"protocol.*\" "
      "or \"*\"; NAME: raw, json, msgpack, text, protobuf, a serializer of the program, or none." },
    { "actor.serialize-messages", BOOL, "off", 0, 0, NULL,
      "For tests: each message to an actor of this system is serialized and deserialized, as if it "
      "came from another node." },
    { "actor.serialize-creators", BOOL, "off", 0, 0, NULL,
      "For tests: serialize and deserialize the arguments of each actor that is spawned." },

    { "actor.stall-warning", DURATION, "1s", 0, HOURS, NULL,
      "Log and publish an actor that has blocked its worker for this time with one message; 0ms: "
      "off." },

    { "actor.debug.receive", BOOL, "off", 0, 0, NULL,
      "Log, at level debug, the messages that arrive at actors which called trp_log_receive()." },
    { "actor.debug.autoreceive", BOOL, "off", 0, 0, NULL,
      "Log, at level debug, messages that the runtime handles for an actor, such as poison pills "
      "and kills." },
    { "actor.debug.fsm", BOOL, "off", 0, 0, NULL,
      "Log, at level debug, each change of an actor's behaviour (become, unbecome), and its "
      "timers." },
    { "actor.debug.lifecycle", BOOL, "off", 0, 0, NULL,
      "Log, at level debug, starts, restarts, watches and stops of actors." },
    { "actor.debug.event-stream", BOOL, "off", 0, 0, NULL,
      "Log, at level debug, subscriptions to the event stream that begin and end." },
    { "actor.debug.unhandled", BOOL, "off", 0, 0, NULL,
      "Log, at level debug, messages that their actor did not handle." },
    { "actor.debug.misuse", BOOL, "off", 0, 0, NULL,
      "Abort the process, and print where, when the program sends a message twice, uses a message "
      "after it was freed, or uses a ctx after its call has returned. Each tell costs more with "
      "it." },
    { "actor.debug.router-misconfiguration", BOOL, "off", 0, 0, NULL,
      "Log a warning when a deployment section sets router and the code makes a plain actor." },
    { "actor.default-mailbox.mailbox-type", CHOICE, "unbounded", 0, 0,
      "unbounded|bounded|control-aware|bounded-control-aware|counted",
      "Mailbox of actors for which neither their code, their deployment nor their dispatcher names "
      "one." },
    { "actor.default-mailbox.mailbox-capacity", INT, TEXT_OF(TRP_MAILBOX_CAPACITY_DEFAULT), 1,
      TRP_MAILBOX_CAPACITY_MAX, NULL, "Largest number of messages in a bounded mailbox." },
    { "actor.default-mailbox.mailbox-push-timeout-time", DURATION,
      MS_OF(TRP_MAILBOX_PUSH_TIMEOUT_DEFAULT_MS), -1000, HOURS, NULL,
      "How long a sender waits while a bounded mailbox is full; 0ms: not at all; -1s: without "
      "limit, which may deadlock." },
    { "actor.default-mailbox.overflow", CHOICE, "drop", 0, 0, "drop|notify",
      "When the mailbox is still full after that time: drop: the message becomes a dead letter; "
      "notify: trp_try_tell() refuses the message, and tells the sender when there is room "
      "again." },
    { "actor.default-mailbox.stash-capacity", INT, "-1", -1, 1000000000, NULL,
      "Messages that an actor may stash, when its code sets no bound; 0 or less: unbounded." },

    { "actor.mailbox.requirements.unbounded", TEXT, "unbounded", 0, 0, NULL,
      "Mailbox of actors that require an unbounded mailbox and for which no other one is "
      "configured." },
    { "actor.mailbox.requirements.bounded", TEXT, "bounded", 0, 0, NULL,
      "Mailbox of actors that require a bounded mailbox." },
    { "actor.mailbox.requirements.deque", TEXT, "unbounded-deque", 0, 0, NULL,
      "Mailbox of actors that require a deque: a mailbox that also takes messages at its front." },
    { "actor.mailbox.requirements.multi-consumer", TEXT, "unbounded", 0, 0, NULL,
      "Mailbox of actors that require multi-consumer: several actors may take messages from it." },
    { "actor.mailbox.requirements.priority", TEXT, "", 0, 0, NULL,
      "Mailbox of actors that require priority: it orders messages; empty: the default mailbox, "
      "which does not." },
    { "actor.mailbox.requirements.stable", TEXT, "", 0, 0, NULL,
      "Mailbox of actors that require stable: messages of equal priority keep their order; empty: "
      "the default mailbox." },
    { "actor.mailbox.requirements.durable", TEXT, "", 0, 0, NULL,
      "Mailbox of actors that require durable: its messages survive the process; empty: the "
      "default mailbox, whose messages do not." },
    { "actor.mailbox.requirements.control-aware", TEXT, "control-aware", 0, 0, NULL,
      "Mailbox of actors that require control-aware: control messages are delivered first." },
    { "actor.mailbox.requirements.counted", TEXT, "counted", 0, 0, NULL,
      "Mailbox of actors that require counted: its length is known without counting." },

    { "mailbox.*.mailbox-type", CHOICE, "unbounded", 0, 0,
      "unbounded|bounded|control-aware|bounded-control-aware|counted|peek",
      "Type of the mailbox that the section's title names." },
    { "mailbox.*.mailbox-capacity", INT, TEXT_OF(TRP_MAILBOX_CAPACITY_DEFAULT), 1,
      TRP_MAILBOX_CAPACITY_MAX, NULL, "Largest number of messages in a bounded mailbox." },
    { "mailbox.*.mailbox-push-timeout-time", DURATION,
      MS_OF(TRP_MAILBOX_PUSH_TIMEOUT_DEFAULT_MS), -1000, HOURS, NULL,
      "How long a sender waits while a bounded mailbox is full; 0ms: not at all; -1s: without "
      "limit, which may deadlock." },
    { "mailbox.*.overflow", CHOICE, "drop", 0, 0, "drop|notify",
      "When the mailbox is still full after that time: drop: the message becomes a dead letter; "
      "notify: trp_try_tell() refuses the message, and tells the sender when there is room "
      "again." },
    { "mailbox.*.max-retries", INT, TEXT_OF(TRP_MAILBOX_RETRIES_DEFAULT), 1,
      TRP_MAILBOX_RETRIES_MAX, NULL,
      "peek: how often a message is delivered again while trp_mailbox_ack() has not been called "
      "for it." },
    { "mailbox.*.max-tries", INT, TEXT_OF(TRP_MAILBOX_RETRIES_DEFAULT), 1,
      TRP_MAILBOX_RETRIES_MAX, NULL,
      "Another name of max-retries; when both are set, max-retries counts." },

    { "dispatcher.*.type", CHOICE, "pool", 0, 0,
      "pool|pinned|blocking|affinity|balancing|calling-thread|dispatcher|pinneddispatcher|"
      "balancingdispatcher",
      "Type of the dispatcher that the section's title names: dispatcher \"my-pool\" { type = pool "
      "}. Akka's Dispatcher is a pool, its PinnedDispatcher is pinned." },
    { "dispatcher.*.attempt-teamwork", BOOL, "on", 0, 0, NULL,
      "balancing: a message wakes any idle actor that shares the mailbox; off: only the actor that "
      "it was sent to." },
    { "dispatcher.*.throughput", INT, TEXT_OF(TRP_THROUGHPUT_DEFAULT), 1, TRP_THROUGHPUT_MAX, NULL,
      "Messages that an actor may handle in one turn before other actors run; if not set, that of "
      "the default dispatcher." },
    { "dispatcher.*.throughput-deadline-time", DURATION, "0ms", 0, HOURS, NULL,
      "Longest time of one turn: an actor also yields its worker after this time; 0ms: no "
      "deadline." },
    { "dispatcher.*.mailbox-type", TEXT, "", 0, 0, NULL,
      "Mailbox of its actors, by name; empty: the mailbox that they require, or the default "
      "mailbox." },
    { "dispatcher.*.mailbox-requirement", LIST, "", 0, 0, REQUIREMENTS,
      "Properties that the mailbox of each of its actors must have: any of unbounded, bounded, "
      "deque, multi-consumer, priority, stable, durable, control-aware, counted. The spawn of an "
      "actor whose mailbox lacks one is refused." },
    { "dispatcher.*.fork-join-executor.parallelism-min", INT,
      TEXT_OF(TRP_DISPATCHER_THREADS_MIN_DEFAULT), 1, TRP_DISPATCHER_THREADS_MAX, NULL,
      "Smallest number of threads of a pool; if not set, 1 for affinity and the maximum for "
      "blocking." },
    { "dispatcher.*.fork-join-executor.parallelism-factor", FLOAT,
      TEXT_OF(TRP_DISPATCHER_THREADS_FACTOR_DEFAULT), 0.001,
      TRP_DISPATCHER_THREADS_FACTOR_MAX, NULL,
      "Threads for each core, within the minimum and maximum; if not set, 1.0 for affinity." },
    { "dispatcher.*.fork-join-executor.parallelism-max", INT,
      TEXT_OF(TRP_DISPATCHER_THREADS_CAP_DEFAULT), 1, TRP_DISPATCHER_THREADS_MAX, NULL,
      "Largest number of threads; threads are started when they are needed." },
    { "dispatcher.*.thread-pool-executor.keep-alive-time", DURATION,
      MS_OF(TRP_DISPATCHER_KEEP_ALIVE_DEFAULT_MS), 1, DAYS, NULL,
      "An idle thread ends after this time, except with affinity." },
    { "dispatcher.*.shutdown-timeout", DURATION, MS_OF(TRP_DISPATCHER_SHUTDOWN_DEFAULT_MS), 1, DAYS,
      NULL, "When a dispatcher has had no actors for this time, its threads end." },

    { "deployment.*.dispatcher", TEXT, "", 0, 0, NULL,
      "Dispatcher of the actors with this path: deployment \"/service/*\" { dispatcher = pinned }; "
      "overrides the dispatcher that the code names; empty: the code decides. For a router: the "
      "dispatcher of its routees." },
    { "deployment.*.mailbox", TEXT, "", 0, 0, NULL,
      "Mailbox of these actors, by name; empty: the code or the dispatcher decides." },
    { "deployment.*.remote", TEXT, "", 0, 0, NULL,
      "Node on which the actors with this path are started: troupe.tcp://system@host:port." },
    { "deployment.*.router", TEXT, "from-code", 0, 0,
      "from-code|round-robin|random|smallest-mailbox|broadcast|scatter-gather|tail-chopping|"
      "balancing|consistent-hashing|adaptive",
      "Routing logic of a router that the code makes at this path, or the name of a registered "
      "logic; -pool or -group may be appended. from-code: the code decides, also about the keys "
      "below." },
    { "deployment.*.nr-of-instances", INT, "1", 1, TRP_ROUTEES_MAX, NULL,
      "Number of routees that the router starts as its children; unused when routees.paths is "
      "set." },
    { "deployment.*.target.nodes", LIST, "", 0, 0, NULL,
      "Nodes on which a router starts its routees, in turn: { \"troupe.tcp://system@host:port\" "
      "}." },
    { "deployment.*.routees.paths", LIST, "", 0, 0, NULL,
      "Paths of existing actors to route to; the router then starts no routees of its own." },
    { "deployment.*.cluster.enabled", BOOL, "off", 0, 0, NULL,
      "on: the router has routees on the members of the cluster that are Up; routees come and go "
      "with their nodes, and nr-of-instances is their total." },
    { "deployment.*.cluster.max-nr-of-instances-per-node", INT, "1", 1, TRP_ROUTEES_MAX, NULL,
      "Largest number of routees on one node; 1 with routees-path." },
    { "deployment.*.cluster.max-total-nr-of-instances", INT,
      TEXT_OF(TRP_CLUSTER_ROUTEES_DEFAULT), 1, TRP_ROUTEES_MAX, NULL,
      "Largest number of routees in the whole cluster; means the same as nr-of-instances, so set "
      "only one of them." },
    { "deployment.*.cluster.allow-local-routees", BOOL, "on", 0, 0, NULL,
      "on: the router's own node may have routees, too." },
    { "deployment.*.cluster.routees-path", TEXT, "", 0, 0, NULL,
      "Path of an actor to look up on each node, such as /user/worker; empty: the router starts "
      "its routees." },
    { "deployment.*.cluster.use-role", TEXT, "", 0, 0, NULL,
      "Only nodes with this role have routees; empty: all nodes." },
    { "deployment.*.within", DURATION, MS_OF(TRP_ROUTER_WITHIN_MS_DEFAULT), 1, HOURS, NULL,
      "scatter-gather, tail-chopping: how long the router waits for a reply." },
    { "deployment.*.tail-chopping-router.interval", DURATION,
      MS_OF(TRP_ROUTER_INTERVAL_MS_DEFAULT), 1, HOURS, NULL,
      "tail-chopping: pause before the next routee is asked." },
    { "deployment.*.virtual-nodes-factor", INT,
      TEXT_OF(TRP_ROUTER_VIRTUAL_NODES_DEFAULT), 1, TRP_ROUTER_VIRTUAL_NODES_MAX, NULL,
      "consistent-hashing: virtual nodes of each routee on the hash ring." },
    { "deployment.*.metrics-selector", TEXT, "mix", 0, 0, "mix|heap|cpu|load|memory",
      "adaptive: the metric by which the free capacity of a node is judged, or the name of a "
      "registered selector." },
    { "deployment.*.router-dispatcher", TEXT, "", 0, 0, NULL,
      "Dispatcher of the router's own actor, which manages the routees; empty: the code decides." },
    { "deployment.*.logic-settings", LIST, "", 0, 0, NULL,
      "Settings of a routing logic that the program registered, each \"KEY=VALUE\"; they override "
      "those of the code." },
    { "deployment.*.resizer.lower-bound", INT,
      TEXT_OF(TRP_RESIZER_LOWER_BOUND_DEFAULT), 1, TRP_ROUTEES_MAX, NULL,
      "Smallest number of routees. Setting any key of this section makes the pool grow and "
      "shrink." },
    { "deployment.*.resizer.upper-bound", INT,
      TEXT_OF(TRP_RESIZER_UPPER_BOUND_DEFAULT), 1, TRP_ROUTEES_MAX, NULL, "Largest number of "
                                                                          "routees." },
    { "deployment.*.resizer.pressure-threshold", INT,
      TEXT_OF(TRP_RESIZER_PRESSURE_THRESHOLD_DEFAULT), 0, 1000000000, NULL,
      "When a routee counts as busy. 0: it is handling a message; 1: and has at least one more in "
      "its mailbox; 2 and more: it has at least this many in its mailbox." },
    { "deployment.*.resizer.rampup-rate", FLOAT,
      TEXT_OF(TRP_RESIZER_RAMPUP_RATE_DEFAULT), 0, 65536, NULL,
      "When all routees are busy, their number grows by this fraction, rounded up." },
    { "deployment.*.resizer.backoff-threshold", FLOAT,
      TEXT_OF(TRP_RESIZER_BACKOFF_THRESHOLD_DEFAULT), -1, 1, NULL,
      "When a smaller fraction than this of the routees is busy, their number shrinks; 0 or less: "
      "never." },
    { "deployment.*.resizer.backoff-rate", FLOAT,
      TEXT_OF(TRP_RESIZER_BACKOFF_RATE_DEFAULT), 0, 1, NULL,
      "Fraction by which the number of routees shrinks, rounded up." },
    { "deployment.*.resizer.stop-delay", DURATION,
      MS_OF(TRP_RESIZER_STOP_DELAY_MS_DEFAULT), 0, HOURS, NULL,
      "Delay between the removal of a routee from the router and the poison pill that stops it." },
    { "deployment.*.resizer.messages-per-resize", INT,
      TEXT_OF(TRP_RESIZER_MESSAGES_PER_RESIZE_DEFAULT), 1, 1000000000, NULL,
      "Number of messages after which the load is checked again." },

    { "remote.transport", CHOICE, "tcp", 0, 0, "tcp|tls",
      "Transport between nodes; tls: TLS 1.3, with the files of remote.tls." },
    { "remote.hostname", TEXT, "127.0.0.1", 0, 0, NULL,
      "Host under which other nodes reach this node (advertised); not a wildcard." },
    { "remote.port", INT, "2552", 0, PORT_MAX, NULL,
      "Port under which other nodes reach this node; 0: any free port." },
    { "remote.bind-hostname", TEXT, "", 0, 0, NULL, "Host to listen on; empty: remote.hostname." },
    { "remote.bind-port", INT, "", 0, PORT_MAX, NULL, "Port to listen on; empty: remote.port." },
    { "remote.maximum-frame-size", SIZE, "256KiB", 32000, 64 * MIB, NULL,
      "Largest frame on the wire; a larger message becomes a dead letter." },
    { "remote.handshake-timeout", DURATION, "15s", 100, HOURS, NULL,
      "A connection whose handshake has not completed within this time is closed." },
    { "remote.lane-buffer-size", SIZE, "16MiB", 64 * KIB, 1024 * MIB, NULL,
      "Bytes that may be queued for one peer; above its high-water mark senders are slowed, and "
      "when it is full messages become dead letters." },
    { "remote.receiver-limit", SIZE, "64MiB", 256 * KIB, 1024 * MIB, NULL,
      "Bytes that may be queued for one receiver, at its own node and at each sending node; "
      "further messages become dead letters." },
    { "remote.receivers-limit", SIZE, "256MiB", 256 * KIB, 2048 * MIB, NULL,
      "Bytes that may be queued for all receivers of a node together; the more receivers have "
      "messages queued, the smaller the share of each." },
    { "remote.ordinary-lanes", INT, "1", 1, 8, NULL,
      "Number of connections for ordinary messages to each peer; all messages to one recipient use "
      "the same one." },
    { "remote.large-message-threshold", SIZE, "64KiB", KIB, 64 * MIB, NULL,
      "A recipient that is sent a larger message gets all its messages through the large-message "
      "lane, a connection of its own." },
    { "remote.large-lane-buffer-size", SIZE, "64MiB", 64 * KIB, 1024 * MIB, NULL,
      "Bytes that may be queued on the large-message lane for one peer." },
    { "remote.lane-idle-timeout", DURATION, "5m", 100, DAYS, NULL,
      "A lane that has carried nothing for this time is closed; it is opened again when needed." },
    { "remote.compression", CHOICE, "off", 0, 0, "off|lz4",
      "Compress messages on the large-message lane to peers that support it." },
    { "remote.wire-minor", INT, "4", 1, 4, NULL,
      "Highest minor version of the wire protocol (1.x) that this node speaks; each connection "
      "uses the lower one of its two ends." },
    { "remote.control-buffer-size", SIZE, "1MiB", 64 * KIB, 64 * MIB, NULL,
      "Bytes that may be queued on the control lane for one peer." },
    { "remote.system-message-buffer-size", INT, "20000", 16, 10000000, NULL,
      "System messages to one peer that may be unacknowledged; when there are more the peer is "
      "quarantined." },
    { "remote.retry-backoff-min", DURATION, "50ms", 1, HOURS, NULL,
      "First pause before a failed connection is tried again; the pause doubles each time." },
    { "remote.retry-backoff-max", DURATION, "10s", 1, HOURS, NULL,
      "Longest pause before a failed connection is tried again." },
    { "remote.flush-wait-on-shutdown", DURATION, "2s", 1, HOURS, NULL,
      "How long a stopping node waits until its queued messages have been sent." },
    { "remote.pending-handshakes-max", INT, "1024", 1, 1000000, NULL,
      "Connections whose handshake has not completed, limited also to a quarter of the process's "
      "descriptors; when there are more, the one that was silent longest is closed." },
    { "remote.unfinished-frames-max", SIZE, "64MiB", MIB, 1024 * MIB, NULL,
      "Bytes of incomplete frames on all connections together; a connection that would need more "
      "is closed, and a connection of a cluster member only above twice this limit." },
    { "remote.watches-per-peer", INT, "100000", 1, 10000000, NULL,
      "Watches of this node's actors that one peer may have; with one more the peer is "
      "quarantined." },
    { "remote.peers-max", INT, "16384", 16, 1000000, NULL,
      "Largest number of peers. When there are more, the peer that has been disconnected longest "
      "is forgotten; members of the cluster are never forgotten." },
    { "remote.peers-per-host", INT, "4096", 4, 1000000, NULL,
      "Largest number of peers that connected from one host, or with one certificate, and are not "
      "members of the cluster." },
    { "remote.named-nodes-per-host", INT, "4096", 16, 32768, NULL,
      "Further nodes that the peers of one host may name in messages (as sender or in refs). When "
      "there are more, the one that was named longest ago is forgotten, and messages to it become "
      "dead letters." },
    { "remote.handshake-bytes-max", SIZE, "64KiB", 8 * KIB, 16 * MIB, NULL,
      "Bytes that a connection may send before its handshake has completed; "
      "remote.handshake-timeout limits the time." },
    { "remote.tls.ca", TEXT, "", 0, 0, NULL,
      "PEM file with the authorities whose certificates this node accepts (`troupe cert ca`)." },
    { "remote.tls.cert", TEXT, "", 0, 0, NULL,
      "PEM file with this node's certificate (`troupe cert node`)." },
    { "remote.tls.key", TEXT, "", 0, 0, NULL, "PEM file with the key of this node's certificate, "
                                              "not encrypted." },
    { "remote.tls.crl", TEXT, "", 0, 0, NULL,
      "PEM file with the list of revoked certificates (`troupe cert revoke`); empty: none." },
    { "remote.tls.enabled-algorithms", LIST, "", 0, 0, NULL,
      "Cipher suites of TLS 1.3, preferred ones first; empty: AES-128-GCM, AES-256-GCM, "
      "ChaCha20." },
    { "remote.tls.allowed-names", LIST, "", 0, 0, NULL,
      "Accept only peers whose certificate is for one of these hosts; empty: every certificate of "
      "the authority." },
    { "remote.tls.verify-peer-address", BOOL, "on", 0, 0, NULL,
      "A peer's certificate must be for the host of its address; off: any host." },
    { "remote.tls.reload-interval", DURATION, "1m", 0, DAYS, NULL,
      "How often the files are checked; a changed file is read again; 0ms: only on SIGHUP." },
    { "remote.tls.old-connections-end-after", DURATION, "1h", 1, 30 * DAYS, NULL,
      "Connections that were made with files or a cookie that have been replaced since are closed "
      "after this time." },
    { "remote.tls.expiry-warning", DURATION, "14d", 1, 45 * DAYS, NULL,
      "A certificate that expires within this time is reported as a problem: in the log, by "
      "`status` and by `why`." },
    { "remote.untrusted-mode", BOOL, "off", 0, 0, NULL,
      "on: peers may not watch, stop or kill actors of this node, nor select paths that are not "
      "trusted." },
    { "remote.deployment-allowed", LIST, "", 0, 0, NULL,
      "Behaviours of which peers may start actors on this node: \"bank.teller\", \"bank.*\"; "
      "empty: all that are registered by name; \"none\": none." },
    { "remote.deployment-timeout", DURATION, "15s", 100, HOURS, NULL,
      "A remote child whose node has not confirmed it within this time is terminated." },
    { "remote.trusted-selection-paths", LIST, "", 0, 0, NULL,
      "Paths that peers may select in untrusted mode; \"/system/cluster\" allows nodes to join." },
    { "remote.cookie", BOOL, "on", 0, 0, NULL,
      "On loopback without TLS and require-cookie: peers must know the cookie of this user, the "
      "file `cookie` in $STATE_DIRECTORY, else $XDG_CONFIG_HOME/troupe, else ~/.config/troupe; the "
      "first node creates it. off: any local user may command the actors of this node." },
    { "remote.require-cookie", BOOL, "off", 0, 0, NULL,
      "on: peers must prove that they know remote.secure-cookie; the cookie itself is never "
      "sent." },
    { "remote.secure-cookie", TEXT, "", 0, 0, NULL,
      "Secret that all nodes of a cluster share (`troupe cookie gen`); never shown or logged." },
    { "remote.secure-cookie-before", TEXT, "", 0, 0, NULL,
      "The previous secret: accepted as well, while the nodes are changed to the new one by one." },
    { "remote.secure-cookie-file", TEXT, "", 0, 0, NULL,
      "File with secure-cookie, and perhaps secure-cookie-before in a second line, in place of "
      "both keys; refused when other users may read it." },
    { "remote.when-quarantined", CHOICE, "stay", 0, 0, "stay|end",
      "What this node does when a peer has quarantined it, so that the two never communicate "
      "again. end: exit with code 76; stay: go on for the other peers." },
    { "remote.test-adapters", BOOL, "off", 0, 0, NULL,
      "For tests: `troupe fault` and the multi-node kit may inject faults into this node's "
      "network." },
    { "remote.adapters-in-address", BOOL, "off", 0, 0, NULL,
      "on, with test-adapters: the node's address shows the adapters, "
      "troupe.trttl.gremlin.tcp://...; such nodes communicate only with one another." },
    { "remote.watch-failure-detector.implementation-class", TEXT, "phi-accrual", 0, 0,
      "phi-accrual|deadline",
      "Failure detector: phi-accrual, deadline (interval and pause), or the name of one that the "
      "program registered." },
    { "remote.watch-failure-detector.threshold", FLOAT, "10.0", 0.1, 100, NULL,
      "Phi at which the node of a watched actor is considered dead." },
    { "remote.watch-failure-detector.heartbeat-interval", DURATION, "1s", 10, HOURS, NULL,
      "Pause between heartbeats to nodes with watched actors." },
    { "remote.watch-failure-detector.acceptable-heartbeat-pause", DURATION, "4s", 1, HOURS, NULL,
      "How long heartbeats may be missing before suspicion begins." },
    { "remote.watch-failure-detector.max-sample-size", INT, "200", 2, 100000, NULL,
      "Number of intervals between heartbeats in the history." },
    { "remote.watch-failure-detector.min-std-deviation", DURATION, "100ms", 1, HOURS, NULL,
      "Smallest standard deviation that is assumed for those intervals." },
    { "remote.watch-failure-detector.expected-response-after", DURATION, "3s", 1, HOURS, NULL,
      "A node that has never answered is judged as if it had answered at this time after the first "
      "heartbeat." },
    { "remote.transport-failure-detector.implementation-class", TEXT, "phi-accrual", 0, 0,
      "phi-accrual|deadline",
      "Failure detector: phi-accrual, deadline (interval and pause), or the name of one that the "
      "program registered." },
    { "remote.transport-failure-detector.threshold", FLOAT, "7.0", 0.1, 100, NULL,
      "Phi at which a connection is considered dead and is replaced." },
    { "remote.transport-failure-detector.heartbeat-interval", DURATION, "1s", 10, HOURS, NULL,
      "Pause between heartbeats on the control lane, while the association is active." },
    { "remote.transport-failure-detector.acceptable-heartbeat-pause", DURATION, "3s", 1, HOURS,
      NULL, "How long heartbeats may be missing before suspicion begins." },
    { "remote.transport-failure-detector.max-sample-size", INT, "100", 2, 100000, NULL,
      "Number of intervals between heartbeats in the history." },
    { "remote.transport-failure-detector.min-std-deviation", DURATION, "100ms", 1, HOURS, NULL,
      "Smallest standard deviation that is assumed for those intervals." },
    { "remote.resend-interval", DURATION, "1s", 10, HOURS, NULL,
      "A system message that is not acknowledged within this time is retransmitted." },
    { "remote.give-up-system-message-after", DURATION, "6h", 1000, 24 * HOURS, NULL,
      "A peer that has not acknowledged a system message within this time is quarantined." },
    { "remote.log-remote-lifecycle-events", CHOICE, "on", 0, 0,
      "on|off|error|warning|info|debug",
      "Log changes of associations. on: each at its own level; off: none; a level: all at this "
      "level." },
    { "remote.log-sent-messages", BOOL, "off", 0, 0, NULL,
      "Log each message that is sent to another node, at level debug: type, size, receiver." },
    { "remote.log-received-messages", BOOL, "off", 0, 0, NULL,
      "Log each message that arrives from another node, at level debug." },
    { "remote.log-frame-size-exceeding", SIZE, "0", 0, 64 * MIB, NULL,
      "Log a message type when its payload is larger than this, and again when it has grown by a "
      "tenth. 0: never." },

    { "cluster.seed-nodes", LIST, "", 0, 0, NULL,
      "Addresses of seed nodes to join at start; a node whose own address (or the word self) is "
      "the first may start a cluster." },
    { "cluster.seed-dns.name", TEXT, "", 0, 0, NULL,
      "In place of seed-nodes: a host name whose addresses are seed nodes, or a name of SRV "
      "records, which begins with '_'. It is looked up again, every cluster.seed-dns.interval, "
      "until this node has joined." },
    { "cluster.seed-dns.port", INT, "2552", 1, PORT_MAX, NULL,
      "Port of the seed nodes at the addresses of a host name; SRV records name their own port." },
    { "cluster.seed-dns.nameserver", TEXT, "", 0, 0, NULL,
      "Name server to ask, such as 10.0.0.53 or 10.0.0.53:5353; empty: those of the system." },
    { "cluster.seed-dns.interval", DURATION, "1s", 50, HOURS, NULL,
      "Pause between two look-ups while this node joins." },
    { "cluster.seed-dns.required-contact-point-nr", INT, "2", 1, TRP_CLUSTER_SEEDS_MAX, NULL,
      "A new cluster is formed only when this many addresses were found and have not changed for "
      "seed-node-timeout, and only by the node with the lowest address." },
    { "cluster.roles", LIST, "", 0, 0, NULL, "Roles of this node, by which other nodes choose "
                                             "it." },
    { "cluster.app-version", TEXT, "0.0.0", 0, 0, NULL,
      "Version of the application, shown for each member." },
    { "cluster.log-info", BOOL, "on", 0, 0, NULL,
      "off: changes of membership are not logged at level info." },
    { "cluster.may-create-cluster", BOOL, "on", 0, 0, NULL,
      "off: this node never starts a new cluster, even as the first seed node." },
    { "cluster.enforce-compatible", BOOL, "on", 0, 0, NULL,
      "off: a node joins, with a warning, although its downing strategy or a similar setting "
      "differs from the cluster's; a node with another system name or cookie is still refused." },
    { "cluster.seed-check-interval", DURATION, "10s", 0, HOURS, NULL,
      "How often a member asks seed nodes that are not members whether they are in another cluster "
      "of the same name, which `status` and `why` then report. In a large cluster the leader asks "
      "this often, the other members less often. 0: never." },
    { "cluster.auto-down", BOOL, "off", 0, 0, NULL,
      "Akka 2.2's key: on means downing.active-strategy = auto-down-after; off leaves the decision "
      "to active-strategy." },
    { "cluster.unreachable-nodes-reaper-interval", DURATION, "1s", 1, HOURS, NULL,
      "Akka's key, without effect here: heartbeats are checked four times each "
      "heartbeat-interval." },
    { "cluster.seed-node-timeout", DURATION, "5s", 50, HOURS, NULL,
      "How long a joining node waits for the answers of the seed nodes." },
    { "cluster.retry-unsuccessful-join-after", DURATION, "10s", 0, HOURS, NULL,
      "When no welcome has arrived after this time, the join is tried through another seed node; "
      "off: never." },
    { "cluster.allow-weakly-up-members", DURATION, "off", 0, HOURS, NULL,
      "When the members have not converged for this time, joining nodes become WeaklyUp; off: they "
      "wait for convergence." },
    { "cluster.min-nr-of-members", INT, "1", 1, TRP_CLUSTER_MEMBERS_MAX, NULL,
      "Number of members that must have joined before any of them becomes Up." },
    { "cluster.role.*.min-nr-of-members", INT, "1", 1, TRP_CLUSTER_MEMBERS_MAX, NULL,
      "Number of members with this role that must have joined before any member becomes Up: role "
      "\"backend\" { min-nr-of-members = 2 }." },
    { "cluster.gossip-interval", DURATION, "1s", 10, HOURS, NULL, "Pause between gossip rounds." },
    { "cluster.leader-actions-interval", DURATION, "1s", 10, HOURS, NULL,
      "How often the leader checks for members whose status can change." },
    { "cluster.gossip-time-to-live", DURATION, "2s", 100, HOURS, NULL,
      "Gossip that has been queued at this node for longer is dropped." },
    { "cluster.prune-gossip-tombstones-after", DURATION, "24h", 1000, 30 * DAYS, NULL,
      "How long the tombstone of a removed member is kept." },
    { "cluster.quarantine-removed-node-after", DURATION, "5s", 1, HOURS, NULL,
      "A member that was removed after Down is quarantined after this time." },
    { "cluster.publish-stats-interval", DURATION, "off", 0, HOURS, NULL,
      "How often the statistics of gossip are logged, at level info; 0s: whenever they change; "
      "off: never." },
    { "cluster.gossip-different-view-probability", FLOAT, "0.8", 0, 1, NULL,
      "Probability that a gossip round chooses a member whose view differs, if there is one." },
    { "cluster.leave-timeout", DURATION, "45s", 100, DAYS, NULL,
      "How long a node that was told to stop waits until it has left the cluster, counted from the "
      "phase cluster-leave." },
    { "cluster.run-coordinated-shutdown-when-down", BOOL, "on", 0, 0, NULL,
      "off: a node that was downed ends at once, without the phases of coordinated shutdown." },
    { "cluster.control-socket", BOOL, "off", 0, 0, NULL,
      "on: a program that embeds the library has a control socket, as troupe node always has." },
    { "cluster.failure-detector.implementation-class", TEXT, "phi-accrual", 0, 0,
      "phi-accrual|deadline",
      "Failure detector: phi-accrual, deadline (interval and pause), or the name of one that the "
      "program registered." },
    { "cluster.failure-detector.threshold", FLOAT, "8.0", 0.1, 100, NULL,
      "Phi at which a member is considered unreachable." },
    { "cluster.failure-detector.heartbeat-interval", DURATION, "1s", 10, HOURS, NULL,
      "Pause between heartbeats." },
    { "cluster.failure-detector.acceptable-heartbeat-pause", DURATION, "3s", 1, HOURS, NULL,
      "How long heartbeats may be missing before suspicion begins." },
    { "cluster.failure-detector.min-std-deviation", DURATION, "100ms", 1, HOURS, NULL,
      "Smallest standard deviation that is assumed for the heartbeat history." },
    { "cluster.failure-detector.max-sample-size", INT, "1000", 2, 100000, NULL,
      "Number of heartbeats in the history." },
    { "cluster.failure-detector.monitored-by-nr-of-members", INT, "5", 1, 1000, NULL,
      "Number of neighbours on the ring that monitor each member by heartbeats." },
    { "cluster.failure-detector.nr-of-end-heartbeats", INT, "8", 0, 1000, NULL,
      "Akka's key, without effect here: each heartbeat is a request that is answered." },
    { "cluster.failure-detector.expected-response-after", DURATION, "3s", 1, HOURS, NULL,
      "A member that has never answered is judged as if it had answered at this time after the "
      "first heartbeat." },
    { "cluster.downing.active-strategy", CHOICE, "keep-majority", 0, 0,
      "manual|auto-down-after|keep-majority|static-quorum|keep-oldest|keep-referee|down-all|lease",
      "Strategy that decides which unreachable members are marked Down, and which side of a "
      "partition survives; Akka 2.2 has only manual (off) and auto-down." },
    { "cluster.downing.stable-after", DURATION, "20s", 1, DAYS, NULL,
      "How long reachability must have been unchanged before a split brain resolver decides." },
    { "cluster.downing.down-all-when-unstable", DURATION, "15s", 0, DAYS, "on|off",
      "Members are unreachable, and reachability has kept changing for stable-after and this time: "
      "the unreachable members are removed if the remaining ones may go on by the strategy, else "
      "all members stop. on: the default; 0s, off: never." },
    { "cluster.downing.auto-down-after", DURATION, "5s", 1, DAYS, NULL,
      "auto-down-after: a member that has been unreachable for this time is marked Down (Akka: "
      "cluster.auto-down)." },
    { "cluster.downing.keep-majority.role", TEXT, "", 0, 0, NULL,
      "Count only members with this role; empty: all members." },
    { "cluster.downing.static-quorum.quorum-size", INT, "3", 1, 100000, NULL,
      "Minimum number of members for a side to survive. A cluster of more than 2 * quorum-size - 1 "
      "members downs itself entirely." },
    { "cluster.downing.static-quorum.role", TEXT, "", 0, 0, NULL,
      "Count only members with this role; empty: all members." },
    { "cluster.downing.keep-oldest.down-if-alone", BOOL, "on", 0, 0, NULL,
      "on: the oldest member stops when it is alone on its side and there are several others." },
    { "cluster.downing.keep-oldest.role", TEXT, "", 0, 0, NULL,
      "Consider only members with this role for the oldest one; empty: all members." },
    { "cluster.downing.keep-referee.address", TEXT, "", 0, 0, NULL,
      "Address of the referee: the side with this node survives; such as "
      "troupe.tcp://demo@10.0.0.1:2552." },
    { "cluster.downing.keep-referee.down-all-if-less-than-nodes", INT, "1", 1, 100000, NULL,
      "When the side with the referee has fewer members than this, it stops, too." },
    { "cluster.downing.lease.file", TEXT, "", 0, 0, NULL,
      "lease: the side whose node gets a lock on this file survives. The file must be on a file "
      "system that all nodes share and that supports locks between hosts (NFS 4, CephFS, GFS2); "
      "empty: a plugin registers a lease (troupe/lease.h)." },
    { "cluster.downing.lease.name", TEXT, "", 0, 0, NULL,
      "Name of the lease; empty: SYSTEM-lease." },
    { "cluster.downing.lease.acquire-lease-delay-for-minority", DURATION, "2s", 1, HOURS, NULL,
      "The smaller side waits this much longer before it asks for the lease." },
    { "cluster.downing.lease.release-after", DURATION, "40s", 1, DAYS, NULL,
      "How long the lease is kept after all members are reachable again; raised to at least 5 * "
      "stable-after + down-all-when-unstable + acquire-lease-delay-for-minority + "
      "operation-timeout." },
    { "cluster.downing.lease.operation-timeout", DURATION, "5s", 1, HOURS, NULL,
      "A request for the lease that is not answered within this time counts as refused." },
    { "cluster.downing.lease.role", TEXT, "", 0, 0, NULL,
      "Count only members with this role to find the smaller side; empty: all members." },
    { "cluster.metrics.enabled", BOOL, "on", 0, 0, NULL,
      "off: this node neither measures itself nor receives the metrics of others; adaptive routers "
      "then give each node the same share." },
    { "cluster.metrics.collector-class", TEXT, "proc", 0, 0, NULL,
      "Collector of metrics: proc (files of Linux), or the name of a registered collector." },
    { "cluster.metrics.collect-interval", DURATION, "3s", 10, HOURS, NULL,
      "Pause between measurements." },
    { "cluster.metrics.gossip-interval", DURATION, "3s", 10, HOURS, NULL,
      "Pause between gossip rounds of metrics." },
    { "cluster.metrics.moving-average-half-life", DURATION, "12s", 1, DAYS, NULL,
      "Half-life of a sample in the moving average; a smaller value gives newer samples more "
      "weight." },

    { "coordinated-shutdown.default-phase-timeout", DURATION, "5s", 1, DAYS, NULL,
      "Timeout of each phase of coordinated shutdown that has no timeout of its own." },
    { "coordinated-shutdown.phases.*.timeout", DURATION, "5s", 1, DAYS, NULL,
      "Timeout of this phase: phases \"service-stop\" { timeout = 10s }. If not set: "
      "cluster.leave-timeout for cluster-leave to cluster-shutdown, 10s for "
      "cluster-sharding-shutdown-region and actor-system-terminate." },
    { "coordinated-shutdown.phases.*.depends-on", LIST, "", 0, 0, NULL,
      "Phases that must be complete before this one begins; a section whose title is not a phase "
      "yet adds a phase." },
    { "coordinated-shutdown.phases.*.recover", BOOL, "on", 0, 0, NULL,
      "off: when the phase fails or times out, the phases that follow it are skipped." },
    { "coordinated-shutdown.phases.*.enabled", BOOL, "on", 0, 0, NULL,
      "off: the tasks of the phase are not run." },

    { "control.socket", TEXT, "", 0, 0, NULL,
      "Path of the control socket; empty: SYSTEM@PORT.sock in $XDG_RUNTIME_DIR/troupe or "
      "/run/troupe." },
    { "log.level", CHOICE, "info", 0, 0, "error|warning|info|debug|off",
      "Lowest level that is logged." },
    { "log.stdout-level", CHOICE, "warning", 0, 0, "error|warning|info|debug|off",
      "Lowest level that is logged while no logger runs: at the start and at the end of a "
      "system." },
    { "log.format", CHOICE, "text", 0, 0, "text|json|journald",
      "Format of a log line: text, a JSON object, or text with the priority that journald reads "
      "(<4>)." },
    { "log.file", TEXT, "", 0, 0, NULL,
      "File to which `troupe node` appends its log lines; empty: standard error. After a rotation, "
      "SIGUSR1 makes the node open the file again." },
    { "log.dead-letters", INT, "10", 0, 4294967294, "on|off",
      "Number of dead letters that are logged, at level info; on: all; off: none." },
    { "log.dead-letters-during-shutdown", BOOL, "on", 0, 0, NULL,
      "off: dead letters of a system that is stopping are counted, but not logged." },
    { "log.loggers", LIST, "default", 0, 0, NULL,
      "Loggers, in this order: default, and names of loggers that the program registered; if not "
      "set, default and those that its code starts." },
    { "log.logger-startup-timeout", DURATION, MS_OF(TRP_LOGGER_START_MS_DEFAULT), 1, HOURS, NULL,
      "How long a logger of the program may take to report that it is ready." },
    { "log.queue-size", INT, TEXT_OF(TRP_LOG_QUEUE_DEFAULT), 1, 1000000000, NULL,
      "Log lines that may be queued for one logger; further lines are dropped and counted." },

    { "scheduler.tick-duration", DURATION, MS_OF(TRP_TICK_MS_DEFAULT), 1, TRP_TICK_MS_MAX, NULL,
      "Resolution of the timers: a timer fires at the first tick after it is due; Akka's default "
      "is 10ms." },
    { "scheduler.ticks-per-wheel", INT, TEXT_OF(TRP_WHEEL_TICKS_DEFAULT), TRP_WHEEL_TICKS_MIN,
      TRP_WHEEL_TICKS_MAX, NULL,
      "Slots of each timer wheel, a power of two; Akka's default is 512 in one wheel." },
    { "scheduler.schedules-max", INT, "16777216", 16, TRP_SCHEDULES_MAX, NULL,
      "Largest number of schedules at one time, including the timers of actors and of the "
      "system." },
    { "scheduler.shutdown-timeout", DURATION, MS_OF(TRP_SCHEDULER_STOP_MS_DEFAULT), 1, HOURS, NULL,
      "How long the end of a system waits for scheduled functions that are running." },

    { "management.bind", TEXT, "127.0.0.1", 0, 0, NULL,
      "Without effect, like all keys of management: this version has no HTTP interface; `troupe` "
      "uses the control socket." },
    { "management.port", INT, "8558", 0, 65535, NULL, "Without effect." },
    { "management.read-only", BOOL, "on", 0, 0, NULL, "Without effect." },
    { "management.route-providers-read-only", BOOL, "on", 0, 0, NULL, "Without effect." },

    { "test.timefactor", FLOAT, "1.0", 0.001, 1000000, NULL,
      "Factor for all time limits of the test kit, for slow machines." },
    { "test.single-expect-default", DURATION, MS_OF(TRP_TEST_EXPECT_MS_DEFAULT), 1, HOURS, NULL,
      "How long a probe waits for an expected message when the test names no time." },
    { "test.filter-leeway", DURATION, MS_OF(TRP_TEST_LEEWAY_MS_DEFAULT), 1, HOURS, NULL,
      "How long an event filter waits for events that are still missing." },
    { "test.default-timeout", DURATION, MS_OF(TRP_TEST_TIMEOUT_MS_DEFAULT), 1, HOURS, NULL,
      "Timeout of asks and stops of the test kit." },
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
    bool is_secret = strncmp(entry->key, secret, sizeof secret - 1) == 0 &&
                     strcmp(entry->key + sizeof secret - 1, "-file") != 0;
    return *value != '\0' && is_secret ? "(secret)" : value;
}

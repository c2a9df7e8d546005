/* keys.c - the configuration keys of remoting. */
#include "remote/remote.h"

#include "base/config_keys.h"
#include "remote/association/redelivery.h"
#include "remote/wire/frame.h"

/* clang-format off */
/* Of remoting. */
static const trpi_config_row remote_rows[] = {
    { "remote.transport", CHOICE, "tcp", 0, 0, "tcp|tls",
      "Transport between nodes; tls: TLS 1.3, with the files of remote.tls." },
    { "remote.driver", CHOICE, "poll", 0, 0, "nng|poll",
      "Driver of connections: the workers themselves, which poll the sockets, or nng's threads. "
      "Both speak the same wire." },
    { "remote.hostname", TEXT, "127.0.0.1", 0, 0, NULL,
      "Host under which other nodes reach this node (advertised); not a wildcard." },
    { "remote.port", INT, "2552", 0, PORT_MAX, NULL,
      "Port under which other nodes reach this node; 0: any free port." },
    { "remote.bind-hostname", TEXT, "", 0, 0, NULL, "Host to listen on; empty: remote.hostname." },
    { "remote.bind-port", INT, "", 0, PORT_MAX, NULL, "Port to listen on; empty: remote.port." },
    { "remote.maximum-frame-size", SIZE, KIB_OF(TRPI_FRAME_KIB_DEFAULT),
      32000, 64 * MIB, NULL,
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
    { "remote.wire-minor", INT, TEXT_OF(TRPI_WIRE_MINOR), 1, TRPI_WIRE_MINOR, NULL,
      "Highest minor version of the wire protocol (1.x) that this node speaks; each connection "
      "uses the lower one of its two ends." },
    { "remote.control-buffer-size", SIZE, "1MiB", 64 * KIB, 64 * MIB, NULL,
      "Bytes that may be queued on the control lane for one peer." },
    { "remote.system-message-buffer-size", INT, TEXT_OF(TRPI_SYSTEM_MESSAGES_DEFAULT), 16,
      10000000, NULL,
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
      "Secret that all nodes of a cluster share (`troupe cookie gen`); never shown or logged.",
      true },
    { "remote.secure-cookie-before", TEXT, "", 0, 0, NULL,
      "The previous secret: accepted as well, while the nodes are changed to the new one by one.",
      true },
    { "remote.secure-cookie-file", TEXT, "", 0, 0, NULL,
      "File with secure-cookie, and optionally secure-cookie-before in a second line, in place of "
      "both keys; refused when other users may read it." },
    { "remote.when-quarantined", CHOICE, "stay", 0, 0, "stay|end",
      "After a peer has quarantined this node, the two never communicate again. end: exit with "
      "code 76; stay: continue for the other peers." },
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
    { NULL, TEXT, NULL, 0, 0, NULL, NULL, false },
};

static const trpi_config_alias remote_aliases[] = {
    { "remote.netty.ssl.security.trust-store", "remote.tls.ca" },
    { "remote.netty.ssl.security.key-store", "remote.tls.cert" },
    { "remote.netty.ssl.security.enabled-algorithms", "remote.tls.enabled-algorithms" },
    { "tls.ca", "remote.tls.ca" },
    { "tls.cert", "remote.tls.cert" },
    { "tls.key", "remote.tls.key" },
    { NULL, NULL },
};

const trpi_config_part trpi_remote_keys = KEYS_OF(remote_rows, remote_aliases);
/* clang-format on */

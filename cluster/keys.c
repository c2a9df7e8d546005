/* keys.c - the keys of the cluster and of its routers. */
#include "cluster/cluster.h"

#include <troupe/cluster.h>
#include <troupe/router.h>

#include "base/config_keys.h"

/* clang-format off */
/* Of a cluster-aware router in deployment. */
static const trpi_config_row router_rows[] = {
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
    { "deployment.*.metrics-selector", TEXT, "mix", 0, 0, "mix|heap|cpu|load|memory",
      "adaptive: the metric by which the free capacity of a node is judged, or the name of a "
      "registered selector." },
    { NULL, TEXT, NULL, 0, 0, NULL, NULL, false },
};

const trpi_config_part trpi_cluster_router_keys = KEYS_OF(router_rows, NULL);

/* Of the cluster. */
static const trpi_config_row cluster_rows[] = {
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
    { "cluster.seed-dns.required-contact-point-nr", INT,
      TEXT_OF(TRPI_MEMBER_CONTACT_POINTS_DEFAULT), 1, TRP_CLUSTER_SEEDS_MAX, NULL,
      "A new cluster is formed only when this many addresses were found and have not changed for "
      "seed-node-timeout, and only by the node with the lowest address." },
    { "cluster.roles", LIST, "", 0, 0, NULL, "Roles of this node, by which other nodes choose "
                                             "it." },
    { "cluster.app-version", TEXT, TRPI_CLUSTER_APP_VERSION_DEFAULT, 0, 0, NULL,
      "Version of the application, shown for each member." },
    { "cluster.log-info", BOOL, "on", 0, 0, NULL,
      "off: changes of membership are not logged at level info." },
    { "cluster.may-create-cluster", BOOL, "on", 0, 0, NULL,
      "off: this node never starts a new cluster, even as the first seed node." },
    { "cluster.enforce-compatible", BOOL, "on", 0, 0, NULL,
      "off: a node joins, with a warning, although its downing strategy or a similar setting "
      "differs from the cluster's; a node with another system name or cookie is still refused." },
    { "cluster.seed-check-interval", DURATION,
      SECONDS_OF(TRPI_MEMBER_SEED_CHECK_S_DEFAULT), 0, HOURS, NULL,
      "How often a member asks seed nodes that are not members whether they are in another cluster "
      "of the same name, which `status` and `why` then report. In a large cluster the leader asks "
      "this often, the other members less often. 0: never." },
    { "cluster.auto-down", BOOL, "off", 0, 0, NULL,
      "Akka 2.2's key: on means downing.active-strategy = auto-down-after; off leaves the decision "
      "to active-strategy." },
    { "cluster.unreachable-nodes-reaper-interval", DURATION, "1s", 1, HOURS, NULL,
      "Akka's key, without effect here: heartbeats are checked four times each "
      "heartbeat-interval." },
    { "cluster.seed-node-timeout", DURATION,
      SECONDS_OF(TRPI_MEMBER_SEED_NODE_TIMEOUT_S_DEFAULT), 50, HOURS, NULL,
      "How long a joining node waits for the answers of the seed nodes." },
    { "cluster.retry-unsuccessful-join-after", DURATION,
      SECONDS_OF(TRPI_MEMBER_JOIN_RETRY_S_DEFAULT), 0, HOURS, NULL,
      "When no welcome has arrived after this time, the join is tried through another seed node; "
      "off: never." },
    { "cluster.allow-weakly-up-members", DURATION, "off", 0, HOURS, NULL,
      "When the members have not converged for this time, joining nodes become WeaklyUp; off: they "
      "wait for convergence." },
    { "cluster.min-nr-of-members", INT,
      TEXT_OF(TRPI_MEMBER_MIN_MEMBERS_DEFAULT), 1, TRP_CLUSTER_MEMBERS_MAX, NULL,
      "Number of members that must have joined before any of them becomes Up." },
    { "cluster.role.*.min-nr-of-members", INT, "1", 1, TRP_CLUSTER_MEMBERS_MAX, NULL,
      "Number of members with this role that must have joined before any member becomes Up: role "
      "\"backend\" { min-nr-of-members = 2 }." },
    { "cluster.gossip-interval", DURATION,
      SECONDS_OF(TRPI_MEMBER_GOSSIP_INTERVAL_S_DEFAULT), 10, HOURS, NULL,
      "Pause between gossip rounds." },
    { "cluster.leader-actions-interval", DURATION,
      SECONDS_OF(TRPI_MEMBER_LEADER_ACTIONS_INTERVAL_S_DEFAULT), 10, HOURS, NULL,
      "How often the leader checks for members whose status can change." },
    { "cluster.gossip-time-to-live", DURATION,
      SECONDS_OF(TRPI_MEMBER_GOSSIP_TTL_S_DEFAULT), 100, HOURS, NULL,
      "Gossip that has been queued at this node for longer is dropped." },
    { "cluster.prune-gossip-tombstones-after", DURATION,
      HOURS_OF(TRPI_MEMBER_PRUNE_AFTER_H_DEFAULT), 1000, 30 * DAYS, NULL,
      "How long the tombstone of a removed member is kept." },
    { "cluster.quarantine-removed-node-after", DURATION,
      SECONDS_OF(TRPI_CLUSTER_QUARANTINE_AFTER_S_DEFAULT), 1, HOURS, NULL,
      "A member that was removed after Down is quarantined after this time." },
    { "cluster.publish-stats-interval", DURATION, "off", 0, HOURS, NULL,
      "How often the statistics of gossip are logged, at level info; 0s: whenever they change; "
      "off: never." },
    { "cluster.gossip-different-view-probability", FLOAT,
      TEXT_OF(TRPI_MEMBER_DIFFERENT_VIEW_DEFAULT), 0, 1, NULL,
      "Probability that a gossip round chooses a member whose view differs, if there is one." },
    { "cluster.leave-timeout", DURATION, "45s", 100, DAYS, NULL,
      "How long a node that was told to stop waits until it has left the cluster, counted from the "
      "phase cluster-leave." },
    { "cluster.down-removal-margin", DURATION, "0s", 0, DAYS, NULL,
      "After the removal of a member that no split brain resolver decided (troupe down, "
      "auto-down-after) the singletons and entities that it hosted are started elsewhere so much "
      "later. 0s: after downing.stable-after. troupe down --dead skips it." },
    { "cluster.pub-sub.role", TEXT, "", 0, 0, NULL,
      "Only nodes with this role have the default mediator of publish and subscribe; empty: all "
      "nodes." },
    { "cluster.pub-sub.gossip-interval", DURATION, "100ms", 10, HOURS, NULL,
      "How long changes of who subscribes to what are gathered before they are sent to the other "
      "nodes; nothing is sent when nothing has changed." },
    { "cluster.pub-sub.gossip-bytes", SIZE, "256KiB", 2 * KIB, 64 * MIB,
      NULL, "Most bytes of such changes in one gossip-interval, to all nodes together." },
    { "cluster.run-coordinated-shutdown-when-down", BOOL, "on", 0, 0, NULL,
      "off: a node that was downed ends at once, without the phases of coordinated shutdown." },
    { "cluster.control-socket", BOOL, "off", 0, 0, NULL,
      "on: a program that embeds the library has a control socket, as troupe node always has." },
    { "cluster.failure-detector.implementation-class", TEXT, "phi-accrual", 0, 0,
      "phi-accrual|deadline",
      "Failure detector: phi-accrual, deadline (interval and pause), or the name of one that the "
      "program registered." },
    { "cluster.failure-detector.threshold", FLOAT,
      TEXT_OF(TRPI_PHI_THRESHOLD_DEFAULT), 0.1, 100, NULL,
      "Phi at which a member is considered unreachable." },
    { "cluster.failure-detector.heartbeat-interval", DURATION,
      SECONDS_OF(TRPI_PHI_INTERVAL_S_DEFAULT), 10, HOURS, NULL,
      "Pause between heartbeats." },
    { "cluster.failure-detector.acceptable-heartbeat-pause", DURATION,
      SECONDS_OF(TRPI_PHI_PAUSE_S_DEFAULT), 1, HOURS, NULL,
      "How long heartbeats may be missing before suspicion begins." },
    { "cluster.failure-detector.min-std-deviation", DURATION,
      MS_OF(TRPI_PHI_DEVIATION_MS_DEFAULT), 1, HOURS, NULL,
      "Smallest standard deviation that is assumed for the heartbeat history." },
    { "cluster.failure-detector.max-sample-size", INT,
      TEXT_OF(TRPI_PHI_SAMPLES_DEFAULT), 2, 100000, NULL,
      "Number of heartbeats in the history." },
    { "cluster.failure-detector.monitored-by-nr-of-members", INT,
      TEXT_OF(TRPI_HEARTBEAT_MONITORS_DEFAULT), 1, 1000, NULL,
      "Number of neighbours on the ring that monitor each member by heartbeats." },
    { "cluster.failure-detector.nr-of-end-heartbeats", INT, "8", 0, 1000, NULL,
      "Akka's key, without effect here: each heartbeat is a request that is answered." },
    { "cluster.failure-detector.expected-response-after", DURATION,
      SECONDS_OF(TRPI_HEARTBEAT_EXPECTED_S_DEFAULT), 1, HOURS, NULL,
      "A member that has never answered is judged as if it had answered at this time after the "
      "first heartbeat." },
    { "cluster.downing.active-strategy", CHOICE, TRPI_DOWNING_STRATEGY_DEFAULT, 0, 0,
      "manual|auto-down-after|keep-majority|static-quorum|keep-oldest|keep-referee|down-all|lease",
      "Strategy that decides which unreachable members are marked Down, and which side of a "
      "partition survives; Akka 2.2 has only manual (off) and auto-down." },
    { "cluster.downing.stable-after", DURATION,
      SECONDS_OF(TRPI_DOWNING_STABLE_AFTER_S_DEFAULT), 1, DAYS, NULL,
      "How long reachability must have been unchanged before a split brain resolver decides." },
    { "cluster.downing.down-all-when-unstable", DURATION, "15s", 0, DAYS, "on|off",
      "Members are unreachable, and reachability has kept changing for stable-after and this time: "
      "the unreachable members are removed if the remaining ones may go on by the strategy, else "
      "all members stop. on: the default; 0s, off: never." },
    { "cluster.downing.auto-down-after", DURATION,
      SECONDS_OF(TRPI_DOWNING_AUTO_DOWN_AFTER_S_DEFAULT), 1, DAYS, NULL,
      "auto-down-after: a member that has been unreachable for this time is marked Down (Akka: "
      "cluster.auto-down)." },
    { "cluster.downing.keep-majority.role", TEXT, "", 0, 0, NULL,
      "Count only members with this role; empty: all members." },
    { "cluster.downing.static-quorum.quorum-size", INT,
      TEXT_OF(TRPI_DOWNING_QUORUM_SIZE_DEFAULT), 1, 100000, NULL,
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
    { "cluster.downing.keep-referee.down-all-if-less-than-nodes", INT,
      TEXT_OF(TRPI_DOWNING_LEAST_NODES_DEFAULT), 1, 100000, NULL,
      "When the side with the referee has fewer members than this, it stops, too." },
    { "cluster.downing.lease.file", TEXT, "", 0, 0, NULL,
      "lease: the side whose node gets a lock on this file survives. The file must be on a file "
      "system that all nodes share and that supports locks between hosts (NFS 4, CephFS, GFS2); "
      "empty: a plugin registers a lease (troupe/lease.h)." },
    { "cluster.downing.lease.name", TEXT, "", 0, 0, NULL,
      "Name of the lease; empty: SYSTEM-lease." },
    { "cluster.downing.lease.acquire-lease-delay-for-minority", DURATION,
      SECONDS_OF(TRPI_DOWNING_LEASE_MINORITY_DELAY_S_DEFAULT), 1, HOURS, NULL,
      "The smaller side waits this much longer before it asks for the lease." },
    { "cluster.downing.lease.release-after", DURATION,
      SECONDS_OF(TRPI_DOWNING_LEASE_RELEASE_AFTER_S_DEFAULT), 1, DAYS, NULL,
      "How long the lease is kept after all members are reachable again; raised to at least 5 * "
      "stable-after + down-all-when-unstable + acquire-lease-delay-for-minority + "
      "operation-timeout." },
    { "cluster.downing.lease.operation-timeout", DURATION,
      SECONDS_OF(TRPI_DOWNING_LEASE_TIMEOUT_S_DEFAULT), 1, HOURS, NULL,
      "A request for the lease that is not answered within this time counts as refused." },
    { "cluster.downing.lease.role", TEXT, "", 0, 0, NULL,
      "Count only members with this role to find the smaller side; empty: all members." },
    { "cluster.metrics.enabled", BOOL, "on", 0, 0, NULL,
      "off: this node neither measures itself nor receives the metrics of others; adaptive routers "
      "then give each node the same share." },
    { "cluster.metrics.collector-class", TEXT, "proc", 0, 0, NULL,
      "Collector of metrics: proc (files of Linux), or the name of a registered collector." },
    { "cluster.metrics.collect-interval", DURATION,
      SECONDS_OF(TRPI_METRICS_COLLECT_S_DEFAULT), 10, HOURS, NULL,
      "Pause between measurements." },
    { "cluster.metrics.gossip-interval", DURATION,
      SECONDS_OF(TRPI_METRICS_GOSSIP_S_DEFAULT), 10, HOURS, NULL,
      "Pause between gossip rounds of metrics." },
    { "cluster.metrics.moving-average-half-life", DURATION,
      SECONDS_OF(TRPI_METRICS_HALF_LIFE_S_DEFAULT), 1, DAYS, NULL,
      "Half-life of a sample in the moving average; a smaller value gives newer samples more "
      "weight." },
    { "cluster.client.receptionist.enabled", BOOL, "off", 0, 0, NULL,
      "on: clients from outside the cluster may connect to this node and reach services that are "
      "registered (troupe/client.h)." },
    { "cluster.client.receptionist.role", TEXT, "", 0, 0, NULL,
      "Clients are sent only to members with this role, and only nodes that have it take clients; "
      "empty: all." },
    { "cluster.client.receptionist.number-of-contacts", INT,
      TEXT_OF(TRPI_RECEPTIONIST_CONTACTS_DEFAULT), 1, TRPI_CLIENT_CONTACTS_MAX, NULL,
      "Nodes that a client is told of." },
    { "cluster.client.receptionist.response-tunnel-receive-timeout", DURATION,
      MS_OF(TRPI_RECEPTIONIST_TUNNEL_MS_DEFAULT), 10, HOURS, NULL,
      "A tunnel to a client's actor ends when nothing has passed for so long, and an ask of a "
      "client fails when its service has not answered." },
    { "cluster.client.receptionist.silence-timeout", DURATION,
      MS_OF(TRPI_RECEPTIONIST_SILENCE_MS_DEFAULT), 100, HOURS, NULL,
      "A client that says nothing for so long has gone." },
    { "cluster.client.receptionist.clients-max", INT, TEXT_OF(TRPI_RECEPTIONIST_CLIENTS_DEFAULT),
      1, 100000, NULL, "Largest number of clients of this node." },
    { "cluster.client.receptionist.permissions", LIST, "", 0, 0, NULL,
      "SERVICE=NAME: only clients whose certificate has this common name reach the service, "
      "topic:TOPIC=NAME: publish to the topic. NAME is what is behind the last '='; * stands for "
      "all services and topics, topic:* for all topics. Names without a line are open to all "
      "clients." },
    { NULL, TEXT, NULL, 0, 0, NULL, NULL, false },
};

const trpi_config_part trpi_cluster_keys = KEYS_OF(cluster_rows, NULL);
/* clang-format on */

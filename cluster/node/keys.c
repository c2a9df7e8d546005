/* keys.c - the keys of the node daemon, and the list of the keys of all rooms.
 *
 * A key in the list is known: a program without a cluster still accepts a file with `cluster` keys,
 * since one list has the keys of the whole library. */
#include "base/config_keys.h"

#include "actor/actor.h"
#include "cluster/cluster.h"
#include "cluster/management/management.h"
#include "cluster/node/bridge_child.h"
#include "cluster/node/health.h"
#include "cluster/node/otlp.h"
#include "endpoint/keys.h"
#include "io/settings.h"
#include "pattern/pattern.h"
#include "persistence/persistence.h"
#include "remote/remote.h"

/* clang-format off */
/* Of the control socket. */
static const trpi_config_row control_rows[] = {
    { "control.socket", TEXT, "", 0, 0, NULL,
      "Path of the control socket; empty: SYSTEM@PORT.sock in $XDG_RUNTIME_DIR/troupe or "
      "/run/troupe." },
    { NULL, TEXT, NULL, 0, 0, NULL, NULL, false },
};

/* Of plugins that a command names. */
static const trpi_config_row plugin_rows[] = {
    { "plugins-dir", TEXT, "", 0, 0, NULL,
      "Directory of the files that `troupe upgrade` and `troupe spawn` may load; it and they "
      "belong to root or the node's user, and only the owner may write them. empty: "
      "LIBDIR/troupe." },
    { NULL, TEXT, NULL, 0, 0, NULL, NULL, false },
};

/* Of applications. */
static const trpi_config_row apps_rows[] = {
    { "apps.directory", TEXT, "", 0, 0, NULL,
      "Directory of applications, DIR/NAME/NAME.so with NAME.conf, which are started, and "
      "restarted when they change (--apps); empty: none." },
    { "apps.interval", DURATION, "2s", 100, 3600000, NULL,
      "How often to look for changes there." },
    { NULL, TEXT, NULL, 0, 0, NULL, NULL, false },
};

/* Of management over HTTP. */
static const trpi_config_row management_rows[] = {
    { "management.enabled", BOOL, "off", 0, 0, NULL,
      "on: this node answers HTTP requests of tools, with the paths of Akka Management." },
    { "management.bind", TEXT, "127.0.0.1", 0, 0, NULL,
      "Numeric address to listen on. Beyond loopback every request needs TLS 1.3 and a "
      "credential." },
    { "management.port", INT, "8558", 0, PORT_MAX, NULL,
      "Port to listen on; 0: any free one, which is logged." },
    { "management.read-only", BOOL, "on", 0, 0, NULL,
      "on: requests that change the cluster are answered 404, {\"error\":\"read-only\"}." },
    { "management.hosts", LIST, "", 0, 0, NULL,
      "Host names by which clients reach this node, beside the bound address and, on loopback, "
      "localhost; a request for another host is refused." },
    { "management.token-file", TEXT, "", 0, 0, NULL,
      "File with bearer tokens that may read and write, one a line, mode 0600; read again at "
      "SIGHUP." },
    { "management.reader-token-file", TEXT, "", 0, 0, NULL,
      "As token-file, for tokens that may only read." },
    { "management.readers", LIST, "", 0, 0, NULL,
      "Common names of client certificates that may read." },
    { "management.writers", LIST, "", 0, 0, NULL,
      "Common names of client certificates that may read and write." },
    { "management.connections-max", INT, TEXT_OF(TRPI_MANAGEMENT_CONNECTIONS_DEFAULT), 1,
      TRPI_MANAGEMENT_CONNECTIONS_MAX, NULL,
      "Connections at one time; one more is closed at once." },
    { "management.request-timeout", DURATION, SECONDS_OF(TRPI_MANAGEMENT_REQUEST_S_DEFAULT),
      SECONDS, HOURS, NULL,
      "A connection whose request has not come and been answered by then is closed." },
    { "management.streams-max", INT, TEXT_OF(TRPI_MANAGEMENT_STREAMS_DEFAULT), 0,
      TRPI_MANAGEMENT_CONNECTIONS_MAX, NULL,
      "Streams of events at one time; one more is answered 503." },
    { "management.alive-after", DURATION, SECONDS_OF(TRPI_ALIVE_AFTER_S_DEFAULT), SECONDS, HOURS,
      NULL,
      "/health/alive and `troupe check alive` fail when work has waited on the default dispatcher "
      "and none of its workers has ended a turn for so long; also without the API." },
    { "management.metrics-names", INT, TEXT_OF(TRPI_MANAGEMENT_METRICS_NAMES_DEFAULT), 1,
      TRPI_MANAGEMENT_METRICS_NAMES_MAX, NULL,
      "Behaviours, dispatchers, topics, types of entities, groups of paths that have series of "
      "their own; the others are summed as \"other\"." },
    { "management.tls.cert", TEXT, "", 0, 0, NULL,
      "PEM file with the certificate of the API; empty: remote.tls.cert beyond loopback, no TLS on "
      "it." },
    { "management.tls.key", TEXT, "", 0, 0, NULL,
      "PEM file with the key of that certificate; empty: remote.tls.key." },
    { "management.tls.ca", TEXT, "", 0, 0, NULL,
      "PEM file with the authorities of clients' certificates; empty: remote.tls.ca." },
    { NULL, TEXT, NULL, 0, 0, NULL, NULL, false },
};

/* Of the export of traces. */
static const trpi_config_row trace_rows[] = {
    { "trace.otlp-endpoint", TEXT, "", 0, 0, NULL,
      "URL to which this node posts the traces that it keeps, as OTLP over HTTP in JSON, such as "
      "http://127.0.0.1:4318/v1/traces; empty: none are sent. Needs libcurl." },
    { "trace.otlp-interval", DURATION, SECONDS_OF(TRPI_OTLP_INTERVAL_S_DEFAULT), SECONDS, HOURS,
      NULL, "How often, if there are any." },
    { NULL, TEXT, NULL, 0, 0, NULL, NULL, false },
};

static const trpi_config_alias management_aliases[] = {
    { "management.route-providers-read-only", "management.read-only" },
    { NULL, NULL },
};

/* Of programs that the node starts, by the name of their actor below /user. */
static const trpi_config_row bridge_rows[] = {
    { "bridge.*.command", LIST, "", 0, 0, NULL,
      "A program and its arguments, which the node starts with itself and again when it ends; its "
      "standard input and output are the bridge of /user/NAME (docs/bridge.md)." },
    { "bridge.*.min-backoff", DURATION, SECONDS_OF(TRPI_BRIDGE_BACKOFF_S_DEFAULT), 1, HOURS, NULL,
      "The pause before the program is started again; doubled each time, until it has run for "
      "longer than max-backoff." },
    { "bridge.*.max-backoff", DURATION, SECONDS_OF(TRPI_BRIDGE_BACKOFF_MAX_S_DEFAULT), 1, HOURS,
      NULL, "The longest pause before the program is started again." },
    { NULL, TEXT, NULL, 0, 0, NULL, NULL, false },
};

static const trpi_config_part bridge_keys = KEYS_OF(bridge_rows, NULL);
static const trpi_config_part control_keys = KEYS_OF(control_rows, NULL);
static const trpi_config_part plugin_keys = KEYS_OF(plugin_rows, NULL);
static const trpi_config_part trace_keys = KEYS_OF(trace_rows, NULL);
static const trpi_config_part apps_keys = KEYS_OF(apps_rows, NULL);
static const trpi_config_part management_keys = KEYS_OF(management_rows, management_aliases);

const trpi_config_part *const trpi_config_parts[] = {
    &trpi_actor_keys, &trpi_router_keys, &trpi_cluster_router_keys, &trpi_io_keys,
    &trpi_persistence_keys, &trpi_remote_keys, &trpi_cluster_keys, &trpi_shutdown_keys,
    &trpi_endpoint_keys, &trpi_flow_keys, &plugin_keys, &apps_keys, &control_keys, &bridge_keys,
    &trpi_log_keys, &management_keys, &trace_keys, &trpi_testkit_keys, NULL,
};
/* clang-format on */

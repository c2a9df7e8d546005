/* keys.c - the keys of the node daemon, and the list of the keys of all rooms.
 *
 * A key in the list is known: a program without a cluster still accepts a file with `cluster` keys,
 * since one list has the keys of the whole library. */
#include "base/config_keys.h"

#include "actor/actor.h"
#include "cluster/cluster.h"
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

/* Of management over HTTP. */
static const trpi_config_row management_rows[] = {
    { "management.bind", TEXT, "127.0.0.1", 0, 0, NULL,
      "Without effect, like all keys of management: this version has no HTTP interface; `troupe` "
      "uses the control socket." },
    { "management.port", INT, "8558", 0, 65535, NULL, "Without effect." },
    { "management.read-only", BOOL, "on", 0, 0, NULL, "Without effect." },
    { "management.route-providers-read-only", BOOL, "on", 0, 0, NULL, "Without effect." },
    { NULL, TEXT, NULL, 0, 0, NULL, NULL, false },
};

static const trpi_config_part control_keys = KEYS_OF(control_rows, NULL);
static const trpi_config_part management_keys = KEYS_OF(management_rows, NULL);

const trpi_config_part *const trpi_config_parts[] = {
    &trpi_actor_keys, &trpi_router_keys, &trpi_cluster_router_keys, &trpi_io_keys,
    &trpi_persistence_keys, &trpi_remote_keys, &trpi_cluster_keys, &trpi_shutdown_keys,
    &control_keys, &trpi_log_keys, &management_keys, &trpi_testkit_keys, NULL,
};
/* clang-format on */

/* keys.c - the keys of persistence. */
#include "persistence/persistence.h"

#include "base/config_keys.h"

/* clang-format off */
static const trpi_config_row persistence_rows[] = {
    { "persistence.journal", CHOICE, "off", 0, 0, "off|memory",
      "Where a node keeps the events and snapshots of persistent actors. memory: until the process "
      "ends, for trials and tests. off: nowhere, unless a plugin brings a journal. (Akka: "
      "persistence.journal.plugin)" },
    { "persistence.local-store-is-enough", BOOL, "off", 0, 0, NULL,
      "Persistent state that may move between hosts is allowed in a journal that only this node "
      "sees: after a move it starts without its state. `troupe dev` sets it. (Akka has no such "
      "key)" },
    { "persistence.max-concurrent-recoveries", INT,
      TEXT_OF(TRP_PERSISTENCE_RECOVERIES_DEFAULT), 1, 1000000, NULL,
      "How many persistent actors of a node recover at once; others wait for their turn." },
    { NULL, TEXT, NULL, 0, 0, NULL, NULL, false },
};
/* clang-format on */

const trpi_config_part trpi_persistence_keys = KEYS_OF(persistence_rows, NULL);

/* node_persistence.c - the journal that the configuration names, and how it is.
 *
 * Shape. One line of `journals` for each driver: its name in persistence.journal, and the function
 *        that opens it. The system closes the journal when its actors have ended.
 * Must hold.
 *   node-persistence-J1  A check opens no store: a node that runs has it.
 * Tests. tests/unit/node/node_test.c, tests/system/cli_fake.sh
 */
#include <string.h>

#include <troupe/journal_lmdb.h>
#include <troupe/journal_postgres.h>
#include <troupe/persistence.h>

#include "base/json.h"
#include "cluster/node/node_private.h"
#include "cluster/node/node_start.h"
#include "persistence/persistence.h"

/* Open a driver by the keys of its section. Gives *ret_driver. Errors: with *ret_error. */
typedef trp_err (*journal_open_fn)(trp_node *node, const trp_journal_driver **ret_driver,
                                   trp_node_error *ret_error);

/* ---- memory ---------------------------------------------------------------------------------- */

static void
memory_close(void *arg)
{
    trp_journal_memory_free(arg);
}

static trp_err
memory_open(trp_node *node, const trp_journal_driver **ret_driver, trp_node_error *ret_error)
{
    trp_journal_memory *memory = NULL;
    trp_err err = trp_journal_memory_new(&memory);

    if (err != TRP_OK) {
        return trpi_node_fail(ret_error, err, "persistence.journal: out of memory");
    }
    trp_journal_memory_shared(memory, 0);
    node->journal = *trp_journal_memory_driver(memory);
    node->journal.close = memory_close;
    *ret_driver = &node->journal;
    return TRP_OK;
}

/* ---- LMDB ------------------------------------------------------------------------------------ */

static trp_err
lmdb_open(trp_node *node, const trp_journal_driver **ret_driver, trp_node_error *ret_error)
{
    trp_journal_lmdb_options options = TRP_JOURNAL_LMDB_OPTIONS_INIT;
    char why[TRP_JOURNAL_WHY_BYTES];

    options.directory = trpi_config_text(node->config, "persistence.lmdb.dir");
    options.size_max = (uint64_t)trpi_config_int(node->config, "persistence.lmdb.size-max");
    if (options.directory[0] == '\0') {
        return trpi_node_fail(
            ret_error, TRP_ECONFIG,
            "persistence.lmdb.dir is not set: the journal lmdb needs a directory");
    }
    trp_err err = trp_journal_lmdb_open(&options, ret_driver, why, sizeof why);
    return err == TRP_OK ? TRP_OK : trpi_node_fail(ret_error, err, "persistence.journal: %s", why);
}

/* ---- PostgreSQL ------------------------------------------------------------------------------ */

void
trpi_node_postgres_options(const trpi_config *config, trp_journal_postgres_options *ret_options)
{
    const char *password_file = trpi_config_text(config, "persistence.postgres.password-file");
    trp_journal_postgres_options options = TRP_JOURNAL_POSTGRES_OPTIONS_INIT;

    options.url = trpi_config_text(config, "persistence.postgres.url");
    options.password_file = password_file[0] != '\0' ? password_file : NULL;
    options.schema = trpi_config_text(config, "persistence.postgres.schema");
    options.readers = (uint32_t)trpi_config_int(config, "persistence.postgres.readers");
    options.connect_timeout_ms =
        (uint32_t)trpi_config_int(config, "persistence.postgres.connect-timeout");
    options.wait_timeout_ms =
        (uint32_t)trpi_config_int(config, "persistence.postgres.wait-timeout");
    options.answer_timeout_ms =
        (uint32_t)trpi_config_int(config, "persistence.postgres.answer-timeout");
    options.waiting_max = (uint32_t)trpi_config_int(config, "persistence.postgres.waiting-max");
    options.batch_max = (uint32_t)trpi_config_int(config, "persistence.postgres.batch-max");
    options.waiting_bytes_max =
        (uint64_t)trpi_config_int(config, "persistence.postgres.waiting-bytes-max");
    *ret_options = options;
}

static trp_err
postgres_open(trp_node *node, const trp_journal_driver **ret_driver, trp_node_error *ret_error)
{
    trp_journal_postgres_options options;
    char why[512];
    trp_err err = TRP_OK;

    trpi_node_postgres_options(node->config, &options);
    err = trp_journal_postgres_open(&options, ret_driver, why, sizeof why);
    return err == TRP_OK ? TRP_OK
                         : trpi_node_fail(ret_error, err == TRP_ENOMEM ? err : TRP_ECONFIG,
                                          "persistence.postgres: %s", why);
}

/* ---- which one ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    journal_open_fn open;
} journals[] = {
    { "memory", memory_open },
    { "lmdb", lmdb_open },
    { "postgres", postgres_open },
};

static trp_err
journal_start(trp_node *node, journal_open_fn open, trp_node_error *ret_error)
{
    const trp_journal_driver *driver = NULL;
    trp_err err = open(node, &driver, ret_error);

    if (err != TRP_OK) {
        return err;
    }
    err = trp_persistence_start(node->system, driver, NULL);
    if (err != TRP_OK) {
        if (driver->close != NULL) {
            driver->close(driver->arg);
        }
        return trpi_node_fail(ret_error, err, "persistence.journal: %s", trp_strerror(err));
    }
    return TRP_OK;
}

trp_err
trpi_node_persistence_start(trp_node *node, trp_node_error *ret_error)
{
    const char *name = trpi_config_text(node->config, "persistence.journal");

    if (node->only_check) { /* node-persistence-J1 */
        return TRP_OK;
    }
    for (size_t i = 0; i < sizeof journals / sizeof journals[0]; i++) {
        if (strcmp(name, journals[i].name) == 0) {
            return journal_start(node, journals[i].open, ret_error);
        }
    }
    return TRP_OK; /* off */
}

/* ---- status ---------------------------------------------------------------------------------- */

static const char *
state_name(trp_journal_state state)
{
    static const char *const names[] = { "open", "away", "read-only", "closed" };

    return (size_t)state < sizeof names / sizeof names[0] ? names[state] : "unknown";
}

static bool
problem_add(cJSON *problems, const trp_journal_driver *driver, const trp_journal_health *health)
{
    char text[TRP_JOURNAL_WHY_BYTES + 128];

    if (health->state == TRP_JOURNAL_OPEN && health->why[0] == '\0') {
        return true;
    }
    if (health->state == TRP_JOURNAL_OPEN) {
        (void)snprintf(text, sizeof text, "the journal (%s) refuses changes: %s", driver->name,
                       health->why);
    } else {
        (void)snprintf(text, sizeof text, "the journal (%s) is %s, %u operations wait%s%s",
                       driver->name, state_name(health->state), health->waiting,
                       health->why[0] != '\0' ? ": " : "", health->why);
    }
    return cJSON_AddItemToArray(problems, cJSON_CreateString(text));
}

/* A shard that cannot be opened is tried again; its messages wait. */
static bool
shards_problem_add(cJSON *problems, const trp_system *system)
{
    char text[128];
    uint32_t count = trpi_sharding_unopened(system);

    (void)snprintf(text, sizeof text,
                   "%u shards of entities wait for the journal; the log says why", count);
    return count == 0 || cJSON_AddItemToArray(problems, cJSON_CreateString(text));
}

bool
trpi_node_journal_add(trp_node *node, cJSON *reply, cJSON *problems)
{
    const trp_journal_driver *driver = trpi_persistence_journal(node->system);
    trp_journal_health health = TRP_JOURNAL_HEALTH_INIT;

    if (driver == NULL) {
        return cJSON_AddNullToObject(reply, "journal") != NULL;
    }
    driver->health(driver->arg, &health);
    cJSON *journal = cJSON_AddObjectToObject(reply, "journal");
    return journal != NULL && trpi_json_add_text(journal, "name", driver->name) &&
           trpi_json_add_bool(journal, "shared", driver->shared != 0) &&
           trpi_json_add_bool(journal, "localStoreIsEnough",
                              trpi_persistence_is_local_enough(node->system)) &&
           trpi_json_add_text(journal, "state", state_name(health.state)) &&
           trpi_json_add_text(journal, "why", health.why) &&
           trpi_json_add_i64(journal, "waiting", health.waiting) &&
           trpi_json_add_i64(journal, "groups", (int64_t)health.groups) &&
           trpi_json_add_i64(journal, "events", (int64_t)health.events) &&
           trpi_json_add_i64(journal, "commits", (int64_t)health.commits) &&
           trpi_json_add_i64(journal, "refused", (int64_t)health.refused) &&
           trpi_json_add_i64(journal, "failed", (int64_t)health.failed) &&
           trpi_json_add_i64(journal, "bytes", (int64_t)health.bytes) &&
           problem_add(problems, driver, &health) && shards_problem_add(problems, node->system);
}

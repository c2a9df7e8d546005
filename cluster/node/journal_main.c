/* journal_main.c - `troupe journal init|ids|show ID|export|import|verify|stats|fold TYPE SHARDS`.
 *
 * Why.   The journal of a node, looked at, saved, restored and checked without the node: what is
 *        opened is what its configuration names.
 * Must hold.
 *   journal-main-J1  Data goes to stdout, everything else to stderr; the exit code tells the
 *       outcome.
 *   journal-main-J2  Only `init` and `import` make a store where there is none.
 * Tests. tests/system/journal.sh, tests/system/postgres.sh
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/journal_lmdb.h>
#include <troupe/node.h>

#include "base/json.h"
#include "base/world.h"
#include "cluster/cluster.h"
#include "cluster/node/ctl_proto.h"
#include "cluster/node/journal_carry.h"
#include "cluster/node/node_options.h"
#include "cluster/node/node_start.h"

static const char help[] =
    "usage: troupe journal init|ids|export|import|verify|stats [--config FILE] [--set "
    "KEY=VALUE]...\n"
    "       troupe journal show ID [-o table|json]\n"
    "       troupe journal fold TYPE SHARDS\n"
    "\n"
    "The journal is that of a node with the same configuration: persistence.journal and its keys.\n"
    "In the directory of lmdb one process works at a time: exit 69 while a node has it open.\n"
    "\n"
    "init     make the tables of postgres, or the directory of lmdb; what is there stays\n"
    "ids      each persistence id and its highest number\n"
    "show     the events of one id; with -o json one event a line, with its data as base64\n"
    "export   write events, snapshots, numbers and epochs to stdout, as lines of JSON: a backup\n"
    "import   restore what export wrote, from stdin, into a journal without these ids\n"
    "verify   read all: numbers without gap, offsets in order; exit 1 when something is wrong\n"
    "stats    how many ids and scopes there are, and how it is\n"
    "fold     a type of entities has fewer shards now: what the others remember, and their\n"
    "         reminders, go into the first SHARDS; while no node runs\n"
    "\n"
    "  -o, --output FMT  table (default) or json\n"
    "  --config FILE     the configuration file\n"
    "  --set KEY=VALUE   set one key; stronger than environment and file\n";

typedef struct command {
    trpi_node_options options;
    const trp_journal_driver *driver;
    uint64_t ids;
    uint64_t events;
    uint64_t scopes;
    uint64_t problems;
    uint64_t next; /* verify: number that comes */
    uint64_t offset;
    uint64_t of_ids; /* verify: events that were read by id */
} command;

static int journal_fail(int code, const char *format, ...) TRP_PRINTF(2, 3);

static int
journal_fail(int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)fputs("troupe: ", stderr);
    (void)vfprintf(stderr, format, args);
    (void)fputs("\n", stderr);
    va_end(args);
    return code;
}

static int
exit_of(trp_err err)
{
    switch (err) {
    case TRP_OK:
        return 0;
    case TRP_EDATA:
        return TRPI_CTL_EXIT_DATA;
    case TRP_ECONN:
    case TRP_EIO:
    case TRP_EADDRINUSE:
        return TRPI_CTL_EXIT_UNREACHABLE;
    case TRP_ETIMEDOUT:
    case TRP_EAGAIN:
        return TRPI_CTL_EXIT_TIMEOUT;
    case TRP_ECONFIG:
    case TRP_EINVAL:
    case TRP_EVERSION:
    case TRP_EUNSUPPORTED:
        return TRPI_CTL_EXIT_CONFIG;
    case TRP_EFENCED:
        return TRPI_CTL_EXIT_NO;
    default:
        return TRPI_CTL_EXIT_INTERNAL;
    }
}

/* ---- walks ----------------------------------------------------------------------------------- */

typedef int (*id_fn)(command *c, const char *id, uint64_t highest);

/* A page of names. */
typedef struct page {
    uint32_t count;
    struct {
        char name[TRP_JOURNAL_ID_BYTES_MAX + 1];
        uint64_t number;
    } rows[64];
} page;

static trp_err
page_give(trp_journal_op *op, const trp_journal_event *item)
{
    page *to = op->user;

    (void)snprintf(to->rows[to->count].name, sizeof to->rows[0].name, "%s", item->id);
    to->rows[to->count++].number = item->number;
    return TRP_OK;
}

/* Call fn for each id or scope; the first exit code that is not 0 ends the walk. */
static int
names_walk(command *c, trp_journal_kind kind, id_fn fn)
{
    page here = { .count = 0 };
    char after[TRP_JOURNAL_ID_BYTES_MAX + 1] = "";
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    int code = 0;

    do {
        here.count = 0;
        op = (trp_journal_op)TRP_JOURNAL_OP_INIT;
        op.kind = kind;
        op.id = op.scope = after[0] != '\0' ? after : NULL;
        op.max_events = sizeof here.rows / sizeof here.rows[0];
        op.give = page_give;
        op.user = &here;
        if (trp_journal_call(c->driver, &op) != TRP_OK) {
            return journal_fail(exit_of(op.err), "%s", op.why);
        }
        for (uint32_t i = 0; code == 0 && i < here.count; i++) {
            code = fn(c, here.rows[i].name, here.rows[i].number);
            memcpy(after, here.rows[i].name, sizeof after);
        }
    } while (code == 0 && op.ret_more && here.count != 0);
    return code;
}

/* Read events of id (NULL: of all) page by page. */
static int
events_walk(command *c, const char *id, trp_journal_give_fn give, uint64_t *ret_highest)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    uint64_t from = 0;

    do {
        op = (trp_journal_op)TRP_JOURNAL_OP_INIT;
        op.kind = id != NULL ? TRP_JOURNAL_EVENTS : TRP_JOURNAL_TAGGED;
        op.id = id;
        op.from = from;
        op.give = give;
        op.user = c;
        if (trp_journal_call(c->driver, &op) != TRP_OK) {
            return journal_fail(exit_of(op.err), "%s", op.why);
        }
        from = id != NULL ? c->next : op.ret_offset;
    } while (op.ret_more);
    *ret_highest = op.ret_number;
    return 0;
}

/* ---- verbs ----------------------------------------------------------------------------------- */

static int
id_print(command *c, const char *id, uint64_t highest)
{
    c->ids++;
    if (c->options.as_json) {
        cJSON *line = cJSON_CreateObject();
        char *text = trpi_json_add_text(line, "id", id) &&
                             trpi_json_add_i64(line, "highest", (int64_t)highest)
                         ? cJSON_PrintUnformatted(line)
                         : NULL;
        (void)printf("%s\n", text != NULL ? text : "");
        cJSON_free(text);
        cJSON_Delete(line);
    } else {
        (void)printf("%-12" PRIu64 " %s\n", highest, id);
    }
    return 0;
}

static trp_err
event_print(trp_journal_op *op, const trp_journal_event *item)
{
    command *c = op->user;

    c->next = item->number + 1;
    c->events++;
    if (c->options.as_json) {
        return trpi_carry_print(stdout, "event", item) && putchar('\n') != EOF ? TRP_OK : TRP_EIO;
    }
    (void)printf("%-8" PRIu64 " %-10" PRIu64 " %-14" PRIu64 " %-6" PRIu32 " %-8zu %s", item->number,
                 item->offset, item->time_ms, item->version, item->bytes, item->type);
    for (uint32_t i = 0; i < item->tags_count; i++) {
        (void)printf("%s%s", i == 0 ? "  #" : " #", item->tags[i]);
    }
    (void)putchar('\n');
    return TRP_OK;
}

static int
verb_ids(command *c)
{
    if (!c->options.as_json) {
        (void)puts("HIGHEST      ID");
    }
    return names_walk(c, TRP_JOURNAL_IDS, id_print);
}

static int
verb_show(command *c)
{
    const char *id = c->options.positional[1];
    uint64_t highest = 0;
    int code = 0;

    if (!c->options.as_json) {
        (void)puts("NUMBER   OFFSET     TIME_MS        VER    BYTES    TYPE");
    }
    code = events_walk(c, id, event_print, &highest);
    if (code == 0 && highest == 0 && c->events == 0) {
        return journal_fail(TRPI_CTL_EXIT_NOT_FOUND, "no event of \"%s\" was ever stored", id);
    }
    return code;
}

static int
verb_export(command *c)
{
    trpi_carry carry = { .driver = c->driver, .file = stdout };
    trp_err err = trpi_carry_export(&carry);

    if (err != TRP_OK) {
        return journal_fail(exit_of(err), "the export is not whole: %s", carry.why);
    }
    (void)fprintf(
        stderr, "%" PRIu64 " events, %" PRIu64 " snapshots, %" PRIu64 " ids, %" PRIu64 " scopes\n",
        carry.events, carry.snapshots, carry.ids, carry.scopes);
    return 0;
}

static int
verb_import(command *c)
{
    trpi_carry carry = { .driver = c->driver, .file = stdin };
    trp_err err = trpi_carry_import(&carry);

    if (err != TRP_OK) {
        return journal_fail(exit_of(err), "the import is not whole: %s", carry.why);
    }
    (void)fprintf(
        stderr, "%" PRIu64 " events, %" PRIu64 " snapshots, %" PRIu64 " ids, %" PRIu64 " scopes\n",
        carry.events, carry.snapshots, carry.ids, carry.scopes);
    return 0;
}

static trp_err
event_check(trp_journal_op *op, const trp_journal_event *item)
{
    command *c = op->user;

    if ((c->next != 0 && item->number != c->next) || item->offset <= c->offset) {
        (void)printf("%s: event %" PRIu64 " with offset %" PRIu64 " comes behind number %" PRIu64
                     " with offset %" PRIu64 "\n",
                     item->id, item->number, item->offset, c->next - 1, c->offset);
        c->problems++;
    }
    c->next = item->number + 1;
    c->offset = item->offset;
    c->of_ids++;
    return TRP_OK;
}

static int
id_verify(command *c, const char *id, uint64_t highest)
{
    uint64_t present = 0;
    int code = 0;

    c->ids++;
    c->next = c->offset = 0;
    code = events_walk(c, id, event_check, &present);
    if (code == 0 && (present < highest || (c->next != 0 && c->next - 1 != present))) {
        (void)printf("%s: the last event has number %" PRIu64 ", the highest number is %" PRIu64
                     "\n",
                     id, c->next - 1, present);
        c->problems++;
    }
    return code;
}

static trp_err
offset_check(trp_journal_op *op, const trp_journal_event *item)
{
    command *c = op->user;

    c->problems += item->offset <= c->offset;
    c->offset = item->offset;
    c->events++;
    return TRP_OK;
}

static int
verb_verify(command *c)
{
    uint64_t unused = 0;
    int code = names_walk(c, TRP_JOURNAL_IDS, id_verify);

    c->offset = 0;
    code = code == 0 ? events_walk(c, NULL, offset_check, &unused) : code;
    if (code != 0) {
        return code;
    }
    if (c->events < c->of_ids) { /* more may have come meanwhile */
        (void)printf("%" PRIu64 " events are there by id, %" PRIu64 " by offset\n", c->of_ids,
                     c->events);
        c->problems++;
    }
    (void)fprintf(stderr, "%" PRIu64 " ids, %" PRIu64 " events, %" PRIu64 " problems\n", c->ids,
                  c->events, c->problems);
    return c->problems == 0 ? 0 : TRPI_CTL_EXIT_NO;
}

static int
id_count(command *c, const char *id, uint64_t highest)
{
    (void)id;
    c->ids++;
    c->events += highest;
    return 0;
}

static int
verb_fold(command *c)
{
    const char *type = c->options.positional[1], *text = c->options.positional[2];
    char *end = NULL;
    char why[TRP_JOURNAL_WHY_BYTES] = "";
    trpi_sharding_folded folded;
    trpi_world *world = NULL;
    unsigned long shards = strtoul(text, &end, 10);

    if (*end != '\0' || text[0] < '0' || text[0] > '9' || shards == 0 ||
        shards > TRP_SHARDING_SHARDS_MAX) {
        return journal_fail(TRPI_CTL_EXIT_USAGE, "SHARDS is a number from 1 to %u, and not %s",
                            TRP_SHARDING_SHARDS_MAX, text);
    }
    if (trpi_world_real_new(&world) != TRP_OK) {
        return journal_fail(TRPI_CTL_EXIT_INTERNAL, "%s", trp_strerror(TRP_ENOMEM));
    }
    uint64_t wall_ms = (uint64_t)trpi_world_wall_ms(world);
    trpi_world_free(world);
    trp_err err =
        trpi_sharding_fold(c->driver, type, (uint32_t)shards, wall_ms, &folded, why, sizeof why);
    (void)fprintf(stderr,
                  "%" PRIu32 " entities and %" PRIu32 " reminders of %" PRIu32
                  " shards of %s are in the first %lu now\n",
                  folded.entities, folded.reminders, folded.shards, type, shards);
    return err == TRP_OK
               ? 0
               : journal_fail(exit_of(err), "the rest is where it was: %s; call it again", why);
}

static int
scope_count(command *c, const char *scope, uint64_t epoch)
{
    (void)scope;
    (void)epoch;
    c->scopes++;
    return 0;
}

static int
verb_stats(command *c)
{
    trp_journal_health health = TRP_JOURNAL_HEALTH_INIT;
    int code = names_walk(c, TRP_JOURNAL_IDS, id_count);

    code = code == 0 ? names_walk(c, TRP_JOURNAL_SCOPES, scope_count) : code;
    if (code != 0) {
        return code;
    }
    c->driver->health(c->driver->arg, &health);
    if (c->options.as_json) {
        (void)printf("{\"journal\":\"%s\",\"shared\":%s,\"ids\":%" PRIu64 ",\"scopes\":%" PRIu64
                     ",\"eventsEver\":%" PRIu64 ",\"bytes\":%" PRIu64 "}\n",
                     c->driver->name, c->driver->shared ? "true" : "false", c->ids, c->scopes,
                     c->events, health.bytes);
    } else {
        (void)printf("journal       %s (%s)\nids           %" PRIu64 "\nscopes        %" PRIu64
                     "\nevents ever   %" PRIu64 "\nbytes         %" PRIu64 "\n",
                     c->driver->name, c->driver->shared ? "shared" : "of this node", c->ids,
                     c->scopes, c->events, health.bytes);
    }
    return 0;
}

/* ---- the program ----------------------------------------------------------------------------- */

/* How `init` makes a store, and how the others open one. Returns the exit code. */
typedef struct store {
    const char *name; /* of persistence.journal */
    int (*make)(const trpi_config *config);
    int (*open)(command *c, const trpi_config *config, bool may_make);
} store;

static int
postgres_make(const trpi_config *config)
{
    trp_journal_postgres_options options;
    char why[TRP_JOURNAL_WHY_BYTES] = "";
    uint32_t is_made = 0;

    trpi_node_postgres_options(config, &options);
    trp_err err = trp_journal_postgres_init(&options, &is_made, why, sizeof why);
    if (err != TRP_OK) {
        return journal_fail(exit_of(err), "%s", why);
    }
    (void)fprintf(stderr,
                  is_made ? "the tables are made in schema %s\n"
                          : "schema %s has its tables already\n",
                  options.schema);
    return 0;
}

static int
postgres_open(command *c, const trpi_config *config, bool may_make)
{
    trp_journal_postgres_options options;
    char why[TRP_JOURNAL_WHY_BYTES] = "";

    (void)may_make; /* never by opening it */
    trpi_node_postgres_options(config, &options);
    trp_err err = trp_journal_postgres_open(&options, &c->driver, why, sizeof why);
    return err == TRP_OK ? 0 : journal_fail(exit_of(err), "%s", why);
}

static int
lmdb_open(command *c, const trpi_config *config, bool may_make)
{
    trp_journal_lmdb_options options = TRP_JOURNAL_LMDB_OPTIONS_INIT;
    char path[TRP_JOURNAL_WHY_BYTES];
    struct stat status;
    trp_err err = TRP_OK;

    options.directory = trpi_config_text(config, "persistence.lmdb.dir");
    options.size_max = (uint64_t)trpi_config_int(config, "persistence.lmdb.size-max");
    if (options.directory[0] == '\0') {
        return journal_fail(TRPI_CTL_EXIT_CONFIG,
                            "persistence.lmdb.dir is not set: the journal lmdb needs a directory");
    }
    (void)snprintf(path, sizeof path, "%s/data.mdb", options.directory);
    if (!may_make && stat(path, &status) != 0) { /* journal-main-J2 */
        return journal_fail(TRPI_CTL_EXIT_NOT_FOUND,
                            "there is no journal in %s (persistence.lmdb.dir); `troupe journal "
                            "init` makes one, and a node does",
                            options.directory);
    }
    char why[TRP_JOURNAL_WHY_BYTES] = "";
    err = trp_journal_lmdb_open(&options, &c->driver, why, sizeof why);
    return err == TRP_OK
               ? 0
               : journal_fail(exit_of(err), "%s%s", why,
                              err == TRP_EADDRINUSE ? ": stop the node, or copy its directory"
                                                    : "");
}

static int
lmdb_make(const trpi_config *config)
{
    command made = { .ids = 0 };
    int code = lmdb_open(&made, config, true);

    if (code == 0) {
        made.driver->close(made.driver->arg);
        (void)fprintf(stderr, "the journal is in %s\n",
                      trpi_config_text(config, "persistence.lmdb.dir"));
    }
    return code;
}

static const store stores[] = {
    { "postgres", postgres_make, postgres_open },
    { "lmdb", lmdb_make, lmdb_open },
};

static const struct {
    const char *name;
    int (*run)(command *c); /* NULL: init, which opens no journal */
    size_t words;
} verbs[] = {
    { "init", NULL, 1 },          { "ids", verb_ids, 1 },       { "show", verb_show, 2 },
    { "export", verb_export, 1 }, { "import", verb_import, 1 }, { "verify", verb_verify, 1 },
    { "stats", verb_stats, 1 },   { "fold", verb_fold, 3 },
};

static int
verb_run(command *c, const trpi_config *config, size_t verb)
{
    const char *journal = trpi_config_text(config, "persistence.journal");
    size_t at = 0;
    int code = 0;

    while (at < sizeof stores / sizeof stores[0] && strcmp(stores[at].name, journal) != 0) {
        at++;
    }
    if (at == sizeof stores / sizeof stores[0]) {
        return journal_fail(TRPI_CTL_EXIT_CONFIG,
                            "persistence.journal is %s: `troupe journal` works on lmdb and "
                            "postgres (give --config FILE, or --set persistence.journal=lmdb)",
                            journal);
    }
    if (verbs[verb].run == NULL) {
        return stores[at].make(config);
    }
    code = stores[at].open(c, config, verbs[verb].run == verb_import);
    if (code != 0) {
        return code;
    }
    code = verbs[verb].run(c);
    c->driver->close(c->driver->arg);
    if (fflush(stdout) != 0 && code == 0) {
        code = journal_fail(TRPI_CTL_EXIT_OUTPUT, "the output could not be written");
    }
    return code;
}

int
trp_journal_main(int argc, char **argv)
{
    static command c; /* one call a process */
    trpi_config *config = NULL;
    trpi_config_error error;
    size_t verb = 0;
    int code = trpi_node_options_parse(argc, argv, 3, &c.options);

    if (code != 0) {
        return code;
    }
    if (c.options.help) {
        (void)fputs(help, stdout);
        return 0;
    }
    while (verb < sizeof verbs / sizeof verbs[0] &&
           (c.options.positional_count == 0 ||
            strcmp(c.options.positional[0], verbs[verb].name) != 0)) {
        verb++;
    }
    if (verb == sizeof verbs / sizeof verbs[0] || c.options.positional_count != verbs[verb].words) {
        return journal_fail(TRPI_CTL_EXIT_USAGE, "expected init, ids, show ID, export, import, "
                                                 "verify, stats or fold TYPE SHARDS (troupe "
                                                 "journal --help)");
    }
    if (trpi_node_config_build(&c.options, environ, &config, &error) != TRP_OK) {
        return journal_fail(TRPI_CTL_EXIT_CONFIG, "%s", error.text);
    }
    code = verb_run(&c, config, verb);
    trpi_config_free(config);
    return code;
}

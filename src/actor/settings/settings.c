/* settings.c - read the options of a system and of single actors from the configuration.
 *
 * Why.     An operator moves an actor to another dispatcher without a new program. Each spawn
 *          looks for a section, so that must cost nothing where no deployment is configured, and
 *          no string work where no section can match.
 * Shape.   Titles are split into elements once, when the system starts. A child of depth d can
 *          match only sections of d elements; names are read from the registry, the child's first,
 *          while they match.
 * Must hold.
 *   settings-D1  Deployment sections apply only to actors below /user.
 * Limits.  TRPI_CONFIG_TITLES_MAX sections, TRPI_CONFIG_DEPLOYMENT_DEPTH_MAX elements.
 * Cost.    A spawn: one branch without sections; else one comparison of integers for each section,
 *          and names only for sections of the right depth; for unnamed actors only for those that
 *          end in "*".
 * Not here. Dispatchers and mailboxes: settings_dispatch.c.
 * Tests.   tests/unit/actor/settings_test.c, switches_test.c
 * Sources. CONF-9, SYS-32, DISP-2; WildcardTree of Akka 2.2.
 */
#include "actor/settings/settings.h"
#include "actor/settings/options.h"

#include <stdio.h>
#include <string.h>

#include "actor/kernel/run.h"
#include "actor/naming/path.h"
#include "actor/log/log.h"
#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/config.h"

const char trpi_node_conflict[] = "here and elsewhere";

typedef struct element {
    const char *text; /* in the title */
    size_t bytes;
    bool is_any;
} element;

typedef struct section {
    char *title; /* owned; as it stands in the configuration */
    element *elements;
    size_t count;
} section;

struct trpi_settings {
    trp_config *config; /* shared */
    section *sections;
    uint32_t sections_count, sections_room;
};

/* ---- sections -------------------------------------------------------------------------------- */

static void
section_fini(section *s)
{
    trpi_free(s->title);
    trpi_free(s->elements);
}

/* Split "/user/a/b", or "/a/b", into its elements "a" and "b". */
static trp_err
section_init(section *s, const char *title, size_t bytes)
{
    size_t count = 0;
    memset(s, 0, sizeof *s);
    s->title = trpi_alloc(bytes + 1);
    if (s->title == NULL) {
        return TRP_ENOMEM;
    }
    memcpy(s->title, title, bytes);
    for (const char *p = s->title; *p != 0; p++) {
        count += *p == '/';
    }
    s->elements = trpi_alloc((count + 1) * sizeof *s->elements);
    if (s->elements == NULL) {
        section_fini(s);
        return TRP_ENOMEM;
    }
    const char *p = s->title + (strncmp(s->title, "/user/", 6) == 0 ? 5 : 0);
    while (*p == '/') {
        element *e = &s->elements[s->count++];
        e->text = ++p;
        e->bytes = strcspn(p, "/");
        e->is_any = e->bytes == 1 && *p == '*';
        p += e->bytes;
    }
    return TRP_OK;
}

static bool
section_is_known(const trpi_settings *settings, const char *title, size_t bytes)
{
    for (size_t i = 0; i < settings->sections_count; i++) {
        const char *known = settings->sections[i].title;
        if (strlen(known) == bytes && memcmp(known, title, bytes) == 0) {
            return true;
        }
    }
    return false;
}

static trp_err
sections_make(trpi_settings *settings)
{
    for (size_t i = 0; i < trpi_config_count(settings->config); i++) {
        trpi_config_entry entry;
        const char *title = NULL;
        size_t bytes = 0;
        trpi_config_at(settings->config, i, &entry);
        if (!trpi_setting_title(&entry, "deployment.", &title, &bytes) ||
            section_is_known(settings, title, bytes)) {
            continue;
        }
        trp_err err = TRPI_ARRAY_RESERVE(settings, sections, 1, TRPI_ARRAY_NO_LIMIT);
        if (err == TRP_OK) {
            err = section_init(&settings->sections[settings->sections_count], title, bytes);
        }
        if (err != TRP_OK) {
            return err;
        }
        settings->sections_count++;
    }
    return TRP_OK;
}

/* Is a more specific than b, which has as many elements? */
static bool
section_beats(const section *a, const section *b)
{
    for (size_t i = 0; i < a->count; i++) {
        if (a->elements[i].is_any != b->elements[i].is_any) {
            return b->elements[i].is_any;
        }
    }
    return false;
}

static bool
element_matches(const element *e, const char *name, size_t bytes)
{
    return e->is_any || (e->bytes == bytes && memcmp(e->text, name, bytes) == 0);
}

/* ---- the settings of a system ---------------------------------------------------------------- */

trp_err
trpi_settings_new(const trp_config *config, trpi_settings **ret_settings)
{
    trpi_settings *settings = trpi_alloc(sizeof *settings);
    if (settings == NULL) {
        return TRP_ENOMEM;
    }
    settings->config = trp_config_ref(config);
    trp_err err = sections_make(settings);
    if (err != TRP_OK) {
        trpi_settings_free(settings);
        return err;
    }
    *ret_settings = settings;
    return TRP_OK;
}

void
trpi_settings_free(trpi_settings *settings)
{
    if (settings == NULL) {
        return;
    }
    for (size_t i = 0; i < settings->sections_count; i++) {
        section_fini(&settings->sections[i]);
    }
    trpi_free(settings->sections);
    trp_config_unref(settings->config);
    trpi_free(settings);
}

const trp_config *
trpi_system_config(const trp_system *system)
{
    return system->settings != NULL ? system->settings->config : NULL;
}

trp_config *
trp_system_config(const trp_system *system)
{
    return trpi_system_is_valid(system) ? trp_config_ref(trpi_system_config(system)) : NULL;
}

/* ---- options --------------------------------------------------------------------------------- */

uint32_t
trpi_setting_pick(const trp_config *config, const char *key, uint32_t coded)
{
    if (coded != 0 && !trpi_config_is_set(config, key)) {
        return coded;
    }
    int64_t number = trpi_config_int(config, key);
    return number < 0 ? 0 : number > UINT32_MAX - 1 ? UINT32_MAX - 1 : (uint32_t)number;
}

double
trpi_setting_pick_float(const trp_config *config, const char *key, double coded)
{
    return coded > 0 && !trpi_config_is_set(config, key) ? coded : trpi_config_float(config, key);
}

static uint32_t
level_of(const char *name)
{
    static const struct {
        const char *name;
        trp_log_level level;
    } levels[] = { { "off", TRP_LOG_OFF },
                   { "error", TRP_LOG_ERROR },
                   { "warning", TRP_LOG_WARNING },
                   { "info", TRP_LOG_INFO },
                   { "debug", TRP_LOG_DEBUG } };
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (strcmp(name, levels[i].name) == 0) {
            return (uint32_t)levels[i].level;
        }
    }
    return TRP_LOG_INFO;
}

static uint32_t
fault_trap_of(const char *text)
{
    return strcmp(text, "on") == 0       ? TRP_FAULT_TRAP_ON
           : strcmp(text, "report") == 0 ? TRP_FAULT_TRAP_REPORT
                                         : TRP_FAULT_TRAP_OFF;
}

static uint32_t
level_pick(const trp_config *config, const char *key, uint32_t coded)
{
    return coded != 0 && !trpi_config_is_set(config, key) ? coded
                                                          : level_of(trpi_config_text(config, key));
}

/* Read a switch that code can only turn on. */
static uint32_t
switch_pick(const trp_config *config, const char *key, uint32_t coded)
{
    return trpi_config_is_set(config, key) ? trpi_config_bool(config, key) : coded != 0;
}

void
trpi_settings_logging(const trp_config *config, trp_log_options *logging)
{
    static const struct {
        const char *key;
        uint32_t flag;
    } debug[] = { { "actor.debug.receive", TRP_DEBUG_RECEIVE },
                  { "actor.debug.autoreceive", TRP_DEBUG_AUTORECEIVE },
                  { "actor.debug.fsm", TRP_DEBUG_FSM },
                  { "actor.debug.lifecycle", TRP_DEBUG_LIFECYCLE },
                  { "actor.debug.event-stream", TRP_DEBUG_EVENT_STREAM },
                  { "actor.debug.unhandled", TRP_DEBUG_UNHANDLED },
                  { "actor.debug.misuse", TRP_DEBUG_MISUSE },
                  { "actor.debug.router-misconfiguration", TRP_DEBUG_ROUTER } };
    for (size_t i = 0; i < sizeof debug / sizeof debug[0]; i++) {
        uint32_t on = switch_pick(config, debug[i].key, logging->debug & debug[i].flag);
        logging->debug = (logging->debug & ~debug[i].flag) | (on ? debug[i].flag : 0);
    }
    logging->stdout_level = level_pick(config, "log.stdout-level", logging->stdout_level);
    logging->queue_max = trpi_setting_pick(config, "log.queue-size", logging->queue_max);
    logging->start_ms = trpi_setting_pick(config, "log.logger-startup-timeout", logging->start_ms);
    if (trpi_config_is_set(config, "log.format")) {
        logging->json = strcmp(trpi_config_text(config, "log.format"), "json") == 0;
    }
    if (trpi_config_is_set(config, "log.dead-letters-during-shutdown")) {
        logging->no_dead_letters_at_end =
            !trpi_config_bool(config, "log.dead-letters-during-shutdown");
    }
}

void
trpi_settings_scheduling(const trp_config *config, trp_scheduler_options *scheduling)
{
    scheduling->tick_ms = trpi_setting_pick(config, "scheduler.tick-duration", scheduling->tick_ms);
    scheduling->ticks_per_wheel =
        trpi_setting_pick(config, "scheduler.ticks-per-wheel", scheduling->ticks_per_wheel);
    scheduling->stop_ms =
        trpi_setting_pick(config, "scheduler.shutdown-timeout", scheduling->stop_ms);
    scheduling->schedules_max =
        trpi_setting_pick(config, "scheduler.schedules-max", scheduling->schedules_max);
}

void
trpi_settings_options(const trp_config *config, trp_system_options *options)
{
    options->workers =
        trpi_setting_pick(config, "actor.default-dispatcher.workers", options->workers);
    options->throughput =
        trpi_setting_pick(config, "actor.default-dispatcher.throughput", options->throughput);
    options->actors_max = trpi_setting_pick(config, "actor.actors-max", options->actors_max);
    options->log_level = level_pick(config, "log.level", options->log_level);
    if (options->log_dead_letters == 0 || trpi_config_is_set(config, "log.dead-letters")) {
        uint32_t letters = trpi_setting_pick(config, "log.dead-letters", 0);
        options->log_dead_letters = letters != 0 ? letters : TRP_OFF;
    }
    if (trpi_config_is_set(config, "actor.guardian-supervisor-strategy")) {
        options->guardian_stops =
            strcmp(trpi_config_text(config, "actor.guardian-supervisor-strategy"), "stopping") == 0;
        options->guardian_strategy = NULL;
    }
    options->serialize_messages =
        switch_pick(config, "actor.serialize-messages", options->serialize_messages);
    options->serialize_creators =
        switch_pick(config, "actor.serialize-creators", options->serialize_creators);
    if (trpi_config_is_set(config, "actor.stall-warning")) {
        uint32_t stall_ms = trpi_setting_pick(config, "actor.stall-warning", 0);
        options->stall_warning_ms = stall_ms != 0 ? stall_ms : TRP_OFF;
    }
    if (trpi_config_is_set(config, "actor.fault-trap")) {
        options->fault_trap = fault_trap_of(trpi_config_text(config, "actor.fault-trap"));
    }
}

uint32_t
trpi_settings_stash_max(const trp_config *config)
{
    int64_t capacity = trpi_config_int(config, "actor.default-mailbox.stash-capacity");
    return capacity > 0 ? (uint32_t)capacity : 0;
}

/* CONF-6 */
void
trpi_settings_log(trp_system *system)
{
    const trp_config *config = trpi_system_config(system);
    for (size_t i = 0; config != NULL && i < trpi_config_count(config); i++) {
        char text[1024];
        size_t count = 0;
        trpi_config_entry entry;
        trpi_config_at(config, i, &entry);
        text[0] = '\0';
        for (size_t j = 0; j < entry.count && count + 1 < sizeof text; j++) {
            int more = snprintf(text + count, sizeof text - count, "%s%s", j ? ", " : "",
                                trpi_config_shown(&entry, j));
            count += more > 0 ? (size_t)more : 0; /* a long line is cut */
        }
        trp_system_log(system, TRP_LOG_INFO, "config", "%s = %s (%s)", entry.key, text,
                       entry.origin);
    }
}

/* ---- deployments ----------------------------------------------------------------------------- */

const char *
trpi_deployment_text(const trpi_deployment *deployment, const char *key)
{
    char full[TRPI_CONFIG_KEY_BYTES_MAX + 1];
    trpi_config_entry entry;
    (void)snprintf(full, sizeof full, "deployment.%s.%s", deployment->title, key);
    return trpi_config_find(deployment->config, full, &entry) && entry.count == 1 ? entry.values[0]
                                                                                  : NULL;
}

bool
trpi_deployment_number(const trpi_deployment *deployment, const char *key, double *ret_number)
{
    char full[TRPI_CONFIG_KEY_BYTES_MAX + 1];
    (void)snprintf(full, sizeof full, "deployment.%s.%s", deployment->title, key);
    if (!trpi_config_is_set(deployment->config, full)) {
        return false;
    }
    *ret_number = trpi_config_float(deployment->config, full);
    return true;
}

size_t
trpi_deployment_list(const trpi_deployment *deployment, const char *key,
                     const char *const **ret_values)
{
    char full[TRPI_CONFIG_KEY_BYTES_MAX + 1];
    trpi_config_entry entry;
    (void)snprintf(full, sizeof full, "deployment.%s.%s", deployment->title, key);
    if (!trpi_config_find(deployment->config, full, &entry)) {
        return 0;
    }
    *ret_values = entry.values;
    return entry.count;
}

void
trpi_deployment_at(const trp_config *config, const char *title, trpi_deployment *ret_deployment)
{
    trpi_deployment *d = ret_deployment;
    d->config = config;
    d->title = title;
    d->dispatcher = trpi_setting_text_or_null(trpi_deployment_text(d, "dispatcher"));
    d->mailbox = trpi_setting_text_or_null(trpi_deployment_text(d, "mailbox"));
    d->router = trpi_setting_text_or_null(trpi_deployment_text(d, "router"));
    d->remote = trpi_setting_text_or_null(trpi_deployment_text(d, "remote"));
}

static bool
section_matches_path(const section *s, const char *path)
{
    for (size_t i = 0; i < s->count; i++) {
        if (*path++ != '/') {
            return false;
        }
        size_t bytes = strcspn(path, "/");
        if (bytes == 0 || !element_matches(&s->elements[i], path, bytes)) {
            return false;
        }
        path += bytes;
    }
    return *path == 0;
}

bool
trpi_deployment_find(const trp_system *system, const char *path, trpi_deployment *ret_deployment)
{
    const trpi_settings *settings = system->settings;
    const section *best = NULL;
    if (settings == NULL || settings->sections_count == 0) {
        return false;
    }
    path += strncmp(path, "/user/", 6) == 0 ? 5 : 0;
    for (size_t i = 0; i < settings->sections_count; i++) {
        const section *s = &settings->sections[i];
        if (section_matches_path(s, path) && (best == NULL || section_beats(s, best))) {
            best = s;
        }
    }
    if (best != NULL) {
        trpi_deployment_at(settings->config, best->title, ret_deployment);
    }
    return best != NULL;
}

/* settings-D1. Do the names of parent and its ancestors below /user match s, from its last but one
 * element on? Thread: parent's runner, or with the lock of the guardian, so that the ancestors
 * live. */
static bool
section_matches_parents(trp_ctx *ctx, const section *s, const trpi_cell *parent)
{
    char name[TRP_NAME_BYTES_MAX + 1];
    for (size_t i = s->count - 1; i-- > 0;) {
        if (!s->elements[i].is_any) {
            size_t bytes = trpi_cell_name(ctx->system, parent, name, sizeof name);
            if (!element_matches(&s->elements[i], name, bytes)) {
                return false;
            }
        }
        parent = trpi_cells_find(ctx->cells, trpi_cell_parent(parent));
        if (parent == NULL) {
            return false;
        }
    }
    return trpi_cell_slot(parent) == ctx->system->top.user.slot;
}

const trp_spawn_options *
trpi_settings_deploy(trp_ctx *ctx, const trpi_cell *parent, const trp_spawn_options *options,
                     trp_spawn_options *copy)
{
    static const trp_spawn_options none = TRP_SPAWN_OPTIONS_INIT;
    const trpi_settings *settings = ctx->system->settings;
    const char *name = options != NULL ? options->name : NULL;
    size_t depth = parent->depth, bytes = name != NULL ? strlen(name) : 0;
    const section *best = NULL;
    trpi_deployment deployment;
    for (size_t i = 0; i < settings->sections_count; i++) {
        const section *s = &settings->sections[i];
        const element *last = &s->elements[s->count - 1];
        bool is_meant = name != NULL ? element_matches(last, name, bytes) : last->is_any;
        if (s->count == depth && is_meant && section_matches_parents(ctx, s, parent) &&
            (best == NULL || section_beats(s, best))) {
            best = s;
        }
    }
    if (best == NULL) {
        return options;
    }
    trpi_deployment_at(settings->config, best->title, &deployment);
    if (deployment.router != NULL && strcmp(deployment.router, "from-code") != 0 &&
        (__atomic_load_n(&ctx->system->log_gate.debug, __ATOMIC_RELAXED) & TRP_DEBUG_ROUTER) != 0) {
        trpi_log(ctx->system, TRP_LOG_WARNING, "router",
                 "deployment \"%s\" says router = %s, but the code makes a plain actor: remove "
                 "the key, or make a router",
                 deployment.title, deployment.router); /* ROUTE-24 */
    }
    *copy = options != NULL ? *options : none;
    copy->size = sizeof *copy;
    if (deployment.dispatcher != NULL) {
        copy->dispatcher = deployment.dispatcher;
    }
    if (deployment.mailbox != NULL) {
        copy->mailbox = deployment.mailbox; /* MBOX-10: it overrides all others */
    }
    if (deployment.remote != NULL) {
        copy->node =
            copy->node != NULL && copy->node[0] == 0 ? trpi_node_conflict : deployment.remote;
    }
    return copy;
}

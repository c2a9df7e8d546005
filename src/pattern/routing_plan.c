/* routing_plan.c - options of code, overridden by keys of configuration, checked as a whole.
 *
 * Must hold.
 *   routing-plan-P1  A key that is set wins over what the options said; "router" = "from-code"
 *       leaves them.
 *   routing-plan-P2  Named routees take precedence over a number of them (ROUTE-5): paths of the
 *       configuration replace routees of the code.
 * Tests.   tests/unit/pattern/plan_test.c
 * Sources. ROUTE-3, -4, -5, -19; Akka 2.2.5, akka.actor.deployment.default.
 */
#include "pattern/routing_plan.h"

#include <float.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/address.h"
#include "base/alloc.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/sized.h"
#include "base/units.h"
#include "pattern/routing.h"

#define PATHS_SEPARATORS ", \t\n"

/* ---- from options ---------------------------------------------------------------------------- */

/* Append a copy of text. */
static trp_err
texts_add(trpi_texts *list, const char *text, size_t bytes)
{
    char *copy = TRPI_ARRAY_HAS_ROOM(list, texts) ? trpi_alloc(bytes + 1) : NULL;

    if (copy == NULL) {
        return TRP_ENOMEM;
    }
    memcpy(copy, text, bytes);
    list->texts[list->texts_count++] = copy;
    return TRP_OK;
}

static void
texts_free(trpi_texts *list)
{
    for (uint32_t i = 0; i < list->texts_count; i++) {
        trpi_free(list->texts[i]);
    }
    trpi_free(list->texts);
    *list = (trpi_texts){ 0 };
}

static trp_err
text_set(char **text, const char *value)
{
    char *copy = value == NULL ? NULL : trpi_strdup(value);

    if (copy == NULL && value != NULL) {
        return TRP_ENOMEM;
    }
    trpi_free(*text);
    *text = copy;
    return TRP_OK;
}

static trp_err
lists_copy(trpi_router_plan *plan, const trp_router_options *options)
{
    trp_err err = TRP_OK;

    if (options->routees_count > 0) {
        plan->routees = trpi_alloc(options->routees_count * sizeof *plan->routees);
        if (plan->routees == NULL) {
            return TRP_ENOMEM;
        }
        memcpy(plan->routees, options->routees, options->routees_count * sizeof *plan->routees);
        plan->routees_count = options->routees_count;
    }
    for (const char *const *path = options->routee_paths;
         err == TRP_OK && path != NULL && *path != NULL; path++) {
        err = texts_add(&plan->paths, *path, strlen(*path));
    }
    for (const char *const *setting = options->settings;
         err == TRP_OK && setting != NULL && *setting != NULL; setting++) {
        err = texts_add(&plan->settings, *setting, strlen(*setting));
    }
    for (const char *const *node = options->target_nodes;
         err == TRP_OK && node != NULL && *node != NULL; node++) {
        err = texts_add(&plan->nodes, *node, strlen(*node));
    }
    return err;
}

static bool
options_are_valid(const trp_router_options *options)
{
    return (options->routees != NULL || options->routees_count == 0) &&
           options->routees_count <= TRP_ROUTEES_MAX &&
           (options->resizer == NULL || options->own_resizer == NULL) &&
           (options->own_resizer == NULL ||
            (TRPI_SIZED_FITS(options->own_resizer, arg) && options->own_resizer->is_time != NULL &&
             options->own_resizer->capacity != NULL)) &&
           (options->custom == NULL || options->logic == NULL) &&
           (options->custom == NULL ||
            (TRPI_SIZED_FITS(options->custom, arg) && options->custom->route != NULL)) &&
           (options->strategy == NULL || TRPI_SIZED_FITS(options->strategy, log));
}

trp_err
trpi_router_plan_init(trpi_router_plan *plan, const trp_router_options *options)
{
    static const trp_router_options none = TRP_ROUTER_OPTIONS_INIT;
    static const trp_resizer_options resizer = TRP_RESIZER_OPTIONS_INIT;
    const trp_router_options *o = options != NULL ? options : &none;
    trp_router_options own;
    trp_err err;

    memset(plan, 0, sizeof *plan);
    plan->resizer = resizer;
    if (!TRPI_SIZED_TAKE(o, &own, cluster) || !options_are_valid(o) ||
        !TRPI_SIZED_COPY(o->resizer, &plan->resizer, messages_per_resize) ||
        !TRPI_SIZED_COPY(o->own_resizer, &plan->own_resizer, arg)) {
        return TRP_EINVAL;
    }
    plan->instances = o->instances;
    plan->within_ms = o->within_ms;
    plan->interval_ms = o->interval_ms;
    plan->virtual_nodes = o->virtual_nodes;
    plan->resizes = o->resizer != NULL || o->own_resizer != NULL;
    plan->resizes_own = o->own_resizer != NULL;
    plan->strategy = o->strategy;
    plan->hash_mapping = o->hash_mapping;
    plan->hash_arg = o->hash_arg;
    plan->custom = o->custom;
    plan->from_config = o->from_config != 0;
    err = text_set(&plan->logic, o->logic);
    if (err == TRP_OK) {
        err = text_set(&plan->dispatcher, o->dispatcher);
    }
    if (err == TRP_OK) {
        err = lists_copy(plan, o);
    }
    if (err == TRP_OK) {
        err = trpi_cluster_plan_init(plan, o->cluster);
    }
    if (err != TRP_OK) {
        trpi_router_plan_fini(plan);
    }
    return err;
}

void
trpi_router_plan_fini(trpi_router_plan *plan)
{
    trpi_free(plan->logic);
    trpi_free(plan->dispatcher);
    trpi_free(plan->routees);
    texts_free(&plan->paths);
    texts_free(&plan->settings);
    texts_free(&plan->nodes);
    trpi_cluster_plan_fini(plan);
    memset(plan, 0, sizeof *plan);
}

/* ---- from configuration ---------------------------------------------------------------------- */

trp_err
trpi_router_plan_wrong(char *error, size_t bytes, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(error, bytes, format, arguments);
    va_end(arguments);
    return TRP_ECONFIG;
}

static bool
parse_share(const char *value, double *ret_share)
{
    return trpi_float_parse(value, -DBL_MAX, DBL_MAX, ret_share);
}

static bool
parse_ms(const char *value, uint32_t *ret_ms)
{
    uint64_t ms = 0;

    if (!trpi_duration_parse(value, TRPI_DURATION_BARE | TRPI_DURATION_BLANKS, 0, UINT32_MAX,
                             &ms)) {
        return false;
    }
    *ret_ms = (uint32_t)ms;
    return true;
}

/* Replace a list by the words of value, or add them to it. */
static trp_err
set_list(trpi_texts *list, const char *value, bool more)
{
    trp_err err = TRP_OK;

    if (!more) {
        texts_free(list);
    }
    while (err == TRP_OK && *(value += strspn(value, PATHS_SEPARATORS)) != 0) {
        size_t bytes = strcspn(value, PATHS_SEPARATORS);

        err = texts_add(list, value, bytes);
        value += bytes;
    }
    return err;
}

static trp_err
set_paths(trpi_router_plan *plan, const char *value, bool more)
{
    trp_err err = set_list(&plan->paths, value, more);

    if (plan->paths.texts_count > 0) { /* routing-plan-P2 */
        trpi_free(plan->routees);
        plan->routees = NULL;
        plan->routees_count = 0;
    }
    return err;
}

/* Shorten "round-robin-pool" and "round-robin-group" to the logic "round-robin": routees.paths
 * decides between both. False: no such ending, or no room. */
static bool
logic_shorten(const char *value, char *shorter, size_t bytes)
{
    static const char *const endings[] = { "-pool", "-group" };
    size_t length = strlen(value);

    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t ending = strlen(endings[i]);

        if (length > ending && length - ending < bytes &&
            strcmp(value + length - ending, endings[i]) == 0) {
            memcpy(shorter, value, length - ending);
            shorter[length - ending] = 0;
            return true;
        }
    }
    return false;
}

static trp_err
set_logic(trpi_router_plan *plan, const char *value, char *error, size_t bytes)
{
    char shorter[64];
    uint32_t needs;

    if (strcmp(value, "from-code") == 0) { /* routing-plan-P1 */
        return TRP_OK;
    }
    if (trpi_logic_find(value, &needs) == NULL && logic_shorten(value, shorter, sizeof shorter)) {
        value = shorter;
    }
    if (trpi_logic_find(value, &needs) == NULL && plan->any_logic) {
        return TRP_OK;
    }
    if (trpi_logic_find(value, &needs) == NULL) {
        return trpi_router_plan_wrong(error, bytes, "router: no routing logic is called \"%s\"",
                                      value);
    }
    plan->custom = NULL;
    return text_set(&plan->logic, value);
}

static trp_err
set_resizer(trpi_router_plan *plan, const char *key, const char *value, char *error, size_t bytes)
{
    trp_resizer_options *r = &plan->resizer;
    const struct {
        const char *key;
        uint32_t *number;
        uint32_t *ms;
        double *share;
    } keys[] = {
        { "lower-bound", &r->lower_bound, NULL, NULL },
        { "upper-bound", &r->upper_bound, NULL, NULL },
        { "pressure-threshold", &r->pressure_threshold, NULL, NULL },
        { "rampup-rate", NULL, NULL, &r->rampup_rate },
        { "backoff-threshold", NULL, NULL, &r->backoff_threshold },
        { "backoff-rate", NULL, NULL, &r->backoff_rate },
        { "stop-delay", NULL, &r->stop_delay_ms, NULL },
        { "messages-per-resize", &r->messages_per_resize, NULL, NULL },
    };

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        bool good;

        if (strcmp(keys[i].key, key) != 0) {
            continue;
        }
        good = keys[i].number != NULL ? trpi_whole32_parse(value, 0, UINT32_MAX, keys[i].number)
               : keys[i].ms != NULL   ? parse_ms(value, keys[i].ms)
                                      : parse_share(value, keys[i].share);
        if (!good) {
            return trpi_router_plan_wrong(error, bytes, "resizer.%s: \"%s\" is no %s", key, value,
                                          keys[i].number != NULL ? "whole number"
                                          : keys[i].ms != NULL   ? "duration"
                                                                 : "number");
        }
        plan->resizes = true;
        plan->resizes_own = false; /* routing-plan-P1 */
        return TRP_OK;
    }
    return trpi_router_plan_wrong(error, bytes, "resizer.%s: there is no such key", key);
}

static trp_err
set_setting(trpi_router_plan *plan, const char *key, const char *value)
{
    size_t bytes = strlen(key) + 1 + strlen(value);
    char *setting = trpi_alloc(bytes + 1);
    trp_err err;

    if (setting == NULL) {
        return TRP_ENOMEM;
    }
    (void)snprintf(setting, bytes + 1, "%s=%s", key, value);
    err = texts_add(&plan->settings, setting, bytes);
    trpi_free(setting);
    return err;
}

trp_err
trpi_router_plan_set(trpi_router_plan *plan, const char *key, const char *value, char *error,
                     size_t error_bytes)
{
    bool good = true;

    plan->configured = true;
    if (strcmp(key, "router") == 0) {
        return set_logic(plan, value, error, error_bytes);
    }
    if (strcmp(key, "routees.paths") == 0) {
        return set_paths(plan, value, false);
    }
    if (strcmp(key, "routees.paths+") == 0) {
        return set_paths(plan, value, true);
    }
    if (strncmp(key, "target.nodes", 12) == 0) {
        return set_list(&plan->nodes, value, key[12] == '+');
    }
    if (strcmp(key, "router-dispatcher") == 0) {
        return text_set(&plan->dispatcher, value);
    }
    if (strncmp(key, "cluster.", 8) == 0) {
        return trpi_cluster_plan_set(plan, key + 8, value, error, error_bytes);
    }
    if (strncmp(key, "resizer.", 8) == 0) {
        return set_resizer(plan, key + 8, value, error, error_bytes);
    }
    if (strcmp(key, "nr-of-instances") == 0) {
        good = trpi_whole32_parse(value, 1, UINT32_MAX, &plan->instances);
        plan->instances_said = plan->instances;
    } else if (strcmp(key, "within") == 0) {
        good = parse_ms(value, &plan->within_ms) && plan->within_ms > 0;
    } else if (strcmp(key, "interval") == 0 || strcmp(key, "tail-chopping-router.interval") == 0) {
        good = parse_ms(value, &plan->interval_ms) && plan->interval_ms > 0;
    } else if (strcmp(key, "virtual-nodes-factor") == 0) {
        good = trpi_whole32_parse(value, 1, UINT32_MAX, &plan->virtual_nodes);
    } else {
        return set_setting(plan, key, value);
    }
    return good ? TRP_OK
                : trpi_router_plan_wrong(error, error_bytes, "%s: \"%s\" is no value for it", key,
                                         value);
}

/* ---- as a whole ------------------------------------------------------------------------------ */

static trp_err
check_resizer(const trpi_router_plan *plan, char *error, size_t bytes)
{
    const trp_resizer_options *r = &plan->resizer;

    if (!plan->resizes || plan->resizes_own || trpi_resizer_is_valid(r)) {
        return TRP_OK;
    }
    (void)trpi_router_plan_wrong(
        error, bytes,
        "resizer: bounds %u to %u, rates %g and %g, threshold %g, messages-per-resize %u "
        "are out of range or contradict each other",
        r->lower_bound, r->upper_bound, r->rampup_rate, r->backoff_rate, r->backoff_threshold,
        r->messages_per_resize);
    return TRP_EINVAL;
}

trp_err
trpi_router_plan_check(trpi_router_plan *plan, char *error, size_t error_bytes)
{
    uint32_t needs;

    if (plan->from_config && !plan->configured) {
        return trpi_router_plan_wrong(error, error_bytes,
                                      "the router is to come from the configuration, and has no "
                                      "deployment section");
    }
    plan->instances = plan->instances == 0 ? 1 : plan->instances;
    plan->within_ms = plan->within_ms == 0 ? TRP_ROUTER_WITHIN_MS_DEFAULT : plan->within_ms;
    plan->interval_ms = plan->interval_ms == 0 ? TRP_ROUTER_INTERVAL_MS_DEFAULT : plan->interval_ms;
    plan->virtual_nodes =
        plan->virtual_nodes == 0 ? TRP_ROUTER_VIRTUAL_NODES_DEFAULT : plan->virtual_nodes;
    if (plan->custom == NULL &&
        trpi_logic_find(plan->logic != NULL ? plan->logic : "round-robin", &needs) == NULL) {
        (void)trpi_router_plan_wrong(error, error_bytes, "no routing logic is called \"%s\"",
                                     plan->logic);
        return TRP_EINVAL;
    }
    if (plan->instances > TRP_ROUTEES_MAX ||
        plan->routees_count + (uint64_t)plan->paths.texts_count > TRP_ROUTEES_MAX) {
        (void)trpi_router_plan_wrong(error, error_bytes, "more than %d routees", TRP_ROUTEES_MAX);
        return TRP_ELIMIT;
    }
    for (uint32_t i = 0; i < plan->nodes.texts_count; i++) {
        trpi_address address;
        const char *rest;

        if (trpi_address_parse(plan->nodes.texts[i], &address, &rest, NULL) != TRP_OK ||
            rest[0] != 0 || address.port == 0) {
            (void)trpi_router_plan_wrong(
                error, error_bytes,
                "target.nodes: \"%s\" is no node: write troupe.tcp://system@host:port",
                plan->nodes.texts[i]);
            return TRP_EINVAL;
        }
    }
    if (plan->virtual_nodes > TRP_ROUTER_VIRTUAL_NODES_MAX) {
        (void)trpi_router_plan_wrong(error, error_bytes, "virtual-nodes-factor %u, at most %d",
                                     plan->virtual_nodes, TRP_ROUTER_VIRTUAL_NODES_MAX);
        return TRP_EINVAL;
    }
    return check_resizer(plan, error, error_bytes);
}

trp_err
trpi_router_plan_node_add(trpi_router_plan *plan, const char *node)
{
    return texts_add(&plan->nodes, node, strlen(node));
}

trp_err
trpi_router_plan_setting_add(trpi_router_plan *plan, const char *setting)
{
    return texts_add(&plan->settings, setting, strlen(setting));
}

void
trpi_router_plan_path_drop(trpi_router_plan *plan, uint32_t index)
{
    trpi_assert(index < plan->paths.texts_count);
    trpi_free(plan->paths.texts[index]);
    plan->paths.texts[index] = NULL;
}

const char *
trpi_router_plan_setting(const trpi_router_plan *plan, const char *key)
{
    size_t bytes = strlen(key);

    for (uint32_t i = plan->settings.texts_count; i > 0; i--) {
        const char *setting = plan->settings.texts[i - 1];

        if (strncmp(setting, key, bytes) == 0 && setting[bytes] == '=') {
            return setting + bytes + 1;
        }
    }
    return NULL;
}

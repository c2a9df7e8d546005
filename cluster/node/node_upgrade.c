/* node_upgrade.c - `troupe upgrade FILE`: a newer version of a plugin, while its actors live.
 *
 * Shape.   file below plugins-dir -> copy -> dlopen -> what it brings is checked
 *          -> may all actors change? -> its begin -> each actor changes, or is listed
 * Must hold.
 *   node-upgrade-U1  Until begin has returned nothing of the node has changed, but message types
 *       were registered: a refusal leaves all actors as they are.
 *   node-upgrade-U2  One upgrade at a time. (upgrading)
 *   node-upgrade-U3  A version whose message types were registered stays mapped, also when it is
 *       refused then: they point into it. So does its copy stay open: the loader would take another
 *       file with that descriptor's path for it.
 *   node-upgrade-U4  No actor holds up the end of the node, or the thread of a client that has
 *       gone: the upgrade ends then as at its deadline. (call_is_wanted)
 * Limits.  TRPI_UPGRADES_MAX of a node, TRP_PLUGIN_CHANGES_MAX, KEPT_SHOWN_MAX in an answer.
 * Tests.     tests/system/upgrade.sh, tests/unit/actor/upgrade_test.c
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "cluster/node/ctl_proto.h"
#include "cluster/node/node_private.h"
#include "persistence/persistence.h"

#ifndef TROUPE_LIBDIR
#define TROUPE_LIBDIR "/usr/local/lib"
#endif
#define KEPT_SHOWN_MAX 1000u
#define TURN_WAIT_MS 1000u /* of an order, for the one before */
#define TURN_LOOK_MS 5u

typedef struct upgrading {
    trp_node *node;
    trpi_call *call;
    trpi_plugin *plugin;
    const char *name;
    void *handle; /* of the newer version; NULL: not loaded, or begun */
    int copy;     /* -1: as handle */
    const trp_plugin *newer;
    const trp_plugin_upgrade *brings;
    trpi_upgrade_row *rows; /* owned */
    cJSON *kept;            /* list of the answer; owned until then */
    uint32_t shown;
    bool given_up; /* node-upgrade-U4 */
} upgrading;

static const char *
file_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

const char *
trpi_plugins_dir(trp_node *node)
{
    const char *dir = trpi_config_text(node->config, "plugins-dir");
    return dir[0] != '\0' ? dir : TROUPE_LIBDIR "/troupe";
}

/* ---- load ------------------------------------------------------------------------------------ */

/* Find the plugin that was loaded from a file of that name. false: answered. */
static bool
plugin_find(upgrading *u)
{
    if (strchr(u->name, '/') != NULL || u->name[strspn(u->name, ".")] == '\0') {
        trpi_call_refuse_text(u->call, TRPI_CTL_EXIT_USAGE, NULL,
                              "'%.256s': expected the name of a file in %.512s, without a /",
                              u->name, trpi_plugins_dir(u->node));
        return false;
    }
    for (size_t i = 0; i < u->node->plugins_count; i++) {
        if (strcmp(file_of(u->node->plugins[i].path), u->name) == 0) {
            if (u->plugin != NULL) {
                trpi_call_refuse_text(u->call, TRPI_CTL_EXIT_NO, NULL,
                                      "two plugins were loaded from files named %s", u->name);
                return false;
            }
            u->plugin = &u->node->plugins[i];
        }
    }
    if (u->plugin == NULL) {
        trpi_call_refuse_text(u->call, TRPI_CTL_EXIT_NOT_FOUND,
                              u->node->plugins_count > 0 ? file_of(u->node->plugins[0].path)
                                                         : "troupe node --load loads plugins",
                              "no plugin was loaded from a file named %.256s", u->name);
        return false;
    }
    if (trpi_upgrades_count(u->node->system) >= TRPI_UPGRADES_MAX) { /* node-upgrade-U1 */
        trpi_call_refuse_text(u->call, TRPI_CTL_EXIT_NO, "restart the node when it suits",
                              "plugins were upgraded %u times, which is the limit of a process",
                              TRPI_UPGRADES_MAX);
        return false;
    }
    return true;
}

static bool
refuse_file(const upgrading *u, const char *why)
{
    trpi_call_refuse_text(u->call, TRPI_CTL_EXIT_DATA, NULL, "nothing was changed: %s: %s", u->name,
                          why);
    return false;
}

/* Copy the file, and load the copy. false: answered. */
static bool
file_load(upgrading *u)
{
    trpi_control_refusal refusal;
    char path[64];
    int fd = -1;
    if (trpi_plugins_dir(u->node)[0] !=
        '/') { /* of a directory that this process happens to be in */
        trpi_call_refuse_text(u->call, TRPI_CTL_EXIT_CONFIG, NULL,
                              "plugins-dir %.512s: expected a path that begins with /",
                              trpi_plugins_dir(u->node));
        return false;
    }
    if (!trpi_plugin_file_open(trpi_plugins_dir(u->node), u->name, &fd, &refusal) ||
        !trpi_plugin_file_copy(fd, u->name, (uint32_t)u->plugin->versions_count + 1, &u->copy, path,
                               &refusal)) {
        trpi_call_refuse(u->call, &refusal);
        return false;
    }
    u->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (u->handle == NULL) {
        const char *why = dlerror();
        return refuse_file(u, why != NULL ? why : "it cannot be loaded");
    }
    u->newer = dlsym(u->handle, "trp_plugin_v1");
    u->brings = dlsym(u->handle, "trp_plugin_upgrade_v1");
    if (u->newer == NULL || u->newer->abi != TRP_PLUGIN_ABI) {
        return refuse_file(u, "it is no plugin of this version (see troupe/plugin.h)");
    }
    if (u->brings == NULL || !TRPI_SIZED_FITS(u->brings, begin)) {
        return refuse_file(u, "it does not say which behaviours it brings (TRP_PLUGIN_UPGRADE in "
                              "troupe/plugin.h)");
    }
    return true;
}

/* ---- check ----------------------------------------------------------------------------------- */

void
trpi_plugin_accepts_register(const trp_behaviour *behaviour, char *why, size_t why_bytes)
{
    for (const trp_protocol *const *p = behaviour->accepts; p != NULL && *p != NULL; p++) {
        trp_err err = trp_protocol_register(*p);
        if (err == TRP_EEXIST) {
            (void)snprintf(why, why_bytes,
                           "protocol %.64s has a message type with other fields than the one of "
                           "that name that is loaded: give the new layout a new name",
                           (*p)->name);
        } else if (err != TRP_OK) {
            (void)snprintf(why, why_bytes, "protocol %.64s: %s", (*p)->name, trp_strerror(err));
        }
    }
}

/* Check what the file brings, and make the rows of it. false: answered. */
static bool
rows_make(upgrading *u)
{
    char why[512] = "";
    uint32_t count = u->brings->changes_count;
    if (count > TRP_PLUGIN_CHANGES_MAX || (count > 0 && u->brings->changes == NULL)) {
        return refuse_file(u, "it brings more than 256 behaviours");
    }
    u->rows = trpi_alloc((count + 1) * sizeof u->rows[0]);
    if (u->rows == NULL) {
        return refuse_file(u, "out of memory");
    }
    for (uint32_t i = 0; i < count && why[0] == '\0'; i++) {
        const trp_code_change *change = &u->brings->changes[i];
        trpi_upgrade so_far = { u->rows, i, NULL, 0 };
        if (!trpi_behaviour_is_valid(change->behaviour)) {
            (void)snprintf(why, sizeof why, "its behaviour %u is not complete", i);
        } else if (trpi_upgrade_row_of(&so_far, change->behaviour->name) != NULL) {
            (void)snprintf(why, sizeof why, "it brings two behaviours named %.128s",
                           change->behaviour->name);
        } else {
            bool recovers = trpi_behaviour_is_persistent(change->behaviour);
            u->rows[i] =
                (trpi_upgrade_row){ *change, recovers, recovers ? trpi_persistent_is_busy : NULL };
        }
    }
    return why[0] == '\0' || refuse_file(u, why);
}

/* node-upgrade-U1. false: answered. */
static bool
plugin_upgrade_begin(upgrading *u, const trpi_upgrade *upgrade)
{
    char why[512] = "";
    trp_plugin_error error = { "" };
    trp_err err = trpi_upgrade_check(u->node->system, upgrade, why, sizeof why);
    if (err != TRP_OK) {
        return refuse_file(u, why);
    }
    u->handle = NULL; /* node-upgrade-U3 */
    u->copy = -1;
    for (size_t i = 0; i < upgrade->rows_count && why[0] == '\0'; i++) {
        trpi_plugin_accepts_register(upgrade->rows[i].change.behaviour, why, sizeof why);
    }
    if (why[0] != '\0') {
        return refuse_file(u, why);
    }
    trpi_fault_trust(u->newer);
    void *state = u->plugin->state;
    err = u->brings->begin == NULL ? TRP_OK : u->brings->begin(u->node, &state, &error);
    if (err != TRP_OK) {
        return refuse_file(u, error.text[0] != '\0' ? error.text : trp_strerror(err));
    }
    u->plugin->state = state;
    u->plugin->plugin = u->newer; /* whose `fini` is given that state, whatever comes */
    return true;
}

/* ---- change ---------------------------------------------------------------------------------- */

static void
kept_add(void *arg, const char *path, const char *why)
{
    upgrading *u = arg;
    cJSON *row = u->shown < KEPT_SHOWN_MAX ? cJSON_CreateObject() : NULL;
    trp_system_log(u->node->system, TRP_LOG_WARNING, "node",
                   "upgrade of %s: %s keeps its old code: %s", u->name, path, why);
    if (row != NULL) {
        u->shown++;
        (void)trpi_json_append(u->kept, row,
                               trpi_json_add_text(row, "path", path) &&
                                   trpi_json_add_text(row, "why", why));
    }
}

static void
upgrade_answer(upgrading *u, const trpi_upgraded *sum)
{
    cJSON *reply = trpi_call_reply();
    bool ok = trpi_json_add_text(reply, "plugin", u->name) &&
              trpi_json_add_i64(reply, "version", (int64_t)u->plugin->versions_count) &&
              trpi_json_add_i64(reply, "changed", (int64_t)sum->changed) &&
              trpi_json_add_i64(reply, "keptCount", (int64_t)sum->kept) &&
              cJSON_AddItemToObject(reply, "kept", u->kept);
    if (ok) {
        u->kept = NULL;
    }
    trpi_call_answer_if(u->call, ok && trpi_call_add_elapsed(u->call, reply), reply);
}

/* node-upgrade-U4. Not trpi_call_is_wanted(), which is false at the deadline, too. */
static bool
call_is_wanted(void *arg)
{
    upgrading *u = arg;
    u->given_up = u->given_up || !trpi_call_pause(u->call, 0);
    return !u->given_up;
}

static void
actors_change(upgrading *u, const trpi_upgrade *upgrade)
{
    trpi_upgraded sum = { 0, 0 };
    uint64_t deadline_ns = trpi_world_mono_ns(trpi_system_world(u->node->system)) +
                           (uint64_t)trpi_call_left_ms(u->call) * 1000000u;
    u->kept = cJSON_CreateArray();
    trp_err err =
        trpi_upgrade_run(u->node->system, upgrade, deadline_ns, kept_add, call_is_wanted, u, &sum);
    if (err != TRP_OK) {
        trpi_call_refuse_text(u->call, TRPI_CTL_EXIT_INTERNAL, "try again",
                              "%s has begun, and no more actors change: %s", u->name,
                              trp_strerror(err));
        return;
    }
    trpi_plugin *plugin = u->plugin;
    plugin->versions[plugin->versions_count++] = trpi_plugin_code(u->newer);
    trp_system_log(u->node->system, TRP_LOG_INFO, "node",
                   "plugin %s was upgraded to its version %zu: %llu actors changed, %llu keep "
                   "their old code",
                   u->name, plugin->versions_count, (unsigned long long)sum.changed,
                   (unsigned long long)sum.kept);
    if (u->given_up) {
        trpi_call_refuse_text(u->call, TRPI_CTL_EXIT_UNREACHABLE, NULL,
                              "the node is stopping: %llu actors changed, %llu kept their old code",
                              (unsigned long long)sum.changed, (unsigned long long)sum.kept);
        return;
    }
    upgrade_answer(u, &sum);
}

static bool
turn_try(trp_node *node)
{
    pthread_mutex_lock(&node->lock);
    bool taken = !node->is_upgrading;
    node->is_upgrading = true;
    pthread_mutex_unlock(&node->lock);
    return taken;
}

/* node-upgrade-U2. An order that is answered gives its turn a moment later, and who has heard the
 * answer may order the next one. */
bool
trpi_plugin_turn_take(trp_node *node, trpi_call *call)
{
    bool taken = turn_try(node);
    for (uint32_t waited = 0; !taken && waited < TURN_WAIT_MS; waited += TURN_LOOK_MS) {
        if (!trpi_call_pause(call, TURN_LOOK_MS)) {
            break;
        }
        taken = turn_try(node);
    }
    if (!taken) {
        trpi_call_refuse_text(call, TRPI_CTL_EXIT_TIMEOUT, NULL,
                              "nothing was changed: another upgrade or spawn of this node runs");
    }
    return taken;
}

void
trpi_plugin_turn_give(trp_node *node)
{
    pthread_mutex_lock(&node->lock);
    node->is_upgrading = false;
    pthread_mutex_unlock(&node->lock);
}

void
trpi_node_serve_upgrade(trp_node *node, trpi_call *call)
{
    upgrading u = { .node = node, .call = call, .name = call->request.path, .copy = -1 };
    if (!trpi_plugin_turn_take(node, call)) {
        return;
    }
    if (plugin_find(&u) && file_load(&u) && rows_make(&u)) {
        trpi_upgrade upgrade = { u.rows, u.brings->changes_count, u.plugin->versions,
                                 u.plugin->versions_count };
        if (plugin_upgrade_begin(&u, &upgrade)) {
            trpi_call_confirm(call);
            actors_change(&u, &upgrade);
        }
    }
    if (u.handle != NULL) {
        (void)dlclose(u.handle); /* nothing of it has run but its constructors */
    }
    if (u.copy >= 0) {
        (void)close(u.copy);
    }
    trpi_free(u.rows);
    cJSON_Delete(u.kept);
    trpi_plugin_turn_give(node);
}

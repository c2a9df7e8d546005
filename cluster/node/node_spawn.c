/* node_spawn.c - spawn: start an actor below /user whose behaviour a file of plugins-dir exports.
 *
 * Shape.   name --> file (plugin_file.c) --> copy --> behaviour, a symbol of it --> actor, which is
 *          told the arguments. The same file, unchanged, is loaded once.
 * Must hold.
 *   node-spawn-S1  Nothing is loaded that others than root and the node's user can write; what was
 *       checked is what is loaded.                                     (trpi_plugin_file_open)
 *   node-spawn-S2  A file whose behaviour an actor may have, or of whose message types one may be
 *       registered, is never closed; nor is one that was refused for a later type.  (file_keep)
 *   node-spawn-S3  One command of a node loads code at a time.       (trpi_plugin_turn_take)
 * Limits.  TRPI_SPAWN_FILES_MAX files, or versions of one, in the life of a process.
 * Tests.   tests/system/spawn.sh
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/node/node_private.h"

#define NAME_BYTES 256u
#define SYMBOL "trp_spawn_v1" /* of TRP_SPAWN */

typedef struct spawning {
    trp_node *node;
    trpi_call *call;
    char file[NAME_BYTES], symbol[NAME_BYTES];
    trpi_spawn_file loaded;
    bool known; /* it was loaded before */
    const trp_behaviour *behaviour;
} spawning;

static bool
refuse_file(const spawning *s, const char *why)
{
    trpi_call_refuse_text(s->call, TRPI_CTL_EXIT_DATA, NULL, "nothing was started: %s: %s", s->file,
                          why);
    return false;
}

/* Split FILE[:SYMBOL]; check the arguments. false: answered. */
static bool
request_take(spawning *s)
{
    const trpi_control_request *request = &s->call->request;
    const char *text = request->plugin;
    size_t bytes = strcspn(text, ":");
    cJSON *json = NULL;
    int symbol = snprintf(s->symbol, sizeof s->symbol, "%s",
                          text[bytes] != '\0' ? text + bytes + 1 : SYMBOL);
    if (bytes >= sizeof s->file || symbol <= 0 || (size_t)symbol >= sizeof s->symbol) {
        trpi_call_refuse_text(s->call, TRPI_CTL_EXIT_USAGE, NULL,
                              "'%.256s': expected FILE or FILE:SYMBOL", text);
        return false;
    }
    memcpy(s->file, text, bytes);
    s->file[bytes] = '\0';
    if (request->text != NULL &&
        trpi_json_parse(request->text, strlen(request->text), &json, NULL) != TRP_OK) {
        trpi_call_refuse_text(s->call, TRPI_CTL_EXIT_DATA, NULL, "--args: it is no JSON");
        return false;
    }
    cJSON_Delete(json);
    return true;
}

/* ---- load ------------------------------------------------------------------------------------ */

static bool
is_same(const trpi_spawn_file *a, const trpi_spawn_file *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->bytes == b->bytes &&
           a->changed_ns == b->changed_ns;
}

/* Take the file that was loaded before, if this is it. Takes fd if it is not. */
static bool
file_find(spawning *s, int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return false;
    }
    s->loaded.dev = status.st_dev;
    s->loaded.ino = status.st_ino;
    s->loaded.bytes = status.st_size;
    s->loaded.changed_ns =
        (int64_t)status.st_ctim.tv_sec * 1000000000 + (int64_t)status.st_ctim.tv_nsec;
    for (size_t i = 0; i < s->node->spawn_files_count; i++) {
        if (is_same(&s->node->spawn_files[i], &s->loaded)) {
            s->loaded = s->node->spawn_files[i];
            s->known = true;
        }
    }
    return s->known;
}

/* node-spawn-S1. false: answered. */
static bool
file_load(spawning *s)
{
    trpi_control_refusal refusal;
    const char *dir = trpi_plugins_dir(s->node);
    char path[64];
    int fd = -1;
    s->loaded.copy = -1;
    if (dir[0] != '/') { /* of a directory that this process happens to be in */
        trpi_call_refuse_text(s->call, TRPI_CTL_EXIT_CONFIG, NULL,
                              "plugins-dir %.512s: expected a path that begins with /", dir);
        return false;
    }
    if (!trpi_plugin_file_open(dir, s->file, &fd, &refusal)) {
        trpi_call_refuse(s->call, &refusal);
        return false;
    }
    if (file_find(s, fd)) {
        (void)close(fd);
        return true;
    }
    if (s->node->spawn_files_count == TRPI_SPAWN_FILES_MAX) {
        (void)close(fd);
        trpi_call_refuse_text(s->call, TRPI_CTL_EXIT_NO, "restart the node when it suits",
                              "%u files were loaded for spawn, which is the limit of a process",
                              TRPI_SPAWN_FILES_MAX);
        return false;
    }
    if (!trpi_plugin_file_copy(fd, s->file, (uint32_t)s->node->spawn_files_count + 1,
                               &s->loaded.copy, path, &refusal)) {
        trpi_call_refuse(s->call, &refusal);
        return false;
    }
    s->loaded.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (s->loaded.handle == NULL) {
        const char *why = dlerror();
        return refuse_file(s, why != NULL ? why : "it cannot be loaded");
    }
    return true;
}

/* node-spawn-S2 */
static void
file_keep(spawning *s)
{
    if (!s->known) {
        trpi_fault_trust(s->behaviour);
        s->node->spawn_files[s->node->spawn_files_count++] = s->loaded;
        s->known = true;
    }
}

/* false: answered. */
static bool
behaviour_find(spawning *s)
{
    char why[512] = "";
    s->behaviour = dlsym(s->loaded.handle, s->symbol);
    if (s->behaviour == NULL) {
        (void)snprintf(why, sizeof why, "it has no symbol %.200s (TRP_SPAWN in troupe/plugin.h)",
                       s->symbol);
    } else if (!trpi_behaviour_is_valid(s->behaviour)) {
        (void)snprintf(why, sizeof why, "%.200s is no complete behaviour", s->symbol);
    } else {
        file_keep(s);
        trpi_plugin_accepts_register(s->behaviour, why, sizeof why);
    }
    return why[0] == '\0' || refuse_file(s, why);
}

/* ---- start ----------------------------------------------------------------------------------- */

static void
start_refuse(const spawning *s, trp_err err, const char *name)
{
    if (err == TRP_EEXIST) {
        trpi_call_refuse_text(s->call, TRPI_CTL_EXIT_NO, NULL, "an actor /user/%.256s lives", name);
    } else if (err == TRP_EINVAL) {
        trpi_call_refuse_text(s->call, TRPI_CTL_EXIT_USAGE, NULL,
                              "'%.256s' is no name of an actor, or %.200s needs options to start",
                              name, s->symbol);
    } else {
        trpi_call_refuse_order(s->call, err, "spawn");
    }
}

static void
actor_start(spawning *s)
{
    const trpi_control_request *request = &s->call->request;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_system *system = s->node->system;
    trp_ref ref = TRP_REF_NONE;
    char path[TRP_PATH_BYTES_MAX + 1];
    trp_err err = trpi_call_wanted(s->call);
    options.name = request->path;
    err = err == TRP_OK ? trp_system_spawn(system, s->behaviour, &options, &ref) : err;
    if (err != TRP_OK) {
        start_refuse(s, err, request->path);
        return;
    }
    if (request->text != NULL) {
        trp_system_tell(system, ref, &trp_json_type, request->text, strlen(request->text));
    }
    (void)trp_path(system, ref, path, sizeof path);
    cJSON *reply = trpi_call_reply();
    bool ok = trpi_json_add_text(reply, "path", path) &&
              trpi_json_add_text(reply, "behaviour", s->behaviour->name) &&
              trpi_json_add_text(reply, "plugin", s->file);
    trpi_call_answer_if(s->call, ok, reply);
}

void
trpi_node_serve_spawn(trp_node *node, trpi_call *call)
{
    spawning s = { .node = node, .call = call, .loaded = { .copy = -1 } };
    if (!request_take(&s) || !trpi_plugin_turn_take(node, call)) {
        return;
    }
    if (file_load(&s) && behaviour_find(&s)) {
        actor_start(&s);
    }
    if (!s.known && s.loaded.handle != NULL) {
        (void)dlclose(s.loaded.handle); /* nothing of it has run but its constructors */
    }
    if (!s.known && s.loaded.copy >= 0) {
        (void)close(s.loaded.copy);
    }
    trpi_plugin_turn_give(node);
}

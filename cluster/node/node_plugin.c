/* node_plugin.c - dlopen with errors that say what to do.
 *
 * Must hold.
 *   node-plugin-I1  a plugin is never closed: behaviours, types and destructors point into it
 * Tests.     tests/system/node.sh, tests/unit/node/config_test.c
 */
#include "cluster/node/node_plugin.h"

#include <dlfcn.h>
#include <link.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "actor/actor.h"

#ifndef TROUPE_LIBDIR
#define TROUPE_LIBDIR "/usr/local/lib"
#endif
#define SYMBOL "trp_plugin_v1"

static trp_err plugin_fail(trp_node_error *ret_error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static trp_err
plugin_fail(trp_node_error *ret_error, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(ret_error->text, sizeof ret_error->text, format, list); /* cut is fine */
    va_end(list);
    return TRP_ECONFIG;
}

/* The path that dlopen gets. */
static void
path_find(const char *name, char *path, size_t bytes)
{
    if (!strchr(name, '/')) {
        (void)snprintf(path, bytes, "%s/troupe/%s", TROUPE_LIBDIR, name);
        if (access(path, R_OK) == 0) {
            return;
        }
    }
    (void)snprintf(path, bytes, "%s", name);
}

typedef struct search {
    uintptr_t inside;
    trpi_code code;
} search;

static int
object_look(struct dl_phdr_info *info, size_t size, void *arg)
{
    search *s = arg;
    trpi_code code = { UINTPTR_MAX, 0 };
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t low = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD) {
            code.low = low < code.low ? low : code.low;
            code.high = low + segment->p_memsz > code.high ? low + segment->p_memsz : code.high;
        }
    }
    if (!trpi_code_has(&code, (const void *)s->inside)) {
        return 0;
    }
    s->code = code;
    return 1;
}

trpi_code
trpi_plugin_code(const void *inside)
{
    search s = { (uintptr_t)inside, { 0, 0 } };
    (void)dl_iterate_phdr(object_look, &s); /* 0: not found, no address is inside */
    return s.code;
}

static trp_err
open_fail(const char *name, trp_node_error *ret_error)
{
    const char *why = dlerror();
    bool bare = !strchr(name, '/'), here = bare && access(name, R_OK) == 0;
    return plugin_fail(ret_error, "plugin %s: %s%s%s", name, why ? why : "cannot be loaded",
                       here   ? "; for the file of the present directory write ./"
                       : bare ? "; a name without / is looked for in " TROUPE_LIBDIR
                                "/troupe and where "
                                "the system looks for libraries"
                              : "",
                       here ? name : "");
}

trp_err
trpi_plugin_open(const char *specification, trpi_plugin *ret_plugin, trp_node_error *ret_error)
{
    char name[2048];
    size_t name_bytes = strcspn(specification, ":");
    ret_plugin->arguments = specification[name_bytes] ? specification + name_bytes + 1 : "";
    if (name_bytes == 0 || name_bytes >= sizeof name) {
        return plugin_fail(ret_error, "plugin '%.64s': expected PATH or PATH:ARGUMENTS",
                           specification);
    }
    memcpy(name, specification, name_bytes);
    name[name_bytes] = '\0';
    path_find(name, ret_plugin->path, sizeof ret_plugin->path);
    /* Local: every plugin exports the same name, and none must see another's symbols.
     * node-plugin-I1. */
    void *handle = dlopen(ret_plugin->path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        return open_fail(name, ret_error);
    }
    const trp_plugin *plugin = dlsym(handle, SYMBOL);
    if (!plugin) {
        return plugin_fail(ret_error,
                           "plugin %s: it has no symbol " SYMBOL " (see troupe/plugin.h)", name);
    }
    if (plugin->abi != TRP_PLUGIN_ABI || !plugin->init) {
        return plugin_fail(ret_error,
                           "plugin %s: it was built for plugin version %u, this node has %u", name,
                           plugin->abi, TRP_PLUGIN_ABI);
    }
    ret_plugin->plugin = plugin;
    ret_plugin->versions[0] = trpi_plugin_code(plugin);
    ret_plugin->versions_count = 1;
    return TRP_OK;
}

trp_err
trpi_plugin_begin(trp_node *node, trpi_plugin *plugin, trp_node_error *ret_error)
{
    trp_plugin_error error = { "" };
    trpi_fault_trust(plugin->plugin);
    trp_err err = plugin->plugin->init(node, plugin->arguments, &plugin->state, &error);
    if (err != TRP_OK) {
        return plugin_fail(ret_error, "plugin %s: %s%s%s%s", plugin->path,
                           error.text[0] ? error.text : "it failed to start",
                           error.text[0] ? "" : ": ", error.text[0] ? "" : trp_strerror(err),
                           err == TRP_EEXIST ? "; is it loaded twice?" : "");
    }
    plugin->begun = true;
    return TRP_OK;
}

void
trpi_plugin_fini(trpi_plugin *plugin)
{
    if (plugin->begun && plugin->plugin->fini) {
        plugin->plugin->fini(plugin->state);
    }
    plugin->plugin = NULL;
}

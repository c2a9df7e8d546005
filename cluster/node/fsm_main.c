/* fsm_main.c - `troupe fsm dot PLUGIN NAME`: the drawing of a state machine, from its tables.
 *
 * Why.     A drawing that is made from what runs is never out of date.
 * Shape.   The shared object is loaded as a node would, but its init is not called: it names its
 *          definitions by symbols (TRP_FSM_EXPORT).
 * Tests.   tests/system/fsm.sh
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <troupe/fsm.h>

#include "base/alloc.h"
#include "cluster/node/ctl_proto.h"

enum { SYMBOL_BYTES = 256 };

static const char help[] =
    "usage: troupe fsm dot PLUGIN NAME\n"
    "\n"
    "Prints the state machine NAME of the shared object PLUGIN as a graph of Graphviz:\n"
    "    troupe fsm dot ./buncher.so buncher | dot -Tsvg > buncher.svg\n"
    "The object names it by TRP_FSM_EXPORT(NAME, &definition). Edges are drawn if it declares "
    "them.\n";

static int
fsm_fail(int code, const char *text, const char *detail)
{
    (void)fprintf(stderr, "troupe fsm: %s%s\n", text, detail);
    return code;
}

static bool
is_name(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    return name[0] != '\0' && strspn(name, allowed) == strlen(name);
}

/* Load a shared object; a bare name is a file here, not one that the loader searches for. */
static void *
object_load(const char *path)
{
    char here[PATH_MAX];
    int length = snprintf(here, sizeof here, "%s%s", strchr(path, '/') == NULL ? "./" : "", path);
    return length > 0 && (size_t)length < sizeof here ? dlopen(here, RTLD_NOW | RTLD_LOCAL) : NULL;
}

static int
definition_print(const trp_fsm_definition *definition)
{
    size_t bytes = trp_fsm_dot(definition, NULL, 0) + 1;
    char *text = trpi_alloc(bytes);
    if (text == NULL) {
        return fsm_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory", "");
    }
    (void)trp_fsm_dot(definition, text, bytes);
    bool is_written = fputs(text, stdout) >= 0 && fflush(stdout) == 0;
    trpi_free(text);
    return is_written ? 0 : fsm_fail(TRPI_CTL_EXIT_OUTPUT, "cannot write to standard output", "");
}

int
trp_fsm_main(int argc, char **argv)
{
    char symbol[SYMBOL_BYTES];
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        return fputs(help, stdout) >= 0 && fflush(stdout) == 0 ? 0 : TRPI_CTL_EXIT_OUTPUT;
    }
    if (argc != 4 || strcmp(argv[1], "dot") != 0) {
        (void)fputs(help, stderr);
        return TRPI_CTL_EXIT_USAGE;
    }
    int length = snprintf(symbol, sizeof symbol, "trp_fsm_export_%s", argv[3]);
    if (!is_name(argv[3]) || (size_t)length >= sizeof symbol) {
        return fsm_fail(TRPI_CTL_EXIT_USAGE,
                        "NAME has letters, digits and _ only, as in C: ", argv[3]);
    }
    void *object = object_load(argv[2]); /* never unloaded: its code may run already */
    if (object == NULL) {
        const char *why = dlerror();
        return fsm_fail(TRPI_CTL_EXIT_NOT_FOUND,
                        "cannot load the shared object: ", why == NULL ? argv[2] : why);
    }
    const trp_fsm_definition *const *definition = dlsym(object, symbol);
    if (definition == NULL || *definition == NULL) {
        return fsm_fail(TRPI_CTL_EXIT_NOT_FOUND,
                        "the shared object exports no such state machine; name it by "
                        "TRP_FSM_EXPORT(NAME, &definition): ",
                        argv[3]);
    }
    return definition_print(*definition);
}

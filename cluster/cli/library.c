/* library.c - load libtroupe for the few commands that are more than a client.
 *
 * Why.     Loading the library and what it needs costs milliseconds at each start; `troupe members`
 *          needs none of it. So it is opened at run time, by the commands that run a node or a
 *          simulation.
 * Shape.   A library beside the program is taken before an installed one, so that a freshly built
 *          program never runs with yesterday's library:
 *            DIR/.libs, DIR, DIR/../lib, the configured libdir, then the loader's own search.
 * Tests.   tests/system/cli.sh
 */
#include <dlfcn.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cluster/cli/cli.h"

#define LIBRARY "libtroupe.so.0"
#ifndef TROUPE_LIBDIR
#define TROUPE_LIBDIR ""
#endif

/* Print why a library that is there does not load (a package is missing): a later find would hide
 * the reason. */
static void *
library_open_in(const char *dir, const char *below)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s%s/" LIBRARY, dir, below);
    if (dir[0] == '\0' || length <= 0 || (size_t)length >= sizeof path || access(path, R_OK) != 0) {
        return NULL;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL) {
        const char *why = dlerror();
        (void)trpi_cli_fail(0, "%s does not load: %s", path, why != NULL ? why : "unknown");
    }
    return library;
}

static void *
library_open(void)
{
    char dir[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", dir, sizeof dir - 1);
    dir[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(dir, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    static const char *const below[] = { "/.libs", "", "/../lib" };
    void *library = NULL;
    for (size_t index = 0; index < sizeof below / sizeof below[0] && library == NULL; index++) {
        library = library_open_in(dir, below[index]);
    }
    if (library == NULL) {
        library = library_open_in(TROUPE_LIBDIR, "");
    }
    return library != NULL ? library : dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL);
}

void *
trpi_cli_library_function(const char *name)
{
    void *library = library_open();
    const char *(*version)(void);
    if (library == NULL) {
        const char *why = dlerror();
        (void)trpi_cli_fail(0, "cannot load " LIBRARY ": %s", why != NULL ? why : "unknown");
        return NULL;
    }
    *(void **)&version = dlsym(library, "trp_version");
    if (version == NULL || strcmp(version(), TRP_VERSION) != 0) {
        (void)trpi_cli_fail(0, LIBRARY " is version %s, this program is " TRP_VERSION,
                            version != NULL ? version() : "unknown");
        return NULL;
    }
    void *function = dlsym(library, name);
    if (function == NULL) {
        (void)trpi_cli_fail(0, LIBRARY " was built without %s", name);
    }
    return function;
}

int
trpi_cli_library_call(const char *name, int argc, char **argv)
{
    int (*function)(int, char **);
    *(void **)&function = trpi_cli_library_function(name);
    return function == NULL ? TRPI_CTL_EXIT_UNREACHABLE : function(argc, argv);
}

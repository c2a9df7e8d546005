/* cmd_multinode.c - multinode: run the launcher, a script (deploy/multinode).
 *
 * Why.     The launcher's work - namespaces, ssh, a name in front of lines - suits a shell script.
 *          One beside the program is taken before an installed one, as library.c does.
 * Tests.   tests/multinode/kit.sh
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cluster/cli/cli.h"

#define LAUNCHER "multinode"
#ifndef TROUPE_PKGDATADIR
#define TROUPE_PKGDATADIR ""
#endif

static bool
launcher_find(char path[PATH_MAX])
{
    char dir[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", dir, sizeof dir - 1);
    dir[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(dir, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    const char *const places[][2] = { { dir, "/deploy/" LAUNCHER },
                                      { dir, "/../share/troupe/" LAUNCHER },
                                      { TROUPE_PKGDATADIR, "/" LAUNCHER } };
    for (size_t index = 0; index < sizeof places / sizeof places[0]; index++) {
        int bytes = snprintf(path, PATH_MAX, "%s%s", places[index][0], places[index][1]);
        if (bytes > 0 && bytes < PATH_MAX && access(path, X_OK) == 0) {
            return true;
        }
    }
    return false;
}

int
trpi_cli_run_multinode(trpi_cli *cli)
{
    static char path[PATH_MAX];
    char **words = trpi_alloc(((size_t)cli->rest_count + 2) * sizeof *words);
    if (words == NULL) {
        return trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "out of memory");
    }
    if (!launcher_find(path)) {
        trpi_free(words);
        return trpi_cli_fail(TRPI_CTL_EXIT_UNREACHABLE,
                             "there is no launcher; it belongs into " TROUPE_PKGDATADIR);
    }
    words[0] = path;
    for (int index = 0; index < cli->rest_count; index++) {
        words[index + 1] = cli->rest[index];
    }
    (void)execv(path, words);
    trpi_free(words);
    return trpi_cli_fail(TRPI_CTL_EXIT_INTERNAL, "%s: %s", path, strerror(errno));
}

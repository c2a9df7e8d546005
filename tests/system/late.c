/* late.c - a plugin whose init waits until there is a file, and fails when the file does not appear
 * in time.
 *
 *     troupe node --load tests/system/.libs/late.so:/tmp/file
 */
#include <time.h>
#include <unistd.h>

#include <troupe/plugin.h>
#include <troupe/troupe.h>

enum { STEP_MS = 10, LIMIT_MS = 300000 };

static trp_err
late_init(trp_node *node, const char *arguments, void **ret_state, trp_plugin_error *ret_error)
{
    const struct timespec step = { 0, STEP_MS * 1000000l };
    (void)node;
    (void)ret_state;
    (void)ret_error;
    for (int waited = 0; waited < LIMIT_MS; waited += STEP_MS) {
        if (access(arguments, F_OK) == 0) {
            return TRP_OK;
        }
        (void)nanosleep(&step, NULL);
    }
    return TRP_ETIMEDOUT;
}

TRP_PLUGIN("late", late_init, NULL)

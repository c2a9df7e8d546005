/* stuck.c - a plugin whose actors never end their turn: as many as the default dispatcher has
 * workers stop it. And a task of the shutdown, which cannot run then.
 *
 *     troupe node --load tests/system/.libs/stuck.so:2
 *
 * Or, with a path, what must not happen: the library's own dispatcher stands still while there is
 * such a file.
 *
 *     troupe node --load tests/system/.libs/stuck.so:/tmp/held
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <troupe/dispatcher.h>
#include <troupe/plugin.h>
#include <troupe/shutdown.h>
#include <troupe/troupe.h>

static trp_err
stuck_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    while (pause() != 0) { /* it never is */
    }
    return TRP_OK;
}
static const trp_behaviour stuck = TRP_BEHAVIOUR_INIT("stuck", char, stuck_receive);

static void
never_runs(void *arg, uint64_t task)
{
    (void)task;
    _Exit(*(const int *)arg);
}

static void
hold(void *arg)
{
    while (access(arg, F_OK) == 0) {
        (void)usleep(20000);
    }
    free(arg);
}

static trp_err
stuck_init(trp_node *node, const char *arguments, void **ret_state, trp_plugin_error *ret_error)
{
    static int code = 99;
    trp_system *system = trp_node_system(node);
    if (arguments[0] == '/') {
        *ret_state = &code; /* it ends as any other */
        return trp_dispatcher_execute(system, "system", hold, strdup(arguments));
    }
    trp_err err = trp_shutdown_add(system, TRP_SHUTDOWN_SERVICE_STOP, "stuck", never_runs, &code,
                                   &(uint64_t){ 0 });
    (void)ret_error;
    for (int i = atoi(arguments); i > 0 && err == TRP_OK; i--) {
        trp_ref ref;
        err = trp_system_spawn(system, &stuck, NULL, &ref);
        if (err == TRP_OK) {
            trp_system_tell(system, ref, &trp_string_type, "x", 1);
        }
    }
    return err;
}

static void
stuck_fini(void *state)
{
    if (state == NULL) {
        _Exit(98); /* actors still run its code */
    }
}

TRP_PLUGIN("stuck", stuck_init, stuck_fini)

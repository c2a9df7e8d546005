/* stuck.c - a plugin whose actors never end their turn: as many as the default dispatcher has
 * workers stop it. And a task of the shutdown, which cannot run then.
 *
 *     troupe node --load tests/system/.libs/stuck.so:2
 */
#include <stdlib.h>
#include <unistd.h>

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

static trp_err
stuck_init(trp_node *node, const char *arguments, void **ret_state, trp_plugin_error *ret_error)
{
    static int code = 99;
    trp_system *system = trp_node_system(node);
    trp_err err = trp_shutdown_add(system, TRP_SHUTDOWN_SERVICE_STOP, "stuck", never_runs, &code,
                                   &(uint64_t){ 0 });
    (void)ret_state;
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
    (void)state;
    _Exit(98); /* actors still run its code */
}

TRP_PLUGIN("stuck", stuck_init, stuck_fini)

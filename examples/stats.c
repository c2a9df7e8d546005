/* stats.c - a plugin: mean length of the words of a text, counted by workers all over the cluster.
 *
 *     deployment "/statsService/workerRouter" {        # on every node; a worker on each is shared
 *         router = consistent-hashing  nr-of-instances = 100
 *         cluster { enabled = on  routees-path = /user/statsWorker  use-role = compute } }
 *     troupe node --role compute --load stats.so ...
 *     troupe ask /user/statsService "this is the text that will be analyzed"      prints: 3.875
 *
 * Without routees-path each service has workers of its own, made on the nodes.
 */
#include "stats_service.h"

static trp_err
init(trp_node *node, const char *arguments, void **ret_state, trp_plugin_error *ret_error)
{
    trp_system *system = trp_node_system(node);
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    (void)arguments, (void)ret_state, (void)ret_error;
    trp_err err = trp_behaviour_register(system, &worker);
    options.name = "statsWorker";
    err = err == TRP_OK ? trp_system_spawn(system, &worker, &options, &ref) : err;
    options.name = "statsService";
    return err == TRP_OK ? trp_system_spawn(system, &service, &options, &ref) : err;
}
TRP_PLUGIN("stats", init, NULL)

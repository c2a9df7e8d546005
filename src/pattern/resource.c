/* resource.c - resource actors: the blocking dispatcher, and a pool where there is no state.
 *
 * Tests.   tests/unit/pattern/embedded_test.c
 * Sources. A4J-12
 */
#include <troupe/resource.h>

#include <troupe/router.h>
#include <troupe/system.h>

#include "base/sized.h"

static trp_err
resource_spawn(trp_ctx *ctx, trp_system *system, const trp_behaviour *behaviour,
               const trp_resource_options *given, trp_ref *ret_ref)
{
    trp_resource_options options = TRP_RESOURCE_OPTIONS_INIT;
    trp_spawn_options spawn = TRP_SPAWN_OPTIONS_INIT;
    trp_router_options router = TRP_ROUTER_OPTIONS_INIT;

    if (behaviour == NULL || !TRPI_SIZED_COPY(given, &options, zero)) {
        return TRP_EINVAL;
    }
    spawn.dispatcher = options.dispatcher != NULL ? options.dispatcher : "blocking";
    if (options.parallel <= 1) {
        spawn.name = options.name;
        return ctx != NULL ? trp_spawn(ctx, behaviour, &spawn, ret_ref)
                           : trp_system_spawn(system, behaviour, &spawn, ret_ref);
    }
    if (behaviour->state_bytes != 0) {
        return TRP_EINVAL;
    }
    router.logic = "smallest-mailbox";
    router.instances = options.parallel;
    return ctx != NULL
               ? trp_router_spawn(ctx, behaviour, &spawn, options.name, &router, ret_ref)
               : trp_system_router_spawn(system, behaviour, &spawn, options.name, &router, ret_ref);
}

trp_err
trp_resource_spawn(trp_ctx *ctx, const trp_behaviour *behaviour,
                   const trp_resource_options *options, trp_ref *ret_ref)
{
    return ctx == NULL ? TRP_EINVAL : resource_spawn(ctx, NULL, behaviour, options, ret_ref);
}

trp_err
trp_system_resource_spawn(trp_system *system, const trp_behaviour *behaviour,
                          const trp_resource_options *options, trp_ref *ret_ref)
{
    return resource_spawn(NULL, system, behaviour, options, ret_ref);
}

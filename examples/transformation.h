/* transformation.h - for frontend.c and backend.c: how a backend dials in with a frontend. */
#include <stdio.h>
#include <troupe/plugin.h>
#include <troupe/troupe.h>

#define REGISTRATION(F, S) F(S, u32, version)
#define TRANSFORMATION(M, P) M(P, registration, REGISTRATION)
TRP_PROTOCOL(transformation, TRANSFORMATION)

/* Start the one actor of a plugin, on a node that has the role of its name. */
static trp_err
transformation_start(trp_node *node, const trp_behaviour *behaviour)
{
    trp_spawn_options options = { sizeof options, .name = behaviour->name };
    trp_ref ref;
    trp_err err = trp_cluster_require_role(trp_node_system(node), behaviour->name);
    err = err == TRP_OK ? trp_protocol_register(&transformation_protocol) : err;
    return err == TRP_OK ? trp_system_spawn(trp_node_system(node), behaviour, &options, &ref) : err;
}

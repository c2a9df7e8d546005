/* transformation.h - for frontend.c and backend.c: how a backend dials in with a frontend. */
#include <stdio.h>
#include <troupe/plugin.h>
#include <troupe/troupe.h>

#define REGISTRATION(F, S) F(S, u32, version)
#define TRANSFORMATION(M, P) M(P, registration, REGISTRATION)
TRP_PROTOCOL(transformation, TRANSFORMATION)

/* Start the one actor of a plugin. */
static trp_err
transformation_start(trp_node *node, const trp_behaviour *behaviour)
{
    trp_spawn_options options = { sizeof options, .name = behaviour->name };
    trp_ref ref;
    trp_err err = trp_protocol_register(&transformation_protocol);
    return err == TRP_OK ? trp_system_spawn(trp_node_system(node), behaviour, &options, &ref) : err;
}

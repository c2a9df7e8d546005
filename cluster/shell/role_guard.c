/* role_guard.c - refuses the start of a role's service on a node without that role.
 *
 * Why.     A service that is meant for some nodes and starts on another one by mistake exists
 *          twice, or where no client looks for it. Its start calls this check first.
 * Tests.   tests/unit/cluster/role_guard_test.c
 * Sources. ROLES-03, ROLES-05
 */
#include <troupe/cluster.h>

#include "actor/actor.h"

/* *ret_self is filled for TRP_OK and TRP_EROLE. */
static trp_err
role_look(trp_system *system, const char *role, trp_member *ret_self)
{
    if (role != NULL && role[0] == '\0') {
        return TRP_EINVAL;
    }
    trp_err err = trp_cluster_self(system, ret_self);
    return err != TRP_OK || role == NULL || trp_member_has_role(ret_self, role) ? err : TRP_EROLE;
}

trp_err
trp_cluster_require_role(trp_system *system, const char *role)
{
    trp_member self;
    trp_err err = role_look(system, role, &self);
    if (err == TRP_EROLE) {
        trpi_log(system, TRP_LOG_ERROR, "cluster",
                 "this cluster member [%s] does not have the role [%.*s], but [%s]: start the node "
                 "with that role (cluster.roles, --role), or start the actor on another node",
                 self.address, TRP_ROLE_BYTES, role, self.roles);
    }
    return err;
}

trp_err
trp_cluster_spawn_in_role(trp_system *system, const char *role, const trp_behaviour *behaviour,
                          const trp_spawn_options *options, trp_ref *ret_ref)
{
    trp_member self;
    trp_err err = role_look(system, role, &self);
    if (err == TRP_OK) {
        return trp_system_spawn(system, behaviour, options, ret_ref);
    }
    if (err == TRP_EROLE) {
        if (behaviour == NULL || ret_ref == NULL) {
            return TRP_EINVAL;
        }
        trpi_log(system, TRP_LOG_INFO, "cluster",
                 "this cluster member [%s] does not have the role [%.*s]: %s is not started here, "
                 "and messages to it from this node become dead letters",
                 self.address, TRP_ROLE_BYTES, role, behaviour->name);
        *ret_ref = trp_system_dead_letters(system);
        err = TRP_OK;
    }
    return err;
}

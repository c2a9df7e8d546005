/* Parts bound to a role, on nodes that have it and nodes that do not (ROLES-03, ROLES-05). */
#include "tests/unit/cluster/host.h"

static _Atomic int handled;

static trp_err
server_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    atomic_fetch_add(&handled, 1);
    return TRP_OK;
}

static const trp_behaviour service = {
    .size = sizeof(trp_behaviour), .name = "service", .version = 1, .receive = server_receive
};

static uint64_t
dead_letters(trp_system *system)
{
    trp_system_stats stats = { .size = sizeof stats };
    uint64_t sum = 0;
    trp_system_stats_get(system, &stats);
    for (int i = 0; i < TRP_DEAD_REASON_COUNT; i++) {
        sum += stats.dead_letters[i];
    }
    return sum;
}

/* ROLES-05: before joining and after; the log says which member, which role, and what to do */
static void
a_node_without_the_role_is_refused_and_told_what_to_do(void)
{
    static struct host h;
    uint32_t first;
    host_start(&h, NULL);
    UNIT_EQUAL(trp_cluster_require_role(h.system, "worker"), TRP_OK);
    UNIT_EQUAL(trp_cluster_require_role(h.system, NULL), TRP_OK);
    UNIT_EQUAL(trp_cluster_require_role(h.system, ""), TRP_EINVAL);
    UNIT_EQUAL(trp_cluster_require_role(h.system, "work"), TRP_EROLE);
    UNIT_EQUAL(trp_log_flush(h.system, 60000), TRP_OK);
    UNIT_EQUAL(
        lines_with(&h, h.address, "does not have the role [work], but [worker]: start", &first), 1);
    const char *own = h.address;
    trp_member self = { .status = 0 };
    UNIT_EQUAL(trp_cluster_join(h.system, &own, 1), TRP_OK);
    UNIT_WAIT(trp_cluster_self(h.system, &self) == TRP_OK && self.status == TRP_MEMBER_UP, 60000);
    UNIT_EQUAL(trp_cluster_require_role(h.system, "worker"), TRP_OK);
    UNIT_EQUAL(trp_cluster_require_role(h.system, "workers"), TRP_EROLE);
    host_end(&h);
}

/* ROLES-03, -05 */
static void
a_service_of_a_role_runs_where_the_role_is_and_is_dead_letters_elsewhere(void)
{
    static struct host h;
    trp_ref here, nobody = TRP_REF_NONE, again;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    uint32_t first;
    atomic_store(&handled, 0);
    options.name = "service";
    host_start(&h, NULL);
    UNIT_EQUAL(trp_cluster_spawn_in_role(h.system, "other", &service, &options, &nobody), TRP_OK);
    UNIT_TRUE(trp_ref_equal(nobody, trp_system_dead_letters(h.system)));
    UNIT_EQUAL(trp_cluster_spawn_in_role(h.system, "worker", &service, &options, &here), TRP_OK);
    UNIT_EQUAL(trp_cluster_spawn_in_role(h.system, NULL, &service, &options, &again), TRP_EEXIST);
    uint64_t before = dead_letters(h.system);
    trp_system_tell(h.system, nobody, &trp_string_type, "x", 1);
    trp_system_tell(h.system, here, &trp_string_type, "x", 1);
    UNIT_WAIT(atomic_load(&handled) == 1 && dead_letters(h.system) == before + 1, 60000);
    UNIT_EQUAL(trp_log_flush(h.system, 60000), TRP_OK);
    UNIT_EQUAL(lines_with(&h, "role [other]: service is not started here", "", &first), 1);
    UNIT_EQUAL(trp_cluster_spawn_in_role(h.system, "", &service, NULL, &again), TRP_EINVAL);
    UNIT_EQUAL(trp_cluster_spawn_in_role(h.system, "other", NULL, NULL, &again), TRP_EINVAL);
    UNIT_EQUAL(trp_cluster_spawn_in_role(h.system, "other", &service, NULL, NULL), TRP_EINVAL);
    host_end(&h);
}

static void
a_system_that_is_no_node_has_no_role(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system = NULL;
    trp_ref ref;
    options.workers = 1;
    UNIT_REQUIRE(trp_system_new("plain", &options, &system) == TRP_OK);
    UNIT_EQUAL(trp_cluster_require_role(system, NULL), TRP_ESTATE);
    UNIT_EQUAL(trp_cluster_require_role(NULL, "worker"), TRP_ESTATE);
    UNIT_EQUAL(trp_cluster_spawn_in_role(system, "worker", &service, NULL, &ref), TRP_ESTATE);
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trp_system_free(system);
}

UNIT_BEGIN("role_guard")
UNIT(a_node_without_the_role_is_refused_and_told_what_to_do)
UNIT(a_service_of_a_role_runs_where_the_role_is_and_is_dead_letters_elsewhere)
UNIT(a_system_that_is_no_node_has_no_role)
UNIT_END

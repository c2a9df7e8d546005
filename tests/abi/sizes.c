/* sizes.c - each struct that begins with its size, and a call that accepts it.
 *
 *   as its initializer makes it      accepted; with -DFUTURE it is longer, and the rest is zero
 *   longer, and the rest is zero     accepted
 *   longer, and a byte is not zero   TRP_EINVAL; one that the library fills: that byte becomes zero
 *   shorter than in 0.1.0            TRP_EINVAL
 *   of more than 4,096 bytes         TRP_EINVAL
 */
#include "callbacks.h"
#include "program.h"

#define SIZE_MOST 4096u

#ifdef FUTURE
#define FIRST_BYTES(type) (sizeof(type) - sizeof(uint64_t))
#define FIRST_BYTES_BEFORE(type, member) offsetof(type, member) /* it has grown by this since */
#else
#define FIRST_BYTES(type) sizeof(type)
#define FIRST_BYTES_BEFORE(type, member) sizeof(type)
#endif

/* ---- a struct and a call that accepts it ----------------------------------------------------- */

static const trp_behaviour plain = TRP_BEHAVIOUR_INIT("plain", int64_t, plain_receive);

/* A name that no other call has; it is borrowed for ever. */
static const char *
fresh(void)
{
    static unsigned number;
    char *name = malloc(16);

    if (name == NULL) {
        exit(1);
    }
    snprintf(name, 16, "n%u", number++);
    return name;
}

static trp_err
call_spawn_options(void *given)
{
    trp_ref ref;
    return trp_system_spawn(stage, &plain, given, &ref);
}

static trp_err
call_testkit_spawn(void *given)
{
    trp_testkit_options options = TRP_TESTKIT_OPTIONS_INIT;
    trp_testkit *kit = NULL;
    trp_ref ref;
    trp_err err;

    options.system = stage;
    err = trp_testkit_open(&options, &kit);
    if (err == TRP_OK) {
        err = trp_testkit_spawn(kit, &plain, given, &ref);
        (void)trp_testkit_close(kit);
    }
    return err;
}

static trp_err
call_routee_options(void *given)
{
    trp_ref ref;
    return trp_system_router_spawn(stage, &plain, given, NULL, NULL, &ref);
}

static trp_err
call_behaviour(void *given)
{
    trp_ref ref;
    return trp_system_spawn(stage, given, NULL, &ref);
}

static trp_err
call_strategy(void *given)
{
    trp_behaviour *behaviour = malloc(sizeof *behaviour);
    trp_ref ref;

    *behaviour = plain;
    behaviour->strategy = given;
    return trp_system_spawn(stage, behaviour, NULL, &ref);
}

static trp_err
new_system(const trp_system_options *options)
{
    trp_system *system = NULL;
    trp_err err = trp_system_new("other", options, &system);

    trp_system_free(system);
    return err;
}

static trp_err
call_system_options(void *given)
{
    return new_system(given);
}

static trp_err
call_guardian_strategy(void *given)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    options.guardian_strategy = given;
    return new_system(&options);
}

static trp_err
call_log_options(void *given)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    options.logging = given;
    return new_system(&options);
}

static trp_err
call_scheduler_options(void *given)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    options.scheduler = given;
    return new_system(&options);
}

static trp_err
call_breaker_options(void *given)
{
    trp_breaker *breaker = NULL;
    trp_err err = trp_breaker_new(stage, given, &breaker);

    if (err == TRP_OK) {
        trp_breaker_unref(breaker);
    }
    return err;
}

static trp_err
call_bus_options(void *given)
{
    trp_bus *bus = NULL;
    trp_err err = trp_bus_new(given, &bus);

    trp_bus_free(bus);
    return err;
}

static trp_err
call_delivery(void *given)
{
    trp_err err =
        trp_system_category_send(stage, "nobody is in it", &trp_string_type, "?", 1, given);
    return err == TRP_ENOENT ? TRP_OK : err;
}

static trp_err
call_dispatcher_options(void *given)
{
    return trp_dispatcher_register(stage, fresh(), given);
}

static trp_err
call_dispatcher_info(void *given)
{
    return trp_dispatcher_find(stage, "default", given);
}

static trp_err
call_mailbox_options(void *given)
{
    return trp_mailbox_register(stage, fresh(), given);
}

static trp_err
call_mailbox_info(void *given)
{
    return trp_mailbox_find(stage, "default-mailbox", given);
}

static trp_err
call_mailbox_ops(void *given)
{
    trp_mailbox_options options = TRP_MAILBOX_OPTIONS_INIT;
    options.kind = TRP_MAILBOX_KIND_CUSTOM;
    options.ops = given;
    return trp_mailbox_register(stage, fresh(), &options);
}

static trp_durable_memory *memory;

static trp_err
call_durable_options(void *given)
{
    trp_durable_options *options = given;
    options->storage = trp_durable_memory_storage(memory);
    return trp_durable_register(stage, fresh(), options);
}

static trp_err
call_durable_storage(void *given)
{
    trp_durable_options options = TRP_DURABLE_OPTIONS_INIT;
    options.storage = given;
    return trp_durable_register(stage, fresh(), &options);
}

static trp_err
call_extension(void *given)
{
    void *instance;
    ((trp_extension *)given)->name = fresh();
    return trp_extension_get(stage, given, &instance);
}

static trp_err
call_failure_detector(void *given)
{
    ((trp_failure_detector *)given)->name = fresh();
    return trp_failure_detector_register(given);
}

static trp_err
call_inbox_options(void *given)
{
    trp_inbox *inbox = NULL;
    trp_err err = trp_inbox_open(stage, given, &inbox);

    trp_inbox_close(inbox);
    return err;
}

static trp_err
call_lease_ops(void *given) /* of a system without a cluster */
{
    trp_err err = trp_cluster_lease_set(stage, given, NULL);
    return err == TRP_ESTATE ? TRP_OK : err;
}

static trp_err
call_metrics_collector(void *given)
{
    ((trp_metrics_collector *)given)->name = fresh();
    return trp_metrics_collector_register(given);
}

static trp_err
call_metrics_selector(void *given)
{
    ((trp_metrics_selector *)given)->name = fresh();
    return trp_metrics_selector_register(given);
}

static trp_err
call_multinode_options(void *given) /* not started by `troupe multinode` */
{
    static const trp_multinode_role roles[] = { { "one", NULL } };
    trp_multinode_options *options = given;
    trp_multinode *test;
    trp_err err;

    options->roles = roles;
    options->roles_count = 1;
    err = trp_multinode_open(options, &test);
    return err == TRP_ENOENT ? TRP_OK : err;
}

static trp_err
call_node_options(void *given) /* refused later */
{
    static const char *const settings[] = { "no.such.key=1", NULL };
    trp_node *node;
    trp_err err;

    ((trp_node_options *)given)->settings = settings;
    err = trp_node_open(given, &node, NULL);
    return err == TRP_ECONFIG ? TRP_OK : err;
}

static trp_err
call_reliable_proxy_options(void *given)
{
    trp_reliable_proxy_options *options = given;
    trp_ref ref;

    options->target_path = "/user/nobody";
    options->retry_after_ms = 1000;
    return trp_system_reliable_proxy_spawn(stage, options, &ref);
}

static trp_err
call_resource_options(void *given)
{
    trp_ref ref;
    return trp_system_resource_spawn(stage, &plain, given, &ref);
}

static trp_err
route_with(const trp_router_options *options)
{
    trp_ref ref;
    return trp_system_router_spawn(stage, &plain, NULL, NULL, options, &ref);
}

static trp_err
call_router_options(void *given)
{
    return route_with(given);
}

static trp_err
call_resizer_options(void *given)
{
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    options.resizer = given;
    return route_with(&options);
}

static trp_err
call_resizer(void *given)
{
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    options.own_resizer = given;
    return route_with(&options);
}

static trp_err
call_router_strategy(void *given)
{
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    options.strategy = given;
    return route_with(&options);
}

static trp_err
call_routing_logic(void *given)
{
    ((trp_routing_logic *)given)->name = fresh();
    return trp_routing_logic_register(given);
}

static trp_err
call_cluster_routees(void *given) /* of a system without a cluster */
{
    trp_router_options options = TRP_ROUTER_OPTIONS_INIT;
    trp_err err;

    options.cluster = given;
    err = route_with(&options);
    return err == TRP_ESTATE || err == TRP_ECONFIG ? TRP_OK : err;
}

static trp_err
call_serializer(void *given)
{
    static uint16_t id = TRP_SERIALIZER_ID_FIRST;
    ((trp_serializer *)given)->name = fresh();
    ((trp_serializer *)given)->id = id++;
    return trp_serializer_add(stage, given);
}

static trp_err
call_seeded_options(void *given)
{
    return trp_seeded_run(seeded_program, NULL, given, NULL);
}

static trp_err
call_seeded_kit(void *given)
{
    trp_seeded_options options = TRP_SEEDED_OPTIONS_INIT;
    options.kit = given;
    return trp_seeded_run(seeded_program, NULL, &options, NULL);
}

static trp_err
call_seeded_result(void *given)
{
    return trp_seeded_run(seeded_program, NULL, NULL, given);
}

static trp_err
call_sim_options(void *given)
{
    trp_err err;
    ((trp_sim_options *)given)->nodes = 1;
    err = trp_sim_run(sim_program, NULL, given, NULL);
    return err == TRP_EUNSUPPORTED ? TRP_OK : err;
}

static trp_err
call_sim_result(void *given)
{
    trp_sim_options options = TRP_SIM_OPTIONS_INIT;
    trp_err err;
    options.nodes = 1;
    err = trp_sim_run(sim_program, NULL, &options, given);
    return err == TRP_EUNSUPPORTED ? TRP_OK : err;
}

static trp_err
call_testkit_options(void *given)
{
    trp_testkit *kit = NULL;
    trp_err err;

    ((trp_testkit_options *)given)->clock = TRP_CLOCK_VIRTUAL;
    err = trp_testkit_open(given, &kit);
    (void)trp_testkit_close(kit);
    return err;
}

static trp_err
call_filter(void *given)
{
    trp_testkit_options options = TRP_TESTKIT_OPTIONS_INIT;
    trp_testkit *kit = NULL;
    trp_err err;

    options.clock = TRP_CLOCK_VIRTUAL;
    options.on_fail = TRP_FAIL_RETURN;
    options.fail = on_fail;
    err = trp_testkit_open(&options, &kit);
    if (err == TRP_OK) {
        err = trp_filter_begin(__FILE__, __LINE__, kit, given) ? TRP_OK : TRP_EINVAL;
        if (err == TRP_OK) {
            (void)trp_filter_end(kit);
        }
        (void)trp_testkit_close(kit);
    }
    return err;
}

static trp_err
call_throttler_options(void *given)
{
    trp_throttler_options *options = given;
    trp_ref ref;

    options->messages = 1;
    options->interval_ms = 1000;
    return trp_system_throttler_spawn(stage, options, &ref);
}

static trp_err
call_system_stats(void *given)
{
    trp_system_stats *stats = given;
    stats->spawned = UINT64_MAX;
    trp_system_stats_get(stage, stats);
    return stats->spawned == UINT64_MAX ? TRP_EINVAL : TRP_OK; /* it was left alone */
}

static trp_err
call_config_entry(void *given)
{
    trp_config *config = NULL;
    trp_err err = trp_config_parse_text("text", "log { level = debug }", &config, NULL);

    if (err == TRP_OK) {
        err = trp_config_at(config, 0, given) ? TRP_OK : TRP_EINVAL;
        trp_config_unref(config);
    }
    return err;
}

/* ---- the rules, for each --------------------------------------------------------------------- */

typedef struct row {
    const char *name;
    const void *valid;
    size_t bytes, first_bytes;
    trp_err (*call)(void *given);
    bool filled; /* by the library: what it does not know of becomes zero */
} row;

static trp_err
call_with(const row *row, size_t bytes, unsigned char last, unsigned char *ret_last)
{
    unsigned char *given = calloc(1, SIZE_MOST + 8); /* some borrow it for ever */
    trp_err err;

    if (given == NULL) {
        exit(1);
    }
    memcpy(given, row->valid, row->bytes);
    *(size_t *)(void *)given = bytes;
    if (last != 0) {
        given[bytes - 1] = last;
    }
    err = row->call(given);
    *ret_last = given[bytes - 1];
    return err;
}

static void
row_check(const row *row)
{
    int before = failures;
    unsigned char last;
    size_t longer = row->bytes + 16;

    CHECK(call_with(row, row->bytes, 0, &last) == TRP_OK, row->name, "as initialized: refused");
    CHECK(call_with(row, longer, 0, &last) == TRP_OK, row->name, "longer, with zeros: refused");
    if (row->filled) {
        CHECK(call_with(row, longer, 1, &last) == TRP_OK && last == 0, row->name,
              "longer: the rest did not become zero");
    } else {
        CHECK(call_with(row, longer, 1, &last) == TRP_EINVAL, row->name,
              "longer, with something unknown: not refused");
    }
    CHECK(call_with(row, SIZE_MOST, 0, &last) == TRP_OK, row->name, "the largest: refused");
    CHECK(call_with(row, SIZE_MOST + 1, 0, &last) == TRP_EINVAL, row->name,
          "one byte too large: not refused");
    CHECK(call_with(row, row->first_bytes - 1, 0, &last) == TRP_EINVAL, row->name,
          "shorter than the first release's: not refused");
    CHECK(call_with(row, sizeof(size_t), 0, &last) == TRP_EINVAL, row->name,
          "nothing but a size: not refused");
    if (failures == before) {
        printf("PASS abi:%s\n", row->name);
    }
}

#define ROW(type, valid, call)                                                                     \
    {                                                                                              \
#type, &(valid), sizeof(type), FIRST_BYTES(type), call, false                              \
    }
#define ROW_OF(type, call) ROW(type, type##_init, call)
#define ROW_GROWN(type, member, call)                                                              \
    {                                                                                              \
#type, &type##_init, sizeof(type), FIRST_BYTES_BEFORE(type, member), call, false           \
    }
#define ROW_FILLED(type, call)                                                                     \
    {                                                                                              \
#type, &type##_init, sizeof(type), FIRST_BYTES(type), call, true                           \
    }

static const trp_strategy trp_strategy_init = TRP_STRATEGY_INIT;
static const trp_spawn_options trp_spawn_options_init = TRP_SPAWN_OPTIONS_INIT;
static const trp_system_options trp_system_options_init = TRP_SYSTEM_OPTIONS_INIT;
static const trp_log_options trp_log_options_init = TRP_LOG_OPTIONS_INIT;
static const trp_scheduler_options trp_scheduler_options_init = TRP_SCHEDULER_OPTIONS_INIT;
static const trp_breaker_options trp_breaker_options_init = TRP_BREAKER_OPTIONS_INIT;
static const trp_bus_options bus = { .size = sizeof(trp_bus_options),
                                     .kind = TRP_BUS_LOOKUP,
                                     .classify = bus_classify,
                                     .publish = bus_publish };
static const trp_delivery trp_delivery_init = TRP_DELIVERY_INIT;
static const trp_dispatcher_options dispatcher = { .size = sizeof(trp_dispatcher_options),
                                                   .kind = TRP_DISPATCHER_PINNED };
static const trp_dispatcher_info trp_dispatcher_info_init = { .size = sizeof(trp_dispatcher_info) };
static const trp_mailbox_options box = { .size = sizeof(trp_mailbox_options),
                                         .kind = TRP_MAILBOX_KIND_BOUNDED };
static const trp_mailbox_info trp_mailbox_info_init = { .size = sizeof(trp_mailbox_info) };
static const trp_mailbox_ops box_ops = { .size = sizeof(trp_mailbox_ops),
                                         .create = box_create,
                                         .enqueue = box_enqueue,
                                         .dequeue = box_dequeue,
                                         .count = box_count,
                                         .has = box_has,
                                         .clean_up = box_clean_up,
                                         .destroy = nothing };
static const trp_durable_options trp_durable_options_init = TRP_DURABLE_OPTIONS_INIT;
static const trp_extension extension = { .size = sizeof(trp_extension),
                                         .create = extension_create };
static const trp_failure_detector detector = { .size = sizeof(trp_failure_detector),
                                               .init = detector_init,
                                               .heartbeat = detector_heartbeat,
                                               .is_available = detector_is_available,
                                               .suspicion = detector_suspicion,
                                               .own_pause = detector_own_pause };
static const trp_inbox_options trp_inbox_options_init = TRP_INBOX_OPTIONS_INIT;
static const trp_lease_ops lease = { sizeof(trp_lease_ops), "mine", lease_acquire, lease_release };
static const trp_metrics_collector collector = { .size = sizeof(trp_metrics_collector),
                                                 .collect = metrics_collect };
static const trp_metrics_selector selector = { .size = sizeof(trp_metrics_selector),
                                               .capacity = metrics_capacity };
static const trp_multinode_options trp_multinode_options_init = TRP_MULTINODE_OPTIONS_INIT;
static const trp_node_options trp_node_options_init = TRP_NODE_OPTIONS_INIT;
static const trp_reliable_proxy_options trp_reliable_proxy_options_init =
    TRP_RELIABLE_PROXY_OPTIONS_INIT;
static const trp_resource_options trp_resource_options_init = TRP_RESOURCE_OPTIONS_INIT;
static const trp_router_options trp_router_options_init = TRP_ROUTER_OPTIONS_INIT;
static const trp_resizer_options trp_resizer_options_init = TRP_RESIZER_OPTIONS_INIT;
static const trp_resizer resizer = { .size = sizeof(trp_resizer),
                                     .is_time = resizer_is_time,
                                     .capacity = resizer_capacity };
static const trp_routing_logic logic = TRP_ROUTING_LOGIC_INIT("logic", logic_route);
static const trp_cluster_routees trp_cluster_routees_init = TRP_CLUSTER_ROUTEES_INIT;
static const trp_serializer serializer = { .size = sizeof(trp_serializer),
                                           .encode = serializer_encode,
                                           .decode = serializer_encode };
static const trp_seeded_options trp_seeded_options_init = TRP_SEEDED_OPTIONS_INIT;
static const trp_seeded_result trp_seeded_result_init = { .size = sizeof(trp_seeded_result) };
static const trp_sim_options trp_sim_options_init = TRP_SIM_OPTIONS_INIT;
static const trp_sim_result trp_sim_result_init = { .size = sizeof(trp_sim_result) };
static const trp_testkit_options trp_testkit_options_init = TRP_TESTKIT_OPTIONS_INIT;
static const trp_filter trp_filter_init = TRP_FILTER_INIT;
static const trp_throttler_options trp_throttler_options_init = TRP_THROTTLER_OPTIONS_INIT;
static const trp_system_stats trp_system_stats_init = { .size = sizeof(trp_system_stats) };
static const trp_config_entry trp_config_entry_init = { .size = sizeof(trp_config_entry) };

static const row rows[] = {
    ROW_OF(trp_spawn_options, call_spawn_options),
    { "trp_spawn_options_of_a_test", &trp_spawn_options_init, sizeof(trp_spawn_options),
      FIRST_BYTES(trp_spawn_options), call_testkit_spawn, false },
    { "trp_spawn_options_of_routees", &trp_spawn_options_init, sizeof(trp_spawn_options),
      FIRST_BYTES(trp_spawn_options), call_routee_options, false },
    ROW(trp_behaviour, plain, call_behaviour),
    ROW_GROWN(trp_strategy, backoff_min_ms, call_strategy),
    { "trp_strategy_of_a_guardian", &trp_strategy_init, sizeof(trp_strategy),
      FIRST_BYTES_BEFORE(trp_strategy, backoff_min_ms), call_guardian_strategy, false },
    { "trp_strategy_of_a_router", &trp_strategy_init, sizeof(trp_strategy),
      FIRST_BYTES_BEFORE(trp_strategy, backoff_min_ms), call_router_strategy, false },
    ROW_OF(trp_system_options, call_system_options),
    ROW_OF(trp_log_options, call_log_options),
    ROW_OF(trp_scheduler_options, call_scheduler_options),
    ROW_OF(trp_breaker_options, call_breaker_options),
    ROW(trp_bus_options, bus, call_bus_options),
    ROW_OF(trp_delivery, call_delivery),
    ROW(trp_dispatcher_options, dispatcher, call_dispatcher_options),
    ROW_FILLED(trp_dispatcher_info, call_dispatcher_info),
    ROW(trp_mailbox_options, box, call_mailbox_options),
    ROW_FILLED(trp_mailbox_info, call_mailbox_info),
    ROW(trp_mailbox_ops, box_ops, call_mailbox_ops),
    ROW_OF(trp_durable_options, call_durable_options),
    ROW(trp_extension, extension, call_extension),
    ROW(trp_failure_detector, detector, call_failure_detector),
    ROW_OF(trp_inbox_options, call_inbox_options),
    ROW(trp_lease_ops, lease, call_lease_ops),
    ROW(trp_metrics_collector, collector, call_metrics_collector),
    ROW(trp_metrics_selector, selector, call_metrics_selector),
    ROW_OF(trp_multinode_options, call_multinode_options),
    ROW_OF(trp_node_options, call_node_options),
    ROW_OF(trp_reliable_proxy_options, call_reliable_proxy_options),
    ROW_OF(trp_resource_options, call_resource_options),
    ROW_OF(trp_router_options, call_router_options),
    ROW_OF(trp_resizer_options, call_resizer_options),
    ROW(trp_resizer, resizer, call_resizer),
    ROW(trp_routing_logic, logic, call_routing_logic),
    ROW_OF(trp_cluster_routees, call_cluster_routees),
    ROW(trp_serializer, serializer, call_serializer),
    ROW_OF(trp_seeded_options, call_seeded_options),
    ROW_FILLED(trp_seeded_result, call_seeded_result),
    ROW_GROWN(trp_sim_options, roles, call_sim_options),
    ROW_FILLED(trp_sim_result, call_sim_result),
    ROW_OF(trp_testkit_options, call_testkit_options),
    { "trp_testkit_options_of_a_seeded_run", &trp_testkit_options_init, sizeof(trp_testkit_options),
      FIRST_BYTES(trp_testkit_options), call_seeded_kit, false },
    ROW_OF(trp_filter, call_filter),
    ROW_OF(trp_throttler_options, call_throttler_options),
    ROW_FILLED(trp_system_stats, call_system_stats),
    ROW_FILLED(trp_config_entry, call_config_entry),
};

void
sizes_are_checked(void)
{
    row storage = { "trp_durable_storage",       NULL,
                    sizeof(trp_durable_storage), FIRST_BYTES(trp_durable_storage),
                    call_durable_storage,        false };
    trp_durable_storage own;

    if (trp_durable_memory_new(&memory) != TRP_OK) {
        exit(1);
    }
    memset(&own, 0, sizeof own); /* the library's one may be shorter */
    memcpy(&own, trp_durable_memory_storage(memory), FIRST_BYTES(trp_durable_storage));
    storage.valid = &own;
    row_check(&storage);
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        row_check(&rows[i]);
    }
}

/* deployment_refusal_test.c - remote children that are refused, how their parents hear of it, and
 * deployment sections of the configuration. */
#include <troupe/mailbox.h>

#include "actor/life/life.h"
#include "remote/wire/codec.h"
#include "remote/association/redelivery.h"
#include "tests/unit/remote/deploy.h"

/* The parent stops a child that could not be created, after reading the reason. */
static void
refused_because(const char *why)
{
    uint32_t refused = atomic_load(&deploy_seen.refused);
    uint32_t ended = atomic_load(&deploy_seen.terminated);
    d.directive = TRP_STOP;
    trp_ref child = deploy_child("child", NULL);
    UNIT_WAIT(atomic_load(&deploy_seen.terminated) == ended + 1, 60000);
    UNIT_EQUAL(atomic_load(&deploy_seen.refused), refused + 1);
    UNIT_TRUE(trp_ref_equal(deploy_said()->child, child));
    UNIT_TRUE(strstr(deploy_said()->reason, why) != NULL);
    UNIT_EQUAL(atomic_load(&deploy_seen.started), 0);
}

static const trp_behaviour unknown = TRP_BEHAVIOUR_INIT("unknown", char, pair_echo_receive);
static const trp_behaviour newer = {
    .size = sizeof(trp_behaviour), .name = "worker", .version = 2, .receive = pair_echo_receive
};

/* REMOTE-18: a restart tries again. */
static void
what_is_not_registered_there_fails_and_a_restart_tries_again(void)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    trp_msg *reply = NULL;
    deploy_start(NULL);
    options.node = d.pair.address[1];
    UNIT_EQUAL(deploy_spawn_with(&unknown, &options, &ref), TRP_OK);
    UNIT_WAIT(atomic_load(&deploy_seen.refused) >= 2, 60000); /* the parent restarts it */
    UNIT_TRUE(strstr(deploy_said()->reason, "no behaviour \"unknown\" is registered") != NULL);
    UNIT_EQUAL(trp_behaviour_register(d.pair.system[1], &unknown), TRP_OK);
    UNIT_EQUAL(trp_system_ask(d.pair.system[0], ref, &trp_string_type, "hi", 2, 60000, &reply),
               TRP_OK);
    trp_msg_free(reply);
    d.directive = TRP_STOP;
    UNIT_EQUAL(deploy_spawn_with(&newer, &options, &ref), TRP_OK);
    UNIT_WAIT(atomic_load(&deploy_seen.terminated) == 1, 60000);
    UNIT_TEXT(deploy_said()->reason, "behaviour \"worker\" is version 1 there, not 2");
    deploy_end();
}

/* REMOTE-24: The allow-list: names, beginnings, everything, nothing. */
static void
only_allowed_behaviours_are_made(void)
{
    static const char *const lists[] = { "bank.teller", "bank.*", "worker", "w*", "*" };
    for (int i = 0; i < 6; i++) { /* the last one: an empty list */
        trpi_remote_options options = { .deployable = &lists[i % 5], .deployable_count = i < 5 };
        trpi_remote_stats stats;
        deploy_start(&options);
        if (i < 2 || i == 5) {
            refused_because("not allowed there (remote.deployment-allowed): \"worker\"");
            trpi_remote_stats_get(d.pair.remote[1], &stats);
            UNIT_EQUAL(stats.deployments_refused, 1);
            UNIT_WAIT(pair_logged("deployment refused peer="), 60000);
        } else {
            UNIT_EQUAL(deploy_ask(deploy_child("child", NULL), "ping"), 1);
        }
        deploy_end();
    }
}

static uint64_t
untrusted_dropped(void)
{
    trpi_remote_stats stats;
    trpi_remote_stats_get(d.pair.remote[1], &stats);
    return stats.untrusted_dropped;
}

/* REMOTE-24 REMOTE-53: refused with a log line and a counter; the peer gets no reason. */
static void
a_node_that_trusts_nobody_makes_nothing(void)
{
    static const char *const paths[] = { "/remote" };
    for (size_t trusted = 0; trusted < 2; trusted++) {
        trpi_remote_options options = { .untrusted = true,
                                        .trusted_paths = paths,
                                        .trusted_paths_count = trusted };
        if (trusted == 0) {
            deploy_start_hasty(&options);
        } else {
            deploy_start(&options);
        }
        (void)deploy_child("child", NULL);
        if (trusted == 0) {
            UNIT_WAIT(atomic_load(&deploy_seen.terminated) == 1, 60000);
            UNIT_WAIT(pair_logged("what=\"remote deployment\""), 60000);
            UNIT_WAIT(pair_logged("has not answered for 300 ms; it ends"), 60000);
        } else { /* a path that is trusted by mistake opens nothing */
            UNIT_WAIT(untrusted_dropped() == 2, 60000); /* a watch and the order */
        }
        UNIT_TRUE(untrusted_dropped() >= 1);
        UNIT_EQUAL(atomic_load(&deploy_seen.started), 0);
        if (trusted != 0) { /* it waits for an answer; the loss of the node is one */
            trpi_node_id id = { *trpi_remote_address(d.pair.remote[1]), pair_uid(&d.pair, 1) };
            trpi_remote_quarantine(d.pair.remote[0], &id, "the test says so");
            UNIT_WAIT(atomic_load(&deploy_seen.terminated) == 1, 60000);
        }
        /* nor on another node for itself: it would drop the answer */
        trp_spawn_options outward = TRP_SPAWN_OPTIONS_INIT;
        trp_ref ref = TRP_REF_NONE;
        outward.node = d.pair.address[0];
        UNIT_EQUAL(trp_system_spawn(d.pair.system[1], &deploy_worker, &outward, &ref),
                   TRP_EUNSUPPORTED);
        deploy_end();
    }
}

static trp_err
never_made(void *arg, trp_system *system, trp_ref owner, void **ret_mailbox)
{
    (void)arg;
    (void)system;
    (void)owner;
    (void)ret_mailbox;
    return TRP_EEXIST;
}
static trp_err
never_full(void *mailbox, trp_ref receiver, trp_msg *msg)
{
    (void)mailbox;
    (void)receiver;
    (void)msg;
    return TRP_EAGAIN;
}
static trp_msg *
never_taken(void *mailbox)
{
    (void)mailbox;
    return NULL;
}
static uint32_t
never_counted(void *mailbox)
{
    (void)mailbox;
    return 0;
}
static int
never_there(void *mailbox)
{
    (void)mailbox;
    return 0;
}
static void
never_cleaned(void *mailbox, void (*dead)(void *arg, trp_msg *msg), void *arg)
{
    (void)mailbox;
    (void)dead;
    (void)arg;
}
static void
never_freed(void *mailbox)
{
    (void)mailbox;
}

/* TRP_EEXIST does not always mean the name, for which a deployment would wait. */
static void
an_error_of_its_mailbox_is_a_refusal(void)
{
    static const trp_mailbox_ops ops = {
        sizeof(trp_mailbox_ops), never_made,  never_full, never_taken, never_counted, never_there,
        never_cleaned,           never_freed, NULL
    };
    trp_mailbox_options mailbox = TRP_MAILBOX_OPTIONS_INIT;
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    deploy_start(NULL);
    d.directive = TRP_STOP;
    mailbox.kind = TRP_MAILBOX_KIND_CUSTOM;
    mailbox.ops = &ops;
    UNIT_EQUAL(trp_mailbox_register(d.pair.system[1], "never", &mailbox), TRP_OK);
    options.node = d.pair.address[1];
    options.mailbox = "never";
    UNIT_EQUAL(deploy_spawn_with(&deploy_worker, &options, &ref), TRP_OK);
    UNIT_WAIT(atomic_load(&deploy_seen.terminated) == 1, 60000);
    UNIT_TEXT(deploy_said()->reason, trp_strerror(TRP_EEXIST));
    deploy_end();
}

static void
an_earlier_version_is_not_asked(void)
{
    trpi_remote_options options = { .features_off = TRPI_FEATURE_DEPLOY };
    deploy_start(&options);
    refused_because("it cannot be deployed to another node: ");
    deploy_end();
}

/* At half of the limit of unacknowledged system messages deployments wait, and the node is not
 * quarantined for them. */
static void
too_many_orders_wait(void)
{
    static char args[TRP_DEPLOY_ARGS_BYTES_MAX];
    char path[TRP_PATH_BYTES_MAX + 1];
    trp_ref gate = TRP_REF_NONE;
    uint32_t sent = 0;
    deploy_start(NULL);
    pair_path(&d.pair, 1, "/remote", path, sizeof path);
    UNIT_REQUIRE(trp_system_resolve(d.pair.system[0], path, 60000, &gate) == TRP_OK);
    trpi_deploy deploy = { .behaviour = "nobody",
                           .version = 1,
                           .path = "/user/parent/child",
                           .supervisor = d.parent,
                           .args_type = &trp_bytes_type,
                           .args = args,
                           .args_bytes = sizeof(args) };
    trpi_order order = { &deploy, NULL };
    trpi_mem_network_fault_set(d.pair.network, pair_cut_all, NULL);
    trpi_mem_network_cut(d.pair.network, NULL, NULL);
    trp_err err = TRP_OK;
    while (err == TRP_OK && sent < 2000) {
        err = trpi_remote_order(d.pair.system[0], gate.node, TRPI_SIGNAL_DEPLOY, gate, d.parent,
                                &order);
        sent += err == TRP_OK;
    }
    UNIT_EQUAL(err, TRP_EAGAIN);
    /* earlier system messages may or may not have been acknowledged */
    UNIT_TRUE(sent >= TRPI_SYSTEM_TAILS_BYTES_MAX / 2 / TRPI_SYSTEM_TAIL_BYTES_MAX);
    UNIT_TRUE(sent <= TRPI_SYSTEM_TAILS_BYTES_MAX / 2 / TRP_DEPLOY_ARGS_BYTES_MAX + 1);
    trpi_mem_network_fault_set(d.pair.network, NULL, NULL);
    trp_ref child = deploy_child("child", NULL); /* once there is room */
    UNIT_EQUAL(deploy_ask(child, "ping"), 1);
    UNIT_TRUE(!pair_logged("quarantined"));
    deploy_end();
}

static void
where_nobody_answers_it_ends(void)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    deploy_start_hasty(NULL);
    options.node = "troupe.mem://right@nowhere:9";
    UNIT_EQUAL(deploy_spawn_with(&deploy_worker, &options, &ref), TRP_OK);
    deploy_tell(ref, "ping"); /* held, and lost */
    UNIT_WAIT(atomic_load(&deploy_seen.terminated) == 1, 60000);
    UNIT_EQUAL(trp_system_stop(d.pair.system[1], 60000), TRP_OK);
    (void)deploy_child("child", NULL); /* a system that has stopped takes no more */
    UNIT_WAIT(atomic_load(&deploy_seen.terminated) == 2, 60000);
    UNIT_EQUAL(atomic_load(&deploy_seen.failures), 0);
    UNIT_EQUAL(atomic_load(&deploy_seen.started), 0);
    deploy_end();
}

/* ---- at the spawn ---------------------------------------------------------------------------- */

static trp_type local_type = { .name = "deployment.local",
                               .tag = 1,
                               .flags = TRP_TYPE_VARIABLE | TRP_TYPE_LOCAL };
static trp_type *const own_types[] = { &local_type };
static const trp_protocol own = { "deployment", own_types, 1 };

static trp_err
spawn_at(const char *node, const char *name, const trp_type *type, const void *args, size_t bytes)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    options.node = node;
    options.name = name;
    options.args_type = type;
    options.args = args;
    options.args_bytes = bytes;
    return deploy_spawn_with(&deploy_worker, &options, &ref);
}

/* REMOTE-18 REMOTE-22 SYS-29, REMOTE-23: a spawn that cannot work is refused at once. */
static void
what_cannot_work_is_refused_at_the_spawn(void)
{
    static char args[TRP_DEPLOY_ARGS_BYTES_MAX + 1];
    char name[TRP_NAME_BYTES_MAX + 1];
    char node[2 * TRPI_ADDRESS_TEXT_BYTES];
    deploy_start(NULL);
    const char *right = d.pair.address[1];
    UNIT_EQUAL(trp_protocol_register(&own), TRP_OK);
    UNIT_EQUAL(spawn_at("right", NULL, NULL, NULL, 0), TRP_EINVAL);
    (void)snprintf(node, sizeof node, "%s/user", right);
    UNIT_EQUAL(spawn_at(node, NULL, NULL, NULL, 0), TRP_EINVAL);
    UNIT_EQUAL(spawn_at(right, NULL, &local_type, "x", 1), TRP_ENOTYPE);
    UNIT_EQUAL(spawn_at(TRP_NODE_HERE, NULL, &local_type, "x", 1), TRP_OK);
    /* at the limits, and one past them */
    UNIT_EQUAL(spawn_at(right, NULL, &trp_bytes_type, args, TRP_DEPLOY_ARGS_BYTES_MAX), TRP_OK);
    UNIT_EQUAL(spawn_at(right, NULL, &trp_bytes_type, args, TRP_DEPLOY_ARGS_BYTES_MAX + 1),
               TRP_EMSGSIZE);
    size_t before = strlen(strstr(d.pair.address[0], "://") + 3) + strlen("/user/parent/");
    memset(name, 'n', sizeof name);
    name[TRP_DEPLOY_PATH_BYTES_MAX - before + 1] = '\0';
    UNIT_EQUAL(spawn_at(right, name, NULL, NULL, 0), TRP_ELIMIT);
    name[TRP_DEPLOY_PATH_BYTES_MAX - before] = '\0';
    UNIT_EQUAL(spawn_at(right, name, NULL, NULL, 0), TRP_OK);
    UNIT_WAIT(atomic_load(&deploy_seen.started) == 3, 60000);
    UNIT_EQUAL(spawn_at(d.pair.address[0], "mine", NULL, NULL, 0), TRP_OK); /* that is here */
    UNIT_WAIT(atomic_load(&deploy_seen.started) == 4, 60000);
    UNIT_TEXT(deploy_said()->system, "left");
    trpi_remote_stop(d.pair.remote[0]);
    d.pair.remote[0] = NULL;
    UNIT_EQUAL(spawn_at(right, NULL, NULL, NULL, 0), TRP_ESTATE);
    deploy_end();
}

static void
behaviours_are_registered_by_their_names(void)
{
    static trp_behaviour many[TRP_BEHAVIOURS_MAX + 1];
    static char names[TRP_BEHAVIOURS_MAX + 1][8];
    static char too_long[TRP_NAME_BYTES_MAX + 2];
    trp_system *system = pair_system("left");
    trp_behaviour other = pair_echo;
    UNIT_EQUAL(trp_behaviour_register(NULL, &pair_echo), TRP_EINVAL);
    UNIT_EQUAL(trp_behaviour_register(system, NULL), TRP_EINVAL);
    other.name = "";
    UNIT_EQUAL(trp_behaviour_register(system, &other), TRP_EINVAL);
    memset(too_long, 'n', sizeof too_long - 1);
    other.name = too_long;
    UNIT_EQUAL(trp_behaviour_register(system, &other), TRP_EINVAL);
    for (int i = 0; i <= TRP_BEHAVIOURS_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "b%d", i);
        many[i] = pair_echo;
        many[i].name = names[i];
        UNIT_EQUAL(trp_behaviour_register(system, &many[i]),
                   i < TRP_BEHAVIOURS_MAX ? TRP_OK : TRP_ELIMIT);
    }
    UNIT_EQUAL(trp_behaviour_register(system, &many[0]), TRP_OK);
    other.name = "b0";
    UNIT_EQUAL(trp_behaviour_register(system, &other), TRP_EEXIST);
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trp_system_free(system);
}

/* ---- configuration --------------------------------------------------------------------------- */

/* REMOTE-16 REMOTE-19 REMOTE-20 REMOTE-22 SYS-32, CONF-9, NewRemoteActorSpec: the configuration is
 * stronger than the code, a name than a star. */
static void
the_configuration_says_where_an_actor_lives(void)
{
    trp_ref ref = TRP_REF_NONE;
    (void)snprintf(deploy_text, sizeof deploy_text,
                   DEPLOY_TEXT "deployment \"/parent/*\" { remote = \"%s\" }\n"
                               "deployment \"/parent/home\" { dispatcher = default }\n"
                               "deployment \"/*/moved\" { remote = \"%s\" }\n"
                               "deployment \"/top\" { remote = \"%s\" }\n",
                   "troupe.mem://right@right:1025", "troupe.mem://right@nowhere:9",
                   "troupe.mem://right@right:1025");
    deploy_start(NULL);
    UNIT_REQUIRE(strcmp(d.pair.address[1], "troupe.mem://right@right:1025") == 0);
    UNIT_EQUAL(spawn_at(NULL, "child", NULL, NULL, 0), TRP_OK);
    UNIT_WAIT(atomic_load(&deploy_seen.started) == 1, 60000);
    UNIT_TEXT(deploy_said()->system, "right");
    UNIT_EQUAL(spawn_at(NULL, "home", NULL, NULL, 0), TRP_OK);
    UNIT_WAIT(atomic_load(&deploy_seen.started) == 2, 60000);
    UNIT_TEXT(deploy_said()->system, "left");
    UNIT_EQUAL(spawn_at(NULL, NULL, NULL, NULL, 0), TRP_OK); /* without a name: the star */
    UNIT_WAIT(atomic_load(&deploy_seen.started) == 3, 60000);
    UNIT_TEXT(deploy_said()->system, "right");
    UNIT_EQUAL(spawn_at("troupe.mem://right@nowhere:9", "moved", NULL, NULL, 0), TRP_OK);
    UNIT_WAIT(atomic_load(&deploy_seen.started) == 4, 60000); /* "/parent/..." beats "/" "*" */
    UNIT_EQUAL(spawn_at(TRP_NODE_HERE, "bound", NULL, NULL, 0), TRP_ECONFIG);
    UNIT_WAIT(pair_logged("the configuration moves \"bound\" to another node"), 60000);
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    options.name = "top"; /* a child of /user, from outside */
    UNIT_EQUAL(trp_system_spawn(d.pair.system[0], &deploy_worker, &options, &ref), TRP_OK);
    UNIT_EQUAL(deploy_ask(ref, "ping"), 1);
    UNIT_TEXT(deploy_said()->system, "right");
    deploy_end();
}

static void
the_configuration_names_nodes_or_is_wrong(void)
{
    static const char *const wrong[] = {
        "deployment \"/a\" { remote = \"right\" }",
        "deployment \"/a\" { remote = \"troupe.tcp://r@r\" }",
        "deployment \"/a\" { remote = \"troupe.tcp://r@r:1/user\" }",
        "deployment \"/a\" { target { nodes = { \"r\" } } }"
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        trp_config_error error = { "" };
        trp_config *config = NULL;
        UNIT_EQUAL(trp_config_parse_text("test.conf", wrong[i], &config, &error), TRP_ECONFIG);
        UNIT_TRUE(strstr(error.text, "is no node: ") != NULL);
    }
}

UNIT_BEGIN("deployment_refusal")
UNIT(what_is_not_registered_there_fails_and_a_restart_tries_again)
UNIT(only_allowed_behaviours_are_made)
UNIT(a_node_that_trusts_nobody_makes_nothing)
UNIT(an_error_of_its_mailbox_is_a_refusal)
UNIT(an_earlier_version_is_not_asked)
UNIT(too_many_orders_wait)
UNIT(where_nobody_answers_it_ends)
UNIT(what_cannot_work_is_refused_at_the_spawn)
UNIT(behaviours_are_registered_by_their_names)
UNIT(the_configuration_says_where_an_actor_lives)
UNIT(the_configuration_names_nodes_or_is_wrong)
UNIT_END

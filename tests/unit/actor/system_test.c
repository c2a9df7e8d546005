/* system_test.c - systems: names, several at once, statistics, and ends that do not hang. */
#include "tests/unit/unit.h"

#include <stdatomic.h>
#include <stdlib.h>

#include <troupe/troupe.h>

#include "actor/actor.h"
#include "base/alloc.h"

static trp_system *
make(const char *name)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system = NULL;

    options.workers = 1;
    options.log_level = TRP_LOG_ERROR;
    UNIT_REQUIRE(trp_system_new(name, &options, &system) == TRP_OK);
    return system;
}

static trp_err
echo(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    trp_reply(ctx, &trp_i64_type, trp_msg_payload(msg), 8);
    return TRP_OK;
}

static const trp_behaviour echoer = {
    .size = sizeof(trp_behaviour), .name = "echo", .version = 1, .receive = echo
};

/* SYS-1 */
static void
names_are_checked_at_their_limits(void)
{
    static const char *const wrong[] = { "", "a b", "a/b", "\xc3\xa4", NULL };
    char name[TRP_SYSTEM_NAME_BYTES_MAX + 2];
    trp_system *system = NULL;

    for (int i = 0; wrong[i] != NULL; i++) {
        UNIT_EQUAL(trp_system_new(wrong[i], NULL, &system), TRP_EINVAL);
    }
    UNIT_EQUAL(trp_system_new(NULL, NULL, &system), TRP_EINVAL);
    memset(name, 'n', sizeof name);
    name[TRP_SYSTEM_NAME_BYTES_MAX + 1] = '\0';
    UNIT_EQUAL(trp_system_new(name, NULL, &system), TRP_EINVAL); /* one past */
    name[TRP_SYSTEM_NAME_BYTES_MAX] = '\0';
    system = make(name);
    UNIT_TEXT(trp_system_name(system), name);
    trp_system_free(system);
}

static void
wrong_options_are_refused(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trp_system *system = NULL;

    options.workers = TRP_WORKERS_MAX + 1;
    UNIT_EQUAL(trp_system_new("s", &options, &system), TRP_EINVAL);
    options.workers = 1;
    options.log_level = 9;
    UNIT_EQUAL(trp_system_new("s", &options, &system), TRP_EINVAL);
    options.log_level = 0;
    options.size = 8;
    UNIT_EQUAL(trp_system_new("s", &options, &system), TRP_EINVAL);
    UNIT_TRUE(system == NULL);
}

/* SYS-2 */
static void
several_systems_live_side_by_side(void)
{
    enum { SYSTEMS = 5 };
    trp_system *systems[SYSTEMS];
    trp_ref refs[SYSTEMS];

    for (int i = 0; i < SYSTEMS; i++) {
        systems[i] = make("same");
        UNIT_EQUAL(trp_system_spawn(systems[i], &echoer, NULL, &refs[i]), TRP_OK);
    }
    for (int64_t i = 0; i < SYSTEMS; i++) {
        trp_msg *reply = NULL;

        UNIT_EQUAL(trp_system_ask(systems[i], refs[i], &trp_i64_type, &i, sizeof i, 60000, &reply),
                   TRP_OK);
        if (reply != NULL) {
            UNIT_EQUAL(*(const int64_t *)trp_msg_payload(reply), i);
        }
        trp_msg_free(reply);
    }
    for (int i = 0; i < SYSTEMS; i++) {
        UNIT_TRUE(trpi_system_self(systems[i])->uid != 0);
        UNIT_EQUAL(trp_system_stop(systems[i], 60000), TRP_OK);
        trp_system_free(systems[i]);
    }
}

static void
a_system_that_was_not_stopped_can_be_freed(void)
{
    trp_system *system = make("unstopped");
    trp_ref ref;

    for (int i = 0; i < 100; i++) {
        UNIT_EQUAL(trp_system_spawn(system, &echoer, NULL, &ref), TRP_OK);
    }
    trp_system_free(system);
    trp_system_free(NULL);
}

static void
numbers_add_up(void)
{
    trp_system_stats stats = { .size = sizeof stats };
    trp_system *system = make("numbers");
    uint64_t before, spawned;
    int64_t value = 3;
    trp_ref ref;

    trp_system_stats_get(system, &stats);
    before = stats.messages_processed;
    spawned = stats.spawned;
    UNIT_EQUAL(trp_system_spawn(system, &echoer, NULL, &ref), TRP_OK);
    for (int i = 0; i < 1000; i++) {
        trp_system_tell(system, ref, &trp_i64_type, &value, sizeof value);
    }
    UNIT_WAIT((trp_system_stats_get(system, &stats), stats.messages_processed == before + 1000),
              5000);
    UNIT_WAIT(
        (trp_system_stats_get(system, &stats), stats.dead_letters[TRP_DEAD_NO_SENDER] == 1000),
        5000);
    UNIT_EQUAL(stats.spawned, spawned + 1);
    UNIT_EQUAL(stats.actors, stats.spawned - stats.stopped);
    UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
    trp_system_stats_get(system, &stats);
    UNIT_EQUAL(stats.actors, 0);
    trp_system_free(system);
}

/* Each allocation of a birth fails once: an error, and nothing is left (the leak checker looks). */
static void
a_birth_without_memory_fails_cleanly(void)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    int refused = 0;

    options.workers = 1;
    options.log_level = TRP_LOG_ERROR;
    for (long n = 0; n < 12; n++) {
        trp_system *system = NULL;
        trp_err err;

        trpi_alloc_fail_here_after(n);
        err = trp_system_new("poor", &options, &system);
        trpi_alloc_fail_after(-1);
        if (err == TRP_OK) {
            UNIT_EQUAL(trp_system_stop(system, 60000), TRP_OK);
            trp_system_free(system);
        } else {
            UNIT_EQUAL(err, TRP_ENOMEM);
            refused++;
        }
    }
    UNIT_TRUE(refused > 0);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static trpi_node_id
identity(const char *host, uint16_t port, uint64_t uid)
{
    trpi_node_id id;

    memset(&id, 0, sizeof id);
    (void)snprintf(id.address.protocol, sizeof id.address.protocol, "troupe.tcp");
    (void)snprintf(id.address.system, sizeof id.address.system, "other");
    (void)snprintf(id.address.host, sizeof id.address.host, "%s", host);
    id.address.port = port;
    id.uid = uid;
    return id;
}

static void
a_node_number_means_one_identity_for_good(void)
{
    trp_system *system = make("nodes");
    uint32_t numbers[1000], again;

    for (uint32_t i = 0; i < 1000; i++) {
        trpi_node_id id = identity("10.0.0.1", (uint16_t)(i / 2 + 1), i % 2);

        UNIT_EQUAL(trpi_node_intern(system, &id, &numbers[i]), TRP_OK);
        UNIT_TRUE(numbers[i] > TRPI_NODE_SELF);
    }
    for (uint32_t i = 0; i < 1000; i++) {
        trpi_node_id id = identity("10.0.0.1", (uint16_t)(i / 2 + 1), i % 2);

        UNIT_EQUAL(trpi_node_intern(system, &id, &again), TRP_OK);
        UNIT_EQUAL(again, numbers[i]);
        UNIT_TRUE(trpi_node_id_equal(trpi_node_id_get(system, again), &id));
    }
    UNIT_TRUE(trpi_node_id_get(system, 0) == NULL);
    UNIT_TRUE(trpi_node_id_get(system, 5000000) == NULL);
    trp_system_free(system);
}

static void
the_advertised_address_is_the_systems_own(void)
{
    trp_system *system = make("nodes");
    trpi_node_id id = identity("10.0.0.7", 2552, 0);
    uint64_t uid = trpi_system_self(system)->uid;
    uint32_t number;

    UNIT_TEXT(trpi_system_self(system)->address.system, "nodes");
    trpi_system_advertise(system, &id.address);
    UNIT_TRUE(trpi_address_equal(&trpi_system_self(system)->address, &id.address));
    UNIT_EQUAL(trpi_system_self(system)->uid, uid);
    UNIT_EQUAL(trpi_node_intern(system, &id, &number), TRP_OK); /* uid 0: whoever lives there: we */
    UNIT_EQUAL(number, TRPI_NODE_SELF);
    id.uid = uid + 1; /* another incarnation at the address */
    UNIT_EQUAL(trpi_node_intern(system, &id, &number), TRP_OK);
    UNIT_TRUE(number != TRPI_NODE_SELF);
    trp_system_free(system);
}

static _Atomic int64_t delivered, flushed, released;

static void
proxy_deliver(void *arg, trp_system *system, trp_msg *msg)
{
    (void)arg;
    (void)system;
    UNIT_EQUAL(msg->priv_to_slot, 17);
    atomic_fetch_add(&delivered, *(const int64_t *)trp_msg_payload(msg));
}
static bool
proxy_flush(void *arg, trp_system *system, bool more)
{
    (void)arg;
    (void)more;
    (void)system;
    atomic_fetch_add(&flushed, 1);
    return false;
}
static void
proxy_release(void *arg)
{
    (void)arg;
    atomic_fetch_add(&released, 1);
}

static void
a_proxy_gets_what_is_told_to_its_node(void)
{
    static const trpi_proxy_ops ops = { .deliver = proxy_deliver,
                                        .flush = proxy_flush,
                                        .release = proxy_release };
    trp_system *system = make("nodes");
    trpi_node_id id = identity("10.0.0.9", 2552, 9);
    trp_system_stats stats = { .size = sizeof stats };
    uint32_t number = 0;
    trp_ref far;
    int64_t value = 1;

    UNIT_EQUAL(trpi_node_intern(system, &id, &number), TRP_OK);
    far = (trp_ref){ number, 17, 4, 0 };
    trp_system_tell(system, far, &trp_i64_type, &value, sizeof value);
    trp_system_stats_get(system, &stats);
    UNIT_EQUAL(stats.dead_letters[TRP_DEAD_NOT_CONNECTED], 1);
    UNIT_EQUAL(trpi_proxy_attach(system, number, &ops, NULL), TRP_OK);
    UNIT_EQUAL(trpi_proxy_attach(system, number, &ops, NULL), TRP_EEXIST);
    for (value = 1; value <= 1000; value++) {
        trp_system_tell(system, far, &trp_i64_type, &value, sizeof value);
    }
    UNIT_WAIT(atomic_load(&delivered) == 500500, 5000);
    UNIT_WAIT(atomic_load(&flushed) > 0, 5000);
    trp_system_free(system);
    UNIT_EQUAL(atomic_load(&released), 1);
}

UNIT_BEGIN("system")
UNIT(names_are_checked_at_their_limits)
UNIT(wrong_options_are_refused)
UNIT(several_systems_live_side_by_side)
UNIT(a_system_that_was_not_stopped_can_be_freed)
UNIT(numbers_add_up)
UNIT(a_birth_without_memory_fails_cleanly)
UNIT(a_node_number_means_one_identity_for_good)
UNIT(the_advertised_address_is_the_systems_own)
UNIT(a_proxy_gets_what_is_told_to_its_node)
UNIT_END

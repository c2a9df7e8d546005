/* The actor, the door and the public API, on real systems over loopback (EVENTS, MEMB-12, MEMB-21,
 * SEED-09). */
#include <stdatomic.h>

#include "base/alloc.h"
#include "cluster/cluster.h"
#include "tests/unit/unit.h"

struct host {
    trp_system *system;
    trpi_remote *remote;
    trpi_cluster *cluster;
    char address[TRPI_ADDRESS_TEXT_BYTES];
    _Atomic int stopped; /* trpi_member_stop */
    _Atomic int up_calls;
};

static void
on_stopped(void *arg, trpi_member_stop why)
{
    atomic_store(&((struct host *)arg)->stopped, (int)why);
}

static void
on_up(void *arg)
{
    atomic_fetch_add(&((struct host *)arg)->up_calls, 1);
}

static void
quiet_log(void *arg, const trp_log_line *line)
{
    (void)arg;
    (void)line;
}

static void
host_start(struct host *h, const char *seed)
{
    trp_system_options system_options = TRP_SYSTEM_OPTIONS_INIT;
    trpi_remote_options remote_options = { .port = 0, .bind_port = -1 };
    trpi_cluster_options options = { .stopped = on_stopped, .stopped_arg = h };
    const char *roles[1] = { "worker" };
    memset(h, 0, sizeof(*h));
    system_options.workers = 1;
    system_options.log = quiet_log;
    UNIT_REQUIRE(trp_system_new("test", &system_options, &h->system) == TRP_OK);
    UNIT_REQUIRE(trpi_remote_start(h->system, &remote_options, &h->remote) == TRP_OK);
    (void)trpi_address_format(trpi_remote_address(h->remote), h->address, sizeof(h->address));
    options.roles = roles;
    options.roles_count = 1;
    options.seed_nodes = &seed;
    options.seed_nodes_count = seed == NULL ? 0 : 1;
    UNIT_REQUIRE(trpi_cluster_start(h->system, h->remote, &options, &h->cluster) == TRP_OK);
}

static void
host_end(struct host *h)
{
    trpi_cluster_stop(h->cluster);
    trpi_remote_stop(h->remote);
    UNIT_EQUAL(trp_system_stop(h->system, 5000), TRP_OK);
    trp_system_free(h->system);
    trpi_cluster_free(h->cluster);
}

static size_t
members_up(struct host *h)
{
    trp_member members[8];
    size_t count = 0;
    size_t up = 0;
    if (trp_cluster_members(h->system, members, 8, &count) != TRP_OK) {
        return 0;
    }
    for (size_t i = 0; i < count && i < 8; i++) {
        up += members[i].status == TRP_MEMBER_UP ? 1 : 0;
    }
    return up;
}

static size_t
members_all(struct host *h)
{
    size_t count = 0;
    UNIT_EQUAL(trp_cluster_members(h->system, NULL, 0, &count), TRP_OK);
    return count;
}

/* ---- an actor that writes down what it is told ----------------------------------------------- */

static pthread_mutex_t heard_lock = PTHREAD_MUTEX_INITIALIZER;
static uint16_t heard[64];
static uint32_t heard_count;

static trp_err
listener_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    pthread_mutex_lock(&heard_lock);
    if (heard_count < 64) {
        heard[heard_count++] = trp_msg_tag(msg);
    }
    pthread_mutex_unlock(&heard_lock);
    return TRP_OK;
}

static const trp_behaviour listener = { .size = sizeof(trp_behaviour),
                                        .name = "listener",
                                        .version = 1,
                                        .state_bytes = 8,
                                        .receive = listener_receive };

static uint32_t
heard_of(uint16_t tag)
{
    uint32_t count = 0;
    pthread_mutex_lock(&heard_lock);
    for (uint32_t i = 0; i < heard_count; i++) {
        count += heard[i] == tag ? 1 : 0;
    }
    pthread_mutex_unlock(&heard_lock);
    return count;
}

/* EVENTS-01, -03, -04, -05, -11; MEMB-12, -21; SEED-09 */
static void
a_subscriber_hears_the_state_first_and_then_every_change(void)
{
    struct host a;
    struct host b;
    trp_ref ref = TRP_REF_NONE;
    heard_count = 0;
    host_start(&a, "self");
    UNIT_WAIT(members_up(&a) == 1, 3000);
    UNIT_EQUAL(trp_system_spawn(a.system, &listener, NULL, &ref), TRP_OK);
    UNIT_EQUAL(trp_cluster_subscribe(a.system, ref, TRP_CLUSTER_MEMBER_EVENTS), TRP_OK);
    UNIT_WAIT(heard_of(trp_cluster_state_tag) == 1, 3000);
    host_start(&b, NULL);
    UNIT_EQUAL(trp_cluster_on_member_up(b.system, on_up, &b), TRP_OK);
    const char *contact = a.address;
    UNIT_EQUAL(trp_cluster_join(b.system, &contact, 1), TRP_OK);
    UNIT_WAIT(members_up(&a) == 2 && members_up(&b) == 2, 5000);
    UNIT_WAIT(atomic_load(&b.up_calls) == 1, 1000);
    UNIT_WAIT(heard_of(trp_member_up_tag) == 1, 1000);
    UNIT_EQUAL(heard_of(trp_member_joined_tag), 1);
    UNIT_EQUAL(heard[0], trp_cluster_state_tag);
    UNIT_EQUAL(trp_cluster_join(b.system, &contact, 1), TRP_ESTATE); /* MEMB-05 */
    UNIT_EQUAL(trp_cluster_leave(a.system, b.address), TRP_OK);
    UNIT_WAIT(members_all(&a) == 1, 5000);
    UNIT_WAIT(atomic_load(&b.stopped) == TRPI_STOP_LEFT, 3000);
    UNIT_WAIT(heard_of(trp_member_removed_tag) == 1, 1000);
    UNIT_EQUAL(heard_of(trp_member_left_tag), 1);
    UNIT_EQUAL(heard_of(trp_member_exited_tag), 1);
    UNIT_EQUAL(atomic_load(&a.stopped), 0);
    host_end(&b);
    host_end(&a);
}

/* EVENTS-02, -10 */
static void
before_joining_the_state_is_empty_and_an_ended_subscription_is_silent(void)
{
    struct host a;
    trp_ref ref = TRP_REF_NONE;
    trp_member self;
    heard_count = 0;
    host_start(&a, NULL);
    UNIT_EQUAL(trp_system_spawn(a.system, &listener, NULL, &ref), TRP_OK);
    UNIT_EQUAL(trp_cluster_subscribe(a.system, ref, TRP_CLUSTER_DOMAIN_EVENTS), TRP_OK);
    UNIT_WAIT(heard_of(trp_cluster_state_tag) == 1, 3000);
    UNIT_EQUAL(trp_cluster_self(a.system, &self), TRP_OK);
    UNIT_EQUAL(self.status, 0);
    UNIT_TEXT(self.address, a.address);
    UNIT_EQUAL(trp_cluster_leader(a.system, NULL, &self), TRP_ENOENT);
    trp_cluster_unsubscribe(a.system, ref, TRP_CLUSTER_DOMAIN_EVENTS);
    const char *own = a.address;
    UNIT_EQUAL(trp_cluster_join(a.system, &own, 1), TRP_OK);
    UNIT_WAIT(members_up(&a) == 1, 3000);
    UNIT_EQUAL(trp_cluster_leader(a.system, "worker", &self), TRP_OK);
    UNIT_EQUAL(self.self, 1);
    /* EVENTS-15; behind whatever came before */
    UNIT_EQUAL(trp_cluster_send_state(a.system, ref), TRP_OK);
    UNIT_WAIT(heard_of(trp_cluster_state_tag) == 2, 3000);
    UNIT_EQUAL(heard_of(trp_member_up_tag), 0);
    host_end(&a);
}

static void
misuse_is_an_error(void)
{
    trp_system *system = NULL;
    trp_member member;
    trp_ref none = TRP_REF_NONE;
    size_t count;
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    options.workers = 1;
    options.log = quiet_log;
    UNIT_REQUIRE(trp_system_new("plain", &options, &system) == TRP_OK);
    UNIT_EQUAL(trp_cluster_members(system, NULL, 0, &count), TRP_ESTATE);
    UNIT_EQUAL(trp_cluster_self(system, &member), TRP_ESTATE);
    UNIT_EQUAL(trp_cluster_leave(system, NULL), TRP_ESTATE);
    UNIT_EQUAL(trp_cluster_down(system, NULL), TRP_EINVAL);
    UNIT_EQUAL(trp_cluster_subscribe(system, none, 1), TRP_EINVAL);
    UNIT_EQUAL(trp_system_stop(system, 5000), TRP_OK);
    trp_system_free(system);
}

/* the snapshot behind `troupe members` and `status` */
static void
a_snapshot_says_what_the_command_line_shows(void)
{
    struct host a;
    struct host b;
    trpi_cluster_snapshot *s = NULL;
    host_start(&a, "self");
    UNIT_WAIT(members_up(&a) == 1, 3000);
    host_start(&b, a.address);
    UNIT_WAIT(members_up(&a) == 2 && members_up(&b) == 2, 5000);
    UNIT_REQUIRE(trpi_cluster_snapshot_get(b.cluster, &s) == TRP_OK);
    UNIT_EQUAL(s->phase, TRPI_PHASE_MEMBER);
    UNIT_EQUAL(s->members_count, 2);
    UNIT_TRUE(s->self != TRPI_CLUSTER_NONE && s->members[s->self].member.self);
    UNIT_TRUE(s->oldest != TRPI_CLUSTER_NONE);
    UNIT_TEXT(s->members[s->oldest].member.address, a.address);
    UNIT_EQUAL(trpi_cluster_snapshot_oldest(s, "worker"), s->oldest);
    UNIT_EQUAL(trpi_cluster_snapshot_oldest(s, "none"), TRPI_CLUSTER_NONE);
    UNIT_EQUAL(trpi_cluster_snapshot_leader(s, NULL), s->leader);
    UNIT_TEXT(s->strategy, "keep-majority");
    UNIT_EQUAL(s->stable_after_ms, 20000);
    UNIT_TRUE(s->members[0].up_since_wall_ms > 0);
    trpi_cluster_snapshot_free(s);
    host_end(&b);
    host_end(&a);
}

UNIT_BEGIN("shell")
UNIT(a_subscriber_hears_the_state_first_and_then_every_change)
UNIT(before_joining_the_state_is_empty_and_an_ended_subscription_is_silent)
UNIT(misuse_is_an_error)
UNIT(a_snapshot_says_what_the_command_line_shows)
UNIT_END

/* A node whose users keep every worker busy is a member like any other (MEMB-34). */
#include "tests/unit/actor/stage.h"
#include "tests/unit/cluster/host.h"

#define INTERVAL_MS 40u
#define PAUSE_MS 160u
#define SILENCE_MS (INTERVAL_MS + PAUSE_MS) /* what the detector bears */

/* ---- a detector that counts ------------------------------------------------------------------ */

static _Atomic uint32_t heard, suspected;

static void
count_heartbeat(void *state, uint64_t now_ms)
{
    atomic_fetch_add(&heard, 1);
    trp_deadline_failure_detector.heartbeat(state, now_ms);
}

static int
count_suspicion(void *state, uint64_t now_ms)
{
    int available = trp_deadline_failure_detector.is_available(state, now_ms);
    atomic_fetch_add(&suspected, available ? 0u : 1u);
    return available;
}

/* For so long it has answered and was never suspected. */
struct calm {
    uint64_t since_ms; /* 0: not begun */
    uint32_t heard, suspected;
};

/* Where the machine itself stood still the time begins anew: who answers is calm in the end, who
 * does not answer never. */
static bool
is_calm(struct calm *calm, uint32_t silences)
{
    if (calm->since_ms == 0 || atomic_load(&suspected) != calm->suspected) {
        *calm = (struct calm){ unit_now_ms(), atomic_load(&heard), atomic_load(&suspected) };
    }
    return unit_now_ms() - calm->since_ms >= silences * SILENCE_MS &&
           atomic_load(&heard) - calm->heard >= silences * 2;
}

/* ---- actors that hold the only worker -------------------------------------------------------- */

static _Atomic bool let_go;

static trp_err
user_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    if (stage_said(msg, "hold")) {
        stage_hold("held", &let_go);
    } else {
        stage_note("ran");
    }
    return TRP_OK;
}

static const trp_behaviour user = {
    .size = sizeof(trp_behaviour), .name = "user", .version = 1, .receive = user_receive
};

static bool
is_up(struct host *h)
{
    trp_member self = { .status = 0 };
    return trp_cluster_self(h->system, &self) == TRP_OK && self.status == TRP_MEMBER_UP;
}

static bool
misses_somebody(struct host *h)
{
    trp_member members[2];
    size_t count = 0;
    return trp_cluster_members(h->system, members, 2, &count) == TRP_OK && count == 2 &&
           members[0].reachable + members[1].reachable < 2;
}

/* MEMB-34: it lets others in and answers heartbeats while no actor of a user can run */
static void
a_node_without_a_free_worker_lets_others_in_and_is_not_suspected(void)
{
    static struct host a, b;
    static trp_failure_detector counting;
    struct calm calm = { 0 };
    trpi_cluster_options options = { .member = { .gossip_interval_ms = 20,
                                                 .leader_actions_interval_ms = 20 } };
    host_open(&a);
    host_open(&b);
    host_join(&b, "self", options);
    UNIT_WAIT(is_up(&b), 60000);
    trp_ref holder = stage_spawn(b.system, &user, "holder");
    trp_ref waiting = stage_spawn(b.system, &user, "waiting");
    stage_tell(b.system, holder, "hold");
    UNIT_WAIT(stage_has("held"), 60000);
    stage_tell(b.system, waiting, "run");

    counting = trp_deadline_failure_detector;
    counting.heartbeat = count_heartbeat;
    counting.is_available = count_suspicion;
    options.heartbeat.detector = &counting;
    options.heartbeat.phi.heartbeat_interval_ms = INTERVAL_MS;
    options.heartbeat.phi.acceptable_pause_ms = PAUSE_MS;
    host_join(&a, b.address, options);
    UNIT_WAIT(is_up(&a), 60000);
    UNIT_WAIT(is_calm(&calm, 2) && !misses_somebody(&a), 60000);
    UNIT_TRUE(stage_is("held")); /* all the time */
    atomic_store(&let_go, true);
    STAGE_EXPECT("held ran");

    b.silent = true; /* and a peer that does not answer is suspected, by the same detector */
    trpi_cluster_stop(b.cluster);
    UNIT_WAIT(misses_somebody(&a), 60000);
    host_end(&a);
    host_end(&b);
}

UNIT_BEGIN("starved")
UNIT(a_node_without_a_free_worker_lets_others_in_and_is_not_suspected)
UNIT_END

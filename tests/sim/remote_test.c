/* remote_test.c - remoting of two whole systems in virtual time: one seed is one order of events.
 *
 * Left stays; right is restarted, cut off, delayed, muted and quarantined by the seed's choice,
 * while actors of both sides watch and stop each other's and number what they tell: in the network
 * in memory, and over simulated sockets with the driver on the poller. Laws, looked at while it
 * runs and when all has calmed down:
 *   signals-W1  A watcher is told at most once of each actor it watches.
 *   signals-W2  When all is calm it has been told if the actor, or its incarnation, is over.
 *   signals-W3  It is not told while the actor lives, unless its incarnation was quarantined.
 *   signals-O1  What one actor tells another arrives in order, each at most once.
 *   signals-C1  When all is calm the two can talk, unless the present incarnation is quarantined.
 *
 *     TROUPE_SIM_SEEDS=1000 [TROUPE_SIM_FIRST=SEED] tests/sim/remote_test
 */
#include <stdlib.h>

#include <troupe/remoting.h>

#include "base/world_virtual.h"
#include "remote/poll/link_poll.h"
#include "remote/remote.h"
#include "sim/mem_transport.h"
#include "sim/sim_net.h"
#include "tests/unit/unit.h"

enum { ACTORS_MAX = 600, WATCHES_MAX = 400, STEPS = 250, NOWHERE = 2 /* the test's host */ };

typedef struct actor {
    trp_ref ref; /* at home */
    int side;
    uint64_t uid; /* of its incarnation */
    bool over;
    uint64_t order_of; /* the incarnation of the other side that ordered its end; 0: none */
    int64_t counted;   /* the last number that came from the other side's teller */
} actor;

typedef struct watch {
    trp_ref who, whom; /* the watcher at home, the watched as it calls it */
    uint32_t actor;    /* index of the watched */
    int side;          /* of the watcher */
    uint64_t uid;      /* of the watcher's incarnation */
    uint32_t told;
    bool sent;
} watch;

typedef struct run {
    uint64_t seed, random;
    trpi_virtual *virt;
    trpi_mem_network *network;
    trpi_sim_net *sockets; /* NULL: the network in memory */
    trp_system *system[2];
    trpi_remote *remote[2];
    actor actors[ACTORS_MAX];
    uint32_t actors_count;
    watch watches[WATCHES_MAX];
    uint32_t watches_count;
    uint64_t quarantined[64]; /* uids */
    uint32_t quarantined_count;
    unsigned cut_percent, delay_ms_max; /* of writes */
    bool unplugged, muted;
    int64_t told;
    bool failed;
} run_t;
static run_t run;

static uint64_t
next_random(void)
{
    uint64_t z = run.random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint32_t
draw_below(uint32_t limit)
{
    return (uint32_t)(next_random() % limit);
}

static void
check_law(bool holds, const char *name, uint64_t detail)
{
    if (!holds && !run.failed) {
        run.failed = true;
        printf("  %s broken, seed %llu, detail %llu: TROUPE_SIM_SEEDS=1 TROUPE_SIM_FIRST=%llu\n",
               name, (unsigned long long)run.seed, (unsigned long long)detail,
               (unsigned long long)run.seed);
    }
}

/* ---- actors ---------------------------------------------------------------------------------- */

/* Counts numbers; its state is its index. */
static trp_err
worker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    uint32_t index;
    int64_t number;
    (void)ctx;
    if (trp_msg_is(msg, &trp_i64_type)) {
        memcpy(&index, state, sizeof index);
        memcpy(&number, trp_msg_payload(msg), sizeof number);
        check_law(number > run.actors[index].counted, "signals-O1", (uint64_t)number);
        run.actors[index].counted = number;
    }
    return TRP_OK;
}
static trp_err
index_take(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    memcpy(state, trp_msg_payload(args), sizeof(uint32_t));
    return TRP_OK;
}
static const trp_behaviour worker = { .size = sizeof(trp_behaviour),
                                      .name = "worker",
                                      .version = 1,
                                      .state_bytes = sizeof(uint32_t),
                                      .receive = worker_receive,
                                      .pre_start = index_take };

static trp_err
watcher_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    uint32_t index;
    memcpy(&index, state, sizeof index);
    watch *w = &run.watches[index];
    if (trp_msg_is(msg, &trp_terminated_type)) {
        const trp_terminated *what = trp_msg_payload(msg);
        check_law(trp_ref_equal(what->ref, w->whom), "signals-W1 of whom", index);
        w->told++;
        check_law(w->told == 1, "signals-W1", index);
        return TRP_OK;
    }
    w->sent = true;
    return trp_watch(ctx, w->whom);
}
static const trp_behaviour watcher = { .size = sizeof(trp_behaviour),
                                       .name = "watcher",
                                       .version = 1,
                                       .state_bytes = sizeof(uint32_t),
                                       .receive = watcher_receive,
                                       .pre_start = index_take };

static trp_err
teller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_ref to;
    (void)state;
    memcpy(&to, trp_msg_payload(msg), sizeof to);
    for (int i = 0; i < 5; i++) {
        int64_t number = ++run.told;
        trp_tell(ctx, to, &trp_i64_type, &number, sizeof number);
    }
    return TRP_OK;
}
/* Either side may give the other up by itself, too. */
static trp_err
listener_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    if (trp_msg_is(msg, &trp_quarantined_type) && run.quarantined_count < 64) {
        const trp_remoting_event *what = trp_msg_payload(msg);
        run.quarantined[run.quarantined_count++] = what->remote_uid;
    }
    return TRP_OK;
}
static const trp_behaviour listener = TRP_BEHAVIOUR_INIT("listener", char, listener_receive);
static const trp_behaviour teller = TRP_BEHAVIOUR_INIT("teller", char, teller_receive);
static trp_ref tellers[2];

static trp_ref
spawn_actor(int side, const trp_behaviour *behaviour, uint32_t index)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    options.args_type = &trp_bytes_type;
    options.args = &index;
    options.args_bytes = sizeof index;
    UNIT_REQUIRE(trp_system_spawn(run.system[side], behaviour, &options, &ref) == TRP_OK);
    return ref;
}

/* ---- the world ------------------------------------------------------------------------------- */

static trpi_mem_verdict
network_fault(void *arg, trpi_mem_event *event)
{
    (void)arg;
    if (run.unplugged) {
        return TRPI_MEM_CUT;
    }
    if (run.muted) {
        return TRPI_MEM_DROP;
    }
    if (run.cut_percent != 0 && draw_below(1000) < run.cut_percent) {
        return TRPI_MEM_CUT;
    }
    event->delay_ns = (uint64_t)draw_below(run.delay_ms_max + 1) * 1000000u;
    event->bytes_first =
        event->bytes > 1 && draw_below(4) == 0 ? 1 + draw_below((uint32_t)event->bytes - 1) : 0;
    return TRPI_MEM_PASS;
}

static bool
network_goes_on(void *arg)
{
    (void)arg;
    trpi_mem_network_advance(run.network, trpi_world_mono_ns(trpi_virtual_world(run.virt)));
    return true;
}

static void
drop_line(void *arg, const trp_log_line *line)
{
    (void)arg;
    if (getenv("PAIR_LOG") != NULL) {
        printf("%llu %s\n",
               (unsigned long long)(trpi_world_mono_ns(trpi_virtual_world(run.virt)) / 1000000),
               line->text);
    }
}

/* Run what is outside of turns and timers on this host from now on. */
static void
host_set(uint32_t host)
{
    trpi_virtual_world(run.virt)->host = host;
}

static void
connections_reset(void)
{
    if (run.sockets != NULL) {
        trpi_sim_net_reset(run.sockets, 1);
    } else {
        trpi_mem_network_cut(run.network, NULL, NULL);
    }
}

static uint64_t
uid_of(int side)
{
    return trpi_system_self(run.system[side])->uid;
}

static void
side_start(int side, uint16_t port)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    trpi_remote_options remote = { .bind_port = -1 };
    options.log = drop_line;
    options.log_level = TRP_LOG_DEBUG;
    options.workers = 2;
    host_set((uint32_t)side);
    UNIT_REQUIRE(trpi_system_new_in(trpi_virtual_world(run.virt), side == 0 ? "left" : "right",
                                    &options, &run.system[side]) == TRP_OK);
    if (side == 0 && run.sockets == NULL) { /* it stays: its timer moves the network */
        uint64_t id;
        UNIT_REQUIRE(trpi_system_every(run.system[0], 1, network_goes_on, NULL, NULL, &id) ==
                     TRP_OK);
    }
    UNIT_REQUIRE(trp_system_subscribe(run.system[side], spawn_actor(side, &listener, 0),
                                      &trp_quarantined_type) == TRP_OK);
    if (run.sockets != NULL) {
        remote.transport = &trpi_link_poll_ops;
        remote.host = side == 0 ? "10.0.0.1" : "10.0.0.2";
    } else {
        remote.transport = &trpi_mem_transport_ops;
        remote.transport_arg = run.network;
        remote.host = side == 0 ? "left" : "right";
    }
    remote.port = port;
    remote.handshake_timeout_ms = 3000;
    remote.backoff_max_ms = 1000;
    remote.flush_on_shutdown_ms = 200;
    UNIT_REQUIRE(trpi_remote_start(run.system[side], &remote, &run.remote[side]) == TRP_OK);
    tellers[side] = spawn_actor(side, &teller, 0);
    host_set(NOWHERE);
}

static void
side_end(int side)
{
    host_set((uint32_t)side);
    UNIT_EQUAL(trp_system_stop(run.system[side], 10000), TRP_OK);
    trpi_remote_stop(run.remote[side]);
    trp_system_free(run.system[side]);
    run.system[side] = NULL;
    host_set(NOWHERE);
    UNIT_TRUE(run.sockets == NULL || trpi_sim_net_open(run.sockets, (uint32_t)side) == 0);
}

static bool
is_quarantined(uint64_t uid)
{
    for (uint32_t i = 0; i < run.quarantined_count; i++) {
        if (run.quarantined[i] == uid) {
            return true;
        }
    }
    return false;
}

static void
pass_time(uint32_t ms)
{
    for (uint32_t at = 0; at < ms; at += 20) {
        trpi_system_pass(run.system[0], 20);
    }
}

/* ---- what happens ---------------------------------------------------------------------------- */

static void
actor_add(int side)
{
    if (run.actors_count == ACTORS_MAX) {
        return;
    }
    actor *a = &run.actors[run.actors_count];
    *a = (actor){ .side = side, .uid = uid_of(side) };
    a->ref = spawn_actor(side, &worker, run.actors_count++);
}

/* Return the ref that the other side has for it. */
static trp_ref
remote_ref(const actor *a)
{
    trpi_node_id id = { *trpi_remote_address(run.remote[a->side]), a->uid };
    trp_ref ref = a->ref;
    UNIT_REQUIRE(trpi_node_intern(run.system[1 - a->side], &id, &ref.node) == TRP_OK);
    return ref;
}

static void
watch_add(void)
{
    uint32_t index = draw_below(run.actors_count);
    if (run.watches_count == WATCHES_MAX) {
        return;
    }
    uint32_t number = run.watches_count++;
    watch *w = &run.watches[number];
    *w = (watch){ .actor = index, .side = 1 - run.actors[index].side };
    w->uid = uid_of(w->side);
    w->whom = remote_ref(&run.actors[index]);
    w->who = spawn_actor(w->side, &watcher, number);
    trp_system_tell(run.system[w->side], w->who, &trp_bytes_type, "", 0);
}

static void
actor_stop(bool from_abroad)
{
    actor *a = &run.actors[draw_below(run.actors_count)];
    if (a->over || a->uid != uid_of(a->side)) {
        return;
    }
    if (!from_abroad) {
        trp_system_stop_actor(run.system[a->side], a->ref);
        a->over = true;
    } else if (!is_quarantined(a->uid) && !is_quarantined(uid_of(1 - a->side))) {
        trp_system_stop_actor(run.system[1 - a->side], remote_ref(a));
        a->over = true;
        a->order_of = uid_of(1 - a->side);
    }
}

static void
tell_actor(const actor *a)
{
    if (a->uid == uid_of(a->side)) {
        trp_ref to = remote_ref(a);
        trp_system_tell(run.system[1 - a->side], tellers[1 - a->side], &trp_bytes_type, &to,
                        sizeof to);
    }
}

static void
tell_some(void)
{
    tell_actor(&run.actors[draw_below(run.actors_count)]);
}

static void
right_restart(void)
{
    uint16_t port = trpi_remote_address(run.remote[1])->port;
    bool polite = draw_below(2) == 0;
    if (!polite) {
        run.unplugged = true;
        connections_reset();
    }
    for (uint32_t i = 0; i < run.actors_count; i++) {
        run.actors[i].over = run.actors[i].over || run.actors[i].side == 1;
    }
    side_end(1);
    if (draw_below(2) == 0) {
        run.unplugged = false;
    }
    side_start(1, port);
    for (int i = 0; i < 3; i++) {
        actor_add(1);
    }
    for (int i = 0; i < (int)draw_below(3); i++) {
        watch_add(); /* perhaps of one that no node has met */
    }
    run.unplugged = false;
}

static void
do_step(void)
{
    switch (draw_below(40)) {
    case 0:
        right_restart();
        break;
    case 1:
        connections_reset();
        break;
    case 2:
        run.unplugged = !run.unplugged;
        break;
    case 3:
        run.muted = !run.muted && draw_below(4) == 0;
        break;
    case 4:
        if (draw_below(8) == 0) {
            trpi_remote_quarantine(run.remote[0], trpi_system_self(run.system[1]), "the seed");
        }
        break;
    case 5:
    case 6:
    case 7:
        actor_add((int)draw_below(2));
        break;
    case 8:
    case 9:
    case 10:
        actor_stop(false);
        break;
    case 11:
    case 12:
        actor_stop(true);
        break;
    case 13:
    case 14:
    case 15:
    case 16:
    case 17:
        tell_some();
        break;
    case 18:
        pass_time(draw_below(3000));
        break;
    default:
        watch_add();
        break;
    }
    pass_time(20 + draw_below(60));
}

/* ---- laws ------------------------------------------------------------------------------------ */

static bool
sides_talk(void)
{
    trpi_peer_info info;
    size_t count = 0;
    trpi_remote_peers(run.remote[0], &info, 1, &count);
    return count > 0 && strcmp(info.state, "active") == 0 && info.id.uid == uid_of(1);
}

static void
laws_when_calm(void)
{
    bool apart = is_quarantined(uid_of(0)) || is_quarantined(uid_of(1));
    for (uint32_t i = 0; i < run.watches_count; i++) {
        const watch *w = &run.watches[i];
        const actor *a = &run.actors[w->actor];
        if (w->uid != uid_of(w->side) || !w->sent) {
            continue; /* the watcher itself is over */
        }
        bool lost = is_quarantined(a->uid) || is_quarantined(w->uid);
        /* The actor that ordered its end may have ended before the order left. */
        lost = lost || (a->order_of != 0 && a->uid == uid_of(a->side) &&
                        a->order_of != uid_of(1 - a->side));
        if ((a->over && !lost && w->told != 1) || (w->told != 0 && !a->over && !lost)) {
            printf("  watch %u by side %d of actor %u (%s, side %d, uid %016llx%s): told %u\n", i,
                   w->side, w->actor, a->over ? "over" : "alive", a->side,
                   (unsigned long long)a->uid, a->uid == uid_of(a->side) ? "" : ", earlier",
                   w->told);
        }
        check_law(!a->over || lost || w->told == 1, "signals-W2", i);
        check_law(a->over || lost || w->told == 0, "signals-W3", i);
    }
    check_law(apart || sides_talk(), "signals-C1", 0);
}

static void
network_start(bool sockets)
{
    static const trpi_sim_faults faults = { .partial = 200, .spurious = 50, .refused = 50 };
    if (!sockets) {
        UNIT_REQUIRE(trpi_mem_network_new(&run.network) == TRP_OK);
        trpi_mem_network_fault_set(run.network, network_fault, NULL);
        return;
    }
    UNIT_REQUIRE(trpi_sim_net_new(trpi_virtual_world(run.virt), run.seed, &run.sockets) == TRP_OK);
    trpi_sim_net_link_set(run.sockets, network_fault, NULL);
    if (run.seed % 2 == 0) {
        trpi_sim_net_faults_set(run.sockets, &faults);
    }
}

static void
network_end(void)
{
    if (run.sockets != NULL) {
        UNIT_EQUAL(trpi_sim_net_misuses(run.sockets), 0);
        trpi_sim_net_free(run.sockets);
    } else {
        trpi_mem_network_free(run.network);
    }
    trpi_world_free(trpi_virtual_world(run.virt));
}

static void
run_seed(uint64_t seed, bool sockets)
{
    trpi_virtual_options options = { .seed = seed, .net = sockets ? &trpi_sim_net_ops : NULL };
    memset(&run, 0, sizeof run);
    run.seed = seed;
    run.random = seed * 0x9e3779b97f4a7c15u + 7;
    UNIT_REQUIRE(trpi_virtual_new(&options, &run.virt) == TRP_OK);
    network_start(sockets);
    run.cut_percent = seed % 3 == 0 ? 0 : (unsigned)(seed % 12);
    run.delay_ms_max = (unsigned)(seed % 40);
    side_start(0, 0);
    side_start(1, 0);
    for (int i = 0; i < 6; i++) {
        actor_add(i % 2);
    }
    for (int i = 0; i < STEPS && !run.failed; i++) {
        do_step();
    }
    run.unplugged = run.muted = false;
    run.cut_percent = run.delay_ms_max = 0;
    connections_reset();
    if (sockets) {
        trpi_sim_net_faults_set(run.sockets, NULL);
    }
    pass_time(5000); /* what is told while a link breaks may be lost */
    actor_add(1);
    tell_actor(&run.actors[run.actors_count - 1]); /* so that an actor has something to send */
    pass_time(40000);
    check_law(run.actors[run.actors_count - 1].counted != 0 || is_quarantined(uid_of(0)) ||
                  is_quarantined(uid_of(1)),
              "signals-C1 told", 0);
    laws_when_calm();
    UNIT_FALSE(run.failed);
    side_end(1);
    side_end(0);
    network_end();
}

static void
seeds_run(bool sockets)
{
    const char *seeds = getenv("TROUPE_SIM_SEEDS");
    const char *first = getenv("TROUPE_SIM_FIRST");
    uint64_t from = first != NULL ? strtoull(first, NULL, 10) : 1;
    uint64_t count = seeds != NULL ? strtoull(seeds, NULL, 10) : 20;
    for (uint64_t seed = from; seed < from + count; seed++) {
        run_seed(seed, sockets);
    }
}

/* REMOTE-09 REMOTE-14 REMOTE-25 REMOTE-36 REMOTE-37 REMOTE-39 REMOTE-41, RemoteNodeDeathWatchSpec,
 * RemoteNodeRestartDeathWatchSpec */
static void
the_laws_of_remoting_hold_under_every_seed(void)
{
    seeds_run(false);
}

static void
they_hold_on_the_poller_over_simulated_sockets(void)
{
    seeds_run(true);
}

UNIT_BEGIN("remote_sim")
UNIT(the_laws_of_remoting_hold_under_every_seed)
UNIT(they_hold_on_the_poller_over_simulated_sockets)
UNIT_END

/* operated_load.c - what weighs on the nodes of the scenario `operated`: connections that say
 * nothing, and actors that are slower than those that tell them.
 *
 * Shape.   A flooder on each node tells every sluggard that is to be slow BURST messages of
 *          FLOOD_BYTES every FLOOD_EVERY_MS. The turn of a sluggard takes SLOW_TURN_MS of virtual
 *          time meanwhile (trpi_sched_take_time), so its senders' nodes must keep what it cannot
 *          take, and nothing else may wait for that: the counters of complete_laws.c do not.
 * Laws.    complete-law-A1 for sluggards; operated-W1 and operated-W7 for what is beside them.
 * Tests.   tests/sim/operated_test.c
 */
#include <stdio.h>
#include <string.h>

#include "cluster/sim/operated.h"
#include "sched/sched.h"

#define MILLISECOND_NS 1000000u
#define FLOOD_EVERY_MS 250u
#define FLOOD_BYTES 4000u
#define BURST 20u
#define SLOW_TURN_MS 300u

/* ---- strangers ------------------------------------------------------------------------------- */

static bool
stranger_accepted(void *arg, trpi_link *link, const char *peer, void **ret_user)
{
    (void)arg;
    (void)link;
    (void)peer;
    (void)ret_user;
    return false;
}

static void
stranger_nothing(void *user, trpi_link *link)
{
    (void)user;
    (void)link;
}

static void
stranger_bytes(void *user, trpi_link *link, const uint8_t *bytes, size_t count)
{
    (void)user;
    (void)link;
    (void)bytes;
    (void)count;
}

static void
stranger_closed(void *user, trpi_link *link, trp_err err, const char *reason)
{
    (void)err;
    (void)reason;
    ((struct sim_stranger *)user)->link = NULL;
    trpi_mem_transport_ops.release(link);
}

const trpi_transport_events sim_stranger_events = { .accepted = stranger_accepted,
                                                    .connected = stranger_nothing,
                                                    .bytes = stranger_bytes,
                                                    .written = stranger_nothing,
                                                    .closed = stranger_closed };

void
sim_strangers_come(struct sim_operated *o, const struct sim_whole *n, uint32_t count, uint64_t ms)
{
    const trpi_transport_ops *ops = &trpi_mem_transport_ops;
    for (uint32_t i = 0; i < OPERATED_STRANGERS_MAX && count > 0; i++) {
        struct sim_stranger *s = &o->strangers[i];
        if (s->link == NULL) {
            s->until_ns = sim_complete_now_ns(o->sim) + ms * MILLISECOND_NS;
            if (ops->connect(o->outside, n->host, SIM_COMPLETE_PORT, 5000, s, &s->link) != TRP_OK) {
                return;
            }
            count--;
        }
    }
}

void
sim_strangers_go(struct sim_operated *o, uint64_t now_ns)
{
    for (uint32_t i = 0; i < OPERATED_STRANGERS_MAX; i++) {
        if (o->strangers[i].link != NULL && o->strangers[i].until_ns <= now_ns) {
            trpi_mem_transport_ops.close(o->strangers[i].link);
        }
    }
}

/* ---- slow receivers -------------------------------------------------------------------------- */

struct flood { /* one message */
    uint64_t number;
    uint32_t node, incarnation;
    uint8_t rest[FLOOD_BYTES - 16];
};

struct birth { /* arguments of both actors */
    struct sim_operated *o;
    uint32_t node, incarnation;
};

struct sluggard {
    struct birth birth;
    struct {
        uint64_t number;
        uint32_t incarnation;
    } last[TRP_SIM_NODES_MAX];
};

struct flooder {
    struct birth birth;
    struct flood next;
    trp_ref to[TRP_SIM_NODES_MAX]; /* the sluggards: what is told by path has no credit */
};

static trp_err
take_birth(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    memcpy(state, trp_msg_payload(args), sizeof(struct birth));
    return TRP_OK;
}

static trp_err
sluggard_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct sluggard *s = state;
    struct sim_operated *o = s->birth.o;
    uint64_t now_ns = sim_complete_now_ns(o->sim);
    if (trp_msg_is(msg, &trp_i64_type)) { /* who is there? */
        int64_t node = s->birth.node;
        trp_reply(ctx, &trp_i64_type, &node, sizeof node);
        return TRP_OK;
    }
    const struct flood *f = trp_msg_payload(msg);
    uint32_t from = f->node % TRP_SIM_NODES_MAX;
    TRP_SIM_CHECK(o->sim, f->incarnation > s->last[from].incarnation ||
                              (f->incarnation == s->last[from].incarnation &&
                               f->number > s->last[from].number)); /* complete-law-A1 */
    s->last[from].incarnation = f->incarnation;
    s->last[from].number = f->number;
    trp_sim_note(o->sim, f->number << 16 ^ (uint64_t)from << 8 ^ s->birth.node);
    if (now_ns < o->slow_until_ns[s->birth.node]) {
        trpi_sched_take_time(trpi_system_sched(o->sim->nodes[s->birth.node].system),
                             now_ns + SLOW_TURN_MS * (uint64_t)MILLISECOND_NS);
    }
    return TRP_OK;
}

static trp_err
flooder_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct flooder *f = state;
    (void)take_birth(ctx, state, args);
    f->next.node = f->birth.node;
    f->next.incarnation = f->birth.incarnation;
    return trp_timer_repeat(ctx, 1, FLOOD_EVERY_MS, FLOOD_EVERY_MS, &trp_i64_type, &(int64_t){ 0 },
                            sizeof(int64_t));
}

static trp_err
flooder_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct flooder *f = state;
    struct sim_operated *o = f->birth.o;
    trp_ref sender = trp_sender(ctx);
    uint64_t now_ns = sim_complete_now_ns(o->sim);
    if (!trp_ref_is_none(sender) && !trp_ref_equal(sender, trp_self(ctx))) {
        f->to[*(const int64_t *)trp_msg_payload(msg) % TRP_SIM_NODES_MAX] = sender;
        return TRP_OK;
    }
    for (uint32_t i = 0; i < o->sim->nodes_count; i++) {
        char path[96];
        if (i == f->birth.node || now_ns >= o->slow_until_ns[i]) {
            continue;
        }
        (void)snprintf(path, sizeof path, "%s/user/sluggard", o->sim->nodes[i].address);
        TRP_SIM_CHECK(o->sim, trp_select_tell(ctx, path, &trp_i64_type, &(int64_t){ 0 },
                                              sizeof(int64_t)) == TRP_OK);
        for (uint32_t k = 0; k < BURST && !trp_ref_is_none(f->to[i]); k++) {
            f->next.number++;
            trp_tell(ctx, f->to[i], &trp_bytes_type, &f->next, sizeof f->next);
        }
    }
    return TRP_OK;
}

static const trp_behaviour sluggard_behaviour = { .size = sizeof(trp_behaviour),
                                                  .name = "sim-sluggard",
                                                  .version = 1,
                                                  .state_bytes = sizeof(struct sluggard),
                                                  .receive = sluggard_receive,
                                                  .pre_start = take_birth };
static const trp_behaviour flooder_behaviour = { .size = sizeof(trp_behaviour),
                                                 .name = "sim-flooder",
                                                 .version = 1,
                                                 .state_bytes = sizeof(struct flooder),
                                                 .receive = flooder_receive,
                                                 .pre_start = flooder_start };

static void
spawn_actor(struct sim_operated *o, const struct birth *birth, const trp_behaviour *behaviour,
            const char *name)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    options.name = name;
    options.args_type = &trp_bytes_type;
    options.args = birth;
    options.args_bytes = sizeof *birth;
    TRP_SIM_CHECK(o->sim, trp_system_spawn(o->sim->nodes[birth->node].system, behaviour, &options,
                                           &ref) == TRP_OK);
}

void
sim_load_start(struct sim_operated *o, uint32_t node)
{
    struct birth birth = { o, node, o->laws.incarnations[node] };
    spawn_actor(o, &birth, &sluggard_behaviour, "sluggard");
    spawn_actor(o, &birth, &flooder_behaviour, "flooder");
}

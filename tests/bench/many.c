/* many.c - many actors that talk to one another: big, chameneos. */
#include "tests/bench/bench.h"

#define BIG_ACTORS 1000
#define CREATURES 100

static uint64_t start_ns, end_ns;
static uint64_t received;

/* ---- big: each actor pings random others, one ping outstanding ------------------------------- */

#define BIG_PING(F, S) F(S, i64, value)
#define BIG_PONG(F, S) F(S, i64, value)
#define BIG_START(F, S) F(S, u64, seed)
#define BIG_DONE(F, S) F(S, u64, pongs)
#define BIG_MESSAGES(M, P)                                                                         \
    M(P, ping, BIG_PING) M(P, pong, BIG_PONG) M(P, start, BIG_START) M(P, done, BIG_DONE)
TRP_PROTOCOL(big, BIG_MESSAGES)

static trp_ref big_refs[BIG_ACTORS]; /* written before any of them is told to start */
static trp_ref big_gatherer;
static uint64_t big_pings; /* of each actor */

typedef struct big_state {
    uint64_t random;
    uint64_t pongs;
} big_state;

static void
big_ping_one(trp_ctx *ctx, big_state *self)
{
    big_ping ping = { (int64_t)self->pongs };

    self->random ^= self->random << 13;
    self->random ^= self->random >> 7;
    self->random ^= self->random << 17;
    trp_tell(ctx, big_refs[(self->random >> 32) * BIG_ACTORS >> 32], &big_ping_type, &ping,
             sizeof ping);
}

static trp_err
big_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    big_state *self = state;

    if (trp_msg_is(msg, &big_ping_type)) {
        const big_ping *ping = trp_msg_payload(msg);
        big_pong pong = { ping->value };

        trp_tell(ctx, trp_sender(ctx), &big_pong_type, &pong, sizeof pong);
    } else if (trp_msg_is(msg, &big_pong_type)) {
        if (++self->pongs < big_pings) {
            big_ping_one(ctx, self);
        } else {
            big_done done = { self->pongs };

            trp_tell(ctx, big_gatherer, &big_done_type, &done, sizeof done);
        }
    } else {
        self->random = ((const big_start *)trp_msg_payload(msg))->seed;
        big_ping_one(ctx, self);
    }
    return TRP_OK;
}

typedef struct gatherer_state {
    uint64_t done, pongs;
} gatherer_state;

static trp_err
gatherer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    gatherer_state *self = state;

    (void)ctx;
    self->pongs += ((const big_done *)trp_msg_payload(msg))->pongs;
    if (++self->done == BIG_ACTORS) {
        end_ns = bench_now_ns();
        received = 2 * self->pongs; /* no pong without its ping */
        bench_done();
    }
    return TRP_OK;
}

static const trp_behaviour big_actor = TRP_BEHAVIOUR_INIT("big", big_state, big_receive);
static const trp_behaviour gatherer =
    TRP_BEHAVIOUR_INIT("gatherer", gatherer_state, gatherer_receive);

static int
run_big(const bench_options *options)
{
    trp_system *system = bench_system(options);
    uint64_t messages;

    big_pings = options->count != 0 ? options->count / BIG_ACTORS / 2 : 2000;
    big_pings = big_pings != 0 ? big_pings : 1;
    messages = 2 * BIG_ACTORS * big_pings;
    bench_check(trp_protocol_register(&big_protocol), "trp_protocol_register");
    big_gatherer = bench_spawn(system, &gatherer);
    for (int i = 0; i < BIG_ACTORS; i++) {
        big_refs[i] = bench_spawn(system, &big_actor);
    }
    start_ns = bench_now_ns();
    for (int i = 0; i < BIG_ACTORS; i++) {
        big_start start = { (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u };

        trp_system_tell(system, big_refs[i], &big_start_type, &start, sizeof(start));
    }
    bench_wait();
    bench_system_end(system);
    return bench_print_rate("big", messages, start_ns, end_ns, "messages/s", messages - received);
}

/* ---- chameneos: creatures meet in a mall by twos and change their colours -------------------- */

#define CHAMENEOS_COME(F, S) F(S, u32, colour)
#define CHAMENEOS_MET(F, S) F(S, ref, other) F(S, u32, colour)
#define CHAMENEOS_CHANGE(F, S) F(S, u32, colour)
#define CHAMENEOS_MESSAGES(M, P)                                                                   \
    M(P, come, CHAMENEOS_COME) M(P, met, CHAMENEOS_MET) M(P, change, CHAMENEOS_CHANGE)
TRP_PROTOCOL(chameneos, CHAMENEOS_MESSAGES)

static trp_ref mall_ref;
static uint64_t meetings_goal;

typedef struct creature_state {
    uint32_t colour;
} creature_state;

/* Two of a kind stay as they are; else both take the third colour. */
static uint32_t
colours_mix(uint32_t a, uint32_t b)
{
    return a == b ? a : 3 - a - b;
}

static trp_err
creature_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    creature_state *self = state;
    chameneos_come come;

    if (trp_msg_is(msg, &chameneos_met_type)) {
        const chameneos_met *met = trp_msg_payload(msg);
        chameneos_change change = { colours_mix(self->colour, met->colour) };

        trp_tell(ctx, met->other, &chameneos_change_type, &change, sizeof change);
        self->colour = change.colour;
    } else { /* the other one's message, or the first colour */
        self->colour = ((const chameneos_change *)trp_msg_payload(msg))->colour;
    }
    come.colour = self->colour;
    trp_tell(ctx, mall_ref, &chameneos_come_type, &come, sizeof come);
    return TRP_OK;
}

typedef struct mall_state {
    trp_ref waiting;
    uint32_t colour;
    uint64_t meetings, sent_home;
} mall_state;

static trp_err
mall_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    mall_state *self = state;
    uint32_t colour = ((const chameneos_come *)trp_msg_payload(msg))->colour;

    if (self->meetings == meetings_goal) { /* all creatures come once more */
        if (++self->sent_home == CREATURES) {
            end_ns = bench_now_ns();
            received = self->meetings;
            bench_done();
        }
    } else if (trp_ref_is_none(self->waiting)) {
        self->waiting = trp_sender(ctx);
        self->colour = colour;
    } else {
        chameneos_met met = { trp_sender(ctx), colour };

        trp_tell(ctx, self->waiting, &chameneos_met_type, &met, sizeof met);
        self->waiting = (trp_ref)TRP_REF_NONE;
        self->meetings++;
    }
    return TRP_OK;
}

static const trp_behaviour creature =
    TRP_BEHAVIOUR_INIT("creature", creature_state, creature_receive);
static const trp_behaviour mall = TRP_BEHAVIOUR_INIT("mall", mall_state, mall_receive);

static int
run_chameneos(const bench_options *options)
{
    trp_system *system = bench_system(options);
    trp_ref creatures[CREATURES];

    meetings_goal = options->count != 0 ? options->count : 2000000;
    bench_check(trp_protocol_register(&chameneos_protocol), "trp_protocol_register");
    mall_ref = bench_spawn(system, &mall);
    for (int i = 0; i < CREATURES; i++) {
        creatures[i] = bench_spawn(system, &creature);
    }
    start_ns = bench_now_ns();
    for (int i = 0; i < CREATURES; i++) {
        chameneos_change first = { (uint32_t)i % 3 };

        trp_system_tell(system, creatures[i], &chameneos_change_type, &first, sizeof first);
    }
    bench_wait();
    bench_system_end(system);
    return bench_print_rate("chameneos", meetings_goal, start_ns, end_ns, "meetings/s",
                            meetings_goal - received);
}

const bench_workload bench_many[] = {
    { "big", "1,000 actors, each pings random others 2,000 times, one outstanding", run_big },
    { "chameneos", "100 creatures, 2 M meetings in one mall", run_chameneos },
    { NULL, NULL, NULL },
};

/* pressure_test.c - a sender that is faster than the receiver's actor: it is pushed back. */
#include "tests/unit/remote/pair.h"

#include "remote/internal.h"

#define TELLS 150000
#define PILE 30000
/* A read of 64 KiB holds at most so many of a trp_i64. */
#define READ_TELLS (65536 / (TRPI_MANY_RECORD_BYTES + 8))

static atomic_bool gate_open, in_order;
static _Atomic int64_t handled, told;

/* Stands still in its first message until the gate opens. */
static trp_err
slow_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t *last = state;
    (void)ctx;
    while (!atomic_load(&gate_open)) {
        unit_pause();
    }
    int64_t number = *(const int64_t *)trp_msg_payload(msg);
    if (number != *last + 1) {
        atomic_store(&in_order, false);
    }
    *last = number;
    atomic_fetch_add(&handled, 1);
    return TRP_OK;
}
static const trp_behaviour slow = TRP_BEHAVIOUR_INIT("slow", int64_t, slow_receive);

static trp_ref flooded;

/* Tells a thousand a turn, until all are told. */
static trp_err
flood_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    int64_t *number = state;
    for (int i = 0; i < 1000 && *number < TELLS; i++) {
        ++*number;
        trp_tell(ctx, flooded, &trp_i64_type, number, sizeof *number);
    }
    atomic_store(&told, *number);
    if (*number < TELLS) {
        trp_tell(ctx, trp_self(ctx), trp_msg_type(msg), trp_msg_payload(msg), trp_msg_bytes(msg));
    }
    return TRP_OK;
}
static const trp_behaviour flood = TRP_BEHAVIOUR_INIT("flood", int64_t, flood_receive);

static int64_t
arrived(pair *p)
{
    trpi_peer_info info = { .messages_in = 0 };
    size_t count = 0;
    trpi_remote_peers(p->remote[1], &info, 1, &count);
    return (int64_t)info.messages_in;
}

static void
flood_start(pair *p)
{
    trpi_remote_options options = { .lane_bytes_max = 64u << 20,
                                    .receiver_messages_max = PILE };
    char path[512];
    int64_t go = 0;
    atomic_store(&gate_open, false);
    atomic_store(&in_order, true);
    atomic_store(&handled, 0);
    atomic_store(&told, 0);
    pair_start(p, false, &options);
    pair_spawn(p->system[1], &slow, "slow", NULL, NULL, 0);
    pair_path(p, 1, "/user/slow", path, sizeof path);
    UNIT_REQUIRE(trp_system_resolve(p->system[0], path, 60000, &flooded) == TRP_OK);
    trp_ref ref = pair_spawn(p->system[0], &flood, "flood", NULL, NULL, 0);
    trp_system_tell(p->system[0], ref, &trp_i64_type, &go, sizeof go);
    UNIT_WAIT(arrived(p) >= PILE, 20000);
}

/* May so many have come since then? A look at the clock that is late only allows more. */
static bool
is_let_through(int64_t count, uint64_t since_ms)
{
    return count <= (int64_t)((unit_now_ms() - since_ms) / TRPI_PILE_WAIT_MS + 4) * READ_TELLS;
}

/* Bounded memory towards a slow receiver; nothing is lost, and other lanes go on */
static void
a_slow_receiver_pushes_the_sender_back_and_loses_nothing(void)
{
    pair p;
    uint64_t flood_ms = unit_now_ms();
    flood_start(&p);
    /* now one read each pause is let through, and no more; 6 take no less than two pauses */
    uint64_t began_ms = unit_now_ms();
    int64_t first = arrived(&p);
    UNIT_WAIT(arrived(&p) >= first + 6 * READ_TELLS, 20000);
    UNIT_TRUE(is_let_through(arrived(&p) - first, began_ms));
    UNIT_TRUE(is_let_through(arrived(&p) - PILE, flood_ms));
    UNIT_WAIT(atomic_load(&told) == TELLS, 20000);
    UNIT_TRUE(is_let_through(arrived(&p) - PILE, flood_ms)); /* and not all that was told */
    UNIT_EQUAL(atomic_load(&handled), 0);
    UNIT_TEXT(pair_state(&p, 0), "active");
    atomic_store(&gate_open, true);
    UNIT_WAIT(atomic_load(&handled) == TELLS, 20000);
    UNIT_TRUE(atomic_load(&in_order));
    pair_end(&p);
}

static void
a_connection_may_be_closed_while_it_is_paused(void)
{
    pair p;
    flood_start(&p);
    trpi_remote_stop(p.remote[1]);
    atomic_store(&gate_open, true);
    UNIT_WAIT(atomic_load(&handled) >= PILE, 20000);
    UNIT_TRUE(atomic_load(&in_order));
    UNIT_EQUAL(trp_system_stop(p.system[1], 60000), TRP_OK);
    trp_system_free(p.system[1]);
    p.system[1] = NULL;
    pair_end(&p);
}

static void
the_peer_may_end_while_its_connection_is_paused(void)
{
    pair p;
    flood_start(&p);
    pair_end_side(&p, 0);
    atomic_store(&gate_open, true);
    UNIT_WAIT(atomic_load(&handled) >= PILE, 20000);
    pair_end(&p);
}

UNIT_BEGIN("pressure")
UNIT(a_slow_receiver_pushes_the_sender_back_and_loses_nothing)
UNIT(a_connection_may_be_closed_while_it_is_paused)
UNIT(the_peer_may_end_while_its_connection_is_paused)
UNIT_END

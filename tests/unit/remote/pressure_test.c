/* pressure_test.c - a sender that is faster than the receiver's actor: it is pushed back. */
#include "tests/unit/remote/slow.h"

#include "remote/internal.h"

#define TELLS 150000
#define PILE 30000
/* A read of 64 KiB holds at most so many of a trp_i64. */
#define READ_TELLS (65536 / (TRPI_MANY_RECORD_BYTES + 8))

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
    atomic_store(&slow_told, *number);
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
    trpi_remote_options options = { .lane_bytes_max = 64u << 20, .receiver_messages_max = PILE };
    int64_t go = 0;
    slow_reset();
    pair_start(p, false, &options);
    flooded = slow_start(p);
    trp_ref ref = pair_spawn(p->system[0], &flood, "flood", NULL, NULL, 0);
    trp_system_tell(p->system[0], ref, &trp_i64_type, &go, sizeof go);
    UNIT_WAIT(arrived(p) >= PILE, 60000);
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
    UNIT_WAIT(arrived(&p) >= first + 6 * READ_TELLS, 60000);
    UNIT_TRUE(is_let_through(arrived(&p) - first, began_ms));
    UNIT_TRUE(is_let_through(arrived(&p) - PILE, flood_ms));
    UNIT_WAIT(atomic_load(&slow_told) == TELLS, 60000);
    UNIT_TRUE(is_let_through(arrived(&p) - PILE, flood_ms)); /* and not all that was told */
    UNIT_EQUAL(atomic_load(&slow_handled), 0);
    UNIT_TEXT(pair_state(&p, 0), "active");
    atomic_store(&slow_gate_open, true);
    UNIT_WAIT(atomic_load(&slow_handled) == TELLS, 60000);
    UNIT_TRUE(atomic_load(&slow_in_order));
    pair_end(&p);
}

static void
a_connection_may_be_closed_while_it_is_paused(void)
{
    pair p;
    flood_start(&p);
    trpi_remote_stop(p.remote[1]);
    atomic_store(&slow_gate_open, true);
    UNIT_WAIT(atomic_load(&slow_handled) >= PILE, 60000);
    UNIT_TRUE(atomic_load(&slow_in_order));
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
    atomic_store(&slow_gate_open, true);
    UNIT_WAIT(atomic_load(&slow_handled) >= PILE, 60000);
    pair_end(&p);
}

UNIT_BEGIN("pressure")
UNIT(a_slow_receiver_pushes_the_sender_back_and_loses_nothing)
UNIT(a_connection_may_be_closed_while_it_is_paused)
UNIT(the_peer_may_end_while_its_connection_is_paused)
UNIT_END

/* gather_test.c - what an actor tells another node in a run is gathered without the token of its
 * proxy: it is delivered in order, and what was reserved for it is used or given back. */
#include "tests/unit/actor/stage.h"

#include <stdatomic.h>

#include <troupe/mailbox.h>

#include "base/wire.h"

enum { SENDERS = 4, ROUNDS = 2000, ROOM = 40 }; /* three records of a number */
/* A message that carries a number: as a message that and as much again, on the wire a byte less. */
enum { CARRIED_BYTES = 16, CARRIED_WIRE_BYTES = 15 };
#define CARRIER (&trp_string_type)

/* Remoting that counts. The lock of its fields is the proxy's token. */
typedef struct wire {
    trp_system *system;
    trp_ref far;
    uint32_t type, to, from; /* of the last message; 0: there is none */
    int64_t next[SENDERS + 1];
    uint64_t delivered;
    _Atomic uint64_t seen, together, one_by_one; /* for other threads */
    atomic_size_t reserved;
    size_t room;       /* that gather() grants */
    uint32_t refuses;  /* each so many-th: gather() and gathered() do; 0: none */
    bool carries_none; /* carry() refuses */
    _Atomic uint64_t restored;
    uint32_t asked;
} wire;
static wire w;

static void
wire_number(const trp_msg *header, int64_t what)
{
    size_t sender = (size_t)(what >> 32);

    UNIT_REQUIRE(sender <= SENDERS);
    UNIT_EQUAL((int64_t)(uint32_t)what, w.next[sender]); /* in-place-E1 */
    w.next[sender]++;
    w.type = header->priv_type;
    w.to = header->priv_to_slot;
    w.from = header->priv_from_slot;
    atomic_store(&w.seen, ++w.delivered);
}

static void
wire_deliver(void *arg, trp_system *system, trp_msg *msg)
{
    int64_t what;

    (void)arg;
    (void)system;
    memcpy(&what, trp_msg_payload(msg), sizeof what);
    if ((msg->priv_from_node_flags & TRPI_MSG_RESERVED) != 0) {
        UNIT_EQUAL((uintptr_t)trp_msg_payload(msg) % 16, 0);
        atomic_fetch_sub(&w.reserved, trp_msg_bytes(msg));
        atomic_fetch_add(&w.one_by_one, 1);
    }
    wire_number(msg, what);
}

static bool
wire_flush(void *arg, trp_system *system, bool more)
{
    (void)arg;
    (void)system;
    (void)more;
    return false;
}

static bool
wire_is_like_last(const trp_msg *header)
{
    return w.type == header->priv_type && w.to == header->priv_to_slot &&
           w.from == header->priv_from_slot;
}

static bool
wire_again(void *arg, const trp_msg *header, const void *payload, size_t bytes, bool bounded)
{
    int64_t what;

    (void)arg;
    (void)bytes;
    (void)bounded;
    if (!wire_is_like_last(header) || header->priv_type == CARRIER->number) {
        return false;
    }
    memcpy(&what, payload, sizeof what);
    wire_number(header, what);
    return true;
}

static bool
wire_refuses(void)
{
    return w.refuses != 0 && ++w.asked % w.refuses == 0;
}

static size_t
wire_gather(void *arg, size_t need)
{
    (void)arg;
    if (wire_refuses() || need > w.room) {
        return 0;
    }
    atomic_fetch_add(&w.reserved, w.room);
    return w.room;
}

static bool
wire_gathered(void *arg, const trp_msg *header, const trpi_gathered *gathered)
{
    size_t at = 0;
    uint32_t count = 0;

    (void)arg;
    UNIT_TRUE(gathered->bytes <= gathered->granted);
    if (!wire_is_like_last(header) || wire_refuses()) {
        return false;
    }
    for (; at < gathered->bytes; count++) {
        int64_t what;

        size_t bytes = gathered->carries ? CARRIED_WIRE_BYTES : sizeof what;

        UNIT_EQUAL(trpi_get_u32(gathered->records + at), bytes);
        memcpy(&what, gathered->records + at + TRPI_RECORD_BYTES, sizeof what);
        at += TRPI_RECORD_BYTES + bytes;
        wire_number(header, what);
    }
    UNIT_EQUAL(count, gathered->count);
    atomic_fetch_sub(&w.reserved, gathered->granted);
    atomic_fetch_add(&w.together, count);
    return true;
}

static void
wire_reserve_each(void *arg, size_t granted, uint32_t count, size_t bytes)
{
    (void)arg;
    UNIT_TRUE(bytes == count * sizeof(int64_t) || bytes == count * CARRIED_BYTES);
    atomic_fetch_add(&w.reserved, bytes - granted);
}

static void
wire_unreserve(void *arg, size_t bytes)
{
    (void)arg;
    atomic_fetch_sub(&w.reserved, bytes);
}

static bool
wire_carry(void *arg, const trpi_carrier *what, trpi_buffer *out)
{
    static const uint8_t behind[CARRIED_WIRE_BYTES - sizeof(int64_t)] = { 0 };

    (void)arg;
    UNIT_TRUE(what->type == CARRIER && what->inner == &trp_i64_type);
    if (w.carries_none) {
        return false;
    }
    UNIT_EQUAL(trpi_buffer_append(out, what->payload, what->bytes, TRPI_BUFFER_NO_LIMIT), TRP_OK);
    UNIT_EQUAL(trpi_buffer_append(out, behind, sizeof behind, TRPI_BUFFER_NO_LIMIT), TRP_OK);
    return true;
}

static trp_err
wire_restore(void *arg, const trp_type *type, const uint8_t *record, size_t bytes, trpi_buffer *out)
{
    (void)arg;
    UNIT_TRUE(type == CARRIER);
    UNIT_EQUAL(bytes, CARRIED_WIRE_BYTES);
    UNIT_EQUAL(trpi_buffer_append(out, record, bytes, TRPI_BUFFER_NO_LIMIT), TRP_OK);
    atomic_fetch_add(&w.restored, 1);
    return trpi_buffer_append(out, "", 1, TRPI_BUFFER_NO_LIMIT);
}

static trp_system *
wire_open(uint32_t workers)
{
    static const trpi_proxy_ops ops = { .deliver = wire_deliver,
                                        .flush = wire_flush,
                                        .again = wire_again,
                                        .gather = wire_gather,
                                        .gathered = wire_gathered,
                                        .reserve_each = wire_reserve_each,
                                        .unreserve = wire_unreserve,
                                        .carry = wire_carry,
                                        .restore = wire_restore };
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;

    options.workers = workers;
    memset(&w, 0, sizeof w);
    w.room = ROOM;
    w.system = stage_open_with(options);
    w.far = stage_far(w.system);
    UNIT_EQUAL(trpi_proxy_attach(w.system, w.far.node, &ops, NULL), TRP_OK);
    return w.system;
}

/* ---- one sender ------------------------------------------------------------------------------ */

static _Atomic uint64_t noted_seen, noted_reserved; /* within the turn, behind its tells */
static _Atomic int turns;

/* Tells of one turn. */
typedef struct order {
    int64_t count;   /* of tells */
    int64_t other;   /* this one is for another actor of that node; 0: none */
    bool tries;      /* trp_try_tell() */
    bool fails;      /* after the last one */
    int64_t carries; /* each so many-th carries a number; 0: none */
} order;

/* As the sharding room tells an entity of another node. */
static void
tell_carrying(trp_ctx *ctx, trp_ref to, int64_t number)
{
    trpi_carrier what = { CARRIER, NULL, NULL, &trp_i64_type, &number, sizeof number };
    int64_t both[] = { number, 0 };

    if (!trpi_tell_carried(ctx, to, &what)) {
        trpi_tell(ctx, to, trp_self(ctx), CARRIER, both, sizeof both);
        trpi_carriers_expect(ctx, to, CARRIER, sizeof both);
    }
}

static trp_err
teller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    static int64_t next; /* it lives longer than an actor that fails */
    const order *o = trp_msg_payload(msg);
    trp_ref other = w.far;

    (void)state;
    other.slot++;
    next = atomic_load(&turns) == 0 ? 0 : next;
    for (int64_t i = 1; i <= o->count; i++) {
        trp_ref to = i == o->other ? other : w.far;

        if (o->carries != 0 && i % o->carries == 0) {
            tell_carrying(ctx, to, next);
        } else if (o->tries) {
            UNIT_EQUAL(trp_try_tell(ctx, to, &trp_i64_type, &next, sizeof next), TRP_OK);
        } else {
            trp_tell(ctx, to, &trp_i64_type, &next, sizeof next);
        }
        next++;
    }
    atomic_store(&noted_seen, atomic_load(&w.seen));
    atomic_store(&noted_reserved, atomic_load(&w.reserved));
    atomic_fetch_add(&turns, 1);
    return o->fails ? TRP_EINVAL : TRP_OK;
}
static const trp_behaviour teller = TRP_BEHAVIOUR_INIT("teller", char, teller_receive);

static trp_system *
teller_open(trp_ref *ret_ref)
{
    trp_system *system = wire_open(1);

    atomic_store(&turns, 0);
    *ret_ref = stage_spawn(system, &teller, "t");
    return system;
}

static void
turn(trp_ref ref, order o)
{
    int before = atomic_load(&turns);

    trp_system_tell(w.system, ref, &trp_bytes_type, &o, sizeof o);
    UNIT_WAIT(atomic_load(&turns) == before + 1, 30000);
}

/* The turn is over, and all that it told was delivered. */
static void
all_is_there(uint64_t count)
{
    UNIT_WAIT(atomic_load(&w.seen) == count, 30000);
    UNIT_WAIT(atomic_load(&w.reserved) == 0, 30000); /* in-place-E5 */
}

/* Those behind the second one of a turn wait for each other, until there is no room. */
static void
like_messages_are_delivered_together(void)
{
    trp_ref ref;
    trp_system *system = teller_open(&ref);

    turn(ref, (order){ .count = 2 });
    all_is_there(2);
    UNIT_EQUAL(atomic_load(&w.together), 0);
    turn(ref, (order){ .count = 8 }); /* one leaves at once, 1, 3, 3 */
    UNIT_EQUAL(atomic_load(&noted_seen), 2 + 5);
    UNIT_EQUAL(atomic_load(&noted_reserved), ROOM);
    all_is_there(10);
    UNIT_EQUAL(atomic_load(&w.together), 6);
    turn(ref, (order){ .count = 8, .tries = true }); /* 1, 3, 3, 1 */
    all_is_there(18);
    UNIT_EQUAL(atomic_load(&w.together), 13);
    UNIT_EQUAL(atomic_load(&w.one_by_one), 0);
    stage_close(system);
}

/* in-place-E1, whichever message of the turn it is. */
static void
what_is_told_another_actor_there_comes_behind(void)
{
    trp_ref ref;
    trp_system *system = teller_open(&ref);

    for (int64_t i = 1; i <= 12; i++) {
        turn(ref, (order){ .count = 12, .other = i, .tries = i % 2 == 0 });
        all_is_there((uint64_t)i * 12);
    }
    UNIT_TRUE(atomic_load(&w.together) > 0);
    stage_close(system);
}

/* The route may have to hold them, or has said something else meanwhile. */
static void
what_cannot_join_is_delivered_one_by_one(void)
{
    trp_ref ref;
    trp_system *system = teller_open(&ref);

    for (uint32_t i = 1; i <= 5; i++) {
        w.refuses = i;
        turn(ref, (order){ .count = 20 });
        all_is_there(i * 20);
    }
    UNIT_TRUE(atomic_load(&w.one_by_one) > 0);
    UNIT_TRUE(atomic_load(&w.together) > 0);
    stage_close(system);
}

static void
what_is_longer_than_the_room_is_not_gathered(void)
{
    trp_ref ref;
    trp_system *system = teller_open(&ref);

    for (size_t room = 0; room <= 2 * (TRPI_RECORD_BYTES + 8); room++) {
        uint64_t before = atomic_load(&w.together);

        w.room = room;
        turn(ref, (order){ .count = 10 });
        all_is_there((room + 1) * 10);
        UNIT_EQUAL(atomic_load(&w.together) > before, room >= TRPI_RECORD_BYTES + 8);
    }
    stage_close(system);
}

/* It is restarted with the next message; what it told before counts. */
static void
an_actor_that_fails_has_told_them(void)
{
    trp_ref ref;
    trp_system *system = teller_open(&ref);

    for (uint64_t i = 1; i <= 3; i++) {
        turn(ref, (order){ .count = 10, .fails = true });
        all_is_there(i * 10);
    }
    UNIT_TRUE(atomic_load(&w.together) > 0);
    stage_close(system);
}

/* in-place-E1, in-place-E5: in their wire form, and as messages where the route wants those. */
static void
messages_that_carry_others_are_delivered_together(void)
{
    trp_ref ref;
    trp_system *system = teller_open(&ref);
    uint64_t told = 0;

    turn(ref, (order){ .count = 2, .carries = 1 });
    all_is_there(told += 2);
    turn(ref, (order){ .count = 8, .carries = 1 }); /* one leaves at once, 1, 2, 2, 2 */
    all_is_there(told += 8);
    UNIT_EQUAL(atomic_load(&w.together), 6);
    UNIT_EQUAL(atomic_load(&w.restored), 0);
    for (int64_t i = 1; i <= 6; i++) { /* between others, and to others */
        turn(ref, (order){ .count = 30, .carries = i, .other = 30 - i });
        all_is_there(told += 30);
    }
    for (uint32_t i = 1; i <= 5; i++) {
        w.refuses = i;
        turn(ref, (order){ .count = 20, .carries = 1 });
        all_is_there(told += 20);
    }
    UNIT_TRUE(atomic_load(&w.restored) > 0);
    w.refuses = 0;
    turn(ref, (order){ .count = 10, .carries = 1, .fails = true });
    all_is_there(told += 10);
    stage_close(system);
}

static void
what_has_no_wire_form_is_told_as_a_message(void)
{
    trp_ref ref;
    trp_system *system = teller_open(&ref);

    w.carries_none = true;
    turn(ref, (order){ .count = 20, .carries = 1 });
    all_is_there(20);
    UNIT_EQUAL(atomic_load(&w.together), 0);
    stage_close(system);
}

/* The room that was granted may be one byte short. */
static void
a_record_that_does_not_fit_is_told_as_a_message(void)
{
    trp_ref ref;
    trp_system *system = teller_open(&ref);
    uint64_t told = 0;

    for (size_t room = 0; room <= 2 * (TRPI_RECORD_BYTES + CARRIED_BYTES) + 1; room++) {
        uint64_t before = atomic_load(&w.together);

        w.room = room;
        turn(ref, (order){ .count = 10, .carries = 1 });
        all_is_there(told += 10);
        UNIT_EQUAL(atomic_load(&w.together) > before, room >= TRPI_RECORD_BYTES + CARRIED_BYTES);
    }
    stage_close(system);
}

/* ---- several senders ------------------------------------------------------------------------- */

typedef struct sender_state {
    int64_t number, next, rounds;
} sender_state;
static _Atomic int senders_done;

/* One to thirteen messages a turn, while others want the proxy. */
static trp_err
sender_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    sender_state *s = state;

    if (s->number == 0) {
        s->number = *(const int64_t *)trp_msg_payload(msg);
    }
    for (int64_t i = 0; i <= (s->rounds * s->number) % 13; i++) {
        int64_t what = s->number << 32 | s->next++;

        if (s->number % 2 == 0) {
            tell_carrying(ctx, w.far, what);
        } else {
            trp_tell(ctx, w.far, &trp_i64_type, &what, sizeof what);
        }
    }
    if (++s->rounds == ROUNDS) {
        atomic_fetch_add(&noted_seen, (uint64_t)s->next);
        atomic_fetch_add(&senders_done, 1);
    } else {
        trp_tell(ctx, trp_self(ctx), &trp_i64_type, &s->number, sizeof s->number);
    }
    return TRP_OK;
}
static const trp_behaviour sender = TRP_BEHAVIOUR_INIT("sender", sender_state, sender_receive);

/* Every message is delivered once, in its sender's order: together, one by one, or pushed. */
static void
senders_on_several_workers_keep_their_order(void)
{
    trp_system *system = wire_open(3);

    w.refuses = 5;
    atomic_store(&senders_done, 0);
    atomic_store(&noted_seen, 0);
    for (int64_t i = 1; i <= SENDERS; i++) {
        trp_ref ref = stage_spawn(system, &sender, NULL);

        trp_system_tell(system, ref, &trp_i64_type, &i, sizeof i);
    }
    UNIT_WAIT(atomic_load(&senders_done) == SENDERS, 60000);
    all_is_there(atomic_load(&noted_seen));
    stage_close(system);
}

UNIT_BEGIN("gather")
UNIT(like_messages_are_delivered_together)
UNIT(what_is_told_another_actor_there_comes_behind)
UNIT(what_cannot_join_is_delivered_one_by_one)
UNIT(what_is_longer_than_the_room_is_not_gathered)
UNIT(an_actor_that_fails_has_told_them)
UNIT(messages_that_carry_others_are_delivered_together)
UNIT(what_has_no_wire_form_is_told_as_a_message)
UNIT(a_record_that_does_not_fit_is_told_as_a_message)
UNIT(senders_on_several_workers_keep_their_order)
UNIT_END

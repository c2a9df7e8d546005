/* conductor.c - see the header. A thin shell around barrier.c.
 *
 * Shape.   Each node has a seat: its player (an actor of its control system, which is watched), the
 *          address of its system under test, and the one call of its test's thread that is not
 *          answered yet. A waiting call is answered by an event of another node, or by the clock.
 * Must hold.
 *   conductor-C1  a call is answered once: the answer clears the seat's open call (answer_seat)
 *   conductor-C2  a node that exits or shuts down by order is not lost: its watch ends first
 *       (seat_release)
 *   conductor-C3  an index from another node is compared with the plan before it is used
 *       (conductor_receive)
 * Tests.   tests/unit/multinode/barrier_test.c, tests/multinode/kit.sh
 * Sources. MNT-02, -03, -07, -08, -16
 */
#include "cluster/multinode/conductor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <troupe/cluster.h>

#include "cluster/multinode/barrier.h"
#include "cluster/multinode/protocol.h"

TRP_PROTOCOL_DEFINE(trpi_multinode, TRPI_MULTINODE_MESSAGES)

enum { BARRIER_TIMER = 1 };

typedef struct seat {
    trp_ref player; /* TRP_REF_NONE: none */
    bool present;
    char address[TRP_ADDRESS_BYTES]; /* stays when the node is gone */
    trp_ref waiter;                  /* of the call below */
    uint32_t waits;                  /* its verb; 0: none */
    uint32_t target;                 /* of TRPI_MULTINODE_ADDRESS */
} seat;

typedef struct conductor {
    const trpi_multinode_plan *plan;
    trpi_barrier barrier;
    bool begun;
    seat seats[TRPI_BARRIER_NODES_MAX];
} conductor;

typedef trpi_multinode_call call;

/* ---- answers --------------------------------------------------------------------------------- */

static void
answer_send(trp_ctx *ctx, trp_ref to, trp_err err, const char *text)
{
    trpi_multinode_answer a;
    memset(&a, 0, sizeof a);
    a.err = (int32_t)err;
    (void)snprintf(a.text, sizeof a.text, "%s", text);
    trp_tell(ctx, to, &trpi_multinode_answer_type, &a, sizeof a);
}

/* conductor-C1 */
static void
answer_seat(trp_ctx *ctx, seat *s, trp_err err, const char *text)
{
    trp_ref to = s->waiter;
    s->waits = 0;
    s->waiter = (trp_ref)TRP_REF_NONE;
    answer_send(ctx, to, err, text);
}

static void
seat_waits(trp_ctx *ctx, seat *s, const call *c)
{
    s->waiter = trp_sender(ctx);
    s->waits = c->verb;
    s->target = c->target;
}

static void
answer_waiting(trp_ctx *ctx, conductor *self, uint32_t verb, trp_err err, const char *text)
{
    for (uint32_t i = 0; i < self->plan->roles_count; i++) {
        if (self->seats[i].waits == verb) {
            answer_seat(ctx, &self->seats[i], err, text);
        }
    }
}

static uint32_t
present_count(const conductor *self)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < self->plan->roles_count; i++) {
        count += self->seats[i].present;
    }
    return count;
}

static void
farewell_look(trp_ctx *ctx, conductor *self)
{
    uint32_t others = 0;
    for (uint32_t i = 1; i < self->plan->roles_count; i++) {
        others += !trp_ref_is_none(self->seats[i].player);
    }
    if (others == 0) {
        answer_waiting(ctx, self, TRPI_MULTINODE_FAREWELL, TRP_OK, "");
    }
}

/* Answer the nodes that a change of the barrier concerns, and set its timer. */
static void
barrier_follow(trp_ctx *ctx, conductor *self, trpi_barrier_step step)
{
    const char *why = self->barrier.failed ? self->barrier.why
                                           : "the first node does not know this node any more";
    for (uint32_t i = 0; i < self->plan->roles_count; i++) {
        if ((step.told >> i & 1) != 0 && self->seats[i].waits == TRPI_MULTINODE_ENTER) {
            answer_seat(ctx, &self->seats[i], step.passed ? TRP_OK : TRP_ECANCELED,
                        step.passed ? "" : why);
        }
    }
    if (self->barrier.failed) { /* no node waits any more */
        answer_waiting(ctx, self, TRPI_MULTINODE_PRESENT, TRP_ECANCELED, why);
        answer_waiting(ctx, self, TRPI_MULTINODE_ADDRESS, TRP_ECANCELED, why);
    }
    if (self->barrier.waiting) {
        uint64_t now_ms = trp_now_ms(ctx), deadline_ms = self->barrier.deadline_ms;
        call tick;
        memset(&tick, 0, sizeof(tick));
        tick.verb = TRPI_MULTINODE_TICK;
        if (trp_timer_once(ctx, BARRIER_TIMER,
                           deadline_ms > now_ms ? (uint32_t)(deadline_ms - now_ms) : 1,
                           &trpi_multinode_call_type, &tick, sizeof(tick)) != TRP_OK) {
            barrier_follow(
                ctx, self,
                trpi_barrier_tick(&self->barrier, self->plan->roles, UINT64_MAX)); /* now */
        }
    } else {
        trp_timer_cancel(ctx, BARRIER_TIMER);
    }
    farewell_look(ctx, self);
}

/* The node of this seat is gone, or goes: answer the nodes that wait for its address. */
static void
seat_leave(trp_ctx *ctx, conductor *self, uint32_t index)
{
    seat *s = &self->seats[index];
    s->player = (trp_ref)TRP_REF_NONE;
    s->present = false;
    for (uint32_t i = 0; i < self->plan->roles_count; i++) {
        if (self->seats[i].waits == TRPI_MULTINODE_ADDRESS && self->seats[i].target == index) {
            answer_seat(ctx, &self->seats[i], TRP_ENOENT, "that node is gone");
        }
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void
hello_receive(trp_ctx *ctx, conductor *self, const call *c)
{
    trp_ref player = trp_sender(ctx);
    trp_err err = TRP_OK;
    bool taken = !trp_ref_is_none(self->seats[c->index].player);
    trpi_barrier_step step = trpi_barrier_add(&self->barrier, self->plan->roles, c->index);
    if (taken) {
        err = TRP_EEXIST;
    } else if (self->barrier.failed) {
        err = TRP_ECANCELED;
    } else {
        err = trp_watch(ctx, player);
    }
    if (err == TRP_OK) {
        self->seats[c->index].player = player;
    }
    barrier_follow(ctx, self, step);
    answer_send(ctx, player, err, self->barrier.why);
}

static void
present_receive(trp_ctx *ctx, conductor *self, const call *c)
{
    seat *s = &self->seats[c->index];
    (void)snprintf(s->address, sizeof s->address, "%.*s", TRP_ADDRESS_BYTES - 1, c->name);
    s->present = true;
    seat_waits(ctx, s, c);
    for (uint32_t i = 0; i < self->plan->roles_count; i++) {
        if (self->seats[i].waits == TRPI_MULTINODE_ADDRESS && self->seats[i].target == c->index) {
            answer_seat(ctx, &self->seats[i], TRP_OK, s->address);
        }
    }
    self->begun = self->begun || present_count(self) >= self->plan->participants;
    if (self->begun) {
        answer_waiting(ctx, self, TRPI_MULTINODE_PRESENT, TRP_OK, "");
    } else if (self->barrier.failed) {
        answer_seat(ctx, s, TRP_ECANCELED, self->barrier.why);
    }
}

static void
address_receive(trp_ctx *ctx, conductor *self, const call *c)
{
    const seat *wanted = &self->seats[c->target];
    if (wanted->present) {
        answer_send(ctx, trp_sender(ctx), TRP_OK, wanted->address);
    } else if (self->barrier.failed ||
               (trp_ref_is_none(wanted->player) && wanted->address[0] != '\0')) {
        answer_send(ctx, trp_sender(ctx), self->barrier.failed ? TRP_ECANCELED : TRP_ENOENT,
                    self->barrier.failed ? self->barrier.why : "that node is gone");
    } else {
        seat_waits(ctx, &self->seats[c->index], c);
    }
}

static void
nodes_receive(trp_ctx *ctx, const conductor *self)
{
    char known[32];
    (void)snprintf(known, sizeof(known), "%" PRIx64, self->barrier.known);
    answer_send(ctx, trp_sender(ctx), TRP_OK, known);
}

/* conductor-C2. Return the player of the seat. */
static trp_ref
seat_release(trp_ctx *ctx, conductor *self, uint32_t index)
{
    trp_ref player = self->seats[index].player;
    if (!trp_ref_is_none(player)) {
        trp_unwatch(ctx, player);
    }
    if (self->seats[index].waits != 0) {
        answer_seat(ctx, &self->seats[index], TRP_ECANCELED, "this node was released by order");
    }
    seat_leave(ctx, self, index);
    barrier_follow(ctx, self, trpi_barrier_remove(&self->barrier, index));
    return player;
}

/* Check that an order may be given, and pass it on. */
static void
order_receive(trp_ctx *ctx, conductor *self, const call *given)
{
    call c = *given;
    const seat *target = &self->seats[c.target];
    trp_ref player = target->player;
    if (c.index != 0 ||
        (c.target == 0 && c.verb != TRPI_MULTINODE_FAULT && c.verb != TRPI_MULTINODE_DISCONNECT)) {
        answer_send(ctx, trp_sender(ctx), TRP_EPERM,
                    "no order can end the first node, which conducts the test");
        return;
    }
    if (trp_ref_is_none(player)) {
        answer_send(ctx, trp_sender(ctx), TRP_ENOENT, "that node is gone");
        return;
    }
    (void)snprintf(c.name, sizeof c.name, "%s", self->seats[c.peer].address);
    if (c.verb != TRPI_MULTINODE_FAULT && c.verb != TRPI_MULTINODE_DISCONNECT) {
        (void)seat_release(ctx, self, c.target);
    }
    trp_tell_as(ctx, player, trp_sender(ctx), &trpi_multinode_call_type, &c, sizeof c);
}

static void
give_up(trp_ctx *ctx, conductor *self, const call *c)
{
    trpi_barrier_step step =
        trpi_barrier_give_up(&self->barrier, self->plan->roles, c->index, c->text);
    seat *s = &self->seats[c->index];
    if (!trp_ref_is_none(s->player)) {
        trp_unwatch(ctx, s->player);
    }
    seat_leave(ctx, self, c->index);
    barrier_follow(ctx, self, step);
    answer_send(ctx, trp_sender(ctx), TRP_OK, "");
}

static void
call_receive(trp_ctx *ctx, conductor *self, const call *c)
{
    switch (c->verb) {
    case TRPI_MULTINODE_HELLO:
        hello_receive(ctx, self, c);
        break;
    case TRPI_MULTINODE_PRESENT:
        present_receive(ctx, self, c);
        break;
    case TRPI_MULTINODE_ENTER:
        seat_waits(ctx, &self->seats[c->index], c);
        barrier_follow(ctx, self,
                       trpi_barrier_enter(&self->barrier, self->plan->roles, c->index, c->name,
                                          trp_now_ms(ctx) + c->number));
        break;
    case TRPI_MULTINODE_ADDRESS:
        address_receive(ctx, self, c);
        break;
    case TRPI_MULTINODE_NODES:
        nodes_receive(ctx, self);
        break;
    case TRPI_MULTINODE_BYE:
        (void)seat_release(ctx, self, c->index);
        answer_send(ctx, trp_sender(ctx), TRP_OK, "");
        break;
    case TRPI_MULTINODE_FAREWELL:
        seat_waits(ctx, &self->seats[c->index], c);
        farewell_look(ctx, self);
        break;
    case TRPI_MULTINODE_GIVE_UP:
        give_up(ctx, self, c);
        break;
    case TRPI_MULTINODE_TICK:
        barrier_follow(ctx, self,
                       trpi_barrier_tick(&self->barrier, self->plan->roles, trp_now_ms(ctx)));
        break;
    default:
        order_receive(ctx, self, c);
        break;
    }
}

static void
player_lost(trp_ctx *ctx, conductor *self, const trp_terminated *terminated)
{
    for (uint32_t i = 0; i < self->plan->roles_count; i++) {
        if (trp_ref_equal(self->seats[i].player, terminated->ref)) {
            seat_leave(ctx, self, i);
            barrier_follow(ctx, self, trpi_barrier_lose(&self->barrier, self->plan->roles, i));
        }
    }
}

static trp_err
conductor_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    conductor *self = state;
    if (trp_msg_is(msg, &trp_terminated_type)) {
        player_lost(ctx, self, trp_msg_payload(msg));
        return TRP_OK;
    }
    if (!trp_msg_is(msg, &trpi_multinode_call_type)) {
        return TRP_EUNHANDLED;
    }
    call c = *(const call *)trp_msg_payload(msg);
    c.name[sizeof c.name - 1] = c.text[sizeof c.text - 1] = '\0';
    if (c.index >= self->plan->roles_count || c.target >= self->plan->roles_count ||
        c.peer >= self->plan->roles_count) { /* conductor-C3 */
        answer_send(ctx, trp_sender(ctx), TRP_EINVAL,
                    "another program: it has more roles than the conductor's");
        return TRP_OK;
    }
    call_receive(ctx, self, &c);
    return TRP_OK;
}

static trp_err
conductor_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    (void)ctx;
    memcpy(&((conductor *)state)->plan, trp_msg_payload(args), sizeof(trpi_multinode_plan *));
    return TRP_OK;
}

const trp_behaviour trpi_conductor_behaviour = { .size = sizeof(trp_behaviour),
                                                 .name = "multinode-conductor",
                                                 .version = 1,
                                                 .state_bytes = sizeof(conductor),
                                                 .receive = conductor_receive,
                                                 .pre_start = conductor_start };

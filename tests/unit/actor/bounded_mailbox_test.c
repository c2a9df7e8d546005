/* bounded_mailbox_test.c - mailboxes: bounds, order, choice, and that no message is lost. */
#include "tests/unit/actor/dispatch.h"

static trp_err
add_box(const char *id, trp_mailbox_kind kind, uint32_t capacity, uint32_t timeout_ms)
{
    trp_mailbox_options options = TRP_MAILBOX_OPTIONS_INIT;

    options.kind = kind;
    options.capacity = capacity;
    options.push_timeout_ms = timeout_ms;
    return trp_mailbox_register(system_, id, &options);
}

static trp_ref
spawn_boxed(const trp_behaviour *behaviour, const char *mailbox)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;

    options.mailbox = mailbox;
    UNIT_EQUAL(trp_system_spawn(system_, behaviour, &options, &ref), TRP_OK);
    return ref;
}

static uint64_t
dead_of(trp_dead_reason reason)
{
    trp_system_stats stats = { .size = sizeof stats };

    trp_system_stats_get(system_, &stats);
    return stats.dead_letters[reason];
}

/* An actor that is held in its first message. */
static trp_ref
held(const char *mailbox)
{
    trp_ref ref = spawn_boxed(&noter, mailbox);

    tell(ref, &dispatched_block_type, 0, nobody);
    UNIT_WAIT(atomic_load(&gate_waiting) == 1, 5000);
    return ref;
}

/* ---- bounds ---------------------------------------------------------------------------------- */

/* MBOX-4, MBOX-1, A4J-35: at the capacity all are taken, one past it is a dead letter,
 * mailbox-full. */
static void
a_bounded_mailbox_holds_its_capacity_and_not_one_more(void)
{
    enum { CAPACITY = 5 };
    trp_ref ref;

    start(0);
    reset();
    UNIT_EQUAL(add_box("five", TRP_MAILBOX_KIND_BOUNDED, CAPACITY, TRP_OFF), TRP_OK);
    ref = held("five"); /* the one that is handled takes no place */
    for (uint64_t i = 1; i <= CAPACITY; i++) {
        tell(ref, &dispatched_work_type, i, nobody);
    }
    UNIT_EQUAL(dead_of(TRP_DEAD_MAILBOX_FULL), 0);
    tell(ref, &dispatched_work_type, 99, nobody);
    UNIT_EQUAL(dead_of(TRP_DEAD_MAILBOX_FULL), 1);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&handled) == CAPACITY, 5000);
    for (uint64_t i = 1; i <= CAPACITY; i++) {
        UNIT_EQUAL(seen[i], i);
    }
    tell(ref, &dispatched_work_type, 6, nobody); /* there is room again */
    UNIT_WAIT(atomic_load(&handled) == CAPACITY + 1, 5000);
    end();
}

static void *
open_gate(void *arg)
{
    (void)arg;
    for (int i = 0; i < 30; i++) {
        unit_pause();
    }
    note(77);
    atomic_store(&gate_open, 1);
    return NULL;
}

/* MBOX-4, MBOX-16: a thread that is no actor waits for room; when its time is over, it is dropped.
 * */
static void
a_thread_waits_for_room_up_to_the_push_timeout(void)
{
    pthread_t opener;
    uint64_t before;
    trp_ref ref;

    start(0);
    reset();
    UNIT_EQUAL(add_box("one", TRP_MAILBOX_KIND_BOUNDED, 1, 40), TRP_OK);
    UNIT_EQUAL(add_box("patient", TRP_MAILBOX_KIND_BOUNDED, 1, TRP_FOREVER), TRP_OK);
    ref = held("one");
    tell(ref, &dispatched_work_type, 1, nobody);
    before = unit_now_ms();
    tell(ref, &dispatched_work_type, 2, nobody);
    UNIT_TRUE(unit_now_ms() - before >= 39);
    UNIT_EQUAL(dead_of(TRP_DEAD_MAILBOX_FULL), 1);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&handled) == 1 && atomic_load(&gate_waiting) == 0, 5000);
    reset();
    ref = held("patient");
    tell(ref, &dispatched_work_type, 1, nobody);
    UNIT_REQUIRE(pthread_create(&opener, NULL, open_gate, NULL) == 0);
    tell(ref, &dispatched_work_type, 2, nobody); /* returns only when the gate was opened */
    UNIT_EQUAL(atomic_load(&gate_open), 1);
    pthread_join(opener, NULL);
    UNIT_WAIT(atomic_load(&handled) == 2, 5000);
    UNIT_EQUAL(dead_of(TRP_DEAD_MAILBOX_FULL), 1);
    end();
}

static _Atomic int floods;

static trp_err
flood_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    dispatched_work work = *(const dispatched_work *)trp_msg_payload(msg);
    trp_ref to = work.to;

    (void)state;
    atomic_fetch_add(&floods, 1);
    for (uint64_t i = 0; i < work.number; i++) {
        dispatched_work one = { i + 1, TRP_REF_NONE };

        trp_tell(ctx, to, &dispatched_work_type, &one, sizeof one);
    }
    return TRP_OK;
}
static const trp_behaviour flood = {
    .size = sizeof(trp_behaviour), .name = "flood", .version = 1, .receive = flood_receive
};

/* MBOX-4, MBOX-16: an actor in front of a full mailbox is not run, and its worker
 * is free; when there is room, what it told is let in, in its order, and it goes on. */
static void
an_actor_waits_for_room_without_its_worker(void)
{
    enum { TOLD_AT_ONCE = 50 };
    trp_ref full, teller, other;

    start(0);
    reset();
    atomic_store(&floods, 0);
    UNIT_EQUAL(add_box("three", TRP_MAILBOX_KIND_BOUNDED, 3, TRP_FOREVER), TRP_OK);
    full = held("three"); /* one of two workers is held, the other must stay free */
    teller = spawn(&flood, NULL);
    other = spawn(&noter, NULL);
    tell(teller, &dispatched_work_type, TOLD_AT_ONCE, full);
    tell(teller, &dispatched_work_type, 0, full);
    UNIT_WAIT(atomic_load(&floods) == 1, 5000);
    for (uint64_t i = 0; i < 5; i++) {
        tell(other, &dispatched_work_type, 1000, nobody);
        UNIT_WAIT(atomic_load(&handled) == i + 1, 5000);
    }
    UNIT_EQUAL(atomic_load(&floods), 1); /* its second message waits: it is not run */
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&handled) == TOLD_AT_ONCE + 5, 5000);
    UNIT_WAIT(atomic_load(&floods) == 2, 5000);
    UNIT_EQUAL(dead_sum(), 0);
    for (uint64_t i = 1; i <= TOLD_AT_ONCE; i++) {
        UNIT_EQUAL(seen[5 + i], i);
    }
    end();
}

/* The time of a waiting actor is over: its message is dropped, and it goes on. */
static void
an_actor_goes_on_when_its_time_is_over(void)
{
    trp_ref full, teller;

    start(0);
    reset();
    atomic_store(&floods, 0);
    UNIT_EQUAL(add_box("short", TRP_MAILBOX_KIND_BOUNDED, 2, 20), TRP_OK);
    full = held("short");
    teller = spawn(&flood, NULL);
    tell(teller, &dispatched_work_type, 10, full);
    tell(teller, &dispatched_work_type, 0, full);
    UNIT_WAIT(atomic_load(&floods) == 2, 5000);
    UNIT_EQUAL(dead_of(TRP_DEAD_MAILBOX_FULL), 8);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&handled) == 2, 5000);
    end();
}

/* The owner ends: messages that wait for room are dead letters, waiting senders go on. */
static void
who_waits_for_room_is_freed_when_the_owner_ends(void)
{
    trp_ref full, teller;

    start(0);
    reset();
    atomic_store(&floods, 0);
    UNIT_EQUAL(add_box("two", TRP_MAILBOX_KIND_BOUNDED, 2, TRP_FOREVER), TRP_OK);
    full = held("two");
    teller = spawn(&flood, NULL);
    tell(teller, &dispatched_work_type, 10, full);
    tell(teller, &dispatched_work_type, 0, full);
    UNIT_WAIT(atomic_load(&floods) == 1, 5000);
    trp_system_stop_actor(system_, full);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&floods) == 2, 5000);
    UNIT_WAIT(dead_sum() == 10, 5000);
    UNIT_EQUAL(atomic_load(&handled), 0);
    end();
}

/* ---- notify ---------------------------------------------------------------------------------- */

static _Atomic int refused_count, ready_count;
static _Atomic uint64_t tried;

static trp_err
trier_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    trp_ref *to = state;
    dispatched_work work = { 0, TRP_REF_NONE };

    if (trp_msg_is(msg, &trp_mailbox_ready_type)) {
        const trp_mailbox_ready *ready = trp_msg_payload(msg);

        UNIT_TRUE(trp_ref_equal(ready->ref, *to));
        atomic_fetch_add(&ready_count, 1);
    } else {
        *to = ((const dispatched_work *)trp_msg_payload(msg))->to;
    }
    while (atomic_load(&tried) < 100) {
        work.number = atomic_load(&tried) + 1;
        if (trp_try_tell(ctx, *to, &dispatched_work_type, &work, sizeof(work)) != TRP_OK) {
            if (atomic_load(&refused_count) == 0) { /* the test opens the gate after this one */
                UNIT_EQUAL(trp_try_tell(ctx, *to, &dispatched_work_type, &work, sizeof(work)),
                           TRP_EAGAIN); /* twice refused is told once */
            }
            atomic_fetch_add(&refused_count, 1);
            break;
        }
        atomic_fetch_add(&tried, 1);
    }
    return TRP_OK;
}
static const trp_behaviour trier = { .size = sizeof(trp_behaviour),
                                     .name = "trier",
                                     .version = 1,
                                     .receive = trier_receive,
                                     .state_bytes = sizeof(trp_ref) };

/* Back-pressure: overflow = notify refuses, and tells once when to go on; nothing is lost. */
static void
a_full_mailbox_refuses_and_tells_when_to_go_on(void)
{
    trp_mailbox_options options = TRP_MAILBOX_OPTIONS_INIT;
    dispatched_work work = { 7, TRP_REF_NONE };
    trp_ref full, teller;

    start(0);
    reset();
    atomic_store(&refused_count, 0);
    atomic_store(&ready_count, 0);
    atomic_store(&tried, 0);
    options.kind = TRP_MAILBOX_KIND_BOUNDED;
    options.capacity = 4;
    options.overflow = TRP_MAILBOX_NOTIFY;
    UNIT_EQUAL(trp_mailbox_register(system_, "told", &options), TRP_OK);
    full = held("told");
    teller = spawn(&trier, NULL);
    tell(teller, &dispatched_work_type, 0, full);
    UNIT_WAIT(atomic_load(&refused_count) == 1, 5000);
    UNIT_EQUAL(atomic_load(&tried), 4);
    UNIT_EQUAL(trp_system_try_tell(system_, full, &dispatched_work_type, &work, sizeof(work)),
               TRP_EAGAIN);
    UNIT_EQUAL(atomic_load(&ready_count), 0);
    tell(full, &dispatched_work_type, 9, nobody); /* a plain tell is dropped at once */
    UNIT_EQUAL(dead_of(TRP_DEAD_MAILBOX_FULL), 1);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&handled) == 100, 5000);
    UNIT_TRUE(atomic_load(&ready_count) >= 1);
    UNIT_WAIT(atomic_load(&ready_count) == atomic_load(&refused_count), 5000); /* once for each */
    UNIT_EQUAL(dead_sum(), 1);
    end();
}

/* ---- order ----------------------------------------------------------------------------------- */

static int32_t
by_number(void *arg, const trp_msg *msg)
{
    UNIT_TRUE(arg == &handled);
    return trp_msg_is(msg, &trp_poison_pill_type)
               ? 1000
               : (int32_t)((const dispatched_work *)trp_msg_payload(msg))->number / 100;
}

static trp_err
add_priority(const char *id, trp_mailbox_kind kind, uint32_t capacity)
{
    trp_mailbox_options options = TRP_MAILBOX_OPTIONS_INIT;

    options.kind = kind;
    options.capacity = capacity;
    options.push_timeout_ms = TRP_OFF;
    options.priority = by_number;
    options.arg = &handled;
    return trp_mailbox_register(system_, id, &options);
}

/* MBOX-5: low numbers first, a poison pill where the program puts it; equal ones in their order. */
static void
a_priority_mailbox_gives_the_lowest_number_first(void)
{
    static const uint64_t told[] = { 201, 202, 1, 101, 102, 103, 2 };
    static const uint64_t want[] = { 1, 2, 101, 102, 103, 201, 202 };

    for (int bounded = 0; bounded <= 1; bounded++) {
        trp_ref ref;

        start(0);
        reset();
        UNIT_EQUAL(add_priority(
                       "sorted",
                       bounded ? TRP_MAILBOX_KIND_BOUNDED_PRIORITY : TRP_MAILBOX_KIND_PRIORITY, 7),
                   TRP_OK);
        ref = held("sorted");
        trp_system_tell(system_, ref, &trp_poison_pill_type, NULL, 0);
        for (int i = 0; i < 7 - bounded; i++) {
            tell(ref, &dispatched_work_type, told[i], nobody);
        }
        if (bounded) { /* the pill took a place, and is never refused itself */
            tell(ref, &dispatched_work_type, told[6], nobody);
            UNIT_EQUAL(dead_of(TRP_DEAD_MAILBOX_FULL), 1);
        }
        atomic_store(&gate_open, 1);
        UNIT_WAIT(atomic_load(&seen_count) == 9u - (unsigned)bounded, 5000); /* gate, work, stop */
        for (int i = 0, k = 0; i < 7; i++) {
            if (bounded && want[i] == told[6]) {
                continue;
            }
            UNIT_EQUAL(seen[1 + k], want[i]);
            k++;
        }
        UNIT_EQUAL(seen[8 - bounded], UINT64_MAX); /* post_stop: all was handled before the pill */
        end();
    }
}

/* A thousand random numbers come out sorted, and stable. */
static void
a_priority_mailbox_sorts_many(void)
{
    enum { MANY = 1000 };
    uint64_t seed = 12345, last = 0;
    trp_ref ref;

    start(0);
    reset();
    UNIT_EQUAL(add_priority("sorted", TRP_MAILBOX_KIND_PRIORITY, 0), TRP_OK);
    ref = held("sorted");
    for (uint64_t i = 0; i < MANY; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        tell(ref, &dispatched_work_type, (seed >> 40) % 10 * 100 * 1000 + i, nobody);
    }
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&handled) == MANY, 5000);
    for (uint64_t i = 1; i <= MANY; i++) {
        UNIT_TRUE(seen[i] / 100 >= last / 100);
        last = seen[i];
    }
    end();
}

#define URGENT_FIELDS(F, S) F(S, u64, number) F(S, ref, to)
#define URGENT_MESSAGES(M, P) M(P, order, URGENT_FIELDS)
TRP_PROTOCOL(urgent, URGENT_MESSAGES)

/* Control-aware: types with TRP_TYPE_CONTROL first, both classes in their order. */
static void
a_control_aware_mailbox_gives_control_messages_first(void)
{
    trp_ref ref;

    start(0);
    reset();
    urgent_order_type.flags |= TRP_TYPE_CONTROL;
    UNIT_EQUAL(trp_protocol_register(&urgent_protocol), TRP_OK);
    ref = held("control-aware");
    for (uint64_t i = 1; i <= 3; i++) {
        tell(ref, &dispatched_work_type, i, nobody);
        tell(ref, &urgent_order_type, 10 + i, nobody);
    }
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&seen_count) == 7, 5000);
    for (uint64_t i = 1; i <= 3; i++) {
        UNIT_EQUAL(seen[i], 10 + i);
        UNIT_EQUAL(seen[3 + i], i);
    }
    end();
}

/* ---- the program's own ----------------------------------------------------------------------- */

typedef struct stack_box { /* last in, first out; refuses number 13 */
    trp_msg *msgs[64];
    uint32_t count;
} stack_box;
static _Atomic int boxes_alive, cleaned;

static trp_err
stack_create(void *arg, trp_system *system, trp_ref owner, void **ret_mailbox)
{
    (void)system;
    (void)owner;
    if (arg == NULL) {
        return TRP_ELIMIT;
    }
    *ret_mailbox = calloc(1, sizeof(stack_box));
    atomic_fetch_add(&boxes_alive, 1);
    return TRP_OK;
}
static trp_err
stack_enqueue(void *mailbox, trp_ref receiver, trp_msg *msg)
{
    stack_box *box = mailbox;

    UNIT_FALSE(trp_ref_is_none(receiver));
    if (box->count == 64) {
        return TRP_ELIMIT;
    }
    box->msgs[box->count++] = msg;
    return TRP_OK;
}
static trp_msg *
stack_dequeue(void *mailbox)
{
    stack_box *box = mailbox;

    return box->count > 0 ? box->msgs[--box->count] : NULL;
}
static uint32_t
stack_count(void *mailbox)
{
    return ((stack_box *)mailbox)->count;
}
static int
stack_has(void *mailbox)
{
    return ((stack_box *)mailbox)->count > 0;
}
static void
stack_clean_up(void *mailbox, void (*dead)(void *arg, trp_msg *msg), void *arg)
{
    trp_msg *msg;

    while ((msg = stack_dequeue(mailbox)) != NULL) {
        dead(arg, msg);
        atomic_fetch_add(&cleaned, 1);
    }
}
static void
stack_destroy(void *mailbox)
{
    free(mailbox);
    atomic_fetch_sub(&boxes_alive, 1);
}
static trp_err
stack_admit(void *mailbox, trp_ref receiver, const trp_msg *msg)
{
    (void)mailbox;
    (void)receiver;
    return ((const dispatched_work *)trp_msg_payload(msg))->number == 13 ? TRP_EAGAIN : TRP_OK;
}
static const trp_mailbox_ops stack_ops = { sizeof(trp_mailbox_ops), stack_create,  stack_enqueue,
                                           stack_dequeue,           stack_count,   stack_has,
                                           stack_clean_up,          stack_destroy, stack_admit };

/* MBOX-12: the five operations and their life. */
static void
a_program_brings_its_own_mailbox(void)
{
    trp_mailbox_options options = TRP_MAILBOX_OPTIONS_INIT;
    trp_spawn_options spawn_options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;

    start(0);
    reset();
    atomic_store(&cleaned, 0);
    options.kind = TRP_MAILBOX_KIND_CUSTOM;
    options.ops = &stack_ops;
    UNIT_EQUAL(trp_mailbox_register(system_, "fails", &options), TRP_OK);
    options.arg = &options;
    UNIT_EQUAL(trp_mailbox_register(system_, "stack", &options), TRP_OK);
    spawn_options.mailbox = "fails";
    UNIT_EQUAL(trp_system_spawn(system_, &noter, &spawn_options, &ref), TRP_ELIMIT);
    ref = held("stack");
    UNIT_EQUAL(atomic_load(&boxes_alive), 1);
    for (uint64_t i = 1; i <= 4; i++) {
        tell(ref, &dispatched_work_type, i, nobody);
    }
    tell(ref, &dispatched_work_type, 13, nobody);
    UNIT_EQUAL(dead_of(TRP_DEAD_MAILBOX_FULL), 1);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&handled) == 4, 5000);
    for (uint64_t i = 1; i <= 4; i++) {
        UNIT_EQUAL(seen[i], 5 - i);
    }
    /* one more than it holds, and another one: not for want of memory */
    reset();
    tell(ref, &dispatched_block_type, 0, nobody);
    UNIT_WAIT(atomic_load(&gate_waiting) == 1, 10000);
    for (uint64_t i = 0; i < 66; i++) {
        tell(ref, &dispatched_work_type, 1, nobody);
    }
    atomic_store(&gate_open, 1);
    UNIT_WAIT(atomic_load(&handled) == 64, 10000);
    UNIT_EQUAL(dead_of(TRP_DEAD_MAILBOX_FULL), 3);
    UNIT_EQUAL(dead_of(TRP_DEAD_NO_MEMORY), 0);
    reset();
    tell(ref, &dispatched_block_type, 0, nobody);
    UNIT_WAIT(atomic_load(&gate_waiting) == 1, 5000);
    for (uint64_t i = 1; i <= 3; i++) {
        tell(ref, &dispatched_work_type, i, nobody);
    }
    trp_system_stop_actor(system_, ref);
    atomic_store(&gate_open, 1);
    UNIT_WAIT(dead_of(TRP_DEAD_STOPPED) == 3, 5000);
    UNIT_WAIT(atomic_load(&cleaned) == 3, 5000);
    end();
    UNIT_EQUAL(atomic_load(&boxes_alive), 0);
}

/* ---- which one ------------------------------------------------------------------------------- */

static trp_behaviour needy = {
    .size = sizeof(trp_behaviour), .name = "needy", .version = 1, .receive = receive
};

/* MBOX-10 (conflict C2), MBOX-8, MBOX-9, MBOX-1: spawn options, dispatcher, behaviour, dispatcher's
 * requirement, default; what is required is checked. Each mailbox is known by its capacity. */
static void
the_mailbox_is_chosen_in_a_fixed_order_and_checked(void)
{
    static const char *const ids[] = { "m1", "m2", "m3", "m4", "m5" };
    trp_dispatcher_options options = TRP_DISPATCHER_OPTIONS_INIT;
    trp_spawn_options spawn_options = TRP_SPAWN_OPTIONS_INIT;
    trp_mailbox_view view;
    trp_ref ref;

    start(0);
    reset();
    for (uint32_t i = 0; i < 5; i++) {
        UNIT_EQUAL(add_box(ids[i], TRP_MAILBOX_KIND_BOUNDED, i + 1, TRP_OFF), TRP_OK);
    }
    UNIT_EQUAL(trp_mailbox_require(system_, TRP_MAILBOX_BOUNDED, "m3"), TRP_OK);
    UNIT_EQUAL(trp_mailbox_require(system_, TRP_MAILBOX_BOUNDED | TRP_MAILBOX_DEQUE, "m3"),
               TRP_EINVAL);
    UNIT_EQUAL(trp_mailbox_require(system_, TRP_MAILBOX_BOUNDED, "unbounded"), TRP_ENOENT);
    UNIT_EQUAL(trp_mailbox_require(system_, TRP_MAILBOX_COUNTED, "m4"), TRP_OK);
    options.kind = TRP_DISPATCHER_POOL;
    options.mailbox = "m2";
    UNIT_EQUAL(trp_dispatcher_register(system_, "with", &options), TRP_OK);
    options.mailbox = "nobody";
    UNIT_EQUAL(trp_dispatcher_register(system_, "wrong", &options), TRP_ENOENT);
    options.mailbox = NULL;
    options.mailbox_requirement = TRP_MAILBOX_COUNTED;
    UNIT_EQUAL(trp_dispatcher_register(system_, "requires", &options), TRP_OK);

    for (int rule = 2; rule <= 6; rule++) {
        uint64_t fits = rule == 2 ? 1 : rule == 3 ? 2 : rule == 4 ? 3 : rule == 5 ? 4 : 20;

        reset();
        needy.mailbox_requirement = rule <= 4 ? TRP_MAILBOX_BOUNDED : 0;
        spawn_options.mailbox = rule == 2 ? "m1" : NULL;
        spawn_options.dispatcher = rule <= 3 ? "with" : rule <= 5 ? "requires" : NULL;
        UNIT_EQUAL(trp_system_spawn(system_, &needy, &spawn_options, &ref), TRP_OK);
        tell(ref, &dispatched_block_type, 0, nobody);
        UNIT_WAIT(atomic_load(&gate_waiting) == 1, 5000);
        for (int i = 0; i < 20; i++) {
            tell(ref, &dispatched_work_type, 1, nobody);
        }
        UNIT_EQUAL(trp_mailbox_look(system_, ref, &view), TRP_OK);
        UNIT_EQUAL(view.exact, rule < 6);
        if (rule < 6) {
            UNIT_EQUAL(view.messages, fits);
        }
        atomic_store(&gate_open, 1);
        UNIT_WAIT(atomic_load(&handled) == fits && atomic_load(&gate_waiting) == 0, 5000);
    }
    /* checked: of the behaviour, of the dispatcher, and an unknown id is an error (MSC-05) */
    needy.mailbox_requirement = TRP_MAILBOX_BOUNDED;
    spawn_options.dispatcher = NULL;
    spawn_options.mailbox = "unbounded";
    UNIT_EQUAL(trp_system_spawn(system_, &needy, &spawn_options, &ref), TRP_EINVAL);
    needy.mailbox_requirement = 0;
    spawn_options.dispatcher = "requires";
    UNIT_EQUAL(trp_system_spawn(system_, &needy, &spawn_options, &ref), TRP_EINVAL);
    needy.mailbox_requirement = TRP_MAILBOX_UNBOUNDED; /* against what serves the dispatcher's */
    spawn_options.mailbox = "m4";
    UNIT_EQUAL(trp_system_spawn(system_, &needy, &spawn_options, &ref), TRP_EINVAL);
    spawn_options.mailbox = "nowhere";
    UNIT_EQUAL(trp_system_spawn(system_, &needy, &spawn_options, &ref), TRP_ENOENT);
    /* the default is replaced, once */
    UNIT_EQUAL(add_box("default-mailbox", TRP_MAILBOX_KIND_COUNTED, 0, 0), TRP_OK);
    UNIT_EQUAL(add_box("default-mailbox", TRP_MAILBOX_KIND_COUNTED, 0, 0), TRP_EEXIST);
    UNIT_EQUAL(trp_mailbox_look(system_, spawn(&noter, NULL), &view), TRP_OK);
    UNIT_EQUAL(view.exact, 1);
    end();
}

static void
mailboxes_are_registered_and_found_by_id(void)
{
    trp_mailbox_info found = { .size = sizeof found };
    trp_mailbox_options options = TRP_MAILBOX_OPTIONS_INIT;
    char id[16], long_id[TRP_MAILBOX_ID_BYTES_MAX + 2];
    trp_err err = TRP_OK;
    int made = 0;

    start(0);
    UNIT_EQUAL(trp_mailbox_find(system_, "bounded", &found), TRP_OK);
    UNIT_EQUAL(found.capacity, TRP_MAILBOX_CAPACITY_DEFAULT);
    UNIT_EQUAL(found.push_timeout_ms, TRP_MAILBOX_PUSH_TIMEOUT_DEFAULT_MS);
    UNIT_TRUE((found.capabilities & TRP_MAILBOX_BOUNDED) != 0);
    UNIT_EQUAL(trp_mailbox_find(system_, "single-consumer", &found), TRP_OK);
    UNIT_EQUAL(found.capacity, 0);
    UNIT_EQUAL(trp_mailbox_find(system_, "nowhere", &found), TRP_ENOENT);
    found.kind = 77;
    found.size = sizeof found.size; /* no release had so little */
    UNIT_EQUAL(trp_mailbox_find(system_, "bounded", &found), TRP_EINVAL);
    UNIT_EQUAL(found.kind, 77);
    found.size = sizeof found;
    UNIT_EQUAL(trp_mailbox_register(system_, "none", &options), TRP_EINVAL); /* no kind */
    options.kind = TRP_MAILBOX_KIND_PRIORITY;
    UNIT_EQUAL(trp_mailbox_register(system_, "none", &options), TRP_EINVAL); /* no generator */
    UNIT_EQUAL(add_box("big", TRP_MAILBOX_KIND_BOUNDED, TRP_MAILBOX_CAPACITY_MAX, 0), TRP_OK);
    UNIT_EQUAL(add_box("more", TRP_MAILBOX_KIND_BOUNDED, TRP_MAILBOX_CAPACITY_MAX + 1, 0),
               TRP_EINVAL);
    UNIT_EQUAL(add_box("bounded", TRP_MAILBOX_KIND_BOUNDED, 1, 0), TRP_EEXIST);
    memset(long_id, 'm', sizeof long_id);
    long_id[sizeof long_id - 1] = '\0';
    UNIT_EQUAL(add_box(long_id, TRP_MAILBOX_KIND_BOUNDED, 1, 0), TRP_EINVAL);
    long_id[sizeof long_id - 2] = '\0'; /* of TRP_MAILBOX_ID_BYTES_MAX */
    UNIT_EQUAL(add_box(long_id, TRP_MAILBOX_KIND_BOUNDED, 1, 0), TRP_OK);
    UNIT_EQUAL(trp_mailbox_find(system_, long_id, &found), TRP_OK);
    while (made <= TRP_MAILBOXES_MAX && err == TRP_OK) {
        snprintf(id, sizeof id, "m%d", made++);
        err = add_box(id, TRP_MAILBOX_KIND_BOUNDED, 1, 0);
    }
    UNIT_EQUAL(err, TRP_ELIMIT);
    UNIT_EQUAL(made - 1 + 9 + 2, TRP_MAILBOXES_MAX); /* nine built in, "big" and the long one */
    end();
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static _Atomic uint32_t size_seen;

static trp_err
size_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state;
    if (trp_msg_is(msg, &dispatched_block_type)) {
        atomic_fetch_add(&gate_waiting, 1);
        while (!atomic_load(&gate_open)) {
            unit_pause();
        }
        atomic_store(&size_seen, trp_mailbox_size(ctx));
        atomic_fetch_sub(&gate_waiting, 1);
    }
    atomic_fetch_add(&handled, 1);
    return TRP_OK;
}
static const trp_behaviour sizer = {
    .size = sizeof(trp_behaviour), .name = "sizer", .version = 1, .receive = size_receive
};

/* MBOX-14, ROUTE-9, MSG-1, MBOX-2: the owner counts its queue; from outside it is a hint, or exact
 * where counted. */
static void
the_messages_of_a_mailbox_can_be_counted(void)
{
    trp_mailbox_view view;

    start(0);
    for (int counted = 0; counted <= 1; counted++) {
        trp_ref ref;

        reset();
        ref = spawn_boxed(&sizer, counted ? "counted" : NULL);
        UNIT_WAIT(trp_mailbox_look(system_, ref, &view) == TRP_OK && view.idle, 5000);
        UNIT_EQUAL(view.messages, 0);
        UNIT_EQUAL(view.exact, counted);
        tell(ref, &dispatched_block_type, 0, nobody);
        UNIT_WAIT(atomic_load(&gate_waiting) == 1, 5000);
        UNIT_EQUAL(trp_mailbox_look(system_, ref, &view), TRP_OK);
        UNIT_EQUAL(view.messages, 0); /* runs, with nothing behind */
        UNIT_EQUAL(view.idle, 0);
        for (uint64_t i = 0; i < 17; i++) {
            tell(ref, &dispatched_work_type, i, nobody);
        }
        UNIT_EQUAL(trp_mailbox_look(system_, ref, &view), TRP_OK);
        UNIT_EQUAL(view.messages, counted ? 17 : 1);
        atomic_store(&gate_open, 1);
        UNIT_WAIT(atomic_load(&handled) == 18, 5000);
        UNIT_EQUAL(atomic_load(&size_seen), 17);
        UNIT_EQUAL(trp_system_graceful_stop(system_, ref, 60000), TRP_OK);
        UNIT_EQUAL(trp_mailbox_look(system_, ref, &view), TRP_ENOENT);
    }
    end();
}

/* ---- conservation ---------------------------------------------------------------------------- */

/* MBOX-2, -3, -4, -5, -6, -12: several threads, actors that tell one another and end meanwhile: all
 * is handled, or a dead letter with its reason. The small bounds are met all the time. */
static void
no_kind_of_mailbox_loses_a_message(void)
{
    static const char *const kinds[] = { "unbounded", "counted",       "small", "hurried",
                                         "sorted",    "control-aware", "told" };

    for (size_t i = 0; i < 2 * sizeof kinds / sizeof kinds[0]; i++) {
        trp_mailbox_options options = TRP_MAILBOX_OPTIONS_INIT;
        trp_dispatcher_options pool = TRP_DISPATCHER_OPTIONS_INIT;
        const char *kind = kinds[i / 2];

        start(i % 3 == 0 ? 3 : 0);
        UNIT_EQUAL(add_box("small", TRP_MAILBOX_KIND_BOUNDED, 3, 5), TRP_OK);
        UNIT_EQUAL(add_box("hurried", TRP_MAILBOX_KIND_BOUNDED, 8, TRP_OFF), TRP_OK);
        UNIT_EQUAL(add_priority("sorted", TRP_MAILBOX_KIND_BOUNDED_PRIORITY, 50), TRP_OK);
        options.kind = TRP_MAILBOX_KIND_BOUNDED;
        options.capacity = 10;
        options.overflow = TRP_MAILBOX_NOTIFY;
        UNIT_EQUAL(trp_mailbox_register(system_, "told", &options), TRP_OK);
        pool.kind = TRP_DISPATCHER_POOL;
        pool.threads_min = pool.threads_max = 3;
        pool.mailbox = kind;
        UNIT_EQUAL(trp_dispatcher_register(system_, "boxed", &pool), TRP_OK);
        conserve_within("boxed", i % 2 == 1, true);
        end();
    }
}

UNIT_BEGIN("bounded_mailbox")
UNIT(a_bounded_mailbox_holds_its_capacity_and_not_one_more)
UNIT(a_thread_waits_for_room_up_to_the_push_timeout)
UNIT(an_actor_waits_for_room_without_its_worker)
UNIT(an_actor_goes_on_when_its_time_is_over)
UNIT(who_waits_for_room_is_freed_when_the_owner_ends)
UNIT(a_full_mailbox_refuses_and_tells_when_to_go_on)
UNIT(a_priority_mailbox_gives_the_lowest_number_first)
UNIT(a_priority_mailbox_sorts_many)
UNIT(a_control_aware_mailbox_gives_control_messages_first)
UNIT(a_program_brings_its_own_mailbox)
UNIT(the_mailbox_is_chosen_in_a_fixed_order_and_checked)
UNIT(mailboxes_are_registered_and_found_by_id)
UNIT(the_messages_of_a_mailbox_can_be_counted)
UNIT(no_kind_of_mailbox_loses_a_message)
UNIT_END

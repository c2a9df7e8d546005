/* buncher.c - a state machine: what comes in a burst is passed on together, when nothing has come
 * for a while or at a flush. As a shared object, `troupe fsm dot ./buncher.so buncher` draws it. */
#include <stdio.h>
#include <troupe/troupe.h>

enum { IDLE, ACTIVE };
enum { BUNCH_MAX = 16, BUNCH_PAUSE_MS = 100 };
#define BUNCH_TARGET(F, S) F(S, ref, target)
#define BUNCH_ITEM(F, S) F(S, i64, item)
#define BUNCH_MESSAGES(M, P)                                                                       \
    M(P, set_target, BUNCH_TARGET) M(P, queue, BUNCH_ITEM) M(P, flush, TRP_NO_FIELDS)
TRP_PROTOCOL(bunch, BUNCH_MESSAGES)

struct bunch { /* replaced by each event as a whole: the hook sees it before and after */
    trp_ref target;
    int64_t count, items[BUNCH_MAX];
};
struct buncher {
    trp_fsm fsm;
};

static trp_err
on_idle(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const bunch_set_target *order = bunch_set_target_as(msg);
    (void)ctx;
    if (order == NULL) {
        return TRP_EUNHANDLED;
    }
    ((struct bunch *)trp_fsm_using(state))->target = order->target;
    return trp_fsm_stay(state);
}

static trp_err
on_active(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    if (bunch_flush_as(msg) == NULL && !trp_msg_is(msg, &trp_fsm_state_timeout_type)) {
        return TRP_EUNHANDLED;
    }
    ((struct bunch *)trp_fsm_using(state))->count = 0;
    return trp_fsm_goto(state, IDLE);
}

static trp_err
on_both(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct bunch *held = trp_fsm_using(state);
    (void)ctx;
    if (bunch_queue_as(msg) == NULL || trp_ref_is_none(held->target) || held->count == BUNCH_MAX) {
        return TRP_EUNHANDLED; /* nothing of the copy is kept */
    }
    held->items[held->count++] = bunch_queue_as(msg)->item;
    return trp_fsm_goto(state, ACTIVE);
}

static void
on_transition(trp_ctx *ctx, void *state, uint32_t from, uint32_t to)
{
    const struct bunch *held = trp_fsm_data(state);
    if (from == ACTIVE && to == IDLE) {
        trp_tell(ctx, held->target, &trp_bytes_type, held->items, (size_t)held->count * 8);
    }
}

static const trp_fsm_state buncher_states[] = { TRP_FSM_STATE(IDLE, on_idle, 0),
                                        TRP_FSM_STATE(ACTIVE, on_active, BUNCH_PAUSE_MS) };
static const trp_fsm_edge buncher_edges[] = { TRP_FSM_EDGE(IDLE, ACTIVE, "queue"),
                                      TRP_FSM_EDGE(ACTIVE, IDLE, "flush, or a pause") };
static const trp_fsm_hook buncher_hooks[] = { on_transition, NULL };
static const trp_fsm_definition buncher_definition = {
    .size = sizeof buncher_definition, .name = "buncher", .states = buncher_states,
    .states_count = 2, .edges = buncher_edges, .edges_count = 2, .first = IDLE,
    .data_bytes = sizeof(struct bunch), .unhandled = on_both, .hooks = buncher_hooks
};
TRP_FSM_BEHAVIOUR(buncher, "buncher", struct buncher, &buncher_definition)
TRP_FSM_EXPORT(buncher, &buncher_definition)

static trp_err
printer_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const int64_t *items = trp_msg_payload(msg);
    int *batches = state;
    printf("batch:");
    for (size_t i = 0; i < trp_msg_bytes(msg) / 8; i++) {
        printf(" %d", (int)items[i]);
    }
    printf("\n");
    if (++*batches == 3) {
        trp_system_shutdown(trp_ctx_system(ctx));
    }
    return TRP_OK;
}
static const trp_behaviour printer = TRP_BEHAVIOUR_INIT("printer", int, printer_receive);

int
main(void)
{
    trp_system *system;
    trp_ref ref, target;
    if (trp_protocol_register(&bunch_protocol) != TRP_OK ||
        trp_system_new("buncher", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &printer, NULL, &target) != TRP_OK ||
        trp_system_spawn(system, &buncher, NULL, &ref) != TRP_OK) {
        return 1;
    }
    trp_system_tell(system, ref, &bunch_set_target_type, &(bunch_set_target){ target }, 0);
    for (int64_t item = 1; item <= 6; item++) {
        trp_system_tell(system, ref, &bunch_queue_type, &(bunch_queue){ item }, 0);
        if (item % 3 == 2) {
            trp_system_tell(system, ref, &bunch_flush_type, &(bunch_flush){ 0 }, 0);
        }
    }
    trp_err err = trp_system_await(system, 20000); /* the last one comes by itself */
    trp_system_free(system);
    return err == TRP_OK ? 0 : 1;
}

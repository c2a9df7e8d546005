/* persistent_trace_test.c - traces through persistent actors: commands that wait, and callbacks of
 * what is stored. */
#include "tests/unit/actor/hops.h"
#include "tests/unit/persistence/book.h"

#define LEDGER_ENTRY(F, S) F(S, u64, number)
#define LEDGER_MESSAGES(M, P) M(P, add, LEDGER_ENTRY) M(P, added, LEDGER_ENTRY)
TRP_PROTOCOL(ledger, LEDGER_MESSAGES)
static const trp_protocol *const ledger_protocols[] = { &ledger_protocol, NULL };

static trp_ref reader;

typedef struct ledger {
    trp_persistent_state persistent; /* the first member */
    uint64_t sum;
} ledger;

static trp_err
ledger_stored(trp_ctx *ctx, void *state, const trp_msg *event, void *arg)
{
    (void)state, (void)event, (void)arg;
    trp_tell_text(ctx, reader, "stored");
    return TRP_OK;
}

static trp_err
ledger_command(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    ledger_added event = { ledger_add_as(msg)->number };

    (void)state;
    return trp_persist(ctx, &ledger_added_type, &event, 0, ledger_stored, NULL);
}

static trp_err
ledger_event(trp_ctx *ctx, void *state, const trp_msg *event)
{
    (void)ctx;
    ((ledger *)state)->sum += ledger_added_as(event)->number;
    return TRP_OK;
}

static trp_err
reader_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx, (void)state, (void)msg;
    return TRP_OK;
}
static const trp_behaviour reader_behaviour = {
    .size = sizeof(trp_behaviour), .name = "reader", .version = 1, .receive = reader_receive
};

/* HOW-09: three commands come while the actor recovers, and the second and third wait for the event
 * of the one before; another one is in no trace. */
static void
what_a_callback_tells_when_its_event_is_stored_is_below_the_command(void)
{
    trp_persistent what = TRP_PERSISTENT_INIT("ledger", ledger, ledger_command, ledger_event);
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref = TRP_REF_NONE;
    static hops h;
    uint32_t stored = 0;
    char name[64];
    book b;

    book_open(&b);
    what.events = ledger_protocols;
    UNIT_EQUAL(trp_protocol_register(&ledger_protocol), TRP_OK);
    options.name = "ledger";
    UNIT_REQUIRE(trp_system_spawn(b.system, &what.behaviour, &options, &ref) == TRP_OK);
    options.name = "reader";
    UNIT_REQUIRE(trp_system_spawn(b.system, &reader_behaviour, &options, &reader) == TRP_OK);
    for (uint64_t i = 0; i < 3; i++) {
        ledger_add add = { i };

        trp_system_tell_traced(b.system, ref, (trp_ref)TRP_REF_NONE, &outside, &ledger_add_type,
                               &add, sizeof add);
    }
    trp_system_tell(b.system, ref, &ledger_add_type, &(ledger_add){ 7 }, sizeof(ledger_add));
    book_run(&b, 0);
    hops_take(b.system, &h);
    for (uint32_t i = 0; i < h.count; i++) {
        UNIT_EQUAL(h.all[i].trace.id_low, outside.id_low);
        if (trp_ref_equal(h.all[i].actor, reader)) {
            UNIT_TEXT(parent_of(&h, h.all[i].parent, name, sizeof name), "ledger");
            for (uint32_t k = 0; k < i; k++) { /* each below its own command */
                UNIT_TRUE(!trp_ref_equal(h.all[k].actor, reader) ||
                          h.all[k].parent != h.all[i].parent);
            }
            stored++;
        }
    }
    UNIT_EQUAL(stored, 3);
    book_close(&b);
}

UNIT_BEGIN("persistent_trace")
UNIT(what_a_callback_tells_when_its_event_is_stored_is_below_the_command)
UNIT_END

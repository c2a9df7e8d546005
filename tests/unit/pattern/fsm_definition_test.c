/* fsm_definition_test.c - wrong tables are refused by the name of the state; the drawing. */
#include "base/alloc.h"
#include "pattern/fsm.h"
#include "tests/unit/pattern/door.h"

static trp_err
take(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return TRP_OK;
}

static const trp_fsm_state states[] = { TRP_FSM_STATE(CLOSED, take, 0),
                                        TRP_FSM_STATE(OPEN, take, 1000),
                                        TRP_FSM_STATE(LOCKED, NULL, 0) };
static const trp_fsm_edge edges[] = { TRP_FSM_EDGE(CLOSED, OPEN, "push \"hard\""),
                                      TRP_FSM_EDGE(OPEN, CLOSED, NULL),
                                      TRP_FSM_EDGE(OPEN, TRP_FSM_END, "break") };

static trp_fsm_definition
sound(void)
{
    trp_fsm_definition d = TRP_FSM_DEFINITION_INIT("door", states, CLOSED);
    d.edges = edges;
    d.edges_count = 3;
    return d;
}

static void
refused(const trp_fsm_definition *d, const char *expected)
{
    char why[TRPI_FSM_WHY_BYTES] = "";
    UNIT_FALSE(trpi_fsm_check(d, why));
    UNIT_TEXT(why, expected);
}

/* FSM-8 */
static void
a_wrong_table_is_refused_by_the_name_of_the_state(void)
{
    static const trp_fsm_edge to_nowhere[] = { TRP_FSM_EDGE(OPEN, NOWHERE, NULL) };
    static const trp_fsm_edge from_nowhere[] = { TRP_FSM_EDGE(NOWHERE, OPEN, NULL) };
    static const trp_fsm_state unordered[] = { TRP_FSM_STATE(OPEN, take, 0),
                                               TRP_FSM_STATE(CLOSED, take, 0) };
    static const trp_fsm_state nameless[] = { { NULL, 0, 0, take } };
    char why[TRPI_FSM_WHY_BYTES];
    trp_fsm_definition d = sound();
    UNIT_TRUE(trpi_fsm_check(&d, why));
    d.edges = to_nowhere;
    d.edges_count = 1;
    refused(&d, "state NOWHERE (3) of the edge from OPEN to NOWHERE is not declared");
    d.edges = from_nowhere;
    refused(&d, "state NOWHERE (3) of the edge from NOWHERE to OPEN is not declared");
    d = sound();
    d.first = NOWHERE;
    refused(&d, "state 3, the first, is not declared");
    d = sound();
    d.edges = NULL;
    refused(&d, "it has 3 edges, not 1 to 16384 in a table, or none and no table");
    d.edges_count = 0;
    d.states = unordered;
    d.states_count = 2;
    refused(&d, "state OPEN is number 1 and stands in row 0: order the rows by number");
    d.states = nameless;
    d.states_count = 1;
    refused(&d, "row 0 of its states has no name");
    d = sound();
    d.size = 8;
    refused(&d, "the definition has no size, name or states");
    refused(NULL, "the definition has no size, name or states");
    d = sound();
    d.data = "x";
    refused(&d, "data_bytes is 0, not the size of the data");
}

/* FSM-8 */
static void
names_states_and_history_have_limits(void)
{
    trp_fsm_state *many = trpi_alloc((TRP_FSM_STATES_MAX + 1) * sizeof *many);
    char why[TRPI_FSM_WHY_BYTES];
    trp_fsm_definition d = TRP_FSM_DEFINITION_INIT("many", states, CLOSED);
    UNIT_REQUIRE(many != NULL);
    for (uint32_t i = 0; i <= TRP_FSM_STATES_MAX; i++) {
        many[i] = (trp_fsm_state){ "abcdefghijklmnopqrstuvwxyz01234", i, 0, take }; /* 31 */
    }
    d.states = many;
    d.states_count = TRP_FSM_STATES_MAX;
    d.history = TRP_FSM_HISTORY_MAX;
    UNIT_TRUE(trpi_fsm_check(&d, why));
    d.history++;
    refused(&d, "history is 65537, more than 65536");
    d.history = 0;
    d.states_count++;
    refused(&d, "it has 1025 states, not 1 to 1024");
    d.states_count = 1;
    many[0].name = "abcdefghijklmnopqrstuvwxyz012345";
    refused(&d, "the name of state abcdefghijklmnopqrstuvwxyz012345... is longer than 31 bytes");
    trpi_free(many);
}

static const trp_fsm_edge wrong_edges[] = { TRP_FSM_EDGE(CLOSED, NOWHERE, NULL) };
static const trp_fsm_definition wrong = { .size = sizeof wrong,
                                          .name = "wrong",
                                          .states = states,
                                          .edges = wrong_edges,
                                          .states_count = 3,
                                          .edges_count = 1 };
TRP_FSM_BEHAVIOUR(wrong_door, "wrong", struct door, &wrong)

/* FSM-8 */
static void
a_machine_with_a_wrong_table_does_not_start(void)
{
    trp_testkit *kit = door_kit(TRP_CLOCK_MANUAL);
    trp_filter filter = TRP_FILTER_INIT;
    filter.level = TRP_LOG_ERROR;
    filter.occurrences = 1;
    filter.text =
        "state machine wrong: state NOWHERE (3) of the edge from CLOSED to NOWHERE is not "
        "declared";
    TRP_INTERCEPT(kit, &filter)
    {
        trp_ref ref = door_spawn(kit, &wrong_door);
        UNIT_TRUE(trp_testkit_state(kit, ref) == NULL);
    }
    door_kit_close(kit);
}

/* FSM-2 */
static void
it_is_drawn_with_its_limits_and_edges(void)
{
    static const char expected[] = "digraph \"door\" {\n"
                                   "    node [shape=box, style=rounded];\n"
                                   "    __first [shape=point];\n"
                                   "    \"CLOSED\";\n"
                                   "    \"OPEN\" [label=\"OPEN\\n1000 ms\"];\n"
                                   "    \"LOCKED\";\n"
                                   "    __first -> \"CLOSED\";\n"
                                   "    \"CLOSED\" -> \"OPEN\" [label=\"push \\\"hard\\\"\"];\n"
                                   "    \"OPEN\" -> \"CLOSED\";\n"
                                   "    \"OPEN\" -> __end [label=\"break\"];\n"
                                   "    __end [shape=doublecircle, label=\"\"];\n"
                                   "}\n";
    char text[1024], small[16];
    trp_fsm_definition d = sound();
    UNIT_EQUAL(trp_fsm_dot(&d, text, sizeof text), sizeof expected - 1);
    UNIT_TEXT(text, expected);
    UNIT_EQUAL(trp_fsm_dot(&d, small, sizeof small), sizeof expected - 1);
    UNIT_TEXT(small, "digraph \"door\" ");
    UNIT_EQUAL(trp_fsm_dot(&d, NULL, 0), sizeof expected - 1);
    d.first = NOWHERE;
    (void)trp_fsm_dot(&d, text, sizeof text);
    UNIT_TEXT(text, "digraph { \"state 3, the first, is not declared\" }\n");
}

UNIT_BEGIN("fsm-definition")
UNIT(a_wrong_table_is_refused_by_the_name_of_the_state)
UNIT(names_states_and_history_have_limits)
UNIT(a_machine_with_a_wrong_table_does_not_start)
UNIT(it_is_drawn_with_its_limits_and_edges)
UNIT_END

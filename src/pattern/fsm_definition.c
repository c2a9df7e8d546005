/* fsm_definition.c - the tables of a state machine: checked, asked, drawn.
 *
 * Must hold.
 *   fsm-definition-D1  A checked table has state N in row N, and each edge joins two declared
 *       states, or one and the end.                                            (trpi_fsm_check)
 * Limits.  TRP_FSM_STATES_MAX, TRP_FSM_EDGES_MAX, TRP_FSM_HISTORY_MAX, TRP_FSM_NAME_BYTES_MAX.
 * Tests.   tests/unit/pattern/fsm_definition_test.c
 * Sources. FSM-2, FSM-8
 */
#include "pattern/fsm.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/sized.h"

static bool why_write(char *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool
why_write(char *why, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(why, TRPI_FSM_WHY_BYTES, format, list); /* cut is fine */
    va_end(list);
    return false;
}

static bool
state_check(const trp_fsm_definition *d, uint32_t row, char *why)
{
    const trp_fsm_state *state = &d->states[row];
    if (state->name == NULL || state->name[0] == '\0') {
        return why_write(why, "row %u of its states has no name", row);
    }
    if (strlen(state->name) > TRP_FSM_NAME_BYTES_MAX) {
        return why_write(why, "the name of state %.40s... is longer than %d bytes", state->name,
                         TRP_FSM_NAME_BYTES_MAX);
    }
    if (state->id != row) {
        return why_write(why,
                         "state %s is number %u and stands in row %u: order the rows by number",
                         state->name, state->id, row);
    }
    return true;
}

static bool
edge_check(const trp_fsm_definition *d, const trp_fsm_edge *edge, char *why)
{
    const char *from = edge->from_name == NULL ? "?" : edge->from_name;
    const char *to = edge->to_name == NULL ? "?" : edge->to_name;
    bool has_from = trpi_fsm_has(d, edge->from);
    if (!has_from || (edge->to != TRP_FSM_END && !trpi_fsm_has(d, edge->to))) {
        return why_write(why, "state %s (%u) of the edge from %s to %s is not declared",
                         has_from ? to : from, has_from ? edge->to : edge->from, from, to);
    }
    return true;
}

bool
trpi_fsm_check(const trp_fsm_definition *d, char why[TRPI_FSM_WHY_BYTES])
{
    if (d == NULL || !TRPI_SIZED_FITS(d, terminated) || d->name == NULL || d->states == NULL) {
        return why_write(why, "the definition has no size, name or states");
    }
    if (d->states_count == 0 || d->states_count > TRP_FSM_STATES_MAX) {
        return why_write(why, "it has %u states, not 1 to %u", d->states_count, TRP_FSM_STATES_MAX);
    }
    if (d->edges_count > TRP_FSM_EDGES_MAX || (d->edges == NULL) != (d->edges_count == 0)) {
        return why_write(why, "it has %u edges, not 1 to %u in a table, or none and no table",
                         d->edges_count, TRP_FSM_EDGES_MAX);
    }
    if (d->history > TRP_FSM_HISTORY_MAX) {
        return why_write(why, "history is %u, more than %u", d->history, TRP_FSM_HISTORY_MAX);
    }
    if (d->data_bytes > TRP_STATE_BYTES_MAX / 2 || (d->data != NULL && d->data_bytes == 0)) {
        return why_write(why, "data_bytes is %u, not the size of the data", d->data_bytes);
    }
    for (uint32_t row = 0; row < d->states_count; row++) {
        if (!state_check(d, row, why)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < d->edges_count; i++) {
        if (!edge_check(d, &d->edges[i], why)) {
            return false;
        }
    }
    return d->first < d->states_count ||
           why_write(why, "state %u, the first, is not declared", d->first);
}

bool
trpi_fsm_may_go(const trp_fsm_definition *d, uint32_t from, uint32_t to)
{
    bool may = d->edges == NULL;
    for (uint32_t i = 0; i < d->edges_count && !may; i++) {
        may = d->edges[i].from == from && d->edges[i].to == to;
    }
    return may;
}

bool
trpi_fsm_is_simple(const trp_fsm_definition *d)
{
    bool is_simple = d->states_count <= TRPI_FSM_ROWS_MAX && d->history == 0 &&
                     (d->hooks == NULL || d->hooks[0] == NULL);
    for (uint32_t i = 0; i < d->states_count && is_simple; i++) {
        is_simple = d->states[i].timeout_ms == 0;
    }
    return is_simple;
}

static trp_err
nothing_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return TRP_EUNHANDLED;
}

void
trpi_fsm_rows_fill(const trp_fsm_definition *d, struct trp_fsm_priv_row *rows)
{
    for (uint32_t from = 0; from < d->states_count; from++) {
        trp_receive_fn receive = d->states[from].receive;
        rows[from].receive = receive != NULL ? receive : nothing_receive;
        rows[from].ways = 0;
        for (uint32_t to = 0; to < d->states_count; to++) {
            bool may = from == to || (trpi_fsm_has(d, to) && trpi_fsm_may_go(d, from, to));
            rows[from].ways |= (uint64_t)may << to;
        }
    }
}

/* ---- the drawing ----------------------------------------------------------------------------- */

typedef struct drawing {
    char *buffer;
    size_t bytes, used;
} drawing;

static void
draw_char(drawing *out, char c)
{
    if (out->used + 1 < out->bytes) {
        out->buffer[out->used] = c;
    }
    out->used++;
}

static void
draw_text(drawing *out, const char *text)
{
    for (; *text != '\0'; text++) {
        draw_char(out, *text);
    }
}

/* Draw a text inside of quotes. */
static void
draw_quoted(drawing *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            draw_char(out, '\\');
        }
        draw_char(out, (unsigned char)*text < ' ' ? ' ' : *text);
    }
}

static void
draw_state(drawing *out, const trp_fsm_state *state)
{
    char limit[32];
    draw_text(out, "    \"");
    draw_quoted(out, state->name);
    draw_text(out, "\"");
    if (state->timeout_ms != 0 && state->timeout_ms != TRP_OFF) {
        (void)snprintf(limit, sizeof limit, "\\n%u ms", state->timeout_ms);
        draw_text(out, " [label=\"");
        draw_quoted(out, state->name);
        draw_text(out, limit);
        draw_text(out, "\"]");
    }
    draw_text(out, ";\n");
}

static void
draw_edge(drawing *out, const trp_fsm_definition *d, const trp_fsm_edge *edge)
{
    draw_text(out, "    \"");
    draw_quoted(out, d->states[edge->from].name);
    draw_text(out, "\" -> ");
    if (edge->to == TRP_FSM_END) {
        draw_text(out, "__end");
    } else {
        draw_text(out, "\"");
        draw_quoted(out, d->states[edge->to].name);
        draw_text(out, "\"");
    }
    if (edge->on != NULL) {
        draw_text(out, " [label=\"");
        draw_quoted(out, edge->on);
        draw_text(out, "\"]");
    }
    draw_text(out, ";\n");
}

size_t
trp_fsm_dot(const trp_fsm_definition *definition, char *buffer, size_t bytes)
{
    drawing out = { buffer, bytes, 0 };
    char why[TRPI_FSM_WHY_BYTES];
    bool ends = false;
    if (!trpi_fsm_check(definition, why)) { /* a graph that says so can be looked at, too */
        draw_text(&out, "digraph { \"");
        draw_quoted(&out, why);
        draw_text(&out, "\" }\n");
    } else {
        draw_text(&out, "digraph \"");
        draw_quoted(&out, definition->name);
        draw_text(&out, "\" {\n    node [shape=box, style=rounded];\n    __first [shape=point];\n");
        for (uint32_t i = 0; i < definition->states_count; i++) {
            draw_state(&out, &definition->states[i]);
        }
        draw_text(&out, "    __first -> \"");
        draw_quoted(&out, definition->states[definition->first].name);
        draw_text(&out, "\";\n");
        for (uint32_t i = 0; i < definition->edges_count; i++) {
            ends = ends || definition->edges[i].to == TRP_FSM_END;
            draw_edge(&out, definition, &definition->edges[i]);
        }
        draw_text(&out, ends ? "    __end [shape=doublecircle, label=\"\"];\n}\n" : "}\n");
    }
    if (bytes > 0) {
        buffer[out.used < bytes ? out.used : bytes - 1] = '\0';
    }
    return out.used;
}

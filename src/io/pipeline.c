/* pipeline.c - stages in a row: commands go down, events go up, management reaches all.
 *
 * Why.     Encoding and decoding of one layer belong together, and layers ought to be put together
 *          like bricks, tested without a socket, and run by whichever actor feeds them.
 * Shape.   port 0 (top), port 1, ... A result is handed to the next port by a plain call, deeper
 *          and deeper until it leaves the pipeline, so it takes no memory. Only what comes for a
 *          stage that is running waits, in the list of its port, until the function returns.
 *
 *              event of port 2 -> event of port 1 -> event of port 0 -> on_event
 *                                                                          | answers a command
 *              port 2 waits <- command of port 1 waits <- command of port 0 waits ...
 * Must hold.
 *   pipeline-P1  A stage is entered by one function at a time.
 *   pipeline-P2  Per direction a port's items are handled in the order of their coming: nothing is
 *       handed on directly while something waits there.
 *   pipeline-P3  After the outermost call has returned nothing waits and no stage runs.
 *   pipeline-P4  After the first error of a run no stage is entered any more.
 * Limits.  waiting_max items wait; the depth of calls is at most twice the number of stages.
 * Cost.    A result: one call through a pointer. A waiting one: a node, which is kept for the next.
 * Tests.   tests/unit/io/pipeline_test.c
 * Sources. PIPE-01 to PIPE-09.
 */
#include <troupe/pipeline.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sized.h"

#define REASON_BYTES 192u
#define NODES_KEPT 64u /* at most so many free ones stay for the next run */

typedef enum direction { DOWN = 1, UP = 2 } direction;

typedef struct node {
    struct node *next;
    trp_item item;
    direction way;
} node;

typedef struct list {
    node *first, *last;
} list;

struct trp_port {
    trp_pipeline *pipeline;
    const trp_stage *stage;
    void *state;
    list waiting;
    uint32_t index;
    bool is_running, is_open;
};

struct trp_pipeline {
    trp_pipeline_options options;
    list commands, events; /* that have left, for next_command() and next_event() */
    node *spare;           /* free nodes */
    uint32_t spare_count, waiting_count;
    uint32_t depth; /* of calls from outside: 0: no run */
    uint32_t tick_ms;
    trp_err err; /* of the run */
    char reason[REASON_BYTES];
    uint32_t ports_count;
    trp_port ports[];
};

/* ---- items ----------------------------------------------------------------------------------- */

static void
bytes_drop(trp_item *item)
{
    trp_bytes_unref(&item->as.bytes);
}

const trp_item_type trp_item_bytes = { "bytes", bytes_drop };
const trp_item_type trp_item_text = { "text", bytes_drop };
const trp_item_type trp_item_tick = { "tick", NULL };
const trp_item_type trp_item_end = { "end", NULL };
const trp_item_type trp_item_written = { "written", NULL };
const trp_item_type trp_item_close = { "close", NULL };
const trp_item_type trp_item_abort = { "abort", NULL };
const trp_item_type trp_item_high = { "high", NULL };
const trp_item_type trp_item_low = { "low", NULL };

void
trp_item_clear(trp_item *item)
{
    if (item != NULL && item->type != NULL) {
        if (item->type->drop != NULL) {
            item->type->drop(item);
        }
        *item = trp_item_of(NULL);
    }
}

static trp_item
item_move(trp_item *item)
{
    trp_item moved = *item;

    *item = trp_item_of(NULL);
    return moved;
}

/* ---- what waits ------------------------------------------------------------------------------ */

static trp_err
list_add(trp_pipeline *p, list *to, trp_item *item, direction way)
{
    node *fresh = p->spare;

    if (p->waiting_count >= p->options.waiting_max) {
        return TRP_ELIMIT;
    }
    if (fresh != NULL) {
        p->spare = fresh->next;
        p->spare_count--;
    } else {
        fresh = trpi_alloc(sizeof *fresh);
        if (fresh == NULL) {
            return TRP_ENOMEM;
        }
    }
    *fresh = (node){ NULL, item_move(item), way };
    if (to->first == NULL) {
        to->first = fresh;
    } else {
        to->last->next = fresh;
    }
    to->last = fresh;
    p->waiting_count++;
    return TRP_OK;
}

static bool
list_take(trp_pipeline *p, list *from, trp_item *ret_item, direction *ret_way)
{
    node *first = from->first;

    if (first == NULL) {
        return false;
    }
    from->first = first->next;
    *ret_item = first->item;
    *ret_way = first->way;
    p->waiting_count--;
    if (p->spare_count < NODES_KEPT) {
        first->next = p->spare;
        p->spare = first;
        p->spare_count++;
    } else {
        trpi_free(first);
    }
    return true;
}

static void
list_clear(trp_pipeline *p, list *all)
{
    direction way;
    trp_item item;

    while (list_take(p, all, &item, &way)) {
        trp_item_clear(&item);
    }
}

/* ---- running --------------------------------------------------------------------------------- */

static trp_err run_fail(trp_pipeline *p, const trp_port *port, trp_err err);
static trp_err item_deliver(trp_pipeline *p, uint32_t index, trp_item *item, direction way);

static trp_err
item_leave(trp_pipeline *p, trp_item *item, direction way)
{
    trp_sink_fn sink = way == DOWN ? p->options.on_command : p->options.on_event;
    trp_err err = sink != NULL ? sink(p->options.arg, item)
                               : list_add(p, way == DOWN ? &p->commands : &p->events, item, way);

    if (err == TRP_OK) {
        trp_item_clear(item);
    }
    return p->err != TRP_OK ? p->err : run_fail(p, NULL, err);
}

static trp_err
port_enter(trp_port *port, trp_item *item, direction way)
{
    const trp_stage *stage = port->stage;
    trp_err err;

    trpi_assert(!port->is_running); /* pipeline-P1 */
    port->is_running = true;
    err = way == DOWN ? stage->command(port, port->state, item)
                      : stage->event(port, port->state, item);
    port->is_running = false;
    if (err == TRP_OK) {
        trp_item_clear(item);
    }
    return port->pipeline->err != TRP_OK ? port->pipeline->err
                                         : run_fail(port->pipeline, port, err);
}

/* Handle what has come for a stage while it ran. */
static trp_err
port_settle(trp_port *port)
{
    trp_err err = TRP_OK;
    direction way;
    trp_item item;

    while (err == TRP_OK && list_take(port->pipeline, &port->waiting, &item, &way)) {
        err = port_enter(port, &item, way);
        if (err != TRP_OK) {
            trp_item_clear(&item);
        }
    }
    return err;
}

static bool
is_passed_on(const trp_stage *stage, direction way)
{
    return way == DOWN ? stage->command == NULL : stage->event == NULL;
}

/* index counts from the top; one beyond either end is outside. */
static trp_err
item_deliver(trp_pipeline *p, uint32_t index, trp_item *item, direction way)
{
    trp_port *port;
    trp_err err;

    if (p->err != TRP_OK) {
        return p->err; /* pipeline-P4 */
    }
    while (index < p->ports_count && is_passed_on(p->ports[index].stage, way)) {
        index += way == DOWN ? 1 : UINT32_MAX;
    }
    if (index >= p->ports_count) { /* UINT32_MAX: above the top */
        return item_leave(p, item, way);
    }
    port = &p->ports[index];
    if (port->is_running) { /* what waits there is handled before it ceases to run: pipeline-P2 */
        return run_fail(p, port, list_add(p, &port->waiting, item, way));
    }
    err = port_enter(port, item, way);
    return err == TRP_OK ? port_settle(port) : err;
}

static trp_err
item_emit(trp_port *port, uint32_t index, trp_item *item, direction way)
{
    trp_err err = port->pipeline->depth > 0 ? item_deliver(port->pipeline, index, item, way)
                                            : TRP_ESTATE; /* not while it is built */

    if (err != TRP_OK) {
        trp_item_clear(item);
    }
    return err;
}

trp_err
trp_port_emit_command(trp_port *port, trp_item *item)
{
    return item_emit(port, port->index + 1, item, DOWN);
}

trp_err
trp_port_emit_event(trp_port *port, trp_item *item)
{
    return item_emit(port, port->index - 1, item, UP);
}

/* ---- failures -------------------------------------------------------------------------------- */

static void
reason_set(trp_pipeline *p, const trp_port *port, const char *text)
{
    (void)snprintf(p->reason, sizeof p->reason, "%s: %s",
                   port != NULL ? port->stage->name : "pipeline", text);
}

/* Keep the first error of a run; TRP_OK stays. */
static trp_err
run_fail(trp_pipeline *p, const trp_port *port, trp_err err)
{
    if (err != TRP_OK && p->err == TRP_OK) {
        p->err = err;
        if (p->reason[0] == 0) {
            reason_set(p, port, trp_strerror(err));
        }
    }
    return err;
}

trp_err
trp_port_fail(trp_port *port, trp_err err, const char *format, ...)
{
    char text[REASON_BYTES];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (port->pipeline->err == TRP_OK) {
        reason_set(port->pipeline, port, text);
    }
    return err;
}

static void
run_begin(trp_pipeline *p)
{
    if (p->depth++ == 0) {
        p->err = TRP_OK;
        p->reason[0] = 0;
    }
}

static trp_err
run_end(trp_pipeline *p, trp_err err)
{
    if (--p->depth > 0) {
        return err;
    }
    err = p->err != TRP_OK ? p->err : err;
    for (uint32_t i = 0; i < p->ports_count; i++) { /* pipeline-P3; after a success none waits */
        trpi_assert(err != TRP_OK || p->ports[i].waiting.first == NULL);
        list_clear(p, &p->ports[i].waiting);
        p->ports[i].is_running = false;
    }
    p->err = TRP_OK;
    return err;
}

/* ---- from outside ---------------------------------------------------------------------------- */

static trp_err
item_feed(trp_pipeline *p, uint32_t index, trp_item *item, direction way)
{
    if (p == NULL || item == NULL || item->type == NULL) {
        return TRP_EINVAL;
    }
    run_begin(p);
    return run_end(p, item_deliver(p, index, item, way));
}

trp_err
trp_pipeline_command(trp_pipeline *pipeline, trp_item *item)
{
    return item_feed(pipeline, 0, item, DOWN);
}

trp_err
trp_pipeline_event(trp_pipeline *pipeline, trp_item *item)
{
    return item_feed(pipeline, pipeline != NULL ? pipeline->ports_count - 1 : 0, item, UP);
}

trp_err
trp_pipeline_manage(trp_pipeline *pipeline, const trp_item *item)
{
    trp_err err = TRP_OK;

    if (pipeline == NULL || item == NULL || item->type == NULL) {
        return TRP_EINVAL;
    }
    if (pipeline->depth > 0) {
        return TRP_ESTATE;
    }
    run_begin(pipeline);
    for (uint32_t i = 0; i < pipeline->ports_count && err == TRP_OK; i++) {
        trp_port *port = &pipeline->ports[i];

        if (port->stage->manage != NULL) {
            port->is_running = true;
            err = run_fail(pipeline, port, port->stage->manage(port, port->state, item));
            port->is_running = false;
            err = err == TRP_OK ? port_settle(port) : err;
        }
    }
    return run_end(pipeline, err);
}

uint32_t
trp_pipeline_tick_ms(const trp_pipeline *pipeline)
{
    return pipeline != NULL ? pipeline->tick_ms : 0;
}

int
trp_pipeline_holds(const trp_pipeline *pipeline)
{
    for (uint32_t i = 0; pipeline != NULL && i < pipeline->ports_count; i++) {
        const trp_port *port = &pipeline->ports[i];
        uint32_t (*holds)(const void *) = TRPI_SIZED_MEMBER(port->stage, holds);

        if (holds != NULL && holds(port->state) != 0) {
            return 1;
        }
    }
    return 0;
}

int
trp_pipeline_next_command(trp_pipeline *pipeline, trp_item *ret_item)
{
    direction way;

    return pipeline != NULL && list_take(pipeline, &pipeline->commands, ret_item, &way);
}

int
trp_pipeline_next_event(trp_pipeline *pipeline, trp_item *ret_item)
{
    direction way;

    return pipeline != NULL && list_take(pipeline, &pipeline->events, ret_item, &way);
}

const char *
trp_pipeline_reason(const trp_pipeline *pipeline)
{
    return pipeline != NULL ? pipeline->reason : "";
}

/* ---- from a stage ---------------------------------------------------------------------------- */

void *
trp_port_context(const trp_port *port)
{
    return port->pipeline->options.context;
}

trp_byte_order
trp_port_byte_order(const trp_port *port)
{
    return port->pipeline->options.order;
}

void
trp_port_tick_every(trp_port *port, uint32_t interval_ms)
{
    trp_pipeline *p = port->pipeline;

    if (interval_ms > 0 && (p->tick_ms == 0 || interval_ms < p->tick_ms)) {
        p->tick_ms = interval_ms;
    }
}

/* ---- building -------------------------------------------------------------------------------- */

static trp_err
stage_check(const trp_stage_use *use, const trp_pipeline_options *options)
{
    const trp_stage *stage = use->stage;

    if (stage == NULL || stage->name == NULL || !TRPI_SIZED_FITS(stage, manage) ||
        ((stage->needs & TRP_STAGE_NEEDS_BYTE_ORDER) != 0 && options->order == 0) ||
        ((stage->needs & TRP_STAGE_NEEDS_CONTEXT) != 0 && options->context == NULL)) {
        return TRP_EINVAL;
    }
    return stage->state_bytes > TRP_STAGE_STATE_BYTES_MAX ? TRP_ELIMIT : TRP_OK;
}

static trp_err
port_open(trp_pipeline *p, uint32_t index, const trp_stage_use *use)
{
    trp_port *port = &p->ports[index];

    port->pipeline = p;
    port->stage = use->stage;
    port->index = index;
    port->state = trpi_alloc(use->stage->state_bytes > 0 ? use->stage->state_bytes : 1);
    if (port->state == NULL) {
        return TRP_ENOMEM;
    }
    port->is_open = true;
    return use->stage->open != NULL ? use->stage->open(port, port->state, use->options) : TRP_OK;
}

trp_err
trp_pipeline_new(const trp_stage_use *stages, size_t count, const trp_pipeline_options *options,
                 trp_pipeline **ret_pipeline)
{
    trp_pipeline_options own = TRP_PIPELINE_OPTIONS_INIT;
    trp_err err = TRP_OK;
    trp_pipeline *p;

    if (stages == NULL || count == 0 || ret_pipeline == NULL ||
        !TRPI_SIZED_COPY(options, &own, arg) || (unsigned)own.order > TRP_LITTLE_ENDIAN) {
        return TRP_EINVAL;
    }
    if (count > TRP_STAGES_MAX) {
        return TRP_ELIMIT;
    }
    for (size_t i = 0; i < count && err == TRP_OK; i++) {
        err = stage_check(&stages[i], &own);
    }
    if (err != TRP_OK) {
        return err;
    }
    p = trpi_alloc(sizeof *p + count * sizeof p->ports[0]);
    if (p == NULL) {
        return TRP_ENOMEM;
    }
    p->options = own;
    p->options.waiting_max = own.waiting_max != 0 ? own.waiting_max : TRP_PIPELINE_WAITING_DEFAULT;
    p->ports_count = (uint32_t)count;
    for (uint32_t i = 0; i < count && err == TRP_OK; i++) {
        err = port_open(p, i, &stages[i]);
    }
    if (err != TRP_OK) {
        trp_pipeline_free(p);
        return err;
    }
    *ret_pipeline = p;
    return TRP_OK;
}

void
trp_pipeline_free(trp_pipeline *pipeline)
{
    if (pipeline == NULL) {
        return;
    }
    for (uint32_t i = 0; i < pipeline->ports_count; i++) {
        trp_port *port = &pipeline->ports[i];

        list_clear(pipeline, &port->waiting); /* of a run that a trp_fail() has left */
        if (port->is_open && port->stage->close != NULL) {
            port->stage->close(port->state);
        }
        trpi_free(port->state);
    }
    list_clear(pipeline, &pipeline->commands);
    list_clear(pipeline, &pipeline->events);
    while (pipeline->spare != NULL) {
        node *next = pipeline->spare->next;

        trpi_free(pipeline->spare);
        pipeline->spare = next;
    }
    trpi_free(pipeline);
}

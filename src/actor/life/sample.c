/* sample.c - actors at which traces begin.
 *
 * Why.     To see where messages go, a few are enough; the others must not pay.
 * Shape.   path -> the rate of the actor, by a system message to each that matches, and at each
 *          start. A sampled actor is behind the mark that says "receive is trpi_life_receive()"; a
 *          message that begins a trace is handled by a receive function that carries its root.
 * Must hold.
 *   sample-T1  A failure of the actor's own function leaves as it came, with its cause, after the
 *       hop was kept and what was carried was restored.
 * Tests.   tests/unit/actor/trace_test.c
 * Sources. HOW-09.
 */
#include <string.h>

#include <troupe/path.h>

#include "actor/kernel/cells.h"
#include "actor/kernel/trace.h"
#include "actor/life/life.h"
#include "actor/naming/path.h"

/* ---- at a message ---------------------------------------------------------------------------- */

/* `processed` counts the present message already. */
bool
trpi_sample_hits(const trp_ctx *ctx, trpi_cell *cell)
{
    trpi_extra *extra = cell->extra;

    if ((int64_t)(cell->processed - 1 - extra->sample_at) < 0 || ctx->msg == NULL ||
        !trpi_type_is_ordinary(ctx->msg->priv_type) ||
        (ctx->carried != NULL && (ctx->carried->carries & TRPI_CARRIES_TRACE) != 0)) {
        return false;
    }
    extra->sample_at += extra->sample_one_in;
    if (extra->sample_at < cell->processed) { /* those in between belonged to traces */
        extra->sample_at = cell->processed - 1 + extra->sample_one_in;
    }
    return true;
}

typedef struct own_call {
    void *state;
    const trp_msg *msg;
} own_call;

static trp_err
call_own(trp_ctx *ctx, void *arg)
{
    const own_call *call = arg;
    const trpi_cell *cell = ctx->cell;
    trp_receive_fn fn =
        cell->extra->levels != NULL ? cell->extra->levels->receive : cell->behaviour->receive;

    return fn(ctx, call->state, call->msg);
}

trp_err
trpi_sampled_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    own_call call = { state, msg };
    trpi_handling handling;
    trpi_trailer root;
    trp_err err;

    memset(&root, 0, sizeof root);
    if (ctx->carried != NULL) { /* an interaction */
        root = *ctx->carried;
    }
    trpi_trace_root(ctx->system, &root.trace);
    root.carries |= TRPI_CARRIES_TRACE;
    handling = trpi_handling_begin(ctx, &root);
    root.sent_ns = handling.begun_ns; /* nobody knows when it was told */
    err = trpi_run_guarded(ctx, call_own, &call);
    trpi_handling_end(ctx, &handling, msg, err);
    if (err != TRP_OK && err != TRP_EUNHANDLED) {
        longjmp(*ctx->jump, 1); /* sample-T1: ctx->failure says why */
    }
    return err;
}

/* ---- which actors ---------------------------------------------------------------------------- */

void
trpi_sample_set(trpi_cell *cell, uint32_t one_in)
{
    trpi_extra *extra = one_in == 0 ? cell->extra : trpi_extra_get(cell);

    if (extra != NULL) { /* out of memory: it is not sampled */
        extra->sample_one_in = one_in;
        extra->sample_at = cell->processed;
        trpi_receive_mark(cell);
    }
}

/* Length of the element that begins at text. */
static size_t
element_bytes(const char *text)
{
    return strcspn(text, "/");
}

/* Both are absolute, without a slash at the end. */
static bool
path_matches(const char *pattern, const char *path)
{
    while (*pattern == '/' && *path == '/') {
        size_t wanted = element_bytes(++pattern), there = element_bytes(++path);

        if (!trpi_name_matches(pattern, wanted, path, there)) {
            return false;
        }
        pattern += wanted;
        path += there;
    }
    return *pattern == '\0' && *path == '\0';
}

static uint32_t
rate_of(trp_system *system, trp_ref ref)
{
    char path[TRP_PATH_BYTES_MAX + 1];

    (void)trpi_path_local(system, ref, path, sizeof path);
    return trpi_trace_sample_of(system, path, path_matches);
}

void
trpi_sample_look(trp_ctx *ctx, trpi_cell *cell)
{
    trpi_sample_set(cell, rate_of(ctx->system, trpi_cell_ref(cell)));
}

/* Tell the live actors whose path matches the rate that they have now. */
static void
actors_sample(trp_ctx *ctx, const char *pattern)
{
    const trp_ref nobody = TRP_REF_NONE;
    uint32_t used = atomic_load_explicit(&ctx->cells->used, memory_order_relaxed);
    char path[TRP_PATH_BYTES_MAX + 1];

    for (uint32_t slot = 1; slot <= used; slot++) {
        const trpi_cell *cell = trpi_cells_at(ctx->cells, slot);
        trp_ref ref = trpi_ref_local(slot, 0);

        if (cell == NULL ||
            !trpi_kind_is_actor(atomic_load_explicit(&cell->kind, memory_order_relaxed))) {
            continue;
        }
        /* acquire: with the release of a start; the path is that incarnation's, or "#uid" */
        ref.generation = atomic_load_explicit(&cell->generation, memory_order_acquire);
        if ((ref.generation & 1u) != 0) {
            (void)trpi_path_local(ctx->system, ref, path, sizeof path);
            if (path_matches(pattern, path)) {
                trpi_sys_to(ctx, ref, TRPI_SYS_SAMPLE, 0, nobody,
                            trpi_trace_sample_of(ctx->system, path, path_matches), NULL);
            }
        }
    }
}

trp_err
trp_trace_sample(trp_system *system, const char *path, uint32_t one_in)
{
    char pattern[TRP_PATH_BYTES_MAX + 1];
    trpi_selection_path parsed;
    size_t length = path == NULL ? 0 : strlen(path);

    if (!trpi_system_is_valid(system) || length == 0 || length > TRP_PATH_BYTES_MAX ||
        one_in > TRP_TRACE_ONE_IN_MAX || trpi_selection_parse(path, &parsed, NULL) != TRP_OK ||
        !parsed.absolute || parsed.count == 0) {
        return TRP_EINVAL;
    }
    for (uint32_t i = 0; i < parsed.count; i++) {
        if (parsed.elements[i].kind == TRPI_ELEMENT_UP) {
            return TRP_EINVAL;
        }
    }
    memcpy(pattern, path, length + 1);
    if (pattern[length - 1] == '/') {
        pattern[length - 1] = '\0';
    }
    trp_err err = trpi_trace_sample_set(system, pattern, one_in);
    if (err == TRP_OK) {
        trp_ctx *ctx = trpi_enter(system);
        actors_sample(ctx, pattern);
        trpi_leave(ctx);
    }
    return err;
}

/* failure.c - failures as values, and how one leaves a behaviour.
 *
 * Why.     A failure moves from the behaviour to its loop by a jump, to the supervisor as a
 *          reference-counted copy in a system message, and back with the directive to restart.
 * Must hold.
 *   failure-F1  A failure can always be reported: without memory a static one says so.
 * Tests.   tests/unit/actor/life_test.c, tests/unit/actor/memory_test.c
 * Sources. docs/architecture.md#failure; LIFE-18.
 */
#include "actor/kernel/extra.h"
#include "actor/kernel/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

static trpi_failure no_memory = { 0, { TRP_ENOMEM, 0, NULL, 0, "out of memory", TRP_REF_NONE } };

trpi_failure *
trpi_failure_new(const trp_failure *what)
{
    trpi_failure *failure = trpi_alloc(sizeof *failure);

    if (failure == NULL) {
        return &no_memory;
    }
    atomic_init(&failure->refs, 1);
    failure->what = *what;
    return failure;
}

trpi_failure *
trpi_failure_ref(trpi_failure *failure)
{
    if (failure != &no_memory) {
        atomic_fetch_add_explicit(&failure->refs, 1, memory_order_relaxed);
    }
    return failure;
}

void
trpi_failure_unref(trpi_failure *failure)
{
    /* acq_rel: the last unref sees all reads and writes of the others */
    if (failure != NULL && failure != &no_memory &&
        atomic_fetch_sub_explicit(&failure->refs, 1, memory_order_acq_rel) == 1) {
        trpi_free(failure);
    }
}

void
trpi_failure_fill(trp_failure *what, trp_ref actor, trp_err err, const char *reason)
{
    memset(what, 0, sizeof *what);
    what->err = err;
    what->actor = actor;
    snprintf(what->reason, sizeof what->reason, "%s", reason == NULL ? trp_strerror(err) : reason);
}

static TRP_NORETURN void
fail_with(trp_ctx *ctx, trp_err err, int32_t code, const char *file, int line, const char *format,
          va_list arguments)
{
    trp_failure *what = &ctx->failure;

    trpi_assert(ctx->jump != NULL);
    memset(what, 0, sizeof *what);
    what->err = err;
    what->code = code;
    what->file = file;
    what->line = line;
    what->actor = ctx->self;
    if (format == NULL || vsnprintf(what->reason, sizeof what->reason, format, arguments) < 0) {
        snprintf(what->reason, sizeof what->reason, "%s", trp_strerror(err));
    }
    _longjmp(*ctx->jump, 1);
}

void
trp_fail_at(trp_ctx *ctx, int32_t code, const char *file, int line, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fail_with(ctx, TRP_EFAILED, code, file, line, format, arguments);
}

void
trpi_life_throw(trp_ctx *ctx, trp_err err, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fail_with(ctx, err, 0, NULL, 0, format, arguments);
}

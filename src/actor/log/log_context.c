/* log_context.c - an actor's own additions to the log: the context (MDC) of its lines, and a line
 * for each message that it receives.
 *
 * Shape.   Two lists of pairs, one for the instance and one for the current message. Each is a
 *          sequence of strings key, value, key, value with an empty one at the end, which a line
 *          carries as it is.
 * Cost.    None for an actor that uses neither: one pointer in the side block, which it may not
 *          have.
 * Limits.  TRP_LOG_MDC_BYTES_MAX for each list.
 * Tests.   tests/unit/actor/log_test.c
 * Sources. LOG-09, MSG-19.
 */
#include <string.h>

#include "actor/kernel/extra.h"
#include "actor/kernel/run.h"
#include "actor/log/log.h"
#include "actor/naming/path.h"
#include "base/alloc.h"

enum { ACTOR, MESSAGE, LISTS };

struct trpi_log_context {
    size_t used[LISTS]; /* without the end */
    uint64_t turn;      /* cell->processed of the message that list MESSAGE belongs to */
    char pairs[LISTS][TRP_LOG_MDC_BYTES_MAX + 1];
};

const char *
trp_log_mdc_next(const char *at, const char **ret_key, const char **ret_value)
{
    if (at == NULL || at[0] == 0) {
        return NULL;
    }
    *ret_key = at;
    *ret_value = at + strlen(at) + 1;
    return *ret_value + strlen(*ret_value) + 1;
}

/* Find the pair of this key; NULL: there is none. */
static char *
pair_find(char *pairs, const char *key)
{
    const char *at = pairs, *next, *found, *value;

    while ((next = trp_log_mdc_next(at, &found, &value)) != NULL) {
        if (strcmp(found, key) == 0) {
            return pairs + (at - pairs);
        }
        at = next;
    }
    return NULL;
}

static void
pair_remove(struct trpi_log_context *c, int list, const char *key)
{
    char *at = pair_find(c->pairs[list], key);
    const char *next, *found, *value;

    if (at != NULL) {
        next = trp_log_mdc_next(at, &found, &value);
        memmove(at, next, (size_t)(c->pairs[list] + c->used[list] + 1 - next));
        c->used[list] -= (size_t)(next - at);
    }
}

static trp_err
pair_put(trp_ctx *ctx, int list, const char *key, const char *value)
{
    trpi_extra *extra;
    struct trpi_log_context *c;
    size_t key_bytes, value_bytes, old = 0;
    const char *at, *next, *found, *old_value;

    if (key == NULL || value == NULL || key[0] == 0) {
        return TRP_EINVAL;
    }
    extra = trpi_extra_get(ctx->cell);
    if (extra != NULL && extra->log_context == NULL) {
        extra->log_context = trpi_alloc(sizeof *extra->log_context);
    }
    if (extra == NULL || extra->log_context == NULL) {
        return TRP_ENOMEM;
    }
    c = extra->log_context;
    if (list == MESSAGE && c->turn != ctx->cell->processed) {
        c->turn = ctx->cell->processed;
        c->used[MESSAGE] = 0;
        c->pairs[MESSAGE][0] = 0;
    }
    key_bytes = strlen(key) + 1;
    value_bytes = strlen(value) + 1;
    at = pair_find(c->pairs[list], key);
    if (at != NULL) {
        next = trp_log_mdc_next(at, &found, &old_value);
        old = (size_t)(next - at);
    }
    if (key_bytes > TRP_LOG_MDC_BYTES_MAX || value_bytes > TRP_LOG_MDC_BYTES_MAX ||
        c->used[list] - old + key_bytes + value_bytes > TRP_LOG_MDC_BYTES_MAX) {
        return TRP_ELIMIT;
    }
    pair_remove(c, list, key);
    memcpy(c->pairs[list] + c->used[list], key, key_bytes);
    memcpy(c->pairs[list] + c->used[list] + key_bytes, value, value_bytes);
    c->used[list] += key_bytes + value_bytes;
    c->pairs[list][c->used[list]] = 0;
    return TRP_OK;
}

trp_err
trp_log_mdc_put(trp_ctx *ctx, const char *key, const char *value)
{
    return pair_put(ctx, ACTOR, key, value);
}

trp_err
trp_log_mdc_put_message(trp_ctx *ctx, const char *key, const char *value)
{
    return pair_put(ctx, MESSAGE, key, value);
}

void
trp_log_mdc_remove(trp_ctx *ctx, const char *key)
{
    struct trpi_log_context *c = ctx->cell->extra == NULL ? NULL : ctx->cell->extra->log_context;

    if (c != NULL && key != NULL) {
        pair_remove(c, ACTOR, key);
    } else if (c != NULL) {
        c->used[ACTOR] = 0;
        c->pairs[ACTOR][0] = 0;
    }
}

size_t
trpi_log_context_copy(const trp_ctx *ctx, char *buffer)
{
    struct trpi_log_context *c = ctx->cell->extra == NULL ? NULL : ctx->cell->extra->log_context;
    const char *at, *next, *key, *value;
    size_t used = 0;
    bool message;

    if (c == NULL) {
        buffer[0] = 0;
        return 1;
    }
    message = c->turn == ctx->cell->processed;
    if (message) {
        memcpy(buffer, c->pairs[MESSAGE], c->used[MESSAGE]);
        used = c->used[MESSAGE];
    }
    for (at = c->pairs[ACTOR]; (next = trp_log_mdc_next(at, &key, &value)) != NULL; at = next) {
        if (!message || pair_find(c->pairs[MESSAGE], key) == NULL) {
            memcpy(buffer + used, at, (size_t)(next - at));
            used += (size_t)(next - at);
        }
    }
    buffer[used] = 0;
    return used + 1;
}

void
trpi_log_context_drop(trpi_cell *cell)
{
    trpi_free(cell->extra->log_context);
    cell->extra->log_context = NULL;
    cell->extra->log_receive = false;
}

/* ---- received messages (LoggingReceive) ------------------------------------------------------ */

void
trp_log_receive(trp_ctx *ctx)
{
    trpi_extra *extra;

    if (!trpi_log_debugs(ctx->system, TRP_DEBUG_RECEIVE) ||
        trpi_logger_is(ctx->system, ctx->self)) {
        return;
    }
    extra = trpi_extra_get(ctx->cell);
    if (extra != NULL) { /* out of memory: a debugging aid is left out */
        extra->log_receive = true;
        ctx->cell->marks |= TRPI_MARK_BECOME;
        extra->sample_alone = false;
    }
}

void
trpi_log_received(trp_ctx *ctx)
{
    char sender[TRP_PATH_BYTES_MAX + 1];

    if (trpi_log_debugs(ctx->system, TRP_DEBUG_RECEIVE) && ctx->msg != NULL) {
        trp_path(ctx->system, trpi_msg_sender(ctx->msg), sender, sizeof sender);
        trp_log(ctx, TRP_LOG_DEBUG, "received message of type %s from %s",
                trp_msg_type(ctx->msg)->name, sender[0] == 0 ? "nobody" : sender);
    }
}

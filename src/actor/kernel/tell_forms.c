/* tell_forms.c - other forms of telling: as another sender, a message that was made, an answer,
 * text and JSON.
 *
 * Shape.  Text is told without its NUL, as a payload of any length (tell.c).
 * Tests.  tests/unit/actor/ask_test.c, alias_test.c
 */
#include <string.h>

#include <troupe/actor.h>

#include "actor/kernel/misuse.h"
#include "actor/kernel/run.h"
#include "actor/kernel/trailer.h"

void
trp_tell_as(trp_ctx *ctx, trp_ref to, trp_ref sender, const trp_type *type, const void *payload,
            size_t bytes)
{
    TRPI_USE_TELLING(ctx);
    trpi_tell(ctx, to, sender, type, payload, bytes);
}

void
trpi_send_as(trp_ctx *ctx, trp_ref to, trp_ref sender, trp_msg *msg)
{
    trpi_msg_sender_set(msg, sender);
    trpi_send(ctx, to, msg);
}

void
trp_send(trp_ctx *ctx, trp_ref to, trp_msg *msg)
{
    if (msg == NULL) {
        return;
    }
    if (trpi_misuse_is_wanted()) {
        trpi_misuse_ctx(ctx, "trp_send");
        trpi_misuse_sent(ctx, msg);
    }
    trpi_msg_sender_set(msg, ctx->self);
    trpi_send(ctx, to, ctx->carried == NULL ? msg : trpi_trailer_put(ctx, msg));
}

void
trp_reply(trp_ctx *ctx, const trp_type *type, const void *payload, size_t bytes)
{
    TRPI_USE_TELLING(ctx);
    trpi_tell(ctx, trp_sender(ctx), ctx->self, type, payload, bytes);
}

void
trp_tell_text(trp_ctx *ctx, trp_ref to, const char *text)
{
    TRPI_USE_TELLING(ctx);
    trpi_tell(ctx, to, ctx->self, &trp_string_type, text, strlen(text));
}

void
trp_tell_json(trp_ctx *ctx, trp_ref to, const char *json)
{
    trpi_tell(ctx, to, ctx->self, &trp_json_type, json, strlen(json));
}

void
trp_reply_text(trp_ctx *ctx, const char *text)
{
    trpi_tell(ctx, trp_sender(ctx), ctx->self, &trp_string_type, text, strlen(text));
}

void
trp_reply_json(trp_ctx *ctx, const char *json)
{
    trpi_tell(ctx, trp_sender(ctx), ctx->self, &trp_json_type, json, strlen(json));
}

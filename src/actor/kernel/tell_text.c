/* tell_text.c - telling and answering with text and JSON.
 *
 * Shape.  Text is told without its NUL, as a payload of any length (tell.c).
 * Tests.  tests/unit/actor/ask_test.c, alias_test.c
 */
#include <string.h>

#include <troupe/actor.h>

#include "actor/kernel/misuse.h"
#include "actor/kernel/run.h"

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

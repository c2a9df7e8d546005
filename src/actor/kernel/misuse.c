/* misuse.c - mistakes of a program with messages and ctx, found where they are made.
 *
 * Why.     A message that is sent twice, or a ctx that another thread uses, destroys a queue, and
 *          what crashes later is an innocent actor.
 * Shape.   trp_send() and trp_msg_free() mark the header of what they take; a verb that is given a
 *          marked message aborts. A new message has a new header, so what is found is certain;
 *          what is missed is a block that has become another message meanwhile. A ctx is a thread's
 *          own: that of another thread was kept.
 * Limits.  A ctx that is kept and used on the same thread, by another actor, is not found.
 * Tests.   tests/unit/actor/misuse_test.c
 */
#include "actor/kernel/misuse.h"

#include <stdio.h>

#include "actor/kernel/run.h"
#include "base/assert.h"

#ifdef TRPI_DEBUG
bool trpi_misuse_on = true;
#else
bool trpi_misuse_on = false;
#endif

void
trpi_misuse_found(const trp_ctx *ctx, const char *verb, const char *what)
{
    char path[TRP_PATH_BYTES_MAX + 1] = "";

    if (ctx != NULL && ctx->cell != NULL) {
        ctx->system->hooks->path(ctx->system, ctx->self, path, sizeof path);
    }
    (void)fprintf(stderr, "troupe: misuse: %s(): %s%s%s\n", verb, what,
                  path[0] != 0 ? "; in actor " : "", path);
    trpi_assert_failed("no misuse", __FILE__, __LINE__);
}

/* The verb that the program called last with it; NULL: none. */
static const char *
gone_by(const trp_msg *msg)
{
    return (msg->priv_from_node_flags & TRPI_MSG_FREED) != 0  ? "trp_msg_free"
           : (msg->priv_from_node_flags & TRPI_MSG_SENT) != 0 ? "trp_send"
                                                              : NULL;
}

void
trpi_misuse_sent(const trp_ctx *ctx, trp_msg *msg)
{
    const char *before = gone_by(msg);

    if (before != NULL) {
        trpi_misuse_found(ctx, "trp_send",
                          before[4] == 's'
                              ? "this message was sent already; send a trp_msg_dup() of it"
                              : "this message was freed already");
    }
    msg->priv_from_node_flags |= TRPI_MSG_SENT;
}

void
trpi_misuse_freed(trp_msg *msg)
{
    const char *before = gone_by(msg);

    if (before != NULL) {
        trpi_misuse_found(NULL, "trp_msg_free",
                          before[4] == 's' ? "this message was sent: it belongs to its receiver"
                                           : "this message was freed already");
    }
    msg->priv_from_node_flags |= TRPI_MSG_FREED;
}

void
trpi_misuse_read(const trp_msg *msg, const char *verb)
{
    if ((msg->priv_from_node_flags & TRPI_MSG_FREED) != 0) {
        trpi_misuse_found(NULL, verb, "this message was freed already");
    }
}

/* misuse.c - debug checks: wrong use of messages and of a ctx, found where it happens.
 *
 * Why.     A message that is sent twice, or a ctx that another thread uses, corrupts a queue, and
 *          later another actor crashes.
 * Shape.   trp_send() and trp_msg_free() mark the header of the message; a function that is given a
 *          marked message aborts. A new message has a new header, so there are no false alarms; a
 *          block that has become another message meanwhile is missed. A ctx belongs to one thread:
 *          on another thread it was kept.
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

/* Return the function that took the message before; NULL: none. */
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

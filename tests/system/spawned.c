/* spawned.c - a file for `troupe spawn`: an actor that keeps its last text and returns it with its
 * version, another one behind a symbol, and symbols that are no behaviours.
 */
#include <string.h>

#include <troupe/plugin.h>
#include <troupe/troupe.h>

#ifndef SPAWNED_VERSION
#define SPAWNED_VERSION "1"
#endif

typedef struct keeper {
    char text[64];
} keeper;

static trp_err
keeper_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    keeper *k = state;
    char answer[80] = SPAWNED_VERSION " ";
    size_t bytes = trp_msg_bytes(msg);
    if (trp_msg_is(msg, &trp_json_type)) {
        bytes = bytes < sizeof k->text ? bytes : sizeof k->text - 1;
        memcpy(k->text, trp_msg_payload(msg), bytes);
        k->text[bytes] = '\0';
        return TRP_OK;
    }
    memcpy(answer + strlen(answer), k->text, strlen(k->text) + 1);
    trp_reply(ctx, &trp_string_type, answer, strlen(answer));
    return TRP_OK;
}
TRP_SPAWN(TRP_BEHAVIOUR_INIT("keeper", keeper, keeper_receive))

static trp_err
other_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state, (void)msg;
    trp_reply(ctx, &trp_string_type, "other", 5);
    return TRP_OK;
}
TRP_API extern const trp_behaviour other;
const trp_behaviour other = TRP_BEHAVIOUR_INIT("other", char, other_receive);

TRP_API extern const trp_behaviour incomplete;
const trp_behaviour incomplete = { .size = sizeof(trp_behaviour), .name = "incomplete" };

/* The later file has a first protocol of its own, which is registered, and a second one that is not
 * the earlier file's, which is refused. */
#ifdef SPAWNED_LATER
#define SPAWNED_ONE(F, S) F(S, i64, value)
#define SPAWNED_FIRST(M, P) M(P, one, SPAWNED_ONE)
TRP_PROTOCOL(spawned_later, SPAWNED_FIRST)
#define SPAWNED_ADD(F, S) F(S, i64, amount) F(S, i64, times)
#else
#define SPAWNED_ADD(F, S) F(S, i64, amount)
#endif
#define SPAWNED_MESSAGES(M, P) M(P, add, SPAWNED_ADD)
TRP_PROTOCOL(spawned, SPAWNED_MESSAGES)

static const trp_protocol *const accepted[] = {
#ifdef SPAWNED_LATER
    &spawned_later_protocol,
#endif
    &spawned_protocol,
    NULL,
};
TRP_API extern const trp_behaviour accepting;
const trp_behaviour accepting = { .size = sizeof(trp_behaviour),
                                  .name = "accepting",
                                  .version = 1,
                                  .state_bytes = 1,
                                  .receive = other_receive,
                                  .accepts = accepted };

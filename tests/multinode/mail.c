/* mail.c - a plugin for bad_links.sh: user mail of so many bytes a second, whatever the link bears.
 *
 *     troupe node --load mail.so                   an actor at /user/mail that takes mail
 *     troupe ask /user/mail "tell BYTES ADDRESS"   it tells the one of the node at ADDRESS so many
 *                                                  bytes a second for ever, in messages of 1000
 *     troupe ask /user/mail taken                  how many messages have come
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <troupe/plugin.h>
#include <troupe/troupe.h>

#define TICK_FIELDS(F, S) F(S, u64, number)
#define MAIL_MESSAGES(M, P) M(P, tick, TICK_FIELDS)
TRP_PROTOCOL(mail, MAIL_MESSAGES)

enum { LETTER_BYTES = 1000, EVERY_MS = 20, RESOLVE_MS = 60000 };

typedef struct box {
    trp_ref to, asker;
    unsigned at_once; /* letters every EVERY_MS */
    uint64_t taken;
    char letter[LETTER_BYTES + 1];
} box;

static trp_err
resolved(trp_ctx *ctx, void *state, void *arg, trp_err err, const trp_msg *reply)
{
    box *b = state;
    mail_tick tick = { 0 };
    (void)arg;
    if (err == TRP_OK) {
        b->to = ((const trp_actor_identity *)trp_msg_payload(reply))->ref;
        err = trp_timer_repeat(ctx, 1, EVERY_MS, EVERY_MS, &mail_tick_type, &tick, sizeof(tick));
    }
    trp_tell_text(ctx, b->asker, err == TRP_OK ? "telling" : trp_strerror(err));
    return TRP_OK;
}

static trp_err
receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    box *b = state;
    char text[200] = "", address[150];
    unsigned bytes_a_second;
    size_t bytes = trp_msg_bytes(msg);
    if (trp_msg_is(msg, &mail_tick_type)) {
        for (unsigned i = 0; i < b->at_once; i++) {
            trp_tell_text(ctx, b->to, b->letter);
        }
        return TRP_OK;
    }
    if (bytes == LETTER_BYTES) {
        b->taken++;
        return TRP_OK;
    }
    memcpy(text, trp_msg_payload(msg), bytes < sizeof text ? bytes : sizeof text - 1);
    if (strcmp(text, "taken") == 0) {
        (void)snprintf(text, sizeof text, "%" PRIu64, b->taken);
        trp_reply_text(ctx, text);
    } else if (sscanf(text, "tell %u %149s", &bytes_a_second, address) == 2) {
        b->at_once = bytes_a_second / LETTER_BYTES * EVERY_MS / 1000;
        b->asker = trp_sender(ctx);
        (void)snprintf(text, sizeof text, "%s/user/mail", address);
        return trp_resolve(ctx, text, RESOLVE_MS, resolved, NULL);
    } else {
        return TRP_EUNHANDLED;
    }
    return TRP_OK;
}

static trp_err
start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    box *b = state;
    (void)ctx;
    (void)args;
    memset(b->letter, 'x', LETTER_BYTES);
    return TRP_OK;
}

static const trp_behaviour behaviour = { .size = sizeof(trp_behaviour),
                                         .name = "mail",
                                         .version = 1,
                                         .state_bytes = sizeof(box),
                                         .receive = receive,
                                         .pre_start = start };

static trp_err
init(trp_node *node, const char *arguments, void **ret_state, trp_plugin_error *ret_error)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    (void)arguments;
    (void)ret_state;
    (void)ret_error;
    trp_err err = trp_protocol_register(&mail_protocol);
    options.name = "mail";
    return err != TRP_OK ? err
                         : trp_system_spawn(trp_node_system(node), &behaviour, &options, &ref);
}
TRP_PLUGIN("mail", init, NULL)

/* topics.c - a plugin for topics_path.sh: an actor that does what it is asked with the mediator of
 * its node, and counts what it hears from it.
 *
 *     troupe node --load topics.so                the actor /user/guest
 *     troupe ask /user/guest "COMMAND [ARGUMENT...]"
 *         subscribe TOPIC [GROUP]    answered when all nodes know of it
 *         unsubscribe TOPIC [GROUP]  answered "ok", or with the error
 *         put, remove                its own path
 *         send, near, all, others    a word to one at its path, the near one, all, all but here
 *         heard                      how many words have come since it was asked last
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <troupe/plugin.h>
#include <troupe/troupe.h>

#define PATH "/user/guest"
#define WORD "word"

typedef struct guest {
    trp_ref asker; /* of the subscribe or unsubscribe that is under way */
    uint64_t heard;
} guest;

static trp_err
word_send(trp_ctx *ctx, trp_mediator *mediator, const char *command)
{
    bool near = strcmp(command, "near") == 0, others = strcmp(command, "others") == 0;
    trp_ref self = trp_self(ctx);
    size_t bytes = strlen(WORD);
    return near || strcmp(command, "send") == 0
               ? trp_mediator_send(mediator, self, PATH, near ? TRP_SEND_LOCAL_AFFINITY : 0,
                                   &trp_string_type, WORD, bytes)
               : trp_mediator_send_to_all(mediator, self, PATH, others ? TRP_SEND_ALL_BUT_SELF : 0,
                                          &trp_string_type, WORD, bytes);
}

static trp_err
subscription_change(trp_ctx *ctx, guest *g, trp_mediator *mediator, char words[3][40])
{
    trp_subscribe_options options = TRP_SUBSCRIBE_OPTIONS_INIT;
    g->asker = trp_sender(ctx);
    options.group = words[2][0] == '\0' ? NULL : words[2];
    if (strcmp(words[0], "unsubscribe") == 0) {
        return trp_mediator_unsubscribe(mediator, words[1], trp_self(ctx), &options);
    }
    options.flags = TRP_SUBSCRIBE_ACK_EVERYWHERE;
    return trp_mediator_subscribe(mediator, words[1], trp_self(ctx), &options);
}

static trp_err
command_do(trp_ctx *ctx, guest *g, const char *text)
{
    trp_mediator *mediator;
    char words[3][40] = { "", "", "" }, answer[40] = "ok";
    int count = sscanf(text, "%39s %39s %39s", words[0], words[1], words[2]);
    trp_err err = trp_mediator_of(trp_ctx_system(ctx), NULL, &mediator);
    if (err == TRP_OK && count > 1) {
        err = subscription_change(ctx, g, mediator, words);
        if (err == TRP_OK) {
            return TRP_OK; /* answered by its acknowledgement */
        }
    } else if (err == TRP_OK && strcmp(words[0], "heard") == 0) {
        (void)snprintf(answer, sizeof answer, "%" PRIu64, g->heard);
        g->heard = 0;
    } else if (err == TRP_OK) {
        err = strcmp(words[0], "put") == 0      ? trp_mediator_put(mediator, trp_self(ctx))
              : strcmp(words[0], "remove") == 0 ? trp_mediator_remove(mediator, PATH)
                                                : word_send(ctx, mediator, words[0]);
    }
    trp_reply_text(ctx, err == TRP_OK ? answer : trp_strerror(err));
    return TRP_OK;
}

static trp_err
receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    guest *g = state;
    char text[128] = "";
    size_t bytes = trp_msg_bytes(msg);
    if (trp_msg_is(msg, &trp_subscribe_ack_type) || trp_msg_is(msg, &trp_unsubscribe_ack_type)) {
        const trp_subscribe_ack *ack = trp_msg_payload(msg);
        trp_tell_text(ctx, g->asker, ack->err == TRP_OK ? "ok" : trp_strerror((trp_err)ack->err));
        return TRP_OK;
    }
    if (!trp_msg_is(msg, &trp_string_type) || bytes >= sizeof text) {
        return TRP_EUNHANDLED;
    }
    memcpy(text, trp_msg_payload(msg), bytes);
    if (strcmp(text, WORD) == 0) {
        g->heard++;
        return TRP_OK;
    }
    return command_do(ctx, g, text);
}

static const trp_behaviour behaviour = TRP_BEHAVIOUR_INIT("guest", guest, receive);

static trp_err
init(trp_node *node, const char *arguments, void **ret_state, trp_plugin_error *ret_error)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    (void)arguments;
    (void)ret_state;
    (void)ret_error;
    options.name = "guest";
    return trp_system_spawn(trp_node_system(node), &behaviour, &options, &ref);
}
TRP_PLUGIN("topics", init, NULL)
